//! How often each topic occurs in each document, as a row of counts for all topics: for few topics.
//!
//! Nothing is looked for, and the row and `φ` are gone through side by side: for a hundred topics this takes less time
//! than a list of the thirty that occur.

use super::Topic;
use super::documents::Counted;
use super::kernel::TOGETHER;
use super::topics::Word;
use super::vector::{FEW, LANES, Vector, locate, locate_among_few};
use hemiola::fetch;

/// With more topics than these, rows would not be near at hand.
pub(super) const TOPICS_MAX: usize = 256;

/// Of so many cache lines of a row the processor does not see coming that they are wanted.
const ROW_LINES: usize = 4;

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
    const LISTED: bool = false;
    type Found = ();

    fn counts(&self, document: u32) -> impl Iterator<Item = (Topic, u16)> + '_ {
        (0..).zip(self.row(document).iter().flatten().copied())
    }

    #[inline(always)]
    fn add(&mut self, document: u32, topic: Topic) {
        *self.cell(document, topic) += 1;
    }

    #[inline(always)]
    fn draw<V: Vector, const N: usize>(
        &mut self,
        documents: &[u32; N],
        old: &[Topic; N],
        parts: &[f32; N],
        word: &mut Word<'_>,
    ) -> [(Topic, ()); N] {
        let width = self.width;
        for (&document, &topic) in documents.iter().zip(old) {
            let topic = usize::from(topic);
            V::lower(&mut self.groups[document as usize * width + topic / LANES], topic % LANES);
        }
        // Not by `map`, which is a function of its own.
        let mut rows: [&[[u16; LANES]]; N] = [&[]; N];
        for which in 0..N {
            rows[which] = self.row(documents[which]);
        }
        let (phi, room) = (&word.phi[..width], word.sums.as_chunks_mut::<N>().0);
        let all = V::weigh_rows(&rows, word.priors.alpha, phi, &mut room[..width]);
        let mut drawn = [(0, ()); N];
        if let (Some(sums), true) = (room.first_chunk::<FEW>(), N == TOGETHER && width < FEW) {
            for which in 0..N {
                let spot = locate_among_few(sums, which, width, all[which].prefixes(), parts[which]);
                drawn[which].0 = (spot.at * LANES + spot.lane) as Topic;
            }
        } else {
            for which in 0..N {
                let prefixes = all[which].prefixes();
                let (spot, _) = locate(&room[..width], which, prefixes, parts[which] * prefixes.last());
                drawn[which].0 = (spot.at * LANES + spot.lane) as Topic;
            }
        }
        drawn
    }

    #[inline(always)]
    fn settle(&mut self, document: u32, _: Topic, new: Topic, (): ()) {
        self.add(document, new);
    }

    #[inline(always)]
    fn fetch(&self, document: u32) {
        fetch(self.groups.as_ptr().wrapping_add(document as usize * self.width), ROW_LINES);
    }
}
