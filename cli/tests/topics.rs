//! Topic models on the command line: documents in every format are judged, explained and summed up alike.

use hemiola_models::corpus::{Corpus, Reading};
use hemiola_models::lda::model::LdaModel;
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Standard output of a command that succeeds.
fn hemiola(directory: &Path, arguments: &str) -> String {
    let output = run(directory, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "hemiola {arguments}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Standard error of a command that succeeds or, as it should, does not.
fn said(directory: &Path, arguments: &str, success: bool) -> String {
    let output = run(directory, arguments);
    assert_eq!(output.status.success(), success, "hemiola {arguments}");
    String::from_utf8(output.stderr).unwrap()
}

fn run(directory: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hemiola"))
        .args(arguments.split_whitespace())
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// A directory with `docword.made.txt`, `vocab.made.txt` and `made.model`, whose topic is a word's number by 4.
fn directory() -> (tempfile::TempDir, Corpus) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let shape = "--documents 60 --words 40 --topics 3 --tokens-per-document 20 --seed 5";
    hemiola(path, &format!("generate corpus {shape} --out docword.made.txt"));
    let how = Reading { vocabulary: Some(path.join("vocab.made.txt")), ..Reading::default() };
    let corpus = Corpus::read(&[path.join("docword.made.txt")], &how).unwrap();
    assert_eq!((corpus.documents(), corpus.vocabulary.len()), (60, 40));
    let mut word_topic = vec![0.0; 40 * 4];
    for document in 0..60 {
        corpus.document(document).iter().for_each(|&word| word_topic[word as usize * 4 + word as usize % 4] += 1.0);
    }
    let (config, metrics) = (json!({}), json!({}));
    let vocabulary = corpus.vocabulary.clone();
    let model = LdaModel { vocabulary, alpha: vec![0.5; 4], beta: 0.1, word_topic, config, metrics };
    model.save(&path.join("made.model")).unwrap();
    (directory, corpus)
}

#[test]
fn every_format_of_the_same_documents_is_judged_alike() {
    let (directory, corpus) = directory();
    let path = directory.path();
    let (mut pairs, mut prose) = (String::new(), String::new());
    for document in 0..corpus.documents() {
        let words = corpus.document(document);
        let distinct = words.chunk_by(|one, next| one == next);
        write!(pairs, "{}", distinct.clone().count()).unwrap();
        distinct.for_each(|same| write!(pairs, " {}:{}", same[0], same.len()).unwrap());
        pairs.push('\n');
        let named: Vec<&str> = words.iter().map(|&word| corpus.vocabulary.name(word)).collect();
        writeln!(prose, "{}.", named.join(", ").to_uppercase()).unwrap();
    }
    fs::write(path.join("pairs.dat"), pairs).unwrap();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, prose.as_bytes()).unwrap();
    fs::write(path.join("prose.gz"), packed.finish().unwrap()).unwrap();
    let judged = |data: &str| -> Value {
        serde_json::from_str(&hemiola(path, &format!("eval made.model --json {data}"))).unwrap()
    };
    let one = judged("docword.made.txt --vocabulary vocab.made.txt");
    assert_eq!(one, judged("pairs.dat --vocabulary vocab.made.txt"));
    assert_eq!(one, judged("prose.gz"));
    assert_eq!(one, judged("docword.made.txt --vocabulary vocab.made.txt --format docword"));
    assert_eq!((&one["documents"], &one["unknown_words"]), (&json!(60), &json!(0)));
    assert_eq!(one["words"], json!(corpus.tokens()));
    let (likelihood, perplexity) = (one["log_likelihood"].as_f64().unwrap(), one["perplexity"].as_f64().unwrap());
    assert!(likelihood < -1.0 && (perplexity.ln() + likelihood).abs() < 1e-9 && perplexity < 60.0, "{one}");

    fs::write(path.join("more.txt"), "w1 w2 w3 w4 w5 w6 w7 something unheard of\n").unwrap();
    assert_eq!(judged("prose.gz more.txt")["unknown_words"], json!(3));
    let said = hemiola(path, "eval made.model prose.gz");
    assert!(said.starts_with(&format!("log-likelihood  {likelihood:.4} a held-out word\nperplexity ")), "{said}");
}

#[test]
fn documents_and_topics_are_explained() {
    let (directory, _) = directory();
    let path = directory.path();
    fs::write(path.join("some.txt"), "w2 w6 w10 w2\n\nw4\n").unwrap();
    let lines = hemiola(path, "predict made.model some.txt --topics 2");
    let lines: Vec<&str> = lines.lines().collect();
    // Word w2 is number 1, and so on by steps of 4.
    assert!(lines.len() == 3 && lines[0].starts_with("1,1,0.") && lines[2].starts_with("3,3,0."), "{lines:?}");
    assert!(lines[1].starts_with("2,0,0.2500,1,0.2500"), "{lines:?}");
    assert!(lines.iter().all(|line| line.split(',').count() == 5));
    assert_eq!(hemiola(path, "predict made.model some.txt").lines().next().unwrap().split(',').count(), 9);
    fs::write(path.join("unheard.txt"), "nothing of it\nw4 again\n").unwrap();
    assert_eq!(
        said(path, "predict made.model some.txt unheard.txt", true),
        "documents without a word that the model knows: 2 of 5; their topics tell nothing\n"
    );
    assert_eq!(said(path, "predict made.model docword.made.txt --vocabulary vocab.made.txt", true), "");

    let topics = hemiola(path, "topics made.model --words 3");
    let lines: Vec<&str> = topics.lines().collect();
    assert_eq!((lines.len(), lines[0]), (5, "topic,share,words"));
    for (topic, line) in lines[1..].iter().enumerate() {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields[0], topic.to_string());
        let numbers: Vec<usize> =
            fields[2].split(' ').map(|word| word.strip_prefix('w').unwrap().parse::<usize>().unwrap()).collect();
        assert!(numbers.len() == 3 && numbers.iter().all(|number| (number - 1) % 4 == topic), "{line}");
    }
}

#[test]
fn documents_of_numbers_need_the_words_that_the_model_has() {
    let (directory, _) = directory();
    let path = directory.path();
    let why = "is UCI bag-of-words, whose words are numbers, and those that are known are not";
    let refused = format!("hemiola: docword.made.txt: {why}; expected a list of its words by --vocabulary\n");
    assert_eq!(said(path, "predict made.model docword.made.txt", false), refused);
    assert_eq!(said(path, "eval made.model docword.made.txt", false), refused);
    let small = "--topics 2 --epochs 2 --quiet";
    fs::write(path.join("some.txt"), "w2 w6 w10 w2\nw4\n").unwrap();
    assert_eq!(said(path, &format!("train lda some.txt --test docword.made.txt {small}"), false), refused);
    hemiola(path, &format!("train lda docword.made.txt --test docword.made.txt {small} --out numbers.model"));
    let judged = hemiola(path, "eval numbers.model docword.made.txt");
    assert!(judged.ends_with("unknown words   0\n"), "{judged}");
}

#[test]
fn a_seed_gives_one_corpus() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let made = |options: &str| {
        hemiola(path, &format!("generate corpus --documents 20 --words 30 --out x.txt {options}"));
        fs::read(path.join("x.txt")).unwrap()
    };
    let one = made("");
    assert!(path.join("vocab.x.txt").exists());
    assert!(one == made("--seed 1") && one != made("--seed 2"));
    assert!(one != made("--topics 3") && one != made("--tokens-per-document 50"));
}

#[test]
fn topics_are_found_judged_and_the_same_on_every_driver() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let shape = "--documents 300 --words 120 --topics 4 --tokens-per-document 40";
    hemiola(path, &format!("generate corpus {shape} --out docword.made.txt"));
    let common = "train lda docword.made.txt --vocabulary vocab.made.txt --topics 4 --epochs 12 --evaluate-every 4";
    let said =
        hemiola(path, &format!("{common} --holdout-every 10 --report run.jsonl --plot run.svg --out made.model"));
    assert!(said.contains("held out       -") && said.contains("hemiola topics made.model"), "{said}");
    let report = fs::read_to_string(path.join("run.jsonl")).unwrap();
    let lines: Vec<Value> = report.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let likelihoods: Vec<f64> = lines.iter().filter_map(|line| line["objective"].as_f64()).collect();
    assert!(likelihoods.len() == 3 && likelihoods.iter().all(|likelihood| *likelihood < 0.0), "{likelihoods:?}");
    let held_out = lines.last().unwrap()["test_log_likelihood"].as_f64().unwrap();
    assert!(held_out > -(120f64.ln()), "{held_out}: all words alike would be better");
    assert!(fs::read_to_string(path.join("run.svg")).unwrap().contains("log-likelihood a word"));
    assert_eq!(hemiola(path, "topics made.model").lines().count(), 5);
    hemiola(path, "eval made.model docword.made.txt --vocabulary vocab.made.txt");

    let bsp = format!("{common} --consistency bsp --clocks-per-epoch 2 --quiet");
    hemiola(path, &format!("{bsp} --workers 2 --out threads.model"));
    hemiola(path, &format!("{bsp} --processes 2 --workers 1 --servers 2 --out processes.model"));
    let cluster = "--nodes 3 --time-per-unit 1us --quiet --topics 4 --epochs 2";
    let simulate = || hemiola(path, &format!("simulate lda docword.made.txt {cluster}"));
    assert!(simulate() == simulate() && simulate().contains("for 2 epochs, log-likelihood -"));
    let counts = |model: &str| LdaModel::load(&path.join(model)).unwrap().word_topic;
    assert!(counts("threads.model") == counts("processes.model"));
    for sampler in ["sparse", "mh"] {
        hemiola(path, &format!("{common} --sampler {sampler} --processes 2 --workers 1 --out other.model"));
        assert_eq!(counts("other.model").iter().sum::<f32>(), counts("threads.model").iter().sum::<f32>());
    }
}

#[test]
fn splash_finds_topics_on_every_driver() {
    let (directory, _) = directory();
    let path = directory.path();
    let common = "docword.made.txt --vocabulary vocab.made.txt --topics 3 --epochs 6 --engine splash";
    let said = hemiola(path, &format!("train lda {common} --workers 2 --holdout 0.1 --out threads.model"));
    assert!(said.contains("log-likelihood -") && said.contains("held out       -"), "{said}");
    let counts = |model: &str| fs::read(path.join(model).join("topics.safetensors")).unwrap();
    hemiola(path, &format!("train lda {common} --quiet --processes 2 --workers 1 --holdout 0.1 --out tcp.model"));
    assert!(counts("threads.model") == counts("tcp.model"));
    for (option, model) in [("--samples 4", "four.model"), ("--synchronisations 3", "three.model")] {
        hemiola(path, &format!("train lda {common} --quiet --workers 2 --holdout 0.1 {option} --out {model}"));
        assert!(counts("threads.model") != counts(model), "{option}");
    }
    let simulated = hemiola(path, &format!("simulate lda {common} --nodes 2 --workers 1 --time-per-unit 1us"));
    assert!(simulated.contains("for 6 epochs, log-likelihood -"), "{simulated}");
    assert!(hemiola(path, "topics threads.model").lines().count() >= 3);
}
