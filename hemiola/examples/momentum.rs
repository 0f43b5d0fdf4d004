//! A stored procedure of one's own: linear regression whose steps have momentum, which the shard keeps.
//!
//! `cargo run --example momentum -- threads` (or `tcp`, or `sim`). Workers send raw gradients; what becomes of them is
//! the procedure's business, and only the shard's memory is spent on it.

use hemiola::{Clock, Deployment, Error, Procedure, RowRef, TableId, TableSchema, Worker};
use std::sync::Arc;

const WEIGHTS: TableId = TableId(0);
const TRUTH: [f32; 3] = [2.0, -1.0, 0.5];

/// `v ← keep · v + g` and `w ← w − rate · v`.
#[derive(Debug)]
struct Momentum {
    rate: f32,
    keep: f32,
}

impl Procedure for Momentum {
    /// The velocity of every number of a row. It starts at zero, so there is nothing to do when a row is created.
    fn state_width(&self, width: usize) -> usize {
        width
    }

    fn apply(&self, row: &mut [f32], velocity: &mut [f32], _snapshot: &[f32], gradient: &[f32], _clock: Clock) {
        for ((w, v), g) in row.iter_mut().zip(velocity).zip(gradient) {
            *v = self.keep * *v + g;
            *w -= self.rate * *v;
        }
    }
}

/// What one worker does: the mean gradient of a hundred examples in every clock.
fn work(worker: &mut Worker) -> Result<Vec<u8>, Error> {
    let (me, workers) = (u64::from(worker.id().0), u64::from(worker.workers()));
    for clock in 0..150 {
        let w = worker.get_row(WEIGHTS, 0)?;
        let mut gradient = [0.0; 3];
        for i in 0..100 {
            let number = (clock * 100 + i) * workers + me;
            let feature = |k: u64| ((number * 7 + k * 13) % 11) as f32 / 5.0 - 1.0;
            let x = [feature(1), feature(2), 1.0];
            let product = |w: &[f32]| x.iter().zip(w).map(|(x, w)| x * w).sum::<f32>();
            let error = product(&w) - product(&TRUTH);
            gradient.iter_mut().zip(x).for_each(|(g, x)| *g += error * x / 100.0);
        }
        worker.inc_row(WEIGHTS, 0, &gradient)?;
        worker.work(100)?;
        worker.clock()?;
    }
    let weights = worker.get_latest(WEIGHTS, &[0])?;
    let RowRef::Dense(weights) = weights.row(0) else { unreachable!("the table is dense") };
    for (learnt, truth) in weights.iter().zip(TRUTH) {
        assert!((learnt - truth).abs() < 0.01, "learnt {weights:?}, the truth is {TRUTH:?}");
    }
    Ok(format!("{weights:?}").into_bytes())
}

fn main() -> Result<(), Error> {
    let deployment = match std::env::args().nth(1).as_deref() {
        Some("tcp") => Deployment::tcp(2, 1),
        Some("sim") => Deployment::sim(2),
        _ => Deployment::threads(2),
    };
    let weights = TableSchema {
        procedure: Some(Arc::new(Momentum { rate: 0.05, keep: 0.8 })),
        // Only the shard knows what comes of an update.
        read_my_writes: false,
        ..TableSchema::dense("weights", 1, TRUTH.len() as u32)
    };
    let outcome = hemiola::run(&deployment, &[weights], work)?;
    eprintln!("learnt {} in {:.3} s", String::from_utf8_lossy(&outcome.results[0]), outcome.seconds);
    Ok(())
}
