//! A table as it is exactly after a clock, kept while newer updates change it: copy on write.
//!
//! When updates of clock `t` begin to be applied, some of the clocks before may not have arrived. So from the first
//! newer update of a unit (a chunk of a flat table, a row of another) the unit is kept as it was; older updates that
//! come later are applied to what is kept and to the live unit alike. Once every client is at `t` the content is what
//! was kept, and the live unit where nothing was. It is taken out part by part, and a unit that has been taken out is
//! no longer kept.

use crate::array::Array;
use crate::ids::{Clock, TableId};
use crate::row::{Row, RowKind};
use crate::schema::TableSchema;
use crate::slab::Slab;
use crate::store::Store;
use crate::stored::Stored;
use crate::values::Values;
use hashbrown::{HashMap, HashSet};
use thiserror::Error;

/// Some rows of a checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The table.
    pub table: TableId,
    /// The clock of the checkpoint: every update of an earlier clock is in the rows, and no other.
    pub clock: Clock,
    /// What of the rows.
    pub layer: Layer,
    /// The rows, as pairs of a first row and the one after the last.
    pub spans: Array<u64>,
    /// Their values.
    pub values: Values,
}

/// What of a row a part of a checkpoint has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// The row itself.
    Rows,
    /// The numbers that a stored procedure keeps beside it.
    State,
}

/// Updates of some rows, as a shard applies them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Update<'a> {
    /// The clock in which they were made.
    pub(crate) made: Clock,
    pub(crate) rows: &'a [u64],
    pub(crate) values: &'a Values,
    /// What a stored procedure remembers of the versions that they were computed on.
    pub(crate) slots: &'a [u32],
}

/// Rows of a checkpoint that the tables of the job cannot take.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum PartError {
    #[error("it names table {table}, and there are {tables}")]
    NoSuchTable { table: u32, tables: usize },
    #[error("its rows do not fit table '{table}'")]
    Misfit { table: String },
}

impl Part {
    /// The rows, if they are of `schema` and the values are of `kind` and fit them.
    pub(crate) fn rows(&self, schema: &TableSchema, kind: &RowKind) -> Result<Vec<u64>, PartError> {
        let misfit = || PartError::Misfit { table: schema.name.clone() };
        let most = self.values.len() as u64;
        let mut rows = Vec::new();
        for span in self.spans.chunks(2) {
            let &[first, end] = span else { return Err(misfit()) };
            let here = schema.rows.is_none_or(|rows| end <= rows);
            // Counted before anything is allocated for them.
            if !here || end < first || end - first > most || rows.len() as u64 + (end - first) > most {
                return Err(misfit());
            }
            rows.extend(first..end);
        }
        if self.values.check(kind, rows.len()) { Ok(rows) } else { Err(misfit()) }
    }
}

/// Where a writer can wait, it does while more than this share of a flat table would be kept beside it.
const KEPT_SHARE: f64 = 0.375;

/// One table of a checkpoint that is being taken.
#[derive(Debug)]
pub(crate) struct TableSnapshot {
    clock: Clock,
    /// Units that newer updates have changed, as they were.
    kept: Store,
    /// The same of what a stored procedure keeps beside the rows.
    kept_state: Option<Slab>,
    /// The state of the rows that were taken out last.
    waiting: Option<Part>,
    /// Rows of a table without chunks that newer updates have made.
    unborn: HashSet<u64>,
    /// Chunks that a worker held when the checkpoint began: they belong to its own state.
    apart: Vec<usize>,
    left: Left,
}

/// What has not been taken out.
#[derive(Debug)]
enum Left {
    /// From this row of this chunk on.
    Chunks { chunk: usize, row: usize },
    /// Rows that have an unborn or kept state may still be added: nothing has been taken out.
    AllRows,
    /// These rows from the `next`th on, ascending.
    Rows { rows: Vec<u64>, next: usize },
}

impl TableSnapshot {
    /// Begins to keep what newer updates than those of the clocks before `clock` change.
    pub(crate) fn new(clock: Clock, store: &Store, stored: Option<&Stored>, apart: Vec<usize>) -> Self {
        let (kept, left) = match store {
            Store::Flat(slab) => (Store::Flat(slab.empty()), Left::Chunks { chunk: 0, row: 0 }),
            Store::Rows(_) => (Store::Rows(HashMap::new()), Left::AllRows),
        };
        // A procedure without any state has nothing to be kept.
        let kept_state = stored.map(Stored::state).filter(|state| state.shape.width > 0).map(Slab::empty);
        Self { clock, kept, kept_state, waiting: None, unborn: HashSet::new(), apart, left }
    }

    /// Must be called before `update` is applied to `store` and to what `stored` keeps beside it.
    pub(crate) fn before_update(
        &mut self,
        schema: &TableSchema,
        store: &Store,
        stored: Option<&Stored>,
        update: &Update<'_>,
    ) {
        if update.made < self.clock {
            match (stored, &mut self.kept, &mut self.kept_state) {
                (Some(stored), Store::Flat(kept), Some(state)) => stored.apply_kept(kept, state, update),
                (Some(stored), Store::Flat(kept), None) => {
                    let mut nothing = stored.state().empty();
                    stored.apply_kept(kept, &mut nothing, update);
                }
                _ => self.apply_older(schema, update.rows, update.values),
            }
            return;
        }
        match store {
            Store::Flat(slab) => {
                let state = stored.map(Stored::state);
                slab.shape.runs(update.rows).for_each(|(chunk, _)| self.keep_chunk(slab, state, chunk));
            }
            Store::Rows(live) => update.rows.iter().for_each(|&row| self.keep_row(live, row)),
        }
    }

    /// Whether changing these chunks of a flat table would keep too much of it at once: it can be done later, because
    /// every part that is taken out leaves less to be kept.
    pub(crate) fn must_wait(&self, live: &Slab, chunks: impl Iterator<Item = usize>) -> bool {
        let (Left::Chunks { chunk: next, .. }, Store::Flat(kept)) = (&self.left, &self.kept) else { return false };
        let is_new = |chunk: &usize| chunk >= next && kept.chunks[*chunk].is_empty() && !self.apart.contains(chunk);
        let needed = chunks.filter(is_new).count();
        let here = kept.chunks[*next..].iter().filter(|chunk| !chunk.is_empty()).count();
        needed > 0 && (needed + here) as f64 > KEPT_SHARE * live.chunks.len() as f64 && live.chunks.len() > 2
    }

    /// Must be called before a chunk of `live` is changed by an update of the snapshot's clock or a newer one.
    pub(crate) fn keep_chunk(&mut self, live: &Slab, state: Option<&Slab>, chunk: usize) {
        let Left::Chunks { chunk: next, .. } = self.left else { unreachable!("the table is flat") };
        let Store::Flat(kept) = &mut self.kept else { unreachable!("the table is flat") };
        if chunk >= next && !self.apart.contains(&chunk) {
            kept.copy_chunk(live, chunk);
            if let (Some(kept), Some(state)) = (&mut self.kept_state, state) {
                kept.copy_chunk(state, chunk);
            }
        }
    }

    fn keep_row(&mut self, live: &HashMap<u64, Row>, row: u64) {
        let Store::Rows(kept) = &mut self.kept else { unreachable!("the table has no chunks") };
        if kept.contains_key(&row) || self.unborn.contains(&row) {
            return;
        }
        match (&self.left, live.get(&row)) {
            (Left::AllRows, None) => {
                self.unborn.insert(row);
            }
            (Left::AllRows, Some(value)) => {
                kept.insert(row, value.clone());
            }
            (Left::Rows { rows, next }, Some(value)) if rows[*next..].binary_search(&row).is_ok() => {
                kept.insert(row, value.clone());
            }
            _ => {}
        }
    }

    /// Applies an update that belongs to the checkpoint to those of its rows that are kept.
    fn apply_older(&mut self, schema: &TableSchema, rows: &[u64], values: &Values) {
        let unborn = &mut self.unborn;
        let kept = &self.kept;
        let mut is_kept = |row: &u64| match kept {
            Store::Flat(slab) => !slab.chunks[slab.shape.chunk_of(*row)].is_empty(),
            Store::Rows(kept) => unborn.remove(row) || kept.contains_key(row),
        };
        let at: Vec<usize> = (0..rows.len()).filter(|&i| is_kept(&rows[i])).collect();
        if at.len() == rows.len() {
            self.kept.apply(schema, rows, values);
        } else if !at.is_empty() {
            let some: Vec<Row> = at.iter().map(|&i| values.row(i).to_row()).collect();
            let rows: Vec<u64> = at.iter().map(|&i| rows[i]).collect();
            self.kept.apply(schema, &rows, &Values::collect(&schema.kind, some.iter()));
        }
    }

    /// Takes out the next rows, about `bytes_max` of them, or nothing when all have been. Every update of an earlier
    /// clock must have been applied.
    pub(crate) fn part(
        &mut self,
        table: TableId,
        schema: &TableSchema,
        (live, stored): (&Store, Option<&Stored>),
        bytes_max: usize,
    ) -> Option<Part> {
        if let Some(waiting) = self.waiting.take() {
            return Some(waiting);
        }
        let clock = self.clock;
        let part = |layer, spans: Array<u64>, values| Part { table, clock, layer, spans, values };
        let (spans, values) = match (&mut self.kept, live) {
            (Store::Flat(kept), Store::Flat(live)) => {
                let Left::Chunks { chunk, row } = &mut self.left else { unreachable!("the table is flat") };
                let (mut also_chunk, mut also_row) = (*chunk, *row);
                let (spans, values) = take_chunks(kept, live, &self.apart, (chunk, row), bytes_max);
                if let (Some(kept), Some(state)) = (&mut self.kept_state, stored.map(Stored::state)) {
                    // The same rows: as many bytes as they take here.
                    let rows: u64 = spans.chunks(2).map(|span| span[1] - span[0]).sum();
                    let bytes = rows as usize * 4 * state.shape.width;
                    let at = (&mut also_chunk, &mut also_row);
                    let (spans, values) = take_chunks(kept, state, &self.apart, at, bytes);
                    self.waiting = (!spans.is_empty()).then(|| part(Layer::State, spans.into(), values));
                }
                (spans, values)
            }
            (Store::Rows(kept), Store::Rows(live)) => {
                if matches!(self.left, Left::AllRows) {
                    let mut rows: Vec<u64> = live.keys().copied().filter(|row| !self.unborn.contains(row)).collect();
                    rows.sort_unstable();
                    self.left = Left::Rows { rows, next: 0 };
                }
                let Left::Rows { rows, next } = &mut self.left else { unreachable!("just made") };
                take_rows(schema, kept, live, (rows, next), bytes_max)
            }
            _ => unreachable!("both are of one table"),
        };
        (!spans.is_empty()).then(|| part(Layer::Rows, spans.into(), values))
    }
}

fn take_chunks(
    kept: &mut Slab,
    live: &Slab,
    apart: &[usize],
    (chunk, row): (&mut usize, &mut usize),
    bytes_max: usize,
) -> (Vec<u64>, Values) {
    let shape = live.shape;
    let most = (bytes_max / (4 * shape.width)).max(1);
    let (mut spans, mut numbers, mut count) = (Vec::new(), Vec::new(), 0);
    while *chunk < shape.chunks() && count < most {
        // What is kept is nobody else's: it is handed over instead of copied, and by itself.
        if *row == 0 && !kept.chunks[*chunk].is_empty() {
            if count == 0 {
                numbers = std::mem::take(&mut kept.chunks[*chunk]);
                let first = shape.first_row(*chunk);
                spans = vec![first, first + (numbers.len() / shape.width) as u64];
                *chunk += 1;
            }
            break;
        }
        numbers.reserve_exact(if count == 0 { most * shape.width } else { 0 });
        let here = if kept.chunks[*chunk].is_empty() { &live.chunks[*chunk] } else { &kept.chunks[*chunk] };
        let here: &[f32] = if apart.contains(chunk) { &[] } else { here };
        let rows = here.len() / shape.width;
        let some = (rows - *row).min(most - count);
        if some > 0 {
            let first = shape.first_row(*chunk) + *row as u64;
            match spans.last_mut() {
                Some(end) if *end == first => *end += some as u64,
                _ => spans.extend([first, first + some as u64]),
            }
            numbers.extend_from_slice(&here[*row * shape.width..(*row + some) * shape.width]);
            count += some;
            *row += some;
        }
        if *row == rows {
            kept.chunks[*chunk] = Vec::new();
            (*chunk, *row) = (*chunk + 1, 0);
        }
    }
    (spans, Values::dense(shape.width as u32, numbers))
}

fn take_rows(
    schema: &TableSchema,
    kept: &mut HashMap<u64, Row>,
    live: &HashMap<u64, Row>,
    (rows, next): (&[u64], &mut usize),
    bytes_max: usize,
) -> (Vec<u64>, Values) {
    let (mut spans, mut taken, mut bytes) = (Vec::new(), Vec::new(), 0);
    while let Some(row) = rows.get(*next).filter(|_| bytes < bytes_max) {
        let value = kept.remove(row).unwrap_or_else(|| live[row].clone());
        bytes += value.bytes() + 16;
        spans.extend([*row, *row + 1]);
        taken.push(value);
        *next += 1;
    }
    (spans, Values::collect(&schema.kind, taken.iter()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::RowKind;

    fn part(spans: &[u64], values: Values) -> Part {
        Part { table: TableId(0), clock: Clock(3), layer: Layer::Rows, spans: spans.to_vec().into(), values }
    }

    #[test]
    fn rows_that_do_not_fit_the_table_are_refused_before_anything_is_allocated_for_them() {
        let dense = TableSchema::dense("t", 10, 2);
        let two = || Values::dense(2, vec![0.0; 4]);
        assert_eq!(part(&[1, 2, 9, 10], two()).rows(&dense, &dense.kind), Ok(vec![1, 9]));
        for spans in [&[1, 2][..], &[1, 2, 9], &[9, 11], &[2, 1, 0, 2], &[0, u64::MAX], &[u64::MAX, 1], &[]] {
            assert!(part(spans, two()).rows(&dense, &dense.kind).is_err(), "{spans:?}");
        }
        let keyed = TableSchema::keyed("t", RowKind::Counts);
        assert!(part(&[0, u64::MAX], Values::collect(&RowKind::Counts, [].iter())).rows(&keyed, &keyed.kind).is_err());
    }

    /// Takes a table out in small parts.
    fn content(snapshot: &mut TableSnapshot, schema: &TableSchema, store: &Store) -> Vec<(u64, Row)> {
        let parts = std::iter::from_fn(|| snapshot.part(TableId(0), schema, (store, None), 8));
        let rows = |part: Part| {
            let rows = part.rows(schema, &schema.kind).expect("its own table");
            rows.into_iter().enumerate().map(|(i, row)| (row, part.values.row(i).to_row())).collect::<Vec<_>>()
        };
        parts.flat_map(rows).collect()
    }

    #[test]
    fn newer_updates_are_left_out_and_late_older_ones_are_not() {
        let update = |store: &mut Store, snapshot: &mut TableSnapshot, schema: &TableSchema, made, row, number| {
            let values = Values::collect(&schema.kind, [Row::Counts(vec![(0, number)])].iter());
            let update = Update { made: Clock(made), rows: &[row], values: &values, slots: &[] };
            snapshot.before_update(schema, store, None, &update);
            store.apply(schema, &[row], &values);
        };
        let schema = TableSchema::keyed("t", RowKind::Counts);
        let mut store = Store::new(&schema, |_| true);
        let mut early = TableSnapshot::new(Clock(0), &store, None, Vec::new());
        update(&mut store, &mut early, &schema, 0, 7, 1);
        assert!(content(&mut early, &schema, &store).is_empty(), "nobody had written anything");
        let mut snapshot = TableSnapshot::new(Clock(1), &store, None, Vec::new());
        for (made, row, number) in [(1, 7, 10), (1, 8, 10), (0, 7, 2), (0, 8, 2), (1, 9, 10), (0, 6, 3)] {
            update(&mut store, &mut snapshot, &schema, made, row, number);
        }
        let first = snapshot.part(TableId(0), &schema, (&store, None), 1).expect("three rows");
        assert_eq!((&*first.spans, first.values.row(0).to_row()), (&[6, 7][..], Row::Counts(vec![(0, 3)])));
        for row in 6..9 {
            update(&mut store, &mut snapshot, &schema, 1, row, 100);
        }
        let rest = content(&mut snapshot, &schema, &store);
        assert_eq!(rest, [(7, Row::Counts(vec![(0, 3)])), (8, Row::Counts(vec![(0, 2)]))]);
    }
}
