//! The options that say what keeps the workers' copies of the weights together.

use super::super::peers::check_fanout;
use super::{Problem, Schedule, Way};
use crate::failure::usage;
use crate::numbers;
use anyhow::Result;
use clap::{Args, ValueEnum};
use hemiola::Deployment;
use hemiola::factors::cost::{Choice, Cost, Machine, Sync};
use hemiola_models::examples::Examples;
use hemiola_models::mlr::{factors, row_width};

/// What is exchanged, for the end of a help text.
pub(crate) const MEANING: &str = "\
Synchronisation:
  matrix   workers exchange rows of the matrix with servers
  factors  workers send one another the factors of its updates, once a minibatch
  auto     minibatches, synchronised by whichever is estimated to cost less";

/// What keeps the workers' copies of the weights together.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Synchronisation")]
#[group(id = "sync_options")]
pub(crate) struct Options {
    /// What workers exchange [default: matrix]
    #[arg(long, value_enum, value_name = "WHAT")]
    sync: Option<What>,
    /// To how many others a worker sends its factors, with --sync factors or auto [default: all]
    #[arg(long, value_name = "Q", value_parser = numbers::count, allow_negative_numbers = true)]
    fanout: Option<u32>,
    /// Round errors of probabilities below T to T or to nothing, at random and with the same mean, so that factors are
    /// short however many classes there are, with --sync factors or auto; at most 1 [default: they stay as they are]
    #[arg(long, value_name = "T", value_parser = numbers::share, allow_negative_numbers = true)]
    round_errors: Option<f64>,
    /// What the process that started this one has chosen
    #[arg(long, hide = true, value_enum)]
    chosen: Option<What>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    Factors,
    Matrix,
    Auto,
}

/// Examples of a minibatch where nothing else is said; the paper's.
const BATCH: u32 = 100;

impl Options {
    /// Which of them were given.
    pub(super) fn given(&self) -> [(&'static str, bool); 3] {
        [
            ("--sync", self.sync.is_some()),
            ("--fanout", self.fanout.is_some()),
            ("--round-errors", self.round_errors.is_some()),
        ]
    }

    /// Whether minibatches are synchronised, and not as many as there are in a clock.
    pub(crate) fn by_minibatch(&self) -> bool {
        matches!(self.sync, Some(What::Factors | What::Auto))
    }

    /// Whether it may come to tables and servers.
    pub(crate) fn may_be_matrix(&self) -> bool {
        self.sync != Some(What::Factors)
    }

    fn name(&self) -> &'static str {
        match self.sync {
            Some(What::Factors) => "factors",
            Some(What::Auto) => "auto",
            Some(What::Matrix) | None => "matrix",
        }
    }

    /// Refuses options that have no effect on what is exchanged.
    ///
    /// # Errors
    /// The first of these that was given.
    pub(crate) fn refuse(&self, given: &[(&str, bool, &str)]) -> Result<()> {
        match given.iter().find(|(_, given, _)| *given) {
            Some((option, _, why)) => Err(usage(format!("{option} has no effect with --sync {}: {why}", self.name()))),
            None => Ok(()),
        }
    }

    /// Checks that nothing is said about factors where there are none.
    pub(super) fn check_matrix(&self) -> Result<()> {
        if self.fanout.is_some() {
            return Err(usage("--fanout has an effect only with --sync factors or auto: servers send to all workers"));
        }
        if self.round_errors.is_some() {
            return Err(usage("--round-errors has an effect only with --sync factors or auto: servers are sent rows"));
        }
        Ok(())
    }

    /// Minibatches, and whether what is exchanged is yet to be chosen.
    pub(super) fn way(&self, problem: &Problem, peers: u32) -> Result<Way> {
        let training = &problem.training;
        let once = "every minibatch is followed by one; give --batch";
        self.refuse(&[("--clocks-per-epoch", problem.clocks_per_epoch.is_some(), once)])?;
        if training.step_size == Some(Schedule::Adaptive) {
            return Err(usage(
                "--step-size adaptive keeps the squares of what it has met, which is not in factors; give another, or --sync matrix",
            ));
        }
        let staleness = problem.consistency.of_minibatches(self.name())?;
        check_fanout(self.fanout, peers, "worker")?;
        let config = factors::Config {
            l2: training.l2,
            batch: training.batch.unwrap_or(BATCH),
            step: training.step()?,
            epochs: training.epochs,
            staleness,
            fanout: self.fanout,
            rounding: self.round_errors.map(|unit| unit as f32),
            patience: training.patience,
            seed: training.seed,
        };
        Ok(match (self.sync, self.chosen) {
            (Some(What::Auto), Some(What::Matrix)) => Way::Minibatches(config),
            (Some(What::Auto), None | Some(What::Auto)) => Way::Cheaper(config),
            _ => Way::Factors(config),
        })
    }
}

/// What is exchanged for these minibatches, on a machine that can do so much.
pub(crate) fn choose(
    config: &factors::Config,
    deployment: &Deployment,
    examples: &Examples,
    machine: Machine,
) -> Choice {
    let servers = match deployment {
        Deployment::Threads { workers, .. } => *workers,
        Deployment::Tcp(config) => config.servers,
        Deployment::Sim(config) => config.shards(),
    };
    let workers = deployment.workers();
    let clocks = config.on_tables(examples.len(), workers).clocks_per_epoch;
    // A value for each feature of the example, and the bias.
    let entries = 1.0 + examples.entries() as f64 / examples.len().max(1) as f64;
    let cost = Cost {
        peers: workers,
        fanout: config.fanout,
        servers,
        pairs: (examples.len() as u64).div_ceil(u64::from(clocks) * u64::from(workers)) as u32,
        rows: examples.features() as u32 + 1,
        columns: row_width(examples.classes.len()) as u32,
        nonzeros: [Some(entries), config.errors_left(examples.classes.len()).map(|left| left as f64)],
        machine,
    };
    Sync::Auto.choose(&cost)
}
