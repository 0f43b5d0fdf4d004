//! Random rounding of errors: the small ones of an example become a few larger ones, with the same mean.
//!
//! Where there are many classes nearly all errors of an example's probabilities are tiny, and yet each is a number to send
//! and, for every feature of the example, a product in every replica. Here an error `e` below the unit `T` becomes `T`, with
//! its sign, with probability `|e|/T`, and nothing otherwise. Its mean is `e` and its variance at most `T |e|`. The errors
//! of an example add up to at most 2, so at most `2/T + 1` of them are left, however many classes there are.
//!
//! One draw is enough for an example: small errors lie end to end, each as long as it is large, marks are `T` apart from the
//! first, which is drawn, and an error stays that a mark falls on (systematic sampling).

use super::kernel::LANES;
use crate::generate::Random;
use hemiola::factors::Factor;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Rounds the errors of one example after the other.
pub(super) struct Rounding {
    unit: f32,
    random: Random,
    places: Vec<u32>,
    numbers: Vec<f32>,
}

impl Rounding {
    /// To units of this size, which is above 0 and at most 1.
    pub(super) fn new(unit: f32, seed: u64) -> Self {
        let random = Random(Xoshiro256PlusPlus::seed_from_u64(seed));
        Self { unit, random, places: Vec::new(), numbers: Vec::new() }
    }

    /// How many errors of an example are left before anything is learnt, when all but one are small and add up to 1.
    pub(super) fn left_of(unit: f32, classes: usize) -> usize {
        classes.min(1 + (1.0 / unit).ceil() as usize)
    }

    /// The errors of an example, rounded.
    pub(super) fn round(&mut self, errors: &[f32]) -> Factor<'_> {
        let Self { unit, random, places, numbers } = self;
        places.clear();
        numbers.clear();
        // How far the next mark is.
        let mut left = random.uniform() * f64::from(*unit);
        for (group, errors) in errors.chunks(LANES).enumerate() {
            let sum: f32 = errors.iter().map(|error| error.abs()).sum();
            // What is not a number is not small. A group below the next mark has none on it, and, since that is no
            // farther than a unit, nothing of a unit's size.
            if f64::from(sum) < left {
                left -= f64::from(sum);
                continue;
            }
            for (place, &error) in (group * LANES..).zip(errors) {
                let size = f64::from(error.abs());
                let kept = if size < f64::from(*unit) {
                    let marked = left <= size;
                    left += if marked { f64::from(*unit) } else { 0.0 } - size;
                    marked.then(|| unit.copysign(error))
                } else {
                    Some(error)
                };
                if let Some(kept) = kept {
                    places.push(place as u32);
                    numbers.push(kept);
                }
            }
        }
        Factor::Sparse(places, numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Errors of an example of class 3: what is missing there is what the others have.
    fn errors(classes: usize) -> Vec<f32> {
        let mut errors: Vec<f32> = (0..classes).map(|class| 1.0 / (1.0 + class as f32)).collect();
        let sum: f32 = errors.iter().sum();
        errors.iter_mut().for_each(|error| *error *= 0.9 / sum);
        errors[3] -= 0.9;
        errors
    }

    fn rounded(rounding: &mut Rounding, errors: &[f32]) -> Vec<(u32, f32)> {
        let Factor::Sparse(places, numbers) = rounding.round(errors) else { unreachable!("it is sparse") };
        places.iter().copied().zip(numbers.iter().copied()).collect()
    }

    #[test]
    fn no_error_changes_on_average_and_few_are_left() {
        const ROUNDS: usize = 20_000;
        let errors = errors(100);
        for unit in [0.05, 0.3, 1.0] {
            let mut rounding = Rounding::new(unit, 1);
            let mut sums = vec![0.0; errors.len()];
            for _ in 0..ROUNDS {
                let left = rounded(&mut rounding, &errors);
                assert!(left.len() as f32 <= 2.0 / unit + 1.0, "{} left with {unit}", left.len());
                assert!(left.windows(2).all(|pair| pair[0].0 < pair[1].0));
                left.iter().for_each(|&(place, number)| sums[place as usize] += f64::from(number));
            }
            for (sum, &error) in sums.iter().zip(&errors) {
                let (mean, error) = (sum / ROUNDS as f64, f64::from(error));
                let off = 5.0 * (f64::from(unit) * error.abs() / ROUNDS as f64).sqrt();
                assert!((mean - error).abs() <= off, "{mean} for {error} with {unit}");
            }
        }
    }

    #[test]
    fn large_errors_stay_as_they_are_and_nothing_comes_of_nothing() {
        let mut rounding = Rounding::new(0.25, 1);
        let errors = [0.0, 0.25, 0.0, -0.75, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5];
        for _ in 0..100 {
            assert_eq!(rounded(&mut rounding, &errors), [(1, 0.25), (3, -0.75), (9, 0.5)]);
            assert_eq!(rounded(&mut rounding, &[0.0; 20]), []);
            let unclear = rounded(&mut rounding, &[0.0, f32::NAN, 0.0]);
            assert!(unclear.len() == 1 && unclear[0].1.is_nan());
        }
    }
}
