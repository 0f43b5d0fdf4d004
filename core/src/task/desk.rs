//! A desk: the place of a worker or a scheduler, where what it issued and what it was asked come together.
//!
//! Whoever drives a client asks each of its desks what is next, does it, and says so. Nothing here waits.

use crate::array::Array;
use crate::filter;
use crate::ids::{ClientId, ShardId, WorkerId};
use crate::message::ToShard;
use crate::task::callee::{Callee, Need};
use crate::task::ledger::{Finished, Ledger};
use crate::task::letter::{CallHead, Head, Letter, Tells};
use crate::task::selection::Selection;
use crate::task::service::Service;
use crate::task::{Handle, Node, Reply, Task, TaskError, TaskFailure, TaskId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

const MICROS_PER_SECOND: f64 = 1e6;

/// The desks of a client.
#[derive(Debug)]
pub struct Desks {
    service: Arc<Service>,
    first: u32,
    desks: Vec<Desk>,
}

/// The place of one node.
#[derive(Debug)]
pub struct Desk {
    me: Node,
    job: u32,
    service: Arc<Service>,
    ledger: Ledger,
    callee: Callee<Asked>,
    /// What the calls of begun tasks have returned, for their replies.
    returned: BTreeMap<TaskId, (Vec<u8>, f64, f64)>,
    /// Those whose end nobody is told of.
    quiet: BTreeSet<TaskId>,
    /// Own tasks whose end is to be told to the node's program before it counts.
    told: BTreeSet<u64>,
    /// Those of them that are done.
    due: VecDeque<(u64, Option<TaskId>)>,
    /// Set when a letter has brought something that the node may have waited for.
    stirred: bool,
    outbox: Vec<Letter>,
}

/// A function that a worker was asked to call.
#[derive(Debug)]
struct Asked {
    call: CallHead,
    argument: Array<u8>,
    alone: bool,
}

/// What a node does next.
#[derive(Debug, PartialEq)]
pub enum Turn {
    /// One of its tasks failed.
    Failed(TaskFailure),
    /// Its task with this number is done, as it wished to be told.
    Told(u64),
    /// It calls a function.
    Call {
        /// For which task.
        id: TaskId,
        /// Which.
        name: String,
        /// With what.
        argument: Array<u8>,
    },
    /// It ends: no more tasks come.
    End {
        /// By which task.
        id: TaskId,
    },
    /// Nothing may be begun.
    Wait,
}

impl Desks {
    /// The desks of a client's threads; the ledger counts what filters hold back of what they push.
    #[must_use]
    pub fn new(
        client: ClientId,
        threads: std::ops::Range<u32>,
        service: &Arc<Service>,
        ledger: &filter::ledger::Ledger,
    ) -> Self {
        let desk = |thread| Desk::new((client, WorkerId(thread)), service, ledger);
        let (first, desks) = (threads.start, threads.filter_map(desk).collect());
        debug_assert!(service.client_of(service.node_of(WorkerId(first))) == Some(client));
        Self { service: Arc::clone(service), first, desks }
    }

    /// The desk of a thread.
    pub(crate) fn desk(&self, thread: WorkerId) -> &Desk {
        &self.desks[(thread.0 - self.first) as usize]
    }

    pub(crate) fn desk_mut(&mut self, thread: WorkerId) -> &mut Desk {
        &mut self.desks[(thread.0 - self.first) as usize]
    }

    /// Takes a letter; `None` if it cannot be right.
    pub(crate) fn receive(&mut self, letter: &Letter) -> Option<()> {
        let thread = self.service.thread_of(letter.to)?;
        let place = thread.0.checked_sub(self.first)? as usize;
        self.desks.get_mut(place)?.receive(letter)
    }

    /// What is to be sent, and by way of which shard.
    pub(crate) fn outbox(&mut self) -> Vec<(ShardId, Arc<ToShard>)> {
        let letters = self.desks.iter_mut().flat_map(|desk| desk.outbox.drain(..));
        let shards = self.service.shards();
        let way = |letter: &Letter| match letter.to {
            Node::Server(shard) => shard,
            Node::Worker(WorkerId(number)) | Node::Scheduler(number) => ShardId(number % shards),
        };
        letters.map(|letter| (way(&letter), Arc::new(ToShard::Task(letter)))).collect()
    }
}

impl Desk {
    fn new(
        (client, thread): (ClientId, WorkerId),
        service: &Arc<Service>,
        ledger: &filter::ledger::Ledger,
    ) -> Option<Self> {
        let me = service.node_of(thread);
        let job = service.job_of(me)?;
        let selection = Selection::new(service, job, (client, thread), ledger);
        Some(Self {
            me,
            job,
            service: Arc::clone(service),
            ledger: Ledger::new(me, job, Arc::clone(service), selection),
            callee: Callee::default(),
            returned: BTreeMap::new(),
            quiet: BTreeSet::new(),
            told: BTreeSet::new(),
            due: VecDeque::new(),
            stirred: false,
            outbox: Vec::new(),
        })
    }

    /// Issues a task, as a part of `parent` if it has one. With `tell` the task counts as done only when the node's
    /// program has been told and has said so by [`Desk::heard`].
    ///
    /// # Errors
    /// If there cannot be such a task.
    pub fn issue(&mut self, task: Task, parent: Option<TaskId>, tell: bool) -> Result<Handle, TaskError> {
        let (handle, finished) = self.ledger.issue(task, parent, &mut self.outbox)?;
        if tell {
            self.told.insert(handle.id.number);
        }
        if let Some(parent) = parent {
            self.callee.open_subtask(parent);
        }
        finished.into_iter().for_each(|finished| self.finish(&finished));
        Ok(handle)
    }

    /// What to do next: first what was waited for, then what may be begun.
    pub fn turn(&mut self) -> Turn {
        if let Some(failure) = self.ledger.failure() {
            return Turn::Failed(failure.clone());
        }
        if let Some(&(number, _)) = self.due.front() {
            return Turn::Told(number);
        }
        match self.callee.start(|asked| asked.alone) {
            Some((id, Asked { call: CallHead::Function { name }, argument, .. })) => Turn::Call { id, name, argument },
            Some((id, _)) => Turn::End { id },
            None => Turn::Wait,
        }
    }

    /// The program has done what it does when the first task that it was to be told of is done.
    pub fn heard(&mut self) {
        if let Some((_, Some(parent))) = self.due.pop_front() {
            self.close_subtask(parent);
        }
    }

    /// The call of a task has returned this, after so many seconds of waiting for it and of working on it.
    pub fn returned(&mut self, id: TaskId, result: Vec<u8>, waited_seconds: f64, ran_seconds: f64) {
        self.returned.insert(id, (result, waited_seconds, ran_seconds));
        if self.callee.returned(id) {
            self.reply(id);
        }
    }

    /// The call of a task has failed.
    pub fn failed(&mut self, id: TaskId, reason: String) {
        self.outbox.push(Letter::new(self.me, id.caller, &Head::Failed { number: id.number, reason }));
    }

    /// The first of this node's tasks that failed.
    #[must_use]
    pub fn failure(&self) -> Option<&TaskFailure> {
        self.ledger.failure()
    }

    /// The reply of a task, if that is done.
    pub fn take(&mut self, handle: &Handle) -> Option<Reply> {
        self.ledger.take(handle)
    }

    /// Whether a task is done.
    #[must_use]
    pub fn is_done(&self, handle: &Handle) -> bool {
        self.ledger.is_done(handle)
    }

    /// A task that is not done, and what it lacks.
    #[must_use]
    pub fn describe(&self, handle: &Handle) -> String {
        self.ledger.describe(handle.id.number)
    }

    /// The first of this node's tasks that is not done, and what it lacks.
    #[must_use]
    pub fn describe_first(&self) -> Option<String> {
        self.ledger.first_open().map(|number| self.ledger.describe(number))
    }

    /// Whether no task waits here for another, and none that was issued here is open.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.callee.first_held().is_none() && self.ledger.first_open().is_none()
    }

    /// What this node waits for when it has nothing to do.
    #[must_use]
    pub fn describe_idle(&self) -> String {
        match self.callee.first_held() {
            Some((id, Need::Task(need))) => format!("{need}, before which {id} may not begin"),
            Some((id, Need::Stamp(issuer, stamp))) => {
                format!("a task with stamp {stamp} of {issuer}, before which {id} may not begin")
            }
            None => self.describe_first().unwrap_or_else(|| "the next task of its scheduler".to_owned()),
        }
    }

    fn receive(&mut self, letter: &Letter) -> Option<()> {
        match letter.read()? {
            Head::Task(head) => {
                let caller = letter.from;
                self.callee.settle(caller, head.settled);
                let tasks = head.after.iter().map(|&number| Need::Task(TaskId { caller, number }));
                let stamps = head.after_stamps.iter().flat_map(|(group, stamp)| {
                    self.service.members(self.job, *group).into_iter().map(|issuer| Need::Stamp(issuer, *stamp))
                });
                let needs: Vec<Need> = tasks.chain(stamps).collect();
                let alone = head.tells == Tells::CallerAlone;
                let asked = Asked { call: head.call, argument: letter.payload.clone(), alone };
                if !matches!(asked.call, CallHead::Function { .. } | CallHead::End) {
                    return None;
                }
                let id = TaskId { caller, number: head.number };
                if head.tells == Tells::Nobody {
                    self.quiet.insert(id);
                }
                self.callee.accept(id, needs, head.stamp, asked);
            }
            Head::Finished { number } => self.callee.finished(TaskId { caller: letter.from, number }),
            Head::Done { number, waited_micros, ran_micros } => {
                let [waited, ran] = [waited_micros, ran_micros].map(|micros| micros as f64 / MICROS_PER_SECOND);
                self.take_reply(number, Ok((waited, ran)), letter)?;
            }
            Head::Failed { number, reason } => self.take_reply(number, Err(reason), letter)?,
        }
        self.stirred |= self.callee.has_ready() || self.ledger.failure().is_some();
        Some(())
    }

    /// Whether a letter has brought something that the node may have waited for, since it was last asked: one of its tasks
    /// is done or has failed, or it may begin another's.
    pub fn take_stirred(&mut self) -> bool {
        std::mem::take(&mut self.stirred)
    }

    fn take_reply(&mut self, number: u64, outcome: Result<(f64, f64), String>, letter: &Letter) -> Option<()> {
        let finished = self.ledger.replied(letter.from, number, outcome, letter, &mut self.outbox)?;
        finished.into_iter().for_each(|finished| self.finish(&finished));
        Some(())
    }

    /// One of this node's own tasks is done.
    fn finish(&mut self, finished: &Finished) {
        self.stirred = true;
        let id = TaskId { caller: self.me, number: finished.number };
        self.callee.finished(id);
        if self.told.remove(&finished.number) {
            self.due.push_back((finished.number, finished.parent));
        } else if let Some(parent) = finished.parent {
            self.close_subtask(parent);
        }
    }

    fn close_subtask(&mut self, parent: TaskId) {
        if self.callee.close_subtask(parent) {
            self.reply(parent);
        }
    }

    fn reply(&mut self, id: TaskId) {
        let (result, waited_seconds, ran_seconds) = self.returned.remove(&id).expect("its call has returned");
        if self.quiet.remove(&id) {
            return;
        }
        let [waited_micros, ran_micros] =
            [waited_seconds, ran_seconds].map(|seconds| (seconds * MICROS_PER_SECOND).round() as u64);
        let head = Head::Done { number: id.number, waited_micros, ran_micros };
        let letter = Letter::new(self.me, id.caller, &head);
        self.outbox.push(Letter { payload: result.into(), ..letter });
    }
}
