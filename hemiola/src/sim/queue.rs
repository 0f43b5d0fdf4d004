//! What is going to happen, by virtual time, and in the order of asking where the time is the same.

use super::time::Time;
use super::wire::Packet;
use hemiola_core::coordinator::FromCoordinator;
use hemiola_core::message::{ToClient, ToShard};
use hemiola_core::{ClientId, ShardId, WorkerId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Something that is going to happen.
pub(super) enum Coming {
    /// A worker has done its work, unless it was called away since.
    Resume { worker: WorkerId, turn: u64 },
    /// A packet's first byte is at the receiver.
    Arrive(Packet),
    /// The whole packet is.
    Deliver(Packet),
    /// A shard gets to a message.
    Handle { client: ClientId, shard: ShardId, message: Arc<ToShard> },
    /// A shard has done the work of its functions, and sends what they led to.
    Answer { shard: ShardId, answers: Vec<(ClientId, Arc<ToClient>)> },
    /// The coordinator's answer is with everyone.
    Hear(FromCoordinator),
    /// The next part of a shard's checkpoint is taken out.
    Save(ShardId),
    /// A node's pacer may let something through.
    Pace(usize),
    /// A connection breaks.
    Lose(ClientId, ShardId),
    /// It is made again.
    Reconnect(ClientId, ShardId),
    /// A process dies: the one at this place in the configuration.
    Crash(usize),
}

#[derive(Default)]
pub(super) struct Queue {
    coming: BTreeMap<(Time, u64), Coming>,
    asked: u64,
    /// How many of them may lead a waiting worker on. A fault never does.
    hopeful: usize,
}

impl Queue {
    pub(super) fn push(&mut self, time: Time, coming: Coming) {
        self.hopeful += usize::from(coming.is_hopeful());
        self.asked += 1;
        self.coming.insert((time, self.asked), coming);
    }

    pub(super) fn next_time(&self) -> Option<Time> {
        self.coming.first_key_value().map(|((time, _), _)| *time)
    }

    pub(super) fn pop(&mut self) -> Option<(Time, Coming)> {
        let ((time, _), coming) = self.coming.pop_first()?;
        self.hopeful -= usize::from(coming.is_hopeful());
        Some((time, coming))
    }

    /// Whether anything is coming that may lead a waiting worker on.
    pub(super) fn has_hope(&self) -> bool {
        self.hopeful > 0
    }
}

impl Coming {
    fn is_hopeful(&self) -> bool {
        !matches!(self, Self::Save(_) | Self::Lose(..) | Self::Crash(_))
    }
}
