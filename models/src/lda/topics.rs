//! What a worker knows of the topics while it goes through words: their totals, and one word's share of each.

use super::Topic;
use super::documents::{LANES, Phi};
use super::kernel::Vector;

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
    pub(super) groups: Vec<f32>,
    /// The sum of `phi`.
    pub(super) mass: f32,
    /// Room for the sums over the blocks of a document.
    pub(super) sums: Vec<f32>,
}

impl Topics {
    /// As many topics as there are totals: how many tokens each has.
    #[must_use]
    pub fn new(priors: Priors, totals: &[i32]) -> Self {
        let phi = vec![0.0; 1 << Topic::BITS].into_boxed_slice();
        let mut topics = Self {
            priors,
            smoothing: priors.beta * priors.words as f32,
            totals: Vec::new(),
            inverse: Vec::new(),
            phi: phi.try_into().expect("as long as made"),
            groups: vec![0.0; totals.len().div_ceil(GROUP)],
            mass: 0.0,
            sums: vec![0.0; totals.len().div_ceil(LANES)],
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
    }

    /// Counts one token more of a topic.
    pub fn add(&mut self, topic: Topic) {
        let index = usize::from(topic);
        self.totals[index] += 1;
        self.inverse[index] = 1.0 / (self.totals[index] as f32 + self.smoothing);
    }

    /// Begins with a word, given its row.
    #[inline(always)]
    pub(super) fn open(&mut self, row: &[f32]) {
        let beta = self.priors.beta;
        for ((phi, &count), &inverse) in self.phi.iter_mut().zip(row).zip(&self.inverse) {
            *phi = (count + beta) * inverse;
        }
        self.mass = 0.0;
        for (group, phi) in self.groups.iter_mut().zip(self.phi[..row.len()].chunks(GROUP)) {
            let mut lanes = [0.0; 8];
            for part in phi.chunks(8) {
                lanes.iter_mut().zip(part).for_each(|(lane, phi)| *lane += phi);
            }
            *group = lanes.sum();
            self.mass += *group;
        }
    }

    /// `φ` of a topic were its counts such.
    #[inline(always)]
    pub(super) fn share(&self, count: f32, total: i32) -> f32 {
        (count + self.priors.beta) / (total as f32 + self.smoothing)
    }

    /// The topic that `target`, a number below the sum of `phi`, falls on.
    #[inline(always)]
    pub(super) fn find(&self, mut target: f32) -> Topic {
        let mut group = 0;
        while group + 1 < self.groups.len() && target >= self.groups[group] {
            target -= self.groups[group];
            group += 1;
        }
        let first = group * GROUP;
        let last = (first + GROUP).min(self.totals.len()) - 1;
        let mut topic = first;
        while topic < last && target >= self.phi[topic] {
            target -= self.phi[topic];
            topic += 1;
        }
        topic as Topic
    }
}
