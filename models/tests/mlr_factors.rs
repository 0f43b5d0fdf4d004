//! Softmax regression by factors: under Bsp the bits of a plain sequential program on every driver, and learning with less.

mod common;

use common::Separable;
use hemiola::{Deployment, sim};
use hemiola_models::examples::Examples;
use hemiola_models::mf::blocks::shuffled_labels;
use hemiola_models::mlr::factors::{Config, train};
use hemiola_models::mlr::kernel;
use hemiola_models::mlr::row_width;
use hemiola_models::mlr::train::{self as tables, Arranged, TrainError, Trained};
use hemiola_models::{HoldOut, StepSize};

const PEERS: u32 = 4;
const CLASSES: usize = 5;
const FEATURES: u32 = 40;

fn examples(count: usize) -> Examples {
    let (classes, features) = (CLASSES, FEATURES);
    Separable { seed: 5, classes, features, density: 0.2, value: |drawn| 1.0 + drawn }.examples(count)
}

fn config() -> Config {
    Config { batch: 10, l2: 0.0, step: StepSize::Decay { rate: 1.0, factor: 0.9 }, epochs: 4, ..Config::default() }
}

fn train_with(config: &Config, deployment: &Deployment) -> Trained {
    let (train_set, test_set) = examples(800).split(HoldOut::Every(4)).expect("both parts");
    train(config, deployment, &train_set, Some(&test_set), |_| {}).expect("trained")
}

/// In every iteration each peer computes the errors of its minibatch on the same weights; then all that they change is
/// subtracted, peer by peer and example by example.
fn sequential(config: &Config) -> Vec<f32> {
    let (set, _) = examples(800).split(HoldOut::Every(4)).expect("both parts");
    let (features, width) = (set.features(), row_width(CLASSES));
    let mut greatest = vec![0.0f32; features];
    let all = || (0..set.len()).map(|example| set.example(example));
    for example in all() {
        for (&column, value) in example.columns.iter().zip(example.values) {
            greatest[column as usize] = greatest[column as usize].max(value.abs());
        }
    }
    let square = |(&column, value): (&u32, &f32)| f64::from(value / greatest[column as usize]).powi(2);
    let squares: f64 = all().flat_map(|example| example.columns.iter().zip(example.values).map(square)).sum();
    let mean_square = (1.0 + squares / set.len() as f64) as f32;
    let scale = |row: usize| if row == features { 1.0 } else { 1.0 / (greatest[row] * greatest[row]) } / mean_square;
    let order = shuffled_labels(set.len() as u32, config.seed);
    let clocks = set.len().div_ceil((PEERS * config.batch) as usize);
    let parts = PEERS as usize * clocks;
    let mut rows = vec![0.0f32; (features + 1) * width];
    for epoch in 0..config.epochs {
        for clock in 0..clocks {
            let mut pairs: Vec<(Vec<u32>, Vec<f32>, Vec<f32>)> = Vec::new();
            for peer in 0..PEERS as usize {
                let part = peer * clocks + clock;
                let chosen = &order[set.len() * part / parts..set.len() * (part + 1) / parts];
                for &number in chosen {
                    let example = set.example(number as usize);
                    let columns = [example.columns, &[features as u32]].concat();
                    let values = [example.values, &[1.0]].concat();
                    let label = set.labels()[number as usize];
                    let mut errors = vec![0.0; CLASSES];
                    kernel::probabilities(&rows, &columns, &values, label, &mut errors);
                    errors[label as usize] -= 1.0;
                    let (rate, share) = (config.step.at_epoch(epoch), 1.0 / chosen.len() as f32);
                    let u = columns.iter().zip(&values).map(|(&row, x)| rate * scale(row as usize) * x * share);
                    let u = u.collect();
                    pairs.push((columns, u, errors));
                }
            }
            for (columns, u, errors) in &pairs {
                for (&row, u) in columns.iter().zip(u) {
                    let row = &mut rows[row as usize * width..][..CLASSES];
                    row.iter_mut().zip(errors).for_each(|(weight, error)| *weight -= u * error);
                }
            }
        }
    }
    rows.chunks(width).flat_map(|row| row[..CLASSES].to_vec()).collect()
}

#[test]
fn bsp_gives_the_bits_of_the_sequential_program_on_threads_and_in_the_simulator() {
    let expected = sequential(&config());
    let threads = train_with(&config(), &Deployment::threads(PEERS));
    assert_eq!(threads.weights, expected);
    let accuracy = threads.epochs.last().and_then(|epoch| epoch.quality.test_accuracy).expect("held out");
    assert!(threads.epochs.len() == 4 && accuracy > 0.75, "something was learnt: {accuracy}");
    let slow = sim::Straggler { node: 1, factor: 3.0 };
    let faults = sim::Faults { stragglers: vec![slow], ..sim::Faults::default() };
    let simulated = train_with(&config(), &Deployment::Sim(sim::Config { faults, ..sim::Config::new(PEERS) }));
    assert_eq!(simulated.weights, expected);
    let losses = |trained: &Trained| trained.epochs.iter().map(|epoch| epoch.quality.test_loss).collect::<Vec<_>>();
    assert_eq!(losses(&simulated), losses(&threads));
}

#[test]
fn the_same_minibatches_on_tables_give_the_same_weights_but_for_rounding() {
    let (set, _) = examples(800).split(HoldOut::Every(4)).expect("both parts");
    for l2 in [0.0, 1e-2] {
        let config = Config { l2, ..config() };
        let by_factors = train_with(&config, &Deployment::threads(PEERS)).weights;
        let on_tables = config.on_tables(set.len(), PEERS);
        let data = Arranged::new(&set, None, PEERS, &on_tables).expect("examples");
        let by_matrix = tables::train(&on_tables, &Deployment::threads(PEERS), &data, |_| {}).expect("trained").weights;
        let largest = by_factors.iter().fold(0.0f32, |most, weight| most.max(weight.abs()));
        // On tables a penalty takes place where a feature occurs, so it is the same only on average.
        let tolerance = if l2 == 0.0 { 1e-5 } else { 0.05 } * largest;
        for (one, other) in by_factors.iter().zip(&by_matrix) {
            assert!((one - other).abs() < tolerance, "l2 {l2}: {one} and {other}, of up to {largest}");
        }
    }
}

#[test]
fn a_penalty_keeps_weights_small_on_every_driver_alike() {
    let config = Config { l2: 0.1, epochs: 6, ..config() };
    let threads = train_with(&config, &Deployment::threads(PEERS));
    assert_eq!(threads.weights, train_with(&config, &Deployment::sim(PEERS)).weights);
    let squares = |trained: &Trained| {
        let weights = &trained.weights[..trained.weights.len() - CLASSES];
        weights.iter().map(|&weight| f64::from(weight).powi(2)).sum::<f64>()
    };
    let free = train_with(&Config { l2: 0.0, ..config }, &Deployment::threads(PEERS));
    assert!(squares(&threads) < 0.5 * squares(&free), "{} of {}", squares(&threads), squares(&free));
    let penalty = threads.epochs.last().expect("epochs").quality.penalty;
    assert!((penalty - 0.05 * squares(&threads)).abs() < 1e-6 * penalty, "{penalty}");
}

#[test]
fn staleness_and_few_receivers_learn_too() {
    for (staleness, fanout) in [(3, None), (0, Some(2)), (2, Some(1))] {
        let config = Config { staleness, fanout, epochs: 8, ..config() };
        for deployment in [Deployment::threads(PEERS), Deployment::sim(PEERS)] {
            let accuracy = train_with(&config, &deployment).epochs[7].quality.test_accuracy.expect("held out");
            assert!(accuracy > 0.6, "{accuracy} with staleness {staleness} and fan-out {fanout:?}");
        }
    }
}

#[test]
fn few_receivers_learn_what_all_examples_say() {
    let loss = |fanout| {
        let config = Config { fanout, epochs: PEERS, step: StepSize::Constant { rate: 1.0 }, ..config() };
        train_with(&config, &Deployment::sim(PEERS))
            .epochs
            .last()
            .and_then(|epoch| epoch.quality.test_loss)
            .expect("held out")
    };
    let full = loss(None);
    for fanout in [1, 2] {
        assert!(loss(Some(fanout)) < 1.15 * full, "{} with fan-out {fanout}, and {full} with full", loss(Some(fanout)));
    }
}

#[test]
fn with_rounded_errors_as_much_is_learnt_and_less_travels() {
    // Ten times as many classes as there are to tell: the others are never right.
    let mut names = hemiola_models::Names::default();
    assert!((0..10 * CLASSES).all(|class| names.intern(&class.to_string()).is_ok()));
    let drawn = examples(800);
    let mut set = Examples::new(names);
    for at in 0..drawn.len() {
        let example = drawn.example(at);
        set.push(drawn.labels()[at], example.columns.iter().copied().zip(example.values.iter().copied()));
    }
    let (train_set, test_set) = set.split(HoldOut::Every(4)).expect("both parts");
    let learn = |rounding, deployment: &Deployment| {
        let config = Config { rounding, epochs: 8, ..config() };
        train(&config, deployment, &train_set, Some(&test_set), |_| {}).expect("trained")
    };
    let loss = |trained: &Trained| trained.epochs[7].quality.test_loss.expect("held out");
    let bytes = |trained: &Trained| trained.epochs[7].bytes_sent as f64;
    let exact = learn(None, &Deployment::sim(PEERS));
    for unit in [0.2, 1.0] {
        let rounded = learn(Some(unit), &Deployment::sim(PEERS));
        assert_eq!(rounded.weights, learn(Some(unit), &Deployment::threads(PEERS)).weights);
        assert!(loss(&rounded) < 1.1 * loss(&exact), "{} with {unit}, and {}", loss(&rounded), loss(&exact));
        assert!(bytes(&rounded) < 0.6 * bytes(&exact), "{} with {unit} of {}", bytes(&rounded), bytes(&exact));
    }
}

#[test]
fn training_stops_early_when_the_loss_no_longer_falls() {
    let step = StepSize::Constant { rate: 60.0 };
    let config = Config { patience: Some(1), epochs: 60, step, ..config() };
    assert!(train_with(&config, &Deployment::threads(PEERS)).epochs.len() < 60);
}

#[test]
fn what_cannot_be_trained_is_refused() {
    let set = examples(100);
    let refused = |config: Config| train(&config, &Deployment::threads(2), &set, None, |_| {}).expect_err("refused");
    let adaptive = Config { step: StepSize::Adaptive { rate: 1.0, damping: 0.1 }, ..config() };
    assert!(matches!(refused(adaptive), TrainError::Adaptive));
    assert!(matches!(refused(Config { patience: Some(1), ..config() }), TrainError::NothingHeldOut));
    assert!(matches!(refused(Config { batch: 0, ..config() }), TrainError::Zero { what: "the batch" }));
    assert!(matches!(refused(Config { epochs: u32::MAX, ..config() }), TrainError::Iterations));
    assert_eq!(
        refused(Config { fanout: Some(2), ..config() }).to_string(),
        "2 peers cannot send to 2 others each; the fan-out is from 1 to 1"
    );
    for unit in [0.0, -1.0, 1.5, f32::NAN] {
        let error = refused(Config { rounding: Some(unit), ..config() });
        assert!(matches!(error, TrainError::Rounding { .. }), "{error}");
    }
    let mut tiny = Examples::new(set.classes.clone());
    (0..20).for_each(|label| tiny.push(label % 2, [(0, 1e-9)]));
    let large = Config { step: StepSize::Constant { rate: f32::MAX }, batch: 1, ..config() };
    let error = train(&large, &Deployment::threads(2), &tiny, None, |_| {}).expect_err("refused").to_string();
    assert!(error.starts_with("the loss is no longer a number in epoch 1: the steps are too large"), "{error}");
}
