//! A trained factorisation: what it predicts, recommends and how well.
//!
//! A prediction is the mean rating, plus the biases of user and item where the model has them,
//! plus the product of their factors, held within the range of ratings.

mod directory;
mod users;

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashSet};

use serde_json::Value;

use crate::{Names, Rating};

/// A trained factorisation, with the ids it was trained on.
#[derive(Clone, Debug, PartialEq)]
pub struct MfModel {
    /// The users' ids, in the order of their factors.
    pub users: Names,
    /// The items' ids, in the order of their factors.
    pub items: Names,
    /// How many factors a user or item has.
    pub rank: usize,
    /// `rank` numbers for each user.
    pub user_factors: Vec<f32>,
    /// `rank` numbers for each item.
    pub item_factors: Vec<f32>,
    /// One number for each user; users and items both have biases or neither.
    pub user_bias: Option<Vec<f32>>,
    /// One number for each item.
    pub item_bias: Option<Vec<f32>>,
    /// The mean of the training ratings.
    pub mean: f32,
    /// The smallest and the largest training rating.
    pub range: (f32, f32),
    /// How the model was trained.
    pub config: Value,
    /// How well it did.
    pub metrics: Value,
}

impl MfModel {
    /// The rating to expect; of a user or item that the model does not know, only the rest is used.
    pub fn predict(&self, user: Option<u32>, item: Option<u32>) -> f32 {
        self.clip(self.score(user, item))
    }

    /// The `count` best items for a user, without those `seen`: best first, ties in item order.
    ///
    /// Items are ranked by their score before it is held within the range of ratings, where many
    /// of the best would be equal.
    pub fn recommend(&self, user: Option<u32>, count: usize, seen: &HashSet<u32>) -> Vec<(u32, f32)> {
        let mut best = BinaryHeap::new();
        for item in (0..self.items.len() as u32).filter(|item| !seen.contains(item)) {
            let candidate = Candidate { score: self.score(user, Some(item)), item };
            if best.len() < count {
                best.push(candidate);
            } else if let Some(mut worst) = best.peek_mut()
                && candidate < *worst
            {
                *worst = candidate;
            }
        }
        let sorted = best.into_sorted_vec().into_iter();
        sorted.map(|candidate| (candidate.item, self.clip(candidate.score))).collect()
    }

    /// The root of the mean squared error; not a number where there are no ratings.
    pub fn rmse(&self, ratings: &[Rating]) -> f64 {
        let squares: f64 = ratings.iter().map(|rating| self.error(rating).powi(2)).sum();
        (squares / ratings.len() as f64).sqrt()
    }

    /// The mean absolute error; not a number where there are no ratings.
    pub fn mae(&self, ratings: &[Rating]) -> f64 {
        let sum: f64 = ratings.iter().map(|rating| self.error(rating).abs()).sum();
        sum / ratings.len() as f64
    }

    /// Sets users and items of which nothing was learnt to zero, so that they add nothing to a
    /// prediction; see [`crate::ratings::Split::unseen`].
    pub fn clear(&mut self, users: &[u32], items: &[u32]) {
        let rank = self.rank;
        let clear = |numbers: &[u32], factors: &mut [f32], bias: &mut Option<Vec<f32>>| {
            for &number in numbers {
                let number = number as usize;
                factors[number * rank..(number + 1) * rank].fill(0.0);
                if let Some(bias) = bias {
                    bias[number] = 0.0;
                }
            }
        };
        clear(users, &mut self.user_factors, &mut self.user_bias);
        clear(items, &mut self.item_factors, &mut self.item_bias);
    }

    fn error(&self, rating: &Rating) -> f64 {
        f64::from(self.predict(Some(rating.user), Some(rating.item))) - f64::from(rating.value)
    }

    fn score(&self, user: Option<u32>, item: Option<u32>) -> f32 {
        let user = user.map(|user| user as usize).filter(|&user| user < self.users.len());
        let item = item.map(|item| item as usize).filter(|&item| item < self.items.len());
        let bias = |bias: &Option<Vec<f32>>, number: Option<usize>| {
            bias.as_ref().zip(number).map_or(0.0, |(bias, number)| bias[number])
        };
        let product = user.zip(item).map_or(0.0, |(user, item)| {
            let user = &self.user_factors[user * self.rank..(user + 1) * self.rank];
            let item = &self.item_factors[item * self.rank..(item + 1) * self.rank];
            user.iter().zip(item).map(|(user, item)| user * item).sum()
        });
        self.mean + bias(&self.user_bias, user) + bias(&self.item_bias, item) + product
    }

    fn clip(&self, score: f32) -> f32 {
        score.max(self.range.0).min(self.range.1)
    }
}

/// An item and its score; the better of two is the lesser, so that a heap gives up the worst.
#[derive(PartialEq)]
struct Candidate {
    score: f32,
    item: u32,
}

impl Eq for Candidate {}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.item.cmp(&other.item))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
