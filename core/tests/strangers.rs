//! A shard or a client that is sent anything at all, well encoded, refuses it or takes it, and never panics.

use hemiola_core::message::{ToClient, ToShard};
use hemiola_core::procedure::AdaRevision;
use hemiola_core::sabotage::Sabotage;
use hemiola_core::task::desk::{Desk, Turn};
use hemiola_core::task::letter::{CallHead, Head, Letter, TaskHead, Tells};
use hemiola_core::task::service::{ServerFunction, Service, Tenant};
use hemiola_core::task::{Group, Node, Server, Task};
use hemiola_core::{
    Array, Budget, Client, ClientId, Clock, Consistency, Job, Priority, RowKind, Shard, ShardId, TableId, TableSchema,
    Values, WorkerId,
};
use proptest::num::f32;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many rows the dense tables have.
const ROWS: u64 = 20;
const CHUNK_ROWS: u64 = 4;
const DENSE: TableId = TableId(0);
const VERSIONED: TableId = TableId(2);

fn job(consistency: Consistency, budget: Option<Budget>) -> Job {
    let dense = TableSchema { consistency, chunk_rows: Some(CHUNK_ROWS), ..TableSchema::dense("dense", ROWS, 2) };
    let counts = TableSchema::keyed("counts", RowKind::Counts);
    // Where the model cannot be had with a stored procedure, it is without a bound.
    let consistency = if matches!(consistency, Consistency::Vap { .. }) { Consistency::Async } else { consistency };
    let versioned = TableSchema {
        name: "versioned".to_owned(),
        consistency,
        read_my_writes: false,
        procedure: Some(Arc::new(AdaRevision { rate: 0.1, snapshots_max: 3 })),
        ..dense.clone()
    };
    Job { tables: vec![dense, counts, versioned], workers_per_client: vec![2, 1], shards: 2, budget }
}

fn clocks() -> impl Strategy<Value = Clock> {
    prop_oneof![0..4u32, Just(u32::MAX - 1), Just(u32::MAX)].prop_map(Clock)
}

fn rows() -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::vec(prop_oneof![0..24u64, any::<u64>()], 0..6)
}

fn values() -> impl Strategy<Value = Values> {
    let numbers = proptest::collection::vec(f32::ANY, 0..14);
    let words = || proptest::collection::vec(prop_oneof![0..9u32, any::<u32>()], 0..7);
    let dense =
        (prop_oneof![0..4u32, Just(u32::MAX)], numbers).prop_map(|(width, numbers)| Values::dense(width, numbers));
    let counts =
        (words(), words(), proptest::collection::vec(any::<i32>(), 0..7)).prop_map(|(offsets, columns, counts)| {
            Values::Counts { offsets: offsets.into(), columns: columns.into(), counts: counts.into() }
        });
    let custom = (words(), proptest::collection::vec(any::<u8>(), 0..9))
        .prop_map(|(offsets, bytes)| Values::Custom { offsets: offsets.into(), bytes: bytes.into() });
    prop_oneof![dense, counts, custom]
}

/// Rows and values, in half of the cases such that they fit the dense table.
fn rows_and_values() -> impl Strategy<Value = (Vec<u64>, Values)> {
    let fitting = proptest::collection::vec((0..ROWS, (f32::ANY, f32::ANY)), 0..6).prop_map(|rows| {
        let numbers = rows.iter().flat_map(|(_, (a, b))| [*a, *b]).collect();
        (rows.iter().map(|(row, _)| *row).collect(), Values::dense(2, numbers))
    });
    prop_oneof![fitting, (rows(), values())]
}

fn table() -> impl Strategy<Value = TableId> {
    prop_oneof![0..4u32, any::<u32>()].prop_map(TableId)
}

/// Versions of as many rows, most of them small, or none, or too many.
fn versions(rows: usize) -> impl Strategy<Value = Option<Array<u32>>> {
    let version = || prop_oneof![4 => 0..3u32, 1 => any::<u32>()];
    let fitting = proptest::collection::vec(version(), rows);
    let any_number = proptest::collection::vec(version(), 0..7);
    prop_oneof![3 => fitting, 1 => any_number]
        .prop_map(|versions| Some(versions.into()))
        .boxed()
        .prop_union(Just(None).boxed())
}

/// Rows, versions and values.
fn tagged() -> impl Strategy<Value = (Array<u64>, Option<Array<u32>>, Values)> {
    rows_and_values().prop_flat_map(|(rows, values)| (Just(rows.clone().into()), versions(rows.len()), Just(values)))
}

fn node() -> impl Strategy<Value = Node> {
    let number = || prop_oneof![4 => 0..3u32, 1 => any::<u32>()];
    prop_oneof![
        number().prop_map(|n| Node::Server(ShardId(n))),
        number().prop_map(|n| Node::Worker(WorkerId(n))),
        number().prop_map(Node::Scheduler),
    ]
}

fn head() -> impl Strategy<Value = Head> {
    let number = || prop_oneof![4 => 0..4u64, 1 => any::<u64>()];
    let range = || proptest::option::of((prop_oneof![0..20u64, any::<u64>()], prop_oneof![0..22u64, any::<u64>()]));
    let call = prop_oneof![
        (table(), range(), any::<bool>()).prop_map(|(table, range, keep)| CallHead::Push { table, range, keep }),
        (table(), range()).prop_map(|(table, range)| CallHead::Pull { table, range }),
        (table(), range()).prop_map(|(table, range)| CallHead::PushPull { table, range }),
        Just(CallHead::Function { name: "aggregate".to_owned() }),
        Just(CallHead::Function { name: "unknown".to_owned() }),
        Just(CallHead::End),
    ];
    let group = prop_oneof![Just(Group::Workers), Just(Group::Servers), node().prop_map(Group::One)];
    let dependencies = (proptest::collection::vec(number(), 0..3), proptest::collection::vec((group, number()), 0..3));
    let task = (number(), call, dependencies, proptest::option::of(number()), number(), 0..3usize).prop_map(
        |(number, call, (after, after_stamps), stamp, settled, tells)| {
            let tells = [Tells::Caller, Tells::CallerAlone, Tells::Nobody][tells];
            Head::Task(TaskHead { number, call, after, after_stamps, stamp, settled, tells })
        },
    );
    prop_oneof![
        4 => task,
        1 => number().prop_map(|number| Head::Finished { number }),
        1 => number().prop_map(|number| Head::Done { number, waited_micros: u64::MAX, ran_micros: 1 }),
        1 => number().prop_map(|number| Head::Failed { number, reason: "none".to_owned() }),
    ]
}

/// What the codec gives: dense rows or none, and a head that may not be one.
fn letter() -> impl Strategy<Value = Letter> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..12);
    let parts = (node(), node(), head(), proptest::option::weighted(0.1, bytes()), bytes());
    (parts, rows_and_values()).prop_map(|((from, to, head, junk, payload), (mut keys, values))| {
        keys.sort_unstable();
        let values = Some(values).filter(|values| matches!(values, Values::Dense { .. }));
        let letter = Letter::new(from, to, &head);
        let head = junk.map_or(letter.head.clone(), Into::into);
        Letter { keys: keys.into(), values, payload: payload.into(), head, ..letter }
    })
}

/// A job of tasks on the dense table, with two workers and a scheduler.
fn service(job: &Job) -> Arc<Service> {
    let aggregate = |server: &mut Server<'_>, _: &[u8]| {
        server.aggregate(TableId(0), 1, 2).map(|(keys, _)| vec![keys.len() as u8]).map_err(Into::into)
    };
    let functions: BTreeMap<String, Arc<ServerFunction>> = [("aggregate".to_owned(), Arc::new(aggregate) as _)].into();
    Arc::new(Service::new(&[Tenant { name: "job".to_owned(), workers: 0..2, tables: 0..1, functions }], job))
}

/// An update that fits its table, of rows of one chunk: a shard that has one of them has all.
fn fitting() -> impl Strategy<Value = ToShard> {
    let rows = proptest::collection::vec((0..CHUNK_ROWS, 0..2u32, (f32::ANY, f32::ANY)), 1..6);
    let parts = (any::<bool>(), clocks(), 0..3u32, 0..ROWS / CHUNK_ROWS, rows);
    parts.prop_map(|(versioned, clock, worker, chunk, rows)| {
        let numbers = rows.iter().flat_map(|(_, _, (a, b))| [*a, *b]).collect();
        let versions: Vec<u32> = rows.iter().map(|(_, version, _)| *version).collect();
        ToShard::Inc {
            table: if versioned { VERSIONED } else { DENSE },
            clock,
            worker: WorkerId(worker),
            rows: rows.iter().map(|(row, ..)| chunk * CHUNK_ROWS + row).collect::<Vec<_>>().into(),
            versions: versioned.then(|| versions.into()),
            values: Values::dense(2, numbers),
        }
    })
}

fn to_shard() -> impl Strategy<Value = ToShard> {
    let get =
        (table(), clocks(), rows()).prop_map(|(table, needed, rows)| ToShard::Get { table, needed, rows: rows.into() });
    let inc =
        (table(), clocks(), any::<u32>(), tagged()).prop_map(|(table, clock, worker, (rows, versions, values))| {
            ToShard::Inc { table, clock, worker: WorkerId(worker), rows, versions, values }
        });
    let clock = clocks().prop_map(|clock| ToShard::Clock { clock });
    let seen =
        (table(), prop_oneof![0..4u64, any::<u64>()]).prop_map(|(table, through)| ToShard::Seen { table, through });
    let checkpoint = clocks().prop_map(|clock| ToShard::Checkpoint { clock });
    let letter = letter().prop_map(ToShard::Task);
    prop_oneof![1 => get, 1 => inc, 1 => clock, 1 => seen, 1 => checkpoint, 3 => fitting(), 1 => letter]
}

fn to_client() -> impl Strategy<Value = ToClient> {
    let sent =
        (table(), clocks(), any::<u64>(), tagged()).prop_map(|(table, clock, through, (rows, versions, values))| {
            ToClient::Rows { table, clock, through, rows, versions, values }
        });
    let clock = clocks().prop_map(|clock| ToClient::Clock { clock });
    let visible = (table(), any::<u64>()).prop_map(|(table, through)| ToClient::Visible { table, through });
    prop_oneof![sent, clock, visible, letter().prop_map(ToClient::Task)]
}

fn models() -> impl Strategy<Value = Consistency> {
    prop_oneof![
        Just(Consistency::Bsp),
        Just(Consistency::Ssp { staleness: 1 }),
        Just(Consistency::Essp { staleness: 2 }),
        Just(Consistency::Async),
        Just(Consistency::Vap { bound: 1.0 }),
    ]
}

fn budgets() -> impl Strategy<Value = Option<Budget>> {
    let bytes = prop_oneof![Just(1000), 1000..1_000_000u64, Just(u64::MAX)];
    let priorities = [Priority::Random, Priority::RoundRobin, Priority::AbsoluteMagnitude, Priority::RelativeMagnitude];
    let budget = (bytes, 0..priorities.len())
        .prop_map(move |(bytes_per_second, i)| Budget { bytes_per_second, priority: priorities[i] });
    proptest::option::weighted(0.8, budget)
}

/// How much may be sent early.
fn room() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0..200usize, 1 => Just(usize::MAX)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn a_shard_takes_or_refuses_anything(
        model in models(),
        budget in budgets(),
        known in any::<bool>(),
        messages in proptest::collection::vec((0..2u32, to_shard(), room()), 1..12),
    ) {
        let job = job(model, budget);
        let mut shard = Shard::new(ShardId(1), &job, Sabotage::None);
        shard.serve(&service(&job));
        if known {
            for (client, table) in [(0, DENSE), (1, DENSE), (0, VERSIONED), (1, VERSIONED)] {
                for row in 0..ROWS {
                    let get = ToShard::Get { table, needed: Clock(0), rows: vec![row].into() };
                    // Some are on the other shard.
                    drop(shard.receive(ClientId(client), &get));
                }
            }
        }
        for (client, message, room) in messages {
            // What matters is that it returns.
            drop(shard.receive(ClientId(client), &message));
            shard.send_early(room);
            drop(shard.outbox());
        }
    }

    #[test]
    fn a_client_takes_or_refuses_anything(
        model in models(),
        budget in budgets(),
        known in any::<bool>(),
        messages in proptest::collection::vec((0..2u32, to_client(), room()), 1..12),
    ) {
        let job = job(model, budget);
        let mut client = Client::new(ClientId(0), &job, Sabotage::None);
        client.serve(&service(&job));
        if known {
            for (table, row) in (0..ROWS).flat_map(|row| [(DENSE, row), (VERSIONED, row)]) {
                let versions = (table == VERSIONED).then(|| vec![1].into());
                let (clock, through, rows, values) = (Clock(0), 0, vec![row].into(), Values::dense(2, vec![1.0; 2]));
                let sent = ToClient::Rows { table, clock, through, rows, versions, values };
                client.receive(ShardId(0), &sent).expect("a row of the table");
            }
        }
        let read = [0, 5, 19];
        for (shard, message, room) in messages {
            for table in [DENSE, VERSIONED] {
                drop(client.get(WorkerId(0), table, &hemiola_core::Rows::List(&read)));
                drop(client.inc(WorkerId(0), table, &read, &Values::dense(2, vec![0.5; 6])));
            }
            let pull = Task::push_pull(TableId(0), 3..9, Values::dense(2, vec![0.5; 12]));
            drop(client.at_desk(WorkerId(0), |desk| desk.issue(pull, None, false)));
            drop(client.receive(ShardId(shard), &message));
            let turn = client.at_desk(WorkerId(0), Desk::turn);
            if let Turn::Call { id, .. } = turn {
                client.at_desk(WorkerId(0), |desk| desk.returned(id, Vec::new(), 0.0, 0.0));
            }
            client.send_early(room);
            client.clock(WorkerId(1)).expect("no filter fails");
            drop(client.outbox());
        }
    }
}
