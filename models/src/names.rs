//! The ids of users or items, each numbered by its first appearance.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// A numbered set of ids, kept in one text: about nine bytes per id beside its own bytes.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// All ids, one after another.
    text: String,
    /// Where each id ends in `text`.
    ends: Vec<u32>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

/// The set has no room for another id: ids are numbered, and their text is measured, by `u32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than 4,294,967,295 ids, or more than 4 GiB of them, are not supported")]
pub struct NamesFull;

impl Names {
    /// How many ids there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no id.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The number of an id, if it is in the set.
    pub fn get(&self, name: &str) -> Option<u32> {
        self.get_bytes(name.as_bytes())
    }

    /// As [`Names::get`], for bytes that need not be text.
    pub(crate) fn get_bytes(&self, name: &[u8]) -> Option<u32> {
        self.index.find(self.hasher.hash_one(name), |&number| self.name(number).as_bytes() == name).copied()
    }

    /// The id of a number.
    ///
    /// # Panics
    ///
    /// If `number` is not below [`Names::len`].
    pub fn name(&self, number: u32) -> &str {
        name_at(&self.text, &self.ends, number)
    }

    /// All ids, in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.ends.len()).map(|number| self.name(number as u32))
    }

    /// What tells these ids, numbered as they are, from others.
    #[must_use]
    pub fn checksum(&self) -> u32 {
        let mut sum = crc32fast::Hasher::new();
        sum.update(self.text.as_bytes());
        sum.update(bytemuck::cast_slice(&self.ends));
        sum.finalize()
    }

    /// The number of an id, which is added if it is new.
    pub fn intern(&mut self, name: &str) -> Result<u32, NamesFull> {
        if let Some(number) = self.get(name) {
            return Ok(number);
        }
        let number = u32::try_from(self.ends.len()).map_err(|_| NamesFull)?;
        let end = u32::try_from(self.text.len() + name.len()).map_err(|_| NamesFull)?;
        if number == u32::MAX {
            return Err(NamesFull);
        }
        self.text.push_str(name);
        self.ends.push(end);
        let (text, ends, hasher) = (&self.text, &self.ends, &self.hasher);
        self.index.insert_unique(hasher.hash_one(name.as_bytes()), number, |&other| {
            hasher.hash_one(name_at(text, ends, other).as_bytes())
        });
        Ok(number)
    }
}

impl PartialEq for Names {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.ends == other.ends
    }
}

fn name_at<'t>(text: &'t str, ends: &[u32], number: u32) -> &'t str {
    let number = number as usize;
    let start = if number == 0 { 0 } else { ends[number - 1] };
    &text[start as usize..ends[number] as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_first_appearance() {
        let mut names = Names::default();
        let numbers: Vec<u32> = ["b", "a", "", "b", "é", "a"].iter().map(|name| names.intern(name).unwrap()).collect();
        assert_eq!(numbers, [0, 1, 2, 0, 3, 1]);
        assert_eq!(names.iter().collect::<Vec<_>>(), ["b", "a", "", "é"]);
        assert_eq!((names.get("é"), names.get("c")), (Some(3), None));
    }

    #[test]
    fn a_checksum_is_of_the_ids_and_where_each_ends() {
        let checksum = |ids: &[&str]| {
            let mut names = Names::default();
            ids.iter().for_each(|id| assert!(names.intern(id).is_ok()));
            names.checksum()
        };
        assert_eq!(checksum(&["ab", "c"]), checksum(&["ab", "c"]));
        for others in [["a", "bc"], ["c", "ab"], ["ab", "d"]] {
            assert_ne!(checksum(&["ab", "c"]), checksum(&others));
        }
    }

    #[test]
    fn many_names_are_all_found_again() {
        let mut names = Names::default();
        for number in 0..20_000 {
            assert_eq!(names.intern(&format!("name {number}")), Ok(number));
        }
        for number in 0..20_000 {
            assert_eq!(names.get(names.name(number)), Some(number));
        }
    }
}
