//! The factor pairs of one iteration of one peer: what is written pair by pair, travels as one block, and stands for a
//! matrix of low rank.
//!
//! A block lies in memory as it travels: words, which are the offsets and columns of sparse factors, and numbers. All
//! the factors of one side come first. The factors of a side are dense or sparse together, whichever is shorter; one
//! dense factor makes its side dense.

use super::{PeerError, Shape};
use crate::array::Array;

/// One factor of a pair, as a user writes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Factor<'a> {
    /// Every number.
    Dense(&'a [f32]),
    /// The numbers at these places, which ascend; zero elsewhere.
    Sparse(&'a [u32], &'a [f32]),
}

impl<'a> From<&'a [f32]> for Factor<'a> {
    fn from(numbers: &'a [f32]) -> Self {
        Self::Dense(numbers)
    }
}

impl<'a> From<&'a Vec<f32>> for Factor<'a> {
    fn from(numbers: &'a Vec<f32>) -> Self {
        Self::Dense(numbers)
    }
}

impl<'a, const N: usize> From<&'a [f32; N]> for Factor<'a> {
    fn from(numbers: &'a [f32; N]) -> Self {
        Self::Dense(numbers)
    }
}

impl<'a> From<(&'a [u32], &'a [f32])> for Factor<'a> {
    fn from((places, numbers): (&'a [u32], &'a [f32])) -> Self {
        Self::Sparse(places, numbers)
    }
}

/// The pairs of one iteration. Its matrix is the sum of their outer products.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    shape: Shape,
    pairs: u32,
    forms: [Form; 2],
    words: Array<u32>,
    numbers: Array<f32>,
}

/// How the factors of a side lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Dense,
    Sparse,
}

/// The factors of one side of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Side<'a> {
    /// One after the other.
    Dense {
        /// How many numbers each has.
        width: usize,
        /// The numbers of all.
        numbers: &'a [f32],
    },
    /// Factor `k` has the entries from `offsets[k]` up to `offsets[k + 1]`.
    Sparse {
        /// Where each begins, and where the last ends.
        offsets: &'a [u32],
        /// The places of the entries, ascending within a factor.
        places: &'a [u32],
        /// Their numbers.
        numbers: &'a [f32],
    },
}

impl<'a> Side<'a> {
    /// Factor `k`.
    #[must_use]
    pub fn factor(self, k: usize) -> Factor<'a> {
        match self {
            Self::Dense { width, numbers } => Factor::Dense(&numbers[k * width..(k + 1) * width]),
            Self::Sparse { offsets, places, numbers } => {
                let entries = offsets[k] as usize..offsets[k + 1] as usize;
                Factor::Sparse(&places[entries.clone()], &numbers[entries])
            }
        }
    }
}

impl Block {
    /// The block of these arrays; `None` if they are not such that a [`BlockWriter`] could have made them.
    pub(crate) fn from_wire(
        shape: Shape,
        pairs: u32,
        forms: [Form; 2],
        words: Array<u32>,
        numbers: Array<f32>,
    ) -> Option<Self> {
        let block = Self { shape, pairs, forms, words, numbers };
        let (after_u, numbers_of_u) = block.length_of(0, 0)?;
        let (after_v, numbers_of_v) = block.length_of(1, after_u)?;
        let whole = after_v == block.words.len()
            && numbers_of_u.checked_add(numbers_of_v) == Some(block.numbers.len())
            && [block.u(), block.v()].iter().zip([shape.rows, shape.columns]).all(|(side, width)| fits(*side, width));
        whole.then_some(block)
    }

    /// Where the words of a side end that begin at `start`, and how many numbers it has, as far as its own counts say.
    fn length_of(&self, side: usize, start: usize) -> Option<(usize, usize)> {
        let width = [self.shape.rows, self.shape.columns][side];
        match self.forms[side] {
            Form::Dense => Some((start, (self.pairs as usize).checked_mul(width as usize)?)),
            Form::Sparse => {
                let after_offsets = start.checked_add(self.pairs as usize)?.checked_add(1)?;
                let entries = *self.words.get(after_offsets - 1)? as usize;
                let end = after_offsets.checked_add(entries)?;
                (end <= self.words.len()).then_some((end, entries))
            }
        }
    }

    /// The shape of its matrix.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// How many pairs it has.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.pairs as usize
    }

    /// The first factors of all pairs.
    #[must_use]
    pub fn u(&self) -> Side<'_> {
        self.side(0)
    }

    /// The second factors of all pairs.
    #[must_use]
    pub fn v(&self) -> Side<'_> {
        self.side(1)
    }

    /// How many products its reconstruction takes: one for every pair of entries of the factors of a pair.
    #[must_use]
    pub fn products(&self) -> u64 {
        match (self.u(), self.v()) {
            (Side::Dense { width: rows, .. }, Side::Dense { width: columns, .. }) => {
                self.pairs as u64 * rows as u64 * columns as u64
            }
            (u, v) => (0..self.pairs()).map(|k| entries(u.factor(k)) * entries(v.factor(k))).sum(),
        }
    }

    /// Whether every product changes a number by itself, far from that of the last: both sides are sparse.
    #[must_use]
    pub fn is_scattered(&self) -> bool {
        self.forms == [Form::Sparse; 2]
    }

    fn side(&self, side: usize) -> Side<'_> {
        let (words, numbers) = match side {
            0 => (0, 0),
            _ => self.length_of(0, 0).expect("checked when the block was made"),
        };
        let (words, numbers) = (&self.words[words..], &self.numbers[numbers..]);
        match self.forms[side] {
            Form::Dense => {
                let width = [self.shape.rows, self.shape.columns][side] as usize;
                Side::Dense { width, numbers: &numbers[..self.pairs() * width] }
            }
            Form::Sparse => {
                let (offsets, places) = words.split_at(self.pairs() + 1);
                let count = offsets[self.pairs()] as usize;
                Side::Sparse { offsets, places: &places[..count], numbers: &numbers[..count] }
            }
        }
    }

    pub(crate) fn forms(&self) -> [Form; 2] {
        self.forms
    }

    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }

    pub(crate) fn numbers(&self) -> &[f32] {
        &self.numbers
    }
}

fn entries(factor: Factor<'_>) -> u64 {
    match factor {
        Factor::Dense(numbers) | Factor::Sparse(_, numbers) => numbers.len() as u64,
    }
}

/// Whether offsets and places are what they must be.
fn fits(side: Side<'_>, width: u32) -> bool {
    let Side::Sparse { offsets, places, .. } = side else { return true };
    let factors = || offsets.windows(2).map(|pair| places.get(pair[0] as usize..pair[1] as usize));
    offsets.first() == Some(&0) && factors().all(|places| places.is_some_and(|places| ascend(places, width)))
}

fn ascend(places: &[u32], width: u32) -> bool {
    places.windows(2).all(|pair| pair[0] < pair[1]) && places.last().is_none_or(|last| *last < width)
}

/// Takes the pairs of an iteration.
#[derive(Debug)]
pub struct BlockWriter {
    shape: Shape,
    pairs: u32,
    sides: [SideWriter; 2],
}

#[derive(Debug)]
struct SideWriter {
    width: u32,
    form: Form,
    /// Of a sparse side.
    offsets: Vec<u32>,
    places: Vec<u32>,
    numbers: Vec<f32>,
}

impl BlockWriter {
    /// One that has no pairs yet.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        Self { shape, pairs: 0, sides: [shape.rows, shape.columns].map(SideWriter::new) }
    }

    /// How many pairs it has.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.pairs as usize
    }

    /// Adds a pair.
    ///
    /// # Errors
    /// If a factor does not fit the shape, or there would be more numbers than a message can count. Then nothing was
    /// added.
    pub fn write(&mut self, u: Factor<'_>, v: Factor<'_>) -> Result<(), PeerError> {
        for (name, factor, width) in [("u", u, self.shape.rows), ("v", v, self.shape.columns)] {
            check(name, factor, width)?;
        }
        // Whatever becomes of it: all of it dense, or both arrays of all of it sparse.
        let most = (u64::from(self.pairs) + 2) * (u64::from(self.shape.rows) + u64::from(self.shape.columns) + 2) * 2;
        if most > u64::from(u32::MAX) {
            return Err(PeerError::TooLong { pairs: self.pairs });
        }
        self.pairs += 1;
        let [of_u, of_v] = &mut self.sides;
        of_u.write(u);
        of_v.write(v);
        Ok(())
    }

    /// The pairs as a block; the writer has none after that.
    pub fn finish(&mut self) -> Block {
        let whole = std::mem::replace(self, Self::new(self.shape));
        let [mut u, mut v] = whole.sides;
        for side in [&mut u, &mut v] {
            // An entry of a sparse side takes two words, one of a dense side takes one.
            if side.form == Form::Sparse && side.places.len() * 2 >= whole.pairs as usize * side.width as usize {
                side.make_dense();
            }
        }
        let (forms, mut words) = ([u.form, v.form], u.words());
        words.append(&mut v.words());
        let mut numbers = u.numbers;
        numbers.append(&mut v.numbers);
        Block { shape: whole.shape, pairs: whole.pairs, forms, words: words.into(), numbers: numbers.into() }
    }
}

impl SideWriter {
    fn new(width: u32) -> Self {
        Self { width, form: Form::Sparse, offsets: vec![0], places: Vec::new(), numbers: Vec::new() }
    }

    fn write(&mut self, factor: Factor<'_>) {
        if let (Factor::Dense(_), Form::Sparse) = (factor, self.form) {
            self.make_dense();
        }
        match (factor, self.form) {
            (Factor::Dense(numbers), _) => self.numbers.extend_from_slice(numbers),
            (Factor::Sparse(places, numbers), Form::Sparse) => {
                self.places.extend_from_slice(places);
                self.numbers.extend_from_slice(numbers);
                self.offsets.push(self.places.len() as u32);
            }
            (Factor::Sparse(places, numbers), Form::Dense) => scatter(&mut self.numbers, self.width, places, numbers),
        }
    }

    fn make_dense(&mut self) {
        let mut dense = Vec::new();
        for pair in self.offsets.windows(2) {
            let entries = pair[0] as usize..pair[1] as usize;
            scatter(&mut dense, self.width, &self.places[entries.clone()], &self.numbers[entries]);
        }
        (self.form, self.numbers) = (Form::Dense, dense);
        (self.offsets, self.places) = (Vec::new(), Vec::new());
    }

    fn words(&mut self) -> Vec<u32> {
        let mut words = std::mem::take(&mut self.offsets);
        words.append(&mut self.places);
        words
    }
}

/// Appends a sparse factor with all its zeros.
fn scatter(dense: &mut Vec<f32>, width: u32, places: &[u32], numbers: &[f32]) {
    let start = dense.len();
    dense.resize(start + width as usize, 0.0);
    places.iter().zip(numbers).for_each(|(&place, &number)| dense[start + place as usize] = number);
}

fn check(name: &'static str, factor: Factor<'_>, width: u32) -> Result<(), PeerError> {
    match factor {
        Factor::Dense(numbers) if numbers.len() != width as usize => {
            Err(PeerError::Length { name, found: numbers.len(), width })
        }
        Factor::Sparse(places, numbers) if places.len() != numbers.len() => {
            Err(PeerError::Entries { name, places: places.len(), numbers: numbers.len() })
        }
        Factor::Sparse(places, _) if !ascend(places, width) => Err(PeerError::Places { name, width }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { rows: 3, columns: 10 };

    fn dense(side: Side<'_>, width: usize, k: usize) -> Vec<f32> {
        let mut whole = vec![0.0; width];
        match side.factor(k) {
            Factor::Dense(numbers) => whole.copy_from_slice(numbers),
            Factor::Sparse(places, numbers) => {
                places.iter().zip(numbers).for_each(|(&place, &number)| whole[place as usize] = number);
            }
        }
        whole
    }

    #[test]
    fn a_block_gives_back_what_was_written_in_the_shorter_form() {
        let mut writer = BlockWriter::new(SHAPE);
        let v = [0.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 0.0, 6.0];
        writer.write(Factor::Sparse(&[2], &[1.0]), Factor::Sparse(&[4, 9], &[5.0, 6.0])).expect("fits");
        writer.write(Factor::from(&[1.0, 2.0, 3.0]), Factor::Sparse(&[], &[])).expect("fits");
        writer.write(Factor::Sparse(&[0], &[7.0]), Factor::Sparse(&[0], &[8.0])).expect("fits");
        let block = writer.finish();
        assert_eq!(block.forms(), [Form::Dense, Form::Sparse]);
        assert_eq!((block.pairs(), block.words().len() + block.numbers().len()), (3, 9 + 4 + 3 + 3));
        assert_eq!(block.products(), 3 * 2 + 3);
        assert_eq!(dense(block.u(), 3, 0), [0.0, 0.0, 1.0]);
        assert_eq!(dense(block.u(), 3, 2), [7.0, 0.0, 0.0]);
        assert_eq!(dense(block.v(), 10, 0), v);
        assert_eq!(dense(block.v(), 10, 1), [0.0; 10]);
        assert_eq!(writer.finish().pairs(), 0, "the next block begins empty");
        let full: Vec<u32> = (0..10).collect();
        writer.write(Factor::from(&[1.0; 3]), Factor::Sparse(&full, &[2.0; 10])).expect("fits");
        assert_eq!(writer.finish().forms(), [Form::Dense, Form::Dense], "shorter so");
    }

    #[test]
    fn a_factor_that_does_not_fit_is_refused_with_its_reason() {
        let mut writer = BlockWriter::new(SHAPE);
        let good = Factor::Sparse(&[], &[]);
        let cases = [
            (Factor::Dense(&[1.0; 4]), good, "a factor u of 4 numbers was written for a matrix with 3 rows"),
            (good, Factor::Dense(&[1.0; 4]), "a factor v of 4 numbers was written for a matrix with 10 columns"),
            (Factor::Sparse(&[1, 2], &[1.0]), good, "a sparse factor u has 2 places and 1 numbers"),
            (good, Factor::Sparse(&[1, 1], &[1.0; 2]), "the places of a sparse factor v must ascend and be below 10"),
            (Factor::Sparse(&[3], &[1.0]), good, "the places of a sparse factor u must ascend and be below 3"),
        ];
        for (u, v, sentence) in cases {
            assert_eq!(writer.write(u, v).expect_err("does not fit").to_string(), sentence);
        }
        assert_eq!(writer.pairs(), 0);
        let huge = Shape { rows: 1 << 28, columns: 1 << 28 };
        let mut writer = BlockWriter::new(huge);
        writer.write(good, good).expect("one fits");
        let more = (0..9).find_map(|_| writer.write(good, good).err());
        assert_eq!(
            more.expect("not nine more").to_string(),
            "a block of 2 pairs can take no more: a message counts at most 4294967295 numbers"
        );
    }

    #[test]
    fn arrays_that_no_writer_makes_are_no_block() {
        let sparse = [Form::Sparse, Form::Sparse];
        let make = |pairs, forms, words: &[u32], numbers: &[f32]| {
            Block::from_wire(SHAPE, pairs, forms, words.to_vec().into(), numbers.to_vec().into()).is_some()
        };
        assert!(make(1, sparse, &[0, 1, 2, 0, 2, 4, 9], &[1.0, 5.0, 6.0]));
        assert!(make(1, [Form::Dense, Form::Dense], &[], &[1.0; 13]));
        assert!(make(0, [Form::Dense, Form::Sparse], &[0], &[]));
        assert!(!make(1, [Form::Dense, Form::Dense], &[], &[1.0; 12]), "numbers missing");
        assert!(!make(1, [Form::Dense, Form::Dense], &[7], &[1.0; 13]), "a word too many");
        assert!(!make(1, sparse, &[0, 1, 3, 0, 2, 4, 9], &[1.0, 5.0, 6.0]), "a place beyond the rows");
        assert!(!make(1, sparse, &[0, 1, 2, 0, 2, 9, 4], &[1.0, 5.0, 6.0]), "places that do not ascend");
        assert!(!make(1, sparse, &[1, 1, 2, 0, 2, 4, 9], &[1.0, 5.0, 6.0]), "an entry of nobody");
        assert!(!make(2, sparse, &[0, 2, 1, 0, 0, 0, 0], &[1.0]), "offsets that go back");
        assert!(!make(1, sparse, &[0, 1, 2, 0, u32::MAX], &[1.0]), "a count beyond the end");
        assert!(!make(u32::MAX, sparse, &[], &[]), "no offsets at all");
        assert!(!make(u32::MAX, [Form::Dense, Form::Dense], &[], &[]), "no numbers at all");
    }
}
