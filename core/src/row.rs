//! What a row is: the kinds of row a table can have, one row's value, and how an update changes it.

use std::fmt;
use std::sync::Arc;

/// The kind of a table's rows.
#[derive(Clone)]
pub enum RowKind {
    /// `width` numbers.
    Dense {
        /// How many numbers a row has.
        width: u32,
    },
    /// Numbers at some columns, zero elsewhere.
    Sparse,
    /// Whole numbers at some columns, zero elsewhere.
    Counts,
    /// A type of the user's.
    Custom(Arc<dyn RowType>),
}

/// A user's own row type. Rows and updates cross the protocol as bytes of the type's own making; an empty row is one
/// that nobody has written yet.
pub trait RowType: Send + Sync {
    /// A name for messages.
    fn name(&self) -> &str;

    /// Changes `row` by `update`.
    fn apply(&self, row: &mut Vec<u8>, update: &[u8]);

    /// Changes the buffered `earlier` update so that applying it does what applying it and then `later` would.
    fn coalesce(&self, earlier: &mut Vec<u8>, later: &[u8]);

    /// How much it matters that others hear of `update` soon: its magnitude, or as parts of `row` where that is given.
    /// Under a bandwidth budget what matters more is sent first. Unless the type says otherwise all matter the same.
    fn importance(&self, row: Option<&[u8]>, update: &[u8]) -> f32 {
        let _ = (row, update);
        1.0
    }
}

/// One row, or one update of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    /// Every number of the row.
    Dense(Vec<f32>),
    /// Column and number, by ascending column.
    Sparse(Vec<(u32, f32)>),
    /// Column and count, by ascending column.
    Counts(Vec<(u32, i32)>),
    /// A user's row.
    Custom(Vec<u8>),
}

/// A row, or an update of one, borrowed from a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RowRef<'a> {
    /// Every number of the row.
    Dense(&'a [f32]),
    /// Columns and their numbers.
    Sparse(&'a [u32], &'a [f32]),
    /// Columns and their counts.
    Counts(&'a [u32], &'a [i32]),
    /// A user's row.
    Custom(&'a [u8]),
}

impl fmt::Debug for RowKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dense { width } => write!(f, "Dense {{ width: {width} }}"),
            Self::Sparse => write!(f, "Sparse"),
            Self::Counts => write!(f, "Counts"),
            Self::Custom(kind) => write!(f, "Custom({})", kind.name()),
        }
    }
}

impl RowKind {
    /// A row that nobody has written yet.
    #[must_use]
    pub fn zero(&self) -> Row {
        match self {
            Self::Dense { width } => Row::Dense(vec![0.0; *width as usize]),
            Self::Sparse => Row::Sparse(Vec::new()),
            Self::Counts => Row::Counts(Vec::new()),
            Self::Custom(_) => Row::Custom(Vec::new()),
        }
    }

    /// Changes `row` by `update`.
    ///
    /// # Panics
    /// If the two are not of this kind; batches from the wire are checked against the kind before they get here.
    pub fn apply(&self, row: &mut Row, update: RowRef<'_>) {
        match (self, row, update) {
            (Self::Custom(kind), Row::Custom(row), RowRef::Custom(update)) => kind.apply(row, update),
            (_, row, update) => add(row, update),
        }
    }

    /// Changes the buffered update `earlier` so that it stands for itself and `later`.
    ///
    /// # Panics
    /// If the two are not of this kind.
    pub fn coalesce(&self, earlier: &mut Row, later: RowRef<'_>) {
        match (self, earlier, later) {
            (Self::Custom(kind), Row::Custom(earlier), RowRef::Custom(later)) => kind.coalesce(earlier, later),
            (_, earlier, later) => add(earlier, later),
        }
    }

    /// How much it matters that others hear of `update` soon: the sum over its entries of their magnitude, each as a
    /// part of the number in `row` where that is given and not zero.
    ///
    /// # Panics
    /// If the two are not of this kind.
    #[must_use]
    pub fn importance(&self, row: Option<RowRef<'_>>, update: RowRef<'_>) -> f32 {
        match (self, row, update) {
            (Self::Custom(kind), Some(RowRef::Custom(row)), RowRef::Custom(update)) => {
                kind.importance(Some(row), update)
            }
            (Self::Custom(kind), None, RowRef::Custom(update)) => kind.importance(None, update),
            (_, None, RowRef::Dense(update)) => update.iter().map(|x| x.abs()).sum(),
            (_, Some(RowRef::Dense(row)), RowRef::Dense(update)) => {
                update.iter().zip(row).map(|(&x, &a)| relative(x, a)).sum()
            }
            (_, row, RowRef::Sparse(columns, numbers)) => {
                let old = |column| match row {
                    Some(RowRef::Sparse(columns, numbers)) => entry(columns, numbers, column),
                    _ => 0.0,
                };
                columns.iter().zip(numbers).map(|(&column, &x)| relative(x, old(column))).sum()
            }
            (_, row, RowRef::Counts(columns, counts)) => {
                let old = |column| match row {
                    Some(RowRef::Counts(columns, counts)) => entry(columns, counts, column) as f32,
                    _ => 0.0,
                };
                columns.iter().zip(counts).map(|(&column, &x)| relative(x as f32, old(column))).sum()
            }
            (_, row, update) => panic!("an update of another kind: {update:?} to {row:?}"),
        }
    }

    /// Whether `row` is a row of this kind.
    #[must_use]
    pub fn fits(&self, row: RowRef<'_>) -> bool {
        match (self, row) {
            (Self::Dense { width }, RowRef::Dense(numbers)) => numbers.len() == *width as usize,
            (Self::Sparse, RowRef::Sparse(..))
            | (Self::Counts, RowRef::Counts(..))
            | (Self::Custom(_), RowRef::Custom(_)) => true,
            _ => false,
        }
    }
}

/// The magnitude of a change of `a` by `x`.
fn relative(x: f32, a: f32) -> f32 {
    if a == 0.0 { x.abs() } else { (x / a).abs() }
}

/// The value at a column of a sparse row, whose columns ascend.
fn entry<T: Copy + Default>(columns: &[u32], values: &[T], column: u32) -> T {
    columns.binary_search(&column).map_or(T::default(), |at| values[at])
}

fn add(row: &mut Row, update: RowRef<'_>) {
    match (row, update) {
        (Row::Dense(row), RowRef::Dense(update)) => {
            for (a, b) in row.iter_mut().zip(update) {
                *a += b;
            }
        }
        (Row::Sparse(row), RowRef::Sparse(columns, numbers)) => {
            merge(row, columns, numbers, |a, b| *a += b, |a| *a == 0.0);
        }
        (Row::Counts(row), RowRef::Counts(columns, counts)) => {
            merge(row, columns, counts, |a, b| *a = a.wrapping_add(b), |a| *a == 0);
        }
        (row, update) => panic!("an update of another kind: {update:?} to {row:?}"),
    }
}

/// Adds sorted or unsorted `columns` into the sorted `row`, dropping what becomes zero.
fn merge<T: Copy>(row: &mut Vec<(u32, T)>, columns: &[u32], values: &[T], add: fn(&mut T, T), is_zero: fn(&T) -> bool) {
    for (&column, &value) in columns.iter().zip(values) {
        match row.binary_search_by_key(&column, |&(c, _)| c) {
            Ok(at) => add(&mut row[at].1, value),
            Err(at) => row.insert(at, (column, value)),
        }
    }
    row.retain(|(_, value)| !is_zero(value));
}

impl Row {
    /// Calls `f` with this row borrowed in the form that batches use.
    pub fn with<R>(&self, f: impl FnOnce(RowRef<'_>) -> R) -> R {
        match self {
            Self::Dense(numbers) => f(RowRef::Dense(numbers)),
            Self::Sparse(entries) => {
                let (columns, numbers): (Vec<_>, Vec<_>) = entries.iter().copied().unzip();
                f(RowRef::Sparse(&columns, &numbers))
            }
            Self::Counts(entries) => {
                let (columns, counts): (Vec<_>, Vec<_>) = entries.iter().copied().unzip();
                f(RowRef::Counts(&columns, &counts))
            }
            Self::Custom(bytes) => f(RowRef::Custom(bytes)),
        }
    }
}

impl Row {
    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Dense(numbers) => 4 * numbers.len(),
            Self::Sparse(entries) => 8 * entries.len(),
            Self::Counts(entries) => 8 * entries.len(),
            Self::Custom(bytes) => bytes.len(),
        }
    }
}

impl RowRef<'_> {
    /// How many bytes the row takes in a message, with its id.
    pub(crate) fn wire_bytes(self) -> usize {
        8 + match self {
            Self::Dense(numbers) => 4 * numbers.len(),
            Self::Sparse(columns, _) | Self::Counts(columns, _) => 4 + 8 * columns.len(),
            Self::Custom(bytes) => 4 + bytes.len(),
        }
    }

    /// The row, owned.
    #[must_use]
    pub fn to_row(self) -> Row {
        match self {
            Self::Dense(numbers) => Row::Dense(numbers.to_vec()),
            Self::Sparse(columns, numbers) => sorted(Row::Sparse(Vec::new()), RowRef::Sparse(columns, numbers)),
            Self::Counts(columns, counts) => sorted(Row::Counts(Vec::new()), RowRef::Counts(columns, counts)),
            Self::Custom(bytes) => Row::Custom(bytes.to_vec()),
        }
    }
}

fn sorted(mut empty: Row, entries: RowRef<'_>) -> Row {
    add(&mut empty, entries);
    empty
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_updates_merge_by_column_and_drop_zeros() {
        let mut row = Row::Counts(vec![(2, 5), (7, 1)]);
        RowKind::Counts.apply(&mut row, RowRef::Counts(&[7, 3, 2], &[-1, 4, 1]));
        assert_eq!(row, Row::Counts(vec![(2, 6), (3, 4)]));
    }

    #[test]
    fn importance_is_magnitude_alone_or_as_a_part_of_what_is_changed() {
        let dense = RowKind::Dense { width: 3 };
        let update = RowRef::Dense(&[1.0, -2.0, 0.5]);
        assert_eq!(dense.importance(None, update), 3.5);
        assert_eq!(dense.importance(Some(RowRef::Dense(&[4.0, 0.0, -0.5])), update), 0.25 + 2.0 + 1.0);
        let counts = RowRef::Counts(&[1, 9], &[3, -4]);
        assert_eq!(RowKind::Counts.importance(None, counts), 7.0);
        assert_eq!(RowKind::Counts.importance(Some(RowRef::Counts(&[3, 9], &[1, 8])), counts), 3.5);
        let sparse = RowRef::Sparse(&[2], &[-1.0]);
        assert_eq!(RowKind::Sparse.importance(Some(RowRef::Sparse(&[2], &[4.0])), sparse), 0.25);
    }

    #[test]
    fn a_dense_row_of_another_width_does_not_fit() {
        let kind = RowKind::Dense { width: 3 };
        assert!(kind.fits(RowRef::Dense(&[0.0; 3])));
        assert!(!kind.fits(RowRef::Dense(&[0.0; 2])));
        assert!(!kind.fits(RowRef::Custom(&[])));
    }
}
