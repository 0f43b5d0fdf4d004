//! Classes by the nearest neighbours.

use crate::matrix::Matrix;
use crate::team::share_out;

/// Points whose classes are known.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbours<'a> {
    points: &'a [f32],
    dimension: usize,
    labels: &'a [u32],
    squares: Vec<f32>,
}

/// Points asked about and points known that are multiplied at a time.
const BLOCK: (usize, usize) = (128, 1024);

impl<'a> Neighbours<'a> {
    /// Points one after the other, with a label for each.
    ///
    /// # Panics
    /// If there are not as many labels as points.
    #[must_use]
    pub fn new(points: &'a [f32], dimension: usize, labels: &'a [u32]) -> Self {
        assert_eq!(points.len(), labels.len() * dimension, "every point has a label");
        let squares = points.chunks_exact(dimension).map(|point| point.iter().map(|x| x * x).sum()).collect();
        Self { points, dimension, labels, squares }
    }

    /// The class that most of the `count` nearest of each point have, and the nearer of them where there are several;
    /// by so many threads.
    #[must_use]
    pub fn classify(&self, asked: &[f32], count: usize, workers: u32) -> Vec<u32> {
        let blocks: Vec<&[f32]> = asked.chunks(BLOCK.0 * self.dimension).collect();
        share_out(workers as usize, blocks, |block| self.classify_block(block, count)).concat()
    }

    /// The share of points whose class is found.
    #[must_use]
    pub fn accuracy(&self, asked: &[f32], labels: &[u32], count: usize, workers: u32) -> f64 {
        let found = self.classify(asked, count, workers);
        let right = found.iter().zip(labels).filter(|(found, label)| found == label).count();
        right as f64 / labels.len() as f64
    }

    fn classify_block(&self, asked: &[f32], count: usize) -> Vec<u32> {
        let many = asked.len() / self.dimension;
        let count = count.min(self.labels.len());
        // The distance of each, less the square of the point asked about, and its label; the nearest first.
        let mut nearest = vec![(f32::INFINITY, 0); many * count];
        let mut products = Vec::new();
        for (part, points) in self.points.chunks(BLOCK.1 * self.dimension).enumerate() {
            let first = part * BLOCK.1;
            let known = points.len() / self.dimension;
            products.resize(many * known, 0.0);
            let points = Matrix::rows_of(points, self.dimension).transposed();
            Matrix::rows_of(asked, self.dimension).times(points, 0.0, &mut products);
            for (products, nearest) in products.chunks_exact(known).zip(nearest.chunks_exact_mut(count)) {
                for (at, product) in products.iter().enumerate() {
                    let distance = self.squares[first + at] - 2.0 * product;
                    if distance < nearest[count - 1].0 {
                        let place = nearest.partition_point(|other| other.0 <= distance);
                        nearest[place..].rotate_right(1);
                        nearest[place] = (distance, self.labels[first + at]);
                    }
                }
            }
        }
        nearest.chunks_exact(count).map(most).collect()
    }
}

/// The label that most have, and that of the nearer ones where there are several.
fn most(nearest: &[(f32, u32)]) -> u32 {
    let votes = |label: u32| nearest.iter().filter(|(_, other)| *other == label).count();
    let mut best = nearest[0].1;
    for &(_, label) in nearest {
        if votes(label) > votes(best) {
            best = label;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_of_the_nearest_decide() {
        let points = [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 9.0, 9.0, 9.0, 8.0];
        let neighbours = Neighbours::new(&points, 2, &[3, 4, 4, 5, 5]);
        assert_eq!(neighbours.classify(&[0.1, 0.1, 8.0, 8.0], 1, 1), [3, 5]);
        assert_eq!(neighbours.classify(&[0.1, 0.1, 8.0, 8.0], 3, 2), [4, 5]);
        assert_eq!(neighbours.classify(&[0.1, 0.1], 4, 1), [4]);
        assert_eq!(neighbours.accuracy(&[0.1, 0.1, 8.0, 8.0], &[3, 4], 1, 1), 0.5);
    }

    #[test]
    fn many_points_are_classified_as_one_by_one() {
        let place = |at: usize, turn: usize| ((at * turn) % 1009) as f32 / 1009.0;
        let points: Vec<f32> = (0..3000).flat_map(|at| [place(at, 37), place(at, 101), place(at, 7)]).collect();
        let labels: Vec<u32> = (0..3000).map(|at| (at * 7919 % 5) as u32).collect();
        let asked: Vec<f32> = (0..400).flat_map(|at| [place(at, 11), place(at, 13), place(at, 17)]).collect();
        let found = Neighbours::new(&points, 3, &labels).classify(&asked, 1, 3);
        for (point, label) in asked.chunks(3).zip(found) {
            let distance = |at: usize| -> f32 { (0..3).map(|i| (points[3 * at + i] - point[i]).powi(2)).sum() };
            let nearest = (0..3000).map(distance).fold(f32::INFINITY, f32::min);
            assert!((0..3000).any(|at| labels[at] == label && distance(at) < nearest + 1e-5));
        }
    }
}
