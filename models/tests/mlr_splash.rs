//! Softmax regression by Splash: the plain algorithm on one worker and on many, the same bits on every driver.

use hemiola::splash::{Degree, Options};
use hemiola::{Deployment, Error, sim};
use hemiola_models::examples::Examples;
use hemiola_models::mlr::splash::{Config, train};
use hemiola_models::mlr::train::{TrainError, Trained};
use hemiola_models::{HoldOut, Names};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const CLASSES: usize = 5;
const FEATURES: usize = 20;

/// Sparse examples whose class is the one whose weights, drawn at random, score highest, or now and then another.
fn examples(count: usize) -> Examples {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
    let mut draw = move || f64::from(random.next_u32()) / f64::from(u32::MAX);
    let weights: Vec<f64> = (0..FEATURES * CLASSES).map(|_| draw() - 0.5).collect();
    let mut classes = Names::default();
    (0..CLASSES).for_each(|class| assert!(classes.intern(&format!("class {class}")).is_ok()));
    let mut examples = Examples::new(classes);
    for _ in 0..count {
        let mut entries: Vec<(u32, f32)> = Vec::new();
        for feature in 0..FEATURES as u32 {
            if draw() < 0.4 {
                entries.push((feature, (3.0 * draw()) as f32));
            }
        }
        let score = |class: usize| -> f64 {
            entries.iter().map(|&(f, x)| f64::from(x) * weights[f as usize * CLASSES + class]).sum()
        };
        let best = (0..CLASSES).max_by(|&a, &b| score(a).total_cmp(&score(b))).expect("classes");
        examples.push(if draw() < 0.1 { (draw() * 4.99) as u32 } else { best as u32 }, entries);
    }
    examples
}

/// The weights by feature and class, and the sums of squared gradients.
type Plain = (Vec<[f64; CLASSES]>, Vec<[f64; CLASSES]>);

/// One example of a weight, written as it is meant: very many small steps, with the step sizes of its first moment.
fn step((w, seen): &mut Plain, x: &[f64], greatest: &[f64], decay: &[f64], label: usize, weight: f64, rate: f64) {
    let errors = |w: &[[f64; CLASSES]]| -> [f64; CLASSES] {
        let score = |c: usize| (0..x.len()).map(|j| x[j] * w[j][c]).sum::<f64>().exp();
        let sum: f64 = (0..CLASSES).map(score).sum();
        std::array::from_fn(|c| score(c) / sum - f64::from(u8::from(c == label)))
    };
    let first = errors(w);
    let scaled: Vec<f64> = (0..x.len()).map(|j| x[j] / greatest[j]).collect();
    let steps: Vec<[f64; CLASSES]> = (0..x.len())
        .map(|j| std::array::from_fn(|c| rate / (seen[j][c] + weight * (scaled[j] * first[c]).powi(2) + 1e-8).sqrt()))
        .collect();
    let shrink = |j: usize, c: usize| if x[j] == 0.0 { 0.0 } else { (decay[j] * weight * steps[j][c]).min(0.5) };
    let before = w.clone();
    const PARTS: u32 = 300;
    for _ in 0..PARTS {
        let part = weight / f64::from(PARTS);
        let errors = errors(w);
        for j in 0..x.len() {
            for c in 0..CLASSES {
                w[j][c] -= part * steps[j][c] * scaled[j] / greatest[j] * errors[c];
            }
        }
    }
    for j in 0..x.len() {
        for c in 0..CLASSES {
            w[j][c] -= before[j][c] * shrink(j, c);
            seen[j][c] += weight * (scaled[j] * first[c]).powi(2);
        }
    }
}

/// What one pass is, written plainly: each worker goes through its part with as large a weight as there are workers, and
/// the mean of what they come to is the outcome.
fn plainly(set: &Examples, config: &Config, workers: usize) -> Vec<[f64; CLASSES]> {
    let (mut greatest, mut count) = (vec![0.0f64; FEATURES], vec![0.0; FEATURES]);
    let dense = |number: usize| {
        let mut x = vec![0.0; FEATURES + 1];
        let example = set.example(number);
        example.columns.iter().zip(example.values).for_each(|(f, value)| x[*f as usize] = f64::from(*value));
        x[FEATURES] = 1.0;
        x
    };
    for x in (0..set.len()).map(dense) {
        for (j, x) in x[..FEATURES].iter().enumerate().filter(|(_, x)| **x != 0.0) {
            greatest[j] = greatest[j].max(x.abs());
            count[j] += 1.0;
        }
    }
    let decay = |j: usize| f64::from(config.l2) * set.len() as f64 / count[j] / greatest[j].powi(2);
    let decay: Vec<f64> = (0..FEATURES).map(decay).chain([0.0]).collect();
    greatest.push(1.0);
    let mut mean = vec![[0.0; CLASSES]; FEATURES + 1];
    for worker in 0..workers {
        let mut state: Plain = (mean.iter().map(|_| [0.0; CLASSES]).collect(), vec![[0.0; CLASSES]; FEATURES + 1]);
        for number in set.len() * worker / workers..set.len() * (worker + 1) / workers {
            let label = set.labels()[number] as usize;
            let rate = f64::from(config.rate) / (workers as f64).powf(0.4);
            step(&mut state, &dense(number), &greatest, &decay, label, workers as f64, rate);
        }
        for (mean, w) in mean.iter_mut().zip(&state.0) {
            (0..CLASSES).for_each(|c| mean[c] += w[c] / workers as f64);
        }
    }
    mean
}

fn config() -> Config {
    Config { epochs: 3, passes: Options { synchronisations: 4, ..Options::default() }, ..Config::default() }
}

fn train_on(config: &Config, deployment: &Deployment) -> Trained {
    let (train_set, test_set) = examples(800).split(HoldOut::Every(4)).expect("both parts");
    train(config, deployment, &train_set, Some(&test_set), |_| {}).expect("trained")
}

#[test]
fn one_worker_and_four_do_what_the_plain_algorithm_does() {
    let set = examples(240);
    let passes = Options { synchronisations: 1, shuffle: false, ..Options::default() };
    let config = Config { epochs: 1, l2: 1e-3, passes, ..Config::default() };
    for workers in [1, 4] {
        let trained = train(&config, &Deployment::threads(workers), &set, None, |_| {}).expect("trained");
        let plain = plainly(&set, &config, workers as usize);
        let expected: Vec<f64> = plain.into_iter().flatten().collect();
        assert_eq!(trained.weights.len(), expected.len());
        for (place, (found, expected)) in trained.weights.iter().zip(&expected).enumerate() {
            let off = (f64::from(*found) - expected).abs();
            assert!(off < 0.02, "{workers} workers, weight {place}: {found} instead of {expected}");
        }
    }
}

#[test]
fn threads_and_simulated_nodes_give_the_same_bits() {
    for degree in [Degree::Largest, Degree::Fixed(2), Degree::Auto] {
        let config = Config { passes: Options { degree, ..config().passes }, ..config() };
        let on_threads = train_on(&config, &Deployment::threads(4));
        let mut cluster = sim::Config::new(2);
        cluster.workers_per_node = 2;
        let simulated = train_on(&config, &Deployment::Sim(cluster));
        assert!(on_threads.weights == simulated.weights, "{degree:?}");
        let quality = |trained: &Trained| trained.epochs.iter().map(|e| e.quality.test_loss).collect::<Vec<_>>();
        assert_eq!(quality(&on_threads), quality(&simulated), "{degree:?}");
    }
}

#[test]
fn sixteen_workers_learn_nearly_as_much_as_one_though_they_have_few_examples_each() {
    let accuracy = |workers| {
        let config = Config { epochs: 6, ..config() };
        let trained = train_on(&config, &Deployment::sim(workers));
        let last = trained.epochs.last().expect("epochs");
        assert_eq!(last.epoch, 6);
        (last.quality.test_loss.expect("held out"), last.quality.test_accuracy.expect("held out"))
    };
    let (one, sixteen) = (accuracy(1), accuracy(16));
    assert!(one.1 > 0.75, "one worker: {one:?}");
    assert!(sixteen.0 < one.0 + 0.25 && sixteen.1 > one.1 - 0.2, "{sixteen:?} instead of {one:?}");
}

#[test]
fn training_ends_early_when_patience_does() {
    let config = Config { epochs: 100, patience: Some(2), ..config() };
    let trained = train_on(&config, &Deployment::threads(2));
    let losses: Vec<f64> = trained.epochs.iter().filter_map(|epoch| epoch.quality.test_loss).collect();
    assert!(losses.len() < 100, "{losses:?}");
    let best = losses.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(losses.iter().position(|loss| *loss == best), Some(losses.len() - 3));
}

#[test]
fn numbers_that_cannot_be_are_refused() {
    let set = examples(40);
    let refused = |config: Config| match train(&config, &Deployment::threads(2), &set, None, |_| {}) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{config:?} was accepted"),
    };
    assert_eq!(refused(Config { rate: 0.0, ..config() }), "the step size must be a number above zero, not 0");
    assert_eq!(refused(Config { l2: -1.0, ..config() }), "the regularisation must be zero or a number above, not -1");
    assert_eq!(refused(Config { epochs: 0, ..config() }), "the number of epochs must be at least 1");
    assert_eq!(
        refused(Config { patience: Some(1), ..config() }),
        "early stopping needs held-out examples: give a test file or hold some out"
    );
    let passes = Options { degree: Degree::Fixed(3), ..config().passes };
    let error = train(&Config { passes, ..config() }, &Deployment::threads(2), &set, None, |_| {}).unwrap_err();
    assert!(matches!(error, TrainError::Job(Error::Splash(_))), "{error:?}");
    assert_eq!(error.to_string(), "a degree of 3 needs as many workers, and there are 2");
}
