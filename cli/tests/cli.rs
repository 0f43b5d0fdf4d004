//! The command line as a user types it: train, judge, predict, recommend, and what every flag of training changes.

use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(directory: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hemiola"))
        .args(arguments.split_whitespace())
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Standard output of a command that succeeds.
fn hemiola(directory: &Path, arguments: &str) -> String {
    let output = run(directory, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "hemiola {arguments}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// A directory with `ratings.csv`.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    hemiola(directory.path(), "generate ratings --users 300 --items 120 --ratings 12000 --rank 3 --out ratings.csv");
    directory
}

fn json_lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_model_is_trained_judged_and_used() {
    let directory = directory();
    let path = directory.path();
    let said = hemiola(path, "train mf ratings.csv");
    assert!(said.contains("held-out RMSE  0.") && said.contains("hemiola recommend ratings.model --user"), "{said}");
    let measured: Value = serde_json::from_str(&hemiola(path, "eval ratings.model ratings.csv --json")).unwrap();
    assert_eq!((&measured["ratings"], &measured["unknown_users"]), (&Value::from(12000), &Value::from(0)));
    let (rmse, mae) = (measured["rmse"].as_f64().unwrap(), measured["mae"].as_f64().unwrap());
    assert!(rmse < 0.7 && mae < rmse && mae > 0.2, "RMSE {rmse}, MAE {mae}");

    fs::write(path.join("pairs.csv"), "user,item\n1,2\n\"no, body\",2\n").unwrap();
    let predicted = hemiola(path, "predict ratings.model pairs.csv");
    let single = hemiola(path, "predict ratings.model --user 1 --item 2");
    let lines: Vec<&str> = predicted.lines().collect();
    assert_eq!((lines.len(), lines[0]), (2, single.trim_end()));
    assert!(lines[1].starts_with("\"no, body\",2,"), "{predicted}");
    let said = |arguments: &str| String::from_utf8(run(path, arguments).stderr).unwrap();
    let unknown = "pairs with a user or item that the model does not know: 1 of 2\n";
    assert_eq!(said("predict ratings.model pairs.csv"), unknown);
    assert_eq!(said("predict ratings.model --user 1 --item 2"), "");

    let all = hemiola(path, "recommend ratings.model --user 1 -n 200");
    let unseen = hemiola(path, "recommend ratings.model --user 1 -n 200 --seen ratings.csv");
    let text = fs::read_to_string(path.join("ratings.csv")).unwrap();
    let rated: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("1,")?.split(',').next()).collect();
    let items =
        |list: &str| list.lines().skip(1).map(|line| line.split(',').next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!((items(&all).len(), items(&unseen).len()), (120, 120 - rated.len()));
    assert!(items(&unseen).iter().all(|item| !rated.contains(&item.as_str())));
    assert_eq!(hemiola(path, "recommend ratings.model --user 1 -n 3").lines().count(), 4);

    // Under another name, by the same ratings, the user is told much the same.
    let own = text.lines().filter_map(|line| Some(format!("me,{}\n", line.strip_prefix("1,")?))).collect::<String>();
    fs::write(path.join("mine.csv"), own).unwrap();
    let mine = hemiola(path, "recommend ratings.model --ratings mine.csv -n 200");
    assert_eq!(mine, hemiola(path, "recommend ratings.model --user me --ratings mine.csv -n 200"));
    assert_eq!(items(&mine).len(), items(&unseen).len());
    let common = items(&mine)[..20].iter().filter(|item| items(&unseen)[..20].contains(item)).count();
    assert!(common >= 10, "{common} of the best 20 in common");
    let [stranger, known] = ["", " --ratings mine.csv"].map(|option| {
        let line = hemiola(path, &format!("predict ratings.model --user me --item {}{option}", items(&mine)[0]));
        line.trim_end().rsplit(',').next().unwrap().parse::<f32>().unwrap()
    });
    assert!(known > stranger + 0.1, "{known} by the ratings, {stranger} without");
}

#[test]
fn the_report_tells_the_whole_run() {
    let directory = directory();
    let path = directory.path();
    hemiola(path, "train mf ratings.csv --epochs 3 --clocks-per-epoch 2 --workers 2 --report run.jsonl --quiet");
    let lines = json_lines(&path.join("run.jsonl"));
    let events: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["start", "evaluation", "evaluation", "evaluation", "summary"]);
    assert_eq!(lines[0]["config"]["rank"], 32);
    assert_eq!(lines[0]["deployment"]["workers"], 2);
    for (epoch, line) in (1..).zip(&lines[1..4]) {
        assert_eq!((&line["epoch"], &line["clock"]), (&Value::from(epoch), &Value::from(2 * epoch)));
        for field in
            ["seconds", "objective", "test_rmse", "bytes_sent", "bytes_received", "wait_seconds", "compute_seconds"]
        {
            assert!(line[field].is_number(), "{field} in {line}");
        }
    }
    let summary = &lines[4];
    assert_eq!(summary["workers"].as_array().unwrap().len(), 2);
    for field in ["compute_seconds", "wait_seconds", "communication_seconds", "bytes_sent", "bytes_received", "clocks"]
    {
        assert!(summary["workers"][0][field].is_number(), "{field} in {summary}");
    }
    let reads = summary["staleness"].as_array().unwrap();
    assert!(!reads.is_empty() && reads.iter().all(|bar| bar["differential"].as_i64().unwrap() >= -3), "{summary}");
    assert_eq!(summary["test_rmse"], lines[3]["test_rmse"]);
}

#[test]
fn a_seed_gives_one_model_under_bsp() {
    let directory = directory();
    let path = directory.path();
    for workers in [1, 3] {
        let train = |out: &str| {
            let common = "train mf ratings.csv --consistency bsp --epochs 3 --rank 5 --seed 11 --quiet";
            hemiola(path, &format!("{common} --workers {workers} --out {out}"));
            let mut files: Vec<_> = fs::read_dir(path.join(out)).unwrap().map(|file| file.unwrap().path()).collect();
            files.sort();
            files.iter().map(|file| fs::read(file).unwrap()).collect::<Vec<_>>()
        };
        assert!(train("one") == train("other"), "two models of {workers} workers differ");
    }
}

#[test]
fn plots_are_drawn_as_svg_and_png() {
    let directory = directory();
    let path = directory.path();
    for name in ["plot.svg", "plot.png"] {
        hemiola(path, &format!("train mf ratings.csv --epochs 3 --quiet --plot {name}"));
    }
    let svg = fs::read_to_string(path.join("plot.svg")).unwrap();
    for text in ["Loss", "epoch", "RMSE", "held out", "Staleness of reads"] {
        assert!(svg.contains(text), "the drawing does not say {text}");
    }
    let png = fs::read(path.join("plot.png")).unwrap();
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    assert_eq!(&png[16..24], &[0, 0, 8, 192, 0, 0, 3, 72], "2240 by 840 pixels");
}

/// What two runs that differ by one flag differ in.
#[derive(Clone, Copy, Debug)]
enum Differs {
    Numbers,
    Epochs,
    Clocks,
    Workers,
    Evaluations,
    TestError,
}

/// Trains twice for each case, with what flags change and with the flags.
fn check_flags(path: &Path, training: &str, cases: &[(&str, &str, Differs)]) {
    let look = |flags: &str, differs: Differs| {
        let mut command = format!("train {training} --out m --report r --quiet {flags}");
        for (flag, usual) in [("--epochs", "3"), ("--workers", "1"), ("--consistency", "bsp")] {
            if !flags.contains(flag) {
                command.push_str(&format!(" {flag} {usual}"));
            }
        }
        hemiola(path, &command);
        let lines = json_lines(&path.join("r"));
        let (last, summary) = (&lines[lines.len() - 2], &lines[lines.len() - 1]);
        match differs {
            Differs::Numbers => {
                let mut files = files(&path.join("m"));
                files.retain(|(name, _)| Path::new(name).extension().is_some_and(|ending| ending == "safetensors"));
                format!("{files:?}")
            }
            Differs::Epochs => last["epoch"].to_string(),
            Differs::Clocks => last["clock"].to_string(),
            Differs::Workers => summary["workers"].as_array().unwrap().len().to_string(),
            Differs::Evaluations => lines.iter().filter(|line| line["objective"].is_number()).count().to_string(),
            Differs::TestError => {
                ["test_rmse", "test_loss", "test_log_likelihood"].map(|error| summary[error].to_string()).join(" ")
            }
        }
    };
    for &(usual, flags, differs) in cases {
        let (before, after) = (look(usual, differs), look(flags, differs));
        assert!(before != after, "train {training}: '{flags}' has the {differs:?} of '{usual}'");
    }
}

#[test]
fn every_flag_of_training_changes_something() {
    use Differs::*;
    let cases = [
        ("", "--rank 5", Numbers),
        ("", "--l2 0.2", Numbers),
        ("", "--no-biases", Numbers),
        ("", "--rate 0.05", Numbers),
        ("", "--damping 0.3", Numbers),
        ("", "--seed 2", Numbers),
        ("", "--step-size constant", Numbers),
        ("--step-size constant", "--step-size inverse-time", Numbers),
        ("--step-size constant", "--step-size inverse-sqrt", Numbers),
        ("--step-size constant", "--step-size decay", Numbers),
        ("--step-size decay", "--step-size decay --decay 0.5", Numbers),
        ("", "--step-size adagrad", Numbers),
        ("--step-size adagrad --workers 2", "--step-size adarevision --workers 2", Numbers),
        ("", "--holdout 0.5", Numbers),
        ("", "--holdout-every 3", Numbers),
        ("", "--no-holdout", Numbers),
        ("", "--test small.csv", TestError),
        ("", "--epochs 4", Epochs),
        ("--epochs 90", "--epochs 90 --patience 1", Epochs),
        ("", "--clocks-per-epoch 3", Clocks),
        ("--workers 1", "--workers 3", Workers),
        ("--consistency bsp --workers 2", "--consistency async --workers 2", Numbers),
        ("--consistency bsp --workers 2", "--consistency ssp --workers 2 --staleness 1", Numbers),
        ("--consistency bsp --workers 2", "--consistency essp --workers 2 --staleness 1", Numbers),
    ];
    let directory = directory();
    let path = directory.path();
    hemiola(path, "generate ratings --users 9 --items 9 --ratings 60 --seed 3 --out small.csv");
    check_flags(path, "mf ratings.csv", &cases);
    let quiet = run(path, "train mf ratings.csv --epochs 1 --quiet");
    assert_eq!((quiet.stdout.len(), quiet.stderr.len()), (0, 0));
    let loud = run(path, "train mf ratings.csv --epochs 1");
    assert!(String::from_utf8_lossy(&loud.stderr).starts_with("epoch 1: RMSE "));
}

#[test]
fn every_flag_of_topic_models_changes_something() {
    use Differs::*;
    let cases = [
        ("--topics 4", "--topics 5", Numbers),
        ("", "--alpha 0.3", Numbers),
        ("", "--beta 0.1", Numbers),
        ("--sampler sparse", "--sampler mh", Numbers),
        ("--topics 4", "--topics 4 --sampler mh", Numbers),
        ("", "--begin-with 0.3", Numbers),
        ("", "--seed 2", Numbers),
        ("", "--stop-words none", Numbers),
        ("", "--stop-words stop.txt", Numbers),
        ("", "--min-documents 20", Numbers),
        ("", "--max-share 0.3", Numbers),
        ("", "--max-words 9", Numbers),
        ("", "--holdout 0.3", Numbers),
        ("", "--holdout-every 3", Numbers),
        ("", "--test few.txt", TestError),
        ("", "--epochs 4", Epochs),
        ("", "--evaluate-every 1", Evaluations),
        ("", "--clocks-per-epoch 3", Clocks),
        ("--clocks-per-epoch 3 --workers 2", "--clocks-per-epoch 2 --workers 2", Numbers),
        ("--workers 1", "--workers 3", Workers),
        ("--consistency bsp --workers 2", "--consistency async --workers 2", Numbers),
        ("--consistency bsp --workers 2", "--consistency ssp --workers 2 --staleness 1", Numbers),
        ("--consistency bsp --workers 2", "--consistency essp --workers 2 --staleness 1", Numbers),
    ];
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    // Of five subjects, some of whose words belong to two of them.
    let document = |at: usize| {
        let words = (0..30).map(|turn| format!(" w{}", 8 * (at % 5) + turn * turn % 11));
        format!("the{}\n", words.collect::<String>())
    };
    let text = (0..60).map(document).collect::<String>();
    fs::write(path.join("text.txt"), &text).unwrap();
    fs::write(path.join("few.txt"), &text[..400]).unwrap();
    fs::write(path.join("stop.txt"), "w8\n").unwrap();
    check_flags(path, "lda text.txt", &cases);
}

#[test]
fn every_flag_of_softmax_regression_changes_something() {
    use Differs::*;
    let cases = [
        ("", "--l2 0.01", Numbers),
        ("", "--batch 5", Numbers),
        ("", "--rate 1", Numbers),
        ("", "--step-size constant", Numbers),
        ("--step-size constant", "--step-size inverse-time", Numbers),
        ("--step-size constant", "--step-size inverse-sqrt", Numbers),
        ("--step-size constant", "--step-size adaptive", Numbers),
        ("--step-size adaptive", "--step-size adaptive --damping 0.3", Numbers),
        ("", "--decay 0.5", Numbers),
        ("", "--seed 2", Numbers),
        ("", "--holdout 0.5", Numbers),
        ("", "--holdout-every 3", Numbers),
        ("", "--no-holdout", Numbers),
        ("", "--test few.svm", TestError),
        ("", "--epochs 4", Epochs),
        ("--epochs 90", "--epochs 90 --patience 1", Epochs),
        ("", "--clocks-per-epoch 3", Clocks),
        ("--workers 2", "--clocks-per-epoch 3 --workers 2", Numbers),
        ("--workers 1", "--workers 3", Workers),
        ("--consistency bsp --workers 2", "--consistency async --workers 2", Numbers),
        ("--consistency bsp --workers 2", "--consistency ssp --workers 2 --staleness 1", Numbers),
        ("--consistency bsp --workers 2", "--consistency essp --workers 2 --staleness 1", Numbers),
    ];
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    for (name, options) in [("clicks.svm", "--examples 600"), ("few.svm", "--examples 60 --seed 2")] {
        let shape = "--features 300 --nonzeros 20 --relevant 50";
        hemiola(path, &format!("generate examples {shape} {options} --out {name}"));
    }
    check_flags(path, "mlr clicks.svm", &cases);
}

#[test]
fn output_that_nobody_reads_to_its_end_is_no_failure() {
    let directory = directory();
    let mut child = Command::new(env!("CARGO_BIN_EXE_hemiola"))
        .args(["generate", "ratings", "--ratings", "100000"])
        .current_dir(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn help_and_version_succeed() {
    let directory = tempfile::tempdir().unwrap();
    for (arguments, text) in [
        ("--help", "hemiola train mf ratings.csv"),
        ("train mf --help", "--staleness"),
        ("--version", "hemiola 0."),
        ("predict --help", "standard input"),
    ] {
        let said = hemiola(directory.path(), arguments);
        assert!(said.contains(text), "hemiola {arguments}: {said}");
    }
    assert_eq!(run(directory.path(), "").status.code(), Some(2));
}

#[test]
fn calibration_tells_seconds_per_rating() {
    let directory = tempfile::tempdir().unwrap();
    let measured: Value = serde_json::from_str(&hemiola(directory.path(), "calibrate --rank 16")).unwrap();
    let seconds = measured["seconds_per_rating"].as_f64().unwrap();
    assert_eq!(measured["rank"], 16);
    assert!(seconds > 0.0 && seconds < 1e-3, "{seconds}");
}

/// All files of a model with their contents.
fn files(model: &Path) -> Vec<(std::ffi::OsString, Vec<u8>)> {
    let entries = fs::read_dir(model).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> = entries.map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap())).collect();
    files.sort();
    files
}

#[test]
fn bsp_gives_the_same_bytes_on_threads_and_in_processes() {
    let directory = directory();
    let path = directory.path();
    let common = "train mf ratings.csv --quiet --consistency bsp --epochs 3 --clocks-per-epoch 5";
    hemiola(path, &format!("{common} --workers 4 --out threads.model"));
    hemiola(path, &format!("{common} --processes 4 --workers 1 --servers 2 --out four.model"));
    hemiola(path, &format!("{common} --processes 2 --workers 2 --servers 1 --out two.model"));
    let threads = files(&path.join("threads.model"));
    assert!(threads.len() >= 4, "a model has several files");
    assert!(threads == files(&path.join("four.model")), "four processes and two servers");
    assert!(threads == files(&path.join("two.model")), "two processes of two threads and one server");
    // So many that on threads they need more chunks than usual, lest they wait for one another.
    hemiola(path, &format!("{common} --workers 12 --out threads.model"));
    hemiola(path, &format!("{common} --processes 2 --workers 6 --out two.model"));
    assert!(files(&path.join("threads.model")) == files(&path.join("two.model")), "twelve workers");
}

#[test]
fn every_model_of_consistency_trains_in_processes() {
    let directory = directory();
    let path = directory.path();
    for model in ["ssp --staleness 1", "essp --staleness 3", "async", "vap --value-bound 4"] {
        let step = if model.starts_with("vap") { "--step-size constant --rate 0.01" } else { "" };
        let common = format!("train mf ratings.csv --epochs 3 --processes 2 --workers 1 --consistency {model} {step}");
        hemiola(path, &format!("{common} --report run.jsonl"));
        let lines = json_lines(&path.join("run.jsonl"));
        let evaluations: Vec<_> = lines.iter().filter(|line| line["event"] == "evaluation").collect();
        assert_eq!(evaluations.len(), 3, "{model}");
        let rmse = |i: usize| evaluations[i]["test_rmse"].as_f64().unwrap();
        // Nothing bounds what async readers miss on a busy machine, so of its loss nothing is promised.
        if model != "async" {
            assert!(rmse(2) < rmse(0), "{model}: {} is not below {}", rmse(2), rmse(0));
        }
        assert!(lines.last().unwrap()["bytes_sent"].as_u64().unwrap() > 10_000, "{model} sends something");
    }
}

#[test]
fn a_model_of_another_kind_is_replaced_only_where_it_is_named() {
    let directory = directory();
    let path = directory.path();
    hemiola(path, "generate examples --examples 60 --features 30 --nonzeros 5 --relevant 5 --out clicks.svm");
    let kind = |model: &str| hemiola_models::model_directory::kind_of(&path.join(model)).unwrap();
    let topics = "train lda ratings.csv --topics 2 --epochs 1 --quiet";
    hemiola(path, "train mf ratings.csv --epochs 1 --quiet");
    assert_eq!((run(path, topics).status.code(), kind("ratings.model")), (Some(1), "mf".to_owned()));
    hemiola(path, &format!("{topics} --out ratings.model"));
    hemiola(path, topics);
    assert_eq!(kind("ratings.model"), "lda");
    // Both learn weights of classes.
    hemiola(path, "train mlr clicks.svm --epochs 1 --quiet");
    hemiola(path, "train l2mlr clicks.svm --epochs 1 --quiet");
}

/// What a run says of itself at first, and at last.
fn first_and_last(report: &Path) -> (Value, Value) {
    let mut lines = json_lines(report);
    (lines.remove(0), lines.pop().unwrap())
}

/// Bytes that workers were sent in a second.
fn received_per_second(summary: &Value) -> f64 {
    summary["bytes_received"].as_f64().unwrap() / summary["seconds"].as_f64().unwrap()
}

#[test]
fn a_budget_is_kept_and_its_priorities_differ() {
    let directory = directory();
    let path = directory.path();
    let simulate = |options: &str| {
        let cluster = "--nodes 4 --workers 1 --servers 1 --epochs 3 --time-per-unit 1ms --quiet --report r";
        hemiola(path, &format!("simulate mf ratings.csv {cluster} {options}"));
        first_and_last(&path.join("r"))
    };
    // 500 kbit are 62,500 bytes; all that workers receive comes from the one server.
    let (_, unlimited) = simulate("");
    assert!(received_per_second(&unlimited) > 62_500.0, "{unlimited}");
    let (_, usual) = simulate("--budget 500kbit");
    let mut courses = Vec::new();
    for (option, name) in [
        ("random", "random"),
        ("round-robin", "round-robin"),
        ("absolute", "absolute-magnitude"),
        ("relative", "relative-magnitude"),
    ] {
        let (start, summary) = simulate(&format!("--budget 500kbit --priority {option}"));
        assert_eq!(start["cluster"]["budget"], json!({ "bytes_per_second": 62_500, "priority": name }));
        assert!(received_per_second(&summary) < 62_500.0, "{option}: {summary}");
        assert!(!courses.contains(&summary), "{option} makes no difference");
        assert_eq!(summary == usual, option == "relative", "{option}");
        courses.push(summary);
    }

    let train = "train mf ratings.csv --processes 2 --workers 1 --epochs 10 --quiet --report r";
    hemiola(path, &format!("{train} --bandwidth 8mbit --priority absolute"));
    let (start, summary) = first_and_last(&path.join("r"));
    let budget = json!({ "bytes_per_second": 1_000_000, "priority": "absolute-magnitude" });
    assert_eq!(start["deployment"]["budget"], budget);
    assert!(received_per_second(&summary) < 1.05e6, "{summary}");
}

#[test]
fn numbers_rounded_on_the_wire_take_fewer_bytes_and_train_as_well() {
    let directory = directory();
    let path = directory.path();
    hemiola(path, "generate examples --examples 600 --features 300 --nonzeros 20 --relevant 50 --out clicks.svm");
    for (data, quality) in [("mf ratings.csv", "test_rmse"), ("mlr clicks.svm", "test_loss")] {
        let train = |wire: &str| {
            let common = "--consistency bsp --processes 2 --workers 1 --epochs 4 --quiet --report r";
            hemiola(path, &format!("train {data} {common} --wire {wire}"));
            let (start, summary) = first_and_last(&path.join("r"));
            assert_eq!(start["config"]["precision"], wire);
            let bytes = ["bytes_sent", "bytes_received"].map(|way| summary[way].as_f64().unwrap());
            (bytes, summary[quality].as_f64().unwrap())
        };
        let (exact_bytes, exact) = train("f32");
        for wire in ["f16", "bf16"] {
            let (bytes, rounded) = train(wire);
            let parts = [bytes[0] / exact_bytes[0], bytes[1] / exact_bytes[1]];
            assert!(parts.iter().all(|part| *part < 0.7), "{data} as {wire}: {parts:?} of the bytes");
            assert!(
                rounded != exact && (rounded / exact - 1.0).abs() < 0.01,
                "{data} as {wire}: {rounded}, not {exact}"
            );
        }
    }
}

#[test]
fn filters_are_learnt_alike_in_processes_and_drawn() {
    let directory = directory();
    // Stripes, as an idx file of one image.
    let (width, height) = (40u8, 30u8);
    let mut idx = vec![0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, height, 0, 0, 0, width];
    idx.extend((0..usize::from(width) * usize::from(height)).map(|at| (at * at % 251) as u8));
    std::fs::write(directory.path().join("stripes.idx"), idx).unwrap();
    let train = "train rica stripes.idx --patch 4 --patches 400 --epochs 2 --consistency bsp --quiet";
    hemiola(directory.path(), &format!("{train} --workers 2 --out a.model --picture a.png"));
    hemiola(directory.path(), &format!("{train} --processes 2 --out b.model --checkpoint saved --checkpoint-every 1"));
    assert_eq!(files(&directory.path().join("a.model")), files(&directory.path().join("b.model")));
    hemiola(directory.path(), &format!("{train} --workers 2 --out c.model --resume saved"));
    assert_eq!(files(&directory.path().join("a.model")), files(&directory.path().join("c.model")));
    let judged: Value = serde_json::from_str(&hemiola(directory.path(), "eval a.model stripes.idx --json")).unwrap();
    assert!(judged["lost"].as_f64().unwrap() < 1.0, "{judged}");
    // A picture is an image like any other.
    hemiola(directory.path(), "eval a.model a.png");
}

#[test]
fn a_cluster_is_simulated_the_same_way_twice() {
    let directory = directory();
    let path = directory.path();
    let common = "simulate mf ratings.csv --nodes 5 --workers 2 --servers 2 --epochs 2 --time-per-unit 1us --quiet";
    let said = hemiola(path, &format!("{common} --straggler 1:3 --pauses 5:1ms --report run.jsonl --plot run.svg"));
    assert_eq!(said, hemiola(path, &format!("{common} --straggler 1:3 --pauses 5:1ms")));
    assert_ne!(said, hemiola(path, common), "a straggler and pauses change what happens");
    for other in ["--bandwidth 10mbit", "--latency 5ms", "--jitter 5ms", "--consistency bsp", "--staleness 0"] {
        assert_ne!(hemiola(path, common), hemiola(path, &format!("{common} {other}")), "{other}");
    }
    let lines = json_lines(&path.join("run.jsonl"));
    assert_eq!(lines.first().unwrap()["cluster"]["nodes"], 5);
    assert_eq!(lines.last().unwrap()["event"], "summary");
    assert!(fs::read_to_string(path.join("run.svg")).unwrap().contains("virtual seconds"));
}

#[test]
fn a_figure_is_made_with_its_claim_beside_it() {
    let directory = directory();
    let path = directory.path();
    assert_eq!(hemiola(path, "reproduce --list").lines().count(), hemiola_models::reproduce::ALL.len());
    let said = hemiola(path, "reproduce vap-cost --nodes 3 --ratings 4000");
    assert!(said.contains("paper   Bounding the value") && said.contains("verdict "), "{said}");
    let finding: Value = serde_json::from_str(&fs::read_to_string(path.join("vap-cost.json")).unwrap()).unwrap();
    assert_eq!(finding["panels"].as_array().unwrap().len(), 2);
    assert!(fs::read_to_string(path.join("vap-cost.svg")).unwrap().contains("value bound"));
    let said = hemiola(path, "reproduce bosen-frequency --nodes 3 --documents 30 --topics 5 --passes 8");
    assert!(said.contains("paper   By magnitude") && said.contains("verdict "), "{said}");
    let finding: Value = serde_json::from_str(&fs::read_to_string(path.join("bosen-frequency.json")).unwrap()).unwrap();
    assert_eq!((&finding["scale"]["documents"], &finding["scale"]["topics"]), (&30.into(), &5.into()));
}

#[test]
fn splash_factorises_alike_on_every_driver() {
    let directory = directory();
    let path = directory.path();
    let common = "ratings.csv --rank 4 --epochs 4 --engine splash";
    let said = hemiola(path, &format!("train mf {common} --workers 2 --report run.jsonl --out threads.model"));
    assert!(said.contains("held-out RMSE  0.") && said.contains("hemiola recommend threads.model"), "{said}");
    assert_eq!(json_lines(&path.join("run.jsonl"))[0]["config"]["engine"]["name"], "splash");
    hemiola(path, &format!("train mf {common} --quiet --processes 2 --workers 1 --servers 2 --out tcp.model"));
    assert_eq!(files(&path.join("threads.model")), files(&path.join("tcp.model")));
    let factors = |model: &str| fs::read(path.join(model).join("factors.safetensors")).unwrap();
    for (option, model) in [("--synchronisations 1", "s.model"), ("--degree 1", "d.model"), ("--no-biases", "n.model")]
    {
        hemiola(path, &format!("train mf {common} --quiet --workers 2 {option} --out {model}"));
        assert!(factors("threads.model") != factors(model), "{option}");
    }
    let judged = hemiola(path, "eval threads.model ratings.csv");
    assert!(judged.contains("0."), "{judged}");
    let simulated = hemiola(path, &format!("simulate mf {common} --nodes 2 --workers 1 --time-per-unit 1us"));
    assert!(simulated.contains("for 4 epochs, RMSE 0."), "{simulated}");
}
