//! How commands read documents.

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use hemiola_models::corpus::{CorpusError, Format, Reading};
use std::path::{Path, PathBuf};

/// How documents are read.
#[derive(Args)]
pub(crate) struct DocumentOptions {
    /// The format of documents [default: told by what the file holds]
    #[arg(long, value_enum)]
    format: Option<FormatName>,
    /// The words of docword or lda-c files, one a line [default: words are their numbers]; of text, no others are read
    #[arg(long, value_name = "FILE")]
    vocabulary: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum FormatName {
    /// UCI bag-of-words
    Docword,
    /// Lines of the number of distinct words and pairs of word:count
    LdaC,
    /// One document a line
    Text,
}

impl DocumentOptions {
    pub(crate) fn reading(&self) -> Reading {
        let format = self.format.map(|name| match name {
            FormatName::Docword => Format::DocWord,
            FormatName::LdaC => Format::LdaC,
            FormatName::Text => Format::Text,
        });
        Reading { format, vocabulary: self.vocabulary.clone(), ..Reading::default() }
    }

    /// The file of words, if one was named.
    pub(crate) fn vocabulary(&self) -> Option<&Path> {
        self.vocabulary.as_deref()
    }
}

/// What is wrong with documents, and the option that would put it right.
pub(crate) fn refused(error: CorpusError) -> anyhow::Error {
    match &error {
        CorpusError::Formats { format: Format::Text, .. } | CorpusError::Formats { first_format: Format::Text, .. } => {
            anyhow!("{error}, and a list of words by --vocabulary")
        }
        CorpusError::Unlisted { .. } => anyhow!("{error} by --vocabulary"),
        _ => error.into(),
    }
}
