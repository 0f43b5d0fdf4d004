//! Topic models for the Bösen paper's figures.
//!
//! The paper's workers go from document to document, those here from word to word, so that an update that was sent early
//! is not followed by another of the same row in the pass. Going through the words eight times a pass, each time for
//! another eighth of the documents, was tried with 120 passes of a second: there 640 Mbit/s took 94, 63 and 71 % of the
//! clocks of bounded staleness on three seeds, and 40, 66 and 46 % going through them once.

use super::super::{ReproduceError, Scale};
use super::{Course, Problem};
use crate::corpus::Corpus;
use crate::generate::corpus::{SyntheticCorpus, generate_corpus};
use crate::lda::Sampler;
use crate::lda::train::{Config, train, train_by};
use hemiola::{Consistency, Deployment, sim};

/// The nodes of the paper.
const NODES: u32 = 16;
/// As long as the documents of the paper.
const TOKENS_PER_DOCUMENT: u32 = 300;
const WORDS: u32 = 500;
/// To evaluate, all workers wait for one another, so it is not done after every pass.
const EVALUATE_EVERY: u32 = 8;

pub(super) struct Topics {
    nodes: u32,
    /// After how many passes the likelihood is computed.
    pub(super) evaluate_every: u32,
    corpus: Corpus,
    topics: usize,
    seed: u64,
}

impl Topics {
    pub(super) fn new(scale: &Scale) -> Result<Self, ReproduceError> {
        let set = SyntheticCorpus {
            documents: scale.documents,
            words: WORDS.min(scale.documents),
            // Fewer than are looked for, as nobody knows how many there are.
            topics: (scale.topics * 2 / 5).max(1),
            tokens_per_document: TOKENS_PER_DOCUMENT,
            seed: scale.seed,
        };
        let (nodes, corpus) = (scale.nodes.min(NODES), generate_corpus(&set)?);
        let evaluate_every = EVALUATE_EVERY.min(scale.passes);
        Ok(Self { nodes, evaluate_every, corpus, topics: scale.topics as usize, seed: scale.seed })
    }

    /// The hyper-parameters are the paper's.
    fn config(&self, clocks: u32, consistency: Consistency, passes: u32) -> Config {
        Config {
            topics: self.topics,
            alpha: 0.1,
            beta: 0.1,
            sampler: Sampler::Sparse,
            epochs: passes,
            begin_with: Some(1.0),
            clocks_per_epoch: clocks,
            chunks: 32,
            consistency,
            evaluate_every: self.evaluate_every,
            seed: self.seed,
        }
    }

    /// How often each word's row was sent between nodes.
    pub(super) fn rows_sent(
        &self,
        cluster: &sim::Config,
        consistency: Consistency,
        passes: u32,
    ) -> Result<Vec<u64>, ReproduceError> {
        let cluster = sim::Config { record_events: true, ..cluster.clone() };
        let config = Config { evaluate_every: passes, ..self.config(1, consistency, passes) };
        let mut trace = sim::Trace::default();
        train_by(
            &config,
            cluster.nodes,
            &self.corpus,
            |_| {},
            |tables, program, observer| {
                let (outcome, happened) = sim::run_traced(&cluster, tables, program, observer)?;
                trace = happened;
                Ok(outcome)
            },
        )?;
        let words = trace.rows_sent.into_iter().filter(|((table, _), _)| *table == crate::lda::train::WORDS);
        Ok(words.map(|(_, times)| times).collect())
    }
}

impl Problem for Topics {
    fn nodes(&self) -> u32 {
        self.nodes
    }

    fn units(&self) -> u64 {
        self.corpus.tokens() as u64
    }

    fn pass_seconds(&self) -> f64 {
        0.25
    }

    /// In the paper's §5.2, MC-640 spends 63 % of the bandwidth of BS-8, which spends eight times that of BS.
    fn exchanges_per_megabit(&self) -> f64 {
        0.63 * 8.0 / 640.0
    }

    fn train(
        &self,
        cluster: &sim::Config,
        clocks: u32,
        consistency: Consistency,
        passes: u32,
    ) -> Result<Course, ReproduceError> {
        let config = self.config(clocks, consistency, passes);
        let epochs = train(&config, &Deployment::Sim(cluster.clone()), &self.corpus, |_| {})?.epochs;
        Ok(Course::new(&epochs, cluster.nodes, |quality| Some(-quality.objective?)))
    }
}
