//! What a client knows of versions: of the rows it has, of the rows its workers have read, and which it is done with.

use crate::column::Column;
use crate::ids::{Clock, ShardId};
use crate::misuse::Misuse;
use crate::rows::Rows;
use crate::schema::TableSchema;
use crate::slab::Shape;
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Versions {
    /// Of the rows in the cache.
    cached: Column<u32>,
    /// With which message with rows each of them came.
    arrived: Column<u64>,
    messages: u64,
    /// Per worker, of the rows as it has read them.
    read: Vec<Column<Read>>,
    /// Per worker, the newest version of each row that it has sent an update of.
    answered: Vec<Column<Option<u32>>>,
    /// Per clock that a worker has reached and not all have ended, how many messages with rows had been received from
    /// each shard when the first worker reached it.
    reached: VecDeque<(Clock, Vec<u64>)>,
}

/// A worker's last read of a row. The clock is stored plus one, so that zero means never.
#[derive(Debug, Clone, Copy, Default)]
struct Read {
    clock: u32,
    version: u32,
}

impl Versions {
    /// Those of a table that has a procedure which asks for them.
    pub(super) fn new(schema: &TableSchema, workers: usize, shards: u32) -> Option<Self> {
        schema.snapshot_width()?;
        let shape = Shape::new(schema)?;
        Some(Self {
            cached: Column::new(shape),
            arrived: Column::new(shape),
            messages: 0,
            read: (0..workers).map(|_| Column::new(shape)).collect(),
            answered: (0..workers).map(|_| Column::new(shape)).collect(),
            reached: VecDeque::from([(Clock(0), vec![0; shards as usize])]),
        })
    }

    /// Takes the versions of rows that have come from a shard.
    pub(super) fn store(&mut self, rows: &[u64], versions: &[u32]) {
        self.messages += 1;
        for (&row, &version) in rows.iter().zip(versions) {
            *self.cached.get_mut(row) = version;
            *self.arrived.get_mut(row) = self.messages;
        }
    }

    /// A worker reads cached rows in its clock.
    pub(super) fn read(&mut self, local: usize, clock: Clock, rows: &Rows<'_>) {
        let (cached, read) = (&self.cached, &mut self.read[local]);
        rows.for_each(|row| *read.get_mut(row) = Read { clock: clock.0.saturating_add(1), version: cached.get(row) });
    }

    /// The versions with which a worker's updates of `rows` are tagged.
    ///
    /// # Errors
    /// If the worker has not read one of them in this clock.
    pub(super) fn tags(
        &self,
        schema: &TableSchema,
        local: usize,
        clock: Clock,
        rows: &[u64],
    ) -> Result<Vec<u32>, Misuse> {
        let tag = |&row: &u64| {
            let read = self.read[local].get(row);
            let current = read.clock == clock.0.saturating_add(1);
            current.then_some(read.version).ok_or_else(|| Misuse::NotRead { table: schema.name.clone(), row })
        };
        rows.iter().map(tag).collect()
    }

    /// A worker's updates of rows have been sent.
    pub(super) fn sent(&mut self, local: usize, rows: &[u64], versions: &[u32]) {
        for (&row, &version) in rows.iter().zip(versions) {
            *self.answered[local].get_mut(row) = Some(version);
        }
    }

    /// When a worker's update of this version of a row has its turn, the least first: in the order in which versions came,
    /// and last where the worker has answered the newest version already, or is about to.
    pub(super) fn turn(&self, local: usize, row: u64, version: u32) -> u64 {
        let due = self.cached.get(row) == version && self.answered[local].get(row) != Some(version);
        if due { self.arrived.get(row) } else { u64::MAX }
    }

    /// A worker has reached `clock`, when so many messages with rows had come from each shard.
    pub(super) fn reach(&mut self, clock: Clock, received: &[u64]) {
        if self.reached.back().is_some_and(|(last, _)| *last < clock) {
            self.reached.push_back((clock, received.to_vec()));
        }
    }

    /// Every worker has reached `slowest` and its updates of earlier clocks have been sent: how many messages of each
    /// shard all later reads have found taken, where that is more than before.
    pub(super) fn seen(&mut self, slowest: Clock) -> Vec<(ShardId, u64)> {
        let mut before = None;
        while self.reached.front().is_some_and(|(clock, _)| *clock < slowest) {
            before = self.reached.pop_front();
        }
        let (Some((_, before)), Some((_, now))) = (before, self.reached.front()) else {
            return Vec::new();
        };
        let shards = (0..).map(ShardId).zip(before.iter().zip(now));
        shards.filter(|(_, (before, now))| now > before).map(|(shard, (_, now))| (shard, *now)).collect()
    }
}
