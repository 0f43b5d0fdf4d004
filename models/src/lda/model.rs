//! A trained topic model: its topics' words, the topics of documents, and how well it predicts words.

mod directory;
mod inference;

pub use inference::{HeldOut, Inference};
use serde_json::Value;

use crate::Names;

/// A trained topic model: how often each word was in each topic, with the vocabulary it was trained on.
///
/// The probability of word `w` in topic `k` is `(n(w, k) + beta) / (n(k) + words * beta)`.
#[derive(Clone, Debug, PartialEq)]
pub struct LdaModel {
    /// The words, in the order of their counts.
    pub vocabulary: Names,
    /// How often a document is expected to have each topic beside what its words say: one number a topic.
    pub alpha: Vec<f32>,
    /// How often a topic is expected to have each word beside what was counted.
    pub beta: f32,
    /// For each word, how often it was in each topic.
    pub word_topic: Vec<f32>,
    /// How the model was trained.
    pub config: Value,
    /// How well it did.
    pub metrics: Value,
}

impl LdaModel {
    /// How many topics there are.
    #[must_use]
    pub fn topics(&self) -> usize {
        self.alpha.len()
    }

    /// The `count` words that are most probable in a topic, with their probabilities: most probable first, ties in the
    /// order of the vocabulary.
    ///
    /// # Panics
    /// If `topic` is not below [`LdaModel::topics`].
    #[must_use]
    pub fn top_words(&self, topic: usize, count: usize) -> Vec<(u32, f32)> {
        assert!(topic < self.topics(), "there is a topic {topic}");
        let column = || self.word_topic.iter().skip(topic).step_by(self.topics());
        let mut words: Vec<(u32, f32)> = (0..).zip(column().copied()).collect();
        let best = |one: &(u32, f32), other: &(u32, f32)| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0));
        if count < words.len() && count > 0 {
            words.select_nth_unstable_by(count - 1, best);
        }
        words.truncate(count);
        words.sort_unstable_by(best);
        let total: f64 = column().map(|counted| f64::from(*counted)).sum();
        let scale = 1.0 / (total + self.smoothing());
        words
            .iter()
            .map(|&(word, counted)| (word, ((f64::from(counted) + f64::from(self.beta)) * scale) as f32))
            .collect()
    }

    /// The part that each topic has in all words that were counted, smoothed by `beta`.
    #[must_use]
    pub fn topic_shares(&self) -> Vec<f64> {
        let totals: Vec<f64> = self.topic_totals().iter().map(|total| total + self.smoothing()).collect();
        let all: f64 = totals.iter().sum();
        totals.iter().map(|total| total / all).collect()
    }

    /// How often a word was in each topic.
    fn counts_of(&self, word: u32) -> &[f32] {
        &self.word_topic[word as usize * self.topics()..][..self.topics()]
    }

    /// What `beta` adds to the words of a topic together.
    fn smoothing(&self) -> f64 {
        f64::from(self.beta) * self.vocabulary.len() as f64
    }

    /// For each topic, how many words were counted in it.
    fn topic_totals(&self) -> Vec<f64> {
        let mut totals = vec![0.0; self.topics()];
        for row in self.word_topic.chunks_exact(self.topics()) {
            totals.iter_mut().zip(row).for_each(|(total, counted)| *total += f64::from(*counted));
        }
        totals
    }
}
