//! What can go wrong with a job, by what the caller can do about it.

use hemiola_core::client::Wait;
use hemiola_core::peer::{PeerError, PeerWait};
use hemiola_core::task::{Node, TaskError, TaskFailure};
use hemiola_core::{Clock, Misuse, SchemaError, WorkerId};
use thiserror::Error;

/// Why a job, or one of its workers, ended.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The tables or the deployment cannot be.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// A worker used a table wrongly.
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// A wait took too long.
    #[error("{wait}; gave up after {seconds:.0} s")]
    Timeout {
        /// What was waited for.
        wait: Wait,
        /// How long.
        seconds: f64,
    },
    /// A peer's wait for factors took too long.
    #[error("{wait}; gave up after {seconds:.0} s")]
    PeerTimeout {
        /// What was waited for.
        wait: PeerWait,
        /// How long.
        seconds: f64,
    },
    /// A report's totals did not come.
    #[error("{worker} waited {seconds:.0} s for the totals of report {index}, which some worker has not made")]
    TotalsTimeout {
        /// Who waited.
        worker: WorkerId,
        /// Which report.
        index: u32,
        /// How long.
        seconds: f64,
    },
    /// A worker went on although a checkpoint was due.
    #[error("{worker} ended {clock} without saving its state, and a checkpoint was due there")]
    Unsaved {
        /// Who.
        worker: WorkerId,
        /// The clock.
        clock: Clock,
    },
    /// A worker saved its state although no checkpoint was due.
    #[error("{worker} saved its state, and no checkpoint was due")]
    NotDue {
        /// Who.
        worker: WorkerId,
    },
    /// A job of peers cannot be.
    #[error(transparent)]
    Factors(#[from] crate::factors::FactorsError),
    /// A factor cannot be written.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// A checkpoint cannot be gone on from, or none can be written.
    #[error(transparent)]
    Checkpoint(#[from] crate::checkpoint::CheckpointError),
    /// A task cannot be issued.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// A task failed, or a function that it called.
    #[error(transparent)]
    TaskFailed(TaskFailure),
    /// A task was not done in time, or none came.
    #[error("{node} waited {seconds:.0} s for {what}")]
    TaskTimeout {
        /// Who waited.
        node: Node,
        /// For what.
        what: String,
        /// How long.
        seconds: f64,
    },
    /// Someone else's failure ended the job.
    #[error("{reason}")]
    Stopped {
        /// The first failure, in one sentence.
        reason: String,
    },
    /// A worker's program panicked.
    #[error("{worker} panicked: {message}")]
    Panicked {
        /// Who.
        worker: WorkerId,
        /// The panic's message.
        message: String,
    },
    /// The worker's own program failed.
    #[error(transparent)]
    Program(Box<dyn std::error::Error + Send + Sync>),
    /// The processes of a job could not be started, or could not talk to one another.
    #[error(transparent)]
    Tcp(#[from] crate::tcp::TcpError),
    /// An algorithm of Splash failed, or cannot be.
    #[error(transparent)]
    Splash(#[from] crate::splash::SplashError),
    /// The simulated cluster cannot be, or stopped.
    #[error(transparent)]
    Sim(#[from] crate::sim::SimError),
}

impl Error {
    /// Wraps a failure of the worker's own program.
    pub fn program(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Program(error.into())
    }
}
