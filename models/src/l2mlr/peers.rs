//! Dual coordinate ascent by sufficient factor broadcasting: peers that exchange the changes of their dual variables and
//! the examples these belong to.
//!
//! Every peer has a share of the examples and of their dual variables. In an iteration it takes steps on some of its own,
//! each on weights that have its earlier ones but miss what others do meanwhile. So that all that may be added up, a step
//! takes every change of the weights to be as many times as large as there are peers that do not see one another: what is
//! added then makes the dual no smaller (CoCoA+, Ma et al. 2015, with `γ = 1` and `σ′` the number of peers). With one peer
//! it is plain dual coordinate ascent.
//!
//! After a pass each peer adds up the gap of its own examples at its replica. That is the gap of the weights as they are
//! rounded, but for the square of what rounding did to them: `1/n Σ KL(p_i ‖ softmax(W x_i))` has no first-order part of it.

use super::kernel::{self, Problem, Sums, width};
use super::solver::{Arranged, Config, Fit, Quality, Whole, labels_as_duals};
use crate::epoch::{Course, Epoch};
use crate::examples::Examples;
use crate::mf::blocks::shuffled_labels;
use crate::mlr::kernel::exponential;
use crate::peers::{self, Learner, Peers, Share};
use hemiola::factors::Peer;
use hemiola::{Error, Outcome};

/// Products of two numbers that take as long as finding a dual variable, for each class.
const STEP_PRODUCTS: usize = 100;
/// The same for turning the score of a class into a probability.
const SOFTMAX_PRODUCTS: usize = 8;

/// What a fit by peers came to.
#[derive(Debug)]
pub struct Fitted {
    /// The weights of the first peer's replica, and how good they are.
    pub fit: Fit,
    /// How far it was after every epoch.
    pub epochs: Vec<Epoch<Quality>>,
    /// How the job went.
    pub outcome: Outcome,
}

/// Why peers could not fit weights.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum FitError {
    #[error(
        "without every peer's factors the weights are not those of the dual variables; peers must send to all others"
    )]
    Fanout,
    #[error("the epochs have more iterations than can be counted; use fewer, or larger minibatches")]
    Iterations,
    #[error(transparent)]
    Job(#[from] Error),
}

/// Fits weights to examples, in iterations of so many of each peer, and shows `observe` how far it is after every epoch.
///
/// # Errors
/// If peers do not send to all others, or the job fails.
///
/// # Panics
/// If there are no examples.
pub fn fit(
    examples: &Examples,
    config: &Config,
    batch: u32,
    place: &Peers<'_>,
    observe: impl FnMut(&Epoch<Quality>) + Send,
) -> Result<Fitted, FitError> {
    assert!(!examples.is_empty(), "there are examples");
    let peers = place.deployment.workers();
    let (count, classes) = (examples.len(), examples.classes.len());
    if place.exchange.senders(peers) < peers {
        return Err(FitError::Fanout);
    }
    if config.epochs.checked_mul(peers::iterations(count, batch, peers)).is_none() {
        return Err(FitError::Iterations);
    }
    let lambda = config.lambda.unwrap_or(1.0 / count as f64);
    let whole = Asked { lambda, count: count as f64, gap: config.gap };
    // Those of an iteration that a peer may not have seen yet count as well.
    let unseen = peers.saturating_mul(place.exchange.staleness.saturating_add(1));
    let order = shuffled_labels(count as u32, config.seed);
    let schema = place.exchange.matrix(examples.features() + 1, width(classes));
    let learner = |peer: &mut Peer<'_>| {
        let me = peer.id().index();
        let at = |peer: usize| count * peer / peers as usize;
        let data = Arranged::new(examples, &order[at(me)..at(me + 1)], config.bias);
        let own: Vec<u32> = (0..data.len() as u32).collect();
        PeerLearner {
            share: Share::of_peer(own, peers::iterations(count, batch, peers), me, config.seed),
            duals: labels_as_duals(&data),
            local: vec![0.0; (examples.features() + 1) * width(classes)],
            data,
            whole,
            unseen: unseen as f32,
            stale: place.exchange.staleness > 0,
            sums: Sums::default(),
        }
    };
    let trained = peers::train(place.deployment, &schema, config.epochs, learner, |sums| whole.quality(sums), observe)?;
    let peers::Trained { matrix, epochs, outcome } = trained;
    let found = epochs.last().and_then(|epoch| epoch.quality.whole).unwrap_or_default();
    let fit = Fit::new(&matrix, classes, lambda, found, (epochs.len() as u32, config.gap));
    Ok(Fitted { fit, epochs, outcome })
}

/// What is asked of all examples together.
#[derive(Clone, Copy)]
struct Asked {
    lambda: f64,
    count: f64,
    /// The gap to end with.
    gap: f64,
}

impl Asked {
    /// What a dual variable is multiplied by in the weights.
    fn scale(&self) -> f32 {
        (1.0 / (self.lambda * self.count)) as f32
    }

    /// What the numbers of all peers say.
    fn quality(&self, sums: &[f64]) -> Quality {
        let at = |i: usize| sums.get(i).copied().unwrap_or(f64::NAN);
        let (loss, gap) = (at(0) / self.count, at(1) / self.count);
        let objective = loss + 0.5 * self.lambda * at(3);
        let whole = Some(Whole { objective, gap, loss, accuracy: at(2) / self.count });
        Quality { gap, visited: 1.0, whole }
    }
}

/// What one peer of the job does.
struct PeerLearner {
    data: Arranged,
    whole: Asked,
    share: Share,
    /// The logarithms of the dual variables.
    duals: Vec<f32>,
    /// The weights with what the peer itself has changed in an iteration, in the rows that it needs.
    local: Vec<f32>,
    /// How many parts of the changes do not see one another.
    unseen: f32,
    stale: bool,
    /// What the last pass came to.
    sums: Sums,
}

impl PeerLearner {
    /// Steps on some examples; writes what they change.
    fn iterate(&mut self, peer: &mut Peer<'_>, batch: &[u32]) -> Result<(), Error> {
        let Self { data, whole, duals, local, unseen, .. } = self;
        let (width, scale) = (width(data.classes), whole.scale());
        let problem = Problem { scale: scale * *unseen, ..data.problem(scale) };
        let mut entries = 0;
        for &example in batch {
            let (columns, _) = problem.examples.entries(example as usize);
            entries += columns.len();
            for &row in columns {
                local[row as usize * width..][..width].copy_from_slice(peer.matrix().row(row as usize));
            }
        }
        let (mut after, mut gaps) = (vec![0.0; batch.len() * width], vec![0.0; batch.len()]);
        kernel::ascend(problem, batch, local, duals, &mut after, &mut gaps);
        let mut change = vec![0.0; width];
        for (&example, after) in batch.iter().zip(after.chunks_exact(width)) {
            let dual = &mut duals[example as usize * width..][..width];
            for ((change, before), after) in change.iter_mut().zip(dual.iter()).zip(after) {
                *change = scale * (exponential(*after) - exponential(*before));
            }
            dual.copy_from_slice(after);
            peer.write(problem.examples.entries(example as usize), &change)?;
        }
        peer.work(((2 * entries + STEP_PRODUCTS * batch.len()) * width) as u64)
    }
}

impl Learner for PeerLearner {
    fn pass(&mut self, peer: &mut Peer<'_>, _: u32) -> Result<(), Error> {
        for batch in self.share.pass() {
            self.iterate(peer, &batch)?;
            let applied = peer.commit()?;
            peer.work(applied.products)?;
        }
        if self.stale {
            let applied = peer.catch_up()?;
            peer.work(applied.products)?;
        }
        let problem = self.data.problem(self.whole.scale());
        self.sums = kernel::evaluate(problem, 0..self.data.len(), &self.duals, peer.matrix().numbers());
        let products = self.data.entries() + SOFTMAX_PRODUCTS * self.data.len();
        peer.work((products * width(self.data.classes)) as u64)
    }

    fn sums(&mut self, peer: &Peer<'_>) -> Vec<f64> {
        let squares = peers::share_of_squares(peer, peer.matrix().rows());
        vec![self.sums.loss, self.sums.gap, self.sums.correct as f64, squares]
    }

    fn goes_on(&mut self, _: &mut Course, totals: impl FnOnce() -> Result<Vec<f64>, Error>) -> Result<bool, Error> {
        Ok(self.whole.quality(&totals()?).gap > self.whole.gap)
    }
}

#[cfg(test)]
mod tests {
    use super::super::reference;
    use super::super::solver::tests::{examples, rows};
    use super::*;
    use crate::peers::Exchange;
    use hemiola::{Deployment, sim};

    const PEERS: u32 = 3;
    const CLASSES: usize = 4;

    fn config() -> Config {
        Config { gap: 1e-4, lambda: Some(1e-2), epochs: 400, ..Config::default() }
    }

    fn learn(config: &Config, deployment: &Deployment, staleness: u32) -> Fitted {
        let (examples, _) = examples(600, 6, CLASSES);
        let place = Peers { deployment, exchange: Exchange { staleness, fanout: None }, threads: 1 };
        fit(&examples, config, 20, &place, |_| {}).expect("fitted")
    }

    /// In every iteration all peers' steps from the same weights, each peer's one after the other as if there were none but
    /// three times as large ones; then what their dual variables changed, example by example.
    fn sequential(config: &Config) -> Vec<f32> {
        let (examples, _) = examples(600, 6, CLASSES);
        let (width, scale) = (width(CLASSES), (1.0 / (1e-2 * 600.0)) as f32);
        let order = shuffled_labels(600, config.seed);
        let mut weights = vec![0.0f32; 7 * width];
        let mut peers: Vec<_> = (0..PEERS as usize)
            .map(|me| {
                let data = Arranged::new(&examples, &order[200 * me..200 * (me + 1)], true);
                let duals = labels_as_duals(&data);
                (data, duals, Share::of_peer((0..200).collect(), 10, me, config.seed))
            })
            .collect();
        for _ in 0..config.epochs {
            let passes: Vec<Vec<Vec<u32>>> = peers.iter_mut().map(|(.., share)| share.pass()).collect();
            for iteration in 0..10 {
                let read = weights.clone();
                for ((data, duals, _), pass) in peers.iter_mut().zip(&passes) {
                    let problem = Problem { scale: scale * 3.0, ..data.problem(scale) };
                    let mut local = read.clone();
                    for &example in &pass[iteration] {
                        let (mut after, mut gap) = (vec![0.0; width], [0.0]);
                        kernel::ascend(problem, &[example], &mut local, duals, &mut after, &mut gap);
                        let (columns, values) = problem.examples.entries(example as usize);
                        let dual = &mut duals[example as usize * width..][..width];
                        for (&row, x) in columns.iter().zip(values) {
                            for class in 0..width {
                                let change = scale * (exponential(after[class]) - exponential(dual[class]));
                                weights[row as usize * width + class] -= x * change;
                            }
                        }
                        dual.copy_from_slice(&after);
                    }
                }
            }
        }
        weights.chunks(width).flat_map(|row| &row[..CLASSES]).copied().collect()
    }

    #[test]
    fn bsp_gives_the_bits_of_the_sequential_program_on_threads_and_in_the_simulator() {
        let config = Config { epochs: 3, gap: 1e-12, ..config() };
        let expected = sequential(&config);
        let slow = sim::Straggler { node: 1, factor: 3.0 };
        let faults = sim::Faults { stragglers: vec![slow], ..sim::Faults::default() };
        let simulated = Deployment::Sim(sim::Config { faults, ..sim::Config::new(PEERS) });
        for deployment in [Deployment::threads(PEERS), simulated] {
            let found = learn(&config, &deployment, 0).fit;
            assert_eq!(found.weights, expected, "{deployment:?}");
            assert!(found.epochs == 3 && !found.converged);
        }
    }

    #[test]
    fn the_gap_is_true_and_ends_the_fit_however_many_peers() {
        let (_, plain) = examples(600, 6, CLASSES);
        let best = learn(&Config { gap: 1e-6, ..config() }, &Deployment::threads(1), 0).fit;
        for (peers, staleness) in [(1, 0), (2, 0), (4, 0), (3, 1)] {
            let Fitted { fit, epochs, .. } = learn(&config(), &Deployment::sim(peers), staleness);
            let found = format!("{peers} peers, staleness {staleness}: {} after {} epochs", fit.gap, fit.epochs);
            assert!(fit.converged && fit.gap > 0.0, "{found}");
            let objective = reference::objective(&rows(&fit, CLASSES), &plain, 1e-2);
            assert!((objective - fit.objective).abs() < 1e-6, "{found}: {objective}, not {}", fit.objective);
            let above = objective - (best.objective - best.gap);
            assert!(above <= fit.gap + 1e-6, "{found}: {above} above the least");
            let dual =
                |epoch: &Epoch<Quality>| epoch.quality.whole.map_or(f64::NAN, |whole| whole.objective - whole.gap);
            let grows = epochs.windows(2).all(|pair| dual(&pair[1]) > dual(&pair[0]) - 1e-6);
            assert!(staleness > 0 || grows, "{found}: the dual never falls");
        }
    }

    #[test]
    fn what_would_not_be_the_optimum_is_refused() {
        let (examples, _) = examples(60, 6, CLASSES);
        let deployment = Deployment::threads(3);
        let refused = |config: Config, fanout| {
            let place = Peers { deployment: &deployment, exchange: Exchange { staleness: 0, fanout }, threads: 1 };
            fit(&examples, &config, 1, &place, |_| {}).expect_err("refused").to_string()
        };
        assert_eq!(
            refused(config(), Some(1)),
            "without every peer's factors the weights are not those of the dual variables; peers must send to all others"
        );
        assert_eq!(
            refused(Config { epochs: u32::MAX, ..config() }, None),
            "the epochs have more iterations than can be counted; use fewer, or larger minibatches"
        );
    }
}
