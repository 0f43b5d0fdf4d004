//! A proximal Newton step over few features: the quadratic model with all its curvatures, minimised by coordinates.
//!
//! Where features go together, as the columns of a category do, one coordinate at a time gets on slowly. If few are
//! active, their matrix of curvatures costs as much as some passes over the examples, and coordinates can then be moved
//! thousands of times without looking at an example.

use std::io;

use super::columns::{Column, Columns, row_shares};
use super::kernel::Pair;
use super::prox::Penalty;
use crate::team::share_out;

/// More active features than these are not solved for together.
pub(super) const COLUMNS_MAX: usize = 1024;
/// How many times as much as a pass over the examples the curvatures may cost.
const COST_MAX: usize = 12;
/// The matrix is summed over so many shares of the rows, in this order, however many threads there are.
const SHARES: usize = 4;
/// Coordinates are moved until the model violates its conditions by this part of what it did at first.
const MODEL_TOLERANCE: f64 = 1e-2;
/// Coordinates are moved at least and at most so often; in between, for as long as it took to make the model.
const MODEL_PASSES: std::ops::Range<usize> = 10..4000;

/// Active columns, turned back into rows.
pub(super) struct Packed {
    /// The columns, by their number here.
    pub(super) columns: Vec<u32>,
    /// Where each row's entries end.
    ends: Vec<usize>,
    /// The column of each entry and its value.
    entries: Vec<(u32, f32)>,
}

/// The quadratic model of the loss.
pub(super) struct Model {
    slopes: Vec<f64>,
    /// One row for each column.
    curvatures: Vec<f64>,
    /// How many products were summed to make it.
    cost: usize,
}

impl Packed {
    /// These columns by rows; nothing if that and the model would take more bytes than there may be.
    ///
    /// # Errors
    /// If the columns are in a file that cannot be read.
    pub(super) fn new(columns: &Columns, chosen: Vec<u32>, rows: usize, bytes_max: usize) -> io::Result<Option<Self>> {
        let entries: usize = chosen.iter().map(|&column| columns.count(column as usize)).sum();
        let matrices = (SHARES + 1) * chosen.len() * chosen.len();
        if size_of::<usize>() * (rows + 1) + size_of::<(u32, f32)>() * entries + size_of::<f64>() * matrices > bytes_max
        {
            return Ok(None);
        }
        let mut next = vec![0usize; rows + 1];
        columns.walk(chosen.iter().copied(), |_, column| {
            let (Column::Same { rows, .. } | Column::Each { rows, .. }) = column;
            rows.iter().for_each(|&row| next[row as usize + 1] += 1);
        })?;
        for row in 0..rows {
            next[row + 1] += next[row];
        }
        let mut entries = vec![(0, 0.0); next[rows]];
        let mut number = 0;
        columns.walk(chosen.iter().copied(), |_, column| {
            let mut put = |row: u32, value: f32| {
                entries[next[row as usize]] = (number, value);
                next[row as usize] += 1;
            };
            match column {
                Column::Same { rows, value } => rows.iter().for_each(|&row| put(row, value)),
                Column::Each { rows, values } => rows.iter().zip(values).for_each(|(&row, &value)| put(row, value)),
            }
            number += 1;
        })?;
        next.truncate(rows);
        Ok(Some(Self { columns: chosen, ends: next, entries }))
    }

    /// Whether the matrix costs no more than some passes over the examples.
    pub(super) fn is_worth_it(&self) -> bool {
        !self.columns.is_empty() && self.cost() <= COST_MAX * self.entries.len()
    }

    /// How many products the matrix is made of.
    fn cost(&self) -> usize {
        (0..self.ends.len()).map(|row| self.row(row).len().pow(2) / 2).sum()
    }

    fn row(&self, row: usize) -> &[(u32, f32)] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.entries[start..self.ends[row]]
    }

    /// The model at the slopes and curvatures of the rows.
    pub(super) fn model(&self, pairs: &[Pair], workers: usize) -> Model {
        let size = self.columns.len();
        let shares: Vec<_> = row_shares(self.ends.len(), SHARES).collect();
        let sums = share_out(workers, shares, |rows| {
            let (mut slopes, mut curvatures) = (vec![0.0f64; size], vec![0.0f64; size * size]);
            for row in rows {
                let [slope, curvature] = pairs[row].map(f64::from);
                let entries = self.row(row);
                for (position, &(one, value)) in entries.iter().enumerate() {
                    slopes[one as usize] += slope * f64::from(value);
                    let share = curvature * f64::from(value);
                    let sums = &mut curvatures[one as usize * size..][..size];
                    for &(other, value) in &entries[..=position] {
                        sums[other as usize] += share * f64::from(value);
                    }
                }
            }
            (slopes, curvatures)
        });
        let mut model = Model { slopes: vec![0.0; size], curvatures: vec![0.0; size * size], cost: self.cost() };
        for (slopes, curvatures) in sums {
            model.slopes.iter_mut().zip(slopes).for_each(|(sum, part)| *sum += part);
            model.curvatures.iter_mut().zip(curvatures).for_each(|(sum, part)| *sum += part);
        }
        for one in 0..size {
            for other in 0..one {
                model.curvatures[other * size + one] = model.curvatures[one * size + other];
            }
        }
        model
    }

    /// What these weights, and no others, would add to the margins.
    pub(super) fn steps(&self, weights: &[f64], margins: &[f64], steps: &mut [f64], workers: usize) {
        let each = margins.len().div_ceil(workers).max(1);
        let parts: Vec<_> = steps.chunks_mut(each).enumerate().collect();
        share_out(workers, parts, |(part, steps)| {
            for (row, step) in (part * each..).zip(steps) {
                let margin: f64 =
                    self.row(row).iter().map(|&(column, value)| f64::from(value) * weights[column as usize]).sum();
                *step = margin - margins[row];
            }
        });
    }
}

impl Model {
    /// The weights that minimise the model plus the penalties, from these on; and the slope of the loss along the way
    /// there.
    pub(super) fn minimise(&self, weights: &[f64], penalties: &[Penalty]) -> (Vec<f64>, f64) {
        let size = weights.len();
        let (mut moved, mut slopes) = (weights.to_vec(), self.slopes.clone());
        let mut first = None;
        let passes = (4 * self.cost / (size * size)).clamp(MODEL_PASSES.start, MODEL_PASSES.end);
        for _ in 0..passes {
            let mut violation = 0.0;
            for column in 0..size {
                let row = &self.curvatures[column * size..][..size];
                let (weight, penalty, curvature) = (moved[column], penalties[column], row[column]);
                violation += penalty.violation(weight, slopes[column]);
                let new = penalty.prox(weight - slopes[column] / curvature, curvature);
                if new != weight {
                    moved[column] = new;
                    let change = new - weight;
                    slopes.iter_mut().zip(row).for_each(|(slope, curvature)| *slope += change * curvature);
                }
            }
            if violation <= MODEL_TOLERANCE * *first.get_or_insert(violation) {
                break;
            }
        }
        let along = moved.iter().zip(weights).zip(&self.slopes).map(|((new, old), slope)| (new - old) * slope).sum();
        (moved, along)
    }
}
