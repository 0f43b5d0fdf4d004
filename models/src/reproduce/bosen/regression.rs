//! Softmax regression for the Bösen paper's figures: every example has every feature, as the paper's images have, so that
//! every step changes all rows. A row here is a feature's; the paper's are classes'.
//!
//! The documents of `sfb` are told apart after two passes, where the paper's images take up to fifty.
//!
//! How old rows are hardly matters here: with eight clocks a pass the loss is after 20 to 50 passes only 5 to 3 % less
//! than with one (seed 1), so that there is little that managed communication could gain.

use super::super::{ReproduceError, Scale};
use super::{Course, Problem};
use crate::examples::Examples;
use crate::generate::Random;
use crate::mlr::train::{Arranged, Changes, Config, train};
use crate::{Names, StepSize};
use hemiola::{Consistency, Deployment, sim};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The nodes of the paper.
const NODES: u32 = 4;
/// In the paper "MLR with regular SGD converges within 50 iterations".
const PASSES: u32 = 50;
/// The paper's initial step. Its text does not say whether it becomes smaller.
const RATE: f32 = 1.0;
/// The paper has 65,000 examples of 1000 classes in 21,000 features.
const EXAMPLES_PER_CLASS: u32 = 65;
const FEATURES_PER_CLASS: u32 = 21;
/// How far the mean of a class is from zero in a feature, where examples are 1 from their mean: with 50 classes, who knows
/// all means tells the class of about half of the examples. The paper does not say how hard its images are to tell apart.
const APART: f32 = 0.07;
/// A worker of the paper's has changes to send all through a pass.
const ROUNDS_PER_PASS: u32 = 32;

pub(super) struct Regression {
    nodes: u32,
    examples: Examples,
    seed: u64,
}

impl Regression {
    pub(super) fn new(scale: &Scale) -> Self {
        Self { nodes: scale.nodes.min(NODES), examples: images(scale.topics, scale.seed), seed: scale.seed }
    }

    pub(super) fn passes(scale: &Scale) -> u32 {
        PASSES.min(scale.passes)
    }
}

/// Examples that lie around the mean of their class.
fn images(classes: u32, seed: u64) -> Examples {
    let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(seed));
    let mut names = Names::default();
    let known = (0..classes).all(|class| names.intern(&class.to_string()).is_ok());
    debug_assert!(known, "classes have room");
    let features = classes * FEATURES_PER_CLASS;
    let mut set = Examples::new(names);
    for class in 0..classes {
        let mean: Vec<f32> = (0..features).map(|_| APART * random.normal()).collect();
        for _ in 0..EXAMPLES_PER_CLASS {
            set.push(class, (0..).zip(&mean).map(|(feature, mean)| (feature, mean + random.normal())));
        }
    }
    set
}

impl Problem for Regression {
    fn nodes(&self) -> u32 {
        self.nodes
    }

    fn units(&self) -> u64 {
        self.examples.len() as u64
    }

    fn pass_seconds(&self) -> f64 {
        1.0
    }

    /// A node of the paper's four sends its updates of three quarters of 84 MB, and a quarter to three clients: 1000 Mbit. How
    /// long a pass takes is not in its text. It says that an exchange usually ends within a pass, so that nobody waits; for
    /// the smallest budget, 100 Mbit/s, these are ten seconds, which are taken. With a longer pass budgets would send more.
    fn exchanges_per_megabit(&self) -> f64 {
        1.0 / 100.0
    }

    fn train(
        &self,
        cluster: &sim::Config,
        clocks: u32,
        consistency: Consistency,
        passes: u32,
    ) -> Result<Course, ReproduceError> {
        let config = Config {
            l2: 0.0,
            step: StepSize::Constant { rate: RATE },
            epochs: passes,
            consistency,
            clocks_per_epoch: clocks,
            changes: Changes::Added,
            rounds_per_clock: ROUNDS_PER_PASS.div_ceil(clocks),
            seed: self.seed,
            ..Config::default()
        };
        // Evaluated on what it is trained on: the mean of the losses met in a pass would be that of half a pass before.
        let data = Arranged::new(&self.examples, Some(&self.examples), cluster.nodes, &config)?;
        let epochs = train(&config, &Deployment::Sim(cluster.clone()), &data, |_| {})?.epochs;
        Ok(Course::new(&epochs, cluster.nodes, |quality| quality.test_loss))
    }
}
