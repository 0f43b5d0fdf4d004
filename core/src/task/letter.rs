//! What travels about tasks: from a node to a node, over the links between clients and shards.
//!
//! A worker has no link to another worker, so a letter to one goes by way of a shard, always the same for one receiver,
//! and letters from one node to another stay in order. The small things are in the head; keys, values and bytes lie beside
//! it as arrays.

use crate::array::Array;
use crate::ids::{ShardId, TableId, WorkerId};
use crate::task::{Group, Keys, Node, TaskId};
use crate::values::Values;
use serde::{Deserialize, Serialize};

/// A message about a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Letter {
    /// Who sends it.
    pub from: Node,
    /// Who is to get it.
    pub to: Node,
    /// A [`Head`], encoded.
    pub head: Array<u8>,
    /// The table, among those of all jobs, whose rows it carries or asks for; its encoding filters are the letter's.
    pub table: Option<TableId>,
    /// The keys of a push or a pull, unless they are a range.
    pub keys: Array<u64>,
    /// The dense rows of a push or of a reply to a pull.
    pub values: Option<Values>,
    /// A function's argument or what it returned.
    pub payload: Array<u8>,
}

/// What a letter says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Head {
    /// Do this.
    Task(TaskHead),
    /// A task of the receiver is done on the sender's node.
    Done {
        /// Which.
        number: u64,
        /// Microseconds that the sender had nothing to begin.
        waited_micros: u64,
        /// Microseconds that it worked on the task.
        ran_micros: u64,
    },
    /// A task of the receiver failed on the sender's node.
    Failed {
        /// Which.
        number: u64,
        /// Why, in one sentence.
        reason: String,
    },
    /// A task of the sender is done on all nodes; the receiver holds something that comes after it.
    Finished {
        /// Which.
        number: u64,
    },
}

/// A task as it travels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskHead {
    /// The sender's number for it.
    pub number: u64,
    /// What is to be done.
    pub call: CallHead,
    /// The sender's tasks that must be done before.
    pub after: Vec<u64>,
    /// The stamps that must be done before on the receiver's node.
    pub after_stamps: Vec<(Group, u64)>,
    /// The task's own stamp.
    pub stamp: Option<u64>,
    /// All of the sender's tasks below this number are done.
    pub settled: u64,
    /// What is to be said when it is done.
    pub tells: Tells,
}

/// Who must be told that a task is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tells {
    /// The caller, who tells others that hold something that comes after it.
    Caller,
    /// The caller; nobody else needs to be, since the receiver is the only one that it was issued to.
    CallerAlone,
    /// Nobody, unless it fails.
    Nobody,
}

/// What is to be done, without keys, values and bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum CallHead {
    /// Add the values, or keep them under the stamp.
    Push {
        /// The table, in the job's own numbering.
        table: TableId,
        /// The keys, if they are those of a range that are on the receiver's shard.
        range: Option<(u64, u64)>,
        /// Whether to keep them.
        keep: bool,
    },
    /// Send the values.
    Pull {
        /// The table, in the job's own numbering.
        table: TableId,
        /// As of a push.
        range: Option<(u64, u64)>,
    },
    /// Add the values and send what comes of it.
    PushPull {
        /// The table, in the job's own numbering.
        table: TableId,
        /// As of a push.
        range: Option<(u64, u64)>,
    },
    /// Call a function.
    Function {
        /// Its name.
        name: String,
    },
    /// No more tasks come.
    End,
}

impl Letter {
    /// A letter with nothing but a head.
    #[must_use]
    pub fn new(from: Node, to: Node, head: &Head) -> Self {
        let head = postcard::to_allocvec(head).expect("plain data can be encoded");
        Self {
            from,
            to,
            head: head.into(),
            table: None,
            keys: Vec::new().into(),
            values: None,
            payload: Vec::new().into(),
        }
    }

    /// What it says, if that can be read.
    #[must_use]
    pub fn read(&self) -> Option<Head> {
        postcard::from_bytes(&self.head).ok()
    }

    /// The task that it is about.
    pub(crate) fn task(&self) -> Option<TaskId> {
        let (caller, number) = match self.read()? {
            Head::Task(TaskHead { number, .. }) | Head::Finished { number } => (self.from, number),
            Head::Done { number, .. } | Head::Failed { number, .. } => (self.to, number),
        };
        Some(TaskId { caller, number })
    }
}

/// The keys of a letter whose call names a range or none.
pub(crate) fn keys_of(letter: &Letter, range: Option<(u64, u64)>) -> Keys {
    range.map_or_else(|| Keys::List(letter.keys.clone()), |(start, end)| Keys::Range(start..end))
}

impl Node {
    /// The node as one word of a header, small where its number is.
    pub(crate) fn code(self) -> u32 {
        let (kind, number) = match self {
            Self::Server(shard) => (0, shard.0),
            Self::Worker(worker) => (1, worker.0),
            Self::Scheduler(job) => (2, job),
        };
        number << KIND_BITS | kind
    }

    /// The node of a header's word, if it is one.
    pub(crate) fn from_code(code: u32) -> Option<Self> {
        let number = code >> KIND_BITS;
        match code & ((1 << KIND_BITS) - 1) {
            0 => Some(Self::Server(ShardId(number))),
            1 => Some(Self::Worker(WorkerId(number))),
            2 => Some(Self::Scheduler(number)),
            _ => None,
        }
    }
}

/// The lowest bits of a node's code say what it is.
const KIND_BITS: u32 = 2;
