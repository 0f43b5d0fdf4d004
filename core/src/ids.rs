//! Identifiers and the clock, each a type of its own so that they cannot be mistaken for one another.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident, $inner:ty, $word:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        pub struct $name(pub $inner);

        impl $name {
            /// The identifier as a position in a list.
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($word, " {}"), self.0)
            }
        }
    };
}

identifier!(
    /// A table, by its position in the job's list of schemas.
    TableId, u32, "table"
);
identifier!(
    /// A worker: one compute thread, numbered over the whole job.
    WorkerId, u32, "worker"
);
identifier!(
    /// A client: the library in one process, shared by that process's workers.
    ClientId, u32, "client"
);
identifier!(
    /// A shard: one partition of the tables.
    ShardId, u32, "shard"
);
identifier!(
    /// A count of finished units of work. A row's clock is `k` when every update made in clocks `0..k` is in it.
    Clock, u32, "clock"
);

impl Clock {
    /// The clock after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// This clock less `clocks`, but not below zero.
    #[must_use]
    pub fn back(self, clocks: u32) -> Self {
        Self(self.0.saturating_sub(clocks))
    }
}
