//! What every training by peers shares: how they keep together, minibatches of which all have as many, and passes that end
//! with a report.

use crate::epoch::{Course, Epoch, own};
use crate::mf::blocks::shuffle;
use hemiola::factors::{self, Factor, MatrixSchema, Peer};
use hemiola::{Deployment, Error, Observation, Outcome};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

/// How peers keep their replicas together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// How many iterations a peer may be ahead of those who send to it; zero is Bsp.
    pub staleness: u32,
    /// To how many others every peer sends; `None` is to all.
    pub fanout: Option<u32>,
}

impl Exchange {
    /// A matrix of zeros that is exchanged so.
    pub(crate) fn matrix(&self, rows: usize, columns: usize) -> MatrixSchema {
        let Self { staleness, fanout } = *self;
        MatrixSchema { staleness, fanout, ..MatrixSchema::new(rows as u32, columns as u32) }
    }

    /// Whose pairs a replica takes, its own peer among them: as many as a peer has receivers, on average.
    pub(crate) fn senders(&self, peers: u32) -> u32 {
        self.fanout.map_or(peers, |fanout| peers.min(fanout.saturating_add(1)))
    }
}

/// Where peers are.
#[derive(Clone, Copy, Debug)]
pub struct Peers<'a> {
    /// A peer for every worker.
    pub deployment: &'a Deployment,
    /// How they keep together.
    pub exchange: Exchange,
    /// Threads that each computes its factors with.
    pub threads: u32,
}

/// What a training by peers came to.
#[derive(Debug)]
pub struct Trained<Quality> {
    /// The first peer's replica, row by row.
    pub matrix: Vec<f32>,
    /// How far it was after every pass.
    pub epochs: Vec<Epoch<Quality>>,
    /// How the job went.
    pub outcome: Outcome,
}

/// What one peer of a training does.
pub(crate) trait Learner {
    /// A pass over the peer's part of the data, which numbers passes from zero.
    fn pass(&mut self, peer: &mut Peer<'_>, epoch: u32) -> Result<(), Error>;

    /// The peer's part of the numbers that the last pass is judged by. They are added up over all peers.
    fn sums(&mut self, peer: &Peer<'_>) -> Vec<f64>;

    /// Whether to go on after it. What all peers' numbers add up to is waited for only by those who ask; they all come to
    /// the same.
    fn goes_on(&mut self, course: &mut Course, totals: impl FnOnce() -> Result<Vec<f64>, Error>)
    -> Result<bool, Error>;
}

/// Trains for so many passes at most, each peer by what `learner` makes for it, and shows `observe` how far it is after
/// every one: what the peers' numbers add up to, as `judge` makes sense of it.
pub(crate) fn train<L: Learner, Quality: Send>(
    deployment: &Deployment,
    schema: &MatrixSchema,
    epochs: u32,
    learner: impl Fn(&mut Peer<'_>) -> L + Sync,
    judge: impl Fn(&[f64]) -> Quality + Sync,
    mut observe: impl FnMut(&Epoch<Quality>) + Send,
) -> Result<Trained<Quality>, Error> {
    let program = |peer: &mut Peer<'_>| {
        let mut learner = learner(peer);
        let mut course = Course::default();
        for epoch in 0..epochs {
            let began = peer.seconds();
            learner.pass(peer, epoch)?;
            course.train_seconds += peer.seconds() - began;
            let (sums, clock) = (learner.sums(peer), peer.now()?.0);
            let report = peer.report(&course.numbers(&peer.split(), epoch + 1, clock, &sums));
            if !learner.goes_on(&mut course, || Ok(own(&peer.totals(report)?).to_vec()))? {
                break;
            }
        }
        peer.catch_up()?;
        let bytes = || bytemuck::cast_slice(peer.matrix().numbers()).to_vec();
        Ok(if peer.id().index() == 0 { bytes() } else { Vec::new() })
    };
    let mut passed = Vec::new();
    let mut observer = |observation: &Observation| {
        let epoch = Epoch::from_report(observation, deployment.workers() as usize, &judge);
        observe(&epoch);
        passed.push(epoch);
    };
    let mut outcome = factors::run_observed(deployment, schema, &program, &mut observer)?;
    let bytes = std::mem::take(&mut outcome.results[0]);
    let matrix = bytes.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect();
    Ok(Trained { matrix, epochs: passed, outcome })
}

/// In how many iterations peers with minibatches of so many go through things.
pub(crate) fn iterations(count: usize, batch: u32, peers: u32) -> u32 {
    let of_all = u64::from(batch.max(1)) * u64::from(peers.max(1));
    (count as u64).div_ceil(of_all).clamp(1, u64::from(u32::MAX)) as u32
}

/// One peer's part of things: in another order in every pass, and in as many minibatches as everyone's.
pub(crate) struct Share {
    items: Vec<u32>,
    iterations: usize,
    random: Xoshiro256PlusPlus,
}

impl Share {
    /// The part of peer `peer` among `peers` of things that lie in random order.
    pub(crate) fn new(order: &[u32], batch: u32, (peer, peers): (usize, u32), seed: u64) -> Self {
        let at = |peer: usize| order.len() * peer / peers as usize;
        Self::of_peer(order[at(peer)..at(peer + 1)].to_vec(), iterations(order.len(), batch, peers), peer, seed)
    }

    /// Things that are the part of peer `peer` already, for so many iterations.
    pub(crate) fn of_peer(items: Vec<u32>, iterations: u32, peer: usize, seed: u64) -> Self {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(1 + peer as u64));
        Self { items, iterations: iterations as usize, random }
    }

    /// The minibatches of the next pass.
    pub(crate) fn pass(&mut self) -> Vec<Vec<u32>> {
        shuffle(&mut self.items, &mut self.random);
        let at = |iteration: usize| self.items.len() * iteration / self.iterations;
        (0..self.iterations).map(|iteration| self.items[at(iteration)..at(iteration + 1)].to_vec()).collect()
    }
}

/// The squares of the first so many rows of the matrix, as far as adding them up is this peer's part.
pub(crate) fn share_of_squares(peer: &Peer<'_>, rows: usize) -> f64 {
    let at = |peer_: usize| rows * peer_ / peer.peers() as usize;
    let mine = at(peer.id().index())..at(peer.id().index() + 1);
    let squares = |row: usize| peer.matrix().row(row).iter().map(|&number| f64::from(number).powi(2)).sum::<f64>();
    mine.map(squares).sum()
}

/// Room for what of a factor is not zero.
#[derive(Default)]
pub(crate) struct Nonzeros {
    places: Vec<u32>,
    numbers: Vec<f32>,
}

impl Nonzeros {
    /// A factor by its numbers that are not zero; a block writes all of them where that is shorter.
    pub(crate) fn of(&mut self, numbers: &[f32]) -> Factor<'_> {
        self.places.clear();
        self.numbers.clear();
        for (place, &number) in (0..).zip(numbers) {
            if number != 0.0 {
                self.places.push(place);
                self.numbers.push(number);
            }
        }
        Factor::Sparse(&self.places, &self.numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minibatches_have_everything_once_and_everyone_has_as_many() {
        for (count, batch, peers) in [(100, 7, 3), (5, 10, 4), (12, 3, 2), (3, 1, 5)] {
            let order: Vec<u32> = (0..count).rev().collect();
            let mut seen = Vec::new();
            for peer in 0..peers {
                let mut share = Share::new(&order, batch, (peer as usize, peers), 1);
                let (first, second) = (share.pass(), share.pass());
                assert_eq!(first.len(), iterations(count as usize, batch, peers) as usize);
                assert!(first.iter().all(|minibatch| minibatch.len() <= batch as usize));
                let sorted = |pass: &[Vec<u32>]| {
                    let mut all = pass.concat();
                    all.sort_unstable();
                    all
                };
                assert_eq!(sorted(&first), sorted(&second));
                seen.extend(first.concat());
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..count).collect::<Vec<_>>());
        }
    }
}
