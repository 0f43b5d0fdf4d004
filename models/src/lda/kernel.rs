//! Exact collapsed Gibbs sampling of all tokens of a word, in time that grows with the topics of a document alone.
//!
//! The conditional is `p(k) ∝ (n_dk + α) φ(k)` with `φ(k) = (n_wk + β) / (n_k + βW)` and the token itself out of all
//! counts. It is cut in two as SparseLDA cuts it in three, but going through a word's tokens rather than a document's
//! keeps `φ` at hand for all of them: `n_dk φ(k)` is summed over the document's topics, and `α Σ φ(k)` is kept up to
//! date. The topic that the token has is weighed apart, so that `φ` need not be changed before it is known whether the
//! token leaves it.
//!
//! With one worker every count is current, and this is the Gibbs sampler. With several, the word's row and the totals
//! are as fresh as the tables give them, so it is the usual approximation of parallel samplers.

use super::documents::{Counted, Counts, Documents};
use super::share::Share;
use super::topics::{Priors, Topics};
use super::vector::{Lanes, Vector, locate};
use super::{Topic, unit};
use rand_core::Rng;
use std::ops::Range;

/// How many tokens ahead the counts of documents are fetched.
const AHEAD: usize = 12;
/// Bytes of a cache line.
const LINE: usize = 64;
/// How many of them are fetched ahead: the processor sees the others coming.
const LINES_AHEAD: usize = 6;

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
    sample_by::<Lanes>(row, of_tokens, assignments, counts, topics, random)
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
    sample_by::<std::arch::x86_64::__m256>(row, of_tokens, assignments, counts, topics, random)
}

#[inline(always)]
fn sample_by<V: Vector>(
    row: &mut [f32],
    of_tokens: &[u32],
    assignments: &mut [Topic],
    counts: &mut impl Counted,
    topics: &mut Topics,
    random: &mut impl Rng,
) -> u64 {
    topics.open::<V>(row);
    let Priors { alpha, beta, .. } = topics.priors;
    let mut moved = 0;
    for (i, (&document, assigned)) in of_tokens.iter().zip(assignments).enumerate() {
        if let Some(&document) = of_tokens.get(i + 2 * AHEAD) {
            fetch((counts.finder(document), LINE));
        }
        if let Some(&document) = of_tokens.get(i + AHEAD) {
            fetch(counts.place(document));
        }
        // The counts of the topic that the token has are those without it.
        let old = *assigned;
        let index = usize::from(old);
        let (count, total, phi_before) = (row[index] - 1.0, topics.totals[index] - 1, topics.phi(index));
        let inverse = 1.0 / (total as f32 + topics.smoothing);
        let phi = (count + beta) * inverse;
        let (of_document, parts, from) = counts.weigh::<V>(document, old, &topics.phi, &mut topics.sums);
        let stays = (f32::from(counts.at(document, from).1 - 1) + alpha) * phi;
        let elsewhere = alpha * (topics.mass - phi_before).max(0.0);
        let all = of_document.add(V::load(&Lanes([stays, elsewhere, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])));
        all.store(&mut topics.sums[parts]);
        let prefixes = all.prefixes();
        let target = unit(random) * prefixes.last();
        let (spot, rest) = locate(&topics.sums[..=parts], prefixes, target);
        let (new, to) = if spot.at < parts {
            (counts.at(document, spot).0, Some(spot))
        } else if spot.lane == 0 {
            (old, Some(from))
        } else {
            (topics.find::<V>(rest / alpha, index), None)
        };

        // Without asking whether the topic is another: taking the token out and putting it back changes nothing, and
        // takes less time than a wrong guess of the processor.
        row[index] = count;
        topics.totals[index] = total;
        topics.inverse[index] = inverse;
        topics.set_phi::<V>(index, phi_before, phi);
        let index = usize::from(new);
        row[index] += 1.0;
        topics.totals[index] += 1;
        topics.inverse[index] = 1.0 / (topics.totals[index] as f32 + topics.smoothing);
        let phi = (row[index] + beta) * topics.inverse[index];
        topics.set_phi::<V>(index, topics.phi(index), phi);
        counts.reassign(document, (old, from), new, to);
        *assigned = new;
        moved += u64::from(new != old);
    }
    moved
}

/// Asks for so many bytes to be brought near, or the first of them.
#[inline(always)]
pub(super) fn fetch((place, bytes): (*const u8, usize)) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..bytes.min(LINES_AHEAD * LINE)).step_by(LINE) {
        #[expect(unsafe_code, reason = "SAFETY: fetching ahead reads nothing, whatever the address")]
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(place.wrapping_add(line).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (place, bytes);
}
