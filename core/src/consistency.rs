//! How stale a read may be, and which updates it may contain: the definition of record, in two functions.

use crate::ids::Clock;
use serde::{Deserialize, Serialize};

/// A consistency model, chosen per table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consistency {
    /// Staleness 0; updates are applied in worker order, so that one seed gives one model, bit for bit.
    Bsp,
    /// Bounded staleness, lazy: a client asks again only when its cached row has become too old.
    Ssp {
        /// The bound `s`.
        staleness: u32,
    },
    /// Bounded staleness, eager: the first read registers a call-back, and the shard pushes changed rows.
    Essp {
        /// The bound `s`.
        staleness: u32,
    },
    /// No bound; changed rows are pushed as often as clients end clocks.
    Async,
    /// A worker's updates in transit stay within `bound / √t` in every coordinate, `t` counting clocks from one.
    Vap {
        /// The bound `v0`.
        bound: f32,
    },
}

impl Consistency {
    /// The staleness bound, where the model has one.
    #[must_use]
    pub fn staleness(self) -> Option<u32> {
        match self {
            Self::Bsp => Some(0),
            Self::Ssp { staleness } | Self::Essp { staleness } => Some(staleness),
            Self::Async | Self::Vap { .. } => None,
        }
    }

    /// The oldest row clock that a worker at clock `reader` may be shown: `reader − s`. It is also the clock that the
    /// slowest worker must have reached before anyone starts work in clock `reader`.
    #[must_use]
    pub fn oldest_readable(self, reader: Clock) -> Clock {
        match self.staleness() {
            Some(staleness) => reader.back(staleness),
            None => Clock(0),
        }
    }

    /// Whether an update made in clock `update` may be shown to others while the slowest worker is at `slowest`.
    ///
    /// A reader at clock `c` may see updates up to clock `c + s − 1`, and some reader may be the slowest worker.
    /// With `s = 0` this is the barrier of Bsp.
    #[must_use]
    pub fn may_show(self, update: Clock, slowest: Clock) -> bool {
        match self.staleness() {
            Some(staleness) => update.0 < slowest.0.saturating_add(staleness),
            None => true,
        }
    }

    /// Whether a peer at clock `reader` may use factors that another computed in clock `update`: none that are ahead of
    /// it (Xie et al., formula (4)). It is less than a table may show, and the same for every bound.
    #[must_use]
    pub fn may_use(self, update: Clock, reader: Clock) -> bool {
        update < reader
    }

    /// Whether shards push changed rows to the clients that have read them.
    #[must_use]
    pub fn is_eager(self) -> bool {
        !matches!(self, Self::Ssp { .. })
    }

    /// The largest magnitude that a worker's updates in transit may reach in clock `clock`, under Vap.
    #[must_use]
    pub fn transit_bound(self, clock: Clock) -> Option<f32> {
        match self {
            Self::Vap { bound } => Some(bound / (clock.0 as f32 + 1.0).sqrt()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_at_clock_c_needs_c_minus_s_and_sees_up_to_c_plus_s_minus_one() {
        // (model, reader clock, oldest readable row clock, newest update shown while the slowest is the reader)
        let cases = [
            (Consistency::Bsp, 5, 5, Some(4)),
            (Consistency::Ssp { staleness: 1 }, 5, 4, Some(5)),
            (Consistency::Essp { staleness: 3 }, 5, 2, Some(7)),
            (Consistency::Essp { staleness: 9 }, 5, 0, Some(13)),
            (Consistency::Async, 5, 0, None),
        ];
        for (model, reader, oldest, newest) in cases {
            assert_eq!(model.oldest_readable(Clock(reader)), Clock(oldest), "{model:?}");
            let shown = (0..100).filter(|&k| model.may_show(Clock(k), Clock(reader))).max();
            assert_eq!(shown, newest.or(Some(99)), "{model:?}");
        }
    }

    #[test]
    fn the_value_bound_shrinks_with_the_square_root_of_the_clock() {
        let vap = Consistency::Vap { bound: 2.0 };
        assert_eq!(vap.transit_bound(Clock(0)), Some(2.0));
        assert_eq!(vap.transit_bound(Clock(3)), Some(1.0));
        assert_eq!(Consistency::Bsp.transit_bound(Clock(0)), None);
    }
}
