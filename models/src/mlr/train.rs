//! Trains multiclass logistic regression on a table: the same program on threads, over tcp and in the simulator.
//!
//! Every worker has a share of the examples. A clock is a part of an epoch, of one round or more: the worker reads the rows
//! of the features that the examples of a round have, takes its steps on its own copy, and adds what it changed to the table.

use super::kernel::{self, Block, RowStep, Tally};
use super::row_width;
use crate::StepSize;
use crate::epoch::Course;
use crate::examples::Examples;
use crate::mf::blocks::shuffled_labels;
use crate::resume::{self, Identity, Progress, ResumeError, identity, told};
use hemiola::checkpoint::Checkpoints;
use hemiola::{
    Consistency, Deployment, Error, Observation, Outcome, Precision, Rows, TableId, TableSchema, Values, Worker,
};
use serde::{Deserialize, Serialize};
use thiserror::Error as ThisError;

/// The table of weights: a row for each feature, and one for the bias behind them.
pub const WEIGHTS: TableId = TableId(0);

/// How to train.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Weight of the squared weights in the objective.
    pub l2: f32,
    /// Examples whose gradients are averaged for one step.
    pub batch: u32,
    /// The schedule of step sizes, for examples whose mean squared length is 1.
    pub step: StepSize,
    /// Passes over the examples.
    pub epochs: u32,
    /// How stale the weights may be.
    pub consistency: Consistency,
    /// How precisely weights travel.
    pub precision: Precision,
    /// Into how many clocks an epoch is cut.
    pub clocks_per_epoch: u32,
    /// What becomes of weights that several workers change in a clock.
    pub changes: Changes,
    /// How often in a clock a worker reads rows and adds its changes. Where rows are sent before a clock ends, it meets new
    /// ones each time; otherwise once is as good and faster.
    pub rounds_per_clock: u32,
    /// Ends the training when the held-out loss has not fallen for so many epochs.
    pub patience: Option<u32>,
    /// Fixes the order of the examples.
    pub seed: u64,
}

/// What becomes of weights that several workers change in a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Changes {
    /// They change by the mean: after many steps each worker has gone the whole way on its own copy, and together they
    /// would overshoot.
    Averaged,
    /// They change by the sum, as in one step for the examples of all.
    Added,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            l2: 1e-4,
            batch: 1,
            step: StepSize::Decay { rate: 3.0, factor: 0.75 },
            epochs: 20,
            consistency: Consistency::Essp { staleness: 2 },
            precision: Precision::F32,
            clocks_per_epoch: 32,
            changes: Changes::Averaged,
            rounds_per_clock: 1,
            patience: None,
            seed: 1,
        }
    }
}

/// Why a regression could not be trained.
#[derive(Debug, ThisError)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum TrainError {
    #[error("there is nothing to train on: there are no examples")]
    NoExamples,
    #[error("all examples to train on are of class '{class}'; expected two classes or more")]
    OneClass { class: String },
    #[error("{features} features of {classes} classes are more weights than the {LARGEST} that are supported")]
    TooLarge { features: usize, classes: usize },
    #[error("the held-out examples number their classes otherwise; read them with the classes of those to train on")]
    OtherClasses,
    #[error("{what} must be a number above zero, not {value}")]
    NotPositive { what: &'static str, value: f32 },
    #[error("{what} must be zero or a number above, not {value}")]
    Negative { what: &'static str, value: f32 },
    #[error(transparent)]
    Resume(#[from] ResumeError),
    #[error("step sizes of a stored procedure are for factorisations; use adaptive, constant or shrinking ones")]
    Procedure,
    #[error(
        "adaptive steps keep the squares of what they have met, which is not in factors; use constant or shrinking ones"
    )]
    Adaptive,
    #[error("errors are rounded to a number above 0 and at most 1, not {unit}")]
    Rounding { unit: f32 },
    #[error("the epochs have more iterations than can be counted; use fewer, or larger minibatches")]
    Iterations,
    #[error("{what} must be at least 1")]
    Zero { what: &'static str },
    #[error("early stopping needs held-out examples: give a test file or hold some out")]
    NothingHeldOut,
    #[error("the loss is no longer a number in epoch {epoch}: the steps are too large; try a step size below {rate}")]
    Diverged { epoch: u32, rate: f32 },
    #[error(transparent)]
    Job(#[from] Error),
}

/// As many numbers as a table may hold: sixteen gigabytes of them.
const LARGEST: u64 = 1 << 32;

impl Config {
    /// What must be the same in a run that goes on from a checkpoint, but for the data. How long to train may change.
    fn identity(&self) -> Identity {
        let Self { l2, batch, step, consistency, precision, seed, .. } = self;
        identity(
            "mlr",
            [
                ("l2", l2.to_string()),
                ("batch", batch.to_string()),
                ("steps", told(step)),
                ("consistency", told(consistency)),
                ("precision", told(precision)),
                ("seed", seed.to_string()),
            ],
        )
    }

    /// Checks that the numbers can be.
    ///
    /// # Errors
    /// The first that cannot.
    pub fn validate(&self) -> Result<(), TrainError> {
        if matches!(self.step, StepSize::AdaRevision { .. } | StepSize::AdaGrad { .. }) {
            return Err(TrainError::Procedure);
        }
        let rate = self.step.at_epoch(0);
        if !(rate.is_finite() && rate > 0.0) {
            return Err(TrainError::NotPositive { what: "the step size", value: rate });
        }
        if !(self.l2.is_finite() && self.l2 >= 0.0) {
            return Err(TrainError::Negative { what: "the regularisation", value: self.l2 });
        }
        for (what, value) in [
            ("the number of epochs", self.epochs),
            ("the number of clocks per epoch", self.clocks_per_epoch),
            ("the number of rounds per clock", self.rounds_per_clock),
            ("the batch", self.batch),
        ] {
            if value == 0 {
                return Err(TrainError::Zero { what });
            }
        }
        Ok(())
    }

    /// Into how many parts the examples of a worker are cut.
    fn parts(&self) -> usize {
        self.clocks_per_epoch as usize * self.rounds_per_clock as usize
    }
}

/// Some examples, and the rows of the table that they need: an entry's column counts among these.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) rows: Vec<u64>,
    /// How many workers change each row in the same round.
    sharers: Vec<u32>,
    labels: Vec<u32>,
    ends: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
}

impl Part {
    pub(super) fn block(&self) -> Block<'_> {
        Block { labels: &self.labels, ends: &self.ends, columns: &self.columns, values: &self.values }
    }

    /// How many entries the examples have, the bias among them.
    pub(super) fn entries(&self) -> usize {
        self.columns.len()
    }

    /// The same examples, with columns that count among all rows.
    pub(super) fn of_all_rows(&self) -> Self {
        let columns = self.columns.iter().map(|&place| self.rows[place as usize] as u32).collect();
        let Self { labels, ends, values, .. } = self;
        Self { labels: labels.clone(), ends: ends.clone(), columns, values: values.clone(), ..Self::default() }
    }
}

/// Examples, shuffled and cut for a number of workers.
#[derive(Debug)]
pub struct Arranged {
    pub(super) workers: usize,
    pub(super) classes: usize,
    /// What tells the classes from others of the same number.
    classes_checksum: u32,
    pub(super) features: usize,
    train_count: usize,
    pub(super) test_count: usize,
    /// By worker and round of an epoch.
    pub(super) train: Vec<Part>,
    /// By worker.
    pub(super) test: Vec<Part>,
    /// What is known of each feature, and of the bias behind them.
    traits: Vec<FeatureTraits>,
    /// The mean squared length of the training examples, with all features scaled to the greatest magnitude 1.
    mean_square: f32,
}

/// What the steps of a feature depend on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FeatureTraits {
    /// The greatest magnitude of its values.
    pub(super) greatest: f32,
    /// How many training examples have it, and zero for the bias, which is not regularised.
    pub(super) count: u32,
}

impl FeatureTraits {
    /// Those of each feature of examples, and of the bias behind them.
    pub(super) fn of(train: &Examples) -> Vec<Self> {
        let mut traits = vec![Self::default(); train.features()];
        for example in (0..train.len()).map(|example| train.example(example)) {
            for (&column, value) in example.columns.iter().zip(example.values) {
                let feature = &mut traits[column as usize];
                feature.greatest = feature.greatest.max(value.abs());
                feature.count += 1;
            }
        }
        traits.push(Self { greatest: 1.0, count: 0 });
        traits
    }
}

/// Checks that there is something to learn from `train`, and that `test` has the same classes.
pub(super) fn check(train: &Examples, test: Option<&Examples>) -> Result<(), TrainError> {
    let (classes, features) = (train.classes.len(), train.features());
    let first = *train.labels().first().ok_or(TrainError::NoExamples)?;
    if train.labels().iter().all(|&label| label == first) {
        return Err(TrainError::OneClass { class: train.classes.name(first).to_owned() });
    }
    if (features as u64 + 1).saturating_mul(row_width(classes) as u64) > LARGEST {
        return Err(TrainError::TooLarge { features, classes });
    }
    if test.is_some_and(|test| test.classes != train.classes) {
        return Err(TrainError::OtherClasses);
    }
    Ok(())
}

impl Arranged {
    /// Shuffles `train` and cuts it for `workers` workers; `test`, if there is one, is only evaluated.
    ///
    /// # Errors
    /// If there is nothing to learn from `train`, or `test` has other classes.
    pub fn new(train: &Examples, test: Option<&Examples>, workers: u32, config: &Config) -> Result<Self, TrainError> {
        config.validate()?;
        check(train, test)?;
        let (classes, features) = (train.classes.len(), train.features());
        let traits = FeatureTraits::of(train);
        let square = |(&column, value): (&u32, &f32)| f64::from(value / traits[column as usize].greatest).powi(2);
        let examples = (0..train.len()).map(|example| train.example(example));
        let squares: f64 = examples.flat_map(|example| example.columns.iter().zip(example.values).map(square)).sum();
        let mean_square = (1.0 + squares / train.len() as f64) as f32;
        let mut places = Places::new(features);
        let mut cut = |examples: &Examples, parts: usize, seed| -> Vec<Part> {
            let order = shuffled_labels(examples.len() as u32, seed);
            let bounds = |part: usize| order.len() * part / parts;
            (0..parts).map(|part| places.part(examples, &order[bounds(part)..bounds(part + 1)])).collect()
        };
        let workers = workers as usize;
        let mut parts = cut(train, workers * config.parts(), config.seed);
        count_sharers(&mut parts, config.parts(), features + 1);
        Ok(Self {
            workers,
            classes,
            classes_checksum: train.classes.checksum(),
            features,
            train_count: train.len(),
            test_count: test.map_or(0, Examples::len),
            train: parts,
            test: test.map_or_else(Vec::new, |test| cut(test, workers, !config.seed)),
            traits,
            mean_square,
        })
    }

    /// What tells the training examples from others, for people.
    fn identity(&self) -> String {
        let mut sum = crc32fast::Hasher::new();
        sum.update(&self.classes_checksum.to_le_bytes());
        for part in &self.train {
            sum.update(bytemuck::cast_slice(&part.labels));
            sum.update(bytemuck::cast_slice(&part.rows));
            sum.update(bytemuck::cast_slice(&part.ends));
            sum.update(bytemuck::cast_slice(&part.columns));
            sum.update(bytemuck::cast_slice(&part.values));
        }
        let Self { train_count, features, classes, .. } = self;
        format!("{train_count} of {features} features and {classes} classes (checksum {:08x})", sum.finalize())
    }

    /// The table for these examples.
    fn table(&self, config: &Config) -> TableSchema {
        TableSchema {
            consistency: config.consistency,
            precision: config.precision,
            ..TableSchema::dense("weights", self.features as u64 + 1, row_width(self.classes) as u32)
        }
    }
}

/// Counts how many workers change each row in the same round, from all parts of one worker after those of the other.
fn count_sharers(parts: &mut [Part], rounds: usize, rows: usize) {
    let mut counts = vec![0; rows];
    for round in 0..rounds {
        counts.fill(0);
        for part in parts.iter().skip(round).step_by(rounds).filter(|part| !part.labels.is_empty()) {
            part.rows.iter().for_each(|&row| counts[row as usize] += 1);
        }
        for part in parts.iter_mut().skip(round).step_by(rounds) {
            part.sharers = part.rows.iter().map(|&row| counts[row as usize]).collect();
        }
    }
}

const UNPLACED: u32 = u32::MAX;

/// Gives the features of one part after the other their places among its rows.
pub(super) struct Places {
    /// The place of each feature in the part at hand; the bias is the last feature.
    place_of: Vec<u32>,
}

impl Places {
    pub(super) fn new(features: usize) -> Self {
        Self { place_of: vec![UNPLACED; features + 1] }
    }

    pub(super) fn part(&mut self, examples: &Examples, chosen: &[u32]) -> Part {
        let bias = self.place_of.len() - 1;
        let known = |column: &&u32| (**column as usize) < bias;
        let mut rows = vec![bias as u64];
        self.place_of[bias] = 0;
        for &example in chosen {
            for &column in examples.example(example as usize).columns.iter().filter(known) {
                if self.place_of[column as usize] == UNPLACED {
                    self.place_of[column as usize] = 0;
                    rows.push(u64::from(column));
                }
            }
        }
        rows.sort_unstable();
        for (place, &row) in (0..).zip(&rows) {
            self.place_of[row as usize] = place;
        }
        let mut part = Part::default();
        for &example in chosen {
            let entries = examples.example(example as usize);
            for (&column, &value) in entries.columns.iter().zip(entries.values).filter(|(column, _)| known(column)) {
                part.columns.push(self.place_of[column as usize]);
                part.values.push(value);
            }
            part.columns.push(self.place_of[bias]);
            part.values.push(1.0);
            part.ends.push(part.columns.len());
            part.labels.push(examples.labels()[example as usize]);
        }
        rows.iter().for_each(|&row| self.place_of[row as usize] = UNPLACED);
        part.rows = rows;
        part
    }
}

/// The weights of a trained model, and how training went.
#[derive(Debug)]
pub struct Trained {
    /// How many classes there are.
    pub classes: usize,
    /// The weights of each feature, one for each class; those of the bias behind them.
    pub weights: Vec<f32>,
    /// One line per epoch.
    pub epochs: Vec<Epoch>,
    /// Staleness, and where the workers' time went.
    pub outcome: Outcome,
}

/// How good a regression is after an epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// The mean loss met during the epoch, and what regularisation adds to it.
    pub objective: f64,
    /// What regularisation adds: `l2 / 2` times the squared weights.
    pub penalty: f64,
    /// The mean held-out loss, where there are held-out examples.
    pub test_loss: Option<f64>,
    /// The share of held-out examples whose class is predicted, where there are any.
    pub test_accuracy: Option<f64>,
}

/// How far training is after an epoch.
pub type Epoch = crate::Epoch<Quality>;

/// Trains a regression, and shows `observe` how far it is after every epoch.
///
/// # Errors
/// If training diverges or the job fails.
pub fn train(
    config: &Config,
    deployment: &Deployment,
    data: &Arranged,
    observe: impl FnMut(&Epoch) + Send,
) -> Result<Trained, TrainError> {
    train_saved(config, deployment, None, data, observe)
}

/// As [`train`], with checkpoints after whole epochs. What must be the same in a run that goes on from one is added
/// to what `checkpoints` say of that.
///
/// # Errors
/// As [`train`]; and if the checkpoint to go on from is of another training.
pub fn train_saved(
    config: &Config,
    deployment: &Deployment,
    checkpoints: Option<&Checkpoints>,
    data: &Arranged,
    mut observe: impl FnMut(&Epoch) + Send,
) -> Result<Trained, TrainError> {
    config.validate()?;
    if config.patience.is_some() && data.test_count == 0 {
        return Err(TrainError::NothingHeldOut);
    }
    let mut epochs = Vec::new();
    let program = |worker: &mut Worker| WorkerProgram::new(config, data, worker).run(worker);
    let mut observer = |observation: &Observation| {
        let epoch = Epoch::from_report(observation, data.workers, |sums| Quality::from_sums(sums, data));
        observe(&epoch);
        epochs.push(epoch);
    };
    let identity = || [config.identity(), vec![("examples".to_owned(), data.identity())]].concat();
    let checkpoints = checkpoints.map(|checkpoints| (checkpoints, identity()));
    let tables = [data.table(config)];
    let place = (deployment, tables.as_slice());
    let mut outcome = resume::run::<TrainError>(place, checkpoints, config.clocks_per_epoch, &program, &mut observer)?;
    let bytes = std::mem::take(&mut outcome.results[0]);
    let weights = bytes.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect();
    Ok(Trained { classes: data.classes, weights, epochs, outcome })
}

/// What one worker of the job does.
struct WorkerProgram<'a> {
    config: &'a Config,
    data: &'a Arranged,
    worker: usize,
    steps: Vec<RowStep>,
    /// The rows of the current part, as they were read and as they are.
    before: Vec<f32>,
    after: Vec<f32>,
    course: Course,
}

impl<'a> WorkerProgram<'a> {
    fn new(config: &'a Config, data: &'a Arranged, worker: &Worker) -> Self {
        Self {
            config,
            data,
            worker: worker.id().index(),
            steps: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            course: Course::default(),
        }
    }

    fn parts(&self) -> &'a [Part] {
        let parts = self.config.parts();
        &self.data.train[self.worker * parts..][..parts]
    }

    fn run(mut self, worker: &mut Worker) -> Result<Vec<u8>, Error> {
        let mut all: Vec<u64> = self.parts().iter().flat_map(|part| part.rows.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        worker.intend(WEIGHTS, &Rows::List(&all))?;
        let epochs = self.config.epochs;
        let mut resumed = resume::resumed::<TrainError>(worker, &mut [], epochs)?;
        let first = resumed.map_or(0, |progress| progress.epochs - 1);
        for epoch in first..epochs {
            let loss = match resumed.take() {
                Some(progress) => self.go_on(progress),
                None => self.train_epoch(worker, epoch)?,
            };
            if !self.report(worker, epoch, loss)? {
                break;
            }
        }
        worker.clock()?;
        if self.worker == 0 { self.read_weights(worker) } else { Ok(Vec::new()) }
    }

    /// One pass over the worker's examples, which may be followed by a checkpoint; the sum of the losses met.
    fn train_epoch(&mut self, worker: &mut Worker, epoch: u32) -> Result<f64, Error> {
        let began = worker.seconds();
        let met = self.epoch(worker, epoch)?;
        self.course.train_seconds += worker.seconds() - began;
        if worker.checkpoint_due() {
            worker.save(&[&Progress { epochs: epoch + 1, met, course: self.course }.to_bytes()])?;
        }
        Ok(met)
    }

    /// Goes on after an epoch that is done; gives the losses met in it, which are reported again.
    fn go_on(&mut self, progress: Progress) -> f64 {
        self.course = progress.course;
        progress.met
    }

    /// One pass over the worker's examples; the sum of the losses met.
    fn epoch(&mut self, worker: &mut Worker, epoch: u32) -> Result<f64, Error> {
        let mut loss = 0.0;
        for rounds in self.parts().chunks(self.config.rounds_per_clock as usize) {
            for part in rounds.iter().filter(|part| !part.labels.is_empty()) {
                worker.get_dense(WEIGHTS, &Rows::List(&part.rows), &mut self.before)?;
                loss += self.train_part(part, epoch).loss;
                let changes = self.changes(part);
                worker.inc(WEIGHTS, &part.rows, &Values::dense(row_width(self.data.classes) as u32, changes))?;
                worker.work(part.labels.len() as u64)?;
            }
            worker.clock()?;
        }
        if !loss.is_finite() {
            let rate = self.config.step.at_epoch(epoch);
            return Err(Error::program(TrainError::Diverged { epoch: epoch + 1, rate }));
        }
        Ok(loss)
    }

    /// What the table gets of what the steps of a part have changed.
    fn changes(&self, part: &Part) -> Vec<f32> {
        let (classes, width) = (self.data.classes, row_width(self.data.classes));
        let mut changes: Vec<f32> = self.after.iter().zip(&self.before).map(|(after, before)| after - before).collect();
        if self.config.changes == Changes::Averaged {
            let shared = changes.chunks_mut(width).zip(&part.sharers).filter(|(_, sharers)| **sharers > 1);
            for (row, &sharers) in shared {
                row[..classes].iter_mut().for_each(|change| *change /= sharers as f32);
            }
        }
        changes
    }

    /// Takes the steps of a part on the copy of its rows.
    fn train_part(&mut self, part: &Part, epoch: u32) -> Tally {
        self.after.clone_from(&self.before);
        // As few as there are: what regularises the rows of an example is a part of what a whole batch does.
        let batch = part.labels.len().min(self.config.batch as usize);
        self.data.steps(self.config, (epoch, batch), &part.rows, &self.before, &mut self.steps);
        kernel::sgd_block(&mut self.after, &self.steps, part.block(), self.data.classes, batch)
    }

    /// Adds the worker's part to the epoch's report; with early stopping, says whether to go on after it.
    fn report(&mut self, worker: &mut Worker, epoch: u32, loss: f64) -> Result<bool, Error> {
        // What ends with this epoch is to be judged by the weights that it ends with.
        let settled = epoch + 1 == self.config.epochs || self.config.patience.is_some();
        let tested = self.test(worker, settled)?;
        let sums = [loss, self.penalty(worker)?, tested.loss, tested.correct as f64];
        let report = self.course.report(worker, epoch + 1, (epoch + 1) * self.config.clocks_per_epoch, &sums);
        let test_loss = |sums: &[f64]| Quality::from_sums(sums, self.data).test_loss.unwrap_or(f64::NAN);
        self.course.goes_on(worker, report, self.config.patience, test_loss)
    }

    /// Judges the weights by the worker's part of the held-out examples; `settled` waits for what all have changed.
    fn test(&mut self, worker: &mut Worker, settled: bool) -> Result<Tally, Error> {
        let Some(part) = self.data.test.get(self.worker).filter(|part| !part.labels.is_empty()) else {
            return Ok(Tally::default());
        };
        match settled.then(|| worker.get_latest(WEIGHTS, &part.rows)).transpose()? {
            Some(Values::Dense { numbers, .. }) => self.before = numbers.to_vec(),
            _ => worker.get_dense(WEIGHTS, &Rows::List(&part.rows), &mut self.before)?,
        }
        Ok(kernel::evaluate(&self.before, part.block(), self.data.classes))
    }

    /// The worker's part of what regularisation adds to the objective: that of its share of the features.
    fn penalty(&mut self, worker: &mut Worker) -> Result<f64, Error> {
        let Arranged { features, workers, classes, .. } = *self.data;
        let mut squares = 0.0;
        let share = features * self.worker / workers..features * (self.worker + 1) / workers;
        for first in share.clone().step_by(ROWS_PER_READ) {
            let some = first as u64..share.end.min(first + ROWS_PER_READ) as u64;
            worker.get_dense(WEIGHTS, &Rows::Range(some), &mut self.before)?;
            let weights = self.before.chunks(row_width(classes)).flat_map(|row| &row[..classes]);
            squares += weights.map(|&weight| f64::from(weight).powi(2)).sum::<f64>();
        }
        Ok(0.5 * f64::from(self.config.l2) * squares)
    }

    /// The weights of all rows, as bytes.
    fn read_weights(&self, worker: &mut Worker) -> Result<Vec<u8>, Error> {
        let (rows, classes) = (self.data.features as u64 + 1, self.data.classes);
        let mut bytes = Vec::with_capacity(rows as usize * classes * 4);
        for first in (0..rows).step_by(ROWS_PER_READ) {
            let some: Vec<u64> = (first..rows.min(first + ROWS_PER_READ as u64)).collect();
            if let Values::Dense { numbers, .. } = worker.get_latest(WEIGHTS, &some)? {
                for row in numbers.chunks(row_width(classes)) {
                    bytes.extend_from_slice(bytemuck::cast_slice(&row[..classes]));
                }
            }
        }
        Ok(bytes)
    }
}

impl Arranged {
    /// What the step size is multiplied by for the rows of the features, those of the bias last.
    pub(super) fn scales(&self) -> Vec<f32> {
        self.traits.iter().map(|feature| feature.scale() / self.mean_square).collect()
    }

    /// The steps of some rows in a clock of an epoch, for batches of so many examples.
    ///
    /// Features are treated as if all were scaled to the same greatest magnitude, 1, and a step size is a share of what
    /// would be right for an example of the mean squared length then, so that one suits most data. Regularisation takes
    /// place where a feature occurs, and as much more as it is rare, so that rows without examples need not be touched.
    fn steps(
        &self,
        config: &Config,
        (epoch, batch): (u32, usize),
        rows: &[u64],
        numbers: &[f32],
        out: &mut Vec<RowStep>,
    ) {
        let (rate, damping) = (config.step.at_epoch(epoch), config.step.damping());
        out.clear();
        for (&row, numbers) in rows.iter().zip(numbers.chunks(row_width(self.classes))) {
            let feature = self.traits[row as usize];
            let (scale, count) = (feature.scale(), feature.count);
            let rate = rate / self.mean_square * scale / (1.0 + damping * numbers[self.classes]).sqrt();
            let rarity = if count == 0 { 0.0 } else { self.train_count as f32 / count as f32 };
            let keep = 1.0 / (1.0 + rate * config.l2 * rarity / batch as f32);
            out.push(RowStep { rate, keep, seen: if damping > 0.0 { scale } else { 0.0 } });
        }
    }
}

impl FeatureTraits {
    /// What makes steps of the feature as large as if its greatest magnitude were 1.
    fn scale(self) -> f32 {
        (1.0 / (self.greatest * self.greatest)).min(SCALE_MAX)
    }
}

/// Features are scaled by no more than the square root of this, so that ones close to nothing do not overflow.
const SCALE_MAX: f32 = 1e18;

/// How many rows are read at a time where all are: few enough to need no memory to speak of, and many enough to make
/// the way to a server worthwhile.
const ROWS_PER_READ: usize = 4096;

impl Quality {
    /// From what the workers have reported of their examples and features.
    pub(super) fn from_sums(sums: &[f64], data: &Arranged) -> Self {
        let &[loss, penalty, test_loss, test_correct] = sums else { return Self::default() };
        let tested = |sum: f64| (data.test_count > 0).then(|| sum / data.test_count as f64);
        Self {
            objective: loss / data.train_count as f64 + penalty,
            penalty,
            test_loss: tested(test_loss),
            test_accuracy: tested(test_correct),
        }
    }
}
