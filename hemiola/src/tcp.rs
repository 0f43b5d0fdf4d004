//! The driver for processes that talk over tcp.
//!
//! The process that calls [`run`](crate::run()) becomes the launcher: it starts this very program again, once for each
//! server and each worker process, and coordinates them. In such a child the same call plays the child's role and ends
//! the process when the job is over, so that one source runs everywhere. A child's standard output is closed; what it
//! writes to the standard error is passed on.
//!
//! In the order of a job: [`Config`] says which processes there are; the launcher starts them; each is a child that
//! joins over a handshake and becomes a server or a worker process; between those two a lane carries numbered messages
//! over as many connections as it takes, and under a budget a pacer decides when a lane gets something to carry.

mod child;
mod config;
mod connection;
mod control;
mod error;
mod handshake;
mod lane;
mod launcher;
mod pacing;
mod peers;
mod process;
mod server;

pub use child::role;
pub use config::Config;
pub use error::TcpError;
pub use hemiola_core::coordinator::Process as Role;
pub(crate) use process::Port;

/// The parts of a connection, for benchmarks and tests that speak to a shard without a worker.
#[doc(hidden)]
pub mod wire {
    pub use super::connection::{FrameReader, WireError, write_frames};
    pub use super::handshake::{Hello, Reader, Secret, fingerprint, introduce};
    pub use super::server::{HUGE_PAGES, ShardServer, listen_locally};
}

use crate::checkpoint::Checkpoints;
use crate::deployment::{Observer, Outcome, Program};
use crate::error::Error;
use child::Child;
use hemiola_core::peer::Broadcast;
use hemiola_core::task::service::{Service, Tenant};
use hemiola_core::{ClientId, Job, TableSchema};
use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;

pub(crate) fn run(
    config: &Config,
    tables: &[TableSchema],
    tenants: &[Tenant],
    checkpoints: Option<&Checkpoints>,
    program: &Program<'_>,
    observer: &mut Observer<'_>,
) -> Result<Outcome, Error> {
    config.validate()?;
    let job = config.job(tables, tenants.len() as u32);
    job.validate()?;
    let Some(child) = Child::from_environment()? else {
        return launcher::run(config, (&job, handshake::fingerprint(&job)), checkpoints, observer);
    };
    let process = child.process;
    let exists = match process {
        Role::Server(shard) => shard.0 < job.shards,
        Role::Worker(client) => client.index() < job.workers_per_client.len(),
    };
    if !exists {
        child::leave(process, "the job has no such process");
    }
    let service = (!tenants.is_empty()).then(|| Arc::new(Service::new(tenants, &job)));
    let played = match process {
        Role::Server(shard) => server::run(&child, shard, config, (&job, service.as_ref()), checkpoints),
        Role::Worker(client) => process::run(child, client, config, (&job, service.as_ref()), checkpoints, program),
    };
    let error = played.expect_err("a child ends its process when its role is played");
    child::leave(process, &error.to_string())
}

/// Runs a program on the peers of a job, each a process.
pub(crate) fn run_peers(
    config: &Config,
    job: &Job,
    broadcast: &Broadcast,
    program: &Program<'_>,
    observer: &mut Observer<'_>,
) -> Result<Outcome, Error> {
    config.validate()?;
    let fingerprint = handshake::fingerprint(&(job, broadcast));
    let Some(child) = Child::from_environment()? else {
        return launcher::run(config, (job, fingerprint), None, observer);
    };
    let process = child.process;
    let error = match process {
        Role::Worker(ClientId(id)) if id < job.workers() => {
            let played = peers::run(child, config, (job, fingerprint), broadcast, program);
            played.expect_err("a child ends its process when its role is played").to_string()
        }
        _ => "the job has no such process".to_owned(),
    };
    child::leave(process, &error)
}

fn listen(address: IpAddr) -> Result<(TcpListener, SocketAddr), TcpError> {
    let bound = TcpListener::bind((address, 0)).and_then(|listener| listener.local_addr().map(|at| (listener, at)));
    bound.map_err(|source| TcpError::Listen { address, source })
}

/// Writes a line to the standard error. Where nobody reads that any more there is nobody to tell.
pub(crate) fn say(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}

fn spawn(what: &'static str, run: impl FnOnce() + Send + 'static) -> Result<(), TcpError> {
    let thread = std::thread::Builder::new().spawn(run);
    thread.map(drop).map_err(|source| TcpError::Thread { what, source })
}
