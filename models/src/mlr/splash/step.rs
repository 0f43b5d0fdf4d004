//! What `process` does with one example: AdaGrad on the rows of its features, for any weight.
//!
//! Features are taken as if scaled to the greatest magnitude 1, as everywhere in this model. A weight's step is the rate
//! over the root of its squared gradients, that of this example included as often as its weight says: the examples it
//! stands for would have had such gradients, each at its turn. But they would not have agreed as one example does with
//! itself. Taken for one gradient of `m` times the length, a weight of `m` would have a rate of `m^-½` times as much. Long
//! steps scatter the replicas, and the mean of scattered ones is none of the best: the loss is not linear. So steps are
//! shorter, by [`SHORTER`], and [`MOMENTUM`] between synchronisations makes up for it.

use super::super::kernel::{Group, LANES, Loop, Tally, add_scaled, scores, softmax};
use super::importance::Passage;
use crate::examples::Example;

/// A weight of `m` steps by this power of `1/m` of what it would ask for; 0.4 was best for 64 workers on MNIST.
const SHORTER: f32 = 0.4;
/// Which part of what a synchronisation changes goes on in the next. Of 0.8 and 0.9 the first was a little better for 64
/// workers on 540,000 examples, the second for 2 on 60,000.
pub(super) const MOMENTUM: f64 = 0.85;
/// Keeps a weight without gradients from infinite steps.
const SEEN_MIN: f32 = 1e-8;
/// No example takes more than this part of a weight away by regularisation.
const DECAY_MAX: f32 = 0.5;

/// How rows are stepped.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowTraits {
    /// One over the greatest magnitude of the feature.
    pub(super) inverse: f32,
    /// What regularisation takes of a weight for a step of 1 and a weight of 1.
    pub(super) decay: f32,
}

/// What a worker needs for steps, kept from one to the next.
#[derive(Default)]
pub(super) struct Scratch {
    errors: Vec<Group>,
    scores: Vec<Group>,
    pulls: Vec<Group>,
    /// The steps of the example's rows.
    steps: Vec<Group>,
    passage: Passage,
}

/// One example on rows of weights and of sums of squared gradients; the last row is the bias.
pub(super) struct Step<'a> {
    pub(super) weights: &'a mut [f32],
    pub(super) seen: &'a mut [f32],
    pub(super) traits: &'a [RowTraits],
    pub(super) example: Example<'a>,
    pub(super) label: u32,
    pub(super) rate: f32,
    pub(super) weight: f32,
    pub(super) scratch: &'a mut Scratch,
}

impl Loop for Step<'_> {
    type Output = Tally;

    /// Steps, and gives the loss met before.
    #[inline(always)]
    fn run<const GROUPS: usize>(self, classes: usize) -> Tally {
        let Self { weights, seen, traits, example, label, rate, weight, scratch } = self;
        let (weights, seen) = (weights.as_chunks_mut::<LANES>().0, seen.as_chunks_mut::<LANES>().0);
        let groups = if GROUPS == 0 { super::row_width(classes) / LANES } else { GROUPS };
        let bias = traits.len() - 1;
        let rate = rate * weight.max(1.0).powf(-SHORTER);
        let Scratch { errors, scores: scored, pulls, steps, passage } = scratch;
        errors.resize(groups, [0.0; LANES]);
        scores::<GROUPS>(weights, example.columns, example.values, errors);
        add_scaled(errors, &weights[bias * groups..][..groups], 1.0);
        scored.clone_from(errors);
        let mut tally = Tally::default();
        (tally.loss, _) = softmax(errors, classes, label);
        errors[label as usize / LANES][label as usize % LANES] -= 1.0;

        pulls.resize(groups, [0.0; LANES]);
        steps.resize((example.columns.len() + 1) * groups, [0.0; LANES]);
        let rows = Rows { traits, example, groups, rate, weight };
        if GROUPS == 0 {
            (0..groups).for_each(|group| rows.measure::<1>(group, seen, errors, steps, pulls));
        } else {
            rows.measure::<GROUPS>(0, seen, errors, steps, pulls);
        }
        passage.pass((scored, errors, pulls), (classes, label), weight);
        if GROUPS == 0 {
            (0..groups).for_each(|group| rows.shift::<1>(group, weights, &passage.moved, steps));
        } else {
            rows.shift::<GROUPS>(0, weights, &passage.moved, steps);
        }
        tally
    }
}

/// The rows of an example, which are gone through in bands of `BAND` groups of classes: what all rows have in common stays
/// in registers. These are no closures, since one that is not inlined is not compiled for the machine's instructions.
struct Rows<'a> {
    traits: &'a [RowTraits],
    example: Example<'a>,
    groups: usize,
    rate: f32,
    weight: f32,
}

impl Rows<'_> {
    /// Their numbers and values, the bias last.
    #[inline(always)]
    fn iter(&self) -> impl Iterator<Item = (usize, f32)> {
        let columns = self.example.columns.iter().map(|&column| column as usize);
        columns.zip(self.example.values.iter().copied()).chain([(self.traits.len() - 1, 1.0)])
    }

    /// Adds the squared gradients to those seen, and finds the steps of the rows and how they pull at the scores.
    #[inline(always)]
    fn measure<const BAND: usize>(
        &self,
        first: usize,
        seen: &mut [Group],
        errors: &[Group],
        steps: &mut [Group],
        pulls: &mut [Group],
    ) {
        let (mut squares, mut sums) = ([[0.0; LANES]; BAND], [[0.0; LANES]; BAND]);
        for (square, error) in squares.iter_mut().zip(&errors[first..]) {
            *square = error.map(|error| self.weight * error * error);
        }
        for ((row, value), steps) in self.iter().zip(steps.chunks_exact_mut(self.groups)) {
            let x = value * self.traits[row].inverse;
            let (seen, steps) = (&mut seen[row * self.groups + first..][..BAND], &mut steps[first..][..BAND]);
            for band in 0..BAND {
                for lane in 0..LANES {
                    let sum = seen[band][lane] + x * x * squares[band][lane];
                    let step = self.rate / (sum + SEEN_MIN).sqrt();
                    seen[band][lane] = sum;
                    steps[band][lane] = step;
                    sums[band][lane] += x * x * step;
                }
            }
        }
        pulls[first..][..BAND].copy_from_slice(&sums);
    }

    /// Moves the weights by what has passed over the example.
    #[inline(always)]
    fn shift<const BAND: usize>(&self, first: usize, weights: &mut [Group], moved: &[Group], steps: &[Group]) {
        let mut along = [[0.0; LANES]; BAND];
        along.copy_from_slice(&moved[first..][..BAND]);
        for ((row, value), steps) in self.iter().zip(steps.chunks_exact(self.groups)) {
            let RowTraits { inverse, decay } = self.traits[row];
            let (gain, decay) = (value * inverse * inverse, decay * self.weight);
            let (weights, steps) = (&mut weights[row * self.groups + first..][..BAND], &steps[first..][..BAND]);
            for band in 0..BAND {
                for lane in 0..LANES {
                    let (old, step) = (weights[band][lane], steps[band][lane]);
                    let shrink = if decay * step < DECAY_MAX { decay * step } else { DECAY_MAX };
                    weights[band][lane] = old - old * shrink - gain * step * along[band][lane];
                }
            }
        }
    }
}
