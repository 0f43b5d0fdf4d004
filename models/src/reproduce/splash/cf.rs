//! Figure 3: collaborative filtering by Splash, by one thread and by alternating least squares.

use super::super::{Findings, ReproduceError, Scale};
use super::applications::{Course, Size, least, panel, reached, sooner, times, told};
use super::baselines::als;
use crate::generate::{Synthetic, generate};
use crate::mf::splash::{Config, train};
use crate::mf::{Biases, Rating};
use hemiola::splash::Options;

/// Passes of one thread and of least squares. Splash may make twice as many.
const PASSES: u32 = 4;
/// Every user has so many ratings, about half of the paper's.
const PER_USER: usize = 100;
/// Every item has so many, about a third of the paper's. It matters: with 200, of which each of 64 workers has three, and
/// five synchronisations in a pass Splash was only twice as soon as one thread, and later than least squares.
const PER_ITEM: usize = 2000;
/// How often sooner than one thread 64 workers are expected to be, at least.
const SPEEDUP: f64 = 8.0;

/// Ratings to train on and, behind them, others to test with; how many are to train on; and of how many users and items.
type Data = (Vec<Rating>, usize, (u32, u32));

/// The ratings of the figure, of which every tenth is to test with.
pub(super) fn ratings(scale: &Scale) -> Result<Data, ReproduceError> {
    let count = (scale.ratings as usize).max(2000);
    let (users, items) = ((count / PER_USER).max(100) as u32, (count / PER_ITEM).max(2 * PER_USER) as u32);
    let what = Synthetic { users, items, count, rank: 6, noise: 0.5, seed: scale.seed };
    let ratings = generate(&what)?.ratings.ratings;
    let (test, mut train): (Vec<_>, Vec<_>) = ratings.iter().enumerate().partition(|(number, _)| number % 10 == 0);
    let count = train.len();
    train.extend(test);
    Ok((train.into_iter().map(|(_, rating)| rating).collect(), count, (users, items)))
}

/// The size of the problem beside the paper's: 100 million ratings, for 100 factors 5 microseconds each.
pub(super) fn size(ratings: usize, items: u32, rank: usize) -> Size {
    Size {
        units: ratings as f64,
        paper_units: 1e8,
        unit_seconds: 5e-6,
        numbers: f64::from(items) * rank as f64,
        paper_numbers: 17e3 * 100.0,
    }
}

/// How the figure's factorisation is trained.
pub(super) fn config(scale: &Scale, epochs: u32) -> Config {
    let passes = Options { seed: scale.seed, synchronisations: 2, ..Options::default() };
    Config { rank: scale.rank.min(16), biases: Biases::Without, epochs, passes, ..Config::default() }
}

pub(in super::super) fn cf(scale: &Scale) -> Result<Findings, ReproduceError> {
    let (ratings, count, shape) = ratings(scale)?;
    let rank = config(scale, 1).rank;
    let size = size(count, shape.1, rank);
    let run = |nodes: u32, epochs: u32| -> Result<Course, ReproduceError> {
        let deployment = size.deployment(nodes, scale.seed);
        let trained = train(&config(scale, epochs), &deployment, ratings.clone(), count, shape, |_| {})?;
        let loss = |rmse: f64| rmse * rmse;
        Ok(trained.epochs.iter().filter_map(|epoch| Some((epoch.seconds, loss(epoch.quality.test_rmse?)))).collect())
    };
    let (splash, one) = (run(scale.nodes, 2 * PASSES)?, run(1, PASSES)?);
    let mut batch = Course::new();
    let l2 = config(scale, 1).l2;
    // A pass solves for the users and for the items, and sends the vectors of both.
    let vectors = f64::from(shape.0 + shape.1) / f64::from(shape.1);
    let seconds = size.batch_seconds(scale.nodes, 2.0, vectors);
    als(ratings.split_at(count), shape, (rank, l2, PASSES), scale.seed, |loss| {
        batch.push((seconds * (batch.len() + 1) as f64, loss));
    });
    // A loss that all of them come to.
    let target = least(&one).max(least(&splash)).max(least(&batch)) * 1.02;
    let (own, thread, least_squares) = (reached(&splash, target), reached(&one, target), reached(&batch, target));
    let expected = SPEEDUP * (f64::from(scale.nodes) / 64.0).min(1.0);
    let holds = sooner(own, thread) >= expected && sooner(own, least_squares) > 1.0;
    let found = format!(
        "On {} simulated nodes Splash has a prediction loss of {target:.3} {}, one thread {} ({}), and least squares on an ideal cluster of as many nodes {} ({}).",
        scale.nodes,
        told(own),
        told(thread),
        times(sooner(own, thread)),
        told(least_squares),
        times(sooner(own, least_squares)),
    );
    let series = vec![("Splash", splash), ("one thread", one), ("ALS", batch)];
    let panels = vec![panel("Collaborative filtering", "virtual seconds", "prediction loss", series)];
    Ok(Findings { found, holds, panels })
}
