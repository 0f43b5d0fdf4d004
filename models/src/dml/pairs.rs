//! Pairs of examples that are said to be alike or not, read from lines of two numbers and a 1 or 0.

use crate::fields::{Separator, split};
use crate::line_blocks::{LinesError, each_line};
use std::path::Path;

/// What messages call the content of a file.
const EXPECTED: &str = "pairs";

/// Two examples, by their number from zero, and whether they are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// One of them.
    pub one: u32,
    /// The other.
    pub other: u32,
    /// Whether they are alike.
    pub similar: bool,
}

/// Why pairs could not be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum PairsError {
    #[error(transparent)]
    Lines(#[from] LinesError),
    #[error("{file}:{line}: expected the numbers of two examples and 1 if they are alike or 0, such as 3,17,1")]
    Line { file: String, line: u64 },
    #[error("{file}:{line}: there is no example {number}; expected one from 1 to {examples}")]
    Unknown { file: String, line: u64, number: u64, examples: usize },
    #[error("{file}: has no pairs")]
    None { file: String },
}

/// Reads pairs of so many examples, which lines count from 1; `-` is standard input.
///
/// # Errors
/// The first line that is not a pair.
pub fn read(path: &Path, examples: usize) -> Result<Vec<Pair>, PairsError> {
    let mut pairs = Vec::new();
    each_line(path, EXPECTED, |text, file, line| {
        let file = || file.to_owned();
        let ([one, other], similar) = numbers(text).ok_or_else(|| PairsError::Line { file: file(), line })?;
        if let Some(&number) = [one, other].iter().find(|at| !(1..=examples as u64).contains(at)) {
            return Err(PairsError::Unknown { file: file(), line, number, examples });
        }
        pairs.push(Pair { one: (one - 1) as u32, other: (other - 1) as u32, similar });
        Ok(())
    })?;
    if pairs.is_empty() { Err(PairsError::None { file: path.display().to_string() }) } else { Ok(pairs) }
}

/// The three numbers of a line.
fn numbers(text: &[u8]) -> Option<([u64; 2], bool)> {
    let separator = match text {
        _ if text.contains(&b',') => Separator::Comma,
        _ if text.contains(&b';') => Separator::Semicolon,
        _ => Separator::WhiteSpace,
    };
    let fields = split(text, separator).ok()?;
    let [one, other, similar] = fields.as_slice() else { return None };
    let whole = |field: &[u8]| std::str::from_utf8(field.trim_ascii()).ok()?.parse().ok();
    let similar = match similar.trim_ascii() {
        b"1" => true,
        b"0" => false,
        _ => return None,
    };
    Some(([whole(one)?, whole(other)?], similar))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_numbered_from_one_in_the_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("pairs");
        let check = |text: &str| {
            std::fs::write(&file, text).expect("written");
            read(&file, 9).map_err(|error| error.to_string().replace(&file.display().to_string(), "pairs"))
        };
        let pair = |one, other, similar| Pair { one, other, similar };
        assert_eq!(check("1,2,1\n\n9 , 3,0\n"), Ok(vec![pair(0, 1, true), pair(8, 2, false)]));
        assert_eq!(check("4 5\t1"), Ok(vec![pair(3, 4, true)]));
        assert_eq!(check("1,2,1\n1,10,1"), Err("pairs:2: there is no example 10; expected one from 1 to 9".to_owned()));
        let expected = "expected the numbers of two examples and 1 if they are alike or 0, such as 3,17,1";
        for wrong in ["1,2", "1,2,2", "1,x,1", "1,2,1,1", "-1,2,1"] {
            assert_eq!(check(wrong), Err(format!("pairs:1: {expected}")), "{wrong}");
        }
        assert_eq!(check("\n"), Err("pairs: has no pairs".to_owned()));
    }
}
