//! What a user can get wrong with the models of factor pairs.

use super::Case;
use std::fs;
use std::path::Path;

pub(crate) const CASES: &[Case] = &[
    (
        "train mlr two.svm --fanout 2",
        2,
        "--fanout has an effect only with --sync factors or auto: servers send to all workers",
    ),
    (
        "train mlr two.svm --round-errors 0.5",
        2,
        "--round-errors has an effect only with --sync factors or auto: servers are sent rows",
    ),
    (
        "train mlr two.svm --sync factors --round-errors 1.5",
        2,
        "invalid value '1.5' for '--round-errors <T>': expected a number above 0 and up to 1, such as 0.5",
    ),
    (
        "train mlr two.svm --sync factors --clocks-per-epoch 3",
        2,
        "--clocks-per-epoch has no effect with --sync factors: every minibatch is followed by one; give --batch",
    ),
    (
        "train mlr two.svm --sync factors --consistency bsp",
        2,
        "--consistency has no effect with --sync factors: give --staleness, which is 0 for bsp",
    ),
    (
        "train mlr two.svm --sync auto --value-bound 1",
        2,
        "--value-bound has no effect with --sync auto: give --staleness",
    ),
    (
        "train mlr two.svm --sync factors --processes 2 --wire f16",
        2,
        "--wire has no effect with --sync factors: numbers travel as they are",
    ),
    (
        "train mlr two.svm --sync auto --step-size adaptive",
        2,
        "--step-size adaptive keeps the squares of what it has met, which is not in factors; give another, or --sync matrix",
    ),
    (
        "train mlr two.svm --sync factors --workers 2 --fanout 2",
        2,
        "--fanout 2: 2 workers cannot send to so many others; expected a number from 1 to 1",
    ),
    (
        "train mlr two.svm --sync factors --workers 1 --fanout 1",
        2,
        "--fanout has no effect on one worker: there are no others",
    ),
    (
        "train mlr two.svm --sync factors --workers 2 --fanout 0",
        2,
        "invalid value '0' for '--fanout <Q>': expected a whole number of 1 or more",
    ),
    (
        "train mlr two.svm --sync factors --processes 2 --servers 1",
        2,
        "--servers has no effect with --sync factors: workers send to one another",
    ),
    (
        "train mlr two.svm --sync auto --processes 2 --workers 2",
        2,
        "--workers has no effect with --sync auto: every process is one worker",
    ),
    (
        "train mlr two.svm --sync factors --processes 2 --bandwidth 1gbit",
        2,
        "--bandwidth has no effect with --sync factors: nothing is sent early",
    ),
    (
        "train mlr two.svm --sync factors --checkpoint saved",
        2,
        "--checkpoint has no effect with --sync factors: it is for tables with --clocks-per-epoch",
    ),
    (
        "train mlr two.svm --sync factors --processes 2 --filters key-cache",
        1,
        "filter 'key-cache' is for the rows of tables; factors can be compressed with lz4 or zstd",
    ),
    (
        "simulate mlr two.svm --sync factors --workers 2",
        2,
        "--workers 2: a node that sends others factors is one worker; give 1, or leave it out",
    ),
    (
        "simulate mlr two.svm --sync factors --workers 1 --budget 1gbit",
        2,
        "--budget has no effect with --sync factors: nothing is sent early",
    ),
    (
        "simulate mlr two.svm --sync factors --workers 1 --servers 2",
        2,
        "--servers has no effect with --sync factors: workers send to one another",
    ),
    (
        "simulate mlr two.svm --sync auto --workers 1 --time-per-unit 20ns",
        2,
        "--time-per-unit is of a unit that --sync auto has not chosen yet; give factors or matrix",
    ),
    ("simulate mlr missing.svm", 1, "missing.svm: cannot be read: No such file or directory (os error 2)"),
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
    ("train l2mlr two.svm --batch 5", 2, "--batch has an effect only with --peers or --processes"),
    ("train l2mlr two.svm --staleness 1", 2, "--staleness has an effect only with --peers or --processes"),
    (
        "train l2mlr two.svm --peers 3 --fanout 1",
        2,
        "--fanout would leave out of a peer's weights what some examples say, and the duality gap is of all; leave it out",
    ),
    (
        "train l2mlr two.svm --peers 2 --workers 2",
        2,
        "--workers has no effect with --peers or --processes: a peer of l2mlr is one thread",
    ),
    (
        "train l2mlr two.svm --peers 2 --batch 1 --epochs 4294967295",
        1,
        "the epochs have more iterations than can be counted; use fewer, or larger minibatches",
    ),
    ("train l2mlr - --processes 2", 2, "standard input cannot be read by several processes; give the name of a file"),
    ("train dml", 2, "the following required arguments were not provided: <DATA>...; see 'hemiola train dml --help'"),
    ("train dml missing.svm", 1, "missing.svm: cannot be read: No such file or directory (os error 2)"),
    ("train dml same.svm --no-holdout", 1, "same.svm: has examples of one class; expected two or more to tell apart"),
    ("train dml two.svm --dimension 4", 1, "4 dimensions are more than the 3 features; give fewer"),
    (
        "train dml two.svm --dimension 0",
        2,
        "invalid value '0' for '--dimension <N>': expected a whole number between 1 and 4096",
    ),
    ("train dml two.svm --weight 0", 2, "invalid value '0' for '--weight <WEIGHT>': expected a number above 0"),
    ("train dml two.svm --batch 0", 2, "invalid value '0' for '--batch <N>': expected a whole number of 1 or more"),
    (
        "train dml two.svm --decay 1",
        2,
        "invalid value '1' for '--decay <FACTOR>': expected a number between 0 and 1, such as 0.1",
    ),
    (
        "train dml two.svm --neighbours 0",
        2,
        "invalid value '0' for '--neighbours <N>': expected a whole number of 1 or more",
    ),
    (
        "train dml two.svm --patience 2 --no-holdout",
        2,
        "--patience looks at held-out examples, and there are none; give --test, or leave it out",
    ),
    (
        "train dml two.svm --pairs alike.csv --patience 2",
        2,
        "--patience looks at held-out examples, and there are none; give --test, or leave it out",
    ),
    (
        "train dml two.svm --pairs alike.csv --holdout 0.2",
        2,
        "--pairs names examples of DATA, so none of them can be held out; give --test, or nothing",
    ),
    ("train dml two.svm --pairs missing.csv", 1, "missing.csv: cannot be read: No such file or directory (os error 2)"),
    ("train dml two.svm --pairs folder", 1, "folder: is a directory; expected a file of pairs"),
    (
        "train dml two.svm --pairs alike.csv --dimension 1",
        1,
        "alike.csv:2: there is no example 61; expected one from 1 to 60",
    ),
    (
        "train dml two.svm --pairs short.tsv --dimension 1",
        1,
        "short.tsv:1: expected the numbers of two examples and 1 if they are alike or 0, such as 3,17,1",
    ),
    ("train dml - --pairs -", 2, "standard input can be read only once; give '-' once"),
    ("train dml two.svm --pairs p.csv --report p.csv", 2, "--report p.csv would overwrite --pairs; give another name"),
    ("train dml two.svm --fanout 2", 2, "--fanout has an effect only with --peers or --processes"),
    ("train dml two.svm --staleness 2", 2, "--staleness has an effect only with --peers or --processes"),
    ("train dml two.svm --filters zstd", 2, "--filters has an effect only with --peers or --processes"),
    (
        "train dml two.svm --peers 2 --filters zstd",
        2,
        "--filters needs --processes: nothing travels between the threads of one process",
    ),
    (
        "train dml two.svm --peers 2 --processes 2",
        2,
        "--peers are threads of one process, and --processes are peers too; give one of them",
    ),
    (
        "train dml two.svm --peers 3 --fanout 3",
        2,
        "--fanout 3: 3 peers cannot send to so many others; expected a number from 1 to 2",
    ),
    ("train dml two.svm --peers 1 --fanout 1", 2, "--fanout has no effect on one peer: there are no others"),
    (
        "train dml two.svm --peers 0",
        2,
        "invalid value '0' for '--peers <P>': expected a whole number between 1 and 1024",
    ),
    (
        "train dml two.svm --dimension 1 --processes 2 --filters key-cache",
        1,
        "filter 'key-cache' is for the rows of tables; factors can be compressed with lz4 or zstd",
    ),
    ("train dml - --processes 2", 2, "standard input cannot be read by several processes; give the name of a file"),
    (
        "train dml two.svm --dimension 1 --peers 2 --batch 2 --epochs 4294967295",
        1,
        "the epochs have more iterations than can be counted; use fewer, or larger batches",
    ),
    (
        "train dml two.svm --dimension 1 --batch 1",
        1,
        "a batch of one example has no pairs to learn from; give larger batches",
    ),
    (
        "simulate dml two.svm --workers 3",
        2,
        "--workers 3: a node that sends others factors is one worker; give 1, or leave it out",
    ),
    ("simulate dml two.svm --servers 2", 2, "--servers has no effect on peers, which have no servers; leave it out"),
    ("simulate sc a.png --budget 1gbit", 2, "--budget has no effect on peers, which send nothing early; leave it out"),
    (
        "simulate dml two.svm --nodes 3 --fanout 3",
        2,
        "--fanout 3: 3 peers cannot send to so many others; expected a number from 1 to 2",
    ),
    (
        "simulate l2mlr two.svm --fanout 2",
        2,
        "--fanout would leave out of a peer's weights what some examples say, and the duality gap is of all; leave it out",
    ),
    (
        "simulate l2mlr two.svm --filters significant:1",
        2,
        "--filters significant holds back what must arrive: a minibatch is subtracted whole; leave it out",
    ),
    ("simulate sc missing.png", 1, "missing.png: cannot be read: No such file or directory (os error 2)"),
    ("predict good.model pairs.csv --vectors", 2, "--vectors has an effect only with metrics"),
    ("train sc", 2, "the following required arguments were not provided: <DATA>...; see 'hemiola train sc --help'"),
    ("train sc missing.png", 1, "missing.png: cannot be read: No such file or directory (os error 2)"),
    ("train sc a.png --atoms 0", 2, "invalid value '0' for '--atoms <N>': expected a whole number between 1 and 4096"),
    (
        "train sc a.png --patch 40",
        2,
        "invalid value '40' for '--patch <SIDE>': expected a whole number between 2 and 32",
    ),
    ("train sc a.png --sparsity 0", 2, "invalid value '0' for '--sparsity <WEIGHT>': expected a number above 0"),
    ("train sc a.png --rate nan", 2, "invalid value 'nan' for '--rate <RATE>': expected a number above 0"),
    ("train sc a.png --fanout 1", 2, "--fanout has an effect only with --peers or --processes"),
    (
        "train sc a.png --peers 2 --fanout 2",
        2,
        "--fanout 2: 2 peers cannot send to so many others; expected a number from 1 to 1",
    ),
    (
        "train sc a.png --processes 0",
        2,
        "invalid value '0' for '--processes <P>': expected a whole number between 1 and 1024",
    ),
    ("train sc a.png --picture a.svg", 2, "--picture a.svg: expected a name that ends in .png"),
    ("train sc a.png --picture a.png", 2, "--picture a.png would overwrite DATA; give another name"),
];

pub(crate) fn prepare(directory: &Path) {
    let write = |name: &str, content: &str| fs::write(directory.join(name), content).unwrap();
    write("lone.svm", "1 1:1\n");
    write("alike.csv", "1,2,0\n1,61,1\n");
}
