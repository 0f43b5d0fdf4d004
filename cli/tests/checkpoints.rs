//! Trainings that are killed and go on: under bsp the model is that of a training which nothing disturbed, byte by byte.
//!
//! `HEMIOLA_MOMENTS=50` kills that many trainings, each at a moment that follows from `HEMIOLA_SEED`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const EPOCHS: u64 = 8;
/// What is killed, in turn.
const TRAININGS: [&str; 4] = [
    "mf ratings.csv --rank 4 --patience 3",
    "lda docword.txt --vocabulary vocab.txt --topics 20 --sampler sparse --clocks-per-epoch 2",
    "lda docword.txt --vocabulary vocab.txt --topics 20 --sampler mh --clocks-per-epoch 2",
    "mlr examples.svm",
];

fn command(directory: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hemiola"));
    command.args(arguments.split_whitespace()).current_dir(directory).stdin(Stdio::null());
    command
}

fn hemiola(directory: &Path, arguments: &str) -> String {
    let output = command(directory, arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "hemiola {arguments}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// The children of a process.
fn children(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        after_name.split_whitespace().nth(1) == Some(&parent.to_string())
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_child).collect()
}

/// Starts a training and kills all of its processes when it has told of `epochs` epochs.
fn killed(directory: &Path, arguments: &str, epochs: u64) {
    let mut launcher = command(directory, arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(launcher.stderr.take().unwrap()).lines().map_while(Result::ok);
    let epochs_told = lines.by_ref().filter(|line| line.starts_with("epoch ")).take(epochs as usize).count() as u64;
    assert_eq!(epochs_told, epochs, "a line for every epoch");
    for victim in children(launcher.id()).into_iter().chain([launcher.id()]) {
        // One that has ended by itself is as good.
        Command::new("kill").args(["-9", &victim.to_string()]).stderr(Stdio::null()).status().unwrap();
    }
    launcher.wait().unwrap();
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

fn content(model: &Path) -> Vec<(String, Vec<u8>)> {
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let paths = fs::read_dir(model).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths.map(|path| (name(&path), fs::read(&path).unwrap())).collect();
    files.sort();
    files
}

#[test]
fn a_killed_training_goes_on_to_the_same_model() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    hemiola(path, "generate ratings --users 200 --items 100 --ratings 6000 --rank 3 --out ratings.csv");
    hemiola(path, "generate corpus --documents 200 --words 300 --topics 5 --tokens-per-document 40 --out docword.txt");
    hemiola(path, "generate examples --examples 1000 --features 100 --nonzeros 8 --relevant 20 --out examples.svm");
    let trainings = TRAININGS.map(|training| {
        let train = format!("train {training} --consistency bsp --epochs {EPOCHS}");
        hemiola(path, &format!("{train} --workers 2 --out undisturbed.model --quiet"));
        (train, content(&path.join("undisturbed.model")))
    });
    let (seed, moments) = (number("HEMIOLA_SEED", 1), number("HEMIOLA_MOMENTS", 5));
    for moment in 0..moments {
        let random = (seed.wrapping_mul(1000) + moment).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let (epochs, servers) = (1 + random % (EPOCHS - 1), 1 + random / 100 % 2);
        let (train, undisturbed) = &trainings[moment as usize % trainings.len()];
        eprintln!("seed {seed}, moment {moment}: {train}, killed after {epochs} epochs, {servers} servers");
        let name = format!("moment-{moment}");
        let saved = format!("--checkpoint {name} --checkpoint-every 1 --out {name}.model");
        killed(path, &format!("{train} --processes 2 --workers 1 --servers {servers} {saved}"), epochs);
        let found = fs::read_dir(path.join(&name)).unwrap().flatten();
        let whole = found.filter(|entry| !entry.file_name().to_string_lossy().contains('.')).count();
        // Of what was about to be removed nothing is taken for a checkpoint.
        if whole > 0 {
            assert!(hemiola(path, &format!("checkpoint verify {name}")).lines().all(|line| line.ends_with("good")));
        }
        // Any driver and any number of servers will do to go on, and without a checkpoint to begin again.
        let place = if random & 1 == 0 { "--workers 2" } else { "--processes 2 --workers 1 --servers 3" };
        let from = if whole > 0 { format!("--resume {name}") } else { format!("--checkpoint {name}") };
        hemiola(path, &format!("{train} {place} {from} --checkpoint-every 2 --out {name}.model --quiet"));
        assert!(content(&path.join(format!("{name}.model"))) == *undisturbed, "seed {seed}, moment {moment}");
        assert!(hemiola(path, &format!("checkpoint verify {name}")).lines().all(|line| line.ends_with("good")));
    }
}

#[test]
fn what_stored_procedures_keep_is_saved() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    hemiola(path, "generate ratings --users 100 --items 60 --ratings 2000 --rank 3 --out ratings.csv");
    let train = "train mf ratings.csv --rank 4 --consistency bsp --step-size adarevision --no-holdout --quiet";
    hemiola(path, &format!("{train} --workers 2 --epochs 5 --out whole.model"));
    hemiola(path, &format!("{train} --workers 2 --epochs 2 --out first.model --checkpoint saved --checkpoint-every 2"));
    let elsewhere = "--processes 2 --workers 1 --servers 2";
    hemiola(path, &format!("{train} {elsewhere} --epochs 5 --out second.model --resume saved"));
    assert!(content(&path.join("whole.model")) == content(&path.join("second.model")));
}

#[test]
fn checkpoints_are_listed_and_early_stopping_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    hemiola(path, "generate ratings --users 200 --items 100 --ratings 6000 --rank 3 --out ratings.csv");
    let train = "train mf ratings.csv --rank 4 --consistency bsp --patience 1 --rate 0.4 --workers 1 --quiet";
    hemiola(path, &format!("{train} --epochs 60 --out whole.model"));
    let saving = "--checkpoint saved --checkpoint-every 2 --report run.jsonl";
    hemiola(path, &format!("{train} --epochs 2 --out first.model {saving}"));
    let listed = hemiola(path, "checkpoint list saved");
    assert!(listed.starts_with("saved/clock-0000000002  mf, clock 2, 1 worker, 1 shard, 0.0 MB in "), "{listed}");
    assert!(listed.ends_with("s ago\n"), "{listed}");
    // By its name where it is, as people type it.
    let train = train.replace("ratings.csv", "../ratings.csv").replace(" --quiet", "");
    let going_on = "--resume clock-0000000002 --report ../run.jsonl";
    let going_on = format!("{train} --epochs 60 --out ../second.model {going_on}");
    let output = command(&path.join("saved"), &going_on).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.starts_with("resumed from clock-0000000002\nepoch "), "{said}");
    assert!(content(&path.join("whole.model")) == content(&path.join("second.model")));
    let report = fs::read_to_string(path.join("run.jsonl")).unwrap();
    let epochs: Vec<u64> = report
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["epoch"].as_u64())
        .collect();
    assert!(epochs.len() > 3 && epochs.is_sorted() && epochs[0] == 1, "of both runs: {report}");
}

#[test]
fn a_copy_of_a_checkpoint_is_gone_on_from() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    hemiola(path, "generate ratings --users 100 --items 60 --ratings 2000 --rank 3 --out ratings.csv");
    let train = format!(
        "train mf {} --rank 4 --consistency bsp --clocks-per-epoch 1 --quiet",
        path.join("ratings.csv").display()
    );
    hemiola(path, &format!("{train} --workers 2 --epochs 4 --out whole.model"));
    hemiola(path, &format!("{train} --workers 2 --epochs 2 --out first.model --checkpoint saved --checkpoint-every 2"));
    fs::create_dir(path.join("backup")).unwrap();
    for (name, bytes) in content(&path.join("saved/clock-0000000002")) {
        fs::write(path.join("backup").join(name), bytes).unwrap();
    }
    let (backup, inside) = ((path, "backup"), (&*path.join("saved/clock-0000000002"), "."));
    for (name, (folder, from), rest) in [
        ("copy", backup, "--checkpoint other --workers 2"),
        ("inside", inside, "--workers 2"),
        ("processes", backup, "--checkpoint third --processes 2 --workers 1"),
    ] {
        assert!(hemiola(folder, &format!("checkpoint verify {from}")).ends_with("good\n"));
        let out = path.join(format!("{name}.model"));
        let saving = format!("--resume {from} {rest} --checkpoint-every 2");
        hemiola(folder, &format!("{train} --epochs 4 --out {} {saving}", out.display()));
        assert!(content(&out) == content(&path.join("whole.model")), "{name}");
    }
    for saved in ["saved", "other", "third"] {
        assert!(
            hemiola(path, &format!("checkpoint list {saved}")).contains("clock-0000000004  mf, clock 4"),
            "{saved}"
        );
    }
}

/// Both samplers and both ways to keep the counts of documents, saved before the first epoch and after some.
#[test]
fn topic_models_go_on_to_the_same_model() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let word = |document: usize, i: usize| 1 + (document % 5) * 8 + (document * 7 + i * i * 3 + i / 5) % 8;
    let lines: Vec<String> = (0..120)
        .map(|document| (0..25).map(|i| format!("w{}", word(document, i))).collect::<Vec<_>>().join(" "))
        .collect();
    fs::write(path.join("documents.txt"), lines.join("\n")).unwrap();
    // Saved after passes: the first gives tokens their topics, 81 begin with a part of the documents, then come epochs.
    for (name, options, clocks, passes) in [
        ("rows", "--topics 6 --sampler sparse", 1, [1, 4]),
        ("lists", "--topics 300 --sampler sparse --clocks-per-epoch 2", 2, [1, 4]),
        ("proposals", "--topics 20 --sampler mh --begin-with 0.3", 1, [40, 84]),
        ("growing", "--topics 300 --sampler sparse --begin-with 0.3 --clocks-per-epoch 2", 2, [40, 84]),
    ] {
        let train = format!("train lda documents.txt --consistency bsp --quiet {options}");
        hemiola(path, &format!("{train} --workers 2 --epochs 5 --out {name}.model"));
        let whole = content(&path.join(format!("{name}.model")));
        for (passes, place) in passes.into_iter().zip(["--workers 2", "--processes 2 --workers 1 --servers 2"]) {
            let saved = format!("{name}-{passes}");
            let saving = format!("--checkpoint {saved} --checkpoint-every {passes} --checkpoint-keep 100");
            hemiola(path, &format!("{train} --workers 2 --epochs 3 --out first.model {saving}"));
            let from = format!("--resume {saved}/clock-{:010} --checkpoint {saved}-on", passes * clocks);
            hemiola(path, &format!("{train} {place} --epochs 5 --out {saved}.model {from}"));
            assert!(content(&path.join(format!("{saved}.model"))) == whole, "{saved}");
        }
    }
}
