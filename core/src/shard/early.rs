//! What a shard sends before its clock advances, where the budget has room for it.
//!
//! A row that was sent is no longer one that changed, so the end of the clock sends the others. Whatever has been
//! applied may be shown to anyone, which is why nothing has to be asked about staleness here. Of a table with versions
//! only those rows are sent that enough workers have answered. As at the end of a clock, no client is sent what it alone has
//! changed.

use super::authors::Authors;
use super::{Shard, ShardTable};
use crate::array::Array;
use crate::budget::{Budget, stretches};
use crate::consistency::Consistency;
use crate::delta::Delta;
use crate::ids::{ClientId, Clock, ShardId};
use crate::message::ToClient;
use crate::priority::{Priority, Selector};
use crate::row::RowRef;
use crate::schema::TableSchema;
use crate::values::Values;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What a row that nobody has written takes in a message: its id and where it ends.
const ROW_BYTES_MIN: usize = 12;

/// What has been chosen so far, and what of.
#[derive(Debug)]
pub(super) struct Early {
    message_bytes: usize,
    priority: Priority,
    selector: Selector,
    /// How each row has changed since it was last sent, where the priority asks for it.
    changes: Option<Delta>,
}

impl Early {
    pub(super) fn new(budget: &Budget, schema: &TableSchema) -> Self {
        let priority = budget.priority;
        let compares = priority.is_by_magnitude() && schema.consistency.is_eager();
        Self {
            message_bytes: budget.message_bytes(),
            priority,
            selector: Selector::new(priority),
            changes: compares.then(|| Delta::coalesced(schema)),
        }
    }

    /// These rows have been sent to all who are to have them.
    pub(super) fn forget_changes(&mut self, rows: &[u64]) {
        self.changes.iter_mut().for_each(|changes| changes.forget(rows));
    }
}

impl Shard {
    /// Puts changed rows into the outbox, of about `bytes` bytes for all who are to have them, ahead of the end of the
    /// clock and the most important first; says of how many. The tables take turns. Without a budget it does nothing.
    pub fn send_early(&mut self, bytes: usize) -> usize {
        let answered = self.send_answered(bytes);
        answered + self.send_changed(bytes - answered)
    }

    /// Of what [`Shard::send_early`] sends, the rows of tables without versions: what is left of the budget after
    /// [`Shard::send_answered`], taking turns with the updates of a client that shares it.
    pub fn send_changed(&mut self, bytes: usize) -> usize {
        let mut left = bytes;
        let tables = self.tables.len();
        for step in 0..tables {
            let table = &mut self.tables[(self.early_turn + step) % tables];
            if left > 0 && table.answers.is_none() && table.sends_early() {
                left = left.saturating_sub(table.send_early((self.id, self.clock), left, &mut self.outbox));
            }
        }
        self.early_turn = (self.early_turn + 1) % tables;
        bytes - left
    }

    /// Of what [`Shard::send_early`] sends, the rows of tables with versions, once they have been answered. They need no
    /// turns with the updates of a client: none come up before clients have sent theirs, and as long as one waits workers
    /// compute on a version that is about to be superseded.
    pub fn send_answered(&mut self, bytes: usize) -> usize {
        let mut left = bytes;
        for table in self.tables.iter_mut().filter(|table| table.answers.is_some() && table.sends_early()) {
            if left > 0 {
                left = left.saturating_sub(table.send_early((self.id, self.clock), left, &mut self.outbox));
            }
        }
        bytes - left
    }
}

impl ShardTable {
    fn sends_early(&self) -> bool {
        matches!(self.schema.consistency, Consistency::Essp { .. } | Consistency::Async)
    }

    /// Sends changed rows of about `limit` bytes; says of how many.
    fn send_early(
        &mut self,
        (shard, clock): (ShardId, Clock),
        limit: usize,
        outbox: &mut Vec<(ClientId, Arc<ToClient>)>,
    ) -> usize {
        let Some(mut early) = self.early.take() else { return 0 };
        let clients = || (0..self.subscribers.len() as u32).map(ClientId);
        let weigh = |row: u64| self.row_bytes(row) * clients().filter(|&client| self.is_news(client, row)).count();
        let kind = &self.schema.kind;
        let importance = |row: u64| {
            let of = |change: RowRef<'_>| match early.priority {
                Priority::RelativeMagnitude => self.store.with_row(row, |now| kind.importance(now, change)),
                _ => kind.importance(None, change),
            };
            early.changes.as_ref().and_then(|changes| changes.with_row(row, of)).unwrap_or(0.0)
        };
        let due = |row: u64| self.answers.as_ref().is_none_or(|answers| answers.suffice(row));
        let mut no_news = Vec::new();
        let walk = |from: u64, show: &mut dyn FnMut(u64) -> ControlFlow<()>| {
            self.dirty.walk(from, &mut |row| {
                if clients().all(|client| !self.is_news(client, row)) {
                    no_news.push(row);
                } else if due(row) {
                    return show(row);
                }
                ControlFlow::Continue(())
            });
        };
        let mut rows = early.selector.choose(limit, walk, weigh, importance);
        let mut allowed = 0;
        rows.retain(|&row| {
            let may = self.may_send_early(row, allowed);
            allowed += usize::from(may);
            may
        });
        if self.lag.is_some() {
            // A filter that fails will fail again when the clock ends, where someone can be told.
            rows.sort_unstable();
            let held_back = self.hold_back((shard, clock), &rows).unwrap_or_else(|_| rows.clone());
            rows.retain(|row| held_back.binary_search(row).is_err());
        }
        let bytes = rows.iter().map(|&row| weigh(row)).sum();
        if let Some(answers) = &mut self.answers {
            answers.pushed(&rows);
        }
        let news = |client| rows.iter().copied().filter(|&row| self.is_news(client, row)).collect();
        let news: Vec<(ClientId, Vec<u64>)> = clients().map(|client| (client, news(client))).collect();
        for known in [&rows, &no_news] {
            early.forget_changes(known);
            self.dirty.remove_all(known);
            self.authors.iter_mut().for_each(|authors| authors.forget(known));
        }
        self.early = Some(early);
        for (client, rows) in news {
            if !rows.is_empty() {
                outbox.extend(self.rows_messages(client, clock, rows.into()));
            }
        }
        self.note_pushed(&rows);
        bytes
    }

    /// The messages that bring a client these rows: one, or under a budget as many as it asks for.
    pub(super) fn rows_messages(
        &mut self,
        client: ClientId,
        clock: Clock,
        rows: Array<u64>,
    ) -> Vec<(ClientId, Arc<ToClient>)> {
        let pieces = match &self.early {
            Some(early) => stretches(rows.len(), early.message_bytes, |i| self.row_bytes(rows[i])),
            None => Vec::new(),
        };
        if pieces.len() <= 1 {
            return vec![(client, self.rows_message(client, clock, rows))];
        }
        let message = |piece: std::ops::Range<usize>| rows[piece].to_vec().into();
        let pieces: Vec<Array<u64>> = pieces.into_iter().map(message).collect();
        pieces.into_iter().map(|rows| (client, self.rows_message(client, clock, rows))).collect()
    }

    /// Whether a client is to be sent a row that has changed: whether it reads it and others have changed it.
    fn is_news(&self, client: ClientId, row: u64) -> bool {
        let knows = |authors: &Authors| authors.knows(client, row);
        self.subscribers[client.index()].registered.contains(row) && !self.authors.as_ref().is_some_and(knows)
    }

    fn row_bytes(&self, row: u64) -> usize {
        self.store.with_row(row, |row| row.map_or(ROW_BYTES_MIN, |row| self.schema.row_bytes(row)))
    }

    /// Takes note of updates that are about to be applied.
    pub(super) fn note_changes(&mut self, rows: &[u64], updates: &Values) {
        if let Some(Early { changes: Some(changes), .. }) = &mut self.early {
            changes.add_all(&self.schema.kind, rows, updates);
        }
    }
}
