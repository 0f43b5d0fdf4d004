//! How often each topic occurs in each document, as lists of the topics that do: for more topics than a document has.

use super::documents::Counted;
use super::vector::{LANES, Lanes, Phi, Spot, Vector};
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
    fn reassign(&mut self, document: u32, (old, from): (Topic, Spot), new: Topic, to: Option<Spot>) {
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
    fn weigh<V: Vector>(&self, document: u32, without: Topic, phi: &Phi, sums: &mut [Lanes]) -> (V, usize, Spot) {
        let blocks = self.blocks(document);
        let (mut all, mut spot) = (V::load(&Lanes::default()), Spot { at: 0, lane: 0 });
        for ((at, block), sum) in blocks.iter().enumerate().zip(sums) {
            let (weights, there) = V::of_list(&block.counts, &block.topics, without, phi);
            all = all.add(weights);
            all.store(sum);
            if there != 0 {
                spot = Spot { at, lane: there.trailing_zeros() as usize };
            }
        }
        (all, blocks.len(), spot)
    }

    #[inline(always)]
    fn at(&self, document: u32, Spot { at, lane }: Spot) -> (Topic, u16) {
        let block = &self.blocks(document)[at];
        (block.topics[lane], block.counts[lane])
    }

    #[inline(always)]
    fn finder(&self, document: u32) -> *const u8 {
        self.spans.as_ptr().wrapping_add(document as usize).cast()
    }

    #[inline(always)]
    fn place(&self, document: u32) -> (*const u8, usize) {
        let span = self.spans[document as usize];
        let bytes = span.topics as usize * size_of::<Block>() / LANES;
        (self.blocks.as_ptr().wrapping_add(span.first_block as usize).cast(), bytes)
    }
}

#[inline(always)]
fn lane_of(block: &Block, topic: Topic) -> Option<usize> {
    let hits = block.topics.iter().enumerate().fold(0u32, |hits, (lane, &t)| hits | u32::from(t == topic) << lane);
    (hits != 0).then_some(hits.trailing_zeros() as usize)
}
