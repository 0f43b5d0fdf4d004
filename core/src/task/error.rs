//! Tasks that cannot be issued, and tasks that failed.

use crate::task::split::KEYS_MAX;
use crate::task::{Node, TaskId};
use std::fmt;
use thiserror::Error;

/// A task that cannot be issued.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum TaskError {
    #[error("there is no table {table}; the job has {tables}")]
    NoSuchTable { table: u32, tables: usize },
    #[error("table '{table}' has {rows} rows, so there is no key {key}")]
    NoSuchKey { table: String, key: u64, rows: u64 },
    #[error("table '{table}': the keys of a task must ascend, and key {key} follows key {before}")]
    Unsorted { table: String, before: u64, key: u64 },
    #[error("table '{table}': a task may name {KEYS_MAX} keys at most, not {keys}")]
    TooManyKeys { table: String, keys: usize },
    #[error("table '{table}': {numbers} numbers of width {width} are not one row for each of {keys} keys")]
    Misfit { table: String, keys: usize, width: u32, numbers: usize },
    #[error("table '{table}': its rows have {expected} numbers, and those pushed have {width}")]
    Width { table: String, expected: u32, width: u32 },
    #[error("table '{table}': tasks push and pull dense rows, and this table's are {kind}")]
    NotDense { table: String, kind: String },
    #[error("table '{table}': a function of the servers does for tasks what a stored procedure does, so use one")]
    Procedure { table: String },
    #[error("table '{table}': every row that a task pulls was asked for, so filter '{filter}' has none to hold back")]
    SelectsRows { table: String, filter: String },
    #[error("table '{table}': filter '{filter}' goes by what a worker has read, and tasks keep no rows")]
    NoRows { table: String, filter: String },
    #[error(transparent)]
    Filter(Box<TaskFailure>),
    #[error("the function '{name}' cannot be called on {node}: it is not a worker of this job, nor a server")]
    NotACallee { name: String, node: Node },
    #[error("{node} has issued a task with stamp {stamp} before")]
    StampTwice { node: Node, stamp: u64 },
    #[error("{caller} cannot come after {id}: only tasks that a node issued itself can be named by their handle")]
    NotIssuedHere { caller: Node, id: TaskId },
    #[error("the tasks wait for one another in a circle: {}", circle(.tasks))]
    Cycle { tasks: Vec<String> },
    #[error("job '{job}' needs at least one worker")]
    NoWorkers { job: String },
    #[error("the jobs have {wanted} workers together, and the deployment has {workers}")]
    Workers { wanted: u32, workers: u32 },
    #[error("a bandwidth budget is for tables; what tasks push and pull is sent when they are issued")]
    Budget,
    #[error("two jobs are called '{job}'")]
    SameName { job: String },
}

/// A task that failed on a node.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct TaskFailure {
    /// The task.
    pub id: TaskId,
    /// What it was to do.
    pub what: String,
    /// Where it failed.
    pub node: Node,
    /// Why, in one sentence.
    pub reason: String,
}

impl fmt::Display for TaskFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, what, node, reason } = self;
        write!(f, "{what} failed on {node} in {id}: {reason}")
    }
}

/// The tasks of a circle, the first of them again at the end.
fn circle(tasks: &[String]) -> String {
    let names = tasks.iter().chain(tasks.first()).map(|name| format!("'{name}'"));
    names.collect::<Vec<_>>().join(" after ")
}
