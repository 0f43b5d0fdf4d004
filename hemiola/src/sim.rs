//! The driver for simulated nodes in virtual time.
//!
//! Worker code runs for real, each worker on a thread of its own, but only one of them at a time: the one that holds
//! the baton. Whoever must wait, or lets virtual time pass, carries out what comes next in the simulated cluster until
//! some worker can go on, and hands that one the baton. So everything happens in one order, which follows from the
//! configuration and its seed: one seed, one outcome, to the bit.
//!
//! Operations on tables take no virtual time by themselves; [`crate::Worker::work`] and the network do.

mod baton;
mod config;
mod error;
mod pacing;
mod queue;
mod random;
mod saving;
mod time;
mod trace;
mod wire;
mod world;

pub use config::{Config, Crash, Delays, Faults, Hazard, Network, Servers, Slowdown, Straggler};
pub use error::SimError;
pub use hemiola_core::coordinator::Process;
pub use saving::{MemoryCheckpoint, Saving};
pub use trace::Trace;

use crate::checkpoint::{Keeper, Vault};
use crate::deployment::{Observer, Outcome, Program, WorkerSplit};
use crate::error::Error;
use crate::host::{Carrier, Core, Host};
use crate::threads::run_worker;
use baton::Seat;
use hemiola_core::coordinator::{FromCoordinator, ToCoordinator};
use hemiola_core::filter::ledger::{self, FilterSaving};
use hemiola_core::message::{ToClient, ToPeer, ToShard};
use hemiola_core::peer::{Broadcast, Freshness, Peer};
use hemiola_core::task::desk::Desk;
use hemiola_core::task::service::{Service, Tenant};
use hemiola_core::{Client, ClientId, Clock, Event, Job, ShardId, StalenessHistogram, TableSchema, WorkerId};
use parking_lot::Mutex;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;
use wire::Load;
use world::{Step, World};

/// The stack of a worker's thread: small enough for thousands of them.
const STACK_BYTES: usize = 1 << 20;

/// A client's way into the simulated cluster.
pub(crate) struct Port {
    client: ClientId,
    cluster: Arc<Cluster>,
}

/// What all threads of a simulation share. Hosts call into the world, so nobody calls a host while he locks the world.
struct Cluster {
    world: Mutex<World>,
    seats: Vec<Seat>,
}

/// A worker's end: what its program gave, and where its time went.
type End = (WorkerId, Result<(Vec<u8>, WorkerSplit), Error>);

impl Port {
    pub(crate) fn seconds(&self) -> f64 {
        self.cluster.world.lock().now.seconds()
    }

    pub(crate) fn work(&self, worker: WorkerId, units: u64) -> Result<(), Error> {
        self.cluster.record(self.client);
        if self.cluster.world.lock().work(worker, units) {
            self.cluster.pass_on(Some(worker));
        }
        let host = self.cluster.world.lock().host(self.client);
        host.operate(|_| ())
    }

    /// Waits until something was delivered to the worker's node. Says whether there is hope: without it nothing will
    /// ever be delivered again.
    #[must_use]
    pub(crate) fn park(&self, worker: WorkerId) -> bool {
        self.cluster.record(self.client);
        self.cluster.world.lock().park(worker);
        self.cluster.pass_on(Some(worker));
        !self.cluster.world.lock().is_hopeless()
    }

    pub(crate) fn send(&self, shard: ShardId, message: Arc<ToShard>) {
        self.cluster.world.lock().send(self.client, shard, Load::Request(message));
    }

    /// Every node has one peer, so they go by the same numbers.
    pub(crate) fn send_to_peer(&self, to: WorkerId, message: Arc<ToPeer>) {
        self.cluster.world.lock().send(self.client, ShardId(to.0), Load::Factors(message));
    }

    /// Keeps what a worker hands in at a checkpoint.
    pub(crate) fn save(&self, worker: WorkerId, clock: Clock, reports: u32, state: Vec<u8>) {
        self.cluster.world.lock().save_state(self.client, worker, (clock, reports), state);
    }

    /// Says that something was done, from which there may be something to send early.
    pub(crate) fn stir(&self) {
        self.cluster.world.lock().stir(self.client);
    }

    pub(crate) fn tell_coordinator(&self, message: ToCoordinator) {
        self.cluster.world.lock().tell_coordinator(self.client, message);
    }
}

impl Cluster {
    /// Carries out what comes next until `me` may go on; the baton is with others meanwhile. Without `me`, until
    /// another has it or all have ended.
    fn pass_on(&self, me: Option<WorkerId>) {
        loop {
            let step = self.world.lock().step();
            match step {
                Step::Run(worker) if Some(worker) == me => return,
                Step::Run(worker) => {
                    self.seats[worker.index()].give();
                    if let Some(me) = me {
                        self.seats[me.index()].take();
                    }
                    return;
                }
                Step::Deliver { client, shard, message } => self.deliver(client, shard, &message),
                Step::DeliverFactors { to, message } => self.deliver_factors(to, message),
                Step::Hear(answer) => self.hear(&answer),
                Step::Ask { client, bytes, turn } => self.ask(client, bytes, turn),
                Step::Stop { reason } => {
                    self.hosts().iter().for_each(|host| host.stop(&reason));
                    self.world.lock().wake_everyone();
                }
                Step::Over => return,
            }
        }
    }

    fn hosts(&self) -> Vec<Arc<Host>> {
        let world = self.world.lock();
        (0..world.hosts.len() as u32).map(|client| world.host(ClientId(client))).collect()
    }

    fn deliver(&self, client: ClientId, shard: ShardId, message: &ToClient) {
        let (host, workers) = {
            let world = self.world.lock();
            (world.host(client), world.job.workers_of(client))
        };
        let (result, awake) = with_client(&host, |client| {
            let result = client.receive(shard, message);
            // One that may not start its clock waits for that, and for nothing else. Most letters are one of many
            // replies, of which the last is waited for.
            let goes_on = |worker: &WorkerId| match message {
                ToClient::Task(_) if result.is_ok() => client.at_desk(*worker, Desk::take_stirred),
                _ => client.may_start(*worker),
            };
            let awake = workers.map(WorkerId).filter(goes_on).collect::<Vec<_>>();
            (result, awake)
        });
        self.record(client);
        let mut world = self.world.lock();
        awake.into_iter().for_each(|worker| world.wake_parked(worker));
        if let Err(error) = result {
            world.fail(Process::Worker(client), &error);
        }
    }

    fn deliver_factors(&self, to: WorkerId, message: Arc<ToPeer>) {
        let client = ClientId(to.0);
        let host = self.world.lock().host(client);
        let (result, may_start) = host.deliver(|state| {
            let peer = state.core.peer(to);
            (peer.receive(message), peer.wait(Freshness::Bound).is_none())
        });
        let mut world = self.world.lock();
        if may_start {
            world.wake_parked(to);
        }
        if let Err(error) = result {
            world.fail(Process::Worker(client), &error);
        }
    }

    /// Asks a client for updates to send early.
    fn ask(&self, client: ClientId, bytes: usize, (turn, sent): (usize, usize)) {
        let host = self.world.lock().host(client);
        let more = host.send_early(bytes);
        self.world.lock().asked(client, (turn, sent + more));
    }

    fn hear(&self, answer: &FromCoordinator) {
        let seconds = self.world.lock().now.seconds();
        for host in self.hosts() {
            host.deliver(|state| state.hear(answer.clone(), seconds));
        }
        let mut world = self.world.lock();
        (0..world.job.workers()).for_each(|worker| world.wake_parked(WorkerId(worker)));
    }

    /// Takes note of what happened in a client, before time passes.
    fn record(&self, client: ClientId) {
        let host = self.world.lock().host(client);
        let events: Vec<Event> = host.deliver(|state| match &mut state.core {
            Core::Cached { client, .. } => client.events().collect(),
            Core::Embedded(_) | Core::Peers(_) => Vec::new(),
        });
        self.world.lock().record(events);
    }

    fn end(&self, worker: WorkerId, failure: Option<&Error>) {
        let mut world = self.world.lock();
        world.end(worker, failure.map(|error| error as &dyn std::error::Error));
    }
}

fn with_client<R>(host: &Host, f: impl FnOnce(&mut Client) -> R) -> R {
    host.deliver(|state| match &mut state.core {
        Core::Cached { client, .. } => f(client),
        Core::Embedded(_) | Core::Peers(_) => unreachable!("a simulated node with tables has a cache"),
    })
}

pub(crate) fn run(
    config: &Config,
    tables: &[TableSchema],
    tenants: &[Tenant],
    program: &Program<'_>,
    observer: &mut Observer<'_>,
) -> Result<Outcome, Error> {
    simulate(config, tables, tenants, program, observer).map(|(outcome, _)| outcome)
}

/// Runs `program` on every worker of a simulated cluster; says also what happened in it.
///
/// # Errors
/// The first failure of the job.
pub fn run_traced(
    config: &Config,
    tables: &[TableSchema],
    program: &Program<'_>,
    observer: &mut Observer<'_>,
) -> Result<(Outcome, Trace), Error> {
    simulate(config, tables, &[], program, observer)
}

fn simulate(
    config: &Config,
    tables: &[TableSchema],
    tenants: &[Tenant],
    program: &Program<'_>,
    observer: &mut Observer<'_>,
) -> Result<(Outcome, Trace), Error> {
    config.validate()?;
    let mut workers_per_client = vec![config.workers_per_node; config.nodes as usize];
    workers_per_client.extend((!tenants.is_empty()).then_some(tenants.len() as u32));
    // Schedulers have a node of their own, the last.
    let config = &Config { nodes: workers_per_client.len() as u32, ..config.clone() };
    let job = Job {
        tables: config.filters.for_those_without(tables),
        workers_per_client,
        shards: config.shards(),
        budget: config.budget,
    };
    job.validate()?;
    let service = (!tenants.is_empty()).then(|| Arc::new(Service::new(tenants, &job)));
    let core = |client| {
        let mut library = Client::new(client, &job, config.sabotage);
        service.iter().for_each(|service| library.serve(service));
        Core::Cached { client: library, shards: Vec::new() }
    };
    play(config, &job, service.as_ref(), &core, program, observer)
}

/// Runs a program on every peer of a simulated cluster, one on each node.
pub(crate) fn run_peers(
    config: &Config,
    job: &Job,
    broadcast: &Broadcast,
    program: &Program<'_>,
    observer: &mut Observer<'_>,
) -> Result<Outcome, Error> {
    // A peer's receiving end has the place of a shard beside its node.
    let config = &Config { servers: Servers::Beside(config.nodes), ..config.clone() };
    config.validate()?;
    if let Some(crash) = config.faults.crashes.iter().find(|crash| matches!(crash.process, Process::Server(_))) {
        return Err(SimError::NoSuchProcess { process: crash.process }.into());
    }
    let core = |client: ClientId| Core::Peers(vec![Peer::new(WorkerId(client.0), broadcast, config.sabotage)]);
    play(config, job, None, &core, program, observer).map(|(outcome, _)| outcome)
}

/// Runs `program` on the workers of a cluster whose nodes have these cores.
fn play(
    config: &Config,
    job: &Job,
    service: Option<&Arc<Service>>,
    core: &dyn Fn(ClientId) -> Core,
    program: &Program<'_>,
    observer: &mut Observer<'_>,
) -> Result<(Outcome, Trace), Error> {
    let seats = (0..job.workers()).map(|_| Seat::default()).collect();
    let cluster = Arc::new(Cluster { world: Mutex::new(World::new(config, job.clone())), seats });
    service.into_iter().for_each(|service| cluster.world.lock().serve(service));
    let host = |client| {
        let mut core = core(client);
        let port = Port { client, cluster: Arc::clone(&cluster) };
        let vault = config.saving.as_ref().map(|saving| {
            let states = saving.resume.iter().flat_map(|checkpoint| checkpoint.states.clone()).collect();
            saving.resume.iter().for_each(|checkpoint| core.resume(checkpoint.clock));
            Vault::new(saving.every, Keeper::Sim, states)
        });
        Arc::new(Host::new(core, None, Carrier::Sim(port), config.timeout, vault))
    };
    let hosts: Vec<Arc<Host>> = (0..config.nodes).map(ClientId).map(host).collect();
    cluster.world.lock().hosts = hosts.iter().map(Arc::downgrade).collect::<Vec<Weak<Host>>>();
    let (results, splits) = run_workers(&cluster, &hosts, job, program, observer)?;
    let mut histogram = StalenessHistogram::default();
    let mut savings: Vec<FilterSaving> = Vec::new();
    for host in &hosts {
        let (part, more) = host.deliver(|state| (state.core.histogram(), state.core.savings()));
        histogram.merge(&part);
        ledger::merge(&mut savings, more);
    }
    let mut world = cluster.world.lock();
    ledger::merge(&mut savings, world.savings());
    let outcome = Outcome { results, histogram, splits, seconds: world.now.seconds(), savings };
    Ok((outcome, std::mem::take(&mut world.trace)))
}

fn run_workers(
    cluster: &Cluster,
    hosts: &[Arc<Host>],
    job: &Job,
    program: &Program<'_>,
    observer: &mut Observer<'_>,
) -> Result<(Vec<Vec<u8>>, Vec<WorkerSplit>), Error> {
    let (ended, ends) = mpsc::channel();
    let mut unspawned = None;
    let ends = thread::scope(|scope| {
        for (client, host) in hosts.iter().enumerate() {
            for worker in job.workers_of(ClientId(client as u32)).map(WorkerId) {
                let ended = ended.clone();
                let body = move || {
                    cluster.seats[worker.index()].take();
                    let outcome = run_worker(host, worker, job.workers(), program);
                    cluster.record(ClientId(client as u32));
                    cluster.end(worker, outcome.as_ref().err());
                    ended.send((worker, outcome)).expect("the receiver outlives the workers");
                    cluster.pass_on(None);
                };
                let builder = thread::Builder::new().stack_size(STACK_BYTES);
                if let Err(source) = builder.spawn_scoped(scope, body) {
                    // It never runs, so it has ended; the others are told to.
                    let error = SimError::Spawn { worker, source };
                    cluster.world.lock().dismiss(worker, &error);
                    unspawned.get_or_insert(error);
                }
            }
        }
        drop(ended);
        cluster.pass_on(None);
        observe(ends, &hosts[0], observer)
    });
    match unspawned {
        Some(error) => Err(error.into()),
        None => conclude(ends, cluster),
    }
}

/// Shows the observer what workers report, until all have ended.
fn observe(ends: Receiver<End>, host: &Host, observer: &mut Observer<'_>) -> Vec<End> {
    let mut all = Vec::new();
    loop {
        let end = ends.recv_timeout(Duration::from_millis(20));
        host.take_observations().iter().for_each(&mut *observer);
        match end {
            Ok(end) => all.push(end),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return all,
        }
    }
}

/// The results in worker order, or the first failure.
fn conclude(mut ends: Vec<End>, cluster: &Cluster) -> Result<(Vec<Vec<u8>>, Vec<WorkerSplit>), Error> {
    let world = cluster.world.lock();
    if world.is_hopeless() {
        let waits = ends.into_iter().filter_map(|(_, end)| end.err()).collect();
        return Err(SimError::Deadlock { seconds: world.now.seconds(), waits }.into());
    }
    // The first that failed ended the others, which only repeat it.
    if let Some(first) = ends.iter().position(|(_, end)| end.is_err()) {
        ends.truncate(first + 1);
        ends.reverse();
    } else {
        ends.sort_by_key(|(worker, _)| *worker);
    }
    ends.into_iter().map(|(_, end)| end).collect::<Result<Vec<_>, _>>().map(|ends| ends.into_iter().unzip())
}
