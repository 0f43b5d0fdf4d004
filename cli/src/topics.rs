//! `hemiola topics`: what the topics of a model are about.

use crate::numbers;
use crate::predict::Field;
use anyhow::Result;
use clap::Args;
use hemiola_models::lda::model::LdaModel;
use std::io::{BufWriter, Write, stdout};
use std::path::PathBuf;

/// List the topics of a model, as lines of topic,share,words with the most probable words first.
#[derive(Args)]
#[command(after_help = "Example:\n  hemiola topics news.model --words 5")]
pub(crate) struct Arguments {
    /// A topic model
    model: PathBuf,
    /// How many words of each topic
    #[arg(short = 'n', long = "words", value_name = "N", value_parser = numbers::count, default_value = "10",
        allow_negative_numbers = true)]
    words: u32,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let model = LdaModel::load(&arguments.model)?;
    let mut out = BufWriter::new(stdout().lock());
    writeln!(out, "topic,share,words")?;
    for (topic, share) in model.topic_shares().iter().enumerate() {
        let top = model.top_words(topic, arguments.words as usize);
        let words: Vec<&str> = top.iter().map(|(word, _)| model.vocabulary.name(*word)).collect();
        writeln!(out, "{topic},{share:.4},{}", Field(&words.join(" ")))?;
    }
    out.flush()?;
    Ok(())
}
