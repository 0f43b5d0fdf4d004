//! A client: the cache and the update buffer of one process, shared by its workers.
//!
//! Every operation returns at once. One that must wait for a shard has put what it needs into the outbox and answers
//! `Pending`; whoever drives the client sends that, delivers what comes back, and asks again.
//!
//! A worker's view of a row is the cached row (with the client's sent updates in it) plus the worker's own updates
//! that have not been sent. So no worker sees an update of another worker's unfinished clock.

mod early;
mod selection;
mod table;
mod versions;

use crate::consistency::Consistency;
use crate::coordinator::Process;
use crate::delta::Delta;
use crate::filter::Direction;
use crate::filter::ledger::Ledger;
use crate::filter::sieve::Sieve;
use crate::ids::{ClientId, Clock, ShardId, TableId, WorkerId};
use crate::lease::Lease;
use crate::message::{ToClient, ToShard};
use crate::misuse::{Misuse, check_dense, check_lease, check_rows, check_update, fit_versions, misfit};
use crate::rows::Rows;
use crate::sabotage::Sabotage;
use crate::schema::{Job, TableSchema};
use crate::task::desk::{Desk, Desks};
use crate::task::service::Service;
use crate::values::Values;
use crate::{Event, StalenessHistogram};
use early::Early;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::task::Poll;
use table::ClientTable;

/// The library in one process.
#[derive(Debug)]
pub struct Client {
    id: ClientId,
    /// The strictest bound of any table, by which workers are kept together.
    staleness: Option<u32>,
    tables: Vec<ClientTable>,
    workers: Range<u32>,
    worker_clocks: Vec<Clock>,
    /// All updates of earlier clocks have been sent.
    sent_clock: Clock,
    shard_clocks: Vec<Clock>,
    outbox: Vec<(ShardId, Arc<ToShard>)>,
    events: Vec<Event>,
    histogram: StalenessHistogram,
    /// Under a budget: what was chosen to be sent before the end of a clock.
    early: Option<Early>,
    /// Where the workers of a job of tasks sit.
    desks: Option<Desks>,
    /// The clocks at whose end everything travels of a worker, whatever selection filters say.
    flushes: BTreeSet<(usize, Clock)>,
    ledger: Ledger,
    sabotage: Sabotage,
}

/// Where a row that is to be read must have come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// A shard that pushes what changes, if the table is an eager one.
    Pushed,
    /// An answer of the clock that is needed.
    Asked,
}

/// How many rows of a read have which clock, in stretches of equal ones.
#[derive(Debug, Default)]
struct Tally(Vec<(Clock, u64)>);

impl Tally {
    fn count(&mut self, clock: Clock) {
        match self.0.last_mut() {
            Some((last, count)) if *last == clock => *count += 1,
            _ => self.0.push((clock, 1)),
        }
    }
}

/// What a worker waits for, for messages about waits that take too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The worker.
    pub worker: WorkerId,
    /// The table, unless the worker waits to start a clock.
    pub table: Option<String>,
    /// The shard that is behind, where there is one between the workers.
    pub shard: Option<ShardId>,
    /// The clock that it must reach.
    pub needed: Clock,
    /// The clock that it has reached.
    pub reached: Clock,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { worker, table, shard, needed, reached } = self;
        write!(f, "{worker} waits ")?;
        if let Some(table) = table {
            write!(f, "for rows of table '{table}' ")?;
        }
        match shard {
            Some(shard) => write!(f, "until {shard} reaches {needed}; it is at {reached}"),
            None => write!(f, "until the slowest worker reaches {needed}; it is at {reached}"),
        }
    }
}

impl Client {
    /// The client `id` of a job.
    #[must_use]
    pub fn new(id: ClientId, job: &Job, sabotage: Sabotage) -> Self {
        let workers = job.workers_of(id);
        let ledger = Ledger::new(job);
        let table = |(i, schema): (usize, &TableSchema)| {
            let sieve = Sieve::new(TableId(i as u32), schema, Direction::Updates, Process::Worker(id), &ledger);
            ClientTable::new(TableId(i as u32), schema, workers.clone(), job, sieve)
        };
        Self {
            id,
            staleness: job.staleness(),
            tables: job.tables.iter().enumerate().map(table).collect(),
            worker_clocks: vec![Clock(0); workers.len()],
            workers,
            sent_clock: Clock(0),
            shard_clocks: vec![Clock(0); job.shards as usize],
            outbox: Vec::new(),
            events: Vec::new(),
            histogram: StalenessHistogram::default(),
            early: job.budget.map(|budget| Early::new(&budget, job, id)),
            desks: None,
            flushes: BTreeSet::new(),
            ledger,
            sabotage,
        }
    }

    /// Gives the workers their part in jobs of tasks.
    pub fn serve(&mut self, service: &Arc<Service>) {
        self.desks = Some(Desks::new(self.id, self.workers.clone(), service, &self.ledger));
    }

    /// The desk of one of this client's workers or schedulers, if it has a part in jobs of tasks.
    #[must_use]
    pub fn desk(&self, thread: WorkerId) -> Option<&Desk> {
        self.desks.as_ref().map(|desks| desks.desk(thread))
    }

    /// Does something at the desk of one of this client's workers or schedulers.
    ///
    /// # Panics
    /// If the client has no part in jobs of tasks.
    pub fn at_desk<R>(&mut self, thread: WorkerId, act: impl FnOnce(&mut Desk) -> R) -> R {
        let desks = self.desks.as_mut().expect("a client with a part in jobs of tasks");
        let result = act(desks.desk_mut(thread));
        self.outbox.extend(desks.outbox());
        result
    }

    /// What is to be sent, in order. Whoever drives the client takes it after every operation and message.
    pub fn outbox(&mut self) -> std::vec::Drain<'_, (ShardId, Arc<ToShard>)> {
        self.outbox.drain(..)
    }

    /// What has happened since it was last asked.
    pub fn events(&mut self) -> std::vec::Drain<'_, Event> {
        self.events.drain(..)
    }

    /// How stale the reads of this client's workers were.
    #[must_use]
    pub fn histogram(&self) -> &StalenessHistogram {
        &self.histogram
    }

    /// What the filters in this process have saved; drivers count with it what encoding filters do.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// How many workers share this client.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// The clock of one of this client's workers.
    #[must_use]
    pub fn clock_of(&self, worker: WorkerId) -> Clock {
        self.worker_clocks[self.local(worker)]
    }

    /// The slowest worker of the whole job, as far as this client knows.
    #[must_use]
    pub fn slowest(&self) -> Clock {
        self.shard_clocks.iter().copied().min().unwrap_or_default()
    }

    fn local(&self, worker: WorkerId) -> usize {
        (worker.0 - self.workers.start) as usize
    }

    /// Announces rows that a worker will read soon, so that they are fetched ahead, in one message per shard.
    ///
    /// # Errors
    /// If the table or a row does not exist.
    pub fn intend(&mut self, worker: WorkerId, table: TableId, rows: &Rows<'_>) -> Result<(), Misuse> {
        let needed = self.needed(worker, table)?;
        self.fetch(needed, Source::Pushed, table, rows).map(|_| ())
    }

    /// Reads rows.
    ///
    /// # Errors
    /// If the table or a row does not exist.
    pub fn get(&mut self, worker: WorkerId, table: TableId, rows: &Rows<'_>) -> Result<Poll<Values>, Misuse> {
        let needed = self.needed(worker, table)?;
        self.get_at(worker, needed, Source::Pushed, table, rows)
    }

    /// Reads rows in which every update of every finished clock is, whatever staleness the table allows.
    ///
    /// # Errors
    /// If the table or a row does not exist.
    pub fn get_latest(&mut self, worker: WorkerId, table: TableId, rows: &Rows<'_>) -> Result<Poll<Values>, Misuse> {
        let needed = self.clock_of(worker);
        // A shard that is not there yet would hold back its answer, and with it the rows of a slower worker of this
        // client, which the shard may be waiting for.
        if self.slowest() < needed {
            check_rows(&self.table(table)?.schema, rows)?;
            return Ok(Poll::Pending);
        }
        // A filter may have held back what would have been pushed.
        let filtered = self.table(table)?.schema.filters.selects(Direction::Rows);
        let source = if filtered { Source::Asked } else { Source::Pushed };
        self.get_at(worker, needed, source, table, rows)
    }

    fn get_at(
        &mut self,
        worker: WorkerId,
        needed: Clock,
        source: Source,
        table: TableId,
        rows: &Rows<'_>,
    ) -> Result<Poll<Values>, Misuse> {
        let Poll::Ready(tally) = self.fetch(needed, source, table, rows)? else {
            return Ok(Poll::Pending);
        };
        self.count_reads(worker, table, &tally);
        let (local, clock) = (self.local(worker), self.clock_of(worker));
        let table = &mut self.tables[table.index()];
        table.mark_read(local, clock, rows);
        Ok(Poll::Ready(table.view(local, rows)))
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
        check_dense(&self.table(table)?.schema)?;
        let needed = self.needed(worker, table)?;
        let Poll::Ready(tally) = self.fetch(needed, Source::Pushed, table, rows)? else {
            return Ok(Poll::Pending);
        };
        self.count_reads(worker, table, &tally);
        let (local, clock) = (self.local(worker), self.clock_of(worker));
        out.clear();
        let table = &mut self.tables[table.index()];
        table.mark_read(local, clock, rows);
        table.view_dense(local, rows, out);
        Ok(Poll::Ready(()))
    }

    /// Changes rows: row `i` of `rows` by row `i` of `updates`. Under Vap it may have to wait; nothing of the update
    /// has been taken then.
    ///
    /// # Errors
    /// If the table or a row does not exist, the updates do not fit, or the table has versions and the worker has not
    /// read a row in this clock.
    pub fn inc(
        &mut self,
        worker: WorkerId,
        table: TableId,
        rows: &[u64],
        updates: &Values,
    ) -> Result<Poll<()>, Misuse> {
        let (local, clock) = (self.local(worker), self.clock_of(worker));
        let mut outbox = Vec::new();
        let table = self.table(table)?;
        check_update(&table.schema, rows, updates)?;
        if let Some(bound) = table.schema.consistency.transit_bound(clock)
            && !table.fits_in_transit((worker, local), rows, updates, bound)
        {
            table.send_unsent((worker, local), &mut outbox);
            self.outbox.append(&mut outbox);
            return Ok(Poll::Pending);
        }
        if let Some(versions) = &table.versions {
            let tags = versions.tags(&table.schema, local, clock, rows)?;
            table.open_delta(local, clock).add_tagged(rows, &tags, updates);
            return Ok(Poll::Ready(()));
        }
        let kind = table.schema.kind.clone();
        let delta = table.open_delta(local, clock);
        delta.add_all(&kind, rows, updates);
        Ok(Poll::Ready(()))
    }

    /// The largest magnitude that one update of `table` by `worker` may have now, under Vap.
    ///
    /// # Errors
    /// If the table does not exist.
    pub fn transit_bound(&mut self, worker: WorkerId, table: TableId) -> Result<Option<f32>, Misuse> {
        let clock = self.clock_of(worker);
        Ok(self.table(table)?.schema.consistency.transit_bound(clock))
    }

    /// Lends the chunks that hold `rows` to a worker, which may change them in place and gives them back with
    /// [`Client::give_back`].
    ///
    /// # Errors
    /// If the table or a row does not exist, or the table is not a dense one with a size whose workers read their own
    /// writes.
    pub fn lease(&mut self, worker: WorkerId, table: TableId, rows: &Rows<'_>) -> Result<Poll<Lease>, Misuse> {
        check_lease(&self.table(table)?.schema)?;
        let needed = self.needed(worker, table)?;
        let Poll::Ready(tally) = self.fetch(needed, Source::Pushed, table, rows)? else {
            return Ok(Poll::Pending);
        };
        self.count_reads(worker, table, &tally);
        let local = self.local(worker);
        Ok(Poll::Ready(self.tables[table.index()].lend(local, rows)))
    }

    /// Takes back a lease; what was changed counts as updates of the worker's current clock. Under Vap the changes
    /// are handed to the caller instead, to be made with [`Client::inc`].
    #[must_use]
    pub fn give_back(&mut self, worker: WorkerId, lease: Lease) -> Option<(Vec<u64>, Values)> {
        let (local, clock) = (self.local(worker), self.clock_of(worker));
        let table = &mut self.tables[lease.table.index()];
        let delayed = matches!(table.schema.consistency, Consistency::Vap { .. });
        let mut apart = Delta::new(&table.schema);
        let delta = if delayed { &mut apart } else { table.open_delta(local, clock) };
        for chunk in &lease.chunks {
            delta.add_difference(chunk.index, &chunk.numbers, &chunk.origin);
        }
        let changes = apart.take(&table.schema.kind, |_| ShardId(0)).pop();
        changes.map(|part| (part.rows, part.values))
    }

    /// Ends the worker's clock. When the slowest worker of this client ends it, its updates are sent.
    ///
    /// # Errors
    /// If a filter fails.
    pub fn clock(&mut self, worker: WorkerId) -> Result<(), Misuse> {
        let local = self.local(worker);
        self.worker_clocks[local] = self.worker_clocks[local].next();
        let clock = self.worker_clocks[local];
        self.tables.iter_mut().for_each(|table| table.reach(clock));
        self.events.push(Event::WorkerClock { worker, clock });
        let slowest = *self.worker_clocks.iter().min().expect("a client has workers");
        if slowest == self.sent_clock {
            return Ok(());
        }
        for index in 0..self.tables.len() {
            self.send_finished(index, slowest)?;
            self.tables[index].send_seen(slowest, &mut self.outbox);
        }
        self.sent_clock = slowest;
        self.flushes.retain(|(_, clock)| *clock >= slowest);
        self.events.push(Event::ClientClock { client: self.id, clock: slowest });
        let message = Arc::new(ToShard::Clock { clock: slowest });
        let shards = (0..self.shard_clocks.len() as u32).map(ShardId);
        self.outbox.extend(shards.map(|shard| (shard, Arc::clone(&message))));
        Ok(())
    }

    /// Lets everything travel at the end of the worker's clock that selection filters have kept of its updates.
    pub fn flush(&mut self, worker: WorkerId) {
        self.flushes.insert((self.local(worker), self.clock_of(worker)));
    }

    /// Tells the shards that a checkpoint is taken at `clock`, which no worker of this client has begun to work in.
    pub fn checkpoint(&mut self, clock: Clock) {
        let message = Arc::new(ToShard::Checkpoint { clock });
        let shards = (0..self.shard_clocks.len() as u32).map(ShardId);
        self.outbox.extend(shards.map(|shard| (shard, Arc::clone(&message))));
    }

    /// Lets every worker go on at `clock`, as the shards do that have a checkpoint's rows.
    pub fn resume(&mut self, clock: Clock) {
        self.worker_clocks.fill(clock);
        self.shard_clocks.fill(clock);
        self.sent_clock = clock;
    }

    /// Whether the worker may start work in its clock: no worker is more than the staleness bound behind.
    #[must_use]
    pub fn may_start(&self, worker: WorkerId) -> bool {
        self.slowest() >= self.oldest_slowest(self.clock_of(worker))
    }

    fn oldest_slowest(&self, clock: Clock) -> Clock {
        match self.staleness {
            Some(staleness) => self.sabotaged(Consistency::Ssp { staleness }.oldest_readable(clock)),
            None => Clock(0),
        }
    }

    fn sabotaged(&self, needed: Clock) -> Clock {
        if self.sabotage.is(Sabotage::BoundOffByOne) { needed.back(1) } else { needed }
    }

    /// What the worker waits for: rows of `table`, or to start its clock.
    #[must_use]
    pub fn wait_of(&self, worker: WorkerId, table: Option<TableId>) -> Wait {
        let clock = self.clock_of(worker);
        let schema = table.and_then(|table| self.tables.get(table.index())).map(|table| &table.schema);
        let needed = schema.map_or(self.oldest_slowest(clock), |schema| schema.consistency.oldest_readable(clock));
        let slowest = self.shard_clocks.iter().enumerate().min_by_key(|(_, clock)| **clock);
        let (shard, reached) = slowest.map_or((0, Clock(0)), |(shard, &clock)| (shard, clock));
        let table = schema.map(|schema| schema.name.clone());
        Wait { worker, table, shard: Some(ShardId(shard as u32)), needed, reached }
    }

    /// Takes a message from a shard.
    ///
    /// # Errors
    /// If no correct shard sends such a message.
    pub fn receive(&mut self, shard: ShardId, message: &ToClient) -> Result<(), Misuse> {
        match message {
            ToClient::Rows { table, clock, through, rows, versions, values } => {
                let table = self.table(*table)?;
                let values = table.schema.precision.widen(values).ok_or_else(|| misfit(&table.schema, rows))?;
                check_update(&table.schema, rows, &values)?;
                if !fit_versions(&table.schema, rows.len(), versions.as_deref()) {
                    return Err(Misuse::Versions { table: table.schema.name.clone() });
                }
                if let (Some(here), Some(sent)) = (&mut table.versions, versions) {
                    here.store(rows, sent);
                }
                table.take_rows(shard, *clock, *through, rows, &values);
                if matches!(table.schema.consistency, Consistency::Vap { .. }) {
                    let seen = ToShard::Seen { table: table.id, through: table.rows_received[shard.index()] };
                    self.outbox.push((shard, Arc::new(seen)));
                }
            }
            ToClient::Task(letter) => {
                let wrong = || Misuse::Letter { from: letter.from, to: letter.to };
                let desks = self.desks.as_mut().ok_or_else(wrong)?;
                desks.receive(letter).ok_or_else(wrong)?;
                self.outbox.extend(desks.outbox());
            }
            ToClient::Clock { clock } => {
                let known = &mut self.shard_clocks[shard.index()];
                *known = (*known).max(*clock);
                self.tables.iter_mut().for_each(|table| table.forget_applied(shard, *clock));
            }
            ToClient::Visible { table, through } => {
                let in_flight = &mut self.table(*table)?.in_flight[shard.index()];
                while in_flight.front().is_some_and(|(number, _)| number <= through) {
                    in_flight.pop_front();
                }
            }
        }
        Ok(())
    }

    fn table(&mut self, table: TableId) -> Result<&mut ClientTable, Misuse> {
        let tables = self.tables.len();
        self.tables.get_mut(table.index()).ok_or(Misuse::NoSuchTable { table: table.0, tables })
    }

    /// The least clock that a row of `table` must have for `worker` to read it.
    fn needed(&mut self, worker: WorkerId, table: TableId) -> Result<Clock, Misuse> {
        let reader = self.clock_of(worker);
        let needed = self.table(table)?.schema.consistency.oldest_readable(reader);
        Ok(self.sabotaged(needed))
    }

    /// How new `rows` are if all of them are here at `needed` or newer; otherwise asks for the others.
    fn fetch(&mut self, needed: Clock, source: Source, table: TableId, rows: &Rows<'_>) -> Result<Poll<Tally>, Misuse> {
        let tables = self.tables.len();
        let table = self.tables.get_mut(table.index()).ok_or(Misuse::NoSuchTable { table: table.0, tables })?;
        check_rows(&table.schema, rows)?;
        let eager = table.schema.consistency.is_eager() && source == Source::Pushed;
        let mut tally = Tally::default();
        let mut pending = false;
        let mut requests: Vec<Vec<u64>> = vec![Vec::new(); table.shards as usize];
        table.for_each_mark(rows, |row, mark, shard| {
            // An eager row's clock grows with its shard's, because changes are pushed first.
            let pushed = if eager { self.shard_clocks[shard.index()] } else { Clock(0) };
            match mark.sent().map(|sent| sent.max(pushed)) {
                Some(clock) if clock >= needed => tally.count(clock),
                _ => {
                    pending = true;
                    // An eager row once asked for comes by itself; a lazy one must be asked for again.
                    if !mark.asked().is_some_and(|asked| eager || asked >= needed) {
                        requests[shard.index()].push(row);
                    }
                }
            }
        });
        for (shard, mut rows) in requests.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
            rows.sort_unstable();
            rows.dedup();
            table.cache.ask(&rows, needed);
            let at_once = table.message_bytes.map_or(rows.len(), |bytes| bytes.div_ceil(size_of::<u64>()));
            for rows in rows.chunks(at_once) {
                let get = ToShard::Get { table: table.id, needed, rows: rows.to_vec().into() };
                self.outbox.push((ShardId(shard as u32), Arc::new(get)));
            }
        }
        Ok(if pending { Poll::Pending } else { Poll::Ready(tally) })
    }

    fn count_reads(&mut self, worker: WorkerId, table: TableId, tally: &Tally) {
        let clock = self.clock_of(worker);
        let (mut rows, mut oldest) = (0, Clock(u32::MAX));
        for &(row_clock, count) in &tally.0 {
            self.histogram.count(row_clock, clock, count);
            rows += count as usize;
            oldest = oldest.min(row_clock);
        }
        self.events.push(Event::Read { worker, table, rows, clock, oldest });
    }

    /// Sends the updates of every clock before `slowest`, which all workers of this client have finished: under Bsp
    /// worker by worker, or a sum for all that are added up before they are applied; otherwise coalesced.
    fn send_finished(&mut self, index: usize, slowest: Clock) -> Result<(), Misuse> {
        let table = &mut self.tables[index];
        let mut finished: BTreeMap<(Clock, u32), Delta> = BTreeMap::new();
        for (local, unsent) in table.unsent.iter_mut().enumerate() {
            while unsent.front().is_some_and(|(clock, _)| *clock < slowest) {
                let (clock, delta) = unsent.pop_front().expect("just seen");
                finished.insert((clock, self.workers.start + local as u32), delta);
            }
        }
        if table.sieve.is_some() {
            for (&(clock, worker), delta) in &mut finished {
                let local = (worker - self.workers.start) as usize;
                if !self.flushes.contains(&(local, clock)) {
                    table.hold_back((clock, WorkerId(worker), local), delta, slowest)?;
                }
            }
        }
        let apart = matches!(table.schema.consistency, Consistency::Bsp | Consistency::Vap { .. });
        let (here, fan_in) = (self.workers.clone(), table.schema.fan_in);
        let added_up = |first: WorkerId, worker: u32| {
            let group = worker / fan_in;
            first.0 / fan_in == group && here.start <= group * fan_in && (group + 1) * fan_in <= here.end
        };
        let mut last: Option<(Clock, WorkerId, Delta)> = None;
        for ((clock, worker), mut delta) in finished {
            match &mut last {
                Some((earlier, first, sum)) if *earlier == clock && (!apart || added_up(*first, worker)) => {
                    sum.absorb(&table.schema.kind, &mut delta);
                    table.spare.push(delta);
                }
                _ => {
                    if let Some((clock, worker, sum)) = last.replace((clock, WorkerId(worker), delta)) {
                        table.send(clock, worker, sum, &mut self.outbox);
                    }
                }
            }
        }
        if let Some((clock, worker, sum)) = last {
            table.send(clock, worker, sum, &mut self.outbox);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client with two workers under a value bound of one, and whether an update of its only number may be made.
    fn client() -> (Client, impl Fn(&mut Client, u32, f32) -> bool) {
        let consistency = Consistency::Vap { bound: 1.0 };
        let tables = vec![TableSchema { consistency, ..TableSchema::dense("t", 1, 1) }];
        let job = Job { tables, workers_per_client: vec![2, 1], shards: 1, budget: None };
        let inc = |client: &mut Client, worker, number| {
            let update = Values::dense(1, vec![number]);
            client.inc(WorkerId(worker), TableId(0), &[0], &update).expect("it fits the table").is_ready()
        };
        (Client::new(ClientId(0), &job, Sabotage::None), inc)
    }

    #[test]
    fn updates_in_transit_of_one_worker_do_not_excuse_those_of_another() {
        let (mut client, inc) = client();
        for (worker, number) in [(0, 1.0), (1, -1.0)] {
            assert!(inc(&mut client, worker, number));
            assert!(!inc(&mut client, worker, number), "twice the bound");
        }
        assert_eq!(client.outbox().count(), 2, "both were sent to become visible");
        assert!(!inc(&mut client, 0, 1.0));
    }

    #[test]
    fn an_earlier_update_of_opposite_sign_is_no_excuse() {
        let (mut client, inc) = client();
        assert!(inc(&mut client, 0, -1.0));
        assert!(!inc(&mut client, 0, -0.5), "which sends the first");
        assert!(inc(&mut client, 0, 1.0));
        assert!(!inc(&mut client, 0, 1.0), "one who sees the first would miss two");
        let visible = ToClient::Visible { table: TableId(0), through: 2 };
        client.receive(ShardId(0), &visible).expect("a correct message");
        assert!(inc(&mut client, 0, 1.0));
    }
}
