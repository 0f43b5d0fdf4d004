//! Ratings as they are trained on: users and items are counted from the first row of a block, which for most needs two
//! bytes each, and values from a list of the different ones.

use super::Rating;
use crate::ratings::{DIFFERENT_MAX, RatingList, apart};
use std::ops::Range;

/// Ratings in order, in five bytes each where that is enough, otherwise as they are.
#[derive(Debug)]
pub enum Stored {
    /// In five bytes: user and item of each, which of the different values it has, and those.
    Near(Vec<u32>, Vec<u8>, Box<[f32; DIFFERENT_MAX]>),
    /// As they are.
    Wide(Vec<Rating>),
}

/// Some of the ratings, one after the other.
#[derive(Clone, Copy, Debug)]
pub enum Block<'a> {
    /// In five bytes.
    Near(Near<'a>),
    /// As they are.
    Wide(&'a [Rating]),
}

/// Ratings in five bytes each.
#[derive(Clone, Copy, Debug)]
pub struct Near<'a> {
    places: &'a [u32],
    which: &'a [u8],
    different: &'a [f32; DIFFERENT_MAX],
}

/// What a loop over ratings needs of them.
pub(super) trait Sequence: Copy {
    fn len(self) -> usize;
    fn get(self, index: usize) -> Rating;
}

impl Sequence for Near<'_> {
    #[inline(always)]
    fn len(self) -> usize {
        self.places.len()
    }

    #[inline(always)]
    fn get(self, index: usize) -> Rating {
        let [user, item] = apart(self.places[index]);
        Rating { user, item, value: self.different[self.which[index] as usize] }
    }
}

impl Sequence for &[Rating] {
    #[inline(always)]
    fn len(self) -> usize {
        <[Rating]>::len(self)
    }

    #[inline(always)]
    fn get(self, index: usize) -> Rating {
        self[index]
    }
}

impl Stored {
    /// Packs ratings in place, or leaves them as they are.
    pub fn new(ratings: RatingList) -> Self {
        match ratings.into_parts() {
            Ok((places, which, values)) => {
                let mut different = Box::new([0.0; DIFFERENT_MAX]);
                different[..values.len()].copy_from_slice(&values);
                Self::Near(places, which, different)
            }
            Err(ratings) => Self::Wide(ratings.into_vec()),
        }
    }

    /// Some of them.
    pub fn block(&self, range: Range<usize>) -> Block<'_> {
        match self {
            Self::Near(places, which, different) => {
                Block::Near(Near { places: &places[range.clone()], which: &which[range], different })
            }
            Self::Wide(ratings) => Block::Wide(&ratings[range]),
        }
    }
}

impl Default for Stored {
    fn default() -> Self {
        Self::Wide(Vec::new())
    }
}

impl<'a> Block<'a> {
    /// How many there are.
    pub fn len(self) -> usize {
        match self {
            Self::Near(ratings) => ratings.len(),
            Self::Wide(ratings) => ratings.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// All of them, in order.
    pub fn iter(self) -> impl Iterator<Item = Rating> + 'a {
        (0..self.len()).map(move |index| match self {
            Self::Near(ratings) => ratings.get(index),
            Self::Wide(ratings) => ratings[index],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratings_are_packed_where_they_fit_and_stay_the_same() {
        let rating = |n: u32| Rating { user: n % 3000, item: 65_535 - n, value: (n % 10) as f32 / 2.0 };
        let near: Vec<Rating> = (0..5001).map(rating).collect();
        let far: Vec<Rating> = near.iter().map(|rating| Rating { user: rating.user + 65_536, ..*rating }).collect();
        let many: Vec<Rating> = near.iter().map(|rating| Rating { value: rating.item as f32, ..*rating }).collect();
        for (ratings, is_near) in [(near, true), (far, false), (many, false)] {
            let stored = Stored::new(ratings.clone().into());
            assert_eq!(matches!(stored, Stored::Near(..)), is_near);
            assert!(stored.block(0..5001).iter().eq(ratings.iter().copied()));
            assert!(stored.block(1234..1237).iter().eq(ratings[1234..1237].iter().copied()));
        }
    }
}
