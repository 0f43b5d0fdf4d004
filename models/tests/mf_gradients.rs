//! Factorisation by stored procedures: under Bsp the trainer comes to where a plain program of the same rule comes.

mod eliminate;

use eliminate::eliminate;
use hemiola::{Consistency, Deployment, sim};
use hemiola_models::generate::{Synthetic, generate};
use hemiola_models::mf::train::{Arranged, Config, Trained, train};
use hemiola_models::mf::{Biases, Rating, StepSize, Training, blocks, factor_columns, initial, row_width};
use std::collections::BTreeSet;

const USERS: u32 = 90;
const ITEMS: u32 = 40;
const TRAIN: usize = 1500;
const WORKERS: u32 = 3;
const CLOCKS: u32 = 4;
const RATE: f32 = 0.3;

fn ratings() -> Vec<Rating> {
    let set = Synthetic { users: USERS, items: ITEMS, count: 1600, rank: 2, noise: 0.3, seed: 7 };
    generate(&set).expect("a set that can be").ratings.ratings.into_vec()
}

fn config(biases: Biases) -> Config {
    let step = StepSize::AdaRevision { rate: RATE };
    let consistency = Consistency::Bsp;
    let mut config = Config { rank: 3, biases, consistency, clocks_per_epoch: CLOCKS, ..Config::default() };
    config.training.step = step;
    config.training.epochs = 4;
    config
}

fn train_on(config: &Config, deployment: &Deployment) -> Trained {
    let data = Arranged::new(ratings(), TRAIN, (USERS, ITEMS), WORKERS, config).expect("ratings");
    train(config, deployment, data, |_| {}).expect("trained")
}

/// One number of an item's row, and what AdaRevision keeps beside it.
#[derive(Clone, Copy)]
struct Number {
    value: f64,
    sum: f64,
    z: f64,
    z_max: f64,
}

impl Number {
    /// The published rule, for a gradient computed when the sum of gradients was `sum_read`.
    fn step(&mut self, gradient: f64, sum_read: f64) {
        let rate = f64::from(RATE);
        let backward = self.sum - sum_read;
        let before = rate / self.z_max.sqrt();
        self.z += gradient * gradient + 2.0 * gradient * backward;
        self.z_max = self.z_max.max(self.z);
        let now = rate / self.z_max.sqrt();
        self.value += (before - now) * backward - now * gradient;
        self.sum += gradient;
    }
}

/// A training rating, and what it contributed to the gradient of its item when it was last met.
struct Met {
    rating: Rating,
    contributed: Vec<f64>,
}

/// The factors of users and items, and the biases of both, in the order of the ids.
type Rows = [Vec<Vec<f64>>; 2];

/// The rule, written plainly: in a clock each worker solves for every fourth of its users with the items as they were when
/// the clock began, and sends the items' gradients; when it ends AdaRevision makes steps of them, worker by worker.
fn plainly(config: &Config) -> Rows {
    let ratings = &ratings()[..TRAIN];
    let mean = ratings.iter().map(|rating| f64::from(rating.value)).sum::<f64>() / TRAIN as f64;
    let (rank, l2) = (config.rank, f64::from(config.training.l2));
    let width = rank + usize::from(config.biases == Biases::With);
    let (user_labels, starts) = blocks::assign_users(ratings.iter().copied(), USERS, WORKERS as usize, config.seed);
    let item_labels = blocks::shuffled_labels(ITEMS, config.seed + 1);
    let mut met: Vec<Met> = ratings
        .iter()
        .map(|&Rating { user, item, value }| Met {
            rating: Rating { user: user_labels[user as usize], item: item_labels[item as usize], value },
            contributed: vec![0.0; width],
        })
        .collect();

    let init = initial(rank, config.training.initial_scale, !config.seed);
    let mut items: Vec<Vec<Number>> = (0..u64::from(ITEMS))
        .map(|item| {
            let mut row = vec![0.0; row_width(rank)];
            init.fill(item, &mut row);
            assert_eq!(row[factor_columns(rank)], 0.0);
            let number = |k: usize| if k < rank { f64::from(row[k]) } else { 0.0 };
            (0..width).map(|k| Number { value: number(k), sum: 0.0, z: 1.0, z_max: 1.0 }).collect()
        })
        .collect();
    let mut users = vec![vec![0.0; width]; USERS as usize];

    for clock in 0..config.training.epochs * CLOCKS {
        let read = items.clone();
        // Beside a user's bias every item has a 1, and beside an item's every user.
        let beside = |row: &[f64]| -> Vec<f64> { (0..width).map(|k| if k < rank { row[k] } else { 1.0 }).collect() };
        let row_of = |item: u32| -> Vec<f64> { read[item as usize].iter().map(|number| number.value).collect() };
        for worker in 0..WORKERS as usize {
            let part_of = |user: u32| (user - starts[worker]) % CLOCKS;
            let mine = |user: u32| (starts[worker]..starts[worker + 1]).contains(&user);
            let in_part = |user: u32| mine(user) && part_of(user) == clock % CLOCKS;
            let of_worker = |met: &[Met], item: u32, k: usize| -> f64 {
                let these = met.iter().filter(|met| mine(met.rating.user) && met.rating.item == item);
                these.map(|met| met.contributed[k]).sum()
            };
            let before: Vec<Vec<f64>> =
                (0..ITEMS).map(|item| (0..width).map(|k| of_worker(&met, item, k)).collect()).collect();
            for user in (0..USERS).filter(|user| in_part(*user)) {
                let (mut a, mut b) = (vec![vec![0.0; width]; width], vec![0.0; width]);
                let rated = met.iter().filter(|met| met.rating.user == user);
                for Met { rating, .. } in rated.clone() {
                    let row = row_of(rating.item);
                    let (along, bias) = (beside(&row), row[rank..].first().copied().unwrap_or(0.0));
                    for i in 0..width {
                        (0..width).for_each(|j| a[i][j] += along[i] * along[j]);
                        b[i] += along[i] * (f64::from(rating.value) - mean - bias);
                    }
                }
                (0..width).for_each(|i| a[i][i] += l2 * rated.clone().count() as f64);
                users[user as usize] = eliminate(a, b);
            }
            for met in met.iter_mut().filter(|met| in_part(met.rating.user)) {
                let (user, row) = (&users[met.rating.user as usize], row_of(met.rating.item));
                let product: f64 = user[..rank].iter().zip(&row).map(|(u, v)| u * v).sum();
                let biases: f64 = user[rank..].iter().chain(&row[rank..]).sum();
                let error = f64::from(met.rating.value) - mean - product - biases;
                met.contributed = beside(user).into_iter().map(|u| -error * u).collect();
            }
            for item in 0..ITEMS {
                let of_item =
                    || met.iter().map(|met| met.rating).filter(|rating| rating.item == item && mine(rating.user));
                let parts: BTreeSet<u32> = of_item().map(|rating| part_of(rating.user)).collect();
                if !parts.contains(&(clock % CLOCKS)) {
                    continue;
                }
                for k in 0..width {
                    let number = &read[item as usize][k];
                    let whole = before[item as usize][k] + l2 * of_item().count() as f64 * number.value;
                    let changed = of_worker(&met, item, k) - before[item as usize][k];
                    items[item as usize][k].step(whole / parts.len() as f64 + changed, number.sum);
                }
            }
        }
    }
    let items: Vec<Vec<f64>> = items.iter().map(|row| row.iter().map(|number| number.value).collect()).collect();
    let ordered =
        |rows: &[Vec<f64>], labels: &[u32]| labels.iter().map(|label| rows[*label as usize].clone()).collect();
    [ordered(&users, &user_labels), ordered(&items, &item_labels)]
}

#[test]
fn bsp_comes_to_where_the_plain_program_comes() {
    for biases in [Biases::With, Biases::Without] {
        let config = config(biases);
        let trained = train_on(&config, &Deployment::threads(WORKERS));
        let expected = plainly(&config);
        let found = [(&trained.user_factors, &trained.user_bias), (&trained.item_factors, &trained.item_bias)];
        for ((factors, bias), expected) in found.into_iter().zip(&expected) {
            assert_eq!(bias.is_some(), biases == Biases::With);
            for (id, (row, expected)) in factors.chunks(config.rank).zip(expected).enumerate() {
                let row = row.iter().chain(bias.iter().map(|bias| &bias[id]));
                for (found, expected) in row.zip(expected) {
                    let near = (f64::from(*found) - expected).abs() < 1e-3 * (1.0 + expected.abs());
                    assert!(near, "{biases:?}, row {id}: {found} instead of {expected}");
                }
            }
        }
        assert!(expected[1].iter().flatten().any(|number| number.abs() > 0.2), "something was learnt");
    }
}

#[test]
fn bsp_in_the_simulator_gives_the_bits_of_the_threads() {
    let config = config(Biases::With);
    let cluster = sim::Config { servers: sim::Servers::Apart(2), ..sim::Config::new(WORKERS) };
    let [simulated, threads] =
        [Deployment::Sim(cluster), Deployment::threads(WORKERS)].map(|deployment| train_on(&config, &deployment));
    assert_eq!(simulated.user_factors, threads.user_factors);
    assert_eq!(simulated.item_factors, threads.item_factors);
    assert_eq!(simulated.user_bias, threads.user_bias);
    assert_eq!(simulated.item_bias, threads.item_bias);
}

/// What the estimates are for: the loss hardly depends on the size of the first steps.
#[test]
fn the_loss_hardly_depends_on_the_step() {
    let set = Synthetic { users: 600, items: 150, count: 30_000, rank: 4, noise: 0.5, seed: 7 };
    let ratings = generate(&set).expect("a set that can be").ratings.ratings;
    let losses = [0.04, 0.2, 0.8].map(|rate| {
        let mut config = Config { rank: 8, clocks_per_epoch: 64, ..config(Biases::With) };
        config.training = Training { step: StepSize::AdaRevision { rate }, epochs: 20, l2: 0.07, ..config.training };
        let data = Arranged::new(ratings.clone(), 30_000, (600, 150), WORKERS, &config).expect("ratings");
        let epochs = train(&config, &Deployment::threads(WORKERS), data, |_| {}).expect("trained").epochs;
        epochs.last().expect("epochs").quality.objective
    });
    let most = losses.iter().copied().fold(0.0, f64::max);
    let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(most < 1.03 * least, "{losses:?}");
}
