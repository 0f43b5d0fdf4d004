//! The options that say how stale a worker's view of the model may be.

use crate::failure::usage;
use crate::numbers;
use clap::{Args, ValueEnum};
use hemiola::{Consistency, Deployment, Precision};

/// What the models mean, for the end of a help text.
pub(crate) const MEANING: &str = "\
Consistency:
  bsp    workers wait for one another at every clock; one seed, one model
  ssp    workers stay within --staleness clocks; rows are fetched when too old
  essp   the same, and changed rows are pushed
  async  nobody waits
  vap    changes on their way stay below --value-bound (with --processes)";

/// How stale a worker's view of the model may be.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Consistency")]
#[group(id = "consistency_options")]
pub(crate) struct Options {
    /// Which updates of others a worker must see [default: essp]
    #[arg(long, value_enum, value_name = "MODEL")]
    consistency: Option<Model>,
    /// Clocks that workers may be apart, under ssp and essp [default: 2]
    #[arg(long, value_name = "CLOCKS", value_parser = numbers::whole, allow_negative_numbers = true)]
    staleness: Option<u32>,
    /// Largest change in transit, under vap [default: 1]
    #[arg(long, value_name = "BOUND", value_parser = numbers::positive, allow_negative_numbers = true)]
    value_bound: Option<f32>,
    /// What numbers are rounded to on their way between processes or nodes [default: f32]
    #[arg(long, value_enum, value_name = "PRECISION")]
    wire: Option<Wire>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Wire {
    F32,
    F16,
    Bf16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Model {
    Bsp,
    Ssp,
    Essp,
    Async,
    Vap,
}

impl Options {
    /// Which of the options were given.
    pub(crate) fn given(&self) -> [(&'static str, bool); 4] {
        [
            ("--consistency", self.consistency.is_some()),
            ("--staleness", self.staleness.is_some()),
            ("--value-bound", self.value_bound.is_some()),
            ("--wire", self.wire.is_some()),
        ]
    }

    /// How precisely numbers travel there.
    ///
    /// # Errors
    /// If nothing travels, or the consistency model does not allow for it.
    pub(crate) fn precision(&self, deployment: &Deployment) -> anyhow::Result<Precision> {
        let precision = match self.wire {
            None => return Ok(Precision::F32),
            Some(Wire::F32) => Precision::F32,
            Some(Wire::F16) => Precision::F16,
            Some(Wire::Bf16) => Precision::Bf16,
        };
        if matches!(deployment, Deployment::Threads { .. }) {
            return Err(usage("--wire needs --processes: nothing travels between the threads of one process"));
        }
        if self.consistency == Some(Model::Vap) && precision != Precision::F32 {
            return Err(usage("--consistency vap needs --wire f32: rounding could break the value bound"));
        }
        Ok(precision)
    }

    /// The staleness of minibatches that are synchronised one by one, by what is called `sync`.
    ///
    /// # Errors
    /// If an option has no effect there.
    pub(crate) fn of_minibatches(&self, sync: &str) -> anyhow::Result<u32> {
        let given = [
            ("--consistency", self.consistency.is_some(), "give --staleness, which is 0 for bsp"),
            ("--value-bound", self.value_bound.is_some(), "give --staleness"),
            ("--wire", self.wire.is_some(), "numbers travel as they are"),
        ];
        match given.iter().find(|(_, given, _)| *given) {
            Some((option, _, why)) => Err(usage(format!("{option} has no effect with --sync {sync}: {why}"))),
            None => Ok(self.staleness.unwrap_or(0)),
        }
    }

    /// What the options say together.
    ///
    /// # Errors
    /// If one of them has no effect under the chosen model.
    pub(crate) fn meaning(&self) -> anyhow::Result<Consistency> {
        let model = self.consistency.unwrap_or(Model::Essp);
        let name = model.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
        if self.staleness.is_some() && !matches!(model, Model::Ssp | Model::Essp) {
            return Err(usage(format!(
                "--staleness has no effect with --consistency {name}; give --consistency ssp or essp"
            )));
        }
        if self.value_bound.is_some() && model != Model::Vap {
            return Err(usage(format!(
                "--value-bound has no effect with --consistency {name}; give --consistency vap"
            )));
        }
        let staleness = self.staleness.unwrap_or(2);
        Ok(match model {
            Model::Bsp => Consistency::Bsp,
            Model::Ssp => Consistency::Ssp { staleness },
            Model::Essp => Consistency::Essp { staleness },
            Model::Async => Consistency::Async,
            Model::Vap => Consistency::Vap { bound: self.value_bound.unwrap_or(1.0) },
        })
    }
}
