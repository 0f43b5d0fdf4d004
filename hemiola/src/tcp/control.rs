//! What a process tells its launcher, at once but for clocks: those are wanted only when the process dies, and a message
//! for each would cost more than a short clock's work. Under a budget it is told as that lets it: what a worker returns may
//! be as long as a model.

use crate::tcp::say;
use hemiola_core::coordinator::ToCoordinator;
use hemiola_core::{Clock, WorkerId};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How much later than it begins a clock is told at most.
const CLOCKS_EVERY: Duration = Duration::from_millis(20);

/// The way to the launcher.
#[derive(Clone, Default)]
pub(crate) struct ControlSender(Arc<Outbox>);

#[derive(Default)]
struct Outbox {
    /// Locked for a few lines, never while writing.
    untold: Mutex<Untold>,
    /// There is something to tell.
    changed: Condvar,
    /// What waits for room in a budget.
    pace: OnceLock<Pace>,
}

/// Waits until so many bytes may be sent, or the first of them, and says how many.
type Pace = Box<dyn Fn(usize) -> usize + Send + Sync>;

#[derive(Default)]
struct Untold {
    messages: Vec<ToCoordinator>,
    /// The last clock of each worker that has begun another.
    clocks: BTreeMap<WorkerId, Clock>,
    /// The connection is gone.
    gone: bool,
}

impl ControlSender {
    /// Sends a message, unless the connection is gone: then the process is about to end.
    pub(crate) fn tell(&self, message: ToCoordinator) {
        let mut untold = self.0.untold.lock();
        if untold.gone {
            say("the launcher can no longer be told anything");
            return;
        }
        untold.messages.push(message);
        self.0.changed.notify_one();
    }

    /// Lets the launcher know a worker's clock before long.
    pub(crate) fn tell_clock(&self, worker: WorkerId, clock: Clock) {
        let mut untold = self.0.untold.lock();
        if untold.clocks.is_empty() {
            self.0.changed.notify_one();
        }
        untold.clocks.insert(worker, clock);
    }

    /// Waits with `pace` before everything that is written from now on.
    pub(crate) fn keep_to(&self, pace: impl Fn(usize) -> usize + Send + Sync + 'static) {
        let first = self.0.pace.set(Box::new(pace));
        assert!(first.is_ok(), "a process has one budget");
    }

    /// Writes to `output` as the budget lets it.
    pub(crate) fn paced<W: Write>(&self, output: W) -> impl Write + use<W> {
        PacedWriter { output, outbox: Arc::clone(&self.0) }
    }

    /// Hands everything to `send`, until that says that the connection is gone.
    pub(crate) fn write_forever(&self, mut send: impl FnMut(&ToCoordinator) -> bool) {
        let Outbox { untold, changed, .. } = &*self.0;
        let mut clocks_at = Instant::now();
        loop {
            let mut untold = untold.lock();
            while untold.messages.is_empty() && (untold.clocks.is_empty() || Instant::now() < clocks_at) {
                if untold.clocks.is_empty() {
                    changed.wait(&mut untold);
                } else {
                    changed.wait_until(&mut untold, clocks_at);
                }
            }
            let Untold { messages, clocks, .. } = std::mem::take(&mut *untold);
            drop(untold);
            if !clocks.is_empty() {
                clocks_at = Instant::now() + CLOCKS_EVERY;
            }
            // What a worker says of itself is said at its clock.
            let clocks = clocks.into_iter().map(|(worker, clock)| ToCoordinator::Clock { worker, clock });
            if !clocks.chain(messages).all(|message| send(&message)) {
                self.0.untold.lock().gone = true;
                return;
            }
        }
    }
}

struct PacedWriter<W> {
    output: W,
    outbox: Arc<Outbox>,
}

impl<W: Write> Write for PacedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(pace) = self.outbox.pace.get() else { return self.output.write(bytes) };
        let now = pace(bytes.len());
        self.output.write_all(&bytes[..now])?;
        Ok(now)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_clock_is_told_before_what_comes_after_it() {
        let sender = ControlSender::default();
        let told = |clock| ToCoordinator::Clock { worker: WorkerId(0), clock: Clock(clock) };
        let failed = ToCoordinator::Failed { reason: "no data".to_owned() };
        (1..4).for_each(|clock| sender.tell_clock(WorkerId(0), Clock(clock)));
        sender.tell(failed.clone());
        let mut sent = Vec::new();
        sender.write_forever(|message| {
            sent.push(message.clone());
            sent.len() < 2
        });
        assert_eq!(sent, [told(3), failed]);
    }
}
