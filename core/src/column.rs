//! One small value for each row of a flat table, in the table's own chunks, allocated where one is first written.

use crate::slab::Shape;

#[derive(Debug)]
pub(crate) struct Column<T> {
    shape: Shape,
    chunks: Vec<Vec<T>>,
}

impl<T: Copy + Default> Column<T> {
    pub(crate) fn new(shape: Shape) -> Self {
        Self { shape, chunks: vec![Vec::new(); shape.chunks()] }
    }

    #[inline]
    pub(crate) fn get(&self, row: u64) -> T {
        let (chunk, place) = self.shape.locate(row);
        self.chunks[chunk].get(place).copied().unwrap_or_default()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, row: u64) -> &mut T {
        let (chunk, place) = self.shape.locate(row);
        let values = &mut self.chunks[chunk];
        if values.is_empty() {
            values.resize(self.shape.rows_of(chunk), T::default());
        }
        &mut values[place]
    }
}
