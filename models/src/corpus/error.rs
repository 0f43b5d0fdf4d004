//! What can be wrong with the files of a corpus, each said in one sentence.

use super::Format;
use super::read::{COUNT_LIMIT, EMPTY_LIMIT};
use crate::{LinesError, NamesFull};

/// Why a corpus could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// No file was named.
    #[error("no file of documents was given")]
    NoFile,
    /// The file is not one of lines that can be read.
    #[error(transparent)]
    Lines(#[from] LinesError),
    /// The file has no document with a word.
    #[error("{file}: holds no words; expected text with one document a line, UCI bag-of-words or lda-c")]
    Empty {
        /// The file as it was named.
        file: String,
    },
    /// A vocabulary or list of stop words without a word.
    #[error("{file}: holds no words; expected one word a line")]
    NoWords {
        /// The file as it was named.
        file: String,
    },
    /// A vocabulary was given for documents that do not number their words.
    #[error("{file}: is text, whose words are written out, so a list of words has no effect; leave it out")]
    WrittenOut {
        /// The file as it was named.
        file: String,
    },
    /// Files that are to be one corpus write their documents in different ways.
    #[error("{file}: is {format}, and {first} is {first_format}; expected files of one format")]
    Formats {
        /// The file that differs, as it was named.
        file: String,
        /// Its format.
        format: Format,
        /// The first file as it was named.
        first: String,
        /// The first file's format.
        first_format: Format,
    },
    /// Documents that number their words without a list of them, where words are known that are not numbers.
    #[error(
        "{file}: is {format}, whose words are numbers, and those that are known are not; expected a list of its words"
    )]
    Unlisted {
        /// The file as it was named.
        file: String,
        /// Its format.
        format: Format,
    },
    /// None of the words is in the vocabulary that was to be used.
    #[error("{file}: holds none of the {known} words that are known; expected documents with the same vocabulary")]
    NothingKnown {
        /// The file as it was named.
        file: String,
        /// How many words there are to know.
        known: usize,
    },
    /// All words were left out.
    #[error("{file}: none of its {words} words is left by the limits on stop words and document frequency; widen them")]
    NothingLeft {
        /// The first file as it was named.
        file: String,
        /// How many there were.
        words: usize,
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
    /// A header line does not state a number.
    #[error("expected the number of {what} alone on a line of the header, found '{found}'")]
    Header {
        /// What the line counts.
        what: &'static str,
        /// The line, shortened.
        found: String,
    },
    /// A header line states more than can be numbered.
    #[error("the header states {stated} {what}; expected less than {}", u32::MAX)]
    TooMany {
        /// What the line counts.
        what: &'static str,
        /// How many that are.
        stated: u64,
    },
    /// The file ends within its header.
    #[error("the header ends before the number of {what}; expected lines for documents, words and entries")]
    ShortHeader {
        /// What the missing line counts.
        what: &'static str,
    },
    /// Header and vocabulary differ.
    #[error("the header states {stated} words and the vocabulary has {found}; expected the same number")]
    VocabularyLength {
        /// Words by the header.
        stated: u64,
        /// Words of the vocabulary.
        found: usize,
    },
    /// There are more or fewer entries than the header says.
    #[error("the header states {stated} entries and the file has {found}; the file is incomplete or damaged")]
    Entries {
        /// Entries by the header.
        stated: u64,
        /// Entries found.
        found: u64,
    },
    /// An entry does not have three columns.
    #[error("expected 3 whole numbers (document, word, count) separated by blanks, found '{found}'")]
    Entry {
        /// The line, shortened.
        found: String,
    },
    /// A number is beyond what the header states.
    #[error("{what} {found} is beyond the header; expected a number between 1 and {most}")]
    Beyond {
        /// What it numbers.
        what: &'static str,
        /// The number.
        found: u64,
        /// The greatest that would be right.
        most: u64,
    },
    /// A document comes after a later one.
    #[error("document {found} comes behind document {before}; expected documents in ascending order")]
    Order {
        /// The document.
        found: u64,
        /// The one before it.
        before: u64,
    },
    /// A count is none.
    #[error("expected a count between 1 and {COUNT_LIMIT}, found '{found}'")]
    Count {
        /// The field, shortened.
        found: String,
    },
    /// A line of lda-c does not start with a number.
    #[error("expected the number of distinct words at the start of the line, found '{found}'")]
    Distinct {
        /// The field, shortened.
        found: String,
    },
    /// A field of lda-c is not a pair.
    #[error("expected pairs of word:count, both whole numbers, found '{found}'")]
    Pair {
        /// The field, shortened.
        found: String,
    },
    /// A line of lda-c has more or fewer pairs than it says.
    #[error("the line states {stated} distinct words and has {found} pairs of word:count")]
    Pairs {
        /// Pairs by the first number.
        stated: u64,
        /// Pairs found.
        found: u64,
    },
    /// A document has a word of lda-c or UCI bag-of-words twice.
    #[error("word {word} was in this document before; expected each word of a document once, with its count")]
    Again {
        /// The word's number in the file.
        word: u64,
    },
    /// A word of lda-c is not in the vocabulary.
    #[error("word {found} is not in the vocabulary of {words} words; expected a number below {words}")]
    NotInVocabulary {
        /// The word's number.
        found: u64,
        /// The length of the vocabulary.
        words: usize,
    },
    /// The line is not text.
    #[error("the line is not UTF-8 text; expected a text file")]
    Binary,
    /// A line of a vocabulary has no word.
    #[error("the line is blank; expected one word a line")]
    Blank,
    /// A word of a vocabulary was there before.
    #[error("the word '{word}' stands on line {line}, too; expected each word once")]
    Twice {
        /// The word, shortened.
        word: String,
        /// Where it stood first.
        line: u64,
    },
    /// A line of a list of words has several.
    #[error("expected one word a line, found '{found}'")]
    Several {
        /// The line, shortened.
        found: String,
    },
    /// A word of a vocabulary for text is none that text is cut into.
    #[error("'{found}' is not one word of text, letters and digits with a letter among them; expected one word a line")]
    NotInText {
        /// The line, shortened.
        found: String,
    },
    /// Too many documents have no words to be a real corpus.
    #[error("more than {EMPTY_LIMIT} documents have no words; expected documents with words")]
    EmptyDocuments,
    /// The corpus is larger than was to be read.
    #[error("the documents have more than {limit} words together, which is not supported; give fewer documents")]
    TooManyTokens {
        /// The most that was to be read.
        limit: usize,
    },
    /// There is no number left for another word.
    #[error("too many words: {0}")]
    TooManyWords(#[from] NamesFull),
}
