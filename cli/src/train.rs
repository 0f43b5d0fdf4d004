//! `hemiola train`: one subcommand per model.

pub(crate) mod engine;
mod held_out;
pub(crate) mod job;
pub(crate) mod l1lr;
pub(crate) mod lda;
pub(crate) mod mf;
pub(crate) mod mlr;
mod rica;
mod saving;

use clap::{Args, Subcommand};

/// What to train.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    model: Model,
}

#[derive(Subcommand)]
enum Model {
    /// Factorise ratings, to predict those that are missing
    Mf(Box<mf::Arguments>),
    /// Find the topics of documents
    Lda(Box<lda::Arguments>),
    /// Learn to tell two classes apart by few features, by logistic regression
    L1lr(Box<l1lr::Arguments>),
    /// Learn to tell classes apart, by softmax regression
    Mlr(Box<mlr::Arguments>),
    /// Learn features of images, by reconstruction ICA
    Rica(Box<rica::Arguments>),
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    match arguments.model {
        Model::Mf(arguments) => mf::run(&arguments),
        Model::Lda(arguments) => lda::run(&arguments),
        Model::L1lr(arguments) => l1lr::run(&arguments),
        Model::Mlr(arguments) => mlr::run(&arguments),
        Model::Rica(arguments) => rica::run(&arguments),
    }
}
