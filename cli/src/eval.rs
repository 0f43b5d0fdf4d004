//! `hemiola eval`: how well a model predicts ratings, words or classes, and how much its filters lose of images.

use crate::{classify, documents, logistic, metric, reading};
use anyhow::{Result, bail};
use clap::Args;
use hemiola_models::Names;
use hemiola_models::corpus::Corpus;
use hemiola_models::dml::model::DmlModel;
use hemiola_models::images::Image;
use hemiola_models::l1lr::model::L1lrModel;
use hemiola_models::lda::model::LdaModel;
use hemiola_models::mf::model::MfModel;
use hemiola_models::mlr::model::MlrModel;
use hemiola_models::model_directory::kind_of;
use hemiola_models::patches::Patches;
use hemiola_models::ratings::Ratings;
use hemiola_models::rica::model::RicaModel;
use hemiola_models::sc::model::ScModel;
use serde_json::json;
use std::io::{Write, stdout};
use std::path::PathBuf;

/// Measure how well a model predicts: ratings, where of unknown users and items only the means are used; with a topic
/// model half of the words of every document from the other half; the classes of examples; or how much of the patches of
/// images is lost between filters.
#[derive(Args)]
#[command(after_help = "\
Examples:
  hemiola eval ratings.model more.csv
  hemiola eval news.model docword.more.txt.gz --vocabulary vocab.news.txt
  hemiola eval digits.model t10k-images-idx3-ubyte.gz")]
pub(crate) struct Arguments {
    /// A model that `hemiola train` wrote
    model: PathBuf,
    /// Files of ratings, of documents for a topic model, of examples for a classifier, or of images for filters
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
        DmlModel::KIND => {
            metric::judge(&arguments.model, &arguments.data, &arguments.reading.examples()?, arguments.json)
        }
        RicaModel::KIND => judge_filters(arguments),
        ScModel::KIND => judge_dictionary(arguments),
        L1lrModel::KIND => {
            logistic::judge(&arguments.model, &arguments.data, arguments.reading.examples()?, arguments.json)
        }
        _ => judge_factors(arguments),
    }
}

fn judge_topics(arguments: &Arguments) -> Result<()> {
    let model = LdaModel::load(&arguments.model)?;
    let how = arguments.reading.documents()?;
    let (corpus, unknown) = Corpus::read_known(&arguments.data, &how, &model.vocabulary).map_err(documents::refused)?;
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

/// Patches that filters are judged by.
const PATCHES: usize = 20_000;

fn judge_filters(arguments: &Arguments) -> Result<()> {
    arguments.reading.check_absent()?;
    let model = RicaModel::load(&arguments.model)?;
    let images = Image::read(&arguments.data)?;
    let patches = Patches::draw(&images, model.side, PATCHES, 1)?;
    let sums = model.evaluate(&patches);
    let (lost, active) = (sums.lost / sums.energy, sums.active / PATCHES as f64);
    let mut out = stdout().lock();
    if arguments.json {
        let line = json!({ "images": images.len(), "patches": PATCHES, "lost": lost, "activity": active });
        writeln!(out, "{line}")?;
        return Ok(());
    }
    writeln!(out, "lost      {:.2} % of the patches when put together again\nactivity  {active:.4}", 100.0 * lost)?;
    writeln!(out, "images    {}\npatches   {PATCHES}", images.len())?;
    Ok(())
}

fn judge_dictionary(arguments: &Arguments) -> Result<()> {
    arguments.reading.check_absent()?;
    let model = ScModel::load(&arguments.model)?;
    let images = Image::read(&arguments.data)?;
    let sums = model.evaluate(&Patches::draw(&images, model.side, PATCHES, 1)?);
    let objective = sums.objective(model.sparsity) / PATCHES as f64;
    let (lost, nonzeros) = (sums.lost / sums.energy, sums.nonzeros as f64 / PATCHES as f64);
    let mut out = stdout().lock();
    if arguments.json {
        let line = json!({ "images": images.len(), "patches": PATCHES, "objective": objective, "lost": lost,
            "atoms_used": nonzeros });
        writeln!(out, "{line}")?;
        return Ok(());
    }
    writeln!(
        out,
        "objective  {objective:.5}\nlost       {:.2} % of the patches when put together again",
        100.0 * lost
    )?;
    writeln!(out, "atoms      {nonzeros:.1} a patch\nimages     {}\npatches    {PATCHES}", images.len())?;
    Ok(())
}

fn judge_factors(arguments: &Arguments) -> Result<()> {
    arguments.reading.check_absent()?;
    let model = MfModel::load(&arguments.model)?;
    let Ratings { ratings, users, items } = Ratings::read(&arguments.data)?;
    let mut ratings = ratings.into_vec();
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
