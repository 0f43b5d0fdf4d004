//! Learns a projection by sufficient factor broadcasting: peers that exchange the factors of their batches' pairs.
//!
//! An iteration is a batch of every peer, in which pairs are found and their factors computed as on one machine. The
//! projection moves by the mean over all batches that reach it, so the size of steps does not depend on how many there are.

use super::neighbours::Neighbours;
use super::pairs::Pair;
use super::train::{Beginning, Config, JUDGED, Quality, Task, TrainError, project};
use crate::epoch::{Course, Epoch};
use crate::examples::Examples;
use crate::peers::{self, Learner, Nonzeros, Peers, Share};
use hemiola::factors::Peer;
use hemiola::{Error, Outcome};

/// A learnt projection, where it began, and how that went.
#[derive(Debug)]
pub struct Trained {
    /// Row by row, with a row for each dimension: the first peer's replica.
    pub projection: Vec<f32>,
    /// As many principal directions, likewise.
    pub principal: Vec<f32>,
    /// How far it was after every epoch.
    pub epochs: Vec<Epoch<Quality>>,
    /// How the job went.
    pub outcome: Outcome,
}

/// Learns a projection from pairs, or from labels if there are none; shows `observe` how far it is after every epoch.
///
/// # Errors
/// If the examples are not such that they can be told apart, training diverges, or the job fails.
pub fn train(
    config: &Config,
    place: &Peers<'_>,
    (examples, test): (&Examples, Option<&Examples>),
    pairs: Option<&[Pair]>,
    observe: impl FnMut(&Epoch<Quality>) + Send,
) -> Result<Trained, TrainError> {
    let task = Task { config, examples, pairs, workers: place.threads };
    let count = place.deployment.workers();
    let Beginning { principal, projection, order, batch, rate, .. } = task.begin()?;
    if config.epochs.checked_mul(peers::iterations(order.len(), batch, count)).is_none() {
        return Err(TrainError::Iterations);
    }
    let schema = place.exchange.matrix(config.dimension, examples.features());
    let learner = |peer: &mut Peer<'_>| {
        peer.begin_with(&projection);
        PeerLearner {
            task,
            test,
            share: Share::new(&order, batch, (peer.id().index(), count), config.seed),
            rate: rate / place.exchange.senders(count) as f32,
            met: (0.0, 0),
            nonzeros: Nonzeros::default(),
        }
    };
    let trained = peers::train(place.deployment, &schema, config.epochs, learner, Quality::from_sums, observe)?;
    let peers::Trained { matrix, epochs, outcome } = trained;
    Ok(Trained { projection: matrix, principal, epochs, outcome })
}

/// What one peer of the job does.
struct PeerLearner<'a> {
    task: Task<'a>,
    test: Option<&'a Examples>,
    share: Share,
    /// The step size that is right for pairs of mean squared length, as far as it is this peer's.
    rate: f32,
    /// What the pairs of a pass cost, and how many there were.
    met: (f64, usize),
    nonzeros: Nonzeros,
}

impl Learner for PeerLearner<'_> {
    fn pass(&mut self, peer: &mut Peer<'_>, epoch: u32) -> Result<(), Error> {
        let Task { config, examples, pairs, .. } = self.task;
        let (dimension, features) = (config.dimension, examples.features());
        self.met = (0.0, 0);
        for batch in self.share.pass() {
            let found = self.task.factors(peer.matrix().numbers(), &batch);
            let count = found.iter().map(|factors| factors.us.len() / dimension).sum::<usize>();
            let rate = self.rate * config.step.at_epoch(epoch) / count.max(1) as f32;
            for mut factors in found {
                self.met.0 += factors.cost;
                factors.us.iter_mut().for_each(|number| *number *= rate);
                for (u, v) in factors.us.chunks_exact(dimension).zip(factors.vs.chunks_exact(features)) {
                    // Dissimilar pairs that are far enough apart change nothing.
                    if u.iter().any(|number| *number != 0.0) {
                        peer.write(u, self.nonzeros.of(v))?;
                    }
                }
            }
            self.met.1 += count;
            let mining = if pairs.is_some() { 0 } else { batch.len() * (batch.len() + features) };
            peer.work(((mining + count * features) * dimension) as u64)?;
            let applied = peer.commit()?;
            peer.work(applied.products)?;
        }
        self.task.check(self.met.0, peer.matrix().numbers(), epoch).map_err(Error::program)
    }

    fn sums(&mut self, peer: &Peer<'_>) -> Vec<f64> {
        let Task { config, examples, workers, .. } = self.task;
        let (mut right, mut judged) = (0.0, 0);
        if let Some(test) = self.test {
            let (matrix, features, dimension) = (peer.matrix().numbers(), examples.features(), config.dimension);
            let asked = project(matrix, features, test, JUDGED);
            let count = asked.len() / dimension;
            let at = |peer: usize, peers: u32| count * peer / peers as usize;
            let mine = at(peer.id().index(), peer.peers())..at(peer.id().index() + 1, peer.peers());
            judged = mine.len();
            if judged > 0 {
                let known = project(matrix, features, examples, examples.len());
                let neighbours = Neighbours::new(&known, dimension, examples.labels());
                let asked = &asked[mine.start * dimension..mine.end * dimension];
                let accuracy = neighbours.accuracy(asked, &test.labels()[mine], config.neighbours, workers);
                right = accuracy * judged as f64;
            }
        }
        vec![self.met.0, self.met.1 as f64, right, judged as f64]
    }

    fn goes_on(
        &mut self,
        course: &mut Course,
        totals: impl FnOnce() -> Result<Vec<f64>, Error>,
    ) -> Result<bool, Error> {
        course.goes_on_by(self.task.config.patience, || Ok(Quality::from_sums(&totals()?).test_error()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::factors::factors;
    use super::super::train::tests::examples;
    use super::*;
    use crate::peers::Exchange;
    use hemiola::{Deployment, sim};

    const PEERS: u32 = 3;

    fn config() -> Config {
        Config { dimension: 3, batch: Some(50), epochs: 6, ..Config::default() }
    }

    fn pairs() -> Vec<Pair> {
        let pair = |at: u32| {
            let (one, other) = (at % 300, (at * 7 + at / 300) % 300);
            Pair { one, other, similar: one % 2 == other % 2 }
        };
        (0..1000).map(pair).collect()
    }

    fn learn(
        config: &Config,
        deployment: &Deployment,
        exchange: Exchange,
        threads: u32,
        pairs: Option<&[Pair]>,
    ) -> Trained {
        let (set, test) = (examples(300, 1), examples(100, 2));
        let place = Peers { deployment, exchange, threads };
        train(config, &place, (&set, Some(&test)), pairs, |_| {}).expect("trained")
    }

    /// In every iteration the factors of all peers' pairs on the same projection, and then each product by itself.
    fn sequential(config: &Config, pairs: &[Pair]) -> Vec<f32> {
        let set = examples(300, 1);
        let task = Task { config, examples: &set, pairs: Some(pairs), workers: 1 };
        let Beginning { mut projection, order, batch, rate, .. } = task.begin().expect("begins");
        let share = |peer: usize| Share::new(&order, batch, (peer, PEERS), config.seed);
        let mut shares: Vec<Share> = (0..PEERS as usize).map(share).collect();
        for epoch in 0..config.epochs {
            let passes: Vec<Vec<Vec<u32>>> = shares.iter_mut().map(Share::pass).collect();
            for iteration in 0..passes[0].len() {
                let read = projection.clone();
                for pass in &passes {
                    let batch = &pass[iteration];
                    for &at in batch {
                        let pair = pairs[at as usize];
                        let mut difference = vec![0.0; 4];
                        for (example, sign) in [(pair.one, 1.0), (pair.other, -1.0)] {
                            let example = set.example(example as usize);
                            let entries = example.columns.iter().zip(example.values);
                            entries.for_each(|(&column, value)| difference[column as usize] += sign * value);
                        }
                        let found = factors(&read, 4, difference, &[pair.similar], config.weight);
                        let size = rate / PEERS as f32 * config.step.at_epoch(epoch) / batch.len() as f32;
                        for (row, u) in projection.chunks_exact_mut(4).zip(&found.us) {
                            row.iter_mut().zip(&found.vs).for_each(|(number, v)| *number -= u * size * v);
                        }
                    }
                }
            }
        }
        projection
    }

    #[test]
    fn bsp_gives_the_bits_of_the_sequential_program_on_threads_and_in_the_simulator() {
        let pairs = pairs();
        let expected = sequential(&config(), &pairs);
        let slow = sim::Straggler { node: 1, factor: 3.0 };
        let faults = sim::Faults { stragglers: vec![slow], ..sim::Faults::default() };
        let simulated = Deployment::Sim(sim::Config { faults, ..sim::Config::new(PEERS) });
        for (deployment, threads) in [(Deployment::threads(PEERS), 1), (Deployment::threads(PEERS), 2), (simulated, 1)]
        {
            let found = learn(&config(), &deployment, Exchange::default(), threads, Some(&pairs));
            assert_eq!(found.projection, expected, "{deployment:?}");
        }
    }

    #[test]
    fn pairs_found_by_labels_are_the_same_on_every_driver_and_teach_neighbours() {
        let config = Config { epochs: 30, ..config() };
        let found = learn(&config, &Deployment::threads(PEERS), Exchange::default(), 1, None);
        let last = found.epochs.last().expect("epochs").quality;
        assert!(last.test_accuracy.expect("held out") > 0.9, "{last:?}");
        assert_eq!(found.projection, learn(&config, &Deployment::sim(PEERS), Exchange::default(), 2, None).projection);
    }

    #[test]
    fn staleness_and_few_receivers_learn_too_and_patience_ends() {
        let config = Config { epochs: 30, ..config() };
        for (staleness, fanout) in [(2, None), (0, Some(1)), (1, Some(1))] {
            let exchange = Exchange { staleness, fanout };
            let found = learn(&config, &Deployment::sim(PEERS), exchange, 1, None);
            let accuracy = found.epochs.last().expect("epochs").quality.test_accuracy.expect("held out");
            assert!(accuracy > 0.8, "{accuracy} with staleness {staleness} and fan-out {fanout:?}");
        }
        let impatient = Config { patience: Some(1), epochs: 100, ..config };
        let found = learn(&impatient, &Deployment::threads(PEERS), Exchange::default(), 1, None);
        assert!(found.epochs.len() < 100, "{}", found.epochs.len());
    }

    #[test]
    fn what_cannot_be_learnt_is_refused() {
        let set = examples(50, 1);
        let deployment = Deployment::threads(2);
        let refused = |config: Config, fanout| {
            let place = Peers { deployment: &deployment, exchange: Exchange { staleness: 0, fanout }, threads: 1 };
            train(&config, &place, (&set, None), None, |_| {}).expect_err("refused").to_string()
        };
        let many = Config { epochs: u32::MAX, batch: Some(2), ..config() };
        assert_eq!(
            refused(many, None),
            "the epochs have more iterations than can be counted; use fewer, or larger batches"
        );
        assert_eq!(refused(config(), Some(2)), "2 peers cannot send to 2 others each; the fan-out is from 1 to 1");
        let fast = Config { step: crate::StepSize::Constant { rate: 1e30 }, ..config() };
        assert!(refused(fast, None).starts_with("the cost is no longer a number in epoch"), "{}", refused(fast, None));
    }
}
