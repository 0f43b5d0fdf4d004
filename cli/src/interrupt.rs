//! Ctrl-C ends the program at once, but leaves nothing half written.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static WRITING: Mutex<()> = Mutex::new(());
/// Files that are not to be left behind.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// As a shell reports a program that was interrupted.
const INTERRUPTED: i32 = 130;

/// Makes Ctrl-C wait for [`hold`].
///
/// # Errors
/// If the operating system refuses the handler.
pub(crate) fn install() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        let _writing = hold();
        for path in unfinished().drain(..) {
            // Nobody is left to tell when the removal fails.
            std::fs::remove_file(path).unwrap_or_default();
        }
        crate::progress::say("hemiola: interrupted");
        std::process::exit(INTERRUPTED);
    })?;
    Ok(())
}

/// Keeps Ctrl-C waiting until the guard is dropped.
pub(crate) fn hold() -> MutexGuard<'static, ()> {
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ctrl-C removes this file from now on.
pub(crate) fn begin(path: &Path) {
    unfinished().push(path.to_owned());
}

/// Ctrl-C leaves the file where it is again.
pub(crate) fn end(path: &Path) {
    unfinished().retain(|other| other != path);
}

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}
