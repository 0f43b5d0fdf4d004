//! L1-regularised logistic regression: which features tell two classes apart, and with what probability.
//!
//! The probability of the second class for an example `x` is `1 / (1 + exp(-m))` with the margin `m = x · w + bias`.
//! Training minimises the mean of `-ln` of the probability of an example's label, plus `l1` times the absolute weights and
//! `l2 / 2` times their squares; the bias costs nothing.

pub mod blocks;
mod columns;
pub mod distributed;
pub mod groups;
mod kernel;
pub mod model;
mod newton;
pub mod owlqn;
pub mod path;
pub mod prox;
pub mod reference;
mod rows_file;
pub mod share;
pub mod solver;
pub mod step;
pub mod stopping;
mod stored;
pub mod streamed;
