//! What filters do to a job: encoding ones change nothing but the bytes, and selection ones lose no more than they
//! declare.

use hemiola::filter::{Direction, Entry, Feedback, Kkt, RandomSkip, Reason, Selection, Significant, list};
use hemiola::{
    Clock, Consistency, Deployment, Error, Filter, Filters, Outcome, Procedure, Rows, TableId, TableSchema, Values,
    Worker, sim,
};
use std::sync::Arc;

const TABLE: TableId = TableId(0);
const ROWS: u64 = 40;
const WIDTH: usize = 3;
const CLOCKS: u32 = 12;
const NODES: u32 = 3;
const THRESHOLD: f32 = 0.25;

/// What a worker adds to a number of a row in a clock: multiples of 2⁻¹⁰ below 1/8, so that sums are exact.
fn update(worker: u32, clock: u32, row: u64, column: usize) -> f32 {
    let mut bits = u64::from(worker) << 48 ^ u64::from(clock) << 32 ^ row << 8 ^ column as u64;
    for _ in 0..3 {
        bits = (bits ^ bits >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    ((bits >> 40) % 257) as f32 / 1024.0 - 0.125
}

/// The sum of everything that some workers have added before `clock`.
fn truth(workers: std::ops::Range<u32>, clock: u32, row: u64, column: usize) -> f32 {
    let of = |worker| (0..clock).map(move |clock| update(worker, clock, row, column)).sum::<f32>();
    workers.map(of).sum()
}

fn cluster() -> sim::Config {
    // Every shard is on a node of its own, so that everything travels.
    sim::Config { servers: sim::Servers::Apart(2), ..sim::Config::new(NODES) }
}

fn schema(consistency: Consistency, filters: Filters) -> TableSchema {
    TableSchema { consistency, filters, chunk_rows: Some(4), ..TableSchema::dense("numbers", ROWS, WIDTH as u32) }
}

fn updates(filters: Vec<Filter>) -> Filters {
    Filters { updates: filters, rows: Vec::new() }
}

/// Every worker changes every row in every clock, and flushes before the last. `check` sees each read.
fn run(
    table: TableSchema,
    check: impl Fn(&Worker, u32, &[f32]) -> Result<(), String> + Sync,
) -> Result<Outcome, Error> {
    let program = |worker: &mut Worker| {
        let (all, me) = ((0..ROWS).collect::<Vec<u64>>(), worker.id().0);
        let mut numbers = Vec::new();
        for clock in 0..CLOCKS {
            worker.get_dense(TABLE, &Rows::List(&all), &mut numbers)?;
            check(worker, clock, &numbers).map_err(Error::program)?;
            let added = (0..ROWS).flat_map(|row| (0..WIDTH).map(move |column| update(me, clock, row, column)));
            worker.inc(TABLE, &all, &Values::dense(WIDTH as u32, added.collect()))?;
            if clock + 1 == CLOCKS {
                worker.flush()?;
            }
            worker.clock()?;
        }
        let latest = worker.get_latest(TABLE, &all)?;
        let Values::Dense { numbers, .. } = latest else { unreachable!("the table is dense") };
        Ok(numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
    };
    hemiola::run(&Deployment::Sim(cluster()), &[table], program)
}

fn numbers(result: &[u8]) -> Vec<f32> {
    result.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

fn each() -> impl Iterator<Item = (usize, u64, usize)> {
    (0..ROWS).flat_map(|row| (0..WIDTH).map(move |column| (row as usize * WIDTH + column, row, column)))
}

/// Whether every worker ends with the sum of all updates.
fn assert_whole(outcome: &Outcome) {
    for result in &outcome.results {
        let numbers = numbers(result);
        for (at, row, column) in each() {
            assert_eq!(numbers[at], truth(0..NODES, CLOCKS, row, column), "row {row}, column {column}");
        }
    }
}

#[test]
fn encoding_filters_change_no_bit_and_fewer_bytes_travel() {
    for consistency in [Consistency::Bsp, Consistency::Essp { staleness: 1 }, Consistency::Ssp { staleness: 1 }] {
        let sent = |outcome: &Outcome| -> u64 {
            outcome.splits.iter().map(|split| split.bytes_sent + split.bytes_received).sum()
        };
        let plain = run(schema(consistency, Filters::default()), |_, _, _| Ok(())).expect("no filters");
        for list in ["key-cache", "lz4", "zstd", "key-cache,zstd"] {
            let filters = list::parse(list, 0).expect("a list of filters");
            let filtered = run(schema(consistency, filters), |_, _, _| Ok(())).expect("filters that work");
            assert_eq!(filtered.results, plain.results, "{consistency:?}, {list}");
            if list.contains("key-cache") {
                assert!(sent(&filtered) < sent(&plain) * 4 / 5, "{} of {}", sent(&filtered), sent(&plain));
                let saving = &filtered.savings[0];
                assert_eq!((saving.filter.as_str(), saving.direction), ("key-cache", Direction::Updates));
                assert!(saving.bytes_out < saving.bytes_in * 4 / 5, "{saving:?}");
            }
        }
    }
}

#[test]
fn what_is_not_significant_waits_and_everything_arrives_with_a_flush() {
    let filters = || updates(vec![Filter::selection(Significant { threshold: THRESHOLD })]);
    let check = |worker: &Worker, clock: u32, read: &[f32]| {
        let me = worker.id().0;
        for (at, row, column) in each() {
            let missing = (truth(0..NODES, clock, row, column) - read[at]).abs();
            if missing > THRESHOLD * (NODES - 1) as f32 {
                return Err(format!("worker {me} misses {missing} of row {row} at clock {clock}"));
            }
        }
        Ok(())
    };
    let outcome = run(schema(Consistency::Bsp, filters()), check).expect("what is missing is small");
    assert_whole(&outcome);
    let saving = &outcome.savings[0];
    assert!(saving.bytes_out < saving.bytes_in && saving.bytes_out > 0, "{saving:?}");
    // With bounds a read may also miss what is new, and still everything arrives.
    for consistency in [Consistency::Essp { staleness: 2 }, Consistency::Ssp { staleness: 1 }, Consistency::Async] {
        assert_whole(&run(schema(consistency, filters()), |_, _, _| Ok(())).expect("filters that work"));
    }
}

#[test]
fn a_worker_goes_on_seeing_what_was_kept_of_its_own_updates() {
    // Nothing ever travels before the flush, so a worker sees its own updates and no others.
    let filters = updates(vec![Filter::selection(Significant { threshold: 1e9 })]);
    let check = |worker: &Worker, clock: u32, read: &[f32]| {
        let me = worker.id().0;
        let wrong = each().find(|&(at, row, column)| read[at] != truth(me..me + 1, clock, row, column));
        wrong.map_or(Ok(()), |(_, row, _)| Err(format!("worker {me} reads another row {row} at clock {clock}")))
    };
    assert_whole(&run(schema(Consistency::Bsp, filters), check).expect("workers see their own"));
}

#[test]
fn random_skip_loses_exactly_what_it_skips_and_nothing_with_feedback() {
    let skip = RandomSkip { share: 0.4, seed: 11 };
    let lossy = updates(vec![Filter::selection(skip)]);
    let outcome = run(schema(Consistency::Bsp, lossy), |_, _, _| Ok(())).expect("filters that work");
    let travels = |worker: u32, clock: u32, row: u64| {
        let change = hemiola::RowRef::Dense(&[]);
        let entry = Entry { row, clock: Clock(clock), sender: worker, change, value: None };
        clock + 1 == CLOCKS || skip.travels(&entry).expect("it can always tell")
    };
    for (at, row, column) in each() {
        let of = |worker| {
            let sent = (0..CLOCKS).filter(move |&clock| travels(worker, clock, row));
            sent.map(move |clock| update(worker, clock, row, column)).sum::<f32>()
        };
        assert_eq!(numbers(&outcome.results[0])[at], (0..NODES).map(of).sum::<f32>(), "row {row}");
    }
    let kept = updates(vec![Filter::selection(Feedback(Arc::new(skip)))]);
    let outcome = run(schema(Consistency::Bsp, kept), |_, _, _| Ok(())).expect("filters that work");
    assert_whole(&outcome);
}

#[test]
fn rows_that_hardly_changed_are_not_pushed_and_the_latest_are_whole() {
    let filters = Filters { updates: Vec::new(), rows: vec![Filter::selection(Significant { threshold: THRESHOLD })] };
    let check = |worker: &Worker, clock: u32, read: &[f32]| {
        for (at, row, column) in each() {
            let missing = (truth(0..NODES, clock, row, column) - read[at]).abs();
            if missing > THRESHOLD {
                return Err(format!("{} misses {missing} of row {row} at clock {clock}", worker.id()));
            }
        }
        Ok(())
    };
    let table = schema(Consistency::Bsp, filters);
    let refused = run(table.clone(), |_, _, _| Ok(())).expect_err("workers read their own writes").to_string();
    let reason = "needs workers that do not read their own writes, which could hide what it holds back";
    assert_eq!(refused, format!("table 'numbers': filter 'significant' {reason}"));
    let table = TableSchema { read_my_writes: false, ..table };
    let outcome = run(table, check).expect("what is missing is small");
    assert_whole(&outcome);
    let saving = &outcome.savings[0];
    assert_eq!((saving.direction, saving.filter.as_str()), (Direction::Rows, "significant"));
    assert!(saving.bytes_out < saving.bytes_in && saving.bytes_out > 0, "{saving:?}");
}

/// `w ← soft(w − rate · g, rate · lambda)`: the proximal step of an ℓ1 penalty.
#[derive(Debug)]
struct Proximal {
    rate: f32,
    lambda: f32,
}

impl Procedure for Proximal {
    fn apply(&self, row: &mut [f32], _: &mut [f32], _: &[f32], gradient: &[f32], _: Clock) {
        for (w, g) in row.iter_mut().zip(gradient) {
            let step = *w - self.rate * g;
            *w = step.signum() * (step.abs() - self.rate * self.lambda).max(0.0);
        }
    }
}

#[test]
fn the_kkt_filter_changes_no_weight_and_sends_fewer_gradients() {
    let lambda = 0.5;
    let target = |row: u64| if row.is_multiple_of(5) { 2.0 - row as f32 / 20.0 } else { 0.3 };
    let solve = |filters: Vec<Filter>| {
        let weights = TableSchema {
            procedure: Some(Arc::new(Proximal { rate: 0.25, lambda })),
            read_my_writes: false,
            consistency: Consistency::Bsp,
            filters: updates(filters),
            ..TableSchema::dense("weights", ROWS, 1)
        };
        let config = sim::Config { servers: sim::Servers::Apart(1), ..sim::Config::new(1) };
        let outcome = hemiola::run(&Deployment::Sim(config), &[weights], |worker| {
            let all: Vec<u64> = (0..ROWS).collect();
            let mut w = Vec::new();
            for _ in 0..40 {
                worker.get_dense(TABLE, &Rows::List(&all), &mut w)?;
                let gradient = all.iter().zip(&w).map(|(&row, w)| w - target(row)).collect();
                worker.inc(TABLE, &all, &Values::dense(1, gradient))?;
                worker.clock()?;
            }
            worker.get_dense(TABLE, &Rows::List(&all), &mut w)?;
            Ok(w.iter().flat_map(|w| w.to_le_bytes()).collect())
        });
        let mut outcome = outcome.expect("filters that work");
        (numbers(&outcome.results[0]), outcome.savings.pop())
    };
    let (plain, none) = solve(Vec::new());
    let (filtered, saving) = solve(vec![Filter::selection(Kkt { lambda, delta: 0.0, share: 1.0 })]);
    assert_eq!(none, None);
    assert_eq!(filtered, plain, "the same weights, to the bit");
    assert!(plain.iter().filter(|w| **w == 0.0).count() >= 30 && plain[0] > 1.0, "{plain:?}");
    let saving = saving.expect("a filter");
    assert!(saving.bytes_out * 3 < saving.bytes_in, "{saving:?}");
}

#[derive(Debug)]
struct Fails;

impl Selection for Fails {
    fn name(&self) -> &str {
        "mine"
    }

    fn travels(&self, entry: &Entry<'_>) -> Result<bool, Reason> {
        if entry.row == 7 { Err("row 7 is beyond me".into()) } else { Ok(true) }
    }
}

#[test]
fn a_filter_that_fails_ends_the_job_and_names_itself_the_table_and_the_process() {
    let failed = run(schema(Consistency::Bsp, updates(vec![Filter::selection(Fails)])), |_, _, _| Ok(()));
    let sentence = failed.expect_err("it fails").to_string();
    assert!(sentence.starts_with("filter 'mine' of table 'numbers' failed in worker process "), "{sentence}");
    let filters = Filters { updates: Vec::new(), rows: vec![Filter::selection(Fails)] };
    let table = TableSchema { read_my_writes: false, ..schema(Consistency::Bsp, filters) };
    let sentence = run(table, |_, _, _| Ok(())).expect_err("it fails").to_string();
    assert!(sentence.contains("filter 'mine' of table 'numbers' failed in server "), "{sentence}");
    assert!(sentence.ends_with(": row 7 is beyond me"), "{sentence}");
}

#[test]
fn filters_that_cannot_work_on_a_table_are_refused_with_the_reason() {
    let significant = || Filter::selection(Significant { threshold: 1.0 });
    let refuse = |table: TableSchema| run(table, |_, _, _| Ok(())).expect_err("refused").to_string();
    assert_eq!(
        refuse(schema(Consistency::Vap { bound: 1.0 }, updates(vec![significant()]))),
        "table 'numbers': filter 'significant' could hold back what the value bound counts as sent"
    );
    assert_eq!(
        refuse(schema(Consistency::Ssp { staleness: 1 }, Filters { updates: Vec::new(), rows: vec![significant()] })),
        "table 'numbers': filter 'significant' has nothing to hold back: without eager pushes every row that travels was \
         asked for"
    );
    assert_eq!(
        refuse(schema(Consistency::Bsp, updates(vec![significant(), significant()]))),
        "table 'numbers': filter 'significant' is in a chain twice"
    );
}
