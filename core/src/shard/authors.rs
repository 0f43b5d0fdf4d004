//! Who has changed which rows since they were last pushed. A client that reads its own writes has added them to its
//! copy, one after the other as the shard has, so what nobody else has changed is the same here and there to the bit.

use crate::consistency::Consistency;
use crate::ids::ClientId;
use crate::precision::Precision;
use crate::row_set::RowSet;
use crate::schema::{Job, TableSchema};

#[derive(Debug)]
pub(super) struct Authors {
    /// The rows that each client has changed.
    changed: Vec<RowSet>,
    /// The rows that several have.
    shared: RowSet,
}

impl Authors {
    /// None where a client's copy need not be the shard's row: where the shard does more than add, adds in another
    /// order, or sends rounded rows, or not all of them.
    pub(super) fn new(schema: &TableSchema, job: &Job, filtered: bool) -> Option<Self> {
        let in_order =
            matches!(schema.consistency, Consistency::Essp { .. } | Consistency::Async) && schema.fan_in == 1;
        let adds = schema.procedure.is_none() && schema.precision == Precision::F32;
        (schema.read_my_writes && in_order && adds && !filtered).then(|| Self {
            changed: job.workers_per_client.iter().map(|_| RowSet::new(schema.rows)).collect(),
            shared: RowSet::new(schema.rows),
        })
    }

    /// Takes note of a client's update, before its rows are among those that have been changed, which are `dirty`.
    pub(super) fn note(&mut self, client: ClientId, rows: &[u64], dirty: &RowSet) {
        if self.changed.len() == 1 {
            return;
        }
        let own = &mut self.changed[client.index()];
        for &row in rows {
            if own.insert(row) && dirty.contains(row) {
                self.shared.insert(row);
            }
        }
    }

    /// Whether a client has all changes of a row, because they are its own.
    pub(super) fn knows(&self, client: ClientId, row: u64) -> bool {
        self.changed.len() == 1 || self.changed[client.index()].contains(row) && !self.shared.contains(row)
    }

    /// All changes of these rows have been pushed.
    pub(super) fn forget(&mut self, rows: &[u64]) {
        self.changed.iter_mut().for_each(|changed| changed.remove_all(rows));
        self.shared.remove_all(rows);
    }

    /// All changes have been pushed.
    pub(super) fn clear(&mut self) {
        self.changed.iter_mut().for_each(RowSet::clear);
        self.shared.clear();
    }
}
