//! Data made from a known truth, to show and to test training where none are at hand: ratings from factors here,
//! documents from topics in [`corpus`], examples of two classes from weights in [`examples`]; and images enlarged in number
//! by [`deformations`].

pub mod corpus;
pub mod deformations;
pub mod examples;

use std::io::{self, Write};

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::ratings::Ratings;
use crate::{Names, Rating};

/// What ratings to make: half stars from 0.5 to 5, no pair of user and item twice.
///
/// Some items are rated far more often than others, as by Zipf's law, and some users rate far
/// more than others, by a lognormal law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Synthetic {
    /// How many users there are.
    pub users: u32,
    /// How many items there are.
    pub items: u32,
    /// How many ratings there are.
    pub count: usize,
    /// How many factors the ratings are made from.
    pub rank: usize,
    /// The standard deviation of what no factor explains, in stars.
    pub noise: f32,
    /// The same seed gives the same ratings.
    pub seed: u64,
}

/// A small set from which a model learns visibly within a second.
impl Default for Synthetic {
    fn default() -> Self {
        Self { users: 2_000, items: 1_000, count: 200_000, rank: 8, noise: 0.5, seed: 1 }
    }
}

/// Why ratings could not be made.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum GenerateError {
    /// There is nothing to make.
    #[error("cannot make {count} ratings of {users} users and {items} items; expected 1 or more of each")]
    Nothing {
        /// The number of users given.
        users: u32,
        /// The number of items given.
        items: u32,
        /// The number of ratings given.
        count: usize,
    },
    /// There are fewer pairs of user and item than ratings.
    #[error("cannot make {count} ratings of {pairs} pairs of user and item; expected no more ratings than pairs")]
    TooMany {
        /// The number of ratings given.
        count: usize,
        /// Users times items.
        pairs: u64,
    },
    /// The noise is not a standard deviation.
    #[error("cannot make ratings with noise {noise}; expected a finite number of 0 or more")]
    Noise {
        /// The noise given.
        noise: f32,
    },
}

/// Ratings, and how well they can be predicted.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    /// The ratings, in random order.
    pub ratings: Ratings,
    /// The RMSE of predicting each rating by its true factors: no model does better on ratings
    /// that it has not seen, but for chance.
    pub floor_rmse: f64,
}

const CENTRE: f32 = 3.5;
const BIAS_DEVIATION: f32 = 0.35;
/// Of the product of factors, over pairs of user and item.
const PRODUCT_DEVIATION: f32 = 0.65;
const LOWEST: f32 = 0.5;
const HIGHEST: f32 = 5.0;

/// Makes ratings.
pub fn generate(what: &Synthetic) -> Result<Generated, GenerateError> {
    let Synthetic { users, items, count, rank, noise, seed } = *what;
    if users == 0 || items == 0 || count == 0 {
        return Err(GenerateError::Nothing { users, items, count });
    }
    let pairs = u64::from(users) * u64::from(items);
    if count as u64 > pairs {
        return Err(GenerateError::TooMany { count, pairs });
    }
    if !noise.is_finite() || noise < 0.0 {
        return Err(GenerateError::Noise { noise });
    }
    let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(seed));
    let mut ratings = random.pairs(users, items, count);
    let user_truth = random.truth(users, rank);
    let item_truth = random.truth(items, rank);
    let scale = PRODUCT_DEVIATION / (rank.max(1) as f32).sqrt();
    let mut squares = 0.0;
    for rating in &mut ratings {
        let (user, item) = (user_truth.row(rating.user), item_truth.row(rating.item));
        let product: f32 = user[1..].iter().zip(&item[1..]).map(|(user, item)| user * item).sum();
        let expected = CENTRE + BIAS_DEVIATION * (user[0] + item[0]) + scale * product;
        let value = expected + noise * random.normal();
        rating.value = ((value * 2.0).round() / 2.0).clamp(LOWEST, HIGHEST);
        squares += f64::from(rating.value - expected.clamp(LOWEST, HIGHEST)).powi(2);
    }
    let ratings = Ratings { ratings: ratings.into(), users: numbered(users), items: numbered(items) };
    Ok(Generated { ratings, floor_rmse: (squares / count as f64).sqrt() })
}

/// Writes ratings as CSV with a header; an id with a line end in it is an error.
pub fn write_csv(ratings: &Ratings, output: &mut impl Write) -> io::Result<()> {
    let users = csv_fields(&ratings.users)?;
    let items = csv_fields(&ratings.items)?;
    writeln!(output, "user,item,rating")?;
    for rating in ratings.ratings.iter() {
        writeln!(output, "{},{},{}", users.name(rating.user), items.name(rating.item), rating.value)?;
    }
    Ok(())
}

/// The names as CSV writes them, quoted where needed.
fn csv_fields(names: &Names) -> io::Result<Names> {
    let mut fields = Names::default();
    for name in names.iter() {
        if name.contains(['\n', '\r']) {
            let problem = format!("the id {name:?} has a line end in it, which CSV cannot hold");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let quoted = name.contains([',', '"']) || name.trim() != name;
        let field = if quoted { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.to_owned() };
        fields.intern(&field).map_err(io::Error::other)?;
    }
    Ok(fields)
}

fn numbered(count: u32) -> Names {
    let mut names = Names::default();
    for number in 1..=count {
        names.intern(&number.to_string()).expect("numbers of 32 bits are few enough to be named");
    }
    names
}

/// What is true of all users or all items: for each a bias and its factors, standard normal.
struct Truth {
    width: usize,
    numbers: Vec<f32>,
}

impl Truth {
    fn row(&self, number: u32) -> &[f32] {
        &self.numbers[number as usize * self.width..][..self.width]
    }
}

/// Where drawn numbers come from.
#[derive(Debug)]
pub(crate) struct Random(pub(crate) Xoshiro256PlusPlus);

impl Random {
    /// Between 0 and 1, never 0.
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.0.next_u64()) * limit as u128) >> 64) as usize
    }

    pub(crate) fn normal(&mut self) -> f32 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        (radius * (std::f64::consts::TAU * self.uniform()).cos()) as f32
    }

    fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last + 1));
        }
    }

    fn truth(&mut self, count: u32, rank: usize) -> Truth {
        let width = rank + 1;
        let numbers = (0..count as usize * width).map(|_| self.normal()).collect();
        Truth { width, numbers }
    }

    /// Distinct pairs in random order, without values.
    fn pairs(&mut self, users: u32, items: u32, count: usize) -> Vec<Rating> {
        let mut weights: Vec<f64> = (0..items).map(|place| (f64::from(place) + 10.0).powf(-0.85)).collect();
        self.shuffle(&mut weights);
        let sums: Vec<f64> = weights
            .iter()
            .scan(0.0, |sum, weight| {
                *sum += weight;
                Some(*sum)
            })
            .collect();
        let mut last_user = vec![u32::MAX; items as usize];
        let mut pairs = Vec::with_capacity(count);
        for (user, wanted) in (0..).zip(self.activity(users, items, count)) {
            if wanted > items / 4 {
                let mut ranked: Vec<(f64, u32)> =
                    (0..).zip(&weights).map(|(item, weight)| (-self.uniform().ln() / weight, item)).collect();
                ranked.sort_by(|one, other| one.0.total_cmp(&other.0));
                let chosen = ranked.iter().take(wanted as usize);
                pairs.extend(chosen.map(|&(_, item)| Rating { user, item, value: 0.0 }));
                continue;
            }
            let mut missing = wanted;
            while missing > 0 {
                let place = self.uniform() * sums[sums.len() - 1];
                let item = sums.partition_point(|sum| *sum < place).min(sums.len() - 1);
                if last_user[item] != user {
                    last_user[item] = user;
                    pairs.push(Rating { user, item: item as u32, value: 0.0 });
                    missing -= 1;
                }
            }
        }
        self.shuffle(&mut pairs);
        pairs
    }

    /// How many ratings each user gives, `count` in all and none more than there are items.
    fn activity(&mut self, users: u32, items: u32, count: usize) -> Vec<u32> {
        let weights: Vec<f64> = (0..users).map(|_| f64::from(self.normal()).exp()).collect();
        let scale = count as f64 / weights.iter().sum::<f64>();
        let mut activity: Vec<u32> =
            weights.iter().map(|weight| (weight * scale).min(f64::from(items)) as u32).collect();
        let mut missing = count - activity.iter().map(|&given| given as usize).sum::<usize>();
        while missing > 0 {
            for given in activity.iter_mut().filter(|given| **given < items).take(missing) {
                *given += 1;
                missing -= 1;
            }
        }
        activity
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ratings_are_as_asked_for() {
        let what = Synthetic { users: 300, items: 50, count: 6_000, ..Synthetic::default() };
        let made = generate(&what).unwrap();
        assert_eq!(made, generate(&what).unwrap());
        assert_ne!(made, generate(&Synthetic { seed: 2, ..what }).unwrap());
        let ratings = &made.ratings.ratings;
        let pairs: HashSet<(u32, u32)> = ratings.iter().map(|rating| (rating.user, rating.item)).collect();
        assert_eq!((ratings.len(), pairs.len()), (6_000, 6_000));
        assert!(ratings.iter().all(|rating| rating.user < 300 && rating.item < 50));
        assert!(ratings.iter().all(|rating| (1..=10).contains(&((rating.value * 2.0) as i32))));
    }

    #[test]
    fn every_pair_can_be_asked_for() {
        let what = Synthetic { users: 20, items: 30, count: 600, ..Synthetic::default() };
        let mut pairs: Vec<(u32, u32)> =
            generate(&what).unwrap().ratings.ratings.iter().map(|rating| (rating.user, rating.item)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        assert_eq!(pairs.len(), 600);
    }

    #[test]
    fn the_demonstration_leaves_much_to_learn() {
        let made = generate(&Synthetic::default()).unwrap();
        let ratings = &made.ratings.ratings;
        let (mean, _) = Ratings::mean_and_range(ratings.iter());
        let squares: f64 = ratings.iter().map(|rating| f64::from(rating.value - mean).powi(2)).sum();
        let spread = (squares / ratings.len() as f64).sqrt();
        assert!(made.floor_rmse > 0.45 && made.floor_rmse < 0.55, "{}", made.floor_rmse);
        assert!(spread > 1.6 * made.floor_rmse, "{spread} against {}", made.floor_rmse);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let what = Synthetic { users: 30, items: 20, count: 200, ..Synthetic::default() };
        let made = generate(&what).unwrap().ratings;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ratings.csv");
        write_csv(&made, &mut std::fs::File::create(&path).unwrap()).unwrap();
        let read = Ratings::read(&[path]).unwrap();
        assert_eq!(read.ratings.len(), 200);
        for (made_one, read_one) in made.ratings.iter().zip(read.ratings.iter()) {
            assert_eq!(made.users.name(made_one.user), read.users.name(read_one.user));
            assert_eq!(made.items.name(made_one.item), read.items.name(read_one.item));
            assert_eq!(made_one.value, read_one.value);
        }
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        let refused = |what: Synthetic| generate(&what).unwrap_err().to_string();
        let small = Synthetic { users: 2, items: 3, count: 6, ..Synthetic::default() };
        assert_eq!(
            refused(Synthetic { users: 0, ..small }),
            "cannot make 6 ratings of 0 users and 3 items; expected 1 or more of each"
        );
        assert_eq!(
            refused(Synthetic { count: 7, ..small }),
            "cannot make 7 ratings of 6 pairs of user and item; expected no more ratings than pairs"
        );
        assert_eq!(
            refused(Synthetic { noise: -1.0, ..small }),
            "cannot make ratings with noise -1; expected a finite number of 0 or more"
        );
    }
}
