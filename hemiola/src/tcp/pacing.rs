//! The pacer of a process: what the process has to say waits here, and gets into a lane when the budget lets it. Whoever
//! has something to send sees to that at once; a thread sees to what has to wait, and asks for early data.

use crate::tcp::lane::{Lane, Written};
use hemiola_core::codec::{Header, Message};
use hemiola_core::link::LinkError;
use hemiola_core::pacer::Turn;
use hemiola_core::{Budget, Pacer};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A worker waits when so many messages wait for their turn.
const QUEUE_MESSAGES_MAX: usize = 256;

/// A pacer in front of all lanes of a process. A stream is a lane's place.
pub(crate) struct Pacing<M> {
    /// Locked for a few lines at a time: by whoever has something to send while he holds a client or a shard, by the
    /// readers of connections, and by the pacing thread, which holds no other lock but a lane's then.
    paced: Mutex<Paced<M>>,
    /// There is something to send, or it may be sent again.
    changed: Condvar,
    /// The queue has become shorter.
    shorter: Condvar,
    lanes: Vec<Arc<Lane<M>>>,
    bytes_of: fn(&M) -> u64,
    began: Instant,
}

struct Paced<M> {
    pacer: Pacer<Arc<M>>,
    /// Until when the pacing thread sleeps if nobody wakes it; nothing while it is awake.
    asleep_until: Option<Duration>,
}

impl<M> Pacing<M> {
    pub(crate) fn new(budget: &Budget, lanes: &[Arc<Lane<M>>], bytes_of: fn(&M) -> u64) -> Self {
        Self {
            paced: Mutex::new(Paced { pacer: Pacer::new(budget), asleep_until: None }),
            changed: Condvar::new(),
            shorter: Condvar::new(),
            lanes: lanes.to_vec(),
            bytes_of,
            began: Instant::now(),
        }
    }

    /// Puts a message at the end, where [`Pacing::flush_little`] finds it.
    pub(crate) fn send(&self, to: usize, message: Arc<M>) {
        self.paced.lock().pacer.push(to, (self.bytes_of)(&message), message);
    }

    /// Sends what the budget lets go now as [`Lane::flush_little`] does, and leaves the rest to the pacing thread.
    pub(crate) fn flush_little(&self) -> Written {
        let mut paced = self.paced.lock();
        while paced.pacer.queued() > 0 {
            let now = self.began.elapsed();
            match paced.pacer.turn(now) {
                Turn::Send { to, number, message } => self.forward(&mut paced.pacer, (to, number, message), now),
                Turn::Acknowledge { to } => self.lanes[to].acknowledge(),
                Turn::Wait { until } => {
                    let until = until.unwrap_or(Duration::MAX);
                    if paced.asleep_until.is_some_and(|asleep_until| until < asleep_until) {
                        self.changed.notify_one();
                    }
                    break;
                }
                Turn::Ask { .. } => break,
            }
        }
        drop(paced);
        self.write(&self.lanes)
    }

    /// Puts a message whose turn it is into its lane.
    fn forward(&self, pacer: &mut Pacer<Arc<M>>, (to, number, message): (usize, Option<u64>, Arc<M>), now: Duration) {
        let (lane, bytes) = (&self.lanes[to], (self.bytes_of)(&message));
        let number = match number {
            Some(number) => {
                lane.push_again(number, message);
                number
            }
            None => lane.push(message),
        };
        pacer.sent(to, number, bytes, now);
        self.shorter.notify_all();
    }

    /// Writes what is in some lanes, or lets their writers do it.
    fn write(&self, lanes: &[Arc<Lane<M>>]) -> Written {
        let written: Written = lanes.iter().map(|lane| lane.flush_little()).sum();
        self.saved(written.saved);
        written
    }

    /// Gives a lane a new connection. The pacer is locked all the while, so that nothing new gets into the lane ahead
    /// of what must be sent again.
    pub(crate) fn attach(&self, to: usize, stream: TcpStream, received: u64) -> Result<(), LinkError> {
        let mut paced = self.paced.lock();
        let again = self.lanes[to].attach(stream, received)?;
        let again = again.into_iter().map(|(number, message)| (number, (self.bytes_of)(&message), message));
        paced.pacer.push_again(to, again);
        drop(paced);
        self.changed.notify_one();
        Ok(())
    }

    /// Filters made messages that were sent shorter by so much than was planned for.
    pub(crate) fn saved(&self, bytes: u64) {
        if bytes > 0 {
            self.paced.lock().pacer.saved(bytes);
        }
    }

    /// Takes note of a message that came in over a lane.
    pub(crate) fn arrived(&self, to: usize, header: &Header, message: &Message) {
        let mut paced = self.paced.lock();
        paced.pacer.acknowledged(to, header.acknowledged());
        if !matches!(message, Message::Acknowledge) {
            paced.pacer.received(to, header.frame_bytes(), self.began.elapsed());
        }
        // Otherwise the pacing thread looks around often enough by itself.
        let waits_for_this = paced.pacer.is_backing_off();
        drop(paced);
        if waits_for_this {
            self.changed.notify_one();
        }
    }

    /// Serves the pacer: `early` is asked for something to send when there is room, and `count` told of what was written.
    /// Never returns.
    pub(crate) fn run(&self, early: impl Fn(usize), count: impl Fn(Written)) -> ! {
        let mut paced = self.paced.lock();
        loop {
            let now = self.began.elapsed();
            match paced.pacer.turn(now) {
                Turn::Send { to, number, message } => {
                    self.forward(&mut paced.pacer, (to, number, message), now);
                    MutexGuard::unlocked(&mut paced, || count(self.write(&self.lanes[to..=to])));
                }
                Turn::Acknowledge { to } => self.lanes[to].acknowledge(),
                Turn::Ask { bytes } => MutexGuard::unlocked(&mut paced, || early(bytes)),
                Turn::Wait { until } => {
                    paced.asleep_until = Some(until.unwrap_or(Duration::MAX));
                    match until {
                        Some(until) => drop(self.changed.wait_until(&mut paced, self.began + until)),
                        None => self.changed.wait(&mut paced),
                    }
                    paced.asleep_until = None;
                }
            }
        }
    }

    /// Waits until so many bytes may be sent another way than over a lane, or the first of them; says how many.
    pub(crate) fn wait_for_room(&self, bytes: usize) -> usize {
        let now = self.began.elapsed();
        let (bytes, at) = self.paced.lock().pacer.make_room(bytes, now);
        std::thread::sleep(at - now);
        bytes
    }

    /// Waits a moment for the queue to become short; says whether it is.
    pub(crate) fn has_room(&self) -> bool {
        let mut paced = self.paced.lock();
        if paced.pacer.queued() > QUEUE_MESSAGES_MAX {
            self.shorter.wait_for(&mut paced, Duration::from_millis(100));
        }
        paced.pacer.queued() <= QUEUE_MESSAGES_MAX
    }

    /// Waits until everything is in a lane.
    pub(crate) fn drain(&self, deadline: Instant) -> bool {
        let mut paced = self.paced.lock();
        while paced.pacer.queued() > 0 {
            if self.shorter.wait_until(&mut paced, deadline).timed_out() {
                return false;
            }
        }
        true
    }
}
