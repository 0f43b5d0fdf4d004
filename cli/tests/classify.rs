//! `hemiola eval` and `hemiola predict` with a softmax regression.

use hemiola_models::Names;
use hemiola_models::mlr::model::MlrModel;
use serde_json::json;
use std::path::Path;
use std::process::Command;

/// Runs the program in `folder`; its exit code, and what it printed.
fn hemiola(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_hemiola")).current_dir(folder).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_classifier_is_judged_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let mut classes = Names::default();
    ["no", "yes"].iter().for_each(|name| assert!(classes.intern(name).is_ok()));
    // One feature speaks for yes, the other for no; so does the bias.
    let weights = [-2.0, 2.0, 2.0, -2.0, 0.5, -0.5];
    MlrModel::new(classes, &weights, json!({}), json!({})).save(&folder.path().join("m.model")).unwrap();
    write("good.csv", "a,b,label\n1,0,yes\n0,1,no\n0,0,yes\n2,1,yes\n");
    write("other.csv", "1,0,maybe\n");
    write("wide.csv", "1,0,3,yes\n");

    let (code, out, _) = hemiola(folder.path(), &["eval", "m.model", "good.csv", "--json"]);
    assert_eq!(code, Some(0));
    let line: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&line["accuracy"], &line["examples"]), (&json!(0.75), &json!(4)));
    assert_eq!(line["confusion"], json!([[1, 0], [1, 2]]));
    let (code, out, _) = hemiola(folder.path(), &["eval", "m.model", "good.csv"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("accuracy  0.7500\n") && out.contains("yes,1.0000,0.6667,1,2\n"), "{out}");
    assert_eq!(hemiola(folder.path(), &["predict", "m.model", "good.csv"]).1, "yes\nno\nno\nyes\n");
    write("bare.csv", "1,0\n0,1\n");
    assert_eq!(hemiola(folder.path(), &["predict", "m.model", "bare.csv", "--label", "none"]).1, "yes\nno\n");
    let shares = hemiola(folder.path(), &["predict", "m.model", "good.csv", "--probabilities"]).1;
    assert!(shares.starts_with("class,no,yes\nyes,0.047426,0.952574\n"), "{shares}");

    for (arguments, sentence) in [
        (&["eval", "m.model", "other.csv"][..], "other.csv:1: class 'maybe' does not occur in what was trained on"),
        (&["eval", "m.model", "wide.csv"], "wide.csv: the examples have 3 features; expected 2, as the model has"),
        (&["predict", "m.model", "wide.csv"], "wide.csv: the examples have 3 features; expected 2, as the model has"),
        (
            &["predict", "m.model", "bare.csv"],
            "bare.csv: the examples have 1 features; expected 2, as the model has; give --label none if no column is a label",
        ),
        (&["eval", "m.model", "none"], "none: cannot be read: No such file or directory (os error 2)"),
    ] {
        let (code, _, error) = hemiola(folder.path(), arguments);
        assert_eq!((code, error), (Some(1), format!("hemiola: {sentence}\n")), "{arguments:?}");
    }
}

/// What a command says that must succeed.
fn succeeded(folder: &Path, arguments: &str) -> String {
    let (code, said, error) = hemiola(folder, &arguments.split_whitespace().collect::<Vec<_>>());
    assert_eq!(code, Some(0), "{arguments}: {error}");
    said
}

/// Examples of three classes in two features, apart but for noise.
fn flowers() -> String {
    let mut text = String::from("width,height,species\n");
    for i in 0..240u32 {
        let noise = |salt: u32| f64::from((i * 2654435 + salt * 40503) % 1000) / 1000.0 - 0.5;
        let (x, y, name) = [(0.0, 0.0, "iris"), (2.0, 0.0, "rose"), (0.0, 2.0, "tulip")][i as usize % 3];
        text.push_str(&format!("{:.3},{:.3},{name}\n", x + noise(1), y + noise(2)));
    }
    text
}

#[test]
fn classes_are_learnt_alike_on_every_driver_and_after_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("flowers.csv"), flowers()).unwrap();
    let run = |arguments: &str| succeeded(path, arguments);
    let common = "train mlr flowers.csv --label species --holdout-every 4 --clocks-per-epoch 3";
    let said = run(&format!("{common} --epochs 8 --workers 2 --report run.jsonl --plot run.svg --out threads.model"));
    assert!(said.contains("held out       100.00 % right") && said.contains("hemiola eval threads.model"), "{said}");
    assert!(std::fs::read_to_string(path.join("run.svg")).unwrap().contains("log loss"));
    std::fs::write(path.join("swapped.csv"), flowers().replace("width,height", "height,width")).unwrap();
    let (code, _, error) = hemiola(path, &["eval", "threads.model", "swapped.csv", "--label", "species"]);
    assert_eq!(code, Some(1));
    assert!(error.starts_with("hemiola: swapped.csv:1: column 1 is called 'height'; expected 'width'"), "{error}");
    // The label is known by not being a feature, wherever it is.
    let mut first = String::new();
    for line in flowers().lines() {
        let (features, label) = line.rsplit_once(',').unwrap();
        first.push_str(&format!("{label},{features}\n"));
    }
    std::fs::write(path.join("first.csv"), first).unwrap();
    assert!(run("eval threads.model first.csv").contains("accuracy  1.0000"));
    assert_eq!(run("predict threads.model first.csv"), run("predict threads.model flowers.csv --label species"));
    let bsp = format!("{common} --consistency bsp --quiet");
    let weights = |model: &str| std::fs::read(path.join(model).join("weights.safetensors")).unwrap();
    run(&format!("{bsp} --epochs 8 --workers 2 --out bsp.model"));
    run(&format!("{bsp} --epochs 8 --processes 2 --workers 1 --servers 2 --out tcp.model"));
    assert!(weights("bsp.model") == weights("tcp.model"));
    run(&format!("{bsp} --epochs 4 --workers 2 --checkpoint saved --checkpoint-every 2 --out half.model"));
    run(&format!("{bsp} --epochs 8 --processes 2 --workers 1 --resume saved --out resumed.model"));
    assert!(weights("bsp.model") == weights("resumed.model") && weights("bsp.model") != weights("half.model"));
}

#[test]
fn splash_learns_alike_on_every_driver() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("flowers.csv"), flowers()).unwrap();
    let run = |arguments: &str| succeeded(path, arguments);
    let common = "flowers.csv --label species --holdout-every 4 --engine splash --epochs 6";
    let said = run(&format!("train mlr {common} --workers 2 --report run.jsonl --plot run.svg --out threads.model"));
    assert!(said.contains("held out       100.00 % right") && said.contains("hemiola eval threads.model"), "{said}");
    let report = std::fs::read_to_string(path.join("run.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> = report.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 8, "{report}");
    assert_eq!(lines[0]["config"]["engine"]["degree"], json!("largest"));
    assert_eq!((&lines[6]["epoch"], &lines[6]["clock"]), (&json!(6), &json!(30)), "{report}");
    let weights = |model: &str| std::fs::read(path.join(model).join("weights.safetensors")).unwrap();
    run(&format!("train mlr {common} --quiet --processes 2 --workers 1 --servers 2 --out tcp.model"));
    assert!(weights("threads.model") == weights("tcp.model"));
    // Every option of the engine makes a difference.
    for (option, model) in
        [("--synchronisations 2", "two.model"), ("--degree 1", "one.model"), ("--rate 0.2", "r.model")]
    {
        run(&format!("train mlr {common} --quiet --workers 2 {option} --out {model}"));
        assert!(weights("threads.model") != weights(model), "{option}");
    }
    run(&format!("train mlr {common} --quiet --workers 4 --degree auto --out auto.model"));
    let right = |model: &str| run(&format!("eval {model} flowers.csv --label species")).contains("accuracy  1.0000");
    assert!(right("threads.model") && right("auto.model"));
    for engine in ["splash", "tables"] {
        let simulated = run(&format!(
            "simulate mlr flowers.csv --label species --epochs 6 --nodes 2 --workers 1 --time-per-unit 1us --engine {engine}"
        ));
        assert!(simulated.contains("for 6 epochs, loss 0.") && simulated.contains("traffic"), "{simulated}");
    }
}

#[test]
fn what_to_type_next_reads_as_training_did() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("flowers.csv"), flowers()).unwrap();
    for model in ["mlr", "l2mlr", "dml --dimension 2"] {
        let reading = "--format delimited --label species";
        let said = succeeded(path, &format!("train {model} flowers.csv {reading} --epochs 2 --out flowers.model"));
        let next = said.split("next           hemiola ").nth(1).unwrap().lines().next().unwrap();
        assert!(next.ends_with("flowers.model flowers.csv --format delimited --label species"), "{next}");
        succeeded(path, next);
    }
}

#[test]
fn features_that_a_model_does_not_know_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let write = |name: &str, text: &str| std::fs::write(path.join(name), text).unwrap();
    write("two.svm", &"-1 1:1\n1 2:1\n".repeat(20));
    write("more.svm", "-1 1:1 7:1 8:1\n1 2:1 7:1\n");
    write("other.svm", "-1\n1 7:1\n");
    write("bare.svm", "-1 1:0\n");
    let told = "features that the model does not know: 2, 60 % of the entries";
    for model in ["mlr", "l2mlr", "l1lr --lambda 0.01", "l1lr --lambda 0.01 --memory 1gb", "dml --dimension 1"] {
        let said = |arguments: &str| {
            let (code, _, said) = hemiola(path, &arguments.split_whitespace().collect::<Vec<_>>());
            (code, said)
        };
        let train = format!("train {model} two.svm --out two.model");
        let (code, loud) = said(&format!("{train} --test more.svm"));
        assert!(code == Some(0) && loud.lines().any(|line| line == told), "{model}: {loud}");
        assert_eq!(said(&format!("{train} --test more.svm --quiet")), (Some(0), String::new()), "{model}");
        let refused = "hemiola: other.svm: has no feature that the model knows; expected features below 3\n";
        for command in ["eval two.model", "predict two.model"] {
            assert_eq!(said(&format!("{command} more.svm")), (Some(0), format!("{told}\n")), "{model}");
            assert_eq!(said(&format!("{command} other.svm")), (Some(1), refused.to_owned()), "{model}");
            assert_eq!(said(&format!("{command} bare.svm")), (Some(0), String::new()), "{model}");
        }
        assert_eq!(said(&format!("{train} --test other.svm")), (Some(1), refused.to_owned()), "{model}");
    }
}

#[test]
fn what_was_read_is_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("flowers.csv"), flowers()).unwrap();
    std::fs::write(folder.path().join("two.svm"), "-1 1:1\n1 2:1\n".repeat(20)).unwrap();
    for (arguments, told) in [
        ("mlr flowers.csv --holdout-every 4", "180 and 60 held out, 2 features, 3 classes, read as delimited"),
        ("l2mlr two.svm --no-holdout", "40, 3 features, 2 classes, read as libsvm"),
        ("dml two.svm --dimension 1 --test two.svm", "40 and 40 held out, 3 features, 2 classes, read as libsvm"),
        (
            "l1lr two.svm --lambda 1 --memory 1gb --holdout-every 4",
            "30 and 10 held out, 3 features, 2 classes, read as libsvm",
        ),
    ] {
        let said = succeeded(folder.path(), &format!("train {arguments} --out any.model"));
        assert!(said.starts_with(&format!("examples       {told}\n")), "{arguments}: {said}");
    }
}

#[test]
fn a_training_that_makes_the_weights_far_worse_leaves_no_model() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("flowers.csv"), flowers()).unwrap();
    for way in ["", " --no-holdout --sync matrix", " --processes 2 --sync factors"] {
        let arguments = format!("train mlr flowers.csv --rate 1e9 --epochs 3 --report run.jsonl{way}");
        let (code, _, said) = hemiola(folder.path(), &arguments.split(' ').collect::<Vec<_>>());
        let sentence = said.lines().last().unwrap();
        assert!(code == Some(1) && sentence.starts_with("hemiola: the loss ends at "), "{way}: {said}");
        assert!(sentence.ends_with("the steps are too large; try a --rate below 1000000000"), "{way}: {said}");
        assert!(!folder.path().join("flowers.model").exists(), "{way}");
    }
}
