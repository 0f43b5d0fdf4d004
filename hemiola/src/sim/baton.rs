//! The baton: of all threads of a simulation, the one that holds it runs.

use parking_lot::{Condvar, Mutex};

/// Where one thread waits for the baton.
#[derive(Default)]
pub(super) struct Seat {
    given: Mutex<bool>,
    changed: Condvar,
}

impl Seat {
    /// Gives the baton to the thread that waits here, or will.
    pub(super) fn give(&self) {
        *self.given.lock() = true;
        self.changed.notify_one();
    }

    /// Waits for the baton.
    pub(super) fn take(&self) {
        let mut given = self.given.lock();
        while !*given {
            self.changed.wait(&mut given);
        }
        *given = false;
    }
}
