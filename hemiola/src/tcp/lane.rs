//! One end of the stream between a client and a shard, over as many connections as it takes.
//!
//! Whoever has something to send pushes it; whoever finds nobody writing writes what is there. Messages that a broken
//! connection may have swallowed go out again on the next one.

use crate::tcp::connection::write_frames;
use hemiola_core::codec::{Encoded, Header, Message, Plain, START_BYTES};
use hemiola_core::filter::FilterError;
use hemiola_core::filter::stream::{Encodings, Outgoing};
use hemiola_core::link::{Arrival, Link, LinkError};
use hemiola_core::sabotage::Sabotage;
use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_send_buffer_size;
use std::collections::VecDeque;
use std::io::Write;
use std::iter::Sum;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// At most so many messages are written by one call of the operating system.
const BATCH_MESSAGES: usize = 64;
/// A worker waits when so many messages have not been written.
const QUEUE_MESSAGES_MAX: usize = 256;
/// With so much unacknowledged and nothing to say, an acknowledgement travels alone.
const UNACKNOWLEDGED_MESSAGES: u64 = 32;
const UNACKNOWLEDGED_BYTES: u64 = 1 << 20;
/// Copying more into a connection takes longer than waking another thread to do it.
const LITTLE_BYTES: u64 = 64 << 10;

/// A stream that sends messages `M`.
pub(crate) struct Lane<M> {
    /// Pushed to by threads that hold a client or a shard, and emptied by whoever writes; locked for a few lines, never
    /// while writing.
    state: Mutex<State<M>>,
    /// There is something to write, or a connection to write it to.
    changed: Condvar,
    /// The queue has become shorter, or is written to a new connection.
    written: Condvar,
    lay_out: for<'a> fn(&'a M, u64, u64) -> Plain<'a>,
    /// The filters that every connection begins anew, if there are such.
    encodings: Option<Arc<Encodings>>,
    sever_after_frames: Option<u64>,
    /// A pacer decides what is written when, acknowledgements and what is sent again included.
    paced: bool,
}

struct State<M> {
    link: Link<M>,
    /// Numbered and not yet written to this connection.
    queue: VecDeque<(u64, Arc<M>)>,
    connection: Option<Arc<Connection>>,
    /// Why nothing can be written any more.
    failure: Option<FilterError>,
    /// Someone writes, and will look at the queue again.
    writing: bool,
    frames_on_connection: u64,
    /// What the other end has been told that this one has received.
    told: u64,
    untold_bytes: u64,
    /// An acknowledgement is to be written, alone if need be.
    acknowledge: bool,
}

/// A connection, and the filters of what is written to it.
struct Connection {
    stream: TcpStream,
    /// As much it takes at once if it takes anything at all.
    little: u64,
    /// Locked by the one who writes, for one batch.
    outgoing: Option<Mutex<Outgoing>>,
}

/// What was written, and what filters saved of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Written {
    pub(crate) bytes: u64,
    pub(crate) saved: u64,
}

impl Sum for Written {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self { bytes: a.bytes + b.bytes, saved: a.saved + b.saved })
    }
}

/// Why a batch was not written.
enum Unwritten {
    Broken,
    Filter(FilterError),
}

struct Batch<M> {
    connection: Arc<Connection>,
    messages: Vec<(u64, Arc<M>)>,
    received: u64,
    sever: bool,
}

impl<M> Lane<M> {
    pub(crate) fn new(
        lay_out: for<'a> fn(&'a M, u64, u64) -> Plain<'a>,
        encodings: Option<Arc<Encodings>>,
        sever_after_frames: Option<u64>,
        paced: bool,
    ) -> Self {
        let state = State {
            link: Link::new(Sabotage::None),
            queue: VecDeque::new(),
            connection: None,
            failure: None,
            writing: false,
            frames_on_connection: 0,
            told: 0,
            untold_bytes: 0,
            acknowledge: false,
        };
        let (changed, written) = (Condvar::new(), Condvar::new());
        Self { state: Mutex::new(state), changed, written, lay_out, encodings, sever_after_frames, paced }
    }

    /// How many messages have been received.
    pub(crate) fn received(&self) -> u64 {
        self.state.lock().link.received()
    }

    /// Takes a new connection, whose other end has received so many messages, in place of the old one. What must be
    /// sent again is written, or returned where a pacer decides.
    pub(crate) fn attach(&self, stream: TcpStream, received: u64) -> Result<Vec<(u64, Arc<M>)>, LinkError> {
        let mut state = self.state.lock();
        let mut again = state.link.reconnect(received)?;
        state.queue = if self.paced { VecDeque::new() } else { std::mem::take(&mut again).into() };
        state.frames_on_connection = 0;
        let outgoing = self.encodings.as_ref().map(|encodings| Mutex::new(encodings.outgoing()));
        // Whoever may write finds a third of the buffer free, and a byte there takes two with what the system adds to it.
        let little = socket_send_buffer_size(&stream).map_or(0, |bytes| (bytes as u64 / 8).min(LITTLE_BYTES));
        if let Some(old) = state.connection.replace(Arc::new(Connection { stream, little, outgoing })) {
            shut(&old.stream);
        }
        drop(state);
        self.changed.notify_all();
        self.written.notify_all();
        Ok(again)
    }

    /// Puts a message at the end of the stream; [`Lane::flush`] or the lane's writer writes it. Returns its number.
    pub(crate) fn push(&self, message: Arc<M>) -> u64 {
        let mut state = self.state.lock();
        let number = state.link.send(Arc::clone(&message));
        state.queue.push_back((number, message));
        number
    }

    /// Puts a message that has a number already at the end of what is to be written.
    pub(crate) fn push_again(&self, number: u64, message: Arc<M>) {
        self.state.lock().queue.push_back((number, message));
    }

    /// Lets the lane's writer write an acknowledgement.
    pub(crate) fn acknowledge(&self) {
        self.state.lock().acknowledge = true;
        self.changed.notify_all();
    }

    /// Lets the lane's writer see to what was pushed.
    pub(crate) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Takes the numbers of a message that arrived; says whether it is to be taken.
    pub(crate) fn arrive(&self, header: &Header, message: &Message) -> Result<Arrival, LinkError> {
        let mut state = self.state.lock();
        state.link.acknowledge(header.acknowledged())?;
        if matches!(message, Message::Acknowledge) {
            return Ok(Arrival::Duplicate);
        }
        let arrival = state.link.arrive(header.number())?;
        if !self.paced {
            state.untold_bytes += header.wire_bytes();
            state.acknowledge |= state.has_much_untold();
        }
        Ok(arrival)
    }

    /// Whether so much has arrived without an answer that the other end should be told.
    pub(crate) fn owes_acknowledgement(&self) -> bool {
        self.state.lock().acknowledge
    }

    /// Writes what there is, unless someone is at it.
    pub(crate) fn flush(&self) -> Written {
        std::iter::from_fn(|| self.write_batch(self.state.lock())).sum()
    }

    /// Writes what there is if that is little and the connection takes it at once, which is sooner than waking the lane's
    /// writer; otherwise that one does, so that whoever calls never waits for the network.
    pub(crate) fn flush_little(&self) -> Written {
        let state = self.state.lock();
        if state.queue.is_empty() {
            return Written::default();
        }
        let takes = state.connection.as_ref().filter(|to| takes_at_once(&to.stream));
        let mut bytes = state.queue.iter().map(|(number, message)| (self.lay_out)(message, *number, 0).wire_bytes());
        let room = takes.map_or(0, |to| to.little);
        let at_once = bytes.try_fold(room, |room: u64, bytes| room.checked_sub(bytes)).is_some();
        let written = if at_once { self.write_batch(state) } else { None };
        // Who came while this was writing has left its message to it.
        if written.is_none() || self.state.lock().has_something_to_write() {
            self.wake();
        }
        written.unwrap_or_default()
    }

    /// Writes one batch of what there is, unless someone is at it, who will look again.
    fn write_batch(&self, mut state: MutexGuard<'_, State<M>>) -> Option<Written> {
        if state.writing || state.failure.is_some() {
            return None;
        }
        let batch = state.take_batch(self.sever_after_frames)?;
        state.writing = true;
        drop(state);
        let written = self.write(&batch);
        let mut state = self.state.lock();
        state.writing = false;
        self.written.notify_all();
        if let Err(unwritten) = &written {
            if let Unwritten::Filter(error) = unwritten {
                state.failure = Some(error.clone());
                self.changed.notify_all();
            }
            state.give_up(&batch.connection);
        }
        Some(written.unwrap_or_default())
    }

    /// Writes whatever is pushed from now on, and tells `count` of it, until a filter fails.
    pub(crate) fn write_forever(&self, count: impl Fn(Written)) -> FilterError {
        loop {
            let mut state = self.state.lock();
            while state.writing || !state.can_write() {
                if let Some(error) = state.failure.take() {
                    return error;
                }
                self.changed.wait(&mut state);
            }
            drop(state);
            count(self.flush());
        }
    }

    /// Waits a moment for the queue to become short; says whether it is.
    pub(crate) fn has_room(&self) -> bool {
        let mut state = self.state.lock();
        if state.queue.len() > QUEUE_MESSAGES_MAX {
            self.written.wait_for(&mut state, Duration::from_millis(100));
        }
        state.queue.len() <= QUEUE_MESSAGES_MAX
    }

    /// Waits until everything has been handed to the operating system.
    pub(crate) fn drain(&self, deadline: Instant) -> bool {
        let mut state = self.state.lock();
        while state.writing || state.connection.is_none() || !state.queue.is_empty() {
            if self.written.wait_until(&mut state, deadline).timed_out() {
                return false;
            }
        }
        true
    }

    fn write(&self, batch: &Batch<M>) -> Result<Written, Unwritten> {
        let Connection { stream, outgoing, .. } = &*batch.connection;
        let mut outgoing = outgoing.as_ref().map(|outgoing| outgoing.lock());
        let mut saved = 0;
        let mut encode = |(number, message)| {
            let plain = (self.lay_out)(message, number, batch.received);
            let Some(outgoing) = &mut outgoing else { return Ok(plain.seal()) };
            let bytes = plain.wire_bytes();
            let encoded = outgoing.encode(plain).map_err(Unwritten::Filter)?;
            saved += bytes.saturating_sub(encoded.wire_bytes());
            Ok(encoded)
        };
        let messages = batch.messages.iter().map(|(number, message)| (*number, &**message));
        let frames: Vec<Encoded<'_>> = messages.map(&mut encode).collect::<Result<_, Unwritten>>()?;
        if batch.sever {
            let some = frames.first().map_or(&[][..], |frame| &frame.header()[..START_BYTES / 2]);
            return Err((&*stream).write_all(some).map_or(Unwritten::Broken, |()| Unwritten::Broken));
        }
        let written = if frames.is_empty() {
            write_frames(&mut &*stream, &[Message::Acknowledge.encode(0, batch.received)])
        } else {
            write_frames(&mut &*stream, &frames)
        };
        written.map(|bytes| Written { bytes, saved }).map_err(|_| Unwritten::Broken)
    }
}

impl<M> State<M> {
    fn has_much_untold(&self) -> bool {
        self.link.received() - self.told >= UNACKNOWLEDGED_MESSAGES || self.untold_bytes >= UNACKNOWLEDGED_BYTES
    }

    fn can_write(&self) -> bool {
        self.connection.is_some() && self.failure.is_none() && self.has_something_to_write()
    }

    fn has_something_to_write(&self) -> bool {
        !self.queue.is_empty() || self.acknowledge
    }

    fn take_batch(&mut self, sever_after_frames: Option<u64>) -> Option<Batch<M>> {
        if !self.has_something_to_write() {
            return None;
        }
        let connection = Arc::clone(self.connection.as_ref()?);
        // Those before the frame that breaks the connection get through, however many wait.
        let whole = sever_after_frames.map(|frames| frames.saturating_sub(self.frames_on_connection).max(1) as usize);
        let count = self.queue.len().min(BATCH_MESSAGES).min(whole.unwrap_or(BATCH_MESSAGES));
        let messages: Vec<_> = self.queue.drain(..count).collect();
        self.frames_on_connection += messages.len() as u64;
        let sever = sever_after_frames.is_some_and(|frames| self.frames_on_connection > frames);
        let received = self.link.received();
        (self.told, self.untold_bytes, self.acknowledge) = (received, 0, false);
        Some(Batch { connection, messages, received, sever })
    }

    fn give_up(&mut self, broken: &Arc<Connection>) {
        if self.connection.as_ref().is_some_and(|current| Arc::ptr_eq(current, broken)) {
            self.connection = None;
        }
        // The reader of the connection notices, and sees to a new one.
        shut(&broken.stream);
    }
}

fn takes_at_once(stream: &TcpStream) -> bool {
    let mut polled = [PollFd::new(stream, PollFlags::OUT)];
    poll(&mut polled, Some(&Timespec::default())).is_ok() && polled[0].revents() == PollFlags::OUT
}

/// Ends a connection for both of its halves. One that has ended already is as good.
pub(crate) fn shut(stream: &TcpStream) {
    drop(stream.shutdown(Shutdown::Both));
}
