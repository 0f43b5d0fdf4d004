//! Jobs in processes: every test is run again by the processes that it starts, which play their roles inside the same
//! call of `hemiola::run`.

use hemiola::factors::{self, Factor, MatrixSchema, Peer};
use hemiola::tcp::{Config, Role, role};
use hemiola::{Budget, Consistency, Deployment, Error, Priority, RowRef, Rows, TableId, TableSchema, Values, Worker};
use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

const TABLE: TableId = TableId(0);
const ROWS: u64 = 300;

fn config(test: &str, processes: u32, servers: u32) -> Config {
    let program = std::env::current_exe().expect("a test has a program").into();
    let command = Some(vec![program, test.into(), "--exact".into(), "--nocapture".into()]);
    Config { processes, servers, command, timeout: Duration::from_secs(60), ..Config::default() }
}

fn tables(consistency: Consistency) -> Vec<TableSchema> {
    vec![TableSchema { chunk_rows: Some(32), consistency, ..TableSchema::dense("t", ROWS, 2) }]
}

/// Reads what others wrote and adds something that depends on it, so that any difference in order shows.
fn mix(worker: &mut Worker, clocks: u32) -> Result<Vec<u8>, Error> {
    let me = worker.id().0;
    for clock in 0..clocks {
        let rows: Vec<u64> = (0..40).map(|i| u64::from((i * 7 + me * 13 + clock * 29) % ROWS as u32)).collect();
        let mut distinct = rows.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let mut read = Vec::new();
        worker.get_dense(TABLE, &Rows::List(&distinct), &mut read)?;
        let update: Vec<f32> = read.iter().map(|x| (x * 0.37).sin() + 0.1 * (me + 1) as f32).collect();
        worker.inc(TABLE, &distinct, &Values::dense(2, update))?;
        worker.clock()?;
    }
    Ok(bytes_of(&worker.get_latest(TABLE, &(0..ROWS).collect::<Vec<_>>())?))
}

fn bytes_of(values: &Values) -> Vec<u8> {
    match values {
        Values::Dense { numbers, .. } => numbers.iter().flat_map(|x| x.to_le_bytes()).collect(),
        _ => panic!("a dense table"),
    }
}

#[test]
fn bsp_gives_the_same_bits_in_processes_as_in_threads() {
    let tables = tables(Consistency::Bsp);
    let deployment = Deployment::Tcp(config("bsp_gives_the_same_bits_in_processes_as_in_threads", 4, 2));
    let apart = hemiola::run(&deployment, &tables, |worker| mix(worker, 12)).expect("processes");
    let together = hemiola::run(&Deployment::threads(4), &tables, |worker| mix(worker, 12)).expect("threads");
    assert_eq!(apart.results, together.results);
    assert_eq!(apart.histogram, together.histogram);
    assert_eq!(apart.splits.len(), 4);
    assert!(apart.splits.iter().all(|split| split.clocks.0 == 12 && split.bytes_sent > 0 && split.bytes_received > 0));
}

/// Every worker adds one to every row in every clock, and reads at the end when all have.
fn count(worker: &mut Worker, clocks: u32) -> Result<Vec<u8>, Error> {
    let rows: Vec<u64> = (0..ROWS).collect();
    for _ in 0..clocks {
        worker.get_row(TABLE, 5)?;
        worker.inc(TABLE, &rows, &Values::dense(2, vec![1.0; 2 * ROWS as usize]))?;
        worker.clock()?;
    }
    Ok(bytes_of(&worker.get_latest(TABLE, &rows)?))
}

fn counts_once(test: &str, consistency: Consistency, sever_after_frames: Option<u64>) {
    let config = Config { workers_per_process: 2, sever_after_frames, ..config(test, 2, 2) };
    let outcome = hemiola::run(&Deployment::Tcp(config), &tables(consistency), |worker| count(worker, 15));
    let expected = [60.0f32; 2 * ROWS as usize].iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
    assert_eq!(outcome.expect("nobody dies").results, vec![expected; 4]);
}

#[test]
fn essp_applies_every_update_once() {
    counts_once("essp_applies_every_update_once", Consistency::Essp { staleness: 2 }, None);
}

#[test]
fn ssp_applies_every_update_once() {
    counts_once("ssp_applies_every_update_once", Consistency::Ssp { staleness: 1 }, None);
}

#[test]
fn broken_connections_lose_and_repeat_nothing() {
    counts_once("broken_connections_lose_and_repeat_nothing", Consistency::Essp { staleness: 1 }, Some(5));
}

#[test]
fn under_a_budget_broken_connections_lose_and_repeat_nothing() {
    let test = "under_a_budget_broken_connections_lose_and_repeat_nothing";
    let budget = Some(Budget { bytes_per_second: 4_000_000, priority: Priority::RelativeMagnitude });
    let config = Config { workers_per_process: 2, sever_after_frames: Some(5), budget, ..config(test, 2, 2) };
    let tables = tables(Consistency::Essp { staleness: 2 });
    let outcome = hemiola::run(&Deployment::Tcp(config), &tables, |worker| count(worker, 15));
    let expected = [60.0f32; 2 * ROWS as usize].iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
    assert_eq!(outcome.expect("nobody dies").results, vec![expected; 4]);
}

#[test]
fn under_a_budget_results_take_as_long_as_it_lets_them() {
    let test = "under_a_budget_results_take_as_long_as_it_lets_them";
    let budget = Some(Budget { bytes_per_second: 400_000, priority: Priority::Random });
    let config = Config { budget, ..config(test, 1, 1) };
    let began = Instant::now();
    let result = |worker: &mut Worker| worker.clock().map(|()| vec![7; 400_000]);
    let outcome = hemiola::run(&Deployment::Tcp(config), &tables(Consistency::Bsp), result);
    assert_eq!(outcome.expect("nobody dies").results, [[7; 400_000]]);
    assert!(began.elapsed() >= Duration::from_millis(900), "{:?}", began.elapsed());
}

/// Waits until all workers have come here, within their clocks.
fn meet(worker: &mut Worker) -> Result<(), Error> {
    let here = worker.report(&[]);
    worker.totals(here).map(drop)
}

#[test]
fn under_a_budget_updates_are_seen_before_their_clock_ends() {
    let test = "under_a_budget_updates_are_seen_before_their_clock_ends";
    let budget = Some(Budget { bytes_per_second: 4_000_000, priority: Priority::RelativeMagnitude });
    let table = |name, consistency| TableSchema { consistency, ..TableSchema::dense(name, ROWS, 2) };
    let tables = [table("essp", Consistency::Essp { staleness: 2 }), table("async", Consistency::Async)];
    let outcome = hemiola::run(&Deployment::Tcp(Config { budget, ..config(test, 2, 1) }), &tables, |worker| {
        let mut seen = Vec::new();
        for table in [TABLE, TableId(1)] {
            // From now on the server sends the row when it has changed, and reads find what was sent.
            worker.get_row(table, 5)?;
            meet(worker)?;
            if worker.id().0 == 0 {
                worker.inc_row(table, 5, &[3.0, 0.0])?;
            } else {
                let deadline = Instant::now() + Duration::from_secs(20);
                while worker.get_row(table, 5)?[0] == 0.0 && Instant::now() < deadline {
                    std::thread::yield_now();
                }
                seen.push(worker.get_row(table, 5)?[0] as u8);
            }
            // Until the other has looked, the writer's clock goes on.
            meet(worker)?;
        }
        worker.clock()?;
        Ok(seen)
    });
    let seen = outcome.expect("nobody dies").results;
    assert_eq!(
        seen,
        [vec![], vec![3, 3]],
        "worker 1 sees under essp and async what worker 0 has written in an open clock"
    );
}

/// Without a bound a worker cannot wait for a clock, so it looks until it sees everything.
fn count_unbounded(worker: &mut Worker, clocks: u32) -> Result<Vec<u8>, Error> {
    let rows: Vec<u64> = (0..ROWS).collect();
    for _ in 0..clocks {
        worker.inc(TABLE, &rows, &Values::dense(2, vec![1.0; 2 * ROWS as usize]))?;
        worker.clock()?;
    }
    let all = clocks as f32 * worker.workers() as f32;
    loop {
        let values = worker.get(TABLE, &rows)?;
        let missing = (0..rows.len()).any(|i| values.row(i) != RowRef::Dense(&[all, all]));
        let index = worker.report(&[f64::from(u8::from(missing))]);
        worker.clock()?;
        if worker.totals(index)? == [0.0] {
            return Ok(bytes_of(&values));
        }
    }
}

#[test]
fn async_applies_every_update_once() {
    let config = config("async_applies_every_update_once", 3, 2);
    let outcome = hemiola::run(&Deployment::Tcp(config), &tables(Consistency::Async), |w| count_unbounded(w, 10));
    let expected = [30.0f32; 2 * ROWS as usize].iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
    assert_eq!(outcome.expect("no faults").results, vec![expected; 3]);
}

#[test]
fn vap_applies_every_update_once() {
    let config = config("vap_applies_every_update_once", 2, 2);
    let tables = tables(Consistency::Vap { bound: 8.0 });
    let outcome = hemiola::run(&Deployment::Tcp(config), &tables, |worker| count_unbounded(worker, 6));
    let expected = [12.0f32; 2 * ROWS as usize].iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
    assert_eq!(outcome.expect("no faults").results, vec![expected; 2]);
}

#[test]
fn reports_are_summed_over_processes_and_shown_to_the_launcher() {
    let config = config("reports_are_summed_over_processes_and_shown_to_the_launcher", 3, 1);
    let mut seen = Vec::new();
    let program = |worker: &mut Worker| {
        for i in 0..4 {
            let index = worker.report(&[f64::from(worker.id().0), f64::from(i)]);
            assert_eq!(worker.totals(index)?, [3.0, 3.0 * f64::from(i)]);
        }
        Ok(Vec::new())
    };
    let mut observer = |o: &hemiola::Observation| seen.push((o.index, o.values.clone()));
    hemiola::run_observed(&Deployment::Tcp(config), &tables(Consistency::Bsp), &program, &mut observer).expect("runs");
    assert_eq!(seen, (0..4).map(|i| (i, vec![3.0, 3.0 * f64::from(i)])).collect::<Vec<_>>());
}

/// The processes that a launcher started for `test`, with their roles.
fn processes_of(test: &str) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("a Linux machine").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let read = |file: &str| std::fs::read(entry.path().join(file)).unwrap_or_default();
        let is_of_test = read("cmdline").split(|b| *b == 0).any(|argument| argument == test.as_bytes());
        let environment = read("environ");
        let role = environment.split(|b| *b == 0).find_map(|variable| variable.strip_prefix(b"HEMIOLA_ROLE="));
        if let (true, Some(role)) = (is_of_test, role) {
            found.push((pid, String::from_utf8_lossy(role).into_owned()));
        }
    }
    found
}

fn kill(pid: u32) {
    let status = Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill can be started");
    assert!(status.success());
}

/// Runs a job in which `victim` is killed when worker 0 is at `kill_clock`, and gives back what the launcher says.
fn killed(test: &str, victim: &str, kill_clock: u32) -> String {
    let outcome = hemiola::run(&Deployment::Tcp(config(test, 3, 2)), &tables(Consistency::Bsp), |worker| {
        for clock in 0..1000 {
            if clock == kill_clock && worker.id().0 == 0 {
                eprintln!("at clock {clock}");
                let (pid, _) = processes_of(test).into_iter().find(|(_, role)| role == victim).expect("it runs");
                kill(pid);
            }
            mix(worker, 1)?;
        }
        Ok(Vec::new())
    });
    assert_eq!(processes_of(test), []);
    outcome.expect_err("a process was killed").to_string()
}

/// Every process draws one of its own; that of worker 0 counts, and is printed by it.
fn random_clock() -> u32 {
    (RandomState::new().hash_one(0) % 20) as u32
}

#[test]
fn a_killed_worker_ends_the_run_by_name() {
    let sentence = killed("a_killed_worker_ends_the_run_by_name", "worker:2", random_clock());
    assert!(sentence.starts_with("worker process 2 died at clock "), "{sentence}");
    assert!(sentence.ends_with(" (killed by signal 9); the run was ended and no model was written"), "{sentence}");
}

#[test]
fn a_worker_that_dies_is_quoted() {
    let sentence = killed("a_worker_that_dies_is_quoted", "worker:0", 5);
    let (clock, rest) = sentence
        .strip_prefix("worker process 0 died at clock ")
        .and_then(|rest| rest.split_once(' '))
        .unwrap_or_else(|| panic!("{sentence}"));
    // A clock is told a few milliseconds after it has begun.
    assert!((0..=5).contains(&clock.parse::<u32>().expect("a clock")), "{sentence}");
    let quoted = "(killed by signal 9, after writing: at clock 5); the run was ended and no model was written";
    assert_eq!(rest, quoted);
}

#[test]
fn a_killed_server_ends_the_run_by_name() {
    let sentence = killed("a_killed_server_ends_the_run_by_name", "server:1", random_clock());
    assert!(sentence.starts_with("server 1 died at clock "), "{sentence}");
    assert!(sentence.ends_with(" (killed by signal 9); the run was ended and no model was written"), "{sentence}");
}

#[test]
fn nobody_outlives_a_killed_launcher() {
    let test = "nobody_outlives_a_killed_launcher";
    let config = config(test, 2, 1);
    if role().is_none() && std::env::var_os("TEST_LAUNCHER").is_none() {
        let command = config.command.expect("made above");
        let launcher = Command::new(&command[0]).args(&command[1..]).env("TEST_LAUNCHER", "yes").output();
        assert_eq!(launcher.expect("it can be started").status.code(), None, "it was killed");
        let deadline = Instant::now() + Duration::from_secs(20);
        while !processes_of(test).is_empty() {
            assert!(Instant::now() < deadline, "these are still there: {:?}", processes_of(test));
            std::thread::yield_now();
        }
        return;
    }
    let outcome = hemiola::run(&Deployment::Tcp(config), &tables(Consistency::Bsp), |worker| {
        mix(worker, 3)?;
        if worker.id().0 == 0 {
            kill(std::os::unix::process::parent_id());
        }
        mix(worker, 100_000)
    });
    panic!("the launcher was killed before it could say {outcome:?}");
}

#[test]
fn a_failing_program_ends_the_run_with_its_own_words() {
    let test = "a_failing_program_ends_the_run_with_its_own_words";
    let outcome = hemiola::run(&Deployment::Tcp(config(test, 2, 1)), &tables(Consistency::Bsp), |worker| {
        mix(worker, 3)?;
        if worker.id().0 == 1 {
            return Err(Error::program("the data ran out"));
        }
        mix(worker, 1000)
    });
    assert_eq!(processes_of(test), []);
    let sentence = outcome.expect_err("worker 1 fails").to_string();
    assert_eq!(sentence, "worker process 1 failed at clock 3: the data ran out");
}

#[test]
fn a_process_with_another_job_is_refused() {
    let test = "a_process_with_another_job_is_refused";
    let rows = if role() == Some(Role::Worker(hemiola::ClientId(1))) { 8 } else { 9 };
    let tables = [TableSchema::dense("t", rows, 1)];
    let outcome = hemiola::run(&Deployment::Tcp(config(test, 2, 1)), &tables, |_| Ok(Vec::new()));
    assert_eq!(processes_of(test), []);
    assert_eq!(
        outcome.expect_err("tables differ").to_string(),
        "worker process 1 runs another job than its launcher; a job's tables and counts must not depend on the process"
    );
}

#[test]
fn a_process_that_does_not_join_is_named() {
    let test = "a_process_that_does_not_join_is_named";
    if role() == Some(Role::Server(hemiola::ShardId(0))) {
        std::thread::park();
    }
    let config = Config { join_timeout: Duration::from_secs(2), ..config(test, 1, 1) };
    let outcome = hemiola::run(&Deployment::Tcp(config), &tables(Consistency::Bsp), |_| Ok(Vec::new()));
    assert_eq!(processes_of(test), []);
    assert_eq!(
        outcome.expect_err("the server is parked").to_string(),
        "server 0 did not join within 2 s; see what it wrote to the standard error"
    );
}

#[test]
fn a_program_that_cannot_be_started_or_an_open_address_is_refused() {
    let run = |config| hemiola::run(&Deployment::Tcp(config), &tables(Consistency::Bsp), |_| Ok(Vec::new()));
    let config = Config { command: Some(vec!["no-such-program".into()]), ..Config::default() };
    assert_eq!(
        run(config).expect_err("no program").to_string(),
        "cannot start server 0 from 'no-such-program': No such file or directory (os error 2)"
    );
    let config = Config { bind: [0, 0, 0, 0].into(), ..Config::default() };
    assert_eq!(
        run(config).expect_err("open to all").to_string(),
        "other machines can reach 0.0.0.0, and connections are not encrypted; listen on 127.0.0.1 or allow it as insecure"
    );
}

/// Where process `pid` listens.
fn listening_ports(pid: u32) -> Vec<u16> {
    let sockets: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("our own process")
        .flatten()
        .filter_map(|fd| std::fs::read_link(fd.path()).ok())
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let table = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).expect("our own process");
    let port = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let listens = fields.get(3) == Some(&"0A") && sockets.iter().any(|socket| fields.get(9) == Some(&&**socket));
        listens.then(|| u16::from_str_radix(fields[1].rsplit(':').next()?, 16).ok()).flatten()
    };
    table.lines().skip(1).filter_map(port).collect()
}

/// Sends bytes to a port and waits until the other end has closed the connection.
fn attack(port: u16, bytes: &[u8]) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("someone listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a duration");
    let mut answer = Vec::new();
    // The other end may close the connection before all has been written: that is what is hoped for.
    if stream.write_all(bytes).is_ok() {
        match stream.read_to_end(&mut answer) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
    }
    assert_eq!(answer, b"", "a stranger gets no answer");
}

fn strange_bytes() -> Vec<Vec<u8>> {
    use hemiola::tcp::wire::{Hello, Secret, write_frames};
    use hemiola_core::codec::Message;
    let hello = Hello {
        secret: Secret::random(),
        job: 0,
        process: Role::Worker(hemiola::ClientId(0)),
        address: None,
        received: 0,
    };
    let mut wrong_secret = Vec::new();
    let body = postcard::to_allocvec(&hello).expect("plain data");
    write_frames(&mut wrong_secret, &[Message::Control(body.into()).encode(0, 0)]).expect("memory takes it");
    let changed = |at: usize, bytes: &[u8]| {
        let mut changed = wrong_secret.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    };
    let mut state = 12345u32;
    let random = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    vec![
        b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: someone/1.0\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n".to_vec(),
        random.take(5000).collect(),
        changed(0, b"XXXX"),
        changed(4, &[99]),
        changed(16, &[0xff; 4]),
        b"HEMI".to_vec(),
        wrong_secret,
    ]
}

#[test]
fn strangers_are_refused_and_the_job_goes_on() {
    let test = "strangers_are_refused_and_the_job_goes_on";
    let outcome = hemiola::run(&Deployment::Tcp(config(test, 2, 1)), &tables(Consistency::Bsp), |worker| {
        mix(worker, 3)?;
        if worker.id().0 == 0 {
            let (server, _) = processes_of(test).into_iter().find(|(_, role)| role == "server:0").expect("it runs");
            let mut ports = listening_ports(server);
            let launcher = std::env::var("HEMIOLA_COORDINATOR").expect("a child of the launcher");
            ports.extend(launcher.rsplit(':').next().and_then(|port| port.parse::<u16>().ok()));
            assert_eq!(ports.len(), 2);
            std::thread::scope(|scope| {
                for port in ports {
                    scope.spawn(move || strange_bytes().iter().for_each(|bytes| attack(port, bytes)));
                }
            });
        }
        mix(worker, 3)
    });
    let together = hemiola::run(&Deployment::threads(2), &tables(Consistency::Bsp), |worker| {
        mix(worker, 3)?;
        mix(worker, 3)
    });
    assert_eq!(outcome.expect("strangers do no harm").results, together.expect("threads").results);
}

/// Pairs that depend on what the others wrote, so that any difference in order shows.
fn mix_factors(peer: &mut Peer<'_>, iterations: u32) -> Result<Vec<u8>, Error> {
    let me = peer.id().0;
    for iteration in 0..iterations {
        for pair in 0..5 {
            let u: Vec<f32> =
                peer.matrix().numbers().chunks(9).map(|row| (row[pair] * 0.37 + me as f32).sin() * 0.1).collect();
            let places = [iteration % 4, 4 + (me + pair as u32) % 5];
            match pair {
                0 => peer.write(&u, Factor::Sparse(&places, &[0.5, -0.25]))?,
                _ => peer.write(&u, &[0.1 * pair as f32; 9])?,
            }
        }
        peer.commit()?;
    }
    peer.catch_up()?;
    Ok(peer.matrix().numbers().iter().flat_map(|x| x.to_le_bytes()).collect())
}

fn matrix() -> MatrixSchema {
    let init = hemiola::Init::Uniform { seed: 5, low: -1.0, high: 1.0, columns: 9, rest: 0.0 };
    MatrixSchema { init, ..MatrixSchema::new(7, 9) }
}

#[test]
fn peers_have_the_same_bits_in_processes_as_in_threads() {
    let deployment = Deployment::Tcp(config("peers_have_the_same_bits_in_processes_as_in_threads", 4, 0));
    let apart = factors::run(&deployment, &matrix(), |peer| mix_factors(peer, 30)).expect("processes");
    let together = factors::run(&Deployment::threads(4), &matrix(), |peer| mix_factors(peer, 30)).expect("threads");
    assert_eq!(apart.results, together.results);
    assert!(apart.results.iter().all(|result| *result == apart.results[0]), "all replicas are the same");
    assert_eq!(apart.histogram, together.histogram);
    assert!(apart.splits.iter().all(|split| split.clocks.0 == 30 && split.bytes_sent > 0 && split.bytes_received > 0));
}

#[test]
fn peers_that_send_to_a_few_over_connections_that_break_have_the_bits_of_threads() {
    let test = "peers_that_send_to_a_few_over_connections_that_break_have_the_bits_of_threads";
    let config = Config { sever_after_frames: Some(4), ..config(test, 4, 0) };
    let schema = MatrixSchema { fanout: Some(2), ..matrix() };
    let filtered = MatrixSchema { filters: vec![hemiola::Filter::encoding(hemiola::filter::Zstd)], ..schema.clone() };
    let apart = factors::run(&Deployment::Tcp(config), &filtered, |peer| mix_factors(peer, 30)).expect("processes");
    let together = factors::run(&Deployment::threads(4), &schema, |peer| mix_factors(peer, 30)).expect("threads");
    assert_eq!(apart.results, together.results);
    assert!(apart.results.iter().any(|result| *result != apart.results[0]), "nothing is passed on");
    assert_eq!(apart.savings.len(), 1);
    assert!(apart.savings[0].bytes_in > apart.savings[0].bytes_out, "{:?}", apart.savings);
}

#[test]
fn with_staleness_peers_lose_nothing_over_connections_that_break() {
    let test = "with_staleness_peers_lose_nothing_over_connections_that_break";
    let config = Config { sever_after_frames: Some(3), ..config(test, 3, 0) };
    let schema = MatrixSchema { staleness: 2, ..MatrixSchema::new(3, 40) };
    let outcome = factors::run(&Deployment::Tcp(config), &schema, |peer| {
        for clock in 0..40 {
            // Small whole numbers, whose sums do not depend on their order.
            peer.write(Factor::Sparse(&[peer.id().0], &[-1.0]), Factor::Sparse(&[clock], &[1.0]))?;
            peer.commit()?;
        }
        peer.catch_up()?;
        Ok(peer.matrix().numbers().iter().map(|x| *x as u8).collect())
    });
    assert_eq!(outcome.expect("runs").results, vec![vec![1u8; 120]; 3]);
}

#[test]
fn a_killed_peer_ends_the_run_by_name() {
    let test = "a_killed_peer_ends_the_run_by_name";
    let outcome = factors::run(&Deployment::Tcp(config(test, 3, 0)), &matrix(), |peer| {
        mix_factors(peer, 5)?;
        if peer.id().0 == 0 {
            let (pid, _) = processes_of(test).into_iter().find(|(_, role)| role == "worker:2").expect("it runs");
            kill(pid);
        }
        mix_factors(peer, 1_000_000)
    });
    assert_eq!(processes_of(test), []);
    let sentence = outcome.expect_err("a peer was killed").to_string();
    assert!(sentence.starts_with("worker process 2 died at clock "), "{sentence}");
    assert!(sentence.ends_with(" (killed by signal 9); the run was ended and no model was written"), "{sentence}");
}

#[test]
fn a_peer_with_another_shape_or_seed_is_refused() {
    let test = "a_peer_with_another_shape_or_seed_is_refused";
    let other = role() == Some(Role::Worker(hemiola::ClientId(1)));
    let init = hemiola::Init::Uniform { seed: u64::from(other), low: -1.0, high: 1.0, columns: 9, rest: 0.0 };
    let schema = MatrixSchema { init, ..matrix() };
    let outcome = factors::run(&Deployment::Tcp(config(test, 3, 0)), &schema, |peer| mix_factors(peer, 3));
    assert_eq!(processes_of(test), []);
    assert_eq!(
        outcome.expect_err("seeds differ").to_string(),
        "worker process 1 runs another job than its launcher; a job's tables and counts must not depend on the process"
    );
}
