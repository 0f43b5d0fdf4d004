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

        // One group of classes after the other, so that what is common to all rows stays in registers.
        let count = example.columns.len() + 1;
        pulls.resize(groups, [0.0; LANES]);
        steps.resize(count * groups, [0.0; LANES]);
        for group in 0..groups {
            let (error, mut pull) = (errors[group], [0.0; LANES]);
            let steps = &mut steps[group * count..][..count];
            for_each_row(example, bias, |number, row, value| {
                let x = value * traits[row].inverse;
                let (square, seen) = (x * x, &mut seen[row * groups + group]);
                let before = *seen;
                *seen = std::array::from_fn(|lane| before[lane] + weight * square * error[lane] * error[lane]);
                let after = *seen;
                let step: Group = std::array::from_fn(|lane| rate / (after[lane] + SEEN_MIN).sqrt());
                steps[number] = step;
                pull = std::array::from_fn(|lane| pull[lane] + step[lane] * square);
            });
            pulls[group] = pull;
        }
        passage.pass((scored, errors, pulls), (classes, label), weight);
        for group in 0..groups {
            let moved = passage.moved[group];
            let steps = &steps[group * count..][..count];
            for_each_row(example, bias, |number, row, value| {
                let RowTraits { inverse, decay } = traits[row];
                let x = value * inverse;
                let (gain, decay) = (x * inverse, decay * weight);
                let (step, place) = (steps[number], row * groups + group);
                let old = weights[place];
                weights[place] = std::array::from_fn(|lane| {
                    let shrink = if decay * step[lane] < DECAY_MAX { decay * step[lane] } else { DECAY_MAX };
                    old[lane] - old[lane] * shrink - gain * step[lane] * moved[lane]
                });
            });
        }
        tally
    }
}

/// Calls `visit` for every row of an example, the bias last: with its position among them, its number, and the value.
#[inline(always)]
fn for_each_row(example: Example<'_>, bias: usize, mut visit: impl FnMut(usize, usize, f32)) {
    for (number, (&column, &value)) in example.columns.iter().zip(example.values).enumerate() {
        visit(number, column as usize, value);
    }
    visit(example.columns.len(), bias, 1.0);
}
