//! Training where a stored procedure takes the steps of the items: workers read item rows and send gradients.
//!
//! A user's row has one writer, who has all the user's ratings: the worker solves for it in closed form whenever it comes
//! to the user, so that no step size is needed there. The gradient of the items is then that of an objective of the
//! items alone.
//!
//! A part of the users gives but an estimate of that gradient, and its chance errors are what makes the size of steps
//! matter: large steps follow them, and the small ones that do not are slow. So a worker keeps what each rating contributed
//! when it was last met, as the error of that time, and per item the sum of all contributions. A part sends by how much its
//! own contributions have changed, and beside that its share of the sum: the estimate is right on average, and its errors
//! vanish as the model settles (SAGA, Defazio, Bach and Lacoste-Julien 2014).

use super::super::kernel;
use super::super::near::Stored;
use super::super::solve::Solver;
use super::super::{Model, StepSize, factor_columns, row_width};
use super::ITEMS;
use hemiola::procedure::{AdaGrad, AdaRevision, Procedure};
use hemiola::{Error, Rows, Values, Worker};
use std::ops::Range;
use std::sync::Arc;

/// What a worker keeps to compute gradients.
pub(super) struct Gradients<'a> {
    model: Model,
    l2: f32,
    /// Where the ratings of each of the worker's users begin, and the last one's end.
    starts: &'a [usize],
    /// Per part of the users, every so manieth of them, the items that they rated.
    parts: Vec<Vec<u64>>,
    /// Per item, which share of its gradient a part with a rating of it sends, and the worker's ratings.
    shares: Vec<(f32, f32)>,
    /// The error of each of the worker's ratings when it was last met, and behind them per number of an item the sum of
    /// what the ratings contributed to its gradient then.
    pub(super) kept: Vec<f32>,
    /// Rows of items as they were read, and how their sums change; only those rows are right that were asked for.
    items: Vec<f32>,
    changes: Vec<f32>,
    /// Rows as the table gives and takes them.
    packed: Vec<f32>,
    solver: Solver,
    /// What a user is solved for with: the factors of the rated items, and what they should give.
    factors: Vec<f32>,
    targets: Vec<f32>,
}

/// The procedure that takes the steps of so many items, where the step size is one of a procedure's.
pub(super) fn procedure(step: StepSize, items: usize) -> Option<Arc<dyn Procedure>> {
    match step {
        StepSize::AdaRevision { rate } => {
            // A row that somebody holds has a snapshot, and to be sent early it needs another.
            let usual = AdaRevision::new(rate);
            Some(Arc::new(AdaRevision { snapshots_max: usual.snapshots_max.max(4 * items), ..usual }))
        }
        StepSize::AdaGrad { rate } => Some(Arc::new(AdaGrad { rate })),
        _ => None,
    }
}

impl<'a> Gradients<'a> {
    /// For the users whose ratings begin at `starts`, in so many parts.
    pub(super) fn new(
        (model, l2): (Model, f32),
        (ratings, starts): (&Stored, &'a [usize]),
        items: usize,
        parts: usize,
    ) -> Self {
        let mut shares = vec![(0.0, 0.0); items];
        let items_of = |part: usize| {
            let mut here = vec![false; items];
            for user in starts.windows(2).skip(part).step_by(parts) {
                for rating in ratings.block(user[0]..user[1]).iter() {
                    here[rating.item as usize] = true;
                    shares[rating.item as usize].1 += 1.0;
                }
            }
            shares.iter_mut().zip(&here).filter(|(_, here)| **here).for_each(|(share, _)| share.0 += 1.0);
            (0..).zip(here).filter(|(_, here)| *here).map(|(item, _)| item).collect()
        };
        let parts = (0..parts).map(items_of).collect();
        shares.iter_mut().for_each(|share| share.0 = 1.0 / share.0);
        let numbers = items * row_width(model.rank);
        Self {
            model,
            l2,
            starts,
            parts,
            shares,
            kept: vec![0.0; starts[starts.len() - 1] - starts[0] + numbers],
            items: vec![0.0; numbers],
            changes: vec![0.0; numbers],
            packed: Vec::new(),
            solver: Solver::default(),
            factors: Vec::new(),
            targets: Vec::new(),
        }
    }

    /// The items that the worker's users rated.
    pub(super) fn wanted(&self) -> impl Iterator<Item = u64> {
        (0..).zip(&self.shares).filter(|(_, (_, ratings))| *ratings > 0.0).map(|(item, _)| item)
    }

    /// Solves for some parts of the users, one after the other, and sends the gradients of the items that they rated; the
    /// sum of squared errors met.
    pub(super) fn train(
        &mut self,
        worker: &mut Worker,
        parts: Range<usize>,
        ratings: &Stored,
        users: &mut [f32],
    ) -> Result<f64, Error> {
        let width = row_width(self.model.rank);
        let mut error = 0.0;
        for part in parts {
            let wanted = std::mem::take(&mut self.parts[part]);
            if wanted.is_empty() {
                continue;
            }
            self.read(worker, &wanted)?;
            let mut count = 0;
            for user in (part..self.starts.len() - 1).step_by(self.parts.len()) {
                let places = self.starts[user]..self.starts[user + 1];
                count += places.len() as u64;
                error += self.train_user(places, ratings, &mut users[user * width..][..width]);
            }
            let gradients = self.gradients(&wanted);
            // The gradients are there when the work is done, and not before.
            worker.work(count)?;
            worker.inc(ITEMS, &wanted, &Values::dense(width as u32, gradients))?;
            self.parts[part] = wanted;
        }
        Ok(error)
    }

    /// The gradients of some items, whose sums change.
    fn gradients(&mut self, wanted: &[u64]) -> Vec<f32> {
        let width = row_width(self.model.rank);
        let sums_at = self.kept.len() - self.items.len();
        let mut gradients = std::mem::take(&mut self.packed);
        gradients.clear();
        for &item in wanted {
            let (share, ratings) = self.shares[item as usize];
            let row = item as usize * width..(item as usize + 1) * width;
            let rows = self.items[row.clone()].iter().zip(&mut self.changes[row.clone()]);
            for ((number, change), sum) in rows.zip(&mut self.kept[sums_at..][row]) {
                gradients.push(share * (*sum + self.l2 * ratings * number) + *change);
                *sum += std::mem::take(change);
            }
        }
        gradients
    }

    /// Solves for one user with the items as they were read, and notes how the sums change; the squared errors.
    fn train_user(&mut self, places: Range<usize>, ratings: &Stored, row: &mut [f32]) -> f64 {
        let Self { model, items, factors, targets, .. } = self;
        let (width, bias) = (row_width(model.rank), factor_columns(model.rank));
        let block = ratings.block(places.clone());
        factors.clear();
        targets.clear();
        for rating in block.iter() {
            let item = &items[rating.item as usize * width..][..width];
            factors.extend_from_slice(&item[..model.rank]);
            targets.push(rating.value - model.mean - item[bias]);
        }
        let solution = self.solver.solve(factors, targets, model.rank, model.biases, self.l2);
        let before = row.to_vec();
        let (solved, solved_bias) = solution.split_at(model.rank);
        row.iter_mut().zip(solved).for_each(|(number, solved)| *number = *solved as f32);
        row[bias] = solved_bias.first().map_or(0.0, |solved| *solved as f32);
        let errors = &mut self.kept[places.start - self.starts[0]..][..places.len()];
        kernel::gradient_block([&before, row], (items, &mut self.changes), block, errors, model)
    }

    /// The rows `wanted`, each in its place among all items.
    pub(super) fn read(&mut self, worker: &mut Worker, wanted: &[u64]) -> Result<&[f32], Error> {
        worker.get_dense(ITEMS, &Rows::List(wanted), &mut self.packed)?;
        let width = row_width(self.model.rank);
        for (row, numbers) in wanted.iter().zip(self.packed.chunks_exact(width)) {
            self.items[*row as usize * width..][..width].copy_from_slice(numbers);
        }
        Ok(&self.items)
    }
}
