//! The objective, its gradient and one step written as the formulas are, which the kernels are tested against.

/// An example: its label, and its features with the bias as the last.
pub(super) struct Plain {
    pub(super) label: usize,
    pub(super) features: Vec<f64>,
}

/// The scores of all classes; `weights[feature][class]`.
fn scores(weights: &[Vec<f64>], example: &Plain) -> Vec<f64> {
    let classes = weights[0].len();
    (0..classes).map(|class| example.features.iter().zip(weights).map(|(x, row)| x * row[class]).sum()).collect()
}

/// `exp(score) / Σ exp(score)`.
pub(super) fn probabilities(weights: &[Vec<f64>], example: &Plain) -> Vec<f64> {
    let exponentials: Vec<f64> = scores(weights, example).iter().map(|score| score.exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    exponentials.iter().map(|exponential| exponential / sum).collect()
}

/// `ln Σ exp(score) - score(label)`.
pub(super) fn loss(weights: &[Vec<f64>], example: &Plain) -> f64 {
    let scores = scores(weights, example);
    scores.iter().map(|score| score.exp()).sum::<f64>().ln() - scores[example.label]
}

/// The mean loss and `l2 / 2` times the squared weights, the last row excepted.
pub(super) fn objective(weights: &[Vec<f64>], examples: &[Plain], l2: f64) -> f64 {
    let squares: f64 = weights[..weights.len() - 1].iter().flatten().map(|weight| weight * weight).sum();
    examples.iter().map(|example| loss(weights, example)).sum::<f64>() / examples.len() as f64 + 0.5 * l2 * squares
}

/// `Σ (p - 1[label]) x / n + l2 w`.
pub(super) fn gradient(weights: &[Vec<f64>], examples: &[Plain], l2: f64) -> Vec<Vec<f64>> {
    let regularised = weights.len() - 1;
    let mut gradient: Vec<Vec<f64>> = weights
        .iter()
        .enumerate()
        .map(|(feature, row)| row.iter().map(|w| if feature < regularised { l2 * w } else { 0.0 }).collect())
        .collect();
    for example in examples {
        let mut errors = probabilities(weights, example);
        errors[example.label] -= 1.0;
        for (row, x) in gradient.iter_mut().zip(&example.features) {
            row.iter_mut().zip(&errors).for_each(|(g, error)| *g += error * x / examples.len() as f64);
        }
    }
    gradient
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn the_gradient_is_that_of_finite_differences() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut draw = || f64::from(random.next_u32()) / f64::from(u32::MAX) * 2.0 - 1.0;
        let examples: Vec<Plain> = (0..7)
            .map(|label| Plain { label: label % 3, features: vec![draw(), draw(), draw(), draw(), 1.0] })
            .collect();
        let mut weights: Vec<Vec<f64>> = (0..5).map(|_| vec![draw(), draw(), draw()]).collect();
        let expected = gradient(&weights, &examples, 0.3);
        for feature in 0..5 {
            for class in 0..3 {
                let weight = weights[feature][class];
                let mut at = |weight: f64| {
                    weights[feature][class] = weight;
                    objective(&weights, &examples, 0.3)
                };
                let slope = (at(weight + 1e-5) - at(weight - 1e-5)) / 2e-5;
                at(weight);
                let found = expected[feature][class];
                assert!((slope - found).abs() < 1e-8, "feature {feature}, class {class}: {found} instead of {slope}");
            }
        }
    }
}
