//! A trained regression: what it predicts, and how well.

mod directory;
mod evaluation;

pub use evaluation::Evaluation;
use serde_json::Value;

use super::{kernel, row_width};
use crate::Names;
use crate::examples::{Example, Examples};

/// A trained regression, with the classes it was trained on.
#[derive(Clone, Debug, PartialEq)]
pub struct MlrModel {
    /// The classes by number.
    pub classes: Names,
    /// How the model was trained.
    pub config: Value,
    /// How well it did.
    pub metrics: Value,
    features: usize,
    /// What headers call the features; none if they are not named.
    feature_names: Vec<String>,
    /// Rows as the table of [`super`] has them, the bias last.
    rows: Vec<f32>,
}

/// Examples have another number of features than the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the examples have {found} features; expected {expected}, as the model has")]
pub struct OtherFeatures {
    /// How many the model has.
    pub expected: usize,
    /// How many the examples have.
    pub found: usize,
}

impl MlrModel {
    /// A model of these weights: one for each class in every row, rows for the features, and the bias behind them.
    ///
    /// # Panics
    /// If there are no classes, or the weights are not whole rows.
    #[must_use]
    pub fn new(classes: Names, weights: &[f32], config: Value, metrics: Value) -> Self {
        let count = classes.len();
        assert!(count > 0 && !weights.is_empty() && weights.len().is_multiple_of(count), "weights are whole rows");
        let features = weights.len() / count - 1;
        let mut rows = vec![0.0; (features + 1) * row_width(count)];
        for (row, weights) in rows.chunks_mut(row_width(count)).zip(weights.chunks(count)) {
            row[..count].copy_from_slice(weights);
        }
        Self { classes, config, metrics, features, feature_names: Vec::new(), rows }
    }

    /// The model with the names that headers must call its features by, or none.
    ///
    /// # Panics
    /// If there are some, but not one for each feature.
    #[must_use]
    pub fn with_feature_names(self, feature_names: Vec<String>) -> Self {
        assert!(feature_names.is_empty() || feature_names.len() == self.features, "a name for each feature, or none");
        Self { feature_names, ..self }
    }

    /// How many features the model has.
    #[must_use]
    pub fn features(&self) -> usize {
        self.features
    }

    /// What headers call the features; none if they are not named.
    #[must_use]
    pub fn feature_names(&self) -> &[String] {
        &self.feature_names
    }

    /// The weights of a feature for each class; those of the bias behind the last feature.
    ///
    /// # Panics
    /// If there is no such feature.
    #[must_use]
    pub fn weights(&self, feature: usize) -> &[f32] {
        let width = row_width(self.classes.len());
        &self.rows[feature * width..][..self.classes.len()]
    }

    /// Checks that the features of examples can be those of the model; ones written with their index may be fewer or more,
    /// and those that the model does not know are left out.
    ///
    /// # Errors
    /// If the examples state another number.
    pub fn check(&self, examples: &Examples) -> Result<(), OtherFeatures> {
        match examples.fixed_features() {
            Some(found) if found != self.features => Err(OtherFeatures { expected: self.features, found }),
            _ => Ok(()),
        }
    }

    /// The probability of each class, and the class with the greatest.
    #[must_use]
    pub fn predict(&self, example: Example<'_>) -> (u32, Vec<f32>) {
        let mut scratch = Scratch::default();
        self.probabilities(example, 0, &mut scratch);
        (best(&scratch.probabilities), scratch.probabilities)
    }

    /// How well the model predicts examples, whose labels are numbers of its classes.
    ///
    /// # Panics
    /// If a label is not the number of a class.
    #[must_use]
    pub fn evaluate(&self, examples: &Examples) -> Evaluation {
        let mut evaluation = Evaluation::new(self.classes.len());
        let mut scratch = Scratch::default();
        for (number, &label) in examples.labels().iter().enumerate() {
            let loss = self.probabilities(examples.example(number), label, &mut scratch);
            evaluation.count(label, best(&scratch.probabilities), loss);
        }
        evaluation
    }

    /// Puts the probabilities into `scratch`, and returns the loss if `label` is the class.
    fn probabilities(&self, example: Example<'_>, label: u32, scratch: &mut Scratch) -> f64 {
        let known = example.columns.partition_point(|&column| (column as usize) < self.features);
        scratch.columns.clear();
        scratch.columns.extend_from_slice(&example.columns[..known]);
        scratch.columns.push(self.features as u32);
        scratch.values.clear();
        scratch.values.extend_from_slice(&example.values[..known]);
        scratch.values.push(1.0);
        scratch.probabilities.resize(self.classes.len(), 0.0);
        kernel::probabilities(&self.rows, &scratch.columns, &scratch.values, label, &mut scratch.probabilities).loss
    }
}

/// An example with its bias, and what came of it.
#[derive(Default)]
struct Scratch {
    columns: Vec<u32>,
    values: Vec<f32>,
    probabilities: Vec<f32>,
}

/// The first of the classes with the greatest probability.
fn best(probabilities: &[f32]) -> u32 {
    let mut best = 0;
    for (class, &probability) in probabilities.iter().enumerate() {
        if probability > probabilities[best] {
            best = class;
        }
    }
    best as u32
}
