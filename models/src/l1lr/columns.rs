//! Examples turned round: for each feature the rows that have it, which is how block methods go through them.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;

use super::blocks::{Blocks, Cut, group};
use super::prox::Penalty;
use super::rows_file::RowsFile;
use super::stored::Stored;
use crate::examples::Examples;
use crate::team::share_out;

/// The entries of one feature.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Column<'a> {
    /// All have the same value.
    Same {
        /// The rows that have the feature, ascending.
        rows: &'a [u32],
        /// Their value.
        value: f32,
    },
    /// Each has its own.
    Each {
        /// The rows that have the feature, ascending.
        rows: &'a [u32],
        /// The value of each.
        values: &'a [f32],
    },
}

/// Examples of two classes by columns, in random order, without those that no weight can be worth.
pub(super) struct Columns {
    /// One for examples of the class whose probability is predicted, zero for others.
    pub(super) targets: Vec<f32>,
    /// The feature of each column. A bias is the last column, and its number is behind the last feature.
    pub(super) features: Vec<u32>,
    /// Whether the last column is a bias.
    pub(super) bias: bool,
    /// Where the entries of each column end.
    ends: Vec<usize>,
    /// The value that all entries of a column have, or not a number where they differ.
    same: Vec<f32>,
    entries: Entries,
}

/// Where the entries of columns are.
enum Entries {
    Memory {
        rows: Vec<u32>,
        /// The value of each entry; empty if all columns have one value.
        values: Vec<f32>,
    },
    /// For each column its rows, and behind them their values where they differ.
    File(Stored),
}

/// How much memory columns in a file may take, in words of four bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// While the file is written.
    pub(super) fill_words: usize,
    /// For columns that are read at a time.
    pub(super) read_words: usize,
    /// For columns that are kept.
    pub(super) cache_words: usize,
}

/// How columns are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Making {
    /// The class whose probability is predicted.
    pub(super) positive: u32,
    /// Features are left out whose slope can never exceed this: their weight is zero in every optimum of an L1 penalty
    /// so high.
    pub(super) worth: f64,
    /// Whether every example has one more feature, which is 1.
    pub(super) bias: bool,
    pub(super) seed: u64,
    pub(super) workers: usize,
}

impl Columns {
    /// Turns examples round.
    ///
    /// Entries go to buckets of features first, so that the columns of a bucket are filled within the nearest caches.
    pub(super) fn new(examples: &Examples, making: Making) -> Self {
        let targets: Vec<f32> =
            examples.labels().iter().map(|&label| if label == making.positive { 1.0 } else { 0.0 }).collect();
        let places = Places::new(examples.features(), making.seed);
        let valued = !examples.values().iter().all(|&value| value == 1.0);
        let shares: Vec<_> = row_shares(examples.len(), making.workers).collect();
        let sorted = share_out(making.workers, shares, |rows| Sorted::new(examples, rows, places, valued));
        let buckets: Vec<usize> = (0..places.buckets()).collect();
        let found = share_out(making.workers, buckets, |bucket| {
            let mut found = vec![Found::default(); places.per_bucket()];
            for sorted in &sorted {
                sorted.buckets[bucket].look(&mut found, &targets);
            }
            found.iter_mut().filter(|found| !found.is_worth(making.worth)).for_each(|found| found.count = 0);
            found
        });
        let entries = Entries::Memory { rows: Vec::new(), values: Vec::new() };
        let (features, ends, same) = (Vec::new(), Vec::new(), Vec::new());
        let mut columns = Self { targets, features, bias: making.bias, ends, same, entries };
        for (place, found) in found.iter().flatten().enumerate().filter(|(_, found)| found.count > 0) {
            columns.add(places.feature(place as u32), found);
        }
        let end = columns.ends.last().copied().unwrap_or(0);
        let ends: Vec<usize> = found.iter().map(|found| found.iter().map(|found| found.count as usize).sum()).collect();
        let mut rows = vec![0; end + if making.bias { examples.len() } else { 0 }];
        let valued = columns.same.iter().any(|value| value.is_nan());
        let mut values = if valued { vec![1.0; rows.len()] } else { Vec::new() };
        fill((&mut rows, &mut values), &sorted, &found, &ends, making.workers);
        if making.bias {
            rows[end..].iter_mut().zip(0..).for_each(|(row, number)| *row = number);
            columns.add(examples.features() as u32, &Found::bias(examples.len()));
        }
        columns.entries = Entries::Memory { rows, values };
        columns
    }

    /// Turns examples in a file round, into another; `found` is what was found out about every feature.
    ///
    /// The rows are read as often as there is too little room for all columns.
    pub(super) fn in_file(
        rows: &RowsFile,
        targets: Vec<f32>,
        found: &[Found],
        making: Making,
        (mut file, room): (File, Room),
    ) -> io::Result<Self> {
        let places = Places::new(found.len(), making.seed);
        let entries = Entries::Memory { rows: Vec::new(), values: Vec::new() };
        let (features, ends, same) = (Vec::new(), Vec::new(), Vec::new());
        let mut columns = Self { targets, features, bias: making.bias, ends, same, entries };
        let mut column_of = vec![u32::MAX; found.len()];
        for feature in (0..=places.mask()).map(|place| places.feature(place)) {
            if let Some(found) = found.get(feature as usize).filter(|found| found.is_worth(making.worth)) {
                column_of[feature as usize] = columns.len() as u32;
                columns.add(feature, found);
            }
        }
        if making.bias {
            columns.add(found.len() as u32, &Found::bias(rows.len()));
        }
        let mut ends: Vec<u64> = Vec::with_capacity(columns.len());
        for column in 0..columns.len() {
            ends.push(ends.last().copied().unwrap_or(0) + columns.words(column) as u64);
        }
        let mut first = 0;
        while first < columns.len() {
            let start = if first == 0 { 0 } else { ends[first - 1] };
            let fitting = ends.partition_point(|&end| end <= start + room.fill_words as u64);
            let part = first..fitting.max(first + 1);
            file.write_all(bytemuck::cast_slice(&columns.part(part.clone(), rows, &column_of)?))?;
            first = part.end;
        }
        columns.entries = Entries::File(Stored::new(file, ends, room.read_words, room.cache_words));
        Ok(columns)
    }

    /// The words of some columns, out of the examples by rows.
    fn part(&self, part: Range<usize>, rows: &RowsFile, column_of: &[u32]) -> io::Result<Vec<u32>> {
        let mut length = 0;
        let mut next: Vec<usize> = Vec::with_capacity(part.len());
        for column in part.clone() {
            next.push(length);
            length += self.words(column);
        }
        let mut words = vec![0; length];
        rows.each(|row, example| {
            for (&feature, value) in example.columns.iter().zip(example.values) {
                let column = column_of[feature as usize] as usize;
                if !part.contains(&column) {
                    continue;
                }
                let next = &mut next[column - part.start];
                words[*next] = row as u32;
                if self.same[column].is_nan() {
                    words[*next + self.count(column)] = value.to_bits();
                }
                *next += 1;
            }
        })?;
        if self.bias && part.end == self.len() {
            words[length - rows.len()..].iter_mut().zip(0..).for_each(|(word, row)| *word = row);
        }
        Ok(words)
    }

    fn add(&mut self, feature: u32, found: &Found) {
        self.features.push(feature);
        self.ends.push(self.ends.last().copied().unwrap_or(0) + found.count as usize);
        self.same.push(if found.varies { f32::NAN } else { found.value });
    }

    /// How many words a column takes in a file.
    fn words(&self, column: usize) -> usize {
        self.count(column) * if self.same[column].is_nan() { 2 } else { 1 }
    }

    /// Hands columns to `take`, in the order in which they are wanted.
    ///
    /// # Errors
    /// If they are in a file that cannot be read.
    pub(super) fn walk<W>(&self, wanted: W, mut take: impl FnMut(u32, Column<'_>)) -> io::Result<()>
    where
        W: Iterator<Item = u32> + Clone + Send,
    {
        match &self.entries {
            Entries::Memory { rows, values } => {
                wanted.for_each(|column| take(column, self.column(column, rows, values)))
            }
            Entries::File(stored) => stored.walk(wanted, |column, words| take(column, self.of_words(column, words)))?,
        }
        Ok(())
    }

    /// As [`Columns::walk`], but columns in a file are kept in memory, as far as they fit, where `take` says so.
    ///
    /// # Errors
    /// If they are in a file that cannot be read.
    pub(super) fn walk_and_keep<W>(&self, wanted: W, mut take: impl FnMut(u32, Column<'_>) -> bool) -> io::Result<()>
    where
        W: Iterator<Item = u32> + Clone + Send,
    {
        let Entries::File(stored) = &self.entries else {
            return self.walk(wanted, |column, entries| {
                take(column, entries);
            });
        };
        stored.walk_file(wanted, |column, words| {
            if take(column, self.of_words(column, words)) {
                stored.keep(column, words);
            }
        })
    }

    /// Keeps no column of a file in memory.
    pub(super) fn forget(&self) {
        if let Entries::File(stored) = &self.entries {
            stored.forget();
        }
    }

    /// How many columns there are.
    pub(super) fn len(&self) -> usize {
        self.features.len()
    }

    /// What the weight of a column costs, if that of a feature costs `penalty`: nothing if it is the bias.
    pub(super) fn penalty(&self, column: usize, penalty: Penalty) -> Penalty {
        if self.bias && column + 1 == self.features.len() { Penalty::NONE } else { penalty }
    }

    /// The columns in blocks, as many as are usual if nobody says how many. Their order is random as it is.
    pub(super) fn blocks(&self, cut: &Cut, usual: usize) -> Blocks {
        let columns = (0..self.len() as u32).collect();
        let count = match cut {
            Cut::Automatic => usual,
            Cut::Into(count) => *count as usize,
            Cut::ByGroup(groups) => {
                return Blocks::by_group(columns, |column| group(groups, self.features[column as usize]));
            }
        };
        let weights: Vec<usize> = (0..self.len()).map(|column| self.count(column)).collect();
        Blocks::cut(columns, &weights, count)
    }

    #[inline]
    fn column<'c>(&self, column: u32, rows: &'c [u32], values: &'c [f32]) -> Column<'c> {
        let range = self.range(column as usize);
        let rows = &rows[range.clone()];
        match self.same[column as usize] {
            value if value.is_nan() => Column::Each { rows, values: &values[range] },
            value => Column::Same { rows, value },
        }
    }

    /// A column as it is in a file.
    fn of_words<'c>(&self, column: u32, words: &'c [u32]) -> Column<'c> {
        match self.same[column as usize] {
            value if value.is_nan() => {
                let (rows, values) = words.split_at(words.len() / 2);
                Column::Each { rows, values: bytemuck::cast_slice(values) }
            }
            value => Column::Same { rows: words, value },
        }
    }

    /// How many rows have the feature of a column.
    pub(super) fn count(&self, column: usize) -> usize {
        self.range(column).len()
    }

    fn range(&self, column: usize) -> Range<usize> {
        let start = if column == 0 { 0 } else { self.ends[column - 1] };
        start..self.ends[column]
    }
}

/// Puts every entry into its column; `counts` says how many each bucket has.
fn fill(
    (mut rows, mut values): (&mut [u32], &mut [f32]),
    sorted: &[Sorted],
    found: &[Vec<Found>],
    counts: &[usize],
    workers: usize,
) {
    let mut parts = Vec::new();
    for (bucket, &count) in counts.iter().enumerate() {
        let (part, rest) = rows.split_at_mut(count);
        let (part_values, rest_values) = values.split_at_mut(count.min(values.len()));
        (rows, values) = (rest, rest_values);
        parts.push((bucket, part, part_values));
    }
    share_out(workers, parts, |(bucket, rows, values)| {
        let mut next: Vec<u32> = Vec::with_capacity(found[bucket].len());
        let mut start = 0;
        for found in &found[bucket] {
            next.push(if found.count == 0 { u32::MAX } else { start });
            start += found.count;
        }
        for sorted in sorted {
            sorted.buckets[bucket].fill(&mut next, rows, values);
        }
    });
}

/// The rows that each worker takes.
pub(super) fn row_shares(rows: usize, workers: usize) -> impl Iterator<Item = Range<usize>> {
    let each = rows.div_ceil(workers).max(1);
    (0..rows).step_by(each).map(move |start| start..(start + each).min(rows))
}

/// Where features go: another place each, in an order that looks like chance and costs a few operations to compute.
#[derive(Clone, Copy)]
struct Places {
    bits: u32,
    bucket_bits: u32,
    salt: u32,
}

impl Places {
    const FACTOR: u32 = 0x9e37_79b1;
    /// What undoes the factor, modulo a power of two.
    const INVERSE: u32 = 0x0e8b_2f51;

    fn new(features: usize, seed: u64) -> Self {
        let bits = features.max(2).next_power_of_two().trailing_zeros();
        let salt = (crate::hold_out::mix(seed, 0) as u32) & ((1 << bits) - 1);
        Self { bits, bucket_bits: bits.saturating_sub(12).min(7), salt }
    }

    fn mask(self) -> u32 {
        (1 << self.bits) - 1
    }

    #[inline(always)]
    fn place(self, feature: u32) -> u32 {
        let half = self.bits.div_ceil(2);
        let mixed = (feature ^ self.salt).wrapping_mul(Self::FACTOR) & self.mask();
        let mixed = (mixed ^ (mixed >> half)).wrapping_mul(Self::FACTOR) & self.mask();
        mixed ^ (mixed >> half)
    }

    /// The feature of a place: every step of [`Places::place`] undone.
    fn feature(self, place: u32) -> u32 {
        let half = self.bits.div_ceil(2);
        let mixed = (place ^ (place >> half)).wrapping_mul(Self::INVERSE) & self.mask();
        let mixed = (mixed ^ (mixed >> half)).wrapping_mul(Self::INVERSE) & self.mask();
        mixed ^ self.salt
    }

    fn buckets(self) -> usize {
        1 << self.bucket_bits
    }

    fn per_bucket(self) -> usize {
        1 << (self.bits - self.bucket_bits)
    }
}

/// The entries of some rows, by buckets.
struct Sorted {
    buckets: Vec<Bucket>,
}

/// Entries of neighbouring places.
#[derive(Default)]
struct Bucket {
    /// The place within the bucket, and the row.
    entries: Vec<(u32, u32)>,
    /// The values; none if all are 1.
    values: Vec<f32>,
}

impl Sorted {
    fn new(examples: &Examples, rows: Range<usize>, places: Places, valued: bool) -> Self {
        let mut buckets: Vec<Bucket> = (0..places.buckets()).map(|_| Bucket::default()).collect();
        let (shift, mask) = (places.bits - places.bucket_bits, places.per_bucket() as u32 - 1);
        let expected = examples.entries() / examples.len().max(1) * rows.len() / places.buckets();
        buckets.iter_mut().for_each(|bucket| bucket.entries.reserve(expected + expected / 8));
        for row in rows {
            let example = examples.example(row);
            for (&feature, &value) in example.columns.iter().zip(example.values) {
                let place = places.place(feature);
                let bucket = &mut buckets[(place >> shift) as usize];
                bucket.entries.push((place & mask, row as u32));
                if valued {
                    bucket.values.push(value);
                }
            }
        }
        Self { buckets }
    }
}

/// What is found out about a feature.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    pub(super) count: u32,
    /// The first value.
    value: f32,
    /// The most that the slope of the loss in the feature's weight can be, and the most it can be below zero.
    slope_max: [f32; 2],
    /// Whether there are other values than the first.
    pub(super) varies: bool,
}

impl Found {
    /// Of the feature that every example has.
    fn bias(examples: usize) -> Self {
        Self { count: examples as u32, value: 1.0, ..Self::default() }
    }

    #[inline]
    pub(super) fn add(&mut self, value: f32, positive: bool) {
        self.varies |= self.count > 0 && self.value != value;
        self.value = value;
        self.count += 1;
        // The slope of a row's loss in its margin is between -1 and 0 if the target is 1, else between 0 and 1.
        self.slope_max[usize::from(positive == (value > 0.0))] += value.abs();
    }

    /// Whether its slope can ever exceed this; not if no example has it.
    pub(super) fn is_worth(&self, worth: f64) -> bool {
        self.count > 0 && f64::from(self.slope_max[0].max(self.slope_max[1])) > worth * (1.0 - 1e-5)
    }
}

impl Bucket {
    fn values(&self) -> impl Iterator<Item = f32> {
        self.values.iter().copied().chain(std::iter::repeat(1.0))
    }

    fn look(&self, found: &mut [Found], targets: &[f32]) {
        for (&(place, row), value) in self.entries.iter().zip(self.values()) {
            found[place as usize].add(value, targets[row as usize] > 0.5);
        }
    }

    fn fill(&self, next: &mut [u32], rows: &mut [u32], values: &mut [f32]) {
        for (&(place, row), value) in self.entries.iter().zip(self.values()) {
            let next = &mut next[place as usize];
            if *next != u32::MAX {
                rows[*next as usize] = row;
                if let Some(slot) = values.get_mut(*next as usize) {
                    *slot = value;
                }
                *next += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_a_permutation_that_can_be_undone() {
        for features in [1, 2, 3, 123, 5000, 100_000] {
            let places = Places::new(features, 5);
            let mut seen = vec![false; 1 << places.bits];
            for feature in 0..1u32 << places.bits {
                let place = places.place(feature);
                assert_eq!(places.feature(place), feature, "{features}");
                assert!(!std::mem::replace(&mut seen[place as usize], true));
            }
        }
    }
}
