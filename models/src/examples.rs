//! Labelled examples: the class of each, and the features that are not zero.

mod criteo;
mod delimited;
mod error;
mod idx;
mod libsvm;
mod read;

pub use error::{CLASSES_MAX, EXAMPLES_MAX, ExampleProblem, ExamplesError, FEATURES_MAX, IdxProblem};
pub use idx::labels_beside;
pub(crate) use idx::{ImageFile, read_labels};
pub use read::{Format, LabelColumn, Options};

use std::collections::HashSet;

use crate::{HoldOut, Names, SplitError};

/// What messages call the content of a file.
const EXPECTED: &str = "examples";

/// Examples, one after the other, with the classes that their labels number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Examples {
    /// The classes by number.
    pub classes: Names,
    /// The class of each example.
    labels: Vec<u32>,
    /// Where each example's entries end.
    ends: Vec<usize>,
    /// The feature of each entry.
    columns: Vec<u32>,
    /// The value of each entry, never zero.
    values: Vec<f32>,
    /// How many features there are.
    features: usize,
    /// Whether the files said how many features there are, and not only which are not zero.
    fixed: bool,
    /// How many bits the features' numbers have, if they are hashes.
    hashed_bits: Option<u32>,
    /// How the first file is written, if they are from files.
    format: Option<Format>,
    /// The names of the features, where a file has them.
    feature_names: Vec<String>,
}

/// The features of an example that are not zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Example<'a> {
    /// Their numbers, ascending.
    pub columns: &'a [u32],
    /// Their values.
    pub values: &'a [f32],
}

/// What a model of some features leaves out of examples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// How many features the model has.
    pub known: usize,
    /// The features that it does not have.
    pub features: HashSet<u32>,
    /// How many entries these have.
    pub entries: usize,
    /// How many entries there are in all.
    pub all: usize,
}

impl Unknown {
    /// Counts the examples in.
    pub(crate) fn add(&mut self, examples: &Examples) {
        let beyond = examples.columns.iter().filter(|&&column| column as usize >= self.known);
        self.entries += beyond.clone().count();
        self.features.extend(beyond);
        self.all += examples.entries();
    }
}

impl Examples {
    /// No examples yet, of these classes.
    #[must_use]
    pub fn new(classes: Names) -> Self {
        Self { classes, ..Self::default() }
    }

    /// Adds an example; entries whose value is zero are left out.
    ///
    /// # Panics
    /// If the features are not ascending, a value is not finite, or the label is not one of the classes.
    pub fn push(&mut self, label: u32, entries: impl IntoIterator<Item = (u32, f32)>) {
        assert!((label as usize) < self.classes.len(), "a label is one of the classes");
        let mut next = 0;
        for (column, value) in entries {
            assert!(column >= next && value.is_finite(), "features are ascending and their values finite");
            next = column + 1;
            self.add_entry(column, value);
        }
        self.end(label);
    }

    /// Adds a feature to the example that [`Examples::end`] will end.
    fn add_entry(&mut self, column: u32, value: f32) {
        self.features = self.features.max(column as usize + 1);
        if value != 0.0 {
            self.columns.push(column);
            self.values.push(value);
        }
    }

    fn end(&mut self, label: u32) {
        self.labels.push(label);
        self.ends.push(self.columns.len());
    }

    /// Forgets the examples, but not what is known of all.
    fn clear(&mut self) {
        self.labels.clear();
        self.ends.clear();
        self.columns.clear();
        self.values.clear();
    }

    /// Says that examples have this many features, zeros included.
    fn fix_features(&mut self, features: usize) {
        self.features = self.features.max(features);
        self.fixed = true;
    }

    /// Says that features are numbered by hashes of so many bits.
    fn hash_features(&mut self, bits: u32) {
        self.fix_features(1 << bits);
        self.hashed_bits = Some(bits);
    }

    /// Takes the examples that the rule holds out apart: those to train on, and those held out.
    ///
    /// # Errors
    /// If the rule is none, or one part would be empty.
    pub fn split(&self, rule: HoldOut) -> Result<(Self, Self), SplitError> {
        let held_out = rule.held_out(EXPECTED)?;
        let empty = || Self {
            features: self.features,
            fixed: self.fixed,
            hashed_bits: self.hashed_bits,
            format: self.format,
            feature_names: self.feature_names.clone(),
            ..Self::new(self.classes.clone())
        };
        let (mut train, mut test) = (empty(), empty());
        for (row, &label) in self.labels.iter().enumerate() {
            let part = if held_out(row as u64) { &mut test } else { &mut train };
            let example = self.example(row);
            part.columns.extend_from_slice(example.columns);
            part.values.extend_from_slice(example.values);
            part.end(label);
        }
        if train.is_empty() || test.is_empty() {
            return Err(SplitError::Empty { what: EXPECTED, train: train.len(), test: test.len() });
        }
        Ok((train, test))
    }

    /// How many examples there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// One more than the greatest feature of any example.
    #[must_use]
    pub fn features(&self) -> usize {
        self.features
    }

    /// How many features every example has, where the files said so.
    #[must_use]
    pub fn fixed_features(&self) -> Option<usize> {
        self.fixed.then_some(self.features)
    }

    /// How many bits the features' numbers have, if they are hashes.
    #[must_use]
    pub fn hashed_bits(&self) -> Option<u32> {
        self.hashed_bits
    }

    /// How the first file is written, if the examples are from files.
    #[must_use]
    pub fn format(&self) -> Option<Format> {
        self.format
    }

    /// What the header of the first file that has one calls a feature.
    #[must_use]
    pub fn feature_name(&self, feature: usize) -> Option<&str> {
        self.feature_names.get(feature).map(String::as_str)
    }

    /// What headers call the features; none if there is a feature that they do not name.
    #[must_use]
    pub fn feature_names(&self) -> &[String] {
        if self.feature_names.len() == self.features { &self.feature_names } else { &[] }
    }

    /// How many entries are not zero.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.columns.len()
    }

    /// What a model of so many features leaves out.
    #[must_use]
    pub fn unknown(&self, known: usize) -> Unknown {
        let mut unknown = Unknown { known, ..Unknown::default() };
        unknown.add(self);
        unknown
    }

    /// The values of all entries, example by example.
    pub(crate) fn values(&self) -> &[f32] {
        &self.values
    }

    /// The class of each example.
    #[must_use]
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// The features of one example.
    ///
    /// # Panics
    /// If there is no such example.
    #[must_use]
    pub fn example(&self, example: usize) -> Example<'_> {
        let start = if example == 0 { 0 } else { self.ends[example - 1] };
        let range = start..self.ends[example];
        Example { columns: &self.columns[range.clone()], values: &self.values[range] }
    }
}
