//! `hemiola checkpoint`: lists the checkpoints of a training, and checks that they are whole.

use crate::progress::say;
use anyhow::Result;
use clap::{Args, Subcommand};
use hemiola::checkpoint::{Checkpoint, CheckpointError, find};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

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
    let written = checkpoint.written().map(|time| format!(", {}", date(time))).unwrap_or_default();
    format!(
        "{model}clock {}, {workers}, {servers}, {megabytes:.1} MB in {:.2} s{written}",
        manifest.clock, manifest.seconds
    )
}

/// The date and the minute, in universal time.
fn date(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (mut day, minute) = (seconds / 86400, seconds / 60 % 1440);
    let mut year = 1970;
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = |year: u64| 365 + u64::from(is_leap(year));
    while day >= days(year) {
        day -= days(year);
        year += 1;
    }
    let mut month = 1;
    for days in [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    format!("{year}-{month:02}-{:02} {:02}:{:02} UTC", day + 1, minute / 60, minute % 60)
}

fn plural(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59 UTC"),
            (1_735_689_599, "2024-12-31 23:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(date(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }
}
