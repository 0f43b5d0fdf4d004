//! Delayed adds, and where they stay until their elements are processed again.

use super::{ArrayPlace, Scalar, SparsePlace};

/// An add that was declared for the next time that its element is processed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DelayedAdd {
    /// To a number.
    Scalar(Scalar, f64),
    /// To a number of an array.
    Array(ArrayPlace, f32),
    /// To a number of a sparse array.
    Sparse(SparsePlace, f32),
}

impl DelayedAdd {
    fn scaled(self, factor: f64) -> Self {
        let scale = |delta: f32| (f64::from(delta) * factor) as f32;
        match self {
            Self::Scalar(scalar, delta) => Self::Scalar(scalar, delta * factor),
            Self::Array(place, delta) => Self::Array(place, scale(delta)),
            Self::Sparse(place, delta) => Self::Sparse(place, scale(delta)),
        }
    }
}

/// The delayed adds of a partition's elements: those declared in earlier passes, and those of this one, which take
/// their place when the pass is over.
#[derive(Debug, Clone, Default)]
pub struct Delayed {
    /// Where each element's adds begin and end.
    spans: Vec<(u32, u32)>,
    adds: Vec<DelayedAdd>,
    new_spans: Vec<(u32, u32)>,
    new_adds: Vec<DelayedAdd>,
}

impl Delayed {
    /// What is to be carried out before the element is processed.
    #[inline]
    #[must_use]
    pub fn due(&self, element: usize) -> &[DelayedAdd] {
        let (from, to) = self.spans.get(element).copied().unwrap_or_default();
        &self.adds[from as usize..to as usize]
    }

    /// Whether anything is due for any element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.adds.is_empty()
    }

    /// Keeps what one of `elements` declared as it was processed by one of `m` workers: scaled by `1/m`, since it was
    /// declared on `m` times the data.
    pub fn declare(&mut self, element: usize, elements: usize, m: u32, adds: &mut Vec<DelayedAdd>) {
        self.new_spans.resize(elements, (0, 0));
        let from = self.new_adds.len() as u32;
        self.new_adds.extend(adds.drain(..).map(|add| add.scaled(1.0 / f64::from(m))));
        self.new_spans[element] = (from, self.new_adds.len() as u32);
    }

    /// How much this pass has declared, for [`Delayed::forget_since`].
    #[must_use]
    pub fn mark(&self) -> usize {
        self.new_adds.len()
    }

    /// Forgets what `elements` declared since `mark`.
    pub fn forget_since(&mut self, mark: usize, elements: impl IntoIterator<Item = usize>) {
        self.new_adds.truncate(mark);
        for element in elements {
            if let Some(span) = self.new_spans.get_mut(element) {
                *span = (0, 0);
            }
        }
    }

    /// Ends a pass over all elements: what it declared is what is due in the next.
    pub fn commit(&mut self) {
        std::mem::swap(&mut self.spans, &mut self.new_spans);
        std::mem::swap(&mut self.adds, &mut self.new_adds);
        self.discard();
    }

    /// Gives up a pass.
    pub fn discard(&mut self) {
        self.new_spans.clear();
        self.new_adds.clear();
    }
}
