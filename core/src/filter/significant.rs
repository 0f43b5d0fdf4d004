//! The significantly modified filter: only entries that have changed by more than a threshold travel.

use super::{Direction, Entry, Reason, Selection, magnitude};
use crate::row::RowKind;

/// Lets a row travel when a number of it has changed by more than `threshold` since it last did. What it holds back is
/// kept, and grows until it is significant. So whoever reads a row misses at most `threshold` in each number from each
/// worker, or from the shard where it is on rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Significant {
    /// Changes of at most this magnitude are held back.
    pub threshold: f32,
}

impl Selection for Significant {
    fn name(&self) -> &str {
        "significant"
    }

    fn travels(&self, entry: &Entry<'_>) -> Result<bool, Reason> {
        // Neither what is not a number nor a user's row is small.
        let small = magnitude(entry.change).is_some_and(|change| change <= self.threshold);
        Ok(!small)
    }

    fn check(&self, kind: &RowKind, _: Direction) -> Result<(), &'static str> {
        match kind {
            RowKind::Custom(_) => Err("needs rows of numbers, whose change has a size"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Clock;
    use crate::row::RowRef;

    #[test]
    fn a_row_travels_when_one_of_its_numbers_has_changed_by_more_than_the_threshold() {
        let travels = |change: RowRef<'_>| {
            let entry = Entry { row: 3, clock: Clock(0), sender: 0, change, value: None };
            Significant { threshold: 0.5 }.travels(&entry).expect("it can always tell")
        };
        assert!(!travels(RowRef::Dense(&[0.5, -0.5, 0.0])));
        assert!(travels(RowRef::Dense(&[0.0, -0.6])));
        assert!(travels(RowRef::Dense(&[f32::NAN, 0.0])) && travels(RowRef::Dense(&[0.0, f32::NAN])));
        assert!(!travels(RowRef::Sparse(&[4], &[0.25])) && travels(RowRef::Sparse(&[4], &[2.0])));
        assert!(!travels(RowRef::Counts(&[4], &[0])) && travels(RowRef::Counts(&[4], &[i32::MIN])));
    }
}
