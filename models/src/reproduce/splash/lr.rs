//! Figure 2: multi-class logistic regression by Splash, by one thread and by L-BFGS.

use super::super::{Findings, ReproduceError, Scale};
use super::applications::{Course, Size, least, panel, reached, sooner, times, told};
use super::baselines::{lbfgs, softmax_loss};
use crate::Names;
use crate::examples::Examples;
use crate::generate::Random;
use crate::mlr::splash::{Config, train};
use hemiola::splash::Options;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

const CLASSES: usize = 10;
const FEATURES: usize = 60;
/// Passes of one thread. Splash may make four times as many, which take it far less time.
const PASSES: u32 = 2;
const ITERATIONS: u32 = 25;
/// How often sooner than one thread 64 workers are expected to be.
const SPEEDUP: f64 = 15.0;

/// Examples of classes that differ in the mean of each feature.
pub(super) fn digits(count: usize, seed: u64, draws: u64) -> Examples {
    let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(seed));
    let means: Vec<f32> = (0..CLASSES * FEATURES).map(|_| 0.35 * random.normal()).collect();
    let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(draws));
    let mut classes = Names::default();
    let known = (0..CLASSES).all(|class| classes.intern(&class.to_string()).is_ok());
    debug_assert!(known, "ten classes are not too many");
    let mut examples = Examples::new(classes);
    for number in 0..count {
        let class = number % CLASSES;
        let entries: Vec<(u32, f32)> =
            (0..FEATURES).map(|f| (f as u32, means[class * FEATURES + f] + random.normal())).collect();
        examples.push(class as u32, entries);
    }
    examples
}

/// The size of the problem beside the paper's: 8 million examples of 784 features, 12 microseconds each.
pub(super) fn size(examples: usize) -> Size {
    Size {
        units: examples as f64,
        paper_units: 8e6,
        unit_seconds: 12e-6,
        numbers: ((FEATURES + 1) * CLASSES) as f64,
        paper_numbers: 7840.0,
    }
}

pub(in super::super) fn lr(scale: &Scale) -> Result<Findings, ReproduceError> {
    // A worker needs some thousands of examples for its own, or they say too little of all.
    let count = (scale.ratings as usize / 5).max(1000);
    let (examples, test) = (
        digits(count, scale.seed, scale.seed.wrapping_mul(2)),
        digits(count / 20, scale.seed, scale.seed.wrapping_mul(2) | 1),
    );
    let size = size(examples.len());
    let run = |nodes: u32, epochs: u32| -> Result<Course, ReproduceError> {
        let defaults = Config::default();
        let passes = Options { seed: scale.seed, ..defaults.passes };
        let config = Config { l2: 0.0, epochs, passes, ..defaults };
        let trained = train(&config, &size.deployment(nodes, scale.seed), &examples, Some(&test), |_| {})?;
        Ok(trained.epochs.iter().filter_map(|epoch| Some((epoch.seconds, epoch.quality.test_loss?))).collect())
    };
    let (splash, one) = (run(scale.nodes, 4 * PASSES)?, run(1, PASSES)?);
    let mut batch = Course::new();
    lbfgs(&examples, ITERATIONS, |passes, weights| {
        let seconds = f64::from(passes) * size.batch_seconds(scale.nodes, 1.0, 1.0);
        batch.push((seconds, softmax_loss(&test, weights, None)));
    });
    let targets = [one[0].1, least(&one)];
    let against = |other: &Course| targets.map(|target| sooner(reached(&splash, target), reached(other, target)));
    let (thread, lbfgs) = (against(&one), against(&batch));
    let expected = SPEEDUP * (f64::from(scale.nodes) / 64.0).min(1.0);
    let found = format!(
        "On {} simulated nodes Splash has one thread's loss after a pass, {:.4}, {}, {}; and its best of {PASSES} passes, {:.4}, {}, {}. Beside L-BFGS it is there {} and {}, which runs on an ideal cluster of as many nodes.",
        scale.nodes,
        targets[0],
        told(reached(&splash, targets[0])),
        times(thread[0]),
        targets[1],
        told(reached(&splash, targets[1])),
        times(thread[1]),
        times(lbfgs[0]),
        times(lbfgs[1]),
    );
    let holds = thread.iter().all(|ratio| *ratio >= expected) && lbfgs.iter().all(|ratio| *ratio > 1.0);
    let series = vec![("Splash", splash), ("one thread", one), ("L-BFGS", batch)];
    Ok(Findings {
        found,
        holds,
        panels: vec![panel("Logistic regression", "virtual seconds", "held-out loss", series)],
    })
}
