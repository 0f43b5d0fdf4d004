//! How a file writes its ratings: what separates columns, and which column is which.

use std::borrow::Cow;

use super::error::{Column, LineProblem};
use crate::fields::{Separator, next_field, parse_number, split};

/// The way one file is written, decided by its first lines.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Dialect {
    pub(super) separator: Separator,
    /// How many columns every line has.
    pub(super) columns: usize,
    /// Where user, item and rating stand, in this order.
    pub(super) positions: [usize; 3],
    /// Whether a header decided `positions`.
    pub(super) named: bool,
}

/// What the first line of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FirstLine {
    Header,
    Rating,
}

/// The fields of user, item and rating, without quotes and blanks around them.
pub(super) type Fields<'l> = [Cow<'l, [u8]>; 3];

/// Tried in this order, because `::` and tabs do not occur in ids by accident.
pub(super) const SEPARATORS: [Separator; 5] =
    [Separator::DoubleColon, Separator::Tab, Separator::Comma, Separator::Semicolon, Separator::WhiteSpace];

const COLUMNS: [Column; 3] = [Column::User, Column::Item, Column::Rating];

impl Dialect {
    /// Decides by the first line that is not blank and the one after it, if there is one.
    ///
    /// A first line is a header if it names the three columns, or if it holds no digit at all
    /// and the second line is a rating.
    pub(super) fn detect(first: &[u8], second: Option<&[u8]>) -> Result<(Self, FirstLine), LineProblem> {
        let mut problem = LineProblem::UnknownFormat;
        for separator in SEPARATORS {
            let fields = match split(first, separator) {
                Ok(fields) => fields,
                Err(quote) => {
                    problem = quote.into();
                    continue;
                }
            };
            let plain = Self { separator, columns: fields.len(), positions: [0, 1, 2], named: false };
            let rating_shaped = matches!(fields.len(), 3 | 4);
            if rating_shaped && parse_number(&fields[2]).is_some() {
                return Ok((plain, FirstLine::Rating));
            }
            let missing = match named_positions(&fields) {
                Ok(positions) => {
                    return Ok((Self { positions, named: true, ..plain }, FirstLine::Header));
                }
                Err(missing) => missing,
            };
            let digits = fields.iter().any(|field| field.iter().any(u8::is_ascii_digit));
            if rating_shaped && (digits || !misplaced(&fields)) {
                let rating = second.and_then(|line| plain.fields(line).ok());
                let rated = rating.is_some_and(|[_, _, value]| parse_number(&value).is_some());
                return Ok((plain, if rated && !digits { FirstLine::Header } else { FirstLine::Rating }));
            }
            if fields.len() >= 3 && !digits {
                problem = LineProblem::Header { missing };
            }
        }
        Err(problem)
    }

    /// The three fields of a line, which must have the file's number of columns.
    pub(super) fn fields<'l>(&self, line: &'l [u8]) -> Result<Fields<'l>, LineProblem> {
        let mut fields: Fields<'l> = Default::default();
        let mut found = 0;
        let mut rest = Some(line);
        while let Some(text) = rest {
            let (field, after) = next_field(text, self.separator)?;
            if let Some(slot) = self.positions.iter().position(|&position| position == found) {
                fields[slot] = field;
            }
            found += 1;
            rest = after;
        }
        if found == self.columns {
            return Ok(fields);
        }
        let (expected, named, separator) = (self.columns, self.named, self.separator);
        Err(LineProblem::Columns { expected, named, separator, found })
    }
}

/// Which of the three columns a header's field names.
pub(super) fn column_of(field: &[u8]) -> Option<Column> {
    let word: String =
        field.iter().filter(|byte| byte.is_ascii_alphabetic()).map(|byte| byte.to_ascii_lowercase() as char).collect();
    match word.as_str() {
        "user" | "users" | "userid" | "uid" | "customer" | "customerid" | "reviewer" | "reviewerid" => {
            Some(Column::User)
        }
        "item" | "items" | "itemid" | "iid" | "movie" | "movieid" | "product" | "productid" | "book" | "bookid"
        | "isbn" | "asin" | "artist" | "artistid" | "track" | "trackid" | "song" | "songid" | "anime" | "animeid" => {
            Some(Column::Item)
        }
        "rating" | "ratings" | "bookrating" | "score" | "stars" | "overall" => Some(Column::Rating),
        _ => None,
    }
}

/// Where the header names user, item and rating, or the first of them that it does not name.
fn named_positions(header: &[Cow<'_, [u8]>]) -> Result<[usize; 3], Column> {
    let mut positions = [0; 3];
    for (slot, column) in positions.iter_mut().zip(COLUMNS) {
        *slot = header.iter().position(|field| column_of(field) == Some(column)).ok_or(column)?;
    }
    Ok(positions)
}

/// Whether a header names a column elsewhere than at its usual place.
fn misplaced(header: &[Cow<'_, [u8]>]) -> bool {
    header
        .iter()
        .enumerate()
        .any(|(position, field)| column_of(field).is_some_and(|column| COLUMNS.get(position) != Some(&column)))
}
