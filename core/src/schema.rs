//! What a job is made of: its tables, and how many workers, clients and shards share them.

use crate::budget::{BYTES_PER_SECOND_MIN, Budget};
use crate::consistency::Consistency;
use crate::filter::Filters;
use crate::ids::{ClientId, ShardId, TableId, WorkerId};
use crate::precision::Precision;
use crate::procedure::Procedure;
use crate::row::{RowKind, RowRef};
use std::ops::Range;
use std::sync::Arc;
use thiserror::Error;

/// The most rows that a table with a declared size may have.
pub const ROWS_MAX: u64 = 1 << 40;
/// The most numbers that a dense row may have.
pub const WIDTH_MAX: u32 = 1 << 28;
/// How many bytes of dense rows a chunk holds unless the schema says otherwise.
const CHUNK_BYTES: u64 = 64 << 10;

/// A table: a named set of rows.
#[derive(Debug, Clone)]
pub struct TableSchema {
    /// The name, for people.
    pub name: String,
    /// What a row is.
    pub kind: RowKind,
    /// Row ids are below this. A dense table with a size is stored flat, without hashing; a table without a size
    /// takes any id.
    pub rows: Option<u64>,
    /// How many consecutive rows lie together in one chunk: the unit of placement and of leases. `None` picks a
    /// chunk of about 64 KiB.
    pub chunk_rows: Option<u64>,
    /// How rows are spread over shards.
    pub placement: Placement,
    /// How stale a read may be.
    pub consistency: Consistency,
    /// Whether a worker sees its own updates at once.
    pub read_my_writes: bool,
    /// What a row holds before anyone has written it.
    pub init: Init,
    /// How precisely its numbers travel. Within one process nothing travels, except under Bsp.
    pub precision: Precision,
    /// What a shard does with an update, instead of adding it to its row. Needs dense rows, a declared number of rows,
    /// and workers that do not read their own writes, since only the shard knows what comes of them.
    pub procedure: Option<Arc<dyn Procedure>>,
    /// What travels now, and how. Where nothing travels nothing is filtered.
    pub filters: Filters,
    /// Under Bsp: the updates of so many consecutive workers are added up, in worker order, and their sums are what is
    /// applied. A process that has all of them sends the sum alone. The bits depend on the number, not on who adds.
    pub fan_in: u32,
}

/// How rows are spread over shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// By a hash of the chunk or row id.
    Hash,
    /// Consecutive chunks on one shard. Needs a table with a size.
    Range,
}

/// What a dense row holds before anyone has written it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Init {
    /// Zeros.
    Zero,
    /// Numbers drawn evenly from `low..high` by a hash of seed, row and column, in the first `columns` columns;
    /// `rest` in the others.
    Uniform {
        /// The seed.
        seed: u64,
        /// The least number.
        low: f32,
        /// What the numbers stay below.
        high: f32,
        /// How many columns are drawn.
        columns: u32,
        /// What the other columns hold.
        rest: f32,
    },
}

/// A schema that cannot be.
#[derive(Debug, Clone, PartialEq, Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum SchemaError {
    #[error("table '{table}': a dense row needs between 1 and {WIDTH_MAX} numbers, not {width}")]
    Width { table: String, width: u32 },
    #[error("table '{table}': a table may have between 1 and {ROWS_MAX} rows, not {rows}")]
    Rows { table: String, rows: u64 },
    #[error("table '{table}': a chunk needs at least one row")]
    ChunkRows { table: String },
    #[error("table '{table}': updates of at least 1 worker are added up, not of 0")]
    FanIn { table: String },
    #[error("table '{table}': a stored procedure takes updates one by one, not added up")]
    FanInProcedure { table: String },
    #[error("table '{table}': range placement needs the number of rows to be declared")]
    RangeWithoutRows { table: String },
    #[error("table '{table}': only dense rows can be initialised with random numbers")]
    InitOfSparse { table: String },
    #[error("table '{table}': the value bound must be a number above zero, not {bound}")]
    ValueBound { table: String, bound: f32 },
    #[error("table '{table}': the value bound needs dense rows, and this table's are {kind}")]
    ValueBoundNotDense { table: String, kind: String },
    #[error("table '{table}': only dense rows can travel in sixteen bits, and this table's are {kind}")]
    PrecisionNotDense { table: String, kind: String },
    #[error("table '{table}': rounding to sixteen bits could break the value bound; use 32 bits with it")]
    PrecisionUnderVap { table: String },
    #[error("table '{table}': a stored procedure needs dense rows and a declared number of rows")]
    ProcedureNotFlat { table: String },
    #[error("table '{table}': workers cannot read their own writes where a stored procedure applies them")]
    ProcedureReadMyWrites { table: String },
    #[error("table '{table}': the value bound is for updates that are added, not for a stored procedure's")]
    ProcedureValueBound { table: String },
    #[error("table '{table}': filter '{filter}' {reason}")]
    Filter { table: String, filter: String, reason: String },
    #[error("two tables are called '{table}'")]
    SameName { table: String },
    #[error("a bandwidth budget needs at least {BYTES_PER_SECOND_MIN} bytes per second, not {bytes}")]
    Budget { bytes: u64 },
    #[error("a job needs at least one {what}")]
    NoneOf { what: &'static str },
}

/// The whole of a job that every part of it must agree on.
#[derive(Debug, Clone)]
pub struct Job {
    /// The tables; a [`TableId`] is a position in this list.
    pub tables: Vec<TableSchema>,
    /// How many workers each client has. Workers are numbered client by client.
    pub workers_per_client: Vec<u32>,
    /// How many shards there are.
    pub shards: u32,
    /// What every node may send, if that is limited.
    pub budget: Option<Budget>,
}

impl TableSchema {
    /// A dense table of `rows` rows of `width` numbers, eager with staleness 2, spread evenly, initially zero.
    #[must_use]
    pub fn dense(name: &str, rows: u64, width: u32) -> Self {
        Self { rows: Some(rows), placement: Placement::Range, ..Self::keyed(name, RowKind::Dense { width }) }
    }

    /// A table of `kind` whose rows may have any id, eager with staleness 2.
    #[must_use]
    pub fn keyed(name: &str, kind: RowKind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            rows: None,
            chunk_rows: None,
            placement: Placement::Hash,
            consistency: Consistency::Essp { staleness: 2 },
            read_my_writes: true,
            init: Init::Zero,
            precision: Precision::F32,
            procedure: None,
            filters: Filters::default(),
            fan_in: 1,
        }
    }

    /// The width of its rows, if they are dense and the table has a size: then it is stored flat.
    pub(crate) fn flat(&self) -> Option<(u64, u32)> {
        match (&self.kind, self.rows) {
            (RowKind::Dense { width }, Some(rows)) => Some((rows, *width)),
            _ => None,
        }
    }

    /// The width of its procedure's snapshots, if it has a procedure that asks for versions.
    pub(crate) fn snapshot_width(&self) -> Option<usize> {
        let (procedure, (_, width)) = (self.procedure.as_ref()?, self.flat()?);
        Some(procedure.snapshot_width(width as usize)).filter(|&width| width > 0)
    }

    /// How many bytes a row takes in a message, with its id, and its version where it has one.
    pub(crate) fn row_bytes(&self, row: RowRef<'_>) -> usize {
        match row {
            RowRef::Dense(numbers) => {
                let version = if self.snapshot_width().is_some() { size_of::<u32>() } else { 0 };
                8 + version + self.precision.bytes() * numbers.len()
            }
            row => row.wire_bytes(),
        }
    }

    /// How many rows a chunk has.
    #[must_use]
    pub fn chunk_rows(&self) -> u64 {
        let width = if let RowKind::Dense { width } = self.kind { u64::from(width) } else { 16 };
        self.chunk_rows.unwrap_or((CHUNK_BYTES / (4 * width)).max(1).next_power_of_two())
    }

    /// The shard of `row`, out of `shards`.
    #[must_use]
    pub fn shard_of(&self, row: u64, shards: u32) -> ShardId {
        self.shard_of_unit(if self.rows.is_some() { row / self.chunk_rows() } else { row }, shards)
    }

    /// The shard of a chunk, or of a row of a table without a size.
    pub(crate) fn shard_of_unit(&self, unit: u64, shards: u32) -> ShardId {
        let shards = u64::from(shards.max(1));
        ShardId(match (self.placement, self.rows) {
            (Placement::Range, Some(rows)) => {
                let units = rows.div_ceil(self.chunk_rows());
                (u128::from(unit) * u128::from(shards) / u128::from(units)) as u32
            }
            _ => (mix(unit) % shards) as u32,
        })
    }

    fn validate(&self) -> Result<(), SchemaError> {
        let table = || self.name.clone();
        match (&self.kind, self.init) {
            (&RowKind::Dense { width }, _) if width == 0 || width > WIDTH_MAX => {
                return Err(SchemaError::Width { table: table(), width });
            }
            (RowKind::Dense { .. }, _) | (_, Init::Zero) => {}
            _ => return Err(SchemaError::InitOfSparse { table: table() }),
        }
        match self.rows {
            Some(rows) if rows == 0 || rows > ROWS_MAX => {
                return Err(SchemaError::Rows { table: table(), rows });
            }
            None if self.placement == Placement::Range => {
                return Err(SchemaError::RangeWithoutRows { table: table() });
            }
            _ => {}
        }
        if self.chunk_rows == Some(0) {
            return Err(SchemaError::ChunkRows { table: table() });
        }
        match self.fan_in {
            0 => return Err(SchemaError::FanIn { table: table() }),
            2.. if self.procedure.is_some() => return Err(SchemaError::FanInProcedure { table: table() }),
            _ => {}
        }
        if let Consistency::Vap { bound } = self.consistency {
            if !(bound.is_finite() && bound > 0.0) {
                return Err(SchemaError::ValueBound { table: table(), bound });
            }
            if !matches!(self.kind, RowKind::Dense { .. }) {
                return Err(SchemaError::ValueBoundNotDense { table: table(), kind: format!("{:?}", self.kind) });
            }
        }
        let precise = match (self.precision, &self.kind, self.consistency) {
            (Precision::F32, ..) => Ok(()),
            (_, RowKind::Dense { .. }, Consistency::Vap { .. }) => {
                Err(SchemaError::PrecisionUnderVap { table: table() })
            }
            (_, RowKind::Dense { .. }, _) => Ok(()),
            (_, kind, _) => Err(SchemaError::PrecisionNotDense { table: table(), kind: format!("{kind:?}") }),
        };
        precise?;
        match self.procedure {
            Some(_) if self.flat().is_none() => Err(SchemaError::ProcedureNotFlat { table: table() }),
            Some(_) if self.read_my_writes => Err(SchemaError::ProcedureReadMyWrites { table: table() }),
            Some(_) if matches!(self.consistency, Consistency::Vap { .. }) => {
                Err(SchemaError::ProcedureValueBound { table: table() })
            }
            _ => Ok(()),
        }?;
        self.filters.validate(self)
    }
}

impl Init {
    /// Fills one dense row with its first value.
    pub fn fill(self, row_id: u64, row: &mut [f32]) {
        match self {
            Self::Zero => row.fill(0.0),
            Self::Uniform { seed, low, high, columns, rest } => {
                let row_seed = mix(seed ^ mix(row_id));
                let (drawn, others) = row.split_at_mut((columns as usize).min(row.len()));
                for (column, number) in drawn.iter_mut().enumerate() {
                    // The upper 24 bits fill an f32's mantissa exactly.
                    let unit = (mix(row_seed.wrapping_add(column as u64)) >> 40) as f32 / (1u64 << 24) as f32;
                    *number = low + (high - low) * unit;
                }
                others.fill(rest);
            }
        }
    }
}

/// The finaliser of splitmix64: a cheap hash that spreads consecutive ids.
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Job {
    /// Checks that every schema can be, and that there is someone to work and somewhere to keep the tables.
    ///
    /// # Errors
    /// The first thing found wrong.
    pub fn validate(&self) -> Result<(), SchemaError> {
        let names = |i: usize| self.tables[..i].iter().any(|other| other.name == self.tables[i].name);
        for (i, table) in self.tables.iter().enumerate() {
            table.validate()?;
            if names(i) {
                return Err(SchemaError::SameName { table: table.name.clone() });
            }
        }
        if self.tables.is_empty() {
            return Err(SchemaError::NoneOf { what: "table" });
        }
        if self.workers() == 0 || self.workers_per_client.contains(&0) {
            return Err(SchemaError::NoneOf { what: "worker in every client" });
        }
        if self.shards == 0 {
            return Err(SchemaError::NoneOf { what: "shard" });
        }
        match self.budget {
            Some(Budget { bytes_per_second: bytes, .. }) if bytes < BYTES_PER_SECOND_MIN => {
                Err(SchemaError::Budget { bytes })
            }
            _ => Ok(()),
        }
    }

    /// How many workers the job has.
    #[must_use]
    pub fn workers(&self) -> u32 {
        self.workers_per_client.iter().sum()
    }

    /// The workers of `client`.
    #[must_use]
    pub fn workers_of(&self, client: ClientId) -> Range<u32> {
        let first: u32 = self.workers_per_client[..client.index()].iter().sum();
        first..first + self.workers_per_client[client.index()]
    }

    /// The client of `worker`.
    ///
    /// # Panics
    /// If the job has no such worker.
    #[must_use]
    pub fn client_of(&self, worker: WorkerId) -> ClientId {
        let clients = 0..self.workers_per_client.len() as u32;
        clients.map(ClientId).find(|&client| self.workers_of(client).contains(&worker.0)).expect("a worker of the job")
    }

    /// The schema of `table`.
    ///
    /// # Panics
    /// If the job has no such table.
    #[must_use]
    pub fn table(&self, table: TableId) -> &TableSchema {
        &self.tables[table.index()]
    }

    /// The strictest staleness bound of any table: how far a worker may run ahead of the slowest.
    #[must_use]
    pub fn staleness(&self) -> Option<u32> {
        self.tables.iter().filter_map(|table| table.consistency.staleness()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procedure::AdaGrad;

    #[test]
    fn placement_covers_every_row_once_and_ranges_are_consecutive() {
        for placement in [Placement::Hash, Placement::Range] {
            let table = TableSchema { chunk_rows: Some(4), placement, ..TableSchema::dense("t", 1003, 8) };
            let shards: Vec<u32> = (0..1003).map(|row| table.shard_of(row, 3).0).collect();
            for chunk in shards.chunks(4) {
                assert!(chunk.iter().all(|s| s == &chunk[0]), "a chunk lies on one shard");
            }
            for shard in 0..3 {
                let share = shards.iter().filter(|&&s| s == shard).count();
                assert!((200..=500).contains(&share), "{placement:?} gives {shard} {share} rows");
            }
            if placement == Placement::Range {
                assert!(shards.is_sorted());
            }
        }
    }

    #[test]
    fn a_uniform_row_depends_only_on_seed_row_and_column() {
        let init = Init::Uniform { seed: 7, low: -1.0, high: 1.0, columns: 3, rest: 9.0 };
        let mut a = [0.0; 4];
        let mut b = [0.0; 4];
        init.fill(5, &mut a);
        init.fill(5, &mut b);
        assert_eq!(a, b);
        assert_eq!(a[3], 9.0);
        assert!(a[..3].iter().all(|x| (-1.0..1.0).contains(x)));
        init.fill(6, &mut b);
        assert_ne!(a, b);
    }

    #[test]
    fn a_job_that_cannot_be_is_refused_with_its_reason() {
        let job = |tables: Vec<TableSchema>| Job { tables, workers_per_client: vec![1], shards: 1, budget: None };
        let vap = |bound| TableSchema { consistency: Consistency::Vap { bound }, ..TableSchema::dense("v", 1, 1) };
        let stored = TableSchema {
            read_my_writes: false,
            procedure: Some(Arc::new(AdaGrad { rate: 0.1 })),
            ..TableSchema::dense("s", 1, 1)
        };
        let cases = [
            (vec![], "a job needs at least one table"),
            (
                vec![TableSchema::dense("w", 5, 0)],
                "table 'w': a dense row needs between 1 and 268435456 numbers, not 0",
            ),
            (
                vec![TableSchema::dense("w", 0, 1)],
                "table 'w': a table may have between 1 and 1099511627776 rows, not 0",
            ),
            (vec![TableSchema::dense("w", 5, 1), TableSchema::dense("w", 5, 1)], "two tables are called 'w'"),
            (
                vec![TableSchema { rows: None, placement: Placement::Hash, ..stored.clone() }],
                "table 's': a stored procedure needs dense rows and a declared number of rows",
            ),
            (
                vec![TableSchema { kind: RowKind::Counts, ..stored.clone() }],
                "table 's': a stored procedure needs dense rows and a declared number of rows",
            ),
            (
                vec![TableSchema { read_my_writes: true, ..stored.clone() }],
                "table 's': workers cannot read their own writes where a stored procedure applies them",
            ),
            (
                vec![TableSchema { fan_in: 2, ..stored.clone() }],
                "table 's': a stored procedure takes updates one by one, not added up",
            ),
            (
                vec![TableSchema { fan_in: 0, ..TableSchema::dense("w", 5, 1) }],
                "table 'w': updates of at least 1 worker are added up, not of 0",
            ),
            (
                vec![TableSchema { consistency: Consistency::Vap { bound: 1.0 }, ..stored }],
                "table 's': the value bound is for updates that are added, not for a stored procedure's",
            ),
            (vec![vap(f32::NAN)], "table 'v': the value bound must be a number above zero, not NaN"),
        ];
        for (tables, sentence) in cases {
            assert_eq!(job(tables).validate().expect_err("cannot be").to_string(), sentence);
        }
    }
}
