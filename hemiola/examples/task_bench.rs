//! What a task costs over tcp: an empty one to a server and back, one to a worker and back, and a push of 100,000 keys.
//!
//! `cargo run --release --example task_bench`: one worker, a scheduler and a server, each a process.

use hemiola::tasks::{self, Group, Job, Keys, Node, NodeId, Server, Task};
use hemiola::{Array, Deployment, Error, ShardId, TableId, TableSchema, Values};
use std::sync::Arc;

const TABLE: TableId = TableId(0);
const KEYS: u64 = 100_000;

/// Microseconds per task, of tasks that follow one another.
fn time(node: &mut Node<'_, ()>, tasks: u32, task: impl Fn() -> Task) -> Result<f64, Error> {
    let began = node.seconds();
    for _ in 0..tasks {
        let issued = node.issue(task())?;
        node.wait(&issued)?;
    }
    Ok((node.seconds() - began) * 1e6 / f64::from(tasks))
}

/// Microseconds per task, of tasks that are all under way at once.
fn time_together(node: &mut Node<'_, ()>, tasks: u32, task: impl Fn() -> Task) -> Result<f64, Error> {
    let began = node.seconds();
    let issued: Vec<_> = (0..tasks).map(|_| node.issue(task())).collect::<Result<_, _>>()?;
    issued.iter().try_for_each(|issued| node.wait(issued).map(drop))?;
    Ok((node.seconds() - began) * 1e6 / f64::from(tasks))
}

fn schedule(node: &mut Node<'_, ()>) -> Result<Vec<u8>, Error> {
    let empty = |group| move || Task::call(group, "nothing", vec![]);
    let (server, worker) = (Group::One(NodeId::Server(ShardId(0))), Group::One(node.worker(0)));
    let keys: Array<u64> = (0..KEYS).map(|key| key * 3).collect::<Vec<_>>().into();
    let list = Keys::from(&keys);
    let values = Values::dense(1, vec![0.5; KEYS as usize]);
    let push = |keys: &Keys| {
        let (keys, values) = (keys.clone(), values.clone());
        move || Task::push(TABLE, keys.clone(), values.clone())
    };
    let pull = || Task::pull(TABLE, &keys);
    time(node, 200, empty(server))?;
    let lines = [
        ("empty task on a server, one after the other", time(node, 3000, empty(server))?),
        ("empty task on a server, all at once", time_together(node, 3000, empty(server))?),
        ("empty task on a worker, one after the other", time(node, 3000, empty(worker))?),
        ("push of 100,000 listed keys", time(node, 200, push(&list))?),
        ("push of a range of 100,000 keys", time(node, 200, push(&(0..KEYS).into()))?),
        ("pull of 100,000 listed keys", time(node, 200, pull)?),
    ];
    let lines = lines.iter().map(|(what, microseconds)| format!("{microseconds:9.1} us  {what}\n"));
    Ok(lines.collect::<String>().into_bytes())
}

fn main() -> Result<(), Error> {
    let job = Job {
        name: "bench".to_owned(),
        workers: 1,
        tables: vec![TableSchema::dense("weights", 3 * KEYS, 1)],
        worker: &|node| node.serve(&mut (), &[("nothing", &|_, _: &mut Node<'_, ()>, _| Ok(Vec::new()))]),
        scheduler: &schedule,
        server: vec![("nothing", Arc::new(|_: &mut Server<'_>, _: &[u8]| Ok(Vec::new())))],
    };
    let outcome = tasks::run(&Deployment::tcp(1, 1), &[job])?;
    eprint!("{}", String::from_utf8_lossy(&outcome.results[0]));
    Ok(())
}
