//! Collapsed Gibbs sampling written as the formulas are, in three ways, and the posterior itself by enumeration: what the
//! samplers are tested against.

use super::documents::{Counts, Documents};
use super::likelihood::{LogRising, ln_gamma};
use super::lists::Lists;
use super::metropolis::Proposals;
use super::rows::CountRows;
use super::share::{Plan, Share};
use super::topics::{Priors, Topics};
use super::{Topic, generator, kernel, unit};
use crate::Names;
use crate::corpus::Corpus;
use rand_core::Rng;

/// Documents as lists of words, a topic for every token, and all counts, summed anew whenever a token is taken out.
struct State {
    documents: Vec<Vec<usize>>,
    assignments: Vec<Vec<usize>>,
    topics: usize,
    words: usize,
    alpha: f64,
    beta: f64,
    of_document: Vec<Vec<f64>>,
    of_word: Vec<Vec<f64>>,
    totals: Vec<f64>,
}

impl State {
    fn new(documents: &[Vec<usize>], topics: usize, words: usize, (alpha, beta): (f64, f64)) -> Self {
        let assignments: Vec<Vec<usize>> = documents.iter().map(|document| vec![0; document.len()]).collect();
        let mut state = Self {
            documents: documents.to_vec(),
            assignments,
            topics,
            words,
            alpha,
            beta,
            of_document: vec![vec![0.0; topics]; documents.len()],
            of_word: vec![vec![0.0; topics]; words],
            totals: vec![0.0; topics],
        };
        state.places().for_each(|(d, i)| state.count(d, i, 1.0));
        state
    }

    fn places(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let lengths: Vec<usize> = self.documents.iter().map(Vec::len).collect();
        lengths.into_iter().enumerate().flat_map(|(d, length)| (0..length).map(move |i| (d, i)))
    }

    fn count(&mut self, d: usize, i: usize, by: f64) {
        let k = self.assignments[d][i];
        self.of_document[d][k] += by;
        self.of_word[self.documents[d][i]][k] += by;
        self.totals[k] += by;
    }

    /// `(n_wk + β) / (n_k + βW)`.
    fn phi(&self, word: usize, k: usize) -> f64 {
        (self.of_word[word][k] + self.beta) / (self.totals[k] + self.beta * self.words as f64)
    }

    fn log_joint(&self) -> f64 {
        let (a, b) = (LogRising::new(self.alpha), LogRising::new(self.beta));
        let (all_a, all_b) = (self.alpha * self.topics as f64, self.beta * self.words as f64);
        let documents = self.of_document.iter().map(|counts| {
            let length: f64 = counts.iter().sum();
            counts.iter().map(|&n| a.of(n)).sum::<f64>() + ln_gamma(all_a) - ln_gamma(length + all_a)
        });
        let words = self.of_word.iter().flatten().map(|&n| b.of(n));
        let totals = self.totals.iter().map(|&n| ln_gamma(all_b) - ln_gamma(n + all_b));
        documents.chain(words).chain(totals).sum()
    }
}

/// Draws an index by weights.
fn draw(weights: impl Iterator<Item = f64> + Clone, random: &mut impl Rng) -> usize {
    let mut target = f64::from(unit(random)) * weights.clone().sum::<f64>();
    let mut last = 0;
    for (index, weight) in weights.enumerate().filter(|(_, weight)| *weight > 0.0) {
        last = index;
        if target < weight {
            break;
        }
        target -= weight;
    }
    last
}

/// One sweep of the Gibbs sampler.
fn gibbs(state: &mut State, random: &mut impl Rng) {
    for (d, i) in state.places() {
        state.count(d, i, -1.0);
        let word = state.documents[d][i];
        let weights = (0..state.topics).map(|k| (state.of_document[d][k] + state.alpha) * state.phi(word, k));
        state.assignments[d][i] = draw(weights, random);
        state.count(d, i, 1.0);
    }
}

/// One sweep of SparseLDA: three buckets, of which the second is empty but for the document's topics and the third but
/// for the word's.
fn sparse(state: &mut State, random: &mut impl Rng) {
    for (d, i) in state.places() {
        state.count(d, i, -1.0);
        let (alpha, beta, word) = (state.alpha, state.beta, state.documents[d][i]);
        let inverse = |k: usize| 1.0 / (state.totals[k] + beta * state.words as f64);
        let of_document: Vec<usize> = (0..state.topics).filter(|&k| state.of_document[d][k] > 0.0).collect();
        let of_word: Vec<usize> = (0..state.topics).filter(|&k| state.of_word[word][k] > 0.0).collect();
        let smoothing = (0..state.topics).map(|k| (k, alpha * beta * inverse(k)));
        let second = of_document.iter().map(|&k| (k, state.of_document[d][k] * beta * inverse(k)));
        let third =
            of_word.iter().map(|&k| (k, (alpha + state.of_document[d][k]) * state.of_word[word][k] * inverse(k)));
        let buckets: [Vec<(usize, f64)>; 3] = [smoothing.collect(), second.collect(), third.collect()];
        let bucket = &buckets[draw(buckets.iter().map(|bucket| bucket.iter().map(|(_, weight)| weight).sum()), random)];
        let topic = bucket[draw(bucket.iter().map(|(_, weight)| *weight), random)].0;
        state.assignments[d][i] = topic;
        state.count(d, i, 1.0);
    }
}

/// One sweep of Metropolis-Hastings with current counts: a proposal by the document's other tokens, then one by the
/// word's, which the ratios contain.
fn metropolis_hastings(state: &mut State, random: &mut impl Rng) {
    for (d, i) in state.places() {
        state.count(d, i, -1.0);
        let (topics, word) = (state.topics, state.documents[d][i]);
        let p = |k: usize| (state.of_document[d][k] + state.alpha) * state.phi(word, k);
        let by_document = |k: usize| state.of_document[d][k] + state.alpha;
        let by_word = |k: usize| state.of_word[word][k] + state.beta;
        let mut now = state.assignments[d][i];
        for q in [&by_document as &dyn Fn(usize) -> f64, &by_word] {
            let proposed = draw((0..topics).map(q), random);
            if f64::from(unit(random)) < p(proposed) * q(now) / (p(now) * q(proposed)) {
                now = proposed;
            }
        }
        state.assignments[d][i] = now;
        state.count(d, i, 1.0);
    }
}

const SWEEPS: u32 = 60_000;

/// Documents, how many topics and words there are, and the priors. Words ascend in a document, so that its tokens have the
/// same order whether one goes through words or through documents.
type Case = (Vec<Vec<usize>>, usize, usize, (f64, f64));

/// Three documents of six tokens in all, three words, three topics.
fn tiny() -> Case {
    (vec![vec![0, 1, 1], vec![0, 2], vec![2]], 3, 3, (0.4, 0.3))
}

/// A word in so many documents that its tokens are sampled together, but for those in the document that has several.
fn frequent() -> Case {
    let document = |number: usize| match number {
        0 | 4 => vec![0, 1],
        1 => vec![0, 0],
        _ => vec![0],
    };
    ((0..kernel::TOGETHER_FROM).map(document).collect(), 2, 2, (0.4, 0.3))
}

/// How likely each two tokens are to have the same topic: all that can be said of topics without names.
fn together(assignments: &[usize]) -> Vec<f64> {
    let pairs = (0..assignments.len()).flat_map(|a| (a + 1..assignments.len()).map(move |b| (a, b)));
    pairs.map(|(a, b)| f64::from(u8::from(assignments[a] == assignments[b]))).collect()
}

/// The same by summing over all assignments.
fn exact((documents, topics, words, priors): Case) -> Vec<f64> {
    let mut state = State::new(&documents, topics, words, priors);
    let places: Vec<(usize, usize)> = state.places().collect();
    let (mut sums, mut all) = (vec![0.0; places.len() * (places.len() - 1) / 2], 0.0);
    for mut number in 0..topics.pow(places.len() as u32) {
        for &(d, i) in &places {
            state.count(d, i, -1.0);
            state.assignments[d][i] = number % topics;
            state.count(d, i, 1.0);
            number /= topics;
        }
        let p = state.log_joint().exp();
        all += p;
        let flat: Vec<usize> = state.assignments.concat();
        sums.iter_mut().zip(together(&flat)).for_each(|(sum, same)| *sum += p * same);
    }
    sums.iter().map(|sum| sum / all).collect()
}

fn assert_agree(name: &str, exact: &[f64], mut sweep: impl FnMut() -> Vec<usize>) {
    let mut sums = vec![0.0; exact.len()];
    for _ in 0..SWEEPS {
        sums.iter_mut().zip(together(&sweep())).for_each(|(sum, same)| *sum += same);
    }
    for (sum, exact) in sums.iter().zip(exact) {
        let frequency = sum / f64::from(SWEEPS);
        assert!((frequency - exact).abs() < 0.012, "{name}: {frequency:.4} for {exact:.4}");
    }
}

fn assert_reference_agrees(name: &str, sweep: impl Fn(&mut State, &mut rand_xoshiro::Xoshiro256PlusPlus)) {
    let (documents, topics, words, priors) = tiny();
    let mut state = State::new(&documents, topics, words, priors);
    let mut random = generator(11, 0, 0);
    assert_agree(name, &exact(tiny()), || {
        sweep(&mut state, &mut random);
        state.assignments.concat()
    });
}

#[test]
fn the_references_agree_with_enumeration() {
    assert_reference_agrees("gibbs", gibbs);
    assert_reference_agrees("sparse", sparse);
    assert_reference_agrees("metropolis-hastings", metropolis_hastings);
}

/// One worker, one word after the other, all counts current.
#[test]
fn the_samplers_agree_with_enumeration() {
    for case in [tiny(), frequent()] {
        assert_samplers_agree(case);
    }
}

fn assert_samplers_agree((written, topics, words, (alpha, beta)): Case) {
    let mut vocabulary = Names::default();
    for word in 0..words {
        vocabulary.intern(&word.to_string()).expect("room");
    }
    let mut corpus = Corpus::new(vocabulary);
    written.iter().for_each(|document| corpus.push(document.iter().map(|&word| word as u32)));
    let plan = Plan::new(&corpus, 1, 1, 1);
    let share = Share::new(&corpus, &plan, 0);
    // The worker has documents in an order of its own, and rows for words.
    let mut shared_out = vec![Vec::new(); written.len()];
    for row in 0..words {
        share.of_row(row).for_each(|token| shared_out[share.documents[token] as usize].push(row));
    }
    let exact = exact((shared_out, topics, words, (alpha, beta)));
    let priors = Priors { alpha: alpha as f32, beta: beta as f32, words };
    let rows = || {
        let count =
            |place: usize| if place.is_multiple_of(topics) { share.of_row(place / topics).len() as f32 } else { 0.0 };
        (0..words * topics).map(count).collect::<Vec<f32>>()
    };
    let known = || {
        let mut totals = vec![0; topics];
        totals[0] = share.len() as i32;
        Topics::new(priors, &totals)
    };
    let in_order = |assignments: &[Topic]| {
        share.by_document().iter().map(|&token| usize::from(assignments[token as usize])).collect::<Vec<usize>>()
    };

    let kept = [
        ("rows", Counts::Rows(CountRows::new(share.lengths.len(), topics))),
        ("lists", Counts::Lists(Lists::new(&share.lengths, topics))),
    ];
    for (name, empty) in kept {
        let (mut counts, mut known_topics, mut random) = (rows(), known(), generator(12, 0, 0));
        let mut documents = Documents::new(&share, topics);
        documents.counts = empty;
        (0..share.len()).for_each(|token| documents.assign(share.documents[token], token, 0));
        assert_agree(name, &exact, || {
            for (row, counts) in counts.chunks_mut(topics).enumerate() {
                let tokens = share.of_row(row);
                kernel::sample_word(counts, tokens, &share, &mut documents, &mut known_topics, &mut random);
            }
            documents.sort();
            in_order(documents.assignments())
        });
    }

    let (mut counts, mut known_topics, mut random) = (rows(), known(), generator(12, 0, 0));
    let mut proposals = Proposals::new(&share, topics, vec![0; share.len()]);
    assert_agree("proposals", &exact, || {
        proposals.sample_documents(&mut known_topics, &mut random);
        for (row, counts) in counts.chunks_mut(topics).enumerate() {
            proposals.sample_word(counts, share.of_row(row), &mut known_topics, &mut random);
        }
        in_order(proposals.assignments())
    });
}
