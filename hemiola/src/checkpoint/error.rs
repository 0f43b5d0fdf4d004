//! What can be wrong with a checkpoint, each in a sentence that names the file.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a checkpoint cannot be used, or a directory of checkpoints cannot.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum CheckpointError {
    #[error("{}: holds no checkpoint", path.display())]
    None { path: PathBuf },
    #[error("{}: is no checkpoint; expected a directory with a {}", path.display(), super::directory::MANIFEST)]
    NotACheckpoint { path: PathBuf },
    #[error("{}: cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{}: cannot be removed: {source}", path.display())]
    Remove { path: PathBuf, source: io::Error },
    #[error("{}: is damaged: {reason}", path.display())]
    Damaged { path: PathBuf, reason: String },
    #[error("{}: has version {version} of the format, and this program reads version {expected}", path.display())]
    Version { path: PathBuf, version: u64, expected: u32 },
    #[error("{}: is missing", path.display())]
    Missing { path: PathBuf },
    #[error("{}: is of {found}, and belongs to {expected}", path.display())]
    MixedUp { path: PathBuf, found: String, expected: String },
    #[error("{source}; the newest good checkpoint before it is {}", offer.display())]
    Offer { source: Box<CheckpointError>, offer: PathBuf },
    #[error("{source}; there is no good one before it")]
    NoOffer { source: Box<CheckpointError> },
    #[error("{}: was made by {then} workers, and this job has {now}; it can go on only with as many", path.display())]
    Workers { path: PathBuf, then: u32, now: u32 },
    #[error("{}: was made with {what} {then}, and this job has {what} {now}", path.display())]
    Differs { path: PathBuf, what: String, then: String, now: String },
    #[error(
        "{}: already holds checkpoints, the newest of clock {clock}; resume from there or give another directory",
        path.display()
    )]
    InUse { path: PathBuf, clock: u32 },
    #[error("{}: another training is saving there; wait until it has ended or give another directory", path.display())]
    Locked { path: PathBuf },
}
