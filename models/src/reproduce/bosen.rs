//! Managed communication: what the runs of the Bösen paper's figures have in common.
//!
//! A simulated node has one worker: the threads of a node of the paper share a cache, so that within a node nothing is
//! stale. Data and model are far smaller than the paper's, so everything of the network is scaled by what a node sends
//! in an exchange, which is all that it sends in a pass under bounded staleness alone: every update to its shard, and
//! every row that changed to every client. How many exchanges a pass a budget of the paper's is, is taken from what its
//! text says of each problem (`Problem::exchanges_per_megabit`).
//!
//! What the end of a clock must send keeps to the budget here, too, and takes as long: at 4 exchanges a pass a quarter of
//! the next one, where the network carries it in a twentieth. So a small budget gains less than a large one by more than
//! what it sends early.

mod adarevision;
mod bandwidth;
mod clock_ticks;
mod factorisation;
mod frequency;
mod overhead;
mod regression;
mod topics;

pub(super) use adarevision::adarevision;
pub(super) use bandwidth::bandwidth;
pub(super) use clock_ticks::clock_ticks;
pub(super) use frequency::frequency;
pub(super) use overhead::{overhead, time};

use super::{Panel, ReproduceError, Series};
use crate::Epoch;
use factorisation::Factorisation;
use hemiola::sim;
use hemiola::{BYTES_PER_SECOND_MIN, Budget, Consistency, Priority};
use regression::Regression;
use topics::Topics;

/// What the network of the paper's clusters carries, in megabits per second.
const LINE_MEGABITS: f64 = 1000.0;
/// The staleness bound of all runs, in passes.
const STALENESS: u32 = 2;

/// What is sent when.
#[derive(Clone, Copy)]
struct Mode {
    /// Clocks in a pass.
    clocks: u32,
    /// Exchanges that a node may send in a pass, and what goes first; without it everything is sent when a clock ends,
    /// as fast as the network goes.
    managed: Option<(f64, Priority)>,
}

/// Bounded staleness alone, with a clock for every pass.
const BS: Mode = Mode { clocks: 1, managed: None };

/// A training that can be run in any mode.
trait Problem {
    /// Simulated nodes.
    fn nodes(&self) -> u32;

    /// What is computed in a pass, in the units that a worker's work is told in.
    fn units(&self) -> u64;

    /// Virtual seconds of computation in a pass: long enough for a budget to be spent in many messages, short enough for a
    /// message to hold rows for every node. The paper's messages hold 100 of 480,000 rows, or 5000 of 100,000.
    fn pass_seconds(&self) -> f64;

    /// Exchanges a pass that a megabit per second of the paper's cluster amounts to.
    fn exchanges_per_megabit(&self) -> f64;

    /// Trains.
    fn train(
        &self,
        cluster: &sim::Config,
        clocks: u32,
        consistency: Consistency,
        passes: u32,
    ) -> Result<Course, ReproduceError>;
}

/// How a training went.
struct Course {
    points: Vec<Point>,
    /// What a node sent in a pass, in bytes as a budget counts them.
    bytes_per_pass: f64,
    seconds_per_pass: f64,
}

/// How far it was.
#[derive(Clone, Copy)]
struct Point {
    passes: f64,
    seconds: f64,
    /// The less the better.
    loss: f64,
}

impl Course {
    /// From how far a training was after its epochs, where their quality is known by its loss.
    fn new<Q>(epochs: &[Epoch<Q>], nodes: u32, loss: impl Fn(&Q) -> Option<f64>) -> Self {
        let point = |epoch: &Epoch<Q>| {
            let (passes, seconds) = (f64::from(epoch.epoch), epoch.seconds);
            Some(Point { passes, seconds, loss: loss(&epoch.quality)? })
        };
        let sent: Vec<u64> = epochs.iter().map(|epoch| epoch.bytes_sent + epoch.bytes_received).collect();
        let last = &epochs[epochs.len() - 1];
        Self {
            points: epochs.iter().filter_map(point).collect(),
            bytes_per_pass: bytes_per_pass(&sent, nodes),
            seconds_per_pass: last.seconds / f64::from(last.epoch),
        }
    }

    /// Where a loss was first reached, as passes and seconds, between two points as if all were on a line.
    fn reaches(&self, loss: f64) -> Option<Point> {
        let at = self.points.iter().position(|point| point.loss <= loss)?;
        let end = self.points[at];
        let Some(start) = at.checked_sub(1).map(|before| self.points[before]) else { return Some(end) };
        let part = (start.loss - loss) / (start.loss - end.loss);
        let between = |of: fn(&Point) -> f64| of(&start) + part * (of(&end) - of(&start));
        Some(Point { passes: between(|point| point.passes), seconds: between(|point| point.seconds), loss })
    }

    fn series(&self, name: &str, x: fn(&Point) -> f64, y: fn(f64) -> f64) -> Series {
        Series { name: name.to_owned(), points: self.points.iter().map(|point| (x(point), y(point.loss))).collect() }
    }
}

/// What a node sent in a pass, from the bytes that all clients had sent and received after each pass, which all nodes
/// together have sent. The first pass is left out, in which rows are fetched, and the last, after which workers wait.
fn bytes_per_pass(sent: &[u64], nodes: u32) -> f64 {
    let passes = sent.len().saturating_sub(2);
    if passes == 0 { 0.0 } else { Budget::taken(sent[passes] - sent[0]) as f64 / (passes as f64 * f64::from(nodes)) }
}

/// A problem, and how the network is scaled to it.
struct Bench<P> {
    problem: P,
    /// What a node sends in an exchange, in bytes.
    exchange: f64,
}

impl<P: Problem> Bench<P> {
    fn new(problem: P) -> Result<Self, ReproduceError> {
        let mut bench = Self { problem, exchange: 1e9 };
        // How much is sent depends a little on how fast that goes.
        for _ in 0..2 {
            bench.exchange = bench.run(BS, MEASURED_PASSES)?.bytes_per_pass.max(1.0);
        }
        Ok(bench)
    }

    /// How many exchanges a pass a budget of the paper's is.
    fn exchanges(&self, megabits: f64) -> f64 {
        megabits * self.problem.exchanges_per_megabit()
    }

    /// Managed communication with a budget of the paper's.
    fn mc(&self, megabits: f64, priority: Priority) -> Mode {
        Mode { clocks: 1, managed: Some((self.exchanges(megabits), priority)) }
    }

    fn bytes_per_second(&self, exchanges: f64) -> f64 {
        exchanges * self.exchange / self.problem.pass_seconds()
    }

    fn cluster(&self, mode: Mode) -> sim::Config {
        let mut cluster = sim::Config::new(self.problem.nodes());
        cluster.workers_per_node = 1;
        let node_seconds = self.problem.pass_seconds() * f64::from(cluster.nodes);
        cluster.seconds_per_unit = node_seconds / self.problem.units() as f64;
        let line = self.bytes_per_second(self.exchanges(LINE_MEGABITS));
        (cluster.network.bandwidth_out, cluster.network.bandwidth_in) = (line, line);
        let budget = |(exchanges, priority)| {
            let bytes_per_second = (self.bytes_per_second(exchanges) as u64).max(BYTES_PER_SECOND_MIN);
            Budget { bytes_per_second, priority }
        };
        cluster.budget = mode.managed.map(budget);
        cluster
    }

    fn run(&self, mode: Mode, passes: u32) -> Result<Course, ReproduceError> {
        let consistency = Consistency::Essp { staleness: STALENESS * mode.clocks };
        self.problem.train(&self.cluster(mode), mode.clocks, consistency, passes)
    }

    /// A budget of the paper's, in exchanges and in what it is here.
    fn describe(&self, megabits: f64) -> String {
        let exchanges = self.exchanges(megabits);
        let bits = self.bytes_per_second(exchanges) * 8.0 / 1e6;
        format!("{megabits} Mbit/s of the paper are {exchanges:.1} exchanges a pass, here {bits:.1} Mbit/s")
    }
}

/// Passes that an exchange is measured in.
const MEASURED_PASSES: u32 = 6;

/// "12.5 BS, 6.1 MC-200-R", or that it was not reached.
fn list(counts: &[(&str, Option<f64>)], unit: &str) -> String {
    let one = |(name, count): &(&str, Option<f64>)| match count {
        Some(count) => format!("{name} {count:.1}{unit}"),
        None => format!("{name} never"),
    };
    counts.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The count as a multiple of another; endless where it was never reached.
fn times(count: Option<f64>, other: Option<f64>) -> f64 {
    match (count, other) {
        (Some(count), Some(other)) => count / other,
        (None, _) => f64::INFINITY,
        (_, None) => 0.0,
    }
}

fn panel(title: &str, x: &str, y: &str, series: Vec<Series>) -> Panel {
    Panel { title: title.to_owned(), x: x.to_owned(), y: y.to_owned(), series, lines: true }
}
