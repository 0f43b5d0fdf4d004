//! The examples of a logistic regression, in memory or, as far as they do not fit, on disk.

use super::super::labelled::{check_test, read_line, read_test, test_options};
use crate::classify::tell_unknown;
use anyhow::{Error, Result, anyhow};
use hemiola_models::HoldOut;
use hemiola_models::examples::{Examples, Options, Unknown};
use hemiola_models::l1lr::model::{Evaluation, L1lrModel};
use hemiola_models::l1lr::path::lambda_max;
use hemiola_models::l1lr::solver::{Config, Solver};
use hemiola_models::l1lr::streamed::{Reading, StreamError, Streamed, Training};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// How much memory there is, and where that goes which does not fit.
pub(crate) struct Memory {
    pub(crate) limit: u64,
    pub(crate) scratch: PathBuf,
}

/// What is trained on, and what the model is judged by.
pub(crate) struct Data {
    /// All that is trained on; or, if that is on disk, what is known of it.
    pub(crate) known: Examples,
    /// What is on disk, until it is turned into a solver.
    training: Option<Training>,
    /// How many examples there are, and how many entries.
    counts: (usize, usize),
    test: Option<Test>,
    limit: u64,
}

/// What a model is judged by.
enum Test {
    Memory(Examples),
    /// On disk, with what is left out of it.
    Streamed(Streamed, Unknown),
}

impl Test {
    fn len(&self) -> usize {
        match self {
            Self::Memory(examples) => examples.len(),
            Self::Streamed(streamed, _) => streamed.len(),
        }
    }
}

impl Data {
    /// Reads examples into memory; `check` is asked what it thinks of them.
    pub(crate) fn read(
        files: &[PathBuf],
        test: Option<&Path>,
        options: &Options,
        rule: Option<HoldOut>,
        check: impl Fn(&Examples) -> Result<()>,
    ) -> Result<Self> {
        let all = Examples::read(files, options)?;
        check(&all)?;
        let (known, test) = match (test, rule) {
            (Some(test), _) => {
                let test = read_test(test, options, &all)?;
                (all, Some(Test::Memory(test)))
            }
            (None, None) => (all, None),
            (None, Some(rule)) => {
                let (train, test) = all.split(rule).map_err(|_| too_few(files, all.len()))?;
                (train, Some(Test::Memory(test)))
            }
        };
        Ok(Self { counts: (known.len(), known.entries()), known, training: None, test, limit: u64::MAX })
    }

    /// Reads examples onto disk; `check` is asked what it thinks of what is known of them.
    pub(crate) fn stream(
        files: &[PathBuf],
        test: Option<&Path>,
        options: &Options,
        rule: Option<HoldOut>,
        check: impl Fn(&Examples) -> Result<()>,
        memory: Memory,
    ) -> Result<Self> {
        let reading = Reading { options, directory: &memory.scratch, hold_out: rule };
        let (known, training, held_out) = Training::read(files, &reading)?;
        check(&known)?;
        if let Some(held_out) = held_out.as_ref().filter(|held_out| held_out.is_empty() || training.is_empty()) {
            return Err(too_few(files, training.len() + held_out.len()));
        }
        let test = match test {
            Some(file) => {
                let options = test_options(options, &known);
                let (test, streamed, unknown) = Streamed::read_known(&[file], &options, &known, &memory.scratch)?;
                check_test(file, &known, &test, &unknown)?;
                Some(Test::Streamed(streamed, unknown))
            }
            None => held_out.map(|held_out| Test::Streamed(held_out, Unknown::default())),
        };
        let counts = (training.len(), training.entries());
        Ok(Self { known, counts, training: Some(training), test, limit: memory.limit })
    }

    /// How many examples are trained on.
    pub(crate) fn len(&self) -> usize {
        self.counts.0
    }

    /// What the report says of the data.
    pub(crate) fn counts(&self) -> Value {
        json!({ "train": self.counts.0, "test": self.test.as_ref().map(Test::len),
            "features": self.known.features(), "entries": self.counts.1 })
    }

    /// What was read, as a line of what is told in the end.
    pub(crate) fn read_line(&self) -> String {
        read_line(&self.known, self.len(), self.test.as_ref().map(Test::len))
    }

    /// Says what of the examples to judge a model by it will leave out.
    pub(crate) fn tell(&self) {
        match &self.test {
            Some(Test::Memory(test)) => tell_unknown(&test.unknown(self.known.features())),
            Some(Test::Streamed(_, unknown)) => tell_unknown(unknown),
            None => {}
        }
    }

    pub(crate) fn lambda_max(&self, bias: bool) -> Result<f64> {
        Ok(match &self.training {
            Some(training) => training.lambda_max(bias)?,
            None => lambda_max(&self.known, 1, bias),
        })
    }

    /// A solver for these data; those on disk are then no longer here.
    pub(crate) fn solver(&mut self, l1_min: f64, workers: u32, config: &Config) -> Result<Solver> {
        let Some(training) = self.training.take() else {
            return Ok(Solver::new(&self.known, 1, l1_min, workers, config));
        };
        let judged = self.test.as_ref().map_or(0, Test::len);
        training.solver(l1_min, workers, config, (self.limit, judged)).map_err(|error| match error {
            StreamError::TooLittle { .. } => anyhow!("--memory: {error}"),
            error => error.into(),
        })
    }

    /// How well a model does, if there is something to judge it by.
    pub(crate) fn judge(&self, model: impl FnOnce() -> L1lrModel) -> Result<Option<Evaluation>> {
        Ok(match &self.test {
            None => None,
            Some(Test::Memory(examples)) => Some(model().evaluate(examples)),
            Some(Test::Streamed(streamed, _)) => Some(streamed.evaluate(&model())?),
        })
    }
}

fn too_few(files: &[PathBuf], count: usize) -> Error {
    let file = files[0].display();
    anyhow!("{file}: too few examples ({count}) to train on some and hold out others; give more, or --no-holdout")
}
