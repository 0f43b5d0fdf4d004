//! Small squares of images, and the change of coordinates in which their pixels are uncorrelated.

use crate::images::Image;
use crate::matrix::{Matrix, eigen};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The most pixels of a patch, so that their covariances can be taken apart in reasonable time.
pub const PIXELS_MAX: usize = 32 * 32;

/// Square patches of images with values from 0 to 1, less each patch's own mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Patches {
    /// Pixels of a side.
    pub side: usize,
    /// Patches one after the other, each row by row.
    pub numbers: Vec<f32>,
}

/// Why there are no patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum PatchesError {
    #[error("no image is as large as a patch of {side} x {side} pixels; take smaller patches, or larger images")]
    TooSmall { side: usize },
    #[error("all patches are of a single colour; there is nothing to learn from them")]
    Flat,
}

impl Patches {
    /// Draws `count` patches, each place of each image as likely as any other.
    ///
    /// # Errors
    /// If no image is large enough, or there is nothing in them.
    pub fn draw(images: &[Image], side: usize, count: usize, seed: u64) -> Result<Self, PatchesError> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let places = |image: &Image| (image.width + 1).saturating_sub(side) * (image.height() + 1).saturating_sub(side);
        let total: usize = images.iter().map(places).sum();
        if total == 0 {
            return Err(PatchesError::TooSmall { side });
        }
        let mut numbers = Vec::with_capacity(count * side * side);
        for _ in 0..count {
            let mut place = (random.next_u64() % total as u64) as usize;
            let large = images.iter().find(|image| {
                let inside = place < places(image);
                place -= if inside { 0 } else { places(image) };
                inside
            });
            let image = large.expect("a place in one of the images");
            let across = image.width + 1 - side;
            let (top, left) = (place / across, place % across);
            let begin = numbers.len();
            for row in top..top + side {
                let pixels = &image.pixels[row * image.width + left..][..side];
                numbers.extend(pixels.iter().map(|pixel| f32::from(*pixel) / 255.0));
            }
            let patch = &mut numbers[begin..];
            let mean = patch.iter().sum::<f32>() / patch.len() as f32;
            patch.iter_mut().for_each(|pixel| *pixel -= mean);
        }
        if numbers.iter().all(|number| number.abs() < 1e-6) {
            return Err(PatchesError::Flat);
        }
        Ok(Self { side, numbers })
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.numbers.len() / (self.side * self.side)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }
}

/// A symmetric matrix that makes the pixels of patches uncorrelated and equally large, and changes them least.
#[derive(Clone, Debug, PartialEq)]
pub struct Whitening {
    /// Row by row, with a row for each pixel.
    pub matrix: Vec<f32>,
}

/// Directions of less than this part of the mean variance are noise, and are not made as large as the others.
const NOISE: f64 = 0.1;

impl Whitening {
    /// What makes these patches white.
    #[must_use]
    pub fn of(patches: &Patches) -> Self {
        let size = patches.side * patches.side;
        let count = patches.len() as f64;
        let mut products = vec![0.0; size * size];
        let rows = Matrix::rows_of(&patches.numbers, size);
        rows.transposed().times(rows, 0.0, &mut products);
        let covariance = products.iter().map(|product| f64::from(*product) / count).collect();
        let (variances, directions) = eigen(covariance, size);
        let noise = NOISE * variances.iter().sum::<f64>() / size as f64;
        let mut matrix = vec![0.0; size * size];
        for (variance, direction) in variances.iter().zip(directions.chunks_exact(size)) {
            let factor = 1.0 / (variance.max(0.0) + noise).sqrt();
            for (row, ours) in matrix.chunks_exact_mut(size).zip(direction) {
                row.iter_mut().zip(direction).for_each(|(entry, theirs)| *entry += (factor * ours * theirs) as f32);
            }
        }
        Self { matrix }
    }

    /// The patches in white coordinates, one after the other.
    ///
    /// # Panics
    /// If the patches have another size.
    #[must_use]
    pub fn apply(&self, patches: &Patches) -> Vec<f32> {
        let size = patches.side * patches.side;
        let mut white = vec![0.0; patches.numbers.len()];
        Matrix::rows_of(&patches.numbers, size).times(Matrix::rows_of(&self.matrix, size), 0.0, &mut white);
        white
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image of waves, which are correlated from pixel to pixel.
    fn waves(width: usize, height: usize) -> Image {
        let value = |at: usize| {
            let (x, y) = ((at % width) as f64, (at / width) as f64);
            127.0 + 60.0 * (0.7 * x + 0.3 * y).sin() + 50.0 * (0.2 * x - 0.45 * y + (0.05 * x * y).cos()).sin()
        };
        Image { width, pixels: (0..width * height).map(|at| value(at) as u8).collect() }
    }

    #[test]
    fn patches_lie_within_their_images_and_have_no_mean() {
        let images = [waves(9, 5), waves(3, 40), waves(20, 20)];
        let patches = Patches::draw(&images, 5, 300, 3).expect("two images are large enough");
        assert_eq!(patches.len(), 300);
        for patch in patches.numbers.chunks(25) {
            assert!(patch.iter().sum::<f32>().abs() < 1e-4);
        }
        assert_eq!(Patches::draw(&images, 5, 300, 3), Ok(patches));
        assert_eq!(Patches::draw(&images[1..2], 5, 1, 3), Err(PatchesError::TooSmall { side: 5 }));
        let flat = Image { width: 8, pixels: vec![7; 64] };
        assert_eq!(Patches::draw(&[flat], 5, 10, 3), Err(PatchesError::Flat));
    }

    #[test]
    fn white_patches_are_uncorrelated_where_there_is_more_than_noise() {
        let patches = Patches::draw(&[waves(200, 200)], 4, 5000, 1).expect("large enough");
        let white = Whitening::of(&patches).apply(&patches);
        let covariance = |i: usize, j: usize| {
            white.chunks(16).map(|patch| f64::from(patch[i] * patch[j])).sum::<f64>() / patches.len() as f64
        };
        let (values, _) = eigen((0..256).map(|at| covariance(at / 16, at % 16)).collect(), 16);
        let greatest = values.iter().copied().fold(0.0, f64::max);
        assert!((0.8..=1.0).contains(&greatest), "{values:?}");
    }
}
