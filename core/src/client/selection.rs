//! What selection filters hold back of a worker's updates, and where it waits.

use super::table::ClientTable;
use crate::delta::{Delta, ShardDelta};
use crate::filter::FilterError;
use crate::filter::sieve::HeldBack;
use crate::ids::{Clock, ShardId, WorkerId};

impl ClientTable {
    /// Takes out of a worker's updates of a finished clock what is not to travel now. What is kept becomes part of its
    /// updates of clock `next`, the first that has not been sent, so that it goes on seeing it.
    pub(super) fn hold_back(
        &mut self,
        (clock, worker, local): (Clock, WorkerId, usize),
        delta: &mut Delta,
        next: Clock,
    ) -> Result<(), FilterError> {
        let kind = self.schema.kind.clone();
        for part in delta.take(&kind, |_| ShardId(0)) {
            let HeldBack { kept, dropped } = self.sift(clock, worker, &part)?;
            for i in travelling(part.rows.len(), &kept, &dropped) {
                delta.add(&kind, part.rows[i], part.values.row(i));
            }
            if kept.is_empty() {
                continue;
            }
            let unsent = &mut self.unsent[local];
            if unsent.front().is_none_or(|(first, _)| *first != next) {
                let empty = self.spare.pop().unwrap_or_else(|| Delta::new(&self.schema));
                unsent.push_front((next, empty));
            }
            let (_, later) = unsent.front_mut().expect("just made");
            for i in kept {
                later.add(&kind, part.rows[i], part.values.row(i));
            }
        }
        Ok(())
    }

    /// Of updates that were chosen to be sent before their clock ends, those that may travel. The others go back to
    /// where they were, to be judged again when the clock ends.
    pub(super) fn hold_back_early(
        &self,
        (clock, worker): (Clock, WorkerId),
        delta: &mut Delta,
        part: ShardDelta,
    ) -> Option<ShardDelta> {
        if self.sieve.is_none() {
            return Some(part);
        }
        // A filter that fails will fail again when the clock ends, where the worker can be told.
        let all = || HeldBack { kept: (0..part.rows.len()).collect(), dropped: Vec::new() };
        let HeldBack { kept, dropped } = self.sift(clock, worker, &part).unwrap_or_else(|_| all());
        for &i in kept.iter().chain(&dropped) {
            delta.add(&self.schema.kind, part.rows[i], part.values.row(i));
        }
        let mut sent = Delta::new(&self.schema);
        for i in travelling(part.rows.len(), &kept, &dropped) {
            sent.add(&self.schema.kind, part.rows[i], part.values.row(i));
        }
        sent.take(&self.schema.kind, |_| part.shard).pop()
    }

    fn sift(&self, clock: Clock, worker: WorkerId, part: &ShardDelta) -> Result<HeldBack, FilterError> {
        let Some(sieve) = &self.sieve else { return Ok(HeldBack::default()) };
        sieve.sift(
            (clock, worker.0),
            &part.rows,
            |i| part.values.row(i),
            &|row, show| self.cache.with_row(row, |value| show(value)),
            |update| self.schema.row_bytes(update),
        )
    }
}

/// The places of a batch that are in neither list; both ascend.
fn travelling<'a>(rows: usize, kept: &'a [usize], dropped: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
    (0..rows).filter(|i| kept.binary_search(i).is_err() && dropped.binary_search(i).is_err())
}
