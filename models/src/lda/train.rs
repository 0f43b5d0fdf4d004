//! Trains a topic model on tables: the same program on threads, over tcp and in the simulator.
//!
//! One table holds a row of counts for each word, another the totals of the topics. A worker has documents, and in an
//! epoch goes through all chunks of words: it borrows the rows of a chunk, gives every one of its tokens of those words a
//! new topic, and gives the rows back. A clock is a part of the epoch's chunks. Where documents and words propose topics,
//! an epoch's first clock begins with a pass over the documents, for which no row is needed.
//!
//! Before the first epoch there are passes over ever more of the documents, cut into as many clocks.

use super::documents::Documents;
use super::growth::{self, Stage};
use super::likelihood::{self, LogRising};
use super::metropolis::{self, Proposals};
use super::share::{self, Plan, Share};
use super::topics::{Priors, Topics};
use super::{NO_TOPIC, Sampler, Topic, generator, kernel};
use crate::corpus::Corpus;
use crate::epoch::Course;
use crate::resume::{self, Identity, Progress, ResumeError, identity, told};
use hemiola::checkpoint::Checkpoints;
use hemiola::{
    Consistency, Deployment, Error, Observer, Outcome, Program, Row, RowKind, RowRef, Rows, TableId, TableSchema,
    Values, Worker,
};
use rand_core::Rng;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use thiserror::Error as ThisError;

/// The table of words: a row of counts for each, one per topic.
pub const WORDS: TableId = TableId(0);
/// The table of totals: one row, with the number of tokens of each topic.
pub const TOTALS: TableId = TableId(1);

/// Whole numbers up to this one are exact as the table's numbers.
const EXACT_MAX: u64 = 1 << f32::MANTISSA_DIGITS;

/// How to train.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Number of topics.
    pub topics: usize,
    /// What every topic of a document has before any token.
    pub alpha: f32,
    /// What every word of a topic has before any token.
    pub beta: f32,
    /// How topics are drawn.
    pub sampler: Sampler,
    /// Passes over the tokens.
    pub epochs: u32,
    /// The part of the documents with which training begins, before the first epoch; one for all of them, with topics
    /// that are drawn evenly. Without it [`growth::usual_part`].
    pub begin_with: Option<f32>,
    /// Into how many clocks an epoch is cut.
    pub clocks_per_epoch: u32,
    /// Into how many chunks the words are cut. With fewer than twice the threads of a process, those wait for one
    /// another.
    pub chunks: u32,
    /// How stale counts may be.
    pub consistency: Consistency,
    /// The likelihood is computed after every so many epochs, and after the last.
    pub evaluate_every: u32,
    /// Fixes the first topics and everything drawn.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            topics: 100,
            alpha: 0.1,
            beta: 0.01,
            sampler: Sampler::Auto,
            epochs: 100,
            begin_with: None,
            clocks_per_epoch: 1,
            chunks: 32,
            consistency: Consistency::Essp { staleness: 2 },
            evaluate_every: 10,
            seed: 1,
        }
    }
}

/// The counts of a trained model, and how training went.
#[derive(Debug)]
pub struct Trained {
    /// Number of topics.
    pub topics: usize,
    /// For each word in the order of the vocabulary, how many of its tokens each topic has.
    pub word_topics: Vec<u32>,
    /// How many tokens each topic has.
    pub totals: Vec<u32>,
    /// One line per epoch.
    pub epochs: Vec<Epoch>,
    /// Staleness, and where the workers' time went.
    pub outcome: Outcome,
}

/// How good a topic model is after an epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// The joint log-likelihood per token, where it was asked for. While others go on it is of counts in motion.
    pub objective: Option<f64>,
    /// The share of tokens that changed their topic.
    pub moved: f64,
}

/// How far training is after an epoch.
pub type Epoch = crate::Epoch<Quality>;

/// Why a topic model could not be trained.
#[derive(Debug, ThisError)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum TrainError {
    #[error("there is nothing to train on: the corpus has no words")]
    NoTokens,
    #[error("the number of topics must be between 1 and {NO_TOPIC}, not {topics}")]
    Topics { topics: usize },
    #[error("{what} must be a number above zero, not {value}")]
    NotPositive { what: &'static str, value: f32 },
    #[error("the part of the documents to begin with must be above zero and at most one, not {part}")]
    Part { part: f32 },
    #[error("{what} must be at least 1")]
    Zero { what: &'static str },
    #[error("a document may have at most {} words, and document {} has {words}: cut it into parts", u16::MAX, document + 1)]
    LongDocument { document: usize, words: usize },
    #[error("a word may occur at most {EXACT_MAX} times, and word {word} occurs {count} times: leave it out")]
    FrequentWord { word: usize, count: u64 },
    #[error("a corpus may have at most {} words in all, and this one has {tokens}", i32::MAX)]
    Tokens { tokens: usize },
    #[error("counts cannot be sent in parts, so a topic model cannot be trained with a value bound: use ssp or essp")]
    ValueBound,
    #[error(transparent)]
    Resume(#[from] ResumeError),
    #[error(transparent)]
    Job(#[from] Error),
}

impl Config {
    /// Checks that the numbers can be.
    ///
    /// # Errors
    /// The first that cannot.
    pub fn validate(&self) -> Result<(), TrainError> {
        if !(1..=usize::from(NO_TOPIC)).contains(&self.topics) {
            return Err(TrainError::Topics { topics: self.topics });
        }
        for (what, value) in [("alpha", self.alpha), ("beta", self.beta)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(TrainError::NotPositive { what, value });
            }
        }
        if let Some(part) = self.begin_with.filter(|part| !(*part > 0.0 && *part <= 1.0)) {
            return Err(TrainError::Part { part });
        }
        for (what, value) in [
            ("the number of epochs", self.epochs),
            ("the number of clocks per epoch", self.clocks_per_epoch),
            ("the number of chunks", self.chunks),
            ("the number of epochs between evaluations", self.evaluate_every),
        ] {
            if value == 0 {
                return Err(TrainError::Zero { what });
            }
        }
        if matches!(self.consistency, Consistency::Vap { .. }) {
            return Err(TrainError::ValueBound);
        }
        Ok(())
    }

    /// The two tables for a corpus shared out by `plan`.
    #[must_use]
    pub fn tables(&self, plan: &Plan) -> Vec<TableSchema> {
        let words = TableSchema {
            chunk_rows: Some(plan.chunk_rows as u64),
            consistency: self.consistency,
            ..TableSchema::dense("words", plan.table_rows() as u64, self.topics as u32)
        };
        // Totals outgrow what the numbers of a dense row hold exactly.
        let totals = TableSchema {
            rows: Some(1),
            consistency: self.consistency,
            ..TableSchema::keyed("totals", RowKind::Counts)
        };
        vec![words, totals]
    }

    /// How a corpus is shared out among so many workers.
    #[must_use]
    pub fn plan(&self, corpus: &Corpus, workers: u32) -> Plan {
        Plan::new(corpus, workers as usize, self.chunks as usize, self.seed)
    }

    /// The passes before the first epoch.
    #[must_use]
    pub fn stages(&self, plan: &Plan) -> Vec<Stage> {
        growth::stages(self.first_part((plan.tokens, plan.documents()), plan.rows.len()), plan)
    }

    /// The part of the documents to begin with, if there are so many tokens in so many of them and different words.
    fn first_part(&self, size: (usize, usize), words: usize) -> f32 {
        let sampler = self.sampler.settled(size, self.topics);
        self.begin_with.unwrap_or_else(|| growth::usual_part(sampler, size.0, self.topics, self.beta * words as f32))
    }

    /// What must be the same in a run that goes on from a checkpoint. How long to train may change.
    fn identity(&self, corpus: &Corpus) -> Identity {
        let Self { topics, alpha, beta, chunks, consistency, seed, .. } = self;
        let size = (corpus.tokens(), corpus.documents());
        let mut sum = crc32fast::Hasher::new();
        sum.update(&corpus.vocabulary.checksum().to_le_bytes());
        for document in (0..corpus.documents()).map(|document| corpus.document(document)) {
            sum.update(&(document.len() as u64).to_le_bytes());
            sum.update(bytemuck::cast_slice(document));
        }
        let documents = format!(
            "{} of {} different words (checksum {:08x})",
            corpus.documents(),
            corpus.vocabulary.len(),
            sum.finalize()
        );
        identity(
            "lda",
            [
                ("topics", topics.to_string()),
                ("alpha", alpha.to_string()),
                ("beta", beta.to_string()),
                ("sampler", told(self.sampler.settled(size, *topics))),
                ("a first part of", self.first_part(size, corpus.vocabulary.len()).to_string()),
                ("chunks", chunks.to_string()),
                ("consistency", told(consistency)),
                ("seed", seed.to_string()),
                ("documents", documents),
            ],
        )
    }

    fn priors(&self, plan: &Plan) -> Priors {
        Priors { alpha: self.alpha, beta: self.beta, words: plan.rows.len() }
    }

    /// Which chunks' turns belong to a clock of every pass.
    fn turns_of(&self, clock: u32, chunks: usize) -> std::ops::Range<usize> {
        let turn = |clock: u32| chunks * clock as usize / self.clocks_per_epoch as usize;
        turn(clock)..turn(clock + 1)
    }
}

/// Checks that the corpus can be trained on.
pub(super) fn check(corpus: &Corpus) -> Result<(), TrainError> {
    let tokens = corpus.tokens();
    if tokens == 0 {
        return Err(TrainError::NoTokens);
    }
    if i32::try_from(tokens).is_err() {
        return Err(TrainError::Tokens { tokens });
    }
    let lengths = (0..corpus.documents()).map(|document| (document, corpus.document(document).len()));
    if let Some((document, words)) = lengths.into_iter().find(|(_, words)| *words > usize::from(u16::MAX)) {
        return Err(TrainError::LongDocument { document, words });
    }
    let frequencies = share::frequencies(corpus);
    match frequencies.iter().position(|&count| count > EXACT_MAX) {
        Some(word) => Err(TrainError::FrequentWord { word, count: frequencies[word] }),
        None => Ok(()),
    }
}

/// Trains a topic model, and shows `observe` how far it is after every epoch.
///
/// # Errors
/// If the configuration or the corpus cannot be, or the job fails.
pub fn train(
    config: &Config,
    deployment: &Deployment,
    corpus: &Corpus,
    observe: impl FnMut(&Epoch) + Send,
) -> Result<Trained, TrainError> {
    train_saved(config, deployment, None, corpus, observe)
}

/// As [`train`], with checkpoints after whole passes. What must be the same in a run that goes on from one is added to
/// what `checkpoints` say of that.
///
/// # Errors
/// As [`train`]; and if the checkpoint to go on from is of another training.
pub fn train_saved(
    config: &Config,
    deployment: &Deployment,
    checkpoints: Option<&Checkpoints>,
    corpus: &Corpus,
    observe: impl FnMut(&Epoch) + Send,
) -> Result<Trained, TrainError> {
    train_by(config, deployment.workers(), corpus, observe, |tables, program, observer| {
        let checkpoints = checkpoints.map(|checkpoints| (checkpoints, config.identity(corpus)));
        resume::run((deployment, tables), checkpoints, config.clocks_per_epoch, program, observer)
    })
}

/// Trains a topic model as [`train`] does, on workers that `run` runs.
pub(crate) fn train_by(
    config: &Config,
    workers: u32,
    corpus: &Corpus,
    mut observe: impl FnMut(&Epoch) + Send,
    run: impl FnOnce(&[TableSchema], &Program<'_>, &mut Observer<'_>) -> Result<Outcome, TrainError>,
) -> Result<Trained, TrainError> {
    config.validate()?;
    check(corpus)?;
    let plan = config.plan(corpus, workers);
    let mut epochs = Vec::new();
    let program = |worker: &mut Worker| WorkerProgram::new(config, corpus, &plan, worker).run(worker);
    let mut outcome = run(&config.tables(&plan), &program, &mut |observation| {
        let epoch = Epoch::from_report(observation, plan.workers(), Quality::from_sums);
        observe(&epoch);
        epochs.push(epoch);
    })?;
    let bytes = std::mem::take(&mut outcome.results[0]);
    let numbers: Vec<u32> = bytes.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect();
    let (totals, rows) = numbers.split_at(config.topics);
    let rows_of = plan.rows.iter().flat_map(|&row| &rows[row as usize * config.topics..][..config.topics]);
    let word_topics = rows_of.copied().collect();
    Ok(Trained { topics: config.topics, word_topics, totals: totals.to_vec(), epochs, outcome })
}

/// What a worker knows of its tokens, by the sampler.
enum Tokens {
    Drawn(Documents),
    Proposed(Proposals),
}

/// What one worker of the job does.
struct WorkerProgram<'a> {
    config: &'a Config,
    plan: &'a Plan,
    sampler: Sampler,
    worker: usize,
    share: Share,
    /// The passes before the first epoch.
    stages: Vec<Stage>,
    /// Passes done: those, then epochs.
    passes: u32,
    /// How many of the documents have topics.
    known: usize,
    tokens: Tokens,
    /// Per chunk, the rows that have tokens of these.
    wanted: Vec<Vec<u64>>,
    topics: Topics,
    course: Course,
}

impl<'a> WorkerProgram<'a> {
    fn new(config: &'a Config, corpus: &Corpus, plan: &'a Plan, worker: &Worker) -> Self {
        let worker = worker.id().index();
        let share = Share::new(corpus, plan, worker);
        Self {
            topics: Topics::new(config.priors(plan), &vec![0; config.topics]),
            tokens: Tokens::Drawn(Documents::new(&share, config.topics)),
            sampler: config.sampler.settled((corpus.tokens(), corpus.documents()), config.topics),
            stages: config.stages(plan),
            passes: 0,
            known: 0,
            config,
            plan,
            worker,
            share,
            wanted: Vec::new(),
            course: Course::default(),
        }
    }

    fn run(mut self, worker: &mut Worker) -> Result<Vec<u8>, Error> {
        let stages = self.stages.len() as u32;
        let mut resumed = worker.resumed();
        while self.passes < stages.saturating_add(self.config.epochs) || resumed.is_some() {
            let moved = match resumed.take() {
                Some(state) => self.restore(&state).map_err(|error| Error::program(TrainError::from(error)))?,
                None => self.train_pass(worker)?,
            };
            if self.passes > stages {
                self.report(worker, moved)?;
            }
        }
        worker.clock()?;
        // Everyone keeps its clock within reach until worker 0 has read the model.
        if self.worker == 0 { self.read_model(worker) } else { Ok(Vec::new()) }
    }

    /// The next pass, which may be followed by a checkpoint; how many tokens got another topic than they had.
    fn train_pass(&mut self, worker: &mut Worker) -> Result<u64, Error> {
        let began = worker.seconds();
        let moved = self.pass(worker)?;
        self.course.train_seconds += worker.seconds() - began;
        if worker.checkpoint_due() {
            let head = Progress { epochs: self.passes, met: moved as f64, course: self.course };
            let of_tokens: [&[Topic]; 2] = match &self.tokens {
                Tokens::Drawn(documents) => [documents.assignments(), &[]],
                Tokens::Proposed(proposals) => [proposals.assignments(), &proposals.in_hand()],
            };
            worker.save(&[&head.to_bytes(), bytemuck::cast_slice(of_tokens[0]), bytemuck::cast_slice(of_tokens[1])])?;
        }
        Ok(moved)
    }

    /// Goes on after a pass that is done; how many tokens got another topic in it, which is reported again.
    fn restore(&mut self, state: &[u8]) -> Result<u64, ResumeError> {
        let (stages, epochs, count) = (self.stages.len() as u32, self.config.epochs, self.share.len());
        let proposed = self.sampler == Sampler::MetropolisHastings && Progress::passes(state)? >= stages;
        let mut assignments = vec![NO_TOPIC; count];
        let mut in_hand = if proposed { vec![NO_TOPIC; count * metropolis::IN_HAND] } else { Vec::new() };
        let mut rest = [bytemuck::cast_slice_mut(&mut assignments), bytemuck::cast_slice_mut(&mut in_hand)];
        let progress =
            Progress::restore(state, &mut rest, stages.saturating_add(epochs)).map_err(|error| match error {
                ResumeError::PastEnd { done, .. } => ResumeError::PastEnd { done: done - stages, epochs },
                error => error,
            })?;
        (self.passes, self.course) = (progress.epochs, progress.course);
        let last = self.stages[self.passes.min(stages) as usize - 1];
        self.know(last.documents(self.share.lengths.len()));
        let right = |topic: Topic, known: bool| (usize::from(topic) < self.config.topics) == known;
        let known = |token: usize| (self.share.documents[token] as usize) < self.known;
        let all_right = assignments.iter().enumerate().all(|(token, &topic)| right(topic, known(token)))
            && in_hand.iter().all(|&topic| right(topic, true));
        if !all_right {
            return Err(ResumeError::Foreign);
        }
        self.tokens = if proposed {
            Tokens::Proposed(Proposals::with(&self.share, self.config.topics, assignments, &in_hand))
        } else {
            Tokens::Drawn(Documents::with(&self.share, self.config.topics, &assignments))
        };
        Ok(progress.met as u64)
    }

    /// The number of documents that have topics is another.
    fn know(&mut self, documents: usize) {
        if documents != self.known || self.wanted.is_empty() {
            self.wanted = self.wanted(documents);
        }
        self.known = documents;
    }

    /// Goes through the documents once, or the part of them that has its turn; how many tokens got another topic than
    /// they had.
    fn pass(&mut self, worker: &mut Worker) -> Result<u64, Error> {
        let (number, known) = (self.passes, self.known);
        let stage = self.stages.get(number as usize).copied();
        if let Some(stage) = stage {
            self.know(stage.documents(self.share.lengths.len()));
        }
        let epoch = match stage {
            Some(_) => u32::MAX - number,
            None => number - self.stages.len() as u32 + 1,
        };
        let mut random = generator(self.config.seed, self.worker, epoch);
        let (turns, new): (Vec<usize>, _) = (self.plan.turns(self.worker).collect(), known..self.known);
        let mut moved = self.sample_documents(worker, &mut random)?;
        for clock in 0..self.config.clocks_per_epoch {
            for &chunk in &turns[self.config.turns_of(clock, turns.len())] {
                let samples = stage.is_none_or(|stage| stage.samples);
                moved += self.sample_chunk(worker, chunk, new.clone(), samples, &mut random)?;
            }
            worker.clock()?;
        }
        self.passes += 1;
        if let Tokens::Drawn(documents) = &mut self.tokens {
            documents.sort();
            if self.sampler == Sampler::MetropolisHastings && self.passes == self.stages.len() as u32 {
                let (topics, assignments) = (self.config.topics, documents.assignments().to_vec());
                self.tokens = Tokens::Proposed(Proposals::new(&self.share, topics, assignments));
            }
        }
        Ok(moved)
    }

    /// Goes through the documents, where they take part; how many tokens got another topic.
    fn sample_documents(&mut self, worker: &mut Worker, random: &mut impl Rng) -> Result<u64, Error> {
        let Tokens::Proposed(_) = self.tokens else { return Ok(0) };
        self.with_totals(worker, |program, _| {
            let Self { topics, tokens, .. } = program;
            let Tokens::Proposed(proposals) = tokens else { return Ok(0) };
            Ok(proposals.sample_documents(topics, random))
        })
    }

    /// Goes through the words of a chunk. Tokens of the documents `new` are added, and if it `samples`, all of these and
    /// the documents before them get new topics; how many got another than they had.
    fn sample_chunk(
        &mut self,
        worker: &mut Worker,
        chunk: usize,
        new: Range<usize>,
        samples: bool,
        random: &mut impl Rng,
    ) -> Result<u64, Error> {
        let (mut moved, mut work) = (0, 0);
        self.with_totals(worker, |program, worker| {
            program.edit(worker, chunk, |program, row, row_id| {
                let Self { share, topics, tokens, .. } = program;
                let known = share.of_row_in(row_id, new.start);
                let all = if new.is_empty() { known.clone() } else { share.of_row_in(row_id, new.end) };
                work += all.len() as u64;
                for token in known.end..all.end {
                    let Tokens::Drawn(documents) = tokens else { break };
                    let topic = growth::first_topic(known.clone(), documents.assignments(), row.len(), random);
                    documents.assign(share.documents[token], token, topic);
                    row[usize::from(topic)] += 1.0;
                    topics.add(topic);
                }
                moved += match tokens {
                    _ if !samples => 0,
                    Tokens::Drawn(documents) => kernel::sample_word(row, all, share, documents, topics, random),
                    Tokens::Proposed(proposals) => proposals.sample_word(row, all, topics, random),
                };
            })
        })?;
        worker.work(work)?;
        Ok(moved)
    }

    /// Lets `sample` change the totals of the topics, and gives the changes to the table.
    fn with_totals<R>(
        &mut self,
        worker: &mut Worker,
        sample: impl FnOnce(&mut Self, &mut Worker) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let totals = read_totals(&worker.get(TOTALS, &[0])?, self.config.topics);
        self.topics.set_totals(&totals);
        let result = sample(self, worker)?;
        let change: Vec<i32> = self.topics.totals().iter().zip(&totals).map(|(new, old)| new - old).collect();
        worker.inc(TOTALS, &[0], &counts(&change))?;
        Ok(result)
    }

    /// Per chunk, the rows that have tokens of the first `documents`.
    fn wanted(&self, documents: usize) -> Vec<Vec<u64>> {
        let rows_of = |chunk: usize| chunk * self.plan.chunk_rows..(chunk + 1) * self.plan.chunk_rows;
        (0..self.plan.chunks).map(|chunk| self.share.present(rows_of(chunk), documents)).collect()
    }

    /// Borrows the rows of a chunk that have tokens here and calls `change` for each, with its number.
    fn edit(
        &mut self,
        worker: &mut Worker,
        chunk: usize,
        mut change: impl FnMut(&mut Self, &mut [f32], usize),
    ) -> Result<(), Error> {
        let wanted = std::mem::take(&mut self.wanted[chunk]);
        if !wanted.is_empty() {
            worker.edit(WORDS, &Rows::List(&wanted), |rows| {
                let first = rows.first_row(0);
                for &row in &wanted {
                    let start = (row - first) as usize * self.config.topics;
                    change(self, &mut rows.chunk_mut(0)[start..][..self.config.topics], row as usize);
                }
            })?;
        }
        self.wanted[chunk] = wanted;
        Ok(())
    }

    /// Adds the worker's part to the epoch's report.
    fn report(&mut self, worker: &mut Worker, moved: u64) -> Result<(), Error> {
        let epoch = self.passes - self.stages.len() as u32;
        let evaluated = epoch.is_multiple_of(self.config.evaluate_every) || epoch == self.config.epochs;
        let likelihood = if evaluated { self.likelihood(worker)? } else { f64::NAN };
        let clock = self.passes * self.config.clocks_per_epoch;
        self.course.report(worker, epoch, clock, &[likelihood, moved as f64, self.share.len() as f64]);
        Ok(())
    }

    /// The worker's part of the joint log-likelihood: its documents, and every so manyth chunk of words.
    fn likelihood(&self, worker: &mut Worker) -> Result<f64, Error> {
        let Config { topics, alpha, beta, .. } = *self.config;
        let mut sum = match &self.tokens {
            Tokens::Drawn(documents) => likelihood::of_documents(|f| documents.for_each(f), alpha, topics),
            Tokens::Proposed(proposals) => likelihood::of_documents(|f| proposals.for_each(f), alpha, topics),
        };
        let of_beta = LogRising::new(f64::from(beta));
        for chunk in (self.worker..self.plan.chunks).step_by(self.plan.workers()) {
            if let Values::Dense { numbers, .. } = worker.get_latest(WORDS, &self.rows_of(chunk))? {
                sum += likelihood::of_rows(&numbers, &of_beta);
            }
        }
        if self.worker == 0 {
            let totals = read_totals(&worker.get_latest(TOTALS, &[0])?, topics);
            sum += likelihood::of_totals(&totals, beta, self.plan.rows.len());
        }
        Ok(sum)
    }

    fn rows_of(&self, chunk: usize) -> Vec<u64> {
        let first = (chunk * self.plan.chunk_rows) as u64;
        (first..first + self.plan.chunk_rows as u64).collect()
    }

    /// The totals and all rows of words, as bytes of whole numbers.
    fn read_model(&self, worker: &mut Worker) -> Result<Vec<u8>, Error> {
        let topics = self.config.topics;
        let totals = read_totals(&worker.get_latest(TOTALS, &[0])?, topics);
        let mut bytes = Vec::with_capacity((1 + self.plan.table_rows()) * topics * 4);
        totals.iter().for_each(|total| bytes.extend_from_slice(&total.to_ne_bytes()));
        for chunk in 0..self.plan.chunks {
            if let Values::Dense { numbers, .. } = worker.get_latest(WORDS, &self.rows_of(chunk))? {
                numbers.iter().for_each(|&count| bytes.extend_from_slice(&(count as u32).to_ne_bytes()));
            }
        }
        Ok(bytes)
    }
}

/// Changes of the totals as an update of their row.
fn counts(changes: &[i32]) -> Values {
    let changed = (0..).zip(changes).filter(|(_, change)| **change != 0);
    Values::collect(&RowKind::Counts, [Row::Counts(changed.map(|(topic, &change)| (topic, change)).collect())].iter())
}

fn read_totals(values: &Values, topics: usize) -> Vec<i32> {
    let mut totals = vec![0; topics];
    if let RowRef::Counts(columns, counts) = values.row(0) {
        columns.iter().zip(counts).for_each(|(&column, &count)| totals[column as usize] = count);
    }
    totals
}

impl Quality {
    /// From what the workers have reported of their tokens.
    pub(super) fn from_sums(sums: &[f64]) -> Self {
        let &[likelihood, moved, tokens] = sums else { return Self::default() };
        Self { objective: (!likelihood.is_nan()).then_some(likelihood / tokens), moved: moved / tokens }
    }
}
