//! What the words of a file are in a corpus: its own vocabulary, or one that was known before.

use std::path::{Path, PathBuf};

use hashbrown::HashMap;

use super::read::name;
use super::{CorpusError, LineProblem, text};
use crate::Names;
use crate::line_blocks::{Blocks, first_line, shortened, without_mark};

/// The longest word of a vocabulary.
const WORD_LIMIT: usize = 1 << 20;

/// The vocabulary of a corpus while it is read.
pub(super) struct Words {
    vocabulary: Names,
    /// Whether new words are skipped rather than added.
    closed: bool,
    /// The file of the vocabulary, if its words are still as that has them.
    list: Option<PathBuf>,
    numbers: Numbers,
}

/// By the number that a file gives a word, its number in the corpus, if it has one.
enum Numbers {
    /// A file lists the words.
    Listed(Vec<Option<u32>>),
    /// The words are their numbers as text; known are those that occurred.
    Unlisted(HashMap<u64, Option<u32>>),
}

impl Words {
    /// The words of a file, numbered as there.
    pub(super) fn listed(file: &Path) -> Result<Self, CorpusError> {
        let vocabulary = read_vocabulary(file)?;
        let numbers = (0..vocabulary.len() as u32).map(Some).collect();
        Ok(Self { vocabulary, closed: true, list: Some(file.to_owned()), numbers: Numbers::Listed(numbers) })
    }

    /// Words that are numbered by their first appearance.
    pub(super) fn unlisted() -> Self {
        Self { vocabulary: Names::default(), closed: false, list: None, numbers: Numbers::Unlisted(HashMap::new()) }
    }

    /// The words of a known vocabulary, whatever numbers the file `list` gives them.
    pub(super) fn known(vocabulary: Names, list: Option<&Names>) -> Self {
        let numbers = match list {
            Some(list) => Numbers::Listed(list.iter().map(|word| vocabulary.get(word)).collect()),
            None => Numbers::Unlisted(HashMap::new()),
        };
        Self { vocabulary, closed: true, list: None, numbers }
    }

    /// Makes the words of a list those that text has, where they could not be met as they are written.
    pub(super) fn fold_list(&mut self) -> Result<(), CorpusError> {
        let Some(file) = self.list.take() else { return Ok(()) };
        let mut folded = Names::default();
        for (line, word) in (1..).zip(self.vocabulary.iter()) {
            let never = || LineProblem::NotInText { found: shortened(word.as_bytes()) };
            let added = text::folded_word(word).ok_or_else(never).and_then(|word| add_line(&mut folded, &word));
            if let Err(problem) = added {
                return Err(CorpusError::Line { file: name(&file), line, problem });
            }
        }
        self.vocabulary = folded;
        Ok(())
    }

    /// Whether it can be told which words a file means by numbers: those of a list, or words that are numbers.
    pub(super) fn are_numbered(&self) -> bool {
        let is_number = |word: &str| word.parse::<u64>().is_ok_and(|number| number.to_string() == word);
        !self.closed || matches!(self.numbers, Numbers::Listed(_)) || self.vocabulary.iter().all(is_number)
    }

    /// How many words the file of words lists, if there is one.
    pub(super) fn listed_length(&self) -> Option<usize> {
        match &self.numbers {
            Numbers::Listed(numbers) => Some(numbers.len()),
            Numbers::Unlisted(_) => None,
        }
    }

    /// The number in the corpus of the word at place `index` of the list, which the file calls `name`.
    pub(super) fn number_of_listed(&mut self, index: u64, name: u64) -> Result<Option<u32>, LineProblem> {
        match &mut self.numbers {
            Numbers::Listed(numbers) => {
                let found = usize::try_from(index).ok().and_then(|index| numbers.get(index));
                found.copied().ok_or(LineProblem::NotInVocabulary { found: index, words: numbers.len() })
            }
            Numbers::Unlisted(numbers) => {
                if let Some(&number) = numbers.get(&index) {
                    return Ok(number);
                }
                let text = name.to_string();
                let number =
                    if self.closed { self.vocabulary.get(&text) } else { Some(self.vocabulary.intern(&text)?) };
                numbers.insert(index, number);
                Ok(number)
            }
        }
    }

    /// The number of a word of a text.
    pub(super) fn number(&mut self, word: &str) -> Result<Option<u32>, LineProblem> {
        if self.closed { Ok(self.vocabulary.get(word)) } else { Ok(Some(self.vocabulary.intern(word)?)) }
    }

    pub(super) fn into_vocabulary(self) -> Names {
        self.vocabulary
    }
}

/// Reads a vocabulary: one word a line, each once; blank lines may only end it.
pub(super) fn read_vocabulary(file: &Path) -> Result<Names, CorpusError> {
    let mut words = Names::default();
    let mut blank = None;
    each_word(file, |word, line| {
        if word.is_empty() {
            blank.get_or_insert(line);
            return Ok(());
        }
        if let Some(blank) = blank {
            return Err((blank, LineProblem::Blank));
        }
        add_line(&mut words, word).map_err(|problem| (line, problem))
    })?;
    if words.is_empty() {
        return Err(CorpusError::NoWords { file: file.display().to_string() });
    }
    Ok(words)
}

/// Adds the word of a line, where every line before it had a word of its own.
fn add_line(words: &mut Names, word: &str) -> Result<(), LineProblem> {
    if let Some(before) = words.get(word) {
        return Err(LineProblem::Twice { word: shortened(word.as_bytes()), line: u64::from(before) + 1 });
    }
    words.intern(word)?;
    Ok(())
}

/// Hands out the word of every line, without blanks around it, and the line's number; a problem names its line.
pub(super) fn each_word(
    file: &Path,
    mut receive: impl FnMut(&str, u64) -> Result<(), (u64, LineProblem)>,
) -> Result<(), CorpusError> {
    let mut blocks = Blocks::open(file, "words", WORD_LIMIT)?;
    let mut line = 0;
    while let Some(block) = blocks.next(line)? {
        let mut rest = if line == 0 { without_mark(block) } else { block };
        while !rest.is_empty() {
            let (text, after) = first_line(rest);
            (rest, line) = (after, line + 1);
            let word = std::str::from_utf8(text).ok().filter(|word| !word.contains('\0'));
            let received = word.ok_or((line, LineProblem::Binary)).and_then(|word| receive(word.trim(), line));
            if let Err((line, problem)) = received {
                return Err(CorpusError::Line { file: blocks.file, line, problem });
            }
        }
    }
    Ok(())
}
