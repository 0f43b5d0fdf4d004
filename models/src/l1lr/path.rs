//! The regularisation path: a falling sequence of penalties, each fitted from the weights of the one before.

use crate::examples::{Example, Examples};

/// The least `l1` at which no feature has a weight: the greatest slope of the mean loss where all weights are zero, and a
/// bias is what the classes' shares say.
#[must_use]
pub fn lambda_max(examples: &Examples, positive: u32, bias: bool) -> f64 {
    let positives = examples.labels().iter().filter(|label| **label == positive).count();
    let mut slopes = Slopes::new(examples.features(), bias.then_some((positives, examples.len())));
    for (row, &label) in examples.labels().iter().enumerate() {
        slopes.add(examples.example(row), label == positive);
    }
    slopes.greatest() / examples.len() as f64
}

/// The slopes of the loss where all weights are zero.
pub(super) struct Slopes {
    slopes: Vec<f64>,
    /// Of the class that is predicted, for every example.
    probability: f64,
}

impl Slopes {
    /// Of no examples yet; with a bias, so many of them are of that class and so many there are.
    pub(super) fn new(features: usize, bias: Option<(usize, usize)>) -> Self {
        let probability = bias.map_or(0.5, |(positive, all)| positive as f64 / all as f64);
        Self { slopes: vec![0.0; features], probability }
    }

    pub(super) fn add(&mut self, example: Example<'_>, positive: bool) {
        let slope = self.probability - f64::from(u8::from(positive));
        for (&feature, &value) in example.columns.iter().zip(example.values) {
            self.slopes[feature as usize] += f64::from(value) * slope;
        }
    }

    /// The one furthest from zero.
    pub(super) fn greatest(&self) -> f64 {
        self.slopes.iter().fold(0.0f64, |max, slope| max.max(slope.abs()))
    }
}

/// So many penalties below `max` down to `min`, each the same part of the one before; only `min` if that is not below.
#[must_use]
pub fn lambdas(max: f64, min: f64, count: u32) -> Vec<f64> {
    if max <= min || count <= 1 {
        return vec![min];
    }
    let part = (min / max).ln() / f64::from(count);
    (1..count).map(|step| max * (part * f64::from(step)).exp()).chain([min]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::prox::Penalty;
    use super::super::reference::tests::examples;
    use super::super::solver::{Config, Solver};
    use super::*;

    #[test]
    fn penalties_fall_by_the_same_part_to_the_last() {
        let lambdas = lambdas(8.0, 1.0, 3);
        assert_eq!(lambdas.len(), 3);
        lambdas.iter().zip([4.0, 2.0, 1.0]).for_each(|(found, expected)| assert!((found - expected).abs() < 1e-12));
        assert_eq!((super::lambdas(1.0, 2.0, 5), super::lambdas(4.0, 2.0, 1)), (vec![2.0], vec![2.0]));
    }

    #[test]
    fn the_first_weight_comes_right_below_the_greatest_penalty() {
        let examples = examples(200, 12, 11);
        for bias in [false, true] {
            let max = lambda_max(&examples, 1, bias);
            let config = Config { bias, ..Config::default() };
            let nonzeros = |l1: f64| {
                let penalty = Penalty { l1, ..Penalty::NONE };
                Solver::new(&examples, 1, l1, 1, &config).fit(penalty, |_| {}).unwrap().weights.len()
            };
            assert_eq!((nonzeros(max * 1.001), nonzeros(max * 0.95) > 0), (0, true), "bias {bias}");
        }
    }
}
