//! A worker process: its client, one connection to every shard, and one to the launcher.

use crate::checkpoint::{Checkpoints, Keeper, Saver, Vault};
use crate::deployment::{Program, WorkerSplit};
use crate::error::Error;
use crate::host::{Carrier, Core, Host};
use crate::tcp::child::{Child, resumed};
use crate::tcp::connection::WireError;
use crate::tcp::control::ControlSender;
use crate::tcp::handshake::{HANDSHAKE_TIMEOUT, Hello, Reader, fingerprint, introduce};
use crate::tcp::lane::Lane;
use crate::tcp::pacing::Pacing;
use crate::tcp::{Config, TcpError, say, spawn};
use crate::threads;
use hemiola_core::checkpoint::Owner;
use hemiola_core::codec::{Message, bytes_to_shard, lay_out_to_shard};
use hemiola_core::coordinator::{FromCoordinator, Process, ToCoordinator};
use hemiola_core::filter::Direction;
use hemiola_core::filter::ledger::FilterSaving;
use hemiola_core::filter::stream::Encodings;
use hemiola_core::link::Arrival;
use hemiola_core::message::{ToPeer, ToShard};
use hemiola_core::sabotage::Sabotage;
use hemiola_core::task::service::Service;
use hemiola_core::{Client, ClientId, Clock, Job, ShardId, StalenessHistogram, WorkerId};
use serde::{Deserialize, Serialize};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// How messages leave a worker process.
pub(crate) struct Port {
    pub(super) lanes: Vec<Arc<Lane<ToShard>>>,
    /// Those to other peers, by their numbers, in a job that has such.
    pub(super) peers: Vec<Option<Arc<Lane<ToPeer>>>>,
    /// What decides when the lanes get something to carry, under a budget.
    pub(super) pacing: Option<Arc<Pacing<ToShard>>>,
    pub(super) control: ControlSender,
}

/// What a worker process hands back.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProcessOutcome {
    pub(crate) results: Vec<Vec<u8>>,
    pub(crate) splits: Vec<WorkerSplit>,
    pub(crate) histogram: StalenessHistogram,
    pub(crate) savings: Vec<FilterSaving>,
}

impl Port {
    /// Called with the host's lock held, so it only puts the message where [`Port::write`] finds it.
    pub(crate) fn send(&self, shard: ShardId, message: Arc<ToShard>) {
        match &self.pacing {
            Some(pacing) => pacing.send(shard.index(), message),
            None => drop(self.lanes[shard.index()].push(message)),
        }
    }

    /// Sees to what was sent: writes it if that takes no time, or else lets the lanes' writers do it. Returns how many bytes
    /// were written.
    pub(crate) fn write(&self) -> u64 {
        match &self.pacing {
            Some(pacing) => pacing.flush_little().bytes,
            None => self.lanes.iter().map(|lane| lane.flush_little().bytes).sum(),
        }
    }

    /// Lets another peer's lane's writer find a message.
    pub(crate) fn send_to_peer(&self, to: WorkerId, message: Arc<ToPeer>) {
        let lane = self.peers[to.index()].as_ref().expect("a peer has a lane to each of its receivers");
        lane.push(message);
        lane.wake();
    }

    /// Holds up a worker that is faster than the network, until there is room again or the job has `ended`.
    pub(crate) fn wait_for_room(&self, ended: impl Fn() -> bool) {
        if let Some(pacing) = &self.pacing {
            while !pacing.has_room() && !ended() {}
        }
        for lane in &self.lanes {
            while !lane.has_room() && !ended() {}
        }
        for lane in self.peers.iter().flatten() {
            while !lane.has_room() && !ended() {}
        }
    }

    pub(crate) fn tell_coordinator(&self, message: ToCoordinator) {
        self.control.tell(message);
    }

    pub(crate) fn tell_clock(&self, worker: WorkerId, clock: Clock) {
        self.control.tell_clock(worker, clock);
    }
}

/// Plays the role of worker process `id` until the job ends; then ends the process.
pub(crate) fn run(
    child: Child,
    id: ClientId,
    config: &Config,
    (job, service): (&Job, Option<&Arc<Service>>),
    checkpoints: Option<&Checkpoints>,
    program: &Program<'_>,
) -> Result<(), TcpError> {
    let resumed = resumed()?;
    let mut client = Client::new(id, job, Sabotage::None);
    service.into_iter().for_each(|service| client.serve(service));
    resumed.iter().for_each(|checkpoint| client.resume(checkpoint.clock()));
    let states = threads::states(resumed.as_ref(), job.workers_of(id))?;
    let (control, mut receiver) = child.join(fingerprint(job), None, config)?;
    // The launcher ends whoever does not start in time, and with it this wait.
    let servers = match receiver.receive()? {
        FromCoordinator::Start { addresses } => addresses,
        _ => std::process::exit(1),
    };
    let ledger = client.ledger().clone();
    let encodings = |direction| Encodings::new(job, direction, Process::Worker(id), &ledger);
    let (outgoing, incoming) = (encodings(Direction::Updates), encodings(Direction::Rows));
    let paced = job.budget.is_some();
    let new_lane = |_| Arc::new(Lane::new(lay_out_to_shard, outgoing.clone(), config.sever_after_frames, paced));
    let lanes: Vec<Arc<Lane<ToShard>>> = servers.iter().map(new_lane).collect();
    let pacing = job.budget.map(|budget| Arc::new(Pacing::new(&budget, &lanes, bytes_to_shard)));
    if let Some(pacing) = pacing.clone() {
        control.keep_to(move |bytes| pacing.wait_for_room(bytes));
    }
    let port = Port { lanes: lanes.clone(), peers: Vec::new(), pacing: pacing.clone(), control: control.clone() };
    let core = Core::Cached { client, shards: Vec::new() };
    let (vault, saving) = match checkpoints {
        Some(checkpoints) => {
            let directory = checkpoints.directory(job);
            let (saver, tasks) = Saver::new(directory.clone());
            let control = control.clone();
            let save = move || {
                for task in tasks {
                    // A worker process has no tables to save, so the owner and the parts are not asked for.
                    control.tell(task.run(&directory, Owner::Worker(WorkerId(0)), |_| None));
                }
            };
            let saving = thread::Builder::new().spawn(save);
            let saving = saving.map_err(|source| TcpError::Thread { what: "checkpoints", source })?;
            (Some(Vault::new(checkpoints.every, Keeper::Files(saver), states)), Some(saving))
        }
        None => (None, None),
    };
    let host = Arc::new(Host::new(core, None, Carrier::Tcp(port), config.timeout, vault));
    let child = Arc::new(child);
    for (shard, (lane, address)) in lanes.iter().zip(servers).enumerate() {
        let wire = Wire {
            child: Arc::clone(&child),
            shard: ShardId(shard as u32),
            address,
            lane: Arc::clone(lane),
            incoming: incoming.clone(),
            pacing: pacing.clone(),
            host: Arc::clone(&host),
            config: config.clone(),
            job: fingerprint(job),
            control: control.clone(),
        };
        wire.start()?;
    }
    if let Some(pacing) = pacing.clone() {
        let host = Arc::clone(&host);
        spawn("the pacer", move || {
            let early = |bytes| {
                host.send_early(bytes);
            };
            pacing.run(early, |written| host.count_bytes(written.bytes, 0))
        })?;
    }
    let listener = Arc::clone(&host);
    spawn("the launcher's messages", move || {
        receiver.listen(|message| {
            let seconds = listener.seconds();
            listener.deliver(|state| state.hear(message, seconds));
        })
    })?;
    let outcome = threads::run_workers(&host, job.workers_of(id), job.workers(), program, &mut |_| {});
    host.vault.iter().for_each(Vault::close);
    if saving.is_some_and(|saving| saving.join().is_err()) {
        say("the thread that saves checkpoints panicked");
    }
    let sent = |deadline| {
        let paced = pacing.is_none_or(|pacing| pacing.drain(deadline));
        paced && lanes.iter().all(|lane| lane.drain(deadline))
    };
    finish(&control, &host, config, outcome, sent, || ledger.savings())
}

/// Tells the launcher how the workers of this process ended, once all that they said has been `sent`; then waits for the
/// end of the job.
pub(super) fn finish(
    control: &ControlSender,
    host: &Host,
    config: &Config,
    outcome: Result<(Vec<Vec<u8>>, Vec<WorkerSplit>), Error>,
    sent: impl FnOnce(Instant) -> bool,
    savings: impl FnOnce() -> Vec<FilterSaving>,
) -> ! {
    let message = match outcome {
        Ok((results, splits)) if sent(Instant::now() + config.timeout) => {
            let histogram = host.deliver(|state| state.core.histogram());
            let outcome = ProcessOutcome { results, splits, histogram, savings: savings() };
            let result = postcard::to_allocvec(&outcome).expect("plain data can be encoded");
            ToCoordinator::Finished { result }
        }
        Ok(_) => ToCoordinator::Failed { reason: "its last updates could not be sent".to_owned() },
        Err(error) => ToCoordinator::Failed { reason: error.to_string() },
    };
    control.tell(message);
    // The thread that hears the launcher ends the process when the job is over for everyone.
    loop {
        thread::park();
    }
}

/// What carries one shard's messages: a thread that connects and reads, and one that writes.
struct Wire {
    child: Arc<Child>,
    shard: ShardId,
    address: String,
    lane: Arc<Lane<ToShard>>,
    incoming: Option<Arc<Encodings>>,
    pacing: Option<Arc<Pacing<ToShard>>>,
    host: Arc<Host>,
    config: Config,
    job: u64,
    control: ControlSender,
}

impl Wire {
    fn start(self) -> Result<(), TcpError> {
        let (lane, host, pacing) = (Arc::clone(&self.lane), Arc::clone(&self.host), self.pacing.clone());
        let control = self.control.clone();
        spawn("a server's writer", move || {
            let error = lane.write_forever(|written| {
                host.count_bytes(written.bytes, 0);
                pacing.iter().for_each(|pacing| pacing.saved(written.saved));
            });
            fail(&control, &host, &error.to_string());
        })?;
        spawn("a server's reader", move || {
            let error = self.read_forever();
            let reason = format!("the stream from {} broke: {error}", Process::Server(self.shard));
            fail(&self.control, &self.host, &reason);
        })
    }

    /// Connects, and connects again whenever the connection breaks, until that takes too long.
    fn read_forever(&self) -> TcpError {
        loop {
            let mut reader = match self.connect() {
                Ok(reader) => reader,
                Err(error) => return error,
            };
            loop {
                match self.read_one(&mut reader) {
                    Ok(()) => {}
                    Err(TcpError::Wire(WireError::Closed | WireError::Io(_))) => break,
                    Err(error) => return error,
                }
            }
        }
    }

    fn connect(&self) -> Result<Reader, TcpError> {
        let hello = || self.child.hello(self.job, None, self.lane.received());
        let (stream, received, mut reader) = call((Process::Server(self.shard), &self.address), &self.config, hello)?;
        reader.set_filters(self.incoming.as_ref().map(Encodings::incoming));
        match &self.pacing {
            Some(pacing) => pacing.attach(self.shard.index(), stream, received)?,
            None => drop(self.lane.attach(stream, received)?),
        }
        Ok(reader)
    }

    fn read_one(&self, reader: &mut Reader) -> Result<(), TcpError> {
        let (header, message) = reader.read()?;
        self.host.count_bytes(0, header.frame_bytes());
        if self.lane.arrive(&header, &message)? == Arrival::Next {
            let Message::ToClient(message) = &message else { return Err(TcpError::Introduction) };
            let taken = self.host.deliver(|state| match &mut state.core {
                Core::Cached { client, .. } => client.receive(self.shard, message),
                Core::Embedded(_) | Core::Peers(_) => unreachable!("over tcp the tables are on the servers"),
            });
            taken.map_err(|source| TcpError::Misuse { process: Process::Server(self.shard), source })?;
        }
        match &self.pacing {
            Some(pacing) => pacing.arrived(self.shard.index(), &header, &message),
            None if self.lane.owes_acknowledgement() => self.lane.wake(),
            None => {}
        }
        Ok(())
    }
}

/// Calls a process that listens, again and again until that takes too long. Gives the connection, how many messages the
/// other end has received, and what reads its answers.
pub(super) fn call(
    (process, address): (Process, &str),
    config: &Config,
    hello: impl Fn() -> Hello,
) -> Result<(TcpStream, u64, Reader), TcpError> {
    let try_once = || {
        let unreadable = |_| std::io::Error::from(std::io::ErrorKind::InvalidInput);
        let address: SocketAddr = address.parse().map_err(unreadable)?;
        let stream = TcpStream::connect_timeout(&address, HANDSHAKE_TIMEOUT)?;
        let (received, reader) = introduce(&stream, &hello(), config.message_bytes_max)?;
        Ok((stream, received, reader))
    };
    let deadline = Instant::now() + config.reconnect_timeout;
    loop {
        let error = match try_once() {
            Err(error @ TcpError::Wire(WireError::Closed | WireError::Io(_))) => error,
            connected => return connected,
        };
        if Instant::now() >= deadline {
            return Err(TcpError::Unreachable {
                peer: process.to_string(),
                address: address.to_owned(),
                seconds: config.reconnect_timeout.as_secs(),
                source: Box::new(error),
            });
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Ends the job because this process cannot go on.
pub(super) fn fail(control: &ControlSender, host: &Host, reason: &str) {
    control.tell(ToCoordinator::Failed { reason: reason.to_owned() });
    host.stop(reason);
}
