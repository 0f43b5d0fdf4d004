//! How often each topic occurs in each document, as a row of counts for all topics: for few topics.
//!
//! Nothing is looked for, and the row and `φ` are gone through side by side: for a hundred topics this takes less time
//! than a list of the thirty that occur.

use super::Topic;
use super::documents::Counted;
use super::vector::{LANES, Lanes, Phi, Spot, Vector};

/// With more topics than these, rows would not be near at hand.
pub(super) const TOPICS_MAX: usize = 256;

/// All bits everywhere but in one place: the part that begins at `TOPICS_MAX − k` has that place at `k`.
const ALL_BUT_ONE: [u16; 2 * TOPICS_MAX] = {
    let mut bits = [u16::MAX; 2 * TOPICS_MAX];
    bits[TOPICS_MAX] = 0;
    bits
};

/// Rows of counts, as long as all topics and some zeros.
#[derive(Clone, Debug)]
pub(super) struct CountRows {
    groups: Vec<[u16; LANES]>,
    /// Groups in a row.
    width: usize,
}

impl CountRows {
    pub(super) fn new(documents: usize, topics: usize) -> Self {
        let width = topics.div_ceil(LANES);
        Self { groups: vec![[0; LANES]; documents * width], width }
    }

    #[inline(always)]
    fn row(&self, document: u32) -> &[[u16; LANES]] {
        &self.groups[document as usize * self.width..][..self.width]
    }

    #[inline(always)]
    fn cell(&mut self, document: u32, topic: Topic) -> &mut u16 {
        let topic = usize::from(topic);
        &mut self.groups[document as usize * self.width + topic / LANES][topic % LANES]
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
    fn reassign(&mut self, document: u32, (old, _): (Topic, Spot), new: Topic, _: Option<Spot>) {
        *self.cell(document, old) -= 1;
        *self.cell(document, new) += 1;
    }

    #[inline(always)]
    fn weigh<V: Vector>(&self, document: u32, without: Topic, phi: &Phi, sums: &mut [Lanes]) -> (V, usize, Spot) {
        let without = usize::from(without);
        let keep = &ALL_BUT_ONE[TOPICS_MAX - without..].as_chunks::<LANES>().0[..self.width];
        let mut all = V::load(&Lanes::default());
        for (((counts, keep), phi), sum) in self.row(document).iter().zip(keep).zip(phi).zip(sums) {
            all = all.add(V::of_row(counts, keep, phi));
            all.store(sum);
        }
        (all, self.width, Spot { at: without / LANES, lane: without % LANES })
    }

    #[inline(always)]
    fn at(&self, document: u32, spot: Spot) -> (Topic, u16) {
        ((spot.at * LANES + spot.lane) as Topic, self.row(document)[spot.at][spot.lane])
    }

    #[inline(always)]
    fn finder(&self, document: u32) -> *const u8 {
        self.place(document).0
    }

    #[inline(always)]
    fn place(&self, document: u32) -> (*const u8, usize) {
        (self.groups.as_ptr().wrapping_add(document as usize * self.width).cast(), self.width * 2 * LANES)
    }
}
