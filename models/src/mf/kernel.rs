//! The hot loops of matrix factorisation: the gradient steps and the squared error of one block of ratings.
//!
//! There is one body of each loop. It is compiled for several instruction sets, of which the best the machine has is
//! chosen at run time, and for common ranks, whose loops the compiler then unrolls.
//!
//! A step costs about `8 · rank` floating-point operations (two for the product, six for the two updates, per factor) and
//! moves the rating's 5 bytes (12 where it is not [`Near`](super::near::Near)) and `16 · rank` bytes of factors: both rows
//! read and written. At rank 32 that is 256 operations and 517 bytes.

use super::near::{Block, Sequence};
use super::{Biases, LANES, Model, OTHER_COLUMNS, factor_columns, row_width};
use hemiola::fetch;

/// The step sizes of one call of [`sgd_block`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Step size, or with damping that of a row's first rating.
    pub rate: f32,
    /// How fast a row's step size shrinks with the squared errors it has seen; zero for one step size for all rows.
    pub damping: f32,
    /// Weight of the squared rows in the objective.
    pub l2: f32,
}

/// Takes one gradient step for each rating, in order, and returns the sum of the squared errors met on the way.
///
/// `users` and `items` are whole rows of [`row_width`] floats, which the ratings index from zero.
///
/// # Panics
/// If a rating names a row that is not there.
pub fn sgd_block(users: &mut [f32], items: &mut [f32], ratings: Block<'_>, model: &Model, step: &Step) -> f64 {
    match ratings {
        Block::Near(ratings) => dispatch(Sgd { users, items, ratings, model, step }),
        Block::Wide(ratings) => dispatch(Sgd { users, items, ratings, model, step }),
    }
}

/// Adds to the gradients of items what one user's ratings contribute with the user's row as it is `now`, and takes off
/// what they contributed when they were last met, with the row as it was `before` and the errors of that time; keeps the
/// errors, and returns the sum of their squares.
///
/// A rating with the error `e` contributes `-e L(user)` to the gradient of its item. `items` and `gradients` are whole
/// rows of [`row_width`] floats, which the ratings index from zero; of the ratings' users nothing is read.
///
/// # Panics
/// If a rating names a row that is not there, or there are not as many errors as ratings.
pub fn gradient_block(
    [before, now]: [&[f32]; 2],
    (items, gradients): (&[f32], &mut [f32]),
    ratings: Block<'_>,
    errors: &mut [f32],
    model: &Model,
) -> f64 {
    match ratings {
        Block::Near(ratings) => dispatch(Gradient { before, now, items, gradients, ratings, errors, model }),
        Block::Wide(ratings) => dispatch(Gradient { before, now, items, gradients, ratings, errors, model }),
    }
}

/// The squared error of the predictions, cut to the range of `bounds`.
///
/// # Panics
/// If a rating names a row that is not there.
pub fn squared_error(users: &[f32], items: &[f32], ratings: Block<'_>, model: &Model, bounds: (f32, f32)) -> f64 {
    match ratings {
        Block::Near(ratings) => dispatch(SquaredError { users, items, ratings, model, bounds }),
        Block::Wide(ratings) => dispatch(SquaredError { users, items, ratings, model, bounds }),
    }
}

/// A loop over ratings, compiled once for each instruction set and common rank.
trait Loop {
    fn rank(&self) -> usize;

    /// `COLUMNS` is the number of factor columns, or zero if it is known at run time only.
    fn run<const COLUMNS: usize, V: Vector>(self) -> f64;
}

fn dispatch(work: impl Loop) -> f64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        #[target_feature(enable = "avx2,fma")]
        fn avx2(work: impl Loop) -> f64 {
            by_rank::<std::arch::x86_64::__m256>(work)
        }
        #[expect(unsafe_code, reason = "the call needs a promise that the features are there")]
        // SAFETY: both features were just detected.
        return unsafe { avx2(work) };
    }
    by_rank::<[f32; LANES]>(work)
}

#[inline(always)]
fn by_rank<V: Vector>(work: impl Loop) -> f64 {
    match factor_columns(work.rank()) {
        8 => work.run::<8, V>(),
        16 => work.run::<16, V>(),
        32 => work.run::<32, V>(),
        64 => work.run::<64, V>(),
        104 => work.run::<104, V>(),
        128 => work.run::<128, V>(),
        _ => work.run::<0, V>(),
    }
}

struct Sgd<'a, R> {
    users: &'a mut [f32],
    items: &'a mut [f32],
    ratings: R,
    model: &'a Model,
    step: &'a Step,
}

impl<R: Sequence> Loop for Sgd<'_, R> {
    fn rank(&self) -> usize {
        self.model.rank
    }

    #[inline(always)]
    fn run<const COLUMNS: usize, V: Vector>(self) -> f64 {
        match (self.model.biases, self.step.damping > 0.0) {
            (Biases::Without, false) => self.steps::<COLUMNS, false, false, V>(),
            (Biases::Without, true) => self.steps::<COLUMNS, false, true, V>(),
            (Biases::With, false) => self.steps::<COLUMNS, true, false, V>(),
            (Biases::With, true) => self.steps::<COLUMNS, true, true, V>(),
        }
    }
}

/// How many ratings ahead the rows are fetched.
const AHEAD: usize = 6;

impl<R: Sequence> Sgd<'_, R> {
    #[inline(always)]
    fn steps<const COLUMNS: usize, const BIASES: bool, const ADAPTIVE: bool, V: Vector>(self) -> f64 {
        let columns = if COLUMNS == 0 { factor_columns(self.model.rank) } else { COLUMNS };
        let (bias, seen, width) = (columns, columns + 1, columns + OTHER_COLUMNS);
        let Step { rate, damping, l2 } = *self.step;
        let mut total = 0.0;
        for index in 0..self.ratings.len() {
            let rating = self.ratings.get(index);
            if index + AHEAD < self.ratings.len() {
                let next = self.ratings.get(index + AHEAD);
                fetch(self.users.as_ptr().wrapping_add(next.user as usize * width), columns / 16 + 1);
                fetch(self.items.as_ptr().wrapping_add(next.item as usize * width), columns / 16 + 1);
            }
            let user = &mut self.users[rating.user as usize * width..][..width];
            let item = &mut self.items[rating.item as usize * width..][..width];
            let mut error = rating.value - self.model.mean - dot::<V>(&user[..columns], &item[..columns]);
            if BIASES {
                error -= user[bias] + item[bias];
            }
            let squared = error * error;
            total += f64::from(squared);
            let (mut user_rate, mut item_rate) = (rate, rate);
            if ADAPTIVE {
                user_rate /= (1.0 + damping * user[seen]).sqrt();
                item_rate /= (1.0 + damping * item[seen]).sqrt();
                user[seen] += squared;
                item[seen] += squared;
            }
            let (user_keep, item_keep) = (1.0 - user_rate * l2, 1.0 - item_rate * l2);
            let (user_gain, item_gain) = (user_rate * error, item_rate * error);
            if BIASES {
                user[bias] = user[bias] * user_keep + user_gain;
                item[bias] = item[bias] * item_keep + item_gain;
            }
            let user_groups = user[..columns].as_chunks_mut::<LANES>().0;
            let item_groups = item[..columns].as_chunks_mut::<LANES>().0;
            let (user_keep, item_keep) = (V::splat(user_keep), V::splat(item_keep));
            let (user_gain, item_gain) = (V::splat(user_gain), V::splat(item_gain));
            for (user, item) in user_groups.iter_mut().zip(item_groups) {
                let (old_user, old_item) = (V::load(user), V::load(item));
                old_item.multiply_add(user_gain, old_user.multiply(user_keep)).store(user);
                old_user.multiply_add(item_gain, old_item.multiply(item_keep)).store(item);
            }
        }
        total
    }
}

struct Gradient<'a, R> {
    before: &'a [f32],
    now: &'a [f32],
    items: &'a [f32],
    gradients: &'a mut [f32],
    ratings: R,
    errors: &'a mut [f32],
    model: &'a Model,
}

impl<R: Sequence> Loop for Gradient<'_, R> {
    fn rank(&self) -> usize {
        self.model.rank
    }

    #[inline(always)]
    fn run<const COLUMNS: usize, V: Vector>(self) -> f64 {
        let columns = if COLUMNS == 0 { factor_columns(self.model.rank) } else { COLUMNS };
        let (bias, width) = (columns, columns + OTHER_COLUMNS);
        let (before, now) = (&self.before[..width], &self.now[..width]);
        let errors = &mut self.errors[..self.ratings.len()];
        let mut total = 0.0;
        for (index, kept) in errors.iter_mut().enumerate() {
            let rating = self.ratings.get(index);
            let place = rating.item as usize * width;
            let (item, gradient) = (&self.items[place..][..width], &mut self.gradients[place..][..width]);
            let mut error = rating.value - self.model.mean - dot::<V>(&now[..columns], &item[..columns]);
            if self.model.biases == Biases::With {
                error -= now[bias] + item[bias];
                gradient[bias] += *kept - error;
            }
            total += f64::from(error * error);
            let (less, more) = (V::splat(*kept), V::splat(-error));
            let rows = before[..columns].as_chunks().0.iter().zip(now[..columns].as_chunks().0);
            for ((before, now), gradient) in rows.zip(gradient[..columns].as_chunks_mut().0) {
                let without = V::load(before).multiply_add(less, V::load(gradient));
                V::load(now).multiply_add(more, without).store(gradient);
            }
            *kept = error;
        }
        total
    }
}

struct SquaredError<'a, R> {
    users: &'a [f32],
    items: &'a [f32],
    ratings: R,
    model: &'a Model,
    bounds: (f32, f32),
}

impl<R: Sequence> Loop for SquaredError<'_, R> {
    fn rank(&self) -> usize {
        self.model.rank
    }

    #[inline(always)]
    fn run<const COLUMNS: usize, V: Vector>(self) -> f64 {
        let columns = if COLUMNS == 0 { factor_columns(self.model.rank) } else { COLUMNS };
        let width = row_width(self.model.rank);
        let mut total = 0.0;
        for rating in (0..self.ratings.len()).map(|index| self.ratings.get(index)) {
            let user = &self.users[rating.user as usize * width..][..width];
            let item = &self.items[rating.item as usize * width..][..width];
            let prediction =
                self.model.mean + user[columns] + item[columns] + dot::<V>(&user[..columns], &item[..columns]);
            let error = rating.value - prediction.max(self.bounds.0).min(self.bounds.1);
            total += f64::from(error * error);
        }
        total
    }
}

/// The product of two slices of the same length, a multiple of [`LANES`]; four sums run beside one another because an
/// addition takes four cycles.
#[inline(always)]
fn dot<V: Vector>(left: &[f32], right: &[f32]) -> f32 {
    let mut sums = [V::splat(0.0); 4];
    let (left_groups, right_groups) = (left.as_chunks::<LANES>().0, right.as_chunks::<LANES>().0);
    for (left, right) in left_groups.chunks(4).zip(right_groups.chunks(4)) {
        for ((left, right), sum) in left.iter().zip(right).zip(&mut sums) {
            *sum = V::load(left).multiply_add(V::load(right), *sum);
        }
    }
    sums[0].add(sums[1]).add(sums[2].add(sums[3])).sum()
}

/// [`LANES`] floats that are worked on together.
trait Vector: Copy {
    fn splat(value: f32) -> Self;
    fn load(from: &[f32; LANES]) -> Self;
    fn store(self, to: &mut [f32; LANES]);
    fn add(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
    fn multiply_add(self, factor: Self, addend: Self) -> Self;
    fn sum(self) -> f32;
}

impl Vector for [f32; LANES] {
    #[inline(always)]
    fn splat(value: f32) -> Self {
        [value; LANES]
    }

    #[inline(always)]
    fn load(from: &[f32; LANES]) -> Self {
        *from
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; LANES]) {
        *to = self;
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        std::array::from_fn(|lane| self[lane] + other[lane])
    }

    #[inline(always)]
    fn multiply(self, other: Self) -> Self {
        std::array::from_fn(|lane| self[lane] * other[lane])
    }

    #[inline(always)]
    fn multiply_add(self, factor: Self, addend: Self) -> Self {
        std::array::from_fn(|lane| self[lane] * factor[lane] + addend[lane])
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        let four: [f32; 4] = std::array::from_fn(|lane| self[lane] + self[lane + 4]);
        (four[0] + four[2]) + (four[1] + four[3])
    }
}

/// The same with AVX2. SAFETY of every call here: only [`dispatch`] chooses this type, after it has detected AVX2 and FMA,
/// and the pointers are those of references to [`LANES`] floats.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the instructions of AVX2 are behind a promise that the machine has them")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{LANES, Vector};

    impl Vector for __m256 {
        #[inline(always)]
        fn splat(value: f32) -> Self {
            unsafe { _mm256_set1_ps(value) }
        }

        #[inline(always)]
        fn load(from: &[f32; LANES]) -> Self {
            unsafe { _mm256_loadu_ps(from.as_ptr()) }
        }

        #[inline(always)]
        fn store(self, to: &mut [f32; LANES]) {
            unsafe { _mm256_storeu_ps(to.as_mut_ptr(), self) }
        }

        #[inline(always)]
        fn add(self, other: Self) -> Self {
            unsafe { _mm256_add_ps(self, other) }
        }

        #[inline(always)]
        fn multiply(self, other: Self) -> Self {
            unsafe { _mm256_mul_ps(self, other) }
        }

        #[inline(always)]
        fn multiply_add(self, factor: Self, addend: Self) -> Self {
            unsafe { _mm256_fmadd_ps(self, factor, addend) }
        }

        #[inline(always)]
        fn sum(self) -> f32 {
            unsafe {
                let four = _mm_add_ps(_mm256_castps256_ps128(self), _mm256_extractf128_ps::<1>(self));
                let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
                _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::{
        super::near::Stored,
        super::{Rating, initial, reference},
        *,
    };

    /// Random ratings of a few users and items with random rows.
    struct Case {
        ratings: Vec<Rating>,
        /// The same, packed.
        stored: Stored,
        model: Model,
        users: Vec<f32>,
        items: Vec<f32>,
    }

    impl Case {
        fn new(rank: usize, biases: Biases, seed: u64) -> Self {
            const ROWS: u32 = 20;
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let rating = |_| Rating {
                user: random.next_u32() % ROWS,
                item: random.next_u32() % ROWS,
                value: (random.next_u32() % 9) as f32 * 0.5 + 1.0,
            };
            let ratings: Vec<Rating> = (0..400).map(rating).collect();
            let stored = Stored::new(ratings.clone().into());
            assert!(matches!(stored, Stored::Near(..)));
            let rows = |seed| {
                let mut rows = vec![0.0; ROWS as usize * row_width(rank)];
                let init = initial(rank, 1.0, seed);
                rows.chunks_exact_mut(row_width(rank)).zip(0..).for_each(|(row, id)| init.fill(id, row));
                rows
            };
            let model = Model { rank, biases, mean: 3.0 };
            Self { ratings, stored, model, users: rows(seed), items: rows(!seed) }
        }
    }

    /// Compares with the reference, on a random block, the path chosen for this machine with packed ratings, or the
    /// `portable` one with others.
    fn check(rank: usize, biases: Biases, damping: f32, portable: bool, seed: u64) {
        let Case { ratings, stored, model, mut users, mut items } = Case::new(rank, biases, seed);
        let wide = &ratings[..];
        let step = Step { rate: 0.05, damping, l2: 0.04 };
        let (mut expected_users, mut expected_items) = (users.clone(), items.clone());
        let expected = reference::sgd_block(&mut expected_users, &mut expected_items, &ratings, &model, &step);
        let error = if portable {
            let work = Sgd { users: &mut users, items: &mut items, ratings: wide, model: &model, step: &step };
            by_rank::<[f32; LANES]>(work)
        } else {
            sgd_block(&mut users, &mut items, stored.block(0..400), &model, &step)
        };
        let case = format!("rank {rank}, {biases:?}, damping {damping}, portable {portable}, seed {seed}");
        assert!((error - expected).abs() < 1e-3 * expected, "{case}: {error} instead of {expected}");
        for (found, expected) in users.iter().chain(&items).zip(expected_users.iter().chain(&expected_items)) {
            assert!((found - expected).abs() < 1e-3 * (1.0 + expected.abs()), "{case}: {found} instead of {expected}");
        }
        let bounds = (2.5, 3.5);
        let expected = reference::squared_error(&users, &items, &ratings, &model, bounds);
        let error = if portable {
            by_rank::<[f32; LANES]>(SquaredError { users: &users, items: &items, ratings: wide, model: &model, bounds })
        } else {
            squared_error(&users, &items, stored.block(0..400), &model, bounds)
        };
        assert!((error - expected).abs() < 1e-3 * expected, "{case}: evaluated {error} instead of {expected}");
    }

    /// The same for gradients of the items that a user rated, once with errors kept from before.
    fn check_gradients(rank: usize, biases: Biases, portable: bool, seed: u64) {
        let Case { ratings, stored, model, users, items } = Case::new(rank, biases, seed);
        let (before, now) = users.split_at(row_width(rank));
        let mut gradients = vec![0.0; items.len()];
        let mut errors: Vec<f32> = ratings.iter().map(|rating| rating.value - 2.5).collect();
        let (mut expected_gradients, mut expected_errors) = (gradients.clone(), errors.clone());
        let expected = reference::gradient_block(
            [before, now],
            (&items, &mut expected_gradients),
            &ratings,
            &mut expected_errors,
            &model,
        );
        let rows = (&items[..], &mut gradients[..]);
        let error = if portable {
            let (items, gradients) = rows;
            let (ratings, errors, model) = (&ratings[..], &mut errors[..], &model);
            by_rank::<[f32; LANES]>(Gradient { before, now, items, gradients, ratings, errors, model })
        } else {
            gradient_block([before, now], rows, stored.block(0..400), &mut errors, &model)
        };
        let case = format!("rank {rank}, {biases:?}, portable {portable}, seed {seed}");
        assert!((error - expected).abs() < 1e-3 * expected, "{case}: {error} instead of {expected}");
        let wanted = expected_gradients.iter().chain(&expected_errors);
        for (found, expected) in gradients.iter().chain(&errors).zip(wanted) {
            assert!((found - expected).abs() < 1e-3 * (1.0 + expected.abs()), "{case}: {found} instead of {expected}");
        }
    }

    #[test]
    fn every_path_takes_the_gradients_of_the_reference() {
        for rank in 1..=130 {
            for biases in [Biases::Without, Biases::With] {
                check_gradients(rank, biases, false, rank as u64);
                check_gradients(rank, biases, true, rank as u64);
            }
        }
    }

    #[test]
    fn every_path_takes_the_steps_of_the_reference() {
        for rank in 1..=130 {
            for biases in [Biases::Without, Biases::With] {
                for damping in [0.0, 0.1] {
                    check(rank, biases, damping, false, rank as u64);
                    check(rank, biases, damping, true, rank as u64);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn a_rating_outside_the_rows_is_refused() {
        let model = Model { rank: 4, biases: Biases::With, mean: 0.0 };
        let (mut users, mut items) = (vec![0.0; row_width(4)], vec![0.0; row_width(4)]);
        let ratings = [Rating { user: 1, item: 0, value: 1.0 }];
        sgd_block(&mut users, &mut items, Block::Wide(&ratings), &model, &Step { rate: 0.1, damping: 0.0, l2: 0.0 });
    }
}
