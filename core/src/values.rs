//! A batch of rows, or of updates: the values that travel beside a list of row ids.

use crate::array::Array;
use crate::precision::Precision;
use crate::row::{Row, RowKind, RowRef};
use std::ops::Range;

/// The values of many rows, as a few flat arrays.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Rows of `width` numbers, one after the other.
    Dense {
        /// How many numbers a row has.
        width: u32,
        /// The numbers of all rows.
        numbers: Array<f32>,
    },
    /// Dense rows as they travel in sixteen bits a number. Nothing is computed with these: whoever receives them
    /// widens them first.
    Half {
        /// How many numbers a row has.
        width: u32,
        /// What the bits mean.
        precision: Precision,
        /// The bits of all numbers.
        numbers: Array<u16>,
    },
    /// Row `i` has the entries from `offsets[i]` to `offsets[i + 1]`.
    Sparse {
        /// One more than there are rows, ascending, from zero.
        offsets: Array<u32>,
        /// The columns of all rows.
        columns: Array<u32>,
        /// The numbers at those columns.
        numbers: Array<f32>,
    },
    /// Row `i` has the entries from `offsets[i]` to `offsets[i + 1]`.
    Counts {
        /// One more than there are rows, ascending, from zero.
        offsets: Array<u32>,
        /// The columns of all rows.
        columns: Array<u32>,
        /// The counts at those columns.
        counts: Array<i32>,
    },
    /// Row `i` has the bytes from `offsets[i]` to `offsets[i + 1]`.
    Custom {
        /// One more than there are rows, ascending, from zero.
        offsets: Array<u32>,
        /// The bytes of all rows.
        bytes: Array<u8>,
    },
}

impl Values {
    /// Dense rows of `width` numbers each.
    #[must_use]
    pub fn dense(width: u32, numbers: Vec<f32>) -> Self {
        Self::Dense { width, numbers: numbers.into() }
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Dense { width, numbers } => numbers.len() / (*width).max(1) as usize,
            Self::Half { width, numbers, .. } => numbers.len() / (*width).max(1) as usize,
            Self::Sparse { offsets, .. } | Self::Counts { offsets, .. } | Self::Custom { offsets, .. } => {
                offsets.len().saturating_sub(1)
            }
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Row `i` of the batch.
    ///
    /// # Panics
    /// If the batch has no row `i`, or breaks what [`Values::check`] promises.
    #[must_use]
    pub fn row(&self, i: usize) -> RowRef<'_> {
        let span = |offsets: &[u32]| offsets[i] as usize..offsets[i + 1] as usize;
        match self {
            Self::Dense { width, numbers } => {
                let width = *width as usize;
                RowRef::Dense(&numbers.as_slice()[i * width..(i + 1) * width])
            }
            Self::Half { .. } => panic!("numbers of sixteen bits are widened before they are used"),
            Self::Sparse { offsets, columns, numbers } => {
                let span = span(offsets);
                RowRef::Sparse(&columns.as_slice()[span.clone()], &numbers.as_slice()[span])
            }
            Self::Counts { offsets, columns, counts } => {
                let span = span(offsets);
                RowRef::Counts(&columns.as_slice()[span.clone()], &counts.as_slice()[span])
            }
            Self::Custom { offsets, bytes } => RowRef::Custom(&bytes.as_slice()[span(offsets)]),
        }
    }

    /// Some consecutive rows of the batch.
    ///
    /// # Panics
    /// If the batch has not so many rows.
    #[must_use]
    pub fn part(&self, rows: Range<usize>) -> Self {
        let spans = |offsets: &[u32]| {
            let (first, last) = (offsets[rows.start], offsets[rows.end]);
            let offsets: Vec<u32> = offsets[rows.start..=rows.end].iter().map(|offset| offset - first).collect();
            (Array::from(offsets), first as usize..last as usize)
        };
        match self {
            Self::Dense { width, numbers } => {
                let width_of = *width as usize;
                Self::dense(*width, numbers[rows.start * width_of..rows.end * width_of].to_vec())
            }
            Self::Half { .. } => panic!("numbers of sixteen bits are widened before they are used"),
            Self::Sparse { offsets, columns, numbers } => {
                let (offsets, span) = spans(offsets);
                let (columns, numbers) = (columns[span.clone()].to_vec().into(), numbers[span].to_vec().into());
                Self::Sparse { offsets, columns, numbers }
            }
            Self::Counts { offsets, columns, counts } => {
                let (offsets, span) = spans(offsets);
                let (columns, counts) = (columns[span.clone()].to_vec().into(), counts[span].to_vec().into());
                Self::Counts { offsets, columns, counts }
            }
            Self::Custom { offsets, bytes } => {
                let (offsets, span) = spans(offsets);
                Self::Custom { offsets, bytes: bytes[span].to_vec().into() }
            }
        }
    }

    /// Whether the arrays fit together as `rows` rows of `kind`. Everything from the wire passes here first.
    #[must_use]
    pub fn check(&self, kind: &RowKind, rows: usize) -> bool {
        let offsets_cover = |offsets: &[u32], entries: usize| {
            offsets.len() == rows + 1
                && offsets[0] == 0
                && offsets[rows] as usize == entries
                && offsets.windows(2).all(|pair| pair[0] <= pair[1])
        };
        match (self, kind) {
            (Self::Dense { width, numbers }, RowKind::Dense { width: expected }) => {
                width == expected && rows.checked_mul(*width as usize) == Some(numbers.len())
            }
            (Self::Sparse { offsets, columns, numbers }, RowKind::Sparse) => {
                offsets_cover(offsets, columns.len()) && columns.len() == numbers.len()
            }
            (Self::Counts { offsets, columns, counts }, RowKind::Counts) => {
                offsets_cover(offsets, columns.len()) && columns.len() == counts.len()
            }
            (Self::Custom { offsets, bytes }, RowKind::Custom(_)) => offsets_cover(offsets, bytes.len()),
            _ => false,
        }
    }

    /// The batch of `rows`, which are all of `kind`.
    ///
    /// # Panics
    /// If a row is of another kind.
    #[must_use]
    pub fn collect<'a>(kind: &RowKind, rows: impl Iterator<Item = &'a Row>) -> Self {
        let mut offsets = vec![0u32];
        let mut columns = Vec::new();
        match kind {
            RowKind::Dense { width } => {
                let mut numbers = Vec::new();
                rows.for_each(|row| match row {
                    Row::Dense(row) => numbers.extend_from_slice(row),
                    row => panic!("a row of another kind: {row:?}"),
                });
                Self::dense(*width, numbers)
            }
            RowKind::Sparse => {
                let mut numbers = Vec::new();
                rows.for_each(|row| match row {
                    Row::Sparse(row) => {
                        columns.extend(row.iter().map(|entry| entry.0));
                        numbers.extend(row.iter().map(|entry| entry.1));
                        offsets.push(columns.len() as u32);
                    }
                    row => panic!("a row of another kind: {row:?}"),
                });
                Self::Sparse { offsets: offsets.into(), columns: columns.into(), numbers: numbers.into() }
            }
            RowKind::Counts => {
                let mut counts = Vec::new();
                rows.for_each(|row| match row {
                    Row::Counts(row) => {
                        columns.extend(row.iter().map(|entry| entry.0));
                        counts.extend(row.iter().map(|entry| entry.1));
                        offsets.push(columns.len() as u32);
                    }
                    row => panic!("a row of another kind: {row:?}"),
                });
                Self::Counts { offsets: offsets.into(), columns: columns.into(), counts: counts.into() }
            }
            RowKind::Custom(_) => {
                let mut bytes = Vec::new();
                rows.for_each(|row| match row {
                    Row::Custom(row) => {
                        bytes.extend_from_slice(row);
                        offsets.push(bytes.len() as u32);
                    }
                    row => panic!("a row of another kind: {row:?}"),
                });
                Self::Custom { offsets: offsets.into(), bytes: bytes.into() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_gives_back_the_rows_it_was_made_of() {
        let cases = [
            (RowKind::Dense { width: 2 }, vec![Row::Dense(vec![1.0, 2.0]), Row::Dense(vec![3.0, 4.0])]),
            (RowKind::Sparse, vec![Row::Sparse(vec![(3, 0.5)]), Row::Sparse(vec![]), Row::Sparse(vec![(0, 1.0)])]),
            (RowKind::Counts, vec![Row::Counts(vec![(1, -2), (9, 4)])]),
        ];
        for (kind, rows) in cases {
            let values = Values::collect(&kind, rows.iter());
            assert!(values.check(&kind, rows.len()));
            assert!(!values.check(&kind, rows.len() + 1));
            let last = values.part(rows.len() - 1..rows.len());
            assert!(last.check(&kind, 1) && last.row(0) == values.row(rows.len() - 1));
            let back: Vec<Row> = (0..values.len()).map(|i| values.row(i).to_row()).collect();
            assert_eq!(back, rows);
        }
    }

    #[test]
    fn offsets_that_point_outside_or_backwards_are_refused() {
        let batch = |offsets: Vec<u32>| Values::Counts {
            offsets: offsets.into(),
            columns: vec![1, 2].into(),
            counts: vec![1, 1].into(),
        };
        assert!(batch(vec![0, 1, 2]).check(&RowKind::Counts, 2));
        for offsets in [vec![0, 1, 3], vec![0, 2, 1], vec![1, 1, 2], vec![0, 2], vec![]] {
            assert!(!batch(offsets.clone()).check(&RowKind::Counts, 2), "{offsets:?}");
        }
    }
}
