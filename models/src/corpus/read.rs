//! Documents read from files, whose format is told by what they hold.

use std::fmt;
use std::path::{Path, PathBuf};

use super::distinct::Distinct;
use super::doc_word::DocWord;
use super::lda_c;
use super::text;
use super::words::{self, Words};
use super::{Corpus, CorpusError, LineProblem, Pruning, StopWords};
use crate::Names;
use crate::line_blocks::{Blocks, first_line, without_mark};

/// The longest line that is read: a document may be a book.
const LINE_LIMIT: usize = 64 << 20;
/// The most often that a word is said to occur in a document.
pub(super) const COUNT_LIMIT: u32 = 1_000_000;
/// How many documents may have no words: a header can promise any number of them.
pub(super) const EMPTY_LIMIT: usize = 1 << 20;

/// How a file writes its documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// UCI bag-of-words: the numbers of documents, words and entries on three lines, then entries of document, word
    /// and count, numbered from 1.
    DocWord,
    /// lda-c: on each line a document as its number of distinct words and pairs of `word:count`, numbered from 0.
    LdaC,
    /// Text: each line is a document.
    Text,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DocWord => "UCI bag-of-words",
            Self::LdaC => "lda-c",
            Self::Text => "text",
        })
    }
}

/// How documents are read.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The format of the files, if it is not to be told by what they hold.
    pub format: Option<Format>,
    /// A file with the words of UCI bag-of-words or lda-c, one a line; else words are their numbers as text. Of text it
    /// has, in any case of letters, the only words that are read.
    pub vocabulary: Option<PathBuf>,
    /// Which words are left out, where the vocabulary is not known before.
    pub pruning: Pruning,
    /// The most words that all documents may have together.
    pub most_tokens: usize,
}

impl Default for Reading {
    fn default() -> Self {
        Self { format: None, vocabulary: None, pruning: Pruning::default(), most_tokens: u32::MAX as usize }
    }
}

impl Corpus {
    /// Reads files of one format one after another; `-` is standard input, and compressed files are unpacked.
    ///
    /// Documents without words are kept, so that a document's number says where it was in the files.
    pub fn read<P: AsRef<Path>>(files: &[P], how: &Reading) -> Result<Self, CorpusError> {
        let words = match &how.vocabulary {
            Some(file) => Words::listed(file)?,
            None => Words::unlisted(),
        };
        let (mut corpus, _, text) = Builder::new(words, how).read(files)?;
        let file = first_name(files);
        if corpus.tokens() == 0 {
            return Err(CorpusError::NothingKnown { file, known: corpus.vocabulary.len() });
        }
        let english = text && how.pruning.stop_words == StopWords::EnglishInText;
        corpus.prune(&how.pruning, english, &file)?;
        Ok(corpus)
    }

    /// Reads files with the words of a known vocabulary, such as that of a model; the others are skipped and counted.
    ///
    /// Files that number their words need a list of them, unless the words that are known are numbers.
    pub fn read_known<P: AsRef<Path>>(
        files: &[P],
        how: &Reading,
        vocabulary: &Names,
    ) -> Result<(Self, u64), CorpusError> {
        Self::read_with(files, how, vocabulary, true)
    }

    /// As [`Corpus::read_known`] for documents held out, where a list of words may be only for those to train on.
    pub fn read_held_out<P: AsRef<Path>>(files: &[P], how: &Reading, vocabulary: &Names) -> Result<Self, CorpusError> {
        Ok(Self::read_with(files, how, vocabulary, false)?.0)
    }

    /// `listed` says whether a list of words must have an effect.
    fn read_with<P: AsRef<Path>>(
        files: &[P],
        how: &Reading,
        vocabulary: &Names,
        listed: bool,
    ) -> Result<(Self, u64), CorpusError> {
        let words = match &how.vocabulary {
            Some(file) => Words::known(vocabulary.clone(), Some(&words::read_vocabulary(file)?)),
            None => Words::known(vocabulary.clone(), None),
        };
        let (corpus, unknown, text) = Builder::new(words, how).read(files)?;
        if listed && text && how.vocabulary.is_some() {
            return Err(CorpusError::WrittenOut { file: first_name(files) });
        }
        if corpus.tokens() == 0 {
            return Err(CorpusError::NothingKnown { file: first_name(files), known: vocabulary.len() });
        }
        Ok((corpus, unknown))
    }
}

/// The first file as messages name it.
fn first_name<P: AsRef<Path>>(files: &[P]) -> String {
    files.first().map(|file| name(file.as_ref())).unwrap_or_default()
}

/// A file as messages name it.
pub(super) fn name(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() }
}

/// A corpus while it is read.
pub(super) struct Builder {
    pub(super) words: Words,
    tokens: Vec<u32>,
    ends: Vec<usize>,
    /// Words that were skipped because they are not known.
    unknown: u64,
    empty_documents: usize,
    format: Option<Format>,
    /// The first file and its format, which the others have, too.
    first: Option<(String, Format)>,
    most_tokens: usize,
}

impl Builder {
    fn new(words: Words, how: &Reading) -> Self {
        Self {
            words,
            tokens: Vec::new(),
            ends: Vec::new(),
            unknown: 0,
            empty_documents: 0,
            format: how.format,
            first: None,
            most_tokens: how.most_tokens,
        }
    }

    /// The corpus, how many words were skipped, and whether the files are text.
    fn read<P: AsRef<Path>>(mut self, files: &[P]) -> Result<(Corpus, u64, bool), CorpusError> {
        if files.is_empty() {
            return Err(CorpusError::NoFile);
        }
        files.iter().try_for_each(|file| self.read_file(file.as_ref()))?;
        let text = matches!(self.first, Some((_, Format::Text)));
        self.tokens.shrink_to_fit();
        let corpus = Corpus { vocabulary: self.words.into_vocabulary(), tokens: self.tokens, ends: self.ends };
        Ok((corpus, self.unknown, text))
    }

    fn read_file(&mut self, path: &Path) -> Result<(), CorpusError> {
        let mut blocks = Blocks::open(path, "documents", LINE_LIMIT)?;
        let before = self.tokens.len() as u64 + self.unknown;
        let (mut line, mut parser) = (0, None);
        while let Some(block) = blocks.next(line)? {
            let mut rest = if line == 0 { without_mark(block) } else { block };
            let parser = match &mut parser {
                Some(parser) => parser,
                none => none.insert(Parser::new(self.format_of(path, rest)?)),
            };
            while !rest.is_empty() {
                let (text, after) = first_line(rest);
                (rest, line) = (after, line + 1);
                if let Err(problem) = parser.line(text, self) {
                    return Err(CorpusError::Line { file: blocks.file, line, problem });
                }
            }
        }
        let empty = |file| CorpusError::Empty { file };
        let Some(parser) = parser else { return Err(empty(blocks.file)) };
        if let Err((line, problem)) = parser.finish(self) {
            return Err(CorpusError::Line { file: blocks.file, line, problem });
        }
        if self.tokens.len() as u64 + self.unknown == before {
            return Err(empty(blocks.file));
        }
        Ok(())
    }

    /// The format of a file that starts with these lines, if it suits the files before and the words that are known.
    fn format_of(&mut self, path: &Path, lines: &[u8]) -> Result<Format, CorpusError> {
        let format = self.format.unwrap_or_else(|| detect(lines));
        let file = name(path);
        let (first, first_format) = self.first.get_or_insert_with(|| (file.clone(), format));
        if *first_format != format {
            return Err(CorpusError::Formats { file, format, first: first.clone(), first_format: *first_format });
        }
        if format == Format::Text {
            self.words.fold_list()?;
        } else if !self.words.are_numbered() {
            return Err(CorpusError::Unlisted { file, format });
        }
        Ok(format)
    }

    /// Adds a word as often as it occurs, or counts it if it is not known.
    pub(super) fn add(&mut self, word: Option<u32>, count: u32) -> Result<(), LineProblem> {
        let Some(word) = word else {
            self.unknown += u64::from(count);
            return Ok(());
        };
        if self.tokens.len() + count as usize > self.most_tokens {
            return Err(LineProblem::TooManyTokens { limit: self.most_tokens });
        }
        self.tokens.extend(std::iter::repeat_n(word, count as usize));
        Ok(())
    }

    /// Ends a document, which may have no words.
    pub(super) fn end_document(&mut self) -> Result<(), LineProblem> {
        if self.ends.last().copied().unwrap_or(0) == self.tokens.len() {
            self.empty_documents += 1;
            if self.empty_documents > EMPTY_LIMIT {
                return Err(LineProblem::EmptyDocuments);
            }
        }
        self.ends.push(self.tokens.len());
        Ok(())
    }
}

enum Parser {
    DocWord(DocWord),
    LdaC(Distinct),
    Text(String),
}

impl Parser {
    fn new(format: Format) -> Self {
        match format {
            Format::DocWord => Self::DocWord(DocWord::default()),
            Format::LdaC => Self::LdaC(Distinct::default()),
            Format::Text => Self::Text(String::new()),
        }
    }

    fn line(&mut self, line: &[u8], builder: &mut Builder) -> Result<(), LineProblem> {
        match self {
            Self::DocWord(parser) => parser.line(line, builder),
            Self::LdaC(distinct) => lda_c::line(line, distinct, builder),
            Self::Text(word) => text::line(line, word, builder),
        }
    }

    fn finish(self, builder: &mut Builder) -> Result<(), (u64, LineProblem)> {
        match self {
            Self::DocWord(parser) => parser.finish(builder),
            Self::LdaC(_) | Self::Text(_) => Ok(()),
        }
    }
}

/// The format of a file that starts with these lines.
///
/// Two lines that hold nothing but a number start a header; a number and something with a colon is a line of lda-c.
fn detect(lines: &[u8]) -> Format {
    let mut filled = lines.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let (first, second) = (filled.next().unwrap_or_default(), filled.next().unwrap_or_default());
    let is_number = |field: &[u8]| {
        let digits = field.strip_prefix(b"-").unwrap_or(field);
        !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
    };
    if is_number(first) && is_number(second) {
        return Format::DocWord;
    }
    let looks_like_pairs = |line: &[u8]| {
        let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
        fields.next().is_some_and(is_number)
            && fields.next().is_some_and(|field| {
                let colon = field.iter().position(|byte| *byte == b':');
                colon.is_some_and(|colon| is_number(&field[..colon]))
            })
    };
    // A first document without words is a lone zero.
    if looks_like_pairs(first) || (is_number(first) && looks_like_pairs(second)) { Format::LdaC } else { Format::Text }
}

/// A whole number of 0 or more, without a sign.
pub(super) fn whole(field: &[u8]) -> Option<u64> {
    if field.is_empty() || field.len() > 19 {
        return None;
    }
    field.iter().try_fold(0, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit <= 9).then(|| number * 10 + u64::from(digit))
    })
}

/// A count within its limits.
pub(super) fn count(field: &[u8]) -> Option<u32> {
    whole(field).filter(|count| (1..=u64::from(COUNT_LIMIT)).contains(count)).map(|count| count as u32)
}
