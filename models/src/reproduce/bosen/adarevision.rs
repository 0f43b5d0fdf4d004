//! Step sizes: the paper's figure 3, and what it says of 8 nodes.
//!
//! Both are as the program offers them, which is not only another size of the same steps: with AdaRevision users are solved
//! for, and what it scales are gradients of the items whose chance errors vanish (SAGA). Decay takes plain gradient steps.
//! The paper chose decay's initial step by hand; here its factor is chosen as well.

use super::super::{Findings, ReproduceError, Scale, Series};
use super::{BS, Bench, Course, Factorisation, Mode, Problem, list, panel, times};
use crate::mf::StepSize;
use crate::mf::train::TrainError;
use std::cmp::Ordering;
use std::ops::Range;

/// Initial steps of AdaRevision: the paper's two, and one between them.
const RATES: [f32; 3] = [0.08, 0.2, 0.4];
/// Initial steps of multiplicative decay, from which the best is taken, each a half of the one before.
const DECAY_RATES: [f32; 9] = [0.256, 0.128, 0.064, 0.032, 0.016, 0.008, 0.004, 0.002, 0.001];
/// What a step is multiplied by after a pass; the best is taken here, too.
const DECAYS: [f32; 6] = [0.35, 0.5, 0.7, 0.9, 0.98, 1.0];
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

/// How a step size fares on one cluster, by its initial step.
struct Sweep {
    target: f64,
    courses: Vec<(f32, Course)>,
}

impl Sweep {
    fn new(
        bench: &mut Bench<Factorisation>,
        rates: &[f32],
        step: impl Fn(f32) -> StepSize,
        (mode, passes): (Mode, u32),
    ) -> Result<Self, ReproduceError> {
        let mut run = |&rate: &f32| Ok((rate, course(bench, step(rate), mode, passes)?));
        let courses = rates.iter().map(&mut run).collect::<Result<_, ReproduceError>>()?;
        Ok(Self { target: bench.problem.target(), courses })
    }

    /// Passes to the target.
    fn passes(&self, place: usize) -> Option<f64> {
        self.courses[place].1.reaches(self.target).map(|point| point.passes)
    }

    /// The initial step that is soonest at the target, or comes nearest to it: its place, and what it is judged by.
    fn best(&self) -> (usize, [f64; 2]) {
        let judge = |place: usize| {
            let least = self.courses[place].1.points.iter().map(|point| point.loss).fold(f64::INFINITY, f64::min);
            (place, [self.passes(place).unwrap_or(f64::INFINITY), least])
        };
        (0..self.courses.len()).map(judge).min_by(|one, other| compare(&one.1, &other.1)).expect("there are steps")
    }

    /// The curves of some initial steps, where there are such.
    fn series(&self, name: String, places: Range<usize>) -> impl Iterator<Item = Series> {
        let made =
            self.courses.iter().take(places.end).skip(places.start).filter(|(_, course)| !course.points.is_empty());
        made.map(move |(rate, course)| course.series(&format!("{name} {rate}"), |point| point.passes, f64::log10))
    }

    fn sentence(&self) -> String {
        let names: Vec<String> = self.courses.iter().map(|(rate, _)| format!("{rate}:")).collect();
        let counts = names.iter().map(String::as_str).zip((0..names.len()).map(|place| self.passes(place)));
        list(&counts.collect::<Vec<_>>(), "")
    }
}

fn compare(one: &[f64; 2], other: &[f64; 2]) -> Ordering {
    one[0].total_cmp(&other[0]).then(one[1].total_cmp(&other[1]))
}

/// Both on one cluster.
struct Comparison {
    nodes: u32,
    passes: u32,
    adaptive: Sweep,
    /// The best factor of decay.
    factor: f32,
    decaying: Sweep,
}

impl Comparison {
    fn new(bench: &mut Bench<Factorisation>, nodes: u32, clocks: u32, passes: u32) -> Result<Self, ReproduceError> {
        bench.problem.nodes = nodes;
        let how = (Mode { clocks, ..BS }, passes);
        let adaptive = Sweep::new(bench, &RATES, |rate| StepSize::AdaRevision { rate }, how)?;
        let mut by_factor = Vec::new();
        for factor in DECAYS {
            by_factor.push((factor, Sweep::new(bench, &DECAY_RATES, |rate| StepSize::Decay { rate, factor }, how)?));
        }
        let best = by_factor.into_iter().min_by(|(_, one), (_, other)| compare(&one.best().1, &other.best().1));
        let (factor, decaying) = best.expect("there are factors");
        Ok(Self { nodes, passes, adaptive, factor, decaying })
    }

    /// The most passes of AdaRevision as a multiple of its fewest.
    fn spread(&self) -> f64 {
        let passes = || (0..RATES.len()).map(|place| self.adaptive.passes(place).unwrap_or(f64::INFINITY));
        passes().fold(0.0, f64::max) / passes().fold(f64::INFINITY, f64::min)
    }

    /// AdaRevision's passes with its middle step, as a multiple of those of decay with its best, and where that never
    /// reaches the target, of all that there were.
    fn against_best(&self) -> f64 {
        let best = self.decaying.passes(self.decaying.best().0).unwrap_or(f64::from(self.passes));
        times(self.adaptive.passes(RATES.len() / 2), Some(best))
    }

    fn sentence(&self) -> String {
        let Self { nodes, passes, adaptive, factor, decaying } = self;
        format!(
            "on {nodes} nodes within {passes} passes AdaRevision {} and decay by {factor} {}, so AdaRevision's passes differ \
             by a factor of {:.2} and at {} are {:.0} % of those of the best decay{}",
            adaptive.sentence(),
            decaying.sentence(),
            self.spread(),
            RATES[RATES.len() / 2],
            self.against_best() * 100.0,
            if decaying.passes(decaying.best().0).is_none() { " or less" } else { "" }
        )
    }

    /// The curves of AdaRevision, and those of decay that are near its best. As logarithms, since on several nodes decay's rise
    /// so high at first that others could not be told apart.
    fn series(&self) -> Vec<Series> {
        let best = self.decaying.best().0;
        let decaying = self.decaying.series(format!("decay by {}", self.factor), best.saturating_sub(1)..best + 2);
        self.adaptive.series("AdaRevision".to_owned(), 0..RATES.len()).chain(decaying).collect()
    }
}

pub(in crate::reproduce) fn adarevision(scale: &Scale) -> Result<Findings, ReproduceError> {
    let passes = (scale.passes / 4).max(3);
    let mut bench = Bench::new(Factorisation::new(scale)?)?;
    bench.problem.rounds = 1;
    let (target, many) = (bench.problem.target(), bench.problem.nodes());
    let one = Comparison::new(&mut bench, 1, CLOCKS_ON_ONE_NODE, passes)?;
    let many = Comparison::new(&mut bench, many, 1, passes)?;
    let found = format!(
        "Passes to a loss of {target:.3} by initial step: {}; {}. Decay's factor is the best of {DECAYS:?}. AdaRevision \
         has more than its steps here: users solved for, and gradients of the items by SAGA; decay takes plain gradient \
         steps on both.",
        one.sentence(),
        many.sentence()
    );
    let steady = one.spread() < 2.0 && many.spread() < 2.0;
    let holds = steady && one.against_best() <= 0.6 && many.against_best() <= 0.5;
    let panels = [one, many].into_iter().map(|comparison| {
        let title = format!("matrix factorisation, {} nodes", comparison.nodes);
        panel(&title, "pass", "log10 squared loss", comparison.series())
    });
    Ok(Findings { found, holds, panels: panels.collect() })
}
