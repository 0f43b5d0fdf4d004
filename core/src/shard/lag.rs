//! What clients lack because a filter held back a push: their copy of a row, where that is not the shard's.
//!
//! A push sends a row to everyone who is to have it, so after it all have the same. In between, a client that asks for
//! a row gets it as it is; where that is not what the others have, the row is pushed next time whatever the filter says,
//! so that the filter always compares with what everyone has.

use super::ShardTable;
use crate::filter::FilterError;
use crate::filter::sieve::Sieve;
use crate::ids::{Clock, ShardId};
use crate::recycler::Recycler;
use crate::row::{Row, RowRef};
use crate::row_set::RowSet;
use crate::schema::TableSchema;
use crate::values::Values;
use hashbrown::HashMap;

#[derive(Debug)]
pub(super) struct Lag {
    sieve: Sieve,
    /// Each row as everyone who has it was last sent it, less those who are in `owed`.
    copies: HashMap<u64, Row>,
    /// Rows of which some client has another copy.
    owed: RowSet,
}

impl Lag {
    pub(super) fn new(sieve: Sieve, schema: &TableSchema) -> Self {
        Self { sieve, copies: HashMap::new(), owed: RowSet::new(schema.rows) }
    }

    /// Takes note of rows that one client is sent.
    pub(super) fn sent(&mut self, rows: &[u64], values: &Values) {
        for (i, &row) in rows.iter().enumerate() {
            let now = values.row(i).to_row();
            match self.copies.get(&row) {
                None => drop(self.copies.insert(row, now)),
                Some(copy) if *copy != now => self.owed.insert_all(&[row]),
                Some(_) => {}
            }
        }
    }
}

impl ShardTable {
    /// Which of `rows` are not to be pushed now.
    pub(super) fn hold_back(&self, (shard, clock): (ShardId, Clock), rows: &[u64]) -> Result<Vec<u64>, FilterError> {
        let Some(lag) = &self.lag else { return Ok(Vec::new()) };
        let rows: Vec<u64> =
            rows.iter().copied().filter(|row| lag.copies.contains_key(row) && !lag.owed.contains(*row)).collect();
        let values = self.store.gather(&self.schema, &rows, &mut Recycler::new(0));
        let change = |(i, row)| difference(values.row(i), &lag.copies[row]);
        let changes: Vec<Row> = rows.iter().enumerate().map(change).collect();
        let changes = Values::collect(&self.schema.kind, changes.iter());
        let place = |row: u64| rows.binary_search(&row).expect("one of the rows");
        let held_back = lag.sieve.sift(
            (clock, shard.0),
            &rows,
            |i| changes.row(i),
            &|row, show| show(Some(values.row(place(row)))),
            |row| self.schema.row_bytes(row),
        )?;
        let mut places = [held_back.kept, held_back.dropped].concat();
        places.sort_unstable();
        Ok(places.into_iter().map(|i| rows[i]).collect())
    }

    /// These rows have been pushed to everyone who is to have them.
    pub(super) fn note_pushed(&mut self, rows: &[u64]) {
        let Some(lag) = &mut self.lag else { return };
        let values = self.store.gather(&self.schema, rows, &mut self.recycler);
        for (i, &row) in rows.iter().enumerate() {
            if let Some(copy) = lag.copies.get_mut(&row) {
                *copy = values.row(i).to_row();
            }
        }
        lag.owed.remove_all(rows);
    }
}

/// By how much `new` differs from `old`, both of one kind of numbers.
fn difference(new: RowRef<'_>, old: &Row) -> Row {
    match (new, old) {
        (RowRef::Dense(new), Row::Dense(old)) => Row::Dense(new.iter().zip(old).map(|(new, old)| new - old).collect()),
        (RowRef::Sparse(columns, numbers), Row::Sparse(old)) => {
            let new = columns.iter().copied().zip(numbers.iter().copied());
            let mut entries: Vec<(u32, f32)> =
                new.chain(old.iter().map(|(column, number)| (*column, -number))).collect();
            entries.sort_by_key(|(column, _)| *column);
            entries.dedup_by(|later, first| {
                let same = later.0 == first.0;
                first.1 += if same { later.1 } else { 0.0 };
                same
            });
            Row::Sparse(entries)
        }
        (RowRef::Counts(columns, counts), Row::Counts(old)) => {
            let new = columns.iter().copied().zip(counts.iter().copied());
            let old = old.iter().map(|(column, count)| (*column, count.saturating_neg()));
            let mut entries: Vec<(u32, i32)> = new.chain(old).collect();
            entries.sort_by_key(|(column, _)| *column);
            entries.dedup_by(|later, first| {
                let same = later.0 == first.0;
                first.1 = first.1.saturating_add(if same { later.1 } else { 0 });
                same
            });
            Row::Counts(entries)
        }
        _ => unreachable!("a filter that compares rows is refused on a table of a user's type"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_differ_by_what_added_to_the_old_one_gives_the_new_one() {
        let dense = difference(RowRef::Dense(&[1.0, 2.0]), &Row::Dense(vec![0.5, 2.0]));
        assert_eq!(dense, Row::Dense(vec![0.5, 0.0]));
        let sparse = difference(RowRef::Sparse(&[1, 4], &[1.0, 2.0]), &Row::Sparse(vec![(0, 3.0), (4, 0.5)]));
        assert_eq!(sparse, Row::Sparse(vec![(0, -3.0), (1, 1.0), (4, 1.5)]));
        let counts = difference(RowRef::Counts(&[2], &[i32::MAX]), &Row::Counts(vec![(2, i32::MIN), (3, 1)]));
        assert_eq!(counts, Row::Counts(vec![(2, i32::MAX), (3, -1)]));
    }
}
