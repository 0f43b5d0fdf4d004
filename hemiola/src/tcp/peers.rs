//! A peer's process: one connection to every peer that it sends to or hears from, and one to the launcher.
//!
//! Of two peers the one with the higher number calls the other, so that there is one connection for both directions.

use crate::deployment::Program;
use crate::host::{Carrier, Core, Host};
use crate::tcp::child::Child;
use crate::tcp::connection::WireError;
use crate::tcp::control::ControlSender;
use crate::tcp::handshake::{Reader, Unintroduced, hear, refuse, welcome};
use crate::tcp::lane::Lane;
use crate::tcp::process::{Port, call, fail, finish};
use crate::tcp::{Config, TcpError, listen, say, spawn};
use crate::threads;
use hemiola_core::codec::{Message, lay_out_to_peer};
use hemiola_core::coordinator::{FromCoordinator, Process};
use hemiola_core::filter::Direction;
use hemiola_core::filter::ledger::Ledger;
use hemiola_core::filter::stream::Encodings;
use hemiola_core::link::Arrival;
use hemiola_core::message::ToPeer;
use hemiola_core::peer::{Broadcast, Peer};
use hemiola_core::sabotage::Sabotage;
use hemiola_core::{ClientId, Job, WorkerId};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// What the threads of a peer's process share.
struct Exchange {
    child: Child,
    me: WorkerId,
    /// The lanes to other peers, by their numbers.
    lanes: Vec<Option<Arc<Lane<ToPeer>>>>,
    /// What undoes the filters of others.
    incoming: Option<Arc<Encodings>>,
    host: Arc<Host>,
    config: Config,
    job: u64,
    control: ControlSender,
    unintroduced: Unintroduced,
}

/// Plays the role of a peer until the job ends; then ends the process.
pub(crate) fn run(
    child: Child,
    config: &Config,
    (job, fingerprint): (&Job, u64),
    broadcast: &Broadcast,
    program: &Program<'_>,
) -> Result<(), TcpError> {
    let Process::Worker(ClientId(number)) = child.process else { return Err(TcpError::Introduction) };
    let me = WorkerId(number);
    let (listener, address) = listen(config.bind)?;
    let (control, mut receiver) = child.join(fingerprint, Some(address.to_string()), config)?;
    // The launcher ends whoever does not start in time, and with it this wait.
    let addresses = match receiver.receive()? {
        FromCoordinator::Start { addresses } => addresses,
        _ => std::process::exit(1),
    };
    // What is saved is counted where it is sent.
    let ledger = Ledger::new(job);
    let encodings = |ledger| Encodings::new(job, Direction::Updates, child.process, ledger);
    let (outgoing, incoming) = (encodings(&ledger), encodings(&Ledger::default()));
    let lane = |other: u32| {
        let severed = config.sever_after_frames.filter(|_| other < number);
        let connected = other != number && broadcast.connects(me, WorkerId(other));
        connected.then(|| Arc::new(Lane::new(lay_out_to_peer, outgoing.clone(), severed, false)))
    };
    let lanes: Vec<_> = (0..job.workers()).map(lane).collect();
    let port = Port { lanes: Vec::new(), peers: lanes.clone(), pacing: None, control: control.clone() };
    let core = Core::Peers(vec![Peer::new(me, broadcast, Sabotage::None)]);
    let host = Arc::new(Host::new(core, None, Carrier::Tcp(port), config.timeout, None));
    let exchange = Arc::new(Exchange {
        child,
        me,
        lanes: lanes.clone(),
        incoming,
        host: Arc::clone(&host),
        config: config.clone(),
        job: fingerprint,
        control: control.clone(),
        unintroduced: Unintroduced::new(lanes.len()),
    });
    exchange.start(listener, addresses)?;
    let listener = Arc::clone(&host);
    spawn("the launcher's messages", move || {
        receiver.listen(|message| {
            let seconds = listener.seconds();
            listener.deliver(|state| state.hear(message, seconds));
        })
    })?;
    let outcome = threads::run_workers(&host, number..number + 1, job.workers(), program, &mut |_| {});
    let sent = |deadline| lanes.iter().flatten().all(|lane| lane.drain(deadline));
    finish(&control, &host, config, outcome, sent, || ledger.savings())
}

impl Exchange {
    /// Starts the threads that write and read.
    fn start(self: &Arc<Self>, listener: TcpListener, addresses: Vec<String>) -> Result<(), TcpError> {
        let exchange = Arc::clone(self);
        spawn("the listener", move || exchange.admit_forever(&listener))?;
        for (other, (lane, address)) in self.lanes.iter().zip(addresses).enumerate() {
            let Some(lane) = lane else { continue };
            let (exchange, lane, other) = (Arc::clone(self), Arc::clone(lane), WorkerId(other as u32));
            spawn("a peer's writer", move || {
                let error = lane.write_forever(|written| exchange.host.count_bytes(written.bytes, 0));
                exchange.fail(&error.to_string());
            })?;
            if other < self.me {
                let exchange = Arc::clone(self);
                spawn("a peer's reader", move || exchange.call_forever(other, &address))?;
            }
        }
        Ok(())
    }

    /// Calls another peer, and calls again whenever the connection breaks, until that takes too long.
    fn call_forever(&self, other: WorkerId, address: &str) {
        let Some(lane) = &self.lanes[other.index()] else { return };
        let process = Process::Worker(ClientId(other.0));
        let hello = || self.child.hello(self.job, None, lane.received());
        let once = || {
            let (stream, received, reader) = call((process, address), &self.config, hello)?;
            lane.attach(stream, received)?;
            self.read(other, lane, reader)
        };
        let error = loop {
            if let Err(error) = once() {
                break error;
            }
        };
        self.fail(&format!("the stream from {process} broke: {error}"));
    }

    fn admit_forever(self: &Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming() {
            match stream {
                Ok(stream) => self.admit(stream),
                Err(error) => {
                    self.say(&format!("a connection was not taken: {error}"));
                    // What is missing (descriptors, memory) will not be there a moment later.
                    thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }

    fn admit(self: &Arc<Self>, stream: TcpStream) {
        if !self.unintroduced.admit() {
            self.say("too many connections at once; one was dropped");
            return;
        }
        let exchange = Arc::clone(self);
        let serve = move || {
            let introduced = exchange.introduced(stream);
            exchange.unintroduced.end();
            match introduced {
                // When it ends the other peer calls again if it lives; if it does not, the launcher knows.
                Ok((other, lane, reader)) => {
                    if let Err(error) = exchange.read(other, &lane, reader) {
                        let process = Process::Worker(ClientId(other.0));
                        exchange.fail(&format!("the stream from {process} broke: {error}"));
                    }
                }
                Err(error) => exchange.say(&format!("refused a connection: {error}")),
            }
        };
        if let Err(error) = spawn("a connection", serve) {
            self.say(&error.to_string());
        }
    }

    fn introduced(&self, stream: TcpStream) -> Result<(WorkerId, Arc<Lane<ToPeer>>, Reader), TcpError> {
        let heard = hear(&stream, &self.child.secret, self.job);
        let (hello, reader) = heard.inspect_err(|error| {
            if matches!(error, TcpError::Mismatch { .. }) {
                refuse(&stream, error);
            }
        })?;
        let Process::Worker(ClientId(other)) = hello.process else { return Err(TcpError::Introduction) };
        let lane = self.lanes.get(other as usize).cloned().flatten().filter(|_| other > self.me.0);
        let lane = lane.ok_or(TcpError::Introduction)?;
        let reader = welcome(&stream, reader, lane.received(), self.config.message_bytes_max)?;
        lane.attach(stream, hello.received)?;
        Ok((WorkerId(other), lane, reader))
    }

    /// Takes what another peer sends until the connection ends.
    fn read(&self, other: WorkerId, lane: &Lane<ToPeer>, mut reader: Reader) -> Result<(), TcpError> {
        reader.set_filters(self.incoming.as_ref().map(Encodings::incoming));
        loop {
            let (header, message) = match reader.read() {
                Ok(read) => read,
                Err(WireError::Closed | WireError::Io(_)) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            self.host.count_bytes(0, header.frame_bytes());
            // The number is taken under the peer's lock, so that messages of two connections of one peer are taken in
            // the order of their numbers.
            let taken = self.host.deliver(|state| {
                if lane.arrive(&header, &message)? == Arrival::Next {
                    let Message::ToPeer(message) = message else { return Err(TcpError::Introduction) };
                    if message.from != other {
                        return Err(TcpError::Introduction);
                    }
                    let process = Process::Worker(ClientId(other.0));
                    let taken = state.core.peer(self.me).receive(Arc::new(message));
                    taken.map_err(|source| TcpError::Peer { process, source })?;
                }
                Ok(())
            });
            taken?;
            if lane.owes_acknowledgement() {
                lane.wake();
            }
        }
    }

    fn say(&self, line: &str) {
        say(&format!("{}: {line}", self.child.process));
    }

    /// Ends the job because this process cannot go on.
    fn fail(&self, reason: &str) {
        fail(&self.control, &self.host, reason);
    }
}
