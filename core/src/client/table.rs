//! One table as a client has it: cached rows, updates that were not sent, and updates that were.

use super::versions::Versions;
use crate::array::Array;
use crate::budget::stretches;
use crate::cache::{Cache, Mark};
use crate::consistency::Consistency;
use crate::delta::{Delta, ShardDelta};
use crate::filter::sieve::Sieve;
use crate::ids::{Clock, ShardId, TableId, WorkerId};
use crate::lease::{Lease, LeasedChunk};
use crate::message::ToShard;
use crate::precision::Precision;
use crate::row::{Row, RowKind, RowRef};
use crate::rows::Rows;
use crate::schema::{Job, TableSchema};
use crate::slab;
use crate::values::Values;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct ClientTable {
    pub(super) id: TableId,
    pub(super) schema: TableSchema,
    /// The client's workers.
    workers: Range<u32>,
    pub(super) shards: u32,
    /// The shard of each chunk, where the table has chunks.
    pub(super) homes: Vec<ShardId>,
    pub(super) cache: Cache,
    pub(super) versions: Option<Versions>,
    /// The filters that decide which updates travel.
    pub(super) sieve: Option<Sieve>,
    /// Per worker, its updates that have not been sent, by clock.
    pub(super) unsent: Vec<VecDeque<(Clock, Delta)>>,
    /// Empty buffers, kept for their memory.
    pub(super) spare: Vec<Delta>,
    /// Per shard, the updates that are sent and may not be in the rows that it sends back.
    pub(super) in_flight: Vec<VecDeque<(u64, Arc<ToShard>)>>,
    /// Per shard, how many updates were sent, and how many messages with rows were received.
    pub(super) updates_sent: Vec<u64>,
    pub(super) rows_received: Vec<u64>,
    /// Under a budget: how many bytes of rows a message may hold.
    pub(super) message_bytes: Option<usize>,
}

impl ClientTable {
    /// A table of which nothing is here yet.
    pub(super) fn new(id: TableId, schema: &TableSchema, workers: Range<u32>, job: &Job, sieve: Option<Sieve>) -> Self {
        let shards = job.shards;
        Self {
            id,
            schema: schema.clone(),
            shards,
            homes: homes(schema, shards),
            cache: Cache::new(schema),
            versions: Versions::new(schema, workers.len(), shards),
            sieve,
            unsent: workers.clone().map(|_| VecDeque::new()).collect(),
            spare: Vec::new(),
            workers,
            in_flight: (0..shards).map(|_| VecDeque::new()).collect(),
            updates_sent: vec![0; shards as usize],
            rows_received: vec![0; shards as usize],
            message_bytes: job.budget.map(|budget| budget.message_bytes()),
        }
    }

    /// Calls `f` with every row, what is known of it here, and its shard.
    pub(super) fn for_each_mark(&self, rows: &Rows<'_>, mut f: impl FnMut(u64, Mark, ShardId)) {
        match &self.cache {
            Cache::Flat { slab, marks } => {
                // Most rows lie in the chunk of the row before.
                let (mut first, mut length, mut home) = (0, 0, ShardId(0));
                let mut chunk_marks: &[Mark] = &[];
                rows.for_each(|row| {
                    if row.wrapping_sub(first) >= length {
                        let chunk = slab.shape.chunk_of(row);
                        (first, length, home) = (slab.shape.first_row(chunk), slab.shape.chunk_rows, self.homes[chunk]);
                        chunk_marks = &marks[chunk];
                    }
                    f(row, chunk_marks.get((row - first) as usize).copied().unwrap_or_default(), home);
                });
            }
            Cache::Rows(_) => {
                rows.for_each(|row| f(row, self.cache.mark(row), self.schema.shard_of(row, self.shards)));
            }
        }
    }

    /// The buffer for a worker's updates of its current clock.
    pub(super) fn open_delta(&mut self, local: usize, clock: Clock) -> &mut Delta {
        let unsent = &mut self.unsent[local];
        if unsent.back().is_none_or(|(last, _)| *last != clock) {
            let delta = self.spare.pop().unwrap_or_else(|| Delta::new(&self.schema));
            unsent.push_back((clock, delta));
        }
        &mut unsent.back_mut().expect("just made").1
    }

    pub(super) fn send(
        &mut self,
        clock: Clock,
        worker: WorkerId,
        mut delta: Delta,
        outbox: &mut Vec<(ShardId, Arc<ToShard>)>,
    ) {
        for part in delta.take(&self.schema.kind, |unit| self.home(unit)) {
            self.send_part(clock, worker, part, outbox);
        }
        self.spare.push(delta);
    }

    /// The shard of a chunk of a flat table, or of a row of any other.
    pub(super) fn home(&self, unit: u64) -> ShardId {
        match &self.cache {
            Cache::Flat { .. } => self.homes[unit as usize],
            Cache::Rows(_) => self.schema.shard_of(unit, self.shards),
        }
    }

    /// Sends updates of one shard's rows, in as many messages as the budget asks for.
    pub(super) fn send_part(
        &mut self,
        clock: Clock,
        worker: WorkerId,
        part: ShardDelta,
        outbox: &mut Vec<(ShardId, Arc<ToShard>)>,
    ) {
        let bytes = |i| self.schema.row_bytes(part.values.row(i));
        let pieces = self.message_bytes.map(|limit| stretches(part.rows.len(), limit, bytes)).unwrap_or_default();
        if pieces.len() <= 1 {
            return self.send_piece((clock, worker), part, outbox);
        }
        let ShardDelta { shard, rows, versions, values } = part;
        for stretch in pieces {
            let rows = rows[stretch.clone()].to_vec();
            let versions = versions.as_ref().map(|versions| versions[stretch.clone()].to_vec());
            let piece = ShardDelta { shard, rows, versions, values: values.part(stretch) };
            self.send_piece((clock, worker), piece, outbox);
        }
    }

    fn send_piece(
        &mut self,
        (clock, worker): (Clock, WorkerId),
        piece: ShardDelta,
        outbox: &mut Vec<(ShardId, Arc<ToShard>)>,
    ) {
        let ShardDelta { shard, rows, versions, values } = piece;
        // Only under a budget anyone asks what has been answered.
        if let (Some(_), Some(known), Some(versions)) = (self.message_bytes, &mut self.versions, &versions) {
            known.sent((worker.0 - self.workers.start) as usize, &rows, versions);
        }
        let (schema, rows, versions) = (&self.schema, Array::from(rows), versions.map(Array::from));
        let message = |rows: Array<u64>, values| {
            let versions = versions.clone();
            Arc::new(ToShard::Inc { table: self.id, clock, worker, rows, versions, values })
        };
        let sent = schema.precision.narrow(values);
        // What is kept is what the shard will have, rounded where the wire rounds.
        let kept = schema.precision.widen(&sent).expect("just narrowed");
        if schema.read_my_writes {
            self.cache.fold_all(schema, &rows, &kept, |_| true);
        }
        let inc = message(rows.clone(), sent);
        let kept = if schema.precision == Precision::F32 { Arc::clone(&inc) } else { message(rows, kept) };
        let number = &mut self.updates_sent[shard.index()];
        *number += 1;
        self.in_flight[shard.index()].push_back((*number, kept));
        outbox.push((shard, inc));
    }

    /// Under Vap: sends a worker's updates ahead of the end of their clocks.
    pub(super) fn send_unsent(
        &mut self,
        (worker, local): (WorkerId, usize),
        outbox: &mut Vec<(ShardId, Arc<ToShard>)>,
    ) {
        for (clock, delta) in std::mem::take(&mut self.unsent[local]) {
            self.send(clock, worker, delta, outbox);
        }
    }

    /// Takes note that a worker reads rows that are here.
    pub(super) fn mark_read(&mut self, local: usize, clock: Clock, rows: &Rows<'_>) {
        if let Some(versions) = &mut self.versions {
            versions.read(local, clock, rows);
        }
    }

    /// Of a table with versions: a worker has reached `clock`.
    pub(super) fn reach(&mut self, clock: Clock) {
        if let Some(versions) = &mut self.versions {
            versions.reach(clock, &self.rows_received);
        }
    }

    /// Of a table with versions: says what may be forgotten, now that all updates of clocks before `slowest` are sent.
    pub(super) fn send_seen(&mut self, slowest: Clock, outbox: &mut Vec<(ShardId, Arc<ToShard>)>) {
        let Some(versions) = &mut self.versions else { return };
        let seen = |(shard, through)| (shard, Arc::new(ToShard::Seen { table: self.id, through }));
        outbox.extend(versions.seen(slowest).into_iter().map(seen));
    }

    /// Takes rows from a shard; `through` of this client's updates are in them, the later ones are added here.
    pub(super) fn take_rows(&mut self, shard: ShardId, clock: Clock, through: u64, rows: &[u64], values: &Values) {
        self.rows_received[shard.index()] += 1;
        self.cache.store(rows, values, clock);
        // Updates are applied in the order of their numbers and answers stay in order, so what is in these rows is in
        // every row that the shard will send. Under Vap an update is in transit until every client has seen it.
        if !matches!(self.schema.consistency, Consistency::Vap { .. }) {
            let in_flight = &mut self.in_flight[shard.index()];
            while in_flight.front().is_some_and(|(number, _)| *number <= through) {
                in_flight.pop_front();
            }
        }
        if !self.schema.read_my_writes {
            return;
        }
        for (number, inc) in &self.in_flight[shard.index()] {
            let ToShard::Inc { rows: updated, values: updates, .. } = &**inc else {
                continue;
            };
            if *number <= through {
                continue;
            }
            // Both ascend. A few are looked for among the others; many are met in one walk over both.
            if rows.len() < updated.len() / 16 {
                for &row in rows {
                    if let Ok(at) = updated.binary_search(&row) {
                        self.cache.fold(&self.schema, row, updates.row(at));
                    }
                }
            } else {
                let mut left = rows;
                self.cache.fold_all(&self.schema, updated, updates, |row| {
                    if left.first().is_some_and(|first| *first < row) {
                        left = &left[left.partition_point(|other| *other < row)..];
                    }
                    left.first() == Some(&row)
                });
            }
        }
    }

    /// Drops the record of updates that are in every row the shard will send from now on.
    pub(super) fn forget_applied(&mut self, shard: ShardId, clock: Clock) {
        // Under Vap an update is in transit until every client has seen it, which the shard says by itself.
        if matches!(self.schema.consistency, Consistency::Vap { .. }) {
            return;
        }
        let in_flight = &mut self.in_flight[shard.index()];
        while in_flight
            .front()
            .is_some_and(|(_, inc)| matches!(&**inc, ToShard::Inc { clock: made, .. } if *made < clock))
        {
            in_flight.pop_front();
        }
    }

    /// Rows that are here, as a worker sees them.
    pub(super) fn view(&self, local: usize, rows: &Rows<'_>) -> Values {
        if let RowKind::Dense { width } = self.schema.kind {
            let mut numbers = Vec::new();
            self.view_dense(local, rows, &mut numbers);
            return Values::dense(width, numbers);
        }
        let mut views = Vec::with_capacity(rows.len());
        rows.for_each(|row| {
            let mut view = self.cache.row(row);
            self.own_updates(local, |delta| {
                delta.with_row(row, |update| self.schema.kind.apply(&mut view, update));
            });
            views.push(view);
        });
        Values::collect(&self.schema.kind, views.iter())
    }

    pub(super) fn view_dense(&self, local: usize, rows: &Rows<'_>, out: &mut Vec<f32>) {
        match (&self.cache, rows) {
            (Cache::Flat { slab, .. }, Rows::List(rows)) => slab.gather(rows, out),
            (Cache::Flat { slab, .. }, rows) => rows.for_each(|row| out.extend_from_slice(slab.row(row))),
            (Cache::Rows(_), rows) => rows.for_each(|row| {
                if let Row::Dense(numbers) = self.cache.row(row) {
                    out.extend_from_slice(&numbers);
                }
            }),
        }
        let RowKind::Dense { width } = self.schema.kind else { unreachable!("only dense rows are viewed as such") };
        self.own_updates(local, |delta| {
            let mut views = out.chunks_exact_mut(width as usize);
            rows.for_each(|row| {
                let view = views.next().expect("one for each row");
                delta.with_row(row, |update| {
                    if let RowRef::Dense(update) = update {
                        slab::add(view, update);
                    }
                });
            });
        });
    }

    fn own_updates(&self, local: usize, f: impl FnMut(&Delta)) {
        if self.schema.read_my_writes {
            self.unsent[local].iter().map(|(_, delta)| delta).for_each(f);
        }
    }

    pub(super) fn lend(&self, local: usize, rows: &Rows<'_>) -> Lease {
        let Cache::Flat { slab, .. } = &self.cache else { unreachable!("only flat tables are leased") };
        let chunks = rows.chunks(&slab.shape);
        let lend = |index: usize| {
            let mut numbers = slab.chunks[index].clone();
            self.own_updates(local, |delta| delta.apply_chunk(index, &mut numbers));
            LeasedChunk { index, origin: numbers.clone(), numbers }
        };
        Lease { table: self.id, shape: slab.shape, chunks: chunks.into_iter().map(lend).collect() }
    }

    /// Whether a worker's updates in transit stay within `bound` in every coordinate with these added. They become
    /// visible in order, so what someone does not see is the newest of them: every sum of newest ones counts, and an
    /// earlier one of opposite sign is no excuse. With nothing in transit any update fits, for want of anything to
    /// wait for.
    pub(super) fn fits_in_transit(
        &self,
        (worker, local): (WorkerId, usize),
        rows: &[u64],
        updates: &Values,
        bound: f32,
    ) -> bool {
        let mut sum = Vec::new();
        rows.iter().enumerate().all(|(i, &row)| {
            let RowRef::Dense(update) = updates.row(i) else {
                return false;
            };
            sum.clear();
            sum.extend_from_slice(update);
            let mut fits = |earlier: RowRef<'_>| {
                if let RowRef::Dense(earlier) = earlier {
                    slab::add(&mut sum, earlier);
                }
                sum.iter().all(|x| x.abs() <= bound)
            };
            let unsent = self.unsent[local].iter().rev();
            let shard = self.schema.shard_of(row, self.shards);
            let mut sent = self.in_flight[shard.index()].iter().rev();
            unsent.map(|(_, delta)| delta.with_row(row, &mut fits)).all(|fits| fits != Some(false))
                && sent.all(|(_, inc)| match &**inc {
                    ToShard::Inc { worker: writer, rows, values, .. } if *writer == worker => {
                        rows.binary_search(&row).map_or(true, |at| fits(values.row(at)))
                    }
                    _ => true,
                })
        })
    }
}

fn homes(schema: &TableSchema, shards: u32) -> Vec<ShardId> {
    let chunks = slab::Shape::new(schema).map_or(0, |shape| shape.chunks());
    (0..chunks as u64).map(|chunk| schema.shard_of_unit(chunk, shards)).collect()
}
