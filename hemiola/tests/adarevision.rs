//! AdaRevision through tables equals a sequential program of the published rule, delays included.
//!
//! Workers on simulated nodes send gradients of rows that are more or less stale when they arrive. The test keeps its
//! own books: every worker writes down which value of a row it computed a gradient on, and a recording procedure in
//! which order the shard applied the gradients. Plain loops over that history, which know nothing of versions or
//! snapshots, must come to the same numbers, and so must checkpoints over what was made before their clocks.

use hemiola::checkpoint::Every;
use hemiola::procedure::{AdaRevision, Procedure};
use hemiola::sim::{Config, Delays, Faults, Hazard, MemoryCheckpoint, Network, Saving, Servers, Straggler, run_traced};
use hemiola::{Budget, Clock, Consistency, Priority, RowRef, TableId, TableSchema, Values, Worker};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::{HashMap, HashSet};
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
    /// The gradients of clocks that have not ended, by their bits, and how many were applied that early.
    open: Mutex<HashSet<u32>>,
    early: Mutex<usize>,
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
        let early = self.open.lock().expect("no panic").contains(&update[0].to_bits());
        *self.early.lock().expect("no panic") += usize::from(early);
    }

    fn sent(&self, row: &[f32], state: &[f32], snapshot: &mut [f32]) {
        self.rule.sent(row, state, snapshot);
    }
}

/// A gradient that a worker computed: in which clock, of which row, and on which value of it.
#[derive(Debug, Clone, Copy)]
struct Computed {
    clock: Clock,
    row: u64,
    read: f32,
}

/// What happened in a job.
struct History {
    /// The gradients in the order of their application, and the row after each.
    applied: Vec<(f32, f32)>,
    /// By the gradient's bits.
    computed: HashMap<u32, Computed>,
    /// How many were applied before their clocks ended.
    early: usize,
    checkpoints: Vec<MemoryCheckpoint>,
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

/// Runs the job.
fn history(consistency: Consistency, config: &Config) -> History {
    let seed = config.seed;
    let rule = AdaRevision::new(RATE);
    let procedure =
        Arc::new(Recorded { rule, applied: Mutex::default(), open: Mutex::default(), early: Mutex::default() });
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
        for clock in (0..CLOCKS).map(Clock) {
            let mut made = Vec::new();
            for row in 0..ROWS {
                if random.next_u32() % 3 == 0 {
                    continue;
                }
                let read = worker.get_row(TABLE, row)?[0];
                // The noise makes every gradient another number.
                let noise = random.next_u32() as f32 / u32::MAX as f32;
                let gradient = (read - row as f32) + noise - 0.5;
                let bits = gradient.to_bits();
                let before = computed.lock().expect("no panic").insert(bits, Computed { clock, row, read });
                assert!(before.is_none(), "seed {seed}: the same gradient twice");
                procedure.open.lock().expect("no panic").insert(bits);
                made.push(bits);
                worker.inc(TABLE, &[row], &Values::dense(1, vec![gradient]))?;
                worker.work(u64::from(random.next_u32() % 4000))?;
            }
            procedure.open.lock().expect("no panic").retain(|bits| !made.contains(bits));
            worker.clock()?;
            if worker.checkpoint_due() {
                worker.save(&[])?;
            }
        }
        // Whoever has read this knows that all gradients have been applied.
        worker.get_latest(TABLE, &[0])?;
        Ok(Vec::new())
    };
    let (_, trace) = run_traced(config, &[table], &program, &mut |_| {})
        .unwrap_or_else(|error| panic!("{consistency:?}, seed {seed}: {error}"));
    let applied = procedure.applied.lock().expect("no panic").clone();
    let early = *procedure.early.lock().expect("no panic");
    History { applied, computed: computed.into_inner().expect("no panic"), early, checkpoints: trace.checkpoints }
}

/// A gradient of a row as it was applied.
#[derive(Debug, Clone, Copy)]
struct Applied {
    clock: Clock,
    gradient: f32,
    /// The row after it.
    after: f32,
    /// The sum of the gradients that were in the row when it was read, and how many were applied since.
    read: f32,
    since: usize,
}

impl History {
    /// The gradients of one row in the order of their application.
    fn of_row(&self, case: &str, row: u64) -> Vec<Applied> {
        // The row before any gradient, and after each: the place of what was read is when it was read.
        let (mut states, mut sums, mut all) = (vec![0.0f32], vec![0.0f32], Vec::new());
        for &(gradient, after) in &self.applied {
            let computed = self.computed[&gradient.to_bits()];
            if computed.row == row {
                let when = states.iter().rposition(|&state| state == computed.read);
                let when = when.unwrap_or_else(|| panic!("{case}: row {row} never was {}", computed.read));
                let (clock, since) = (computed.clock, states.len() - 1 - when);
                all.push(Applied { clock, gradient, after, read: sums[when], since });
                states.push(after);
                sums.push(sums[sums.len() - 1] + gradient);
            }
        }
        all
    }
}

/// The published rule over the history of one row. Gives the row after each gradient, and beside it the sum of the gradients,
/// `z` and the largest `z`.
fn published(gradients: impl IntoIterator<Item = Applied>) -> Vec<[f32; 4]> {
    let mut states = vec![[0.0f32, 0.0, 1.0, 1.0]];
    for Applied { gradient: g, read, .. } in gradients {
        let [w, sum, z, z_max] = states[states.len() - 1];
        let back = sum - read;
        let old_step = RATE / z_max.sqrt();
        let z = z + (g * g + 2.0 * g * back);
        let z_max = z_max.max(z);
        let step = RATE / z_max.sqrt();
        states.push([w + ((old_step - step) * back - step * g), sum + g, z, z_max]);
    }
    states
}

fn close(found: f32, expected: f32) -> bool {
    (found - expected).abs() <= 1e-6 * (1.0 + expected.abs())
}

fn budget(bytes_per_second: u64, priority: Priority) -> Option<Budget> {
    Some(Budget { bytes_per_second, priority })
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
    let budgets = [None, budget(1_000_000, Priority::Random), budget(20_000, Priority::RelativeMagnitude)];
    let cases = models.into_iter().flat_map(|model| budgets.map(|budget| (model, budget)));
    for (consistency, budget, seed) in cases.flat_map(|(model, budget)| [(model, budget, 1), (model, budget, 2)]) {
        let case = format!("{consistency:?}, {budget:?}, seed {seed}");
        let history = history(consistency, &Config { budget, ..adverse(seed) });
        let gradients = history.applied.len();
        assert_eq!(gradients, history.computed.len(), "{case}: every gradient is applied once");
        let mut delayed = 0;
        for row in 0..ROWS {
            let of_row = history.of_row(&case, row);
            delayed += of_row.iter().filter(|applied| applied.since > 0).count();
            for (i, (found, [expected, ..])) in of_row.iter().zip(&published(of_row.clone())[1..]).enumerate() {
                let found = found.after;
                assert!(close(found, *expected), "{case}, row {row}, gradient {i}: {found} instead of {expected}");
            }
        }
        assert!(delayed * 3 > gradients, "{case}: only {delayed} of {gradients} gradients were delayed");
        // Under a budget gradients travel as soon as they may be shown, which under Bsp is at the end of their clocks.
        let may = budget.is_some() && consistency != Consistency::Bsp;
        assert_eq!(history.early > 0, may, "{case}: {} of {gradients} gradients were early", history.early);
    }
}

#[test]
fn a_checkpoint_equals_the_sequential_rule_over_what_was_made_before_its_clock() {
    let budgets = [None, budget(1_000_000, Priority::Random), budget(20_000, Priority::RelativeMagnitude)];
    for (budget, seed) in budgets.into_iter().flat_map(|budget| [(budget, 1), (budget, 2)]) {
        let case = format!("{budget:?}, seed {seed}");
        let saving = Saving { every: Every::Clocks(2), part_bytes: 1, part_seconds: 0.01, resume: None };
        let config = Config { budget, saving: Some(saving), ..adverse(seed) };
        let mut history = history(Consistency::Essp { staleness: 3 }, &config);
        // What a checkpoint has kept apart is changed first, and then the row.
        let mut last: HashMap<u32, usize> = HashMap::new();
        history.applied.iter().enumerate().for_each(|(at, (gradient, _))| _ = last.insert(gradient.to_bits(), at));
        let (all, mut at) = (history.applied.len(), 0..);
        history.applied.retain(|(gradient, _)| at.next() == last.get(&gradient.to_bits()).copied());
        assert!(history.applied.len() < all, "{case}: nothing came late to what was kept");
        assert_eq!(history.applied.len(), history.computed.len(), "{case}: every gradient is applied once");
        assert!(history.checkpoints.len() > 2, "{case}: {} checkpoints", history.checkpoints.len());
        for MemoryCheckpoint { clock, parts, .. } in &history.checkpoints {
            // Of every row its number, and then the state.
            let mut saved: HashMap<u64, Vec<f32>> = HashMap::new();
            for part in parts {
                for (i, row) in part.spans.chunks(2).flat_map(|span| span[0]..span[1]).enumerate() {
                    let RowRef::Dense(numbers) = part.values.row(i) else { panic!("{case}: not a dense row") };
                    saved.entry(row).or_default().extend(numbers);
                }
            }
            for row in 0..ROWS {
                let before = history.of_row(&case, row).into_iter().filter(|applied| applied.clock < *clock);
                let expected = *published(before).last().expect("it begins with a row");
                let found = &saved[&row];
                let equal = found.len() == 4 && found.iter().zip(expected).all(|(&found, x)| close(found, x));
                assert!(equal, "{case}, row {row} at {clock}: {found:?} instead of {expected:?}");
            }
        }
    }
}
