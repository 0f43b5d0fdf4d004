//! The pacers of a simulated cluster, one for each node: its client and its shard share one budget.

use super::config::{Config, Servers};
use super::queue::Coming;
use super::time::Time;
use super::wire::{End, Load, Packet, Posted};
use super::world::{Step, World};
use hemiola_core::pacer::Turn;
use hemiola_core::{Budget, ClientId, Pacer, Shard, ShardId};
use std::time::Duration;

pub(super) struct Pacing {
    nodes: Vec<Node>,
}

struct Node {
    pacer: Pacer<Load>,
    /// When it will have its next turn.
    due: Option<Time>,
    /// Which of the two on a node is asked first for something to send early.
    shard_first: bool,
    shard: Option<ShardId>,
    client: Option<ClientId>,
}

impl Pacing {
    pub(super) fn new(config: &Config, budget: &Budget) -> Self {
        let (first_server, nodes) = match config.servers {
            Servers::Beside(_) => (0, config.nodes),
            Servers::Apart(servers) => (config.nodes, config.nodes + servers),
        };
        let node = |node: u32| Node {
            pacer: Pacer::new(budget),
            due: None,
            shard_first: false,
            shard: node.checked_sub(first_server).filter(|shard| *shard < config.shards()).map(ShardId),
            client: (node < config.nodes).then_some(ClientId(node)),
        };
        Self { nodes: (0..nodes).map(node).collect() }
    }
}

impl World {
    fn node(&mut self, node: usize) -> &mut Node {
        &mut self.pacing.as_mut().expect("called with a budget only").nodes[node]
    }

    fn pace_at(&mut self, node: usize, time: Time) {
        let state = self.node(node);
        if state.due.is_none_or(|due| time < due) {
            state.due = Some(time);
            self.queue.push(time, Coming::Pace(node));
        }
    }

    /// Leaves a message to the sender's pacer.
    pub(super) fn send_paced(&mut self, ends: (ClientId, ShardId), load: Load) {
        let to = load.to();
        let (node, stream, length) =
            (self.wire.node_of(ends, to.other()), self.wire.stream(ends, to), load.length_max());
        self.node(node).pacer.push(stream, length, load);
        self.pace_at(node, self.now);
    }

    /// Sends again what a lost connection may have swallowed.
    pub(super) fn resend(&mut self, ends: (ClientId, ShardId), messages: Vec<(End, u64, Load)>) {
        if self.pacing.is_none() {
            for message in messages {
                let posted = self.wire.send_again(self.now, ends, message, &mut self.random);
                self.post_or_fail(ends, posted);
            }
            return;
        }
        let (answers, requests): (Vec<_>, Vec<_>) = messages.into_iter().partition(|(to, ..)| *to == End::Client);
        for (to, messages) in [(End::Client, answers), (End::Shard, requests)] {
            let (node, stream) = (self.wire.node_of(ends, to.other()), self.wire.stream(ends, to));
            let messages = messages.into_iter().map(|(_, number, load)| (number, load.length_max(), load));
            self.node(node).pacer.push_again(stream, messages);
            self.pace_at(node, self.now);
        }
    }

    /// Tells the receiver's pacer what a packet acknowledges, and that it is to be acknowledged.
    pub(super) fn note_arrival(&mut self, packet: &Packet) {
        let ends = (packet.client, packet.shard);
        if self.pacing.is_none() || self.wire.is_local(packet.client, packet.shard) || self.wire.is_lost(packet) {
            return;
        }
        let (node, stream) = (self.wire.node_of(ends, packet.to), self.wire.stream(ends, packet.to.other()));
        let now = self.moment();
        let pacer = &mut self.node(node).pacer;
        pacer.acknowledged(stream, packet.acknowledged);
        if !matches!(packet.load, Load::Acknowledge) {
            pacer.received(stream, packet.length, now);
        }
        self.pace_at(node, self.now);
    }

    /// There may be something to send early on a client's node.
    pub(super) fn stir(&mut self, client: ClientId) {
        self.stir_node(client.index());
    }

    pub(super) fn stir_node(&mut self, node: usize) {
        if self.pacing.is_some() {
            self.node(node).pacer.stir();
            self.pace_at(node, self.now);
        }
    }

    fn moment(&self) -> Duration {
        Duration::from_nanos(self.now.0)
    }

    /// A node's pacer has its turn, unless it had it since this was planned.
    pub(super) fn pace(&mut self, node: usize) -> Option<Step> {
        let now = self.now;
        self.node(node).due.take_if(|due| *due == now)?;
        loop {
            let now = self.moment();
            match self.node(node).pacer.turn(now) {
                Turn::Send { to: stream, number, message } => self.send_now(node, stream, number, message),
                Turn::Acknowledge { to: stream } => {
                    let (ends, to) = self.wire.ends(stream);
                    let message = (to, 0, Load::Acknowledge);
                    let posted = self.wire.send_again(self.now, ends, message, &mut self.random);
                    self.post_or_fail(ends, posted);
                }
                Turn::Ask { bytes } => {
                    let state = self.node(node);
                    state.shard_first = !state.shard_first;
                    let (shard_first, client) = (state.shard_first, state.client);
                    let mut sent = self.early_rows(node, bytes, Shard::send_answered);
                    if shard_first || client.is_none() {
                        let left = self.left_of(node, bytes);
                        sent += self.early_rows(node, left, Shard::send_changed);
                    }
                    // What one of the two leaves goes to the other.
                    let left = self.left_of(node, bytes);
                    match client {
                        Some(client) if left > 0 => {
                            return Some(Step::Ask { client, bytes: left, turn: (bytes, sent) });
                        }
                        None if sent == 0 => self.node(node).pacer.rest(),
                        _ => {}
                    }
                }
                Turn::Wait { until } => {
                    if let Some(until) = until {
                        self.pace_at(node, Time(until.as_nanos() as u64));
                    }
                    return None;
                }
            }
        }
    }

    fn send_now(&mut self, node: usize, stream: usize, number: Option<u64>, load: Load) {
        let (ends, to) = self.wire.ends(stream);
        let (now, length) = (self.moment(), load.length_max());
        let (number, posted) = match number {
            Some(number) => (number, self.wire.send_again(self.now, ends, (to, number, load), &mut self.random)),
            None => {
                let posted = self.wire.send(self.now, ends, load, &mut self.random);
                (self.wire.last_sent(ends, to), posted)
            }
        };
        let pacer = &mut self.node(node).pacer;
        pacer.sent(stream, number, length, now);
        if let Ok(Some(Posted::Arrives(_, packet))) = &posted {
            pacer.saved(length.saturating_sub(packet.length));
        }
        self.post_or_fail(ends, posted);
    }

    /// Lets the node's shard send changed rows of about so many bytes early; says of how many.
    fn early_rows(&mut self, node: usize, bytes: usize, send: fn(&mut Shard, usize) -> usize) -> usize {
        let Some(shard) = self.node(node).shard.filter(|_| bytes > 0) else { return 0 };
        let server = &mut self.servers.shards[shard.index()];
        let sent = send(server, bytes);
        let answers: Vec<_> = server.outbox().collect();
        for (client, message) in answers {
            self.send(client, shard, Load::Answer(message));
        }
        sent
    }

    /// What is left of a turn of so many bytes. What stays on the node has not taken any, and a twentieth is not worth messages
    /// of its own.
    fn left_of(&mut self, node: usize, bytes: usize) -> usize {
        let left = bytes.saturating_sub(self.node(node).pacer.queued_bytes() as usize);
        if left > bytes / 20 { left } else { 0 }
    }

    /// A client was asked for something to send early, in a turn of so many bytes in which so many have been sent.
    pub(super) fn asked(&mut self, client: ClientId, (bytes, mut sent): (usize, usize)) {
        let node = client.index();
        let left = self.left_of(node, bytes);
        sent += self.early_rows(node, left, Shard::send_changed);
        if sent == 0 {
            self.node(node).pacer.rest();
        }
        self.pace_at(node, self.now);
    }
}
