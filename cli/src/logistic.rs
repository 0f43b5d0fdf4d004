//! What `hemiola eval` and `hemiola predict` do with a logistic regression.

use crate::classify::check_and_tell_unknown;
use crate::predict::Field;
use anyhow::{Result, anyhow};
use hemiola_models::examples::{Examples, LabelColumn, Options};
use hemiola_models::l1lr::model::L1lrModel;
use serde_json::json;
use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

/// Prints loss, accuracy, area under the curve, and how many weights the model has.
pub(crate) fn judge(model: &Path, data: &[PathBuf], options: Options, as_json: bool) -> Result<()> {
    let model = L1lrModel::load(model)?;
    let options = Options { bits: model.hashed_bits, ..options };
    let examples = Examples::read_known(data, &options, &model.classes)?;
    model.check(&examples).map_err(|error| anyhow!("{}: {error}", data[0].display()))?;
    check_and_tell_unknown(&examples.unknown(model.weights.len()), &data[0])?;
    let evaluation = model.evaluate(&examples);
    let nonzeros = model.nonzeros().count();
    let mut out = stdout().lock();
    if as_json {
        let mut line = json!(evaluation);
        line["nonzeros"] = json!(nonzeros);
        writeln!(out, "{line}")?;
        return Ok(());
    }
    let auc = evaluation.auc.map_or_else(|| "-".to_owned(), |auc| format!("{auc:.4}"));
    writeln!(out, "loss      {:.4}\naccuracy  {:.4}\nAUC       {auc}", evaluation.loss, evaluation.accuracy)?;
    writeln!(out, "examples  {}\nweights   {nonzeros} of {}", evaluation.examples, model.weights.len())?;
    Ok(())
}

/// Prints the class of every example, and the probability of each class if asked.
pub(crate) fn predict(model: &Path, data: &[PathBuf], options: Options, probabilities: bool) -> Result<()> {
    let model = L1lrModel::load(model)?;
    let options = Options { bits: model.hashed_bits, ..options };
    let examples = Examples::read_unlabelled(data, &options)?;
    model.check(&examples).map_err(|error| {
        let taken_for_label = error.found + 1 == error.expected && options.label != LabelColumn::Absent;
        let hint = if taken_for_label { "; give --label none if no column is a label" } else { "" };
        anyhow!("{}: {error}{hint}", data[0].display())
    })?;
    check_and_tell_unknown(&examples.unknown(model.weights.len()), &data[0])?;
    let mut out = BufWriter::new(stdout().lock());
    if probabilities {
        writeln!(out, "class,{},{}", Field(model.classes.name(0)), Field(model.classes.name(1)))?;
    }
    for number in 0..examples.len() {
        let second = model.predict(examples.example(number));
        write!(out, "{}", Field(model.classes.name(u32::from(second > 0.5))))?;
        if probabilities {
            write!(out, ",{:.6},{second:.6}", 1.0 - second)?;
        }
        writeln!(out)?;
    }
    Ok(out.flush()?)
}
