//! Matrix factorisation by the Splash engine: an element is a user with all ratings, the paper's second application.
//!
//! `process` solves for the user's vector in closed form (`solve`) and moves the vectors of the items that the user
//! rated by AdaGrad. So nothing is kept of users: the vector of any user, one that was never trained on too, follows from
//! the ratings and the items. An item's row is its factors and, where the model has biases, its bias; the user's bias is
//! one more number to solve for, beside which every item has a 1.
//!
//! With the user's vector held fixed, a rating of any weight has a closed form, after Karampatziakis and Langford: its
//! error falls by `e^(-q h)`, `q` being the sum of steps times squared numbers of the user. No weight overshoots.

use super::solve::Solver;
use super::train::{Epoch, Quality, TrainError, Trained};
use super::{Biases, Rating};
use crate::epoch::{Course, own};
use crate::machine::{self, Loop};
use crate::ratings::Ratings;
use hemiola::splash::{self, Array, DataSet, Elements, Shared, dot};
use hemiola::{Deployment, Error, Observation};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;
use std::ops::Range;

/// Keeps a number without gradients from infinite steps.
const SEEN_MIN: f32 = 1e-8;
/// No rating takes more than this part of an item's row away by regularisation.
const DECAY_MAX: f32 = 0.5;

/// How to train.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Config {
    /// Number of factors.
    pub rank: usize,
    /// Whether users and items have biases.
    pub biases: Biases,
    /// Weight of the squared rows in the objective, counted once for each rating.
    pub l2: f32,
    /// The size of first steps.
    pub rate: f32,
    /// Passes over the ratings.
    pub epochs: u32,
    /// Ends the training when the held-out error has not fallen for so many epochs.
    pub patience: Option<u32>,
    /// How passes are made.
    #[serde(skip)]
    pub passes: splash::Options,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rank: 32,
            biases: Biases::With,
            l2: 0.05,
            rate: 0.1,
            epochs: 15,
            patience: None,
            passes: splash::Options { synchronisations: 5, ..splash::Options::default() },
        }
    }
}

impl Config {
    /// Checks that the numbers can be.
    ///
    /// # Errors
    /// The first that cannot.
    pub fn validate(&self) -> Result<(), TrainError> {
        if !(1..=4096).contains(&self.rank) {
            return Err(TrainError::Rank { rank: self.rank });
        }
        if !(self.rate.is_finite() && self.rate > 0.0) {
            return Err(TrainError::NotPositive { what: "the step size", value: self.rate });
        }
        if !(self.l2.is_finite() && self.l2 >= 0.0) {
            return Err(TrainError::NotPositive { what: "the regularisation", value: self.l2 });
        }
        if self.epochs == 0 {
            return Err(TrainError::Zero { what: "the number of epochs" });
        }
        Ok(())
    }

    /// Numbers in the row of an item, and as many of a user.
    fn width(&self) -> usize {
        self.rank + usize::from(self.biases == Biases::With)
    }
}

/// Ratings by user.
struct ByUser {
    ratings: Vec<Rating>,
    /// Where the ratings of each user begin, and one more where the last end.
    starts: Vec<usize>,
}

impl ByUser {
    fn new(mut ratings: Vec<Rating>, users: u32) -> Self {
        ratings.sort_by_key(|rating| rating.user);
        let mut starts = vec![0; users as usize + 1];
        ratings.iter().for_each(|rating| starts[rating.user as usize + 1] += 1);
        for user in 0..users as usize {
            starts[user + 1] += starts[user];
        }
        Self { ratings, starts }
    }

    fn of(&self, user: u32) -> &[Rating] {
        let bounds: Range<usize> = self.starts[user as usize]..self.starts[user as usize + 1];
        &self.ratings[bounds]
    }
}

/// What does not change while training.
struct Known<'a> {
    config: &'a Config,
    train: ByUser,
    test: ByUser,
    mean: f32,
    range: (f32, f32),
}

/// The handles of the shared variables, and how wide their rows are.
#[derive(Clone, Copy)]
struct Variables {
    items: Array,
    /// Sums of squared gradients.
    seen: Array,
}

/// A user's side of things, and room to find it.
#[derive(Default)]
struct Scratch {
    solver: Solver,
    /// The rows to solve with: of each item its factors.
    rows: Vec<f32>,
    /// What the user's vector should give with each.
    targets: Vec<f32>,
    row: Vec<f32>,
    /// The user's vector; under biases the user's bias is the last.
    user: Vec<f32>,
    squared: Vec<f32>,
}

/// Trains a factorisation on `ratings`, of which the first `train` are for training, and shows `observe` how far it is
/// after every epoch.
///
/// # Errors
/// If there are no training ratings, the configuration cannot be, or the job fails.
pub fn train(
    config: &Config,
    deployment: &Deployment,
    mut ratings: Vec<Rating>,
    train: usize,
    (users, items): (u32, u32),
    mut observe: impl FnMut(&Epoch) + Send,
) -> Result<Trained, TrainError> {
    config.validate()?;
    if train == 0 {
        return Err(TrainError::NoRatings);
    }
    if config.patience.is_some() && train == ratings.len() {
        return Err(TrainError::NothingHeldOut);
    }
    let test = ratings.split_off(train);
    let (mean, range) = Ratings::mean_and_range(ratings.iter().copied());
    let known = Known { config, train: ByUser::new(ratings, users), test: ByUser::new(test, users), mean, range };
    let (shared, variables) = known.variables(items);
    let rated: Vec<u32> = (0..users).filter(|&user| !known.train.of(user).is_empty()).collect();
    let cost = |&user: &u32| known.train.of(user).len() as u64;
    let elements = Elements { cost: Some(&cost), ..Elements::from(&rated) };
    let workers = deployment.workers() as usize;
    let mut epochs = Vec::new();
    let trained = splash::run_observed(
        deployment,
        &config.passes,
        &shared,
        elements,
        |set: &mut DataSet<'_, u32, ()>| known.program(variables, set),
        &mut |observation: &Observation| {
            let epoch = Epoch::from_report(observation, workers, |sums| known.quality(sums));
            observe(&epoch);
            epochs.push(epoch);
        },
    )?;
    let (width, rank) = (config.width(), config.rank);
    let rows = trained.shared.to_vec(variables.items);
    let mut user_rows = vec![0.0; users as usize * width];
    for bytes in trained.outcome.results.iter().flat_map(|result| result.chunks_exact(4 * (width + 1))) {
        let mut numbers = bytes.as_chunks::<4>().0.iter().copied();
        let user = numbers.next().map_or(0, u32::from_le_bytes) as usize;
        let row = user_rows.chunks_exact_mut(width).nth(user).into_iter().flatten();
        row.zip(numbers).for_each(|(place, number)| *place = f32::from_le_bytes(number));
    }
    let factors = |rows: &[f32]| rows.chunks(width).flat_map(|row| &row[..rank]).copied().collect();
    let bias =
        |rows: &[f32]| (config.biases == Biases::With).then(|| rows.chunks(width).map(|row| row[rank]).collect());
    Ok(Trained {
        rank,
        user_factors: factors(&user_rows),
        item_factors: factors(&rows),
        user_bias: bias(&user_rows),
        item_bias: bias(&rows),
        mean,
        range,
        epochs,
        outcome: trained.outcome,
    })
}

impl Known<'_> {
    /// The shared variables; the factors of items begin as random unit vectors without negative numbers, but for items
    /// that nobody rated, of which nothing will be learnt.
    fn variables(&self, items: u32) -> (Shared, Variables) {
        let (width, rank) = (self.config.width(), self.config.rank);
        let mut shared = Shared::default();
        let variables = Variables {
            items: shared.rows("items", items as usize, width),
            seen: shared.rows("squared gradients", items as usize, width),
        };
        let mut rated = vec![false; items as usize];
        self.train.ratings.iter().for_each(|rating| rated[rating.item as usize] = true);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.config.passes.seed);
        for (row, rated) in shared.edit(variables.items).chunks_mut(width).zip(rated) {
            let factors = &mut row[..rank];
            factors.iter_mut().for_each(|x| *x = (random.next_u32() >> 8) as f32 + 1.0);
            let length = factors.iter().map(|x| x * x).sum::<f32>().sqrt();
            factors.iter_mut().for_each(|x| *x = if rated { *x / length } else { 0.0 });
        }
        (shared, variables)
    }

    /// What one worker does; it returns the vectors of its users, each behind the user's number.
    fn program(&self, variables: Variables, set: &mut DataSet<'_, u32, ()>) -> Result<Vec<u8>, Error> {
        let config = self.config;
        let (mut course, mut scratch) = (Course::default(), Scratch::default());
        let mut clock = 0;
        for epoch in 1..=config.epochs {
            let mut met = (0.0, 0.0);
            let process = |&user: &u32, weight: f64, shared: &mut Shared, _: &mut _| {
                met.0 += self.process(user, weight as f32, variables, shared, &mut scratch);
                met.1 += self.train.of(user).len() as f64;
            };
            let loss = |&user: &u32, shared: &Shared| {
                let mut scratch = Scratch::default();
                self.solve(user, variables, shared, &mut scratch);
                let errors =
                    self.train.of(user).iter().map(|rating| self.error(rating, variables, shared, &mut scratch));
                errors.map(|error| f64::from(error).powi(2)).sum()
            };
            let began = set.seconds();
            let pass = set.run_tested(process, loss)?;
            course.train_seconds += set.seconds() - began;
            clock += pass.synchronisations;
            let tested = self.test(variables, set, &mut scratch);
            let report = set.report(&course.numbers(&set.split(), epoch, clock, &[met.0, met.1, tested]));
            if let Some(patience) = config.patience {
                let rmse = self.quality(own(&set.totals(report)?)).test_rmse.unwrap_or(f64::NAN);
                if !course.has_patience(patience, rmse) {
                    break;
                }
            }
        }
        let users = set.map(|&user, shared, _| {
            self.solve(user, variables, shared, &mut scratch);
            let numbers = scratch.user.iter().map(|number| number.to_le_bytes());
            [user.to_le_bytes()].into_iter().chain(numbers).collect::<Vec<_>>()
        });
        Ok(users.concat().concat())
    }

    /// Puts the vector that explains a user's training ratings best into `scratch`, and the rows it was found with.
    fn solve(&self, user: u32, variables: Variables, shared: &Shared, scratch: &mut Scratch) {
        let Config { rank, biases, l2, .. } = *self.config;
        let width = self.config.width();
        let Scratch { solver, rows, targets, user: vector, .. } = scratch;
        let ratings = self.train.of(user);
        rows.resize(ratings.len() * rank, 0.0);
        targets.clear();
        for (rating, row) in ratings.iter().zip(rows.chunks_exact_mut(rank)) {
            let place = rating.item as usize * width;
            shared.read(variables.items, place, row);
            let bias = if width > rank { shared.get(variables.items.at(place + rank)) } else { 0.0 };
            targets.push(rating.value - self.mean - bias);
        }
        let solution = solver.solve(rows, targets, rank, biases, l2);
        vector.clear();
        vector.extend(solution.iter().map(|number| *number as f32));
    }

    /// One step, for a user of any weight; the squared errors met.
    fn process(&self, user: u32, weight: f32, variables: Variables, shared: &mut Shared, scratch: &mut Scratch) -> f64 {
        self.solve(user, variables, shared, scratch);
        let [items, seen] = shared.edit_each([variables.items, variables.seen]);
        machine::run(Steps { ratings: self.train.of(user), config: self.config, weight, items, seen, scratch })
    }

    /// By how much the prediction of a rating is off, for the user who was solved for.
    fn error(&self, rating: &Rating, variables: Variables, shared: &Shared, scratch: &mut Scratch) -> f32 {
        let (width, rank) = (self.config.width(), self.config.rank);
        let Scratch { row, user, .. } = scratch;
        row.resize(width, 0.0);
        shared.read(variables.items, rating.item as usize * width, row);
        let biases = row.get(rank).map_or(0.0, |bias| bias + user[rank]);
        let product: f32 = row[..rank].iter().zip(&*user).map(|(v, u)| v * u).sum();
        (self.mean + biases + product).clamp(self.range.0, self.range.1) - rating.value
    }

    /// The squared errors of the held-out ratings of this worker's users; those of users without training ratings are the
    /// first worker's.
    fn test(&self, variables: Variables, set: &DataSet<'_, u32, ()>, scratch: &mut Scratch) -> f64 {
        let mut of_user = |user: u32, shared: &Shared| -> f64 {
            let ratings = self.test.of(user);
            if ratings.is_empty() {
                return 0.0;
            }
            self.solve(user, variables, shared, scratch);
            let errors = ratings.iter().map(|rating| self.error(rating, variables, shared, scratch));
            errors.map(|error| f64::from(error).powi(2)).sum()
        };
        let mut squares: f64 = set.map(|&user, shared, _| of_user(user, shared)).into_iter().sum();
        if set.worker().index() == 0 {
            let users = 0..self.train.starts.len() as u32 - 1;
            let new = users.filter(|&user| self.train.of(user).is_empty());
            squares += new.map(|user| of_user(user, set.shared())).sum::<f64>();
        }
        squares
    }

    fn quality(&self, sums: &[f64]) -> Quality {
        let &[squares, met, tested] = sums else { return Quality::default() };
        let count = self.test.ratings.len();
        Quality { objective: squares / met, test_rmse: (count > 0).then(|| (tested / count as f64).sqrt()) }
    }
}

/// Moves the items of a user who was solved for.
struct Steps<'a> {
    ratings: &'a [Rating],
    config: &'a Config,
    weight: f32,
    items: &'a mut [f32],
    seen: &'a mut [f32],
    scratch: &'a mut Scratch,
}

impl Loop for Steps<'_> {
    /// The squared errors met.
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let Self { ratings, config, weight, items, seen, scratch } = self;
        let &Config { rank, l2, rate, .. } = config;
        let (width, Scratch { rows, targets, row: steps, user, squared, .. }) = (config.width(), scratch);
        let bias = user.get(rank).copied().unwrap_or(0.0);
        // What an item's numbers are multiplied with: the user's factors, and 1 for its bias.
        user[rank..].fill(1.0);
        squared.clear();
        squared.extend(user.iter().map(|x| x * x));
        steps.resize(width, 0.0);
        let mut squares = 0.0;
        for ((rating, row), target) in ratings.iter().zip(rows.chunks_exact(rank)).zip(targets) {
            let error = dot(row, &user[..rank]) + bias - *target;
            squares += f64::from(error).powi(2);
            let place = rating.item as usize * width;
            let (item, seen) = (&mut items[place..place + width], &mut seen[place..place + width]);
            let size = weight * error * error;
            for ((step, seen), square) in steps.iter_mut().zip(seen).zip(&*squared) {
                *seen += size * square;
                *step = rate / (*seen + SEEN_MIN).sqrt();
            }
            let pull = dot(steps, squared);
            let moved = passed(error, pull, weight);
            for ((number, step), x) in item.iter_mut().zip(&*steps).zip(&*user) {
                let shrink = (weight * l2 * step).min(DECAY_MAX);
                *number -= *number * shrink + step * x * moved;
            }
        }
        squares
    }
}

/// What comes of an error in sum while a weight passes over it, under which it falls by `pull`: `(1 - e^-x) / x` of what it
/// would be if it did not fall, `x` being the pull of all the weight.
#[inline(always)]
fn passed(error: f32, pull: f32, weight: f32) -> f32 {
    let x = pull * weight;
    // Up to the seventh digit, and far sooner than the exponential.
    let series = 1.0 - x / 2.0 * (1.0 - x / 3.0 * (1.0 - x / 4.0 * (1.0 - x / 5.0 * (1.0 - x / 6.0))));
    error * weight * if x < 0.25 { series } else { -(-x).exp_m1() / x }
}

#[cfg(test)]
mod tests {
    use super::passed;

    #[test]
    fn a_weight_at_once_is_that_weight_in_two_halves() {
        for (error, pull, weight) in [(1.5, 0.3, 64.0), (-0.7, 1e-5, 3.0), (2.0, 40.0, 1000.0), (0.1, 0.02, 1.0)] {
            let at_once = passed(error, pull, weight);
            let first = passed(error, pull, weight / 2.0);
            let second = passed(error - pull * first, pull, weight / 2.0);
            let near = |a: f32, b: f32| (a - b).abs() <= 2e-3 * a.abs().max(b.abs());
            assert!(near(at_once, first + second), "{error} {pull} {weight}: {at_once} and {first} + {second}");
            assert!((error - pull * at_once) * error >= -1e-6, "overshot");
        }
    }
}
