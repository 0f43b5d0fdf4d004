//! Independent components by reconstruction: features that are seldom active and from which patches can be put together
//! again (Le, Karpenko, Ngiam and Ng 2011).
//!
//! The filters are the rows of `W`. Over white patches `x` the mean of `½‖WᵀWx − x‖² + λ‖Wx‖₁` is minimised, which is
//! neither convex nor smooth. There may be more filters than pixels.

pub mod kernel;
pub mod model;
pub mod train;
