//! What tasks must do on every driver, as ordinary functions over a deployment.
//!
//! The program has its own `main`, because a tcp job starts its processes from the program that runs it: for every tcp
//! case the suite starts itself with its name. Functions note what they do in a file that all processes append to, so
//! that its lines are in the order in which things happened.

use hemiola::filter::{Arrived, Body, Decoder, Encoder, Encoding, Entry, Filter, Reason, Selection, Significant, list};
use hemiola::tasks::{self, Delay, Graph, Group, Handle, Iterations, Job, Keys, Node, NodeId, Server, Task};
use hemiola::{
    Budget, Deployment, Error, Filters, Placement, Precision, Priority, RowKind, ShardId, TableId, TableSchema, Values,
    WorkerId, sim, tcp,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const TABLE: TableId = TableId(0);
const WORKERS: u32 = 3;
/// What is lost is missed after this long.
const TIMEOUT: Duration = Duration::from_secs(60);

type Case = (&'static str, fn(&Deployment));
type Fault = Box<dyn std::error::Error + Send + Sync>;

const CASES: [Case; 19] = [
    ("functions_run_on_every_node_of_their_group", functions_run_on_every_node_of_their_group),
    ("pushes_and_pulls_reach_their_keys", pushes_and_pulls_reach_their_keys),
    ("a_task_is_done_when_its_subtasks_are", a_task_is_done_when_its_subtasks_are),
    ("jobs_do_not_see_one_another", jobs_do_not_see_one_another),
    ("a_failing_function_is_named_with_its_task_and_node", a_failing_function_is_named_with_its_task_and_node),
    ("a_function_that_panics_is_named_too", a_function_that_panics_is_named_too),
    ("a_failing_worker_function_is_named_too", a_failing_worker_function_is_named_too),
    ("a_worker_function_that_panics_is_named_too", a_worker_function_that_panics_is_named_too),
    ("a_failing_filter_is_named_with_its_task_and_node", a_failing_filter_is_named_with_its_task_and_node),
    ("a_filter_that_cannot_encode_is_named_too", a_filter_that_cannot_encode_is_named_too),
    ("what_a_filter_keeps_of_a_push_travels_with_a_later_one", what_a_filter_keeps_of_a_push_travels_with_a_later_one),
    ("a_quiet_task_asks_for_no_reply_but_that_it_failed", a_quiet_task_asks_for_no_reply_but_that_it_failed),
    ("an_unknown_function_is_named", an_unknown_function_is_named),
    ("a_scheduler_that_panics_is_named", a_scheduler_that_panics_is_named),
    ("tasks_that_cannot_be_are_refused_with_their_reason", tasks_that_cannot_be_are_refused_with_their_reason),
    ("a_wait_that_takes_too_long_says_for_what", a_wait_that_takes_too_long_says_for_what),
    ("random_graphs_are_done_in_an_order_that_they_allow", random_graphs_are_done_in_an_order_that_they_allow),
    ("sequential_consistency_gives_the_result_of_one_thread", sequential_consistency_gives_the_result_of_one_thread),
    ("no_iteration_starts_before_its_delay_allows", no_iteration_starts_before_its_delay_allows),
];

/// Where functions note what they do.
static LOG: OnceLock<PathBuf> = OnceLock::new();

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name, log] = arguments.as_slice()
        && flag == "--tcp"
    {
        LOG.set(log.into()).expect("set once");
        let case = CASES.iter().find(|(case, _)| case == name).expect("a case of the suite").1;
        let config = tcp::Config { processes: WORKERS, servers: 2, timeout: TIMEOUT, ..tcp::Config::default() };
        // A connection that breaks again and again, where much is sent over it. More than a batch must get through.
        let sever_after_frames = name.starts_with("random").then_some(70);
        case(&Deployment::Tcp(tcp::Config { sever_after_frames, ..config }));
        return ExitCode::SUCCESS;
    }
    let folder = std::env::temp_dir().join(format!("hemiola-tasks-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder for the log");
    LOG.set(folder.join("log")).expect("set once");
    let wanted =
        |name: &str| arguments.iter().filter(|a| !a.starts_with('-')).all(|filter| name.contains(filter.as_str()));
    let (mut failed, mut passed) = (0, 0);
    for (name, case) in CASES.into_iter().filter(|(name, _)| wanted(name)) {
        for driver in ["threads", "sim", "tcp"] {
            let ok = match driver {
                "threads" => {
                    let deployment = Deployment::Threads { workers: WORKERS, timeout: TIMEOUT };
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case(&deployment))).is_ok()
                }
                "sim" => std::panic::catch_unwind(|| case(&Deployment::sim(WORKERS))).is_ok(),
                _ => {
                    let program = std::env::current_exe().expect("this program");
                    let log = LOG.get().expect("set above");
                    let status = Command::new(program).args(["--tcp", name]).arg(log).status();
                    status.is_ok_and(|status| status.success())
                }
            };
            eprintln!("test {driver}::{name} ... {}", if ok { "ok" } else { "FAILED" });
            if ok { passed += 1 } else { failed += 1 }
        }
    }
    fs::remove_dir_all(&folder).expect("just made");
    eprintln!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Notes a line.
fn note(line: &str) {
    let file = OpenOptions::new().append(true).create(true).open(LOG.get().expect("set in main"));
    file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())).expect("a line can be written");
}

/// Takes the lines noted so far. A process of a tcp job must not: the others may still write.
fn noted() -> Vec<String> {
    let log = LOG.get().expect("set in main");
    let lines = fs::read_to_string(log).unwrap_or_default().lines().map(str::to_owned).collect();
    fs::remove_file(log).unwrap_or_default();
    lines
}

/// A job with one table, three workers that serve `functions`, and nothing that servers can be called to do.
fn job<'a>(
    table: TableSchema,
    worker: &'a tasks::WorkerProgram<'a>,
    scheduler: &'a tasks::SchedulerProgram<'a>,
) -> Job<'a> {
    Job { name: "job".to_owned(), workers: WORKERS, tables: vec![table], worker, scheduler, server: vec![] }
}

fn idle(node: &mut Node<'_, ()>) -> Result<(), Error> {
    node.serve(&mut (), &[])
}

/// Filters that must make no difference to what a task carries.
fn encoded() -> Filters {
    list::parse("key-cache,zstd", 0).expect("a list of filters")
}

/// A table of which every server has some rows.
fn table(rows: u64) -> TableSchema {
    TableSchema { chunk_rows: Some(2), filters: encoded(), ..TableSchema::dense("t", rows, 1) }
}

fn failure(deployment: &Deployment, job: Job<'_>) -> String {
    tasks::run(deployment, &[job]).expect_err("the job fails").to_string()
}

fn functions_run_on_every_node_of_their_group(deployment: &Deployment) {
    let worker = |node: &mut Node<'_, ()>| {
        let whoami = |_: &mut (), node: &mut Node<'_, ()>, argument: &[u8]| {
            Ok(format!("{} {}", node.rank(), String::from_utf8_lossy(argument)).into_bytes())
        };
        node.serve(&mut (), &[("whoami", &whoami)])
    };
    let whoami = |server: &mut Server<'_>, argument: &[u8]| -> Result<Vec<u8>, Fault> {
        Ok(format!("{} {}", server.id(), String::from_utf8_lossy(argument)).into_bytes())
    };
    let scheduler = |node: &mut Node<'_, ()>| {
        let mut text = String::new();
        let one = Group::One(node.worker(1));
        for group in [Group::Workers, Group::All, one, Group::One(NodeId::Server(ShardId(0)))] {
            let task = node.issue(Task::call(group, "whoami", b"here".to_vec()))?;
            let reply = node.wait(&task)?;
            assert!(node.is_done(&task)?);
            let names = reply.returned.iter().map(|(node, name)| format!("{node}: {}", String::from_utf8_lossy(name)));
            text += &format!("{}\n", names.collect::<Vec<_>>().join(", "));
        }
        Ok(text.into_bytes())
    };
    let mut job = job(table(8), &worker, &scheduler);
    job.server = vec![("whoami", Arc::new(whoami))];
    let outcome = tasks::run(deployment, &[job]).expect("a job");
    let servers = match deployment {
        Deployment::Threads { .. } => 1,
        Deployment::Tcp(config) => config.servers,
        Deployment::Sim(config) => config.shards(),
    };
    let workers = "worker 0: 0 here, worker 1: 1 here, worker 2: 2 here";
    let servers: Vec<String> = (0..servers).map(|shard| format!("server {shard}: shard {shard} here")).collect();
    let expected = format!("{workers}\n{}, {workers}\nworker 1: 1 here\n{}\n", servers.join(", "), servers[0]);
    assert_eq!(String::from_utf8_lossy(&outcome.results[0]), expected);
    assert_eq!(outcome.splits.len(), WORKERS as usize + 1);
}

fn pushes_and_pulls_reach_their_keys(deployment: &Deployment) {
    let dense = |name: &str| TableSchema { chunk_rows: Some(3), ..TableSchema::dense(name, 50, 3) };
    let tables = vec![
        dense("range"),
        TableSchema { placement: Placement::Hash, filters: encoded(), ..dense("hash") },
        TableSchema { precision: Precision::F16, ..dense("half") },
        TableSchema::keyed("endless", RowKind::Dense { width: 3 }),
    ];
    let scheduler = |node: &mut Node<'_, ()>| {
        let numbers = |keys: &[u64]| keys.iter().flat_map(|&key| [key as f32, 0.5, -1.0]).collect::<Vec<f32>>();
        let (range, list): (Vec<u64>, Vec<u64>) = ((4..41).collect(), vec![0, 7, 8, 30, 31, 49]);
        for table in (0..4).map(TableId) {
            let first = node.issue(Task::push(table, 4..41, Values::dense(3, numbers(&range))))?;
            let second = Task::push_pull(table, list.clone(), Values::dense(3, numbers(&list))).after([&first]);
            let second = node.issue(second)?;
            let all = node.issue(Task::pull(table, 0..50).after([&first, &second]))?;
            let some = node.issue(Task::pull(table, vec![7, 9, 49]).after([&second]))?;
            let times = |key: u64| f32::from((4..41).contains(&key)) + f32::from(list.contains(&key));
            let expected = |keys: &[u64]| {
                keys.iter().flat_map(|&key| [key as f32, 0.5, -1.0].map(|x| x * times(key))).collect::<Vec<f32>>()
            };
            assert_eq!(node.wait_numbers(&second)?.to_vec(), expected(&list), "{table}");
            assert_eq!(node.wait_numbers(&all)?.to_vec(), expected(&(0..50).collect::<Vec<_>>()), "{table}");
            assert_eq!(node.wait_numbers(&some)?.to_vec(), expected(&[7, 9, 49]), "{table}");
            let none = node.issue(Task::pull(table, Vec::new()))?;
            assert!(node.wait_numbers(&none)?.is_empty());
        }
        Ok(Vec::new())
    };
    let mut job = job(table(1), &idle, &scheduler);
    job.tables = tables;
    tasks::run(deployment, &[job]).expect("a job");
}

fn a_task_is_done_when_its_subtasks_are(deployment: &Deployment) {
    let worker = |node: &mut Node<'_, ()>| {
        // It returns long before its pushes are done, the last of which is issued by a call-back.
        let add = |seen: &mut u32, node: &mut Node<'_, u32>, _: &[u8]| {
            let one = || Values::dense(1, vec![1.0]);
            let pull = node.issue(Task::push_pull(TABLE, 0..1, one()))?;
            node.issue_then(Task::pull(TABLE, 0..1).after([&pull]), move |seen, node, reply| {
                assert!(reply.values.is_some());
                *seen += 1;
                node.issue(Task::push(TABLE, 5..6, one())).map(drop)
            })?;
            Ok(seen.to_le_bytes().to_vec())
        };
        node.serve(&mut 0, &[("add", &add)])
    };
    let scheduler = |node: &mut Node<'_, ()>| {
        for round in 1..=5u32 {
            let added = node.issue(Task::call(Group::Workers, "add", vec![]))?;
            let pulled = node.issue(Task::pull(TABLE, vec![0, 5]).after([&added]))?;
            let expected = (WORKERS * round) as f32;
            assert_eq!(node.wait_numbers(&pulled)?.to_vec(), [expected, expected], "round {round}");
            let seen = node.wait(&added)?.returned;
            assert!(seen.iter().all(|(_, seen)| seen[..] == (round - 1).to_le_bytes()), "{seen:?}");
        }
        Ok(Vec::new())
    };
    tasks::run(deployment, &[job(table(8), &worker, &scheduler)]).expect("a job");
}

fn jobs_do_not_see_one_another(deployment: &Deployment) {
    let worker = |node: &mut Node<'_, ()>| {
        let add = |_: &mut (), node: &mut Node<'_, ()>, amount: &[u8]| {
            let amount = Values::dense(1, vec![f32::from(amount[0]); 4]);
            node.issue(Task::push(TABLE, 0..4, amount).stamp(1))?;
            Ok(Vec::new())
        };
        node.serve(&mut (), &[("add", &add)])
    };
    let sum = |sign: f32| {
        move |server: &mut Server<'_>, _: &[u8]| -> Result<Vec<u8>, Fault> {
            let keys = server.keys(TABLE, 0..4)?;
            let sum: f32 = server.read(TABLE, &keys)?.iter().sum();
            Ok((sign * sum).to_le_bytes().to_vec())
        }
    };
    let scheduler = |amount: u8| {
        move |node: &mut Node<'_, ()>| {
            node.issue(Task::call(Group::Workers, "add", vec![amount]))?;
            let sum = node.issue(Task::call(Group::Servers, "sum", vec![]).after_stamp(Group::Workers, 1))?;
            let parts = node.wait(&sum)?.returned;
            let number = |part: &[u8]| part.first_chunk().map_or(0.0, |bytes| f32::from_le_bytes(*bytes));
            let missing = node.issue(Task::pull(TableId(1), 0..1)).expect_err("the other's table");
            assert_eq!(missing.to_string(), "there is no table 1; the job has 1");
            let stranger = NodeId::Worker(WorkerId(if amount == 1 { 2 } else { 0 }));
            node.issue(Task::call(Group::One(stranger), "add", vec![9])).expect_err("the other's worker");
            Ok(parts.iter().map(|(_, part)| number(part)).sum::<f32>().to_string().into_bytes())
        }
    };
    let (first, second) = (scheduler(1), scheduler(10));
    let jobs = [
        Job {
            name: "a".into(),
            workers: 1,
            server: vec![("sum", Arc::new(sum(1.0)))],
            ..job(table(4), &worker, &first)
        },
        Job {
            name: "b".into(),
            workers: 2,
            server: vec![("sum", Arc::new(sum(-1.0)))],
            ..job(table(4), &worker, &second)
        },
    ];
    let outcome = tasks::run(deployment, &jobs).expect("two jobs");
    assert_eq!(outcome.results, [b"4".to_vec(), b"-80".to_vec()]);
}

fn call_and_wait(on: Group, name: &'static str) -> impl Fn(&mut Node<'_, ()>) -> Result<Vec<u8>, Error> + Sync {
    move |node| {
        let fine = node.issue(Task::pull(TABLE, 0..1))?;
        let task = node.issue(Task::call(on, name, vec![]).after([&fine]))?;
        node.wait(&task)?;
        Ok(Vec::new())
    }
}

fn a_failing_function_is_named_with_its_task_and_node(deployment: &Deployment) {
    let update = |_: &mut Server<'_>, _: &[u8]| -> Result<Vec<u8>, Fault> { Err("no weights".into()) };
    let scheduler = call_and_wait(Group::One(NodeId::Server(ShardId(0))), "update");
    let mut job = job(table(8), &idle, &scheduler);
    job.server = vec![("update", Arc::new(update))];
    let sentence = failure(deployment, job);
    let expected = "function 'update' on server 0 failed on server 0 in task 1 of the scheduler: no weights";
    assert!(sentence.ends_with(expected), "{sentence}");
}

fn a_function_that_panics_is_named_too(deployment: &Deployment) {
    let update = |_: &mut Server<'_>, argument: &[u8]| -> Result<Vec<u8>, Fault> { Ok(vec![argument[0]]) };
    let scheduler = call_and_wait(Group::One(NodeId::Server(ShardId(0))), "update");
    let mut job = job(table(8), &idle, &scheduler);
    job.server = vec![("update", Arc::new(update))];
    let sentence = failure(deployment, job);
    let expected = "in task 1 of the scheduler: it panicked: index out of bounds: the len is 0 but the index is 0";
    assert!(sentence.ends_with(expected), "{sentence}");
}

fn a_failing_worker_function_is_named_too(deployment: &Deployment) {
    let worker = |node: &mut Node<'_, ()>| {
        let iterate = |_: &mut (), node: &mut Node<'_, ()>, _: &[u8]| match node.rank() {
            1 => Err(Error::program("no examples")),
            _ => Ok(Vec::new()),
        };
        node.serve(&mut (), &[("iterate", &iterate)])
    };
    let sentence = failure(deployment, job(table(8), &worker, &call_and_wait(Group::Workers, "iterate")));
    let expected = "function 'iterate' on all workers failed on worker 1 in task 1 of the scheduler: no examples";
    assert!(sentence.ends_with(expected), "{sentence}");
}

fn a_worker_function_that_panics_is_named_too(deployment: &Deployment) {
    let worker = |node: &mut Node<'_, ()>| {
        let iterate = |_: &mut (), node: &mut Node<'_, ()>, argument: &[u8]| {
            Ok(if node.rank() == 2 { vec![argument[5]] } else { Vec::new() })
        };
        node.serve(&mut (), &[("iterate", &iterate)])
    };
    let sentence = failure(deployment, job(table(8), &worker, &call_and_wait(Group::Workers, "iterate")));
    let expected = "function 'iterate' on all workers failed on worker 2 in task 1 of the scheduler: it panicked: index out \
                    of bounds: the len is 0 but the index is 5";
    assert!(sentence.ends_with(expected), "{sentence}");
}

/// A user's filter that fails, as either kind.
#[derive(Debug)]
struct Fails;

impl Selection for Fails {
    fn name(&self) -> &str {
        "mine"
    }

    fn travels(&self, entry: &Entry<'_>) -> Result<bool, Reason> {
        if entry.row == 3 { Err("row 3 is beyond me".into()) } else { Ok(true) }
    }
}

impl Encoding for Fails {
    fn name(&self) -> &str {
        "mine"
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        Box::new(Self)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Self)
    }
}

impl Encoder for Fails {
    fn encode(&mut self, _: &mut Body<'_>) -> Result<bool, Reason> {
        Err("no room".into())
    }
}

impl Decoder for Fails {
    fn decode(&mut self, _: &mut Arrived, _: usize) -> Result<(), Reason> {
        Err("nothing has been encoded".into())
    }
}

/// What comes of a push of worker 1 through a filter.
fn pushed_through(filter: Filter, deployment: &Deployment) -> Result<(), Error> {
    let worker = |node: &mut Node<'_, ()>| {
        let push = |_: &mut (), node: &mut Node<'_, ()>, _: &[u8]| {
            node.issue(Task::push(TABLE, 2..5, Values::dense(1, vec![1.0; 3])))?;
            Ok(Vec::new())
        };
        node.serve(&mut (), &[("push", &push)])
    };
    let filters = Filters { updates: vec![filter], rows: Vec::new() };
    let table = TableSchema { filters, ..table(8) };
    let scheduler = |node: &mut Node<'_, ()>| {
        let task = node.issue(Task::call(Group::One(NodeId::Worker(WorkerId(1))), "push", vec![]))?;
        node.wait(&task)?;
        Ok(Vec::new())
    };
    tasks::run(deployment, &[job(table, &worker, &scheduler)]).map(drop)
}

fn a_failing_filter_is_named_with_its_task_and_node(deployment: &Deployment) {
    let sentence = pushed_through(Filter::selection(Fails), deployment).expect_err("it fails").to_string();
    let push = "function 'push' on worker 1 failed on worker 1 in task 0 of the scheduler: push of 3 keys to table 't' \
                failed on worker 1 in task 0 of worker 1: filter 'mine' of table 't' failed in worker process ";
    assert!(sentence.contains(push) && sentence.ends_with(": row 3 is beyond me"), "{sentence}");
}

fn a_filter_that_cannot_encode_is_named_too(deployment: &Deployment) {
    let pushed = pushed_through(Filter::encoding(Fails), deployment);
    if matches!(deployment, Deployment::Threads { .. }) {
        return pushed.expect("between the threads of one process nothing is encoded");
    }
    let sentence = pushed.expect_err("it fails").to_string();
    let expected = "filter 'mine' of table 't' failed in worker process 1 on task 0 of worker 1: no room";
    assert!(sentence.contains(expected), "{sentence}");
}

fn what_a_filter_keeps_of_a_push_travels_with_a_later_one(deployment: &Deployment) {
    let filters = Filters { updates: vec![Filter::selection(Significant { threshold: 0.5 })], rows: Vec::new() };
    let table = TableSchema { filters, ..table(8) };
    let scheduler = |node: &mut Node<'_, ()>| {
        let mut seen = Vec::new();
        for _ in 0..3 {
            let pushed = node.issue(Task::push(TABLE, vec![1, 6], Values::dense(1, vec![0.25, 1.0])))?;
            let pulled = node.issue(Task::pull(TABLE, vec![1, 6]).after([&pushed]))?;
            seen.push(node.wait_numbers(&pulled)?.to_vec());
        }
        Ok(format!("{seen:?}").into_bytes())
    };
    let outcome = tasks::run(deployment, &[job(table, &idle, &scheduler)]).expect("a job");
    assert_eq!(String::from_utf8_lossy(&outcome.results[0]), "[[0.0, 1.0], [0.0, 2.0], [0.75, 3.0]]");
    let saving = &outcome.savings[0];
    assert_eq!(
        (saving.filter.as_str(), saving.bytes_in, saving.bytes_out),
        ("significant", 72, 48),
        "of six rows four"
    );
}

fn a_quiet_task_asks_for_no_reply_but_that_it_failed(deployment: &Deployment) {
    let update = |_: &mut Server<'_>, _: &[u8]| -> Result<Vec<u8>, Fault> { Err("no weights".into()) };
    let scheduler = |node: &mut Node<'_, ()>| {
        let push = node.issue(Task::push(TABLE, 0..8, Values::dense(1, vec![2.0; 8])).stamp(1).quietly())?;
        assert!(node.is_done(&push)?, "as soon as it is issued");
        let pull = node.issue(Task::pull(TABLE, 0..8).after_stamp(Group::Scheduler, 1))?;
        assert_eq!(node.wait_numbers(&pull)?[..], [2.0; 8]);
        node.issue(Task::call(Group::One(NodeId::Server(ShardId(0))), "update", vec![]).quietly())?;
        // What a server says stays in order, so this reply comes after the failure.
        let pull = node.issue(Task::pull(TABLE, 0..8))?;
        node.wait(&pull)?;
        Ok(Vec::new())
    };
    let mut job = job(table(8), &idle, &scheduler);
    job.server = vec![("update", Arc::new(update))];
    let sentence = failure(deployment, job);
    let expected = "a task that no reply was asked for failed on server 0 in task 2 of the scheduler: no weights";
    assert!(sentence.ends_with(expected), "{sentence}");
}

fn an_unknown_function_is_named(deployment: &Deployment) {
    let sentence =
        failure(deployment, job(table(8), &idle, &call_and_wait(Group::One(NodeId::Worker(WorkerId(2))), "f")));
    let expected =
        "function 'f' on worker 2 failed on worker 2 in task 1 of the scheduler: workers have no function of that name";
    assert!(sentence.ends_with(expected), "{sentence}");
}

fn a_scheduler_that_panics_is_named(deployment: &Deployment) {
    let scheduler = |_: &mut Node<'_, ()>| -> Result<Vec<u8>, Error> { panic!("no plan") };
    let sentence = failure(deployment, job(table(8), &idle, &scheduler));
    assert!(sentence.ends_with("the scheduler panicked: no plan"), "{sentence}");
}

fn tasks_that_cannot_be_are_refused_with_their_reason(deployment: &Deployment) {
    let scheduler = |node: &mut Node<'_, ()>| {
        let one = |width| Values::dense(width, vec![1.0; 2]);
        let cases: Vec<(Task, &str)> = vec![
            (Task::pull(TableId(3), 0..1), "there is no table 3; the job has 1"),
            (Task::pull(TABLE, 0..9), "table 't' has 8 rows, so there is no key 8"),
            (Task::pull(TABLE, vec![2, 1]), "table 't': the keys of a task must ascend, and key 1 follows key 2"),
            (Task::push(TABLE, 0..3, one(1)), "table 't': 2 numbers of width 1 are not one row for each of 3 keys"),
            (Task::push(TABLE, 0..1, one(2)), "table 't': its rows have 1 numbers, and those pushed have 2"),
            (
                Task::call(Group::Scheduler, "f", vec![]),
                "the function 'f' cannot be called on the scheduler: it is not a worker of this job, nor a server",
            ),
        ];
        for (task, sentence) in cases {
            assert_eq!(node.issue(task).expect_err("cannot be").to_string(), sentence);
        }
        node.issue(Task::push(TABLE, 0..1, Values::dense(2, vec![1.0; 2])).keep(4))?;
        let again = node.issue(Task::pull(TABLE, 0..1).stamp(4)).expect_err("used before");
        assert_eq!(again.to_string(), "the scheduler has issued a task with stamp 4 before");
        let mut graph = Graph::default();
        let pull = || Task::pull(TABLE, 0..1);
        let [a, b, c] = ["a", "b", "c"].map(|name| graph.add(name, pull()));
        [(a, b), (b, c), (c, a)].into_iter().for_each(|(later, earlier)| graph.after(later, earlier));
        let circle = node.submit(graph).expect_err("a circle");
        assert_eq!(circle.to_string(), "the tasks wait for one another in a circle: 'a' after 'b' after 'c' after 'a'");
        Ok(Vec::new())
    };
    let good = || job(table(8), &idle, &scheduler);
    let sentence = |job: Job<'_>| {
        let deployment = Deployment::threads(WORKERS);
        tasks::run(&deployment, &[job]).expect_err("cannot be").to_string()
    };
    if !matches!(deployment, Deployment::Tcp(_)) {
        let counts = TableSchema::keyed("c", RowKind::Counts);
        let sieved = |filters| TableSchema { filters: list::parse(filters, 0).expect("a list"), ..table(8) };
        let expected =
            "table 't': every row that a task pulls was asked for, so filter 'significant' has none to hold back";
        assert_eq!(sentence(Job { tables: vec![sieved("rows/significant:0.1")], ..good() }), expected);
        let expected = "table 't': filter 'kkt' goes by what a worker has read, and tasks keep no rows";
        assert_eq!(sentence(Job { tables: vec![sieved("kkt:1:0:1")], ..good() }), expected);
        let expected = "table 'c': tasks push and pull dense rows, and this table's are Counts";
        assert_eq!(sentence(Job { tables: vec![counts], ..good() }), expected);
        assert_eq!(sentence(Job { workers: 0, ..good() }), "job 'job' needs at least one worker");
        let expected = "the jobs have 5 workers together, and the deployment has 3";
        assert_eq!(sentence(Job { workers: 5, ..good() }), expected);
        let budget = Some(Budget { bytes_per_second: 1 << 20, priority: Priority::Random });
        let paced = Deployment::Sim(sim::Config { budget, ..sim::Config::new(WORKERS) });
        let refused = tasks::run(&paced, &[good()]).expect_err("cannot be").to_string();
        assert_eq!(refused, "a bandwidth budget is for tables; what tasks push and pull is sent when they are issued");
    }
    tasks::run(deployment, &[good()]).expect("a job");
}

fn a_wait_that_takes_too_long_says_for_what(deployment: &Deployment) {
    let timeout = Duration::from_secs(2);
    let deployment = match deployment.clone() {
        Deployment::Threads { workers, .. } => Deployment::Threads { workers, timeout },
        Deployment::Tcp(config) => Deployment::Tcp(tcp::Config { timeout, ..config }),
        Deployment::Sim(config) => Deployment::Sim(sim::Config { timeout, ..config }),
    };
    let scheduler = |node: &mut Node<'_, ()>| {
        let server = Group::One(NodeId::Server(ShardId(0)));
        let task = node.issue(Task::call(server, "update", vec![]).after_stamp(Group::Workers, 7))?;
        node.wait(&task)?;
        Ok(Vec::new())
    };
    let sentence = failure(&deployment, job(table(8), &idle, &scheduler));
    let expected = "s for task 0 of the scheduler (function 'update' on server 0), which comes after stamp 7 of all \
                    workers; no reply from server 0";
    assert!(sentence.contains("the scheduler waited ") && sentence.contains(expected), "{sentence}");
}

/// The seed of what is random, and whether it was asked for.
fn seed() -> u64 {
    std::env::var("HEMIOLA_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20)
}

/// A task of a random graph: what it comes after, and what it is.
#[derive(Debug)]
struct Step {
    after: Vec<usize>,
    kind: u64,
    on: Group,
}

const STEPS: usize = 60;

fn random_steps(seed: u64, servers: u32) -> Vec<Step> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut draw = move |below: u64| random.next_u64() % below;
    let mut order: Vec<usize> = (0..STEPS).collect();
    (1..STEPS).rev().for_each(|i| order.swap(i, draw(i as u64 + 1) as usize));
    let mut steps: Vec<Step> = (0..STEPS)
        .map(|_| {
            let on = match draw(5) {
                0 | 1 => Group::Workers,
                2 => Group::All,
                3 => Group::One(NodeId::Worker(WorkerId(draw(u64::from(WORKERS)) as u32))),
                _ => Group::One(NodeId::Server(ShardId(draw(u64::from(servers)) as u32))),
            };
            Step { after: Vec::new(), kind: draw(8), on }
        })
        .collect();
    for _ in 0..STEPS * 2 {
        let (a, b) = (draw(STEPS as u64) as usize, draw(STEPS as u64) as usize);
        if a < b {
            // A later number may well come before an earlier one.
            steps[order[b]].after.push(order[a]);
        }
    }
    steps
}

impl Step {
    /// Of eight tasks, two are pushes or pulls and the others functions.
    fn is_function(&self) -> bool {
        self.kind > 1
    }

    /// How often the step adds one to its row: once, or in the subtask of every worker that it runs on.
    fn additions(&self) -> u32 {
        match self.on {
            _ if !self.is_function() => 1,
            Group::Workers | Group::All => WORKERS,
            Group::One(NodeId::Worker(_)) => 1,
            _ => 0,
        }
    }

    fn task(&self, number: usize, steps: &[Step]) -> Task {
        let one = Values::dense(1, vec![1.0]);
        let row = number as u64..number as u64 + 1;
        match self.kind {
            0 => Task::push(TABLE, row, one),
            1 => Task::push_pull(TABLE, row, one),
            // A function is told what it must find in the rows of the tasks that it comes after.
            _ => {
                let mut earlier: Vec<usize> = self.after.clone();
                earlier.sort_unstable();
                earlier.dedup();
                let words = std::iter::once(number as u32)
                    .chain(earlier.iter().flat_map(|&earlier| [earlier as u32, steps[earlier].additions()]));
                Task::call(self.on, "step", words.flat_map(u32::to_le_bytes).collect::<Vec<u8>>())
            }
        }
    }
}

fn step_of_worker(_: &mut (), node: &mut Node<'_, ()>, argument: &[u8]) -> Result<Vec<u8>, Error> {
    let words: Vec<u32> = argument.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    note(&format!("begin {} {}", words[0], node.rank()));
    let (rows, expected): (Vec<u64>, Vec<f32>) =
        words[1..].chunks_exact(2).map(|pair| (u64::from(pair[0]), pair[1] as f32)).unzip();
    let pull = node.issue(Task::pull(TABLE, rows))?;
    let found = node.wait_numbers(&pull)?;
    if found[..] != expected[..] {
        return Err(Error::program(format!("step {} found {found:?}, not {expected:?}", words[0])));
    }
    node.work(u64::from(words[0] % 7) * 100)?;
    let own = u64::from(words[0])..u64::from(words[0]) + 1;
    node.issue(Task::push(TABLE, own, Values::dense(1, vec![1.0])))?;
    note(&format!("end {} {}", words[0], node.rank()));
    Ok(Vec::new())
}

fn step_of_server(server: &mut Server<'_>, argument: &[u8]) -> Result<Vec<u8>, Fault> {
    let number = argument.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    note(&format!("begin {number} {}", server.id()));
    server.work(50);
    note(&format!("end {number} {}", server.id()));
    Ok(Vec::new())
}

/// Runs a random graph, and checks that what was noted keeps to it.
fn run_random_graph(deployment: &Deployment, seed: u64) {
    let servers = match deployment {
        Deployment::Threads { .. } => 1,
        Deployment::Tcp(config) => config.servers,
        Deployment::Sim(config) => config.shards(),
    };
    let steps = random_steps(seed, servers);
    let worker = |node: &mut Node<'_, ()>| node.serve(&mut (), &[("step", &step_of_worker)]);
    let scheduler = |node: &mut Node<'_, ()>| {
        let mut graph = Graph::default();
        let places: Vec<_> =
            steps.iter().enumerate().map(|(i, step)| graph.add(&i.to_string(), step.task(i, &steps))).collect();
        for (later, step) in steps.iter().enumerate() {
            step.after.iter().for_each(|&earlier| graph.after(places[later], places[earlier]));
        }
        let handles: Vec<Handle> = node.submit(graph)?;
        let all = node.issue(Task::pull(TABLE, 0..STEPS as u64).after(&handles))?;
        let found = node.wait_numbers(&all)?.to_vec();
        let expected: Vec<f32> = steps.iter().map(|step| step.additions() as f32).collect();
        assert_eq!(found, expected, "nothing is lost and nothing is done twice");
        Ok(Vec::new())
    };
    let mut job = job(table(STEPS as u64), &worker, &scheduler);
    job.server = vec![("step", Arc::new(step_of_server))];
    tasks::run(deployment, &[job]).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let mut first_begin: BTreeMap<usize, usize> = BTreeMap::new();
    let mut ends: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (line, text) in noted().iter().enumerate() {
        let mut words = text.split(' ');
        let (what, number) = (words.next(), words.next().and_then(|word| word.parse().ok()).expect("a number"));
        match what {
            Some("begin") => drop(first_begin.entry(number).or_insert(line)),
            _ => ends.entry(number).or_default().push(line),
        }
    }
    for (later, step) in steps.iter().enumerate().filter(|(_, step)| step.is_function()) {
        let nodes = match step.on {
            Group::Workers => WORKERS,
            Group::All => WORKERS + servers,
            _ => 1,
        };
        assert_eq!(ends[&later].len(), nodes as usize, "seed {seed}: step {later} ran once on each of its nodes");
        for &earlier in step.after.iter().filter(|&&earlier| steps[earlier].is_function()) {
            let last_end = *ends[&earlier].last().expect("checked");
            assert!(last_end < first_begin[&later], "seed {seed}: step {later} began before step {earlier} was done");
        }
    }
}

fn random_graphs_are_done_in_an_order_that_they_allow(deployment: &Deployment) {
    let first = seed();
    // Only a panic shows it, since a test's output is read when it fails.
    let run = |deployment: &Deployment, seed: u64| {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run_random_graph(deployment, seed)));
        assert!(outcome.is_ok(), "the graph of HEMIOLA_SEED={seed} failed");
    };
    match deployment {
        Deployment::Threads { .. } => (first..first + 10).for_each(|seed| run(deployment, seed)),
        // A process runs one job over tcp.
        Deployment::Tcp(_) => run(deployment, first),
        Deployment::Sim(config) => {
            for seed in first..first + 20 {
                let mut config = sim::Config { seed, ..config.clone() };
                config.network.jitter = 1e-3;
                config.faults.delays = sim::Delays { share: 0.1, seconds: 5e-3 };
                config.faults.lost_connections = sim::Hazard { per_second: 20.0, seconds: 1e-3 };
                config.faults.stragglers = vec![sim::Straggler { node: (seed % 3) as u32, factor: 5.0 }];
                run(&Deployment::Sim(config), seed);
            }
        }
    }
}

const FEATURES: u64 = 11;
const ITERATIONS: u64 = 12;

/// The gradient of worker `rank` at `weights`, of a few examples of its own.
fn gradient(rank: u32, weights: &[f32]) -> Vec<f32> {
    let mut gradient = vec![0.0; weights.len()];
    for i in 0..20 {
        let x = |k: usize| (((i + 20 * rank as usize) * 13 + k * 29) % 31) as f32 / 10.0 - 1.5;
        let label = if i % 3 == 0 { 1.0 } else { -1.0 };
        let margin = label * weights.iter().enumerate().map(|(k, w)| w * x(k)).sum::<f32>();
        let slope = -label / (1.0 + margin.exp());
        gradient.iter_mut().enumerate().for_each(|(k, g)| *g += slope * x(k));
    }
    gradient
}

fn descend(weight: &mut f32, gradient: f32) {
    *weight -= 0.07 * (gradient + 0.01 * *weight);
}

/// The same by one thread, without any task.
fn plain_descent() -> Vec<f32> {
    let mut weights = vec![0.0; FEATURES as usize];
    for _ in 0..ITERATIONS {
        let parts: Vec<Vec<f32>> = (0..WORKERS).map(|rank| gradient(rank, &weights)).collect();
        for (k, weight) in weights.iter_mut().enumerate() {
            descend(weight, parts[1..].iter().fold(parts[0][k], |sum, part| sum + part[k]));
        }
    }
    weights
}

/// Distributed subgradient descent under a delay: the weights at the end, and how large the bound became.
fn run_descent(deployment: &Deployment, delay: &Delay) -> (Vec<f32>, u64) {
    let worker = |node: &mut Node<'_, ()>| {
        let iterate = |weights: &mut Vec<f32>, node: &mut Node<'_, Vec<f32>>, stamp: &[u8]| {
            let t = stamp.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            note(&format!("begin {t}"));
            let gradient = gradient(node.rank(), weights);
            node.work(1000)?;
            // Keys as a list and as a range must come to the same.
            let keys: Keys =
                if t.is_multiple_of(2) { (0..FEATURES).into() } else { (0..FEATURES).collect::<Vec<_>>().into() };
            node.issue(Task::push(TABLE, keys, Values::dense(1, gradient)).keep(t))?;
            let pull = Task::pull(TABLE, 0..FEATURES).after_stamp(Group::Scheduler, t);
            node.issue_then(pull, move |weights, _, reply| {
                if let Some(Values::Dense { numbers, .. }) = reply.values {
                    *weights = numbers.to_vec();
                }
                note(&format!("end {t}"));
                Ok(())
            })?;
            Ok(Vec::new())
        };
        node.serve(&mut vec![0.0; FEATURES as usize], &[("iterate", &iterate)])
    };
    let update = |server: &mut Server<'_>, stamp: &[u8]| -> Result<Vec<u8>, Fault> {
        let t = stamp.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let (keys, gradient) = server.aggregate(TABLE, t, 1)?;
        server.edit(TABLE, &keys, |place, row| descend(&mut row[0], gradient[place]))?;
        Ok(Vec::new())
    };
    let scheduler = |node: &mut Node<'_, ()>| {
        let mut iterations = Iterations::new(delay.clone());
        let mut bound_max = 0;
        for t in 0..ITERATIONS {
            let argument = t.to_le_bytes().to_vec();
            let update = Task::call(Group::Servers, "update", argument.clone());
            node.issue(update.stamp(t).after_stamp(Group::Workers, t))?;
            iterations.issue(node, Task::call(Group::Workers, "iterate", argument), &mut |_, _| None)?;
            bound_max = bound_max.max(iterations.bound().unwrap_or(0));
        }
        iterations.finish(node, &mut |_, _| None)?;
        let weights = node.issue(Task::pull(TABLE, 0..FEATURES))?;
        let numbers = node.wait_numbers(&weights)?;
        let bytes = numbers.iter().flat_map(|x| x.to_le_bytes());
        Ok((bound_max as u32).to_le_bytes().into_iter().chain(bytes).collect())
    };
    let mut job = job(table(FEATURES), &worker, &scheduler);
    job.server = vec![("update", Arc::new(update))];
    let outcome = tasks::run(deployment, &[job]).expect("a job");
    let words: Vec<[u8; 4]> = outcome.results[0].chunks_exact(4).map(|b| [b[0], b[1], b[2], b[3]]).collect();
    (words[1..].iter().map(|word| f32::from_le_bytes(*word)).collect(), u64::from(u32::from_le_bytes(words[0])))
}

fn sequential_consistency_gives_the_result_of_one_thread(deployment: &Deployment) {
    let expected: Vec<u32> = plain_descent().iter().map(|x| x.to_bits()).collect();
    let (weights, _) = run_descent(deployment, &Delay::Sequential);
    assert_eq!(weights.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), expected);
    noted();
}

fn no_iteration_starts_before_its_delay_allows(deployment: &Deployment) {
    let delays: Vec<&str> = match deployment {
        Deployment::Tcp(_) => vec!["2"],
        _ => vec!["sequential", "1", "2", "eventual", "auto"],
    };
    for text in delays {
        let delay: Delay = text.parse().expect("a delay");
        let deployment = match deployment.clone() {
            Deployment::Sim(mut config) => {
                config.faults.stragglers = vec![sim::Straggler { node: 1, factor: 3.0 }];
                Deployment::Sim(config)
            }
            other => other,
        };
        let (_, bound_max) = run_descent(&deployment, &delay);
        let lines = noted();
        assert_eq!(
            lines.len() as u64,
            2 * ITERATIONS * u64::from(WORKERS),
            "{text}: every iteration ran on every worker"
        );
        let mut ended: BTreeMap<u64, u32> = BTreeMap::new();
        for line in &lines {
            let (what, t) = line.split_once(' ').expect("two words");
            let t: u64 = t.parse().expect("an iteration");
            if what == "end" {
                *ended.entry(t).or_default() += 1;
            } else if let (Some(bound), false) = (delay.bound(), text == "auto") {
                let early = (0..t.saturating_sub(bound)).find(|earlier| ended.get(earlier) != Some(&WORKERS));
                assert_eq!(early, None, "delay {text}: iteration {t} began before that was done: {lines:?}");
            }
        }
        if let (Deployment::Sim(_), "auto") = (&deployment, text) {
            assert!((1..=3).contains(&bound_max), "while others wait for the slow one the bound grows, to {bound_max}");
        }
    }
}
