//! What an algorithm author writes against: one worker's view of the tables.

use crate::checkpoint::Keeper;
use crate::deployment::WorkerSplit;
use crate::error::Error;
use crate::host::{Core, Host};
use hemiola_core::client::Wait;
use hemiola_core::coordinator::ToCoordinator;
use hemiola_core::{Clock, Lease, Misuse, Peer, Rows, TableId, Values, WorkerId};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

/// One worker of a job.
///
/// Reads block until the rows are as fresh as the table's consistency model asks; updates are additions, buffered and
/// sent at the end of the worker's clock; [`Worker::clock`] ends it. Every operation is batched over many rows; the
/// single-row forms are short for that.
pub struct Worker {
    id: WorkerId,
    workers: u32,
    host: Arc<Host>,
    /// Reports made so far.
    reports: u32,
    wait_seconds: f64,
    communication_seconds: f64,
    began: f64,
    /// The clock of a checkpoint for which the worker's state is to be saved.
    due: Option<Clock>,
    resumed: Option<Vec<u8>>,
}

impl Worker {
    pub(crate) fn new(id: WorkerId, workers: u32, host: Arc<Host>) -> Self {
        let began = host.seconds();
        let resumed = host.vault.as_ref().and_then(|vault| vault.take_resumed(id));
        let (reports, resumed) = resumed.map_or((0, None), |(reports, state)| (reports, Some(state)));
        let (wait_seconds, communication_seconds) = (0.0, 0.0);
        Self { id, workers, host, reports, wait_seconds, communication_seconds, began, due: None, resumed }
    }

    /// The worker's number, from zero.
    #[must_use]
    pub fn id(&self) -> WorkerId {
        self.id
    }

    /// How many workers the job has.
    #[must_use]
    pub fn workers(&self) -> u32 {
        self.workers
    }

    /// Seconds since the job began; virtual ones in the simulator.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.host.seconds()
    }

    /// How many clocks the worker has finished.
    ///
    /// # Errors
    /// If the job has been stopped.
    pub fn now(&self) -> Result<Clock, Error> {
        let id = self.id;
        self.host.operate(|core| core.clock_of(id))
    }

    /// Reads rows.
    ///
    /// # Errors
    /// If the table or a row does not exist, the wait takes too long, or the job has been stopped.
    pub fn get(&mut self, table: TableId, rows: &[u64]) -> Result<Values, Error> {
        let (id, rows) = (self.id, Rows::List(rows));
        self.wait(Some(table), |core| core.get(id, table, &rows))
    }

    /// Reads one dense row.
    ///
    /// # Errors
    /// As [`Worker::get`].
    pub fn get_row(&mut self, table: TableId, row: u64) -> Result<Vec<f32>, Error> {
        let mut numbers = Vec::new();
        self.get_dense(table, &Rows::List(&[row]), &mut numbers)?;
        Ok(numbers)
    }

    /// Reads rows of a dense table into `out`, one after the other.
    ///
    /// # Errors
    /// As [`Worker::get`].
    pub fn get_dense(&mut self, table: TableId, rows: &Rows<'_>, out: &mut Vec<f32>) -> Result<(), Error> {
        let id = self.id;
        self.wait(Some(table), |core| core.get_dense(id, table, rows, out))
    }

    /// Reads rows in which every update of every clock that this worker has finished is, from all workers: waits for
    /// the slowest, whatever staleness the table allows.
    ///
    /// # Errors
    /// As [`Worker::get`].
    pub fn get_latest(&mut self, table: TableId, rows: &[u64]) -> Result<Values, Error> {
        let (id, rows) = (self.id, Rows::List(rows));
        self.wait_for(
            |core| core.get_latest(id, table, &rows),
            |core| Wait { needed: core.clock_of(id), ..core.wait_of(id, Some(table)) },
        )
    }

    /// Adds row `i` of `updates` to row `i` of `rows`.
    ///
    /// # Errors
    /// If the table or a row does not exist, the updates do not fit, or the job has been stopped.
    pub fn inc(&mut self, table: TableId, rows: &[u64], updates: &Values) -> Result<(), Error> {
        let id = self.id;
        let bound = self.host.operate(|core| core.transit_bound(id, table))??;
        for piece in pieces(updates, bound) {
            self.wait(Some(table), |core| core.inc(id, table, rows, &piece))?;
        }
        Ok(())
    }

    /// Adds `update` to one dense row.
    ///
    /// # Errors
    /// As [`Worker::inc`].
    pub fn inc_row(&mut self, table: TableId, row: u64, update: &[f32]) -> Result<(), Error> {
        self.inc(table, &[row], &Values::dense(update.len() as u32, update.to_vec()))
    }

    /// Lends this worker the chunks that hold `rows`, lets `edit` read and change them in place, and takes what it
    /// changed as updates. It is the fast path: no row is copied to be read, and no lock is held meanwhile.
    ///
    /// # Errors
    /// As [`Worker::get`]; and the table must be dense with a declared number of rows.
    pub fn edit<R>(&mut self, table: TableId, rows: &Rows<'_>, edit: impl FnOnce(&mut Lease) -> R) -> Result<R, Error> {
        let mut lease = self.lease(table, rows)?;
        let result = edit(&mut lease);
        self.give_back(table, lease)?;
        Ok(result)
    }

    /// Borrows the chunks that hold `rows` for longer, over clocks if need be; what is changed in them counts when
    /// they are given back. Until then nobody else may get hold of them in the same process.
    ///
    /// # Errors
    /// As [`Worker::edit`].
    pub fn lease(&mut self, table: TableId, rows: &Rows<'_>) -> Result<Lease, Error> {
        let id = self.id;
        self.wait(Some(table), |core| core.lease(id, table, rows))
    }

    /// Gives back what [`Worker::lease`] lent.
    ///
    /// # Errors
    /// If the job has been stopped.
    pub fn give_back(&mut self, table: TableId, lease: Lease) -> Result<(), Error> {
        let id = self.id;
        let began = self.host.seconds();
        let left = self.host.operate(|core| core.give_back(id, lease))?;
        self.communication_seconds += self.host.seconds() - began;
        match left {
            Some((rows, updates)) => self.inc(table, &rows, &updates),
            None => Ok(()),
        }
    }

    /// Announces rows that this worker will read, so that they are fetched ahead in one message per shard.
    ///
    /// # Errors
    /// If the table or a row does not exist, or the job has been stopped.
    pub fn intend(&mut self, table: TableId, rows: &Rows<'_>) -> Result<(), Error> {
        let id = self.id;
        Ok(self.host.operate(|core| core.intend(id, table, rows))??)
    }

    /// Ends the current clock, and waits until the next one may be started.
    ///
    /// # Errors
    /// If the wait takes too long, the job has been stopped, or a checkpoint was due and nothing was saved.
    pub fn clock(&mut self) -> Result<(), Error> {
        let id = self.id;
        if let Some(clock) = self.due {
            return Err(Error::Unsaved { worker: id, clock });
        }
        let began = self.host.seconds();
        // What is kept back is saved nowhere, so a checkpoint must not lack it.
        let candidate = |clock: Clock| self.host.vault.as_ref().is_some_and(|vault| vault.every.is_candidate(clock));
        let clock = self.host.operate(|core| {
            if candidate(core.clock_of(id).next()) {
                core.flush(id);
            }
            core.clock(id)?;
            Ok::<_, Misuse>(core.clock_of(id))
        })??;
        self.host.tell_coordinator(ToCoordinator::Clock { worker: id, clock });
        self.communication_seconds += self.host.seconds() - began;
        let asks = candidate(clock);
        let (save, waited) = self.host.wait(
            id,
            |state| {
                let save = if asks { state.checkpoint_at(clock) } else { Some(false) };
                Ok(save.filter(|_| state.core.may_start(id)).map_or(Poll::Pending, Poll::Ready))
            },
            |core, seconds| Error::Timeout { wait: core.wait_of(id, None), seconds },
        )?;
        self.wait_seconds += waited;
        self.due = save.then_some(clock);
        Ok(())
    }

    /// Lets everything travel at the end of the current clock that selection filters have kept of this worker's
    /// updates. When all workers have done so before their last clock, the tables lack nothing that was kept.
    ///
    /// # Errors
    /// If the job has been stopped.
    pub fn flush(&mut self) -> Result<(), Error> {
        let id = self.id;
        self.host.operate(|core| core.flush(id))
    }

    /// Whether a checkpoint is taken at the worker's clock: then it must [`Worker::save`] before it ends the clock.
    ///
    /// ```
    /// use hemiola::checkpoint::{Checkpoints, Every};
    /// use hemiola::{Deployment, Error, TableId, TableSchema, Worker};
    ///
    /// fn program(worker: &mut Worker) -> Result<Vec<u8>, Error> {
    ///     // What the worker would lose by stopping here; the tables and the clock are looked after.
    ///     let mut position = worker.resumed().map_or(0, |state| state[0]);
    ///     while position < 10 {
    ///         worker.inc_row(TableId(0), 0, &[1.0])?;
    ///         position += 1;
    ///         worker.clock()?;
    ///         if worker.checkpoint_due() {
    ///             worker.save(&[&[position]])?;
    ///         }
    ///     }
    ///     Ok(format!("{:?}", worker.get_latest(TableId(0), &[0])?.row(0)).into_bytes())
    /// }
    ///
    /// # let folder = std::env::temp_dir().join(format!("hemiola-doc-{}", std::process::id()));
    /// let tables = [TableSchema::dense("counter", 1, 1)];
    /// let mut checkpoints = Checkpoints::new(&folder, Every::Clocks(4));
    /// let run = |checkpoints: &Checkpoints| {
    ///     hemiola::run_saved(&Deployment::threads(2), &tables, checkpoints, &program, &mut |_| {})
    /// };
    /// assert_eq!(run(&checkpoints)?.results[0], b"Dense([20.0])");
    /// checkpoints.resume = Some(folder.clone());
    /// assert_eq!(run(&checkpoints)?.results[0], b"Dense([20.0])", "from clock 8");
    /// # std::fs::remove_dir_all(&folder).expect("just made");
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn checkpoint_due(&self) -> bool {
        self.due.is_some()
    }

    /// Hands in what this worker needs to go on from the checkpoint that is due, in pieces if it lies so: it is written
    /// from where it is. The tables, the clock and the number of reports are saved without it.
    ///
    /// Rows that the worker holds on [`Worker::lease`] belong to its own state: it hands them in, and after a resume
    /// leases them again and sets them. Updates made since the clock ended are not in the tables of the checkpoint.
    ///
    /// # Errors
    /// If no checkpoint is due. A disk that is full ends nothing: the job goes on without this checkpoint.
    pub fn save(&mut self, state: &[&[u8]]) -> Result<(), Error> {
        let (Some(clock), Some(vault)) = (self.due.take(), &self.host.vault) else {
            return Err(Error::NotDue { worker: self.id });
        };
        match &vault.keeper {
            Keeper::Files(saver) => saver.save(self.id, clock, self.reports, state),
            Keeper::Sim => self.host.save_in_memory(self.id, clock, self.reports, state.concat()),
        }
        Ok(())
    }

    /// What this worker handed in at the checkpoint that the job goes on from. It is given once.
    #[must_use]
    pub fn resumed(&mut self) -> Option<Vec<u8>> {
        self.resumed.take()
    }

    /// Adds `values` to a report that all workers make; the sums are shown to the job's observer. Returns the report's
    /// number: a worker's first report belongs to every other worker's first, and so on.
    pub fn report(&mut self, values: &[f64]) -> u32 {
        let index = self.reports;
        self.reports += 1;
        self.host.tell_coordinator(ToCoordinator::Report { worker: self.id, index, values: values.to_vec() });
        index
    }

    /// Waits until all workers have made report `index`, and gives its sums.
    ///
    /// # Errors
    /// If the wait takes too long or the job has been stopped.
    pub fn totals(&mut self, index: u32) -> Result<Vec<f64>, Error> {
        let worker = self.id;
        let (totals, waited) = self.host.wait(
            worker,
            |state| Ok(state.totals(index).map_or(Poll::Pending, |totals| Poll::Ready(totals.clone()))),
            |_, seconds| Error::TotalsTimeout { worker, index, seconds },
        )?;
        self.wait_seconds += waited;
        Ok(totals)
    }

    /// Says that `units` of work were done, each of what the deployment calls a unit. It costs nothing but in the
    /// simulator, where virtual time passes by it.
    ///
    /// # Errors
    /// If the simulation has been stopped.
    pub fn work(&mut self, units: u64) -> Result<(), Error> {
        self.host.work(self.id, units)
    }

    /// Where the worker's time has gone.
    #[must_use]
    pub fn split(&self) -> WorkerSplit {
        let total = self.host.seconds() - self.began;
        let share = |bytes: u64, workers: u64| bytes / workers.max(1);
        let local = self.host.local_workers();
        WorkerSplit {
            compute_seconds: (total - self.wait_seconds - self.communication_seconds).max(0.0),
            wait_seconds: self.wait_seconds,
            communication_seconds: self.communication_seconds,
            bytes_sent: share(self.host.bytes_sent.load(Ordering::Relaxed), local),
            bytes_received: share(self.host.bytes_received.load(Ordering::Relaxed), local),
            clocks: self.now().unwrap_or_default(),
        }
    }

    /// The process's side of the job.
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// Waits for something that is not about rows; gives also how long.
    pub(crate) fn wait_until<R>(
        &mut self,
        mut poll: impl FnMut(&mut Core) -> Poll<R>,
        explain: impl Fn(&Core, f64) -> Error,
    ) -> Result<(R, f64), Error> {
        let waited = self.host.wait(self.id, |state| Ok(poll(&mut state.core)), explain)?;
        self.wait_seconds += waited.1;
        Ok(waited)
    }

    /// Runs an operation on rows of `table`, or on none, until it is ready.
    fn wait<R>(
        &mut self,
        table: Option<TableId>,
        operation: impl FnMut(&mut Core) -> Result<Poll<R>, Misuse>,
    ) -> Result<R, Error> {
        let id = self.id;
        self.wait_for(operation, |core| core.wait_of(id, table))
    }

    /// Runs an operation until it is ready; `explain` says what for, if that takes too long.
    fn wait_for<R>(
        &mut self,
        mut operation: impl FnMut(&mut Core) -> Result<Poll<R>, Misuse>,
        explain: impl Fn(&Core) -> Wait,
    ) -> Result<R, Error> {
        let began = self.host.seconds();
        let (result, waited) = self.host.wait(
            self.id,
            |state| operation(&mut state.core),
            |core, seconds| Error::Timeout { wait: explain(core), seconds },
        )?;
        self.wait_seconds += waited;
        self.communication_seconds += (self.host.seconds() - began - waited).max(0.0);
        Ok(result)
    }
}

/// The update in pieces of which none exceeds the value bound, so that they can be in transit one after the other.
fn pieces(updates: &Values, bound: Option<f32>) -> Vec<Values> {
    let (Some(bound), Values::Dense { width, numbers }) = (bound, updates) else { return vec![updates.clone()] };
    let largest = numbers.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
    let count = (largest / bound).ceil();
    if !(count > 1.0 && count < (1u32 << 24) as f32) {
        return vec![updates.clone()];
    }
    // Dividing by a power of two loses nothing, so the pieces add up to the update.
    let count = (count as usize).next_power_of_two();
    let piece = numbers.iter().map(|x| x / count as f32).collect();
    vec![Values::dense(*width, piece); count]
}

/// The two forms of a process's tables behind one set of operations. The program of a peer is given no worker, so it has
/// no way to them.
impl Core {
    pub(crate) fn clock_of(&self, worker: WorkerId) -> Clock {
        match self {
            Self::Embedded(tables) => tables.clock_of(worker),
            Self::Cached { client, .. } => client.clock_of(worker),
            Self::Peers(peers) => peers.iter().find(|peer| peer.id() == worker).map_or(Clock(0), Peer::clock),
        }
    }

    fn get(&mut self, worker: WorkerId, table: TableId, rows: &Rows<'_>) -> Result<Poll<Values>, Misuse> {
        match self {
            Self::Embedded(tables) => tables.get(worker, table, rows),
            Self::Cached { client, .. } => client.get(worker, table, rows),
            Self::Peers(_) => no_tables(),
        }
    }

    fn get_latest(&mut self, worker: WorkerId, table: TableId, rows: &Rows<'_>) -> Result<Poll<Values>, Misuse> {
        match self {
            Self::Embedded(tables) => tables.get_latest(worker, table, rows),
            Self::Cached { client, .. } => client.get_latest(worker, table, rows),
            Self::Peers(_) => no_tables(),
        }
    }

    fn get_dense(
        &mut self,
        worker: WorkerId,
        table: TableId,
        rows: &Rows<'_>,
        out: &mut Vec<f32>,
    ) -> Result<Poll<()>, Misuse> {
        match self {
            Self::Embedded(tables) => tables.get_dense(worker, table, rows, out),
            Self::Cached { client, .. } => client.get_dense(worker, table, rows, out),
            Self::Peers(_) => no_tables(),
        }
    }

    fn inc(&mut self, worker: WorkerId, table: TableId, rows: &[u64], updates: &Values) -> Result<Poll<()>, Misuse> {
        match self {
            Self::Embedded(tables) => tables.inc(table, rows, updates),
            Self::Cached { client, .. } => client.inc(worker, table, rows, updates),
            Self::Peers(_) => no_tables(),
        }
    }

    /// In one process nothing is in transit, so the value bound asks for nothing.
    fn transit_bound(&mut self, worker: WorkerId, table: TableId) -> Result<Option<f32>, Misuse> {
        match self {
            Self::Embedded(_) => Ok(None),
            Self::Cached { client, .. } => client.transit_bound(worker, table),
            Self::Peers(_) => no_tables(),
        }
    }

    fn lease(&mut self, worker: WorkerId, table: TableId, rows: &Rows<'_>) -> Result<Poll<Lease>, Misuse> {
        match self {
            Self::Embedded(tables) => tables.lease(worker, table, rows),
            Self::Cached { client, .. } => client.lease(worker, table, rows),
            Self::Peers(_) => no_tables(),
        }
    }

    fn give_back(&mut self, worker: WorkerId, lease: Lease) -> Option<(Vec<u64>, Values)> {
        match self {
            Self::Embedded(tables) => {
                tables.give_back(lease);
                None
            }
            Self::Cached { client, .. } => client.give_back(worker, lease),
            Self::Peers(_) => no_tables(),
        }
    }

    fn intend(&mut self, worker: WorkerId, table: TableId, rows: &Rows<'_>) -> Result<(), Misuse> {
        match self {
            Self::Embedded(_) => Ok(()),
            Self::Cached { client, .. } => client.intend(worker, table, rows),
            Self::Peers(_) => no_tables(),
        }
    }

    fn clock(&mut self, worker: WorkerId) -> Result<(), Misuse> {
        match self {
            Self::Embedded(tables) => {
                tables.clock(worker);
                Ok(())
            }
            Self::Cached { client, .. } => client.clock(worker),
            Self::Peers(_) => no_tables(),
        }
    }

    /// In one process nothing is kept back.
    fn flush(&mut self, worker: WorkerId) {
        if let Self::Cached { client, .. } = self {
            client.flush(worker);
        }
    }

    fn may_start(&self, worker: WorkerId) -> bool {
        match self {
            Self::Embedded(tables) => tables.may_start(worker),
            Self::Cached { client, .. } => client.may_start(worker),
            Self::Peers(_) => no_tables(),
        }
    }

    fn wait_of(&self, worker: WorkerId, table: Option<TableId>) -> Wait {
        match self {
            Self::Embedded(tables) => tables.wait_of(worker, table),
            Self::Cached { client, .. } => client.wait_of(worker, table),
            Self::Peers(_) => no_tables(),
        }
    }
}

fn no_tables() -> ! {
    unreachable!("a peer has no tables")
}
