//! Files that a command will write: found unwritable before the work, and written whole or not at all after it.

use crate::interrupt;
use anyhow::{Error, Result, anyhow, bail};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Checks that a file can be written to `path`, without changing what is there.
///
/// # Errors
/// If it cannot.
pub(crate) fn check_writable(path: &Path) -> Result<()> {
    check_parent(path)?;
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => bail!("{}: is a directory; expected the name of a file", path.display()),
        Ok(_) => OpenOptions::new().append(true).open(path).map(drop),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Partial::create(path).map(drop),
        Err(error) => Err(error),
    }
    .map_err(|error| unwritable(path, error))
}

/// Checks that there is a directory for what will be written to `path`.
///
/// # Errors
/// If there is none.
pub(crate) fn check_parent(path: &Path) -> Result<()> {
    let parent = parent(path);
    if !parent.is_dir() {
        bail!("{}: cannot be written: there is no directory {}", path.display(), parent.display());
    }
    Ok(())
}

/// Checks that no output is also an input or another output; each comes with what the user calls it.
///
/// # Errors
/// If one is.
pub(crate) fn check_distinct(inputs: &[(&str, &Path)], outputs: &[(&str, &Path)]) -> Result<()> {
    for (position, (name, output)) in outputs.iter().enumerate() {
        let mut others = inputs.iter().chain(&outputs[..position]);
        if let Some((other, _)) = others.find(|(_, path)| place(path).is_some() && place(path) == place(output)) {
            let output = output.display();
            return Err(crate::failure::usage(format!("{name} {output} would overwrite {other}; give another name")));
        }
    }
    Ok(())
}

/// Checks that one output does not lie in another, which replaces all that was there.
///
/// # Errors
/// If it does.
pub(crate) fn check_outside((name, output): (&str, &Path), (other, replaced): (&str, &Path)) -> Result<()> {
    match (place(output), place(replaced)) {
        (Some(inner), Some(outer)) if inner.starts_with(&outer) => {
            let (output, replaced) = (output.display(), replaced.display());
            Err(crate::failure::usage(format!(
                "{name} {output} would be lost to {other} {replaced}; give another name"
            )))
        }
        _ => Ok(()),
    }
}

/// Writes a file, whole or not at all; an older one is replaced. What is no file, such as a device, is written to.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write_whole(path: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let write = || {
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            let mut device = BufWriter::new(OpenOptions::new().write(true).open(path)?);
            content(&mut device)?;
            return device.flush();
        }
        let partial = Partial::create(path)?;
        let mut file = BufWriter::with_capacity(1 << 18, &partial.file);
        content(&mut file)?;
        file.flush()?;
        fs::rename(&partial.path, path)
    };
    write().map_err(|error| unwritable(path, error))
}

/// The sentence for a file that cannot be written.
pub(crate) fn unwritable(path: &Path, error: io::Error) -> Error {
    anyhow!("{}: cannot be written: {error}", path.display())
}

/// A file under construction beside its final place; it goes when this is dropped, unless it was renamed.
struct Partial {
    path: PathBuf,
    file: File,
}

impl Partial {
    fn create(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
        let path = parent(path).join(format!(".{name}.partial-{}", std::process::id()));
        let file = File::create(&path)?;
        interrupt::begin(&path);
        Ok(Self { file, path })
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Nothing is left to remove once the file was renamed, and nobody is left to tell when the removal fails.
        fs::remove_file(&self.path).unwrap_or_default();
        interrupt::end(&self.path);
    }
}

/// The directory that a path is in.
pub(crate) fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Where a path leads, whether or not there is a file yet.
fn place(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok().or_else(|| Some(fs::canonicalize(parent(path)).ok()?.join(path.file_name()?)))
}
