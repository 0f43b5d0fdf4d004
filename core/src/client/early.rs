//! What a client sends before a clock ends, where the budget has room for it.
//!
//! Only updates that anyone may be shown at once are sent early: those of a clock below that of the slowest worker plus
//! the staleness bound. So a shard never has to hold an early update back, and since an update that it does hold back
//! was sent at the end of a clock, after which this client sends none of that clock or an earlier one, a client's
//! updates are applied in the order of their numbers, early or not.
//!
//! Of a table with versions a worker answers each version of a row once, in the order in which they came, whatever the
//! priority: it is the order in which shards send them to all, so all answer a row at about the same time, and the shard has
//! it to send on (`core/src/shard/answers.rs`).

use super::Client;
use super::table::ClientTable;
use super::versions::Versions;
use crate::budget::Budget;
use crate::consistency::Consistency;
use crate::delta::Delta;
use crate::ids::{ClientId, WorkerId};
use crate::priority::{Priority, Selector};
use crate::row::RowRef;
use crate::schema::Job;
use crate::tagged::Tagged;
use hashbrown::HashMap;

/// What has been chosen so far.
#[derive(Debug)]
pub(super) struct Early {
    priority: Priority,
    /// Per table and worker.
    selectors: Vec<Vec<Selector>>,
    /// Which table and worker has its turn.
    turn: usize,
}

impl Early {
    pub(super) fn new(budget: &Budget, job: &Job, client: ClientId) -> Self {
        let workers = || job.workers_of(client).map(|_| Selector::new(budget.priority)).collect();
        Self { priority: budget.priority, selectors: job.tables.iter().map(|_| workers()).collect(), turn: 0 }
    }
}

impl Client {
    /// Puts updates of about `bytes` bytes that have not been sent into the outbox, ahead of the end of their clocks
    /// and the most important first; says of how many. The tables and workers take turns. Without a budget it does
    /// nothing.
    pub fn send_early(&mut self, bytes: usize) -> usize {
        let Some(mut early) = self.early.take() else { return 0 };
        let (slowest, workers) = (self.slowest(), self.workers.len());
        let buffers = self.tables.len() * workers;
        let mut left = bytes;
        for step in 0..buffers {
            let (index, local) = ((early.turn + step) / workers % self.tables.len(), (early.turn + step) % workers);
            let table = &mut self.tables[index];
            if matches!(table.schema.consistency, Consistency::Bsp | Consistency::Vap { .. }) {
                continue;
            }
            let worker = WorkerId(self.workers.start + local as u32);
            let selector = &mut early.selectors[index][local];
            let mut unsent = std::mem::take(&mut table.unsent[local]);
            for (clock, delta) in &mut unsent {
                if left == 0 || !table.schema.consistency.may_show(*clock, slowest) {
                    continue;
                }
                let rows = match (&table.versions, &*delta) {
                    (Some(versions), Delta::Tagged(_, updates)) => table.choose_answers(versions, local, updates, left),
                    _ => table.choose(delta, left, selector, early.priority),
                };
                for part in delta.take_rows(&table.schema.kind, &rows, |unit| table.home(unit)) {
                    let Some(part) = table.hold_back_early((*clock, worker), delta, part) else { continue };
                    let sent: usize = (0..part.rows.len()).map(|i| table.schema.row_bytes(part.values.row(i))).sum();
                    left = left.saturating_sub(sent);
                    table.send_part(*clock, worker, part, &mut self.outbox);
                }
            }
            table.unsent[local] = unsent;
            if left == 0 {
                early.turn = (early.turn + step + 1) % buffers;
                break;
            }
        }
        self.early = Some(early);
        bytes - left
    }
}

impl ClientTable {
    /// Chooses rows of about `limit` bytes of a worker's updates, which are kept apart by versions: those first whose turn it
    /// is, and where the budget leaves room also what was computed since.
    fn choose_answers(&self, versions: &Versions, local: usize, updates: &Tagged, limit: usize) -> Vec<u64> {
        let mut turns: HashMap<u64, (u64, usize)> = HashMap::new();
        updates.for_each(|row, version, update| {
            let (turn, bytes) = turns.entry(row).or_insert((u64::MAX, 0));
            *turn = versions.turn(local, row, version).min(*turn);
            *bytes += self.schema.row_bytes(RowRef::Dense(update));
        });
        let mut turns: Vec<(u64, u64, usize)> =
            turns.into_iter().map(|(row, (turn, bytes))| (turn, row, bytes)).collect();
        turns.sort_unstable();
        let (mut rows, mut left) = (Vec::new(), limit);
        for (_, row, bytes) in turns {
            if left == 0 {
                break;
            }
            left = left.saturating_sub(bytes);
            rows.push(row);
        }
        rows.sort_unstable();
        rows
    }

    /// Chooses rows of about `limit` bytes of a buffer.
    fn choose(&self, delta: &Delta, limit: usize, selector: &mut Selector, priority: Priority) -> Vec<u64> {
        let kind = &self.schema.kind;
        let weigh = |row: u64| delta.with_row(row, |update| self.schema.row_bytes(update)).unwrap_or(0);
        let importance = |row: u64| {
            let of = |update: RowRef<'_>| match priority {
                Priority::RelativeMagnitude => self.cache.with_row(row, |old| kind.importance(old, update)),
                _ => kind.importance(None, update),
            };
            delta.with_row(row, of).unwrap_or(0.0)
        };
        selector.choose(limit, |from, show| delta.walk(from, show), weigh, importance)
    }
}
