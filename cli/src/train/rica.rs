//! `hemiola train rica`: learns features of images.

use super::images::{PatchOptions, PictureOption};
use super::job::{Job, Outputs, quoted};
use super::saving;
use crate::plot::{Curve, Panel};
use crate::progress::{Figures, Work, span};
use crate::{consistency, deploy, interrupt, numbers, report};
use anyhow::Result;
use clap::Args;
use hemiola_models::patches::Patches;
use hemiola_models::rica::model::RicaModel;
use hemiola_models::rica::train::{Arranged, Config, Epoch, Quality, clocks_per_epoch, train};
use serde_json::{Value, json};
use std::io::{Write, stdout};

const EXAMPLES: &str = "\
Examples:
  hemiola train rica forest.png river.png --picture filters.png
  hemiola train rica train-images-idx3-ubyte.gz --patch 12 --features 200

DATA is images: png, or many as idx, which may be compressed by gzip.";

/// Learn features of images from which patches can be put together, and of which few are active at a time:
/// reconstruction ICA.
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
    #[command(flatten)]
    picture: PictureOption,
}

/// What to train on and how.
#[derive(Args)]
struct Problem {
    #[command(flatten)]
    images: PatchOptions,
    #[command(flatten)]
    training: TrainingOptions,
    #[command(flatten)]
    consistency: consistency::Options,
}

#[derive(Args)]
#[command(next_help_heading = "Training")]
struct TrainingOptions {
    /// Filters to learn [default: as many as a patch has pixels]
    #[arg(long, value_name = "N", value_parser = numbers::rank, allow_negative_numbers = true)]
    features: Option<usize>,
    /// Weight of the activities in the objective
    #[arg(long, value_name = "WEIGHT", value_parser = numbers::positive, default_value = "0.3",
        allow_negative_numbers = true)]
    sparsity: f32,
    /// Patches of a gradient
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "100", allow_negative_numbers = true)]
    batch: u32,
    /// Passes over the patches
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "20", allow_negative_numbers = true)]
    epochs: u32,
    /// Size of the first steps
    #[arg(long, value_parser = numbers::positive, default_value = "0.05", allow_negative_numbers = true)]
    rate: f32,
    /// Fixes everything that is drawn at random: with one worker or under bsp the model, too
    #[arg(long, value_parser = numbers::seed, default_value = "1", allow_negative_numbers = true)]
    seed: u64,
}

/// Trains as the command line says.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { problem, deployment, saving, outputs, picture } = arguments;
    let place = deployment.meaning(problem.consistency.meaning()?)?;
    let config = problem.config(&place.deployment)?;
    let mut job = Job::new(place, outputs, &problem.images.data[0], problem.description(&config));
    job.checkpoints =
        saving.meaning(clocks_per_epoch(problem.images.patches as usize, job.workers as usize, config.batch))?;
    if !deploy::is_child() {
        saving.check()?;
        picture.check(&job, problem.images.inputs())?;
        interrupt::install()?;
    }
    let (patches, _) = problem.images.read(problem.training.seed)?;
    train_and_save(&job, &config, &patches, picture)
}

impl Problem {
    fn config(&self, deployment: &hemiola::Deployment) -> Result<Config> {
        let TrainingOptions { features, sparsity, batch, epochs, rate, seed } = self.training;
        Ok(Config {
            features: features.unwrap_or(self.images.patch * self.images.patch),
            sparsity,
            batch,
            rate,
            epochs,
            consistency: self.consistency.meaning()?,
            precision: self.consistency.precision(deployment)?,
            seed,
        })
    }

    fn description(&self, config: &Config) -> Value {
        json!({ "model": "rica", "data": self.images.data, "patch": self.images.patch, "config": config })
    }
}

fn train_and_save(job: &Job, config: &Config, patches: &Patches, picture: &PictureOption) -> Result<()> {
    let work = Work { units: ("patches", patches.len()), epochs: config.epochs, may_stop_early: false };
    let data = Arranged::new(patches, job.workers)?;
    let (trained, report) = job.observe(("patches", json!(patches.len())), &work, |observe| {
        Ok(train(config, &job.deployment, job.checkpoints.as_ref(), &data, observe)?)
    })?;
    let last = trained.epochs.last().map(|epoch| epoch.quality.clone()).unwrap_or_default();
    let model = RicaModel {
        side: patches.side,
        filters: trained.filters,
        whitening: data.whitening,
        config: serde_json::to_value(config)?,
        metrics: serde_json::to_value(&last)?,
    };
    let drawing = ("Reconstruction ICA", objective_panel(&trained.epochs));
    job.leave(report, &trained.outcome, &model.metrics, drawing, |path| {
        model.save(path)?;
        picture.draw(&model.filters, model.side)
    })?;
    if job.quiet {
        return Ok(());
    }
    let mut out = stdout().lock();
    let seconds = trained.epochs.last().map_or(0.0, |epoch| epoch.seconds);
    let Quality { test_objective, test_lost, .. } = last;
    writeln!(
        out,
        "held out       objective {test_objective:.4}, {:.1} % lost, after {} epochs and {} of training",
        100.0 * test_lost,
        trained.epochs.len(),
        span(seconds)
    )?;
    report::tell(&mut out, &trained.outcome)?;
    let path = job.out.display().to_string();
    writeln!(out, "model          {path}")?;
    match &picture.picture {
        Some(picture) => writeln!(out, "picture        {}", picture.display())?,
        None => writeln!(out, "next           hemiola eval {} more.png", quoted(&path))?,
    }
    Ok(())
}

impl Figures for Quality {
    fn figures(&self) -> String {
        let Self { objective, test_objective, test_lost } = self;
        format!("objective {objective:.4}, held out {test_objective:.4}, {:.1} % lost", 100.0 * test_lost)
    }
}

fn objective_panel(epochs: &[Epoch]) -> Panel {
    let curve = |name: &str, value: fn(&Quality) -> f64| Curve {
        name: name.to_owned(),
        points: epochs.iter().map(|epoch| (f64::from(epoch.epoch), value(&epoch.quality))).collect(),
    };
    Panel::Curves {
        title: "Objective".to_owned(),
        x: "epoch".to_owned(),
        y: "mean over patches".to_owned(),
        curves: vec![curve("training", |q| q.objective), curve("held out", |q| q.test_objective)],
    }
}
