//! The options of models whose factors peers can exchange: on the threads of one process together, or as peers.

use super::job::Job;
use crate::failure::usage;
use crate::plot::Panel;
use crate::report::{self, Report};
use crate::{deploy, filters, numbers};
use anyhow::Result;
use clap::Args;
use hemiola::{Deployment, Outcome, tcp};
use hemiola_models::peers::{Exchange, Peers};
use serde_json::{Value, json};
use std::path::Path;

/// Where a model of factors is learnt.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Where it runs")]
#[group(id = "peer_options")]
pub(super) struct Options {
    /// Threads that compute, for each peer where there are any [default: all cores]
    #[arg(long, value_name = "N", value_parser = numbers::team, allow_negative_numbers = true)]
    workers: Option<u32>,
    /// Learn by so many peers in this process, each on its own part of the data; they send one another factors
    #[arg(long, value_name = "P", value_parser = numbers::team, allow_negative_numbers = true)]
    peers: Option<u32>,
    /// Learn by so many peers, each a process on this machine, over tcp
    #[arg(long, value_name = "P", value_parser = numbers::team, allow_negative_numbers = true)]
    processes: Option<u32>,
    #[command(flatten)]
    exchange: ExchangeOptions,
    /// What shortens messages, with --processes: lz4 or zstd
    #[arg(long, value_name = "LIST", value_parser = filters::parse, allow_hyphen_values = true)]
    filters: Option<filters::List>,
}

/// How peers keep together, wherever they are.
#[derive(Args, Clone, Copy, Debug, Default)]
#[group(id = "exchange_options")]
pub(crate) struct ExchangeOptions {
    /// To how many others a peer sends its factors [default: all]
    #[arg(long, value_name = "Q", value_parser = numbers::count, allow_negative_numbers = true)]
    fanout: Option<u32>,
    /// Iterations that a peer may be ahead of those who send to it [default: 0]
    #[arg(long, value_name = "ITERATIONS", value_parser = numbers::whole, allow_negative_numbers = true)]
    staleness: Option<u32>,
}

impl ExchangeOptions {
    /// What they say of so many peers.
    ///
    /// # Errors
    /// If there are not as many others as a peer is to send to.
    pub(crate) fn meaning(&self, peers: u32) -> Result<Exchange> {
        check_fanout(self.fanout, peers, "peer")?;
        Ok(Exchange { staleness: self.staleness.unwrap_or(0), fanout: self.fanout })
    }
}

/// Where that is, and how peers keep together if there are any.
pub(super) struct Meaning {
    pub(super) place: deploy::Meaning,
    exchange: Option<Exchange>,
    threads: u32,
}

impl Options {
    /// Whether it was said how many threads compute.
    pub(super) fn has_workers(&self) -> bool {
        self.workers.is_some()
    }

    /// What the options say together.
    ///
    /// # Errors
    /// If one has no effect, or contradicts another.
    pub(super) fn meaning(&self) -> Result<Meaning> {
        let Self { workers, exchange, filters, .. } = self;
        filters::check_without_kkt(filters.as_ref())?;
        let peers = match (self.peers, self.processes) {
            (Some(_), Some(_)) => {
                return Err(usage(
                    "--peers are threads of one process, and --processes are peers too; give one of them",
                ));
            }
            (None, None) => {
                let given = [
                    ("--fanout", exchange.fanout.is_some()),
                    ("--staleness", exchange.staleness.is_some()),
                    ("--filters", filters.is_some()),
                ];
                if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
                    return Err(usage(format!("{option} has an effect only with --peers or --processes")));
                }
                let place = deploy::Threads::new(*workers).meaning();
                return Ok(Meaning { threads: place.workers, place, exchange: None });
            }
            (Some(peers), None) | (None, Some(peers)) => peers,
        };
        if filters.is_some() && self.processes.is_none() {
            return Err(usage("--filters needs --processes: nothing travels between the threads of one process"));
        }
        let exchange = exchange.meaning(peers)?;
        let threads = workers.unwrap_or((deploy::cores() / peers).max(1));
        let kind = if self.processes.is_some() { "tcp" } else { "threads" };
        let description = json!({ "kind": kind, "peers": peers, "threads_per_peer": threads, "exchange": exchange,
            "filters": filters.as_ref().map(|list| &list.text) });
        let deployment = if self.processes.is_some() {
            let filters = filters.as_ref().map(|list| list.filters.clone()).unwrap_or_default();
            Deployment::Tcp(tcp::Config { processes: peers, workers_per_process: 1, filters, ..tcp::Config::default() })
        } else {
            Deployment::threads(peers)
        };
        let place = deploy::Meaning { deployment, workers: peers.saturating_mul(threads), description };
        Ok(Meaning { place, exchange: Some(exchange), threads })
    }
}

/// Refuses to send to more others than there are.
///
/// # Errors
/// If there are not as many.
pub(super) fn check_fanout(fanout: Option<u32>, peers: u32, name: &str) -> Result<()> {
    match fanout {
        Some(_) if peers == 1 => Err(usage(format!("--fanout has no effect on one {name}: there are no others"))),
        Some(fanout) if fanout >= peers => Err(usage(format!(
            "--fanout {fanout}: {peers} {name}s cannot send to so many others; expected a number from 1 to {}",
            peers - 1
        ))),
        _ => Ok(()),
    }
}

/// How peers of a job keep together, apart from where they are.
#[derive(Clone, Copy)]
pub(super) struct Together {
    exchange: Exchange,
    threads: u32,
}

impl Meaning {
    /// What is left of it when the job has been made of the place; nothing where there are no peers.
    pub(super) fn together(&self) -> Option<Together> {
        self.exchange.map(|exchange| Together { exchange, threads: self.threads })
    }
}

impl Together {
    pub(super) fn exchange(&self) -> Exchange {
        self.exchange
    }

    /// The peers of a job.
    pub(super) fn of<'a>(&self, job: &'a Job) -> Peers<'a> {
        Peers { deployment: &job.deployment, exchange: self.exchange, threads: self.threads }
    }
}

/// Writes the model, the plot and the end of the report, with what peers did if there were any.
///
/// # Errors
/// If something cannot be written.
pub(super) fn leave(
    job: &Job,
    report: Report,
    outcome: Option<&Outcome>,
    summary: Value,
    (title, panel): (&str, Panel),
    save: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    match outcome {
        Some(outcome) => job.leave(report, outcome, &summary, (title, panel), save),
        None => job.finish(report, summary, (title, &[panel]), save),
    }
}

/// Tells people what peers did, if there were any.
///
/// # Errors
/// If nobody reads it.
pub(super) fn tell(out: &mut impl std::io::Write, outcome: Option<&Outcome>) -> Result<()> {
    Ok(outcome.map_or(Ok(()), |outcome| report::tell(out, outcome))?)
}
