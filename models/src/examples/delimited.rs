//! Lines of columns, of which one is the label and the others are numbers.

use std::borrow::Cow;
use std::iter;

use hashbrown::HashSet;

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
            let (found, header) = Layout::detect(reader, line, following)?;
            let features = found.columns - usize::from(found.label.is_some());
            if let Some(expected) = reader.examples.fixed_features().filter(|&expected| expected != features) {
                return Err(ExampleProblem::OtherFeatures { expected, found: features });
            }
            let found = layout.insert(found);
            if header {
                let names = found.feature_names(line);
                found.check_names(&names, reader.expected_names())?;
                reader.examples.feature_names = names;
                return Ok(());
            }
            found
        }
    };
    layout.read_line(reader, line)
}

impl Layout {
    /// The layout, and whether the first line is a header: it is if a column is the label's by name, or if the line names
    /// or numbers the columns, or calls the features what they are known to be called.
    fn detect(reader: &Reader<'_>, line: &[u8], following: &[u8]) -> Result<(Self, bool), ExampleProblem> {
        let (label, known) = (&reader.options.label, reader.expected_names());
        let (separator, fields) = separate(line, *label != LabelColumn::Absent)?;
        let columns = fields.len();
        if columns > FEATURES_MAX {
            return Err(ExampleProblem::TooManyColumns);
        }
        let named = |name: &str| fields.iter().position(|field| &**field == name.as_bytes());
        let guessed = || {
            fields.iter().position(|field| {
                ["label", "class", "target"].iter().any(|name| field.eq_ignore_ascii_case(name.as_bytes()))
            })
        };
        let (label, by_name) = match label {
            LabelColumn::Absent => (None, false),
            LabelColumn::Guess => {
                let named = left_over(&fields, known).or_else(guessed);
                named.map_or((Some(columns - 1), false), |position| (Some(position), true))
            }
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
        let layout = Self { separator, columns, label };
        let header = by_name
            || layout.names_columns(&fields, following)
            || layout.numbers_columns(&fields, following)
            || (!known.is_empty() && layout.feature_names(line) == known);
        Ok((layout, header))
    }

    /// Whether none of the fields is a number while the next line has some.
    fn names_columns(&self, fields: &Fields<'_>, following: &[u8]) -> bool {
        let any_number = |fields: &Fields<'_>| fields.iter().any(|field| parse_number(field).is_some());
        !any_number(fields) && self.rows(following).next().is_some_and(|fields| any_number(&fields))
    }

    /// Whether the fields beside that of a label are the columns' numbers, as a table without names is written.
    ///
    /// A first example can look so, too. But the class of an example comes again, and the name of a column does not; and
    /// where no class comes again, only numbers from 0 are taken for a header.
    fn numbers_columns(&self, fields: &Fields<'_>, following: &[u8]) -> bool {
        let named = |label: &usize| !fields[*label].is_empty() && parse_number(&fields[*label]).is_none();
        let Some(label) = self.label.filter(named) else { return false };
        let numbers = fields.iter().enumerate().filter(|(column, _)| *column != label).map(|(_, number)| number);
        let count_from = |first: &usize| {
            numbers.clone().zip(*first..).all(|(found, number)| **found == *number.to_string().as_bytes())
        };
        // A single number is no sequence.
        let first = [0, 1].into_iter().find(count_from).filter(|_| self.columns > 2);
        let Some(first) = first else { return false };
        let mut classes = HashSet::new();
        let mut again = false;
        for class in self.rows(following).filter_map(|fields| fields.into_iter().nth(label)) {
            if class == fields[label] {
                return false;
            }
            again |= !classes.insert(class);
        }
        again || first == 0
    }

    /// The lines cut into fields, as far as they can be.
    fn rows<'l>(&self, mut lines: &'l [u8]) -> impl Iterator<Item = Fields<'l>> {
        let separator = self.separator;
        iter::from_fn(move || {
            let (line, after) = (!lines.is_empty()).then(|| first_line(lines))?;
            lines = after;
            Some(split(line, separator).unwrap_or_default())
        })
    }

    /// What a header calls the features.
    fn feature_names(&self, header: &[u8]) -> Vec<String> {
        let fields = split(header, self.separator).unwrap_or_default();
        let features = fields.iter().enumerate().filter(|(column, _)| self.label != Some(*column));
        features.map(|(_, name)| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// Checks that a header calls the features what they are expected to be called, if they are as many: where they are
    /// not, that is what is wrong, and whoever expects them says so.
    fn check_names(&self, found: &[String], expected: &[String]) -> Result<(), ExampleProblem> {
        if found.len() != expected.len() {
            return Ok(());
        }
        let Some(feature) = found.iter().zip(expected).position(|(found, expected)| found != expected) else {
            return Ok(());
        };
        let column = feature + 1 + usize::from(self.label.is_some_and(|label| label <= feature));
        let shown = |name: &String| shortened(name.as_bytes());
        Err(ExampleProblem::OtherName { column, found: shown(&found[feature]), expected: shown(&expected[feature]) })
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

/// The one column of a header that is none of the known features, where the others are these in order.
fn left_over(fields: &Fields<'_>, known: &[String]) -> Option<usize> {
    if known.is_empty() || fields.len() != known.len() + 1 {
        return None;
    }
    let differs = fields.iter().zip(known).position(|(field, name)| **field != *name.as_bytes());
    let label = differs.unwrap_or(known.len());
    let mut behind = fields[label + 1..].iter().zip(&known[label..]);
    behind.all(|(field, name)| **field == *name.as_bytes()).then_some(label)
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
