//! When a fit is at its end.

use std::collections::VecDeque;

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

/// Looks at the passes of a method that leaves features out which are likely to stay as they are, and begins passes
/// before it has looked at all earlier ones. An end is believed only of a pass that has left out nothing, and only if the one
/// before it seemed to be one, too: what iterations miss may make the objective stand still for a moment. Now and then
/// such a pass is made in between, so that what was left out wrongly is not missed for long: every pass whose number is a
/// power of two, since weights change ever less.
#[derive(Clone, Debug)]
pub struct Watch {
    state: State,
    /// For every pass begun but not yet looked at, whether features are left out of it.
    filtered: VecDeque<bool>,
    /// What was found last.
    pub violation: f64,
    objective: f64,
    /// Whether the last pass that was looked at seemed to be the end.
    still: bool,
    recheck: bool,
    begun: u32,
    /// Whether the end is reached.
    pub ended: bool,
}

impl Watch {
    /// At the start of a fit.
    #[must_use]
    pub fn new(rules: Stopping) -> Self {
        let (state, filtered) = (State::new(rules), VecDeque::new());
        Self {
            state,
            filtered,
            violation: 0.0,
            objective: f64::INFINITY,
            still: false,
            recheck: false,
            begun: 0,
            ended: false,
        }
    }

    /// Begins a pass. Says whether features may be left out of it, if they are to be at all.
    pub fn begin(&mut self, filter: bool) -> bool {
        self.begun += 1;
        let filtered = !std::mem::take(&mut self.recheck) && !self.begun.is_power_of_two() && filter;
        self.filtered.push_back(filtered);
        filtered
    }

    /// Looks at the first pass that has not been looked at.
    pub fn look(&mut self, objective: f64, violation: f64) {
        // What is stale may make it rise for a while, which is no end.
        let rose = objective > self.objective * (1.0 + self.state.rules.tolerance);
        (self.objective, self.violation) = (objective, violation);
        let filtered = self.filtered.pop_front() == Some(true);
        let still = self.state.ended(objective, violation) && !rose;
        let twice = std::mem::replace(&mut self.still, still) && still;
        self.ended |= twice && !filtered;
        self.recheck |= twice && filtered;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_believed_of_a_pass_that_leaves_out_nothing() {
        let mut watch = Watch::new(Stopping { tolerance: 1e-3, violation: 0.0, passes: 99 });
        let begun: Vec<u32> = (1..=41).filter(|_| !watch.begin(true)).collect();
        assert_eq!(begun, [1, 2, 4, 8, 16, 32]);
        (1..=40).for_each(|pass| watch.look(100.0 / f64::from(pass), 5.0));
        assert!(!watch.ended && watch.begin(true));
        watch.look(2.4999, 5.0);
        assert!(!watch.ended && watch.begin(true), "it stood still for a moment");
        watch.look(2.4998, 5.0);
        assert!(!watch.ended && !watch.begin(true), "it is looked at without the filter");
        watch.look(2.0, 5.0);
        assert!(!watch.ended && watch.begin(true));
        watch.look(3.0, 5.0);
        assert!(!watch.ended && watch.begin(true), "it rose");
        watch.look(2.9999, 5.0);
        watch.look(2.9998, 5.0);
        assert!(!watch.ended && !watch.begin(true), "again");
        watch.look(2.9997, 4.0);
        assert!(watch.ended && watch.violation == 4.0);
    }

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
