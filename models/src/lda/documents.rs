//! What a worker knows of its documents: the topic of every token, and how often each topic occurs in each document.

use super::kernel::Vector;
use super::lists::Lists;
use super::rows::{CountRows, TOPICS_MAX};
use super::share::Share;
use super::{NO_TOPIC, Topic};

/// Numbers are worked on in groups of this many, the width of an AVX register.
pub(super) const LANES: usize = 8;

/// `φ(k)` of all numbers that a topic can have, so that none is out of bounds.
pub(super) type Phi = [f32; 1 << Topic::BITS];

/// Where a topic of a document lies: which part of it, and where in that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) at: usize,
    pub(super) lane: usize,
}

/// How often each topic occurs in each document.
pub(super) trait Counted {
    /// The topics of a document with their counts, among others with the count zero.
    fn counts(&self, document: u32) -> impl Iterator<Item = (Topic, u16)> + '_;

    /// Counts one token more of a topic.
    fn add(&mut self, document: u32, topic: Topic);

    /// Counts one token less of a topic and one more of another, which lies at `spot` if that is known.
    fn reassign(&mut self, document: u32, old: Topic, new: Topic, spot: Option<Spot>);

    /// `Σ n_dk φ(k)`, one token of topic `without` left out. Also how many parts were summed; `sums` has the sum up to
    /// and with each.
    fn weigh<V: Vector>(&self, document: u32, without: Topic, phi: &Phi, sums: &mut [f32]) -> (f32, usize);

    /// The topic of part `at` that `target` falls on.
    fn pick<V: Vector>(&self, document: u32, without: Topic, phi: &Phi, at: usize, target: f32) -> (Topic, Spot);

    /// The address of what says where a document's counts are, to be fetched ahead of those.
    fn finder(&self, document: u32) -> *const u8;

    /// The address and bytes of a document's counts, to be fetched ahead.
    fn place(&self, document: u32) -> (*const u8, usize);
}

/// The two ways to keep counts.
#[derive(Clone, Debug)]
pub(super) enum Counts {
    Lists(Lists),
    Rows(CountRows),
}

/// The documents of one worker.
#[derive(Clone, Debug)]
pub struct Documents {
    pub(super) counts: Counts,
    pub(super) assignments: Vec<Topic>,
    documents: usize,
}

impl Documents {
    /// The documents of `share`, without any topics yet.
    #[must_use]
    pub fn new(share: &Share, topics: usize) -> Self {
        let counts = if topics <= TOPICS_MAX {
            Counts::Rows(CountRows::new(share.lengths.len(), topics))
        } else {
            Counts::Lists(Lists::new(&share.lengths, topics))
        };
        Self { counts, assignments: vec![NO_TOPIC; share.len()], documents: share.lengths.len() }
    }

    /// Gives a token of `document` its first topic.
    pub fn assign(&mut self, document: u32, token: usize, topic: Topic) {
        match &mut self.counts {
            Counts::Lists(lists) => lists.add(document, topic),
            Counts::Rows(rows) => rows.add(document, topic),
        }
        self.assignments[token] = topic;
    }

    /// The topic of every token, as [`Share`] numbers them: all that must be kept to go on from here.
    #[must_use]
    pub fn assignments(&self) -> &[Topic] {
        &self.assignments
    }

    /// Brings counts into the order that depends on the assignments alone. Whoever starts from these then has the same
    /// bits as one who has gone on.
    pub fn sort(&mut self) {
        if let Counts::Lists(lists) = &mut self.counts {
            lists.sort();
        }
    }

    /// Calls `f` with the counts above zero of every document.
    pub(super) fn for_each(&self, mut f: impl FnMut(&[u16])) {
        let mut counts = Vec::new();
        for document in 0..self.documents as u32 {
            counts.clear();
            match &self.counts {
                Counts::Lists(lists) => counts.extend(lists.counts(document).map(|(_, count)| count)),
                Counts::Rows(rows) => counts.extend(rows.counts(document).map(|(_, count)| count)),
            }
            counts.retain(|count| *count > 0);
            f(&counts);
        }
    }
}
