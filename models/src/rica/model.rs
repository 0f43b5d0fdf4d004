//! Learnt filters, what they make of other patches, and their directory.

use super::kernel::{Scratch, Sums};
use crate::model_directory::{Contents, ModelDirectory, ModelError, Tensor};
use crate::patches::{Patches, Whitening};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

const NUMBERS: &str = "filters.safetensors";

/// Filters of square patches.
#[derive(Clone, Debug, PartialEq)]
pub struct RicaModel {
    /// Pixels of a patch's side.
    pub side: usize,
    /// The filters one after the other, in white coordinates.
    pub filters: Vec<f32>,
    /// How patches are made white.
    pub whitening: Whitening,
    /// How the filters were learnt.
    pub config: Value,
    /// How good they were.
    pub metrics: Value,
}

#[derive(Serialize, Deserialize)]
struct Description {
    side: usize,
    features: usize,
    config: Value,
    metrics: Value,
}

impl RicaModel {
    /// What the directory of such a model calls itself.
    pub const KIND: &str = "rica";

    /// What the filters make of patches, summed over them.
    ///
    /// # Panics
    /// If the patches have another size.
    #[must_use]
    pub fn evaluate(&self, patches: &Patches) -> Sums {
        assert_eq!(patches.side, self.side, "patches are of the filters' size");
        Scratch::default().judge(&self.filters, &self.whitening.apply(patches), self.side * self.side)
    }

    /// Writes the model, whole or not at all; an older model at `path` is replaced.
    ///
    /// # Errors
    /// If it cannot be written, or a number is none.
    pub fn save(&self, path: &Path) -> Result<(), ModelError> {
        let size = self.side * self.side;
        let features = self.filters.len() / size;
        let (config, metrics) = (self.config.clone(), self.metrics.clone());
        Contents {
            kind: Self::KIND,
            description: &Description { side: self.side, features, config, metrics },
            tensor_file: NUMBERS,
            tensors: vec![
                Tensor { name: "filters", shape: vec![features, size], numbers: &self.filters },
                Tensor { name: "whitening", shape: vec![size, size], numbers: &self.whitening.matrix },
            ],
            names: Vec::new(),
        }
        .save(path)
    }

    /// Reads a model and checks that its files are whole and fit each other.
    ///
    /// # Errors
    /// If they do not.
    pub fn load(path: &Path) -> Result<Self, ModelError> {
        let (directory, Description { side, features, config, metrics }) = ModelDirectory::open(path, Self::KIND)?;
        if side == 0 || features == 0 {
            return Err(ModelError::NoFilters { path: directory.description_file() });
        }
        let size = side.saturating_mul(side);
        let expected: [(&str, &[usize]); 2] = [("filters", &[features, size]), ("whitening", &[size, size])];
        let [filters, matrix] = directory.tensors(NUMBERS, &expected)?.try_into().expect("as many as were expected");
        Ok(Self { side, filters, whitening: Whitening { matrix }, config, metrics })
    }
}
