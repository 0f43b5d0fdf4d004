//! What a worker knows of its documents: the topic of every token, and how often each topic occurs in each document.

use super::lists::Lists;
use super::rows::{CountRows, TOPICS_MAX};
use super::share::Share;
use super::vector::{Lanes, Phi, Spot, Vector};
use super::{NO_TOPIC, Topic};

/// How often each topic occurs in each document.
pub(super) trait Counted {
    /// The topics of a document with their counts, among others with the count zero.
    fn counts(&self, document: u32) -> impl Iterator<Item = (Topic, u16)> + '_;

    /// Counts one token more of a topic.
    fn add(&mut self, document: u32, topic: Topic);

    /// Counts one token less of the topic `old`, which lies at `from`, and one more of another, which lies at `to` if that
    /// is known.
    fn reassign(&mut self, document: u32, old: (Topic, Spot), new: Topic, to: Option<Spot>);

    /// The running sums of `n_dk φ(k)`, topic `without` left out: all of them, how many there are in `sums`, and where
    /// that topic lies.
    fn weigh<V: Vector>(&self, document: u32, without: Topic, phi: &Phi, sums: &mut [Lanes]) -> (V, usize, Spot);

    /// The topic that lies somewhere, and its count.
    fn at(&self, document: u32, spot: Spot) -> (Topic, u16);

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

    /// The documents of `share` with the topics that its tokens have, where these are not [`NO_TOPIC`].
    #[must_use]
    pub fn with(share: &Share, topics: usize, assignments: &[Topic]) -> Self {
        let mut documents = Self::new(share, topics);
        for (token, (&document, &topic)) in share.documents.iter().zip(assignments).enumerate() {
            if topic != NO_TOPIC {
                documents.assign(document, token, topic);
            }
        }
        documents.sort();
        documents
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
