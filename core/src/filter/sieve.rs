//! The selection filters of a chain, applied to a batch.

use super::ledger::Ledger;
use super::{Direction, Entry, Filter, FilterError, Remainder, Selection};
use crate::coordinator::Process;
use crate::ids::{Clock, TableId};
use crate::row::RowRef;
use crate::schema::TableSchema;
use std::sync::Arc;

/// The selection filters of one direction of a table, in one process.
#[derive(Debug)]
pub struct Sieve {
    table: (usize, String),
    direction: Direction,
    node: Process,
    /// With the place of each in the whole chain.
    filters: Vec<(usize, Arc<dyn Selection>)>,
    ledger: Ledger,
}

/// Which rows of a batch do not travel, by their places in it, ascending.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HeldBack {
    /// Those to be kept for later.
    pub kept: Vec<usize>,
    /// Those that are lost.
    pub dropped: Vec<usize>,
}

/// Calls a function with a row as the sender has it, if it does.
pub type Look<'a> = dyn Fn(u64, &mut dyn FnMut(Option<RowRef<'_>>)) + 'a;

impl Sieve {
    /// The selection filters of a table; `None` if it has none in this direction.
    #[must_use]
    pub fn new(
        table: TableId,
        schema: &TableSchema,
        direction: Direction,
        node: Process,
        ledger: &Ledger,
    ) -> Option<Self> {
        let selection = |(place, filter): (usize, &Filter)| match filter {
            Filter::Selection(selection) => Some((place, Arc::clone(selection))),
            Filter::Encoding(_) => None,
        };
        let filters: Vec<_> = schema.filters.chain(direction).iter().enumerate().filter_map(selection).collect();
        let table = (table.index(), schema.name.clone());
        (!filters.is_empty()).then(|| Self { table, direction, node, filters, ledger: ledger.clone() })
    }

    /// Judges every row of a batch: those that no filter holds back travel, and the first filter that holds one back
    /// says what becomes of it. `change` is what the receiver lacks of the row at a place, `bytes_of` what that costs.
    ///
    /// # Errors
    /// The first failure of a filter.
    pub fn sift<'a>(
        &self,
        (clock, sender): (Clock, u32),
        rows: &[u64],
        change: impl Fn(usize) -> RowRef<'a>,
        look: &Look<'_>,
        bytes_of: impl Fn(RowRef<'_>) -> usize,
    ) -> Result<HeldBack, FilterError> {
        let mut counts = vec![(0u64, 0u64); self.filters.len()];
        let mut held_back = HeldBack::default();
        for (i, &row) in rows.iter().enumerate() {
            let change = change(i);
            let bytes = bytes_of(change) as u64;
            let mut verdict = Ok(None);
            look(row, &mut |value| {
                let entry = Entry { row, clock, sender, change, value };
                verdict = self.judge(&entry, bytes, &mut counts);
            });
            match verdict? {
                Some(Remainder::Kept) => held_back.kept.push(i),
                Some(Remainder::Dropped) => held_back.dropped.push(i),
                None => {}
            }
        }
        for ((place, _), (bytes_in, bytes_out)) in self.filters.iter().zip(counts) {
            self.ledger.count((self.table.0, self.direction, *place), bytes_in, bytes_out);
        }
        Ok(held_back)
    }

    fn judge(
        &self,
        entry: &Entry<'_>,
        bytes: u64,
        counts: &mut [(u64, u64)],
    ) -> Result<Option<Remainder>, FilterError> {
        for ((_, filter), (bytes_in, bytes_out)) in self.filters.iter().zip(counts) {
            *bytes_in += bytes;
            let travels = filter.travels(entry).map_err(|reason| FilterError {
                filter: filter.name().to_owned(),
                table: self.table.1.clone(),
                node: self.node.to_string(),
                reason: reason.to_string(),
            })?;
            if !travels {
                return Ok(Some(filter.remainder()));
            }
            *bytes_out += bytes;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::{Feedback, Filters, RandomSkip, Reason, Significant};
    use crate::ids::ClientId;
    use crate::schema::Job;

    #[derive(Debug)]
    struct Fails;

    impl Selection for Fails {
        fn name(&self) -> &str {
            "mine"
        }

        fn travels(&self, entry: &Entry<'_>) -> Result<bool, Reason> {
            if entry.row == 3 { Err("row 3 is beyond me".into()) } else { Ok(true) }
        }
    }

    fn sift(updates: Vec<Filter>, rows: &[u64], numbers: &[f32]) -> (Result<HeldBack, FilterError>, Vec<(u64, u64)>) {
        let filters = Filters { updates, rows: Vec::new() };
        let schema = TableSchema { filters, ..TableSchema::dense("weights", 100, 1) };
        let job = Job { tables: vec![schema.clone()], workers_per_client: vec![1], shards: 1, budget: None };
        let (ledger, node) = (Ledger::new(&job), Process::Worker(ClientId(4)));
        let sieve = Sieve::new(TableId(0), &schema, Direction::Updates, node, &ledger).expect("it selects");
        let change = |i: usize| RowRef::Dense(std::slice::from_ref(&numbers[i]));
        let held = sieve.sift((Clock(0), 0), rows, change, &|_, show| show(None), |_| 12);
        (held, ledger.savings().iter().map(|saving| (saving.bytes_in, saving.bytes_out)).collect())
    }

    #[test]
    fn a_row_travels_if_no_filter_holds_it_back_and_each_filter_counts_what_reaches_it() {
        let skip = || RandomSkip { share: 0.5, seed: 0 };
        let rows: Vec<u64> = (0..100).collect();
        let numbers: Vec<f32> = (0..100).map(|row| if row % 4 == 0 { 1.0 } else { 0.0 }).collect();
        let significant = || Filter::selection(Significant { threshold: 0.5 });
        let (held, savings) = sift(vec![significant(), Filter::selection(skip())], &rows, &numbers);
        let held = held.expect("nothing fails");
        let small: Vec<usize> = (0..100).filter(|row| row % 4 != 0).collect();
        assert_eq!(held.kept, small);
        assert!(held.dropped.iter().all(|row| row % 4 == 0) && (5..20).contains(&held.dropped.len()));
        assert_eq!(savings, [(1200, 300), (300, 300 - 12 * held.dropped.len() as u64)]);
        let feedback = Filter::selection(Feedback(Arc::new(skip())));
        let (again, _) = sift(vec![significant(), feedback], &rows, &numbers);
        let mut all: Vec<usize> = held.kept.into_iter().chain(held.dropped).collect();
        all.sort_unstable();
        assert_eq!(again, Ok(HeldBack { kept: all, dropped: Vec::new() }), "the same ones, and none is lost");
    }

    #[test]
    fn a_filter_that_fails_names_itself_the_table_and_the_process() {
        let (failed, _) = sift(vec![Filter::selection(Fails)], &[1, 3], &[0.0, 0.0]);
        let sentence = "filter 'mine' of table 'weights' failed in worker process 4: row 3 is beyond me";
        assert_eq!(failed.expect_err("it fails").to_string(), sentence);
    }
}
