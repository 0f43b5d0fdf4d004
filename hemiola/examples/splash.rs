//! A sequential algorithm made parallel by Splash: sparse logistic regression with an l2 penalty.
//!
//! `cargo run --example splash -- threads` (or `tcp`, or `sim`): the same function on four threads, on two processes with
//! a server between them, and on four simulated nodes.

use hemiola::splash::{self, DataSet, Options, Shared};
use hemiola::{Deployment, Error};

const FEATURES: u32 = 50;

/// Example `i` of a data set: three features that are there, and a label by whether more of them are even than odd.
fn example(i: u32) -> ([u32; 3], f32) {
    let features = [i % FEATURES, i / 7 % FEATURES, i / 3 % FEATURES];
    (features, if features.iter().filter(|k| *k % 2 == 0).count() >= 2 { 1.0 } else { -1.0 })
}

fn main() -> Result<(), Error> {
    let deployment = match std::env::args().nth(1).as_deref() {
        Some("tcp") => Deployment::tcp(2, 1),
        Some("sim") => Deployment::sim(4),
        _ => Deployment::threads(4),
    };
    let examples: Vec<_> = (0..20_000).map(example).collect();
    let mut shared = Shared::default();
    let (t, w) = (shared.scalar("t", 0.0), shared.array("w", FEATURES as usize));

    let options = Options { synchronisations: 4, ..Options::default() };
    let trained = splash::run(&deployment, &options, &shared, &examples, |set: &mut DataSet<([u32; 3], f32), ()>| {
        for _ in 0..3 {
            // What a sequential program does with one example; `weight` says how many times in a row it occurs.
            set.run(|(features, label), weight, shared, _| {
                shared.add(t, weight);
                let step = (weight / shared.get(t).sqrt()).min(1.0);
                let margin = label * shared.dot_sparse(w, 0, features, &[1.0; 3]);
                shared.multiply(w, 1.0 - 1e-4 * step);
                let slope = label / (1.0 + margin.exp());
                shared.add_scaled_sparse(w, 0, step as f32 * slope, features, &[1.0; 3]);
            })?;
        }
        let wrong = set.reduce(
            |(features, label), shared, _| {
                let margin = label * shared.dot_sparse(w, 0, features, &[1.0; 3]);
                [f64::from(margin <= 0.0), 1.0]
            },
            |a, b| [a[0] + b[0], a[1] + b[1]],
        )?;
        Ok(format!("{:?}", wrong.map(|[wrong, all]| wrong / all)).into_bytes())
    })?;
    let wrong = String::from_utf8_lossy(&trained.outcome.results[0]).into_owned();
    eprintln!("w[0] = {}, wrong: {wrong}", trained.shared.get(w.at(0)));
    let share: f64 = wrong.trim_start_matches("Some(").trim_end_matches(')').parse().expect("a number");
    assert!(share < 0.02, "{share} of the examples are on the wrong side");
    Ok(())
}
