//! A model of any kind as a directory of files that other tools open.
//!
//! A safetensors file holds the numbers, `model.json` the description, text files one name a line (with `\\`, `\n`
//! and `\r` written for a backslash and line ends), and `checksums.txt` the CRC-32 of each of them.

mod error;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;

pub use error::ModelError;
use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{Dtype, SafeTensors};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Names;

const FORMAT: &str = "hemiola-model";
const VERSION: u32 = 1;
const DESCRIPTION: &str = "model.json";
const CHECKSUMS: &str = "checksums.txt";

/// The part of a description that any version and any kind of model has.
#[derive(Deserialize)]
struct Stamp {
    format: String,
    version: u64,
    kind: String,
}

/// A description as it is written, behind its stamp.
#[derive(Serialize)]
struct Stamped<'m, D> {
    format: &'static str,
    version: u32,
    kind: &'static str,
    #[serde(flatten)]
    description: &'m D,
}

/// Numbers of a model, row by row.
pub(crate) struct Tensor<'m> {
    pub(crate) name: &'static str,
    pub(crate) shape: Vec<usize>,
    pub(crate) numbers: &'m [f32],
}

/// What is in the directory of a model.
pub(crate) struct Contents<'m, D> {
    pub(crate) kind: &'static str,
    /// Must be serialised as a map.
    pub(crate) description: &'m D,
    /// The name of the file that holds the tensors.
    pub(crate) tensor_file: &'static str,
    pub(crate) tensors: Vec<Tensor<'m>>,
    /// Files of names.
    pub(crate) names: Vec<(&'static str, &'m Names)>,
}

impl<D: Serialize> Contents<'_, D> {
    /// Writes the model, whole or not at all; an older model at `path` is replaced.
    ///
    /// # Panics
    /// If the numbers of a tensor do not fit its shape.
    pub(crate) fn save(&self, path: &Path) -> Result<(), ModelError> {
        // A model that diverged is of no use to anyone.
        self.tensors.iter().try_for_each(|tensor| check_finite(path, tensor.name, tensor.numbers))?;
        let failed = |source| ModelError::Write { path: path.to_owned(), source };
        let older = older_model(path)?;
        let target = older.as_deref().unwrap_or(path);
        let partial = Beside::create(target, "partial").map_err(failed)?;
        self.write_files(&partial.path, path)?;
        sync_directory(&partial.path).map_err(failed)?;
        match &older {
            Some(older) => replace(older, &partial.path).map_err(failed)?,
            None => fs::rename(&partial.path, target).map_err(failed)?,
        }
        sync_directory(&parent(target)).map_err(failed)
    }

    /// Writes all files into `directory`; errors name the file as it would be in `path`.
    fn write_files(&self, directory: &Path, path: &Path) -> Result<(), ModelError> {
        let mut checksums = String::new();
        let mut write = |name: &str, content: &dyn Fn(&mut dyn Write) -> io::Result<()>| {
            let checksum = write_file(&directory.join(name), content)
                .map_err(|source| ModelError::Write { path: path.join(name), source })?;
            checksums.push_str(&format!("{checksum:08x}  {name}\n"));
            Ok(())
        };
        write(self.tensor_file, &|file| write_tensors(&self.tensors, file))?;
        for (name, names) in &self.names {
            write(name, &|file| write_names(names, file))?;
        }
        let stamped = Stamped { format: FORMAT, version: VERSION, kind: self.kind, description: self.description };
        write(DESCRIPTION, &|file| {
            serde_json::to_writer_pretty(&mut *file, &stamped)?;
            file.write_all(b"\n")
        })?;
        write_file(&directory.join(CHECKSUMS), &|file| file.write_all(checksums.as_bytes()))
            .map_err(|source| ModelError::Write { path: path.join(CHECKSUMS), source })?;
        Ok(())
    }
}

/// Checks that a model can be written to `path`, so that nobody trains for hours to hear that it cannot.
///
/// # Errors
/// What writing it would say.
pub fn check_target(path: &Path) -> Result<(), ModelError> {
    let older = older_model(path)?;
    let target = older.as_deref().unwrap_or(path);
    match Beside::create(target, "partial") {
        Ok(_) => Ok(()),
        Err(source) => Err(ModelError::Write { path: path.to_owned(), source }),
    }
}

/// The kind of the model at `path`, such as `mf`; nothing else of it is looked at.
///
/// # Errors
/// If there is no model.
pub fn kind_of(path: &Path) -> Result<String, ModelError> {
    let (_, stamp) = read_stamp(path)?;
    Ok(stamp.kind)
}

/// The text of a description and its stamp.
fn read_stamp(path: &Path) -> Result<(Vec<u8>, Stamp), ModelError> {
    let file = path.join(DESCRIPTION);
    if !file.exists() {
        return Err(ModelError::NotAModel { path: path.to_owned() });
    }
    let text = read(&file)?;
    let stamp: Stamp =
        serde_json::from_slice(&text).map_err(|source| ModelError::Description { path: file, source })?;
    if stamp.format != FORMAT {
        return Err(ModelError::NotAModel { path: path.to_owned() });
    }
    Ok((text, stamp))
}

/// A model's directory while it is read: every file is checked against its checksum.
pub(crate) struct ModelDirectory {
    path: PathBuf,
    checksums: Vec<u8>,
}

impl ModelDirectory {
    /// Opens a model of one kind and reads its description.
    pub(crate) fn open<D: DeserializeOwned>(path: &Path, kind: &'static str) -> Result<(Self, D), ModelError> {
        let (text, stamp) = read_stamp(path)?;
        let file = path.join(DESCRIPTION);
        if stamp.version != u64::from(VERSION) || stamp.kind != kind {
            let (version, found) = (stamp.version, stamp.kind);
            return Err(ModelError::Unsupported { path: file, version, kind: found, expected: kind });
        }
        let checksums = read(&path.join(CHECKSUMS))?;
        verify(&file, &text, &checksums)?;
        let description =
            serde_json::from_slice(&text).map_err(|source| ModelError::Description { path: file, source })?;
        Ok((Self { path: path.to_owned(), checksums }, description))
    }

    /// The file of the description, for errors about what it states.
    pub(crate) fn description_file(&self) -> PathBuf {
        self.path.join(DESCRIPTION)
    }

    /// Reads a file of names, of which the description states how many there are.
    pub(crate) fn names(&self, file: &str, expected: usize) -> Result<Names, ModelError> {
        read_names(&self.path.join(file), expected, &self.checksums)
    }

    /// Reads the tensors of these names and shapes, in their order.
    pub(crate) fn tensors(
        &self,
        file: &str,
        expected: &[(&'static str, &[usize])],
    ) -> Result<Vec<Vec<f32>>, ModelError> {
        let path = self.path.join(file);
        let bytes = read(&path)?;
        verify(&path, &bytes, &self.checksums)?;
        let tensors =
            SafeTensors::deserialize(&bytes).map_err(|source| ModelError::Tensors { path: path.clone(), source })?;
        expected.iter().map(|(name, shape)| read_tensor(&path, &tensors, name, shape)).collect()
    }
}

fn write_tensors(tensors: &[Tensor<'_>], file: &mut dyn Write) -> io::Result<()> {
    let mut start = 0;
    let mut infos = Vec::new();
    for Tensor { name, shape, numbers } in tensors {
        assert_eq!(shape.iter().product::<usize>(), numbers.len(), "{name} fits its shape");
        let end = start + size_of_val(*numbers);
        let info = TensorInfo { dtype: Dtype::F32, shape: shape.clone(), data_offsets: (start, end) };
        infos.push(((*name).to_owned(), info));
        start = end;
    }
    let metadata = Metadata::new(None, infos).map_err(io::Error::other)?;
    let mut header = serde_json::to_vec(&metadata)?;
    header.resize(header.len().next_multiple_of(8), b' ');
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(&header)?;
    tensors.iter().try_for_each(|tensor| file.write_all(bytemuck::cast_slice(tensor.numbers)))
}

/// The model that stands where another is to go, if there is one.
fn older_model(path: &Path) -> Result<Option<PathBuf>, ModelError> {
    let failed = |source| ModelError::Write { path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(failed(source)),
        Ok(_) if is_model(path) => match foreign(path).map_err(failed)? {
            Some(name) => Err(ModelError::Foreign { path: path.to_owned(), name }),
            None => fs::canonicalize(path).map(Some).map_err(failed),
        },
        Ok(_) => Err(ModelError::Occupied { path: path.to_owned() }),
    }
}

/// A file beside those of the model at `path`, if there is one: it would go with them.
fn foreign(path: &Path) -> io::Result<Option<String>> {
    let checksums = fs::read_to_string(path.join(CHECKSUMS)).unwrap_or_default();
    let own = checksums.lines().filter_map(|line| Some(line.split_once("  ")?.1)).chain([DESCRIPTION, CHECKSUMS]);
    let own: Vec<&str> = own.collect();
    let names = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    let names = names.collect::<io::Result<Vec<String>>>()?;
    Ok(names.into_iter().find(|name| !own.contains(&name.as_str())))
}

/// A directory under construction or on its way out beside a model; it goes when this is dropped.
struct Beside {
    path: PathBuf,
}

impl Beside {
    fn create(model: &Path, purpose: &str) -> io::Result<Self> {
        let name = model.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
        let mut attempt = 0;
        loop {
            let path = parent(model).join(format!(".{name}.{purpose}-{}-{attempt}", process::id()));
            match fs::create_dir(&path) {
                Err(taken) if taken.kind() == io::ErrorKind::AlreadyExists => attempt += 1,
                result => return result.map(|()| Self { path }),
            }
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // Nothing is left to remove once the directory was renamed to its final place, and nobody
        // is left to tell when the removal itself fails.
        fs::remove_dir_all(&self.path).unwrap_or_default();
    }
}

/// Puts `partial` in the place of an older model, or leaves the older one there.
fn replace(older: &Path, partial: &Path) -> io::Result<()> {
    let old = Beside::create(older, "old")?;
    fs::rename(older, &old.path)?;
    let Err(failure) = fs::rename(partial, older) else {
        return Ok(());
    };
    if fs::rename(&old.path, older).is_err() {
        // The older model is all there is, if under another name: it must not be removed.
        std::mem::forget(old);
    }
    Err(failure)
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn is_model(path: &Path) -> bool {
    let text = fs::read(path.join(DESCRIPTION)).unwrap_or_default();
    serde_json::from_slice::<Stamp>(&text).is_ok_and(|stamp| stamp.format == FORMAT)
}

fn read(path: &Path) -> Result<Vec<u8>, ModelError> {
    fs::read(path).map_err(|source| ModelError::Read { path: path.to_owned(), source })
}

/// Writes a file to the disk and returns its checksum.
fn write_file(path: &Path, content: &dyn Fn(&mut dyn Write) -> io::Result<()>) -> io::Result<u32> {
    let file = File::create_new(path)?;
    let mut writer = Summed { inner: BufWriter::with_capacity(1 << 20, &file), sum: crc32fast::Hasher::new() };
    content(&mut writer)?;
    writer.inner.flush()?;
    file.sync_all()?;
    Ok(writer.sum.finalize())
}

/// Sums up what is written.
struct Summed<W> {
    inner: W,
    sum: crc32fast::Hasher,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.sum.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Checks a file's bytes against the line of `checksums` that ends with its name.
fn verify(path: &Path, bytes: &[u8], checksums: &[u8]) -> Result<(), ModelError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let line = format!("{:08x}  {name}", crc32fast::hash(bytes));
    if checksums.split(|byte| *byte == b'\n').any(|found| found == line.as_bytes()) {
        return Ok(());
    }
    Err(ModelError::Checksum { path: path.to_owned() })
}

fn write_names(names: &Names, file: &mut dyn Write) -> io::Result<()> {
    for name in names.iter() {
        let mut rest = name;
        while let Some(position) = rest.find(['\\', '\n', '\r']) {
            let escaped = match rest.as_bytes()[position] {
                b'\\' => "\\\\",
                b'\n' => "\\n",
                _ => "\\r",
            };
            file.write_all(&rest.as_bytes()[..position])?;
            file.write_all(escaped.as_bytes())?;
            rest = &rest[position + 1..];
        }
        file.write_all(rest.as_bytes())?;
        file.write_all(b"\n")?;
    }
    Ok(())
}

fn read_names(path: &Path, expected: usize, checksums: &[u8]) -> Result<Names, ModelError> {
    let bytes = read(path)?;
    verify(path, &bytes, checksums)?;
    let mut names = Names::default();
    for (position, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let name = line.strip_suffix(b"\n").and_then(unescape);
        let number = name.and_then(|name| names.intern(&name).ok());
        if number.is_none_or(|number| number as usize != position) {
            return Err(ModelError::Id { path: path.to_owned(), line: position + 1 });
        }
    }
    if names.len() != expected {
        return Err(ModelError::IdCount { path: path.to_owned(), expected, found: names.len() });
    }
    Ok(names)
}

fn unescape(line: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(line).ok()?;
    let mut name = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        name.push(match character {
            '\\' => match characters.next()? {
                '\\' => '\\',
                'n' => '\n',
                'r' => '\r',
                _ => return None,
            },
            other => other,
        });
    }
    Some(name)
}

fn read_tensor(
    path: &Path,
    tensors: &SafeTensors<'_>,
    name: &'static str,
    expected: &[usize],
) -> Result<Vec<f32>, ModelError> {
    let path = path.to_owned();
    let tensor = match tensors.tensor(name) {
        Ok(tensor) => tensor,
        Err(source) => return Err(ModelError::Tensors { path, source }),
    };
    if tensor.dtype() != Dtype::F32 || tensor.shape() != expected {
        let (expected, found) = (expected.to_vec(), tensor.shape().to_vec());
        return Err(ModelError::Shape { path, name, expected, found, found_type: tensor.dtype() });
    }
    let (words, _) = tensor.data().as_chunks::<4>();
    let numbers: Vec<f32> = words.iter().map(|word| f32::from_le_bytes(*word)).collect();
    check_finite(&path, name, &numbers)?;
    Ok(numbers)
}

fn check_finite(path: &Path, name: &'static str, numbers: &[f32]) -> Result<(), ModelError> {
    match numbers.iter().position(|number| !number.is_finite()) {
        Some(position) => {
            let (path, value) = (path.to_owned(), numbers[position]);
            Err(ModelError::NotFinite { path, name, position, value })
        }
        None => Ok(()),
    }
}
