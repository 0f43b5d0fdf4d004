//! The paper's two algorithms, written plainly: what the solver is held against.

use std::collections::VecDeque;

use super::blocks::Blocks;
use super::prox::Penalty;
use super::share::{Share, Slope};

/// Algorithm 1: every worker computes the slopes of all features over its share, the servers add them up and take one
/// proximal step for all, as long as the bounds allow. Returns the weights after so many iterations.
#[must_use]
pub fn proximal_gradient(shares: &mut [Share<'_>], features: usize, penalty: Penalty, iterations: u32) -> Vec<f64> {
    let whole = Blocks::by_group((0..features as u32).collect(), |_| 0);
    delayed_blocks(shares, features, penalty, &whole, Delayed { delay: 0, rate: 1.0, iterations, seed: 0 })
}

/// How Algorithm 2 goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delayed {
    /// An iteration may miss the updates of so many before it.
    pub delay: usize,
    /// The step size `γ`, which a delay asks to be smaller than 1.
    pub rate: f64,
    /// How many times all blocks are taken.
    pub iterations: u32,
    /// Fixes the order of the blocks.
    pub seed: u64,
}

/// Algorithm 2, the delayed block proximal gradient method: an iteration computes slopes and bounds of one block at the
/// weights of `delay` iterations ago, and applies the generalised proximal operator to the block of the present ones.
/// The penalty is that of the sum of the losses. Returns the weights.
#[must_use]
pub fn delayed_blocks(
    shares: &mut [Share<'_>],
    features: usize,
    penalty: Penalty,
    blocks: &Blocks,
    how: Delayed,
) -> Vec<f64> {
    let mut weights = vec![0.0; features];
    let mut in_transit: VecDeque<Vec<(u32, f64)>> = VecDeque::new();
    for pass in 0..how.iterations {
        for block in blocks.order(how.seed + u64::from(pass)) {
            let block = blocks.block(block);
            let mut sums = vec![Slope::default(); block.len()];
            for share in &mut *shares {
                for (sum, part) in sums.iter_mut().zip(share.slopes(block, 0.0)) {
                    sum.slope += part.slope;
                    sum.bound += part.bound;
                }
            }
            let mut changes = Vec::new();
            for (&feature, sum) in block.iter().zip(sums).filter(|(_, sum)| sum.bound > 0.0) {
                let (weight, curvature) = (&mut weights[feature as usize], sum.bound / how.rate);
                let new = penalty.prox(*weight - sum.slope / curvature, curvature);
                changes.push((feature, new - *weight));
                *weight = new;
            }
            in_transit.push_back(changes);
            if in_transit.len() > how.delay {
                let seen = in_transit.pop_front().unwrap_or_default();
                shares.iter_mut().for_each(|share| share.change(&seen));
            }
        }
    }
    in_transit.iter().for_each(|changes| shares.iter_mut().for_each(|share| share.change(changes)));
    weights
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::Names;
    use crate::examples::Examples;
    use crate::l1lr::solver::{Config, Solver};
    use crate::l1lr::stopping::Stopping;

    /// Numbers that any language makes alike.
    struct Chance(u64);

    impl Chance {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 40) as f64 / (1u64 << 24) as f64
        }
    }

    /// Sparse examples of two classes, with a third of the features of value 1, of which every third matters.
    pub(crate) fn examples(rows: usize, features: u32, seed: u64) -> Examples {
        let mut chance = Chance(seed);
        let mut classes = Names::default();
        ["-1", "1"].iter().for_each(|class| assert!(classes.intern(class).is_ok()));
        let mut examples = Examples::new(classes);
        for _ in 0..rows {
            let (mut entries, mut score) = (Vec::new(), -0.3);
            for feature in 0..features {
                if chance.next() < 0.4 {
                    let value = if feature % 3 == 0 { 1.0 } else { (chance.next() * 2.0 - 0.5) as f32 };
                    let weight = if feature % 3 == 1 { 2.0 - 0.4 * f64::from(feature % 10) } else { 0.0 };
                    score += weight * f64::from(value);
                    entries.push((feature, value));
                }
            }
            let label = u32::from(chance.next() < 1.0 / (1.0 + (-score).exp()));
            examples.push(label, entries);
        }
        examples
    }

    fn strict(config: Config) -> Config {
        Config { stopping: Stopping { tolerance: 1e-12, violation: 1e-7, passes: 5000 }, ..config }
    }

    fn objective(examples: &Examples, weights: &[f64], penalty: Penalty) -> f64 {
        let mut share = Share::new(examples, 0..examples.len(), 1);
        share.change(&(0..).zip(weights.iter().copied()).collect::<Vec<_>>());
        share.loss() / examples.len() as f64 + weights.iter().map(|&weight| penalty.cost(weight)).sum::<f64>()
    }

    fn shares(examples: &Examples) -> Vec<Share<'_>> {
        let third = examples.len() / 3;
        [0..third, third..2 * third, 2 * third..examples.len()].map(|rows| Share::new(examples, rows, 1)).into()
    }

    const PENALTIES: [Penalty; 3] = [
        Penalty { l1: 0.01, l2: 0.0, non_negative: false },
        Penalty { l1: 0.005, l2: 0.05, non_negative: false },
        Penalty { l1: 0.01, l2: 0.0, non_negative: true },
    ];

    #[test]
    fn both_algorithms_and_the_solver_find_the_same_optimum() {
        let examples = examples(300, 40, 7);
        let config = strict(Config { bias: false, ..Config::default() });
        for penalty in PENALTIES {
            let fit = Solver::new(&examples, 1, penalty.l1, 1, &config).fit(penalty, |_| {}).unwrap();
            assert!(fit.converged);
            let sums = penalty.times(300.0);
            let blocks = Blocks::automatic(&[1; 40], 8, 1);
            let plain = proximal_gradient(&mut shares(&examples), 40, sums, 3000);
            let how = Delayed { delay: 0, rate: 1.0, iterations: 500, seed: 1 };
            let in_turn = delayed_blocks(&mut shares(&examples), 40, sums, &blocks, how);
            let how = Delayed { delay: 3, rate: 0.5, ..how };
            let delayed = delayed_blocks(&mut shares(&examples), 40, sums, &blocks, how);
            for (name, weights) in [("1", plain), ("2", in_turn), ("2 with delay", delayed)] {
                let found = objective(&examples, &weights, penalty);
                assert!(
                    (found / fit.objective - 1.0).abs() < 1e-5,
                    "{penalty:?}: algorithm {name} finds {found}, the solver {}",
                    fit.objective
                );
            }
        }
    }

    #[test]
    fn an_undelayed_step_never_makes_the_objective_grow() {
        let examples = examples(200, 30, 2);
        let (penalty, blocks) = (PENALTIES[1], Blocks::by_group((0..30).collect(), |feature| feature / 7));
        let after = |iterations| {
            let how = Delayed { delay: 0, rate: 1.0, iterations, seed: 1 };
            let weights = delayed_blocks(&mut shares(&examples), 30, penalty.times(200.0), &blocks, how);
            objective(&examples, &weights, penalty)
        };
        let objectives: Vec<f64> = (0..20).map(after).collect();
        assert!(objectives.windows(2).all(|pair| pair[1] <= pair[0] + 1e-12), "{objectives:?}");
    }

    #[test]
    fn two_weights_are_those_of_a_search_over_all() {
        let examples = examples(120, 2, 5);
        for penalty in PENALTIES {
            let fit = Solver::new(&examples, 1, 0.0, 1, &strict(Config { bias: false, ..Config::default() }))
                .fit(penalty, |_| {})
                .unwrap();
            let (mut centre, mut width) = ([0.0, 0.0], 4.0);
            for _ in 0..40 {
                let steps = || (-4..=4).map(|step| f64::from(step) / 4.0 * width);
                let around = steps().flat_map(|x| steps().map(move |y| [centre[0] + x, centre[1] + y]));
                let allowed = around.filter(|point| !penalty.non_negative || point.iter().all(|weight| *weight >= 0.0));
                let best = allowed.map(|point| (objective(&examples, &point, penalty), point));
                centre = best.min_by(|a, b| a.0.total_cmp(&b.0)).expect("a grid").1;
                width *= 0.7;
            }
            let least = objective(&examples, &centre, penalty);
            assert!(
                (fit.objective / least - 1.0).abs() < 1e-7,
                "{penalty:?}: {} but {least} at {centre:?}",
                fit.objective
            );
        }
    }
}
