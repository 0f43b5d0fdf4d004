//! lda-c, document by document.

use super::LineProblem;
use super::distinct::Distinct;
use super::read::{Builder, count, whole};
use crate::line_blocks::shortened;

/// Adds the document of a line; blank lines are skipped.
pub(super) fn line(line: &[u8], distinct: &mut Distinct, builder: &mut Builder) -> Result<(), LineProblem> {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let Some(first) = fields.next() else {
        return Ok(());
    };
    let stated = whole(first).ok_or_else(|| LineProblem::Distinct { found: shortened(first) })?;
    distinct.clear();
    let mut found = 0;
    for field in fields {
        let pair = || LineProblem::Pair { found: shortened(field) };
        let colon = field.iter().position(|byte| *byte == b':').ok_or_else(pair)?;
        let word = whole(&field[..colon]).ok_or_else(pair)?;
        let occurrences = &field[colon + 1..];
        let count = count(occurrences).ok_or_else(|| LineProblem::Count { found: shortened(occurrences) })?;
        if !distinct.insert(word) {
            return Err(LineProblem::Again { word });
        }
        let number = builder.words.number_of_listed(word, word)?;
        builder.add(number, count)?;
        found += 1;
    }
    if found != stated {
        return Err(LineProblem::Pairs { stated, found });
    }
    builder.end_document()
}
