//! A table as it is exactly after a clock, kept while newer updates change it: copy on write.
//!
//! When updates of clock `t` begin to be applied, some of the clocks before may not have arrived. So from the first
//! newer update of a row it is kept as it was; older updates that come later are applied to what is kept and to the live
//! row alike. Once every client is at `t` the content is what was kept, and the live row where nothing was. It is taken
//! out part by part, and what has been taken out is no longer kept.

mod kept;

use crate::array::Array;
use crate::ids::{Clock, TableId};
use crate::row::{Row, RowKind, RowRef};
use crate::schema::TableSchema;
use crate::slab::{Slab, add};
use crate::store::{Store, first};
use crate::stored::Stored;
use crate::values::Values;
use hashbrown::{HashMap, HashSet};
pub(crate) use kept::Kept;
use kept::group_shift;
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
const WAIT_SHARE: f64 = 0.25;

/// Where more than this share of a table is kept, what is left is taken out in haste.
const HASTE_SHARE: f64 = 0.375;

/// One table of a checkpoint that is being taken.
#[derive(Debug)]
pub(crate) struct TableSnapshot {
    clock: Clock,
    /// What newer updates have changed, as it was.
    kept: KeptRows,
    /// The same of what a stored procedure keeps beside the rows.
    kept_state: Option<Kept>,
    /// The state of the rows that were taken out last.
    waiting: Option<Part>,
    /// Rows of a table without chunks that newer updates have made.
    unborn: HashSet<u64>,
    /// Chunks that a worker held when the checkpoint began: they belong to its own state.
    apart: Vec<usize>,
    /// How many numbers of a flat table were here when the checkpoint began.
    here: usize,
    left: Left,
}

/// Rows of a table as they were.
#[derive(Debug)]
enum KeptRows {
    Flat(Kept),
    Rows(HashMap<u64, Row>),
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
        let (kept, left, shift, here) = match store {
            Store::Flat(slab) => {
                let shift = group_shift(slab.shape.width);
                // Of what is here: other shards have the rest.
                let here = slab.chunks.iter().map(Vec::len).sum();
                (KeptRows::Flat(Kept::new(slab.shape, shift)), Left::Chunks { chunk: 0, row: 0 }, shift, here)
            }
            Store::Rows(_) => (KeptRows::Rows(HashMap::new()), Left::AllRows, 0, 0),
        };
        // A procedure without any state has nothing to be kept.
        let state = stored.map(|stored| stored.state().shape).filter(|shape| shape.width > 0);
        let kept_state = state.map(|shape| Kept::new(shape, shift));
        Self { clock, kept, kept_state, waiting: None, unborn: HashSet::new(), apart, here, left }
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
            match (stored, &mut self.kept) {
                (Some(stored), KeptRows::Flat(kept)) => stored.apply_kept(kept, self.kept_state.as_mut(), update),
                _ => self.apply_older(schema, update.rows, update.values),
            }
            return;
        }
        match store {
            Store::Flat(slab) => {
                for (chunk, run) in slab.shape.runs(update.rows) {
                    if !self.is_left(chunk) {
                        continue;
                    }
                    let rows = &update.rows[run];
                    self.kept.flat_mut().keep_rows(slab, chunk, rows);
                    if let (Some(kept), Some(stored)) = (&mut self.kept_state, stored) {
                        kept.keep_rows(stored.state(), chunk, rows);
                    }
                }
            }
            Store::Rows(live) => update.rows.iter().for_each(|&row| self.keep_row(live, row)),
        }
    }

    /// Whether a chunk has not been taken out, and is to be.
    fn is_left(&self, chunk: usize) -> bool {
        let Left::Chunks { chunk: next, .. } = self.left else { unreachable!("the table is flat") };
        chunk >= next && self.apart.binary_search(&chunk).is_err()
    }

    /// Whether changing these rows of a flat table would keep too much of it at once: it can be done later, because
    /// every part that is taken out leaves less to be kept.
    pub(crate) fn must_wait_for_rows(&self, live: &Slab, rows: &[u64]) -> bool {
        let KeptRows::Flat(kept) = &self.kept else { unreachable!("the table is flat") };
        let mut last = None;
        let mut is_new = |row: &&u64| {
            let is_next = last.replace(kept.group_of(**row)) != last;
            is_next && self.is_left(live.shape.chunk_of(**row)) && !kept.has(**row)
        };
        // Which of them are kept is looked at only where it matters. Of one or two chunks it never does.
        live.chunks.len() > 2
            && self.is_more(WAIT_SHARE, rows.len() * kept.stride())
            && self.is_more(WAIT_SHARE, rows.iter().filter(&mut is_new).count() * kept.stride())
    }

    /// The same of whole chunks.
    pub(crate) fn must_wait_for_chunks(&self, live: &Slab, chunks: &[usize]) -> bool {
        let KeptRows::Flat(kept) = &self.kept else { unreachable!("the table is flat") };
        let is_new = |chunk: &&usize| self.is_left(**chunk) && kept.whole(**chunk).is_none();
        live.chunks.len() > 2
            && self.is_more(WAIT_SHARE, chunks.iter().filter(is_new).map(|&chunk| live.chunks[chunk].len()).sum())
    }

    /// Whether so much is kept that whoever takes it out should make haste.
    pub(crate) fn is_large(&self, live: &Store) -> bool {
        match (&self.kept, live) {
            (KeptRows::Rows(kept), Store::Rows(live)) => kept.len() as f64 > HASTE_SHARE * live.len() as f64,
            (KeptRows::Flat(_), Store::Flat(_)) => self.is_more(HASTE_SHARE, 1),
            _ => unreachable!("both are of one table"),
        }
    }

    /// Whether more than a share of the table is kept when so many numbers are kept as well, if there are any.
    fn is_more(&self, share: f64, needed: usize) -> bool {
        let KeptRows::Flat(kept) = &self.kept else { unreachable!("the table is flat") };
        needed > 0 && (needed + kept.room()) as f64 > share * self.here as f64
    }

    /// Must be called before a chunk of `live` is lent to someone who changes it.
    pub(crate) fn keep_chunk(&mut self, live: &Slab, chunk: usize) {
        if self.is_left(chunk) {
            self.kept.flat_mut().keep_chunk(live, chunk);
        }
    }

    fn keep_row(&mut self, live: &HashMap<u64, Row>, row: u64) {
        let KeptRows::Rows(kept) = &mut self.kept else { unreachable!("the table has no chunks") };
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
        for (i, row) in rows.iter().enumerate() {
            match (&mut self.kept, values.row(i)) {
                (KeptRows::Flat(kept), RowRef::Dense(update)) => {
                    kept.row_mut(*row).into_iter().for_each(|row| add(row, update));
                }
                (KeptRows::Flat(_), _) => unreachable!("values are checked against the table's kind"),
                (KeptRows::Rows(kept), update) => {
                    if self.unborn.remove(row) {
                        kept.insert(*row, first(schema, *row));
                    }
                    kept.get_mut(row).into_iter().for_each(|row| schema.kind.apply(row, update));
                }
            }
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
            (KeptRows::Flat(kept), Store::Flat(live)) => {
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
            (KeptRows::Rows(kept), Store::Rows(live)) => {
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

impl KeptRows {
    fn flat_mut(&mut self) -> &mut Kept {
        let Self::Flat(kept) = self else { unreachable!("the table is flat") };
        kept
    }
}

fn take_chunks(
    kept: &mut Kept,
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
        if *row == 0 && kept.whole(*chunk).is_some() {
            if count == 0 {
                numbers = kept.forget(*chunk).unwrap_or_default();
                let first = shape.first_row(*chunk);
                spans = vec![first, first + (numbers.len() / shape.width) as u64];
                *chunk += 1;
            }
            break;
        }
        numbers.reserve_exact(if count == 0 { most * shape.width } else { 0 });
        let here = kept.whole(*chunk).unwrap_or(&live.chunks[*chunk]);
        let here = if apart.binary_search(chunk).is_ok() { &[] } else { here };
        let rows = here.len() / shape.width;
        let some = (rows - *row).min(most - count);
        if some > 0 {
            let first = shape.first_row(*chunk) + *row as u64;
            match spans.last_mut() {
                Some(end) if *end == first => *end += some as u64,
                _ => spans.extend([first, first + some as u64]),
            }
            let taken = numbers.len();
            numbers.extend_from_slice(&here[*row * shape.width..(*row + some) * shape.width]);
            kept.put_over(*chunk, *row..*row + some, &mut numbers[taken..]);
            count += some;
            *row += some;
        }
        if *row == rows {
            kept.forget(*chunk);
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
    use crate::procedure::AdaGrad;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;
    use std::sync::Arc;

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

    /// What may happen to a table while a checkpoint of it is taken.
    #[derive(Debug, Clone)]
    enum Step {
        Update(Vec<u64>),
        /// Someone borrows a chunk and changes all of it.
        Lease(usize),
        /// So many bytes of rows are taken out.
        Part(usize),
    }

    fn some_rows() -> impl Strategy<Value = Vec<u64>> {
        vec(0..1u64 << 20, 1..40)
    }

    fn step() -> impl Strategy<Value = Step> {
        let lease = any::<usize>().prop_map(Step::Lease);
        prop_oneof![4 => some_rows().prop_map(Step::Update), 1 => lease, 2 => (1..2000usize).prop_map(Step::Part)]
    }

    /// A flat table and what a procedure keeps beside it.
    struct Table {
        schema: TableSchema,
        store: Store,
        stored: Option<Stored>,
    }

    impl Table {
        fn new(schema: &TableSchema) -> Self {
            let store = Store::new(schema, |_| true);
            let Store::Flat(slab) = &store else { unreachable!("the table is flat") };
            let stored = Stored::new(schema, slab, 1);
            Self { schema: schema.clone(), store, stored }
        }

        fn slab(&mut self) -> &mut Slab {
            let Store::Flat(slab) = &mut self.store else { unreachable!("the table is flat") };
            slab
        }

        fn apply(&mut self, update: &Update<'_>) {
            match (&mut self.stored, &mut self.store, update.values) {
                (Some(stored), Store::Flat(slab), Values::Dense { numbers, .. }) => {
                    stored.apply(slab, update.rows, numbers, update.slots, update.made);
                }
                (_, store, values) => store.apply(&self.schema, update.rows, values),
            }
        }

        /// What a checkpoint of it should have: all numbers of the rows, and of their state.
        fn content(&mut self) -> [Vec<f32>; 2] {
            let state = self.stored.as_ref().map_or(Vec::new(), |stored| stored.state().chunks.concat());
            [self.slab().chunks.concat(), state]
        }
    }

    /// A table, and a checkpoint of it that begins now.
    fn begun(rows: u64, width: u32, chunk_rows: u64) -> (Table, TableSnapshot) {
        let mut schema = TableSchema::dense("t", rows, width);
        schema.chunk_rows = Some(chunk_rows);
        let table = Table::new(&schema);
        let snapshot = TableSnapshot::new(Clock(1), &table.store, None, Vec::new());
        (table, snapshot)
    }

    /// Adds one to every number of some rows, after the clock of the checkpoint.
    fn change(table: &mut Table, snapshot: &mut TableSnapshot, rows: &[u64]) {
        let width = table.slab().shape.width;
        let values = Values::dense(width as u32, vec![1.0; rows.len() * width]);
        let update = Update { made: Clock(1), rows, values: &values, slots: &[] };
        snapshot.before_update(&table.schema, &table.store, None, &update);
        table.apply(&update);
    }

    fn room(snapshot: &TableSnapshot) -> usize {
        let KeptRows::Flat(kept) = &snapshot.kept else { unreachable!("the table is flat") };
        kept.room()
    }

    #[test]
    fn chunks_of_many_rows_and_of_long_ones_are_kept_by_row() {
        // More groups than two bytes count; rows longer than a block.
        for (rows, width) in [(1 << 20, 1), (1 << 17, 10), (3, 3000)] {
            let (mut table, mut snapshot) = begun(rows, width, rows);
            change(&mut table, &mut snapshot, &[0, rows - 1]);
            change(&mut table, &mut snapshot, &[rows - 1]);
            let all = (rows * u64::from(width)) as usize;
            assert!(room(&snapshot) < all, "{rows} rows of {width}: {} of {all}", room(&snapshot));
            let taken = content(&mut snapshot, &table.schema, &table.store);
            assert_eq!(taken.len() as u64, rows);
            let zero = Row::Dense(vec![0.0; width as usize]);
            assert!(taken.iter().enumerate().all(|(i, (row, value))| *row == i as u64 && *value == zero));
        }
    }

    #[test]
    fn what_is_kept_of_small_chunks_is_no_larger_than_they_are() {
        let (mut table, mut snapshot) = begun(400, 10, 1);
        change(&mut table, &mut snapshot, &Vec::from_iter(0..400));
        // The numbers, and for every row where they are.
        assert_eq!(room(&snapshot), 400 * (10 + 1));
    }

    #[test]
    fn how_much_is_much_goes_by_the_part_of_the_table_that_is_here() {
        let mut schema = TableSchema::dense("t", 6400, 16);
        schema.chunk_rows = Some(64);
        // Every fourth chunk, as on one of four shards.
        let store = Store::new(&schema, |chunk| chunk % 4 == 0);
        let mut table = Table { stored: None, store, schema };
        let mut snapshot = TableSnapshot::new(Clock(1), &table.store, None, Vec::new());
        let rows = Vec::from_iter((0..6400).filter(|row| row / 64 % 4 == 0));
        change(&mut table, &mut snapshot, &rows[..rows.len() / 4]);
        assert!(!snapshot.is_large(&table.store), "{} of {}", room(&snapshot), rows.len() * 16);
        change(&mut table, &mut snapshot, &rows[..rows.len() / 5 * 2]);
        assert!(snapshot.is_large(&table.store), "{} of {}", room(&snapshot), rows.len() * 16);
    }

    proptest! {
        #[test]
        fn a_flat_table_is_taken_out_as_older_updates_alone_would_have_made_it(
            (width, chunk_rows, rows) in (select(vec![1u32, 3, 10, 40]), select(vec![1u64, 5, 64]), 1u64..300),
            has_procedure: bool,
            early in vec(some_rows(), 0..3),
            mixed in vec((any::<bool>(), some_rows()), 0..6),
            steps in vec(step(), 0..20),
        ) {
            let mut schema = TableSchema::dense("t", rows, width);
            schema.chunk_rows = Some(chunk_rows);
            schema.procedure = has_procedure.then(|| Arc::new(AdaGrad { rate: 0.5 }) as _);
            let (mut live, mut older) = (Table::new(&schema), Table::new(&schema));
            let mut snapshot = None;
            let mut taken = older.content().map(|numbers| vec![f32::NAN; numbers.len()]);
            // Updates of the clocks before that nothing is kept of, then such ones among newer ones, then the rest.
            let early = early.into_iter().map(|rows| (0, Step::Update(rows)));
            let mixed = mixed.into_iter().map(|(is_newer, rows)| (u32::from(is_newer), Step::Update(rows)));
            let last = steps.into_iter().chain(std::iter::repeat_n(Step::Part(1 << 20), 600)).map(|step| (1, step));
            let starts = early.len();
            for (i, (made, step)) in early.chain(mixed).chain(last).enumerate() {
                if i == starts {
                    snapshot = Some(TableSnapshot::new(Clock(1), &live.store, live.stored.as_ref(), Vec::new()));
                }
                match (step, &mut snapshot) {
                    (Step::Update(rows), snapshot) => {
                        let rows: Vec<u64> = rows.iter().map(|row| row % schema.rows.expect("it has a size")).collect();
                        let numbers = (0..rows.len() * width as usize).map(|at| (at + 1000 * i) as f32).collect();
                        let values = Values::dense(width, numbers);
                        let update = Update { made: Clock(made), rows: &rows, values: &values, slots: &[] };
                        if let Some(snapshot) = snapshot {
                            snapshot.before_update(&schema, &live.store, live.stored.as_ref(), &update);
                        }
                        live.apply(&update);
                        if made == 0 {
                            older.apply(&update);
                        }
                    }
                    // A table with a procedure is not leased.
                    (Step::Lease(chunk), Some(snapshot)) if !has_procedure => {
                        let chunk = chunk % live.slab().shape.chunks();
                        snapshot.keep_chunk(live.slab(), chunk);
                        live.slab().chunks[chunk].fill(-1.0);
                    }
                    (Step::Part(bytes_max), Some(snapshot)) => {
                        let stored = live.stored.as_ref();
                        let Some(part) = snapshot.part(TableId(0), &schema, (&live.store, stored), bytes_max) else {
                            continue;
                        };
                        let Values::Dense { width, numbers } = &part.values else { panic!("{part:?}") };
                        let to = &mut taken[usize::from(part.layer == Layer::State)];
                        let mut numbers = &numbers[..];
                        for span in part.spans.chunks(2) {
                            let span = span[0] as usize * *width as usize..span[1] as usize * *width as usize;
                            let (these, others) = numbers.split_at(span.len());
                            prop_assert!(to[span.clone()].iter().all(|x| x.is_nan()), "taken out twice");
                            to[span].copy_from_slice(these);
                            numbers = others;
                        }
                    }
                    _ => {}
                }
            }
            prop_assert_eq!(taken, older.content());
            let snapshot = snapshot.expect("it was begun");
            let KeptRows::Flat(kept) = &snapshot.kept else { unreachable!("the table is flat") };
            prop_assert_eq!((kept.room(), snapshot.kept_state.map_or(0, |kept| kept.room())), (0, 0));
        }
    }
}
