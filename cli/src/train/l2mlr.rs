//! `hemiola train l2mlr`: learns to tell classes apart, and proves how close to the best the weights are.

use super::held_out::USUAL;
use super::job::{Job, Outputs, quoted};
use super::labelled::Labelled;
use super::peers;
use crate::failure::usage;
use crate::plot::{Curve, Panel};
use crate::progress::{Figures, Observed, Work, span};
use crate::{deploy, interrupt, numbers};
use anyhow::{Result, bail};
use clap::Args;
use hemiola_models::examples::Examples;
use hemiola_models::l2mlr::peers as by_peers;
use hemiola_models::l2mlr::solver::{Config, Fit, Progress, fit};
use hemiola_models::mlr::model::MlrModel;
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
/// gap is small: by so much the objective exceeds its least at most.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    examples: Labelled,
    #[command(flatten)]
    training: TrainingOptions,
    #[command(flatten)]
    peers: peers::Options,
    #[command(flatten)]
    outputs: Outputs,
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
    let Labelled { data, held_out, .. } = &arguments.examples;
    let TrainingOptions { lambda, gap, no_bias, epochs, batch, seed } = arguments.training;
    let config = Config { lambda, bias: !no_bias, gap, epochs, seed };
    let description = json!({ "model": "l2mlr", "data": data, "held_out": held_out.description(Some(USUAL)),
        "batch": batch, "config": config });
    let peers = arguments.peers.meaning()?;
    let together = peers.together();
    match together {
        None if batch.is_some() => return Err(usage("--batch has an effect only with --peers or --processes")),
        Some(together) if together.is_partial() => {
            return Err(usage(
                "--fanout would leave out of a peer's weights what some examples say, and the duality gap is of all; leave it out",
            ));
        }
        Some(_) if arguments.peers.has_workers() => {
            return Err(usage("--workers has no effect with --peers or --processes: a peer of l2mlr is one thread"));
        }
        _ => {}
    }
    let job = Job::new(peers.place, &arguments.outputs, &data[0], description);
    if !deploy::is_child() {
        job.check(&arguments.examples.inputs()?)?;
        interrupt::install()?;
    }
    let (examples, test) = arguments.examples.read(seed)?;
    if examples.classes.len() < 2 {
        bail!("{}: has examples of one class; expected two or more to tell apart", data[0].display());
    }
    arguments.train(&job, together, &config, examples, test.as_ref())
}

impl Arguments {
    fn train(
        &self,
        job: &Job,
        together: Option<peers::Together>,
        config: &Config,
        examples: Examples,
        test: Option<&Examples>,
    ) -> Result<()> {
        let counts = json!({ "train": examples.len(), "test": test.map(Examples::len),
            "features": examples.features(), "classes": examples.classes.len() });
        let work = Work { units: ("examples", examples.len()), epochs: config.epochs, may_stop_early: true };
        let mut epochs: Vec<Progress> = Vec::new();
        let (fit, outcome, report) = match together {
            None => {
                let (fit, report) = job.observe(("examples", counts), &work, |observe| {
                    Ok(fit(&examples, config, job.workers, |progress| {
                        epochs.push(*progress);
                        observe(progress);
                    }))
                })?;
                (fit, None, report)
            }
            Some(together) => {
                let batch = self.training.batch.unwrap_or(BATCH);
                let (fitted, report) = job.observe(("examples", counts), &work, |observe| {
                    Ok(by_peers::fit(&examples, config, batch, &together.of(job), |epoch| {
                        epochs.push(Progress::from(epoch));
                        observe(epoch);
                    })?)
                })?;
                (fitted.fit, Some(fitted.outcome), report)
            }
        };
        if deploy::is_child() {
            return Ok(());
        }
        let mut model = MlrModel::new(examples.classes, &fit.weights, json!(config), Value::Null);
        let tested = test.map(|test| model.evaluate(test));
        model.config["lambda"] = json!(fit.lambda);
        model.metrics = json!({ "epochs": fit.epochs, "objective": fit.objective, "gap": fit.gap,
            "converged": fit.converged, "train_loss": fit.loss, "train_accuracy": fit.accuracy,
            "test_loss": tested.as_ref().map(|tested| tested.loss()),
            "test_accuracy": tested.as_ref().map(|tested| tested.accuracy()) });
        let seconds = epochs.last().map_or(0.0, |epoch| epoch.seconds);
        let mut summary = model.metrics.clone();
        summary["seconds"] = json!(seconds);
        let drawing = ("Softmax regression", gap_panel(&epochs));
        peers::leave(job, report, outcome.as_ref(), summary, drawing, |path| Ok(model.save(path)?))?;
        if job.quiet {
            return Ok(());
        }
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
        writeln!(out, "next           hemiola eval {} {}", quoted(&model), quoted(&self.examples.next()))?;
        Ok(())
    }
}

impl Observed for Progress {
    fn number(&self) -> u32 {
        self.epoch
    }

    fn seconds(&self) -> f64 {
        self.seconds
    }

    fn figures(&self) -> String {
        match self.objective {
            Some(objective) => format!("objective {objective:.6}, gap {:.2e}", self.gap),
            None => format!("gap about {:.2e}", self.gap),
        }
    }
}

impl Figures for by_peers::Quality {
    fn figures(&self) -> String {
        format!("objective {:.6}, gap {:.2e}", self.objective, self.gap)
    }
}

fn gap_panel(epochs: &[Progress]) -> Panel {
    let points = epochs.iter().map(|epoch| (f64::from(epoch.epoch), epoch.gap.max(1e-12).log10())).collect();
    let curves = vec![Curve { name: "gap".to_owned(), points }];
    Panel::Curves { title: "Duality gap".to_owned(), x: "epoch".to_owned(), y: "log10".to_owned(), curves }
}
