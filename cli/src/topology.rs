//! `hemiola topology`: who sends to whom when machines broadcast to only a few others.

use crate::failure::usage;
use crate::plot::{self, Panel};
use crate::{numbers, outputs};
use anyhow::Result;
use clap::Args;
use hemiola::Topology;
use std::io::{Write, stdout};
use std::path::PathBuf;

/// Find the network in which what one machine learns reaches the others soonest.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Machines
    #[arg(long, value_name = "P", value_parser = numbers::machines, default_value = "12", allow_negative_numbers = true)]
    nodes: u32,
    /// How many others each machine sends to
    #[arg(long, value_name = "Q", value_parser = numbers::count, default_value = "4", allow_negative_numbers = true)]
    fanout: u32,
    /// Fixes everything that is drawn at random
    #[arg(long, value_parser = numbers::seed, default_value = "1", allow_negative_numbers = true)]
    seed: u64,
    /// Draw it into a file that ends in .svg or .png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { nodes, fanout, seed, .. } = *arguments;
    if fanout >= nodes {
        return Err(usage(format!(
            "--fanout {fanout}: {nodes} machines have {} others each; expected a number from 1 to {}",
            nodes - 1,
            nodes - 1
        )));
    }
    if let Some(path) = &arguments.plot {
        plot::check_extension(path)?;
        outputs::check_writable(path)?;
    }
    let topology = Topology::new(nodes, fanout, seed);
    let mut out = stdout().lock();
    for (node, receivers) in topology.receivers.iter().enumerate() {
        let receivers: Vec<String> = receivers.iter().map(u32::to_string).collect();
        writeln!(out, "{node}: {}", receivers.join(" "))?;
    }
    let verdict = match topology.optimal {
        true => "no topology is better".to_owned(),
        false => {
            format!("at most {:.2} % above the best, whose sum is at least {}", 100.0 * topology.gap(), topology.bound)
        }
    };
    writeln!(
        out,
        "paths   {:.3} iterations on average, {} at most, {} in sum\nverdict {verdict}",
        topology.mean_path(),
        topology.longest_path(),
        topology.total
    )?;
    if let Some(path) = &arguments.plot {
        let title = format!("{nodes} machines that send to {fanout} others each");
        plot::write(path, &title, &[Panel::Network { receivers: topology.receivers }])?;
    }
    Ok(())
}
