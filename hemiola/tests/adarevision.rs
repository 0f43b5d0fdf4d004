//! AdaRevision through tables equals a sequential program of the published rule, delays included.
//!
//! Workers on simulated nodes send gradients of rows that are more or less stale when they arrive. The test keeps its
//! own books: every worker writes down which value of a row it computed a gradient on, and a recording procedure in
//! which order the shard applied the gradients. Plain loops over that history, which know nothing of versions or
//! snapshots, must come to the same numbers.

use hemiola::procedure::{AdaRevision, Procedure};
use hemiola::sim::{Config, Delays, Faults, Hazard, Network, Servers, Straggler};
use hemiola::{Clock, Consistency, Deployment, TableId, TableSchema, Values, Worker};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

const TABLE: TableId = TableId(0);
const ROWS: u64 = 5;
const RATE: f32 = 0.3;
const CLOCKS: u32 = 30;

/// AdaRevision that writes down what it applies: the gradient, and the row that came of it.
#[derive(Debug)]
struct Recorded {
    rule: AdaRevision,
    applied: Mutex<Vec<(f32, f32)>>,
}

impl Procedure for Recorded {
    fn state_width(&self, width: usize) -> usize {
        self.rule.state_width(width)
    }

    fn snapshot_width(&self, width: usize) -> usize {
        self.rule.snapshot_width(width)
    }

    fn created(&self, row: &[f32], state: &mut [f32]) {
        self.rule.created(row, state);
    }

    fn apply(&self, row: &mut [f32], state: &mut [f32], snapshot: &[f32], update: &[f32], clock: Clock) {
        self.rule.apply(row, state, snapshot, update, clock);
        self.applied.lock().expect("no panic").push((update[0], row[0]));
    }

    fn sent(&self, row: &[f32], state: &[f32], snapshot: &mut [f32]) {
        self.rule.sent(row, state, snapshot);
    }
}

/// A gradient that a worker computed: of which row, and on which value of it.
#[derive(Debug, Clone, Copy)]
struct Computed {
    row: u64,
    read: f32,
}

fn adverse(seed: u64) -> Config {
    let faults = Faults {
        stragglers: vec![Straggler { node: 1, factor: 2.5 }],
        pauses: Hazard { per_second: 30.0, seconds: 0.01 },
        delays: Delays { share: 0.1, seconds: 0.02 },
        ..Faults::default()
    };
    let network = Network { jitter: 0.004, ..Network::default() };
    Config { seed, servers: Servers::Apart(2), network, faults, ..Config::new(5) }
}

/// Runs the job and gives what was applied, in order, and what was computed, by the gradient's bits.
fn history(consistency: Consistency, seed: u64) -> (Vec<(f32, f32)>, HashMap<u32, Computed>) {
    let procedure = Arc::new(Recorded { rule: AdaRevision::new(RATE), applied: Mutex::default() });
    let table = TableSchema {
        consistency,
        chunk_rows: Some(2),
        read_my_writes: false,
        procedure: Some(Arc::clone(&procedure) as Arc<dyn Procedure>),
        ..TableSchema::dense("t", ROWS, 1)
    };
    let computed = Mutex::new(HashMap::new());
    let program = |worker: &mut Worker| {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ u64::from(worker.id().0) << 32);
        for _ in 0..CLOCKS {
            for row in 0..ROWS {
                if random.next_u32() % 3 == 0 {
                    continue;
                }
                let read = worker.get_row(TABLE, row)?[0];
                // The noise makes every gradient another number.
                let noise = random.next_u32() as f32 / u32::MAX as f32;
                let gradient = (read - row as f32) + noise - 0.5;
                let before = computed.lock().expect("no panic").insert(gradient.to_bits(), Computed { row, read });
                assert!(before.is_none(), "seed {seed}: the same gradient twice");
                worker.inc(TABLE, &[row], &Values::dense(1, vec![gradient]))?;
                worker.work(u64::from(random.next_u32() % 4000))?;
            }
            worker.clock()?;
        }
        // Whoever has read this knows that all gradients have been applied.
        worker.get_latest(TABLE, &[0])?;
        Ok(Vec::new())
    };
    hemiola::run(&Deployment::Sim(adverse(seed)), &[table], program)
        .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let applied = procedure.applied.lock().expect("no panic").clone();
    (applied, computed.into_inner().expect("no panic"))
}

/// The published rule over the history of one row: gradients in the order of their application, each with the number of
/// gradients that were in the row when it was read. Gives the row after each.
fn published(initial: f32, gradients: &[(f32, usize)]) -> Vec<f32> {
    let (mut w, mut z, mut z_max) = (initial, 1.0f32, 1.0f32);
    let mut sums = vec![0.0f32];
    let mut rows = Vec::new();
    for &(g, read) in gradients {
        let now = *sums.last().expect("it begins with a zero");
        let back = now - sums[read];
        let old_step = RATE / z_max.sqrt();
        z = z + g * g + 2.0 * g * back;
        z_max = z_max.max(z);
        let step = RATE / z_max.sqrt();
        w = w - step * g + (old_step - step) * back;
        sums.push(now + g);
        rows.push(w);
    }
    rows
}

#[test]
fn tables_equal_the_sequential_rule_under_every_delay() {
    let models = [
        Consistency::Bsp,
        Consistency::Ssp { staleness: 2 },
        Consistency::Essp { staleness: 1 },
        Consistency::Essp { staleness: 4 },
        Consistency::Async,
    ];
    for (consistency, seed) in models.into_iter().flat_map(|model| [(model, 1), (model, 2)]) {
        let case = format!("{consistency:?}, seed {seed}");
        let (applied, computed) = history(consistency, seed);
        assert_eq!(applied.len(), computed.len(), "{case}: every gradient is applied once");
        let mut delayed = 0;
        for row in 0..ROWS {
            let here = |gradient: f32| Some(computed[&gradient.to_bits()]).filter(|computed| computed.row == row);
            let of_row: Vec<(f32, f32, f32)> =
                applied.iter().filter_map(|&(g, after)| Some((g, after, here(g)?.read))).collect();
            // The row before any gradient, and after each: the place of what was read is when it was read.
            let mut states = vec![0.0];
            let mut gradients = Vec::new();
            for &(gradient, after, read) in &of_row {
                let when = states.iter().rposition(|&state: &f32| state == read);
                let when = when.unwrap_or_else(|| panic!("{case}: row {row} never was {read}"));
                delayed += usize::from(when + 1 < states.len());
                gradients.push((gradient, when));
                states.push(after);
            }
            for (i, (found, expected)) in states[1..].iter().zip(published(0.0, &gradients)).enumerate() {
                let close = (found - expected).abs() <= 1e-6 * (1.0 + expected.abs());
                assert!(close, "{case}, row {row}, gradient {i}: {found} instead of {expected}");
            }
        }
        assert!(delayed * 3 > applied.len(), "{case}: only {delayed} of {} gradients were delayed", applied.len());
    }
}
