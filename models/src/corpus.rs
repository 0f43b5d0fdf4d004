//! A corpus: documents as lists of words, and words as numbers of a vocabulary.

mod distinct;
mod doc_word;
mod error;
mod lda_c;
mod prune;
mod read;
mod text;
mod words;

pub use error::{CorpusError, LineProblem};
pub use prune::{Pruning, StopWords};
pub use read::{Format, Reading};

use crate::Names;
use crate::hold_out::{HoldOut, SplitError};

/// Documents, one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Corpus {
    /// The words by number.
    pub vocabulary: Names,
    /// The words of all documents.
    tokens: Vec<u32>,
    /// Where each document ends in `tokens`.
    ends: Vec<usize>,
}

impl Corpus {
    /// A corpus without documents.
    #[must_use]
    pub fn new(vocabulary: Names) -> Self {
        Self { vocabulary, tokens: Vec::new(), ends: Vec::new() }
    }

    /// Adds a document: the numbers of its words, as often as they occur.
    ///
    /// # Panics
    /// If a word is not in the vocabulary.
    pub fn push(&mut self, words: impl IntoIterator<Item = u32>) {
        let start = self.tokens.len();
        self.tokens.extend(words);
        assert!(
            self.tokens[start..].iter().all(|&word| (word as usize) < self.vocabulary.len()),
            "a word of a document is in the vocabulary"
        );
        self.ends.push(self.tokens.len());
    }

    /// How many documents there are.
    #[must_use]
    pub fn documents(&self) -> usize {
        self.ends.len()
    }

    /// How many words all documents have together.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.tokens.len()
    }

    /// The words of one document.
    ///
    /// # Panics
    /// If `document` is not below [`Corpus::documents`].
    #[must_use]
    pub fn document(&self, document: usize) -> &[u32] {
        let start = if document == 0 { 0 } else { self.ends[document - 1] };
        &self.tokens[start..self.ends[document]]
    }

    /// Documents to train on and documents held out, both with the whole vocabulary and in their order.
    ///
    /// # Errors
    /// If the rule is none, or leaves no word on one side.
    pub fn split(mut self, rule: HoldOut) -> Result<(Self, Self), SplitError> {
        const WHAT: &str = "documents";
        let held_out = rule.held_out(WHAT)?;
        let mut test = Self::new(self.vocabulary.clone());
        let (mut start, mut kept_tokens, mut kept_documents) = (0, 0, 0);
        for document in 0..self.ends.len() {
            let end = self.ends[document];
            if held_out(document as u64) {
                test.tokens.extend_from_slice(&self.tokens[start..end]);
                test.ends.push(test.tokens.len());
            } else {
                self.tokens.copy_within(start..end, kept_tokens);
                kept_tokens += end - start;
                self.ends[kept_documents] = kept_tokens;
                kept_documents += 1;
            }
            start = end;
        }
        self.tokens.truncate(kept_tokens);
        self.ends.truncate(kept_documents);
        if self.tokens.is_empty() || test.tokens.is_empty() {
            return Err(SplitError::Empty { what: WHAT, train: self.documents(), test: test.documents() });
        }
        Ok((self, test))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twelve documents: document `d` is `d % 3` times the word `d`.
    fn corpus() -> Corpus {
        let mut vocabulary = Names::default();
        (0..12).for_each(|word| assert_eq!(vocabulary.intern(&format!("word {word}")), Ok(word)));
        let mut corpus = Corpus::new(vocabulary);
        (0..12u32).for_each(|document| corpus.push(std::iter::repeat_n(document, document as usize % 3)));
        corpus
    }

    fn documents(corpus: &Corpus) -> Vec<&[u32]> {
        (0..corpus.documents()).map(|document| corpus.document(document)).collect()
    }

    #[test]
    fn every_fourth_document_is_held_out_in_order() {
        let (train, test) = corpus().split(HoldOut::Every(4)).unwrap();
        assert_eq!(documents(&test), [&[][..], &[7], &[11, 11]]);
        assert_eq!(documents(&train), [&[][..], &[1], &[2, 2], &[4], &[5, 5], &[], &[8, 8], &[], &[10]]);
        assert_eq!(train.vocabulary, test.vocabulary);
    }

    #[test]
    fn a_random_part_depends_on_the_seed_only() {
        let split = |seed| corpus().split(HoldOut::Random { fraction: 0.5, seed }).unwrap();
        assert_eq!(split(3), split(3));
        assert!((4..20).any(|seed| split(seed) != split(3)));
        let (train, test) = split(3);
        assert_eq!((train.documents() + test.documents(), train.tokens() + test.tokens()), (12, 12));
    }

    #[test]
    fn a_rule_that_leaves_no_words_is_refused() {
        let refused = |rule| corpus().split(rule).unwrap_err().to_string();
        assert_eq!(refused(HoldOut::Every(1)), "cannot hold out one in 1 documents; expected one in 2 or more");
        assert_eq!(refused(HoldOut::Every(99)), "12 documents to train on and 0 to hold out; expected some of both");
    }
}
