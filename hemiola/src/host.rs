//! One process's side of a job: its client, and how that is carried to the others. The drivers differ in nothing but
//! the [`Carrier`].

use crate::checkpoint::{PART_BYTES, Rests, Vault};
use crate::deployment::Observation;
use crate::error::Error;
use crate::patience::{Attempt, Patience};
use crate::{sim, tcp};
use hemiola_core::checkpoint::{Planner, Whole};
use hemiola_core::coordinator::{Coordinator, FromCoordinator, Process, ToCoordinator};
use hemiola_core::filter::FilterError;
use hemiola_core::filter::ledger::{self, FilterSaving};
use hemiola_core::peer::{Freshness, PeerWait};
use hemiola_core::shard::ShardError;
use hemiola_core::snapshot::{Part, PartError};
use hemiola_core::{Client, ClientId, Clock, Embedded, Misuse, Peer, Shard, StalenessHistogram, WorkerId};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

/// One process of a job, shared by its workers and by the threads that carry its messages.
pub(crate) struct Host {
    /// One lock for the client and everything about it: critical sections are one table operation or one message, and
    /// a worker computes on rows that it has leased, outside the lock.
    state: Mutex<State>,
    /// Something changed that a waiting worker may have waited for.
    changed: Condvar,
    /// A worker has begun to wait, or ended.
    idled: Condvar,
    /// How often that has been, counted under the lock.
    changes: AtomicU64,
    patience: Patience,
    carrier: Carrier,
    timeout: Duration,
    began: Instant,
    pub(crate) bytes_sent: AtomicU64,
    pub(crate) bytes_received: AtomicU64,
    local_workers: u64,
    pub(crate) vault: Option<Vault>,
}

/// What the lock guards.
pub(crate) struct State {
    pub(crate) core: Core,
    /// Reports that all workers have made, summed.
    totals: BTreeMap<u32, Vec<f64>>,
    /// Why the job has ended, if it has.
    pub(crate) stopped: Option<String>,
    /// Set in the process that started the job, where that hosts workers itself.
    coordinator: Option<Coordinator>,
    /// How many workers wait or have ended, where that is of interest: on threads.
    idle: u32,
    /// Reports that the observer has not seen.
    observations: Vec<Observation>,
    saves: Saves,
}

/// Which checkpoints are taken, as far as this process has been told.
#[derive(Default)]
struct Saves {
    /// Clocks up to this one have been decided.
    decided: Clock,
    clocks: BTreeSet<Clock>,
    /// Decides, in the process that started the job, where that hosts workers itself.
    planner: Option<Planner>,
    /// The newest whose tables are being taken out here.
    announced: Clock,
}

/// The tables as this process has them.
pub(crate) enum Core {
    /// The master copy.
    Embedded(Embedded),
    /// A cache; the shards that are in this process too, if any.
    Cached { client: Client, shards: Vec<Shard> },
    /// No tables at all: the peers of a job of factors that are in this process, by number.
    Peers(Vec<Peer>),
}

/// How messages leave this process, and what a waiting worker does.
pub(crate) enum Carrier {
    /// They do not: the shards are here.
    Threads,
    Tcp(tcp::Port),
    Sim(sim::Port),
}

impl Host {
    pub(crate) fn new(
        core: Core,
        coordinator: Option<Coordinator>,
        carrier: Carrier,
        timeout: Duration,
        vault: Option<Vault>,
    ) -> Self {
        let local_workers = match &core {
            Core::Embedded(tables) => tables.workers() as u64,
            Core::Cached { client, .. } => client.workers() as u64,
            Core::Peers(peers) => peers.len() as u64,
        };
        let state = State {
            core,
            totals: BTreeMap::new(),
            stopped: None,
            coordinator,
            idle: 0,
            observations: Vec::new(),
            saves: Saves::default(),
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            idled: Condvar::new(),
            changes: AtomicU64::new(0),
            patience: Patience::default(),
            carrier,
            timeout,
            began: Instant::now(),
            bytes_sent: AtomicU64::new(0),
            bytes_received: AtomicU64::new(0),
            local_workers,
            vault,
        }
    }

    /// Lets this process decide when checkpoints are taken.
    pub(crate) fn plan(&self, planner: Planner) {
        self.state.lock().saves.planner = Some(planner);
    }

    /// How many workers this process has.
    pub(crate) fn local_workers(&self) -> u64 {
        self.local_workers
    }

    /// Seconds since the job began.
    pub(crate) fn seconds(&self) -> f64 {
        match &self.carrier {
            Carrier::Threads | Carrier::Tcp(_) => self.began.elapsed().as_secs_f64(),
            Carrier::Sim(port) => port.seconds(),
        }
    }

    /// Charges `units` of the worker's work to virtual time, where there is such.
    pub(crate) fn work(&self, worker: WorkerId, units: u64) -> Result<(), Error> {
        match &self.carrier {
            Carrier::Threads | Carrier::Tcp(_) => Ok(()),
            Carrier::Sim(port) => port.work(worker, units),
        }
    }

    /// Runs one operation that never waits, and carries what it leads to.
    pub(crate) fn operate<R>(&self, operation: impl FnOnce(&mut Core) -> R) -> Result<R, Error> {
        let mut state = self.state.lock();
        if let Some(reason) = &state.stopped {
            return Err(Error::Stopped { reason: reason.clone() });
        }
        let result = operation(&mut state.core);
        self.carry(&mut state);
        self.tell_changed(state);
        if let Carrier::Tcp(port) = &self.carrier {
            port.wait_for_room(|| self.state.lock().stopped.is_some());
        }
        Ok(result)
    }

    /// Runs an operation until it is ready. Returns what it gave and the seconds that it was blocked. `explain` says
    /// what was waited for if that takes too long.
    pub(crate) fn wait<R>(
        &self,
        worker: WorkerId,
        mut operation: impl FnMut(&mut State) -> Result<Poll<R>, Misuse>,
        explain: impl Fn(&Core, f64) -> Error,
    ) -> Result<(R, f64), Error> {
        let mut state = self.state.lock();
        let mut blocked: Option<f64> = None;
        loop {
            if let Some(reason) = &state.stopped {
                return Err(Error::Stopped { reason: reason.clone() });
            }
            let poll = operation(&mut state)?;
            self.carry(&mut state);
            if let Poll::Ready(result) = poll {
                let waited = blocked.map_or(0.0, |since| self.seconds() - since);
                return Ok((result, waited));
            }
            // In one process carrying may already have brought what was missing.
            if matches!(self.carrier, Carrier::Threads)
                && let Poll::Ready(result) = operation(&mut state)?
            {
                return Ok((result, blocked.map_or(0.0, |since| self.seconds() - since)));
            }
            let since = *blocked.get_or_insert_with(|| self.seconds());
            let hope;
            (state, hope) = self.sleep(worker, state);
            let waited = self.seconds() - since;
            if waited > self.timeout.as_secs_f64() || !hope {
                return Err(explain(&state.core, waited));
            }
        }
    }

    /// Sleeps until something may have changed. Says whether there is hope of that at all, which a simulation knows.
    fn sleep<'a>(&'a self, worker: WorkerId, mut state: MutexGuard<'a, State>) -> (MutexGuard<'a, State>, bool) {
        let rest = |state: &mut MutexGuard<'a, State>| {
            self.changed.wait_for(state, self.timeout.min(Duration::from_secs(5)));
        };
        match &self.carrier {
            Carrier::Threads => {
                self.idle(&mut state);
                rest(&mut state);
                state.idle -= 1;
                (state, true)
            }
            Carrier::Tcp(_) => {
                let known = self.changes.load(Ordering::Relaxed);
                drop(state);
                let state = self.patience.wait(|attempt| {
                    let news = || self.changes.load(Ordering::Relaxed) != known;
                    if attempt == Attempt::Look && !news() {
                        return None;
                    }
                    let mut state = self.state.lock();
                    if !news() {
                        rest(&mut state);
                    }
                    Some(state)
                });
                (state, true)
            }
            Carrier::Sim(port) => {
                drop(state);
                let hope = port.park(worker);
                (self.state.lock(), hope)
            }
        }
    }

    /// A worker wants no processor from now on.
    fn idle(&self, state: &mut State) {
        state.idle += 1;
        self.idled.notify_one();
    }

    /// A worker has ended.
    pub(crate) fn retire(&self) {
        self.idle(&mut self.state.lock());
    }

    /// Changes the state from outside a worker (a message came in), and carries what that leads to.
    pub(crate) fn deliver<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.state.lock();
        let result = change(&mut state);
        self.carry(&mut state);
        self.tell_changed(state);
        result
    }

    /// Lets the client send something ahead of the end of a clock; says how many bytes of rows that were.
    pub(crate) fn send_early(&self, bytes: usize) -> usize {
        let mut state = self.state.lock();
        let sent = match &mut state.core {
            Core::Cached { client, .. } => client.send_early(bytes),
            Core::Embedded(_) | Core::Peers(_) => 0,
        };
        self.carry(&mut state);
        sent
    }

    /// Ends the job for everyone in this process.
    pub(crate) fn stop(&self, reason: &str) {
        self.deliver(|state| {
            state.stopped.get_or_insert_with(|| reason.to_owned());
        });
    }

    /// Sends a worker's part of a report, its clock, or what it has saved to the coordinator. Gives a checkpoint that
    /// is whole by that, where the coordinator is in this process.
    pub(crate) fn tell_coordinator(&self, message: ToCoordinator) -> Option<Whole> {
        let mut whole = None;
        let mut state = self.state.lock();
        let state_mut = &mut *state;
        match (&self.carrier, &mut state_mut.coordinator) {
            (Carrier::Tcp(port), _) => match message {
                // Whoever plans checkpoints must hear of every clock, and workers wait for what is decided.
                ToCoordinator::Clock { worker, clock } if self.vault.is_none() => port.tell_clock(worker, clock),
                message => port.tell_coordinator(message),
            },
            (Carrier::Sim(port), _) => port.tell_coordinator(message),
            (Carrier::Threads, Some(coordinator)) => {
                let seconds = self.seconds();
                if let Some(planner) = &mut state_mut.saves.planner {
                    let (decision, ready) = planner.hear(&message, seconds);
                    decision.into_iter().for_each(|decision| coordinator.announce(decision));
                    whole = ready;
                }
                coordinator.receive(Process::Worker(ClientId(0)), message);
                let answers: Vec<FromCoordinator> = coordinator.outbox().collect();
                answers.into_iter().for_each(|answer| state.hear(answer, seconds));
            }
            (Carrier::Threads, None) => unreachable!("with threads the coordinator is in the process"),
        }
        self.carry(&mut state);
        self.tell_changed(state);
        whole
    }

    /// Wakes the workers that wait for a change.
    fn tell_changed(&self, state: MutexGuard<'_, State>) {
        self.changes.fetch_add(1, Ordering::Relaxed);
        drop(state);
        self.changed.notify_all();
    }

    /// Keeps what a worker hands in at a checkpoint in the memory of the simulator.
    pub(crate) fn save_in_memory(&self, worker: WorkerId, clock: Clock, reports: u32, state: Vec<u8>) {
        match &self.carrier {
            Carrier::Sim(port) => port.save(worker, clock, reports, state),
            Carrier::Threads | Carrier::Tcp(_) => unreachable!("only the simulator keeps states in memory"),
        }
    }

    /// Reports that the observer has not seen yet.
    pub(crate) fn take_observations(&self) -> Vec<Observation> {
        std::mem::take(&mut self.state.lock().observations)
    }

    pub(crate) fn count_bytes(&self, sent: u64, received: u64) {
        self.bytes_sent.fetch_add(sent, Ordering::Relaxed);
        self.bytes_received.fetch_add(received, Ordering::Relaxed);
    }

    fn carry(&self, state: &mut State) {
        // Only the simulator has a use for events.
        let (client, shards) = match &mut state.core {
            Core::Embedded(tables) => {
                tables.events();
                self.announce_checkpoint(state);
                return;
            }
            Core::Peers(peers) => {
                self.carry_factors(peers);
                return;
            }
            Core::Cached { client, shards } => (client, shards),
        };
        match &self.carrier {
            Carrier::Threads => {
                if let Err(error) = carry_inside(client, shards) {
                    state.stopped.get_or_insert_with(|| error.to_string());
                }
                client.events();
                shards.iter_mut().for_each(|shard| drop(shard.events()));
                self.announce_checkpoint(state);
            }
            Carrier::Tcp(port) => {
                client.events();
                let outbox = client.outbox();
                if outbox.len() > 0 {
                    outbox.for_each(|(shard, message)| port.send(shard, message));
                    self.count_bytes(port.write(), 0);
                }
            }
            Carrier::Sim(port) => {
                client.outbox().for_each(|(shard, message)| port.send(shard, message));
                port.stir();
            }
        }
    }
}

impl Host {
    /// Carries what peers have to say to one another.
    fn carry_factors(&self, peers: &mut [Peer]) {
        match &self.carrier {
            Carrier::Threads => {
                let messages: Vec<_> = peers.iter_mut().flat_map(Peer::outbox).collect();
                for (to, message) in messages {
                    peers[to.index()].receive(message).expect("our own peers keep to the protocol");
                }
            }
            Carrier::Tcp(port) => {
                peers.iter_mut().flat_map(Peer::outbox).for_each(|(to, message)| port.send_to_peer(to, message));
            }
            Carrier::Sim(port) => {
                peers.iter_mut().flat_map(Peer::outbox).for_each(|(to, message)| port.send_to_peer(to, message));
            }
        }
    }

    /// Hands the tables of this process to the thread that writes them, once they are ready.
    fn announce_checkpoint(&self, state: &mut State) {
        if let (Some(vault), Some(clock)) = (&self.vault, state.core.checkpoint_ready())
            && clock > state.saves.announced
        {
            state.saves.announced = clock;
            vault.tables_ready(clock);
        }
    }

    /// Takes the next rows out of the checkpoint that is ready, after a rest. There is none while a worker wants no
    /// processor, since it may even wait for what is taken out, nor while much is kept.
    pub(crate) fn checkpoint_part(&self, rests: &mut Rests) -> Option<Part> {
        let mut state = self.state.lock();
        let may_rest = |state: &State| state.idle == 0 && !state.core.checkpoint_is_large();
        while may_rest(&state) && rests.rest(|due| _ = self.idled.wait_for(&mut state, due)) {}
        let part = state.core.checkpoint_part(PART_BYTES);
        // A worker may wait for what can be changed now that it has been taken out.
        self.tell_changed(state);
        part
    }

    /// Gives up the checkpoint that is being taken.
    pub(crate) fn end_checkpoint(&self) {
        let mut state = self.state.lock();
        match &mut state.core {
            Core::Embedded(tables) => tables.end_checkpoint(),
            Core::Cached { shards, .. } => shards.iter_mut().for_each(Shard::end_checkpoint),
            Core::Peers(_) => {}
        }
        self.tell_changed(state);
    }

    /// The checkpoint that is not whole, where that is decided in this process.
    pub(crate) fn open_checkpoint(&self) -> Option<Clock> {
        self.state.lock().saves.planner.as_ref().and_then(Planner::open)
    }
}

impl Core {
    /// Whether the checkpoint that is being taken keeps so much that it should be taken out in haste.
    fn checkpoint_is_large(&self) -> bool {
        match self {
            Self::Embedded(tables) => tables.checkpoint_is_large(),
            Self::Cached { shards, .. } => shards.iter().any(Shard::checkpoint_is_large),
            Self::Peers(_) => false,
        }
    }

    /// Sets the rows of a checkpoint, those that are in this process.
    pub(crate) fn restore(&mut self, part: &Part) -> Result<(), PartError> {
        match self {
            Self::Embedded(tables) => tables.restore(part),
            Self::Cached { shards, .. } => shards.iter_mut().try_for_each(|shard| shard.restore(part)),
            Self::Peers(_) => Ok(()),
        }
    }

    /// Goes on at the clock of a checkpoint.
    pub(crate) fn resume(&mut self, clock: Clock) {
        match self {
            Self::Embedded(tables) => tables.resume(clock),
            Self::Cached { client, shards } => {
                client.resume(clock);
                shards.iter_mut().for_each(|shard| shard.resume(clock));
            }
            Self::Peers(_) => {}
        }
    }

    fn checkpoint(&mut self, clock: Clock) {
        match self {
            Self::Embedded(tables) => tables.checkpoint(clock),
            Self::Cached { client, .. } => client.checkpoint(clock),
            Self::Peers(_) => {}
        }
    }

    fn checkpoint_ready(&self) -> Option<Clock> {
        match self {
            Self::Embedded(tables) => tables.checkpoint_ready(),
            Self::Cached { shards, .. } => shards.first().and_then(Shard::checkpoint_ready),
            Self::Peers(_) => None,
        }
    }

    fn checkpoint_part(&mut self, bytes_max: usize) -> Option<Part> {
        match self {
            Self::Embedded(tables) => tables.checkpoint_part(bytes_max),
            Self::Cached { shards, .. } => shards.first_mut().and_then(|shard| shard.checkpoint_part(bytes_max)),
            Self::Peers(_) => None,
        }
    }

    /// What filters saved in this process.
    pub(crate) fn savings(&self) -> Vec<FilterSaving> {
        match self {
            Self::Embedded(_) | Self::Peers(_) => Vec::new(),
            Self::Cached { client, shards } => {
                let mut savings = client.ledger().savings();
                shards.iter().for_each(|shard| ledger::merge(&mut savings, shard.ledger().savings()));
                savings
            }
        }
    }

    /// How stale reads have been in this process.
    pub(crate) fn histogram(&self) -> StalenessHistogram {
        match self {
            Self::Embedded(tables) => tables.histogram().clone(),
            Self::Cached { client, .. } => client.histogram().clone(),
            Self::Peers(peers) => {
                let mut histogram = StalenessHistogram::default();
                peers.iter().for_each(|peer| histogram.merge(peer.histogram()));
                histogram
            }
        }
    }

    /// What a peer waits for. If that has come while it gave up, itself.
    pub(crate) fn peer_wait(&self, worker: WorkerId, freshness: Freshness) -> PeerWait {
        let Self::Peers(peers) = self else { unreachable!("only a job of factors has peers") };
        let peer = peers.iter().find(|peer| peer.id() == worker).expect("a worker of this process");
        let clock = peer.clock();
        peer.wait(freshness).unwrap_or(PeerWait { worker, sender: worker, needed: clock, reached: clock })
    }

    /// The peer of a worker of this process.
    pub(crate) fn peer(&mut self, worker: WorkerId) -> &mut Peer {
        let Self::Peers(peers) = self else { unreachable!("only a job of factors has peers") };
        peers.iter_mut().find(|peer| peer.id() == worker).expect("a worker of this process")
    }
}

/// Passes messages between a client and the shards beside it until none is left, or a filter fails.
fn carry_inside(client: &mut Client, shards: &mut [Shard]) -> Result<(), FilterError> {
    loop {
        let requests: Vec<_> = client.outbox().collect();
        if requests.is_empty() {
            return Ok(());
        }
        for (shard, message) in requests {
            match shards[shard.index()].receive(ClientId(0), &message) {
                Err(ShardError::Filter(error)) => return Err(error),
                taken => taken.expect("our own client keeps to the protocol"),
            }
            for (_, answer) in shards[shard.index()].outbox() {
                client.receive(shard, &answer).expect("our own shard keeps to the protocol");
            }
        }
    }
}

impl State {
    /// Takes a message from the coordinator.
    pub(crate) fn hear(&mut self, message: FromCoordinator, seconds: f64) {
        match message {
            FromCoordinator::Totals { index, values } => {
                self.observations.push(Observation { index, values: values.clone(), seconds });
                self.totals.insert(index, values);
            }
            FromCoordinator::Checkpoint { clock, save } => {
                self.saves.decided = clock;
                if save {
                    self.saves.clocks.insert(clock);
                    self.core.checkpoint(clock);
                }
            }
            FromCoordinator::Start { .. } | FromCoordinator::Stop => {}
        }
    }

    /// Whether a checkpoint is taken at `clock`, if that has been decided.
    pub(crate) fn checkpoint_at(&self, clock: Clock) -> Option<bool> {
        (clock <= self.saves.decided).then(|| self.saves.clocks.contains(&clock))
    }

    /// The totals of a report, if all workers have made it.
    pub(crate) fn totals(&self, index: u32) -> Option<&Vec<f64>> {
        self.totals.get(&index)
    }
}
