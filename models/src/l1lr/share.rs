//! A worker's part of the delayed block proximal gradient method: the slopes and the bounds of a block of features over a
//! share of the examples.
//!
//! The bound of feature `j` is `u_j = Σ_i κ_i |x_ij| s_i`, with `s_i = Σ_l |x_il|` over the features of the block and `κ_i`
//! the curvature of the narrowest parabola that touches the loss of row `i` at its margin and is nowhere below it. With
//! all bounds summed over the shares, `Σ_j g_j d_j + u_j/2 d_j²` is nowhere below what the loss changes by: the step of
//! [`Penalty::prox`](super::prox::Penalty::prox) with `u_j` as curvature never makes the objective grow.
//!
//! Far from the margin 0 the loss is nearly straight, which no parabola over all of it tells. So a weight has a
//! [reach](super::step): it moves no further in a step, and `κ_i` need be a bound only for what the features of the block
//! within their reaches make of the margin.
//!
//! That is so as long as nothing else moves meanwhile. Under a delay `τ` the slopes miss what up to `τ` other blocks do,
//! and Theorem 2 asks for a step of `1 / (L_var + τ L_cov)` instead of `1 / L_var`. Here that goes into the bound, feature
//! by feature: to `s_i` and to what is in reach come the same sums over `τ` other blocks, of which each has its part of the
//! row's other features on average. So a delay costs little where rows are sparse and blocks many, which is when blocks hardly meet in a row.

use super::step::{self, UNBOUNDED};
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
    /// The weight of every feature, as far as steps have made it, and its reach.
    weights: Vec<f32>,
    reaches: Vec<f32>,
    /// What the features of each row may do, and those of a block alone; zeros in between.
    rows_around: Vec<Around>,
    rows_of_block: Vec<Around>,
}

/// What features may do to the margin of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Around {
    /// The sum of their absolute values in it.
    size: f64,
    /// How far they can move it within their reaches.
    reach: f64,
}

impl Around {
    /// Of a feature that has not moved yet, in a row where its value is 1.
    const START: Self = Self { size: 1.0, reach: UNBOUNDED as f64 };

    fn add(&mut self, value: f64, other: Self) {
        self.size += value * other.size;
        self.reach += value * other.reach;
    }

    /// The same where a part of all others moves, too.
    fn with(self, part: f64, all: Self) -> Self {
        let with = |own: f64, all: f64| own + part * (all - own).max(0.0);
        Self { size: with(self.size, all.size), reach: with(self.reach, all.reach) }
    }
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
        let mut all = Vec::new();
        let mut rows_around = vec![Around::default(); rows.len()];
        for (number, row) in rows.clone().enumerate() {
            let example = examples.example(row);
            for (&feature, &value) in example.columns.iter().zip(example.values) {
                all.push((feature, number as u32, value));
                rows_around[number].add(f64::from(value.abs()), Around::START);
            }
        }
        all.sort_unstable_by_key(|&(feature, row, _)| (feature, row));
        let (mut features, mut ends) = (Vec::new(), Vec::new());
        for of_feature in all.chunk_by(|one, other| one.0 == other.0) {
            features.push(of_feature[0].0);
            ends.push(ends.last().unwrap_or(&0) + of_feature.len());
        }
        let entries = all.into_iter().map(|(_, row, value)| (row, value)).collect();
        let (margins, rows_of_block) = (vec![0.0; rows.len()], vec![Around::default(); rows.len()]);
        let (weights, reaches) = (vec![0.0; features.len()], vec![UNBOUNDED; features.len()]);
        Self {
            examples,
            rows,
            positive,
            margins,
            features,
            ends,
            entries,
            weights,
            reaches,
            rows_around,
            rows_of_block,
        }
    }

    /// The same with one more feature, which every row has with the value 1: the bias. Its number follows those of the
    /// examples' features.
    #[must_use]
    pub fn with_bias(mut self) -> Self {
        self.features.push(self.examples.features() as u32);
        self.entries.extend((0..self.margins.len() as u32).map(|row| (row, 1.0)));
        self.ends.push(self.entries.len());
        self.weights.push(0.0);
        self.reaches.push(UNBOUNDED);
        self.rows_around.iter_mut().for_each(|row| row.add(1.0, Around::START));
        self
    }

    /// The features that the share has, ascending: what it needs of the model.
    #[must_use]
    pub fn features(&self) -> &[u32] {
        &self.features
    }

    /// The rows that have a feature, and their values.
    fn column(&self, feature: u32) -> &[(u32, f32)] {
        self.place(feature).map_or(&[], |place| self.entries_of(place))
    }

    fn place(&self, feature: u32) -> Option<usize> {
        self.features.binary_search(&feature).ok()
    }

    fn entries_of(&self, place: usize) -> &[(u32, f32)] {
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.entries[start..self.ends[place]]
    }

    /// In how many of the share's rows these features occur, each counted for itself.
    #[must_use]
    pub fn entries(&self, features: &[u32]) -> usize {
        features.iter().map(|&feature| self.column(feature).len()).sum()
    }

    /// The slope and the bound of every feature of a block, when this part of all other features may move meanwhile. No
    /// idle one does.
    #[must_use]
    pub fn slopes(&mut self, block: &[u32], moving: f64) -> Vec<Slope> {
        let mut around = std::mem::take(&mut self.rows_of_block);
        for place in block.iter().filter_map(|&feature| self.place(feature)) {
            let of_feature = self.around(place);
            let rows = self.entries_of(place).iter();
            rows.for_each(|&(row, value)| around[row as usize].add(f64::from(value.abs()), of_feature));
        }
        let of_feature = |&feature: &u32| {
            let mut sum = Slope::default();
            for &(row, value) in self.column(feature) {
                let (number, value) = (row as usize, f64::from(value));
                let (margin, around) = (self.margins[number], around[number].with(moving, self.rows_around[number]));
                sum.slope += value * (1.0 / (1.0 + (-margin).exp()) - self.target(number));
                sum.bound += curvature_bound(margin, around.reach) * value.abs() * around.size;
            }
            sum
        };
        let slopes = block.iter().map(of_feature).collect();
        for &feature in block {
            self.column(feature).iter().for_each(|&(row, _)| around[row as usize] = Around::default());
        }
        self.rows_of_block = around;
        slopes
    }

    /// Whether the last step of a feature said that its weight stays zero.
    #[must_use]
    pub fn is_idle(&self, feature: u32) -> bool {
        self.place(feature).is_some_and(|place| step::is_idle(self.weights[place]))
    }

    /// Takes the steps that features of the share make. Returns how many entries of rows have got another margin.
    pub fn step(&mut self, steps: impl Iterator<Item = (u32, f32)>) -> usize {
        let (mut rows, mut changes) = (std::mem::take(&mut self.rows_around), Vec::new());
        for (feature, step) in steps {
            let Some(place) = self.place(feature) else { continue };
            let before = self.around(place);
            let weight = step::after(self.weights[place], step);
            let change = f64::from(weight) - f64::from(std::mem::replace(&mut self.weights[place], weight));
            self.reaches[place] = step::reach_after(self.reaches[place], change as f32);
            if change != 0.0 {
                changes.push((feature, change));
            }
            let after = self.around(place);
            if after != before {
                for &(row, value) in self.entries_of(place) {
                    rows[row as usize].add(f64::from(value.abs()), after);
                    rows[row as usize].add(-f64::from(value.abs()), before);
                }
            }
        }
        self.rows_around = rows;
        self.change(&changes);
        changes.iter().map(|&(feature, _)| self.column(feature).len()).sum()
    }

    /// What a feature may do while others are looked at: nothing where it is idle.
    fn around(&self, place: usize) -> Around {
        if step::is_idle(self.weights[place]) {
            return Around::default();
        }
        Around { size: 1.0, reach: f64::from(self.reaches[place]) }
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

/// The curvature of a parabola that touches the logistic loss at a margin and is not below it within reach: that of the
/// narrowest one over all of the loss, or the greatest curvature of the loss within reach.
fn curvature_bound(margin: f64, reach: f64) -> f64 {
    let anywhere = if margin.abs() < 1e-3 { 0.25 } else { (margin / 2.0).tanh() / (2.0 * margin) };
    let nearest = (margin.abs() - reach).max(0.0);
    let tail = (-nearest).exp();
    anywhere.min(tail / ((1.0 + tail) * (1.0 + tail)))
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
    fn within_reach_a_narrower_bound_is_one() {
        let examples = examples(80, 8, 6);
        let mut share = Share::new(&examples, 0..80, 1);
        let block = [0, 3, 4, 6];
        let step = |share: &mut Share<'_>, size: f32| {
            share.step((0..8).map(|feature| (feature, size * (feature as f32 - 3.0) + 0.0)))
        };
        assert!(step(&mut share, 0.5) > 0);
        let wide = Share::new(&examples, 0..80, 1).slopes(&block, 0.0);
        for (size, reach) in [(0.0, 0.75), (0.0, 0.375), (0.01, 0.1875)] {
            step(&mut share, size);
            let slopes = share.slopes(&block, 0.0);
            for signs in 0..16u32 {
                let sign = |position: usize| if signs >> position & 1 == 0 { reach } else { -reach };
                let changes: Vec<(u32, f64)> =
                    block.iter().enumerate().map(|(position, &feature)| (feature, sign(position))).collect();
                let terms = changes.iter().zip(&slopes);
                let model: f64 = terms.map(|((_, d), slope)| slope.slope * d + slope.bound / 2.0 * d * d).sum();
                let mut moved = share.clone();
                moved.change(&changes);
                assert!(moved.loss() - share.loss() <= model + 1e-9, "reach {reach}, signs {signs:b}");
            }
            assert!(slopes.iter().zip(&wide).all(|(slope, wide)| slope.bound < wide.bound));
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
