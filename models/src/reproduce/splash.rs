//! The Splash paper's toy example and its rate of convergence, through the engine on the threads of this process, and its
//! three applications on simulated nodes.

mod applications;
mod baselines;
mod cf;
mod lda;
mod lr;
mod rate;
mod runtime;
mod toy;

pub(super) use cf::cf;
pub(super) use lda::lda;
pub(super) use lr::lr;
pub(super) use rate::rate;
pub(super) use runtime::runtime;
pub(super) use toy::toy;
