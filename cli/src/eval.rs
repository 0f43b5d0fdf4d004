//! `hemiola eval`: how well a model predicts ratings, the words of documents, or the classes of examples.

use crate::{classify, logistic, reading};
use anyhow::{Result, bail};
use clap::Args;
use hemiola_models::Names;
use hemiola_models::corpus::Corpus;
use hemiola_models::l1lr::model::L1lrModel;
use hemiola_models::lda::model::LdaModel;
use hemiola_models::mf::model::MfModel;
use hemiola_models::mlr::model::MlrModel;
use hemiola_models::model_directory::kind_of;
use hemiola_models::ratings::Ratings;
use serde_json::json;
use std::io::{Write, stdout};
use std::path::PathBuf;

/// Measure how well a model predicts: ratings, where of unknown users and items only the means are used; with a topic
/// model half of the words of every document from the other half; or the classes of examples.
#[derive(Args)]
#[command(after_help = "\
Examples:
  hemiola eval ratings.model more.csv
  hemiola eval news.model docword.more.txt.gz --vocabulary vocab.news.txt
  hemiola eval digits.model t10k-images-idx3-ubyte.gz")]
pub(crate) struct Arguments {
    /// A model that `hemiola train` wrote
    model: PathBuf,
    /// Files of ratings, of documents for a topic model, or of examples for a classifier
    #[arg(required = true)]
    data: Vec<PathBuf>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: reading::Options,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match kind_of(&arguments.model)?.as_str() {
        LdaModel::KIND => judge_topics(arguments),
        MlrModel::KIND => {
            classify::judge(&arguments.model, &arguments.data, &arguments.reading.examples()?, arguments.json)
        }
        L1lrModel::KIND => {
            logistic::judge(&arguments.model, &arguments.data, arguments.reading.examples()?, arguments.json)
        }
        _ => judge_factors(arguments),
    }
}

fn judge_topics(arguments: &Arguments) -> Result<()> {
    let model = LdaModel::load(&arguments.model)?;
    let (corpus, unknown) = Corpus::read_known(&arguments.data, &arguments.reading.documents()?, &model.vocabulary)?;
    let held_out = model.held_out(&corpus);
    if held_out.tokens == 0 {
        bail!("{}: has too few words to predict some from others; give more documents", arguments.data[0].display());
    }
    let (likelihood, perplexity) = (held_out.log_likelihood, held_out.perplexity());
    let (documents, words) = (corpus.documents(), corpus.tokens());
    let mut out = stdout().lock();
    if arguments.json {
        let line = json!({ "documents": documents, "words": words, "held_out_words": held_out.tokens,
            "unknown_words": unknown, "log_likelihood": likelihood, "perplexity": perplexity });
        writeln!(out, "{line}")?;
        return Ok(());
    }
    writeln!(out, "log-likelihood  {likelihood:.4} a held-out word\nperplexity      {perplexity:.1}")?;
    writeln!(out, "documents       {documents}\nwords           {words}")?;
    writeln!(out, "held-out words  {}\nunknown words   {unknown}", held_out.tokens)?;
    Ok(())
}

fn judge_factors(arguments: &Arguments) -> Result<()> {
    arguments.reading.check_absent()?;
    let model = MfModel::load(&arguments.model)?;
    let Ratings { mut ratings, users, items } = Ratings::read(&arguments.data)?;
    let (users, unknown_users) = numbers_in(&model.users, &users);
    let (items, unknown_items) = numbers_in(&model.items, &items);
    let mut unknown_ratings = 0;
    for rating in &mut ratings {
        (rating.user, rating.item) = (users[rating.user as usize], items[rating.item as usize]);
        unknown_ratings += usize::from(rating.user == UNKNOWN || rating.item == UNKNOWN);
    }
    let (rmse, mae, count) = (model.rmse(&ratings), model.mae(&ratings), ratings.len());
    let mut out = stdout().lock();
    if arguments.json {
        let line = json!({ "ratings": count, "rmse": rmse, "mae": mae, "unknown_users": unknown_users,
            "unknown_items": unknown_items, "ratings_of_unknown": unknown_ratings });
        writeln!(out, "{line}")?;
        return Ok(());
    }
    writeln!(out, "RMSE           {rmse:.4}\nMAE            {mae:.4}\nratings        {count}")?;
    writeln!(out, "unknown users  {unknown_users}\nunknown items  {unknown_items}")?;
    writeln!(out, "ratings of unknown users or items  {unknown_ratings}")?;
    Ok(())
}

/// A number that no id of a model has; the model then predicts without the id.
const UNKNOWN: u32 = u32::MAX;

/// The model's number of each name, and how many it does not know.
fn numbers_in(model: &Names, names: &Names) -> (Vec<u32>, usize) {
    let numbers: Vec<u32> = names.iter().map(|name| model.get(name).unwrap_or(UNKNOWN)).collect();
    let unknown = numbers.iter().filter(|number| **number == UNKNOWN).count();
    (numbers, unknown)
}
