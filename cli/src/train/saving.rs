//! The options that say where a training is saved, how often, and what it goes on from.

use crate::failure::usage;
use crate::{numbers, outputs};
use anyhow::{Result, bail};
use clap::Args;
use hemiola::checkpoint::{CheckpointError, Checkpoints, Every, Listed, find};
use std::path::{Path, PathBuf};

/// The mean time to failure of a machine, unless told otherwise: a month.
const TIME_TO_FAILURE: f64 = 30.0 * 86400.0;

/// Where a training is saved, how often, and what it goes on from.
#[derive(Args)]
#[command(next_help_heading = "Checkpoints")]
pub(crate) struct Options {
    /// Save the training there as it goes; one that cannot be written is warned of, and the training goes on
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<PathBuf>,
    /// Save after so many epochs, or passes of lda, some of which come before its first epoch; auto: as often as loses the
    /// least time [default: auto]
    #[arg(long, value_name = "EPOCHS|auto", value_parser = interval, allow_negative_numbers = true)]
    checkpoint_every: Option<Interval>,
    /// How many checkpoints are kept [default: 2]
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_negative_numbers = true)]
    checkpoint_keep: Option<u32>,
    /// How long a machine lives on average, for --checkpoint-every auto [default: 30d]
    #[arg(long, value_name = "TIME", value_parser = numbers::lifetime, allow_negative_numbers = true)]
    time_to_failure: Option<f64>,
    /// Go on from the newest checkpoint there, or from this one, and save where it was saved unless told otherwise
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq)]
enum Interval {
    Epochs(u32),
    Auto,
}

fn interval(text: &str) -> Result<Interval, String> {
    if text == "auto" {
        return Ok(Interval::Auto);
    }
    let epochs = numbers::count(text).map_err(|_| "expected a whole number of 1 or more, or auto".to_owned());
    epochs.map(Interval::Epochs)
}

impl Options {
    /// Which of the options that ask for checkpoints were given.
    pub(crate) fn given(&self) -> [(&'static str, bool); 2] {
        [("--checkpoint", self.checkpoint.is_some()), ("--resume", self.resume.is_some())]
    }

    /// What the options say together, for epochs of so many clocks.
    ///
    /// # Errors
    /// If they contradict one another.
    pub(crate) fn meaning(&self, clocks_per_epoch: u32) -> Result<Option<Checkpoints>> {
        let Some(directory) = self.directory() else {
            let given = [
                ("--checkpoint-every", self.checkpoint_every.is_some()),
                ("--checkpoint-keep", self.checkpoint_keep.is_some()),
                ("--time-to-failure", self.time_to_failure.is_some()),
            ];
            return match given.iter().find(|(_, given)| *given) {
                Some((option, _)) => Err(usage(format!("{option} has an effect only with --checkpoint or --resume"))),
                None => Ok(None),
            };
        };
        let every = match self.checkpoint_every {
            Some(Interval::Epochs(_)) if self.time_to_failure.is_some() => {
                return Err(usage("--time-to-failure has an effect only with --checkpoint-every auto"));
            }
            Some(Interval::Epochs(epochs)) => {
                let clocks = epochs.checked_mul(clocks_per_epoch);
                Every::Clocks(clocks.ok_or_else(|| usage("--checkpoint-every is more clocks than can be counted"))?)
            }
            Some(Interval::Auto) | None => Every::Auto {
                unit: clocks_per_epoch,
                time_to_failure: self.time_to_failure.unwrap_or(TIME_TO_FAILURE),
                machines: 1,
            },
        };
        let keep = self.checkpoint_keep.unwrap_or(2) as usize;
        Ok(Some(Checkpoints { keep, resume: self.resume.clone(), ..Checkpoints::new(directory, every) }))
    }

    /// Where checkpoints go: by default where the one to go on from lies.
    fn directory(&self) -> Option<PathBuf> {
        let resumed = self.resume.as_ref().map(|path| match newest(path) {
            Some((checkpoint, _)) => outputs::parent(&checkpoint),
            None => path.clone(),
        });
        self.checkpoint.clone().or(resumed)
    }

    /// Finds out before the work whether there is something to go on from and somewhere to save.
    ///
    /// # Errors
    /// If there is not.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(path) = &self.resume
            && find(path)?.is_empty()
        {
            return Err(CheckpointError::None { path: path.clone() }.into());
        }
        match self.directory() {
            Some(directory) if directory.is_dir() => Ok(()),
            Some(directory) if directory.exists() => {
                bail!("{}: is a file; expected a directory for checkpoints", directory.display())
            }
            Some(directory) => outputs::check_parent(&directory),
            None => Ok(()),
        }
    }

    /// A number that the checkpoint to go on from records. Whether it can be gone on from is seen later.
    pub(crate) fn recorded(&self, name: &str) -> Option<u32> {
        newest(self.resume.as_ref()?)?.1.ok()?.manifest.setting(name)?.parse().ok()
    }
}

/// The newest checkpoint there, or the one that `path` is.
pub(super) fn newest(path: &Path) -> Option<Listed> {
    find(path).ok()?.pop()
}
