//! The options that say which labelled examples to train on, and which to judge the model by.

use super::held_out::{HeldOut, USUAL};
use super::job::quoted;
use crate::classify::{ExampleOptions, check_known, format_name, tell_unknown};
use crate::failure::usage;
use anyhow::{Result, anyhow};
use clap::Args;
use hemiola_models::examples::{Examples, Format, Options, Unknown};
use std::path::{Path, PathBuf};

/// Labelled examples, some of them held out.
#[derive(Args)]
pub(super) struct Labelled {
    /// Files of labelled examples
    #[arg(required = true, value_name = "DATA")]
    pub(super) data: Vec<PathBuf>,
    #[command(flatten)]
    reading: ExampleOptions,
    #[command(flatten)]
    pub(super) held_out: HeldOut,
}

/// The files of examples that are read.
///
/// # Errors
/// If standard input is to be read twice.
pub(super) fn inputs<'a>(
    data: &'a [PathBuf],
    held_out: &'a HeldOut,
    reading: &'a ExampleOptions,
) -> Result<Vec<(&'static str, &'a Path)>> {
    let data = data.iter().map(|path| ("DATA", path.as_path()));
    let test = held_out.test.iter().map(|path| ("--test", path.as_path()));
    let labels = reading.labels().into_iter().map(|path| ("--labels", path));
    let inputs: Vec<_> = data.chain(test).chain(labels).collect();
    if inputs.iter().filter(|(_, path)| *path == Path::new("-")).count() > 1 {
        return Err(usage("standard input can be read only once; give '-' once"));
    }
    Ok(inputs)
}

/// The file to try a model on next and how to read it, as it is typed.
pub(super) fn next(data: &[PathBuf], held_out: &HeldOut, reading: &ExampleOptions) -> String {
    let file = held_out.test.as_ref().unwrap_or(&data[0]).display().to_string();
    let format = reading.format().map(|format| ("--format", format));
    let label = reading.label().map(|column| ("--label", column.to_owned()));
    // Those of a test file are beside it.
    let labels = reading.labels().filter(|_| held_out.test.is_none());
    let labels = labels.map(|file| ("--labels", file.display().to_string()));
    let options =
        format.into_iter().chain(label).chain(labels).map(|(option, value)| format!(" {option} {}", quoted(&value)));
    quoted(&file) + &options.collect::<String>()
}

/// Reads the examples to judge a model by, whose labels are beside them where they are images.
///
/// # Errors
/// If they cannot be read, or are not such as those to train on.
pub(super) fn read_test(file: &Path, options: &Options, train: &Examples) -> Result<Examples> {
    let test = Examples::read_known(&[file], &test_options(options, train), &train.classes)?;
    check_test(file, train, &test, &test.unknown(train.features()))?;
    Ok(test)
}

/// How examples to judge a model by are read.
pub(super) fn test_options(options: &Options, train: &Examples) -> Options {
    Options { labels_file: None, feature_names: train.feature_names().to_vec(), ..options.clone() }
}

/// Checks examples to judge a model by, of which this is known, and what the model will not know of them.
///
/// # Errors
/// If they are not such as those to train on.
pub(super) fn check_test(file: &Path, train: &Examples, test: &Examples, unknown: &Unknown) -> Result<()> {
    match (train.fixed_features(), test.fixed_features()) {
        (Some(expected), Some(found)) if found != expected => {
            let file = file.display();
            Err(anyhow!("{file}: the examples have {found} features; expected {expected}, as those to train on have"))
        }
        _ => check_known(unknown, file),
    }
}

/// Says what of the examples to judge a model by it will leave out.
pub(super) fn tell(train: &Examples, test: Option<&Examples>) {
    if let Some(test) = test {
        tell_unknown(&test.unknown(train.features()));
    }
}

/// What was read, as a line of what is told in the end: how many examples to train on and to judge the model by, and what is
/// known of all.
pub(super) fn read_line(known: &Examples, train: usize, test: Option<usize>) -> String {
    let format = known.format().map(format_name).unwrap_or_default();
    let test = test.map(|test| format!(" and {test} held out")).unwrap_or_default();
    let (features, classes) = (known.features(), known.classes.len());
    format!("examples       {train}{test}, {features} features, {classes} classes, read as {format}")
}

/// Fewer examples than these may each be of a class of their own.
const TELLING: usize = 20;

impl Labelled {
    /// The files that are read.
    ///
    /// # Errors
    /// If standard input is to be read twice.
    pub(super) fn inputs(&self) -> Result<Vec<(&'static str, &Path)>> {
        inputs(&self.data, &self.held_out, &self.reading)
    }

    /// Reads the examples and holds some out, drawn by `seed` where nothing else is said.
    ///
    /// # Errors
    /// If they cannot be read, or are too few.
    pub(super) fn read(&self, seed: u64) -> Result<(Examples, Option<Examples>)> {
        let (examples, test) = self.read_whole()?;
        self.check_classes(&examples)?;
        let Some(rule) = self.held_out.rule(Some(USUAL), seed) else {
            return Ok((examples, test));
        };
        let count = examples.len();
        let (train, test) = examples.split(rule).map_err(|_| {
            anyhow!(
                "{}: too few examples ({count}) to train on some and hold out others; give more, or --no-holdout",
                self.data[0].display()
            )
        })?;
        Ok((train, Some(test)))
    }

    /// Checks that labels name classes, of which there are several examples, and do not number or measure examples.
    fn check_classes(&self, examples: &Examples) -> Result<()> {
        let (count, classes) = (examples.len(), examples.classes.len());
        if count < TELLING || 2 * classes <= count {
            return Ok(());
        }
        let (label, expected) = match (self.reading.label(), examples.format()) {
            (Some(column), _) => (format!("column '{column}'"), "the column of a class"),
            (None, Some(Format::Delimited)) => ("the label".to_owned(), "the column of a class by --label"),
            _ => ("the label".to_owned(), "classes, which come again"),
        };
        let file = self.data[0].display();
        Err(anyhow!("{file}: {label} has {classes} values in {count} examples; expected {expected}"))
    }

    /// Reads the examples and those of the test file, if there is one; nothing else is held out.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) fn read_whole(&self) -> Result<(Examples, Option<Examples>)> {
        let options = self.reading.reading();
        let examples = Examples::read(&self.data, &options)?;
        let Some(file) = &self.held_out.test else { return Ok((examples, None)) };
        let test = read_test(file, &options, &examples)?;
        Ok((examples, Some(test)))
    }

    /// What to try a model on next, as it is typed.
    pub(super) fn next(&self) -> String {
        next(&self.data, &self.held_out, &self.reading)
    }
}
