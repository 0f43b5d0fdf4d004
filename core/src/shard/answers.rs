//! Who has answered the rows of a table with versions, so that under a budget clients and shards go through them in step.
//!
//! An update that was computed on a version which others have changed since counts for less (AdaRevision), and one that is
//! computed after its worker has answered travels apart from the next. Both are rare when a row is sent on as soon as those
//! who change it have answered its newest version, and not before: all of them then compute on one version for a whole
//! round, and what they send is applied together. Clients do their part in `core/src/client/early.rs`.

use crate::ids::WorkerId;
use crate::row_set::RowSet;
use crate::schema::{Job, TableSchema};

/// A row is sent on when all have answered but this part: it need not wait for the slowest.
const MISSING_PART_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct Answers {
    workers: Vec<Worker>,
    /// Whether it is known who changes what: in the first clock everyone is waited for.
    known: bool,
}

#[derive(Debug)]
struct Worker {
    /// The rows whose newest version it has sent an update of.
    answered: RowSet,
    /// The rows that it has changed in this clock, and those that it changed in the last.
    changes: RowSet,
    changed: RowSet,
}

impl Answers {
    /// Of a table under a budget, if it has versions.
    pub(super) fn new(schema: &TableSchema, job: &Job) -> Option<Self> {
        job.budget.and(schema.snapshot_width())?;
        let set = || RowSet::new(schema.rows);
        let worker = |_| Worker { answered: set(), changes: set(), changed: set() };
        Some(Self { workers: (0..job.workers()).map(worker).collect(), known: false })
    }

    /// A worker has sent an update of each of `rows`; `newest` are those whose newest version it was computed on.
    pub(super) fn note(&mut self, worker: WorkerId, rows: &[u64], newest: &[u64]) {
        if let Some(worker) = self.workers.get_mut(worker.0 as usize) {
            worker.changes.insert_all(rows);
            worker.answered.insert_all(newest);
        }
    }

    /// Whether enough of those who changed a row in the last clock have answered its newest version.
    pub(super) fn suffice(&self, row: u64) -> bool {
        let writers = || self.workers.iter().filter(|worker| !self.known || worker.changed.contains(row));
        let missing = writers().filter(|worker| !worker.answered.contains(row)).count();
        missing * MISSING_PART_MAX <= writers().count()
    }

    /// New versions of rows have been sent to all.
    pub(super) fn pushed(&mut self, rows: &[u64]) {
        self.workers.iter_mut().for_each(|worker| worker.answered.remove_all(rows));
    }

    /// The slowest worker has ended a clock.
    pub(super) fn end_clock(&mut self) {
        self.known = true;
        for worker in &mut self.workers {
            std::mem::swap(&mut worker.changes, &mut worker.changed);
            worker.changes.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::priority::Priority;
    use crate::procedure::AdaRevision;
    use std::sync::Arc;

    fn job(budget: Option<Budget>) -> Job {
        let table = TableSchema { procedure: Some(Arc::new(AdaRevision::new(0.1))), ..TableSchema::dense("t", 4, 1) };
        Job {
            tables: vec![table, TableSchema::dense("added", 4, 1)],
            workers_per_client: vec![5, 5],
            shards: 1,
            budget,
        }
    }

    #[test]
    fn only_rows_with_versions_under_a_budget_are_answered() {
        let paced = job(Some(Budget { bytes_per_second: 1000, priority: Priority::Random }));
        assert!(Answers::new(&paced.tables[0], &paced).is_some());
        assert!(Answers::new(&paced.tables[1], &paced).is_none());
        assert!(Answers::new(&paced.tables[0], &job(None)).is_none());
    }

    #[test]
    fn a_row_is_due_when_all_but_an_eighth_of_those_who_change_it_have_answered() {
        let job = job(Some(Budget { bytes_per_second: 1000, priority: Priority::Random }));
        let mut answers = Answers::new(&job.tables[0], &job).expect("a table with versions under a budget");
        for worker in 0..8 {
            answers.note(WorkerId(worker), &[0, 1], &[0]);
        }
        assert!(!answers.suffice(0), "in the first clock all ten are waited for");
        answers.note(WorkerId(8), &[0], &[0]);
        assert!(answers.suffice(0) && !answers.suffice(1));
        answers.end_clock();
        answers.pushed(&[0, 1]);
        // Eight changed row 1 in the last clock, and nobody row 2.
        for worker in 0..6 {
            answers.note(WorkerId(worker), &[1], &[1]);
        }
        answers.note(WorkerId(6), &[1], &[]);
        assert!(!answers.suffice(1), "an update of an older version is no answer");
        answers.note(WorkerId(6), &[1], &[1]);
        assert!(answers.suffice(1) && !answers.suffice(0) && answers.suffice(2));
        answers.pushed(&[1]);
        assert!(!answers.suffice(1));
        answers.note(WorkerId(10), &[1], &[1]);
        assert!(!answers.suffice(1), "there is no such worker");
    }
}
