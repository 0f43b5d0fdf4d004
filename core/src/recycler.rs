//! Memory that is used again: fresh pages from the operating system cost more than filling them.

use std::sync::Arc;

/// Buffers lent out as shared arrays, each free again when nobody else holds it.
#[derive(Debug)]
pub struct Recycler<T> {
    buffers: Vec<Arc<Vec<T>>>,
    kept_max: usize,
}

/// Smaller buffers are not kept: they come from pages that are there, and looking through many of them costs more.
const BUFFER_BYTES_MIN: usize = 4096;

impl<T> Recycler<T> {
    /// Keeps buffers of at most `kept_max` elements together.
    #[must_use]
    pub fn new(kept_max: usize) -> Self {
        Self { buffers: Vec::new(), kept_max }
    }

    /// A buffer that nobody else holds: of the free ones the smallest that can hold `len` elements, or else the
    /// largest. It holds what it held before.
    pub fn take(&mut self, len: usize) -> Arc<Vec<T>> {
        let free = |(i, buffer): (usize, &mut Arc<Vec<T>>)| Arc::get_mut(buffer).map(|buffer| (i, buffer.capacity()));
        let free = self.buffers.iter_mut().enumerate().filter_map(free);
        let best = free.min_by_key(|&(_, capacity)| (capacity < len, capacity.abs_diff(len)));
        best.map_or_else(|| Arc::new(Vec::new()), |(i, _)| self.buffers.swap_remove(i))
    }

    /// Keeps a buffer for the time when it is free again.
    pub fn keep(&mut self, buffer: &Arc<Vec<T>>) {
        if buffer.capacity() * size_of::<T>() < BUFFER_BYTES_MIN {
            return;
        }
        let kept: usize = self.buffers.iter().map(|buffer| buffer.capacity()).sum();
        if kept + buffer.capacity() <= self.kept_max {
            self.buffers.push(Arc::clone(buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_only_when_nobody_holds_it() {
        let mut recycler = Recycler::<u8>::new(1_000_000);
        let mut lend = |len: usize| {
            let mut buffer = recycler.take(len);
            let elements = Arc::get_mut(&mut buffer).expect("nobody else holds it");
            elements.clear();
            elements.resize(len, 0);
            recycler.keep(&buffer);
            buffer
        };
        let (small, large) = (lend(10_000), lend(900_000));
        let (small_at, large_at) = (small.as_ptr(), large.as_ptr());
        assert_ne!(lend(5_000).as_ptr(), small_at, "held");
        drop(small);
        drop(large);
        assert_eq!(lend(800_000).as_ptr(), large_at, "the only one that is large enough");
        assert_eq!(lend(9_000).as_ptr(), small_at, "the smallest that will do");
    }
}
