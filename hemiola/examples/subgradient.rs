//! Distributed subgradient descent, Algorithm 1 of the Parameter Server, as tasks: logistic regression with an l2 penalty.
//!
//! `cargo run --example subgradient -- threads sequential` (or `tcp`, or `sim`; or `eventual`, `auto`, or how many
//! iterations a worker's weights may be behind, such as 2).

use hemiola::tasks::{self, Delay, Group, Iterations, Job, Node, Reply, Server, Task};
use hemiola::{Deployment, Error, TableId, TableSchema, Values};
use std::sync::Arc;

const WEIGHTS: TableId = TableId(0);
const FEATURES: u64 = 40;
const EXAMPLES: u64 = 2000;
const ITERATIONS: u64 = 80;
const RATE: f32 = 2.0;
const PENALTY: f32 = 1e-3;

/// Example `i`: its features, and a label that a plane through the origin gives it.
fn example(i: u64) -> (Vec<f32>, f32) {
    let number = |k: u64| ((i * 31 + 7) * (k * 17 + 5) % 211) as f32 / 105.0 - 1.0;
    let x: Vec<f32> = (0..FEATURES).map(number).collect();
    let side: f32 = x.iter().enumerate().map(|(k, x)| x * (k as f32 * 0.7).sin()).sum();
    (x, side.signum())
}

/// Worker: the gradient of its examples is pushed, and the weights that follow from all gradients are pulled.
fn iterate(weights: &mut Vec<f32>, node: &mut Node<'_, Vec<f32>>, t: &[u8]) -> Result<Vec<u8>, Error> {
    let stamp = number(t);
    let mut gradient = vec![0.0; FEATURES as usize];
    let mut loss = 0.0;
    for i in (u64::from(node.rank())..EXAMPLES).step_by(node.workers() as usize) {
        let (x, y) = example(i);
        let margin = y * x.iter().zip(&*weights).map(|(x, w)| x * w).sum::<f32>();
        loss += f64::from((-margin).exp().ln_1p());
        let slope = -y / (1.0 + margin.exp()) / EXAMPLES as f32;
        gradient.iter_mut().zip(&x).for_each(|(g, x)| *g += slope * x);
    }
    node.work(EXAMPLES / u64::from(node.workers()))?;
    node.issue(Task::push(WEIGHTS, 0..FEATURES, Values::dense(1, gradient)).keep(stamp))?;
    let pull = Task::pull(WEIGHTS, 0..FEATURES).after_stamp(Group::Scheduler, stamp);
    node.issue_then(pull, |weights, _, reply| {
        if let Some(Values::Dense { numbers, .. }) = reply.values {
            *weights = numbers.to_vec();
        }
        Ok(())
    })?;
    Ok(loss.to_le_bytes().to_vec())
}

/// Servers: `w ← w − η (g + ∂h(w))`, once the gradients of all workers are there.
fn update(server: &mut Server<'_>, t: &[u8]) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
    let (keys, gradient) = server.aggregate(WEIGHTS, number(t), 1)?;
    server.edit(WEIGHTS, &keys, |place, w| w[0] -= RATE * (gradient[place] + PENALTY * w[0]))?;
    Ok(Vec::new())
}

/// Scheduler: issues the iterations, as far ahead as the delay allows.
fn schedule(node: &mut Node<'_, ()>, delay: Delay) -> Result<Vec<u8>, Error> {
    let mut losses = Vec::new();
    let mut done = |_, reply: &Reply| {
        let loss = reply.returned.iter().map(|(_, loss)| f64::from_bits(number(loss))).sum::<f64>();
        losses.push(loss / EXAMPLES as f64);
        Some(loss)
    };
    let mut iterations = Iterations::new(delay);
    for t in 0..ITERATIONS {
        let argument = t.to_le_bytes().to_vec();
        let update = Task::call(Group::Servers, "update", argument.clone());
        node.issue(update.stamp(t).after_stamp(Group::Workers, t))?;
        iterations.issue(node, Task::call(Group::Workers, "iterate", argument), &mut done)?;
    }
    iterations.finish(node, &mut done)?;
    Ok(losses.iter().flat_map(|loss| loss.to_le_bytes()).collect())
}

fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn main() -> Result<(), Error> {
    let deployment = match std::env::args().nth(1).as_deref() {
        Some("tcp") => Deployment::tcp(2, 2),
        Some("sim") => Deployment::sim(2),
        _ => Deployment::threads(2),
    };
    let delay: Delay =
        std::env::args().nth(2).map_or(Ok(Delay::Sequential), |text| text.parse()).map_err(Error::program)?;
    let job = Job {
        name: "subgradient".to_owned(),
        workers: deployment.workers(),
        tables: vec![TableSchema { chunk_rows: Some(8), ..TableSchema::dense("weights", FEATURES, 1) }],
        worker: &|node| node.serve(&mut vec![0.0; FEATURES as usize], &[("iterate", &iterate)]),
        scheduler: &|node| schedule(node, delay.clone()),
        server: vec![("update", Arc::new(update))],
    };
    let outcome = tasks::run(&deployment, &[job])?;
    let losses: Vec<f64> = outcome.results[0].chunks_exact(8).map(|loss| f64::from_bits(number(loss))).collect();
    let (first, last) = (losses[0], losses[losses.len() - 1]);
    assert!(losses.len() as u64 == ITERATIONS && last < 0.5 * first, "the loss went from {first} to {last}");
    eprintln!("delay {delay}: the loss went from {first:.4} to {last:.4} in {:.4} s", outcome.seconds);
    Ok(())
}
