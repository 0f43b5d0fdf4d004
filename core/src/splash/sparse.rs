//! A shared sparse array in a replica: a hash map of the numbers that were ever changed, under one scale.

use super::scale_may_stay;
use hashbrown::HashMap;

/// At most how many rows the indices are cut into; a row travels when one of its numbers was changed.
const ROWS_MAX: u64 = 1 << 12;

/// A shared sparse array in a replica.
#[derive(Debug, Clone)]
pub struct SparseState {
    len: u64,
    /// What it holds, in units of `scale`.
    values: HashMap<u64, f32>,
    scale: f64,
    /// `T`: what has come of delayed adds, in units of `scale`.
    executed: HashMap<u64, f32>,
    /// What the numbers that were touched since the last synchronisation held there, in units of `base_scale`.
    base: HashMap<u64, f32>,
    base_scale: f64,
    /// The whole of what it held there; kept only once a scale was multiplied into the values.
    folded: Option<HashMap<u64, f32>>,
    /// `Γ`: the product of the multiplications since the last synchronisation.
    gamma: f64,
}

impl SparseState {
    pub(super) fn new(len: u64) -> Self {
        Self {
            len,
            values: HashMap::new(),
            scale: 1.0,
            executed: HashMap::new(),
            base: HashMap::new(),
            base_scale: 1.0,
            folded: None,
            gamma: 1.0,
        }
    }

    /// Its indices are below this.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has no index.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many rows its indices are cut into, and how many indices each has.
    #[must_use]
    pub fn shape(&self) -> (u64, u64) {
        let width = self.len.div_ceil(ROWS_MAX).max(1);
        (self.len.div_ceil(width), width)
    }

    #[inline]
    pub(super) fn get(&self, index: u64) -> f32 {
        self.check(index);
        self.values.get(&index).map_or(0.0, |value| value * self.scale as f32)
    }

    #[inline]
    pub(super) fn add(&mut self, index: u64, delta: f32) {
        self.check(index);
        let value = self.values.entry(index).or_insert(0.0);
        if self.folded.is_none() {
            self.base.entry(index).or_insert(*value);
        }
        *value += (f64::from(delta) / self.scale) as f32;
    }

    pub(super) fn execute(&mut self, index: u64, delta: f32) {
        self.add(index, delta);
        *self.executed.entry(index).or_insert(0.0) += (f64::from(delta) / self.scale) as f32;
    }

    #[inline]
    fn check(&self, index: u64) {
        assert!(index < self.len, "index {index} of a sparse array of {}", self.len);
    }

    pub(super) fn multiply(&mut self, factor: f64) {
        self.gamma *= factor;
        self.scale *= factor;
        if !scale_may_stay(self.scale) {
            self.fold();
        }
    }

    #[cold]
    fn fold(&mut self) {
        if self.folded.is_none() {
            self.folded = Some(self.before());
        }
        let numbers = self.values.values_mut().chain(self.executed.values_mut());
        numbers.for_each(|number| *number = (f64::from(*number) * self.scale) as f32);
        self.scale = 1.0;
    }

    /// What it held at the last synchronisation, in units of `base_scale`.
    fn before(&self) -> HashMap<u64, f32> {
        self.folded.clone().unwrap_or_else(|| {
            let mut before = self.values.clone();
            before.extend(&self.base);
            before
        })
    }

    pub(super) fn entries(&self) -> Vec<(u64, f32)> {
        let mut entries: Vec<_> =
            self.values.iter().map(|(&index, value)| (index, value * self.scale as f32)).collect();
        entries.sort_unstable_by_key(|entry| entry.0);
        entries
    }

    pub(super) fn is_finite(&self) -> bool {
        self.scale.is_finite() && self.values.values().all(|value| value.is_finite())
    }

    pub(super) fn settle(&mut self) {
        self.base_scale = self.scale;
        self.begin();
    }

    pub(super) fn revert(&mut self) {
        self.values = self.before();
        self.scale = self.base_scale;
        self.begin();
    }

    fn begin(&mut self) {
        self.gamma = 1.0;
        self.folded = None;
        self.base.clear();
        self.executed.clear();
    }
}

/// What an engine does with a sparse array of a replica.
impl SparseState {
    /// `Γ` of this replica.
    #[must_use]
    pub fn gamma(&self) -> f64 {
        self.gamma
    }

    /// What this replica, one of `m`, adds by formula (9), `Δ/m + T`, in units of `unit`: indices, ascending, and numbers.
    #[must_use]
    pub fn contribution(&self, m: u32, unit: f64) -> Vec<(u64, f32)> {
        let m = f64::from(m);
        let (before, base_scale) = match &self.folded {
            Some(before) => (before, self.gamma * self.base_scale / unit),
            None => (&self.base, self.scale / unit),
        };
        let number = |map: &HashMap<u64, f32>, index| f64::from(map.get(&index).copied().unwrap_or(0.0));
        let touched = if self.folded.is_some() { self.values.keys() } else { self.base.keys() };
        let mut contribution: Vec<(u64, f32)> = touched
            .map(|&index| {
                let delayed = self.scale / unit * number(&self.executed, index);
                let value = self.scale / unit * number(&self.values, index);
                let delta = value - delayed - base_scale * number(before, index);
                (index, (delta / m + delayed) as f32)
            })
            .filter(|(_, number)| *number != 0.0)
            .collect();
        contribution.sort_unstable_by_key(|entry| entry.0);
        contribution
    }

    /// The units of what it held at the last synchronisation.
    #[must_use]
    pub fn base_scale(&self) -> f64 {
        self.base_scale
    }

    /// What it held at the last synchronisation, ascending by index, in units of [`SparseState::base_scale`].
    #[must_use]
    pub fn base(&self) -> Vec<(u64, f32)> {
        let mut base: Vec<_> = self.before().into_iter().filter(|(_, number)| *number != 0.0).collect();
        base.sort_unstable_by_key(|entry| entry.0);
        base
    }

    /// Sets its numbers to what a synchronisation made of them, in units of `unit`.
    pub fn set(&mut self, numbers: impl IntoIterator<Item = (u64, f32)>, unit: f64) {
        self.values.clear();
        self.values.extend(numbers);
        self.scale = unit;
        self.settle();
    }
}
