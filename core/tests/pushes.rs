//! What a shard pushes: to a client whatever others have changed, and nothing that it has changed alone, because its own
//! copy is the shard's row by then.

use hemiola_core::message::{ToClient, ToShard};
use hemiola_core::sabotage::Sabotage;
use hemiola_core::{
    Budget, Client, ClientId, Clock, Consistency, Job, Priority, Row, RowKind, RowType, Rows, Shard, ShardId, TableId,
    TableSchema, Values, WorkerId,
};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Poll;

const TABLE: TableId = TableId(0);
const ROWS: u64 = 5;
const CLIENTS: u32 = 3;

/// Clients and a shard, and the messages between them that have not arrived.
struct Cluster {
    shard: Shard,
    clients: Vec<Client>,
    to_shard: Vec<VecDeque<Arc<ToShard>>>,
    to_clients: Vec<VecDeque<Arc<ToClient>>>,
}

impl Cluster {
    fn new(consistency: Consistency) -> Self {
        Self::within(None, consistency)
    }

    fn within(budget: Option<Budget>, consistency: Consistency) -> Self {
        Self::of(budget, TableSchema { consistency, ..TableSchema::dense("t", ROWS, 2) })
    }

    fn of(budget: Option<Budget>, table: TableSchema) -> Self {
        let job = Job { tables: vec![table], workers_per_client: vec![1; CLIENTS as usize], shards: 1, budget };
        Self {
            shard: Shard::new(ShardId(0), &job, Sabotage::None),
            clients: (0..CLIENTS).map(|id| Client::new(ClientId(id), &job, Sabotage::None)).collect(),
            to_shard: vec![VecDeque::new(); CLIENTS as usize],
            to_clients: vec![VecDeque::new(); CLIENTS as usize],
        }
    }

    /// What the client's worker sees of all rows, if it need not wait.
    fn read(&mut self, client: usize) -> Option<Vec<f32>> {
        let read = self.clients[client].get(WorkerId(client as u32), TABLE, &Rows::Range(0..ROWS));
        match read.expect("rows of the table") {
            Poll::Ready(Values::Dense { numbers, .. }) => Some(numbers.to_vec()),
            _ => None,
        }
    }

    fn inc(&mut self, client: usize, row: u64, by: f32) {
        self.change(client, row, &Values::dense(2, vec![by, -by / 3.0]));
    }

    fn change(&mut self, client: usize, row: u64, update: &Values) {
        let made = self.clients[client].inc(WorkerId(client as u32), TABLE, &[row], update);
        assert!(made.expect("it fits the table").is_ready());
    }

    fn clock_of(&self, client: usize) -> Clock {
        self.clients[client].clock_of(WorkerId(client as u32))
    }

    fn clock(&mut self, client: usize) {
        if self.clients[client].may_start(WorkerId(client as u32)) {
            self.clients[client].clock(WorkerId(client as u32)).expect("no filter fails");
        }
    }

    /// Lets the first message to or from a client arrive. Gives the rows that it was pushed, if any, and says whether
    /// there was a message.
    fn carry(&mut self, client: usize, to_client: bool) -> (Vec<u64>, bool) {
        self.to_shard[client].extend(self.clients[client].outbox().map(|(_, message)| message));
        if !to_client {
            let Some(message) = self.to_shard[client].pop_front() else { return (Vec::new(), false) };
            self.shard.receive(ClientId(client as u32), &message).expect("a correct client");
            self.post();
            return (Vec::new(), true);
        }
        let Some(message) = self.to_clients[client].pop_front() else { return (Vec::new(), false) };
        self.clients[client].receive(ShardId(0), &message).expect("a correct shard");
        let rows = if let ToClient::Rows { rows, .. } = &*message { rows.to_vec() } else { Vec::new() };
        (rows, true)
    }

    /// Puts what the shard has to send on its way.
    fn post(&mut self) {
        self.shard.outbox().for_each(|(to, message)| self.to_clients[to.index()].push_back(message));
    }

    /// The rows that the shard sends early, chosen among all but few enough for one at a time.
    fn sent_early(&mut self) -> Vec<u64> {
        while self.shard.send_early(40) > 0 {}
        let to_first = self.shard.outbox().filter(|(to, _)| *to == ClientId(0));
        to_first
            .flat_map(|(_, message)| if let ToClient::Rows { rows, .. } = &*message { rows.to_vec() } else { vec![] })
            .collect()
    }

    /// Lets everything arrive; gives the rows that each client was pushed.
    fn carry_all(&mut self) -> Vec<Vec<u64>> {
        let mut pushed = vec![Vec::new(); CLIENTS as usize];
        let links = (0..CLIENTS as usize).flat_map(|client| [(client, false), (client, true)]);
        while links.clone().fold(false, |any, (client, to_client)| {
            let (rows, arrived) = self.carry(client, to_client);
            pushed[client].extend(rows);
            any | arrived
        }) {}
        pushed
    }
}

#[test]
fn a_client_is_pushed_what_others_have_changed() {
    for consistency in [Consistency::Essp { staleness: 1 }, Consistency::Async] {
        let mut cluster = Cluster::new(consistency);
        for client in 0..3 {
            assert_eq!(cluster.read(client), None, "nothing is there yet");
        }
        cluster.carry_all();
        for (client, row) in [(0, 0), (0, 1), (1, 1), (1, 2), (2, 4), (2, 4)] {
            cluster.inc(client, row, 1.0);
        }
        (0..3).for_each(|client| cluster.clock(client));
        assert_eq!(cluster.carry_all(), [vec![1, 2, 4], vec![0, 1, 4], vec![0, 1, 2]], "{consistency:?}");
        // What was pushed is forgotten.
        cluster.inc(1, 0, 1.0);
        (0..3).for_each(|client| cluster.clock(client));
        assert_eq!(cluster.carry_all(), [vec![0], vec![], vec![0]], "{consistency:?}");
    }
}

#[test]
fn before_the_end_of_a_clock_too_a_client_is_sent_what_others_have_changed() {
    let budget = Budget { bytes_per_second: 1_000_000, priority: Priority::RoundRobin };
    let mut cluster = Cluster::within(Some(budget), Consistency::Essp { staleness: 1 });
    (0..2).for_each(|client| drop(cluster.read(client)));
    cluster.carry_all();
    for (client, row) in [(0, 0), (0, 1), (1, 1), (1, 2)] {
        cluster.inc(client, row, 1.0);
        assert!(cluster.clients[client].send_early(1000) > 0);
        cluster.carry(client, false);
    }
    // Two rows go to one client each, and one to both: the third client reads none.
    let row_bytes = size_of::<u64>() + 2 * size_of::<f32>();
    assert_eq!(cluster.shard.send_early(1000), 4 * row_bytes);
    assert_eq!(cluster.shard.send_early(1000), 0);
    cluster.post();
    assert_eq!(cluster.carry_all(), [vec![1, 2], vec![0, 1], vec![]]);
    // What was sent is forgotten, and what nobody else reads is nobody's news.
    for (client, row) in [(1, 0), (0, 1), (0, 2)] {
        cluster.inc(client, row, 1.0);
        cluster.clients[client].send_early(1000);
        cluster.carry(client, false);
    }
    assert_eq!(cluster.shard.send_early(1000), 3 * row_bytes);
    cluster.post();
    assert_eq!(cluster.carry_all(), [vec![0], vec![1, 2], vec![]]);
}

#[test]
fn what_has_changed_most_on_balance_goes_first() {
    for (priority, order) in [(Priority::AbsoluteMagnitude, [2, 3, 0]), (Priority::RelativeMagnitude, [3, 2, 0])] {
        let budget = Budget { bytes_per_second: 1_000_000, priority };
        let mut cluster = Cluster::within(Some(budget), Consistency::Essp { staleness: 1 });
        (0..3).for_each(|client| drop(cluster.read(client)));
        cluster.carry_all();
        // Row 2 becomes large, and its small change is larger than that of row 3.
        cluster.inc(0, 2, 90.0);
        (0..3).for_each(|client| cluster.clock(client));
        cluster.carry_all();
        for (client, row, by) in [(0, 0, 5.0), (1, 0, -5.0), (2, 3, 0.9), (2, 2, 3.0)] {
            cluster.inc(client, row, by);
            assert!(cluster.clients[client].send_early(1000) > 0);
            cluster.carry(client, false);
        }
        assert_eq!(cluster.sent_early(), order, "{priority:?}");
    }
}

/// A byte to which bytes are added. Its user says that what changes least matters most, as a part of the row all the more:
/// the contrary of magnitudes.
struct Contrary;

impl RowType for Contrary {
    fn name(&self) -> &str {
        "contrary"
    }

    fn apply(&self, row: &mut Vec<u8>, update: &[u8]) {
        row.resize(1, 0);
        row[0] += update[0];
    }

    fn coalesce(&self, earlier: &mut Vec<u8>, later: &[u8]) {
        self.apply(earlier, later);
    }

    fn importance(&self, row: Option<&[u8]>, update: &[u8]) -> f32 {
        row.map_or(1.0, |row| f32::from(row[0])) / f32::from(update[0])
    }
}

#[test]
fn rows_of_a_users_kind_go_by_the_users_importance() {
    for (priority, order) in [(Priority::AbsoluteMagnitude, [1, 3, 0, 2]), (Priority::RelativeMagnitude, [3, 2, 1, 0])]
    {
        let (budget, consistency) =
            (Budget { bytes_per_second: 1_000_000, priority }, Consistency::Essp { staleness: 1 });
        let kind = RowKind::Custom(Arc::new(Contrary));
        let by = |by: u8| Values::collect(&kind, [Row::Custom(vec![by])].iter());
        let table = TableSchema { consistency, ..TableSchema::keyed("t", kind.clone()) };
        let mut cluster = Cluster::of(Some(budget), table);
        (0..3).for_each(|client| drop(cluster.read(client)));
        cluster.carry_all();
        for (row, value) in [(0, 50), (1, 20), (2, 200), (3, 90)] {
            cluster.change(0, row, &by(value));
        }
        (0..3).for_each(|client| cluster.clock(client));
        cluster.carry_all();
        for (row, change) in [(0, 4), (0, 2), (1, 2), (2, 10), (3, 3)] {
            cluster.change(1, row, &by(change));
        }
        // Of the client there is room for one update at a time.
        let row_bytes = size_of::<u64>() + size_of::<u32>() + 1;
        while cluster.clients[1].send_early(row_bytes) > 0 {}
        let sent: Vec<Arc<ToShard>> = cluster.clients[1].outbox().map(|(_, message)| message).collect();
        let updated =
            |message: &Arc<ToShard>| if let ToShard::Inc { rows, .. } = &**message { rows.to_vec() } else { vec![] };
        assert_eq!(sent.iter().flat_map(updated).collect::<Vec<_>>(), order, "{priority:?}: updates");
        cluster.to_shard[1].extend(sent);
        while cluster.carry(1, false).1 {}
        assert_eq!(cluster.sent_early(), order, "{priority:?}: rows");
    }
}

#[test]
fn under_bsp_everyone_is_pushed_everything() {
    let mut cluster = Cluster::new(Consistency::Bsp);
    (0..3).for_each(|client| drop(cluster.read(client)));
    cluster.carry_all();
    cluster.inc(0, 3, 1.0);
    (0..3).for_each(|client| cluster.clock(client));
    assert_eq!(cluster.carry_all(), [[3], [3], [3]]);
}

proptest! {
    /// However messages and updates overlap, in the end every client has the shard's rows, to the bit.
    #[test]
    fn what_is_not_pushed_is_there_already(
        asynchronous in any::<bool>(),
        priority in proptest::option::of(prop_oneof![Just(Priority::Random), Just(Priority::RelativeMagnitude)]),
        steps in proptest::collection::vec((0..CLIENTS as usize, 0..8u8, 0..ROWS, -9.0..9.0f32), 1..200),
    ) {
        let consistency = if asynchronous { Consistency::Async } else { Consistency::Essp { staleness: 1 } };
        let budget = priority.map(|priority| Budget { bytes_per_second: 1_000_000, priority });
        let mut cluster = Cluster::within(budget, consistency);
        for (client, step, row, by) in steps {
            match step {
                0 => drop(cluster.read(client)),
                1 => cluster.inc(client, row, by),
                2 => cluster.clock(client),
                3 => drop(cluster.carry(client, true)),
                4 => _ = cluster.clients[client].send_early(40),
                5 => {
                    cluster.shard.send_early(40);
                    cluster.post();
                }
                _ => drop(cluster.carry(client, false)),
            }
        }
        let last = (0..3).map(|client| cluster.clock_of(client)).max().expect("clients").next();
        while (0..3).any(|client| cluster.clock_of(client) < last) {
            for client in 0..3 {
                if cluster.clock_of(client) < last {
                    cluster.clock(client);
                }
            }
            cluster.carry_all();
        }
        let views: Vec<_> = (0..3).map(|client| loop {
            if let Some(view) = cluster.read(client) {
                break view;
            }
            cluster.carry_all();
        }).collect();
        let rows = (0..ROWS).collect::<Vec<_>>().into();
        let get = ToShard::Get { table: TABLE, needed: Clock(0), rows };
        cluster.shard.receive(ClientId(0), &get).expect("a correct client");
        let Some((_, answer)) = cluster.shard.outbox().next() else { panic!("a shard that answers") };
        let ToClient::Rows { values: Values::Dense { numbers, .. }, .. } = &*answer else { panic!("an answer of rows") };
        for view in views {
            prop_assert_eq!(&view, &numbers.to_vec());
        }
    }
}
