//! What a checkpoint has kept of a flat table: rows that an update has changed, and chunks that were lent out whole.
//!
//! Updates that go all over a table change few rows of every chunk. Kept by row they cost what they change; kept by
//! chunk the first of them would cost the table.

use crate::slab::{GROUP, LINE, Shape, Slab};
use std::ops::Range;

/// How many numbers a block of kept rows has, if a row does not need more and a chunk does not have fewer: a page of
/// memory.
const BLOCK: usize = 1024;

/// Numbers as they were, by chunk of a slab.
#[derive(Debug)]
pub(crate) struct Kept {
    shape: Shape,
    /// Rows are kept in groups of a power of two, this one: narrow ones as many as fill a cache line.
    group_shift: u32,
    chunks: Vec<KeptChunk>,
    /// Blocks that are used again: all are of one length, so that none is left over in pieces.
    free: Vec<Box<[f32]>>,
    /// How many numbers there would be room for in what is in use.
    room: usize,
}

#[derive(Debug, Default)]
enum KeptChunk {
    #[default]
    Nothing,
    Groups {
        /// For every group of the chunk its place in the blocks, counted from one, or zero.
        places: Vec<u32>,
        kept: u32,
        blocks: Vec<Box<[f32]>>,
    },
    Whole(Vec<f32>),
}

/// The groups of rows of such a width, as a power of two.
pub(crate) fn group_shift(width: usize) -> u32 {
    (LINE / width).max(1).ilog2()
}

impl Kept {
    pub(crate) fn new(shape: Shape, group_shift: u32) -> Self {
        let chunks = std::iter::repeat_with(KeptChunk::default).take(shape.chunks()).collect();
        Self { shape, group_shift, chunks, free: Vec::new(), room: 0 }
    }

    /// How many numbers what is in use would have room for.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// How many numbers a group has.
    pub(crate) fn stride(&self) -> usize {
        self.shape.width << self.group_shift
    }

    /// The group of a row, where many are to be told apart.
    pub(crate) fn group_of(&self, row: u64) -> u64 {
        row >> self.group_shift
    }

    fn groups_in_block(&self) -> usize {
        let in_chunk = self.shape.chunk_rows.min(self.shape.rows).div_ceil(1 << self.group_shift) as usize;
        (BLOCK / self.stride()).clamp(1, in_chunk.max(1))
    }

    /// Whether a row is kept.
    pub(crate) fn has(&self, row: u64) -> bool {
        let (chunk, at) = self.shape.locate(row);
        match &self.chunks[chunk] {
            KeptChunk::Nothing => false,
            KeptChunk::Groups { places, .. } => places[at >> self.group_shift] > 0,
            KeptChunk::Whole(_) => true,
        }
    }

    /// Keeps rows of a chunk of `live` that have not been.
    pub(crate) fn keep_rows(&mut self, live: &Slab, chunk: usize, rows: &[u64]) {
        let (stride, shift, in_block) = (self.stride(), self.group_shift, self.groups_in_block());
        let first = self.shape.first_row(chunk);
        let numbers = &live.chunks[chunk][..];
        let groups = numbers.len().div_ceil(stride);
        if let KeptChunk::Nothing = self.chunks[chunk] {
            self.chunks[chunk] = KeptChunk::Groups { places: vec![0; groups], kept: 0, blocks: Vec::new() };
            // A place is as long as a number.
            self.room += groups;
        }
        let KeptChunk::Groups { places, kept, blocks } = &mut self.chunks[chunk] else { return };
        let before = blocks.len();
        for (i, row) in rows.iter().enumerate() {
            if i % GROUP == 0 {
                live.bring_near(&rows[i..rows.len().min(i + GROUP)]);
            }
            let group = ((row - first) >> shift) as usize;
            if places[group] == 0 {
                let at = *kept as usize % in_block;
                if at == 0 {
                    blocks.push(self.free.pop().unwrap_or_else(|| vec![0.0; in_block * stride].into()));
                }
                let block = blocks.last_mut().expect("one was just pushed");
                let numbers = &numbers[group * stride..numbers.len().min((group + 1) * stride)];
                block[at * stride..][..numbers.len()].copy_from_slice(numbers);
                *kept += 1;
                places[group] = *kept;
            }
        }
        self.room += (blocks.len() - before) * in_block * stride;
    }

    /// Keeps a chunk of `live`, which is to be changed without a word.
    pub(crate) fn keep_chunk(&mut self, live: &Slab, chunk: usize) {
        if self.whole(chunk).is_none() {
            let mut numbers = live.chunks[chunk].clone();
            self.put_over(chunk, 0..self.shape.rows_of(chunk), &mut numbers);
            self.forget(chunk);
            self.room += numbers.len();
            self.chunks[chunk] = KeptChunk::Whole(numbers);
        }
    }

    /// A row, if it is kept.
    pub(crate) fn row_mut(&mut self, row: u64) -> Option<&mut [f32]> {
        let ((chunk, at), width, shift) = (self.shape.locate(row), self.shape.width, self.group_shift);
        let (stride, in_block) = (self.stride(), self.groups_in_block());
        match &mut self.chunks[chunk] {
            KeptChunk::Nothing => None,
            KeptChunk::Groups { places, blocks, .. } => {
                let place = (places[at >> shift] as usize).checked_sub(1)?;
                let in_group = at & ((1 << shift) - 1);
                let from = place % in_block * stride + in_group * width;
                Some(&mut blocks[place / in_block][from..][..width])
            }
            KeptChunk::Whole(numbers) => Some(&mut numbers[at * width..][..width]),
        }
    }

    /// Puts what groups are kept of some rows of a chunk in the place of those rows, whose `numbers` are live.
    pub(crate) fn put_over(&self, chunk: usize, rows: Range<usize>, numbers: &mut [f32]) {
        let KeptChunk::Groups { places, blocks, .. } = &self.chunks[chunk] else { return };
        let (width, shift, stride, in_block) =
            (self.shape.width, self.group_shift, self.stride(), self.groups_in_block());
        let groups = rows.start >> shift..rows.end.div_ceil(1 << shift);
        for (group, place) in groups.clone().zip(&places[groups]) {
            let Some(place) = (*place as usize).checked_sub(1) else { continue };
            // Of the first and the last group some rows may not be meant.
            let first = group << shift;
            let meant = rows.start.max(first)..rows.end.min(first + (1 << shift));
            let from = place % in_block * stride + (meant.start - first) * width;
            let to = (meant.start - rows.start) * width;
            let kept = &blocks[place / in_block][from..][..meant.len() * width];
            numbers[to..][..kept.len()].copy_from_slice(kept);
        }
    }

    /// A chunk, if it is kept whole.
    pub(crate) fn whole(&self, chunk: usize) -> Option<&[f32]> {
        if let KeptChunk::Whole(numbers) = &self.chunks[chunk] { Some(numbers) } else { None }
    }

    /// Keeps nothing of a chunk any more; hands it over if it was kept whole.
    pub(crate) fn forget(&mut self, chunk: usize) -> Option<Vec<f32>> {
        match std::mem::take(&mut self.chunks[chunk]) {
            KeptChunk::Nothing => None,
            KeptChunk::Groups { places, blocks, .. } => {
                self.room -= places.len() + blocks.iter().map(|block| block.len()).sum::<usize>();
                self.free.extend(blocks);
                None
            }
            KeptChunk::Whole(numbers) => {
                self.room -= numbers.len();
                Some(numbers)
            }
        }
    }
}
