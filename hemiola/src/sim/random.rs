//! The one source of randomness of a simulation.

use super::config::Hazard;
use super::time::Time;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub(super) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Evenly from `0..1`.
    pub(super) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Exponentially with this mean.
    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// How long one occurrence of a hazard lasts.
    pub(super) fn duration(&mut self, mean: f64) -> Time {
        Time::from_seconds(self.exponential(mean))
    }

    /// How long it is until a hazard occurs next, if it ever does.
    pub(super) fn until(&mut self, hazard: Hazard) -> Option<Time> {
        (hazard.per_second > 0.0).then(|| Time::from_seconds(self.exponential(1.0 / hazard.per_second)))
    }
}
