//! Matrix factorisation by stochastic gradient descent: the row layout, the step and the schedules.
//!
//! A rating is predicted as `mean + bias(user) + bias(item) + L(user) · R(item)`, and every rating moves the two rows it
//! touches by `L += g (e R - l2 L)` and `R += g (e L - l2 R)`, where `e` is the error of the prediction and `g` the step
//! size. All changes of a row are additions, so that changes made by several workers can be summed.
//!
//! A row is [`row_width`] floats, of users and items alike:
//!
//! | columns | content |
//! |---|---|
//! | `0..rank` | factors |
//! | `rank..factor_columns(rank)` | zeros, which the step leaves at zero |
//! | `factor_columns(rank)` | bias (zero and unused without biases) |
//! | the last | sum of the squared errors the row has seen (only under [`StepSize::Adaptive`]) |

pub mod blocks;
pub mod kernel;
pub mod model;
pub mod near;
#[cfg(test)]
mod reference;
pub(crate) mod solve;
pub mod splash;
pub mod train;

pub use crate::{Rating, StepSize};
use hemiola::Init;
use serde::{Deserialize, Serialize};

/// Whether the model has a bias for each user and each item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Biases {
    /// Factors alone explain the distance from the mean.
    Without,
    /// Every user and every item has a bias, penalised and learnt as the factors are.
    With,
}

/// What the step needs to know of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// Number of factors.
    pub rank: usize,
    /// Whether users and items have biases.
    pub biases: Biases,
    /// The prediction before anything is learnt: the mean of the training ratings.
    pub mean: f32,
}

/// What the step needs to know of the training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Training {
    /// Weight of the squared rows in the objective, counted once for each rating.
    pub l2: f32,
    /// The schedule of step sizes.
    pub step: StepSize,
    /// Passes over the ratings.
    pub epochs: u32,
    /// Initial factors are drawn from `±initial_scale / sqrt(rank)`.
    pub initial_scale: f32,
}

impl Default for Training {
    fn default() -> Self {
        Self { l2: 0.035, step: StepSize::Adaptive { rate: 0.1, damping: 0.03 }, epochs: 15, initial_scale: 0.1 }
    }
}

/// Floats are worked on in groups of this many, the width of an AVX register.
const LANES: usize = 8;

/// Numbers of a row that are no factors: its bias, and the squared errors it has seen. Rows that begin at multiples of an
/// AVX register's width would be 6 numbers longer, which costs more between processes than it gains in the step.
const OTHER_COLUMNS: usize = 2;

/// Columns of a row that hold factors, or the zeros that fill their last group.
pub fn factor_columns(rank: usize) -> usize {
    rank.next_multiple_of(LANES)
}

/// Floats in the row of a user or an item.
pub fn row_width(rank: usize) -> usize {
    factor_columns(rank) + OTHER_COLUMNS
}

/// The initial values of a table of rows: random factors, and zeros elsewhere.
pub fn initial(rank: usize, initial_scale: f32, seed: u64) -> Init {
    let scale = initial_scale / (rank as f32).sqrt();
    Init::Uniform { seed, low: -scale, high: scale, columns: rank as u32, rest: 0.0 }
}
