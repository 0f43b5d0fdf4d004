//! The `hemiola` command line: parses, calls the subcommand, and decides the exit code.

mod budget;
mod calibrate;
mod checkpoint;
mod classify;
mod consistency;
mod demo;
mod deploy;
mod documents;
mod eval;
mod failure;
mod filters;
mod generate;
mod interrupt;
mod logistic;
mod metric;
mod numbers;
mod outputs;
mod plot;
mod predict;
mod progress;
mod reading;
mod recommend;
mod report;
mod reproduce;
mod simulate;
mod tiles;
mod topics;
mod topology;
mod train;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hemiola demo                                     see it work
  hemiola train mf ratings.csv                     learn from lines of user,item,rating
  hemiola recommend ratings.model --user 42        what user 42 would like
  hemiola eval ratings.model more.csv              how well the model predicts";

/// Trains models in parallel: on all cores of this machine, or in many processes.
#[derive(Parser)]
#[command(name = "hemiola", version, after_help = EXAMPLES, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train a model
    Train(train::Arguments),
    /// Measure how well a model predicts
    Eval(eval::Arguments),
    /// Predict the ratings of pairs of user and item, the topics of documents, or the classes of examples
    Predict(predict::Arguments),
    /// List the items a user would like most
    Recommend(recommend::Arguments),
    /// List the words of a model's topics
    Topics(topics::Arguments),
    /// Make synthetic data
    Generate(generate::Arguments),
    /// Show training, on data made for it, in less than a minute
    Demo(demo::Arguments),
    /// Say what a job would do on a cluster
    Simulate(simulate::Arguments),
    /// Make figures of the papers again
    Reproduce(reproduce::Arguments),
    /// Find who should send to whom when machines broadcast to only a few others
    Topology(topology::Arguments),
    /// Look at the checkpoints of a training
    Checkpoint(checkpoint::Arguments),
    /// Measure how long this machine takes for one rating
    Calibrate(calibrate::Arguments),
}

fn main() -> ExitCode {
    let result = Arguments::try_parse().map_err(anyhow::Error::from).and_then(|arguments| match arguments.command {
        Command::Train(arguments) => train::run(arguments),
        Command::Eval(arguments) => eval::run(&arguments),
        Command::Predict(arguments) => predict::run(&arguments),
        Command::Recommend(arguments) => recommend::run(&arguments),
        Command::Topics(arguments) => topics::run(&arguments),
        Command::Generate(arguments) => generate::run(arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Topology(arguments) => topology::run(&arguments),
        Command::Checkpoint(arguments) => checkpoint::run(&arguments),
        Command::Calibrate(arguments) => calibrate::run(&arguments),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::exit_code(&error),
    }
}
