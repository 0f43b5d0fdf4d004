//! Uses of a table that cannot be, and the checks that find them before anything is done.

use crate::filter::FilterError;
use crate::ids::ShardId;
use crate::row::RowKind;
use crate::rows::Rows;
use crate::schema::TableSchema;
use crate::store;
use crate::task::{Node, TaskError};
use crate::values::Values;
use thiserror::Error;

/// A use of a table that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum Misuse {
    #[error("there is no table {table}; the job has {tables}")]
    NoSuchTable { table: u32, tables: usize },
    #[error("table '{table}' has {rows} rows, so there is no row {row}")]
    NoSuchRow { table: String, row: u64, rows: u64 },
    #[error("table '{table}': the update does not fit its {rows} rows of kind {kind}")]
    Misfit { table: String, rows: usize, kind: String },
    #[error("table '{table}': only dense tables with a declared number of rows can be edited in place")]
    NotFlat { table: String },
    #[error("table '{table}': rows can be edited in place only where a worker reads its own writes")]
    NoReadMyWrites { table: String },
    #[error("table '{table}': row {row} is updated in a clock in which this worker has not read it")]
    NotRead { table: String, row: u64 },
    #[error("table '{table}': its rows come with versions only where its stored procedure asks for them")]
    Versions { table: String },
    #[error(transparent)]
    Task(#[from] TaskError),
    #[error("table '{table}': row {row} is not on {shard}")]
    NotHere { table: String, row: u64, shard: ShardId },
    #[error("table '{table}': what was pushed under stamp {stamp} has rows of {found} numbers, not of {width}")]
    KeptWidth { table: String, stamp: u64, width: u32, found: u32 },
    #[error("a message about a task that {from} sent to {to} cannot be right")]
    Letter { from: Node, to: Node },
    #[error("table '{table}': rows of kind {kind} cannot be read as dense numbers")]
    NotDense { table: String, kind: String },
    #[error(transparent)]
    Filter(#[from] FilterError),
}

pub(crate) fn check_rows(schema: &TableSchema, rows: &Rows<'_>) -> Result<(), Misuse> {
    let Some(size) = schema.rows else {
        return Ok(());
    };
    let outside = match rows {
        Rows::Range(range) => (range.end > size && !range.is_empty()).then(|| range.end - 1),
        Rows::List(rows) => rows.iter().copied().find(|&row| row >= size),
    };
    outside.map_or(Ok(()), |row| Err(Misuse::NoSuchRow { table: schema.name.clone(), row, rows: size }))
}

pub(crate) fn check_update(schema: &TableSchema, rows: &[u64], updates: &Values) -> Result<(), Misuse> {
    check_rows(schema, &Rows::List(rows))?;
    if store::fits(schema, rows, updates) {
        return Ok(());
    }
    Err(misfit(schema, rows))
}

pub(crate) fn misfit(schema: &TableSchema, rows: &[u64]) -> Misuse {
    Misuse::Misfit { table: schema.name.clone(), rows: rows.len(), kind: format!("{:?}", schema.kind) }
}

/// Whether there is a version for each of so many rows, where there should be.
pub(crate) fn fit_versions(schema: &TableSchema, rows: usize, versions: Option<&[u32]>) -> bool {
    match versions {
        Some(versions) => schema.snapshot_width().is_some() && versions.len() == rows,
        None => schema.snapshot_width().is_none(),
    }
}

pub(crate) fn check_dense(schema: &TableSchema) -> Result<(), Misuse> {
    match schema.kind {
        RowKind::Dense { .. } => Ok(()),
        _ => Err(Misuse::NotDense { table: schema.name.clone(), kind: format!("{:?}", schema.kind) }),
    }
}

pub(crate) fn check_lease(schema: &TableSchema) -> Result<(), Misuse> {
    let table = || schema.name.clone();
    match schema.flat() {
        None => Err(Misuse::NotFlat { table: table() }),
        Some(_) if !schema.read_my_writes => Err(Misuse::NoReadMyWrites { table: table() }),
        Some(_) => Ok(()),
    }
}
