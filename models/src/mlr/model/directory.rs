//! A regression as a directory: `weights.safetensors` and `classes.txt`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::MlrModel;
use crate::model_directory::{Contents, ModelDirectory, ModelError, Tensor};

const WEIGHTS: &str = "weights.safetensors";
const CLASSES: &str = "classes.txt";

#[derive(Serialize, Deserialize)]
struct Description {
    classes: usize,
    features: usize,
    config: Value,
    metrics: Value,
    /// Here and not in a file of names, because headers may call two features the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    feature_names: Vec<String>,
}

impl MlrModel {
    /// What the directory of a regression calls itself.
    pub const KIND: &str = "mlr";

    /// Writes the model, whole or not at all; an older model at `path` is replaced.
    ///
    /// # Errors
    /// If it cannot be written, or a weight is not a number.
    pub fn save(&self, path: &Path) -> Result<(), ModelError> {
        let (classes, features) = (self.classes.len(), self.features);
        let weights: Vec<f32> = (0..features).flat_map(|feature| self.weights(feature)).copied().collect();
        let description = Description {
            classes,
            features,
            config: self.config.clone(),
            metrics: self.metrics.clone(),
            feature_names: self.feature_names.clone(),
        };
        Contents {
            kind: Self::KIND,
            description: &description,
            tensor_file: WEIGHTS,
            tensors: vec![
                Tensor { name: "weights", shape: vec![features, classes], numbers: &weights },
                Tensor { name: "bias", shape: vec![classes], numbers: self.weights(features) },
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
        let classes = directory.names(CLASSES, description.classes)?;
        if classes.is_empty() {
            return Err(ModelError::NoClasses { path: directory.description_file() });
        }
        let (expected, found) = (description.features, description.feature_names.len());
        if found != 0 && found != expected {
            return Err(ModelError::IdCount { path: directory.description_file(), expected, found });
        }
        let expected: [(&str, &[usize]); 2] =
            [("weights", &[description.features, classes.len()]), ("bias", &[classes.len()])];
        let weights = directory.tensors(WEIGHTS, &expected)?.concat();
        let model = Self::new(classes, &weights, description.config, description.metrics);
        Ok(model.with_feature_names(description.feature_names))
    }
}
