//! Examples by rows in a nameless file, written once and read from its start as often as needed.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::examples::Example;

/// Entries that are written and read at a time, or more where one row has more.
const ENTRIES_PER_BATCH: usize = 1 << 16;
/// Words before those of a batch: rows, entries, and whether there are values.
const HEAD: usize = 3;

/// Rows that are being written.
pub(super) struct RowsWriter {
    file: File,
    /// How many entries each row of the batch has.
    lengths: Vec<u32>,
    features: Vec<u32>,
    values: Vec<f32>,
    rows: usize,
    entries: usize,
}

/// Rows that have been written.
pub(super) struct RowsFile {
    file: File,
    rows: usize,
    entries: usize,
}

impl RowsWriter {
    /// No rows yet. The file has no name, so that it goes with this program, however that ends.
    pub(super) fn create(directory: &Path) -> io::Result<Self> {
        Ok(Self::to(tempfile::tempfile_in(directory)?))
    }

    fn to(file: File) -> Self {
        Self { file, lengths: Vec::new(), features: Vec::new(), values: Vec::new(), rows: 0, entries: 0 }
    }

    pub(super) fn push(&mut self, example: Example<'_>) -> io::Result<()> {
        self.lengths.push(example.columns.len() as u32);
        self.features.extend_from_slice(example.columns);
        self.values.extend_from_slice(example.values);
        self.rows += 1;
        self.entries += example.columns.len();
        // A row without entries takes room, too.
        if self.features.len() + self.lengths.len() >= ENTRIES_PER_BATCH { self.write_batch() } else { Ok(()) }
    }

    fn write_batch(&mut self) -> io::Result<()> {
        let valued = self.values.iter().any(|&value| value != 1.0);
        let head: [u32; HEAD] = [self.lengths.len() as u32, self.features.len() as u32, u32::from(valued)];
        for words in [&head[..], &self.lengths, &self.features] {
            self.file.write_all(bytemuck::cast_slice(words))?;
        }
        if valued {
            self.file.write_all(bytemuck::cast_slice(&self.values))?;
        }
        self.lengths.clear();
        self.features.clear();
        self.values.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<RowsFile> {
        self.write_batch()?;
        Ok(RowsFile { file: self.file, rows: self.rows, entries: self.entries })
    }
}

impl RowsFile {
    pub(super) fn len(&self) -> usize {
        self.rows
    }

    pub(super) fn entries(&self) -> usize {
        self.entries
    }

    /// Hands every row to `take`, in order, with its number.
    pub(super) fn each(&self, mut take: impl FnMut(usize, Example<'_>)) -> io::Result<()> {
        let (mut offset, mut row) = (0, 0);
        let (mut words, mut ones) = (Vec::new(), Vec::new());
        let mut read = |words: &mut Vec<u32>, count: usize| -> io::Result<()> {
            words.resize(count, 0);
            self.file.read_exact_at(bytemuck::cast_slice_mut(words), offset)?;
            offset += 4 * count as u64;
            Ok(())
        };
        while row < self.rows {
            read(&mut words, HEAD)?;
            let (rows, entries, valued) = (words[0] as usize, words[1] as usize, words[2] != 0);
            read(&mut words, rows + entries * if valued { 2 } else { 1 })?;
            let (lengths, rest) = words.split_at(rows);
            let (mut features, values) = rest.split_at(entries);
            if !valued && ones.len() < entries {
                ones.resize(entries, 1.0f32);
            }
            let mut values: &[f32] = if valued { bytemuck::cast_slice(values) } else { &ones[..entries] };
            for &length in lengths {
                let (columns, features_after) = features.split_at(length as usize);
                let (own, values_after) = values.split_at(length as usize);
                take(row, Example { columns, values: own });
                (features, values, row) = (features_after, values_after, row + 1);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_went() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = RowsWriter::create(directory.path()).unwrap();
        let row = |number: usize| -> (Vec<u32>, Vec<f32>) {
            let features: Vec<u32> = (0..number as u32 % 100).map(|entry| entry * 3 + 1).collect();
            // Values other than 1 in some batches only.
            let value = |feature: &u32| if number > 2500 { *feature as f32 / 2.0 } else { 1.0 };
            let values = features.iter().map(value).collect();
            (features, values)
        };
        for number in 0..4000 {
            let (columns, values) = row(number);
            writer.push(Example { columns: &columns, values: &values }).unwrap();
        }
        let file = writer.finish().unwrap();
        assert_eq!((file.len(), file.entries()), (4000, 40 * 4950));
        for _ in 0..2 {
            let mut next = 0;
            file.each(|number, example| {
                let (columns, values) = row(number);
                assert_eq!((number, example.columns, example.values), (next, &columns[..], &values[..]));
                next += 1;
            })
            .unwrap();
            assert_eq!(next, 4000);
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "the file has no name");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut writer = RowsWriter::to(full);
        writer.push(Example { columns: &[1], values: &[1.0] }).unwrap();
        let Err(error) = writer.finish() else { panic!("nothing can be written there") };
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
