//! A set of row ids: one bit per row where the table has a size, a tree where it has not.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

#[derive(Debug, Clone)]
pub(crate) enum RowSet {
    Bits {
        words: Vec<u64>,
        /// One bit per word that has any, so that a small set of a large table is found without a search.
        summary: Vec<u64>,
    },
    Tree(BTreeSet<u64>),
}

impl RowSet {
    pub(crate) fn new(rows: Option<u64>) -> Self {
        match rows {
            Some(rows) => {
                let words = rows.div_ceil(64) as usize;
                Self::Bits { words: vec![0; words], summary: vec![0; words.div_ceil(64)] }
            }
            None => Self::Tree(BTreeSet::new()),
        }
    }

    /// Says whether the row is new.
    pub(crate) fn insert(&mut self, row: u64) -> bool {
        match self {
            Self::Bits { words, summary } => set_bit(words, summary, row),
            Self::Tree(tree) => tree.insert(row),
        }
    }

    pub(crate) fn insert_all(&mut self, rows: &[u64]) {
        match self {
            Self::Bits { words, summary } => rows.iter().for_each(|&row| _ = set_bit(words, summary, row)),
            Self::Tree(tree) => tree.extend(rows),
        }
    }

    pub(crate) fn clear(&mut self) {
        match self {
            Self::Bits { words, summary } => {
                for (first, word) in (0..).step_by(64).zip(summary) {
                    each_bit(std::mem::take(word), first, |at| words[at as usize] = 0);
                }
            }
            Self::Tree(rows) => rows.clear(),
        }
    }

    pub(crate) fn contains(&self, row: u64) -> bool {
        match self {
            Self::Bits { words, .. } => words[(row / 64) as usize] & (1 << (row % 64)) != 0,
            Self::Tree(tree) => tree.contains(&row),
        }
    }

    pub(crate) fn remove_all(&mut self, rows: &[u64]) {
        match self {
            Self::Bits { words, summary } => {
                for row in rows {
                    let word = &mut words[(row / 64) as usize];
                    *word &= !(1 << (row % 64));
                    if *word == 0 {
                        summary[(row / 4096) as usize] &= !(1 << (row / 64 % 64));
                    }
                }
            }
            Self::Tree(tree) => rows.iter().for_each(|row| {
                tree.remove(row);
            }),
        }
    }

    /// Shows the rows from `from` on, and then those before it, until `show` has seen enough.
    pub(crate) fn walk(&self, from: u64, show: &mut dyn FnMut(u64) -> ControlFlow<()>) {
        match self {
            Self::Bits { words, summary } => {
                let begin = if from / 64 < words.len() as u64 { from } else { 0 };
                let (first, bit) = ((begin / 64) as usize, begin % 64);
                let end = u64::MAX << bit;
                let ranges = [(first, first + 1, end), (first + 1, words.len(), u64::MAX), (0, first, u64::MAX)];
                for (low, high, mask) in ranges.into_iter().chain([(first, first + 1, !end)]) {
                    if walk_words((words, summary), low, high.min(words.len()), mask, show).is_break() {
                        return;
                    }
                }
            }
            Self::Tree(tree) => {
                show_each(tree.range(from..).chain(tree.range(..from)).copied(), show);
            }
        }
    }

    /// The rows in both sets, ascending.
    pub(crate) fn intersection(&self, other: &Self) -> Vec<u64> {
        match (self, other) {
            (Self::Bits { words: a, summary }, Self::Bits { words: b, summary: other }) => {
                let mut rows = Vec::new();
                for (first, (x, y)) in (0..).step_by(64).zip(summary.iter().zip(other)) {
                    each_bit(x & y, first, |at| push_bits(a[at as usize] & b[at as usize], at * 64, &mut rows));
                }
                rows
            }
            (Self::Tree(a), Self::Tree(b)) => a.intersection(b).copied().collect(),
            _ => unreachable!("both sets are of one table"),
        }
    }
}

/// Says whether the row is new.
#[inline]
fn set_bit(words: &mut [u64], summary: &mut [u64], row: u64) -> bool {
    let (word, bit) = (&mut words[(row / 64) as usize], 1 << (row % 64));
    let new = *word & bit == 0;
    *word |= bit;
    summary[(row / 4096) as usize] |= 1 << (row / 64 % 64);
    new
}

/// Shows the rows in the words from `low` to `high`, as far as `mask` lets them through.
fn walk_words(
    (words, summary): (&[u64], &[u64]),
    low: usize,
    high: usize,
    mask: u64,
    show: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut at = low;
    while at < high {
        let used = summary[at / 64] >> (at % 64);
        if used == 0 {
            at = (at / 64 + 1) * 64;
            continue;
        }
        at += used.trailing_zeros() as usize;
        if at >= high {
            break;
        }
        let mut word = words[at] & mask;
        while word != 0 {
            show(at as u64 * 64 + u64::from(word.trailing_zeros()))?;
            word &= word - 1;
        }
        at += 1;
    }
    ControlFlow::Continue(())
}

/// Appends `first` plus the position of each bit of `word`.
pub(crate) fn push_bits(word: u64, first: u64, rows: &mut Vec<u64>) {
    each_bit(word, first, |row| rows.push(row));
}

/// Calls `f` with `first` plus the position of each bit of `word`.
fn each_bit(mut word: u64, first: u64, mut f: impl FnMut(u64)) {
    while word != 0 {
        f(first + u64::from(word.trailing_zeros()));
        word &= word - 1;
    }
}

/// Shows rows one after the other, until `show` has seen enough.
pub(crate) fn show_each(mut rows: impl Iterator<Item = u64>, show: &mut dyn FnMut(u64) -> ControlFlow<()>) {
    while rows.next().is_some_and(|row| show(row).is_continue()) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_hold_the_same_sets() {
        for size in [Some(9000), None] {
            let (mut a, mut b) = (RowSet::new(size), RowSet::new(size));
            a.insert_all(&[199, 3, 64, 8999, 63]);
            b.insert_all(&[63, 8999, 64, 65, 0]);
            assert_eq!(a.intersection(&b), [63, 64, 8999]);
            for (from, order) in
                [(64, [64, 199, 8999, 3, 63]), (0, [3, 63, 64, 199, 8999]), (70, [199, 8999, 3, 63, 64])]
            {
                let mut seen = Vec::new();
                a.walk(from, &mut |row| {
                    seen.push(row);
                    ControlFlow::Continue(())
                });
                assert_eq!(seen, order, "from {from}");
            }
            a.remove_all(&[64, 8999, 5]);
            assert!(a.contains(63) && !a.contains(64));
            assert!(!a.insert(63) && a.insert(4) && a.contains(4));
            assert_eq!(a.intersection(&b), [63]);
            a.clear();
            assert!(a.intersection(&b).is_empty());
        }
    }
}
