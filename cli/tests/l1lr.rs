//! `hemiola train l1lr`, and what `eval` and `predict` make of its models.

use std::path::Path;
use std::process::Command;

/// Runs the program in `folder`, which must succeed; what it printed.
fn hemiola(folder: &Path, arguments: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_hemiola"))
        .current_dir(folder)
        .args(arguments.split_whitespace())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments}: {}", text(output.stderr));
    text(output.stdout)
}

/// Examples that feature 1 speaks for and feature 2 against, while 20 others say nothing.
fn clicks() -> String {
    let mut text = String::new();
    for row in 0..600u32 {
        let chance =
            |salt: u32| (row.wrapping_mul(2_654_435_761) ^ salt.wrapping_mul(40_503)).wrapping_mul(2_246_822_519) >> 16;
        let (one, two) = (chance(1) % 2, chance(2) % 2);
        let label = if one != two && chance(3) % 8 != 0 { one } else { chance(4) % 2 };
        let noise = 3 + chance(5) % 20;
        text.push_str(&format!("{label} 1:{one} 2:{two} {noise}:1\n"));
    }
    text
}

#[test]
fn a_lambda_is_chosen_and_the_model_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("clicks.svm"), clicks()).unwrap();
    let said = hemiola(path, "train l1lr clicks.svm --report run.jsonl --plot run.svg --weights weights.txt");
    assert!(said.contains("AUC 0.8") && said.contains("hemiola eval clicks.model clicks.svm"), "{said}");
    let report = std::fs::read_to_string(path.join("run.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> = report.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let tried = lines.iter().filter(|line| line["event"] == "evaluation").count();
    let summary = lines.last().unwrap();
    assert!((5..=30).contains(&tried) && summary["test"]["auc"].as_f64().unwrap() > 0.8, "{report}");
    assert!(std::fs::read_to_string(path.join("run.svg")).unwrap().contains("held out"));
    let weights = std::fs::read_to_string(path.join("weights.txt")).unwrap();
    let weight = |feature: &str| -> f64 {
        let line = weights.lines().find(|line| line.split('\t').next() == Some(feature));
        line.and_then(|line| line.split('\t').nth(1)).map_or(0.0, |weight| weight.parse().unwrap())
    };
    assert!(weights.starts_with("bias\t") && weight("1") > 1.0 && weight("2") < -1.0, "{weights}");
    assert_eq!(weights.lines().count() as u64, summary["nonzeros"].as_u64().unwrap() + 1);

    let judged = hemiola(path, "eval clicks.model clicks.svm");
    assert!(judged.contains("AUC       0.8") && judged.contains("examples  600"), "{judged}");
    let judged: serde_json::Value =
        serde_json::from_str(&hemiola(path, "eval clicks.model clicks.svm --json")).unwrap();
    assert_eq!(judged["nonzeros"], summary["nonzeros"]);
    let predicted = hemiola(path, "predict clicks.model clicks.svm --probabilities");
    assert!(predicted.starts_with("class,0,1\n") && predicted.lines().count() == 601);
    for line in predicted.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let second: f64 = fields[2].parse().unwrap();
        assert!((fields[0] == "1") == (second >= 0.5), "{line}");
    }
}

#[test]
fn threads_and_paths_come_to_the_same_weights() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("clicks.svm"), clicks()).unwrap();
    let common = "train l1lr clicks.svm --lambda 0.01 --holdout-every 5 --quiet";
    for (options, model) in [
        ("--workers 1", "one.model"),
        ("--workers 3", "three.model"),
        ("--path 4 --tolerance 1e-10", "path.model"),
        ("--no-bias --l2 0.1 --non-negative --blocks 3 --delay 1", "other.model"),
    ] {
        hemiola(path, &format!("{common} {options} --out {model}"));
    }
    let weights = |model: &str| std::fs::read(path.join(model).join("weights.safetensors")).unwrap();
    assert!(weights("one.model") == weights("three.model") && weights("one.model") != weights("other.model"));
    let loss = |model: &str| {
        let judged = hemiola(path, &format!("eval {model} clicks.svm --json"));
        serde_json::from_str::<serde_json::Value>(&judged).unwrap()["loss"].as_f64().unwrap()
    };
    assert!((loss("path.model") - loss("one.model")).abs() < 1e-4);
}

#[test]
fn clicks_with_hashed_features_are_learnt() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let line = |row: u32| {
        let label = u32::from(row.is_multiple_of(3));
        let told = if label == 1 { "68fd1e64" } else { "80e26c9b" };
        format!("{label}\t{row}{}{}\t{told}\n", "\t".repeat(12), "\t".repeat(25))
    };
    std::fs::write(path.join("day.tsv"), (0..90).map(line).collect::<String>()).unwrap();
    hemiola(path, "train l1lr day.tsv --bits 12 --lambda 0.01 --quiet");
    let judged: serde_json::Value = serde_json::from_str(&hemiola(path, "eval day.model day.tsv --json")).unwrap();
    assert_eq!((judged["auc"].as_f64(), judged["accuracy"].as_f64()), (Some(1.0), Some(1.0)));
    let description = std::fs::read_to_string(path.join("day.model/model.json")).unwrap();
    assert!(description.contains("\"hashed_bits\": 12"), "{description}");
}

#[test]
fn processes_and_a_simulated_cluster_fit_it_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("clicks.svm"), clicks()).unwrap();
    let common = "train l1lr clicks.svm --lambda 0.01 --blocks 5 --workers 1 --out";
    let said = hemiola(
        path,
        &format!("{common} two.model --processes 2 --delay sequential --report run.jsonl --plot run.svg"),
    );
    assert!(said.contains("% of keys filtered") && said.contains("worker 1 ") && !said.contains("worker 2 "), "{said}");
    let report = std::fs::read_to_string(path.join("run.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> = report.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = lines.last().unwrap();
    assert_eq!(lines[0]["config"]["delay"], "sequential");
    assert!(summary["bytes_sent"].as_u64().unwrap() > 0 && summary["keys"]["pushed"].as_u64().unwrap() > 0, "{report}");
    assert!(lines.iter().filter(|line| line["event"] == "evaluation").count() > 3, "{report}");

    hemiola(path, &format!("{common} other.model --processes 2 --servers 2 --delay sequential --quiet"));
    let weights = |model: &str| std::fs::read(path.join(model).join("weights.safetensors")).unwrap();
    assert!(weights("two.model") == weights("other.model"), "the same bits with any number of servers");
    hemiola(path, &format!("{common} delayed.model --processes 2 --delay 3 --quiet"));
    hemiola(path, &format!("{common} threads.model --quiet"));
    let loss = |model: &str| {
        let judged = hemiola(path, &format!("eval {model} clicks.svm --json"));
        serde_json::from_str::<serde_json::Value>(&judged).unwrap()["loss"].as_f64().unwrap()
    };
    for model in ["two.model", "delayed.model"] {
        assert!((loss(model) - loss("threads.model")).abs() < 1e-3, "{model}");
    }

    let simulated = "simulate l1lr clicks.svm --lambda 0.01 --nodes 3 --straggler 1:3 --time-per-unit 1us --delay 2";
    let said = hemiola(path, &format!("{simulated} --report sim.jsonl --plot sim.svg"));
    assert!(said.contains("virtual time") && said.contains("held out"), "{said}");
    assert_eq!(said, hemiola(path, &format!("{simulated} --quiet")), "one seed, one outcome");
    assert!(std::fs::read_to_string(path.join("sim.svg")).unwrap().contains("virtual seconds"));
}

#[test]
fn filters_save_bytes_and_change_nothing_that_matters() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    hemiola(path, "generate examples --examples 2000 --features 20000 --out many.svm");
    let summary = |filters: &str| {
        let common = "simulate l1lr many.svm --lambda 1e-2 --blocks 16 --nodes 2 --workers 1 --servers 1 --passes 100";
        let said = hemiola(
            path,
            &format!(
                "{common} --quiet --delay sequential --tolerance 1e-9 --time-per-unit 10ns --filters {filters} --report run.jsonl"
            ),
        );
        assert!(said.contains(" MB from workers, ") && said.contains(" MB to them"), "{said}");
        let report = std::fs::read_to_string(path.join("run.jsonl")).unwrap();
        let lines: Vec<serde_json::Value> = report.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let objective = lines.iter().rev().find_map(|line| line["objective"].as_f64()).unwrap();
        (objective, lines.last().unwrap().clone(), said)
    };
    let (plain, without, _) = summary("none");
    let (objective, with, said) = summary("key-cache,zstd,kkt");
    assert!((objective / plain - 1.0).abs() < 1e-3, "{objective}, without filters {plain}");
    for (field, times) in [("bytes_sent", 10), ("bytes_received", 10)] {
        let bytes = |summary: &serde_json::Value| summary[field].as_u64().unwrap();
        assert!(bytes(&with) * times < bytes(&without), "{field}: {} of {}", bytes(&with), bytes(&without));
    }
    let names: Vec<String> = with["filters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|saving| format!("{} {}", saving["filter"].as_str().unwrap(), saving["direction"].as_str().unwrap()))
        .collect();
    let expected = ["kkt updates", "kkt rows", "key-cache updates", "zstd updates", "key-cache rows", "zstd rows"];
    assert_eq!(names, expected);
    assert!(said.contains("kkt            updates of 'steps': "), "{said}");
    for (list, name) in [("random-skip:0.05,key-cache,zstd", "random-skip"), ("significant:5,kkt", "significant")] {
        let (objective, with, said) = summary(list);
        assert!((objective / plain - 1.0).abs() < 2e-2, "{list}: {objective}, without filters {plain}");
        let savings = with["filters"].as_array().unwrap();
        let saving = savings.iter().find(|saving| saving["filter"] == name).expect("it is reported");
        let [before, after] = ["bytes_in", "bytes_out"].map(|bytes| saving[bytes].as_u64().unwrap());
        assert!(saving["direction"] == "updates" && after < before, "{list}: {before} became {after}");
        assert!(said.contains(&format!("{name:<14} updates of 'steps': ")), "{said}");
    }
}

#[test]
fn what_memory_does_not_hold_comes_to_the_same_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    hemiola(path, "generate examples --examples 20000 --features 4000 --relevant 100 --seed 7 --out big.svm");
    hemiola(path, "generate examples --examples 1000 --features 4000 --relevant 100 --seed 8 --out other.svm");
    std::fs::create_dir(path.join("scratch")).unwrap();
    let weights = |model: &str| std::fs::read(path.join(model).join("weights.safetensors")).unwrap();
    let description = |model: &str| {
        let text = std::fs::read_to_string(path.join(model).join("model.json")).unwrap();
        let mut description: serde_json::Value = serde_json::from_str(&text).unwrap();
        description["metrics"]["seconds"] = serde_json::Value::Null;
        description
    };
    // Room for the same Newton steps; columns come from a file in any case.
    for options in ["--lambda 1e-3", "--path 5 --delay 1 --test other.svm", "--lambda 1e-4 --no-holdout --no-bias"] {
        hemiola(path, &format!("train l1lr big.svm --quiet --workers 2 {options} --out memory.model"));
        let limited = format!("{options} --memory 400mb --scratch scratch --out disk.model");
        hemiola(path, &format!("train l1lr big.svm --quiet --workers 2 {limited}"));
        assert!(weights("memory.model") == weights("disk.model"), "{options}");
        assert_eq!(description("memory.model"), description("disk.model"), "{options}");
        assert_eq!(std::fs::read_dir(path.join("scratch")).unwrap().count(), 0, "{options}");
    }
}

#[test]
fn weights_are_called_as_the_header_calls_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let line = |row: u32| format!("{},{},{}\n", row % 2, if row % 2 == 1 { "yes" } else { "no" }, row % 7);
    let text: String = ["\"likes, tea\",label,age\n".to_owned()].into_iter().chain((0..200).map(line)).collect();
    std::fs::write(path.join("people.csv"), text).unwrap();
    for memory in ["", "--memory 64mb"] {
        hemiola(path, &format!("train l1lr people.csv --lambda 0.01 --quiet --weights weights.txt {memory}"));
        let weights = std::fs::read_to_string(path.join("weights.txt")).unwrap();
        assert!(weights.lines().nth(1).unwrap().starts_with("likes, tea\t"), "{weights}");
    }
}
