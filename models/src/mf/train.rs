//! Trains a factorisation on tables: the same program on threads, over tcp and in the simulator.
//!
//! Two tables hold the rows of [`super`]. A worker owns the users whose ratings it has, and borrows their rows for the
//! whole run; item rows are shared. A clock is a part of an epoch, as [`Cut`] says: the worker goes through chunks of
//! items, each time borrowing one, and takes its steps for ratings there. Workers begin at different chunks, so that
//! they rarely want the same one. Where a stored procedure takes the items' steps, a clock is a part of the users
//! (`gradient`).

mod gradient;

use super::blocks::{self, Blocks};
use super::kernel::{self, Step};
use super::near::{Block, Stored};
use super::{Biases, Model, StepSize, Training, factor_columns, initial, row_width};
use crate::epoch::Course;
use crate::ratings::{RatingList, Ratings};
use crate::resume::{self, Identity, Progress, ResumeError, identity, told};
use gradient::Gradients;
use hemiola::checkpoint::Checkpoints;
use hemiola::{Consistency, Deployment, Error, Observation, Outcome, Precision, Rows, TableId, TableSchema, Worker};
use parking_lot::{RwLock, RwLockReadGuard};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use thiserror::Error as ThisError;

/// The table of user rows: worker `w` has the rows from `w` times the largest number of users a worker has.
pub const USERS: TableId = TableId(0);
/// The table of item rows.
pub const ITEMS: TableId = TableId(1);

/// How to train.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Number of factors.
    pub rank: usize,
    /// Whether users and items have biases.
    pub biases: Biases,
    /// Steps, regularisation and passes.
    pub training: Training,
    /// How stale the rows of items may be.
    pub consistency: Consistency,
    /// How precisely the rows of items travel.
    pub precision: Precision,
    /// Into how many clocks an epoch is cut.
    pub clocks_per_epoch: u32,
    /// What it is cut by; by users where a stored procedure takes steps.
    pub cut: Cut,
    /// How often a worker goes through the items in a clock. Where rows are sent before a clock ends, it meets
    /// new ones each time; otherwise once is as good and faster.
    pub rounds_per_clock: u32,
    /// Into how many chunks the items are cut, at least. With fewer than twice the threads of a process, those wait for
    /// one another.
    pub chunks: u32,
    /// Ends the training when the held-out error has not fallen for so many epochs.
    pub patience: Option<u32>,
    /// Fixes the initial rows and the order of the ratings.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rank: 32,
            biases: Biases::With,
            training: Training::default(),
            consistency: Consistency::Essp { staleness: 2 },
            precision: Precision::F32,
            clocks_per_epoch: 1,
            cut: Cut::Items,
            rounds_per_clock: 1,
            chunks: 16,
            patience: None,
            seed: 1,
        }
    }
}

/// What an epoch of several clocks is cut by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cut {
    /// By items: a worker trains on all its ratings of some chunks in a clock, and others are at other chunks. A row
    /// travels but once in an epoch from each worker, and few change it at a time.
    Items,
    /// By ratings: a clock has a part of the ratings of every item, as the papers' clocks have.
    Ratings,
}

/// Ratings, relabelled and cut into blocks for a number of workers.
#[derive(Debug)]
pub struct Arranged {
    /// Those to train on first, the others behind them. Workers hold the lock while they train; whoever gets it to
    /// write knows that the ratings are no longer needed.
    ratings: RwLock<Stored>,
    /// How many are to train on.
    train: usize,
    train_blocks: Blocks,
    test_blocks: Blocks,
    /// Per worker, where the ratings of each of its users begin, and the last one's end; where a stored procedure takes
    /// steps, and otherwise nothing.
    by_user: Vec<Vec<usize>>,
    user_labels: Vec<u32>,
    item_labels: Vec<u32>,
    user_starts: Vec<u32>,
    chunk_rows: u32,
    mean: f32,
    range: (f32, f32),
    /// Tells the ratings from others.
    checksum: u32,
}

/// The rows of a trained model, in the order of the ids, and how training went.
#[derive(Debug)]
pub struct Trained {
    /// Number of factors.
    pub rank: usize,
    /// Factors of the users, one row after the other.
    pub user_factors: Vec<f32>,
    /// Factors of the items, one row after the other.
    pub item_factors: Vec<f32>,
    /// Biases of the users, if the model has such.
    pub user_bias: Option<Vec<f32>>,
    /// Biases of the items, if the model has such.
    pub item_bias: Option<Vec<f32>>,
    /// The mean of the training ratings.
    pub mean: f32,
    /// The least and the greatest training rating.
    pub range: (f32, f32),
    /// One line per epoch.
    pub epochs: Vec<Epoch>,
    /// Staleness, and where the workers' time went.
    pub outcome: Outcome,
}

/// How good a factorisation is after an epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// The mean squared error met during the epoch.
    pub objective: f64,
    /// The held-out error, where there are held-out ratings.
    pub test_rmse: Option<f64>,
}

/// How far training is after an epoch.
pub type Epoch = crate::Epoch<Quality>;

/// Why a factorisation could not be trained.
#[derive(Debug, ThisError)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum TrainError {
    #[error("there is nothing to train on: all ratings are held out, or there are none")]
    NoRatings,
    #[error("rank must be between 1 and 4096, not {rank}")]
    Rank { rank: usize },
    #[error("{what} must be a number above zero, not {value}")]
    NotPositive { what: &'static str, value: f32 },
    #[error("{what} must be at least 1")]
    Zero { what: &'static str },
    #[error("early stopping needs held-out ratings: give a test file or hold some out")]
    NothingHeldOut,
    #[error("the error is no longer a number in epoch {epoch}: the steps are too large; try a step size below {rate}")]
    Diverged { epoch: u32, rate: f32 },
    #[error(transparent)]
    Resume(#[from] ResumeError),
    #[error(transparent)]
    Job(#[from] Error),
}

impl Config {
    /// Checks that the numbers can be.
    ///
    /// # Errors
    /// The first that cannot.
    pub fn validate(&self) -> Result<(), TrainError> {
        let rate = self.training.step.at_epoch(0);
        if !(1..=4096).contains(&self.rank) {
            return Err(TrainError::Rank { rank: self.rank });
        }
        if !(rate.is_finite() && rate > 0.0) {
            return Err(TrainError::NotPositive { what: "the step size", value: rate });
        }
        if !(self.training.l2.is_finite() && self.training.l2 >= 0.0) {
            return Err(TrainError::NotPositive { what: "the regularisation", value: self.training.l2 });
        }
        for (what, value) in [
            ("the number of epochs", self.training.epochs),
            ("the number of clocks per epoch", self.clocks_per_epoch),
            ("the number of rounds per clock", self.rounds_per_clock),
            ("the number of chunks", self.chunks),
        ] {
            if value == 0 {
                return Err(TrainError::Zero { what });
            }
        }
        Ok(())
    }

    /// Whether workers send gradients, of which a stored procedure makes steps.
    fn sends_gradients(&self) -> bool {
        matches!(self.training.step, StepSize::AdaRevision { .. } | StepSize::AdaGrad { .. })
    }

    /// With a stored procedure, too, a clock may come to every item.
    fn cut(&self) -> Cut {
        if self.sends_gradients() { Cut::Ratings } else { self.cut }
    }

    /// Into how many parts the ratings of a chunk are cut, of which a worker trains on one at a time.
    fn parts(&self) -> usize {
        let clocks = if self.cut() == Cut::Ratings { self.clocks_per_epoch } else { 1 };
        clocks as usize * self.rounds_per_clock as usize
    }

    /// How many of `items` a chunk has: with [`Cut::Items`] as many chunks are for every clock.
    fn chunk_rows(&self, items: u32) -> u32 {
        let unit = if self.cut() == Cut::Items { self.clocks_per_epoch } else { 1 };
        let chunks = self.chunks.checked_next_multiple_of(unit).unwrap_or(u32::MAX);
        items.div_ceil(chunks.min(items))
    }

    fn table(&self, name: &str, rows: u64, chunk_rows: u64, seed: u64) -> TableSchema {
        TableSchema {
            chunk_rows: Some(chunk_rows),
            consistency: self.consistency,
            init: initial(self.rank, self.training.initial_scale, seed),
            ..TableSchema::dense(name, rows, row_width(self.rank) as u32)
        }
    }

    /// The two tables for ratings cut for so many workers.
    #[must_use]
    pub fn tables(&self, data: &Arranged) -> Vec<TableSchema> {
        let per_worker = u64::from(data.users_per_worker());
        let workers = data.workers() as u64;
        let items = data.item_labels.len() as u32;
        let items = self.table("items", items.into(), self.chunk_rows(items).into(), !self.seed);
        // The rows of users travel once, when all is done, and then as they are.
        let users = self.table("users", workers * per_worker, per_worker, self.seed);
        let procedure = gradient::procedure(self.training.step, data.item_labels.len());
        let read_my_writes = procedure.is_none();
        vec![users, TableSchema { precision: self.precision, read_my_writes, procedure, ..items }]
    }
}

impl Config {
    /// What must be the same in a run that goes on from a checkpoint, but for the data. How long to train may change.
    fn identity(&self) -> Identity {
        let Self { rank, biases, training, consistency, precision, rounds_per_clock, chunks, seed, .. } = self;
        identity(
            "mf",
            [
                ("rank", rank.to_string()),
                ("biases", told(biases)),
                ("l2", training.l2.to_string()),
                ("an initial scale of", training.initial_scale.to_string()),
                ("steps", told(training.step)),
                ("consistency", told(consistency)),
                ("precision", told(precision)),
                ("chunks", chunks.to_string()),
                ("clocks cut by", told(self.cut())),
                ("rounds per clock", rounds_per_clock.to_string()),
                ("seed", seed.to_string()),
            ],
        )
    }
}

impl Arranged {
    /// Relabels `ratings`, of which the first `train` are for training, and cuts them for `workers` workers.
    ///
    /// # Errors
    /// If there are no training ratings.
    pub fn new(
        ratings: impl Into<RatingList>,
        train: usize,
        (users, items): (u32, u32),
        workers: u32,
        config: &Config,
    ) -> Result<Self, TrainError> {
        if train == 0 {
            return Err(TrainError::NoRatings);
        }
        let mut ratings = ratings.into();
        let (mean, range) = Ratings::mean_and_range(ratings.iter().take(train));
        let checksum = ratings.checksum();
        let to_train = ratings.iter().take(train);
        let (user_labels, user_starts) = blocks::assign_users(to_train, users, workers as usize, config.seed);
        let item_labels = blocks::shuffled_labels(items, config.seed.wrapping_add(1));
        for place in 0..ratings.len() {
            let [user, item] = ratings.pair(place);
            ratings.set_pair(place, [user_labels[user as usize], item_labels[item as usize]]);
        }
        // A user is solved for with all items at once.
        let chunk_rows = if config.sends_gradients() { items } else { config.chunk_rows(items) };
        let all = ratings.len();
        let mut arrange = |range| blocks::arrange(&mut ratings, range, &user_starts, (items, chunk_rows), config.seed);
        let (train_blocks, test_blocks) = (arrange(0..train), arrange(train..all));
        let mut sort = |(worker, ends): (usize, &[u32])| {
            blocks::sort_by_user(&mut ratings, train_blocks.worker_range(worker), ends[1] - ends[0])
        };
        let workers = user_starts.windows(2).enumerate().filter(|_| config.sends_gradients());
        let by_user = workers.map(&mut sort).collect();
        Ok(Self {
            ratings: RwLock::new(Stored::new(ratings)),
            train,
            train_blocks,
            test_blocks,
            by_user,
            user_labels,
            item_labels,
            user_starts,
            chunk_rows,
            mean,
            range,
            checksum,
        })
    }

    fn workers(&self) -> usize {
        self.user_starts.len() - 1
    }

    fn users_of(&self, worker: usize) -> u32 {
        self.user_starts[worker + 1] - self.user_starts[worker]
    }

    fn users_per_worker(&self) -> u32 {
        (0..self.workers()).map(|worker| self.users_of(worker)).max().unwrap_or(1).max(1)
    }

    /// What tells the ratings from others, for people.
    fn identity(&self) -> String {
        let (users, items) = (self.user_labels.len(), self.item_labels.len());
        format!("{} of {users} users and {items} items (checksum {:08x})", self.train, self.checksum)
    }

    fn chunks(&self) -> usize {
        self.item_labels.len().div_ceil(self.chunk_rows as usize)
    }

    /// The first item of a chunk, as a row of the table.
    fn first_row(&self, chunk: usize) -> u64 {
        chunk as u64 * u64::from(self.chunk_rows)
    }

    /// The distinct items of some ratings of a chunk, as rows of the table.
    fn items_of(&self, chunk: usize, ratings: Block<'_>) -> Vec<u64> {
        let first = self.first_row(chunk);
        let mut here = vec![false; self.chunk_rows as usize];
        ratings.iter().for_each(|rating| here[rating.item as usize] = true);
        (first..).zip(here).filter(|(_, here)| *here).map(|(row, _)| row).collect()
    }
}

/// Trains a factorisation, and shows `observe` how far it is after every epoch. The ratings are freed before the model
/// is read, so that it is never in memory twice beside them.
///
/// # Errors
/// If the configuration cannot be, training diverges, or the job fails.
pub fn train(
    config: &Config,
    deployment: &Deployment,
    data: Arranged,
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
    data: Arranged,
    mut observe: impl FnMut(&Epoch) + Send,
) -> Result<Trained, TrainError> {
    config.validate()?;
    if config.patience.is_some() && (0..data.workers()).all(|worker| data.test_blocks.worker_range(worker).is_empty()) {
        return Err(TrainError::NothingHeldOut);
    }
    let mut epochs = Vec::new();
    let program = |worker: &mut Worker| WorkerProgram::new(config, &data, worker).run(worker);
    let tables = config.tables(&data);
    let mut observer = |observation: &Observation| {
        let epoch = Epoch::from_report(observation, data.workers(), Quality::from_sums);
        observe(&epoch);
        epochs.push(epoch);
    };
    let identity = || [config.identity(), vec![("ratings".to_owned(), data.identity())]].concat();
    let checkpoints = checkpoints.map(|checkpoints| (checkpoints, identity()));
    let place = (deployment, tables.as_slice());
    let mut outcome = resume::run::<TrainError>(place, checkpoints, config.clocks_per_epoch, &program, &mut observer)?;
    let rows = std::mem::take(&mut outcome.results[0]);
    Ok(data.unpack(config, rows, epochs, outcome))
}

/// What one worker of the job does.
struct WorkerProgram<'a> {
    config: &'a Config,
    data: &'a Arranged,
    ratings: Option<RwLockReadGuard<'a, Stored>>,
    model: Model,
    worker: usize,
    /// Where a stored procedure takes the items' steps.
    gradients: Option<Gradients<'a>>,
    /// Per part of the ratings and chunk, the items that this worker's ratings name.
    wanted: Vec<Vec<u64>>,
    course: Course,
}

impl<'a> WorkerProgram<'a> {
    fn new(config: &'a Config, data: &'a Arranged, worker: &Worker) -> Self {
        let model = Model { rank: config.rank, biases: config.biases, mean: data.mean };
        let id = worker.id().index();
        let ratings = data.ratings.read();
        let items = data.item_labels.len();
        let with = |starts| Gradients::new((model, config.training.l2), (&ratings, starts), items, config.parts());
        let gradients = data.by_user.get(id).map(|starts| with(starts));
        let course = Course::default();
        let wanted = Vec::new();
        let mut program = Self { config, data, ratings: Some(ratings), model, worker: id, gradients, wanted, course };
        if program.gradients.is_none() {
            let parts = (0..config.parts()).flat_map(|part| (0..data.chunks()).map(move |chunk| (part, chunk)));
            program.wanted = parts.map(|(part, chunk)| data.items_of(chunk, program.part(part, chunk))).collect();
        }
        program
    }

    /// A part of the worker's ratings of a chunk.
    fn part(&self, part: usize, chunk: usize) -> Block<'_> {
        let block = self.data.train_blocks.range(self.worker, chunk);
        let parts = self.config.parts();
        self.block(block.start + block.len() * part / parts..block.start + block.len() * (part + 1) / parts)
    }

    /// The parts of chunks that a clock of every epoch has, in order: which part, and of which chunk.
    fn parts_of(&self, clock: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (chunks, rounds) = (self.data.chunks(), self.config.rounds_per_clock as usize);
        let clocks = self.config.clocks_per_epoch as usize;
        let first = self.worker * chunks / self.data.workers();
        let (turns, parts) = match self.config.cut() {
            Cut::Items => (chunks * clock / clocks..chunks * (clock + 1) / clocks, 0..rounds),
            Cut::Ratings => (0..chunks, clock * rounds..(clock + 1) * rounds),
        };
        parts.flat_map(move |part| turns.clone().map(move |turn| (part, (first + turn) % chunks)))
    }

    fn run(mut self, worker: &mut Worker) -> Result<Vec<u8>, Error> {
        let users = self.user_rows();
        let mut all: Vec<u64> = match &self.gradients {
            Some(gradients) => gradients.wanted().collect(),
            None => self.wanted.iter().flatten().copied().collect(),
        };
        all.sort_unstable();
        all.dedup();
        worker.intend(ITEMS, &Rows::List(&all))?;
        let mut lease = if users.is_empty() { None } else { Some(worker.lease(USERS, &Rows::Range(users))?) };
        let rows = lease.as_mut().map_or(&mut [][..], |lease| lease.chunk_mut(0));
        let epochs = self.config.training.epochs;
        let mut rest = [bytemuck::cast_slice_mut(rows), bytemuck::cast_slice_mut(self.kept())];
        let mut resumed = resume::resumed::<TrainError>(worker, &mut rest, epochs)?;
        let first = resumed.map_or(0, |progress| progress.epochs - 1);
        for epoch in first..epochs {
            let error = match resumed.take() {
                Some(progress) => self.go_on(progress),
                None => self.train_epoch(worker, epoch, rows)?,
            };
            if !self.report(worker, epoch, error, rows)? {
                break;
            }
        }
        if let Some(lease) = lease {
            worker.give_back(USERS, lease)?;
        }
        self.ratings = None;
        worker.clock()?;
        // Everyone keeps its clock within reach until worker 0 has read the model.
        let result = if self.worker == 0 { self.read_model(worker)? } else { Vec::new() };
        Ok(result)
    }

    fn train_epoch(&mut self, worker: &mut Worker, epoch: u32, users: &mut [f32]) -> Result<f64, Error> {
        let began = worker.seconds();
        let error = self.epoch(worker, epoch, users)?;
        self.course.train_seconds += worker.seconds() - began;
        if worker.checkpoint_due() {
            let progress = Progress { epochs: epoch + 1, met: error, course: self.course };
            let kept = bytemuck::cast_slice(self.kept());
            worker.save(&[&progress.to_bytes(), bytemuck::cast_slice(users), kept])?;
        }
        Ok(error)
    }

    /// What is kept beside the users' rows, where a procedure takes the items' steps.
    fn kept(&mut self) -> &mut [f32] {
        self.gradients.as_mut().map_or(&mut [], |gradients| &mut gradients.kept)
    }

    /// Goes on after an epoch that is done; gives the errors met in it, which are reported again.
    fn go_on(&mut self, progress: Progress) -> f64 {
        self.course = progress.course;
        progress.met
    }

    fn user_rows(&self) -> Range<u64> {
        let first = self.worker as u64 * u64::from(self.data.users_per_worker());
        first..first + u64::from(self.data.users_of(self.worker))
    }

    /// Some of the ratings, of which those held out stand behind the others.
    fn block(&self, range: Range<usize>) -> Block<'_> {
        self.ratings.as_ref().map_or(Block::Wide(&[]), |ratings| ratings.block(range))
    }

    /// One pass over the worker's ratings; the sum of squared errors met.
    fn epoch(&mut self, worker: &mut Worker, epoch: u32, users: &mut [f32]) -> Result<f64, Error> {
        let mut error = 0.0;
        for clock in 0..self.config.clocks_per_epoch as usize {
            error += match (&mut self.gradients, &self.ratings) {
                (Some(gradients), Some(ratings)) => {
                    let rounds = self.config.rounds_per_clock as usize;
                    gradients.train(worker, clock * rounds..(clock + 1) * rounds, ratings, users)?
                }
                _ => self.steps(worker, epoch, clock, users)?,
            };
            worker.clock()?;
        }
        if !error.is_finite() {
            let rate = self.config.training.step.at_epoch(epoch);
            return Err(Error::program(TrainError::Diverged { epoch: epoch + 1, rate }));
        }
        Ok(error)
    }

    /// The steps of a clock, for ratings of one chunk of items after the other; the sum of squared errors met.
    fn steps(&self, worker: &mut Worker, epoch: u32, clock: usize, users: &mut [f32]) -> Result<f64, Error> {
        let Training { l2, step, .. } = self.config.training;
        let step = Step { rate: step.at_epoch(epoch), damping: step.damping(), l2 };
        let mut error = 0.0;
        for (part, chunk) in self.parts_of(clock) {
            let wanted = &self.wanted[part * self.data.chunks() + chunk];
            let part = self.part(part, chunk);
            if part.is_empty() {
                continue;
            }
            error += worker.edit(ITEMS, &Rows::List(wanted), |items| {
                kernel::sgd_block(users, items.chunk_mut(0), part, &self.model, &step)
            })?;
            worker.work(part.len() as u64)?;
        }
        Ok(error)
    }

    /// Adds the worker's part to the epoch's report; with early stopping, says whether to go on after it.
    fn report(&mut self, worker: &mut Worker, epoch: u32, error: f64, users: &[f32]) -> Result<bool, Error> {
        let trained = self.data.train_blocks.worker_range(self.worker).len();
        let tested = self.data.test_blocks.worker_range(self.worker).len();
        let test_error = self.test_error(worker, users)?;
        let clock = (epoch + 1) * self.config.clocks_per_epoch;
        let sums = [error, trained as f64, test_error, tested as f64];
        let report = self.course.report(worker, epoch + 1, clock, &sums);
        let test_rmse = |sums: &[f64]| Quality::from_sums(sums).test_rmse.unwrap_or(f64::NAN);
        self.course.goes_on(worker, report, self.config.patience, test_rmse)
    }

    fn test_error(&mut self, worker: &mut Worker, users: &[f32]) -> Result<f64, Error> {
        let mut gradients = self.gradients.take();
        let mut error = 0.0;
        for chunk in 0..self.data.chunks() {
            let block = self.block(self.data.test_blocks.range(self.worker, chunk));
            if !block.is_empty() {
                let wanted = self.data.items_of(chunk, block);
                let of = |items: &[f32]| kernel::squared_error(users, items, block, &self.model, self.data.range);
                error += match &mut gradients {
                    Some(gradients) => of(gradients.read(worker, &wanted)?),
                    None => worker.edit(ITEMS, &Rows::List(&wanted), |items| of(items.chunk(0)))?,
                };
            }
        }
        self.gradients = gradients;
        Ok(error)
    }

    /// All rows of both tables, as bytes, some rows at a time so that there is never a third copy.
    fn read_model(&self, worker: &mut Worker) -> Result<Vec<u8>, Error> {
        // Whoever has ended its last clock has let go of the ratings, and this read waits for all.
        worker.get_latest(ITEMS, &[0])?;
        if let Some(mut ratings) = self.data.ratings.try_write() {
            *ratings = Stored::default();
        }
        let per_worker = u64::from(self.data.users_per_worker());
        let user_rows = (0..self.data.workers() as u64)
            .map(|w| w * per_worker..w * per_worker + u64::from(self.data.users_of(w as usize)));
        let items = self.data.item_labels.len() as u64;
        let tables = user_rows.map(|rows| (USERS, rows)).chain([(ITEMS, 0..items)]);
        let rows = self.data.user_labels.len() + self.data.item_labels.len();
        let row_bytes = row_width(self.config.rank) * 4;
        let mut bytes = Vec::with_capacity(rows * row_bytes);
        let at_once = (BYTES_PER_READ / row_bytes).max(1);
        for (table, rows) in tables {
            for first in rows.clone().step_by(at_once) {
                let some: Vec<u64> = (first..rows.end.min(first + at_once as u64)).collect();
                if let hemiola::Values::Dense { numbers, .. } = worker.get_latest(table, &some)? {
                    bytes.extend_from_slice(bytemuck::cast_slice(&numbers));
                }
            }
        }
        Ok(bytes)
    }
}

/// How many bytes of the finished model are read at a time: few enough to be no memory to speak of, and many enough to
/// make the way to a server worthwhile.
const BYTES_PER_READ: usize = 1 << 17;

impl Quality {
    /// From what the workers have reported of their ratings.
    fn from_sums(sums: &[f64]) -> Self {
        let &[error, trained, test_error, tested] = sums else { return Self::default() };
        let test_rmse = (tested > 0.0).then(|| (test_error / tested).sqrt());
        Self { objective: error / trained, test_rmse }
    }
}

impl Arranged {
    /// Takes the rows apart and puts them into the order of the ids; the items' first, so that they are not there twice
    /// beside the users'.
    fn unpack(&self, config: &Config, mut rows: Vec<u8>, epochs: Vec<Epoch>, outcome: Outcome) -> Trained {
        let users = self.user_labels.len() * row_width(config.rank) * 4;
        let (item_factors, item_bias) = unpack_rows(config, &rows[users..], &self.item_labels);
        rows.truncate(users);
        rows.shrink_to_fit();
        let (user_factors, user_bias) = unpack_rows(config, &rows, &self.user_labels);
        let (rank, mean, range) = (config.rank, self.mean, self.range);
        Trained { rank, user_factors, item_factors, user_bias, item_bias, mean, range, epochs, outcome }
    }
}

fn unpack_rows(config: &Config, rows: &[u8], labels: &[u32]) -> (Vec<f32>, Option<Vec<f32>>) {
    let row_bytes = row_width(config.rank) * 4;
    let number = |row: &[u8], column: usize| -> f32 { bytemuck::pod_read_unaligned(&row[column * 4..][..4]) };
    let mut factors = Vec::with_capacity(labels.len() * config.rank);
    let mut biases = Vec::with_capacity(labels.len());
    for &label in labels {
        let row = &rows[label as usize * row_bytes..][..row_bytes];
        factors.extend((0..config.rank).map(|column| number(row, column)));
        biases.push(number(row, factor_columns(config.rank)));
    }
    (factors, (config.biases == Biases::With).then_some(biases))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_training_in_another_order_is_another_one() {
        let config = Config::default();
        let others = [
            Config { chunks: 24, ..config },
            Config { cut: Cut::Ratings, ..config },
            Config { rounds_per_clock: 2, ..config },
            Config { seed: 2, ..config },
        ];
        for other in others {
            assert_ne!(config.identity(), other.identity(), "{other:?}");
        }
        assert_eq!(config.identity(), Config { patience: Some(1), ..config }.identity(), "it may go on for longer");
    }
}
