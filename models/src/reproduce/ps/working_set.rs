//! How much of the model a worker needs, by the number of workers: section 2 of the paper.

use super::super::{Findings, ReproduceError, Scale};
use super::{clicks, panel};
use crate::l1lr::share::Share;

/// Workers that examples are shared out to.
const WORKERS: [u32; 5] = [1, 10, 100, 1_000, 10_000];
const EXAMPLES: u32 = 100_000;
/// Chosen, and decisive: of 40,000 features each of 100 workers needs 16.5 %, and each of 10,000 still 0.38 %.
const FEATURES: u32 = 200_000;
/// Clicks have more features than the runs to convergence can afford.
const PER_EXAMPLE: u32 = 20;
/// Shares are all alike, so of many workers these are looked at.
const LOOKED_AT: u32 = 20;

pub(in crate::reproduce) fn working_set(scale: &Scale) -> Result<Findings, ReproduceError> {
    let examples = clicks(EXAMPLES, FEATURES, PER_EXAMPLE, scale.seed);
    let needed = |rows: std::ops::Range<usize>| Share::new(&examples, rows, 1).features().len();
    // Features that no example has are no part of the model.
    let model = needed(0..examples.len()) as f64;
    let share = |workers: u32| {
        let rows = examples.len() / workers as usize;
        let seen = workers.min(LOOKED_AT) as usize;
        let sum: usize = (0..seen).map(|worker| needed(worker * rows..(worker + 1) * rows)).sum();
        sum as f64 / seen as f64 / model
    };
    let shares: Vec<(u32, f64)> = WORKERS.iter().map(|&workers| (workers, share(workers))).collect();
    let at = |wanted: u32| shares.iter().find(|(workers, _)| *workers == wanted).map_or(1.0, |(_, share)| *share);
    let list: Vec<String> =
        shares.iter().map(|(workers, share)| format!("{:.2} % of {workers}", 100.0 * share)).collect();
    let found = format!("A worker needs so much of the model's {model:.0} features: {}.", list.join(", "));
    let points = shares.iter().map(|(workers, share)| (f64::from(*workers).log10(), share.log10())).collect();
    let panels = vec![panel("working set", "log10 workers", "log10 share of the model", vec![("a worker", points)])];
    // A tenth of the model for a hundred, and from there to ten thousand a twentieth of that at least.
    Ok(Findings { found, holds: at(100) <= 0.1 && at(10_000) <= at(100) / 20.0, panels })
}
