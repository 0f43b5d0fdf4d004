//! `hemiola reproduce`: the papers' figures again, each as JSON and SVG with the paper's claim beside what was found.

use crate::failure::usage;
use crate::plot::{self, Curve, Panel};
use crate::progress::say;
use crate::{numbers, outputs};
use anyhow::Result;
use clap::Args;
use hemiola_models::reproduce::{ALL, Finding, Reproduction, Scale, Series};
use std::io::{Write, stdout};
use std::path::PathBuf;

/// Make figures of the papers again, on simulated nodes.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Which figures [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// List the figures
    #[arg(long)]
    list: bool,
    /// The directory for NAME.json and NAME.svg
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    out: PathBuf,
    /// Simulated nodes, with two workers each
    #[arg(long, value_name = "N", value_parser = numbers::machines, default_value = "64", allow_negative_numbers = true)]
    nodes: u32,
    /// Ratings to train on
    #[arg(long, value_name = "N", value_parser = numbers::between::<u64, 1000, 1_000_000_000>, default_value = "1000000",
        allow_negative_numbers = true)]
    ratings: u64,
    /// Documents to find topics in
    #[arg(long, value_name = "N", value_parser = numbers::between::<u32, 20, 1_000_000>, default_value = "600",
        allow_negative_numbers = true)]
    documents: u32,
    /// Topics to find
    #[arg(long, value_name = "K", value_parser = numbers::between::<u32, 2, 10_000>, default_value = "50",
        allow_negative_numbers = true)]
    topics: u32,
    /// Passes over the documents, where passes to a target are counted, and three times as many in bosen-bandwidth; over
    /// ratings it is half of them, and of Splash's toy example and rate it is how many draws there are
    #[arg(long, value_name = "N", value_parser = numbers::between::<u32, 1, 1_000_000>, default_value = "120",
        allow_negative_numbers = true)]
    passes: u32,
    /// Fixes everything that is drawn at random
    #[arg(long, value_parser = numbers::seed, default_value = "1", allow_negative_numbers = true)]
    seed: u64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut out = stdout().lock();
    if arguments.list {
        for figure in &ALL {
            writeln!(out, "{:18} {}", figure.name, figure.figure)?;
        }
        return Ok(());
    }
    let figures = chosen(&arguments.names)?;
    for figure in &figures {
        for ending in ["json", "svg"] {
            outputs::check_writable(&arguments.out.join(format!("{}.{ending}", figure.name)))?;
        }
    }
    let Arguments { nodes, ratings, documents, topics, passes, seed, .. } = *arguments;
    let scale = Scale { nodes, ratings, documents, topics, passes, seed, ..Scale::default() };
    for figure in figures {
        say(&format!("{}: simulating ...", figure.name));
        let finding = figure.run(&scale)?;
        write(&finding, &arguments.out)?;
        let verdict = if finding.holds { "the claim holds" } else { "the claim does not hold here" };
        writeln!(
            out,
            "{} ({})\n  paper   {}\n  found   {}\n  verdict {verdict}",
            finding.name, finding.figure, finding.claim, finding.found
        )?;
    }
    Ok(())
}

fn chosen(names: &[String]) -> Result<Vec<&'static Reproduction>> {
    if names.is_empty() {
        return Ok(ALL.iter().collect());
    }
    let find = |name: &String| {
        let known = ALL.iter().map(|figure| figure.name).collect::<Vec<_>>().join(", ");
        ALL.iter()
            .find(|figure| figure.name == name)
            .ok_or_else(|| usage(format!("there is no figure '{name}'; expected one of {known}")))
    };
    names.iter().map(find).collect()
}

fn write(finding: &Finding, directory: &std::path::Path) -> Result<()> {
    let json = serde_json::to_string_pretty(finding)?;
    outputs::write_whole(&directory.join(format!("{}.json", finding.name)), |file| writeln!(file, "{json}"))?;
    let panels: Vec<Panel> = finding.panels.iter().map(panel).collect();
    plot::write(&directory.join(format!("{}.svg", finding.name)), finding.figure, &panels)
}

fn panel(panel: &hemiola_models::reproduce::Panel) -> Panel {
    let curve = |series: &Series| Curve { name: series.name.clone(), points: series.points.clone() };
    let curves = panel.series.iter().map(curve).collect();
    let (title, x, y) = (panel.title.clone(), panel.x.clone(), panel.y.clone());
    if panel.lines { Panel::Curves { title, x, y, curves } } else { Panel::Points { title, x, y, curves } }
}
