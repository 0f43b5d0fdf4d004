//! What an example of any weight does to its own scores: updates that know its importance, after Karampatziakis and
//! Langford.
//!
//! A step for an example of weight `h` should be what `n` steps of weight `h / n` are for large `n`. Then it is the same
//! whether `h` comes at once or in two halves, and it does not overshoot, however large it is. All these steps are along
//! the rows of one example, so the weights follow from the scores. With the step size `η` of a weight held fixed, the
//! score of class `c` obeys `s_c' = -q_c e_c`, where `q_c` is the sum of `η x²` over the example's features and
//! `e = softmax(s) - 1[label]` the error. For two classes this has a closed form (Lambert's W); for softmax it is solved
//! by Bogacki and Shampine's method of third order, whose steps adapt to an error of [`TOLERANCE`] in a score. A step that
//! moves no score by more than [`SMALL`] is taken at once.

use super::super::kernel::{Group, LANES, greater, softmax};
use std::array::from_fn;

/// How much a score may be off after a step of the method.
const TOLERANCE: f32 = 1e-4;
/// Up to which change of a score errors are taken not to change.
const SMALL: f32 = 1e-3;
/// After so many steps the rest of the weight is let go. Steps grow as the errors vanish, so that forty are a lot.
const STEPS_MAX: usize = 1000;

/// The errors of an example while a weight passes over it.
#[derive(Default)]
pub(super) struct Passage {
    /// `∫ e dt`: what the weights move along, times their steps and features.
    pub(super) moved: Vec<Group>,
    /// The same before a step.
    before: Vec<Group>,
    /// Errors at the stages of a step.
    stages: [Vec<Group>; 4],
    scores: Vec<Group>,
}

impl Passage {
    /// Lets `weight` pass over an example with these scores, whose errors are `errors`; `pulls` are the `q` of above.
    #[inline(always)]
    pub(super) fn pass(
        &mut self,
        (scores, errors, pulls): (&[Group], &[Group], &[Group]),
        (classes, label): (usize, u32),
        weight: f32,
    ) {
        let groups = scores.len();
        for vector in [&mut self.moved, &mut self.scores].into_iter().chain(&mut self.stages) {
            vector.clear();
            vector.resize(groups, [0.0; LANES]);
        }
        self.stages[0].copy_from_slice(errors);
        let fastest = largest(errors, pulls);
        let mut left = weight;
        let mut step = if fastest * left > 1.0 { 1.0 / fastest } else { left };
        for _ in 0..STEPS_MAX {
            if largest(&self.stages[0], pulls) * left <= SMALL {
                self.advance(left, [1.0, 0.0, 0.0]);
                return;
            }
            step = step.min(left);
            for (stage, part) in [(1, 0.5), (2, 0.75)] {
                self.errors_after(scores, pulls, stage, step * part, (classes, label));
            }
            self.before.clone_from(&self.moved);
            self.advance(step, [2.0 / 9.0, 1.0 / 3.0, 4.0 / 9.0]);
            self.errors_after(scores, pulls, 3, 0.0, (classes, label));
            let off = self.off(pulls) * step;
            if off > TOLERANCE {
                self.moved.clone_from(&self.before);
                step *= 0.5;
                continue;
            }
            left -= step;
            if left <= 0.0 {
                return;
            }
            self.stages.swap(0, 3);
            if off < TOLERANCE / 16.0 {
                step *= 2.0;
            }
        }
    }

    /// Puts the errors after `ahead` more of the weight into a stage, by the errors of the stage before.
    #[inline(always)]
    fn errors_after(
        &mut self,
        scores: &[Group],
        pulls: &[Group],
        stage: usize,
        ahead: f32,
        (classes, label): (usize, u32),
    ) {
        for group in 0..scores.len() {
            let (moved, slope) = (self.moved[group], self.stages[stage - 1][group]);
            self.scores[group] =
                from_fn(|lane| scores[group][lane] - pulls[group][lane] * (moved[lane] + ahead * slope[lane]));
        }
        softmax(&mut self.scores, classes, label);
        self.scores[label as usize / LANES][label as usize % LANES] -= 1.0;
        self.stages[stage].copy_from_slice(&self.scores);
    }

    /// Adds what comes of a part of the weight, as a mean of the errors of three stages.
    #[inline(always)]
    fn advance(&mut self, part: f32, means: [f32; 3]) {
        let [first, second, third, _] = &self.stages;
        for group in 0..self.moved.len() {
            let (moved, first, second, third) = (self.moved[group], first[group], second[group], third[group]);
            self.moved[group] = from_fn(|lane| {
                moved[lane] + part * (means[0] * first[lane] + means[1] * second[lane] + means[2] * third[lane])
            });
        }
    }

    /// How far the method of third order is from that of second order, in a score.
    #[inline(always)]
    fn off(&self, pulls: &[Group]) -> f32 {
        let [a, b, c, d] = &self.stages;
        let mut off = [0.0; LANES];
        for group in 0..pulls.len() {
            let (a, b, c, d) = (a[group], b[group], c[group], d[group]);
            off = from_fn(|lane| {
                let error = -5.0 / 72.0 * a[lane] + b[lane] / 12.0 + c[lane] / 9.0 - d[lane] / 8.0;
                greater((pulls[group][lane] * error).abs(), off[lane])
            });
        }
        off.into_iter().fold(0.0, greater)
    }
}

/// How fast the fastest score moves.
#[inline(always)]
fn largest(errors: &[Group], pulls: &[Group]) -> f32 {
    let mut most = [0.0; LANES];
    for (errors, pulls) in errors.iter().zip(pulls) {
        most = from_fn(|lane| greater((errors[lane] * pulls[lane]).abs(), most[lane]));
    }
    most.into_iter().fold(0.0, greater)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// The scores of classes after a weight has passed.
    fn after(scores: &[f64], pulls: &[f64], label: u32, weight: f32) -> Vec<f64> {
        let classes = scores.len();
        let pad = |numbers: &[f64]| -> Vec<Group> {
            let mut padded: Vec<f32> = numbers.iter().map(|x| *x as f32).collect();
            padded.resize(super::super::row_width(classes), 0.0);
            padded.as_chunks::<LANES>().0.to_vec()
        };
        let (padded, pulls) = (pad(scores), pad(pulls));
        let mut errors = padded.clone();
        softmax(&mut errors, classes, label);
        errors[label as usize / LANES][label as usize % LANES] -= 1.0;
        let mut passage = Passage::default();
        passage.pass((&padded, &errors, &pulls), (classes, label), weight);
        let (moved, pulls) = (passage.moved.as_flattened(), pulls.as_flattened());
        (0..classes).map(|c| scores[c] - f64::from(pulls[c]) * f64::from(moved[c])).collect()
    }

    /// The same by very many steps of the plain kind, in double precision.
    fn plainly(scores: &[f64], pulls: &[f64], label: usize, weight: f64) -> Vec<f64> {
        let steps = (weight * pulls.iter().fold(0.0, |a: f64, b| a.max(*b)) * 2000.0) as usize + 2000;
        let mut s = scores.to_vec();
        for _ in 0..steps {
            let sum: f64 = s.iter().map(|x| x.exp()).sum();
            let p: Vec<f64> = s.iter().map(|x| x.exp() / sum).collect();
            for (c, score) in s.iter_mut().enumerate() {
                *score -= weight / steps as f64 * pulls[c] * (p[c] - f64::from(u8::from(c == label)));
            }
        }
        s
    }

    fn differ(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn a_weight_at_once_is_that_weight_in_two_halves_and_many_small_steps() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut draw = || f64::from(random.next_u32()) / f64::from(u32::MAX);
        for case in 0..200 {
            let classes = 2 + case % 12;
            let scores: Vec<f64> = (0..classes).map(|_| 6.0 * draw() - 3.0).collect();
            let pulls: Vec<f64> = (0..classes).map(|_| 10f64.powf(4.0 * draw() - 3.0)).collect();
            let (label, weight) = (case % classes, 10f64.powf(4.0 * draw() - 2.0));
            let at_once = after(&scores, &pulls, label as u32, weight as f32);
            let half = after(&scores, &pulls, label as u32, weight as f32 / 2.0);
            let halves = after(&half, &pulls, label as u32, weight as f32 / 2.0);
            assert!(differ(&at_once, &halves) < 2e-3, "case {case}: {at_once:?}, in halves {halves:?}");
            let plain = plainly(&scores, &pulls, label, weight);
            assert!(differ(&at_once, &plain) < 5e-3, "case {case}: {at_once:?}, plainly {plain:?}");
        }
    }

    /// With two classes and the same pull, `x + e^x` of the margin grows by twice the pull times the weight: from there
    /// comes Lambert's W.
    #[test]
    fn two_classes_keep_to_the_closed_form() {
        for (margin, pull, weight) in [(-2.0, 0.5, 3.0), (0.0, 4.0, 64.0), (1.5, 0.01, 7.0), (-8.0, 20.0, 1000.0)] {
            let scores = after(&[margin, 0.0], &[pull, pull], 0, weight);
            let found = scores[0] - scores[1];
            let form = |x: f64| x + x.exp();
            let grown = form(margin) + 2.0 * pull * f64::from(weight);
            assert!((form(found) - grown).abs() < 1e-3 * grown.abs().max(1.0), "{found}: {} and {grown}", form(found));
        }
    }

    #[test]
    fn no_weight_overshoots() {
        for weight in [1.0, 1e3, 1e6, 1e9] {
            let scores = after(&[3.0, -1.0, 0.5], &[50.0, 3.0, 0.1], 1, weight);
            assert!(scores.iter().all(|x| x.is_finite()) && scores[1] > -1.0 && scores[0] < 3.0, "{scores:?}");
            assert!(scores[1] < 40.0, "a score beyond all certainty: {scores:?}");
        }
    }
}
