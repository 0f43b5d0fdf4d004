//! How the replicas of all workers become one again: formula (9) as additions to tables under Bsp.
//!
//! Each array is a table. A worker adds `Δ/m + T` of what it touched, so only that travels, and the shards add in worker
//! order, so that every driver gives the same bits; or as a tree, in which those of one process are added up first. `Γ` is
//! one number per array: it travels with the scalars in a report, and multiplies the scale that the table's numbers are in
//! units of, which every worker keeps for itself.

use crate::error::Error;
use crate::worker::Worker;
use hemiola_core::row::RowRef;
use hemiola_core::splash::{ScalarChange, Shared, scale_may_stay};
use hemiola_core::{Consistency, Placement, Row, RowKind, Rows, TableId, TableSchema, Values};

/// Marks the engine's reports, so that observers of the algorithm's are not shown them.
pub(super) const ENGINE: f64 = 0.0;

/// Into how many chunks an array is cut at most: all of it travels at every synchronisation, so that every shard should
/// have about as much of it.
const CHUNKS: u64 = 256;

/// Says which table an array is. There is a copy of all tables for every group that tries out a degree.
pub(super) struct Exchange {
    arrays: usize,
    sparse: usize,
}

/// How a group's changes scale an array: the mean of `Γ`, and the units of the table's numbers afterwards.
struct Scale {
    gamma: f64,
    unit: f64,
    /// Whether the table's numbers change their units, because the scale would leave its bounds.
    fold: bool,
}

impl Scale {
    fn new(base: f64, gamma: f64) -> Self {
        let unit = base * gamma;
        if scale_may_stay(unit) { Self { gamma, unit, fold: false } } else { Self { gamma, unit: 1.0, fold: true } }
    }
}

/// The tables for the variables, and for so many groups.
pub(super) fn tables(shared: &Shared, groups: usize, fan_in: u32) -> Vec<TableSchema> {
    let bsp = |table| TableSchema { consistency: Consistency::Bsp, read_my_writes: false, fan_in, ..table };
    // A job has at least one table, an algorithm may have scalars only.
    let mut tables = Vec::new();
    if shared.arrays().len() + shared.sparse_arrays().len() == 0 {
        tables.push(TableSchema::dense("no arrays", 1, 1));
    }
    for group in 0..=groups {
        let called = |name: &str| if group == 0 { name.to_owned() } else { format!("{name} of group {group}") };
        for (name, array) in shared.arrays() {
            let (rows, width) = array.shape();
            let chunk_rows = Some((rows as u64).div_ceil(CHUNKS));
            let table = TableSchema::dense(&called(name), rows as u64, width as u32);
            tables.push(bsp(TableSchema { chunk_rows, placement: Placement::Range, ..table }));
        }
        for (name, _) in shared.sparse_arrays() {
            tables.push(bsp(TableSchema::keyed(&called(name), RowKind::Sparse)));
        }
    }
    tables
}

impl Exchange {
    pub(super) fn new(shared: &Shared) -> Self {
        Self { arrays: shared.arrays().len(), sparse: shared.sparse_arrays().len() }
    }

    /// The table of array `i` for a group; the sparse arrays are after the others.
    fn table(&self, group: usize, i: usize) -> TableId {
        TableId((group * (self.arrays + self.sparse) + i) as u32)
    }

    /// Puts what the variables begin with into the tables.
    pub(super) fn begin(&self, worker: &mut Worker, shared: &Shared) -> Result<(), Error> {
        if worker.id().0 == 0 {
            for i in 0..self.arrays + self.sparse {
                self.add_base(worker, shared, i, 1.0)?;
            }
        }
        worker.clock()
    }

    /// Adds what array `i` held at the last synchronisation, times `factor`, to its table.
    fn add_base(&self, worker: &mut Worker, shared: &Shared, i: usize, factor: f64) -> Result<(), Error> {
        let scaled = |number: f32| (f64::from(number) * factor) as f32;
        if let Some((_, array)) = shared.arrays().nth(i) {
            let base: Vec<f32> = array.base().iter().map(|number| scaled(*number)).collect();
            return self.add_rows(worker, 0, i, array.shape().1, &base);
        }
        let (_, array) = shared.sparse_arrays().nth(i - self.arrays).expect("as many arrays as tables");
        let base: Vec<_> = array.base().into_iter().map(|(index, number)| (index, scaled(number))).collect();
        self.add_entries(worker, 0, i, array.shape().1, &base)
    }

    /// Adds the rows of a dense array that are not zero.
    fn add_rows(
        &self,
        worker: &mut Worker,
        group: usize,
        i: usize,
        width: usize,
        numbers: &[f32],
    ) -> Result<(), Error> {
        let (mut rows, mut kept) = (Vec::new(), Vec::new());
        for (row, numbers) in (0..).zip(numbers.chunks(width)).filter(|(_, row)| row.iter().any(|x| *x != 0.0)) {
            rows.push(row);
            kept.extend_from_slice(numbers);
        }
        worker.inc(self.table(group, i), &rows, &Values::dense(width as u32, kept))
    }

    fn add_entries(
        &self,
        worker: &mut Worker,
        group: usize,
        i: usize,
        width: u64,
        entries: &[(u64, f32)],
    ) -> Result<(), Error> {
        let (mut ids, mut rows) = (Vec::new(), Vec::new());
        for row in entries.chunk_by(|a, b| a.0 / width == b.0 / width) {
            ids.push(row[0].0 / width);
            rows.push(Row::Sparse(row.iter().map(|(index, number)| ((index % width) as u32, *number)).collect()));
        }
        worker.inc(self.table(group, i), &ids, &Values::collect(&RowKind::Sparse, rows.iter()))
    }

    /// Adds what this replica, one of `m`, contributes to array `i`, in units of `unit`.
    fn contribute(
        &self,
        worker: &mut Worker,
        shared: &Shared,
        (group, i): (usize, usize),
        m: u32,
        unit: f64,
    ) -> Result<(), Error> {
        if let Some((_, array)) = shared.arrays().nth(i) {
            let (mut rows, mut numbers) = (Vec::new(), Vec::new());
            for row in array.touched() {
                rows.push(row as u64);
                array.contribute(row, m, unit, &mut numbers);
            }
            let numbers = Values::dense(array.shape().1 as u32, numbers);
            return worker.inc(self.table(group, i), &rows, &numbers);
        }
        let (_, array) = shared.sparse_arrays().nth(i - self.arrays).expect("as many arrays as tables");
        self.add_entries(worker, group, i, array.shape().1, &array.contribution(m, unit))
    }

    /// What of the changes travels in a report: three numbers of every scalar and one of every array.
    fn factors(shared: &Shared) -> Vec<f64> {
        let scalars = shared.scalars().map(|(_, scalar)| scalar.change());
        let mut factors: Vec<f64> = scalars.flat_map(|change| [change.gamma, change.delta, change.delayed]).collect();
        factors.extend(shared.arrays().map(|(_, array)| array.gamma()));
        factors.extend(shared.sparse_arrays().map(|(_, array)| array.gamma()));
        factors
    }

    /// Applies formula (9) to the scalars of a replica, and says how the arrays are scaled.
    fn combine(shared: &mut Shared, sums: &[f64], m: u32) -> Vec<Scale> {
        let (scalars, gammas) = sums.split_at(3 * shared.scalars().len());
        for (scalar, sum) in shared.scalars_mut().zip(scalars.as_chunks::<3>().0) {
            let [gamma, delta, delayed] = *sum;
            scalar.combine(&ScalarChange { gamma, delta, delayed }, m);
        }
        let arrays = shared.arrays().map(|(_, array)| array.base_scale());
        let sparse = shared.sparse_arrays().map(|(_, array)| array.base_scale());
        arrays.chain(sparse).zip(gammas).map(|(base, gamma)| Scale::new(base, gamma / f64::from(m))).collect()
    }

    /// Makes all replicas one, by formula (9) over the `m` workers that took part; `active` says whether this one did.
    pub(super) fn synchronise(
        &self,
        worker: &mut Worker,
        shared: &mut Shared,
        m: u32,
        active: bool,
    ) -> Result<(), Error> {
        let mut report = vec![ENGINE];
        report.extend(Self::factors(shared).into_iter().map(|factor| if active { factor } else { 0.0 }));
        let index = worker.report(&report);
        // From here on nobody fails any more: whoever has come to this point has all of the round.
        let sums = worker.totals(index)?;
        let scales = Self::combine(shared, &sums[1..], m);
        let first = worker.id().0 == 0;
        if scales.iter().any(|scale| scale.fold) {
            for (i, _) in scales.iter().enumerate().filter(|(_, scale)| scale.fold && first) {
                // To zero, exactly; what it is in the new units is added in the next clock.
                self.add_base(worker, shared, i, -1.0)?;
            }
            worker.clock()?;
        }
        let bases: Vec<f64> = shared.arrays().map(|(_, array)| array.base_scale()).collect();
        let sparse_bases: Vec<f64> = shared.sparse_arrays().map(|(_, array)| array.base_scale()).collect();
        for (i, (scale, base)) in scales.iter().zip(bases.iter().chain(&sparse_bases)).enumerate() {
            if scale.fold && first {
                self.add_base(worker, shared, i, scale.gamma * base)?;
            }
            if active {
                self.contribute(worker, shared, (0, i), m, scale.unit)?;
            }
        }
        if !scales.is_empty() {
            worker.clock()?;
        }
        let mut numbers = Vec::new();
        for (i, array) in shared.arrays_mut().enumerate() {
            self.read_rows(worker, 0, i, array.shape().0, &mut numbers)?;
            array.set(&numbers, scales[i].unit);
        }
        for (i, array) in (self.arrays..).zip(shared.sparse_arrays_mut()) {
            let entries = self.read_entries(worker, 0, i, array.shape())?;
            array.set(entries, scales[i].unit);
        }
        Ok(())
    }

    fn read_rows(
        &self,
        worker: &mut Worker,
        group: usize,
        i: usize,
        rows: usize,
        out: &mut Vec<f32>,
    ) -> Result<(), Error> {
        out.clear();
        worker.get_dense(self.table(group, i), &Rows::Range(0..rows as u64), out)
    }

    fn read_entries(
        &self,
        worker: &mut Worker,
        group: usize,
        i: usize,
        (rows, width): (u64, u64),
    ) -> Result<Vec<(u64, f32)>, Error> {
        let ids: Vec<u64> = (0..rows).collect();
        let values = worker.get(self.table(group, i), &ids)?;
        let mut entries = Vec::new();
        for (id, row) in ids.iter().zip(0..values.len()) {
            if let RowRef::Sparse(columns, numbers) = values.row(row) {
                entries.extend(columns.iter().zip(numbers).map(|(column, x)| (id * width + u64::from(*column), *x)));
            }
        }
        Ok(entries)
    }

    /// What formula (9) would make of the variables for each of several groups, of which this worker is in `mine`.
    pub(super) fn candidates(
        &self,
        worker: &mut Worker,
        shared: &Shared,
        sizes: &[u32],
        mine: usize,
    ) -> Result<Vec<Shared>, Error> {
        let factors = Self::factors(shared);
        let mut report = vec![ENGINE; 1 + factors.len() * sizes.len()];
        report[1 + mine * factors.len()..][..factors.len()].copy_from_slice(&factors);
        let index = worker.report(&report);
        let sums = worker.totals(index)?;
        for i in 0..self.arrays + self.sparse {
            self.contribute(worker, shared, (mine + 1, i), sizes[mine], 1.0)?;
        }
        if self.arrays + self.sparse > 0 {
            worker.clock()?;
        }
        let mut candidates = Vec::new();
        let mut numbers = Vec::new();
        for (group, &m) in sizes.iter().enumerate() {
            let mut candidate = shared.clone();
            candidate.revert();
            let sums = &sums[1 + group * factors.len()..][..factors.len()];
            let scales = Self::combine(&mut candidate, sums, m);
            for (i, array) in candidate.arrays_mut().enumerate() {
                let (rows, width) = array.shape();
                self.read_rows(worker, group + 1, i, rows, &mut numbers)?;
                let factor = scales[i].gamma * array.base_scale();
                let sum = |(base, x): (&f32, &f32)| (factor * f64::from(*base) + f64::from(*x)) as f32;
                let new: Vec<f32> = array.base().iter().zip(&numbers).map(sum).collect();
                self.clear_rows(worker, group + 1, i, width, &mut numbers)?;
                array.set(&new, 1.0);
            }
            for (i, array) in (self.arrays..).zip(candidate.sparse_arrays_mut()) {
                let entries = self.read_entries(worker, group + 1, i, array.shape())?;
                let factor = scales[i].gamma * array.base_scale();
                let mut new: std::collections::BTreeMap<u64, f32> =
                    array.base().into_iter().map(|(index, x)| (index, (factor * f64::from(x)) as f32)).collect();
                entries.iter().for_each(|(index, x)| *new.entry(*index).or_insert(0.0) += x);
                if worker.id().0 == 0 {
                    let negative: Vec<_> = entries.iter().map(|(index, x)| (*index, -x)).collect();
                    self.add_entries(worker, group + 1, i, array.shape().1, &negative)?;
                }
                array.set(new, 1.0);
            }
            candidates.push(candidate);
        }
        Ok(candidates)
    }

    /// Takes what a group's table holds out again, exactly, in the clock that the next synchronisation ends.
    fn clear_rows(
        &self,
        worker: &mut Worker,
        group: usize,
        i: usize,
        width: usize,
        numbers: &mut [f32],
    ) -> Result<(), Error> {
        if worker.id().0 != 0 {
            return Ok(());
        }
        numbers.iter_mut().for_each(|number| *number = -*number);
        self.add_rows(worker, group, i, width, numbers)
    }
}
