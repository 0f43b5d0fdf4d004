//! A table's stored procedure at work on a shard: its numbers beside the rows, and the snapshots of the versions sent.

use crate::ids::{ClientId, Clock};
use crate::procedure::Procedure;
use crate::row::{RowKind, RowRef};
use crate::schema::{Init, TableSchema};
use crate::slab::Slab;
use crate::snapshot::{Kept, Part, PartError, Update};
use crate::snapshots::Snapshots;
use crate::values::Values;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Stored {
    procedure: Arc<dyn Procedure>,
    /// The procedure's state of every row, in chunks of as many rows as the table's.
    state: Slab,
    snapshots: Option<Snapshots>,
}

impl Stored {
    /// The procedure of a table whose part here is `rows`.
    pub(crate) fn new(schema: &TableSchema, rows: &Slab, clients: usize) -> Option<Self> {
        let procedure = Arc::clone(schema.procedure.as_ref()?);
        let here = |chunk: usize| !rows.chunks[chunk].is_empty();
        let shape = rows.shape;
        let mut state = Slab::new(shape.with_width(procedure.state_width(shape.width)), Init::Zero, here);
        for chunk in (0..shape.chunks()).filter(|&chunk| here(chunk)) {
            let first = shape.first_row(chunk);
            (first..first + shape.rows_of(chunk) as u64)
                .for_each(|row| procedure.created(rows.row(row), state.row_mut(row)));
        }
        let snapshots = schema.snapshot_width().map(|width| Snapshots::new(shape, width, clients));
        Some(Self { procedure, state, snapshots })
    }

    /// Holds the snapshots that an update needs until it is applied.
    ///
    /// # Errors
    /// The first row and version of which there is none.
    pub(crate) fn hold(&mut self, rows: &[u64], versions: Option<&[u32]>) -> Result<Vec<u32>, (u64, u32)> {
        match (&mut self.snapshots, versions) {
            (Some(snapshots), Some(versions)) => snapshots.hold(rows, versions),
            _ => Ok(Vec::new()),
        }
    }

    /// Whether a version of a row is the one that was sent last.
    pub(crate) fn is_newest(&self, row: u64, version: u32) -> bool {
        self.snapshots.as_ref().is_some_and(|snapshots| snapshots.newest(row) == version)
    }

    /// Changes `rows` of the table by `updates` that were made in `clock`; `slots` are what [`Stored::hold`] gave.
    pub(crate) fn apply(&mut self, table: &mut Slab, rows: &[u64], updates: &[f32], slots: &[u32], clock: Clock) {
        for (i, (&row, update)) in rows.iter().zip(updates.chunks_exact(table.shape.width)).enumerate() {
            let snapshot = match &mut self.snapshots {
                Some(snapshots) => {
                    snapshots.updated(row);
                    snapshots.numbers(slots[i])
                }
                None => &[],
            };
            self.procedure.apply(table.row_mut(row), self.state.row_mut(row), snapshot, update, clock);
        }
    }

    /// Changes rows and their `state`, which a checkpoint has kept as they were, by those of the updates that are for them.
    pub(crate) fn apply_kept(&self, kept: &mut Kept, mut state: Option<&mut Kept>, update: &Update<'_>) {
        let Values::Dense { width, numbers } = update.values else { return };
        for (i, (&row, numbers)) in update.rows.iter().zip(numbers.chunks_exact(*width as usize)).enumerate() {
            if let Some(kept) = kept.row_mut(row) {
                let state = state.as_mut().and_then(|state| state.row_mut(row)).unwrap_or_default();
                let snapshot = self.snapshots.as_ref().map_or(&[][..], |snapshots| snapshots.numbers(update.slots[i]));
                self.procedure.apply(kept, state, snapshot, numbers, update.made);
            }
        }
    }

    /// The procedure's state of every row.
    pub(crate) fn state(&self) -> &Slab {
        &self.state
    }

    /// Sets those of the rows' states of a checkpoint that are here.
    pub(crate) fn restore(&mut self, schema: &TableSchema, part: &Part) -> Result<(), PartError> {
        let kind = RowKind::Dense { width: self.state.shape.width as u32 };
        for (i, row) in part.rows(schema, &kind)?.into_iter().enumerate() {
            let RowRef::Dense(numbers) = part.values.row(i) else { continue };
            if !self.state.chunks[self.state.shape.chunk_of(row)].is_empty() {
                self.state.row_mut(row).copy_from_slice(numbers);
            }
        }
        Ok(())
    }

    /// Lets go of what [`Stored::hold`] held.
    pub(crate) fn release(&mut self, slots: &[u32]) {
        if let Some(snapshots) = &mut self.snapshots {
            slots.iter().for_each(|&slot| snapshots.release(slot));
        }
    }

    /// The versions of rows that are sent to a client in message `number`, where the procedure asks for versions.
    pub(crate) fn send(&mut self, table: &Slab, client: ClientId, number: u64, rows: &[u64]) -> Option<Vec<u32>> {
        let take = |row, snapshot: &mut [f32]| self.procedure.sent(table.row(row), self.state.row(row), snapshot);
        Some(self.snapshots.as_mut()?.send(client, number, rows, take))
    }

    /// A client sends no more updates of versions before those of its first `through` messages.
    pub(crate) fn seen(&mut self, client: ClientId, through: u64) {
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.seen(client, through);
        }
    }

    /// Whether a row may be sent before the consistency model asks for it, after `others` that are to be sent with it.
    pub(crate) fn may_send(&self, table: &Slab, row: u64, others: usize) -> bool {
        let kept = self.snapshots.as_ref().map_or(0, |snapshots| snapshots.kept() + others);
        self.procedure.may_send(table.row(row), self.state.row(row), kept)
    }
}
