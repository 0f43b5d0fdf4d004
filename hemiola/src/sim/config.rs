//! What a simulated cluster is made of, and what goes wrong in it.

use super::{Saving, SimError};
use hemiola_core::coordinator::Process;
use hemiola_core::sabotage::Sabotage;
use hemiola_core::{Budget, Filters};
use std::time::Duration;

/// A simulated cluster. Everything that is random in it follows from the seed.
#[derive(Debug, Clone)]
pub struct Config {
    /// One seed, one outcome, to the bit.
    pub seed: u64,
    /// How many nodes have workers.
    pub nodes: u32,
    /// How many workers each of them has; they share one client.
    pub workers_per_node: u32,
    /// How many shards there are, and where.
    pub servers: Servers,
    /// How long one unit of a worker's work takes on a node without a straggler's factor.
    pub seconds_per_unit: f64,
    /// How long a worker may wait, in virtual time, before the job is given up.
    pub timeout: Duration,
    /// What connects the nodes.
    pub network: Network,
    /// What every node may send, if that is less than the network could carry.
    pub budget: Option<Budget>,
    /// The filters of tables that have none of their own.
    pub filters: Filters,
    /// What goes wrong.
    pub faults: Faults,
    /// A fault planted in the protocol itself, for the tests that prove that such are caught.
    pub sabotage: Sabotage,
    /// Checkpoints in memory, for [`super::Trace::checkpoints`].
    pub saving: Option<Saving>,
    /// Whether to keep every event of the protocol for [`super::Trace::events`].
    pub record_events: bool,
}

/// How many shards there are, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Servers {
    /// Shard `i` is on node `i` and shares its bandwidth; what it exchanges with that node's client costs none.
    Beside(u32),
    /// Every shard is on a node of its own.
    Apart(u32),
}

/// What connects the nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Network {
    /// What a node can send, in bytes per second.
    pub bandwidth_out: f64,
    /// What a node can receive, in bytes per second.
    pub bandwidth_in: f64,
    /// How many seconds a byte is under way.
    pub latency: f64,
    /// Up to how many seconds more it is under way, drawn evenly per message. Messages of one connection stay in order.
    pub jitter: f64,
    /// What a shard needs to handle a message, in seconds per byte.
    pub shard_seconds_per_byte: f64,
}

/// What goes wrong in a cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Faults {
    /// Nodes that are slower than the others all the time.
    pub stragglers: Vec<Straggler>,
    /// Workers that stand still now and then.
    pub pauses: Hazard,
    /// Messages that are held up on the way, and all later ones of their connection with them.
    pub delays: Delays,
    /// Spans of time in which the network is slower.
    pub slowdowns: Vec<Slowdown>,
    /// Connections that break; what is under way on them is lost.
    pub lost_connections: Hazard,
    /// Processes that die.
    pub crashes: Vec<Crash>,
}

/// A node that is slower than the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Straggler {
    /// Which.
    pub node: u32,
    /// How many times as long its work takes.
    pub factor: f64,
}

/// A span of time in which the network is slower than it should be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slowdown {
    /// When it begins, in seconds.
    pub from: f64,
    /// When it ends, in seconds.
    pub until: f64,
    /// How many times as long a byte takes.
    pub factor: f64,
}

/// Something that happens at random moments and lasts a random time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Hazard {
    /// How often it happens on average; zero is never.
    pub per_second: f64,
    /// How long it lasts on average.
    pub seconds: f64,
}

/// Messages that are held up on the way.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Delays {
    /// Which share of all messages.
    pub share: f64,
    /// For how long on average.
    pub seconds: f64,
}

/// A process that dies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crash {
    /// Which.
    pub process: Process,
    /// When.
    pub seconds: f64,
}

impl Default for Network {
    /// Gigabit Ethernet.
    fn default() -> Self {
        Self { bandwidth_out: 125e6, bandwidth_in: 125e6, latency: 100e-6, jitter: 0.0, shard_seconds_per_byte: 0.0 }
    }
}

impl Config {
    /// `nodes` faultless nodes with one worker and one shard each, on Gigabit Ethernet, and a microsecond per unit of
    /// work.
    #[must_use]
    pub fn new(nodes: u32) -> Self {
        Self {
            seed: 0,
            nodes,
            workers_per_node: 1,
            servers: Servers::Beside(nodes),
            seconds_per_unit: 1e-6,
            timeout: crate::TIMEOUT,
            network: Network::default(),
            budget: None,
            filters: Filters::default(),
            faults: Faults::default(),
            sabotage: Sabotage::None,
            saving: None,
            record_events: false,
        }
    }

    /// How many shards there are.
    #[must_use]
    pub fn shards(&self) -> u32 {
        match self.servers {
            Servers::Beside(shards) | Servers::Apart(shards) => shards,
        }
    }

    /// Checks that there can be such a cluster.
    ///
    /// # Errors
    /// The first thing found wrong.
    pub fn validate(&self) -> Result<(), SimError> {
        let (network, faults) = (&self.network, &self.faults);
        for (option, count) in
            [("nodes", self.nodes), ("workers_per_node", self.workers_per_node), ("servers", self.shards())]
        {
            if count == 0 {
                return Err(SimError::NoneOf { option });
            }
        }
        match self.servers {
            Servers::Beside(servers) if servers > self.nodes => {
                return Err(SimError::NoNodeForServer { servers, nodes: self.nodes });
            }
            _ => {}
        }
        for (option, value) in [("bandwidth_out", network.bandwidth_out), ("bandwidth_in", network.bandwidth_in)] {
            if value.is_nan() || value <= 0.0 {
                return Err(SimError::NotPositive { option, value });
            }
        }
        let seconds = [
            ("seconds_per_unit", self.seconds_per_unit),
            ("latency", network.latency),
            ("jitter", network.jitter),
            ("shard_seconds_per_byte", network.shard_seconds_per_byte),
            ("pauses.per_second", faults.pauses.per_second),
            ("pauses.seconds", faults.pauses.seconds),
            ("delays.seconds", faults.delays.seconds),
            ("lost_connections.per_second", faults.lost_connections.per_second),
            ("lost_connections.seconds", faults.lost_connections.seconds),
        ];
        if let Some(slow) = faults.slowdowns.iter().find(|slow| slow.factor.is_nan() || slow.factor <= 0.0) {
            return Err(SimError::NotPositive { option: "slowdowns.factor", value: slow.factor });
        }
        let crashes = faults.crashes.iter().map(|crash| ("crashes.seconds", crash.seconds));
        let factors = faults.stragglers.iter().map(|straggler| ("stragglers.factor", straggler.factor));
        for (option, value) in seconds.into_iter().chain(crashes).chain(factors) {
            if !(value.is_finite() && value >= 0.0) {
                return Err(SimError::Negative { option, value });
            }
        }
        if !(0.0..=1.0).contains(&faults.delays.share) {
            return Err(SimError::NotAShare { option: "delays.share", value: faults.delays.share });
        }
        if let Some(straggler) = faults.stragglers.iter().find(|straggler| straggler.node >= self.nodes) {
            return Err(SimError::NoSuchNode { node: straggler.node, nodes: self.nodes });
        }
        let exists = |process: Process| match process {
            Process::Server(shard) => shard.0 < self.shards(),
            Process::Worker(client) => client.0 < self.nodes,
        };
        match faults.crashes.iter().find(|crash| !exists(crash.process)) {
            Some(crash) => Err(SimError::NoSuchProcess { process: crash.process }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hemiola_core::ShardId;

    #[test]
    fn a_cluster_that_cannot_be_is_refused_with_its_reason() {
        type Change = fn(&mut Config);
        Config::new(4).validate().expect("the default can be");
        let cases: [(Change, &str); 7] = [
            (|c| c.nodes = 0, "a simulated cluster needs at least one of nodes"),
            (
                |c| c.servers = Servers::Beside(5),
                "5 servers cannot lie beside the clients of 4 nodes; use at most 4, or servers apart",
            ),
            (|c| c.network.bandwidth_in = 0.0, "bandwidth_in must be above zero, not 0"),
            (|c| c.network.jitter = -1.0, "jitter must be a number of at least zero, not -1"),
            (|c| c.faults.delays.share = 1.5, "delays.share must be between 0 and 1, not 1.5"),
            (
                |c| c.faults.stragglers.push(Straggler { node: 4, factor: 2.0 }),
                "node 4 cannot be slow: there are 4, counted from zero",
            ),
            (
                |c| c.faults.crashes.push(Crash { process: Process::Server(ShardId(9)), seconds: 1.0 }),
                "server 9 cannot crash: the cluster has no such process",
            ),
        ];
        for (change, sentence) in cases {
            let mut config = Config::new(4);
            change(&mut config);
            assert_eq!(config.validate().expect_err("cannot be").to_string(), sentence);
        }
    }
}
