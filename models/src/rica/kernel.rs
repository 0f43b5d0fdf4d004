//! The objective of some patches and its gradient, as five products of matrices.

use crate::matrix::Matrix;

/// What filters make of patches, summed over them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// `‖WᵀWx − x‖²`.
    pub lost: f64,
    /// `‖Wx‖₁`.
    pub active: f64,
    /// `‖x‖²`.
    pub energy: f64,
}

impl Sums {
    /// `½‖WᵀWx − x‖² + λ‖Wx‖₁`.
    #[must_use]
    pub fn objective(&self, sparsity: f32) -> f64 {
        0.5 * self.lost + f64::from(sparsity) * self.active
    }
}

/// Room for what is computed on the way.
#[derive(Debug, Default)]
pub struct Scratch {
    /// `Wx` of each patch.
    activity: Vec<f32>,
    /// `WᵀWx − x` of each patch.
    error: Vec<f32>,
    /// `W(WᵀWx − x) + λ sign(Wx)` of each patch.
    pull: Vec<f32>,
}

impl Scratch {
    /// What `filters` make of `patches`, both one after the other with `size` numbers each.
    pub fn judge(&mut self, filters: &[f32], patches: &[f32], size: usize) -> Sums {
        let (w, x) = (Matrix::rows_of(filters, size), Matrix::rows_of(patches, size));
        let count = patches.len() / size;
        self.activity.resize(count * filters.len() / size, 0.0);
        x.times(w.transposed(), 0.0, &mut self.activity);
        self.error.clear();
        self.error.extend(patches.iter().map(|number| -number));
        Matrix::rows_of(&self.activity, filters.len() / size).times(w, 1.0, &mut self.error);
        let squares = |numbers: &[f32]| numbers.iter().map(|number| f64::from(number * number)).sum();
        Sums {
            lost: squares(&self.error),
            active: self.activity.iter().map(|number| f64::from(number.abs())).sum(),
            energy: squares(patches),
        }
    }

    /// As [`Scratch::judge`]; `gradient` becomes that of the mean objective over the patches.
    pub fn gradient(
        &mut self,
        filters: &[f32],
        patches: &[f32],
        size: usize,
        sparsity: f32,
        gradient: &mut Vec<f32>,
    ) -> Sums {
        let sums = self.judge(filters, patches, size);
        let (w, x, r) =
            (Matrix::rows_of(filters, size), Matrix::rows_of(patches, size), Matrix::rows_of(&self.error, size));
        let features = filters.len() / size;
        self.pull.clear();
        // At zero any slope from -λ to λ is one, and zero the smallest.
        let slope = |activity: &f32| if *activity == 0.0 { 0.0 } else { sparsity.copysign(*activity) };
        self.pull.extend(self.activity.iter().map(slope));
        r.times(w.transposed(), 1.0, &mut self.pull);
        gradient.clear();
        gradient.resize(filters.len(), 0.0);
        Matrix::rows_of(&self.pull, features).transposed().times(x, 0.0, gradient);
        Matrix::rows_of(&self.activity, features).transposed().times(r, 1.0, gradient);
        let count = (patches.len() / size) as f32;
        gradient.iter_mut().for_each(|number| *number /= count);
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// The mean objective as the formula is written.
    fn objective(filters: &[Vec<f64>], patches: &[Vec<f64>], sparsity: f64) -> f64 {
        let of = |x: &Vec<f64>| {
            let s: Vec<f64> = filters.iter().map(|w| w.iter().zip(x).map(|(w, x)| w * x).sum()).collect();
            let again = |d: usize| filters.iter().zip(&s).map(|(w, s)| w[d] * s).sum::<f64>();
            let lost: f64 = x.iter().enumerate().map(|(d, x)| (again(d) - x).powi(2)).sum();
            0.5 * lost + sparsity * s.iter().map(|s| s.abs()).sum::<f64>()
        };
        patches.iter().map(of).sum::<f64>() / patches.len() as f64
    }

    #[test]
    fn the_gradient_is_that_of_finite_differences() {
        const SIZE: usize = 5;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(4);
        let mut rows = |count: usize| -> Vec<Vec<f64>> {
            let mut number = || f64::from((random.next_u32() as f32) / (u32::MAX as f32) - 0.5);
            (0..count).map(|_| (0..SIZE).map(|_| number()).collect()).collect()
        };
        let (mut filters, patches, sparsity) = (rows(7), rows(4), 0.3);
        let flat = |rows: &[Vec<f64>]| rows.iter().flatten().map(|number| *number as f32).collect::<Vec<f32>>();
        let mut gradient = Vec::new();
        let sums = Scratch::default().gradient(&flat(&filters), &flat(&patches), SIZE, sparsity as f32, &mut gradient);
        assert!((sums.objective(sparsity as f32) / 4.0 - objective(&filters, &patches, sparsity)).abs() < 1e-6);
        for row in 0..7 {
            for column in 0..SIZE {
                const STEP: f64 = 1e-6;
                let mut at = |change: f64| {
                    filters[row][column] += change;
                    objective(&filters, &patches, sparsity)
                };
                let slope = (at(STEP) - at(-2.0 * STEP)) / (2.0 * STEP);
                at(STEP);
                let found = f64::from(gradient[row * SIZE + column]);
                assert!((found - slope).abs() < 1e-4, "filter {row}, pixel {column}: {found} against {slope}");
            }
        }
    }
}
