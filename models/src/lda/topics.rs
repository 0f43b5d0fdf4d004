//! What a worker knows of the topics while it goes through words: their totals, and one word's share of each.

use super::Topic;
use super::kernel::TOGETHER;
use super::vector::{FEW, LANES, Lanes, Phi, Vector, locate};
use bytemuck::Pod;

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

/// The totals of the topics, and room for what follows of a word.
#[derive(Clone, Debug)]
pub struct Topics {
    pub(super) priors: Priors,
    /// `βW`.
    pub(super) smoothing: f32,
    /// How many topics there are.
    count: usize,
    /// Of all numbers that a topic can have, so that none is out of bounds; as are those below.
    pub(super) totals: Box<[i32; 1 << Topic::BITS]>,
    phi: Box<Phi>,
    groups: Vec<Lanes>,
    sums: Vec<Lanes>,
}

/// A word that is being sampled: its counts, `φ(k) = (n_wk + β) / (n_k + βW)`, and the totals, which change with them.
pub(super) struct Word<'a> {
    pub(super) priors: Priors,
    smoothing: f32,
    row: &'a mut [f32],
    totals: &'a mut [i32; 1 << Topic::BITS],
    pub(super) phi: &'a mut Phi,
    /// The sums of `phi` over groups of topics, where these are kept.
    groups: &'a mut [Lanes],
    /// The sum of `phi`, where groups are kept.
    pub(super) mass: f32,
    /// Room for the running sums of [`TOGETHER`] documents.
    pub(super) sums: &'a mut [Lanes],
}

impl Topics {
    /// As many topics as there are totals: how many tokens each has.
    #[must_use]
    pub fn new(priors: Priors, totals: &[i32]) -> Self {
        let mut topics = Self {
            priors,
            smoothing: priors.beta * priors.words as f32,
            count: totals.len(),
            totals: boxed(),
            phi: boxed(),
            groups: vec![Lanes::default(); totals.len().div_ceil(GROUP * LANES)],
            // One more for what is not of the document, and what stays infinite.
            sums: vec![Lanes([f32::INFINITY; LANES]); TOGETHER * (1 + totals.len().div_ceil(LANES)).max(FEW)],
        };
        topics.set_totals(totals);
        topics
    }

    /// How many topics there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many tokens each topic has, as far as the worker knows.
    #[must_use]
    pub fn totals(&self) -> &[i32] {
        &self.totals[..self.count]
    }

    /// Takes over totals that others have changed too.
    pub fn set_totals(&mut self, totals: &[i32]) {
        self.totals[..self.count].copy_from_slice(totals);
    }

    /// Counts one token more of a topic.
    pub fn add(&mut self, topic: Topic) {
        self.totals[usize::from(topic)] += 1;
    }

    /// Begins with a word, given its row; whether groups are kept.
    #[inline(always)]
    pub(super) fn open<'a, V: Vector>(&'a mut self, row: &'a mut [f32], grouped: bool) -> Word<'a> {
        let Self { priors, smoothing, ref mut totals, ref mut phi, ref mut groups, .. } = *self;
        let ((whole, left), of_totals) = (row.as_chunks::<LANES>(), totals.as_chunks::<LANES>().0);
        for ((phi, counts), totals) in phi.iter_mut().zip(whole).zip(of_totals) {
            V::of_word(counts, priors.beta, totals, smoothing).store(phi);
        }
        if !left.is_empty() {
            // Topics that there are not have no share.
            let mut counts = [-priors.beta; LANES];
            counts[..left.len()].copy_from_slice(left);
            V::of_word(&counts, priors.beta, &of_totals[whole.len()], smoothing).store(&mut phi[whole.len()]);
        }
        let mut mass = 0.0;
        if grouped {
            let used = row.len().div_ceil(LANES);
            for (group, phi) in phi[..used].chunks(GROUP / LANES).enumerate() {
                let mut sum = V::load(&phi[0]);
                for phi in &phi[1..] {
                    sum = sum.add(V::load(phi));
                }
                let sum = sum.sum();
                groups[group / LANES].0[group % LANES] = sum;
                mass += sum;
            }
        }
        Word { priors, smoothing, row, totals, phi, groups, mass, sums: &mut self.sums }
    }
}

impl Word<'_> {
    /// How many of its tokens have a topic.
    #[inline(always)]
    pub(super) fn count(&self, topic: Topic) -> f32 {
        self.row[usize::from(topic)]
    }

    /// Counts so many tokens more of a topic; whether groups are kept.
    #[inline(always)]
    pub(super) fn change<V: Vector>(&mut self, topic: Topic, by: i32, grouped: bool) {
        let index = usize::from(topic);
        let (count, total) = (self.row[index] + by as f32, self.totals[index] + by);
        self.row[index] = count;
        self.totals[index] = total;
        let phi = (count + self.priors.beta) / (total as f32 + self.smoothing);
        if grouped {
            let (group, change) = (index / GROUP, phi - self.phi[index / LANES].0[index % LANES]);
            self.groups[group / LANES].0[group % LANES] += change;
            self.mass += change;
        }
        V::replace(&mut self.phi[index / LANES], index % LANES, phi);
    }

    /// Whether a token may move from the first topic to the second, which was drawn by counts without the others that are
    /// sampled together with it; behind each topic, how many of those have it. `part` is a number from zero to below one.
    ///
    /// What was drawn has the likelihood `φ` and should have that of `φ` with the others in the counts, so it is a proposal
    /// that the rule of Metropolis and Hastings accepts or not.
    #[cold]
    pub(super) fn accepts(&self, from_to: [(Topic, u8); 2], part: f32) -> bool {
        let [from, to] = from_to.map(|(topic, others)| {
            let index = usize::from(topic);
            let (count, total) = (self.row[index] + f32::from(others), self.totals[index] + i32::from(others));
            let phi = (count + self.priors.beta) / (total as f32 + self.smoothing);
            phi / self.phi[index / LANES].0[index % LANES]
        });
        part * from < to
    }

    /// The topic that `target`, a number below the sum of `phi`, falls on, where groups are kept.
    #[inline(always)]
    pub(super) fn find<V: Vector>(&mut self, target: f32) -> Topic {
        let (group, rest) = find_among::<V>(self.groups, self.sums, target);
        let first = group * (GROUP / LANES);
        let last = self.row.len() - 1;
        let phi = &self.phi[first..(first + GROUP / LANES).min(last / LANES + 1)];
        let (topic, _) = find_among::<V>(phi, self.sums, rest);
        (group * GROUP + topic).min(last) as Topic
    }
}

/// Zeros for all numbers that a topic can have.
fn boxed<T: Pod, const N: usize>() -> Box<[T; N]> {
    vec![T::zeroed(); N].into_boxed_slice().try_into().unwrap_or_else(|_| unreachable!("as long as made"))
}

/// Which of `weights` a number below their sum falls on, and how far into it; `sums` has room for as many sums.
#[inline(always)]
fn find_among<V: Vector>(weights: &[Lanes], sums: &mut [Lanes], target: f32) -> (usize, f32) {
    let sums = &mut sums[..weights.len()];
    let mut all = V::zero();
    for (weights, sum) in weights.iter().zip(&mut *sums) {
        all = all.add(V::load(weights));
        all.store(sum);
    }
    let (spot, rest) = locate(sums.as_chunks::<1>().0, 0, all.prefixes(), target);
    (spot.at * LANES + spot.lane, rest)
}
