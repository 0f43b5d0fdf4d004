//! Lines of columns, of which one is the label and the others are numbers.

use std::borrow::Cow;

use super::error::{ExampleProblem, FEATURES_MAX};
use super::read::{LabelColumn, Reader};
use crate::fields::{Separator, next_field, parse_number, split};
use crate::line_blocks::{first_line, shortened};

type Fields<'l> = Vec<Cow<'l, [u8]>>;

/// The way one file is written, decided by its first lines.
pub(super) struct Layout {
    separator: Separator,
    columns: usize,
    /// Where the label is, if there is one.
    label: Option<usize>,
}

/// Tried in this order, because tabs do not occur in names by accident.
const SEPARATORS: [Separator; 4] = [Separator::Tab, Separator::Comma, Separator::Semicolon, Separator::WhiteSpace];

/// Reads a line; the first one decides the layout, and is none itself if it names the columns.
pub(super) fn read_line(
    reader: &mut Reader<'_>,
    layout: &mut Option<Layout>,
    line: &[u8],
    following: &[u8],
) -> Result<(), ExampleProblem> {
    let layout = match layout {
        Some(layout) => layout,
        None => {
            let (found, header) = Layout::detect(line, following, &reader.options.label)?;
            let features = found.columns - usize::from(found.label.is_some());
            if let Some(expected) = reader.examples.fixed_features().filter(|&expected| expected != features) {
                return Err(ExampleProblem::OtherFeatures { expected, found: features });
            }
            let found = layout.insert(found);
            if header {
                if reader.examples.feature_names.is_empty() {
                    reader.examples.feature_names = found.feature_names(line);
                }
                return Ok(());
            }
            found
        }
    };
    layout.read_line(reader, line)
}

impl Layout {
    /// The layout, and whether the first line names the columns: it does if one is the label's by name, or if none is a
    /// number while the next line has some.
    fn detect(line: &[u8], following: &[u8], label: &LabelColumn) -> Result<(Self, bool), ExampleProblem> {
        let (separator, fields) = separate(line, *label != LabelColumn::Absent)?;
        let columns = fields.len();
        if columns > FEATURES_MAX {
            return Err(ExampleProblem::TooManyColumns);
        }
        let numeric = |field: &Cow<'_, [u8]>| parse_number(field).is_some();
        let next_has_numbers = (!following.is_empty())
            .then(|| split(first_line(following).0, separator).ok())
            .flatten()
            .is_some_and(|fields| fields.iter().any(numeric));
        let unnamed_header = !fields.iter().any(numeric) && next_has_numbers;
        let named = |name: &str| fields.iter().position(|field| &**field == name.as_bytes());
        let guessed = || {
            fields.iter().position(|field| {
                ["label", "class", "target"].iter().any(|name| field.eq_ignore_ascii_case(name.as_bytes()))
            })
        };
        let (label, by_name) = match label {
            LabelColumn::Absent => (None, false),
            LabelColumn::Guess => guessed().map_or((Some(columns - 1), false), |position| (Some(position), true)),
            LabelColumn::Name(name) => {
                let position =
                    named(name).ok_or_else(|| ExampleProblem::NoSuchColumn { name: shortened(name.as_bytes()) })?;
                (Some(position), true)
            }
            LabelColumn::Position(position) if (1..=columns).contains(position) => (Some(position - 1), false),
            LabelColumn::Position(position) => {
                return Err(ExampleProblem::NoSuchPosition { position: *position, columns });
            }
        };
        Ok((Self { separator, columns, label }, by_name || unnamed_header))
    }

    /// What a header calls the features.
    fn feature_names(&self, header: &[u8]) -> Vec<String> {
        let fields = split(header, self.separator).unwrap_or_default();
        let features = fields.iter().enumerate().filter(|(column, _)| self.label != Some(*column));
        features.map(|(_, name)| String::from_utf8_lossy(name).into_owned()).collect()
    }

    fn read_line(&self, reader: &mut Reader<'_>, line: &[u8]) -> Result<(), ExampleProblem> {
        let (mut found, mut feature) = (0, 0);
        let mut label: Cow<'_, [u8]> = Cow::Borrowed(&[]);
        let mut rest = Some(line);
        while let Some(text) = rest {
            let (field, after) = next_field(text, self.separator)?;
            found += 1;
            rest = after;
            if found > self.columns {
                continue;
            }
            if self.label == Some(found - 1) {
                label = field;
            } else {
                let value = parse_number(&field);
                let value = value.ok_or_else(|| ExampleProblem::Number { column: found, found: shortened(&field) })?;
                reader.examples.add_entry(feature, value);
                feature += 1;
            }
        }
        if found != self.columns {
            return Err(ExampleProblem::Columns { expected: self.columns, separator: self.separator, found });
        }
        let label = if self.label.is_some() { reader.label(&label)? } else { reader.label(b"")? };
        reader.examples.fix_features(feature as usize);
        reader.examples.end(label);
        Ok(())
    }
}

/// The first separator that gives the line two columns; one column will do where there is no label.
fn separate(line: &[u8], labelled: bool) -> Result<(Separator, Fields<'_>), ExampleProblem> {
    let mut problem = ExampleProblem::UnknownFormat;
    for separator in SEPARATORS {
        match split(line, separator) {
            Ok(fields) if fields.len() >= 2 => return Ok((separator, fields)),
            Ok(_) => {}
            Err(quote) => problem = quote.into(),
        }
    }
    if !labelled && let Ok(fields) = split(line, Separator::Comma) {
        return Ok((Separator::Comma, fields));
    }
    Err(problem)
}
