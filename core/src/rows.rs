//! The rows of an operation.

use crate::lease::chunks_of;
use crate::slab;
use std::ops::Range;

/// The rows of an operation.
#[derive(Debug, Clone)]
pub enum Rows<'a> {
    /// Consecutive rows.
    Range(Range<u64>),
    /// Any rows, in any order.
    List(&'a [u64]),
}

impl Rows<'_> {
    /// How many rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Range(range) => (range.end.saturating_sub(range.start)) as usize,
            Self::List(rows) => rows.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `f` with every row.
    pub fn for_each(&self, f: impl FnMut(u64)) {
        match self {
            Self::Range(range) => range.clone().for_each(f),
            Self::List(rows) => rows.iter().copied().for_each(f),
        }
    }

    pub(crate) fn chunks(&self, shape: &slab::Shape) -> Vec<usize> {
        match self {
            Self::Range(range) if range.is_empty() => Vec::new(),
            Self::Range(range) => (shape.chunk_of(range.start)..=shape.chunk_of(range.end - 1)).collect(),
            Self::List(rows) => chunks_of(shape, rows.iter().copied()),
        }
    }
}
