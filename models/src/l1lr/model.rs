//! A trained regression: what it predicts, how well, and its directory of `weights.safetensors` and `classes.txt`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::solver::Fit;
use crate::Names;
use crate::examples::{Example, Examples};
use crate::mlr::model::OtherFeatures;
use crate::model_directory::{Contents, ModelDirectory, ModelError, Tensor};

const WEIGHTS: &str = "weights.safetensors";
const CLASSES: &str = "classes.txt";

/// A trained regression, with the two classes it tells apart.
#[derive(Clone, Debug, PartialEq)]
pub struct L1lrModel {
    /// The classes, of which the second is the one whose probability is predicted.
    pub classes: Names,
    /// How the model was trained.
    pub config: Value,
    /// How well it did.
    pub metrics: Value,
    /// How many bits the features' numbers have, if they are hashes.
    pub hashed_bits: Option<u32>,
    /// One for each feature, most of them zero.
    pub weights: Vec<f32>,
    /// What is added for every example.
    pub bias: f32,
}

/// How well a regression predicts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Evaluation {
    /// How many examples there were.
    pub examples: usize,
    /// The mean of `-ln` of the probability of the right class.
    pub loss: f64,
    /// The share of examples whose class was the more probable one.
    pub accuracy: f64,
    /// The chance that an example of the second class gets a higher probability than one of the first; nothing if there
    /// are none of one of them.
    pub auc: Option<f64>,
}

#[derive(Serialize, Deserialize)]
struct Description {
    features: usize,
    hashed_bits: Option<u32>,
    config: Value,
    metrics: Value,
}

impl Evaluation {
    /// How well margins tell which examples are of the second class.
    pub(super) fn new(margins: &[f64], positive: impl Fn(usize) -> bool) -> Self {
        let (mut loss, mut right) = (0.0, 0);
        for (row, &margin) in margins.iter().enumerate() {
            let towards = if positive(row) { margin } else { -margin };
            loss += (-towards).max(0.0) + (-towards.abs()).exp().ln_1p();
            right += usize::from((margin > 0.0) == positive(row));
        }
        let examples = margins.len();
        let (loss, accuracy) = (loss / examples as f64, right as f64 / examples as f64);
        Self { examples, loss, accuracy, auc: auc(margins, positive) }
    }
}

impl L1lrModel {
    /// What the directory of a regression calls itself.
    pub const KIND: &str = "l1lr";

    /// The model of a fit to these examples.
    #[must_use]
    pub fn new(examples: &Examples, fit: &Fit, config: Value, metrics: Value) -> Self {
        let mut weights = vec![0.0; examples.features()];
        fit.weights.iter().for_each(|&(feature, weight)| weights[feature as usize] = weight as f32);
        let (classes, hashed_bits) = (examples.classes.clone(), examples.hashed_bits());
        Self { classes, config, metrics, hashed_bits, weights, bias: fit.bias as f32 }
    }

    /// The features that have a weight, and these.
    pub fn nonzeros(&self) -> impl Iterator<Item = (usize, f32)> {
        self.weights.iter().copied().enumerate().filter(|(_, weight)| *weight != 0.0)
    }

    /// Checks that the features of examples can be those of the model; ones written with their index may be fewer or more,
    /// and those that the model does not know are left out.
    ///
    /// # Errors
    /// If the examples state another number.
    pub fn check(&self, examples: &Examples) -> Result<(), OtherFeatures> {
        match examples.fixed_features() {
            Some(found) if found != self.weights.len() => Err(OtherFeatures { expected: self.weights.len(), found }),
            _ => Ok(()),
        }
    }

    /// The probability of the second class.
    #[must_use]
    pub fn predict(&self, example: Example<'_>) -> f64 {
        1.0 / (1.0 + (-self.margin(example)).exp())
    }

    pub(super) fn margin(&self, example: Example<'_>) -> f64 {
        let weight = |feature: u32| self.weights.get(feature as usize).copied().unwrap_or(0.0);
        let products = example.columns.iter().zip(example.values).map(|(&feature, &value)| (weight(feature), value));
        f64::from(self.bias) + products.map(|(weight, value)| f64::from(weight) * f64::from(value)).sum::<f64>()
    }

    /// How well the model predicts examples, whose labels are numbers of its classes.
    #[must_use]
    pub fn evaluate(&self, examples: &Examples) -> Evaluation {
        let margins: Vec<f64> = (0..examples.len()).map(|row| self.margin(examples.example(row))).collect();
        Evaluation::new(&margins, |row| examples.labels()[row] == 1)
    }

    /// Writes the model, whole or not at all; an older model at `path` is replaced.
    ///
    /// # Errors
    /// If it cannot be written, or a weight is not a number.
    pub fn save(&self, path: &Path) -> Result<(), ModelError> {
        let description = Description {
            features: self.weights.len(),
            hashed_bits: self.hashed_bits,
            config: self.config.clone(),
            metrics: self.metrics.clone(),
        };
        Contents {
            kind: Self::KIND,
            description: &description,
            tensor_file: WEIGHTS,
            tensors: vec![
                Tensor { name: "weights", shape: vec![self.weights.len()], numbers: &self.weights },
                Tensor { name: "bias", shape: vec![1], numbers: &[self.bias] },
            ],
            names: vec![(CLASSES, &self.classes)],
        }
        .save(path)
    }

    /// Reads a model and checks that its files are whole and fit each other.
    ///
    /// # Errors
    /// If they do not.
    pub fn load(path: &Path) -> Result<Self, ModelError> {
        let (directory, description): (_, Description) = ModelDirectory::open(path, Self::KIND)?;
        let classes = directory.names(CLASSES, 2)?;
        let expected: [(&str, &[usize]); 2] = [("weights", &[description.features]), ("bias", &[1])];
        let mut tensors = directory.tensors(WEIGHTS, &expected)?;
        let bias = tensors.pop().unwrap_or_default().into_iter().sum();
        let weights = tensors.pop().unwrap_or_default();
        let Description { hashed_bits, config, metrics, .. } = description;
        Ok(Self { classes, config, metrics, hashed_bits, weights, bias })
    }
}

/// The area under the curve of hits over false alarms, where examples with the same margin count half.
fn auc(margins: &[f64], is_positive: impl Fn(usize) -> bool) -> Option<f64> {
    let mut order: Vec<usize> = (0..margins.len()).collect();
    order.sort_unstable_by(|&one, &other| margins[one].total_cmp(&margins[other]));
    let (mut below, mut ordered) = (0u64, 0.0);
    let (mut ones, mut others) = (0u64, 0u64);
    for equal in order.chunk_by(|&one, &other| margins[one] == margins[other]) {
        let positive = equal.iter().filter(|&&row| is_positive(row)).count() as u64;
        let negative = equal.len() as u64 - positive;
        ordered += positive as f64 * (below as f64 + negative as f64 / 2.0);
        below += negative;
        ones += positive;
        others += negative;
    }
    (ones > 0 && others > 0).then(|| ordered / (ones as f64 * others as f64))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_area_counts_pairs_in_the_right_order() {
        let auc = |margins: &[f64], labels: &[u32]| super::auc(margins, |row| labels[row] == 1);
        assert_eq!(auc(&[1.0, 2.0, 3.0, 4.0], &[0, 0, 1, 1]), Some(1.0));
        assert_eq!(auc(&[1.0, 2.0, 3.0, 4.0], &[0, 1, 0, 1]), Some(0.75));
        assert_eq!(auc(&[1.0, 1.0, 1.0], &[0, 1, 1]), Some(0.5));
        assert_eq!((auc(&[1.0], &[1]), auc(&[], &[])), (None, None));
    }
}
