//! Checkpoints of a simulated cluster, in memory: shards are read out part by part while the workers go on.

use hemiola_core::checkpoint::{Every, Owner, Planner, SavedFile, Whole};
use hemiola_core::coordinator::{FromCoordinator, ToCoordinator};
use hemiola_core::snapshot::Part;
use hemiola_core::{Clock, Job, ShardId, WorkerId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Checkpoints that a simulated cluster keeps in memory.
#[derive(Debug, Clone)]
pub struct Saving {
    /// How often one is taken.
    pub every: Every,
    /// About how many bytes of a shard are taken out at a time.
    pub part_bytes: usize,
    /// The mean time between that and the next, in seconds.
    pub part_seconds: f64,
    /// What the job goes on from.
    pub resume: Option<Arc<MemoryCheckpoint>>,
}

/// A checkpoint in memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryCheckpoint {
    /// Every update of an earlier clock is in it, and no other.
    pub clock: Clock,
    /// The rows of all shards.
    pub parts: Vec<Part>,
    /// How many reports each worker had made, and what it handed in.
    pub states: BTreeMap<WorkerId, (u32, Vec<u8>)>,
}

/// The checkpoints of a cluster as they come about.
pub(super) struct Memory {
    planner: Planner,
    open: MemoryCheckpoint,
    /// The newest checkpoint of which each shard has begun to give its part.
    begun: Vec<Clock>,
}

impl Memory {
    pub(super) fn new(saving: &Saving, job: &Job) -> Self {
        let clock = saving.resume.as_ref().map_or(Clock(0), |checkpoint| checkpoint.clock);
        let planner = Planner::new(job, saving.every, clock);
        Self { planner, open: MemoryCheckpoint::default(), begun: vec![clock; job.shards as usize] }
    }

    /// Takes a message to the coordinator; gives what everyone is to be told, and a checkpoint that is whole by it.
    pub(super) fn hear(
        &mut self,
        message: &ToCoordinator,
        seconds: f64,
    ) -> (Option<FromCoordinator>, Option<MemoryCheckpoint>) {
        let (decision, whole) = self.planner.hear(message, seconds);
        let whole = whole.map(|Whole { clock, .. }| {
            let MemoryCheckpoint { parts, states, .. } = std::mem::take(&mut self.open);
            MemoryCheckpoint { clock, parts, states }
        });
        (decision, whole)
    }

    /// Whether a shard's checkpoint of `clock` is ready for the first time.
    pub(super) fn begins(&mut self, shard: ShardId, clock: Clock) -> bool {
        std::mem::replace(&mut self.begun[shard.index()], clock) < clock
    }

    pub(super) fn keep_part(&mut self, part: Part) {
        self.open.parts.push(part);
    }

    pub(super) fn keep_state(&mut self, worker: WorkerId, reports: u32, state: Vec<u8>) {
        self.open.states.insert(worker, (reports, state));
    }
}

/// What the coordinator is told of a part that is in memory, which costs a node nothing.
pub(super) fn saved(clock: Clock, owner: Owner) -> ToCoordinator {
    ToCoordinator::Saved { clock, owner, outcome: Ok(SavedFile { owner, bytes: 0, checksum: 0 }), took: 0.0 }
}
