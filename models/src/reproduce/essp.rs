//! Staleness and its effects: SSP against ESSP on a simulated cluster.

use super::{Findings, Panel, ReproduceError, Scale, Series};
use crate::generate::{Synthetic, generate};
use crate::mf::StepSize;
use crate::mf::train::{Arranged, Config, Cut, Trained, train};
use hemiola::sim;
use hemiola::{Consistency, Deployment};

/// How many clocks an epoch has where a curve is drawn, and where only time and staleness count: the paper has clocks of
/// a hundredth and of a tenth of the ratings.
const CLOCKS_PER_EPOCH: u32 = 50;
const LONG_CLOCKS_PER_EPOCH: u32 = 10;
/// The bounds that are compared.
const BOUNDS: [u32; 4] = [1, 2, 4, 8];
/// The step size: with two hundred ratings of an item in flight in a clock, a step of the default size overshoots.
const RATE: f32 = 0.02;
/// How many times as long as its communication a clock's computation takes. The paper observed that communication takes
/// less time; how much less decides how fresh eager reads are, so the first figure shows several.
const COMPUTE_PER_COMMUNICATION: f64 = 32.0;

/// Trains on a simulated cluster: Gigabit Ethernet, two workers a node, a shard beside every client, no stragglers (a
/// worker that stands still once stays behind for good under a loose bound, and everyone's reads are stale by it).
pub(super) fn simulate(scale: &Scale, config: &Config) -> Result<Trained, ReproduceError> {
    simulate_with(scale, config, COMPUTE_PER_COMMUNICATION)
}

fn simulate_with(scale: &Scale, config: &Config, compute_per_communication: f64) -> Result<Trained, ReproduceError> {
    let items = 2_000;
    let users = (scale.ratings / 20).max(200) as u32;
    let set = Synthetic { users, items, count: scale.ratings as usize, seed: scale.seed, ..Synthetic::default() };
    let ratings = generate(&set)?.ratings.ratings;
    let workers = scale.nodes * 2;
    // Nothing is held out: reads to evaluate a model would be counted as stale reads of training.
    let trained = ratings.len();
    let data = Arranged::new(ratings, trained, (users, items), workers, config)?;
    let mut cluster = sim::Config::new(scale.nodes);
    cluster.seed = scale.seed;
    cluster.workers_per_node = 2;
    let communication = communication_seconds(scale, config, trained as f64, f64::from(items), &cluster);
    let ratings_per_clock = trained as f64 / f64::from(workers * config.clocks_per_epoch);
    cluster.seconds_per_unit = compute_per_communication * communication / ratings_per_clock;
    Ok(train(config, &Deployment::Sim(cluster), data, |_| {})?)
}

/// How long a clock's communication keeps a node's downlink busy: the rows that changed, and the updates for the
/// node's shard.
fn communication_seconds(scale: &Scale, config: &Config, ratings: f64, items: f64, cluster: &sim::Config) -> f64 {
    let touched = |ratings: f64| items * (1.0 - (-ratings / items).exp());
    let per_clock = ratings / f64::from(config.clocks_per_epoch);
    let rows = touched(per_clock) + touched(per_clock / f64::from(scale.nodes));
    let row_bytes = 8.0 + 4.0 * crate::mf::row_width(config.rank) as f64;
    rows * row_bytes / cluster.network.bandwidth_in
}

/// Three epochs of long clocks, whose model nobody looks at.
fn long_clocks(scale: &Scale, consistency: Consistency) -> Config {
    let mut config = Config { clocks_per_epoch: LONG_CLOCKS_PER_EPOCH, chunks: 32, ..config(scale, consistency, 3) };
    config.training.step = StepSize::Constant { rate: 1e-4 };
    config
}

pub(super) fn config(scale: &Scale, consistency: Consistency, epochs: u32) -> Config {
    let mut config = Config {
        rank: scale.rank,
        consistency,
        clocks_per_epoch: CLOCKS_PER_EPOCH,
        cut: Cut::Ratings,
        chunks: 8,
        seed: scale.seed,
        ..Config::default()
    };
    config.training.epochs = epochs;
    config.training.step = StepSize::Adaptive { rate: RATE, damping: 0.03 };
    config
}

fn both(staleness: u32) -> [(&'static str, Consistency); 2] {
    [("SSP", Consistency::Ssp { staleness }), ("ESSP", Consistency::Essp { staleness })]
}

pub(super) fn staleness(scale: &Scale) -> Result<Findings, ReproduceError> {
    let mut panels = Vec::new();
    let mut fresh = Vec::new();
    let mut widest = Vec::new();
    for bound in BOUNDS {
        let mut series = Vec::new();
        for (name, model) in both(bound) {
            let histogram = simulate(scale, &long_clocks(scale, model))?.outcome.histogram;
            let total: u64 = histogram.iter().map(|(_, reads)| reads).sum();
            let points = histogram.iter().map(|(d, reads)| (d as f64, reads as f64 / total as f64)).collect();
            series.push(Series { name: name.to_owned(), points });
            match name {
                "ESSP" => fresh.push((bound, histogram.share_at_least(-1))),
                _ => widest
                    .push((bound, histogram.iter().map(|(_, reads)| reads).max().unwrap_or(0) as f64 / total as f64)),
            }
        }
        panels.push(Panel {
            title: format!("staleness {bound}"),
            x: "clock differential".to_owned(),
            y: "share of reads".to_owned(),
            series,
            lines: true,
        });
    }
    let ratios = [2.0, 4.0, 8.0, 16.0, 32.0];
    let fresh_at = |ratio: f64| -> Result<(f64, f64), ReproduceError> {
        let config = long_clocks(scale, Consistency::Essp { staleness: 4 });
        Ok((ratio, simulate_with(scale, &config, ratio)?.outcome.histogram.share_at_least(-1)))
    };
    panels.push(Panel {
        title: "ESSP, staleness 4".to_owned(),
        x: "computation / communication".to_owned(),
        y: "share of reads at -1 or fresher".to_owned(),
        series: vec![Series {
            name: "ESSP".to_owned(),
            points: ratios.into_iter().map(fresh_at).collect::<Result<_, _>>()?,
        }],
        lines: true,
    });
    let list = |shares: &[(u32, f64)]| {
        let share = |(bound, share): &(u32, f64)| format!("{:.1} % at s = {bound}", share * 100.0);
        shares.iter().map(share).collect::<Vec<_>>().join(", ")
    };
    let essp = fresh.iter().all(|(_, share)| *share >= 0.9);
    // A spread window of s + 1 places has no place with much more than its even share.
    let ssp = widest.iter().all(|&(bound, share)| share <= 2.5 / f64::from(bound + 1));
    let found = format!(
        "With clocks that compute {COMPUTE_PER_COMMUNICATION} times as long as they communicate, ESSP reads at -1 or fresher: {}; \
         the most frequent differential of SSP has {}.",
        list(&fresh),
        list(&widest)
    );
    Ok(Findings { found, holds: essp && ssp, panels })
}

/// With computation that takes only four times as long as communication, so that there is something to wait for.
pub(super) fn breakdown(scale: &Scale) -> Result<Findings, ReproduceError> {
    let mut panels = Vec::new();
    let mut waits = Vec::new();
    for (index, name) in ["SSP", "ESSP"].into_iter().enumerate() {
        let (mut compute, mut wait) = (Vec::new(), Vec::new());
        for bound in std::iter::once(0).chain(BOUNDS) {
            let outcome = simulate_with(scale, &long_clocks(scale, both(bound)[index].1), 4.0)?.outcome;
            let clocks: f64 = outcome.splits.iter().map(|split| f64::from(split.clocks.0)).sum();
            let mean = |seconds: fn(&hemiola::WorkerSplit) -> f64| {
                outcome.splits.iter().map(seconds).sum::<f64>() / clocks * 1e3
            };
            compute.push((f64::from(bound), mean(|split| split.compute_seconds)));
            wait.push((f64::from(bound), mean(|split| split.wait_seconds + split.communication_seconds)));
        }
        let both = compute.iter().zip(&wait).map(|(compute, wait)| (compute.0, compute.1 + wait.1)).collect();
        waits.push(wait);
        panels.push(Panel {
            title: name.to_owned(),
            x: "staleness".to_owned(),
            y: "milliseconds per clock".to_owned(),
            series: vec![
                Series { name: "computation".to_owned(), points: compute },
                Series { name: "and communication".to_owned(), points: both },
            ],
            lines: true,
        });
    }
    let list = |waits: &[(f64, f64)]| {
        waits.iter().map(|(bound, ms)| format!("{ms:.2} at s = {bound}")).collect::<Vec<_>>().join(", ")
    };
    let holds = waits[0].iter().zip(&waits[1]).all(|((_, ssp), (_, essp))| *essp <= ssp * 1.02);
    let found = format!("Milliseconds per clock waiting: SSP {}; ESSP {}.", list(&waits[0]), list(&waits[1]));
    Ok(Findings { found, holds, panels })
}

pub(super) fn convergence(scale: &Scale) -> Result<Findings, ReproduceError> {
    let mut per_clock = Vec::new();
    let mut per_second = Vec::new();
    let mut ends = Vec::new();
    for bound in [2, 8] {
        for (name, model) in both(bound) {
            let epochs = simulate(scale, &config(scale, model, scale.epochs))?.epochs;
            let name = format!("{name} s = {bound}");
            let curve = |x: fn(&crate::mf::train::Epoch) -> f64| {
                epochs.iter().map(|epoch| (x(epoch), epoch.quality.objective)).collect()
            };
            per_clock.push(Series { name: name.clone(), points: curve(|epoch| f64::from(epoch.clock)) });
            per_second.push(Series { name: name.clone(), points: curve(|epoch| epoch.seconds) });
            let last = epochs.last().expect("epochs");
            ends.push((name, last.quality.objective, last.seconds));
        }
    }
    let holds = ends.chunks(2).all(|pair| pair[1].1 <= pair[0].1 * 1.01 && pair[1].2 <= pair[0].2 * 1.02);
    let list = ends.iter().map(|(name, loss, seconds)| format!("{name}: {loss:.4} after {seconds:.3} s"));
    let found = format!(
        "Squared loss after {} clocks: {}.",
        scale.epochs * CLOCKS_PER_EPOCH,
        list.collect::<Vec<_>>().join("; ")
    );
    let panel = |title: &str, x: &str, series| Panel {
        title: title.to_owned(),
        x: x.to_owned(),
        y: "squared loss".to_owned(),
        series,
        lines: true,
    };
    let panels = vec![panel("per clock", "clock", per_clock), panel("per second", "virtual seconds", per_second)];
    Ok(Findings { found, holds, panels })
}

pub(super) fn robustness(scale: &Scale) -> Result<Findings, ReproduceError> {
    let mut panels = Vec::new();
    let mut shakes: Vec<Vec<(f64, f64)>> = Vec::new();
    let train = |model, rate| -> Result<Vec<(f64, f64)>, ReproduceError> {
        let mut config = config(scale, model, scale.epochs);
        config.training.step = StepSize::Constant { rate };
        match simulate(scale, &config) {
            Ok(trained) => {
                Ok(trained.epochs.iter().map(|epoch| (f64::from(epoch.clock), epoch.quality.objective)).collect())
            }
            // A loss that is no longer a number is the finding itself.
            Err(ReproduceError::Train(crate::mf::train::TrainError::Diverged { .. })) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    };
    // As the paper chose it: large, while training still converges at staleness 0.
    let mut rate = RATE_MAX;
    let mut safe = train(Consistency::Bsp, rate)?;
    while !converges(&safe, scale.epochs) && rate > RATE_MIN {
        rate /= 2.0;
        safe = train(Consistency::Bsp, rate)?;
    }
    let reference = safe.last().map_or(f64::INFINITY, |point| point.1);
    for (index, name) in ["SSP", "ESSP"].into_iter().enumerate() {
        let mut series = vec![Series { name: "s = 0".to_owned(), points: safe.clone() }];
        let mut excess = Vec::new();
        for bound in [4, 16] {
            let points = train(both(bound)[index].1, rate)?;
            let worst = points.iter().zip(&safe).map(|(stale, safe)| stale.1 / safe.1).fold(1.0, f64::max);
            excess.push((f64::from(bound), if points.len() < safe.len() { f64::INFINITY } else { worst }));
            series.push(Series { name: format!("s = {bound}"), points });
        }
        shakes.push(excess);
        panels.push(Panel {
            title: name.to_owned(),
            x: "clock".to_owned(),
            y: "squared loss".to_owned(),
            series,
            lines: true,
        });
    }
    let worst = |excess: &[(f64, f64)]| excess.iter().map(|(_, worst)| *worst).fold(1.0, f64::max);
    let holds = reference.is_finite() && worst(&shakes[1]) < 1.25 && worst(&shakes[0]) > 1.5 * worst(&shakes[1]);
    let list = |excess: &[(f64, f64)]| {
        let one = |(bound, worst): &(f64, f64)| {
            if worst.is_finite() { format!("{worst:.2} at s = {bound}") } else { format!("diverged at s = {bound}") }
        };
        excess.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let found = format!(
        "With steps of {rate}, worst loss as a multiple of that at staleness 0 (which ends at {reference:.3}): SSP {}; ESSP {}.",
        list(&shakes[0]),
        list(&shakes[1])
    );
    Ok(Findings { found, holds, panels })
}

/// Between these a step size is looked for.
const RATE_MAX: f32 = 0.1;
const RATE_MIN: f32 = 1e-4;

/// Whether a curve is whole and falls all the way.
fn converges(points: &[(f64, f64)], epochs: u32) -> bool {
    points.len() == epochs as usize && points.windows(2).all(|pair| pair[1].1 < pair[0].1)
}
