//! Tries samplers and settings of topic models: `lda_lab CORPUS [key=value …]`, a corpus of UCI bag-of-words lines
//! (`document word count` from one, after three lines with their numbers), or `generate` for one that is made.
//!
//! Keys: `topics`, `alpha`, `beta`, `sampler` (sparse, mh, auto), `epochs`, `begin` (the part of the documents
//! to begin with), `clocks` per epoch, `chunks`, `threads`, `staleness`
//! (`none` for bsp), `every` (epochs between evaluations), `seed`, `target` (a likelihood at which to stop printing),
//! `documents` and `length` of a made corpus, and `out`, a file for the counts: little-endian words of 32 bits, the
//! number of words, the number of topics, and a row for each word.
#![expect(clippy::print_stdout, reason = "a program that prints a table")]

#[path = "lab/options.rs"]
mod options;
#[path = "lab/processor.rs"]
mod processor;

use options::Options;
use processor::process_cpu_seconds;

use hemiola::{Consistency, Deployment};
use hemiola_models::Names;
use hemiola_models::corpus::Corpus;
use hemiola_models::lda::Sampler;
use hemiola_models::lda::train::{Config, train};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::error::Error;
use std::io::{BufRead, BufReader, BufWriter, Write};

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let path = options.files.first().ok_or("name a corpus")?;
    let corpus = if path == "generate" { generate(&options)? } else { read(path)? };
    let threads = options.get("threads", 2);
    let defaults = Config::default();
    let config = Config {
        topics: options.get("topics", defaults.topics),
        alpha: options.get("alpha", defaults.alpha),
        beta: options.get("beta", defaults.beta),
        sampler: match options.get("sampler", String::from("auto")).as_str() {
            "sparse" => Sampler::Sparse,
            "mh" => Sampler::MetropolisHastings,
            _ => Sampler::Auto,
        },
        epochs: options.get("epochs", defaults.epochs),
        begin_with: options.find("begin").or(defaults.begin_with),
        clocks_per_epoch: options.get("clocks", defaults.clocks_per_epoch),
        chunks: options.get("chunks", defaults.chunks),
        consistency: match options.get("staleness", String::from("2")).parse() {
            Ok(staleness) => Consistency::Essp { staleness },
            Err(_) => Consistency::Bsp,
        },
        evaluate_every: options.get("every", defaults.evaluate_every),
        seed: options.get("seed", defaults.seed),
    };
    println!("{} documents, {} words, {} tokens", corpus.documents(), corpus.vocabulary.len(), corpus.tokens());
    let began = process_cpu_seconds();
    let (mut before, mut reached) = ((0, 0.0, 0.0), false);
    let target = options.get("target", f64::INFINITY);
    let trained = train(&config, &Deployment::threads(threads), &corpus, |epoch| {
        let Some(likelihood) = epoch.quality.objective else { return };
        let processor = process_cpu_seconds() - began;
        let tokens = corpus.tokens() as f64 * f64::from(epoch.epoch - before.0) / 1e6;
        println!(
            "epoch {:3}  likelihood {likelihood:.5}  moved {:.3}  {:.1} M tokens/s, {:.1} M of processor  total {:.3} s, waited {:.3}, processor {processor:.2} s",
            epoch.epoch,
            epoch.quality.moved,
            tokens / (epoch.seconds - before.1),
            tokens / (processor - before.2),
            epoch.seconds,
            epoch.wait_seconds,
        );
        if likelihood >= target && !reached {
            println!("reached {target} after {:.3} s, processor {processor:.2} s", epoch.seconds);
            reached = true;
        }
        before = (epoch.epoch, epoch.seconds, processor);
    })?;
    if let Some(path) = options.find::<String>("out") {
        let mut file = BufWriter::new(std::fs::File::create(path)?);
        let sizes = [corpus.vocabulary.len() as u32, config.topics as u32];
        for number in sizes.iter().chain(&trained.word_topics) {
            file.write_all(&number.to_le_bytes())?;
        }
        file.flush()?;
    }
    Ok(())
}

fn read(path: &str) -> Result<Corpus, Box<dyn Error>> {
    let mut lines = BufReader::new(std::fs::File::open(path)?).lines();
    let mut number = || -> Result<u32, Box<dyn Error>> { Ok(lines.next().ok_or("three lines")??.trim().parse()?) };
    let (documents, words, _) = (number()?, number()?, number()?);
    let mut corpus = Corpus::new(names(words)?);
    let mut lists = vec![Vec::new(); documents as usize];
    for line in lines {
        let line = line?;
        let mut fields = line.split_whitespace().map(str::parse::<u32>);
        let mut next = || fields.next().ok_or("a line has three numbers");
        let (document, word, count) = (next()??, next()??, next()??);
        lists[document as usize - 1].extend(std::iter::repeat_n(word - 1, count as usize));
    }
    lists.into_iter().for_each(|list| corpus.push(list));
    Ok(corpus)
}

fn names(words: u32) -> Result<Names, Box<dyn Error>> {
    let mut names = Names::default();
    for word in 0..words {
        names.intern(&word.to_string())?;
    }
    Ok(names)
}

/// Documents of a few topics each, topics of a few hundred words each.
fn generate(options: &Options) -> Result<Corpus, Box<dyn Error>> {
    let (documents, length) = (options.get("documents", 2000), options.get("length", 1000));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(options.get("seed", 1));
    let mut below = |bound: u32| ((u64::from(random.next_u32()) * u64::from(bound)) >> 32) as u32;
    let words = 20_000;
    let mut corpus = Corpus::new(names(words)?);
    for _ in 0..documents {
        let topics: Vec<u32> = (0..1 + length / 20).map(|_| below(2000)).collect();
        let token = |_| {
            let (topic, rank) = (topics[below(topics.len() as u32) as usize], below(20) * below(20));
            (topic * 131 + rank * 7) % words
        };
        corpus.push((0..length).map(token).collect::<Vec<u32>>());
    }
    Ok(corpus)
}
