//! Lines of `label index:value index:value ...`, as libsvm and svmlight have them.
//!
//! Indices are kept as they are written, whether they count from 1, as most files do, or from 0: a feature 0 that no
//! example has costs nothing but a row of zeros.

use super::error::{ExampleProblem, FEATURES_MAX};
use super::read::Reader;
use crate::fields::parse_number;
use crate::line_blocks::shortened;

/// The part of a line before `#`.
pub(super) fn without_comment(line: &[u8]) -> &[u8] {
    memchr::memchr(b'#', line).map_or(line, |start| &line[..start])
}

fn tokens(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|token| !token.is_empty())
}

/// Whether a line is of this format: its second token is an index or `qid`, then a colon.
pub(super) fn looks_so(line: &[u8]) -> bool {
    let second = tokens(line).nth(1).and_then(|token| {
        let colon = memchr::memchr(b':', token)?;
        Some(&token[..colon])
    });
    second.is_some_and(|index| index == b"qid" || (!index.is_empty() && index.iter().all(u8::is_ascii_digit)))
}

/// Whether a line holds a label at most, which tells no format: an example may have no features.
pub(super) fn is_bare(line: &[u8]) -> bool {
    !line.trim_ascii().iter().any(|byte| byte.is_ascii_whitespace() || matches!(byte, b',' | b';'))
}

/// Reads an example, and returns whether it has features.
pub(super) fn read_line(reader: &mut Reader<'_>, line: &[u8]) -> Result<bool, ExampleProblem> {
    let mut tokens = tokens(without_comment(line)).peekable();
    let Some(label) = tokens.next() else { return Ok(false) };
    if label.contains(&b':') {
        return Err(ExampleProblem::NoLabel { found: shortened(label) });
    }
    // Before features, several labels stand for a class.
    if tokens.peek().is_none() && label.iter().any(|byte| matches!(byte, b',' | b';')) {
        return Err(ExampleProblem::NotPairs { found: shortened(label) });
    }
    let label = reader.label(label)?;
    let mut before: Option<u32> = None;
    for token in tokens {
        let colon = memchr::memchr(b':', token).ok_or_else(|| ExampleProblem::Pair { found: shortened(token) })?;
        let (index, value) = (&token[..colon], &token[colon + 1..]);
        if index == b"qid" {
            return Err(ExampleProblem::Query);
        }
        let index = parse_index(index).ok_or_else(|| ExampleProblem::Index { found: shortened(index) })?;
        if let Some(before) = before.filter(|&before| before >= index) {
            return Err(ExampleProblem::Order { index, before });
        }
        before = Some(index);
        let value = parse_number(value).ok_or_else(|| ExampleProblem::Value { index, found: shortened(value) })?;
        reader.examples.add_entry(index, value);
    }
    reader.examples.end(label);
    Ok(before.is_some())
}

fn parse_index(text: &[u8]) -> Option<u32> {
    if text.is_empty() || text.len() > 10 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let index = text.iter().fold(0u64, |index, digit| index * 10 + u64::from(digit - b'0'));
    (index < FEATURES_MAX as u64).then_some(index as u32)
}
