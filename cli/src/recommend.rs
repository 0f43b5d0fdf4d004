//! `hemiola recommend`: the items a user would like most.

use crate::failure::usage;
use crate::numbers;
use crate::predict::Field;
use anyhow::{Result, bail};
use clap::Args;
use hemiola_models::mf::model::MfModel;
use hemiola_models::ratings::Ratings;
use std::collections::HashSet;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

/// List the items a user would like most, as lines of item,prediction.
#[derive(Args)]
#[command(after_help = "\
Examples:
  hemiola recommend ratings.model --user 42 --seen ratings.csv
  hemiola recommend ratings.model --ratings mine.csv")]
pub(crate) struct Arguments {
    /// A model that `hemiola train` wrote
    model: PathBuf,
    /// Whom to recommend to; with --ratings of one user alone, that one
    #[arg(long, required_unless_present = "ratings", allow_negative_numbers = true)]
    user: Option<String>,
    /// How many items
    #[arg(short = 'n', long = "count", value_name = "N", value_parser = numbers::count, default_value = "5",
        allow_negative_numbers = true)]
    count: u32,
    /// Leave out what the user has rated in this file
    #[arg(long, value_name = "DATA")]
    seen: Vec<PathBuf>,
    /// Know users by their ratings in this file, also such as the model was not trained on, and leave out what they rated
    #[arg(long, value_name = "DATA")]
    ratings: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut model = MfModel::load(&arguments.model)?;
    let mut rated = Vec::new();
    if !arguments.ratings.is_empty() {
        let ratings = Ratings::read(&arguments.ratings)?;
        model.add_users(&ratings)?;
        rated.push(ratings);
    }
    let name = match (&arguments.user, rated.first()) {
        (None, Some(ratings)) => only_user(ratings, &arguments.ratings[0])?,
        (name, _) => name.as_deref().unwrap_or_default(),
    }
    .to_owned();
    if let Some(ratings) = rated.first() {
        check_rated(&model, &arguments.model, ratings, &arguments.ratings[0], &name)?;
    }
    let user = known_user(&model, &arguments.model, &name)?;
    if !arguments.seen.is_empty() {
        rated.push(Ratings::read(&arguments.seen)?);
    }
    let mut seen = HashSet::new();
    for ratings in &rated {
        if let Some(rater) = ratings.users.get(&name) {
            let items = ratings.ratings.iter().filter(|rating| rating.user == rater);
            seen.extend(items.filter_map(|rating| model.items.get(ratings.items.name(rating.item))));
        }
    }
    let mut out = stdout().lock();
    writeln!(out, "item,prediction")?;
    for (item, prediction) in model.recommend(Some(user), arguments.count as usize, &seen) {
        writeln!(out, "{},{prediction:.4}", Field(model.items.name(item)))?;
    }
    Ok(())
}

/// The user whose ratings these are, if they are one's.
fn only_user<'r>(ratings: &'r Ratings, path: &Path) -> Result<&'r str> {
    let mut users = ratings.users.iter();
    match (users.next(), users.len()) {
        (Some(user), 0) => Ok(user),
        (_, others) => Err(usage(format!(
            "{}: holds ratings of {} users; say by --user whom to recommend to",
            path.display(),
            others + 1
        ))),
    }
}

/// Checks that a user is known by these ratings.
fn check_rated(model: &MfModel, path: &Path, ratings: &Ratings, file: &Path, user: &str) -> Result<()> {
    let Some(rater) = ratings.users.get(user) else {
        bail!("{}: holds no ratings of user '{user}', by which --ratings would know that user", file.display());
    };
    let mut items = ratings.ratings.iter().filter(|rating| rating.user == rater);
    if items.any(|rating| model.items.get(ratings.items.name(rating.item)).is_some()) {
        return Ok(());
    }
    let examples: Vec<&str> = model.items.iter().take(3).collect();
    bail!(
        "{}: user '{user}' has rated none of the {} items that {} knows, such as {}",
        file.display(),
        model.items.len(),
        path.display(),
        examples.join(", ")
    )
}

fn known_user(model: &MfModel, path: &Path, user: &str) -> Result<u32> {
    if let Some(number) = model.users.get(user) {
        return Ok(number);
    }
    let examples: Vec<&str> = model.users.iter().take(3).collect();
    bail!(
        "{}: knows no user '{user}'; expected one of its {} users, such as {}",
        path.display(),
        model.users.len(),
        examples.join(", ")
    )
}
