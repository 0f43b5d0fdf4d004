//! How fast one server takes and gives rows over loopback: one process with a shard, one client that speaks to it
//! without a worker in between, so that the wire and the shard are what is measured.
//!
//! Prints keys, rows or bytes per second of wall time, and the server's processor time per key or row.

use hemiola::tcp::wire::{
    HUGE_PAGES, Hello, Reader, Secret, ShardServer, fingerprint, introduce, listen_locally, write_frames,
};
use hemiola::tcp::{Config, Role, role};
use hemiola::{ClientId, Clock, Consistency, Deployment, Job, Rows, ShardId, TableId, TableSchema, Values, WorkerId};
use hemiola_core::codec::{Message, lay_out_to_shard};
use hemiola_core::filter::ledger::Ledger;
use hemiola_core::filter::stream::{Encodings, Outgoing};
use hemiola_core::filter::{Direction, list};
use hemiola_core::message::{ToClient, ToShard};
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn Error>>;

const SMALL: TableId = TableId(0);
const WIDE: TableId = TableId(1);
const MEGABYTES_4: TableId = TableId(2);
const MEGABYTES_40: TableId = TableId(3);
const EAGER: TableId = TableId(4);
const CACHED: TableId = TableId(5);

fn job() -> Job {
    let lazy = |name, rows, width| TableSchema {
        consistency: Consistency::Ssp { staleness: 1000 },
        ..TableSchema::dense(name, rows, width)
    };
    let tables = vec![
        lazy("small", 10_000_000, 1),
        lazy("wide", 1_000_000, 64),
        lazy("4 MB", 2, 1_000_000),
        lazy("40 MB", 2, 10_000_000),
        TableSchema {
            consistency: Consistency::Essp { staleness: 1000 },
            ..TableSchema::dense("small eager", 10_000_000, 1)
        },
        TableSchema {
            filters: list::parse("key-cache", 0).expect("a list of filters"),
            ..lazy("small cached", 10_000_000, 1)
        },
    ];
    Job { tables, workers_per_client: vec![1], shards: 1, budget: None }
}

fn main() -> Outcome<()> {
    if std::env::args().nth(1).as_deref() == Some("server") {
        return serve();
    }
    if role().is_some() {
        return through_a_worker();
    }
    let filter = std::env::args().nth(1).unwrap_or_default();
    raw_loopback()?;
    let mut bench = Bench::start(filter)?;
    bench.round_trips(20_000)?;
    for (name, table) in [("lazy", SMALL), ("eager", EAGER), ("key-cache", CACHED)] {
        bench.incs(&format!("inc, width 1, 10^5 keys, {name}"), table, 10_000_000, 1, 100_000, 300)?;
        bench.gets(&format!("get, width 1, 10^5 keys, {name}"), table, 10_000_000, 1, 100_000, 300)?;
    }
    bench.tell_savings()?;
    bench.incs("inc, width 64, 10^4 rows", WIDE, 1_000_000, 64, 10_000, 400)?;
    bench.gets("get, width 64, 10^4 rows", WIDE, 1_000_000, 64, 10_000, 400)?;
    bench.incs("inc, 4 MB value", MEGABYTES_4, 2, 1_000_000, 1, 300)?;
    bench.gets("get, 4 MB value", MEGABYTES_4, 2, 1_000_000, 1, 300)?;
    bench.incs("inc, 40 MB value", MEGABYTES_40, 2, 10_000_000, 1, 40)?;
    bench.gets("get, 40 MB value", MEGABYTES_40, 2, 10_000_000, 1, 40)?;
    bench.server.kill()?;
    bench.server.wait()?;
    through_a_worker()
}

/// The same through the worker's own interface: one worker process, one server.
fn through_a_worker() -> Outcome<()> {
    let lazy = |name, rows| TableSchema {
        consistency: Consistency::Ssp { staleness: 0 },
        ..TableSchema::dense(name, rows, 1)
    };
    let tables = [lazy("one", 1), lazy("small", 10_000_000)];
    let outcome = hemiola::run(&Deployment::tcp(1, 1), &tables, |worker| {
        let mut micros = Vec::new();
        for _ in 0..5000 {
            worker.clock()?;
            let began = Instant::now();
            worker.get_row(TableId(0), 0)?;
            micros.push(began.elapsed().as_secs_f64() * 1e6);
        }
        micros.sort_by(f64::total_cmp);
        let rows = sorted_rows(1, 10_000_000, 100_000);
        let ones = Values::dense(1, vec![1.0; rows.len()]);
        let mut numbers = Vec::new();
        let (mut inc_seconds, mut get_seconds) = (0.0, 0.0);
        for _ in 0..50 {
            let began = Instant::now();
            worker.inc(TableId(1), &rows, &ones)?;
            worker.clock()?;
            inc_seconds += began.elapsed().as_secs_f64();
            let began = Instant::now();
            worker.get_dense(TableId(1), &Rows::List(&rows), &mut numbers)?;
            get_seconds += began.elapsed().as_secs_f64();
        }
        let keys = 50.0 * rows.len() as f64 * 1e-6;
        Ok(format!(
            "through a worker: clock and read of one key {:.1} us (median of the read), inc and clock {:.1} M keys/s, \
             get {:.1} M keys/s, first row {}",
            micros[micros.len() / 2],
            keys / inc_seconds,
            keys / get_seconds,
            numbers[0],
        )
        .into_bytes())
    })?;
    show(&String::from_utf8_lossy(&outcome.results[0]))
}

/// What the operating system gives on this machine at this moment, between two threads that do nothing else.
fn raw_loopback() -> Outcome<()> {
    const BYTES: usize = 40_000_000;
    let (listener, address) = listen_locally()?;
    let other = std::thread::spawn(move || -> std::io::Result<f64> {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut small = [0; 88];
        for _ in 0..5000 {
            stream.read_exact(&mut small)?;
            stream.write_all(&small)?;
        }
        let mut large = vec![0; BYTES];
        stream.read_exact(&mut large)?;
        let began = Instant::now();
        for _ in 0..20 {
            stream.read_exact(&mut large)?;
        }
        Ok(20.0 * BYTES as f64 * 1e-9 / began.elapsed().as_secs_f64())
    });
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut small = [1; 88];
    let mut micros = Vec::new();
    for _ in 0..5000 {
        let began = Instant::now();
        stream.write_all(&small)?;
        stream.read_exact(&mut small)?;
        micros.push(began.elapsed().as_secs_f64() * 1e6);
    }
    micros.sort_by(f64::total_cmp);
    let large = vec![1; BYTES];
    for _ in 0..21 {
        stream.write_all(&large)?;
    }
    let rate = other.join().map_err(|_| "the other thread panicked")??;
    show(&format!("raw loopback: round trip {:.1} us, 40 MB read at {rate:.2} GB/s", micros[micros.len() / 2]))
}

/// The server's process: says where it listens and with which secret, and serves until it is killed.
fn serve() -> Outcome<()> {
    let (listener, address) = listen_locally()?;
    let secret: Secret = serde_json::from_str(&std::env::var("WIRE_BENCH_SECRET")?)?;
    let server = Arc::new(ShardServer::new(ShardId(0), &job(), secret, &Config::default()));
    server.start(listener, |breach| eprintln!("{breach}"))?;
    writeln!(std::io::stdout(), "{address}")?;
    loop {
        std::thread::park();
    }
}

struct Bench {
    server: Child,
    stream: TcpStream,
    reader: Reader,
    outgoing: Outgoing,
    ledger: Ledger,
    sent: u64,
    received: u64,
    /// Only what has this in its name is measured.
    filter: String,
}

impl Bench {
    fn start(filter: String) -> Outcome<Self> {
        let secret = Secret::random();
        let mut server = Command::new(std::env::current_exe()?)
            .arg("server")
            .env("WIRE_BENCH_SECRET", serde_json::to_string(&secret)?)
            .env(HUGE_PAGES.0, std::env::var(HUGE_PAGES.0).unwrap_or_else(|_| HUGE_PAGES.1.to_owned()))
            .stdout(Stdio::piped())
            .spawn()?;
        let mut address = String::new();
        BufReader::new(server.stdout.take().ok_or("no standard output")?).read_line(&mut address)?;
        let stream = TcpStream::connect(address.trim())?;
        let process = Role::Worker(ClientId(0));
        let hello = Hello { secret, job: fingerprint(&job()), process, address: None, received: 0 };
        let (_, mut reader) = introduce(&stream, &hello, 1 << 30)?;
        let ledger = Ledger::new(&job());
        let encodings = |direction| Encodings::new(&job(), direction, process, &ledger).ok_or("a table has filters");
        reader.set_filters(Some(encodings(Direction::Rows)?.incoming()));
        let outgoing = encodings(Direction::Updates)?.outgoing();
        Ok(Self { server, stream, reader, outgoing, ledger, sent: 0, received: 0, filter })
    }

    fn send(&mut self, message: &ToShard) -> Outcome<()> {
        self.sent += 1;
        let plain = lay_out_to_shard(message, self.sent, self.received);
        write_frames(&mut self.stream, &[self.outgoing.encode(plain)?])?;
        Ok(())
    }

    fn tell_savings(&self) -> Outcome<()> {
        for saving in self.ledger.savings() {
            let (before, after) = (saving.bytes_in as f64 / 1e6, saving.bytes_out as f64 / 1e6);
            show(&format!("{} of {:?}: {before:.1} MB became {after:.1} MB", saving.filter, saving.direction))?;
        }
        Ok(())
    }

    /// The next message with rows.
    fn receive(&mut self) -> Outcome<Values> {
        loop {
            let (header, message) = self.reader.read()?;
            self.received = self.received.max(header.number());
            if let Message::ToClient(ToClient::Rows { values, .. }) = message {
                return Ok(values);
            }
        }
    }

    fn get(&mut self, table: TableId, rows: Vec<u64>) -> Outcome<()> {
        self.send(&ToShard::Get { table, needed: Clock(0), rows: rows.into() })
    }

    fn round_trips(&mut self, count: u32) -> Outcome<()> {
        self.get(SMALL, vec![7])?;
        self.receive()?;
        let mut micros = Vec::new();
        for i in 0..count {
            let began = Instant::now();
            self.get(SMALL, vec![u64::from(i)])?;
            self.receive()?;
            micros.push(began.elapsed().as_secs_f64() * 1e6);
        }
        micros.sort_by(f64::total_cmp);
        let at = |share: f64| micros[(micros.len() as f64 * share) as usize];
        show(&format!("one-key round trip: median {:.1} us, 99 % below {:.1} us", at(0.5), at(0.99)))
    }

    fn incs(&mut self, name: &str, table: TableId, size: u64, width: u32, keys: usize, count: usize) -> Outcome<()> {
        if !name.contains(&self.filter) {
            return Ok(());
        }
        let messages: Vec<ToShard> = (0..8)
            .map(|seed| {
                let rows = sorted_rows(seed, size, keys);
                let numbers = (0..rows.len() as u32 * width).map(|i| (i % 7) as f32).collect();
                let values = Values::dense(width, numbers);
                ToShard::Inc { table, clock: Clock(0), worker: WorkerId(0), rows: rows.into(), versions: None, values }
            })
            .take(if width > 100_000 { 1 } else { 8 })
            .collect();
        self.incs_of(&messages, 16)?;
        let meter = Meter::start(&self.server)?;
        self.incs_of(&messages, count)?;
        let keys = messages.iter().map(keys_of).sum::<usize>() * count / messages.len();
        meter.stop(name, keys, width)?;
        let probe = sorted_rows(1, size, keys.min(1000));
        self.get(table, probe)?;
        let values = self.receive()?;
        show(&format!("    the rows' hash is {:016x}", hash(&values)))
    }

    /// Sends updates, and waits at the end until they have been applied.
    fn incs_of(&mut self, messages: &[ToShard], count: usize) -> Outcome<()> {
        for i in 0..count {
            self.send(&messages[i % messages.len()])?;
        }
        self.get(SMALL, vec![0])?;
        self.receive().map(drop)
    }

    fn gets(&mut self, name: &str, table: TableId, size: u64, width: u32, keys: usize, count: usize) -> Outcome<()> {
        if !name.contains(&self.filter) {
            return Ok(());
        }
        let requests: Vec<Vec<u64>> = (0..8).map(|seed| sorted_rows(seed, size, keys)).collect();
        for _ in 0..8 {
            self.get(table, requests[0].clone())?;
            self.receive()?;
        }
        let meter = Meter::start(&self.server)?;
        let (mut keys, mut hashed) = (0, 0);
        // One request ahead, as a client that announces its reads has.
        self.get(table, requests[0].clone())?;
        for i in 1..=count {
            if i < count {
                self.get(table, requests[i % requests.len()].clone())?;
            }
            let values = self.receive()?;
            keys += values.len();
            hashed = if i == count { hash(&values) } else { hashed };
        }
        meter.stop(name, keys, width)?;
        show(&format!("    the last answer's hash is {hashed:016x}"))
    }
}

fn keys_of(message: &ToShard) -> usize {
    match message {
        ToShard::Inc { rows, .. } | ToShard::Get { rows, .. } => rows.len(),
        _ => 0,
    }
}

/// About `keys` distinct rows below `size`, ascending, one at random from each stretch of equal length.
fn sorted_rows(seed: u64, size: u64, keys: usize) -> Vec<u64> {
    let stretch = (size / keys as u64).max(1);
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..(keys as u64).min(size)).map(|i| i * stretch + random() % stretch).collect()
}

fn hash(values: &Values) -> u64 {
    let Values::Dense { numbers, .. } = values else { return 0 };
    numbers.iter().fold(0xcbf2_9ce4_8422_2325, |hash, x| (hash ^ u64::from(x.to_bits())).wrapping_mul(0x0100_0000_01b3))
}

fn show(line: &str) -> Outcome<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}

/// Wall time, and the server's processor time.
struct Meter {
    began: Instant,
    cpu: f64,
    pid: u32,
}

impl Meter {
    fn start(server: &Child) -> Outcome<Self> {
        Ok(Self { cpu: cpu_seconds(server.id())?, began: Instant::now(), pid: server.id() })
    }

    fn stop(&self, name: &str, keys: usize, width: u32) -> Outcome<()> {
        let (wall, cpu) = (self.began.elapsed().as_secs_f64(), cpu_seconds(self.pid)? - self.cpu);
        let gigabytes = keys as f64 * f64::from(width) * 4e-9;
        show(&format!(
            "{name}: {:.1} M keys/s wall, {:.1} M keys per server core second, {:.1} ns of server cpu per key, \
             {:.2} GB/s of values wall, {:.2} per server core second",
            keys as f64 / wall / 1e6,
            keys as f64 / cpu / 1e6,
            cpu / keys as f64 * 1e9,
            gigabytes / wall,
            gigabytes / cpu,
        ))
    }
}

/// The processor time of all threads of a process, to the nanosecond.
fn cpu_seconds(pid: u32) -> Outcome<f64> {
    let mut nanoseconds = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        nanoseconds += text.split(' ').next().ok_or("an empty schedstat")?.parse::<u64>()?;
    }
    Ok(nanoseconds as f64 * 1e-9)
}
