//! The options that say which engine trains: tables that workers read and change, or Splash.

use super::saving;
use crate::failure::usage;
use crate::{deploy, filters, numbers};
use anyhow::Result;
use clap::{Args, ValueEnum};
use hemiola::checkpoint::Checkpoints;
use hemiola::splash::{self, Degree};
use serde_json::{Value, json};

/// What the engines are, for the end of a help text.
pub(crate) const MEANING: &str = "\
Engines:
  tables  workers read and change shared tables within a bound of staleness
  splash  each worker runs the sequential algorithm on its part of the data with
          weights, and now and then their results are combined";

/// Which engine trains.
#[derive(Args)]
#[command(next_help_heading = "Engine")]
#[group(id = "engine_options")]
pub(crate) struct Options {
    /// What makes the algorithm parallel
    #[arg(long, value_enum, value_name = "ENGINE", default_value = "tables")]
    engine: Engine,
    /// Workers that process data at the same time, with --engine splash; auto: as many as give the smallest loss
    /// [default: largest]
    #[arg(long, value_name = "N|auto|largest", value_parser = degree, allow_negative_numbers = true)]
    degree: Option<Degree>,
    /// How often workers' results are combined in a pass, with --engine splash
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_negative_numbers = true)]
    synchronisations: Option<u32>,
    /// Workers whose results are added up before they travel, with --engine splash: those of a process or node
    #[arg(long, value_name = "N", value_parser = numbers::team, allow_negative_numbers = true)]
    fan_in: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    Tables,
    Splash,
}

fn degree(text: &str) -> Result<Degree, String> {
    match text {
        "auto" => Ok(Degree::Auto),
        "largest" => Ok(Degree::Largest),
        _ => match numbers::team(text) {
            Ok(workers) => Ok(Degree::Fixed(workers)),
            Err(_) => Err("expected 'auto', 'largest', or a whole number between 1 and 1024".to_owned()),
        },
    }
}

impl Options {
    /// How Splash makes passes, if it does, with so many synchronisations unless told otherwise.
    ///
    /// # Errors
    /// If an option of Splash is given without it.
    pub(crate) fn splash(&self, seed: u64, usual: u32) -> Result<Option<splash::Options>> {
        if self.engine == Engine::Splash {
            let synchronisations = self.synchronisations.unwrap_or(usual);
            let degree = self.degree.unwrap_or_default();
            let fan_in = self.fan_in.unwrap_or(1);
            return Ok(Some(splash::Options { seed, degree, synchronisations, fan_in, ..splash::Options::default() }));
        }
        for (option, given) in [
            ("--degree", self.degree.is_some()),
            ("--synchronisations", self.synchronisations.is_some()),
            ("--fan-in", self.fan_in.is_some()),
        ] {
            if given {
                return Err(usage(format!("{option} has an effect only with --engine splash")));
            }
        }
        Ok(None)
    }
}

/// Refuses the first of these options that was given.
///
/// # Errors
/// If one was.
pub(crate) fn refuse(options: &[(&str, bool)]) -> Result<()> {
    match options.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(usage(format!("{option} has no effect with --engine splash; leave it out"))),
        None => Ok(()),
    }
}

/// Refuses the options of a training that Splash does not have; gives the checkpoints that there are then, none.
///
/// # Errors
/// If one was given.
pub(crate) fn no_checkpoints(saving: &saving::Options, deployment: &deploy::Options) -> Result<Option<Checkpoints>> {
    refuse(&saving.given())?;
    refuse(&[("--priority", deployment.has_priority())])?;
    deployment.check_all_arrive(filters::REPLICAS)?;
    saving.meaning(1)
}

/// What a report says of how passes are made.
pub(crate) fn description(passes: &splash::Options) -> Value {
    let degree = match passes.degree {
        Degree::Largest => json!("largest"),
        Degree::Auto => json!("auto"),
        Degree::Fixed(workers) => json!(workers),
    };
    json!({
        "name": "splash",
        "degree": degree,
        "synchronisations": passes.synchronisations,
        "fan_in": passes.fan_in,
        "seed": passes.seed,
    })
}
