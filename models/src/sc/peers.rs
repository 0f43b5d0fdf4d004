//! Learns a dictionary by sufficient factor broadcasting: peers that exchange the codes of their patches and what is wrong
//! with them.
//!
//! An iteration is a batch of every peer; atoms move by the mean over all batches that reach them, each by its own step
//! size, which a peer finds from the codes it has met. Then atoms that are too long are shortened: the proximal operator. An
//! atom that has not been used begins anew by a pair like any other, which is for one of the peers to write.

use super::factors::{Sums, prox};
use super::train::{Config, Memory, Quality, Task, TrainError, judge};
use crate::epoch::{Course, Epoch};
use crate::patches::Patches;
use crate::peers::{self, Learner, Nonzeros, Peers, Share, Trained};
use hemiola::Error;
use hemiola::factors::Peer;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Learns atoms from patches, of which the last tenth is held out; shows `observe` how far it is after every epoch. The
/// atoms are the rows of the matrix.
///
/// # Errors
/// If there are too few patches, training diverges, or the job fails.
pub fn train(
    config: &Config,
    place: &Peers<'_>,
    patches: &Patches,
    observe: impl FnMut(&Epoch<Quality>) + Send,
) -> Result<Trained<Quality>, TrainError> {
    let (task, held_out) = Task::new(config, patches, place.threads)?;
    let (count, size) = (place.deployment.workers(), task.size);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(config.seed);
    let (atoms, order) = (task.begin(&mut random), task.order(&mut random));
    if config.epochs.checked_mul(peers::iterations(order.len(), config.batch, count)).is_none() {
        return Err(TrainError::Iterations);
    }
    let schema = place.exchange.matrix(config.atoms, size);
    let learner = |peer: &mut Peer<'_>| {
        let me = peer.id().index();
        peer.begin_with(&atoms);
        peer.prox(move |matrix, _| prox(matrix.numbers_mut(), size));
        let all = held_out.len() / size;
        PeerLearner {
            task,
            held_out: &held_out[all * me / count as usize * size..all * (me + 1) / count as usize * size],
            share: Share::new(&order, config.batch, (me, count), config.seed),
            part: 1.0 / place.exchange.senders(count) as f32,
            memory: Memory::new(config.atoms),
            random: Xoshiro256PlusPlus::seed_from_u64(config.seed ^ (me as u64 + 1)),
            met: (Sums::default(), 0),
        }
    };
    Ok(peers::train(place.deployment, &schema, config.epochs, learner, Quality::from_sums, observe)?)
}

/// What one peer of the job does.
struct PeerLearner<'a> {
    task: Task<'a>,
    held_out: &'a [f32],
    share: Share,
    /// The peer's part of a step.
    part: f32,
    memory: Memory,
    random: Xoshiro256PlusPlus,
    /// What the atoms made of the patches of a pass, and how many these were.
    met: (Sums, usize),
}

impl PeerLearner<'_> {
    /// Begins atoms anew that no patch of the pass has used; of every atom it is up to one peer.
    fn begin_unused_anew(&mut self, peer: &mut Peer<'_>) -> Result<(), Error> {
        let (me, peers) = (peer.id().index(), peer.peers() as usize);
        for atom in (me..self.task.config.atoms).step_by(peers) {
            if self.memory.used[atom] {
                continue;
            }
            if let Some(mut fresh) = self.task.fresh(&mut self.random) {
                fresh.iter_mut().zip(peer.matrix().row(atom)).for_each(|(fresh, old)| *fresh = old - *fresh);
                peer.write((&[atom as u32][..], &[1.0][..]), &fresh)?;
            }
        }
        Ok(())
    }
}

impl Learner for PeerLearner<'_> {
    fn pass(&mut self, peer: &mut Peer<'_>, epoch: u32) -> Result<(), Error> {
        let Task { config, size, .. } = self.task;
        let rate = config.step.at_epoch(epoch);
        let minibatches = self.share.pass();
        let mut nonzeros = Nonzeros::default();
        self.memory.used.fill(false);
        self.met = (Sums::default(), 0);
        for (iteration, batch) in minibatches.iter().enumerate() {
            let found = self.task.factors(peer.matrix().numbers(), batch);
            let rates = self.memory.rates(&found, batch.len(), self.part * rate);
            let mut sums = Sums::default();
            for mut factors in found {
                sums.add(factors.sums);
                let codes = factors.vs.chunks_exact_mut(config.atoms);
                for (code, wrong) in codes.zip(factors.us.chunks_exact(size)) {
                    code.iter_mut().zip(&rates).for_each(|(number, rate)| *number *= rate);
                    peer.write(nonzeros.of(code), wrong)?;
                }
            }
            if iteration + 1 == minibatches.len() {
                self.begin_unused_anew(peer)?;
            }
            self.met.0.add(sums);
            self.met.1 += batch.len();
            peer.work(self.task.products(batch.len(), sums.moves))?;
            let applied = peer.commit()?;
            peer.work(applied.products + 2 * (config.atoms * size) as u64)?;
        }
        if !self.met.0.objective(config.sparsity).is_finite() {
            return Err(Error::program(TrainError::Diverged { epoch: epoch + 1, rate }));
        }
        Ok(())
    }

    fn sums(&mut self, peer: &Peer<'_>) -> Vec<f64> {
        let Task { config, size, workers, .. } = self.task;
        let tested = judge(peer.matrix().numbers(), config.sparsity, size, self.held_out, workers);
        Quality::sums(self.met, (tested, self.held_out.len() / size), config.sparsity)
    }

    fn goes_on(
        &mut self,
        course: &mut Course,
        totals: impl FnOnce() -> Result<Vec<f64>, Error>,
    ) -> Result<bool, Error> {
        course.goes_on_by(self.task.config.patience, || Ok(Quality::from_sums(&totals()?).test_objective))
    }
}

#[cfg(test)]
mod tests {
    use super::super::train::tests::bars;
    use super::*;
    use crate::peers::Exchange;
    use hemiola::{Deployment, sim};

    const PEERS: u32 = 3;

    fn config() -> Config {
        Config { atoms: 10, epochs: 4, batch: 30, sparsity: 0.05, ..Config::default() }
    }

    fn learn(config: &Config, deployment: &Deployment, exchange: Exchange, threads: u32) -> Trained<Quality> {
        let place = Peers { deployment, exchange, threads };
        train(config, &place, &bars(1000), |_| {}).expect("trained")
    }

    /// In every iteration the codes of all peers' patches by the same atoms, then each product by itself, and then the
    /// atoms that are too long.
    fn sequential(config: &Config) -> Vec<f32> {
        let patches = bars(1000);
        let (task, _) = Task::new(config, &patches, 1).expect("enough");
        let mut random = Xoshiro256PlusPlus::seed_from_u64(config.seed);
        let (mut atoms, order) = (task.begin(&mut random), task.order(&mut random));
        let mut peers: Vec<_> = (0..PEERS as usize)
            .map(|me| {
                let random = Xoshiro256PlusPlus::seed_from_u64(config.seed ^ (me as u64 + 1));
                (Share::new(&order, config.batch, (me, PEERS), config.seed), Memory::new(config.atoms), random)
            })
            .collect();
        for epoch in 0..config.epochs {
            let passes: Vec<Vec<Vec<u32>>> = peers.iter_mut().map(|(share, ..)| share.pass()).collect();
            peers.iter_mut().for_each(|(_, memory, _)| memory.used.fill(false));
            for iteration in 0..passes[0].len() {
                let read = atoms.clone();
                for (me, (_, memory, random)) in peers.iter_mut().enumerate() {
                    let batch = &passes[me][iteration];
                    let found = task.factors(&read, batch);
                    let rates = memory.rates(&found, batch.len(), 1.0 / PEERS as f32 * config.step.at_epoch(epoch));
                    for factors in found {
                        for (code, wrong) in factors.vs.chunks(config.atoms).zip(factors.us.chunks(task.size)) {
                            for (atom, (number, rate)) in atoms.chunks_mut(task.size).zip(code.iter().zip(&rates)) {
                                atom.iter_mut().zip(wrong).for_each(|(pixel, wrong)| *pixel -= number * rate * wrong);
                            }
                        }
                    }
                    for atom in (me..config.atoms).step_by(PEERS as usize) {
                        if iteration + 1 == passes[me].len() && !memory.used[atom] {
                            let fresh = task.fresh(random).expect("there are patches");
                            let place = atom * task.size..(atom + 1) * task.size;
                            let change = atoms[place.clone()].iter_mut().zip(&read[place]).zip(fresh);
                            change.for_each(|((pixel, old), fresh)| *pixel -= old - fresh);
                        }
                    }
                }
                prox(&mut atoms, task.size);
            }
        }
        atoms
    }

    #[test]
    fn bsp_gives_the_bits_of_the_sequential_program_on_threads_and_in_the_simulator() {
        // So sparse that some atoms are not used.
        for config in [config(), Config { sparsity: 1.0, atoms: 40, ..config() }] {
            let expected = sequential(&config);
            let slow = sim::Straggler { node: 1, factor: 3.0 };
            let faults = sim::Faults { stragglers: vec![slow], ..sim::Faults::default() };
            let simulated = Deployment::Sim(sim::Config { faults, ..sim::Config::new(PEERS) });
            let threads = Deployment::threads(PEERS);
            for (deployment, threads) in [(&threads, 1), (&threads, 2), (&simulated, 1)] {
                let found = learn(&config, deployment, Exchange::default(), threads).matrix;
                assert_eq!(found, expected, "{deployment:?}");
            }
        }
    }

    #[test]
    fn the_parts_of_patches_are_found_with_staleness_and_few_receivers_too() {
        for (staleness, fanout) in [(0, None), (2, None), (0, Some(1)), (1, Some(1))] {
            let config = Config { epochs: 20, ..config() };
            let found = learn(&config, &Deployment::sim(PEERS), Exchange { staleness, fanout }, 1);
            let last = found.epochs.last().expect("epochs").quality;
            assert!(last.test_lost < 0.1, "{last:?} with staleness {staleness} and fan-out {fanout:?}");
            let long = |atom: &[f32]| atom.iter().map(|number| number * number).sum::<f32>() > 1.0001;
            assert!(!found.matrix.chunks(16).any(long));
        }
    }

    #[test]
    fn patience_ends_and_too_many_iterations_are_refused() {
        let impatient = Config { patience: Some(1), epochs: 200, ..config() };
        assert!(learn(&impatient, &Deployment::threads(PEERS), Exchange::default(), 1).epochs.len() < 200);
        let deployment = Deployment::threads(2);
        let place = Peers { deployment: &deployment, exchange: Exchange::default(), threads: 1 };
        let many = Config { epochs: u32::MAX, batch: 1, ..config() };
        let refused = train(&many, &place, &bars(100), |_| {}).expect_err("refused").to_string();
        assert_eq!(refused, "the epochs have more iterations than can be counted; use fewer, or larger batches");
    }
}
