//! Time to one objective under various delays, and what workers wait: the paper's figures 5 and 4.

use super::super::{Findings, ReproduceError, Scale};
use super::{Bench, DELAYS, panel};
use crate::l1lr::distributed::Trained;

/// Passes of the sequential run, whose objective after [`TARGET_PASS`] of them all runs are to reach.
const PASSES: u32 = 7;
const TARGET_PASS: u32 = 5;

/// Mean seconds that a worker computed and waited. What it communicates it waits for.
fn split(trained: &Trained) -> (f64, f64) {
    let splits = &trained.outcome.splits;
    let mean = |seconds: f64| seconds / splits.len().max(1) as f64;
    let wait = splits.iter().map(|split| split.wait_seconds + split.communication_seconds).sum();
    (mean(splits.iter().map(|split| split.compute_seconds).sum()), mean(wait))
}

/// When an objective was first reached, in seconds and passes, between two passes as if all were on a line.
fn reaches(trained: &Trained, objective: f64) -> Option<(f64, f64)> {
    let at = trained.progress.iter().position(|progress| progress.objective <= objective)?;
    let end = trained.progress[at];
    let Some(start) = at.checked_sub(1).map(|before| trained.progress[before]) else {
        return Some((end.seconds, f64::from(end.pass)));
    };
    let part = (start.objective - objective) / (start.objective - end.objective);
    let between = |from: f64, to: f64| from + part * (to - from);
    Some((between(start.seconds, end.seconds), between(f64::from(start.pass), f64::from(end.pass))))
}

/// How many times as many workers as usual: a hundred, and a thousand.
const LARGER: [u32; 2] = [1, 10];

pub(in crate::reproduce) fn delay(scale: &Scale) -> Result<Findings, ReproduceError> {
    let (mut found, mut holds, mut panels) = (Vec::new(), true, Vec::new());
    for times in LARGER {
        let one = delays(&Bench::larger(scale, times))?;
        holds &= one.holds;
        found.push(one.found);
        panels.extend(one.panels);
    }
    Ok(Findings { found: found.join(" "), holds, panels })
}

/// What every delay does on one cluster.
fn delays(bench: &Bench) -> Result<Findings, ReproduceError> {
    let (mut target, mut times, mut courses) = (0.0, Vec::new(), Vec::new());
    for delay in DELAYS {
        let trained = bench.run(delay, if delay == 0 { TARGET_PASS } else { PASSES })?;
        if delay == 0 {
            target = trained.progress.last().map_or(0.0, |progress| progress.objective);
        }
        let course: Vec<(f64, f64)> = trained.progress.iter().map(|at| (at.seconds, at.objective)).collect();
        times.push((delay, reaches(&trained, target), split(&trained), trained.outcome.seconds));
        courses.push((format!("delay {delay}"), course));
    }
    let sequential = times[0].1.map_or(f64::INFINITY, |(seconds, _)| seconds);
    let gain = |seconds: Option<(f64, f64)>| seconds.map_or(0.0, |(seconds, _)| sequential / seconds);
    let best = times.iter().max_by(|one, other| gain(one.1).total_cmp(&gain(other.1)));
    let (best, gain_most) = best.map_or((0, 0.0), |&(delay, reached, ..)| (delay, gain(reached)));
    let list: Vec<String> = times
        .iter()
        .map(|(delay, reached, ..)| match reached {
            Some((seconds, passes)) => format!("{seconds:.1} s and {passes:.1} passes with delay {delay}"),
            None => format!("never with delay {delay}"),
        })
        .collect();
    let found = format!(
        "{} reach the objective that sequential iterations have after {TARGET_PASS} passes in {}: \
         delay {best} is {gain_most:.2} times as fast.",
        bench.chosen(),
        list.join(", ")
    );
    let reached: Vec<(f64, f64)> =
        times.iter().filter_map(|&(delay, reached, ..)| Some((delay as f64, reached?.0))).collect();
    // Of the whole run, in the proportion of the time to the objective.
    let computing = times
        .iter()
        .filter_map(|&(delay, reached, (compute, _), seconds)| Some((delay as f64, compute * reached?.0 / seconds)));
    let panels = vec![
        panel(
            &format!("time to one objective, {} workers", bench.workers),
            "delay",
            "virtual seconds",
            vec![("all", reached), ("computing", computing.collect())],
        ),
        panel(
            &format!("convergence, {} workers", bench.workers),
            "virtual seconds",
            "objective",
            courses.iter().map(|(name, points)| (name.as_str(), points.clone())).collect(),
        ),
    ];
    Ok(Findings { found, holds: gain_most >= 1.4 && best > 0, panels })
}

pub(in crate::reproduce) fn waiting(scale: &Scale) -> Result<Findings, ReproduceError> {
    let bench = Bench::new(scale);
    let (mut computing, mut waiting, mut list) = (Vec::new(), Vec::new(), Vec::new());
    for delay in DELAYS {
        let (compute, wait) = split(&bench.run(delay, PASSES / 2)?);
        computing.push((delay as f64, compute));
        waiting.push((delay as f64, wait));
        list.push(format!("{:.0} % with delay {delay}", 100.0 * wait / (compute + wait)));
    }
    let (first, least) = (waiting[0].1, waiting.iter().map(|(_, wait)| *wait).fold(f64::INFINITY, f64::min));
    let found = format!(
        "In {} passes {} wait {}; the seconds of waiting fall to {:.0} % of the sequential ones.",
        PASSES / 2,
        bench.chosen(),
        list.join(", "),
        100.0 * least / first
    );
    let series = vec![("computing", computing), ("waiting", waiting)];
    let panels = vec![panel("seconds per worker", "delay", "virtual seconds", series)];
    Ok(Findings { found, holds: least < 0.5 * first, panels })
}
