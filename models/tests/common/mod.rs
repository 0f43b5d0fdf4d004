//! Examples that several tests learn from.

use hemiola_models::Names;
use hemiola_models::examples::Examples;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Sparse examples whose class is the one whose weights, drawn at random, score highest.
pub(crate) struct Separable {
    pub(crate) seed: u64,
    pub(crate) classes: usize,
    pub(crate) features: u32,
    /// The part of the features that an example has.
    pub(crate) density: f32,
    /// The value of a feature, from a number drawn between 0 and 1.
    pub(crate) value: fn(f32) -> f32,
}

impl Separable {
    pub(crate) fn examples(&self, count: usize) -> Examples {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let mut draw = move || (f64::from(random.next_u32()) / f64::from(u32::MAX)) as f32;
        let weights: Vec<f32> = (0..self.features as usize * self.classes).map(|_| draw() - 0.5).collect();
        let mut classes = Names::default();
        for class in 0..self.classes {
            classes.intern(&format!("class {class}")).expect("room for it");
        }
        let mut examples = Examples::new(classes);
        for _ in 0..count {
            let mut entries: Vec<(u32, f32)> = Vec::new();
            for feature in 0..self.features {
                if draw() < self.density {
                    entries.push((feature, (self.value)(draw())));
                }
            }
            let weight = |feature: u32, class: usize| weights[feature as usize * self.classes + class];
            let score = |class: usize| -> f32 { entries.iter().map(|&(f, x)| x * weight(f, class)).sum() };
            let best = (0..self.classes).max_by(|&a, &b| score(a).total_cmp(&score(b))).expect("classes");
            examples.push(best as u32, entries);
        }
        examples
    }
}
