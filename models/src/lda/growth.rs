//! How training begins: with few documents, and ever more of them.
//!
//! From topics that are drawn evenly, it takes many passes until each stands for something, and over all documents these
//! cost as much as any others. Over a tenth of the documents they cost a tenth. What comes in afterwards finds topics that
//! it fits into.
//!
//! The first documents must not be too few. Where a topic has hardly more tokens than the prior gives it, `βW`, one large
//! topic is likelier than several small ones, and it stays: with three times as many, training for a hundred topics ended with one that had a
//! fifth of all tokens. The likelihood in training was high and that of held-out words low.

use super::share::Plan;
use super::{Topic, below};
use rand_core::Rng;
use std::ops::Range;

/// By how much the documents grow.
const FACTOR: f64 = 3.0;
/// The passes over so many documents together take as long as this many over all.
const EPOCHS: f64 = 3.0;
/// A worker begins with at least so many documents.
const DOCUMENTS_MIN: f64 = 16.0;

/// A pass before the first epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// The part of the documents that it is over.
    part: f64,
    /// Whether topics are drawn anew, not only given to tokens that have none.
    pub samples: bool,
}

impl Stage {
    /// How many of a worker's documents it is over.
    #[must_use]
    pub fn documents(self, all: usize) -> usize {
        ((all as f64 * self.part).ceil() as usize).min(all)
    }
}

/// The passes before the first epoch if training begins with the part `first` of all documents.
#[must_use]
pub fn stages(first: f32, plan: &Plan) -> Vec<Stage> {
    let mut part = f64::from(first).max(DOCUMENTS_MIN * plan.workers() as f64 / plan.documents().max(1) as f64);
    let mut stages = Vec::new();
    while part < 1.0 {
        stages.extend(std::iter::repeat_n(Stage { part, samples: true }, (EPOCHS / part).ceil() as usize));
        part *= FACTOR;
    }
    stages.push(Stage { part: 1.0, samples: !stages.is_empty() });
    stages
}

/// The first topic of a token: that of one of the `known` tokens of its word, or any if there are none.
pub fn first_topic(known: Range<usize>, assignments: &[Topic], topics: usize, random: &mut impl Rng) -> Topic {
    match known.len() {
        0 => below(topics, random) as Topic,
        count => assignments[known.start + below(count, random)],
    }
}
