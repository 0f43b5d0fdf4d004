//! A file, a compressed file or standard input as a sequence of blocks of whole lines.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::rc::Rc;

use flate2::read::MultiGzDecoder;

/// Why the lines of a file cannot be read, whatever they hold.
#[derive(Debug, thiserror::Error)]
pub enum LinesError {
    /// The file cannot be opened, or reading it failed midway.
    #[error("{file}: cannot be read: {source}")]
    Io {
        /// The file as it was named.
        file: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The path is a directory.
    #[error("{file}: is a directory; expected a file of {expected}")]
    Directory {
        /// The path as it was named.
        file: String,
        /// What the file should hold.
        expected: &'static str,
    },
    /// The compressed data stop before their end.
    #[error("{file}: the gzip data end too early after line {lines}; the file is incomplete")]
    TruncatedGzip {
        /// The file as it was named.
        file: String,
        /// How many whole lines came before the end.
        lines: u64,
    },
    /// The compressed data are damaged.
    #[error("{file}: the gzip data are damaged after line {lines}: {source}")]
    DamagedGzip {
        /// The file as it was named.
        file: String,
        /// How many whole lines came before the damage.
        lines: u64,
        /// What the decoder said.
        source: io::Error,
    },
    /// A line is longer than any line of such a file.
    #[error("{file}:{line}: the line is longer than {limit} bytes")]
    TooLong {
        /// The file as it was named.
        file: String,
        /// The line's number, from 1.
        line: u64,
        /// The longest line that is read.
        limit: usize,
    },
}

const BLOCK_BYTES: usize = 256 << 10;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

pub(crate) struct Blocks {
    /// The file as messages name it.
    pub(crate) file: String,
    reader: Box<dyn Read>,
    compressed: bool,
    /// The size of the file on disk, where it has one.
    size: Option<u64>,
    /// How much of `size` has been read.
    consumed: Rc<Cell<u64>>,
    buffer: Vec<u8>,
    /// The part of `buffer` that holds bytes not handed out yet.
    filled: std::ops::Range<usize>,
    ended: bool,
    /// The longest line that is read, without its line end.
    limit: usize,
}

impl Blocks {
    /// Opens a file of `expected`, or standard input for `-`, and looks whether it is compressed.
    pub(crate) fn open(path: &Path, expected: &'static str, limit: usize) -> Result<Self, LinesError> {
        let mut file = path.display().to_string();
        let consumed = Rc::new(Cell::new(0));
        let (mut raw, size): (Box<dyn Read>, Option<u64>) = if path.as_os_str() == "-" {
            file = "standard input".to_owned();
            (Box::new(io::stdin().lock()), None)
        } else {
            let opened = File::open(path).and_then(|opened| Ok((opened.metadata()?, opened)));
            let (metadata, opened) = opened.map_err(|source| LinesError::Io { file: file.clone(), source })?;
            if metadata.is_dir() {
                return Err(LinesError::Directory { file, expected });
            }
            let counted = Counted { inner: opened, consumed: Rc::clone(&consumed) };
            (Box::new(counted), metadata.is_file().then_some(metadata.len()))
        };
        let mut start = Vec::new();
        if let Err(source) = (&mut raw).take(GZIP_MAGIC.len() as u64).read_to_end(&mut start) {
            return Err(LinesError::Io { file, source });
        }
        let compressed = start == GZIP_MAGIC;
        let whole = Cursor::new(start).chain(raw);
        let reader: Box<dyn Read> = if compressed { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) };
        let buffer = vec![0; BLOCK_BYTES];
        Ok(Self { file, reader, compressed, size, consumed, buffer, filled: 0..0, ended: false, limit })
    }

    /// The next lines, each with its line end; `line` is the number of lines handed out before.
    pub(crate) fn next(&mut self, line: u64) -> Result<Option<&[u8]>, LinesError> {
        self.buffer.copy_within(self.filled.clone(), 0);
        self.filled = 0..self.filled.len();
        loop {
            self.fill(line)?;
            let bytes = &self.buffer[..self.filled.end];
            if let Some(last) = memchr::memrchr(b'\n', bytes) {
                self.filled.start = last + 1;
                return Ok(Some(&self.buffer[..=last]));
            }
            if self.filled.is_empty() {
                return Ok(None);
            }
            if self.filled.end > self.limit {
                return Err(LinesError::TooLong { file: self.file.clone(), line: line + 1, limit: self.limit });
            }
            if self.ended {
                self.buffer[self.filled.end] = b'\n';
                self.filled.end += 1;
            } else {
                let length = (2 * self.buffer.len()).min(self.limit + 1);
                self.buffer.resize(length, 0);
            }
        }
    }

    /// What the file starts with, as far as one block goes; it is read again afterwards.
    pub(crate) fn peek(&mut self) -> Result<&[u8], LinesError> {
        self.fill(0)?;
        Ok(&self.buffer[self.filled.clone()])
    }

    /// Reads bytes instead of lines until `out` is full or the input ends; returns how many there were.
    pub(crate) fn read_bytes(&mut self, out: &mut [u8]) -> Result<usize, LinesError> {
        let mut count = 0;
        while count < out.len() {
            if self.filled.is_empty() {
                self.filled = 0..0;
                self.fill(0)?;
            }
            let some = self.filled.len().min(out.len() - count);
            if some == 0 {
                break;
            }
            out[count..count + some].copy_from_slice(&self.buffer[self.filled.start..][..some]);
            self.filled.start += some;
            count += some;
        }
        Ok(count)
    }

    /// About how many entries the whole file holds, if those read so far are typical.
    pub(crate) fn estimate(&self, read: usize) -> Option<usize> {
        let (size, consumed) = (self.size?, self.consumed.get());
        (consumed > 0).then(|| (read as f64 * size as f64 / consumed as f64) as usize)
    }

    /// Reads until the buffer is full or the input ends; keeps room for a last line end.
    fn fill(&mut self, line: u64) -> Result<(), LinesError> {
        while !self.ended && self.filled.end < self.buffer.len() {
            match self.reader.read(&mut self.buffer[self.filled.end..]) {
                Ok(0) => self.ended = true,
                Ok(count) => self.filled.end += count,
                Err(source) if source.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(self.failure(source, line)),
            }
        }
        if self.ended && self.filled.end == self.buffer.len() {
            self.buffer.push(0);
        }
        Ok(())
    }

    fn failure(&self, source: io::Error, lines: u64) -> LinesError {
        let file = self.file.clone();
        let whole = &self.buffer[self.filled.start..self.filled.end];
        let lines = lines + memchr::memchr_iter(b'\n', whole).count() as u64;
        match source.kind() {
            io::ErrorKind::UnexpectedEof if self.compressed => LinesError::TruncatedGzip { file, lines },
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData if self.compressed => {
                LinesError::DamagedGzip { file, lines, source }
            }
            _ => LinesError::Io { file, source },
        }
    }
}

/// Counts what is read from a file, so that its share of the whole is known even when compressed.
struct Counted {
    inner: File,
    consumed: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.consumed.set(self.consumed.get() + count as u64);
        Ok(count)
    }
}

/// Calls `take` with every line of a small file of `expected` that is not blank, without its line end, and with the file as
/// messages name it and the line's number from 1.
///
/// # Errors
/// What cannot be read, and the first that `take` says.
pub(crate) fn each_line<E: From<LinesError>>(
    path: &Path,
    expected: &'static str,
    mut take: impl FnMut(&[u8], &str, u64) -> Result<(), E>,
) -> Result<(), E> {
    const LONGEST: usize = 1 << 16;
    let mut blocks = Blocks::open(path, expected, LONGEST)?;
    let (file, mut line) = (blocks.file.clone(), 0);
    while let Some(block) = blocks.next(line)? {
        let mut rest = if line == 0 { without_mark(block) } else { block };
        while !rest.is_empty() {
            let (text, after) = first_line(rest);
            (rest, line) = (after, line + 1);
            if !text.trim_ascii().is_empty() {
                take(text, &file, line)?;
            }
        }
    }
    Ok(())
}

/// The first line of a block, without its line end, and the lines behind it.
pub(crate) fn first_line(block: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr::memchr(b'\n', block).expect("a block ends with a line end");
    let line = &block[..end];
    (line.strip_suffix(b"\r").unwrap_or(line), &block[end + 1..])
}

/// The lines behind the mark that some programs put at the start of a text.
pub(crate) fn without_mark(block: &[u8]) -> &[u8] {
    block.strip_prefix(b"\xef\xbb\xbf").unwrap_or(block)
}

/// A field as messages show it.
pub(crate) fn shortened(field: &[u8]) -> String {
    const LONGEST: usize = 40;
    let text: String = String::from_utf8_lossy(field).chars().take(LONGEST + 1).collect();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", text[..end].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}
