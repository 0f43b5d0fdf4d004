//! Trains multiclass logistic regression by sufficient factor broadcasting: minibatches of peers that exchange factors.
//!
//! An iteration is a minibatch of every peer. What an example changes is the product of its features and of the errors of its
//! probabilities (Xie et al., section 2), so these are what a peer writes: `u` are the features, each times the size of
//! its steps, and `v` the errors. Without staleness and with full broadcast the weights are those of the same minibatches
//! on tables, [`Config::on_tables`], but for rounding.
//!
//! With [`Config::rounding`] small errors are rounded at random, so that a pair is short however many classes there are.
//!
//! Partial broadcast departs from the paper in two ways, without which a replica would not learn what all examples say. A
//! replica takes the pairs of its own peer and of `Q` others out of `P`, so each counts `P / (Q + 1)` times, and the size of
//! steps means what it does with full broadcast. And in every pass a peer takes the examples that another had in the last:
//! nothing is passed on, so otherwise a replica would only ever be told of those of its senders.
//!
//! Regularisation is a proximal operator: weights shrink where a table's would. So that this does not take longer than what the
//! pairs change, it happens for several iterations at once where a minibatch has few of the features.

use super::kernel;
use super::rounding::Rounding;
use super::row_width;
use super::train::{self, Arranged, Epoch, Part, Quality, TrainError, Trained};
use crate::StepSize;
use crate::epoch::Course;
use crate::examples::Examples;
use crate::peers::{self, Exchange, Learner};
use hemiola::factors::{Factor, Matrix, Peer};
use hemiola::{Clock, Consistency, Deployment, Error};
use serde::{Deserialize, Serialize};

/// Products of numbers that lie side by side that take as long as one of two sparse factors, which changes a number far from
/// the last: 13 ns of a core beside 0.33 ns, with a matrix of 2000 by 5000 that is too large for the caches.
const SCATTERED_PRODUCTS: u64 = 40;
/// Products of two numbers that take as long as turning the score of a class into a probability.
const SOFTMAX_PRODUCTS: usize = 8;

/// How to train.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Weight of the squared weights in the objective.
    pub l2: f32,
    /// Examples of a peer whose gradients are averaged in an iteration, at most; all have about as many.
    pub batch: u32,
    /// The schedule of step sizes, for examples whose mean squared length is 1.
    pub step: StepSize,
    /// Passes over the examples.
    pub epochs: u32,
    /// How many iterations a peer may be ahead of those who send to it; zero is Bsp.
    pub staleness: u32,
    /// To how many others every peer sends; `None` is to all.
    pub fanout: Option<u32>,
    /// The size that smaller errors are rounded to, at random and with the same mean; `None` rounds none.
    pub rounding: Option<f32>,
    /// Ends the training when the held-out loss has not fallen for so many epochs.
    pub patience: Option<u32>,
    /// Fixes the order of the examples.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        let train::Config { l2, step, epochs, patience, seed, .. } = train::Config::default();
        Self { l2, batch: 100, step, epochs, staleness: 0, fanout: None, rounding: None, patience, seed }
    }
}

impl Config {
    /// The same training on tables: workers exchange rows of the matrix after every minibatch.
    #[must_use]
    pub fn on_tables(&self, examples: usize, workers: u32) -> train::Config {
        let Self { l2, batch, step, epochs, staleness, patience, seed, .. } = *self;
        let clocks_per_epoch = peers::iterations(examples, batch, workers);
        let consistency = if staleness == 0 { Consistency::Bsp } else { Consistency::Ssp { staleness } };
        let (changes, usual) = (train::Changes::Added, train::Config::default());
        train::Config { l2, batch, step, epochs, consistency, clocks_per_epoch, changes, patience, seed, ..usual }
    }

    /// How many products of two numbers a pass over examples takes one peer without others: the units of its work.
    #[must_use]
    pub fn products(&self, examples: &Examples) -> u64 {
        let (width, entries) = (row_width(examples.classes.len()), examples.entries() + examples.len());
        let iterations = self.on_tables(examples.len(), 1).clocks_per_epoch as usize;
        let every = shrinking_interval(examples.features(), entries / iterations, iterations);
        let shrinking = if self.l2 > 0.0 { examples.features() * width / every * iterations } else { 0 };
        let applied = self.errors_left(width).map_or(width, |left| SCATTERED_PRODUCTS as usize * left);
        ((entries + SOFTMAX_PRODUCTS * examples.len()) * width + entries * applied + shrinking) as u64
    }

    /// How many errors of a pair are not zero, at most and about; `None` if all of them may be.
    #[must_use]
    pub fn errors_left(&self, classes: usize) -> Option<usize> {
        self.rounding.map(|unit| Rounding::left_of(unit, classes))
    }
}

/// Trains a regression on as many peers as the deployment has workers, and shows `observe` how far it is after every
/// epoch. The weights are those of the first peer's replica.
///
/// # Errors
/// If there is nothing to learn from `examples`, training diverges or the job fails.
pub fn train(
    config: &Config,
    deployment: &Deployment,
    examples: &Examples,
    test: Option<&Examples>,
    observe: impl FnMut(&Epoch) + Send,
) -> Result<Trained, TrainError> {
    if config.step.damping() > 0.0 {
        return Err(TrainError::Adaptive);
    }
    if let Some(unit) = config.rounding.filter(|unit| !(*unit > 0.0 && *unit <= 1.0)) {
        return Err(TrainError::Rounding { unit });
    }
    let peers = deployment.workers();
    let tables = config.on_tables(examples.len(), peers);
    if tables.epochs.checked_mul(tables.clocks_per_epoch).is_none() {
        return Err(TrainError::Iterations);
    }
    let data = Arranged::new(examples, test, peers, &tables)?;
    if config.patience.is_some() && data.test_count == 0 {
        return Err(TrainError::NothingHeldOut);
    }
    let exchange = Exchange { staleness: config.staleness, fanout: config.fanout };
    let schema = exchange.matrix(data.features + 1, row_width(data.classes));
    let senders = exchange.senders(peers);
    let learner = |peer: &mut Peer<'_>| PeerLearner::new(config, &tables, &data, peer, senders);
    let judge = |sums: &[f64]| Quality::from_sums(sums, &data);
    let trained = peers::train(deployment, &schema, tables.epochs, learner, judge, observe)?;
    let rows = trained.matrix.chunks_exact(row_width(data.classes));
    let weights = rows.flat_map(|row| &row[..data.classes]).copied().collect();
    Ok(Trained { classes: data.classes, weights, epochs: trained.epochs, outcome: trained.outcome })
}

/// After how many iterations weights shrink that change so many rows each.
fn shrinking_interval(features: usize, changed: usize, clocks_per_epoch: usize) -> usize {
    (features / changed.max(1)).clamp(1, clocks_per_epoch)
}

/// Shrinks weights as their penalty asks for, several iterations at once.
struct Shrinking {
    l2: f32,
    step: StepSize,
    clocks_per_epoch: u32,
    /// The step size of each row is that of the epoch times this.
    scales: Vec<f32>,
    /// How many minibatches count in an iteration.
    peers: u32,
    /// How many iterations at once, and how many are done.
    every: u32,
    done: Clock,
}

impl Shrinking {
    fn new(config: &train::Config, data: &Arranged, senders: u32) -> Self {
        let entries: usize = data.train.iter().map(Part::entries).sum();
        let changed = senders as usize * entries / data.train.len().max(1);
        Self {
            l2: config.l2,
            step: config.step,
            clocks_per_epoch: config.clocks_per_epoch,
            scales: data.scales(),
            peers: data.workers as u32,
            every: shrinking_interval(data.features, changed, config.clocks_per_epoch as usize) as u32,
            done: Clock(0),
        }
    }

    /// Brings the matrix to a clock, if it is time to.
    fn apply(&mut self, matrix: &mut Matrix, clock: Clock) {
        let at = clock.0 % self.clocks_per_epoch;
        let iterations = clock.0 - self.done.0;
        if iterations == 0 || !(at == 0 || at.is_multiple_of(self.every)) {
            return;
        }
        self.done = clock;
        let rate = self.step.at_epoch((clock.0 - 1) / self.clocks_per_epoch);
        let steps = iterations as f32 * self.peers as f32;
        let bias = self.scales.len() - 1;
        let width = matrix.columns();
        for (row, scale) in matrix.numbers_mut().chunks_exact_mut(width).zip(&self.scales[..bias]) {
            let keep = 1.0 / (1.0 + steps * rate * scale * self.l2);
            row.iter_mut().for_each(|weight| *weight *= keep);
        }
    }
}

/// What one peer of the job does.
struct PeerLearner<'a> {
    config: &'a train::Config,
    data: &'a Arranged,
    parts: Vec<Part>,
    /// How often a pair counts, and whether every pass is over another peer's examples: what partial broadcast asks for.
    weight: f32,
    moves_on: bool,
    rounding: Option<Rounding>,
    test: Option<Part>,
    /// The work of shrinking in an iteration, on average.
    shrinking_products: u64,
    scales: Vec<f32>,
    errors: Vec<f32>,
    /// The sum of the losses met in a pass.
    loss: f64,
}

impl<'a> PeerLearner<'a> {
    fn new(
        &Config { rounding, .. }: &Config,
        config: &'a train::Config,
        data: &'a Arranged,
        peer: &mut Peer<'_>,
        senders: u32,
    ) -> Self {
        let shrinking = (config.l2 > 0.0).then(|| Shrinking::new(config, data, senders));
        let all = (data.features * row_width(data.classes)) as u64;
        let shrinking_products = shrinking.as_ref().map_or(0, |shrinking| all / u64::from(shrinking.every));
        if let Some(mut shrinking) = shrinking {
            peer.prox(move |matrix, clock| shrinking.apply(matrix, clock));
        }
        let peer = peer.id().index();
        let seed = config.seed.wrapping_add(1 + peer as u64);
        Self {
            config,
            data,
            parts: Self::parts(config, data, peer),
            weight: data.workers as f32 / senders as f32,
            moves_on: (senders as usize) < data.workers,
            rounding: rounding.map(|unit| Rounding::new(unit, seed)),
            test: data.test.get(peer).map(Part::of_all_rows),
            shrinking_products,
            scales: data.scales(),
            errors: Vec::new(),
            loss: 0.0,
        }
    }

    /// The minibatches of a pass that are dealt to a peer.
    fn parts(config: &train::Config, data: &Arranged, peer: usize) -> Vec<Part> {
        let clocks = config.clocks_per_epoch as usize;
        data.train[peer * clocks..][..clocks].iter().map(Part::of_all_rows).collect()
    }
}

impl Learner for PeerLearner<'_> {
    fn pass(&mut self, peer: &mut Peer<'_>, epoch: u32) -> Result<(), Error> {
        let rate = self.config.step.at_epoch(epoch);
        let width = row_width(self.data.classes);
        self.loss = 0.0;
        if self.moves_on && epoch > 0 {
            let dealt = (peer.id().index() + epoch as usize) % self.data.workers;
            self.parts = Self::parts(self.config, self.data, dealt);
        }
        for part in &self.parts {
            let block = part.block();
            self.loss += kernel::errors(peer.matrix().numbers(), block, self.data.classes, &mut self.errors).loss;
            let share = self.weight / block.labels.len() as f32;
            let mut u = Vec::new();
            for (example, errors) in self.errors.chunks_exact(width).enumerate() {
                let (columns, values) = block.entries(example);
                u.clear();
                u.extend(columns.iter().zip(values).map(|(&row, x)| rate * self.scales[row as usize] * x * share));
                let v = match &mut self.rounding {
                    Some(rounding) => rounding.round(errors),
                    None => Factor::Dense(errors),
                };
                peer.write((columns, u.as_slice()), v)?;
            }
            peer.work(((part.entries() + SOFTMAX_PRODUCTS * block.labels.len()) * width) as u64)?;
            let applied = peer.commit()?;
            let scattered = (SCATTERED_PRODUCTS - 1) * applied.scattered;
            peer.work(applied.products + scattered + self.shrinking_products)?;
        }
        if !self.loss.is_finite() {
            return Err(Error::program(TrainError::Diverged { epoch: epoch + 1, rate }));
        }
        Ok(())
    }

    fn sums(&mut self, peer: &Peer<'_>) -> Vec<f64> {
        let matrix = peer.matrix().numbers();
        let evaluate = |part: &Part| kernel::evaluate(matrix, part.block(), self.data.classes);
        let tested = self.test.as_ref().map(evaluate).unwrap_or_default();
        let penalty = 0.5 * f64::from(self.config.l2) * peers::share_of_squares(peer, self.data.features);
        vec![self.loss, penalty, tested.loss, tested.correct as f64]
    }

    fn goes_on(
        &mut self,
        course: &mut Course,
        totals: impl FnOnce() -> Result<Vec<f64>, Error>,
    ) -> Result<bool, Error> {
        let loss = |totals: Vec<f64>| Quality::from_sums(&totals, self.data).test_loss.unwrap_or(f64::NAN);
        course.goes_on_by(self.config.patience, || totals().map(loss))
    }
}
