//! Virtual time, in whole nanoseconds, so that it is ordered and adds up exactly.

use std::ops::Add;

/// A moment since the simulation began, or a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Time(pub(super) u64);

impl Time {
    pub(super) fn from_seconds(seconds: f64) -> Self {
        Self((seconds * 1e9).round() as u64)
    }

    pub(super) fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add for Time {
    type Output = Self;

    fn add(self, span: Self) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}
