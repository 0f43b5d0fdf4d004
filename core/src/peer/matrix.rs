//! A peer's replica of the matrix, and the kernels that subtract blocks of factor pairs from it.
//!
//! Whatever kernel does it, an element changes pair by pair in the order of the blocks and of the pairs in them, with one
//! product and one subtraction each. So the bits do not depend on how blocks are grouped or on the processor.

use super::Shape;
use super::block::{Block, Factor, Side};
use crate::schema::Init;

/// Rows that one step of the dense kernel keeps in registers.
const TILE_ROWS: usize = 4;
/// Pairs that are packed together: a strip of their columns stays in the first cache.
const PACK_PAIRS: usize = 128;
/// Numbers of as many rows as are gone through strip by strip, so that they stay in the second cache.
const PANEL_NUMBERS: usize = 1 << 16;
/// Dense pairs from which on packing them is worth it, and the same where rows are so short that one by one takes long.
const MANY_PAIRS: usize = 16;
const MANY_PAIRS_OF_SHORT_ROWS: usize = 4;
const SHORT_ROW: usize = 64;

/// A matrix of numbers, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    shape: Shape,
    numbers: Vec<f32>,
}

impl Matrix {
    /// A matrix that has not been changed yet.
    #[must_use]
    pub fn new(shape: Shape, init: Init) -> Self {
        let mut numbers = vec![0.0; shape.rows as usize * shape.columns as usize];
        if init != Init::Zero {
            numbers.chunks_exact_mut(shape.columns as usize).zip(0..).for_each(|(row, id)| init.fill(id, row));
        }
        Self { shape, numbers }
    }

    /// How many rows it has.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.shape.rows as usize
    }

    /// How many columns it has.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.shape.columns as usize
    }

    /// One row.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[f32] {
        &self.numbers[row * self.columns()..(row + 1) * self.columns()]
    }

    /// One row, to be changed.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        let columns = self.columns();
        &mut self.numbers[row * columns..(row + 1) * columns]
    }

    /// All numbers, row by row.
    #[must_use]
    pub fn numbers(&self) -> &[f32] {
        &self.numbers
    }

    /// All numbers, row by row, to be changed.
    pub fn numbers_mut(&mut self) -> &mut [f32] {
        &mut self.numbers
    }

    /// Subtracts the outer products of all pairs of these blocks, in their order.
    ///
    /// # Panics
    /// If a block is of another shape.
    pub fn subtract<'a>(&mut self, blocks: impl IntoIterator<Item = &'a Block>) {
        let mut dense: Vec<(&[f32], &[f32])> = Vec::new();
        let mut sparse: Vec<SparsePair<'_>> = Vec::new();
        for block in blocks {
            assert_eq!(block.shape(), self.shape, "a block of another matrix");
            match (block.u(), block.v()) {
                (Side::Dense { width: rows, numbers: u }, Side::Dense { width: columns, numbers: v }) => {
                    self.subtract_sparse(&mut sparse);
                    dense.extend(u.chunks_exact(rows).zip(v.chunks_exact(columns)));
                }
                (Side::Dense { width, numbers: u }, v @ Side::Sparse { .. }) => {
                    self.subtract_dense(&mut dense);
                    self.subtract_sparse(&mut sparse);
                    // Rows come first, so that each stays in the cache while all pairs change it.
                    for (j, row) in self.numbers.chunks_exact_mut(self.shape.columns as usize).enumerate() {
                        (0..block.pairs()).for_each(|k| subtract_from_row(row, u[k * width + j], v.factor(k)));
                    }
                }
                (u @ Side::Sparse { .. }, v) => {
                    self.subtract_dense(&mut dense);
                    sparse.extend((0..block.pairs()).map(|k| SparsePair::new(u.factor(k), v.factor(k))));
                }
            }
        }
        self.subtract_dense(&mut dense);
        self.subtract_sparse(&mut sparse);
    }

    /// Subtracts pairs whose `u` is sparse, and leaves none. Where they have many rows in common their entries are sorted by
    /// row first: a row is fetched once, and not anew for every pair that has it.
    fn subtract_sparse(&mut self, pairs: &mut Vec<SparsePair<'_>>) {
        let entries: usize = pairs.iter().map(|pair| pair.places.len()).sum();
        if entries < self.rows() {
            for SparsePair { places, numbers, v } in pairs.drain(..) {
                let rows = places.iter().zip(numbers);
                rows.for_each(|(&j, &number)| subtract_from_row(self.row_mut(j as usize), number, v));
            }
            return;
        }
        // Where the entries of a row begin; when they are all in their places, where they end.
        let mut ends = vec![0; self.rows() + 1];
        pairs.iter().flat_map(|pair| pair.places).for_each(|&j| ends[j as usize + 1] += 1);
        (0..self.rows()).for_each(|j| ends[j + 1] += ends[j]);
        let mut sorted = vec![(0, 0.0); entries];
        for (k, pair) in pairs.iter().enumerate() {
            for (&j, &number) in pair.places.iter().zip(pair.numbers) {
                sorted[ends[j as usize]] = (k, number);
                ends[j as usize] += 1;
            }
        }
        let mut begin = 0;
        for (row, &end) in self.numbers.chunks_exact_mut(self.shape.columns as usize).zip(&ends) {
            sorted[begin..end].iter().for_each(|&(k, number)| subtract_from_row(row, number, pairs[k].v));
            begin = end;
        }
        pairs.clear();
    }

    /// Subtracts dense pairs by the kernel that is faster for as many and for rows of this length, and leaves none.
    fn subtract_dense(&mut self, pairs: &mut Vec<(&[f32], &[f32])>) {
        let columns = self.columns();
        let many = if columns < SHORT_ROW { MANY_PAIRS_OF_SHORT_ROWS } else { MANY_PAIRS };
        if pairs.len() < many {
            widely(&mut self.numbers, OneByOne { columns, pairs });
        } else {
            let panel = (PANEL_NUMBERS / columns).next_multiple_of(TILE_ROWS).max(TILE_ROWS);
            for pairs in pairs.chunks(PACK_PAIRS) {
                for (at, numbers) in self.numbers.chunks_mut(panel * columns).enumerate() {
                    widely(numbers, Packed { columns, pairs, row: at * panel });
                }
            }
        }
        pairs.clear();
    }
}

/// A pair whose first factor is sparse.
struct SparsePair<'a> {
    places: &'a [u32],
    numbers: &'a [f32],
    v: Factor<'a>,
}

impl<'a> SparsePair<'a> {
    fn new(u: Factor<'a>, v: Factor<'a>) -> Self {
        let Factor::Sparse(places, numbers) = u else { unreachable!("of a sparse side") };
        Self { places, numbers, v }
    }
}

/// A way to subtract dense pairs from some rows.
trait Kernel {
    /// Does so, in vectors of so many numbers if it can choose.
    fn subtract<const WIDTH: usize>(self, numbers: &mut [f32]);
}

/// Subtracts with the widest vectors of this machine. Products are rounded before they are subtracted whatever the width,
/// so the bits are the same.
fn widely(numbers: &mut [f32], kernel: impl Kernel) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx") {
        #[target_feature(enable = "avx")]
        fn avx(numbers: &mut [f32], kernel: impl Kernel) {
            kernel.subtract::<16>(numbers);
        }
        #[expect(unsafe_code, reason = "the call needs a promise that the features are there")]
        // SAFETY: they were asked for just above.
        return unsafe { avx(numbers, kernel) };
    }
    kernel.subtract::<8>(numbers);
}

/// All rows, each changed by one pair after the other.
struct OneByOne<'a> {
    columns: usize,
    pairs: &'a [(&'a [f32], &'a [f32])],
}

impl Kernel for OneByOne<'_> {
    #[inline(always)]
    fn subtract<const WIDTH: usize>(self, numbers: &mut [f32]) {
        for (j, row) in numbers.chunks_exact_mut(self.columns).enumerate() {
            for (u, v) in self.pairs {
                let scale = u[j];
                row.iter_mut().zip(*v).for_each(|(x, &number)| *x -= scale * number);
            }
        }
    }
}

/// Some rows from `row` on, by the blocked kernel.
struct Packed<'a> {
    columns: usize,
    pairs: &'a [(&'a [f32], &'a [f32])],
    row: usize,
}

impl Kernel for Packed<'_> {
    #[inline(always)]
    fn subtract<const WIDTH: usize>(self, numbers: &mut [f32]) {
        subtract_in_tiles::<WIDTH>(numbers, self.columns, self.pairs, self.row);
    }
}

/// The blocked kernel: the factors are packed as they are needed, and a tile of the matrix of `WIDTH` columns stays in
/// registers while all pairs are subtracted from it.
#[inline(always)]
fn subtract_in_tiles<const WIDTH: usize>(numbers: &mut [f32], columns: usize, pairs: &[(&[f32], &[f32])], row: usize) {
    let rows = numbers.len() / columns;
    let mut packed_u = vec![[0.0f32; TILE_ROWS]; rows.div_ceil(TILE_ROWS) * pairs.len()];
    for (tile, packed) in packed_u.chunks_exact_mut(pairs.len()).enumerate() {
        let first = tile * TILE_ROWS;
        let height = TILE_ROWS.min(rows - first);
        packed.iter_mut().zip(pairs).for_each(|(to, (u, _))| to[..height].copy_from_slice(&u[row + first..][..height]));
    }
    let mut packed_v = vec![[0.0f32; WIDTH]; pairs.len()];
    for strip in (0..columns).step_by(WIDTH) {
        let width = WIDTH.min(columns - strip);
        packed_v.iter_mut().zip(pairs).for_each(|(to, (_, v))| to[..width].copy_from_slice(&v[strip..][..width]));
        for (tile, packed_u) in packed_u.chunks_exact(pairs.len()).enumerate() {
            let first = tile * TILE_ROWS;
            let height = TILE_ROWS.min(rows - first);
            let start = first * columns + strip;
            let mut sums = [[0.0f32; WIDTH]; TILE_ROWS];
            for (r, sum) in sums[..height].iter_mut().enumerate() {
                sum[..width].copy_from_slice(&numbers[start + r * columns..][..width]);
            }
            // Lengths that are known when it is compiled become vector instructions.
            for (u, v) in packed_u.iter().zip(&packed_v) {
                for r in 0..TILE_ROWS {
                    for c in 0..WIDTH {
                        sums[r][c] -= u[r] * v[c];
                    }
                }
            }
            for (r, sum) in sums[..height].iter().enumerate() {
                numbers[start + r * columns..][..width].copy_from_slice(&sum[..width]);
            }
        }
    }
}

fn subtract_from_row(row: &mut [f32], scale: f32, factor: Factor<'_>) {
    match factor {
        Factor::Dense(numbers) => row.iter_mut().zip(numbers).for_each(|(x, &number)| *x -= scale * number),
        Factor::Sparse(places, numbers) => {
            places.iter().zip(numbers).for_each(|(&place, &number)| row[place as usize] -= scale * number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::block::BlockWriter;
    use crate::schema::mix;
    use proptest::prelude::*;

    fn number(seed: u64) -> f32 {
        (mix(seed) >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    /// A block in which some factors are sparse.
    fn block(shape: Shape, pairs: u64, sparse: (bool, bool), seed: u64) -> Block {
        let mut writer = BlockWriter::new(shape);
        for pair in 0..pairs {
            let factor = |width: u32, sparse: bool, salt: u64| -> (Vec<u32>, Vec<f32>) {
                let chosen =
                    |place: &u32| !sparse || mix(seed ^ u64::from(*place) ^ (pair << 20) ^ salt).is_multiple_of(5);
                let places: Vec<u32> = (0..width).filter(chosen).collect();
                let numbers = places.iter().map(|&p| number(seed ^ mix(salt + pair * 977) ^ u64::from(p))).collect();
                (places, numbers)
            };
            let (u, v) = (factor(shape.rows, sparse.0, 1), factor(shape.columns, sparse.1, 2));
            fn as_factor(factor: &(Vec<u32>, Vec<f32>), sparse: bool) -> Factor<'_> {
                if sparse { Factor::Sparse(&factor.0, &factor.1) } else { Factor::Dense(&factor.1) }
            }
            writer.write(as_factor(&u, sparse.0), as_factor(&v, sparse.1)).expect("fits");
        }
        writer.finish()
    }

    /// The definition: pair by pair, element by element.
    fn plainly(matrix: &mut Matrix, block: &Block) {
        let columns = matrix.columns();
        for k in 0..block.pairs() {
            let entries = |factor: Factor<'_>| -> Vec<(usize, f32)> {
                match factor {
                    Factor::Dense(numbers) => numbers.iter().copied().enumerate().collect(),
                    Factor::Sparse(places, numbers) => {
                        places.iter().map(|&place| place as usize).zip(numbers.iter().copied()).collect()
                    }
                }
            };
            for (j, u) in entries(block.u().factor(k)) {
                for (d, v) in entries(block.v().factor(k)) {
                    matrix.numbers_mut()[j * columns + d] -= u * v;
                }
            }
        }
    }

    proptest! {
        /// The kernels give the bits of the definition, whatever the shape and however blocks are grouped.
        #[test]
        fn kernels_give_the_bits_of_the_definition(
            rows in 1..19u32, columns in 1..90u32, blocks in proptest::collection::vec((0..40u64, any::<bool>(), any::<bool>()), 0..5), seed in any::<u64>()
        ) {
            let shape = Shape { rows, columns };
            let init = Init::Uniform { seed, low: -1.0, high: 1.0, columns, rest: 0.0 };
            let blocks: Vec<Block> = blocks.into_iter().enumerate()
                .map(|(i, (pairs, u, v))| block(shape, pairs, (u, v), seed ^ i as u64)).collect();
            let mut expected = Matrix::new(shape, init);
            blocks.iter().for_each(|block| plainly(&mut expected, block));
            let mut together = Matrix::new(shape, init);
            together.subtract(&blocks);
            prop_assert_eq!(&together, &expected);
            let mut apart = Matrix::new(shape, init);
            blocks.iter().for_each(|block| apart.subtract([block]));
            prop_assert_eq!(&apart, &expected);
        }
    }

    #[test]
    fn more_rows_than_are_gone_through_at_once_make_no_difference() {
        let shape = Shape { rows: 2 * (PANEL_NUMBERS / 300) as u32 + 3, columns: 300 };
        for pairs in [MANY_PAIRS as u64 - 1, MANY_PAIRS as u64] {
            let block = block(shape, pairs, (false, false), 7);
            let (mut expected, mut found) = (Matrix::new(shape, Init::Zero), Matrix::new(shape, Init::Zero));
            plainly(&mut expected, &block);
            found.subtract([&block]);
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn more_pairs_than_are_packed_at_once_make_no_difference() {
        let shape = Shape { rows: 9, columns: 33 };
        let block = block(shape, 3 * PACK_PAIRS as u64 + 5, (false, false), 7);
        let (mut expected, mut found) = (Matrix::new(shape, Init::Zero), Matrix::new(shape, Init::Zero));
        plainly(&mut expected, &block);
        found.subtract([&block]);
        assert_eq!(found, expected);
    }
}
