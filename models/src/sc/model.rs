//! A learnt dictionary, what it makes of other patches, and its directory.

use super::codes::Coder;
use super::factors::{Sums, factors};
use crate::model_directory::{Contents, ModelDirectory, ModelError, Tensor};
use crate::patches::Patches;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

const NUMBERS: &str = "dictionary.safetensors";

/// Atoms of square patches.
#[derive(Clone, Debug, PartialEq)]
pub struct ScModel {
    /// Pixels of a patch's side.
    pub side: usize,
    /// The atoms one after the other.
    pub atoms: Vec<f32>,
    /// Weight of the absolute codes.
    pub sparsity: f32,
    /// How the atoms were learnt.
    pub config: Value,
    /// How good they were.
    pub metrics: Value,
}

#[derive(Serialize, Deserialize)]
struct Description {
    side: usize,
    atoms: usize,
    sparsity: f32,
    config: Value,
    metrics: Value,
}

impl ScModel {
    /// What the directory of such a model calls itself.
    pub const KIND: &str = "sc";

    /// What the dictionary makes of patches, summed over them.
    ///
    /// # Panics
    /// If the patches have another size.
    #[must_use]
    pub fn evaluate(&self, patches: &Patches) -> Sums {
        assert_eq!(patches.side, self.side, "patches are of the atoms' size");
        let size = self.side * self.side;
        factors(&Coder::new(&self.atoms, size, self.sparsity), &self.atoms, size, &patches.numbers).sums
    }

    /// Writes the model, whole or not at all; an older model at `path` is replaced.
    ///
    /// # Errors
    /// If it cannot be written, or a number is none.
    pub fn save(&self, path: &Path) -> Result<(), ModelError> {
        let size = self.side * self.side;
        let (side, sparsity, atoms) = (self.side, self.sparsity, self.atoms.len() / size);
        let (config, metrics) = (self.config.clone(), self.metrics.clone());
        Contents {
            kind: Self::KIND,
            description: &Description { side, atoms, sparsity, config, metrics },
            tensor_file: NUMBERS,
            tensors: vec![Tensor { name: "atoms", shape: vec![atoms, size], numbers: &self.atoms }],
            names: Vec::new(),
        }
        .save(path)
    }

    /// Reads a model and checks that its files are whole and fit each other.
    ///
    /// # Errors
    /// If they do not.
    pub fn load(path: &Path) -> Result<Self, ModelError> {
        let (directory, description) = ModelDirectory::open(path, Self::KIND)?;
        let Description { side, atoms, sparsity, config, metrics } = description;
        if side == 0 || atoms == 0 {
            return Err(ModelError::NoFilters { path: directory.description_file() });
        }
        let expected: [(&str, &[usize]); 1] = [("atoms", &[atoms, side.saturating_mul(side)])];
        let [atoms] = directory.tensors(NUMBERS, &expected)?.try_into().expect("as many as were expected");
        Ok(Self { side, atoms, sparsity, config, metrics })
    }
}
