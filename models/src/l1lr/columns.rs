//! Examples turned round: for each feature the rows that have it, which is how block methods go through them.

use super::blocks::Blocks;
use super::prox::Penalty;
use super::team::share_out;
use crate::examples::Examples;

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
#[derive(Clone, Debug)]
pub(super) struct Columns {
    /// One for examples of the class whose probability is predicted, zero for others.
    pub(super) targets: Vec<f32>,
    /// The feature of each column. A bias is the last column, and its number is behind the last feature.
    pub(super) features: Vec<u32>,
    /// Whether the last column is a bias.
    pub(super) bias: bool,
    /// Where each column ends in `rows`.
    ends: Vec<usize>,
    rows: Vec<u32>,
    /// The value that all entries of a column have, or not a number where they differ.
    same: Vec<f32>,
    /// The value of each entry; empty if all columns have one value.
    values: Vec<f32>,
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
            found.iter_mut().for_each(|found| {
                if f64::from(found.slope_max[0].max(found.slope_max[1])) <= making.worth * (1.0 - 1e-5) {
                    found.count = 0;
                }
            });
            found
        });
        let mut columns = Self {
            targets,
            features: Vec::new(),
            bias: making.bias,
            ends: Vec::new(),
            rows: Vec::new(),
            same: Vec::new(),
            values: Vec::new(),
        };
        let mut end = 0;
        for (place, found) in found.iter().flatten().enumerate().filter(|(_, found)| found.count > 0) {
            end += found.count as usize;
            columns.features.push(places.feature(place as u32));
            columns.ends.push(end);
            columns.same.push(if found.varies { f32::NAN } else { found.value });
        }
        let ends: Vec<usize> = found.iter().map(|found| found.iter().map(|found| found.count as usize).sum()).collect();
        columns.rows = vec![0; end + if making.bias { examples.len() } else { 0 }];
        if columns.same.iter().any(|value| value.is_nan()) {
            columns.values = vec![1.0; columns.rows.len()];
        }
        columns.fill(&sorted, &found, &ends, making.workers);
        if making.bias {
            columns.rows[end..].iter_mut().zip(0..).for_each(|(row, number)| *row = number);
            columns.features.push(examples.features() as u32);
            columns.ends.push(end + examples.len());
            columns.same.push(1.0);
        }
        columns
    }

    /// Puts every entry into its column; `counts` says how many each bucket has.
    fn fill(&mut self, sorted: &[Sorted], found: &[Vec<Found>], counts: &[usize], workers: usize) {
        let (mut rows, mut values) = (&mut self.rows[..], &mut self.values[..]);
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

    /// How many columns there are.
    pub(super) fn len(&self) -> usize {
        self.features.len()
    }

    /// What the weight of a column costs, if that of a feature costs `penalty`: nothing if it is the bias.
    pub(super) fn penalty(&self, column: usize, penalty: Penalty) -> Penalty {
        if self.bias && column + 1 == self.features.len() { Penalty::NONE } else { penalty }
    }

    /// The columns, in so many blocks of about as many entries.
    pub(super) fn blocks(&self, count: usize) -> Blocks {
        let weights: Vec<usize> = (0..self.len()).map(|column| self.count(column)).collect();
        Blocks::cut((0..self.len() as u32).collect(), &weights, count)
    }

    pub(super) fn column(&self, column: usize) -> Column<'_> {
        let range = self.range(column);
        let rows = &self.rows[range.clone()];
        match self.same[column] {
            value if value.is_nan() => Column::Each { rows, values: &self.values[range] },
            value => Column::Same { rows, value },
        }
    }

    /// How many rows have the feature of a column.
    pub(super) fn count(&self, column: usize) -> usize {
        self.range(column).len()
    }

    fn range(&self, column: usize) -> std::ops::Range<usize> {
        let start = if column == 0 { 0 } else { self.ends[column - 1] };
        start..self.ends[column]
    }
}

/// The rows that each worker takes.
pub(super) fn row_shares(rows: usize, workers: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
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
    fn new(examples: &Examples, rows: std::ops::Range<usize>, places: Places, valued: bool) -> Self {
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

/// What is found out about the feature at a place.
#[derive(Clone, Copy, Default)]
struct Found {
    count: u32,
    /// The first value.
    value: f32,
    /// The most that the slope of the loss in the feature's weight can be, and the most it can be below zero.
    slope_max: [f32; 2],
    /// Whether there are other values than the first.
    varies: bool,
}

impl Bucket {
    fn values(&self) -> impl Iterator<Item = f32> {
        self.values.iter().copied().chain(std::iter::repeat(1.0))
    }

    fn look(&self, found: &mut [Found], targets: &[f32]) {
        for (&(place, row), value) in self.entries.iter().zip(self.values()) {
            let found = &mut found[place as usize];
            found.varies |= found.count > 0 && found.value != value;
            found.value = value;
            found.count += 1;
            // The slope of a row's loss in its margin is between -1 and 0 if the target is 1, else between 0 and 1.
            found.slope_max[usize::from((targets[row as usize] > 0.5) == (value > 0.0))] += value.abs();
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
