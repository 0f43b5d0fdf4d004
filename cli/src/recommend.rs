//! `hemiola recommend`: the items a user would like most.

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
#[command(after_help = "Example:\n  hemiola recommend ratings.model --user 42 --seen ratings.csv")]
pub(crate) struct Arguments {
    /// A model that `hemiola train` wrote
    model: PathBuf,
    /// Whom to recommend to
    #[arg(long)]
    user: String,
    /// How many items
    #[arg(short = 'n', long = "count", value_name = "N", value_parser = numbers::count, default_value = "5",
        allow_negative_numbers = true)]
    count: u32,
    /// Leave out what the user has rated in this file
    #[arg(long, value_name = "DATA")]
    seen: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let model = MfModel::load(&arguments.model)?;
    let user = known_user(&model, &arguments.model, &arguments.user)?;
    let mut seen = HashSet::new();
    if !arguments.seen.is_empty() {
        let ratings = Ratings::read(&arguments.seen)?;
        if let Some(rater) = ratings.users.get(&arguments.user) {
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
