//! The coordinator: knows every process of a job, lets the job begin when all are there, sums what workers report,
//! and says whose death ended it.

use crate::checkpoint::{Owner, SavedFile};
use crate::ids::{ClientId, Clock, ShardId, WorkerId};
use crate::schema::Job;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A process of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Process {
    /// A server, which hosts a shard.
    Server(ShardId),
    /// A worker process, which hosts a client.
    Worker(ClientId),
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(shard) => write!(f, "server {}", shard.0),
            Self::Worker(client) => write!(f, "worker process {}", client.0),
        }
    }
}

/// From a process to the coordinator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ToCoordinator {
    /// The process is ready; a server or a peer says where it listens.
    Join {
        /// Who.
        process: Process,
        /// Where a server or a peer listens.
        address: Option<String>,
    },
    /// A worker's part of report number `index`.
    Report {
        /// Who.
        worker: WorkerId,
        /// Reports are numbered from zero by each worker.
        index: u32,
        /// What is to be summed.
        values: Vec<f64>,
    },
    /// A worker is at this clock now.
    Clock {
        /// Who.
        worker: WorkerId,
        /// The clock.
        clock: Clock,
    },
    /// A part of a checkpoint has been written, or could not be.
    Saved {
        /// The checkpoint's clock.
        clock: Clock,
        /// Whose part.
        owner: Owner,
        /// The file, or why there is none.
        outcome: Result<SavedFile, String>,
        /// How many seconds that took, without those in which whoever wrote it left the processor to others.
        took: f64,
    },
    /// A worker process is done; what it hands back is the job's.
    Finished {
        /// Bytes of the job's own making.
        result: Vec<u8>,
    },
    /// The process gives up.
    Failed {
        /// Why, in one sentence.
        reason: String,
    },
}

/// From the coordinator to a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FromCoordinator {
    /// Everyone is there: begin.
    Start {
        /// Where the processes listen that do, in their order: servers by their shards, or peers by their numbers.
        addresses: Vec<String>,
    },
    /// Report number `index`, summed over all workers in worker order.
    Totals {
        /// Which report.
        index: u32,
        /// The sums.
        values: Vec<f64>,
    },
    /// Whether a checkpoint is taken at a clock that asks for the decision.
    Checkpoint {
        /// The clock.
        clock: Clock,
        /// Whether to take it.
        save: bool,
    },
    /// The job has ended: leave.
    Stop,
}

/// The state of a job as a whole.
#[derive(Debug)]
pub struct Coordinator {
    workers: u32,
    workers_per_client: Vec<u32>,
    addresses: BTreeMap<Process, Option<String>>,
    processes: usize,
    servers: u32,
    clocks: Vec<Clock>,
    reports: BTreeMap<u32, Vec<Option<Vec<f64>>>>,
    results: BTreeMap<ClientId, Vec<u8>>,
    failure: Option<String>,
    outbox: Vec<FromCoordinator>,
}

impl Coordinator {
    /// The coordinator of `job`.
    #[must_use]
    pub fn new(job: &Job) -> Self {
        Self {
            workers: job.workers(),
            workers_per_client: job.workers_per_client.clone(),
            addresses: BTreeMap::new(),
            processes: job.workers_per_client.len() + job.shards as usize,
            servers: job.shards,
            clocks: vec![Clock(0); job.workers() as usize],
            reports: BTreeMap::new(),
            results: BTreeMap::new(),
            failure: None,
            outbox: Vec::new(),
        }
    }

    /// What is to be sent, to every process.
    pub fn outbox(&mut self) -> std::vec::Drain<'_, FromCoordinator> {
        self.outbox.drain(..)
    }

    /// Sends a message to every process.
    pub fn announce(&mut self, message: FromCoordinator) {
        self.outbox.push(message);
    }

    /// Why the job failed, if it has.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// What the worker processes handed back, in their order, once all have finished.
    #[must_use]
    pub fn results(&self) -> Option<Vec<&[u8]>> {
        let done = self.results.len() == self.workers_per_client.len();
        done.then(|| self.results.values().map(Vec::as_slice).collect())
    }

    /// The processes that have not joined yet.
    #[must_use]
    pub fn absent(&self) -> Vec<Process> {
        let servers = (0..self.servers).map(|shard| Process::Server(ShardId(shard)));
        let workers = (0..self.workers_per_client.len() as u32).map(|client| Process::Worker(ClientId(client)));
        servers.chain(workers).filter(|process| !self.addresses.contains_key(process)).collect()
    }

    /// Takes a message from `process`.
    pub fn receive(&mut self, process: Process, message: ToCoordinator) {
        match message {
            ToCoordinator::Join { process, address } => {
                self.addresses.insert(process, address);
                if self.addresses.len() == self.processes {
                    let addresses = self.addresses.values().flatten().cloned().collect();
                    self.outbox.push(FromCoordinator::Start { addresses });
                }
            }
            ToCoordinator::Report { worker, index, values } => self.report(worker, index, values),
            ToCoordinator::Clock { worker, clock } => {
                if let Some(known) = self.clocks.get_mut(worker.index()) {
                    *known = clock;
                }
            }
            // What is told of checkpoints is for whoever plans them.
            ToCoordinator::Saved { .. } => {}
            ToCoordinator::Finished { result } => {
                if let Process::Worker(client) = process {
                    self.results.insert(client, result);
                    if self.results().is_some() {
                        self.outbox.push(FromCoordinator::Stop);
                    }
                }
            }
            ToCoordinator::Failed { reason } => {
                self.fail(format!("{process} failed at {}: {reason}", self.clock_of(process)))
            }
        }
    }

    /// The connection to `process` is gone, or the process itself; `how` says how it ended, where that is known.
    pub fn lost(&mut self, process: Process, how: &str) {
        let finished = self.results.len() == self.workers_per_client.len();
        let done = matches!(process, Process::Worker(client) if self.results.contains_key(&client));
        if !finished && !done {
            self.fail(format!(
                "{process} died at {} ({how}); the run was ended and no model was written",
                self.clock_of(process)
            ));
        }
    }

    fn fail(&mut self, reason: String) {
        // The first failure is the cause; what follows is its effect on the others.
        if self.failure.is_none() {
            self.failure = Some(reason);
            self.outbox.push(FromCoordinator::Stop);
        }
    }

    /// The clock of a process: of its slowest worker, or for a server of the slowest worker of all.
    fn clock_of(&self, process: Process) -> Clock {
        let workers = match process {
            Process::Server(_) => 0..self.workers as usize,
            Process::Worker(client) => {
                let first: u32 = self.workers_per_client.iter().take(client.index()).sum();
                let count = self.workers_per_client.get(client.index()).copied().unwrap_or(0);
                first as usize..(first + count) as usize
            }
        };
        self.clocks.get(workers).and_then(|clocks| clocks.iter().min()).copied().unwrap_or_default()
    }

    fn report(&mut self, worker: WorkerId, index: u32, values: Vec<f64>) {
        let workers = self.workers as usize;
        let parts = self.reports.entry(index).or_insert_with(|| vec![None; workers]);
        if let Some(part) = parts.get_mut(worker.index()) {
            *part = Some(values);
        }
        if parts.iter().all(Option::is_some) {
            let parts = self.reports.remove(&index).expect("just filled");
            self.outbox.push(FromCoordinator::Totals { index, values: sum(parts.into_iter().flatten()) });
        }
    }
}

/// The sums, position by position, in the order of the parts.
fn sum(parts: impl Iterator<Item = Vec<f64>>) -> Vec<f64> {
    let mut totals = Vec::new();
    for part in parts {
        if totals.len() < part.len() {
            totals.resize(part.len(), 0.0);
        }
        totals.iter_mut().zip(part).for_each(|(total, value)| *total += value);
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::TableSchema;

    fn coordinator() -> Coordinator {
        let tables = vec![TableSchema::dense("t", 1, 1)];
        Coordinator::new(&Job { tables, workers_per_client: vec![1, 1], shards: 1, budget: None })
    }

    #[test]
    fn the_job_begins_when_all_have_joined() {
        let mut coordinator = coordinator();
        let join =
            |process, address: Option<&str>| ToCoordinator::Join { process, address: address.map(str::to_owned) };
        let worker = |client| Process::Worker(ClientId(client));
        coordinator.receive(worker(1), join(worker(1), None));
        coordinator.receive(Process::Server(ShardId(0)), join(Process::Server(ShardId(0)), Some("here:1")));
        assert_eq!(coordinator.absent(), [worker(0)]);
        assert_eq!(coordinator.outbox().count(), 0);
        coordinator.receive(worker(0), join(worker(0), None));
        let start = FromCoordinator::Start { addresses: vec!["here:1".into()] };
        assert_eq!(coordinator.outbox().collect::<Vec<_>>(), [start]);
    }

    #[test]
    fn reports_are_summed_in_worker_order_whatever_the_order_of_arrival() {
        let mut coordinator = coordinator();
        let report = |worker, index, values| ToCoordinator::Report { worker: WorkerId(worker), index, values };
        coordinator.receive(Process::Worker(ClientId(1)), report(1, 0, vec![1e-9, 2.0]));
        coordinator.receive(Process::Worker(ClientId(1)), report(1, 1, vec![5.0]));
        coordinator.receive(Process::Worker(ClientId(0)), report(0, 0, vec![1.0, 3.0]));
        let totals = FromCoordinator::Totals { index: 0, values: vec![1.0 + 1e-9, 5.0] };
        assert_eq!(coordinator.outbox().collect::<Vec<_>>(), [totals]);
    }

    #[test]
    fn a_death_is_named_with_its_clock_and_only_the_first_counts() {
        let mut coordinator = coordinator();
        coordinator
            .receive(Process::Worker(ClientId(1)), ToCoordinator::Clock { worker: WorkerId(1), clock: Clock(7) });
        coordinator.lost(Process::Worker(ClientId(1)), "killed by signal 9");
        coordinator.lost(Process::Server(ShardId(0)), "exit code 1");
        let sentence =
            "worker process 1 died at clock 7 (killed by signal 9); the run was ended and no model was written";
        assert_eq!(coordinator.failure(), Some(sentence));
        assert_eq!(coordinator.outbox().collect::<Vec<_>>(), [FromCoordinator::Stop]);
    }
}
