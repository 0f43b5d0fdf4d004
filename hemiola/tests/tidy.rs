//! The style of the project, as a test over its files.

use std::fs;
use std::path::{Path, PathBuf};

/// Words that would bring sockets, threads, clocks or chance into the protocol core.
const ABSENT_FROM_CORE: [&str; 7] =
    ["std::net", "std::thread", "Instant::", "SystemTime", "spawn(", "std::fs", "thread_rng"];
const DRAWERS: [&str; 6] = ["utils.rs", "util.rs", "common.rs", "helpers.rs", "misc.rs", "types.rs"];
const LINES_MAX: usize = 900;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace around the crate").to_owned()
}

/// The source and text files of the project, without what is built.
fn files(ending: &str) -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, ending: &str, found: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(folder).expect("a folder of the project").map(|entry| entry.expect("an entry")) {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                walk(&path, ending, found);
            } else if name.ends_with(ending) {
                found.push((path.clone(), fs::read_to_string(&path).expect("text")));
            }
        }
    }
    let mut found = Vec::new();
    walk(&root(), ending, &mut found);
    assert!(!found.is_empty(), "no {ending} files below {}", root().display());
    found
}

/// The complaints about all files, or nothing.
fn check(ending: &str, complaint: impl Fn(&Path, &str) -> Option<String>) {
    let complaints: Vec<String> = files(ending)
        .iter()
        .filter_map(|(path, text)| complaint(path, text).map(|what| format!("{}: {what}", path.display())))
        .collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_source_file_says_what_it_is_for() {
    check(".rs", |_, text| (!text.starts_with("//! ")).then(|| "does not open with `//! `".to_owned()));
}

#[test]
fn no_file_is_a_drawer_or_too_long() {
    check(".rs", |path, text| {
        let name = path.file_name().expect("a file").to_string_lossy();
        if DRAWERS.contains(&&*name) {
            return Some("is named for nothing in particular".to_owned());
        }
        (text.lines().count() > LINES_MAX).then(|| format!("has more than {LINES_MAX} lines"))
    });
}

#[test]
fn the_core_does_no_input_or_output() {
    check(".rs", |path, text| {
        let in_core = path.starts_with(root().join("core/src"));
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let found = ABSENT_FROM_CORE.iter().find(|word| code.clone().any(|line| line.contains(**word)));
        found.filter(|_| in_core).map(|word| format!("uses {word}"))
    });
}

#[test]
fn no_test_sleeps_and_nothing_names_a_machine() {
    // Put together here, so that this file does not find itself.
    let sleep = ["thread::", "sleep"].concat();
    let paths = [["/ho", "me/"].concat(), ["/wo", "rk/"].concat(), ["/ro", "ot/"].concat()];
    for ending in [".rs", ".md", ".toml", "Makefile"] {
        check(ending, |path, text| {
            let in_test = path.components().any(|part| part.as_os_str() == "tests");
            if in_test && text.contains(&sleep) {
                return Some("sleeps in a test".to_owned());
            }
            paths.iter().find(|machine| text.contains(machine.as_str())).map(|found| format!("names {found}"))
        });
    }
}

#[test]
fn every_decision_has_a_number_and_a_title() {
    check(".md", |path, text| {
        let decision = path.starts_with(root().join("docs/decisions"));
        let name = path.file_name().expect("a file").to_string_lossy();
        let number = name.split('-').next().unwrap_or_default();
        let good = number.len() == 4 && number.parse::<u32>().is_ok() && text.starts_with("# ");
        (decision && !good).then(|| "should be NNNN-title.md and open with a title".to_owned())
    });
}
