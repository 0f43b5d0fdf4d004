//! What happened in a simulation, as a hash of all of it and, if asked for, as the protocol's own events.

use super::saving::MemoryCheckpoint;
use super::time::Time;
use super::wire::Load;
use hemiola_core::message::ToClient;
use hemiola_core::{Event, TableId};
use std::collections::BTreeMap;

/// What happened in a simulation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// A hash over moment, kind, ends and length of everything that happened, in order.
    pub hash: u64,
    /// How many things happened.
    pub steps: u64,
    /// Every event of the protocol with its virtual second, if [`super::Config::record_events`] asks for them.
    pub events: Vec<(f64, Event)>,
    /// Every checkpoint, if [`super::Config::saving`] asks for them.
    pub checkpoints: Vec<MemoryCheckpoint>,
    /// Virtual second, node and bytes of everything that was sent between nodes, if it asks for them.
    pub sent: Vec<(f64, u32, u64)>,
    /// How often each row's values were sent between nodes, if it asks for them.
    pub rows_sent: BTreeMap<(TableId, u64), u64>,
}

/// What a step of the simulation was.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Send,
    Deliver,
    Run,
    Hear,
    Lose,
    Reconnect,
    Crash,
}

impl Trace {
    /// Counts the rows of something that is sent between nodes.
    pub(super) fn count_rows(&mut self, load: &Load) {
        if let Load::Answer(message) = load
            && let ToClient::Rows { table, rows, .. } = &**message
        {
            rows.iter().for_each(|&row| *self.rows_sent.entry((*table, row)).or_default() += 1);
        }
    }

    pub(super) fn step(&mut self, time: Time, kind: Kind, ends: (u32, u32), length: u64) {
        self.steps += 1;
        for word in [time.0, kind as u64, u64::from(ends.0) << 32 | u64::from(ends.1), length] {
            self.hash = (self.hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
    }
}
