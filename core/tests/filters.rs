//! The encoding filters as a connection uses them: what is encoded is decoded, whatever it is, and what no encoder made
//! is refused without a panic and without more memory than the limit.

use hemiola_core::array::Frame;
use hemiola_core::codec::{CodecError, Header, Message, START_BYTES, lay_out_to_client, lay_out_to_shard};
use hemiola_core::coordinator::Process;
use hemiola_core::filter::ledger::Ledger;
use hemiola_core::filter::stream::{Encodings, Incoming, IncomingError, Outgoing};
use hemiola_core::filter::{Direction, list};
use hemiola_core::message::{ToClient, ToShard};
use hemiola_core::{ClientId, Clock, Job, RowKind, ShardId, TableId, TableSchema, Values, WorkerId};
use proptest::prelude::*;
use std::sync::Arc;

const CHAINS: [&str; 5] = ["key-cache", "lz4", "zstd", "key-cache,lz4", "key-cache,zstd"];
const LIMIT: u64 = 1 << 20;

fn job(chain: &str) -> Job {
    let filters = list::parse(chain, 0).expect("a list of filters");
    let dense = TableSchema { filters: filters.clone(), ..TableSchema::dense("dense", 1 << 20, 2) };
    let counts = TableSchema { filters, ..TableSchema::keyed("counts", RowKind::Counts) };
    let tables = vec![dense, counts, TableSchema::dense("plain", 9, 1)];
    Job { tables, workers_per_client: vec![1], shards: 1, budget: None }
}

struct Connection {
    up: (Outgoing, Incoming),
    down: (Outgoing, Incoming),
    ledger: Ledger,
}

impl Connection {
    fn new(chain: &str) -> Self {
        let job = job(chain);
        job.validate().expect("filters that fit the tables");
        let ledger = Ledger::new(&job);
        let ends = |direction, from, to| {
            let sender = Encodings::new(&job, direction, from, &ledger).expect("filters that encode");
            let receiver = Encodings::new(&job, direction, to, &Ledger::new(&job)).expect("filters that encode");
            (sender.outgoing(), receiver.incoming())
        };
        let (client, shard) = (Process::Worker(ClientId(0)), Process::Server(ShardId(0)));
        let (up, down) = (ends(Direction::Updates, client, shard), ends(Direction::Rows, shard, client));
        Self { up, down, ledger }
    }

    fn send(&mut self, message: &Message) -> Vec<u8> {
        let encoded = match message {
            Message::ToShard(message) => self.up.0.encode(lay_out_to_shard(message, 3, 2)),
            Message::ToClient(message) => self.down.0.encode(lay_out_to_client(message, 3, 2)),
            other => panic!("not between a client and a shard: {other:?}"),
        };
        let encoded = encoded.expect("these filters can encode anything");
        let bytes = [encoded.header()].into_iter().chain(encoded.sections()).flatten().copied().collect::<Vec<u8>>();
        assert_eq!(bytes.len() as u64, encoded.wire_bytes());
        bytes
    }

    fn carry(&mut self, message: &Message) -> (usize, Message) {
        let bytes = self.send(message);
        let end = if matches!(message, Message::ToShard(_)) { &mut self.up.1 } else { &mut self.down.1 };
        (bytes.len(), read(end, &bytes).expect("what was just encoded"))
    }
}

/// The header of a frame, and what follows it.
fn head(bytes: &[u8]) -> Result<(Header, &[u8]), CodecError> {
    let start = bytes.get(..START_BYTES).ok_or(CodecError::Counts)?;
    let (head, body) = bytes.split_at_checked(Header::length(start)?).ok_or(CodecError::Counts)?;
    Ok((Header::parse(head, LIMIT)?, body))
}

/// Reads a frame, of which nothing is allocated beyond its announced length.
fn read(end: &mut Incoming, bytes: &[u8]) -> Result<Message, IncomingError> {
    let (header, body) = head(bytes)?;
    let body = &body[..body.len().min(header.wire_bytes() as usize)];
    let mut frame: Frame = vec![0; (header.wire_bytes() as usize).div_ceil(8)];
    bytemuck::cast_slice_mut(&mut frame)[..body.len()].copy_from_slice(body);
    let mut check = header.begin_check();
    check.update(&bytemuck::cast_slice(&frame)[..header.wire_bytes() as usize]);
    end.decode(&header, &Arc::new(frame), check)
}

/// Messages over few lists of rows, so that lists come again, with numbers of which some repeat.
fn messages() -> impl Strategy<Value = Vec<Message>> {
    let message = (0..4u8, 0..3u32, 0..4u64, 0..40usize, any::<u32>()).prop_map(|(kind, table, list, rows, bits)| {
        let rows: Vec<u64> = (0..rows as u64).map(|row| (row * (list + 1)) % (1 << 20)).collect();
        let n = rows.len();
        let (table, clock) = (TableId(table), Clock(bits % 7));
        let number =
            |i: usize| if bits % 3 == 0 { 0.5 } else { f32::from_bits(bits.wrapping_mul(i as u32) & 0x3fff_ffff) };
        let values = match table.0 {
            1 => Values::Counts {
                offsets: (0..=n as u32).collect::<Vec<_>>().into(),
                columns: (0..n as u32).collect::<Vec<_>>().into(),
                counts: vec![bits as i32; n].into(),
            },
            wide => Values::dense(2 - wide / 2, (0..n * (2 - wide as usize / 2)).map(number).collect()),
        };
        let rows = rows.into();
        match kind {
            0 => Message::ToShard(ToShard::Get { table, needed: clock, rows }),
            1 => Message::ToShard(ToShard::Inc { table, clock, worker: WorkerId(0), rows, versions: None, values }),
            2 => Message::ToClient(ToClient::Rows { table, clock, through: 9, rows, versions: None, values }),
            _ => Message::ToClient(ToClient::Clock { clock }),
        }
    });
    proptest::collection::vec(message, 1..30)
}

proptest! {
    #[test]
    fn decoding_gives_back_what_was_encoded(messages in messages(), chain in 0..CHAINS.len()) {
        let mut connection = Connection::new(CHAINS[chain]);
        for message in &messages {
            let (bytes, arrived) = connection.carry(message);
            prop_assert_eq!(&arrived, message);
            // A list that comes for the first time is longer by its signature and by what the header says of it.
            let plain = message.encode(3, 2).wire_bytes();
            prop_assert!(bytes as u64 <= plain + 16, "{} bytes for {}", bytes, plain);
        }
    }

    #[test]
    fn a_flipped_bit_is_noticed(messages in messages(), chain in 0..CHAINS.len(), at in any::<proptest::sample::Index>(), bit in 0..8u8) {
        let mut connection = Connection::new(CHAINS[chain]);
        let mut bytes = connection.send(&messages[0]);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let end = if matches!(messages[0], Message::ToShard(_)) { &mut connection.up.1 } else { &mut connection.down.1 };
        prop_assert!(read(end, &bytes).is_err());
    }

    /// A stranger who knows how to make a checksum changes anything else.
    #[test]
    fn whatever_is_well_checked_is_refused_or_decoded_without_a_panic(
        messages in messages(),
        chain in 0..CHAINS.len(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
        cut in proptest::option::of(any::<proptest::sample::Index>()),
    ) {
        let mut connection = Connection::new(CHAINS[chain]);
        let mut bytes = connection.send(&messages[0]);
        for (at, byte) in changes {
            let at = 1 + at.index(bytes.len() - 1);
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(START_BYTES + cut.index(bytes.len()));
        }
        if let Ok((header, _)) = head(&bytes) {
            bytes.resize(header.frame_bytes() as usize, 0);
            let mut check = crc32fast::Hasher::new();
            bytes[4..START_BYTES].fill(0);
            check.update(&bytes);
            bytes[4..START_BYTES].copy_from_slice(&check.finalize().to_le_bytes());
        }
        for end in [&mut connection.up.1, &mut connection.down.1] {
            if let Ok(Message::ToShard(ToShard::Inc { rows, .. })) = read(end, &bytes) {
                prop_assert!(rows.len() as u64 * 8 <= LIMIT);
            }
        }
    }
}

#[test]
fn the_same_rows_travel_as_a_signature_and_again_in_full_on_a_new_connection() {
    let rows: Vec<u64> = (0..1000).map(|row| row * 7).collect();
    let numbers: Vec<f32> = (0..2000).map(|i| (i as f32).sin()).collect();
    let inc = |clock| {
        let (rows, values) = (rows.clone().into(), Values::dense(2, numbers.clone()));
        Message::ToShard(ToShard::Inc { table: TableId(0), clock, worker: WorkerId(0), rows, versions: None, values })
    };
    let mut connection = Connection::new("key-cache");
    let bytes: Vec<usize> = (0..3).map(|clock| connection.carry(&inc(Clock(clock))).0).collect();
    // What a header of two numbers and of a few counts takes, and a signature.
    let around = |body: usize| body + 8..body + 40;
    assert!(around(9000).contains(&bytes[0]), "first as differences: {bytes:?}");
    assert!(bytes[1..].iter().all(|bytes| around(8000).contains(bytes)), "{bytes:?}");
    let get = Message::ToShard(ToShard::Get { table: TableId(0), needed: Clock(0), rows: rows.clone().into() });
    assert!(around(0).contains(&connection.carry(&get).0), "a request for rows that updates have named");
    let saving = &connection.ledger.savings()[0];
    assert_eq!(
        (saving.table.as_str(), saving.filter.as_str(), saving.direction),
        ("dense", "key-cache", Direction::Updates)
    );
    assert_eq!((saving.bytes_in, saving.bytes_out), (3 * 16_000 + 8000, 9008 + 2 * 8008 + 8));
    let mut anew = Connection::new("key-cache");
    let again = connection.send(&inc(Clock(3)));
    let refused = read(&mut anew.up.1, &again).expect_err("it has seen no list").to_string();
    let sentence =
        "filter 'key-cache' of table 'dense' failed in server 0: a message names the row ids of signature 0x";
    assert!(refused.starts_with(sentence), "{refused}");
    assert_eq!(anew.carry(&inc(Clock(3))).1, inc(Clock(3)), "a new connection is sent all of it");
}

#[test]
fn filters_that_a_table_does_not_have_are_refused() {
    let values = Values::dense(2, vec![0.0; 200]);
    let rows: Vec<u64> = (0..100).collect();
    let inc = ToShard::Inc {
        table: TableId(0),
        clock: Clock(0),
        worker: WorkerId(0),
        rows: rows.into(),
        versions: None,
        values,
    };
    let mut two = Connection::new("key-cache,zstd");
    let bytes = two.send(&Message::ToShard(inc));
    let refused = read(&mut Connection::new("key-cache").up.1, &bytes).expect_err("two filters");
    assert_eq!(refused.to_string(), "a message has been through filters that its table does not have");
    let (header, body) = head(&bytes).expect("a good one");
    let mut check = header.begin_check();
    check.update(body);
    let refused = header.decode(&Arc::new(vec![0; 300]), check);
    assert_eq!(refused, Err(CodecError::Filtered), "without any filters");
}
