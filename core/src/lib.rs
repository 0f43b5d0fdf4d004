//! The protocol of Hemiola as values: clocks, rows, tables, caches, shards, messages and their codec.
//!
//! Nothing here opens a socket, starts a thread, reads a clock or draws a random number. A [`Client`] and a
//! [`Shard`] are state machines: an operation or a message goes in, messages come out of an outbox, and whoever
//! drives them carries the messages. The `hemiola` crate has three such drivers (threads, tcp, sim).
//!
//! In the order of a job:
//! - [`schema`] says what tables there are, and [`consistency`] how stale a read may be. That second file holds the
//!   only two functions that decide about staleness.
//! - A [`Client`] serves the workers of one process from its cache and buffers their updates; a [`Shard`] owns a
//!   part of every table, applies updates and sends rows back. [`Embedded`] is the client that needs no shard: in
//!   one process its cache is the master copy.
//! - [`procedure`] is what a shard does with an update where it does not just add it to its row.
//! - [`message`] and [`codec`] are what travels; [`link`] numbers it, so that it arrives once and in order whatever
//!   happens to the connection. [`filter`] makes less of it travel.
//! - A [`snapshot`] is a shard's tables exactly after a clock, taken while newer updates go on; [`checkpoint`] decides
//!   at which clocks.
//! - [`budget`] says how much a node may send, [`priority`] what goes first, and [`pacer`] when.
//! - [`task`] is the other way to use the tables: pushes, pulls and functions with dependencies, over the same links.
//! - A [`peer`] is a third way, without tables: replicas of a matrix that exchange factor pairs.
//! - [`splash`] is a fourth: replicas of shared variables that are changed by operators and combined now and then.
//! - [`coordinator`] sums what workers report and decides when a job begins, ends or has failed.

pub mod array;
pub mod budget;
mod cache;
pub mod checkpoint;
pub mod client;
pub mod codec;
mod column;
pub mod consistency;
pub mod coordinator;
mod delta;
pub mod embedded;
pub mod event;
pub mod filter;
pub mod ids;
mod lease;
pub mod link;
pub mod message;
mod misuse;
pub mod pacer;
pub mod peer;
mod precision;
pub mod priority;
pub mod procedure;
pub mod recycler;
pub mod row;
mod row_set;
mod rows;
pub mod sabotage;
pub mod schema;
pub mod shard;
mod slab;
pub mod snapshot;
mod snapshots;
pub mod splash;
mod store;
mod stored;
mod tagged;
pub mod task;
pub mod values;
mod varint;

pub use array::Array;
pub use budget::Budget;
pub use client::Client;
pub use consistency::Consistency;
pub use embedded::Embedded;
pub use event::{Event, StalenessHistogram};
pub use filter::{Filter, Filters};
pub use ids::{ClientId, Clock, ShardId, TableId, WorkerId};
pub use lease::Lease;
pub use misuse::Misuse;
pub use pacer::Pacer;
pub use peer::Peer;
pub use precision::Precision;
pub use priority::Priority;
pub use procedure::Procedure;
pub use row::{Row, RowKind, RowType};
pub use rows::Rows;
pub use schema::{Init, Job, Placement, SchemaError, TableSchema};
pub use shard::Shard;
pub use values::Values;
