//! What a worker knows of the topics while it goes through words: their totals, and one word's share of each.

use super::Topic;
use super::vector::{LANES, Lanes, Phi, Vector, locate};

/// A word's shares are summed over groups of so many topics, so that one can be found without looking at all and
/// changed without summing again.
pub(super) const GROUP: usize = 32;

/// The priors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Priors {
    /// What every topic of a document has before any token.
    pub alpha: f32,
    /// What every word of a topic has before any token.
    pub beta: f32,
    /// How many words there are.
    pub words: usize,
}

/// The totals of the topics, and `φ(k) = (n_wk + β) / (n_k + βW)` of the word that is being sampled.
#[derive(Clone, Debug)]
pub struct Topics {
    pub(super) priors: Priors,
    /// `βW`.
    pub(super) smoothing: f32,
    pub(super) totals: Vec<i32>,
    /// `1 / (n_k + βW)`.
    pub(super) inverse: Vec<f32>,
    pub(super) phi: Box<Phi>,
    pub(super) groups: Vec<Lanes>,
    /// The sum of `phi`.
    pub(super) mass: f32,
    /// Room for running sums.
    pub(super) sums: Vec<Lanes>,
}

impl Topics {
    /// As many topics as there are totals: how many tokens each has.
    #[must_use]
    pub fn new(priors: Priors, totals: &[i32]) -> Self {
        let phi = vec![Lanes::default(); (1 << Topic::BITS) / LANES].into_boxed_slice();
        let mut topics = Self {
            priors,
            smoothing: priors.beta * priors.words as f32,
            totals: Vec::new(),
            inverse: Vec::new(),
            phi: phi.try_into().expect("as long as made"),
            groups: vec![Lanes::default(); totals.len().div_ceil(GROUP * LANES)],
            mass: 0.0,
            // One more for what is not of the document.
            sums: vec![Lanes::default(); 1 + totals.len().div_ceil(LANES)],
        };
        topics.set_totals(totals);
        topics
    }

    /// How many tokens each topic has, as far as the worker knows.
    #[must_use]
    pub fn totals(&self) -> &[i32] {
        &self.totals
    }

    /// Takes over totals that others have changed too.
    pub fn set_totals(&mut self, totals: &[i32]) {
        self.totals.clear();
        self.totals.extend_from_slice(totals);
        self.inverse.clear();
        self.inverse.extend(totals.iter().map(|&total| 1.0 / (total as f32 + self.smoothing)));
        // Whole vectors of them.
        self.inverse.resize(totals.len().next_multiple_of(LANES), 0.0);
    }

    /// Counts one token more of a topic.
    pub fn add(&mut self, topic: Topic) {
        let index = usize::from(topic);
        self.totals[index] += 1;
        self.inverse[index] = 1.0 / (self.totals[index] as f32 + self.smoothing);
    }

    /// Begins with a word, given its row.
    #[inline(always)]
    pub(super) fn open<V: Vector>(&mut self, row: &[f32]) {
        let (beta, (whole, left)) = (self.priors.beta, row.as_chunks::<LANES>());
        let inverse = self.inverse.as_chunks::<LANES>().0;
        for ((phi, counts), inverse) in self.phi.iter_mut().zip(whole).zip(inverse) {
            V::of_word(counts, beta, inverse).store(phi);
        }
        if !left.is_empty() {
            let mut counts = [0.0; LANES];
            counts[..left.len()].copy_from_slice(left);
            // The inverses of topics that there are not are zero.
            V::of_word(&counts, beta, &inverse[whole.len()]).store(&mut self.phi[whole.len()]);
        }
        self.mass = 0.0;
        let used = row.len().div_ceil(LANES);
        for (group, phi) in self.phi[..used].chunks(GROUP / LANES).enumerate() {
            let mut sum = V::load(&phi[0]);
            for phi in &phi[1..] {
                sum = sum.add(V::load(phi));
            }
            let sum = sum.sum();
            self.groups[group / LANES].0[group % LANES] = sum;
            self.mass += sum;
        }
    }

    /// `φ` of a topic.
    #[inline(always)]
    pub(super) fn phi(&self, topic: usize) -> f32 {
        self.phi[topic / LANES].0[topic % LANES]
    }

    /// Changes `φ` of a topic, given what it was.
    #[inline(always)]
    pub(super) fn set_phi<V: Vector>(&mut self, topic: usize, from: f32, to: f32) {
        V::replace(&mut self.phi[topic / LANES], topic % LANES, to);
        let group = topic / GROUP;
        self.groups[group / LANES].0[group % LANES] += to - from;
        self.mass += to - from;
    }

    /// The topic other than `without` that `target`, a number below the sum of their `phi`, falls on.
    #[inline(always)]
    pub(super) fn find<V: Vector>(&mut self, target: f32, without: usize) -> Topic {
        let known = self.phi(without);
        self.set_phi::<V>(without, known, 0.0);
        let (group, rest) = find_among::<V>(&self.groups, &mut self.sums, target);
        let first = group * (GROUP / LANES);
        let last = self.totals.len() - 1;
        let phi = &self.phi[first..(first + GROUP / LANES).min(last / LANES + 1)];
        let (topic, _) = find_among::<V>(phi, &mut self.sums, rest);
        self.set_phi::<V>(without, 0.0, known);
        (group * GROUP + topic).min(last) as Topic
    }
}

/// Which of `weights` a number below their sum falls on, and how far into it; `sums` has room for as many sums.
#[inline(always)]
fn find_among<V: Vector>(weights: &[Lanes], sums: &mut [Lanes], target: f32) -> (usize, f32) {
    let sums = &mut sums[..weights.len()];
    let mut all = V::load(&weights[0]);
    all.store(&mut sums[0]);
    for (weights, sum) in weights[1..].iter().zip(&mut sums[1..]) {
        all = all.add(V::load(weights));
        all.store(sum);
    }
    let (spot, rest) = locate(sums, all.prefixes(), target);
    (spot.at * LANES + spot.lane, rest)
}
