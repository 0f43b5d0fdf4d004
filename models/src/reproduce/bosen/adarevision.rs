//! Step sizes: the paper's figure 3, and what it says of 8 nodes.

use super::super::{Findings, ReproduceError, Scale, Series};
use super::{BS, Bench, Course, Factorisation, Mode, Problem, list, panel, times};
use crate::mf::StepSize;
use crate::mf::train::TrainError;

/// Initial steps of AdaRevision: the paper's two, and one between them.
const RATES: [f32; 3] = [0.08, 0.2, 0.4];
/// Initial steps of multiplicative decay, from which the best is taken, each a half of the one before.
const DECAY_RATES: [f32; 9] = [0.256, 0.128, 0.064, 0.032, 0.016, 0.008, 0.004, 0.002, 0.001];
/// What a step is multiplied by after a pass.
const DECAY: f32 = 0.98;
/// On one node the workers of the paper see what others write at once.
const CLOCKS_ON_ONE_NODE: u32 = 32;

/// How a step size fared on a cluster: empty where it diverged.
fn course(bench: &mut Bench<Factorisation>, step: StepSize, mode: Mode, passes: u32) -> Result<Course, ReproduceError> {
    bench.problem.step = step;
    match bench.run(mode, passes) {
        // A loss that is no longer a number is the finding itself.
        Err(ReproduceError::Train(TrainError::Diverged { .. })) => {
            Ok(Course { points: Vec::new(), bytes_per_pass: 0.0, seconds_per_pass: 0.0 })
        }
        course => course,
    }
}

/// How many passes to the target each initial step takes on one cluster.
struct Comparison {
    nodes: u32,
    passes: u32,
    adaptive: Vec<(f32, Option<f64>)>,
    decaying: Vec<(f32, Option<f64>)>,
    series: Vec<Series>,
}

impl Comparison {
    fn new(bench: &mut Bench<Factorisation>, nodes: u32, clocks: u32, passes: u32) -> Result<Self, ReproduceError> {
        bench.problem.nodes = nodes;
        let (mode, target) = (Mode { clocks, ..BS }, bench.problem.target());
        let (mut adaptive, mut decaying, mut series, mut curves) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for rate in RATES {
            let course = course(bench, StepSize::AdaRevision { rate }, mode, passes)?;
            adaptive.push((rate, course.reaches(target).map(|point| point.passes)));
            series.push(course.series(&format!("AdaRevision {rate}"), |point| point.passes, |loss| loss));
        }
        for rate in DECAY_RATES {
            let course = course(bench, StepSize::Decay { rate, factor: DECAY }, mode, passes)?;
            decaying.push((rate, course.reaches(target).map(|point| point.passes)));
            curves.push(course.series(&format!("decay {rate}"), |point| point.passes, |loss| loss));
        }
        let mut comparison = Self { nodes, passes, adaptive, decaying, series };
        let best = comparison.best();
        let near = curves.into_iter().skip(best.saturating_sub(1)).take(if best == 0 { 2 } else { 3 });
        comparison.series.extend(near.filter(|curve| !curve.points.is_empty()));
        Ok(comparison)
    }

    /// The place of multiplicative decay's best initial step.
    fn best(&self) -> usize {
        let passes = |place: &usize| self.decaying[*place].1.unwrap_or(f64::INFINITY);
        (0..self.decaying.len()).min_by(|one, other| passes(one).total_cmp(&passes(other))).unwrap_or(0)
    }

    /// The most passes of AdaRevision as a multiple of its fewest.
    fn spread(&self) -> f64 {
        let most = self.adaptive.iter().map(|(_, passes)| passes.unwrap_or(f64::INFINITY)).fold(0.0, f64::max);
        let fewest = self.adaptive.iter().filter_map(|(_, passes)| *passes).fold(f64::INFINITY, f64::min);
        most / fewest
    }

    /// The passes of decay with its best step, and where it never reaches the target, all that there were.
    fn best_passes(&self) -> f64 {
        self.decaying[self.best()].1.unwrap_or(f64::from(self.passes))
    }

    /// AdaRevision's passes with its middle step, as a multiple of those of decay with its best.
    fn against_best(&self) -> f64 {
        times(self.adaptive[RATES.len() / 2].1, Some(self.best_passes()))
    }

    fn sentence(&self) -> String {
        let list = |counts: &[(f32, Option<f64>)]| {
            let names: Vec<String> = counts.iter().map(|(rate, _)| format!("{rate}:")).collect();
            let counts: Vec<_> = names.iter().map(String::as_str).zip(counts.iter().map(|count| count.1)).collect();
            list(&counts, "")
        };
        format!(
            "on {} nodes within {} passes AdaRevision {} and decay {}, so AdaRevision's passes differ by a factor of \
             {:.2} and at {} are {:.0} % of those of the best decay{}",
            self.nodes,
            self.passes,
            list(&self.adaptive),
            list(&self.decaying),
            self.spread(),
            RATES[RATES.len() / 2],
            self.against_best() * 100.0,
            if self.decaying[self.best()].1.is_none() { " or less" } else { "" }
        )
    }
}

pub(in crate::reproduce) fn adarevision(scale: &Scale) -> Result<Findings, ReproduceError> {
    let passes = (scale.passes / 4).max(3);
    let mut bench = Bench::new(Factorisation::new(scale)?)?;
    bench.problem.rounds = 1;
    let (target, many) = (bench.problem.target(), bench.problem.nodes());
    let one = Comparison::new(&mut bench, 1, CLOCKS_ON_ONE_NODE, passes)?;
    let many = Comparison::new(&mut bench, many, 1, passes)?;
    let found = format!("Passes to a loss of {target:.3} by initial step: {}; {}.", one.sentence(), many.sentence());
    let steady = one.spread() < 2.0 && many.spread() < 2.0;
    let holds = steady && one.against_best() <= 0.6 && many.against_best() <= 0.5;
    let panels = [one, many].into_iter().map(|comparison| {
        let title = format!("matrix factorisation, {} nodes", comparison.nodes);
        panel(&title, "pass", "squared loss", comparison.series)
    });
    Ok(Findings { found, holds, panels: panels.collect() })
}
