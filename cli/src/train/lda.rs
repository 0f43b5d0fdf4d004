//! `hemiola train lda`: finds the topics of documents.

use super::engine;
use super::held_out::HeldOut;
use super::job::{Job, Outputs, quoted};
use super::saving;
use crate::documents::{DocumentOptions, refused};
use crate::failure::usage;
use crate::plot::{Curve, Panel};
use crate::progress::{Figures, Work, span};
use crate::{consistency, deploy, filters, interrupt, numbers, report};
use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use hemiola::checkpoint::Checkpoints;
use hemiola::splash::{Degree, Options};
use hemiola::{Consistency, Deployment, Outcome};
use hemiola_models::corpus::{Corpus, Pruning, Reading, StopWords};
use hemiola_models::lda::Sampler;
use hemiola_models::lda::model::{self, LdaModel};
use hemiola_models::lda::splash;
use hemiola_models::lda::train::{Config, Epoch, Quality, train_saved};
use hemiola_models::resume::CLOCKS_PER_EPOCH;
use serde_json::{Value, json};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  hemiola train lda docword.kos.txt.gz --vocabulary vocab.kos.txt.gz --topics 50
  hemiola train lda articles.txt --min-documents 5 --max-share 0.5 --holdout 0.1
  hemiola train lda ap.dat --vocabulary vocab.txt --topics 1000 --sampler mh
  hemiola train lda ap.dat --vocabulary vocab.txt --engine splash --epochs 30

DATA is UCI bag-of-words, lda-c, or text with a document on every line. Files may
be compressed by gzip, and '-' is standard input.";

/// Find the topics of documents.
#[derive(Args)]
#[command(after_help = format!("{}\n\n{}\n\n{EXAMPLES}", engine::MEANING, consistency::MEANING))]
pub(crate) struct Arguments {
    #[command(flatten)]
    problem: Problem,
    #[command(flatten)]
    deployment: deploy::Options,
    #[command(flatten)]
    saving: saving::Options,
    #[command(flatten)]
    outputs: Outputs,
}

/// What to train on and how, wherever that happens.
#[derive(Args)]
pub(crate) struct Problem {
    /// Files of documents
    #[arg(required = true, value_name = "DATA")]
    data: Vec<PathBuf>,
    #[command(flatten)]
    documents: Documents,
    #[command(flatten)]
    held_out: HeldOut,
    #[command(flatten)]
    model: ModelOptions,
    #[command(flatten)]
    engine: engine::Options,
    #[command(flatten)]
    consistency: consistency::Options,
    /// Into how many clocks an epoch is cut [default: 1; between processes or nodes 4]
    #[arg(long, value_name = "N", value_parser = numbers::clocks, help_heading = "Consistency",
        allow_negative_numbers = true)]
    clocks_per_epoch: Option<u32>,
}

#[derive(Args)]
#[command(next_help_heading = "Documents")]
struct Documents {
    #[command(flatten)]
    reading: DocumentOptions,
    /// Leave out the words of this file, one a line, in place of the usual ones of English; 'none' leaves out none
    /// [default: the usual ones of English, in text]
    #[arg(long, value_name = "FILE")]
    stop_words: Option<PathBuf>,
    /// Leave out words that are in fewer documents
    #[arg(long, value_name = "N", value_parser = numbers::whole, default_value = "1", allow_negative_numbers = true)]
    min_documents: u32,
    /// Leave out words that are in a larger part of the documents
    #[arg(long, value_name = "PART", value_parser = numbers::share, default_value = "1", allow_negative_numbers = true)]
    max_share: f64,
    /// Keep only so many words, those that occur most often
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_negative_numbers = true)]
    max_words: Option<u32>,
}

#[derive(Args)]
#[command(next_help_heading = "Model and training")]
struct ModelOptions {
    /// Number of topics
    #[arg(long, value_name = "K", value_parser = numbers::count, default_value = "100", allow_negative_numbers = true)]
    topics: u32,
    /// What every topic of a document has before any word is read: the smaller, the fewer topics a document has
    #[arg(long, value_parser = numbers::positive, default_value = "0.1", allow_negative_numbers = true)]
    alpha: f32,
    /// What every word of a topic has before any word is read: the smaller, the fewer words a topic has
    #[arg(long, value_parser = numbers::positive, default_value = "0.01", allow_negative_numbers = true)]
    beta: f32,
    /// How topics are drawn: by what is likely given all others, or by Metropolis-Hastings in a time that does not grow with K
    /// [default: auto]
    #[arg(long, value_enum, value_name = "SAMPLER")]
    sampler: Option<SamplerName>,
    /// Topics that are drawn for a word, each of which has its part of it, with --engine splash [default: 32]
    #[arg(long, value_name = "N", value_parser = numbers::team, allow_negative_numbers = true)]
    samples: Option<u32>,
    /// Begin with this part of the documents, and ever more of them before the first epoch: faster, and with small parts a
    /// little less good [default: for more than 256 topics and enough documents 0.5, or 0.3 with proposals; else 1]
    #[arg(long, value_name = "PART", value_parser = numbers::share, allow_negative_numbers = true)]
    begin_with: Option<f64>,
    /// Passes over the documents
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "100", allow_negative_numbers = true)]
    epochs: u32,
    /// Compute the training likelihood after every so many epochs
    #[arg(long, value_name = "EPOCHS", value_parser = numbers::count, default_value = "10", allow_negative_numbers = true)]
    evaluate_every: u32,
    /// Fixes everything that is drawn at random: with one worker or under bsp the model, too
    #[arg(long, value_parser = numbers::seed, default_value = "1", allow_negative_numbers = true)]
    seed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SamplerName {
    /// Whichever is sooner at the same likelihood: mh for more than 4000 topics and words a document, otherwise sparse
    Auto,
    Sparse,
    Mh,
}

/// Trains as the command line says.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { problem, deployment, saving, outputs } = arguments;
    deployment.check_all_arrive(filters::COUNTS)?;
    let place = deployment.meaning(problem.consistency.meaning()?)?;
    let mut way = problem.way(&place.deployment)?;
    if let (Way::Tables(config), None, Some(clocks)) =
        (&mut way, problem.clocks_per_epoch, saving.recorded(CLOCKS_PER_EPOCH))
    {
        // The usual number depends on where a job runs, and one that goes on may do so elsewhere.
        config.clocks_per_epoch = clocks;
    }
    let mut job = Job::new(place, outputs, &problem.data[0], problem.description(&way));
    job.checkpoints = match &way {
        Way::Tables(config) => saving.meaning(config.clocks_per_epoch)?,
        Way::Splash(_) => engine::no_checkpoints(saving, deployment)?,
    };
    if !deploy::is_child() {
        saving.check()?;
        job.check(&problem.inputs()?)?;
        interrupt::install()?;
    }
    let data = problem.read()?;
    let finished = train_and_save(&job, &way, data)?;
    if !job.quiet {
        finished.tell(&job.out)?;
    }
    Ok(())
}

/// How it is trained.
pub(crate) enum Way {
    Tables(Config),
    Splash(splash::Config),
}

/// What is left of a training by either engine.
pub(crate) struct Trained {
    word_topic: Vec<f32>,
    pub(crate) epochs: Vec<Epoch>,
    pub(crate) outcome: Outcome,
}

impl Way {
    pub(crate) fn seed(&self) -> u64 {
        match self {
            Self::Tables(config) => config.seed,
            Self::Splash(config) => config.passes.seed,
        }
    }

    /// Topics, and the priors of documents and topics.
    fn shape(&self) -> (usize, f32, f32) {
        match self {
            Self::Tables(config) => (config.topics, config.alpha, config.beta),
            Self::Splash(config) => (config.topics, config.alpha, config.beta),
        }
    }

    /// What there is to do.
    pub(crate) fn work(&self, corpus: &Corpus) -> Work {
        let epochs = match self {
            Self::Tables(config) => config.epochs,
            Self::Splash(config) => config.epochs,
        };
        Work { units: ("words", corpus.tokens()), epochs, may_stop_early: false }
    }

    /// The same for a few passes of one worker, to see how long they take.
    pub(crate) fn measured(&self, epochs: u32) -> Self {
        match *self {
            Self::Tables(config) => Self::Tables(Config {
                epochs,
                begin_with: Some(1.0),
                clocks_per_epoch: 1,
                evaluate_every: epochs,
                ..config
            }),
            Self::Splash(config) => {
                let passes = Options { degree: Degree::Largest, ..config.passes };
                Self::Splash(splash::Config { epochs, evaluate_every: epochs, passes, ..config })
            }
        }
    }

    /// Trains, with checkpoints where there can be any.
    pub(crate) fn train(
        &self,
        deployment: &Deployment,
        checkpoints: Option<&Checkpoints>,
        corpus: &Corpus,
        observe: &mut (dyn FnMut(&Epoch) + Send),
    ) -> Result<Trained> {
        Ok(match self {
            Self::Tables(config) => {
                let trained = train_saved(config, deployment, checkpoints, corpus, observe)?;
                let word_topic = trained.word_topics.iter().map(|&count| count as f32).collect();
                Trained { word_topic, epochs: trained.epochs, outcome: trained.outcome }
            }
            Self::Splash(config) => {
                let trained = splash::train(config, deployment, corpus, observe)?;
                Trained { word_topic: trained.word_topics, epochs: trained.epochs, outcome: trained.outcome }
            }
        })
    }

    fn config(&self) -> Result<Value> {
        Ok(match self {
            Self::Tables(config) => serde_json::to_value(config)?,
            Self::Splash(config) => {
                let mut value = serde_json::to_value(config)?;
                value["engine"] = engine::description(&config.passes);
                value
            }
        })
    }
}

impl Problem {
    /// How it is to be trained there.
    ///
    /// # Errors
    /// If options contradict one another, or one has no effect that way.
    pub(crate) fn way(&self, deployment: &Deployment) -> Result<Way> {
        let model = &self.model;
        let usual = splash::Config::default();
        let Some(passes) = self.engine.splash(model.seed, usual.passes.synchronisations)? else {
            if model.samples.is_some() {
                return Err(usage("--samples has an effect only with --engine splash"));
            }
            return Ok(Way::Tables(self.config(deployment)?));
        };
        engine::refuse(&self.consistency.given())?;
        engine::refuse(&[
            ("--clocks-per-epoch", self.clocks_per_epoch.is_some()),
            ("--sampler", model.sampler.is_some()),
            ("--begin-with", model.begin_with.is_some()),
        ])?;
        Ok(Way::Splash(splash::Config {
            topics: model.topics as usize,
            alpha: model.alpha,
            beta: model.beta,
            samples: model.samples.map_or(usual.samples, |samples| samples as u16),
            epochs: model.epochs,
            evaluate_every: model.evaluate_every,
            passes,
        }))
    }

    fn config(&self, deployment: &Deployment) -> Result<Config> {
        let model = &self.model;
        let consistency = self.consistency.meaning()?;
        if matches!(consistency, Consistency::Vap { .. }) {
            return Err(usage("--consistency vap cannot bound counts; give bsp, ssp, essp or async"));
        }
        if self.consistency.precision(deployment)? != hemiola::Precision::F32 {
            return Err(usage("--wire would round counts; topic models need --wire f32"));
        }
        let usual_clocks = if matches!(deployment, Deployment::Threads { .. }) { 1 } else { 4 };
        let clocks_per_epoch = self.clocks_per_epoch.unwrap_or(usual_clocks);
        if model.epochs.checked_mul(clocks_per_epoch).is_none() {
            return Err(usage("--epochs times --clocks-per-epoch are more clocks than can be counted; give fewer"));
        }
        Ok(Config {
            topics: model.topics as usize,
            alpha: model.alpha,
            beta: model.beta,
            sampler: match model.sampler {
                None | Some(SamplerName::Auto) => Sampler::Auto,
                Some(SamplerName::Sparse) => Sampler::Sparse,
                Some(SamplerName::Mh) => Sampler::MetropolisHastings,
            },
            epochs: model.epochs,
            begin_with: model.begin_with.map(|part| part as f32),
            clocks_per_epoch,
            consistency,
            evaluate_every: model.evaluate_every,
            seed: model.seed,
            ..Config::default()
        })
    }

    /// The files to read, each with what the user calls it.
    ///
    /// # Errors
    /// If standard input would be read twice.
    pub(crate) fn inputs(&self) -> Result<Vec<(&'static str, &Path)>> {
        let data = self.data.iter().map(|path| ("DATA", path.as_path()));
        let test = self.held_out.test.iter().map(|path| ("--test", path.as_path()));
        let vocabulary = self.documents.reading.vocabulary().into_iter().map(|path| ("--vocabulary", path));
        let stop_words = self.documents.stop_words().into_iter().map(|path| ("--stop-words", path));
        let inputs: Vec<_> = data.chain(test).chain(vocabulary).chain(stop_words).collect();
        if inputs.iter().filter(|(_, path)| *path == Path::new("-")).count() > 1 {
            return Err(usage("standard input can be read only once; give '-' once"));
        }
        Ok(inputs)
    }

    /// What a report says first, but for where the job runs.
    pub(crate) fn description(&self, way: &Way) -> Value {
        let config = way.config().unwrap_or_default();
        json!({ "model": "lda", "data": self.data, "held_out": self.held_out.description(None), "config": config })
    }

    /// Reads the documents and holds some out.
    ///
    /// # Errors
    /// If a file cannot be read, or nothing is left to train on.
    pub(crate) fn read(&self) -> Result<Data> {
        let how = self.documents.reading();
        let corpus = Corpus::read(&self.data, &how).map_err(refused)?;
        if let Some(file) = &self.held_out.test {
            let test = Corpus::read_held_out(&[file], &how, &corpus.vocabulary).map_err(refused)?;
            return Ok(Data { corpus, test: Some(test) });
        }
        let Some(rule) = self.held_out.rule(None, self.model.seed) else {
            return Ok(Data { corpus, test: None });
        };
        let count = corpus.documents();
        let (corpus, test) = corpus.split(rule).map_err(|_| {
            anyhow!(
                "{}: too few documents ({count}) to train on some and hold out others; give more, or hold out none",
                self.data[0].display()
            )
        })?;
        Ok(Data { corpus, test: Some(test) })
    }
}

impl Documents {
    /// The file of stop words, if one was named.
    fn stop_words(&self) -> Option<&Path> {
        self.stop_words.as_deref().filter(|file| *file != Path::new("none"))
    }

    fn reading(&self) -> Reading {
        let stop_words = match (&self.stop_words, self.stop_words()) {
            (None, _) => StopWords::EnglishInText,
            (Some(_), None) => StopWords::None,
            (Some(_), Some(file)) => StopWords::File(file.to_owned()),
        };
        let pruning = Pruning {
            stop_words,
            least_documents: self.min_documents as usize,
            greatest_share: self.max_share,
            most_words: self.max_words.map(|words| words as usize),
        };
        Reading { pruning, ..self.reading.reading() }
    }
}

/// Documents to train on, and others to judge the model by.
pub(crate) struct Data {
    pub(crate) corpus: Corpus,
    test: Option<Corpus>,
}

/// What is left to tell of a training.
struct Finished {
    outcome: Outcome,
    epochs: Vec<Epoch>,
    model: LdaModel,
    held_out: Option<model::HeldOut>,
}

fn train_and_save(job: &Job, way: &Way, data: Data) -> Result<Finished> {
    let Data { corpus, test } = data;
    let counts = json!({ "train": corpus.documents(), "test": test.as_ref().map(Corpus::documents),
        "tokens": corpus.tokens(), "words": corpus.vocabulary.len() });
    let work = way.work(&corpus);
    let (trained, report) = job.observe(("documents", counts), &work, |observe| {
        way.train(&job.deployment, job.checkpoints.as_ref(), &corpus, observe)
    })?;
    let (topics, alpha, beta) = way.shape();
    let mut model = LdaModel {
        vocabulary: corpus.vocabulary,
        alpha: vec![alpha; topics],
        beta,
        word_topic: trained.word_topic,
        config: way.config()?,
        metrics: Value::Null,
    };
    let held_out = test.map(|test| model.held_out(&test)).filter(|held_out| held_out.tokens > 0);
    model.metrics = json!({
        "epochs": trained.epochs.last().map(|epoch| epoch.epoch),
        "train_log_likelihood": trained.epochs.last().and_then(|epoch| epoch.quality.objective),
        "test_log_likelihood": held_out.as_ref().map(|held_out| held_out.log_likelihood),
    });
    let panel = likelihood_panel(&trained.epochs, "epoch", |epoch| f64::from(epoch.epoch));
    job.leave(report, &trained.outcome, &model.metrics, ("Topics", panel), |path| Ok(model.save(path)?))?;
    Ok(Finished { outcome: trained.outcome, epochs: trained.epochs, model, held_out })
}

impl Figures for Quality {
    fn figures(&self) -> String {
        let moved = 100.0 * self.moved;
        match self.objective {
            Some(likelihood) => format!("log-likelihood {likelihood:.4} a word, {moved:.0} % moved"),
            None => format!("{moved:.0} % moved"),
        }
    }
}

/// The training likelihood over the epochs, or over what `x` says of them.
pub(crate) fn likelihood_panel(epochs: &[Epoch], x_name: &str, x: impl Fn(&Epoch) -> f64) -> Panel {
    let points = epochs.iter().filter_map(|epoch| Some((x(epoch), epoch.quality.objective?))).collect();
    let curves = vec![Curve { name: "training".to_owned(), points }];
    Panel::Curves {
        title: "Likelihood".to_owned(),
        x: x_name.to_owned(),
        y: "log-likelihood a word".to_owned(),
        curves,
    }
}

/// So many topics are shown when training ends.
const TOPICS_SHOWN: usize = 5;

impl Finished {
    fn tell(&self, path: &Path) -> Result<()> {
        let mut out = stdout().lock();
        let last = self.epochs.last();
        let (epochs, seconds) = last.map_or((0, 0.0), |epoch| (epoch.epoch, epoch.seconds));
        let spent = format!("after {epochs} epochs and {} of training", span(seconds));
        if let Some(likelihood) = last.and_then(|epoch| epoch.quality.objective) {
            writeln!(out, "log-likelihood {likelihood:.4} a word {spent}")?;
        }
        if let Some(held_out) = &self.held_out {
            let (likelihood, perplexity) = (held_out.log_likelihood, held_out.perplexity());
            writeln!(out, "held out       {likelihood:.4} a word, perplexity {perplexity:.1}")?;
        }
        let shares = self.model.topic_shares();
        let mut topics: Vec<usize> = (0..shares.len()).collect();
        topics.sort_by(|&one, &other| shares[other].total_cmp(&shares[one]));
        for &topic in topics.iter().take(TOPICS_SHOWN) {
            let words = self.model.top_words(topic, 8);
            let words: Vec<&str> = words.iter().map(|(word, _)| self.model.vocabulary.name(*word)).collect();
            writeln!(out, "{:<14} {:.1} % {}", format!("topic {topic}"), 100.0 * shares[topic], words.join(" "))?;
        }
        report::tell(&mut out, &self.outcome)?;
        writeln!(out, "model          {}", path.display())?;
        writeln!(out, "next           hemiola topics {}", quoted(&path.display().to_string()))?;
        Ok(())
    }
}
