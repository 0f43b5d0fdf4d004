//! The step on a dual variable and both objectives written as the formulas are, which kernels and solver are tested
//! against.

/// An example: its label and its features.
pub(super) struct Plain {
    pub(super) label: usize,
    pub(super) features: Vec<f64>,
}

/// The probabilities that make `Σ p ln p − p·z + q/2 ‖p − p°‖²` least, by bisection.
pub(super) fn step(scores: &[f64], before: &[f64], q: f64) -> Vec<f64> {
    let bisect = |mut low: f64, mut high: f64, above: &dyn Fn(f64) -> bool| {
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            (low, high) = if above(middle) { (low, middle) } else { (middle, high) };
        }
        0.5 * (low + high)
    };
    // By logarithms, because most probabilities are close to nothing.
    let at = |nu: f64| -> Vec<f64> {
        let root = |(z, p): (&f64, &f64)| bisect(-250.0, 10.0, &|t: f64| t + q * t.exp() - z - q * p + nu > 0.0).exp();
        scores.iter().zip(before).map(root).collect()
    };
    at(bisect(-1e3, 1e3, &|nu| at(nu).iter().sum::<f64>() < 1.0))
}

/// The scores of all classes; `weights[feature][class]`.
pub(super) fn scores(weights: &[Vec<f64>], example: &Plain) -> Vec<f64> {
    let score = |class: usize| example.features.iter().zip(weights).map(|(x, row)| x * row[class]).sum();
    (0..weights[0].len()).map(score).collect()
}

/// The mean loss and `λ/2` times the squared weights.
pub(super) fn objective(weights: &[Vec<f64>], examples: &[Plain], lambda: f64) -> f64 {
    let loss = |example: &Plain| {
        let scores = scores(weights, example);
        scores.iter().map(|score| score.exp()).sum::<f64>().ln() - scores[example.label]
    };
    let squares: f64 = weights.iter().flatten().map(|weight| weight * weight).sum();
    examples.iter().map(loss).sum::<f64>() / examples.len() as f64 + 0.5 * lambda * squares
}

/// `1/n Σ H(p_i) − λ/2 ‖W‖²`, and the weights `W = 1/(λn) Σ (e_label − p_i) x_iᵀ`.
pub(super) fn dual(duals: &[Vec<f64>], examples: &[Plain], lambda: f64) -> (f64, Vec<Vec<f64>>) {
    let (count, classes) = (examples.len() as f64, duals[0].len());
    let mut weights = vec![vec![0.0; classes]; examples[0].features.len()];
    for (example, dual) in examples.iter().zip(duals) {
        for (row, x) in weights.iter_mut().zip(&example.features) {
            for class in 0..classes {
                let pull = f64::from(u8::from(class == example.label)) - dual[class];
                row[class] += pull * x / (lambda * count);
            }
        }
    }
    let entropy: f64 = duals.iter().flatten().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum();
    let squares: f64 = weights.iter().flatten().map(|weight| weight * weight).sum();
    (entropy / count - 0.5 * lambda * squares, weights)
}

/// Dual coordinate ascent, one example after the other: the dual objective and the weights after so many epochs. The
/// number of examples has no factor of 7 or more.
pub(super) fn ascend(examples: &[Plain], classes: usize, lambda: f64, epochs: usize) -> (f64, Vec<Vec<f64>>) {
    let label = |example: &Plain| (0..classes).map(|class| f64::from(u8::from(class == example.label))).collect();
    let mut duals: Vec<Vec<f64>> = examples.iter().map(label).collect();
    let (_, mut weights) = dual(&duals, examples, lambda);
    let scale = 1.0 / (lambda * examples.len() as f64);
    for epoch in 0..epochs {
        // Another order each time: always the same one would take many more epochs.
        let stride = [1, 7, 11, 13, 17, 19, 23, 29][epoch % 8];
        for at in 0..examples.len() {
            let at = (at * stride + epoch) % examples.len();
            let (example, dual) = (&examples[at], &mut duals[at]);
            let q = scale * example.features.iter().map(|x| x * x).sum::<f64>();
            let after = step(&scores(&weights, example), dual, q);
            for (row, x) in weights.iter_mut().zip(&example.features) {
                (0..classes).for_each(|class| row[class] += scale * (dual[class] - after[class]) * x);
            }
            *dual = after;
        }
    }
    dual(&duals, examples, lambda)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_best_among_its_neighbours() {
        let (scores, before, q) = ([0.5, -1.0, 2.0], [0.7, 0.2, 0.1], 3.0);
        let value = |p: &[f64]| -> f64 {
            (0..3).map(|k| p[k] * p[k].ln() - p[k] * scores[k] + 0.5 * q * (p[k] - before[k]).powi(2)).sum()
        };
        let best = step(&scores, &before, q);
        assert!((best.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        for (more, less) in [(0, 1), (1, 2), (2, 0), (1, 0), (2, 1), (0, 2)] {
            let mut other = best.clone();
            other[more] += 1e-4;
            other[less] -= 1e-4;
            assert!(value(&best) < value(&other), "{best:?} against {other:?}");
        }
    }
}
