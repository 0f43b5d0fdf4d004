//! Which rows of data are held out to judge a model by.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::SplitMix64;

/// A rule that holds rows, such as ratings or documents, out by their number, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HoldOut {
    /// Holds out row `i` if `i % every == every - 1`.
    Every(u64),
    /// Holds out each row with the chance `fraction`; the same seed gives the same rows.
    Random {
        /// Between 0 and 1.
        fraction: f64,
        /// Any number.
        seed: u64,
    },
}

/// Why data could not be split.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum SplitError {
    /// The rule holds out everything.
    #[error("cannot hold out one in {every} {what}; expected one in 2 or more")]
    Every {
        /// What was to be held out.
        what: &'static str,
        /// The number given.
        every: u64,
    },
    /// The fraction is none.
    #[error("cannot hold out a fraction of {fraction}; expected a number between 0 and 1")]
    Fraction {
        /// The number given.
        fraction: f64,
    },
    /// One of the two parts would be empty.
    #[error("{train} {what} to train on and {test} to hold out; expected some of both")]
    Empty {
        /// What was to be held out.
        what: &'static str,
        /// How many are left to train on.
        train: usize,
        /// How many are held out.
        test: usize,
    },
}

impl HoldOut {
    /// Whether a row is held out; `what` the rows are is for the message.
    pub(crate) fn held_out(self, what: &'static str) -> Result<impl Fn(u64) -> bool, SplitError> {
        match self {
            Self::Every(every) if every < 2 => return Err(SplitError::Every { what, every }),
            Self::Random { fraction, .. } if !(fraction > 0.0 && fraction < 1.0) => {
                return Err(SplitError::Fraction { fraction });
            }
            Self::Every(_) | Self::Random { .. } => {}
        }
        Ok(move |row| match self {
            Self::Every(every) => row % every == every - 1,
            Self::Random { fraction, seed } => mix(seed, row) < (fraction * 2f64.powi(64)) as u64,
        })
    }
}

/// A number that depends on both and looks like chance.
pub(crate) fn mix(seed: u64, row: u64) -> u64 {
    SplitMix64::seed_from_u64(SplitMix64::seed_from_u64(seed).next_u64() ^ row).next_u64()
}
