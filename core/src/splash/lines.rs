//! Numbers that begin where a cache line begins, so that a row of sixteen is in one line and not in two.

use bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut};
use std::ops::{Deref, DerefMut};

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([f32; 16]);

/// So many numbers, in whole lines.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    lines: Vec<Line>,
    len: usize,
}

impl Lines {
    pub(super) fn zeros(len: usize) -> Self {
        Self { lines: vec![Line::zeroed(); len.div_ceil(16)], len }
    }
}

impl Deref for Lines {
    type Target = [f32];

    #[inline]
    fn deref(&self) -> &[f32] {
        &cast_slice(&self.lines)[..self.len]
    }
}

impl DerefMut for Lines {
    #[inline]
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut cast_slice_mut(&mut self.lines)[..self.len]
    }
}
