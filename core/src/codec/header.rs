//! The head of a frame: eight bytes that every frame has, then those of its numbers that are not zero, each in as few
//! bytes as it needs.
//!
//! The eight bytes are how many more follow (with the highest bit set), the kind, which numbers follow (sixteen bits), and
//! the checksum. What may be the first frame of a connection or of a file introduces itself by eight bytes before that:
//! "HEMI" and the version. A header can be written in one way only, and what is written otherwise is refused.

use super::{CodecError, is_introduced};
use crate::varint;
use std::ops::Deref;

/// What is read of a frame before it is known how long its header is.
pub const START_BYTES: usize = 8;
/// The most bytes of a header.
pub const HEADER_BYTES_MAX: usize = 2 * START_BYTES + FORM_BYTES_MAX + 3 * varint::BYTES_MAX + 11 * WORD_BYTES_MAX;
/// The most bytes that are needed for an acknowledgement.
pub const ACKNOWLEDGEMENT_BYTES_MAX: usize = START_BYTES + varint::BYTES_MAX;
/// The version of the format. A peer with another one is refused.
pub const VERSION: u16 = 6;
pub(super) const MAGIC: u32 = u32::from_le_bytes(*b"HEMI");
const FORM_BYTES_MAX: usize = 2;
const WORD_BYTES_MAX: usize = 5;
/// The highest bit of a header's first byte, which the first letter of an introduction does not have.
const LENGTH: u8 = 0x80;
const CHECKSUM: usize = START_BYTES - size_of::<u32>();
const NUMBERS: usize = 15;

/// The head of a frame, checked as far as it can be without the body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Header {
    pub(super) kind: u8,
    pub(super) form: u8,
    pub(super) number: u64,
    pub(super) acknowledged: u64,
    pub(super) through: u64,
    pub(super) table: u32,
    pub(super) clock: u32,
    pub(super) worker: u32,
    pub(super) width: u32,
    pub(super) keys: u32,
    pub(super) offsets: u32,
    pub(super) entries: u32,
    pub(super) bytes: u32,
    /// Which filters have changed the body, bit by bit.
    pub(super) changed_by: u32,
    /// How long the body is on the wire if filters have changed it, and its row ids.
    pub(super) filtered: u32,
    pub(super) filtered_keys: u32,
    pub(super) checksum: u32,
}

/// A header as it is written.
#[derive(Debug, Clone, Copy)]
pub struct HeaderBytes {
    bytes: [u8; HEADER_BYTES_MAX],
    length: usize,
}

impl Deref for HeaderBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Header {
    pub(super) fn new(kind: u8, number: u64, acknowledged: u64) -> Self {
        Self { kind, number, acknowledged, ..Self::default() }
    }

    fn numbers(&self) -> [u64; NUMBERS] {
        let Self { form, number, acknowledged, through, table, clock, worker, width, .. } = *self;
        let Self { keys, offsets, entries, bytes, changed_by, filtered, filtered_keys, .. } = *self;
        let words = [table, clock, worker, width, keys, offsets, entries, bytes, changed_by, filtered, filtered_keys];
        let mut numbers = [0; NUMBERS];
        numbers[..4].copy_from_slice(&[u64::from(form), number, acknowledged, through]);
        numbers[4..].copy_from_slice(&words.map(u64::from));
        numbers
    }

    fn from_numbers(kind: u8, checksum: u32, numbers: [u64; NUMBERS]) -> Option<Self> {
        let [form, number, acknowledged, through, words @ ..] = numbers;
        let mut places = words.into_iter().map(u32::try_from);
        let mut word = || places.next()?.ok();
        Some(Self {
            kind,
            form: u8::try_from(form).ok()?,
            number,
            acknowledged,
            through,
            table: word()?,
            clock: word()?,
            worker: word()?,
            width: word()?,
            keys: word()?,
            offsets: word()?,
            entries: word()?,
            bytes: word()?,
            changed_by: word()?,
            filtered: word()?,
            filtered_keys: word()?,
            checksum,
        })
    }

    /// How long a header is that begins with these bytes, of which there are [`START_BYTES`] at least: as far as they
    /// tell. Where that is more than there are, it may turn out to be longer still.
    ///
    /// # Errors
    /// If no header begins so, or it is of another version.
    pub fn length(bytes: &[u8]) -> Result<usize, CodecError> {
        let (introduction, rest) = introduction(bytes)?;
        match rest.first() {
            None => Ok(introduction + START_BYTES),
            Some(length) => Ok(introduction + START_BYTES + usize::from(length & !LENGTH)),
        }
    }

    /// Reads a header, of which `bytes` must be all. A body of more than `limit` bytes is refused.
    ///
    /// # Errors
    /// If the bytes are not a header, of another version, or announce too long a body.
    pub fn parse(bytes: &[u8], limit: u64) -> Result<Self, CodecError> {
        let (_, rest) = introduction(bytes)?;
        let Some((&[_, kind, low, high, ref checksum @ ..], mut left)) = rest.split_first_chunk::<START_BYTES>() else {
            return Err(CodecError::Counts);
        };
        let follows = u16::from_le_bytes([low, high]);
        let mut numbers = [0; NUMBERS];
        for (_, number) in numbers.iter_mut().enumerate().filter(|(place, _)| follows >> place & 1 == 1) {
            *number = varint::read(&mut left).ok_or(CodecError::Counts)?;
        }
        let header = Self::from_numbers(kind, u32::from_le_bytes(*checksum), numbers).ok_or(CodecError::Counts)?;
        if *header.as_bytes() != *bytes {
            return Err(CodecError::Counts);
        }
        let bytes = header.body_bytes().max(header.wire_bytes());
        if bytes > limit {
            return Err(CodecError::TooLong { bytes, limit });
        }
        Ok(header)
    }

    /// The header as it is written.
    #[must_use]
    pub fn as_bytes(&self) -> HeaderBytes {
        let mut written = HeaderBytes { bytes: [0; HEADER_BYTES_MAX], length: 0 };
        if is_introduced(self.kind) {
            written.bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
            written.bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
            written.length = START_BYTES;
        }
        let start = written.length;
        written.length += START_BYTES;
        let mut follows = 0u16;
        for (place, number) in self.numbers().into_iter().enumerate().filter(|(_, number)| *number != 0) {
            follows |= 1 << place;
            varint::write(number, |byte| {
                written.bytes[written.length] = byte;
                written.length += 1;
            });
        }
        let (length, [low, high]) = ((written.length - start - START_BYTES) as u8, follows.to_le_bytes());
        written.bytes[start..start + CHECKSUM].copy_from_slice(&[LENGTH | length, self.kind, low, high]);
        written.bytes[start + CHECKSUM..start + START_BYTES].copy_from_slice(&self.checksum.to_le_bytes());
        written
    }

    /// How many bytes it takes.
    pub(super) fn header_bytes(&self) -> usize {
        let introduction = if is_introduced(self.kind) { START_BYTES } else { 0 };
        let numbers = self.numbers().into_iter().filter(|number| *number != 0).map(varint::length);
        introduction + START_BYTES + numbers.sum::<usize>()
    }

    /// How many bytes header and body are on the wire.
    #[must_use]
    pub fn frame_bytes(&self) -> u64 {
        self.header_bytes() as u64 + self.wire_bytes()
    }

    /// The message's number on its link.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Through which number the sender has received.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }
}

/// How long the introduction is, and what follows it.
fn introduction(bytes: &[u8]) -> Result<(usize, &[u8]), CodecError> {
    let Some((start, rest)) = bytes.split_first_chunk::<START_BYTES>() else { return Err(CodecError::Counts) };
    if start[0] & LENGTH != 0 {
        return Ok((0, bytes));
    }
    let [a, b, c, d, low, high, ..] = *start;
    let (found, version) = (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([low, high]));
    if found != MAGIC {
        return Err(CodecError::Magic { found });
    }
    if version != VERSION {
        return Err(CodecError::Version { found: version });
    }
    Ok((START_BYTES, rest))
}
