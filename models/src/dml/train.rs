//! Learns a projection by gradients of batches of pairs, on the threads of one process.
//!
//! A batch is cut into chunks whatever the number of threads; each finds the factors of its pairs, and these are applied in
//! the order of the chunks, so that one seed gives one projection.

use super::factors::{Factors, factors};
use super::mining::nearest;
use super::neighbours::Neighbours;
use super::pairs::Pair;
use super::principal;
use crate::StepSize;
use crate::epoch::{Course, Epoch};
use crate::examples::Examples;
use crate::matrix::Matrix;
use crate::mf::blocks::shuffle;
use crate::team::share_out;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// How to learn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Rows of the projection.
    pub dimension: usize,
    /// How much more a dissimilar pair counts than a similar one.
    pub weight: f32,
    /// Examples of a batch, or pairs if these are given; as many as memory has room for up to 1000, if not said.
    pub batch: Option<u32>,
    /// The size of steps, as a part of what would be right for pairs of mean squared length.
    pub step: StepSize,
    /// Passes over the examples, or over the pairs.
    pub epochs: u32,
    /// Ends early when the held-out accuracy has not risen for so many epochs.
    pub patience: Option<u32>,
    /// Neighbours that decide on a class.
    pub neighbours: usize,
    /// Fixes everything that is drawn at random.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            dimension: 10,
            weight: 1.0,
            batch: None,
            step: StepSize::Decay { rate: 0.5, factor: 0.8 },
            epochs: 10,
            patience: None,
            neighbours: 5,
            seed: 1,
        }
    }
}

/// How good a projection is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// The mean cost of the pairs met during the epoch.
    pub objective: f64,
    /// The share of some held-out examples whose class their neighbours tell.
    pub test_accuracy: Option<f64>,
}

impl Quality {
    /// From what pairs cost and how many there were, and how many examples were told right of how many.
    pub(super) fn from_sums(sums: &[f64]) -> Self {
        let at = |i: usize| sums.get(i).copied().unwrap_or(0.0);
        let test_accuracy = (at(3) > 0.0).then(|| at(2) / at(3));
        Self { objective: at(0) / at(1).max(1.0), test_accuracy }
    }

    /// The share of held-out examples that are told wrong; not a number where none are held out.
    pub(super) fn test_error(&self) -> f64 {
        self.test_accuracy.map_or(f64::NAN, |accuracy| 1.0 - accuracy)
    }
}

/// Why no projection could be learnt.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum TrainError {
    #[error("{dimension} dimensions are more than the {features} features; give fewer")]
    Dimension { dimension: usize, features: usize },
    #[error("all examples are the same; there is nothing to learn from them")]
    Same,
    #[error("a batch of one example has no pairs to learn from; give larger batches")]
    NoPairs,
    #[error("the cost is no longer a number in epoch {epoch}: the steps are too large; try a rate below {rate}")]
    Diverged { epoch: u32, rate: f32 },
    #[error("the epochs have more iterations than can be counted; use fewer, or larger batches")]
    Iterations,
    #[error(transparent)]
    Job(#[from] hemiola::Error),
}

/// Held-out examples that an epoch is judged by, at most.
pub(super) const JUDGED: usize = 1000;
/// Examples or pairs of a chunk.
const CHUNK: usize = 128;
/// Numbers of a batch at most, where nobody says how large it is.
const NUMBERS_MAX: usize = 1 << 26;

/// A learnt projection, and where it began.
#[derive(Clone, Debug, PartialEq)]
pub struct Trained {
    /// Row by row, with a row for each dimension.
    pub projection: Vec<f32>,
    /// As many principal directions, likewise.
    pub principal: Vec<f32>,
}

/// Learns a projection from pairs, or from labels if there are none; shows `observe` how far it is after every epoch.
///
/// # Errors
/// If the examples are not such that they can be told apart, or training diverges.
pub fn train(
    config: &Config,
    examples: &Examples,
    pairs: Option<&[Pair]>,
    test: Option<&Examples>,
    workers: u32,
    mut observe: impl FnMut(&Epoch<Quality>),
) -> Result<Trained, TrainError> {
    let mut began = Instant::now();
    let task = Task { config, examples, pairs, workers };
    let (dimension, features) = (config.dimension, examples.features());
    let Beginning { principal, mut projection, mut order, batch, rate, mut random } = task.begin()?;
    let mut course = Course::default();
    for epoch in 0..config.epochs {
        shuffle(&mut order, &mut random);
        let (mut cost, mut count) = (0.0, 0);
        for batch in order.chunks(batch as usize) {
            let met = task.step(&mut projection, batch, rate * config.step.at_epoch(epoch));
            cost += met.0;
            count += met.1;
        }
        task.check(cost, &projection, epoch)?;
        course.train_seconds += began.elapsed().as_secs_f64();
        let test_accuracy = test.map(|test| {
            let known = project(&projection, features, examples, examples.len());
            let asked = project(&projection, features, test, JUDGED);
            let labels = &test.labels()[..asked.len() / dimension];
            Neighbours::new(&known, dimension, examples.labels()).accuracy(&asked, labels, config.neighbours, workers)
        });
        let quality = Quality { objective: cost / f64::from(count.max(1)), test_accuracy };
        observe(&Epoch::alone(epoch + 1, course.train_seconds, quality));
        if !course
            .goes_on_by(config.patience.filter(|_| test.is_some()), || Ok::<_, TrainError>(quality.test_error()))?
        {
            break;
        }
        began = Instant::now();
    }
    Ok(Trained { projection, principal })
}

/// What is to be learnt from, whoever has the projection.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    pub(super) config: &'a Config,
    pub(super) examples: &'a Examples,
    pub(super) pairs: Option<&'a [Pair]>,
    /// Threads that compute.
    pub(super) workers: u32,
}

/// Where training begins.
pub(super) struct Beginning {
    pub(super) principal: Vec<f32>,
    pub(super) projection: Vec<f32>,
    /// The examples or pairs in random order, and how many are in a batch.
    pub(super) order: Vec<u32>,
    pub(super) batch: u32,
    /// The step size that is right for pairs of mean squared length.
    pub(super) rate: f32,
    random: Xoshiro256PlusPlus,
}

impl Task<'_> {
    /// Begins with the principal directions.
    pub(super) fn begin(&self) -> Result<Beginning, TrainError> {
        let Self { config, examples, pairs, .. } = *self;
        let (dimension, features) = (config.dimension, examples.features());
        if dimension > features {
            return Err(TrainError::Dimension { dimension, features });
        }
        let principal = principal::directions(examples, dimension, config.seed);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(config.seed);
        let mut order: Vec<u32> = (0..pairs.map_or(examples.len(), <[Pair]>::len) as u32).collect();
        shuffle(&mut order, &mut random);
        let most = (NUMBERS_MAX / features.max(1)).clamp(CHUNK, 1000) as u32;
        let batch = config.batch.unwrap_or(most);
        let mut projection = principal.clone();
        let rate = self.scale(&mut projection, &order[..order.len().min(batch as usize)])?;
        Ok(Beginning { principal, projection, order, batch, rate, random })
    }

    /// Scales a projection so that dissimilar pairs are about as far apart as they should be, and finds the step size.
    fn scale(&self, projection: &mut [f32], batch: &[u32]) -> Result<f32, TrainError> {
        let (features, dimension) = (self.examples.features(), self.config.dimension);
        let (mut lengths, mut count) = (0.0, 0);
        let mut distances = Vec::new();
        for (differences, similar) in self.batch(projection, batch) {
            let mut projected = vec![0.0; similar.len() * dimension];
            let rows = Matrix::rows_of(projection, features).transposed();
            Matrix::rows_of(&differences, features).times(rows, 0.0, &mut projected);
            let square = |numbers: &[f32]| numbers.iter().map(|number| number * number).sum::<f32>();
            lengths += f64::from(square(&differences));
            count += similar.len();
            let apart = projected.chunks_exact(dimension).zip(similar).filter(|(_, similar)| !similar);
            distances.extend(apart.map(|(projected, _)| square(projected)));
        }
        if lengths == 0.0 {
            return Err(if count == 0 { TrainError::NoPairs } else { TrainError::Same });
        }
        let middle = distances.len() / 2;
        if middle < distances.len() {
            let (_, median, _) = distances.select_nth_unstable_by(middle, f32::total_cmp);
            let factor = if *median > 0.0 { 1.0 / median.sqrt() } else { 1.0 };
            projection.iter_mut().for_each(|number| *number *= factor);
        }
        Ok((count as f64 / lengths) as f32)
    }

    /// Moves a projection by the mean gradient of a batch; what its pairs cost, and how many there were.
    fn step(&self, projection: &mut [f32], batch: &[u32], rate: f32) -> (f64, u32) {
        let found = self.factors(projection, batch);
        let count = found.iter().map(|factors| factors.us.len() / self.config.dimension).sum::<usize>();
        let mut cost = 0.0;
        for mut factors in found {
            cost += factors.cost;
            if !factors.us.is_empty() {
                factors.apply(projection, self.examples.features(), rate / count as f32);
            }
        }
        (cost, count as u32)
    }

    /// The factors of a batch, chunk by chunk.
    pub(super) fn factors(&self, projection: &[f32], batch: &[u32]) -> Vec<Factors> {
        let (features, weight) = (self.examples.features(), self.config.weight);
        share_out(self.workers as usize, self.batch(projection, batch), |(differences, similar)| {
            factors(projection, features, differences, &similar, weight)
        })
    }

    /// Checks that numbers are still numbers after an epoch.
    pub(super) fn check(&self, cost: f64, projection: &[f32], epoch: u32) -> Result<(), TrainError> {
        // Distances beyond all numbers find no pairs, and so cost nothing.
        let length: f32 = projection.iter().map(|number| number * number).sum();
        if !cost.is_finite() || !length.is_finite() {
            return Err(TrainError::Diverged { epoch: epoch + 1, rate: self.config.step.at_epoch(epoch) });
        }
        Ok(())
    }

    /// The differences of the pairs of a batch and which are similar, chunk by chunk.
    fn batch(&self, projection: &[f32], batch: &[u32]) -> Vec<(Vec<f32>, Vec<bool>)> {
        let examples = self.examples;
        if let Some(pairs) = self.pairs {
            let chunks = batch.chunks(CHUNK).collect();
            return share_out(self.workers as usize, chunks, |chunk: &[u32]| {
                let pairs = chunk.iter().map(|&at| pairs[at as usize]);
                differences(examples, pairs.map(|pair| ((pair.one, pair.other), pair.similar)))
            });
        }
        let dimension = self.config.dimension;
        let columns = by_feature(projection, examples.features());
        let mut projected = Vec::with_capacity(batch.len() * dimension);
        batch.iter().for_each(|&row| project_one(&columns, dimension, examples, row as usize, &mut projected));
        let labels: Vec<u32> = batch.iter().map(|&row| examples.labels()[row as usize]).collect();
        let chunks = (0..batch.len()).step_by(CHUNK).map(|first| first..batch.len().min(first + CHUNK)).collect();
        share_out(self.workers as usize, chunks, |chunk: std::ops::Range<usize>| {
            let found = nearest(&projected, dimension, &labels, chunk.clone());
            let pairs = batch[chunk].iter().zip(found).flat_map(|(&one, (alike, other))| {
                let alike = alike.map(|alike| ((one, batch[alike]), true));
                alike.into_iter().chain(other.map(|other| ((one, batch[other]), false)))
            });
            differences(examples, pairs)
        })
    }
}

/// The differences of pairs, one after the other, and which are similar.
fn differences(examples: &Examples, pairs: impl Iterator<Item = ((u32, u32), bool)>) -> (Vec<f32>, Vec<bool>) {
    let (mut numbers, mut kinds) = (Vec::new(), Vec::new());
    for ((one, other), similar) in pairs {
        let begin = numbers.len();
        numbers.resize(begin + examples.features(), 0.0);
        for (example, sign) in [(one, 1.0), (other, -1.0)] {
            let example = examples.example(example as usize);
            let entries = example.columns.iter().zip(example.values);
            entries.for_each(|(&column, value)| numbers[begin + column as usize] += sign * value);
        }
        kinds.push(similar);
    }
    (numbers, kinds)
}

/// The first so many examples under a projection of so many features, one after the other; features that it does not know
/// are left out.
///
/// # Panics
/// If there are no features.
#[must_use]
pub fn project(projection: &[f32], features: usize, examples: &Examples, count: usize) -> Vec<f32> {
    let (columns, dimension) = (by_feature(projection, features), projection.len() / features);
    let count = count.min(examples.len());
    let mut projected = Vec::with_capacity(count * dimension);
    (0..count).for_each(|row| project_one(&columns, dimension, examples, row, &mut projected));
    projected
}

/// So many features of the first so many examples as they are, zeros included, one after the other.
#[must_use]
pub fn unprojected(features: usize, examples: &Examples, count: usize) -> Vec<f32> {
    let mut numbers = vec![0.0; features * count.min(examples.len())];
    for (row, numbers) in numbers.chunks_exact_mut(features).enumerate() {
        let example = examples.example(row);
        for (&column, &value) in example.columns.iter().zip(example.values) {
            if let Some(number) = numbers.get_mut(column as usize) {
                *number = value;
            }
        }
    }
    numbers
}

/// The columns of a projection, one after the other.
fn by_feature(projection: &[f32], features: usize) -> Vec<f32> {
    (0..features).flat_map(|feature| projection.iter().skip(feature).step_by(features).copied()).collect()
}

fn project_one(columns: &[f32], dimension: usize, examples: &Examples, row: usize, out: &mut Vec<f32>) {
    let begin = out.len();
    out.resize(begin + dimension, 0.0);
    let example = examples.example(row);
    for (&column, &value) in example.columns.iter().zip(example.values) {
        if let Some(numbers) = columns.get(column as usize * dimension..(column as usize + 1) * dimension) {
            out[begin..].iter_mut().zip(numbers).for_each(|(out, number)| *out += value * number);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::Names;

    /// Two classes that differ in a feature of little variance, beside two of much that say nothing.
    pub(in super::super) fn examples(count: usize, seed: u64) -> Examples {
        let mut names = Names::default();
        for name in ["a", "b"] {
            names.intern(name).expect("few");
        }
        let mut examples = Examples::new(names);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut draw = || rand_core::Rng::next_u32(&mut random) as f32 / u32::MAX as f32 - 0.5;
        for at in 0..count {
            let label = at % 2;
            examples.push(label as u32, (0..).zip([30.0 * draw(), label as f32 + 0.8 * draw(), 27.0 * draw(), draw()]));
        }
        examples
    }

    fn accuracy(projection: &[f32], dimension: usize, train: &Examples, test: &Examples) -> f64 {
        let (known, asked) = (project(projection, 4, train, 9999), project(projection, 4, test, 9999));
        Neighbours::new(&known, dimension, train.labels()).accuracy(&asked, test.labels(), 5, 1)
    }

    #[test]
    fn neighbours_tell_classes_better_than_with_principal_components() {
        let (train_set, test) = (examples(600, 1), examples(200, 2));
        let config = Config { dimension: 3, batch: Some(200), epochs: 30, ..Config::default() };
        let trained = train(&config, &train_set, None, Some(&test), 1, |_| ()).expect("trained");
        let (learnt, principal) =
            (accuracy(&trained.projection, 3, &train_set, &test), accuracy(&trained.principal, 3, &train_set, &test));
        assert!(learnt > 0.95 && principal < 0.8, "{learnt} and {principal}");
        let again = train(&config, &train_set, None, None, 3, |_| ()).expect("trained");
        assert_eq!(again, trained, "the number of threads makes no difference");
    }

    #[test]
    fn pairs_are_enough() {
        let (train_set, test) = (examples(600, 1), examples(200, 2));
        let pair = |at: u32| {
            let (one, other) = (at % 600, (at * 7 + at / 600) % 600);
            Pair { one, other, similar: one % 2 == other % 2 }
        };
        let pairs: Vec<Pair> = (0..3000).map(pair).collect();
        let config = Config { dimension: 3, epochs: 40, weight: 2.0, batch: Some(100), ..Config::default() };
        let mut costs = Vec::new();
        let trained = train(&config, &train_set, Some(&pairs), None, 2, |epoch| costs.push(epoch.quality.objective));
        let trained = trained.expect("trained");
        assert!(costs[39] < costs[0], "{costs:?}");
        let learnt = accuracy(&trained.projection, 3, &train_set, &test);
        assert!(learnt > 0.85, "{learnt}");
    }

    #[test]
    fn what_cannot_be_learnt_from_is_refused() {
        let set = examples(50, 1);
        let refused = |config: Config, set: &Examples| match train(&config, set, None, None, 1, |_| ()) {
            Ok(_) => "nothing".to_owned(),
            Err(error) => error.to_string(),
        };
        let wide = Config { dimension: 5, ..Config::default() };
        assert_eq!(refused(wide, &set), "5 dimensions are more than the 4 features; give fewer");
        let mut same = Examples::new(set.classes.clone());
        (0..9).for_each(|at| same.push(at % 2, [(0, 1.0)]));
        let one = Config { dimension: 1, ..Config::default() };
        assert_eq!(refused(one, &same), "all examples are the same; there is nothing to learn from them");
        let single = Config { dimension: 1, batch: Some(1), ..Config::default() };
        assert_eq!(refused(single, &set), "a batch of one example has no pairs to learn from; give larger batches");
        let fast = Config { step: StepSize::Constant { rate: 1e30 }, dimension: 1, ..Config::default() };
        assert!(refused(fast, &set).starts_with("the cost is no longer a number in epoch"), "{}", refused(fast, &set));
    }
}
