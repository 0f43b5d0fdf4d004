//! Writes checkpoints while the job goes on: a thread of its own per process, fed by workers and by whoever has tables.

use super::directory::{Directory, Lock};
use super::error::CheckpointError;
use super::file::FileWriter;
use crate::tcp::say;
use hemiola_core::checkpoint::{Every, Owner, SavedFile, Whole};
use hemiola_core::coordinator::ToCoordinator;
use hemiola_core::snapshot::Part;
use hemiola_core::{Clock, WorkerId};
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::fs::File;
use std::mem::{self, Discriminant};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};
use thiserror::Error;

/// How many bytes of rows are taken out at a time, and the tables locked for.
pub(crate) const PART_BYTES: usize = 1 << 20;

/// The most of a processor's time that is spent on taking tables out and writing them while others want it: a longer save
/// costs the job less than a hasty one.
const SHARE: f64 = 0.0625;

/// How long a rest is at most: then it is looked at again whether one is due.
const REST_MAX: Duration = Duration::from_millis(20);

/// When whoever saves is to rest, so that it does not take more than its share of a processor.
pub(crate) struct Rests {
    /// What had been spent when that was last looked at.
    last: Spent,
    /// For how long it would have to rest.
    owed: Duration,
    /// For how long it has rested.
    taken: Duration,
}

/// Time that went by, and processor time that went to a thread and to its process.
struct Spent {
    at: Instant,
    here: Duration,
    process: Duration,
}

impl Rests {
    /// For the calling thread, from now on.
    pub(crate) fn new() -> Self {
        Self { last: Spent::now(), owed: Duration::ZERO, taken: Duration::ZERO }
    }

    /// Rests by `sleep` if a rest is due, for as long as it is told to or less; whether one was.
    pub(crate) fn rest(&mut self, sleep: impl FnOnce(Duration)) -> bool {
        let due = self.due(Spent::now()).min(REST_MAX);
        if due.is_zero() {
            return false;
        }
        let began = Instant::now();
        sleep(due);
        self.taken += began.elapsed();
        true
    }

    /// The rest for what the thread has done: none if nobody else in the process has done much since it was last asked.
    fn due(&mut self, now: Spent) -> Duration {
        let here = now.here.saturating_sub(self.last.here);
        let others = now.process.saturating_sub(self.last.process).saturating_sub(here);
        // Waiting for a disk is as good as a rest.
        let went_by = now.at.saturating_duration_since(self.last.at);
        self.last = now;
        let is_busy = others > went_by.mul_f64(SHARE);
        self.owed = if is_busy { (self.owed + here.div_f64(SHARE)).saturating_sub(went_by) } else { Duration::ZERO };
        self.owed
    }
}

impl Spent {
    fn now() -> Self {
        let spent = |clock| {
            let time = clock_gettime(clock);
            Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
        };
        Self { at: Instant::now(), here: spent(ClockId::ThreadCPUTime), process: spent(ClockId::ProcessCPUTime) }
    }
}

/// What a process of a job knows of checkpoints.
pub(crate) struct Vault {
    pub(crate) every: Every,
    pub(crate) keeper: Keeper,
    /// What its workers go on from: how many reports each has made, and what it handed in.
    resumed: Mutex<BTreeMap<WorkerId, (u32, Vec<u8>)>>,
}

/// Where workers' states go.
pub(crate) enum Keeper {
    Files(Saver),
    /// To the simulator's memory.
    Sim,
}

impl Vault {
    pub(crate) fn new(every: Every, keeper: Keeper, resumed: BTreeMap<WorkerId, (u32, Vec<u8>)>) -> Self {
        Self { every, keeper, resumed: Mutex::new(resumed) }
    }

    /// What a worker goes on from; it is given once.
    pub(crate) fn take_resumed(&self, worker: WorkerId) -> Option<(u32, Vec<u8>)> {
        self.resumed.lock().remove(&worker)
    }

    /// Says that tables are ready to be taken out at `clock`.
    pub(crate) fn tables_ready(&self, clock: Clock) {
        if let Keeper::Files(saver) = &self.keeper {
            saver.send(Task::Tables(clock));
        }
    }

    /// Lets the thread that writes end when it has written what it was given.
    pub(crate) fn close(&self) {
        if let Keeper::Files(saver) = &self.keeper {
            saver.tasks.lock().take();
        }
    }
}

/// The way to the thread that writes.
pub(crate) struct Saver {
    directory: Directory,
    tasks: Mutex<Option<Sender<Task>>>,
}

pub(crate) enum Task {
    /// A worker's file has been written, which took so long, and must reach the disk.
    Worker { clock: Clock, owner: Owner, written: Result<(File, SavedFile), CheckpointError>, took: Duration },
    /// The tables of this process are ready to be taken out.
    Tables(Clock),
}

impl Saver {
    pub(crate) fn new(directory: Directory) -> (Self, Receiver<Task>) {
        let (sender, receiver) = mpsc::channel();
        (Self { directory, tasks: Mutex::new(Some(sender)) }, receiver)
    }

    fn send(&self, task: Task) {
        if let Some(tasks) = &*self.tasks.lock() {
            // Nobody is left to write it when the job is over.
            tasks.send(task).unwrap_or_default();
        }
    }

    /// Writes a worker's state, from where it lies, on the worker's own thread.
    pub(crate) fn save(&self, worker: WorkerId, clock: Clock, reports: u32, state: &[&[u8]]) {
        let (owner, began) = (Owner::Worker(worker), Instant::now());
        let write = |mut writer: FileWriter| {
            state.iter().try_for_each(|bytes| writer.bytes(bytes))?;
            writer.finish()
        };
        let unwritten = |source| CheckpointError::Write { path: self.directory.path.clone(), source };
        let written = self.directory.create(clock, owner, reports).and_then(|writer| write(writer).map_err(unwritten));
        self.send(Task::Worker { clock, owner, written, took: began.elapsed() });
    }
}

impl Task {
    /// Carries it out; gives what the coordinator is to be told. `part` takes the next rows out of the tables.
    pub(crate) fn run(
        self,
        directory: &Directory,
        owner: Owner,
        mut part: impl FnMut(&mut Rests) -> Option<Part>,
    ) -> ToCoordinator {
        let (began, mut rests) = (Instant::now(), Rests::new());
        let (clock, owner, outcome, before) = match self {
            Self::Worker { clock, owner, written, took } => {
                (clock, owner, written.and_then(|(file, saved)| synced(directory, file, saved)), took)
            }
            Self::Tables(clock) => {
                (clock, owner, save_tables(directory, clock, owner, || part(&mut rests)), Duration::ZERO)
            }
        };
        let took = (before + began.elapsed()).saturating_sub(rests.taken).as_secs_f64();
        ToCoordinator::Saved { clock, owner, outcome: outcome.map_err(|error| error.to_string()), took }
    }
}

/// Writes the tables that `part` takes rows out of.
fn save_tables(
    directory: &Directory,
    clock: Clock,
    owner: Owner,
    mut part: impl FnMut() -> Option<Part>,
) -> Result<SavedFile, CheckpointError> {
    let mut writer = directory.create(clock, owner, 0)?;
    let unwritten = |source| CheckpointError::Write { path: directory.path.clone(), source };
    while let Some(part) = part() {
        writer.part(part).map_err(unwritten)?;
    }
    let (file, saved) = writer.finish().map_err(unwritten)?;
    synced(directory, file, saved)
}

fn synced(directory: &Directory, file: File, saved: SavedFile) -> Result<SavedFile, CheckpointError> {
    let unwritten = |source| CheckpointError::Write { path: directory.path.clone(), source };
    file.sync_all().map(|()| saved).map_err(unwritten)
}

/// Gives whole checkpoints their names, in the process that started the job.
pub(crate) struct Publisher {
    pub(crate) directory: Directory,
    /// Other jobs are kept out for as long as there is a publisher.
    _lock: Lock,
    keep: usize,
    /// What has been said, and need not be said again while it stays so.
    said: Option<Discriminant<Trouble>>,
    /// How many checkpoints were saved and how many not, and the newest of those that were.
    saved: u32,
    unsaved: u32,
    newest: Option<Clock>,
}

/// What can go wrong with a checkpoint, and is no reason to end the job.
#[derive(Debug, Error)]
enum Trouble {
    #[error("the checkpoint of {clock} was not saved, training goes on: {reason}")]
    NotSaved { clock: Clock, reason: String },
    #[error("the checkpoint of {clock} was saved, but one that is no longer kept remains: {source}")]
    NotRemoved { clock: Clock, source: CheckpointError },
}

impl Publisher {
    pub(super) fn new(directory: Directory, lock: Lock, keep: usize) -> Self {
        Self { directory, _lock: lock, keep, said: None, saved: 0, unsaved: 0, newest: None }
    }

    /// Ends a checkpoint. What goes wrong is said once, until it goes well again.
    pub(crate) fn conclude(&mut self, whole: &Whole) {
        let trouble = self.settle(whole).err();
        if let Some(Trouble::NotSaved { .. }) = trouble {
            self.unsaved += 1;
        } else {
            (self.saved, self.newest) = (self.saved + 1, Some(whole.clock));
        }
        let kind = trouble.as_ref().map(mem::discriminant);
        if let Some(trouble) = trouble.filter(|_| kind != self.said) {
            say(&format!("hemiola: {trouble}"));
        }
        self.said = kind;
    }

    fn settle(&self, whole: &Whole) -> Result<(), Trouble> {
        let clock = whole.clock;
        let published = match &whole.files {
            Ok(files) => self.directory.publish(whole, files).map_err(|error| error.to_string()),
            Err(reason) => Err(reason.clone()),
        };
        if let Err(reason) = published {
            self.directory.discard(clock);
            return Err(Trouble::NotSaved { clock, reason });
        }
        self.directory.prune(clock, self.keep).map_err(|source| Trouble::NotRemoved { clock, source })
    }

    /// What is left to say when the job is over, if something was not saved.
    fn balance(&self) -> Option<String> {
        let Self { saved, unsaved, newest, .. } = self;
        let newest = newest.map_or(String::new(), |clock| format!("; the newest is of {clock}"));
        (*unsaved > 0).then(|| format!("checkpoints: {saved} saved, {unsaved} not{newest}"))
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.balance().iter().for_each(|balance| say(&format!("hemiola: {balance}")));
    }
}

#[cfg(test)]
mod tests {
    use super::super::directory::{Facts, list};
    use super::*;
    use hemiola_core::{Job, TableSchema};
    use std::fs;
    use std::path::Path;

    #[test]
    fn a_save_takes_its_share_of_a_processor_while_others_are_busy_and_all_of_it_otherwise() {
        let millis = Duration::from_millis;
        let mut rests = Rests::new();
        rests.last = Spent { at: Instant::now(), here: Duration::ZERO, process: Duration::ZERO };
        // So much time goes by, in which so much goes to the thread and to others.
        let mut due = |went_by: u64, here: u64, others: u64| {
            let Spent { at, here: before, process } = rests.last;
            let here = millis(here);
            rests.due(Spent { at: at + millis(went_by), here: before + here, process: process + here + millis(others) })
        };
        assert_eq!(due(4, 4, 8), millis(60), "a sixteenth of 64");
        assert_eq!(due(20, 0, 20), millis(40), "what is left of it");
        assert_eq!(due(20, 0, 1), Duration::ZERO, "nobody was busy");
        assert_eq!(due(20, 0, 20), Duration::ZERO, "nor is it made up for");
        assert_eq!(due(100, 2, 90), Duration::ZERO, "the disk was slow");
        assert_eq!(due(2, 2, 2), millis(30));
    }

    #[test]
    fn what_was_not_saved_is_counted_to_the_end() {
        let path = std::env::temp_dir().join(format!("hemiola-unsaved-{}", std::process::id()));
        let mut publisher = publisher(&path);
        let mut conclude = |clock, reason: Option<&str>| {
            publisher.directory.create(Clock(clock), Owner::Worker(WorkerId(0)), 0).expect("a file");
            let files = reason.map_or(Ok(Vec::new()), |reason| Err(reason.to_owned()));
            publisher.conclude(&Whole { clock: Clock(clock), files, seconds: 1.0 });
            publisher.balance()
        };
        let full = Some("the disk is full");
        assert_eq!(conclude(1, full).as_deref(), Some("checkpoints: 0 saved, 1 not"));
        assert_eq!(conclude(2, None).as_deref(), Some("checkpoints: 1 saved, 1 not; the newest is of clock 2"));
        assert_eq!(conclude(3, full).as_deref(), Some("checkpoints: 1 saved, 2 not; the newest is of clock 2"));
        fs::remove_dir_all(&path).expect("just made");
    }

    /// That of a job with one worker, which keeps one checkpoint.
    fn publisher(path: &Path) -> Publisher {
        let tables = vec![TableSchema::dense("t", 1, 1)];
        let job = Job { tables, workers_per_client: vec![1], shards: 1, budget: None };
        let directory = Directory { path: path.to_owned(), facts: Facts::new(&job, &[]) };
        let lock = directory.prepare(None).expect("a folder for temporary files");
        Publisher::new(directory, lock, 1)
    }

    #[test]
    fn a_checkpoint_is_saved_even_if_others_cannot_be_removed() {
        let path = std::env::temp_dir().join(format!("hemiola-remains-{}", std::process::id()));
        let publisher = publisher(&path);
        let settle = |clock| {
            publisher.directory.create(Clock(clock), Owner::Worker(WorkerId(0)), 0).expect("a file");
            publisher.settle(&Whole { clock: Clock(clock), files: Ok(Vec::new()), seconds: 1.0 })
        };
        let kept = || list(&path).expect("a folder").len();
        settle(9).expect("nothing is wrong yet");
        // Of a run that this one does not continue; this run is writing that clock again meanwhile.
        publisher.directory.create(Clock(9), Owner::Worker(WorkerId(0)), 0).expect("a file");
        settle(2).expect("what is being written is not in the way");
        assert!(path.join("clock-0000000009.partial/worker-0000.state").exists());
        assert_eq!(kept(), 1);
        fs::create_dir_all(path.join("clock-0000000002.removed/in the way")).expect("a folder");
        let sentence = settle(4).expect_err("it cannot be removed").to_string();
        let expected = format!(
            "the checkpoint of clock 4 was saved, but one that is no longer kept remains: \
             {}/clock-0000000002: cannot be removed: ",
            path.display()
        );
        assert!(sentence.starts_with(&expected), "{sentence}");
        settle(6).expect_err("nor later");
        let remain: Vec<_> = list(&path).expect("a folder").into_iter().map(|(path, _)| path).collect();
        let expected = ["clock-0000000002", "clock-0000000006"].map(|name| path.join(name));
        assert_eq!(remain, expected, "those that can be removed are");
        fs::remove_dir_all(path.join("clock-0000000002.removed")).expect("just made");
        settle(8).expect("nothing is in the way");
        assert_eq!(kept(), 1);
        fs::remove_dir_all(&path).expect("just made");
    }
}
