//! A peer of sufficient factor broadcasting (Xie et al., section 3): a worker with a replica of a matrix, which sends the
//! factor pairs of every iteration to its receivers and subtracts those that others send to it.
//!
//! An operation or a message goes in, messages come out of an outbox. The replica itself is not here: a worker computes
//! on it without a lock, and is handed the blocks to subtract at the end of its clock, by clock and then by worker. So
//! without staleness, and where everyone sends to everyone, all replicas are the same to the bit in every clock.
//!
//! A peer starts a clock when all its senders are close enough behind, and uses no block that is ahead of it
//! (`consistency.rs`). Where a peer sends to only a few others nothing is passed on: what it learnt reaches those beyond
//! by way of the pairs that are computed on the changed replicas. The bound is then one between a peer and its senders: it
//! may have ended `s + 1` clocks more than any of them, and `d (s + 1)` more than one from which the way to it is `d`.

mod block;
mod matrix;

pub(crate) use block::Form;
pub use block::{Block, BlockWriter, Factor, Side};
pub use matrix::Matrix;

use crate::consistency::Consistency;
use crate::event::StalenessHistogram;
use crate::ids::{Clock, WorkerId};
use crate::message::ToPeer;
use crate::sabotage::Sabotage;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::Poll;
use thiserror::Error;

/// The size of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How many rows: the length of every `u`.
    pub rows: u32,
    /// How many columns: the length of every `v`.
    pub columns: u32,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", self.rows, self.columns)
    }
}

/// What all peers of a job must agree on.
#[derive(Debug, Clone, PartialEq)]
pub struct Broadcast {
    /// The matrix.
    pub shape: Shape,
    /// How far a peer may be ahead of its senders; zero is Bsp.
    pub staleness: u32,
    /// To whom each peer sends.
    pub receivers: Vec<Vec<u32>>,
}

impl Broadcast {
    /// Everyone sends to everyone else.
    #[must_use]
    pub fn full(shape: Shape, staleness: u32, peers: u32) -> Self {
        let others = |peer| (0..peers).filter(|other| *other != peer).collect();
        Self { shape, staleness, receivers: (0..peers).map(others).collect() }
    }

    /// Who sends to `peer`, ascending.
    pub fn senders(&self, peer: WorkerId) -> impl Iterator<Item = WorkerId> + '_ {
        let to_peer = move |(_, receivers): &(usize, &Vec<u32>)| receivers.contains(&peer.0);
        self.receivers.iter().enumerate().filter(to_peer).map(|(sender, _)| WorkerId(sender as u32))
    }

    /// Whether one of the two sends to the other.
    #[must_use]
    pub fn connects(&self, one: WorkerId, other: WorkerId) -> bool {
        self.receivers[one.index()].contains(&other.0) || self.receivers[other.index()].contains(&one.0)
    }
}

/// A factor that cannot be written, or a block that no peer of the job sends.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum PeerError {
    #[error(
        "a factor {name} of {found} numbers was written for a matrix with {width} {}",
        if *name == "u" { "rows" } else { "columns" }
    )]
    Length { name: &'static str, found: usize, width: u32 },
    #[error("a sparse factor {name} has {places} places and {numbers} numbers")]
    Entries { name: &'static str, places: usize, numbers: usize },
    #[error("the places of a sparse factor {name} must ascend and be below {width}")]
    Places { name: &'static str, width: u32 },
    #[error("a block of {pairs} pairs can take no more: a message counts at most {} numbers", u32::MAX)]
    TooLong { pairs: u32 },
    #[error("{from} is not among those who send to {to}")]
    NotASender { from: WorkerId, to: WorkerId },
    #[error("{from} sent factors of a matrix of {found}, and the job's is one of {shape}")]
    OtherShape { from: WorkerId, found: Shape, shape: Shape },
    #[error("{from} sent its block of {clock} where that of {expected} was due")]
    OutOfOrder { from: WorkerId, clock: Clock, expected: Clock },
    #[error("{from} sent its block of {clock} to {to}, which is at {at}: further ahead than the bound lets anyone get")]
    TooFarAhead { from: WorkerId, clock: Clock, to: WorkerId, at: Clock },
}

/// What a peer waits for, for messages about waits that take too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerWait {
    /// Who waits.
    pub worker: WorkerId,
    /// The sender that is furthest behind.
    pub sender: WorkerId,
    /// The clock that it must have reached.
    pub needed: Clock,
    /// The clock that it has reached, as far as its blocks tell.
    pub reached: Clock,
}

impl fmt::Display for PeerWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { worker, sender, needed, reached } = self;
        write!(f, "{worker} waits for factors of {sender} until it reaches {needed}; they have come up to {reached}")
    }
}

/// The state of one peer.
#[derive(Debug)]
pub struct Peer {
    id: WorkerId,
    shape: Shape,
    peers: u32,
    consistency: Consistency,
    receivers: Vec<WorkerId>,
    /// Those who send to this peer and itself, ascending.
    senders: Vec<Sender>,
    clock: Clock,
    histogram: StalenessHistogram,
    outbox: Vec<(WorkerId, Arc<ToPeer>)>,
    sabotage: Sabotage,
    /// How many blocks have been handed out, for a fault that is planted.
    handed_out: u64,
}

/// What has come from one of them.
#[derive(Debug)]
struct Sender {
    id: WorkerId,
    /// All its blocks of earlier clocks are here or have been handed out.
    received: Clock,
    /// Blocks that have not been handed out, one clock after the other.
    waiting: VecDeque<Arc<ToPeer>>,
}

/// How recent the blocks must be that a peer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// As the bound asks.
    Bound,
    /// Those of every clock that this peer has finished.
    Latest,
}

impl Peer {
    /// The peer `id` of a job.
    ///
    /// # Panics
    /// If the job has no such peer.
    #[must_use]
    pub fn new(id: WorkerId, broadcast: &Broadcast, sabotage: Sabotage) -> Self {
        let mut ids: Vec<WorkerId> = broadcast.senders(id).chain([id]).collect();
        ids.sort_unstable();
        let sender = |id| Sender { id, received: Clock(0), waiting: VecDeque::new() };
        Self {
            id,
            shape: broadcast.shape,
            peers: broadcast.receivers.len() as u32,
            consistency: Consistency::Ssp { staleness: broadcast.staleness },
            receivers: broadcast.receivers[id.index()].iter().copied().map(WorkerId).collect(),
            senders: ids.into_iter().map(sender).collect(),
            clock: Clock(0),
            histogram: StalenessHistogram::default(),
            outbox: Vec::new(),
            sabotage,
            handed_out: 0,
        }
    }

    /// Which peer it is.
    #[must_use]
    pub fn id(&self) -> WorkerId {
        self.id
    }

    /// How many iterations it has finished.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// How far behind senders were at the start of every clock, each sender by itself.
    #[must_use]
    pub fn histogram(&self) -> &StalenessHistogram {
        &self.histogram
    }

    /// What is to be sent.
    pub fn outbox(&mut self) -> std::vec::Drain<'_, (WorkerId, Arc<ToPeer>)> {
        self.outbox.drain(..)
    }

    /// Ends the current clock with the pairs that were written in it.
    ///
    /// # Panics
    /// If the block is of another shape.
    pub fn commit(&mut self, block: Block) {
        assert_eq!(block.shape(), self.shape, "a block of another matrix");
        let message = Arc::new(ToPeer { from: self.id, clock: self.clock, block });
        self.clock = self.clock.next();
        self.outbox.extend(self.receivers.iter().map(|&to| (to, Arc::clone(&message))));
        let own = self.senders.iter_mut().find(|sender| sender.id == self.id).expect("it is among them");
        own.received = self.clock;
        own.waiting.push_back(message);
    }

    /// Once the senders are close enough behind: the blocks to subtract before the current clock is started, by clock
    /// and then by worker. Each is handed out once.
    pub fn advance(&mut self, freshness: Freshness) -> Poll<Vec<Arc<ToPeer>>> {
        if self.wait(freshness).is_some() {
            return Poll::Pending;
        }
        let (consistency, clock) = (self.consistency, self.clock);
        let mut blocks = Vec::new();
        for sender in &mut self.senders {
            while let Some(block) = sender.waiting.pop_front_if(|block| consistency.may_use(block.clock, clock)) {
                self.handed_out += 1;
                if self.sabotage.is(Sabotage::ApplyTwice) && self.handed_out.is_multiple_of(7) {
                    blocks.push(Arc::clone(&block));
                }
                blocks.push(block);
            }
            if sender.id != self.id {
                let seen = sender.received.back(sender.waiting.len() as u32);
                self.histogram.count(seen, clock, 1);
            }
        }
        blocks.sort_by_key(|block| (block.clock, block.from));
        Poll::Ready(blocks)
    }

    /// What the peer waits for, if it does.
    #[must_use]
    pub fn wait(&self, freshness: Freshness) -> Option<PeerWait> {
        let needed = match freshness {
            Freshness::Latest => self.clock,
            Freshness::Bound if self.sabotage.is(Sabotage::BoundOffByOne) => {
                self.consistency.oldest_readable(self.clock).back(1)
            }
            Freshness::Bound => self.consistency.oldest_readable(self.clock),
        };
        let slowest = self.senders.iter().min_by_key(|sender| sender.received)?;
        (slowest.received < needed).then_some(PeerWait {
            worker: self.id,
            sender: slowest.id,
            needed,
            reached: slowest.received,
        })
    }

    /// Takes a message from another peer.
    ///
    /// # Errors
    /// If no peer of the job sends such a message. Then nothing has changed.
    pub fn receive(&mut self, message: Arc<ToPeer>) -> Result<(), PeerError> {
        let (from, clock, to) = (message.from, message.clock, self.id);
        let sender = self.senders.iter_mut().find(|sender| sender.id == from && from != to);
        let sender = sender.ok_or(PeerError::NotASender { from, to })?;
        let (found, shape) = (message.block.shape(), self.shape);
        if found != shape {
            return Err(PeerError::OtherShape { from, found, shape });
        }
        if clock != sender.received {
            return Err(PeerError::OutOfOrder { from, clock, expected: sender.received });
        }
        // The way from this peer to the sender is no longer than through all others.
        let staleness = self.consistency.staleness().unwrap_or(0);
        let ahead_max = (self.peers - 1).saturating_mul(staleness.saturating_add(1));
        if clock.0 >= self.clock.0.saturating_add(ahead_max) {
            return Err(PeerError::TooFarAhead { from, clock, to, at: self.clock });
        }
        sender.received = clock.next();
        sender.waiting.push_back(message);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { rows: 2, columns: 2 };

    fn block(shape: Shape) -> Block {
        BlockWriter::new(shape).finish()
    }

    fn message(from: u32, clock: u32, shape: Shape) -> Arc<ToPeer> {
        Arc::new(ToPeer { from: WorkerId(from), clock: Clock(clock), block: block(shape) })
    }

    fn names(blocks: Poll<Vec<Arc<ToPeer>>>) -> Option<Vec<(u32, u32)>> {
        match blocks {
            Poll::Ready(blocks) => Some(blocks.iter().map(|block| (block.clock.0, block.from.0)).collect()),
            Poll::Pending => None,
        }
    }

    #[test]
    fn without_staleness_a_clock_starts_with_everyones_block_in_worker_order() {
        let mut peer = Peer::new(WorkerId(1), &Broadcast::full(SHAPE, 0, 3), Sabotage::None);
        peer.commit(block(SHAPE));
        assert_eq!(peer.outbox().map(|(to, _)| to.0).collect::<Vec<_>>(), [0, 2]);
        peer.receive(message(2, 0, SHAPE)).expect("due");
        assert_eq!(names(peer.advance(Freshness::Bound)), None);
        assert_eq!(
            peer.wait(Freshness::Bound).expect("worker 0 is behind").to_string(),
            "worker 1 waits for factors of worker 0 until it reaches clock 1; they have come up to clock 0"
        );
        peer.receive(message(0, 0, SHAPE)).expect("due");
        peer.receive(message(0, 1, SHAPE)).expect("one ahead, and not to be used yet");
        assert_eq!(names(peer.advance(Freshness::Bound)), Some(vec![(0, 0), (0, 1), (0, 2)]));
        assert_eq!(names(peer.advance(Freshness::Bound)), Some(vec![]), "handed out once");
        peer.commit(block(SHAPE));
        peer.receive(message(2, 1, SHAPE)).expect("due");
        assert_eq!(names(peer.advance(Freshness::Bound)), Some(vec![(1, 0), (1, 1), (1, 2)]));
        assert_eq!(peer.histogram().iter().collect::<Vec<_>>(), [(-1, 6)]);
    }

    #[test]
    fn with_staleness_a_peer_goes_on_until_a_sender_is_too_far_behind_and_uses_nothing_ahead_of_it() {
        let mut peer = Peer::new(WorkerId(0), &Broadcast::full(SHAPE, 2, 2), Sabotage::None);
        for clock in 0..2 {
            peer.commit(block(SHAPE));
            assert_eq!(names(peer.advance(Freshness::Bound)), Some(vec![(clock, 0)]));
        }
        peer.commit(block(SHAPE));
        assert_eq!(names(peer.advance(Freshness::Bound)), None, "at clock 3 it needs clock 1 of everyone");
        (0..5).for_each(|clock| peer.receive(message(1, clock, SHAPE)).expect("due"));
        assert_eq!(names(peer.advance(Freshness::Bound)), Some(vec![(0, 1), (1, 1), (2, 0), (2, 1)]));
        peer.commit(block(SHAPE));
        peer.commit(block(SHAPE));
        assert_eq!(names(peer.advance(Freshness::Latest)), Some(vec![(3, 0), (3, 1), (4, 0), (4, 1)]));
    }

    #[test]
    fn what_no_peer_sends_is_refused_with_its_reason() {
        let ring = Broadcast { shape: SHAPE, staleness: 1, receivers: vec![vec![1], vec![2], vec![0]] };
        assert!(ring.connects(WorkerId(0), WorkerId(2)) && ring.connects(WorkerId(2), WorkerId(0)));
        let mut peer = Peer::new(WorkerId(1), &ring, Sabotage::None);
        let mut refuse = |message| peer.receive(message).expect_err("refused").to_string();
        assert_eq!(refuse(message(2, 0, SHAPE)), "worker 2 is not among those who send to worker 1");
        assert_eq!(refuse(message(1, 0, SHAPE)), "worker 1 is not among those who send to worker 1");
        assert_eq!(refuse(message(7, 0, SHAPE)), "worker 7 is not among those who send to worker 1");
        assert_eq!(
            refuse(message(0, 0, Shape { rows: 3, columns: 1 })),
            "worker 0 sent factors of a matrix of 3 by 1, and the job's is one of 2 by 2"
        );
        assert_eq!(refuse(message(0, 1, SHAPE)), "worker 0 sent its block of clock 1 where that of clock 0 was due");
        (0..4).for_each(|clock| peer.receive(message(0, clock, SHAPE)).expect("possible around the ring"));
        assert_eq!(
            peer.receive(message(0, 4, SHAPE)).expect_err("refused").to_string(),
            "worker 0 sent its block of clock 4 to worker 1, which is at clock 0: further ahead than the bound lets anyone get"
        );
    }
}
