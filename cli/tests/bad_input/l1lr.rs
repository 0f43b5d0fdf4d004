//! What a user can get wrong with logistic regression.

use super::Case;
use std::fs;
use std::path::Path;

pub(crate) const CASES: &[Case] = &[
    ("train l1lr", 2, "the following required arguments were not provided: <DATA>...; see 'hemiola train l1lr --help'"),
    ("train l1lr missing.svm", 1, "missing.svm: cannot be read: No such file or directory (os error 2)"),
    ("train l1lr three.svm", 1, "three.svm: has examples of 3 classes; expected two, such as -1 and 1, or 0 and 1"),
    ("train l1lr same.svm", 1, "same.svm: has examples of one class; expected two, such as -1 and 1, or 0 and 1"),
    ("train l1lr two.svm --lambda 0", 2, "invalid value '0' for '--lambda <LAMBDA>': expected a number above 0"),
    ("train l1lr two.svm --lambda inf", 2, "invalid value 'inf' for '--lambda <LAMBDA>': expected a number above 0"),
    ("train l1lr two.svm --path 0", 2, "invalid value '0' for '--path <N>': expected a whole number of 1 or more"),
    ("train l1lr two.svm --l2 -1", 2, "invalid value '-1' for '--l2 <WEIGHT>': expected a number of 0 or more"),
    (
        "train l1lr two.svm --delay 65",
        2,
        "invalid value '65' for '--delay <DELAY>': expected 'sequential', 'eventual', 'auto', or a whole number between 0 and 64",
    ),
    (
        "train l1lr two.svm --delay auto",
        2,
        "--delay auto needs --processes: on the threads of one process it is a number of blocks",
    ),
    (
        "train l1lr two.svm --servers 2",
        2,
        "the following required arguments were not provided: --processes <P>; see 'hemiola train l1lr --help'",
    ),
    (
        "train l1lr two.svm --processes 2",
        2,
        "without --lambda its values are tried one after the other, which several processes cannot do; give --lambda",
    ),
    (
        "train l1lr two.svm --processes 2 --lambda 0.1 --path 3",
        2,
        "--path has no effect on several processes or nodes, which fit one lambda; leave it out",
    ),
    (
        "train l1lr - --processes 2 --lambda 0.1",
        2,
        "standard input cannot be read by several processes; give the name of a file",
    ),
    (
        "simulate l1lr two.svm",
        2,
        "without --lambda its values are tried one after the other, which several processes cannot do; give --lambda",
    ),
    (
        "simulate l1lr two.svm --lambda 0.1 --budget 1gbit",
        2,
        "--budget has no effect on l1lr, whose workers send nothing early; leave it out",
    ),
    (
        "simulate l1lr two.svm --lambda 0.1 --nodes 4 --straggler 9:2 --time-per-unit 1us",
        1,
        "node 9 cannot be slow: there are 4, counted from zero",
    ),
    (
        "simulate l1lr same.svm --lambda 0.1",
        1,
        "same.svm: has examples of one class; expected two, such as -1 and 1, or 0 and 1",
    ),
    ("train l1lr two.svm --blocks 0", 2, "invalid value '0' for '--blocks <N>': expected a whole number of 1 or more"),
    (
        "train l1lr two.svm --blocks 3 --groups groups.csv",
        2,
        "--blocks and --groups each say how features are cut; give one of them",
    ),
    (
        "train l1lr two.svm --groups nowhere.csv",
        1,
        "nowhere.csv: cannot be read: No such file or directory (os error 2)",
    ),
    ("train l1lr two.svm --groups groups.csv", 1, "groups.csv:2: the examples have no feature 77"),
    ("simulate l1lr two.svm --lambda 0.1 --groups groups.csv", 1, "groups.csv:2: the examples have no feature 77"),
    (
        "train l1lr two.svm --groups groups.csv --weights groups.csv",
        2,
        "--weights groups.csv would overwrite --groups; give another name",
    ),
    ("train l1lr two.svm --violation 0", 2, "invalid value '0' for '--violation <PART>': expected a number above 0"),
    ("train l1lr two.svm --tolerance 0", 2, "invalid value '0' for '--tolerance <PART>': expected a number above 0"),
    ("train l1lr two.svm --passes 0", 2, "invalid value '0' for '--passes <N>': expected a whole number of 1 or more"),
    (
        "train l1lr two.svm --bits 25",
        2,
        "invalid value '25' for '--bits <N>': expected a whole number between 1 and 24",
    ),
    ("train l1lr two.svm --bits 10", 2, "--bits has an effect only with Criteo's format"),
    (
        "train l1lr two.svm --no-holdout",
        2,
        "without held-out examples no lambda can be chosen; give --lambda, or leave out --no-holdout",
    ),
    ("train l1lr two.svm --weights two.svm", 2, "--weights two.svm would overwrite DATA; give another name"),
    (
        "train l1lr two.svm --weights w.txt --report w.txt",
        2,
        "--weights w.txt would overwrite --report; give another name",
    ),
    (
        "train l1lr two.svm --weights nowhere/w.txt",
        1,
        "nowhere/w.txt: cannot be written: there is no directory nowhere",
    ),
    ("train l1lr two.svm --test three.svm", 1, "three.svm:3: class '2' does not occur in what was trained on"),
    (
        "train l1lr bare.svm",
        1,
        "no feature says anything about the class, so no lambda can be chosen; give other data, or --lambda",
    ),
    ("train l1lr - -", 2, "standard input can be read only once; give '-' once"),
    (
        "train l1lr short.tsv --format criteo --out m.model",
        1,
        "short.tsv:1: expected 40 columns separated by a tab, found 3",
    ),
    ("train l1lr clicks.tsv", 1, "clicks.tsv:2: expected a whole number or nothing in column 3, found 'x'"),
    (
        "train l1lr clicks.tsv --label 2",
        1,
        "clicks.tsv:1: the label of Criteo's format is in column 1; expected that or none",
    ),
    (
        "train l1lr two.svm --memory 0mb",
        2,
        "invalid value '0mb' for '--memory <SIZE>': expected an amount of memory above 0 such as 512mb or 2gb",
    ),
    (
        "train l1lr two.svm --memory 2",
        2,
        "invalid value '2' for '--memory <SIZE>': expected an amount of memory above 0 such as 512mb or 2gb",
    ),
    (
        "train l1lr two.svm --memory 1mb",
        1,
        "--memory: 1mb is too little memory for 57 examples of 3 features; 24mb would do",
    ),
    ("train l1lr two.svm --scratch .", 2, "--scratch has an effect only with --memory; give that, too"),
    (
        "train l1lr two.svm --memory 1gb --scratch nowhere",
        1,
        "--scratch nowhere: is no directory; expected one that can be written to",
    ),
    (
        "train l1lr two.svm --memory 1gb --scratch same.svm",
        1,
        "--scratch same.svm: is no directory; expected one that can be written to",
    ),
    (
        "train l1lr three.svm --memory 1gb",
        1,
        "three.svm: has examples of 3 classes; expected two, such as -1 and 1, or 0 and 1",
    ),
    ("train l1lr two.svm --memory 1gb --bits 10", 2, "--bits has an effect only with Criteo's format"),
    (
        "train l1lr one.svm --memory 1gb",
        1,
        "one.svm: too few examples (2) to train on some and hold out others; give more, or --no-holdout",
    ),
    (
        "train l1lr clicks.tsv --memory 1gb",
        1,
        "clicks.tsv:2: expected a whole number or nothing in column 3, found 'x'",
    ),
    (
        "train l1lr two.svm --memory 1gb --test three.svm",
        1,
        "three.svm:3: class '2' does not occur in what was trained on",
    ),
    (
        "train l1lr digits --format idx --memory 1gb",
        1,
        "digits: holds images, which are only read whole; expected lines of examples where memory is limited",
    ),
    (
        "train l1lr two.svm --lambda 1 --processes 2 --memory 1gb",
        2,
        "--memory has an effect only in one process; leave out --processes, or --memory",
    ),
];

pub(crate) fn prepare(directory: &Path) {
    let write = |name: &str, content: &str| fs::write(directory.join(name), content).unwrap();
    write("two.svm", &"1 1:1 2:0.5\n-1 2:1\n".repeat(30));
    write("groups.csv", "1,one\n77,other\n");
    write("three.svm", "1 1:1\n-1 2:1\n2 1:1\n");
    write("same.svm", "1 1:1\n1 2:1\n");
    write("one.svm", "1 1:1\n-1 1:1\n");
    write("digits", "\0\0\u{8}\u{3}");
    write("bare.svm", &"1 1:0\n-1 1:0\n".repeat(30));
    write("short.tsv", "1\t2\t3\n");
    let line = |second: &str| format!("1\t5\t{second}{}{}\n", "\t3".repeat(11), "\t68fd1e64".repeat(26));
    write("clicks.tsv", &[line("7"), line("x")].concat());
}
