//! What a server does for jobs of tasks: it adds what is pushed, sends what is pulled, calls its functions, and passes on
//! letters between nodes that have no link of their own.

use super::{Shard, ShardError, ShardTable};
use crate::array::Array;
use crate::ids::{ClientId, ShardId, TableId};
use crate::message::ToClient;
use crate::misuse::Misuse;
use crate::row::{Row, RowKind};
use crate::schema::TableSchema;
use crate::store::{Store, first};
use crate::task::callee::{Callee, Need};
use crate::task::ledger::check_pushed;
use crate::task::letter::{CallHead, Head, Letter, TaskHead, Tells, keys_of};
use crate::task::service::Service;
use crate::task::split::{check, own};
use crate::task::{Keys, Node, TaskId};
use crate::values::Values;
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A server's part in jobs of tasks.
#[derive(Debug)]
pub(super) struct Tasks {
    service: Arc<Service>,
    callee: Callee<Asked>,
    kept: Kept,
    /// Units of work that functions did, not yet charged to anyone's time.
    work: u64,
}

/// Pushes that are kept for a function, by table and stamp.
type Kept = BTreeMap<(TableId, u64), Vec<Pushed>>;

/// A push that was kept.
#[derive(Debug, Clone)]
pub struct Pushed {
    /// Who pushed.
    pub from: Node,
    /// The keys that are on this server, ascending.
    pub keys: Array<u64>,
    /// How many numbers each key has.
    pub width: u32,
    /// The numbers of all keys.
    pub numbers: Array<f32>,
}

/// A task that was checked.
#[derive(Debug)]
struct Asked {
    job: u32,
    tells: Tells,
    act: Act,
}

#[derive(Debug)]
enum Act {
    Push { table: TableId, keys: Array<u64>, values: Values },
    Keep { table: TableId, stamp: u64, pushed: Pushed },
    Pull { table: TableId, keys: Array<u64> },
    PushPull { table: TableId, keys: Array<u64>, values: Values },
    Call { name: String, argument: Array<u8> },
}

impl Act {
    fn table(&self) -> Option<TableId> {
        match self {
            Self::Push { table, .. } | Self::Keep { table, .. } | Self::Pull { table, .. } => Some(*table),
            Self::PushPull { table, .. } => Some(*table),
            Self::Call { .. } => None,
        }
    }
}

/// What an act gave: rows, or bytes of a function's making.
type Outcome = Result<(Option<Values>, Vec<u8>), String>;

impl Shard {
    /// Gives the shard its part in jobs of tasks.
    pub fn serve(&mut self, service: &Arc<Service>) {
        let service = Arc::clone(service);
        self.tasks = Some(Tasks { service, callee: Callee::default(), kept: Kept::new(), work: 0 });
    }

    /// The units of work that functions have done since it was last asked, for whoever charges time for them.
    pub fn take_work(&mut self) -> u64 {
        self.tasks.as_mut().map_or(0, |tasks| std::mem::take(&mut tasks.work))
    }

    pub(super) fn receive_letter(&mut self, client: ClientId, letter: &Letter) -> Result<(), ShardError> {
        let wrong = || ShardError::Letter { client, from: letter.from, to: letter.to };
        let Some(tasks) = &mut self.tasks else { return Err(wrong()) };
        let service = Arc::clone(&tasks.service);
        let job = service.job_of(letter.from).filter(|_| service.client_of(letter.from) == Some(client));
        let job = job.ok_or_else(wrong)?;
        if letter.to != Node::Server(self.id) {
            let same_job = service.job_of(letter.to) == Some(job);
            let to = service.client_of(letter.to).filter(|_| same_job).ok_or_else(wrong)?;
            self.outbox.push((to, Arc::new(ToClient::Task(letter.clone()))));
            return Ok(());
        }
        match letter.read().ok_or_else(wrong)? {
            Head::Task(head) => {
                let act = self.act_of(job, &head, letter).ok_or_else(wrong)?;
                self.accept(job, letter.from, head, act);
            }
            Head::Finished { number } => tasks.callee.finished(TaskId { caller: letter.from, number }),
            Head::Done { .. } | Head::Failed { .. } => return Err(wrong()),
        }
        self.act_on_tasks();
        Ok(())
    }

    fn accept(&mut self, job: u32, caller: Node, head: TaskHead, act: Act) {
        let Some(tasks) = &mut self.tasks else { return };
        let earlier = head.after.iter().map(|&number| Need::Task(TaskId { caller, number }));
        let stamps = head.after_stamps.iter().flat_map(|(group, stamp)| {
            tasks.service.members(job, *group).into_iter().map(|issuer| Need::Stamp(issuer, *stamp))
        });
        let needs: Vec<Need> = earlier.chain(stamps).collect();
        tasks.callee.settle(caller, head.settled);
        let asked = Asked { job, tells: head.tells, act };
        tasks.callee.accept(TaskId { caller, number: head.number }, needs, head.stamp, asked);
    }

    /// What a letter asks for, if it can be done here.
    fn act_of(&self, job: u32, head: &TaskHead, letter: &Letter) -> Option<Act> {
        let service = &self.tasks.as_ref()?.service;
        let keys = |table: TableId, range| {
            let (table, schema) = service.table(job, table)?;
            let keys = keys_of(letter, range);
            check(schema, &keys).ok()?;
            let keys = own(schema, self.shards, &keys, self.id);
            let stray = match &self.tables[table.index()].store {
                Store::Flat(slab) => slab.first_absent(&keys).is_some(),
                Store::Rows(_) => keys.iter().any(|&key| schema.shard_of(key, self.shards) != self.id),
            };
            (!stray).then_some((table, schema, keys))
        };
        let pushed = |schema: &TableSchema, keys: usize, keep| {
            let values = letter.values.as_ref()?;
            let values = if keep { values.clone() } else { schema.precision.widen(values)? };
            check_pushed(schema, keys, &values, keep).ok()?;
            Some(values)
        };
        match &head.call {
            CallHead::Push { table, range, keep } => {
                let (table, schema, keys) = keys(*table, *range)?;
                let values = pushed(schema, keys.len(), *keep)?;
                match (values, head.stamp) {
                    (Values::Dense { width, numbers }, Some(stamp)) if *keep => {
                        Some(Act::Keep { table, stamp, pushed: Pushed { from: letter.from, keys, width, numbers } })
                    }
                    (values, _) => (!keep).then_some(Act::Push { table, keys, values }),
                }
            }
            CallHead::Pull { table, range } => keys(*table, *range).map(|(table, _, keys)| Act::Pull { table, keys }),
            CallHead::PushPull { table, range } => {
                let (table, schema, keys) = keys(*table, *range)?;
                let values = pushed(schema, keys.len(), false)?;
                Some(Act::PushPull { table, keys, values })
            }
            CallHead::Function { name } => Some(Act::Call { name: name.clone(), argument: letter.payload.clone() }),
            CallHead::End => None,
        }
    }

    /// Does what may be done, and what may be done by that.
    fn act_on_tasks(&mut self) {
        let alone = |asked: &Asked| asked.tells == Tells::CallerAlone;
        while let Some((id, asked)) = self.tasks.as_mut().and_then(|tasks| tasks.callee.start(alone)) {
            let outcome = self.act(&asked, id.caller);
            let Some(tasks) = &mut self.tasks else { return };
            let number = id.number;
            let letter = match outcome {
                Ok((values, bytes)) => {
                    tasks.callee.returned(id);
                    if asked.tells == Tells::Nobody {
                        continue;
                    }
                    let head = Head::Done { number, waited_micros: 0, ran_micros: 0 };
                    let letter = Letter::new(Node::Server(self.id), id.caller, &head);
                    Letter { table: asked.act.table(), values, payload: bytes.into(), ..letter }
                }
                Err(reason) => Letter::new(Node::Server(self.id), id.caller, &Head::Failed { number, reason }),
            };
            let client = tasks.service.client_of(id.caller).expect("a caller is checked when its task comes");
            self.outbox.push((client, Arc::new(ToClient::Task(letter))));
        }
    }

    fn act(&mut self, asked: &Asked, caller: Node) -> Outcome {
        let Some(tasks) = &mut self.tasks else { return Err("it has no part in jobs of tasks".to_owned()) };
        match &asked.act {
            Act::Push { table, keys, values } => {
                self.tables[table.index()].add(keys, values);
                Ok((None, Vec::new()))
            }
            Act::Keep { table, stamp, pushed } => {
                tasks.kept.entry((*table, *stamp)).or_default().push(pushed.clone());
                Ok((None, Vec::new()))
            }
            Act::Pull { table, keys } => Ok((Some(self.tables[table.index()].read(keys)), Vec::new())),
            Act::PushPull { table, keys, values } => {
                let table = &mut self.tables[table.index()];
                table.add(keys, values);
                Ok((Some(table.read(keys)), Vec::new()))
            }
            Act::Call { name, argument } => {
                let service = Arc::clone(&tasks.service);
                let tenant = service.tenant(asked.job);
                let Some(function) = tenant.functions.get(name) else {
                    return Err("servers have no function of that name".to_owned());
                };
                let mut server = Server {
                    id: self.id,
                    shards: self.shards,
                    caller,
                    tables: &mut self.tables[tenant.tables.start as usize..tenant.tables.end as usize],
                    first: tenant.tables.start,
                    kept: &mut tasks.kept,
                    work: &mut tasks.work,
                };
                let returned = catch_unwind(AssertUnwindSafe(|| function(&mut server, argument)));
                match returned {
                    Ok(Ok(bytes)) => Ok((None, bytes)),
                    Ok(Err(error)) => Err(error.to_string()),
                    Err(panic) => Err(format!("it panicked: {}", panic_message(panic.as_ref()))),
                }
            }
        }
    }
}

/// What a panic said.
#[must_use]
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".to_owned())
}

impl ShardTable {
    fn add(&mut self, keys: &[u64], values: &Values) {
        self.store.apply(&self.schema, keys, values);
    }

    fn read(&mut self, keys: &[u64]) -> Values {
        let values = self.store.gather(&self.schema, keys, &mut self.recycler);
        self.schema.precision.narrow(values)
    }
}

/// What a function of a server works on: its shard of the job's tables, and the pushes that were kept for it.
#[derive(Debug)]
pub struct Server<'a> {
    id: ShardId,
    shards: u32,
    caller: Node,
    tables: &'a mut [ShardTable],
    /// The job's first table.
    first: u32,
    kept: &'a mut Kept,
    work: &'a mut u64,
}

impl Server<'_> {
    /// The server's shard.
    #[must_use]
    pub fn id(&self) -> ShardId {
        self.id
    }

    /// Who issued the task.
    #[must_use]
    pub fn caller(&self) -> Node {
        self.caller
    }

    fn table(&mut self, table: TableId) -> Result<&mut ShardTable, Misuse> {
        let tables = self.tables.len();
        self.tables.get_mut(table.index()).ok_or(Misuse::NoSuchTable { table: table.0, tables })
    }

    /// Those keys of a range that are on this server.
    ///
    /// # Errors
    /// If there is no such table, or it has no such keys.
    pub fn keys(&mut self, table: TableId, range: std::ops::Range<u64>) -> Result<Array<u64>, Misuse> {
        let (id, shards) = (self.id, self.shards);
        let schema = &self.table(table)?.schema;
        let keys = Keys::Range(range);
        check(schema, &keys)?;
        Ok(own(schema, shards, &keys, id))
    }

    /// Takes the pushes that were kept under a stamp, in the order of the workers' numbers.
    ///
    /// # Errors
    /// If there is no such table.
    pub fn pushed(&mut self, table: TableId, stamp: u64) -> Result<Vec<Pushed>, Misuse> {
        self.table(table)?;
        let mut pushed = self.kept.remove(&(TableId(self.first + table.0), stamp)).unwrap_or_default();
        pushed.sort_by_key(|pushed| pushed.from);
        Ok(pushed)
    }

    /// Takes the pushes that were kept under a stamp and adds them up, key by key, in the order of the workers' numbers:
    /// whatever order they came in, the sum is the same to the bit. Gives the keys, and a row of numbers for each.
    ///
    /// # Errors
    /// If there is no such table, or the pushes are not all of `width`.
    pub fn aggregate(&mut self, table: TableId, stamp: u64, width: u32) -> Result<(Vec<u64>, Vec<f32>), Misuse> {
        let row = width as usize;
        let (mut keys, mut sums): (Vec<u64>, Vec<f32>) = (Vec::new(), Vec::new());
        for pushed in self.pushed(table, stamp)? {
            if pushed.width != width {
                let table = self.table(table)?.schema.name.clone();
                return Err(Misuse::KeptWidth { table, stamp, width, found: pushed.width });
            }
            if keys.is_empty() {
                (keys, sums) = (pushed.keys.to_vec(), pushed.numbers.to_vec());
            } else if keys[..] == pushed.keys[..] {
                crate::slab::add(&mut sums, &pushed.numbers);
            } else {
                (keys, sums) = merge(row, (&keys, &sums), (&pushed.keys, &pushed.numbers));
            }
        }
        Ok((keys, sums))
    }

    /// Reads rows that are on this server, one after the other.
    ///
    /// # Errors
    /// If there is no such table, or a key is not here.
    pub fn read(&mut self, table: TableId, keys: &[u64]) -> Result<Vec<f32>, Misuse> {
        let mut numbers = Vec::new();
        self.edit(table, keys, |_, row| numbers.extend_from_slice(row))?;
        Ok(numbers)
    }

    /// Shows `edit` every one of these rows, with its place in `keys`, to read and to change.
    ///
    /// # Errors
    /// If there is no such table, or a key is not here.
    pub fn edit(
        &mut self,
        table: TableId,
        keys: &[u64],
        mut edit: impl FnMut(usize, &mut [f32]),
    ) -> Result<(), Misuse> {
        let (id, shards) = (self.id, self.shards);
        let ShardTable { schema, store, .. } = self.table(table)?;
        let elsewhere = |row: u64| Misuse::NotHere { table: schema.name.clone(), row, shard: id };
        match store {
            Store::Flat(slab) => {
                if let Some(row) = slab.first_absent(keys) {
                    return Err(elsewhere(row));
                }
                keys.iter().enumerate().for_each(|(place, &key)| edit(place, slab.row_mut(key)));
            }
            Store::Rows(rows) => {
                let kind = || Misuse::NotDense { table: schema.name.clone(), kind: format!("{:?}", schema.kind) };
                if !matches!(schema.kind, RowKind::Dense { .. }) {
                    return Err(kind());
                }
                if let Some(&row) = keys.iter().find(|&&key| schema.shard_of(key, shards) != id) {
                    return Err(elsewhere(row));
                }
                for (place, &key) in keys.iter().enumerate() {
                    if let Row::Dense(numbers) = rows.entry(key).or_insert_with(|| first(schema, key)) {
                        edit(place, numbers);
                    }
                }
            }
        }
        Ok(())
    }

    /// Says that `units` of work were done, each of what the deployment calls a unit: in the simulator the server is
    /// busy for that long.
    pub fn work(&mut self, units: u64) {
        *self.work += units;
    }
}

/// The sums of two batches of rows by ascending keys.
fn merge(row: usize, a: (&[u64], &[f32]), b: (&[u64], &[f32])) -> (Vec<u64>, Vec<f32>) {
    let mut keys = Vec::with_capacity(a.0.len() + b.0.len());
    let mut sums = Vec::with_capacity(a.1.len() + b.1.len());
    let (mut i, mut j) = (0, 0);
    while i < a.0.len() || j < b.0.len() {
        let (left, right) = (a.0.get(i), b.0.get(j));
        let take_left = left.is_some_and(|left| right.is_none_or(|right| left <= right));
        let take_right = right.is_some_and(|right| left.is_none_or(|left| right <= left));
        let start = sums.len();
        if take_left {
            keys.push(a.0[i]);
            sums.extend_from_slice(&a.1[i * row..(i + 1) * row]);
            i += 1;
        }
        if take_right {
            let numbers = &b.1[j * row..(j + 1) * row];
            if take_left {
                crate::slab::add(&mut sums[start..], numbers);
            } else {
                keys.push(b.0[j]);
                sums.extend_from_slice(numbers);
            }
            j += 1;
        }
    }
    (keys, sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_adds_what_both_have_and_keeps_the_rest() {
        let merged = merge(
            2,
            (&[1, 3, 5], &[1.0, 1.0, 3.0, 3.0, 5.0, 5.0]),
            (&[0, 3, 9], &[10.0, 10.0, 30.0, 31.0, 90.0, 90.0]),
        );
        assert_eq!(merged.0, [0, 1, 3, 5, 9]);
        assert_eq!(merged.1, [10.0, 10.0, 1.0, 1.0, 33.0, 34.0, 5.0, 5.0, 90.0, 90.0]);
        assert_eq!(merge(1, (&[], &[]), (&[4], &[2.0])), (vec![4], vec![2.0]));
    }
}
