//! A set of numbers that come roughly in order: it is kept as stretches, so that a whole beginning costs one.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Runs(BTreeMap<u64, u64>);

impl Runs {
    /// Whether a number is in the set.
    #[must_use]
    pub fn contains(&self, number: u64) -> bool {
        self.0.range(..=number).next_back().is_some_and(|(_, &end)| number < end)
    }

    /// Adds a number; `false` if it was there already.
    pub fn insert(&mut self, number: u64) -> bool {
        let new = !self.contains(number);
        self.insert_all(number..number.saturating_add(1));
        new
    }

    /// Adds all numbers of a range.
    pub fn insert_all(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        // Every stretch that the range touches becomes one with it; those are the last ones that begin before its end.
        while let Some((&first, &last)) = self.0.range(..=end).next_back()
            && last >= start
        {
            (start, end) = (start.min(first), end.max(last));
            self.0.remove(&first);
        }
        self.0.insert(start, end);
    }

    /// How many stretches the set is kept as.
    #[must_use]
    pub fn stretches(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_holds_what_a_plain_set_holds_in_as_few_stretches_as_can_be(ranges in proptest::collection::vec((0u64..60, 0u64..5), 0..40)) {
            let mut runs = Runs::default();
            let mut plain = BTreeSet::new();
            for (start, length) in ranges {
                if length == 1 {
                    prop_assert_eq!(runs.insert(start), plain.insert(start));
                } else {
                    runs.insert_all(start..start + length);
                    plain.extend(start..start + length);
                }
            }
            for number in 0..70 {
                prop_assert_eq!(runs.contains(number), plain.contains(&number));
            }
            let begins = plain.iter().filter(|&&number| number == 0 || !plain.contains(&(number - 1))).count();
            prop_assert_eq!(runs.stretches(), begins);
        }
    }
}
