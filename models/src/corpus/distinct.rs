//! The words of one document while it is read, of which none may come twice.

use hashbrown::HashSet;

/// The capacity below which a set serves for the next document, too.
const CAPACITY_KEPT: usize = 1 << 12;

/// Words by the numbers that a file gives them.
#[derive(Default)]
pub(super) struct Distinct {
    /// Those that came in ascending order, as most files have them: a word behind the last is new.
    ascending: Vec<u64>,
    /// All of them, once the order was broken.
    unordered: HashSet<u64>,
}

impl Distinct {
    /// Adds a word; whether it is new.
    pub(super) fn insert(&mut self, word: u64) -> bool {
        if self.unordered.is_empty() && self.ascending.last().is_none_or(|last| *last < word) {
            self.ascending.push(word);
            return true;
        }
        self.unordered.extend(self.ascending.drain(..));
        self.unordered.insert(word)
    }

    /// Forgets the words, for another document.
    pub(super) fn clear(&mut self) {
        self.ascending.clear();
        // To clear a set takes as long as the largest document that was in it.
        match self.unordered.capacity() {
            0..CAPACITY_KEPT => self.unordered.clear(),
            _ => self.unordered = HashSet::new(),
        }
    }
}
