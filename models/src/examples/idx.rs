//! MNIST's format: images in one file, their labels in another; pixels become numbers from 0 to 1.

use std::path::{Path, PathBuf};

use super::EXPECTED;
use super::error::{EXAMPLES_MAX, ExamplesError, FEATURES_MAX, IdxProblem};
use super::read::{LINE_LIMIT, Labels, Reader};
use crate::LinesError;
use crate::line_blocks::Blocks;

/// Zeros, and the type of the numbers: unsigned bytes, the only one that images come in.
const MARK: [u8; 3] = [0, 0, 8];

/// A file of images, one after the other.
pub(crate) struct ImageFile {
    blocks: Blocks,
    /// How many images the file announces.
    pub(crate) count: u64,
    /// The lengths of an image's dimensions.
    pub(crate) shape: Vec<u32>,
    /// Pixels of an image.
    pub(crate) size: usize,
    /// How many images have been read.
    found: u64,
}

impl ImageFile {
    pub(crate) fn open(mut blocks: Blocks) -> Result<Self, ExamplesError> {
        let file = blocks.file.clone();
        let wrong = |problem| ExamplesError::Idx { file: file.clone(), problem };
        let mark = four_bytes(&mut blocks)?;
        if mark[..3] != MARK || mark[3] == 0 {
            return Err(wrong(IdxProblem::NotImages { found: mark }));
        }
        if mark[3] == 1 {
            return Err(wrong(IdxProblem::Labels));
        }
        let count = u64::from(length(&mut blocks)?);
        let shape: Vec<u32> = (1..mark[3]).map(|_| length(&mut blocks)).collect::<Result<_, _>>()?;
        let size = shape.iter().fold(1u128, |size, length| size.saturating_mul(u128::from(*length)));
        if !(1..=FEATURES_MAX as u128).contains(&size) {
            return Err(wrong(IdxProblem::Size { size }));
        }
        Ok(Self { blocks, count, shape, size: size as usize, found: 0 })
    }

    /// The file as messages name it.
    pub(crate) fn name(&self) -> String {
        self.blocks.file.clone()
    }

    fn wrong(&self, problem: IdxProblem) -> ExamplesError {
        ExamplesError::Idx { file: self.name(), problem }
    }

    /// Reads the next image.
    pub(crate) fn read(&mut self, image: &mut [u8]) -> Result<(), ExamplesError> {
        if fill(&mut self.blocks, image)? < image.len() {
            return Err(self.wrong(IdxProblem::Short { expected: self.count, found: self.found }));
        }
        self.found += 1;
        Ok(())
    }

    /// Checks that nothing follows the last image.
    pub(crate) fn end(mut self) -> Result<(), ExamplesError> {
        if fill(&mut self.blocks, &mut [0])? > 0 {
            return Err(self.wrong(IdxProblem::Long { expected: self.count }));
        }
        Ok(())
    }
}

pub(super) fn read(reader: &mut Reader<'_>, blocks: Blocks, path: &Path) -> Result<(), ExamplesError> {
    let mut images = ImageFile::open(blocks)?;
    let (file, count) = (images.name(), images.count);
    if reader.examples.len() as u64 + count > EXAMPLES_MAX as u64 {
        return Err(images.wrong(IdxProblem::Count { count }));
    }
    let found = images.size;
    if let Some(expected) = reader.examples.fixed_features().filter(|&expected| expected != found) {
        return Err(images.wrong(IdxProblem::OtherSize { expected, found }));
    }
    let mut labels = match reader.labels {
        Labels::Ignore => None,
        _ => Some(open_labels(reader.options.labels_file.clone(), path, &file, count)?),
    };
    let mut image = vec![0; images.size];
    for found in 0..count {
        images.read(&mut image)?;
        let mut label = [0];
        if let Some(source) = &mut labels
            && fill(source, &mut label)? == 0
        {
            let problem = IdxProblem::Short { expected: count, found };
            return Err(ExamplesError::Idx { file: source.file.clone(), problem });
        }
        let class = reader.label(label[0].to_string().as_bytes());
        let class = class.map_err(|problem| ExamplesError::Line { file: file.clone(), line: found + 1, problem })?;
        for (feature, &pixel) in (0..).zip(&image).filter(|(_, pixel)| **pixel != 0) {
            reader.examples.add_entry(feature, f32::from(pixel) / 255.0);
        }
        reader.examples.fix_features(image.len());
        reader.examples.end(class);
    }
    images.end()?;
    labels.map_or(Ok(()), |source| labels_end(source, count))
}

/// Reads the labels of `count` images, from the file named or else from that beside them.
pub(crate) fn read_labels(named: Option<PathBuf>, images: &Path, count: u64) -> Result<Vec<u8>, ExamplesError> {
    let mut source = open_labels(named, images, &images.display().to_string(), count)?;
    let mut labels = vec![0; count as usize];
    let found = fill(&mut source, &mut labels)? as u64;
    if found < count {
        return Err(ExamplesError::Idx { file: source.file, problem: IdxProblem::Short { expected: count, found } });
    }
    labels_end(source, count)?;
    Ok(labels)
}

/// Checks that nothing follows the last label.
fn labels_end(mut source: Blocks, expected: u64) -> Result<(), ExamplesError> {
    if fill(&mut source, &mut [0])? > 0 {
        return Err(ExamplesError::Idx { file: source.file, problem: IdxProblem::Long { expected } });
    }
    Ok(())
}

/// Opens the labels of `images`, of which there must be `count`.
fn open_labels(named: Option<PathBuf>, images: &Path, file: &str, count: u64) -> Result<Blocks, ExamplesError> {
    let path = match named {
        Some(path) => path,
        None => {
            let beside = labels_beside(images).ok_or(IdxProblem::UnknownLabels);
            let found = beside.and_then(|path| {
                let expected = path.display().to_string();
                if path.exists() { Ok(path) } else { Err(IdxProblem::NoLabels { expected }) }
            });
            found.map_err(|problem| ExamplesError::Idx { file: file.to_owned(), problem })?
        }
    };
    let mut source = Blocks::open(&path, EXPECTED, LINE_LIMIT)?;
    let file = source.file.clone();
    let wrong = |problem| ExamplesError::Idx { file: file.clone(), problem };
    let mark = four_bytes(&mut source)?;
    if mark != [MARK[0], MARK[1], MARK[2], 1] {
        return Err(wrong(IdxProblem::NotLabels { found: mark }));
    }
    let labels = u64::from(length(&mut source)?);
    if labels != count {
        return Err(wrong(IdxProblem::Counts { images: count, labels }));
    }
    Ok(source)
}

/// Where the labels of a file of images usually are, if that can be told from its name.
#[must_use]
pub fn labels_beside(images: &Path) -> Option<PathBuf> {
    let name = images.file_name()?.to_str()?;
    let labels = name.replace("images", "labels").replace("idx3", "idx1");
    (labels != name).then(|| images.with_file_name(labels))
}

/// Reads as [`Blocks::read_bytes`] does; what is wrong with compressed data is said without lines.
fn fill(blocks: &mut Blocks, out: &mut [u8]) -> Result<usize, ExamplesError> {
    let file = blocks.file.clone();
    blocks.read_bytes(out).map_err(|error| match error {
        LinesError::TruncatedGzip { .. } => ExamplesError::Idx { file, problem: IdxProblem::TruncatedGzip },
        LinesError::DamagedGzip { source, .. } => {
            ExamplesError::Idx { file, problem: IdxProblem::DamagedGzip { reason: source.to_string() } }
        }
        error => error.into(),
    })
}

fn four_bytes(blocks: &mut Blocks) -> Result<[u8; 4], ExamplesError> {
    let mut four = [0; 4];
    if fill(blocks, &mut four)? < four.len() {
        return Err(ExamplesError::Idx { file: blocks.file.clone(), problem: IdxProblem::Header });
    }
    Ok(four)
}

fn length(blocks: &mut Blocks) -> Result<u32, ExamplesError> {
    four_bytes(blocks).map(u32::from_be_bytes)
}
