//! Grey images, from png files and from MNIST's idx.

use crate::examples::{ExamplesError, ImageFile};
use crate::line_blocks::Blocks;
use std::io::Cursor;
use std::path::Path;

/// What messages call the content of a file.
const EXPECTED: &str = "images";
const PNG_MARK: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
/// A png may not be larger than this, packed or unpacked.
const PNG_BYTES_MAX: usize = 1 << 30;

/// A grey image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Pixels of a row.
    pub width: usize,
    /// Rows of pixels, one after the other, from black to white.
    pub pixels: Vec<u8>,
}

/// Why images could not be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum ImagesError {
    #[error(transparent)]
    Idx(#[from] ExamplesError),
    #[error("{file}: holds images of {dimensions} dimensions; expected two, rows and columns")]
    Dimensions { file: String, dimensions: usize },
    #[error("{file}: is not a png image that can be read: {reason}")]
    Png { file: String, reason: String },
}

impl Image {
    /// Rows of pixels.
    #[must_use]
    pub fn height(&self) -> usize {
        self.pixels.len() / self.width
    }

    /// Reads the images of files, each a png or many images as idx, which may be compressed by gzip.
    ///
    /// # Errors
    /// If a file is neither, or damaged.
    pub fn read(paths: &[impl AsRef<Path>]) -> Result<Vec<Self>, ImagesError> {
        let mut images = Vec::new();
        for path in paths {
            let mut blocks = Blocks::open(path.as_ref(), EXPECTED, 0).map_err(ExamplesError::from)?;
            if blocks.peek().map_err(ExamplesError::from)?.starts_with(&PNG_MARK) {
                images.push(read_png(blocks)?);
            } else {
                read_idx(blocks, &mut images)?;
            }
        }
        Ok(images)
    }
}

fn read_idx(blocks: Blocks, images: &mut Vec<Image>) -> Result<(), ImagesError> {
    let mut file = ImageFile::open(blocks)?;
    let &[_, width] = file.shape.as_slice() else {
        return Err(ImagesError::Dimensions { dimensions: file.shape.len(), file: file.name() });
    };
    for _ in 0..file.count {
        let mut pixels = vec![0; file.size];
        file.read(&mut pixels)?;
        images.push(Image { width: width as usize, pixels });
    }
    Ok(file.end()?)
}

/// Colours become grey as in ITU-R 601; transparency is ignored.
fn read_png(mut blocks: Blocks) -> Result<Image, ImagesError> {
    let file = blocks.file.clone();
    let wrong = |reason: String| ImagesError::Png { file: file.clone(), reason };
    let mut bytes = Vec::new();
    loop {
        let start = bytes.len();
        if start > PNG_BYTES_MAX {
            return Err(wrong(format!("it is larger than {PNG_BYTES_MAX} bytes")));
        }
        bytes.resize(start + (256 << 10), 0);
        let read = blocks.read_bytes(&mut bytes[start..]).map_err(ExamplesError::from)?;
        bytes.truncate(start + read);
        if read == 0 {
            break;
        }
    }
    let limits = png::Limits { bytes: PNG_BYTES_MAX };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let mut reader = decoder.read_info().map_err(|error| wrong(error.to_string()))?;
    let size = reader.output_buffer_size().filter(|size| *size <= PNG_BYTES_MAX);
    let mut numbers = vec![0; size.ok_or_else(|| wrong("it is too large".to_owned()))?];
    let info = reader.next_frame(&mut numbers).map_err(|error| wrong(error.to_string()))?;
    let channels = info.color_type.samples();
    let grey = |pixel: &[u8]| match pixel {
        [r, g, b, ..] => {
            let sum = 299 * u32::from(*r) + 587 * u32::from(*g) + 114 * u32::from(*b);
            ((sum + 500) / 1000) as u8
        }
        _ => pixel[0],
    };
    let pixels = numbers[..info.buffer_size()].chunks_exact(channels).map(grey).collect();
    Ok(Image { width: info.width as usize, pixels })
}
