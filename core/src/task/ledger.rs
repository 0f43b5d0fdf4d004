//! A caller's ledger: the tasks that it issued, who has yet to reply, and what came back.

use crate::ids::TableId;
use crate::row::RowKind;
use crate::schema::TableSchema;
use crate::task::letter::{CallHead, Head, Letter, TaskHead, Tells};
use crate::task::runs::Runs;
use crate::task::selection::Selection;
use crate::task::service::Service;
use crate::task::split::{Part, check, cut, paste, split};
use crate::task::{Call, Group, Handle, Keys, Node, Reply, Task, TaskError, TaskFailure, TaskId};
use crate::values::Values;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Weak};

/// What one node has issued.
#[derive(Debug)]
pub struct Ledger {
    me: Node,
    job: u32,
    service: Arc<Service>,
    issued: u64,
    open: BTreeMap<u64, Open>,
    /// The replies of tasks that are done and may still be asked for.
    replies: BTreeMap<u64, (Weak<()>, Reply)>,
    /// When so many replies are kept, those that nobody can ask for are looked for.
    replies_max: usize,
    stamps: Runs,
    selection: Selection,
    failure: Option<TaskFailure>,
}

/// A task that is not done.
#[derive(Debug)]
struct Open {
    what: String,
    claim: Weak<()>,
    parent: Option<TaskId>,
    awaited: BTreeSet<Node>,
    /// The only node that it was issued to, which needs not be told that it is done.
    alone: Option<Node>,
    /// Who holds tasks that come after it.
    tell: BTreeSet<Node>,
    after: Vec<u64>,
    after_stamps: Vec<String>,
    pulled: Option<Pulled>,
    reply: Reply,
}

/// What is put together of the replies to a pull.
#[derive(Debug)]
struct Pulled {
    width: u32,
    keys: usize,
    places: BTreeMap<Node, Vec<Range<usize>>>,
    /// Empty until the first part comes.
    numbers: Vec<f32>,
    schema: TableSchema,
}

/// A task that is done: what the node that issued it must see to.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) number: u64,
    pub(crate) parent: Option<TaskId>,
}

impl Ledger {
    /// The empty ledger of a node of a job.
    pub(crate) fn new(me: Node, job: u32, service: Arc<Service>, selection: Selection) -> Self {
        Self {
            me,
            job,
            service,
            issued: 0,
            open: BTreeMap::new(),
            replies: BTreeMap::new(),
            replies_max: 64,
            stamps: Runs::default(),
            selection,
            failure: None,
        }
    }

    /// Numbers a task and writes the letters that carry it. A task for nobody is done at once, and so is a quiet one.
    pub(crate) fn issue(
        &mut self,
        task: Task,
        parent: Option<TaskId>,
        outbox: &mut Vec<Letter>,
    ) -> Result<(Handle, Option<Finished>), TaskError> {
        let Task { call, after, after_stamps, stamp, quiet } = task;
        let call = self.select(call)?;
        let parts = self.parts(&call, stamp.is_some())?;
        if let Some(stranger) = after.iter().find(|handle| handle.id.caller != self.me) {
            return Err(TaskError::NotIssuedHere { caller: self.me, id: stranger.id });
        }
        if let Some(stamp) = stamp
            && !self.stamps.insert(stamp)
        {
            return Err(TaskError::StampTwice { node: self.me, stamp });
        }
        let number = self.issued;
        self.issued += 1;
        let after: Vec<u64> =
            after.iter().map(|handle| handle.id.number).filter(|n| self.open.contains_key(n)).collect();
        let alone = if let [(node, _)] = &parts[..] { Some(*node) } else { None };
        for earlier in &after {
            let earlier = self.open.get_mut(earlier).expect("just filtered");
            earlier.tell.extend(parts.iter().map(|(node, _)| *node).filter(|&node| earlier.alone != Some(node)));
        }
        let claim = Arc::new(());
        let service = Arc::clone(&self.service);
        let name = |table| service.table(self.job, table).map_or_else(String::new, |(_, schema)| schema.name.clone());
        let open = Open {
            what: call.describe(name),
            claim: Arc::downgrade(&claim),
            parent,
            awaited: parts.iter().map(|(node, _)| *node).collect(),
            alone,
            tell: BTreeSet::new(),
            after: after.clone(),
            after_stamps: after_stamps.iter().map(|(group, stamp)| format!("stamp {stamp} of {group}")).collect(),
            pulled: self.pulled(&call, &parts),
            reply: Reply::default(),
        };
        self.open.insert(number, open);
        let tells = match alone {
            _ if quiet => Tells::Nobody,
            Some(_) => Tells::CallerAlone,
            None => Tells::Caller,
        };
        let settled = self.open.first_key_value().map_or(number, |(&first, _)| first);
        for (node, part) in &parts {
            let head = TaskHead {
                number,
                call: call_head(&call, part.as_ref()),
                after: after.clone(),
                after_stamps: after_stamps.clone(),
                stamp,
                settled,
                tells,
            };
            outbox.push(self.write(*node, head, &call, part.as_ref()));
        }
        let handle = Handle { id: TaskId { caller: self.me, number }, _claim: claim };
        let finished = (quiet || parts.is_empty()).then(|| self.finish(number, outbox));
        Ok((handle, finished))
    }

    /// The call without what filters hold back of it.
    fn select(&mut self, call: Call) -> Result<Call, TaskError> {
        let Call::Push { table, keys, values, keep } = call else { return Ok(call) };
        self.check(table, &keys, Some((&values, keep)))?;
        let count = keys.len();
        let (keys, values) = self.selection.sift(table, keys, values).map_err(|error| {
            let name = self.service.table(self.job, table).map_or("", |(_, schema)| schema.name.as_str());
            let what = format!("push of {count} keys to table '{name}'");
            let id = TaskId { caller: self.me, number: self.issued };
            TaskError::Filter(Box::new(TaskFailure { id, what, node: self.me, reason: error.to_string() }))
        })?;
        Ok(Call::Push { table, keys, values, keep })
    }

    /// The nodes that a call is for, and what each gets of its keys.
    fn parts(&self, call: &Call, everyone: bool) -> Result<Vec<(Node, Option<Part>)>, TaskError> {
        match call {
            Call::Push { table, keys, values, keep } => {
                let schema = self.check(*table, keys, Some((values, *keep)))?;
                Ok(self.split(schema, keys, everyone))
            }
            Call::PushPull { table, keys, values } => {
                let schema = self.check(*table, keys, Some((values, false)))?;
                Ok(self.split(schema, keys, everyone))
            }
            Call::Pull { table, keys } => {
                let schema = self.check(*table, keys, None)?;
                Ok(self.split(schema, keys, everyone))
            }
            Call::Function { on, name, .. } => {
                let members = self.service.members(self.job, *on);
                match members.iter().find(|&&node| !self.service.is_callee(self.job, node)) {
                    Some(&node) => Err(TaskError::NotACallee { name: name.clone(), node }),
                    None => Ok(members.into_iter().map(|node| (node, None)).collect()),
                }
            }
            Call::End => {
                let workers = self.service.members(self.job, Group::Workers);
                Ok(workers.into_iter().map(|node| (node, None)).collect())
            }
        }
    }

    fn split(&self, schema: &TableSchema, keys: &Keys, everyone: bool) -> Vec<(Node, Option<Part>)> {
        let parts = split(schema, self.service.shards(), keys, everyone);
        parts.into_iter().map(|part| (Node::Server(part.shard), Some(part))).collect()
    }

    fn check(&self, table: TableId, keys: &Keys, pushed: Option<(&Values, bool)>) -> Result<&TableSchema, TaskError> {
        let tables = self.service.tenant(self.job).tables.len();
        let (_, schema) =
            self.service.table(self.job, table).ok_or(TaskError::NoSuchTable { table: table.0, tables })?;
        check(schema, keys)?;
        if let Some((values, keep)) = pushed {
            check_pushed(schema, keys.len(), values, keep)?;
        }
        Ok(schema)
    }

    fn pulled(&self, call: &Call, parts: &[(Node, Option<Part>)]) -> Option<Pulled> {
        let (Call::Pull { table, keys } | Call::PushPull { table, keys, .. }) = call else { return None };
        let (_, schema) = self.service.table(self.job, *table)?;
        let places = parts.iter().filter_map(|(node, part)| Some((*node, part.as_ref()?.places.clone()))).collect();
        let RowKind::Dense { width } = schema.kind else { return None };
        Some(Pulled { width, keys: keys.len(), places, numbers: Vec::new(), schema: schema.clone() })
    }

    fn write(&self, to: Node, head: TaskHead, call: &Call, part: Option<&Part>) -> Letter {
        let mut letter = Letter::new(self.me, to, &Head::Task(head));
        if let Some(Part { keys: Keys::List(keys), .. }) = part {
            letter.keys = keys.clone();
        }
        if let Call::Push { table, .. } | Call::Pull { table, .. } | Call::PushPull { table, .. } = call {
            letter.table = self.service.table(self.job, *table).map(|(table, _)| table);
        }
        match (call, part) {
            (Call::Push { table, values, keep, .. }, Some(part)) => {
                let values = cut(values, &part.places);
                letter.values = Some(if *keep { values } else { self.narrow(*table, values) });
            }
            (Call::PushPull { table, values, .. }, Some(part)) => {
                letter.values = Some(self.narrow(*table, cut(values, &part.places)));
            }
            (Call::Function { argument, .. }, _) => letter.payload = argument.clone(),
            _ => {}
        }
        letter
    }

    fn narrow(&self, table: TableId, values: Values) -> Values {
        match self.service.table(self.job, table) {
            Some((_, schema)) => schema.precision.narrow(values),
            None => values,
        }
    }

    /// Takes a node's reply; says if the task is done by it. `None` if no such reply was awaited or it does not fit.
    pub(crate) fn replied(
        &mut self,
        from: Node,
        number: u64,
        outcome: Result<(f64, f64), String>,
        letter: &Letter,
        outbox: &mut Vec<Letter>,
    ) -> Option<Option<Finished>> {
        let Some(open) = self.open.get_mut(&number) else {
            // Of a quiet task nothing was kept.
            let reason = outcome.err().filter(|_| number < self.issued)?;
            let (id, what) = (TaskId { caller: self.me, number }, "a task that no reply was asked for".to_owned());
            self.failure.get_or_insert(TaskFailure { id, what, node: from, reason });
            return Some(None);
        };
        if !open.awaited.remove(&from) {
            return None;
        }
        match outcome {
            Ok((waited, ran)) => {
                open.reply.waited_seconds += waited;
                open.reply.ran_seconds += ran;
                if let Some(pulled) = &mut open.pulled {
                    pulled.take(from, letter.values.as_ref()?)?;
                } else if !letter.payload.is_empty() {
                    open.reply.returned.push((from, letter.payload.clone()));
                }
            }
            Err(reason) => {
                let (id, what) = (TaskId { caller: self.me, number }, open.what.clone());
                self.failure.get_or_insert(TaskFailure { id, what, node: from, reason });
                return Some(None);
            }
        }
        Some(open.awaited.is_empty().then(|| self.finish(number, outbox)))
    }

    fn finish(&mut self, number: u64, outbox: &mut Vec<Letter>) -> Finished {
        let open = self.open.remove(&number).expect("an open task");
        for node in open.tell {
            outbox.push(Letter::new(self.me, node, &Head::Finished { number }));
        }
        let mut reply = open.reply;
        reply.returned.sort_by_key(|(node, _)| *node);
        reply.values = open.pulled.map(|pulled| Values::dense(pulled.width, pulled.numbers));
        if open.claim.strong_count() > 0 {
            self.replies.insert(number, (open.claim, reply));
            if self.replies.len() > self.replies_max {
                self.replies.retain(|_, (claim, _)| claim.strong_count() > 0);
                self.replies_max = self.replies.len().max(32) * 2;
            }
        }
        Finished { number, parent: open.parent }
    }

    /// The reply of a task that is done. It is given once; after that an empty one.
    pub(crate) fn take(&mut self, handle: &Handle) -> Option<Reply> {
        let number = handle.id.number;
        let open = self.open.contains_key(&number);
        (!open).then(|| self.replies.remove(&number).map(|(_, reply)| reply).unwrap_or_default())
    }

    /// Whether a task is done.
    pub(crate) fn is_done(&self, handle: &Handle) -> bool {
        !self.open.contains_key(&handle.id.number)
    }

    /// The first task that is not done.
    pub(crate) fn first_open(&self) -> Option<u64> {
        self.open.first_key_value().map(|(&number, _)| number)
    }

    /// The first task that failed.
    pub(crate) fn failure(&self) -> Option<&TaskFailure> {
        self.failure.as_ref()
    }

    /// A task that is not done, and what it lacks, in one sentence's words.
    pub(crate) fn describe(&self, number: u64) -> String {
        let id = TaskId { caller: self.me, number };
        let Some(open) = self.open.get(&number) else { return id.to_string() };
        let mut text = format!("{id} ({})", open.what);
        let earlier = open
            .after
            .iter()
            .filter_map(|number| self.open.get(number).map(|earlier| format!("task {number} ({})", earlier.what)));
        let earlier: Vec<String> = earlier.chain(open.after_stamps.iter().cloned()).collect();
        if !earlier.is_empty() {
            text += &format!(", which comes after {}", earlier.join(" and "));
        }
        let awaited: Vec<String> = open.awaited.iter().take(4).map(Node::to_string).collect();
        let more = open.awaited.len().saturating_sub(awaited.len());
        text += &format!("; no reply from {}", awaited.join(", "));
        if more > 0 {
            text += &format!(" and {more} more");
        }
        text
    }
}

impl Pulled {
    /// Takes the rows of a node; `None` if they do not fit.
    fn take(&mut self, from: Node, values: &Values) -> Option<()> {
        let values = self.schema.precision.widen(values)?;
        let Values::Dense { width, numbers } = &values else { return None };
        let places = self.places.get(&from)?;
        let row = self.width as usize;
        if *width != self.width || numbers.len() != places.iter().map(Range::len).sum::<usize>() * row {
            return None;
        }
        if self.numbers.is_empty() {
            self.numbers = vec![0.0; self.keys * row];
        }
        paste(&mut self.numbers, row, places, numbers);
        Some(())
    }
}

/// Checks that there is a row for each key, of the table's width unless the push is kept.
pub(crate) fn check_pushed(schema: &TableSchema, keys: usize, values: &Values, keep: bool) -> Result<(), TaskError> {
    let table = || schema.name.clone();
    let (RowKind::Dense { width: expected }, Values::Dense { width, numbers }) = (&schema.kind, values) else {
        return Err(TaskError::NotDense { table: table(), kind: format!("{:?}", schema.kind) });
    };
    if Some(numbers.len()) != keys.checked_mul(*width as usize) || *width == 0 {
        return Err(TaskError::Misfit { table: table(), keys, width: *width, numbers: numbers.len() });
    }
    if !keep && width != expected {
        return Err(TaskError::Width { table: table(), expected: *expected, width: *width });
    }
    Ok(())
}

fn call_head(call: &Call, part: Option<&Part>) -> CallHead {
    let range = match part {
        Some(Part { keys: Keys::Range(range), .. }) => Some((range.start, range.end)),
        _ => None,
    };
    match call {
        Call::Push { table, keep, .. } => CallHead::Push { table: *table, range, keep: *keep },
        Call::Pull { table, .. } => CallHead::Pull { table: *table, range },
        Call::PushPull { table, .. } => CallHead::PushPull { table: *table, range },
        Call::Function { name, .. } => CallHead::Function { name: name.clone() },
        Call::End => CallHead::End,
    }
}
