//! The delayed block proximal gradient method, Algorithm 2 of the Parameter Server, as tasks on several nodes.
//!
//! An **iteration** takes one block: every worker computes the slopes and bounds of its [`Share`] and pushes them, the
//! servers add them up in the order of the workers and apply the generalised proximal operator, and the workers pull the
//! new weights. It waits for all iterations more than the delay before it, and for the last one of its own block: what a
//! block itself does is never missed, so only what others do asks for a shorter step, as [`Share`] says.
//!
//! **KKT filter.** With a weight a worker pulls the slope that it had for all examples together. A feature without weight
//! whose slope was then below `λ − δ` is neither computed nor pushed by anybody. `δ` is the largest violation of the last
//! pass that was looked at, so it shrinks as the weights settle; an end is believed only of a pass without the filter.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use hemiola::tasks::{self, Delay, Group, Handle, Iterations, Job, Node, Reply, Server, Task};
use hemiola::{Deployment, Error, Observation, Outcome, TableId, TableSchema, Values};

use super::blocks::Blocks;
use super::prox::Penalty;
use super::share::Share;
use super::solver::{Fit, Progress};
use super::stopping::{State, Stopping};
use crate::examples::Examples;

/// For every feature, and last for the bias, the weight and the slope that it was last changed by.
const WEIGHTS: TableId = TableId(0);
/// The numbers of a worker's push: slope and bound.
const PUSHED: usize = 2;
/// Blocks, where nobody says how many.
const BLOCKS: u32 = 64;
/// Chunks of features that servers share, at most.
const CHUNKS: u64 = 4096;

/// How to train.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What weights cost.
    pub penalty: Penalty,
    /// Whether there is a bias, which costs nothing.
    pub bias: bool,
    /// Into how many blocks features are cut, if anybody says.
    pub blocks: Option<u32>,
    /// How many iterations before it an iteration may miss.
    pub delay: Delay,
    /// When to stop.
    pub stopping: Stopping,
    /// Fixes the blocks and their order.
    pub seed: u64,
}

/// What came of it.
#[derive(Debug)]
pub struct Trained {
    /// The weights, and how good they are.
    pub fit: Fit,
    /// How far it was after every pass, and at the end.
    pub progress: Vec<Progress>,
    /// Keys that workers pushed, and those that the filter kept back.
    pub keys: (u64, u64),
    /// Where the workers' time went.
    pub outcome: Outcome,
}

/// Trains on the workers of a deployment, of which each has an equal part of the examples, to predict class 1.
///
/// # Errors
/// If the job fails.
pub fn train(
    examples: &Examples,
    config: &Config,
    deployment: &Deployment,
    mut observe: impl FnMut(&Progress) + Send,
) -> Result<Trained, Error> {
    let plan = Plan::new(examples, config);
    let rows = examples.features() as u64 + u64::from(config.bias);
    let table = TableSchema::dense("weights", rows.max(1), 2);
    let update = plan.update(rows);
    let job = Job {
        name: "l1lr".to_owned(),
        workers: deployment.workers(),
        tables: vec![TableSchema { chunk_rows: Some((rows / CHUNKS).max(1)), ..table }],
        worker: &|node| {
            let mut worker = Worker::new(&plan, node.rank() as usize, node.workers() as usize);
            node.serve(&mut worker, &[("iterate", &Worker::iterate), ("loss", &Worker::loss)])
        },
        scheduler: &|node| plan.schedule(node, rows),
        server: vec![("update", Arc::new(update))],
    };
    let (mut progress, count) = (Vec::new(), plan.count);
    let mut observer = |seen: &Observation| {
        let at = |place: usize| seen.values.get(place).copied().unwrap_or_default();
        let objective = (at(0) + at(1)) / count;
        progress.push(Progress { pass: at(3) as u32, seconds: seen.seconds, objective, nonzeros: at(2) as usize });
        observe(&progress[progress.len() - 1]);
    };
    let mut outcome = tasks::run_observed(deployment, &[job], &mut observer)?;
    outcome.splits.truncate(deployment.workers() as usize);
    let result = outcome.results.first().map_or_else(Vec::new, |bytes| unpack(bytes));
    let [passes, converged, loss, cost, violation, pushed, skipped, ref weights @ ..] = result[..] else {
        return Err(Error::program("the scheduler returned too little"));
    };
    let mut weights: Vec<(u32, f64)> = weights.chunks_exact(2).map(|pair| (pair[0] as u32, pair[1])).collect();
    let bias = weights.pop_if(|(feature, _)| *feature as usize == examples.features()).map_or(0.0, |(_, bias)| bias);
    let fit = Fit {
        passes: passes as u32,
        objective: (loss + cost) / count,
        loss: loss / count,
        violation: violation / count,
        converged: converged == 1.0,
        weights,
        bias,
    };
    Ok(Trained { fit, progress, keys: (pushed as u64, skipped as u64), outcome })
}

/// What all nodes know.
struct Plan<'a> {
    examples: &'a Examples,
    config: &'a Config,
    blocks: Blocks,
    /// That of the sum of the losses.
    penalty: Penalty,
    count: f64,
}

impl<'a> Plan<'a> {
    fn new(examples: &'a Examples, config: &'a Config) -> Self {
        let mut counts = vec![0; examples.features()];
        let features = (0..examples.len()).flat_map(|row| examples.example(row).columns);
        features.for_each(|&feature| counts[feature as usize] += 1);
        let blocks = Blocks::automatic(&counts, config.blocks.unwrap_or(BLOCKS) as usize, config.seed);
        let blocks = if config.bias { blocks.and(counts.len() as u32) } else { blocks };
        let count = examples.len() as f64;
        Self { examples, config, blocks, penalty: config.penalty.times(count), count }
    }

    /// Servers: the generalised proximal operator for the block, with the sums of the bounds as `U`.
    fn update(
        &self,
        rows: u64,
    ) -> impl Fn(&mut Server<'_>, &[u8]) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> + use<> {
        let (features, penalty) = (self.examples.features() as u64, self.penalty);
        let of = move |key: u64| if key < features { penalty } else { Penalty::NONE };
        move |server, argument| {
            let [t, last] = unpack(argument)[..] else { return Err("expected two numbers".into()) };
            let (keys, sums) = server.aggregate(WEIGHTS, t as u64, PUSHED as u32)?;
            let (mut violation, mut worst, mut cost, mut nonzeros) = (0.0, 0.0f64, 0.0, 0.0);
            server.edit(WEIGHTS, &keys, |place, row| {
                let [slope, bound] = [sums[PUSHED * place], sums[PUSHED * place + 1]].map(f64::from);
                let (penalty, weight) = (of(keys[place]), f64::from(row[0]));
                let found = penalty.violation(weight, slope);
                (violation, worst) = (violation + found, worst.max(found));
                if bound > 0.0 {
                    row[0] = penalty.prox(weight - slope / bound, bound) as f32;
                }
                row[1] = slope as f32;
            })?;
            if last == 1.0 {
                let keys = server.keys(WEIGHTS, 0..rows)?;
                server.edit(WEIGHTS, &keys, |place, row| {
                    cost += of(keys[place]).cost(f64::from(row[0]));
                    nonzeros += f64::from(u8::from(row[0] != 0.0 && keys[place] < features));
                })?;
            }
            Ok(pack(&[violation, worst, cost, nonzeros]))
        }
    }

    /// Scheduler: issues the iterations, as far ahead as the delay allows, and looks at every pass when it is done.
    fn schedule(&self, node: &mut Node<'_, ()>, rows: u64) -> Result<Vec<u8>, Error> {
        let Config { delay, stopping, seed, .. } = self.config;
        let length = self.blocks.len() as u64;
        let mut iterations = Iterations::new(delay.clone());
        let mut visits: Vec<Option<Handle>> = vec![None; self.blocks.len()];
        let (mut updates, mut done) = (VecDeque::new(), Done::default());
        let mut judge = Judge::new(*stopping);
        let (mut order, mut t) = (Vec::new(), 0);
        while !judge.ended && t < length * u64::from(stopping.passes) {
            if t % length == 0 {
                if iterations.bound().is_none() {
                    iterations.finish(node, &mut |t, reply| done.take(t, reply))?;
                }
                order = self.blocks.order(seed.wrapping_add(t / length));
                judge.begin();
            }
            // Of these it is certain, whatever is faster here or there, that they are done by now: one delay, one schedule.
            let settled = iterations.bound().map_or(t - t % length, |bound| t.saturating_sub(bound + 2));
            while judge.measured_at(length) < settled && done.losses.contains_key(&judge.measured_at(length)) {
                judge.look(node, length, &mut updates, &mut done)?;
            }
            let block = order[(t % length) as usize];
            let measure = t > 0 && t % length == 0;
            let moving = iterations.bound().map_or(1.0, |bound| (bound as f64 / (length - 1).max(1) as f64).min(1.0));
            let update = pack(&[t as f64, f64::from(u8::from(t % length == length - 1))]);
            let update = Task::call(Group::Servers, "update", update).stamp(t).after_stamp(Group::Workers, t);
            updates.push_back(node.issue(update)?);
            let threshold = self.penalty.l1 - judge.margin();
            let argument = pack(&[t as f64, block as f64, moving, threshold, f64::from(u8::from(measure))]);
            let iterate = Task::call(Group::Workers, "iterate", argument).after(&visits[block]);
            done.objective = judge.objective;
            visits[block] = Some(iterations.issue(node, iterate, &mut |t, reply| done.take(t, reply))?);
            t += 1;
        }
        iterations.finish(node, &mut |t, reply| done.take(t, reply))?;
        while judge.measured_at(length) < t {
            judge.look(node, length, &mut updates, &mut done)?;
        }
        let loss = node.issue(Task::call(Group::Workers, "loss", vec![]))?;
        let weights = node.issue(Task::pull(WEIGHTS, 0..rows))?;
        let loss: f64 = sums(&node.wait(&loss)?)[0];
        let weights = node.wait_numbers(&weights)?;
        let weights = || weights.chunks_exact(2).enumerate().map(|(feature, row)| (feature, f64::from(row[0])));
        let features = self.examples.features();
        let cost: f64 = weights().take(features).map(|(_, weight)| self.penalty.cost(weight)).sum();
        let passes = t.div_ceil(length.max(1)) as f64;
        let nonzeros = weights().take(features).filter(|(_, weight)| *weight != 0.0).count();
        node.report(&[0.0, cost, nonzeros as f64, passes]);
        let [pushed, skipped] = done.keys;
        let mut result = vec![passes, f64::from(u8::from(judge.ended)), loss, cost, judge.violation, pushed, skipped];
        let kept = weights().filter(|(feature, weight)| *weight != 0.0 || *feature == features);
        result.extend(kept.flat_map(|(feature, weight)| [feature as f64, weight]));
        Ok(pack(&result))
    }
}

/// What the scheduler knows of iterations that are done.
#[derive(Default)]
struct Done {
    /// The sums of the losses, by the iteration that they were computed in.
    losses: BTreeMap<u64, f64>,
    keys: [f64; 2],
    /// What the objective was when it was last known, for a delay that adapts itself.
    objective: Option<f64>,
}

impl Done {
    fn take(&mut self, t: u64, reply: &Reply) -> Option<f64> {
        let sums = sums(reply);
        self.losses.insert(t, sums[0]);
        self.keys = [self.keys[0] + sums[1], self.keys[1] + sums[2]];
        self.objective
    }
}

/// Looks at one pass after the other.
struct Judge {
    stopping: Stopping,
    state: State,
    /// For every pass begun but not yet looked at, whether the filter is on.
    filtered: VecDeque<bool>,
    looked_at: u64,
    objective: Option<f64>,
    violation: f64,
    worst: f64,
    /// The next pass is to go without the filter.
    recheck: bool,
    ended: bool,
}

impl Judge {
    fn new(stopping: Stopping) -> Self {
        let (state, filtered) = (State::new(stopping), VecDeque::new());
        let (violation, worst, recheck, ended) = (0.0, f64::INFINITY, false, false);
        Self { stopping, state, filtered, looked_at: 0, objective: None, violation, worst, recheck, ended }
    }

    fn begin(&mut self) {
        self.filtered.push_back(!std::mem::take(&mut self.recheck) && self.worst.is_finite());
    }

    /// The margin `δ` of the filter in the pass that was begun last.
    fn margin(&self) -> f64 {
        if self.filtered.back() == Some(&true) { self.worst } else { f64::INFINITY }
    }

    /// The iteration that measures the loss of the next pass to look at: the first one after it.
    fn measured_at(&self, length: u64) -> u64 {
        (self.looked_at + 1) * length
    }

    fn look(
        &mut self,
        node: &mut Node<'_, ()>,
        length: u64,
        updates: &mut VecDeque<Handle>,
        done: &mut Done,
    ) -> Result<(), Error> {
        let (mut cost, mut nonzeros) = (0.0, 0.0);
        (self.violation, self.worst) = (0.0, 0.0);
        for update in updates.drain(..length as usize) {
            let reply = node.wait(&update)?;
            let found = sums(&reply);
            self.violation += found[0];
            self.worst = reply.returned.iter().map(|(_, part)| unpack(part)[1]).fold(self.worst, f64::max);
            (cost, nonzeros) = (cost + found[2], nonzeros + found[3]);
        }
        let loss = done.losses.remove(&self.measured_at(length)).unwrap_or(f64::INFINITY);
        done.losses = done.losses.split_off(&self.measured_at(length));
        self.looked_at += 1;
        node.report(&[0.0, cost, nonzeros, self.looked_at as f64]);
        let objective = loss + cost;
        let rose = self.objective.is_some_and(|before| objective > before * (1.0 + self.stopping.tolerance));
        self.objective = Some(objective);
        // Stale slopes may make it rise for a while, which is no end.
        if self.state.ended(objective, self.violation) && !rose {
            self.recheck = self.filtered.front() == Some(&true);
            self.ended |= !self.recheck;
        }
        self.filtered.pop_front();
        Ok(())
    }
}

/// A worker: its share, and what it knows of the features that the share has.
struct Worker<'a> {
    share: Share<'a>,
    parts: Vec<Part>,
    penalty: Penalty,
    /// The bias is never filtered.
    bias: u32,
}

/// The features of a block, ascending, each with its weight and slope as last pulled.
struct Part {
    features: Vec<u32>,
    known: Vec<[f32; 2]>,
}

impl<'a> Worker<'a> {
    fn new(plan: &Plan<'a>, rank: usize, workers: usize) -> Self {
        let count = plan.examples.len();
        let share = Share::new(plan.examples, count * rank / workers..count * (rank + 1) / workers, 1);
        let share = if plan.config.bias { share.with_bias() } else { share };
        let part = |block: usize| {
            let has = |feature: &&u32| share.features().binary_search(feature).is_ok();
            let mut features: Vec<u32> = plan.blocks.block(block).iter().filter(has).copied().collect();
            features.sort_unstable();
            Part { known: vec![[0.0; 2]; features.len()], features }
        };
        let parts = (0..plan.blocks.len()).map(part).collect();
        Self { share, parts, penalty: plan.penalty, bias: plan.examples.features() as u32 }
    }

    fn iterate(&mut self, node: &mut Node<'_, Self>, argument: &[u8]) -> Result<Vec<u8>, Error> {
        let [t, block, moving, threshold, measure] = unpack(argument)[..] else {
            return Err(Error::program("expected five numbers"));
        };
        let loss = if measure == 1.0 { self.share.loss() } else { 0.0 };
        if measure == 1.0 {
            node.report(&[loss]);
        }
        let (stamp, block) = (t as u64, block as usize);
        let Part { features, known } = &self.parts[block];
        let filter = Penalty { l1: threshold, ..self.penalty };
        let idle = |place: usize| {
            let [weight, slope] = known[place];
            weight == 0.0 && features[place] != self.bias && filter.violation(0.0, f64::from(slope)) == 0.0
        };
        let places: Vec<usize> = (0..features.len()).filter(|&place| !idle(place)).collect();
        let skipped = features.len() - places.len();
        let active: Vec<u32> = places.iter().map(|&place| features[place]).collect();
        let numbers = self.share.slopes(&active, moving).into_iter();
        let numbers: Vec<f32> = numbers.flat_map(|sum| [sum.slope as f32, sum.bound as f32]).collect();
        node.work(self.share.entries(&active) as u64)?;
        let keys: Vec<u64> = active.iter().copied().map(u64::from).collect();
        let push = Task::push(WEIGHTS, keys.clone(), Values::dense(PUSHED as u32, numbers));
        node.issue(push.keep(stamp))?;
        let pushed = keys.len();
        let pull = Task::pull(WEIGHTS, keys).after_stamp(Group::Scheduler, stamp);
        node.issue_then(pull, move |worker: &mut Self, node, reply| {
            let Some(Values::Dense { numbers, .. }) = reply.values else { return Ok(()) };
            let mut changes = Vec::new();
            for (&place, row) in places.iter().zip(numbers.chunks_exact(2)) {
                let (feature, known) = (worker.parts[block].features[place], &mut worker.parts[block].known[place]);
                changes.push((feature, f64::from(row[0]) - f64::from(known[0])));
                *known = [row[0], row[1]];
            }
            changes.retain(|(_, change)| *change != 0.0);
            worker.share.change(&changes);
            let changed: Vec<u32> = changes.into_iter().map(|(feature, _)| feature).collect();
            node.work(worker.share.entries(&changed) as u64)
        })?;
        Ok(pack(&[loss, pushed as f64, skipped as f64]))
    }

    fn loss(&mut self, node: &mut Node<'_, Self>, _: &[u8]) -> Result<Vec<u8>, Error> {
        let loss = self.share.loss();
        node.report(&[loss]);
        Ok(pack(&[loss]))
    }
}

/// What the nodes returned, summed in their order.
fn sums(reply: &Reply) -> [f64; 4] {
    let mut sums = [0.0; 4];
    for (_, part) in &reply.returned {
        sums.iter_mut().zip(unpack(part)).for_each(|(sum, number)| *sum += number);
    }
    sums
}

fn pack(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn unpack(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks().0.iter().map(|&number| f64::from_le_bytes(number)).collect()
}
