//! Eight numbers at a time: weights, their running sums, and what a draw falls on.
//!
//! Sums run in eight lanes side by side, so that a weight costs one addition and nothing is summed across before all
//! weights are. A draw then falls on a lane first, and on a place in it second.

use super::Topic;
use super::lists::{Block, NO_SLOT};
use bytemuck::{Pod, Zeroable};

/// Numbers are worked on in groups of this many, the width of an AVX register.
pub(super) const LANES: usize = 8;

/// Among so few sums and infinite ones behind them a number is found in two steps.
pub(super) const FEW: usize = 16;

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

/// Where `target` falls among weights whose running sums are number `which` of every one of `sums`, and `prefixes` those
/// of the last of them; also how far into the weight it falls.
#[inline(always)]
pub(super) fn locate<V: Vector, const N: usize>(
    sums: &[[Lanes; N]],
    which: usize,
    prefixes: V,
    target: f32,
) -> (Spot, f32) {
    let (lane, rest) = lane_of(prefixes, target);
    let at = V::passed(sums, which, lane, rest);
    if at < sums.len() {
        let passed = if at == 0 { 0.0 } else { sums[at - 1][which].0[lane] };
        return (Spot { at, lane }, rest - passed);
    }
    (last_weight(sums.iter().map(|sums| &sums[which]), lane), 0.0)
}

/// As [`locate`] of the number at `part` of all, among `count` sums that are followed by infinite ones; not how far.
#[inline(always)]
pub(super) fn locate_among_few<V: Vector, const N: usize>(
    sums: &[[Lanes; N]; FEW],
    which: usize,
    count: usize,
    prefixes: V,
    part: f32,
) -> Spot {
    let (lane, rest) = lane_of(prefixes, part * prefixes.last());
    // Numbers that are not negative have the order of their bits.
    let passes = |at: usize| usize::from(sums[at % FEW][which].0[lane].to_bits() <= rest.to_bits());
    // By arithmetic, since which way it goes cannot be foreseen, and in two steps of three numbers side by side.
    let quarter = FEW / 4 * (passes(FEW / 4 - 1) + passes(FEW / 2 - 1) + passes(FEW / 4 * 3 - 1));
    let at = quarter + passes(quarter) + passes(quarter + 1) + passes(quarter + 2);
    if at < count { Spot { at, lane } } else { last_weight(sums[..count].iter().map(|sums| &sums[which]), lane) }
}

/// The lane that `target` falls into, given the running sums of all, and how far.
#[inline(always)]
fn lane_of<V: Vector>(prefixes: V, target: f32) -> (usize, f32) {
    // The lanes before the first have a sum of zero.
    let mut before = [Lanes::default(); 2];
    prefixes.store(&mut before[1]);
    let lane = (prefixes.not_above(target).count_ones() as usize).min(LANES - 1);
    (lane, target - bytemuck::cast_slice::<Lanes, f32>(&before)[LANES - 1 + lane])
}

/// The last place with a weight in a lane, or in one before or behind it: rounding may take a draw past all of a lane.
#[cold]
fn last_weight<'a>(mut sums: impl DoubleEndedIterator<Item = &'a Lanes> + Clone, lane: usize) -> Spot {
    let end = sums.clone().next_back().copied().unwrap_or_default();
    let has_weight = |lane: &usize| end.0[*lane] > 0.0;
    let lane = (0..=lane).rev().chain(lane..LANES).find(has_weight).unwrap_or(lane);
    let at = sums.position(|sum| sum.0[lane] >= end.0[lane]).unwrap_or(0);
    Spot { at, lane }
}

/// Eight numbers. Either form of them gives the same bits. What uses them must not do so in a closure that is called
/// from elsewhere, where the processor's vectors are not to be had.
pub(super) trait Vector: Copy {
    fn load(lanes: &Lanes) -> Self;

    fn store(self, lanes: &mut Lanes);

    fn zero() -> Self;

    /// The running sums of `(count + α) φ` of rows, topics in their order, which must be as many as there are `phi` and
    /// `sums`; the last of them.
    fn weigh_rows<const N: usize>(
        rows: &[&[[u16; LANES]]; N],
        alpha: f32,
        phi: &[Lanes],
        sums: &mut [[Lanes; N]],
    ) -> [Self; N];

    /// The running sums of `count φ` of listed topics, with one token less of `without`, of which there must be one; the
    /// last of them, and the slot of `without`.
    fn weigh_list(blocks: &[Block], without: Topic, phi: &Phi, sums: &mut [[Lanes; 1]]) -> (Self, usize);

    /// The slot of a listed topic, or [`NO_SLOT`].
    fn find_in(blocks: &[Block], topic: Topic) -> usize;

    /// `(count + β) / (n_k + βW)` of a word's counts and of totals `n_k`.
    fn of_word(counts: &[f32; LANES], beta: f32, totals: &[i32; LANES], smoothing: f32) -> Self;

    fn add(self, other: Self) -> Self;

    fn sum(self) -> f32;

    /// The sums of the first one, two, … numbers.
    fn prefixes(self) -> Self;

    fn last(self) -> f32;

    /// A bit for each number that is not above `bound`.
    fn not_above(self, bound: f32) -> u32;

    /// How many of the numbers in a lane of number `which` of every one of `sums` are not above `bound`.
    fn passed<const N: usize>(sums: &[[Lanes; N]], which: usize, lane: usize, bound: f32) -> usize;

    /// Puts a number into a lane, by way of all lanes: what is written as it will be read need not reach the cache before.
    fn replace(lanes: &mut Lanes, lane: usize, number: f32);

    /// Takes one off a count, in the same way.
    fn lower(counts: &mut [u16; LANES], lane: usize);
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
    fn zero() -> Self {
        Self::default()
    }

    #[inline(always)]
    fn weigh_rows<const N: usize>(
        rows: &[&[[u16; LANES]]; N],
        alpha: f32,
        phi: &[Lanes],
        sums: &mut [[Lanes; N]],
    ) -> [Self; N] {
        let mut all = [Self::default(); N];
        for ((all, row), which) in all.iter_mut().zip(rows).zip(0..) {
            for ((counts, phi), sums) in row.iter().zip(phi).zip(&mut *sums) {
                let weights: [f32; LANES] = std::array::from_fn(|i| (f32::from(counts[i]) + alpha) * phi.0[i]);
                *all = all.add(Self(weights));
                sums[which] = *all;
            }
        }
        all
    }

    #[inline(always)]
    fn weigh_list(blocks: &[Block], without: Topic, phi: &Phi, sums: &mut [[Lanes; 1]]) -> (Self, usize) {
        let (phi, mut all): (&[f32], _) = (bytemuck::cast_slice(phi), Self::default());
        for (Block { topics, counts }, [sum]) in blocks.iter().zip(sums) {
            let count = |i: usize| counts[i].wrapping_sub(u16::from(topics[i] == without));
            all = all.add(Self(std::array::from_fn(|i| f32::from(count(i)) * phi[usize::from(topics[i])])));
            *sum = all;
        }
        (all, Self::find_in(blocks, without))
    }

    #[inline(always)]
    fn find_in(blocks: &[Block], topic: Topic) -> usize {
        let lanes = |block: &Block| (0..LANES).fold(0u32, |bits, i| bits | u32::from(block.topics[i] == topic) << i);
        let found = |(at, block)| Some((at, lanes(block))).filter(|(_, bits)| *bits != 0);
        blocks
            .iter()
            .enumerate()
            .find_map(found)
            .map_or(NO_SLOT, |(at, bits)| at * LANES + bits.trailing_zeros() as usize)
    }

    #[inline(always)]
    fn of_word(counts: &[f32; LANES], beta: f32, totals: &[i32; LANES], smoothing: f32) -> Self {
        Self(std::array::from_fn(|i| (counts[i] + beta) / (totals[i] as f32 + smoothing)))
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
    fn passed<const N: usize>(sums: &[[Lanes; N]], which: usize, lane: usize, bound: f32) -> usize {
        sums.iter().filter(|sums| sums[which].0[lane] <= bound).count()
    }

    #[inline(always)]
    fn replace(lanes: &mut Lanes, lane: usize, number: f32) {
        lanes.0[lane] = number;
    }

    #[inline(always)]
    fn lower(counts: &mut [u16; LANES], lane: usize) {
        counts[lane] = counts[lane].wrapping_sub(1);
    }
}

/// The same with AVX2. SAFETY of every call here: only the samplers choose this type, after they have detected AVX2; the
/// pointers are those of references to [`LANES`] numbers, or into slices whose lengths were compared, and a topic is always
/// below the length of `phi`.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the instructions of AVX2 are behind a promise that the machine has them")]
mod avx2 {
    use super::{Block, LANES, Lanes, Phi, Topic, Vector};
    use std::arch::x86_64::*;

    /// All bits of one lane, none of the others, for every lane.
    static ONLY: [[i32; LANES]; LANES] = only();
    static ONLY_COUNT: [[i16; LANES]; LANES] = {
        let (mut narrow, only, mut i) = ([[0; LANES]; LANES], only(), 0);
        while i < LANES * LANES {
            narrow[i / LANES][i % LANES] = only[i / LANES][i % LANES] as i16;
            i += 1;
        }
        narrow
    };

    const fn only() -> [[i32; LANES]; LANES] {
        let (mut bits, mut lane) = ([[0; LANES]; LANES], 0);
        while lane < LANES {
            bits[lane][lane] = -1;
            lane += 1;
        }
        bits
    }

    #[inline(always)]
    fn widened(counts: __m128i) -> __m256 {
        unsafe { _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(counts)) }
    }

    /// Looks for a topic in blocks of a list without a branch: where it is found cannot be foreseen.
    struct Slot {
        topic: __m128i,
        /// The numbers of a block's slots, all bits turned.
        slots: __m128i,
        /// The same of the slot where the topic is, in the lane where it is.
        found: __m128i,
    }

    impl Slot {
        #[inline(always)]
        fn new(topic: Topic) -> Self {
            unsafe {
                let slots = _mm_set_epi16(-8, -7, -6, -5, -4, -3, -2, -1);
                Self { topic: _mm_set1_epi16(topic.cast_signed()), slots, found: _mm_setzero_si128() }
            }
        }

        /// Looks into the next block; all bits are set in the lane that has the topic.
        #[inline(always)]
        fn look(&mut self, block: &Block) -> __m128i {
            unsafe {
                let there = _mm_cmpeq_epi16(_mm_loadu_si128(block.topics.as_ptr().cast()), self.topic);
                self.found = _mm_or_si128(self.found, _mm_and_si128(there, self.slots));
                self.slots = _mm_sub_epi16(self.slots, _mm_set1_epi16(LANES as i16));
                there
            }
        }

        #[inline(always)]
        fn found(self) -> usize {
            unsafe {
                let least = _mm_minpos_epu16(_mm_xor_si128(self.found, _mm_set1_epi16(-1)));
                _mm_cvtsi128_si32(least) as u16 as usize
            }
        }
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
        fn zero() -> Self {
            unsafe { _mm256_setzero_ps() }
        }

        #[inline(always)]
        fn weigh_rows<const N: usize>(
            rows: &[&[[u16; LANES]]; N],
            alpha: f32,
            phi: &[Lanes],
            sums: &mut [[Lanes; N]],
        ) -> [Self; N] {
            let mut all = [Self::zero(); N];
            assert!(rows.iter().all(|row| row.len() == phi.len()) && sums.len() == phi.len(), "as many of each");
            for at in 0..phi.len() {
                unsafe {
                    let phi = Self::load(phi.get_unchecked(at));
                    for which in 0..N {
                        let counts = widened(_mm_loadu_si128(rows[which].as_ptr().add(at).cast()));
                        let weights = _mm256_mul_ps(_mm256_add_ps(counts, _mm256_set1_ps(alpha)), phi);
                        all[which] = _mm256_add_ps(all[which], weights);
                        all[which].store(&mut sums.get_unchecked_mut(at)[which]);
                    }
                }
            }
            all
        }

        #[inline(always)]
        fn weigh_list(blocks: &[Block], without: Topic, phi: &Phi, sums: &mut [[Lanes; 1]]) -> (Self, usize) {
            let (mut all, mut slot) = (Self::zero(), Slot::new(without));
            for (block, [sum]) in blocks.iter().zip(sums) {
                unsafe {
                    // One by one: that takes less time than a gather where there is no AVX-512.
                    let of: *const f32 = phi.as_ptr().cast();
                    let one = |i: usize| _mm_load_ss(of.add(usize::from(block.topics[i])));
                    let (a, b) = (_mm_unpacklo_ps(one(0), one(1)), _mm_unpacklo_ps(one(2), one(3)));
                    let (c, d) = (_mm_unpacklo_ps(one(4), one(5)), _mm_unpacklo_ps(one(6), one(7)));
                    let phi = _mm256_set_m128(_mm_movelh_ps(c, d), _mm_movelh_ps(a, b));
                    // All bits set are the number minus one.
                    let counts = _mm_add_epi16(slot.look(block), _mm_loadu_si128(block.counts.as_ptr().cast()));
                    all = _mm256_add_ps(all, _mm256_mul_ps(widened(counts), phi));
                }
                all.store(sum);
            }
            (all, slot.found())
        }

        #[inline(always)]
        fn find_in(blocks: &[Block], topic: Topic) -> usize {
            let mut slot = Slot::new(topic);
            blocks.iter().for_each(|block| _ = slot.look(block));
            slot.found()
        }

        #[inline(always)]
        fn of_word(counts: &[f32; LANES], beta: f32, totals: &[i32; LANES], smoothing: f32) -> Self {
            unsafe {
                let counts = _mm256_add_ps(_mm256_loadu_ps(counts.as_ptr()), _mm256_set1_ps(beta));
                let totals = _mm256_cvtepi32_ps(_mm256_loadu_si256(totals.as_ptr().cast()));
                _mm256_div_ps(counts, _mm256_add_ps(totals, _mm256_set1_ps(smoothing)))
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
        fn passed<const N: usize>(sums: &[[Lanes; N]], which: usize, lane: usize, bound: f32) -> usize {
            unsafe {
                let (mut counts, bound) = (_mm256_setzero_si256(), _mm256_set1_ps(bound));
                for sums in sums {
                    // Where it holds, all bits are set, which is the number minus one.
                    let holds = _mm256_cmp_ps::<_CMP_LE_OQ>(Self::load(&sums[which]), bound);
                    counts = _mm256_sub_epi32(counts, _mm256_castps_si256(holds));
                }
                let counts = _mm256_permutevar8x32_epi32(counts, _mm256_set1_epi32(lane as i32));
                _mm_cvtsi128_si32(_mm256_castsi256_si128(counts)) as usize
            }
        }

        #[inline(always)]
        fn replace(lanes: &mut Lanes, lane: usize, number: f32) {
            unsafe {
                // Not by a blend, which becomes a masked store: those take long, and what reads behind them waits.
                let mask = _mm256_loadu_ps(ONLY[lane].as_ptr().cast());
                let others = _mm256_andnot_ps(mask, Self::load(lanes));
                _mm256_or_ps(others, _mm256_and_ps(mask, _mm256_set1_ps(number))).store(lanes);
            }
        }

        #[inline(always)]
        fn lower(counts: &mut [u16; LANES], lane: usize) {
            unsafe {
                let one = _mm_loadu_si128(ONLY_COUNT[lane].as_ptr().cast());
                let lowered = _mm_add_epi16(_mm_loadu_si128(counts.as_ptr().cast()), one);
                _mm_storeu_si128(counts.as_mut_ptr().cast(), lowered);
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
        let sums = [[Lanes(weights[0])], [Lanes(weights[0]).add(Lanes(weights[1]))]];
        let prefixes = sums[1][0].prefixes();
        assert_eq!(prefixes.last(), 16.0);
        let mut falls = [[0.0f32; LANES]; 2];
        for step in 0..1600 {
            let (Spot { at, lane }, rest) = locate(&sums, 0, prefixes, step as f32 * 0.01);
            falls[at][lane] += 0.01;
            assert!((0.0..=weights[at][lane]).contains(&rest), "{rest}");
        }
        for (fall, weight) in falls.as_flattened().iter().zip(weights.as_flattened()) {
            assert!((fall - weight).abs() < 0.02, "{falls:?}");
        }
        assert_eq!(locate(&sums, 0, prefixes, 16.5).0, Spot { at: 1, lane: 7 }, "past the end the last is meant");
        let without_weight = last_weight(sums.iter().flatten(), 3);
        assert_eq!(without_weight, Spot { at: 1, lane: 2 }, "a lane without weight is not meant");
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn both_forms_of_a_vector_have_the_same_bits() {
        use std::arch::x86_64::__m256;
        if !is_x86_feature_detected!("avx2") {
            return;
        }
        fn all<V: Vector>(counts: &[u16; LANES], topics: &[Topic; LANES], phi: &Phi, bound: f32) -> Vec<u32> {
            let mut lowered = *counts;
            V::lower(&mut lowered, 3);
            let mut sums = [[Lanes::default(); 2]; 3];
            let [row, _] = V::weigh_rows(&[&[lowered, *counts], &[*counts, lowered]], 0.1, &phi[..2], &mut sums[..2]);
            let blocks = [
                Block { topics: topics.map(|topic| topic + 8), counts: lowered },
                Block { topics: *topics, counts: *counts },
            ];
            let (list, there) = V::weigh_list(&blocks, topics[5], phi, sums.as_flattened_mut().as_chunks_mut::<1>().0);
            let totals = topics.map(|topic| i32::from(topic) * 5000);
            let word = V::of_word(&phi[1].0, 0.01, &totals, 200.0);
            row.add(list).store(&mut sums[1][1]);
            row.add(list).add(word).store(&mut sums[2][1]);
            let prefixes = V::load(&sums[2][1]).prefixes();
            let (spot, rest) = locate(&sums, 1, prefixes, bound);
            let mut replaced = phi[3];
            V::replace(&mut replaced, 2, bound);
            let floats =
                [row.sum(), list.sum(), word.sum(), list.last(), prefixes.last(), rest, V::load(&replaced).sum()];
            let bits = [
                there as u32,
                V::find_in(&blocks, topics[2] + 1) as u32,
                row.not_above(bound),
                V::passed(&sums, 1, 6, bound) as u32,
                (spot.at * LANES + spot.lane) as u32,
            ];
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
