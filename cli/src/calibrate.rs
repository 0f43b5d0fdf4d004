//! How long one thread of this machine takes for one rating, one word, one example, one feature of an example or one
//! product of numbers, for the simulator's virtual time.

use crate::numbers;
use crate::train::lda;
use crate::train::mlr::Way;
use anyhow::Result;
use clap::Args;
use hemiola::{Deployment, sim, splash};
use hemiola_models::HoldOut;
use hemiola_models::corpus::Corpus;
use hemiola_models::examples::Examples;
use hemiola_models::generate::{Synthetic, generate};
use hemiola_models::l1lr::share::Share;
use hemiola_models::mf;
use hemiola_models::mf::blocks::arrange;
use hemiola_models::mf::kernel::{Step, sgd_block};
use hemiola_models::mf::near::Stored;
use hemiola_models::mf::{Biases, Model, Rating, initial, row_width};
use serde_json::json;
use std::io::{Write, stdout};
use std::time::Instant;

/// Measure how long one thread of this machine takes for one rating of a factorisation, as a line of JSON.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Factors of each user and item
    #[arg(long, value_name = "N", value_parser = numbers::rank, default_value = "32", allow_negative_numbers = true)]
    rank: usize,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let seconds = seconds_per_rating(arguments.rank)?;
    let line = json!({ "model": "mf", "rank": arguments.rank, "seconds_per_rating": seconds,
        "ratings_per_second": 1.0 / seconds });
    writeln!(stdout().lock(), "{line}")?;
    Ok(())
}

/// How often the measurement is repeated; the least counts, because everything else on the machine only adds.
const ROUNDS: usize = 7;

/// Seconds of one thread for one rating at a rank, with as many rows as a worker's share of a data set has.
///
/// # Errors
/// None that an option could cause: the shape of the data is fixed.
pub(crate) fn seconds_per_rating(rank: usize) -> Result<f64> {
    let shape = Synthetic { users: 4_000, items: 2_000, count: 400_000, rank: 4, ..Synthetic::default() };
    let mut ratings = generate(&shape)?.ratings.ratings;
    let chunk_rows = shape.items / 16;
    let blocks = arrange(&mut ratings, 0..shape.count, &[0, shape.users], (shape.items, chunk_rows), shape.seed);
    let ratings = Stored::new(ratings);
    let width = row_width(rank);
    let rows = |count: u32, seed| {
        let mut rows = vec![0.0; count as usize * width];
        rows.chunks_exact_mut(width).zip(0..).for_each(|(row, id)| initial(rank, 0.1, seed).fill(id, row));
        rows
    };
    let (mut users, mut items) = (rows(shape.users, 1), rows(shape.items, 2));
    let model = Model { rank, biases: Biases::With, mean: 3.5 };
    let step = Step { rate: 0.05, damping: 0.03, l2: 0.035 };
    let chunk_floats = chunk_rows as usize * width;
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        for (chunk, rows) in items.chunks_mut(chunk_floats).enumerate() {
            sgd_block(&mut users, rows, ratings.block(blocks.range(0, chunk)), &model, &step);
        }
        best = best.min(began.elapsed().as_secs_f64());
    }
    Ok(best / shape.count as f64)
}

/// How many words are enough to measure with, and how many passes over them: the first are of topics drawn by chance.
const WORDS: usize = 200_000;
const PASSES: u32 = 3;

/// Seconds of one thread for one word of a corpus, by its first documents.
///
/// # Errors
/// If the corpus cannot be trained on.
pub(crate) fn seconds_per_word(way: &lda::Way, corpus: &Corpus) -> Result<f64> {
    let mut some = Corpus::new(corpus.vocabulary.clone());
    for document in 0..corpus.documents() {
        if some.tokens() < WORDS {
            some.push(corpus.document(document).iter().copied());
        }
    }
    let trained = way.measured(PASSES).train(&Deployment::threads(1), None, &some, &mut |_| {})?;
    Ok(least_seconds(trained.epochs.iter().map(|epoch| epoch.seconds)) / some.tokens() as f64)
}

/// How many ratings are enough to measure with.
const RATINGS: usize = 100_000;

/// Seconds of one thread for one rating where users are solved for, by some users.
///
/// # Errors
/// If they cannot be trained on.
pub(crate) fn seconds_per_rating_of_user(
    config: &mf::splash::Config,
    ratings: impl ExactSizeIterator<Item = Rating> + Clone,
    shape: (u32, u32),
) -> Result<f64> {
    let every = (ratings.len() / RATINGS).max(1) as u32;
    let some: Vec<Rating> = ratings.clone().filter(|rating| rating.user % every == 0).collect();
    let some = if some.is_empty() { ratings.collect() } else { some };
    let count = some.len();
    let passes = splash::Options { degree: splash::Degree::Largest, ..config.passes };
    let config = mf::splash::Config { epochs: PASSES, patience: None, passes, ..*config };
    let trained = mf::splash::train(&config, &Deployment::threads(1), some, count, shape, |_| {})?;
    Ok(least_seconds(trained.epochs.iter().map(|epoch| epoch.seconds)) / count as f64)
}

/// Seconds of one thread for what one unit of a softmax regression is: an example on tables, a product of two numbers with
/// factors.
///
/// # Errors
/// If the examples cannot be trained on.
pub(crate) fn seconds_per_example(way: &Way, examples: &Examples) -> Result<f64> {
    let every = (examples.entries() / ENTRIES) as u64;
    let some = if every < 2 { None } else { examples.split(HoldOut::Every(every)).ok() };
    let some = some.map_or_else(|| examples.clone(), |(_, some)| some);
    let trained = way.measured(PASSES).train(&Deployment::threads(1), None, (&some, None), &mut |_| {})?;
    let units = match way {
        Way::Factors(config) | Way::Cheaper(config) => config.products(&some),
        Way::Tables(_) | Way::Minibatches(_) | Way::Splash(_) => some.len() as u64,
    };
    Ok(least_seconds(trained.epochs.iter().map(|epoch| epoch.seconds)) / units as f64)
}

/// Seconds of one thread for a product of two numbers where factors are computed and subtracted: what a pass of one peer
/// takes, `seconds_of_pass`, as a part of what it takes on a node that needs a second for each.
///
/// # Errors
/// What `seconds_of_pass` says.
pub(crate) fn seconds_per_product(seconds_of_pass: impl Fn(&Deployment) -> Result<f64>) -> Result<f64> {
    let products = seconds_of_pass(&Deployment::Sim(sim::Config { seconds_per_unit: 1.0, ..sim::Config::new(1) }))?;
    Ok(seconds_of_pass(&Deployment::threads(1))? / products.max(1.0))
}

/// The seconds of the fastest pass, from when each ended.
fn least_seconds(ends: impl Iterator<Item = f64> + Clone) -> f64 {
    let starts = [0.0].into_iter().chain(ends.clone());
    ends.zip(starts).map(|(end, start)| end - start).fold(f64::INFINITY, f64::min)
}

/// How many features of examples are enough to measure with.
const ENTRIES: usize = 400_000;

/// Seconds of one thread for one feature of one example, whose slope is computed or whose change is taken notice of.
pub(crate) fn seconds_per_entry(examples: &Examples) -> f64 {
    let rows = examples.len().min(1 + ENTRIES * examples.len() / examples.entries().max(1));
    let mut share = Share::new(examples, 0..rows, 1);
    let features = share.features().to_vec();
    let changes: Vec<(u32, f64)> = features.iter().map(|&feature| (feature, 1e-3)).collect();
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let slopes = share.slopes(&features, 0.0);
        share.change(&changes);
        best = best.min(began.elapsed().as_secs_f64());
        std::hint::black_box(slopes);
    }
    best / (2 * share.entries(&features)).max(1) as f64
}
