//! How often each topic occurs in each document, as lists of the topics that do: for more topics than a document has.

use super::documents::Counted;
use super::kernel::fetch;
use super::topics::Word;
use super::vector::{LANES, Lanes, Spot, Vector, locate};
use super::{NO_TOPIC, Topic};

/// Some topics of a document and how often they occur there: half a cache line, and a vector register's worth of
/// numbers. Lanes that hold no topic have [`NO_TOPIC`] and the count zero.
#[repr(C, align(32))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    topics: [Topic; LANES],
    counts: [u16; LANES],
}

const EMPTY: Block = Block { topics: [NO_TOPIC; LANES], counts: [0; LANES] };

/// Where the topic lies that a token has, and the one that was drawn if the document has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    from: Spot,
    to: Option<Spot>,
}

/// Of so many cache lines of a list the processor does not see coming that they are wanted.
const LIST_LINES: usize = 6;

/// Where a document's topics lie.
#[derive(Clone, Copy, Debug)]
struct Span {
    first_block: u32,
    /// How many topics the document has.
    topics: u32,
}

/// The topics that occur in each document, in no order that matters but for the bits: [`Lists::sort`] gives the order
/// that depends on the counts alone.
#[derive(Clone, Debug)]
pub(super) struct Lists {
    blocks: Vec<Block>,
    spans: Vec<Span>,
}

impl Lists {
    /// Documents of such lengths, without any topic yet.
    pub(super) fn new(lengths: &[u32], topics: usize) -> Self {
        let mut spans = Vec::with_capacity(lengths.len());
        let mut first_block = 0;
        for &length in lengths {
            spans.push(Span { first_block, topics: 0 });
            first_block += (length as usize).min(topics).div_ceil(LANES) as u32;
        }
        Self { blocks: vec![EMPTY; first_block as usize], spans }
    }

    /// The topics that occur in a document.
    #[inline(always)]
    fn blocks(&self, document: u32) -> &[Block] {
        let span = self.spans[document as usize];
        &self.blocks[span.first_block as usize..][..(span.topics as usize).div_ceil(LANES)]
    }

    /// Where a topic of a document lies, as block of the document and lane.
    #[inline(always)]
    fn find(&self, document: u32, topic: Topic) -> Option<Spot> {
        let blocks = self.blocks(document).iter().enumerate();
        blocks.into_iter().find_map(|(at, block)| Some(Spot { at, lane: lane_of(block, topic)? }))
    }

    /// Counts one token less of the topic there.
    #[inline(always)]
    fn remove(&mut self, document: u32, Spot { at, lane }: Spot) {
        let span = &mut self.spans[document as usize];
        let blocks = &mut self.blocks[span.first_block as usize..];
        blocks[at].counts[lane] -= 1;
        if blocks[at].counts[lane] == 0 {
            span.topics -= 1;
            let (last, last_lane) = (span.topics as usize / LANES, span.topics as usize % LANES);
            blocks[at].topics[lane] = blocks[last].topics[last_lane];
            blocks[at].counts[lane] = blocks[last].counts[last_lane];
            blocks[last].topics[last_lane] = NO_TOPIC;
            blocks[last].counts[last_lane] = 0;
        }
    }

    /// Puts every document's topics into the order of their counts, the most frequent first. Whoever starts from the
    /// assignments alone then has the same order, and so the same bits, as one who has gone on; and what is most often
    /// looked for is found first.
    pub(super) fn sort(&mut self) {
        let mut list = Vec::new();
        for document in 0..self.spans.len() as u32 {
            list.clear();
            list.extend(self.counts(document).filter(|(topic, _)| *topic != NO_TOPIC));
            list.sort_unstable_by_key(|&(topic, count)| (std::cmp::Reverse(count), topic));
            let first = self.spans[document as usize].first_block as usize;
            for (slot, &(topic, count)) in list.iter().enumerate() {
                let block = &mut self.blocks[first + slot / LANES];
                block.topics[slot % LANES] = topic;
                block.counts[slot % LANES] = count;
            }
        }
    }
}

impl Counted for Lists {
    const GROUPED: bool = true;
    type Found = Found;

    fn counts(&self, document: u32) -> impl Iterator<Item = (Topic, u16)> + '_ {
        self.blocks(document).iter().flat_map(|block| block.topics.into_iter().zip(block.counts))
    }

    #[inline(always)]
    fn add(&mut self, document: u32, topic: Topic) {
        if let Some(Spot { at, lane }) = self.find(document, topic) {
            self.blocks[self.spans[document as usize].first_block as usize + at].counts[lane] += 1;
            return;
        }
        let span = &mut self.spans[document as usize];
        let slot = span.topics as usize;
        span.topics += 1;
        let block = &mut self.blocks[span.first_block as usize + slot / LANES];
        block.topics[slot % LANES] = topic;
        block.counts[slot % LANES] = 1;
    }

    #[inline(always)]
    fn draw<V: Vector, const N: usize>(
        &mut self,
        documents: &[u32; N],
        old: &[Topic; N],
        parts: &[f32; N],
        word: &mut Word<'_>,
    ) -> [(Topic, Found); N] {
        let mut drawn = [(0, Found { from: Spot { at: 0, lane: 0 }, to: None }); N];
        for which in 0..N {
            let (blocks, drawn) = (self.blocks(documents[which]), &mut drawn[which]);
            let sums = &mut word.sums.as_chunks_mut::<1>().0[..=blocks.len()];
            let mut all = V::zero();
            for ((at, block), sum) in blocks.iter().enumerate().zip(&mut *sums) {
                let (weights, there) = V::of_list(&block.counts, &block.topics, old[which], word.phi);
                all = all.add(weights);
                all.store(&mut sum[0]);
                if there != 0 {
                    drawn.1.from = Spot { at, lane: there.trailing_zeros() as usize };
                }
            }
            // Behind what the document's tokens add is what every topic has before any.
            let alpha = word.priors.alpha;
            let all = all.add(V::load(&Lanes([alpha * word.mass.max(0.0), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])));
            all.store(&mut sums[blocks.len()][0]);
            let prefixes = all.prefixes();
            let (spot, rest) = locate(sums, 0, prefixes, parts[which] * prefixes.last());
            if let Some(block) = blocks.get(spot.at) {
                (drawn.0, drawn.1.to) = (block.topics[spot.lane], Some(spot));
            } else {
                drawn.0 = word.find::<V>(rest / alpha);
            }
        }
        drawn
    }

    #[inline(always)]
    fn settle(&mut self, document: u32, old: Topic, new: Topic, Found { from, to }: Found) {
        if new == old {
            return;
        }
        // Taking the old topic out may move others and makes the room that the new one may need.
        if let Some(Spot { at, lane }) = to {
            self.blocks[self.spans[document as usize].first_block as usize + at].counts[lane] += 1;
            self.remove(document, from);
        } else {
            self.remove(document, from);
            self.add(document, new);
        }
    }

    #[inline(always)]
    fn fetch_place(&self, document: u32) {
        fetch::<1>(self.spans.as_ptr().wrapping_add(document as usize).cast());
    }

    #[inline(always)]
    fn fetch(&self, document: u32) {
        let span = self.spans[document as usize];
        fetch::<LIST_LINES>(self.blocks.as_ptr().wrapping_add(span.first_block as usize).cast());
    }
}

#[inline(always)]
fn lane_of(block: &Block, topic: Topic) -> Option<usize> {
    let hits = block.topics.iter().enumerate().fold(0u32, |hits, (lane, &t)| hits | u32::from(t == topic) << lane);
    (hits != 0).then_some(hits.trailing_zeros() as usize)
}
