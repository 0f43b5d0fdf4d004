//! Multiclass logistic regression (softmax) by stochastic gradient descent.
//!
//! The probability of class `c` for an example `x` is `exp(x · w_c)` over the sum of these of all classes, where one more
//! feature, the bias, is 1 for every example. Training minimises the mean of `-ln` of the probability of an example's
//! label, plus `l2 / 2` times the squared weights without the biases.
//!
//! The table has a row for each feature, and one behind them for the bias. A row is [`row_width`] floats:
//!
//! | columns | content |
//! |---|---|
//! | `0..classes` | the feature's weight for each class |
//! | the next | sum of the squared gradients that the row has seen (only under [`StepSize::Adaptive`](crate::StepSize)) |
//! | the rest | zeros, so that rows are whole groups of floats |

pub mod factors;
pub mod kernel;
pub mod model;
#[cfg(test)]
mod reference;
mod rounding;
pub mod splash;
pub mod train;

/// Floats in the row of a feature.
#[must_use]
pub fn row_width(classes: usize) -> usize {
    (classes + 1).next_multiple_of(kernel::LANES)
}
