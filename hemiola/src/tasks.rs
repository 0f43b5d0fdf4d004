//! The task programming model: asynchronous pushes, pulls and functions with dependencies between them.
//!
//! A [`Job`] has workers, a scheduler and tables on the servers. The scheduler's program issues [`Task`]s, most of them
//! functions on all workers; a worker's program makes its state and then serves its functions, which issue pushes and
//! pulls; servers have functions too, which work on their part of the tables. The same job runs on threads, over tcp
//! and in the simulator.
//!
//! ```
//! use hemiola::tasks::{self, Group, Job, Node, Task};
//! use hemiola::{Deployment, TableId, TableSchema, Values};
//!
//! const COUNTER: TableId = TableId(0);
//!
//! let job = Job {
//!     name: "count".to_owned(),
//!     workers: 2,
//!     tables: vec![TableSchema::dense("counter", 1, 1)],
//!     worker: &|node| {
//!         node.serve(&mut (), &[("add", &|_, node: &mut Node<'_, ()>, _| {
//!             node.issue(Task::push(COUNTER, 0..1, Values::dense(1, vec![1.0])))?;
//!             Ok(Vec::new())
//!         })])
//!     },
//!     scheduler: &|node| {
//!         // Done when both workers' calls have returned and their pushes are done.
//!         let added = node.issue(Task::call(Group::Workers, "add", vec![]))?;
//!         let counter = node.issue(Task::pull(COUNTER, 0..1).after([&added]))?;
//!         Ok(format!("{:?}", node.wait_numbers(&counter)?.to_vec()).into_bytes())
//!     },
//!     server: vec![],
//! };
//! let outcome = tasks::run(&Deployment::threads(2), &[job])?;
//! assert_eq!(outcome.results[0], b"[2.0]");
//! # Ok::<(), hemiola::Error>(())
//! ```
//!
//! In the order of a job: [`run`] starts it, [`Node`] is what its programs write against, [`Iterations`] issues one
//! iteration after the other under a [`Delay`], and [`Passes`] those of a method that works on blocks.

mod iterations;
mod node;
mod passes;

pub use hemiola_core::task::delay::{Auto, Delay, DelayError, Measured};
pub use hemiola_core::task::graph::{Graph, Place};
pub use hemiola_core::task::numbers::{pack, unpack, unpack_some};
pub use hemiola_core::task::service::ServerFunction;
pub use hemiola_core::task::{Group, Handle, Keys, Node as NodeId, Pushed, Reply, Server, Task, TaskId};
pub use hemiola_core::task::{TaskError, TaskFailure};
pub use iterations::Iterations;
pub use node::{Function, Node};
pub use passes::{Passed, Passes, Step};

use crate::deployment::{Deployment, Observer, Outcome, run_any};
use crate::error::Error;
use crate::worker::Worker;
use hemiola_core::TableSchema;
use hemiola_core::filter::{Direction, Filter};
use hemiola_core::row::RowKind;
use hemiola_core::shard::tasks::panic_message;
use hemiola_core::task::service::Tenant;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A job of tasks. Several may share the servers, each with workers, tables and functions of its own.
pub struct Job<'a> {
    /// Its name; its tables are called by it where several jobs have tables of one name.
    pub name: String,
    /// How many of the deployment's workers are its own.
    pub workers: u32,
    /// Its tables. A [`TableId`](crate::TableId) of the job is a position in this list.
    pub tables: Vec<TableSchema>,
    /// What a worker does: it makes its state and serves functions until the job ends.
    pub worker: &'a WorkerProgram<'a>,
    /// What the scheduler does, on a node of its own; when it returns the job ends. What it returns is the job's result.
    pub scheduler: &'a SchedulerProgram<'a>,
    /// The functions of the servers, by name.
    pub server: Vec<(&'static str, Arc<ServerFunction>)>,
}

/// A worker's program.
pub type WorkerProgram<'a> = dyn Fn(&mut Node<'_, ()>) -> Result<(), Error> + Sync + 'a;
/// A scheduler's program.
pub type SchedulerProgram<'a> = dyn Fn(&mut Node<'_, ()>) -> Result<Vec<u8>, Error> + Sync + 'a;

/// Runs jobs of tasks on one group of servers. The outcome has a result for each job, and for each worker, then each
/// scheduler, where its time went.
///
/// # Errors
/// The first failure of any job.
pub fn run(deployment: &Deployment, jobs: &[Job<'_>]) -> Result<Outcome, Error> {
    run_observed(deployment, jobs, &mut |_| {})
}

/// The same, and shows `observer` what workers and schedulers report.
///
/// # Errors
/// As [`run`].
pub fn run_observed(deployment: &Deployment, jobs: &[Job<'_>], observer: &mut Observer<'_>) -> Result<Outcome, Error> {
    let tenants = tenants(deployment, jobs)?;
    let named = |job: &Job<'_>, table: &TableSchema| match jobs.len() {
        1 => table.clone(),
        _ => TableSchema { name: format!("{}/{}", job.name, table.name), ..table.clone() },
    };
    let tables: Vec<TableSchema> =
        jobs.iter().flat_map(|job| job.tables.iter().map(|table| named(job, table))).collect();
    let workers = deployment.workers();
    let program = |worker: &mut Worker| {
        let thread = worker.id().0;
        if let Some(job) = thread.checked_sub(workers) {
            let tenant = &tenants[job as usize];
            let id = NodeId::Scheduler(job);
            let mut node = Node::new(worker, id, tenant.workers.clone());
            // Caught here because a driver would call it by the number of its thread.
            let result = catch_unwind(AssertUnwindSafe(|| (jobs[job as usize].scheduler)(&mut node)));
            let panicked = |panic: Box<dyn Any + Send>| {
                Error::program(format!("{id} panicked: {}", panic_message(panic.as_ref())))
            };
            let result = result.map_err(panicked)??;
            node.end()?;
            return Ok(result);
        }
        let job = tenants.iter().position(|tenant| tenant.workers.contains(&thread)).expect("every worker has a job");
        let id = NodeId::Worker(worker.id());
        (jobs[job].worker)(&mut Node::new(worker, id, tenants[job].workers.clone()))?;
        Ok(Vec::new())
    };
    let mut outcome = run_any(deployment, &tables, &tenants, None, &program, observer)?;
    outcome.results.drain(..workers as usize);
    Ok(outcome)
}

/// Why a filter of a table can do nothing for tasks.
fn refused_filter(table: &TableSchema) -> Option<TaskError> {
    let refused = |direction, filter: &Filter| {
        let Filter::Selection(selection) = filter else { return None };
        let (table, filter) = (table.name.clone(), selection.name().to_owned());
        match direction {
            Direction::Rows => Some(TaskError::SelectsRows { table, filter }),
            Direction::Updates => selection.needs_value().then_some(TaskError::NoRows { table, filter }),
        }
    };
    let of = |direction| table.filters.chain(direction).iter().find_map(|filter| refused(direction, filter));
    of(Direction::Rows).or_else(|| of(Direction::Updates))
}

/// The jobs as the servers know them.
fn tenants(deployment: &Deployment, jobs: &[Job<'_>]) -> Result<Vec<Tenant>, TaskError> {
    if deployment.budget().is_some() {
        return Err(TaskError::Budget);
    }
    let (mut worker, mut table) = (0, 0);
    let mut tenants: Vec<Tenant> = Vec::new();
    for job in jobs {
        let refusal = job.tables.iter().find_map(|table| {
            let name = table.name.clone();
            match (&table.kind, &table.procedure) {
                (RowKind::Dense { .. }, None) => refused_filter(table),
                (RowKind::Dense { .. }, Some(_)) => Some(TaskError::Procedure { table: name }),
                (kind, _) => Some(TaskError::NotDense { table: name, kind: format!("{kind:?}") }),
            }
        });
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        if job.workers == 0 {
            return Err(TaskError::NoWorkers { job: job.name.clone() });
        }
        if tenants.iter().any(|tenant| tenant.name == job.name) {
            return Err(TaskError::SameName { job: job.name.clone() });
        }
        let (first_worker, first_table) = (worker, table);
        worker += job.workers;
        table += job.tables.len() as u32;
        let functions = job.server.iter().map(|(name, function)| ((*name).to_owned(), Arc::clone(function)));
        tenants.push(Tenant {
            name: job.name.clone(),
            workers: first_worker..worker,
            tables: first_table..table,
            functions: functions.collect(),
        });
    }
    if worker != deployment.workers() {
        return Err(TaskError::Workers { wanted: worker, workers: deployment.workers() });
    }
    Ok(tenants)
}
