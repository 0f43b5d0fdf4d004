//! The delayed block proximal gradient method on several nodes: the bits of a plain program, and the optimum under delay.

use hemiola::tasks::Delay;
use hemiola::{Deployment, sim, tcp};
use hemiola_models::Names;
use hemiola_models::examples::Examples;
use hemiola_models::l1lr::blocks::Cut;
use hemiola_models::l1lr::distributed::{Config, Trained, train};
use hemiola_models::l1lr::prox::Penalty;
use hemiola_models::l1lr::share::Share;
use hemiola_models::l1lr::solver::{self, Solver};
use hemiola_models::l1lr::stopping::{State, Stopping};
use std::time::Duration;

const WORKERS: u32 = 2;
const FEATURES: u32 = 60;
const BLOCKS: u32 = 9;

/// Sparse examples of two classes, of which every third feature says something. Workers have different features.
fn examples(rows: usize) -> Examples {
    let mut seed = 11u64;
    let mut chance = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 40) as f64 / (1u64 << 24) as f64
    };
    let mut classes = Names::default();
    ["-1", "1"].iter().for_each(|class| assert!(classes.intern(class).is_ok()));
    let mut examples = Examples::new(classes);
    for row in 0..rows {
        let (mut entries, mut score) = (Vec::new(), -0.4);
        for feature in 0..FEATURES {
            let absent = (row < rows / 2 && feature % 20 == 4) || (row >= rows / 2 && feature % 20 == 7);
            if chance() < 0.2 && !absent {
                let value = (chance() * 2.0 - 0.5) as f32;
                let weight = if feature % 3 == 1 { 2.5 - 0.5 * f64::from(feature % 10) } else { 0.0 };
                score += weight * f64::from(value);
                entries.push((feature, value));
            }
        }
        examples.push(u32::from(chance() < 1.0 / (1.0 + (-score).exp())), entries);
    }
    examples
}

fn config(delay: Delay) -> Config {
    Config {
        penalty: Penalty { l1: 0.01, l2: 0.001, non_negative: false },
        bias: true,
        blocks: Cut::Into(BLOCKS),
        delay,
        kkt: true,
        stopping: Stopping { tolerance: 1e-6, violation: 1e-4, passes: 400 },
        seed: 3,
    }
}

fn train_on(config: &Config, deployment: &Deployment) -> Trained {
    train(&examples(400), config, deployment, |_| {}).expect("trained")
}

/// What the plain program finds: weights of features and bias, passes, and keys pushed and filtered.
struct Plain {
    weights: Vec<f32>,
    passes: u64,
    keys: (u64, u64),
    converged: bool,
}

/// The upper half of a number's bits.
fn cut(number: f32) -> f32 {
    f32::from_bits(number.to_bits() >> 16 << 16)
}

/// A bound in the upper half of its bits, and not below it.
fn short(bound: f64) -> f32 {
    let bound = bound as f32;
    if cut(bound) == bound { bound } else { f32::from_bits(((bound.to_bits() >> 16) + 1) << 16) }
}

/// The schedule under sequential consistency, written plainly: one block after the other, and within it one worker after
/// the other.
fn plain(config: &Config) -> Plain {
    let examples = examples(400);
    let (count, bias) = (examples.len(), FEATURES);
    let mut weights_of_features = vec![0; FEATURES as usize];
    for row in 0..count {
        examples.example(row).columns.iter().for_each(|&feature| weights_of_features[feature as usize] += 1);
    }
    let blocks = config.blocks.of(&weights_of_features, 0, config.seed).and(bias);
    let l1 = config.penalty.l1 * count as f64;
    let penalty = Penalty { l1, l2: config.penalty.l2 * count as f64, ..config.penalty };
    let of = |feature: u32| if feature == bias { Penalty::NONE } else { penalty };
    let half = count / 2;
    let mut shares = [0..half, half..count].map(|rows| Share::new(&examples, rows, 1).with_bias());
    let (mut weights, mut marked) = (vec![0.0f32; FEATURES as usize + 1], vec![false; FEATURES as usize + 1]);
    let mut reaches = vec![1e6f32; FEATURES as usize + 1];
    let (mut state, mut last) = (State::new(config.stopping), f64::INFINITY);
    let (mut still, mut recheck, mut ended) = (false, false, false);
    // For each pass: whether it was filtered, its violations, and its penalty and loss.
    let mut passes: Vec<(bool, f64, f64, f64)> = Vec::new();
    let (mut looked_at, mut keys, mut t) = (0, (0, 0), 0u64);
    let length = blocks.len() as u64;
    let mut order = Vec::new();
    while !ended && t < length * u64::from(config.stopping.passes) {
        if t % length == 0 {
            if let Some(pass) = passes.last_mut() {
                pass.3 = shares.iter().map(Share::loss).sum();
            }
            order = blocks.order(config.seed + t / length);
            let begun = passes.len() + 1;
            let rechecked = std::mem::take(&mut recheck) || begun.is_power_of_two();
            passes.push((!rechecked, 0.0, 0.0, 0.0));
        }
        // A pass is looked at when the second iteration after the one that measures it is done.
        if looked_at < passes.len() - 1 && t == (looked_at as u64 + 1) * length + 3 {
            let (filtered, violation, cost, loss) = passes[looked_at];
            looked_at += 1;
            let rose = loss + cost > last * (1.0 + config.stopping.tolerance);
            last = loss + cost;
            let is_still = state.ended(loss + cost, violation) && !rose;
            let twice = std::mem::replace(&mut still, is_still) && is_still;
            ended = twice && !filtered;
            recheck |= twice && filtered;
        }
        let pass = passes.last_mut().expect("begun");
        let mut block = blocks.block(order[(t % length) as usize]).to_vec();
        block.sort_unstable();
        let filtered = pass.0;
        let idle = |feature: u32| filtered && marked[feature as usize];
        let active: Vec<u32> = block.iter().copied().filter(|&feature| !idle(feature)).collect();
        let mut sums = vec![None; active.len()];
        for share in &mut shares {
            let has = |feature: u32| share.features().contains(&feature);
            keys.1 += block.iter().filter(|&&feature| has(feature) && idle(feature)).count() as u64;
            let own: Vec<usize> = (0..active.len()).filter(|&place| has(active[place])).collect();
            keys.0 += own.len() as u64;
            let features: Vec<u32> = own.iter().map(|&place| active[place]).collect();
            for (place, found) in own.into_iter().zip(share.slopes(&features, 0.0)) {
                // What is marked is told without a bound.
                let bound = if marked[active[place] as usize] { 0.0 } else { short(found.bound) };
                let found = (found.slope as f32, bound);
                let sum: &mut Option<(f32, f32)> = &mut sums[place];
                *sum = Some(sum.map_or(found, |sum| (sum.0 + found.0, sum.1 + found.1)));
            }
        }
        let mut steps = Vec::new();
        for (&feature, sum) in active.iter().zip(&sums) {
            let Some((slope, bound)) = *sum else { continue };
            let place = feature as usize;
            let (weight, reach, penalty) = (weights[place], reaches[place], of(feature));
            pass.1 += penalty.violation(f64::from(weight), f64::from(slope));
            let best = match f64::from(bound) {
                0.0 => weight,
                bound => penalty.prox(f64::from(weight) - f64::from(slope) / bound, bound) as f32,
            };
            let way = best - weight;
            let step = if best == 0.0 && way.abs() <= reach { f32::INFINITY } else { cut(way.clamp(-reach, reach)) };
            weights[place] = if step == f32::INFINITY { 0.0 } else { weight + step };
            reaches[place] = f32::max(2.0 * (weights[place] - weight).abs(), (reach.min(2.0) / 2.0).max(1e-3));
            let stays = weight == 0.0 && best == 0.0 && f64::from(slope).abs() <= 0.5 * l1;
            marked[place] = stays && feature != bias;
            steps.push((feature, if marked[place] { -0.0 } else { step }));
        }
        shares.iter_mut().for_each(|share| _ = share.step(steps.iter().copied()));
        if t % length == length - 1 {
            pass.2 = (0..=FEATURES).map(|feature| of(feature).cost(f64::from(weights[feature as usize]))).sum();
        }
        t += 1;
    }
    Plain { weights, passes: t.div_ceil(length), keys, converged: ended }
}

fn assert_plain(trained: &Trained) {
    assert_plain_of(&config(Delay::Sequential), trained);
}

fn assert_plain_of(config: &Config, trained: &Trained) {
    let plain = plain(config);
    let mut weights = vec![0.0f32; FEATURES as usize + 1];
    trained.fit.weights.iter().for_each(|&(feature, weight)| weights[feature as usize] = weight as f32);
    weights[FEATURES as usize] = trained.fit.bias as f32;
    assert_eq!(weights, plain.weights.iter().map(|weight| weight + 0.0).collect::<Vec<_>>());
    assert_eq!((u64::from(trained.fit.passes), trained.keys), (plain.passes, plain.keys));
    assert!(trained.fit.converged && plain.converged && plain.keys.1 > plain.keys.0 / 20, "{:?}", plain.keys);
    let last = trained.progress.last().expect("progress");
    assert_eq!(
        (last.pass, last.objective, last.nonzeros),
        (trained.fit.passes, trained.fit.objective, trained.fit.weights.len())
    );
}

fn processes(test: &str, servers: u32) -> Deployment {
    let program = std::env::current_exe().expect("a test has a program").into();
    let command = Some(vec![program, test.into(), "--exact".into(), "--nocapture".into()]);
    let timeout = Duration::from_secs(120);
    Deployment::Tcp(tcp::Config { processes: WORKERS, servers, command, timeout, ..Default::default() })
}

#[test]
fn sequential_on_threads_gives_the_bits_of_the_plain_program() {
    assert_plain(&train_on(&config(Delay::Sequential), &Deployment::threads(WORKERS)));
}

#[test]
fn groups_of_features_as_blocks_give_the_bits_of_the_plain_program() {
    let groups = (0..FEATURES).map(|feature| feature % 5).collect();
    let config = Config { blocks: Cut::ByGroup(groups), ..config(Delay::Sequential) };
    assert_plain_of(&config, &train_on(&config, &Deployment::threads(WORKERS)));
}

#[test]
fn sequential_in_the_simulator_gives_the_bits_of_the_plain_program() {
    for servers in [sim::Servers::Beside(1), sim::Servers::Apart(2)] {
        let cluster = sim::Config { servers, ..sim::Config::new(WORKERS) };
        assert_plain(&train_on(&config(Delay::Sequential), &Deployment::Sim(cluster)));
    }
}

#[test]
fn sequential_in_processes_gives_the_bits_of_the_plain_program() {
    let test = "sequential_in_processes_gives_the_bits_of_the_plain_program";
    assert_plain(&train_on(&config(Delay::Sequential), &processes(test, 1)));
}

#[test]
fn sequential_with_two_servers_gives_the_bits_of_the_plain_program() {
    let test = "sequential_with_two_servers_gives_the_bits_of_the_plain_program";
    assert_plain(&train_on(&config(Delay::Sequential), &processes(test, 2)));
}

#[test]
fn a_delay_finds_the_same_optimum_sooner_where_a_node_is_slow() {
    let examples = examples(400);
    let Config { penalty, stopping, seed, .. } = config(Delay::Sequential);
    let exact = solver::Config { stopping: Stopping { tolerance: 1e-12, ..stopping }, seed, ..Default::default() };
    let best = Solver::new(&examples, 1, 0.0, 1, &exact).fit(penalty, |_| {}).expect("in memory").objective;
    let mut cluster = sim::Config::new(4);
    cluster.faults.stragglers = vec![sim::Straggler { node: 2, factor: 3.0 }];
    cluster.faults.pauses = sim::Hazard { per_second: 100.0, seconds: 2e-3 };
    let cluster = Deployment::Sim(cluster);
    let mut per_pass = Vec::new();
    for delay in ["sequential", "2", "4", "40", "eventual", "auto"] {
        let trained = train_on(&config(delay.parse().expect("a delay")), &cluster);
        let fit = &trained.fit;
        let away = fit.objective / best - 1.0;
        assert!((-1e-9..1e-3).contains(&away), "delay {delay}: {away:e} away after {} passes", fit.passes);
        assert!(fit.converged, "delay {delay}");
        let measured = trained.progress.len();
        assert!(measured + 1 >= fit.passes as usize, "delay {delay}: every pass is shown");
        if delay == "4" {
            let again = train_on(&config(Delay::Bounded(4)), &cluster);
            assert_eq!((&again.fit, &again.progress), (fit, &trained.progress), "one seed, one outcome");
        }
        per_pass.push(trained.outcome.seconds / f64::from(fit.passes));
    }
    assert!(per_pass[2] < 0.9 * per_pass[0], "seconds a pass: {per_pass:?}");
}
