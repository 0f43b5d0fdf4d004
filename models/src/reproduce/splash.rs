//! The Splash paper's toy example and its rate of convergence, through the engine on the threads of this process.

mod rate;
mod toy;

pub(super) use rate::rate;
pub(super) use toy::toy;
