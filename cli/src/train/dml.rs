//! `hemiola train dml`: learns a distance by which examples of a class lie close together.

use super::held_out::USUAL;
use super::job::{Job, Outputs, quoted};
use super::labelled::{self, Labelled};
use super::peers;
use crate::failure::usage;
use crate::plot::{Curve, Panel};
use crate::progress::{Figures, Work, span};
use crate::{deploy, interrupt, numbers};
use anyhow::{Result, bail};
use clap::Args;
use hemiola_models::dml::model::DmlModel;
use hemiola_models::dml::neighbours::Neighbours;
use hemiola_models::dml::pairs::{self, Pair};
use hemiola_models::dml::peers as by_peers;
pub(crate) use hemiola_models::dml::train::Config;
use hemiola_models::dml::train::{Quality, Trained, project, train, unprojected};
use hemiola_models::examples::Examples;
use hemiola_models::peers::Peers;
use hemiola_models::{Epoch, StepSize};
use serde_json::{Value, json};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  hemiola train dml train-images-idx3-ubyte.gz --test t10k-images-idx3-ubyte.gz
  hemiola train dml flowers.csv --pairs pairs.csv --dimension 2
  hemiola train dml train-images-idx3-ubyte.gz --processes 4 --fanout 2

DATA is libsvm, columns with a header or without, or MNIST's idx. Files may be
compressed by gzip, and '-' is standard input. Pairs are lines of the numbers of
two examples of DATA, from 1, and 1 if they are alike or 0.";

/// Learn a distance by which examples of a class lie close together: distance metric learning.
///
/// Finds a projection to few dimensions. A similar pair costs its squared distance under it, a dissimilar one by how much
/// that is below 1. Without --pairs the labels say which are which: in every batch of examples, the nearest of its class
/// is similar to an example, and the nearest of another class is not.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    problem: Problem,
    #[command(flatten)]
    peers: peers::Options,
    #[command(flatten)]
    outputs: Outputs,
}

/// What to learn from and how, wherever that happens.
#[derive(Args)]
pub(crate) struct Problem {
    #[command(flatten)]
    examples: Labelled,
    /// Learn from these pairs instead of from the labels; nothing of DATA is held out then
    #[arg(long, value_name = "FILE")]
    pairs: Option<PathBuf>,
    #[command(flatten)]
    training: TrainingOptions,
}

#[derive(Args)]
#[command(next_help_heading = "Training")]
struct TrainingOptions {
    /// Dimensions to project to
    #[arg(long, value_name = "N", value_parser = numbers::rank, default_value = "10", allow_negative_numbers = true)]
    dimension: usize,
    /// How much more a dissimilar pair counts than a similar one
    #[arg(long, value_parser = numbers::positive, default_value = "1", allow_negative_numbers = true)]
    weight: f32,
    /// Examples of a batch of each peer, or pairs with --pairs [default: 1000, fewer where there are many features]
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_negative_numbers = true)]
    batch: Option<u32>,
    /// Passes over the examples or pairs
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "10", allow_negative_numbers = true)]
    epochs: u32,
    /// End early when the held-out accuracy has not risen for so long
    #[arg(long, value_name = "EPOCHS", value_parser = numbers::count, allow_negative_numbers = true)]
    patience: Option<u32>,
    /// Size of the first steps, for pairs of length 1
    #[arg(long, value_parser = numbers::positive, default_value = "0.5", allow_negative_numbers = true)]
    rate: f32,
    /// What steps are multiplied by after an epoch
    #[arg(long, value_name = "FACTOR", value_parser = numbers::fraction, default_value = "0.8",
        allow_negative_numbers = true)]
    decay: f64,
    /// Neighbours that decide on a class
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "5", allow_negative_numbers = true)]
    neighbours: u32,
    /// Fixes everything that is drawn at random
    #[arg(long, value_parser = numbers::seed, default_value = "1", allow_negative_numbers = true)]
    seed: u64,
}

/// Trains as the command line says.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let problem = &arguments.problem;
    let config = problem.config();
    let peers = arguments.peers.meaning()?;
    let together = peers.together();
    let job = Job::new(peers.place, &arguments.outputs, &problem.examples.data[0], problem.description());
    if !deploy::is_child() {
        job.check(&problem.inputs()?)?;
        interrupt::install()?;
    }
    let data = problem.read()?;
    if !job.quiet {
        labelled::tell(&data.examples, data.test.as_ref());
    }
    arguments.train(&job, together, &config, &data)
}

/// What is learnt from.
pub(crate) struct Data {
    examples: Examples,
    pairs: Option<Vec<Pair>>,
    test: Option<Examples>,
}

impl Data {
    /// What there is to do.
    pub(crate) fn work(&self, config: &Config) -> Work {
        let pairs = self.pairs.as_ref();
        let units = pairs.map_or(("examples", self.examples.len()), |pairs| ("pairs", pairs.len()));
        Work { units, epochs: config.epochs, may_stop_early: config.patience.is_some() }
    }

    /// Learns by peers.
    ///
    /// # Errors
    /// If nothing can be learnt, or the job fails.
    pub(crate) fn by_peers(
        &self,
        config: &Config,
        place: &Peers<'_>,
        observe: &mut (dyn FnMut(&Epoch<Quality>) + Send),
    ) -> Result<by_peers::Trained> {
        Ok(by_peers::train(config, place, (&self.examples, self.test.as_ref()), self.pairs.as_deref(), observe)?)
    }
}

impl Problem {
    pub(crate) fn config(&self) -> Config {
        self.training.config()
    }

    pub(crate) fn description(&self) -> Value {
        let Labelled { data, held_out, .. } = &self.examples;
        let held_out = held_out.description(self.pairs.is_none().then_some(USUAL));
        json!({ "model": "dml", "data": data, "pairs": self.pairs, "held_out": held_out, "config": self.config() })
    }

    /// The files that are read.
    ///
    /// # Errors
    /// If options contradict one another or have no effect.
    pub(crate) fn inputs(&self) -> Result<Vec<(&'static str, &Path)>> {
        let mut inputs = self.examples.inputs()?;
        let held_out = &self.examples.held_out;
        if let Some(pairs) = &self.pairs {
            if held_out.rule(None, 0).is_some() {
                return Err(usage(
                    "--pairs names examples of DATA, so none of them can be held out; give --test, or nothing",
                ));
            }
            if pairs == Path::new("-") && inputs.iter().any(|(_, path)| *path == Path::new("-")) {
                return Err(usage("standard input can be read only once; give '-' once"));
            }
            inputs.push(("--pairs", pairs));
        }
        let judged = held_out.test.is_some() || (self.pairs.is_none() && !held_out.no_holdout);
        if self.training.patience.is_some() && !judged {
            return Err(usage(
                "--patience looks at held-out examples, and there are none; give --test, or leave it out",
            ));
        }
        Ok(inputs)
    }

    /// Reads it all.
    ///
    /// # Errors
    /// If something cannot be read, or nothing be learnt from it.
    pub(crate) fn read(&self) -> Result<Data> {
        let file = self.examples.data[0].display();
        let (examples, test) = match &self.pairs {
            None => self.examples.read(self.training.seed)?,
            Some(_) => self.examples.read_whole()?,
        };
        if self.pairs.is_none() && examples.classes.len() < 2 {
            bail!("{file}: has examples of one class; expected two or more to tell apart");
        }
        if examples.features() == 0 {
            bail!("{file}: has examples without features; expected some");
        }
        let pairs = self.pairs.as_ref().map(|file| pairs::read(file, examples.len())).transpose()?;
        Ok(Data { examples, pairs, test })
    }
}

impl TrainingOptions {
    fn config(&self) -> Config {
        Config {
            dimension: self.dimension,
            weight: self.weight,
            batch: self.batch,
            step: StepSize::Decay { rate: self.rate, factor: self.decay as f32 },
            epochs: self.epochs,
            patience: self.patience,
            neighbours: self.neighbours as usize,
            seed: self.seed,
        }
    }
}

/// How well neighbours tell classes.
struct Judged {
    learnt: f64,
    principal: f64,
    /// With all features, by the first so many held-out examples; nothing where that would take too long.
    raw: Option<(f64, usize)>,
}

/// Held-out examples that are judged with all features, at most, and numbers of all examples for which that is done.
const RAW: (usize, usize) = (1000, 1 << 27);

impl Arguments {
    fn train(&self, job: &Job, together: Option<peers::Together>, config: &Config, data: &Data) -> Result<()> {
        let Data { examples, pairs, test } = data;
        let test = test.as_ref();
        let counts = json!({ "train": examples.len(), "test": test.map(Examples::len), "pairs": pairs.as_ref().map(Vec::len),
            "features": examples.features(), "classes": examples.classes.len() });
        let mut epochs: Vec<Epoch<Quality>> = Vec::new();
        let ((trained, outcome), report) = job.observe(("examples", counts), &data.work(config), |observe| {
            let mut observe = |epoch: &Epoch<Quality>| {
                epochs.push(epoch.clone());
                observe(epoch);
            };
            let Some(together) = together else {
                return Ok((train(config, examples, pairs.as_deref(), test, job.workers, observe)?, None));
            };
            let by_peers::Trained { projection, principal, outcome, .. } =
                data.by_peers(config, &together.of(job), &mut observe)?;
            Ok((Trained { projection, principal }, Some(outcome)))
        })?;
        if deploy::is_child() {
            return Ok(());
        }
        let judged = test.map(|test| judge(&trained, config, examples, test, job.workers));
        let mut model = DmlModel::new(examples, trained.projection, config.neighbours);
        let last = epochs.last();
        model.config = json!(config);
        model.metrics = json!({ "epochs": last.map(|epoch| epoch.epoch),
            "objective": last.map(|epoch| epoch.quality.objective),
            "test_accuracy": judged.as_ref().map(|judged| judged.learnt),
            "principal_accuracy": judged.as_ref().map(|judged| judged.principal),
            "raw_accuracy": judged.as_ref().and_then(|judged| judged.raw.map(|raw| raw.0)) });
        let mut summary = model.metrics.clone();
        summary["seconds"] = json!(last.map(|epoch| epoch.seconds));
        let drawing = ("Distance metric learning", cost_panel(&epochs, "epoch", |epoch| f64::from(epoch.epoch)));
        peers::leave(job, report, outcome.as_ref(), summary, drawing, |path| Ok(model.save(path)?))?;
        if job.quiet {
            return Ok(());
        }
        writeln!(stdout(), "{}", labelled::read_line(examples, examples.len(), test.map(Examples::len)))?;
        self.tell(&job.out, config, examples.features(), &epochs, judged.as_ref())?;
        peers::tell(&mut stdout().lock(), outcome.as_ref())
    }

    fn tell(
        &self,
        path: &Path,
        config: &Config,
        features: usize,
        epochs: &[Epoch<Quality>],
        judged: Option<&Judged>,
    ) -> Result<()> {
        let mut out = stdout().lock();
        if let Some(last) = epochs.last() {
            let spent = format!("after {} epochs and {} of training", last.epoch, span(last.seconds));
            writeln!(out, "cost           {:.4} a pair, {spent}", last.quality.objective)?;
        }
        if let Some(Judged { learnt, principal, raw }) = judged {
            let Config { neighbours, dimension, .. } = config;
            writeln!(out, "held out       {:.2} % right by {neighbours} neighbours", 100.0 * learnt)?;
            writeln!(out, "               {:.2} % with {dimension} principal components", 100.0 * principal)?;
            if let Some((raw, count)) = raw {
                writeln!(
                    out,
                    "               {:.2} % with all {features} features (of the first {count})",
                    100.0 * raw
                )?;
            }
        }
        let model = path.display().to_string();
        writeln!(out, "model          {model}")?;
        writeln!(out, "next           hemiola predict {} {}", quoted(&model), self.problem.examples.next())?;
        Ok(())
    }
}

fn judge(trained: &Trained, config: &Config, examples: &Examples, test: &Examples, workers: u32) -> Judged {
    let features = examples.features();
    let accuracy = |known: &[f32], asked: &[f32], dimension: usize| {
        let labels = &test.labels()[..asked.len() / dimension];
        Neighbours::new(known, dimension, examples.labels()).accuracy(asked, labels, config.neighbours, workers)
    };
    let projected = |projection: &[f32]| {
        let known = project(projection, features, examples, examples.len());
        accuracy(&known, &project(projection, features, test, test.len()), config.dimension)
    };
    let raw = (features * examples.len() <= RAW.1).then(|| {
        let asked = unprojected(features, test, RAW.0);
        let known = unprojected(features, examples, examples.len());
        (accuracy(&known, &asked, features), asked.len() / features)
    });
    Judged { learnt: projected(&trained.projection), principal: projected(&trained.principal), raw }
}

impl Figures for Quality {
    fn figures(&self) -> String {
        let held_out = self.test_accuracy.map(|accuracy| format!(", held-out accuracy {accuracy:.4}"));
        format!("cost {:.4}{}", self.objective, held_out.unwrap_or_default())
    }
}

/// The cost of pairs as it falls, over whatever `at` says.
pub(crate) fn cost_panel(epochs: &[Epoch<Quality>], x: &str, at: fn(&Epoch<Quality>) -> f64) -> Panel {
    let points = epochs.iter().map(|epoch| (at(epoch), epoch.quality.objective)).collect();
    let curves = vec![Curve { name: "pairs".to_owned(), points }];
    Panel::Curves { title: "Cost".to_owned(), x: x.to_owned(), y: "mean over pairs".to_owned(), curves }
}
