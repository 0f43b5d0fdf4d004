//! Tasks: what a caller asks of a callee, asynchronously, and what must be done before.
//!
//! A [`Task`] is a push or a pull of keyed values, or a function by its name, on a node or a group of nodes. Its caller
//! keeps a [`Handle`]; its callee holds it until the tasks that it comes `after` are done. A task is done when its call
//! has returned and the tasks that the call issued are done, on every node that it was issued to.
//!
//! A dependency names a task by its handle, or ahead of time by a **stamp**: a number that the issuer gave it. "After
//! stamp 7 of the workers" is fulfilled on a node when a task with stamp 7 of every worker is done *on that node*, which
//! the node knows by itself. So an update on a server waits for the pushes of all workers without a message about it.
//!
//! In the order of a task: a [`desk`] is a worker's or a scheduler's place, with the [`ledger`] of what it issued and the
//! [`callee`]'s queue of what it was asked; `selection` takes from a push what filters hold back, [`split`] cuts keyed values by server, a [`letter`] carries them, and a shard
//! does what it says. [`service`] says who there is. [`graph`] and [`delay`] make dependencies: any graph, or the rule of
//! bounded delay.

pub mod callee;
pub mod delay;
pub mod desk;
pub mod error;
pub mod graph;
pub mod ledger;
pub mod letter;
pub mod numbers;
pub mod runs;
mod selection;
pub mod service;
pub mod split;

pub use crate::shard::tasks::{Pushed, Server};
pub use error::{TaskError, TaskFailure};

use crate::array::Array;
use crate::ids::{ShardId, TableId, WorkerId};
use crate::values::Values;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Who issues tasks, or executes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Node {
    /// The owner of a shard.
    Server(ShardId),
    /// A worker.
    Worker(WorkerId),
    /// The scheduler of a job, by the job's number.
    Scheduler(u32),
}

/// Whom a task is for, or whose stamps are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Group {
    /// The workers of the job.
    Workers,
    /// All servers, which the jobs share.
    Servers,
    /// The workers of the job and all servers.
    All,
    /// The scheduler of the job, who issues tasks and takes none.
    Scheduler,
    /// One node.
    One(Node),
}

/// A task's name: who issued it, and which of his tasks it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskId {
    /// Who issued it.
    pub caller: Node,
    /// His tasks are numbered from zero.
    pub number: u64,
}

/// What a caller keeps of a task that it issued. The task's reply is kept for as long as a handle is.
#[derive(Debug, Clone)]
pub struct Handle {
    /// The task.
    pub id: TaskId,
    /// Held by every handle of the task: when it is gone, nobody can ask for the reply.
    pub(crate) _claim: Arc<()>,
}

/// The keys of a push or a pull: row ids of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Keys {
    /// All keys of a range.
    Range(Range<u64>),
    /// These keys, ascending.
    List(Array<u64>),
}

/// Something to be done elsewhere: make one, say what it comes after, and issue it.
#[derive(Debug, Clone)]
pub struct Task {
    pub(crate) call: Call,
    pub(crate) after: Vec<Handle>,
    pub(crate) after_stamps: Vec<(Group, u64)>,
    pub(crate) stamp: Option<u64>,
    pub(crate) quiet: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Call {
    Push { table: TableId, keys: Keys, values: Values, keep: bool },
    Pull { table: TableId, keys: Keys },
    PushPull { table: TableId, keys: Keys, values: Values },
    Function { on: Group, name: String, argument: Array<u8> },
    End,
}

/// What came back from all nodes of a task.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// What was pulled, in the order of the keys.
    pub values: Option<Values>,
    /// What the function returned, by node.
    pub returned: Vec<(Node, Array<u8>)>,
    /// Seconds that the nodes had nothing they might begin, before the task and within it, summed over the nodes.
    pub waited_seconds: f64,
    /// Seconds that the nodes worked on it, summed over the nodes.
    pub ran_seconds: f64,
}

impl Task {
    fn new(call: Call) -> Self {
        Self { call, after: Vec::new(), after_stamps: Vec::new(), stamp: None, quiet: false }
    }

    /// Adds values to a table's rows, one row for each key.
    #[must_use]
    pub fn push(table: TableId, keys: impl Into<Keys>, values: Values) -> Self {
        Self::new(Call::Push { table, keys: keys.into(), values, keep: false })
    }

    /// Reads a table's rows.
    #[must_use]
    pub fn pull(table: TableId, keys: impl Into<Keys>) -> Self {
        Self::new(Call::Pull { table, keys: keys.into() })
    }

    /// Adds values to a table's rows and reads what comes of it, in one message each way.
    #[must_use]
    pub fn push_pull(table: TableId, keys: impl Into<Keys>, values: Values) -> Self {
        Self::new(Call::PushPull { table, keys: keys.into(), values })
    }

    /// Calls a function by its name on every node of a group.
    #[must_use]
    pub fn call(on: Group, name: &str, argument: impl Into<Array<u8>>) -> Self {
        Self::new(Call::Function { on, name: name.to_owned(), argument: argument.into() })
    }

    /// Tells the workers of a job that no more tasks come.
    #[must_use]
    pub fn end() -> Self {
        Self::new(Call::End)
    }

    /// Not before these tasks, which the same node issued, are done.
    #[must_use]
    pub fn after<'a>(mut self, tasks: impl IntoIterator<Item = &'a Handle>) -> Self {
        self.after.extend(tasks.into_iter().cloned());
        self
    }

    /// On each node, not before tasks with this stamp from every member of `issuers` are done there.
    #[must_use]
    pub fn after_stamp(mut self, issuers: Group, stamp: u64) -> Self {
        self.after_stamps.push((issuers, stamp));
        self
    }

    /// Gives the task a number by which others can come after it. An issuer uses a number once. A push or a pull with a
    /// stamp goes to every server, with keys or without, since each may have someone waiting for it.
    #[must_use]
    pub fn stamp(mut self, stamp: u64) -> Self {
        self.stamp = Some(stamp);
        self
    }

    /// Asks for no reply but that it failed, where something that comes later tells as much: the task counts as done when
    /// it is issued, for whoever waits for it and for the task that issued it. What comes after it should name its stamp.
    #[must_use]
    pub fn quietly(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// Makes a push that the servers do not add to the table but keep, for a function of theirs that asks for the sum
    /// over all who pushed under this stamp ([`Server::aggregate`]). The values may have another width than the table's.
    #[must_use]
    pub fn keep(mut self, stamp: u64) -> Self {
        if let Call::Push { keep, .. } = &mut self.call {
            *keep = true;
        }
        self.stamp(stamp)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(shard) => write!(f, "server {}", shard.0),
            Self::Worker(worker) => write!(f, "{worker}"),
            Self::Scheduler(0) => write!(f, "the scheduler"),
            Self::Scheduler(job) => write!(f, "the scheduler of job {job}"),
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workers => write!(f, "all workers"),
            Self::Servers => write!(f, "all servers"),
            Self::All => write!(f, "all workers and servers"),
            Self::Scheduler => write!(f, "the scheduler"),
            Self::One(node) => write!(f, "{node}"),
        }
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {} of {}", self.number, self.caller)
    }
}

impl Keys {
    /// How many keys.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Range(range) => range.end.saturating_sub(range.start) as usize,
            Self::List(keys) => keys.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Range<u64>> for Keys {
    fn from(range: Range<u64>) -> Self {
        Self::Range(range)
    }
}

impl From<Vec<u64>> for Keys {
    fn from(keys: Vec<u64>) -> Self {
        Self::List(keys.into())
    }
}

impl From<&Array<u64>> for Keys {
    fn from(keys: &Array<u64>) -> Self {
        Self::List(keys.clone())
    }
}

impl Call {
    /// The call in a few words, for messages to people.
    pub(crate) fn describe(&self, table: impl Fn(TableId) -> String) -> String {
        match self {
            Self::Push { table: id, keys, .. } => format!("push of {} keys to table '{}'", keys.len(), table(*id)),
            Self::Pull { table: id, keys } => format!("pull of {} keys of table '{}'", keys.len(), table(*id)),
            Self::PushPull { table: id, keys, .. } => {
                format!("push and pull of {} keys of table '{}'", keys.len(), table(*id))
            }
            Self::Function { on, name, .. } => format!("function '{name}' on {on}"),
            Self::End => "end of the job".to_owned(),
        }
    }
}
