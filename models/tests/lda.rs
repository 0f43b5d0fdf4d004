//! Topic models on tables: no count is lost under any model of consistency, and under Bsp the bits are those of a plain
//! sequential program of the same schedule.

use hemiola::{Consistency, Deployment, sim, tcp};
use hemiola_models::Names;
use hemiola_models::corpus::Corpus;
use hemiola_models::lda::documents::Documents;
use hemiola_models::lda::growth;
use hemiola_models::lda::metropolis::Proposals;
use hemiola_models::lda::share::Share;
use hemiola_models::lda::topics::{Priors, Topics};
use hemiola_models::lda::train::{Config, TrainError, Trained, train};
use hemiola_models::lda::{Sampler, generator, kernel};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;
use std::time::Duration;

const WORKERS: u32 = 3;
const WORDS: u32 = 90;

/// Documents of two themes each out of six, and a word in fifteen that is common to all.
fn corpus() -> Corpus {
    let mut vocabulary = Names::default();
    (0..WORDS).for_each(|word| assert_eq!(vocabulary.intern(&format!("w{word}")).expect("room"), word));
    let mut corpus = Corpus::new(vocabulary);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut below = |bound: u32| random.next_u32() % bound;
    for document in 0..150 {
        let themes = [document % 6, below(6)];
        let mut word = |_| match below(15) {
            0 => below(6),
            _ => 6 + themes[below(2) as usize] * 14 + below(14),
        };
        corpus.push((0..20 + document % 30).map(&mut word).collect::<Vec<u32>>());
    }
    corpus.push([]);
    corpus
}

fn config(sampler: Sampler, topics: usize) -> Config {
    Config {
        topics,
        sampler,
        consistency: Consistency::Bsp,
        epochs: 4,
        clocks_per_epoch: 3,
        chunks: 7,
        evaluate_every: 2,
        ..Config::default()
    }
}

/// Both samplers, both ways to keep the counts of documents, and both beginnings.
fn configs() -> [Config; 4] {
    let mh = config(Sampler::MetropolisHastings, 20);
    let growing = |config: Config| Config { begin_with: Some(0.35), ..config };
    [config(Sampler::Sparse, 6), growing(config(Sampler::Sparse, 300)), growing(mh), mh]
}

/// What one worker has, and the tables as it sees them.
struct Sequential<'a> {
    share: &'a Share,
    documents: Documents,
    /// In place of the documents once there are.
    proposals: Option<Proposals>,
    rows: Vec<f32>,
    topics: Topics,
}

impl Sequential<'_> {
    /// Goes through the words of a chunk, where tokens of `new` documents come in.
    fn chunk(&mut self, rows: Range<usize>, new: Range<usize>, samples: bool, random: &mut impl Rng) {
        // Totals are read for every chunk, which rounds their inverses anew.
        let read = self.topics.totals().to_vec();
        self.topics.set_totals(&read);
        for row in rows {
            let (known, tokens) = (self.share.of_row_in(row, new.start), self.share.of_row_in(row, new.end));
            let counts = &mut self.rows[row * read.len()..][..read.len()];
            for token in known.end..tokens.end {
                let topic = growth::first_topic(known.clone(), self.documents.assignments(), read.len(), random);
                self.documents.assign(self.share.documents[token], token, topic);
                counts[usize::from(topic)] += 1.0;
                self.topics.add(topic);
            }
            if samples && !tokens.is_empty() {
                match &mut self.proposals {
                    Some(proposals) => proposals.sample_word(counts, tokens, &mut self.topics, random),
                    None => {
                        let Self { documents, topics, share, .. } = self;
                        kernel::sample_word(counts, tokens, share, documents, topics, random)
                    }
                };
            }
        }
    }
}

/// The schedule, written plainly: in every clock each worker starts from the same counts and adds up what it changes;
/// at the clock's end the changes are added in worker order. Returns the counts of words and the totals, and
/// [`log_joint`].
fn sequential(config: &Config, corpus: &Corpus) -> ((Vec<u32>, Vec<u32>), f64) {
    let (plan, topics) = (config.plan(corpus, WORKERS), config.topics);
    let priors = Priors { alpha: config.alpha, beta: config.beta, words: corpus.vocabulary.len() };
    let shares: Vec<Share> = (0..WORKERS as usize).map(|worker| Share::new(corpus, &plan, worker)).collect();
    let worker = |share| Sequential {
        share,
        documents: Documents::new(share, topics),
        proposals: None,
        rows: vec![0.0; plan.table_rows() * topics],
        topics: Topics::new(priors, &vec![0; topics]),
    };
    let mut workers: Vec<Sequential> = shares.iter().map(worker).collect();
    let (mut rows, mut totals) = (vec![0.0; plan.table_rows() * topics], vec![0; topics]);
    let rows_of = |chunk: usize| chunk * plan.chunk_rows..(chunk + 1) * plan.chunk_rows;
    let known = |stage: Option<&growth::Stage>, all| stage.map_or(0, |stage| stage.documents(all));
    let stages = config.stages(&plan);
    let clocks = config.clocks_per_epoch as usize;
    for (number, stage) in stages.iter().enumerate() {
        let mut randoms: Vec<_> =
            (0..workers.len()).map(|worker| generator(config.seed, worker, u32::MAX - number as u32)).collect();
        for clock in 0..clocks {
            for (id, (worker, random)) in workers.iter_mut().zip(&mut randoms).enumerate() {
                let (turns, all): (Vec<usize>, _) = (plan.turns(id).collect(), worker.share.lengths.len());
                let new = known(number.checked_sub(1).map(|before| &stages[before]), all)..stage.documents(all);
                for &chunk in &turns[turns.len() * clock / clocks..turns.len() * (clock + 1) / clocks] {
                    worker.chunk(rows_of(chunk), new.clone(), stage.samples, random);
                }
            }
            exchange(&mut workers, &mut rows, &mut totals);
        }
        workers.iter_mut().for_each(|worker| worker.documents.sort());
    }
    if config.sampler == Sampler::MetropolisHastings {
        for worker in &mut workers {
            worker.proposals = Some(Proposals::new(worker.share, topics, worker.documents.assignments().to_vec()));
        }
    }
    for epoch in 1..=config.epochs {
        let mut randoms: Vec<_> = (0..workers.len()).map(|worker| generator(config.seed, worker, epoch)).collect();
        for clock in 0..clocks {
            for (id, (worker, random)) in workers.iter_mut().zip(&mut randoms).enumerate() {
                if let (0, Some(proposals)) = (clock, &mut worker.proposals) {
                    proposals.sample_documents(&mut worker.topics, random);
                }
                let (turns, all): (Vec<usize>, _) = (plan.turns(id).collect(), worker.share.lengths.len());
                for &chunk in &turns[turns.len() * clock / clocks..turns.len() * (clock + 1) / clocks] {
                    worker.chunk(rows_of(chunk), all..all, true, random);
                }
            }
            exchange(&mut workers, &mut rows, &mut totals);
        }
        workers.iter_mut().for_each(|worker| worker.documents.sort());
    }
    let in_order = plan.rows.iter().flat_map(|&row| rows[row as usize * topics..][..topics].iter());
    let counts = (in_order.map(|&count| count as u32).collect(), totals.iter().map(|&total| total as u32).collect());
    (counts, log_joint(config, corpus, &workers))
}

/// How likely the words and the topics of all tokens are together, without any gamma function: token after token, its
/// topic by what those before it in its document have, and the word by what those of that topic are.
fn log_joint(config: &Config, corpus: &Corpus, workers: &[Sequential]) -> f64 {
    let (alpha, beta) = (f64::from(config.alpha), f64::from(config.beta));
    let (all_alpha, all_beta) = (alpha * config.topics as f64, beta * corpus.vocabulary.len() as f64);
    let (mut of_document, mut lengths) = (HashMap::new(), HashMap::new());
    let (mut of_word, mut totals) = (HashMap::new(), HashMap::new());
    let mut sum = 0.0;
    for (id, worker) in workers.iter().enumerate() {
        let assignments = worker.proposals.as_ref().map_or(worker.documents.assignments(), Proposals::assignments);
        for row in 0..worker.rows.len() / config.topics {
            for token in worker.share.of_row(row) {
                let (document, topic) = ((id, worker.share.documents[token]), assignments[token]);
                sum += ((drawn(&mut of_document, (document, topic)) + alpha)
                    / (drawn(&mut lengths, document) + all_alpha))
                    .ln();
                sum += ((drawn(&mut of_word, (row, topic)) + beta) / (drawn(&mut totals, topic) + all_beta)).ln();
            }
        }
    }
    sum
}

/// How often that has been drawn before; now it is once more.
fn drawn<K: Eq + Hash>(counts: &mut HashMap<K, f64>, what: K) -> f64 {
    let count = counts.entry(what).or_default();
    *count += 1.0;
    *count - 1.0
}

/// Adds up what all workers have changed since the last time, and shows it to all.
fn exchange(workers: &mut [Sequential], rows: &mut [f32], totals: &mut [i32]) {
    let (first_rows, first_totals) = (rows.to_vec(), totals.to_vec());
    for worker in &*workers {
        rows.iter_mut().zip(worker.rows.iter().zip(&first_rows)).for_each(|(n, (a, b))| *n += a - b);
        totals.iter_mut().zip(worker.topics.totals().iter().zip(&first_totals)).for_each(|(n, (a, b))| *n += a - b);
    }
    for worker in workers {
        worker.rows.copy_from_slice(rows);
        worker.topics.set_totals(totals);
    }
}

fn train_on(config: &Config, deployment: &Deployment) -> Trained {
    train(config, deployment, &corpus(), |_| {}).expect("trained")
}

/// Every token is counted once: in its word's row, and in its topic's total.
fn assert_nothing_lost(trained: &Trained, corpus: &Corpus) {
    let mut words = vec![0; WORDS as usize];
    (0..corpus.documents()).flat_map(|d| corpus.document(d)).for_each(|&word| words[word as usize] += 1);
    let rows = || trained.word_topics.chunks(trained.topics);
    assert_eq!(rows().map(|row| row.iter().sum::<u32>()).collect::<Vec<_>>(), words);
    let mut totals = vec![0; trained.topics];
    rows().for_each(|row| totals.iter_mut().zip(row).for_each(|(total, count)| *total += count));
    assert_eq!(totals, trained.totals);
}

#[test]
fn bsp_on_threads_gives_the_counts_of_the_sequential_program_and_tells_their_likelihood() {
    let corpus = corpus();
    for config in configs() {
        let trained = train_on(&config, &Deployment::threads(WORKERS));
        assert_nothing_lost(&trained, &corpus);
        let told = trained.epochs.last().and_then(|epoch| epoch.quality.objective).expect("it is told after the last");
        let (counts, log_joint) = sequential(&config, &corpus);
        assert_eq!((trained.word_topics, trained.totals), counts, "{config:?}");
        let per_token = log_joint / corpus.tokens() as f64;
        assert!((told / per_token - 1.0).abs() < 1e-9, "{config:?}: {told} was told of {per_token} per token");
    }
}

#[test]
fn bsp_in_the_simulator_gives_the_counts_of_the_threads() {
    for config in configs() {
        let cluster = sim::Config { servers: sim::Servers::Apart(2), ..sim::Config::new(WORKERS) };
        let simulated = train_on(&config, &Deployment::Sim(cluster));
        let threads = train_on(&config, &Deployment::threads(WORKERS));
        assert_eq!(simulated.word_topics, threads.word_topics);
        assert_eq!(simulated.totals, threads.totals);
        let objectives =
            |trained: &Trained| trained.epochs.iter().map(|epoch| epoch.quality.objective).collect::<Vec<_>>();
        for (a, b) in objectives(&simulated).into_iter().zip(objectives(&threads)) {
            assert_eq!(a.is_some(), b.is_some());
            assert!((a.unwrap_or(0.0) - b.unwrap_or(0.0)).abs() < 1e-9, "sums of the same numbers in another order");
        }
    }
}

#[test]
fn bsp_in_processes_gives_the_counts_of_the_threads() {
    let config = config(Sampler::Sparse, 6);
    let program = std::env::current_exe().expect("a test has a program").into();
    let test = "bsp_in_processes_gives_the_counts_of_the_threads";
    let command = Some(vec![program, test.into(), "--exact".into(), "--nocapture".into()]);
    let processes = tcp::Config {
        processes: WORKERS,
        servers: 1,
        command,
        timeout: Duration::from_secs(120),
        ..Default::default()
    };
    let apart = train_on(&config, &Deployment::Tcp(processes));
    let threads = train_on(&config, &Deployment::threads(WORKERS));
    assert_eq!((apart.word_topics, apart.totals), (threads.word_topics, threads.totals));
}

#[test]
fn no_count_is_lost_and_something_is_learnt_under_any_model() {
    let corpus = corpus();
    for consistency in
        [Consistency::Bsp, Consistency::Ssp { staleness: 1 }, Consistency::Essp { staleness: 3 }, Consistency::Async]
    {
        for config in configs() {
            let config = Config { consistency, epochs: 12, ..config };
            for deployment in [Deployment::threads(WORKERS), Deployment::sim(WORKERS)] {
                let objectives = |config: &Config| {
                    let trained = train_on(config, &deployment);
                    assert_nothing_lost(&trained, &corpus);
                    trained.epochs.iter().map(|epoch| epoch.quality.objective).collect::<Vec<_>>()
                };
                // After passes over few documents there may be no more to learn, so the measure is a run without them.
                let before = objectives(&Config { begin_with: Some(1.0), epochs: 2, ..config })[1];
                let after = objectives(&config);
                assert_eq!((after.len(), after.iter().flatten().count()), (12, 6));
                assert!(after[11] > before, "{consistency:?}: {before:?}, {after:?}");
            }
        }
    }
}

#[test]
fn what_cannot_be_trained_is_refused_with_its_reason() {
    let sentence = |config: Config, corpus: &Corpus| {
        let error = train(&config, &Deployment::threads(1), corpus, |_| {}).expect_err("cannot be");
        assert!(!matches!(error, TrainError::Job(_)), "{error}");
        error.to_string()
    };
    let good = Config::default();
    let corpus = corpus();
    assert_eq!(
        sentence(Config { topics: 70_000, ..good }, &corpus),
        "the number of topics must be between 1 and 65535, not 70000"
    );
    assert_eq!(sentence(Config { beta: 0.0, ..good }, &corpus), "beta must be a number above zero, not 0");
    assert_eq!(
        sentence(Config { begin_with: Some(0.0), ..good }, &corpus),
        "the part of the documents to begin with must be above zero and at most one, not 0"
    );
    assert_eq!(
        sentence(Config { evaluate_every: 0, ..good }, &corpus),
        "the number of epochs between evaluations must be at least 1"
    );
    assert!(
        sentence(Config { consistency: Consistency::Vap { bound: 1.0 }, ..good }, &corpus)
            .starts_with("counts cannot be sent in parts")
    );
    let empty = Corpus::new(corpus.vocabulary.clone());
    assert_eq!(sentence(good, &empty), "there is nothing to train on: the corpus has no words");
    let mut long = empty;
    long.push(vec![1; 70_000]);
    assert_eq!(
        sentence(good, &long),
        "a document may have at most 65535 words, and document 1 has 70000: cut it into parts"
    );
}
