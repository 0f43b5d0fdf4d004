//! A shard: the owner of one part of every table. It applies updates when the consistency model lets others see
//! them, answers reads when its rows are new enough, and pushes what changed to those who asked for it.

mod answers;
mod authors;
mod early;
mod lag;
pub mod tasks;

use crate::consistency::Consistency;
use crate::coordinator::Process;
use crate::delta::{Delta, ShardDelta};
use crate::filter::ledger::Ledger;
use crate::filter::sieve::Sieve;
use crate::filter::{Direction, FilterError};
use crate::ids::{ClientId, Clock, ShardId, TableId, WorkerId};
use crate::message::{ToClient, ToShard};
use crate::misuse::fit_versions;
use crate::recycler::Recycler;
use crate::row_set::RowSet;
use crate::sabotage::Sabotage;
use crate::schema::{Job, TableSchema};
use crate::snapshot::{Layer, Part, PartError, TableSnapshot, Update};
use crate::store::Store;
use crate::stored::Stored;
use crate::task::Node;
use crate::values::Values;
use crate::{Array, Event};
use answers::Answers;
use authors::Authors;
use early::Early;
use lag::Lag;
use std::collections::VecDeque;
use std::sync::Arc;
use tasks::Tasks;
use thiserror::Error;

/// Memory beyond this is given back instead of being kept for the next rows that are sent.
const RECYCLED_NUMBERS_MAX: usize = (128 << 20) / 4;

/// One partition of the tables.
#[derive(Debug)]
pub struct Shard {
    id: ShardId,
    shards: u32,
    tables: Vec<ShardTable>,
    /// The clock that each client has reported.
    client_clocks: Vec<Clock>,
    /// The slowest client's clock: every update of an earlier clock has been applied.
    clock: Clock,
    /// How many clocks clients have ended since changed rows were last pushed.
    clocks_since_push: usize,
    /// The newest checkpoint that was asked for, and whether it is still being taken.
    checkpoint: (Clock, bool),
    /// Under a budget: which table is the next to send changed rows early.
    early_turn: usize,
    /// What this shard's server does for jobs of tasks.
    tasks: Option<Tasks>,
    ledger: Ledger,
    outbox: Vec<(ClientId, Arc<ToClient>)>,
    events: Vec<Event>,
    sabotage: Sabotage,
}

#[derive(Debug)]
struct ShardTable {
    id: TableId,
    schema: TableSchema,
    store: Store,
    /// What a checkpoint that is being taken has of the table.
    snapshot: Option<TableSnapshot>,
    /// What applies the updates, unless they are added.
    stored: Option<Stored>,
    /// The rows changed since they were last pushed.
    dirty: RowSet,
    /// Who changed them, where clients need not be sent what they have changed themselves.
    authors: Option<Authors>,
    subscribers: Vec<Subscriber>,
    /// Reads that wait for the shard's clock.
    waiting: Vec<Waiting>,
    /// Updates that may not be shown yet, in order of arrival.
    held: Vec<Held>,
    /// Under Vap: updates that some client may not see yet.
    unseen: VecDeque<Unseen>,
    /// The memory of dense rows that were sent.
    recycler: Recycler<f32>,
    /// Under a budget: what was chosen to be sent before the end of a clock.
    early: Option<Early>,
    /// Under a budget: who has answered the rows, where they have versions.
    answers: Option<Answers>,
    /// What clients have not been sent because a filter held it back.
    lag: Option<Lag>,
}

/// What a table knows of one client.
#[derive(Debug)]
struct Subscriber {
    registered: RowSet,
    /// How many of the client's updates have been applied.
    applied: u64,
    /// How many messages with rows it has been sent, and how many of them its workers see.
    rows_sent: u64,
    rows_seen: u64,
}

#[derive(Debug)]
struct Waiting {
    client: ClientId,
    needed: Clock,
    rows: Array<u64>,
}

#[derive(Debug)]
struct Held {
    client: ClientId,
    clock: Clock,
    worker: WorkerId,
    rows: Array<u64>,
    values: Values,
    /// The snapshots of the versions that the updates were computed on.
    snapshots: Vec<u32>,
}

#[derive(Debug)]
struct Unseen {
    writer: ClientId,
    number: u64,
    /// Clients that must have seen this many row messages.
    awaited: Vec<(ClientId, u64)>,
}

/// A message that no correct client sends.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum ShardError {
    #[error("a message names table {table}, and there are {tables}")]
    NoSuchTable { table: u32, tables: usize },
    #[error("a message from {client} for table '{table}' names row {row}, which is not on this shard")]
    NotHere { client: ClientId, table: String, row: u64 },
    #[error("an update from {client} for table '{table}' does not fit the table's rows")]
    Misfit { client: ClientId, table: String },
    #[error(
        "an update from {client} for table '{table}' is of version {version} of row {row}, which it cannot have read"
    )]
    NoSuchVersion { client: ClientId, table: String, row: u64, version: u32 },
    #[error("{client} went back from {before} to {after}")]
    ClockWentBack { client: ClientId, before: Clock, after: Clock },
    #[error("{client} asks for a checkpoint at {clock}, which is past or follows one that is being taken")]
    Checkpoint { client: ClientId, clock: Clock },
    #[error("an update from {client} was made in {update}, which it had already finished")]
    TooLate { client: ClientId, update: Clock },
    #[error("a message about a task that {from} sent to {to} by {client} cannot be right")]
    Letter { client: ClientId, from: Node, to: Node },
    #[error(transparent)]
    Filter(#[from] FilterError),
}

impl Shard {
    /// The shard `id` of a job.
    #[must_use]
    pub fn new(id: ShardId, job: &Job, sabotage: Sabotage) -> Self {
        let clients = job.workers_per_client.len();
        let ledger = Ledger::new(job);
        let table = |(i, schema): (usize, &TableSchema)| {
            let store = Store::new(schema, |chunk| schema.shard_of_unit(chunk as u64, job.shards) == id);
            let stored = if let Store::Flat(slab) = &store { Stored::new(schema, slab, clients) } else { None };
            let lag = Sieve::new(TableId(i as u32), schema, Direction::Rows, Process::Server(id), &ledger)
                .map(|sieve| Lag::new(sieve, schema));
            ShardTable {
                id: TableId(i as u32),
                store,
                stored,
                snapshot: None,
                dirty: RowSet::new(schema.rows),
                subscribers: (0..clients).map(|_| Subscriber::new(schema)).collect(),
                waiting: Vec::new(),
                held: Vec::new(),
                unseen: VecDeque::new(),
                recycler: Recycler::new(RECYCLED_NUMBERS_MAX),
                early: job.budget.map(|budget| Early::new(&budget, schema)),
                answers: Answers::new(schema, job),
                authors: Authors::new(schema, job, lag.is_some()),
                lag,
                schema: schema.clone(),
            }
        };
        Self {
            id,
            shards: job.shards,
            tables: job.tables.iter().enumerate().map(table).collect(),
            client_clocks: vec![Clock(0); clients],
            clock: Clock(0),
            clocks_since_push: 0,
            checkpoint: (Clock(0), false),
            early_turn: 0,
            tasks: None,
            ledger,
            outbox: Vec::new(),
            events: Vec::new(),
            sabotage,
        }
    }

    /// The shard's clock.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// What the filters of this shard's rows have saved.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What is to be sent, in order. Whoever drives the shard takes it after every message.
    pub fn outbox(&mut self) -> std::vec::Drain<'_, (ClientId, Arc<ToClient>)> {
        self.outbox.drain(..)
    }

    /// What has happened since it was last asked.
    pub fn events(&mut self) -> std::vec::Drain<'_, Event> {
        self.events.drain(..)
    }

    /// Takes a message from `client`.
    ///
    /// # Errors
    /// If no correct client sends such a message. Nothing of it has been applied then.
    ///
    /// # Panics
    /// If `client` is not a client of the job.
    pub fn receive(&mut self, client: ClientId, message: &ToShard) -> Result<(), ShardError> {
        match message {
            ToShard::Get { table, needed, rows } => {
                let (clock, shards) = (self.clock, self.shards);
                let id = self.id;
                let table = self.table(*table)?;
                table.check_rows(client, rows, id, shards)?;
                if table.schema.consistency.is_eager() {
                    table.subscribers[client.index()].registered.insert_all(rows);
                }
                if *needed <= clock {
                    let messages = table.rows_messages(client, clock, rows.clone());
                    self.outbox.extend(messages);
                } else {
                    table.waiting.push(Waiting { client, needed: *needed, rows: rows.clone() });
                }
            }
            ToShard::Inc { table, clock, worker, rows, versions, values } => {
                let (slowest, shards, sabotage, finished) =
                    (self.clock, self.shards, self.sabotage, self.client_clocks[client.index()]);
                let id = self.id;
                let table = self.table(*table)?;
                // Whether the rows exist is seen below, when it is seen whether they are here.
                let versions = versions.as_deref();
                let values = table.schema.precision.widen(values);
                let fits = |values: &Values| {
                    values.check(&table.schema.kind, rows.len()) && fit_versions(&table.schema, rows.len(), versions)
                };
                let Some(values) = values.filter(fits) else {
                    return Err(ShardError::Misfit { client, table: table.schema.name.clone() });
                };
                table.check_rows(client, rows, id, shards)?;
                if *clock < finished {
                    return Err(ShardError::TooLate { client, update: *clock });
                }
                let snapshots = table.hold(client, rows, versions)?;
                let (clock, worker) = (*clock, *worker);
                table.note_answers(worker, rows, versions);
                let held = Held { client, clock, worker, rows: rows.clone(), values, snapshots };
                // One client's updates of later clocks are held as long as those of earlier ones are, so this does not
                // overtake any of its own.
                if table.schema.consistency.may_show(clock, slowest) {
                    table.apply(&held, sabotage);
                } else {
                    table.held.push(held);
                }
                if matches!(table.schema.consistency, Consistency::Vap { .. }) {
                    let messages = table.push_unseen(client, slowest, rows);
                    self.outbox.extend(messages);
                    self.tell_what_is_visible();
                }
            }
            ToShard::Task(letter) => self.receive_letter(client, letter)?,
            ToShard::Clock { clock } => self.client_clock(client, *clock)?,
            ToShard::Checkpoint { clock } => self.begin_checkpoint(client, *clock)?,
            ToShard::Seen { table, through } => {
                let table = self.table(*table)?;
                let subscriber = &mut table.subscribers[client.index()];
                subscriber.rows_seen = subscriber.rows_seen.max(*through);
                if let Some(stored) = &mut table.stored {
                    stored.seen(client, *through);
                }
                self.tell_what_is_visible();
            }
        }
        Ok(())
    }

    fn table(&mut self, table: TableId) -> Result<&mut ShardTable, ShardError> {
        let tables = self.tables.len();
        self.tables.get_mut(table.index()).ok_or(ShardError::NoSuchTable { table: table.0, tables })
    }

    fn client_clock(&mut self, client: ClientId, clock: Clock) -> Result<(), ShardError> {
        let before = std::mem::replace(&mut self.client_clocks[client.index()], clock);
        if clock < before {
            return Err(ShardError::ClockWentBack { client, before, after: clock });
        }
        let slowest = *self.client_clocks.iter().min().expect("a job has clients");
        let advanced = slowest > self.clock;
        self.clock = slowest;
        // Without a bound, rows are pushed when as many clocks have ended as there are clients: pushing at each would
        // send everything to everyone for every client.
        self.clocks_since_push += 1;
        // Under a budget changed rows are sent as it allows, whoever ends a clock.
        let managed = self.tables.iter().any(|table| table.early.is_some());
        let round = !managed && self.clocks_since_push >= self.client_clocks.len();
        if advanced || round {
            self.clocks_since_push = 0;
        }
        for table in &mut self.tables {
            if advanced {
                table.release(slowest, self.sabotage);
            }
            if advanced || (round && table.schema.consistency == Consistency::Async) {
                let early = !advanced;
                let kept_back = if early { table.keep_back() } else { Vec::new() };
                table.push_changes((self.id, slowest), self.sabotage, &mut self.outbox)?;
                table.dirty.insert_all(&kept_back);
                table.answer(slowest, &mut self.outbox);
            }
            if let Some(answers) = table.answers.as_mut().filter(|_| advanced) {
                answers.end_clock();
            }
        }
        if advanced {
            self.events.push(Event::ShardClock { shard: self.id, clock: slowest });
            let message = Arc::new(ToClient::Clock { clock: slowest });
            let clients = 0..self.client_clocks.len() as u32;
            self.outbox.extend(clients.map(|client| (ClientId(client), Arc::clone(&message))));
        }
        Ok(())
    }

    fn begin_checkpoint(&mut self, client: ClientId, clock: Clock) -> Result<(), ShardError> {
        let (newest, taken) = self.checkpoint;
        // Every client says so, some after the checkpoint has been taken and the next one has begun.
        if clock <= newest {
            return Ok(());
        }
        if taken || clock < self.clock {
            return Err(ShardError::Checkpoint { client, clock });
        }
        self.checkpoint = (clock, true);
        for table in &mut self.tables {
            table.snapshot = Some(TableSnapshot::new(clock, &table.store, table.stored.as_ref(), Vec::new()));
        }
        Ok(())
    }

    /// The clock of the checkpoint that can be taken out now, because every update of the clocks before has come.
    #[must_use]
    pub fn checkpoint_ready(&self) -> Option<Clock> {
        let (clock, taken) = self.checkpoint;
        (taken && self.clock >= clock).then_some(clock)
    }

    /// Takes the next rows, about `bytes_max` of them, out of the checkpoint that is ready. `None` says that there are
    /// no more, and ends it.
    pub fn checkpoint_part(&mut self, bytes_max: usize) -> Option<Part> {
        self.checkpoint_ready()?;
        for table in &mut self.tables {
            if let Some(snapshot) = &mut table.snapshot {
                let part = snapshot.part(table.id, &table.schema, (&table.store, table.stored.as_ref()), bytes_max);
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
    pub fn checkpoint_is_large(&self) -> bool {
        let is_large = |table: &ShardTable| table.snapshot.as_ref().is_some_and(|it| it.is_large(&table.store));
        self.tables.iter().any(is_large)
    }

    /// Gives up a checkpoint that is being taken, if there is one.
    pub fn end_checkpoint(&mut self) {
        self.checkpoint.1 = false;
        self.tables.iter_mut().for_each(|table| table.snapshot = None);
    }

    /// Sets those rows of a checkpoint that are of this shard.
    ///
    /// # Errors
    /// If they do not fit the tables of the job.
    pub fn restore(&mut self, part: &Part) -> Result<(), PartError> {
        let (id, shards, tables) = (self.id, self.shards, self.tables.len());
        let table = self.tables.get_mut(part.table.index());
        let table = table.ok_or(PartError::NoSuchTable { table: part.table.0, tables })?;
        let schema = &table.schema;
        if part.layer == Layer::State {
            let misfit = PartError::Misfit { table: schema.name.clone() };
            return table.stored.as_mut().ok_or(misfit)?.restore(schema, part);
        }
        table.store.restore(schema, part, |row| schema.shard_of(row, shards) == id)
    }

    /// Goes on at `clock`, with the rows of that clock's checkpoint.
    pub fn resume(&mut self, clock: Clock) {
        self.client_clocks.fill(clock);
        self.clock = clock;
        self.checkpoint = (clock, false);
    }

    fn tell_what_is_visible(&mut self) {
        for table in &mut self.tables {
            while let Some(first) = table.unseen.front() {
                let seen = |&(client, sent): &(ClientId, u64)| table.subscribers[client.index()].rows_seen >= sent;
                if !first.awaited.iter().all(seen) {
                    break;
                }
                let visible = ToClient::Visible { table: table.id, through: first.number };
                self.outbox.push((first.writer, Arc::new(visible)));
                table.unseen.pop_front();
            }
        }
    }
}

impl ShardTable {
    fn check_rows(&self, client: ClientId, rows: &[u64], id: ShardId, shards: u32) -> Result<(), ShardError> {
        let absent = match &self.store {
            Store::Flat(slab) => slab.first_absent(rows),
            Store::Rows(_) => rows.iter().copied().find(|&row| {
                self.schema.rows.is_some_and(|rows| row >= rows) || self.schema.shard_of(row, shards) != id
            }),
        };
        match absent {
            Some(row) => Err(ShardError::NotHere { client, table: self.schema.name.clone(), row }),
            None => Ok(()),
        }
    }

    /// Holds the snapshots that an update was computed on.
    fn hold(&mut self, client: ClientId, rows: &[u64], versions: Option<&[u32]>) -> Result<Vec<u32>, ShardError> {
        let Some(stored) = &mut self.stored else { return Ok(Vec::new()) };
        stored.hold(rows, versions).map_err(|(row, version)| {
            let table = self.schema.name.clone();
            ShardError::NoSuchVersion { client, table, row, version }
        })
    }

    /// Takes note of whose updates have come, and of which versions.
    fn note_answers(&mut self, worker: WorkerId, rows: &[u64], versions: Option<&[u32]>) {
        let (Some(answers), Some(stored), Some(versions)) = (&mut self.answers, &self.stored, versions) else { return };
        let newest = rows.iter().zip(versions).filter(|(row, version)| stored.is_newest(**row, **version));
        let newest: Vec<u64> = newest.map(|(row, _)| *row).collect();
        answers.note(worker, rows, &newest);
    }

    /// Whether a row may be sent before the consistency model asks for it, after `others` that are to be sent with it.
    fn may_send_early(&self, row: u64, others: usize) -> bool {
        match (&self.stored, &self.store) {
            (Some(stored), Store::Flat(slab)) => stored.may_send(slab, row, others),
            _ => true,
        }
    }

    /// Takes those rows out of the changed ones that the procedure does not let go early.
    fn keep_back(&mut self) -> Vec<u64> {
        if self.stored.is_none() {
            return Vec::new();
        }
        let (mut sent, mut kept_back) = (Vec::new(), Vec::new());
        for row in self.dirty.intersection(&self.dirty) {
            if self.may_send_early(row, sent.len()) { sent.push(row) } else { kept_back.push(row) }
        }
        self.dirty.clear();
        self.dirty.insert_all(&sent);
        kept_back
    }

    fn change(&mut self, held: &Held) {
        match (&mut self.stored, &mut self.store, &held.values) {
            (Some(stored), Store::Flat(slab), Values::Dense { numbers, .. }) => {
                stored.apply(slab, &held.rows, numbers, &held.snapshots, held.clock);
            }
            (_, store, values) => store.apply(&self.schema, &held.rows, values),
        }
    }

    fn apply(&mut self, held: &Held, sabotage: Sabotage) {
        if let Some(snapshot) = self.snapshot.as_mut().filter(|_| !sabotage.is(Sabotage::TornCheckpoint)) {
            let Held { clock, rows, values, snapshots, .. } = held;
            let update = Update { made: *clock, rows, values, slots: snapshots };
            snapshot.before_update(&self.schema, &self.store, self.stored.as_ref(), &update);
        }
        self.note_changes(&held.rows, &held.values);
        self.change(held);
        let subscriber = &mut self.subscribers[held.client.index()];
        subscriber.applied += 1;
        if sabotage.is(Sabotage::ApplyTwice) && subscriber.applied.is_multiple_of(7) {
            self.change(held);
        }
        if let Some(stored) = &mut self.stored {
            stored.release(&held.snapshots);
        }
        if self.schema.consistency.is_eager() {
            if let Some(authors) = &mut self.authors {
                authors.note(held.client, &held.rows, &self.dirty);
            }
            self.dirty.insert_all(&held.rows);
        }
    }

    /// Applies the held updates that may be shown now: under Bsp by clock and worker, added up as the table says,
    /// otherwise as they came.
    fn release(&mut self, slowest: Clock, sabotage: Sabotage) {
        let held = std::mem::take(&mut self.held);
        let show = |held: &Held| self.schema.consistency.may_show(held.clock, slowest);
        let (mut shown, still_held): (Vec<Held>, Vec<Held>) = held.into_iter().partition(show);
        self.held = still_held;
        if self.schema.consistency == Consistency::Bsp {
            shown.sort_by_key(|held| (held.clock, held.worker));
        }
        if self.schema.fan_in == 1 {
            return shown.iter().for_each(|held| self.apply(held, sabotage));
        }
        let fan_in = self.schema.fan_in;
        let group = |held: &Held| (held.clock, held.worker.0 / fan_in);
        for added_up in shown.chunk_by(|a, b| group(a) == group(b)) {
            let [first, others @ ..] = added_up else { continue };
            let mut sum = Delta::new(&self.schema);
            added_up.iter().for_each(|held| sum.add_all(&self.schema.kind, &held.rows, &held.values));
            for ShardDelta { rows, values, .. } in sum.take(&self.schema.kind, |_| ShardId(0)) {
                let Held { client, clock, worker, .. } = *first;
                self.apply(&Held { client, clock, worker, rows: rows.into(), values, snapshots: Vec::new() }, sabotage);
            }
            others.iter().for_each(|held| self.subscribers[held.client.index()].applied += 1);
        }
    }

    /// Sends each client the changed rows that it has registered for, has not changed alone, and no filter holds back.
    fn push_changes(
        &mut self,
        (shard, clock): (ShardId, Clock),
        sabotage: Sabotage,
        outbox: &mut Vec<(ClientId, Arc<ToClient>)>,
    ) -> Result<(), FilterError> {
        let mut held_back = Vec::new();
        if self.lag.is_some() {
            held_back = self.hold_back((shard, clock), &self.dirty.intersection(&self.dirty))?;
            self.dirty.remove_all(&held_back);
        }
        for client in (0..self.subscribers.len() as u32).map(ClientId) {
            let mut rows = self.dirty.intersection(&self.subscribers[client.index()].registered);
            if let Some(authors) = &self.authors {
                rows.retain(|&row| !authors.knows(client, row));
            }
            let dropped = sabotage.is(Sabotage::DropCallback) && (clock.0 + client.0).is_multiple_of(3);
            if !rows.is_empty() && !dropped {
                outbox.extend(self.rows_messages(client, clock, rows.into()));
            }
        }
        if self.lag.is_some() || self.early.is_some() {
            let pushed = self.dirty.intersection(&self.dirty);
            self.note_pushed(&pushed);
            self.answers.iter_mut().for_each(|answers| answers.pushed(&pushed));
            self.early.iter_mut().for_each(|early| early.forget_changes(&pushed));
        }
        self.dirty.clear();
        self.authors.iter_mut().for_each(Authors::clear);
        self.dirty.insert_all(&held_back);
        Ok(())
    }

    fn answer(&mut self, clock: Clock, outbox: &mut Vec<(ClientId, Arc<ToClient>)>) {
        let waiting = std::mem::take(&mut self.waiting);
        for read in waiting {
            if read.needed <= clock {
                outbox.extend(self.rows_messages(read.client, clock, read.rows));
            } else {
                self.waiting.push(read);
            }
        }
    }

    /// Under Vap: sends an applied update at once to every client that does not see it, and remembers who has yet to.
    /// The writer's own sees it if its workers read their own writes.
    fn push_unseen(&mut self, writer: ClientId, clock: Clock, rows: &Array<u64>) -> Vec<(ClientId, Arc<ToClient>)> {
        let mut messages = Vec::new();
        let mut awaited = Vec::new();
        let mut changed = RowSet::new(self.schema.rows);
        changed.insert_all(rows);
        let sees = |client| self.schema.read_my_writes && client == writer;
        let clients: Vec<ClientId> =
            (0..self.subscribers.len() as u32).map(ClientId).filter(|&client| !sees(client)).collect();
        for client in clients {
            let rows = changed.intersection(&self.subscribers[client.index()].registered);
            if !rows.is_empty() {
                messages.extend(self.rows_messages(client, clock, rows.into()));
                awaited.push((client, self.subscribers[client.index()].rows_sent));
            }
        }
        self.unseen.push_back(Unseen { writer, number: self.subscribers[writer.index()].applied, awaited });
        messages
    }

    fn rows_message(&mut self, client: ClientId, clock: Clock, rows: Array<u64>) -> Arc<ToClient> {
        let subscriber = &mut self.subscribers[client.index()];
        subscriber.rows_sent += 1;
        let (number, through) = (subscriber.rows_sent, subscriber.applied);
        let versions = match (&mut self.stored, &self.store) {
            (Some(stored), Store::Flat(slab)) => stored.send(slab, client, number, &rows).map(Into::into),
            _ => None,
        };
        let values = self.store.gather(&self.schema, &rows, &mut self.recycler);
        if let Some(lag) = &mut self.lag {
            lag.sent(&rows, &values);
        }
        let values = self.schema.precision.narrow(values);
        Arc::new(ToClient::Rows { table: self.id, clock, through, rows, versions, values })
    }
}

impl Subscriber {
    fn new(schema: &TableSchema) -> Self {
        Self { registered: RowSet::new(schema.rows), applied: 0, rows_sent: 0, rows_seen: 0 }
    }
}
