//! One file of a checkpoint: frames as on the wire, each with its checksum, between one that says whose it is and one
//! that says that it is whole.

use super::error::CheckpointError;
use crate::tcp::wire::{FrameReader, WireError, write_frames};
use hemiola_core::Clock;
use hemiola_core::checkpoint::{Owner, SavedFile};
use hemiola_core::codec::{CodecError, Encoded, Header, Message, encode_control};
use hemiola_core::snapshot::Part;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The last frame's number; the others are numbered from zero.
const LAST: u64 = u64::MAX;
/// Bytes of a worker are cut into frames of this length.
const PIECE_BYTES: usize = 16 << 20;

/// What a file says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) job: u32,
    pub(super) clock: Clock,
    pub(super) owner: Owner,
    /// How many reports the worker has made, where it is a worker's.
    pub(super) reports: u32,
}

/// The name of a file, by its owner.
pub(super) fn name(owner: Owner) -> String {
    match owner {
        Owner::Shard(shard) => format!("shard-{:04}.rows", shard.0),
        Owner::Worker(worker) => format!("worker-{:04}.state", worker.0),
    }
}

/// Writes a file of a checkpoint.
pub(crate) struct FileWriter {
    file: File,
    owner: Owner,
    digest: crc32fast::Hasher,
    bytes: u64,
    frames: u64,
}

impl FileWriter {
    pub(super) fn create(path: &Path, head: &Head) -> io::Result<Self> {
        let file = File::create(path)?;
        let mut writer = Self { file, owner: head.owner, digest: crc32fast::Hasher::new(), bytes: 0, frames: 0 };
        writer.control(&postcard::to_allocvec(head).expect("plain data can be encoded"))?;
        Ok(writer)
    }

    fn frame(&mut self, frame: &Encoded<'_>) -> io::Result<()> {
        self.digest.update(frame.header());
        self.bytes += write_frames(&mut self.file, std::slice::from_ref(frame))?;
        self.frames += 1;
        Ok(())
    }

    fn control(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.frame(&encode_control(bytes, self.frames, 0))
    }

    pub(crate) fn part(&mut self, part: Part) -> io::Result<()> {
        self.frame(&Message::Part(part).encode(self.frames, 0))
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        bytes.chunks(PIECE_BYTES).try_for_each(|piece| self.control(piece))
    }

    /// Ends the file. It is on the disk when it has been synchronised.
    pub(crate) fn finish(mut self) -> io::Result<(File, SavedFile)> {
        let frames = self.frames.to_le_bytes();
        self.frame(&encode_control(&frames, LAST, 0))?;
        Ok((self.file, SavedFile { owner: self.owner, bytes: self.bytes, checksum: self.digest.finalize() }))
    }
}

/// Reads a file of a checkpoint, and checks it against what the manifest says of it.
pub(super) struct FileReader {
    path: PathBuf,
    frames: FrameReader<File>,
    expected: SavedFile,
    digest: crc32fast::Hasher,
    read: u64,
    bytes: u64,
    pub(super) head: Head,
}

impl FileReader {
    pub(super) fn open(path: PathBuf, expected: &SavedFile, head: &Head) -> Result<Self, CheckpointError> {
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(CheckpointError::Missing { path }),
            file => file.map_err(|source| CheckpointError::Read { path: path.clone(), source })?,
        };
        // No frame is longer than its file, so a damaged length allocates no more than that.
        let length = file.metadata().map_err(|source| CheckpointError::Read { path: path.clone(), source })?.len();
        let mut reader = Self {
            frames: FrameReader::new(file, length),
            expected: expected.clone(),
            digest: crc32fast::Hasher::new(),
            read: 0,
            bytes: 0,
            head: *head,
            path,
        };
        let (_, message) = reader.frame()?;
        let Message::Control(bytes) = message else { return Err(reader.damaged("its first frame is of another kind")) };
        let found: Head = postcard::from_bytes(&bytes).map_err(|_| reader.damaged("its first frame cannot be read"))?;
        if (found.job, found.clock, found.owner) != (head.job, head.clock, head.owner) {
            let told = |head: &Head| format!("{} at {}", head.owner, head.clock);
            let other = if found.job == head.job { "" } else { " of another job" };
            let (found, expected) = (told(&found) + other, told(head));
            return Err(CheckpointError::MixedUp { path: reader.path, found, expected });
        }
        reader.head = found;
        if length != expected.bytes {
            let reason = format!("it has {length} bytes, and was written with {}", expected.bytes);
            return Err(reader.damaged(&reason));
        }
        Ok(reader)
    }

    fn damaged(&self, reason: &str) -> CheckpointError {
        CheckpointError::Damaged { path: self.path.clone(), reason: reason.to_owned() }
    }

    fn frame(&mut self) -> Result<(Header, Message), CheckpointError> {
        let (header, message) = self.frames.read().map_err(|error| match error {
            WireError::Closed => self.damaged("it ends too early"),
            WireError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => self.damaged("it ends too early"),
            WireError::Io(source) => CheckpointError::Read { path: self.path.clone(), source },
            WireError::Codec(CodecError::Checksum) => self.damaged("the checksum of one of its frames does not match"),
            WireError::Codec(CodecError::Version { found }) => {
                self.damaged(&format!("it was written by a release with version {found} of frames"))
            }
            WireError::Codec(_) | WireError::Filter(_) => self.damaged("one of its frames cannot be read"),
        })?;
        self.digest.update(&header.as_bytes());
        self.bytes += header.frame_bytes();
        if header.number() != self.read && header.number() != LAST {
            return Err(self.damaged("its frames are out of order"));
        }
        self.read += 1;
        Ok((header, message))
    }

    /// The next frame between the first and the last; `None` at the end, when all has been found right.
    pub(super) fn next(&mut self) -> Result<Option<Message>, CheckpointError> {
        let (header, message) = self.frame()?;
        if header.number() != LAST {
            return Ok(Some(message));
        }
        let right = self.digest.clone().finalize() == self.expected.checksum && self.bytes == self.expected.bytes;
        if right { Ok(None) } else { Err(self.damaged("its checksum is not the one in the manifest")) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
