//! What `hemiola eval` and `hemiola predict` do with a learnt metric.

use crate::classify::{check_and_tell_unknown, unfit};
use crate::predict::Field;
use anyhow::{Result, anyhow};
use hemiola_models::dml::model::DmlModel;
use hemiola_models::examples::{Examples, Options};
use serde_json::json;
use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

/// Prints how often the neighbours of examples tell their class.
pub(crate) fn judge(model: &Path, data: &[PathBuf], options: &Options, as_json: bool) -> Result<()> {
    let model = DmlModel::load(model)?;
    let examples = Examples::read_known(data, options, &model.classes)?;
    model.check(&examples).map_err(|error| anyhow!("{}: {error}", data[0].display()))?;
    check_and_tell_unknown(&examples.unknown(model.features()), &data[0])?;
    let found = model.classify(&model.project(&examples), workers());
    let right = found.iter().zip(examples.labels()).filter(|(found, label)| found == label).count();
    let accuracy = right as f64 / examples.len() as f64;
    let mut out = stdout().lock();
    if as_json {
        let line = json!({ "examples": examples.len(), "accuracy": accuracy, "neighbours": model.neighbours,
            "dimension": model.dimension() });
        writeln!(out, "{line}")?;
        return Ok(());
    }
    writeln!(out, "accuracy    {accuracy:.4}\nexamples    {}", examples.len())?;
    writeln!(out, "neighbours  {}\ndimensions  {}", model.neighbours, model.dimension())?;
    Ok(())
}

/// Prints the class of every example, or where it lies.
pub(crate) fn predict(model: &Path, data: &[PathBuf], options: &Options, vectors: bool) -> Result<()> {
    let model = DmlModel::load(model)?;
    let examples = Examples::read_unlabelled(data, options)?;
    model.check(&examples).map_err(|error| unfit(&error, data, options))?;
    check_and_tell_unknown(&examples.unknown(model.features()), &data[0])?;
    let projected = model.project(&examples);
    let mut out = BufWriter::new(stdout().lock());
    if vectors {
        for point in projected.chunks(model.dimension()) {
            let numbers: Vec<String> = point.iter().map(ToString::to_string).collect();
            writeln!(out, "{}", numbers.join(","))?;
        }
    } else {
        for class in model.classify(&projected, workers()) {
            writeln!(out, "{}", Field(model.classes.name(class)))?;
        }
    }
    Ok(out.flush()?)
}

fn workers() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
}
