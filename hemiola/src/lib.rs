//! Parallel training of iterative-convergent models on tables under bounded staleness.
//!
//! Write what one worker does, say where it runs, and run it:
//!
//! ```
//! use hemiola::{Deployment, TableId, TableSchema};
//!
//! const COUNTER: TableId = TableId(0);
//!
//! let tables = vec![TableSchema::dense("counter", 1, 1)];
//! let outcome = hemiola::run(&Deployment::threads(2), &tables, |worker| {
//!     for _ in 0..10 {
//!         worker.inc_row(COUNTER, 0, &[1.0])?;
//!         worker.clock()?;
//!     }
//!     let total = worker.get_latest(COUNTER, &[0])?;
//!     Ok(format!("{:?}", total.row(0)).into_bytes())
//! })?;
//! assert_eq!(outcome.results[0], b"Dense([20.0])");
//! # Ok::<(), hemiola::Error>(())
//! ```
//!
//! The same program runs in local processes over tcp with `Deployment::tcp`, and in virtual time on simulated nodes
//! with `Deployment::sim`. See [`Worker`] for everything a worker can do, and [`tasks`] for another way to write an
//! algorithm: a scheduler that issues tasks with dependencies. For a matrix whose updates are of low rank, [`factors`] is
//! a third: peers that send one another the factors.

pub mod checkpoint;
mod deployment;
mod error;
pub mod factors;
mod fetch;
mod host;
mod patience;
pub mod sim;
pub mod splash;
pub mod tasks;
pub mod tcp;
mod threads;
mod topology;
mod worker;

pub use deployment::{
    Deployment, Observation, Observer, Outcome, Program, TIMEOUT, WorkerSplit, run, run_observed, run_saved,
};
pub use error::Error;
pub use fetch::{ahead, fetch};
pub use hemiola_core::budget::BYTES_PER_SECOND_MIN;
pub use hemiola_core::filter::{self, Filter, Filters};
pub use hemiola_core::procedure::{self, Procedure};
pub use hemiola_core::row::RowRef;
pub use hemiola_core::sabotage::Sabotage;
pub use hemiola_core::{
    Array, Budget, ClientId, Clock, Consistency, Event, Init, Job, Lease, Placement, Precision, Priority, Row, RowKind,
    RowType, Rows, ShardId, StalenessHistogram, TableId, TableSchema, Values, WorkerId,
};
pub use topology::Topology;
pub use worker::Worker;
