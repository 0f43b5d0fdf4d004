//! `hemiola train l1lr`: learns to tell two classes apart by few features.

mod data;

use self::data::{Data, Memory};
use super::held_out::{HeldOut, USUAL};
use super::job::{Job, Outputs, quoted};
use crate::classify::ExampleOptions;
use crate::failure::usage;
use crate::plot::{self, Curve, Panel};
use crate::progress::{Observed, Work, span};
use crate::{deploy, interrupt, numbers, outputs};
use anyhow::{Error, Result, anyhow, bail};
use clap::Args;
use hemiola::Deployment;
use hemiola_models::examples::{Examples, Options};
use hemiola_models::l1lr::model::{Evaluation, L1lrModel};
use hemiola_models::l1lr::path::lambdas;
use hemiola_models::l1lr::prox::Penalty;
use hemiola_models::l1lr::solver::{Config, Fit, Progress};
use hemiola_models::l1lr::stopping::Stopping;
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, Write, stdout};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  hemiola train l1lr clicks.svm                     a penalty that held-out examples like best
  hemiola train l1lr clicks.svm --lambda 1e-5 --weights weights.txt
  hemiola train l1lr day_0.tsv.gz --test day_1.tsv.gz --bits 22
  hemiola train l1lr day_*.tsv.gz --memory 4gb --scratch /tmp      more than memory holds

DATA is libsvm, columns with a header or without, or Criteo's, with labels of two
classes. Files may be compressed by gzip, and '-' is standard input.";

/// Learn to tell two classes apart by few features, by logistic regression with an L1 penalty.
///
/// Minimises the mean logistic loss plus lambda times the absolute weights. Without --lambda, falling values are tried,
/// each from the weights of the one before, and the model is that with the least held-out loss.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Files of labelled examples
    #[arg(required = true, value_name = "DATA")]
    data: Vec<PathBuf>,
    #[command(flatten)]
    reading: ExampleOptions,
    /// Bits of the features' numbers in Criteo's format, which are hashes [default: 20]
    #[arg(long, value_name = "N", value_parser = numbers::bits, help_heading = "Examples", allow_negative_numbers = true)]
    bits: Option<u32>,
    #[command(flatten)]
    held_out: HeldOut,
    #[command(flatten)]
    training: TrainingOptions,
    /// Threads that train [default: all cores, as far as there is work for them]
    #[arg(long, value_name = "N", value_parser = numbers::team, help_heading = "Where it runs",
        allow_negative_numbers = true)]
    workers: Option<u32>,
    /// Take no more memory than this, such as 2gb, and keep on disk what does not fit
    #[arg(long, value_name = "SIZE", value_parser = numbers::memory, help_heading = "Where it runs",
        allow_negative_numbers = true)]
    memory: Option<u64>,
    /// The directory for what does not fit into --memory; nothing is left there [default: that of the model]
    #[arg(long, value_name = "DIR", help_heading = "Where it runs")]
    scratch: Option<PathBuf>,
    #[command(flatten)]
    outputs: Outputs,
    /// Write the weights as lines of feature, by name where a header has one, and weight, with 'bias' as the first feature
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    weights: Option<PathBuf>,
}

#[derive(Args)]
#[command(next_help_heading = "Training")]
struct TrainingOptions {
    /// Weight of the absolute weights in the objective [default: what held-out examples like best]
    #[arg(long, value_parser = numbers::precise, allow_negative_numbers = true)]
    lambda: Option<f64>,
    /// How many falling values of lambda, to the one given if one is [default: 1 with --lambda, else 30]
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_negative_numbers = true)]
    path: Option<u32>,
    /// Weight of the squared weights in the objective, for an elastic net
    #[arg(long, value_name = "WEIGHT", value_parser = numbers::not_negative, default_value = "0",
        allow_negative_numbers = true)]
    l2: f32,
    /// Allow no weight below zero
    #[arg(long)]
    non_negative: bool,
    /// Leave out the bias, which costs nothing
    #[arg(long)]
    no_bias: bool,
    /// Stop when the objective has fallen by less than this part of itself
    #[arg(long, value_name = "PART", value_parser = numbers::precise, default_value = "1e-7",
        allow_negative_numbers = true)]
    tolerance: f64,
    /// Passes over the features at most, for each lambda
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "1000", allow_negative_numbers = true)]
    passes: u32,
    /// Into how many blocks features are cut [default: as many as are worth it]
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_negative_numbers = true)]
    blocks: Option<u32>,
    /// How many of the blocks before it a block may miss [default: one less than threads at work]
    #[arg(long, value_name = "BLOCKS", value_parser = numbers::delay, allow_negative_numbers = true)]
    delay: Option<u32>,
    /// Fixes everything that is drawn at random
    #[arg(long, value_parser = numbers::seed, default_value = "1", allow_negative_numbers = true)]
    seed: u64,
}

/// How many values of lambda are tried where none is given, and how far down they go from the first that matters.
const PATH: u32 = 30;
const PATH_END: f64 = 1e-4;
/// The path ends when the held-out loss has not fallen for so many values of lambda.
const PATIENCE: usize = 3;

/// Trains as the command line says.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.training.lambda.is_none() && arguments.held_out.no_holdout {
        return Err(usage(
            "without held-out examples no lambda can be chosen; give --lambda, or leave out --no-holdout",
        ));
    }
    let config = arguments.training.config();
    let job = arguments.job(&config);
    let inputs = arguments.inputs()?;
    job.check(&inputs)?;
    if let Some(path) = &arguments.weights {
        let mut others = inputs.clone();
        others.push(("--out", &job.out));
        others.extend(job.report.iter().map(|path| ("--report", path.as_path())));
        others.extend(job.plot.iter().map(|path| ("--plot", path.as_path())));
        outputs::check_distinct(&others, &[("--weights", path)])?;
        outputs::check_writable(path)?;
    }
    let memory = arguments.memory(&job)?;
    interrupt::install()?;
    let data = arguments.read(memory)?;
    arguments.train(&job, &config, data)
}

impl TrainingOptions {
    fn config(&self) -> Config {
        let stopping = Stopping { tolerance: self.tolerance, passes: self.passes, ..Stopping::default() };
        Config { bias: !self.no_bias, blocks: self.blocks, delay: self.delay, stopping, seed: self.seed }
    }

    /// The values of lambda to fit, one after the other.
    fn lambdas(&self, data: &Data) -> Result<Vec<f64>> {
        if let (Some(lambda), None | Some(1)) = (self.lambda, self.path) {
            return Ok(vec![lambda]);
        }
        let max = data.lambda_max(!self.no_bias)?;
        if max == 0.0 {
            bail!("no feature says anything about the class, so no lambda can be chosen; give other data, or --lambda");
        }
        Ok(lambdas(max, self.lambda.unwrap_or(PATH_END * max), self.path.unwrap_or(PATH)))
    }

    fn penalty(&self, lambda: f64) -> Penalty {
        Penalty { l1: lambda, l2: f64::from(self.l2), non_negative: self.non_negative }
    }
}

impl Arguments {
    fn job(&self, config: &Config) -> Job {
        let workers =
            self.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get() as u32));
        let description = json!({ "kind": "threads", "workers": workers });
        let place = deploy::Meaning { deployment: Deployment::threads(workers), workers, description };
        let description = json!({ "model": "l1lr", "data": self.data,
            "held_out": self.held_out.description(Some(USUAL)), "config": self.described(config) });
        Job::new(place, &self.outputs, &self.data[0], description)
    }

    /// How the model is trained, for the report and for the model.
    fn described(&self, config: &Config) -> Value {
        let mut described = json!(config);
        described["l2"] = json!(self.training.l2);
        described["non_negative"] = json!(self.training.non_negative);
        described
    }

    fn inputs(&self) -> Result<Vec<(&'static str, &Path)>> {
        let data = self.data.iter().map(|path| ("DATA", path.as_path()));
        let test = self.held_out.test.iter().map(|path| ("--test", path.as_path()));
        let labels = self.reading.labels().into_iter().map(|path| ("--labels", path));
        let inputs: Vec<_> = data.chain(test).chain(labels).collect();
        if inputs.iter().filter(|(_, path)| *path == Path::new("-")).count() > 1 {
            return Err(usage("standard input can be read only once; give '-' once"));
        }
        Ok(inputs)
    }

    /// What is said of memory.
    fn memory(&self, job: &Job) -> Result<Option<Memory>> {
        let Some(limit) = self.memory else {
            return match self.scratch {
                Some(_) => Err(usage("--scratch has an effect only with --memory; give that, too")),
                None => Ok(None),
            };
        };
        let scratch = self.scratch.clone().unwrap_or_else(|| outputs::parent(&job.out));
        if !scratch.is_dir() {
            bail!("--scratch {}: is no directory; expected one that can be written to", scratch.display());
        }
        Ok(Some(Memory { limit, scratch }))
    }

    /// Reads the examples and holds some out.
    fn read(&self, memory: Option<Memory>) -> Result<Data> {
        let options = Options { bits: self.bits, ..self.reading.reading() };
        let rule = self.held_out.rule(Some(USUAL), self.training.seed);
        let check = |known: &Examples| self.check(known);
        match memory {
            None => Data::read(&self.data, self.held_out.test.as_deref(), &options, rule, check),
            Some(memory) => Data::stream(&self.data, self.held_out.test.as_deref(), &options, rule, check, memory),
        }
    }

    /// Checks what is known of all examples.
    fn check(&self, known: &Examples) -> Result<()> {
        if self.bits.is_some() && known.hashed_bits().is_none() {
            return Err(usage("--bits has an effect only with Criteo's format"));
        }
        if known.classes.len() != 2 {
            let classes = match known.classes.len() {
                1 => "one class".to_owned(),
                classes => format!("{classes} classes"),
            };
            let file = self.data[0].display();
            bail!("{file}: has examples of {classes}; expected two, such as -1 and 1, or 0 and 1");
        }
        Ok(())
    }

    fn train(&self, job: &Job, config: &Config, mut data: Data) -> Result<()> {
        let lambdas = self.training.lambdas(&data)?;
        let least = lambdas.last().copied().unwrap_or_default();
        let (counts, units) = (data.counts(), ("examples", data.len()));
        let mut passes: Vec<Progress> = Vec::new();
        let (mut path, mut report) = if lambdas.len() == 1 {
            let work = Work { units, epochs: config.stopping.passes, may_stop_early: true };
            job.observe(("examples", counts), &work, |observe| {
                let mut solver = data.solver(least, job.workers, config)?;
                let fit = solver.fit(self.training.penalty(least), |progress| {
                    passes.push(*progress);
                    observe(progress);
                });
                let fit = fit.map_err(unreadable)?;
                let seconds = passes.last().map_or(0.0, |progress| progress.seconds);
                Ok(vec![Tried::new(1, least, seconds, &data, fit)?])
            })?
        } else {
            let work = Work { units, epochs: lambdas.len() as u32, may_stop_early: self.training.lambda.is_none() };
            job.observe(("examples", counts), &work, |observe| {
                let mut solver = data.solver(least, job.workers, config)?;
                let (mut path, mut seconds): (Vec<Tried>, f64) = (Vec::new(), 0.0);
                for (number, &lambda) in (1..).zip(&lambdas) {
                    let fit = solver.fit(self.training.penalty(lambda), |progress| seconds = progress.seconds);
                    let fit = fit.map_err(unreadable)?;
                    path.push(Tried::new(number, lambda, seconds, &data, fit)?);
                    observe(&path[path.len() - 1]);
                    if self.training.lambda.is_none() && path.len() - best(&path) > PATIENCE {
                        break;
                    }
                }
                Ok(path)
            })?
        };
        let panel = if passes.is_empty() { path_panel(&path) } else { pass_panel(&passes) };
        let chosen = if self.training.lambda.is_some() { path.len() - 1 } else { best(&path) };
        let chosen = path.swap_remove(chosen);
        let metrics = json!(chosen);
        let mut described = self.described(config);
        described["lambda"] = json!(chosen.lambda);
        let model = L1lrModel::new(&data.known, &chosen.fit, described, metrics.clone());
        let writing = interrupt::hold();
        model.save(&job.out)?;
        if let Some(file) = &self.weights {
            outputs::write_whole(file, |out| {
                if config.bias {
                    writeln!(out, "bias\t{}", model.bias)?;
                }
                model.nonzeros().try_for_each(|(feature, weight)| match data.known.feature_name(feature) {
                    Some(name) => writeln!(out, "{}\t{weight}", name.replace(['\t', '\r'], " ")),
                    None => writeln!(out, "{feature}\t{weight}"),
                })
            })?;
        }
        if let Some(file) = &job.plot {
            plot::write(file, "Logistic regression", &[panel])?;
        }
        let mut summary = metrics;
        summary["model"] = json!(job.out);
        report.line("summary", &summary)?;
        drop(writing);
        if job.quiet { Ok(()) } else { self.tell(&job.out, &model, &chosen) }
    }

    fn tell(&self, path: &Path, model: &L1lrModel, chosen: &Tried) -> Result<()> {
        let mut out = stdout().lock();
        let spent = format!("after {} passes and {} of training", chosen.passes, span(chosen.seconds));
        match &chosen.test {
            Some(test) => {
                let auc = test.auc.map(|auc| format!(", AUC {auc:.4}")).unwrap_or_default();
                let right = 100.0 * test.accuracy;
                writeln!(out, "held out       loss {:.4}{auc}, {right:.2} % right, {spent}", test.loss)?;
            }
            None => writeln!(out, "training loss  {:.4} {spent}", chosen.loss)?,
        }
        writeln!(out, "objective      {:.6} with lambda {:.4e}", chosen.objective, chosen.lambda)?;
        if !chosen.fit.converged {
            writeln!(out, "               not yet at its least; give more --passes")?;
        }
        writeln!(out, "weights        {} of {}", chosen.nonzeros, model.weights.len())?;
        let model = path.display().to_string();
        writeln!(out, "model          {model}")?;
        let file = self.held_out.test.as_ref().unwrap_or(&self.data[0]);
        writeln!(out, "next           hemiola eval {} {}", quoted(&model), quoted(&file.display().to_string()))?;
        Ok(())
    }
}

/// The sentence for what was put on disk and is not there any more.
fn unreadable(error: io::Error) -> Error {
    anyhow!("what --memory does not hold cannot be read from --scratch again: {error}")
}

/// A value of lambda that was fitted.
#[derive(Serialize)]
struct Tried {
    /// Which of them, from 1.
    step: u32,
    lambda: f64,
    seconds: f64,
    objective: f64,
    loss: f64,
    nonzeros: usize,
    passes: u32,
    test: Option<Evaluation>,
    #[serde(skip)]
    fit: Fit,
}

impl Tried {
    fn new(step: u32, lambda: f64, seconds: f64, data: &Data, fit: Fit) -> Result<Self> {
        let test = data.judge(|| L1lrModel::new(&data.known, &fit, Value::Null, Value::Null))?;
        let (objective, loss, nonzeros, passes) = (fit.objective, fit.loss, fit.weights.len(), fit.passes);
        Ok(Self { step, lambda, seconds, objective, loss, nonzeros, passes, test, fit })
    }
}

/// Which of them has the least held-out loss.
fn best(path: &[Tried]) -> usize {
    let loss = |tried: &Tried| tried.test.map_or(f64::INFINITY, |test| test.loss);
    (0..path.len()).min_by(|&one, &other| loss(&path[one]).total_cmp(&loss(&path[other]))).unwrap_or(0)
}

impl Observed for Tried {
    fn number(&self) -> u32 {
        self.step
    }

    fn seconds(&self) -> f64 {
        self.seconds
    }

    fn figures(&self) -> String {
        let held_out = self.test.map(|test| format!(", held-out loss {:.4}", test.loss)).unwrap_or_default();
        format!("lambda {:.3e}, objective {:.5}, {} weights{held_out}", self.lambda, self.objective, self.nonzeros)
    }
}

impl Observed for Progress {
    fn number(&self) -> u32 {
        self.pass
    }

    fn seconds(&self) -> f64 {
        self.seconds
    }

    fn figures(&self) -> String {
        format!("objective {:.6}, {} weights", self.objective, self.nonzeros)
    }
}

fn pass_panel(passes: &[Progress]) -> Panel {
    let points = passes.iter().map(|progress| (f64::from(progress.pass), progress.objective)).collect();
    let curves = vec![Curve { name: "objective".to_owned(), points }];
    Panel::Curves { title: "Objective".to_owned(), x: "pass".to_owned(), y: "loss and penalty".to_owned(), curves }
}

fn path_panel(path: &[Tried]) -> Panel {
    let curve = |name: &str, value: fn(&Tried) -> Option<f64>| Curve {
        name: name.to_owned(),
        points: path.iter().filter_map(|tried| Some((-tried.lambda.log10(), value(tried)?))).collect(),
    };
    let mut curves = vec![curve("training", |tried| Some(tried.loss))];
    if path.iter().any(|tried| tried.test.is_some()) {
        curves.push(curve("held out", |tried| tried.test.map(|test| test.loss)));
    }
    Panel::Curves {
        title: "Loss along the path".to_owned(),
        x: "-log10 lambda".to_owned(),
        y: "log loss".to_owned(),
        curves,
    }
}
