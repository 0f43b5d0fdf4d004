//! The delayed block proximal gradient method, Algorithm 2 of the Parameter Server, as tasks on several nodes.
//!
//! An **iteration** takes one block: every worker computes the slopes and bounds of its [`Share`] and pushes them, the
//! servers add them up in the order of the workers and apply the generalised proximal operator, and the workers pull the
//! new weights. It waits for all iterations more than the delay before it, and for the last one of its own block: what a
//! block itself does is never missed, so only what others do asks for a shorter step, as [`Share`] says.
//!
//! **KKT filter.** A weight of zero whose slope over all examples was below `λ − δ` will stay zero, so the servers mark
//! it: its step travels as a negative zero, and from then on nobody computes, pushes or pulls it. `δ` is a part of `λ`, as
//! in the paper. An end is believed only of a pass that takes no notice of the marks, in which each is set or taken away
//! anew; what is marked is pushed without a bound then, and moves in the next pass at the earliest.

use std::sync::Arc;

use hemiola::filter::ledger::FilterSaving;
use hemiola::filter::{Direction, Reason};
use hemiola::tasks::{self, Delay, Group, Job, Node, Passed, Passes, Server, Step, Task, pack, unpack, unpack_some};
use hemiola::{Deployment, Error, Observation, Outcome, TableId, TableSchema, Values};

use super::blocks::{Blocks, Cut};
use super::prox::Penalty;
use super::share::Share;
use super::solver::{Fit, Progress};
use super::step::{self, IDLE, UNBOUNDED};
use super::stopping::{Stopping, Watch};
use crate::examples::Examples;

/// The last step of every feature, and of the bias behind them: what travels.
const STEPS: TableId = TableId(0);
const STEPPED: &str = "steps";
/// The weight of each and its reach, zero for [`UNBOUNDED`], which the servers keep to themselves.
const WEIGHTS: TableId = TableId(1);
/// The numbers of a worker's push: slope and bound.
const PUSHED: usize = 2;
/// The part of `λ` that the KKT filter's `δ` is.
const MARGIN: f64 = 0.5;
/// Blocks, where nobody says how many, of so many features at least: shorter messages are little but headers, and more
/// blocks, which take fewer passes, then take no less time.
const BLOCKS: std::ops::RangeInclusive<usize> = 24..=64;
const FEATURES: usize = 400;
/// Chunks of features that servers share, at most.
const CHUNKS: u64 = 4096;

/// How to train.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What weights cost.
    pub penalty: Penalty,
    /// Whether there is a bias, which costs nothing.
    pub bias: bool,
    /// How features are cut into blocks.
    pub blocks: Cut,
    /// How many iterations before it an iteration may miss.
    pub delay: Delay,
    /// Whether features that will stay at zero are left out, as the KKT filter does.
    pub kkt: bool,
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
    /// Keys that workers pushed, and those that the KKT filter kept back.
    pub keys: (u64, u64),
    /// Where the workers' time went, and what filters saved.
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
    let chunk_rows = Some((plan.rows / CHUNKS).max(1));
    let table =
        |name: &str, width: u32| TableSchema { chunk_rows, ..TableSchema::dense(name, plan.rows.max(1), width) };
    let (features, penalty) = (examples.features() as u64, plan.penalty);
    let job = Job {
        name: "l1lr".to_owned(),
        workers: deployment.workers(),
        tables: vec![table(STEPPED, 1), table("weights", 2)],
        worker: &|node| {
            let mut worker = Worker::new(&plan, node.rank() as usize, node.workers() as usize);
            node.serve(&mut worker, &[("iterate", &Worker::iterate), ("end", &Worker::end)])
        },
        scheduler: &|node| plan.schedule(node),
        server: vec![("update", Arc::new(move |server, argument| update(server, argument, features, penalty)))],
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
    let bias = weights.pop_if(|(feature, _)| u64::from(*feature) == features).map_or(0.0, |(_, bias)| bias);
    let fit = Fit {
        passes: passes as u32,
        objective: (loss + cost) / count,
        loss: loss / count,
        violation: violation / count,
        converged: converged == 1.0,
        weights,
        bias,
    };
    let keys = (pushed as u64, skipped as u64);
    // What is left are the weights, which travel once, at the end.
    outcome.savings.retain(|saving| saving.table == STEPPED);
    if config.kkt {
        // A key travels to the servers with two numbers and once more to ask for the weight, which comes back alone.
        for (direction, bytes) in [(Direction::Rows, 4), (Direction::Updates, 8 + 4 * PUSHED as u64 + 8)] {
            let (table, filter) = (STEPPED.to_owned(), "kkt".to_owned());
            let (bytes_in, bytes_out) = ((keys.0 + keys.1) * bytes, keys.0 * bytes);
            outcome.savings.insert(0, FilterSaving { table, direction, filter, bytes_in, bytes_out });
        }
    }
    Ok(Trained { fit, progress, keys, outcome })
}

/// Servers: the generalised proximal operator for the block, with the sums of the bounds as `U`. Then the cost of the
/// rows up to a number.
fn update(server: &mut Server<'_>, argument: &[u8], features: u64, penalty: Penalty) -> Result<Vec<u8>, Reason> {
    let of = |key: u64| if key < features { penalty } else { Penalty::NONE };
    let [t, measured, threshold] = unpack_some(argument)?;
    let (keys, sums) = server.aggregate(STEPS, t as u64, PUSHED as u32)?;
    let (mut violation, mut cost, mut nonzeros) = (0.0, 0.0, 0.0);
    let mut steps = vec![0.0; keys.len()];
    server.edit(WEIGHTS, &keys, |place, row| {
        let [slope, bound] = [sums[PUSHED * place], sums[PUSHED * place + 1]].map(f64::from);
        let (penalty, weight) = (of(keys[place]), row[0]);
        let reach = if row[1] == 0.0 { UNBOUNDED } else { row[1] };
        violation += penalty.violation(f64::from(weight), slope);
        let best = if bound > 0.0 { penalty.prox(f64::from(weight) - slope / bound, bound) as f32 } else { weight };
        let kept = keys[place] >= features || Penalty { l1: threshold, ..penalty }.violation(0.0, slope) > 0.0;
        let idle = weight == 0.0 && best == 0.0 && !kept;
        steps[place] = if idle { IDLE } else { step::towards(weight, best, reach) };
        row[0] = step::after(weight, steps[place]);
        row[1] = step::reach_after(reach, row[0] - weight);
    })?;
    server.edit(STEPS, &keys, |place, row| row[0] = steps[place])?;
    let keys = server.keys(WEIGHTS, 0..measured as u64)?;
    server.edit(WEIGHTS, &keys, |place, row| {
        cost += of(keys[place]).cost(f64::from(row[0]));
        nonzeros += f64::from(u8::from(row[0] != 0.0 && keys[place] < features));
    })?;
    Ok(pack(&[violation, cost, nonzeros]))
}

/// What all nodes know.
struct Plan<'a> {
    examples: &'a Examples,
    config: &'a Config,
    blocks: Blocks,
    /// That of the sum of the losses.
    penalty: Penalty,
    count: f64,
    rows: u64,
}

impl<'a> Plan<'a> {
    fn new(examples: &'a Examples, config: &'a Config) -> Self {
        let mut counts = vec![0; examples.features()];
        let features = (0..examples.len()).flat_map(|row| examples.example(row).columns);
        features.for_each(|&feature| counts[feature as usize] += 1);
        let usual = (counts.len() / FEATURES).clamp(*BLOCKS.start(), *BLOCKS.end());
        let blocks = config.blocks.of(&counts, usual as u32, config.seed);
        let blocks = if config.bias { blocks.and(counts.len() as u32) } else { blocks };
        let (count, rows) = (examples.len() as f64, examples.features() as u64 + u64::from(config.bias));
        Self { examples, config, blocks, penalty: config.penalty.times(count), count, rows }
    }

    /// Scheduler: issues the iterations, as far ahead as the delay allows, and looks at every pass when it is done.
    fn schedule(&self, node: &mut Node<'_, ()>) -> Result<Vec<u8>, Error> {
        let Config { delay, stopping, seed, kkt, .. } = self.config;
        let threshold = if *kkt { (1.0 - MARGIN) * self.penalty.l1 } else { f64::NEG_INFINITY };
        let mut passes = Passes::new(delay.clone(), self.blocks.len().max(1));
        let (mut watch, mut all) = (Watch::new(*stopping), true);
        while !watch.ended && !self.blocks.is_empty() {
            let Step { t, block, first, last, moving } =
                passes.next(node, |pass| self.blocks.order(seed.wrapping_add(pass)))?;
            if first {
                if passes.begun() == u64::from(stopping.passes) {
                    break;
                }
                all = !watch.begin(*kkt);
            }
            look(node, &mut passes, &mut watch)?;
            let measured = if last { self.rows as f64 } else { 0.0 };
            let [first, all] = [first && t > 0, all].map(|flag| f64::from(u8::from(flag)));
            let update = Task::call(Group::Servers, "update", pack(&[t as f64, measured, threshold]));
            let argument = pack(&[t as f64, block as f64, moving, first, all]);
            passes.issue(node, Task::call(Group::Workers, "iterate", argument), update)?;
        }
        passes.finish(node)?;
        look(node, &mut passes, &mut watch)?;
        let end = node.issue(Task::call(Group::Workers, "end", vec![]))?;
        let weights = node.issue(Task::pull(WEIGHTS, 0..self.rows))?;
        let end = node.wait(&end)?.sums();
        let weights = node.wait_numbers(&weights)?;
        let weights = || (0..).zip(weights.iter().copied().step_by(2).map(f64::from));
        let features = self.examples.features();
        let cost: f64 = weights().take(features).map(|(_, weight)| self.penalty.cost(weight)).sum();
        let nonzeros = weights().take(features).filter(|(_, weight)| *weight != 0.0).count();
        node.report(&[0.0, cost, nonzeros as f64, passes.begun() as f64]);
        let ended = f64::from(u8::from(watch.ended));
        let mut result = vec![passes.begun() as f64, ended, end[0], cost, watch.violation, end[1], end[2]];
        let kept = weights().filter(|(feature, weight)| *weight != 0.0 || *feature == features);
        result.extend(kept.flat_map(|(feature, weight): (usize, f64)| [feature as f64, weight]));
        Ok(pack(&result))
    }
}

/// Looks at the passes that are done, each of which the first iteration after it has measured the loss of.
fn look(node: &mut Node<'_, ()>, passes: &mut Passes, watch: &mut Watch) -> Result<(), Error> {
    while let Some(Passed { after, updates }) = passes.look(node)? {
        node.report(&[0.0, updates[1], updates[2], passes.looked_at() as f64]);
        watch.look(after[0] + updates[1], updates[0]);
        passes.observe(after[0] + updates[1]);
    }
    Ok(())
}

/// A worker: its share, and the features of every block that the share has, ascending.
struct Worker<'a> {
    share: Share<'a>,
    parts: Vec<Vec<u32>>,
    /// Keys pushed and filtered.
    keys: [u64; 2],
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
            features
        };
        let parts = (0..plan.blocks.len()).map(part).collect();
        Self { share, parts, keys: [0; 2] }
    }

    fn iterate(&mut self, node: &mut Node<'_, Self>, argument: &[u8]) -> Result<Vec<u8>, Error> {
        let [t, block, moving, measure, all] = unpack_some(argument).map_err(Error::program)?;
        let loss = (measure == 1.0).then(|| self.share.loss());
        loss.iter().for_each(|&loss| node.report(&[loss]));
        let (stamp, block) = (t as u64, block as usize);
        let features = &self.parts[block];
        let awake = |feature: &u32| !self.share.is_idle(*feature);
        let active: Vec<u32> = features.iter().copied().filter(|feature| all == 1.0 || awake(feature)).collect();
        self.keys = [self.keys[0] + active.len() as u64, self.keys[1] + (features.len() - active.len()) as u64];
        let slopes = self.share.slopes(&active, moving);
        let bound = |feature, bound| if self.share.is_idle(feature) { 0.0 } else { step::short_bound(bound) };
        let numbers =
            active.iter().zip(slopes).flat_map(|(&feature, sum)| [sum.slope as f32, bound(feature, sum.bound)]);
        let numbers: Vec<f32> = numbers.collect();
        node.work(self.share.entries(&active) as u64)?;
        let keys: Vec<u64> = active.iter().copied().map(u64::from).collect();
        let push = Task::push(STEPS, keys.clone(), Values::dense(PUSHED as u32, numbers));
        // The servers update when all have pushed, so who has pulled knows that this is done.
        node.issue(push.keep(stamp).quietly())?;
        let pull = Task::pull(STEPS, keys).after_stamp(Group::Scheduler, stamp);
        node.issue_then(pull, move |worker: &mut Self, node, reply| {
            let Some(Values::Dense { numbers, .. }) = reply.values else { return Ok(()) };
            let entries = worker.share.step(active.iter().copied().zip(numbers.iter().copied()));
            node.work(entries as u64)
        })?;
        Ok(pack(loss.as_slice()))
    }

    /// What there is to say at the end: the loss, and how many keys were pushed and filtered.
    fn end(&mut self, node: &mut Node<'_, Self>, _: &[u8]) -> Result<Vec<u8>, Error> {
        let loss = self.share.loss();
        node.report(&[loss]);
        Ok(pack(&[loss, self.keys[0] as f64, self.keys[1] as f64]))
    }
}
