//! What `hemiola eval` and `hemiola predict` do with a softmax regression.

use crate::predict::Field;
use crate::progress::say;
use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};
use hemiola_models::examples::{Examples, Format, LabelColumn, Options, Unknown};
use hemiola_models::mlr::model::{MlrModel, OtherFeatures};
use serde_json::json;
use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

/// How to read labelled examples.
#[derive(Args)]
#[command(next_help_heading = "Examples")]
pub(crate) struct ExampleOptions {
    /// The format, if it is not to be told from the content
    #[arg(long, value_name = "FORMAT")]
    format: Option<FormatName>,
    /// The column of the label, by name or position from 1; the same whole number is the same class however it is written,
    /// as 7, 7.0 and 007 are [default: that called label, class or target, or the last]
    #[arg(long, value_name = "COLUMN", allow_negative_numbers = true)]
    label: Option<String>,
    /// The labels of DATA, if that is idx images and they are not beside them
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum FormatName {
    /// Lines of label index:value ...
    Libsvm,
    /// Lines of columns
    Delimited,
    /// MNIST's images
    Idx,
    /// Criteo's logs of clicks
    Criteo,
}

impl FormatName {
    fn meaning(self) -> Format {
        match self {
            Self::Libsvm => Format::Libsvm,
            Self::Delimited => Format::Delimited,
            Self::Idx => Format::Idx,
            Self::Criteo => Format::Criteo,
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// What `--format` calls it.
pub(crate) fn format_name(format: Format) -> String {
    let found = FormatName::value_variants().iter().find(|name| name.meaning() == format);
    found.map_or_else(String::new, |name| name.name())
}

impl ExampleOptions {
    pub(crate) fn reading(&self) -> Options {
        let format = self.format.map(FormatName::meaning);
        let label = label_column(self.label.as_deref());
        Options { format, label, labels_file: self.labels.clone(), ..Options::default() }
    }

    /// The format, if one was named.
    pub(crate) fn format(&self) -> Option<String> {
        self.format.map(FormatName::name)
    }

    /// The column of the label, if one was named.
    pub(crate) fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// The file of labels, if one was named.
    pub(crate) fn labels(&self) -> Option<&Path> {
        self.labels.as_deref()
    }
}

/// The column of the label as people name it.
pub(crate) fn label_column(column: Option<&str>) -> LabelColumn {
    column.map_or(LabelColumn::Guess, |column| match column.parse() {
        Ok(position) => LabelColumn::Position(position),
        Err(_) => LabelColumn::Name(column.to_owned()),
    })
}

/// Prints loss, accuracy and which classes are taken for which.
pub(crate) fn judge(model: &Path, data: &[PathBuf], options: &Options, as_json: bool) -> Result<()> {
    let model = MlrModel::load(model)?;
    let options = named_as(&model, options);
    let examples = Examples::read_known(data, &options, &model.classes)?;
    model.check(&examples).map_err(|error| anyhow!("{}: {error}", data[0].display()))?;
    check_and_tell_unknown(&examples.unknown(model.features()), &data[0])?;
    let evaluation = model.evaluate(&examples);
    let (loss, accuracy, count) = (evaluation.loss(), evaluation.accuracy(), evaluation.examples());
    let classes = model.classes.len();
    let row = |label: usize| (0..classes).map(move |predicted| (label, predicted));
    let mut out = BufWriter::new(stdout().lock());
    if as_json {
        let confusion: Vec<Vec<u64>> = (0..classes)
            .map(|label| row(label).map(|(label, predicted)| evaluation.confused(label, predicted)).collect())
            .collect();
        let names: Vec<&str> = model.classes.iter().collect();
        let line = json!({ "examples": count, "loss": loss, "accuracy": accuracy, "classes": names,
            "confusion": confusion });
        writeln!(out, "{line}")?;
        return Ok(out.flush()?);
    }
    writeln!(out, "loss      {loss:.4}\naccuracy  {accuracy:.4}\nexamples  {count}\n")?;
    write!(out, "class,precision,recall")?;
    model.classes.iter().try_for_each(|name| write!(out, ",{}", Field(&format!("taken for {name}"))))?;
    writeln!(out)?;
    let share = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{share:.4}"));
    for (class, name) in model.classes.iter().enumerate() {
        write!(out, "{},{},{}", Field(name), share(evaluation.precision(class)), share(evaluation.recall(class)))?;
        row(class).try_for_each(|(label, predicted)| write!(out, ",{}", evaluation.confused(label, predicted)))?;
        writeln!(out)?;
    }
    Ok(out.flush()?)
}

/// How examples are read whose headers must call the features what they were called when the model was trained.
fn named_as(model: &MlrModel, options: &Options) -> Options {
    Options { feature_names: model.feature_names().to_vec(), ..options.clone() }
}

/// The sentence for examples without labels whose features are not those of a model.
pub(crate) fn unfit(error: &OtherFeatures, data: &[PathBuf], options: &Options) -> anyhow::Error {
    let taken_for_label = error.found + 1 == error.expected && options.label != LabelColumn::Absent;
    let hint = if taken_for_label { "; give --label none if no column is a label" } else { "" };
    anyhow!("{}: {error}{hint}", data[0].display())
}

/// Checks that a model knows something of examples, if there is anything to know.
///
/// # Errors
/// If it does not: then it tells nothing of them.
pub(crate) fn check_known(unknown: &Unknown, file: &Path) -> Result<()> {
    if unknown.entries > 0 && unknown.entries == unknown.all {
        let (file, known) = (file.display(), unknown.known);
        bail!("{file}: has no feature that the model knows; expected features below {known}");
    }
    Ok(())
}

/// Says what part of examples a model leaves out.
pub(crate) fn tell_unknown(unknown: &Unknown) {
    if unknown.entries > 0 {
        let part = 100.0 * unknown.entries as f64 / unknown.all as f64;
        say(&format!("features that the model does not know: {}, {part:.0} % of the entries", unknown.features.len()));
    }
}

/// Says what part of examples a model leaves out, unless that is all of them.
///
/// # Errors
/// If it is.
pub(crate) fn check_and_tell_unknown(unknown: &Unknown, file: &Path) -> Result<()> {
    check_known(unknown, file)?;
    tell_unknown(unknown);
    Ok(())
}

/// Prints the class of every example, and the probability of every class if asked.
pub(crate) fn predict(model: &Path, data: &[PathBuf], options: &Options, probabilities: bool) -> Result<()> {
    let model = MlrModel::load(model)?;
    let options = named_as(&model, options);
    let examples = Examples::read_unlabelled(data, &options)?;
    model.check(&examples).map_err(|error| unfit(&error, data, &options))?;
    check_and_tell_unknown(&examples.unknown(model.features()), &data[0])?;
    let mut out = BufWriter::new(stdout().lock());
    if probabilities {
        write!(out, "class")?;
        model.classes.iter().try_for_each(|name| write!(out, ",{}", Field(name)))?;
        writeln!(out)?;
    }
    for number in 0..examples.len() {
        let (class, shares) = model.predict(examples.example(number));
        write!(out, "{}", Field(model.classes.name(class)))?;
        if probabilities {
            shares.iter().try_for_each(|share| write!(out, ",{share:.6}"))?;
        }
        writeln!(out)?;
    }
    Ok(out.flush()?)
}
