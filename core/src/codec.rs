//! The wire format: a short header, then a few arrays as they lie in memory.
//!
//! Every frame is a [`Header`] and a body whose length follows from the header's counts. Numbers are little-endian. The
//! checksum covers header and body. Nothing is allocated before the counts have been checked against a limit, and nothing
//! is parsed per element: an array of a decoded message lies in the received frame.
//!
//! Where encoding filters have changed the body, the header says which did and how long it is on the wire, and its counts
//! say what must come of it when the filters have been undone (`filter/stream.rs`).

mod header;

pub use header::{ACKNOWLEDGEMENT_BYTES_MAX, HEADER_BYTES_MAX, Header, HeaderBytes, START_BYTES, VERSION};

use crate::array::{Array, Frame};
use crate::ids::{Clock, TableId, WorkerId};
use crate::message::{ToClient, ToPeer, ToShard};
use crate::peer::{Block, Form, Shape};
use crate::precision::Precision;
use crate::snapshot::{Layer, Part};
use crate::task::letter::Letter;
use crate::task::{Node, TaskId};
use crate::values::Values;
use std::borrow::Cow;
use std::sync::Arc;
use thiserror::Error;

#[cfg(target_endian = "big")]
compile_error!("the wire format is the memory of a little-endian machine");

/// What is sent or received over a connection.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// From a client to a shard.
    ToShard(ToShard),
    /// From a shard to a client.
    ToClient(ToClient),
    /// From a peer to another.
    ToPeer(ToPeer),
    /// Between a process of a job and its coordinator.
    Control(Array<u8>),
    /// Rows of a checkpoint, in a file.
    Part(Part),
    /// Nothing but the acknowledgement in the header. It has no number of its own.
    Acknowledge,
}

/// A message laid out: the header, without its checksum, and the arrays that follow it.
#[derive(Debug)]
pub struct Plain<'a> {
    header: Header,
    sections: [&'a [u8]; 4],
    /// The letter that it carries, if it does.
    letter: Option<&'a Letter>,
}

/// A message ready to be written: the header and what follows it.
#[derive(Debug)]
pub struct Encoded<'a> {
    header: HeaderBytes,
    sections: [Cow<'a, [u8]>; 4],
}

/// A frame that cannot be right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum CodecError {
    #[error("these bytes are not of a Hemiola connection (they begin with {found:#010x}, not with \"HEMI\")")]
    Magic { found: u32 },
    #[error(
        "the other end speaks version {found} of the protocol, this one version {VERSION}; use the same release on both"
    )]
    Version { found: u16 },
    #[error("a message of {bytes} bytes was announced, and at most {limit} are taken")]
    TooLong { bytes: u64, limit: u64 },
    #[error("a message of unknown kind {kind} with values of form {form}")]
    Kind { kind: u8, form: u8 },
    #[error("a message's checksum does not match: it was damaged on the way")]
    Checksum,
    #[error("a message's counts do not fit its kind")]
    Counts,
    #[error("a message has been through filters that its table does not have")]
    Filtered,
}

const GET: u8 = 1;
const INC: u8 = 2;
const CLIENT_CLOCK: u8 = 3;
const SEEN: u8 = 4;
const ROWS: u8 = 5;
const SHARD_CLOCK: u8 = 6;
const VISIBLE: u8 = 7;
const CONTROL: u8 = 8;
const ACKNOWLEDGE: u8 = 9;
const CHECKPOINT: u8 = 10;
const PART: u8 = 11;
const STATE_PART: u8 = 12;
const TASK_TO_SHARD: u8 = 13;
const TASK_TO_CLIENT: u8 = 14;
const FACTORS: u8 = 15;

const NO_VALUES: u8 = 0;
const DENSE: u8 = 1;
const SPARSE: u8 = 2;
const COUNTS: u8 = 3;
const CUSTOM: u8 = 4;
const HALF_F16: u8 = 5;
const HALF_BF16: u8 = 6;
/// The forms of factor pairs: this one is of two dense sides, and a sparse side adds its bit.
const PAIRS: u8 = 16;
const SPARSE_SIDES: [u8; 2] = [1, 2];
/// Added to the form of dense rows that have a version each, in the place of offsets.
const VERSIONED: u8 = 0x80;

/// Whether a frame says what it is and of which version: such as begin a connection or a file, and few others.
fn is_introduced(kind: u8) -> bool {
    matches!(kind, CONTROL | PART | STATE_PART)
}

impl Message {
    /// The message as it will be written, with its number and the acknowledgement that rides on it.
    #[must_use]
    pub fn encode(&self, number: u64, acknowledged: u64) -> Encoded<'_> {
        let plain = match self {
            Self::ToShard(message) => lay_out_to_shard(message, number, acknowledged),
            Self::ToClient(message) => lay_out_to_client(message, number, acknowledged),
            Self::ToPeer(message) => lay_out_to_peer(message, number, acknowledged),
            Self::Control(bytes) => return encode_control(bytes, number, acknowledged),
            Self::Part(Part { table, clock, layer, spans, values }) => {
                let kind = if *layer == Layer::Rows { PART } else { STATE_PART };
                let head = Header { table: table.0, clock: clock.0, ..Header::new(kind, number, acknowledged) };
                Plain::with_values(head, spans, None, values)
            }
            Self::Acknowledge => Plain::new(Header::new(ACKNOWLEDGE, number, acknowledged), [&[]; 4]),
        };
        plain.seal()
    }
}

/// Bytes of the job's own making as they will be written.
#[must_use]
pub fn encode_control(bytes: &[u8], number: u64, acknowledged: u64) -> Encoded<'_> {
    let head = Header { bytes: bytes.len() as u32, ..Header::new(CONTROL, number, acknowledged) };
    Plain::new(head, [&[], &[], &[], bytes]).seal()
}

/// A message to a shard laid out.
#[must_use]
pub fn lay_out_to_shard(message: &ToShard, number: u64, acknowledged: u64) -> Plain<'_> {
    let head = |kind| Header::new(kind, number, acknowledged);
    match message {
        ToShard::Get { table, needed, rows } => {
            let head = Header { table: table.0, clock: needed.0, keys: rows.len() as u32, ..head(GET) };
            Plain::new(head, [bytemuck::cast_slice(rows), &[], &[], &[]])
        }
        ToShard::Inc { table, clock, worker, rows, versions, values } => {
            let head = Header { table: table.0, clock: clock.0, worker: worker.0, ..head(INC) };
            Plain::with_values(head, rows, versions.as_deref(), values)
        }
        ToShard::Clock { clock } => Plain::new(Header { clock: clock.0, ..head(CLIENT_CLOCK) }, [&[]; 4]),
        ToShard::Checkpoint { clock } => Plain::new(Header { clock: clock.0, ..head(CHECKPOINT) }, [&[]; 4]),
        ToShard::Seen { table, through } => {
            Plain::new(Header { table: table.0, through: *through, ..head(SEEN) }, [&[]; 4])
        }
        ToShard::Task(letter) => Plain::with_letter(head(TASK_TO_SHARD), letter),
    }
}

/// A message to a client laid out.
#[must_use]
pub fn lay_out_to_client(message: &ToClient, number: u64, acknowledged: u64) -> Plain<'_> {
    let head = |kind| Header::new(kind, number, acknowledged);
    match message {
        ToClient::Rows { table, clock, through, rows, versions, values } => {
            let head = Header { table: table.0, clock: clock.0, through: *through, ..head(ROWS) };
            Plain::with_values(head, rows, versions.as_deref(), values)
        }
        ToClient::Clock { clock } => Plain::new(Header { clock: clock.0, ..head(SHARD_CLOCK) }, [&[]; 4]),
        ToClient::Visible { table, through } => {
            Plain::new(Header { table: table.0, through: *through, ..head(VISIBLE) }, [&[]; 4])
        }
        ToClient::Task(letter) => Plain::with_letter(head(TASK_TO_CLIENT), letter),
    }
}

/// A message to a peer laid out. Its header has the shape of the matrix where other messages count updates, and the
/// number of pairs where they have a width.
#[must_use]
pub fn lay_out_to_peer(message: &ToPeer, number: u64, acknowledged: u64) -> Plain<'_> {
    let ToPeer { from, clock, block } = message;
    let Shape { rows, columns } = block.shape();
    let sparse = block.forms().into_iter().zip(SPARSE_SIDES).filter(|(form, _)| *form == Form::Sparse);
    let head = Header {
        form: sparse.fold(PAIRS, |form, (_, bit)| form | bit),
        clock: clock.0,
        worker: from.0,
        width: block.pairs() as u32,
        through: u64::from(rows) | u64::from(columns) << 32,
        offsets: block.words().len() as u32,
        entries: block.numbers().len() as u32,
        ..Header::new(FACTORS, number, acknowledged)
    };
    Plain::new(head, [&[], bytemuck::cast_slice(block.words()), &[], bytemuck::cast_slice(block.numbers())])
}

/// How many bytes a message to a peer will take at most, whatever its number.
#[must_use]
pub fn bytes_to_peer(message: &ToPeer) -> u64 {
    lay_out_to_peer(message, u64::MAX, u64::MAX).wire_bytes()
}

/// How many bytes a message to a shard will take at most, whatever its number.
#[must_use]
pub fn bytes_to_shard(message: &ToShard) -> u64 {
    lay_out_to_shard(message, u64::MAX, u64::MAX).wire_bytes()
}

/// How many bytes a message to a client will take at most, whatever its number.
#[must_use]
pub fn bytes_to_client(message: &ToClient) -> u64 {
    lay_out_to_client(message, u64::MAX, u64::MAX).wire_bytes()
}

impl<'a> Plain<'a> {
    fn new(header: Header, sections: [&'a [u8]; 4]) -> Self {
        Self { header, sections, letter: None }
    }

    /// The message as it will be written without filters.
    #[must_use]
    pub fn seal(self) -> Encoded<'a> {
        Encoded::new(self.header, self.sections.map(Cow::Borrowed))
    }

    /// The message as it will be written with a body that filters have made, at least one of them, of row ids and what
    /// follows them.
    pub(crate) fn seal_filtered(self, changed_by: u32, sections: [Cow<'a, [u8]>; 4]) -> Encoded<'a> {
        let filtered = sections.iter().map(|section| section.len()).sum::<usize>() as u32;
        let filtered_keys = sections[0].len() as u32;
        Encoded::new(Header { changed_by, filtered, filtered_keys, ..self.header }, sections)
    }

    pub(crate) fn filtered_table(&self) -> Option<usize> {
        self.header.filtered_table()
    }

    /// The task that it is about, if it is about one.
    pub(crate) fn task(&self) -> Option<TaskId> {
        self.letter.and_then(Letter::task)
    }

    /// How long the body is.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.header.body_bytes()
    }

    /// How many bytes will be written without filters.
    #[must_use]
    pub fn wire_bytes(&self) -> u64 {
        self.header.frame_bytes()
    }

    /// The row ids and the arrays that follow them, some of them empty.
    pub(crate) fn sections(&self) -> [&'a [u8]; 4] {
        self.sections
    }

    fn with_values(head: Header, rows: &'a [u64], versions: Option<&'a [u32]>, values: &'a Values) -> Self {
        let keys: &[u8] = bytemuck::cast_slice(rows);
        let head = Header { keys: rows.len() as u32, ..head };
        match values {
            Values::Dense { width, numbers } => {
                let head = Header { form: DENSE, width: *width, entries: numbers.len() as u32, ..head };
                Self::of_dense(head, keys, versions, bytemuck::cast_slice(numbers))
            }
            Values::Half { width, precision, numbers } => {
                let form = if *precision == Precision::F16 { HALF_F16 } else { HALF_BF16 };
                let head = Header { form, width: *width, entries: numbers.len() as u32, ..head };
                Self::of_dense(head, keys, versions, bytemuck::cast_slice(numbers))
            }
            Values::Sparse { offsets, columns, numbers } => {
                let head =
                    Header { form: SPARSE, offsets: offsets.len() as u32, entries: columns.len() as u32, ..head };
                Self::new(
                    head,
                    [keys, bytemuck::cast_slice(offsets), bytemuck::cast_slice(columns), bytemuck::cast_slice(numbers)],
                )
            }
            Values::Counts { offsets, columns, counts } => {
                let head =
                    Header { form: COUNTS, offsets: offsets.len() as u32, entries: columns.len() as u32, ..head };
                Self::new(
                    head,
                    [keys, bytemuck::cast_slice(offsets), bytemuck::cast_slice(columns), bytemuck::cast_slice(counts)],
                )
            }
            Values::Custom { offsets, bytes } => {
                let head = Header { form: CUSTOM, offsets: offsets.len() as u32, bytes: bytes.len() as u32, ..head };
                Self::new(head, [keys, bytemuck::cast_slice(offsets), &[], bytes])
            }
        }
    }

    fn of_dense(head: Header, keys: &'a [u8], versions: Option<&'a [u32]>, numbers: &'a [u8]) -> Self {
        match versions {
            Some(versions) => {
                let head = Header { form: head.form | VERSIONED, offsets: versions.len() as u32, ..head };
                Self::new(head, [keys, bytemuck::cast_slice(versions), &[], numbers])
            }
            None => Self::new(head, [keys, &[], &[], numbers]),
        }
    }

    /// A letter: its keys, its numbers, its head and its payload. The length of its head is where other messages count
    /// updates, and its table's number is one more, since it may be about none.
    fn with_letter(head: Header, letter: &'a Letter) -> Self {
        let (form, width, numbers): (u8, u32, &[u8]) = match &letter.values {
            None => (NO_VALUES, 0, &[]),
            Some(Values::Dense { width, numbers }) => (DENSE, *width, bytemuck::cast_slice(numbers)),
            Some(Values::Half { width, precision: Precision::F16, numbers }) => {
                (HALF_F16, *width, bytemuck::cast_slice(numbers))
            }
            Some(Values::Half { width, numbers, .. }) => (HALF_BF16, *width, bytemuck::cast_slice(numbers)),
            Some(_) => unreachable!("tasks carry dense rows"),
        };
        let entry = if matches!(form, HALF_F16 | HALF_BF16) { 2 } else { 4 };
        let head = Header {
            form,
            width,
            table: letter.table.map_or(0, |table| table.0.saturating_add(1)),
            clock: letter.from.code(),
            worker: letter.to.code(),
            through: letter.head.len() as u64,
            keys: letter.keys.len() as u32,
            entries: (numbers.len() / entry) as u32,
            bytes: (letter.head.len() + letter.payload.len()) as u32,
            ..head
        };
        Self {
            letter: Some(letter),
            ..Self::new(head, [bytemuck::cast_slice(&letter.keys), numbers, &letter.head, &letter.payload])
        }
    }
}

impl<'a> Encoded<'a> {
    fn new(header: Header, sections: [Cow<'a, [u8]>; 4]) -> Self {
        let mut check = header.begin_check();
        sections.iter().for_each(|section| check.update(section));
        Self { header: Header { checksum: check.0.finalize(), ..header }.as_bytes(), sections }
    }

    /// The header's bytes.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// What follows the header, some of it empty.
    pub fn sections(&self) -> impl Iterator<Item = &[u8]> {
        self.sections.iter().map(|section| &**section)
    }

    /// How many bytes will be written.
    #[must_use]
    pub fn wire_bytes(&self) -> u64 {
        self.header.len() as u64 + self.sections.iter().map(|section| section.len() as u64).sum::<u64>()
    }
}

/// Rows, their versions if they have such, and values.
type Tagged = (Array<u64>, Option<Array<u32>>, Values);

/// The checksum of a body of which some has come in.
#[derive(Debug)]
pub struct BodyCheck(crc32fast::Hasher);

impl BodyCheck {
    /// Takes the next piece of the body.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }
}

impl Header {
    /// Whether filters have changed the body.
    pub(crate) fn is_filtered(&self) -> bool {
        self.changed_by != 0
    }

    /// Which filters have changed the body, bit by bit, and how long its row ids are since.
    pub(crate) fn changes(&self) -> (u32, usize) {
        (self.changed_by, self.filtered_keys as usize)
    }

    /// The table whose encoding filters such messages pass.
    pub(crate) fn filtered_table(&self) -> Option<usize> {
        match self.kind {
            GET | INC | ROWS | FACTORS => Some(self.table as usize),
            TASK_TO_SHARD | TASK_TO_CLIENT => self.letter_table().map(TableId::index),
            _ => None,
        }
    }

    fn letter_table(&self) -> Option<TableId> {
        self.table.checked_sub(1).map(TableId)
    }

    /// How many bytes follow the header on the wire.
    #[must_use]
    pub fn wire_bytes(&self) -> u64 {
        if self.is_filtered() { u64::from(self.filtered) } else { self.body_bytes() }
    }

    /// How long the body is without filters.
    #[must_use]
    pub fn body_bytes(&self) -> u64 {
        let entry = match self.form & !VERSIONED {
            SPARSE | COUNTS => 8,
            HALF_F16 | HALF_BF16 => 2,
            _ => 4,
        };
        u64::from(self.keys) * 8 + u64::from(self.offsets) * 4 + u64::from(self.entries) * entry + u64::from(self.bytes)
    }

    /// Begins to check a body, which may then be handed over piece by piece as it comes in.
    #[must_use]
    pub fn begin_check(&self) -> BodyCheck {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&Self { checksum: 0, ..*self }.as_bytes());
        BodyCheck(hasher)
    }

    /// The message with this header and the body in `frame`, whose arrays stay in the frame. All of the body must
    /// have been through `check`.
    ///
    /// # Errors
    /// If the checksum does not match, the kind is unknown, the counts do not fit it, or filters have changed the body.
    pub fn decode(&self, frame: &Arc<Frame>, check: BodyCheck) -> Result<Message, CodecError> {
        self.verify(check)?;
        if self.is_filtered() {
            return Err(CodecError::Filtered);
        }
        self.message((frame, 0), (frame, self.keys as usize * size_of::<u64>()))
    }

    /// Whether the body that went through `check` is the one that was sent.
    pub(crate) fn verify(&self, check: BodyCheck) -> Result<(), CodecError> {
        if check.0.finalize() == self.checksum { Ok(()) } else { Err(CodecError::Checksum) }
    }

    /// The message with this header and a body that was filtered and is whole again.
    pub(crate) fn assemble(&self, keys: &Array<u8>, values: &Array<u8>) -> Result<Message, CodecError> {
        let keys_bytes = u64::from(self.keys) * size_of::<u64>() as u64;
        if keys.len() as u64 != keys_bytes || values.len() as u64 != self.body_bytes() - keys_bytes {
            return Err(CodecError::Filtered);
        }
        let ((keys, keys_start), (values, values_start)) = (keys.aligned(), values.aligned());
        self.message((&keys, keys_start), (&values, values_start))
    }

    /// The message whose row ids and whose other arrays begin at these places.
    fn message(&self, keys: (&Arc<Frame>, usize), values: (&Arc<Frame>, usize)) -> Result<Message, CodecError> {
        let frame = values.0;
        let (table, clock) = (TableId(self.table), Clock(self.clock));
        let through = self.through;
        Ok(match self.kind {
            GET if self.form == NO_VALUES => {
                Message::ToShard(ToShard::Get { table, needed: clock, rows: self.rows(keys)? })
            }
            INC => {
                let (rows, versions, values) = self.rows_and_values(keys, values)?;
                Message::ToShard(ToShard::Inc { table, clock, worker: WorkerId(self.worker), rows, versions, values })
            }
            CLIENT_CLOCK => Message::ToShard(ToShard::Clock { clock }),
            CHECKPOINT => Message::ToShard(ToShard::Checkpoint { clock }),
            PART | STATE_PART => {
                let (spans, _, values) = self.rows_and_values(keys, values)?;
                let layer = if self.kind == PART { Layer::Rows } else { Layer::State };
                Message::Part(Part { table, clock, layer, spans, values })
            }
            SEEN => Message::ToShard(ToShard::Seen { table, through }),
            ROWS => {
                let (rows, versions, values) = self.rows_and_values(keys, values)?;
                Message::ToClient(ToClient::Rows { table, clock, through, rows, versions, values })
            }
            SHARD_CLOCK => Message::ToClient(ToClient::Clock { clock }),
            VISIBLE => Message::ToClient(ToClient::Visible { table, through }),
            TASK_TO_SHARD => Message::ToShard(ToShard::Task(self.letter(keys, values)?)),
            TASK_TO_CLIENT => Message::ToClient(ToClient::Task(self.letter(keys, values)?)),
            FACTORS => Message::ToPeer(self.factors(values)?),
            CONTROL => Message::Control(Array::in_frame(frame, 0, self.bytes as usize).ok_or(CodecError::Counts)?),
            ACKNOWLEDGE => Message::Acknowledge,
            _ => {
                return Err(CodecError::Kind { kind: self.kind, form: self.form });
            }
        })
    }

    fn rows(&self, (frame, start): (&Arc<Frame>, usize)) -> Result<Array<u64>, CodecError> {
        Array::in_frame(frame, start, self.keys as usize).ok_or(CodecError::Counts)
    }

    fn factors(&self, (frame, start): (&Arc<Frame>, usize)) -> Result<ToPeer, CodecError> {
        let sides = self.form ^ PAIRS;
        if sides > SPARSE_SIDES[0] | SPARSE_SIDES[1] || self.keys != 0 || self.bytes != 0 {
            return Err(CodecError::Kind { kind: self.kind, form: self.form });
        }
        let forms = SPARSE_SIDES.map(|bit| if sides & bit == 0 { Form::Dense } else { Form::Sparse });
        let shape = Shape { rows: self.through as u32, columns: (self.through >> 32) as u32 };
        let words = Array::in_frame(frame, start, self.offsets as usize).ok_or(CodecError::Counts)?;
        let after_words = start + self.offsets as usize * size_of::<u32>();
        let numbers = Array::in_frame(frame, after_words, self.entries as usize).ok_or(CodecError::Counts)?;
        let block = Block::from_wire(shape, self.width, forms, words, numbers).ok_or(CodecError::Counts)?;
        Ok(ToPeer { from: WorkerId(self.worker), clock: Clock(self.clock), block })
    }

    fn letter(&self, keys: (&Arc<Frame>, usize), values: (&Arc<Frame>, usize)) -> Result<Letter, CodecError> {
        let node = |code| Node::from_code(code).ok_or(CodecError::Counts);
        let entry = match self.form {
            NO_VALUES if self.entries == 0 => 0,
            DENSE => 4,
            HALF_F16 | HALF_BF16 => 2,
            form => return Err(CodecError::Kind { kind: self.kind, form }),
        };
        let after_values = values.1 + self.entries as usize * entry;
        let (bytes, head) = (self.bytes as usize, self.through as usize);
        let payload = bytes.checked_sub(head).filter(|_| self.offsets == 0).ok_or(CodecError::Counts)?;
        let part = |start, len| Array::in_frame(values.0, start, len).ok_or(CodecError::Counts);
        Ok(Letter {
            from: node(self.clock)?,
            to: node(self.worker)?,
            table: self.letter_table(),
            head: part(after_values, head)?,
            keys: self.rows(keys)?,
            values: if entry == 0 { None } else { Some(self.rows_and_values(keys, values)?.2) },
            payload: part(after_values + head, payload)?,
        })
    }

    fn rows_and_values(
        &self,
        keys: (&Arc<Frame>, usize),
        (frame, after_keys): (&Arc<Frame>, usize),
    ) -> Result<Tagged, CodecError> {
        let (offsets, entries) = (self.offsets as usize, self.entries as usize);
        let after_offsets = after_keys + offsets * 4;
        let words = |start, len| Array::<u32>::in_frame(frame, start, len).ok_or(CodecError::Counts);
        let offsets = || words(after_keys, offsets);
        let versioned = self.form & VERSIONED != 0;
        let values = match self.form & !VERSIONED {
            DENSE => Values::Dense {
                width: self.width,
                numbers: Array::in_frame(frame, after_offsets, entries).ok_or(CodecError::Counts)?,
            },
            HALF_F16 | HALF_BF16 => Values::Half {
                width: self.width,
                precision: if self.form & !VERSIONED == HALF_F16 { Precision::F16 } else { Precision::Bf16 },
                numbers: Array::in_frame(frame, after_offsets, entries).ok_or(CodecError::Counts)?,
            },
            _ if versioned => return Err(CodecError::Kind { kind: self.kind, form: self.form }),
            SPARSE => Values::Sparse {
                offsets: offsets()?,
                columns: words(after_offsets, entries)?,
                numbers: Array::in_frame(frame, after_offsets + entries * 4, entries).ok_or(CodecError::Counts)?,
            },
            COUNTS => Values::Counts {
                offsets: offsets()?,
                columns: words(after_offsets, entries)?,
                counts: Array::in_frame(frame, after_offsets + entries * 4, entries).ok_or(CodecError::Counts)?,
            },
            CUSTOM => Values::Custom {
                offsets: offsets()?,
                bytes: Array::in_frame(frame, after_offsets, self.bytes as usize).ok_or(CodecError::Counts)?,
            },
            form => {
                return Err(CodecError::Kind { kind: self.kind, form });
            }
        };
        let versions = if versioned { Some(offsets()?) } else { None };
        Ok((self.rows(keys)?, versions, values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::{BlockWriter, Factor};
    use proptest::prelude::*;

    fn wire(message: &Message) -> Vec<u8> {
        let encoded = message.encode(3, 2);
        let mut bytes = encoded.header().to_vec();
        encoded.sections().for_each(|section| bytes.extend_from_slice(section));
        assert_eq!(bytes.len() as u64, encoded.wire_bytes());
        let most = match message {
            Message::ToShard(message) => bytes_to_shard(message),
            Message::ToClient(message) => bytes_to_client(message),
            Message::ToPeer(message) => bytes_to_peer(message),
            Message::Part(_) | Message::Control(_) | Message::Acknowledge => encoded.wire_bytes(),
        };
        // Only the number and the acknowledgement can be longer.
        assert!((encoded.wire_bytes()..=encoded.wire_bytes() + 18).contains(&most), "{most}");
        bytes
    }

    fn read(bytes: &[u8], limit: u64) -> Result<Message, CodecError> {
        let mut length = START_BYTES;
        while Header::length(&bytes[..length])? > length {
            length = Header::length(&bytes[..length])?;
            if length > bytes.len() {
                return Err(CodecError::Counts);
            }
        }
        let header = Header::parse(&bytes[..length], limit)?;
        let mut body = bytes[length..].to_vec();
        body.resize((header.body_bytes() as usize).div_ceil(8) * 8, 0);
        let frame: Frame = body.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().expect("eight"))).collect();
        let mut check = header.begin_check();
        check.update(&bytemuck::cast_slice(&frame)[..header.body_bytes() as usize]);
        header.decode(&Arc::new(frame), check)
    }

    fn values() -> impl Strategy<Value = (Vec<u64>, Values)> {
        let rows = proptest::collection::vec(any::<u64>(), 0..9);
        (rows, 0..6u8, 1..5u32).prop_map(|(rows, form, width)| {
            let n = rows.len() as u32;
            let offsets: Vec<u32> = (0..=n).collect();
            let columns: Vec<u32> = (0..n).map(|i| i * 7).collect();
            let values = match form {
                0 => Values::dense(width, (0..n * width).map(|i| i as f32 * 0.5).collect()),
                1 => Values::Sparse {
                    offsets: offsets.into(),
                    columns: columns.into(),
                    numbers: vec![0.25; n as usize].into(),
                },
                2 => Values::Counts {
                    offsets: offsets.into(),
                    columns: columns.into(),
                    counts: vec![-3; n as usize].into(),
                },
                3 => Precision::F16.narrow(Values::dense(width, vec![0.1; (n * width) as usize])),
                4 => Precision::Bf16.narrow(Values::dense(width, vec![0.1; (n * width) as usize])),
                _ => Values::Custom { offsets: offsets.into(), bytes: vec![9u8; n as usize].into() },
            };
            (rows, values)
        })
    }

    fn message() -> impl Strategy<Value = Message> {
        (0..12u8, values(), any::<u32>(), any::<u64>()).prop_map(|(kind, (rows, values), small, through)| {
            let versions = (small % 2 == 0 && matches!(values, Values::Dense { .. } | Values::Half { .. }))
                .then(|| rows.iter().map(|&row| row as u32).collect::<Vec<u32>>().into());
            let (table, clock, rows) = (TableId(small), Clock(small), Array::from(rows));
            match kind {
                0 => Message::ToShard(ToShard::Get { table, needed: clock, rows }),
                1 => Message::ToShard(ToShard::Inc { table, clock, worker: WorkerId(small), rows, versions, values }),
                2 => Message::ToShard(ToShard::Clock { clock }),
                3 => Message::ToShard(ToShard::Seen { table, through }),
                4 => Message::ToClient(ToClient::Rows { table, clock, through, rows, versions, values }),
                5 => Message::ToClient(ToClient::Clock { clock }),
                6 => Message::ToClient(ToClient::Visible { table, through }),
                7 => Message::Control(br#"{"a":1}"#.to_vec().into()),
                8 | 9 => {
                    let (from, to) = (Node::Scheduler(small % 9), Node::Worker(WorkerId(small % 1000)));
                    let bytes = |count: u64| vec![7u8; count as usize].into();
                    let values =
                        Some(values).filter(|values| matches!(values, Values::Dense { .. } | Values::Half { .. }));
                    let letter = Letter {
                        from,
                        to,
                        table: Some(table).filter(|table| table.0 % 2 == 0),
                        head: bytes(through % 50),
                        keys: rows,
                        values,
                        payload: bytes(through % 7),
                    };
                    if kind == 8 {
                        Message::ToShard(ToShard::Task(letter))
                    } else {
                        Message::ToClient(ToClient::Task(letter))
                    }
                }
                10 => {
                    let shape = Shape { rows: small % 7 + 1, columns: 40 };
                    let mut writer = BlockWriter::new(shape);
                    for pair in 0..small % 5 {
                        let u = vec![pair as f32; shape.rows as usize];
                        let (places, numbers) = ([pair, 9 + pair % 20], [0.5, through as f32]);
                        let v = vec![0.25; 40];
                        let v = if through % 2 == 0 { Factor::Dense(&v) } else { Factor::Sparse(&places, &numbers) };
                        let u = if through % 3 == 0 { Factor::Dense(&u) } else { Factor::Sparse(&[0], &[1.5]) };
                        writer.write(u, v).expect("fits");
                    }
                    Message::ToPeer(ToPeer { from: WorkerId(small), clock, block: writer.finish() })
                }
                _ => Message::Acknowledge,
            }
        })
    }

    proptest! {
        #[test]
        fn decoding_gives_back_what_was_encoded(message in message()) {
            prop_assert_eq!(read(&wire(&message), u64::MAX), Ok(message));
        }

        #[test]
        fn a_flipped_bit_is_noticed(message in message(), at in any::<proptest::sample::Index>(), bit in 0..8u8) {
            let mut bytes = wire(&message);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert!(read(&bytes, 1 << 20).is_err());
        }

        #[test]
        fn random_bytes_never_panic_nor_pass(bytes in proptest::collection::vec(any::<u8>(), START_BYTES..400), honest in any::<bool>()) {
            let mut bytes = bytes;
            if honest {
                bytes[..START_BYTES].copy_from_slice(&Message::Control(Vec::new().into()).encode(0, 0).header()[..START_BYTES]);
            }
            prop_assert!(read(&bytes, 1 << 16).is_err());
        }
    }

    #[test]
    fn a_frame_that_is_not_ours_is_refused_with_its_reason() {
        let good = wire(&Message::Control(vec![1; 40].into()));
        let with = |at: usize, bytes: &[u8]| {
            let mut changed = good.clone();
            changed[at..at + bytes.len()].copy_from_slice(bytes);
            read(&changed, 1000).expect_err("refused").to_string()
        };
        assert_eq!(
            with(0, b"GET "),
            "these bytes are not of a Hemiola connection (they begin with 0x20544547, not with \"HEMI\")"
        );
        assert_eq!(
            with(4, &[9, 0]),
            "the other end speaks version 9 of the protocol, this one version 6; use the same release on both"
        );
        assert_eq!(with(good.len() - 1, &[7]), "a message's checksum does not match: it was damaged on the way");
        let long = ToShard::Get { table: TableId(0), needed: Clock(0), rows: vec![1; 200].into() };
        let refused = read(&wire(&Message::ToShard(long)), 1000).expect_err("refused").to_string();
        assert_eq!(refused, "a message of 1600 bytes was announced, and at most 1000 are taken");
    }

    #[test]
    fn a_header_is_as_short_as_its_numbers() {
        let bytes = |message: &Message| message.encode(300, 7).header().len();
        assert_eq!(bytes(&Message::Acknowledge), START_BYTES + 2 + 1);
        assert_eq!(bytes(&Message::ToShard(ToShard::Clock { clock: Clock(9) })), START_BYTES + 2 + 1 + 1);
        assert_eq!(bytes(&Message::Control(vec![1; 40].into())), 2 * START_BYTES + 2 + 1 + 1, "it introduces itself");
        let most = Header {
            kind: CONTROL,
            form: u8::MAX,
            number: u64::MAX,
            acknowledged: u64::MAX,
            through: u64::MAX,
            table: u32::MAX,
            clock: u32::MAX,
            worker: u32::MAX,
            width: u32::MAX,
            keys: u32::MAX,
            offsets: u32::MAX,
            entries: u32::MAX,
            bytes: u32::MAX,
            changed_by: u32::MAX,
            filtered: u32::MAX,
            filtered_keys: u32::MAX,
            checksum: 5,
        };
        assert_eq!((most.as_bytes().len(), most.header_bytes()), (HEADER_BYTES_MAX, HEADER_BYTES_MAX));
        assert_eq!(Header::parse(&most.as_bytes(), u64::MAX), Ok(most));
    }

    #[test]
    fn a_header_that_could_be_shorter_is_refused() {
        let good = Header { kind: GET, keys: 3, ..Header::default() }.as_bytes();
        assert!(Header::parse(&good, 1000).is_ok());
        let mut longer = good.to_vec();
        longer[0] += 1;
        longer[START_BYTES] |= 0x80;
        longer.push(0);
        assert_eq!(Header::parse(&longer, 1000), Err(CodecError::Counts), "a longer number");
        let mut zero = good.to_vec();
        zero[START_BYTES] = 0;
        assert_eq!(Header::parse(&zero, 1000), Err(CodecError::Counts), "a zero that is written");
    }
}
