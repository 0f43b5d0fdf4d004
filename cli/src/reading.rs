//! How `eval` and `predict` read what a model of any kind takes.

use crate::classify::label_column;
use crate::failure::usage;
use anyhow::Result;
use clap::{Args, ValueEnum};
use hemiola_models::{corpus, examples};
use std::path::PathBuf;

/// How documents or examples are read.
#[derive(Args)]
pub(crate) struct Options {
    /// The format of documents or examples [default: told by what the file holds]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// The words of docword or lda-c files, one a line; not needed if a model was trained without
    #[arg(long, value_name = "FILE")]
    vocabulary: Option<PathBuf>,
    /// The column of an example's label, by name or position from 1; 'none' to predict where there is none; the same whole
    /// number is the same class however it is written, as 7, 7.0 and 007 are
    #[arg(long, value_name = "COLUMN", allow_negative_numbers = true)]
    label: Option<String>,
    /// The labels of idx images, if they are not beside them
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// Documents: UCI bag-of-words
    Docword,
    /// Documents: lines of the number of distinct words and pairs of word:count
    LdaC,
    /// Documents: one a line
    Text,
    /// Examples: lines of label index:value ...
    Libsvm,
    /// Examples: lines of columns
    Delimited,
    /// Examples: MNIST's images
    Idx,
    /// Examples: Criteo's logs of clicks
    Criteo,
}

impl Options {
    /// How documents are read.
    ///
    /// # Errors
    /// If something was said of examples.
    pub(crate) fn documents(&self) -> Result<corpus::Reading> {
        let format = match self.format {
            None => None,
            Some(Format::Docword) => Some(corpus::Format::DocWord),
            Some(Format::LdaC) => Some(corpus::Format::LdaC),
            Some(Format::Text) => Some(corpus::Format::Text),
            Some(_) => return Err(usage("a topic model reads documents; give --format docword, lda-c or text")),
        };
        if self.label.is_some() || self.labels.is_some() {
            return Err(usage("--label and --labels have an effect only with classifiers"));
        }
        Ok(corpus::Reading { format, vocabulary: self.vocabulary.clone(), ..corpus::Reading::default() })
    }

    /// How labelled examples are read.
    ///
    /// # Errors
    /// If something was said of documents, or there are to be no labels.
    pub(crate) fn examples(&self) -> Result<examples::Options> {
        match self.label.as_deref() {
            Some("none") => Err(usage("without labels nothing can be judged; --label none is for predict")),
            _ => self.examples_to_predict(),
        }
    }

    /// How examples are read whose labels do not matter.
    ///
    /// # Errors
    /// If something was said of documents.
    pub(crate) fn examples_to_predict(&self) -> Result<examples::Options> {
        let format = match self.format {
            None => None,
            Some(Format::Libsvm) => Some(examples::Format::Libsvm),
            Some(Format::Delimited) => Some(examples::Format::Delimited),
            Some(Format::Idx) => Some(examples::Format::Idx),
            Some(Format::Criteo) => Some(examples::Format::Criteo),
            Some(_) => {
                return Err(usage("a classifier reads examples; give --format libsvm, delimited, idx or criteo"));
            }
        };
        if self.vocabulary.is_some() {
            return Err(usage("--vocabulary has an effect only with topic models"));
        }
        let label = match self.label.as_deref() {
            Some("none") => examples::LabelColumn::Absent,
            column => label_column(column),
        };
        Ok(examples::Options { format, label, labels_file: self.labels.clone(), ..examples::Options::default() })
    }

    /// Checks that nothing was said of documents or examples where a model reads ratings.
    ///
    /// # Errors
    /// If there was.
    pub(crate) fn check_absent(&self) -> Result<()> {
        if self.format.is_some() {
            return Err(usage("--format has an effect only with topic models and classifiers"));
        }
        if self.vocabulary.is_some() {
            return Err(usage("--vocabulary has an effect only with topic models"));
        }
        if self.label.is_some() || self.labels.is_some() {
            return Err(usage("--label and --labels have an effect only with classifiers"));
        }
        Ok(())
    }
}
