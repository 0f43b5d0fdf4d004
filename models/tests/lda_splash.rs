//! Topic models by Splash: counts that stay exact, the same bits on every driver, and topics that are found.

use hemiola::splash::{Degree, Options};
use hemiola::{Deployment, sim};
use hemiola_models::corpus::Corpus;
use hemiola_models::generate::corpus::{SyntheticCorpus, generate_corpus};
use hemiola_models::lda::splash::{Config, Trained, train};

const TOPICS: usize = 6;

fn corpus() -> Corpus {
    let what = SyntheticCorpus { documents: 200, words: 150, topics: TOPICS as u32, tokens_per_document: 50, seed: 4 };
    generate_corpus(&what).expect("a corpus")
}

fn config() -> Config {
    Config { topics: TOPICS, epochs: 12, evaluate_every: 1, ..Config::default() }
}

fn train_on(config: &Config, deployment: &Deployment) -> Trained {
    train(config, deployment, &corpus(), |_| {}).expect("trained")
}

#[test]
fn every_word_is_counted_exactly_once_after_many_passes() {
    let corpus = corpus();
    let mut expected = vec![0.0f64; corpus.vocabulary.len()];
    for document in 0..corpus.documents() {
        corpus.document(document).iter().for_each(|&word| expected[word as usize] += 1.0);
    }
    for (workers, degree) in [(1, Degree::Largest), (3, Degree::Largest), (5, Degree::Auto), (4, Degree::Fixed(3))] {
        let passes = Options { degree, synchronisations: 3, ..Options::default() };
        let trained = train_on(&Config { passes, ..config() }, &Deployment::threads(workers));
        for (word, row) in trained.word_topics.chunks(TOPICS).enumerate() {
            let found: f64 = row.iter().map(|count| f64::from(*count)).sum();
            assert_eq!(found, expected[word], "word {word}, {workers} workers, {degree:?}");
        }
    }
}

#[test]
fn threads_and_simulated_nodes_give_the_same_bits() {
    let on_threads = train_on(&config(), &Deployment::threads(4));
    let mut cluster = sim::Config::new(2);
    cluster.workers_per_node = 2;
    let simulated = train_on(&config(), &Deployment::Sim(cluster));
    assert!(on_threads.word_topics == simulated.word_topics);
    let likelihoods = |trained: &Trained| trained.epochs.iter().map(|e| e.quality.objective).collect::<Vec<_>>();
    assert_eq!(likelihoods(&on_threads), likelihoods(&simulated));
}

#[test]
fn the_likelihood_rises_on_one_worker_and_on_eight() {
    let last = |workers| {
        let trained = train_on(&Config { epochs: 40, ..config() }, &Deployment::sim(workers));
        let likelihoods: Vec<f64> = trained.epochs.iter().filter_map(|epoch| epoch.quality.objective).collect();
        assert_eq!(likelihoods.len(), 40);
        assert!(likelihoods[39] > likelihoods[0] + 0.1, "{workers} workers: {likelihoods:?}");
        assert!(trained.epochs[39].quality.moved < trained.epochs[1].quality.moved);
        likelihoods[39]
    };
    let (one, eight) = (last(1), last(8));
    assert!(eight > one - 0.15, "{eight} instead of {one}");
}

#[test]
fn numbers_that_cannot_be_are_refused() {
    let refused = |config: Config| match train(&config, &Deployment::threads(1), &corpus(), |_| {}) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{config:?} was accepted"),
    };
    assert_eq!(refused(Config { topics: 0, ..config() }), "the number of topics must be between 1 and 65535, not 0");
    assert_eq!(refused(Config { alpha: 0.0, ..config() }), "alpha must be a number above zero, not 0");
    assert_eq!(refused(Config { beta: -1.0, ..config() }), "beta must be a number above zero, not -1");
    assert_eq!(refused(Config { samples: 0, ..config() }), "the number of samples must be at least 1");
    assert_eq!(refused(Config { epochs: 0, ..config() }), "the number of epochs must be at least 1");
}
