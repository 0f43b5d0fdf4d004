//! How much sooner more nodes are there: the paper's figure 7.

use super::super::{Findings, ReproduceError, Scale};
use super::{Bench, EPOCHS, Exchange, panel};
use crate::mlr::factors::Config;

/// Numbers of nodes up to the paper's largest cluster.
const NODES: [u32; 6] = [1, 4, 8, 12, 20, 28];
/// The speed-up on the largest that is enough; the paper has 17.4.
const ENOUGH: f64 = 15.0;

pub(in crate::reproduce) fn scaling(scale: &Scale) -> Result<Findings, ReproduceError> {
    let mut bench = Bench::new(scale, (Bench::classes_max(scale) / 2).max(2))?;
    let (mut curves, mut list, mut best) = (Vec::new(), Vec::new(), 0.0f64);
    for (cores, name) in [(64.0, "64 cores"), (1.0, "1 core")] {
        bench.cores = cores;
        let (mut points, mut alone) = (Vec::new(), None);
        for nodes in NODES.into_iter().filter(|nodes| *nodes <= scale.nodes) {
            bench.nodes = nodes;
            let passes = if nodes == 1 { EPOCHS } else { 2 * EPOCHS };
            let run = bench.run(Exchange::Factors, &Config { epochs: passes, ..bench.config() })?;
            let (target, seconds) = *alone.get_or_insert((run.loss(), run.seconds()));
            let reached = if nodes == 1 { Some(seconds) } else { run.reaches(target) };
            points.extend(reached.map(|reached| (f64::from(nodes), seconds / reached)));
        }
        let (most, speed_up) = points.last().copied().unwrap_or((f64::NAN, f64::NAN));
        list.push(format!("{speed_up:.1} times as soon on {most} nodes of {name}"));
        best = best.max(if most == f64::from(NODES[5]) { speed_up } else { 0.0 });
        curves.push((name.to_owned(), points));
    }
    let found = format!(
        "One objective is reached {}, compared with one node. Every node subtracts the pairs of all, which takes about \
         as long as half of what one node does alone, so P nodes cannot be more than about twice as fast as one for as long \
         as computing takes longest, and on many cores the network takes longer than that. The paper's speed-up needs \
         factors that take far longer to compute than to apply. {} documents of {} classes.",
        list.join(" and "),
        bench.train.len(),
        bench.classes
    );
    let panels = vec![panel("speed-up", "nodes", "times one node", curves)];
    Ok(Findings { found, holds: best >= ENOUGH, panels })
}
