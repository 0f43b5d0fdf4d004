//! Which processes a job over tcp has, and the limits that they keep.

use crate::deployment::TIMEOUT;
use crate::tcp::TcpError;
use hemiola_core::{Budget, Filters, Job, TableSchema};
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// The processes of a job, all started from this program on this machine.
#[derive(Debug, Clone)]
pub struct Config {
    /// How many worker processes.
    pub processes: u32,
    /// How many workers, each a thread, every worker process has.
    pub workers_per_process: u32,
    /// How many servers, each a process that hosts one shard.
    pub servers: u32,
    /// What every process may send to the servers or the workers, if that is limited.
    pub budget: Option<Budget>,
    /// The filters of tables that have none of their own.
    pub filters: Filters,
    /// How long a worker may wait for rows, totals or others before the job is given up.
    pub timeout: Duration,
    /// How long the processes may take to start and join.
    pub join_timeout: Duration,
    /// How long a lost connection may take to be made again.
    pub reconnect_timeout: Duration,
    /// Where everyone listens.
    pub bind: IpAddr,
    /// Allows `bind` to be an address that other machines can reach, although nothing on the wire is encrypted.
    pub insecure: bool,
    /// The longest message that is taken, in bytes.
    pub message_bytes_max: u64,
    /// The command that starts a process of the job. `None` is this program with its own arguments. It must reach the
    /// same call of [`run`](crate::run()) as its first one over tcp.
    pub command: Option<Vec<OsString>>,
    /// Breaks every connection between a worker process and a server in the middle of the frame after this many, to
    /// test that nothing is lost.
    #[doc(hidden)]
    pub sever_after_frames: Option<u64>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            processes: 1,
            workers_per_process: 1,
            servers: 1,
            budget: None,
            filters: Filters::default(),
            timeout: TIMEOUT,
            join_timeout: Duration::from_secs(60),
            reconnect_timeout: Duration::from_secs(8),
            bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
            insecure: false,
            message_bytes_max: 4 << 30,
            command: None,
            sever_after_frames: None,
        }
    }
}

impl Config {
    /// Checks what can be checked before anything is started.
    pub(crate) fn validate(&self) -> Result<(), TcpError> {
        if !self.bind.is_loopback() && !self.insecure {
            return Err(TcpError::Exposed { address: self.bind });
        }
        Ok(())
    }

    /// The job of these tables; if there are schedulers, they have a process of their own, the last.
    pub(crate) fn job(&self, tables: &[TableSchema], schedulers: u32) -> Job {
        let mut workers_per_client = vec![self.workers_per_process; self.processes as usize];
        workers_per_client.extend((schedulers > 0).then_some(schedulers));
        Job {
            tables: self.filters.for_those_without(tables),
            workers_per_client,
            shards: self.servers,
            budget: self.budget,
        }
    }
}
