//! Draws filters as a picture of tiles, each as bright and dark as it can be.
//!
//! A filter's mean is left out: the patches that it is for have none, so it makes no difference to them.

use crate::outputs;
use anyhow::{Result, anyhow};
use std::path::Path;

/// Pixels of the picture that a side of a tile has at least.
const TILE: usize = 40;
/// Pixels between two tiles.
const GAP: usize = 2;
/// Where nothing is drawn.
const BACKGROUND: u8 = 255;

/// Checks that a picture's file name says png.
///
/// # Errors
/// If it says something else.
pub(crate) fn check_extension(path: &Path) -> Result<()> {
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("png")) {
        return Ok(());
    }
    Err(crate::failure::usage(format!("--picture {}: expected a name that ends in .png", path.display())))
}

/// Writes square filters of `side` numbers a side, one after the other, as a grey png; zero is mid-grey.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write(path: &Path, filters: &[f32], side: usize) -> Result<()> {
    let (picture, width) = draw(filters, side);
    let height = picture.len() / width;
    let (width, height) = (u32::try_from(width), u32::try_from(height));
    let (Ok(width), Ok(height)) = (width, height) else {
        return Err(anyhow!("{}: so many filters make too large a picture", path.display()));
    };
    outputs::write_whole(path, |file| {
        let mut encoder = png::Encoder::new(file, width, height);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.write_header()?.write_image_data(&picture).map_err(std::io::Error::from)
    })
}

/// The picture's pixels, and how many a row has.
fn draw(filters: &[f32], side: usize) -> (Vec<u8>, usize) {
    let count = filters.len() / (side * side);
    let across = (count as f64).sqrt().ceil() as usize;
    let zoom = TILE.div_ceil(side);
    let pitch = side * zoom + GAP;
    let (width, height) = (across * pitch + GAP, count.div_ceil(across) * pitch + GAP);
    let mut picture = vec![BACKGROUND; width * height];
    for (at, filter) in filters.chunks_exact(side * side).enumerate() {
        let mean = filter.iter().sum::<f32>() / filter.len() as f32;
        let greatest = filter.iter().fold(f32::MIN_POSITIVE, |greatest, number| greatest.max((number - mean).abs()));
        let (left, top) = (at % across * pitch + GAP, at / across * pitch + GAP);
        for y in 0..side * zoom {
            for x in 0..side * zoom {
                let number = (filter[y / zoom * side + x / zoom] - mean) / greatest;
                picture[(top + y) * width + left + x] = (127.5 + 127.5 * number).round() as u8;
            }
        }
    }
    (picture, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_lie_row_by_row_and_are_as_bright_as_they_can_be() {
        let (picture, width) = draw(&[0.0, 1.5, -2.0, 0.5, 4.0, 0.0, 0.0, 0.0], 2);
        let (zoom, pitch) = (TILE / 2, TILE + GAP);
        assert_eq!(width, 2 * pitch + GAP);
        let at = |tile: usize, x: usize, y: usize| picture[(GAP + y * zoom) * width + tile * pitch + GAP + x * zoom];
        assert_eq!([at(0, 0, 0), at(0, 1, 0), at(0, 0, 1), at(0, 1, 1)], [128, 223, 0, 159]);
        assert_eq!([at(1, 0, 0), at(1, 1, 1)], [255, 85]);
        assert_eq!(picture[0], BACKGROUND);
    }
}
