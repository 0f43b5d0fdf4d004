//! What can be wrong with a file of ratings, each said in one sentence.

use std::fmt;

use crate::NamesFull;
use crate::fields::OpenQuote;
pub use crate::fields::Separator;
use crate::line_blocks::LinesError;

/// Why ratings could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No file was named.
    #[error("no file of ratings was given")]
    NoFile,
    /// The file is not one of lines that can be read.
    #[error(transparent)]
    Lines(#[from] LinesError),
    /// The file has no line of ratings.
    #[error("{file}: holds no ratings; expected lines of user, item, rating")]
    Empty {
        /// The file as it was named.
        file: String,
    },
    /// A line is not as it should be.
    #[error("{file}:{line}: {problem}")]
    Line {
        /// The file as it was named.
        file: String,
        /// The line's number, from 1.
        line: u64,
        /// What is wrong with it.
        problem: LineProblem,
    },
}

/// What is wrong with one line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LineProblem {
    /// No known separator gives the first line a shape of ratings.
    #[error(
        "expected 3 or 4 columns (user, item, rating, time) \
         separated by ',', ';', a tab, '::' or white space"
    )]
    UnknownFormat,
    /// The header leaves open which column is which.
    #[error("the header names no {missing} column; expected names such as user, item, rating")]
    Header {
        /// The column that was looked for.
        missing: Column,
    },
    /// The line has more or fewer columns than the lines before.
    #[error("expected {expected} columns{} separated by {separator}, found {found}",
        column_names(*expected, *named))]
    Columns {
        /// How many columns the first lines have.
        expected: usize,
        /// Whether a header decides the columns' meaning.
        named: bool,
        /// What separates columns.
        separator: Separator,
        /// How many columns this line has.
        found: usize,
    },
    /// The line of a file of pairs lacks the item.
    #[error("expected 2 or more columns (user, item) separated by ',', ';', a tab, '::' or white space")]
    Pair,
    /// A quoted field is not closed on its line, or text follows the closing quote.
    #[error(transparent)]
    Quote(#[from] OpenQuote),
    /// The rating is not a number, is infinite, or is not within single precision.
    #[error("expected a finite number as rating, found '{found}'")]
    Rating {
        /// The field, shortened.
        found: String,
    },
    /// An id is missing.
    #[error("the {column} is empty; expected an id")]
    EmptyId {
        /// Which id.
        column: Column,
    },
    /// An id is not text.
    #[error("the {column} is not UTF-8 text; expected a text file of ratings")]
    BinaryId {
        /// Which id.
        column: Column,
    },
    /// There is no number left for another id.
    #[error("too many {column}s: {source}")]
    TooMany {
        /// Which ids.
        column: Column,
        /// Which limit it is.
        source: NamesFull,
    },
}

/// A column that every file of ratings has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Who rated.
    User,
    /// What was rated.
    Item,
    /// The rating itself.
    Rating,
}

impl fmt::Display for Column {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Column::User => "user",
            Column::Item => "item",
            Column::Rating => "rating",
        })
    }
}

fn column_names(expected: usize, named: bool) -> &'static str {
    match (named, expected) {
        (true, _) => " as in the header",
        (false, 4) => " (user, item, rating, time)",
        (false, _) => " (user, item, rating)",
    }
}
