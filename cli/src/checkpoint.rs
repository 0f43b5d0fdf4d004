//! `hemiola checkpoint`: lists the checkpoints of a training, and checks that they are whole.

use crate::progress::{say, span};
use anyhow::Result;
use clap::{Args, Subcommand};
use hemiola::checkpoint::{Checkpoint, CheckpointError, find};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

/// What to do with checkpoints.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// List the checkpoints of a directory, oldest first
    List {
        /// Where a training was saved
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Read every file of every checkpoint, or of one, and check that it is what was written
    Verify {
        /// Where a training was saved, or one of its checkpoints
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.what {
        What::List { directory } => tell(directory, |checkpoint| Ok(describe(checkpoint))),
        What::Verify { directory } => tell(directory, |checkpoint| checkpoint.verify().map(|()| "good".to_owned())),
    }
}

/// Writes a line for each checkpoint; fails if there is none, or if something is wrong with one.
fn tell(path: &Path, line: impl Fn(&Checkpoint) -> Result<String, CheckpointError>) -> Result<()> {
    let found = find(path)?;
    if found.is_empty() {
        return Err(CheckpointError::None { path: path.to_owned() }.into());
    }
    let mut out = stdout().lock();
    let mut outcome = Ok(());
    for (path, checkpoint) in found {
        match checkpoint.and_then(|checkpoint| line(&checkpoint)) {
            Ok(line) => writeln!(out, "{}  {line}", path.display())?,
            Err(error) => {
                writeln!(out, "{}  bad", path.display())?;
                if let Err(before) = std::mem::replace(&mut outcome, Err(error.into())) {
                    say(&format!("hemiola: {before}"));
                }
            }
        }
    }
    outcome
}

fn describe(checkpoint: &Checkpoint) -> String {
    let manifest = &checkpoint.manifest;
    let (workers, servers) = (plural(manifest.workers, "worker"), plural(manifest.servers, "shard"));
    let megabytes = checkpoint.bytes() as f64 / 1e6;
    let model = manifest.setting("model").map(|model| format!("{model}, ")).unwrap_or_default();
    let age = checkpoint.written().and_then(|time| time.elapsed().ok());
    let written = age.map(|age| format!(", {} ago", span(age.as_secs_f64()))).unwrap_or_default();
    format!(
        "{model}clock {}, {workers}, {servers}, {megabytes:.1} MB in {:.2} s{written}",
        manifest.clock, manifest.seconds
    )
}

fn plural(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
