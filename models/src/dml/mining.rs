//! Pairs found by labels: of every example of a batch the nearest of its class, and the nearest of another.

use crate::matrix::Matrix;
use std::ops::Range;

/// For some examples of a batch the nearest others of the same class and of another, where there are any.
pub(super) fn nearest(
    projected: &[f32],
    dimension: usize,
    labels: &[u32],
    some: Range<usize>,
) -> Vec<(Option<usize>, Option<usize>)> {
    let points = Matrix::rows_of(projected, dimension);
    let squares: Vec<f32> =
        projected.chunks_exact(dimension).map(|point| point.iter().map(|number| number * number).sum()).collect();
    let mut products = vec![0.0; some.len() * labels.len()];
    let these = &projected[some.start * dimension..some.end * dimension];
    Matrix::rows_of(these, dimension).times(points.transposed(), 0.0, &mut products);
    let find = |(example, products): (usize, &[f32])| {
        let (mut alike, mut other) = ((f32::INFINITY, None), (f32::INFINITY, None));
        for (at, (product, square)) in products.iter().zip(&squares).enumerate() {
            let distance = square - 2.0 * product;
            let best = if labels[at] == labels[example] { &mut alike } else { &mut other };
            if distance < best.0 && at != example {
                *best = (distance, Some(at));
            }
        }
        (alike.1, other.1)
    };
    some.zip(products.chunks_exact(labels.len())).map(find).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_nearest_of_either_kind_are_found() {
        let points = [0.0, 0.0, 1.0, 0.0, 0.0, 3.0, 5.0, 5.0, 0.4, 0.0];
        let found = super::nearest(&points, 2, &[7, 7, 8, 8, 9], 0..5);
        let expected = [(1, 4), (0, 4), (3, 0), (2, 2)].map(|(alike, other)| (Some(alike), Some(other)));
        assert_eq!(found[0], expected[0]);
        assert_eq!(found[1], expected[1]);
        assert_eq!(found[2].0, Some(3));
        assert_eq!(found[4], (None, Some(0)));
        assert_eq!(super::nearest(&points, 2, &[7, 7, 8, 8, 9], 1..3), found[1..3]);
    }
}
