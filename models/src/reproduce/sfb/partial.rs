//! Time to one objective by how many others a node sends to: the paper's figure 9.
//!
//! A replica is the sum of what its senders' documents say, and nothing is passed on. So a node learns its own documents, on
//! which it meets the objective of full broadcast, sooner even because fewer others pull at its replica. Of documents of
//! nodes that do not send to it a replica knows only what those who do have in common with them, as held-out ones show. The
//! claim is taken to hold only if these are told as well as with full broadcast.

use super::super::{Findings, ReproduceError, Scale};
use super::{Bench, EPOCHS, Exchange, Run, panel};
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
    let target = full.objective();
    let (mut times, mut list, mut enough, mut as_good) = (Vec::new(), Vec::new(), f64::INFINITY, false);
    let (mut objectives, mut losses, mut held_out) = (Vec::new(), Vec::new(), Vec::new());
    for fanout in FANOUTS.into_iter().filter(|fanout| *fanout < bench.nodes) {
        let config = Config { fanout: Some(fanout), epochs: PATIENCE * EPOCHS, ..bench.config() };
        let partial;
        let run = if fanout == bench.nodes - 1 {
            &full
        } else {
            partial = bench.run(Exchange::Factors, &config)?;
            &partial
        };
        objectives.push((format!("Q = {fanout}"), run.objectives()));
        losses.push((format!("Q = {fanout}"), run.course()));
        let least = run.course().iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
        held_out.push(format!("{least:.2} with Q = {fanout}"));
        let Some(seconds) = Run::reaches_on(&run.objectives(), target) else {
            list.push(format!("never with Q = {fanout}"));
            continue;
        };
        let share = seconds / full.seconds();
        if fanout == ENOUGH {
            (enough, as_good) = (share, least <= full.loss());
        }
        times.push((f64::from(fanout), seconds));
        list.push(format!("{share:.2} with Q = {fanout}"));
    }
    let found = format!(
        "The time to the objective of full broadcast after {EPOCHS} passes, which nodes meet on their own documents with one \
         constant step size, as a part of its time and within {PATIENCE} times its passes: {}. Held-out documents tell another \
         story: the least loss is {}, because a node subtracts its own pairs and those of Q others only, and here a \
         class has no more than {} documents on all nodes. {}.",
        list.join(", "),
        held_out.join(", "),
        bench.train.len() / bench.classes as usize,
        bench.chosen()
    );
    let panels = vec![
        panel("time to one objective", "Q", "virtual seconds", vec![("factors".to_owned(), times)]),
        panel("objective", "virtual seconds", "loss on a node's own documents", objectives),
        panel("held out", "virtual seconds", "held-out loss", losses),
    ];
    Ok(Findings { found, holds: enough <= LONGER_MAX && as_good, panels })
}
