//! What a user can get wrong with checkpoints.

use super::{Case, hemiola};
use std::fs::{self, File};
use std::mem;
use std::path::Path;

pub(crate) const CASES: &[Case] = &[
    (
        "train mf good.csv --out m.model --checkpoint ./m.model",
        2,
        "--checkpoint ./m.model would be lost to --out m.model; give another name",
    ),
    (
        "train mf good.csv --out folder --checkpoint folder/saved",
        2,
        "--checkpoint folder/saved would be lost to --out folder; give another name",
    ),
    (
        "train mf good.csv --checkpoint-every 2",
        2,
        "--checkpoint-every has an effect only with --checkpoint or --resume",
    ),
    ("train mf good.csv --checkpoint-keep 2", 2, "--checkpoint-keep has an effect only with --checkpoint or --resume"),
    ("train mf good.csv --time-to-failure 2d", 2, "--time-to-failure has an effect only with --checkpoint or --resume"),
    (
        "train mf good.csv --checkpoint new --checkpoint-every 0",
        2,
        "invalid value '0' for '--checkpoint-every <EPOCHS|auto>': expected a whole number of 1 or more, or auto",
    ),
    (
        "train mf good.csv --checkpoint new --checkpoint-every often",
        2,
        "invalid value 'often' for '--checkpoint-every <EPOCHS|auto>': expected a whole number of 1 or more, or auto",
    ),
    (
        "train mf good.csv --checkpoint new --checkpoint-every 4294967295 --clocks-per-epoch 2",
        2,
        "--checkpoint-every is more clocks than can be counted",
    ),
    (
        "train mf good.csv --checkpoint new --checkpoint-keep 0",
        2,
        "invalid value '0' for '--checkpoint-keep <N>': expected a whole number of 1 or more",
    ),
    (
        "train mf good.csv --checkpoint new --time-to-failure 30",
        2,
        "invalid value '30' for '--time-to-failure <TIME>': expected a time above 0 such as 30d, 12h or 90m",
    ),
    (
        "train mf good.csv --checkpoint new --checkpoint-every 2 --time-to-failure 3d",
        2,
        "--time-to-failure has an effect only with --checkpoint-every auto",
    ),
    ("train mf good.csv --checkpoint nowhere/new", 1, "nowhere/new: cannot be written: there is no directory nowhere"),
    ("train mf good.csv --checkpoint good.csv", 1, "good.csv: is a file; expected a directory for checkpoints"),
    (
        "train mf good.csv --rank 4 --workers 1 --checkpoint saved",
        1,
        "saved: already holds checkpoints, the newest of clock 2; resume from there or give another directory",
    ),
    ("train mf good.csv --resume nowhere", 1, "nowhere: cannot be read: No such file or directory (os error 2)"),
    ("train mf good.csv --resume folder", 1, "folder: holds no checkpoint"),
    (
        "train mf good.csv --rank 5 --workers 1 --resume saved",
        1,
        "saved/clock-0000000002: was made with rank 4, and this job has rank 5",
    ),
    (
        "train mf good.csv --rank 4 --workers 1 --seed 2 --resume saved/clock-0000000001",
        1,
        "saved/clock-0000000001: was made with seed 1, and this job has seed 2",
    ),
    (
        "train mf good.csv --rank 4 --workers 3 --resume saved",
        1,
        "saved/clock-0000000002: was made by 1 workers, and this job has 3; it can go on only with as many",
    ),
    (
        "train mf good.csv --rank 4 --workers 1 --epochs 1 --resume saved",
        1,
        "the checkpoint is of 2 epochs, and only 1 are to be trained; ask for more",
    ),
    (
        "train mf good.csv --rank 4 --workers 1 --resume flipped",
        1,
        "flipped/clock-0000000002/shard-0000.rows: is damaged: the checksum of one of its frames does not match; \
         the newest good checkpoint before it is flipped/clock-0000000001",
    ),
    (
        "train mf good.csv --rank 4 --workers 1 --resume cut",
        1,
        "cut/clock-0000000002/worker-0000.state: is damaged: it has 100 bytes, and was written with 930; \
         the newest good checkpoint before it is cut/clock-0000000001",
    ),
    (
        "train mf good.csv --rank 4 --workers 1 --resume mixed",
        1,
        "mixed/clock-0000000002/shard-0000.rows: is of shard 0 at clock 1, and belongs to shard 0 at clock 2; the newest good checkpoint before it is mixed/clock-0000000001",
    ),
    (
        "train mf good.csv --rank 4 --workers 1 --resume sealed/clock-0000000002",
        1,
        "sealed/clock-0000000002/manifest.json: is damaged: its checksum does not fit what it says; \
         the newest good checkpoint before it is sealed/clock-0000000001",
    ),
    (
        "train mf good.csv --rank 4 --workers 1 --resume copy",
        1,
        "copy/manifest.json: is damaged: its checksum does not fit what it says",
    ),
    (
        "train mf good.csv --rank 4 --workers 1 --resume saved/clock-0000000009",
        1,
        "saved/clock-0000000009: is no checkpoint; expected a directory with a manifest.json; \
         the newest good checkpoint before it is saved/clock-0000000002",
    ),
    (
        "train mf good.csv --rank 4 --workers 1 --checkpoint busy",
        1,
        "busy: another training is saving there; wait until it has ended or give another directory",
    ),
    (
        "train mf good.csv --rank 4 --processes 1 --workers 1 --resume saved --checkpoint busy",
        1,
        "busy: another training is saving there; wait until it has ended or give another directory",
    ),
    (
        "train lda prose.txt --topics 3 --checkpoint-every 2",
        2,
        "--checkpoint-every has an effect only with --checkpoint or --resume",
    ),
    (
        "train lda prose.txt --topics 4 --sampler sparse --workers 1 --resume topics",
        1,
        "topics/clock-0000000003: was made with topics 3, and this job has topics 4",
    ),
    (
        "train lda prose.txt --topics 3 --sampler mh --workers 1 --resume topics",
        1,
        "topics/clock-0000000003: was made with sampler sparse, and this job has sampler metropolis_hastings",
    ),
    (
        "train lda prose.txt prose.txt --topics 3 --sampler sparse --workers 1 --resume topics",
        1,
        "topics/clock-0000000003: was made with documents 1 of 1 different words (checksum eca31f52), \
         and this job has documents 2 of 1 different words (checksum 9353bdb3)",
    ),
    (
        "train lda horses.txt --topics 3 --sampler sparse --workers 1 --resume topics",
        1,
        "topics/clock-0000000003: was made with documents 1 of 1 different words (checksum eca31f52), \
         and this job has documents 1 of 1 different words (checksum 137d8c5a)",
    ),
    (
        "train mf renamed.csv --rank 4 --workers 1 --resume saved",
        1,
        "saved/clock-0000000002: was made with users 20 (checksum 41805d73), and this job has users 20 (checksum c959f472)",
    ),
    (
        "train mf good.csv --rank 4 --workers 1 --resume topics",
        1,
        "topics/clock-0000000003: was made with model lda, and this job has model mf",
    ),
    (
        "train lda prose.txt --topics 3 --sampler sparse --workers 1 --epochs 1 --resume topics",
        1,
        "the checkpoint is of 2 epochs, and only 1 are to be trained; ask for more",
    ),
    (
        "checkpoint verify flipped",
        1,
        "flipped/clock-0000000002/shard-0000.rows: is damaged: the checksum of one of its frames does not match",
    ),
    (
        "checkpoint verify sealed/clock-0000000002",
        1,
        "sealed/clock-0000000002/manifest.json: is damaged: its checksum does not fit what it says",
    ),
    ("checkpoint verify copy", 1, "copy/manifest.json: is damaged: its checksum does not fit what it says"),
    ("checkpoint list folder", 1, "folder: holds no checkpoint"),
    ("checkpoint verify nowhere", 1, "nowhere: cannot be read: No such file or directory (os error 2)"),
    (
        "checkpoint list",
        2,
        "the following required arguments were not provided: <DIR>; see 'hemiola checkpoint list --help'",
    ),
    ("checkpoint burn saved", 2, "unrecognized subcommand 'burn'; see 'hemiola checkpoint --help'"),
];

/// Checkpoints of two epochs, and copies of them in which the second has something wrong.
pub(crate) fn prepare(directory: &Path) {
    let train = "train mf good.csv --rank 4 --workers 1 --quiet --out good.model --checkpoint-every 1";
    for rest in ["--epochs 1 --checkpoint saved", "--epochs 2 --resume saved"] {
        let (code, said) = hemiola(directory, &format!("{train} {rest}"));
        assert_eq!((code, said.as_str()), (0, ""));
    }
    let train = "train lda prose.txt --topics 3 --sampler sparse --workers 1 --quiet --out prose.model";
    let (code, said) = hemiola(directory, &format!("{train} --epochs 2 --checkpoint topics --checkpoint-every 3"));
    assert_eq!((code, said.as_str()), (0, ""));
    let ratings = fs::read_to_string(directory.join("good.csv")).unwrap();
    let renamed: String = ratings.lines().map(|line| format!("u{line}\n")).collect();
    fs::write(directory.join("renamed.csv"), renamed).unwrap();
    fs::write(directory.join("horses.txt"), "These are not horses at all.\n").unwrap();
    for name in ["flipped", "cut", "mixed", "sealed"] {
        for clock in ["clock-0000000001", "clock-0000000002"] {
            fs::create_dir_all(directory.join(name).join(clock)).unwrap();
            for file in fs::read_dir(directory.join("saved").join(clock)).unwrap() {
                let file = file.unwrap();
                fs::copy(file.path(), directory.join(name).join(clock).join(file.file_name())).unwrap();
            }
        }
    }
    let rows = directory.join("flipped/clock-0000000002/shard-0000.rows");
    let mut bytes = fs::read(&rows).unwrap();
    // The last byte: what lies elsewhere shifts with the length of the job's random number.
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&rows, bytes).unwrap();
    fs::create_dir(directory.join("busy")).unwrap();
    let lock = File::create(directory.join("busy/.lock")).unwrap();
    lock.lock().unwrap();
    // As a training holds it that outlives this test.
    mem::forget(lock);
    let manifest = directory.join("sealed/clock-0000000002/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap().replace("\"workers\": 1", "\"workers\": 3");
    fs::write(&manifest, &text).unwrap();
    fs::create_dir(directory.join("copy")).unwrap();
    fs::write(directory.join("copy/manifest.json"), text).unwrap();
    let state = directory.join("cut/clock-0000000002/worker-0000.state");
    fs::write(&state, &fs::read(&state).unwrap()[..100]).unwrap();
    let rows = |clock: &str| directory.join("mixed").join(clock).join("shard-0000.rows");
    fs::copy(rows("clock-0000000001"), rows("clock-0000000002")).unwrap();
}
