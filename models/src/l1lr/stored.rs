//! Columns in a nameless file: read in large pieces ahead of the work, and those kept in memory that are needed soon.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};

/// Columns that nobody asked for are read along with others if they are no more words than these.
const GAP: u64 = 1 << 14;
/// Buffers of a walk: one is worked on while the other is filled.
pub(super) const BUFFERS: usize = 2;

/// The words of all columns, one after the other, with some of them in memory.
pub(super) struct Stored {
    file: File,
    /// Where each column ends in the file, in words.
    ends: Vec<u64>,
    /// Words that are read at a time, unless a column has more.
    read_words: usize,
    cache: RwLock<Cache>,
    /// Buffers that no walk uses.
    spare: Mutex<Vec<Vec<u32>>>,
}

/// Columns in memory.
#[derive(Default)]
struct Cache {
    words: Vec<u32>,
    /// Where each column starts in `words`, or [`ABSENT`].
    starts: Vec<u32>,
    /// Words at most.
    room: usize,
}

const ABSENT: u32 = u32::MAX;

/// A piece of the file in memory.
struct Piece {
    start: u64,
    words: Vec<u32>,
}

/// The two ends of the exchange between a walk and the thread that reads for it.
struct Ahead {
    pieces: Receiver<io::Result<Piece>>,
    emptied: SyncSender<Vec<u32>>,
}

impl Stored {
    /// Columns in a file, of which no more than `cache_words` are kept in memory.
    pub(super) fn new(file: File, ends: Vec<u64>, read_words: usize, cache_words: usize) -> Self {
        let cache =
            Cache { words: Vec::new(), starts: vec![ABSENT; ends.len()], room: cache_words.min(ABSENT as usize) };
        Self { file, ends, read_words, cache: RwLock::new(cache), spare: Mutex::new(Vec::new()) }
    }

    fn range(&self, column: u32) -> Range<u64> {
        let column = column as usize;
        let start = if column == 0 { 0 } else { self.ends[column - 1] };
        start..self.ends[column]
    }

    /// Keeps no column in memory any more.
    pub(super) fn forget(&self) {
        let mut cache = self.cache.write();
        cache.words.clear();
        cache.starts.fill(ABSENT);
    }

    /// Keeps a column in memory, if there is room.
    pub(super) fn keep(&self, column: u32, words: &[u32]) {
        let mut cache = self.cache.write();
        if cache.words.len() + words.len() <= cache.room {
            cache.starts[column as usize] = cache.words.len() as u32;
            // Never beyond the room, as growing by half would be.
            let grown = (cache.words.capacity() * 3 / 2).max(1 << 16).max(cache.words.len() + words.len());
            if cache.words.len() + words.len() > cache.words.capacity() {
                let additional = grown.min(cache.room) - cache.words.len();
                cache.words.reserve_exact(additional);
            }
            cache.words.extend_from_slice(words);
        }
    }

    /// Hands columns to `take`, in their order, from memory where they are there.
    pub(super) fn walk<W>(&self, wanted: W, take: impl FnMut(u32, &[u32])) -> io::Result<()>
    where
        W: Iterator<Item = u32> + Clone + Send,
    {
        let cache = self.cache.read();
        if wanted.clone().all(|column| cache.starts[column as usize] != ABSENT) {
            let mut take = take;
            wanted.for_each(|column| take(column, self.cached(&cache, column).unwrap_or_default()));
            return Ok(());
        }
        self.walk_with(Some(cache), wanted, take)
    }

    /// As [`Stored::walk`], but all from the file; `take` may keep columns.
    pub(super) fn walk_file<W>(&self, wanted: W, take: impl FnMut(u32, &[u32])) -> io::Result<()>
    where
        W: Iterator<Item = u32> + Clone + Send,
    {
        self.walk_with(None, wanted, take)
    }

    fn cached<'c>(&self, cache: &'c Cache, column: u32) -> Option<&'c [u32]> {
        let start = cache.starts[column as usize];
        let range = self.range(column);
        (start != ABSENT).then(|| &cache.words[start as usize..][..(range.end - range.start) as usize])
    }

    fn walk_with<W>(
        &self,
        cache: Option<RwLockReadGuard<'_, Cache>>,
        wanted: W,
        mut take: impl FnMut(u32, &[u32]),
    ) -> io::Result<()>
    where
        W: Iterator<Item = u32> + Clone + Send,
    {
        let cache = cache.as_deref();
        let uncached =
            wanted.clone().filter(move |&column| cache.is_none_or(|cache| cache.starts[column as usize] == ABSENT));
        let (send_piece, pieces) = sync_channel(BUFFERS);
        let (emptied, buffers) = sync_channel(BUFFERS);
        {
            let mut spare = self.spare.lock();
            for _ in 0..BUFFERS {
                emptied.send(spare.pop().unwrap_or_default()).map_err(io::Error::other)?;
            }
        }
        let ahead = Ahead { pieces, emptied };
        // What the closure owns is dropped before the threads are waited for: that ends the one that reads.
        std::thread::scope(move |scope| {
            scope.spawn(move || self.read_ahead(uncached, &buffers, &send_piece));
            let mut piece = Piece { start: 0, words: Vec::new() };
            for column in wanted {
                if let Some(words) = cache.and_then(|cache| self.cached(cache, column)) {
                    take(column, words);
                    continue;
                }
                let range = self.range(column);
                while range.start < piece.start || range.end > piece.start + piece.words.len() as u64 {
                    piece = ahead.exchange(piece)?;
                }
                take(column, &piece.words[(range.start - piece.start) as usize..(range.end - piece.start) as usize]);
            }
            let rest = ahead.pieces.try_iter().filter_map(Result::ok).map(|piece| piece.words);
            self.spare.lock().extend(rest.chain([piece.words]).filter(|words| words.capacity() > 0));
            Ok(())
        })
    }

    /// Reads the wanted columns in pieces, as buffers for them come, and returns the buffers that are left.
    fn read_ahead(
        &self,
        wanted: impl Iterator<Item = u32>,
        buffers: &Receiver<Vec<u32>>,
        pieces: &SyncSender<io::Result<Piece>>,
    ) {
        let mut wanted = wanted.map(|column| self.range(column)).peekable();
        while let Some(mut piece) = wanted.next() {
            let fits = |piece: &Range<u64>, next: &Range<u64>| {
                (piece.end..=piece.end + GAP).contains(&next.start) && next.end - piece.start <= self.read_words as u64
            };
            while let Some(next) = wanted.next_if(|next| fits(&piece, next)) {
                piece.end = next.end;
            }
            // Nobody is there any more if the walk has ended early.
            let Ok(mut words) = buffers.recv() else { return };
            let length = (piece.end - piece.start) as usize;
            if words.capacity() < length {
                words.clear();
                words.reserve_exact(length);
            }
            words.resize(length, 0);
            let read = self.file.read_exact_at(bytemuck::cast_slice_mut(&mut words), 4 * piece.start);
            let failed = read.is_err();
            if pieces.send(read.map(|()| Piece { start: piece.start, words })).is_err() || failed {
                return;
            }
        }
        self.spare.lock().extend(buffers.try_iter().filter(|words| words.capacity() > 0));
    }
}

impl Ahead {
    /// Gives a piece back for the next one.
    fn exchange(&self, piece: Piece) -> io::Result<Piece> {
        if piece.words.capacity() > 0 {
            // Nobody is there any more if all is read.
            self.emptied.send(piece.words).unwrap_or_default();
        }
        self.pieces.recv().map_err(|_| io::ErrorKind::UnexpectedEof)?
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Columns of 1 to 40 words, each of which says where it is in the file.
    fn stored(read_words: usize, cache_words: usize) -> Stored {
        let ends: Vec<u64> = (0..200u64)
            .scan(0, |end, column| {
                *end += 1 + column * 7 % 40;
                Some(*end)
            })
            .collect();
        let words: Vec<u32> = (0..ends[199] as u32).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytemuck::cast_slice(&words)).unwrap();
        Stored::new(file, ends, read_words, cache_words)
    }

    #[test]
    fn any_columns_come_in_any_order() {
        let orders: [Vec<u32>; 4] = [
            (0..200).collect(),
            (0..200).rev().collect(),
            (0..600).map(|number| number * 77 % 200).collect(),
            vec![150, 3, 199, 3],
        ];
        for (read_words, cache_words) in [(1, 0), (100, 0), (64, 500), (1 << 20, 1 << 20)] {
            let stored = stored(read_words, cache_words);
            for order in &orders {
                for keep in [false, true] {
                    let mut seen = Vec::new();
                    let take = |column: u32, words: &[u32]| {
                        let range = stored.range(column);
                        assert!(words.iter().copied().eq(range.start as u32..range.end as u32), "column {column}");
                        seen.push(column);
                        if keep {
                            stored.keep(column, words);
                        }
                    };
                    if keep {
                        stored.forget();
                        stored.walk_file(order.iter().copied(), take).unwrap();
                    } else {
                        stored.walk(order.iter().copied(), take).unwrap();
                    }
                    assert_eq!(&seen, order);
                    assert!(stored.cache.read().words.capacity() <= cache_words.max(1));
                }
            }
        }
    }

    #[test]
    fn a_file_that_is_cut_is_an_error() {
        let stored = stored(50, 0);
        stored.file.set_len(400).unwrap();
        let error = stored.walk(0..200, |_, _| {}).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(stored.walk(0..3, |_, _| {}).is_ok());
    }
}
