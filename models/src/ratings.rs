//! Ratings read from text: one line per rating, in any of the usual ways to write it.
//!
//! Fields are separated by commas, semicolons, tabs, `::` or white space; a fourth column (a
//! time) is ignored; a header that names its columns may give them in any order; blank lines are
//! skipped. A quoted field must end on its own line.

mod dialect;
mod error;
mod list;
mod pairs;
mod row;
mod split;

use std::path::Path;

use dialect::{Dialect, FirstLine};
pub use error::{Column, LineProblem, ReadError, Separator};
pub use list::RatingList;
pub(crate) use list::{DIFFERENT_MAX, apart};
pub use pairs::{PairsError, read_pairs};
use row::Row;
pub use split::Split;

use crate::fields::parse_number;
pub use crate::hold_out::{HoldOut, SplitError};
use crate::line_blocks::{Blocks, first_line, shortened, without_mark};
use crate::{Names, Rating};

/// Ratings, with the ids of their users and items.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ratings {
    /// All ratings, in the order of the files.
    pub ratings: RatingList,
    /// The ids that [`Rating::user`] numbers.
    pub users: Names,
    /// The ids that [`Rating::item`] numbers.
    pub items: Names,
}

impl Ratings {
    /// Reads files one after another; `-` is standard input, and compressed files are unpacked.
    pub fn read<P: AsRef<Path>>(files: &[P]) -> Result<Self, ReadError> {
        let mut ratings = Self::default();
        ratings.read_more(files)?;
        Ok(ratings)
    }

    /// Reads further files behind the ratings that are there already.
    pub fn read_more<P: AsRef<Path>>(&mut self, files: &[P]) -> Result<(), ReadError> {
        if files.is_empty() {
            return Err(ReadError::NoFile);
        }
        let mut reader = Reader {
            ratings: &mut self.ratings,
            users: Ids::new(&mut self.users, Column::User),
            items: Ids::new(&mut self.items, Column::Item),
            line: 0,
        };
        files.iter().try_for_each(|file| reader.read_file(file.as_ref()))
    }

    /// The mean of all values, and the smallest and largest; zeros where there are no ratings.
    pub fn mean_and_range(ratings: impl IntoIterator<Item = Rating>) -> (f32, (f32, f32)) {
        let (mut count, mut sum, mut range) = (0u64, 0.0, (f32::INFINITY, f32::NEG_INFINITY));
        for Rating { value, .. } in ratings {
            count += 1;
            sum += f64::from(value);
            range = (range.0.min(value), range.1.max(value));
        }
        if count == 0 { (0.0, (0.0, 0.0)) } else { ((sum / count as f64) as f32, range) }
    }
}

/// The longest line that is read, without its line end.
const LINE_LIMIT: usize = 1 << 20;

/// What messages call the content of a file.
const EXPECTED: &str = "ratings";

/// The shortest line of a rating, such as `a,b,1` and its line end.
const SHORTEST_LINE: usize = 6;

struct Reader<'r> {
    ratings: &'r mut RatingList,
    users: Ids<'r>,
    items: Ids<'r>,
    /// The number of the current line.
    line: u64,
}

impl Reader<'_> {
    fn read_file(&mut self, path: &Path) -> Result<(), ReadError> {
        let mut blocks = Blocks::open(path, EXPECTED, LINE_LIMIT)?;
        let before = self.ratings.len();
        let mut dialect = None;
        self.line = 0;
        loop {
            let read = self.ratings.len() - before;
            let expected = blocks.estimate(read).map(|total| total.saturating_sub(read) + total / 8);
            let Some(block) = blocks.next(self.line)? else {
                break;
            };
            self.ratings.make_room(block.len() / SHORTEST_LINE, expected);
            if let Err(problem) = self.read_block(block, &mut dialect) {
                let file = blocks.file;
                return Err(ReadError::Line { file, line: self.line, problem });
            }
        }
        if self.ratings.len() == before {
            return Err(ReadError::Empty { file: blocks.file });
        }
        Ok(())
    }

    fn read_block(&mut self, block: &[u8], dialect: &mut Option<Dialect>) -> Result<(), LineProblem> {
        let mut rest = block;
        let dialect = match dialect {
            Some(dialect) => dialect,
            None => match self.detect(&mut rest)? {
                Some(detected) => dialect.insert(detected),
                None => return Ok(()),
            },
        };
        let plain = dialect.positions == [0, 1, 2] && dialect.columns <= 4;
        while !rest.is_empty() {
            self.line += 1;
            if plain && let Some(row) = Row::parse(rest, dialect) {
                let user = self.users.number_of_integer(row.user, row.user_text)?;
                let item = self.items.number_of_integer(row.item, row.item_text)?;
                self.ratings.push(Rating { user, item, value: row.value });
                rest = row.rest;
                continue;
            }
            let (line, after) = first_line(rest);
            rest = after;
            if line.trim_ascii().is_empty() {
                continue;
            }
            let [user, item, value] = dialect.fields(line)?;
            let value = parse_number(&value).ok_or_else(|| LineProblem::Rating { found: shortened(&value) })?;
            let user = self.users.number(&user)?;
            let item = self.items.number(&item)?;
            self.ratings.push(Rating { user, item, value });
        }
        Ok(())
    }

    /// Decides the dialect by the first lines of `rest` and moves behind a header, if there is one.
    fn detect(&mut self, rest: &mut &[u8]) -> Result<Option<Dialect>, LineProblem> {
        if self.line == 0 {
            *rest = without_mark(rest);
        }
        while !rest.is_empty() {
            let (line, after) = first_line(rest);
            if !line.trim_ascii().is_empty() {
                let mut following = after;
                let second = std::iter::from_fn(|| {
                    let (line, after) = (!following.is_empty()).then(|| first_line(following))?;
                    following = after;
                    Some(line)
                })
                .find(|line| !line.trim_ascii().is_empty());
                let detected = Dialect::detect(line, second);
                let (dialect, first) = detected.inspect_err(|_| self.line += 1)?;
                if first == FirstLine::Header {
                    self.line += 1;
                    *rest = after;
                }
                return Ok(Some(dialect));
            }
            self.line += 1;
            *rest = after;
        }
        Ok(None)
    }
}

/// The ids of one column, with a shortcut for small whole numbers.
struct Ids<'r> {
    names: &'r mut Names,
    column: Column,
    /// The number of the id that is written as this index, or `UNKNOWN`.
    integers: Vec<u32>,
}

const UNKNOWN: u32 = u32::MAX;
/// Bounds the shortcut's memory to 4 MiB a column.
const INTEGER_LIMIT: usize = 1 << 20;

impl<'r> Ids<'r> {
    fn new(names: &'r mut Names, column: Column) -> Self {
        Self { names, column, integers: Vec::new() }
    }

    /// The number of the id `text`, which is the usual way to write `integer`.
    fn number_of_integer(&mut self, integer: u32, text: &[u8]) -> Result<u32, LineProblem> {
        let integer = integer as usize;
        match self.integers.get(integer) {
            Some(&number) if number != UNKNOWN => return Ok(number),
            _ => {}
        }
        let number = self.number(text)?;
        if integer < INTEGER_LIMIT {
            if self.integers.len() <= integer {
                self.integers.resize(integer + 1, UNKNOWN);
            }
            self.integers[integer] = number;
        }
        Ok(number)
    }

    fn number(&mut self, id: &[u8]) -> Result<u32, LineProblem> {
        let column = self.column;
        if let Some(number) = self.names.get_bytes(id) {
            return Ok(number);
        }
        if id.is_empty() {
            return Err(LineProblem::EmptyId { column });
        }
        match std::str::from_utf8(id) {
            Ok(name) if !id.contains(&0) => {
                self.names.intern(name).map_err(|source| LineProblem::TooMany { column, source })
            }
            _ => Err(LineProblem::BinaryId { column }),
        }
    }
}
