//! Which worker has which documents, and the tokens of a worker in the order in which it samples them: by word.

use crate::corpus::Corpus;
use crate::mf::blocks::{share_out, shuffled_labels};
use std::cmp::Reverse;
use std::ops::Range;

/// How a corpus is shared out: what all workers agree on.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The row of each word in the table of words.
    pub rows: Vec<u32>,
    /// Into how many chunks the rows are cut.
    pub chunks: usize,
    /// How many rows a chunk has.
    pub chunk_rows: usize,
    /// How many tokens there are.
    pub tokens: usize,
    /// The documents of each worker.
    documents: Vec<Vec<u32>>,
}

impl Plan {
    /// Shares out a corpus so that all workers have about as many tokens, and all chunks of words too: words are dealt
    /// to the chunks by falling frequency.
    #[must_use]
    pub fn new(corpus: &Corpus, workers: usize, chunks: usize, seed: u64) -> Self {
        let words = corpus.vocabulary.len();
        let chunk_rows = words.div_ceil(chunks.clamp(1, words.max(1))).max(1);
        let chunks = words.div_ceil(chunk_rows).max(1);
        let frequencies = frequencies(corpus);
        let mut by_frequency: Vec<usize> = (0..words).collect();
        by_frequency.sort_by_key(|&word| Reverse(frequencies[word]));
        let mut rows = vec![0; words];
        for (rank, &word) in by_frequency.iter().enumerate() {
            rows[word] = (rank % chunks * chunk_rows + rank / chunks) as u32;
        }
        let lengths: Vec<u32> = (0..corpus.documents()).map(|d| corpus.document(d).len() as u32).collect();
        let (labels, starts) = share_out(&lengths, workers, seed);
        let mut order = vec![0; labels.len()];
        labels.iter().enumerate().for_each(|(document, &label)| order[label as usize] = document as u32);
        let share = |worker: usize| {
            let mut share = order[starts[worker] as usize..starts[worker + 1] as usize].to_vec();
            // Training begins with the first of them, which must be any.
            share.sort_unstable();
            let labels = shuffled_labels(share.len() as u32, seed);
            labels.iter().map(|&label| share[label as usize]).collect()
        };
        Self { rows, chunks, chunk_rows, tokens: corpus.tokens(), documents: (0..workers).map(share).collect() }
    }

    /// How many workers there are.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.documents.len()
    }

    /// How many documents there are.
    #[must_use]
    pub fn documents(&self) -> usize {
        self.documents.iter().map(Vec::len).sum()
    }

    /// How many rows the table of words has. The last ones of a chunk may belong to no word.
    #[must_use]
    pub fn table_rows(&self) -> usize {
        self.chunks * self.chunk_rows
    }

    /// The chunks in the order in which a worker goes through them: they begin at different ones, so that on one
    /// machine they rarely want the same.
    pub fn turns(&self, worker: usize) -> impl Iterator<Item = usize> + use<> {
        let (chunks, first) = (self.chunks, worker * self.chunks / self.workers());
        (0..chunks).map(move |turn| (first + turn) % chunks)
    }
}

/// How often each word occurs.
#[must_use]
pub fn frequencies(corpus: &Corpus) -> Vec<u64> {
    let mut frequencies = vec![0; corpus.vocabulary.len()];
    let words = (0..corpus.documents()).flat_map(|document| corpus.document(document));
    words.for_each(|&word| frequencies[word as usize] += 1);
    frequencies
}

/// The tokens of one worker. They are numbered by row of their word, and among those by document.
#[derive(Clone, Debug)]
pub struct Share {
    /// How many tokens each document has.
    pub lengths: Vec<u32>,
    /// The document of each token, as the worker counts them.
    pub documents: Vec<u32>,
    /// Where each row's tokens begin, and behind the last where they end.
    row_starts: Vec<u32>,
}

impl Share {
    /// The tokens of `worker`.
    ///
    /// # Panics
    /// If the plan is not one of this corpus.
    #[must_use]
    pub fn new(corpus: &Corpus, plan: &Plan, worker: usize) -> Self {
        let words_of = |&document: &u32| corpus.document(document as usize);
        let mut row_starts = vec![0u32; plan.table_rows() + 1];
        for words in plan.documents[worker].iter().map(words_of) {
            words.iter().for_each(|&word| row_starts[plan.rows[word as usize] as usize + 1] += 1);
        }
        for row in 0..plan.table_rows() {
            row_starts[row + 1] += row_starts[row];
        }
        let mut ends = row_starts.clone();
        let mut documents = vec![0; row_starts[plan.table_rows()] as usize];
        for (document, words) in (0..).zip(plan.documents[worker].iter().map(words_of)) {
            for &word in words {
                let end = &mut ends[plan.rows[word as usize] as usize];
                documents[*end as usize] = document;
                *end += 1;
            }
        }
        let lengths = plan.documents[worker].iter().map(|document| words_of(document).len() as u32).collect();
        Self { lengths, documents, row_starts }
    }

    /// How many tokens there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// The tokens of a row's word.
    #[must_use]
    pub fn of_row(&self, row: usize) -> Range<usize> {
        self.row_starts[row] as usize..self.row_starts[row + 1] as usize
    }

    /// Those of them that belong to the first `documents`.
    #[must_use]
    pub fn of_row_in(&self, row: usize, documents: usize) -> Range<usize> {
        let tokens = self.of_row(row);
        if documents == self.lengths.len() {
            return tokens;
        }
        let count = self.documents[tokens.clone()].partition_point(|&document| (document as usize) < documents);
        tokens.start..tokens.start + count
    }

    /// The rows among `rows` that have tokens of the first `documents`.
    #[must_use]
    pub fn present(&self, rows: Range<usize>, documents: usize) -> Vec<u64> {
        rows.filter(|&row| !self.of_row_in(row, documents).is_empty()).map(|row| row as u64).collect()
    }

    /// The tokens of every document, one document after the other.
    #[must_use]
    pub fn by_document(&self) -> Vec<u32> {
        let mut ends: Vec<u32> = Vec::with_capacity(self.lengths.len());
        let mut end = 0;
        for length in &self.lengths {
            ends.push(end);
            end += length;
        }
        let mut tokens = vec![0; self.len()];
        for (token, &document) in (0..).zip(&self.documents) {
            tokens[ends[document as usize] as usize] = token;
            ends[document as usize] += 1;
        }
        tokens
    }
}
