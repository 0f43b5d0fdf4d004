//! What can go wrong with the processes of a job and the connections between them.

use crate::checkpoint::CheckpointError;
use crate::tcp::connection::WireError;
use hemiola_core::Misuse;
use hemiola_core::coordinator::Process;
use hemiola_core::link::LinkError;
use hemiola_core::peer::PeerError;
use std::io;
use std::net::IpAddr;
use thiserror::Error;

/// The processes of a job could not be started, or could not talk to one another.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum TcpError {
    #[error(
        "other machines can reach {address}, and connections are not encrypted; listen on 127.0.0.1 or allow it as \
         insecure"
    )]
    Exposed { address: IpAddr },
    #[error("cannot listen on {address}: {source}")]
    Listen { address: IpAddr, source: io::Error },
    #[error("cannot start {process} from '{program}': {source}")]
    Start { process: Process, program: String, source: io::Error },
    #[error("this program has run a job over tcp already; give the next one a command of its own, or a program")]
    SecondRun,
    #[error("the environment variable {variable} is '{value}', which no launcher of Hemiola sets; remove it")]
    Environment { variable: &'static str, value: String },
    #[error("cannot start a thread for {what}: {source}")]
    Thread { what: &'static str, source: io::Error },
    #[error("{process} did not join within {seconds} s; see what it wrote to the standard error")]
    Absent { process: Process, seconds: u64 },
    #[error("{process} runs another job than its launcher; a job's tables and counts must not depend on the process")]
    Mismatch { process: Process },
    #[error("{process} has joined already")]
    JoinedTwice { process: Process },
    #[error("cannot reach {peer} at {address} within {seconds} s: {source}")]
    Unreachable { peer: String, address: String, seconds: u64, source: Box<TcpError> },
    #[error("a connection from {address} does not have the job's secret")]
    Secret { address: String },
    #[error("a connection said nothing that could be understood within {seconds} s")]
    Silent { seconds: u64 },
    #[error("the first message of a connection was not an introduction")]
    Introduction,
    #[error("refused: {reason}")]
    Refused { reason: String },
    #[error("{process} sent what cannot be: {source}")]
    Misuse { process: Process, source: Misuse },
    #[error("{process} broke the protocol: {source}")]
    Peer { process: Process, source: PeerError },
    #[error("the result of {process} cannot be read")]
    Result { process: Process },
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error(transparent)]
    Link(#[from] LinkError),
}

impl From<io::Error> for TcpError {
    fn from(error: io::Error) -> Self {
        Self::Wire(WireError::Io(error))
    }
}
