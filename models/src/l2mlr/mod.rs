//! Multiclass logistic regression with an L2 penalty, by stochastic dual coordinate ascent (Shalev-Shwartz and Zhang 2013).
//!
//! The mean of `-ln` of the probability of an example's label plus `λ/2` times the squared weights is minimised, those of
//! the bias included: it is a feature like any other, which is 1 for every example.
//!
//! An example's dual variable is a probability `p_i` of each class, and `W = 1/(λn) Σ (e_label − p_i) x_iᵀ`. Of all such
//! variables those are wanted that make `1/n Σ H(p_i) − λ/2 ‖W‖²` greatest, where `H` is the entropy. By how much the
//! objective at `W` exceeds that, the **duality gap**, says how far `W` is from the best at most. Here it is
//! `1/n Σ KL(p_i ‖ softmax(W x_i))`.
//!
//! A step moves the variable of one example to where the dual is greatest with all others fixed, and changes `W` by the
//! outer product of a **pair**: `u = (p_i before − p_i after) / (λn)`, and the example.

pub mod kernel;
pub mod peers;
#[cfg(test)]
mod reference;
pub mod solver;
