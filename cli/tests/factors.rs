//! The models of factor pairs from the command line: trained, judged and used.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Runs the program in `folder`, which must succeed; what it printed.
fn hemiola(folder: &Path, arguments: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hemiola"));
    let output = command.current_dir(folder).args(arguments.split(' ')).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    assert!(output.status.success(), "hemiola {arguments}: {}", text(output.stderr));
    text(output.stdout)
}

/// Lines of three classes in three features, of which the first tells nothing and is large.
fn flowers() -> String {
    let mut text = String::from("noise,width,height,species\n");
    for at in 0..240 {
        let class = at % 3;
        let noise = |turn: usize| (at * turn % 101) as f64 / 101.0 - 0.5;
        let (width, height) = (class as f64 + 0.6 * noise(37), (class * class) as f64 / 2.0 + 0.6 * noise(59));
        text.push_str(&format!("{},{width},{height},{}\n", 9.0 * noise(71), ["iris", "rose", "tulip"][class]));
    }
    text
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_regression_by_factors_is_the_same_on_threads_and_in_processes() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.csv"), flowers()).unwrap();
    let options = "--sync factors --batch 10 --epochs 6 --rate 1";
    hemiola(folder.path(), &format!("train mlr f.csv {options} --workers 3 --out t.model"));
    let said =
        hemiola(folder.path(), &format!("train mlr f.csv {options} --processes 3 --out p.model --report r.jsonl"));
    assert!(said.contains("% right"), "{said}");
    let predict = |model: &str| hemiola(folder.path(), &format!("predict {model} f.csv --probabilities"));
    assert_eq!(predict("t.model"), predict("p.model"));
    let judged = json(&hemiola(folder.path(), "eval p.model f.csv --json"));
    assert!(judged["accuracy"].as_f64().unwrap() > 0.7, "{judged}");
    let report = std::fs::read_to_string(folder.path().join("r.jsonl")).unwrap();
    let (first, last) = (json(report.lines().next().unwrap()), json(report.lines().last().unwrap()));
    assert!(first["config"]["sync"] == "factors" && first["deployment"]["processes"] == 3, "{first}");
    assert!(last["bytes_sent"].as_u64().unwrap() > 0, "{last}");
    hemiola(folder.path(), &format!("train mlr f.csv {options} --processes 3 --fanout 1 --staleness 2 --filters zstd"));
    let rounded = format!("{options} --round-errors 0.5");
    hemiola(folder.path(), &format!("train mlr f.csv {rounded} --workers 3 --out rt.model"));
    hemiola(folder.path(), &format!("train mlr f.csv {rounded} --processes 3 --out rp.model"));
    assert_eq!(predict("rt.model"), predict("rp.model"));
    assert_ne!(predict("rt.model"), predict("t.model"));
}

#[test]
fn what_is_exchanged_is_chosen_and_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.csv"), flowers()).unwrap();
    let run = |arguments: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hemiola"));
        let output = command.current_dir(folder.path()).args(arguments.split(' ')).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "hemiola {arguments}: {said}");
        said
    };
    // A matrix of four by eight is shorter than fifty pairs of its factors.
    for place in ["train mlr f.csv --processes 2", "simulate mlr f.csv --nodes 3 --workers 1"] {
        let said = run(&format!("{place} --sync auto --batch 50 --epochs 2 --rate 1"));
        let sentences = said.lines().filter(|line| line.starts_with("the matrix is exchanged: an iteration sends "));
        assert_eq!(sentences.count(), 1, "{said}");
    }
    let simulated =
        "simulate mlr f.csv --nodes 4 --workers 1 --sync factors --fanout 2 --time-per-unit 1ns --epochs 2 --quiet";
    assert_eq!(hemiola(folder.path(), simulated), hemiola(folder.path(), simulated));
    assert!(hemiola(folder.path(), simulated).contains("virtual time"));
    run("simulate mlr f.csv --nodes 2 --epochs 1 --plot p.svg");
}

#[test]
fn a_regression_ends_with_the_gap_that_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.csv"), flowers()).unwrap();
    let said =
        hemiola(folder.path(), "train l2mlr f.csv --gap 1e-4 --workers 1 --report r.jsonl --plot p.svg --out m.model");
    assert!(said.contains("duality gap") && !said.contains("not yet"), "{said}");
    let report = std::fs::read_to_string(folder.path().join("r.jsonl")).unwrap();
    let last = json(report.lines().last().unwrap());
    assert!(last["event"] == "summary" && last["gap"].as_f64().unwrap() <= 1e-4, "{last}");
    let judged = json(&hemiola(folder.path(), "eval m.model f.csv --json"));
    assert!(judged["accuracy"].as_f64().unwrap() > 0.9, "{judged}");
    assert_eq!(hemiola(folder.path(), "predict m.model f.csv").lines().count(), 240);
    let short = hemiola(folder.path(), "train l2mlr f.csv --epochs 1 --gap 1e-9 --out n.model");
    assert!(short.contains("not yet as small as asked for; give more --epochs"), "{short}");
}

#[test]
fn a_metric_finds_neighbours_of_the_class() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.csv"), flowers()).unwrap();
    let said = hemiola(folder.path(), "train dml f.csv --dimension 2 --epochs 30 --out m.model");
    assert!(said.contains("% with 2 principal components"), "{said}");
    let judged = json(&hemiola(folder.path(), "eval m.model f.csv --json"));
    assert!(judged["accuracy"].as_f64().unwrap() > 0.85, "{judged}");
    let classes = hemiola(folder.path(), "predict m.model f.csv");
    assert!(classes.lines().count() == 240 && classes.lines().all(|class| ["iris", "rose", "tulip"].contains(&class)));
    let vectors = hemiola(folder.path(), "predict m.model f.csv --vectors");
    assert!(vectors.lines().count() == 240 && vectors.lines().all(|line| line.split(',').count() == 2), "{vectors}");
    let alike = |at: usize| {
        let other = (at * 7 + at / 80) % 240;
        format!("{},{},{}\n", at + 1, other + 1, u8::from(other % 3 == at % 3))
    };
    std::fs::write(folder.path().join("pairs.csv"), (0..240).map(alike).collect::<String>()).unwrap();
    hemiola(folder.path(), "train dml f.csv --pairs pairs.csv --dimension 1 --out n.model");
    assert_eq!(hemiola(folder.path(), "predict n.model f.csv").lines().count(), 240);
}

#[test]
fn a_metric_by_peers_is_the_same_on_threads_and_in_processes() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.csv"), flowers()).unwrap();
    let options = "--dimension 2 --epochs 20 --batch 40";
    hemiola(folder.path(), &format!("train dml f.csv {options} --peers 3 --workers 1 --out t.model"));
    let said = hemiola(
        folder.path(),
        &format!("train dml f.csv {options} --processes 3 --workers 2 --out p.model --report r.jsonl --plot p.svg"),
    );
    assert!(said.contains("% right") && said.contains("worker 2"), "{said}");
    let vectors = |model: &str| hemiola(folder.path(), &format!("predict {model} f.csv --vectors"));
    assert_eq!(vectors("t.model"), vectors("p.model"));
    let judged = json(&hemiola(folder.path(), "eval p.model f.csv --json"));
    assert!(judged["accuracy"].as_f64().unwrap() > 0.85, "{judged}");
    told_of_peers(folder.path(), 3);
    hemiola(folder.path(), &format!("train dml f.csv {options} --processes 3 --fanout 1 --staleness 2 --filters zstd"));
}

#[test]
fn a_proved_regression_by_peers_is_the_same_on_threads_and_in_processes() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.csv"), flowers()).unwrap();
    let options = "--gap 1e-3 --lambda 1e-2 --batch 20";
    hemiola(folder.path(), &format!("train l2mlr f.csv {options} --peers 3 --out t.model"));
    let said = hemiola(
        folder.path(),
        &format!("train l2mlr f.csv {options} --processes 3 --out p.model --report r.jsonl --plot p.svg"),
    );
    assert!(said.contains("duality gap") && !said.contains("not yet") && said.contains("worker 2"), "{said}");
    let predict = |model: &str| hemiola(folder.path(), &format!("predict {model} f.csv --probabilities"));
    assert_eq!(predict("t.model"), predict("p.model"));
    let last = told_of_peers(folder.path(), 3);
    assert!(last["gap"].as_f64().unwrap() <= 1e-3, "{last}");
    hemiola(folder.path(), &format!("train l2mlr f.csv {options} --processes 2 --staleness 1 --filters lz4"));
}

/// Checks that a report is of so many peers that sent something.
fn told_of_peers(folder: &Path, peers: u64) -> Value {
    let report = std::fs::read_to_string(folder.join("r.jsonl")).unwrap();
    let (first, last) = (json(report.lines().next().unwrap()), json(report.lines().last().unwrap()));
    assert!(first["deployment"]["peers"] == peers && first["deployment"]["kind"] == "tcp", "{first}");
    assert!(last["bytes_sent"].as_u64().unwrap() > 0 && last["event"] == "summary", "{last}");
    last
}

/// Writes an idx file of one image of 60 x 60 pixels.
fn write_waves(folder: &Path) {
    let pixel = |at: usize| (127.0 + 100.0 * (0.5 * (at % 60) as f64).sin() * (0.2 * (at / 60) as f64).cos()) as u8;
    let head = [[0, 0, 8, 3], [0, 0, 0, 1], [0, 0, 0, 60], [0, 0, 0, 60]].concat();
    let bytes: Vec<u8> = head.into_iter().chain((0..3600).map(pixel)).collect();
    std::fs::write(folder.join("waves-idx3-ubyte"), bytes).unwrap();
}

#[test]
fn a_dictionary_by_peers_is_the_same_on_threads_and_in_processes() {
    let folder = tempfile::tempdir().unwrap();
    write_waves(folder.path());
    let options = "--patch 4 --patches 1500 --atoms 12 --epochs 5 --batch 64";
    hemiola(folder.path(), &format!("train sc waves-idx3-ubyte {options} --peers 3 --out t.model --picture t.png"));
    let places = "--processes 3 --workers 2 --out p.model --picture p.png --report r.jsonl --plot p.svg";
    let said = hemiola(folder.path(), &format!("train sc waves-idx3-ubyte {options} {places}"));
    assert!(said.contains("atoms a patch") && said.contains("worker 2"), "{said}");
    let picture = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(picture("t.png"), picture("p.png"));
    let judged = json(&hemiola(folder.path(), "eval p.model waves-idx3-ubyte --json"));
    assert!(judged["lost"].as_f64().unwrap() < 0.2, "{judged}");
    told_of_peers(folder.path(), 3);
    hemiola(folder.path(), &format!("train sc waves-idx3-ubyte {options} --processes 3 --fanout 1 --staleness 1"));
}

#[test]
fn what_peers_would_do_on_a_cluster_is_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.csv"), flowers()).unwrap();
    write_waves(folder.path());
    for model in [
        "dml f.csv --dimension 2 --batch 20 --fanout 2",
        "l2mlr f.csv --staleness 1 --batch 10",
        "sc waves-idx3-ubyte --patch 4 --patches 500 --atoms 12 --filters lz4",
    ] {
        let simulated = format!("simulate {model} --nodes 4 --epochs 2 --quiet");
        let timed = format!("{simulated} --time-per-unit 1ns --report r.jsonl --plot p.svg");
        let said = hemiola(folder.path(), &timed);
        assert!(said.contains("virtual time") && said.contains("for 2 epochs"), "{said}");
        assert_eq!(said, hemiola(folder.path(), &timed), "one seed, one outcome");
        let report = std::fs::read_to_string(folder.path().join("r.jsonl")).unwrap();
        let (first, last) = (json(report.lines().next().unwrap()), json(report.lines().last().unwrap()));
        assert!(first["cluster"]["nodes"] == 4 && first["cluster"]["workers_per_node"] == 1, "{first}");
        assert!(last["event"] == "summary" && last["bytes_sent"].as_u64().unwrap() > 0, "{last}");
        hemiola(folder.path(), &simulated);
    }
}

#[test]
fn a_dictionary_is_learnt_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    write_waves(folder.path());
    let options = "--patch 4 --patches 2000 --atoms 12 --epochs 5 --picture atoms.png --out m.model";
    let said = hemiola(folder.path(), &format!("train sc waves-idx3-ubyte {options}"));
    assert!(said.contains("atoms a patch") && said.contains("picture        atoms.png"), "{said}");
    assert!(std::fs::read(folder.path().join("atoms.png")).unwrap().starts_with(b"\x89PNG"));
    let judged = json(&hemiola(folder.path(), "eval m.model waves-idx3-ubyte --json"));
    assert!(judged["lost"].as_f64().unwrap() < 0.2, "{judged}");
}
