//! Updates of a table with versions: coalesced where row and version are the same.

use crate::slab;
use hashbrown::HashMap;

/// What was added, one after the other in the order of first additions.
#[derive(Debug)]
pub(crate) struct Tagged {
    width: usize,
    tags: Vec<(u64, u32)>,
    numbers: Vec<f32>,
    places: HashMap<(u64, u32), usize>,
    /// Of each row, the place of the version that was added to first.
    rows: HashMap<u64, usize>,
}

impl Tagged {
    pub(crate) fn new(width: usize) -> Self {
        Self { width, tags: Vec::new(), numbers: Vec::new(), places: HashMap::new(), rows: HashMap::new() }
    }

    pub(crate) fn add(&mut self, row: u64, version: u32, update: &[f32]) {
        let place = *self.places.entry((row, version)).or_insert(self.tags.len());
        if place == self.tags.len() {
            self.rows.entry(row).or_insert(place);
            self.tags.push((row, version));
            self.numbers.extend_from_slice(update);
        } else {
            slab::add(&mut self.numbers[place * self.width..][..self.width], update);
        }
    }

    /// Calls `f` with every row, version and update.
    pub(crate) fn for_each(&self, mut f: impl FnMut(u64, u32, &[f32])) {
        let updates = self.tags.iter().zip(self.numbers.chunks_exact(self.width));
        updates.for_each(|(&(row, version), update)| f(row, version, update));
    }

    /// One of the updates of a row, by which its importance is judged.
    pub(crate) fn any_of(&self, row: u64) -> Option<&[f32]> {
        self.rows.get(&row).map(|place| &self.numbers[place * self.width..][..self.width])
    }

    /// Takes the updates of some ascending rows out.
    pub(crate) fn split(&mut self, rows: &[u64]) -> Self {
        let (mut chosen, mut others) = (Self::new(self.width), Self::new(self.width));
        self.take(|row, version, update| {
            let part = if rows.binary_search(&row).is_ok() { &mut chosen } else { &mut others };
            part.add(row, version, update);
        });
        *self = others;
        chosen
    }

    /// Calls `f` with every row, version and update, by ascending row and then version, and leaves nothing.
    pub(crate) fn take(&mut self, mut f: impl FnMut(u64, u32, &[f32])) {
        let mut order: Vec<usize> = (0..self.tags.len()).collect();
        order.sort_unstable_by_key(|&place| self.tags[place]);
        for place in order {
            let (row, version) = self.tags[place];
            f(row, version, &self.numbers[place * self.width..][..self.width]);
        }
        self.tags.clear();
        self.numbers.clear();
        self.places.clear();
        self.rows.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_are_coalesced_within_a_version_and_taken_once() {
        let mut updates = Tagged::new(1);
        for (row, version, number) in [(6, 1, 1.0), (1, 4, 2.0), (6, 0, 4.0), (6, 1, 0.5)] {
            updates.add(row, version, &[number]);
        }
        let mut taken = Vec::new();
        updates.take(|row, version, update| taken.push((row, version, update[0])));
        assert_eq!(taken, [(1, 4, 2.0), (6, 0, 4.0), (6, 1, 1.5)]);
        for (row, version) in [(6, 1), (1, 4), (6, 0)] {
            updates.add(row, version, &[1.0]);
        }
        assert_eq!((updates.any_of(6), updates.any_of(2)), (Some(&[1.0][..]), None));
        assert_eq!(updates.split(&[6]).tags, [(6, 0), (6, 1)]);
        let mut left = Vec::new();
        updates.for_each(|row, version, update| left.push((row, version, update[0])));
        assert_eq!(left, [(1, 4, 1.0)]);
        updates.take(|_, _, _| {});
        updates.take(|row, version, _| panic!("row {row} of version {version} a second time"));
    }
}
