//! Lines cut into fields: what separates them, and quotes around them.

use std::borrow::Cow;
use std::fmt;

/// A quoted field is not closed on its line, or text follows the closing quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a quoted field must be closed by '\"' right before a separator or the end of the line")]
pub struct OpenQuote;

/// What stands between two columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// `,`
    Comma,
    /// `;`
    Semicolon,
    /// One tab.
    Tab,
    /// `::`
    DoubleColon,
    /// Any run of blanks and tabs.
    WhiteSpace,
}

impl fmt::Display for Separator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Separator::Comma => "','",
            Separator::Semicolon => "';'",
            Separator::Tab => "a tab",
            Separator::DoubleColon => "'::'",
            Separator::WhiteSpace => "white space",
        })
    }
}

/// A finite number of single precision.
pub(crate) fn parse_number(field: &[u8]) -> Option<f32> {
    fast_float2::parse::<f32, _>(field).ok().filter(|value| value.is_finite())
}

pub(crate) fn split(line: &[u8], separator: Separator) -> Result<Vec<Cow<'_, [u8]>>, OpenQuote> {
    let mut fields = Vec::new();
    let mut rest = Some(line);
    while let Some(text) = rest {
        let (field, after) = next_field(text, separator)?;
        fields.push(field);
        rest = after;
    }
    Ok(fields)
}

pub(crate) type NextField<'l> = (Cow<'l, [u8]>, Option<&'l [u8]>);

/// The first field of `text`, and what follows the separator behind it.
pub(crate) fn next_field(text: &[u8], separator: Separator) -> Result<NextField<'_>, OpenQuote> {
    let text = trim_start(text, separator);
    if text.first() == Some(&b'"') && separator != Separator::DoubleColon {
        return quoted_field(text, separator);
    }
    let (field, rest) = match find(text, separator) {
        Some((start, end)) => (&text[..start], Some(&text[end..])),
        None => (text, None),
    };
    Ok((Cow::Borrowed(field.trim_ascii()), end_of_blanks(rest, separator)))
}

/// A field in quotes, where a doubled quote stands for one.
fn quoted_field(text: &[u8], separator: Separator) -> Result<NextField<'_>, OpenQuote> {
    let mut content: Cow<'_, [u8]> = Cow::Borrowed(&[]);
    let mut rest = &text[1..];
    loop {
        let end = memchr::memchr(b'"', rest).ok_or(OpenQuote)?;
        if content.is_empty() {
            content = Cow::Borrowed(&rest[..end]);
        } else {
            content.to_mut().extend_from_slice(&rest[..end]);
        }
        rest = &rest[end + 1..];
        if rest.first() != Some(&b'"') {
            break;
        }
        content.to_mut().push(b'"');
        rest = &rest[1..];
    }
    match find(rest, separator) {
        Some((start, end)) if rest[..start].trim_ascii().is_empty() => {
            Ok((content, end_of_blanks(Some(&rest[end..]), separator)))
        }
        None if rest.trim_ascii().is_empty() => Ok((content, None)),
        _ => Err(OpenQuote),
    }
}

/// Where the first separator starts and ends.
fn find(text: &[u8], separator: Separator) -> Option<(usize, usize)> {
    let single = |byte| memchr::memchr(byte, text).map(|start| (start, start + 1));
    match separator {
        Separator::Comma => single(b','),
        Separator::Semicolon => single(b';'),
        Separator::Tab => single(b'\t'),
        Separator::DoubleColon => memchr::memmem::find(text, b"::").map(|start| (start, start + 2)),
        Separator::WhiteSpace => {
            let start = memchr::memchr2(b' ', b'\t', text)?;
            let run = text[start..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            Some((start, start + run))
        }
    }
}

/// Blanks at the end of a line separate nothing where white space is the separator.
fn end_of_blanks(rest: Option<&[u8]>, separator: Separator) -> Option<&[u8]> {
    rest.filter(|rest| separator != Separator::WhiteSpace || !rest.trim_ascii().is_empty())
}

/// Without leading blanks; a leading tab is an empty field where tabs separate.
fn trim_start(text: &[u8], separator: Separator) -> &[u8] {
    let blank = |byte: &u8| *byte == b' ' || (*byte == b'\t' && separator != Separator::Tab);
    let count = text.iter().take_while(|byte| blank(byte)).count();
    &text[count..]
}
