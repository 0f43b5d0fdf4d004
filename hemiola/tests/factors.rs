//! Jobs of peers on threads and in the simulator: the same models as a plain program, the bound, nothing lost or applied
//! twice whatever goes wrong on the wire, and the bytes that the paper's formulas ask for. Over tcp: `tcp.rs`.

use hemiola::factors::{self, Factor, MatrixSchema, Peer};
use hemiola::sim::{Config, Delays, Hazard, Straggler};
use hemiola::{Consistency, Deployment, Error, Filter, Init, Outcome, Rows, Sabotage, TableId, TableSchema, Values};

/// A cheap hash, for data and for choices.
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^ (x >> 29)
}

/// A number from -1 to 1.
fn number(seed: u64) -> f32 {
    (mix(seed) >> 40) as f32 / (1u64 << 23) as f32 - 1.0
}

fn bytes_of(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn numbers_of(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().expect("four"))).collect()
}

mod softmax {
    //! A softmax regression small enough to be followed.
    use super::{mix, number};

    pub(crate) const CLASSES: usize = 5;
    pub(crate) const FEATURES: usize = 41;
    pub(crate) const BATCH: u64 = 6;
    pub(crate) const ITERATIONS: u64 = 12;
    pub(crate) const STEP: f32 = 0.1;

    /// The pair of one example, on weights that lie row by row.
    pub(crate) fn pair(weights: &[f32], i: u64) -> (Vec<f32>, Vec<f32>) {
        let x: Vec<f32> = (0..FEATURES as u64).map(|k| number(i * 1000 + k)).collect();
        let class = mix(i) as usize % CLASSES;
        let dot = |row: &[f32]| row.iter().zip(&x).map(|(w, x)| w * x).sum::<f32>();
        let mut u: Vec<f32> = weights.chunks_exact(FEATURES).map(|row| dot(row).exp()).collect();
        let total: f32 = u.iter().sum();
        u.iter_mut().for_each(|p| *p *= STEP / (total * BATCH as f32));
        u[class] -= STEP / BATCH as f32;
        (u, x)
    }

    pub(crate) fn batch(iteration: u64, worker: u64, workers: u64) -> impl Iterator<Item = u64> {
        (0..BATCH).map(move |i| (iteration * BATCH + i) * workers + worker)
    }
}

fn weights() -> MatrixSchema {
    let init = Init::Uniform { seed: 3, low: -0.1, high: 0.1, columns: softmax::FEATURES as u32, rest: 0.0 };
    MatrixSchema { init, ..MatrixSchema::new(softmax::CLASSES as u32, softmax::FEATURES as u32) }
}

/// The replica after every iteration.
fn by_factors(peer: &mut Peer<'_>) -> Result<Vec<u8>, Error> {
    let (me, peers) = (u64::from(peer.id().0), u64::from(peer.peers()));
    let mut models = Vec::new();
    for iteration in 0..softmax::ITERATIONS {
        for i in softmax::batch(iteration, me, peers) {
            let (u, v) = softmax::pair(peer.matrix().numbers(), i);
            peer.write(&u, &v)?;
        }
        peer.work(softmax::BATCH)?;
        peer.commit()?;
        models.extend(bytes_of(peer.matrix().numbers()));
    }
    Ok(models)
}

/// The models of a plain program that works through the minibatches of all workers one after the other.
fn sequentially(workers: u64) -> Vec<f32> {
    let mut weights: Vec<f32> = (0..softmax::CLASSES)
        .flat_map(|row| {
            let mut numbers = vec![0.0; softmax::FEATURES];
            weights().init.fill(row as u64, &mut numbers);
            numbers
        })
        .collect();
    let mut models = Vec::new();
    for iteration in 0..softmax::ITERATIONS {
        let read = weights.clone();
        for i in (0..workers).flat_map(|worker| softmax::batch(iteration, worker, workers)) {
            let (u, v) = softmax::pair(&read, i);
            for (row, u) in weights.chunks_exact_mut(softmax::FEATURES).zip(&u) {
                row.iter_mut().zip(&v).for_each(|(w, v)| *w -= u * v);
            }
        }
        models.extend_from_slice(&weights);
    }
    models
}

fn simulated(nodes: u32, seed: u64) -> Config {
    let mut config = Config { seed, ..Config::new(nodes) };
    config.network.jitter = 1e-3;
    config.faults.stragglers = vec![Straggler { node: nodes - 1, factor: 5.0 }];
    config.faults.delays = Delays { share: 0.2, seconds: 1e-3 };
    config.faults.lost_connections = Hazard { per_second: 40.0, seconds: 2e-3 };
    config.seconds_per_unit = 1e-4;
    config
}

#[test]
fn under_bsp_with_full_broadcast_every_driver_has_the_models_of_a_plain_program_to_the_bit() {
    for workers in [1, 2, 5] {
        let expected = bytes_of(&sequentially(u64::from(workers)));
        let deployments = [Deployment::threads(workers), Deployment::Sim(simulated(workers, 7))];
        for deployment in deployments {
            let outcome = factors::run(&deployment, &weights(), by_factors).expect("runs");
            assert_eq!(outcome.results, vec![expected.clone(); workers as usize], "{deployment:?}");
        }
    }
}

#[test]
fn full_matrices_on_tables_give_the_same_sequence_of_models() {
    const WORKERS: u32 = 3;
    let table = TableSchema {
        init: weights().init,
        consistency: Consistency::Bsp,
        ..TableSchema::dense("weights", softmax::CLASSES as u64, softmax::FEATURES as u32)
    };
    let rows: Vec<u64> = (0..softmax::CLASSES as u64).collect();
    let outcome = hemiola::run(&Deployment::sim(WORKERS), &[table], |worker| {
        let (me, workers) = (u64::from(worker.id().0), u64::from(worker.workers()));
        let (mut models, mut weights) = (Vec::new(), Vec::new());
        for iteration in 0..=softmax::ITERATIONS {
            worker.get_dense(TableId(0), &Rows::List(&rows), &mut weights)?;
            if iteration > 0 {
                models.extend(bytes_of(&weights));
            }
            let mut update = vec![0.0f32; weights.len()];
            for i in softmax::batch(iteration, me, workers) {
                let (u, v) = softmax::pair(&weights, i);
                for (row, u) in update.chunks_exact_mut(softmax::FEATURES).zip(&u) {
                    row.iter_mut().zip(&v).for_each(|(w, v)| *w -= u * v);
                }
            }
            worker.inc(TableId(0), &rows, &Values::dense(softmax::FEATURES as u32, update))?;
            worker.clock()?;
        }
        Ok(models)
    });
    let models = &outcome.expect("runs").results[0];
    let found = numbers_of(models);
    let expected = sequentially(u64::from(WORKERS));
    assert_eq!(found.len(), expected.len());
    let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < 1e-5, "they differ by {worst}");
}

/// What one random job is like; everything follows from its seed.
#[derive(Debug, Clone)]
struct Case {
    nodes: u32,
    staleness: u32,
    fanout: Option<u32>,
    clocks: u32,
    config: Config,
    filters: Vec<Filter>,
}

impl Case {
    fn random(seed: u64) -> Self {
        let mut state = mix(seed ^ 0x5f5f);
        let mut below = |n: u64| {
            state = mix(state.wrapping_add(0x9e37_79b9));
            (state >> 11) % n
        };
        let nodes = 2 + below(6) as u32;
        let mut config = Config { seed, ..Config::new(nodes) };
        config.seconds_per_unit = 1e-4;
        config.network.jitter = below(3) as f64 * 1e-3;
        config.faults.stragglers = vec![Straggler { node: below(u64::from(nodes)) as u32, factor: below(8) as f64 }];
        config.faults.pauses = Hazard { per_second: below(3) as f64 * 50.0, seconds: 2e-3 };
        config.faults.delays = Delays { share: below(4) as f64 * 0.2, seconds: 2e-3 };
        config.faults.lost_connections = Hazard { per_second: below(3) as f64 * 60.0, seconds: 2e-3 };
        let filters = if below(3) == 0 { vec![Filter::encoding(hemiola::filter::Lz4)] } else { Vec::new() };
        let fanout = (below(2) == 0).then(|| 1 + below(u64::from(nodes) - 1) as u32);
        Self { nodes, staleness: below(4) as u32, fanout, clocks: 10 + below(20) as u32, config, filters }
    }

    /// Runs the job; every peer looks at every start of a clock at what is in its replica.
    ///
    /// In clock `c` worker `q` subtracts minus one from row `q` and column `c`, so that the replica says which blocks it
    /// holds, and how often.
    fn run(&self) -> Result<Outcome, Error> {
        let schema = MatrixSchema {
            staleness: self.staleness,
            fanout: self.fanout,
            filters: self.filters.clone(),
            ..MatrixSchema::new(self.nodes, self.clocks)
        };
        factors::run(&Deployment::Sim(self.config.clone()), &schema, |peer| {
            let me = peer.id().0;
            for clock in 0..self.clocks {
                self.look(peer, clock, self.staleness)?;
                let (row, column) = ([me], [clock]);
                let mut dense = vec![0.0; self.clocks as usize];
                dense[clock as usize] = 1.0;
                match (clock + me) % 3 {
                    0 => peer.write(Factor::Sparse(&row, &[-1.0]), Factor::Sparse(&column, &[1.0]))?,
                    1 => peer.write(Factor::Sparse(&row, &[-1.0]), &dense)?,
                    // Of rank two, which cancel but for one.
                    _ => {
                        peer.write(Factor::Sparse(&row, &[-2.0]), &dense)?;
                        peer.write(Factor::Sparse(&row, &[1.0]), &dense)?;
                    }
                }
                peer.work(u64::from(1 + (me + clock) % 4))?;
                peer.commit()?;
            }
            peer.catch_up()?;
            self.look(peer, self.clocks, 0)?;
            Ok(bytes_of(peer.matrix().numbers()))
        })
    }

    /// Checks what a replica holds at the start of `clock`.
    fn look(&self, peer: &Peer<'_>, clock: u32, staleness: u32) -> Result<(), Error> {
        let me = peer.id().0;
        for sender in 0..self.nodes {
            let row = peer.matrix().row(sender as usize);
            let held = row.iter().take_while(|x| **x == 1.0).count() as u32;
            if row[held as usize..].iter().any(|x| *x != 0.0) {
                return Err(Error::program(format!("peer {me} at clock {clock} has of peer {sender} {row:?}")));
            }
            let sends = sender == me || self.fanout.is_none() || held > 0;
            let least = if sender == me { clock } else { clock.saturating_sub(staleness) };
            if held > clock || (sends && held < least) {
                return Err(Error::program(format!(
                    "peer {me} at clock {clock} has {held} clocks of peer {sender} with staleness {staleness}"
                )));
            }
        }
        Ok(())
    }
}

fn seeds() -> Vec<u64> {
    let read = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match read("HEMIOLA_SEED") {
        Some(seed) => vec![seed],
        None => (0..read("HEMIOLA_SEEDS").unwrap_or(60)).collect(),
    }
}

#[test]
fn whatever_happens_on_the_wire_the_bound_holds_and_every_block_is_applied_once() {
    for seed in seeds() {
        let case = Case::random(seed);
        let outcome = case.run().unwrap_or_else(|error| panic!("HEMIOLA_SEED={seed}: {error}\n{case:?}"));
        let again = case.run().expect("ran before");
        assert_eq!((&outcome.results, outcome.seconds), (&again.results, again.seconds), "HEMIOLA_SEED={seed}");
        // Every peer sends to as many, so all replicas together hold each block as often as that, and once at home.
        let held: f32 = outcome.results.iter().flat_map(|result| numbers_of(result)).sum();
        let receivers = case.fanout.unwrap_or(case.nodes - 1);
        assert_eq!(held, (case.nodes * case.clocks * (receivers + 1)) as f32, "HEMIOLA_SEED={seed}");
    }
}

#[test]
fn planted_faults_are_caught() {
    for fault in [Sabotage::BoundOffByOne, Sabotage::ApplyTwice, Sabotage::LoseAfterReconnect] {
        let caught = (0..60).any(|seed| {
            let mut case = Case::random(seed);
            case.config.sabotage = fault;
            case.run().is_err()
        });
        assert!(caught, "{fault:?} was not noticed");
    }
}

#[test]
fn a_peer_that_stops_early_is_named_by_those_who_wait_for_it() {
    let outcome = factors::run(&Deployment::sim(2), &MatrixSchema::new(1, 1), |peer| {
        (0..if peer.id().0 == 1 { 3 } else { 6 }).try_for_each(|_| peer.commit().map(|_| ()))?;
        Ok(Vec::new())
    });
    let sentence = outcome.expect_err("worker 1 stopped early").to_string();
    let expected = "every worker waits and nothing is under way: worker 0 waits for factors of worker 1 until it reaches \
                    clock 4; they have come up to clock 3";
    assert!(sentence.ends_with(expected), "{sentence}");
}

#[test]
fn the_proximal_operator_is_applied_after_every_iteration() {
    let outcome = factors::run(&Deployment::threads(2), &MatrixSchema::new(1, 2), |peer| {
        // Never above what the number of finished iterations is.
        peer.prox(|matrix, clock| matrix.numbers_mut().iter_mut().for_each(|x| *x = x.min(clock.0 as f32)));
        for _ in 0..3 {
            peer.write(&[-1.0], &[0.25, 5.0])?;
            peer.commit()?;
        }
        Ok(bytes_of(peer.matrix().numbers()))
    });
    assert_eq!(outcome.expect("runs").results, vec![bytes_of(&[1.5, 3.0]); 2]);
}

/// Bytes that all peers send in an iteration, by the simulator's count.
fn bytes_per_iteration(peers: u32, schema: &MatrixSchema, pairs: usize, nonzeros: Option<usize>) -> f64 {
    const ITERATIONS: u64 = 8;
    let outcome = factors::run(&Deployment::sim(peers), schema, |peer| {
        let (u, v) = (vec![0.001f32; schema.rows as usize], vec![0.5f32; schema.columns as usize]);
        let places: Vec<u32> = (0..nonzeros.unwrap_or(0) as u32).map(|place| place * 3).collect();
        for _ in 0..ITERATIONS {
            for _ in 0..pairs {
                match nonzeros {
                    Some(count) => peer.write(&u, Factor::Sparse(&places, &v[..count]))?,
                    None => peer.write(&u, &v)?,
                }
            }
            peer.commit()?;
        }
        peer.catch_up()?;
        Ok(Vec::new())
    });
    let outcome = outcome.expect("runs");
    let (sent, received) =
        outcome.splits.iter().fold((0, 0), |(s, r), split| (s + split.bytes_sent, r + split.bytes_received));
    assert!(received <= sent && received * 100 > sent * 99, "{sent} bytes sent, {received} received");
    sent as f64 / ITERATIONS as f64
}

/// The paper counts `P²K(J + D)` values, a peer's own among them; over the wire go those of `P(P − 1)` pairs of peers.
#[test]
fn bytes_on_the_wire_are_those_of_the_formulas() {
    const BYTES: f64 = 4.0;
    let (peers, pairs, rows, columns) = (6u32, 40, 60u32, 600u32);
    let close = |found: f64, expected: f64| {
        assert!(found >= expected && found < expected * 1.02, "{found} bytes, {expected} expected");
    };
    let schema = MatrixSchema::new(rows, columns);
    let (p, k, jd) = (f64::from(peers), pairs as f64, f64::from(rows + columns));
    close(bytes_per_iteration(peers, &schema, pairs, None), BYTES * p * (p - 1.0) * k * jd);
    for fanout in [1, 2, 4] {
        let partial = MatrixSchema { fanout: Some(fanout), ..schema.clone() };
        close(bytes_per_iteration(peers, &partial, pairs, None), BYTES * p * f64::from(fanout) * k * jd);
    }
    // A non-zero of a sparse factor is a place and a number.
    for nonzeros in [25, 50, 100] {
        let values = f64::from(rows) + 2.0 * nonzeros as f64;
        close(bytes_per_iteration(peers, &schema, pairs, Some(nonzeros)), BYTES * p * (p - 1.0) * k * values);
    }
}

/// Of full matrices every worker sends one and receives one, so that `PJD` values go each way.
#[test]
fn bytes_of_full_matrices_on_tables_are_those_of_the_formula() {
    const CLOCKS: u64 = 30;
    let (workers, rows, columns) = (4u32, 12u64, 1000u32);
    let table = TableSchema { consistency: Consistency::Bsp, ..TableSchema::dense("matrix", rows, columns) };
    let mut config = Config::new(workers);
    config.servers = hemiola::sim::Servers::Apart(2);
    let all: Vec<u64> = (0..rows).collect();
    let outcome = hemiola::run(&Deployment::Sim(config), &[table], |worker| {
        let mut matrix = Vec::new();
        for _ in 0..CLOCKS {
            worker.get_dense(TableId(0), &Rows::List(&all), &mut matrix)?;
            let update = vec![1.0; matrix.len()];
            worker.inc(TableId(0), &all, &Values::dense(columns, update))?;
            worker.clock()?;
        }
        Ok(Vec::new())
    });
    let outcome = outcome.expect("runs");
    let one_way = 4.0 * f64::from(workers) * rows as f64 * f64::from(columns);
    // Everyone receives the matrix as it is in the beginning, and as it is after every clock.
    let sent: u64 = outcome.splits.iter().map(|split| split.bytes_sent).sum();
    let received: u64 = outcome.splits.iter().map(|split| split.bytes_received).sum();
    for (bytes, matrices) in [(sent, CLOCKS), (received, CLOCKS + 1)] {
        let found = bytes as f64 / matrices as f64;
        assert!((found / one_way - 1.0).abs() < 0.02, "{found} bytes, {one_way} expected");
    }
}

#[test]
fn a_job_that_cannot_be_is_refused_with_its_reason() {
    let schema = MatrixSchema::new(3, 4);
    let with = |change: fn(&mut MatrixSchema)| {
        let mut changed = schema.clone();
        change(&mut changed);
        changed
    };
    let cluster = |change: fn(&mut Config)| {
        let mut config = Config::new(3);
        change(&mut config);
        Deployment::Sim(config)
    };
    let threads = Deployment::threads(3);
    let cases = [
        (
            threads.clone(),
            with(|s| s.rows = 0),
            "a matrix needs at least one row and one column and at most 1099511627776 numbers, not 0 by 4",
        ),
        (
            threads.clone(),
            with(|s| s.fanout = Some(3)),
            "3 peers cannot send to 3 others each; the fan-out is from 1 to 2",
        ),
        (
            threads.clone(),
            with(|s| s.fanout = Some(0)),
            "3 peers cannot send to 0 others each; the fan-out is from 1 to 2",
        ),
        (Deployment::threads(0), schema.clone(), "a job of factors needs at least one peer"),
        (
            threads.clone(),
            with(|s| s.filters = vec![Filter::encoding(hemiola::filter::KeyCache::default())]),
            "filter 'key-cache' is for the rows of tables; factors can be compressed with lz4 or zstd",
        ),
        (
            cluster(|c| c.workers_per_node = 2),
            schema.clone(),
            "every peer has a process or node of its own; use one worker in each, not 2",
        ),
        (
            cluster(|c| {
                c.budget = Some(hemiola::Budget { bytes_per_second: 1 << 20, priority: hemiola::Priority::Random })
            }),
            schema.clone(),
            "a bandwidth budget is for tables; peers send their factors at the end of every iteration",
        ),
        (
            cluster(|c| {
                c.faults.crashes.push(hemiola::sim::Crash {
                    process: hemiola::sim::Process::Server(hemiola::ShardId(0)),
                    seconds: 1.0,
                })
            }),
            schema.clone(),
            "server 0 cannot crash: the cluster has no such process",
        ),
    ];
    for (deployment, schema, sentence) in cases {
        let refused = factors::run(&deployment, &schema, |_| Ok(Vec::new())).expect_err("cannot be");
        assert_eq!(refused.to_string(), sentence);
    }
    let misfit = factors::run(&threads, &schema, |peer| {
        peer.write(&[1.0; 4], &[1.0; 4])?;
        Ok(Vec::new())
    });
    let sentence = "a factor u of 4 numbers was written for a matrix with 3 rows";
    assert_eq!(misfit.expect_err("does not fit").to_string(), sentence);
}

#[test]
fn a_crashed_peer_ends_a_simulation_by_name() {
    let mut config = Config::new(3);
    let process = hemiola::sim::Process::Worker(hemiola::ClientId(1));
    config.faults.crashes.push(hemiola::sim::Crash { process, seconds: 0.01 });
    let outcome = factors::run(&Deployment::Sim(config), &MatrixSchema::new(2, 2), |peer| {
        loop {
            peer.work(100)?;
            peer.commit()?;
        }
    });
    let sentence = outcome.expect_err("a peer crashed").to_string();
    assert!(sentence.starts_with("worker process 1 died at clock "), "{sentence}");
}
