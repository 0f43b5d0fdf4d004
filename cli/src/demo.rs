//! `hemiola demo`: makes ratings, trains on them, and shows what the model has learnt.

use crate::train::job::Job;
use crate::train::mf::{Data, Way, train_and_save};
use crate::{deploy, interrupt, numbers};
use anyhow::Result;
use clap::Args;
use hemiola_models::generate::{Synthetic, generate, write_csv};
use hemiola_models::mf::Training;
use hemiola_models::mf::train::Config;
use hemiola_models::ratings::{HoldOut, Split};
use serde_json::json;
use std::collections::HashSet;
use std::io::{Write, stdout};

/// Show training, on data made for it, in less than a minute.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Makes another set of ratings
    #[arg(long, value_parser = numbers::seed, default_value = "1", allow_negative_numbers = true)]
    seed: u64,
}

/// One of the first users is shown what to like.
const SHOWN_USERS: usize = 50;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    interrupt::install()?;
    let what = Synthetic { users: 8_000, items: 3_000, count: 1_500_000, seed: arguments.seed, ..Synthetic::default() };
    let mut out = stdout().lock();
    writeln!(out, "Hemiola predicts ratings that nobody has given yet.\n")?;
    write!(out, "  making    {} users rate {} items, {} ratings in all ... ", what.users, what.items, what.count)?;
    out.flush()?;
    let made = generate(&what)?;
    let directory = tempfile::Builder::new().prefix("hemiola-demo-").tempdir()?.keep();
    let file = directory.join("ratings.csv");
    crate::outputs::write_whole(&file, |mut file| write_csv(&made.ratings, &mut file))?;
    let config = Config {
        training: Training { epochs: 40, ..Training::default() },
        patience: Some(2),
        seed: arguments.seed,
        ..Config::default()
    };
    let place = deploy::Options::default().meaning(config.consistency)?;
    writeln!(out, "done\n  training  on {} workers; a tenth of the ratings is held out", place.workers)?;
    let split = Split::new(made.ratings, HoldOut::Random { fraction: 0.1, seed: arguments.seed })?;
    let mut seen: Vec<HashSet<u32>> = vec![HashSet::new(); SHOWN_USERS];
    for rating in split.ratings().ratings.iter() {
        if let Some(seen) = seen.get_mut(rating.user as usize) {
            seen.insert(rating.item);
        }
    }
    let job = Job {
        deployment: place.deployment,
        workers: place.workers,
        quiet: false,
        out: directory.join("ratings.model"),
        is_out_given: true,
        report: None,
        plot: None,
        checkpoints: None,
        description: json!({}),
    };
    let finished = train_and_save(&job, &Way::Tables(config), Data::new(split))?;
    let Some(last) = finished.epochs.last() else { return Ok(()) };
    let spent = crate::progress::span(last.seconds);
    writeln!(out, "  trained   {} epochs in {spent}\n", last.epoch)?;
    let floor = made.floor_rmse;
    writeln!(
        out,
        "  held-out RMSE {:.4}; the noise in the ratings alone is {floor:.4}",
        last.quality.test_rmse.unwrap_or(f64::NAN)
    )?;
    let model = &finished.model;
    // Whoever is hardest to please: for many others the best items all reach five stars.
    let recommended = (0..).zip(&seen).map(|(user, seen)| (user, seen.len(), model.recommend(Some(user), 5, seen)));
    let best = |items: &[(u32, f32)]| items.first().map_or(f32::INFINITY, |item| item.1);
    let Some((user, rated, items)) = recommended.min_by(|one, other| best(&one.2).total_cmp(&best(&other.2))) else {
        return Ok(());
    };
    let user = model.users.name(user);
    writeln!(out, "\n  user {user} has rated {rated} items and would like these others most:")?;
    for (item, prediction) in items {
        let stars = "★".repeat(prediction.round() as usize);
        writeln!(out, "    item {:<6} {prediction:.2}  {stars}", model.items.name(item))?;
    }
    let (path, file) = (job.out.display(), file.display());
    writeln!(out, "\n  model     {path}\n  next      hemiola recommend {path} --user {user} --seen {file}")?;
    writeln!(out, "            hemiola train mf YOUR-RATINGS.csv")?;
    Ok(())
}
