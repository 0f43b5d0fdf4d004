//! Matrix factorisation by Splash: the plain algorithm on one worker and on many, and users solved for in the end.

mod eliminate;

use eliminate::eliminate;
use hemiola::splash::{Degree, Options};
use hemiola::{Deployment, sim};
use hemiola_models::generate::{Synthetic, generate};
use hemiola_models::mf::splash::{Config, train};
use hemiola_models::mf::train::Trained;
use hemiola_models::mf::{Biases, Rating};

const USERS: u32 = 120;
const ITEMS: u32 = 60;

/// Ratings, of which a tenth at the end is held out.
fn ratings() -> (Vec<Rating>, usize) {
    let what = Synthetic { users: USERS, items: ITEMS, count: 3000, rank: 2, noise: 0.3, seed: 3 };
    let ratings = generate(&what).expect("ratings").ratings.ratings;
    let (test, train): (Vec<_>, Vec<_>) = ratings.iter().enumerate().partition(|(number, _)| number % 10 == 0);
    let count = train.len();
    (train.into_iter().chain(test).map(|(_, rating)| rating).collect(), count)
}

fn config() -> Config {
    Config { rank: 4, epochs: 4, ..Config::default() }
}

fn train_on(config: &Config, deployment: &Deployment) -> Trained {
    let (ratings, count) = ratings();
    train(config, deployment, ratings, count, (USERS, ITEMS), |_| {}).expect("trained")
}

/// What one pass over the users does to the rows of items, written plainly from the rows that it begins with.
fn plainly(config: &Config, start: &[f64], workers: usize) -> Vec<f64> {
    let (ratings, count) = ratings();
    let ratings = &ratings[..count];
    let mean = ratings.iter().map(|r| f64::from(r.value)).sum::<f64>() / count as f64;
    let (rank, width) = (config.rank, config.rank + 1);
    let (l2, rate, weight) = (f64::from(config.l2), f64::from(config.rate), workers as f64);
    let users: Vec<u32> = (0..USERS).filter(|user| ratings.iter().any(|r| r.user == *user)).collect();
    let mut outcome = vec![0.0; start.len()];
    for worker in 0..workers {
        let (mut v, mut seen) = (start.to_vec(), vec![0.0; start.len()]);
        for &user in &users[users.len() * worker / workers..users.len() * (worker + 1) / workers] {
            let mine: Vec<&Rating> = ratings.iter().filter(|r| r.user == user).collect();
            let design = |r: &Rating, v: &[f64]| -> Vec<f64> {
                let row = &v[r.item as usize * width..][..width];
                row[..rank].iter().copied().chain([1.0]).collect()
            };
            let target = |r: &Rating, v: &[f64]| f64::from(r.value) - mean - v[r.item as usize * width + rank];
            let mut a = vec![vec![0.0; width]; width];
            let mut b = vec![0.0; width];
            for r in &mine {
                let row = design(r, &v);
                for i in 0..width {
                    (0..width).for_each(|j| a[i][j] += row[i] * row[j]);
                    b[i] += row[i] * target(r, &v);
                }
            }
            (0..width).for_each(|i| a[i][i] += l2 * mine.len() as f64);
            let u = eliminate(a, b);
            for r in &mine {
                let place = r.item as usize * width;
                let score = |v: &[f64]| design(r, v).iter().zip(&u).map(|(v, u)| v * u).sum::<f64>() - target(r, v);
                let along: Vec<f64> = u[..rank].iter().copied().chain([1.0]).collect();
                let first = score(&v);
                let steps: Vec<f64> = (0..width)
                    .map(|k| rate / (seen[place + k] + weight * (first * along[k]).powi(2) + 1e-8).sqrt())
                    .collect();
                let before = v[place..place + width].to_vec();
                const PARTS: u32 = 400;
                for _ in 0..PARTS {
                    let (part, error) = (weight / f64::from(PARTS), score(&v));
                    for k in 0..width {
                        v[place + k] -= part * steps[k] * along[k] * error;
                    }
                }
                for k in 0..width {
                    v[place + k] -= before[k] * (weight * l2 * steps[k]).min(0.5);
                    seen[place + k] += weight * (along[k] * first).powi(2);
                }
            }
        }
        outcome.iter_mut().zip(&v).for_each(|(mean, v)| *mean += v / workers as f64);
    }
    outcome
}

/// The rows of items, factors and bias.
fn items(trained: &Trained) -> Vec<f64> {
    let bias = trained.item_bias.as_ref().expect("biases");
    let rows = trained.item_factors.chunks(trained.rank).zip(bias);
    rows.flat_map(|(factors, bias)| factors.iter().chain([bias]).map(|x| f64::from(*x))).collect()
}

#[test]
fn one_worker_and_three_do_what_the_plain_algorithm_does() {
    let passes = Options { synchronisations: 1, shuffle: false, ..Options::default() };
    // A rate of next to nothing leaves the rows as they begin.
    let tiny = Config { rate: 1e-9, l2: 0.0, epochs: 1, passes, ..config() };
    let start = items(&train_on(&tiny, &Deployment::threads(1)));
    assert!(start.chunks(5).all(|row| (row[..4].iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-3));
    assert!(start.iter().all(|x| *x > -1e-6), "the first quadrant");
    for workers in [1, 3] {
        let config = Config { epochs: 1, passes, ..config() };
        let found = items(&train_on(&config, &Deployment::threads(workers)));
        let expected = plainly(&config, &start, workers as usize);
        for (place, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert!((found - expected).abs() < 0.02, "{workers} workers, {place}: {found} instead of {expected}");
        }
    }
}

#[test]
fn threads_and_simulated_nodes_give_the_same_bits() {
    for degree in [Degree::Largest, Degree::Auto] {
        let config = Config { passes: Options { degree, ..config().passes }, ..config() };
        let on_threads = train_on(&config, &Deployment::threads(4));
        let mut cluster = sim::Config::new(2);
        cluster.workers_per_node = 2;
        let simulated = train_on(&config, &Deployment::Sim(cluster));
        assert!(on_threads.item_factors == simulated.item_factors, "{degree:?}");
        assert!(on_threads.user_factors == simulated.user_factors, "{degree:?}");
    }
}

#[test]
fn many_workers_learn_about_as_well_as_one_and_biases_are_as_told() {
    let rmse = |config: &Config, workers| {
        let trained = train_on(config, &Deployment::sim(workers));
        assert_eq!(trained.user_factors.len(), USERS as usize * config.rank);
        assert_eq!(trained.user_bias.is_some(), config.biases == Biases::With);
        trained.epochs.last().and_then(|epoch| epoch.quality.test_rmse).expect("held out")
    };
    let config = Config { epochs: 10, ..config() };
    let (one, twelve) = (rmse(&config, 1), rmse(&config, 12));
    assert!(one < 0.6, "one worker: {one}");
    assert!(twelve < one + 0.05, "{twelve} instead of {one}");
    let without = rmse(&Config { biases: Biases::Without, ..config }, 1);
    assert!(without < 0.8, "without biases: {without}");
}

#[test]
fn training_ends_early_and_numbers_that_cannot_be_are_refused() {
    let trained = train_on(&Config { epochs: 200, patience: Some(2), ..config() }, &Deployment::threads(2));
    assert!(trained.epochs.len() < 200);
    let (ratings, count) = ratings();
    let refused = |config: Config, count: usize| match train(
        &config,
        &Deployment::threads(1),
        ratings.clone(),
        count,
        (USERS, ITEMS),
        |_| {},
    ) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{config:?} was accepted"),
    };
    assert_eq!(refused(Config { rank: 0, ..config() }, count), "rank must be between 1 and 4096, not 0");
    assert_eq!(refused(Config { rate: 0.0, ..config() }, count), "the step size must be a number above zero, not 0");
    assert_eq!(
        refused(Config { l2: -1.0, ..config() }, count),
        "the regularisation must be a number above zero, not -1"
    );
    assert_eq!(refused(Config { epochs: 0, ..config() }, count), "the number of epochs must be at least 1");
    assert_eq!(refused(config(), 0), "there is nothing to train on: all ratings are held out, or there are none");
    assert_eq!(
        refused(Config { patience: Some(1), ..config() }, ratings.len()),
        "early stopping needs held-out ratings: give a test file or hold some out"
    );
}
