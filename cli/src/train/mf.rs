//! `hemiola train mf`: factorises ratings.

use super::engine;
use super::held_out::{HeldOut, USUAL};
use super::job::{Job, Outputs, quoted};
use super::saving;
use crate::budget::{self, First};
use crate::failure::usage;
use crate::plot::{Curve, Panel};
use crate::progress::{Figures, Work, span};
use crate::{consistency, deploy, interrupt, numbers, report};
use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use hemiola::checkpoint::Checkpoints;
use hemiola::{Consistency, Deployment, Outcome};
use hemiola_models::mf::model::MfModel;
use hemiola_models::mf::splash;
use hemiola_models::mf::train::{Arranged, Config, Epoch, Quality, Trained, train_saved};
use hemiola_models::mf::{Biases, StepSize, Training};
use hemiola_models::ratings::{RatingList, Ratings, Split, SplitError};
use hemiola_models::resume::CLOCKS_PER_EPOCH;
use serde_json::{Value, json};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  hemiola train mf ratings.csv
  hemiola train mf day1.csv.gz day2.csv.gz --test day3.csv.gz --rank 100
  hemiola train mf ratings.csv --epochs 20 --consistency bsp --seed 7
  hemiola train mf ratings.csv --report run.jsonl --plot run.svg
  hemiola train mf ratings.csv --engine splash --workers 2
  hemiola train mf ratings.csv --checkpoint saved      and after a crash
  hemiola train mf ratings.csv --resume saved

Lines of DATA hold user, item and rating, separated by ',', ';', tabs, '::' or
blanks. Files may be compressed by gzip, and '-' is standard input.";

/// Factorise ratings, to predict those that are missing.
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
    /// Files of ratings
    #[arg(required = true, value_name = "DATA")]
    data: Vec<PathBuf>,
    #[command(flatten)]
    held_out: HeldOut,
    #[command(flatten)]
    model: ModelOptions,
    #[command(flatten)]
    training: TrainingOptions,
    #[command(flatten)]
    engine: engine::Options,
    #[command(flatten)]
    consistency: consistency::Options,
    /// Into how many clocks an epoch is cut, by items: a worker trains on some in a clock, and others on others; with
    /// adarevision and adagrad by users [default: 1; 128 with adarevision and adagrad; under bsp and between processes
    /// or nodes more, by the workers]
    #[arg(long, value_name = "N", value_parser = numbers::clocks, help_heading = "Consistency",
        allow_negative_numbers = true)]
    clocks_per_epoch: Option<u32>,
}

#[derive(Args)]
#[command(next_help_heading = "Model")]
struct ModelOptions {
    /// Factors of each user and item
    #[arg(long, value_name = "N", value_parser = numbers::rank, default_value = "32", allow_negative_numbers = true)]
    rank: usize,
    /// Weight that keeps factors small [default: 0.07 with adarevision and adagrad, 0.05 with --engine splash, 0.035 otherwise]
    #[arg(long, value_name = "WEIGHT", value_parser = numbers::not_negative, allow_negative_numbers = true)]
    l2: Option<f32>,
    /// Leave out the usual rating of each user and item
    #[arg(long)]
    no_biases: bool,
}

#[derive(Args)]
#[command(next_help_heading = "Training")]
struct TrainingOptions {
    /// Passes over the ratings [default: until the held-out error no longer falls, at most 100]
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_negative_numbers = true)]
    epochs: Option<u32>,
    /// End early when the held-out error has not fallen for so long [default: 2, if --epochs is not given]
    #[arg(long, value_name = "EPOCHS", value_parser = numbers::count, allow_negative_numbers = true)]
    patience: Option<u32>,
    /// How the size of steps develops; adaptive: by the errors that a user or an item has met; adagrad and
    /// adarevision: for every factor by its gradients, adarevision also by how late they come; with --engine splash
    /// always adagrad [default: adaptive]
    #[arg(long, value_enum, value_name = "SCHEDULE")]
    step_size: Option<Schedule>,
    /// Size of the first steps [default: 0.1 if adaptive, adagrad or adarevision, 0.02 otherwise]
    #[arg(long, value_parser = numbers::positive, allow_negative_numbers = true)]
    rate: Option<f32>,
    /// How fast adaptive steps shrink with the errors met [default: 0.03]
    #[arg(long, value_parser = numbers::not_negative, allow_negative_numbers = true)]
    damping: Option<f32>,
    /// What steps are multiplied by after an epoch, with --step-size decay [default: 0.9]
    #[arg(long, value_name = "FACTOR", value_parser = numbers::fraction, allow_negative_numbers = true)]
    decay: Option<f64>,
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
    Adarevision,
    Adagrad,
}

impl Schedule {
    /// Whether workers send gradients of the items, of which steps are made where the rows are.
    fn sends_gradients(self) -> bool {
        matches!(self, Self::Adarevision | Self::Adagrad)
    }
}

/// Trains as the command line says.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { problem, deployment, saving, outputs } = arguments;
    let place = deployment.meaning(problem.consistency.meaning()?)?;
    let mut way = problem.way(&place.deployment, place.workers)?;
    if let (Way::Tables(config), None, Some(clocks)) =
        (&mut way, problem.clocks_per_epoch, saving.recorded(CLOCKS_PER_EPOCH))
    {
        // The usual number depends on where a job runs, and one that goes on may do so elsewhere.
        config.clocks_per_epoch = clocks;
    }
    let mut job = Job::new(place, outputs, &problem.data[0], problem.description(&way));
    job.checkpoints = match &way {
        Way::Tables(config) => {
            check_priority(deployment.priority(), config)?;
            saving.meaning(config.clocks_per_epoch)?
        }
        Way::Splash(_) => engine::no_checkpoints(saving, deployment)?,
    };
    if !deploy::is_child() {
        job.check(&problem.inputs()?)?;
        saving.check()?;
        interrupt::install()?;
    }
    let finished = train_and_save(&job, &way, problem.read()?)?;
    if !job.quiet {
        finished.tell(problem, &job.out)?;
    }
    Ok(())
}

/// The most epochs, when the held-out error decides.
const EPOCHS_MAX: u32 = 100;

/// Where workers see one another's updates only after a clock, their sum must stay small enough to be right for the
/// model as it has become: the more workers, the shorter the clocks. On MovieLens 1M two workers under bsp end at 0.851
/// with one clock per epoch, and at 0.842 with four.
fn usual_clocks(consistency: Consistency, deployment: &Deployment, workers: u32, schedule: Schedule) -> u32 {
    match (consistency, deployment) {
        // A gradient is summed over a clock before a step is made of it.
        _ if schedule.sends_gradients() => 128,
        (Consistency::Bsp, _) | (_, Deployment::Tcp(_) | Deployment::Sim(_)) if workers > 1 => (2 * workers).min(64),
        _ => 1,
    }
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

    /// What the progress of a training is measured by.
    pub(crate) fn work(&self, ratings: usize) -> Work {
        let (epochs, patience) = match self {
            Self::Tables(config) => (config.training.epochs, config.patience),
            Self::Splash(config) => (config.epochs, config.patience),
        };
        Work { units: ("ratings", ratings), epochs, may_stop_early: patience.is_some() }
    }

    /// Trains on the first `train` of `ratings`, with checkpoints where there can be any.
    pub(crate) fn train(
        &self,
        deployment: &Deployment,
        checkpoints: Option<&Checkpoints>,
        (ratings, train, shape): (RatingList, usize, (u32, u32)),
        observe: &mut (dyn FnMut(&Epoch) + Send),
    ) -> Result<Trained> {
        Ok(match self {
            Self::Tables(config) => {
                let data = Arranged::new(ratings, train, shape, deployment.workers(), config)?;
                train_saved(config, deployment, checkpoints, data, observe)?
            }
            Self::Splash(config) => splash::train(config, deployment, ratings.into_vec(), train, shape, observe)?,
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

/// Checks that there is something to order before a clock ends.
///
/// # Errors
/// If an order is given and makes no difference.
pub(crate) fn check_priority(first: Option<First>, config: &Config) -> Result<()> {
    budget::check_priority(first, config.consistency)?;
    // Workers answer versions as they come, and servers send nothing unasked.
    match (first, config.training.step, config.consistency) {
        (Some(_), StepSize::AdaRevision { .. }, Consistency::Ssp { .. }) => Err(usage(
            "--priority has no effect with --step-size adarevision and --consistency ssp, where updates go in the order of \
             what they answer; leave it out",
        )),
        _ => Ok(()),
    }
}

impl Problem {
    /// How it is to be trained by so many workers there.
    ///
    /// # Errors
    /// If options contradict one another, or one has no effect that way.
    pub(crate) fn way(&self, deployment: &Deployment, workers: u32) -> Result<Way> {
        let Self { model, training, .. } = self;
        let usual = splash::Config::default();
        let Some(passes) = self.engine.splash(training.seed, usual.passes.synchronisations)? else {
            return Ok(Way::Tables(self.config(deployment, workers)?));
        };
        engine::refuse(&self.consistency.given())?;
        engine::refuse(&[
            ("--clocks-per-epoch", self.clocks_per_epoch.is_some()),
            ("--step-size", training.step_size.is_some()),
            ("--damping", training.damping.is_some()),
            ("--decay", training.decay.is_some()),
        ])?;
        let (epochs, patience) = self.length(usual.epochs)?;
        Ok(Way::Splash(splash::Config {
            rank: model.rank,
            biases: model.biases(),
            l2: model.l2.unwrap_or(usual.l2),
            rate: training.rate.unwrap_or(usual.rate),
            epochs,
            patience,
            passes,
        }))
    }

    /// How many epochs at most, and when to end before.
    fn length(&self, usual: u32) -> Result<(u32, Option<u32>)> {
        let Self { held_out, training, .. } = self;
        let patience = match (training.patience, training.epochs) {
            (Some(_), _) if held_out.no_holdout => {
                return Err(usage(
                    "--patience has no effect with --no-holdout, because it looks at held-out ratings; leave one of them out",
                ));
            }
            (Some(patience), _) => Some(patience),
            (None, None) if !held_out.no_holdout => Some(2),
            (None, _) => None,
        };
        Ok((training.epochs.unwrap_or(if patience.is_some() { EPOCHS_MAX } else { usual }), patience))
    }

    fn config(&self, deployment: &Deployment, workers: u32) -> Result<Config> {
        let Self { model, training, .. } = self;
        let consistency = self.consistency.meaning()?;
        let defaults = Config::default();
        let (epochs, patience) = self.length(defaults.training.epochs)?;
        let usual = || usual_clocks(consistency, deployment, workers, training.schedule());
        let clocks_per_epoch = self.clocks_per_epoch.unwrap_or_else(usual);
        if epochs.checked_mul(clocks_per_epoch).is_none() {
            return Err(usage("--epochs times --clocks-per-epoch are more clocks than can be counted; give fewer"));
        }
        let l2 = model.l2.unwrap_or(if training.schedule().sends_gradients() { 0.07 } else { defaults.training.l2 });
        Ok(Config {
            rank: model.rank,
            biases: model.biases(),
            training: Training { l2, step: training.step()?, epochs, ..defaults.training },
            consistency,
            precision: self.consistency.precision(deployment)?,
            clocks_per_epoch,
            cut: defaults.cut,
            rounds_per_clock: defaults.rounds_per_clock,
            // By all workers, wherever they are: chunks decide in which order a worker comes to its ratings, and under bsp
            // that must not depend on the driver.
            chunks: defaults.chunks.max(2 * workers),
            patience,
            seed: training.seed,
        })
    }

    /// The files to read, each with what the user calls it.
    ///
    /// # Errors
    /// If standard input would be read twice.
    pub(crate) fn inputs(&self) -> Result<Vec<(&'static str, &Path)>> {
        let data = self.data.iter().map(|path| ("DATA", path.as_path()));
        let test = self.held_out.test.iter().map(|path| ("--test", path.as_path()));
        let inputs: Vec<_> = data.chain(test).collect();
        if inputs.iter().filter(|(_, path)| *path == Path::new("-")).count() > 1 {
            return Err(usage("standard input can be read only once; give '-' once"));
        }
        Ok(inputs)
    }

    /// What a report says first, but for where the job runs.
    pub(crate) fn description(&self, way: &Way) -> Value {
        json!({
            "model": "mf",
            "data": self.data,
            "held_out": self.held_out.description(Some(USUAL)),
            "config": way.config().unwrap_or_default(),
        })
    }

    /// Reads the ratings and holds some out.
    ///
    /// # Errors
    /// If a file cannot be read, or nothing is left to train on.
    pub(crate) fn read(&self) -> Result<Data> {
        let ratings = Ratings::read(&self.data)?;
        if let Some(test) = &self.held_out.test {
            return Ok(Data::new(Split::read_test(ratings, &[test])?));
        }
        let Some(rule) = self.held_out.rule(Some(USUAL), self.training.seed) else {
            let train = ratings.ratings.len();
            return Ok(Data { ratings, train, unseen: (Vec::new(), Vec::new()) });
        };
        let count = ratings.ratings.len();
        let split = Split::new(ratings, rule).map_err(|error| match error {
            SplitError::Empty { .. } => anyhow!(
                "{}: too few ratings ({count}) to train on some and hold out others; give more, or --no-holdout",
                self.data[0].display()
            ),
            other => other.into(),
        })?;
        Ok(Data::new(split))
    }
}

impl ModelOptions {
    fn biases(&self) -> Biases {
        if self.no_biases { Biases::Without } else { Biases::With }
    }
}

impl TrainingOptions {
    fn schedule(&self) -> Schedule {
        self.step_size.unwrap_or(Schedule::Adaptive)
    }

    fn step(&self) -> Result<StepSize> {
        let schedule = self.schedule();
        if self.damping.is_some() && schedule != Schedule::Adaptive {
            return Err(usage("--damping has an effect only with --step-size adaptive"));
        }
        if self.decay.is_some() && schedule != Schedule::Decay {
            return Err(usage("--decay has an effect only with --step-size decay"));
        }
        let adapts = schedule == Schedule::Adaptive || schedule.sends_gradients();
        let rate = self.rate.unwrap_or(if adapts { 0.1 } else { 0.02 });
        Ok(match schedule {
            Schedule::Adaptive => StepSize::Adaptive { rate, damping: self.damping.unwrap_or(0.03) },
            Schedule::Constant => StepSize::Constant { rate },
            Schedule::InverseTime => StepSize::InverseTime { rate },
            Schedule::InverseSqrt => StepSize::InverseSqrt { rate },
            Schedule::Adarevision => StepSize::AdaRevision { rate },
            Schedule::Adagrad => StepSize::AdaGrad { rate },
            Schedule::Decay => StepSize::Decay { rate, factor: self.decay.unwrap_or(0.9) as f32 },
        })
    }
}

/// Ratings ready to be trained on: those held out stand behind the others.
pub(crate) struct Data {
    ratings: Ratings,
    train: usize,
    /// Users and items that no training rating names.
    unseen: (Vec<u32>, Vec<u32>),
}

impl Data {
    /// Ratings of which some are held out.
    pub(crate) fn new(split: Split) -> Self {
        let unseen = split.unseen();
        let (ratings, train) = split.into_parts();
        Self { ratings, train, unseen }
    }

    /// The ratings alone, how many are to train on, and how many users and items there are.
    pub(crate) fn into_ratings(self) -> (RatingList, usize, (u32, u32)) {
        let shape = (self.ratings.users.len() as u32, self.ratings.items.len() as u32);
        (self.ratings.ratings, self.train, shape)
    }
}

/// What is left to tell of a training.
pub(crate) struct Finished {
    outcome: Outcome,
    pub(crate) model: MfModel,
    pub(crate) epochs: Vec<Epoch>,
}

/// Trains, writes the report as it goes, and in the end the model and the plot.
pub(crate) fn train_and_save(job: &Job, way: &Way, data: Data) -> Result<Finished> {
    let Data { mut ratings, train: train_count, unseen } = data;
    let counts = json!({ "train": train_count, "test": ratings.ratings.len() - train_count,
        "users": ratings.users.len(), "items": ratings.items.len() });
    let shape = (ratings.users.len() as u32, ratings.items.len() as u32);
    let work = way.work(train_count);
    let numbers = std::mem::take(&mut ratings.ratings);
    let checkpoints = job.checkpoints.clone().map(|mut checkpoints| {
        // The trainer knows users and items by their numbers alone.
        for (what, names) in [("users", &ratings.users), ("items", &ratings.items)] {
            checkpoints
                .identity
                .push((what.to_owned(), format!("{} (checksum {:08x})", names.len(), names.checksum())));
        }
        checkpoints
    });
    let (trained, report) = job.observe(("ratings", counts), &work, |observe| {
        way.train(&job.deployment, checkpoints.as_ref(), (numbers, train_count, shape), observe)
    })?;
    let (outcome, epochs) = (trained.outcome, trained.epochs);
    let mut model = MfModel {
        users: ratings.users,
        items: ratings.items,
        rank: trained.rank,
        user_factors: trained.user_factors,
        item_factors: trained.item_factors,
        user_bias: trained.user_bias,
        item_bias: trained.item_bias,
        mean: trained.mean,
        range: trained.range,
        config: way.config()?,
        metrics: metrics(&epochs),
    };
    model.clear(&unseen.0, &unseen.1);
    let panel = loss_panel(&epochs, "epoch", |epoch| f64::from(epoch.epoch));
    job.leave(report, &outcome, &model.metrics, ("Matrix factorisation", panel), |path| Ok(model.save(path)?))?;
    Ok(Finished { outcome, model, epochs })
}

impl Figures for Quality {
    fn figures(&self) -> String {
        let held_out = self.test_rmse.map_or(String::new(), |rmse| format!(", held-out RMSE {rmse:.4}"));
        format!("RMSE {:.4}{held_out}", self.objective.sqrt())
    }
}

/// What the model remembers of its training: nothing that another run with the same seed would not say, too.
fn metrics(epochs: &[Epoch]) -> Value {
    let last = epochs.last();
    json!({
        "epochs": last.map(|epoch| epoch.epoch),
        "train_rmse": last.map(|epoch| epoch.quality.objective.sqrt()),
        "test_rmse": last.and_then(|epoch| epoch.quality.test_rmse),
    })
}

/// The errors over the epochs, or over what `x` says of them.
pub(crate) fn loss_panel(epochs: &[Epoch], x_name: &str, x: impl Fn(&Epoch) -> f64) -> Panel {
    let curve = |name: &str, value: fn(&Epoch) -> Option<f64>| Curve {
        name: name.to_owned(),
        points: epochs.iter().filter_map(|epoch| Some((x(epoch), value(epoch)?))).collect(),
    };
    let mut curves = vec![curve("training", |epoch| Some(epoch.quality.objective.sqrt()))];
    if epochs.iter().any(|epoch| epoch.quality.test_rmse.is_some()) {
        curves.push(curve("held out", |epoch| epoch.quality.test_rmse));
    }
    Panel::Curves { title: "Loss".to_owned(), x: x_name.to_owned(), y: "RMSE".to_owned(), curves }
}

impl Finished {
    fn tell(&self, problem: &Problem, path: &Path) -> Result<()> {
        let mut out = stdout().lock();
        let last = self.epochs.last();
        let (epochs, seconds) = last.map_or((0, 0.0), |epoch| (epoch.epoch, epoch.seconds));
        let unit = if epochs == 1 { "epoch" } else { "epochs" };
        let spent = format!("after {epochs} {unit} and {} of training", span(seconds));
        match last.and_then(|epoch| epoch.quality.test_rmse) {
            Some(rmse) => writeln!(out, "held-out RMSE  {rmse:.4} {spent}")?,
            None => {
                writeln!(out, "training RMSE  {:.4} {spent}", last.map_or(0.0, |epoch| epoch.quality.objective.sqrt()))?
            }
        }
        report::tell(&mut out, &self.outcome)?;
        let model = path.display();
        writeln!(out, "model          {model}")?;
        let mut next =
            format!("hemiola recommend {} --user {}", quoted(&model.to_string()), quoted(self.model.users.name(0)));
        if let Some(file) = problem.data.iter().find(|file| *file != Path::new("-")) {
            next.push_str(&format!(" --seen {}", quoted(&file.display().to_string())));
        }
        writeln!(out, "next           {next}")?;
        Ok(())
    }
}
