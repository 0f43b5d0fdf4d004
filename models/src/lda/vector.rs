//! Eight numbers at a time: weights, their running sums, and what a draw falls on.
//!
//! Sums run in eight lanes side by side, so that a weight costs one addition and nothing is summed across before all
//! weights are. A draw then falls on a lane first, and on a place in it second.

use super::Topic;
use bytemuck::{Pod, Zeroable};

/// Numbers are worked on in groups of this many, the width of an AVX register.
pub(super) const LANES: usize = 8;

/// Eight numbers that no cache line parts.
#[repr(C, align(32))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub(super) struct Lanes(pub(super) [f32; LANES]);

/// `φ(k)` of all numbers that a topic can have, so that none is out of bounds.
pub(super) type Phi = [Lanes; (1 << Topic::BITS) / LANES];

/// A place among running sums: the sum, and the lane of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) at: usize,
    pub(super) lane: usize,
}

/// Where `target` falls among weights whose running sums are `sums`, and `prefixes` those of the last of them; also how
/// far into the weight it falls.
#[inline(always)]
pub(super) fn locate<V: Vector>(sums: &[Lanes], prefixes: V, target: f32) -> (Spot, f32) {
    // The lanes before the first have a sum of zero.
    let mut before = [Lanes::default(); 2];
    prefixes.store(&mut before[1]);
    let lane = (prefixes.not_above(target).count_ones() as usize).min(LANES - 1);
    let rest = target - bytemuck::cast_slice::<Lanes, f32>(&before)[LANES - 1 + lane];
    let at = V::passed(sums, lane, rest);
    if at < sums.len() {
        let passed = if at == 0 { 0.0 } else { sums[at - 1].0[lane] };
        return (Spot { at, lane }, rest - passed);
    }
    (last_weight(sums, lane), 0.0)
}

/// The last place with a weight in a lane, or in one before or behind it: rounding may take a draw past all of a lane.
#[cold]
fn last_weight(sums: &[Lanes], lane: usize) -> Spot {
    let end = sums[sums.len() - 1];
    let has_weight = |lane: &usize| end.0[*lane] > 0.0;
    let lane = (0..=lane).rev().chain(lane..LANES).find(has_weight).unwrap_or(lane);
    let at = sums.iter().position(|sum| sum.0[lane] >= end.0[lane]).unwrap_or(0);
    Spot { at, lane }
}

/// Eight numbers. Either form of them gives the same bits. What uses them must not do so in a closure that is called
/// from elsewhere, where the processor's vectors are not to be had.
pub(super) trait Vector: Copy {
    fn load(lanes: &Lanes) -> Self;

    fn store(self, lanes: &mut Lanes);

    /// `count φ` of topics in their order, of counts whose bits are among those to `keep`.
    fn of_row(counts: &[u16; LANES], keep: &[u16; LANES], phi: &Lanes) -> Self;

    /// `count φ` of listed topics but for `without`, and a bit for where that is.
    fn of_list(counts: &[u16; LANES], topics: &[Topic; LANES], without: Topic, phi: &Phi) -> (Self, u32);

    /// `(count + β) / (n_k + βW)` of a word's counts, given the inverses.
    fn of_word(counts: &[f32; LANES], beta: f32, inverse: &[f32; LANES]) -> Self;

    fn add(self, other: Self) -> Self;

    fn sum(self) -> f32;

    /// The sums of the first one, two, … numbers.
    fn prefixes(self) -> Self;

    fn last(self) -> f32;

    /// A bit for each number that is not above `bound`.
    fn not_above(self, bound: f32) -> u32;

    /// How many of the numbers in a lane are not above `bound`.
    fn passed(sums: &[Lanes], lane: usize, bound: f32) -> usize;

    /// Puts a number into a lane, by way of all lanes: what is written as it will be read need not reach the cache before.
    fn replace(lanes: &mut Lanes, lane: usize, number: f32);
}

impl Vector for Lanes {
    #[inline(always)]
    fn load(lanes: &Lanes) -> Self {
        *lanes
    }

    #[inline(always)]
    fn store(self, lanes: &mut Lanes) {
        *lanes = self;
    }

    #[inline(always)]
    fn of_row(counts: &[u16; LANES], keep: &[u16; LANES], phi: &Lanes) -> Self {
        Self(std::array::from_fn(|i| f32::from(counts[i] & keep[i]) * phi.0[i]))
    }

    #[inline(always)]
    fn of_list(counts: &[u16; LANES], topics: &[Topic; LANES], without: Topic, phi: &Phi) -> (Self, u32) {
        let phi: &[f32] = bytemuck::cast_slice(phi);
        let count = |i: usize| if topics[i] == without { 0 } else { counts[i] };
        let weights = std::array::from_fn(|i| f32::from(count(i)) * phi[usize::from(topics[i])]);
        (Self(weights), topics.iter().enumerate().fold(0, |bits, (i, &t)| bits | u32::from(t == without) << i))
    }

    #[inline(always)]
    fn of_word(counts: &[f32; LANES], beta: f32, inverse: &[f32; LANES]) -> Self {
        Self(std::array::from_fn(|i| (counts[i] + beta) * inverse[i]))
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        let [a, b, c, d, e, f, g, h] = self.0;
        ((a + e) + (c + g)) + ((b + f) + (d + h))
    }

    #[inline(always)]
    fn prefixes(self) -> Self {
        let x = self.0;
        let by_two: [f32; LANES] = std::array::from_fn(|i| if i % 4 >= 1 { x[i] + x[i - 1] } else { x[i] });
        let by_four: [f32; LANES] =
            std::array::from_fn(|i| if i % 4 >= 2 { by_two[i] + by_two[i - 2] } else { by_two[i] });
        Self(std::array::from_fn(|i| if i >= 4 { by_four[i] + by_four[3] } else { by_four[i] }))
    }

    #[inline(always)]
    fn last(self) -> f32 {
        self.0[LANES - 1]
    }

    #[inline(always)]
    fn not_above(self, bound: f32) -> u32 {
        self.0.iter().enumerate().fold(0, |bits, (i, &x)| bits | u32::from(x <= bound) << i)
    }

    #[inline(always)]
    fn passed(sums: &[Lanes], lane: usize, bound: f32) -> usize {
        sums.iter().filter(|sum| sum.0[lane] <= bound).count()
    }

    #[inline(always)]
    fn replace(lanes: &mut Lanes, lane: usize, number: f32) {
        lanes.0[lane] = number;
    }
}

/// The same with AVX2. SAFETY of every call here: only the samplers choose this type, after they have detected AVX2; the
/// pointers are those of references to [`LANES`] numbers, and a topic is always below the length of `phi`.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the instructions of AVX2 are behind a promise that the machine has them")]
mod avx2 {
    use super::{LANES, Lanes, Phi, Topic, Vector};
    use std::arch::x86_64::*;

    /// All bits of the lane, none of the others.
    #[inline(always)]
    fn only(lane: usize) -> __m256i {
        unsafe { _mm256_cmpeq_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(lane as i32)) }
    }

    #[inline(always)]
    fn widened(counts: __m128i) -> __m256 {
        unsafe { _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(counts)) }
    }

    impl Vector for __m256 {
        #[inline(always)]
        fn load(lanes: &Lanes) -> Self {
            unsafe { _mm256_load_ps(lanes.0.as_ptr()) }
        }

        #[inline(always)]
        fn store(self, lanes: &mut Lanes) {
            unsafe { _mm256_store_ps(lanes.0.as_mut_ptr(), self) }
        }

        #[inline(always)]
        fn of_row(counts: &[u16; LANES], keep: &[u16; LANES], phi: &Lanes) -> Self {
            unsafe {
                let keep = _mm_loadu_si128(keep.as_ptr().cast());
                let counts = _mm_and_si128(_mm_loadu_si128(counts.as_ptr().cast()), keep);
                _mm256_mul_ps(widened(counts), Self::load(phi))
            }
        }

        #[inline(always)]
        fn of_list(counts: &[u16; LANES], topics: &[Topic; LANES], without: Topic, phi: &Phi) -> (Self, u32) {
            unsafe {
                let topics = _mm_loadu_si128(topics.as_ptr().cast());
                let there = _mm_cmpeq_epi16(topics, _mm_set1_epi16(without.cast_signed()));
                let counts = _mm_andnot_si128(there, _mm_loadu_si128(counts.as_ptr().cast()));
                let phi = _mm256_i32gather_ps::<4>(phi.as_ptr().cast(), _mm256_cvtepu16_epi32(topics));
                let bits = _mm_movemask_epi8(_mm_packs_epi16(there, _mm_setzero_si128()));
                (_mm256_mul_ps(widened(counts), phi), bits.cast_unsigned())
            }
        }

        #[inline(always)]
        fn of_word(counts: &[f32; LANES], beta: f32, inverse: &[f32; LANES]) -> Self {
            unsafe {
                let counts = _mm256_add_ps(_mm256_loadu_ps(counts.as_ptr()), _mm256_set1_ps(beta));
                _mm256_mul_ps(counts, _mm256_loadu_ps(inverse.as_ptr()))
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

        #[inline(always)]
        fn passed(sums: &[Lanes], lane: usize, bound: f32) -> usize {
            unsafe {
                let (mut counts, bound) = (_mm256_setzero_si256(), _mm256_set1_ps(bound));
                for sum in sums {
                    // Where it holds, all bits are set, which is the number minus one.
                    let holds = _mm256_cmp_ps::<_CMP_LE_OQ>(Self::load(sum), bound);
                    counts = _mm256_sub_epi32(counts, _mm256_castps_si256(holds));
                }
                let counts = _mm256_permutevar8x32_epi32(counts, _mm256_set1_epi32(lane as i32));
                _mm_cvtsi128_si32(_mm256_castsi256_si128(counts)) as usize
            }
        }

        #[inline(always)]
        fn replace(lanes: &mut Lanes, lane: usize, number: f32) {
            unsafe {
                let mask = _mm256_castsi256_ps(only(lane));
                _mm256_blendv_ps(Self::load(lanes), _mm256_set1_ps(number), mask).store(lanes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{generator, unit};
    use super::*;
    use rand_core::Rng;

    #[test]
    fn a_draw_falls_on_weights_in_proportion() {
        // Two sums of eight lanes; one weight is zero, and so is a lane.
        let weights: [[f32; LANES]; 2] =
            [[1.0, 0.0, 2.0, 0.0, 1.0, 1.0, 0.5, 0.5], [0.0, 3.0, 1.0, 0.0, 1.0, 2.0, 1.0, 2.0]];
        let sums = [Lanes(weights[0]), Lanes(weights[0]).add(Lanes(weights[1]))];
        let prefixes = sums[1].prefixes();
        assert_eq!(prefixes.last(), 16.0);
        let mut falls = [[0.0f32; LANES]; 2];
        for step in 0..1600 {
            let (Spot { at, lane }, rest) = locate(&sums, prefixes, step as f32 * 0.01);
            falls[at][lane] += 0.01;
            assert!((0.0..=weights[at][lane]).contains(&rest), "{rest}");
        }
        for (fall, weight) in falls.as_flattened().iter().zip(weights.as_flattened()) {
            assert!((fall - weight).abs() < 0.02, "{falls:?}");
        }
        assert_eq!(locate(&sums, prefixes, 16.5).0, Spot { at: 1, lane: 7 }, "past the end the last is meant");
        assert_eq!(last_weight(&sums, 3), Spot { at: 1, lane: 2 }, "a lane without weight is not meant");
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn both_forms_of_a_vector_have_the_same_bits() {
        use std::arch::x86_64::__m256;
        if !is_x86_feature_detected!("avx2") {
            return;
        }
        fn all<V: Vector>(counts: &[u16; LANES], topics: &[Topic; LANES], phi: &Phi, bound: f32) -> Vec<u32> {
            let keep: [u16; LANES] = std::array::from_fn(|i| if i == 3 { 0 } else { u16::MAX });
            let row = V::of_row(counts, &keep, &phi[0]);
            let (list, there) = V::of_list(counts, topics, topics[5], phi);
            let word = V::of_word(&phi[1].0, 0.01, &phi[2].0);
            let mut sums = [Lanes::default(); 3];
            row.store(&mut sums[0]);
            row.add(list).store(&mut sums[1]);
            row.add(list).add(word).store(&mut sums[2]);
            let prefixes = V::load(&sums[2]).prefixes();
            let (spot, rest) = locate(&sums, prefixes, bound);
            let mut replaced = phi[3];
            V::replace(&mut replaced, 2, bound);
            let floats =
                [row.sum(), list.sum(), word.sum(), list.last(), prefixes.last(), rest, V::load(&replaced).sum()];
            let bits =
                [there, row.not_above(bound), V::passed(&sums, 6, bound) as u32, (spot.at * LANES + spot.lane) as u32];
            floats.iter().map(|x| x.to_bits()).chain(bits).collect()
        }
        let mut random = generator(5, 0, 0);
        let mut phi: Box<Phi> =
            vec![Lanes::default(); (1 << Topic::BITS) / LANES].into_boxed_slice().try_into().expect("as long as made");
        bytemuck::cast_slice_mut(phi.as_mut_slice()).iter_mut().for_each(|phi: &mut f32| *phi = unit(&mut random));
        for _ in 0..500 {
            let counts = std::array::from_fn(|_| 1 + (random.next_u32() % 40) as u16);
            let topics = std::array::from_fn(|i| (random.next_u32() % 8000) as u16 * 8 + i as u16);
            let bound = unit(&mut random) * 100.0;
            let portable = all::<Lanes>(&counts, &topics, &phi, bound);
            assert_eq!(all::<__m256>(&counts, &topics, &phi, bound), portable);
        }
    }
}
