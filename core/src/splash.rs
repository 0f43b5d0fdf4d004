//! The variables of a Splash algorithm: shared ones that are changed by operators, and how changes are combined.
//!
//! A worker has a replica of all shared variables ([`Shared`]) and changes it by three operators: `add`, `delayed_add`
//! and `multiply`. All are linear, so what a worker did to a variable since the last synchronisation is
//! `v ← Γ·v + Δ + T`: `Γ` the product of its multiplications, `Δ` what comes of its adds, `T` what comes of delayed adds
//! that were declared before. Of `m` workers that each took their elements `m`-fold, formula (9) of the paper makes
//!
//! `v_new = 1/m Σ (Γ_i·v_old + Δ_i) + Σ T_i`.
//!
//! `Γ`, `Δ` and `T` are not built up operator by operator as in appendix A: a replica is changed in place, `Γ` of an array
//! is one number, `T` is kept beside the values once there are delayed adds, and `Δ` is what is left when the two are
//! taken away. So an operator costs what it costs a plain program, and what is untouched is found, not tracked.

pub mod degree;
mod delayed;
mod dense;
mod lines;
mod scalar;
mod sparse;

pub use delayed::{Delayed, DelayedAdd};
pub use dense::{Dense, dot};
pub use scalar::{ScalarChange, ScalarState};
pub use sparse::SparseState;

use std::ops::Range;

/// A shared number, by handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scalar(u32);

/// A shared array that holds a number for every index, by handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Array(u32);

/// A shared array that holds the indices that were ever changed, by handle; the others are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sparse(u32);

/// One number of an [`Array`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrayPlace(Array, usize);

/// One number of a [`Sparse`] array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SparsePlace(Sparse, u64);

impl Array {
    /// The number at `index`.
    #[must_use]
    #[inline]
    pub fn at(self, index: usize) -> ArrayPlace {
        ArrayPlace(self, index)
    }
}

impl Sparse {
    /// The number at `index`.
    #[must_use]
    #[inline]
    pub fn at(self, index: u64) -> SparsePlace {
        SparsePlace(self, index)
    }
}

/// A place that holds one number: a [`Scalar`], or an array's `at(index)`.
pub trait Place: Copy {
    /// `f64` for scalars, which also count samples; `f32` in arrays.
    type Number: Copy + Into<f64>;
    /// What it holds.
    fn get(self, shared: &Shared) -> Self::Number;
    /// Adds to it.
    fn add(self, shared: &mut Shared, delta: Self::Number);
    /// Carries out a delayed add.
    fn execute(self, shared: &mut Shared, delta: Self::Number);
    /// The delayed add of `delta`, as it is kept.
    fn delay(self, delta: Self::Number) -> DelayedAdd;
}

/// A whole variable, which can be multiplied.
pub trait Variable: Copy {
    /// Multiplies every number of it.
    fn multiply(self, shared: &mut Shared, factor: f64);
}

/// A replica of the shared variables of an algorithm.
///
/// ```
/// use hemiola_core::splash::Shared;
///
/// let mut shared = Shared::default();
/// let (t, w) = (shared.scalar("t", 0.0), shared.array("w", 1000));
/// shared.add(t, 1.0);
/// shared.add(w.at(7), 0.5);
/// shared.multiply(w, 0.5);
/// assert_eq!((shared.get(t), shared.get(w.at(7)), shared.get(w.at(8))), (1.0, 0.25, 0.0));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Shared {
    names: Vec<String>,
    scalars: Vec<(u32, ScalarState)>,
    arrays: Vec<(u32, Dense)>,
    sparse: Vec<(u32, SparseState)>,
    declared: Vec<DelayedAdd>,
}

impl Shared {
    /// Declares a number.
    pub fn scalar(&mut self, name: &str, value: f64) -> Scalar {
        let name = self.name(name);
        self.scalars.push((name, ScalarState::new(value)));
        Scalar(self.scalars.len() as u32 - 1)
    }

    /// Declares an array of `len` zeros.
    pub fn array(&mut self, name: &str, len: usize) -> Array {
        self.matrix(name, len.div_ceil(dense::WIDTH), dense::WIDTH.min(len), len)
    }

    /// Declares an array of `rows` times `width` zeros whose numbers are used row by row: where one number of a row was
    /// changed, the row travels.
    pub fn rows(&mut self, name: &str, rows: usize, width: usize) -> Array {
        self.matrix(name, rows, width, rows * width)
    }

    fn matrix(&mut self, name: &str, rows: usize, width: usize, len: usize) -> Array {
        let name = self.name(name);
        self.arrays.push((name, Dense::new(rows, width, len)));
        Array(self.arrays.len() as u32 - 1)
    }

    /// Declares a sparse array with indices below `len`.
    pub fn sparse(&mut self, name: &str, len: u64) -> Sparse {
        let name = self.name(name);
        self.sparse.push((name, SparseState::new(len)));
        Sparse(self.sparse.len() as u32 - 1)
    }

    fn name(&mut self, name: &str) -> u32 {
        self.names.push(name.to_owned());
        self.names.len() as u32 - 1
    }

    /// What a place holds.
    #[must_use]
    #[inline]
    pub fn get<P: Place>(&self, place: P) -> P::Number {
        place.get(self)
    }

    /// Adds `delta` to a place.
    #[inline]
    pub fn add<P: Place>(&mut self, place: P, delta: P::Number) {
        place.add(self, delta);
    }

    /// Adds `delta` to a place when the same element is processed the next time, before it is.
    #[inline]
    pub fn delayed_add<P: Place>(&mut self, place: P, delta: P::Number) {
        self.declared.push(place.delay(delta));
    }

    /// Multiplies a whole variable by `factor`, however large it is in the same time.
    #[inline]
    pub fn multiply<V: Variable>(&mut self, variable: V, factor: f64) {
        variable.multiply(self, factor);
    }

    /// Smooths the course that an array takes over synchronisations. Before it processes elements, each of several replicas
    /// adds a part `momentum` of what the last synchronisation changed: where they go the same way every time they get
    /// there sooner, and where they only scatter it adds nothing (block momentum, Chen and Huo). And the mean of what
    /// synchronisations made is kept, for [`Shared::mean`]. One replica is not smoothed: it runs the plain algorithm. What
    /// momentum adds travels, so that rows go on travelling for a while after they were last touched.
    pub fn smooth(&mut self, array: Array, momentum: f64) {
        self.dense_mut(array).smooth(momentum);
    }

    /// The mean of an array over synchronisations, late ones counting most, if it is smoothed; what it holds otherwise and
    /// where there was no other replica.
    #[must_use]
    pub fn mean(&self, array: Array) -> Vec<f32> {
        self.dense(array).mean().map_or_else(|| self.to_vec(array), <[f32]>::to_vec)
    }

    /// How many numbers an array has.
    #[must_use]
    pub fn len(&self, array: Array) -> usize {
        self.dense(array).len()
    }

    /// The inner product of `x` with as many numbers of an array from `start` on.
    #[must_use]
    #[inline]
    pub fn dot(&self, array: Array, start: usize, x: &[f32]) -> f32 {
        self.dense(array).dot(start, x)
    }

    /// Adds `factor · x` to as many numbers of an array from `start` on.
    #[inline]
    pub fn add_scaled(&mut self, array: Array, start: usize, factor: f32, x: &[f32]) {
        self.dense_mut(array).add_scaled(start, factor, x);
    }

    /// The inner product of a sparse vector with the numbers of an array from `start` on.
    #[must_use]
    #[inline]
    pub fn dot_sparse(&self, array: Array, start: usize, indices: &[u32], x: &[f32]) -> f32 {
        self.dense(array).dot_sparse(start, indices, x)
    }

    /// Adds `factor` times a sparse vector to the numbers of an array from `start` on.
    #[inline]
    pub fn add_scaled_sparse(&mut self, array: Array, start: usize, factor: f32, indices: &[u32], x: &[f32]) {
        self.dense_mut(array).add_scaled_sparse(start, factor, indices, x);
    }

    /// Copies numbers of an array, as many as `out` takes from `start` on.
    #[inline]
    pub fn read(&self, array: Array, start: usize, out: &mut [f32]) {
        self.dense(array).read(start, out);
    }

    /// The numbers of an array, to change in place: whatever is changed counts as added. After a multiplication this
    /// takes time in proportion to the array once.
    #[inline]
    pub fn edit(&mut self, array: Array) -> &mut [f32] {
        self.dense_mut(array).edit()
    }

    /// The numbers of several arrays, to change in place as by [`Shared::edit`].
    ///
    /// # Panics
    /// If an array is named twice.
    #[inline]
    pub fn edit_each<const N: usize>(&mut self, arrays: [Array; N]) -> [&mut [f32]; N] {
        let arrays = self.arrays.get_disjoint_mut(arrays.map(|array| array.0 as usize));
        arrays.expect("different arrays of these variables").map(|(_, array)| array.edit())
    }

    /// The numbers of an array, all of them.
    #[must_use]
    pub fn to_vec(&self, array: Array) -> Vec<f32> {
        let mut numbers = vec![0.0; self.len(array)];
        self.read(array, 0, &mut numbers);
        numbers
    }

    /// The indices of a sparse array that were ever changed, ascending, and their numbers.
    #[must_use]
    pub fn entries(&self, array: Sparse) -> Vec<(u64, f32)> {
        self.sparse[array.0 as usize].1.entries()
    }

    #[inline]
    fn dense(&self, array: Array) -> &Dense {
        &self.arrays[array.0 as usize].1
    }

    #[inline]
    fn dense_mut(&mut self, array: Array) -> &mut Dense {
        &mut self.arrays[array.0 as usize].1
    }
}

/// What an engine does with a replica.
impl Shared {
    /// The names of all variables, in the order of their declarations.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The scalars with their names.
    pub fn scalars(&self) -> impl ExactSizeIterator<Item = (&str, &ScalarState)> {
        self.scalars.iter().map(|(name, state)| (self.names[*name as usize].as_str(), state))
    }

    /// The arrays with their names.
    pub fn arrays(&self) -> impl ExactSizeIterator<Item = (&str, &Dense)> {
        self.arrays.iter().map(|(name, state)| (self.names[*name as usize].as_str(), state))
    }

    /// The sparse arrays with their names.
    pub fn sparse_arrays(&self) -> impl ExactSizeIterator<Item = (&str, &SparseState)> {
        self.sparse.iter().map(|(name, state)| (self.names[*name as usize].as_str(), state))
    }

    /// The scalars, to change.
    pub fn scalars_mut(&mut self) -> impl ExactSizeIterator<Item = &mut ScalarState> {
        self.scalars.iter_mut().map(|(_, state)| state)
    }

    /// The arrays, to change.
    pub fn arrays_mut(&mut self) -> impl ExactSizeIterator<Item = &mut Dense> {
        self.arrays.iter_mut().map(|(_, state)| state)
    }

    /// The sparse arrays, to change.
    pub fn sparse_arrays_mut(&mut self) -> impl ExactSizeIterator<Item = &mut SparseState> {
        self.sparse.iter_mut().map(|(_, state)| state)
    }

    /// The delayed adds that were declared and not taken yet.
    #[inline]
    pub fn declared(&mut self) -> &mut Vec<DelayedAdd> {
        &mut self.declared
    }

    /// Carries out delayed adds that were declared before the last synchronisation.
    pub fn execute(&mut self, adds: &[DelayedAdd]) {
        for add in adds {
            match *add {
                DelayedAdd::Scalar(scalar, delta) => scalar.execute(self, delta),
                DelayedAdd::Array(place, delta) => place.execute(self, delta),
                DelayedAdd::Sparse(place, delta) => place.execute(self, delta),
            }
        }
    }

    /// Lets smoothed arrays go on, in one of several replicas: what it does first after a synchronisation.
    pub fn go_on(&mut self) {
        self.arrays_mut().for_each(Dense::go_on);
    }

    /// A variable that this replica made infinite or not a number since the last synchronisation.
    #[must_use]
    pub fn broken(&self) -> Option<&str> {
        let scalars = self.scalars().filter(|(_, state)| !state.is_finite()).map(|(name, _)| name);
        let arrays = self.arrays().filter(|(_, state)| !state.is_finite()).map(|(name, _)| name);
        let sparse = self.sparse_arrays().filter(|(_, state)| !state.is_finite()).map(|(name, _)| name);
        scalars.chain(arrays).chain(sparse).next()
    }

    /// What all variables hold, as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.scalars.iter().for_each(|(_, scalar)| bytes.extend(scalar.get().to_le_bytes()));
        for array in 0..self.arrays.len() as u32 {
            self.to_vec(Array(array)).iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        }
        for (_, array) in &self.sparse {
            let entries = array.entries();
            bytes.extend((entries.len() as u64).to_le_bytes());
            for (index, number) in entries {
                bytes.extend(index.to_le_bytes());
                bytes.extend(number.to_le_bytes());
            }
        }
        bytes
    }

    /// Sets all variables to what [`Shared::to_bytes`] of the same declarations wrote. Says whether the bytes were that.
    #[must_use]
    pub fn set_from_bytes(&mut self, mut bytes: &[u8]) -> bool {
        fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
            let (first, rest) = bytes.split_first_chunk()?;
            *bytes = rest;
            Some(*first)
        }
        let mut read = || {
            for (_, scalar) in &mut self.scalars {
                scalar.set(f64::from_le_bytes(take(&mut bytes)?));
            }
            for (_, array) in &mut self.arrays {
                for number in array.edit() {
                    *number = f32::from_le_bytes(take(&mut bytes)?);
                }
            }
            for (_, array) in &mut self.sparse {
                let count = u64::from_le_bytes(take(&mut bytes)?);
                let entry = |_| Some((u64::from_le_bytes(take(&mut bytes)?), f32::from_le_bytes(take(&mut bytes)?)));
                let entries: Vec<(u64, f32)> = (0..count).map(entry).collect::<Option<_>>()?;
                let len = array.len();
                array.set(entries.into_iter().filter(|entry| entry.0 < len), 1.0);
            }
            Some(())
        };
        let read = read().is_some() && bytes.is_empty();
        self.settle();
        read
    }

    /// Takes what the replica holds for what was synchronised: so it is where there is nobody to synchronise with.
    pub fn settle(&mut self) {
        self.scalars_mut().for_each(ScalarState::settle);
        self.arrays_mut().for_each(Dense::settle);
        self.sparse_arrays_mut().for_each(SparseState::settle);
    }

    /// Forgets everything that was done since the last synchronisation.
    pub fn revert(&mut self) {
        self.declared.clear();
        self.scalars_mut().for_each(ScalarState::revert);
        self.arrays_mut().for_each(Dense::revert);
        self.sparse_arrays_mut().for_each(SparseState::revert);
    }
}

impl Place for Scalar {
    type Number = f64;

    #[inline]
    fn get(self, shared: &Shared) -> f64 {
        shared.scalars[self.0 as usize].1.get()
    }

    #[inline]
    fn add(self, shared: &mut Shared, delta: f64) {
        shared.scalars[self.0 as usize].1.add(delta);
    }

    fn execute(self, shared: &mut Shared, delta: f64) {
        shared.scalars[self.0 as usize].1.execute(delta);
    }

    fn delay(self, delta: f64) -> DelayedAdd {
        DelayedAdd::Scalar(self, delta)
    }
}

impl Place for ArrayPlace {
    type Number = f32;

    #[inline]
    fn get(self, shared: &Shared) -> f32 {
        shared.dense(self.0).get(self.1)
    }

    #[inline]
    fn add(self, shared: &mut Shared, delta: f32) {
        shared.dense_mut(self.0).add(self.1, delta);
    }

    fn execute(self, shared: &mut Shared, delta: f32) {
        shared.dense_mut(self.0).execute(self.1, delta);
    }

    fn delay(self, delta: f32) -> DelayedAdd {
        DelayedAdd::Array(self, delta)
    }
}

impl Place for SparsePlace {
    type Number = f32;

    #[inline]
    fn get(self, shared: &Shared) -> f32 {
        shared.sparse[self.0.0 as usize].1.get(self.1)
    }

    #[inline]
    fn add(self, shared: &mut Shared, delta: f32) {
        shared.sparse[self.0.0 as usize].1.add(self.1, delta);
    }

    fn execute(self, shared: &mut Shared, delta: f32) {
        shared.sparse[self.0.0 as usize].1.execute(self.1, delta);
    }

    fn delay(self, delta: f32) -> DelayedAdd {
        DelayedAdd::Sparse(self, delta)
    }
}

impl Variable for Scalar {
    #[inline]
    fn multiply(self, shared: &mut Shared, factor: f64) {
        shared.scalars[self.0 as usize].1.multiply(factor);
    }
}

impl Variable for Array {
    #[inline]
    fn multiply(self, shared: &mut Shared, factor: f64) {
        shared.dense_mut(self).multiply(factor);
    }
}

impl Variable for Sparse {
    #[inline]
    fn multiply(self, shared: &mut Shared, factor: f64) {
        shared.sparse[self.0 as usize].1.multiply(factor);
    }
}

/// What a replica of an array holds is `scale` times what is stored. Outside these bounds the scale is multiplied into
/// what is stored, so that neither leaves the range of its type however often the array is multiplied.
const SCALE: Range<f64> = 2.328_306_436_538_696_3e-10..4_294_967_296.0;

/// Whether a scale may stay beside the numbers.
#[must_use]
pub fn scale_may_stay(scale: f64) -> bool {
    SCALE.contains(&scale.abs())
}
