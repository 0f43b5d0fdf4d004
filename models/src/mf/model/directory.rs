//! A factorisation as a directory: `factors.safetensors`, `users.txt` and `items.txt`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::MfModel;
use crate::model_directory::{Contents, ModelDirectory, ModelError, Tensor};

const FACTORS: &str = "factors.safetensors";
const USERS: &str = "users.txt";
const ITEMS: &str = "items.txt";

#[derive(Serialize, Deserialize)]
struct Description {
    rank: usize,
    users: usize,
    items: usize,
    biased: bool,
    mean: f32,
    rating_min: f32,
    rating_max: f32,
    config: Value,
    metrics: Value,
}

impl MfModel {
    /// What the directory of a factorisation calls itself.
    pub const KIND: &str = "mf";

    /// Writes the model, whole or not at all; an older model at `path` is replaced.
    ///
    /// # Panics
    ///
    /// If the lengths of factors or biases do not fit the ids and the rank.
    pub fn save(&self, path: &Path) -> Result<(), ModelError> {
        let (mean, (low, high)) = (self.mean, self.range);
        check_range(path, mean, low, high)?;
        assert_eq!(self.user_bias.is_some(), self.item_bias.is_some(), "both sides are biased or neither");
        let (users, items) = (self.users.len(), self.items.len());
        let factors = |name, count, numbers| Tensor { name, shape: vec![count, self.rank], numbers };
        let mut tensors = vec![
            factors("user_factors", users, &self.user_factors),
            factors("item_factors", items, &self.item_factors),
        ];
        let bias = |name, count, numbers| Tensor { name, shape: vec![count], numbers };
        tensors.extend(self.user_bias.iter().map(|numbers| bias("user_bias", users, numbers)));
        tensors.extend(self.item_bias.iter().map(|numbers| bias("item_bias", items, numbers)));
        let description = Description {
            rank: self.rank,
            users,
            items,
            biased: self.user_bias.is_some(),
            mean,
            rating_min: low,
            rating_max: high,
            config: self.config.clone(),
            metrics: self.metrics.clone(),
        };
        Contents {
            kind: Self::KIND,
            description: &description,
            tensor_file: FACTORS,
            tensors,
            names: vec![(USERS, &self.users), (ITEMS, &self.items)],
        }
        .save(path)
    }

    /// Reads a model and checks that its files are whole and fit each other.
    pub fn load(path: &Path) -> Result<Self, ModelError> {
        let (directory, description): (_, Description) = ModelDirectory::open(path, Self::KIND)?;
        let (mean, low, high) = (description.mean, description.rating_min, description.rating_max);
        check_range(&directory.description_file(), mean, low, high)?;
        let users = directory.names(USERS, description.users)?;
        let items = directory.names(ITEMS, description.items)?;
        let rank = description.rank;
        let (user_rows, item_rows, user_count, item_count) =
            ([users.len(), rank], [items.len(), rank], [users.len()], [items.len()]);
        let mut expected: Vec<(&'static str, &[usize])> =
            vec![("user_factors", &user_rows), ("item_factors", &item_rows)];
        if description.biased {
            expected.extend([("user_bias", &user_count[..]), ("item_bias", &item_count)]);
        }
        let mut tensors = directory.tensors(FACTORS, &expected)?.into_iter();
        let mut next = || tensors.next().expect("as many tensors as were asked for");
        Ok(Self {
            user_factors: next(),
            item_factors: next(),
            user_bias: description.biased.then(&mut next),
            item_bias: description.biased.then(&mut next),
            users,
            items,
            rank,
            mean,
            range: (low, high),
            config: description.config,
            metrics: description.metrics,
        })
    }
}

fn check_range(path: &Path, mean: f32, low: f32, high: f32) -> Result<(), ModelError> {
    if mean.is_finite() && low.is_finite() && high.is_finite() && low <= high {
        return Ok(());
    }
    Err(ModelError::Range { path: path.to_owned(), mean, low, high })
}
