//! The simulated cluster: virtual time, the network, the shards, the coordinator, and who may run.

use super::config::Config;
use super::pacing::Pacing;
use super::queue::{Coming, Queue};
use super::random::Random;
use super::saving::{Memory, saved};
use super::time::Time;
use super::trace::{Kind, Trace};
use super::wire::{End, Load, Packet, Posted, Wire};
use crate::host::Host;
use hemiola_core::checkpoint::Owner;
use hemiola_core::coordinator::{Coordinator, FromCoordinator, Process, ToCoordinator};
use hemiola_core::filter::FilterError;
use hemiola_core::filter::ledger::{self, FilterSaving, Ledger};
use hemiola_core::message::{ToClient, ToPeer, ToShard};
use hemiola_core::task::service::Service;
use hemiola_core::{ClientId, Clock, Event, Job, Shard, ShardId, WorkerId};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

pub(super) struct World {
    pub(super) config: Config,
    pub(super) job: Job,
    pub(super) hosts: Vec<Weak<Host>>,
    pub(super) now: Time,
    pub(super) queue: Queue,
    crew: Crew,
    pub(super) wire: Wire,
    /// What encoding filters saved on the wire.
    ledger: Ledger,
    /// What every node may send, if that is limited.
    pub(super) pacing: Option<Pacing>,
    pub(super) servers: Servers,
    coordinator: Coordinator,
    memory: Option<Memory>,
    pub(super) random: Random,
    pub(super) trace: Trace,
}

/// The workers, and who is next.
struct Crew {
    doings: Vec<Doing>,
    /// Each worker's runs so far, by which it is known whether something was meant for this one.
    turns: Vec<u64>,
    ready: VecDeque<WorkerId>,
    /// How many have not ended.
    left: usize,
    /// When to look for workers that have waited too long.
    inspection: Time,
    /// Set when every worker waited and nothing was coming.
    hopeless: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// Runs, or is about to.
    Running,
    /// Waits since then for something to be delivered.
    Parked(Time),
    /// Lets virtual time pass.
    Working,
    Ended,
}

pub(super) struct Servers {
    pub(super) shards: Vec<Shard>,
    /// When each shard has handled what it has received.
    free: Vec<Time>,
    /// What each shard has received and not handled, and what it has not answered: nothing passes it.
    waiting: Vec<usize>,
    unanswered: Vec<usize>,
}

/// What is to be done outside the world, which hosts call back into.
pub(super) enum Step {
    /// Let this worker run.
    Run(WorkerId),
    /// Give a client a message.
    Deliver { client: ClientId, shard: ShardId, message: Arc<ToClient> },
    /// Give a peer another's factors.
    DeliverFactors { to: WorkerId, message: Arc<ToPeer> },
    /// Give every host the coordinator's answer.
    Hear(FromCoordinator),
    /// Ask a client for updates of so many bytes to send early, in a turn of more bytes in which some have been sent.
    Ask { client: ClientId, bytes: usize, turn: (usize, usize) },
    /// End the job for everyone.
    Stop { reason: String },
    /// Nothing: every worker has ended.
    Over,
}

impl World {
    pub(super) fn new(config: &Config, job: Job) -> Self {
        let workers = job.workers() as usize;
        let mut shards: Vec<Shard> =
            (0..job.shards).map(|shard| Shard::new(ShardId(shard), &job, config.sabotage)).collect();
        if let Some(checkpoint) = config.saving.as_ref().and_then(|saving| saving.resume.as_ref()) {
            for shard in &mut shards {
                let restored = checkpoint.parts.iter().try_for_each(|part| shard.restore(part));
                restored.expect("a checkpoint in memory is of the same tables");
                shard.resume(checkpoint.clock);
            }
        }
        let ledger = Ledger::new(&job);
        let mut world = Self {
            hosts: Vec::new(),
            now: Time(0),
            queue: Queue::default(),
            crew: Crew {
                doings: vec![Doing::Running; workers],
                turns: vec![0; workers],
                ready: (0..workers as u32).map(WorkerId).collect(),
                left: workers,
                inspection: Time::from_seconds(config.timeout.as_secs_f64()),
                hopeless: false,
            },
            pacing: config.budget.map(|budget| Pacing::new(config, &budget)),
            wire: Wire::new(config, &job, &ledger),
            ledger,
            servers: Servers {
                free: vec![Time(0); shards.len()],
                waiting: vec![0; shards.len()],
                unanswered: vec![0; shards.len()],
                shards,
            },
            coordinator: Coordinator::new(&job),
            memory: config.saving.as_ref().map(|saving| Memory::new(saving, &job)),
            random: Random::new(config.seed),
            trace: Trace::default(),
            config: config.clone(),
            job,
        };
        for (place, crash) in config.faults.crashes.iter().enumerate() {
            world.queue.push(Time::from_seconds(crash.seconds), Coming::Crash(place));
        }
        for (client, shard) in world.wire.connections() {
            world.lose_later(client, shard);
        }
        world
    }

    /// Gives the shards their part in jobs of tasks.
    pub(super) fn serve(&mut self, service: &Arc<Service>) {
        self.servers.shards.iter_mut().for_each(|shard| shard.serve(service));
    }

    /// What the filters on the wire and in the shards have saved.
    pub(super) fn savings(&self) -> Vec<FilterSaving> {
        let mut savings = self.ledger.savings();
        let shards = self.servers.shards.iter();
        shards.for_each(|shard| ledger::merge(&mut savings, shard.ledger().savings()));
        savings
    }

    /// Lets time pass until something must be done outside.
    pub(super) fn step(&mut self) -> Step {
        loop {
            // What comes at one moment is handed out before anyone runs, so that workers are woken once for all of it.
            let due = self.queue.next_time().is_some_and(|time| time <= self.now);
            if !due {
                if let Some(worker) = self.crew.ready.pop_front() {
                    self.trace.step(self.now, Kind::Run, (worker.0, 0), 0);
                    return Step::Run(worker);
                }
                if self.crew.left == 0 {
                    return Step::Over;
                }
                if !self.queue.has_hope() {
                    self.crew.hopeless = true;
                    self.crew.wake_if(|doing| matches!(doing, Doing::Parked(_)));
                    continue;
                }
            }
            let Some((time, coming)) = self.queue.pop() else { continue };
            self.now = time;
            self.inspect();
            if let Some(step) = self.happen(coming) {
                return step;
            }
        }
    }

    /// Wakes the workers that have waited too long, for them to say so.
    fn inspect(&mut self) {
        if self.now <= self.crew.inspection {
            return;
        }
        let timeout = Time::from_seconds(self.config.timeout.as_secs_f64());
        let now = self.now;
        self.crew.wake_if(|doing| matches!(doing, Doing::Parked(since) if since + timeout < now));
        let parked = self.crew.doings.iter().filter_map(|doing| match doing {
            Doing::Parked(since) => Some(*since),
            _ => None,
        });
        self.crew.inspection = parked.min().unwrap_or(now) + timeout;
    }

    fn happen(&mut self, coming: Coming) -> Option<Step> {
        match coming {
            Coming::Resume { worker, turn } => {
                if self.crew.turns[worker.index()] == turn {
                    self.crew.wake(worker);
                }
                None
            }
            Coming::Arrive(packet) => {
                if let Some(time) = self.wire.arrive(self.now, &packet) {
                    self.queue.push(time, Coming::Deliver(packet));
                }
                None
            }
            Coming::Deliver(packet) => self.deliver(packet),
            Coming::Handle { client, shard, message } => {
                self.servers.waiting[shard.index()] -= 1;
                self.handle(client, shard, &message);
                None
            }
            Coming::Answer { shard, answers } => {
                self.servers.unanswered[shard.index()] -= 1;
                answers.into_iter().for_each(|(client, message)| self.send(client, shard, Load::Answer(message)));
                None
            }
            Coming::Hear(answer) => {
                self.trace.step(self.now, Kind::Hear, (0, 0), 0);
                match (&answer, self.coordinator.failure()) {
                    (FromCoordinator::Stop, Some(reason)) => Some(Step::Stop { reason: reason.to_owned() }),
                    (FromCoordinator::Stop, None) => None,
                    _ => Some(Step::Hear(answer)),
                }
            }
            Coming::Save(shard) => {
                self.save_part(shard);
                None
            }
            Coming::Lose(client, shard) => {
                if self.wire.lose(client, shard) {
                    self.trace.step(self.now, Kind::Lose, (client.0, shard.0), 0);
                    let back = self.now + self.random.duration(self.config.faults.lost_connections.seconds);
                    self.queue.push(back, Coming::Reconnect(client, shard));
                }
                None
            }
            Coming::Reconnect(client, shard) => {
                self.trace.step(self.now, Kind::Reconnect, (client.0, shard.0), 0);
                match self.wire.reconnect(self.now, (client, shard)) {
                    Ok(messages) => self.resend((client, shard), messages),
                    Err(error) => self.fail(self.receiver(shard), &error),
                }
                self.lose_later(client, shard);
                None
            }
            Coming::Pace(node) => self.pace(node),
            Coming::Crash(place) => {
                let crash = self.config.faults.crashes[place];
                self.trace.step(self.now, Kind::Crash, (place as u32, 0), 0);
                self.coordinator.lost(crash.process, &format!("crashed after {} simulated seconds", crash.seconds));
                self.hear_coordinator();
                None
            }
        }
    }

    fn deliver(&mut self, mut packet: Packet) -> Option<Step> {
        let (client, shard) = (packet.client, packet.shard);
        self.note_arrival(&packet);
        match self.wire.take(&mut packet) {
            Ok(true) => {}
            Ok(false) => return None,
            Err(error) => {
                self.fail(self.receiver(shard), &error);
                return None;
            }
        }
        self.trace.step(self.now, Kind::Deliver, (client.0, shard.0), packet.length);
        if self.pacing.is_none() {
            let acknowledgement = self.wire.acknowledge(self.now, (client, shard), packet.to, &mut self.random);
            self.post_or_fail((client, shard), acknowledgement);
        }
        match packet.load {
            Load::Request(message) => {
                let cost = Time::from_seconds(self.config.network.shard_seconds_per_byte * packet.length as f64);
                let free = &mut self.servers.free[shard.index()];
                *free = (*free).max(self.now) + cost;
                // One that costs nothing does not pass another that is due at this very moment.
                if *free > self.now || self.servers.waiting[shard.index()] > 0 {
                    self.servers.waiting[shard.index()] += 1;
                    self.queue.push(*free, Coming::Handle { client, shard, message });
                } else {
                    self.handle(client, shard, &message);
                }
                None
            }
            Load::Answer(message) => {
                if !self.wire.is_local(client, shard) {
                    self.count_bytes(client, 0, packet.length);
                }
                Some(Step::Deliver { client, shard, message })
            }
            Load::Factors(message) => {
                self.count_bytes(ClientId(shard.0), 0, packet.length);
                Some(Step::DeliverFactors { to: WorkerId(shard.0), message })
            }
            Load::Acknowledge => None,
        }
    }

    /// Who a shard's end of a connection belongs to.
    fn receiver(&self, shard: ShardId) -> Process {
        if self.job.shards == 0 { Process::Worker(ClientId(shard.0)) } else { Process::Server(shard) }
    }

    fn handle(&mut self, client: ClientId, shard: ShardId, message: &ToShard) {
        let server = &mut self.servers.shards[shard.index()];
        let result = server.receive(client, message);
        let answers: Vec<_> = server.outbox().collect();
        let events: Vec<Event> = server.events().collect();
        let work = server.take_work();
        self.record(events);
        if work > 0 || self.servers.unanswered[shard.index()] > 0 {
            let free = &mut self.servers.free[shard.index()];
            *free = (*free).max(self.now) + Time::from_seconds(work as f64 * self.config.seconds_per_unit);
            self.servers.unanswered[shard.index()] += 1;
            self.queue.push(*free, Coming::Answer { shard, answers });
        } else {
            answers.into_iter().for_each(|(client, message)| self.send(client, shard, Load::Answer(message)));
        }
        self.stir_node(self.wire.node_of((client, shard), End::Shard));
        if let Err(error) = result {
            self.fail(Process::Server(shard), &error);
        }
        let ready = self.servers.shards[shard.index()].checkpoint_ready();
        if let (Some(memory), Some(clock)) = (&mut self.memory, ready)
            && memory.begins(shard, clock)
        {
            self.save_later(shard);
        }
    }

    fn save_later(&mut self, shard: ShardId) {
        if let Some(saving) = &self.config.saving {
            let wait = self.random.duration(saving.part_seconds);
            self.queue.push(self.now + wait, Coming::Save(shard));
        }
    }

    fn save_part(&mut self, shard: ShardId) {
        let (Some(memory), Some(saving)) = (&mut self.memory, &self.config.saving) else { return };
        let server = &mut self.servers.shards[shard.index()];
        let Some(clock) = server.checkpoint_ready() else { return };
        match server.checkpoint_part(saving.part_bytes) {
            Some(part) => {
                memory.keep_part(part);
                self.save_later(shard);
            }
            None => self.hear_of_saving(&saved(clock, Owner::Shard(shard))),
        }
    }

    pub(super) fn save_state(
        &mut self,
        client: ClientId,
        worker: WorkerId,
        (clock, reports): (Clock, u32),
        state: Vec<u8>,
    ) {
        if let Some(memory) = &mut self.memory {
            memory.keep_state(worker, reports, state);
        }
        self.tell_coordinator(client, saved(clock, Owner::Worker(worker)));
    }

    fn hear_of_saving(&mut self, message: &ToCoordinator) {
        let Some(memory) = &mut self.memory else { return };
        let (decision, whole) = memory.hear(message, self.now.seconds());
        decision.into_iter().for_each(|decision| self.coordinator.announce(decision));
        self.trace.checkpoints.extend(whole);
    }

    pub(super) fn send(&mut self, client: ClientId, shard: ShardId, load: Load) {
        if self.pacing.is_some() && !self.wire.is_local(client, shard) {
            self.send_paced((client, shard), load);
            return;
        }
        let posted = self.wire.send(self.now, (client, shard), load, &mut self.random);
        self.post_or_fail((client, shard), posted);
    }

    /// Posts what could be sent, if anything was; a filter that failed ends the job.
    pub(super) fn post_or_fail(
        &mut self,
        (_, shard): (ClientId, ShardId),
        posted: Result<Option<Posted>, FilterError>,
    ) {
        match posted {
            Ok(posted) => posted.into_iter().for_each(|posted| self.post(posted)),
            Err(error) => self.fail(self.receiver(shard), &error),
        }
    }

    pub(super) fn post(&mut self, posted: Posted) {
        match posted {
            Posted::Here(packet) => self.queue.push(self.now, Coming::Deliver(packet)),
            Posted::Arrives(time, packet) => {
                self.trace.step(self.now, Kind::Send, (packet.client.0, packet.shard.0), packet.length);
                if self.config.record_events {
                    let node = self.wire.node_of((packet.client, packet.shard), packet.to.other()) as u32;
                    self.trace.sent.push((self.now.seconds(), node, packet.length));
                    self.trace.count_rows(&packet.load);
                }
                match packet.to {
                    End::Shard => self.count_bytes(packet.client, packet.length, 0),
                    // What shards send is not counted; what peers acknowledge is.
                    End::Client if self.job.shards == 0 => self.count_bytes(ClientId(packet.shard.0), packet.length, 0),
                    End::Client => {}
                }
                self.queue.push(time, Coming::Arrive(packet));
            }
        }
    }

    fn count_bytes(&self, client: ClientId, sent: u64, received: u64) {
        self.host(client).count_bytes(sent, received);
    }

    fn client_of(&self, worker: WorkerId) -> ClientId {
        // The last node is that of the schedulers, if there are any, however many.
        ClientId((worker.0 / self.config.workers_per_node).min(self.config.nodes - 1))
    }

    pub(super) fn host(&self, client: ClientId) -> Arc<Host> {
        self.hosts[client.index()].upgrade().expect("the run holds its hosts")
    }

    fn lose_later(&mut self, client: ClientId, shard: ShardId) {
        if let Some(wait) = self.random.until(self.config.faults.lost_connections) {
            self.queue.push(self.now + wait, Coming::Lose(client, shard));
        }
    }

    pub(super) fn tell_coordinator(&mut self, client: ClientId, message: ToCoordinator) {
        self.hear_of_saving(&message);
        self.coordinator.receive(Process::Worker(client), message);
        self.hear_coordinator();
    }

    fn hear_coordinator(&mut self) {
        let answers: Vec<_> = self.coordinator.outbox().collect();
        for answer in answers {
            self.queue.push(self.now, Coming::Hear(answer));
        }
    }

    /// Ends the job because `process` cannot go on.
    pub(super) fn fail(&mut self, process: Process, error: &dyn std::error::Error) {
        self.coordinator.receive(process, ToCoordinator::Failed { reason: error.to_string() });
        self.hear_coordinator();
    }

    pub(super) fn record(&mut self, events: Vec<Event>) {
        if self.config.record_events {
            let seconds = self.now.seconds();
            self.trace.events.extend(events.into_iter().map(|event| (seconds, event)));
        }
    }

    /// Lets a worker run, where it waits.
    pub(super) fn wake_parked(&mut self, worker: WorkerId) {
        if let Doing::Parked(_) = self.crew.doings[worker.index()] {
            self.crew.wake(worker);
        }
    }

    /// Lets everyone run who has not ended.
    pub(super) fn wake_everyone(&mut self) {
        self.crew.wake_if(|doing| matches!(doing, Doing::Parked(_) | Doing::Working));
    }

    pub(super) fn park(&mut self, worker: WorkerId) {
        self.crew.doings[worker.index()] = Doing::Parked(self.now);
    }

    /// Whether every worker waited and nothing was coming.
    pub(super) fn is_hopeless(&self) -> bool {
        self.crew.hopeless
    }

    /// Charges work to the worker; `false` if it takes no time.
    pub(super) fn work(&mut self, worker: WorkerId, units: u64) -> bool {
        let node = self.client_of(worker);
        let stragglers = self.config.faults.stragglers.iter().filter(|straggler| straggler.node == node.0);
        let factor: f64 = stragglers.map(|straggler| straggler.factor).product();
        let work = Time::from_seconds(units as f64 * self.config.seconds_per_unit * factor);
        let pauses = self.config.faults.pauses;
        let mut paused = Time(0);
        let mut done = Time(0);
        while let Some(wait) = self.random.until(pauses) {
            done = done + wait;
            if done >= work {
                break;
            }
            paused = paused + self.random.duration(pauses.seconds);
        }
        let span = work + paused;
        if span == Time(0) {
            return false;
        }
        self.crew.doings[worker.index()] = Doing::Working;
        let turn = self.crew.turns[worker.index()];
        self.queue.push(self.now + span, Coming::Resume { worker, turn });
        true
    }

    /// The worker could not be started: the job is over before it began.
    pub(super) fn dismiss(&mut self, worker: WorkerId, error: &dyn std::error::Error) {
        self.crew.ready.retain(|ready| *ready != worker);
        self.end(worker, Some(error));
    }

    /// The worker's program is over; `failure` says why if it failed.
    pub(super) fn end(&mut self, worker: WorkerId, failure: Option<&dyn std::error::Error>) {
        self.crew.doings[worker.index()] = Doing::Ended;
        self.crew.left -= 1;
        let client = self.client_of(worker);
        let ended = |worker: u32| self.crew.doings[worker as usize] == Doing::Ended;
        match failure {
            // Whoever is stuck says what it waits for, instead of repeating what the first one said.
            Some(_) if self.crew.hopeless => {}
            Some(error) => self.fail(Process::Worker(client), error),
            None if self.job.workers_of(client).all(ended) => {
                self.tell_coordinator(client, ToCoordinator::Finished { result: Vec::new() });
            }
            None => {}
        }
    }
}

impl Crew {
    fn wake(&mut self, worker: WorkerId) {
        self.doings[worker.index()] = Doing::Running;
        self.turns[worker.index()] += 1;
        self.ready.push_back(worker);
    }

    fn wake_if(&mut self, choose: impl Fn(Doing) -> bool) {
        for index in 0..self.doings.len() {
            if choose(self.doings[index]) {
                self.wake(WorkerId(index as u32));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::Servers as Places;
    use hemiola_core::{TableId, TableSchema, Values};

    #[test]
    fn a_message_that_costs_nothing_does_not_pass_one_that_is_due_at_the_same_moment() {
        let mut config = Config::new(1);
        config.servers = Places::Apart(1);
        // A hundred thousand bytes take a microsecond, and a few take no whole nanosecond.
        config.network.shard_seconds_per_byte = 1e-11;
        let tables = vec![TableSchema::dense("model", 100_000, 1)];
        let job = Job { tables, workers_per_client: vec![1], shards: 1, budget: None };
        let mut world = World::new(&config, job);
        let (client, shard, rows) = (ClientId(0), ShardId(0), 10_000u64);
        let update = ToShard::Inc {
            table: TableId(0),
            clock: Clock(0),
            worker: WorkerId(0),
            rows: (0..rows).collect::<Vec<_>>().into(),
            versions: None,
            values: Values::dense(1, vec![1.0; rows as usize]),
        };
        let mut packets = Vec::new();
        for message in [update, ToShard::Clock { clock: Clock(1) }] {
            let load = Load::Request(Arc::new(message));
            match world.wire.send(Time(0), (client, shard), load, &mut world.random) {
                Ok(Some(Posted::Arrives(_, packet))) => packets.push(packet),
                _ => panic!("the ends are apart"),
            }
        }
        let mut packets = packets.into_iter();
        world.now = Time(1000);
        packets.next().map(|update| world.deliver(update));
        let free = world.servers.free[0];
        assert!(free > world.now, "the update takes time");
        world.now = free;
        packets.next().map(|clock| world.deliver(clock));
        assert_eq!(world.servers.free[0], free, "the clock takes none");
        while let Some((time, coming)) = world.queue.pop() {
            world.now = time;
            if matches!(coming, Coming::Handle { .. }) {
                world.happen(coming);
            }
        }
        assert_eq!(world.coordinator.failure(), None);
    }
}
