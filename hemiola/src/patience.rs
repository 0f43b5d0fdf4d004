//! How to wait for what may come at once: to be woken costs tens of microseconds where the processor has gone to sleep
//! meanwhile, and to look again costs one.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What takes longer is better slept through.
const SHORT: Duration = Duration::from_micros(100);
/// So many short waits in a row let one expect another.
const SHORT_WAITS: u32 = 8;

/// Looks again and again before it sleeps, but only where the last waits were short, so that whoever is idle or
/// computes for long takes no processor from others.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    /// How many of the last waits were short. Waits of several threads are counted together, and nothing but time
    /// depends on it.
    short: AtomicU32,
}

/// How to look for what is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// Whether it is there now.
    Look,
    /// Until it is there.
    Sleep,
}

impl Patience {
    /// What `attempt` finds.
    pub(crate) fn wait<T>(&self, mut attempt: impl FnMut(Attempt) -> Option<T>) -> T {
        if let Some(found) = attempt(Attempt::Look) {
            return found;
        }
        let began = Instant::now();
        while self.short.load(Ordering::Relaxed) >= SHORT_WAITS && began.elapsed() < SHORT {
            // With more threads than processors, what is waited for may need this one.
            thread::yield_now();
            if let Some(found) = attempt(Attempt::Look) {
                return found;
            }
        }
        loop {
            if let Some(found) = attempt(Attempt::Sleep) {
                let short = if began.elapsed() < SHORT { self.short.load(Ordering::Relaxed) + 1 } else { 0 };
                self.short.store(short, Ordering::Relaxed);
                return found;
            }
        }
    }
}
