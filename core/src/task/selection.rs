//! What selection filters leave of a push, and what they keep of it for the next one.
//!
//! A push passes the filters for updates of its table when it is issued, on the node that issues it. What is kept stays
//! there, is added to the node's next push of the same key and width, and is judged again with that; what is still kept
//! when the job ends is not sent, which is what the filter has declared. A fused push and pull passes none, since its
//! reply is what came of all of it, and a pull passes none, since every row of it was asked for.

use crate::array::Array;
use crate::coordinator::Process;
use crate::filter::ledger::Ledger;
use crate::filter::sieve::{HeldBack, Sieve};
use crate::filter::{Direction, FilterError};
use crate::ids::{ClientId, Clock, TableId, WorkerId};
use crate::row::RowRef;
use crate::slab;
use crate::task::Keys;
use crate::task::service::Service;
use crate::values::Values;
use std::collections::BTreeMap;

/// The selection filters of one node of a job.
#[derive(Debug)]
pub(crate) struct Selection {
    sender: u32,
    /// By the table's number in the job; how many pushes each has judged is the clock that it is told.
    sieves: BTreeMap<TableId, (u32, Sieve)>,
    /// What was kept, by table, width and key.
    kept: BTreeMap<(TableId, u32, u64), Vec<f32>>,
}

impl Selection {
    /// Those of a job's tables, for one of its nodes in the process of a client.
    pub(crate) fn new(service: &Service, job: u32, (client, thread): (ClientId, WorkerId), ledger: &Ledger) -> Self {
        let sieve = |number: u32| {
            let (table, schema) = service.table(job, TableId(number))?;
            let sieve = Sieve::new(table, schema, Direction::Updates, Process::Worker(client), ledger)?;
            Some((TableId(number), (0, sieve)))
        };
        let sieves = (0..service.tenant(job).tables.len() as u32).filter_map(sieve).collect();
        Self { sender: thread.0, sieves, kept: BTreeMap::new() }
    }

    /// What travels of a push that was found in order.
    ///
    /// # Errors
    /// If a filter fails.
    pub(crate) fn sift(&mut self, table: TableId, keys: Keys, values: Values) -> Result<(Keys, Values), FilterError> {
        let (Some((pushes, sieve)), Values::Dense { width, numbers }) = (self.sieves.get_mut(&table), &values) else {
            return Ok((keys, values));
        };
        let (width, row) = (*width, *width as usize);
        let keys: Array<u64> = match keys {
            Keys::Range(range) => range.collect::<Vec<u64>>().into(),
            Keys::List(list) => list,
        };
        let mut numbers = numbers.to_vec();
        for (&key, number) in keys.iter().zip(numbers.chunks_exact_mut(row)) {
            if let Some(kept) = self.kept.remove(&(table, width, key)) {
                slab::add(number, &kept);
            }
        }
        let clock = Clock(*pushes);
        *pushes = pushes.wrapping_add(1);
        let change = |place: usize| RowRef::Dense(&numbers[place * row..(place + 1) * row]);
        let bytes = size_of::<u64>() + size_of::<f32>() * row;
        let HeldBack { kept, dropped } =
            sieve.sift((clock, self.sender), &keys, change, &|_, show| show(None), |_| bytes)?;
        let (mut left, mut left_numbers) = (Vec::with_capacity(keys.len()), Vec::with_capacity(numbers.len()));
        for (place, (&key, number)) in keys.iter().zip(numbers.chunks_exact(row)).enumerate() {
            if kept.binary_search(&place).is_ok() {
                self.kept.insert((table, width, key), number.to_vec());
            } else if dropped.binary_search(&place).is_err() {
                left.push(key);
                left_numbers.extend_from_slice(number);
            }
        }
        Ok((left.into(), Values::dense(width, left_numbers)))
    }
}
