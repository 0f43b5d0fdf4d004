//! A directory of checkpoints: writing them, finding the newest good one, and checking them.

use super::error::CheckpointError;
use super::file::{self, FileReader, FileWriter, Head};
use hemiola_core::checkpoint::{Owner, SavedFile, Whole};
use hemiola_core::codec::Message;
use hemiola_core::snapshot::{Part, PartError};
use hemiola_core::{Clock, Job, ShardId, TableSchema, WorkerId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub(super) const MANIFEST: &str = "manifest.json";
const FORMAT: &str = "hemiola-checkpoint";
const VERSION: u32 = 2;
const PARTIAL: &str = ".partial";
/// How the name of a checkpoint ends while it is being removed. One that is being written may be of the same clock.
const REMOVED: &str = ".removed";
/// The file that the training which saves in a directory has locked. It stays when the training has ended: to remove it
/// would take it from under one that is about to lock it.
const LOCK: &str = ".lock";

/// What `manifest.json` says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    format: String,
    version: u32,
    /// Every update of an earlier clock is in it, and no other.
    pub clock: u32,
    /// Tells jobs apart: the checksum of what must be the same in a job that goes on.
    pub job: String,
    /// What must be the same, by name.
    pub identity: Vec<(String, String)>,
    /// The tables.
    pub tables: Vec<TableEntry>,
    /// How many workers the job has.
    pub workers: u32,
    /// How many servers the job had.
    pub servers: u32,
    /// How long it took.
    pub seconds: f64,
    /// The files.
    pub files: Vec<FileEntry>,
}

impl Manifest {
    /// One of the things that must be the same.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.identity.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

/// A table as a manifest has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableEntry {
    /// The name.
    pub name: String,
    /// What a row is.
    pub kind: String,
    /// How many rows there are, where the table has a size.
    pub rows: Option<u64>,
    /// The name of its stored procedure.
    pub procedure: Option<String>,
}

impl TableEntry {
    fn new(table: &TableSchema) -> Self {
        // Its numbers may be others in a job that goes on.
        let name = |text: String| text.split([' ', '(']).next().unwrap_or_default().to_owned();
        Self {
            name: table.name.clone(),
            kind: format!("{:?}", table.kind),
            rows: table.rows,
            procedure: table.procedure.as_ref().map(|procedure| name(format!("{procedure:?}"))),
        }
    }
}

impl fmt::Display for TableEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' of ", self.name)?;
        if let Some(rows) = self.rows {
            write!(f, "{rows} ")?;
        }
        write!(f, "rows of {}", self.kind)?;
        self.procedure.iter().try_for_each(|procedure| write!(f, " with {procedure}"))
    }
}

/// A file as a manifest has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// The name.
    pub name: String,
    /// The length.
    pub bytes: u64,
    /// The checksum of the heads of its frames.
    pub checksum: String,
}

/// How the text of a manifest goes on after what it says: with the checksum of that.
const SEAL: &str = ",\n  \"checksum\": ";
const END: &str = "\n}";

/// Adds its checksum to the text of a manifest.
fn seal(text: &str) -> String {
    let says = text.strip_suffix(END).unwrap_or(text);
    format!("{says}{SEAL}\"{:08x}\"{END}", crc32fast::hash(says.as_bytes()))
}

/// Whether nothing of the text of a manifest has been changed.
fn is_sealed(text: &str) -> bool {
    text.rfind(SEAL).is_some_and(|at| seal(&text[..at]) == text)
}

/// What a checkpoint and a job that goes on from it have in common.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    identity: Vec<(String, String)>,
    tables: Vec<TableEntry>,
    workers: u32,
    servers: u32,
    fingerprint: u32,
}

impl Facts {
    pub(crate) fn new(job: &Job, identity: &[(String, String)]) -> Self {
        let tables: Vec<TableEntry> = job.tables.iter().map(TableEntry::new).collect();
        let text = serde_json::to_vec(&(identity, &tables, job.workers())).expect("plain data can be encoded");
        let fingerprint = crc32fast::hash(&text);
        Self { identity: identity.to_vec(), tables, workers: job.workers(), servers: job.shards, fingerprint }
    }
}

/// A checkpoint that is whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Its directory.
    pub path: PathBuf,
    /// What its manifest says.
    pub manifest: Manifest,
}

impl Checkpoint {
    /// Reads the manifest of the checkpoint at `path`.
    ///
    /// # Errors
    /// If there is none, or it cannot be right.
    pub fn open(path: &Path) -> Result<Self, CheckpointError> {
        let file = path.join(MANIFEST);
        let damaged = |reason: String| CheckpointError::Damaged { path: file.clone(), reason };
        let text = match fs::read_to_string(&file) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Err(CheckpointError::NotACheckpoint { path: path.to_owned() });
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(damaged("it is no text".to_owned()));
            }
            text => text.map_err(|source| CheckpointError::Read { path: file.clone(), source })?,
        };
        let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if value["format"] != FORMAT {
            return Err(CheckpointError::NotACheckpoint { path: path.to_owned() });
        }
        let version = value["version"].as_u64().unwrap_or(0);
        if version != u64::from(VERSION) {
            return Err(CheckpointError::Version { path: file.clone(), version, expected: VERSION });
        }
        if !is_sealed(&text) {
            return Err(damaged("its checksum does not fit what it says".to_owned()));
        }
        let manifest: Manifest = serde_json::from_value(value).map_err(|error| damaged(error.to_string()))?;
        if clock_of(path).is_some_and(|clock| clock != manifest.clock) {
            return Err(CheckpointError::MixedUp {
                path: file.clone(),
                found: format!("clock {}", manifest.clock),
                expected: format!("clock {}", clock_of(path).unwrap_or_default()),
            });
        }
        Ok(Self { path: path.to_owned(), manifest })
    }

    /// The clock of which it is.
    #[must_use]
    pub fn clock(&self) -> Clock {
        Clock(self.manifest.clock)
    }

    /// How many bytes its files have.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.manifest.files.iter().map(|file| file.bytes).sum()
    }

    /// When its last file, the manifest, was written, as far as the file system knows.
    #[must_use]
    pub fn written(&self) -> Option<SystemTime> {
        fs::metadata(self.path.join(MANIFEST)).and_then(|metadata| metadata.modified()).ok()
    }

    /// Reads every file and checks that it is what was written.
    ///
    /// # Errors
    /// The first thing found wrong.
    pub fn verify(&self) -> Result<(), CheckpointError> {
        self.owners().try_for_each(|owner| self.read(owner, |_, _| Ok(())).map(drop))
    }

    fn owners(&self) -> impl Iterator<Item = Owner> + use<> {
        let shards = (0..self.manifest.servers).map(|shard| Owner::Shard(ShardId(shard)));
        shards.chain((0..self.manifest.workers).map(|worker| Owner::Worker(WorkerId(worker))))
    }

    /// Reads one file; gives what its head says.
    fn read(
        &self,
        owner: Owner,
        mut take: impl FnMut(&Path, Message) -> Result<(), CheckpointError>,
    ) -> Result<Head, CheckpointError> {
        let manifest = self.path.join(MANIFEST);
        let damaged = |reason: String| CheckpointError::Damaged { path: manifest.clone(), reason };
        let name = file::name(owner);
        let hex = |text: &str| u32::from_str_radix(text, 16).ok();
        let entry = self.manifest.files.iter().find(|entry| entry.name == name);
        let entry = entry.ok_or_else(|| damaged(format!("it does not name {name}")))?;
        let checksum = hex(&entry.checksum).ok_or_else(|| damaged(format!("the checksum of {name} is no number")))?;
        let job = hex(&self.manifest.job).ok_or_else(|| damaged("the job's checksum is no number".to_owned()))?;
        let head = Head { job, clock: self.clock(), owner, reports: 0 };
        let expected = SavedFile { owner, bytes: entry.bytes, checksum };
        let mut reader = FileReader::open(self.path.join(&name), &expected, &head)?;
        while let Some(message) = reader.next()? {
            take(reader.path(), message)?;
        }
        Ok(reader.head)
    }

    /// Gives every part of every shard to `restore`.
    pub(crate) fn restore(
        &self,
        mut restore: impl FnMut(&Part) -> Result<(), PartError>,
    ) -> Result<(), CheckpointError> {
        let mut take = |path: &Path, message: Message| {
            let damaged = |reason: String| CheckpointError::Damaged { path: path.to_owned(), reason };
            match &message {
                Message::Part(part) => restore(part).map_err(|error| damaged(error.to_string())),
                _ => Err(damaged("it holds something else than rows".to_owned())),
            }
        };
        let shards = self.owners().filter(|owner| matches!(owner, Owner::Shard(_)));
        shards.into_iter().try_for_each(|owner| self.read(owner, &mut take).map(drop))
    }

    /// What a worker handed in, and how many reports it had made.
    pub(crate) fn worker(&self, worker: WorkerId) -> Result<(u32, Vec<u8>), CheckpointError> {
        let mut state = Vec::new();
        let head = self.read(Owner::Worker(worker), |path, message| match message {
            Message::Control(bytes) => {
                state.extend_from_slice(&bytes);
                Ok(())
            }
            _ => Err(CheckpointError::Damaged { path: path.to_owned(), reason: "it holds rows".to_owned() }),
        })?;
        Ok((head.reports, state))
    }

    /// Whether a job can go on from here.
    pub(crate) fn check(&self, facts: &Facts) -> Result<(), CheckpointError> {
        let differs = |what: &str, then: String, now: String| {
            let path = self.path.clone();
            Err(CheckpointError::Differs { path, what: what.to_owned(), then, now })
        };
        let Manifest { identity, tables, workers, .. } = &self.manifest;
        if *workers != facts.workers {
            return Err(CheckpointError::Workers { path: self.path.clone(), then: *workers, now: facts.workers });
        }
        let absent = || "nothing".to_owned();
        let value = |list: &[(String, String)], name: &str| {
            list.iter().find(|(other, _)| other == name).map_or_else(absent, |(_, value)| value.clone())
        };
        for (name, _) in facts.identity.iter().chain(identity) {
            let (then, now) = (value(identity, name), value(&facts.identity, name));
            if then != now {
                return differs(name, then, now);
            }
        }
        for at in 0..tables.len().max(facts.tables.len()) {
            let told = |tables: &[TableEntry]| tables.get(at).map_or_else(absent, TableEntry::to_string);
            if tables.get(at) != facts.tables.get(at) {
                return differs(&format!("as table {at}"), told(tables), told(&facts.tables));
            }
        }
        Ok(())
    }
}

/// The directory of a checkpoint, and its manifest or why that cannot be read.
pub type Listed = (PathBuf, Result<Checkpoint, CheckpointError>);

/// The checkpoints in `directory`, oldest first, each as far as its manifest can be read.
///
/// # Errors
/// If the directory cannot be read.
pub fn list(directory: &Path) -> Result<Vec<Listed>, CheckpointError> {
    let found = entries(directory).map_err(|source| CheckpointError::Read { path: directory.to_owned(), source })?;
    let mut clocks: Vec<(u32, PathBuf)> = found.into_iter().filter_map(|path| Some((clock_of(&path)?, path))).collect();
    clocks.sort();
    Ok(clocks.into_iter().map(|(_, path)| (path.clone(), Checkpoint::open(&path))).collect())
}

/// The checkpoint that `path` is, whatever it is called, or those in the directory that it is, oldest first.
///
/// # Errors
/// If it is no checkpoint and cannot be read as a directory.
pub fn find(path: &Path) -> Result<Vec<Listed>, CheckpointError> {
    // '.' has no name to tell the clock by, and no parent.
    let named = path.file_name().is_some();
    let one = if named { path.to_owned() } else { fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()) };
    match Checkpoint::open(&one) {
        Err(CheckpointError::NotACheckpoint { .. }) if clock_of(&one).is_none() => list(path),
        opened => Ok(vec![(one, opened)]),
    }
}

/// The newest checkpoint of a directory, or the one that `path` is, with every file checked.
///
/// # Errors
/// If there is none or it is damaged; then the sentence names the newest good one before it.
pub fn choose(path: &Path) -> Result<Checkpoint, CheckpointError> {
    let newest = find(path)?.pop();
    let (chosen, opened) = newest.ok_or_else(|| CheckpointError::None { path: path.to_owned() })?;
    let good = |checkpoint: Checkpoint| checkpoint.verify().map(|()| checkpoint);
    opened.and_then(good).map_err(|error| {
        // One that is called otherwise lies apart from those before it.
        let Some(clock) = clock_of(&chosen) else { return error };
        let source = Box::new(error);
        let before = list(parent(&chosen)).unwrap_or_default().into_iter().rev();
        let mut before = before.filter(|(path, _)| clock_of(path) < Some(clock));
        match before.find_map(|(path, opened)| opened.and_then(good).is_ok().then_some(path)) {
            Some(offer) => CheckpointError::Offer { source, offer },
            None => CheckpointError::NoOffer { source },
        }
    })
}

/// The directory that a checkpoint is in.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect()
}

/// The clock of a checkpoint, from its name.
fn clock_of(path: &Path) -> Option<u32> {
    let digits = path.file_name()?.to_str()?.strip_prefix("clock-")?;
    (digits.len() == 10).then(|| digits.parse().ok()).flatten()
}

/// Whether it is what a crash has left of a checkpoint that was being written or removed.
fn is_leftover(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.strip_suffix(PARTIAL).or_else(|| name.strip_suffix(REMOVED));
    name.is_some_and(|name| clock_of(Path::new(name)).is_some())
}

/// Removes a checkpoint, which is none from the beginning, should the removal end halfway.
fn remove(path: &Path) -> io::Result<()> {
    let removed = path.with_extension(&REMOVED[1..]);
    fs::rename(path, &removed)?;
    fs::remove_dir_all(&removed)
}

/// Keeps other jobs from saving in a directory. It belongs to the process that started the job and ends with it, however
/// that ends: no other process of the job has the file open.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// Where a job's checkpoints go.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    pub(crate) facts: Facts,
}

impl Directory {
    fn final_path(&self, clock: Clock) -> PathBuf {
        self.path.join(format!("clock-{:010}", clock.0))
    }

    fn partial_path(&self, clock: Clock) -> PathBuf {
        self.path.join(format!("clock-{:010}{PARTIAL}", clock.0))
    }

    /// Makes the directory, finds out whether it can be written to, and removes what a crash has left behind. One that
    /// holds checkpoints is refused unless the job goes on from one of them, and one in which another job is saving.
    /// Others are kept out until the lock that it gives is dropped.
    pub(super) fn prepare(&self, resumed: Option<&Checkpoint>) -> Result<Lock, CheckpointError> {
        let write = |source| CheckpointError::Write { path: self.path.clone(), source };
        fs::create_dir_all(&self.path).map_err(write)?;
        let lock = self.lock()?;
        let same = |checkpoint: &Checkpoint| {
            let parent = fs::canonicalize(parent(&checkpoint.path));
            parent.is_ok_and(|parent| fs::canonicalize(&self.path).is_ok_and(|path| path == parent))
        };
        if !resumed.is_some_and(same)
            && let Some((newest, _)) = list(&self.path)?.pop()
        {
            let clock = clock_of(&newest).unwrap_or_default();
            return Err(CheckpointError::InUse { path: self.path.clone(), clock });
        }
        for leftover in entries(&self.path).map_err(write)?.into_iter().filter(|path| is_leftover(path)) {
            fs::remove_dir_all(leftover).map_err(write)?;
        }
        let probe = self.partial_path(Clock(0));
        fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe)).map_err(write)?;
        Ok(lock)
    }

    fn lock(&self) -> Result<Lock, CheckpointError> {
        let file = File::create(self.path.join(LOCK));
        let file = file.map_err(|source| CheckpointError::Write { path: self.path.clone(), source })?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(CheckpointError::Locked { path: self.path.clone() }),
            // A file system without locks is no reason not to save there.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Lock { _file: file }),
        }
    }

    /// Begins a file of a checkpoint.
    pub(crate) fn create(&self, clock: Clock, owner: Owner, reports: u32) -> Result<FileWriter, CheckpointError> {
        let partial = self.partial_path(clock);
        let path = partial.join(file::name(owner));
        let head = Head { job: self.facts.fingerprint, clock, owner, reports };
        let created = match fs::create_dir(&partial) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => FileWriter::create(&path, &head),
        };
        created.map_err(|source| CheckpointError::Write { path, source })
    }

    /// Gives a checkpoint its name once all of its files are on the disk.
    pub(super) fn publish(&self, whole: &Whole, files: &[SavedFile]) -> Result<(), CheckpointError> {
        let (partial, path) = (self.partial_path(whole.clock), self.final_path(whole.clock));
        let entry = |file: &SavedFile| FileEntry {
            name: file::name(file.owner),
            bytes: file.bytes,
            checksum: format!("{:08x}", file.checksum),
        };
        let manifest = Manifest {
            format: FORMAT.to_owned(),
            version: VERSION,
            clock: whole.clock.0,
            job: format!("{:08x}", self.facts.fingerprint),
            identity: self.facts.identity.clone(),
            tables: self.facts.tables.clone(),
            workers: self.facts.workers,
            servers: self.facts.servers,
            seconds: whole.seconds,
            files: files.iter().map(entry).collect(),
        };
        let write = || {
            let text = serde_json::to_string_pretty(&manifest)?;
            let mut file = File::create(partial.join(MANIFEST))?;
            file.write_all(seal(&text).as_bytes())?;
            file.sync_all()?;
            File::open(&partial)?.sync_all()?;
            if path.exists() {
                remove(&path)?;
            }
            fs::rename(&partial, &path)?;
            File::open(&self.path)?.sync_all()
        };
        write().map_err(|source: io::Error| CheckpointError::Write { path: path.clone(), source })
    }

    /// Removes the checkpoints that are no longer to be kept: all but the newest, and newer ones of a run that this one
    /// does not continue. One that cannot be removed does not hold up the others.
    pub(super) fn prune(&self, newest: Clock, keep: usize) -> Result<(), CheckpointError> {
        let mut older: Vec<PathBuf> = Vec::new();
        let mut newer: Vec<PathBuf> = Vec::new();
        for (path, _) in list(&self.path)? {
            if clock_of(&path) > Some(newest.0) { newer.push(path) } else { older.push(path) }
        }
        older.truncate(older.len().saturating_sub(keep.max(1)));
        let removal = |path: PathBuf| remove(&path).map_err(|source| CheckpointError::Remove { path, source });
        let removed: Vec<Result<(), CheckpointError>> = newer.into_iter().chain(older).map(removal).collect();
        removed.into_iter().collect()
    }

    /// Removes what there is of a checkpoint that will not be whole.
    pub(crate) fn discard(&self, clock: Clock) {
        // Where it cannot be removed, the next run removes it.
        fs::remove_dir_all(self.partial_path(clock)).unwrap_or_default();
    }
}
