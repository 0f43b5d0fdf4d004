//! An ordered, numbered, acknowledged stream: what is sent arrives once and in order, whatever happens to the
//! connection underneath.
//!
//! Messages are numbered from one. The receiver says through which number it has them all; the sender keeps the
//! others, and sends them again on a new connection.

use crate::sabotage::Sabotage;
use std::collections::VecDeque;
use std::sync::Arc;
use thiserror::Error;

/// One end of a stream of messages `M` to the other end, and of whatever comes back.
#[derive(Debug)]
pub struct Link<M> {
    /// How many messages have been sent.
    sent: u64,
    /// The last of them, which the other end may not have.
    unacknowledged: VecDeque<Arc<M>>,
    /// How many messages have been received.
    received: u64,
    sabotage: Sabotage,
}

/// What to do with a message that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It is the next one: take it.
    Next,
    /// It is here already: drop it.
    Duplicate,
}

/// A number that cannot be right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum LinkError {
    #[error("message {number} arrived where message {expected} was due")]
    Gap { number: u64, expected: u64 },
    #[error("{through} messages were acknowledged, and {sent} were sent")]
    NeverSent { through: u64, sent: u64 },
    #[error(
        "the other end asks for messages from {from} on, and those before {kept} have been given up as acknowledged"
    )]
    GivenUp { from: u64, kept: u64 },
}

impl<M> Link<M> {
    /// A link that nothing has been sent over.
    #[must_use]
    pub fn new(sabotage: Sabotage) -> Self {
        Self { sent: 0, unacknowledged: VecDeque::new(), received: 0, sabotage }
    }

    /// Numbers a message and keeps it until it is acknowledged.
    pub fn send(&mut self, message: Arc<M>) -> u64 {
        self.sent += 1;
        self.unacknowledged.push_back(message);
        self.sent
    }

    /// How many messages have been sent: the number of the last.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// How many messages have been received: what to acknowledge.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// How many messages the other end may not have.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.unacknowledged.len()
    }

    /// Takes the number of a message that arrived.
    ///
    /// # Errors
    /// If messages before it are missing.
    pub fn arrive(&mut self, number: u64) -> Result<Arrival, LinkError> {
        let expected = self.received + 1;
        if number > expected {
            return Err(LinkError::Gap { number, expected });
        }
        if number < expected {
            return Ok(Arrival::Duplicate);
        }
        self.received = number;
        Ok(Arrival::Next)
    }

    /// The other end has all messages through this number.
    ///
    /// # Errors
    /// If so many were never sent.
    pub fn acknowledge(&mut self, through: u64) -> Result<(), LinkError> {
        if through > self.sent {
            return Err(LinkError::NeverSent { through, sent: self.sent });
        }
        let still = (self.sent - through) as usize;
        while self.unacknowledged.len() > still {
            self.unacknowledged.pop_front();
        }
        Ok(())
    }

    /// On a new connection, whose other end has the messages through `received`: the messages to send again, with
    /// their numbers.
    ///
    /// # Errors
    /// If the other end knows of more messages than were sent, or of fewer than it had acknowledged.
    pub fn reconnect(&mut self, received: u64) -> Result<Vec<(u64, Arc<M>)>, LinkError> {
        let kept = self.sent - self.unacknowledged.len() as u64;
        if received < kept {
            return Err(LinkError::GivenUp { from: received + 1, kept: kept + 1 });
        }
        self.acknowledge(received)?;
        // The planted fault: one message is given up, and the others take its place.
        if self.sabotage.is(Sabotage::LoseAfterReconnect) && self.unacknowledged.pop_front().is_some() {
            self.sent -= 1;
        }
        Ok((received + 1..).zip(self.unacknowledged.iter().map(Arc::clone)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn gaps_and_false_acknowledgements_are_refused() {
        let mut link = Link::<u8>::new(Sabotage::None);
        assert_eq!(link.arrive(2), Err(LinkError::Gap { number: 2, expected: 1 }));
        assert_eq!(link.arrive(1), Ok(Arrival::Next));
        assert_eq!(link.arrive(1), Ok(Arrival::Duplicate));
        assert_eq!(link.send(Arc::new(7)), 1);
        assert_eq!(link.acknowledge(2), Err(LinkError::NeverSent { through: 2, sent: 1 }));
        link.acknowledge(1).expect("sent");
        assert_eq!(link.reconnect(0), Err(LinkError::GivenUp { from: 1, kept: 2 }));
    }

    proptest! {
        /// Whatever is lost between connections, everything arrives once and in order.
        #[test]
        fn every_message_arrives_once_and_in_order(
            connections in proptest::collection::vec((0usize..6, 0usize..8, any::<bool>()), 1..12)
        ) {
            let mut sender = Link::new(Sabotage::None);
            let mut receiver = Link::<u32>::new(Sabotage::None);
            let mut arrived = Vec::new();
            let mut next = 0u32;
            for (sends, delivered, acknowledge) in connections {
                let mut wire = sender.reconnect(receiver.received()).expect("consistent ends");
                for _ in 0..sends {
                    let message = Arc::new(next);
                    next += 1;
                    wire.push((sender.send(Arc::clone(&message)), message));
                }
                for (number, message) in wire.into_iter().take(delivered) {
                    if receiver.arrive(number).expect("in order") == Arrival::Next {
                        arrived.push(*message);
                    }
                }
                if acknowledge {
                    sender.acknowledge(receiver.received()).expect("sent");
                }
            }
            for (number, message) in sender.reconnect(receiver.received()).expect("consistent ends") {
                prop_assert_eq!(receiver.arrive(number), Ok(Arrival::Next));
                arrived.push(*message);
            }
            prop_assert_eq!(arrived, (0..next).collect::<Vec<_>>());
        }
    }
}
