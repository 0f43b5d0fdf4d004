//! The master copy of a table, or of a shard's part of it.

use crate::recycler::Recycler;
use crate::row::{Row, RowKind, RowRef};
use crate::schema::TableSchema;
use crate::slab::{Shape, Slab};
use crate::snapshot::{Part, PartError};
use crate::values::Values;
use hashbrown::HashMap;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) enum Store {
    Flat(Slab),
    Rows(HashMap<u64, Row>),
}

impl Store {
    /// The part of a table whose chunks are `here`; a table without a size starts empty.
    pub(crate) fn new(schema: &TableSchema, here: impl Fn(usize) -> bool) -> Self {
        match Shape::new(schema) {
            Some(shape) => Self::Flat(Slab::new(shape, schema.init, here)),
            None => Self::Rows(HashMap::new()),
        }
    }

    /// Changes `rows` by `values`, which were checked against the schema.
    pub(crate) fn apply(&mut self, schema: &TableSchema, rows: &[u64], values: &Values) {
        match (self, values) {
            (Self::Flat(slab), Values::Dense { numbers, .. }) => slab.add(rows, numbers),
            (Self::Rows(store), values) => {
                for (i, &row) in rows.iter().enumerate() {
                    let row = store.entry(row).or_insert_with(|| first(schema, row));
                    schema.kind.apply(row, values.row(i));
                }
            }
            _ => unreachable!("values are checked against the table's kind"),
        }
    }

    /// Sets those of the rows of a checkpoint that are here, for which `here` is asked where there are no chunks.
    pub(crate) fn restore(
        &mut self,
        schema: &TableSchema,
        part: &Part,
        here: impl Fn(u64) -> bool,
    ) -> Result<(), PartError> {
        for (i, row) in part.rows(schema, &schema.kind)?.into_iter().enumerate() {
            match (&mut *self, part.values.row(i)) {
                (Self::Flat(slab), RowRef::Dense(numbers)) if !slab.chunks[slab.shape.chunk_of(row)].is_empty() => {
                    slab.row_mut(row).copy_from_slice(numbers);
                }
                (Self::Rows(store), value) if here(row) => {
                    store.insert(row, value.to_row());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Calls `f` with a row, if anyone has written it.
    pub(crate) fn with_row<R>(&self, row: u64, f: impl FnOnce(Option<RowRef<'_>>) -> R) -> R {
        match self {
            Self::Flat(slab) => f(Some(RowRef::Dense(slab.row(row)))),
            Self::Rows(store) => match store.get(&row) {
                Some(row) => row.with(|row| f(Some(row))),
                None => f(None),
            },
        }
    }

    /// The values of `rows`, dense ones in memory from `recycler`.
    pub(crate) fn gather(&self, schema: &TableSchema, rows: &[u64], recycler: &mut Recycler<f32>) -> Values {
        match self {
            Self::Flat(slab) => {
                let mut shared = recycler.take(rows.len() * slab.shape.width);
                let numbers = Arc::get_mut(&mut shared).expect("a free buffer");
                numbers.clear();
                slab.gather(rows, numbers);
                recycler.keep(&shared);
                Values::Dense { width: slab.shape.width as u32, numbers: shared.into() }
            }
            Self::Rows(store) => {
                let absent: Vec<Row> =
                    rows.iter().filter(|row| !store.contains_key(*row)).map(|&row| first(schema, row)).collect();
                let mut absent = absent.iter();
                let row = |row| store.get(row).unwrap_or_else(|| absent.next().expect("one for each absent row"));
                Values::collect(&schema.kind, rows.iter().map(row))
            }
        }
    }
}

/// What a row holds before anyone has written it.
pub(crate) fn first(schema: &TableSchema, row: u64) -> Row {
    match schema.kind {
        RowKind::Dense { width } => {
            let mut numbers = vec![0.0; width as usize];
            schema.init.fill(row, &mut numbers);
            Row::Dense(numbers)
        }
        _ => schema.kind.zero(),
    }
}

/// Whether `values` are one row of the table's kind for each of `rows`, all of which may exist.
pub(crate) fn fits(schema: &TableSchema, rows: &[u64], values: &Values) -> bool {
    values.check(&schema.kind, rows.len()) && rows.iter().all(|&row| schema.rows.is_none_or(|rows| row < rows))
}
