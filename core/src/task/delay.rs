//! Bounded delay: which earlier iterations a new one must wait for, and how the bound follows what is measured.
//!
//! Iteration `t` waits for all iterations before `t − τ`. With `τ = 0` that is sequential consistency, without a bound
//! eventual consistency.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use thiserror::Error;

/// How many iterations may be under way.
#[derive(Debug, Clone, PartialEq)]
pub enum Delay {
    /// Each iteration waits for all before it: the result of one thread.
    Sequential,
    /// Each iteration waits for all that are more than so many before it.
    Bounded(u64),
    /// No iteration waits for another.
    Eventual,
    /// The bound follows what is measured.
    Auto(Auto),
}

/// A bound that grows while workers wait and shrinks when that does not help or hurts.
///
/// After every [`Auto::WINDOW`] iterations, of which each tells which share of their time the workers had nothing to
/// begin, and the objective if it is known, the first of these rules that holds is followed:
/// 1. The objective rose over the window: stale weights do harm, so the bound is halved.
/// 2. The workers waited more than [`Auto::WAITING_HIGH`] of their time: the bound goes up by one.
/// 3. They waited less than [`Auto::WAITING_LOW`]: a smaller bound may do as well, so it goes down by one.
#[derive(Debug, Clone, PartialEq)]
pub struct Auto {
    bound: u64,
    bound_max: u64,
    /// How many iterations of the window have been measured, and the sum of their waiting shares.
    measured: u32,
    waiting: f64,
    /// The objective at the end of the last window, and the newest.
    before: Option<f64>,
    objective: Option<f64>,
}

/// What was measured of one iteration.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Measured {
    /// Which share of their time the workers had nothing that they might begin, from 0 to 1.
    pub waiting_share: f64,
    /// The objective, if it is known.
    pub objective: Option<f64>,
}

/// A delay that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{text}' is not a delay; it is 'sequential', 'eventual', 'auto', or a number of iterations such as 4")]
pub struct DelayError {
    text: String,
}

impl Delay {
    /// The bound `τ` now; `None` is none.
    #[must_use]
    pub fn bound(&self) -> Option<u64> {
        match self {
            Self::Sequential => Some(0),
            Self::Bounded(bound) => Some(*bound),
            Self::Eventual => None,
            Self::Auto(auto) => Some(auto.bound),
        }
    }

    /// The iterations that iteration `t` must wait for.
    #[must_use]
    pub fn waits_for(&self, t: u64) -> Range<u64> {
        0..self.bound().map_or(0, |bound| t.saturating_sub(bound))
    }

    /// Takes what was measured of an iteration that is done.
    pub fn observe(&mut self, measured: Measured) {
        if let Self::Auto(auto) = self {
            auto.observe(measured);
        }
    }
}

impl Default for Auto {
    fn default() -> Self {
        Self::new(32)
    }
}

impl Auto {
    /// How many iterations are looked at together.
    pub const WINDOW: u32 = 4;
    /// A larger share of waiting asks for a larger bound.
    pub const WAITING_HIGH: f64 = 0.1;
    /// A smaller share of waiting asks for a smaller bound.
    pub const WAITING_LOW: f64 = 0.02;

    /// A bound that begins at zero and never exceeds `bound_max`.
    #[must_use]
    pub fn new(bound_max: u64) -> Self {
        Self { bound: 0, bound_max, measured: 0, waiting: 0.0, before: None, objective: None }
    }

    fn observe(&mut self, Measured { waiting_share, objective }: Measured) {
        self.measured += 1;
        self.waiting += waiting_share;
        self.objective = objective.or(self.objective);
        self.before = self.before.or(objective);
        if self.measured < Self::WINDOW {
            return;
        }
        let waiting = self.waiting / f64::from(self.measured);
        // A number that is not one is the worst objective there is.
        let rose = match (self.before, self.objective) {
            (Some(before), Some(now)) => now.is_nan() || now > before,
            _ => false,
        };
        self.bound = match () {
            () if rose => self.bound / 2,
            () if waiting > Self::WAITING_HIGH => (self.bound + 1).min(self.bound_max),
            () if waiting < Self::WAITING_LOW => self.bound.saturating_sub(1),
            () => self.bound,
        };
        (self.measured, self.waiting, self.before) = (0, 0.0, self.objective);
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequential => write!(f, "sequential"),
            Self::Bounded(bound) => write!(f, "{bound}"),
            Self::Eventual => write!(f, "eventual"),
            Self::Auto(_) => write!(f, "auto"),
        }
    }
}

impl FromStr for Delay {
    type Err = DelayError;

    fn from_str(text: &str) -> Result<Self, DelayError> {
        match text {
            "sequential" => Ok(Self::Sequential),
            "eventual" => Ok(Self::Eventual),
            "auto" => Ok(Self::Auto(Auto::default())),
            text => text.parse().map(Self::Bounded).map_err(|_| DelayError { text: text.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iteration_waits_for_all_before_the_bound() {
        assert_eq!(Delay::Sequential.waits_for(5), 0..5);
        assert_eq!(Delay::Bounded(0).waits_for(5), 0..5);
        assert_eq!(Delay::Bounded(2).waits_for(5), 0..3);
        assert_eq!(Delay::Bounded(9).waits_for(5), 0..0);
        assert_eq!(Delay::Eventual.waits_for(5), 0..0);
        assert_eq!(Delay::Auto(Auto::default()).waits_for(5), 0..5);
    }

    /// The bounds after each window of iterations that all measure the same.
    fn bounds(auto: Auto, windows: &[(f64, Option<f64>)]) -> Vec<u64> {
        let mut delay = Delay::Auto(auto);
        let mut window = |&(waiting_share, objective)| {
            (0..Auto::WINDOW).for_each(|_| delay.observe(Measured { waiting_share, objective }));
            delay.bound().expect("bounded")
        };
        windows.iter().map(&mut window).collect()
    }

    #[test]
    fn the_bound_follows_waiting_and_progress() {
        let falling = |i: i32| Some(-f64::from(i));
        assert_eq!(bounds(Auto::default(), &[(0.5, None), (0.5, None), (0.05, None), (0.0, None)]), [1, 2, 2, 1]);
        assert_eq!(bounds(Auto::new(2), &[(0.5, None); 4]), [1, 2, 2, 2], "not beyond the largest");
        assert_eq!(bounds(Auto::default(), &[(0.0, None); 2]), [0, 0]);
        let waiting: Vec<_> = (0..5).map(|i| (0.5, falling(i))).collect();
        assert_eq!(bounds(Auto::default(), &waiting), [1, 2, 3, 4, 5]);
        let harmful: Vec<_> =
            waiting.into_iter().chain([(0.5, Some(1.0)), (0.5, Some(2.0)), (0.5, Some(0.0))]).collect();
        assert_eq!(bounds(Auto::default(), &harmful), [1, 2, 3, 4, 5, 2, 1, 2]);
        assert_eq!(bounds(Auto::default(), &[(0.5, Some(1.0)), (0.5, Some(f64::NAN))]), [1, 0]);
    }

    #[test]
    fn a_delay_is_read_as_it_is_written() {
        for text in ["sequential", "eventual", "auto", "7"] {
            assert_eq!(text.parse::<Delay>().expect("a delay").to_string(), text);
        }
        assert_eq!(
            "soon".parse::<Delay>().expect_err("not one").to_string(),
            "'soon' is not a delay; it is 'sequential', 'eventual', 'auto', or a number of iterations such as 4"
        );
    }
}
