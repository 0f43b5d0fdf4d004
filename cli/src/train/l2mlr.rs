//! `hemiola train l2mlr`: learns to tell classes apart, and proves how close to the best the weights are.

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
use hemiola_models::Epoch;
use hemiola_models::examples::Examples;
use hemiola_models::l2mlr::peers as by_peers;
pub(crate) use hemiola_models::l2mlr::solver::Config;
use hemiola_models::l2mlr::solver::{Fit, Quality, fit};
use hemiola_models::mlr::model::MlrModel;
use hemiola_models::peers::{Exchange, Peers};
use serde_json::{Value, json};
use std::io::{Write, stdout};
use std::path::Path;

const EXAMPLES: &str = "\
Examples:
  hemiola train l2mlr train-images-idx3-ubyte.gz --test t10k-images-idx3-ubyte.gz
  hemiola train l2mlr news.train.libsvm.gz --lambda 1e-4 --gap 1e-5
  hemiola train l2mlr news.train.libsvm.gz --processes 4 --batch 500

DATA is libsvm, columns with a header or without, or MNIST's idx. Files may be
compressed by gzip, and '-' is standard input. Features should be of similar size.";

/// Learn to tell classes apart, by softmax regression with an L2 penalty: dual coordinate ascent.
///
/// Minimises the mean loss plus lambda/2 times the squared weights, those of the bias included. It ends when the duality
/// gap is small: by so much the objective exceeds its least at most. One thread does it where there are two or few examples:
/// more would be no sooner.
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
    #[command(flatten)]
    training: TrainingOptions,
}

#[derive(Args)]
#[command(next_help_heading = "Training")]
struct TrainingOptions {
    /// Weight of the squared weights in the objective [default: 1 over the number of examples]
    #[arg(long, value_parser = numbers::precise, allow_negative_numbers = true)]
    lambda: Option<f64>,
    /// The duality gap to end with
    #[arg(long, value_parser = numbers::precise, default_value = "1e-3", allow_negative_numbers = true)]
    gap: f64,
    /// Leave out the bias
    #[arg(long)]
    no_bias: bool,
    /// Passes over the examples at most
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "1000", allow_negative_numbers = true)]
    epochs: u32,
    /// Examples of an iteration of each peer, with --peers or --processes [default: 100]
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_negative_numbers = true)]
    batch: Option<u32>,
    /// Fixes everything that is drawn at random
    #[arg(long, value_parser = numbers::seed, default_value = "1", allow_negative_numbers = true)]
    seed: u64,
}

/// Examples of an iteration where nothing else is said; the paper's.
const BATCH: u32 = 100;

/// Trains as the command line says.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let problem = &arguments.problem;
    let peers = arguments.peers.meaning()?;
    let together = peers.together();
    match together {
        None if problem.training.batch.is_some() => {
            return Err(usage("--batch has an effect only with --peers or --processes"));
        }
        Some(together) => check_all_send(together.exchange())?,
        None => {}
    }
    if together.is_some() && arguments.peers.has_workers() {
        return Err(usage("--workers has no effect with --peers or --processes: a peer of l2mlr is one thread"));
    }
    let job = Job::new(peers.place, &arguments.outputs, &problem.examples.data[0], problem.description());
    if !deploy::is_child() {
        job.check(&problem.inputs()?)?;
        interrupt::install()?;
    }
    let (examples, test) = problem.read()?;
    if !job.quiet {
        labelled::tell(&examples, test.as_ref());
    }
    arguments.train(&job, together, examples, test.as_ref())
}

/// Refuses a partial broadcast.
///
/// # Errors
/// If it is one.
pub(crate) fn check_all_send(exchange: Exchange) -> Result<()> {
    match exchange.fanout {
        Some(_) => Err(usage(
            "--fanout would leave out of a peer's weights what some examples say, and the duality gap is of all; leave it out",
        )),
        None => Ok(()),
    }
}

impl Problem {
    pub(crate) fn config(&self) -> Config {
        let TrainingOptions { lambda, gap, no_bias, epochs, seed, .. } = self.training;
        Config { lambda, bias: !no_bias, gap, epochs, seed }
    }

    pub(crate) fn description(&self) -> Value {
        let Labelled { data, held_out, .. } = &self.examples;
        json!({ "model": "l2mlr", "data": data, "held_out": held_out.description(Some(USUAL)),
            "batch": self.training.batch, "config": self.config() })
    }

    pub(crate) fn inputs(&self) -> Result<Vec<(&'static str, &Path)>> {
        self.examples.inputs()
    }

    /// Reads the examples.
    ///
    /// # Errors
    /// If they cannot be read, or there is nothing to tell apart.
    pub(crate) fn read(&self) -> Result<(Examples, Option<Examples>)> {
        let (examples, test) = self.examples.read(self.training.seed)?;
        if examples.classes.len() < 2 {
            let file = self.examples.data[0].display();
            bail!("{file}: has examples of one class; expected two or more to tell apart");
        }
        Ok((examples, test))
    }

    /// What there is to do.
    pub(crate) fn work(&self, examples: &Examples) -> Work {
        Work { units: ("examples", examples.len()), epochs: self.training.epochs, may_stop_early: true }
    }

    /// Fits by peers.
    ///
    /// # Errors
    /// If the job fails.
    pub(crate) fn by_peers(
        &self,
        config: &Config,
        place: &Peers<'_>,
        examples: &Examples,
        observe: &mut (dyn FnMut(&Epoch<Quality>) + Send),
    ) -> Result<by_peers::Fitted> {
        Ok(by_peers::fit(examples, config, self.training.batch.unwrap_or(BATCH), place, observe)?)
    }
}

impl Arguments {
    fn train(
        &self,
        job: &Job,
        together: Option<peers::Together>,
        examples: Examples,
        test: Option<&Examples>,
    ) -> Result<()> {
        let (problem, config) = (&self.problem, &self.problem.config());
        let read = labelled::read_line(&examples, examples.len(), test.map(Examples::len));
        let counts = json!({ "train": examples.len(), "test": test.map(Examples::len),
            "features": examples.features(), "classes": examples.classes.len() });
        let mut epochs: Vec<Epoch<Quality>> = Vec::new();
        let ((fit, outcome), report) = job.observe(("examples", counts), &problem.work(&examples), |observe| {
            let mut observe = |epoch: &Epoch<Quality>| {
                epochs.push(epoch.clone());
                observe(epoch);
            };
            let Some(together) = together else {
                return Ok((fit(&examples, config, job.workers, observe), None));
            };
            let fitted = problem.by_peers(config, &together.of(job), &examples, &mut observe)?;
            Ok((fitted.fit, Some(fitted.outcome)))
        })?;
        if deploy::is_child() {
            return Ok(());
        }
        let feature_names = examples.feature_names().to_vec();
        let model = MlrModel::new(examples.classes, &fit.weights, json!(config), Value::Null);
        let mut model = model.with_feature_names(feature_names);
        let tested = test.map(|test| model.evaluate(test));
        model.config["lambda"] = json!(fit.lambda);
        model.metrics = json!({ "epochs": fit.epochs, "objective": fit.objective, "gap": fit.gap,
            "converged": fit.converged, "train_loss": fit.loss, "train_accuracy": fit.accuracy,
            "test_loss": tested.as_ref().map(|tested| tested.loss()),
            "test_accuracy": tested.as_ref().map(|tested| tested.accuracy()) });
        let seconds = epochs.last().map_or(0.0, |epoch| epoch.seconds);
        let mut summary = model.metrics.clone();
        summary["seconds"] = json!(seconds);
        let drawing = ("Softmax regression", gap_panel(&epochs, "epoch", |epoch| f64::from(epoch.epoch)));
        peers::leave(job, report, outcome.as_ref(), summary, drawing, |path| Ok(model.save(path)?))?;
        if job.quiet {
            return Ok(());
        }
        writeln!(stdout(), "{read}")?;
        let tested = tested.map(|tested| (tested.accuracy(), tested.loss()));
        self.tell(&job.out, &fit, tested, &format!("after {} epochs and {} of training", fit.epochs, span(seconds)))?;
        peers::tell(&mut stdout().lock(), outcome.as_ref())
    }

    fn tell(&self, path: &Path, fit: &Fit, tested: Option<(f64, f64)>, spent: &str) -> Result<()> {
        let mut out = stdout().lock();
        match tested {
            Some((accuracy, loss)) => {
                writeln!(out, "held out       {:.2} % right, loss {loss:.4}, {spent}", 100.0 * accuracy)?;
            }
            None => writeln!(out, "training loss  {:.4} {spent}", fit.loss)?,
        }
        writeln!(out, "objective      {:.6} with lambda {:.4e}", fit.objective, fit.lambda)?;
        writeln!(out, "duality gap    {:.2e}", fit.gap)?;
        if !fit.converged {
            writeln!(out, "               not yet as small as asked for; give more --epochs")?;
        }
        let model = path.display().to_string();
        writeln!(out, "model          {model}")?;
        writeln!(out, "next           hemiola eval {} {}", quoted(&model), self.problem.examples.next())?;
        Ok(())
    }
}

impl Figures for Quality {
    fn figures(&self) -> String {
        match self.whole {
            Some(whole) => format!("objective {:.6}, gap {:.2e}", whole.objective, self.gap),
            None => format!("gap about {:.2e}", self.gap),
        }
    }
}

/// The gap as it closes, over whatever `at` says.
pub(crate) fn gap_panel(epochs: &[Epoch<Quality>], x: &str, at: fn(&Epoch<Quality>) -> f64) -> Panel {
    let points = epochs.iter().map(|epoch| (at(epoch), epoch.quality.gap.max(1e-12).log10())).collect();
    let curves = vec![Curve { name: "gap".to_owned(), points }];
    Panel::Curves { title: "Duality gap".to_owned(), x: x.to_owned(), y: "log10".to_owned(), curves }
}
