//! What nodes compute and what they wait for, by staleness: the paper's figure 8.

use super::super::{Findings, ReproduceError, Scale};
use super::{Bench, EPOCHS, Exchange, Run, panel};
use crate::mlr::factors::Config;
use hemiola::sim::Hazard;

/// Staleness as in the figure.
const STALENESS: [u32; 5] = [0, 1, 2, 5, 10];

/// How often a node stands still for as long as an iteration, in every iteration.
const PAUSES: f64 = 0.1;

/// How many times as long is slightly longer.
const SLIGHTLY: f64 = 1.5;

/// Mean seconds that a node computed and waited.
fn split(run: &Run) -> (f64, f64) {
    run.trained.epochs.last().map_or((f64::NAN, f64::NAN), |epoch| (epoch.compute_seconds, epoch.wait_seconds))
}

/// What of the wait without staleness is left with some.
fn waits_of(points: &[(f64, f64)]) -> String {
    let share = |point: &(f64, f64)| format!("{:.0} % at {}", 100.0 * point.1 / points[0].1, point.0);
    points[1..].iter().map(share).collect::<Vec<_>>().join(", ")
}

pub(in crate::reproduce) fn waiting(scale: &Scale) -> Result<Findings, ReproduceError> {
    let bench = Bench::new(scale, (Bench::classes_max(scale) / 2).max(2))?;
    let mut curves = Vec::new();
    for (exchange, name) in [(Exchange::Factors, "factors"), (Exchange::Matrix, "full matrix")] {
        let (mut computing, mut waiting) = (Vec::new(), Vec::new());
        for staleness in STALENESS {
            let (compute, wait) = split(&bench.run(exchange, &Config { staleness, ..bench.config() })?);
            computing.push((f64::from(staleness), compute));
            waiting.push((f64::from(staleness), wait));
        }
        curves.push((format!("computing, {name}"), computing));
        curves.push((format!("waiting, {name}"), waiting));
    }
    let without = waits_of(&curves[1].1);
    // On a cluster that others use too, nodes are not always equally fast.
    let iterations = EPOCHS * bench.config().on_tables(bench.train.len(), bench.nodes).clocks_per_epoch;
    let iteration = (curves[0].1[0].1 + curves[1].1[0].1) / f64::from(iterations);
    let pauses = Hazard { per_second: PAUSES / iteration, seconds: iteration };
    let uneven = Bench { pauses, ..bench };
    let mut waiting = Vec::new();
    for staleness in STALENESS {
        let run = uneven.run(Exchange::Factors, &Config { staleness, ..uneven.config() })?;
        waiting.push((f64::from(staleness), split(&run).1));
    }
    let with = waits_of(&waiting);
    curves.push(("waiting, factors, nodes that stand still".to_owned(), waiting));
    let bench = uneven;
    let pairs = curves[1].1.iter().zip(&curves[3].1);
    let shares: Vec<f64> = pairs.map(|(factors, matrix)| factors.1 / matrix.1).collect();
    let list: Vec<String> = STALENESS
        .iter()
        .zip(&shares)
        .map(|(staleness, share)| format!("{:.0} % at staleness {staleness}", 100.0 * share))
        .collect();
    let computing = curves[0].1[0].1 / curves[2].1[0].1;
    let found = format!(
        "In {EPOCHS} passes nodes wait with factors this part of what they wait with the full matrix: {}; and compute {computing:.1} times as \
         long, because each subtracts the pairs of all. With staleness factors are waited for, compared with none: {without}; and \
         where nodes stand still at random, a tenth of the time: {with}. A network that is the bottleneck is waited for \
         whatever the staleness. {}.",
        list.join(", "),
        bench.chosen()
    );
    let panels = vec![panel("seconds of a node", "staleness", "virtual seconds", curves)];
    Ok(Findings { found, holds: shares.iter().all(|share| *share < 0.5) && computing < SLIGHTLY, panels })
}
