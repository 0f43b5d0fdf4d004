//! Trains filters on a table: the same program on threads, over tcp and in the simulator.
//!
//! Every worker has a share of the patches. In a clock it reads the filters and adds the gradient of some of its patches;
//! AdaRevision on the shard makes steps of the gradients.

use super::kernel::{Scratch, Sums};
use crate::epoch::Course;
use crate::patches::{Patches, PatchesError, Whitening};
use crate::resume::{self, Identity, Progress, ResumeError, identity, told};
use hemiola::checkpoint::Checkpoints;
use hemiola::procedure::AdaRevision;
use hemiola::{
    Consistency, Deployment, Error, Init, Observation, Outcome, Precision, Rows, TableId, TableSchema, Values, Worker,
};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;
use thiserror::Error as ThisError;

/// The table of filters: a row for each.
pub const FILTERS: TableId = TableId(0);

/// How to train.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// How many filters to learn.
    pub features: usize,
    /// Weight of the activities in the objective, `λ`.
    pub sparsity: f32,
    /// Patches of a gradient.
    pub batch: u32,
    /// Size of the first steps.
    pub rate: f32,
    /// Passes over the patches.
    pub epochs: u32,
    /// How stale the filters may be.
    pub consistency: Consistency,
    /// How precisely filters travel.
    pub precision: Precision,
    /// Fixes the initial filters.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            features: 64,
            sparsity: 0.3,
            batch: 100,
            rate: 0.05,
            epochs: 20,
            consistency: Consistency::Essp { staleness: 2 },
            precision: Precision::F32,
            seed: 1,
        }
    }
}

/// Why filters could not be learnt.
#[derive(Debug, ThisError)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum TrainError {
    #[error(transparent)]
    Patches(#[from] PatchesError),
    #[error("{patches} patches are too few to hold some out; draw more")]
    TooFew { patches: usize },
    #[error("{what} must be a number above zero, not {value}")]
    NotPositive { what: &'static str, value: f32 },
    #[error("{what} must be at least 1")]
    Zero { what: &'static str },
    #[error("the objective is no longer a number in epoch {epoch}: the steps are too large; try a rate below {rate}")]
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
        for (what, value) in [("the step size", self.rate), ("the weight of the activities", self.sparsity)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(TrainError::NotPositive { what, value });
            }
        }
        let counts = [
            ("the number of filters", self.features as u64),
            ("the batch", u64::from(self.batch)),
            ("the number of epochs", u64::from(self.epochs)),
        ];
        match counts.into_iter().find(|(_, count)| *count == 0) {
            Some((what, _)) => Err(TrainError::Zero { what }),
            None => Ok(()),
        }
    }

    /// What must be the same in a run that goes on from a checkpoint, but for the patches.
    fn identity(&self) -> Identity {
        let Self { features, sparsity, batch, rate, consistency, precision, seed, .. } = self;
        identity(
            "rica",
            [
                ("filters", features.to_string()),
                ("sparsity", sparsity.to_string()),
                ("batch", batch.to_string()),
                ("rate", rate.to_string()),
                ("consistency", told(consistency)),
                ("precision", told(precision)),
                ("seed", seed.to_string()),
            ],
        )
    }
}

/// One patch in so many is held out.
const HELD_OUT: usize = 10;

/// Clocks of an epoch over so many patches, the held-out ones included: as many as the largest share has batches.
#[must_use]
pub fn clocks_per_epoch(patches: usize, workers: usize, batch: u32) -> u32 {
    (patches - patches / HELD_OUT).div_ceil(workers).div_ceil(batch as usize) as u32
}

/// Patches in white coordinates, the last of them held out.
#[derive(Debug)]
pub struct Arranged {
    workers: usize,
    /// Pixels of a patch.
    size: usize,
    /// How the patches were made white.
    pub whitening: Whitening,
    numbers: Vec<f32>,
    train: usize,
}

impl Arranged {
    /// Makes the patches white, as those that are not held out ask for, and shares them among the workers.
    ///
    /// # Errors
    /// If they are too few.
    pub fn new(patches: &Patches, workers: u32) -> Result<Self, TrainError> {
        let (count, size) = (patches.len(), patches.side * patches.side);
        let (train, workers) = (count - count / HELD_OUT, workers as usize);
        if count < HELD_OUT || train < workers {
            return Err(TrainError::TooFew { patches: count });
        }
        let shown = Patches { side: patches.side, numbers: patches.numbers[..train * size].to_vec() };
        let whitening = Whitening::of(&shown);
        Ok(Self { workers, size, numbers: whitening.apply(patches), whitening, train })
    }

    /// The patches that are not held out, and how many numbers each has.
    #[must_use]
    pub fn train(&self) -> (&[f32], usize) {
        (&self.numbers[..self.train * self.size], self.size)
    }

    fn test_count(&self) -> usize {
        self.numbers.len() / self.size - self.train
    }

    fn patches(&self, range: Range<usize>) -> &[f32] {
        &self.numbers[range.start * self.size..range.end * self.size]
    }

    /// The part of a worker of the patches to train on.
    fn share(&self, worker: usize) -> Range<usize> {
        self.train * worker / self.workers..self.train * (worker + 1) / self.workers
    }

    fn clocks_per_epoch(&self, batch: u32) -> u32 {
        clocks_per_epoch(self.numbers.len() / self.size, self.workers, batch)
    }

    /// The patches of a worker in a clock of an epoch: even parts, so that each gradient is of about as many.
    #[must_use]
    pub fn batch(&self, worker: usize, clock: u32, batch: u32) -> &[f32] {
        let (share, clocks) = (self.share(worker), self.clocks_per_epoch(batch) as usize);
        let at = |clock: usize| share.start + share.len() * clock / clocks;
        self.patches(at(clock as usize)..at(clock as usize + 1))
    }

    fn identity(&self) -> String {
        let checksum = crc32fast::hash(bytemuck::cast_slice(&self.numbers));
        format!("{} of {} pixels (checksum {checksum:08x})", self.numbers.len() / self.size, self.size)
    }

    fn table(&self, config: &Config) -> TableSchema {
        let size = self.size as u32;
        // Then WᵀW is about one.
        let bound = (3.0 / config.features as f32).sqrt();
        TableSchema {
            consistency: config.consistency,
            precision: config.precision,
            init: Init::Uniform { seed: config.seed, low: -bound, high: bound, columns: size, rest: 0.0 },
            procedure: Some(Arc::new(AdaRevision::new(config.rate))),
            read_my_writes: false,
            ..TableSchema::dense("filters", config.features as u64, size)
        }
    }
}

/// How good filters are after an epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// The mean objective met during the epoch.
    pub objective: f64,
    /// The mean objective of held-out patches.
    pub test_objective: f64,
    /// The part of the held-out patches' energy that is lost when they are put together again.
    pub test_lost: f64,
}

/// How far training is after an epoch.
pub type Epoch = crate::Epoch<Quality>;

/// Learnt filters, and how training went.
#[derive(Debug)]
pub struct Trained {
    /// The filters one after the other, in white coordinates.
    pub filters: Vec<f32>,
    /// One line per epoch.
    pub epochs: Vec<Epoch>,
    /// Staleness, and where the workers' time went.
    pub outcome: Outcome,
}

/// Learns filters, and shows `observe` how far it is after every epoch; with checkpoints after whole epochs.
///
/// # Errors
/// If the numbers cannot be, training diverges, the checkpoint is of another training, or the job fails.
pub fn train(
    config: &Config,
    deployment: &Deployment,
    checkpoints: Option<&Checkpoints>,
    data: &Arranged,
    mut observe: impl FnMut(&Epoch) + Send,
) -> Result<Trained, TrainError> {
    config.validate()?;
    let mut epochs = Vec::new();
    let program = |worker: &mut Worker| WorkerProgram::new(config, data, worker).run(worker);
    let mut observer = |observation: &Observation| {
        let epoch = Epoch::from_report(observation, data.workers, |sums| Quality::from_sums(sums, data));
        observe(&epoch);
        epochs.push(epoch);
    };
    let identity = || [config.identity(), vec![("patches".to_owned(), data.identity())]].concat();
    let checkpoints = checkpoints.map(|checkpoints| (checkpoints, identity()));
    let tables = [data.table(config)];
    let (place, clocks) = ((deployment, tables.as_slice()), data.clocks_per_epoch(config.batch));
    let mut outcome = resume::run::<TrainError>(place, checkpoints, clocks, &program, &mut observer)?;
    let bytes = std::mem::take(&mut outcome.results[0]);
    let filters = bytes.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect();
    Ok(Trained { filters, epochs, outcome })
}

/// What one worker of the job does.
struct WorkerProgram<'a> {
    config: &'a Config,
    data: &'a Arranged,
    worker: usize,
    scratch: Scratch,
    filters: Vec<f32>,
    course: Course,
}

impl<'a> WorkerProgram<'a> {
    fn new(config: &'a Config, data: &'a Arranged, worker: &Worker) -> Self {
        let worker = worker.id().index();
        Self { config, data, worker, scratch: Scratch::default(), filters: Vec::new(), course: Course::default() }
    }

    fn run(mut self, worker: &mut Worker) -> Result<Vec<u8>, Error> {
        worker.intend(FILTERS, &self.all())?;
        let epochs = self.config.epochs;
        let mut resumed = resume::resumed::<TrainError>(worker, &mut [], epochs)?;
        for epoch in resumed.map_or(0, |progress| progress.epochs - 1)..epochs {
            let met = match resumed.take() {
                Some(progress) => {
                    self.course = progress.course;
                    progress.met
                }
                None => self.train_epoch(worker, epoch)?,
            };
            self.report(worker, epoch, met)?;
        }
        worker.clock()?;
        let mut bytes = Vec::new();
        if self.worker == 0 {
            let rows: Vec<u64> = (0..self.config.features as u64).collect();
            if let Values::Dense { numbers, .. } = worker.get_latest(FILTERS, &rows)? {
                bytes.extend_from_slice(bytemuck::cast_slice(&numbers));
            }
        }
        Ok(bytes)
    }

    fn all(&self) -> Rows<'static> {
        Rows::Range(0..self.config.features as u64)
    }

    /// One pass over the worker's patches, which may be followed by a checkpoint; the sum of the objectives met.
    fn train_epoch(&mut self, worker: &mut Worker, epoch: u32) -> Result<f64, Error> {
        let began = worker.seconds();
        let rows: Vec<u64> = (0..self.config.features as u64).collect();
        let (batch, sparsity, size) = (self.config.batch, self.config.sparsity, self.data.size);
        let mut met = 0.0;
        for clock in 0..self.data.clocks_per_epoch(batch) {
            let patches = self.data.batch(self.worker, clock, batch);
            if !patches.is_empty() {
                worker.get_dense(FILTERS, &self.all(), &mut self.filters)?;
                let mut gradient = Vec::new();
                let sums = self.scratch.gradient(&self.filters, patches, size, sparsity, &mut gradient);
                met += sums.objective(sparsity);
                worker.inc(FILTERS, &rows, &Values::dense(size as u32, gradient))?;
                worker.work((patches.len() / size) as u64)?;
            }
            worker.clock()?;
        }
        if !met.is_finite() {
            return Err(Error::program(TrainError::Diverged { epoch: epoch + 1, rate: self.config.rate }));
        }
        self.course.train_seconds += worker.seconds() - began;
        if worker.checkpoint_due() {
            worker.save(&[&Progress { epochs: epoch + 1, met, course: self.course }.to_bytes()])?;
        }
        Ok(met)
    }

    /// Adds the worker's part to the epoch's report: of the held-out patches every so manyth.
    fn report(&mut self, worker: &mut Worker, epoch: u32, met: f64) -> Result<(), Error> {
        worker.get_dense(FILTERS, &self.all(), &mut self.filters)?;
        let Arranged { train, workers, size, .. } = *self.data;
        let at = |worker: usize| train + self.data.test_count() * worker / workers;
        let held_out = self.data.patches(at(self.worker)..at(self.worker + 1));
        let sums = match held_out {
            [] => Sums::default(),
            _ => self.scratch.judge(&self.filters, held_out, size),
        };
        let clock = (epoch + 1) * self.data.clocks_per_epoch(self.config.batch);
        let own = [met, sums.objective(self.config.sparsity), sums.lost, sums.energy];
        self.course.report(worker, epoch + 1, clock, &own);
        Ok(())
    }
}

impl Quality {
    /// From what the workers have reported of their patches.
    fn from_sums(sums: &[f64], data: &Arranged) -> Self {
        let &[met, tested, lost, energy] = sums else { return Self::default() };
        Self {
            objective: met / data.train as f64,
            test_objective: tested / data.test_count() as f64,
            test_lost: lost / energy,
        }
    }
}
