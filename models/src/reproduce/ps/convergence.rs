//! Objective over time, by method: the paper's figure 3, with the delayed block method, the same under sequential
//! consistency, and OWL-QN on the same workers.

use super::super::{Findings, ReproduceError, Scale};
use super::{Bench, panel};
use crate::examples::Examples;
use crate::l1lr::owlqn::{self, Rules};
use crate::l1lr::share::Share;
use crate::l1lr::solver::{Config, Solver};
use crate::l1lr::stopping::Stopping;
use hemiola::tasks::{self, Group, Job, Node, Server, Task, pack, unpack_some};
use hemiola::{Deployment, Error, Observation, TableId, TableSchema, Values};
use std::sync::Arc;

/// The delay that the paper finds best.
const DELAY: u64 = 8;
/// Passes of the block method, and steps of OWL-QN, of which each needs one evaluation or more.
const PASSES: u32 = 24;
const STEPS: u32 = 40;
/// A method has arrived when the objective is above the least by this part of it.
const NEAR: f64 = 0.02;

pub(in crate::reproduce) fn convergence(scale: &Scale) -> Result<Findings, ReproduceError> {
    let bench = Bench::new(scale);
    let exact = Config { stopping: Stopping { tolerance: 1e-10, ..Stopping::default() }, ..Config::default() };
    let fit = Solver::new(&bench.examples, 1, bench.penalty().l1, 1, &exact).fit(bench.penalty(), |_| {});
    let least = fit.map_err(|error| Error::program(format!("the solver failed: {error}")))?.objective;
    let target = least * (1.0 + NEAR);
    let mut courses = Vec::new();
    for (name, delay) in [("block method, delay 8", DELAY), ("block method, sequential", 0)] {
        let trained = bench.run(delay, PASSES)?;
        courses.push((name, trained.progress.iter().map(|at| (at.seconds, at.objective)).collect::<Vec<_>>()));
    }
    courses.push(("OWL-QN", quasi_newton(&bench)?));
    let arrives = |course: &[(f64, f64)]| {
        course.iter().find(|(_, objective)| *objective <= target).map_or(f64::INFINITY, |(seconds, _)| *seconds)
    };
    let times: Vec<f64> = courses.iter().map(|(_, course)| arrives(course)).collect();
    let list: Vec<String> = courses
        .iter()
        .zip(&times)
        .map(|((name, course), seconds)| match seconds.is_finite() {
            true => format!("{seconds:.1} s by {name}"),
            false => format!("never in {:.1} s by {name}", course.last().map_or(0.0, |(seconds, _)| *seconds)),
        })
        .collect();
    let found = format!(
        "{} come within {:.0} % of the least objective in {}; what the scheduler of OWL-QN computes takes no time here.",
        bench.chosen(),
        100.0 * NEAR,
        list.join(", ")
    );
    let holds = times[0] < times[1] && times[0] < times[2];
    let panels = vec![panel("objective over time", "virtual seconds", "objective", courses)];
    Ok(Findings { found, holds, panels })
}

const WEIGHTS: TableId = TableId(0);
const SLOPES: TableId = TableId(1);

/// A worker that evaluates the loss and its slopes over its share of the examples.
struct Evaluator<'a> {
    share: Share<'a>,
    keys: Vec<u64>,
    known: Vec<f32>,
}

impl<'a> Evaluator<'a> {
    fn new(examples: &'a Examples, rank: usize, workers: usize) -> Self {
        let count = examples.len();
        let share = Share::new(examples, count * rank / workers..count * (rank + 1) / workers, 1).with_bias();
        let keys: Vec<u64> = share.features().iter().copied().map(u64::from).collect();
        Self { share, known: vec![0.0; keys.len()], keys }
    }

    fn evaluate(&mut self, node: &mut Node<'_, Self>, argument: &[u8]) -> Result<Vec<u8>, Error> {
        let [t] = unpack_some(argument).map_err(Error::program)?;
        let t = t as u64;
        let pull = Task::pull(WEIGHTS, self.keys.clone()).after_stamp(Group::Scheduler, 2 * t + 1);
        let pull = node.issue(pull)?;
        let weights = node.wait_numbers(&pull)?;
        let features = self.share.features().to_vec();
        let changes = features.iter().zip(weights.iter().zip(&self.known));
        let mut changes: Vec<(u32, f64)> =
            changes.map(|(&feature, (&new, &old))| (feature, f64::from(new) - f64::from(old))).collect();
        self.known = weights.to_vec();
        changes.retain(|(_, change)| *change != 0.0);
        self.share.change(&changes);
        let changed: Vec<u32> = changes.iter().map(|(feature, _)| *feature).collect();
        let slopes = self.share.slopes(&features, 0.0).iter().map(|sum| sum.slope as f32).collect();
        node.work((self.share.entries(&changed) + self.share.entries(&features)) as u64)?;
        node.issue(Task::push(SLOPES, self.keys.clone(), Values::dense(1, slopes)).keep(t))?;
        let loss = self.share.loss();
        node.report(&[loss]);
        Ok(pack(&[loss]))
    }
}

/// Servers: what was pushed to a table under a stamp, summed over those who pushed, replaces its rows.
fn replace(server: &mut Server<'_>, argument: &[u8]) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
    let [table, stamp] = unpack_some(argument)?;
    let table = TableId(table as u32);
    let (keys, sums) = server.aggregate(table, stamp as u64, 1)?;
    server.edit(table, &keys, |place, row| row[0] = sums[place])?;
    Ok(Vec::new())
}

/// OWL-QN on the workers of the bench, who evaluate each point together. Its scheduler computes the steps.
fn quasi_newton(bench: &Bench) -> Result<Vec<(f64, f64)>, ReproduceError> {
    let (examples, penalty) = (&bench.examples, bench.penalty());
    let (count, features) = (examples.len() as f64, examples.features());
    let rows = features as u64 + 1;
    let l1 = |j: usize| if j < features { penalty.l1 } else { 0.0 };
    let schedule = |node: &mut Node<'_, ()>| {
        let mut t = 0u64;
        let evaluate = |x: &[f64]| -> Result<(f64, Vec<f64>), Error> {
            let place = |table: TableId, stamp: u64| {
                Task::call(Group::Servers, "replace", pack(&[f64::from(table.0), stamp as f64]))
            };
            let weights = Values::dense(1, x.iter().map(|&x| x as f32).collect());
            node.issue(Task::push(WEIGHTS, 0..rows, weights).keep(2 * t))?;
            node.issue(place(WEIGHTS, 2 * t).stamp(2 * t + 1).after_stamp(Group::Scheduler, 2 * t))?;
            let summed = node.issue(place(SLOPES, t).after_stamp(Group::Workers, t))?;
            let loss = node.issue(Task::call(Group::Workers, "evaluate", pack(&[t as f64])))?;
            let slopes = node.issue(Task::pull(SLOPES, 0..rows).after([&summed]))?;
            let loss = node.wait(&loss)?.sums()[0] / count;
            let slopes = node.wait_numbers(&slopes)?.iter().map(|&slope| f64::from(slope) / count).collect();
            node.report(&[0.0, x.iter().enumerate().map(|(j, x)| l1(j) * x.abs()).sum()]);
            t += 1;
            Ok((loss, slopes))
        };
        let rules = Rules { memory: 10, iterations: STEPS, tolerance: 1e-7 };
        owlqn::minimise(vec![0.0; rows as usize], l1, rules, evaluate).map(|_| Vec::new())
    };
    let table = |name| TableSchema { chunk_rows: Some((rows / 64).max(1)), ..TableSchema::dense(name, rows, 1) };
    let job = Job {
        name: "owlqn".to_owned(),
        workers: bench.workers,
        tables: vec![table("weights"), table("slopes")],
        worker: &|node| {
            let mut worker = Evaluator::new(examples, node.rank() as usize, node.workers() as usize);
            node.serve(&mut worker, &[("evaluate", &Evaluator::evaluate)])
        },
        scheduler: &schedule,
        server: vec![("replace", Arc::new(replace))],
    };
    // A step may be tried and found too long, so what counts is the best so far.
    let (mut course, mut best) = (Vec::new(), f64::INFINITY);
    let mut observer = |seen: &Observation| {
        let at = |place: usize| seen.values.get(place).copied().unwrap_or_default();
        best = best.min(at(0) / count + at(1));
        course.push((seen.seconds, best));
    };
    tasks::run_observed(&Deployment::Sim(bench.cluster()), &[job], &mut observer)?;
    Ok(course)
}
