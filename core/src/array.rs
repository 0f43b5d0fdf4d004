//! An array that owns its elements or lies in a received frame, so that a message is decoded without copying.

use bytemuck::AnyBitPattern;
use bytemuck::NoUninit;
use std::ops::{Deref, Range};
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

impl Array<u64> {
    /// The same memory as bytes.
    #[must_use]
    pub fn bytes(&self) -> Array<u8> {
        let (frame, start, len) = match &self.0 {
            Place::Owned(elements) => (elements, 0, elements.len()),
            Place::Frame { frame, start, len } => (frame, *start, *len),
        };
        Array(Place::Frame { frame: Arc::clone(frame), start, len: len * size_of::<u64>() })
    }
}

impl Array<u8> {
    /// Some consecutive bytes of these.
    ///
    /// # Panics
    /// If there are not so many.
    #[must_use]
    pub fn part(&self, bytes: Range<usize>) -> Self {
        assert!(bytes.start <= bytes.end && bytes.end <= self.len(), "{bytes:?} of {} bytes", self.len());
        match &self.0 {
            Place::Owned(elements) => elements[bytes].to_vec().into(),
            Place::Frame { frame, start, .. } => {
                Self(Place::Frame { frame: Arc::clone(frame), start: start + bytes.start, len: bytes.len() })
            }
        }
    }

    /// A frame that holds these bytes from a multiple of eight on, and where: the one that they lie in if it will do.
    #[must_use]
    pub fn aligned(&self) -> (Arc<Frame>, usize) {
        match &self.0 {
            Place::Frame { frame, start, .. } if start.is_multiple_of(8) => (Arc::clone(frame), *start),
            _ => {
                let mut frame: Frame = vec![0; self.len().div_ceil(8)];
                bytemuck::cast_slice_mut(&mut frame)[..self.len()].copy_from_slice(self);
                (Arc::new(frame), 0)
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

    #[test]
    fn bytes_are_found_where_they_lie_and_moved_only_to_be_aligned() {
        let words = Array::from(vec![1u64, 2, 3]);
        let bytes = words.bytes();
        let (frame, start) = bytes.part(8..24).aligned();
        assert_eq!((&*frame, start), (&vec![1, 2, 3], 8));
        let (frame, start) = bytes.part(9..18).aligned();
        assert_eq!((&*frame, start), (&vec![3 << 56, 0], 0));
        let (frame, start) = Array::from(vec![7u8, 0, 1]).part(0..3).aligned();
        assert_eq!((&*frame, start), (&vec![0x0001_0007], 0));
    }
}
