//! Bytes sent by workers and by servers as filters are stacked: the paper's figure 6.

use super::super::{Findings, ReproduceError, Scale};
use super::{clicks, panel};
use crate::examples::Examples;
use crate::l1lr::blocks::Cut;
use crate::l1lr::distributed::{Config, train};
use crate::l1lr::prox::Penalty;
use crate::l1lr::solver::Fit;
use crate::l1lr::stopping::Stopping;
use hemiola::filter::Filter;
use hemiola::filter::{KeyCache, Zstd};
use hemiola::tasks::Delay;
use hemiola::{Deployment, Filters, sim};

/// The stacks, each with one more filter.
const STACKS: [&str; 4] = ["none", "key caching", "compression, too", "KKT, too"];
/// Worker nodes and blocks. Few of each, so that messages are long against their headers, as those of a model of billions
/// are on hundreds of machines.
const WORKERS: u32 = 4;
const BLOCKS: u32 = 16;
/// Servers, and how many ratings' worth of scale give a feature: of the second, messages have a quarter of the length, and
/// headers tell.
const SHAPES: [Shape; 2] = [Shape { servers: 1, per_feature: 2 }, Shape { servers: 2, per_feature: 4 }];
/// Features of an example.
const PER_EXAMPLE: u32 = 30;
/// Out of so many ratings' worth of scale comes one example.
const PER_EXAMPLE_RATINGS: u64 = 20;
/// The penalty of a weight in the sum of the losses.
const LAMBDA: f64 = 4.0;
const PASSES: u32 = 60;
/// The least reduction of what workers and servers send, and the most that the objective may differ by.
const BARS: (f64, f64, f64) = (10.0, 20.0, 1e-3);

struct Shape {
    servers: u32,
    per_feature: u64,
}

/// What was sent with one stack of filters, in bytes from workers and from servers, and what came of it.
struct Run {
    workers: f64,
    servers: f64,
    fit: Fit,
}

pub(in crate::reproduce) fn filters(scale: &Scale) -> Result<Findings, ReproduceError> {
    let (mut found, mut holds, mut panels) = (Vec::new(), true, Vec::new());
    for shape in &SHAPES {
        let part = |per: u64| u32::try_from(scale.ratings / per).unwrap_or(u32::MAX).max(1);
        let examples = clicks(part(PER_EXAMPLE_RATINGS), part(shape.per_feature), PER_EXAMPLE, scale.seed);
        let runs = (0..STACKS.len()).map(|stacked| shape.run(&examples, stacked, scale.seed));
        let runs: Vec<Run> = runs.collect::<Result<_, ReproduceError>>()?;
        let (Some(plain), Some(least)) = (runs.first(), runs.last()) else { unreachable!("there are stacks") };
        let (from_workers, from_servers) = (plain.workers / least.workers, plain.servers / least.servers);
        let away = least.fit.objective / plain.fit.objective - 1.0;
        holds &= from_workers >= BARS.0 && from_servers >= BARS.1 && away.abs() <= BARS.2;
        found.push(shape.found(&examples, &runs, away));
        let relative = |of: fn(&Run) -> f64| -> Vec<(f64, f64)> {
            (0..).zip(&runs).map(|(stacked, run)| (f64::from(stacked), 100.0 * of(run) / of(plain))).collect()
        };
        let series = vec![("from workers", relative(|run| run.workers)), ("from servers", relative(|run| run.servers))];
        let title = format!("bytes as filters stack, servers: {}", shape.servers);
        panels.push(panel(&title, "none, key caching, compression, KKT", "% of bytes", series));
    }
    Ok(Findings { found: found.join(" "), holds, panels })
}

impl Shape {
    fn run(&self, examples: &Examples, stacked: usize, seed: u64) -> Result<Run, ReproduceError> {
        let encodings = [Filter::encoding(KeyCache::default()), Filter::encoding(Zstd)];
        let chain = encodings[..stacked.min(encodings.len())].to_vec();
        let mut cluster = sim::Config::new(WORKERS);
        (cluster.seed, cluster.servers) = (seed, sim::Servers::Apart(self.servers));
        cluster.filters = Filters { updates: chain.clone(), rows: chain };
        let config = Config {
            penalty: Penalty { l1: LAMBDA / examples.len() as f64, l2: 0.0, non_negative: false },
            bias: true,
            blocks: Cut::Into(BLOCKS),
            delay: Delay::Bounded(2),
            kkt: stacked > encodings.len(),
            stopping: Stopping { tolerance: 1e-5, violation: 1e-5, passes: PASSES },
            seed,
        };
        let trained = train(examples, &config, &Deployment::Sim(cluster), |_| {})?;
        let sum =
            |bytes: fn(&hemiola::WorkerSplit) -> u64| trained.outcome.splits.iter().map(bytes).sum::<u64>() as f64;
        let (workers, servers) = (sum(|split| split.bytes_sent), sum(|split| split.bytes_received));
        Ok(Run { workers, servers, fit: trained.fit })
    }

    /// What was found, for people.
    fn found(&self, examples: &Examples, runs: &[Run], away: f64) -> String {
        let (plain, least) = (&runs[0], &runs[runs.len() - 1]);
        let times = |(name, run): (&&str, &Run)| {
            let (workers, servers) = (plain.workers / run.workers, plain.servers / run.servers);
            format!("{workers:.1} and {servers:.1} times less with {name}")
        };
        let list: Vec<String> = STACKS.iter().zip(runs).skip(1).map(times).collect();
        format!(
            "With {WORKERS} workers, servers: {}, and {BLOCKS} blocks of {} features, {} of which get a weight, workers and \
             servers send {:.1} and {:.1} MB without filters, headers and all; {}. The objective is {:+.3} % from that \
             without filters, after {} and {} passes.",
            self.servers,
            examples.features(),
            least.fit.weights.len(),
            plain.workers / 1e6,
            plain.servers / 1e6,
            list.join(", "),
            100.0 * away,
            least.fit.passes,
            plain.fit.passes
        )
    }
}
