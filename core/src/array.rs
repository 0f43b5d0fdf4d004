//! An array that owns its elements or lies in a received frame, so that a message is decoded without copying.

use bytemuck::AnyBitPattern;
use bytemuck::NoUninit;
use std::ops::Deref;
use std::sync::Arc;

/// The bytes of a received message, in words of eight so that every array in it is aligned.
pub type Frame = Vec<u64>;

/// A read-only array of plain values.
#[derive(Debug, Clone)]
pub struct Array<T>(Place<T>);

#[derive(Debug, Clone)]
enum Place<T> {
    Owned(Arc<Vec<T>>),
    Frame { frame: Arc<Frame>, start: usize, len: usize },
}

impl<T: AnyBitPattern + NoUninit> Array<T> {
    /// The `len` elements that begin `start` bytes into `frame`; `None` if they are not all there or not aligned.
    #[must_use]
    pub fn in_frame(frame: &Arc<Frame>, start: usize, len: usize) -> Option<Self> {
        let size = size_of::<T>();
        let end = len.checked_mul(size)?.checked_add(start)?;
        let fits = end <= frame.len() * 8 && start.is_multiple_of(align_of::<T>());
        fits.then(|| Self(Place::Frame { frame: Arc::clone(frame), start, len }))
    }

    /// The elements.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        match &self.0 {
            Place::Owned(elements) => elements,
            Place::Frame { frame, start, len } => {
                let bytes: &[u8] = bytemuck::cast_slice(frame);
                bytemuck::cast_slice(&bytes[*start..start + len * size_of::<T>()])
            }
        }
    }
}

impl<T: AnyBitPattern + NoUninit> Deref for Array<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T> From<Vec<T>> for Array<T> {
    fn from(elements: Vec<T>) -> Self {
        Self(Place::Owned(Arc::new(elements)))
    }
}

impl<T> From<Arc<Vec<T>>> for Array<T> {
    fn from(elements: Arc<Vec<T>>) -> Self {
        Self(Place::Owned(elements))
    }
}

impl<T: AnyBitPattern + NoUninit + PartialEq> PartialEq for Array<T> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_in_a_frame_equals_the_same_elements_owned_and_never_reaches_beyond_it() {
        let frame = Arc::new(bytemuck::cast_slice::<u8, u64>(bytemuck::cast_slice(&[1.0f64, 2.0, 3.0])).to_vec());
        let inside = Array::<f64>::in_frame(&frame, 8, 2).expect("two of three");
        assert_eq!(inside, Array::from(vec![2.0, 3.0]));
        assert!(Array::<f64>::in_frame(&frame, 8, 3).is_none());
        assert!(Array::<f64>::in_frame(&frame, 4, 1).is_none());
        assert!(Array::<u8>::in_frame(&frame, usize::MAX, 2).is_none());
    }
}
