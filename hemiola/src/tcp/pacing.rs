//! The pacer of a process and the thread that serves it: what the process has to say waits here, and gets into a lane
//! when the budget lets it.

use crate::tcp::lane::Lane;
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
    pacer: Mutex<Pacer<Arc<M>>>,
    /// There is something to send, or it may be sent again.
    changed: Condvar,
    /// The queue has become shorter.
    shorter: Condvar,
    lanes: Vec<Arc<Lane<M>>>,
    bytes_of: fn(&M) -> u64,
    began: Instant,
}

impl<M> Pacing<M> {
    pub(crate) fn new(budget: &Budget, lanes: &[Arc<Lane<M>>], bytes_of: fn(&M) -> u64) -> Self {
        Self {
            pacer: Mutex::new(Pacer::new(budget)),
            changed: Condvar::new(),
            shorter: Condvar::new(),
            lanes: lanes.to_vec(),
            bytes_of,
            began: Instant::now(),
        }
    }

    /// Puts a message at the end.
    pub(crate) fn send(&self, to: usize, message: Arc<M>) {
        let mut pacer = self.pacer.lock();
        let first = pacer.queued() == 0;
        pacer.push(to, (self.bytes_of)(&message), message);
        drop(pacer);
        // Behind others it waits for the bucket anyway.
        if first {
            self.changed.notify_one();
        }
    }

    /// Gives a lane a new connection. The pacer is locked all the while, so that nothing new gets into the lane ahead
    /// of what must be sent again.
    pub(crate) fn attach(&self, to: usize, stream: TcpStream, received: u64) -> Result<(), LinkError> {
        let mut pacer = self.pacer.lock();
        let again = self.lanes[to].attach(stream, received)?;
        let again = again.into_iter().map(|(number, message)| (number, (self.bytes_of)(&message), message));
        pacer.push_again(to, again);
        drop(pacer);
        self.changed.notify_one();
        Ok(())
    }

    /// Filters made messages that were sent shorter by so much than was planned for.
    pub(crate) fn saved(&self, bytes: u64) {
        self.pacer.lock().saved(bytes);
    }

    /// Takes note of a message that came in over a lane.
    pub(crate) fn arrived(&self, to: usize, header: &Header, message: &Message) {
        let mut pacer = self.pacer.lock();
        pacer.acknowledged(to, header.acknowledged());
        if !matches!(message, Message::Acknowledge) {
            pacer.received(to, header.frame_bytes(), self.began.elapsed());
        }
        // Otherwise the pacing thread looks around often enough by itself.
        let waits_for_this = pacer.is_backing_off();
        drop(pacer);
        if waits_for_this {
            self.changed.notify_one();
        }
    }

    /// Serves the pacer; `early` is asked for something to send when there is room. Never returns.
    pub(crate) fn run(&self, early: impl Fn(usize)) -> ! {
        let mut pacer = self.pacer.lock();
        loop {
            let now = self.began.elapsed();
            match pacer.turn(now) {
                Turn::Send { to, number, message } => {
                    let (lane, bytes) = (&self.lanes[to], (self.bytes_of)(&message));
                    let number = match number {
                        Some(number) => {
                            lane.push_again(number, message);
                            number
                        }
                        None => lane.push(message),
                    };
                    pacer.sent(to, number, bytes, now);
                    lane.wake();
                    self.shorter.notify_all();
                }
                Turn::Acknowledge { to } => self.lanes[to].acknowledge(),
                Turn::Ask { bytes } => MutexGuard::unlocked(&mut pacer, || early(bytes)),
                Turn::Wait { until: Some(until) } => {
                    self.changed.wait_until(&mut pacer, self.began + until);
                }
                Turn::Wait { until: None } => self.changed.wait(&mut pacer),
            }
        }
    }

    /// Waits a moment for the queue to become short; says whether it is.
    pub(crate) fn has_room(&self) -> bool {
        let mut pacer = self.pacer.lock();
        if pacer.queued() > QUEUE_MESSAGES_MAX {
            self.shorter.wait_for(&mut pacer, Duration::from_millis(100));
        }
        pacer.queued() <= QUEUE_MESSAGES_MAX
    }

    /// Waits until everything is in a lane.
    pub(crate) fn drain(&self, deadline: Instant) -> bool {
        let mut pacer = self.pacer.lock();
        while pacer.queued() > 0 {
            if self.shorter.wait_until(&mut pacer, deadline).timed_out() {
                return false;
            }
        }
        true
    }
}
