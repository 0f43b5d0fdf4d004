//! Lines as in Criteo's logs of clicks: a label, 13 whole numbers and 26 categories, separated by tabs, where an empty
//! field is missing.
//!
//! A field and its value are one feature of value 1, whose number is the CRC-32 of `field:value`, with fields counted from
//! 0 behind the label, cut to the last bits. Numbers above 2 are put into buckets by the square of their logarithm before.

use super::error::ExampleProblem;
use super::read::{LabelColumn, Reader};
use crate::fields::Separator;
use crate::line_blocks::shortened;

const NUMBERS: usize = 13;
const CATEGORIES: usize = 26;
const FIELDS: usize = NUMBERS + CATEGORIES;
/// Bits of a feature's number, unless told otherwise.
pub(super) const USUAL_BITS: u32 = 20;

/// Whether a line is of this format: so many fields, and the categories as eight hexadecimal digits.
pub(super) fn looks_so(line: &[u8], labelled: bool) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b'\t').collect();
    let Some(categories) = fields.len().checked_sub(CATEGORIES).map(|first| &fields[first..]) else { return false };
    let hexadecimal = |field: &&[u8]| field.len() == 8 && field.iter().all(u8::is_ascii_hexdigit);
    fields.len() == FIELDS + usize::from(labelled)
        && categories.iter().all(|field| field.is_empty() || hexadecimal(field))
        && categories.iter().any(hexadecimal)
}

pub(super) fn read_line(reader: &mut Reader<'_>, line: &[u8]) -> Result<(), ExampleProblem> {
    let labelled = match reader.options.label {
        LabelColumn::Guess | LabelColumn::Position(1) => true,
        LabelColumn::Absent => false,
        LabelColumn::Name(_) | LabelColumn::Position(_) => return Err(ExampleProblem::CriteoLabel),
    };
    let bits = reader.options.bits.unwrap_or(USUAL_BITS);
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (expected, found) = (FIELDS + usize::from(labelled), 1 + memchr::memchr_iter(b'\t', line).count());
    if found != expected {
        return Err(ExampleProblem::Columns { expected, separator: Separator::Tab, found });
    }
    let mut fields = line.split(|&byte| byte == b'\t');
    let label = if labelled { fields.next().unwrap_or_default() } else { b"" };
    let label = reader.label(label)?;
    let mut features = Vec::with_capacity(FIELDS);
    for (field, value) in fields.enumerate().filter(|(_, value)| !value.is_empty()) {
        let hash = if field < NUMBERS {
            let column = field + 1 + usize::from(labelled);
            let number = std::str::from_utf8(value).ok().and_then(|text| text.parse::<i64>().ok());
            let number = number.ok_or_else(|| ExampleProblem::Whole { column, found: shortened(value) })?;
            crc32fast::hash(format!("{field}:{}", bucket(number)).as_bytes())
        } else {
            crc32fast::hash(&[format!("{field}:").as_bytes(), value].concat())
        };
        features.push(hash & ((1 << bits) - 1));
    }
    // Two that fall together are one.
    features.sort_unstable();
    features.dedup();
    features.iter().for_each(|&feature| reader.examples.add_entry(feature, 1.0));
    reader.examples.hash_features(bits);
    reader.examples.end(label);
    Ok(())
}

fn bucket(number: i64) -> i64 {
    if number > 2 { (number as f64).ln().powi(2) as i64 } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fall_into_ever_wider_buckets() {
        assert_eq!([-1, 0, 1, 2, 3, 10, 100, 1_000_000].map(bucket), [-1, 0, 1, 2, 1, 5, 21, 190]);
    }
}
