//! A worker's part of the delayed block proximal gradient method: the slopes and the bounds of a block of features over a
//! share of the examples.
//!
//! The bound of feature `j` is `u_j = Σ_i κ_i |x_ij| Σ_l |x_il|`, with `l` over the features of the block and `κ_i` the
//! curvature of the narrowest parabola that touches the loss of row `i` at its margin and is nowhere below it. With all
//! bounds summed over the shares, `Σ_j g_j d_j + u_j/2 d_j²` is nowhere below what the loss changes by: the step of
//! [`Penalty::prox`](super::prox::Penalty::prox) with `u_j` as curvature never makes the objective grow.

use crate::examples::Examples;

/// Some of the examples, with their margins.
#[derive(Clone, Debug)]
pub struct Share<'a> {
    examples: &'a Examples,
    rows: std::ops::Range<usize>,
    positive: u32,
    margins: Vec<f64>,
    /// For each feature the rows of the share that have it, and the values.
    columns: Vec<Vec<(u32, f32)>>,
}

/// What a share says of one feature.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slope {
    /// The slope of the sum of the losses in the feature's weight.
    pub slope: f64,
    /// An upper bound of what the slope changes by when the weights of the block change.
    pub bound: f64,
}

impl<'a> Share<'a> {
    /// These rows of the examples, where all weights are zero.
    ///
    /// # Panics
    /// If there are no such rows.
    #[must_use]
    pub fn new(examples: &'a Examples, rows: std::ops::Range<usize>, positive: u32) -> Self {
        let mut columns = vec![Vec::new(); examples.features()];
        for (number, row) in rows.clone().enumerate() {
            let example = examples.example(row);
            for (&feature, &value) in example.columns.iter().zip(example.values) {
                columns[feature as usize].push((number as u32, value));
            }
        }
        Self { examples, margins: vec![0.0; rows.len()], rows, positive, columns }
    }

    /// The slope and the bound of every feature of a block.
    ///
    /// # Panics
    /// If there is no such feature.
    #[must_use]
    pub fn slopes(&self, block: &[u32]) -> Vec<Slope> {
        let mut sizes = vec![0.0f64; self.margins.len()];
        for &feature in block {
            for &(row, value) in &self.columns[feature as usize] {
                sizes[row as usize] += f64::from(value.abs());
            }
        }
        let of_feature = |&feature: &u32| {
            let mut sum = Slope::default();
            for &(row, value) in &self.columns[feature as usize] {
                let (margin, value) = (self.margins[row as usize], f64::from(value));
                sum.slope += value * (1.0 / (1.0 + (-margin).exp()) - self.target(row as usize));
                sum.bound += curvature_bound(margin) * value.abs() * sizes[row as usize];
            }
            sum
        };
        block.iter().map(of_feature).collect()
    }

    /// Takes notice that weights have changed by so much.
    ///
    /// # Panics
    /// If there is no such feature.
    pub fn change(&mut self, changes: &[(u32, f64)]) {
        for &(feature, change) in changes {
            for &(row, value) in &self.columns[feature as usize] {
                self.margins[row as usize] += f64::from(value) * change;
            }
        }
    }

    /// The sum of the losses.
    #[must_use]
    pub fn loss(&self) -> f64 {
        let loss =
            |(row, &margin): (usize, &f64)| margin.max(0.0) - self.target(row) * margin + (-margin.abs()).exp().ln_1p();
        self.margins.iter().enumerate().map(loss).sum()
    }

    fn target(&self, row: usize) -> f64 {
        if self.examples.labels()[self.rows.start + row] == self.positive { 1.0 } else { 0.0 }
    }
}

/// The curvature of the narrowest parabola over the logistic loss that touches it at a margin.
fn curvature_bound(margin: f64) -> f64 {
    if margin.abs() < 1e-3 { 0.25 } else { (margin / 2.0).tanh() / (2.0 * margin) }
}

#[cfg(test)]
mod tests {
    use super::super::reference::tests::examples;
    use super::*;

    #[test]
    fn the_sums_of_the_shares_are_those_of_the_whole() {
        let examples = examples(60, 9, 3);
        let changes: Vec<(u32, f64)> = (0..9).map(|feature| (feature, f64::from(feature) * 0.3 - 1.0)).collect();
        let share = |rows: std::ops::Range<usize>| {
            let mut share = Share::new(&examples, rows, 1);
            share.change(&changes);
            share
        };
        let block = [7, 2, 5];
        let (whole, parts) = (share(0..60), [share(0..10), share(10..11), share(11..60)]);
        for (position, slope) in whole.slopes(&block).iter().enumerate() {
            let sum =
                |get: fn(&Slope) -> f64| parts.iter().map(|part| get(&part.slopes(&block)[position])).sum::<f64>();
            assert!((sum(|part| part.slope) - slope.slope).abs() < 1e-9);
            assert!((sum(|part| part.bound) - slope.bound).abs() < 1e-9);
        }
        assert!((parts.iter().map(Share::loss).sum::<f64>() - whole.loss()).abs() < 1e-9);
    }

    #[test]
    fn the_bound_is_one_for_any_change_of_the_block() {
        let examples = examples(80, 8, 4);
        let mut share = Share::new(&examples, 0..80, 1);
        share.change(&(0..8).map(|feature| (feature, 0.7 - f64::from(feature) * 0.2)).collect::<Vec<_>>());
        let block = [0, 3, 4, 6];
        let slopes = share.slopes(&block);
        for step in [0.01, 0.3, 2.0, 20.0] {
            for signs in 0..16u32 {
                let sign = |position: usize| if signs >> position & 1 == 0 { step } else { -step };
                let changes: Vec<(u32, f64)> =
                    block.iter().enumerate().map(|(position, &feature)| (feature, sign(position))).collect();
                let model: f64 = changes
                    .iter()
                    .zip(&slopes)
                    .map(|((_, change), slope)| slope.slope * change + slope.bound / 2.0 * change * change)
                    .sum();
                let mut moved = share.clone();
                moved.change(&changes);
                assert!(moved.loss() - share.loss() <= model + 1e-9, "step {step}, signs {signs:b}");
            }
        }
    }
}
