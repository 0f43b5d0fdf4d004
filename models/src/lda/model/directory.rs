//! A topic model as a directory: `topics.safetensors` and `vocabulary.txt`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::LdaModel;
use crate::model_directory::{Contents, ModelDirectory, ModelError, Tensor};

const TOPICS: &str = "topics.safetensors";
const VOCABULARY: &str = "vocabulary.txt";

#[derive(Serialize, Deserialize)]
struct Description {
    topics: usize,
    words: usize,
    beta: f32,
    config: Value,
    metrics: Value,
}

impl LdaModel {
    /// What the directory of a topic model calls itself.
    pub const KIND: &str = "lda";

    /// Writes the model, whole or not at all; an older model at `path` is replaced.
    ///
    /// # Panics
    /// If the counts do not fit the words and the topics.
    pub fn save(&self, path: &Path) -> Result<(), ModelError> {
        self.check(path, path)?;
        let (words, topics) = (self.vocabulary.len(), self.topics());
        let description =
            Description { topics, words, beta: self.beta, config: self.config.clone(), metrics: self.metrics.clone() };
        Contents {
            kind: Self::KIND,
            description: &description,
            tensor_file: TOPICS,
            tensors: vec![
                Tensor { name: "word_topic", shape: vec![words, topics], numbers: &self.word_topic },
                Tensor { name: "alpha", shape: vec![topics], numbers: &self.alpha },
            ],
            names: vec![(VOCABULARY, &self.vocabulary)],
        }
        .save(path)
    }

    /// Reads a model and checks that its files are whole and fit each other.
    pub fn load(path: &Path) -> Result<Self, ModelError> {
        let (directory, description): (_, Description) = ModelDirectory::open(path, Self::KIND)?;
        let vocabulary = directory.names(VOCABULARY, description.words)?;
        let (words, topics) = (vocabulary.len(), description.topics);
        let expected: [(_, &[usize]); 2] = [("word_topic", &[words, topics]), ("alpha", &[topics])];
        let mut tensors = directory.tensors(TOPICS, &expected)?.into_iter();
        let mut next = || tensors.next().expect("as many tensors as were asked for");
        let Description { beta, config, metrics, .. } = description;
        let model = Self { word_topic: next(), alpha: next(), vocabulary, beta, config, metrics };
        model.check(&directory.description_file(), &path.join(TOPICS))?;
        Ok(model)
    }

    /// Checks that probabilities can be made of the numbers; errors name the description or the file of counts.
    fn check(&self, path: &Path, counts: &Path) -> Result<(), ModelError> {
        let positive = |number: f32| number.is_finite() && number > 0.0;
        let alpha = self.alpha.iter().copied().find(|alpha| !positive(*alpha));
        if self.alpha.is_empty() || self.vocabulary.is_empty() || alpha.is_some() || !positive(self.beta) {
            let (topics, words) = (self.topics(), self.vocabulary.len());
            let (alpha, beta) = (alpha.or(self.alpha.first().copied()).unwrap_or_default(), self.beta);
            return Err(ModelError::Priors { path: path.to_owned(), topics, words, alpha, beta });
        }
        match self.word_topic.iter().position(|counted| *counted < 0.0) {
            Some(position) => {
                let value = self.word_topic[position];
                Err(ModelError::Negative { path: counts.to_owned(), name: "word_topic", position, value })
            }
            None => Ok(()),
        }
    }
}
