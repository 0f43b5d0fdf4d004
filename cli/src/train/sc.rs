//! `hemiola train sc`: learns a dictionary of which patches of images are put together from few atoms.

use super::job::{Job, Outputs, quoted};
use super::peers;
use crate::plot::{Curve, Panel};
use crate::progress::{Figures, Observed, Work, span};
use crate::{deploy, interrupt, numbers, outputs, tiles};
use anyhow::Result;
use clap::Args;
use hemiola_models::StepSize;
use hemiola_models::images::Image;
use hemiola_models::patches::Patches;
use hemiola_models::sc::model::ScModel;
use hemiola_models::sc::peers as by_peers;
use hemiola_models::sc::train::{Config, Progress, train};
use serde_json::json;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

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
    /// Files of images
    #[arg(required = true, value_name = "DATA")]
    data: Vec<PathBuf>,
    /// Pixels of a patch's side
    #[arg(long, value_name = "SIDE", value_parser = numbers::patch_side, default_value = "8", allow_negative_numbers = true)]
    patch: usize,
    /// Patches to draw, of which a tenth is held out
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "100000", allow_negative_numbers = true)]
    patches: u32,
    #[command(flatten)]
    training: TrainingOptions,
    #[command(flatten)]
    peers: peers::Options,
    #[command(flatten)]
    outputs: Outputs,
    /// Draw the atoms as tiles into a .png
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    picture: Option<PathBuf>,
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
    let config = arguments.training.config();
    let description = json!({ "model": "sc", "data": arguments.data, "patch": arguments.patch,
        "patches": arguments.patches, "config": config });
    let peers = arguments.peers.meaning()?;
    let together = peers.together();
    let job = Job::new(peers.place, &arguments.outputs, &arguments.data[0], description);
    if !deploy::is_child() {
        arguments.check(&job)?;
        interrupt::install()?;
    }
    let images = Image::read(&arguments.data)?;
    let patches = Patches::draw(&images, arguments.patch, arguments.patches as usize, config.seed)?;
    arguments.train(&job, together, &config, images.len(), &patches)
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
    /// Finds out before the work what would go wrong after it.
    fn check(&self, job: &Job) -> Result<()> {
        let mut inputs: Vec<_> = self.data.iter().map(|path| ("DATA", path.as_path())).collect();
        job.check(&inputs)?;
        if let Some(path) = &self.picture {
            tiles::check_extension(path)?;
            inputs.push(("--out", &job.out));
            inputs.extend(job.report.iter().map(|path| ("--report", path.as_path())));
            inputs.extend(job.plot.iter().map(|path| ("--plot", path.as_path())));
            outputs::check_distinct(&inputs, &[("--picture", path)])?;
            outputs::check_writable(path)?;
        }
        Ok(())
    }

    fn train(
        &self,
        job: &Job,
        together: Option<peers::Together>,
        config: &Config,
        images: usize,
        patches: &Patches,
    ) -> Result<()> {
        let counts = json!({ "images": images, "patches": patches.len(), "pixels": patches.side * patches.side });
        let work = Work {
            units: ("patches", patches.len()),
            epochs: config.epochs,
            may_stop_early: config.patience.is_some(),
        };
        let mut epochs: Vec<Progress> = Vec::new();
        let (atoms, outcome, report) = match together {
            None => {
                let (atoms, report) = job.observe(("patches", counts), &work, |observe| {
                    Ok(train(config, patches, job.workers, |progress, _| {
                        epochs.push(*progress);
                        observe(progress);
                    })?)
                })?;
                (atoms, None, report)
            }
            Some(together) => {
                let (trained, report) = job.observe(("patches", counts), &work, |observe| {
                    Ok(by_peers::train(config, &together.of(job), patches, |epoch| {
                        epochs.push(Progress::from(epoch));
                        observe(epoch);
                    })?)
                })?;
                (trained.matrix, Some(trained.outcome), report)
            }
        };
        if deploy::is_child() {
            return Ok(());
        }
        let metrics = json!(epochs.last());
        let model = ScModel {
            side: patches.side,
            atoms,
            sparsity: config.sparsity,
            config: json!(config),
            metrics: metrics.clone(),
        };
        let drawing = ("Sparse coding", objective_panel(&epochs));
        peers::leave(job, report, outcome.as_ref(), metrics, drawing, |path| {
            model.save(path)?;
            self.picture.as_ref().map_or(Ok(()), |picture| tiles::write(picture, &model.atoms, model.side))
        })?;
        if job.quiet {
            return Ok(());
        }
        self.tell(&job.out, epochs.last())?;
        peers::tell(&mut stdout().lock(), outcome.as_ref())
    }

    fn tell(&self, path: &Path, last: Option<&Progress>) -> Result<()> {
        let mut out = stdout().lock();
        if let Some(last) = last {
            let spent = format!("after {} epochs and {} of training", last.epoch, span(last.seconds));
            let (lost, nonzeros) = (100.0 * last.test_lost, last.test_nonzeros);
            writeln!(out, "held out       objective {:.5}, {spent}", last.test_objective)?;
            writeln!(out, "               {lost:.1} % lost with {nonzeros:.1} atoms a patch")?;
        }
        let model = path.display().to_string();
        writeln!(out, "model          {model}")?;
        if let Some(picture) = &self.picture {
            writeln!(out, "picture        {}", picture.display())?;
        }
        let data = self.data[0].display().to_string();
        writeln!(out, "next           hemiola eval {} {}", quoted(&model), quoted(&data))?;
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
        let Self { objective, test_objective, test_lost, test_nonzeros, .. } = *self;
        by_peers::Quality { objective, test_objective, test_lost, test_nonzeros }.figures()
    }
}

impl Figures for by_peers::Quality {
    fn figures(&self) -> String {
        let Self { objective, test_objective, test_lost, test_nonzeros } = self;
        let lost = 100.0 * test_lost;
        format!("objective {objective:.5}, held out {test_objective:.5}, {lost:.1} % lost, {test_nonzeros:.1} atoms")
    }
}

fn objective_panel(epochs: &[Progress]) -> Panel {
    let curve = |name: &str, value: fn(&Progress) -> f64| Curve {
        name: name.to_owned(),
        points: epochs.iter().map(|epoch| (f64::from(epoch.epoch), value(epoch))).collect(),
    };
    Panel::Curves {
        title: "Objective".to_owned(),
        x: "epoch".to_owned(),
        y: "mean over patches".to_owned(),
        curves: vec![curve("training", |epoch| epoch.objective), curve("held out", |epoch| epoch.test_objective)],
    }
}
