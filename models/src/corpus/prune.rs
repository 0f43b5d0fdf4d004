//! Which words of a corpus are left out: those that say little, and those that are too rare to learn about.

use std::path::{Path, PathBuf};

use super::{Corpus, CorpusError, LineProblem, text, words};
use crate::Names;
use crate::line_blocks::shortened;

/// Which words are left out because they say nothing of what a document is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StopWords {
    /// The usual ones of English in text; none in formats whose words were chosen already.
    #[default]
    EnglishInText,
    /// None.
    None,
    /// Those of a file, one a line, in any case of letters.
    File(PathBuf),
}

/// Which words of a corpus are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Pruning {
    /// Words that say nothing.
    pub stop_words: StopWords,
    /// The fewest documents that a word must be in.
    pub least_documents: usize,
    /// The largest part of all documents that a word may be in, up to 1.
    pub greatest_share: f64,
    /// The most words, of which those are kept that occur most often; those that came first among equals.
    pub most_words: Option<usize>,
}

impl Default for Pruning {
    fn default() -> Self {
        Self { stop_words: StopWords::default(), least_documents: 0, greatest_share: 1.0, most_words: None }
    }
}

impl Corpus {
    /// Leaves words out; those that stay are numbered anew, in their order. What is wrong is said of `file`.
    pub(super) fn prune(&mut self, what: &Pruning, english: bool, file: &str) -> Result<(), CorpusError> {
        let stop_words = match &what.stop_words {
            StopWords::File(file) => read_stop_words(file, &self.vocabulary)?,
            _ => Names::default(),
        };
        let stopped = |word: &str| stop_words.get(&text::folded(word)).is_some() || (english && is_english(word));
        let counts = self.counts();
        let most_documents = what.greatest_share * self.documents() as f64;
        let mut kept: Vec<u32> = (0..)
            .zip(self.vocabulary.iter().zip(&counts))
            .filter(|(_, (word, count))| {
                let documents = count.documents as usize;
                documents >= what.least_documents && documents as f64 <= most_documents && !stopped(word)
            })
            .map(|(number, _)| number)
            .collect();
        if let Some(most) = what.most_words
            && kept.len() > most
        {
            kept.sort_by_key(|&number| std::cmp::Reverse(counts[number as usize].tokens));
            kept.truncate(most);
            kept.sort_unstable();
        }
        if kept.iter().all(|&number| counts[number as usize].tokens == 0) {
            return Err(CorpusError::NothingLeft { file: file.to_owned(), words: self.vocabulary.len() });
        }
        if kept.len() < self.vocabulary.len() {
            self.keep(&kept);
        }
        Ok(())
    }

    /// How often and in how many documents each word occurs.
    fn counts(&self) -> Vec<Count> {
        let mut counts = vec![Count::default(); self.vocabulary.len()];
        for document in 0..self.documents() {
            let mark = document as u32 + 1;
            for &word in self.document(document) {
                let count = &mut counts[word as usize];
                count.tokens += 1;
                count.documents += u32::from(count.last_document != mark);
                count.last_document = mark;
            }
        }
        counts
    }

    fn keep(&mut self, kept: &[u32]) {
        let mut vocabulary = Names::default();
        let mut numbers = vec![None; self.vocabulary.len()];
        for &word in kept {
            let number = vocabulary.intern(self.vocabulary.name(word)).expect("a part of a vocabulary fits");
            numbers[word as usize] = Some(number);
        }
        let (mut read, mut written) = (0, 0);
        for end in &mut self.ends {
            while read < *end {
                if let Some(number) = numbers[self.tokens[read] as usize] {
                    self.tokens[written] = number;
                    written += 1;
                }
                read += 1;
            }
            *end = written;
        }
        self.tokens.truncate(written);
        self.tokens.shrink_to_fit();
        self.vocabulary = vocabulary;
    }
}

#[derive(Clone, Copy, Default)]
struct Count {
    tokens: u64,
    documents: u32,
    /// The last document that had the word, from 1.
    last_document: u32,
}

fn read_stop_words(file: &Path, vocabulary: &Names) -> Result<Names, CorpusError> {
    let mut stop_words = Names::default();
    words::each_word(file, |word, line| {
        if word.is_empty() {
            return Ok(());
        }
        let folded = text::folded(word);
        // A vocabulary may count a name of several words as one.
        let known = || vocabulary.get(word).or_else(|| vocabulary.get(&folded)).is_some();
        if word.contains(is_between_words) && !known() {
            return Err((line, LineProblem::Several { found: shortened(word.as_bytes()) }));
        }
        stop_words.intern(&folded).map(drop).map_err(|full| (line, full.into()))
    })?;
    if stop_words.is_empty() {
        return Err(CorpusError::NoWords { file: file.display().to_string() });
    }
    Ok(stop_words)
}

fn is_between_words(character: char) -> bool {
    character.is_whitespace() || matches!(character, ',' | ';')
}

fn is_english(word: &str) -> bool {
    ENGLISH.binary_search(&word).is_ok()
}

/// The words of English that hold sentences together, and what contractions leave, in the order of the alphabet.
#[rustfmt::skip]
const ENGLISH: &[&str] = &[
    "a", "about", "above", "across", "after", "again", "against", "ain't", "all", "almost", "alone", "along",
    "already", "also", "although", "always", "am", "among", "an", "and", "another", "any", "anybody", "anyone",
    "anything", "anywhere", "are", "aren't", "around", "as", "ask", "at", "away", "b", "back", "be", "became",
    "because", "become", "becomes", "been", "before", "behind", "being", "below", "between", "both", "but", "by", "c",
    "came", "can", "can't", "cannot", "come", "comes", "could", "couldn't", "d", "did", "didn't", "do", "does",
    "doesn't", "doing", "don't", "done", "down", "during", "e", "each", "either", "else", "enough", "even", "ever",
    "every", "everybody", "everyone", "everything", "everywhere", "f", "few", "for", "from", "further", "g", "get",
    "gets", "give", "given", "go", "goes", "going", "gone", "got", "h", "had", "hadn't", "has", "hasn't", "have",
    "haven't", "having", "he", "he'd", "he'll", "he's", "her", "here", "here's", "hers", "herself", "him", "himself",
    "his", "how", "how's", "however", "i", "i'd", "i'll", "i'm", "i've", "if", "in", "indeed", "instead", "into",
    "is", "isn't", "it", "it'd", "it'll", "it's", "its", "itself", "j", "just", "k", "keep", "kept", "know", "knows",
    "l", "last", "least", "less", "let", "let's", "like", "likely", "m", "made", "make", "makes", "many", "may",
    "maybe", "me", "might", "mightn't", "mine", "more", "most", "mostly", "much", "must", "mustn't", "my", "myself",
    "n", "near", "need", "needn't", "neither", "never", "no", "nobody", "none", "nor", "not", "nothing", "now",
    "nowhere", "o", "of", "off", "often", "on", "once", "one", "only", "onto", "or", "other", "others", "ought",
    "our", "ours", "ourselves", "out", "over", "own", "p", "per", "perhaps", "please", "put", "q", "quite", "r",
    "rather", "really", "s", "said", "same", "saw", "say", "says", "see", "seem", "seemed", "seems", "seen",
    "several", "shall", "shan't", "she", "she'd", "she'll", "she's", "should", "shouldn't", "since", "so", "some",
    "somebody", "someone", "something", "sometimes", "somewhere", "still", "such", "t", "take", "taken", "than",
    "that", "that'd", "that'll", "that's", "the", "their", "theirs", "them", "themselves", "then", "there", "there's",
    "therefore", "these", "they", "they'd", "they'll", "they're", "they've", "thing", "things", "this", "those",
    "though", "through", "thus", "till", "to", "together", "too", "took", "toward", "towards", "u", "under", "until",
    "up", "upon", "us", "use", "used", "uses", "using", "v", "very", "w", "want", "wants", "was", "wasn't", "way",
    "we", "we'd", "we'll", "we're", "we've", "well", "went", "were", "weren't", "what", "what's", "whatever", "when",
    "when's", "whenever", "where", "where's", "whether", "which", "while", "who", "who'd", "who'll", "who's",
    "whoever", "whole", "whom", "whose", "why", "why's", "will", "with", "within", "without", "won't", "would",
    "wouldn't", "x", "y", "yes", "yet", "you", "you'd", "you'll", "you're", "you've", "your", "yours", "yourself",
    "yourselves", "z",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_found_by_halving() {
        assert!(ENGLISH.is_sorted_by(|one, next| one < next));
        assert!(is_english("the") && is_english("don't") && !is_english("theorem"));
    }
}
