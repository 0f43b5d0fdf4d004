//! How often rows are sent, by what goes first: the paper's figure 5a.

use super::super::{Findings, ReproduceError, Scale, Series};
use super::{Bench, STALENESS, Topics, panel};
use hemiola::{Consistency, Priority};

/// The orders, and whether they look at magnitudes.
const ORDERS: [(&str, Priority, bool); 4] = [
    ("random", Priority::Random, false),
    ("round robin", Priority::RoundRobin, false),
    ("absolute magnitude", Priority::AbsoluteMagnitude, true),
    ("relative magnitude", Priority::RelativeMagnitude, true),
];

pub(in crate::reproduce) fn frequency(scale: &Scale) -> Result<Findings, ReproduceError> {
    let bench = Bench::new(Topics::new(scale)?)?;
    let consistency = Consistency::Essp { staleness: STALENESS };
    let passes = (scale.passes / 4).max(1);
    let (mut series, mut skews) = (Vec::new(), Vec::new());
    for (name, priority, by_magnitude) in ORDERS {
        let cluster = bench.cluster(bench.mc(320.0, priority));
        let mut times = bench.problem.rows_sent(&cluster, consistency, passes)?;
        times.sort_unstable();
        let rows = times.len().max(1) as f64;
        let (least, most) = (at(&times, 0.1), at(&times, 0.9));
        skews.push((name, by_magnitude, most / least.max(1.0)));
        let per_pass = |count: u64| count as f64 / f64::from(passes);
        let points = times.iter().zip(1..).map(|(&count, rank)| (per_pass(count), f64::from(rank) / rows)).collect();
        series.push(Series { name: name.to_owned(), points });
    }
    let worst = |chosen: bool| skews.iter().filter(move |(_, by_magnitude, _)| *by_magnitude == chosen);
    let even = worst(false).map(|(.., skew)| *skew).fold(1.0, f64::max);
    let skewed = worst(true).map(|(.., skew)| *skew).fold(f64::INFINITY, f64::min);
    let list = skews.iter().map(|(name, _, skew)| format!("{skew:.2} {name}")).collect::<Vec<_>>().join(", ");
    let holds = skewed >= 1.5 * even;
    let why = if holds {
        ""
    } else {
        " A row that is left out becomes the more important, and here all words change about as much for their size."
    };
    let found = format!(
        "Nine tenths of the rows are sent at most so many times as often as the tenth that is sent least: {list}.{why}"
    );
    let panels = vec![panel("topic model, MC-320", "times sent in a pass", "share of rows", series)];
    Ok(Findings { found, holds, panels })
}

/// The count that this part of the rows does not exceed.
fn at(sorted: &[u64], part: f64) -> f64 {
    sorted.get((sorted.len() as f64 * part) as usize).map_or(0.0, |&count| count as f64)
}
