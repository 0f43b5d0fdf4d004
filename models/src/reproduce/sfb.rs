//! The figures of the paper on sufficient factor broadcasting: softmax regression on simulated nodes, by factors and on
//! tables, and how all four of its applications scale.
//!
//! The paper has documents of 325,000 classes in 20,000 features, minibatches of 100, and matrices of 26 GB. Here
//! features and minibatches are a tenth, so that a minibatch has as many of the features, and classes are a 325th, so
//! that the replicas of all nodes are in the memory of one machine. What is sent and what is computed are both in
//! proportion to the classes; only the time that a byte is under way is not, and is less than that of real networks for it.
//!
//! With rounded errors what is sent no longer grows with the classes, nor does what is subtracted; there nodes have one core
//! and 5000 classes, so that a document takes them as long as 325,000 classes take 64 cores, and at a core's speed, not at that
//! of 64, they subtract what others send.
//!
//! Computing is charged by products of two numbers, those of subtracting what others send among them: each is taken to
//! keep one core busy for [`CORE_SECONDS`]. The paper's machines have 64 cores, which are taken to be 64 times as
//! fast. That is generous, because they share a memory, and generous to factors, with which there is more to compute.
//!
//! On tables workers fetch the rows of the features that their minibatch has, which is less than the full matrix of the paper;
//! under Bsp, which pushes rows to all who ever need them, it would be nearly all of it. What servers compute is not charged.

mod cost;
mod partial;
mod scaling;
mod size;
mod throughput;
mod waiting;

pub(super) use cost::cost;
pub(super) use partial::partial;
pub(super) use scaling::scaling;
pub(super) use size::model_size;
pub(super) use throughput::throughput;
pub(super) use waiting::waiting;

use super::{Panel, ReproduceError, Scale, Series};
use crate::examples::Examples;
use crate::generate::Random;
use crate::mlr::factors::{self, Config};
use crate::mlr::row_width;
use crate::mlr::train::{self as tables, Arranged, Trained};
use crate::{HoldOut, Names, StepSize};
use hemiola::{Consistency, Deployment, sim};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Features of all documents; the paper has 20,000.
const FEATURES: u32 = 2000;
/// Words of a document, of which some occur twice.
const WORDS: u32 = 60;
/// Examples of a node in an iteration; the paper has 100.
const BATCH: u32 = 10;
/// The size of steps, with which the loss falls to a quarter in [`EPOCHS`] passes.
const RATE: f32 = 10.0;
/// Nodes, unless it is about their number.
const NODES: u32 = 12;
/// Passes over the documents, at whose end the objective is what other runs are to reach.
const EPOCHS: u32 = 3;
/// Seconds of one core for a product of two numbers, and how many cores there are.
const CORE_SECONDS: f64 = 0.5e-9;
const CORES: f64 = 64.0;
/// The size that errors are rounded to where the paper's largest model is learnt, and how many of its classes and documents
/// there are for each topic and each document of other figures.
const ROUNDING: f32 = 0.5;
const WIDE_CLASSES: u32 = 100;
const WIDE_DOCUMENTS: u32 = 64;
/// What a node can send and receive, 10 Gbit/s, and how long a byte is under way.
const BANDWIDTH: f64 = 1.25e9;
const LATENCY: f64 = 10e-6;

/// Documents, and a cluster to learn their classes on.
struct Bench {
    train: Examples,
    test: Examples,
    classes: u32,
    nodes: u32,
    cores: f64,
    /// How often a node stands still, and for how long.
    pauses: sim::Hazard,
}

/// What keeps the nodes together.
#[derive(Clone, Copy, PartialEq)]
enum Exchange {
    Factors,
    Matrix,
}

impl Bench {
    fn new(scale: &Scale, classes: u32) -> Result<Self, ReproduceError> {
        Self::of(scale.documents * 8, scale, classes)
    }

    /// With so many documents, some of which are held out.
    fn of(count: u32, scale: &Scale, classes: u32) -> Result<Self, ReproduceError> {
        let all = documents(count, classes, scale.seed);
        let (train, test) = all.split(HoldOut::Every(6)).map_err(|_| tables::TrainError::NoExamples)?;
        Ok(Self { train, test, classes, nodes: NODES.min(scale.nodes), cores: CORES, pauses: sim::Hazard::default() })
    }

    /// For rounded errors: what is computed for a document is the paper's.
    fn wide(scale: &Scale) -> Result<Self, ReproduceError> {
        let all = Self::of(scale.documents * WIDE_DOCUMENTS, scale, scale.topics * WIDE_CLASSES)?;
        Ok(Self { cores: 1.0, ..all })
    }

    /// As many classes as the largest model has.
    fn classes_max(scale: &Scale) -> u32 {
        scale.topics * 20
    }

    fn config(&self) -> Config {
        Config { l2: 0.0, batch: BATCH, step: StepSize::Constant { rate: RATE }, epochs: EPOCHS, ..Config::default() }
    }

    fn cluster(&self, exchange: Exchange) -> sim::Config {
        let mut cluster = sim::Config::new(self.nodes);
        cluster.network.bandwidth_in = BANDWIDTH;
        cluster.network.bandwidth_out = BANDWIDTH;
        cluster.network.latency = LATENCY;
        cluster.faults.pauses = self.pauses;
        let product = CORE_SECONDS / self.cores;
        cluster.seconds_per_unit = match exchange {
            Exchange::Factors => product,
            Exchange::Matrix => product * self.config().products(&self.train) as f64 / self.train.len() as f64,
        };
        cluster
    }

    fn run(&self, exchange: Exchange, config: &Config) -> Result<Run, ReproduceError> {
        let deployment = Deployment::Sim(self.cluster(exchange));
        let trained = match exchange {
            Exchange::Factors => factors::train(config, &deployment, &self.train, Some(&self.test), |_| {})?,
            Exchange::Matrix => {
                let Config { staleness, .. } = *config;
                let config = tables::Config {
                    consistency: Consistency::Ssp { staleness },
                    ..config.on_tables(self.train.len(), self.nodes)
                };
                let data = Arranged::new(&self.train, Some(&self.test), self.nodes, &config)?;
                tables::train(&config, &deployment, &data, |_| {})?
            }
        };
        Ok(Run { trained, begin: f64::from(self.classes).ln() })
    }

    /// What was chosen, for people.
    fn chosen(&self) -> String {
        format!(
            "{} nodes of {} cores at 10 Gbit/s, {} documents of {} classes in {FEATURES} features, minibatches of {BATCH}",
            self.nodes,
            self.cores,
            self.train.len(),
            self.classes
        )
    }
}

/// How a training went.
struct Run {
    trained: Trained,
    /// The held-out loss before anything is learnt.
    begin: f64,
}

impl Run {
    /// Seconds and held-out losses, from the beginning.
    fn course(&self) -> Vec<(f64, f64)> {
        let loss = |epoch: &tables::Epoch| epoch.quality.test_loss.unwrap_or(f64::NAN);
        let point = |epoch: &tables::Epoch| (epoch.seconds, loss(epoch));
        [(0.0, self.begin)].into_iter().chain(self.trained.epochs.iter().map(point)).collect()
    }

    fn seconds(&self) -> f64 {
        self.trained.epochs.last().map_or(f64::NAN, |epoch| epoch.seconds)
    }

    fn loss(&self) -> f64 {
        self.course().last().map_or(f64::NAN, |point| point.1)
    }

    /// When a held-out loss was reached, between two passes as if all were on a line.
    fn reaches(&self, loss: f64) -> Option<f64> {
        Self::reaches_on(&self.course(), loss)
    }

    /// The same on a course.
    fn reaches_on(course: &[(f64, f64)], loss: f64) -> Option<f64> {
        let at = course.iter().position(|point| point.1 <= loss)?;
        let (end, start) = (course[at], course[at.checked_sub(1)?]);
        Some(start.0 + (start.1 - loss) / (start.1 - end.1) * (end.0 - start.0))
    }
}

/// Documents whose words are frequent by a power law, half of them of the class's own.
fn documents(count: u32, classes: u32, seed: u64) -> Examples {
    const OWN: u32 = 20;
    let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(seed));
    let mut names = Names::default();
    let known = (0..classes).all(|class| names.intern(&class.to_string()).is_ok());
    debug_assert!(known, "classes have room");
    // As many words of rank r as 1/r.
    let word = |random: &mut Random| (f64::from(FEATURES).powf(random.uniform()) as u32 - 1).min(FEATURES - 1);
    let own: Vec<u32> = (0..classes * OWN).map(|_| random.below(FEATURES as usize) as u32).collect();
    let mut set = Examples::new(names);
    for document in 0..count {
        let class = document % classes;
        let mut words: Vec<u32> = (0..WORDS / 2).map(|_| word(&mut random)).collect();
        let any = |random: &mut Random| own[class as usize * OWN as usize + random.below(OWN as usize)];
        words.extend((0..WORDS / 2).map(|_| any(&mut random)));
        words.sort_unstable();
        words.dedup();
        // Words that many documents have count for less.
        let weight = |word: u32| (f64::from(word + 2).ln() / f64::from(FEATURES).ln()) as f32;
        // Frequent words are not neighbours, or one server would have most of the work.
        let mut entries: Vec<(u32, f32)> =
            words.into_iter().map(|word| (word * 7919 % FEATURES, weight(word))).collect();
        entries.sort_unstable_by_key(|entry| entry.0);
        set.push(class, entries);
    }
    set
}

fn panel(title: &str, x: &str, y: &str, series: Vec<(String, Vec<(f64, f64)>)>) -> Panel {
    let series = series.into_iter().map(|(name, points)| Series { name, points }).collect();
    Panel { title: title.to_owned(), x: x.to_owned(), y: y.to_owned(), series, lines: true }
}

/// The floats of an error, with those that rows are filled up with.
fn width(classes: u32) -> f64 {
    row_width(classes as usize) as f64
}
