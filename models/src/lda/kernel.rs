//! Exact collapsed Gibbs sampling of all tokens of a word, in time that grows with the topics of a document alone.
//!
//! The conditional is `p(k) ∝ (n_dk + α) φ(k)` with `φ(k) = (n_wk + β) / (n_k + βW)` and the token itself out of all
//! counts. It is cut in two as SparseLDA cuts it in three, but going through a word's tokens rather than a document's
//! keeps `φ` at hand for all of them: `n_dk φ(k)` is summed over the document's topics, and `α Σ φ(k)` is kept up to
//! date. A token costs two flops and six bytes (four of the document, φ is in the first cache) for each topic of its
//! document, plus a constant; what limits it is the way to the document's block in the second or third cache.
//!
//! With one worker every count is current, and this is the Gibbs sampler. With several, the word's row and the totals
//! are as fresh as the tables give them, so it is the usual approximation of parallel samplers.

use super::documents::{Counted, Counts, Documents, LANES, Phi};
use super::share::Share;
use super::topics::{GROUP, Topics};
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
    sample_by::<[f32; LANES]>(row, of_tokens, assignments, counts, topics, random)
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
    topics.open(row);
    let alpha = topics.priors.alpha;
    let mut moved = 0;
    for (i, (&document, assigned)) in of_tokens.iter().zip(assignments).enumerate() {
        if let Some(&document) = of_tokens.get(i + 2 * AHEAD) {
            fetch((counts.finder(document), LINE));
        }
        if let Some(&document) = of_tokens.get(i + AHEAD) {
            fetch(counts.place(document));
        }
        let old = *assigned;
        let (index, group) = (usize::from(old), usize::from(old) / GROUP);
        let (count, total) = (row[index] - 1.0, topics.totals[index] - 1);
        let (phi_before, group_before) = (topics.phi[index], topics.groups[group]);
        let phi = topics.share(count, total);
        topics.phi[index] = phi;
        topics.groups[group] += phi - phi_before;
        let mass = topics.mass + (phi - phi_before);

        let (of_document, parts) = counts.weigh::<V>(document, old, &topics.phi, &mut topics.sums);
        let target = unit(random) * (of_document + alpha * mass);
        let mut spot = None;
        let new = if target < of_document {
            // One by one: a vector of numbers that were just stored one by one would have to wait for them.
            let mut at = 0;
            for &so_far in &topics.sums[..parts - 1] {
                at += usize::from(so_far <= target);
            }
            let before = if at == 0 { 0.0 } else { topics.sums[at - 1] };
            let (topic, here) = counts.pick::<V>(document, old, &topics.phi, at, target - before);
            spot = Some(here);
            topic
        } else {
            topics.find((target - of_document) / alpha)
        };

        if new == old {
            topics.phi[index] = phi_before;
            topics.groups[group] = group_before;
            continue;
        }
        row[index] = count;
        topics.totals[index] = total;
        topics.inverse[index] = 1.0 / (total as f32 + topics.smoothing);
        let (index, group) = (usize::from(new), usize::from(new) / GROUP);
        row[index] += 1.0;
        topics.totals[index] += 1;
        topics.inverse[index] = 1.0 / (topics.totals[index] as f32 + topics.smoothing);
        let phi = topics.share(row[index], topics.totals[index]);
        topics.groups[group] += phi - topics.phi[index];
        topics.mass = mass + (phi - topics.phi[index]);
        topics.phi[index] = phi;

        counts.reassign(document, old, new, spot);
        *assigned = new;
        moved += 1;
    }
    moved
}

/// The lane that `target` falls on. Rounding may take it past the last with a weight, which is then meant.
#[inline(always)]
pub(super) fn pick<V: Vector, const N: usize>(weights: [V; N], target: f32) -> usize {
    let (mut passed, mut positive, mut rest) = (0, 0u32, target);
    for (i, weights) in weights.iter().enumerate() {
        let prefixes = weights.prefixes();
        passed += prefixes.not_above(rest).count_ones();
        rest -= prefixes.last();
        positive |= (0xff ^ weights.not_above(0.0)) << (i * LANES);
    }
    passed.min(positive.checked_ilog2().unwrap_or(0)) as usize
}

/// Eight numbers. Either form of them gives the same bits. What uses them must not do so in a closure that is called
/// from elsewhere, where the processor's vectors are not to be had.
pub(super) trait Vector: Copy {
    /// `(count − one) φ` of topics in their order.
    fn of_row(counts: &[u16; LANES], ones: &[u16; LANES], phi: &[f32; LANES]) -> Self;

    /// `count φ` of listed topics, the count one less at topic `without`.
    fn of_list(counts: &[u16; LANES], topics: &[Topic; LANES], without: Topic, phi: &Phi) -> Self;

    fn add(self, other: Self) -> Self;

    fn sum(self) -> f32;

    /// The sums of the first one, two, … numbers.
    fn prefixes(self) -> Self;

    fn last(self) -> f32;

    /// A bit for each number that is not above `bound`.
    fn not_above(self, bound: f32) -> u32;
}

impl Vector for [f32; LANES] {
    #[inline(always)]
    fn of_row(counts: &[u16; LANES], ones: &[u16; LANES], phi: &[f32; LANES]) -> Self {
        std::array::from_fn(|i| f32::from(counts[i].wrapping_sub(ones[i])) * phi[i])
    }

    #[inline(always)]
    fn of_list(counts: &[u16; LANES], topics: &[Topic; LANES], without: Topic, phi: &Phi) -> Self {
        std::array::from_fn(|i| {
            f32::from(counts[i].wrapping_sub(u16::from(topics[i] == without))) * phi[usize::from(topics[i])]
        })
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i] + other[i])
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        ((self[0] + self[4]) + (self[2] + self[6])) + ((self[1] + self[5]) + (self[3] + self[7]))
    }

    #[inline(always)]
    fn prefixes(self) -> Self {
        let by_two: Self = std::array::from_fn(|i| if i % 4 >= 1 { self[i] + self[i - 1] } else { self[i] });
        let by_four: Self = std::array::from_fn(|i| if i % 4 >= 2 { by_two[i] + by_two[i - 2] } else { by_two[i] });
        std::array::from_fn(|i| if i >= 4 { by_four[i] + by_four[3] } else { by_four[i] })
    }

    #[inline(always)]
    fn last(self) -> f32 {
        self[LANES - 1]
    }

    #[inline(always)]
    fn not_above(self, bound: f32) -> u32 {
        self.iter().enumerate().fold(0, |bits, (i, &x)| bits | u32::from(x <= bound) << i)
    }
}

/// The same with AVX2. SAFETY of every call here: only [`sample`] chooses this type, after it has detected AVX2; the
/// pointers are those of references to [`LANES`] numbers, and a topic is always below the length of `phi`.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the instructions of AVX2 are behind a promise that the machine has them")]
mod avx2 {
    use super::{LANES, Phi, Topic, Vector};
    use std::arch::x86_64::*;

    impl Vector for __m256 {
        #[inline(always)]
        fn of_row(counts: &[u16; LANES], ones: &[u16; LANES], phi: &[f32; LANES]) -> Self {
            unsafe {
                let counts = _mm_loadu_si128(counts.as_ptr().cast());
                let counts = _mm_sub_epi16(counts, _mm_loadu_si128(ones.as_ptr().cast()));
                let counts = _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(counts));
                _mm256_mul_ps(counts, _mm256_loadu_ps(phi.as_ptr()))
            }
        }

        #[inline(always)]
        fn of_list(counts: &[u16; LANES], topics: &[Topic; LANES], without: Topic, phi: &Phi) -> Self {
            unsafe {
                let topics = _mm_loadu_si128(topics.as_ptr().cast());
                // Where the topics are equal, all bits are set, which is the number minus one.
                let minus = _mm_cmpeq_epi16(topics, _mm_set1_epi16(without.cast_signed()));
                let counts = _mm_add_epi16(_mm_loadu_si128(counts.as_ptr().cast()), minus);
                let counts = _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(counts));
                _mm256_mul_ps(counts, _mm256_i32gather_ps::<4>(phi.as_ptr(), _mm256_cvtepu16_epi32(topics)))
            }
        }

        #[inline(always)]
        fn add(self, other: Self) -> Self {
            unsafe { _mm256_add_ps(self, other) }
        }

        #[inline(always)]
        fn sum(self) -> f32 {
            unsafe {
                let four = _mm_add_ps(_mm256_castps256_ps128(self), _mm256_extractf128_ps::<1>(self));
                let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
                _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
            }
        }

        #[inline(always)]
        fn prefixes(self) -> Self {
            unsafe {
                let shifted = _mm256_slli_si256::<4>(_mm256_castps_si256(self));
                let by_two = _mm256_add_ps(self, _mm256_castsi256_ps(shifted));
                let shifted = _mm256_slli_si256::<8>(_mm256_castps_si256(by_two));
                let by_four = _mm256_add_ps(by_two, _mm256_castsi256_ps(shifted));
                // The lower half's last number for all of the upper half, zeros for the lower.
                let lower = _mm256_permute2f128_ps::<0x08>(by_four, by_four);
                _mm256_add_ps(by_four, _mm256_shuffle_ps::<0xff>(lower, lower))
            }
        }

        #[inline(always)]
        fn last(self) -> f32 {
            unsafe {
                let upper = _mm256_extractf128_ps::<1>(self);
                _mm_cvtss_f32(_mm_shuffle_ps::<0xff>(upper, upper))
            }
        }

        #[inline(always)]
        fn not_above(self, bound: f32) -> u32 {
            unsafe { _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LE_OQ>(self, _mm256_set1_ps(bound))).cast_unsigned() }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::super::generator;
    use super::*;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn both_forms_of_a_vector_have_the_same_bits() {
        use std::arch::x86_64::__m256;
        if !is_x86_feature_detected!("avx2") {
            return;
        }
        fn all<V: Vector>(counts: &[u16; LANES], topics: &[Topic; LANES], phi: &Phi, bound: f32) -> Vec<u32> {
            let ones: [u16; LANES] = std::array::from_fn(|i| u16::from(i == 3));
            let row = V::of_row(counts, &ones, phi.first_chunk().expect("long enough"));
            let list = V::of_list(counts, topics, topics[5], phi);
            let floats = [row.sum(), list.sum(), row.add(list).sum(), list.last(), list.prefixes().last()];
            let bits = [row.not_above(bound), list.prefixes().not_above(bound), pick([row, list], bound) as u32];
            floats.iter().map(|x| x.to_bits()).chain(bits).collect()
        }
        let mut random = generator(5, 0, 0);
        let mut phi: Box<Phi> = vec![0.0; 1 << Topic::BITS].into_boxed_slice().try_into().expect("as long as made");
        phi.iter_mut().for_each(|phi| *phi = unit(&mut random));
        for _ in 0..500 {
            let counts = std::array::from_fn(|_| 1 + (random.next_u32() % 40) as u16);
            let topics = std::array::from_fn(|i| (random.next_u32() % 8000) as u16 * 8 + i as u16);
            let bound = unit(&mut random) * 100.0;
            let portable = all::<[f32; LANES]>(&counts, &topics, &phi, bound);
            assert_eq!(all::<__m256>(&counts, &topics, &phi, bound), portable);
        }
    }
}
