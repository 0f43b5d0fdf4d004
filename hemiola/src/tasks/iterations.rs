//! One iteration after the other, each a task on a group, as many under way as a delay allows.

use crate::error::Error;
use crate::tasks::{Delay, Handle, Measured, Node, Reply, Task};
use std::collections::BTreeMap;

/// What a scheduler keeps of the iterations that it issues.
///
/// Iteration `t` comes after all iterations before `t − τ`. Where others run meanwhile, the scheduler issues it when those
/// are done, so that nobody has to be told of it apart. Where none would, with `τ = 0`, the scheduler stays one iteration
/// ahead of what may run, so that callees have it at hand, and it is they who see to the order.
pub struct Iterations {
    delay: Delay,
    issued: u64,
    open: BTreeMap<u64, Handle>,
}

impl Iterations {
    /// No iteration yet.
    #[must_use]
    pub fn new(delay: Delay) -> Self {
        Self { delay, issued: 0, open: BTreeMap::new() }
    }

    /// The bound `τ` now; `None` is none.
    #[must_use]
    pub fn bound(&self) -> Option<u64> {
        self.delay.bound()
    }

    /// Whether no iteration is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Issues the next iteration. `done` is shown the iterations that have been done meanwhile, in order, and says what
    /// the objective was there if it knows: a delay that adapts itself goes by that and by how long workers waited.
    ///
    /// # Errors
    /// As [`Node::issue`] and [`Node::wait`].
    pub fn issue(
        &mut self,
        node: &mut Node<'_, ()>,
        task: Task,
        done: &mut dyn FnMut(u64, &Reply) -> Option<f64>,
    ) -> Result<Handle, Error> {
        let t = self.issued;
        let ahead = u64::from(self.delay.bound() == Some(0));
        self.collect(node, self.delay.waits_for(t).end.saturating_sub(ahead), done)?;
        let earlier = self.open.range(self.delay.waits_for(t)).map(|(_, handle)| handle);
        let handle = node.issue(task.after(earlier))?;
        self.open.insert(t, handle.clone());
        self.issued += 1;
        Ok(handle)
    }

    /// Waits until all iterations are done.
    ///
    /// # Errors
    /// As [`Node::wait`].
    pub fn finish(
        &mut self,
        node: &mut Node<'_, ()>,
        done: &mut dyn FnMut(u64, &Reply) -> Option<f64>,
    ) -> Result<(), Error> {
        self.collect(node, self.issued, done)
    }

    /// Waits for the iterations before `until`, and takes those that are done.
    fn collect(
        &mut self,
        node: &mut Node<'_, ()>,
        until: u64,
        done: &mut dyn FnMut(u64, &Reply) -> Option<f64>,
    ) -> Result<(), Error> {
        let numbers: Vec<u64> = self.open.keys().copied().collect();
        for t in numbers {
            if t < until || node.is_done(&self.open[&t])? {
                let reply = node.wait(&self.open[&t])?;
                self.open.remove(&t);
                let busy = reply.waited_seconds + reply.ran_seconds;
                let waiting_share = if busy > 0.0 { reply.waited_seconds / busy } else { 0.0 };
                self.delay.observe(Measured { waiting_share, objective: done(t, &reply) });
            }
        }
        Ok(())
    }
}
