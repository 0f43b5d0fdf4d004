//! The update buffer: what a worker has added to a table and not yet sent, coalesced row by row.

use crate::ids::ShardId;
use crate::recycler::Recycler;
use crate::row::{Row, RowKind, RowRef};
use crate::row_set::{push_bits, show_each};
use crate::schema::TableSchema;
use crate::slab::{self, Shape};
use crate::tagged::Tagged;
use crate::values::Values;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Memory beyond this is given back instead of being kept for the next updates that are taken out.
const RECYCLED_NUMBERS_MAX: usize = (16 << 20) / 4;

/// The updates of one table, made by one worker in one clock or by several coalesced.
#[derive(Debug)]
pub(crate) enum Delta {
    Flat {
        shape: Shape,
        /// Allocated where something was added; numbers are zero where nothing was.
        chunks: Vec<Option<DeltaChunk>>,
        /// The chunks that have a touched row.
        used: Vec<usize>,
        /// The memory of what was taken out.
        recycler: Recycler<f32>,
    },
    Rows(BTreeMap<u64, Row>),
    /// Of a table whose updates are kept apart by the version that they were computed on.
    Tagged(Shape, Tagged),
}

#[derive(Debug)]
pub(crate) struct DeltaChunk {
    numbers: Vec<f32>,
    touched: Vec<u64>,
    used: bool,
}

/// The part of a delta that goes to one shard: rows by ascending id.
pub(crate) struct ShardDelta {
    pub(crate) shard: ShardId,
    pub(crate) rows: Vec<u64>,
    pub(crate) versions: Option<Vec<u32>>,
    pub(crate) values: Values,
}

/// The part of tagged updates that goes to one shard, while it is put together.
#[derive(Default)]
struct TaggedPart {
    rows: Vec<u64>,
    versions: Vec<u32>,
    numbers: Vec<f32>,
}

impl Delta {
    pub(crate) fn new(schema: &TableSchema) -> Self {
        match Shape::new(schema) {
            Some(shape) if schema.snapshot_width().is_some() => Self::Tagged(shape, Tagged::new(shape.width)),
            _ => Self::coalesced(schema),
        }
    }

    /// A buffer that keeps nothing apart, whether the table has versions or not.
    pub(crate) fn coalesced(schema: &TableSchema) -> Self {
        match Shape::new(schema) {
            Some(shape) => Self::Flat {
                shape,
                chunks: (0..shape.chunks()).map(|_| None).collect(),
                used: Vec::new(),
                recycler: Recycler::new(RECYCLED_NUMBERS_MAX),
            },
            None => Self::Rows(BTreeMap::new()),
        }
    }

    /// Adds an update of one row, which is of the table's kind.
    pub(crate) fn add(&mut self, kind: &RowKind, row: u64, update: RowRef<'_>) {
        match (self, update) {
            (Self::Flat { shape, chunks, used, .. }, RowRef::Dense(update)) => {
                let (chunk, place) = shape.locate(row);
                let chunk = DeltaChunk::touch(chunks, used, shape, chunk, place);
                slab::add(&mut chunk.numbers[place * shape.width..][..shape.width], update);
            }
            (Self::Rows(rows), update) => match rows.get_mut(&row) {
                Some(earlier) => kind.coalesce(earlier, update),
                None => {
                    rows.insert(row, update.to_row());
                }
            },
            _ => unreachable!("updates are checked against the table's kind"),
        }
    }

    /// Adds an update of each of `rows`, which is of the table's kind.
    pub(crate) fn add_all(&mut self, kind: &RowKind, rows: &[u64], updates: &Values) {
        let (Self::Flat { shape, chunks, used, .. }, Values::Dense { numbers, .. }) = (&mut *self, updates) else {
            return rows.iter().enumerate().for_each(|(i, &row)| self.add(kind, row, updates.row(i)));
        };
        for (index, run) in shape.runs(rows) {
            let chunk = DeltaChunk::open(chunks, used, shape, index);
            let updates = &numbers[run.start * shape.width..run.end * shape.width];
            for (row, update) in rows[run].iter().zip(updates.chunks_exact(shape.width)) {
                let place = (row - shape.first_row(index)) as usize;
                chunk.touched[place / 64] |= 1 << (place % 64);
                slab::add(&mut chunk.numbers[place * shape.width..][..shape.width], update);
            }
        }
    }

    /// Adds an update of each of `rows`, tagged with its version.
    pub(crate) fn add_tagged(&mut self, rows: &[u64], versions: &[u32], updates: &Values) {
        let (Self::Tagged(shape, tagged), Values::Dense { numbers, .. }) = (self, updates) else {
            unreachable!("only dense updates are tagged");
        };
        for ((&row, &version), update) in rows.iter().zip(versions).zip(numbers.chunks_exact(shape.width)) {
            tagged.add(row, version, update);
        }
    }

    /// Adds what changed between `origin` and `numbers`, two versions of one chunk.
    pub(crate) fn add_difference(&mut self, chunk: usize, numbers: &[f32], origin: &[f32]) {
        let Self::Flat { shape, chunks, used, .. } = self else { unreachable!("only flat tables are leased") };
        let rows = numbers.chunks_exact(shape.width).zip(origin.chunks_exact(shape.width));
        for (place, (new, old)) in rows.enumerate() {
            if new != old {
                let chunk = DeltaChunk::touch(chunks, used, shape, chunk, place);
                let delta = &mut chunk.numbers[place * shape.width..][..shape.width];
                for ((delta, new), old) in delta.iter_mut().zip(new).zip(old) {
                    *delta += new - old;
                }
            }
        }
    }

    /// Adds the updates of the whole chunk to `numbers`.
    pub(crate) fn apply_chunk(&self, chunk: usize, numbers: &mut [f32]) {
        let Self::Flat { chunks, .. } = self else { unreachable!("only flat tables are leased") };
        if let Some(chunk) = chunks[chunk].as_ref().filter(|chunk| chunk.used) {
            slab::add(numbers, &chunk.numbers);
        }
    }

    /// The update of one row, if there is one; of several versions, one.
    pub(crate) fn with_row<R>(&self, row: u64, f: impl FnOnce(RowRef<'_>) -> R) -> Option<R> {
        match self {
            Self::Flat { shape, chunks, .. } => {
                let (chunk, place) = shape.locate(row);
                let chunk = chunks[chunk].as_ref()?;
                (chunk.touched[place / 64] & (1 << (place % 64)) != 0)
                    .then(|| f(RowRef::Dense(&chunk.numbers[place * shape.width..][..shape.width])))
            }
            Self::Rows(rows) => rows.get(&row).map(|row| row.with(f)),
            Self::Tagged(_, updates) => updates.any_of(row).map(|update| f(RowRef::Dense(update))),
        }
    }

    /// Shows the rows that have an update, from `from` on and then those before it, until `show` has seen enough.
    pub(crate) fn walk(&self, from: u64, show: &mut dyn FnMut(u64) -> ControlFlow<()>) {
        match self {
            Self::Flat { shape, chunks, used, .. } => {
                let mut used = used.clone();
                used.sort_unstable();
                let begin = if from < shape.rows { shape.chunk_of(from) } else { 0 };
                let from = if from < shape.rows { from } else { 0 };
                let first = used.partition_point(|&chunk| chunk < begin);
                // The chunk of `from` comes twice: at first for its end, and at last for its beginning.
                let again = used.get(first).filter(|&&chunk| chunk == begin);
                let order = used[first..].iter().chain(&used[..first]).chain(again);
                for (i, &index) in order.enumerate() {
                    let last = i == used.len();
                    let wanted = |row: u64| index != begin || (row < from) == last;
                    let chunk = chunks[index].as_ref().expect("a used chunk is allocated");
                    if chunk.walk(shape.first_row(index), &wanted, show).is_break() {
                        return;
                    }
                }
            }
            Self::Rows(rows) => {
                show_each(rows.range(from..).chain(rows.range(..from)).map(|(row, _)| *row), show);
            }
            Self::Tagged(..) => unreachable!("updates with versions are chosen by their versions"),
        }
    }

    /// Takes the updates of some rows out, which ascend and all have one, in parts by shard as [`Delta::take`] does.
    pub(crate) fn take_rows(
        &mut self,
        kind: &RowKind,
        rows: &[u64],
        shard_of: impl Fn(u64) -> ShardId,
    ) -> Vec<ShardDelta> {
        match self {
            Self::Flat { shape, chunks, recycler, .. } => {
                let mut parts = FlatParts::new(recycler, rows.len() * shape.width);
                for (index, run) in shape.runs(rows) {
                    let (taken, numbers) = parts.of(shard_of(index as u64));
                    let chunk = chunks[index].as_mut().expect("a row with an update is in a chunk");
                    for &row in &rows[run] {
                        let place = (row - shape.first_row(index)) as usize;
                        chunk.touched[place / 64] &= !(1 << (place % 64));
                        let update = &mut chunk.numbers[place * shape.width..][..shape.width];
                        numbers.extend_from_slice(update);
                        update.fill(0.0);
                        taken.push(row);
                    }
                }
                parts.finish(shape)
            }
            Self::Tagged(shape, updates) => Self::Tagged(*shape, updates.split(rows)).take(kind, shard_of),
            Self::Rows(all) => {
                let mut chosen: BTreeMap<u64, Row> = BTreeMap::new();
                for row in rows {
                    chosen.extend(all.remove_entry(row));
                }
                Self::Rows(chosen).take(kind, shard_of)
            }
        }
    }

    /// Forgets the updates of some rows.
    pub(crate) fn forget(&mut self, rows: &[u64]) {
        match self {
            Self::Flat { shape, chunks, .. } => {
                for (index, run) in shape.runs(rows) {
                    let Some(chunk) = &mut chunks[index] else { continue };
                    for row in &rows[run] {
                        let place = (row - shape.first_row(index)) as usize;
                        chunk.touched[place / 64] &= !(1 << (place % 64));
                        chunk.numbers[place * shape.width..][..shape.width].fill(0.0);
                    }
                }
            }
            Self::Rows(all) => rows.iter().for_each(|row| drop(all.remove(row))),
            Self::Tagged(..) => unreachable!("what is kept apart is taken, not forgotten"),
        }
    }

    /// Coalesces `other` into this one and leaves it empty.
    pub(crate) fn absorb(&mut self, kind: &RowKind, other: &mut Self) {
        for part in other.take(kind, |_| ShardId(0)) {
            if let Some(versions) = &part.versions {
                self.add_tagged(&part.rows, versions, &part.values);
                continue;
            }
            for (i, &row) in part.rows.iter().enumerate() {
                self.add(kind, row, part.values.row(i));
            }
        }
    }

    /// Takes everything out, in parts by shard, with rows ascending. `shard_of` maps a chunk of a flat
    /// table, or a row of any other, to its shard. The memory stays for the next clock.
    pub(crate) fn take(&mut self, kind: &RowKind, shard_of: impl Fn(u64) -> ShardId) -> Vec<ShardDelta> {
        match self {
            Self::Flat { shape, chunks, used, recycler } => {
                used.sort_unstable();
                let mut parts = FlatParts::new(recycler, used.len() * shape.chunk_rows as usize * shape.width);
                for index in used.drain(..) {
                    let part = parts.of(shard_of(index as u64));
                    let chunk = chunks[index].as_mut().expect("a used chunk is allocated");
                    chunk.take(shape, shape.first_row(index), part);
                }
                parts.finish(shape)
            }
            Self::Tagged(shape, tagged) => {
                let mut parts: BTreeMap<ShardId, TaggedPart> = BTreeMap::new();
                tagged.take(|row, version, update| {
                    let part = parts.entry(shard_of(shape.chunk_of(row) as u64)).or_default();
                    part.rows.push(row);
                    part.versions.push(version);
                    part.numbers.extend_from_slice(update);
                });
                let width = shape.width as u32;
                let part = |(shard, TaggedPart { rows, versions, numbers })| ShardDelta {
                    shard,
                    rows,
                    versions: Some(versions),
                    values: Values::dense(width, numbers),
                };
                parts.into_iter().map(part).collect()
            }
            Self::Rows(rows) => {
                let mut parts: BTreeMap<ShardId, Vec<(u64, Row)>> = BTreeMap::new();
                for (row, update) in std::mem::take(rows) {
                    parts.entry(shard_of(row)).or_default().push((row, update));
                }
                let part = |(shard, rows): (ShardId, Vec<(u64, Row)>)| ShardDelta {
                    shard,
                    values: Values::collect(kind, rows.iter().map(|(_, update)| update)),
                    rows: rows.into_iter().map(|(row, _)| row).collect(),
                    versions: None,
                };
                parts.into_iter().map(part).collect()
            }
        }
    }
}

/// The parts of a flat table's updates that go to each shard, while they are put together in memory that is used again.
struct FlatParts<'a> {
    parts: BTreeMap<ShardId, (Vec<u64>, Arc<Vec<f32>>)>,
    recycler: &'a mut Recycler<f32>,
    /// How many numbers there are in all parts at most.
    numbers_max: usize,
}

impl<'a> FlatParts<'a> {
    fn new(recycler: &'a mut Recycler<f32>, numbers_max: usize) -> Self {
        Self { parts: BTreeMap::new(), recycler, numbers_max }
    }

    fn of(&mut self, shard: ShardId) -> (&mut Vec<u64>, &mut Vec<f32>) {
        let (rows, shared) = self.parts.entry(shard).or_insert_with(|| {
            let mut shared = self.recycler.take(self.numbers_max);
            Arc::get_mut(&mut shared).expect("a free buffer").clear();
            (Vec::new(), shared)
        });
        (rows, Arc::get_mut(shared).expect("a buffer that is not handed out yet"))
    }

    fn finish(self, shape: &Shape) -> Vec<ShardDelta> {
        let part = |(shard, (rows, shared))| {
            self.recycler.keep(&shared);
            let values = Values::Dense { width: shape.width as u32, numbers: shared.into() };
            ShardDelta { shard, rows, versions: None, values }
        };
        self.parts.into_iter().map(part).collect()
    }
}

impl DeltaChunk {
    /// The chunk, with the row at `place` marked as touched.
    fn touch<'a>(
        chunks: &'a mut [Option<Self>],
        used: &mut Vec<usize>,
        shape: &Shape,
        chunk: usize,
        place: usize,
    ) -> &'a mut Self {
        let slot = Self::open(chunks, used, shape, chunk);
        slot.touched[place / 64] |= 1 << (place % 64);
        slot
    }

    /// The chunk, marked as used.
    fn open<'a>(chunks: &'a mut [Option<Self>], used: &mut Vec<usize>, shape: &Shape, chunk: usize) -> &'a mut Self {
        let rows = shape.rows_of(chunk);
        let slot = chunks[chunk].get_or_insert_with(|| Self {
            numbers: vec![0.0; rows * shape.width],
            touched: vec![0; rows.div_ceil(64)],
            used: false,
        });
        if !std::mem::replace(&mut slot.used, true) {
            used.push(chunk);
        }
        slot
    }

    /// Shows the touched rows that are `wanted`.
    fn walk(
        &self,
        first_row: u64,
        wanted: &impl Fn(u64) -> bool,
        show: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for (i, &word) in self.touched.iter().enumerate() {
            let mut word = word;
            while word != 0 {
                let row = first_row + i as u64 * 64 + u64::from(word.trailing_zeros());
                if wanted(row) {
                    show(row)?;
                }
                word &= word - 1;
            }
        }
        ControlFlow::Continue(())
    }

    /// Moves the touched rows to the end of `part` and zeroes them here.
    fn take(&mut self, shape: &Shape, first_row: u64, (rows, numbers): (&mut Vec<u64>, &mut Vec<f32>)) {
        self.used = false;
        let before = rows.len();
        for (i, word) in self.touched.iter_mut().enumerate() {
            push_bits(std::mem::take(word), first_row + i as u64 * 64, rows);
        }
        for row in &rows[before..] {
            let place = (row - first_row) as usize;
            match &mut self.numbers[place * shape.width..][..shape.width] {
                // A call to copy one number costs more than the copy.
                [number] => numbers.push(std::mem::take(number)),
                row => {
                    numbers.extend_from_slice(row);
                    row.fill(0.0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(delta: &mut Delta, schema: &TableSchema) -> Vec<(u32, Vec<u64>, Values)> {
        let parts = delta.take(&schema.kind, |unit| schema.shard_of_unit(unit, 2));
        parts.into_iter().map(|part| (part.shard.0, part.rows, part.values)).collect()
    }

    #[test]
    fn updates_of_a_row_are_coalesced_and_taken_once() {
        let schema = TableSchema { chunk_rows: Some(2), ..TableSchema::dense("t", 8, 1) };
        let mut delta = Delta::new(&schema);
        for (row, number) in [(6, 1.0), (1, 2.0), (6, 4.0), (0, 0.5)] {
            delta.add(&schema.kind, row, RowRef::Dense(&[number]));
        }
        delta.add_difference(1, &[5.0, 3.0], &[5.0, 1.0]);
        let expected =
            vec![(0, vec![0, 1, 3], Values::dense(1, vec![0.5, 2.0, 2.0])), (1, vec![6], Values::dense(1, vec![5.0]))];
        assert_eq!(taken(&mut delta, &schema), expected);
        assert!(taken(&mut delta, &schema).is_empty());
        delta.add(&schema.kind, 6, RowRef::Dense(&[1.0]));
        assert_eq!(taken(&mut delta, &schema), [(1, vec![6], Values::dense(1, vec![1.0]))]);
    }

    #[test]
    fn chosen_rows_are_taken_and_the_others_stay() {
        let flat = TableSchema { chunk_rows: Some(2), ..TableSchema::dense("t", 8, 1) };
        let keyed = TableSchema::keyed("t", RowKind::Dense { width: 1 });
        for schema in [flat, keyed] {
            let mut delta = Delta::new(&schema);
            for row in [7, 0, 4, 5, 2] {
                delta.add(&schema.kind, row, RowRef::Dense(&[row as f32 + 1.0]));
            }
            for (from, order) in
                [(0, [0, 2, 4, 5, 7]), (5, [5, 7, 0, 2, 4]), (3, [4, 5, 7, 0, 2]), (9, [0, 2, 4, 5, 7])]
            {
                let mut seen = Vec::new();
                delta.walk(from, &mut |row| {
                    seen.push(row);
                    ControlFlow::Continue(())
                });
                assert_eq!(seen, order, "from {from}");
            }
            let taken = delta.take_rows(&schema.kind, &[0, 5], |_| ShardId(3));
            assert_eq!(taken.len(), 1);
            assert_eq!((&taken[0].rows[..], &taken[0].values), (&[0, 5][..], &Values::dense(1, vec![1.0, 6.0])));
            delta.add(&schema.kind, 5, RowRef::Dense(&[0.5]));
            delta.add(&schema.kind, 3, RowRef::Dense(&[0.5]));
            delta.forget(&[1, 3]);
            let left = delta.take(&schema.kind, |_| ShardId(0)).pop().expect("the others");
            assert_eq!((left.rows, left.values), (vec![2, 4, 5, 7], Values::dense(1, vec![3.0, 5.0, 0.5, 8.0])));
        }
    }

    #[test]
    fn absorbing_adds_row_by_row() {
        let schema = TableSchema::keyed("t", RowKind::Counts);
        let (mut a, mut b) = (Delta::new(&schema), Delta::new(&schema));
        a.add(&schema.kind, 9, RowRef::Counts(&[1], &[2]));
        b.add(&schema.kind, 9, RowRef::Counts(&[1, 4], &[3, 1]));
        a.absorb(&schema.kind, &mut b);
        assert!(taken(&mut b, &schema).is_empty());
        assert_eq!(a.with_row(9, |update| update.to_row()), Some(Row::Counts(vec![(1, 5), (4, 1)])));
    }
}
