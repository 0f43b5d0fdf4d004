//! The short way through a line whose ids are whole numbers, which most files have.

use super::dialect::Dialect;
use super::error::Separator;

/// A line of two small whole numbers and a short decimal one.
pub(super) struct Row<'b> {
    pub(super) user: u32,
    pub(super) user_text: &'b [u8],
    pub(super) item: u32,
    pub(super) item_text: &'b [u8],
    pub(super) value: f32,
    /// The lines behind this one.
    pub(super) rest: &'b [u8],
}

impl<'b> Row<'b> {
    /// The first line of a block, or nothing if it is written in any less usual way.
    #[inline]
    pub(super) fn parse(block: &'b [u8], dialect: &Dialect) -> Option<Self> {
        let (user, user_text, rest) = integer(block)?;
        let (item, item_text, rest) = integer(skip(rest, dialect.separator)?)?;
        let (value, mut rest) = decimal(skip(rest, dialect.separator)?)?;
        if dialect.columns == 4 {
            rest = skip(rest, dialect.separator)?;
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            rest = &rest[digits..];
        }
        let rest = match rest {
            [b'\n', rest @ ..] | [b'\r', b'\n', rest @ ..] => rest,
            _ => return None,
        };
        Some(Self { user, user_text, item, item_text, value, rest })
    }
}

#[inline]
fn skip(text: &[u8], separator: Separator) -> Option<&[u8]> {
    match (separator, text) {
        (Separator::Comma, [b',', rest @ ..])
        | (Separator::Semicolon, [b';', rest @ ..])
        | (Separator::Tab, [b'\t', rest @ ..])
        | (Separator::DoubleColon, [b':', b':', rest @ ..])
        | (Separator::WhiteSpace, [b' ' | b'\t', rest @ ..]) => Some(rest),
        _ => None,
    }
}

/// A whole number without a leading zero, so that equal numbers are equal ids.
#[inline]
fn integer(text: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let (value, length) = digits(text, 9)?;
    let usual = length > 0 && (text[0] != b'0' || length == 1);
    usual.then(|| (value, &text[..length], &text[length..]))
}

/// A number of few enough digits that one division gives the nearest single precision value.
#[inline]
fn decimal(text: &[u8]) -> Option<(f32, &[u8])> {
    let (whole, length) = digits(text, 4)?;
    if length == 0 {
        return None;
    }
    let text = &text[length..];
    let [b'.', text @ ..] = text else {
        return Some((whole as f32, text));
    };
    let (part, length) = digits(text, 3)?;
    let scale = [1, 10, 100, 1000][length];
    Some(((whole * scale + part) as f32 / scale as f32, &text[length..]))
}

/// The value and the count of leading digits, unless there are more than `limit`.
#[inline]
fn digits(text: &[u8], limit: usize) -> Option<(u32, usize)> {
    let mut value = 0;
    for (length, byte) in text.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Some((value, length));
        }
        if length == limit {
            return None;
        }
        value = value * 10 + u32::from(digit);
    }
    None
}
