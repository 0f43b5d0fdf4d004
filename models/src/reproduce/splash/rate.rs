//! Theorem 2: how the mean squared error falls with the number of samples, for several numbers of threads.
//!
//! The problem is least squares in a few dimensions with samples that are all different, so that what is sought is known
//! and a pass of `T` synchronisations is `T` iterations of the theorem. It is strongly convex with λ = 1.

use super::super::{Findings, Panel, ReproduceError, Scale, Series};
use crate::generate::Random;
use hemiola::Deployment;
use hemiola::splash::{self, DataSet, Options, Shared};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

const DIMENSIONS: usize = 4;
const SOUGHT: [f32; DIMENSIONS] = [0.5, -1.0, 0.25, 1.0];
/// The radius of the feasible set.
const RADIUS: f32 = 4.0;
const NOISE: f32 = 0.5;
const THREADS: [u32; 3] = [1, 4, 16];
const ITERATIONS: [u32; 4] = [1, 4, 16, 64];
/// Samples of a thread in an iteration.
const LOCAL: usize = 64;

struct Sample {
    x: [f32; DIMENSIONS],
    y: f32,
}

/// The squared error after so many iterations of so many threads.
fn squared_error(threads: u32, iterations: u32, seed: u64) -> Result<f64, ReproduceError> {
    let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(seed));
    let sample = |_| {
        // Even, with variance one, so that the mean curvature is one in every direction.
        let x = [(); DIMENSIONS].map(|()| 3f32.sqrt() * (2.0 * random.uniform() as f32 - 1.0));
        let y = x.iter().zip(SOUGHT).map(|(x, w)| x * w).sum::<f32>() + NOISE * random.normal();
        Sample { x, y }
    };
    let samples: Vec<Sample> = (0..threads as usize * iterations as usize * LOCAL).map(sample).collect();
    let mut shared = Shared::default();
    let (t, w) = (shared.scalar("t", 0.0), shared.array("w", DIMENSIONS));
    let options = Options { shuffle: false, synchronisations: iterations, ..Options::default() };
    let program = |set: &mut DataSet<Sample, ()>| {
        set.run(|Sample { x, y }, weight, shared, _| {
            // Formula (14), with the step 2 / (λ t).
            shared.add(t, weight);
            let step = (2.0 * weight / shared.get(t)) as f32;
            let error = y - shared.dot(w, 0, x);
            let w = shared.edit(w);
            w.iter_mut().zip(x).for_each(|(w, x)| *w += step * error * x);
            let length = w.iter().map(|w| w * w).sum::<f32>().sqrt();
            if length > RADIUS {
                w.iter_mut().for_each(|w| *w *= RADIUS / length);
            }
        })?;
        Ok(Vec::new())
    };
    let trained = splash::run(&Deployment::threads(threads), &options, &shared, &samples, program)?;
    Ok(trained.shared.to_vec(w).iter().zip(SOUGHT).map(|(w, sought)| f64::from(w - sought).powi(2)).sum())
}

/// The slope of the straight line that is nearest to the points.
fn slope(points: &[(f64, f64)]) -> f64 {
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let product = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>();
    product / points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>()
}

pub(in crate::reproduce) fn rate(scale: &Scale) -> Result<Findings, ReproduceError> {
    let mut series = Vec::new();
    let mut slopes = Vec::new();
    for threads in THREADS {
        let mut points = Vec::new();
        for iterations in ITERATIONS {
            let seed = |i: u32| scale.seed.wrapping_add(u64::from(i) << 32);
            let errors = (0..scale.passes).map(|i| squared_error(threads, iterations, seed(i)));
            let mean = errors.sum::<Result<f64, _>>()? / f64::from(scale.passes);
            let samples = f64::from(threads * iterations) * LOCAL as f64;
            points.push((samples.log10(), mean.log10()));
        }
        slopes.push((threads, slope(&points)));
        let plural = if threads == 1 { "" } else { "s" };
        series.push(Series { name: format!("{threads} thread{plural}"), points });
    }
    let list: Vec<String> = slopes.iter().map(|(threads, slope)| format!("{slope:.2} with {threads}")).collect();
    let found = format!("Slopes by the number of threads, means of {} draws: {}.", scale.passes, list.join(", "));
    let holds = slopes.iter().all(|(_, slope)| (slope + 1.0).abs() <= 0.15);
    let panel = Panel {
        title: "error against samples".to_owned(),
        x: "log10 processed samples".to_owned(),
        y: "log10 mean squared error".to_owned(),
        series,
        lines: true,
    };
    Ok(Findings { found, holds, panels: vec![panel] })
}
