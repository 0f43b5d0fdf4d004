//! What travels between a client and a shard, and between two peers.
//!
//! Updates of one table from one client to one shard are counted from one, in the order of sending, and applied in
//! that order; `through` in a reply says how many of them are in the values. That is how a client that reads its own
//! writes knows which of them it must add again. Early updates of a clock that has not ended keep to that order,
//! because only those are sent early that the shard may show, and so apply, at once.

use crate::array::Array;
use crate::ids::{Clock, TableId, WorkerId};
use crate::peer::Block;
use crate::task::letter::Letter;
use crate::values::Values;

/// From a client to a shard.
#[derive(Debug, Clone, PartialEq)]
pub enum ToShard {
    /// Send these rows once their clock is at least `needed`, and on an eager table whenever they change.
    Get {
        /// The table.
        table: TableId,
        /// The least row clock that will do.
        needed: Clock,
        /// The rows.
        rows: Array<u64>,
    },
    /// Change these rows.
    Inc {
        /// The table.
        table: TableId,
        /// The clock in which the updates were made.
        clock: Clock,
        /// Who made them; under Bsp they are applied in this order.
        worker: WorkerId,
        /// The rows, ascending.
        rows: Array<u64>,
        /// Where the table's procedure asks for versions, that of each row as it was read. A row is then here once for
        /// every version, by ascending version.
        versions: Option<Array<u32>>,
        /// The updates.
        values: Values,
    },
    /// Every worker of this client has finished all clocks before this one, and all their updates have been sent.
    Clock {
        /// The clock.
        clock: Clock,
    },
    /// A checkpoint is taken at this clock. It is sent ahead of the client's first update of that clock, so that the
    /// first such message finds the shard without any newer update.
    Checkpoint {
        /// The clock.
        clock: Clock,
    },
    /// Under Vap: this client's workers see the first `through` messages with rows of the table. Of a table with
    /// versions: every update that follows was computed on rows as they were after those messages, or later.
    Seen {
        /// The table.
        table: TableId,
        /// How many.
        through: u64,
    },
    /// About a task, for the shard or for a node of another client.
    Task(Letter),
}

/// From a shard to a client.
#[derive(Debug, Clone, PartialEq)]
pub enum ToClient {
    /// Rows asked for, or rows that changed.
    Rows {
        /// The table.
        table: TableId,
        /// The rows' clock.
        clock: Clock,
        /// How many of this client's updates of the table are in the values.
        through: u64,
        /// The rows.
        rows: Array<u64>,
        /// Their versions, where the table's procedure asks for them.
        versions: Option<Array<u32>>,
        /// Their values.
        values: Values,
    },
    /// All updates of clocks before this one are in the shard's rows, and every changed row that this client has
    /// registered for has been sent.
    Clock {
        /// The clock.
        clock: Clock,
    },
    /// Under Vap: every client sees the first `through` of this client's updates of the table.
    Visible {
        /// The table.
        table: TableId,
        /// How many.
        through: u64,
    },
    /// About a task, for a node of the client.
    Task(Letter),
}

/// From a peer to another: its factor pairs of one iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct ToPeer {
    /// Who computed them.
    pub from: WorkerId,
    /// In which clock.
    pub clock: Clock,
    /// The pairs.
    pub block: Block,
}
