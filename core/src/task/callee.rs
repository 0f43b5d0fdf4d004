//! A callee's queue: it holds tasks until what they come after is done, and knows when a task is done itself.

use crate::task::runs::Runs;
use crate::task::{Node, TaskId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Something that must be done before a task is begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// This task, on all nodes that it was issued to.
    Task(TaskId),
    /// A task with this stamp from this issuer, on this node.
    Stamp(Node, u64),
}

/// What a node was asked to do; `T` is what it needs for doing it.
#[derive(Debug)]
pub struct Callee<T> {
    held: BTreeMap<TaskId, Held<T>>,
    /// Who is held for what.
    waits: BTreeMap<Need, Vec<TaskId>>,
    ready: VecDeque<(TaskId, Option<u64>, T)>,
    begun: BTreeMap<TaskId, Begun>,
    /// Tasks that are done everywhere, as far as this node knows.
    done: BTreeMap<Node, Runs>,
    /// Stamps of tasks that are done here.
    stamps: BTreeMap<Node, Runs>,
}

#[derive(Debug)]
struct Held<T> {
    missing: BTreeSet<Need>,
    stamp: Option<u64>,
    item: T,
}

/// A task whose call has begun.
#[derive(Debug)]
struct Begun {
    stamp: Option<u64>,
    returned: bool,
    subtasks: usize,
    /// It was issued to this node alone, so what is done here is done.
    alone: bool,
}

impl<T> Default for Callee<T> {
    fn default() -> Self {
        Self {
            held: BTreeMap::new(),
            waits: BTreeMap::new(),
            ready: VecDeque::new(),
            begun: BTreeMap::new(),
            done: BTreeMap::new(),
            stamps: BTreeMap::new(),
        }
    }
}

impl<T> Callee<T> {
    /// Takes a task, and holds it until every one of `needs` is met.
    pub fn accept(&mut self, id: TaskId, needs: impl IntoIterator<Item = Need>, stamp: Option<u64>, item: T) {
        let missing: BTreeSet<Need> = needs.into_iter().filter(|need| !self.is_met(*need)).collect();
        if missing.is_empty() {
            self.ready.push_back((id, stamp, item));
            return;
        }
        for need in &missing {
            self.waits.entry(*need).or_default().push(id);
        }
        self.held.insert(id, Held { missing, stamp, item });
    }

    fn is_met(&self, need: Need) -> bool {
        let (runs, node, number) = match need {
            Need::Task(id) => (&self.done, id.caller, id.number),
            Need::Stamp(issuer, stamp) => (&self.stamps, issuer, stamp),
        };
        runs.get(&node).is_some_and(|runs| runs.contains(number))
    }

    /// The next task to begin, of those that may. `alone` says of a task whether this node is the only one it was
    /// issued to.
    pub fn start(&mut self, alone: impl Fn(&T) -> bool) -> Option<(TaskId, T)> {
        let (id, stamp, item) = self.ready.pop_front()?;
        self.begun.insert(id, Begun { stamp, returned: false, subtasks: 0, alone: alone(&item) });
        Some((id, item))
    }

    /// Whether there is a task that may begin.
    #[must_use]
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The call of a task has issued another task.
    pub fn open_subtask(&mut self, id: TaskId) {
        if let Some(begun) = self.begun.get_mut(&id) {
            begun.subtasks += 1;
        }
    }

    /// A subtask is done. Says whether the task itself is done by that.
    pub fn close_subtask(&mut self, id: TaskId) -> bool {
        if let Some(begun) = self.begun.get_mut(&id) {
            begun.subtasks -= 1;
        }
        self.conclude(id)
    }

    /// The call of a task has returned. Says whether the task is done by that.
    pub fn returned(&mut self, id: TaskId) -> bool {
        if let Some(begun) = self.begun.get_mut(&id) {
            begun.returned = true;
        }
        self.conclude(id)
    }

    fn conclude(&mut self, id: TaskId) -> bool {
        if !self.begun.get(&id).is_some_and(|begun| begun.returned && begun.subtasks == 0) {
            return false;
        }
        let begun = self.begun.remove(&id).expect("just seen");
        if let Some(stamp) = begun.stamp {
            self.stamps.entry(id.caller).or_default().insert(stamp);
            self.meet(Need::Stamp(id.caller, stamp));
        }
        if begun.alone {
            self.finished(id);
        }
        true
    }

    /// A task is done on all nodes that it was issued to.
    pub fn finished(&mut self, id: TaskId) {
        self.done.entry(id.caller).or_default().insert(id.number);
        self.meet(Need::Task(id));
    }

    /// All tasks of a caller below this number are done on all nodes. The caller says so with every task, so that what
    /// is remembered of it stays small.
    pub fn settle(&mut self, caller: Node, below: u64) {
        self.done.entry(caller).or_default().insert_all(0..below);
        let first = Need::Task(TaskId { caller, number: 0 });
        let met: Vec<Need> =
            self.waits.range(first..Need::Task(TaskId { caller, number: below })).map(|(need, _)| *need).collect();
        met.into_iter().for_each(|need| self.meet(need));
    }

    fn meet(&mut self, need: Need) {
        for id in self.waits.remove(&need).unwrap_or_default() {
            let Some(held) = self.held.get_mut(&id) else { continue };
            held.missing.remove(&need);
            if held.missing.is_empty() {
                let held = self.held.remove(&id).expect("just seen");
                self.ready.push_back((id, held.stamp, held.item));
            }
        }
    }

    /// The first of the held tasks and what it is held for, for messages to people.
    #[must_use]
    pub fn first_held(&self) -> Option<(TaskId, Need)> {
        let (id, held) = self.held.first_key_value()?;
        Some((*id, *held.missing.first()?))
    }

    /// Whether nothing is held, ready or begun.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty() && self.ready.is_empty() && self.begun.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::WorkerId;
    use proptest::prelude::*;

    const CALLER: Node = Node::Worker(WorkerId(0));

    fn id(number: u64) -> TaskId {
        TaskId { caller: CALLER, number }
    }

    #[test]
    fn a_task_is_done_when_its_call_and_its_subtasks_are() {
        let mut callee = Callee::default();
        callee.accept(id(0), [], Some(7), ());
        callee.accept(id(1), [Need::Task(id(0))], None, ());
        callee.accept(id(2), [Need::Stamp(CALLER, 7)], None, ());
        assert_eq!(callee.start(|()| true), Some((id(0), ())));
        assert_eq!(callee.start(|()| true), None);
        callee.open_subtask(id(0));
        assert!(!callee.returned(id(0)));
        assert_eq!(callee.start(|()| true), None);
        assert_eq!(callee.first_held(), Some((id(1), Need::Task(id(0)))));
        assert!(callee.close_subtask(id(0)));
        assert_eq!(callee.start(|()| true), Some((id(2), ())));
        assert_eq!(callee.start(|()| true), Some((id(1), ())));
    }

    #[test]
    fn a_task_of_several_nodes_is_done_when_its_caller_says_so() {
        let mut callee = Callee::default();
        callee.accept(id(0), [], None, ());
        callee.accept(id(1), [Need::Task(id(0))], None, ());
        assert_eq!(callee.start(|()| false), Some((id(0), ())));
        assert!(callee.returned(id(0)));
        assert_eq!(callee.start(|()| false), None);
        callee.finished(id(0));
        assert_eq!(callee.start(|()| false), Some((id(1), ())));
        callee.accept(id(9), [Need::Task(id(8))], None, ());
        callee.settle(CALLER, 9);
        assert_eq!(callee.start(|()| false), Some((id(9), ())));
        assert!(callee.returned(id(1)) && callee.returned(id(9)) && callee.is_empty());
    }

    proptest! {
        /// Whatever the graph and the order in which tasks arrive, are begun, and return: none begins before what it
        /// comes after is done, and all are done in the end.
        #[test]
        fn random_graphs_in_random_orders_are_done_in_an_order_that_they_allow(
            edges in proptest::collection::vec((0usize..20, 0usize..20), 0..60),
            arrivals in Just((0..20u64).collect::<Vec<_>>()).prop_shuffle(),
            choices in proptest::collection::vec((any::<bool>(), any::<proptest::sample::Index>(), 0usize..3), 200),
        ) {
            let mut after: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); 20];
            edges.iter().filter(|(a, b)| a < b).for_each(|&(a, b)| { after[b].insert(a as u64); });
            let mut callee = Callee::default();
            let mut arrivals = arrivals.into_iter();
            let mut open: Vec<(u64, usize)> = Vec::new();
            let mut done = BTreeSet::new();
            let mut choices = choices.into_iter().cycle();
            for _ in 0..2000 {
                let (arrive, which, subtasks) = choices.next().expect("endless");
                if arrive && let Some(number) = arrivals.next() {
                    // Even ones are named by their handle, odd ones by a stamp.
                    let need = |&n: &u64| if n % 2 == 0 { Need::Task(id(n)) } else { Need::Stamp(CALLER, n + 100) };
                    callee.accept(id(number), after[number as usize].iter().map(need), Some(number + 100), ());
                }
                if let Some((begun, ())) = callee.start(|()| true) {
                    prop_assert!(after[begun.number as usize].is_subset(&done), "{} began too early", begun.number);
                    (0..subtasks).for_each(|_| callee.open_subtask(begun));
                    open.push((begun.number, subtasks + 1));
                }
                if !open.is_empty() {
                    let place = which.index(open.len());
                    let (number, left) = &mut open[place];
                    *left -= 1;
                    let ended = if *left == 0 { callee.returned(id(*number)) } else { callee.close_subtask(id(*number)) };
                    prop_assert_eq!(ended, *left == 0);
                    if ended {
                        done.insert(*number);
                        open.swap_remove(place);
                    }
                }
            }
            prop_assert_eq!(done.len(), 20);
            prop_assert!(callee.is_empty());
        }
    }
}
