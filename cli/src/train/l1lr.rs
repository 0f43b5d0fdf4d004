//! `hemiola train l1lr`: learns to tell two classes apart by few features.

mod data;

use self::data::{Data, Memory};
use super::held_out::{HeldOut, USUAL};
use super::job::{Job, Outputs, quoted};
use super::labelled;
use crate::classify::ExampleOptions;
use crate::failure::usage;
use crate::plot::{self, Curve, Panel};
use crate::progress::{Observed, Work, span};
use crate::{deploy, interrupt, numbers, outputs, report};
use anyhow::{Error, Result, anyhow, bail};
use clap::Args;
use hemiola::tasks::Delay;
use hemiola::{Deployment, Outcome};
use hemiola_models::examples::{Examples, Options};
use hemiola_models::l1lr::blocks::Cut;
use hemiola_models::l1lr::model::{Evaluation, L1lrModel};
use hemiola_models::l1lr::path::lambdas;
use hemiola_models::l1lr::prox::Penalty;
use hemiola_models::l1lr::solver::{Config, Fit, Progress};
use hemiola_models::l1lr::stopping::Stopping;
use hemiola_models::l1lr::{distributed, groups};
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, Write, stdout};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  hemiola train l1lr clicks.svm                     a penalty that held-out examples like best
  hemiola train l1lr clicks.svm --lambda 1e-5 --weights weights.txt
  hemiola train l1lr day_0.tsv.gz --test day_1.tsv.gz --bits 22
  hemiola train l1lr clicks.svm --lambda 1e-5 --processes 4 --servers 2 --delay 8
  hemiola train l1lr clicks.svm --lambda 1e-5 --processes 4 --filters key-cache,zstd,kkt
  hemiola train l1lr day_*.tsv.gz --memory 4gb --scratch /tmp      more than memory holds

DATA is libsvm, columns with a header or without, or Criteo's, with labels of two
classes. Files may be compressed by gzip, and '-' is standard input.

Delay:
  sequential  a block is worked on when the one before is done; one seed, one model
  N           a block may miss what the N before it change
  eventual    no block of a pass waits for another, with --processes
  auto        N follows how long workers wait, with --processes";

/// Learn to tell two classes apart by few features, by logistic regression with an L1 penalty.
///
/// Minimises the mean logistic loss plus lambda times the absolute weights. Without --lambda, falling values are tried,
/// each from the weights of the one before, and the model is that with the least held-out loss.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    problem: Problem,
    #[command(flatten)]
    machines: deploy::Machines,
    #[command(flatten)]
    outputs: Outputs,
    /// Take no more memory than this, such as 2gb, and keep on disk what does not fit; with --delay sequential the weights
    /// are the same to the bit, unless a Newton step does not fit: passes go on instead, to the same optimum
    #[arg(long, value_name = "SIZE", value_parser = numbers::memory, help_heading = "Where it runs",
        allow_negative_numbers = true)]
    memory: Option<u64>,
    /// The directory for what does not fit into --memory; nothing is left there [default: that of the model]
    #[arg(long, value_name = "DIR", help_heading = "Where it runs")]
    scratch: Option<PathBuf>,
    /// Write the weights as lines of feature, by name where a header has one, and weight, with 'bias' as the first feature
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    weights: Option<PathBuf>,
}

/// What to train on and how, wherever that happens.
#[derive(Args)]
pub(crate) struct Problem {
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
    /// Stop when the conditions of optimality are violated by less than this part of what they were at the start
    #[arg(long, value_name = "PART", value_parser = numbers::precise, default_value = "1e-5",
        allow_negative_numbers = true)]
    violation: f64,
    /// Passes over the features at most, for each lambda
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "1000", allow_negative_numbers = true)]
    passes: u32,
    /// Into how many blocks features are cut [default: as many as are worth it]
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_negative_numbers = true)]
    blocks: Option<u32>,
    /// Take the features of a group as a block: lines of feature, as --weights calls it, and group
    #[arg(long, value_name = "FILE")]
    groups: Option<PathBuf>,
    /// How many of the blocks before it a block may miss, as below [default: one less than threads at work, or 4]
    #[arg(long, value_name = "DELAY", value_parser = numbers::delay, allow_negative_numbers = true)]
    delay: Option<Delay>,
    /// Fixes everything that is drawn at random
    #[arg(long, value_parser = numbers::seed, default_value = "1", allow_negative_numbers = true)]
    seed: u64,
}

/// How many values of lambda are tried where none is given, and how far down they go from the first that matters.
const PATH: u32 = 30;
const PATH_END: f64 = 1e-4;
/// The path ends when the held-out loss has not fallen for so many values of lambda.
const PATIENCE: usize = 3;

/// The delay on several processes or nodes, where none is given.
const DELAY: Delay = Delay::Bounded(4);

/// Trains as the command line says.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let place = arguments.machines.meaning(None)?;
    let training = &arguments.problem.training;
    let apart = matches!(place.deployment, Deployment::Tcp(_));
    let mut way =
        if apart { Way::Tasks(training.tasks(arguments.machines.kkt())?) } else { Way::Threads(training.config()?) };
    if arguments.problem.training.lambda.is_none() && arguments.problem.held_out.no_holdout {
        return Err(usage(
            "without held-out examples no lambda can be chosen; give --lambda, or leave out --no-holdout",
        ));
    }
    let job = Job::new(place, &arguments.outputs, &arguments.problem.data[0], arguments.problem.description(&way));
    if !deploy::is_child() {
        arguments.check(&job)?;
        interrupt::install()?;
    }
    let memory = arguments.memory(&job)?;
    let data = arguments.problem.read(memory)?;
    if !job.quiet {
        data.tell();
    }
    arguments.problem.group(&data.known, way.blocks())?;
    arguments.train(&job, &way, data)
}

/// Where the weights are fitted.
pub(crate) enum Way {
    /// On the threads of this process.
    Threads(Config),
    /// On several processes or nodes.
    Tasks(distributed::Config),
}

impl Way {
    fn blocks(&mut self) -> &mut Cut {
        match self {
            Self::Threads(config) => &mut config.blocks,
            Self::Tasks(config) => &mut config.blocks,
        }
    }
}

impl TrainingOptions {
    fn stopping(&self) -> Stopping {
        Stopping { tolerance: self.tolerance, violation: self.violation, passes: self.passes }
    }

    /// How features are cut into blocks, before their groups are known.
    fn cut(&self) -> Result<Cut> {
        if self.blocks.is_some() && self.groups.is_some() {
            return Err(usage("--blocks and --groups each say how features are cut; give one of them"));
        }
        Ok(self.blocks.map_or(Cut::Automatic, Cut::Into))
    }

    fn config(&self) -> Result<Config> {
        let delay = match &self.delay {
            None => None,
            Some(Delay::Sequential) => Some(0),
            Some(Delay::Bounded(blocks)) => Some(*blocks as u32),
            Some(delay) => {
                return Err(usage(format!(
                    "--delay {delay} needs --processes: on the threads of one process it is a number of blocks"
                )));
            }
        };
        Ok(Config { bias: !self.no_bias, blocks: self.cut()?, delay, stopping: self.stopping(), seed: self.seed })
    }

    /// How to train on several processes or nodes, with the KKT filter or without.
    ///
    /// # Errors
    /// If several values of lambda are to be tried.
    pub(crate) fn tasks(&self, kkt: bool) -> Result<distributed::Config> {
        let Some(lambda) = self.lambda else {
            return Err(usage(
                "without --lambda its values are tried one after the other, which several processes cannot do; \
                 give --lambda",
            ));
        };
        if self.path.is_some() {
            return Err(usage(
                "--path has no effect on several processes or nodes, which fit one lambda; leave it out",
            ));
        }
        Ok(distributed::Config {
            penalty: self.penalty(lambda),
            bias: !self.no_bias,
            blocks: self.cut()?,
            delay: self.delay.clone().unwrap_or(DELAY),
            kkt,
            stopping: self.stopping(),
            seed: self.seed,
        })
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

impl Problem {
    /// What the report says first.
    pub(crate) fn description(&self, way: &Way) -> Value {
        json!({ "model": "l1lr", "data": self.data, "held_out": self.held_out.description(Some(USUAL)),
            "config": self.described(way) })
    }

    /// How the model is trained, for the report and for the model.
    fn described(&self, way: &Way) -> Value {
        let mut described = match way {
            Way::Threads(config) => json!(config),
            Way::Tasks(config) => json!({ "bias": config.bias, "blocks": config.blocks,
                "delay": config.delay.to_string(), "kkt": config.kkt, "stopping": config.stopping, "seed": config.seed }),
        };
        described["l2"] = json!(self.training.l2);
        described["non_negative"] = json!(self.training.non_negative);
        described
    }

    /// How to simulate it.
    ///
    /// # Errors
    /// If an option has no effect there.
    pub(crate) fn tasks(&self, kkt: bool) -> Result<distributed::Config> {
        self.training.tasks(kkt)
    }

    pub(crate) fn inputs(&self) -> Result<Vec<(&'static str, &Path)>> {
        let mut inputs = labelled::inputs(&self.data, &self.held_out, &self.reading)?;
        inputs.extend(self.training.groups.iter().map(|path| ("--groups", path.as_path())));
        Ok(inputs)
    }

    /// Reads the examples and holds some out.
    pub(crate) fn read(&self, memory: Option<Memory>) -> Result<Data> {
        let options = Options { bits: self.bits, ..self.reading.reading() };
        let rule = self.held_out.rule(Some(USUAL), self.training.seed);
        let check = |known: &Examples| self.check(known);
        match memory {
            None => Data::read(&self.data, self.held_out.test.as_deref(), &options, rule, check),
            Some(memory) => Data::stream(&self.data, self.held_out.test.as_deref(), &options, rule, check, memory),
        }
    }

    /// Cuts features as --groups says, now that there are names for them.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn group(&self, known: &Examples, blocks: &mut Cut) -> Result<()> {
        if let Some(path) = &self.training.groups {
            *blocks = Cut::ByGroup(groups::read(path, known)?);
        }
        Ok(())
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
}

impl Arguments {
    /// Finds out before the work what would go wrong after it.
    fn check(&self, job: &Job) -> Result<()> {
        let mut inputs = self.problem.inputs()?;
        job.check(&inputs)?;
        if let Some(path) = &self.weights {
            inputs.push(("--out", &job.out));
            inputs.extend(job.report.iter().map(|path| ("--report", path.as_path())));
            inputs.extend(job.plot.iter().map(|path| ("--plot", path.as_path())));
            outputs::check_distinct(&inputs, &[("--weights", path)])?;
            outputs::check_writable(path)?;
        }
        Ok(())
    }

    /// What is said of memory.
    fn memory(&self, job: &Job) -> Result<Option<Memory>> {
        let Some(limit) = self.memory else {
            return match self.scratch {
                Some(_) => Err(usage("--scratch has an effect only with --memory; give that, too")),
                None => Ok(None),
            };
        };
        if matches!(job.deployment, Deployment::Tcp(_)) {
            return Err(usage("--memory has an effect only in one process; leave out --processes, or --memory"));
        }
        let scratch = self.scratch.clone().unwrap_or_else(|| outputs::parent(&job.out));
        if !scratch.is_dir() {
            bail!("--scratch {}: is no directory; expected one that can be written to", scratch.display());
        }
        Ok(Some(Memory { limit, scratch }))
    }

    fn train(&self, job: &Job, way: &Way, mut data: Data) -> Result<()> {
        let training = &self.problem.training;
        let (counts, units) = (data.counts(), ("examples", data.len()));
        let work = Work { units, epochs: training.passes, may_stop_early: true };
        let mut passes: Vec<Progress> = Vec::new();
        let mut apart = None;
        let (mut path, mut report) = match way {
            Way::Tasks(config) => job.observe(("examples", counts), &work, |observe| {
                let trained = distributed::train(&data.known, config, &job.deployment, |progress| {
                    passes.push(*progress);
                    observe(progress);
                })?;
                apart = Some((trained.outcome, trained.keys));
                let seconds = passes.last().map_or(0.0, |progress| progress.seconds);
                Ok(vec![Tried::new(1, config.penalty.l1, seconds, &data, trained.fit)?])
            })?,
            Way::Threads(config) => {
                let lambdas = training.lambdas(&data)?;
                let least = lambdas.last().copied().unwrap_or_default();
                if lambdas.len() == 1 {
                    job.observe(("examples", counts), &work, |observe| {
                        let mut solver = data.solver(least, job.workers, config)?;
                        let fit = solver.fit(training.penalty(least), |progress| {
                            passes.push(*progress);
                            observe(progress);
                        });
                        let fit = fit.map_err(unreadable)?;
                        let seconds = passes.last().map_or(0.0, |progress| progress.seconds);
                        Ok(vec![Tried::new(1, least, seconds, &data, fit)?])
                    })?
                } else {
                    let work = Work { units, epochs: lambdas.len() as u32, may_stop_early: training.lambda.is_none() };
                    job.observe(("examples", counts), &work, |observe| {
                        let mut solver = data.solver(least, job.workers, config)?;
                        let (mut path, mut seconds): (Vec<Tried>, f64) = (Vec::new(), 0.0);
                        for (number, &lambda) in (1..).zip(&lambdas) {
                            let fit = solver.fit(training.penalty(lambda), |progress| seconds = progress.seconds);
                            let fit = fit.map_err(unreadable)?;
                            path.push(Tried::new(number, lambda, seconds, &data, fit)?);
                            observe(&path[path.len() - 1]);
                            if training.lambda.is_none() && path.len() - best(&path) > PATIENCE {
                                break;
                            }
                        }
                        Ok(path)
                    })?
                }
            }
        };
        let panel = if passes.is_empty() {
            path_panel(&path)
        } else {
            pass_panel(&passes, "pass", |pass| f64::from(pass.pass))
        };
        let chosen = if training.lambda.is_some() { path.len() - 1 } else { best(&path) };
        let chosen = path.swap_remove(chosen);
        let metrics = json!(chosen);
        let mut described = self.problem.described(way);
        described["lambda"] = json!(chosen.lambda);
        let model = L1lrModel::new(&data.known, &chosen.fit, described, metrics.clone());
        let writing = interrupt::hold();
        model.save(&job.out)?;
        if let Some(file) = &self.weights {
            outputs::write_whole(file, |out| {
                if !training.no_bias {
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
        if let Some((outcome, (pushed, filtered))) = &apart {
            if let (Value::Object(summary), Value::Object(run)) = (&mut summary, report::summary(outcome)) {
                summary.extend(run);
            }
            summary["keys"] = json!({ "pushed": pushed, "filtered": filtered });
        }
        summary["model"] = json!(job.out);
        report.line("summary", &summary)?;
        drop(writing);
        if job.quiet {
            return Ok(());
        }
        writeln!(stdout(), "{}", data.read_line())?;
        self.tell(&job.out, &model, &chosen, apart.as_ref())
    }

    fn tell(
        &self,
        path: &Path,
        model: &L1lrModel,
        chosen: &Tried,
        apart: Option<&(Outcome, (u64, u64))>,
    ) -> Result<()> {
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
        if let Some((outcome, keys)) = apart {
            tell_sent(&mut out, outcome, *keys)?;
            report::tell(&mut out, outcome)?;
        }
        let model = path.display().to_string();
        writeln!(out, "model          {model}")?;
        let next = labelled::next(&self.problem.data, &self.problem.held_out, &self.problem.reading);
        writeln!(out, "next           hemiola eval {} {next}", quoted(&model))?;
        Ok(())
    }
}

/// Tells people what workers sent, and what the filter kept back.
fn tell_sent(out: &mut impl Write, outcome: &Outcome, (pushed, filtered): (u64, u64)) -> io::Result<()> {
    let part = 100.0 * filtered as f64 / (pushed + filtered).max(1) as f64;
    writeln!(out, "traffic        {}, {part:.0} % of keys filtered", report::traffic(outcome))
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

pub(crate) fn pass_panel(passes: &[Progress], x: &str, at: fn(&Progress) -> f64) -> Panel {
    let points = passes.iter().map(|progress| (at(progress), progress.objective)).collect();
    let curves = vec![Curve { name: "objective".to_owned(), points }];
    Panel::Curves { title: "Objective".to_owned(), x: x.to_owned(), y: "loss and penalty".to_owned(), curves }
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
