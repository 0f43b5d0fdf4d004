//! `hemiola train mlr`: learns to tell classes apart.

use super::engine;
use super::held_out::{HeldOut, USUAL};
use super::job::{Job, Outputs, quoted};
use super::saving;
use crate::classify::ExampleOptions;
use crate::failure::usage;
use crate::plot::{Curve, Panel};
use crate::progress::{Figures, Work, span};
use crate::{consistency, deploy, interrupt, numbers, report};
use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use hemiola::checkpoint::Checkpoints;
use hemiola::splash::{Degree, Options};
use hemiola::{Deployment, Outcome};
use hemiola_models::StepSize;
use hemiola_models::examples::Examples;
use hemiola_models::mlr::model::MlrModel;
use hemiola_models::mlr::splash;
use hemiola_models::mlr::train::{Arranged, Config, Epoch, Quality, Trained, train_saved};
use serde_json::{Value, json};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  hemiola train mlr train-images-idx3-ubyte.gz --test t10k-images-idx3-ubyte.gz
  hemiola train mlr news.train.libsvm.gz --test news.test.libsvm.gz --epochs 10
  hemiola train mlr flowers.csv --label species
  hemiola train mlr train-images-idx3-ubyte.gz --engine splash --epochs 5

DATA is libsvm, columns with a header or without, or MNIST's idx. Files may be
compressed by gzip, and '-' is standard input.";

/// Learn to tell classes apart, by softmax regression.
#[derive(Args)]
#[command(after_help = format!("{}\n\n{}\n\n{EXAMPLES}", engine::MEANING, consistency::MEANING))]
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
    /// Files of labelled examples
    #[arg(required = true, value_name = "DATA")]
    data: Vec<PathBuf>,
    #[command(flatten)]
    reading: ExampleOptions,
    #[command(flatten)]
    held_out: HeldOut,
    #[command(flatten)]
    training: TrainingOptions,
    #[command(flatten)]
    engine: engine::Options,
    #[command(flatten)]
    consistency: consistency::Options,
    /// Into how many clocks an epoch is cut [default: 32]
    #[arg(long, value_name = "N", value_parser = numbers::count, help_heading = "Consistency",
        allow_negative_numbers = true)]
    clocks_per_epoch: Option<u32>,
}

#[derive(Args)]
#[command(next_help_heading = "Training")]
struct TrainingOptions {
    /// Weight of the squared weights in the objective
    #[arg(long, value_name = "WEIGHT", value_parser = numbers::not_negative, default_value = "0.0001",
        allow_negative_numbers = true)]
    l2: f32,
    /// Examples whose gradients are averaged for one step [default: 1]
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_negative_numbers = true)]
    batch: Option<u32>,
    /// Passes over the examples
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "20", allow_negative_numbers = true)]
    epochs: u32,
    /// End early when the held-out loss has not fallen for so long
    #[arg(long, value_name = "EPOCHS", value_parser = numbers::count, allow_negative_numbers = true)]
    patience: Option<u32>,
    /// How the size of steps develops; under --engine splash always by AdaGrad [default: decay]
    #[arg(long, value_enum, value_name = "SCHEDULE")]
    step_size: Option<Schedule>,
    /// Size of the first steps, for examples of length 1 [default: 3], or with --engine splash for features of length 1
    /// [default: 0.1]
    #[arg(long, value_parser = numbers::positive, allow_negative_numbers = true)]
    rate: Option<f32>,
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
    let way = problem.way(&place.deployment)?;
    let mut job = Job::new(place, outputs, &problem.data[0], problem.description(&way));
    job.checkpoints = match &way {
        Way::Tables(config) => saving.meaning(config.clocks_per_epoch)?,
        Way::Splash(_) => engine::no_checkpoints(saving, deployment)?,
    };
    if !deploy::is_child() {
        saving.check()?;
        job.check(&problem.inputs()?)?;
        interrupt::install()?;
    }
    let (examples, test) = problem.read()?;
    let finished = train_and_save(&job, &way, examples, test.as_ref())?;
    if !job.quiet {
        finished.tell(problem, &job.out)?;
    }
    Ok(())
}

/// How it is trained.
pub(crate) enum Way {
    Tables(Config),
    Splash(splash::Config),
}

impl Way {
    pub(crate) fn seed(&self) -> u64 {
        match self {
            Self::Tables(config) => config.seed,
            Self::Splash(config) => config.passes.seed,
        }
    }

    /// What there is to do.
    pub(crate) fn work(&self, examples: &Examples) -> Work {
        let (epochs, patience) = match self {
            Self::Tables(config) => (config.epochs, config.patience),
            Self::Splash(config) => (config.epochs, config.patience),
        };
        Work { units: ("examples", examples.len()), epochs, may_stop_early: patience.is_some() }
    }

    /// The same for a few passes of one worker, to see how long they take.
    pub(crate) fn measured(&self, epochs: u32) -> Self {
        match *self {
            Self::Tables(config) => Self::Tables(Config { epochs, patience: None, ..config }),
            Self::Splash(config) => {
                let passes = Options { degree: Degree::Largest, ..config.passes };
                Self::Splash(splash::Config { epochs, patience: None, passes, ..config })
            }
        }
    }

    /// Trains, with checkpoints where there can be any.
    pub(crate) fn train(
        &self,
        deployment: &Deployment,
        checkpoints: Option<&Checkpoints>,
        (examples, test): (&Examples, Option<&Examples>),
        observe: &mut (dyn FnMut(&Epoch) + Send),
    ) -> Result<Trained> {
        Ok(match self {
            Self::Tables(config) => {
                let data = Arranged::new(examples, test, deployment.workers(), config)?;
                train_saved(config, deployment, checkpoints, &data, observe)?
            }
            Self::Splash(config) => splash::train(config, deployment, examples, test, observe)?,
        })
    }

    fn config(&self) -> Result<Value> {
        Ok(match self {
            Self::Tables(config) => serde_json::to_value(config)?,
            Self::Splash(config) => {
                let mut value = serde_json::to_value(config)?;
                value["engine"] = engine::description(&config.passes);
                value
            }
        })
    }
}

impl Problem {
    /// How it is to be trained there.
    ///
    /// # Errors
    /// If an option has no effect that way.
    pub(crate) fn way(&self, deployment: &Deployment) -> Result<Way> {
        let Self { training, .. } = self;
        let usual = splash::Config::default();
        let Some(passes) = self.engine.splash(training.seed, usual.passes.synchronisations)? else {
            return Ok(Way::Tables(self.config(deployment)?));
        };
        engine::refuse(&self.consistency.given())?;
        engine::refuse(&[
            ("--clocks-per-epoch", self.clocks_per_epoch.is_some()),
            ("--batch", training.batch.is_some()),
            ("--step-size", training.step_size.is_some()),
            ("--decay", training.decay.is_some()),
            ("--damping", training.damping.is_some()),
        ])?;
        self.check_patience()?;
        let TrainingOptions { l2, epochs, patience, .. } = *training;
        let rate = training.rate.unwrap_or(usual.rate);
        Ok(Way::Splash(splash::Config { l2, rate, epochs, patience, passes }))
    }

    fn check_patience(&self) -> Result<()> {
        if self.training.patience.is_some() && self.held_out.no_holdout {
            return Err(usage(
                "--patience has no effect with --no-holdout, because it looks at held-out examples; leave one of them out",
            ));
        }
        Ok(())
    }

    fn config(&self, deployment: &Deployment) -> Result<Config> {
        let Self { training, .. } = self;
        self.check_patience()?;
        let clocks_per_epoch = self.clocks_per_epoch.unwrap_or(32);
        if training.epochs.checked_mul(clocks_per_epoch).is_none() {
            return Err(usage("--epochs times --clocks-per-epoch are more clocks than can be counted; give fewer"));
        }
        Ok(Config {
            l2: training.l2,
            batch: training.batch.unwrap_or(1),
            step: training.step()?,
            epochs: training.epochs,
            consistency: self.consistency.meaning()?,
            precision: self.consistency.precision(deployment)?,
            clocks_per_epoch,
            patience: training.patience,
            seed: training.seed,
        })
    }

    pub(crate) fn inputs(&self) -> Result<Vec<(&'static str, &Path)>> {
        let data = self.data.iter().map(|path| ("DATA", path.as_path()));
        let test = self.held_out.test.iter().map(|path| ("--test", path.as_path()));
        let labels = self.reading.labels().into_iter().map(|path| ("--labels", path));
        let inputs: Vec<_> = data.chain(test).chain(labels).collect();
        if inputs.iter().filter(|(_, path)| *path == Path::new("-")).count() > 1 {
            return Err(usage("standard input can be read only once; give '-' once"));
        }
        Ok(inputs)
    }

    pub(crate) fn description(&self, way: &Way) -> Value {
        let config = way.config().unwrap_or_default();
        json!({ "model": "mlr", "data": self.data, "held_out": self.held_out.description(Some(USUAL)), "config": config })
    }

    /// Reads the examples and holds some out.
    pub(crate) fn read(&self) -> Result<(Examples, Option<Examples>)> {
        let options = self.reading.reading();
        let examples = Examples::read(&self.data, &options)?;
        if let Some(file) = &self.held_out.test {
            let test = Examples::read_known(&[file], &options, &examples.classes)?;
            return Ok((examples, Some(test)));
        }
        let Some(rule) = self.held_out.rule(Some(USUAL), self.training.seed) else {
            return Ok((examples, None));
        };
        let count = examples.len();
        let (train, test) = examples.split(rule).map_err(|_| {
            anyhow!(
                "{}: too few examples ({count}) to train on some and hold out others; give more, or --no-holdout",
                self.data[0].display()
            )
        })?;
        Ok((train, Some(test)))
    }
}

impl TrainingOptions {
    fn step(&self) -> Result<StepSize> {
        let schedule = self.step_size.unwrap_or(Schedule::Decay);
        if self.decay.is_some() && schedule != Schedule::Decay {
            return Err(usage("--decay has an effect only with --step-size decay"));
        }
        if self.damping.is_some() && schedule != Schedule::Adaptive {
            return Err(usage("--damping has an effect only with --step-size adaptive"));
        }
        let rate = self.rate.unwrap_or(3.0);
        Ok(match schedule {
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

fn train_and_save(job: &Job, way: &Way, examples: Examples, test: Option<&Examples>) -> Result<Finished> {
    let counts = json!({ "train": examples.len(), "test": test.map(Examples::len),
        "features": examples.features(), "classes": examples.classes.len() });
    let work = way.work(&examples);
    let (trained, report) = job.observe(("examples", counts), &work, |observe| {
        way.train(&job.deployment, job.checkpoints.as_ref(), (&examples, test), observe)
    })?;
    let last = trained.epochs.last();
    let metrics = json!({
        "epochs": last.map(|epoch| epoch.epoch),
        "train_loss": last.map(|epoch| epoch.quality.objective - epoch.quality.penalty),
        "test_loss": last.and_then(|epoch| epoch.quality.test_loss),
        "test_accuracy": last.and_then(|epoch| epoch.quality.test_accuracy),
    });
    let model = MlrModel::new(examples.classes, &trained.weights, way.config()?, metrics);
    let panel = loss_panel(&trained.epochs, "epoch", |epoch| f64::from(epoch.epoch));
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

pub(crate) fn loss_panel(epochs: &[Epoch], x: &str, at: fn(&Epoch) -> f64) -> Panel {
    let curve = |name: &str, value: fn(&Epoch) -> Option<f64>| Curve {
        name: name.to_owned(),
        points: epochs.iter().filter_map(|epoch| Some((at(epoch), value(epoch)?))).collect(),
    };
    let mut curves = vec![curve("training", |epoch| Some(epoch.quality.objective - epoch.quality.penalty))];
    if epochs.iter().any(|epoch| epoch.quality.test_loss.is_some()) {
        curves.push(curve("held out", |epoch| epoch.quality.test_loss));
    }
    Panel::Curves { title: "Loss".to_owned(), x: x.to_owned(), y: "log loss".to_owned(), curves }
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
        let file = problem.held_out.test.as_ref().unwrap_or(&problem.data[0]);
        writeln!(out, "next           hemiola eval {} {}", quoted(&model), quoted(&file.display().to_string()))?;
        Ok(())
    }
}
