//! Learns one dictionary and prints the seconds and the objective of every epoch, to tune and to time.
//!
//! `cargo run --release -p hemiola-models --example sc_lab -- IMAGES [key=value ...]`. Prints a line of JSON for each epoch,
//! and with `dump=DIR` leaves the patches there as `patches.f32`, and the atoms after each epoch as `atoms-N.f32`. Keys:
//! `patch`, `patches`, `atoms`, `sparsity`, `batch`, `rate`, `decay`, `epochs`, `workers`, `seed`.
#![expect(clippy::print_stdout, reason = "a program that prints a table")]

#[path = "lab/options.rs"]
mod options;

use options::Options;
use std::error::Error;
use std::fs;
use std::path::PathBuf;

use hemiola_models::StepSize;
use hemiola_models::images::Image;
use hemiola_models::patches::Patches;
use hemiola_models::sc::train::{Config, train};
use serde_json::json;

fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let get = |key: &str, default: f64| options.get(key, default);
    let usual = Config::default();
    let config = Config {
        atoms: get("atoms", usual.atoms as f64) as usize,
        sparsity: get("sparsity", f64::from(usual.sparsity)) as f32,
        batch: get("batch", f64::from(usual.batch)) as u32,
        step: StepSize::Decay { rate: get("rate", 0.3) as f32, factor: get("decay", 0.7) as f32 },
        epochs: get("epochs", f64::from(usual.epochs)) as u32,
        patience: None,
        seed: get("seed", 1.0) as u64,
    };
    let images = Image::read(&options.files)?;
    let patches = Patches::draw(&images, get("patch", 8.0) as usize, get("patches", 100_000.0) as usize, config.seed)?;
    let dump = options.find::<PathBuf>("dump");
    if let Some(folder) = &dump {
        fs::write(folder.join("patches.f32"), bytes(&patches.numbers))?;
    }
    let mut unwritten = None;
    train(&config, &patches, get("workers", 1.0) as u32, |progress, atoms| {
        println!("{}", json!(progress));
        if let Some(folder) = &dump {
            let written = fs::write(folder.join(format!("atoms-{}.f32", progress.epoch)), bytes(atoms));
            unwritten = unwritten.take().or(written.err());
        }
    })?;
    unwritten.map_or(Ok(()), |error| Err(error.into()))
}
