//! Topic models by the Splash engine: collapsed Gibbs sampling with over-sampling, the paper's third application.
//!
//! An element is a document. For each of its words several topics are drawn from the same conditional, each of which
//! carries its part of the word (Zhao, Jiang and Canny): that smooths the counts, and every pass tells more. What is drawn
//! is added to the counts of words and topics with the weight of the document, and its removal is declared at once as a
//! delayed add, which the engine carries out before the document is processed again. So the counts of other words of the
//! same document that are still to be drawn are not among those of words and topics.
//!
//! How often a document has a topic is its own and goes by its words alone: a document of weight `m` is `m` documents
//! with the same words, not one of `m` times as many. That is where this departs from the paper's (12).

use super::likelihood::{LogRising, ln_gamma};
use super::train::{Epoch, Quality, TrainError, check};
use super::{NO_TOPIC, Topic, generator, unit};
use crate::corpus::Corpus;
use crate::epoch::Course;
use hemiola::splash::{self, Array, DataSet, Elements, Local, Scalar, Shared};
use hemiola::{Deployment, Error, Observation, Outcome};
use rand_core::Rng;
use serde::Serialize;

/// How to train.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Config {
    /// Number of topics.
    pub topics: usize,
    /// What every topic of a document has before any token.
    pub alpha: f32,
    /// What every word of a topic has before any token.
    pub beta: f32,
    /// Topics that are drawn for a word. The paper draws ten; parts that are powers of two add up exactly.
    pub samples: u32,
    /// Passes over the documents.
    pub epochs: u32,
    /// The likelihood is computed after every so many epochs, and after the last.
    pub evaluate_every: u32,
    /// How passes are made.
    #[serde(skip)]
    pub passes: splash::Options,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            topics: 100,
            alpha: 0.1,
            beta: 0.01,
            samples: 8,
            epochs: 100,
            evaluate_every: 10,
            passes: splash::Options::default(),
        }
    }
}

/// The counts of a trained model, and how training went.
#[derive(Debug)]
pub struct Trained {
    /// For each word in the order of the vocabulary, how many of its tokens each topic has.
    pub word_topics: Vec<f32>,
    /// One line per epoch.
    pub epochs: Vec<Epoch>,
    /// Where the workers' time went.
    pub outcome: Outcome,
}

impl Config {
    /// Checks that the numbers can be.
    ///
    /// # Errors
    /// The first that cannot.
    pub fn validate(&self) -> Result<(), TrainError> {
        if !(1..=usize::from(NO_TOPIC)).contains(&self.topics) {
            return Err(TrainError::Topics { topics: self.topics });
        }
        for (what, value) in [("alpha", self.alpha), ("beta", self.beta)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(TrainError::NotPositive { what, value });
            }
        }
        for (what, value) in [
            ("the number of epochs", self.epochs),
            ("the number of samples", self.samples),
            ("the number of epochs between evaluations", self.evaluate_every),
        ] {
            if value == 0 {
                return Err(TrainError::Zero { what });
            }
        }
        Ok(())
    }
}

/// The handles of the shared variables: the counts of words in topics, and those of topics.
struct Variables {
    words: Array,
    /// Totals outgrow what the numbers of an array hold exactly.
    totals: Vec<Scalar>,
}

/// The topics drawn for a document: as many for each word as there are samples.
type Drawn = Vec<Topic>;

struct Known<'a> {
    config: &'a Config,
    corpus: &'a Corpus,
    variables: Variables,
}

/// What a worker needs while it samples.
#[derive(Default)]
struct Scratch {
    /// How often the document has each topic.
    document: Vec<f32>,
    /// One over how often each topic occurs, smoothed.
    inverse: Vec<f32>,
    row: Vec<f32>,
    sums: Vec<f32>,
    new: Vec<Topic>,
    /// What of each topic was drawn in the document.
    drawn: Vec<f32>,
}

/// Trains a topic model, and shows `observe` how far it is after every epoch.
///
/// # Errors
/// If the configuration or the corpus cannot be, or the job fails.
pub fn train(
    config: &Config,
    deployment: &Deployment,
    corpus: &Corpus,
    mut observe: impl FnMut(&Epoch) + Send,
) -> Result<Trained, TrainError> {
    config.validate()?;
    check(corpus)?;
    let mut shared = Shared::default();
    let words = shared.rows("words", corpus.vocabulary.len(), config.topics);
    let totals = (0..config.topics).map(|topic| shared.scalar(&format!("topic {topic}"), 0.0)).collect();
    let known = Known { config, corpus, variables: Variables { words, totals } };
    let documents: Vec<u32> = (0..corpus.documents() as u32).collect();
    let cost = |&document: &u32| corpus.document(document as usize).len() as u64;
    let elements = Elements { all: &documents, weight: None, cost: Some(&cost) };
    let workers = deployment.workers() as usize;
    let mut epochs = Vec::new();
    let trained = splash::run_observed(
        deployment,
        &config.passes,
        &shared,
        elements,
        |set: &mut DataSet<'_, u32, Drawn>| known.program(set),
        &mut |observation: &Observation| {
            let epoch = Epoch::from_report(observation, workers, Quality::from_sums);
            observe(&epoch);
            epochs.push(epoch);
        },
    )?;
    let word_topics = trained.shared.to_vec(words).into_iter().map(|count| count.max(0.0)).collect();
    Ok(Trained { word_topics, epochs, outcome: trained.outcome })
}

impl Known<'_> {
    /// What one worker does.
    fn program(&self, set: &mut DataSet<'_, u32, Drawn>) -> Result<Vec<u8>, Error> {
        let config = self.config;
        let (mut course, mut scratch) = (Course::default(), Scratch::default());
        let mut clock = 0;
        for epoch in 1..=config.epochs {
            let mut random = generator(config.passes.seed, set.worker().index(), epoch);
            let (mut moved, mut tokens) = (0.0, 0.0);
            let process = |&document: &u32, weight: f64, shared: &mut Shared, local: &mut Local<Drawn>| {
                moved += self.process(document, weight, shared, local.get_mut(), &mut random, &mut scratch);
                tokens += self.corpus.document(document as usize).len() as f64;
            };
            let began = set.seconds();
            let pass = set.run_tested(process, |&document, shared| self.loss(document, shared))?;
            course.train_seconds += set.seconds() - began;
            clock += pass.synchronisations;
            let evaluated = epoch.is_multiple_of(config.evaluate_every) || epoch == config.epochs;
            let likelihood = if evaluated { self.likelihood(set) } else { f64::NAN };
            set.report(&course.numbers(&set.split(), epoch, clock, &[likelihood, moved, tokens]));
        }
        Ok(Vec::new())
    }

    /// Draws the topics of a document anew; how many words changed theirs, in parts.
    fn process(
        &self,
        document: u32,
        weight: f64,
        shared: &mut Shared,
        drawn: &mut Drawn,
        random: &mut impl Rng,
        scratch: &mut Scratch,
    ) -> f64 {
        let Config { topics, alpha, beta, samples, .. } = *self.config;
        let Variables { words, totals } = &self.variables;
        let words_of = self.corpus.document(document as usize);
        let samples = samples as usize;
        let part = 1.0 / samples as f32;
        let smoothing = f64::from(beta) * self.corpus.vocabulary.len() as f64;
        let Scratch { document: counts, inverse, row, sums, new, drawn: in_all } = scratch;
        counts.clear();
        counts.resize(topics, 0.0);
        drawn.iter().for_each(|&topic| counts[usize::from(topic)] += part);
        inverse.clear();
        inverse.extend(totals.iter().map(|&total| (1.0 / (shared.get(total).max(0.0) + smoothing)) as f32));
        in_all.clear();
        in_all.resize(topics, 0.0);
        row.resize(topics, 0.0);
        sums.resize(topics, 0.0);
        let first = drawn.is_empty();
        drawn.resize(words_of.len() * samples, 0);
        let mut stayed = 0;
        for (&word, old) in words_of.iter().zip(drawn.chunks_exact_mut(samples)) {
            if !first {
                old.iter().for_each(|&topic| counts[usize::from(topic)] -= part);
            }
            shared.read(*words, word as usize * topics, row);
            let mut sum = 0.0;
            for topic in 0..topics {
                // A little below zero is what rounding may have left of nothing.
                sum += (counts[topic].max(0.0) + alpha) * (row[topic].max(0.0) + beta) * inverse[topic];
                sums[topic] = sum;
            }
            new.clear();
            for _ in 0..samples {
                let at = unit(random) * sum;
                new.push(sums.partition_point(|sum| *sum <= at).min(topics - 1) as Topic);
            }
            new.sort_unstable();
            if !first {
                stayed += in_common(old, new);
            }
            for same in new.chunk_by(|a, b| a == b) {
                let topic = usize::from(same[0]);
                let count = same.len() as f32 * part;
                counts[topic] += count;
                in_all[topic] += count;
                let (place, delta) = (words.at(word as usize * topics + topic), weight as f32 * count);
                shared.add(place, delta);
                shared.delayed_add(place, -delta);
                shared.add(totals[topic], weight * f64::from(count));
                inverse[topic] = (1.0 / (shared.get(totals[topic]).max(0.0) + smoothing)) as f32;
            }
            old.copy_from_slice(new);
        }
        for (&total, &count) in totals.iter().zip(&*in_all).filter(|(_, count)| **count > 0.0) {
            shared.delayed_add(total, -weight * f64::from(count));
        }
        words_of.len() as f64 - stayed as f64 / samples as f64
    }

    /// By how much the topics of others make the words of a document unlikely, its own shares of topics being found by a
    /// few rounds of expectation and maximisation.
    fn loss(&self, document: u32, shared: &Shared) -> f64 {
        let Config { topics, alpha, beta, .. } = *self.config;
        let Variables { words, totals } = &self.variables;
        let smoothing = f64::from(beta) * self.corpus.vocabulary.len() as f64;
        let inverse: Vec<f64> = totals.iter().map(|&total| 1.0 / (shared.get(total).max(0.0) + smoothing)).collect();
        let words_of = self.corpus.document(document as usize);
        let mut rows = vec![0.0; words_of.len() * topics];
        for (row, &word) in rows.chunks_exact_mut(topics).zip(words_of) {
            shared.read(*words, word as usize * topics, row);
        }
        let chance = |row: &[f32], topic: usize| f64::from(row[topic].max(0.0) + beta) * inverse[topic];
        let mut shares = vec![1.0 / topics as f64; topics];
        let mut loss = 0.0;
        for _ in 0..ROUNDS {
            let mut next = vec![f64::from(alpha); topics];
            loss = 0.0;
            for row in rows.chunks_exact(topics) {
                let sum: f64 = (0..topics).map(|topic| shares[topic] * chance(row, topic)).sum();
                (0..topics).for_each(|topic| next[topic] += shares[topic] * chance(row, topic) / sum);
                loss -= sum.ln();
            }
            let all: f64 = next.iter().sum();
            shares = next.into_iter().map(|share| share / all).collect();
        }
        loss
    }

    /// The worker's part of the joint log-likelihood: its documents, and its part of the words.
    fn likelihood(&self, set: &DataSet<'_, u32, Drawn>) -> f64 {
        let Config { topics, alpha, beta, samples, .. } = *self.config;
        let (alpha, beta, part) = (f64::from(alpha), f64::from(beta), 1.0 / f64::from(samples));
        let rising = |prior: f64, count: f64| ln_gamma(count + prior) - ln_gamma(prior);
        let of_all = LogRising::new(alpha * topics as f64);
        let of_documents = set.map(|&document, _, local| {
            let mut drawn = local.get().clone();
            drawn.sort_unstable();
            let counts = drawn.chunk_by(|a, b| a == b).map(|same| same.len() as f64 * part);
            counts.map(|count| rising(alpha, count)).sum::<f64>()
                - of_all.of(self.corpus.document(document as usize).len() as f64)
        });
        let (me, workers) = (set.worker().index(), set.workers() as usize);
        let vocabulary = self.corpus.vocabulary.len();
        let mine = vocabulary * me / workers..vocabulary * (me + 1) / workers;
        let mut numbers = vec![0.0; mine.len() * topics];
        set.shared().read(self.variables.words, mine.start * topics, &mut numbers);
        let of_words = numbers.iter().filter(|count| **count > 0.0).map(|&count| rising(beta, f64::from(count)));
        let mut sum = of_documents.into_iter().sum::<f64>() + of_words.sum::<f64>();
        if me == 0 {
            let totals = self.variables.totals.iter().map(|&total| set.shared().get(total).max(0.0));
            sum -= totals.map(|total| rising(beta * vocabulary as f64, total)).sum::<f64>();
        }
        sum
    }
}

/// Rounds in which the shares of topics in a document are found.
const ROUNDS: usize = 5;

/// How many topics two sorted lists have in common, as often as they are in both.
fn in_common(one: &[Topic], other: &[Topic]) -> usize {
    let (mut i, mut j, mut common) = (0, 0, 0);
    while let (Some(a), Some(b)) = (one.get(i), other.get(j)) {
        common += usize::from(a == b);
        i += usize::from(a <= b);
        j += usize::from(b <= a);
    }
    common
}

#[cfg(test)]
mod tests {
    use super::in_common;

    #[test]
    fn topics_in_common_are_counted_as_often_as_they_are_in_both() {
        assert_eq!(in_common(&[1, 1, 2, 5], &[1, 2, 2, 5]), 3);
        assert_eq!(in_common(&[1, 1], &[2, 3]), 0);
        assert_eq!(in_common(&[4, 4, 4], &[4, 4, 4]), 3);
    }
}
