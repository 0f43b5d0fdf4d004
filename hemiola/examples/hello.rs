//! An algorithm of one's own: linear regression by stochastic gradient descent, in parallel.
//!
//! `cargo run --example hello -- threads` (or `tcp`, or `sim`): the same program on two threads, on two processes with
//! a server between them, and on two simulated nodes.

use hemiola::{Deployment, Error, TableId, TableSchema, Worker};

const WEIGHTS: TableId = TableId(0);
const TRUTH: [f32; 3] = [2.0, -1.0, 0.5];

/// Example `i` of an endless data set: features, and the label that the true weights give them.
fn example(i: u64) -> ([f32; 3], f32) {
    let feature = |k: u64| ((i * 7 + k * 13) % 11) as f32 / 5.0 - 1.0;
    let x = [feature(1), feature(2), 1.0];
    (x, x.iter().zip(TRUTH).map(|(x, w)| x * w).sum())
}

/// What one worker does: its share of the examples, a hundred in every clock.
fn work(worker: &mut Worker) -> Result<Vec<u8>, Error> {
    let (me, workers) = (u64::from(worker.id().0), u64::from(worker.workers()));
    for clock in 0..60 {
        for i in 0..100 {
            let (x, y) = example((clock * 100 + i) * workers + me);
            let w = worker.get_row(WEIGHTS, 0)?;
            let error = y - x.iter().zip(&w).map(|(x, w)| x * w).sum::<f32>();
            worker.inc_row(WEIGHTS, 0, &x.map(|x| 0.02 * error * x))?;
        }
        worker.work(100)?;
        worker.clock()?;
    }
    let weights = worker.get_latest(WEIGHTS, &[0])?;
    Ok(format!("{:?}", weights.row(0)).into_bytes())
}

fn main() -> Result<(), Error> {
    let deployment = match std::env::args().nth(1).as_deref() {
        Some("tcp") => Deployment::tcp(2, 1),
        Some("sim") => Deployment::sim(2),
        _ => Deployment::threads(2),
    };
    let tables = [TableSchema::dense("weights", 1, TRUTH.len() as u32)];
    let outcome = hemiola::run(&deployment, &tables, work)?;
    let weights = String::from_utf8_lossy(&outcome.results[0]).into_owned();
    let numbers = weights.trim_start_matches("Dense([").trim_end_matches("])").split(", ");
    for (learnt, truth) in numbers.zip(TRUTH) {
        let learnt: f32 = learnt.parse().expect("a number");
        assert!((learnt - truth).abs() < 0.01, "learnt {weights}, the truth is {TRUTH:?}");
    }
    eprintln!("learnt {weights} in {:.3} s; the truth is {TRUTH:?}", outcome.seconds);
    Ok(())
}
