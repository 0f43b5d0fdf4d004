//! Trains one factorisation with plain threads and prints seconds and quality of every epoch, to tune and to time the kernel.
//!
//! `cargo run --release -p hemiola-models --example mf_lab -- TRAIN [TEST] [key=value ...]`, where the files hold lines
//! `user item rating` or `user::item::rating`; without a test file every tenth rating of `TRAIN` is held out. Keys: `rank`,
//! `rate`, `l2`, `scale`, `epochs`, `chunks`, `threads`, `seed`, `biases` (0 or 1), `decay`, `damping`, `step` (adaptive, constant, time, sqrt,
//! decay), `target`, an RMSE to stop at, and `engine`: `plain` for threads that know nothing of tables, `tables` for the
//! trainer, whose overhead is the difference.
#![expect(clippy::print_stdout, reason = "a program that prints a table")]

#[path = "lab/options.rs"]
mod options;
#[path = "lab/processor.rs"]
mod processor;

use options::Options;
use processor::process_cpu_seconds;
use std::{error::Error, sync::Mutex, time::Instant};

use bytemuck::{Pod, Zeroable};
use hemiola::Deployment;
use hemiola_models::mf::{
    Biases, Model, Rating, StepSize, Training, blocks,
    blocks::Blocks,
    initial,
    kernel::{self, Step},
    near::{Block, Stored},
    row_width,
    train::{Arranged, Config, train as train_tables},
};
use hemiola_models::ratings::RatingList;

/// Rows are allocated by cache lines, because a group of floats that crosses two lines is loaded at half the speed.
#[repr(C, align(64))]
#[derive(Clone, Copy, Pod, Zeroable)]
struct CacheLine([f32; 16]);

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let first = options.files.first().ok_or("name a file of ratings")?;
    let (mut train, mut test) = (read(first)?, Vec::new());
    if let Some(second) = options.files.get(1) {
        test = read(second)?;
    } else {
        let mut row = 0;
        train.retain(|rating| {
            row += 1;
            if row % 10 == 0 {
                test.push(*rating);
            }
            row % 10 != 0
        });
    }
    if options.get("engine", String::from("plain")) == "tables" {
        let count = train.len();
        train.append(&mut test);
        return run_tables(&options, train, count);
    }
    run(&options, train, test);
    Ok(())
}

fn read(path: &str) -> Result<Vec<Rating>, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    let mut ratings = Vec::new();
    for line in text.lines() {
        let mut fields = line.split([' ', ':', '\t']).filter(|field| !field.is_empty());
        let mut next = || fields.next().ok_or("a line has three fields");
        ratings.push(Rating { user: next()?.parse()?, item: next()?.parse()?, value: next()?.parse()? });
    }
    Ok(ratings)
}

fn run(options: &Options, mut train: Vec<Rating>, mut test: Vec<Rating>) {
    let defaults = Training::default();
    let (threads, seed) = (options.get("threads", 2), options.get("seed", 1u64));
    let everything = || train.iter().chain(&test);
    let users = 1 + everything().map(|rating| rating.user).max().unwrap_or(0);
    let items = 1 + everything().map(|rating| rating.item).max().unwrap_or(0);
    let bounds =
        train.iter().fold((f32::MAX, f32::MIN), |(low, high), rating| (low.min(rating.value), high.max(rating.value)));

    let began = Instant::now();
    let (user_labels, starts) = blocks::assign_users(train.iter().copied(), users, threads, seed);
    let item_labels = blocks::shuffled_labels(items, seed + 1);
    for rating in train.iter_mut().chain(&mut test) {
        rating.user = user_labels[rating.user as usize];
        rating.item = item_labels[rating.item as usize];
    }
    let mean = train.iter().map(|rating| f64::from(rating.value)).sum::<f64>() / train.len() as f64;
    let chunk_rows = items.div_ceil(options.get("chunks", 16));
    let count = train.len();
    let mut train = RatingList::from(train);
    let blocks = blocks::arrange(&mut train, 0..count, &starts, (items, chunk_rows), seed);
    let train = Stored::new(train);
    let biases = if options.get("biases", 1) == 1 { Biases::With } else { Biases::Without };
    let model = Model { rank: options.get("rank", 32), biases, mean: mean as f32 };
    let width = row_width(model.rank);
    let mut user_lines = vec![CacheLine::zeroed(); (users as usize * width).div_ceil(16)];
    let mut item_lines = vec![CacheLine::zeroed(); (items as usize * width).div_ceil(16)];
    let user_rows = &mut bytemuck::cast_slice_mut(&mut user_lines)[..users as usize * width];
    let item_rows = &mut bytemuck::cast_slice_mut(&mut item_lines)[..items as usize * width];
    let scale = options.get("scale", defaults.initial_scale);
    fill(user_rows, initial(model.rank, scale, seed), width);
    fill(item_rows, initial(model.rank, scale, !seed), width);
    println!("{} ratings, {users} users, {items} items, arranged in {:.3} s", count, began.elapsed().as_secs_f64());

    let schedule = schedule(options);
    let (mut wall, mut cpu, target) = (0.0, 0.0, options.get("target", 0.0));
    for epoch in 0..options.get("epochs", defaults.epochs) {
        let step =
            Step { rate: schedule.at_epoch(epoch), damping: schedule.damping(), l2: options.get("l2", defaults.l2) };
        let (began, cpu_before) = (Instant::now(), process_cpu_seconds());
        let error = train_epoch(
            user_rows,
            item_rows,
            &train,
            &blocks,
            &starts,
            chunk_rows as usize,
            |users, items, ratings| kernel::sgd_block(users, items, ratings, &model, &step),
        );
        let seconds = began.elapsed().as_secs_f64();
        wall += seconds;
        cpu += process_cpu_seconds() - cpu_before;
        let rmse = (kernel::squared_error(user_rows, item_rows, Block::Wide(&test), &model, bounds)
            / test.len() as f64)
            .sqrt();
        println!(
            "epoch {:2}  train {:.4}  test {rmse:.4}  {:.1} M ratings/s  {seconds:.4} s  total {wall:.3} s, processor {cpu:.2}",
            epoch + 1,
            (error / count as f64).sqrt(),
            count as f64 / seconds / 1e6
        );
        if rmse <= target {
            break;
        }
    }
}

/// The same with the trainer; the held-out ratings are the last of them.
fn run_tables(options: &Options, ratings: Vec<Rating>, train: usize) -> Result<(), Box<dyn Error>> {
    let threads = options.get("threads", 2);
    let mut config = Config {
        rank: options.get("rank", 32),
        chunks: options.get("chunks", 16),
        seed: options.get("seed", 1),
        ..Config::default()
    };
    config.training.epochs = options.get("epochs", config.training.epochs);
    let sizes = (
        1 + ratings.iter().map(|rating| rating.user).max().unwrap_or(0),
        1 + ratings.iter().map(|rating| rating.item).max().unwrap_or(0),
    );
    let data = Arranged::new(ratings, train, sizes, threads, &config)?;
    let mut before = 0.0;
    train_tables(&config, &Deployment::threads(threads), data, |epoch| {
        println!(
            "epoch {:2}  train {:.4}  test {:.4}  {:.1} M ratings/s  {:.4} s  total {:.3} s, processor {:.2}",
            epoch.epoch,
            epoch.quality.objective.sqrt(),
            epoch.quality.test_rmse.unwrap_or(f64::NAN),
            train as f64 / (epoch.seconds - before) / 1e6,
            epoch.seconds - before,
            epoch.seconds,
            process_cpu_seconds()
        );
        before = epoch.seconds;
    })?;
    Ok(())
}

fn fill(rows: &mut [f32], init: hemiola::Init, width: usize) {
    rows.chunks_exact_mut(width).zip(0..).for_each(|(row, id)| init.fill(id, row));
}

fn schedule(options: &Options) -> StepSize {
    let rate = options.get("rate", 0.1);
    match options.get("step", String::from("adaptive")).as_str() {
        "constant" => StepSize::Constant { rate },
        "time" => StepSize::InverseTime { rate },
        "sqrt" => StepSize::InverseSqrt { rate },
        "decay" => StepSize::Decay { rate, factor: options.get("decay", 0.9) },
        _ => StepSize::Adaptive { rate, damping: options.get("damping", 0.03) },
    }
}

/// One pass over the ratings: every worker leases one chunk of items after another, starting apart from the others.
fn train_epoch(
    users: &mut [f32],
    items: &mut [f32],
    train: &Stored,
    blocks: &Blocks,
    user_starts: &[u32],
    chunk_rows: usize,
    step: impl Fn(&mut [f32], &mut [f32], Block<'_>) -> f64 + Sync,
) -> f64 {
    let (workers, total_users) = (user_starts.len() - 1, user_starts[user_starts.len() - 1] as usize);
    let width = users.len() / total_users;
    let chunks: Vec<Mutex<&mut [f32]>> = items.chunks_mut(chunk_rows * width).map(Mutex::new).collect();
    let (chunks, step) = (&chunks, &step);
    std::thread::scope(|scope| {
        let mut rest = users;
        let mut running = Vec::new();
        for worker in 0..workers {
            let count = (user_starts[worker + 1] - user_starts[worker]) as usize;
            let (mine, others) = rest.split_at_mut(count * width);
            rest = others;
            running.push(scope.spawn(move || {
                let mut error = 0.0;
                for turn in 0..chunks.len() {
                    let chunk = (worker * chunks.len() / workers + turn) % chunks.len();
                    let mut items = chunks[chunk].lock().expect("no worker panics");
                    error += step(mine, &mut items, train.block(blocks.range(worker, chunk)));
                }
                error
            }));
        }
        running.into_iter().map(|worker| worker.join().expect("no worker panics")).sum()
    })
}
