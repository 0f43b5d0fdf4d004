//! The simulator: one seed gives one outcome, time passes by the model, and nothing ends in silence.

use hemiola::sim::{Config, Crash, Faults, Hazard, Network, Process, Servers, Straggler, Trace, run_traced};
use hemiola::{
    ClientId, Consistency, Deployment, Error, Event, Outcome, Placement, Rows, ShardId, TableId, TableSchema, Worker,
};
use std::time::Duration;

const MODEL: TableId = TableId(0);

fn model(consistency: Consistency) -> TableSchema {
    TableSchema { chunk_rows: Some(4), consistency, placement: Placement::Hash, ..TableSchema::dense("model", 24, 3) }
}

/// Something whose result depends on the order of every addition and on every value read.
fn train(worker: &mut Worker) -> Result<Vec<u8>, Error> {
    let id = worker.id().0 as f32;
    for clock in 0..6 {
        for block in 0..6u64 {
            worker.edit(MODEL, &Rows::Range(block * 4..block * 4 + 4), |lease| {
                for (i, x) in lease.chunk_mut(0).iter_mut().enumerate() {
                    *x += 0.1 * (1.0 + id) / (1.0 + (*x).abs() + i as f32 * 0.37 + clock as f32);
                }
            })?;
            worker.work(1000 + 37 * u64::from(worker.id().0))?;
        }
        worker.clock()?;
    }
    let rows: Vec<u64> = (0..24).collect();
    let values = worker.get_latest(MODEL, &rows)?;
    Ok(format!("{values:?}").into_bytes())
}

fn traced(config: &Config, tables: &[TableSchema]) -> (Outcome, Trace) {
    run_traced(config, tables, &train, &mut |_| {}).expect("the job succeeds")
}

fn adverse(seed: u64) -> Config {
    let faults = Faults {
        stragglers: vec![Straggler { node: 1, factor: 3.0 }],
        pauses: Hazard { per_second: 50.0, seconds: 0.01 },
        lost_connections: Hazard { per_second: 20.0, seconds: 0.005 },
        ..Faults::default()
    };
    let network = Network { jitter: 0.002, bandwidth_out: 1e6, bandwidth_in: 1e6, ..Network::default() };
    Config { seed, workers_per_node: 2, servers: Servers::Beside(2), network, faults, ..Config::new(3) }
}

#[test]
fn one_seed_gives_one_trace_and_one_model_and_another_seed_another() {
    for consistency in [Consistency::Essp { staleness: 2 }, Consistency::Ssp { staleness: 1 }, Consistency::Async] {
        let tables = [model(consistency)];
        let (first, first_trace) = traced(&adverse(7), &tables);
        let (second, second_trace) = traced(&adverse(7), &tables);
        assert_eq!((first.results, first.splits, first.seconds), (second.results, second.splits, second.seconds));
        assert_eq!(first_trace, second_trace);
        let (_, other) = traced(&adverse(8), &tables);
        assert_ne!(first_trace.hash, other.hash);
    }
}

#[test]
fn bsp_gives_the_bits_of_the_threads() {
    let tables = [model(Consistency::Bsp)];
    let threads = hemiola::run(&Deployment::threads(4), &tables, train).expect("the job succeeds");
    for servers in [Servers::Beside(2), Servers::Apart(2)] {
        let config = Config { servers, ..Config::new(4) };
        let sim = hemiola::run(&Deployment::Sim(config), &tables, train).expect("the job succeeds");
        assert_eq!(sim.results, threads.results);
    }
    let config = Config { workers_per_node: 2, nodes: 2, ..adverse(3) };
    let sim = hemiola::run(&Deployment::Sim(config), &tables, train).expect("the job succeeds");
    assert_eq!(sim.results, threads.results);
}

#[test]
fn time_passes_by_work_and_by_bandwidth() {
    // One clock is: three seconds of work on the slow node, then its update of 1 MB at 1 MB/s, then as much back.
    let rows = 1000u64;
    let table = TableSchema { consistency: Consistency::Bsp, ..TableSchema::dense("wide", rows, 250) };
    let network = Network { bandwidth_out: 1e6, bandwidth_in: 1e6, latency: 0.5, ..Network::default() };
    let faults = Faults { stragglers: vec![Straggler { node: 0, factor: 3.0 }], ..Faults::default() };
    let config = Config { servers: Servers::Apart(1), seconds_per_unit: 1e-3, network, faults, ..Config::new(1) };
    let program = |worker: &mut Worker| {
        worker.work(1000)?;
        assert_eq!(worker.seconds(), 3.0);
        let ids: Vec<u64> = (0..rows).collect();
        worker.inc(MODEL, &ids, &hemiola::Values::dense(250, vec![1.0; 250_000]))?;
        worker.clock()?;
        let sent = worker.seconds();
        worker.get_latest(MODEL, &ids)?;
        Ok(format!("{sent} {}", worker.seconds()).into_bytes())
    };
    let outcome = hemiola::run(&Deployment::Sim(config), &[table], program).expect("the job succeeds");
    // Headers are as long as their numbers need: a few of those that each message has.
    let (bytes_sent, bytes_received) = (outcome.splits[0].bytes_sent, outcome.splits[0].bytes_received);
    let (update, asking) = (8.0 * rows as f64 + 1e6, 8.0 * rows as f64);
    let clocked = 3.0 + update / 1e6 + 0.5 + 0.5;
    let asked = clocked + asking / 1e6 + 0.5 + update / 1e6 + 0.5;
    let found: Vec<f64> = String::from_utf8_lossy(&outcome.results[0])
        .split(' ')
        .map(|seconds| seconds.parse().expect("a number"))
        .collect();
    let headers = 6.0 * 40.0;
    let is = |found: f64, expected: f64, slack: f64| (expected..expected + slack).contains(&found);
    assert!(is(found[0], clocked, headers / 1e6) && is(found[1], asked, headers / 1e6), "{found:?}");
    assert!(is(bytes_sent as f64, update + asking, headers), "{bytes_sent}");
    assert!(is(bytes_received as f64, update, headers), "{bytes_received}");
}

#[test]
fn what_a_shard_needs_per_byte_passes_too() {
    let tables = [model(Consistency::Bsp)];
    let seconds = |shard_seconds_per_byte| {
        let network = Network { shard_seconds_per_byte, ..Network::default() };
        traced(&Config { network, ..Config::new(2) }, &tables).0.seconds
    };
    assert!(seconds(1e-5) > seconds(0.0) + 6.0 * 8.0 * 1e-5);
}

#[test]
fn a_crash_ends_the_job_and_is_named() {
    let crash = |process| {
        let mut config = adverse(1);
        config.faults.crashes = vec![Crash { process, seconds: 0.02 }];
        let error = hemiola::run(&Deployment::Sim(config), &[model(Consistency::Bsp)], train).expect_err("it died");
        error.to_string()
    };
    let sentence = crash(Process::Worker(ClientId(1)));
    assert_eq!(
        sentence,
        "worker process 1 died at clock 0 (crashed after 0.02 simulated seconds); the run was ended and no model was \
         written"
    );
    assert!(crash(Process::Server(ShardId(1))).starts_with("server 1 died at clock "));
    let mut config = adverse(1);
    config.faults.crashes = vec![Crash { process: Process::Worker(ClientId(0)), seconds: 1e6 }];
    hemiola::run(&Deployment::Sim(config), &[model(Consistency::Bsp)], train).expect("the job was done by then");
}

#[test]
fn a_deadlock_says_who_waits_for_what() {
    let program = |worker: &mut Worker| {
        if worker.id().0 == 0 {
            return Ok(Vec::new());
        }
        worker.clock()?;
        Ok(Vec::new())
    };
    let tables = [model(Consistency::Essp { staleness: 0 })];
    let error = hemiola::run(&Deployment::sim(3), &tables, program).expect_err("worker 0 never ends its clock");
    assert_eq!(
        error.to_string(),
        "after 0.00010016 simulated seconds every worker waits and nothing is under way: worker 1 waits until shard 0 \
         reaches clock 1; it is at clock 0; worker 2 waits until shard 0 reaches clock 1; it is at clock 0"
    );
    let program = |worker: &mut Worker| {
        if worker.id().0 == 1 {
            worker.clock()?;
            worker.get_latest(MODEL, &[0])?;
        }
        Ok(Vec::new())
    };
    let loose = [model(Consistency::Essp { staleness: 5 })];
    let error = hemiola::run(&Deployment::sim(2), &loose, program).expect_err("worker 0 never ends its clock");
    let sentence =
        format!("worker 1 waits for rows of table '{}' until shard 0 reaches clock 1; it is at clock 0", loose[0].name);
    assert!(error.to_string().ends_with(&sentence), "{error}");
    let program = |worker: &mut Worker| {
        worker.totals(0)?;
        Ok(Vec::new())
    };
    let error = hemiola::run(&Deployment::sim(1), &tables, program).expect_err("nobody made a report");
    assert!(error.to_string().contains("worker 0 waited 0 s for the totals of report 0"), "{error}");
}

#[test]
fn a_wait_beyond_the_timeout_is_given_up_in_virtual_time() {
    let config = Config { seconds_per_unit: 1.0, timeout: Duration::from_secs(60), ..Config::new(2) };
    let program = |worker: &mut Worker| {
        for _ in 0..100 {
            worker.work(if worker.id().0 == 0 { 1 } else { 50 })?;
            worker.clock()?;
        }
        Ok(Vec::new())
    };
    let tables = [model(Consistency::Bsp)];
    let run = |config: Config| hemiola::run(&Deployment::Sim(config), &tables, program);
    assert_eq!(run(config.clone()).expect("no wait is that long").seconds.round(), 5000.0);
    let error = run(Config { timeout: Duration::from_secs(40), ..config }).expect_err("worker 0 waits 49 s");
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
}

#[test]
fn a_failure_of_one_program_is_the_failure_of_the_job() {
    let program = |worker: &mut Worker| {
        worker.work(10)?;
        assert!(worker.id().0 != 2, "two is one too many");
        worker.clock()?;
        worker.clock()?;
        Ok(Vec::new())
    };
    let error = hemiola::run(&Deployment::sim(4), &[model(Consistency::Bsp)], program).expect_err("worker 2 panics");
    assert_eq!(error.to_string(), "worker 2 panicked: two is one too many");
}

#[test]
fn reports_are_summed_and_observed_in_virtual_time() {
    let config = Config { seconds_per_unit: 1.0, ..Config::new(3) };
    let program = |worker: &mut Worker| {
        let mut sums = Vec::new();
        for round in 0..2 {
            worker.work(u64::from(worker.id().0))?;
            let index = worker.report(&[1.0, f64::from(worker.id().0 + round)]);
            sums = worker.totals(index)?;
        }
        Ok(format!("{sums:?}").into_bytes())
    };
    let mut observed = Vec::new();
    let deployment = Deployment::Sim(config);
    let outcome = hemiola::run_observed(&deployment, &[model(Consistency::Bsp)], &program, &mut |observation| {
        observed.push((observation.index, observation.values.clone(), observation.seconds));
    });
    assert_eq!(outcome.expect("the job succeeds").results, vec![b"[3.0, 6.0]".to_vec(); 3]);
    assert_eq!(observed, [(0, vec![3.0, 3.0], 2.0), (1, vec![3.0, 6.0], 4.0)]);
}

#[test]
fn recorded_events_show_every_read_within_the_bound() {
    let config = Config { record_events: true, ..adverse(5) };
    let (_, trace) = traced(&config, &[model(Consistency::Essp { staleness: 2 })]);
    let reads: Vec<(u32, u32)> = trace
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Read { clock, oldest, .. } => Some((clock.0, oldest.0)),
            _ => None,
        })
        .collect();
    assert_eq!(reads.len(), 6 * 6 * 6 + 6);
    assert!(reads.iter().all(|(clock, oldest)| oldest + 2 >= *clock));
    assert!(trace.events.is_sorted_by(|a, b| a.0 <= b.0));
}
