//! What the figures of Splash's applications have in common: the cluster, and when a loss is reached.
//!
//! The paper's data are not to be had here, nor would they fit, so every element stands for as many of the paper's as make
//! up its number: a unit of work takes as many times what it takes one thread. The network is slower by as much as the
//! model is smaller, so that a synchronisation takes as long as that of the paper's model on its network. A node has one
//! worker, of which the paper has 64 on 8 nodes. Baselines that are no jobs of this system take the time that their
//! work takes, spread evenly, and what they must send: an ideal cluster.

use super::super::{Panel, Series};
use hemiola::{Deployment, sim};

/// Courses of training: seconds and losses, the less the better.
pub(super) type Course = Vec<(f64, f64)>;

/// How large a problem is, and how large it is in the paper.
#[derive(Clone, Copy)]
pub(super) struct Size {
    /// Units of work in a pass.
    pub(super) units: f64,
    /// Units of work in a pass over the paper's data.
    pub(super) paper_units: f64,
    /// Seconds of one thread for one of these.
    pub(super) unit_seconds: f64,
    /// Numbers in the model.
    pub(super) numbers: f64,
    /// Numbers in the paper's model.
    pub(super) paper_numbers: f64,
}

impl Size {
    /// Seconds of one thread for a unit of work.
    pub(super) fn seconds_per_unit(&self) -> f64 {
        self.unit_seconds * self.paper_units / self.units
    }

    /// So many nodes with a worker each.
    pub(super) fn cluster(&self, nodes: u32, seed: u64) -> sim::Config {
        let mut cluster = sim::Config::new(nodes);
        cluster.seed = seed;
        cluster.workers_per_node = 1;
        cluster.seconds_per_unit = self.seconds_per_unit();
        let share = self.numbers / self.paper_numbers;
        cluster.network.bandwidth_out *= share;
        cluster.network.bandwidth_in *= share;
        cluster
    }

    /// The same as a deployment.
    pub(super) fn deployment(&self, nodes: u32, seed: u64) -> Deployment {
        Deployment::Sim(self.cluster(nodes, seed))
    }

    /// Seconds of an iteration of a batch method: passes over the data by so many nodes, and `times` the model out and
    /// back.
    pub(super) fn batch_seconds(&self, nodes: u32, passes: f64, times: f64) -> f64 {
        let network = sim::Config::new(nodes).network;
        let sending = 4.0 * self.paper_numbers * times / network.bandwidth_out + network.latency;
        passes * self.units * self.seconds_per_unit() / f64::from(nodes) + 2.0 * sending
    }
}

/// When a course first has a loss of at most `target`.
pub(super) fn reached(course: &[(f64, f64)], target: f64) -> Option<f64> {
    course.iter().find(|(_, loss)| *loss <= target).map(|(seconds, _)| *seconds)
}

/// How many times sooner the first of two is; nothing where it never is, endless where only the other never is.
pub(super) fn sooner(this: Option<f64>, other: Option<f64>) -> f64 {
    match (this, other) {
        (Some(this), Some(other)) => other / this,
        (Some(_), None) => f64::INFINITY,
        (None, _) => 0.0,
    }
}

/// "after 12.3 s", or that it was not reached.
pub(super) fn told(seconds: Option<f64>) -> String {
    seconds.map_or("never".to_owned(), |seconds| format!("after {seconds:.1} s"))
}

/// How many times sooner, for people.
pub(super) fn times(ratio: f64) -> String {
    if ratio.is_finite() { format!("{ratio:.1} times as soon") } else { "and the other never".to_owned() }
}

/// The least loss of a course.
pub(super) fn least(course: &[(f64, f64)]) -> f64 {
    course.iter().map(|(_, loss)| *loss).fold(f64::INFINITY, f64::min)
}

pub(super) fn panel(title: &str, x: &str, y: &str, series: Vec<(&str, Course)>) -> Panel {
    let series = series.into_iter().map(|(name, points)| Series { name: name.to_owned(), points }).collect();
    Panel { title: title.to_owned(), x: x.to_owned(), y: y.to_owned(), series, lines: true }
}
