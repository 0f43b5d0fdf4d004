//! A shared number in a replica, and formula (9) for it.

/// A shared number in a replica.
#[derive(Debug, Clone, Copy)]
pub struct ScalarState {
    value: f64,
    /// What it was at the last synchronisation.
    base: f64,
    gamma: f64,
    /// `T`: what has come of delayed adds.
    executed: f64,
}

/// What workers did to a number since the last synchronisation: `Γ`, `Δ` and `T`, of one worker or added up over many.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ScalarChange {
    /// The product of the multiplications.
    pub gamma: f64,
    /// What comes of adds.
    pub delta: f64,
    /// What comes of delayed adds that were declared before.
    pub delayed: f64,
}

impl ScalarState {
    pub(super) fn new(value: f64) -> Self {
        Self { value, base: value, gamma: 1.0, executed: 0.0 }
    }

    #[inline]
    pub(super) fn get(&self) -> f64 {
        self.value
    }

    #[inline]
    pub(super) fn add(&mut self, delta: f64) {
        self.value += delta;
    }

    #[inline]
    pub(super) fn execute(&mut self, delta: f64) {
        self.value += delta;
        self.executed += delta;
    }

    #[inline]
    pub(super) fn multiply(&mut self, factor: f64) {
        self.value *= factor;
        self.gamma *= factor;
        self.executed *= factor;
    }

    pub(super) fn is_finite(&self) -> bool {
        self.value.is_finite()
    }

    pub(super) fn settle(&mut self) {
        *self = Self::new(self.value);
    }

    pub(super) fn revert(&mut self) {
        *self = Self::new(self.base);
    }

    /// What it holds.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.value
    }

    /// What this replica did to it.
    #[must_use]
    pub fn change(&self) -> ScalarChange {
        let delta = self.value - self.executed - self.gamma * self.base;
        ScalarChange { gamma: self.gamma, delta, delayed: self.executed }
    }

    /// Sets it to what formula (9) makes of the changes of `m` workers, added up.
    pub fn combine(&mut self, sum: &ScalarChange, m: u32) {
        let m = f64::from(m);
        *self = Self::new(sum.gamma / m * self.base + sum.delta / m + sum.delayed);
    }

    /// Sets it to a number that is known everywhere.
    pub fn set(&mut self, value: f64) {
        *self = Self::new(value);
    }
}
