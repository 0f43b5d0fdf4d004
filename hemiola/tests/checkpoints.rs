//! Jobs that are killed and go on, and checkpoints that someone has tampered with.
//!
//! `HEMIOLA_MOMENTS=50` kills that many runs, each at a moment that follows from `HEMIOLA_SEED`.

use hemiola::checkpoint::{CheckpointError, Checkpoints, Every, choose, find, list};
use hemiola::procedure::{AdaGrad, Schedule, Sgd};
use hemiola::tcp::{Config, role};
use hemiola::{Consistency, Deployment, Error, Observation, Procedure, RowRef, TableId, TableSchema, Values, Worker};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const TABLE: TableId = TableId(0);
const ROWS: u64 = 50;
const CLOCKS: u32 = 60;
/// How many reports a worker may be ahead of the last that all have made.
const AHEAD: u32 = 5;

fn tables(consistency: Consistency) -> Vec<TableSchema> {
    vec![TableSchema { chunk_rows: Some(8), consistency, ..TableSchema::dense("t", ROWS, 2) }]
}

/// Every worker adds one to every row in every clock, and reads at the end when all have.
fn count(worker: &mut Worker, clocks: u32) -> Result<Vec<u8>, Error> {
    let rows: Vec<u64> = (0..ROWS).collect();
    // A report is made in every clock, so this is the first that a run which goes on makes.
    let first = worker.now()?.0;
    if let Some(state) = worker.resumed() {
        assert_eq!(state, first.to_le_bytes(), "a worker's state is of the checkpoint's clock");
    }
    while worker.now()?.0 < clocks {
        worker.get_row(TABLE, 5)?;
        worker.inc(TABLE, &rows, &Values::dense(2, vec![1.0; 2 * ROWS as usize]))?;
        worker.clock()?;
        if worker.checkpoint_due() {
            worker.save(&[&worker.now()?.0.to_le_bytes()])?;
        }
        let index = worker.report(&[1.0]);
        if index >= AHEAD + first {
            worker.totals(index - AHEAD)?;
        }
    }
    let all = clocks as f32 * worker.workers() as f32;
    let values = worker.get_latest(TABLE, &rows)?;
    let wrong = (0..rows.len()).find(|&row| values.row(row) != RowRef::Dense(&[all, all]));
    match wrong {
        None => Ok(b"every update once".to_vec()),
        Some(row) => Err(Error::program(format!("row {row} holds {:?}, not {all}", values.row(row)))),
    }
}

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// A folder of this test alone, which is gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hemiola-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for temporary files");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).expect("just made");
    }
}

/// The children of a process.
fn children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("a Linux machine").flatten();
    let is_child = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        after_name.split_whitespace().nth(1) == Some(&parent.to_string())
    };
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_child).collect()
}

/// Runs this test as a launcher until it has told of `reports` reports; then kills every process of the job, in an
/// order of chance. Without a number of reports it runs to its end, and gives what it wrote last.
fn launch(test: &str, folder: &Path, resume: bool, reports: Option<u64>, dice: &mut Dice) -> String {
    let mut command = Command::new(std::env::current_exe().expect("a test has a program"));
    command.args([test, "--exact", "--nocapture"]).env("TEST_FOLDER", folder).stdout(Stdio::piped());
    command.stdin(Stdio::piped()).env("TEST_RESUME", if resume { "yes" } else { "no" });
    let pause = reports.map_or(String::new(), |reports| reports.to_string());
    let mut launcher = command.env("TEST_PAUSE", pause).spawn().expect("it can be started");
    let mut lines = BufReader::new(launcher.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    if reports.is_none() {
        let last = lines.filter(|line| line.starts_with("outcome")).last().unwrap_or_default();
        assert!(launcher.wait().expect("our own child").success());
        return last;
    }
    let told = lines.find(|line| line == "paused" || line.starts_with("outcome"));
    assert_eq!(told.as_deref(), Some("paused"));
    let mut victims = children(launcher.id());
    assert_eq!(victims.len(), 4, "two servers and two worker processes");
    victims.insert(dice.below(5) as usize, launcher.id());
    for victim in victims {
        // A child may have ended by itself when its launcher was gone.
        Command::new("kill").args(["-9", &victim.to_string()]).stderr(Stdio::null()).status().expect("kill exists");
    }
    launcher.wait().expect("our own child");
    String::new()
}

/// What the launcher and the processes of a job do: stands still in the middle of it if it is to be killed there.
fn play(test: &str, consistency: Consistency) {
    let program = std::env::current_exe().expect("a test has a program").into();
    let command = Some(vec![program, test.into(), "--exact".into(), "--nocapture".into()]);
    let timeout = Duration::from_secs(120);
    let config = Config { processes: 2, servers: 2, command, timeout, ..Config::default() };
    let folder = PathBuf::from(std::env::var_os("TEST_FOLDER").expect("set by the test"));
    let mut checkpoints = Checkpoints::new(&folder, Every::Clocks(3));
    checkpoints.resume = (std::env::var("TEST_RESUME").as_deref() == Ok("yes")).then_some(folder);
    let pause: Option<u64> = std::env::var("TEST_PAUSE").ok().and_then(|text| text.parse().ok());
    let mut told = 0;
    let mut observer = |_: &Observation| {
        told += 1;
        if Some(told) == pause {
            say("paused");
            std::io::stdin().read_to_end(&mut Vec::new()).expect("whoever waits for this kills us");
        }
    };
    let program = |worker: &mut Worker| count(worker, CLOCKS);
    let outcome =
        hemiola::run_saved(&Deployment::Tcp(config), &tables(consistency), &checkpoints, &program, &mut observer);
    say(&format!("outcome {:?}", outcome.map(|outcome| String::from_utf8_lossy(&outcome.results[0]).into_owned())));
}

/// Writes a line for whoever started this process. Where there is one core, the test's name stands unfinished before it.
fn say(line: &str) {
    writeln!(std::io::stdout(), "\n{line}").expect("the test reads it");
}

fn survives_kills(test: &str, consistency: Consistency) {
    if std::env::var_os("TEST_FOLDER").is_some() || role().is_some() {
        return play(test, consistency);
    }
    let (seed, moments) = (number("HEMIOLA_SEED", 1), number("HEMIOLA_MOMENTS", 5));
    for moment in 0..moments {
        let mut dice = Dice(seed.wrapping_mul(1000).wrapping_add(moment));
        let folder = Folder::new(&format!("{test}-{moment}"));
        let reports = 1 + dice.below(u64::from(CLOCKS) - 2);
        eprintln!("seed {seed}, moment {moment}: killed after {reports} reports");
        launch(test, &folder.0, false, Some(reports), &mut dice);
        let resume = !list(&folder.0).expect("a folder").is_empty();
        let outcome = launch(test, &folder.0, resume, None, &mut dice);
        assert_eq!(outcome, "outcome Ok(\"every update once\")", "seed {seed}, moment {moment}");
        let partial = fs::read_dir(&folder.0).expect("a folder").flatten();
        let partial = partial.filter(|entry| entry.file_name().to_string_lossy().ends_with(".partial")).count();
        assert_eq!(partial, 0, "nothing is left of what a kill cut short");
    }
}

#[test]
fn a_killed_run_goes_on_without_a_missing_or_doubled_update() {
    let test = "a_killed_run_goes_on_without_a_missing_or_doubled_update";
    survives_kills(test, Consistency::Essp { staleness: 2 });
}

/// A counting job on threads, saved at clocks 4 and 8.
fn saved(folder: &Path, identity: &str) -> Checkpoints {
    let checkpoints = Checkpoints {
        identity: vec![("colour".to_owned(), identity.to_owned())],
        ..Checkpoints::new(folder, Every::Clocks(4))
    };
    // Two checkpoints are there only if each is whole before the next is due, which the disk decides.
    for clocks in [4, 8] {
        let resume = (clocks == 8).then(|| folder.to_owned());
        run(&Checkpoints { resume, ..checkpoints.clone() }, 2, clocks).expect("nothing is wrong yet");
    }
    assert_eq!(list(folder).expect("a folder").len(), 2);
    checkpoints
}

fn run(checkpoints: &Checkpoints, workers: u32, clocks: u32) -> Result<Vec<Vec<u8>>, Error> {
    let program = |worker: &mut Worker| {
        drop(worker.resumed());
        while worker.now()?.0 < clocks {
            worker.inc(TABLE, &[3, 40], &Values::dense(2, vec![1.0; 4]))?;
            worker.clock()?;
            if worker.checkpoint_due() {
                worker.save(&[b"some", b"thing"])?;
            }
        }
        let sum = format!("{:?}", worker.get_latest(TABLE, &[40])?.row(0));
        Ok(sum.into_bytes())
    };
    let tables = tables(Consistency::Essp { staleness: 1 });
    hemiola::run_saved(&Deployment::threads(workers), &tables, checkpoints, &program, &mut |_| {})
        .map(|outcome| outcome.results)
}

#[test]
fn a_damaged_checkpoint_is_refused_by_name_and_the_one_before_is_offered() {
    let folder = Folder::new("damaged");
    saved(&folder.0.join("here"), "red");
    saved(&folder.0.join("other"), "blue");
    let newest = folder.0.join("here/clock-0000000008");
    let older = folder.0.join("here/clock-0000000004");
    let names: Vec<String> =
        fs::read_dir(&newest).expect("a folder").flatten().map(|e| e.file_name().to_string_lossy().into()).collect();
    assert_eq!(names.len(), 4, "a manifest, a shard and two workers: {names:?}");
    for name in &names {
        let path = newest.join(name);
        let good = fs::read(&path).expect("just written");
        let mut bad: Vec<Option<Vec<u8>>> = vec![None, Some(Vec::new()), Some(good[..good.len() - 1].to_vec())];
        let somewhere = vec![0, good.len() / 3, good.len() / 2, good.len() - 9];
        for at in if name == "manifest.json" { (0..good.len()).collect() } else { somewhere } {
            let mut flipped = good.clone();
            flipped[at] ^= 0x10;
            bad.push(Some(flipped));
        }
        for from in [older.join(name), folder.0.join("other/clock-0000000008").join(name)] {
            bad.push(Some(fs::read(from).expect("just written")));
        }
        bad.push(Some([&good[..], &good].concat()));
        for bytes in bad {
            match &bytes {
                Some(bytes) => fs::write(&path, bytes).expect("a file"),
                None => fs::remove_file(&path).expect("a file"),
            }
            for path in [&folder.0.join("here"), &newest] {
                match choose(path) {
                    Err(CheckpointError::Offer { source, offer }) => {
                        assert_eq!(offer, older);
                        assert!(source.to_string().contains("clock-0000000008"), "{source}");
                    }
                    other => panic!("{name} with {:?} bytes: {other:?}", bytes.map(|bytes| bytes.len())),
                }
            }
        }
        fs::write(&path, &good).expect("a file");
    }
    let (one, other) = (newest.join("worker-0000.state"), newest.join("worker-0001.state"));
    fs::copy(&one, &other).expect("a file");
    let sentence = choose(&newest).expect_err("mixed up").to_string();
    assert!(
        sentence.contains("worker-0001.state: is of worker 0 at clock 8, and belongs to worker 1 at clock 8;"),
        "{sentence}"
    );
    assert!(sentence.ends_with(&older.display().to_string()), "{sentence}");
}

#[test]
fn a_checkpoint_may_be_called_otherwise() {
    let folder = Folder::new("renamed");
    let checkpoints = saved(&folder.0.join("here"), "red");
    let copy = folder.0.join("copy");
    fs::rename(folder.0.join("here/clock-0000000004"), &copy).expect("just saved");
    assert_eq!(choose(&copy).expect("a good one").path, copy);
    let nameless = folder.0.join("here/clock-0000000008/..");
    assert_eq!(find(&nameless).expect("a folder").len(), 1, "what is there, not where it is");
    let elsewhere = Checkpoints { directory: folder.0.join("there"), resume: Some(copy.clone()), ..checkpoints };
    assert_eq!(run(&elsewhere, 2, 8).expect("it goes on"), vec![b"Dense([16.0, 16.0])".to_vec(); 2]);
    fs::write(copy.join("manifest.json"), "{").expect("a file");
    let sentence = choose(&copy).expect_err("a bad one").to_string();
    assert!(sentence.starts_with(&format!("{}/manifest.json: is damaged: EOF", copy.display())), "{sentence}");
    assert!(!sentence.contains("before it"), "nothing lies before a copy: {sentence}");
}

#[test]
fn another_job_is_told_what_differs() {
    let folder = Folder::new("differs");
    let checkpoints = saved(&folder.0, "red");
    let resume = |identity: &str, workers| {
        let identity = vec![("colour".to_owned(), identity.to_owned())];
        run(&Checkpoints { identity, resume: Some(folder.0.clone()), ..checkpoints.clone() }, workers, 9)
    };
    let newest = folder.0.join("clock-0000000008");
    let newest = newest.display();
    assert_eq!(
        resume("blue", 2).expect_err("another colour").to_string(),
        format!("{newest}: was made with colour red, and this job has colour blue")
    );
    assert_eq!(
        resume("red", 3).expect_err("more workers").to_string(),
        format!("{newest}: was made by 2 workers, and this job has 3; it can go on only with as many")
    );
    assert_eq!(
        run(&checkpoints, 2, 9).expect_err("not resumed").to_string(),
        format!(
            "{}: already holds checkpoints, the newest of clock 8; resume from there or give another directory",
            folder.0.display()
        )
    );
    assert_eq!(resume("red", 2).expect("the same"), vec![b"Dense([18.0, 18.0])".to_vec(); 2]);
}

#[test]
fn two_jobs_do_not_save_in_one_directory() {
    let folder = Folder::new("locked");
    let checkpoints = saved(&folder.0, "red");
    let resuming = Checkpoints { resume: Some(folder.0.clone()), ..checkpoints.clone() };
    let first = |worker: &mut Worker| {
        drop(worker.resumed());
        assert_eq!(list(&folder.0).expect("whoever looks needs no lock").len(), 2);
        let refused = [&checkpoints, &resuming].map(|second| run(second, 2, 12).expect_err("not now").to_string());
        let sentence = "another training is saving there; wait until it has ended or give another directory";
        assert_eq!(refused, [(); 2].map(|()| format!("{}: {sentence}", folder.0.display())));
        Ok(Vec::new())
    };
    let tables = tables(Consistency::Essp { staleness: 1 });
    hemiola::run_saved(&Deployment::threads(2), &tables, &resuming, &first, &mut |_| {}).expect("it goes on");
    run(&resuming, 2, 12).expect("the lock went with the first");
}

#[test]
fn what_a_procedure_kept_is_not_taken_for_rows_or_for_what_another_kept() {
    let folder = Folder::new("procedures");
    let run = |procedure: Option<Arc<dyn Procedure>>, resume: bool| {
        let path = folder.0.clone();
        let checkpoints =
            Checkpoints { resume: resume.then(|| path.clone()), ..Checkpoints::new(&path, Every::Clocks(1)) };
        let tables = [TableSchema { procedure, read_my_writes: false, ..TableSchema::dense("weights", 3, 2) }];
        let program = |worker: &mut Worker| {
            drop(worker.resumed());
            worker.inc_row(TABLE, 0, &[1.0, 1.0])?;
            worker.clock()?;
            if worker.checkpoint_due() {
                worker.save(&[])?;
            }
            Ok(Vec::new())
        };
        let outcome = hemiola::run_saved(&Deployment::threads(1), &tables, &checkpoints, &program, &mut |_| {});
        outcome.map(drop).map_err(|error| error.to_string().replace(&path.display().to_string(), "there"))
    };
    let ada_grad = |rate| -> Option<Arc<dyn Procedure>> { Some(Arc::new(AdaGrad { rate })) };
    assert_eq!(run(ada_grad(0.1), false), Ok(()));
    let refused = |procedure: Option<Arc<dyn Procedure>>, with: &str| {
        let table = "as table 0 'weights' of 3 rows of Dense { width: 2 }";
        let sentence =
            format!("there/clock-0000000001: was made with {table} with AdaGrad, and this job has {table}{with}");
        assert_eq!(run(procedure, true), Err(sentence));
    };
    refused(None, "");
    refused(Some(Arc::new(Sgd { rate: 0.1, schedule: Schedule::Constant })), " with Sgd");
    assert_eq!(run(ada_grad(0.2), true), Ok(()), "another rate will do");
}

#[test]
fn a_disk_that_takes_nothing_ends_nothing() {
    let folder = Folder::new("full");
    let inside = folder.0.join("inside");
    let checkpoints = Checkpoints::new(&inside, Every::Clocks(2));
    let program = |worker: &mut Worker| {
        if worker.id().0 == 0 {
            fs::remove_dir_all(&inside).expect("it was made at the start");
            fs::write(&inside, "in the way").expect("a file");
        }
        for _ in 0..6 {
            worker.inc_row(TABLE, 0, &[1.0, 1.0])?;
            worker.clock()?;
            if worker.checkpoint_due() {
                worker.save(&[])?;
            }
        }
        Ok(format!("{:?}", worker.get_latest(TABLE, &[0])?.row(0)).into_bytes())
    };
    let tables = tables(Consistency::Bsp);
    let outcome = hemiola::run_saved(&Deployment::threads(2), &tables, &checkpoints, &program, &mut |_| {});
    assert_eq!(outcome.expect("it goes on").results[0], b"Dense([12.0, 12.0])");
    let again = hemiola::run_saved(&Deployment::threads(2), &tables, &checkpoints, &program, &mut |_| {});
    let sentence = again.expect_err("known before the start").to_string();
    assert!(sentence.starts_with(&format!("{}: cannot be written: ", inside.display())), "{sentence}");
}

#[test]
fn a_worker_that_does_not_save_is_told_so() {
    let folder = Folder::new("unsaved");
    let program = |worker: &mut Worker| {
        assert!(worker.save(&[]).is_err(), "nothing is due");
        (0..3).try_for_each(|_| worker.clock()).map(|()| Vec::new())
    };
    let checkpoints = Checkpoints::new(&folder.0, Every::Clocks(1));
    let tables = tables(Consistency::Bsp);
    let outcome = hemiola::run_saved(&Deployment::threads(1), &tables, &checkpoints, &program, &mut |_| {});
    assert_eq!(
        outcome.expect_err("it went on").to_string(),
        "worker 0 ended clock 1 without saving its state, and a checkpoint was due there"
    );
}
