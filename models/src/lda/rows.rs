//! How often each topic occurs in each document, as a row of counts for all topics: for few topics.
//!
//! Nothing is looked for, and the row and `φ` are gone through side by side: for a hundred topics this takes less time
//! than a list of the thirty that occur.

use super::Topic;
use super::documents::{Counted, LANES, Phi, Spot};
use super::kernel::{Vector, pick};

/// With more topics than these, rows would not be near at hand.
pub(super) const TOPICS_MAX: usize = 256;

/// How many topics are summed together.
const GROUP: usize = 2 * LANES;

/// A one among zeros: the part that begins at `TOPICS_MAX − k` has it at `k`.
const ONE: [u16; 2 * TOPICS_MAX + GROUP] = {
    let mut one = [0; 2 * TOPICS_MAX + GROUP];
    one[TOPICS_MAX] = 1;
    one
};

/// Rows of counts, as long as all topics and some zeros.
#[derive(Clone, Debug)]
pub(super) struct CountRows {
    groups: Vec<[u16; GROUP]>,
    /// Groups in a row.
    width: usize,
}

impl CountRows {
    pub(super) fn new(documents: usize, topics: usize) -> Self {
        let width = topics.div_ceil(GROUP);
        Self { groups: vec![[0; GROUP]; documents * width], width }
    }

    #[inline(always)]
    fn row(&self, document: u32) -> &[[u16; GROUP]] {
        &self.groups[document as usize * self.width..][..self.width]
    }

    #[inline(always)]
    fn cell(&mut self, document: u32, topic: Topic) -> &mut u16 {
        let topic = usize::from(topic);
        &mut self.groups[document as usize * self.width + topic / GROUP][topic % GROUP]
    }
}

impl Counted for CountRows {
    fn counts(&self, document: u32) -> impl Iterator<Item = (Topic, u16)> + '_ {
        (0..).zip(self.row(document).iter().flatten().copied())
    }

    #[inline(always)]
    fn add(&mut self, document: u32, topic: Topic) {
        *self.cell(document, topic) += 1;
    }

    #[inline(always)]
    fn reassign(&mut self, document: u32, old: Topic, new: Topic, _: Option<Spot>) {
        *self.cell(document, old) -= 1;
        *self.cell(document, new) += 1;
    }

    #[inline(always)]
    fn weigh<V: Vector>(&self, document: u32, without: Topic, phi: &Phi, sums: &mut [f32]) -> (f32, usize) {
        let ones = &ONE[TOPICS_MAX - usize::from(without)..].as_chunks::<GROUP>().0[..self.width];
        let phi = &phi.as_chunks::<GROUP>().0[..self.width];
        let mut total = 0.0;
        for (((counts, ones), phi), so_far) in self.row(document).iter().zip(ones).zip(phi).zip(sums) {
            let [low, high] = weigh::<V>(counts, ones, phi);
            total += low.add(high).sum();
            *so_far = total;
        }
        (total, self.width)
    }

    #[inline(always)]
    fn pick<V: Vector>(&self, document: u32, without: Topic, phi: &Phi, at: usize, target: f32) -> (Topic, Spot) {
        let ones = &ONE[TOPICS_MAX - usize::from(without)..].as_chunks::<GROUP>().0[at];
        let weights = weigh::<V>(&self.row(document)[at], ones, &phi.as_chunks::<GROUP>().0[at]);
        let lane = pick(weights, target);
        ((at * GROUP + lane) as Topic, Spot { at, lane })
    }

    #[inline(always)]
    fn finder(&self, document: u32) -> *const u8 {
        self.place(document).0
    }

    #[inline(always)]
    fn place(&self, document: u32) -> (*const u8, usize) {
        (self.groups.as_ptr().wrapping_add(document as usize * self.width).cast(), self.width * 2 * GROUP)
    }
}

/// `n_dk φ(k)` of a group of topics, without the ones.
#[inline(always)]
fn weigh<V: Vector>(counts: &[u16; GROUP], ones: &[u16; GROUP], phi: &[f32; GROUP]) -> [V; 2] {
    let (counts, ones, phi) = (counts.as_chunks().0, ones.as_chunks().0, phi.as_chunks().0);
    [V::of_row(&counts[0], &ones[0], &phi[0]), V::of_row(&counts[1], &ones[1], &phi[1])]
}
