//! `hemiola train mlr`: learns to tell classes apart.

use super::held_out::USUAL;
use super::job::{Job, Outputs, quoted};
use super::labelled::Labelled;
use super::saving;
use crate::failure::usage;
use crate::plot::{Curve, Panel};
use crate::progress::{Figures, Work, span};
use crate::{consistency, deploy, interrupt, numbers, report};
use anyhow::Result;
use clap::{Args, ValueEnum};
use hemiola::{Deployment, Outcome};
use hemiola_models::StepSize;
use hemiola_models::examples::Examples;
use hemiola_models::mlr::model::MlrModel;
use hemiola_models::mlr::train::{Arranged, Config, Epoch, Quality, train_saved};
use serde_json::{Value, json};
use std::io::{Write, stdout};
use std::path::Path;

const EXAMPLES: &str = "\
Examples:
  hemiola train mlr train-images-idx3-ubyte.gz --test t10k-images-idx3-ubyte.gz
  hemiola train mlr news.train.libsvm.gz --test news.test.libsvm.gz --epochs 10
  hemiola train mlr flowers.csv --label species

DATA is libsvm, columns with a header or without, or MNIST's idx. Files may be
compressed by gzip, and '-' is standard input.";

/// Learn to tell classes apart, by softmax regression.
#[derive(Args)]
#[command(after_help = format!("{}\n\n{EXAMPLES}", consistency::MEANING))]
pub(crate) struct Arguments {
    #[command(flatten)]
    problem: Problem,
    #[command(flatten)]
    deployment: deploy::Options,
    #[command(flatten)]
    saving: saving::Options,
    #[command(flatten)]
    outputs: Outputs,
}

/// What to train on and how, wherever that happens.
#[derive(Args)]
pub(crate) struct Problem {
    #[command(flatten)]
    examples: Labelled,
    #[command(flatten)]
    training: TrainingOptions,
    #[command(flatten)]
    consistency: consistency::Options,
    /// Into how many clocks an epoch is cut
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "32", help_heading = "Consistency",
        allow_negative_numbers = true)]
    clocks_per_epoch: u32,
}

#[derive(Args)]
#[command(next_help_heading = "Training")]
struct TrainingOptions {
    /// Weight of the squared weights in the objective
    #[arg(long, value_name = "WEIGHT", value_parser = numbers::not_negative, default_value = "0.0001",
        allow_negative_numbers = true)]
    l2: f32,
    /// Examples whose gradients are averaged for one step
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "1", allow_negative_numbers = true)]
    batch: u32,
    /// Passes over the examples
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "20", allow_negative_numbers = true)]
    epochs: u32,
    /// End early when the held-out loss has not fallen for so long
    #[arg(long, value_name = "EPOCHS", value_parser = numbers::count, allow_negative_numbers = true)]
    patience: Option<u32>,
    /// How the size of steps develops
    #[arg(long, value_enum, value_name = "SCHEDULE", default_value = "decay")]
    step_size: Schedule,
    /// Size of the first steps, for examples of length 1
    #[arg(long, value_parser = numbers::positive, default_value = "3", allow_negative_numbers = true)]
    rate: f32,
    /// What steps are multiplied by after an epoch, with --step-size decay [default: 0.75]
    #[arg(long, value_name = "FACTOR", value_parser = numbers::fraction, allow_negative_numbers = true)]
    decay: Option<f64>,
    /// How fast adaptive steps shrink with the errors met, with --step-size adaptive [default: 0.03]
    #[arg(long, value_parser = numbers::not_negative, allow_negative_numbers = true)]
    damping: Option<f32>,
    /// Fixes everything that is drawn at random
    #[arg(long, value_parser = numbers::seed, default_value = "1", allow_negative_numbers = true)]
    seed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Schedule {
    Adaptive,
    Constant,
    InverseTime,
    InverseSqrt,
    Decay,
}

/// Trains as the command line says.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { problem, deployment, saving, outputs } = arguments;
    let place = deployment.meaning(problem.consistency.meaning()?)?;
    let config = problem.config(&place.deployment)?;
    let mut job = Job::new(place, outputs, &problem.examples.data[0], problem.description(&config));
    job.checkpoints = saving.meaning(config.clocks_per_epoch)?;
    if !deploy::is_child() {
        saving.check()?;
        job.check(&problem.examples.inputs()?)?;
        interrupt::install()?;
    }
    let (examples, test) = problem.examples.read(problem.training.seed)?;
    let finished = train_and_save(&job, &config, examples, test.as_ref())?;
    if !job.quiet {
        finished.tell(problem, &job.out)?;
    }
    Ok(())
}

impl Problem {
    fn config(&self, deployment: &Deployment) -> Result<Config> {
        let Self { training, examples, .. } = self;
        if training.patience.is_some() && examples.held_out.no_holdout {
            return Err(usage(
                "--patience has no effect with --no-holdout, because it looks at held-out examples; leave one of them out",
            ));
        }
        if training.epochs.checked_mul(self.clocks_per_epoch).is_none() {
            return Err(usage("--epochs times --clocks-per-epoch are more clocks than can be counted; give fewer"));
        }
        Ok(Config {
            l2: training.l2,
            batch: training.batch,
            step: training.step()?,
            epochs: training.epochs,
            consistency: self.consistency.meaning()?,
            precision: self.consistency.precision(deployment)?,
            clocks_per_epoch: self.clocks_per_epoch,
            patience: training.patience,
            seed: training.seed,
        })
    }

    fn description(&self, config: &Config) -> Value {
        let Labelled { data, held_out, .. } = &self.examples;
        json!({ "model": "mlr", "data": data, "held_out": held_out.description(Some(USUAL)), "config": config })
    }
}

impl TrainingOptions {
    fn step(&self) -> Result<StepSize> {
        if self.decay.is_some() && self.step_size != Schedule::Decay {
            return Err(usage("--decay has an effect only with --step-size decay"));
        }
        if self.damping.is_some() && self.step_size != Schedule::Adaptive {
            return Err(usage("--damping has an effect only with --step-size adaptive"));
        }
        let rate = self.rate;
        Ok(match self.step_size {
            Schedule::Adaptive => StepSize::Adaptive { rate, damping: self.damping.unwrap_or(0.03) },
            Schedule::Constant => StepSize::Constant { rate },
            Schedule::InverseTime => StepSize::InverseTime { rate },
            Schedule::InverseSqrt => StepSize::InverseSqrt { rate },
            Schedule::Decay => StepSize::Decay { rate, factor: self.decay.unwrap_or(0.75) as f32 },
        })
    }
}

/// What is left to tell of a training.
struct Finished {
    outcome: Outcome,
    epochs: Vec<Epoch>,
}

fn train_and_save(job: &Job, config: &Config, examples: Examples, test: Option<&Examples>) -> Result<Finished> {
    let counts = json!({ "train": examples.len(), "test": test.map(Examples::len),
        "features": examples.features(), "classes": examples.classes.len() });
    let work =
        Work { units: ("examples", examples.len()), epochs: config.epochs, may_stop_early: config.patience.is_some() };
    let (trained, report) = job.observe(("examples", counts), &work, |observe| {
        let data = Arranged::new(&examples, test, job.workers, config)?;
        Ok(train_saved(config, &job.deployment, job.checkpoints.as_ref(), &data, observe)?)
    })?;
    let last = trained.epochs.last();
    let metrics = json!({
        "epochs": last.map(|epoch| epoch.epoch),
        "train_loss": last.map(|epoch| epoch.quality.objective - epoch.quality.penalty),
        "test_loss": last.and_then(|epoch| epoch.quality.test_loss),
        "test_accuracy": last.and_then(|epoch| epoch.quality.test_accuracy),
    });
    let model = MlrModel::new(examples.classes, &trained.weights, serde_json::to_value(config)?, metrics);
    let panel = loss_panel(&trained.epochs);
    job.leave(report, &trained.outcome, &model.metrics, ("Softmax regression", panel), |path| Ok(model.save(path)?))?;
    Ok(Finished { outcome: trained.outcome, epochs: trained.epochs })
}

impl Figures for Quality {
    fn figures(&self) -> String {
        let held_out = match (self.test_loss, self.test_accuracy) {
            (Some(loss), Some(accuracy)) => format!(", held-out loss {loss:.4}, accuracy {accuracy:.4}"),
            _ => String::new(),
        };
        format!("loss {:.4}{held_out}", self.objective)
    }
}

fn loss_panel(epochs: &[Epoch]) -> Panel {
    let curve = |name: &str, value: fn(&Epoch) -> Option<f64>| Curve {
        name: name.to_owned(),
        points: epochs.iter().filter_map(|epoch| Some((f64::from(epoch.epoch), value(epoch)?))).collect(),
    };
    let mut curves = vec![curve("training", |epoch| Some(epoch.quality.objective - epoch.quality.penalty))];
    if epochs.iter().any(|epoch| epoch.quality.test_loss.is_some()) {
        curves.push(curve("held out", |epoch| epoch.quality.test_loss));
    }
    Panel::Curves { title: "Loss".to_owned(), x: "epoch".to_owned(), y: "log loss".to_owned(), curves }
}

impl Finished {
    fn tell(&self, problem: &Problem, path: &Path) -> Result<()> {
        let mut out = stdout().lock();
        let last = self.epochs.last();
        let (epochs, seconds) = last.map_or((0, 0.0), |epoch| (epoch.epoch, epoch.seconds));
        let spent = format!("after {epochs} epochs and {} of training", span(seconds));
        match last.and_then(|epoch| Some((epoch.quality.test_accuracy?, epoch.quality.test_loss?))) {
            Some((accuracy, loss)) => {
                writeln!(out, "held out       {:.2} % right, loss {loss:.4}, {spent}", 100.0 * accuracy)?;
            }
            None => writeln!(out, "training loss  {:.4} {spent}", last.map_or(0.0, |epoch| epoch.quality.objective))?,
        }
        report::tell(&mut out, &self.outcome)?;
        let model = path.display().to_string();
        writeln!(out, "model          {model}")?;
        writeln!(out, "next           hemiola eval {} {}", quoted(&model), quoted(&problem.examples.next()))?;
        Ok(())
    }
}
