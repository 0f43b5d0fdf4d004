//! Sparse coding: a dictionary of atoms of which every patch is put together from few (Olshausen and Field 1997).
//!
//! The atoms are the columns of `W`, none longer than 1. A patch `x` has the code `a` that makes `½‖Wa − x‖² + λ‖a‖₁` least,
//! and the mean of that over patches is minimised by proximal gradient steps: the gradient of a patch is the outer product
//! of `u = Wa − x` and `v = a`, and after a step every column that is too long is made as long as it may be.

pub mod codes;
pub mod factors;
pub mod model;
pub mod peers;
pub mod train;
