//! OWL-QN, the orthant-wise limited-memory quasi-Newton method of Andrew and Gao, written plainly: the kind of method that
//! the Parameter Server paper compares its own with.
//!
//! It minimises a smooth function plus `Σ_j l1_j |x_j|`. Where no coordinate changes its sign the sum is smooth, too, so a
//! step goes along a quasi-Newton direction of the smooth function, within the orthant that the steepest descent leads
//! into, and is shortened until the objective has fallen enough.

use crate::curvature::{Curvature, difference, dot};

/// How long to go on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Pairs of steps and changes of the gradient that stand for the curvature.
    pub memory: usize,
    /// Steps at most.
    pub iterations: u32,
    /// It ends when a step makes the objective fall by less than this part of it.
    pub tolerance: f64,
}

/// The least part of what the slope promises that a step must gain.
const GAIN: f64 = 1e-4;
/// How many times a step is halved before it is given up.
const HALVINGS: u32 = 40;

/// Minimises from a start; `evaluate` gives the smooth function and its gradient, `l1` what a coordinate's size costs.
///
/// # Errors
/// Those of `evaluate`.
pub fn minimise<E>(
    start: Vec<f64>,
    l1: impl Fn(usize) -> f64,
    rules: Rules,
    mut evaluate: impl FnMut(&[f64]) -> Result<(f64, Vec<f64>), E>,
) -> Result<Vec<f64>, E> {
    let cost = |x: &[f64]| x.iter().enumerate().map(|(j, x)| l1(j) * x.abs()).sum::<f64>();
    let mut x = start;
    let (smooth, mut gradient) = evaluate(&x)?;
    let mut objective = smooth + cost(&x);
    let mut curvature = Curvature::new(rules.memory);
    for _ in 0..rules.iterations {
        let steepest: Vec<f64> = (0..x.len()).map(|j| -pseudo_gradient(x[j], gradient[j], l1(j))).collect();
        let mut direction = curvature.inverse_times(&steepest);
        for (along, &down) in direction.iter_mut().zip(&steepest) {
            if *along * down <= 0.0 {
                *along = 0.0;
            }
        }
        let orthant: Vec<f64> =
            x.iter().zip(&steepest).map(|(&x, &down)| if x == 0.0 { sign(down) } else { sign(x) }).collect();
        let mut length = if curvature.is_unknown() { 1.0 / norm(&steepest).max(f64::MIN_POSITIVE) } else { 1.0 };
        let mut found = None;
        for _ in 0..HALVINGS {
            let next: Vec<f64> = (0..x.len())
                .map(|j| x[j] + length * direction[j])
                .zip(&orthant)
                .map(|(x, &orthant)| if sign(x) == orthant { x } else { 0.0 })
                .collect();
            let promised: f64 = (0..x.len()).map(|j| steepest[j] * (next[j] - x[j])).sum();
            let (smooth, gradient) = evaluate(&next)?;
            let value = smooth + cost(&next);
            if value <= objective - GAIN * promised {
                found = Some((next, gradient, value));
                break;
            }
            length /= 2.0;
        }
        let Some((next, next_gradient, value)) = found else { break };
        curvature.learn(difference(&next, &x), difference(&next_gradient, &gradient));
        let fallen = objective - value;
        (x, gradient, objective) = (next, next_gradient, value);
        if fallen <= rules.tolerance * objective.abs() {
            break;
        }
    }
    Ok(x)
}

/// The slope of the whole objective: at zero the one-sided slope along which it falls, or zero.
fn pseudo_gradient(x: f64, slope: f64, l1: f64) -> f64 {
    if x != 0.0 {
        slope + l1 * sign(x)
    } else if slope + l1 < 0.0 {
        slope + l1
    } else if slope - l1 > 0.0 {
        slope - l1
    } else {
        0.0
    }
}

/// The sign of a number, that of zero being zero.
fn sign(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.signum() }
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::prox::Penalty;
    use super::super::reference::tests::examples;
    use super::super::share::Share;
    use super::super::solver::{Config, Solver};
    use super::super::stopping::Stopping;
    use super::*;
    use std::convert::Infallible;

    const RULES: Rules = Rules { memory: 10, iterations: 500, tolerance: 1e-12 };

    #[test]
    fn of_separate_parabolas_it_finds_what_the_proximal_operator_says() {
        // Σ c_j/2 (x_j − p_j)² + l1_j |x_j|.
        let (centres, curvatures) = ([3.0, -2.0, 0.1, -0.4, 5.0], [1.0, 0.2, 4.0, 1.0, 7.0]);
        let l1 = |j: usize| if j == 4 { 0.0 } else { 0.5 };
        let evaluate = |x: &[f64]| {
            let away: Vec<f64> = difference(x, &centres);
            let gradient: Vec<f64> = away.iter().zip(curvatures).map(|(away, curvature)| away * curvature).collect();
            Ok::<_, Infallible>((0.5 * dot(&away, &gradient), gradient))
        };
        let Ok(found) = minimise(vec![0.0; 5], l1, RULES, evaluate);
        for j in 0..5 {
            let penalty = Penalty { l1: l1(j), l2: 0.0, non_negative: false };
            let expected = penalty.prox(centres[j], curvatures[j]);
            assert!((found[j] - expected).abs() < 1e-4, "coordinate {j}: {} instead of {expected}", found[j]);
            assert_eq!(found[j] == 0.0, expected == 0.0, "coordinate {j}");
        }
    }

    #[test]
    fn it_finds_the_optimum_that_the_solver_finds() {
        let examples = examples(300, 40, 7);
        let penalty = Penalty { l1: 0.01, l2: 0.0, non_negative: false };
        let stopping = Stopping { tolerance: 1e-12, violation: 1e-7, passes: 5000 };
        let config = Config { bias: false, stopping, ..Config::default() };
        let fit = Solver::new(&examples, 1, penalty.l1, 1, &config).fit(penalty, |_| {}).expect("in memory");
        let features: Vec<u32> = (0..40).collect();
        let count = examples.len() as f64;
        let mut evaluations = 0;
        let evaluate = |x: &[f64]| {
            evaluations += 1;
            let mut share = Share::new(&examples, 0..examples.len(), 1);
            share.change(&(0..).zip(x.iter().copied()).collect::<Vec<_>>());
            let gradient = share.slopes(&features, 0.0).iter().map(|sum| sum.slope / count).collect();
            Ok::<_, Infallible>((share.loss() / count, gradient))
        };
        let Ok(found) = minimise(vec![0.0; 40], |_| penalty.l1, RULES, evaluate);
        let mut share = Share::new(&examples, 0..examples.len(), 1);
        share.change(&(0..).zip(found.iter().copied()).collect::<Vec<_>>());
        let objective = share.loss() / count + found.iter().map(|&x| penalty.cost(x)).sum::<f64>();
        assert!((objective / fit.objective - 1.0).abs() < 1e-6, "{objective}, the solver {}", fit.objective);
        assert_eq!(found.iter().filter(|x| **x != 0.0).count(), fit.weights.len());
        assert!(evaluations < 200, "{evaluations} evaluations");
    }
}
