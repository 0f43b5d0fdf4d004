//! What `process` does with one example: AdaGrad on the rows of its features, for any weight.
//!
//! Features are taken as if scaled to the greatest magnitude 1, as everywhere in this model. A weight's step is the rate
//! over the root of its squared gradients, that of this example included.

use super::super::kernel::{Group, LANES, Loop, Tally, add_scaled, scores, softmax};
use super::importance::Passage;
use crate::examples::Example;

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
        let Scratch { errors, scores: scored, pulls, steps, passage } = scratch;
        errors.resize(groups, [0.0; LANES]);
        scores::<GROUPS>(weights, example.columns, example.values, errors);
        add_scaled(errors, &weights[bias * groups..][..groups], 1.0);
        scored.clone_from(errors);
        let mut tally = Tally::default();
        (tally.loss, _) = softmax(errors, classes, label);
        errors[label as usize / LANES][label as usize % LANES] -= 1.0;

        pulls.clear();
        pulls.resize(groups, [0.0; LANES]);
        steps.resize((example.columns.len() + 1) * groups, [0.0; LANES]);
        let entries = || {
            let own = example.columns.iter().zip(example.values).map(|(&column, &value)| (column as usize, value));
            own.chain([(bias, 1.0)])
        };
        for ((row, value), steps) in entries().zip(steps.chunks_exact_mut(groups)) {
            let x = value * traits[row].inverse;
            let (square, seen) = (x * x, &seen[row * groups..][..groups]);
            for group in 0..groups {
                for lane in 0..LANES {
                    let error = errors[group][lane];
                    let seen = seen[group][lane] + weight * square * error * error + SEEN_MIN;
                    steps[group][lane] = rate / seen.sqrt();
                    pulls[group][lane] += steps[group][lane] * square;
                }
            }
        }
        passage.pass::<GROUPS>((scored, errors, pulls), (classes, label), weight);
        let (moved, squares) = (&passage.moved[..groups], &passage.squares[..groups]);
        for ((row, value), steps) in entries().zip(steps.chunks_exact(groups)) {
            let RowTraits { inverse, decay } = traits[row];
            let x = value * inverse;
            let (gain, square, decay) = (x * inverse, x * x, decay * weight);
            let weights = &mut weights[row * groups..][..groups];
            let seen = &mut seen[row * groups..][..groups];
            for group in 0..groups {
                for lane in 0..LANES {
                    let step = steps[group][lane];
                    let shrink = if decay * step < DECAY_MAX { decay * step } else { DECAY_MAX };
                    let old = weights[group][lane];
                    weights[group][lane] = old - old * shrink - gain * step * moved[group][lane];
                    seen[group][lane] += square * squares[group][lane];
                }
            }
        }
        tally
    }
}
