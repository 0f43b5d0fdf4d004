//! What each filter saved: the bytes that it was given and the bytes that it left.

use super::{Direction, Filter};
use crate::schema::Job;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What one filter of one table saved in one direction. Of selection filters the bytes of rows and their ids are
/// counted, of encoding filters those of message bodies as they are written, those that are sent again included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterSaving {
    /// The table's name.
    pub table: String,
    /// The direction.
    pub direction: Direction,
    /// The filter's name.
    pub filter: String,
    /// What it was given.
    pub bytes_in: u64,
    /// What it left.
    pub bytes_out: u64,
}

/// The counts of all filters of a job, which whoever filters adds to. It can be shared: counting needs no lock.
#[derive(Debug, Clone, Default)]
pub struct Ledger(Arc<Vec<Account>>);

#[derive(Debug)]
struct Account {
    table: usize,
    direction: Direction,
    /// Its place in the chain.
    place: usize,
    names: (String, String),
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

impl Ledger {
    /// A ledger with nothing in it.
    #[must_use]
    pub fn new(job: &Job) -> Self {
        let mut accounts = Vec::new();
        for (table, schema) in job.tables.iter().enumerate() {
            for direction in [Direction::Updates, Direction::Rows] {
                let chain = schema.filters.chain(direction).iter().enumerate();
                accounts.extend(chain.map(|(place, filter): (usize, &Filter)| Account {
                    table,
                    direction,
                    place,
                    names: (schema.name.clone(), filter.name().to_owned()),
                    bytes_in: AtomicU64::new(0),
                    bytes_out: AtomicU64::new(0),
                }));
            }
        }
        Self(Arc::new(accounts))
    }

    /// Adds to the counts of the filter at a place of a chain.
    pub(super) fn count(&self, (table, direction, place): (usize, Direction, usize), bytes_in: u64, bytes_out: u64) {
        let wanted =
            |account: &&Account| (account.table, account.direction, account.place) == (table, direction, place);
        if let Some(account) = self.0.iter().find(wanted) {
            account.bytes_in.fetch_add(bytes_in, Ordering::Relaxed);
            account.bytes_out.fetch_add(bytes_out, Ordering::Relaxed);
        }
    }

    /// What has been saved so far, table by table and in the order of the chains.
    #[must_use]
    pub fn savings(&self) -> Vec<FilterSaving> {
        let saving = |account: &Account| FilterSaving {
            table: account.names.0.clone(),
            direction: account.direction,
            filter: account.names.1.clone(),
            bytes_in: account.bytes_in.load(Ordering::Relaxed),
            bytes_out: account.bytes_out.load(Ordering::Relaxed),
        };
        self.0.iter().map(saving).collect()
    }
}

/// Adds the savings of another process of the same job.
pub fn merge(all: &mut Vec<FilterSaving>, others: Vec<FilterSaving>) {
    for other in others {
        let same = |saving: &&mut FilterSaving| {
            (&saving.table, saving.direction, &saving.filter) == (&other.table, other.direction, &other.filter)
        };
        match all.iter_mut().find(same) {
            Some(saving) => {
                saving.bytes_in += other.bytes_in;
                saving.bytes_out += other.bytes_out;
            }
            None => all.push(other),
        }
    }
}
