//! Trains one softmax regression and prints the seconds and the quality of every epoch, to tune and to time.
//!
//! `cargo run --release -p hemiola-models --example mlr_lab -- TRAIN [TEST] [key=value ...]`, where the files are of any
//! format that the readers know. Prints a line of JSON for each epoch, with the exact objective of the training set, which
//! is evaluated outside of the seconds; and at the end one with the error on `TEST`. Keys: `rate`, `step` (decay,
//! adaptive, constant, time, sqrt), `decay`, `damping`, `l2`, `batch`, `epochs`, `clocks`, `workers`, `seed`, `bsp` (0 or
//! 1), `staleness`, and `label`, the position of the label.
#![expect(clippy::print_stdout, reason = "a program that prints a table")]

#[path = "lab/options.rs"]
mod options;

use options::Options;
use std::error::Error;

use hemiola::{Consistency, Deployment};
use hemiola_models::StepSize;
use hemiola_models::examples::{Examples, LabelColumn, Options as ReadOptions};
use hemiola_models::mlr::model::MlrModel;
use hemiola_models::mlr::train::{Arranged, Config, train};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let label = options.find("label").map_or(LabelColumn::Guess, LabelColumn::Position);
    let reading = ReadOptions { label, ..ReadOptions::default() };
    let examples = Examples::read(&options.files[..1.min(options.files.len())], &reading)?;
    let (config, workers) = (config(&options), options.get("workers", 1));
    let data = Arranged::new(&examples, Some(&examples), workers, &config)?;
    let trained = train(&config, &Deployment::threads(workers), &data, |epoch| {
        let objective = epoch.quality.test_loss.map(|loss| loss + epoch.quality.penalty);
        let error = epoch.quality.test_accuracy.map(|accuracy| 1.0 - accuracy);
        let line = json!({ "epoch": epoch.epoch, "seconds": epoch.seconds, "objective": objective,
            "train_error": error, "met": epoch.quality.objective });
        println!("{line}");
    })?;
    if let Some(test) = options.files.get(1) {
        let test = Examples::read_known(&[test], &reading, &examples.classes)?;
        let model = MlrModel::new(examples.classes.clone(), &trained.weights, Value::Null, Value::Null);
        let evaluation = model.evaluate(&test);
        println!("{}", json!({ "test_loss": evaluation.loss(), "test_error": 1.0 - evaluation.accuracy() }));
    }
    Ok(())
}

fn config(options: &Options) -> Config {
    let defaults = Config::default();
    let rate = options.get("rate", defaults.step.at_epoch(0));
    let step = match options.find::<String>("step").as_deref() {
        Some("constant") => StepSize::Constant { rate },
        Some("time") => StepSize::InverseTime { rate },
        Some("sqrt") => StepSize::InverseSqrt { rate },
        Some("adaptive") => StepSize::Adaptive { rate, damping: options.get("damping", 0.1) },
        _ => StepSize::Decay { rate, factor: options.get("decay", 0.75) },
    };
    let consistency = match options.get("bsp", 0) {
        0 => Consistency::Essp { staleness: options.get("staleness", 2) },
        _ => Consistency::Bsp,
    };
    Config {
        l2: options.get("l2", defaults.l2),
        batch: options.get("batch", defaults.batch),
        step,
        epochs: options.get("epochs", defaults.epochs),
        consistency,
        clocks_per_epoch: options.get("clocks", defaults.clocks_per_epoch),
        seed: options.get("seed", defaults.seed),
        ..defaults
    }
}
