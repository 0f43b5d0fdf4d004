//! A shared array in a replica: one scale for all its numbers, so that multiplying it takes the same time however long
//! it is, and what it held at the last synchronisation, so that what was touched can be found.

use super::lines::Lines;
use super::scale_may_stay;

/// How many numbers of an array without rows of its own travel together.
pub(super) const WIDTH: usize = 32;
const LANES: usize = 16;

/// A shared array in a replica.
#[derive(Debug, Clone)]
pub struct Dense {
    rows: usize,
    width: usize,
    len: usize,
    /// What it holds, in units of `scale`.
    values: Lines,
    scale: f64,
    inverse: f64,
    /// `T`: what has come of delayed adds, in units of `scale`. Empty while there were none.
    executed: Vec<f32>,
    /// What it held at the last synchronisation, in units of `base_scale`.
    base: Vec<f32>,
    base_scale: f64,
    /// `Γ`: the product of the multiplications since the last synchronisation.
    gamma: f64,
    /// Whether a scale was multiplied into the values since then, so that they cannot be compared with the base.
    folded: bool,
    course: Option<Course>,
}

/// What synchronisations made of an array, one after the other.
#[derive(Debug, Clone, Default)]
struct Course {
    /// Which part of a movement goes on.
    momentum: f64,
    /// By how much the last synchronisation moved it. Zero after the first: the way from where the array began says
    /// nothing of the way on.
    moved: Vec<f32>,
    /// The mean over synchronisations, that of number `k` with a weight of about `k³`.
    mean: Vec<f32>,
    count: u32,
}

impl Course {
    /// Takes note of a synchronisation that made `new` of `old`, each in its units.
    fn note(&mut self, (new, new_unit): (&[f32], f64), (old, old_unit): (&[f32], f64)) {
        self.count += 1;
        let share = 4.0 / (f64::from(self.count) + 3.0);
        let known = f64::from(u8::from(self.count > 1));
        self.moved.resize(new.len(), 0.0);
        self.mean.resize(new.len(), 0.0);
        for (((moved, mean), &new), &old) in self.moved.iter_mut().zip(&mut self.mean).zip(new).zip(old) {
            let (new, old) = (f64::from(new) * new_unit, f64::from(old) * old_unit);
            *moved = ((new - old) * known) as f32;
            *mean += ((new - f64::from(*mean)) * share) as f32;
        }
    }
}

impl Dense {
    pub(super) fn new(rows: usize, width: usize, len: usize) -> Self {
        let values = Lines::zeros(rows * width);
        let base = values.to_vec();
        let (scale, inverse, base_scale, gamma) = (1.0, 1.0, 1.0, 1.0);
        let (executed, folded, course) = (Vec::new(), false, None);
        Self { rows, width, len, values, scale, inverse, executed, base, base_scale, gamma, folded, course }
    }

    /// How many numbers it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many rows travel apart from one another, and how many numbers each has.
    #[must_use]
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.width)
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> f32 {
        self.values[..self.len][index] * self.scale as f32
    }

    #[inline]
    pub(super) fn add(&mut self, index: usize, delta: f32) {
        self.values[..self.len][index] += delta * self.inverse as f32;
    }

    #[inline]
    pub(super) fn execute(&mut self, index: usize, delta: f32) {
        if self.executed.is_empty() {
            self.executed = vec![0.0; self.values.len()];
        }
        let delta = delta * self.inverse as f32;
        self.values[..self.len][index] += delta;
        self.executed[index] += delta;
    }

    #[inline]
    pub(super) fn multiply(&mut self, factor: f64) {
        self.gamma *= factor;
        self.scale *= factor;
        if scale_may_stay(self.scale) {
            self.inverse = 1.0 / self.scale;
        } else {
            self.fold();
        }
    }

    pub(super) fn smooth(&mut self, momentum: f64) {
        self.course = Some(Course { momentum, ..Course::default() });
    }

    /// Adds what momentum says.
    pub(super) fn go_on(&mut self) {
        if let Some(Course { momentum, moved, .. }) = &self.course {
            let factor = (momentum * self.inverse) as f32;
            self.values.iter_mut().zip(moved).for_each(|(value, moved)| *value += factor * moved);
        }
    }

    /// The mean over synchronisations, if there were some and it is kept.
    pub(super) fn mean(&self) -> Option<&[f32]> {
        self.course.as_ref()?.mean.get(..self.len)
    }

    /// Multiplies the scale into the numbers.
    #[cold]
    fn fold(&mut self) {
        let scale = self.scale;
        let numbers = self.values.iter_mut().chain(&mut self.executed);
        numbers.for_each(|number| *number = (f64::from(*number) * scale) as f32);
        (self.scale, self.inverse, self.folded) = (1.0, 1.0, true);
    }

    #[inline]
    pub(super) fn dot(&self, start: usize, x: &[f32]) -> f32 {
        dot(&self.values[..self.len][start..start + x.len()], x) * self.scale as f32
    }

    #[inline]
    pub(super) fn add_scaled(&mut self, start: usize, factor: f32, x: &[f32]) {
        let factor = (f64::from(factor) * self.inverse) as f32;
        let values = &mut self.values[..self.len][start..start + x.len()];
        values.iter_mut().zip(x).for_each(|(value, x)| *value += factor * x);
    }

    #[inline]
    pub(super) fn dot_sparse(&self, start: usize, indices: &[u32], x: &[f32]) -> f32 {
        let values = &self.values[start..self.len];
        let sum: f32 = indices.iter().zip(x).map(|(&index, x)| values[index as usize] * x).sum();
        sum * self.scale as f32
    }

    #[inline]
    pub(super) fn add_scaled_sparse(&mut self, start: usize, factor: f32, indices: &[u32], x: &[f32]) {
        let factor = (f64::from(factor) * self.inverse) as f32;
        let values = &mut self.values[start..self.len];
        indices.iter().zip(x).for_each(|(&index, x)| values[index as usize] += factor * x);
    }

    #[inline]
    pub(super) fn read(&self, start: usize, out: &mut [f32]) {
        let values = &self.values[..self.len][start..start + out.len()];
        if self.scale == 1.0 {
            out.copy_from_slice(values);
        } else {
            let scale = self.scale as f32;
            out.iter_mut().zip(values).for_each(|(out, value)| *out = scale * value);
        }
    }

    #[inline]
    pub(super) fn edit(&mut self) -> &mut [f32] {
        if self.scale != 1.0 {
            self.fold();
        }
        &mut self.values[..self.len]
    }

    pub(super) fn is_finite(&self) -> bool {
        // The exponent of what is not finite is all ones; a maximum is found many numbers at a time.
        let largest = |numbers: &[f32]| numbers.iter().map(|x| x.to_bits() & 0x7fff_ffff).max().unwrap_or(0);
        self.scale.is_finite() && largest(&self.values) < f32::INFINITY.to_bits()
    }

    pub(super) fn settle(&mut self) {
        self.base.copy_from_slice(&self.values);
        self.base_scale = self.scale;
        self.begin();
    }

    pub(super) fn revert(&mut self) {
        self.values.copy_from_slice(&self.base);
        self.scale = self.base_scale;
        self.begin();
    }

    fn begin(&mut self) {
        self.inverse = 1.0 / self.scale;
        self.gamma = 1.0;
        self.folded = false;
        self.executed.fill(0.0);
    }
}

/// What an engine does with an array of a replica.
impl Dense {
    /// `Γ` of this replica.
    #[must_use]
    pub fn gamma(&self) -> f64 {
        self.gamma
    }

    /// The rows that this replica touched.
    pub fn touched(&self) -> impl Iterator<Item = usize> + '_ {
        let span = |row: usize| row * self.width..(row + 1) * self.width;
        let delayed = move |row| self.executed.get(span(row)).is_some_and(|row| row.iter().any(|x| *x != 0.0));
        let differs = move |row| self.values[span(row)] != self.base[span(row)];
        (0..self.rows).filter(move |&row| self.folded || differs(row) || delayed(row))
    }

    /// Appends what this replica, one of `m`, adds to a row by formula (9), `Δ/m + T`, in units of `unit`.
    pub fn contribute(&self, row: usize, m: u32, unit: f64, out: &mut Vec<f32>) {
        let m = f64::from(m);
        let base_scale = if self.folded { self.gamma * self.base_scale } else { self.scale };
        let (scale, base_scale) = (self.scale / unit, base_scale / unit);
        let span = row * self.width..(row + 1) * self.width;
        let pairs = self.values[span.clone()].iter().zip(&self.base[span.clone()]);
        let mut executed = self.executed.get(span).unwrap_or_default().iter();
        out.extend(pairs.map(|(&value, &base)| {
            let delayed = scale * f64::from(executed.next().copied().unwrap_or(0.0));
            let delta = scale * f64::from(value) - delayed - base_scale * f64::from(base);
            (delta / m + delayed) as f32
        }));
    }

    /// What it held at the last synchronisation, in units of [`Dense::base_scale`].
    #[must_use]
    pub fn base(&self) -> &[f32] {
        &self.base
    }

    /// The units of [`Dense::base`].
    #[must_use]
    pub fn base_scale(&self) -> f64 {
        self.base_scale
    }

    /// Sets the numbers of all rows to what a synchronisation made of them, in units of `unit`.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn set(&mut self, numbers: &[f32], unit: f64) {
        if let Some(course) = &mut self.course {
            course.note((numbers, unit), (&self.base, self.base_scale));
        }
        self.values.copy_from_slice(numbers);
        self.scale = unit;
        self.settle();
    }
}

/// The inner product of two slices of the same length, in sixteen sums.
#[must_use]
#[inline(always)]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0.0f32; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}
