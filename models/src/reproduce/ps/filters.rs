//! Bytes sent by workers and by servers as filters are stacked: the paper's figure 6.

use super::super::{Findings, ReproduceError, Scale};
use super::{clicks, panel};
use crate::l1lr::distributed::{Config, train};
use crate::l1lr::prox::Penalty;
use crate::l1lr::stopping::Stopping;
use hemiola::filter::Filter;
use hemiola::filter::{KeyCache, Zstd};
use hemiola::tasks::Delay;
use hemiola::{Deployment, Filters, sim};

/// The stacks, each with one more filter.
const STACKS: [&str; 4] = ["none", "key caching", "compression, too", "KKT, too"];
/// Worker nodes, servers and blocks. Few of each, so that messages are long against their headers, as those of a model of
/// billions are on hundreds of machines. They were chosen after a trial, and what servers save depends on them: with two
/// servers and half the features it was 16 times, because headers do not get shorter.
const WORKERS: u32 = 4;
const SERVERS: u32 = 1;
const BLOCKS: u32 = 16;
/// Features of an example.
const PER_EXAMPLE: u32 = 30;
/// Out of so many ratings' worth of scale comes one example, and one feature.
const PER_RATINGS: (u64, u64) = (20, 2);
/// The penalty of a weight in the sum of the losses.
const LAMBDA: f64 = 4.0;
const PASSES: u32 = 60;
/// The least reduction of what workers and servers send, and the most that the objective may differ by.
const BARS: (f64, f64, f64) = (10.0, 20.0, 1e-3);

pub(in crate::reproduce) fn filters(scale: &Scale) -> Result<Findings, ReproduceError> {
    let part = |per: u64| u32::try_from(scale.ratings / per).unwrap_or(u32::MAX).max(1);
    let examples = clicks(part(PER_RATINGS.0), part(PER_RATINGS.1), PER_EXAMPLE, scale.seed);
    let encodings = [Filter::encoding(KeyCache::default()), Filter::encoding(Zstd)];
    let mut runs = Vec::new();
    for stacked in 0..STACKS.len() {
        let chain = encodings[..stacked.min(encodings.len())].to_vec();
        let mut cluster = sim::Config::new(WORKERS);
        (cluster.seed, cluster.servers) = (scale.seed, sim::Servers::Apart(SERVERS));
        cluster.filters = Filters { updates: chain.clone(), rows: chain };
        let config = Config {
            penalty: Penalty { l1: LAMBDA / examples.len() as f64, l2: 0.0, non_negative: false },
            bias: true,
            blocks: Some(BLOCKS),
            delay: Delay::Bounded(2),
            kkt: stacked > encodings.len(),
            stopping: Stopping { tolerance: 1e-5, violation: 1e-5, passes: PASSES },
            seed: scale.seed,
        };
        let trained = train(&examples, &config, &Deployment::Sim(cluster), |_| {})?;
        let sum =
            |bytes: fn(&hemiola::WorkerSplit) -> u64| trained.outcome.splits.iter().map(bytes).sum::<u64>() as f64;
        runs.push((sum(|split| split.bytes_sent), sum(|split| split.bytes_received), trained.fit));
    }
    let (workers, servers, plain) = (runs[0].0, runs[0].1, runs[0].2.objective);
    let list: Vec<String> = STACKS
        .iter()
        .zip(&runs)
        .skip(1)
        .map(|(name, run)| format!("{:.1} and {:.1} times less with {name}", workers / run.0, servers / run.1))
        .collect();
    let Some((least_workers, least_servers, fit)) = runs.last() else { unreachable!("there are stacks") };
    let (from_workers, from_servers, away) =
        (workers / least_workers, servers / least_servers, fit.objective / plain - 1.0);
    let found = format!(
        "On {WORKERS} workers, {SERVERS} server and {BLOCKS} blocks of {} features, {} of which get a weight, workers and \
         servers send {:.1} and {:.1} MB without filters, headers and all; {}. The objective is {:+.3} % from that without \
         filters, after {} and {} passes.",
        examples.features(),
        fit.weights.len(),
        workers / 1e6,
        servers / 1e6,
        list.join(", "),
        100.0 * away,
        fit.passes,
        runs[0].2.passes
    );
    let relative = |of: fn(&(f64, f64, crate::l1lr::solver::Fit)) -> f64, whole: f64| {
        (0..).zip(&runs).map(|(stacked, run)| (f64::from(stacked), 100.0 * of(run) / whole)).collect()
    };
    let series =
        vec![("from workers", relative(|run| run.0, workers)), ("from servers", relative(|run| run.1, servers))];
    let panels = vec![panel("bytes as filters stack", "none, key caching, compression, KKT", "% of bytes", series)];
    let holds = from_workers >= BARS.0 && from_servers >= BARS.1 && away.abs() <= BARS.2;
    Ok(Findings { found, holds, panels })
}
