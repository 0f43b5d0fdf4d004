//! Dense rows of a table with a size, in flat chunks, found without hashing.

use crate::schema::{Init, TableSchema};
use std::ops::Range;

/// Chunks of consecutive dense rows. A chunk that is empty is not here: it lies elsewhere, was never fetched, or has
/// been lent out.
#[derive(Debug)]
pub(crate) struct Slab {
    pub(crate) shape: Shape,
    pub(crate) chunks: Vec<Vec<f32>>,
}

/// How rows lie in chunks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) rows: u64,
    pub(crate) width: usize,
    pub(crate) chunk_rows: u64,
    /// Set when a chunk's rows are a power of two, which saves a division per row.
    shift: Option<u32>,
}

impl Shape {
    pub(crate) fn new(schema: &TableSchema) -> Option<Self> {
        let (rows, width) = schema.flat()?;
        let chunk_rows = schema.chunk_rows();
        let shift = chunk_rows.is_power_of_two().then(|| chunk_rows.trailing_zeros());
        Some(Self { rows, width: width as usize, chunk_rows, shift })
    }

    /// As many rows in the same chunks, with another width.
    pub(crate) fn with_width(self, width: usize) -> Self {
        Self { width, ..self }
    }

    pub(crate) fn chunks(&self) -> usize {
        self.rows.div_ceil(self.chunk_rows) as usize
    }

    pub(crate) fn chunk_of(&self, row: u64) -> usize {
        self.locate(row).0
    }

    pub(crate) fn first_row(&self, chunk: usize) -> u64 {
        chunk as u64 * self.chunk_rows
    }

    pub(crate) fn rows_of(&self, chunk: usize) -> usize {
        self.chunk_rows.min(self.rows - self.first_row(chunk)) as usize
    }

    /// The chunk of `row`, and the row's place in it.
    #[inline]
    pub(crate) fn locate(&self, row: u64) -> (usize, usize) {
        match self.shift {
            Some(shift) => ((row >> shift) as usize, (row & (self.chunk_rows - 1)) as usize),
            None => ((row / self.chunk_rows) as usize, (row % self.chunk_rows) as usize),
        }
    }

    /// The stretches of `rows` that lie in one chunk each, with that chunk: for ascending rows about as many as there
    /// are chunks, so that little is left to do per row.
    pub(crate) fn runs<'a>(&'a self, rows: &'a [u64]) -> impl Iterator<Item = (usize, Range<usize>)> + 'a {
        let mut start = 0;
        std::iter::from_fn(move || {
            let chunk = self.chunk_of(*rows.get(start)?);
            let first = self.first_row(chunk);
            let others = rows[start..].iter().position(|row| row.wrapping_sub(first) >= self.chunk_rows);
            let run = start..others.map_or(rows.len(), |others| start + others);
            start = run.end;
            Some((chunk, run))
        })
    }

    /// The numbers of a chunk before anyone has written them.
    pub(crate) fn fresh_chunk(&self, chunk: usize, init: Init) -> Vec<f32> {
        let mut numbers = vec![0.0; self.rows_of(chunk) * self.width];
        if init != Init::Zero {
            for (row, numbers) in (self.first_row(chunk)..).zip(numbers.chunks_exact_mut(self.width)) {
                init.fill(row, numbers);
            }
        }
        numbers
    }
}

impl Slab {
    /// A slab with the chunks for which `here` says so.
    pub(crate) fn new(shape: Shape, init: Init, here: impl Fn(usize) -> bool) -> Self {
        let chunk = |chunk| {
            if here(chunk) { shape.fresh_chunk(chunk, init) } else { Vec::new() }
        };
        Self { shape, chunks: (0..shape.chunks()).map(chunk).collect() }
    }

    /// The first of `rows` that does not exist or whose chunk is not here.
    pub(crate) fn first_absent(&self, rows: &[u64]) -> Option<u64> {
        let outside = rows.iter().copied().find(|&row| row >= self.shape.rows);
        outside.or_else(|| {
            let mut runs = self.shape.runs(rows);
            runs.find(|&(chunk, _)| self.chunks[chunk].is_empty()).map(|(_, run)| rows[run.start])
        })
    }

    #[inline]
    pub(crate) fn row(&self, row: u64) -> &[f32] {
        let (chunk, place) = self.shape.locate(row);
        &self.chunks[chunk][place * self.shape.width..][..self.shape.width]
    }

    #[inline]
    pub(crate) fn row_mut(&mut self, row: u64) -> &mut [f32] {
        let (chunk, place) = self.shape.locate(row);
        &mut self.chunks[chunk][place * self.shape.width..][..self.shape.width]
    }

    /// Adds a row of `numbers` to each of `rows`, all of which are here.
    pub(crate) fn add(&mut self, rows: &[u64], numbers: &[f32]) {
        if self.shape.width == 1 {
            for (chunk, run) in self.shape.runs(rows) {
                let (first, chunk) = (self.shape.first_row(chunk), &mut self.chunks[chunk][..]);
                for (row, number) in rows[run.clone()].iter().zip(&numbers[run]) {
                    chunk[(row - first) as usize] += number;
                }
            }
        } else {
            for (rows, numbers) in rows.chunks(GROUP).zip(numbers.chunks(GROUP * self.shape.width)) {
                self.bring_near(rows);
                for (&row, numbers) in rows.iter().zip(numbers.chunks_exact(self.shape.width)) {
                    add(self.row_mut(row), numbers);
                }
            }
        }
    }

    /// The numbers of `rows`, all of which are here, one row after the other.
    pub(crate) fn gather(&self, rows: &[u64], out: &mut Vec<f32>) {
        out.reserve(rows.len() * self.shape.width);
        if self.shape.width == 1 {
            for (chunk, run) in self.shape.runs(rows) {
                let (first, chunk) = (self.shape.first_row(chunk), &self.chunks[chunk][..]);
                out.extend(rows[run].iter().map(|row| chunk[(row - first) as usize]));
            }
        } else {
            for rows in rows.chunks(GROUP) {
                self.bring_near(rows);
                rows.iter().for_each(|&row| out.extend_from_slice(self.row(row)));
            }
        }
    }

    /// Reads a number of every cache line of narrow rows, so that their misses overlap instead of following one another.
    /// Of rows that lie together the processor sees by itself which comes next.
    pub(crate) fn bring_near(&self, rows: &[u64]) {
        let span = rows.last().zip(rows.first()).map_or(0, |(last, first)| last.wrapping_sub(*first));
        if self.shape.width <= 4 * LINE && span >= 4 * GROUP as u64 {
            // A row that does not begin with a line may end in one more.
            let lines = |row: &u64| {
                let row = self.row(*row);
                row.iter().step_by(LINE).chain(row.last()).fold(0, |bits, x| bits ^ x.to_bits())
            };
            std::hint::black_box(rows.iter().fold(0, |bits, row| bits ^ lines(row)));
        }
    }
}

/// How many numbers a cache line has, and how many rows are brought near together.
pub(crate) const LINE: usize = 16;
pub(crate) const GROUP: usize = 16;

#[inline]
pub(crate) fn add(row: &mut [f32], update: &[f32]) {
    for (a, b) in row.iter_mut().zip(update) {
        *a += b;
    }
}
