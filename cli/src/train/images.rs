//! The options of models that are learnt from patches of images: which patches, and a picture of what was learnt.

use super::job::Job;
use crate::{numbers, outputs, tiles};
use anyhow::Result;
use clap::Args;
use hemiola_models::images::Image;
use hemiola_models::patches::Patches;
use std::path::{Path, PathBuf};

/// Patches of images.
#[derive(Args)]
pub(super) struct PatchOptions {
    /// Files of images
    #[arg(required = true, value_name = "DATA")]
    pub(super) data: Vec<PathBuf>,
    /// Pixels of a patch's side
    #[arg(long, value_name = "SIDE", value_parser = numbers::patch_side, default_value = "8", allow_negative_numbers = true)]
    pub(super) patch: usize,
    /// Patches to draw, of which a tenth is held out
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "100000", allow_negative_numbers = true)]
    pub(super) patches: u32,
}

impl PatchOptions {
    /// The files that are read.
    pub(super) fn inputs(&self) -> Vec<(&'static str, &Path)> {
        self.data.iter().map(|path| ("DATA", path.as_path())).collect()
    }

    /// Reads the images and draws patches from them; how many images there were.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) fn read(&self, seed: u64) -> Result<(Patches, usize)> {
        let images = Image::read(&self.data)?;
        Ok((Patches::draw(&images, self.patch, self.patches as usize, seed)?, images.len()))
    }
}

/// A picture of what was learnt.
#[derive(Args)]
pub(super) struct PictureOption {
    /// Draw what was learnt as tiles into a .png
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) picture: Option<PathBuf>,
}

impl PictureOption {
    /// Finds out before the work what would go wrong with the picture or anything else after it.
    ///
    /// # Errors
    /// If files that are read and written contradict one another or cannot be written.
    pub(super) fn check<'a>(&self, job: &'a Job, mut inputs: Vec<(&'static str, &'a Path)>) -> Result<()> {
        job.check(&inputs)?;
        let Some(path) = &self.picture else { return Ok(()) };
        tiles::check_extension(path)?;
        inputs.push(("--out", &job.out));
        inputs.extend(job.report.iter().map(|path| ("--report", path.as_path())));
        inputs.extend(job.plot.iter().map(|path| ("--plot", path.as_path())));
        outputs::check_distinct(&inputs, &[("--picture", path)])?;
        outputs::check_writable(path)
    }

    /// Draws them, if asked to, as tiles of so many pixels' side.
    ///
    /// # Errors
    /// If the picture cannot be written.
    pub(super) fn draw(&self, numbers: &[f32], side: usize) -> Result<()> {
        self.picture.as_ref().map_or(Ok(()), |path| tiles::write(path, numbers, side))
    }
}
