//! What can be wrong with a simulated cluster, and how a simulation can get stuck.

use crate::error::Error;
use hemiola_core::WorkerId;
use hemiola_core::coordinator::Process;
use thiserror::Error as ThisError;

/// The simulated cluster cannot be, or stopped.
#[derive(Debug, ThisError)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum SimError {
    #[error("a simulated cluster needs at least one of {option}")]
    NoneOf { option: &'static str },
    #[error("{servers} servers cannot lie beside the clients of {nodes} nodes; use at most {nodes}, or servers apart")]
    NoNodeForServer { servers: u32, nodes: u32 },
    #[error("{option} must be above zero, not {value}")]
    NotPositive { option: &'static str, value: f64 },
    #[error("{option} must be a number of at least zero, not {value}")]
    Negative { option: &'static str, value: f64 },
    #[error("{option} must be between 0 and 1, not {value}")]
    NotAShare { option: &'static str, value: f64 },
    #[error("node {node} cannot be slow: there are {nodes}, counted from zero")]
    NoSuchNode { node: u32, nodes: u32 },
    #[error("{process} cannot crash: the cluster has no such process")]
    NoSuchProcess { process: Process },
    #[error("a simulated cluster has no disk; its checkpoints are kept in memory, as its own configuration says")]
    NoDisk,
    #[error("no thread could be started for {worker}; simulate fewer workers")]
    Spawn { worker: WorkerId, source: std::io::Error },
    #[error(
        "after {seconds} simulated seconds every worker waits and nothing is under way: {}",
        waits.iter().map(sentence).collect::<Vec<_>>().join("; ")
    )]
    Deadlock { seconds: f64, waits: Vec<Error> },
}

/// What a stuck worker waits for.
fn sentence(stuck: &Error) -> String {
    match stuck {
        Error::Timeout { wait, .. } => wait.to_string(),
        Error::PeerTimeout { wait, .. } => wait.to_string(),
        other => other.to_string(),
    }
}
