//! A server: a process with one shard, to which every client has a connection.

use crate::checkpoint::{Checkpoints, Directory, PART_BYTES, Rests, Task};
use crate::tcp::child::{Child, resumed};
use crate::tcp::connection::WireError;
use crate::tcp::control::ControlSender;
use crate::tcp::handshake::{Reader, Secret, Unintroduced, fingerprint, hear, refuse, welcome};
use crate::tcp::lane::{Lane, Written};
use crate::tcp::pacing::Pacing;
use crate::tcp::{Config, TcpError, listen, say, spawn};
use hemiola_core::checkpoint::Owner;
use hemiola_core::codec::{Header, Message, bytes_to_client, lay_out_to_client};
use hemiola_core::coordinator::{Process, ToCoordinator};
use hemiola_core::filter::stream::Encodings;
use hemiola_core::filter::{Direction, FilterError};
use hemiola_core::link::{Arrival, LinkError};
use hemiola_core::message::ToClient;
use hemiola_core::sabotage::Sabotage;
use hemiola_core::shard::ShardError;
use hemiola_core::task::service::Service;
use hemiola_core::{ClientId, Job, Shard, ShardId};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use thiserror::Error;

/// Lets glibc ask for huge pages: rows are touched all over a large table, and with small pages the address of each
/// must be looked up in memory. Other allocators do not know the variable.
pub const HUGE_PAGES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");

/// A shard that clients reach over tcp.
pub struct ShardServer {
    /// The thread that reads a client's connection applies what it read: with one client nothing is handed over, and
    /// with several the lock is held for one message's work on the tables, while others receive and check theirs.
    shard: Mutex<Shard>,
    /// A checkpoint of the shard may be ready.
    ready: Condvar,
    id: ShardId,
    lanes: Vec<Arc<Lane<ToClient>>>,
    /// What decides when the lanes get something to carry, under a budget.
    pacing: Option<Pacing<ToClient>>,
    /// What undoes the filters of clients.
    incoming: Option<Arc<Encodings>>,
    secret: Secret,
    job: u64,
    message_bytes_max: u64,
    unintroduced: Unintroduced,
}

/// Why a client's connection is no longer read.
#[derive(Debug, Error)]
enum Breach {
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("{client} broke the protocol: {source}")]
    Link { client: ClientId, source: LinkError },
    #[error("{client} broke the protocol: {source}")]
    Shard { client: ClientId, source: ShardError },
    #[error(transparent)]
    Filter(#[from] FilterError),
    #[error("{client} sent what only a shard sends")]
    Direction { client: ClientId },
}

/// Plays the role of a server until the job ends; then ends the process.
pub(crate) fn run(
    child: &Child,
    id: ShardId,
    config: &Config,
    (job, service): (&Job, Option<&Arc<Service>>),
    checkpoints: Option<&Checkpoints>,
) -> Result<(), TcpError> {
    let (listener, address) = listen(config.bind)?;
    let server = Arc::new(ShardServer::new(id, job, child.secret.clone(), config));
    service.into_iter().for_each(|service| server.shard.lock().serve(service));
    if let Some(checkpoint) = resumed()? {
        let mut shard = server.shard.lock();
        checkpoint.restore(|part| shard.restore(part))?;
        shard.resume(checkpoint.clock());
    }
    let (sender, receiver) = child.join(fingerprint(job), Some(address.to_string()), config)?;
    if let Some(checkpoints) = checkpoints {
        let (server, directory, sender) = (Arc::clone(&server), checkpoints.directory(job), sender.clone());
        spawn("checkpoints", move || server.save_forever(&directory, &sender))?;
    }
    server.start(listener, move |reason| sender.tell(ToCoordinator::Failed { reason }))?;
    receiver.listen(|_| {})
}

impl ShardServer {
    /// The shard `id` of a job, without any connection.
    #[must_use]
    pub fn new(id: ShardId, job: &Job, secret: Secret, config: &Config) -> Self {
        let shard = Shard::new(id, job, Sabotage::None);
        let encodings = |direction| Encodings::new(job, direction, Process::Server(id), shard.ledger());
        let outgoing = encodings(Direction::Rows);
        let lane = |_| Arc::new(Lane::new(lay_out_to_client, outgoing.clone(), None, job.budget.is_some()));
        let lanes: Vec<Arc<Lane<ToClient>>> = job.workers_per_client.iter().map(lane).collect();
        Self {
            incoming: encodings(Direction::Updates),
            shard: Mutex::new(shard),
            ready: Condvar::new(),
            id,
            pacing: job.budget.map(|budget| Pacing::new(&budget, &lanes, bytes_to_client)),
            lanes,
            secret,
            job: fingerprint(job),
            message_bytes_max: config.message_bytes_max,
            unintroduced: Unintroduced::new(job.workers_per_client.len()),
        }
    }

    /// Serves whoever connects to `listener`, on threads of its own, until the process ends. A client that breaks the
    /// protocol is told to `breach`.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn start(
        self: &Arc<Self>,
        listener: TcpListener,
        breach: impl Fn(String) + Send + Sync + 'static,
    ) -> Result<(), TcpError> {
        let breach = Arc::new(breach);
        for client in 0..self.lanes.len() {
            let (server, breach) = (Arc::clone(self), Arc::clone(&breach));
            spawn("a client's writer", move || {
                let count = |written: Written| {
                    server.pacing.iter().for_each(|pacing| pacing.saved(written.saved));
                };
                breach(Breach::from(server.lanes[client].write_forever(count)).to_string());
            })?;
        }
        if self.pacing.is_some() {
            let server = Arc::clone(self);
            spawn("the pacer", move || server.pace())?;
        }
        let server = Arc::clone(self);
        spawn("the listener", move || {
            for stream in listener.incoming() {
                match stream {
                    Ok(stream) => server.admit(stream, &breach),
                    Err(error) => {
                        say(&format!("{}: a connection was not taken: {error}", server.name()));
                        // What is missing (descriptors, memory) will not be there a moment later.
                        thread::sleep(Duration::from_millis(100));
                    }
                }
            }
        })
    }

    /// Writes the shard's part of every checkpoint.
    fn save_forever(&self, directory: &Directory, control: &ControlSender) {
        loop {
            let mut shard = self.shard.lock();
            let Some(clock) = shard.checkpoint_ready() else {
                self.ready.wait(&mut shard);
                continue;
            };
            drop(shard);
            let part = |rests: &mut Rests| {
                let mut shard = self.shard.lock();
                while !shard.checkpoint_is_large()
                    && rests.rest(|due| MutexGuard::unlocked(&mut shard, || thread::sleep(due)))
                {}
                shard.checkpoint_part(PART_BYTES)
            };
            let saved = Task::Tables(clock).run(directory, Owner::Shard(self.id), part);
            if matches!(saved, ToCoordinator::Saved { outcome: Err(_), .. }) {
                self.shard.lock().end_checkpoint();
            }
            control.tell(saved);
        }
    }

    /// Serves the pacer, if there is one.
    fn pace(&self) {
        let Some(pacing) = &self.pacing else { return };
        let early = |bytes| {
            let mut shard = self.shard.lock();
            shard.send_early(bytes);
            shard.outbox().for_each(|(to, message)| pacing.send(to.index(), message));
        };
        pacing.run(early, |_| {})
    }

    fn name(&self) -> Process {
        Process::Server(self.id)
    }

    fn admit<F: Fn(String) + Send + Sync + 'static>(self: &Arc<Self>, stream: TcpStream, breach: &Arc<F>) {
        if !self.unintroduced.admit() {
            say(&format!("{}: too many connections at once; one was dropped", self.name()));
            return;
        }
        let (server, breach) = (Arc::clone(self), Arc::clone(breach));
        let serve = move || {
            let introduced = server.introduced(stream);
            server.unintroduced.end();
            match introduced {
                Ok((client, reader)) => match server.serve(client, reader) {
                    // The client connects again if it lives; if it does not, the launcher knows.
                    Breach::Wire(WireError::Closed | WireError::Io(_)) => {}
                    error => breach(error.to_string()),
                },
                Err(error) => say(&format!("{}: refused a connection: {error}", server.name())),
            }
        };
        if let Err(error) = spawn("a connection", serve) {
            say(&format!("{}: {error}", self.name()));
        }
    }

    fn introduced(&self, stream: TcpStream) -> Result<(ClientId, Reader), TcpError> {
        let heard = hear(&stream, &self.secret, self.job);
        let (hello, reader) = heard.inspect_err(|error| {
            if matches!(error, TcpError::Mismatch { .. }) {
                refuse(&stream, error);
            }
        })?;
        let Process::Worker(client) = hello.process else { return Err(TcpError::Introduction) };
        let lane = self.lanes.get(client.index()).ok_or(TcpError::Introduction)?;
        let mut reader = welcome(&stream, reader, lane.received(), self.message_bytes_max)?;
        reader.set_filters(self.incoming.as_ref().map(Encodings::incoming));
        match &self.pacing {
            Some(pacing) => pacing.attach(client.index(), stream, hello.received)?,
            None => drop(lane.attach(stream, hello.received)?),
        }
        Ok((client, reader))
    }

    fn serve(&self, client: ClientId, mut reader: Reader) -> Breach {
        loop {
            match reader.read() {
                Ok((header, message)) => {
                    let taken = self.take(client, &header, &message);
                    drop(message);
                    if let Err(breach) = taken {
                        return breach;
                    }
                }
                Err(error) => return error.into(),
            }
        }
    }

    fn take(&self, client: ClientId, header: &Header, message: &Message) -> Result<(), Breach> {
        let lane = &self.lanes[client.index()];
        let mut others = false;
        {
            // The number is taken under the shard's lock, so that messages of two connections of one client are
            // applied in the order of their numbers.
            let mut shard = self.shard.lock();
            let arrival = lane.arrive(header, message).map_err(|source| Breach::Link { client, source })?;
            if arrival == Arrival::Next {
                let Message::ToShard(message) = message else { return Err(Breach::Direction { client }) };
                shard.receive(client, message).map_err(|source| Breach::Shard { client, source })?;
                shard.events();
                for (to, answer) in shard.outbox() {
                    others |= to != client;
                    match &self.pacing {
                        Some(pacing) => pacing.send(to.index(), answer),
                        None => drop(self.lanes[to.index()].push(answer)),
                    }
                }
                if shard.checkpoint_ready().is_some() {
                    self.ready.notify_one();
                }
            }
        }
        if let Some(pacing) = &self.pacing {
            pacing.arrived(client.index(), header, message);
            pacing.flush_little();
            return Ok(());
        }
        if others {
            // Much is written by the others' writers, which need not wait for one another.
            self.lanes.iter().filter(|other| !Arc::ptr_eq(other, lane)).for_each(|other| _ = other.flush_little());
        }
        lane.flush();
        Ok(())
    }
}

/// Where a shard server for a benchmark or a test listens: a free port of this machine.
///
/// # Errors
/// If there is none.
pub fn listen_locally() -> Result<(TcpListener, SocketAddr), TcpError> {
    listen(Config::default().bind)
}
