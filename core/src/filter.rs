//! Filters: which entries of a batch travel now, and in which form (Parameter Server, section 3.3).
//!
//! A table has a chain of filters for each direction: for updates on their way to a shard, and for rows on their way
//! to a client. A batch is a list of ascending row ids and as many values. Two kinds of filters work on it:
//!
//! - An [`Encoding`] keeps every entry and changes how the message is written. The receiver undoes it exactly, so
//!   nothing that is promised about reads changes. Its state belongs to one connection and begins anew with the next:
//!   whoever was restarted is sent everything that it cannot know.
//! - A [`Selection`] says which entries travel now. What it holds back is kept for later or dropped, as it declares
//!   with [`Remainder`].
//!
//! # What a read may miss
//! Without selection filters a read sees what `consistency.rs` says. With them it sees that, less what was held back:
//! - Of **updates**, an entry of a worker's finished clock that was held back and kept counts as an update of the first
//!   clock that the worker's process has not sent. The worker that made it goes on seeing it if it reads its own writes;
//!   others see it when it travels. A dropped one is seen by nobody once its clock has been sent.
//! - Of **rows**, a client that has a row keeps what it was last sent, while the shard remembers that it lacks the rest.
//!   A row that it asks for is sent whatever the filter says; `get_latest` asks for every row. This needs a table whose
//!   workers do not read their own writes: a change of theirs that another's cancels is none for the shard, and what they
//!   would see would drift away from it without bound.
//!
//! Tasks: filters of updates apply to pushes, as `task/selection.rs` says; every row that is pulled was asked for.
//!
//! [`Client::flush`](crate::Client::flush) lets everything kept travel at the end of the clock. After it, and where
//! nothing drops, the tables are the sums of all updates. Clocks at which a checkpoint may be taken flush by
//! themselves, so a checkpoint lacks nothing that was kept.
//!
//! In the order of a message: [`sieve`] applies the selection filters, [`stream`] the encoding ones, and [`ledger`]
//! counts what each of them saved. [`list`] reads filters from a line of text.

mod compress;
mod feedback;
mod key_cache;
mod kkt;
pub mod ledger;
pub mod list;
mod random_skip;
pub mod sieve;
mod significant;
pub mod stream;
mod zeros;

pub use compress::{Lz4, Zstd};
pub use feedback::Feedback;
pub use key_cache::KeyCache;
pub use kkt::Kkt;
pub use random_skip::RandomSkip;
pub use significant::Significant;

use crate::array::Array;
use crate::consistency::Consistency;
use crate::ids::Clock;
use crate::row::{RowKind, RowRef};
use crate::schema::{SchemaError, TableSchema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// The most filters that a chain may have.
pub const CHAIN_MAX: usize = 16;

/// The filters of a table, in the order in which a sender applies them.
#[derive(Debug, Clone, Default)]
pub struct Filters {
    /// Those of updates, from clients to shards. The encoding ones are for requests for rows too.
    pub updates: Vec<Filter>,
    /// Those of rows, from shards to clients.
    pub rows: Vec<Filter>,
}

/// One filter of a chain.
#[derive(Debug, Clone)]
pub enum Filter {
    /// It decides which entries travel.
    Selection(Arc<dyn Selection>),
    /// It decides how they are written.
    Encoding(Arc<dyn Encoding>),
}

/// Which way a batch travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From a client to a shard.
    Updates,
    /// From a shard to a client.
    Rows,
}

/// Why a filter cannot do its work, as it says itself.
pub type Reason = Box<dyn std::error::Error + Send + Sync>;

/// A filter that failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("filter '{filter}' of table '{table}' failed in {node}: {reason}")]
pub struct FilterError {
    /// Its name.
    pub filter: String,
    /// The table's name.
    pub table: String,
    /// The process that it failed in.
    pub node: String,
    /// What it says itself.
    pub reason: String,
}

/// Decides which entries travel. It keeps nothing that changes: what it knows comes with the entry.
pub trait Selection: fmt::Debug + Send + Sync {
    /// Its name, for people.
    fn name(&self) -> &str;

    /// Whether the entry travels now.
    ///
    /// # Errors
    /// If it cannot tell; the job ends with that.
    fn travels(&self, entry: &Entry<'_>) -> Result<bool, Reason>;

    /// What becomes of an update that does not travel. Rows are always kept.
    fn remainder(&self) -> Remainder {
        Remainder::Kept
    }

    /// Whether it goes by the row as the sender has it, so that where senders keep no rows it has no effect.
    fn needs_value(&self) -> bool {
        false
    }

    /// Whether it can judge entries of this kind that travel this way.
    ///
    /// # Errors
    /// What it needs instead, as the end of a sentence.
    fn check(&self, kind: &RowKind, direction: Direction) -> Result<(), &'static str> {
        let _ = (kind, direction);
        Ok(())
    }
}

/// What becomes of an update that does not travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remainder {
    /// It stays with its worker, is added to the row's next update, and is judged again with that.
    Kept,
    /// It is lost.
    Dropped,
}

/// One row of a batch, to be judged.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The row.
    pub row: u64,
    /// The clock in which it would travel: of updates the clock that they are sent with, of rows the shard's.
    pub clock: Clock,
    /// Who sends it: of updates the worker's number, of rows the shard's.
    pub sender: u32,
    /// What the receiver lacks: the update, or the difference to the row as it was last sent.
    pub change: RowRef<'a>,
    /// The row itself as the sender has it, if it does.
    pub value: Option<RowRef<'a>>,
}

/// Decides how messages are written.
pub trait Encoding: fmt::Debug + Send + Sync {
    /// Its name, for people.
    fn name(&self) -> &str;

    /// What encodes the messages of a new connection.
    fn encoder(&self) -> Box<dyn Encoder>;

    /// What undoes that at the other end.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// What it does to the row ids.
    fn keys(&self) -> Keys {
        Keys::Ignored
    }
}

/// What an encoding does to the row ids of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// It neither needs nor changes them.
    Ignored,
    /// It needs them as they are.
    Needed,
    /// After it nobody can tell them from the values.
    Hidden,
}

/// Encodes the messages of one direction of one connection, in order.
pub trait Encoder: fmt::Debug + Send {
    /// Changes the body, or leaves it alone and says `false`: then the message travels without this filter.
    ///
    /// # Errors
    /// If it cannot; the job ends with that.
    fn encode(&mut self, body: &mut Body<'_>) -> Result<bool, Reason>;
}

/// Undoes what an [`Encoder`] has done to the messages of one direction of one connection, in order.
pub trait Decoder: fmt::Debug + Send {
    /// Changes the body back. It takes no more than `bytes_max` bytes then, and what arrives may be anything at all.
    ///
    /// # Errors
    /// If no encoder has made such a body.
    fn decode(&mut self, body: &mut Arrived, bytes_max: usize) -> Result<(), Reason>;
}

/// The body of a message that is being encoded.
#[derive(Debug)]
pub struct Body<'a> {
    /// The row ids, as little-endian words of eight bytes until a filter changes that.
    pub keys: Cow<'a, [u8]>,
    /// Everything after them, in up to three pieces.
    pub values: [Cow<'a, [u8]>; 3],
}

/// The body of a message that has arrived.
#[derive(Debug)]
pub struct Arrived {
    /// What became of the row ids.
    pub keys: Array<u8>,
    /// What became of everything after them.
    pub values: Array<u8>,
}

impl Filter {
    /// Its name, for people.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Selection(filter) => filter.name(),
            Self::Encoding(filter) => filter.name(),
        }
    }

    /// A filter that selects.
    pub fn selection(filter: impl Selection + 'static) -> Self {
        Self::Selection(Arc::new(filter))
    }

    /// A filter that encodes.
    pub fn encoding(filter: impl Encoding + 'static) -> Self {
        Self::Encoding(Arc::new(filter))
    }
}

impl Filters {
    /// The chain of one direction.
    #[must_use]
    pub fn chain(&self, direction: Direction) -> &[Filter] {
        match direction {
            Direction::Updates => &self.updates,
            Direction::Rows => &self.rows,
        }
    }

    /// The tables, with these filters where they have none of their own.
    #[must_use]
    pub fn for_those_without(&self, tables: &[TableSchema]) -> Vec<TableSchema> {
        let mut tables = tables.to_vec();
        for table in &mut tables {
            if table.filters.updates.is_empty() && table.filters.rows.is_empty() {
                table.filters = self.clone();
            }
        }
        tables
    }

    /// Whether one direction has a filter that selects.
    #[must_use]
    pub fn selects(&self, direction: Direction) -> bool {
        self.chain(direction).iter().any(|filter| matches!(filter, Filter::Selection(_)))
    }

    /// Checks that the chains can do what they say on this table.
    pub(crate) fn validate(&self, schema: &TableSchema) -> Result<(), SchemaError> {
        [Direction::Updates, Direction::Rows].into_iter().try_for_each(|direction| self.check(schema, direction))
    }

    fn check(&self, schema: &TableSchema, direction: Direction) -> Result<(), SchemaError> {
        let chain = self.chain(direction);
        let refuse = |filter: &str, reason: String| {
            Err(SchemaError::Filter { table: schema.name.clone(), filter: filter.to_owned(), reason })
        };
        if chain.len() > CHAIN_MAX {
            return refuse(chain[CHAIN_MAX].name(), format!("is one too many; a chain has at most {CHAIN_MAX}"));
        }
        let mut hidden_by: Option<&str> = None;
        for (i, filter) in chain.iter().enumerate() {
            if chain[..i].iter().any(|other| other.name() == filter.name()) {
                return refuse(filter.name(), "is in a chain twice".to_owned());
            }
            match filter {
                Filter::Selection(selection) => {
                    if let Err(need) = selection.check(&schema.kind, direction) {
                        return refuse(filter.name(), need.to_owned());
                    }
                    if matches!(schema.consistency, Consistency::Vap { .. }) {
                        return refuse(filter.name(), "could hold back what the value bound counts as sent".to_owned());
                    }
                    if direction == Direction::Updates && schema.snapshot_width().is_some() {
                        return refuse(
                            filter.name(),
                            "could hold back an update until its version is forgotten".to_owned(),
                        );
                    }
                    if direction == Direction::Rows && !schema.consistency.is_eager() {
                        return refuse(
                            filter.name(),
                            "has nothing to hold back: without eager pushes every row that travels was asked for"
                                .to_owned(),
                        );
                    }
                    if direction == Direction::Rows && schema.read_my_writes {
                        return refuse(
                            filter.name(),
                            "needs workers that do not read their own writes, which could hide what it holds back"
                                .to_owned(),
                        );
                    }
                    if direction == Direction::Rows && matches!(schema.kind, RowKind::Custom(_)) {
                        return refuse(filter.name(), "cannot tell how far rows of a user's type differ".to_owned());
                    }
                }
                Filter::Encoding(encoding) => match (encoding.keys(), hidden_by) {
                    (Keys::Needed, Some(other)) => {
                        return refuse(filter.name(), format!("must come before '{other}', which hides the row ids"));
                    }
                    (Keys::Hidden, _) => hidden_by = Some(filter.name()),
                    _ => {}
                },
            }
        }
        Ok(())
    }
}

/// The largest magnitude in a row; `None` of a user's type.
fn magnitude(row: RowRef<'_>) -> Option<f32> {
    // What is not a number is larger than every number.
    let larger = |largest: f32, x: &f32| if x.abs() > largest || x.is_nan() { x.abs() } else { largest };
    let largest = |numbers: &[f32]| numbers.iter().fold(0.0f32, larger);
    match row {
        RowRef::Dense(numbers) | RowRef::Sparse(_, numbers) => Some(largest(numbers)),
        RowRef::Counts(_, counts) => Some(counts.iter().map(|count| count.unsigned_abs()).max().unwrap_or(0) as f32),
        RowRef::Custom(_) => None,
    }
}
