//! Frames over a byte stream: arrays are written from where they lie, and read into buffers that are used again.

use hemiola_core::array::Frame;
use hemiola_core::codec::{BodyCheck, CodecError, Encoded, HEADER_BYTES_MAX, Header, Message, START_BYTES};
use hemiola_core::filter::FilterError;
use hemiola_core::filter::stream::{Incoming, IncomingError};
use hemiola_core::recycler::Recycler;
use std::io::{self, BufReader, IoSlice, Read, Write};
use std::sync::Arc;
use thiserror::Error;

/// Small frames are read together; the arrays of a large one bypass this buffer.
const SMALL_BYTES: usize = 16 << 10;
/// Large frames are read in pieces of this length.
const PIECE_BYTES: usize = 256 << 10;
/// Buffers beyond this are given back instead of being kept for the next frame.
const KEPT_WORDS: usize = (256 << 20) / 8;

/// A connection ended, or what came over it cannot be right.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum WireError {
    #[error("the other end closed the connection")]
    Closed,
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Codec(#[from] CodecError),
    #[error(transparent)]
    Filter(#[from] FilterError),
}

impl From<IncomingError> for WireError {
    fn from(error: IncomingError) -> Self {
        match error {
            IncomingError::Codec(error) => Self::Codec(error),
            IncomingError::Filter(error) => Self::Filter(error),
        }
    }
}

/// Reads frames.
#[derive(Debug)]
pub struct FrameReader<R> {
    input: BufReader<R>,
    frames: Recycler<u64>,
    limit: u64,
    /// What undoes the filters of the other end.
    filters: Option<Incoming>,
}

impl<R: Read> FrameReader<R> {
    /// Reads frames of at most `limit` bytes from `input`.
    pub fn new(input: R, limit: u64) -> Self {
        Self {
            input: BufReader::with_capacity(SMALL_BYTES, input),
            frames: Recycler::new(KEPT_WORDS),
            limit,
            filters: None,
        }
    }

    /// The stream that frames are read from.
    pub fn get_mut(&mut self) -> &mut R {
        self.input.get_mut()
    }

    /// Takes frames of up to `limit` bytes from now on.
    pub fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Undoes the filters of the other end from now on.
    pub fn set_filters(&mut self, filters: Option<Incoming>) {
        self.filters = filters;
    }

    /// Waits for the next frame.
    ///
    /// # Errors
    /// If the connection ended, or the bytes are no frame.
    pub fn read(&mut self) -> Result<(Header, Message), WireError> {
        let mut head = [0u8; HEADER_BYTES_MAX];
        let first = self.input.read(&mut head[..START_BYTES])?;
        if first == 0 {
            return Err(WireError::Closed);
        }
        self.input.read_exact(&mut head[first..START_BYTES])?;
        let mut filled = START_BYTES;
        loop {
            let length = Header::length(&head[..filled])?;
            if length == filled {
                break;
            }
            let rest = head.get_mut(filled..length).ok_or(CodecError::Counts)?;
            self.input.read_exact(rest)?;
            filled = length;
        }
        let header = Header::parse(&head[..filled], self.limit)?;
        let mut check = header.begin_check();
        let frame = self.body(header.wire_bytes() as usize, &mut check)?;
        let message = match &mut self.filters {
            Some(filters) => filters.decode(&header, &frame, check)?,
            None => header.decode(&frame, check)?,
        };
        Ok((header, message))
    }

    /// Reads a body piece by piece, and checks each while it is in the processor's cache. Memory grows with what has
    /// arrived, so that an announced length alone allocates little.
    fn body(&mut self, bytes: usize, check: &mut BodyCheck) -> Result<Arc<Frame>, WireError> {
        let mut shared = self.frames.take(bytes.div_ceil(8));
        let frame = Arc::get_mut(&mut shared).expect("a free buffer");
        let mut filled = 0;
        while filled < bytes {
            let end = bytes.min(filled + PIECE_BYTES);
            if frame.len() * 8 < end {
                frame.resize(end.div_ceil(8), 0);
            }
            let piece = &mut bytemuck::cast_slice_mut(frame)[filled..end];
            self.input.read_exact(piece)?;
            check.update(piece);
            filled = end;
        }
        self.frames.keep(&shared);
        Ok(shared)
    }
}

/// Writes frames together, without copying what they are made of. Returns how many bytes they were.
///
/// # Errors
/// If the connection broke.
pub fn write_frames(output: &mut impl Write, frames: &[Encoded<'_>]) -> io::Result<u64> {
    let mut slices = Vec::with_capacity(frames.len() * 3);
    for frame in frames {
        slices.push(IoSlice::new(frame.header()));
        slices.extend(frame.sections().filter(|section| !section.is_empty()).map(IoSlice::new));
    }
    let mut left = &mut slices[..];
    while !left.is_empty() {
        match output.write_vectored(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut left, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(frames.iter().map(Encoded::wire_bytes).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hemiola_core::message::ToShard;
    use hemiola_core::{Clock, TableId, Values, WorkerId};
    use proptest::prelude::*;
    use std::io::Cursor;

    fn inc(rows: u64) -> Message {
        Message::ToShard(ToShard::Inc {
            table: TableId(0),
            clock: Clock(1),
            worker: WorkerId(2),
            rows: (0..rows).collect::<Vec<_>>().into(),
            versions: None,
            values: Values::dense(1, (0..rows).map(|row| row as f32).collect()),
        })
    }

    #[test]
    fn frames_written_together_are_read_one_by_one() {
        let messages = [inc(3), Message::Acknowledge, inc(500_000), inc(7), Message::Control(vec![1, 2, 3].into())];
        let encoded: Vec<_> = messages.iter().enumerate().map(|(i, m)| m.encode(i as u64, 9)).collect();
        let mut bytes = Vec::new();
        let written = write_frames(&mut bytes, &encoded).expect("memory takes it");
        assert_eq!(written, bytes.len() as u64);
        let mut reader = FrameReader::new(Cursor::new(bytes), 1 << 30);
        for (i, message) in messages.iter().enumerate() {
            let (header, read) = reader.read().expect("a frame");
            assert_eq!((header.number(), &read), (i as u64, message));
        }
        assert!(matches!(reader.read(), Err(WireError::Closed)));
    }

    #[test]
    fn an_announced_length_allocates_no_more_than_arrives() {
        let whole = inc(10_000_000);
        let mut bytes = whole.encode(1, 0).header().to_vec();
        bytes.resize(5000, 0);
        let mut reader = FrameReader::new(Cursor::new(&bytes), 1 << 40);
        assert!(matches!(reader.read(), Err(WireError::Io(_))));
        let mut reader = FrameReader::new(Cursor::new(&bytes), 1 << 20);
        let refused = reader.read().expect_err("too long").to_string();
        assert_eq!(refused, "a message of 120000000 bytes was announced, and at most 1048576 are taken");
    }

    proptest! {
        #[test]
        fn random_bytes_are_refused_without_a_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..600), honest in any::<bool>()) {
            if honest && bytes.len() > 6 {
                let good = Message::Acknowledge;
                bytes[..6].copy_from_slice(&good.encode(0, 0).header()[..6]);
            }
            let mut reader = FrameReader::new(Cursor::new(bytes), 1 << 16);
            prop_assert!(reader.read().is_err());
        }
    }
}
