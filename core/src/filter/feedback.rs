//! Error feedback: what a lossy filter holds back is kept for later instead of being dropped.

use super::{Direction, Entry, Reason, Remainder, Selection};
use crate::row::RowKind;
use std::sync::Arc;

/// A selection filter whose remainder is kept, whatever it declares itself: it is added to the row's next update.
#[derive(Debug, Clone)]
pub struct Feedback(pub Arc<dyn Selection>);

impl Selection for Feedback {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn travels(&self, entry: &Entry<'_>) -> Result<bool, Reason> {
        self.0.travels(entry)
    }

    fn remainder(&self) -> Remainder {
        Remainder::Kept
    }

    fn needs_value(&self) -> bool {
        self.0.needs_value()
    }

    fn check(&self, kind: &RowKind, direction: Direction) -> Result<(), &'static str> {
        self.0.check(kind, direction)
    }
}
