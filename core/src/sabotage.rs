//! Faults planted on purpose, so that the tests can prove that they would be caught.
//!
//! Without the feature `sabotage`, which only tests turn on, every question below is answered `false` at compile
//! time and nothing of this is left in a program.

use serde::{Deserialize, Serialize};

/// A fault to plant in a client, a shard or a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Sabotage {
    /// No fault.
    #[default]
    None,
    /// A client accepts rows one clock older than the bound.
    BoundOffByOne,
    /// A shard forgets to push one client's changed rows at every third clock.
    DropCallback,
    /// A shard applies every seventh update twice.
    ApplyTwice,
    /// A link resends one message too few after a reconnection.
    LoseAfterReconnect,
    /// A checkpoint takes the live row where one was kept.
    TornCheckpoint,
}

impl Sabotage {
    /// Whether this fault is planted.
    #[must_use]
    pub fn is(self, fault: Self) -> bool {
        cfg!(feature = "sabotage") && self == fault
    }
}
