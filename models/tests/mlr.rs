//! Softmax regression on tables: under Bsp the bits of a plain sequential program, learning under every model, and kept.

mod common;

use common::Separable;
use hemiola::{Consistency, Deployment, sim};
use hemiola_models::examples::Examples;
use hemiola_models::mf::blocks::shuffled_labels;
use hemiola_models::mlr::kernel::{self, Block, RowStep};
use hemiola_models::mlr::model::MlrModel;
use hemiola_models::mlr::row_width;
use hemiola_models::mlr::train::{Arranged, Config, TrainError, Trained, train};
use hemiola_models::{HoldOut, StepSize};
use serde_json::json;
use std::collections::BTreeSet;

const WORKERS: u32 = 3;
const CLASSES: usize = 4;
const FEATURES: u32 = 30;

fn examples(count: usize) -> Examples {
    let (classes, features) = (CLASSES, FEATURES);
    Separable { seed: 9, classes, features, density: 0.3, value: |drawn| 4.0 * drawn }.examples(count)
}

fn config() -> Config {
    Config {
        batch: 2,
        l2: 1e-3,
        step: StepSize::Adaptive { rate: 6.0, damping: 0.01 },
        epochs: 4,
        consistency: Consistency::Bsp,
        clocks_per_epoch: 5,
        ..Config::default()
    }
}

fn train_with(config: &Config, deployment: &Deployment) -> Trained {
    let (train_set, test_set) = examples(600).split(HoldOut::Every(4)).expect("both parts");
    let data = Arranged::new(&train_set, Some(&test_set), WORKERS, config).expect("examples");
    train(config, deployment, &data, |_| {}).expect("trained")
}

/// The schedule, written plainly: in every clock each worker starts from the same weights and goes through its part of
/// the shuffled examples; at the clock's end the changes are added in worker order, those of weights as parts of how
/// many workers had examples with their feature.
fn sequential(config: &Config) -> Vec<f32> {
    let (set, _) = examples(600).split(HoldOut::Every(4)).expect("both parts");
    let (features, width) = (set.features(), row_width(CLASSES));
    let (mut greatest, mut count) = (vec![0.0f32; features], vec![0u32; features]);
    for example in (0..set.len()).map(|example| set.example(example)) {
        for (&column, value) in example.columns.iter().zip(example.values) {
            greatest[column as usize] = greatest[column as usize].max(value.abs());
            count[column as usize] += 1;
        }
    }
    let mut squares = 0.0;
    for example in (0..set.len()).map(|example| set.example(example)) {
        for (&column, value) in example.columns.iter().zip(example.values) {
            squares += f64::from(value / greatest[column as usize]).powi(2);
        }
    }
    let mean_square = (1.0 + squares / set.len() as f64) as f32;
    let order = shuffled_labels(set.len() as u32, config.seed);
    let parts = (WORKERS * config.clocks_per_epoch) as usize;
    let mut rows = vec![0.0f32; (features + 1) * width];
    for epoch in 0..config.epochs {
        for clock in 0..config.clocks_per_epoch as usize {
            let step = |row: usize, numbers: &[f32]| {
                let scale = if row == features { 1.0 } else { 1.0 / (greatest[row] * greatest[row]) };
                let slowed = (1.0 + config.step.damping() * numbers[CLASSES]).sqrt();
                let rate = config.step.at_epoch(epoch) / mean_square * scale / slowed;
                let rarity = if row == features { 0.0 } else { set.len() as f32 / count[row] as f32 };
                RowStep { rate, keep: 1.0 / (1.0 + rate * config.l2 * rarity / config.batch as f32), seen: scale }
            };
            let steps: Vec<RowStep> = rows.chunks(width).enumerate().map(|(row, numbers)| step(row, numbers)).collect();
            let (mut changes, mut sharers) = (Vec::new(), vec![0.0f32; features + 1]);
            for worker in 0..WORKERS as usize {
                let part = worker * config.clocks_per_epoch as usize + clock;
                let (mut labels, mut ends, mut columns, mut values) = (vec![], vec![], vec![], vec![]);
                for &example in &order[set.len() * part / parts..set.len() * (part + 1) / parts] {
                    columns.extend_from_slice(set.example(example as usize).columns);
                    values.extend_from_slice(set.example(example as usize).values);
                    columns.push(features as u32);
                    values.push(1.0);
                    ends.push(columns.len());
                    labels.push(set.labels()[example as usize]);
                }
                let met: BTreeSet<u32> = columns.iter().copied().collect();
                met.iter().for_each(|&row| sharers[row as usize] += 1.0);
                let block = Block { labels: &labels, ends: &ends, columns: &columns, values: &values };
                let mut after = rows.clone();
                kernel::sgd_block(&mut after, &steps, block, CLASSES, config.batch as usize);
                changes.push(after.iter().zip(&rows).map(|(after, before)| after - before).collect::<Vec<f32>>());
            }
            for change in &changes {
                for (at, (number, change)) in rows.iter_mut().zip(change).enumerate() {
                    let is_weight = at % width < CLASSES && *change != 0.0;
                    *number += if is_weight { change / sharers[at / width] } else { *change };
                }
            }
        }
    }
    rows.chunks(width).flat_map(|row| row[..CLASSES].to_vec()).collect()
}

#[test]
fn bsp_on_threads_gives_the_bits_of_the_sequential_program() {
    let trained = train_with(&config(), &Deployment::threads(WORKERS));
    let accuracy: Vec<f64> = trained.epochs.iter().filter_map(|epoch| epoch.quality.test_accuracy).collect();
    assert!(accuracy.len() == 4 && accuracy[3] > 0.8, "something was learnt: {accuracy:?}");
    assert_eq!(trained.weights, sequential(&config()));
}

#[test]
fn bsp_in_the_simulator_gives_the_bits_of_the_threads() {
    let cluster = sim::Config { servers: sim::Servers::Apart(2), ..sim::Config::new(WORKERS) };
    let simulated = train_with(&config(), &Deployment::Sim(cluster));
    let threads = train_with(&config(), &Deployment::threads(WORKERS));
    assert_eq!(simulated.weights, threads.weights);
    let losses = |trained: &Trained| trained.epochs.iter().map(|epoch| epoch.quality.test_loss).collect::<Vec<_>>();
    assert_eq!(losses(&simulated), losses(&threads));
}

#[test]
fn the_last_that_is_said_of_held_out_examples_is_of_the_weights_that_are_left() {
    let (train_set, test_set) = examples(600).split(HoldOut::Every(4)).expect("both parts");
    let config = Config { consistency: Consistency::Essp { staleness: 3 }, ..config() };
    for patience in [None, Some(2)] {
        let config = Config { patience, ..config };
        let trained = train_with(&config, &Deployment::sim(WORKERS));
        let last = trained.epochs[trained.epochs.len() - 1].quality.test_loss.expect("held out");
        let model = MlrModel::new(train_set.classes.clone(), &trained.weights, json!({}), json!({}));
        let judged = model.evaluate(&test_set).loss();
        assert!((last - judged).abs() < 1e-6, "{last} was said, and it is {judged}");
    }
}

#[test]
fn a_batch_longer_than_a_part_is_regularised_as_one_example_is() {
    let set = examples(600);
    let objective = |batch| {
        let step = StepSize::InverseSqrt { rate: 2.0 };
        let config = Config { batch, l2: 0.05, step, epochs: 300, clocks_per_epoch: 32, ..config() };
        let data = Arranged::new(&set, None, 1, &config).unwrap();
        let trained = train(&config, &Deployment::threads(1), &data, |_| {}).unwrap();
        let model = MlrModel::new(set.classes.clone(), &trained.weights, json!({}), json!({}));
        model.evaluate(&set).loss() + trained.epochs.last().unwrap().quality.penalty
    };
    // A part has 18 or 19 examples; batches of 7 leave some over.
    let one = objective(1);
    for batch in [7, 19, 1000] {
        let several = objective(batch);
        assert!((several / one - 1.0).abs() < 0.01, "{several} with batches of {batch}, {one} with single examples");
    }
}

#[test]
fn every_consistency_model_and_step_size_learns() {
    let models = [
        Consistency::Ssp { staleness: 1 },
        Consistency::Essp { staleness: 3 },
        Consistency::Async,
        Consistency::Vap { bound: 0.5 },
    ];
    let rate = 0.5;
    let steps = [
        StepSize::Constant { rate },
        StepSize::InverseTime { rate },
        StepSize::InverseSqrt { rate },
        StepSize::Decay { rate, factor: 0.8 },
    ];
    for (consistency, step) in models.into_iter().zip(steps) {
        let config = Config { consistency, step, ..config() };
        for deployment in [Deployment::threads(WORKERS), Deployment::sim(WORKERS)] {
            let epochs = train_with(&config, &deployment).epochs;
            let last = epochs.last().expect("epochs");
            assert!(last.quality.test_accuracy.expect("held out") > 0.5, "{consistency:?}, {step:?}: {last:?}");
        }
    }
}

#[test]
fn training_stops_early_when_the_loss_no_longer_falls() {
    let config = Config {
        patience: Some(1),
        epochs: 60,
        l2: 0.0,
        step: StepSize::Constant { rate: 40.0 },
        clocks_per_epoch: 1,
        ..config()
    };
    assert!(train_with(&config, &Deployment::threads(WORKERS)).epochs.len() < 60);
}

#[test]
fn a_model_is_kept_and_predicts_as_it_was_trained() {
    let set = examples(600);
    let data = Arranged::new(&set, Some(&set), 1, &config()).unwrap();
    let trained = train(&config(), &Deployment::threads(1), &data, |_| {}).unwrap();
    let model = MlrModel::new(set.classes.clone(), &trained.weights, json!({ "epochs": 4 }), json!({}));
    let evaluation = model.evaluate(&set);
    let last = trained.epochs.last().unwrap();
    assert!((evaluation.loss() - last.quality.test_loss.unwrap()).abs() < 1e-6, "{} {last:?}", evaluation.loss());
    assert!((evaluation.accuracy() - last.quality.test_accuracy.unwrap()).abs() < 0.01);
    let squares: f64 = (0..model.features()).flat_map(|f| model.weights(f)).map(|w| f64::from(*w).powi(2)).sum();
    assert!((last.quality.penalty - 0.5e-3 * squares).abs() < 1e-8 * squares);

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("m.model");
    model.save(&path).unwrap();
    assert_eq!(MlrModel::load(&path).unwrap(), model);
    assert!(model.feature_names().is_empty());
    let names: Vec<String> = (0..model.features()).map(|feature| format!("feature \"{}\"\n", feature / 2)).collect();
    let named = model.clone().with_feature_names(names);
    named.save(&path).unwrap();
    assert_eq!(MlrModel::load(&path).unwrap(), named);
    assert_eq!(hemiola_models::model_directory::kind_of(&path).unwrap(), "mlr");
    let (class, probabilities) = model.predict(set.example(3));
    assert!((probabilities.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    assert!(probabilities.iter().all(|&p| p <= probabilities[class as usize]));
    std::fs::write(path.join("classes.txt"), "a\nb\n").unwrap();
    let error = MlrModel::load(&path).unwrap_err().to_string();
    assert!(error.contains("does not match its checksum"), "{error}");
}

#[test]
fn what_cannot_be_trained_is_refused() {
    let refused = |set: &Examples, config: Config| Arranged::new(set, None, 1, &config).unwrap_err().to_string();
    let set = examples(20);
    assert_eq!(refused(&Examples::default(), config()), "there is nothing to train on: there are no examples");
    let mut one = Examples::new(set.classes.clone());
    one.push(2, [(0, 1.0)]);
    assert_eq!(
        refused(&one, config()),
        "all examples to train on are of class 'class 2'; expected two classes or more"
    );
    assert_eq!(refused(&set, Config { batch: 0, ..config() }), "the batch must be at least 1");
    assert_eq!(
        refused(&set, Config { l2: -1.0, ..config() }),
        "the regularisation must be zero or a number above, not -1"
    );
    let step = StepSize::Constant { rate: f32::NAN };
    assert_eq!(refused(&set, Config { step, ..config() }), "the step size must be a number above zero, not NaN");
    let data = Arranged::new(&set, None, 1, &config()).unwrap();
    let stopping = Config { patience: Some(1), ..config() };
    let error = train(&stopping, &Deployment::threads(1), &data, |_| {}).unwrap_err();
    assert!(matches!(error, TrainError::NothingHeldOut));
    let mut tiny = Examples::new(set.classes.clone());
    (0..20).for_each(|label| tiny.push(label % 2, [(0, 1e-9)]));
    let data = Arranged::new(&tiny, None, 1, &config()).unwrap();
    let diverging = Config { step: StepSize::Constant { rate: f32::MAX }, ..config() };
    let error = train(&diverging, &Deployment::threads(1), &data, |_| {}).unwrap_err().to_string();
    assert!(error.starts_with("the loss is no longer a number in epoch 1: the steps are too large"), "{error}");
}
