//! Figure 5: where the time of a pass goes, for the three applications.
//!
//! Waiting is what workers wait on a network that takes no time, which is for the slowest; what the real network adds is
//! communication. As on the paper's machines, some nodes are slower than others; how much was chosen.

use super::super::{Findings, ReproduceError, Scale};
use super::applications::{Size, panel};
use super::{cf, lda, lr};
use crate::{mf, mlr};
use hemiola::splash::Options;
use hemiola::{Deployment, Outcome, sim};

/// One node in so many is slow, and by how much.
const SLOW: (u32, f64) = (8, 1.2);
/// What the paper says of waiting and of communication, as parts of the time that is computed.
const PAPER: [(&str, f64, f64); 3] = [("LR", 0.16, 0.06), ("CF", 0.21, 0.39), ("LDA", 0.26, 1.03)];

/// Seconds that a worker computes and that it does not, on average.
fn split(outcome: &Outcome) -> (f64, f64) {
    let workers = outcome.splits.len() as f64;
    let mean = |part: fn(&hemiola::WorkerSplit) -> f64| outcome.splits.iter().map(part).sum::<f64>() / workers;
    (mean(|split| split.compute_seconds), mean(|split| split.wait_seconds + split.communication_seconds))
}

/// Waiting and communication of a pass, as parts of the time that is computed.
fn parts(
    scale: &Scale,
    size: Size,
    mut run: impl FnMut(&Deployment) -> Result<Outcome, ReproduceError>,
) -> Result<(f64, f64), ReproduceError> {
    let mut cluster = size.cluster(scale.nodes, scale.seed);
    let slow = (0..scale.nodes).step_by(SLOW.0 as usize);
    cluster.faults.stragglers = slow.map(|node| sim::Straggler { node, factor: SLOW.1 }).collect();
    let (computed, elsewhere) = split(&run(&Deployment::Sim(cluster.clone()))?);
    cluster.network.latency = 0.0;
    cluster.network.bandwidth_in = 1e15;
    cluster.network.bandwidth_out = 1e15;
    let (_, waited) = split(&run(&Deployment::Sim(cluster))?);
    Ok((waited / computed, (elsewhere - waited).max(0.0) / computed))
}

pub(in super::super) fn runtime(scale: &Scale) -> Result<Findings, ReproduceError> {
    let count = (scale.ratings as usize / 50).max(1000);
    let examples = lr::digits(count, scale.seed, scale.seed.wrapping_mul(2));
    let passes = |synchronisations| Options { seed: scale.seed, synchronisations, ..Options::default() };
    let regression = |synchronisations: u32| {
        parts(scale, lr::size(count), |deployment| {
            let config =
                mlr::splash::Config { l2: 0.0, epochs: 1, passes: passes(synchronisations), ..Default::default() };
            Ok(mlr::splash::train(&config, deployment, &examples, None, |_| {})?.outcome)
        })
    };
    let (ratings, train, shape) = cf::ratings(scale)?;
    let factorisation = |synchronisations: u32| {
        let config = mf::splash::Config { passes: passes(synchronisations), ..cf::config(scale, 1) };
        parts(scale, cf::size(train, shape.1, config.rank), |deployment| {
            Ok(mf::splash::train(&config, deployment, ratings.clone(), train, shape, |_| {})?.outcome)
        })
    };
    let (corpus, _) = lda::documents(scale)?;
    let topics = || {
        parts(scale, lda::size(&corpus, scale.topics as usize), |deployment| {
            Ok(crate::lda::splash::train(&lda::config(scale, 1), deployment, &corpus, |_| {})?.outcome)
        })
    };
    let found = [regression(5)?, factorisation(5)?, topics()?];
    let rarer = factorisation(1)?.1;
    let told: Vec<String> = PAPER
        .iter()
        .zip(found)
        .map(|((name, waiting, sending), (waited, sent))| {
            let percent = |part: f64| 100.0 * part;
            format!(
                "{name} waits {:.0} % and communicates {:.0} % (paper {:.0} and {:.0})",
                percent(waited),
                percent(sent),
                percent(*waiting),
                percent(*sending)
            )
        })
        .collect();
    let holds = found[0].1 < found[1].1 && found[1].1 < found[2].1 && rarer < found[1].1;
    let found_text = format!(
        "Of the time that workers compute, {}; with one synchronisation in a pass instead of five CF communicates {:.0} %.",
        told.join(", "),
        100.0 * rarer
    );
    let points = |of: fn(&(f64, f64)) -> f64| (1..).zip(&found).map(|(i, parts)| (f64::from(i), of(parts))).collect();
    let series = vec![("waiting", points(|parts| parts.0)), ("communication", points(|parts| parts.1))];
    let axis = "application: 1 LR, 2 CF, 3 LDA";
    Ok(Findings { found: found_text, holds, panels: vec![panel("Runtime", axis, "part of the time computed", series)] })
}
