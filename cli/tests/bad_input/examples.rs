//! What a user can get wrong with examples and with softmax regression.

use super::{Case, write_files};
use hemiola_models::Names;
use hemiola_models::mlr::model::MlrModel;
use serde_json::Value;
use std::path::Path;

pub(crate) const CASES: &[Case] = &[
    ("train mlr", 2, "the following required arguments were not provided: <DATA>...; see 'hemiola train mlr --help'"),
    ("train mlr missing.csv", 1, "missing.csv: cannot be read: No such file or directory (os error 2)"),
    ("train mlr good.csv --batch 0", 2, "invalid value '0' for '--batch <N>': expected a whole number of 1 or more"),
    ("train mlr good.csv --l2 -1", 2, "invalid value '-1' for '--l2 <WEIGHT>': expected a number of 0 or more"),
    ("train mlr good.csv --decay 0.5 --step-size constant", 2, "--decay has an effect only with --step-size decay"),
    ("train mlr good.csv --damping 1", 2, "--damping has an effect only with --step-size adaptive"),
    (
        "train mlr good.csv --wire f16",
        2,
        "--wire needs --processes: nothing travels between the threads of one process",
    ),
    (
        "train mlr good.csv --patience 2 --no-holdout",
        2,
        "--patience has no effect with --no-holdout, because it looks at held-out examples; leave one of them out",
    ),
    (
        "train mlr good.csv --checkpoint-every 2",
        2,
        "--checkpoint-every has an effect only with --checkpoint or --resume",
    ),
    ("train mlr good.csv --resume nowhere", 1, "nowhere: cannot be read: No such file or directory (os error 2)"),
    ("train mlr folder", 1, "folder: is a directory; expected a file of examples"),
    ("train mlr empty.csv", 1, "empty.csv: holds no examples; expected lines of a label and features, or idx images"),
    ("train mlr blank.csv", 1, "blank.csv: holds no examples; expected lines of a label and features, or idx images"),
    ("train mlr named.csv", 1, "named.csv: holds no examples; expected lines of a label and features, or idx images"),
    ("train mlr -", 1, "standard input: holds no examples; expected lines of a label and features, or idx images"),
    ("train mlr - -", 2, "standard input can be read only once; give '-' once"),
    ("train mlr - --processes 2", 2, "standard input cannot be read by several processes; give the name of a file"),
    (
        "train mlr lone.svm",
        1,
        "lone.svm: too few examples (1) to train on some and hold out others; give more, or --no-holdout",
    ),
    ("train mlr same.svm --no-holdout", 1, "all examples to train on are of class '1'; expected two classes or more"),
    ("train mlr two.svm --test three.svm", 1, "three.svm:3: class '2' does not occur in what was trained on"),
    (
        "train mlr lonely.csv",
        1,
        "lonely.csv:1: expected a label and features, separated by ',', ';', a tab or white space, or as index:value",
    ),
    (
        "train mlr flowers.csv --format csv",
        2,
        "invalid value 'csv' for '--format <FORMAT>' [possible values: libsvm, delimited, idx, criteo]",
    ),
    // Lines of index:value.
    ("train mlr pair.svm", 1, "pair.svm:2: expected index:value, found 'x'"),
    ("train mlr bare-index.svm", 1, "bare-index.svm:1: expected a finite number as value of feature 1, found ''"),
    ("train mlr unlabelled.svm", 1, "unlabelled.svm:2: expected a label before the features, found '2:3'"),
    ("train mlr binary.svm", 1, "binary.svm:2: the label is not UTF-8 text; expected a text file of examples"),
    (
        "train mlr labels.svm --format libsvm",
        1,
        "labels.svm: holds no index:value in any line; expected lines of 'label index:value ...'",
    ),
    (
        "train mlr flowers.csv --format libsvm",
        1,
        "flowers.csv:1: expected 'label index:value ...', found columns: 'length,width,species'",
    ),
    (
        "train l1lr wide.csv --format libsvm --memory 1gb",
        1,
        "wide.csv:1: expected 'label index:value ...', found columns: '1,2,3,a'",
    ),
    (
        "predict flowers.model semicolons.csv --format libsvm",
        1,
        "semicolons.csv:1: expected 'label index:value ...', found columns: '1;2;a'",
    ),
    ("train mlr query.svm", 1, "query.svm:1: queries to rank (qid) are not supported; expected features only"),
    ("train mlr negative.svm", 1, "negative.svm:2: expected a feature index below 16777216, found '-1'"),
    ("train mlr far.svm", 1, "far.svm:1: expected a feature index below 16777216, found '16777216'"),
    ("train mlr repeated.svm", 1, "repeated.svm:2: feature 2 comes after feature 2; expected ascending indices"),
    ("train mlr descending.svm", 1, "descending.svm:2: feature 1 comes after feature 2; expected ascending indices"),
    ("train mlr word.svm", 1, "word.svm:2: expected a finite number as value of feature 1, found 'x'"),
    ("train mlr nan.svm", 1, "nan.svm:2: expected a finite number as value of feature 1, found 'nan'"),
    ("train mlr infinite.svm", 1, "infinite.svm:2: expected a finite number as value of feature 1, found '-inf'"),
    ("train mlr large.svm", 1, "large.svm:2: expected a finite number as value of feature 1, found '1e60'"),
    ("train mlr two.svm --label 1", 1, "two.svm: has no columns, so one for the label has no effect; leave it out"),
    // Lines of columns.
    (
        "train mlr flowers.csv --label kind",
        1,
        "flowers.csv:1: no column is called 'kind'; expected its name in the first line",
    ),
    (
        "train mlr flowers.csv --label -1",
        1,
        "flowers.csv:1: no column is called '-1'; expected its name in the first line",
    ),
    (
        "train mlr flowers.csv --label 0",
        1,
        "flowers.csv:1: there is no column 0 for the label to be in; expected a number between 1 and 3",
    ),
    (
        "train mlr flowers.csv --label 4",
        1,
        "flowers.csv:1: there is no column 4 for the label to be in; expected a number between 1 and 3",
    ),
    ("train mlr flowers.csv --label width", 1, "flowers.csv:2: expected a finite number in column 3, found 'a'"),
    (
        "train mlr flowers.csv --labels a-labels",
        1,
        "flowers.csv: has labels in its lines, so a file of labels has no effect; leave it out",
    ),
    ("train mlr flower-word.csv", 1, "flower-word.csv:2: expected a finite number in column 2, found 'x'"),
    ("train mlr flower-nan.csv", 1, "flower-nan.csv:2: expected a finite number in column 2, found 'NaN'"),
    ("train mlr flower-infinite.csv", 1, "flower-infinite.csv:2: expected a finite number in column 1, found 'inf'"),
    ("train mlr flower-gap.csv", 1, "flower-gap.csv:2: expected a finite number in column 2, found ''"),
    ("train mlr flower-few.csv", 1, "flower-few.csv:2: expected 3 columns separated by ',', found 2"),
    ("train mlr flower-many.csv", 1, "flower-many.csv:2: expected 3 columns separated by ',', found 4"),
    ("train mlr flower-unnamed.csv", 1, "flower-unnamed.csv:2: the label is empty; expected the name of a class"),
    (
        "train mlr flower-binary.csv",
        1,
        "flower-binary.csv:2: the label is not UTF-8 text; expected a text file of examples",
    ),
    (
        "train mlr flower-quote.csv",
        1,
        "flower-quote.csv:2: a quoted field must be closed by '\"' right before a separator or the end of the line",
    ),
    ("train mlr flowers.csv wide.csv", 1, "wide.csv:1: the line has 3 features; expected 2, as the files before have"),
    (
        "train mlr flowers.csv --test wide.csv",
        1,
        "wide.csv: the examples have 3 features; expected 2, as those to train on have",
    ),
    (
        "train l1lr flowers.csv --test wide.csv --out m.model --memory 1gb",
        1,
        "wide.csv: the examples have 3 features; expected 2, as those to train on have",
    ),
    (
        "train mlr flowers.csv flower-swapped.csv",
        1,
        "flower-swapped.csv:1: column 1 is called 'width'; expected 'length', as features must have the same names and \
         order in every file",
    ),
    (
        "train mlr flowers.csv --test flower-swapped.csv",
        1,
        "flower-swapped.csv:1: column 1 is called 'width'; expected 'length', as features must have the same names and \
         order in every file",
    ),
    (
        "train l2mlr flowers.csv --test flower-swapped.csv",
        1,
        "flower-swapped.csv:1: column 1 is called 'width'; expected 'length', as features must have the same names and \
         order in every file",
    ),
    (
        "train dml flowers.csv --test flower-swapped.csv --out m.model",
        1,
        "flower-swapped.csv:1: column 1 is called 'width'; expected 'length', as features must have the same names and \
         order in every file",
    ),
    (
        "train l1lr flowers.csv --test flower-swapped.csv --out m.model",
        1,
        "flower-swapped.csv:1: column 1 is called 'width'; expected 'length', as features must have the same names and \
         order in every file",
    ),
    (
        "train l1lr flowers.csv --test flower-swapped.csv --out m.model --memory 1gb",
        1,
        "flower-swapped.csv:1: column 1 is called 'width'; expected 'length', as features must have the same names and \
         order in every file",
    ),
    (
        "eval flowers.model flower-swapped.csv",
        1,
        "flower-swapped.csv:1: column 1 is called 'width'; expected 'length', as features must have the same names and \
         order in every file",
    ),
    (
        "predict flowers.model flower-renamed.csv",
        1,
        "flower-renamed.csv:1: column 3 is called 'depth'; expected 'width', as features must have the same names and \
         order in every file",
    ),
    // Labels that are no classes.
    (
        "train mlr houses.csv",
        1,
        "houses.csv: the label has 21 values in 40 examples; expected the column of a class by --label",
    ),
    (
        "train l2mlr houses.csv --label price",
        1,
        "houses.csv: column 'price' has 21 values in 40 examples; expected the column of a class",
    ),
    (
        "train dml houses.svm",
        1,
        "houses.svm: the label has 40 values in 40 examples; expected classes, which come again",
    ),
    // Images.
    (
        "train mlr flowers.csv --format idx",
        1,
        "flowers.csv: starts with the bytes 6c 65 6e 67; expected 00 00 08 and two dimensions or more, the mark of \
         idx images",
    ),
    (
        "train mlr float-images",
        1,
        "float-images: starts with the bytes 00 00 0d 03; expected 00 00 08 and two dimensions or more, the mark of \
         idx images",
    ),
    ("train mlr header-images", 1, "header-images: ends within its header; the file is incomplete"),
    (
        "train mlr short-images --labels a-labels",
        1,
        "short-images: ends after 1 of the 2 examples that it announces; the file is incomplete",
    ),
    (
        "train mlr long-images --labels a-labels",
        1,
        "long-images: goes on after the 2 examples that it announces; the file is damaged",
    ),
    (
        "train mlr flat-images --labels a-labels",
        1,
        "flat-images: announces examples of 0 numbers; expected between 1 and 16777216",
    ),
    ("train mlr no-images", 1, "no-images: holds no examples; expected lines of a label and features, or idx images"),
    (
        "train mlr a-images wide-images",
        1,
        "wide-images: announces examples of 2 numbers; expected 1, as the files before have",
    ),
    ("train mlr c-images", 1, "c-labels: holds 1 labels for 2 images; expected one for each"),
    (
        "train mlr b-images",
        1,
        "b-images: the labels of these images are looked for in 'b-labels', which is not there; name their file",
    ),
    (
        "train mlr pictures",
        1,
        "pictures: where the labels of these images are cannot be told from the name; name their file",
    ),
    ("train mlr a-labels", 1, "a-labels: holds idx labels; name the file of their images"),
    (
        "train mlr a-images --labels short-labels",
        1,
        "short-labels: ends after 1 of the 2 examples that it announces; the file is incomplete",
    ),
    (
        "train mlr a-images --labels long-labels",
        1,
        "long-labels: goes on after the 2 examples that it announces; the file is damaged",
    ),
    (
        "train mlr a-images --labels a-images",
        1,
        "a-images: starts with the bytes 00 00 08 03; expected 00 00 08 01, the mark of idx labels",
    ),
    ("train mlr a-images --labels empty.csv", 1, "empty.csv: ends within its header; the file is incomplete"),
    ("train mlr a-images --labels missing", 1, "missing: cannot be read: No such file or directory (os error 2)"),
    (
        "train mlr a-images c-images --labels a-labels",
        1,
        "a file of labels is of one file of images, and there are 2; name one",
    ),
    (
        "train mlr a-images --labels a-labels --test b-images",
        1,
        "b-images: the labels of these images are looked for in 'b-labels', which is not there; name their file",
    ),
    (
        "train mlr a-images --label digit",
        1,
        "a-images: has no columns, so one for the label has no effect; leave it out",
    ),
    (
        "train mlr a-images --labels a-labels --report a-labels",
        2,
        "--report a-labels would overwrite --labels; give another name",
    ),
    // Options.
    ("train mlr two.svm --batch -1", 2, "invalid value '-1' for '--batch <N>': expected a whole number of 1 or more"),
    ("train mlr two.svm --batch 1.5", 2, "invalid value '1.5' for '--batch <N>': expected a whole number of 1 or more"),
    ("train mlr two.svm --l2 nan", 2, "invalid value 'nan' for '--l2 <WEIGHT>': expected a number of 0 or more"),
    ("train mlr two.svm --l2 inf", 2, "invalid value 'inf' for '--l2 <WEIGHT>': expected a number of 0 or more"),
    ("train mlr two.svm --rate 0", 2, "invalid value '0' for '--rate <RATE>': expected a number above 0"),
    ("train mlr two.svm --rate -1", 2, "invalid value '-1' for '--rate <RATE>': expected a number above 0"),
    ("train mlr two.svm --rate nan", 2, "invalid value 'nan' for '--rate <RATE>': expected a number above 0"),
    (
        "train mlr two.svm --decay 1",
        2,
        "invalid value '1' for '--decay <FACTOR>': expected a number between 0 and 1, such as 0.1",
    ),
    (
        "train mlr two.svm --step-size adaptive --damping -1",
        2,
        "invalid value '-1' for '--damping <DAMPING>': expected a number of 0 or more",
    ),
    (
        "train mlr two.svm --step-size big",
        2,
        "invalid value 'big' for '--step-size <SCHEDULE>' [possible values: adaptive, constant, inverse-time, \
         inverse-sqrt, decay]",
    ),
    ("train mlr two.svm --epochs 0", 2, "invalid value '0' for '--epochs <N>': expected a whole number of 1 or more"),
    (
        "train mlr two.svm --patience 0",
        2,
        "invalid value '0' for '--patience <EPOCHS>': expected a whole number of 1 or more",
    ),
    (
        "train mlr two.svm --clocks-per-epoch 0",
        2,
        "invalid value '0' for '--clocks-per-epoch <N>': expected a whole number between 1 and 65536",
    ),
    (
        "train mlr two.svm --epochs 4294967295",
        2,
        "--epochs times --clocks-per-epoch are more clocks than can be counted; give fewer",
    ),
    (
        "train mlr two.svm --processes 2 --wire f8",
        2,
        "invalid value 'f8' for '--wire <PRECISION>' [possible values: f32, f16, bf16]",
    ),
    (
        "train mlr two.svm --processes 2 --consistency vap --wire f16",
        2,
        "--consistency vap needs --wire f32: rounding could break the value bound",
    ),
    (
        "train mlr two.svm --processes 2 --consistency vap --value-bound 0",
        2,
        "invalid value '0' for '--value-bound <BOUND>': expected a number above 0",
    ),
    (
        "train mlr two.svm --sync rows",
        2,
        "invalid value 'rows' for '--sync <WHAT>' [possible values: factors, matrix, auto]",
    ),
    (
        "train mlr two.svm --processes 2 --bandwidth 1gbit --priority fifo",
        2,
        "invalid value 'fifo' for '--priority <ORDER>' [possible values: random, round-robin, absolute, relative]",
    ),
    (
        "train mlr two.svm --processes 2 --priority random",
        2,
        "--priority has an effect only with --bandwidth; give that, too",
    ),
    (
        "train mlr two.svm --processes 2 --bandwidth 10",
        2,
        "invalid value '10' for '--bandwidth <RATE>': expected a rate of 100kbit or more, such as 200mbit",
    ),
    (
        "train mlr two.svm --bandwidth 1gbit",
        2,
        "--bandwidth needs --processes: the threads of one process send nothing",
    ),
];

/// Files of which each has one thing wrong, but for the flowers.
const FILES: &[(&str, &[u8])] = &[
    ("blank.csv", b"\n  \n"),
    ("named.csv", b"x,y,label\n"),
    ("lonely.csv", b"word\n"),
    ("labels.svm", b"1\n2\n1\n"),
    ("semicolons.csv", b"1;2;a\n3;4;b\n"),
    ("pair.svm", b"1 1:1\n2 x\n"),
    ("bare-index.svm", b"1 1:\n"),
    ("unlabelled.svm", b"1 1:1\n2:3 3:4\n"),
    ("binary.svm", b"1 1:1\n\xff 1:1\n"),
    ("query.svm", b"1 qid:1 1:1\n"),
    ("negative.svm", b"1 1:1\n2 -1:1\n"),
    ("far.svm", b"1 16777216:1\n"),
    ("repeated.svm", b"1 1:1\n2 2:1 2:1\n"),
    ("descending.svm", b"1 1:1\n2 2:1 1:1\n"),
    ("word.svm", b"1 1:1\n2 1:x\n"),
    ("nan.svm", b"1 1:1\n2 1:nan\n"),
    ("infinite.svm", b"1 1:1\n2 1:-inf\n"),
    ("large.svm", b"1 1:1\n2 1:1e60\n"),
    ("flowers.csv", b"length,width,species\n1,2,a\n3,4,b\n"),
    ("flower-swapped.csv", b"width,length,species\n2,1,a\n4,3,b\n"),
    ("flower-renamed.csv", b"class,length,depth\na,1,2\nb,3,4\n"),
    ("wide.csv", b"1,2,3,a\n4,5,6,b\n"),
    ("flower-word.csv", b"1,2,a\n3,x,b\n"),
    ("flower-nan.csv", b"1,2,a\n3,NaN,b\n"),
    ("flower-infinite.csv", b"1,2,a\ninf,4,b\n"),
    ("flower-gap.csv", b"1,2,a\n3,,b\n"),
    ("flower-few.csv", b"1,2,a\n3,4\n"),
    ("flower-many.csv", b"1,2,a\n3,4,b,5\n"),
    ("flower-unnamed.csv", b"1,2,a\n3,4,\n"),
    ("flower-binary.csv", b"1,2,a\n3,4,\xff\n"),
    ("flower-quote.csv", b"1,2,a\n\"3,4,b\n"),
    ("float-images", b"\0\0\x0d\x03\0\0\0\x02\0\0\0\x01\0\0\0\x01"),
    ("header-images", b"\0\0\x08\x03\0\0\0\x02\0\0"),
    ("short-images", b"\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x01\x09"),
    ("long-images", b"\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x01\x09\x09\x09"),
    ("flat-images", b"\0\0\x08\x03\0\0\0\x02\0\0\0\0\0\0\0\x01"),
    ("no-images", b"\0\0\x08\x03\0\0\0\0\0\0\0\x01\0\0\0\x01"),
    ("no-labels", b"\0\0\x08\x01\0\0\0\0"),
    ("wide-images", b"\0\0\x08\x03\0\0\0\x01\0\0\0\x01\0\0\0\x02\x09\x09"),
    ("pictures", b"\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x01\x09\x09"),
    ("short-labels", b"\0\0\x08\x01\0\0\0\x02\0"),
    ("long-labels", b"\0\0\x08\x01\0\0\0\x02\0\x01\x02"),
];

pub(crate) fn prepare(directory: &Path) {
    write_files(directory, FILES);
    let houses = |line: fn(u32) -> String| (0..40).map(line).collect::<String>();
    let columns = houses(|house| format!("{},{}\n", house % 7, house.min(20)));
    let pairs = houses(|house| format!("{house} 1:{}\n", house % 7));
    write_files(
        directory,
        &[("houses.csv", format!("rooms,price\n{columns}").as_bytes()), ("houses.svm", pairs.as_bytes())],
    );
    let mut classes = Names::default();
    ["a", "b"].iter().for_each(|name| assert!(classes.intern(name).is_ok()));
    let model = MlrModel::new(classes, &[0.0; 6], Value::Null, Value::Null);
    let names = ["length", "width"].map(str::to_owned).to_vec();
    model.with_feature_names(names).save(&directory.join("flowers.model")).unwrap();
}
