//! Under Bsp the parallel trainer gives the bits of a plain sequential program of the same schedule.

use hemiola::{Consistency, Deployment, sim};
use hemiola_models::Rating;
use hemiola_models::generate::{Synthetic, generate};
use hemiola_models::mf::kernel::{self, Step};
use hemiola_models::mf::near::Block;
use hemiola_models::mf::train::{Arranged, Config, Cut, Trained, train};
use hemiola_models::mf::{Biases, Model, blocks, factor_columns, initial, row_width};
use hemiola_models::ratings::{RatingList, Ratings};

const WORKERS: u32 = 4;

fn ratings() -> (Vec<Rating>, (u32, u32)) {
    let set = Synthetic { users: 300, items: 120, count: 9_000, ..Synthetic::default() };
    let made = generate(&set).expect("a set that can be").ratings;
    (made.ratings.into_vec(), (300, 120))
}

fn config() -> Config {
    let mut config =
        Config { rank: 12, consistency: Consistency::Bsp, clocks_per_epoch: 3, chunks: 8, ..Config::default() };
    config.training.epochs = 4;
    config
}

fn train_with(config: &Config, deployment: &Deployment) -> Trained {
    let (ratings, sizes) = ratings();
    let data = Arranged::new(ratings, 8_000, sizes, WORKERS, config).expect("ratings");
    train(config, deployment, data, |_| {}).expect("trained")
}

/// The schedule, written plainly: in every clock each worker starts from the same items and adds up what it would
/// change; at the clock's end the changes are added in worker order. Users belong to one worker each.
fn sequential(config: &Config) -> (Vec<f32>, Vec<f32>) {
    let (mut ratings, (users, items)) = ratings();
    ratings.truncate(8_000);
    let (mean, _) = Ratings::mean_and_range(ratings.iter().copied());
    let workers = WORKERS as usize;
    let (user_labels, starts) = blocks::assign_users(ratings.iter().copied(), users, workers, config.seed);
    let item_labels = blocks::shuffled_labels(items, config.seed + 1);
    for rating in ratings.iter_mut() {
        rating.user = user_labels[rating.user as usize];
        rating.item = item_labels[rating.item as usize];
    }
    let per_worker = (0..workers).map(|w| starts[w + 1] - starts[w]).max().expect("workers");
    let chunk_rows = match config.cut {
        Cut::Items => items.div_ceil(config.chunks.next_multiple_of(config.clocks_per_epoch)),
        Cut::Ratings => items.div_ceil(config.chunks),
    };
    let chunks = items.div_ceil(chunk_rows) as usize;
    let mut list = RatingList::from(ratings);
    let cut = blocks::arrange(&mut list, 0..8_000, &starts, (items, chunk_rows), config.seed);
    let ratings = list.into_vec();

    let width = row_width(config.rank);
    let fill = |rows: u32, first: u64, seed: u64| -> Vec<f32> {
        let mut numbers = vec![0.0; rows as usize * width];
        let init = initial(config.rank, config.training.initial_scale, seed);
        numbers.chunks_exact_mut(width).zip(first..).for_each(|(row, id)| init.fill(id, row));
        numbers
    };
    let mut user_rows: Vec<Vec<f32>> = (0..WORKERS)
        .map(|w| fill(starts[w as usize + 1] - starts[w as usize], u64::from(w * per_worker), config.seed))
        .collect();
    let first_user_rows = user_rows.clone();
    let mut item_rows = fill(items, 0, !config.seed);
    let model = Model { rank: config.rank, biases: config.biases, mean };
    let clocks = config.clocks_per_epoch as usize;
    for epoch in 0..config.training.epochs {
        let schedule = config.training.step;
        let step = Step { rate: schedule.at_epoch(epoch), damping: schedule.damping(), l2: config.training.l2 };
        for clock in 0..clocks {
            let mut changes = vec![vec![0.0f32; item_rows.len()]; workers];
            for worker in 0..workers {
                let turns = match config.cut {
                    Cut::Items => chunks * clock / clocks..chunks * (clock + 1) / clocks,
                    Cut::Ratings => 0..chunks,
                };
                for turn in turns {
                    let chunk = (worker * chunks / workers + turn) % chunks;
                    let block = &ratings[cut.range(worker, chunk)];
                    let part = match config.cut {
                        Cut::Items => block,
                        Cut::Ratings => &block[block.len() * clock / clocks..block.len() * (clock + 1) / clocks],
                    };
                    let rows = chunk * chunk_rows as usize * width
                        ..((chunk + 1) * chunk_rows as usize * width).min(item_rows.len());
                    let change = &mut changes[worker][rows.clone()];
                    let before: Vec<f32> = item_rows[rows].iter().zip(&*change).map(|(x, d)| x + d).collect();
                    let mut after = before.clone();
                    kernel::sgd_block(&mut user_rows[worker], &mut after, Block::Wide(part), &model, &step);
                    change.iter_mut().zip(after.iter().zip(&before)).for_each(|(d, (new, old))| *d += new - old);
                }
            }
            for change in &changes {
                item_rows.iter_mut().zip(change).for_each(|(row, change)| *row += change);
            }
        }
    }
    // User rows reach the table as one change, when they are given back.
    let mut all_users = Vec::new();
    for (rows, first) in user_rows.iter().zip(&first_user_rows) {
        all_users.extend(rows.iter().zip(first).map(|(last, first)| first + (last - first)));
    }
    (in_order_of_ids(&all_users, &user_labels, width), in_order_of_ids(&item_rows, &item_labels, width))
}

fn in_order_of_ids(rows: &[f32], labels: &[u32], width: usize) -> Vec<f32> {
    labels.iter().flat_map(|&label| rows[label as usize * width..][..width].to_vec()).collect()
}

/// The factors and biases of rows, as [`Trained`] has them.
fn parts(rows: &[f32], config: &Config) -> (Vec<f32>, Vec<f32>) {
    let width = row_width(config.rank);
    let factors = rows.chunks(width).flat_map(|row| row[..config.rank].to_vec()).collect();
    (factors, rows.chunks(width).map(|row| row[factor_columns(config.rank)]).collect())
}

#[test]
fn bsp_on_threads_gives_the_bits_of_the_sequential_program() {
    for cut in [Cut::Items, Cut::Ratings] {
        let config = Config { cut, ..config() };
        assert_eq!(config.biases, Biases::With);
        let (users, items) = sequential(&config);
        let trained = train_with(&config, &Deployment::threads(WORKERS));
        assert!(trained.user_factors.iter().any(|x| x.abs() > 0.05), "something was learnt");
        assert_eq!((trained.user_factors, trained.user_bias.expect("biases")), parts(&users, &config));
        assert_eq!((trained.item_factors, trained.item_bias.expect("biases")), parts(&items, &config));
    }
}

#[test]
fn bsp_in_the_simulator_gives_the_bits_of_the_threads() {
    let config = config();
    let cluster = sim::Config { servers: sim::Servers::Apart(2), ..sim::Config::new(WORKERS) };
    let simulated = train_with(&config, &Deployment::Sim(cluster));
    let threads = train_with(&config, &Deployment::threads(WORKERS));
    assert_eq!(simulated.user_factors, threads.user_factors);
    assert_eq!(simulated.item_factors, threads.item_factors);
    assert_eq!(simulated.user_bias, threads.user_bias);
    assert_eq!(simulated.item_bias, threads.item_bias);
}

#[test]
fn stale_training_learns_too() {
    for consistency in [
        Consistency::Ssp { staleness: 1 },
        Consistency::Essp { staleness: 3 },
        Consistency::Async,
        Consistency::Vap { bound: 0.5 },
    ] {
        let config = Config { consistency, ..config() };
        let epochs = train_with(&config, &Deployment::threads(WORKERS)).epochs;
        let rmse: Vec<f64> = epochs.iter().map(|epoch| epoch.quality.test_rmse.expect("held out")).collect();
        assert_eq!(rmse.len(), 4);
        assert!(rmse[3] < 0.99 * rmse[0] || rmse[3] < 0.8, "{consistency:?}: {rmse:?}");
    }
}
