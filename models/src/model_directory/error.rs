//! What can be wrong with the files of a model, each said in one sentence.

use std::io;
use std::path::PathBuf;

use safetensors::{Dtype, SafeTensorError};

use super::{CHECKSUMS, DESCRIPTION, VERSION};

/// Why a model could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A file or directory of the model cannot be written.
    #[error("{}: cannot be written: {source}", path.display())]
    Write {
        /// What was to be written.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Something that is not a model stands where the model was to go.
    #[error("{}: exists and is not a Hemiola model; expected a new path or an older model", path.display())]
    Occupied {
        /// Where the model was to go.
        path: PathBuf,
    },
    /// Another file is in the directory of the model that is to be replaced.
    #[error("{}: holds {name}, which is no part of the model there and would be lost; move it, or give another path", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The file.
        name: String,
    },
    /// A file of the model cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The directory holds no model.
    #[error("{}: is not a Hemiola model; expected a directory with a file {DESCRIPTION}", path.display())]
    NotAModel {
        /// The directory.
        path: PathBuf,
    },
    /// The model is of another version, or of another kind.
    #[error("{}: is version {version} of a model of kind '{kind}'; expected version {VERSION} of kind '{expected}'",
        path.display())]
    Unsupported {
        /// The description.
        path: PathBuf,
        /// The version it states.
        version: u64,
        /// The kind it states.
        kind: String,
        /// The kind that was to be read.
        expected: &'static str,
    },
    /// The description is not what this version writes.
    #[error("{}: is not a description of a model: {source}", path.display())]
    Description {
        /// The description.
        path: PathBuf,
        /// What the JSON reader said.
        source: serde_json::Error,
    },
    /// The range of ratings or their mean is none.
    #[error("{}: mean {mean} and range {low} to {high} are not those of ratings", path.display())]
    Range {
        /// The description.
        path: PathBuf,
        /// The mean it states.
        mean: f32,
        /// The smallest rating it states.
        low: f32,
        /// The largest rating it states.
        high: f32,
    },
    /// The description is not one of topics.
    #[error("{}: {topics} topics of {words} words with alpha {alpha} and beta {beta} are not those of a topic model",
        path.display())]
    Priors {
        /// The description.
        path: PathBuf,
        /// How many topics there are.
        topics: usize,
        /// How many words there are.
        words: usize,
        /// The first `alpha` that is not above zero, or the first.
        alpha: f32,
        /// The `beta` it states.
        beta: f32,
    },
    /// A tensor of counts holds a negative number.
    #[error("{}: {name} holds {value} at position {position}; expected counts of 0 or more", path.display())]
    Negative {
        /// The model.
        path: PathBuf,
        /// The tensor.
        name: &'static str,
        /// Where in the tensor.
        position: usize,
        /// What stands there.
        value: f32,
    },
    /// A file is not the one that was written.
    #[error("{}: does not match its checksum in {CHECKSUMS}; the file is damaged or was changed", path.display())]
    Checksum {
        /// The file.
        path: PathBuf,
    },
    /// The file of numbers is not in its format.
    #[error("{}: is not a safetensors file: {source}", path.display())]
    Tensors {
        /// The file.
        path: PathBuf,
        /// What the reader said.
        source: SafeTensorError,
    },
    /// A tensor does not agree with the description.
    #[error("{}: expected {name} to be F32 of shape {expected:?}, found {found_type} of shape {found:?}",
        path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: &'static str,
        /// The shape by the description.
        expected: Vec<usize>,
        /// The shape in the file.
        found: Vec<usize>,
        /// The type in the file.
        found_type: Dtype,
    },
    /// A tensor holds an infinity or something that is not a number.
    #[error("{}: {name} holds {value} at position {position}; expected finite numbers", path.display())]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: &'static str,
        /// Where in the tensor.
        position: usize,
        /// What stands there.
        value: f32,
    },
    /// A line of ids is not text, is escaped wrongly, or repeats an id.
    #[error("{}:{line}: expected an id in UTF-8 that no line before has", path.display())]
    Id {
        /// The file.
        path: PathBuf,
        /// The line's number, from 1.
        line: usize,
    },
    /// There are more or fewer ids than the description says.
    #[error("{}: expected {expected} ids, found {found}", path.display())]
    IdCount {
        /// The file.
        path: PathBuf,
        /// How many the description states.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// Filters of nothing.
    #[error("{}: states no filters; expected those of square patches", path.display())]
    NoFilters {
        /// The description.
        path: PathBuf,
    },
    /// A label is not the number of a class.
    #[error("{}: labels holds {value} at position {position}; expected a class below {classes}", path.display())]
    Label {
        /// The file.
        path: PathBuf,
        /// Where in the tensor.
        position: usize,
        /// What stands there.
        value: f32,
        /// How many classes there are.
        classes: usize,
    },
    /// A classifier has nothing to choose from.
    #[error("{}: states no classes; expected those of a classifier", path.display())]
    NoClasses {
        /// The description.
        path: PathBuf,
    },
}
