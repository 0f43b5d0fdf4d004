//! A client's copy of a table: the rows it has been sent, how new they are, and which it has asked for.

use crate::ids::Clock;
use crate::row::{Row, RowRef};
use crate::schema::TableSchema;
use crate::slab::{self, Shape, Slab};
use crate::values::Values;
use hashbrown::HashMap;

#[derive(Debug)]
pub(crate) enum Cache {
    Flat {
        slab: Slab,
        /// Per chunk and row, once the chunk is in use.
        marks: Vec<Vec<Mark>>,
    },
    Rows(HashMap<u64, (Option<Row>, Mark)>),
}

/// What is known of a cached row. Clocks are stored plus one, so that zero means never.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mark {
    /// The row's clock when it was sent.
    sent: u32,
    /// The newest clock that was asked for.
    asked: u32,
}

impl Mark {
    pub(crate) fn sent(self) -> Option<Clock> {
        self.sent.checked_sub(1).map(Clock)
    }

    pub(crate) fn asked(self) -> Option<Clock> {
        self.asked.checked_sub(1).map(Clock)
    }
}

impl Cache {
    pub(crate) fn new(schema: &TableSchema) -> Self {
        match Shape::new(schema) {
            Some(shape) => {
                Self::Flat { slab: Slab::new(shape, schema.init, |_| false), marks: vec![Vec::new(); shape.chunks()] }
            }
            None => Self::Rows(HashMap::new()),
        }
    }

    pub(crate) fn mark(&self, row: u64) -> Mark {
        match self {
            Self::Flat { slab, marks } => {
                let (chunk, place) = slab.shape.locate(row);
                marks[chunk].get(place).copied().unwrap_or_default()
            }
            Self::Rows(rows) => rows.get(&row).map_or(Mark::default(), |(_, mark)| *mark),
        }
    }

    pub(crate) fn ask(&mut self, asked: &[u64], needed: Clock) {
        match self {
            Self::Flat { slab, marks } => {
                let shape = slab.shape;
                for (chunk, run) in shape.runs(asked) {
                    let (marks, _) = open(slab, marks, chunk);
                    for row in &asked[run] {
                        marks[(row - shape.first_row(chunk)) as usize].asked = needed.0.saturating_add(1);
                    }
                }
            }
            Self::Rows(rows) => {
                asked.iter().for_each(|&row| rows.entry(row).or_default().1.asked = needed.0.saturating_add(1))
            }
        }
    }

    /// Takes rows as the shard has them.
    pub(crate) fn store(&mut self, sent: &[u64], values: &Values, clock: Clock) {
        match (self, values) {
            (Self::Flat { slab, marks }, Values::Dense { numbers, .. }) => {
                let shape = slab.shape;
                for (chunk, run) in shape.runs(sent) {
                    let (marks, chunk_numbers) = open(slab, marks, chunk);
                    let numbers = &numbers[run.start * shape.width..run.end * shape.width];
                    for (row, numbers) in sent[run].iter().zip(numbers.chunks_exact(shape.width)) {
                        let place = (row - shape.first_row(chunk)) as usize;
                        marks[place].sent = marks[place].sent.max(clock.0.saturating_add(1));
                        // A call to copy one number costs more than the copy.
                        match numbers {
                            [number] => chunk_numbers[place] = *number,
                            _ => chunk_numbers[place * shape.width..][..shape.width].copy_from_slice(numbers),
                        }
                    }
                }
            }
            (Self::Rows(rows), values) => {
                for (i, &row) in sent.iter().enumerate() {
                    let (here, mark) = rows.entry(row).or_default();
                    *here = Some(values.row(i).to_row());
                    mark.sent = mark.sent.max(clock.0.saturating_add(1));
                }
            }
            _ => unreachable!("rows are checked against the table's kind"),
        }
    }

    /// Changes those rows that are here and `wanted` by updates that the shard has not applied yet.
    pub(crate) fn fold_all(
        &mut self,
        schema: &TableSchema,
        rows: &[u64],
        updates: &Values,
        mut wanted: impl FnMut(u64) -> bool,
    ) {
        let (Self::Flat { slab, marks }, Values::Dense { numbers, .. }) = (&mut *self, updates) else {
            let wanted = rows.iter().enumerate().filter(|(_, row)| wanted(**row));
            return wanted.for_each(|(i, &row)| self.fold(schema, row, updates.row(i)));
        };
        let shape = slab.shape;
        for (chunk, run) in shape.runs(rows).filter(|(chunk, _)| !marks[*chunk].is_empty()) {
            let updates = &numbers[run.start * shape.width..run.end * shape.width];
            for (row, update) in rows[run].iter().zip(updates.chunks_exact(shape.width)) {
                let place = (row - shape.first_row(chunk)) as usize;
                if wanted(*row) && marks[chunk][place].sent().is_some() {
                    slab::add(&mut slab.chunks[chunk][place * shape.width..][..shape.width], update);
                }
            }
        }
    }

    /// Changes a row, if it is here, by an update that the shard has not applied yet.
    pub(crate) fn fold(&mut self, schema: &TableSchema, row: u64, update: RowRef<'_>) {
        if self.mark(row).sent().is_none() {
            return;
        }
        match (self, update) {
            (Self::Flat { slab, .. }, RowRef::Dense(update)) => slab::add(slab.row_mut(row), update),
            (Self::Rows(rows), update) => {
                let row = rows.get_mut(&row).and_then(|(row, _)| row.as_mut()).expect("a row that was sent");
                schema.kind.apply(row, update);
            }
            _ => unreachable!("updates are checked against the table's kind"),
        }
    }

    /// Calls `f` with a row, if it is here.
    pub(crate) fn with_row<R>(&self, row: u64, f: impl FnOnce(Option<RowRef<'_>>) -> R) -> R {
        match self {
            _ if self.mark(row).sent().is_none() => f(None),
            Self::Flat { slab, .. } => f(Some(RowRef::Dense(slab.row(row)))),
            Self::Rows(rows) => match rows.get(&row) {
                Some((Some(row), _)) => row.with(|row| f(Some(row))),
                _ => f(None),
            },
        }
    }

    /// A row that is here.
    pub(crate) fn row(&self, row: u64) -> Row {
        match self {
            Self::Flat { slab, .. } => Row::Dense(slab.row(row).to_vec()),
            Self::Rows(rows) => rows[&row].0.clone().expect("a row that was sent"),
        }
    }
}

/// The marks and numbers of a chunk, which is in use from now on.
fn open<'a>(slab: &'a mut Slab, marks: &'a mut [Vec<Mark>], chunk: usize) -> (&'a mut [Mark], &'a mut [f32]) {
    if marks[chunk].is_empty() {
        let rows = slab.shape.rows_of(chunk);
        marks[chunk] = vec![Mark::default(); rows];
        slab.chunks[chunk] = vec![0.0; rows * slab.shape.width];
    }
    (&mut marks[chunk], &mut slab.chunks[chunk])
}
