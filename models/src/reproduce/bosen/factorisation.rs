//! Factorisation of ratings for the Bösen paper's figures: every row has many ratings, as Netflix's have.

use super::super::{ReproduceError, Scale};
use super::{Course, Problem};
use crate::generate::{Synthetic, generate};
use crate::mf::StepSize;
use crate::mf::train::{Arranged, Config, Cut, train};
use crate::ratings::RatingList;
use hemiola::{Consistency, Deployment, sim};

/// The nodes of the paper.
pub(super) const NODES: u32 = 8;
/// With this initial step bounded staleness alone takes about as many clocks as in the paper.
const RATE: f32 = 0.008;
/// The paper's target of 2e7 for 100 million ratings is a loss of 0.2 a rating, of which their variance is about 1.18.
const TARGET_PART_OF_VARIANCE: f64 = 0.17;
const RATINGS_MAX: u64 = 300_000;
const RATINGS_PER_USER: u64 = 150;
const RATINGS_PER_ITEM: u64 = 750;
/// Little noise, so that the target is reached by learning and not by fitting noise.
const NOISE: f32 = 0.2;
const TRUE_RANK: usize = 16;
const L2: f32 = 0.005;
/// The paper's workers come back to a row all through a pass.
const ROUNDS_PER_PASS: u32 = 32;

pub(super) struct Factorisation {
    pub(super) nodes: u32,
    pub(super) step: StepSize,
    /// How often a worker comes to every row in a pass.
    pub(super) rounds: u32,
    ratings: RatingList,
    shape: (u32, u32),
    rank: usize,
    seed: u64,
}

impl Factorisation {
    pub(super) fn new(scale: &Scale) -> Result<Self, ReproduceError> {
        let count = scale.ratings.min(RATINGS_MAX);
        let users = (count / RATINGS_PER_USER).max(50) as u32;
        let items = (count / RATINGS_PER_ITEM).max(20) as u32;
        // All pairs may be fewer than were asked for.
        let count = count.min(u64::from(users) * u64::from(items) / 2) as usize;
        let set = Synthetic { users, items, count, rank: TRUE_RANK, noise: NOISE, seed: scale.seed };
        Ok(Self {
            nodes: scale.nodes.min(NODES),
            step: StepSize::AdaRevision { rate: RATE },
            rounds: ROUNDS_PER_PASS,
            ratings: generate(&set)?.ratings.ratings,
            shape: (users, items),
            rank: scale.rank,
            seed: scale.seed,
        })
    }

    pub(super) fn target(&self) -> f64 {
        let count = self.ratings.len() as f64;
        let mean = self.ratings.iter().map(|rating| f64::from(rating.value)).sum::<f64>() / count;
        let variance = self.ratings.iter().map(|rating| (f64::from(rating.value) - mean).powi(2)).sum::<f64>() / count;
        TARGET_PART_OF_VARIANCE * variance
    }
}

impl Problem for Factorisation {
    fn nodes(&self) -> u32 {
        self.nodes
    }

    fn units(&self) -> u64 {
        self.ratings.len() as u64
    }

    fn pass_seconds(&self) -> f64 {
        1.0
    }

    /// In the paper's §5.1 a pass takes 1.12 times as long at 200 Mbit/s, and at 800 Mbit/s 5.3 / 2.5 = 2.12 times: 5.3
    /// times fewer passes take a 2.5th of the time. If what is sent beyond one exchange takes time in proportion, `n`
    /// exchanges at 200 Mbit/s follow from `(4 · 2.12 n - 1) / (1.12 n - 1) = 1.12 / 0.12`.
    fn exchanges_per_megabit(&self) -> f64 {
        4.2 / 200.0
    }

    fn train(
        &self,
        cluster: &sim::Config,
        clocks: u32,
        consistency: Consistency,
        passes: u32,
    ) -> Result<Course, ReproduceError> {
        let mut config = Config {
            rank: self.rank,
            consistency,
            clocks_per_epoch: clocks,
            cut: Cut::Ratings,
            rounds_per_clock: self.rounds.div_ceil(clocks),
            seed: self.seed,
            ..Config::default()
        };
        config.training.epochs = passes;
        config.training.step = self.step;
        config.training.l2 = L2;
        let trained = self.ratings.len();
        let workers = cluster.nodes * cluster.workers_per_node;
        let data = Arranged::new(self.ratings.clone(), trained, self.shape, workers, &config)?;
        let epochs = train(&config, &Deployment::Sim(cluster.clone()), data, |_| {})?.epochs;
        Ok(Course::new(&epochs, cluster.nodes, |quality| Some(quality.objective)))
    }
}
