//! What a node may send in a second, and the leaky bucket that keeps it to that.

use crate::codec::HEADER_BYTES_MAX;
use crate::priority::Priority;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::Duration;

/// What every node of a job may send, to clients and shards together, and what it spends the spare part on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Bytes per second on the wire, with what the network adds to each packet.
    pub bytes_per_second: u64,
    /// What goes first before the end of a clock.
    pub priority: Priority,
}

/// The least budget: the shortest messages take a thirtieth of a second of it.
pub const BYTES_PER_SECOND_MIN: u64 = 12_500;
/// No message is longer than the bytes of this part of a second, unless it is one row.
const MESSAGES_PER_SECOND: u64 = 100;
/// Nor than this, which is all that either end has to hold of one. With less, a node of a fast network is asked for early data
/// so often that its workers notice (`bench/run overhead`).
const MESSAGE_BYTES_MAX: u64 = 16 << 20;
/// Nor shorter, if it has as much to hold: messages would be headers for the most part.
const MESSAGE_BYTES_MIN: usize = 256;

/// Every so many bytes travel with this many more: the headers of Ethernet, IP and TCP, with time stamps.
const PACKET_BYTES: u64 = 1448;
const PACKET_HEADERS: u64 = 66;
/// The receiver's operating system acknowledges every other packet.
const PACKETS_PER_ACKNOWLEDGEMENT: u64 = 2;

/// A bucket that leaks at the budget's rate: what is sent is poured in, and more may be sent when it is empty.
#[derive(Debug)]
pub(crate) struct Bucket {
    seconds_per_byte: f64,
    empty_at: Duration,
}

/// A bucket found empty late may have been empty for so long already: a timer that rings late costs no bandwidth.
const LATENESS_MAX: Duration = Duration::from_millis(5);

impl Budget {
    /// How many bytes of rows a message may hold.
    #[must_use]
    pub fn message_bytes(&self) -> usize {
        let bytes = (self.bytes_per_second / MESSAGES_PER_SECOND).min(MESSAGE_BYTES_MAX);
        let packets = bytes * PACKET_BYTES / (PACKET_BYTES + PACKET_HEADERS);
        (packets as usize).saturating_sub(HEADER_BYTES_MAX).max(MESSAGE_BYTES_MIN)
    }

    /// What so many bytes in long messages take of a budget, and the acknowledgements of as many that come in.
    #[must_use]
    pub fn taken(bytes: u64) -> u64 {
        on_the_wire(bytes) + acknowledged_on_the_wire(bytes)
    }

    /// How long a message of that length keeps the bucket full.
    #[must_use]
    pub(crate) fn message_span(&self) -> Duration {
        Bucket::new(self).span(on_the_wire((self.message_bytes() + HEADER_BYTES_MAX) as u64))
    }
}

impl Bucket {
    pub(crate) fn new(budget: &Budget) -> Self {
        Self { seconds_per_byte: 1.0 / budget.bytes_per_second.max(1) as f64, empty_at: Duration::ZERO }
    }

    /// When the bucket is empty.
    pub(crate) fn empty_at(&self) -> Duration {
        self.empty_at
    }

    /// Pours in what is sent now.
    pub(crate) fn pour(&mut self, bytes: u64, now: Duration) {
        let begin = self.empty_at.max(now.saturating_sub(LATENESS_MAX));
        self.empty_at = begin + self.span(bytes);
    }

    /// Takes out what was poured in and not sent.
    pub(crate) fn draw(&mut self, bytes: u64) {
        self.empty_at = self.empty_at.saturating_sub(self.span(bytes));
    }

    fn span(&self, bytes: u64) -> Duration {
        Duration::from_nanos((bytes as f64 * self.seconds_per_byte * 1e9).ceil() as u64)
    }
}

/// What a message of so many encoded bytes costs: its own, and those of the packets that it travels in.
#[must_use]
pub fn on_the_wire(bytes: u64) -> u64 {
    bytes + PACKET_HEADERS * bytes.div_ceil(PACKET_BYTES)
}

/// What the operating system sends back for a message of so many bytes.
#[must_use]
pub(crate) fn acknowledged_on_the_wire(bytes: u64) -> u64 {
    PACKET_HEADERS * bytes.div_ceil(PACKET_BYTES).div_ceil(PACKETS_PER_ACKNOWLEDGEMENT)
}

/// Cuts `rows` rows into stretches of at most `limit` bytes each, or of one row that is longer.
pub(crate) fn stretches(rows: usize, limit: usize, bytes_of: impl Fn(usize) -> usize) -> Vec<Range<usize>> {
    let mut stretches = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for row in 0..rows {
        let more = bytes_of(row);
        if row > start && bytes + more > limit {
            stretches.push(start..row);
            (start, bytes) = (row, 0);
        }
        bytes += more;
    }
    stretches.push(start..rows);
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Budget = Budget { bytes_per_second: 1_000_000, priority: Priority::RoundRobin };

    #[test]
    fn whoever_sends_when_the_bucket_is_empty_sends_at_the_budgets_rate() {
        let mut bucket = Bucket::new(&BUDGET);
        let mut sent: Vec<(Duration, u64)> = Vec::new();
        for i in 0..500u64 {
            // Timers ring up to three milliseconds late.
            let now = bucket.empty_at() + Duration::from_micros(i * 7919 % 3000);
            bucket.pour(10_000, now);
            sent.push((now, 10_000));
        }
        let span = sent[499].0.as_secs_f64();
        assert!((4.98..5.01).contains(&span), "5 MB took {span} s");
        for (i, (begin, _)) in sent.iter().enumerate() {
            let window = sent[i..].iter().take_while(|(time, _)| *time < *begin + Duration::from_secs(1));
            let bytes: u64 = window.map(|(_, bytes)| bytes).sum();
            assert!(bytes <= 1_020_000, "{bytes} bytes in the second from {begin:?}");
        }
    }

    #[test]
    fn an_idle_bucket_saves_nothing_up() {
        let mut bucket = Bucket::new(&BUDGET);
        bucket.pour(1000, Duration::from_secs(100));
        assert_eq!(bucket.empty_at(), Duration::from_millis(100_000 - 5 + 1));
        bucket.draw(500);
        assert_eq!(bucket.empty_at(), Duration::from_micros(100_000_000 - 5000 + 500), "half of it was not sent");
    }

    #[test]
    fn stretches_hold_what_fits_and_at_least_a_row() {
        let bytes = [3, 3, 3, 20, 1, 1];
        assert_eq!(stretches(6, 6, |row| bytes[row]), [0..2, 2..3, 3..4, 4..6]);
        assert_eq!(stretches(0, 6, |row| bytes[row]).len(), 1);
        assert!(BUDGET.message_bytes() < 10_000 && BUDGET.message_bytes() > 9000);
        let least = Budget { bytes_per_second: BYTES_PER_SECOND_MIN, ..BUDGET };
        assert_eq!(least.message_bytes(), MESSAGE_BYTES_MIN, "not a few bytes behind long headers");
        assert!(least.message_span() < Duration::from_millis(35), "{:?}", least.message_span());
    }
}
