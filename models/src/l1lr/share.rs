//! A worker's part of the delayed block proximal gradient method: the slopes and the bounds of a block of features over a
//! share of the examples.
//!
//! The bound of feature `j` is `u_j = Σ_i κ_i |x_ij| s_i`, with `s_i = Σ_l |x_il|` over the features of the block and `κ_i`
//! the curvature of the narrowest parabola that touches the loss of row `i` at its margin and is nowhere below it. With
//! all bounds summed over the shares, `Σ_j g_j d_j + u_j/2 d_j²` is nowhere below what the loss changes by: the step of
//! [`Penalty::prox`](super::prox::Penalty::prox) with `u_j` as curvature never makes the objective grow.
//!
//! That is so as long as nothing else moves meanwhile. Under a delay `τ` the slopes miss what up to `τ` other blocks do,
//! and Theorem 2 asks for a step of `1 / (L_var + τ L_cov)` instead of `1 / L_var`. Here that goes into the bound, feature
//! by feature: to `s_i` comes the same sum over `τ` other blocks, of which each has its part of the row's other features
//! on average. So a delay costs little where rows are sparse and blocks many, which is when blocks hardly meet in a row.

use crate::examples::Examples;

/// Some of the examples, with their margins.
#[derive(Clone, Debug)]
pub struct Share<'a> {
    examples: &'a Examples,
    rows: std::ops::Range<usize>,
    positive: u32,
    margins: Vec<f64>,
    /// The features that the share has, ascending, and where the entries of each end.
    features: Vec<u32>,
    ends: Vec<usize>,
    /// The rows of the share and the values, feature by feature.
    entries: Vec<(u32, f32)>,
    /// The sum of the absolute values of each row.
    sizes: Vec<f64>,
    /// The same over the features of a block; zeros in between.
    block_sizes: Vec<f64>,
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
        let (mut all, mut sizes) = (Vec::new(), vec![0.0; rows.len()]);
        for (number, row) in rows.clone().enumerate() {
            let example = examples.example(row);
            for (&feature, &value) in example.columns.iter().zip(example.values) {
                all.push((feature, number as u32, value));
                sizes[number] += f64::from(value.abs());
            }
        }
        all.sort_unstable_by_key(|&(feature, row, _)| (feature, row));
        let (mut features, mut ends) = (Vec::new(), Vec::new());
        for of_feature in all.chunk_by(|one, other| one.0 == other.0) {
            features.push(of_feature[0].0);
            ends.push(ends.last().unwrap_or(&0) + of_feature.len());
        }
        let entries = all.into_iter().map(|(_, row, value)| (row, value)).collect();
        let (margins, block_sizes) = (vec![0.0; rows.len()], vec![0.0; rows.len()]);
        Self { examples, rows, positive, margins, features, ends, entries, sizes, block_sizes }
    }

    /// The same with one more feature, which every row has with the value 1: the bias. Its number follows those of the
    /// examples' features.
    #[must_use]
    pub fn with_bias(mut self) -> Self {
        self.features.push(self.examples.features() as u32);
        self.entries.extend((0..self.margins.len() as u32).map(|row| (row, 1.0)));
        self.ends.push(self.entries.len());
        self.sizes.iter_mut().for_each(|size| *size += 1.0);
        self
    }

    /// The features that the share has, ascending: what it needs of the model.
    #[must_use]
    pub fn features(&self) -> &[u32] {
        &self.features
    }

    /// The rows that have a feature, and their values.
    fn column(&self, feature: u32) -> &[(u32, f32)] {
        let Ok(place) = self.features.binary_search(&feature) else { return &[] };
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.entries[start..self.ends[place]]
    }

    /// In how many of the share's rows these features occur, each counted for itself.
    #[must_use]
    pub fn entries(&self, features: &[u32]) -> usize {
        features.iter().map(|&feature| self.column(feature).len()).sum()
    }

    /// The slope and the bound of every feature of a block, when this part of all other features may move meanwhile.
    #[must_use]
    pub fn slopes(&mut self, block: &[u32], moving: f64) -> Vec<Slope> {
        let mut sizes = std::mem::take(&mut self.block_sizes);
        for &feature in block {
            self.column(feature).iter().for_each(|&(row, value)| sizes[row as usize] += f64::from(value.abs()));
        }
        let of_feature = |&feature: &u32| {
            let mut sum = Slope::default();
            for &(row, value) in self.column(feature) {
                let (number, value) = (row as usize, f64::from(value));
                let (margin, own) = (self.margins[number], sizes[number]);
                let size = own + moving * (self.sizes[number] - own);
                sum.slope += value * (1.0 / (1.0 + (-margin).exp()) - self.target(number));
                sum.bound += curvature_bound(margin) * value.abs() * size;
            }
            sum
        };
        let slopes = block.iter().map(of_feature).collect();
        for &feature in block {
            self.column(feature).iter().for_each(|&(row, _)| sizes[row as usize] = 0.0);
        }
        self.block_sizes = sizes;
        slopes
    }

    /// Takes notice that weights have changed by so much.
    pub fn change(&mut self, changes: &[(u32, f64)]) {
        let mut margins = std::mem::take(&mut self.margins);
        for &(feature, change) in changes {
            self.column(feature).iter().for_each(|&(row, value)| margins[row as usize] += f64::from(value) * change);
        }
        self.margins = margins;
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
        let (mut whole, mut parts) = (share(0..60), [share(0..10), share(10..11), share(11..60)]);
        for (position, slope) in whole.slopes(&block, 0.3).iter().enumerate() {
            let mut sum = |get: fn(&Slope) -> f64| {
                parts.iter_mut().map(|part| get(&part.slopes(&block, 0.3)[position])).sum::<f64>()
            };
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
        let slopes = share.slopes(&block, 0.0);
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

    #[test]
    fn when_all_others_may_move_the_bounds_hold_for_all_blocks_together() {
        let examples = examples(80, 8, 5);
        let mut share = Share::new(&examples, 0..80, 1).with_bias();
        share.change(&(0..9).map(|feature| (feature, 0.5 - f64::from(feature) * 0.1)).collect::<Vec<_>>());
        let slopes: Vec<Slope> =
            [&[0, 1, 2][..], &[3, 4, 5], &[6, 7, 8]].iter().flat_map(|block| share.slopes(block, 1.0)).collect();
        for step in [0.01, 0.3, 2.0] {
            for signs in 0..512u32 {
                let changes: Vec<(u32, f64)> =
                    (0..9).map(|feature| (feature, if signs >> feature & 1 == 0 { step } else { -step })).collect();
                let terms = changes.iter().zip(&slopes);
                let model: f64 = terms.map(|((_, d), slope)| slope.slope * d + slope.bound / 2.0 * d * d).sum();
                let mut moved = share.clone();
                moved.change(&changes);
                assert!(moved.loss() - share.loss() <= model + 1e-9, "step {step}, signs {signs:b}");
            }
        }
    }
}
