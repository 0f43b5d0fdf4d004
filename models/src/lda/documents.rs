//! What a worker knows of its documents: the topic of every token, and how often each topic occurs in each document.

use super::lists::Lists;
use super::rows::{CountRows, TOPICS_MAX};
use super::share::Share;
use super::topics::Word;
use super::vector::Vector;
use super::{NO_TOPIC, Topic};

/// How often each topic occurs in each document.
pub(super) trait Counted {
    /// Whether only the topics that a document has are looked at. Then a word's shares must be summed over groups of topics
    /// for the others, and tokens are sampled one by one.
    const LISTED: bool;

    /// Where in a document the counts lie that a draw found.
    type Found: Copy;

    /// The topics of a document with their counts, among others with the count zero.
    fn counts(&self, document: u32) -> impl Iterator<Item = (Topic, u16)> + '_;

    /// Counts one token more of a topic.
    fn add(&mut self, document: u32, topic: Topic);

    /// Draws a topic for a token of each of `documents`, no two of which are the same, as if the token had none: where its
    /// share of all weights `(n_dk + α) φ(k)` ends is one of `parts`. `old` are the topics that the tokens have.
    fn draw<V: Vector, const N: usize>(
        &mut self,
        documents: &[u32; N],
        old: &[Topic; N],
        parts: &[f32; N],
        word: &mut Word<'_>,
    ) -> [(Topic, Self::Found); N];

    /// Gives the topic `new`, which is the one drawn or the one that it had, to the token.
    fn settle(&mut self, document: u32, old: Topic, new: Topic, found: Self::Found);

    /// Fetches what says where a document's counts are, ahead of those.
    #[inline(always)]
    fn fetch_place(&self, _: u32) {}

    /// Fetches a document's counts, or the first of them.
    fn fetch(&self, document: u32);
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
