//! Everything a user can get wrong, with the exact sentence and the exit code: one line, no panic, nothing left behind.

use hemiola_models::Names;
use hemiola_models::lda::model::LdaModel;
#[path = "bad_input/checkpoints.rs"]
mod checkpoints;
#[path = "bad_input/corpora.rs"]
mod corpora;
#[path = "bad_input/examples.rs"]
mod examples;
#[path = "bad_input/factors.rs"]
mod factors;
#[path = "bad_input/filters.rs"]
mod filters;
#[path = "bad_input/generate.rs"]
mod generate;
#[path = "bad_input/l1lr.rs"]
mod l1lr;
#[path = "bad_input/reproduce.rs"]
mod reproduce;
#[path = "bad_input/splash.rs"]
mod splash;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Arguments, exit code, and what stands behind `hemiola: `.
type Case = (&'static str, i32, &'static str);

const CASES: &[Case] = &[
    ("train mf", 2, "the following required arguments were not provided: <DATA>...; see 'hemiola train mf --help'"),
    ("train knn good.csv", 2, "unrecognized subcommand 'knn'; see 'hemiola train --help'"),
    ("eval good.model good.csv --label rating", 2, "--label and --labels have an effect only with classifiers"),
    ("predict good.model pairs.csv --probabilities", 2, "--probabilities has an effect only with classifiers"),
    (
        "frobnicate",
        2,
        "unrecognized subcommand 'frobnicate'; tip: a similar subcommand exists: 'calibrate'; see 'hemiola --help'",
    ),
    ("train mf missing.csv", 1, "missing.csv: cannot be read: No such file or directory (os error 2)"),
    ("train mf folder", 1, "folder: is a directory; expected a file of ratings"),
    ("train mf empty.csv", 1, "empty.csv: holds no ratings; expected lines of user, item, rating"),
    ("train mf header.csv", 1, "header.csv: holds no ratings; expected lines of user, item, rating"),
    (
        "train mf binary.csv",
        1,
        "binary.csv:1: expected 3 or 4 columns (user, item, rating, time) separated by ',', ';', a tab, '::' or white space",
    ),
    ("train mf id.csv", 1, "id.csv:2: the user is not UTF-8 text; expected a text file of ratings"),
    ("train mf cut.csv.gz", 1, "cut.csv.gz: the gzip data end too early after line 177; the file is incomplete"),
    (
        "train mf damaged.csv.gz",
        1,
        "damaged.csv.gz: the gzip data are damaged after line 401: corrupt gzip stream does not have a matching checksum",
    ),
    ("train mf columns.csv", 1, "columns.csv:3: expected 3 columns (user, item, rating) separated by ',', found 2"),
    ("train mf many.csv", 1, "many.csv:2: expected 3 columns (user, item, rating) separated by ',', found 4"),
    ("train mf word.csv", 1, "word.csv:2: expected a finite number as rating, found 'good'"),
    ("train mf nan.csv", 1, "nan.csv:2: expected a finite number as rating, found 'NaN'"),
    ("train mf infinite.csv", 1, "infinite.csv:2: expected a finite number as rating, found 'inf'"),
    ("train mf large.csv", 1, "large.csv:2: expected a finite number as rating, found '1e60'"),
    ("train mf nobody.csv", 1, "nobody.csv:2: the user is empty; expected an id"),
    (
        "train mf quote.csv",
        1,
        "quote.csv:2: a quoted field must be closed by '\"' right before a separator or the end of the line",
    ),
    (
        "train mf titles.csv",
        1,
        "titles.csv:1: the header names no user column; expected names such as user, item, rating",
    ),
    (
        "train mf prose.txt --out m.model",
        1,
        "prose.txt:1: the header names no user column; expected names such as user, item, rating",
    ),
    ("train mf long.csv", 1, "long.csv:2: the line is longer than 1048576 bytes"),
    ("train mf good.csv missing.csv", 1, "missing.csv: cannot be read: No such file or directory (os error 2)"),
    (
        "train mf one.csv",
        1,
        "one.csv: too few ratings (1) to train on some and hold out others; give more, or --no-holdout",
    ),
    (
        "train mf one.csv --holdout 0.999999999",
        1,
        "one.csv: too few ratings (1) to train on some and hold out others; give more, or --no-holdout",
    ),
    (
        "train mf one.csv --holdout-every 2",
        1,
        "one.csv: too few ratings (1) to train on some and hold out others; give more, or --no-holdout",
    ),
    ("train mf good.csv --test missing.csv", 1, "missing.csv: cannot be read: No such file or directory (os error 2)"),
    ("train mf good.csv --test empty.csv", 1, "empty.csv: holds no ratings; expected lines of user, item, rating"),
    ("train mf -", 1, "standard input: holds no ratings; expected lines of user, item, rating"),
    ("train mf - -", 2, "standard input can be read only once; give '-' once"),
    ("train mf - --test -", 2, "standard input can be read only once; give '-' once"),
    ("train mf good.csv --rank 0", 2, "invalid value '0' for '--rank <N>': expected a whole number between 1 and 4096"),
    (
        "train mf good.csv --rank 5000",
        2,
        "invalid value '5000' for '--rank <N>': expected a whole number between 1 and 4096",
    ),
    (
        "train mf good.csv --rank -3",
        2,
        "invalid value '-3' for '--rank <N>': expected a whole number between 1 and 4096",
    ),
    (
        "train mf good.csv --rank many",
        2,
        "invalid value 'many' for '--rank <N>': expected a whole number between 1 and 4096",
    ),
    ("train mf good.csv --l2 -1", 2, "invalid value '-1' for '--l2 <WEIGHT>': expected a number of 0 or more"),
    ("train mf good.csv --l2 nan", 2, "invalid value 'nan' for '--l2 <WEIGHT>': expected a number of 0 or more"),
    ("train mf good.csv --rate -0.1", 2, "invalid value '-0.1' for '--rate <RATE>': expected a number above 0"),
    ("train mf good.csv --rate 0", 2, "invalid value '0' for '--rate <RATE>': expected a number above 0"),
    ("train mf good.csv --rate inf", 2, "invalid value 'inf' for '--rate <RATE>': expected a number above 0"),
    ("train mf good.csv --epochs 0", 2, "invalid value '0' for '--epochs <N>': expected a whole number of 1 or more"),
    (
        "train mf good.csv --patience 0",
        2,
        "invalid value '0' for '--patience <EPOCHS>': expected a whole number of 1 or more",
    ),
    (
        "train mf good.csv --patience 2 --no-holdout",
        2,
        "--patience has no effect with --no-holdout, because it looks at held-out ratings; leave one of them out",
    ),
    (
        "train mf good.csv --workers 0",
        2,
        "invalid value '0' for '--workers <N>': expected a whole number between 1 and 1024",
    ),
    (
        "train mf good.csv --workers -2",
        2,
        "invalid value '-2' for '--workers <N>': expected a whole number between 1 and 1024",
    ),
    (
        "train mf good.csv --workers two",
        2,
        "invalid value 'two' for '--workers <N>': expected a whole number between 1 and 1024",
    ),
    (
        "train mf good.csv --servers 2",
        2,
        "the following required arguments were not provided: --processes <P>; see 'hemiola train mf --help'",
    ),
    ("simulate mf missing.csv", 1, "missing.csv: cannot be read: No such file or directory (os error 2)"),
    ("simulate mf good.csv --nodes 0", 2, "invalid value '0' for '--nodes <N>': expected a whole number of 1 or more"),
    (
        "train mf good.csv --bandwidth fast",
        2,
        "invalid value 'fast' for '--bandwidth <RATE>': expected a rate of 100kbit or more, such as 200mbit",
    ),
    (
        "train mf good.csv --processes 2 --bandwidth 99kbit",
        2,
        "invalid value '99kbit' for '--bandwidth <RATE>': expected a rate of 100kbit or more, such as 200mbit",
    ),
    (
        "train mf good.csv --processes 2 --bandwidth -1",
        2,
        "invalid value '-1' for '--bandwidth <RATE>': expected a rate of 100kbit or more, such as 200mbit",
    ),
    (
        "train mf good.csv --bandwidth 200mbit",
        2,
        "--bandwidth needs --processes: the threads of one process send nothing",
    ),
    (
        "train mf good.csv --processes 2 --priority random",
        2,
        "--priority has an effect only with --bandwidth; give that, too",
    ),
    (
        "train mf good.csv --processes 2 --bandwidth 1mbit --priority random --consistency bsp",
        2,
        "--priority has no effect with --consistency bsp, which sends nothing early; leave it out",
    ),
    (
        "simulate mf good.csv --budget 1mbit --priority random --consistency vap",
        2,
        "--priority has no effect with --consistency vap, which sends nothing early; leave it out",
    ),
    (
        "simulate mf good.csv --budget 1gbit --bandwidth 10mbit",
        2,
        "--budget is more than the network can carry; give less than --bandwidth, or leave it out",
    ),
    ("simulate mf good.csv --priority relative", 2, "--priority has an effect only with --budget; give that, too"),
    (
        "simulate mf good.csv --budget 0gbit",
        2,
        "invalid value '0gbit' for '--budget <RATE>': expected a rate of 100kbit or more, such as 200mbit",
    ),
    (
        "simulate mf good.csv --bandwidth fast",
        2,
        "invalid value 'fast' for '--bandwidth <RATE>': expected a rate above 0 such as 200mbit or 10gbit",
    ),
    (
        "simulate mf good.csv --bandwidth 0gbit",
        2,
        "invalid value '0gbit' for '--bandwidth <RATE>': expected a rate above 0 such as 200mbit or 10gbit",
    ),
    (
        "simulate mf good.csv --bandwidth -1",
        2,
        "invalid value '-1' for '--bandwidth <RATE>': expected a rate above 0 such as 200mbit or 10gbit",
    ),
    (
        "simulate mf good.csv --budget -1gbit",
        2,
        "invalid value '-1gbit' for '--budget <RATE>': expected a rate of 100kbit or more, such as 200mbit",
    ),
    (
        "simulate mf good.csv --latency -1ms",
        2,
        "invalid value '-1ms' for '--latency <TIME>': expected a time such as 100us, 2ms or 1s",
    ),
    (
        "simulate mf good.csv --latency 5",
        2,
        "invalid value '5' for '--latency <TIME>': expected a time such as 100us, 2ms or 1s",
    ),
    (
        "simulate mf good.csv --straggler 9",
        2,
        "invalid value '9' for '--straggler <NODE:FACTOR>': expected a node and a factor such as 3:2.5",
    ),
    (
        "simulate mf good.csv --nodes 4 --straggler 9:2 --time-per-unit 1us",
        1,
        "node 9 cannot be slow: there are 4, counted from zero",
    ),
    (
        "simulate mf good.csv --pauses often",
        2,
        "invalid value 'often' for '--pauses <PER_SECOND:TIME>': expected how often in a second and how long, such as 0.5:20ms",
    ),
    ("simulate mf good.csv --plot drawing.gif", 2, "--plot drawing.gif: expected a name that ends in .svg or .png"),
    (
        "simulate mf good.csv --report nowhere/run.jsonl",
        1,
        "nowhere/run.jsonl: cannot be written: there is no directory nowhere",
    ),
    ("train mf good.csv --seed -1", 2, "invalid value '-1' for '--seed <SEED>': expected a whole number of 0 or more"),
    (
        "train mf good.csv --clocks-per-epoch 0",
        2,
        "invalid value '0' for '--clocks-per-epoch <N>': expected a whole number between 1 and 65536",
    ),
    (
        "train mlr good.csv --clocks-per-epoch 65537",
        2,
        "invalid value '65537' for '--clocks-per-epoch <N>': expected a whole number between 1 and 65536",
    ),
    (
        "train mf good.csv --epochs 400000000 --clocks-per-epoch 11",
        2,
        "--epochs times --clocks-per-epoch are more clocks than can be counted; give fewer",
    ),
    (
        "train mf good.csv --holdout 0",
        2,
        "invalid value '0' for '--holdout <PART>': expected a number between 0 and 1, such as 0.1",
    ),
    (
        "train mf good.csv --holdout 1",
        2,
        "invalid value '1' for '--holdout <PART>': expected a number between 0 and 1, such as 0.1",
    ),
    (
        "train mf good.csv --holdout 1.5",
        2,
        "invalid value '1.5' for '--holdout <PART>': expected a number between 0 and 1, such as 0.1",
    ),
    (
        "train mf good.csv --holdout -0.1",
        2,
        "invalid value '-0.1' for '--holdout <PART>': expected a number between 0 and 1, such as 0.1",
    ),
    (
        "train mf good.csv --holdout-every 1",
        2,
        "invalid value '1' for '--holdout-every <N>': expected a whole number of 2 or more",
    ),
    (
        "train mf good.csv --holdout 0.1 --holdout-every 10",
        2,
        "the argument '--holdout <PART>' cannot be used with '--holdout-every <N>'; see 'hemiola train mf --help'",
    ),
    (
        "train mf good.csv --holdout 0.1 --test good.csv",
        2,
        "the argument '--holdout <PART>' cannot be used with '--test <FILE>'; see 'hemiola train mf --help'",
    ),
    (
        "train mf good.csv --no-holdout --test good.csv",
        2,
        "the argument '--no-holdout' cannot be used with '--test <FILE>'; see 'hemiola train mf --help'",
    ),
    (
        "train mf good.csv --consistency sequential",
        2,
        "invalid value 'sequential' for '--consistency <MODEL>' [possible values: bsp, ssp, essp, async, vap]",
    ),
    (
        "train mf good.csv --consistency bsp --staleness 2",
        2,
        "--staleness has no effect with --consistency bsp; give --consistency ssp or essp",
    ),
    (
        "train mf good.csv --consistency async --staleness 2",
        2,
        "--staleness has no effect with --consistency async; give --consistency ssp or essp",
    ),
    (
        "train mf good.csv --staleness -1",
        2,
        "invalid value '-1' for '--staleness <CLOCKS>': expected a whole number of 0 or more",
    ),
    (
        "train mf good.csv --value-bound 1",
        2,
        "--value-bound has no effect with --consistency essp; give --consistency vap",
    ),
    (
        "train mf good.csv --consistency vap",
        2,
        "--consistency vap needs --processes: the threads of one process have no updates in transit",
    ),
    ("train mf good.csv --wire f16", 2, "--wire needs --processes: nothing travels between the threads of one process"),
    (
        "train mf good.csv --processes 2 --consistency vap --wire bf16",
        2,
        "--consistency vap needs --wire f32: rounding could break the value bound",
    ),
    (
        "train mf good.csv --consistency vap --value-bound 0",
        2,
        "invalid value '0' for '--value-bound <BOUND>': expected a number above 0",
    ),
    (
        "train mf good.csv --step-size fast",
        2,
        "invalid value 'fast' for '--step-size <SCHEDULE>' [possible values: adaptive, constant, inverse-time, inverse-sqrt, decay, adarevision, adagrad]",
    ),
    (
        "train mf good.csv --step-size constant --damping 0.1",
        2,
        "--damping has an effect only with --step-size adaptive",
    ),
    (
        "train mf good.csv --step-size adarevision --damping 0.1",
        2,
        "--damping has an effect only with --step-size adaptive",
    ),
    (
        "train mf good.csv --step-size adarevision --consistency vap --processes 2",
        1,
        "table 'items': the value bound is for updates that are added, not for a stored procedure's",
    ),
    ("train mf good.csv --decay 0.9", 2, "--decay has an effect only with --step-size decay"),
    (
        "train mf good.csv --step-size decay --decay 1.5",
        2,
        "invalid value '1.5' for '--decay <FACTOR>': expected a number between 0 and 1, such as 0.1",
    ),
    (
        "train mf good.csv --colour red",
        2,
        "unexpected argument '--colour' found; tip: a similar argument exists: '--holdout'; see 'hemiola train mf --help'",
    ),
    (
        "train mf good.csv --rnak 8",
        2,
        "unexpected argument '--rnak' found; tip: a similar argument exists: '--rank'; see 'hemiola train mf --help'",
    ),
    ("train lda prose.txt --patience 3", 2, "unexpected argument '--patience' found; see 'hemiola train lda --help'"),
    ("train mlr good.csv --memory 2gb", 2, "unexpected argument '--memory' found; see 'hemiola train mlr --help'"),
    (
        "train mf good.csv --rank 8 --rank 9",
        2,
        "the argument '--rank <N>' cannot be used multiple times; see 'hemiola train mf --help'",
    ),
    (
        "train mf good.csv --out foreign.txt",
        1,
        "foreign.txt: exists and is not a Hemiola model; expected a new path or an older model",
    ),
    (
        "train mf good.csv --out folder",
        1,
        "folder: exists and is not a Hemiola model; expected a new path or an older model",
    ),
    ("train mf good.csv --out good.csv", 2, "--out good.csv would overwrite DATA; give another name"),
    ("train mf good.csv --out nowhere/model", 1, "nowhere/model: cannot be written: there is no directory nowhere"),
    ("train mf good.csv --out good.csv/model", 1, "good.csv/model: cannot be written: there is no directory good.csv"),
    ("train mf good.csv --out /", 1, "/: exists and is not a Hemiola model; expected a new path or an older model"),
    ("train mf good.csv --report folder", 1, "folder: is a directory; expected the name of a file"),
    (
        "train mf good.csv --report nowhere/run.jsonl",
        1,
        "nowhere/run.jsonl: cannot be written: there is no directory nowhere",
    ),
    ("train mf good.csv --report good.csv", 2, "--report good.csv would overwrite DATA; give another name"),
    (
        "train mf good.csv --report /dev/full --quiet",
        1,
        "/dev/full: cannot be written: No space left on device (os error 28)",
    ),
    ("train mf good.csv --plot plot.gif", 2, "--plot plot.gif: expected a name that ends in .svg or .png"),
    ("train mf good.csv --plot plot", 2, "--plot plot: expected a name that ends in .svg or .png"),
    (
        "train mf good.csv --plot nowhere/plot.svg",
        1,
        "nowhere/plot.svg: cannot be written: there is no directory nowhere",
    ),
    ("train mf good.csv --plot x.svg --report x.svg", 2, "--plot x.svg would overwrite --report; give another name"),
    (
        "train mf good.csv --test good.csv --report good.csv",
        2,
        "--report good.csv would overwrite DATA; give another name",
    ),
    (
        "train mf good.csv --step-size constant --rate 1e20 --quiet",
        1,
        "the error is no longer a number in epoch 1: the steps are too large; try a step size below 100000000000000000000",
    ),
    ("eval", 2, "the following required arguments were not provided: <MODEL> <DATA>...; see 'hemiola eval --help'"),
    ("eval good.model", 2, "the following required arguments were not provided: <DATA>...; see 'hemiola eval --help'"),
    (
        "eval missing.model good.csv",
        1,
        "missing.model: is not a Hemiola model; expected a directory with a file model.json",
    ),
    ("eval folder good.csv", 1, "folder: is not a Hemiola model; expected a directory with a file model.json"),
    ("eval good.csv good.csv", 1, "good.csv: is not a Hemiola model; expected a directory with a file model.json"),
    ("eval good.model missing.csv", 1, "missing.csv: cannot be read: No such file or directory (os error 2)"),
    ("eval good.model word.csv", 1, "word.csv:2: expected a finite number as rating, found 'good'"),
    (
        "eval later.model good.csv",
        1,
        "later.model/model.json: is version 9 of a model of kind 'mf'; expected version 1 of kind 'mf'",
    ),
    (
        "eval kind.model good.csv",
        1,
        "kind.model/model.json: is version 1 of a model of kind 'other'; expected version 1 of kind 'mf'",
    ),
    (
        "eval other.model good.csv",
        1,
        "other.model: is not a Hemiola model; expected a directory with a file model.json",
    ),
    (
        "eval changed.model good.csv",
        1,
        "changed.model/model.json: does not match its checksum in checksums.txt; the file is damaged or was changed",
    ),
    (
        "eval json.model good.csv",
        1,
        "json.model/model.json: is not a description of a model: EOF while parsing an object at line 1 column 1",
    ),
    (
        "eval users.model good.csv",
        1,
        "users.model/users.txt: does not match its checksum in checksums.txt; the file is damaged or was changed",
    ),
    ("eval sums.model good.csv", 1, "sums.model/checksums.txt: cannot be read: No such file or directory (os error 2)"),
    (
        "eval factors.model good.csv",
        1,
        "factors.model/factors.safetensors: cannot be read: No such file or directory (os error 2)",
    ),
    (
        "eval short.model good.csv",
        1,
        "short.model/factors.safetensors: does not match its checksum in checksums.txt; the file is damaged or was changed",
    ),
    (
        "predict good.model",
        2,
        "the following required arguments were not provided: <DATA>...; see 'hemiola predict --help'",
    ),
    (
        "predict good.model --user u1",
        2,
        "the following required arguments were not provided: --item <ITEM>; see 'hemiola predict --help'",
    ),
    (
        "predict good.model --user u1 --item i1 pairs.csv",
        2,
        "the argument '--user <USER>' cannot be used with '[DATA]...'; see 'hemiola predict --help'",
    ),
    ("predict good.model missing.csv", 1, "missing.csv: cannot be read: No such file or directory (os error 2)"),
    (
        "predict good.model pairs.csv",
        1,
        "pairs.csv:2: expected 2 or more columns (user, item) separated by ',', ';', a tab, '::' or white space",
    ),
    ("predict good.model id.csv", 1, "id.csv:2: the user is not UTF-8 text; expected a text file of ratings"),
    (
        "predict missing.model pairs.csv",
        1,
        "missing.model: is not a Hemiola model; expected a directory with a file model.json",
    ),
    ("predict good.model folder", 1, "folder: is a directory; expected a file of ratings"),
    (
        "recommend good.model",
        2,
        "the following required arguments were not provided: --user <USER>; see 'hemiola recommend --help'",
    ),
    (
        "recommend missing.model --user u1",
        1,
        "missing.model: is not a Hemiola model; expected a directory with a file model.json",
    ),
    (
        "recommend good.model --user nobody",
        1,
        "good.model: knows no user 'nobody'; expected one of its 20 users, such as u0, u1, u2",
    ),
    (
        "recommend good.model --user -1",
        1,
        "good.model: knows no user '-1'; expected one of its 20 users, such as u0, u1, u2",
    ),
    (
        "recommend good.model --user u1 -n 0",
        2,
        "invalid value '0' for '--count <N>': expected a whole number of 1 or more",
    ),
    (
        "recommend good.model --user u1 --seen missing.csv",
        1,
        "missing.csv: cannot be read: No such file or directory (os error 2)",
    ),
    (
        "recommend good.model --ratings missing.csv",
        1,
        "missing.csv: cannot be read: No such file or directory (os error 2)",
    ),
    (
        "recommend good.model --ratings empty.csv",
        1,
        "empty.csv: holds no ratings; expected lines of user, item, rating",
    ),
    (
        "recommend good.model --ratings good.csv",
        2,
        "good.csv: holds ratings of 20 users; say by --user whom to recommend to",
    ),
    (
        "recommend good.model --user nobody --ratings good.csv",
        1,
        "good.csv: holds no ratings of user 'nobody', by which --ratings would know that user",
    ),
    (
        "recommend good.model --ratings stranger.csv",
        1,
        "stranger.csv: user 'me' has rated none of the 19 items that good.model knows, such as i0, i1, i2",
    ),
    (
        "predict good.model --user u1 --item i1 --ratings empty.csv",
        1,
        "empty.csv: holds no ratings; expected lines of user, item, rating",
    ),
    (
        "predict words.model prose.txt --ratings good.csv",
        2,
        "--ratings has an effect only with factorisations of ratings",
    ),
    ("topics", 2, "the following required arguments were not provided: <MODEL>; see 'hemiola topics --help'"),
    ("topics missing.model", 1, "missing.model: is not a Hemiola model; expected a directory with a file model.json"),
    (
        "topics good.model",
        1,
        "good.model/model.json: is version 1 of a model of kind 'mf'; expected version 1 of kind 'lda'",
    ),
    ("topics words.model --words 0", 2, "invalid value '0' for '--words <N>': expected a whole number of 1 or more"),
    (
        "topics cut.words.model",
        1,
        "cut.words.model/vocabulary.txt: does not match its checksum in checksums.txt; the file is damaged or was changed",
    ),
    (
        "recommend words.model --user u1",
        1,
        "words.model/model.json: is version 1 of a model of kind 'lda'; expected version 1 of kind 'mf'",
    ),
    ("eval good.model good.csv --format text", 2, "--format has an effect only with topic models and classifiers"),
    ("eval good.model good.csv --vocabulary vocab.txt", 2, "--vocabulary has an effect only with topic models"),
    ("predict good.model pairs.csv --format text", 2, "--format has an effect only with topic models and classifiers"),
    ("predict good.model pairs.csv --topics 3", 2, "--topics has an effect only with topic models"),
    (
        "predict words.model --user u1 --item i1",
        2,
        "--user and --item have no effect with a topic model; give files of documents",
    ),
    (
        "predict words.model prose.txt --topics 0",
        2,
        "invalid value '0' for '--topics <N>': expected a whole number of 1 or more",
    ),
    ("predict words.model missing.txt", 1, "missing.txt: cannot be read: No such file or directory (os error 2)"),
    ("predict words.model folder", 1, "folder: is a directory; expected a file of documents"),
    (
        "predict words.model empty.csv",
        1,
        "empty.csv: holds no words; expected text with one document a line, UCI bag-of-words or lda-c",
    ),
    (
        "predict words.model -",
        1,
        "standard input: holds no words; expected text with one document a line, UCI bag-of-words or lda-c",
    ),
    (
        "eval words.model prose.txt --format html",
        2,
        "invalid value 'html' for '--format <FORMAT>' [possible values: docword, lda-c, text, libsvm, delimited, idx, criteo]",
    ),
    (
        "eval words.model prose.txt --vocabulary missing.txt",
        1,
        "missing.txt: cannot be read: No such file or directory (os error 2)",
    ),
    ("eval words.model prose.txt --vocabulary folder", 1, "folder: is a directory; expected a file of words"),
    ("eval words.model prose.txt --vocabulary empty.csv", 1, "empty.csv: holds no words; expected one word a line"),
    (
        "eval words.model prose.txt --vocabulary twice.txt",
        1,
        "twice.txt:3: the word 'cat' stands on line 1, too; expected each word once",
    ),
    (
        "eval words.model prose.txt",
        1,
        "prose.txt: holds none of the 3 words that are known; expected documents with the same vocabulary",
    ),
    (
        "eval words.model lonely.txt",
        1,
        "lonely.txt: has too few words to predict some from others; give more documents",
    ),
    ("eval words.model id.csv", 1, "id.csv:2: the line is not UTF-8 text; expected a text file"),
    (
        "eval words.model cut.csv.gz",
        1,
        "cut.csv.gz: the gzip data end too early after line 177; the file is incomplete",
    ),
    (
        "eval words.model prose.txt --format docword --vocabulary vocab.txt",
        1,
        "prose.txt:1: expected the number of documents alone on a line of the header, found 'These are not ratings at all.'",
    ),
    (
        "eval words.model prose.txt --format lda-c --vocabulary vocab.txt",
        1,
        "prose.txt:1: expected the number of distinct words at the start of the line, found 'These'",
    ),
    (
        "eval words.model entries.txt --vocabulary vocab.txt",
        1,
        "entries.txt:3: the header states 2 entries and the file has 1; the file is incomplete or damaged",
    ),
    (
        "eval words.model four.txt --vocabulary vocab.txt",
        1,
        "four.txt:2: the header states 4 words and the vocabulary has 3; expected the same number",
    ),
    (
        "train lda absurd.txt",
        1,
        "absurd.txt:1: more than 1048576 documents have no words; expected documents with words",
    ),
    (
        "eval words.model zero.txt --vocabulary vocab.txt",
        1,
        "zero.txt:2: expected a count between 1 and 1000000, found '0'",
    ),
    (
        "eval words.model range.txt --vocabulary vocab.txt",
        1,
        "range.txt:1: word 3 is not in the vocabulary of 3 words; expected a number below 3",
    ),
    (
        "eval words.model prose.txt --vocabulary vocab.txt",
        1,
        "prose.txt: is text, whose words are written out, so a list of words has no effect; leave it out",
    ),
    (
        "eval words.model pairs.txt --vocabulary vocab.txt",
        1,
        "pairs.txt:1: the line states 3 distinct words and has 1 pairs of word:count",
    ),
    (
        "generate words",
        2,
        "unrecognized subcommand 'words'; tip: a similar subcommand exists: 'corpus'; see 'hemiola generate --help'",
    ),
    ("topology --nodes 1", 2, "invalid value '1' for '--nodes <P>': expected a whole number between 2 and 4096"),
    ("topology --nodes 4 --fanout 4", 2, "--fanout 4: 4 machines have 3 others each; expected a number from 1 to 3"),
    ("topology --nodes 4 --fanout 0", 2, "invalid value '0' for '--fanout <Q>': expected a whole number of 1 or more"),
    (
        "topology --nodes 4 --fanout 2 --plot drawing.pdf",
        2,
        "--plot drawing.pdf: expected a name that ends in .svg or .png",
    ),
    (
        "train rica header.csv",
        1,
        "header.csv: starts with the bytes 75 73 65 72; expected 00 00 08 and two dimensions or more, the mark of idx images",
    ),
    ("train rica missing.png", 1, "missing.png: cannot be read: No such file or directory (os error 2)"),
    (
        "train rica good.csv --patch 1",
        2,
        "invalid value '1' for '--patch <SIDE>': expected a whole number between 2 and 32",
    ),
    ("train rica good.csv --sparsity 0", 2, "invalid value '0' for '--sparsity <WEIGHT>': expected a number above 0"),
    ("train rica header.csv --picture filters.svg", 2, "--picture filters.svg: expected a name that ends in .png"),
    ("calibrate --rank 0", 2, "invalid value '0' for '--rank <N>': expected a whole number between 1 and 4096"),
    ("demo --seed x", 2, "invalid value 'x' for '--seed <SEED>': expected a whole number of 0 or more"),
];

#[test]
fn every_mistake_gets_one_clear_sentence() {
    let directory = tempfile::tempdir().unwrap();
    prepare(directory.path());
    let before = content(directory.path());
    let mut wrong = Vec::new();
    let lists = [
        CASES,
        checkpoints::CASES,
        corpora::CASES,
        examples::CASES,
        factors::CASES,
        filters::CASES,
        generate::CASES,
        l1lr::CASES,
        reproduce::CASES,
        splash::CASES,
    ];
    let cases = || lists.into_iter().flatten();
    for (arguments, code, sentence) in cases() {
        let output = hemiola(directory.path(), arguments);
        let expected = format!("hemiola: {sentence}\n");
        if (output.0, &output.1) != (*code, &expected) {
            wrong
                .push(format!("hemiola {arguments}\n  expected {code} {expected}  found    {} {}", output.0, output.1));
        }
        assert!(content(directory.path()) == before, "'hemiola {arguments}' left something behind");
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases().count(), wrong.join("\n"));
}

/// The exit code and standard error of a command typed in `directory`.
fn hemiola(directory: &Path, arguments: &str) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_hemiola"))
        .args(arguments.split_whitespace())
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (output.status.code().unwrap_or(-1), String::from_utf8(output.stderr).unwrap())
}

fn prepare(directory: &Path) {
    let write = |name: &str, content: &[u8]| fs::write(directory.join(name), content).unwrap();
    let mut ratings = String::from("user,item,rating\n");
    for number in 0..400 {
        ratings.push_str(&format!("u{},i{},{}\n", number % 20, number % 19, 1 + number % 5));
    }
    write("good.csv", ratings.as_bytes());
    write("empty.csv", b"");
    write("stranger.csv", b"me,nothing,3\nme,nowhere,4\n");
    write("header.csv", b"user,item,rating\n");
    write("binary.csv", &[0, 159, 146, 150, 10, 1, 2, 3]);
    write("id.csv", b"a,b,1\n\xff\xfe,b,2\n");
    write("columns.csv", b"a,b,1\na,c,2\na,d\n");
    write("many.csv", b"a,b,1\na,c,2,3\n");
    write("word.csv", b"a,b,1\na,c,good\n");
    write("nan.csv", b"a,b,1\na,c,NaN\n");
    write("infinite.csv", b"a,b,1\na,c,inf\n");
    write("large.csv", b"a,b,1\na,c,1e60\n");
    write("nobody.csv", b"a,b,1\n,c,2\n");
    write("quote.csv", b"a,b,1\n\"a,c,2\n");
    write("titles.csv", b"who,what,when,stars\nx,y,z,w\n");
    write("prose.txt", b"These are not ratings at all.\n");
    write("one.csv", b"a,b,1\n");
    write("pairs.csv", b"u1,i1\nu2\n");
    write("foreign.txt", b"something else\n");
    write("long.csv", &[b"a,b,1\n".as_slice(), &vec![b'x'; (1 << 20) + 9], b",c,2\n"].concat());
    write("vocab.txt", b"cat\ndog\nowl\n");
    write("twice.txt", b"cat\ndog\ncat\n");
    write("lonely.txt", b"A lonely DOG\n");
    write("entries.txt", b"1\n3\n2\n1 1 1\n");
    write("four.txt", b"1\n4\n1\n1 1 1\n");
    write("absurd.txt", b"4000000000\n4000000000\n1\n1 1 1\n");
    write("zero.txt", b"1 0:1\n1 1:0\n");
    write("range.txt", b"1 3:1\n");
    write("pairs.txt", b"3 0:1\n");
    topic_model().save(&directory.join("words.model")).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(ratings.as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    write("cut.csv.gz", &packed[..packed.len() / 2]);
    let mut damaged = packed.clone();
    damaged[packed.len() - 6] ^= 0x55;
    write("damaged.csv.gz", &damaged);
    fs::create_dir(directory.join("folder")).unwrap();
    fs::write(directory.join("folder/precious.txt"), "mine").unwrap();
    let (code, said) = hemiola(directory, "train mf good.csv --epochs 2 --rank 4 --quiet");
    assert_eq!((code, said.as_str()), (0, ""));
    break_models(directory);
    checkpoints::prepare(directory);
    generate::prepare(directory);
    l1lr::prepare(directory);
    factors::prepare(directory);
    corpora::prepare(directory);
    examples::prepare(directory);
}

/// Writes files that no others are called like.
fn write_files(directory: &Path, files: &[(&str, &[u8])]) {
    for (name, content) in files {
        let path = directory.join(name);
        assert!(!path.exists(), "there are two files {name}");
        fs::write(path, content).unwrap();
    }
}

/// A model of two topics and three words.
fn topic_model() -> LdaModel {
    let mut vocabulary = Names::default();
    ["cat", "dog", "owl"].iter().for_each(|word| assert!(vocabulary.intern(word).is_ok()));
    let word_topic = vec![5.0, 0.0, 4.0, 1.0, 0.0, 6.0];
    let (config, metrics) = (serde_json::json!({}), serde_json::json!({}));
    LdaModel { vocabulary, alpha: vec![0.1, 0.1], beta: 0.01, word_topic, config, metrics }
}

/// Copies of a good model, each with one thing wrong.
fn break_models(directory: &Path) {
    let copy_of = |model: &str, name: &str| {
        let target = directory.join(name);
        fs::create_dir(&target).unwrap();
        for file in fs::read_dir(directory.join(model)).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), target.join(file.file_name())).unwrap();
        }
        target
    };
    let copy = |name: &str| copy_of("good.model", name);
    let edit = |path: &Path, from: &str, to: &str| {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.contains(from), "{path:?} has no {from}");
        fs::write(path, text.replacen(from, to, 1)).unwrap();
    };
    edit(&copy("later.model").join("model.json"), "\"version\": 1", "\"version\": 9");
    edit(&copy("kind.model").join("model.json"), "\"kind\": \"mf\"", "\"kind\": \"other\"");
    edit(&copy("other.model").join("model.json"), "hemiola-model", "another-model");
    edit(&copy("changed.model").join("model.json"), "\"rank\": 4", "\"rank\": 5");
    fs::write(copy("json.model").join("model.json"), "{").unwrap();
    edit(&copy("users.model").join("users.txt"), "u1\n", "u1x\n");
    fs::write(copy_of("words.model", "cut.words.model").join("vocabulary.txt"), "cat\n").unwrap();
    fs::remove_file(copy("sums.model").join("checksums.txt")).unwrap();
    fs::remove_file(copy("factors.model").join("factors.safetensors")).unwrap();
    let short = copy("short.model").join("factors.safetensors");
    let bytes = fs::read(&short).unwrap();
    fs::write(&short, &bytes[..bytes.len() / 2]).unwrap();
}

/// Every file below a directory, with what is in it.
fn content(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        if path.is_dir() {
            found.extend(content(&path));
            found.insert(name, Vec::new());
        } else {
            found.insert(name, fs::read(&path).unwrap());
        }
    }
    found
}
