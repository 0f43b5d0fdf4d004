//! Documents made from known topics.

use std::io::{self, Write};

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Random;
use crate::Names;
use crate::corpus::Corpus;

/// What documents to make: each about few topics, and each topic of few frequent words and many rare ones, as by Zipf's
/// law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SyntheticCorpus {
    /// How many documents there are.
    pub documents: u32,
    /// How many words the vocabulary has.
    pub words: u32,
    /// How many topics the documents are made from.
    pub topics: u32,
    /// How many words a document has on average; none has less than half of it or more than one and a half times.
    pub tokens_per_document: u32,
    /// The same seed gives the same documents.
    pub seed: u64,
}

/// A small corpus from which a model learns visibly within seconds.
impl Default for SyntheticCorpus {
    fn default() -> Self {
        Self { documents: 2_000, words: 5_000, topics: 20, tokens_per_document: 100, seed: 1 }
    }
}

/// Why documents could not be made.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum GenerateCorpusError {
    /// There is nothing to make.
    #[error(
        "cannot make {documents} documents of {tokens} words each from {topics} topics and {words} words; \
         expected 1 or more of each"
    )]
    Nothing {
        /// The number of documents given.
        documents: u32,
        /// The number of words given.
        words: u32,
        /// The number of topics given.
        topics: u32,
        /// The number of words of a document given.
        tokens: u32,
    },
    /// There would be more words than a corpus holds.
    #[error("cannot make {documents} documents of {tokens} words each; expected no more than {most} words together")]
    TooMany {
        /// The number of documents given.
        documents: u32,
        /// The number of words of a document given.
        tokens: u32,
        /// The most words that all documents may have together.
        most: u32,
    },
}

/// With this chance the next word of a document is from the first of the topics that are left.
const FIRST_TOPIC: f64 = 0.5;
/// The frequency of the words of a topic falls with their rank to this power.
const ZIPF: f64 = -1.1;
/// Added to the rank, so that no word alone makes a topic.
const ZIPF_SHIFT: f64 = 5.0;

/// Makes documents.
pub fn generate_corpus(what: &SyntheticCorpus) -> Result<Corpus, GenerateCorpusError> {
    let SyntheticCorpus { documents, words, topics, tokens_per_document: tokens, seed } = *what;
    if documents == 0 || words == 0 || topics == 0 || tokens == 0 {
        return Err(GenerateCorpusError::Nothing { documents, words, topics, tokens });
    }
    let most = u32::MAX / 2;
    if u64::from(documents) * u64::from(tokens) > u64::from(most) {
        return Err(GenerateCorpusError::TooMany { documents, tokens, most });
    }
    let mut vocabulary = Names::default();
    for number in 1..=words {
        vocabulary.intern(&format!("w{number}")).expect("numbers of 32 bits are few enough to be named");
    }
    let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(seed));
    let sums: Vec<f64> = (0..words)
        .scan(0.0, |sum, rank| {
            *sum += (f64::from(rank) + ZIPF_SHIFT).powf(ZIPF);
            Some(*sum)
        })
        .collect();
    let orders: Vec<Order> = (0..topics).map(|_| Order::new(&mut random, words)).collect();
    let mut corpus = Corpus::new(vocabulary);
    for _ in 0..documents {
        let shortest = tokens.div_ceil(2);
        let length = shortest as usize + random.below(2 * (tokens - shortest) as usize + 1);
        let mut about = Vec::new();
        let document: Vec<u32> = (0..length)
            .map(|_| {
                let place = (0..).find(|_| random.uniform() < FIRST_TOPIC).unwrap_or_default();
                while about.len() <= place {
                    about.push(random.below(orders.len()));
                }
                let point = random.uniform() * sums[sums.len() - 1];
                let rank = sums.partition_point(|sum| *sum < point);
                orders[about[place]].word(rank.min(sums.len() - 1), words)
            })
            .collect();
        corpus.push(document);
    }
    Ok(corpus)
}

/// The order of the words in a topic: a step through the vocabulary that meets every word once.
#[derive(Debug)]
pub(super) struct Order {
    start: u64,
    step: u64,
}

impl Order {
    pub(super) fn new(random: &mut Random, words: u32) -> Self {
        let words = u64::from(words);
        let start = random.below(words as usize) as u64;
        let first = random.below(words as usize) as u64;
        let step = (first..).find(|step| greatest_divisor(*step, words) == 1).unwrap_or(1);
        Self { start, step }
    }

    pub(super) fn word(&self, rank: usize, words: u32) -> u32 {
        ((self.start + self.step * rank as u64) % u64::from(words)) as u32
    }
}

fn greatest_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_divisor(other, one % other) }
}

/// Writes documents as UCI bag-of-words.
pub fn write_doc_word(corpus: &Corpus, output: &mut dyn Write) -> io::Result<()> {
    let mut sorted = Vec::new();
    let mut each_entry = |receive: &mut dyn FnMut(usize, u32, usize) -> io::Result<()>| {
        for document in 0..corpus.documents() {
            sorted.clear();
            sorted.extend_from_slice(corpus.document(document));
            sorted.sort_unstable();
            sorted
                .chunk_by(|one, next| one == next)
                .try_for_each(|same| receive(document + 1, same[0] + 1, same.len()))?;
        }
        Ok(())
    };
    let mut entries = 0u64;
    each_entry(&mut |_, _, _| {
        entries += 1;
        Ok(())
    })?;
    writeln!(output, "{}\n{}\n{entries}", corpus.documents(), corpus.vocabulary.len())?;
    each_entry(&mut |document, word, count| writeln!(output, "{document} {word} {count}"))
}

/// Writes a vocabulary, one word a line; a word with a line end in it is an error.
pub fn write_vocabulary(vocabulary: &Names, output: &mut dyn Write) -> io::Result<()> {
    for word in vocabulary.iter() {
        if word.contains(['\n', '\r']) {
            let problem = format!("the word {word:?} has a line end in it, which a line cannot hold");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        writeln!(output, "{word}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Reading;

    #[test]
    fn documents_are_as_asked_for_and_about_few_topics() {
        let what = SyntheticCorpus { documents: 200, words: 1_000, ..SyntheticCorpus::default() };
        let corpus = generate_corpus(&what).unwrap();
        assert_eq!(corpus, generate_corpus(&what).unwrap());
        assert_ne!(corpus, generate_corpus(&SyntheticCorpus { seed: 2, ..what }).unwrap());
        assert_eq!((corpus.documents(), corpus.vocabulary.len()), (200, 1_000));
        let lengths: Vec<usize> = (0..200).map(|document| corpus.document(document).len()).collect();
        assert!(lengths.iter().all(|length| (50..=150).contains(length)), "{lengths:?}");
        assert!((95..105).contains(&(corpus.tokens() / 200)), "{}", corpus.tokens());
        let mut distinct = corpus.document(0).to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        assert!(distinct.len() < corpus.document(0).len(), "some words come again");
        for words in 1..30 {
            let order = Order::new(&mut Random(Xoshiro256PlusPlus::seed_from_u64(9)), words);
            let mut met: Vec<u32> = (0..words as usize).map(|rank| order.word(rank, words)).collect();
            met.sort_unstable();
            assert_eq!(met, (0..words).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let what = SyntheticCorpus { documents: 30, words: 50, tokens_per_document: 9, ..SyntheticCorpus::default() };
        let made = generate_corpus(&what).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let (data, vocabulary) = (directory.path().join("docword.txt"), directory.path().join("vocab.txt"));
        write_doc_word(&made, &mut std::fs::File::create(&data).unwrap()).unwrap();
        write_vocabulary(&made.vocabulary, &mut std::fs::File::create(&vocabulary).unwrap()).unwrap();
        let read = Corpus::read(&[data], &Reading { vocabulary: Some(vocabulary), ..Reading::default() }).unwrap();
        assert_eq!((read.documents(), &read.vocabulary), (30, &made.vocabulary));
        for document in 0..30 {
            let mut sorted = made.document(document).to_vec();
            sorted.sort_unstable();
            assert_eq!(read.document(document), sorted);
        }
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        let refused = |what: SyntheticCorpus| generate_corpus(&what).unwrap_err().to_string();
        assert_eq!(
            refused(SyntheticCorpus { words: 0, ..SyntheticCorpus::default() }),
            "cannot make 2000 documents of 100 words each from 20 topics and 0 words; expected 1 or more of each"
        );
        assert_eq!(
            refused(SyntheticCorpus { documents: u32::MAX, ..SyntheticCorpus::default() }),
            "cannot make 4294967295 documents of 100 words each; expected no more than 2147483647 words together"
        );
    }
}
