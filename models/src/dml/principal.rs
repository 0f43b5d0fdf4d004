//! The directions in which examples differ most, as a place to begin and to compare with.

use crate::examples::Examples;
use crate::matrix::Matrix;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Examples that are looked at, at most.
const EXAMPLES_MAX: usize = 10_000;
/// Times that all directions are multiplied by the covariances.
const TURNS: u32 = 30;

/// So many orthogonal directions of greatest variance, one after the other, by turning some into what the covariances
/// make of them again and again.
pub(super) fn directions(examples: &Examples, count: usize, seed: u64) -> Vec<f32> {
    let (features, step) = (examples.features(), examples.len().div_ceil(EXAMPLES_MAX));
    let rows: Vec<usize> = (0..examples.len()).step_by(step).collect();
    let mut mean = vec![0.0; features];
    for example in rows.iter().map(|&row| examples.example(row)) {
        let entries = example.columns.iter().zip(example.values);
        entries.for_each(|(&column, value)| mean[column as usize] += value / rows.len() as f32);
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    // By features, so that an example needs only the rows of those it has.
    let mut found: Vec<f32> = (0..features * count).map(|_| random.next_u32() as f32 / u32::MAX as f32 - 0.5).collect();
    let (mut turned, mut products) = (vec![0.0; features * count], vec![0.0; count]);
    for _ in 0..TURNS {
        turned.fill(0.0);
        let mut mean_product = vec![0.0; count];
        Matrix::rows_of(&mean, features).times(Matrix::rows_of(&found, count), 0.0, &mut mean_product);
        let mut sum = vec![0.0; count];
        for example in rows.iter().map(|&row| examples.example(row)) {
            products.iter_mut().zip(&mean_product).for_each(|(product, mean)| *product = -mean);
            for (&column, &value) in example.columns.iter().zip(example.values) {
                let row = &found[column as usize * count..][..count];
                products.iter_mut().zip(row).for_each(|(product, number)| *product += value * number);
            }
            for (&column, &value) in example.columns.iter().zip(example.values) {
                let row = &mut turned[column as usize * count..][..count];
                row.iter_mut().zip(&products).for_each(|(number, product)| *number += value * product);
            }
            sum.iter_mut().zip(&products).for_each(|(sum, product)| *sum += product);
        }
        for (row, mean) in turned.chunks_exact_mut(count).zip(&mean) {
            row.iter_mut().zip(&sum).for_each(|(number, sum)| *number -= mean * sum);
        }
        std::mem::swap(&mut found, &mut turned);
        orthogonalise(&mut found, count);
    }
    (0..count).flat_map(|direction| found.iter().skip(direction).step_by(count).copied()).collect()
}

/// Makes columns orthogonal and of length 1, the first ones first; one that is not independent becomes zero.
fn orthogonalise(columns: &mut [f32], count: usize) {
    for this in 0..count {
        for before in 0..this {
            let product: f64 =
                columns.chunks_exact(count).map(|row| f64::from(row[this]) * f64::from(row[before])).sum();
            columns.chunks_exact_mut(count).for_each(|row| row[this] -= product as f32 * row[before]);
        }
        let length = columns.chunks_exact(count).map(|row| f64::from(row[this]).powi(2)).sum::<f64>().sqrt();
        let factor = if length > 1e-12 { (1.0 / length) as f32 } else { 0.0 };
        columns.chunks_exact_mut(count).for_each(|row| row[this] *= factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Names;

    #[test]
    fn directions_are_those_of_greatest_variance() {
        let mut names = Names::default();
        names.intern("a").expect("one");
        let mut examples = Examples::new(names);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut draw = || random.next_u32() as f32 / u32::MAX as f32 - 0.5;
        for _ in 0..2000 {
            let (strong, weak) = (4.0 * draw(), 2.0 * draw());
            let numbers = [5.0 + strong + weak, strong - weak, 0.2 * draw()];
            examples.push(0, (0..).zip(numbers));
        }
        let found = directions(&examples, 2, 7);
        let half = 0.5f32.sqrt();
        for (direction, expected) in found.chunks(3).zip([[half, half, 0.0], [half, -half, 0.0]]) {
            let product: f32 = direction.iter().zip(expected).map(|(one, other)| one * other).sum();
            assert!(product.abs() > 0.995, "{direction:?} instead of {expected:?}");
        }
    }
}
