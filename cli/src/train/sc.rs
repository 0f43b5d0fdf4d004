//! `hemiola train sc`: learns a dictionary of which patches of images are put together from few atoms.

use super::images::{PatchOptions, PictureOption};
use super::job::{Job, Outputs, quoted};
use super::peers;
use crate::plot::{Curve, Panel};
use crate::progress::{Figures, Work, span};
use crate::{deploy, interrupt, numbers};
use anyhow::Result;
use clap::Args;
use hemiola_models::patches::Patches;
use hemiola_models::peers::{Peers, Trained};
use hemiola_models::sc::model::ScModel;
use hemiola_models::sc::peers as by_peers;
pub(crate) use hemiola_models::sc::train::Config;
use hemiola_models::sc::train::{Quality, train};
use hemiola_models::{Epoch, StepSize};
use serde_json::{Value, json};
use std::io::{Write, stdout};
use std::path::Path;

const EXAMPLES: &str = "\
Examples:
  hemiola train sc forest.png river.png --picture atoms.png
  hemiola train sc train-images-idx3-ubyte.gz --patch 12 --atoms 200
  hemiola train sc forest.png river.png --processes 4 --staleness 1

DATA is images: png, or many as idx, which may be compressed by gzip.";

/// Learn a dictionary of which patches of images are put together from few atoms: sparse coding.
///
/// Minimises the mean of half of what is lost of a patch when it is put together, squared, plus the weight --sparsity times
/// its absolute codes. No atom is longer than 1.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    problem: Problem,
    #[command(flatten)]
    peers: peers::Options,
    #[command(flatten)]
    outputs: Outputs,
    #[command(flatten)]
    picture: PictureOption,
}

/// What to learn from and how, wherever that happens.
#[derive(Args)]
pub(crate) struct Problem {
    #[command(flatten)]
    images: PatchOptions,
    #[command(flatten)]
    training: TrainingOptions,
}

#[derive(Args)]
#[command(next_help_heading = "Training")]
struct TrainingOptions {
    /// Atoms to learn
    #[arg(long, value_name = "N", value_parser = numbers::rank, default_value = "100", allow_negative_numbers = true)]
    atoms: usize,
    /// Weight of the absolute codes in the objective
    #[arg(long, value_name = "WEIGHT", value_parser = numbers::positive, default_value = "0.1",
        allow_negative_numbers = true)]
    sparsity: f32,
    /// Patches of a step of each peer
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "256", allow_negative_numbers = true)]
    batch: u32,
    /// Passes over the patches
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "10", allow_negative_numbers = true)]
    epochs: u32,
    /// End early when the held-out objective has not fallen for so long
    #[arg(long, value_name = "EPOCHS", value_parser = numbers::count, allow_negative_numbers = true)]
    patience: Option<u32>,
    /// Size of the first steps, as a part of what would be right for each atom alone
    #[arg(long, value_parser = numbers::positive, default_value = "0.3", allow_negative_numbers = true)]
    rate: f32,
    /// What steps are multiplied by after an epoch
    #[arg(long, value_name = "FACTOR", value_parser = numbers::fraction, default_value = "0.7",
        allow_negative_numbers = true)]
    decay: f64,
    /// Fixes everything that is drawn at random
    #[arg(long, value_parser = numbers::seed, default_value = "1", allow_negative_numbers = true)]
    seed: u64,
}

/// Trains as the command line says.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let problem = &arguments.problem;
    let peers = arguments.peers.meaning()?;
    let together = peers.together();
    let job = Job::new(peers.place, &arguments.outputs, &problem.images.data[0], problem.description());
    if !deploy::is_child() {
        arguments.picture.check(&job, problem.inputs())?;
        interrupt::install()?;
    }
    arguments.train(&job, together, &problem.config(), &problem.read()?)
}

/// What is learnt from.
pub(crate) struct Data {
    images: usize,
    patches: Patches,
}

impl Data {
    /// What there is to do.
    pub(crate) fn work(&self, config: &Config) -> Work {
        let may_stop_early = config.patience.is_some();
        Work { units: ("patches", self.patches.len()), epochs: config.epochs, may_stop_early }
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
    ) -> Result<Trained<Quality>> {
        Ok(by_peers::train(config, place, &self.patches, observe)?)
    }
}

impl Problem {
    pub(crate) fn config(&self) -> Config {
        self.training.config()
    }

    pub(crate) fn description(&self) -> Value {
        json!({ "model": "sc", "data": self.images.data, "patch": self.images.patch, "patches": self.images.patches, "config": self.config() })
    }

    /// The files that are read.
    pub(crate) fn inputs(&self) -> Vec<(&'static str, &Path)> {
        self.images.inputs()
    }

    /// Reads the images and draws patches from them.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(crate) fn read(&self) -> Result<Data> {
        let (patches, images) = self.images.read(self.training.seed)?;
        Ok(Data { images, patches })
    }
}

impl TrainingOptions {
    fn config(&self) -> Config {
        Config {
            atoms: self.atoms,
            sparsity: self.sparsity,
            batch: self.batch,
            step: StepSize::Decay { rate: self.rate, factor: self.decay as f32 },
            epochs: self.epochs,
            patience: self.patience,
            seed: self.seed,
        }
    }
}

impl Arguments {
    fn train(&self, job: &Job, together: Option<peers::Together>, config: &Config, data: &Data) -> Result<()> {
        let Data { images, patches } = data;
        let counts = json!({ "images": images, "patches": patches.len(), "pixels": patches.side * patches.side });
        let mut epochs: Vec<Epoch<Quality>> = Vec::new();
        let ((atoms, outcome), report) = job.observe(("patches", counts), &data.work(config), |observe| {
            let mut observe = |epoch: &Epoch<Quality>| {
                epochs.push(epoch.clone());
                observe(epoch);
            };
            let Some(together) = together else {
                return Ok((train(config, patches, job.workers, |epoch, _| observe(epoch))?, None));
            };
            let trained = data.by_peers(config, &together.of(job), &mut observe)?;
            Ok((trained.matrix, Some(trained.outcome)))
        })?;
        if deploy::is_child() {
            return Ok(());
        }
        let last = epochs.last();
        let mut metrics = json!(last.map(|epoch| epoch.quality).unwrap_or_default());
        metrics["epoch"] = json!(last.map(|epoch| epoch.epoch));
        metrics["seconds"] = json!(last.map(|epoch| epoch.seconds));
        let model = ScModel {
            side: patches.side,
            atoms,
            sparsity: config.sparsity,
            config: json!(config),
            metrics: metrics.clone(),
        };
        let drawing = ("Sparse coding", objective_panel(&epochs, "epoch", |epoch| f64::from(epoch.epoch)));
        peers::leave(job, report, outcome.as_ref(), metrics, drawing, |path| {
            model.save(path)?;
            self.picture.draw(&model.atoms, model.side)
        })?;
        if job.quiet {
            return Ok(());
        }
        self.tell(&job.out, epochs.last())?;
        peers::tell(&mut stdout().lock(), outcome.as_ref())
    }

    fn tell(&self, path: &Path, last: Option<&Epoch<Quality>>) -> Result<()> {
        let mut out = stdout().lock();
        if let Some(last) = last {
            let spent = format!("after {} epochs and {} of training", last.epoch, span(last.seconds));
            let Quality { test_objective, test_lost, test_nonzeros: nonzeros, .. } = last.quality;
            let lost = 100.0 * test_lost;
            writeln!(out, "held out       objective {test_objective:.5}, {spent}")?;
            writeln!(out, "               {lost:.1} % lost with {nonzeros:.1} atoms a patch")?;
        }
        let model = path.display().to_string();
        writeln!(out, "model          {model}")?;
        if let Some(picture) = &self.picture.picture {
            writeln!(out, "picture        {}", picture.display())?;
        }
        let data = self.problem.images.data[0].display().to_string();
        writeln!(out, "next           hemiola eval {} {}", quoted(&model), quoted(&data))?;
        Ok(())
    }
}

impl Figures for Quality {
    fn figures(&self) -> String {
        let Self { objective, test_objective, test_lost, test_nonzeros } = self;
        let lost = 100.0 * test_lost;
        format!("objective {objective:.5}, held out {test_objective:.5}, {lost:.1} % lost, {test_nonzeros:.1} atoms")
    }
}

/// The objective as it falls, over whatever `at` says.
pub(crate) fn objective_panel(epochs: &[Epoch<Quality>], x: &str, at: fn(&Epoch<Quality>) -> f64) -> Panel {
    let curve = |name: &str, value: fn(&Quality) -> f64| Curve {
        name: name.to_owned(),
        points: epochs.iter().map(|epoch| (at(epoch), value(&epoch.quality))).collect(),
    };
    Panel::Curves {
        title: "Objective".to_owned(),
        x: x.to_owned(),
        y: "mean over patches".to_owned(),
        curves: vec![
            curve("training", |quality| quality.objective),
            curve("held out", |quality| quality.test_objective),
        ],
    }
}
