//! `hemiola train mlr`: learns to tell classes apart.

pub(crate) mod sync;

use super::engine;
use super::held_out::USUAL;
use super::job::{Job, Outputs, quoted};
use super::labelled::{self, Labelled};
use super::saving;
use crate::failure::usage;
use crate::plot::{Curve, Panel};
use crate::progress::{Figures, Work, say, span};
use crate::{consistency, deploy, interrupt, numbers, report};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use hemiola::checkpoint::Checkpoints;
use hemiola::factors::cost::{Machine, Sync};
use hemiola::splash::{Degree, Options};
use hemiola::{Deployment, Outcome};
use hemiola_models::StepSize;
use hemiola_models::examples::Examples;
use hemiola_models::mlr::factors;
use hemiola_models::mlr::model::MlrModel;
use hemiola_models::mlr::splash;
use hemiola_models::mlr::train::{Arranged, Config, Epoch, Quality, Trained, train_saved};
use serde_json::{Value, json};
use std::io::{Write, stdout};
use std::path::Path;

const EXAMPLES: &str = "\
Examples:
  hemiola train mlr train-images-idx3-ubyte.gz --test t10k-images-idx3-ubyte.gz
  hemiola train mlr news.train.libsvm.gz --test news.test.libsvm.gz --epochs 10
  hemiola train mlr flowers.csv --label species
  hemiola train mlr wiki.libsvm --processes 4 --sync factors --fanout 2 --rate 16
  hemiola train mlr train-images-idx3-ubyte.gz --engine splash --epochs 5

DATA is libsvm, columns with a header or without, or MNIST's idx. Files may be
compressed by gzip, and '-' is standard input.";

/// Learn to tell classes apart, by softmax regression.
#[derive(Args)]
#[command(after_help = format!("{}\n\n{}\n\n{}\n\n{EXAMPLES}", engine::MEANING, sync::MEANING, consistency::MEANING))]
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
    engine: engine::Options,
    #[command(flatten)]
    sync: sync::Options,
    #[command(flatten)]
    consistency: consistency::Options,
    /// Into how many clocks an epoch is cut [default: 32]
    #[arg(long, value_name = "N", value_parser = numbers::clocks, help_heading = "Consistency",
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
    /// Examples whose gradients are averaged for one step [default: 1, or 100 with --sync factors or auto]
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
    /// Fixes everything that is drawn at random: with one worker or under bsp the model, too
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
    let place = problem.place(deployment)?;
    let mut way = problem.way(&place.deployment)?;
    let mut job = Job::new(place, outputs, &problem.examples.data[0], problem.description(&way)?);
    job.checkpoints = match &way {
        Way::Tables(config) => saving.meaning(config.clocks_per_epoch)?,
        Way::Minibatches(_) | Way::Factors(_) | Way::Cheaper(_) => {
            let why = "it is for tables with --clocks-per-epoch";
            problem.sync.refuse(&saving.given().map(|(option, given)| (option, given, why)))?;
            saving.meaning(1)?
        }
        Way::Splash(_) => engine::no_checkpoints(saving, deployment)?,
    };
    if !deploy::is_child() {
        saving.check()?;
        job.check(&problem.examples.inputs()?)?;
        interrupt::install()?;
    }
    let (examples, test) = problem.read()?;
    if !job.quiet {
        labelled::tell(&examples, test.as_ref());
    }
    if let Way::Cheaper(config) = way {
        way = cheaper(&config, &mut job, &examples)?;
    }
    let finished = train_and_save(&job, &way, examples, test.as_ref())?;
    if !job.quiet {
        finished.tell(problem, &job.out)?;
    }
    Ok(())
}

/// Chooses by what this machine can do, says why, and tells the processes of the job.
fn cheaper(config: &factors::Config, job: &mut Job, examples: &Examples) -> Result<Way> {
    let machine = Machine::measure().context("this machine cannot be measured; give --sync factors or matrix")?;
    let choice = sync::choose(config, &job.deployment, examples, machine);
    if !job.quiet {
        say(&choice.to_string());
    }
    job.description["choice"] = json!(choice.to_string());
    let (name, way) = match choice.sync {
        Sync::Matrix => ("matrix", Way::Minibatches(*config)),
        Sync::Factors | Sync::Auto => ("factors", Way::Factors(*config)),
    };
    if let Deployment::Tcp(tcp) = &mut job.deployment {
        let program = std::env::current_exe().context("the program cannot be found again")?.into_os_string();
        let told = ["--chosen", name].map(Into::into);
        tcp.command = Some([program].into_iter().chain(std::env::args_os().skip(1)).chain(told).collect());
    }
    Ok(way)
}

/// How many times the loss of weights of zero a training may end at.
const DIVERGED: f64 = 10.0;

/// How it is trained.
pub(crate) enum Way {
    /// On tables, synchronised at every clock.
    Tables(Config),
    /// On tables, synchronised after every minibatch.
    Minibatches(factors::Config),
    /// By factors.
    Factors(factors::Config),
    /// By minibatches, of which it is yet to be seen what is exchanged.
    Cheaper(factors::Config),
    /// By Splash.
    Splash(splash::Config),
}

impl Way {
    pub(crate) fn seed(&self) -> u64 {
        match self {
            Self::Tables(config) => config.seed,
            Self::Minibatches(config) | Self::Factors(config) | Self::Cheaper(config) => config.seed,
            Self::Splash(config) => config.passes.seed,
        }
    }

    /// What there is to do.
    pub(crate) fn work(&self, examples: &Examples) -> Work {
        let (epochs, patience) = match self {
            Self::Tables(config) => (config.epochs, config.patience),
            Self::Minibatches(config) | Self::Factors(config) | Self::Cheaper(config) => {
                (config.epochs, config.patience)
            }
            Self::Splash(config) => (config.epochs, config.patience),
        };
        Work { units: ("examples", examples.len()), epochs, may_stop_early: patience.is_some() }
    }

    /// The same for a few passes of one worker, to see how long they take.
    pub(crate) fn measured(&self, epochs: u32) -> Self {
        let alone = |config: factors::Config| factors::Config { epochs, patience: None, fanout: None, ..config };
        match *self {
            Self::Tables(config) => Self::Tables(Config { epochs, patience: None, ..config }),
            Self::Minibatches(config) => Self::Minibatches(alone(config)),
            Self::Factors(config) | Self::Cheaper(config) => Self::Factors(alone(config)),
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
        let on_tables = |config: &Config, observe| -> Result<Trained> {
            let data = Arranged::new(examples, test, deployment.workers(), config)?;
            Ok(train_saved(config, deployment, checkpoints, &data, observe)?)
        };
        match self {
            Self::Tables(config) => on_tables(config, observe),
            Self::Minibatches(config) => on_tables(&config.on_tables(examples.len(), deployment.workers()), observe),
            Self::Factors(config) | Self::Cheaper(config) => {
                Ok(factors::train(config, deployment, examples, test, observe)?)
            }
            Self::Splash(config) => Ok(splash::train(config, deployment, examples, test, observe)?),
        }
    }

    /// Refuses weights that are far worse than zeros.
    fn check(&self, trained: &Trained) -> Result<()> {
        let rate = match self {
            Self::Tables(config) => config.step.at_epoch(0),
            Self::Minibatches(config) | Self::Factors(config) | Self::Cheaper(config) => config.step.at_epoch(0),
            Self::Splash(config) => config.rate,
        };
        let loss = trained.epochs.last().map_or(0.0, |epoch| epoch.quality.objective - epoch.quality.penalty);
        let zero = (trained.classes as f64).ln();
        if loss > DIVERGED * zero {
            bail!(
                "the loss ends at {loss:.1}, where weights of zero have {zero:.4}: the steps are too large; try a --rate \
                 below {rate}"
            );
        }
        Ok(())
    }

    fn config(&self) -> Result<Value> {
        let (sync, config) = match self {
            Self::Tables(config) => return Ok(serde_json::to_value(config)?),
            Self::Splash(config) => {
                let mut value = serde_json::to_value(config)?;
                value["engine"] = engine::description(&config.passes);
                return Ok(value);
            }
            Self::Minibatches(config) => ("matrix", config),
            Self::Factors(config) => ("factors", config),
            Self::Cheaper(config) => ("auto", config),
        };
        let mut value = serde_json::to_value(config)?;
        value["sync"] = json!(sync);
        Ok(value)
    }
}

impl Problem {
    pub(crate) fn sync(&self) -> &sync::Options {
        &self.sync
    }

    pub(crate) fn inputs(&self) -> Result<Vec<(&'static str, &Path)>> {
        self.examples.inputs()
    }

    pub(crate) fn read(&self) -> Result<(Examples, Option<Examples>)> {
        self.examples.read(self.training.seed)
    }

    /// Where it is trained, as far as options of that have an effect.
    fn place(&self, deployment: &deploy::Options) -> Result<deploy::Meaning> {
        if !self.sync.by_minibatch() {
            return deployment.meaning(self.consistency.meaning()?);
        }
        self.sync.refuse(&deployment.of_no_effect_on_peers(self.sync.may_be_matrix()))?;
        deployment.peers()
    }

    /// How it is to be trained there.
    ///
    /// # Errors
    /// If an option has no effect that way.
    pub(crate) fn way(&self, deployment: &Deployment) -> Result<Way> {
        let Self { training, examples, .. } = self;
        if training.patience.is_some() && examples.held_out.no_holdout {
            return Err(usage(
                "--patience has no effect with --no-holdout, because it looks at held-out examples; leave one of them out",
            ));
        }
        let usual = splash::Config::default();
        if let Some(passes) = self.engine.splash(training.seed, usual.passes.synchronisations)? {
            return self.by_splash(&usual, passes);
        }
        if self.sync.by_minibatch() {
            return self.sync.way(self, deployment.workers());
        }
        self.sync.check_matrix()?;
        let clocks_per_epoch = self.clocks_per_epoch.unwrap_or(32);
        if training.epochs.checked_mul(clocks_per_epoch).is_none() {
            return Err(usage("--epochs times --clocks-per-epoch are more clocks than can be counted; give fewer"));
        }
        Ok(Way::Tables(Config {
            l2: training.l2,
            batch: training.batch.unwrap_or(1),
            step: training.step()?,
            epochs: training.epochs,
            consistency: self.consistency.meaning()?,
            precision: self.consistency.precision(deployment)?,
            clocks_per_epoch,
            patience: training.patience,
            seed: training.seed,
            ..Config::default()
        }))
    }

    fn by_splash(&self, usual: &splash::Config, passes: Options) -> Result<Way> {
        let Self { training, .. } = self;
        engine::refuse(&self.sync.given())?;
        engine::refuse(&self.consistency.given())?;
        engine::refuse(&[
            ("--clocks-per-epoch", self.clocks_per_epoch.is_some()),
            ("--batch", training.batch.is_some()),
            ("--step-size", training.step_size.is_some()),
            ("--decay", training.decay.is_some()),
            ("--damping", training.damping.is_some()),
        ])?;
        let TrainingOptions { l2, epochs, patience, .. } = *training;
        let rate = training.rate.unwrap_or(usual.rate);
        Ok(Way::Splash(splash::Config { l2, rate, epochs, patience, passes }))
    }

    pub(crate) fn description(&self, way: &Way) -> Result<Value> {
        let Labelled { data, held_out, .. } = &self.examples;
        let held_out = held_out.description(Some(USUAL));
        Ok(json!({ "model": "mlr", "data": data, "held_out": held_out, "config": way.config()? }))
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
    read: String,
    outcome: Outcome,
    epochs: Vec<Epoch>,
}

fn train_and_save(job: &Job, way: &Way, examples: Examples, test: Option<&Examples>) -> Result<Finished> {
    let read = labelled::read_line(&examples, examples.len(), test.map(Examples::len));
    let counts = json!({ "train": examples.len(), "test": test.map(Examples::len),
        "features": examples.features(), "classes": examples.classes.len() });
    let work = way.work(&examples);
    let (trained, report) = job.observe(("examples", counts), &work, |observe| {
        let trained = way.train(&job.deployment, job.checkpoints.as_ref(), (&examples, test), observe)?;
        way.check(&trained)?;
        Ok(trained)
    })?;
    let last = trained.epochs.last();
    let metrics = json!({
        "epochs": last.map(|epoch| epoch.epoch),
        "train_loss": last.map(|epoch| epoch.quality.objective - epoch.quality.penalty),
        "test_loss": last.and_then(|epoch| epoch.quality.test_loss),
        "test_accuracy": last.and_then(|epoch| epoch.quality.test_accuracy),
    });
    let feature_names = examples.feature_names().to_vec();
    let model = MlrModel::new(examples.classes, &trained.weights, way.config()?, metrics);
    let model = model.with_feature_names(feature_names);
    let panel = loss_panel(&trained.epochs, "epoch", |epoch| f64::from(epoch.epoch));
    job.leave(report, &trained.outcome, &model.metrics, ("Softmax regression", panel), |path| Ok(model.save(path)?))?;
    Ok(Finished { read, outcome: trained.outcome, epochs: trained.epochs })
}

impl Figures for Quality {
    fn figures(&self) -> String {
        let held_out = match (self.test_loss, self.test_accuracy) {
            (Some(loss), Some(accuracy)) => format!(", held-out loss {loss:.4}, accuracy {accuracy:.4}"),
            _ => String::new(),
        };
        // Without what regularises it, as that of held-out examples is.
        format!("loss {:.4}{held_out}", self.objective - self.penalty)
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
        writeln!(out, "{}", self.read)?;
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
        writeln!(out, "next           hemiola eval {} {}", quoted(&model), problem.examples.next())?;
        Ok(())
    }
}
