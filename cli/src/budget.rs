//! The options that limit what is sent, and say what goes first.

use crate::failure::usage;
use clap::ValueEnum;
use hemiola::{Budget, Consistency, Priority};

/// What goes first when there is bandwidth to spare before a clock ends.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum First {
    /// Any rows
    Random,
    /// One row after the other
    RoundRobin,
    /// Rows with the largest changes
    Absolute,
    /// Rows with the largest changes as parts of their values
    Relative,
}

/// Checks that there is something to order under a model of consistency.
///
/// # Errors
/// If an order is given and nothing is sent early.
pub(crate) fn check_priority(first: Option<First>, consistency: Consistency) -> anyhow::Result<()> {
    let model = match consistency {
        Consistency::Bsp => "bsp",
        Consistency::Vap { .. } => "vap",
        Consistency::Ssp { .. } | Consistency::Essp { .. } | Consistency::Async => return Ok(()),
    };
    match first {
        Some(_) => Err(usage(format!(
            "--priority has no effect with --consistency {model}, which sends nothing early; leave it out"
        ))),
        None => Ok(()),
    }
}

/// What the options say together; `option` is what the limit is called.
///
/// # Errors
/// If an order is given and no limit.
pub(crate) fn meaning(option: &str, rate: Option<f64>, first: Option<First>) -> anyhow::Result<Option<Budget>> {
    let Some(rate) = rate else {
        return match first {
            Some(_) => Err(usage(format!("--priority has an effect only with {option}; give that, too"))),
            None => Ok(None),
        };
    };
    let priority = match first.unwrap_or(First::Relative) {
        First::Random => Priority::Random,
        First::RoundRobin => Priority::RoundRobin,
        First::Absolute => Priority::AbsoluteMagnitude,
        First::Relative => Priority::RelativeMagnitude,
    };
    Ok(Some(Budget { bytes_per_second: rate as u64, priority }))
}
