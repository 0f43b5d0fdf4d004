//! A shard with a stored procedure, message by message: which versions it sends, keeps, forgets and refuses.

use hemiola_core::message::{ToClient, ToShard};
use hemiola_core::procedure::AdaRevision;
use hemiola_core::sabotage::Sabotage;
use hemiola_core::{
    Budget, Client, ClientId, Clock, Consistency, Job, Priority, Rows, Shard, ShardId, TableId, TableSchema, Values,
    WorkerId,
};
use std::sync::Arc;

const TABLE: TableId = TableId(0);

fn job(consistency: Consistency, snapshots_max: usize) -> Job {
    let table = TableSchema {
        consistency,
        read_my_writes: false,
        procedure: Some(Arc::new(AdaRevision { rate: 1.0, snapshots_max })),
        ..TableSchema::dense("t", 4, 1)
    };
    Job { tables: vec![table], workers_per_client: vec![1, 1], shards: 1, budget: None }
}

/// Who was sent which rows in which versions.
type Sent = (u32, Vec<u64>, Vec<u32>);

/// Messages to a shard, and who was sent which rows in which versions for them.
struct Play(Shard);

impl Play {
    fn new(consistency: Consistency, snapshots_max: usize) -> Self {
        Self(Shard::new(ShardId(0), &job(consistency, snapshots_max), Sabotage::None))
    }

    fn send(&mut self, client: u32, message: &ToShard) -> Result<Vec<Sent>, String> {
        self.0.receive(ClientId(client), message).map_err(|error| error.to_string())?;
        Ok(self.sent())
    }

    fn sent(&mut self) -> Vec<Sent> {
        let rows = |(client, message): (ClientId, Arc<ToClient>)| match &*message {
            ToClient::Rows { rows, versions, .. } => {
                Some((client.0, rows.to_vec(), versions.as_ref().expect("a table with versions").to_vec()))
            }
            _ => None,
        };
        self.0.outbox().filter_map(rows).collect()
    }

    fn get(&mut self, client: u32, rows: &[u64]) -> Result<Vec<Sent>, String> {
        self.send(client, &ToShard::Get { table: TABLE, needed: Clock(0), rows: rows.to_vec().into() })
    }

    fn inc(&mut self, client: u32, clock: u32, tags: &[(u64, u32)]) -> Result<Vec<Sent>, String> {
        let (rows, versions): (Vec<u64>, Vec<u32>) = tags.iter().copied().unzip();
        let values = Values::dense(1, vec![1.0; rows.len()]);
        let (table, clock, worker) = (TABLE, Clock(clock), WorkerId(client));
        let versions = Some(versions.into());
        self.send(client, &ToShard::Inc { table, clock, worker, rows: rows.into(), versions, values })
    }

    /// What the shard sends early.
    fn early(&mut self) -> Vec<Sent> {
        self.0.send_early(1000);
        self.sent()
    }

    fn clock(&mut self, client: u32, clock: u32) -> Vec<Sent> {
        self.send(client, &ToShard::Clock { clock: Clock(clock) }).expect("a clock that goes on")
    }
}

#[test]
fn an_update_of_a_version_that_was_never_sent_or_is_forgotten_is_refused() {
    let mut shard = Play::new(Consistency::Essp { staleness: 1 }, 100);
    let refused = |version| {
        Err(format!(
            "an update from client 0 for table 't' is of version {version} of row 2, which it cannot have read"
        ))
    };
    assert_eq!(shard.inc(0, 0, &[(2, 0)]), refused(0), "nothing was sent yet");
    assert_eq!(shard.get(0, &[1, 2]), Ok(vec![(0, vec![1, 2], vec![0, 0])]));
    assert_eq!(shard.inc(0, 0, &[(2, 1)]), refused(1));
    assert_eq!(shard.inc(0, 0, &[(1, 0), (2, 0)]), Ok(vec![]));
    shard.clock(0, 1);
    assert_eq!(shard.clock(1, 1), [(0, vec![1, 2], vec![1, 1])]);
    assert_eq!(shard.inc(0, 1, &[(2, 0), (2, 1)]), Ok(vec![]), "of both versions, since it has not seen the second");
    assert_eq!(shard.send(0, &ToShard::Seen { table: TABLE, through: 2 }), Ok(vec![]));
    assert_eq!(shard.inc(0, 1, &[(2, 0)]), refused(0));
    assert_eq!(shard.inc(0, 1, &[(2, 1)]), Ok(vec![]));
}

#[test]
fn an_update_without_a_version_or_of_a_table_without_versions_is_refused() {
    let mut shard = Play::new(Consistency::Bsp, 100);
    shard.get(0, &[2]).expect("a read");
    for versions in [None, Some(vec![].into()), Some(vec![0, 0].into())] {
        let (table, clock, worker, rows) = (TABLE, Clock(0), WorkerId(0), vec![2].into());
        let inc = ToShard::Inc { table, clock, worker, rows, versions, values: Values::dense(1, vec![1.0]) };
        let sentence = "an update from client 0 for table 't' does not fit the table's rows";
        assert_eq!(shard.send(0, &inc), Err(sentence.to_owned()));
    }
}

#[test]
fn at_the_limit_rows_are_sent_when_the_model_asks_and_not_before() {
    let mut shard = Play::new(Consistency::Async, 3);
    for client in [0, 1] {
        shard.get(client, &[0, 1]).expect("a read");
    }
    // Two snapshots are kept; a third may be taken for an early push, a fourth not.
    shard.inc(0, 0, &[(0, 0), (1, 0)]).expect("versions that were sent");
    assert_eq!(shard.clock(0, 1), []);
    assert_eq!(shard.clock(0, 2), [(0, vec![0], vec![1]), (1, vec![0], vec![1])], "as many clocks as clients");
    shard.clock(0, 3);
    assert_eq!(shard.clock(0, 4), [], "the limit is reached");
    assert_eq!(
        shard.clock(1, 1),
        [(0, vec![1], vec![1]), (1, vec![1], vec![1])],
        "the slowest client has ended a clock, and that is always told"
    );
    // What nobody can name any more makes room.
    for client in [0, 1] {
        shard.send(client, &ToShard::Seen { table: TABLE, through: 3 }).expect("three messages were sent");
    }
    shard.inc(0, 4, &[(0, 1)]).expect("versions that were sent");
    shard.clock(0, 5);
    assert_eq!(shard.clock(0, 6), [(0, vec![0], vec![2]), (1, vec![0], vec![2])]);
}

#[test]
fn under_a_budget_a_row_is_sent_on_when_its_newest_version_has_been_answered() {
    let mut job = job(Consistency::Essp { staleness: 2 }, 100);
    job.budget = Some(Budget { bytes_per_second: 1_000_000, priority: Priority::Random });
    let mut shard = Play(Shard::new(ShardId(0), &job, Sabotage::None));
    for client in [0, 1] {
        shard.get(client, &[0, 1]).expect("a read");
    }
    shard.inc(0, 0, &[(0, 0), (1, 0)]).expect("versions that were sent");
    assert_eq!(shard.early(), [], "the other has answered nothing");
    shard.inc(1, 0, &[(1, 0)]).expect("versions that were sent");
    assert_eq!(shard.early(), [(0, vec![1], vec![1]), (1, vec![1], vec![1])]);
    shard.inc(0, 0, &[(1, 0)]).expect("versions that were sent");
    shard.inc(1, 0, &[(1, 1)]).expect("versions that were sent");
    assert_eq!(shard.early(), [], "what the first has sent is of the version before");
    shard.clock(0, 1);
    assert_eq!(
        shard.clock(1, 1),
        [(0, vec![0, 1], vec![1, 2]), (1, vec![0, 1], vec![1, 2])],
        "a clock's end waits for none"
    );
    // Row 0 was changed by the first alone, and nobody waits for the other any more.
    shard.inc(0, 1, &[(0, 1), (1, 2)]).expect("versions that were sent");
    assert_eq!(shard.early(), [(0, vec![0], vec![2]), (1, vec![0], vec![2])]);
}

/// Client and shard in one place, the shard's answers held back until they are asked for.
struct Pair {
    client: Client,
    shard: Shard,
}

impl Pair {
    fn carry_to_shard(&mut self) -> Vec<ToShard> {
        let sent: Vec<ToShard> = self.client.outbox().map(|(_, message)| (*message).clone()).collect();
        sent.iter().for_each(|message| self.shard.receive(ClientId(0), message).expect("a correct client"));
        sent
    }

    fn carry_to_client(&mut self) {
        for (client, message) in self.shard.outbox().collect::<Vec<_>>() {
            if client == ClientId(0) {
                self.client.receive(ShardId(0), &message).expect("a correct shard");
            }
        }
    }

    fn read(&mut self, worker: u32) {
        let rows = [0];
        while self.client.get(WorkerId(worker), TABLE, &Rows::List(&rows)).expect("a row of the table").is_pending() {
            self.carry_to_shard();
            self.carry_to_client();
        }
    }

    fn inc(&mut self, worker: u32) -> Result<(), String> {
        let update = Values::dense(1, vec![1.0]);
        self.client.inc(WorkerId(worker), TABLE, &[0], &update).map(|_| ()).map_err(|error| error.to_string())
    }
}

#[test]
fn a_client_tags_updates_with_what_their_worker_read_and_says_when_it_is_done_with_a_version() {
    let mut job = job(Consistency::Async, 100);
    job.workers_per_client = vec![2];
    let client = Client::new(ClientId(0), &job, Sabotage::None);
    let mut pair = Pair { client, shard: Shard::new(ShardId(0), &job, Sabotage::None) };
    assert_eq!(
        pair.inc(0),
        Err("table 't': row 0 is updated in a clock in which this worker has not read it".to_owned())
    );
    for worker in [0, 1] {
        pair.read(worker);
        pair.inc(worker).expect("just read");
        pair.client.clock(WorkerId(worker)).expect("no filter fails");
    }
    pair.carry_to_shard();
    // Worker 0 reads version 0 once more before version 1 comes in, which worker 1 reads.
    pair.read(0);
    pair.carry_to_client();
    pair.read(1);
    assert!(pair.inc(0).is_ok() && pair.inc(1).is_ok() && pair.inc(1).is_ok());
    pair.read(0);
    pair.inc(0).expect("just read");
    pair.client.clock(WorkerId(0)).expect("no filter fails");
    pair.client.clock(WorkerId(1)).expect("no filter fails");
    let sent = pair.carry_to_shard();
    let [
        ToShard::Inc { rows, versions: Some(versions), values, .. },
        ToShard::Seen { through: 2, .. },
        ToShard::Clock { .. },
    ] = sent.as_slice()
    else {
        panic!("an update, what was seen, and the clock; not {sent:?}");
    };
    assert_eq!((rows.as_slice(), versions.as_slice()), (&[0, 0][..], &[0, 1][..]));
    assert_eq!(values, &Values::dense(1, vec![1.0, 3.0]), "worker 0 on version 0, and all others on version 1");
    assert!(pair.inc(0).is_err(), "a new clock needs a new read");
}

#[test]
fn under_a_budget_a_worker_answers_each_version_once_in_the_order_in_which_they_came() {
    let mut job = job(Consistency::Essp { staleness: 2 }, 100);
    job.budget = Some(Budget { bytes_per_second: 1_000_000, priority: Priority::Random });
    let mut client = Client::new(ClientId(0), &job, Sabotage::None);
    let shard = ShardId(0);
    let come = |client: &mut Client, row: u64, version: u32| {
        let (table, clock, through) = (TABLE, Clock(0), 0);
        let (rows, versions, values) = (vec![row].into(), Some(vec![version].into()), Values::dense(1, vec![0.0]));
        let message = ToClient::Rows { table, clock, through, rows, versions, values };
        client.receive(shard, &message).expect("rows of the table");
    };
    let compute = |client: &mut Client, row: u64| {
        let read = client.get(WorkerId(0), TABLE, &Rows::List(&[row])).expect("a row of the table");
        assert!(read.is_ready());
        let made = client.inc(WorkerId(0), TABLE, &[row], &Values::dense(1, vec![1.0]));
        assert!(made.expect("just read").is_ready());
    };
    // A byte is room for one row.
    let answer = |client: &mut Client| -> Vec<(u64, u32)> {
        client.send_early(1);
        let tags = |(_, message): (ShardId, Arc<ToShard>)| match &*message {
            ToShard::Inc { rows, versions: Some(versions), .. } => {
                rows.iter().copied().zip(versions.iter().copied()).collect()
            }
            _ => Vec::new(),
        };
        client.outbox().flat_map(tags).collect()
    };
    for row in [2, 0, 1] {
        come(&mut client, row, 4);
    }
    for row in [0, 1, 2] {
        compute(&mut client, row);
    }
    assert_eq!(answer(&mut client), [(2, 4)]);
    compute(&mut client, 2);
    assert_eq!(answer(&mut client), [(0, 4)], "row 2 has been answered, the others not");
    come(&mut client, 0, 5);
    compute(&mut client, 0);
    assert_eq!([answer(&mut client), answer(&mut client)], [[(1, 4)], [(0, 5)]]);
    assert_eq!(answer(&mut client), [(2, 4)], "and then there is room for what was computed since");
    compute(&mut client, 2);
    come(&mut client, 2, 5);
    compute(&mut client, 2);
    assert_eq!(answer(&mut client), [(2, 4), (2, 5)], "with the answer goes what was left of the version before");
    assert_eq!(answer(&mut client), []);
}
