//! The random skip filter: a random part of the entries is left out.

use super::{Entry, Reason, Remainder, Selection};
use crate::schema::mix;

/// Leaves out each entry with probability `share`, by a hash of the seed, the row, the clock and the sender, so that
/// every run of a job leaves out the same ones. "They are skipped in calculations", says the paper: what is left is
/// not scaled up, and what is left out is dropped, unless [`Feedback`](super::Feedback) is around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomSkip {
    /// The part that is left out, from 0 to below 1.
    pub share: f64,
    /// The seed.
    pub seed: u64,
}

impl Selection for RandomSkip {
    fn name(&self) -> &str {
        "random-skip"
    }

    fn travels(&self, entry: &Entry<'_>) -> Result<bool, Reason> {
        let draw = mix(self.seed ^ mix(entry.row ^ mix(u64::from(entry.clock.0) << 32 | u64::from(entry.sender))));
        Ok((draw >> 11) as f64 / (1u64 << 53) as f64 >= self.share)
    }

    fn remainder(&self) -> Remainder {
        Remainder::Dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Clock;
    use crate::row::RowRef;

    #[test]
    fn the_declared_share_is_skipped_whichever_of_row_clock_sender_and_seed_varies() {
        let travels = |seed, row, clock, sender| {
            let entry = Entry { row, clock: Clock(clock), sender, change: RowRef::Dense(&[1.0]), value: None };
            RandomSkip { share: 0.3, seed }.travels(&entry).expect("it can always tell")
        };
        let share = |travels: &dyn Fn(u32) -> bool| (0..10_000).filter(|&i| !travels(i)).count();
        let skipped = [
            share(&|i| travels(1, u64::from(i), 0, 0)),
            share(&|i| travels(1, 7, i, 0)),
            share(&|i| travels(1, 7, 0, i)),
            share(&|i| travels(u64::from(i), 7, 0, 0)),
        ];
        assert!(skipped.iter().all(|count| (2800..3200).contains(count)), "{skipped:?} of 10000");
        assert_eq!(travels(5, 6, 7, 8), travels(5, 6, 7, 8));
    }
}
