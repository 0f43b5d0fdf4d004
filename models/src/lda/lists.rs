//! How often each topic occurs in each document, as lists of the topics that do: for more topics than a document has.

use super::documents::Counted;
use super::topics::Word;
use super::vector::{LANES, Lanes, Vector, locate};
use super::{NO_TOPIC, Topic};
use hemiola::fetch;

/// Some topics of a document and how often they occur there: half a cache line, and a vector register's worth of
/// numbers. Lanes that hold no topic have [`NO_TOPIC`] and the count zero.
#[repr(C, align(32))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) topics: [Topic; LANES],
    pub(super) counts: [u16; LANES],
}

const EMPTY: Block = Block { topics: [NO_TOPIC; LANES], counts: [0; LANES] };

/// The slot of the topic that a token has, and of the one that was drawn or [`NO_SLOT`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    from: usize,
    to: usize,
}

/// Stands where a document does not have a topic.
pub(super) const NO_SLOT: usize = u16::MAX as usize;

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

    /// Puts every document's topics into the order of their counts, the most frequent first. Whoever starts from the
    /// assignments alone then has the same order, and so the same bits, as one who has gone on; and what is most often
    /// looked for is found first.
    pub(super) fn sort(&mut self) {
        let mut list: Vec<u32> = Vec::new();
        for document in 0..self.spans.len() as u32 {
            list.clear();
            let of_document = self.counts(document).filter(|(topic, _)| *topic != NO_TOPIC);
            // Numbers in whose rising order counts fall and the topics of a count rise.
            list.extend(of_document.map(|(topic, count)| u32::from(!count) << Topic::BITS | u32::from(topic)));
            list.sort_unstable();
            let first = self.spans[document as usize].first_block as usize;
            for (slot, &number) in list.iter().enumerate() {
                let block = &mut self.blocks[first + slot / LANES];
                block.topics[slot % LANES] = number as Topic;
                block.counts[slot % LANES] = !((number >> Topic::BITS) as u16);
            }
        }
    }
}

impl Counted for Lists {
    const LISTED: bool = true;
    type Found = Found;

    fn counts(&self, document: u32) -> impl Iterator<Item = (Topic, u16)> + '_ {
        self.blocks(document).iter().flat_map(|block| block.topics.into_iter().zip(block.counts))
    }

    fn add(&mut self, document: u32, topic: Topic) {
        let slot = Lanes::find_in(self.blocks(document), topic);
        let span = &mut self.spans[document as usize];
        let slot = if slot == NO_SLOT { span.topics as usize } else { slot };
        span.topics = span.topics.max(slot as u32 + 1);
        let block = &mut self.blocks[span.first_block as usize + slot / LANES];
        block.topics[slot % LANES] = topic;
        block.counts[slot % LANES] += 1;
    }

    #[inline(always)]
    fn draw<V: Vector, const N: usize>(
        &mut self,
        documents: &[u32; N],
        old: &[Topic; N],
        parts: &[f32; N],
        word: &mut Word<'_>,
    ) -> [(Topic, Found); N] {
        let mut drawn = [(0, Found { from: 0, to: NO_SLOT }); N];
        for which in 0..N {
            let (blocks, drawn) = (self.blocks(documents[which]), &mut drawn[which]);
            let sums = &mut word.sums.as_chunks_mut::<1>().0[..=blocks.len()];
            let (all, from) = V::weigh_list(blocks, old[which], word.phi, &mut sums[..blocks.len()]);
            drawn.1.from = from;
            // Behind what the document's tokens add is what every topic has before any.
            let alpha = word.priors.alpha;
            let all = all.add(V::load(&Lanes([alpha * word.mass.max(0.0), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])));
            all.store(&mut sums[blocks.len()][0]);
            let prefixes = all.prefixes();
            let (spot, rest) = locate(sums, 0, prefixes, parts[which] * prefixes.last());
            if let Some(block) = blocks.get(spot.at) {
                (drawn.0, drawn.1.to) = (block.topics[spot.lane], spot.at * LANES + spot.lane);
            } else {
                drawn.0 = word.find::<V>(rest / alpha);
                drawn.1.to = V::find_in(blocks, drawn.0);
            }
        }
        drawn
    }

    /// Without branches: which way they go could not be foreseen.
    #[inline(always)]
    fn settle(&mut self, document: u32, old: Topic, new: Topic, Found { from, to }: Found) {
        let span = &mut self.spans[document as usize];
        let blocks = &mut self.blocks[span.first_block as usize..];
        let end = span.topics as usize;
        let count = &mut blocks[from / LANES].counts[from % LANES];
        *count -= 1;
        // A topic that the document does not have takes the slot of one that it has no more, or one behind all.
        let free = if *count == 0 { from } else { end };
        let to = if to == NO_SLOT { free } else { to };
        let to = if new == old { from } else { to };
        let block = &mut blocks[to / LANES];
        block.topics[to % LANES] = new;
        block.counts[to % LANES] += 1;
        let end = end.max(to + 1);
        // A slot that has become free is filled with the last.
        let empty = blocks[from / LANES].counts[from % LANES] == 0;
        let last = end - 1;
        let hole = if empty { from } else { last };
        let (topic, count) = (blocks[last / LANES].topics[last % LANES], blocks[last / LANES].counts[last % LANES]);
        blocks[hole / LANES].topics[hole % LANES] = topic;
        blocks[hole / LANES].counts[hole % LANES] = count;
        blocks[last / LANES].topics[last % LANES] = if empty { NO_TOPIC } else { topic };
        blocks[last / LANES].counts[last % LANES] = if empty { 0 } else { count };
        span.topics = (end - usize::from(empty)) as u32;
    }

    #[inline(always)]
    fn fetch_place(&self, document: u32) {
        fetch(self.spans.as_ptr().wrapping_add(document as usize), 1);
    }

    #[inline(always)]
    fn fetch(&self, document: u32) {
        let span = self.spans[document as usize];
        fetch(self.blocks.as_ptr().wrapping_add(span.first_block as usize), LIST_LINES);
    }
}
