//! A learnt metric with the points that it was learnt from, and its directory of `metric.safetensors` and `classes.txt`.

use super::neighbours::Neighbours;
use super::train;
use crate::Names;
use crate::examples::Examples;
use crate::mlr::model::OtherFeatures;
use crate::model_directory::{Contents, ModelDirectory, ModelError, Tensor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

const NUMBERS: &str = "metric.safetensors";
const CLASSES: &str = "classes.txt";

/// A projection, and the examples under it, by whose classes others are classified.
#[derive(Clone, Debug, PartialEq)]
pub struct DmlModel {
    /// The classes by number.
    pub classes: Names,
    /// How the projection was learnt.
    pub config: Value,
    /// How well it did.
    pub metrics: Value,
    /// Neighbours that decide on a class.
    pub neighbours: usize,
    features: usize,
    /// Row by row, with a row for each dimension.
    projection: Vec<f32>,
    /// The projected examples one after the other.
    points: Vec<f32>,
    labels: Vec<u32>,
}

#[derive(Serialize, Deserialize)]
struct Description {
    classes: usize,
    features: usize,
    dimension: usize,
    points: usize,
    neighbours: usize,
    config: Value,
    metrics: Value,
}

impl DmlModel {
    /// What the directory of a metric calls itself.
    pub const KIND: &str = "dml";

    /// The metric of a projection, with these examples as points.
    ///
    /// # Panics
    /// If the projection is not of the examples' features.
    #[must_use]
    pub fn new(examples: &Examples, projection: Vec<f32>, neighbours: usize) -> Self {
        let features = examples.features();
        let points = train::project(&projection, features, examples, examples.len());
        Self {
            classes: examples.classes.clone(),
            config: Value::Null,
            metrics: Value::Null,
            neighbours,
            features,
            projection,
            points,
            labels: examples.labels().to_vec(),
        }
    }

    /// Numbers of a projected example.
    #[must_use]
    pub fn dimension(&self) -> usize {
        self.projection.len() / self.features
    }

    /// How many features the metric is of.
    #[must_use]
    pub fn features(&self) -> usize {
        self.features
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

    /// Examples under the projection, one after the other.
    #[must_use]
    pub fn project(&self, examples: &Examples) -> Vec<f32> {
        train::project(&self.projection, self.features, examples, examples.len())
    }

    /// The class of each projected example, by its neighbours; by so many threads.
    #[must_use]
    pub fn classify(&self, projected: &[f32], workers: u32) -> Vec<u32> {
        Neighbours::new(&self.points, self.dimension(), &self.labels).classify(projected, self.neighbours, workers)
    }

    /// Writes the model, whole or not at all; an older model at `path` is replaced.
    ///
    /// # Errors
    /// If it cannot be written, or a number is none.
    pub fn save(&self, path: &Path) -> Result<(), ModelError> {
        let (dimension, points) = (self.dimension(), self.labels.len());
        let description = Description {
            classes: self.classes.len(),
            features: self.features,
            dimension,
            points,
            neighbours: self.neighbours,
            config: self.config.clone(),
            metrics: self.metrics.clone(),
        };
        let labels: Vec<f32> = self.labels.iter().map(|&label| label as f32).collect();
        Contents {
            kind: Self::KIND,
            description: &description,
            tensor_file: NUMBERS,
            tensors: vec![
                Tensor { name: "projection", shape: vec![dimension, self.features], numbers: &self.projection },
                Tensor { name: "points", shape: vec![points, dimension], numbers: &self.points },
                Tensor { name: "labels", shape: vec![points], numbers: &labels },
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
        let Description { features, dimension, points: count, neighbours, config, metrics, .. } = description;
        let classes = directory.names(CLASSES, description.classes)?;
        if classes.is_empty() || [features, dimension, count, neighbours].contains(&0) {
            return Err(ModelError::NoClasses { path: directory.description_file() });
        }
        let expected: [(&str, &[usize]); 3] =
            [("projection", &[dimension, features]), ("points", &[count, dimension]), ("labels", &[count])];
        let [projection, points, numbers] =
            directory.tensors(NUMBERS, &expected)?.try_into().expect("as many as were expected");
        let label = |(position, &value): (usize, &f32)| match value {
            _ if value >= 0.0 && (value as usize) < classes.len() && value.fract() == 0.0 => Ok(value as u32),
            _ => Err(ModelError::Label { path: path.join(NUMBERS), position, value, classes: classes.len() }),
        };
        let labels = numbers.iter().enumerate().map(label).collect::<Result<_, _>>()?;
        Ok(Self { classes, config, metrics, neighbours, features, projection, points, labels })
    }
}
