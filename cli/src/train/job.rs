//! What every training command shares: where it runs, what it shows meanwhile, and what it leaves behind.

use super::saving::newest;
use crate::failure::usage;
use crate::plot::{self, Panel};
use crate::progress::{Observed, Progress, Work, say};
use crate::report::{self, Report};
use crate::{deploy, interrupt, outputs};
use anyhow::{Result, anyhow, bail};
use clap::Args;
use hemiola::checkpoint::Checkpoints;
use hemiola::{Deployment, Outcome};
use hemiola_models::mlr::model::MlrModel;
use hemiola_models::model_directory;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What is left behind.
#[derive(Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Outputs {
    /// Where the model goes [default: the name of the first file, with .model]
    #[arg(long, value_name = "MODEL")]
    out: Option<PathBuf>,
    /// Write what happened as JSON lines
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Draw the loss and the staleness, as .svg or .png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

/// A training job: what the options of every model say together.
pub(crate) struct Job {
    pub(crate) deployment: Deployment,
    pub(crate) workers: u32,
    pub(crate) quiet: bool,
    pub(crate) out: PathBuf,
    /// Whether it was asked that the model go there.
    pub(crate) is_out_given: bool,
    pub(crate) report: Option<PathBuf>,
    pub(crate) plot: Option<PathBuf>,
    pub(crate) checkpoints: Option<Checkpoints>,
    /// What the report says first.
    pub(crate) description: Value,
}

impl Job {
    /// The job that trains there on `data`, of which the report says `description`.
    pub(crate) fn new(place: deploy::Meaning, outputs: &Outputs, data: &Path, mut description: Value) -> Self {
        description["version"] = json!(env!("CARGO_PKG_VERSION"));
        description["deployment"] = place.description;
        Self {
            deployment: place.deployment,
            workers: place.workers,
            quiet: outputs.quiet || deploy::is_child(),
            out: outputs.out.clone().unwrap_or_else(|| default_out(data)),
            is_out_given: outputs.out.is_some(),
            report: outputs.report.clone().filter(|_| !deploy::is_child()),
            plot: outputs.plot.clone(),
            checkpoints: None,
            description,
        }
    }

    /// Finds out before the work what would go wrong after it.
    ///
    /// # Errors
    /// If the files that are read and written contradict one another or cannot be written.
    pub(crate) fn check(&self, inputs: &[(&'static str, &Path)]) -> Result<()> {
        if matches!(self.deployment, Deployment::Tcp(_)) && inputs.iter().any(|(_, path)| *path == Path::new("-")) {
            return Err(usage("standard input cannot be read by several processes; give the name of a file"));
        }
        let report = self.report.iter().map(|path| ("--report", path.as_path()));
        let plot = self.plot.iter().map(|path| ("--plot", path.as_path()));
        let files: Vec<_> = report.chain(plot).collect();
        let model = [("--out", self.out.as_path())];
        outputs::check_distinct(inputs, &[model.as_slice(), &files].concat())?;
        let checkpoints = self.checkpoints.iter().map(|checkpoints| ("--checkpoint", checkpoints.directory.as_path()));
        files.iter().copied().chain(checkpoints).try_for_each(|inner| outputs::check_outside(inner, model[0]))?;
        if let Some(path) = &self.plot {
            plot::check_extension(path)?;
        }
        files.iter().try_for_each(|(_, path)| outputs::check_writable(path))?;
        outputs::check_parent(&self.out)?;
        model_directory::check_target(&self.out)?;
        self.check_replaced()
    }

    /// Checks that a model of another kind is not replaced unasked.
    fn check_replaced(&self) -> Result<()> {
        let own = match self.description["model"].as_str().unwrap_or_default() {
            "l2mlr" => MlrModel::KIND,
            model => model,
        };
        match model_directory::kind_of(&self.out) {
            Ok(kind) if kind != own && !self.is_out_given => bail!(
                "{}: holds a model of kind '{kind}', and this one would be of kind '{own}'; say by --out where it goes",
                self.out.display()
            ),
            _ => Ok(()),
        }
    }

    /// Runs `train`, which tells of every epoch that has ended, and begins the report with `counts` of the data.
    ///
    /// # Errors
    /// What `train` says, or that the report cannot be written.
    pub(crate) fn observe<E: Observed, T>(
        &self,
        counts: (&str, Value),
        work: &Work,
        train: impl FnOnce(&mut (dyn FnMut(&E) + Send)) -> Result<T>,
    ) -> Result<(T, Report)> {
        // A run that is refused or killed again should not cost what was told before.
        let resume = self.checkpoints.as_ref().and_then(|checkpoints| checkpoints.resume.as_ref());
        let mut report = Report::create(self.report.as_deref(), resume.is_some())?;
        let mut start = self.description.clone();
        start[counts.0] = counts.1;
        report.line("start", &start)?;
        let mut progress = Progress::new(self.quiet, work);
        let mut unwritten = None;
        // Newer ones are about to be written there, and it may yet be refused.
        let resumed = resume.and_then(|path| newest(path));
        let mut resumed = resumed.map(|(checkpoint, _)| format!("resumed from {}", checkpoint.display()));
        let trained = train(&mut |epoch: &E| {
            progress.tell(resumed.take());
            progress.epoch(epoch);
            if let Err(error) = report.line("evaluation", epoch) {
                unwritten.get_or_insert(error);
            }
        });
        progress.tell(resumed.filter(|_| trained.is_ok()));
        progress.end();
        if let Some(error) = unwritten {
            // The model is worth more than the report.
            say(&format!("hemiola: the report is incomplete: {error}"));
        }
        match trained {
            Ok(trained) => Ok((trained, report)),
            Err(error) => {
                report.line("failure", &json!({ "reason": error.to_string() }))?;
                Err(error)
            }
        }
    }

    /// Writes the model, the plot and the end of the report; a process that another started leaves that to it.
    ///
    /// # Errors
    /// If something cannot be written.
    pub(crate) fn leave(
        &self,
        report: Report,
        outcome: &Outcome,
        metrics: &Value,
        drawing: (&str, Panel),
        save: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<()> {
        if deploy::is_child() {
            return Ok(());
        }
        let mut summary = report::summary(outcome);
        if let (Value::Object(summary), Value::Object(metrics)) = (&mut summary, metrics) {
            summary.extend(metrics.clone());
        }
        let panels = [drawing.1, plot::staleness_panel(&outcome.histogram)];
        self.finish(report, summary, (drawing.0, &panels), save)
    }

    /// Writes the model, the plot, and the summary as the end of the report.
    ///
    /// # Errors
    /// If something cannot be written.
    pub(crate) fn finish(
        &self,
        mut report: Report,
        mut summary: Value,
        (title, panels): (&str, &[Panel]),
        save: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<()> {
        summary["model"] = json!(self.out);
        let writing = interrupt::hold();
        save(&self.out)?;
        let drawn = self.plot.as_ref().map_or(Ok(()), |path| plot::write(path, title, panels));
        let told = drawn.and_then(|()| report.line("summary", &summary));
        drop(writing);
        told.map_err(|error| anyhow!("{error}; the model is in {}, and whole", self.out.display()))
    }
}

/// `ratings.csv.gz` gives `ratings.model`, where the command was typed.
fn default_out(data: &Path) -> PathBuf {
    let name = data.file_name().unwrap_or_default().to_string_lossy();
    match name.split('.').find(|part| !part.is_empty() && *part != "-") {
        Some(stem) => PathBuf::from(format!("{stem}.model")),
        None => PathBuf::from("hemiola.model"),
    }
}

/// As a shell takes it for one word.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_./:,+@%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
