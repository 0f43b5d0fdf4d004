//! Which rows go first when there is bandwidth to spare before a clock ends.

use crate::schema::mix;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// Which rows go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// Any, drawn by a hash.
    Random,
    /// One after the other, again and again.
    RoundRobin,
    /// Those with the largest sum of changes for their length.
    AbsoluteMagnitude,
    /// Those with the largest sum of changes as parts of what is changed, for their length.
    RelativeMagnitude,
}

impl Priority {
    /// Whether rows are told apart by how much they have changed.
    pub(crate) fn is_by_magnitude(self) -> bool {
        matches!(self, Self::AbsoluteMagnitude | Self::RelativeMagnitude)
    }
}

/// Rows of so many times the bytes that are to be sent are looked at, and the most important of them chosen. All rows
/// come to be looked at in turn, and a choice costs the same however large the table is.
const LOOK_AHEAD: usize = 8;

/// Chooses rows of one buffer, time after time.
#[derive(Debug)]
pub(crate) struct Selector {
    priority: Priority,
    /// Where to go on looking.
    cursor: u64,
    choices: u64,
}

impl Selector {
    pub(crate) fn new(priority: Priority) -> Self {
        Self { priority, cursor: 0, choices: 0 }
    }

    /// Chooses rows of about `limit` bytes together, at least one if there is any, ascending. `walk` shows what there
    /// is to choose from, from a row on and around, until it has shown enough; `weigh` says how many bytes a row
    /// costs.
    pub(crate) fn choose(
        &mut self,
        limit: usize,
        walk: impl FnOnce(u64, &mut dyn FnMut(u64) -> ControlFlow<()>),
        weigh: impl Fn(u64) -> usize,
        importance: impl Fn(u64) -> f32,
    ) -> Vec<u64> {
        let enough = if self.priority == Priority::RoundRobin { limit } else { limit.saturating_mul(LOOK_AHEAD) };
        let mut rows = Vec::new();
        let mut bytes = 0;
        walk(self.cursor, &mut |row| {
            let weight = weigh(row);
            // One that does not fit is left for the next time, but for the first.
            if bytes + weight > enough && !rows.is_empty() {
                return ControlFlow::Break(());
            }
            bytes += weight;
            rows.push(Scored { score: 0.0, row, weight });
            ControlFlow::Continue(())
        });
        if let Some(last) = rows.last() {
            self.cursor = last.row.wrapping_add(1);
        }
        self.choices += 1;
        if bytes > limit && self.priority != Priority::RoundRobin {
            for scored in &mut rows {
                scored.score = match self.priority {
                    // The upper 24 bits fill the mantissa exactly.
                    Priority::Random => (mix(scored.row ^ mix(self.choices)) >> 40) as f32,
                    // What waits longer than it must is least in all when the most important for its length goes first
                    // (Smith).
                    _ => importance(scored.row) / scored.weight.max(1) as f32,
                };
            }
            let chosen = best(&mut rows, limit);
            rows.truncate(chosen);
        }
        let mut rows: Vec<u64> = rows.iter().map(|scored| scored.row).collect();
        rows.sort_unstable();
        rows
    }
}

struct Scored {
    score: f32,
    row: u64,
    weight: usize,
}

/// Moves the rows of the highest scores, about `limit` bytes of them together and at least one, to the front; says how many
/// they are. As many are moved as fit if they are of average length, and then again as many as fit into what is left.
fn best(scored: &mut [Scored], limit: usize) -> usize {
    let (mut chosen, mut left) = (0, limit);
    loop {
        let rest = &mut scored[chosen..];
        let bytes: usize = rest.iter().map(|scored| scored.weight).sum();
        if bytes <= left {
            return scored.len();
        }
        let fit = (rest.len() as f64 * left as f64 / bytes as f64) as usize;
        let fit = if chosen == 0 { fit.max(1) } else { fit };
        if fit == 0 {
            return chosen;
        }
        rest.select_nth_unstable_by(fit - 1, |a, b| b.score.total_cmp(&a.score).then(a.row.cmp(&b.row)));
        left = left.saturating_sub(rest[..fit].iter().map(|scored| scored.weight).sum());
        chosen += fit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row_set::show_each;

    /// Chooses rows worth one byte each out of `0..100`.
    fn choose(selector: &mut Selector, limit: usize, importance: impl Fn(u64) -> f32) -> Vec<u64> {
        let walk = |from: u64, show: &mut dyn FnMut(u64) -> ControlFlow<()>| {
            show_each((from..100).chain(0..from.min(100)), show);
        };
        selector.choose(limit, walk, |_| 1, importance)
    }

    #[test]
    fn each_strategy_chooses_by_its_rule() {
        let mut selector = Selector::new(Priority::RoundRobin);
        assert_eq!(choose(&mut selector, 60, |_| 0.0), (0..60).collect::<Vec<_>>());
        let around: Vec<u64> = (0..20).chain(60..100).collect();
        assert_eq!(choose(&mut selector, 60, |_| 0.0), around);
        let mut selector = Selector::new(Priority::AbsoluteMagnitude);
        assert_eq!(choose(&mut selector, 13, |row| (row % 7) as f32), (6..100).step_by(7).take(13).collect::<Vec<_>>());
        let mut selector = Selector::new(Priority::Random);
        let (first, second) = (choose(&mut selector, 20, |_| 0.0), choose(&mut selector, 20, |_| 0.0));
        assert_eq!(first.len(), 20);
        assert_ne!(first, second);
        assert_eq!(first, choose(&mut Selector::new(Priority::Random), 20, |_| 0.0), "the same hash every time");
    }

    #[test]
    fn of_rows_of_different_length_the_most_important_for_its_length_goes_first() {
        let mut selector = Selector::new(Priority::AbsoluteMagnitude);
        let walk = |_: u64, show: &mut dyn FnMut(u64) -> ControlFlow<()>| show_each([1, 2, 3].into_iter(), show);
        let (length, importance) = (|row| [0, 30, 10, 20][row as usize], |row| [0.0, 6.0, 3.0, 5.0][row as usize]);
        assert_eq!(selector.choose(20, walk, length, importance), [2]);
        assert_eq!(selector.choose(9, walk, length, importance), [2], "the best of those that are too long");
    }

    #[test]
    fn short_rows_that_go_first_leave_no_room_unused() {
        let mut selector = Selector::new(Priority::AbsoluteMagnitude);
        let walk = |_: u64, show: &mut dyn FnMut(u64) -> ControlFlow<()>| show_each(0..400, show);
        let length = |row: u64| if row.is_multiple_of(2) { 10 } else { 30 };
        let rows = selector.choose(1000, walk, length, |_| 1.0);
        assert!(rows.iter().all(|row| row.is_multiple_of(2)));
        assert!((97..=100).contains(&rows.len()), "{} rows", rows.len());
    }

    #[test]
    fn a_large_table_is_looked_at_piece_by_piece() {
        let mut selector = Selector::new(Priority::RelativeMagnitude);
        assert_eq!(choose(&mut selector, 1, |row| row as f32), [7]);
        assert_eq!(choose(&mut selector, 1, |row| row as f32), [15]);
        assert_eq!(choose(&mut selector, 0, |row| row as f32), [16], "one row, however little may be sent");
    }
}
