//! What can be wrong with a file of examples, each said in one sentence.

use crate::{LinesError, OpenQuote, Separator};

/// Why examples could not be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum ExamplesError {
    #[error("no file of examples was given")]
    NoFile,
    #[error(transparent)]
    Lines(#[from] LinesError),
    #[error("{file}: holds no examples; expected lines of a label and features, or idx images")]
    Empty { file: String },
    #[error("{file}:{line}: {problem}")]
    Line { file: String, line: u64, problem: ExampleProblem },
    #[error("{file}: holds no index:value in any line; expected lines of 'label index:value ...'")]
    NoPairs { file: String },
    #[error("{file}: has no columns, so one for the label has no effect; leave it out")]
    NoColumns { file: String },
    #[error("{file}: has labels in its lines, so a file of labels has no effect; leave it out")]
    LabelsWithin { file: String },
    #[error("a file of labels is of one file of images, and there are {files}; name one")]
    LabelsOfOne { files: usize },
    #[error("{file}: holds images, which are only read whole; expected lines of examples where memory is limited")]
    Whole { file: String },
    #[error("what was read cannot be put by: {0}")]
    Sink(std::io::Error),
    #[error("{file}: {problem}")]
    Idx { file: String, problem: IdxProblem },
}

/// What is wrong with one line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum ExampleProblem {
    #[error("expected a label before the features, found '{found}'")]
    NoLabel { found: String },
    #[error("the label is empty; expected the name of a class")]
    EmptyLabel,
    #[error("the label is not UTF-8 text; expected a text file of examples")]
    BinaryLabel,
    #[error("class '{class}' does not occur in what was trained on")]
    UnknownClass { class: String },
    #[error("more than {CLASSES_MAX} classes are not supported; is the label in another column?")]
    TooManyClasses,
    #[error("more than {EXAMPLES_MAX} examples are not supported")]
    TooManyExamples,
    #[error("expected index:value, found '{found}'")]
    Pair { found: String },
    #[error("expected 'label index:value ...', found columns: '{found}'")]
    NotPairs { found: String },
    #[error("queries to rank (qid) are not supported; expected features only")]
    Query,
    #[error("expected a feature index below {FEATURES_MAX}, found '{found}'")]
    Index { found: String },
    #[error("feature {index} comes after feature {before}; expected ascending indices")]
    Order { index: u32, before: u32 },
    #[error("expected a finite number as value of feature {index}, found '{found}'")]
    Value { index: u32, found: String },
    #[error("expected a finite number in column {column}, found '{found}'")]
    Number { column: usize, found: String },
    #[error("expected a whole number or nothing in column {column}, found '{found}'")]
    Whole { column: usize, found: String },
    #[error("the label of Criteo's format is in column 1; expected that or none")]
    CriteoLabel,
    #[error("expected a label and features, separated by ',', ';', a tab or white space, or as index:value")]
    UnknownFormat,
    #[error("expected {expected} columns separated by {separator}, found {found}")]
    Columns { expected: usize, separator: Separator, found: usize },
    #[error("the line has {found} features; expected {expected}, as the files before have")]
    OtherFeatures { expected: usize, found: usize },
    #[error(
        "column {column} is called '{found}'; expected '{expected}', as features must have the same names and order in \
         every file"
    )]
    OtherName { column: usize, found: String, expected: String },
    #[error("more than {FEATURES_MAX} columns are not supported")]
    TooManyColumns,
    #[error("no column is called '{name}'; expected its name in the first line")]
    NoSuchColumn { name: String },
    #[error("there is no column {position} for the label to be in; expected a number between 1 and {columns}")]
    NoSuchPosition { position: usize, columns: usize },
    #[error(transparent)]
    Quote(#[from] OpenQuote),
}

/// What is wrong with a file in MNIST's format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum IdxProblem {
    #[error("starts with the bytes {:02x} {:02x} {:02x} {:02x}; expected 00 00 08 and two dimensions or more, the mark of idx images", found[0], found[1], found[2], found[3])]
    NotImages { found: [u8; 4] },
    #[error("starts with the bytes {:02x} {:02x} {:02x} {:02x}; expected 00 00 08 01, the mark of idx labels", found[0], found[1], found[2], found[3])]
    NotLabels { found: [u8; 4] },
    #[error("holds idx labels; name the file of their images")]
    Labels,
    #[error("the labels of these images are looked for in '{expected}', which is not there; name their file")]
    NoLabels { expected: String },
    #[error("where the labels of these images are cannot be told from the name; name their file")]
    UnknownLabels,
    #[error("the gzip data end too early; the file is incomplete")]
    TruncatedGzip,
    #[error("the gzip data are damaged: {reason}")]
    DamagedGzip { reason: String },
    #[error("ends within its header; the file is incomplete")]
    Header,
    #[error("announces examples of {size} numbers; expected between 1 and {FEATURES_MAX}")]
    Size { size: u128 },
    #[error("announces examples of {found} numbers; expected {expected}, as the files before have")]
    OtherSize { expected: usize, found: usize },
    #[error("announces {count} examples; more than {EXAMPLES_MAX} are not supported")]
    Count { count: u64 },
    #[error("ends after {found} of the {expected} examples that it announces; the file is incomplete")]
    Short { expected: u64, found: u64 },
    #[error("goes on after the {expected} examples that it announces; the file is damaged")]
    Long { expected: u64 },
    #[error("holds {labels} labels for {images} images; expected one for each")]
    Counts { images: u64, labels: u64 },
}

/// Features are numbered below this: few enough that their weights fit into memory, whatever a file says.
pub const FEATURES_MAX: usize = 1 << 24;
/// Classes are numbered below this.
pub const CLASSES_MAX: usize = 1 << 16;
/// Examples are numbered by `u32`.
pub const EXAMPLES_MAX: usize = u32::MAX as usize;
