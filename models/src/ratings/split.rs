//! Which ratings are held out to judge a model by.

use std::path::Path;

use super::{EXPECTED, Ratings, ReadError};
use crate::Rating;
use crate::hold_out::{HoldOut, SplitError};

/// Ratings in two parts: those to train on first, those held out behind them.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    ratings: Ratings,
    train: usize,
}

impl Split {
    /// Moves the ratings held out behind the others, in place; both keep their order.
    pub fn new(mut ratings: Ratings, rule: HoldOut) -> Result<Self, SplitError> {
        let train = ratings.ratings.partition(&rule.held_out(EXPECTED)?);
        let test = ratings.ratings.len() - train;
        if train == 0 || test == 0 {
            return Err(SplitError::Empty { what: EXPECTED, train, test });
        }
        Ok(Self { ratings, train })
    }

    /// Reads the ratings held out from files of their own; ids that are new there are kept.
    pub fn read_test<P: AsRef<Path>>(mut ratings: Ratings, files: &[P]) -> Result<Self, ReadError> {
        let train = ratings.ratings.len();
        ratings.read_more(files)?;
        Ok(Self { ratings, train })
    }

    /// The ratings to train on.
    pub fn train(&self) -> impl ExactSizeIterator<Item = Rating> {
        self.ratings.ratings.iter().take(self.train)
    }

    /// The ratings held out.
    pub fn test(&self) -> impl ExactSizeIterator<Item = Rating> {
        self.ratings.ratings.iter().skip(self.train)
    }

    /// All ratings with their ids, first the ones to train on.
    pub fn ratings(&self) -> &Ratings {
        &self.ratings
    }

    /// All ratings with their ids, and how many of them, the first, are to train on.
    pub fn into_parts(self) -> (Ratings, usize) {
        (self.ratings, self.train)
    }

    /// The users and the items that no training rating names: nothing can be learnt about them.
    pub fn unseen(&self) -> (Vec<u32>, Vec<u32>) {
        let mut users = vec![false; self.ratings.users.len()];
        let mut items = vec![false; self.ratings.items.len()];
        for rating in self.train() {
            users[rating.user as usize] = true;
            items[rating.item as usize] = true;
        }
        let unseen = |seen: &[bool]| (0..).zip(seen).filter(|(_, seen)| !**seen).map(|(number, _)| number).collect();
        (unseen(&users), unseen(&items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(count: u32) -> Ratings {
        let mut ratings = Ratings::default();
        for number in 0..count {
            let user = ratings.users.intern(&number.to_string()).unwrap();
            let item = ratings.items.intern(&(number % 7).to_string()).unwrap();
            ratings.ratings.push(Rating { user, item, value: 1.0 });
        }
        ratings
    }

    fn users(ratings: impl Iterator<Item = Rating>) -> Vec<u32> {
        ratings.map(|rating| rating.user).collect()
    }

    #[test]
    fn every_tenth_row_is_held_out_in_order() {
        for count in [10, 25, 65_536, 65_537, 300_001] {
            let split = Split::new(numbered(count), HoldOut::Every(10)).unwrap();
            let (test, train): (Vec<u32>, Vec<u32>) = (0..count).partition(|row| row % 10 == 9);
            assert_eq!(users(split.train()), train);
            assert_eq!(users(split.test()), test);
        }
    }

    #[test]
    fn a_random_fraction_depends_on_the_seed_only() {
        let split = |seed| Split::new(numbered(200_000), HoldOut::Random { fraction: 0.2, seed }).unwrap();
        let (one, again, other) = (split(1), split(1), split(2));
        assert_eq!(one, again);
        assert_ne!(users(one.test()), users(other.test()));
        assert!((39_000..41_000).contains(&one.test().len()), "{}", one.test().len());
        let mut all = [users(one.train()), users(one.test())].concat();
        assert!(users(one.train()).is_sorted());
        all.sort_unstable();
        assert_eq!(all, (0..200_000).collect::<Vec<_>>());
    }

    #[test]
    fn what_no_training_rating_names_is_unseen() {
        let split = Split::new(numbered(7), HoldOut::Every(4)).unwrap();
        assert_eq!(split.unseen(), (vec![3], vec![3]));
    }

    #[test]
    fn rules_that_leave_nothing_are_refused() {
        let refused = |count, rule| Split::new(numbered(count), rule).unwrap_err().to_string();
        assert_eq!(refused(9, HoldOut::Every(1)), "cannot hold out one in 1 ratings; expected one in 2 or more");
        assert_eq!(
            refused(9, HoldOut::Random { fraction: f64::NAN, seed: 0 }),
            "cannot hold out a fraction of NaN; expected a number between 0 and 1"
        );
        assert_eq!(refused(9, HoldOut::Every(10)), "9 ratings to train on and 0 to hold out; expected some of both");
    }
}
