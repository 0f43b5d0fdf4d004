//! The hot loops of dual coordinate ascent: steps on the dual variables of examples, and the sums of objective and dual.
//!
//! Dual variables are kept as logarithms, in rows of [`width`] floats. As with softmax regression by gradients there is
//! one body of each loop, compiled for several instruction sets and common numbers of classes, and all give the same bits.

use std::ops::Range;

use crate::machine;
use crate::mlr::kernel::{
    Block, ByGroups, Group, LANES, Loop, add_scaled, exponential, fetch_entries, greatest, scores,
};
use hemiola::{ahead, fetch};

/// Floats in the row of a feature or of a dual variable.
#[must_use]
pub fn width(classes: usize) -> usize {
    classes.next_multiple_of(LANES)
}

/// The logarithm of a probability that is none.
pub const NEVER: f32 = -200.0;
/// Newton steps for one dual variable at most; a few are the rule.
const NEWTON_MAX: u32 = 16;
/// A dual variable is found when its probabilities change by no more than this in all.
const FOUND: f32 = 1e-4;
/// A probability whose logarithm is by so much below where it is thought to end begins there instead.
const SLOW: f32 = 5.0;

/// What is to be solved.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// The examples, with the bias as the last entry of each if there is one.
    pub examples: Block<'a>,
    /// The squared length of each example.
    pub squares: &'a [f32],
    /// How many classes there are.
    pub classes: usize,
    /// What a dual variable is multiplied by in the weights, `1/(λn)`.
    pub scale: f32,
}

/// What came of going through examples, summed over them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// The losses.
    pub loss: f64,
    /// The entropies of the dual variables, or what was added to them.
    pub entropy: f64,
    /// The part of each example in the duality gap, before any step on it.
    pub gap: f64,
    /// How many examples were of the class with the greatest score.
    pub correct: u64,
}

/// Steps on the dual variables of some examples, one after the other; each is followed by its change of the weights.
///
/// `before` has the logarithms of all dual variables, `after` gets those of the examples of `order`, and `gaps` the part
/// of each of these in the duality gap when its turn came.
///
/// # Panics
/// If there is no such example, or rows are missing.
pub fn ascend(
    problem: Problem<'_>,
    order: &[u32],
    weights: &mut [f32],
    before: &[f32],
    after: &mut [f32],
    gaps: &mut [f32],
) -> Sums {
    dispatch(problem.classes, Ascend { problem, order, weights, before, after, gaps })
}

/// The pair of one example at these weights: moves the dual variable to where the dual is greatest, and puts into `u` what
/// the outer product with the example adds to the weights.
///
/// # Panics
/// As [`ascend`].
pub fn factor(problem: Problem<'_>, example: usize, weights: &[f32], dual: &mut [f32], u: &mut [f32]) -> Sums {
    dispatch(problem.classes, Factor { problem, example, weights, dual, u })
}

/// Adds to `weights` what the dual variables of some examples say they are.
///
/// # Panics
/// As [`ascend`].
pub fn add_weights(problem: Problem<'_>, range: Range<usize>, duals: &[f32], weights: &mut [f32]) {
    dispatch(problem.classes, AddWeights { problem, range, duals, weights });
}

/// The losses of some examples, and the entropies of their dual variables.
///
/// # Panics
/// As [`ascend`].
pub fn evaluate(problem: Problem<'_>, range: Range<usize>, duals: &[f32], weights: &[f32]) -> Sums {
    dispatch(problem.classes, Evaluate { problem, range, duals, weights })
}

fn dispatch<L: Loop>(classes: usize, work: L) -> L::Output {
    machine::run(ByGroups { groups: width(classes) / LANES, classes, work })
}

struct Ascend<'a> {
    problem: Problem<'a>,
    order: &'a [u32],
    weights: &'a mut [f32],
    before: &'a [f32],
    after: &'a mut [f32],
    gaps: &'a mut [f32],
}

impl Loop for Ascend<'_> {
    type Output = Sums;

    #[inline(always)]
    fn run<const GROUPS: usize>(self, classes: usize) -> Sums {
        let groups = if GROUPS == 0 { width(classes) / LANES } else { GROUPS };
        let weights = self.weights.as_chunks_mut::<LANES>().0;
        let before = self.before.as_chunks::<LANES>().0;
        let after = self.after.as_chunks_mut::<LANES>().0;
        let mut room = Room::new(groups);
        let mut sums = Sums::default();
        for (turn, (dual, gap)) in after.chunks_exact_mut(groups).zip(self.gaps).enumerate() {
            // Examples come in no order of memory.
            for &next in ahead(self.order, turn, 1) {
                let (columns, values) = self.problem.examples.entries(next as usize);
                fetch_entries(columns, values);
                fetch(before.as_ptr().wrapping_add(next as usize * groups), groups.div_ceil(2));
                fetch(self.problem.squares.as_ptr().wrapping_add(next as usize), 1);
                fetch(self.problem.examples.labels.as_ptr().wrapping_add(next as usize), 1);
            }
            let example = self.order[turn] as usize;
            dual.copy_from_slice(&before[example * groups..][..groups]);
            let found = step::<GROUPS>(self.problem, example, weights, dual, &mut room);
            *gap = found.gap as f32;
            sums.add(found);
            let (columns, values) = self.problem.examples.entries(example);
            add_outer::<GROUPS>(weights, columns, values, &room.change);
        }
        sums
    }
}

struct Factor<'a> {
    problem: Problem<'a>,
    example: usize,
    weights: &'a [f32],
    dual: &'a mut [f32],
    u: &'a mut [f32],
}

impl Loop for Factor<'_> {
    type Output = Sums;

    #[inline(always)]
    fn run<const GROUPS: usize>(self, classes: usize) -> Sums {
        let weights = self.weights.as_chunks::<LANES>().0;
        let mut room = Room::new(width(classes) / LANES);
        let dual = self.dual.as_chunks_mut::<LANES>().0;
        let sums = step::<GROUPS>(self.problem, self.example, weights, dual, &mut room);
        self.u.copy_from_slice(room.change.as_flattened());
        sums
    }
}

struct AddWeights<'a> {
    problem: Problem<'a>,
    range: Range<usize>,
    duals: &'a [f32],
    weights: &'a mut [f32],
}

impl Loop for AddWeights<'_> {
    type Output = Sums;

    #[inline(always)]
    fn run<const GROUPS: usize>(self, classes: usize) -> Sums {
        let groups = if GROUPS == 0 { width(classes) / LANES } else { GROUPS };
        let Self { problem, range, duals, weights } = self;
        let (duals, weights) = (duals.as_chunks::<LANES>().0, weights.as_chunks_mut::<LANES>().0);
        let mut pull = vec![[0.0; LANES]; groups];
        for example in range {
            for (pull, dual) in pull.iter_mut().zip(&duals[example * groups..]) {
                *pull = std::array::from_fn(|lane| -problem.scale * exponential(dual[lane]));
            }
            pull.as_flattened_mut()[problem.examples.labels[example] as usize] += problem.scale;
            let (columns, values) = problem.examples.entries(example);
            add_outer::<GROUPS>(weights, columns, values, &pull);
        }
        Sums::default()
    }
}

struct Evaluate<'a> {
    problem: Problem<'a>,
    range: Range<usize>,
    duals: &'a [f32],
    weights: &'a [f32],
}

impl Loop for Evaluate<'_> {
    type Output = Sums;

    #[inline(always)]
    fn run<const GROUPS: usize>(self, classes: usize) -> Sums {
        let groups = if GROUPS == 0 { width(classes) / LANES } else { GROUPS };
        let Self { problem, range, duals, weights } = self;
        let (duals, weights) = (duals.as_chunks::<LANES>().0, weights.as_chunks::<LANES>().0);
        let mut scored = vec![[0.0; LANES]; groups];
        let mut sums = Sums::default();
        for example in range {
            let (columns, values) = problem.examples.entries(example);
            scores::<GROUPS>(weights, columns, values, &mut scored);
            scored.as_flattened_mut()[problem.classes..].fill(f32::MIN);
            let label_score = scored.as_flattened()[problem.examples.labels[example] as usize];
            let (greatest, log_sum) = log_sum(&scored);
            let (mut entropy, mut towards) = ([0.0f32; LANES], [0.0f32; LANES]);
            for (dual, score) in duals[example * groups..].iter().zip(&scored) {
                for lane in 0..LANES {
                    let probability = exponential(dual[lane]);
                    let score = if score[lane] == f32::MIN { greatest } else { score[lane] };
                    entropy[lane] -= probability * dual[lane];
                    towards[lane] += probability * (greatest - score);
                }
            }
            let entropy = f64::from(entropy.iter().sum::<f32>());
            sums.add(Sums {
                loss: f64::from(greatest - label_score) + log_sum,
                entropy,
                gap: log_sum + f64::from(towards.iter().sum::<f32>()) - entropy,
                correct: u64::from(label_score == greatest),
            });
        }
        sums
    }
}

impl Sums {
    /// Adds those of other examples.
    #[inline(always)]
    pub fn add(&mut self, other: Self) {
        self.loss += other.loss;
        self.entropy += other.entropy;
        self.gap += other.gap;
        self.correct += other.correct;
    }
}

/// Room for one step.
struct Room {
    scored: Vec<Group>,
    before: Vec<Group>,
    /// `c` of [`step`].
    pull: Vec<Group>,
    /// What is added to the weights, but for the example.
    change: Vec<Group>,
}

impl Room {
    #[inline(always)]
    fn new(groups: usize) -> Self {
        let empty = || vec![[0.0; LANES]; groups];
        Self { scored: empty(), before: empty(), pull: empty(), change: empty() }
    }
}

/// The greatest score, and the logarithm of the sum of the exponentials of all scores less it.
#[inline(always)]
fn log_sum(scored: &[Group]) -> (f32, f64) {
    let greatest = greatest(scored);
    let mut sums = [0.0f32; LANES];
    for group in scored {
        for lane in 0..LANES {
            sums[lane] += exponential(group[lane] - greatest);
        }
    }
    (greatest, f64::from(sums.iter().sum::<f32>()).ln())
}

/// Moves the dual variable of an example to where the dual is greatest with all others fixed, and says what that adds to
/// the entropy.
///
/// With the scores `z` of the example, its dual variable `p°` so far and `q = ‖x‖²/(λn)`, the new one makes
/// `Σ p ln p − p·z + q/2 ‖p − p°‖²` least among probabilities: `ln p + q p − c + ν = 0` with `c = z + q p°`, and `ν` such
/// that they sum to one. Newton steps for all classes and `ν` together solve it. A step towards more is shortened from `δ`
/// to `2δ/(2 + δ)`, which is less than `ln(1 + δ)`: for a given `ν` no step then goes past its end.
#[inline(always)]
fn step<const GROUPS: usize>(
    problem: Problem<'_>,
    example: usize,
    weights: &[Group],
    dual: &mut [Group],
    room: &mut Room,
) -> Sums {
    let Problem { classes, scale, .. } = problem;
    let groups = if GROUPS == 0 { dual.len() } else { GROUPS };
    let (dual, scored) = (&mut dual[..groups], &mut room.scored[..groups]);
    let (before, pull, change) = (&mut room.before[..groups], &mut room.pull[..groups], &mut room.change[..groups]);
    let (columns, values) = problem.examples.entries(example);
    scores::<GROUPS>(weights, columns, values, scored);
    scored.as_flattened_mut()[classes..].fill(f32::MIN);
    let (greatest, log_sum) = log_sum(scored);
    let q = scale * problem.squares[example];
    let log_most = -(1.0 + q).ln();
    let label = problem.examples.labels[example] as usize;
    // What ν would be if the label's probability were to stay.
    let guess = scored.as_flattened()[label] - dual.as_flattened()[label];
    scored.as_flattened_mut()[classes..].fill(greatest);
    let (mut towards, mut entropy_before) = ([0.0f32; LANES], [0.0f32; LANES]);
    for group in 0..groups {
        for lane in 0..LANES {
            let (t, z) = (dual[group][lane], scored[group][lane]);
            let p = exponential(t);
            before[group][lane] = p;
            pull[group][lane] = z + q * p;
            towards[lane] += p * (greatest - z);
            entropy_before[lane] -= p * t;
            // From next to nothing a probability would need many steps.
            let ahead = z - guess;
            let least = if ahead < 0.0 { log_most + ahead } else { log_most };
            dual[group][lane] = if t < least - SLOW { least } else { t };
        }
    }
    let entropy_before: f32 = entropy_before.iter().sum();
    let gap = log_sum + f64::from(towards.iter().sum::<f32>()) - f64::from(entropy_before);
    for _ in 0..NEWTON_MAX {
        dual.as_flattened_mut()[classes..].fill(NEVER);
        let (mut all, mut slope, mut lean) = ([0.0f32; LANES], [0.0f32; LANES], [0.0f32; LANES]);
        for group in 0..groups {
            for lane in 0..LANES {
                let t = dual[group][lane];
                let p = exponential(t);
                let share = 1.0 / (1.0 + q * p);
                let wrong = t + q * p - pull[group][lane];
                all[lane] += p;
                slope[lane] += p * share;
                lean[lane] += p * share * wrong;
                change[group][lane] = p;
            }
        }
        let sum = |lanes: [f32; LANES]| lanes.iter().sum::<f32>();
        let nu = (sum(all) - 1.0 - sum(lean)) / sum(slope);
        let mut moved = [0.0f32; LANES];
        for group in 0..groups {
            for lane in 0..LANES {
                let (t, p) = (dual[group][lane], change[group][lane]);
                let delta = -(t + q * p - pull[group][lane] + nu) / (1.0 + q * p);
                let delta = if delta > 0.0 { 2.0 * delta / (2.0 + delta) } else { delta };
                let next = t + delta;
                let next = if next > 0.0 { 0.0 } else { next };
                moved[lane] += p * (next - t).abs();
                dual[group][lane] = if next < NEVER { NEVER } else { next };
            }
        }
        if sum(moved) < FOUND {
            break;
        }
    }
    dual.as_flattened_mut()[classes..].fill(NEVER);
    let mut all = [0.0f32; LANES];
    for group in dual.iter() {
        for lane in 0..LANES {
            all[lane] += exponential(group[lane]);
        }
    }
    let log_all = all.iter().sum::<f32>().ln();
    let mut entropy = [0.0f32; LANES];
    for group in 0..groups {
        for lane in 0..LANES {
            let t = dual[group][lane] - log_all;
            let t = if t > 0.0 { 0.0 } else { t };
            let t = if t < NEVER { NEVER } else { t };
            let p = exponential(t);
            dual[group][lane] = t;
            entropy[lane] -= p * t;
            change[group][lane] = scale * (before[group][lane] - p);
        }
    }
    let entropy: f32 = entropy.iter().sum();
    Sums { loss: 0.0, entropy: f64::from(entropy) - f64::from(entropy_before), gap, correct: 0 }
}

/// Adds the outer product of an example and `u`.
#[inline(always)]
fn add_outer<const GROUPS: usize>(rows: &mut [Group], columns: &[u32], values: &[f32], u: &[Group]) {
    let mut copy = [[0.0; LANES]; GROUPS];
    if GROUPS > 0 {
        copy.copy_from_slice(u);
    }
    for (&column, &value) in columns.iter().zip(values) {
        if GROUPS == 0 {
            add_scaled(&mut rows[column as usize * u.len()..][..u.len()], u, value);
        } else {
            add_scaled(&mut rows[column as usize * GROUPS..][..GROUPS], &copy, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::reference;
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    const FEATURES: usize = 6;

    #[test]
    fn every_number_of_classes_has_the_steps_of_the_reference() {
        for classes in [2, 3, 8, 10, 17, 32, 40] {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(classes as u64);
            let mut draw = || f64::from(random.next_u32()) / f64::from(u32::MAX) * 2.0 - 1.0;
            let columns: Vec<u32> = (0..FEATURES as u32).collect();
            let values: Vec<f32> = columns.iter().map(|_| draw() as f32).collect();
            let square: f32 = values.iter().map(|value| value * value).sum();
            let label = classes as u32 / 2;
            let mut weights = vec![0.0; FEATURES * width(classes)];
            weights.chunks_mut(width(classes)).for_each(|row| row[..classes].fill_with(|| 4.0 * draw() as f32));
            let plain: Vec<Vec<f64>> = weights
                .chunks(width(classes))
                .map(|row| row[..classes].iter().map(|&w| f64::from(w)).collect())
                .collect();
            let features = values.iter().map(|&value| f64::from(value)).collect();
            let scores = reference::scores(&plain, &reference::Plain { label: label as usize, features });
            for (scale, start) in [(0.01, 0.0), (1.0, 0.0), (1.0, 1.0), (300.0, 0.0), (300.0, 1.0)] {
                let problem = Problem {
                    examples: Block { labels: &[label], ends: &[FEATURES], columns: &columns, values: &values },
                    squares: &[square],
                    classes,
                    scale,
                };
                let mut before: Vec<f64> = (0..classes).map(|_| start * (3.0 * draw()).exp()).collect();
                before[label as usize] += 1.0;
                let sum: f64 = before.iter().sum();
                before.iter_mut().for_each(|p| *p /= sum);
                let mut dual = vec![NEVER; width(classes)];
                dual.iter_mut().zip(&before).for_each(|(t, p)| *t = (p.ln() as f32).max(NEVER));
                let mut u = vec![0.0; width(classes)];
                let found = factor(problem, 0, &weights, &mut dual, &mut u);
                let expected = reference::step(&scores, &before, f64::from(scale * square));
                let entropy = |dual: &[f64]| -> f64 { dual.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum() };
                for class in 0..classes {
                    let p = f64::from(dual[class]).exp();
                    let wanted = expected[class];
                    assert!((p - wanted).abs() < 1e-4, "{classes} classes, scale {scale}: {p} instead of {wanted}");
                    let change = f64::from(scale) * (before[class] - p);
                    assert!((f64::from(u[class]) - change).abs() < 1e-5 * f64::from(scale), "{classes} classes");
                }
                let grown = entropy(&expected) - entropy(&before);
                assert!(
                    (found.entropy - grown).abs() < 1e-3,
                    "{classes} classes: {} instead of {grown}",
                    found.entropy
                );
                let towards: f64 = before.iter().zip(&scores).map(|(p, z)| p * z).sum();
                let gap = scores.iter().map(|z| z.exp()).sum::<f64>().ln() - towards - entropy(&before);
                assert!((found.gap - gap).abs() < 1e-4, "{classes} classes: {} instead of {gap}", found.gap);
            }
        }
    }
}
