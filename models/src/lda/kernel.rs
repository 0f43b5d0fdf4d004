//! Exact collapsed Gibbs sampling of all tokens of a word, in time that grows with the topics of a document alone.
//!
//! The conditional is `p(k) ∝ (n_dk + α) φ(k)` with `φ(k) = (n_wk + β) / (n_k + βW)` and the token itself out of all
//! counts. Going through a word's tokens rather than a document's keeps `φ` at hand for all of them. For few topics all
//! weights are summed; for many it is cut in two as SparseLDA cuts it in three: `n_dk φ(k)` is summed over the document's
//! topics, and `Σ φ(k)` is kept up to date.
//!
//! A token's draw waits for what the one before it has changed, and most of the time a processor would wait too. So a few
//! tokens of the word, in as many documents, are taken out of the counts together, and a topic is drawn for each as if the
//! others had none. That is a proposal which does not depend on what they have; it is accepted by the rule of Metropolis and
//! Hastings, one token after the other with the others in the counts, which leaves the distribution as it is as the Gibbs
//! sampler does. Nearly all are accepted, because a few tokens hardly change `φ`; the tokens of rare words, of which that
//! is not true, are drawn one by one. So are all where documents have lists of topics: going through a list keeps the
//! processor busy.
//!
//! With one worker every count is current. With several, the word's row and the totals are as fresh as the tables give
//! them, so it is the usual approximation of parallel samplers.

use super::documents::{Counted, Counts, Documents};
use super::share::Share;
use super::topics::{Topics, Word};
use super::vector::{Lanes, Vector};
use super::{Topic, two_units};
use rand_core::Rng;
use std::ops::Range;

/// How many tokens are sampled together. With two the processor waits more, and with four it runs out of registers.
pub(super) const TOGETHER: usize = 3;
/// Words with fewer tokens than these have them sampled one by one.
pub(super) const TOGETHER_FROM: usize = 4 * TOGETHER;
/// How many turns ahead the counts of documents are fetched.
const AHEAD: usize = 3;

/// Gives every one of `tokens`, which are the same word's, a new topic; `row` are the word's counts. Returns how many got
/// another topic than they had.
pub fn sample_word(
    row: &mut [f32],
    tokens: Range<usize>,
    share: &Share,
    documents: &mut Documents,
    topics: &mut Topics,
    random: &mut impl Rng,
) -> u64 {
    let of_tokens = &share.documents[tokens.clone()];
    let assignments = &mut documents.assignments[tokens];
    match &mut documents.counts {
        Counts::Lists(counts) => sample(row, of_tokens, assignments, counts, topics, random),
        Counts::Rows(counts) => sample(row, of_tokens, assignments, counts, topics, random),
    }
}

fn sample(
    row: &mut [f32],
    of_tokens: &[u32],
    assignments: &mut [Topic],
    counts: &mut impl Counted,
    topics: &mut Topics,
    random: &mut impl Rng,
) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "the call needs a promise that the feature is there")]
        // SAFETY: the processor has just been asked for AVX2.
        return unsafe { sample_avx2(row, of_tokens, assignments, counts, topics, random) };
    }
    sample_by::<Lanes, _>(row, of_tokens, assignments, counts, topics, random)
}

/// The same program for processors with vectors of eight numbers; it has the same bits, because no sum is in another
/// order.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn sample_avx2(
    row: &mut [f32],
    of_tokens: &[u32],
    assignments: &mut [Topic],
    counts: &mut impl Counted,
    topics: &mut Topics,
    random: &mut impl Rng,
) -> u64 {
    sample_by::<std::arch::x86_64::__m256, _>(row, of_tokens, assignments, counts, topics, random)
}

#[inline(always)]
fn sample_by<V: Vector, C: Counted>(
    row: &mut [f32],
    of_tokens: &[u32],
    assignments: &mut [Topic],
    counts: &mut C,
    topics: &mut Topics,
    random: &mut impl Rng,
) -> u64 {
    let mut word = topics.open::<V>(row, C::LISTED);
    let tokens = of_tokens.len();
    let part = if C::LISTED || tokens < TOGETHER_FROM { 0 } else { tokens / TOGETHER };
    let mut moved = 0;
    for turn in 0..=part {
        let (mut first, mut step, mut count) = (TOGETHER * part, 1, tokens - TOGETHER * part);
        if turn < part {
            let places: [usize; TOGETHER] = std::array::from_fn(|which| turn + which * part);
            for place in places {
                fetch_ahead(counts, of_tokens, place, AHEAD);
            }
            let documents = places.map(|place| of_tokens[place]);
            if documents.is_sorted_by(|one, next| one < next) {
                let old = places.map(|place| assignments[place]);
                let new = sample_together::<V, C, TOGETHER>(&documents, &old, counts, &mut word, random);
                for which in 0..TOGETHER {
                    assignments[places[which]] = new[which];
                    moved += usize::from(new[which] != old[which]);
                }
                continue;
            }
            (first, step, count) = (turn, part, TOGETHER);
        }
        for place in (0..count).map(|which| first + which * step) {
            if step == 1 {
                fetch_ahead(counts, of_tokens, place, TOGETHER * AHEAD);
            }
            let old = [assignments[place]];
            let new = sample_together::<V, C, 1>(&[of_tokens[place]], &old, counts, &mut word, random);
            assignments[place] = new[0];
            moved += usize::from(new != old);
        }
    }
    moved as u64
}

/// Fetches the counts of the document that has its turn after so many others, and what says where those lie of a later
/// one.
#[inline(always)]
fn fetch_ahead(counts: &impl Counted, of_tokens: &[u32], place: usize, ahead: usize) {
    if let Some(&document) = of_tokens.get(place + 2 * ahead) {
        counts.fetch_place(document);
    }
    if let Some(&document) = of_tokens.get(place + ahead) {
        counts.fetch(document);
    }
}

/// The new topics of tokens of the word, in documents no two of which are the same. `old` are those that they have.
#[inline(always)]
fn sample_together<V: Vector, C: Counted, const N: usize>(
    documents: &[u32; N],
    old: &[Topic; N],
    counts: &mut C,
    word: &mut Word<'_>,
    random: &mut impl Rng,
) -> [Topic; N] {
    let mut parts = [(0.0, 0.0); N];
    for which in 0..N {
        word.change::<V>(old[which], -1, C::LISTED);
        parts[which] = two_units(random);
    }
    let drawn = counts.draw::<V, N>(documents, old, &parts.map(|(part, _)| part), word);
    let mut new = drawn.map(|(topic, _)| topic);
    for which in 0..N {
        let (from, to, part) = (old[which], new[which], parts[which].1);
        // How many of the others have a topic now, those before with the new one and those behind with the old.
        let others = |topic: Topic| -> u8 {
            (0..N).map(|other| u8::from((if other < which { new } else { *old })[other] == topic)).sum::<u8>()
                - u8::from(from == topic)
        };
        let count = word.count(from) + word.priors.beta;
        // Others make a topic likelier, at most as many times as they make its tokens more: that suffices mostly, and often
        // without a look at them.
        if part * (count + (N - 1) as f32) >= count
            && part * (count + f32::from(others(from))) >= count
            && !word.accepts([(from, others(from)), (to, others(to))], part)
        {
            new[which] = from;
        }
    }
    for which in 0..N {
        word.change::<V>(new[which], 1, C::LISTED);
        counts.settle(documents[which], old[which], new[which], drawn[which].1);
    }
    new
}
