//! Ratings in as little memory as they need while they are read and put into order.

use crate::Rating;
use bytemuck::allocation::{cast_vec, zeroed_vec};

/// How many different values a list can tell apart by a byte.
pub(crate) const DIFFERENT_MAX: usize = 256;
/// Values are looked up by so many bits of a hash of theirs.
const SLOT_BITS: u32 = 10;
const SLOTS: usize = 1 << SLOT_BITS;
/// A user and an item fit into one number, the user in its lower half, if both are below this.
const NEAR: u32 = 1 << 16;

/// Ratings one after the other, in twelve bytes each: four less as long as there are few users and few items, and three
/// less as long as there are few different values.
#[derive(Clone, Debug, Default)]
pub struct RatingList {
    pairs: Pairs,
    values: Values,
}

/// User and item of each rating.
#[derive(Clone, Debug)]
enum Pairs {
    Near(Vec<u32>),
    Far(Vec<[u32; 2]>),
}

#[derive(Clone, Debug)]
enum Values {
    Few(Few),
    Many(Vec<f32>),
}

/// Values of which few are different.
#[derive(Clone, Debug)]
struct Few {
    different: Vec<f32>,
    /// Which of them each rating has.
    which: Vec<u8>,
    /// Which was found last for the same hash.
    last: Box<[u8; SLOTS]>,
}

/// A list taken apart: user and item of each rating in one number, which of the different values it has, and those.
pub(crate) type Parts = (Vec<u32>, Vec<u8>, Vec<f32>);

impl Default for Pairs {
    fn default() -> Self {
        Self::Near(Vec::new())
    }
}

impl Default for Values {
    fn default() -> Self {
        Self::Few(Few { different: Vec::new(), which: Vec::new(), last: Box::new([0; SLOTS]) })
    }
}

impl RatingList {
    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.pairs {
            Pairs::Near(pairs) => pairs.len(),
            Pairs::Far(pairs) => pairs.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rating at a place.
    ///
    /// # Panics
    /// If there are not so many.
    #[inline]
    pub fn get(&self, place: usize) -> Rating {
        let [user, item] = self.pair(place);
        let value = match &self.values {
            Values::Few(few) => few.different[few.which[place] as usize],
            Values::Many(values) => values[place],
        };
        Rating { user, item, value }
    }

    /// User and item of the rating at a place.
    ///
    /// # Panics
    /// If there are not so many.
    #[inline]
    pub fn pair(&self, place: usize) -> [u32; 2] {
        match &self.pairs {
            Pairs::Near(pairs) => apart(pairs[place]),
            Pairs::Far(pairs) => pairs[place],
        }
    }

    /// Gives the rating at a place another user and item.
    ///
    /// # Panics
    /// If there are not so many.
    #[inline]
    pub fn set_pair(&mut self, place: usize, pair: [u32; 2]) {
        self.pairs.make_fit(pair);
        match &mut self.pairs {
            Pairs::Near(pairs) => pairs[place] = together(pair),
            Pairs::Far(pairs) => pairs[place] = pair,
        }
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Rating> + Clone {
        (0..self.len()).map(|place| self.get(place))
    }

    /// Adds one behind the others.
    #[inline]
    pub fn push(&mut self, rating: Rating) {
        let pair = [rating.user, rating.item];
        self.pairs.make_fit(pair);
        match &mut self.pairs {
            Pairs::Near(pairs) => pairs.push(together(pair)),
            Pairs::Far(pairs) => pairs.push(pair),
        }
        match &mut self.values {
            Values::Few(few) => {
                if !few.push(rating.value) {
                    let mut many = Vec::with_capacity(few.which.capacity());
                    many.extend(few.which.iter().map(|&which| few.different[which as usize]));
                    many.push(rating.value);
                    self.values = Values::Many(many);
                }
            }
            Values::Many(values) => values.push(rating.value),
        }
    }

    /// Exchanges two.
    #[inline]
    pub fn swap(&mut self, one: usize, other: usize) {
        match &mut self.pairs {
            Pairs::Near(pairs) => pairs.swap(one, other),
            Pairs::Far(pairs) => pairs.swap(one, other),
        }
        match &mut self.values {
            Values::Few(few) => few.which.swap(one, other),
            Values::Many(values) => values.swap(one, other),
        }
    }

    /// Makes room for as many as are `needed`, and at once for all that are `expected`: room that stays unused costs no
    /// memory, while moving the ratings could need twice theirs.
    pub(super) fn make_room(&mut self, needed: usize, expected: Option<usize>) {
        let more = expected.unwrap_or(self.len() / 4).max(needed);
        match &mut self.pairs {
            Pairs::Near(pairs) => make_room(pairs, needed, more),
            Pairs::Far(pairs) => make_room(pairs, needed, more),
        }
        match &mut self.values {
            Values::Few(few) => make_room(&mut few.which, needed, more),
            Values::Many(values) => make_room(values, needed, more),
        }
    }

    /// Moves those whose numbers `behind` names behind the others, and says how many stay; both keep their order.
    pub(super) fn partition(&mut self, behind: &impl Fn(u64) -> bool) -> usize {
        match &mut self.values {
            Values::Few(few) => partition(&mut few.which, 0, behind),
            Values::Many(values) => partition(values, 0, behind),
        };
        match &mut self.pairs {
            Pairs::Near(pairs) => partition(pairs, 0, behind),
            Pairs::Far(pairs) => partition(pairs, 0, behind),
        }
    }

    /// Tells these ratings from others.
    pub(crate) fn checksum(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        match &self.pairs {
            Pairs::Near(pairs) => hasher.update(bytemuck::cast_slice(pairs)),
            Pairs::Far(pairs) => hasher.update(bytemuck::cast_slice(pairs)),
        }
        match &self.values {
            Values::Few(few) => {
                hasher.update(bytemuck::cast_slice(&few.different));
                hasher.update(&few.which);
            }
            Values::Many(values) => hasher.update(bytemuck::cast_slice(values)),
        }
        hasher.finalize()
    }

    /// The list in parts, where users and items are near and there are few different values.
    pub(crate) fn into_parts(self) -> Result<Parts, Self> {
        match (self.pairs.into_near(), self.values) {
            (Ok(pairs), Values::Few(few)) => Ok((pairs, few.which, few.different)),
            (pairs, values) => {
                let pairs = pairs.map_or_else(|far| far, Pairs::Near);
                Err(Self { pairs, values })
            }
        }
    }

    /// All of them as they are, piece by piece from the last, so that they are never there twice.
    pub fn into_vec(mut self) -> Vec<Rating> {
        let mut ratings = zeroed_vec(self.len());
        let piece = self.len().div_ceil(16).max(1);
        while !self.is_empty() {
            let first = (self.len() - 1) / piece * piece;
            (first..self.len()).for_each(|place| ratings[place] = self.get(place));
            self.truncate(first);
        }
        ratings
    }

    fn truncate(&mut self, count: usize) {
        match &mut self.pairs {
            Pairs::Near(pairs) => cut(pairs, count),
            Pairs::Far(pairs) => cut(pairs, count),
        }
        match &mut self.values {
            Values::Few(few) => cut(&mut few.which, count),
            Values::Many(values) => cut(values, count),
        }
    }
}

impl Few {
    /// Adds one, unless it would be one different too many.
    #[inline]
    fn push(&mut self, value: f32) -> bool {
        let same = |other: &f32| other.to_bits() == value.to_bits();
        let hash = value.to_bits().wrapping_mul(0x9E37_79B1) >> (u32::BITS - SLOT_BITS);
        let mut which = self.last[hash as usize];
        if !self.different.get(which as usize).is_some_and(same) {
            let place = self.different.iter().position(same).unwrap_or(self.different.len());
            if place == DIFFERENT_MAX {
                return false;
            }
            if place == self.different.len() {
                self.different.push(value);
            }
            which = place as u8;
            self.last[hash as usize] = which;
        }
        self.which.push(which);
        true
    }
}

impl Pairs {
    /// Makes all far if this one is.
    #[inline]
    fn make_fit(&mut self, pair: [u32; 2]) {
        if !is_near(pair) {
            self.make_far();
        }
    }

    #[cold]
    fn make_far(&mut self) {
        if let Self::Near(pairs) = self {
            let mut far = Vec::with_capacity(pairs.capacity());
            far.extend(pairs.iter().map(|&pair| apart(pair)));
            *self = Self::Far(far);
        }
    }

    /// All in one number each, in place.
    fn into_near(self) -> Result<Vec<u32>, Self> {
        match self {
            Self::Near(pairs) => Ok(pairs),
            Self::Far(pairs) if pairs.iter().all(|&pair| is_near(pair)) => {
                let count = pairs.len();
                let mut numbers: Vec<u32> = cast_vec(pairs);
                (0..count).for_each(|place| numbers[place] = together([numbers[2 * place], numbers[2 * place + 1]]));
                cut(&mut numbers, count);
                Ok(numbers)
            }
            far @ Self::Far(_) => Err(far),
        }
    }
}

fn is_near([user, item]: [u32; 2]) -> bool {
    user < NEAR && item < NEAR
}

fn together([user, item]: [u32; 2]) -> u32 {
    user + item * NEAR
}

/// The user and the item in one number.
#[inline(always)]
pub(crate) fn apart(pair: u32) -> [u32; 2] {
    [pair % NEAR, pair / NEAR]
}

fn make_room<T>(values: &mut Vec<T>, needed: usize, more: usize) {
    if values.capacity() - values.len() < needed && values.try_reserve_exact(more).is_err() {
        values.reserve_exact(needed);
    }
}

fn cut<T>(values: &mut Vec<T>, count: usize) {
    values.truncate(count);
    values.shrink_to_fit();
}

/// Lists are equal that hold the same ratings, in whatever form.
impl PartialEq for RatingList {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl FromIterator<Rating> for RatingList {
    fn from_iter<I: IntoIterator<Item = Rating>>(ratings: I) -> Self {
        let ratings = ratings.into_iter();
        let mut list = Self::default();
        list.make_room(ratings.size_hint().0, None);
        ratings.for_each(|rating| list.push(rating));
        list
    }
}

impl From<Vec<Rating>> for RatingList {
    fn from(ratings: Vec<Rating>) -> Self {
        ratings.into_iter().collect()
    }
}

/// Moves the rows whose numbers `behind` names behind the others and returns how many stay.
///
/// Halves are partitioned first and then their inner parts exchanged, so that a buffer is needed only for a small leaf.
fn partition<T: Copy>(rows: &mut [T], first: u64, behind: &impl Fn(u64) -> bool) -> usize {
    const LEAF: usize = 1 << 16;
    if rows.len() > LEAF {
        let half = rows.len() / 2;
        let (left, right) = rows.split_at_mut(half);
        let left = partition(left, first, behind);
        let right = partition(right, first + half as u64, behind);
        rows[left..half + right].rotate_left(half - left);
        return left + right;
    }
    let mut kept = 0;
    let mut moved = Vec::new();
    for row in 0..rows.len() {
        if behind(first + row as u64) {
            moved.push(rows[row]);
        } else {
            rows[kept] = rows[row];
            kept += 1;
        }
    }
    rows[kept..].copy_from_slice(&moved);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratings(different: u32) -> Vec<Rating> {
        (0..1000).map(|n| Rating { user: n, item: n * 7 % 13, value: (n % different) as f32 / 3.0 }).collect()
    }

    #[test]
    fn few_and_many_values_are_kept_alike() {
        for different in [1, 5, 255, 256, 257, 1000] {
            let expected = ratings(different);
            let mut list = RatingList::from(expected.clone());
            assert_eq!(list.len(), 1000);
            assert!(list.iter().eq(expected.iter().copied()), "{different} values");
            assert_eq!(list.clone().into_parts().is_ok(), different <= 256);
            assert_eq!(list.clone().into_vec(), expected);
            list.swap(3, 900);
            assert_eq!((list.get(3), list.get(900)), (expected[900], expected[3]));
        }
    }

    #[test]
    fn users_and_items_are_kept_alike_near_and_far() {
        let expected = ratings(5);
        let mut list = RatingList::from(expected.clone());
        list.set_pair(7, [NEAR, 1]);
        assert_eq!(list.pair(7), [NEAR, 1]);
        list.push(Rating { user: 1, item: NEAR - 1, value: 0.5 });
        assert!(list.iter().take(7).eq(expected[..7].iter().copied()));
        let far = list.clone().into_parts().expect_err("one is far");
        assert_eq!(far, list);
        list.set_pair(7, [7, 7 * 7 % 13]);
        let (pairs, which, different) = list.clone().into_parts().expect("all are near again");
        assert_eq!((pairs.len(), which.len(), different.len()), (1001, 1001, 6));
        assert!(pairs.iter().zip(list.iter()).all(|(&pair, rating)| apart(pair) == [rating.user, rating.item]));
        assert_eq!(list.get(1000), Rating { user: 1, item: NEAR - 1, value: 0.5 });
    }

    #[test]
    fn a_checksum_tells_values_and_pairs_apart() {
        let list = RatingList::from(ratings(5));
        let mut other = list.clone();
        other.set_pair(500, [3, 3]);
        assert_ne!(list.checksum(), other.checksum());
        assert_ne!(list.checksum(), RatingList::from(ratings(6)).checksum());
        assert_eq!(list.checksum(), list.clone().checksum());
    }

    #[test]
    fn lists_of_any_length_become_vectors() {
        for length in [0, 1, 15, 16, 17, 999] {
            let expected = ratings(5)[..length].to_vec();
            assert_eq!(RatingList::from(expected.clone()).into_vec(), expected);
        }
    }
}
