//! The user's side of a factorisation in closed form: the vector that explains a user's ratings best, given the items.
//!
//! With the items' rows `v` held fixed, `Σ (⟨u, v⟩ - r)² + l2 · n · |u|²` over the user's `n` ratings is least where
//! `(Σ v vᵀ + l2 · n · I) u = Σ r v`. The matrix is positive definite, so Cholesky's decomposition solves it.

use crate::machine::{self, Loop};
use crate::matrix::Matrix;
use crate::mf::Biases;

/// What is added to the diagonal at least, as a part of its greatest number, so that rounding leaves it positive.
const RIDGE_MIN: f64 = 1e-6;

/// What is needed to solve for a user, kept from one to the next.
#[derive(Default)]
pub(crate) struct Solver {
    product: Vec<f32>,
    /// The matrix with the right side behind its last column, row by row, in groups. Only the upper triangle counts.
    upper: Vec<Group>,
    /// The sums of the rows, which are the products with the 1 beside each.
    sums: Vec<f64>,
    solution: Vec<f64>,
}

/// Numbers that vectors take together.
type Group = [f64; LANES];
const LANES: usize = 4;

impl Solver {
    /// The vector for rows of `rank` numbers and what they should give; zeros where there are none. With biases it has one
    /// more number, beside which every row has a 1.
    pub(crate) fn solve(&mut self, rows: &[f32], targets: &[f32], rank: usize, biases: Biases, l2: f32) -> &[f64] {
        let Self { product, upper, sums, solution } = self;
        let width = rank + usize::from(biases == Biases::With);
        solution.clear();
        solution.resize(width, 0.0);
        if targets.is_empty() {
            return solution;
        }
        product.resize(rank * rank, 0.0);
        let matrix = Matrix::rows_of(rows, rank);
        matrix.transposed().times(matrix, 0.0, product);
        sums.clear();
        sums.resize(rank, 0.0);
        upper.clear();
        upper.resize(width * (width + 1).div_ceil(LANES), [0.0; LANES]);
        machine::run(Solve { rows, targets, l2, product, upper, sums, solution });
        solution
    }
}

/// What is left to do when `product` has the products of all columns.
struct Solve<'a> {
    rows: &'a [f32],
    targets: &'a [f32],
    l2: f32,
    product: &'a [f32],
    upper: &'a mut [Group],
    sums: &'a mut [f64],
    solution: &'a mut [f64],
}

impl Loop for Solve<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { rows, targets, l2, product, upper, sums, solution } = self;
        let (rank, width, count) = (sums.len(), solution.len(), targets.len() as f64);
        for (row, target) in rows.chunks_exact(rank).zip(targets) {
            for ((v, right), sum) in row.iter().zip(&mut *solution).zip(&mut *sums) {
                *right += f64::from(*v) * f64::from(*target);
                *sum += f64::from(*v);
            }
        }
        solution[rank..].fill(targets.iter().copied().map(f64::from).sum());
        let groups = upper.len() / width;
        for (i, row) in upper.chunks_exact_mut(groups).enumerate() {
            let row = row.as_flattened_mut();
            if let Some(products) = product.chunks_exact(rank).nth(i) {
                row.iter_mut().zip(products).for_each(|(place, number)| *place = f64::from(*number));
            }
            row[rank] = sums.get(i).copied().unwrap_or(count);
            row[width] = solution[i];
        }
        let numbers = upper.as_flattened();
        let greatest = (0..width).map(|i| numbers[i * groups * LANES + i]).fold(f64::MIN_POSITIVE, f64::max);
        let ridge = (f64::from(l2) * count).max(RIDGE_MIN * greatest);
        for i in 0..width {
            let (row, below) = upper[i * groups..].split_at_mut(groups);
            let pivot = (row[i / LANES][i % LANES] + ridge).max(ridge * RIDGE_MIN).sqrt();
            row[i / LANES..].as_flattened_mut().iter_mut().for_each(|number| *number /= pivot);
            row[i / LANES][i % LANES] = pivot;
            // The row is taken off those below it, in whole groups: what is left of the diagonal does not count.
            for (k, other) in (i + 1..).zip(below.chunks_exact_mut(groups)) {
                let factor = row[k / LANES][k % LANES];
                for (other, row) in other[k / LANES..].iter_mut().zip(&row[k / LANES..]) {
                    *other = std::array::from_fn(|lane| other[lane] - factor * row[lane]);
                }
            }
        }
        for (i, row) in upper.chunks_exact(groups).enumerate().rev() {
            let row = row.as_flattened();
            let known: f64 = row[i + 1..width].iter().zip(&solution[i + 1..]).map(|(a, b)| a * b).sum();
            solution[i] = (row[width] - known) / row[i];
        }
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
        for (count, rank) in [(1, 1), (3, 7), (40, 7), (9, 20)] {
            let rows: Vec<f32> = (0..count * rank).map(|_| draw()).collect();
            let targets: Vec<f32> = (0..count).map(|_| 3.0 * draw()).collect();
            for (biases, width) in [(Biases::Without, rank), (Biases::With, rank + 1)] {
                let u = solver.solve(&rows, &targets, rank, biases, 0.1).to_vec();
                assert_eq!(u.len(), width);
                for k in 0..width {
                    let mut slope = 0.1 * count as f64 * u[k];
                    for (row, target) in rows.chunks(rank).zip(&targets) {
                        let row: Vec<f64> = row.iter().copied().map(f64::from).chain([1.0]).collect();
                        let score: f64 = row.iter().zip(&u).map(|(v, u)| v * u).sum();
                        slope += (score - f64::from(*target)) * row[k];
                    }
                    assert!(slope.abs() < 1e-4, "{count} ratings, {width} numbers: slope {slope}");
                }
            }
        }
        assert_eq!(solver.solve(&[], &[], 4, Biases::Without, 0.1), [0.0; 4]);
        let twice = [1.0, 2.0, 1.0, 2.0];
        assert!(
            solver.solve(&twice, &[1.0, 1.0], 2, Biases::Without, 0.0).iter().all(|u| u.is_finite()),
            "not one solution, but many"
        );
    }
}
