//! Images deformed at random, smoothly and a little, as handwriting differs: a small set of labelled images enlarged.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Random;
use crate::examples::{ExamplesError, read_labels};
use crate::images::{Image, ImagesError};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// What to make of labelled images: as many times as many, of which the first are those given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deformations {
    /// How many times as many images there will be.
    pub times: u32,
    /// The standard deviation of how far a point moves, in pixels.
    pub pixels: f32,
    /// The same seed gives the same images.
    pub seed: u64,
}

/// Why images could not be deformed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum DeformError {
    #[error(transparent)]
    Images(#[from] ImagesError),
    #[error(transparent)]
    Labels(#[from] ExamplesError),
    #[error("{file}: holds images of different sizes; expected one size")]
    Sizes { file: String },
    #[error("{times} times {images} images are more than an idx file counts, which is {}", u32::MAX)]
    TooMany { times: u32, images: usize },
}

/// Points that move by themselves, in each direction; all between follow smoothly.
const GRID: usize = 5;

/// Labelled images, and what is to be made of them.
pub struct Deformer {
    images: Vec<Image>,
    labels: Vec<u8>,
    what: Deformations,
}

impl Deformer {
    /// Reads images as idx, and their labels from the file named, or else from that beside them.
    ///
    /// # Errors
    /// If they cannot be read, or would become too many.
    pub fn read(images: &Path, labels: Option<PathBuf>, what: Deformations) -> Result<Self, DeformError> {
        let file = images.display().to_string();
        let read = Image::read(&[images])?;
        let labels = read_labels(labels, images, read.len() as u64)?;
        if read.windows(2).any(|pair| (pair[0].width, pair[0].height()) != (pair[1].width, pair[1].height())) {
            return Err(DeformError::Sizes { file });
        }
        if read.len() as u64 * u64::from(what.times) > u64::from(u32::MAX) {
            return Err(DeformError::TooMany { times: what.times, images: read.len() });
        }
        Ok(Self { images: read, labels, what })
    }

    /// Writes all images as idx.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write_images(&self, output: &mut dyn Write) -> io::Result<()> {
        let (width, height) = self.images.first().map_or((0, 0), |image| (image.width, image.height()));
        let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(self.what.seed));
        output.write_all(&[0, 0, 8, 3])?;
        for length in [self.count(), height as u32, width as u32] {
            output.write_all(&length.to_be_bytes())?;
        }
        for time in 0..self.what.times {
            for image in &self.images {
                match time {
                    0 => output.write_all(&image.pixels)?,
                    _ => output.write_all(&deformed(image, self.what.pixels, &mut random))?,
                }
            }
        }
        Ok(())
    }

    /// Writes the labels of all images as idx.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write_labels(&self, output: &mut dyn Write) -> io::Result<()> {
        output.write_all(&[0, 0, 8, 1])?;
        output.write_all(&self.count().to_be_bytes())?;
        (0..self.what.times).try_for_each(|_| output.write_all(&self.labels))
    }

    fn count(&self) -> u32 {
        self.images.len() as u32 * self.what.times
    }
}

/// One image with every point of a coarse grid moved at random, and the pixels between by a mean of their four
/// neighbours there.
fn deformed(image: &Image, pixels: f32, random: &mut Random) -> Vec<u8> {
    let (width, height) = (image.width, image.height());
    let moves: [[(f32, f32); GRID]; GRID] =
        std::array::from_fn(|_| std::array::from_fn(|_| (pixels * random.normal(), pixels * random.normal())));
    // Where a pixel lies on the grid: the point before it, and how far behind that it is.
    let on_grid = |position: usize, length: usize| {
        let place = position as f32 / length.max(2).saturating_sub(1) as f32 * (GRID - 1) as f32;
        let before = (place as usize).min(GRID - 2);
        (before, place - before as f32)
    };
    let mut out = Vec::with_capacity(image.pixels.len());
    for y in 0..height {
        let (row, down) = on_grid(y, height);
        for x in 0..width {
            let (column, right) = on_grid(x, width);
            let between = |part: fn((f32, f32)) -> f32| {
                let along = |row: &[(f32, f32); GRID]| mix(part(row[column]), part(row[column + 1]), right);
                mix(along(&moves[row]), along(&moves[row + 1]), down)
            };
            let brightness = brightness(image, x as f32 + between(|(x, _)| x), y as f32 + between(|(_, y)| y));
            out.push(brightness.round() as u8);
        }
    }
    out
}

fn mix(one: f32, other: f32, share: f32) -> f32 {
    one + (other - one) * share
}

/// The brightness at a point between pixels; outside of the image it is dark.
fn brightness(image: &Image, x: f32, y: f32) -> f32 {
    let (left, top) = (x.floor(), y.floor());
    let pixel = |x: f32, y: f32| {
        let inside = x >= 0.0 && y >= 0.0 && x < image.width as f32 && y < image.height() as f32;
        if inside { f32::from(image.pixels[y as usize * image.width + x as usize]) } else { 0.0 }
    };
    let along = |y: f32| mix(pixel(left, y), pixel(left + 1.0, y), x - left);
    mix(along(top), along(top + 1.0), y - top)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::{Examples, Options};

    /// Images with a bright square in the middle, with their labels beside them.
    fn written(folder: &Path) -> PathBuf {
        let path = folder.join("two-images-idx3-ubyte");
        let square = |x: usize| if (8..20).contains(&(x % 28)) && (8..20).contains(&(x / 28)) { 200 } else { 0 };
        let pixels: Vec<u8> = (0..2 * 784).map(|pixel| square(pixel % 784)).collect();
        let head = [0u8, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28];
        std::fs::write(&path, [&head[..], &pixels].concat()).unwrap();
        std::fs::write(folder.join("two-labels-idx1-ubyte"), [0, 0, 8, 1, 0, 0, 0, 2, 7, 3]).unwrap();
        path
    }

    #[test]
    fn copies_differ_a_little_and_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let images = written(folder.path());
        let what = Deformations { times: 4, pixels: 1.0, seed: 3 };
        let deformer = Deformer::read(&images, None, what).unwrap();
        let out = folder.path().join("more-images-idx3-ubyte");
        let (mut bytes, mut again, mut labels) = (Vec::new(), Vec::new(), Vec::new());
        deformer.write_images(&mut bytes).unwrap();
        deformer.write_images(&mut again).unwrap();
        assert_eq!(bytes, again, "one seed gives one set");
        deformer.write_labels(&mut labels).unwrap();
        std::fs::write(&out, &bytes).unwrap();
        std::fs::write(folder.path().join("more-labels-idx1-ubyte"), labels).unwrap();
        let examples = Examples::read(&[&out], &Options::default()).unwrap();
        assert_eq!((examples.len(), examples.features()), (8, 784));
        let made = Image::read(&[&out]).unwrap();
        let light = |image: &Image| image.pixels.iter().map(|pixel| f64::from(*pixel)).sum::<f64>();
        for (number, image) in made.iter().enumerate() {
            assert_eq!(image.pixels == made[0].pixels, number < 2, "only the first are as they were");
            let changed = (light(image) / light(&made[0]) - 1.0).abs();
            assert!(changed < 0.35, "image {number} has {changed} more or less light");
        }
    }

    #[test]
    fn nothing_moves_without_pixels_to_move_by() {
        let folder = tempfile::tempdir().unwrap();
        let image = Image::read(&[written(folder.path())]).unwrap().remove(0);
        let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(1));
        assert_eq!(deformed(&image, 0.0, &mut random), image.pixels);
    }
}
