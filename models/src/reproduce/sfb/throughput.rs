//! Samples per second by the size of minibatches, and progress per sample: the paper's figure 6.

use super::super::{Findings, ReproduceError, Scale};
use super::{BATCH, Bench, Exchange, panel};
use crate::mlr::factors::Config;

/// Sizes of minibatches around the usual one.
const BATCHES: [u32; 4] = [1, 4, BATCH, 4 * BATCH];

pub(in crate::reproduce) fn throughput(scale: &Scale) -> Result<Findings, ReproduceError> {
    let bench = Bench::new(scale, (Bench::classes_max(scale) / 2).max(2))?;
    let (mut speeds, mut courses, mut list) = (Vec::new(), Vec::new(), Vec::new());
    let (mut ahead, mut apart) = (true, 0.0f64);
    for (exchange, name) in [(Exchange::Factors, "factors"), (Exchange::Matrix, "full matrix")] {
        let mut points = Vec::new();
        for batch in BATCHES {
            let run = bench.run(exchange, &Config { batch, epochs: 1, ..bench.config() })?;
            points.push((f64::from(batch), bench.train.len() as f64 / run.seconds()));
        }
        speeds.push((name.to_owned(), points));
        let run = bench.run(exchange, &bench.config())?;
        let samples = |(pass, (_, loss)): (usize, (f64, f64))| ((pass * bench.train.len()) as f64, loss);
        courses.push((name.to_owned(), run.course().into_iter().enumerate().map(samples).collect::<Vec<_>>()));
    }
    for (factors, matrix) in speeds[0].1.iter().zip(&speeds[1].1) {
        ahead &= factors.1 > matrix.1 || factors.0 > f64::from(BATCH);
        list.push(format!("{:.1} times as many with minibatches of {}", factors.1 / matrix.1, factors.0));
    }
    for (factors, matrix) in courses[0].1.iter().zip(&courses[1].1) {
        apart = apart.max((factors.1 / matrix.1 - 1.0).abs());
    }
    let found = format!(
        "Samples per second with factors, compared with the full matrix: {}; after as many samples the losses differ by at \
         most {:.2} %. {}.",
        list.join(", "),
        100.0 * apart,
        bench.chosen()
    );
    let panels = vec![
        panel("throughput", "examples of a minibatch", "samples per second", speeds),
        panel("progress per sample", "samples", "held-out loss", courses),
    ];
    Ok(Findings { found, holds: ahead && apart < 0.01, panels })
}
