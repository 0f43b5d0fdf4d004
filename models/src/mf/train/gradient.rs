//! Training where a stored procedure takes the steps of the items: workers read item rows and send gradients.
//!
//! A worker reads the items of a part of its ratings, sums the gradients of each, and hands the sums to the table; the
//! procedure on the shard makes steps of them. A user's row has only one writer and no delay, and there AdaRevision is
//! AdaGrad: the worker takes those steps itself, rating by rating.

use super::super::kernel::{self, GradientStep};
use super::super::near::Block;
use super::super::{Model, StepSize, row_width};
use super::ITEMS;
use hemiola::procedure::{AdaGrad, AdaRevision, Procedure};
use hemiola::{Error, Rows, Values, Worker};
use std::sync::Arc;

/// What a worker keeps to compute gradients.
pub(super) struct Gradients {
    step: GradientStep,
    model: Model,
    /// Of every number of the worker's user rows, one plus the sum of its squared gradients.
    pub(super) squares: Vec<f32>,
    /// Rows of a chunk of items as they were read, and their gradients; only those rows are right that were asked for.
    items: Vec<f32>,
    gradients: Vec<f32>,
    /// Rows as the table gives and takes them.
    packed: Vec<f32>,
}

/// The procedure that takes the items' steps, where the step size is one of a procedure's.
pub(super) fn procedure(step: StepSize) -> Option<Arc<dyn Procedure>> {
    match step {
        StepSize::AdaRevision { rate } => Some(Arc::new(AdaRevision::new(rate))),
        StepSize::AdaGrad { rate } => Some(Arc::new(AdaGrad { rate })),
        _ => None,
    }
}

impl Gradients {
    /// For a worker with so many users and items in chunks of `chunk_rows`, where a procedure takes the items' steps.
    pub(super) fn new(step: StepSize, l2: f32, model: Model, users: usize, chunk_rows: usize) -> Option<Self> {
        procedure(step)?;
        let width = row_width(model.rank);
        Some(Self {
            step: GradientStep { rate: step.at_epoch(0), l2 },
            model,
            squares: vec![1.0; users * width],
            items: vec![0.0; chunk_rows * width],
            gradients: vec![0.0; chunk_rows * width],
            packed: Vec::new(),
        })
    }

    /// Takes the users' steps for ratings of the chunk of items whose first row is `first`, and sends the gradients of
    /// its rows `wanted`, which are those that the ratings name; the sum of squared errors met.
    pub(super) fn train(
        &mut self,
        worker: &mut Worker,
        (first, wanted): (u64, &[u64]),
        ratings: Block<'_>,
        users: &mut [f32],
    ) -> Result<f64, Error> {
        self.read(worker, first, wanted)?;
        let width = row_width(self.model.rank);
        let place = |row: &u64| (row - first) as usize * width;
        wanted.iter().for_each(|row| self.gradients[place(row)..][..width].fill(0.0));
        let Self { squares, items, gradients, .. } = self;
        let error = kernel::gradient_block((users, squares), (items, gradients), ratings, &self.model, &self.step);
        self.packed.clear();
        wanted.iter().for_each(|row| self.packed.extend_from_slice(&self.gradients[place(row)..][..width]));
        let updates = Values::dense(width as u32, std::mem::take(&mut self.packed));
        worker.inc(ITEMS, wanted, &updates)?;
        Ok(error)
    }

    /// The rows `wanted` of the chunk of items whose first row is `first`, in the chunk's order.
    pub(super) fn read(&mut self, worker: &mut Worker, first: u64, wanted: &[u64]) -> Result<&[f32], Error> {
        worker.get_dense(ITEMS, &Rows::List(wanted), &mut self.packed)?;
        let width = row_width(self.model.rank);
        for (row, numbers) in wanted.iter().zip(self.packed.chunks_exact(width)) {
            self.items[(row - first) as usize * width..][..width].copy_from_slice(numbers);
        }
        Ok(&self.items)
    }
}
