//! The report of a run: JSON lines, first its configuration, then every evaluation, last a summary.

use crate::filters;
use crate::outputs::unwritable;
use anyhow::Result;
use hemiola::{Outcome, WorkerSplit};
use serde::Serialize;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A report being written, or none where none was asked for.
pub(crate) struct Report {
    file: Option<(PathBuf, File)>,
}

impl Report {
    /// Begins a report, or adds to that of the run that is continued.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub(crate) fn create(path: Option<&Path>, continued: bool) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).write(true).append(continued).truncate(!continued);
        let open = |path: &Path| match options.open(path) {
            Ok(file) => Ok((path.to_owned(), file)),
            Err(error) => Err(unwritable(path, error)),
        };
        Ok(Self { file: path.map(open).transpose()? })
    }

    /// Adds a line, at once in the file so that others can follow: `event` and the fields of `content`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn line(&mut self, event: &str, content: &impl Serialize) -> Result<()> {
        let Some((path, file)) = &mut self.file else { return Ok(()) };
        let mut line = json!({ "event": event });
        if let (Value::Object(line), Value::Object(content)) = (&mut line, serde_json::to_value(content)?) {
            line.extend(content);
        }
        writeln!(file, "{line}").map_err(|error| unwritable(path, error))
    }
}

/// What the summary of any run says: seconds, staleness, and where the workers' time and bytes went.
pub(crate) fn summary(outcome: &Outcome) -> Value {
    let staleness: Vec<Value> = outcome
        .histogram
        .iter()
        .map(|(differential, reads)| json!({ "differential": differential, "reads": reads }))
        .collect();
    let total = |bytes: fn(&WorkerSplit) -> u64| outcome.splits.iter().map(bytes).sum::<u64>();
    json!({
        "seconds": outcome.seconds,
        "bytes_sent": total(|split| split.bytes_sent),
        "bytes_received": total(|split| split.bytes_received),
        "staleness_mean": outcome.histogram.mean(),
        "staleness": staleness,
        "filters": outcome.savings,
        "workers": outcome.splits,
    })
}

/// What travelled each way, for people.
pub(crate) fn traffic(outcome: &Outcome) -> String {
    let megabytes = |bytes: fn(&WorkerSplit) -> u64| outcome.splits.iter().map(bytes).sum::<u64>() as f64 / 1e6;
    let (sent, received) = (megabytes(|split| split.bytes_sent), megabytes(|split| split.bytes_received));
    format!("{sent:.1} MB from workers, {received:.1} MB to them")
}

/// Tells people where the workers' time went and how stale their reads were.
///
/// # Errors
/// If nobody reads it.
pub(crate) fn tell(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    if outcome.splits.len() <= WORKERS_TOLD {
        for (worker, split) in outcome.splits.iter().enumerate() {
            writeln!(out, "{:<14} {}", format!("worker {worker}"), share(std::slice::from_ref(split)))?;
        }
    } else {
        writeln!(out, "{:<14} {}", format!("{} workers", outcome.splits.len()), share(&outcome.splits))?;
    }
    let total: u64 = outcome.histogram.iter().map(|(_, reads)| reads).sum();
    let part =
        |(differential, reads): (i64, u64)| format!("{:.0} % at {differential}", 100.0 * reads as f64 / total as f64);
    let parts: Vec<String> = outcome.histogram.iter().map(part).collect();
    // Pulls of tasks are no reads within a bound of clocks.
    if total > 0 {
        writeln!(out, "staleness      {} of reads", parts.join(", "))?;
    }
    filters::tell(out, &outcome.savings)
}

/// More workers than these are told of together.
const WORKERS_TOLD: usize = 8;

fn share(splits: &[WorkerSplit]) -> String {
    let sum = |part: fn(&WorkerSplit) -> f64| splits.iter().map(part).sum::<f64>();
    let (compute, wait, communication) =
        (sum(|split| split.compute_seconds), sum(|split| split.wait_seconds), sum(|split| split.communication_seconds));
    let percent = |seconds: f64| 100.0 * seconds / (compute + wait + communication).max(f64::MIN_POSITIVE);
    format!(
        "{:.0} % computing, {:.0} % waiting, {:.0} % communicating",
        percent(compute),
        percent(wait),
        percent(communication)
    )
}
