//! What the last steps of a quasi-Newton method say of the curvature: the memory of L-BFGS and its two loops.

use std::collections::VecDeque;

/// The last steps, each with the change of the gradient that it made.
#[derive(Clone, Debug)]
pub(crate) struct Curvature {
    pairs: VecDeque<(Vec<f64>, Vec<f64>)>,
    memory: usize,
}

impl Curvature {
    /// Remembers so many steps.
    pub(crate) fn new(memory: usize) -> Self {
        Self { pairs: VecDeque::with_capacity(memory + 1), memory }
    }

    /// Whether nothing is known yet.
    pub(crate) fn is_unknown(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Takes notice of a step and the change of the gradient along it, unless the function is not convex there.
    pub(crate) fn learn(&mut self, step: Vec<f64>, change: Vec<f64>) {
        if dot(&step, &change) > f64::MIN_POSITIVE {
            self.pairs.push_back((step, change));
            if self.pairs.len() > self.memory {
                self.pairs.pop_front();
            }
        }
    }

    /// A vector times the approximate inverse Hessian.
    pub(crate) fn inverse_times(&self, vector: &[f64]) -> Vec<f64> {
        let mut result = vector.to_vec();
        let mut shares = Vec::with_capacity(self.pairs.len());
        for (step, change) in self.pairs.iter().rev() {
            let share = dot(step, &result) / dot(step, change);
            result.iter_mut().zip(change).for_each(|(result, change)| *result -= share * change);
            shares.push(share);
        }
        if let Some((step, change)) = self.pairs.back() {
            let scale = dot(step, change) / dot(change, change);
            result.iter_mut().for_each(|result| *result *= scale);
        }
        for ((step, change), share) in self.pairs.iter().zip(shares.iter().rev()) {
            let rest = share - dot(change, &result) / dot(step, change);
            result.iter_mut().zip(step).for_each(|(result, step)| *result += rest * step);
        }
        result
    }
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub(crate) fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_parabola_it_knows_the_directions_it_has_been_shown() {
        let hessian = |x: &[f64]| vec![2.0 * x[0] + x[1], x[0] + 3.0 * x[1]];
        let mut curvature = Curvature::new(2);
        assert!(curvature.is_unknown());
        for step in [vec![1.0, 0.0], vec![-0.5, 1.0]] {
            let change = hessian(&step);
            curvature.learn(step.clone(), change.clone());
            let found = curvature.inverse_times(&change);
            assert!(difference(&found, &step).iter().all(|away| away.abs() < 1e-12), "{found:?} and not {step:?}");
        }
        curvature.learn(vec![1.0, 0.0], vec![-1.0, 0.0]);
        assert_eq!(curvature.pairs.len(), 2);
        assert_eq!(curvature.pairs[1].0, [-0.5, 1.0], "where it bends down nothing is learnt");
    }
}
