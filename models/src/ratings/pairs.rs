//! Pairs of user and item read from text: the lines of ratings, where the rating may be missing.

use std::io;
use std::path::Path;

use super::dialect::{self, SEPARATORS};
use super::error::{Column, LineProblem, ReadError, Separator};
use super::{EXPECTED, LINE_LIMIT};
use crate::fields::split;
use crate::line_blocks::{Blocks, first_line, without_mark};

/// Why the pairs of a file could not all be handed out.
#[derive(Debug, thiserror::Error)]
pub enum PairsError {
    /// The file cannot be read, or is not one of pairs.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// What receives the pairs failed.
    #[error(transparent)]
    Receive(#[from] io::Error),
}

/// Hands out the user and the item of every line, and returns how many there were; `-` is standard input.
///
/// The first two columns are the user and the item, and others are ignored; a header is skipped.
///
/// # Errors
/// The first line that is not a pair, or what `receive` says.
pub fn read_pairs(file: &Path, mut receive: impl FnMut(&str, &str) -> io::Result<()>) -> Result<u64, PairsError> {
    let mut blocks = Blocks::open(file, EXPECTED, LINE_LIMIT).map_err(ReadError::from)?;
    let (mut line, mut pairs, mut separator) = (0, 0, None);
    while let Some(block) = blocks.next(line).map_err(ReadError::from)? {
        let mut rest = block;
        if line == 0 {
            rest = without_mark(rest);
        }
        let mut problem = None;
        while !rest.is_empty() && problem.is_none() {
            let (text, after) = first_line(rest);
            (rest, line) = (after, line + 1);
            if text.trim_ascii().is_empty() {
                continue;
            }
            let first = separator.is_none();
            let separator = *separator.get_or_insert_with(|| detect(text));
            match pair(text, separator) {
                Ok((user, item)) if first && is_header(&user, &item) => {}
                Ok((user, item)) => {
                    receive(&user, &item)?;
                    pairs += 1;
                }
                Err(found) => problem = Some(found),
            }
        }
        if let Some(problem) = problem {
            return Err(ReadError::Line { file: blocks.file, line, problem }.into());
        }
    }
    Ok(pairs)
}

/// The first separator that gives the line two columns.
fn detect(line: &[u8]) -> Separator {
    let splits = |separator: &Separator| split(line, *separator).is_ok_and(|fields| fields.len() >= 2);
    SEPARATORS.into_iter().find(splits).unwrap_or(Separator::Comma)
}

fn pair(line: &[u8], separator: Separator) -> Result<(String, String), LineProblem> {
    let fields = split(line, separator)?;
    let [user, item, ..] = fields.as_slice() else { return Err(LineProblem::Pair) };
    let text = |field: &[u8], column| {
        if field.is_empty() {
            return Err(LineProblem::EmptyId { column });
        }
        String::from_utf8(field.to_vec()).map_err(|_| LineProblem::BinaryId { column })
    };
    Ok((text(user, Column::User)?, text(item, Column::Item)?))
}

fn is_header(user: &str, item: &str) -> bool {
    dialect::column_of(user.as_bytes()) == Some(Column::User)
        && dialect::column_of(item.as_bytes()) == Some(Column::Item)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content: &str, expected: Result<&[(&str, &str)], &str>) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        let mut pairs = Vec::new();
        let result = read_pairs(file.path(), |user, item| {
            pairs.push((user.to_owned(), item.to_owned()));
            Ok(())
        });
        let found: Vec<(&str, &str)> = pairs.iter().map(|(user, item)| (user.as_str(), item.as_str())).collect();
        match (result, expected) {
            (Ok(count), Ok(expected)) => assert_eq!((count, found.as_slice()), (expected.len() as u64, expected)),
            (Err(error), Err(expected)) => {
                assert_eq!(error.to_string(), format!("{}:{expected}", file.path().display()));
            }
            (result, expected) => panic!("{content:?} gives {result:?}, not {expected:?}"),
        }
    }

    #[test]
    fn pairs_come_in_every_usual_form() {
        check("a,b\n\nc,d,4.5\n", Ok(&[("a", "b"), ("c", "d")]));
        check("userId\tmovieId\n1\t2", Ok(&[("1", "2")]));
        check("1::2::3::4\n", Ok(&[("1", "2")]));
        check("\"x, y\",\"z\"\n", Ok(&[("x, y", "z")]));
        check("", Ok(&[]));
        check(
            "a,b\nc\n",
            Err("2: expected 2 or more columns (user, item) separated by ',', ';', a tab, '::' or white space"),
        );
        check("a,b\nc,\n", Err("2: the item is empty; expected an id"));
    }
}
