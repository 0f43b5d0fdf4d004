//! Iterations over blocks: each takes one block, and a pass takes every block once, in an order of its own.

use crate::error::Error;
use crate::tasks::{Delay, Group, Handle, Iterations, Node, Task};
use hemiola_core::task::numbers::add;
use std::collections::{BTreeMap, VecDeque};

/// Parts of the blocks are multiples of this, so that they take two bytes in a message and not eight.
const MOVING_STEP: f64 = 1.0 / 256.0;

/// What a scheduler keeps of the iterations of a block method: each is a task of the workers, who push under its number as
/// a stamp, and one of the servers, who use what all have pushed.
///
/// An iteration comes after those that the delay says, and after the last one of its own block: what a block itself does
/// is never missed. Without a bound a pass begins when the one before is done.
pub struct Passes {
    iterations: Iterations,
    /// The last iteration of every block.
    visits: Vec<Option<Handle>>,
    order: Vec<usize>,
    issued: u64,
    /// The servers' tasks of the iterations that have not been looked at, and how many passes have been.
    updates: VecDeque<Handle>,
    looked_at: u64,
    results: Results,
}

/// A pass that is done.
#[derive(Debug, Clone, PartialEq)]
pub struct Passed {
    /// What workers returned in the first iteration after it, as numbers summed over them.
    pub after: Vec<f64>,
    /// What servers returned in its iterations, as numbers summed over them and over the iterations.
    pub updates: Vec<f64>,
}

/// What iterations returned, and what is known of the objective.
#[derive(Default)]
struct Results {
    sums: BTreeMap<u64, Vec<f64>>,
    objective: Option<f64>,
}

/// The iteration that is to be issued next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Its number.
    pub t: u64,
    /// Its block.
    pub block: usize,
    /// Whether it is the first of its pass.
    pub first: bool,
    /// Whether it is the last of its pass.
    pub last: bool,
    /// Which part of the other blocks may be under way beside it, and up to 1/256 more.
    pub moving: f64,
}

impl Passes {
    /// None of the iterations yet.
    ///
    /// # Panics
    /// If there are no blocks.
    #[must_use]
    pub fn new(delay: Delay, blocks: usize) -> Self {
        assert!(blocks > 0, "a pass has at least one block");
        let (iterations, results) = (Iterations::new(delay), Results::default());
        Self {
            iterations,
            visits: vec![None; blocks],
            order: Vec::new(),
            issued: 0,
            updates: VecDeque::new(),
            looked_at: 0,
            results,
        }
    }

    /// How many passes have been begun.
    #[must_use]
    pub fn begun(&self) -> u64 {
        self.issued.div_ceil(self.length())
    }

    /// How many passes have been looked at.
    #[must_use]
    pub fn looked_at(&self) -> u64 {
        self.looked_at
    }

    fn length(&self) -> u64 {
        self.visits.len() as u64
    }

    /// What comes next; `order` gives the blocks of a pass by its number, from zero.
    ///
    /// # Errors
    /// As [`Node::wait`].
    pub fn next(&mut self, node: &mut Node<'_, ()>, order: impl FnOnce(u64) -> Vec<usize>) -> Result<Step, Error> {
        let (t, length) = (self.issued, self.length());
        let place = t % length;
        if place == 0 {
            if self.iterations.bound().is_none() {
                self.finish(node)?;
            }
            self.order = order(t / length);
        }
        let others = (length - 1).max(1) as f64;
        let moving = self.iterations.bound().map_or(1.0, |bound| (bound as f64 / others).min(1.0));
        let moving = (moving / MOVING_STEP).ceil() * MOVING_STEP;
        Ok(Step { t, block: self.order[place as usize], first: place == 0, last: place == length - 1, moving })
    }

    /// Issues the iteration that comes next: what workers do, and what servers do when all workers have pushed.
    ///
    /// # Errors
    /// As [`Iterations::issue`].
    pub fn issue(&mut self, node: &mut Node<'_, ()>, task: Task, update: Task) -> Result<(), Error> {
        let t = self.issued;
        self.updates.push_back(node.issue(update.stamp(t).after_stamp(Group::Workers, t))?);
        let block = self.order[(t % self.length()) as usize];
        let task = task.after(&self.visits[block]);
        let results = &mut self.results;
        self.visits[block] = Some(self.iterations.issue(node, task, &mut |t, reply| results.take(t, reply.sums()))?);
        self.issued += 1;
        Ok(())
    }

    /// Waits until all iterations are done.
    ///
    /// # Errors
    /// As [`Node::wait`].
    pub fn finish(&mut self, node: &mut Node<'_, ()>) -> Result<(), Error> {
        let results = &mut self.results;
        self.iterations.finish(node, &mut |t, reply| results.take(t, reply.sums()))
    }

    /// The next pass that is done, when the first iteration after it is. While iterations are under way it is given only
    /// when it is certain, whatever is faster here or there, that they have come so far: one delay, one schedule.
    ///
    /// # Errors
    /// As [`Node::wait`].
    pub fn look(&mut self, node: &mut Node<'_, ()>) -> Result<Option<Passed>, Error> {
        let length = self.length();
        let t = (self.looked_at + 1) * length;
        let certain = match self.iterations.bound() {
            Some(bound) => self.issued.saturating_sub(bound + 2),
            None => self.issued - self.issued % length,
        };
        if t >= certain && !self.iterations.is_idle() {
            return Ok(None);
        }
        let Some(after) = self.results.sums.remove(&t) else { return Ok(None) };
        self.results.sums = self.results.sums.split_off(&t);
        self.looked_at += 1;
        let mut updates = Vec::new();
        for update in self.updates.drain(..length as usize) {
            add(&mut updates, &node.wait(&update)?.sums());
        }
        Ok(Some(Passed { after, updates }))
    }

    /// Says what the objective is now, for a delay that adapts itself.
    pub fn observe(&mut self, objective: f64) {
        self.results.objective = Some(objective);
    }
}

impl Results {
    fn take(&mut self, t: u64, sums: Vec<f64>) -> Option<f64> {
        self.sums.insert(t, sums);
        self.objective
    }
}
