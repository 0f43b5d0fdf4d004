//! The factor programming model: peers that exchange the factors of low-rank updates instead of matrices.
//!
//! A job of peers has a matrix and no servers. Every peer keeps a replica of the matrix, computes pairs of factors
//! `(u, v)` on it, and writes them; at the end of an iteration they are sent to the other peers, and `u vᵀ` of every
//! pair, its own and those of the others, is subtracted from the replica (Xie et al.,
//! "Lighter-Communication Distributed Machine Learning via Sufficient Factor Broadcasting"). What travels is as long as
//! the sum of the matrix's dimensions, not as their product. Step sizes and the size of a minibatch are in the factors:
//! whoever writes `u` has scaled it.
//!
//! Softmax regression by minibatches, on four threads:
//!
//! ```
//! use hemiola::Deployment;
//! use hemiola::factors::{self, MatrixSchema};
//!
//! const CLASSES: usize = 3;
//! const BATCH: usize = 8;
//!
//! /// Example `i` of an endless data set: features, and the class of the largest.
//! fn example(i: usize) -> (Vec<f32>, usize) {
//!     let x: Vec<f32> = (0..CLASSES).map(|k| ((i * 7 + k * (i + 5)) % 11) as f32 / 11.0).collect();
//!     let class = (0..CLASSES).max_by(|&a, &b| x[a].total_cmp(&x[b])).expect("three");
//!     (x, class)
//! }
//!
//! let schema = MatrixSchema::new(CLASSES as u32, CLASSES as u32);
//! let outcome = factors::run(&Deployment::threads(4), &schema, |peer| {
//!     let (me, peers) = (peer.id().index(), peer.peers() as usize);
//!     for iteration in 0..50 {
//!         for i in 0..BATCH {
//!             let (x, class) = example((iteration * BATCH + i) * peers + me);
//!             let score = |row: &[f32]| row.iter().zip(&x).map(|(w, x)| w * x).sum::<f32>().exp();
//!             let mut u: Vec<f32> = (0..CLASSES).map(|k| score(peer.matrix().row(k))).collect();
//!             let total: f32 = u.iter().sum();
//!             u.iter_mut().for_each(|p| *p *= 0.5 / (total * BATCH as f32));
//!             u[class] -= 0.5 / BATCH as f32;
//!             peer.write(&u, &x)?;
//!         }
//!         peer.commit()?;
//!     }
//!     Ok(bytes_of(peer.matrix().numbers()))
//! })?;
//! assert!(outcome.results.iter().all(|result| *result == outcome.results[0]), "the same on all peers, to the bit");
//! # fn bytes_of(numbers: &[f32]) -> Vec<u8> { numbers.iter().flat_map(|x| x.to_le_bytes()).collect() }
//! # Ok::<(), hemiola::Error>(())
//! ```
//!
//! The same program runs on processes that talk to one another over tcp (`Deployment::tcp(4, 0)`) and on simulated nodes
//! (`Deployment::sim(4)`). The servers of a deployment are for tables, and not used. Without staleness and with full
//! broadcast all replicas are the same to the bit in every iteration and on every driver.
//!
//! - [`MatrixSchema::staleness`] lets peers run ahead: a peer starts iteration `c` when it has the pairs of iterations
//!   up to `c − s − 1` of all its senders, and uses none of an iteration that it has not finished itself.
//! - [`MatrixSchema::fanout`] lets a peer send to only so many others ([`crate::Topology`]). Nothing is passed on, so the
//!   replicas differ; what a peer learnt reaches the others by way of the pairs that are computed on what it changed.
//! - [`Peer::prox`] sets the proximal operator of a regulariser, applied whenever pairs have been subtracted.
//! - [`cost`] says whether it pays, compared with sending the matrix itself.

pub mod cost;
mod peer;

pub use hemiola_core::peer::{Factor, Matrix, PeerError};
pub use peer::{Applied, Peer};

use crate::deployment::{Deployment, Observer, Outcome};
use crate::error::Error;
use crate::topology::Topology;
use crate::worker::Worker;
use crate::{sim, tcp, threads};
use hemiola_core::filter::{Filter, Filters, Keys};
use hemiola_core::peer::{Broadcast, Shape};
use hemiola_core::schema::ROWS_MAX;
use hemiola_core::{Consistency, Init, Job, TableSchema};
use thiserror::Error as ThisError;

/// The seed of every topology, so that all peers of a job find the same one.
const TOPOLOGY_SEED: u64 = 1;
const NAME: &str = "matrix";

/// What the peers of a job share.
#[derive(Debug, Clone)]
pub struct MatrixSchema {
    /// How many rows the matrix has: the length of every `u`.
    pub rows: u32,
    /// How many columns it has: the length of every `v`.
    pub columns: u32,
    /// What it holds in the beginning.
    pub init: Init,
    /// How many iterations a peer may be ahead of those who send to it; zero is Bsp.
    pub staleness: u32,
    /// To how many others every peer sends; `None` is to all.
    pub fanout: Option<u32>,
    /// How factors are written to the wire: compressed, if at all.
    pub filters: Vec<Filter>,
}

/// A program of a peer; it may be called by many threads at once, each with a peer of its own.
pub type PeerProgram<'a> = dyn Fn(&mut Peer<'_>) -> Result<Vec<u8>, Error> + Sync + 'a;

/// A job of peers that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, ThisError)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum FactorsError {
    #[error("a matrix needs at least one row and one column and at most {ROWS_MAX} numbers, not {rows} by {columns}")]
    Shape { rows: u32, columns: u32 },
    #[error("a job of factors needs at least one peer")]
    NoPeers,
    #[error("{peers} peers cannot send to {fanout} others each; the fan-out is from 1 to {}", peers.saturating_sub(1))]
    Fanout { peers: u32, fanout: u32 },
    #[error("every peer has a process or node of its own; use one worker in each, not {workers}")]
    Workers { workers: u32 },
    #[error("a bandwidth budget is for tables; peers send their factors at the end of every iteration")]
    Budget,
    #[error("checkpoints are for tables; a job of factors keeps none")]
    Saving,
    #[error("filter '{filter}' is for the rows of tables; factors can be compressed with lz4 or zstd")]
    Filter { filter: String },
}

impl MatrixSchema {
    /// A matrix of zeros under Bsp with full broadcast.
    #[must_use]
    pub fn new(rows: u32, columns: u32) -> Self {
        Self { rows, columns, init: Init::Zero, staleness: 0, fanout: None, filters: Vec::new() }
    }

    /// Who sends to whom among so many peers.
    fn broadcast(&self, peers: u32) -> Result<Broadcast, FactorsError> {
        let shape = Shape { rows: self.rows, columns: self.columns };
        let numbers = u64::from(self.rows) * u64::from(self.columns);
        if numbers == 0 || numbers > ROWS_MAX {
            return Err(FactorsError::Shape { rows: self.rows, columns: self.columns });
        }
        if peers == 0 {
            return Err(FactorsError::NoPeers);
        }
        let full = Broadcast::full(shape, self.staleness, peers);
        match self.fanout {
            None => Ok(full),
            Some(fanout) if fanout == 0 || fanout >= peers => Err(FactorsError::Fanout { peers, fanout }),
            Some(fanout) if fanout == peers - 1 => Ok(full),
            Some(fanout) => Ok(Broadcast { receivers: Topology::new(peers, fanout, TOPOLOGY_SEED).receivers, ..full }),
        }
    }

    /// The matrix as those see it who look after processes, filters and totals: a table that no server has.
    fn job(&self, workers_per_client: Vec<u32>, filters: &Filters) -> Result<Job, Error> {
        let chain = if self.filters.is_empty() { &filters.updates } else { &self.filters };
        let compresses = |filter: &&Filter| matches!(filter, Filter::Encoding(e) if e.keys() != Keys::Needed);
        if let Some(filter) = chain.iter().find(|filter| !compresses(filter)) {
            return Err(FactorsError::Filter { filter: filter.name().to_owned() }.into());
        }
        let table = TableSchema {
            init: self.init,
            consistency: Consistency::Ssp { staleness: self.staleness },
            filters: Filters { updates: chain.clone(), rows: Vec::new() },
            ..TableSchema::dense(NAME, u64::from(self.rows), self.columns)
        };
        let job = Job { tables: vec![table], workers_per_client, shards: 0, budget: None };
        Job { shards: 1, ..job.clone() }.validate()?;
        Ok(job)
    }
}

/// Runs `program` on every peer of a job.
///
/// # Errors
/// The first failure of the job.
pub fn run<P>(deployment: &Deployment, schema: &MatrixSchema, program: P) -> Result<Outcome, Error>
where
    P: Fn(&mut Peer<'_>) -> Result<Vec<u8>, Error> + Sync,
{
    run_observed(deployment, schema, &program, &mut |_| {})
}

/// Runs `program` on every peer of a job, and shows `observer` what they report.
///
/// # Errors
/// The first failure of the job.
pub fn run_observed(
    deployment: &Deployment,
    schema: &MatrixSchema,
    program: &PeerProgram<'_>,
    observer: &mut Observer<'_>,
) -> Result<Outcome, Error> {
    let workers = deployment.workers();
    let per_process = match deployment {
        Deployment::Threads { .. } => 1,
        Deployment::Tcp(config) => config.workers_per_process,
        Deployment::Sim(config) => config.workers_per_node,
    };
    if per_process != 1 {
        return Err(FactorsError::Workers { workers: per_process }.into());
    }
    let broadcast = schema.broadcast(workers)?;
    if deployment.budget().is_some() {
        return Err(FactorsError::Budget.into());
    }
    let program = |worker: &mut Worker| program(&mut Peer::new(worker, &broadcast, schema.init));
    match deployment {
        Deployment::Threads { workers, timeout } => {
            let job = schema.job(vec![*workers], &Filters::default())?;
            threads::run_peers(*timeout, &job, &broadcast, &program, observer)
        }
        Deployment::Tcp(config) => {
            let job = schema.job(vec![1; workers as usize], &config.filters)?;
            tcp::run_peers(config, &job, &broadcast, &program, observer)
        }
        Deployment::Sim(config) if config.saving.is_some() => Err(FactorsError::Saving.into()),
        Deployment::Sim(config) => {
            let job = schema.job(vec![1; workers as usize], &config.filters)?;
            sim::run_peers(config, &job, &broadcast, &program, observer)
        }
    }
}
