//! Topic models by the Splash engine: collapsed Gibbs sampling with over-sampling, the paper's third application.
//!
//! An element is a document. For each of its words several topics are drawn from the same conditional, each of which
//! carries its part of the word (Zhao, Jiang and Canny): that smooths the counts, and every pass tells more. A word that
//! occurs several times is drawn for once, and all of it is in the parts. The draws are at equal distances in the sum of
//! the conditional, from a random start: each has the conditional's probabilities, and together they are closer to it than
//! independent ones. What is drawn is added to the counts of words and topics with the weight of the document, and its removal is declared at once as a
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
use crate::machine::{self, Loop};
use hemiola::splash::{self, Array, DataSet, Elements, Local, Scalar, Shared};
use hemiola::{Deployment, Error, Observation, Outcome};
use rand_core::Rng;
use serde::Serialize;
use std::array::from_fn;

/// How to train.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Config {
    /// Number of topics.
    pub topics: usize,
    /// What every topic of a document has before any token.
    pub alpha: f32,
    /// What every word of a topic has before any token.
    pub beta: f32,
    /// Topics that are drawn for a word. The paper draws ten; more cost little here and tell more, and parts that are
    /// powers of two add up exactly.
    pub samples: u16,
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
            samples: 32,
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
            ("the number of samples", self.samples.into()),
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

/// The topics drawn for a document, word by word, each with how many of the samples are of it.
#[derive(Clone, Debug, Default)]
struct Drawn {
    topics: Vec<(Topic, u16)>,
    /// Where those of each word end.
    ends: Vec<u32>,
}

impl Drawn {
    /// Those of each word.
    fn words(&self) -> impl Iterator<Item = &[(Topic, u16)]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.topics[start as usize..end as usize])
    }
}

struct Known<'a> {
    config: &'a Config,
    corpus: &'a Corpus,
    words: DistinctWords,
    variables: Variables,
}

/// The distinct words of documents.
struct DistinctWords {
    /// Each with how often the document has it.
    words: Vec<(u32, u32)>,
    /// Where those of each document begin, and one more where the last end.
    starts: Vec<usize>,
}

impl DistinctWords {
    fn new(corpus: &Corpus) -> Self {
        let (mut words, mut starts) = (Vec::new(), vec![0]);
        for document in 0..corpus.documents() {
            let mut all = corpus.document(document).to_vec();
            all.sort_unstable();
            words.extend(all.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)));
            starts.push(words.len());
        }
        Self { words, starts }
    }

    fn of(&self, document: u32) -> &[(u32, u32)] {
        &self.words[self.starts[document as usize]..self.starts[document as usize + 1]]
    }
}

/// Topics that vectors take together.
type Group = [f32; LANES];
const LANES: usize = 8;

/// What a worker needs while it samples, with a number for each topic, and zeros behind the last.
#[derive(Default)]
struct Scratch {
    /// How often the document has each topic.
    document: Vec<Group>,
    /// How often each topic occurs without what is drawn for the document, smoothed; and one over that with it.
    totals: Vec<Group>,
    inverse: Vec<Group>,
    /// The conditional, lane by lane summed up to each topic.
    sums: Vec<Group>,
    /// How many of a word's samples are of each topic.
    picked: Vec<Group>,
    /// What of each topic was drawn in the document.
    drawn: Vec<Group>,
    new: Drawn,
    /// What was added to the counts of words, and where.
    added: Vec<(usize, f32)>,
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
    let known = Known { config, corpus, words: DistinctWords::new(corpus), variables: Variables { words, totals } };
    let documents: Vec<u32> = (0..corpus.documents() as u32).collect();
    let cost = |&document: &u32| corpus.document(document as usize).len() as u64;
    let elements = Elements { cost: Some(&cost), ..Elements::from(&documents) };
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
        let Variables { words, totals } = &self.variables;
        let smoothing = f64::from(self.config.beta) * self.corpus.vocabulary.len() as f64;
        let groups = totals.len().div_ceil(LANES);
        let Scratch { document: counts, totals: known, inverse, sums, picked, drawn: in_all, .. } = scratch;
        for numbers in [counts, &mut *known, inverse, sums, picked, in_all] {
            numbers.clear();
            numbers.resize(groups, [0.0; LANES]);
        }
        // Whatever is behind the last is divided by infinity.
        known.as_flattened_mut().fill(f32::INFINITY);
        for (place, &total) in known.as_flattened_mut().iter_mut().zip(totals) {
            *place = (shared.get(total).max(0.0) + smoothing) as f32;
        }
        let numbers = shared.edit(*words);
        let moved =
            machine::run(Sample { known: self, document, weight: weight as f32, numbers, drawn, random, scratch });
        scratch.added.iter().for_each(|&(place, delta)| shared.delayed_add(words.at(place), -delta));
        for (&total, &count) in totals.iter().zip(scratch.drawn.as_flattened()).filter(|(_, count)| **count > 0.0) {
            shared.add(total, weight * f64::from(count));
            shared.delayed_add(total, -weight * f64::from(count));
        }
        moved
    }

    /// By how much the topics of others make the words of a document unlikely, its own shares of topics being found by a
    /// few rounds of expectation and maximisation.
    fn loss(&self, document: u32, shared: &Shared) -> f64 {
        let Config { topics, alpha, beta, .. } = *self.config;
        let Variables { words, totals } = &self.variables;
        let smoothing = f64::from(beta) * self.corpus.vocabulary.len() as f64;
        let inverse: Vec<f64> = totals.iter().map(|&total| 1.0 / (shared.get(total).max(0.0) + smoothing)).collect();
        let words_of = self.words.of(document);
        let mut rows = vec![0.0; words_of.len() * topics];
        for (row, &(word, _)) in rows.chunks_exact_mut(topics).zip(words_of) {
            shared.read(*words, word as usize * topics, row);
        }
        let chance = |row: &[f32], topic: usize| f64::from(row[topic].max(0.0) + beta) * inverse[topic];
        let mut shares = vec![1.0 / topics as f64; topics];
        let mut loss = 0.0;
        for _ in 0..ROUNDS {
            let mut next = vec![f64::from(alpha); topics];
            loss = 0.0;
            for (row, &(_, count)) in rows.chunks_exact(topics).zip(words_of) {
                let sum: f64 = (0..topics).map(|topic| shares[topic] * chance(row, topic)).sum();
                let part = f64::from(count) / sum;
                (0..topics).for_each(|topic| next[topic] += shares[topic] * chance(row, topic) * part);
                loss -= f64::from(count) * sum.ln();
            }
            let all: f64 = next.iter().sum();
            shares = next.into_iter().map(|share| share / all).collect();
        }
        loss
    }

    /// The worker's part of the joint log-likelihood: its documents, and its part of the words.
    fn likelihood(&self, set: &DataSet<'_, u32, Drawn>) -> f64 {
        let Config { topics, alpha, beta, samples, .. } = *self.config;
        let (alpha, beta) = (f64::from(alpha), f64::from(beta));
        let rising = |prior: f64, count: f64| ln_gamma(count + prior) - ln_gamma(prior);
        let of_all = LogRising::new(alpha * topics as f64);
        let of_documents = set.map(|&document, _, local| {
            let mut counts = vec![0.0; topics];
            for (drawn, &(_, count)) in local.get().words().zip(self.words.of(document)) {
                let part = f64::from(count) / f64::from(samples);
                drawn.iter().for_each(|&(topic, of_it)| counts[usize::from(topic)] += f64::from(of_it) * part);
            }
            counts.iter().map(|&count| rising(alpha, count)).sum::<f64>()
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

/// Draws the topics of a document's words.
struct Sample<'a, R> {
    known: &'a Known<'a>,
    document: u32,
    weight: f32,
    /// The counts of words in topics.
    numbers: &'a mut [f32],
    drawn: &'a mut Drawn,
    random: &'a mut R,
    scratch: &'a mut Scratch,
}

impl<R: Rng> Loop for Sample<'_, R> {
    /// How many words changed their topic, in parts.
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let Self { known, document, weight, numbers, drawn, random, scratch } = self;
        let Config { topics, alpha, beta, samples, .. } = *known.config;
        let (samples, groups, words_of) = (f32::from(samples), topics.div_ceil(LANES), known.words.of(document));
        let Scratch { document: counts, totals, inverse, sums, picked, drawn: in_all, new, added } = scratch;
        added.clear();
        new.topics.clear();
        new.ends.clear();
        for (inverse, total) in inverse.iter_mut().zip(&*totals) {
            *inverse = from_fn(|lane| 1.0 / total[lane]);
        }
        for (old, &(_, count)) in drawn.words().zip(words_of) {
            let part = count as f32 / samples;
            old.iter().for_each(|&(topic, of_it)| *at(counts, topic) += f32::from(of_it) * part);
        }
        let (mut stayed, mut start) = (0.0, 0);
        for (number, &(word, count)) in words_of.iter().enumerate() {
            let (part, place) = (count as f32 / samples, word as usize * topics);
            let end = drawn.ends.get(number).map_or(start, |&end| end as usize);
            let old = &drawn.topics[start..end];
            start = end;
            old.iter().for_each(|&(topic, of_it)| *at(counts, topic) -= f32::from(of_it) * part);
            let (row, rest) = numbers[place..place + topics].as_chunks_mut::<LANES>();
            let mut last = [0.0; LANES];
            last[..rest.len()].copy_from_slice(rest);
            let mut sum = [0.0; LANES];
            let mut weigh = |sums: &mut Group, row: &Group, counts: &Group, inverse: &Group| {
                for lane in 0..LANES {
                    // A little below zero is what rounding may have left of nothing.
                    sum[lane] += (counts[lane].max(0.0) + alpha) * (row[lane].max(0.0) + beta) * inverse[lane];
                }
                *sums = sum;
            };
            for (((sums, row), counts), inverse) in sums.iter_mut().zip(&*row).zip(&*counts).zip(&*inverse) {
                weigh(sums, row, counts, inverse);
            }
            if !rest.is_empty() {
                weigh(&mut sums[groups - 1], &last, &counts[groups - 1], &inverse[groups - 1]);
            }
            pick(sums, unit(random), samples, picked);
            for ((((counts, in_all), inverse), totals), picked) in
                counts.iter_mut().zip(&mut *in_all).zip(&mut *inverse).zip(&*totals).zip(&*picked)
            {
                let drawn: Group = from_fn(|lane| picked[lane] * part);
                let all: Group = from_fn(|lane| in_all[lane] + drawn[lane]);
                *counts = from_fn(|lane| counts[lane] + drawn[lane]);
                *inverse = from_fn(|lane| 1.0 / (totals[lane] + weight * all[lane]));
                *in_all = all;
            }
            let share = weight * part;
            for (row, picked) in row.iter_mut().zip(&*picked) {
                *row = from_fn(|lane| row[lane] + picked[lane] * share);
            }
            rest.iter_mut().zip(&picked[groups - 1]).for_each(|(number, picked)| *number += picked * share);
            let common = old.iter().map(|&(topic, of_it)| f32::from(of_it).min(*at(picked, topic)));
            stayed += common.sum::<f32>() * part;
            for (group, picked) in picked.iter().enumerate() {
                // Without branches, which nobody could foretell.
                let (mut lanes, mut count) = ([0; LANES], 0);
                for (lane, of_it) in picked.iter().enumerate() {
                    lanes[count] = lane;
                    count += usize::from(*of_it > 0.0);
                }
                for &lane in &lanes[..count] {
                    let topic = group * LANES + lane;
                    new.topics.push((topic as Topic, picked[lane] as u16));
                    added.push((place + topic, picked[lane] * share));
                }
            }
            new.ends.push(new.topics.len() as u32);
        }
        std::mem::swap(drawn, new);
        known.corpus.document(document as usize).len() as f64 - f64::from(stayed)
    }
}

/// A topic's place.
#[inline(always)]
fn at(groups: &mut [Group], topic: Topic) -> &mut f32 {
    &mut groups.as_flattened_mut()[usize::from(topic)]
}

/// Picks topics at equal distances in the sum of all, the first at `start` of a distance, and says how many of these
/// `samples` each topic has. `sums` are those up to each topic, lane by lane.
#[inline(always)]
fn pick(sums: &[Group], start: f32, samples: f32, picked: &mut [Group]) {
    /// Adding it rounds to a whole number.
    const ROUND: f32 = 12_582_912.0;
    /// So much longer than the whole the distances are together, so that rounding loses no sample at the end.
    const BEYOND: f32 = 1.0 + 1e-5;
    let last = sums[sums.len() - 1];
    let (mut before, mut whole) = ([0.0; LANES], 0.0);
    for lane in 0..LANES {
        before[lane] = whole;
        whole += last[lane];
    }
    let (per_sample, half) = (samples * BEYOND / whole, 0.5 - start);
    let passed = |sum: f32| (((sum * per_sample + half) + ROUND) - ROUND).min(samples);
    let mut earlier: Group = from_fn(|lane| passed(before[lane]));
    for (picked, sums) in picked.iter_mut().zip(sums) {
        let now: Group = from_fn(|lane| passed(before[lane] + sums[lane]));
        *picked = from_fn(|lane| now[lane] - earlier[lane]);
        earlier = now;
    }
}

/// Rounds in which the shares of topics in a document are found.
const ROUNDS: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_picked_as_often_as_they_weigh() {
        let topics = 19;
        let weights: Vec<f32> = (0..topics).map(|topic| [0.5, 3.0, 0.0, 1.25][topic % 4]).collect();
        let whole: f32 = weights.iter().sum();
        let (mut sums, mut sum) = (Vec::new(), [0.0; LANES]);
        for group in weights.chunks(LANES) {
            (0..group.len()).for_each(|lane| sum[lane] += group[lane]);
            sums.push(sum);
        }
        let (samples, starts) = (8.0, 1000);
        let mut found = vec![0.0; topics];
        let mut picked = vec![[0.0; LANES]; sums.len()];
        for start in 0..starts {
            pick(&sums, (start as f32 + 0.5) / starts as f32, samples, &mut picked);
            assert_eq!(picked.as_flattened().iter().sum::<f32>(), samples, "from {start}");
            assert!(picked.as_flattened()[topics..].iter().all(|&number| number == 0.0));
            found.iter_mut().zip(picked.as_flattened()).for_each(|(sum, number)| *sum += number / starts as f32);
        }
        for (topic, (found, weight)) in found.iter().zip(&weights).enumerate() {
            let expected = weight / whole * samples;
            assert!((found - expected).abs() < 0.01, "topic {topic}: {found} in place of {expected}");
        }
    }
}
