//! Where a job runs, as a value, and the one function that runs it there.

use crate::checkpoint::Checkpoints;
use crate::error::Error;
use crate::worker::Worker;
use crate::{sim, tcp, threads};
use hemiola_core::filter::ledger::FilterSaving;
use hemiola_core::task::service::Tenant;
use hemiola_core::{Budget, Clock, StalenessHistogram, TableSchema};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Where a job runs.
#[derive(Debug, Clone)]
pub enum Deployment {
    /// The threads of this process.
    Threads {
        /// How many workers.
        workers: u32,
        /// How long a worker may wait before the job is given up.
        timeout: Duration,
    },
    /// Processes of this machine, started from this program, that talk over tcp.
    Tcp(tcp::Config),
    /// Simulated nodes in virtual time.
    Sim(sim::Config),
}

/// What a worker's program is: it may be called by many threads at once, each with a worker of its own.
pub type Program<'a> = dyn Fn(&mut Worker) -> Result<Vec<u8>, Error> + Sync + 'a;

/// Sees what workers report, in the process that started the job.
pub type Observer<'a> = dyn FnMut(&Observation) + Send + 'a;

/// A report that all workers have made, summed.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The number of the report.
    pub index: u32,
    /// The sums over all workers.
    pub values: Vec<f64>,
    /// Seconds since the job began; virtual ones in the simulator.
    pub seconds: f64,
}

/// What is left of a job.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// What each worker's program returned.
    pub results: Vec<Vec<u8>>,
    /// How stale the reads of all workers were.
    pub histogram: StalenessHistogram,
    /// Where each worker's time went.
    pub splits: Vec<WorkerSplit>,
    /// How long it took; virtual seconds in the simulator.
    pub seconds: f64,
    /// What each filter of each table saved. Over tcp what selection filters held back of rows is not counted.
    pub savings: Vec<FilterSaving>,
}

/// Where a worker's time went, and what its process sent and received.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerSplit {
    /// Seconds in the worker's own program.
    pub compute_seconds: f64,
    /// Seconds blocked because others were behind or rows were not there yet.
    pub wait_seconds: f64,
    /// Seconds in table operations that did not block.
    pub communication_seconds: f64,
    /// Bytes that the worker's process sent, shared evenly by its workers.
    pub bytes_sent: u64,
    /// Bytes that the worker's process received, shared evenly by its workers.
    pub bytes_received: u64,
    /// The clock that the worker ended at.
    pub clocks: Clock,
}

/// How long a worker waits before the job is given up, unless told otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(600);

impl Deployment {
    /// `workers` threads of this process.
    #[must_use]
    pub fn threads(workers: u32) -> Self {
        Self::Threads { workers, timeout: TIMEOUT }
    }

    /// `nodes` simulated nodes with one worker and one shard each.
    #[must_use]
    pub fn sim(nodes: u32) -> Self {
        Self::Sim(sim::Config::new(nodes))
    }

    /// `processes` worker processes of one worker each and `servers` servers, all on this machine.
    #[must_use]
    pub fn tcp(processes: u32, servers: u32) -> Self {
        Self::Tcp(tcp::Config { processes, servers, ..tcp::Config::default() })
    }

    /// How many workers the job has.
    #[must_use]
    pub fn workers(&self) -> u32 {
        match self {
            Self::Threads { workers, .. } => *workers,
            Self::Tcp(config) => config.processes * config.workers_per_process,
            Self::Sim(config) => config.nodes * config.workers_per_node,
        }
    }

    /// What every node may send, if that is limited.
    pub(crate) fn budget(&self) -> Option<Budget> {
        match self {
            Self::Threads { .. } => None,
            Self::Tcp(config) => config.budget,
            Self::Sim(config) => config.budget,
        }
    }
}

/// Runs `program` on every worker of a job.
///
/// # Errors
/// The first failure of the job.
pub fn run<P>(deployment: &Deployment, tables: &[TableSchema], program: P) -> Result<Outcome, Error>
where
    P: Fn(&mut Worker) -> Result<Vec<u8>, Error> + Sync,
{
    run_observed(deployment, tables, &program, &mut |_| {})
}

/// Runs `program` on every worker of a job, and shows `observer` what they report.
///
/// # Errors
/// The first failure of the job.
pub fn run_observed(
    deployment: &Deployment,
    tables: &[TableSchema],
    program: &Program<'_>,
    observer: &mut Observer<'_>,
) -> Result<Outcome, Error> {
    run_any(deployment, tables, &[], None, program, observer)
}

/// Runs `program` on every worker of a job that is saved as it goes, and goes on from a checkpoint if it is told to.
///
/// # Errors
/// The first failure of the job, or of the checkpoint that it was to go on from.
pub fn run_saved(
    deployment: &Deployment,
    tables: &[TableSchema],
    checkpoints: &Checkpoints,
    program: &Program<'_>,
    observer: &mut Observer<'_>,
) -> Result<Outcome, Error> {
    run_any(deployment, tables, &[], Some(checkpoints), program, observer)
}

/// Runs `program` on every worker, and on a thread for the scheduler of each of the jobs of tasks that share them.
pub(crate) fn run_any(
    deployment: &Deployment,
    tables: &[TableSchema],
    tenants: &[Tenant],
    checkpoints: Option<&Checkpoints>,
    program: &Program<'_>,
    observer: &mut Observer<'_>,
) -> Result<Outcome, Error> {
    match (deployment, checkpoints) {
        (Deployment::Threads { workers, timeout }, checkpoints) => {
            threads::run((*workers, *timeout), tables, tenants, checkpoints, program, observer)
        }
        (Deployment::Tcp(config), checkpoints) => tcp::run(config, tables, tenants, checkpoints, program, observer),
        (Deployment::Sim(config), None) => sim::run(config, tables, tenants, program, observer),
        (Deployment::Sim(_), Some(_)) => Err(sim::SimError::NoDisk.into()),
    }
}
