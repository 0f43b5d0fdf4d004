//! The process that starts the others, coordinates them, and ends the job when one of them dies.

use crate::checkpoint::{Checkpoint, Checkpoints, Publisher};
use crate::deployment::{Observation, Observer, Outcome};
use crate::error::Error;
use crate::tcp::child::{environment, resume_variable};
use crate::tcp::handshake::{Reader, Secret, Unintroduced, hear, receive_control, refuse, send_control, welcome};
use crate::tcp::lane::shut;
use crate::tcp::process::ProcessOutcome;
use crate::tcp::server::HUGE_PAGES;
use crate::tcp::{Config, TcpError, listen, say, spawn};
use hemiola_core::checkpoint::Planner;
use hemiola_core::coordinator::{Coordinator, FromCoordinator, Process, ToCoordinator};
use hemiola_core::filter::ledger;
use hemiola_core::{ClientId, Clock, Job, ShardId, StalenessHistogram};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often processes and new connections are looked at while no message comes.
const TICK: Duration = Duration::from_millis(10);
/// How long a process whose connection has ended may take to die, so that its death is told by its cause.
const LAST_GASP: Duration = Duration::from_secs(2);
/// How long processes may take to leave when they are told to, before they are killed.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a process may take to take a message; one that has stopped altogether does not hold up the others.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Set by the first job whose processes are started from this program as it is.
static HAS_RUN: AtomicBool = AtomicBool::new(false);

/// Runs a job with this fingerprint in processes of its own.
pub(crate) fn run(
    config: &Config,
    (job, fingerprint): (&Job, u64),
    checkpoints: Option<&Checkpoints>,
    observer: &mut Observer<'_>,
) -> Result<Outcome, Error> {
    if config.command.is_none() && HAS_RUN.swap(true, Ordering::Relaxed) {
        return Err(TcpError::SecondRun.into());
    }
    let prepared = checkpoints.map(|checkpoints| checkpoints.prepare(job)).transpose()?;
    let resumed = prepared.as_ref().and_then(|(_, resumed)| resumed.as_ref());
    let began = Instant::now();
    let (listener, address) = listen(config.bind)?;
    listener.set_nonblocking(true).map_err(TcpError::from)?;
    let secret = Secret::random();
    let processes = Processes::start(config, job, &address.to_string(), &secret, resumed)?;
    let (events, inbox) = mpsc::channel();
    let mut launcher = Launcher {
        coordinator: Coordinator::new(job),
        door: Door {
            listener,
            secret,
            job: fingerprint,
            message_bytes_max: config.message_bytes_max,
            unintroduced: Arc::new(Unintroduced::new(job.workers_per_client.len() + job.shards as usize)),
            events,
        },
        processes,
        streams: BTreeMap::new(),
        silent: BTreeMap::new(),
        began,
        saving: None,
        ends: None,
    };
    if let (Some(checkpoints), Some((publisher, resumed))) = (checkpoints, prepared) {
        let clock = resumed.as_ref().map_or(Clock(0), Checkpoint::clock);
        let planner = Planner::new(job, checkpoints.every, clock);
        launcher.saving = Some((planner, publisher));
    }
    let mut looked = began;
    loop {
        match inbox.recv_timeout(TICK) {
            Ok(event) => launcher.take(event)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => unreachable!("the door keeps a sender"),
        }
        // Deaths and new connections must be seen even if messages keep the inbox full.
        if looked.elapsed() >= TICK {
            looked = Instant::now();
            launcher.look_around(config)?;
        }
        // A checkpoint that only servers have yet to write is waited for: nobody is told to leave meanwhile.
        if launcher.coordinator.results().is_some() && launcher.awaits_servers(config) {
            continue;
        }
        launcher.broadcast(observer);
        if let Some(reason) = launcher.coordinator.failure() {
            let reason = reason.to_owned();
            launcher.processes.end();
            launcher.discard_checkpoint();
            return Err(Error::Stopped { reason });
        }
        if let Some(results) = launcher.coordinator.results() {
            let outcome = collect(&results, began.elapsed().as_secs_f64())?;
            launcher.processes.end();
            launcher.discard_checkpoint();
            return Ok(outcome);
        }
    }
}

fn collect(results: &[&[u8]], seconds: f64) -> Result<Outcome, TcpError> {
    let mut outcome = Outcome { seconds, histogram: StalenessHistogram::default(), ..Outcome::default() };
    for (client, result) in results.iter().enumerate() {
        let unreadable = |_| TcpError::Result { process: Process::Worker(ClientId(client as u32)) };
        let part: ProcessOutcome = postcard::from_bytes(result).map_err(unreadable)?;
        outcome.results.extend(part.results);
        outcome.splits.extend(part.splits);
        outcome.histogram.merge(&part.histogram);
        ledger::merge(&mut outcome.savings, part.savings);
    }
    Ok(outcome)
}

/// What happens to a launcher.
enum Event {
    Joined {
        process: Process,
        address: Option<String>,
        stream: TcpStream,
        reader: Reader,
    },
    /// A process that has not been told yet: it would end, and its end would be noticed first.
    Mismatch {
        process: Process,
        stream: TcpStream,
    },
    Message {
        process: Process,
        message: ToCoordinator,
    },
    Gone {
        process: Process,
    },
}

struct Launcher {
    coordinator: Coordinator,
    door: Door,
    processes: Processes,
    streams: BTreeMap<Process, TcpStream>,
    /// Processes whose connection has ended, and when.
    silent: BTreeMap<Process, Instant>,
    began: Instant,
    /// When checkpoints are taken, and who gives them their names.
    saving: Option<(Planner, Publisher)>,
    /// When a finished job no longer waits for its last checkpoint.
    ends: Option<Instant>,
}

impl Launcher {
    fn take(&mut self, event: Event) -> Result<(), TcpError> {
        match event {
            Event::Joined { process, address, stream, reader } => {
                if self.streams.contains_key(&process) {
                    say(&format!("the launcher refused a connection: {}", TcpError::JoinedTwice { process }));
                    shut(&stream);
                    return Ok(());
                }
                stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
                self.streams.insert(process, stream);
                self.door.listen_to(process, reader)?;
                self.coordinator.receive(process, ToCoordinator::Join { process, address });
            }
            Event::Mismatch { process, stream } => {
                let mismatch = TcpError::Mismatch { process };
                refuse(&stream, &mismatch);
                return Err(mismatch);
            }
            Event::Message { message: ToCoordinator::Join { .. }, .. } => {}
            Event::Message { process, message } => {
                let seconds = self.began.elapsed().as_secs_f64();
                if let Some((planner, publisher)) = &mut self.saving {
                    let (decision, whole) = planner.hear(&message, seconds);
                    decision.into_iter().for_each(|decision| self.coordinator.announce(decision));
                    whole.into_iter().for_each(|whole| publisher.conclude(&whole));
                }
                self.coordinator.receive(process, message);
            }
            Event::Gone { process } => {
                self.silent.insert(process, Instant::now());
            }
        }
        Ok(())
    }

    /// Whether a checkpoint lacks nothing but the rows of servers that are all there.
    fn awaits_servers(&mut self, config: &Config) -> bool {
        let awaits = self.saving.as_ref().is_some_and(|(planner, _)| planner.awaits_shards());
        let ends = *self.ends.get_or_insert_with(|| Instant::now() + config.timeout);
        awaits && Instant::now() < ends && !self.processes.any_server_ended()
    }

    fn discard_checkpoint(&self) {
        if let Some((planner, publisher)) = &self.saving {
            planner.open().into_iter().for_each(|clock| publisher.directory.discard(clock));
        }
    }

    fn look_around(&mut self, config: &Config) -> Result<(), TcpError> {
        self.door.open();
        self.processes.look(&mut self.coordinator);
        for (&process, since) in &self.silent {
            if since.elapsed() > LAST_GASP {
                self.coordinator.lost(process, "its connection to the launcher ended");
            }
        }
        match self.coordinator.absent().first() {
            Some(&process) if self.began.elapsed() > config.join_timeout => {
                Err(TcpError::Absent { process, seconds: config.join_timeout.as_secs() })
            }
            _ => Ok(()),
        }
    }

    fn broadcast(&mut self, observer: &mut Observer<'_>) {
        for message in self.coordinator.outbox() {
            if let FromCoordinator::Totals { index, values } = &message {
                let seconds = self.began.elapsed().as_secs_f64();
                observer(&Observation { index: *index, values: values.clone(), seconds });
            }
            for (process, stream) in &self.streams {
                // A process that cannot be told is one whose end is about to be noticed.
                if send_control(&mut &*stream, &message).is_err() {
                    self.silent.entry(*process).or_insert_with(Instant::now);
                }
            }
        }
    }
}

/// Where the processes of the job, and whoever else, knock.
struct Door {
    listener: TcpListener,
    secret: Secret,
    job: u64,
    message_bytes_max: u64,
    unintroduced: Arc<Unintroduced>,
    events: Sender<Event>,
}

impl Door {
    fn open(&self) {
        while let Ok((stream, from)) = self.listener.accept() {
            if !self.unintroduced.admit() {
                say(&format!("the launcher dropped a connection from {from}: too many at once"));
                continue;
            }
            let (secret, job, limit) = (self.secret.clone(), self.job, self.message_bytes_max);
            let (unintroduced, events) = (Arc::clone(&self.unintroduced), self.events.clone());
            thread::spawn(move || {
                let event = introduced(stream, &secret, job, limit);
                unintroduced.end();
                match event {
                    Ok(event) => {
                        tell(&events, event);
                    }
                    Err(error) => say(&format!("the launcher refused a connection from {from}: {error}")),
                }
            });
        }
    }

    fn listen_to(&self, process: Process, mut reader: Reader) -> Result<(), TcpError> {
        let events = self.events.clone();
        let listen = move || {
            while let Ok(message) = receive_control(&mut reader) {
                if !tell(&events, Event::Message { process, message }) {
                    return;
                }
            }
            tell(&events, Event::Gone { process });
        };
        spawn("a process's messages", listen)
    }
}

/// Whether the launcher still takes events; when its job is over it does not.
fn tell(events: &Sender<Event>, event: Event) -> bool {
    events.send(event).is_ok()
}

fn introduced(stream: TcpStream, secret: &Secret, job: u64, limit: u64) -> Result<Event, TcpError> {
    stream.set_nonblocking(false)?;
    let (hello, reader) = match hear(&stream, secret, job) {
        Err(TcpError::Mismatch { process }) => return Ok(Event::Mismatch { process, stream }),
        heard => heard?,
    };
    let reader = welcome(&stream, reader, 0, limit)?;
    Ok(Event::Joined { process: hello.process, address: hello.address, stream, reader })
}

/// The processes that were started. None of them outlives this value.
struct Processes(Vec<Running>);

struct Running {
    process: Process,
    child: std::process::Child,
    last_words: Arc<Mutex<String>>,
    listener: Option<JoinHandle<()>>,
    ended: bool,
}

impl Processes {
    fn start(
        config: &Config,
        job: &Job,
        address: &str,
        secret: &Secret,
        resumed: Option<&Checkpoint>,
    ) -> Result<Self, TcpError> {
        let mut started = Self(Vec::new());
        let servers = (0..job.shards).map(|shard| Process::Server(ShardId(shard)));
        let workers = (0..job.workers_per_client.len() as u32).map(|client| Process::Worker(ClientId(client)));
        for process in servers.chain(workers) {
            let variables = environment(process, address, secret).map(|(name, value)| (name, OsString::from(value)));
            let variables = variables.into_iter().chain(resumed.map(resume_variable)).collect();
            started.0.push(Running::start(config, process, variables)?);
        }
        Ok(started)
    }

    /// Tells the coordinator who has died.
    fn look(&mut self, coordinator: &mut Coordinator) {
        for running in &mut self.0 {
            if let Some(how) = running.death() {
                coordinator.lost(running.process, &how);
            }
        }
    }

    fn any_server_ended(&mut self) -> bool {
        let mut servers = self.0.iter_mut().filter(|running| matches!(running.process, Process::Server(_)));
        servers.any(Running::has_ended)
    }

    /// Waits for everyone to leave, and kills who does not.
    fn end(&mut self) {
        let deadline = Instant::now() + LEAVE_TIMEOUT;
        while Instant::now() < deadline && self.0.iter_mut().any(|running| !running.has_ended()) {
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for running in self.0.iter_mut().filter(|running| !running.ended) {
            let ended = running.child.kill().and_then(|()| running.child.wait());
            if let Err(error) = ended {
                say(&format!("{} could not be ended: {error}", running.process));
            }
        }
    }
}

impl Running {
    fn start(config: &Config, process: Process, variables: Vec<(&'static str, OsString)>) -> Result<Self, TcpError> {
        let command = match &config.command {
            Some(command) => command.clone(),
            None => {
                let program = std::env::current_exe().map(OsString::from);
                let program = program.unwrap_or_else(|_| std::env::args_os().next().unwrap_or_default());
                std::iter::once(program).chain(std::env::args_os().skip(1)).collect()
            }
        };
        let (program, arguments) = command.split_first().map_or((OsString::new(), &[][..]), |(p, a)| (p.clone(), a));
        let failed = |source| TcpError::Start { process, program: program.display().to_string(), source };
        let mut command = Command::new(&program);
        if matches!(process, Process::Server(_)) && std::env::var_os(HUGE_PAGES.0).is_none() {
            command.env(HUGE_PAGES.0, HUGE_PAGES.1);
        }
        let mut child = command
            .args(arguments)
            .envs(variables)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let last_words = Arc::new(Mutex::new(String::new()));
        let listener = child.stderr.take().map(|stderr| {
            let last_words = Arc::clone(&last_words);
            thread::spawn(move || {
                for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                    say(&line);
                    *last_words.lock() = line;
                }
            })
        });
        Ok(Self { process, child, last_words, listener, ended: false })
    }

    fn has_ended(&mut self) -> bool {
        self.ended |= !matches!(self.child.try_wait(), Ok(None));
        self.ended
    }

    /// How the process died, the first time that it is found dead.
    fn death(&mut self) -> Option<String> {
        if self.ended {
            return None;
        }
        let status = self.child.try_wait().ok()??;
        self.ended = true;
        self.hear_last_words();
        let last = self.last_words.lock();
        let said = if last.is_empty() { String::new() } else { format!(", after writing: {}", last.trim()) };
        Some(format!("{}{said}", manner(status)))
    }

    /// The process is dead, so its standard error ends, unless some process of its own keeps it open.
    fn hear_last_words(&mut self) {
        let deadline = Instant::now() + Duration::from_millis(200);
        while self.listener.as_ref().is_some_and(|listener| !listener.is_finished()) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn manner(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("killed by signal {signal}"),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "in an unknown way".to_owned(),
    }
}
