//! The options that say where a job runs.

use crate::failure::usage;
use crate::{budget, filters, numbers};
use clap::Args;
use hemiola::{Budget, Consistency, Deployment, tcp};
use serde_json::{Value, json};

/// Where a job runs.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Where it runs")]
#[group(id = "deployment_options")]
pub(crate) struct Options {
    #[command(flatten)]
    machines: Machines,
    /// What every process may send, such as 200mbit, with --processes; what is left of it goes to early updates
    #[arg(long, value_name = "RATE", value_parser = numbers::budget, allow_hyphen_values = true)]
    bandwidth: Option<f64>,
    /// Which updates go first before a clock ends, with --bandwidth; with --step-size adarevision it orders only the rows
    /// that servers send [default: relative]
    #[arg(long, value_enum, value_name = "ORDER")]
    priority: Option<budget::First>,
}

/// How many threads and processes there are.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Where it runs")]
pub(crate) struct Machines {
    /// Threads that train, in each process [default: its part of the cores]
    #[arg(long, value_name = "N", value_parser = numbers::team, allow_negative_numbers = true)]
    workers: Option<u32>,
    /// Train in so many processes on this machine, over tcp
    #[arg(long, value_name = "P", value_parser = numbers::team, allow_negative_numbers = true)]
    processes: Option<u32>,
    /// Server processes that hold the model, with --processes [default: 1]
    #[arg(long, value_name = "S", value_parser = numbers::team, requires = "processes", allow_negative_numbers = true)]
    servers: Option<u32>,
    /// What shortens messages, such as key-cache,zstd, with --processes: significant:T holds back changes up to T,
    /// random-skip:P leaves out a part P, with feedback until the next update; then key-cache, then lz4 or zstd; with
    /// updates/ or rows/ before a name for one direction alone; for l1lr also kkt, which it has unless others are given; or
    /// none
    #[arg(long, value_name = "LIST", value_parser = filters::parse, allow_hyphen_values = true)]
    filters: Option<filters::List>,
}

/// A deployment, and what a report says of it.
pub(crate) struct Meaning {
    pub(crate) deployment: Deployment,
    /// Workers in all.
    pub(crate) workers: u32,
    pub(crate) description: Value,
}

impl Options {
    /// Refuses filters that hold updates back where all must arrive, and says why they must.
    ///
    /// # Errors
    /// If there is one.
    pub(crate) fn check_all_arrive(&self, why: &str) -> anyhow::Result<()> {
        filters::check_all_arrive(self.machines.filters.as_ref(), why)
    }

    /// Whether it was said which updates go first.
    pub(crate) fn has_priority(&self) -> bool {
        self.priority.is_some()
    }

    /// What the options say together.
    ///
    /// # Errors
    /// If an option makes no difference there.
    pub(crate) fn meaning(&self, consistency: Consistency) -> anyhow::Result<Meaning> {
        let budget = budget::meaning("--bandwidth", self.bandwidth, self.priority)?;
        if self.machines.processes.is_none() {
            if matches!(consistency, Consistency::Vap { .. }) {
                return Err(usage(
                    "--consistency vap needs --processes: the threads of one process have no updates in transit",
                ));
            }
            if budget.is_some() {
                return Err(usage("--bandwidth needs --processes: the threads of one process send nothing"));
            }
        }
        budget::check_priority(self.priority, consistency)?;
        filters::check_without_kkt(self.machines.filters.as_ref())?;
        self.machines.meaning(budget)
    }
}

impl Options {
    /// What is to go first, if that was said.
    pub(crate) fn priority(&self) -> Option<budget::First> {
        self.priority
    }

    /// Which options were given that have no effect on peers, and why: they are one worker in every process, send nothing
    /// early, and may need no servers.
    pub(crate) fn of_no_effect_on_peers(&self, servers: bool) -> [(&'static str, bool, &'static str); 4] {
        let Machines { workers, processes, servers: some, .. } = &self.machines;
        [
            ("--workers", workers.is_some() && processes.is_some(), "every process is one worker"),
            ("--servers", some.is_some() && !servers, "workers send to one another"),
            ("--bandwidth", self.bandwidth.is_some(), "nothing is sent early"),
            ("--priority", self.priority.is_some(), "nothing is sent early"),
        ]
    }

    /// Where peers are.
    ///
    /// # Errors
    /// If a filter makes no difference there.
    pub(crate) fn peers(&self) -> anyhow::Result<Meaning> {
        filters::check_without_kkt(self.machines.filters.as_ref())?;
        self.check_all_arrive(filters::MINIBATCHES)?;
        let workers = if self.machines.processes.is_some() { Some(1) } else { self.machines.workers };
        Machines { workers, ..self.machines.clone() }.meaning(None)
    }
}

/// How many threads there are, where one process does everything.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Where it runs")]
pub(crate) struct Threads {
    /// Threads that train [default: all cores]
    #[arg(long, value_name = "N", value_parser = numbers::team, allow_negative_numbers = true)]
    workers: Option<u32>,
}

impl Threads {
    /// So many, if anyone says how many.
    pub(crate) fn new(workers: Option<u32>) -> Self {
        Self { workers }
    }

    /// So many, or as many as there are cores.
    pub(crate) fn meaning(&self) -> Meaning {
        let workers = self.workers.unwrap_or_else(cores);
        let description = json!({ "kind": "threads", "workers": workers });
        Meaning { deployment: Deployment::threads(workers), workers, description }
    }
}

/// Cores of this machine.
pub(crate) fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
}

impl Machines {
    /// Whether l1lr is to leave out what will stay zero.
    pub(crate) fn kkt(&self) -> bool {
        filters::kkt(self.filters.as_ref())
    }

    /// Where that is, with a budget for what processes send.
    ///
    /// # Errors
    /// If an option makes no difference there.
    pub(crate) fn meaning(&self, budget: Option<Budget>) -> anyhow::Result<Meaning> {
        let Some(processes) = self.processes else {
            if self.filters.is_some() {
                return Err(usage("--filters needs --processes: nothing travels between the threads of one process"));
            }
            return Ok(Threads { workers: self.workers }.meaning());
        };
        let per_process = self.workers.unwrap_or((cores() / processes).max(1));
        let servers = self.servers.unwrap_or(1);
        let description = json!({
            "kind": "tcp", "processes": processes, "workers_per_process": per_process, "servers": servers,
            "budget": budget, "filters": self.filters.as_ref().map(|list| &list.text),
        });
        let config = tcp::Config {
            processes,
            workers_per_process: per_process,
            servers,
            budget,
            filters: self.filters.as_ref().map(|list| list.filters.clone()).unwrap_or_default(),
            ..tcp::Config::default()
        };
        Ok(Meaning { deployment: Deployment::Tcp(config), workers: processes * per_process, description })
    }
}

/// Whether this process is one that a job started from this program: such a process trains and says nothing.
pub(crate) fn is_child() -> bool {
    tcp::role().is_some()
}
