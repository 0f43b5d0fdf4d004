//! The Parameter Server paper's figures: sparse logistic regression by the delayed block method on simulated nodes.
//!
//! Neither the clicks of the paper nor its 800 machines for workers are to be had, so a few numbers are chosen: the data
//! are drawn here, with few features of many in an example as clicks have; a worker's part of an iteration takes
//! [`ITERATION_SECONDS`] on average, against which what servers compute is nothing; and "the cluster was in concurrent use
//! by other jobs", so some nodes are slow all the time and every worker stands still now and then. They were
//! chosen after a few trials, and how much a delay gains depends on them: with them workers wait somewhat more than half of
//! the time under sequential iterations, as those of the paper's System B must have, which became twice as fast by that.

mod convergence;
mod delay;
mod filters;
mod working_set;

pub(super) use convergence::convergence;
pub(super) use delay::{delay, waiting};
pub(super) use filters::filters;
pub(super) use working_set::working_set;

use super::{Panel, ReproduceError, Scale, Series};
use crate::Names;
use crate::examples::Examples;
use crate::l1lr::blocks::Cut;
use crate::l1lr::distributed::{Config, Trained, train};
use crate::l1lr::prox::Penalty;
use crate::l1lr::stopping::Stopping;
use hemiola::tasks::Delay;
use hemiola::{Deployment, sim};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The delays of the paper's figure.
const DELAYS: [u64; 6] = [0, 1, 2, 4, 8, 16];
/// Servers; every worker sends to each of them in every iteration, so more only make the simulation longer.
const SERVERS: u32 = 2;
/// Blocks of features; the paper has 580.
const BLOCKS: u32 = 60;
/// Features of an example.
const FEATURES_PER_EXAMPLE: u32 = 5;
/// Virtual seconds that a worker computes in an iteration on average.
const ITERATION_SECONDS: f64 = 0.02;
/// The share of nodes that are slow all the time, and how many times as long their work takes.
const SLOW: (f64, f64) = (0.05, 1.3);
/// How often a worker stands still, and for how long: the work of an iteration, in every fiftieth.
const PAUSES: sim::Hazard = sim::Hazard { per_second: 0.02 / ITERATION_SECONDS, seconds: ITERATION_SECONDS };

/// A uniform number from 0 to 1.
fn uniform(random: &mut Xoshiro256PlusPlus) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Examples of two classes whose features occur by a power law, one in ten of which says something.
fn clicks(examples: u32, features: u32, per_example: u32, seed: u64) -> Examples {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let normal = |random: &mut Xoshiro256PlusPlus| (0..12).map(|_| uniform(random)).sum::<f64>() - 6.0;
    let truth: Vec<f64> =
        (0..features).map(|_| if uniform(&mut random) < 0.1 { 2.0 * normal(&mut random) } else { 0.0 }).collect();
    let mut classes = Names::default();
    let known = ["0", "1"].iter().all(|class| classes.intern(class).is_ok());
    debug_assert!(known, "two classes are not too many");
    let mut set = Examples::new(classes);
    for _ in 0..examples {
        // As many features of rank r as 1/r, up to the rank that there are.
        let rank = |random: &mut Xoshiro256PlusPlus| f64::from(features).powf(uniform(random)) as u32 - 1;
        let mut columns: Vec<u32> = (0..per_example).map(|_| rank(&mut random).min(features - 1)).collect();
        columns.sort_unstable();
        columns.dedup();
        let score: f64 = columns.iter().map(|&feature| truth[feature as usize]).sum();
        let label = u32::from(uniform(&mut random) < 1.0 / (1.0 + (1.0 - score).exp()));
        set.push(label, columns.into_iter().map(|feature| (feature, 1.0)));
    }
    set
}

/// The data and the cluster that delays are compared on.
struct Bench {
    examples: Examples,
    workers: u32,
    seed: u64,
}

impl Bench {
    fn new(scale: &Scale) -> Self {
        Self::larger(scale, 1)
    }

    /// The same with so many times as many workers and examples.
    fn larger(scale: &Scale, times: u32) -> Self {
        // A hundred of them, unless nodes are fewer or more than usual.
        let workers = (scale.nodes * 25 / 16).max(1) * times;
        let examples = clicks(workers * 100, workers * 50, FEATURES_PER_EXAMPLE, scale.seed);
        Self { examples, workers, seed: scale.seed }
    }

    /// What was chosen, for people.
    fn chosen(&self) -> String {
        let (examples, features) = (self.examples.len(), self.examples.features());
        format!("{} workers, with {BLOCKS} blocks of {features} features in {examples} examples,", self.workers)
    }

    fn penalty(&self) -> Penalty {
        Penalty { l1: 2.0 / self.examples.len() as f64, l2: 0.0, non_negative: false }
    }

    fn cluster(&self) -> sim::Config {
        let mut cluster = sim::Config::new(self.workers);
        cluster.seed = self.seed;
        cluster.servers = sim::Servers::Apart(SERVERS);
        let units = self.examples.entries() as f64 / f64::from(self.workers * BLOCKS);
        cluster.seconds_per_unit = ITERATION_SECONDS / units;
        let slow = (f64::from(self.workers) * SLOW.0).ceil() as u32;
        cluster.faults.stragglers = (0..slow).map(|node| sim::Straggler { node, factor: SLOW.1 }).collect();
        cluster.faults.pauses = PAUSES;
        cluster
    }

    /// Without the KKT filter, so that all iterations take about as long.
    fn run(&self, delay: u64, passes: u32) -> Result<Trained, ReproduceError> {
        let config = Config {
            penalty: self.penalty(),
            bias: true,
            blocks: Cut::Into(BLOCKS),
            delay: Delay::Bounded(delay),
            kkt: false,
            stopping: Stopping { tolerance: 1e-12, violation: 1e-12, passes },
            seed: self.seed,
        };
        Ok(train(&self.examples, &config, &Deployment::Sim(self.cluster()), |_| {})?)
    }
}

fn panel(title: &str, x: &str, y: &str, series: Vec<(&str, Vec<(f64, f64)>)>) -> Panel {
    let series = series.into_iter().map(|(name, points)| Series { name: name.to_owned(), points }).collect();
    Panel { title: title.to_owned(), x: x.to_owned(), y: y.to_owned(), series, lines: true }
}
