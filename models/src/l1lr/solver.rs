//! The delayed block proximal method on the threads of one process, with the examples in columns.
//!
//! A **pass** takes every active feature once, in random blocks. While a block is worked on, the loss is replaced by its
//! quadratic model at the margins that the block began with, and one coordinate after the other is moved to where
//! [`Penalty::prox`] says, with the curvature of the model as its own step size. `delay + 1` blocks are worked on at a
//! time, each on a copy of the model that misses what the others do meanwhile; then their steps are taken together, or as
//! much of them as makes the objective fall far enough. What comes out depends on the delay and on the seed, but not on
//! the number of threads.
//!
//! Between passes a **sweep** computes the slope of every feature at one point. It says how far the weights are from
//! optimal, and which features are active: those with a weight, and those that violate the conditions of optimality. The
//! rest is left out of passes, as the paper's KKT filter does.
//!
//! Once few features are active, a pass is a Newton step over all of them instead.

use std::io;
use std::time::Instant;

use serde::Serialize;

use super::blocks::{Blocks, Cut};
use super::columns::{Columns, Making};
use super::kernel::{self, Pair, Rows, Step, Tally};
use super::newton::{self, Packed};
use super::prox::Penalty;
use super::stopping::{State, Stopping};
use crate::examples::Examples;
use crate::team::share_out;

/// How to solve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Config {
    /// Whether every example has one more feature, which is 1 and whose weight costs nothing.
    pub bias: bool,
    /// How features are cut into blocks.
    pub blocks: Cut,
    /// How many of the blocks before it a block may miss; one less than there are threads where there is enough to do for
    /// them, if not said.
    pub delay: Option<u32>,
    /// When to stop.
    pub stopping: Stopping,
    /// Fixes the blocks and their order.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { bias: true, blocks: Cut::Automatic, delay: None, stopping: Stopping::default(), seed: 1 }
    }
}

/// How far training is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Progress {
    /// Passes done.
    pub pass: u32,
    /// Seconds of training so far.
    pub seconds: f64,
    /// The mean loss plus the penalty.
    pub objective: f64,
    /// How many weights are not zero.
    pub nonzeros: usize,
}

/// What a fit came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Passes done.
    pub passes: u32,
    /// The mean loss plus the penalty.
    pub objective: f64,
    /// The mean loss.
    pub loss: f64,
    /// The mean over the examples of all violations, as [`Penalty::violation`] has them.
    pub violation: f64,
    /// Whether the end was reached before the passes were used up.
    pub converged: bool,
    /// The weights that are not zero, by feature.
    pub weights: Vec<(u32, f64)>,
    /// The weight of the bias.
    pub bias: f64,
}

/// Rows are worked on in chunks of this many, whose sums are added in order, however many threads there are.
const CHUNK: usize = 1 << 14;
/// Entries that make another thread worth its start.
const ENTRIES_PER_WORKER: usize = 1 << 20;
/// A block is worth the work on all rows that it brings with it if it has so many entries a row.
const ENTRIES_PER_ROW: usize = 8;
/// Blocks, before those are joined that are not worth it alone.
const BLOCKS: usize = 256;
/// Passes between sweeps.
const PASSES_PER_SWEEP: u32 = 3;
/// Sweeps between computing the margins from scratch.
const SWEEPS_PER_RENEWAL: u32 = 5;
/// The part of the objective that it may be off by through rounding when a fit ends.
const DRIFT: f64 = 1e-7;
/// A feature without weight goes idle where its slope is below this part of what would move it.
const IDLE: f64 = 0.9;
/// The part of the promised fall of the objective that a step must bring.
const ARMIJO: f64 = 0.01;
/// How often a step is halved before it is given up.
const HALVINGS: u32 = 20;

/// Weights for examples, which can be fitted again for another penalty from where they are.
pub struct Solver {
    columns: Columns,
    blocks: Blocks,
    /// Blocks are taken as they are, because somebody asked for them.
    blocks_fixed: bool,
    /// That of the objective, times the number of examples, as all sums here are.
    penalty: Penalty,
    weights: Vec<f64>,
    active: Vec<bool>,
    margins: Vec<f64>,
    /// What the last step added to the margins.
    steps: Vec<f64>,
    slopes: Vec<f32>,
    copies: Vec<Vec<Pair>>,
    /// The active columns by rows, while they stay the same.
    packed: Option<Packed>,
    loss: f64,
    cost: f64,
    workers: usize,
    /// Bytes that a Newton step may take.
    newton_bytes: usize,
    stopping: Stopping,
    seed: u64,
    began: Instant,
}

/// What came of working on a block.
#[derive(Default)]
struct Done {
    /// The columns whose weight changes, with the weight before and after.
    changes: Vec<(u32, f64, f64)>,
    idle: Vec<u32>,
}

impl Solver {
    /// Weights of zero for examples of which class `positive` is to be predicted. No penalty that is fitted later may
    /// have a smaller `l1` than `l1_min`: features that cannot get a weight then are forgotten here.
    #[must_use]
    pub fn new(examples: &Examples, positive: u32, l1_min: f64, workers: u32, config: &Config) -> Self {
        let began = Instant::now();
        let count = examples.len();
        let workers = workers_for(examples.entries(), workers);
        let worth = l1_min * count as f64;
        let columns = Columns::new(examples, Making { positive, worth, bias: config.bias, seed: config.seed, workers });
        Self::of_columns(columns, workers, config, began)
    }

    /// Weights of zero for columns.
    pub(super) fn of_columns(columns: Columns, workers: usize, config: &Config, began: Instant) -> Self {
        let (count, delay) = (columns.targets.len(), delay_for(workers, config));
        let blocks = columns.blocks(&config.blocks, BLOCKS);
        Self {
            weights: vec![0.0; columns.len()],
            active: vec![true; columns.len()],
            margins: vec![0.0; count],
            steps: vec![0.0; count],
            slopes: vec![0.0; count],
            copies: vec![vec![[0.0; 2]; count]; (delay + 1).min(blocks.len().max(1))],
            packed: None,
            blocks_fixed: config.blocks != Cut::Automatic,
            penalty: Penalty::NONE,
            loss: 0.0,
            cost: 0.0,
            workers,
            newton_bytes: usize::MAX,
            stopping: config.stopping,
            seed: config.seed,
            began,
            columns,
            blocks,
        }
    }

    /// Takes Newton steps only where they take no more bytes than these.
    pub(super) fn limit_newton(&mut self, bytes: usize) {
        self.newton_bytes = bytes;
    }

    /// Minimises the mean loss plus the penalty, from the weights of the fit before.
    ///
    /// # Errors
    /// If the examples are in a file that cannot be read; never if they are in memory.
    pub fn fit(&mut self, penalty: Penalty, mut observe: impl FnMut(&Progress)) -> io::Result<Fit> {
        let count = self.margins.len() as f64;
        self.penalty = penalty.times(count);
        self.renew()?;
        let mut state = State::new(self.stopping);
        let (mut pass, mut since_sweep, mut sweeps) = (0, u32::MAX, 0);
        let (mut violation, mut fresh, mut newton, mut converged) = (0.0, true, false, false);
        loop {
            if since_sweep >= PASSES_PER_SWEEP {
                if sweeps % SWEEPS_PER_RENEWAL == SWEEPS_PER_RENEWAL - 1 {
                    self.renew()?;
                    fresh = true;
                }
                violation = self.sweep()?;
                (since_sweep, sweeps) = (0, sweeps + 1);
                let objective = self.loss + self.cost;
                if state.ended(objective, violation) {
                    // Margins drift away from the weights by rounding: the end is only believed of exact ones.
                    if !fresh {
                        self.renew()?;
                        violation = self.sweep()?;
                        fresh = true;
                    }
                    if (self.loss + self.cost - objective).abs() <= self.stopping.tolerance.max(DRIFT) * objective {
                        converged = true;
                        break;
                    }
                    state.look_again();
                }
                newton = self.newton_is_worth_it()?;
            }
            if pass == self.stopping.passes {
                break;
            }
            if newton {
                self.newton_step();
                since_sweep = PASSES_PER_SWEEP;
            } else {
                self.pass(pass)?;
                fresh = false;
                since_sweep += 1;
            }
            pass += 1;
            observe(&self.progress(pass));
        }
        if !fresh {
            self.renew()?;
            violation = self.sweep()?;
        }
        Ok(self.result(pass, violation, converged))
    }

    fn progress(&self, pass: u32) -> Progress {
        Progress {
            pass,
            seconds: self.began.elapsed().as_secs_f64(),
            objective: (self.loss + self.cost) / self.margins.len() as f64,
            nonzeros: self.nonzeros().count(),
        }
    }

    fn result(&self, passes: u32, violation: f64, converged: bool) -> Fit {
        let count = self.margins.len() as f64;
        let mut weights: Vec<(u32, f64)> =
            self.nonzeros().map(|column| (self.columns.features[column], self.weights[column])).collect();
        weights.sort_unstable_by_key(|&(feature, _)| feature);
        Fit {
            passes,
            objective: (self.loss + self.cost) / count,
            loss: self.loss / count,
            violation: violation / count,
            converged,
            weights,
            bias: if self.columns.bias { self.weights.last().copied().unwrap_or(0.0) } else { 0.0 },
        }
    }

    /// The columns of features that have a weight.
    fn nonzeros(&self) -> impl Iterator<Item = usize> {
        let features = self.columns.len() - usize::from(self.columns.bias);
        (0..features).filter(|&column| self.weights[column] != 0.0)
    }

    /// Computes the margins and all that depends on them from the weights.
    fn renew(&mut self) -> io::Result<()> {
        self.margins.fill(0.0);
        let (weights, margins) = (&self.weights, &mut self.margins);
        let weighted = (0..weights.len() as u32).filter(|&column| weights[column as usize] != 0.0);
        self.columns.walk(weighted, |column, entries| kernel::add(margins, entries, weights[column as usize]))?;
        self.loss = self.rows(Step::None).loss;
        let cost = |(column, &weight): (usize, &f64)| self.columns.penalty(column, self.penalty).cost(weight);
        self.cost = self.weights.iter().enumerate().map(cost).sum();
        Ok(())
    }

    /// Changes the margins, and brings slopes and copies up to date.
    fn rows(&mut self, step: Step) -> Tally {
        let mut copies: Vec<_> = self.copies.iter_mut().map(|copy| copy.chunks_mut(CHUNK)).collect();
        let rows: Vec<Rows<'_>> = self
            .margins
            .chunks_mut(CHUNK)
            .zip(self.steps.chunks_mut(CHUNK))
            .zip(self.slopes.chunks_mut(CHUNK))
            .zip(self.columns.targets.chunks(CHUNK))
            .map(|(((margins, steps), slopes), targets)| Rows {
                targets,
                margins,
                steps,
                slopes,
                copies: copies.iter_mut().map(|copy| copy.next().expect("copies are as long as margins")).collect(),
            })
            .collect();
        let tallies = share_out(self.workers, rows, |mut rows| kernel::advance(&mut rows, step));
        tallies
            .into_iter()
            .fold(Tally::default(), |sum, tally| Tally { loss: sum.loss + tally.loss, along: sum.along + tally.along })
    }

    /// Finds the active features, and returns the sum of all violations.
    fn sweep(&mut self) -> io::Result<f64> {
        const PARTS: usize = 64;
        let each = self.columns.len().div_ceil(PARTS).max(1);
        let (columns, weights, slopes, penalty) = (&self.columns, &self.weights, &self.slopes, self.penalty);
        columns.forget();
        let parts: Vec<_> = self.active.chunks_mut(each).enumerate().collect();
        let found = share_out(self.workers, parts, |(part, active)| {
            let (mut sum, mut changed) = (0.0, false);
            let start = part * each;
            let all = start as u32..(start + active.len()) as u32;
            columns.walk_and_keep(all, |column, entries| {
                let column = column as usize;
                let slope = kernel::slope(slopes, entries);
                let violation = columns.penalty(column, penalty).violation(weights[column], slope);
                sum += violation;
                let now = weights[column] != 0.0 || violation > 0.0;
                changed |= now != active[column - start];
                active[column - start] = now;
                now
            })?;
            Ok((sum, changed))
        });
        let found = found.into_iter().collect::<io::Result<Vec<(f64, bool)>>>()?;
        if found.iter().any(|(_, changed)| *changed) {
            self.packed = None;
        }
        Ok(found.iter().map(|(sum, _)| sum).sum())
    }

    /// Takes every active feature once.
    fn pass(&mut self, pass: u32) -> io::Result<()> {
        self.packed = None;
        let tasks = self.tasks(pass);
        for round in tasks.chunks(self.copies.len()) {
            let (columns, weights, penalty) = (&self.columns, &self.weights, self.penalty);
            let work: Vec<_> = round.iter().zip(&mut self.copies).collect();
            let done = share_out(self.workers, work, |(task, copy)| take_block(columns, weights, penalty, task, copy));
            let done = done.into_iter().collect::<io::Result<Vec<Done>>>()?;
            let (changes, idle): (Vec<_>, Vec<_>) = done.into_iter().map(|done| (done.changes, done.idle)).unzip();
            let changes = changes.concat();
            let grown = self.cost_of(&changes, 1.0);
            let tally = self.rows(Step::Taken);
            self.settle(&changes, tally.loss, tally.along + grown);
            idle.concat().iter().for_each(|&column| self.active[column as usize] = false);
        }
        Ok(())
    }

    /// The active columns in the order of this pass: a block each, or several blocks that are not worth it alone.
    fn tasks(&self, pass: u32) -> Vec<Vec<u32>> {
        let enough = if self.blocks_fixed { 1 } else { self.entries_per_task() };
        let (mut tasks, mut entries) = (vec![Vec::new()], 0);
        for block in self.blocks.order(crate::hold_out::mix(self.seed, u64::from(pass) + 1)) {
            if entries >= enough {
                tasks.push(Vec::new());
                entries = 0;
            }
            let task = tasks.last_mut().expect("one from the start");
            for &column in self.blocks.block(block).iter().filter(|column| self.active[**column as usize]) {
                task.push(column);
                entries += self.columns.count(column as usize);
            }
        }
        tasks
    }

    /// How many entries make a task: such that it is worth it, and that the last round has as much to do for every copy.
    fn entries_per_task(&self) -> usize {
        let (worth_it, copies) = (ENTRIES_PER_ROW * self.margins.len(), self.copies.len());
        if copies == 1 {
            return worth_it;
        }
        let active = (0..self.columns.len()).filter(|&column| self.active[column]);
        let entries: usize = active.map(|column| self.columns.count(column)).sum();
        let rounds = entries.div_ceil(worth_it * copies).max(1);
        entries.div_ceil(rounds * copies)
    }

    /// By how much the penalty grows when this part of the changes is made.
    fn cost_of(&self, changes: &[(u32, f64, f64)], part: f64) -> f64 {
        let cost = |&(column, old, new): &(u32, f64, f64)| {
            let penalty = self.columns.penalty(column as usize, self.penalty);
            penalty.cost(old + part * (new - old)) - penalty.cost(old)
        };
        changes.iter().map(cost).sum()
    }

    /// Makes changes whose step the margins have taken already, or as much of them as makes the objective fall by a part
    /// of what it promised to fall `along` the step.
    fn settle(&mut self, changes: &[(u32, f64, f64)], loss: f64, along: f64) {
        let before = self.loss + self.cost;
        // What the objective itself is rounded by.
        let rounding = 1e-13 * before;
        let (mut part, mut loss, mut grown) = (1.0, loss, self.cost_of(changes, 1.0));
        let mut halvings = 0;
        // Also false for what is not a number.
        let falls = |after: f64, part: f64| after <= before + ARMIJO * part * along + rounding;
        while !falls(loss + self.cost + grown, part) {
            let next = if halvings == HALVINGS { 0.0 } else { part / 2.0 };
            loss = self.rows(Step::Part(next - part)).loss;
            grown = self.cost_of(changes, next);
            (part, halvings) = (next, halvings + 1);
            if next == 0.0 {
                break;
            }
        }
        self.loss = loss;
        self.cost += grown;
        for &(column, old, new) in changes {
            self.weights[column as usize] = if part == 1.0 { new } else { old + part * (new - old) };
        }
    }

    /// Whether the active features are few enough to solve for all of them together, and which these are by rows.
    fn newton_is_worth_it(&mut self) -> io::Result<bool> {
        if self.packed.is_none() {
            let active: Vec<u32> = (0..self.columns.len() as u32).filter(|&at| self.active[at as usize]).collect();
            if active.len() > newton::COLUMNS_MAX {
                return Ok(false);
            }
            self.packed = Packed::new(&self.columns, active, self.margins.len(), self.newton_bytes)?;
        }
        Ok(self.packed.as_ref().is_some_and(Packed::is_worth_it))
    }

    fn newton_step(&mut self) {
        let Some(packed) = self.packed.take() else { return };
        let weights: Vec<f64> = packed.columns.iter().map(|&column| self.weights[column as usize]).collect();
        let penalties: Vec<Penalty> =
            packed.columns.iter().map(|&column| self.columns.penalty(column as usize, self.penalty)).collect();
        let model = packed.model(&self.copies[0], self.workers);
        let (moved, slope_along) = model.minimise(&weights, &penalties);
        packed.steps(&moved, &self.margins, &mut self.steps, self.workers);
        let changes: Vec<(u32, f64, f64)> =
            packed.columns.iter().zip(&weights).zip(&moved).map(|((&column, &old), &new)| (column, old, new)).collect();
        let along = slope_along + self.cost_of(&changes, 1.0);
        let tally = self.rows(Step::Part(1.0));
        self.settle(&changes, tally.loss, along);
        self.packed = Some(packed);
    }
}

/// Moves the coordinates of a block one after the other to where the quadratic model in `copy` is least.
fn take_block(
    columns: &Columns,
    weights: &[f64],
    penalty: Penalty,
    task: &[u32],
    copy: &mut [Pair],
) -> io::Result<Done> {
    let mut done = Done::default();
    columns.walk(task.iter().copied(), |at, column| {
        let penalty = columns.penalty(at as usize, penalty);
        let weight = weights[at as usize];
        let (slope, curvature) = kernel::sums(copy, column);
        let new = penalty.prox(weight - slope / curvature, curvature);
        if new != weight {
            kernel::change(copy, column, new - weight);
            done.changes.push((at, weight, new));
        } else if weight == 0.0 && slope.abs() < IDLE * penalty.l1 {
            done.idle.push(at);
        }
    })?;
    Ok(done)
}

/// How many threads there is work for.
pub(super) fn workers_for(entries: usize, workers: u32) -> usize {
    (workers as usize).min(1 + entries / ENTRIES_PER_WORKER)
}

/// How many of the blocks before it a block misses.
pub(super) fn delay_for(workers: usize, config: &Config) -> usize {
    config.delay.map_or(workers - 1, |delay| delay as usize)
}
