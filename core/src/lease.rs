//! Chunks of a table lent to one worker, to be read and changed in place.

use crate::ids::TableId;
use crate::slab::Shape;

/// Chunks of a flat table that one worker holds. What it changes counts as updates made when the lease is given back.
#[derive(Debug)]
pub struct Lease {
    pub(crate) table: TableId,
    pub(crate) shape: Shape,
    pub(crate) chunks: Vec<LeasedChunk>,
}

#[derive(Debug)]
pub(crate) struct LeasedChunk {
    pub(crate) index: usize,
    pub(crate) numbers: Vec<f32>,
    /// What the numbers were when they were lent; empty when the lease holds the master copy itself.
    pub(crate) origin: Vec<f32>,
}

impl Lease {
    /// How many chunks are lent.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The first row of the `i`th lent chunk.
    #[must_use]
    pub fn first_row(&self, i: usize) -> u64 {
        self.shape.first_row(self.chunks[i].index)
    }

    /// The rows of the `i`th lent chunk, one after the other.
    #[must_use]
    pub fn chunk(&self, i: usize) -> &[f32] {
        &self.chunks[i].numbers
    }

    /// The rows of the `i`th lent chunk, one after the other, to be changed in place.
    pub fn chunk_mut(&mut self, i: usize) -> &mut [f32] {
        &mut self.chunks[i].numbers
    }

    /// One row of the lease, or nothing where its chunk was not lent.
    pub fn row_mut(&mut self, row: u64) -> Option<&mut [f32]> {
        let (chunk, place) = self.shape.locate(row);
        let at = self.chunks.binary_search_by_key(&chunk, |lent| lent.index).ok()?;
        self.chunks[at].numbers.get_mut(place * self.shape.width..(place + 1) * self.shape.width)
    }
}

/// The chunks that hold `rows`, ascending.
pub(crate) fn chunks_of(shape: &Shape, rows: impl Iterator<Item = u64>) -> Vec<usize> {
    let mut chunks: Vec<usize> = Vec::new();
    for row in rows {
        let chunk = shape.chunk_of(row);
        if chunks.last() != Some(&chunk) {
            chunks.push(chunk);
        }
    }
    chunks.sort_unstable();
    chunks.dedup();
    chunks
}
