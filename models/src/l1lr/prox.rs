//! The penalty `h` of the objective, and its generalised proximal operator, one coordinate at a time.
//!
//! For a diagonal `U` the operator `argmin_y h(y) + 1/(2γ) ‖x − y‖²_U` falls apart into coordinates, since `h` does:
//! `h(w) = Σ_j l1 |w_j| + l2/2 w_j²`, and infinite where a weight is negative that may not be.

use serde::{Deserialize, Serialize};

/// What weights cost, the same for every feature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Penalty {
    /// Weight of the absolute values.
    pub l1: f64,
    /// Weight of half the squares.
    pub l2: f64,
    /// Whether no weight may be below zero.
    pub non_negative: bool,
}

impl Penalty {
    /// No penalty at all, as for a bias.
    pub const NONE: Self = Self { l1: 0.0, l2: 0.0, non_negative: false };

    /// What a weight costs.
    #[must_use]
    pub fn cost(&self, weight: f64) -> f64 {
        self.l1 * weight.abs() + 0.5 * self.l2 * weight * weight
    }

    /// The generalised proximal operator: what minimises `cost(y) + curvature/2 (point − y)²` over the `y` allowed.
    /// `curvature` is the coordinate's entry of `U` over the step size, and above zero.
    #[must_use]
    pub fn prox(&self, point: f64, curvature: f64) -> f64 {
        let pull = curvature * point;
        let shrunk = if pull > self.l1 {
            pull - self.l1
        } else if pull < -self.l1 && !self.non_negative {
            pull + self.l1
        } else {
            return 0.0;
        };
        shrunk / (curvature + self.l2)
    }

    /// How far a weight is from optimal where the loss has this slope: the distance of zero to the subgradients of the
    /// objective, which is zero exactly where the conditions of Karush, Kuhn and Tucker hold.
    #[must_use]
    pub fn violation(&self, weight: f64, slope: f64) -> f64 {
        let slope = slope + self.l2 * weight;
        if weight > 0.0 {
            (slope + self.l1).abs()
        } else if weight < 0.0 {
            (slope - self.l1).abs()
        } else if self.non_negative {
            (-slope - self.l1).max(0.0)
        } else {
            (slope.abs() - self.l1).max(0.0)
        }
    }

    /// The same penalty, so many times as strong.
    #[must_use]
    pub(super) fn times(self, factor: f64) -> Self {
        Self { l1: self.l1 * factor, l2: self.l2 * factor, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PENALTIES: [Penalty; 5] = [
        Penalty::NONE,
        Penalty { l1: 0.7, l2: 0.0, non_negative: false },
        Penalty { l1: 0.7, l2: 0.4, non_negative: false },
        Penalty { l1: 0.7, l2: 0.0, non_negative: true },
        Penalty { l1: 0.0, l2: 0.4, non_negative: true },
    ];

    #[test]
    fn the_operator_minimises_what_it_should() {
        for penalty in PENALTIES {
            for (point, curvature) in [(2.0, 0.5), (-2.0, 0.5), (0.3, 1.0), (-0.3, 3.0), (0.0, 1.0), (1.0, 0.01)] {
                let cost = |y: f64| penalty.cost(y) + 0.5 * curvature * (point - y) * (point - y);
                let found = penalty.prox(point, curvature);
                let grid = (-6000..=6000).map(|step| f64::from(step) / 1000.0);
                let allowed = grid.filter(|y| !penalty.non_negative || *y >= 0.0);
                let best = allowed.min_by(|a, b| cost(*a).total_cmp(&cost(*b))).expect("a grid");
                assert!((found - best).abs() <= 1e-3, "{penalty:?} {point} {curvature}: {found}, not {best}");
                assert!(cost(found) <= cost(best) + 1e-12 && !(penalty.non_negative && found < 0.0));
            }
        }
    }

    #[test]
    fn a_fixed_point_of_the_step_violates_nothing() {
        for penalty in PENALTIES {
            // The loss (w − 3)² / 2, then (w + 3)² / 2, and one whose slope the penalty outweighs.
            for centre in [3.0, -3.0, 0.2] {
                let weight = penalty.prox(centre, 1.0);
                assert!(penalty.violation(weight, weight - centre) < 1e-12, "{penalty:?} {centre}");
                assert!(penalty.violation(weight + 0.5, weight + 0.5 - centre) > 0.1, "{penalty:?} {centre}");
            }
        }
    }
}
