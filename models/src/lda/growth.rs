//! How training begins: with few documents, and ever more of them.
//!
//! From topics that are drawn evenly, it takes many passes until each stands for something, and over all documents these
//! cost as much as any others. Over a third of the documents they cost a third, and bring the topics nearly as far. What comes in
//! afterwards finds topics that it fits into.
//!
//! The first documents must not be too few. Where a topic has hardly more tokens than the prior gives it, `βW`, one large
//! topic is likelier than several small ones, and it stays: with three times as many, training for a hundred topics ended
//! with one that had a fifth of all tokens. The likelihood in training was high and that of held-out words low.
//! With 0.3 of twenty thousand documents, 45 times as many, a hundred topics were as likely after 4.7 seconds as after 8.6
//! without, and a thousand after 16 as after 42; but 150 epochs later held-out words were less likely by 0.04, and of the
//! thousand by 0.01. With half of them a thousand topics were after 24 processor seconds where they had not been after 33
//! without (-9.94 and -10.10 a token), and held-out words no less likely at the end than tomotopy's (-7.145 and -7.155). Hence
//! training begins with half of the documents for many topics, and with all for few, unless told otherwise.
//!
//! Proposals take more passes, and those over few documents gain more: with 0.3 of them a thousand topics were at -9.954
//! after 12 seconds, with half after about 40, and held-out words after 800 passes at -7.142. So they begin with that.

use super::rows::TOPICS_MAX;
use super::share::Plan;
use super::{Sampler, Topic, below};
use rand_core::Rng;
use std::ops::Range;

/// By how much the documents grow.
const FACTOR: f64 = 4.0;
/// Passes over the first documents: what they do not do is left to passes that cost more.
const PASSES: usize = 80;
/// Those over more of the documents take as long as so many over all.
const EPOCHS: f64 = 3.0;
/// A worker begins with at least so many documents.
const DOCUMENTS_MIN: f64 = 16.0;

/// The part of the documents to begin with for many topics, and how many times the tokens that the prior gives a topic each
/// must have there.
const HALF: (f32, f32) = (0.5, 6.0);
/// The same for proposals.
const LESS: (f32, f32) = (0.3, 4.0);

/// The part of the documents to begin with unless told otherwise, of so many tokens and for so many topics, to each of which
/// the prior gives so many tokens.
#[must_use]
pub fn usual_part(sampler: Sampler, tokens: usize, topics: usize, by_prior: f32) -> f32 {
    let parts = if sampler == Sampler::MetropolisHastings { &[LESS, HALF][..] } else { &[HALF] };
    let enough = |(part, times): &&(f32, f32)| part * tokens as f32 >= times * by_prior * topics as f32;
    parts.iter().find(|part| topics > TOPICS_MAX && enough(part)).map_or(1.0, |(part, _)| *part)
}

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
        let passes = if stages.is_empty() { PASSES } else { (EPOCHS / part).ceil() as usize };
        stages.extend(std::iter::repeat_n(Stage { part, samples: true }, passes));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Names;
    use crate::corpus::Corpus;

    #[test]
    fn many_topics_begin_with_half_of_the_documents_if_those_are_enough() {
        let usual_part = |tokens, topics| usual_part(Sampler::Sparse, tokens, topics, 200.0);
        assert_eq!(usual_part(3_000_000, 1000), 0.5);
        assert_eq!(usual_part(3_000_000, 100), 1.0, "so few topics come soon");
        assert_eq!(usual_part(1_000_000, 1000), 1.0, "one topic would swallow others");
    }

    #[test]
    fn proposals_begin_with_fewer() {
        let usual_part = |tokens, topics| usual_part(Sampler::MetropolisHastings, tokens, topics, 200.0);
        assert_eq!(usual_part(3_000_000, 1000), 0.3);
        assert_eq!(usual_part(2_500_000, 1000), 0.5);
        assert_eq!(usual_part(2_000_000, 1000), 1.0);
        assert_eq!(usual_part(3_000_000, 100), 1.0);
    }

    #[test]
    fn the_first_documents_have_most_passes_and_the_last_has_all() {
        let mut vocabulary = Names::default();
        vocabulary.intern("word").expect("room");
        let mut corpus = Corpus::new(vocabulary);
        (0..1000).for_each(|_| corpus.push([0]));
        let plan = Plan::new(&corpus, 2, 1, 1);
        let passes = |first: f32| {
            let documents: Vec<usize> = stages(first, &plan).iter().map(|stage| stage.documents(500)).collect();
            documents.chunk_by(|a, b| a == b).map(|same| (same[0], same.len())).collect::<Vec<_>>()
        };
        assert_eq!(passes(1.0), [(500, 1)]);
        assert_eq!(passes(0.3), [(151, PASSES), (500, 1)]);
        assert_eq!(passes(0.06), [(30, PASSES), (120, 13), (480, 4), (500, 1)]);
        assert_eq!(passes(0.001), [(16, PASSES), (64, 24), (256, 6), (500, 1)], "so few would not do");
        assert!(!stages(1.0, &plan)[0].samples, "topics are only given to tokens");
    }
}
