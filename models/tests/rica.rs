//! Reconstruction ICA on tables: under Bsp the bits of a plain sequential program, learning under every model, and kept.

use hemiola::{Consistency, Deployment, Init};
use hemiola_models::images::Image;
use hemiola_models::patches::Patches;
use hemiola_models::rica::kernel::Scratch;
use hemiola_models::rica::model::RicaModel;
use hemiola_models::rica::train::{Arranged, Config, TrainError, clocks_per_epoch, train};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::json;

const WORKERS: u32 = 3;
const SIDE: usize = 4;

/// Patches of images of bars at random places, whose independent components are bars.
fn patches() -> Patches {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
    let (width, height) = (60, 50);
    let mut pixels = vec![40u8; width * height];
    for _ in 0..160 {
        let mut below = |end: usize| random.next_u64() as usize % end;
        let (x, y, upright) = (below(width - 6), below(height - 6), below(2) == 0);
        for step in 0..6 {
            let at = if upright { (y + step) * width + x } else { y * width + x + step };
            pixels[at] = pixels[at].saturating_add(70);
        }
    }
    Patches::draw(&[Image { width, pixels }], SIDE, 1000, 2).expect("large enough")
}

fn config() -> Config {
    Config { features: 20, batch: 30, epochs: 3, consistency: Consistency::Bsp, ..Config::default() }
}

/// AdaRevision without delay, as its formula is written, on the gradients of all workers in their order.
fn sequential(config: &Config, data: &Arranged) -> Vec<f32> {
    let size = SIDE * SIDE;
    let bound = (3.0 / config.features as f32).sqrt();
    let init = Init::Uniform { seed: config.seed, low: -bound, high: bound, columns: size as u32, rest: 0.0 };
    let mut filters = vec![0.0f32; config.features * size];
    filters.chunks_mut(size).zip(0..).for_each(|(row, id)| init.fill(id, row));
    let mut sums = vec![0.0f32; filters.len()];
    let (mut z, mut greatest) = (vec![1.0f32; filters.len()], vec![1.0f32; filters.len()]);
    for _ in 0..config.epochs {
        for clock in 0..clocks_per_epoch(1000, WORKERS as usize, config.batch) {
            let (read, sums_read) = (filters.clone(), sums.clone());
            for worker in 0..WORKERS as usize {
                let mut gradient = Vec::new();
                let patches = data.batch(worker, clock, config.batch);
                Scratch::default().gradient(&read, patches, size, config.sparsity, &mut gradient);
                for i in 0..filters.len() {
                    let (g, missed) = (gradient[i], sums[i] - sums_read[i]);
                    let before = config.rate / greatest[i].sqrt();
                    z[i] += g * g + 2.0 * g * missed;
                    greatest[i] = greatest[i].max(z[i]);
                    let step = config.rate / greatest[i].sqrt();
                    filters[i] += -step * g + (before - step) * missed;
                    sums[i] += g;
                }
            }
        }
    }
    filters
}

#[test]
fn under_bsp_all_drivers_give_what_a_sequential_program_does() {
    let (config, data) = (config(), Arranged::new(&patches(), WORKERS).expect("enough"));
    let threads = train(&config, &Deployment::threads(WORKERS), None, &data, |_| {}).expect("trained");
    let simulated = train(&config, &Deployment::sim(WORKERS), None, &data, |_| {}).expect("trained");
    assert_eq!(threads.filters, simulated.filters);
    let plain = sequential(&config, &data);
    assert_eq!(threads.filters.len(), plain.len());
    for (found, expected) in threads.filters.iter().zip(&plain) {
        assert!((found - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{found} against {expected}");
    }
}

#[test]
fn less_is_lost_under_every_consistency_model() {
    let data = Arranged::new(&patches(), WORKERS).expect("enough");
    for consistency in [Consistency::Bsp, Consistency::Ssp { staleness: 1 }, Consistency::Essp { staleness: 2 }] {
        let config = Config { consistency, epochs: 6, ..config() };
        let trained = train(&config, &Deployment::threads(WORKERS), None, &data, |_| {}).expect("trained");
        let objectives: Vec<f64> = trained.epochs.iter().map(|epoch| epoch.quality.test_objective).collect();
        assert!(objectives[5] < objectives[0], "{consistency:?}: {objectives:?}");
    }
}

#[test]
fn a_model_comes_back_as_it_was_saved() {
    let (config, patches) = (config(), patches());
    let data = Arranged::new(&patches, WORKERS).expect("enough");
    let trained = train(&config, &Deployment::threads(WORKERS), None, &data, |_| {}).expect("trained");
    let model = RicaModel {
        side: SIDE,
        filters: trained.filters,
        whitening: data.whitening.clone(),
        config: json!({}),
        metrics: json!({}),
    };
    let directory = tempfile::tempdir().expect("a place");
    let path = directory.path().join("bars.model");
    model.save(&path).expect("saved");
    let again = RicaModel::load(&path).expect("loaded");
    assert_eq!(again, model);
    let sums = again.evaluate(&patches);
    assert!(sums.lost < sums.energy && sums.lost > 0.0, "{sums:?}");
}

#[test]
fn what_cannot_be_trained_is_said_in_a_sentence() {
    let data = Arranged::new(&patches(), WORKERS).expect("enough");
    let fails = |config: Config| {
        train(&config, &Deployment::threads(WORKERS), None, &data, |_| {}).expect_err("it cannot be").to_string()
    };
    assert_eq!(fails(Config { batch: 0, ..config() }), "the batch must be at least 1");
    assert_eq!(fails(Config { rate: -1.0, ..config() }), "the step size must be a number above zero, not -1");
    let diverged = fails(Config { rate: 1e20, ..config() });
    assert!(diverged.starts_with("the objective is no longer a number in epoch 1"), "{diverged}");
    let few = Patches { side: SIDE, numbers: vec![0.5; 5 * SIDE * SIDE] };
    let error = Arranged::new(&few, WORKERS).expect_err("too few");
    assert!(matches!(error, TrainError::TooFew { patches: 5 }), "{error}");
}
