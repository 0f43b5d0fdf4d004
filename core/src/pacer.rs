//! What stands between a node and the network when it has a budget: everything it sends waits here for its turn.
//!
//! Messages leave in the order in which they came, each when the bucket of the last is empty. When none is left the
//! node may be asked for early data, and when the network falls behind nothing is sent until it has caught up.
//! Acknowledgements leave first, so that two nodes never wait for one another's.
//!
//! A stream is one direction of a connection, by a number of the driver's choice. Time is whatever the driver counts
//! since it began.

use crate::budget::{Bucket, Budget, acknowledged_on_the_wire, on_the_wire};
use crate::codec::ACKNOWLEDGEMENT_BYTES_MAX;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Everything that one node has to send; `T` is a message as the driver has it.
#[derive(Debug)]
pub struct Pacer<T> {
    bucket: Bucket,
    message_bytes: usize,
    message_span: Duration,
    queue: VecDeque<Item<T>>,
    streams: BTreeMap<usize, Stream>,
    /// What was sent so long ago that it should have been acknowledged, and was not, in bytes: beyond this the network
    /// is overused.
    overdue_bytes_max: u64,
    backing_off: bool,
    /// Before this nobody is asked for early data again.
    ask_at: Duration,
    /// There was no early data, and nobody has said that there may be.
    resting: bool,
}

#[derive(Debug)]
struct Item<T> {
    to: usize,
    /// What it has on its stream if it was sent before.
    number: Option<u64>,
    bytes: u64,
    message: T,
}

#[derive(Debug, Default)]
struct Stream {
    /// Number, moment and cost of each message that the other end may not have.
    under_way: VecDeque<(u64, Duration, u64)>,
    /// Since when the other end waits for an acknowledgement, and for how many messages.
    owed: Option<(Duration, u32)>,
}

/// What to do now.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn<T> {
    /// Send this message, and tell [`Pacer::sent`] its number.
    Send {
        /// On which stream.
        to: usize,
        /// The number it has, if it was sent before on a connection that was lost.
        number: Option<u64>,
        /// What to send.
        message: T,
    },
    /// Send what has been received on the connection, and nothing else.
    Acknowledge {
        /// On which stream.
        to: usize,
    },
    /// Nothing is left to send: there is room for early data.
    Ask {
        /// At most so many bytes of rows.
        bytes: usize,
    },
    /// Do nothing before this moment, or until something changes.
    Wait {
        /// The moment.
        until: Option<Duration>,
    },
}

/// What was sent longer ago than this should have been acknowledged.
const WINDOW: Duration = Duration::from_millis(500);
/// The part of a window's bytes that may be overdue.
const OVERDUE_PART: u64 = 8;
/// An acknowledgement travels alone when so many messages, or the first for so long, have waited for one.
const OWED_MESSAGES_MAX: u32 = 8;
const OWED_MAX: Duration = Duration::from_millis(50);

impl<T> Pacer<T> {
    /// The pacer of a node that has sent nothing.
    #[must_use]
    pub fn new(budget: &Budget) -> Self {
        Self {
            bucket: Bucket::new(budget),
            message_bytes: budget.message_bytes(),
            message_span: budget.message_span(),
            queue: VecDeque::new(),
            streams: BTreeMap::new(),
            overdue_bytes_max: budget.bytes_per_second.saturating_mul(WINDOW.as_millis() as u64) / 1000 / OVERDUE_PART,
            backing_off: false,
            ask_at: Duration::ZERO,
            resting: false,
        }
    }

    /// How many messages wait.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// How many bytes they take on the wire.
    #[must_use]
    pub fn queued_bytes(&self) -> u64 {
        self.queue.iter().map(|item| item.bytes).sum()
    }

    /// Whether the network has fallen behind, and nothing is sent until it has caught up.
    #[must_use]
    pub fn is_backing_off(&self) -> bool {
        self.backing_off
    }

    /// Puts a message of so many encoded bytes at the end.
    pub fn push(&mut self, to: usize, bytes: u64, message: T) {
        self.queue.push_back(Item { to, number: None, bytes: on_the_wire(bytes), message });
    }

    /// Puts the messages that a lost connection may have swallowed, with their numbers and encoded bytes, before all
    /// others: of this stream they are the oldest.
    pub fn push_again(&mut self, to: usize, messages: impl DoubleEndedIterator<Item = (u64, u64, T)>) {
        self.stream(to).under_way.clear();
        self.queue.retain(|item| item.to != to || item.number.is_none());
        for (number, bytes, message) in messages.rev() {
            self.queue.push_front(Item { to, number: Some(number), bytes: on_the_wire(bytes), message });
        }
    }

    /// A message of so many encoded bytes was sent, and has this number now.
    pub fn sent(&mut self, to: usize, number: u64, bytes: u64, now: Duration) {
        let stream = self.stream(to);
        stream.under_way.push_back((number, now, on_the_wire(bytes)));
        // It carries an acknowledgement.
        stream.owed = None;
    }

    /// Filters made a message that was sent shorter by so many bytes than the bucket was charged for.
    pub fn saved(&mut self, bytes: u64) {
        self.bucket.draw(bytes);
    }

    /// The other end has all messages of the stream through this number.
    pub fn acknowledged(&mut self, to: usize, through: u64) {
        let under_way = &mut self.stream(to).under_way;
        while under_way.front().is_some_and(|(number, ..)| *number <= through) {
            under_way.pop_front();
        }
    }

    /// A message of so many encoded bytes came in over the connection that stream `to` answers on.
    pub fn received(&mut self, to: usize, bytes: u64, now: Duration) {
        self.bucket.pour(acknowledged_on_the_wire(bytes), now);
        let owed = &mut self.stream(to).owed;
        let (since, messages) = owed.unwrap_or((now, 0));
        *owed = Some((since, messages + 1));
    }

    /// Makes room for a message of so many bytes that goes another way than the streams, or for the first of them; says for
    /// how many, and when they may go.
    pub fn make_room(&mut self, bytes: usize, now: Duration) -> (usize, Duration) {
        let (bytes, at) = (bytes.min(self.message_bytes), self.bucket.empty_at().max(now));
        self.bucket.pour(on_the_wire(bytes as u64), now);
        (bytes, at)
    }

    /// There was no early data; nobody is to be asked again before [`Pacer::stir`].
    pub fn rest(&mut self) {
        self.resting = true;
    }

    /// There may be early data.
    pub fn stir(&mut self) {
        self.resting = false;
    }

    /// What to do now. Whoever drives the pacer asks again after he has done it, and when something was pushed or has
    /// come in.
    pub fn turn(&mut self, now: Duration) -> Turn<T> {
        let empty_at = self.bucket.empty_at();
        let owed = self.streams.iter().filter_map(|(&to, stream)| Some((stream.owed_at()?, to))).min();
        if empty_at > now {
            let idle = owed.is_none() && self.queue.is_empty() && self.resting;
            return Turn::Wait { until: (!idle).then_some(empty_at) };
        }
        let owed_at = owed.map(|(at, _)| at);
        if let Some((at, to)) = owed
            && at <= now
        {
            self.stream(to).owed = None;
            self.bucket.pour(on_the_wire(ACKNOWLEDGEMENT_BYTES_MAX as u64), now);
            return Turn::Acknowledge { to };
        }
        if self.is_overused(now) {
            return Turn::Wait { until: owed_at };
        }
        if let Some(Item { to, number, bytes, message }) = self.queue.pop_front() {
            self.bucket.pour(bytes, now);
            return Turn::Send { to, number, message };
        }
        if self.resting {
            return Turn::Wait { until: owed_at };
        }
        if self.ask_at > now {
            return Turn::Wait { until: owed_at.into_iter().chain([self.ask_at]).min() };
        }
        self.ask_at = now + self.message_span;
        Turn::Ask { bytes: self.message_bytes }
    }

    /// Whether too much has been without acknowledgement for too long, or was and not all of it has come.
    fn is_overused(&mut self, now: Duration) -> bool {
        let overdue = |stream: &Stream| -> u64 {
            let late = stream.under_way.iter().take_while(|(_, sent, _)| *sent + WINDOW < now);
            late.map(|(_, _, bytes)| bytes).sum()
        };
        let bytes: u64 = self.streams.values().map(overdue).sum();
        self.backing_off = bytes > if self.backing_off { 0 } else { self.overdue_bytes_max };
        self.backing_off
    }

    fn stream(&mut self, to: usize) -> &mut Stream {
        self.streams.entry(to).or_default()
    }
}

impl Stream {
    /// When an acknowledgement has to travel alone.
    fn owed_at(&self) -> Option<Duration> {
        let (since, messages) = self.owed?;
        Some(if messages >= OWED_MESSAGES_MAX { since } else { since + OWED_MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::priority::Priority;

    fn pacer() -> Pacer<u32> {
        Pacer::new(&Budget { bytes_per_second: 100_000, priority: Priority::Random })
    }

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn messages_leave_in_order_at_the_budgets_rate_and_then_there_is_room_for_early_data() {
        let mut pacer = pacer();
        pacer.push(0, 1448 - 66, 1);
        pacer.push(1, 1448 - 66, 2);
        let now = ms(1000);
        assert_eq!(pacer.turn(now), Turn::Send { to: 0, number: None, message: 1 });
        let Turn::Wait { until: Some(next) } = pacer.turn(now) else { panic!("the bucket is full") };
        assert_eq!(pacer.turn(next), Turn::Send { to: 1, number: None, message: 2 });
        let Turn::Wait { until: Some(next) } = pacer.turn(next) else { panic!("the bucket is full") };
        assert!(matches!(pacer.turn(next), Turn::Ask { .. }));
        assert!(matches!(pacer.turn(next), Turn::Wait { until: Some(_) }), "not at once again");
        pacer.rest();
        assert_eq!(pacer.turn(next + ms(500)), Turn::Wait { until: None });
    }

    #[test]
    fn a_network_that_falls_behind_is_left_alone_until_it_has_caught_up() {
        let mut pacer = pacer();
        let mut now = ms(0);
        let mut sent = 0;
        while now < ms(3000) {
            pacer.push(0, 1000, 0);
            match pacer.turn(now) {
                Turn::Send { .. } => {
                    sent += 1;
                    pacer.sent(0, sent, 1000, now);
                    now += ms(1);
                }
                Turn::Wait { until: Some(until) } => now = until,
                Turn::Wait { until: None } => break,
                _ => panic!("nothing else to do"),
            }
        }
        assert!((ms(500)..ms(700)).contains(&now), "backed off at {now:?}");
        pacer.acknowledged(0, sent - 1);
        assert_eq!(pacer.turn(now + ms(600)), Turn::Wait { until: None }, "one is overdue still");
        pacer.acknowledged(0, sent);
        assert!(matches!(pacer.turn(now + ms(600)), Turn::Send { .. }));
    }

    #[test]
    fn acknowledgements_leave_even_then_and_ride_on_messages_where_they_can() {
        let mut pacer = pacer();
        pacer.received(3, 100, ms(0));
        pacer.push(3, 100, 7);
        assert!(matches!(pacer.turn(ms(10)), Turn::Send { .. }));
        pacer.sent(3, 1, 100, ms(10));
        pacer.rest();
        assert_eq!(pacer.turn(ms(90)), Turn::Wait { until: None });
        pacer.sent(3, 2, 100_000, ms(100));
        pacer.received(3, 100, ms(1000));
        pacer.push(3, 100, 8);
        assert_eq!(pacer.turn(ms(1010)), Turn::Wait { until: Some(ms(1050)) }, "overused");
        assert_eq!(pacer.turn(ms(1050)), Turn::Acknowledge { to: 3 });
        (0..8).for_each(|_| pacer.received(3, 100, ms(2000)));
        assert_eq!(pacer.turn(ms(2006)), Turn::Acknowledge { to: 3 }, "for so many, at once");
    }

    #[test]
    fn what_goes_another_way_waits_for_room_as_well_and_takes_it_from_what_comes_after() {
        let mut pacer = pacer();
        pacer.push(0, 1000 - 66, 1);
        assert!(matches!(pacer.turn(ms(1000)), Turn::Send { .. }));
        let now = ms(1001);
        let (mut left, mut at) = (10_000, now);
        while left > 0 {
            let (bytes, when) = pacer.make_room(left, now);
            assert!(when >= at && bytes <= 1000, "{bytes} bytes at {when:?}");
            (left, at) = (left - bytes, when);
        }
        pacer.push(0, 1000 - 66, 2);
        let Turn::Wait { until: Some(until) } = pacer.turn(now) else { panic!("the bucket is full") };
        assert!((ms(1105)..ms(1120)).contains(&until), "{until:?}");
        assert_eq!(pacer.turn(until), Turn::Send { to: 0, number: None, message: 2 });
    }

    #[test]
    fn what_a_lost_connection_swallowed_goes_first_and_only_once() {
        let mut pacer = pacer();
        pacer.push(0, 10, 5);
        pacer.push_again(0, [(3, 10, 3), (4, 10, 4)].into_iter());
        pacer.push_again(0, [(4, 10, 4)].into_iter());
        let mut now = ms(0);
        let mut order = Vec::new();
        while order.len() < 2 {
            match pacer.turn(now) {
                Turn::Send { number, message, .. } => order.push((number, message)),
                Turn::Wait { until: Some(until) } => now = until,
                _ => panic!("nothing else to do"),
            }
        }
        assert_eq!(order, [(Some(4), 4), (None, 5)]);
    }
}
