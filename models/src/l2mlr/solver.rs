//! Dual coordinate ascent on the threads of one process, until the duality gap is small.
//!
//! Every worker has a share of the examples and of their dual variables. In a **round** each takes steps on some of its
//! own, on a copy of the weights that misses what the others do meanwhile; then the changes of all are added up, or as much
//! of them as makes the dual greatest along the way (CoCoA with the best step instead of a safe one). What comes out
//! depends on the number of workers and on the seed, but not on who was faster.
//!
//! Examples whose part in the gap is small are left out for some epochs. Before the gap says that all is done, the weights
//! are computed afresh from the dual variables, and the gap from all examples.

use std::ops::Range;
use std::time::Instant;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::kernel::{self, NEVER, Problem, Sums, width};
use crate::epoch::Epoch;
use crate::examples::Examples;
use crate::mf::blocks::shuffle;
use crate::mlr::kernel::Block;
use crate::team::share_out;

/// How to solve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Weight of the squared weights in the objective; one over the number of examples, if not said.
    pub lambda: Option<f64>,
    /// Whether every example has one more feature, which is 1.
    pub bias: bool,
    /// The duality gap at which to stop.
    pub gap: f64,
    /// Passes over the examples at most.
    pub epochs: u32,
    /// Fixes the order of the examples.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { lambda: None, bias: true, gap: 1e-3, epochs: 1000, seed: 1 }
    }
}

/// How good weights are after an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// The duality gap, or about what it is.
    pub gap: f64,
    /// The part of the examples that the epoch went through.
    pub visited: f64,
    /// What all examples say, where all were asked.
    #[serde(flatten)]
    pub whole: Option<Whole>,
}

/// What all examples say of weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Whole {
    /// The mean loss plus the penalty.
    pub objective: f64,
    /// The duality gap.
    #[serde(skip)]
    pub gap: f64,
    /// The mean loss.
    pub loss: f64,
    /// The share of the examples of the class with the greatest score.
    pub accuracy: f64,
}

/// What a fit came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Weights: one for each class in every row, rows for the features, and the bias behind them.
    pub weights: Vec<f32>,
    /// The weight of the squared weights.
    pub lambda: f64,
    /// The mean loss.
    pub loss: f64,
    /// The share of the examples of the class with the greatest score.
    pub accuracy: f64,
    /// The mean loss plus the penalty.
    pub objective: f64,
    /// By how much that exceeds the least there is, at most.
    pub gap: f64,
    /// Epochs done.
    pub epochs: u32,
    /// Whether the gap is as small as was asked for.
    pub converged: bool,
}

impl Fit {
    /// From rows as wide as the kernels take them, after so many epochs towards such a gap.
    pub(super) fn new(rows: &[f32], classes: usize, lambda: f64, whole: Whole, (epochs, asked): (u32, f64)) -> Self {
        let weights = rows.chunks_exact(width(classes)).flat_map(|row| &row[..classes]).copied().collect();
        let Whole { objective, gap, loss, accuracy } = whole;
        Self { weights, lambda, loss, accuracy, objective, gap, epochs, converged: gap <= asked }
    }
}

/// Examples as the kernels take them.
pub(super) struct Arranged {
    labels: Vec<u32>,
    ends: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
    squares: Vec<f32>,
    pub(super) classes: usize,
    /// Rows of weights.
    rows: usize,
}

impl Arranged {
    /// Those of `order`, in it.
    pub(super) fn new(examples: &Examples, order: &[u32], bias: bool) -> Self {
        let features = examples.features();
        let entries = order.iter().map(|&row| examples.example(row as usize).columns.len()).sum::<usize>();
        let extra = if bias { order.len() } else { 0 };
        let mut arranged = Self {
            labels: Vec::with_capacity(order.len()),
            ends: Vec::with_capacity(order.len()),
            columns: Vec::with_capacity(entries + extra),
            values: Vec::with_capacity(entries + extra),
            squares: Vec::with_capacity(order.len()),
            classes: examples.classes.len(),
            rows: features + 1,
        };
        for &row in order {
            let example = examples.example(row as usize);
            arranged.columns.extend_from_slice(example.columns);
            arranged.values.extend_from_slice(example.values);
            if bias {
                arranged.columns.push(features as u32);
                arranged.values.push(1.0);
            }
            let square: f64 = example.values.iter().map(|&value| f64::from(value).powi(2)).sum();
            arranged.squares.push((square + f64::from(u8::from(bias))) as f32);
            arranged.labels.push(examples.labels()[row as usize]);
            arranged.ends.push(arranged.columns.len());
        }
        arranged
    }

    pub(super) fn len(&self) -> usize {
        self.labels.len()
    }

    /// Their values in all, the bias among them.
    pub(super) fn entries(&self) -> usize {
        self.columns.len()
    }

    /// What is to be solved, where a dual variable is multiplied by `scale` in the weights.
    pub(super) fn problem(&self, scale: f32) -> Problem<'_> {
        let Self { labels, ends, columns, values, squares, classes, .. } = self;
        Problem { examples: Block { labels, ends, columns, values }, squares, classes: *classes, scale }
    }
}

/// What a worker keeps from round to round.
struct Share {
    range: Range<usize>,
    random: Xoshiro256PlusPlus,
    /// The examples of this epoch.
    order: Vec<u32>,
    /// The worker's copy of the weights.
    weights: Vec<f32>,
    /// The dual variables after the round.
    after: Vec<f32>,
    gaps: Vec<f32>,
    /// How many epochs each example is left out yet, and how many the next time.
    resting: Vec<(u8, u8)>,
}

/// An example rests if its part in the gap is below this part of the mean or of what is asked for, whichever is more.
const SMALL: f64 = 0.1;
/// Epochs that an example rests at most.
const REST_MAX: u8 = 8;
/// A round has so many entries for every row of the weights, which it costs to bring workers together.
const ENTRIES_PER_ROW: usize = 16;
/// Rounds in an epoch; where fewer would be worth it, one worker does everything.
const ROUNDS: Range<usize> = 8..64;
/// Fewer workers are one. Those that miss one another's steps need about 1.3 times the epochs and come together after every
/// round, so that two took 1.1 to 1.3 times as long as one on MNIST.
const WORKERS_MIN: usize = 3;

/// Fits weights to examples by so many threads, or by one where more would be no sooner, and shows `observe` how far it is
/// after every epoch.
///
/// # Panics
/// If there are no examples.
pub fn fit(examples: &Examples, config: &Config, workers: u32, mut observe: impl FnMut(&Epoch<Quality>)) -> Fit {
    assert!(!examples.is_empty(), "there are examples");
    let began = Instant::now();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(config.seed);
    let mut order: Vec<u32> = (0..examples.len() as u32).collect();
    shuffle(&mut order, &mut random);
    let data = Arranged::new(examples, &order, config.bias);
    let lambda = config.lambda.unwrap_or(1.0 / data.len() as f64);
    let mut solver = Solver::new(&data, lambda, workers as usize, &mut random);
    let mut whole = solver.evaluate();
    let mut epochs = 0;
    let mut look_at = 0;
    while whole.gap > config.gap && epochs < config.epochs {
        epochs += 1;
        let (gap, visited) = solver.epoch(config.gap);
        let mut quality = Quality { gap, visited, whole: None };
        // The gap met on the way is behind the one at the end.
        if (gap < 1.2 * config.gap && epochs >= look_at) || epochs == config.epochs {
            whole = solver.evaluate();
            look_at = epochs + 2;
            (quality.gap, quality.whole) = (whole.gap, Some(whole));
        }
        observe(&Epoch::alone(epochs, began.elapsed().as_secs_f64(), quality));
    }
    Fit::new(&solver.weights, data.classes, lambda, whole, (epochs, config.gap))
}

/// The logarithms of dual variables that are their examples' labels.
pub(super) fn labels_as_duals(data: &Arranged) -> Vec<f32> {
    let width = width(data.classes);
    let mut duals = vec![NEVER; data.len() * width];
    duals.chunks_exact_mut(width).zip(&data.labels).for_each(|(dual, &label)| dual[label as usize] = 0.0);
    duals
}

struct Solver<'a> {
    data: &'a Arranged,
    problem: Problem<'a>,
    lambda: f64,
    weights: Vec<f32>,
    /// The logarithms of the dual variables.
    duals: Vec<f32>,
    shares: Vec<Share>,
}

impl<'a> Solver<'a> {
    /// Begins with every example's label as its dual variable, which makes all weights zero.
    fn new(data: &'a Arranged, lambda: f64, workers: usize, random: &mut Xoshiro256PlusPlus) -> Self {
        let count = data.len();
        let worth_it = data.columns.len() / (ENTRIES_PER_ROW * data.rows * ROUNDS.start);
        let workers = workers.min(worth_it).min(count);
        let workers = if workers < WORKERS_MIN { 1 } else { workers };
        let share = |worker: usize| {
            let range = count * worker / workers..count * (worker + 1) / workers;
            Share {
                random: Xoshiro256PlusPlus::seed_from_u64(random.next_u64()),
                order: Vec::with_capacity(range.len()),
                weights: Vec::new(),
                after: Vec::new(),
                gaps: Vec::new(),
                resting: vec![(0, 1); range.len()],
                range,
            }
        };
        let shares: Vec<Share> = (0..workers).map(share).collect();
        let weights = vec![0.0; data.rows * width(data.classes)];
        let problem = data.problem((1.0 / (lambda * count as f64)) as f32);
        Self { data, problem, lambda, weights, duals: labels_as_duals(data), shares }
    }

    /// One pass over the examples that do not rest: about what the gap is, and the part of the examples passed.
    fn epoch(&mut self, target: f64) -> (f64, f64) {
        for share in &mut self.shares {
            share.order.clear();
            for (at, (rest, _)) in share.resting.iter_mut().enumerate() {
                if *rest == 0 {
                    share.order.push((share.range.start + at) as u32);
                } else {
                    *rest -= 1;
                }
            }
            shuffle(&mut share.order, &mut share.random);
            share.gaps.resize(share.order.len(), 0.0);
        }
        let visited: usize = self.shares.iter().map(|share| share.order.len()).sum();
        let entries = self.data.columns.len() as f64 / self.data.len() as f64 * visited as f64;
        let rounds = (entries / (ENTRIES_PER_ROW * self.data.rows * self.shares.len()) as f64) as usize;
        let rounds = if self.shares.len() == 1 { 1 } else { rounds.clamp(ROUNDS.start, ROUNDS.end) };
        let gap = (0..rounds).map(|round| self.round(round, rounds)).sum::<f64>() / self.data.len() as f64;
        let small = (SMALL * gap.max(target)) as f32;
        for share in &mut self.shares {
            for (&example, &gap) in share.order.iter().zip(&share.gaps) {
                let (rest, next) = &mut share.resting[example as usize - share.range.start];
                (*rest, *next) = if gap < small { (*next, (*next * 2).min(REST_MAX)) } else { (0, 1) };
            }
        }
        (gap, visited as f64 / self.data.len() as f64)
    }

    /// A part of an epoch, which all workers begin with the same weights; the sum of the parts in the gap.
    fn round(&mut self, round: usize, rounds: usize) -> f64 {
        let Self { problem, weights, duals, shares, .. } = self;
        let (problem, width) = (*problem, width(problem.classes));
        let part = |share: &Share| share.order.len() * round / rounds..share.order.len() * (round + 1) / rounds;
        let alone = shares.len() == 1;
        let work = |share: &mut Share| {
            let part = part(share);
            share.after.resize(part.len() * width, 0.0);
            let (order, gaps) = (&share.order[part.clone()], &mut share.gaps[part]);
            share.weights.clone_from(weights);
            kernel::ascend(problem, order, &mut share.weights, duals, &mut share.after, gaps)
        };
        let sums = share_out(shares.len(), shares.iter_mut().collect(), work);
        let mut total = Sums::default();
        sums.into_iter().for_each(|sums| total.add(sums));
        let step = if alone { 1.0 } else { best_step(weights, shares, total.entropy * f64::from(problem.scale)) };
        if alone {
            std::mem::swap(weights, &mut shares[0].weights);
        } else {
            for (at, weight) in weights.iter_mut().enumerate() {
                let change: f32 = shares.iter().map(|share| share.weights[at] - *weight).sum();
                *weight += step * change;
            }
        }
        for share in shares {
            let order = &share.order[part(share)];
            for (&example, after) in order.iter().zip(share.after.chunks_exact(width)) {
                let dual = &mut duals[example as usize * width..][..width];
                if step == 1.0 {
                    dual.copy_from_slice(after);
                } else {
                    for (dual, after) in dual.iter_mut().zip(after) {
                        let mean = (1.0 - step) * dual.exp() + step * after.exp();
                        *dual = if mean > 0.0 { mean.ln().max(NEVER) } else { NEVER };
                    }
                }
            }
        }
        total.gap
    }

    /// Computes the weights from the dual variables, and the objective and the gap of all examples.
    fn evaluate(&mut self) -> Whole {
        let Self { data, problem, lambda, weights, duals, shares } = self;
        let parts: Vec<&mut Share> = shares.iter_mut().collect();
        let workers = parts.len();
        let parts = share_out(workers, parts, |share| {
            share.weights.clear();
            share.weights.resize(weights.len(), 0.0);
            kernel::add_weights(*problem, share.range.clone(), duals, &mut share.weights);
            &share.weights
        });
        weights.fill(0.0);
        for part in parts {
            weights.iter_mut().zip(part).for_each(|(weight, part)| *weight += part);
        }
        let ranges: Vec<Range<usize>> = shares.iter().map(|share| share.range.clone()).collect();
        let sums = share_out(workers, ranges, |range| kernel::evaluate(*problem, range, duals, weights));
        let mut total = Sums::default();
        sums.into_iter().for_each(|sums| total.add(sums));
        let count = data.len() as f64;
        let squares: f64 = weights.iter().map(|&weight| f64::from(weight).powi(2)).sum();
        let penalty = 0.5 * *lambda * squares;
        let (loss, entropy) = (total.loss / count, total.entropy / count);
        let accuracy = total.correct as f64 / count;
        Whole { loss, accuracy, objective: loss + penalty, gap: loss + 2.0 * penalty - entropy }
    }
}

/// How much of the changes of all workers makes the dual greatest. Entropies are concave, so along the way they are at
/// least what a straight line says; `entropy` is what they grow by in all, times `1/(λn)`.
fn best_step(weights: &[f32], shares: &[Share], entropy: f64) -> f32 {
    let (mut towards, mut square) = (0.0, 0.0);
    for (at, &weight) in weights.iter().enumerate() {
        let change: f32 = shares.iter().map(|share| share.weights[at] - weight).sum();
        towards += f64::from(weight) * f64::from(change);
        square += f64::from(change).powi(2);
    }
    let best = if square > 0.0 { (entropy - towards) / square } else { 1.0 };
    best.clamp(1.0 / shares.len() as f64, 1.0) as f32
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::reference::{self, Plain};
    use super::*;
    use crate::Names;

    /// Examples whose class is mostly that of their strongest feature, as the readers give them and as formulas take them.
    pub(in super::super) fn examples(count: usize, features: usize, classes: usize) -> (Examples, Vec<Plain>) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut draw = || random.next_u32() as f32 / u32::MAX as f32;
        let mut names = Names::default();
        for class in 0..classes {
            names.intern(&class.to_string()).expect("few");
        }
        let (mut examples, mut plain) = (Examples::new(names), Vec::new());
        for _ in 0..count {
            let mut numbers: Vec<f32> = (0..features).map(|_| draw()).collect();
            let strongest = (0..features).max_by(|&one, &other| numbers[one].total_cmp(&numbers[other])).unwrap_or(0);
            let label = if draw() < 0.8 { strongest % classes } else { (draw() * classes as f32) as usize % classes };
            examples.push(label as u32, (0..).zip(numbers.iter().copied()));
            numbers.push(1.0);
            plain.push(Plain { label, features: numbers.iter().map(|&number| f64::from(number)).collect() });
        }
        (examples, plain)
    }

    pub(in super::super) fn rows(fit: &Fit, classes: usize) -> Vec<Vec<f64>> {
        fit.weights.chunks(classes).map(|row| row.iter().map(|&weight| f64::from(weight)).collect()).collect()
    }

    #[test]
    fn the_optimum_is_that_of_plain_ascent() {
        let (examples, plain) = examples(60, 4, 3);
        let config = Config { gap: 1e-6, ..Config::default() };
        let fit = fit(&examples, &config, 1, |_| ());
        let (dual, weights) = reference::ascend(&plain, 3, 1.0 / 60.0, 60);
        let primal = reference::objective(&weights, &plain, 1.0 / 60.0);
        assert!(fit.converged && primal - dual < 1e-6, "{fit:?}, {primal} and {dual}");
        assert!((fit.objective - primal).abs() < 3e-6, "{} instead of {primal}", fit.objective);
        let again = reference::objective(&rows(&fit, 3), &plain, 1.0 / 60.0);
        assert!((fit.objective - again).abs() < 1e-5, "{} instead of {again}", fit.objective);
    }

    #[test]
    fn workers_find_the_same_optimum_and_the_same_bits_each_time() {
        let (examples, plain) = examples(3000, 6, 4);
        let config = Config { gap: 1e-4, lambda: Some(1e-3), ..Config::default() };
        let fits = [1, 3, 4].map(|workers| fit(&examples, &config, workers, |_| ()));
        for (one, workers) in fits.iter().zip([1, 3, 4]) {
            assert!(one.converged, "{workers} workers: {} after {} epochs", one.gap, one.epochs);
            assert!((one.objective - fits[0].objective).abs() <= 1e-4);
            let found = reference::objective(&rows(one, 4), &plain, 1e-3);
            assert!((found - one.objective).abs() < 1e-5, "{workers} workers: {} instead of {found}", one.objective);
            assert_eq!(&fit(&examples, &config, workers, |_| ()), one, "{workers} workers");
        }
        assert_ne!(fits[0].weights, fits[1].weights, "three workers were worth it");
    }

    #[test]
    fn without_a_bias_its_weights_stay_zero() {
        let (examples, _) = examples(200, 4, 3);
        let fit = fit(&examples, &Config { bias: false, ..Config::default() }, 1, |_| ());
        assert!(fit.converged && fit.weights.len() == 5 * 3);
        assert_eq!(fit.weights[12..], [0.0; 3]);
        assert!(fit.weights[..12].iter().any(|weight| *weight != 0.0));
    }
}
