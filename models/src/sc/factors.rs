//! What patches say of a dictionary: the factors of its gradient, and the step back to where it may be.

use super::codes::Coder;
use crate::matrix::Matrix;

/// What a dictionary makes of patches, summed over them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// `‖Wa − x‖²`.
    pub lost: f64,
    /// `‖a‖₁`.
    pub active: f64,
    /// Codes that are not zero.
    pub nonzeros: u64,
    /// `‖x‖²`.
    pub energy: f64,
    /// Coordinates of codes that were moved on the way to them.
    pub moves: u64,
}

impl Sums {
    /// `½‖Wa − x‖² + λ‖a‖₁`.
    #[must_use]
    pub fn objective(&self, sparsity: f32) -> f64 {
        0.5 * self.lost + f64::from(sparsity) * self.active
    }

    /// Adds those of other patches.
    pub fn add(&mut self, other: Self) {
        self.lost += other.lost;
        self.active += other.active;
        self.nonzeros += other.nonzeros;
        self.energy += other.energy;
        self.moves += other.moves;
    }
}

/// Factors of a gradient: the sum of the outer products of each `u` with its `v`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Factors {
    /// What is wrong with each patch, one after the other.
    pub us: Vec<f32>,
    /// The code of each patch, one after the other.
    pub vs: Vec<f32>,
    /// What the dictionary makes of the patches.
    pub sums: Sums,
}

/// The factors of patches of `size` numbers, which lie one after the other as the atoms do.
///
/// # Panics
/// If the shapes do not fit.
#[must_use]
pub fn factors(coder: &Coder<'_>, atoms: &[f32], size: usize, patches: &[f32]) -> Factors {
    let (vs, moves) = coder.codes(patches);
    let mut us: Vec<f32> = patches.iter().map(|number| -number).collect();
    Matrix::rows_of(&vs, atoms.len() / size).times(Matrix::rows_of(atoms, size), 1.0, &mut us);
    let squares = |numbers: &[f32]| numbers.iter().map(|number| f64::from(number * number)).sum();
    let sums = Sums {
        lost: squares(&us),
        active: vs.iter().map(|number| f64::from(number.abs())).sum(),
        nonzeros: vs.iter().filter(|number| **number != 0.0).count() as u64,
        energy: squares(patches),
        moves,
    };
    Factors { us, vs, sums }
}

impl Factors {
    /// Moves atoms against the gradient, each by its own rate times it.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn apply(&mut self, atoms: &mut [f32], size: usize, rates: &[f32]) {
        for code in self.vs.chunks_exact_mut(rates.len()) {
            code.iter_mut().zip(rates).for_each(|(number, rate)| *number *= -rate);
        }
        let codes = Matrix::rows_of(&self.vs, rates.len()).transposed();
        codes.times(Matrix::rows_of(&self.us, size), 1.0, atoms);
    }
}

/// Makes atoms that are longer than 1 that long: the proximal operator.
pub fn prox(atoms: &mut [f32], size: usize) {
    for atom in atoms.chunks_exact_mut(size) {
        let length = atom.iter().map(|number| number * number).sum::<f32>().sqrt();
        if length > 1.0 {
            atom.iter_mut().for_each(|number| *number /= length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `½‖Wa − x‖²` of a patch with a given code, as the formula is written.
    fn lost(atoms: &[f64], code: &[f32], patch: &[f64]) -> f64 {
        let size = patch.len();
        let put_together =
            |d: usize| atoms.chunks(size).zip(code).map(|(atom, a)| atom[d] * f64::from(*a)).sum::<f64>();
        0.5 * patch.iter().enumerate().map(|(d, x)| (put_together(d) - x).powi(2)).sum::<f64>()
    }

    #[test]
    fn the_factors_are_those_of_finite_differences() {
        let size = 3;
        let mut atoms = vec![0.6, 0.3, -0.5, 0.1, 0.9, 0.2];
        let patches = vec![0.8, -0.1, -0.4, 0.1, 1.2, 0.9];
        let single = |numbers: &[f64]| numbers.iter().map(|number| *number as f32).collect::<Vec<f32>>();
        let start = single(&atoms);
        let mut found = factors(&Coder::new(&start, size, 0.1), &start, size, &single(&patches));
        let codes = found.vs.clone();
        assert!(codes.iter().any(|code| *code != 0.0));
        let total = |atoms: &[f64]| -> f64 {
            patches.chunks(size).zip(codes.chunks(2)).map(|(patch, code)| lost(atoms, code, patch)).sum()
        };
        assert!((0.5 * found.sums.lost - total(&atoms)).abs() < 1e-6);
        let mut moved = start;
        found.apply(&mut moved, size, &[1.0, 0.5]);
        for at in 0..atoms.len() {
            let before = atoms[at];
            let mut near = |change: f64| {
                atoms[at] = before + change;
                total(&atoms)
            };
            let slope = (near(1e-5) - near(-1e-5)) / 2e-5 * if at < size { 1.0 } else { 0.5 };
            near(0.0);
            let step = before - f64::from(moved[at]);
            assert!((step - slope).abs() < 1e-5, "{at}: {step} instead of {slope}");
        }
    }

    #[test]
    fn only_atoms_that_are_too_long_are_shortened() {
        let mut atoms = [3.0, 4.0, 0.3, 0.4];
        prox(&mut atoms, 2);
        assert_eq!(atoms, [0.6, 0.8, 0.3, 0.4]);
    }
}
