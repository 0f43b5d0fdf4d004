//! What the interface of Splash costs: logistic regression through it and as a plain loop, on one thread, beside one
//! another. `splash_bench dense-plain|dense-splash|sparse-plain|sparse-splash` runs one of them, for counting its
//! instructions; without a name all are timed in turns, and the median of the turns' ratios is printed.

use hemiola::splash::{self, DataSet, Options, Shared};
use hemiola::{Deployment, Error};
use std::hint::black_box;
use std::time::Instant;

const PASSES: usize = 5;
const TURNS: usize = 40;
const DENSE_FEATURES: usize = 784;
const SPARSE_FEATURES: usize = 100_000;
const NON_ZEROS: usize = 40;

struct Example {
    label: f32,
    columns: Vec<u32>,
    values: Vec<f32>,
}

/// Examples with `non_zeros` of `features` features; all of them where these are as many.
fn examples(count: usize, features: usize, non_zeros: usize) -> Vec<Example> {
    let mut random = 1u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize
    };
    let column = |i: usize, random: usize| if non_zeros == features { i } else { random % features } as u32;
    let example = |_| Example {
        label: if next() % 2 == 0 { 1.0 } else { -1.0 },
        columns: (0..non_zeros).map(|i| column(i, next())).collect(),
        values: (0..non_zeros).map(|_| (next() % 100) as f32 / 100.0).collect(),
    };
    (0..count).map(example).collect()
}

fn slope(label: f32, product: f32) -> f32 {
    label / (1.0 + (label * product).exp())
}

fn step(t: f64) -> f32 {
    0.1 / t.sqrt() as f32
}

/// The inner product as a careful programmer writes it: in sixteen sums.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    let mut sums = [0.0f32; 16];
    for (a, b) in a.iter().zip(b) {
        (0..16).for_each(|lane| sums[lane] += a[lane] * b[lane]);
    }
    sums.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}

fn plain(examples: &[Example], order: &[u32], dense: bool) -> f32 {
    let mut w = vec![0.0f32; if dense { DENSE_FEATURES } else { SPARSE_FEATURES }];
    let mut t = 0.0;
    for _ in 0..PASSES {
        for &i in order {
            let example = &examples[i as usize];
            t += 1.0;
            if dense {
                let change = step(t) * slope(example.label, dot(&w, &example.values));
                w.iter_mut().zip(&example.values).for_each(|(w, x)| *w += change * x);
            } else {
                let pairs = || example.columns.iter().zip(&example.values);
                let product: f32 = pairs().map(|(&column, x)| w[column as usize] * x).sum();
                let change = step(t) * slope(example.label, product);
                pairs().for_each(|(&column, x)| w[column as usize] += change * x);
            }
        }
    }
    w[0]
}

fn through_splash(examples: &Vec<Example>, dense: bool) -> Result<f32, Error> {
    let mut shared = Shared::default();
    let t = shared.scalar("t", 0.0);
    let w = shared.array("w", if dense { DENSE_FEATURES } else { SPARSE_FEATURES });
    let options = Options::default();
    let program = |set: &mut DataSet<Example, ()>| {
        for _ in 0..PASSES {
            if dense {
                set.run(|example, weight, shared, _| {
                    shared.add(t, weight);
                    let slope = slope(example.label, shared.dot(w, 0, &example.values));
                    shared.add_scaled(w, 0, weight as f32 * step(shared.get(t)) * slope, &example.values);
                })?;
            } else {
                set.run(|Example { label, columns, values }, weight, shared, _| {
                    shared.add(t, weight);
                    let slope = slope(*label, shared.dot_sparse(w, 0, columns, values));
                    let change = weight as f32 * step(shared.get(t)) * slope;
                    shared.add_scaled_sparse(w, 0, change, columns, values);
                })?;
            }
        }
        Ok(Vec::new())
    };
    let trained = splash::run(&Deployment::threads(1), &options, &shared, examples, program)?;
    Ok(trained.shared.get(w.at(0)))
}

fn main() -> Result<(), Error> {
    let only = std::env::args().nth(1);
    for (name, dense, most) in [("dense", true, 10.0), ("sparse", false, 25.0)] {
        if only.as_ref().is_some_and(|only| !only.starts_with(name)) {
            continue;
        }
        let examples = if dense {
            examples(4000, DENSE_FEATURES, DENSE_FEATURES)
        } else {
            examples(40_000, SPARSE_FEATURES, NON_ZEROS)
        };
        // In no order of memory, as a shuffled pass is.
        let mut order: Vec<u32> = (0..examples.len() as u32).collect();
        order.sort_by_key(|i| i.wrapping_mul(2_654_435_761));
        let (mut best, mut ratios) = ([f64::INFINITY; 2], Vec::new());
        for _ in 0..if only.is_some() { 1 } else { TURNS } {
            let mut seconds = [0.0; 2];
            if only.as_ref().is_none_or(|only| only.ends_with("plain")) {
                let began = Instant::now();
                black_box(plain(black_box(&examples), &order, dense));
                seconds[0] = began.elapsed().as_secs_f64();
            }
            if only.as_ref().is_none_or(|only| only.ends_with("splash")) {
                let began = Instant::now();
                black_box(through_splash(black_box(&examples), dense)?);
                seconds[1] = began.elapsed().as_secs_f64();
            }
            best = [best[0].min(seconds[0]), best[1].min(seconds[1])];
            ratios.push(seconds[1] / seconds[0]);
        }
        if only.is_none() {
            let [plain, splash] = best;
            ratios.sort_by(f64::total_cmp);
            let overhead = 100.0 * (ratios[TURNS / 2] - 1.0);
            eprintln!(
                "{name:6}  plain {:.1} ms, through Splash {:.1} ms: {overhead:+.1} % (at most {most} %)",
                1e3 * plain,
                1e3 * splash
            );
        }
    }
    Ok(())
}
