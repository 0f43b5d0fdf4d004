//! When a fit is at its end.

use serde::{Deserialize, Serialize};

/// When to stop: at the first of these.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stopping {
    /// The objective has fallen by less than this part of itself since it was last looked at.
    pub tolerance: f64,
    /// The violations of the conditions of optimality sum to less than this part of what they were at the start.
    pub violation: f64,
    /// So many passes are done.
    pub passes: u32,
}

impl Default for Stopping {
    fn default() -> Self {
        Self { tolerance: 1e-7, violation: 1e-5, passes: 1000 }
    }
}

/// What a fit was like when it was last looked at.
#[derive(Clone, Copy, Debug)]
pub struct State {
    rules: Stopping,
    objective: f64,
    /// The violations at the start, once they are known.
    violation: Option<f64>,
}

impl State {
    /// At the start of a fit.
    #[must_use]
    pub fn new(rules: Stopping) -> Self {
        Self { rules, objective: f64::INFINITY, violation: None }
    }

    /// Looks at a fit: whether its objective and the sum of its violations say that it has ended.
    pub fn ended(&mut self, objective: f64, violation: f64) -> bool {
        let first = *self.violation.get_or_insert(violation);
        let fallen = self.objective - objective;
        self.objective = objective;
        violation <= self.rules.violation * first || fallen < self.rules.tolerance * objective.abs()
    }

    /// Forgets the objective, because the next one looked at will be the same but for rounding.
    pub fn look_again(&mut self) {
        self.objective = f64::INFINITY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fit_ends_when_little_changes_or_little_is_wrong() {
        let rules = Stopping { tolerance: 1e-3, violation: 0.01, passes: 9 };
        let mut state = State::new(rules);
        assert!(!state.ended(10.0, 100.0) && !state.ended(9.0, 50.0));
        assert!(state.ended(8.999, 50.0), "it hardly fell");
        state.look_again();
        assert!(!state.ended(8.999, 50.0));
        assert!(state.ended(5.0, 0.9), "hardly anything is violated");
        assert!(State::new(rules).ended(1.0, 0.0), "nothing was wrong from the start");
    }
}
