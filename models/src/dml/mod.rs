//! Distance metric learning: a projection under which examples that are alike lie close together, and others do not.
//!
//! The projection `L` has few rows (Weinberger, Blitzer and Saul 2005), and the distance of `x` and `y` is `‖L(x − y)‖²`. It
//! is what a similar pair costs; a dissimilar one costs by how much its distance is below 1, times a weight. The gradient
//! of a pair is the outer product of two vectors, `u = ±2 L(x − y)` and `v = x − y`.
//!
//! Pairs are given, or found by the labels in each batch: of every example the nearest of its class is similar to it, and
//! the nearest of another class is not.

pub mod factors;
mod mining;
pub mod model;
pub mod neighbours;
pub mod pairs;
pub mod peers;
mod principal;
pub mod train;
