//! Managed communication in the simulator: what every node sends in every second, held against its budget.

use hemiola::sim::{Config, Faults, Hazard, Network, Servers, Slowdown, Trace, run_traced};
use hemiola::{Budget, Consistency, Error, Outcome, Priority, Rows, TableId, TableSchema, Values, Worker};
use hemiola_core::budget::on_the_wire;
use std::collections::BTreeMap;

const TABLE: TableId = TableId(0);
const ROWS: u64 = 2000;
const WIDTH: u32 = 16;
/// Half a megabyte per second.
const BYTES_PER_SECOND: u64 = 500_000;
const PRIORITIES: [Priority; 4] =
    [Priority::Random, Priority::RoundRobin, Priority::AbsoluteMagnitude, Priority::RelativeMagnitude];

fn config(priority: Priority) -> Config {
    Config {
        seconds_per_unit: 1e-3,
        servers: Servers::Apart(2),
        budget: Some(Budget { bytes_per_second: BYTES_PER_SECOND, priority }),
        record_events: true,
        ..Config::new(3)
    }
}

fn table(consistency: Consistency) -> TableSchema {
    TableSchema { consistency, chunk_rows: Some(64), ..TableSchema::dense("model", ROWS, WIDTH) }
}

/// Reads everything, then changes a hundred rows every ten milliseconds: far more than may be sent.
fn busy(worker: &mut Worker, clocks: u32, steps: u64) -> Result<Vec<u8>, Error> {
    let mut numbers = Vec::new();
    for clock in 0..clocks {
        worker.get_dense(TABLE, &Rows::Range(0..ROWS), &mut numbers)?;
        for step in 0..steps {
            let first = (u64::from(clock) * steps + step) * 100 + u64::from(worker.id().0) * 700;
            let mut rows: Vec<u64> = (first..first + 100).map(|row| row % ROWS).collect();
            rows.sort_unstable();
            worker.inc(TABLE, &rows, &Values::dense(WIDTH, vec![1.0; rows.len() * WIDTH as usize]))?;
            worker.work(10)?;
        }
        worker.clock()?;
    }
    Ok(Vec::new())
}

fn run(config: &Config, tables: &[TableSchema], clocks: u32, steps: u64) -> (Outcome, Trace) {
    run_traced(config, tables, &|worker| busy(worker, clocks, steps), &mut |_| {}).expect("the job runs")
}

/// What each node sent, in order, with the headers of the packets that the budget pays for.
fn by_node(trace: &Trace) -> BTreeMap<u32, Vec<(f64, u64)>> {
    let mut nodes: BTreeMap<u32, Vec<(f64, u64)>> = BTreeMap::new();
    for &(seconds, node, bytes) in &trace.sent {
        nodes.entry(node).or_default().push((seconds, on_the_wire(bytes)));
    }
    nodes
}

/// The most that was sent in any second.
fn fullest_second(sent: &[(f64, u64)]) -> u64 {
    let (mut first, mut bytes, mut most) = (0, 0, 0);
    for &(seconds, more) in sent {
        bytes += more;
        while sent[first].0 + 1.0 <= seconds {
            bytes -= sent[first].1;
            first += 1;
        }
        most = most.max(bytes);
    }
    most
}

fn sent_between(sent: &[(f64, u64)], from: f64, until: f64) -> u64 {
    sent.iter().filter(|(seconds, _)| (from..until).contains(seconds)).map(|(_, bytes)| bytes).sum()
}

#[test]
fn no_node_exceeds_its_budget_in_any_second_and_none_wastes_it() {
    for priority in PRIORITIES {
        for consistency in [Consistency::Essp { staleness: 2 }, Consistency::Async] {
            let (outcome, trace) = run(&config(priority), &[table(consistency)], 2, 500);
            for (node, sent) in by_node(&trace) {
                let most = fullest_second(&sent);
                assert!(
                    most * 100 <= BYTES_PER_SECOND * 105,
                    "{priority:?}: node {node} sent {most} bytes in a second"
                );
                // The workers write for ten seconds; from the second second on there is always something to send.
                let share = sent_between(&sent, 1.0, 9.0) as f64 / (8.0 * BYTES_PER_SECOND as f64);
                assert!(share >= 0.9, "{priority:?} {consistency:?}: node {node} used {share} of its budget");
            }
            assert!(outcome.seconds >= 10.0);
        }
    }
}

#[test]
fn what_the_client_of_a_node_leaves_goes_to_its_shard() {
    // A client has less to send than half of this, and its shard, which sends to six, more than is left.
    let bytes_per_second = 4 * BYTES_PER_SECOND;
    let program = |worker: &mut Worker| {
        let mut numbers = Vec::new();
        worker.get_dense(TABLE, &Rows::Range(0..ROWS), &mut numbers)?;
        for step in 0..200 {
            // A hundred rows of all shards.
            let rows: Vec<u64> = (0..100).map(|i| i * 20 + (step + u64::from(worker.id().0) * 3) % 20).collect();
            worker.inc(TABLE, &rows, &Values::dense(WIDTH, vec![1.0; rows.len() * WIDTH as usize]))?;
            worker.work(10)?;
        }
        worker.clock()?;
        Ok(Vec::new())
    };
    for priority in [Priority::RoundRobin, Priority::RelativeMagnitude] {
        let budget = Some(Budget { bytes_per_second, priority });
        let config = Config { budget, record_events: true, seconds_per_unit: 1e-3, ..Config::new(6) };
        let tables = [table(Consistency::Essp { staleness: 2 })];
        let (_, trace) = run_traced(&config, &tables, &program, &mut |_| {}).expect("the job runs");
        let sent: u64 = by_node(&trace).values().map(|sent| sent_between(sent, 0.5, 1.5)).sum();
        let share = sent as f64 / (6.0 * bytes_per_second as f64);
        assert!(share >= 0.9, "{priority:?}: the nodes used {share} of their budgets");
        assert!(trace.rows_sent.len() == ROWS as usize, "every row was sent");
    }
}

#[test]
fn a_budget_holds_under_faults_and_every_model() {
    for consistency in [
        Consistency::Bsp,
        Consistency::Ssp { staleness: 1 },
        Consistency::Essp { staleness: 0 },
        Consistency::Essp { staleness: 2 },
        Consistency::Vap { bound: 100.0 },
    ] {
        let faults = Faults { lost_connections: Hazard { per_second: 0.5, seconds: 0.2 }, ..Faults::default() };
        let config = Config { faults, ..config(Priority::RelativeMagnitude) };
        let (_, trace) = run(&config, &[table(consistency)], 4, 10);
        for (node, sent) in by_node(&trace) {
            let most = fullest_second(&sent);
            assert!(most * 100 <= BYTES_PER_SECOND * 105, "{consistency:?}: node {node} sent {most} bytes in a second");
        }
    }
}

#[test]
fn a_network_slower_than_the_budget_is_left_to_catch_up_and_used_again_when_it_is_fast() {
    let slow = 4.0;
    let capacity = 1.25 * BYTES_PER_SECOND as f64;
    let mut config = config(Priority::RoundRobin);
    config.network = Network { bandwidth_out: capacity, bandwidth_in: 1e9, ..Network::default() };
    config.faults.slowdowns = vec![Slowdown { from: 5.0, until: 15.0, factor: slow }];
    let (_, trace) = run(&config, &[table(Consistency::Async)], 3, 1000);
    for (node, sent) in by_node(&trace) {
        // What the network has not carried yet, if it carries as much as it can.
        let (mut backlog, mut most, mut last) = (0.0f64, 0.0f64, 0.0);
        for &(seconds, bytes) in &sent {
            let speed = if (5.0..15.0).contains(&seconds) { capacity / slow } else { capacity };
            backlog = (backlog - (seconds - last) * speed).max(0.0) + bytes as f64;
            (most, last) = (most.max(backlog), seconds);
        }
        assert!(most <= 1.5 * BYTES_PER_SECOND as f64, "node {node} had {most} bytes under way");
        let rate = |from: f64, until: f64| sent_between(&sent, from, until) as f64 / (until - from);
        let (before, meanwhile, after) = (rate(1.0, 5.0), rate(7.0, 15.0), rate(18.0, 28.0));
        assert!(meanwhile >= 0.5 * capacity / slow, "node {node} sent only {meanwhile} bytes per second meanwhile");
        assert!(meanwhile <= 1.2 * capacity / slow, "node {node} sent {meanwhile} bytes per second meanwhile");
        assert!(after >= 0.95 * before, "node {node} sent {before} before and {after} after");
    }
}

#[test]
fn early_updates_are_seen_before_their_clock_ends() {
    let config = config(Priority::AbsoluteMagnitude);
    let program = |worker: &mut Worker| {
        let first = worker.id().0 == 0;
        let mut seen = worker.get_row(TABLE, 5)?[0];
        if first {
            worker.inc_row(TABLE, 5, &[3.0; WIDTH as usize])?;
        }
        worker.work(1000)?;
        if !first {
            seen = worker.get_row(TABLE, 5)?[0];
        }
        worker.clock()?;
        Ok(seen.to_string().into_bytes())
    };
    let tables = [table(Consistency::Essp { staleness: 2 })];
    let (outcome, _) = run_traced(&config, &tables, &program, &mut |_| {}).expect("the job runs");
    assert_eq!(outcome.results, [b"0", b"3", b"3"]);
    let unmanaged = Config { budget: None, ..config };
    let (outcome, _) = run_traced(&unmanaged, &tables, &program, &mut |_| {}).expect("the job runs");
    assert_eq!(outcome.results, [b"0", b"0", b"0"]);
}
