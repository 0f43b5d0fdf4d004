//! The client that needs no shard: in one process its cache is the master copy, and an update is applied at once.
//!
//! Workers read and change the rows themselves, so a worker's unfinished clock is in plain sight of the others. To
//! keep the definition of record (a reader at clock `c` sees nothing newer than clock `c + s − 1`) a worker starts a
//! clock one later than it might over shards. With staleness 0 that cannot work, and a [`Client`](crate::Client) with
//! a [`Shard`](crate::Shard) beside it in the same process is used instead.

use crate::client::Wait;
use crate::ids::{Clock, TableId, WorkerId};
use crate::lease::{Lease, LeasedChunk};
use crate::misuse::{Misuse, check_dense, check_lease, check_rows, check_update};
use crate::recycler::Recycler;
use crate::row::RowRef;
use crate::rows::Rows;
use crate::schema::{Job, TableSchema};
use crate::snapshot::{Layer, Part, PartError, TableSnapshot, Update};
use crate::store::Store;
use crate::values::Values;
use crate::{Event, StalenessHistogram};
use std::task::Poll;

/// All tables of a job, in one process.
#[derive(Debug)]
pub struct Embedded {
    staleness: Option<u32>,
    tables: Vec<EmbeddedTable>,
    worker_clocks: Vec<Clock>,
    /// The clock at which workers meet for a checkpoint.
    meeting: Option<Clock>,
    /// The clock of the checkpoint that is being taken.
    checkpoint: Option<Clock>,
    events: Vec<Event>,
    histogram: StalenessHistogram,
}

#[derive(Debug)]
struct EmbeddedTable {
    id: TableId,
    schema: TableSchema,
    store: Store,
    /// What a checkpoint that is being taken has of the table.
    snapshot: Option<TableSnapshot>,
    /// Who holds each chunk, where the table has chunks.
    lent: Vec<Option<WorkerId>>,
}

impl Embedded {
    /// Whether the job can run without shards: it can unless a table allows no staleness at all or has a stored
    /// procedure, whose updates are the shard's business.
    #[must_use]
    pub fn suits(job: &Job) -> bool {
        let stored = job.tables.iter().any(|table| table.procedure.is_some());
        job.workers_per_client.len() == 1 && job.staleness() != Some(0) && !stored
    }

    /// The tables of a job that [`Embedded::suits`].
    #[must_use]
    pub fn new(job: &Job) -> Self {
        let table = |(i, schema): (usize, &TableSchema)| {
            let store = Store::new(schema, |_| true);
            let chunks = if let Store::Flat(slab) = &store { slab.shape.chunks() } else { 0 };
            let (id, schema) = (TableId(i as u32), schema.clone());
            EmbeddedTable { id, schema, store, snapshot: None, lent: vec![None; chunks] }
        };
        Self {
            staleness: job.staleness(),
            tables: job.tables.iter().enumerate().map(table).collect(),
            worker_clocks: vec![Clock(0); job.workers() as usize],
            meeting: None,
            checkpoint: None,
            events: Vec::new(),
            histogram: StalenessHistogram::default(),
        }
    }

    /// What has happened since it was last asked.
    pub fn events(&mut self) -> std::vec::Drain<'_, Event> {
        self.events.drain(..)
    }

    /// How stale reads were.
    #[must_use]
    pub fn histogram(&self) -> &StalenessHistogram {
        &self.histogram
    }

    /// How many workers share the tables.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.worker_clocks.len()
    }

    /// The clock of a worker.
    #[must_use]
    pub fn clock_of(&self, worker: WorkerId) -> Clock {
        self.worker_clocks[worker.index()]
    }

    fn slowest(&self) -> Clock {
        *self.worker_clocks.iter().min().expect("a job has workers")
    }

    /// Reads rows. It must wait while another worker holds them.
    ///
    /// # Errors
    /// If the table or a row does not exist.
    pub fn get(&mut self, worker: WorkerId, table: TableId, rows: &Rows<'_>) -> Result<Poll<Values>, Misuse> {
        let slot = self.table(table)?;
        check_rows(&slot.schema, rows)?;
        if slot.is_lent(rows) {
            return Ok(Poll::Pending);
        }
        let mut list = Vec::with_capacity(rows.len());
        rows.for_each(|row| list.push(row));
        let values = slot.store.gather(&slot.schema, &list, &mut Recycler::new(0));
        self.count_reads(worker, table, rows.len());
        Ok(Poll::Ready(values))
    }

    /// Reads rows in which every update of every finished clock is: waits until all workers are at this one's clock.
    ///
    /// # Errors
    /// If the table or a row does not exist.
    pub fn get_latest(&mut self, worker: WorkerId, table: TableId, rows: &Rows<'_>) -> Result<Poll<Values>, Misuse> {
        if self.slowest() < self.clock_of(worker) {
            return Ok(Poll::Pending);
        }
        self.get(worker, table, rows)
    }

    /// Reads rows of a dense table into `out`, one after the other.
    ///
    /// # Errors
    /// If the table or a row does not exist, or its rows are not dense.
    pub fn get_dense(
        &mut self,
        worker: WorkerId,
        table: TableId,
        rows: &Rows<'_>,
        out: &mut Vec<f32>,
    ) -> Result<Poll<()>, Misuse> {
        let slot = self.table(table)?;
        check_dense(&slot.schema)?;
        check_rows(&slot.schema, rows)?;
        if slot.is_lent(rows) {
            return Ok(Poll::Pending);
        }
        out.clear();
        match &slot.store {
            Store::Flat(slab) => rows.for_each(|row| out.extend_from_slice(slab.row(row))),
            Store::Rows(_) => rows.for_each(|row| {
                if let RowRef::Dense(numbers) = slot.store.gather(&slot.schema, &[row], &mut Recycler::new(0)).row(0) {
                    out.extend_from_slice(numbers);
                }
            }),
        }
        self.count_reads(worker, table, rows.len());
        Ok(Poll::Ready(()))
    }

    /// Changes rows at once. It must wait while another worker holds them.
    ///
    /// # Errors
    /// If the table or a row does not exist, or the updates do not fit.
    pub fn inc(&mut self, table: TableId, rows: &[u64], updates: &Values) -> Result<Poll<()>, Misuse> {
        let slot = self.table(table)?;
        check_update(&slot.schema, rows, updates)?;
        if slot.is_lent(&Rows::List(rows)) || slot.must_wait_to_change(rows) {
            return Ok(Poll::Pending);
        }
        if let Some(snapshot) = &mut slot.snapshot {
            // Nobody is behind the checkpoint: everyone met there.
            let update = Update { made: Clock(u32::MAX), rows, values: updates, slots: &[] };
            snapshot.before_update(&slot.schema, &slot.store, None, &update);
        }
        slot.store.apply(&slot.schema, rows, updates);
        Ok(Poll::Ready(()))
    }

    /// Lends the chunks that hold `rows`: the master copy itself. It must wait while another worker holds one of them.
    ///
    /// # Errors
    /// If the table or a row does not exist, or the table is not a dense one with a size.
    pub fn lease(&mut self, worker: WorkerId, table: TableId, rows: &Rows<'_>) -> Result<Poll<Lease>, Misuse> {
        let slot = self.table(table)?;
        check_lease(&slot.schema)?;
        check_rows(&slot.schema, rows)?;
        if slot.is_lent(rows) || slot.must_wait_to_lend(rows) {
            return Ok(Poll::Pending);
        }
        let Store::Flat(slab) = &mut slot.store else { unreachable!("only flat tables are leased") };
        let (lent, shape) = (&mut slot.lent, slab.shape);
        let lend = |index: usize| {
            if let Some(snapshot) = &mut slot.snapshot {
                snapshot.keep_chunk(slab, index);
            }
            lent[index] = Some(worker);
            LeasedChunk { index, numbers: std::mem::take(&mut slab.chunks[index]), origin: Vec::new() }
        };
        let chunks = rows.chunks(&shape).into_iter().map(lend).collect();
        let lease = Lease { table: slot.id, shape, chunks };
        self.count_reads(worker, table, rows.len());
        Ok(Poll::Ready(lease))
    }

    /// Takes back a lease.
    pub fn give_back(&mut self, lease: Lease) {
        let slot = &mut self.tables[lease.table.index()];
        let Store::Flat(slab) = &mut slot.store else { unreachable!("only flat tables are leased") };
        for chunk in lease.chunks {
            slab.chunks[chunk.index] = chunk.numbers;
            slot.lent[chunk.index] = None;
        }
    }

    /// Ends the worker's clock.
    pub fn clock(&mut self, worker: WorkerId) {
        let clock = &mut self.worker_clocks[worker.index()];
        *clock = clock.next();
        self.events.push(Event::WorkerClock { worker, clock: *clock });
        self.meet();
    }

    /// Whether the worker may start work in its clock.
    #[must_use]
    pub fn may_start(&self, worker: WorkerId) -> bool {
        let waits_for_others = self.meeting.is_some_and(|meeting| self.clock_of(worker) >= meeting);
        self.slowest() >= self.oldest_slowest(self.clock_of(worker)) && !waits_for_others
    }

    /// Takes a checkpoint at `clock`, which nobody has begun to work in: workers wait there for one another, so that
    /// the tables are for a moment exactly what is to be saved.
    pub fn checkpoint(&mut self, clock: Clock) {
        self.meeting = Some(clock);
        self.meet();
    }

    /// Begins the checkpoint, and lets the workers go on, when all of them are there.
    fn meet(&mut self) {
        let Some(clock) = self.meeting.filter(|meeting| self.slowest() >= *meeting) else { return };
        self.meeting = None;
        self.checkpoint = Some(clock);
        for table in &mut self.tables {
            let lent = table.lent.iter().enumerate().filter(|(_, holder)| holder.is_some());
            let apart = lent.map(|(chunk, _)| chunk).collect();
            table.snapshot = Some(TableSnapshot::new(clock, &table.store, None, apart));
        }
    }

    /// The clock of the checkpoint that can be taken out now.
    #[must_use]
    pub fn checkpoint_ready(&self) -> Option<Clock> {
        self.checkpoint
    }

    /// Takes the next rows, about `bytes_max` of them, out of the checkpoint that is ready. `None` says that there are
    /// no more, and ends it. What a worker has held on lease since before the checkpoint is not among them.
    pub fn checkpoint_part(&mut self, bytes_max: usize) -> Option<Part> {
        for table in &mut self.tables {
            if let Some(snapshot) = &mut table.snapshot {
                let part = snapshot.part(table.id, &table.schema, (&table.store, None), bytes_max);
                if part.is_some() {
                    return part;
                }
                table.snapshot = None;
            }
        }
        self.end_checkpoint();
        None
    }

    /// Whether the checkpoint that is being taken keeps so much that it should be taken out in haste.
    #[must_use]
    pub fn checkpoint_is_large(&self) -> bool {
        let is_large = |table: &EmbeddedTable| table.snapshot.as_ref().is_some_and(|it| it.is_large(&table.store));
        self.tables.iter().any(is_large)
    }

    /// Gives up a checkpoint that is being taken, if there is one.
    pub fn end_checkpoint(&mut self) {
        self.checkpoint = None;
        self.tables.iter_mut().for_each(|table| table.snapshot = None);
    }

    /// Sets the rows of a checkpoint.
    ///
    /// # Errors
    /// If they do not fit the tables of the job.
    pub fn restore(&mut self, part: &Part) -> Result<(), PartError> {
        let tables = self.tables.len();
        let slot = self.tables.get_mut(part.table.index());
        let slot = slot.ok_or(PartError::NoSuchTable { table: part.table.0, tables })?;
        if part.layer == Layer::State {
            return Err(PartError::Misfit { table: slot.schema.name.clone() });
        }
        slot.store.restore(&slot.schema, part, |_| true)
    }

    /// Lets every worker go on at `clock`.
    pub fn resume(&mut self, clock: Clock) {
        self.worker_clocks.fill(clock);
    }

    /// Updates are seen while they are made, so the lead is one less than the bound.
    fn oldest_slowest(&self, clock: Clock) -> Clock {
        self.staleness.map_or(Clock(0), |staleness| clock.back(staleness - 1))
    }

    /// What the worker waits for: rows of `table`, or to start its clock.
    #[must_use]
    pub fn wait_of(&self, worker: WorkerId, table: Option<TableId>) -> Wait {
        let table = table.and_then(|table| self.tables.get(table.index())).map(|slot| slot.schema.name.clone());
        let needed = self.oldest_slowest(self.clock_of(worker));
        Wait { worker, table, shard: None, needed, reached: self.slowest() }
    }

    fn table(&mut self, table: TableId) -> Result<&mut EmbeddedTable, Misuse> {
        let tables = self.tables.len();
        self.tables.get_mut(table.index()).ok_or(Misuse::NoSuchTable { table: table.0, tables })
    }

    fn count_reads(&mut self, worker: WorkerId, table: TableId, rows: usize) {
        let (clock, oldest) = (self.clock_of(worker), self.slowest());
        self.histogram.count(oldest, clock, rows as u64);
        self.events.push(Event::Read { worker, table, rows, clock, oldest });
    }
}

impl EmbeddedTable {
    /// Whether a change of `rows` must wait until more of a checkpoint has been taken out.
    fn must_wait_to_change(&self, rows: &[u64]) -> bool {
        match (&self.snapshot, &self.store) {
            (Some(snapshot), Store::Flat(slab)) => snapshot.must_wait_for_rows(slab, rows),
            _ => false,
        }
    }

    /// The same of lending the chunks that hold `rows`.
    fn must_wait_to_lend(&self, rows: &Rows<'_>) -> bool {
        match (&self.snapshot, &self.store) {
            (Some(snapshot), Store::Flat(slab)) => snapshot.must_wait_for_chunks(slab, &rows.chunks(&slab.shape)),
            _ => false,
        }
    }

    fn is_lent(&self, rows: &Rows<'_>) -> bool {
        let Store::Flat(slab) = &self.store else {
            return false;
        };
        match rows {
            Rows::Range(_) => rows.chunks(&slab.shape).into_iter().any(|chunk| self.lent[chunk].is_some()),
            Rows::List(rows) => rows.iter().any(|&row| self.lent[slab.shape.chunk_of(row)].is_some()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: TableId = TableId(0);
    const WORKERS: [WorkerId; 2] = [WorkerId(0), WorkerId(1)];

    /// Chunks of ten rows, and two workers.
    fn tables(rows: u64) -> Embedded {
        let mut schema = TableSchema::dense("t", rows, 16);
        schema.chunk_rows = Some(10);
        Embedded::new(&Job { tables: vec![schema], workers_per_client: vec![2], shards: 1, budget: None })
    }

    fn both_at_next_clock(tables: &mut Embedded) {
        WORKERS.into_iter().for_each(|worker| tables.clock(worker));
    }

    fn lend(tables: &mut Embedded, worker: WorkerId, rows: std::ops::Range<u64>) -> Poll<Lease> {
        tables.lease(worker, TABLE, &Rows::Range(rows)).expect("the rows exist")
    }

    fn lent(tables: &mut Embedded, worker: WorkerId, rows: std::ops::Range<u64>) -> Lease {
        let Poll::Ready(lease) = lend(tables, worker, rows) else { panic!("nobody has them") };
        lease
    }

    fn fill(lease: &mut Lease, number: f32) {
        lease.chunks.iter_mut().for_each(|chunk| chunk.numbers.fill(number));
    }

    fn add_one(tables: &mut Embedded, rows: &[u64]) -> Poll<()> {
        tables.inc(TABLE, rows, &Values::dense(16, vec![1.0; 16 * rows.len()])).expect("the rows exist")
    }

    /// The rows of a part of a checkpoint, each with its first number.
    fn rows(part: &Part) -> Vec<(u64, f32)> {
        let Values::Dense { numbers, .. } = &part.values else { panic!("the table is dense") };
        let rows = part.spans.chunks(2).flat_map(|span| span[0]..span[1]);
        rows.zip(numbers.chunks_exact(16).map(|row| row[0])).collect()
    }

    #[test]
    fn a_checkpoint_has_rows_as_they_were_when_workers_met_whoever_changes_them_and_how() {
        let mut tables = tables(160);
        let mut held = lent(&mut tables, WORKERS[0], 150..160);
        let mut first = lent(&mut tables, WORKERS[1], 0..10);
        fill(&mut first, 5.0);
        tables.give_back(first);
        tables.checkpoint(Clock(1));
        both_at_next_clock(&mut tables);
        assert_eq!(tables.checkpoint_ready(), Some(Clock(1)));
        // What is lent, what is added to, and what is both, in either order.
        fill(&mut held, 9.0);
        let mut lease = lent(&mut tables, WORKERS[1], 0..10);
        fill(&mut lease, 7.0);
        tables.give_back(lease);
        assert!(add_one(&mut tables, &[3, 25]).is_ready());
        let mut lease = lent(&mut tables, WORKERS[1], 20..30);
        fill(&mut lease, 7.0);
        tables.give_back(held);
        let held_again = lent(&mut tables, WORKERS[1], 150..160);
        tables.give_back(held_again);
        let parts = std::iter::from_fn(|| tables.checkpoint_part(1000));
        let taken: Vec<(u64, f32)> = parts.collect::<Vec<_>>().iter().flat_map(rows).collect();
        // A worker hands in what it has held since before.
        let expected = (0..150).map(|row| (row, if row < 10 { 5.0 } else { 0.0 })).collect::<Vec<_>>();
        assert_eq!(taken, expected);
        assert_eq!(tables.checkpoint_ready(), None);
    }

    #[test]
    fn whoever_would_have_too_much_kept_waits_until_more_has_been_taken_out() {
        let mut tables = tables(80);
        tables.checkpoint(Clock(1));
        both_at_next_clock(&mut tables);
        // An eighth of the table; three chunks would be more than a quarter.
        let lease = lent(&mut tables, WORKERS[0], 70..80);
        assert!(!tables.checkpoint_is_large());
        assert!(lend(&mut tables, WORKERS[1], 50..70).is_pending());
        assert!(add_one(&mut tables, &Vec::from_iter(50..70)).is_pending());
        assert!(add_one(&mut tables, &[50]).is_ready(), "a row is not much");
        tables.give_back(lease);
        assert!(lend(&mut tables, WORKERS[0], 70..80).is_ready(), "it is kept already");
        // Fifty rows and a little: what comes next is no longer kept.
        let part = tables.checkpoint_part(4 * 16 * 55).expect("nothing has been taken out");
        assert_eq!(rows(&part).len(), 55);
        assert!(lend(&mut tables, WORKERS[1], 0..50).is_ready());
        assert!(lend(&mut tables, WORKERS[1], 50..60).is_pending(), "half of it is left");
        tables.end_checkpoint();
        assert!(lend(&mut tables, WORKERS[1], 50..60).is_ready());
    }
}
