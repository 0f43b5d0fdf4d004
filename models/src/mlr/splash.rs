//! Softmax regression by the Splash engine: AdaGrad on weighted examples, the paper's first application.
//!
//! The shared variables are the weights and the sums of their squared gradients, rows of [`row_width`] floats for every
//! feature and one for the bias. `process` is a plain stochastic step (`step`); one of a large weight is not a long
//! step but many short ones at once (`importance`). Regularisation takes place where a feature occurs, as in
//! [`super::train`].

mod importance;
mod step;

use super::kernel::{self, Tally, dispatch};
use super::row_width;
use super::train::{Epoch, FeatureTraits, Part, Places, Quality, TrainError, Trained, check};
use crate::epoch::{Course, own};
use crate::examples::{Example, Examples};
use crate::mf::blocks::shuffled_labels;
use hemiola::fetch;
use hemiola::splash::{self, Array, DataSet, Elements, Shared};
use hemiola::{Deployment, Error, Observation};
use serde::Serialize;
use step::{MOMENTUM, RowTraits, Scratch, Step};

/// How to train.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Config {
    /// Weight of the squared weights in the objective.
    pub l2: f32,
    /// The size of first steps, for features whose greatest magnitude is 1.
    pub rate: f32,
    /// Passes over the examples.
    pub epochs: u32,
    /// Ends the training when the held-out loss has not fallen for so many epochs.
    pub patience: Option<u32>,
    /// How passes are made.
    #[serde(skip)]
    pub passes: splash::Options,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            l2: 1e-4,
            rate: 0.1,
            epochs: 20,
            patience: None,
            passes: splash::Options { synchronisations: 5, ..splash::Options::default() },
        }
    }
}

impl Config {
    /// Checks that the numbers can be.
    ///
    /// # Errors
    /// The first that cannot.
    pub fn validate(&self) -> Result<(), TrainError> {
        if !(self.rate.is_finite() && self.rate > 0.0) {
            return Err(TrainError::NotPositive { what: "the step size", value: self.rate });
        }
        if !(self.l2.is_finite() && self.l2 >= 0.0) {
            return Err(TrainError::Negative { what: "the regularisation", value: self.l2 });
        }
        if self.epochs == 0 {
            return Err(TrainError::Zero { what: "the number of epochs" });
        }
        Ok(())
    }
}

/// What is known of the examples before they are processed.
struct Known<'a> {
    train: &'a Examples,
    classes: usize,
    traits: Vec<RowTraits>,
    /// Held-out examples, by worker.
    test: Vec<Part>,
    test_count: usize,
}

/// The handles of the shared variables.
#[derive(Clone, Copy)]
struct Variables {
    weights: Array,
    /// Sums of squared gradients.
    seen: Array,
}

/// Trains a regression, and shows `observe` how far it is after every epoch. `test`, if there is one, is only evaluated.
///
/// # Errors
/// If there is nothing to learn from `train`, `test` has other classes, or the job fails.
pub fn train(
    config: &Config,
    deployment: &Deployment,
    train: &Examples,
    test: Option<&Examples>,
    mut observe: impl FnMut(&Epoch) + Send,
) -> Result<Trained, TrainError> {
    config.validate()?;
    check(train, test)?;
    if config.patience.is_some() && test.is_none_or(Examples::is_empty) {
        return Err(TrainError::NothingHeldOut);
    }
    let workers = deployment.workers();
    let known = Known::new(config, train, test, workers as usize);
    let width = row_width(known.classes);
    let mut shared = Shared::default();
    let variables = Variables {
        weights: shared.rows("weights", known.traits.len(), width),
        seen: shared.rows("squared gradients", known.traits.len(), width),
    };
    shared.smooth(variables.weights, MOMENTUM);
    let numbers: Vec<u32> = (0..train.len() as u32).collect();
    let ahead = |&number: &u32| {
        let Example { columns, values } = train.example(number as usize);
        kernel::fetch_entries(columns, values);
        fetch(train.labels().as_ptr().wrapping_add(number as usize), 1);
    };
    let elements = Elements { fetch: Some(&ahead), ..Elements::from(&numbers) };
    let mut epochs = Vec::new();
    let quality = |sums: &[f64]| known.quality(sums);
    let trained = splash::run_observed(
        deployment,
        &config.passes,
        &shared,
        elements,
        |set: &mut DataSet<'_, u32, ()>| known.program(config, variables, set),
        &mut |observation: &Observation| {
            let epoch = Epoch::from_report(observation, workers as usize, quality);
            observe(&epoch);
            epochs.push(epoch);
        },
    )?;
    let rows: Vec<f32> = trained.outcome.results[0].as_chunks().0.iter().map(|x| f32::from_le_bytes(*x)).collect();
    let weights = rows.chunks(width).flat_map(|row| &row[..known.classes]).copied().collect();
    Ok(Trained { classes: known.classes, weights, epochs, outcome: trained.outcome })
}

impl<'a> Known<'a> {
    fn new(config: &Config, train: &'a Examples, test: Option<&Examples>, workers: usize) -> Self {
        let of_row = |FeatureTraits { greatest, count }: FeatureTraits| {
            let inverse = if greatest > 0.0 { (1.0 / greatest).min(INVERSE_MAX) } else { 0.0 };
            let rarity = if count == 0 { 0.0 } else { train.len() as f32 / count as f32 };
            RowTraits { inverse, decay: config.l2 * rarity * inverse * inverse }
        };
        let traits = FeatureTraits::of(train).into_iter().map(of_row).collect();
        let mut places = Places::new(train.features());
        let mut cut = |test: &Examples| {
            let order = shuffled_labels(test.len() as u32, !config.passes.seed);
            let bound = |part: usize| order.len() * part / workers;
            (0..workers).map(|part| places.part(test, &order[bound(part)..bound(part + 1)])).collect()
        };
        Self {
            train,
            classes: train.classes.len(),
            traits,
            test: test.map_or_else(Vec::new, &mut cut),
            test_count: test.map_or(0, Examples::len),
        }
    }

    /// What one worker does.
    fn program(&self, config: &Config, variables: Variables, set: &mut DataSet<'_, u32, ()>) -> Result<Vec<u8>, Error> {
        let mut course = Course::default();
        let mut scratch = Scratch::default();
        let mut clock = 0;
        for epoch in 1..=config.epochs {
            let mut met = (0.0, 0.0);
            let process = |&number: &u32, weight: f64, shared: &mut Shared, _: &mut _| {
                met.0 += self.process(config.rate, number, weight as f32, variables, shared, &mut scratch);
                met.1 += 1.0;
            };
            let began = set.seconds();
            let pass = set.run_tested(process, |&number, shared| self.loss(number, variables, shared))?;
            course.train_seconds += set.seconds() - began;
            clock += pass.synchronisations;
            let weights = set.shared().mean(variables.weights);
            let tested = self.test_part(set.worker().index(), &weights);
            let penalty = if set.worker().index() == 0 { self.penalty(config.l2, &weights) } else { 0.0 };
            let sums = [met.0, met.1, penalty, tested.loss, tested.correct as f64];
            let report = set.report(&course.numbers(&set.split(), epoch, clock, &sums));
            if let Some(patience) = config.patience {
                let loss = self.quality(own(&set.totals(report)?)).test_loss.unwrap_or(f64::NAN);
                if !course.has_patience(patience, loss) {
                    break;
                }
            }
        }
        let mean = if set.worker().index() == 0 { set.shared().mean(variables.weights) } else { Vec::new() };
        Ok(mean.iter().flat_map(|weight| weight.to_le_bytes()).collect())
    }

    /// One step, for an example of any weight; the loss met.
    fn process(
        &self,
        rate: f32,
        number: u32,
        weight: f32,
        variables: Variables,
        shared: &mut Shared,
        scratch: &mut Scratch,
    ) -> f64 {
        let [weights, seen] = shared.edit_each([variables.weights, variables.seen]);
        let (example, label) = (self.train.example(number as usize), self.train.labels()[number as usize]);
        dispatch(self.classes, Step { weights, seen, traits: &self.traits, example, label, rate, weight, scratch }).loss
    }

    /// The loss of an example, of which only the rows that it has are read.
    fn loss(&self, number: u32, variables: Variables, shared: &Shared) -> f64 {
        let (example, label) = (self.train.example(number as usize), self.train.labels()[number as usize]);
        let width = row_width(self.classes);
        let bias = [(self.traits.len() - 1) as u32];
        let columns = || example.columns.iter().chain(&bias);
        let mut rows = vec![0.0; (example.columns.len() + 1) * width];
        for (row, &column) in rows.chunks_mut(width).zip(columns()) {
            shared.read(variables.weights, column as usize * width, row);
        }
        let places: Vec<u32> = (0..=example.columns.len() as u32).collect();
        let values = [example.values, &[1.0]].concat();
        kernel::probabilities(&rows, &places, &values, label, &mut vec![0.0; self.classes]).loss
    }

    fn test_part(&self, worker: usize, weights: &[f32]) -> Tally {
        let Some(part) = self.test.get(worker) else { return Tally::default() };
        let width = row_width(self.classes);
        let rows: Vec<f32> =
            part.rows.iter().flat_map(|&row| &weights[row as usize * width..][..width]).copied().collect();
        kernel::evaluate(&rows, part.block(), self.classes)
    }

    fn penalty(&self, l2: f32, weights: &[f32]) -> f64 {
        let features = &weights[..(self.traits.len() - 1) * row_width(self.classes)];
        0.5 * f64::from(l2) * features.iter().map(|&weight| f64::from(weight).powi(2)).sum::<f64>()
    }

    fn quality(&self, sums: &[f64]) -> Quality {
        let &[loss, met, penalty, test_loss, test_correct] = sums else { return Quality::default() };
        let tested = |sum: f64| (self.test_count > 0).then(|| sum / self.test_count as f64);
        Quality {
            objective: loss / met + penalty,
            penalty,
            test_loss: tested(test_loss),
            test_accuracy: tested(test_correct),
        }
    }
}

/// Features are scaled by no more than this, so that ones close to nothing do not overflow.
const INVERSE_MAX: f32 = 1e9;
