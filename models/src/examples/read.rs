//! Examples read from files, whose format is told by their first bytes.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use super::error::{CLASSES_MAX, EXAMPLES_MAX, ExampleProblem, ExamplesError};
use super::{EXPECTED, Examples, criteo, delimited, idx, libsvm};
use crate::Names;
use crate::line_blocks::{Blocks, first_line, shortened, without_mark};

/// How to read a file of examples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The format, if it is not to be told from the content.
    pub format: Option<Format>,
    /// Where the label is, in lines of columns.
    pub label: LabelColumn,
    /// The labels of idx images, if they are not beside them under the usual name.
    pub labels_file: Option<PathBuf>,
    /// How many bits the numbers of hashed features have, between 1 and 24; 20 if not said.
    pub bits: Option<u32>,
    /// What headers must call the features, such as those of a model; none if it is not known.
    pub feature_names: Vec<String>,
}

/// A format of examples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines of `label index:value index:value ...` (libsvm, svmlight).
    Libsvm,
    /// Lines of columns, of which one is the label.
    Delimited,
    /// MNIST's images and labels.
    Idx,
    /// Lines of a label, 13 whole numbers and 26 categories, separated by tabs.
    Criteo,
}

/// Which column of a line is the label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LabelColumn {
    /// That which the first line calls label, class or target; or else the last.
    #[default]
    Guess,
    /// That which the first line calls so.
    Name(String),
    /// That at this position, from 1.
    Position(usize),
    /// None: every column is a feature.
    Absent,
}

/// What is done with labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Labels {
    /// New ones become classes.
    Learn,
    /// They must be known classes.
    Known,
    /// They are not looked at.
    Ignore,
}

impl Examples {
    /// Reads files one after another; `-` is standard input, and compressed files are unpacked. Classes are ordered by
    /// number, or by name where they are not numbers; the same whole number is the same class however it is written.
    ///
    /// # Errors
    /// The first thing that is not as it should be.
    pub fn read<P: AsRef<Path>>(files: &[P], options: &Options) -> Result<Self, ExamplesError> {
        let mut examples = Self::read_with(files, options, Names::default(), Labels::Learn)?;
        examples.order_classes();
        Ok(examples)
    }

    /// Reads files whose examples are all of known classes.
    ///
    /// # Errors
    /// As [`Examples::read`], and if there is another class.
    pub fn read_known<P: AsRef<Path>>(files: &[P], options: &Options, classes: &Names) -> Result<Self, ExamplesError> {
        Self::read_with(files, options, classes.clone(), Labels::Known)
    }

    /// Reads files whose labels, if they have any, are of no interest.
    ///
    /// # Errors
    /// As [`Examples::read`].
    pub fn read_unlabelled<P: AsRef<Path>>(files: &[P], options: &Options) -> Result<Self, ExamplesError> {
        let mut classes = Names::default();
        classes.intern("").expect("room for one name");
        Self::read_with(files, options, classes, Labels::Ignore)
    }

    fn read_with<P: AsRef<Path>>(
        files: &[P],
        options: &Options,
        classes: Names,
        labels: Labels,
    ) -> Result<Self, ExamplesError> {
        if files.is_empty() {
            return Err(ExamplesError::NoFile);
        }
        if options.labels_file.is_some() && files.len() > 1 {
            return Err(ExamplesError::LabelsOfOne { files: files.len() });
        }
        let mut reader = Reader { examples: Self::new(classes), labels, options, sink: None, taken: 0 };
        files.iter().try_for_each(|file| reader.read_file(file.as_ref()))?;
        Ok(reader.examples)
    }

    /// Reads files in parts of some lines each, which `sink` gets one after the other, with how many examples came before.
    /// Returns what is known of all of them, without examples; their classes, where none are given, are in the order in
    /// which they came.
    ///
    /// # Errors
    /// As [`Examples::read_known`], what the sink says, and for images, which are not read in parts.
    pub(crate) fn stream<P: AsRef<Path>>(
        files: &[P],
        options: &Options,
        classes: Option<&Names>,
        sink: &mut Sink<'_>,
    ) -> Result<Self, ExamplesError> {
        let labels = if classes.is_some() { Labels::Known } else { Labels::Learn };
        let examples = Self::new(classes.cloned().unwrap_or_default());
        let mut reader = Reader { examples, labels, options, sink: Some(sink), taken: 0 };
        files.iter().try_for_each(|file| reader.read_file(file.as_ref()))?;
        Ok(reader.examples)
    }

    /// Orders classes by number, or by name where they are not numbers; returns the new number of each.
    pub(crate) fn order_classes(&mut self) -> Vec<u32> {
        let number = |name: &str| name.parse::<f64>().ok();
        let mut order: Vec<u32> = (0..self.classes.len() as u32).collect();
        order.sort_by(|&a, &b| {
            let (a, b) = (self.classes.name(a), self.classes.name(b));
            match (number(a), number(b)) {
                (Some(x), Some(y)) => x.total_cmp(&y).then_with(|| a.cmp(b)),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (None, None) => a.cmp(b),
            }
        });
        let mut classes = Names::default();
        let mut new_labels = vec![0; order.len()];
        for &old in &order {
            new_labels[old as usize] = classes.intern(self.classes.name(old)).expect("no more names than before");
        }
        self.labels.iter_mut().for_each(|label| *label = new_labels[*label as usize]);
        self.classes = classes;
        new_labels
    }
}

/// What takes examples while they are read, with how many there were before.
pub(crate) type Sink<'s> = dyn FnMut(&Examples, usize) -> io::Result<()> + 's;

pub(super) struct Reader<'o> {
    pub(super) examples: Examples,
    pub(super) labels: Labels,
    pub(super) options: &'o Options,
    /// What the examples go to as they are read, if they are not all kept.
    sink: Option<&'o mut Sink<'o>>,
    /// How many have gone there.
    taken: usize,
}

/// The longest line that is read, without its line end.
pub(super) const LINE_LIMIT: usize = 16 << 20;

impl Reader<'_> {
    fn read_file(&mut self, path: &Path) -> Result<(), ExamplesError> {
        let mut blocks = Blocks::open(path, EXPECTED, LINE_LIMIT)?;
        let format = match self.options.format {
            Some(format) => format,
            None => format_of(blocks.peek()?, &self.options.label),
        };
        self.examples.format.get_or_insert(format);
        let before = self.count();
        let file = blocks.file.clone();
        self.check_labels(format, &file)?;
        match format {
            Format::Idx if self.sink.is_some() => return Err(ExamplesError::Whole { file }),
            Format::Idx => idx::read(self, blocks, path)?,
            Format::Libsvm => {
                let mut featured = false;
                self.read_lines(blocks, |reader, line, _| {
                    featured |= libsvm::read_line(reader, line)?;
                    Ok(())
                })?;
                if !featured && self.count() > before {
                    return Err(ExamplesError::NoPairs { file });
                }
            }
            Format::Criteo => self.read_lines(blocks, |reader, line, _| criteo::read_line(reader, line))?,
            Format::Delimited => {
                let mut layout = None;
                self.read_lines(blocks, |reader, line, next| delimited::read_line(reader, &mut layout, line, next))?;
            }
        }
        if self.count() == before { Err(ExamplesError::Empty { file }) } else { Ok(()) }
    }

    /// Checks that what was said of labels has an effect on a file of this format.
    fn check_labels(&self, format: Format, file: &str) -> Result<(), ExamplesError> {
        let column = matches!(self.options.label, LabelColumn::Name(_) | LabelColumn::Position(_));
        if column && matches!(format, Format::Libsvm | Format::Idx) {
            return Err(ExamplesError::NoColumns { file: file.to_owned() });
        }
        if self.options.labels_file.is_some() && format != Format::Idx {
            return Err(ExamplesError::LabelsWithin { file: file.to_owned() });
        }
        Ok(())
    }

    /// Hands every line that is not blank to `read_line`, with what follows it as far as it is at hand.
    fn read_lines(
        &mut self,
        mut blocks: Blocks,
        mut read_line: impl FnMut(&mut Self, &[u8], &[u8]) -> Result<(), ExampleProblem>,
    ) -> Result<(), ExamplesError> {
        let mut line = 0;
        while let Some(block) = blocks.next(line)? {
            let mut rest = block;
            if line == 0 {
                rest = without_mark(rest);
            }
            let mut problem = None;
            while !rest.is_empty() && problem.is_none() {
                let (text, after) = first_line(rest);
                (rest, line) = (after, line + 1);
                if !text.trim_ascii().is_empty() {
                    problem = read_line(self, text, after).err();
                }
            }
            if let Some(problem) = problem {
                return Err(ExamplesError::Line { file: blocks.file, line, problem });
            }
            if let Some(sink) = &mut self.sink {
                sink(&self.examples, self.taken).map_err(ExamplesError::Sink)?;
                self.taken += self.examples.len();
                self.examples.clear();
            }
        }
        Ok(())
    }

    /// What a header must call the features, if it is known.
    pub(super) fn expected_names(&self) -> &[String] {
        let before = &self.examples.feature_names;
        if before.is_empty() { &self.options.feature_names } else { before }
    }

    /// How many examples were read.
    fn count(&self) -> usize {
        self.taken + self.examples.len()
    }

    /// The number of the class that a label names.
    pub(super) fn label(&mut self, text: &[u8]) -> Result<u32, ExampleProblem> {
        if self.count() >= EXAMPLES_MAX {
            return Err(ExampleProblem::TooManyExamples);
        }
        if self.labels == Labels::Ignore {
            return Ok(0);
        }
        if text.is_empty() {
            return Err(ExampleProblem::EmptyLabel);
        }
        let text = std::str::from_utf8(text).ok().filter(|text| !text.contains('\0'));
        let class = usual_form(text.ok_or(ExampleProblem::BinaryLabel)?);
        match self.examples.classes.get(&class) {
            Some(number) => Ok(number),
            None if self.labels == Labels::Known => {
                Err(ExampleProblem::UnknownClass { class: shortened(class.as_bytes()) })
            }
            None if self.examples.classes.len() >= CLASSES_MAX => Err(ExampleProblem::TooManyClasses),
            None => self.examples.classes.intern(&class).map_err(|_| ExampleProblem::TooManyClasses),
        }
    }
}

/// Whole numbers are written in one way, so that `+1`, `1.0`, `01` and `1` are one class.
fn usual_form(label: &str) -> Cow<'_, str> {
    match label.parse::<f64>() {
        Ok(number) if number.fract() == 0.0 && number.abs() < 1e15 => Cow::Owned(format!("{}", number as i64)),
        _ => Cow::Borrowed(label),
    }
}

fn format_of(start: &[u8], label: &LabelColumn) -> Format {
    if start.starts_with(&[0, 0]) {
        return Format::Idx;
    }
    let mut lines = without_mark(start).split(|&byte| byte == b'\n').map(libsvm::without_comment);
    match lines.find(|line| !libsvm::is_bare(line)) {
        Some(line) if libsvm::looks_so(line) => Format::Libsvm,
        Some(line) if criteo::looks_so(line, *label != LabelColumn::Absent) => Format::Criteo,
        _ => Format::Delimited,
    }
}
