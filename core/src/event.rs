//! What happens in the protocol, as typed events, and the histogram of how stale reads were.

use crate::ids::{ClientId, Clock, ShardId, TableId, WorkerId};
use serde::{Deserialize, Serialize};

/// Something that happened in a client or a shard. Reports, plots and the checkers of the simulator read these.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A worker read rows of a table.
    Read {
        /// Who.
        worker: WorkerId,
        /// What.
        table: TableId,
        /// How many rows.
        rows: usize,
        /// The worker's clock.
        clock: Clock,
        /// The oldest of the rows' clocks.
        oldest: Clock,
    },
    /// A worker ended a clock and is at this one now.
    WorkerClock {
        /// Who.
        worker: WorkerId,
        /// The clock it is at now.
        clock: Clock,
    },
    /// A client sent its updates of all clocks before this one.
    ClientClock {
        /// Who.
        client: ClientId,
        /// The clock.
        clock: Clock,
    },
    /// A shard has every update of the clocks before this one.
    ShardClock {
        /// Who.
        shard: ShardId,
        /// The clock.
        clock: Clock,
    },
}

/// Counts reads by clock differential: the newest clock that is wholly in the row, less the reader's clock.
///
/// Under Bsp it is always −1; under staleness `s` it is at least `−1 − s`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StalenessHistogram {
    counts: Vec<u64>,
}

/// The differentials counted apart; what lies outside is counted at the edge.
const DIFFERENTIAL_MIN: i64 = -96;
const DIFFERENTIAL_MAX: i64 = 31;

impl Default for StalenessHistogram {
    fn default() -> Self {
        Self { counts: vec![0; (DIFFERENTIAL_MAX - DIFFERENTIAL_MIN + 1) as usize] }
    }
}

impl StalenessHistogram {
    /// Counts `reads` reads of rows at `row_clock` by a worker at `reader`.
    #[inline]
    pub fn count(&mut self, row_clock: Clock, reader: Clock, reads: u64) {
        let differential = i64::from(row_clock.0) - 1 - i64::from(reader.0);
        let at = differential.clamp(DIFFERENTIAL_MIN, DIFFERENTIAL_MAX) - DIFFERENTIAL_MIN;
        self.counts[at as usize] += reads;
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (a, b) in self.counts.iter_mut().zip(&other.counts) {
            *a += b;
        }
    }

    /// Each differential that occurred, with how often, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(i, &n)| (i as i64 + DIFFERENTIAL_MIN, n))
    }

    /// The share of reads at `differential` or fresher; 1 where nothing was read.
    #[must_use]
    pub fn share_at_least(&self, differential: i64) -> f64 {
        let total: u64 = self.counts.iter().sum();
        let fresh: u64 = self.iter().filter(|&(d, _)| d >= differential).map(|(_, n)| n).sum();
        if total == 0 { 1.0 } else { fresh as f64 / total as f64 }
    }

    /// The mean differential; `None` where nothing was read.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let total: u64 = self.counts.iter().sum();
        (total > 0).then(|| self.iter().map(|(d, n)| d as f64 * n as f64).sum::<f64>() / total as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_of_everything_finished_is_at_minus_one() {
        let mut histogram = StalenessHistogram::default();
        histogram.count(Clock(5), Clock(5), 3);
        histogram.count(Clock(3), Clock(5), 1);
        assert_eq!(histogram.iter().collect::<Vec<_>>(), [(-3, 1), (-1, 3)]);
        assert_eq!(histogram.share_at_least(-1), 0.75);
        assert_eq!(histogram.mean(), Some(-1.5));
    }
}
