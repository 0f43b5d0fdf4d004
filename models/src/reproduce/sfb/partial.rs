//! Time to one objective by how many others a node sends to: the paper's figure 9.

use super::super::{Findings, ReproduceError, Scale};
use super::{Bench, EPOCHS, Exchange, panel};
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
    let (mut times, mut courses, mut list, mut enough) = (Vec::new(), Vec::new(), Vec::new(), f64::INFINITY);
    for fanout in FANOUTS.into_iter().filter(|fanout| *fanout < bench.nodes) {
        let config = Config { fanout: Some(fanout), epochs: PATIENCE * EPOCHS, ..bench.config() };
        let partial;
        let run = if fanout == bench.nodes - 1 {
            &full
        } else {
            partial = bench.run(Exchange::Factors, &config)?;
            &partial
        };
        let reached = if fanout == bench.nodes - 1 { Some(full.seconds()) } else { run.reaches(target) };
        courses.push((format!("Q = {fanout}"), run.course()));
        let Some(seconds) = reached else {
            list.push(format!("never with Q = {fanout}"));
            continue;
        };
        let share = seconds / full.seconds();
        if fanout == ENOUGH {
            enough = share;
        }
        times.push((f64::from(fanout), seconds));
        list.push(format!("{share:.2} with Q = {fanout}"));
    }
    let found = format!(
        "The time to the held-out loss of full broadcast after {EPOCHS} passes, as a part of its time and within {PATIENCE} times its \
         passes: {}. A node subtracts the pairs of those who send to it and its own, so with Q others it never meets the \
         documents of the rest; here a class has only {} of them. {}.",
        list.join(", "),
        bench.train.len() / bench.classes as usize,
        bench.chosen()
    );
    let panels = vec![
        panel("time to one objective", "Q", "virtual seconds", vec![("factors".to_owned(), times)]),
        panel("convergence", "virtual seconds", "held-out loss", courses),
    ];
    Ok(Findings { found, holds: enough <= LONGER_MAX, panels })
}
