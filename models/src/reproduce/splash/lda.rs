//! Figure 4: topic models by Splash, by collapsed Gibbs sampling on one thread and by variational inference.

use super::super::{Findings, ReproduceError, Scale};
use super::applications::{Course, Size, least, panel, reached, sooner, times, told};
use super::baselines::{ROUNDS, variational};
use crate::HoldOut;
use crate::corpus::Corpus;
use crate::generate::corpus::{SyntheticCorpus, generate_corpus};
use crate::lda::model::LdaModel;
use crate::lda::splash::{Config, train};
use hemiola::splash::Options;
use serde_json::Value;

/// After how many passes the topics are judged.
const PASSES: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// The paper's.
const ALPHA: f32 = 0.1;
const BETA: f32 = 0.1;

/// Documents to train on and others to predict.
pub(super) fn documents(scale: &Scale) -> Result<(Corpus, Corpus), ReproduceError> {
    let what = SyntheticCorpus {
        documents: scale.documents,
        words: 800,
        topics: (scale.topics / 2).max(2),
        tokens_per_document: 100,
        seed: scale.seed,
    };
    let corpus = generate_corpus(&what)?;
    Ok(corpus.split(HoldOut::Every(10))?)
}

/// The size of the problem beside the paper's: 100 million words, for 500 topics a microsecond each.
pub(super) fn size(corpus: &Corpus, topics: usize) -> Size {
    Size {
        units: corpus.tokens() as f64,
        paper_units: 1e8,
        unit_seconds: 1e-6,
        numbers: (corpus.vocabulary.len() * topics) as f64,
        paper_numbers: 1e5 * 500.0,
    }
}

/// How the figure's topic model is trained.
pub(super) fn config(scale: &Scale, epochs: u32) -> Config {
    let passes = Options { seed: scale.seed, ..Options::default() };
    let topics = scale.topics as usize;
    Config { topics, alpha: ALPHA, beta: BETA, epochs, evaluate_every: epochs, passes, ..Config::default() }
}

pub(in super::super) fn lda(scale: &Scale) -> Result<Findings, ReproduceError> {
    let (corpus, test) = documents(scale)?;
    let topics = scale.topics as usize;
    let size = size(&corpus, topics);
    // The negative predictive log-likelihood, so that less is better.
    let judged = |word_topic: Vec<f32>| {
        let (vocabulary, config) = (corpus.vocabulary.clone(), Value::Null);
        let alpha = vec![ALPHA; topics];
        -LdaModel { vocabulary, alpha, beta: BETA, word_topic, metrics: config.clone(), config }
            .held_out(&test)
            .log_likelihood
    };
    let run = |nodes: u32, samples: u16| -> Result<Course, ReproduceError> {
        let mut course = Course::new();
        for epochs in PASSES {
            let config = Config { samples, ..config(scale, epochs) };
            let trained = train(&config, &size.deployment(nodes, scale.seed), &corpus, |_| {})?;
            let seconds = trained.epochs.last().map_or(0.0, |epoch| epoch.seconds);
            course.push((seconds, judged(trained.word_topics)));
        }
        Ok(course)
    };
    let (splash, one) = (run(scale.nodes, Config::default().samples)?, run(1, 1)?);
    let mut batch = Course::new();
    let seconds = size.batch_seconds(scale.nodes, ROUNDS as f64, 1.0);
    variational(&corpus, (topics, ALPHA, BETA), PASSES[PASSES.len() - 1], scale.seed, |counts| {
        let counts = counts.iter().map(|count| *count as f32).collect();
        batch.push((seconds * (batch.len() + 1) as f64, judged(counts)));
    });
    let target = least(&splash).max(least(&batch)) + 0.005;
    let (own, thread, inference) = (reached(&splash, target), reached(&one, target), reached(&batch, target));
    let holds = sooner(own, inference) > 1.0 && sooner(own, thread) > 1.0;
    let found = format!(
        "On {} simulated nodes Splash predicts words with a log-likelihood of {:.3} {}, one thread of Gibbs sampling {} ({}), and variational inference on an ideal cluster of as many nodes {} ({}). At best they come to {:.3}, {:.3} and {:.3}.",
        scale.nodes,
        -target,
        told(own),
        told(thread),
        times(sooner(own, thread)),
        told(inference),
        times(sooner(own, inference)),
        -least(&splash),
        -least(&one),
        -least(&batch),
    );
    let negative = |course: Course| course.into_iter().map(|(seconds, loss)| (seconds, -loss)).collect::<Course>();
    let series =
        vec![("Splash", negative(splash)), ("one thread", negative(one)), ("variational inference", negative(batch))];
    let panels = vec![panel("Topic models", "virtual seconds", "predictive log-likelihood a word", series)];
    Ok(Findings { found, holds, panels })
}
