//! Fits one logistic regression with an L1 penalty and prints the seconds and the objective of every pass, to tune and
//! to time.
//!
//! `cargo run --release -p hemiola-models --example l1lr_lab -- TRAIN [key=value ...]`, where the file is of any format that
//! the readers know. Prints a line of JSON for each pass; the seconds, of the clock and of the processors, include turning
//! the examples into columns. Keys: `lambda`, `l2`, `bias` (0 or 1), `workers`, `delay`, `blocks`, `tolerance`,
//! `violation`, `passes`, `seed`.
#![expect(clippy::print_stdout, reason = "a program that prints a table")]

#[path = "lab/options.rs"]
mod options;

use options::Options;
use std::error::Error;

use hemiola_models::examples::{Examples, Options as ReadOptions};
use hemiola_models::l1lr::blocks::Cut;
use hemiola_models::l1lr::prox::Penalty;
use hemiola_models::l1lr::solver::{Config, Solver};
use hemiola_models::l1lr::stopping::Stopping;
use serde_json::json;

/// Seconds that all processors together have spent on this program: exact for one thread, to a hundredth for more.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let first_thread = text.split(' ').next().and_then(|time| time.parse::<f64>().ok()).unwrap_or(0.0) / 1e9;
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = text.rsplit(") ").next().unwrap_or_default();
    let ticks: f64 = after_name.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    first_thread.max(ticks / 100.0 - 0.02)
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let find = |key: &str| -> Option<f64> { options.find(key) };
    let get = |key: &str, default: f64| options.get(key, default);
    let examples = Examples::read(&options.files, &ReadOptions::default())?;
    let usual = Stopping::default();
    let config = Config {
        bias: get("bias", 0.0) != 0.0,
        blocks: find("blocks").map_or(Cut::Automatic, |blocks| Cut::Into(blocks as u32)),
        delay: find("delay").map(|delay| delay as u32),
        stopping: Stopping {
            tolerance: get("tolerance", usual.tolerance),
            violation: get("violation", usual.violation),
            passes: get("passes", f64::from(usual.passes)) as u32,
        },
        seed: get("seed", 1.0) as u64,
    };
    let penalty = Penalty { l1: get("lambda", 1e-5), l2: get("l2", 0.0), non_negative: false };
    let spent = cpu_seconds();
    let mut solver = Solver::new(&examples, 1, penalty.l1, get("workers", 1.0) as u32, &config);
    let fit = solver.fit(penalty, |progress| {
        let line = json!({ "pass": progress.pass, "seconds": progress.seconds, "cpu": cpu_seconds() - spent,
            "objective": progress.objective, "nonzeros": progress.nonzeros });
        println!("{line}");
    })?;
    println!(
        "{}",
        json!({ "pass": fit.passes, "cpu": cpu_seconds() - spent, "objective": fit.objective, "seconds": null,
        "violation": fit.violation, "converged": fit.converged })
    );
    Ok(())
}
