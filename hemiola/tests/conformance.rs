//! What every driver must do, as ordinary functions over a deployment: the same suite runs on all of them.
//!
//! The program has its own `main`, because a tcp job starts its processes from the program that runs it: for every
//! tcp case and consistency model the suite starts itself with their names.

use hemiola::procedure::{AdaRevision, Procedure, Schedule, Sgd};
use hemiola::splash::{self, DataSet, Degree, Local, Options, Shared};
use hemiola::{
    Clock, Consistency, Deployment, Error, Outcome, Precision, Row, RowKind, RowRef, Rows, TableId, TableSchema,
    Values, Worker,
};
use std::process::{Command, ExitCode};
use std::sync::{Arc, OnceLock};

const TABLE: TableId = TableId(0);
const MODELS: [Consistency; 7] = [
    Consistency::Bsp,
    Consistency::Ssp { staleness: 0 },
    Consistency::Ssp { staleness: 2 },
    Consistency::Essp { staleness: 1 },
    Consistency::Essp { staleness: 3 },
    Consistency::Async,
    Consistency::Vap { bound: 2.0 },
];

/// The only model to run, in a program that was started for one.
static ONLY: OnceLock<Consistency> = OnceLock::new();

type Case = (&'static str, fn(&Deployment));

const CASES: [Case; 12] = [
    ("every_update_is_in_exactly_once", every_update_is_in_exactly_once),
    ("sparse_and_counted_rows_add_up", sparse_and_counted_rows_add_up),
    ("numbers_travel_in_sixteen_bits", numbers_travel_in_sixteen_bits),
    ("a_worker_reads_its_own_writes", a_worker_reads_its_own_writes),
    ("edits_in_place_add_up", edits_in_place_add_up),
    ("a_stored_procedure_applies_every_gradient_once", a_stored_procedure_applies_every_gradient_once),
    ("adarevision_descends_whatever_the_delay", adarevision_descends_whatever_the_delay),
    ("reads_are_as_fresh_as_the_model_asks", reads_are_as_fresh_as_the_model_asks),
    ("reports_are_summed_over_workers", reports_are_summed_over_workers),
    ("misuse_is_refused_with_its_reason", misuse_is_refused_with_its_reason),
    ("a_failing_worker_ends_the_job_by_name", a_failing_worker_ends_the_job_by_name),
    ("replicas_are_combined_to_the_same_bits", replicas_are_combined_to_the_same_bits),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name, model] = arguments.as_slice()
        && flag == "--tcp"
    {
        ONLY.set(MODELS[model.parse::<usize>().expect("a model's number")]).expect("set once");
        let case = CASES.iter().find(|(case, _)| case == name).expect("a case of the suite").1;
        case(&Deployment::tcp(3, 2));
        return ExitCode::SUCCESS;
    }
    let wanted =
        |name: &str| arguments.iter().filter(|a| !a.starts_with('-')).all(|filter| name.contains(filter.as_str()));
    let mut failed = 0;
    let mut passed = 0;
    for (name, case) in CASES.into_iter().filter(|(name, _)| wanted(name)) {
        for driver in ["threads", "sim", "tcp"] {
            let ok = match driver {
                "threads" => std::panic::catch_unwind(|| case(&Deployment::threads(3))).is_ok(),
                "sim" => std::panic::catch_unwind(|| case(&Deployment::sim(3))).is_ok(),
                _ => run_tcp(name),
            };
            eprintln!("test {driver}::{name} ... {}", if ok { "ok" } else { "FAILED" });
            if ok { passed += 1 } else { failed += 1 }
        }
    }
    eprintln!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_tcp(name: &str) -> bool {
    let program = std::env::current_exe().expect("this program");
    (0..MODELS.len()).all(|model| {
        let status = Command::new(&program).args(["--tcp", name, &model.to_string()]).status();
        status.is_ok_and(|status| status.success())
    })
}

/// The models to run a case under.
fn models() -> Vec<Consistency> {
    ONLY.get().map_or(MODELS.to_vec(), |&only| vec![only])
}

/// Runs a job with one table, under each consistency model.
fn under_each_model(
    deployment: &Deployment,
    table: impl Fn(Consistency) -> TableSchema,
    program: impl Fn(&mut Worker) -> Result<Vec<u8>, Error> + Sync,
    check: impl Fn(Consistency, Outcome),
) {
    for model in models() {
        let outcome = hemiola::run(&with_filters(deployment, model), &[table(model)], &program);
        check(model, outcome.unwrap_or_else(|error| panic!("{model:?}: {error}")));
    }
}

/// The deployment, for every other model with filters that must not change what anyone reads.
fn with_filters(deployment: &Deployment, model: Consistency) -> Deployment {
    let mut deployment = deployment.clone();
    if MODELS.iter().position(|other| *other == model).is_some_and(|place| place % 2 == 0) {
        let list = "key-cache,updates/zstd,rows/lz4";
        let filters = hemiola::filter::list::parse(list, 0).expect("a list of filters");
        match &mut deployment {
            Deployment::Threads { .. } => {}
            Deployment::Tcp(config) => config.filters = filters,
            Deployment::Sim(config) => config.filters = filters,
        }
    }
    deployment
}

fn numbers(values: &Values) -> Vec<f32> {
    match values {
        Values::Dense { numbers, .. } => numbers.to_vec(),
        values => panic!("not dense: {values:?}"),
    }
}

fn every_update_is_in_exactly_once(deployment: &Deployment) {
    let table = |consistency| TableSchema { consistency, chunk_rows: Some(3), ..TableSchema::dense("t", 10, 2) };
    let program = |worker: &mut Worker| {
        let me = worker.id().0 as f32 + 1.0;
        for clock in 0..6 {
            let rows: Vec<u64> = (0..10).filter(|row| (row + clock) % 2 == 0).collect();
            worker.get(TABLE, &rows)?;
            worker.inc(TABLE, &rows, &Values::dense(2, [me, 0.5].repeat(rows.len())))?;
            worker.clock()?;
        }
        let all: Vec<u64> = (0..10).collect();
        let numbers = numbers(&worker.get_latest(TABLE, &all)?);
        Ok(numbers.iter().flat_map(|x| x.to_le_bytes()).collect())
    };
    under_each_model(deployment, table, program, |model, outcome| {
        let expected: Vec<u8> = [18.0f32, 4.5].repeat(10).iter().flat_map(|x| x.to_le_bytes()).collect();
        for (worker, result) in outcome.results.iter().enumerate() {
            assert_eq!(result, &expected, "{model:?}, worker {worker}");
        }
    });
}

fn numbers_travel_in_sixteen_bits(deployment: &Deployment) {
    let program = |worker: &mut Worker| {
        worker.inc(TABLE, &[0, 3], &Values::dense(1, vec![0.1, 0.25]))?;
        worker.clock()?;
        let numbers = numbers(&worker.get_latest(TABLE, &[0, 3])?);
        Ok(numbers.iter().flat_map(|x| x.to_le_bytes()).collect())
    };
    for consistency in models().into_iter().filter(|model| !matches!(model, Consistency::Vap { .. })) {
        for precision in [Precision::F16, Precision::Bf16] {
            let table = TableSchema { consistency, precision, ..TableSchema::dense("t", 4, 1) };
            // A program joins only one job over tcp.
            if matches!(deployment, Deployment::Tcp(_)) && precision == Precision::Bf16 {
                continue;
            }
            let outcome = hemiola::run(deployment, &[table], program);
            let travels = !matches!(deployment, Deployment::Threads { .. }) || consistency == Consistency::Bsp;
            for result in outcome.unwrap_or_else(|error| panic!("{consistency:?}: {error}")).results {
                let numbers: Vec<f32> = result.as_chunks::<4>().0.iter().map(|x| f32::from_le_bytes(*x)).collect();
                let cut = if precision == Precision::F16 { 0x1fff } else { 0xffff };
                assert!((numbers[0] - 0.3).abs() < 0.01 && numbers[1] == 0.75, "{consistency:?}: {numbers:?}");
                // What travelled has no bits beyond the sixteen.
                assert!(!travels || numbers[0].to_bits() & cut == 0, "{numbers:?}");
            }
        }
    }
}

fn sparse_and_counted_rows_add_up(deployment: &Deployment) {
    let program = |worker: &mut Worker| {
        let me = worker.id().0;
        for _ in 0..4 {
            let update = Values::collect(&RowKind::Counts, [Row::Counts(vec![(me, 1), (9, -1)])].iter());
            worker.inc(TABLE, &[1 << 50], &update)?;
            worker.clock()?;
        }
        let row = worker.get_latest(TABLE, &[1 << 50])?.row(0).to_row();
        assert_eq!(row, Row::Counts(vec![(0, 4), (1, 4), (2, 4), (9, -12)]));
        Ok(Vec::new())
    };
    for consistency in models().into_iter().filter(|model| !matches!(model, Consistency::Vap { .. })) {
        let table = TableSchema { consistency, ..TableSchema::keyed("counts", RowKind::Counts) };
        hemiola::run(deployment, &[table], program).unwrap_or_else(|error| panic!("{consistency:?}: {error}"));
    }
}

fn a_worker_reads_its_own_writes(deployment: &Deployment) {
    let table = |consistency| TableSchema { consistency, ..TableSchema::dense("t", 8, 1) };
    let program = |worker: &mut Worker| {
        let row = u64::from(worker.id().0);
        for clock in 0..5 {
            assert_eq!(worker.get_row(TABLE, row)?, [clock as f32 * 2.0], "at the start of clock {clock}");
            worker.inc_row(TABLE, row, &[1.5])?;
            assert_eq!(worker.get_row(TABLE, row)?, [clock as f32 * 2.0 + 1.5], "within clock {clock}");
            worker.inc_row(TABLE, row, &[0.5])?;
            worker.clock()?;
        }
        Ok(Vec::new())
    };
    under_each_model(deployment, table, program, |_, _| {});
}

fn edits_in_place_add_up(deployment: &Deployment) {
    let table = |consistency| TableSchema { consistency, chunk_rows: Some(4), ..TableSchema::dense("t", 16, 1) };
    let program = |worker: &mut Worker| {
        worker.intend(TABLE, &Rows::Range(0..16))?;
        for _ in 0..5 {
            for first in (0..16).step_by(4) {
                worker.edit(TABLE, &Rows::Range(first..first + 4), |lease| {
                    lease.chunk_mut(0).iter_mut().for_each(|x| *x += 1.0);
                })?;
            }
            worker.clock()?;
        }
        let all: Vec<u64> = (0..16).collect();
        assert_eq!(numbers(&worker.get_latest(TABLE, &all)?), [15.0; 16]);
        Ok(Vec::new())
    };
    under_each_model(deployment, table, program, |_, _| {});
}

fn a_stored_procedure_applies_every_gradient_once(deployment: &Deployment) {
    let table = |consistency| TableSchema {
        consistency,
        chunk_rows: Some(3),
        read_my_writes: false,
        procedure: Some(Arc::new(Sgd { rate: 0.5, schedule: Schedule::Constant })),
        ..TableSchema::dense("t", 10, 2)
    };
    let program = |worker: &mut Worker| {
        for clock in 0..6 {
            let rows: Vec<u64> = (0..10).filter(|row| (row + clock) % 2 == 0).collect();
            let before = numbers(&worker.get(TABLE, &rows)?);
            worker.inc(TABLE, &rows, &Values::dense(2, [4.0, -1.0].repeat(rows.len())))?;
            assert!(before.iter().zip([-1.0, 1.0].iter().cycle()).all(|(x, sign)| x * sign >= 0.0), "{before:?}");
            worker.clock()?;
        }
        let all: Vec<u64> = (0..10).collect();
        assert_eq!(numbers(&worker.get_latest(TABLE, &all)?), [-18.0, 4.5].repeat(10));
        Ok(Vec::new())
    };
    for model in models().into_iter().filter(|model| !matches!(model, Consistency::Vap { .. })) {
        hemiola::run(deployment, &[table(model)], program).unwrap_or_else(|error| panic!("{model:?}: {error}"));
    }
}

fn adarevision_descends_whatever_the_delay(deployment: &Deployment) {
    let table = |consistency| TableSchema {
        consistency,
        read_my_writes: false,
        procedure: Some(Arc::new(AdaRevision::new(0.5))),
        ..TableSchema::dense("t", 4, 1)
    };
    let program = |worker: &mut Worker| {
        let (rows, mut read) = ([0, 1, 2, 3], Vec::new());
        for _ in 0..40 {
            worker.get_dense(TABLE, &Rows::List(&rows), &mut read)?;
            // The gradients of half the squared distance from the row's number.
            let gradients = read.iter().zip(rows).map(|(x, row)| x - row as f32).collect();
            worker.inc(TABLE, &rows, &Values::dense(1, gradients))?;
            worker.clock()?;
        }
        let learnt = numbers(&worker.get_latest(TABLE, &rows)?);
        Ok(learnt.iter().flat_map(|x| x.to_le_bytes()).collect())
    };
    for model in models().into_iter().filter(|model| !matches!(model, Consistency::Vap { .. })) {
        let outcome = hemiola::run(deployment, &[table(model)], program);
        let outcome = outcome.unwrap_or_else(|error| panic!("{model:?}: {error}"));
        let learnt: &[[u8; 4]] = outcome.results[0].as_chunks().0;
        for (row, bytes) in learnt.iter().enumerate() {
            let number = f32::from_le_bytes(*bytes);
            // Without a bound a worker may do all its clocks on what it read first.
            let nearer = model == Consistency::Async || row == 0 || (number - row as f32).abs() < row as f32 * 0.7;
            assert!(nearer && number.is_finite(), "{model:?}: row {row} became {number}");
        }
        if model == Consistency::Bsp {
            let learnt: Vec<f32> = learnt.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            assert_eq!(learnt, [0.0, 1.0, 2.0, 3.0].map(descend_in_turns), "to the bit, on every driver");
        }
    }
}

/// What AdaRevision makes of three workers that read a number at the same time and apply their gradients in turns.
fn descend_in_turns(target: f32) -> f32 {
    let rule = AdaRevision::new(0.5);
    let (mut row, mut state, mut snapshot) = ([0.0], [0.0; 3], [0.0]);
    rule.created(&row, &mut state);
    for clock in 0..40 {
        rule.sent(&row, &state, &mut snapshot);
        let gradient = [row[0] - target];
        (0..3).for_each(|_| rule.apply(&mut row, &mut state, &snapshot, &gradient, Clock(clock)));
    }
    row[0]
}

fn reads_are_as_fresh_as_the_model_asks(deployment: &Deployment) {
    let table = |consistency| TableSchema { consistency, ..TableSchema::dense("t", 1, 1) };
    let program = |worker: &mut Worker| {
        for _ in 0..12 {
            worker.get_row(TABLE, 0)?;
            worker.inc_row(TABLE, 0, &[1.0])?;
            worker.clock()?;
        }
        Ok(Vec::new())
    };
    under_each_model(deployment, table, program, |model, outcome| {
        let reads: u64 = outcome.histogram.iter().map(|(_, reads)| reads).sum();
        assert_eq!(reads, 36, "{model:?}");
        if let Some(staleness) = model.staleness() {
            let oldest = outcome.histogram.iter().next().expect("reads").0;
            assert!(oldest >= -1 - i64::from(staleness), "{model:?} read at differential {oldest}");
        }
        if model == Consistency::Bsp {
            assert_eq!(outcome.histogram.iter().collect::<Vec<_>>(), [(-1, 36)]);
        }
    });
}

fn reports_are_summed_over_workers(deployment: &Deployment) {
    let program = |worker: &mut Worker| {
        let me = f64::from(worker.id().0);
        for round in 0..3u32 {
            let index = worker.report(&[me, f64::from(round)]);
            assert_eq!(index, round);
            assert_eq!(worker.totals(index)?, [3.0, 3.0 * f64::from(round)]);
            worker.clock()?;
        }
        Ok(vec![worker.id().0 as u8])
    };
    let mut seen = Vec::new();
    let outcome = hemiola::run_observed(deployment, &[TableSchema::dense("t", 1, 1)], &program, &mut |observation| {
        seen.push((observation.index, observation.values.clone()));
    });
    let outcome = outcome.expect("a job that runs");
    assert_eq!(seen, [(0, vec![3.0, 0.0]), (1, vec![3.0, 3.0]), (2, vec![3.0, 6.0])]);
    assert_eq!(outcome.results, [[0], [1], [2]]);
    assert!(outcome.splits.iter().all(|split| split.clocks.0 == 3));
}

fn misuse_is_refused_with_its_reason(deployment: &Deployment) {
    let program = |worker: &mut Worker| {
        let refused = |result: Result<(), Error>| result.expect_err("misuse").to_string();
        let sentences = [
            refused(worker.get(TableId(7), &[0]).map(|_| ())),
            refused(worker.get(TABLE, &[4]).map(|_| ())),
            refused(worker.inc_row(TABLE, 0, &[1.0])),
            refused(worker.edit(TableId(1), &Rows::Range(0..1), |_| ())),
            refused(worker.get_row(TableId(1), 0).map(|_| ())),
        ];
        assert_eq!(
            sentences,
            [
                "there is no table 7; the job has 2",
                "table 'dense' has 4 rows, so there is no row 4",
                "table 'dense': the update does not fit its 1 rows of kind Dense { width: 2 }",
                "table 'counts': only dense tables with a declared number of rows can be edited in place",
                "table 'counts': rows of kind Counts cannot be read as dense numbers",
            ]
        );
        worker.inc_row(TABLE, 0, &[1.0, 1.0])?;
        worker.clock()?;
        assert_eq!(worker.get_latest(TABLE, &[0])?.row(0), RowRef::Dense(&[3.0, 3.0]));
        Ok(Vec::new())
    };
    let tables = [TableSchema::dense("dense", 4, 2), TableSchema::keyed("counts", RowKind::Counts)];
    hemiola::run(deployment, &tables, program).expect("misuse does no harm");
}

fn a_failing_worker_ends_the_job_by_name(deployment: &Deployment) {
    let program = |worker: &mut Worker| {
        for clock in 0..100 {
            if worker.id().0 == 1 && clock == 3 {
                return Err(Error::program("the sky fell"));
            }
            worker.get_row(TABLE, 0)?;
            worker.clock()?;
        }
        Ok(Vec::new())
    };
    let error = hemiola::run(deployment, &[TableSchema::dense("t", 1, 1)], program).expect_err("it fails");
    assert!(error.to_string().contains("the sky fell"), "{error}");
}

fn replicas_are_combined_to_the_same_bits(deployment: &Deployment) {
    // Splash chooses the consistency of its tables itself.
    if !models().contains(&Consistency::Bsp) {
        return;
    }
    let mut shared = Shared::default();
    let (t, w, s) = (shared.scalar("t", 0.1), shared.rows("w", 20, 3), shared.sparse("s", 1 << 40));
    let elements: Vec<u64> = (0..200).collect();
    let options = Options { synchronisations: 2, degree: Degree::Auto, ..Options::default() };
    let run = |deployment: &Deployment| {
        let trained = splash::run(deployment, &options, &shared, &elements, |set: &mut DataSet<u64, ()>| {
            for _ in 0..3 {
                let process = |i: &u64, weight: f64, shared: &mut Shared, _: &mut Local<()>| {
                    shared.add(t, weight * 0.1);
                    shared.multiply(w, 0.5);
                    shared.add(w.at(*i as usize % 60), weight as f32 / 3.0);
                    shared.delayed_add(s.at(i << 30), weight as f32 * shared.get(w.at(7)));
                };
                set.run_tested(process, |_, shared| f64::from(shared.get(w.at(3))))?;
            }
            Ok(Vec::new())
        });
        trained.unwrap_or_else(|error| panic!("{error}")).shared
    };
    let simulated = run(&Deployment::sim(3));
    assert!(simulated.get(t) > 60.0 && simulated.entries(s).len() == 200);
    assert_eq!(run(deployment).to_bytes(), simulated.to_bytes());
}
