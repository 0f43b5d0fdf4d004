//! The topics of documents that a model has not seen, and how well it predicts their words.

use super::LdaModel;
use crate::corpus::Corpus;
use crate::hold_out::mix;

/// How often the proportions of a document are improved; always the same, so that a result does not hang on a tolerance.
const ROUNDS: usize = 40;
/// Floats are worked on in groups of this many, so that the compiler can use vector instructions.
const LANES: usize = 8;

/// How well a model predicts words that were held out of documents.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldOut {
    /// How many words were predicted.
    pub tokens: u64,
    /// The mean logarithm of their predicted probability; not a number where none were.
    pub log_likelihood: f64,
}

impl HeldOut {
    /// Among how many equally probable words the model could as well have chosen.
    #[must_use]
    pub fn perplexity(&self) -> f64 {
        (-self.log_likelihood).exp()
    }
}

impl LdaModel {
    /// Prepares to find the topics of documents.
    #[must_use]
    pub fn inference(&self) -> Inference<'_> {
        let smoothing = self.smoothing();
        let scales = self.topic_totals().iter().map(|total| (1.0 / (total + smoothing)) as f32).collect();
        let width = self.topics().next_multiple_of(LANES);
        Inference { model: self, scales, width, rows: Vec::new(), counts: Vec::new(), shares: vec![0.0; width] }
    }

    /// Predicts about half of the words of every document from the others.
    ///
    /// In each document, chance says of every word of the vocabulary whether all its occurrences are observed or held
    /// out; the document's topics are found from those observed. The numbers of the documents are the seed.
    ///
    /// # Panics
    /// If a word of the corpus is not below the length of the model's vocabulary.
    #[must_use]
    pub fn held_out(&self, corpus: &Corpus) -> HeldOut {
        let mut inference = self.inference();
        let (mut sum, mut tokens) = (0.0, 0);
        let (mut observed, mut held_out) = (Vec::new(), Vec::new());
        for document in 0..corpus.documents() {
            observed.clear();
            held_out.clear();
            for &word in corpus.document(document) {
                let chance = mix(document as u64, u64::from(word));
                if chance.is_multiple_of(2) { observed.push(word) } else { held_out.push(word) }
            }
            inference.find(&mut observed);
            sum += held_out.iter().map(|&word| inference.probability(word).ln()).sum::<f64>();
            tokens += held_out.len() as u64;
        }
        HeldOut { tokens, log_likelihood: sum / tokens as f64 }
    }
}

/// Finds the topics of documents, one after the other.
pub struct Inference<'m> {
    model: &'m LdaModel,
    /// For each topic, what makes a probability of a count and `beta`.
    scales: Vec<f32>,
    /// Floats in a row: the topics, and zeros that fill the last group.
    width: usize,
    /// The probabilities of the distinct words of a document in every topic, a row a word.
    rows: Vec<f32>,
    /// How often each of them occurs.
    counts: Vec<f32>,
    /// The proportions of the topics.
    shares: Vec<f32>,
}

impl Inference<'_> {
    /// The proportions of the topics in a document, which sum up to 1; `alpha` decides where there are no words.
    ///
    /// # Panics
    /// If a word is not below the length of the model's vocabulary.
    #[must_use]
    pub fn proportions(&mut self, words: &[u32]) -> Vec<f32> {
        self.find(&mut words.to_vec());
        self.shares[..self.model.topics()].to_vec()
    }

    /// Finds the fixed point of `share(k) ∝ alpha(k) + Σ_w count(w) · P(k | w)`; the words are sorted.
    fn find(&mut self, words: &mut [u32]) {
        words.sort_unstable();
        self.gather(words);
        let topics = self.model.topics();
        self.shares[..topics].fill(1.0 / topics as f32);
        let mut expected = vec![0.0; self.width];
        for _ in 0..ROUNDS {
            expected.fill(0.0);
            for (row, &count) in self.rows.chunks_exact(self.width).zip(&self.counts) {
                add_scaled(&mut expected, row, count / product(row, &self.shares));
            }
            let mut total = 0.0;
            for ((share, expected), alpha) in self.shares.iter_mut().zip(&expected).zip(&self.model.alpha) {
                *share = alpha + *share * expected;
                total += f64::from(*share);
            }
            let scale = (1.0 / total) as f32;
            self.shares.iter_mut().for_each(|share| *share *= scale);
        }
    }

    /// Fills `rows` and `counts` from sorted words.
    fn gather(&mut self, words: &[u32]) {
        self.rows.clear();
        self.counts.clear();
        for same in words.chunk_by(|one, next| one == next) {
            self.counts.push(same.len() as f32);
            let start = self.rows.len();
            let (counted, beta) = (self.model.counts_of(same[0]), self.model.beta);
            self.rows.extend(counted.iter().zip(&self.scales).map(|(counted, scale)| (counted + beta) * scale));
            self.rows.resize(start + self.width, 0.0);
        }
    }

    /// The probability of a word in the document whose topics were found last.
    fn probability(&self, word: u32) -> f64 {
        let topics = self.model.counts_of(word).iter().zip(&self.scales).zip(&self.shares);
        topics.map(|((counted, scale), share)| f64::from(share * ((counted + self.model.beta) * scale))).sum()
    }
}

/// Both are of the same length, a multiple of [`LANES`].
fn product(one: &[f32], other: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    for (one, other) in one.as_chunks::<LANES>().0.iter().zip(other.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            sums[lane] += one[lane] * other[lane];
        }
    }
    sums.iter().sum()
}

fn add_scaled(sums: &mut [f32], row: &[f32], scale: f32) {
    sums.iter_mut().zip(row).for_each(|(sum, number)| *sum += scale * number);
}
