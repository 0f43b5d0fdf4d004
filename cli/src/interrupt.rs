//! Ctrl-C ends the program at once, but never between the first and the last byte of something it writes.

use std::sync::{Mutex, MutexGuard, PoisonError};

static WRITING: Mutex<()> = Mutex::new(());

/// As a shell reports a program that was interrupted.
const INTERRUPTED: i32 = 130;

/// Makes Ctrl-C wait for [`hold`].
///
/// # Errors
/// If the operating system refuses the handler.
pub(crate) fn install() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        let _writing = hold();
        crate::progress::say("hemiola: interrupted");
        std::process::exit(INTERRUPTED);
    })?;
    Ok(())
}

/// Keeps Ctrl-C waiting until the guard is dropped.
pub(crate) fn hold() -> MutexGuard<'static, ()> {
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}
