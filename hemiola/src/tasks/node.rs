//! What the programs of a job of tasks write against: one node's way to issue tasks, to wait for them, and to serve.

use crate::error::Error;
use crate::host::Core;
use crate::tasks::{Graph, Handle, NodeId, Reply, Task, TaskFailure, TaskId};
use crate::worker::Worker;
use hemiola_core::shard::tasks::panic_message;
use hemiola_core::task::desk::{Desk, Turn};
use hemiola_core::{Array, Values, WorkerId};
use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

/// A function that a worker serves: it gets the worker's state, its node, and the argument of the task.
pub type Function<'a, S> = dyn Fn(&mut S, &mut Node<'_, S>, &[u8]) -> Result<Vec<u8>, Error> + 'a;

/// A worker that misses nothing but work waits this many times as long as others: whoever knows more speaks first.
const IDLE_PATIENCE: u32 = 10;

/// What is to be done when a task is.
type CallBack<S> = Box<dyn FnOnce(&mut S, &mut Node<'_, S>, Reply) -> Result<(), Error>>;

/// A worker or a scheduler of a job. `S` is the state that a worker serves its functions with.
pub struct Node<'a, S> {
    worker: &'a mut Worker,
    id: NodeId,
    /// The workers of the job.
    group: Range<u32>,
    /// The task whose call is running.
    parent: Option<TaskId>,
    /// Seconds blocked since a call last returned.
    waited: f64,
    call_backs: BTreeMap<u64, Registered<S>>,
}

/// A call-back, with its task and the task that this one is a part of.
struct Registered<S> {
    handle: Handle,
    parent: Option<TaskId>,
    call_back: CallBack<S>,
}

impl<'a> Node<'a, ()> {
    pub(crate) fn new(worker: &'a mut Worker, id: NodeId, group: Range<u32>) -> Self {
        Self { worker, id, group, parent: None, waited: 0.0, call_backs: BTreeMap::new() }
    }

    /// Serves functions until the job ends, one at a time, with a state that they share. What they issue is a part of
    /// the task that called them.
    ///
    /// # Errors
    /// If a task that this worker issued failed, it had nothing to do for too long, or the job has been stopped. A
    /// function that fails is told to its caller, and ends nothing here.
    pub fn serve<S>(&mut self, state: &mut S, functions: &[(&str, &Function<'_, S>)]) -> Result<(), Error> {
        let mut node = Node {
            worker: &mut *self.worker,
            id: self.id,
            group: self.group.clone(),
            parent: None,
            waited: 0.0,
            call_backs: BTreeMap::new(),
        };
        loop {
            match node.turn()? {
                Turn::Failed(failure) => return Err(Error::TaskFailed(failure)),
                Turn::Told(number) => node.call_back(state, number)?,
                Turn::End { id } => {
                    node.at_desk(|desk| desk.returned(id, Vec::new(), 0.0, 0.0))?;
                    return Ok(());
                }
                Turn::Call { id, name, argument } => node.call(state, functions, id, &name, &argument)?,
                Turn::Wait => unreachable!("waited for above"),
            }
        }
    }

    /// Waits for everything that this scheduler issued, and tells the workers that no more comes.
    pub(crate) fn end(&mut self) -> Result<(), Error> {
        while let Some(number) = self.wait_until_settled()? {
            self.call_back(&mut (), number)?;
        }
        let end = self.issue(Task::end())?;
        self.wait(&end).map(drop)
    }

    /// Waits until nothing is open, or the end of a task is to be told, whose number is given.
    fn wait_until_settled(&mut self) -> Result<Option<u64>, Error> {
        self.wait_at_desk(
            |desk| match desk.turn() {
                Turn::Failed(failure) => Poll::Ready(Err(failure)),
                Turn::Told(number) => Poll::Ready(Ok(Some(number))),
                _ if desk.describe_first().is_none() => Poll::Ready(Ok(None)),
                _ => Poll::Pending,
            },
            |desk| desk.describe_first().unwrap_or_default(),
        )
    }
}

impl<S> Node<'_, S> {
    /// Which node this is.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// The worker's number among the workers of its job, from zero; zero for a scheduler.
    #[must_use]
    pub fn rank(&self) -> u32 {
        if let NodeId::Worker(worker) = self.id { worker.0 - self.group.start } else { 0 }
    }

    /// How many workers the job has.
    #[must_use]
    pub fn workers(&self) -> u32 {
        self.group.len() as u32
    }

    /// The worker with this number in the job, as a node.
    #[must_use]
    pub fn worker(&self, rank: u32) -> NodeId {
        NodeId::Worker(WorkerId(self.group.start + rank))
    }

    /// Seconds since the job began; virtual ones in the simulator.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.worker.seconds()
    }

    /// Says that `units` of work were done, as [`Worker::work`] does.
    ///
    /// # Errors
    /// If the simulation has been stopped.
    pub fn work(&mut self, units: u64) -> Result<(), Error> {
        self.worker.work(units)
    }

    /// Adds `values` to a report that all workers and schedulers make, as [`Worker::report`] does.
    pub fn report(&mut self, values: &[f64]) {
        self.worker.report(values);
    }

    /// Issues a task, and returns at once.
    ///
    /// # Errors
    /// If there cannot be such a task, an earlier one has failed, or the job has been stopped.
    pub fn issue(&mut self, task: Task) -> Result<Handle, Error> {
        self.issue_any(task, false)
    }

    /// Issues a task, and lets `call_back` have its reply when it is done: on this node, between the functions that it
    /// serves. The task counts as done only then.
    ///
    /// # Errors
    /// As [`Node::issue`].
    pub fn issue_then(
        &mut self,
        task: Task,
        call_back: impl FnOnce(&mut S, &mut Node<'_, S>, Reply) -> Result<(), Error> + 'static,
    ) -> Result<Handle, Error> {
        let handle = self.issue_any(task, true)?;
        let registered = Registered { handle: handle.clone(), parent: self.parent, call_back: Box::new(call_back) };
        self.call_backs.insert(handle.id.number, registered);
        Ok(handle)
    }

    fn issue_any(&mut self, task: Task, tell: bool) -> Result<Handle, Error> {
        let parent = self.parent;
        self.at_desk(|desk| match desk.failure() {
            Some(failure) => Err(Error::TaskFailed(failure.clone())),
            None => Ok(desk.issue(task, parent, tell)?),
        })?
    }

    /// Issues all tasks of a graph; gives their handles in the order of adding.
    ///
    /// # Errors
    /// If tasks wait for one another in a circle, and as [`Node::issue`]; in the first case nothing has been issued.
    pub fn submit(&mut self, graph: Graph) -> Result<Vec<Handle>, Error> {
        let order = graph.in_order()?;
        let mut handles: Vec<Option<Handle>> = vec![None; order.len()];
        for (place, task, earlier) in order {
            let task = task.after(earlier.iter().filter_map(|earlier| handles[earlier.index()].as_ref()));
            handles[place.index()] = Some(self.issue(task)?);
        }
        Ok(handles.into_iter().flatten().collect())
    }

    /// Whether a task is done.
    ///
    /// # Errors
    /// If the job has been stopped.
    pub fn is_done(&mut self, task: &Handle) -> Result<bool, Error> {
        self.at_desk(|desk| desk.is_done(task))
    }

    /// Waits until a task is done, and gives its reply. It is given once; after that an empty one.
    ///
    /// # Errors
    /// If a task that this node issued has failed, the wait takes too long, or the job has been stopped.
    pub fn wait(&mut self, task: &Handle) -> Result<Reply, Error> {
        self.wait_at_desk(
            |desk| match desk.failure() {
                Some(failure) => Poll::Ready(Err(failure.clone())),
                None => desk.take(task).map_or(Poll::Pending, |reply| Poll::Ready(Ok(reply))),
            },
            |desk| desk.describe(task),
        )
    }

    /// Waits until a pull is done, and gives its numbers, row by row in the order of the keys.
    ///
    /// # Errors
    /// As [`Node::wait`].
    pub fn wait_numbers(&mut self, pull: &Handle) -> Result<Array<f32>, Error> {
        match self.wait(pull)?.values {
            Some(Values::Dense { numbers, .. }) => Ok(numbers),
            _ => Ok(Vec::new().into()),
        }
    }

    fn turn(&mut self) -> Result<Turn, Error> {
        let turn = |desk: &mut Desk| match desk.turn() {
            Turn::Wait => Poll::Pending,
            turn => Poll::Ready(Ok(turn)),
        };
        let mut patience = IDLE_PATIENCE;
        loop {
            match self.wait_at_desk(turn, Desk::describe_idle) {
                Err(Error::TaskTimeout { .. }) if patience > 1 && self.at_desk(|desk| desk.is_clear())? => {
                    patience -= 1;
                }
                turn => return turn,
            }
        }
    }

    /// Calls a function for a task.
    fn call(
        &mut self,
        state: &mut S,
        functions: &[(&str, &Function<'_, S>)],
        id: TaskId,
        name: &str,
        argument: &[u8],
    ) -> Result<(), Error> {
        let (began, waited_before) = (self.seconds(), self.waited);
        self.parent = Some(id);
        let returned = match functions.iter().find(|(known, _)| *known == name) {
            Some((_, function)) => match catch_unwind(AssertUnwindSafe(|| function(state, self, argument))) {
                Ok(Err(error @ Error::Stopped { .. })) => return Err(error),
                Ok(returned) => returned.map_err(|error| error.to_string()),
                Err(panic) => Err(format!("it panicked: {}", panic_message(panic.as_ref()))),
            },
            None => Err("workers have no function of that name".to_owned()),
        };
        self.parent = None;
        let waited = std::mem::take(&mut self.waited);
        let ran = (self.seconds() - began - (waited - waited_before)).max(0.0);
        self.at_desk(|desk| match returned {
            Ok(result) => desk.returned(id, result, waited, ran),
            Err(reason) => desk.failed(id, reason),
        })
    }

    /// Calls what is to be called now that a task is done.
    fn call_back(&mut self, state: &mut S, number: u64) -> Result<(), Error> {
        if let Some(Registered { handle, parent, call_back }) = self.call_backs.remove(&number) {
            let reply = self.at_desk(|desk| desk.take(&handle))?.unwrap_or_default();
            self.parent = parent;
            let called = call_back(state, self, reply);
            self.parent = None;
            called.map_err(|error| {
                let what = "the call-back".to_owned();
                Error::TaskFailed(TaskFailure { id: handle.id, what, node: self.id, reason: error.to_string() })
            })?;
        }
        self.at_desk(Desk::heard)
    }

    fn at_desk<R>(&mut self, act: impl FnOnce(&mut Desk) -> R) -> Result<R, Error> {
        let thread = self.worker.id();
        self.worker.host().operate(|core| core.at_desk(thread, act))
    }

    fn wait_at_desk<R>(
        &mut self,
        mut poll: impl FnMut(&mut Desk) -> Poll<Result<R, TaskFailure>>,
        explain: impl Fn(&Desk) -> String,
    ) -> Result<R, Error> {
        let (thread, node) = (self.worker.id(), self.id);
        let (result, waited) = self.worker.wait_until(
            |core| core.at_desk(thread, &mut poll),
            |core, seconds| Error::TaskTimeout {
                node,
                what: core.desk(thread).map_or_else(String::new, &explain),
                seconds,
            },
        )?;
        self.waited += waited;
        result.map_err(Error::TaskFailed)
    }
}

impl Core {
    fn at_desk<R>(&mut self, thread: WorkerId, act: impl FnOnce(&mut Desk) -> R) -> R {
        match self {
            Self::Cached { client, .. } => client.at_desk(thread, act),
            Self::Embedded(_) | Self::Peers(_) => unreachable!("a job of tasks has servers"),
        }
    }

    fn desk(&self, thread: WorkerId) -> Option<&Desk> {
        match self {
            Self::Cached { client, .. } => client.desk(thread),
            Self::Embedded(_) | Self::Peers(_) => None,
        }
    }
}
