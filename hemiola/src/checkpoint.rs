//! Checkpoints: what a job saves while it runs, and how it goes on from there.
//!
//! A checkpoint holds the tables exactly after a clock and what each worker handed in there with
//! [`Worker::save`](crate::Worker::save). It is a directory `clock-0000000123` with a file for each shard and each
//! worker, written by the processes that own them, and a `manifest.json` with the checksums of all. The process that
//! started the job gives the directory its name when every file is there and on the disk; until then it is called
//! `clock-0000000123.partial`, and `clock-0000000123.removed` while it is removed; a run that finds such leftovers
//! removes them. That process has locked a file `.lock` there until it ends, so that two jobs do not save in one place;
//! whoever lists or checks what is there need not care.
//!
//! Rows are found by their ids, so a job may go on with another number of servers or on another driver; the number of
//! workers must be the same. A checkpoint that cannot be written ends nothing: the job says so once, goes on, and
//! counts those that are missing when it ends.

mod directory;
mod error;
mod file;
mod saver;

pub use directory::{Checkpoint, FileEntry, Listed, Manifest, TableEntry, choose, find, list};
pub use error::CheckpointError;
pub use hemiola_core::checkpoint::{Every, young_interval};

pub(crate) use directory::{Directory, Facts};
pub(crate) use saver::{Keeper, PART_BYTES, Publisher, Rests, Saver, Task, Vault};

use hemiola_core::Job;
use std::path::PathBuf;

/// Where and how often a job is saved, and what it goes on from.
#[derive(Debug, Clone)]
pub struct Checkpoints {
    /// Where checkpoints go. It is made if it is not there.
    pub directory: PathBuf,
    /// How often one is taken.
    pub every: Every,
    /// How many are kept; older ones are removed when a new one is whole.
    pub keep: usize,
    /// A directory of checkpoints, whose newest the job goes on from, or one checkpoint.
    pub resume: Option<PathBuf>,
    /// What must be the same in a job that goes on, by name: settings, and what tells the data from others.
    pub identity: Vec<(String, String)>,
}

impl Checkpoints {
    /// The newest two checkpoints in `directory`, one after every so many clocks.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>, every: Every) -> Self {
        Self { directory: directory.into(), every, keep: 2, resume: None, identity: Vec::new() }
    }

    /// Finds what the job goes on from, and makes the directory ready.
    pub(crate) fn prepare(&self, job: &Job) -> Result<(Publisher, Option<Checkpoint>), CheckpointError> {
        let directory = self.directory(job);
        let resumed = self.resume.as_deref().map(choose).transpose()?;
        if let Some(checkpoint) = &resumed {
            checkpoint.check(&directory.facts)?;
        }
        let lock = directory.prepare(resumed.as_ref())?;
        Ok((Publisher::new(directory, lock, self.keep), resumed))
    }

    pub(crate) fn directory(&self, job: &Job) -> Directory {
        Directory { path: self.directory.clone(), facts: Facts::new(job, &self.identity) }
    }
}
