//! The simulated network: what a message costs at both ends, when it arrives, and what a broken connection loses.
//!
//! A message occupies the sender's uplink for its length over the bandwidth out, its first byte arrives after the
//! latency, and from then on it occupies the receiver's downlink for its length over the bandwidth in. Both are first
//! come, first served. So one message of `n` bytes between idle nodes takes the latency plus `n` over the bandwidth.

use super::config::{Config, Delays, Network, Servers, Slowdown};
use super::random::Random;
use super::time::Time;
use hemiola_core::array::Frame;
use hemiola_core::codec::{CodecError, Header, Message};
use hemiola_core::coordinator::Process;
use hemiola_core::filter::ledger::Ledger;
use hemiola_core::filter::stream::{Encodings, Incoming, IncomingError, Outgoing};
use hemiola_core::filter::{Direction, FilterError};
use hemiola_core::link::{Arrival, Link, LinkError};
use hemiola_core::message::{ToClient, ToPeer, ToShard};
use hemiola_core::{ClientId, Job, ShardId, codec};
use std::sync::Arc;
use thiserror::Error;

/// All connections between clients and shards. In a job of peers there are no shards: there it is the receiving end of a
/// peer that has a shard's number and place, and blocks go that way only.
pub(super) struct Wire {
    network: Network,
    delays: Delays,
    slowdowns: Vec<Slowdown>,
    /// The node of each shard; client `i` is on node `i`.
    homes: Vec<u32>,
    /// When each node's uplink and downlink have nothing more to do.
    uplinks: Vec<Time>,
    downlinks: Vec<Time>,
    connections: Vec<Connection>,
}

/// What cannot be carried, or cannot have been sent.
#[derive(Debug, Error)]
pub(super) enum CarryError {
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Incoming(#[from] IncomingError),
}

/// A client's connection to a shard.
struct Connection {
    client_end: Link<Load>,
    shard_end: Link<Load>,
    connected: bool,
    /// How often it has been lost; what was sent before is lost too.
    losses: u32,
    /// The filters of what goes to each end, at both ends, where there are such.
    encodings: [Option<(Arc<Encodings>, Arc<Encodings>)>; 2],
    /// The same as they work, begun anew whenever it is connected again.
    filters: [Option<(Outgoing, Incoming)>; 2],
    /// When the last byte to each end arrives.
    last_byte: [Time; 2],
    /// How many messages each end has received since it last sent one.
    unanswered: [u32; 2],
}

/// One of the two ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Client,
    Shard,
}

/// A message on its way.
pub(super) struct Packet {
    pub(super) client: ClientId,
    pub(super) shard: ShardId,
    pub(super) to: End,
    pub(super) load: Load,
    pub(super) length: u64,
    /// The frame, where filters have made one.
    frame: Option<Vec<u8>>,
    losses: u32,
    number: u64,
    pub(super) acknowledged: u64,
}

/// What a packet carries.
#[derive(Clone, Debug)]
pub(super) enum Load {
    Request(Arc<ToShard>),
    Answer(Arc<ToClient>),
    Factors(Arc<ToPeer>),
    /// Nothing but how much has been received.
    Acknowledge,
}

/// A packet and where it is next.
pub(super) enum Posted {
    /// Its first byte arrives at the receiver's downlink.
    Arrives(Time, Packet),
    /// Both ends are on one node, and it is there at once.
    Here(Packet),
}

/// A receiver that has nothing to say acknowledges every so many messages.
const ACKNOWLEDGE_EVERY: u32 = 32;

impl Wire {
    pub(super) fn new(config: &Config, job: &Job, ledger: &Ledger) -> Self {
        let (nodes, homes): (u32, Vec<u32>) = match config.servers {
            Servers::Beside(shards) => (config.nodes, (0..shards).collect()),
            Servers::Apart(shards) => (config.nodes + shards, (config.nodes..config.nodes + shards).collect()),
        };
        let shards = config.shards();
        let connection = |place: u32| {
            let client = Process::Worker(ClientId(place / shards));
            let shard = Process::Server(ShardId(place % shards));
            // One end of each direction counts.
            let ends = |direction, from, to| {
                let sender = Encodings::new(job, direction, from, ledger)?;
                Some((sender, Encodings::new(job, direction, to, &Ledger::default())?))
            };
            let mut encodings = [None, None];
            encodings[End::Shard as usize] = ends(Direction::Updates, client, shard);
            encodings[End::Client as usize] = ends(Direction::Rows, shard, client);
            Connection {
                client_end: Link::new(config.sabotage),
                shard_end: Link::new(config.sabotage),
                connected: true,
                losses: 0,
                filters: begin(&encodings),
                encodings,
                last_byte: [Time(0); 2],
                unanswered: [0; 2],
            }
        };
        Self {
            network: config.network,
            delays: config.faults.delays,
            slowdowns: config.faults.slowdowns.clone(),
            connections: (0..config.nodes * config.shards()).map(connection).collect(),
            uplinks: vec![Time(0); nodes as usize],
            downlinks: vec![Time(0); nodes as usize],
            homes,
        }
    }

    /// Every connection that is not within a node.
    pub(super) fn connections(&self) -> Vec<(ClientId, ShardId)> {
        let clients = (self.connections.len() / self.homes.len()) as u32;
        let shards = self.homes.len() as u32;
        let all = (0..clients).flat_map(|client| (0..shards).map(move |shard| (ClientId(client), ShardId(shard))));
        all.filter(|&(client, shard)| !self.is_local(client, shard)).collect()
    }

    pub(super) fn is_local(&self, client: ClientId, shard: ShardId) -> bool {
        self.homes[shard.index()] == client.0
    }

    fn connection(&mut self, client: ClientId, shard: ShardId) -> &mut Connection {
        &mut self.connections[client.index() * self.homes.len() + shard.index()]
    }

    /// The stream of a connection's messages to one of its ends, as one number.
    pub(super) fn stream(&self, (client, shard): (ClientId, ShardId), to: End) -> usize {
        (client.index() * self.homes.len() + shard.index()) * 2 + to as usize
    }

    /// The connection of a stream, and the end that it leads to.
    pub(super) fn ends(&self, stream: usize) -> ((ClientId, ShardId), End) {
        let (connection, shards) = (stream / 2, self.homes.len());
        let ends = (ClientId((connection / shards) as u32), ShardId((connection % shards) as u32));
        (ends, if stream % 2 == End::Client as usize { End::Client } else { End::Shard })
    }

    /// The number of the last message that was sent to this end.
    pub(super) fn last_sent(&mut self, ends: (ClientId, ShardId), to: End) -> u64 {
        let connection = self.connection(ends.0, ends.1);
        match to {
            End::Shard => connection.client_end.sent(),
            End::Client => connection.shard_end.sent(),
        }
    }

    /// Sends a message. While the connection is lost it is only kept.
    pub(super) fn send(
        &mut self,
        now: Time,
        ends: (ClientId, ShardId),
        load: Load,
        random: &mut Random,
    ) -> Result<Option<Posted>, FilterError> {
        let connection = self.connection(ends.0, ends.1);
        let sender = match load.to() {
            End::Shard => &mut connection.client_end,
            End::Client => &mut connection.shard_end,
        };
        let number = sender.send(Arc::new(load.clone()));
        self.send_again(now, ends, (load.to(), number, load), random)
    }

    /// Sends a message that has a number already.
    pub(super) fn send_again(
        &mut self,
        now: Time,
        ends: (ClientId, ShardId),
        (to, number, load): (End, u64, Load),
        random: &mut Random,
    ) -> Result<Option<Posted>, FilterError> {
        let connected = self.connection(ends.0, ends.1).connected;
        connected.then(|| self.post(now, ends, to, number, load, random)).transpose()
    }

    fn post(
        &mut self,
        now: Time,
        (client, shard): (ClientId, ShardId),
        to: End,
        number: u64,
        load: Load,
        random: &mut Random,
    ) -> Result<Posted, FilterError> {
        let local = self.is_local(client, shard);
        let connection = self.connection(client, shard);
        let acknowledged = match to {
            End::Shard => connection.client_end.received(),
            End::Client => connection.shard_end.received(),
        };
        connection.unanswered[to.other() as usize] = 0;
        let frame = match &mut connection.filters[to as usize] {
            Some((outgoing, _)) if !local => load.frame(outgoing, number, acknowledged)?,
            _ => None,
        };
        let length = frame.as_ref().map_or_else(|| load.length(number, acknowledged), |frame| frame.len() as u64);
        let losses = connection.losses;
        let packet = Packet { client, shard, to, load, length, frame, losses, number, acknowledged };
        if local {
            return Ok(Posted::Here(packet));
        }
        let sender = self.node(&packet, to.other());
        let begin = self.uplinks[sender].max(now);
        let sending = span(length, self.network.bandwidth_out * self.speed(begin));
        self.uplinks[sender] = begin + sending;
        let delayed = random.unit() < self.delays.share;
        let delay = if delayed { random.duration(self.delays.seconds) } else { Time(0) };
        let jitter = Time::from_seconds(self.network.jitter * random.unit());
        let first_byte = begin + Time::from_seconds(self.network.latency) + jitter + delay;
        let last_byte = &mut self.connection(client, shard).last_byte[to as usize];
        let first_byte = first_byte.max(*last_byte);
        *last_byte = first_byte + sending;
        Ok(Posted::Arrives(first_byte, packet))
    }

    /// What is left of the bandwidth at a moment.
    fn speed(&self, now: Time) -> f64 {
        let seconds = now.seconds();
        let active = self.slowdowns.iter().filter(|slowdown| (slowdown.from..slowdown.until).contains(&seconds));
        active.map(|slowdown| 1.0 / slowdown.factor).product()
    }

    fn node(&self, packet: &Packet, end: End) -> usize {
        self.node_of((packet.client, packet.shard), end)
    }

    /// The node of one end of a connection.
    pub(super) fn node_of(&self, (client, shard): (ClientId, ShardId), end: End) -> usize {
        match end {
            End::Client => client.index(),
            End::Shard => self.homes[shard.index()] as usize,
        }
    }

    /// Whether the connection was lost while the packet was under way.
    pub(super) fn is_lost(&mut self, packet: &Packet) -> bool {
        self.connection(packet.client, packet.shard).losses != packet.losses
    }

    /// The packet's first byte is at the receiver: when its last one will be, unless the connection was lost.
    pub(super) fn arrive(&mut self, now: Time, packet: &Packet) -> Option<Time> {
        if self.connection(packet.client, packet.shard).losses != packet.losses {
            return None;
        }
        let receiver = self.node(packet, packet.to);
        let begin = self.downlinks[receiver].max(now);
        let received = begin + span(packet.length, self.network.bandwidth_in * self.speed(begin));
        self.downlinks[receiver] = received;
        Some(received.max(now + span(packet.length, self.network.bandwidth_out * self.speed(now))))
    }

    /// The whole packet is at the receiver: whether the receiver takes it. What filters have made of the message is
    /// undone, so that the receiver gets what came over the wire and nothing else.
    pub(super) fn take(&mut self, packet: &mut Packet) -> Result<bool, CarryError> {
        let connection = self.connection(packet.client, packet.shard);
        if connection.losses != packet.losses {
            return Ok(false);
        }
        if let (Some(frame), Some((_, incoming))) = (packet.frame.take(), &mut connection.filters[packet.to as usize]) {
            packet.load = Load::from_frame(&frame, incoming)?;
        }
        connection.unanswered[packet.to as usize] += u32::from(!matches!(packet.load, Load::Acknowledge));
        match packet.to {
            End::Shard => connection.shard_end.acknowledge(packet.acknowledged)?,
            End::Client => connection.client_end.acknowledge(packet.acknowledged)?,
        }
        let arrival = match (&packet.load, packet.to) {
            (Load::Acknowledge, _) => return Ok(false),
            (_, End::Shard) => connection.shard_end.arrive(packet.number)?,
            (_, End::Client) => connection.client_end.arrive(packet.number)?,
        };
        Ok(arrival == Arrival::Next)
    }

    /// An acknowledgement, where `end` has been silent for too long.
    pub(super) fn acknowledge(
        &mut self,
        now: Time,
        ends: (ClientId, ShardId),
        end: End,
        random: &mut Random,
    ) -> Result<Option<Posted>, FilterError> {
        let connection = self.connection(ends.0, ends.1);
        let due = connection.connected && connection.unanswered[end as usize] >= ACKNOWLEDGE_EVERY;
        due.then(|| self.post(now, ends, end.other(), 0, Load::Acknowledge, random)).transpose()
    }

    /// Breaks a connection; `false` if it is broken already.
    pub(super) fn lose(&mut self, client: ClientId, shard: ShardId) -> bool {
        let connection = self.connection(client, shard);
        connection.losses += u32::from(connection.connected);
        std::mem::replace(&mut connection.connected, false)
    }

    /// Connects again: both ends send what the other has not received, and this is it.
    pub(super) fn reconnect(
        &mut self,
        now: Time,
        ends: (ClientId, ShardId),
    ) -> Result<Vec<(End, u64, Load)>, LinkError> {
        let connection = self.connection(ends.0, ends.1);
        connection.connected = true;
        connection.filters = begin(&connection.encodings);
        connection.last_byte = [now; 2];
        let requests = connection.client_end.reconnect(connection.shard_end.received())?;
        let answers = connection.shard_end.reconnect(connection.client_end.received())?;
        Ok(requests.into_iter().chain(answers).map(|(number, load)| (load.to(), number, (*load).clone())).collect())
    }
}

impl Load {
    /// The end that such messages go to; acknowledgements go to both.
    pub(super) fn to(&self) -> End {
        if matches!(self, Self::Request(_) | Self::Factors(_)) { End::Shard } else { End::Client }
    }

    /// The frame that filters make of it, if they have anything to do with it.
    fn frame(&self, outgoing: &mut Outgoing, number: u64, acknowledged: u64) -> Result<Option<Vec<u8>>, FilterError> {
        let encoded = match self {
            Self::Request(message) => outgoing.encode(codec::lay_out_to_shard(message, number, acknowledged))?,
            Self::Answer(message) => outgoing.encode(codec::lay_out_to_client(message, number, acknowledged))?,
            Self::Factors(message) => outgoing.encode(codec::lay_out_to_peer(message, number, acknowledged))?,
            Self::Acknowledge => return Ok(None),
        };
        Ok(Some([encoded.header()].into_iter().chain(encoded.sections()).collect::<Vec<_>>().concat()))
    }

    fn from_frame(bytes: &[u8], incoming: &mut Incoming) -> Result<Self, IncomingError> {
        let start = bytes.get(..codec::START_BYTES).ok_or(CodecError::Counts)?;
        let (head, body) = bytes.split_at_checked(Header::length(start)?).ok_or(CodecError::Counts)?;
        let header = Header::parse(head, u64::MAX)?;
        let mut frame: Frame = vec![0; body.len().div_ceil(8)];
        for (word, piece) in frame.iter_mut().zip(body.chunks(8)) {
            let mut whole = [0; 8];
            whole[..piece.len()].copy_from_slice(piece);
            *word = u64::from_le_bytes(whole);
        }
        let mut check = header.begin_check();
        check.update(body);
        match incoming.decode(&header, &Arc::new(frame), check)? {
            Message::ToShard(message) => Ok(Self::Request(Arc::new(message))),
            Message::ToClient(message) => Ok(Self::Answer(Arc::new(message))),
            Message::ToPeer(message) => Ok(Self::Factors(Arc::new(message))),
            Message::Control(_) | Message::Part(_) | Message::Acknowledge => Err(CodecError::Counts.into()),
        }
    }

    /// How many bytes it takes without filters.
    fn length(&self, number: u64, acknowledged: u64) -> u64 {
        match self {
            Self::Request(message) => codec::lay_out_to_shard(message, number, acknowledged).wire_bytes(),
            Self::Answer(message) => codec::lay_out_to_client(message, number, acknowledged).wire_bytes(),
            Self::Factors(message) => codec::lay_out_to_peer(message, number, acknowledged).wire_bytes(),
            Self::Acknowledge => Message::Acknowledge.encode(number, acknowledged).wire_bytes(),
        }
    }

    /// How many bytes it takes at most.
    pub(super) fn length_max(&self) -> u64 {
        self.length(u64::MAX, u64::MAX)
    }
}

impl End {
    pub(super) fn other(self) -> Self {
        match self {
            Self::Client => Self::Shard,
            Self::Shard => Self::Client,
        }
    }
}

/// The filters of a new connection, of what goes to each end.
fn begin(encodings: &[Option<(Arc<Encodings>, Arc<Encodings>)>; 2]) -> [Option<(Outgoing, Incoming)>; 2] {
    encodings.each_ref().map(|ends| ends.as_ref().map(|(sender, receiver)| (sender.outgoing(), receiver.incoming())))
}

fn span(bytes: u64, bandwidth: f64) -> Time {
    Time::from_seconds(bytes as f64 / bandwidth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hemiola_core::{Clock, TableId};

    /// A request of about so many bytes: the header adds a little.
    fn request(bytes: u64) -> Load {
        let rows = vec![0; bytes as usize / 8];
        Load::Request(Arc::new(ToShard::Get { table: TableId(0), needed: Clock(0), rows: rows.into() }))
    }

    /// When each of these messages is received, in ten thousandths of a second.
    fn received(wire: &mut Wire, messages: &[(u32, u32, u64)]) -> Vec<u64> {
        let mut random = Random::new(1);
        let mut arriving = Vec::new();
        for &(client, shard, bytes) in messages {
            match wire
                .send(Time(0), (ClientId(client), ShardId(shard)), request(bytes), &mut random)
                .expect("no filters")
            {
                Some(Posted::Arrives(time, packet)) => arriving.push((time, packet)),
                Some(Posted::Here(_)) => panic!("the ends are apart"),
                None => {}
            }
        }
        arriving.sort_by_key(|(time, _)| *time);
        let times = arriving.iter().filter_map(|(time, packet)| wire.arrive(*time, packet));
        times.map(|time| (time.seconds() * 1e4).round() as u64).collect()
    }

    fn wire(change: impl FnOnce(&mut Config)) -> Wire {
        let mut config = Config::new(3);
        config.network = Network { bandwidth_out: 1e6, bandwidth_in: 1e6, latency: 0.01, ..Network::default() };
        config.servers = Servers::Apart(2);
        change(&mut config);
        let job = Job { tables: Vec::new(), workers_per_client: vec![1; 3], shards: 2, budget: None };
        Wire::new(&config, &job, &Ledger::new(&job))
    }

    #[test]
    fn a_transfer_of_n_bytes_takes_n_over_the_bandwidth_and_shares_both_ends() {
        assert_eq!(received(&mut wire(|_| {}), &[(0, 0, 100_000)]), [1100]);
        assert_eq!(received(&mut wire(|_| {}), &[(0, 0, 100_000), (0, 1, 50_000)]), [1100, 1600], "one uplink");
        assert_eq!(received(&mut wire(|_| {}), &[(0, 0, 100_000), (1, 0, 50_000)]), [1100, 1600], "one downlink");
        assert_eq!(received(&mut wire(|_| {}), &[(0, 0, 100_000), (1, 1, 50_000)]), [1100, 600], "nothing shared");
        let slow_in = |config: &mut Config| config.network.bandwidth_in = 5e5;
        assert_eq!(received(&mut wire(slow_in), &[(0, 0, 100_000)]), [2100]);
        let fast_in = |config: &mut Config| config.network.bandwidth_in = 1e9;
        assert_eq!(received(&mut wire(fast_in), &[(0, 0, 100_000)]), [1100]);
    }

    #[test]
    fn messages_of_one_connection_stay_in_order_whatever_the_jitter() {
        let mut wire = wire(|config| {
            config.network.jitter = 10.0;
            config.faults.delays = Delays { share: 0.5, seconds: 20.0 };
        });
        let messages: Vec<_> = (0..50).map(|i| (0, 0, 800 - 8 * i)).collect();
        let times = received(&mut wire, &messages);
        assert!(times.is_sorted(), "{times:?}");
        assert_eq!(times.len(), 50);
    }

    #[test]
    fn a_lost_connection_loses_what_is_under_way_and_sends_it_again() {
        let mut wire = wire(|_| {});
        let (ends, mut random) = ((ClientId(0), ShardId(1)), Random::new(1));
        let (first, second) = (request(800), request(80));
        let whole = [first.length(1, 0), second.length(2, 0)];
        let Ok(Some(Posted::Arrives(time, lost))) = wire.send(Time(0), ends, first, &mut random) else {
            panic!("the ends are apart")
        };
        assert!(wire.lose(ends.0, ends.1) && !wire.lose(ends.0, ends.1));
        assert_eq!(wire.arrive(time, &lost), None);
        assert!(matches!(wire.send(Time(5), ends, second, &mut random), Ok(None)));
        let again = wire.reconnect(Time(9), ends).expect("both ends agree");
        let lengths: Vec<u64> = again
            .into_iter()
            .map(|message| match wire.send_again(Time(9), ends, message, &mut random) {
                Ok(Some(Posted::Arrives(_, mut packet))) => {
                    assert!(wire.take(&mut packet).expect("no filters"));
                    packet.length
                }
                _ => panic!("the ends are apart and connected"),
            })
            .collect();
        assert_eq!(lengths, whole);
    }
}
