//! What pairs of examples say of a projection: their cost, and the factors of its gradient.

use crate::matrix::Matrix;

/// Factors of a gradient: the sum of the outer products of each `u` with its `v`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Factors {
    /// One after the other, each with a number for every row of the projection.
    pub us: Vec<f32>,
    /// One after the other, each with a number for every feature.
    pub vs: Vec<f32>,
    /// What the pairs cost.
    pub cost: f64,
}

/// The factors of pairs, of which `differences` has those of their features, one after the other, and `similar` which are
/// alike; those that are not count `weight` times. The projection lies row by row.
///
/// # Panics
/// If the shapes do not fit.
#[must_use]
pub fn factors(projection: &[f32], features: usize, differences: Vec<f32>, similar: &[bool], weight: f32) -> Factors {
    let dimension = projection.len() / features;
    let mut us = vec![0.0; similar.len() * dimension];
    let rows = Matrix::rows_of(projection, features);
    Matrix::rows_of(&differences, features).times(rows.transposed(), 0.0, &mut us);
    let mut cost = 0.0;
    for (u, &similar) in us.chunks_exact_mut(dimension).zip(similar) {
        let distance: f32 = u.iter().map(|number| number * number).sum();
        let (part, slope) = match similar {
            true => (distance, 2.0),
            false if distance < 1.0 => (weight * (1.0 - distance), -2.0 * weight),
            false => (0.0, 0.0),
        };
        cost += f64::from(part);
        u.iter_mut().for_each(|number| *number *= slope);
    }
    Factors { us, vs: differences, cost }
}

impl Factors {
    /// Moves a projection against the gradient, by `rate` times it.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn apply(&mut self, projection: &mut [f32], features: usize, rate: f32) {
        self.us.iter_mut().for_each(|number| *number *= -rate);
        let dimension = projection.len() / features;
        let us = Matrix::rows_of(&self.us, dimension).transposed();
        us.times(Matrix::rows_of(&self.vs, features), 1.0, projection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What pairs cost, as the formula is written.
    fn cost(projection: &[f64], differences: &[f64], similar: &[bool], weight: f64, features: usize) -> f64 {
        let pairs = differences.chunks(features).zip(similar);
        pairs
            .map(|(v, similar)| {
                let project = |row: &[f64]| row.iter().zip(v).map(|(l, x)| l * x).sum::<f64>();
                let distance: f64 = projection.chunks(features).map(|row| project(row).powi(2)).sum();
                if *similar { distance } else { weight * (1.0 - distance).max(0.0) }
            })
            .sum()
    }

    #[test]
    fn the_factors_are_those_of_finite_differences() {
        let (features, weight) = (3, 0.7);
        let mut projection = vec![0.3, -0.2, 0.5, 0.1, 0.4, -0.6];
        let differences = [1.0, 0.5, -0.3, 0.2, -0.4, 0.3, 2.0, 1.0, 3.0];
        let similar = [true, false, false];
        let single = |numbers: &[f64]| numbers.iter().map(|number| *number as f32).collect::<Vec<f32>>();
        let mut found = factors(&single(&projection), features, single(&differences), &similar, weight as f32);
        assert!((found.cost - cost(&projection, &differences, &similar, weight, features)).abs() < 1e-6);
        let mut moved = single(&projection);
        found.apply(&mut moved, features, 1.0);
        for at in 0..projection.len() {
            let before = projection[at];
            let mut near = |change: f64| {
                projection[at] = before + change;
                cost(&projection, &differences, &similar, weight, features)
            };
            let slope = (near(1e-5) - near(-1e-5)) / 2e-5;
            near(0.0);
            let gradient = before - f64::from(moved[at]);
            assert!((gradient - slope).abs() < 1e-5, "{at}: {gradient} instead of {slope}");
        }
    }
}
