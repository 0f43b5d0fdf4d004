//! Fits one softmax regression with an L2 penalty by dual coordinate ascent and prints the seconds and the gap of every
//! epoch, to tune and to time.
//!
//! `cargo run --release -p hemiola-models --example l2mlr_lab -- TRAIN [key=value ...]`, where the file is of any format
//! that the readers know. Prints a line of JSON for each epoch, and one at the end. Keys: `lambda`, `gap`, `epochs`, `bias`
//! (0 or 1), `workers`, `seed`.
#![expect(clippy::print_stdout, reason = "a program that prints a table")]

#[path = "lab/options.rs"]
mod options;

use options::Options;
use std::error::Error;

use hemiola_models::examples::{Examples, Options as ReadOptions};
use hemiola_models::l2mlr::solver::{Config, fit};
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let find = |key: &str| -> Option<f64> { options.find(key) };
    let get = |key: &str, default: f64| options.get(key, default);
    let examples = Examples::read(&options.files, &ReadOptions::default())?;
    let usual = Config::default();
    let config = Config {
        lambda: find("lambda"),
        bias: get("bias", 1.0) != 0.0,
        gap: get("gap", usual.gap),
        epochs: get("epochs", f64::from(usual.epochs)) as u32,
        seed: get("seed", 1.0) as u64,
    };
    let fit = fit(&examples, &config, get("workers", 1.0) as u32, |progress| println!("{}", json!(progress)));
    println!(
        "{}",
        json!({ "epochs": fit.epochs, "objective": fit.objective, "gap": fit.gap, "loss": fit.loss,
        "accuracy": fit.accuracy, "converged": fit.converged, "lambda": fit.lambda })
    );
    Ok(())
}
