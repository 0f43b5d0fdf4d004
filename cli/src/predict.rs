//! `hemiola predict`: the ratings to expect for pairs of user and item, the topics of documents, or classes of examples.

use crate::failure::usage;
use crate::progress::say;
use crate::{classify, documents, logistic, metric, numbers, reading};
use anyhow::Result;
use clap::Args;
use hemiola_models::corpus::Corpus;
use hemiola_models::dml::model::DmlModel;
use hemiola_models::l1lr::model::L1lrModel;
use hemiola_models::lda::model::LdaModel;
use hemiola_models::mf::model::MfModel;
use hemiola_models::mlr::model::MlrModel;
use hemiola_models::model_directory::kind_of;
use hemiola_models::ratings::{PairsError, Ratings, read_pairs};
use std::io::{BufWriter, Write, stdout};
use std::path::PathBuf;

/// Predict the ratings of pairs of user and item, as lines of user,item,prediction; with a topic model, say what
/// documents are about, as lines of document,topic,proportion,topic,proportion and so on, strongest topics first; or
/// name the classes of examples, one a line.
///
/// Documents are counted from 1 over all files, topics from 0 as in the model.
#[derive(Args)]
#[command(after_help = "\
Examples:
  hemiola predict ratings.model --user 42 --item 7
  hemiola predict ratings.model pairs.csv > predictions.csv
  hemiola predict ratings.model pairs.csv --ratings new-users.csv
  zcat pairs.gz | hemiola predict ratings.model -
  hemiola predict news.model articles.txt --topics 2")]
pub(crate) struct Arguments {
    /// A model that `hemiola train` wrote
    model: PathBuf,
    /// Files of pairs, where columns behind user and item are ignored, of documents or of examples; '-' for standard input
    #[arg(required_unless_present_any = ["user", "item"], conflicts_with_all = ["user", "item"])]
    data: Vec<PathBuf>,
    /// Predict for this user alone
    #[arg(long, requires = "item", allow_negative_numbers = true)]
    user: Option<String>,
    /// Predict for this item alone
    #[arg(long, requires = "user", allow_negative_numbers = true)]
    item: Option<String>,
    /// With ratings, know users by what they rated in this file, also such as the model was not trained on
    #[arg(long, value_name = "DATA")]
    ratings: Vec<PathBuf>,
    /// How many topics of each document [default: 5]
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_negative_numbers = true)]
    topics: Option<u32>,
    /// Print the probability of every class, too
    #[arg(long)]
    probabilities: bool,
    /// With a metric, print where examples lie under it instead of their classes
    #[arg(long)]
    vectors: bool,
    #[command(flatten)]
    reading: reading::Options,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match kind_of(&arguments.model)?.as_str() {
        LdaModel::KIND => predict_topics(arguments),
        MlrModel::KIND => {
            arguments.check_options("a classifier", "files of examples")?;
            let options = arguments.reading.examples_to_predict()?;
            classify::predict(&arguments.model, &arguments.data, &options, arguments.probabilities)
        }
        DmlModel::KIND => {
            arguments.check_options("a metric", "files of examples")?;
            let options = arguments.reading.examples_to_predict()?;
            metric::predict(&arguments.model, &arguments.data, &options, arguments.vectors)
        }
        L1lrModel::KIND => {
            arguments.check_options("a classifier", "files of examples")?;
            let options = arguments.reading.examples_to_predict()?;
            logistic::predict(&arguments.model, &arguments.data, options, arguments.probabilities)
        }
        _ => predict_ratings(arguments),
    }
}

impl Arguments {
    /// Checks that nothing was said that has no effect with a model of this kind, which reads `files`.
    fn check_options(&self, kind: &str, files: &str) -> Result<()> {
        if self.user.is_some() && kind != "ratings" {
            return Err(usage(format!("--user and --item have no effect with {kind}; give {files}")));
        }
        if !self.ratings.is_empty() && kind != "ratings" {
            return Err(usage("--ratings has an effect only with factorisations of ratings"));
        }
        if self.topics.is_some() && kind != "a topic model" {
            return Err(usage("--topics has an effect only with topic models"));
        }
        if self.probabilities && kind != "a classifier" {
            return Err(usage("--probabilities has an effect only with classifiers"));
        }
        if self.vectors && kind != "a metric" {
            return Err(usage("--vectors has an effect only with metrics"));
        }
        Ok(())
    }
}

fn predict_topics(arguments: &Arguments) -> Result<()> {
    arguments.check_options("a topic model", "files of documents")?;
    let model = LdaModel::load(&arguments.model)?;
    let how = arguments.reading.documents()?;
    let (corpus, _) = Corpus::read_known(&arguments.data, &how, &model.vocabulary).map_err(documents::refused)?;
    let count = arguments.topics.unwrap_or(5) as usize;
    let mut inference = model.inference();
    let mut out = BufWriter::new(stdout().lock());
    for document in 0..corpus.documents() {
        let mut topics: Vec<(usize, f32)> =
            inference.proportions(corpus.document(document)).into_iter().enumerate().collect();
        topics.sort_by(|one, other| other.1.total_cmp(&one.1));
        write!(out, "{}", document + 1)?;
        topics.iter().take(count).try_for_each(|(topic, proportion)| write!(out, ",{topic},{proportion:.4}"))?;
        writeln!(out)?;
    }
    out.flush()?;
    let unknown = (0..corpus.documents()).filter(|&document| corpus.document(document).is_empty()).count();
    if unknown > 0 {
        let all = corpus.documents();
        say(&format!("documents without a word that the model knows: {unknown} of {all}; their topics tell nothing"));
    }
    Ok(())
}

fn predict_ratings(arguments: &Arguments) -> Result<()> {
    arguments.check_options("ratings", "pairs")?;
    arguments.reading.check_absent()?;
    let mut model = MfModel::load(&arguments.model)?;
    if !arguments.ratings.is_empty() {
        model.add_users(&Ratings::read(&arguments.ratings)?)?;
    }
    let mut out = BufWriter::new(stdout().lock());
    let (mut unknown, mut all) = (0, 0);
    let mut line = |user: &str, item: &str| {
        let (known_user, known_item) = (model.users.get(user), model.items.get(item));
        unknown += usize::from(known_user.is_none() || known_item.is_none());
        all += 1;
        let prediction = model.predict(known_user, known_item);
        writeln!(out, "{},{},{prediction:.4}", Field(user), Field(item))
    };
    if let (Some(user), Some(item)) = (&arguments.user, &arguments.item) {
        line(user, item)?;
    } else {
        arguments.data.iter().try_for_each(|file| read_pairs(file, &mut line).map(drop)).map_err(
            |error| match error {
                PairsError::Read(error) => anyhow::Error::from(error),
                PairsError::Receive(error) => error.into(),
            },
        )?;
    }
    out.flush()?;
    if unknown > 0 {
        say(&format!("pairs with a user or item that the model does not know: {unknown} of {all}"));
    }
    Ok(())
}

/// An id as CSV writes it, quoted where needed.
pub(crate) struct Field<'a>(pub(crate) &'a str);

impl std::fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.contains([',', '"', '\n', '\r']) || self.0.trim() != self.0 {
            write!(f, "\"{}\"", self.0.replace('"', "\"\""))
        } else {
            f.write_str(self.0)
        }
    }
}
