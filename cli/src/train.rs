//! `hemiola train`: one subcommand per model.

pub(crate) mod dml;
pub(crate) mod engine;
mod held_out;
mod images;
pub(crate) mod job;
pub(crate) mod l1lr;
pub(crate) mod l2mlr;
mod labelled;
pub(crate) mod lda;
pub(crate) mod mf;
pub(crate) mod mlr;
pub(crate) mod peers;
mod rica;
mod saving;
pub(crate) mod sc;

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
    /// Learn to tell classes apart, by softmax regression with a proof of how good it is
    L2mlr(Box<l2mlr::Arguments>),
    /// Learn to tell classes apart, by softmax regression
    Mlr(Box<mlr::Arguments>),
    /// Learn a distance by which examples of a class lie close together
    Dml(Box<dml::Arguments>),
    /// Learn features of images, by reconstruction ICA
    Rica(Box<rica::Arguments>),
    /// Learn a dictionary of which images are put together from few atoms, by sparse coding
    Sc(Box<sc::Arguments>),
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    match arguments.model {
        Model::Mf(arguments) => mf::run(&arguments),
        Model::Lda(arguments) => lda::run(&arguments),
        Model::L1lr(arguments) => l1lr::run(&arguments),
        Model::L2mlr(arguments) => l2mlr::run(&arguments),
        Model::Mlr(arguments) => mlr::run(&arguments),
        Model::Dml(arguments) => dml::run(&arguments),
        Model::Rica(arguments) => rica::run(&arguments),
        Model::Sc(arguments) => sc::run(&arguments),
    }
}
