//! When checkpoints are taken, and when one is whole.
//!
//! Every so many clocks is a candidate. The first worker that gets there brings about the decision, and all wait for
//! it, so that they agree: a candidate is passed over while the one before is still being written, and with automatic
//! intervals until Young's interval has gone by.

use crate::coordinator::{FromCoordinator, ToCoordinator};
use crate::ids::{Clock, ShardId, WorkerId};
use crate::schema::Job;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// How often checkpoints are taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Every {
    /// After every so many clocks.
    Clocks(u32),
    /// As often as loses the least time, by Young's formula; after a multiple of `unit` clocks.
    Auto {
        /// Checkpoints are taken only at multiples of this.
        unit: u32,
        /// The mean time to failure of a machine, in seconds.
        time_to_failure: f64,
        /// How many machines there are.
        machines: u32,
    },
}

/// Whose part of a checkpoint a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Owner {
    /// The rows of a shard.
    Shard(ShardId),
    /// The state of a worker.
    Worker(WorkerId),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shard(shard) => shard.fmt(f),
            Self::Worker(worker) => worker.fmt(f),
        }
    }
}

/// A file of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedFile {
    /// Whose part it is.
    pub owner: Owner,
    /// Its length.
    pub bytes: u64,
    /// The checksum of the heads of its frames, each of which has the checksum of its body.
    pub checksum: u32,
}

/// Decides at which clocks checkpoints are taken, and collects their parts.
#[derive(Debug)]
pub struct Planner {
    every: Every,
    parts: usize,
    workers: u32,
    /// Candidates up to this one have been decided.
    decided: Clock,
    open: Option<Open>,
    /// When the newest began.
    began: Option<f64>,
    /// How many have been saved, and how long all of them took: not from when they began, since the slowest worker and
    /// rests cost the job nothing.
    saves: u32,
    save_seconds: f64,
}

#[derive(Debug)]
struct Open {
    clock: Clock,
    began: f64,
    parts: BTreeMap<Owner, Result<SavedFile, String>>,
    /// How long the part that took longest did.
    took: f64,
}

/// A checkpoint of which every part has been written, or could not be.
#[derive(Debug, Clone, PartialEq)]
pub struct Whole {
    /// The clock.
    pub clock: Clock,
    /// The files in the order of their owners, or why one is missing.
    pub files: Result<Vec<SavedFile>, String>,
    /// How long it took.
    pub seconds: f64,
}

impl Every {
    /// The clocks between two candidates.
    #[must_use]
    pub fn unit(self) -> u32 {
        match self {
            Self::Clocks(unit) | Self::Auto { unit, .. } => unit.max(1),
        }
    }

    /// Whether a checkpoint may be taken at `clock`.
    #[must_use]
    pub fn is_candidate(self, clock: Clock) -> bool {
        clock.0 > 0 && clock.0.is_multiple_of(self.unit())
    }
}

/// The time between checkpoints by which the least is lost: `√(2·T_save·T_fail/N)`.
#[must_use]
pub fn young_interval(save_seconds: f64, time_to_failure: f64, machines: u32) -> f64 {
    (2.0 * save_seconds * time_to_failure / f64::from(machines.max(1))).sqrt()
}

impl Planner {
    /// The planner of a job that begins, or goes on, at `clock`.
    #[must_use]
    pub fn new(job: &Job, every: Every, clock: Clock) -> Self {
        let parts = (job.shards + job.workers()) as usize;
        let workers = job.workers();
        Self { every, parts, workers, decided: clock, open: None, began: None, saves: 0, save_seconds: 0.0 }
    }

    /// Takes what concerns checkpoints from a message to the coordinator: gives what is to be told to everyone, and a
    /// checkpoint whose last part it was.
    pub fn hear(&mut self, message: &ToCoordinator, seconds: f64) -> (Option<FromCoordinator>, Option<Whole>) {
        match message {
            ToCoordinator::Clock { clock, .. } => {
                let decision = self.reach(*clock, seconds);
                (decision.map(|save| FromCoordinator::Checkpoint { clock: *clock, save }), None)
            }
            ToCoordinator::Saved { clock, owner, outcome, took } => {
                (None, self.saved(*clock, *owner, (outcome.clone(), *took), seconds))
            }
            _ => (None, None),
        }
    }

    /// A worker is at `clock` at this time: whether a checkpoint is taken there, if that is to be decided now.
    fn reach(&mut self, clock: Clock, seconds: f64) -> Option<bool> {
        if !self.every.is_candidate(clock) || clock <= self.decided {
            return None;
        }
        self.decided = clock;
        let due = match (self.every, self.began) {
            (Every::Clocks(_), _) | (_, None) => true,
            (Every::Auto { time_to_failure, machines, .. }, Some(began)) => {
                // Until one has been saved nobody knows how long it takes, and the next is due at once.
                let mean = self.save_seconds / f64::from(self.saves.max(1));
                seconds - began >= young_interval(mean, time_to_failure, machines)
            }
        };
        let save = due && self.open.is_none();
        if save {
            self.began = Some(seconds);
            self.open = Some(Open { clock, began: seconds, parts: BTreeMap::new(), took: 0.0 });
        }
        Some(save)
    }

    /// A part has been written at this time, or could not be; the checkpoint, if it was the last part.
    fn saved(
        &mut self,
        clock: Clock,
        owner: Owner,
        (outcome, took): (Result<SavedFile, String>, f64),
        seconds: f64,
    ) -> Option<Whole> {
        let open = self.open.as_mut().filter(|open| open.clock == clock)?;
        open.parts.insert(owner, outcome);
        open.took = open.took.max(took);
        if open.parts.len() < self.parts {
            return None;
        }
        let Open { began, parts, took, .. } = self.open.take()?;
        let whole = Whole { clock, files: parts.into_values().collect(), seconds: seconds - began };
        if whole.files.is_ok() {
            self.saves += 1;
            self.save_seconds += took;
        }
        Some(whole)
    }

    /// The checkpoint of which some parts have not been written.
    #[must_use]
    pub fn open(&self) -> Option<Clock> {
        self.open.as_ref().map(|open| open.clock)
    }

    /// Whether nothing but rows of shards is missing from a checkpoint.
    #[must_use]
    pub fn awaits_shards(&self) -> bool {
        let workers = |open: &Open| open.parts.keys().filter(|owner| matches!(owner, Owner::Worker(_))).count();
        self.open.as_ref().is_some_and(|open| workers(open) == self.workers as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::TableSchema;

    fn planner(every: Every) -> Planner {
        let tables = vec![TableSchema::dense("t", 1, 1)];
        Planner::new(&Job { tables, workers_per_client: vec![1], shards: 1, budget: None }, every, Clock(0))
    }

    fn file(owner: Owner) -> Result<SavedFile, String> {
        Ok(SavedFile { owner, bytes: 1, checksum: 2 })
    }

    const SHARD: Owner = Owner::Shard(ShardId(0));
    const WORKER: Owner = Owner::Worker(WorkerId(0));

    #[test]
    fn a_candidate_is_decided_once_and_passed_over_while_one_is_being_written() {
        let mut planner = planner(Every::Clocks(2));
        assert_eq!(planner.reach(Clock(1), 0.0), None);
        assert_eq!(planner.reach(Clock(2), 0.0), Some(true));
        assert_eq!(planner.reach(Clock(2), 0.5), None, "a second worker");
        assert_eq!(planner.reach(Clock(4), 1.0), Some(false));
        assert_eq!(planner.saved(Clock(2), SHARD, (file(SHARD), 1.0), 1.0), None);
        assert!(!planner.awaits_shards());
        let whole = planner.saved(Clock(2), WORKER, (Err("the disk is full".into()), 0.0), 3.0).expect("both parts");
        assert_eq!(whole, Whole { clock: Clock(2), files: Err("the disk is full".into()), seconds: 3.0 });
        assert_eq!(planner.reach(Clock(6), 4.0), Some(true));
    }

    #[test]
    fn automatic_intervals_are_young_s() {
        assert_eq!(young_interval(2.0, 100.0, 4), 10.0);
        let mut planner = planner(Every::Auto { unit: 1, time_to_failure: 100.0, machines: 4 });
        assert_eq!(planner.reach(Clock(1), 0.0), Some(true), "the first shows how long it takes");
        // What took longest counts, not when all had been written.
        planner.saved(Clock(1), SHARD, (file(SHARD), 2.0), 8.0);
        planner.saved(Clock(1), WORKER, (file(WORKER), 1.0), 9.0);
        assert_eq!(planner.reach(Clock(2), 9.9), Some(false));
        assert_eq!(planner.reach(Clock(3), 10.0), Some(true));
    }

    #[test]
    fn automatic_intervals_follow_from_the_mean_of_what_was_saved() {
        let mut planner = planner(Every::Auto { unit: 1, time_to_failure: 100.0, machines: 4 });
        let failed = || Err("the disk is full".to_owned());
        // When each begins, how long it takes, and how it ends; the interval is 10 for a mean of 2, and 20 for one of 8.
        for (clock, begins, takes, worker) in [
            (2, 0.0, 50.0, failed()),
            (4, 50.0, 2.0, file(WORKER)),
            (6, 60.0, 14.0, file(WORKER)),
            (8, 80.0, 15.0, failed()),
            (10, 100.0, 8.0, file(WORKER)),
            (12, 120.0, 1.0, file(WORKER)),
        ] {
            if clock > 4 {
                assert_eq!(planner.reach(Clock(clock - 1), begins - 0.1), Some(false), "clock {clock} is not due");
            }
            assert_eq!(planner.reach(Clock(clock), begins), Some(true), "clock {clock}");
            planner.saved(Clock(clock), SHARD, (file(SHARD), 0.0), begins);
            planner.saved(Clock(clock), WORKER, (worker, takes), begins + takes);
        }
    }
}
