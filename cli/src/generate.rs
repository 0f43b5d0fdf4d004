//! `hemiola generate`: synthetic data of a given shape and seed.

use crate::{failure, interrupt, numbers, outputs};
use anyhow::Result;
use clap::{Args, Subcommand};
use hemiola_models::examples::labels_beside;
use hemiola_models::generate::corpus::{SyntheticCorpus, generate_corpus, write_doc_word, write_vocabulary};
use hemiola_models::generate::deformations::{Deformations, Deformer};
use hemiola_models::generate::examples::{ExampleMaker, SyntheticExamples};
use hemiola_models::generate::{Synthetic, generate, write_csv};
use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

/// What to generate.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    data: Data,
}

#[derive(Subcommand)]
enum Data {
    /// Ratings in half stars, made from known factors and noise, as lines of user,item,rating
    #[command(
        after_help = "Example:\n  hemiola generate ratings --users 60000 --items 8000 --ratings 6000000 --out big.csv"
    )]
    Ratings(RatingsArguments),
    /// Documents made from known topics, as UCI bag-of-words, with the words in another file beside it
    #[command(after_help = "\
Example, which writes docword.big.txt and vocab.big.txt:
  hemiola generate corpus --documents 100000 --words 50000 --topics 100 --out docword.big.txt")]
    Corpus(CorpusArguments),
    /// Examples of two classes with few of many features, made from known weights, as lines of libsvm
    #[command(
        after_help = "Example:\n  hemiola generate examples --examples 1000000 --features 200000 --out clicks.svm"
    )]
    Examples(ExamplesArguments),
    /// More images in MNIST's format out of some, each copy deformed at random, with their labels in another file
    #[command(after_help = "\
Example, which writes big-images-idx3-ubyte and big-labels-idx1-ubyte:
  hemiola generate images train-images-idx3-ubyte --times 10 --out big-images-idx3-ubyte")]
    Images(ImagesArguments),
}

#[derive(Args)]
struct RatingsArguments {
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "2000", allow_negative_numbers = true)]
    users: u32,
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "1000", allow_negative_numbers = true)]
    items: u32,
    /// How many, each of another pair of user and item
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "200000", allow_negative_numbers = true)]
    ratings: u32,
    /// Factors that the ratings are made from
    #[arg(long, value_name = "N", value_parser = numbers::rank, default_value = "8", allow_negative_numbers = true)]
    rank: usize,
    /// Standard deviation of what no factor explains, in stars
    #[arg(long, value_name = "STARS", value_parser = numbers::not_negative, default_value = "0.5",
        allow_negative_numbers = true)]
    noise: f32,
    /// Fixes everything that is drawn at random
    #[arg(long, value_parser = numbers::seed, default_value = "1", allow_negative_numbers = true)]
    seed: u64,
    /// Where the ratings go [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Args)]
struct CorpusArguments {
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "2000", allow_negative_numbers = true)]
    documents: u32,
    /// How many words the vocabulary has
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "5000", allow_negative_numbers = true)]
    words: u32,
    /// Topics that the documents are made from
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "20", allow_negative_numbers = true)]
    topics: u32,
    /// How many words a document has on average
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "100", allow_negative_numbers = true)]
    tokens_per_document: u32,
    /// Fixes everything that is drawn at random
    #[arg(long, value_parser = numbers::seed, default_value = "1", allow_negative_numbers = true)]
    seed: u64,
    /// Where the documents go; for docword.X, the words go to vocab.X
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

#[derive(Args)]
struct ExamplesArguments {
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "20000", allow_negative_numbers = true)]
    examples: u32,
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "10000", allow_negative_numbers = true)]
    features: u32,
    /// About how many features an example has; few of them are frequent, and most are rare
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "40", allow_negative_numbers = true)]
    nonzeros: u32,
    /// How many features say something about the class
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "300", allow_negative_numbers = true)]
    relevant: u32,
    /// Fixes everything that is drawn at random
    #[arg(long, value_parser = numbers::seed, default_value = "1", allow_negative_numbers = true)]
    seed: u64,
    /// Where the examples go [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Args)]
struct ImagesArguments {
    /// Labelled images as idx, which may be compressed by gzip
    #[arg(value_name = "IMAGES")]
    images: PathBuf,
    /// Their labels, if those are not beside them under the usual name
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// How many times as many there will be; the first are those given
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "10", allow_negative_numbers = true)]
    times: u32,
    /// How far a point moves, as a standard deviation in pixels
    #[arg(long, value_name = "PIXELS", value_parser = numbers::not_negative, default_value = "1",
        allow_negative_numbers = true)]
    by: f32,
    /// Fixes everything that is drawn at random
    #[arg(long, value_parser = numbers::seed, default_value = "1", allow_negative_numbers = true)]
    seed: u64,
    /// Where the images go; the labels go to the same name with labels for images and idx1 for idx3
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

pub(crate) fn run(arguments: Arguments) -> Result<()> {
    interrupt::install()?;
    match arguments.data {
        Data::Ratings(arguments) => make_ratings(arguments),
        Data::Corpus(arguments) => make_corpus(&arguments),
        Data::Examples(arguments) => make_examples(arguments),
        Data::Images(arguments) => make_images(arguments),
    }
}

fn make_corpus(arguments: &CorpusArguments) -> Result<()> {
    let CorpusArguments { documents, words, topics, tokens_per_document, seed, ref out } = *arguments;
    outputs::check_writable(out)?;
    let vocabulary = vocabulary_beside(out);
    outputs::check_writable(&vocabulary)?;
    let made = generate_corpus(&SyntheticCorpus { documents, words, topics, tokens_per_document, seed })?;
    let _writing = interrupt::hold();
    outputs::write_whole(&vocabulary, |file| write_vocabulary(&made.vocabulary, file))?;
    outputs::write_whole(out, |file| write_doc_word(&made, file))
}

/// Where the words of documents go, by the custom of UCI.
fn vocabulary_beside(out: &Path) -> PathBuf {
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    out.with_file_name(format!("vocab.{}", name.strip_prefix("docword.").unwrap_or(&name)))
}

/// Examples are written as they are made, so there may be more than memory holds, and Ctrl-C is not kept waiting.
fn make_examples(arguments: ExamplesArguments) -> Result<()> {
    let ExamplesArguments { examples, features, nonzeros, relevant, seed, out } = arguments;
    if let Some(path) = &out {
        outputs::check_writable(path)?;
    }
    let maker = ExampleMaker::new(&SyntheticExamples { examples, features, nonzeros, relevant, seed })?;
    match &out {
        Some(path) => outputs::write_whole(path, |file| maker.write(file)),
        None => {
            let mut out = BufWriter::new(stdout().lock());
            maker.write(&mut out)?;
            Ok(out.flush()?)
        }
    }
}

fn make_images(arguments: ImagesArguments) -> Result<()> {
    let ImagesArguments { images, labels, times, by, seed, out } = arguments;
    let Some(labels_out) = labels_beside(&out) else {
        return Err(failure::usage(format!(
            "--out {} must have images in its name; labels go beside it",
            out.display()
        )));
    };
    let given = labels.as_deref().map(|labels| ("the labels", labels));
    let inputs: Vec<(&str, &Path)> = given.into_iter().chain([("the images", images.as_path())]).collect();
    outputs::check_distinct(&inputs, &[("--out", &out), ("the file of labels", &labels_out)])?;
    outputs::check_writable(&out)?;
    outputs::check_writable(&labels_out)?;
    let deformer = Deformer::read(&images, labels, Deformations { times, pixels: by, seed })?;
    outputs::write_whole(&out, |file| deformer.write_images(file))?;
    outputs::write_whole(&labels_out, |file| deformer.write_labels(file))
}

fn make_ratings(arguments: RatingsArguments) -> Result<()> {
    let RatingsArguments { users, items, ratings, rank, noise, seed, out } = arguments;
    if let Some(path) = &out {
        outputs::check_writable(path)?;
    }
    let made = generate(&Synthetic { users, items, count: ratings as usize, rank, noise, seed })?.ratings;
    match &out {
        Some(path) => {
            let _writing = interrupt::hold();
            outputs::write_whole(path, |mut file| write_csv(&made, &mut file))
        }
        None => {
            let mut out = BufWriter::new(stdout().lock());
            write_csv(&made, &mut out)?;
            out.flush()?;
            Ok(())
        }
    }
}
