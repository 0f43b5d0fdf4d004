//! Stored procedures: what an update does to a row, decided on the shard.
//!
//! Without one an update is added to its row. With one the shard hands row, update and the procedure's own numbers to
//! [`Procedure::apply`]; updates are then whatever the procedure takes them for, as a rule raw gradients. Before that,
//! updates of a row are still coalesced by addition.
//!
//! # Versions
//! A procedure that declares a [`Procedure::snapshot_width`] above zero is told how old the row was that an update was
//! computed on. The definition:
//! - A row has version 0 until it is first updated. When a shard sends a row that has been updated since it was last
//!   sent to anyone, its version goes up by one first; all updates that are applied between two sendings belong to
//!   the version of the second. So a version is one state of a row, and two clients that were sent a row
//!   without an update in between have the same one.
//! - When a version is first sent, [`Procedure::sent`] writes the snapshot that is kept for it.
//! - An update is tagged with the version that its worker's last read of the row came from. That read must have been
//!   made in the same clock; an update of a row that was not read in its clock is refused. Updates are coalesced only
//!   within a version.
//! - [`Procedure::apply`] gets the snapshot of the version that the update is tagged with.
//! - A snapshot is freed when no client can send an update of its version any more, and none waits to be applied
//!   (`core/src/snapshots.rs` has the proof).

mod gradient;

use crate::ids::Clock;
use std::fmt;

pub use gradient::{AdaGrad, AdaRevision, Schedule, Sgd};

/// What a shard does with the updates of a dense table.
///
/// The numbers that a procedure keeps are plain slices whose widths it declares: `state` beside every row, and one
/// snapshot for every version of a row that some client holds. Nothing else is saved or restored with the table, so a
/// procedure must not keep anything that changes in itself.
pub trait Procedure: fmt::Debug + Send + Sync {
    /// How many numbers it keeps beside a row of `width` numbers.
    fn state_width(&self, width: usize) -> usize {
        let _ = width;
        0
    }

    /// How many numbers it remembers of every version of a row; zero if it does not ask for versions.
    fn snapshot_width(&self, width: usize) -> usize {
        let _ = width;
        0
    }

    /// Fills the state of a row that nobody has changed yet; it comes as zeros.
    fn created(&self, row: &[f32], state: &mut [f32]) {
        let _ = (row, state);
    }

    /// Changes `row` and `state` by an update that was made in `clock`, on the version of the row that `snapshot` was
    /// taken of. Several updates of a clock may have been coalesced into it.
    fn apply(&self, row: &mut [f32], state: &mut [f32], snapshot: &[f32], update: &[f32], clock: Clock);

    /// Writes what is to be remembered of the version of a row that is being sent.
    fn sent(&self, row: &[f32], state: &[f32], snapshot: &mut [f32]) {
        let _ = (row, state, snapshot);
    }

    /// Whether a row may be sent before the consistency model asks for it, while the shard keeps `kept` snapshots of
    /// the table. What the model asks for is sent in any case.
    fn may_send(&self, row: &[f32], state: &[f32], kept: usize) -> bool {
        let _ = (row, state, kept);
        true
    }
}
