//! The options that say what a model is judged by.

use clap::Args;
use hemiola_models::HoldOut;
use serde_json::{Value, json};
use std::path::PathBuf;

use crate::numbers;

/// What a model is judged by.
#[derive(Args)]
#[command(next_help_heading = "Held-out data")]
#[group(multiple = false)]
pub(crate) struct HeldOut {
    /// Judge the model by this file
    #[arg(long, value_name = "FILE")]
    pub(super) test: Option<PathBuf>,
    /// Judge the model by this part of the data, drawn by the seed [default: 0.1; for topic models none]
    #[arg(long, value_name = "PART", value_parser = numbers::fraction, allow_negative_numbers = true)]
    holdout: Option<f64>,
    /// Judge the model by every N-th rating, example or document
    #[arg(long, value_name = "N", value_parser = numbers::every, allow_negative_numbers = true)]
    holdout_every: Option<u64>,
    /// Train on everything
    #[arg(long)]
    pub(super) no_holdout: bool,
}

/// What is held out where nothing else is said.
pub(super) const USUAL: f64 = 0.1;

impl HeldOut {
    /// What is held out of the data themselves, drawn by `seed`; where nothing is said, the `usual` part.
    pub(super) fn rule(&self, usual: Option<f64>, seed: u64) -> Option<HoldOut> {
        if self.no_holdout || self.test.is_some() {
            return None;
        }
        match self.holdout_every {
            Some(every) => Some(HoldOut::Every(every)),
            None => self.holdout.or(usual).map(|fraction| HoldOut::Random { fraction, seed }),
        }
    }

    /// What a report says of it.
    pub(super) fn description(&self, usual: Option<f64>) -> Value {
        match (&self.test, self.rule(usual, 0)) {
            (Some(test), _) => json!({ "file": test }),
            (None, Some(HoldOut::Every(every))) => json!({ "every": every }),
            (None, Some(HoldOut::Random { fraction, .. })) => json!({ "part": fraction }),
            (None, None) => Value::Null,
        }
    }
}
