//! What a user can get wrong with the models of factor pairs.

use super::Case;
use std::fs;
use std::path::Path;

pub(crate) const CASES: &[Case] = &[
    (
        "train l2mlr",
        2,
        "the following required arguments were not provided: <DATA>...; see 'hemiola train l2mlr --help'",
    ),
    ("train l2mlr missing.svm", 1, "missing.svm: cannot be read: No such file or directory (os error 2)"),
    ("train l2mlr same.svm --no-holdout", 1, "same.svm: has examples of one class; expected two or more to tell apart"),
    ("train l2mlr two.svm --gap 0", 2, "invalid value '0' for '--gap <GAP>': expected a number above 0"),
    ("train l2mlr two.svm --gap inf", 2, "invalid value 'inf' for '--gap <GAP>': expected a number above 0"),
    ("train l2mlr two.svm --lambda -1", 2, "invalid value '-1' for '--lambda <LAMBDA>': expected a number above 0"),
    ("train l2mlr two.svm --epochs 0", 2, "invalid value '0' for '--epochs <N>': expected a whole number of 1 or more"),
    (
        "train l2mlr two.svm --workers 0",
        2,
        "invalid value '0' for '--workers <N>': expected a whole number between 1 and 1024",
    ),
    (
        "train l2mlr lone.svm",
        1,
        "lone.svm: too few examples (1) to train on some and hold out others; give more, or --no-holdout",
    ),
    ("train l2mlr two.svm --test three.svm", 1, "three.svm:3: class '2' does not occur in what was trained on"),
    ("train l2mlr - --test -", 2, "standard input can be read only once; give '-' once"),
    ("train l2mlr two.svm --report two.svm", 2, "--report two.svm would overwrite DATA; give another name"),
];

pub(crate) fn prepare(directory: &Path) {
    let write = |name: &str, content: &str| fs::write(directory.join(name), content).unwrap();
    write("lone.svm", "1 1:1\n");
}
