//! Time to one held-out loss by how many others a node sends to: the paper's figure 9.
//!
//! A replica is the sum of what its senders' documents say, and nothing is passed on. If nodes kept their documents for good
//! and pairs counted once, as the paper has it, a node would learn its own documents in time, but of those of nodes that do
//! not send to it a replica would know only what those who do have in common with them. So pairs count `P / (Q + 1)` times
//! and documents move on from node to node (`mlr/factors.rs`). The loss is the mean over all replicas, each judged by a part of
//! the held-out documents.

use super::super::{Findings, ReproduceError, Scale};
use super::{Bench, EPOCHS, Exchange, ROUNDING, Run, panel};
use crate::mlr::factors::Config;

/// To how many others nodes send, up to all on 12 nodes.
const FANOUTS: [u32; 6] = [1, 2, 4, 6, 8, 11];
/// The fan-out that the paper finds enough, and by how much it may take longer.
const ENOUGH: u32 = 4;
const LONGER_MAX: f64 = 1.15;
/// How many times as many passes others may need.
const PATIENCE: u32 = 3;

pub(in crate::reproduce) fn partial(scale: &Scale) -> Result<Findings, ReproduceError> {
    let bench = Bench::new(scale, (Bench::classes_max(scale) / 2).max(2))?;
    let full = bench.run(Exchange::Factors, &bench.config())?;
    let target = full.loss();
    let (mut times, mut list, mut enough) = (Vec::new(), Vec::new(), f64::INFINITY);
    let (mut losses, mut by_pass) = (Vec::new(), Vec::new());
    for fanout in FANOUTS.into_iter().filter(|fanout| *fanout < bench.nodes) {
        let config = Config { fanout: Some(fanout), epochs: PATIENCE * EPOCHS, ..bench.config() };
        let partial;
        let run = if fanout == bench.nodes - 1 {
            &full
        } else {
            partial = bench.run(Exchange::Factors, &config)?;
            &partial
        };
        let course = run.course();
        let passes: Vec<(f64, f64)> = (0..).map(f64::from).zip(course.iter().map(|point| point.1)).collect();
        let reached = (run.reaches(target), Run::reaches_on(&passes, target));
        losses.push((format!("Q = {fanout}"), course));
        by_pass.push((format!("Q = {fanout}"), passes));
        let (Some(seconds), Some(passes)) = reached else {
            list.push(format!("never with Q = {fanout}"));
            continue;
        };
        let share = seconds / full.seconds();
        if fanout == ENOUGH {
            enough = share;
        }
        times.push((f64::from(fanout), seconds));
        list.push(format!("{share:.2} with Q = {fanout} ({passes:.1} passes)"));
    }
    // And with rounded errors, where sfb-scaling has them.
    let wide = Bench::wide(scale)?;
    let rounding = Config { rounding: Some(ROUNDING), ..wide.config() };
    let all = wide.run(Exchange::Factors, &rounding)?;
    let others = ENOUGH.min(wide.nodes - 1);
    let few = Config { fanout: Some(others).filter(|others| *others > 0), epochs: PATIENCE * EPOCHS, ..rounding };
    let rounded = wide.run(Exchange::Factors, &few)?.reaches(all.loss()).map_or(f64::INFINITY, |at| at / all.seconds());
    let found = format!(
        "The time to the held-out loss of full broadcast after {EPOCHS} passes, {target:.2}, on average over all replicas, as a \
         part of its time: {}. One constant step size; a pair counts P/(Q + 1) times, and in every pass a node has the \
         documents that another had. {}. With errors below {ROUNDING} rounded, as in sfb-scaling, it is {rounded:.2} with \
         Q = {others}: {}.",
        list.join(", "),
        bench.chosen(),
        wide.chosen()
    );
    let panels = vec![
        panel("time to one loss", "Q", "virtual seconds", vec![("factors".to_owned(), times)]),
        panel("held out, by time", "virtual seconds", "held-out loss", losses),
        panel("held out, by pass", "passes", "held-out loss", by_pass),
    ];
    Ok(Findings { found, holds: enough.max(rounded) <= LONGER_MAX, panels })
}
