//! Who there is: the jobs that share the servers, with the workers, tables and server functions of each.

use crate::ids::{ClientId, ShardId, TableId, WorkerId};
use crate::schema::{Job, TableSchema};
use crate::task::{Group, Node, Server};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// What a server does when it is called by name: it may read and change the tables of its job on that server.
pub type ServerFunction =
    dyn Fn(&mut Server<'_>, &[u8]) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> + Send + Sync;

/// A job that shares the servers with others. It sees no tables, workers or functions but its own.
#[derive(Clone)]
pub struct Tenant {
    /// Its name, for people.
    pub name: String,
    /// Its workers.
    pub workers: Range<u32>,
    /// Its tables, as places among all tables.
    pub tables: Range<u32>,
    /// What its servers can be called to do.
    pub functions: BTreeMap<String, Arc<ServerFunction>>,
}

impl fmt::Debug for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, workers, tables, functions } = self;
        let functions: Vec<&String> = functions.keys().collect();
        f.debug_struct("Tenant")
            .field("name", name)
            .field("workers", workers)
            .field("tables", tables)
            .field("functions", &functions)
            .finish()
    }
}

/// What every node of the jobs knows about the others.
#[derive(Debug)]
pub struct Service {
    tenants: Vec<Tenant>,
    tables: Vec<TableSchema>,
    shards: u32,
    /// How many workers there are. The schedulers have the numbers that follow, as threads of the last client.
    workers: u32,
    /// The first worker of every client.
    firsts: Vec<u32>,
}

impl Service {
    /// The service of these tenants, in a job in which a thread for the scheduler of each follows the workers.
    #[must_use]
    pub fn new(tenants: &[Tenant], job: &Job) -> Self {
        Self {
            tenants: tenants.to_vec(),
            tables: job.tables.clone(),
            shards: job.shards,
            workers: job.workers() - tenants.len() as u32,
            firsts: (0..job.workers_per_client.len() as u32)
                .map(|client| job.workers_of(ClientId(client)).start)
                .collect(),
        }
    }

    /// How many servers there are.
    #[must_use]
    pub fn shards(&self) -> u32 {
        self.shards
    }

    /// The node that a thread of the workers' numbering is.
    #[must_use]
    pub fn node_of(&self, thread: WorkerId) -> Node {
        match thread.0.checked_sub(self.workers) {
            None => Node::Worker(thread),
            Some(job) => Node::Scheduler(job),
        }
    }

    /// The thread of a node, if it is one that exists and is not a server.
    #[must_use]
    pub fn thread_of(&self, node: Node) -> Option<WorkerId> {
        match node {
            Node::Worker(worker) => (worker.0 < self.workers).then_some(worker),
            Node::Scheduler(job) => ((job as usize) < self.tenants.len()).then(|| WorkerId(self.workers + job)),
            Node::Server(_) => None,
        }
    }

    /// The client of a node, if it has one.
    #[must_use]
    pub fn client_of(&self, node: Node) -> Option<ClientId> {
        let thread = self.thread_of(node)?;
        let clients = self.firsts.partition_point(|&first| first <= thread.0);
        Some(ClientId(clients as u32 - 1))
    }

    /// The job of a worker or a scheduler.
    #[must_use]
    pub fn job_of(&self, node: Node) -> Option<u32> {
        match node {
            Node::Worker(worker) => {
                self.tenants.iter().position(|tenant| tenant.workers.contains(&worker.0)).map(|job| job as u32)
            }
            Node::Scheduler(job) => self.thread_of(node).map(|_| job),
            Node::Server(_) => None,
        }
    }

    /// The tenant with this number.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn tenant(&self, job: u32) -> &Tenant {
        &self.tenants[job as usize]
    }

    /// A job's table by its number there: its number among all tables, and its schema.
    #[must_use]
    pub fn table(&self, job: u32, table: TableId) -> Option<(TableId, &TableSchema)> {
        let tables = &self.tenant(job).tables;
        let place = tables.start.checked_add(table.0).filter(|place| *place < tables.end)?;
        Some((TableId(place), &self.tables[place as usize]))
    }

    /// The members of a group, as a job sees it.
    #[must_use]
    pub fn members(&self, job: u32, group: Group) -> Vec<Node> {
        let workers = || self.tenant(job).workers.clone().map(|worker| Node::Worker(WorkerId(worker)));
        let servers = || (0..self.shards).map(|shard| Node::Server(ShardId(shard)));
        match group {
            Group::Workers => workers().collect(),
            Group::Servers => servers().collect(),
            Group::All => servers().chain(workers()).collect(),
            Group::Scheduler => vec![Node::Scheduler(job)],
            Group::One(node) => vec![node],
        }
    }

    /// Whether a node takes tasks of a job.
    #[must_use]
    pub fn is_callee(&self, job: u32, node: Node) -> bool {
        match node {
            Node::Server(shard) => shard.0 < self.shards,
            Node::Worker(worker) => self.tenant(job).workers.contains(&worker.0),
            Node::Scheduler(_) => false,
        }
    }
}
