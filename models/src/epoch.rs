//! What every training tells after a pass over its data, and when it has told enough.

use hemiola::{Error, Observation, Worker, WorkerSplit};
use serde::{Deserialize, Serialize};

/// How far training is after a pass over the data, summed over all workers; how good the model is by then, each model
/// says in its own terms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Epoch<Quality> {
    /// Epochs done.
    pub epoch: u32,
    /// Clocks done.
    pub clock: u32,
    /// Seconds of training, evaluation left out; virtual ones in the simulator.
    pub seconds: f64,
    /// How good the model is.
    #[serde(flatten)]
    pub quality: Quality,
    /// What the workers' processes have sent.
    pub bytes_sent: u64,
    /// What the workers' processes have received.
    pub bytes_received: u64,
    /// Seconds that workers were blocked, the mean over workers.
    pub wait_seconds: f64,
    /// Seconds that workers computed, the mean over workers.
    pub compute_seconds: f64,
}

/// How many numbers of a report are the same for all models; a model's own are behind them.
const COMMON: usize = 7;

impl<Quality> Epoch<Quality> {
    /// After so many passes on the threads of one process, which sends nothing and waits for nobody; each is a clock.
    pub(crate) fn alone(epoch: u32, seconds: f64, quality: Quality) -> Self {
        let (clock, compute_seconds) = (epoch, seconds);
        Self { epoch, clock, seconds, quality, bytes_sent: 0, bytes_received: 0, wait_seconds: 0.0, compute_seconds }
    }

    /// What the workers have reported, whose own numbers `quality` makes sense of.
    pub(crate) fn from_report(
        observation: &Observation,
        workers: usize,
        quality: impl FnOnce(&[f64]) -> Quality,
    ) -> Self {
        let at = |i: usize| observation.values.get(i).copied().unwrap_or(0.0);
        let mean = |i: usize| at(i) / workers as f64;
        Self {
            epoch: mean(0) as u32,
            clock: mean(1) as u32,
            seconds: mean(2),
            quality: quality(own(&observation.values)),
            wait_seconds: mean(3),
            compute_seconds: mean(4),
            bytes_sent: at(5) as u64,
            bytes_received: at(6) as u64,
        }
    }
}

/// What of a report is a model's own.
pub(crate) fn own(values: &[f64]) -> &[f64] {
    values.get(COMMON..).unwrap_or_default()
}

/// A worker's way through the epochs: how long they took, and how long ago the best was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Course {
    pub(crate) train_seconds: f64,
    /// The lowest held-out loss, and how many epochs ago that was.
    pub(crate) best: f64,
    pub(crate) since_best: u32,
}

impl Default for Course {
    fn default() -> Self {
        Self { train_seconds: 0.0, best: f64::INFINITY, since_best: 0 }
    }
}

impl Course {
    /// Adds the worker's part to the report of an epoch, which is summed over workers number by number; gives its
    /// number.
    pub(crate) fn report(&self, worker: &mut Worker, epoch: u32, clock: u32, own: &[f64]) -> u32 {
        let numbers = self.numbers(&worker.split(), epoch, clock, own);
        worker.report(&numbers)
    }

    /// What a worker adds to the report of an epoch.
    pub(crate) fn numbers(&self, split: &WorkerSplit, epoch: u32, clock: u32, own: &[f64]) -> Vec<f64> {
        let common: [f64; COMMON] = [
            f64::from(epoch),
            f64::from(clock),
            self.train_seconds,
            split.wait_seconds,
            split.compute_seconds,
            split.bytes_sent as f64,
            split.bytes_received as f64,
        ];
        [&common, own].concat()
    }

    /// Whether to go on after a report in which `loss` finds the held-out loss: while it has fallen within the last
    /// `patience` epochs, where there is such a limit. All workers come to the same.
    ///
    /// # Errors
    /// If the others' reports do not come.
    pub(crate) fn goes_on(
        &mut self,
        worker: &mut Worker,
        report: u32,
        patience: Option<u32>,
        loss: impl FnOnce(&[f64]) -> f64,
    ) -> Result<bool, Error> {
        self.goes_on_by(patience, || Ok(loss(own(&worker.totals(report)?))))
    }

    /// The same where `loss` finds the held-out loss by itself, if it is asked for at all.
    ///
    /// # Errors
    /// What `loss` says.
    pub(crate) fn goes_on_by<E>(
        &mut self,
        patience: Option<u32>,
        loss: impl FnOnce() -> Result<f64, E>,
    ) -> Result<bool, E> {
        let Some(patience) = patience else { return Ok(true) };
        Ok(self.has_patience(patience, loss()?))
    }

    /// Whether to go on after an epoch with that held-out loss.
    pub(crate) fn has_patience(&mut self, patience: u32, loss: f64) -> bool {
        self.since_best = if loss < self.best { 0 } else { self.since_best + 1 };
        self.best = self.best.min(loss);
        self.since_best < patience
    }
}
