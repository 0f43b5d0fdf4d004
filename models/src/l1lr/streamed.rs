//! Examples that do not fit into memory: read once into a file by rows, turned round into a file by columns, and fitted
//! from there.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::columns::{Columns, Found, Making, Room};
use super::model::{Evaluation, L1lrModel};
use super::path::Slopes;
use super::rows_file::{RowsFile, RowsWriter};
use super::solver::{Config, Solver, delay_for, workers_for};
use super::stored::BUFFERS;
use crate::examples::{Examples, ExamplesError, Options, Unknown};
use crate::hold_out::{HoldOut, SplitError};

/// Why examples could not be kept in a directory.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot hold the examples that memory does not: {source}", directory.display())]
pub struct ScratchError {
    /// Where they were to be kept.
    pub directory: PathBuf,
    /// What the operating system said.
    pub source: io::Error,
}

/// Why examples could not be read or fitted in parts.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// Something about the files.
    #[error(transparent)]
    Examples(#[from] ExamplesError),
    /// Something about the directory.
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    /// The rule to hold examples out is none.
    #[error(transparent)]
    Split(#[from] SplitError),
    /// What has to be in memory does not fit.
    #[error(
        "{} is too little memory for {examples} examples of {features} features; {} would do",
        Megabytes(*limit),
        Megabytes(*needed)
    )]
    TooLittle {
        /// The bytes that there may be.
        limit: u64,
        /// The bytes that there have to be.
        needed: u64,
        /// How many examples there are.
        examples: usize,
        /// How many features there are.
        features: usize,
    },
}

/// Bytes as whole megabytes, upwards.
struct Megabytes(u64);

impl std::fmt::Display for Megabytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}mb", self.0.div_ceil(1_000_000))
    }
}

/// Examples of which only the labels are in memory.
pub struct Streamed {
    directory: PathBuf,
    rows: RowsFile,
    /// The class of each example; all beyond the first 255 are one.
    labels: Vec<u8>,
}

/// What is trained on.
pub struct Training {
    examples: Streamed,
    /// What was found out about every feature.
    found: Vec<Found>,
}

/// How examples are read in parts.
pub struct Reading<'r> {
    /// How their files are read.
    pub options: &'r Options,
    /// The directory that takes them. Nothing is left there, however the program ends.
    pub directory: &'r Path,
    /// Which are held out, if some are.
    pub hold_out: Option<HoldOut>,
}

/// What a process takes besides what is counted.
const BASE_BYTES: usize = 20 << 20;
/// Words of columns that are read at a time, at most.
const READ_WORDS_MAX: usize = 1 << 20;

impl Training {
    /// Reads files to train on, and those examples apart that are held out; there may be none of either. What is known of
    /// all examples is returned with them.
    ///
    /// # Errors
    /// If a file is not as it should be, or the directory cannot take the examples.
    pub fn read<P: AsRef<Path>>(
        files: &[P],
        reading: &Reading<'_>,
    ) -> Result<(Examples, Self, Option<Streamed>), StreamError> {
        let held_out = reading.hold_out.map(|rule| rule.held_out("examples")).transpose()?;
        let is_held_out = |row: usize| held_out.as_ref().is_some_and(|held_out| held_out(row as u64));
        let mut found: Vec<Found> = Vec::new();
        let mut writers = [Streamed::writer(reading.directory)?, Streamed::writer(reading.directory)?];
        let mut labels = [Vec::new(), Vec::new()];
        let mut sink = |examples: &Examples, before: usize| {
            found.resize(found.len().max(examples.features()), Found::default());
            for (row, &label) in examples.labels().iter().enumerate() {
                let part = usize::from(is_held_out(before + row));
                let example = examples.example(row);
                labels[part].push(label.min(u32::from(u8::MAX)) as u8);
                writers[part].push(example)?;
                if part == 0 {
                    for (&feature, &value) in example.columns.iter().zip(example.values) {
                        // Which of two classes is the first does not matter to what the slope can be at most.
                        found[feature as usize].add(value, label == 1);
                    }
                }
            }
            Ok(())
        };
        let mut known = Examples::stream(files, reading.options, None, &mut sink)
            .map_err(|error| Streamed::failure(reading.directory, error))?;
        let new_labels = known.order_classes();
        for label in labels.iter_mut().flatten() {
            *label = new_labels[usize::from(*label)].min(u32::from(u8::MAX)) as u8;
        }
        let ([train, test], [train_labels, test_labels]) = (writers, labels);
        let examples = Streamed::finish(train, train_labels, reading.directory)?;
        let test = match reading.hold_out {
            Some(_) => Some(Streamed::finish(test, test_labels, reading.directory)?),
            None => None,
        };
        Ok((known, Self { examples, found }, test))
    }

    /// How many examples there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.examples.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many entries are not zero.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.examples.rows.entries()
    }

    /// As [`lambda_max`](super::path::lambda_max) of examples in memory.
    ///
    /// # Errors
    /// If the examples cannot be read again.
    pub fn lambda_max(&self, bias: bool) -> Result<f64, ScratchError> {
        let labels = &self.examples.labels;
        let positives = labels.iter().filter(|label| **label == 1).count();
        let mut slopes = Slopes::new(self.found.len(), bias.then_some((positives, labels.len())));
        let read = self.examples.rows.each(|row, example| slopes.add(example, labels[row] == 1));
        read.map_err(|source| self.examples.unreadable(source))?;
        Ok(slopes.greatest() / labels.len() as f64)
    }

    /// As [`Solver::new`] with the second class to be predicted, within so many bytes of memory, of which examples that
    /// the model is judged by take their part. The weights are the same to the bit, unless a Newton step would take more
    /// memory than is left: passes go on instead, to the same optimum.
    ///
    /// # Errors
    /// If the memory is too little, or the directory cannot take the columns.
    pub fn solver(
        self,
        l1_min: f64,
        workers: u32,
        config: &Config,
        limit: (u64, usize),
    ) -> Result<Solver, StreamError> {
        let (room, newton_bytes) = self.room(l1_min, workers, config, limit)?;
        let mut solver = self.solver_within(l1_min, workers, config, room)?;
        solver.limit_newton(newton_bytes);
        Ok(solver)
    }

    /// How the memory is shared out, and how many bytes of it a Newton step may take; `limit` is as for
    /// [`Training::solver`].
    fn room(
        &self,
        l1_min: f64,
        workers: u32,
        config: &Config,
        (limit, judged): (u64, usize),
    ) -> Result<(Room, usize), StreamError> {
        let (examples, features) = (self.len(), self.found.len());
        let workers = workers_for(self.entries(), workers);
        let worth = l1_min * examples as f64;
        let (mut columns, mut longest) = (1, examples);
        for found in self.found.iter().filter(|found| found.is_worth(worth)) {
            columns += 1;
            longest = longest.max(found.count as usize * if found.varies { 2 } else { 1 });
        }
        let limit_bytes = usize::try_from(limit).unwrap_or(usize::MAX);
        let read_words = (limit_bytes / 256).clamp(1 << 12, READ_WORDS_MAX);
        // Targets, margins, steps and slopes, and the copies of the model, which the columns' rows are looked up in.
        let per_example = 4 + 8 + 8 + 4 + 8 * (delay_for(workers, config) + 1);
        // Weights, flags, numbers, ends, values, blocks, tasks and changes.
        let per_column = 96;
        let buffers = 4 * workers * BUFFERS * longest.max(read_words);
        // Margins, labels and their order.
        let judging = 20 * judged;
        let solving = BASE_BYTES + examples * per_example + columns * per_column + 12 * features + buffers + judging;
        // Labels, targets, what was found out, and the numbers of the columns.
        let filling = BASE_BYTES + 5 * examples + 28 * features + 40 * columns + judged;
        let needed = solving.max(filling + 4 * longest);
        if limit_bytes < needed {
            // With something to keep columns in.
            let needed = (needed + needed / 8) as u64;
            return Err(StreamError::TooLittle { limit, needed, examples, features });
        }
        let left = limit_bytes - solving;
        let room = Room { fill_words: (limit_bytes - filling) / 4, read_words, cache_words: left * 3 / 4 / 4 };
        Ok((room, left / 4))
    }

    fn solver_within(self, l1_min: f64, workers: u32, config: &Config, room: Room) -> Result<Solver, ScratchError> {
        let began = Instant::now();
        let Self { examples, found } = self;
        let workers = workers_for(examples.rows.entries(), workers);
        let targets = examples.labels.iter().map(|&label| if label == 1 { 1.0 } else { 0.0 }).collect();
        let worth = l1_min * examples.len() as f64;
        let making = Making { positive: 1, worth, bias: config.bias, seed: config.seed, workers };
        let columns = tempfile::tempfile_in(&examples.directory)
            .and_then(|file| Columns::in_file(&examples.rows, targets, &found, making, (file, room)))
            .map_err(|source| examples.unreadable(source))?;
        drop((examples, found));
        Ok(Solver::of_columns(columns, workers, config, began))
    }
}

impl Streamed {
    /// Reads files whose examples are of the classes of those to train on, to judge a model by. What is known of all examples
    /// is returned with them, and what of them a model leaves out.
    ///
    /// # Errors
    /// If a file is not as it should be, or the directory cannot take the examples.
    pub fn read_known<P: AsRef<Path>>(
        files: &[P],
        options: &Options,
        train: &Examples,
        directory: &Path,
    ) -> Result<(Examples, Self, Unknown), StreamError> {
        let (mut writer, mut labels) = (Self::writer(directory)?, Vec::new());
        let mut unknown = Unknown { known: train.features(), ..Unknown::default() };
        let mut sink = |examples: &Examples, _: usize| {
            unknown.add(examples);
            labels.extend(examples.labels().iter().map(|&label| label.min(u32::from(u8::MAX)) as u8));
            (0..examples.len()).try_for_each(|row| writer.push(examples.example(row)))
        };
        let known = Examples::stream(files, options, Some(&train.classes), &mut sink)
            .map_err(|error| Self::failure(directory, error))?;
        Ok((known, Self::finish(writer, labels, directory)?, unknown))
    }

    /// How many examples there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How well a model predicts the examples.
    ///
    /// # Errors
    /// If the examples cannot be read again.
    pub fn evaluate(&self, model: &L1lrModel) -> Result<Evaluation, ScratchError> {
        let mut margins = Vec::with_capacity(self.len());
        let read = self.rows.each(|_, example| margins.push(model.margin(example)));
        read.map_err(|source| self.unreadable(source))?;
        Ok(Evaluation::new(&margins, |row| self.labels[row] == 1))
    }

    fn writer(directory: &Path) -> Result<RowsWriter, ScratchError> {
        RowsWriter::create(directory).map_err(|source| ScratchError { directory: directory.to_owned(), source })
    }

    fn finish(writer: RowsWriter, labels: Vec<u8>, directory: &Path) -> Result<Self, ScratchError> {
        let directory = directory.to_owned();
        match writer.finish() {
            Ok(rows) => Ok(Self { directory, rows, labels }),
            Err(source) => Err(ScratchError { directory, source }),
        }
    }

    fn failure(directory: &Path, error: ExamplesError) -> StreamError {
        match error {
            ExamplesError::Sink(source) => ScratchError { directory: directory.to_owned(), source }.into(),
            error => error.into(),
        }
    }

    fn unreadable(&self, source: io::Error) -> ScratchError {
        ScratchError { directory: self.directory.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::super::blocks::Cut;
    use std::fmt::Write;

    use super::super::path::lambda_max;
    use super::super::prox::Penalty;
    use super::super::reference::tests::examples;
    use super::super::stopping::Stopping;
    use super::*;

    /// Examples as a file of text.
    fn written(examples: &Examples, path: &Path) {
        let mut text = String::new();
        for (row, &label) in examples.labels().iter().enumerate() {
            let example = examples.example(row);
            // The class that comes first is not the first of the two.
            write!(text, "{}", if label == 1 { "+1" } else { "-1" }).unwrap();
            for (feature, value) in example.columns.iter().zip(example.values) {
                write!(text, " {feature}:{value}").unwrap();
            }
            text.push('\n');
        }
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn weights_are_those_of_examples_in_memory_to_the_bit() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let file = folder.path().join("examples.svm");
        written(&examples(3000, 200, 5), &file);
        let options = Options::default();
        let hold_out = Some(HoldOut::Every(7));
        let (train, test) = Examples::read(&[&file], &options).unwrap().split(HoldOut::Every(7)).unwrap();
        let reading = Reading { options: &options, directory: scratch.path(), hold_out };
        let stopping = Stopping { tolerance: 1e-9, violation: 1e-6, passes: 40 };
        // Parts of the file of one column or of many, with and without columns in memory.
        for (fill_words, read_words, cache_words) in [(1, 1, 0), (5000, 900, 3000), (1 << 20, 1 << 20, 1 << 20)] {
            let room = Room { fill_words, read_words, cache_words };
            for (bias, delay, workers) in [(true, 0, 1), (false, 2, 2)] {
                let config = Config { bias, delay: Some(delay), stopping, ..Config::default() };
                let (known, training, held_out) = Training::read(&[&file], &reading).unwrap();
                assert_eq!((known.features(), &known.classes), (train.features(), &train.classes));
                let max = lambda_max(&train, 1, bias);
                assert_eq!(training.lambda_max(bias).unwrap(), max);
                let penalty = Penalty { l1: max / 20.0, ..Penalty::NONE };
                let expected = Solver::new(&train, 1, penalty.l1, workers, &config).fit(penalty, |_| {}).unwrap();
                let mut solver = training.solver_within(penalty.l1, workers, &config, room).unwrap();
                let fit = solver.fit(penalty, |_| {}).unwrap();
                assert_eq!(fit, expected, "{room:?}, delay {delay}");
                assert!(fit.weights.len() > 5);
                let model = |known: &Examples| L1lrModel::new(known, &fit, ().into(), ().into());
                let judged = held_out.unwrap().evaluate(&model(&known)).unwrap();
                assert_eq!(judged, model(&train).evaluate(&test));
                assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "nothing has a name");
            }
        }
    }

    #[test]
    fn passes_without_newton_steps_are_the_same_too() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("examples.svm");
        written(&examples(800, 1500, 9), &file);
        let options = Options::default();
        let reading = Reading { options: &options, directory: folder.path(), hold_out: None };
        let train = Examples::read(&[&file], &options).unwrap();
        let penalty = Penalty { l1: 1e-3, ..Penalty::NONE };
        let stopping = Stopping { passes: 9, ..Stopping::default() };
        let by_group = Cut::ByGroup((0..1500).map(|feature| feature % 4).collect());
        for blocks in [Cut::Automatic, Cut::Into(3), by_group] {
            let config = Config { delay: Some(1), blocks, stopping, ..Config::default() };
            let fit = |mut solver: Solver| {
                solver.limit_newton(0);
                solver.fit(penalty, |_| {}).unwrap()
            };
            let expected = fit(Solver::new(&train, 1, penalty.l1, 1, &config));
            let (_, training, _) = Training::read(&[&file], &reading).unwrap();
            let room = Room { fill_words: 50_000, read_words: 2000, cache_words: 30_000 };
            assert_eq!(fit(training.solver_within(penalty.l1, 1, &config, room).unwrap()), expected);
        }
    }

    #[test]
    fn too_little_memory_says_how_much_would_do() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("examples.svm");
        written(&examples(100, 30, 5), &file);
        let options = Options::default();
        let reading = Reading { options: &options, directory: folder.path(), hold_out: None };
        let solver = |limit: u64| {
            let (_, training, _) = Training::read(&[&file], &reading).unwrap();
            training.solver(1e-3, 1, &Config::default(), (limit, 0))
        };
        let Err(error) = solver(1 << 20) else { panic!("there is a base") };
        assert_eq!(error.to_string(), "2mb is too little memory for 100 examples of 30 features; 24mb would do");
        assert!(solver(24_000_000).is_ok());
    }
}
