//! The KKT filter: gradients that will leave a weight of zero at zero do not travel.

use super::{Direction, Entry, Reason, Remainder, Selection};
use crate::row::{RowKind, RowRef};

/// For tables whose rows begin with a weight `w` and whose updates begin with its gradient `g`, under an ℓ1 penalty
/// `lambda`: an update is left out when `w = 0` and `|g| ≤ share · (lambda − delta)`, because the proximal operator
/// would leave the weight at zero (section 5 of the paper).
///
/// The server compares the sum of all workers' gradients with `lambda`, and a worker sees only its own, so with `n`
/// workers a `share` of `1/n` makes sure that gradients which all workers leave out sum up to at most `lambda − delta`.
/// What is left out is dropped: the next gradient of the coordinate is computed anew.
///
/// A row that the worker has not read travels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kkt {
    /// The weight of the penalty.
    pub lambda: f32,
    /// From 0, which leaves out the most, to `lambda`, which leaves out nothing but zeros.
    pub delta: f32,
    /// The part of the whole gradient that one worker may leave out.
    pub share: f32,
}

impl Selection for Kkt {
    fn name(&self) -> &str {
        "kkt"
    }

    fn travels(&self, entry: &Entry<'_>) -> Result<bool, Reason> {
        let (Some(RowRef::Dense([weight, ..])), RowRef::Dense([gradient, ..])) = (entry.value, entry.change) else {
            return Ok(true);
        };
        let stays = gradient.abs() <= self.share * (self.lambda - self.delta);
        Ok(*weight != 0.0 || !stays)
    }

    fn remainder(&self) -> Remainder {
        Remainder::Dropped
    }

    fn needs_value(&self) -> bool {
        true
    }

    fn check(&self, kind: &RowKind, direction: Direction) -> Result<(), &'static str> {
        match (kind, direction) {
            (RowKind::Dense { .. }, Direction::Updates) => Ok(()),
            (_, Direction::Rows) => Err("is for gradients, which are updates, and not for rows"),
            _ => Err("needs dense rows that begin with a weight"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Clock;

    #[test]
    fn a_gradient_is_left_out_exactly_where_the_proximal_step_leaves_the_weight_at_zero() {
        let (lambda, rate) = (0.75f32, 0.125f32);
        let soft = |x: f32| x.signum() * (x.abs() - rate * lambda).max(0.0);
        for delta in [0.0, 0.25, 0.75] {
            for step in -40..=40 {
                let (gradient, filter) = (step as f32 / 32.0, Kkt { lambda, delta, share: 1.0 });
                let travels = |weight: f32| {
                    let value = Some(RowRef::Dense(std::slice::from_ref(&weight)));
                    let change = RowRef::Dense(std::slice::from_ref(&gradient));
                    let entry = Entry { row: 0, clock: Clock(0), sender: 0, change, value };
                    filter.travels(&entry).expect("it can always tell")
                };
                let stays = soft(0.0 - rate * gradient) == 0.0;
                assert!(travels(0.0) || stays, "{gradient} is left out and would move the weight");
                assert!(delta > 0.0 || travels(0.0) != stays, "{gradient} travels and would not move the weight");
                assert!(travels(0.5), "a weight that is not zero moves");
            }
        }
    }

    #[test]
    fn a_row_that_was_not_read_travels() {
        let filter = Kkt { lambda: 1.0, delta: 0.0, share: 1.0 };
        let entry = Entry { row: 0, clock: Clock(0), sender: 0, change: RowRef::Dense(&[0.0]), value: None };
        assert!(filter.travels(&entry).expect("it can always tell"));
    }
}
