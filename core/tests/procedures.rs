//! A shard with a stored procedure, message by message: which versions it sends, keeps, forgets and refuses.

use hemiola_core::message::{ToClient, ToShard};
use hemiola_core::procedure::AdaRevision;
use hemiola_core::sabotage::Sabotage;
use hemiola_core::snapshot::{Layer, Part};
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
        chunk_rows: Some(2),
        ..TableSchema::dense("t", 4, 1)
    };
    Job { tables: vec![table], workers_per_client: vec![1, 1], shards: 1, budget: None }
}

/// A job with a budget, under which updates of the first two clocks may be shown at once.
fn paced(snapshots_max: usize) -> Job {
    let budget = Some(Budget { bytes_per_second: 1_000_000, priority: Priority::Random });
    Job { budget, ..job(Consistency::Essp { staleness: 2 }, snapshots_max) }
}

/// A row and its state (the sum of gradients, `z` and the largest `z`) by the published rule of steps of one: gradients in the
/// order of their application, each with the sum that was in the row when it was read.
fn published(gradients: &[(f32, f32)]) -> Vec<f32> {
    let (mut w, mut sum, mut z, mut z_max) = (0.0f32, 0.0, 1.0f32, 1.0f32);
    for &(g, read) in gradients {
        let (since, old_step) = (sum - read, 1.0 / z_max.sqrt());
        z = z + g * g + 2.0 * g * since;
        z_max = z_max.max(z);
        let step = 1.0 / z_max.sqrt();
        w += (old_step - step) * since - step * g;
        sum += g;
    }
    vec![w, sum, z, z_max]
}

/// Who was sent which rows in which versions.
type Sent = (u32, Vec<u64>, Vec<u32>);

/// Messages to a shard, and who was sent which rows in which versions for them.
struct Play(Shard);

impl Play {
    fn new(consistency: Consistency, snapshots_max: usize) -> Self {
        Self::of(&job(consistency, snapshots_max))
    }

    fn of(job: &Job) -> Self {
        Self(Shard::new(ShardId(0), job, Sabotage::None))
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

    /// A gradient of each of these rows and versions, which is the clock plus one.
    fn inc(&mut self, client: u32, clock: u32, tags: &[(u64, u32)]) -> Result<Vec<Sent>, String> {
        let (rows, versions): (Vec<u64>, Vec<u32>) = tags.iter().copied().unzip();
        let values = Values::dense(1, vec![clock as f32 + 1.0; rows.len()]);
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

    fn seen(&mut self, client: u32, through: u64) {
        self.send(client, &ToShard::Seen { table: TABLE, through }).expect("a table with versions");
    }

    /// A client asks for a checkpoint.
    fn save(&mut self, client: u32, clock: u32) {
        self.send(client, &ToShard::Checkpoint { clock: Clock(clock) }).expect("none is being taken");
    }

    /// Of every row of the checkpoint of `clock`, which is ready, its number and its state.
    fn saved(&mut self, clock: u32) -> Vec<Vec<f32>> {
        assert_eq!(self.0.checkpoint_ready(), Some(Clock(clock)));
        let mut rows = vec![Vec::new(); 4];
        // A byte is room for one row, and for its state.
        while let Some(Part { spans, values: Values::Dense { numbers, .. }, layer, .. }) = self.0.checkpoint_part(1) {
            let (span, width) = (spans[0] as usize..spans[1] as usize, if layer == Layer::Rows { 1 } else { 3 });
            rows[span].iter_mut().zip(numbers.chunks_exact(width)).for_each(|(row, part)| row.extend(part));
        }
        rows
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
        shard.seen(client, 3);
    }
    shard.inc(0, 4, &[(0, 1)]).expect("versions that were sent");
    shard.clock(0, 5);
    assert_eq!(shard.clock(0, 6), [(0, vec![0], vec![2]), (1, vec![0], vec![2])]);
}

#[test]
fn under_a_budget_a_row_is_sent_on_when_its_newest_version_has_been_answered() {
    let mut shard = Play::of(&paced(100));
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

#[test]
fn under_a_budget_nothing_is_sent_early_at_the_limit_until_a_version_is_freed() {
    let mut shard = Play::of(&paced(3));
    for client in [0, 1] {
        shard.get(client, &[0, 1]).expect("a read");
    }
    for client in [0, 1] {
        shard.inc(client, 0, &[(0, 0), (1, 0)]).expect("versions that were sent");
    }
    // Both rows have been answered, and there is room for one more snapshot.
    assert_eq!(shard.early(), [(0, vec![0], vec![1]), (1, vec![0], vec![1])]);
    assert_eq!(shard.early(), [], "the limit is reached");
    shard.seen(0, 2);
    assert_eq!(shard.early(), [], "the other may still name the first version of row 0");
    shard.seen(1, 2);
    assert_eq!(shard.early(), [(0, vec![1], vec![1]), (1, vec![1], vec![1])], "and now nobody may");
    for client in [0, 1] {
        shard.inc(client, 0, &[(0, 1)]).expect("versions that were sent");
    }
    assert_eq!(shard.early(), [], "the limit is reached again");
    shard.clock(0, 1);
    assert_eq!(
        shard.clock(1, 1),
        [(0, vec![0], vec![2]), (1, vec![0], vec![2])],
        "a clock's end is told at the limit too"
    );
}

#[test]
fn a_checkpoint_has_rows_and_state_exactly_after_its_clock_while_workers_run_ahead() {
    let mut shard = Play::new(Consistency::Essp { staleness: 2 }, 100);
    for client in [0, 1] {
        shard.get(client, &[0, 1, 2, 3]).expect("a read");
    }
    shard.inc(0, 0, &[(0, 0), (2, 0)]).expect("versions that were sent");
    shard.clock(0, 1);
    shard.save(0, 1);
    // This is shown at once, and read by the client that is behind.
    shard.inc(0, 1, &[(0, 0)]).expect("versions that were sent");
    assert_eq!(shard.get(1, &[0]), Ok(vec![(1, vec![0], vec![1])]));
    shard.clock(0, 2);
    shard.inc(0, 2, &[(2, 0), (3, 0)]).expect("versions that were sent");
    // The chunk of rows 0 and 1 has newer updates by now, and that of rows 2 and 3 has none that is applied.
    shard.inc(1, 0, &[(0, 1), (1, 0), (2, 0)]).expect("versions that were sent");
    assert_eq!(shard.0.checkpoint_ready(), None);
    shard.clock(1, 1);
    let rows: [&[(f32, f32)]; 4] = [&[(1.0, 0.0), (1.0, 3.0)], &[(1.0, 0.0)], &[(1.0, 0.0), (1.0, 0.0)], &[]];
    assert_eq!(shard.saved(1), rows.map(published));
    // What was left out is in the next one.
    shard.save(0, 3);
    shard.clock(0, 3);
    shard.clock(1, 3);
    let rows: [&[(f32, f32)]; 4] =
        [&[(1.0, 0.0), (2.0, 0.0), (1.0, 3.0)], &[(1.0, 0.0)], &[(1.0, 0.0), (1.0, 0.0), (3.0, 0.0)], &[(3.0, 0.0)]];
    assert_eq!(shard.saved(3), rows.map(published));
}

#[test]
fn what_a_shard_holds_back_is_applied_once_with_its_version_and_to_what_a_checkpoint_keeps() {
    let mut shard = Play::new(Consistency::Essp { staleness: 1 }, 100);
    for client in [0, 1] {
        shard.get(client, &[0, 1]).expect("a read");
    }
    shard.inc(0, 0, &[(0, 0), (1, 0)]).expect("versions that were sent");
    for client in [0, 1] {
        assert_eq!(shard.get(client, &[0]), Ok(vec![(client, vec![0], vec![1])]));
    }
    // Of a clock each, and of both versions; the last is older than the one before.
    shard.clock(0, 1);
    shard.inc(0, 1, &[(0, 0)]).expect("versions that were sent");
    shard.clock(0, 2);
    shard.save(0, 2);
    shard.inc(0, 2, &[(0, 0)]).expect("versions that were sent");
    shard.inc(1, 1, &[(0, 1)]).expect("versions that were sent");
    // Nobody can name the first version any more, but two of them wait that have: its snapshot makes no room for others.
    for client in [0, 1] {
        shard.seen(client, 2);
    }
    assert_eq!(shard.get(0, &[1]), Ok(vec![(0, vec![1], vec![1])]));
    shard.clock(1, 2);
    let before = [(1.0, 0.0), (2.0, 0.0), (2.0, 1.0)];
    assert_eq!(shard.saved(2)[0], published(&before));
    let refused = "an update from client 0 for table 't' is of version 0 of row 0, which it cannot have read";
    assert_eq!(shard.inc(0, 2, &[(0, 0)]), Err(refused.to_owned()), "they have been applied");
    shard.save(0, 3);
    shard.clock(0, 3);
    shard.clock(1, 3);
    let all = [(1.0, 0.0), (2.0, 0.0), (3.0, 0.0), (2.0, 1.0)];
    assert_eq!(shard.saved(3)[0], published(&all));
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
    let mut client = Client::new(ClientId(0), &paced(100), Sabotage::None);
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
