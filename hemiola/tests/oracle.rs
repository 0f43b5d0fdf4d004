//! The consistency oracle: random small clusters under random faults, with every read held against the definition.
//!
//! Each seed is a cluster, a job and a schedule. A row of the job's tables is the list of the identities of its
//! updates, or has a column per worker in which each update is a bit, so that a read shows exactly which updates are in
//! it, and so does a checkpoint, which must hold exactly those of the clocks before its own; a job that goes on from one
//! is held against the definition as well. Tables under Vap have a column per worker too, of multiples of 2⁻¹⁰, so that sums are exact.
//!
//! `HEMIOLA_SEEDS=2000` runs the seeds below that number, and `HEMIOLA_SEED=7` only that one.

use hemiola::checkpoint::Every;
use hemiola::filter::{KeyCache, Lz4, Zstd};
use hemiola::sim::{Config, Delays, Faults, Hazard, MemoryCheckpoint, Network, Saving, Servers, Straggler, run_traced};
use hemiola::{
    Budget, Consistency, Error, Event, Filter, Filters, Placement, Priority, RowKind, RowRef, RowType, Rows, Sabotage,
    TableId, TableSchema, Values, Worker,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How many seeds run unless the environment says otherwise.
const SEEDS: u64 = 200;
/// Every table has this many rows.
const ROWS: u64 = 6;
/// As many powers of two add up exactly in a dense row's number.
const BITS: u32 = 24;

/// One update, known by who made it, in which clock, and as the how-many-eth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Update {
    worker: u16,
    clock: u16,
    number: u32,
}

/// A row that is the list of its updates.
struct Identities;

impl RowType for Identities {
    fn name(&self) -> &str {
        "identities"
    }

    fn apply(&self, row: &mut Vec<u8>, update: &[u8]) {
        row.extend_from_slice(update);
    }

    fn coalesce(&self, earlier: &mut Vec<u8>, later: &[u8]) {
        earlier.extend_from_slice(later);
    }
}

impl Update {
    fn bytes(self) -> [u8; 8] {
        (u64::from(self.worker) << 48 | u64::from(self.clock) << 32 | u64::from(self.number)).to_le_bytes()
    }

    fn of(bytes: &[u8]) -> Self {
        let bits = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        Self { worker: (bits >> 48) as u16, clock: (bits >> 32) as u16, number: bits as u32 }
    }
}

/// A random number generator with what a scenario asks of it.
struct Dice(Xoshiro256PlusPlus);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    fn chance(&mut self, share: f64) -> bool {
        self.between(0.0, 1.0) < share
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Between one and three different rows.
    fn rows(&mut self) -> Vec<u64> {
        let mut rows: Vec<u64> = (0..=self.below(3)).map(|_| self.below(ROWS)).collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }
}

/// A cluster and a job, both from one seed.
struct Scenario {
    config: Config,
    tables: Vec<TableSchema>,
    clocks: u32,
}

/// Checkpoints for a cluster, from the seed alone, so that the schedules are the same without them.
fn saving(seed: u64) -> Option<Saving> {
    let mut dice = Dice::new(!seed);
    dice.chance(0.7).then(|| Saving {
        every: Every::Clocks(1 + dice.below(3) as u32),
        part_bytes: 1 + dice.below(64) as usize,
        part_seconds: 10f64.powf(dice.between(-5.0, -1.0)),
        resume: None,
    })
}

impl Scenario {
    fn new(seed: u64, sabotage: Sabotage) -> Self {
        let mut dice = Dice::new(seed);
        let nodes = 1 + dice.below(5) as u32;
        let mut config = Config { seed, sabotage, workers_per_node: 1 + dice.below(3) as u32, ..Config::new(nodes) };
        let servers = 1 + dice.below(3) as u32;
        config.servers = if dice.chance(0.5) { Servers::Apart(servers) } else { Servers::Beside(servers.min(nodes)) };
        config.network = Network {
            bandwidth_out: 10f64.powf(dice.between(5.0, 8.0)),
            bandwidth_in: 10f64.powf(dice.between(5.0, 8.0)),
            latency: dice.between(0.0, 0.003),
            jitter: if dice.chance(0.7) { dice.between(0.0, 0.02) } else { 0.0 },
            shard_seconds_per_byte: if dice.chance(0.3) { 1e-6 } else { 0.0 },
        };
        config.faults = faults(&mut dice, nodes);
        config.record_events = true;
        config.saving = saving(seed);
        let workers = nodes * config.workers_per_node;
        let tables = (0..1 + dice.below(3)).map(|i| table(&mut dice, i, workers)).collect();
        let clocks = 3 + dice.below(5) as u32;
        config.budget = dice.chance(0.5).then(|| budget(&mut dice));
        // Half of the clusters have filters, which must not change anything that a read shows.
        let compression = if seed % 4 == 1 { Filter::encoding(Lz4) } else { Filter::encoding(Zstd) };
        let chain = vec![Filter::encoding(KeyCache { ids_max: 12 }), compression];
        if seed % 2 == 1 {
            config.filters = Filters { updates: chain.clone(), rows: chain };
        }
        Self { config, tables, clocks }
    }

    /// The strictest bound of any table, by which workers are kept together.
    fn strictest(&self) -> Option<u32> {
        self.tables.iter().filter_map(|table| table.consistency.staleness()).min()
    }
}

fn faults(dice: &mut Dice, nodes: u32) -> Faults {
    let mut faults = Faults::default();
    if dice.chance(0.4) {
        faults.stragglers =
            vec![Straggler { node: dice.below(u64::from(nodes)) as u32, factor: dice.between(1.0, 10.0) }];
    }
    if dice.chance(0.4) {
        faults.pauses = Hazard { per_second: dice.between(1.0, 100.0), seconds: dice.between(0.0, 0.05) };
    }
    if dice.chance(0.3) {
        faults.delays = Delays { share: dice.between(0.0, 0.2), seconds: dice.between(0.0, 0.1) };
    }
    if dice.chance(0.5) {
        faults.lost_connections = Hazard { per_second: dice.between(1.0, 8.0), seconds: dice.between(0.0, 0.05) };
    }
    faults
}

fn budget(dice: &mut Dice) -> Budget {
    let priorities = [Priority::Random, Priority::RoundRobin, Priority::AbsoluteMagnitude, Priority::RelativeMagnitude];
    let bytes_per_second = 10f64.powf(dice.between(4.1, 7.5)) as u64;
    Budget { bytes_per_second, priority: priorities[dice.below(4) as usize] }
}

fn table(dice: &mut Dice, index: u64, workers: u32) -> TableSchema {
    let staleness = dice.below(5) as u32;
    let bound = [0.25, 1.0, 2.0][dice.below(3) as usize];
    let consistency = match dice.below(6) {
        0 => Consistency::Bsp,
        1 => Consistency::Ssp { staleness },
        2 | 3 => Consistency::Essp { staleness },
        4 => Consistency::Async,
        _ => Consistency::Vap { bound },
    };
    let dense = matches!(consistency, Consistency::Vap { .. }) || dice.chance(0.4);
    let kind = if dense { RowKind::Dense { width: workers } } else { RowKind::Custom(Arc::new(Identities)) };
    let sized = dice.chance(0.5);
    TableSchema {
        consistency,
        rows: sized.then_some(ROWS),
        chunk_rows: Some(1 + dice.below(3)),
        placement: if sized && dice.chance(0.5) { Placement::Range } else { Placement::Hash },
        read_my_writes: dice.chance(0.7),
        ..TableSchema::keyed(&format!("table {index}"), kind)
    }
}

/// What all workers have done so far, in the order of virtual time.
#[derive(Default)]
struct Log {
    /// The updates of each row of each table.
    updates: BTreeMap<(u32, u64), Vec<Update>>,
    /// Under Vap: each worker's additions to its column of each row, with their clocks.
    additions: BTreeMap<(u32, u64, u32), Vec<(u32, f32)>>,
    /// How many clocks each worker has finished.
    finished: Vec<u32>,
    reads: u64,
    /// How often an update of an unfinished clock was seen by another worker.
    seen_early: u64,
}

impl Log {
    /// The updates whose bits are in a row's numbers.
    fn bits(&self, index: usize, row: u64, numbers: &[f32]) -> Vec<Update> {
        let made = self.updates.get(&(index as u32, row)).map_or(&[][..], Vec::as_slice);
        let mut shown = Vec::new();
        for (worker, &number) in (0..).zip(numbers) {
            for bit in (0..u64::BITS).filter(|bit| number as u64 & (1 << bit) != 0) {
                let known = made.iter().find(|update| (update.worker, update.number) == (worker, bit));
                shown.push(known.copied().unwrap_or(Update { worker, clock: u16::MAX, number: bit }));
            }
        }
        shown
    }

    /// Whether a checkpoint holds exactly the updates of the clocks before its own.
    fn check_checkpoint(&self, tables: &[TableSchema], checkpoint: &MemoryCheckpoint) -> Result<(), String> {
        let mut rows: BTreeMap<(u32, u64), hemiola::Row> = BTreeMap::new();
        for part in &checkpoint.parts {
            let ids = part.spans.chunks(2).flat_map(|span| span[0]..span[1]);
            for (i, row) in ids.enumerate() {
                if rows.insert((part.table.0, row), part.values.row(i).to_row()).is_some() {
                    return Err(format!("row {row} of table {} is in it twice", part.table.0));
                }
            }
        }
        for (index, schema) in tables.iter().enumerate() {
            for row in 0..ROWS {
                let value = rows.remove(&(index as u32, row)).unwrap_or_else(|| schema.kind.zero());
                self.check_saved_row(index, row, &value, checkpoint.clock.0)
                    .map_err(|what| format!("row {row} of '{}' ({:?}): {what}", schema.name, schema.consistency))?;
            }
        }
        if rows.is_empty() { Ok(()) } else { Err(format!("it has rows that nobody wrote: {rows:?}")) }
    }

    fn check_saved_row(&self, index: usize, row: u64, value: &hemiola::Row, clock: u32) -> Result<(), String> {
        let made = self.updates.get(&(index as u32, row)).map_or(&[][..], Vec::as_slice);
        let mut expected: Vec<Update> = made.iter().copied().filter(|update| u32::from(update.clock) < clock).collect();
        expected.sort_unstable();
        let mut found = match value {
            hemiola::Row::Dense(numbers) if self.additions.keys().any(|key| key.0 == index as u32) => {
                for (worker, &number) in (0..).zip(numbers) {
                    let additions = self.additions.get(&(index as u32, row, worker)).map_or(&[][..], Vec::as_slice);
                    let sum: f32 = additions.iter().filter(|(made, _)| *made < clock).map(|(_, added)| added).sum();
                    if sum != number {
                        return Err(format!("worker {worker} added {sum} before the clock, and {number} is in it"));
                    }
                }
                return Ok(());
            }
            hemiola::Row::Dense(numbers) => self.bits(index, row, numbers),
            hemiola::Row::Custom(bytes) => bytes.chunks_exact(8).map(Update::of).collect(),
            other => return Err(format!("it is of another kind: {other:?}")),
        };
        found.sort_unstable();
        if found == expected { Ok(()) } else { Err(format!("it holds {found:?}, not {expected:?}")) }
    }

    /// Forgets what was done in `clock` and later.
    fn go_back(&mut self, clock: u32) {
        self.updates.values_mut().for_each(|made| made.retain(|update| u32::from(update.clock) < clock));
        self.additions.values_mut().for_each(|made| made.retain(|(made, _)| *made < clock));
        self.finished.fill(clock);
        self.reads = 0;
    }
}

/// One worker of a scenario.
struct Player<'a> {
    scenario: &'a Scenario,
    log: &'a Mutex<Log>,
    worker: &'a mut Worker,
    dice: Dice,
    clock: u32,
    made: u32,
}

type Checked = Result<(), Error>;

fn violation(sentence: String) -> Error {
    Error::program(sentence)
}

impl Player<'_> {
    fn play(&mut self) -> Checked {
        if let Some(state) = self.worker.resumed() {
            self.made = u32::from_le_bytes(state.try_into().expect("four bytes"));
            self.clock = self.worker.now()?.0;
        }
        while self.clock < self.scenario.clocks {
            self.check_start()?;
            for _ in 0..self.dice.below(7) {
                self.act()?;
            }
            lock(self.log).finished[self.worker.id().index()] += 1;
            self.clock += 1;
            self.worker.clock()?;
            if self.worker.checkpoint_due() {
                self.worker.save(&[&self.made.to_le_bytes()])?;
            }
        }
        self.check_start()?;
        let rows: Vec<u64> = (0..ROWS).collect();
        for index in 0..self.scenario.tables.len() {
            self.read(index, &rows, true)?;
        }
        Ok(())
    }

    fn act(&mut self) -> Checked {
        let index = self.dice.below(self.scenario.tables.len() as u64) as usize;
        let table = TableId(index as u32);
        let rows = self.dice.rows();
        match self.dice.below(20) {
            0..6 => self.read(index, &rows, false),
            6 => self.read(index, &rows, true),
            7..13 => match self.scenario.tables[index].consistency {
                Consistency::Vap { bound } => self.add(index, &rows, bound),
                _ if self.can_edit(index) && self.dice.chance(0.5) => self.edit(index, &rows),
                _ => self.write(index, &rows),
            },
            13 | 14 => self.worker.intend(table, &Rows::List(&rows)),
            _ => {
                let units = self.dice.below(5000);
                self.worker.work(units)
            }
        }
    }

    /// No worker starts work in clock c before every worker has finished clock c − s − 1.
    fn check_start(&self) -> Checked {
        let Some(staleness) = self.scenario.strictest() else { return Ok(()) };
        let slowest = lock(self.log).finished.iter().copied().min().unwrap_or_default();
        if slowest + staleness < self.clock {
            let (worker, clock) = (self.worker.id(), self.clock);
            return Err(violation(format!(
                "{worker} started clock {clock} under staleness {staleness} when the slowest was at clock {slowest}"
            )));
        }
        Ok(())
    }

    /// Takes note of an update of a row, and gives it as the row's kind has it: nothing where a number is full.
    fn make(&mut self, index: usize, row: u64) -> hemiola::Row {
        let id = self.worker.id().0;
        let mut log = lock(self.log);
        let made = log.updates.entry((index as u32, row)).or_default();
        let update = |number| Update { worker: id as u16, clock: self.clock as u16, number };
        let RowKind::Dense { width } = self.scenario.tables[index].kind else {
            self.made += 1;
            made.push(update(self.made));
            return hemiola::Row::Custom(update(self.made).bytes().to_vec());
        };
        let mut numbers = vec![0.0; width as usize];
        let bit = made.iter().filter(|update| u32::from(update.worker) == id).count() as u32;
        if bit < BITS {
            made.push(update(bit));
            numbers[id as usize] = f32::from(2u8).powi(bit as i32);
        }
        hemiola::Row::Dense(numbers)
    }

    fn write(&mut self, index: usize, rows: &[u64]) -> Checked {
        let updates: Vec<hemiola::Row> = rows.iter().map(|&row| self.make(index, row)).collect();
        let values = Values::collect(&self.scenario.tables[index].kind, updates.iter());
        self.worker.inc(TableId(index as u32), rows, &values)
    }

    fn can_edit(&self, index: usize) -> bool {
        let schema = &self.scenario.tables[index];
        matches!(schema.kind, RowKind::Dense { .. }) && schema.rows.is_some() && schema.read_my_writes
    }

    /// Reads and changes rows in place.
    fn edit(&mut self, index: usize, rows: &[u64]) -> Checked {
        let table = TableId(index as u32);
        let mut lease = self.worker.lease(table, &Rows::List(rows))?;
        lock(self.log).reads += 1;
        for &row in rows {
            let numbers = lease.row_mut(row).expect("a row that was lent");
            self.check_row(index, row, RowRef::Dense(numbers), false)?;
            let hemiola::Row::Dense(update) = self.make(index, row) else { unreachable!("only dense rows are lent") };
            numbers.iter_mut().zip(update).for_each(|(number, added)| *number += added);
        }
        self.worker.give_back(table, lease)
    }

    /// Adds to this worker's column, never more at once than the last clock's bound.
    fn add(&mut self, index: usize, rows: &[u64], bound: f32) -> Checked {
        let (id, width) = (self.worker.id().0, self.worker.workers());
        let most = (1024.0 * bound / (self.scenario.clocks as f32 + 1.0).sqrt()) as u64;
        let mut numbers = vec![0.0; rows.len() * width as usize];
        for row in numbers.chunks_exact_mut(width as usize) {
            row[id as usize] = (self.dice.below(2 * most + 1) as f32 - most as f32) / 1024.0;
        }
        let table = TableId(index as u32);
        if self.can_edit(index) && self.dice.chance(0.3) {
            lock(self.log).reads += 1;
            self.worker.edit(table, &Rows::List(rows), |lease| {
                for (row, added) in rows.iter().zip(numbers.chunks_exact(width as usize)) {
                    let lent = lease.row_mut(*row).expect("a row that was lent");
                    lent.iter_mut().zip(added).for_each(|(number, added)| *number += added);
                }
            })?;
        } else {
            self.worker.inc(table, rows, &Values::dense(width, numbers.clone()))?;
        }
        let mut log = lock(self.log);
        for (row, added) in rows.iter().zip(numbers.chunks_exact(width as usize)) {
            let additions = log.additions.entry((index as u32, *row, id)).or_default();
            additions.push((self.clock, added[id as usize]));
        }
        Ok(())
    }

    fn read(&mut self, index: usize, rows: &[u64], latest: bool) -> Checked {
        let table = TableId(index as u32);
        let dense = if let RowKind::Dense { width } = self.scenario.tables[index].kind { Some(width) } else { None };
        let values = match dense {
            _ if latest => self.worker.get_latest(table, rows)?,
            Some(width) if self.dice.chance(0.5) => {
                let mut numbers = Vec::new();
                self.worker.get_dense(table, &Rows::List(rows), &mut numbers)?;
                Values::dense(width, numbers)
            }
            _ => self.worker.get(table, rows)?,
        };
        lock(self.log).reads += 1;
        rows.iter().enumerate().try_for_each(|(i, &row)| self.check_row(index, row, values.row(i), latest))
    }

    fn check_row(&self, index: usize, row: u64, value: RowRef<'_>, latest: bool) -> Checked {
        let schema = &self.scenario.tables[index];
        let checked = match (value, schema.consistency) {
            (RowRef::Dense(numbers), Consistency::Vap { .. }) => self.check_numbers(index, row, numbers, latest),
            (RowRef::Dense(numbers), _) => self.check_updates(index, row, self.bits(index, row, numbers), latest),
            (RowRef::Custom(bytes), _) => {
                self.check_updates(index, row, bytes.chunks_exact(8).map(Update::of).collect(), latest)
            }
            (other, _) => Err(format!("it is of another kind: {other:?}")),
        };
        checked.map_err(|sentence| {
            violation(format!(
                "{} at clock {} read row {row} of '{}' ({:?}, read-my-writes {}, latest {latest}) at {} s: {sentence}",
                self.worker.id(),
                self.clock,
                schema.name,
                schema.consistency,
                schema.read_my_writes,
                self.worker.seconds(),
            ))
        })
    }

    /// The updates whose bits are in a row's numbers.
    fn bits(&self, index: usize, row: u64, numbers: &[f32]) -> Vec<Update> {
        lock(self.log).bits(index, row, numbers)
    }

    /// Whether exactly those updates are in a row that must be, and none that must not.
    fn check_updates(&self, index: usize, row: u64, mut shown: Vec<Update>, latest: bool) -> Result<(), String> {
        let schema = &self.scenario.tables[index];
        let staleness = schema.consistency.staleness();
        let mut log = lock(self.log);
        let made = log.updates.get(&(index as u32, row)).map_or(&[][..], Vec::as_slice);
        let mut seen_early = 0;
        shown.sort_unstable();
        if let Some(pair) = shown.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("{:?} is in it twice", pair[0]));
        }
        let own = |update: &Update| schema.read_my_writes && u32::from(update.worker) == self.worker.id().0;
        for update in made {
            let age = self.clock.saturating_sub(u32::from(update.clock));
            let guaranteed = if latest { age > 0 } else { staleness.is_some_and(|staleness| age > staleness) };
            if (guaranteed || own(update)) && shown.binary_search(update).is_err() {
                return Err(format!("{update:?} is missing"));
            }
        }
        for update in &shown {
            if !made.contains(update) {
                return Err(format!("nobody made {update:?}"));
            }
            let newest = staleness.map(|staleness| self.clock + staleness);
            if !own(update) && newest.is_some_and(|newest| u32::from(update.clock) >= newest) {
                return Err(format!("{update:?} is too new"));
            }
            if !own(update) && u32::from(update.clock) >= log.finished[usize::from(update.worker)] {
                // With bandwidth to spare updates are sent early, where the window has room for them.
                if self.scenario.config.budget.is_none() || schema.consistency == Consistency::Bsp {
                    return Err(format!("{update:?} is of an unfinished clock"));
                }
                seen_early += 1;
            }
        }
        log.seen_early += seen_early;
        Ok(())
    }

    /// Whether what others have added and this worker does not see is within the bound.
    fn check_numbers(&self, index: usize, row: u64, numbers: &[f32], latest: bool) -> Result<(), String> {
        let schema = &self.scenario.tables[index];
        let log = lock(self.log);
        for (worker, &seen) in (0..).zip(numbers) {
            let additions = log.additions.get(&(index as u32, row, worker)).map_or(&[][..], Vec::as_slice);
            let sums = std::iter::once(0.0).chain(additions.iter().scan(0.0, |sum, (_, x)| {
                *sum += x;
                Some(*sum)
            }));
            let sums: Vec<f32> = sums.collect();
            // Visibility is in order, so what is seen is the sum of some first ones. Several may have that sum; the
            // fewest leave the oldest unseen, and its bound is the largest.
            let Some(first_unseen) = sums.iter().position(|&sum| sum == seen) else {
                return Err(format!("worker {worker}'s sum {seen} was never {sums:?}"));
            };
            let unseen = sums[additions.len()] - seen;
            let own = schema.read_my_writes && worker == self.worker.id().0;
            let finished = latest && additions.iter().all(|(clock, _)| *clock < self.clock);
            if unseen != 0.0 && (own || finished) {
                return Err(format!("{unseen} of worker {worker} are missing from {seen}"));
            }
            let clock = additions.get(first_unseen).map_or(0, |addition| addition.0);
            let bound = schema.consistency.transit_bound(hemiola::Clock(clock)).unwrap_or(f32::INFINITY);
            if worker != self.worker.id().0 && unseen.abs() > bound {
                return Err(format!("{unseen} of worker {worker} since its clock {clock} are unseen, beyond {bound}"));
            }
        }
        Ok(())
    }
}

/// A worker that found a violation may have held the lock; the log is as good as before.
fn lock(log: &Mutex<Log>) -> std::sync::MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one seed; says how many reads were checked and how often an update was seen early, or what was wrong.
fn check(seed: u64, sabotage: Sabotage) -> Result<(u64, u64), String> {
    let mut scenario = Scenario::new(seed, sabotage);
    let workers = scenario.config.nodes * scenario.config.workers_per_node;
    let mut log = Log { finished: vec![0; workers as usize], ..Log::default() };
    let (mut reads, checkpoints) =
        run_scenario(&scenario, &mut log).map_err(|error| format!("seed {seed}: {error}"))?;
    for checkpoint in &checkpoints {
        let checked = log.check_checkpoint(&scenario.tables, checkpoint);
        checked.map_err(|error| format!("seed {seed}: the checkpoint of {}: {error}", checkpoint.clock))?;
    }
    // Any of them will do to go on from, on another number of servers.
    if let (Some(checkpoint), Some(saving)) = (checkpoints.first(), &mut scenario.config.saving) {
        saving.resume = Some(Arc::new(checkpoint.clone()));
        scenario.config.servers = Servers::Apart(1 + (seed % 4) as u32);
        scenario.config.seed = !seed;
        log.go_back(checkpoint.clock.0);
        let resumed = run_scenario(&scenario, &mut log);
        reads += resumed.map_err(|error| format!("seed {seed}, from {}: {error}", checkpoint.clock))?.0;
    }
    Ok((reads, log.seen_early))
}

fn run_scenario(scenario: &Scenario, log: &mut Log) -> Result<(u64, Vec<MemoryCheckpoint>), String> {
    let shared = Mutex::new(std::mem::take(log));
    let program = |worker: &mut Worker| {
        let dice = Dice::new(scenario.config.seed.wrapping_mul(1000).wrapping_add(u64::from(worker.id().0)));
        Player { scenario, log: &shared, worker, dice, clock: 0, made: 0 }.play()?;
        Ok(Vec::new())
    };
    let outcome = run_traced(&scenario.config, &scenario.tables, &program, &mut |_| {});
    *log = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (_, trace) = outcome.map_err(|error| error.to_string())?;
    let recorded = trace.events.iter().filter(|(_, event)| matches!(event, Event::Read { .. })).count() as u64;
    if recorded != log.reads {
        return Err(format!("{} reads were made and {recorded} recorded", log.reads));
    }
    Ok((log.reads, trace.checkpoints))
}

/// The seeds to run.
fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number of seeds"));
    match (number("HEMIOLA_SEED"), number("HEMIOLA_SEEDS")) {
        (Some(seed), _) => vec![seed],
        (None, count) => (0..count.unwrap_or(SEEDS)).collect(),
    }
}

#[test]
fn every_read_of_every_schedule_keeps_to_the_definition() {
    let seeds = seeds();
    let next = AtomicU64::new(0);
    let (reads, seen_early) = (AtomicU64::new(0), AtomicU64::new(0));
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                    match check(seed, Sabotage::None) {
                        Ok((checked, early)) => {
                            reads.fetch_add(checked, Ordering::Relaxed);
                            seen_early.fetch_add(early, Ordering::Relaxed);
                        }
                        Err(sentence) => failures.lock().expect("nobody panics").push(sentence),
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("nobody panicked");
    assert!(failures.is_empty(), "{} of {} seeds failed:\n{}", failures.len(), seeds.len(), failures.join("\n"));
    assert!(reads.into_inner() >= 10 * seeds.len() as u64, "the schedules hardly read anything");
    let early = seen_early.into_inner();
    assert!(seeds.len() < SEEDS as usize || early >= seeds.len() as u64, "hardly anything was sent early: {early}");
}

/// Whether the oracle catches a planted fault within so many seeds, all of which pass without it.
fn catches(fault: Sabotage, seeds: u64, sentences: &[&str]) {
    let caught = (0..seeds).find_map(|seed| check(seed, fault).err().map(|sentence| (seed, sentence)));
    let (seed, sentence) = caught.unwrap_or_else(|| panic!("{fault:?} was not caught within {seeds} seeds"));
    assert!(sentences.iter().any(|expected| sentence.contains(expected)), "{fault:?}: {sentence}");
    for seed in 0..=seed {
        check(seed, Sabotage::None).unwrap_or_else(|sentence| panic!("without {fault:?}: {sentence}"));
    }
}

#[test]
fn a_bound_that_is_off_by_one_is_caught() {
    catches(Sabotage::BoundOffByOne, 20, &["is missing", "started clock"]);
}

#[test]
fn a_dropped_call_back_is_caught() {
    catches(Sabotage::DropCallback, 20, &["is missing", "are missing"]);
}

#[test]
fn an_update_applied_twice_is_caught() {
    // Twice the bit of an update is the bit of another.
    catches(Sabotage::ApplyTwice, 20, &["is in it twice", "was never", "is missing", "nobody made"]);
}

#[test]
fn a_message_lost_by_a_reconnection_is_caught() {
    catches(Sabotage::LoseAfterReconnect, 40, &["missing", "every worker waits", "was never"]);
}

#[test]
fn a_checkpoint_with_newer_updates_is_caught() {
    catches(Sabotage::TornCheckpoint, 40, &["it holds", "before the clock"]);
}
