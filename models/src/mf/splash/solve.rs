//! The user's side of a factorisation in closed form: the vector that explains a user's ratings best, given the items.
//!
//! With the items' rows `v` held fixed, `Σ (⟨u, v⟩ - r)² + l2 · n · |u|²` over the user's `n` ratings is least where
//! `(Σ v vᵀ + l2 · n · I) u = Σ r v`. The matrix is positive definite, so Cholesky's decomposition solves it.

use crate::matrix::Matrix;

/// What is added to the diagonal at least, as a part of its greatest number, so that rounding leaves it positive.
const RIDGE_MIN: f64 = 1e-6;

/// What is needed to solve for a user, kept from one to the next.
#[derive(Default)]
pub(crate) struct Solver {
    product: Vec<f32>,
    /// The matrix, of which the upper triangle is decomposed, row by row.
    upper: Vec<f64>,
    right: Vec<f64>,
}

impl Solver {
    /// The vector for rows of `width` numbers and what they should give; zeros where there are none.
    pub(crate) fn solve(&mut self, rows: &[f32], targets: &[f32], width: usize, l2: f32) -> &[f64] {
        let Self { product, upper, right } = self;
        right.clear();
        right.resize(width, 0.0);
        if targets.is_empty() {
            return right;
        }
        product.resize(width * width, 0.0);
        let matrix = Matrix::rows_of(rows, width);
        matrix.transposed().times(matrix, 0.0, product);
        for (row, target) in rows.chunks_exact(width).zip(targets) {
            right.iter_mut().zip(row).for_each(|(sum, v)| *sum += f64::from(*v) * f64::from(*target));
        }
        let greatest = (0..width).map(|i| f64::from(product[i * width + i])).fold(f64::MIN_POSITIVE, f64::max);
        let ridge = (f64::from(l2) * targets.len() as f64).max(RIDGE_MIN * greatest);
        upper.clear();
        upper.extend(product.iter().map(|number| f64::from(*number)));
        // Every row is taken off those below it, which are consecutive numbers, so that many go at a time.
        for i in 0..width {
            let (row, below) = upper[i * width..].split_at_mut(width);
            row[i] = (row[i] + ridge).max(ridge * RIDGE_MIN).sqrt();
            let pivot = row[i];
            row[i + 1..].iter_mut().for_each(|number| *number /= pivot);
            for (k, other) in (i + 1..).zip(below.chunks_exact_mut(width)) {
                let factor = row[k];
                other[k..].iter_mut().zip(&row[k..]).for_each(|(number, above)| *number -= factor * above);
            }
            right[i] /= pivot;
            let solved = right[i];
            right[i + 1..].iter_mut().zip(&row[i + 1..]).for_each(|(rest, number)| *rest -= solved * number);
        }
        for (i, row) in upper.chunks_exact(width).enumerate().rev() {
            let known: f64 = row[i + 1..].iter().zip(&right[i + 1..]).map(|(a, b)| a * b).sum();
            right[i] = (right[i] - known) / row[i];
        }
        right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn the_slope_of_the_objective_is_zero_at_the_solution() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
        let mut draw = || (f64::from(random.next_u32()) / f64::from(u32::MAX) * 2.0 - 1.0) as f32;
        let mut solver = Solver::default();
        for (count, width) in [(1, 1), (3, 7), (40, 7), (9, 20)] {
            let rows: Vec<f32> = (0..count * width).map(|_| draw()).collect();
            let targets: Vec<f32> = (0..count).map(|_| 3.0 * draw()).collect();
            let u = solver.solve(&rows, &targets, width, 0.1).to_vec();
            for k in 0..width {
                let mut slope = 0.1 * count as f64 * u[k];
                for (row, target) in rows.chunks(width).zip(&targets) {
                    let score: f64 = row.iter().zip(&u).map(|(v, u)| f64::from(*v) * u).sum();
                    slope += (score - f64::from(*target)) * f64::from(row[k]);
                }
                assert!(slope.abs() < 1e-4, "{count} ratings, {width} numbers: slope {slope}");
            }
        }
        assert_eq!(solver.solve(&[], &[], 4, 0.1), [0.0; 4]);
        let twice = [1.0, 2.0, 1.0, 2.0];
        assert!(solver.solve(&twice, &[1.0, 1.0], 2, 0.0).iter().all(|u| u.is_finite()), "not one solution, but many");
    }
}
