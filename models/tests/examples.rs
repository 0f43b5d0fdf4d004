//! Reading labelled examples: every way to write them, every way to get them wrong.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use hemiola_models::examples::{Examples, ExamplesError, Format, LabelColumn, Options};

fn read_with(bytes: &[u8], options: &Options) -> Result<Examples, ExamplesError> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("data");
    fs::write(&file, bytes).unwrap();
    Examples::read(&[file], options)
}

fn read(bytes: &[u8]) -> Result<Examples, ExamplesError> {
    read_with(bytes, &Options::default())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Class and features of an example.
type Plain = (String, Vec<(u32, f32)>);

#[test]
fn clicks_are_read_by_their_hashes() {
    let line = |label: &str, first: &str, last: &str| {
        format!("{label}\t{first}{}{}\t{last}\n", "\t".repeat(12), "\t".repeat(25))
    };
    // The CRC-32 of 0:5, 0:-1, 38:68fd1e64 and 38:80e26c9b, as zlib has it.
    let text = [line("0", "10", "68fd1e64"), line("1", "-1", "80e26c9b"), line("1", "", "68fd1e64")].concat();
    let hash = |text: &str, bits: u32| crc32(text.as_bytes()) & ((1 << bits) - 1);
    let sorted = |mut features: Vec<u32>| {
        features.sort_unstable();
        features.into_iter().map(|feature| (feature, 1.0)).collect::<Vec<_>>()
    };
    for (bytes, bits) in [(text.as_bytes().to_vec(), None), (gzip(text.as_bytes()), Some(12))] {
        let examples = read_with(&bytes, &Options { bits, ..Options::default() }).unwrap();
        let bits = bits.unwrap_or(20);
        let expected = vec![
            ("0".to_owned(), sorted(vec![hash("0:5", bits), hash("38:68fd1e64", bits)])),
            ("1".to_owned(), sorted(vec![hash("0:-1", bits), hash("38:80e26c9b", bits)])),
            ("1".to_owned(), sorted(vec![hash("38:68fd1e64", bits)])),
        ];
        assert_eq!(plain(&examples), expected);
        assert_eq!((examples.hashed_bits(), examples.fixed_features()), (Some(bits), Some(1 << bits)));
    }
    let bare: String = text.lines().map(|line| line[2..].to_owned() + "\n").collect();
    let options = Options { label: LabelColumn::Absent, ..Options::default() };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("bare");
    fs::write(&file, bare).unwrap();
    let examples = Examples::read_unlabelled(&[file], &options).unwrap();
    assert_eq!((examples.len(), examples.entries()), (3, 5));
    // Forty columns of numbers are just that.
    let numbers = format!("{}1\n", "12345678\t".repeat(38));
    assert_eq!(read(numbers.as_bytes()).unwrap().hashed_bits(), None);
}

/// The CRC-32 of zlib, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
    !bytes.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), |sum, _| step(sum)))
}

fn plain(examples: &Examples) -> Vec<Plain> {
    let one = |number: usize| {
        let example = examples.example(number);
        let entries = example.columns.iter().copied().zip(example.values.iter().copied()).collect();
        (examples.classes.name(examples.labels()[number]).to_owned(), entries)
    };
    (0..examples.len()).map(one).collect()
}

#[test]
fn every_good_format_is_read() {
    let two = vec![("-1".to_owned(), vec![(1, 0.5), (3, 2.0)]), ("1".to_owned(), vec![(2, -1.0)])];
    let bare = vec![("-1".to_owned(), vec![]), ("1".to_owned(), vec![]), ("-1".to_owned(), vec![(1, 0.5)])];
    let named = vec![("a".to_owned(), vec![(0, 1.0), (1, 2.0)]), ("b c".to_owned(), vec![(1, 3.5)])];
    let cases: &[(&str, &[Plain])] = &[
        ("-1 1:0.5 3:2\n+1 2:-1\n", &two),
        ("-1 1:.5 3:2e0 # comment\n\n# another\n1.0 2:-1 3:0", &two),
        ("\u{feff}-1\t1:0.5\t3:2\r\n1 2:-1\r\n", &two),
        ("-1\n\n1 # nothing\n-1 1:0.5\n", &bare),
        ("1,2,a\n0,3.5,b c\n", &named),
        ("x,y,kind\n1,2,a\n0,3.5,b c\n", &named),
        ("0,1,kind\n1,2,a\n0,3.5,b c\n", &named),
        ("x;label;y\n1;a;2\n0;\"b c\";3.5\n", &named),
        ("Class\tx\ty\na\t1\t2\nb c\t0\t3.5\n", &named),
    ];
    for (text, expected) in cases {
        for (kind, bytes) in [("plain", text.as_bytes().to_vec()), ("gzip", gzip(text.as_bytes()))] {
            let examples = read(&bytes).unwrap_or_else(|error| panic!("{kind} {text:?}: {error}"));
            assert_eq!(plain(&examples), *expected, "{kind} {text:?}");
        }
    }
    let several = read(b"3,5 1:0.5\n3\n").unwrap();
    assert_eq!(several.classes.iter().collect::<Vec<_>>(), ["3", "3,5"]);
    let options = |label| Options { label, ..Options::default() };
    let numbered = read_with(b"kind,0,1\na,1,2\nb c,0,3.5\n", &options(LabelColumn::Position(1))).unwrap();
    assert_eq!((plain(&numbered), numbered.feature_name(1)), (named.clone(), Some("1")));
    let first = read_with(b"a,1,2\nb c,0,3.5\n", &options(LabelColumn::Position(1))).unwrap();
    assert_eq!((plain(&first), first.fixed_features()), (named.clone(), Some(2)));
    let by_name = read_with(b"1,what,2\n1,a,2\n0,b c,3.5\n", &options(LabelColumn::Name("what".into()))).unwrap();
    assert_eq!(plain(&by_name), named);
    let unlabelled = read_with(b"1,2\n0,3.5\n", &Options { label: LabelColumn::Absent, ..Options::default() });
    assert_eq!(
        unlabelled.unwrap_err().to_string().rsplit('/').next().unwrap(),
        "data:1: the label is empty; expected the name of a class"
    );
    let ordered = read(b"10 1:1\n9 1:1\nx 1:1\n-2 1:1\n").unwrap();
    assert_eq!(ordered.classes.iter().collect::<Vec<_>>(), ["-2", "9", "10", "x"]);
    assert_eq!(ordered.labels(), [2, 1, 3, 0]);
}

#[test]
fn every_bad_line_has_its_sentence() {
    let unknown =
        "data:1: expected a label and features, separated by ',', ';', a tab or white space, or as index:value";
    let empty = "data: holds no examples; expected lines of a label and features, or idx images";
    let cases: &[(&[u8], &str)] = &[
        (b"", empty),
        (b"\n  \n", empty),
        (b"x,y,label\n", empty),
        (b"1 # nothing\n", "data:1: expected a finite number in column 2, found '#'"),
        (b"word\n", unknown),
        (b"1 1:1\n2 x\n", "data:2: expected index:value, found 'x'"),
        (b"1 1:1\n2:3 3:4\n", "data:2: expected a label before the features, found '2:3'"),
        (b"1 qid:1 1:1\n", "data:1: queries to rank (qid) are not supported; expected features only"),
        (b"1 1:1\n1 -1:1\n", "data:2: expected a feature index below 16777216, found '-1'"),
        (b"1 4294967295:1\n", "data:1: expected a feature index below 16777216, found '4294967295'"),
        (
            b"1 99999999999999999999:1\n",
            "data:1: expected a feature index below 16777216, found '99999999999999999999'",
        ),
        (b"1 2:1 2:1\n", "data:1: feature 2 comes after feature 2; expected ascending indices"),
        (b"1 2:1 1:1\n", "data:1: feature 1 comes after feature 2; expected ascending indices"),
        (b"1 1:nan\n", "data:1: expected a finite number as value of feature 1, found 'nan'"),
        (b"1 1:inf\n", "data:1: expected a finite number as value of feature 1, found 'inf'"),
        (b"1 1:1e60\n", "data:1: expected a finite number as value of feature 1, found '1e60'"),
        (b"1 1:\n", "data:1: expected a finite number as value of feature 1, found ''"),
        (b"1,2,a\n1,a\n", "data:2: expected a finite number in column 2, found 'a'"),
        (b"1,2,a\n1,2\n", "data:2: expected 3 columns separated by ',', found 2"),
        (b"1,2,a\n1,2,a,4\n", "data:2: expected 3 columns separated by ',', found 4"),
        (b"1,2,a\n1,x,a\n", "data:2: expected a finite number in column 2, found 'x'"),
        (b"1,2,a\n1,NaN,a\n", "data:2: expected a finite number in column 2, found 'NaN'"),
        (b"1,2,a\n1,,a\n", "data:2: expected a finite number in column 2, found ''"),
        (b"1,2,a\n1,2,\n", "data:2: the label is empty; expected the name of a class"),
        (b"1,2,\xff\n", "data:1: the label is not UTF-8 text; expected a text file of examples"),
        (b"1,\"2,a\n", "data:1: a quoted field must be closed by '\"' right before a separator or the end of the line"),
        (b"\x7fELF\x02\x01\x00\x00\n", unknown),
    ];
    for (bytes, expected) in cases {
        let shown = String::from_utf8_lossy(bytes);
        let error = read(bytes).expect_err(&shown).to_string();
        assert_eq!(error.rsplit_once('/').unwrap().1, *expected, "{shown:?}");
    }
    let sentence = |bytes: &[u8], label| {
        let options = Options { label, ..Options::default() };
        read_with(bytes, &options).unwrap_err().to_string().rsplit('/').next().unwrap().to_owned()
    };
    assert_eq!(
        sentence(b"a,b\n1,2\n", LabelColumn::Name("z".into())),
        "data:1: no column is called 'z'; expected its name in the first line"
    );
    assert_eq!(
        sentence(b"1,2\n", LabelColumn::Position(3)),
        "data:1: there is no column 3 for the label to be in; expected a number between 1 and 2"
    );
    let long = format!("1 1:{}\n", "1".repeat(16 << 20));
    let error = read(long.as_bytes()).unwrap_err().to_string();
    assert!(error.ends_with("data:1: the line is longer than 16777216 bytes"), "{error}");
    let known = Examples::read_known(&[PathBuf::from("/dev/null")], &Options::default(), &Default::default());
    assert!(known.unwrap_err().to_string().starts_with("/dev/null: holds no examples"));
    assert_eq!(
        Examples::read::<PathBuf>(&[], &Options::default()).unwrap_err().to_string(),
        "no file of examples was given"
    );
}

#[test]
fn numbers_of_columns_are_told_from_a_first_example() {
    // The first line, and whether it is a header above these classes.
    let cases: &[(&str, bool, &str)] = &[
        ("0,1,kind", true, "aab"),
        ("0,1,kind", true, "ab"),
        ("\"0\",\"1\",\"kind\"", true, "ab"),
        ("1,2,kind", true, "aab"),
        // No class comes again, so that this could be another.
        ("1,2,kind", false, "ab"),
        ("0,1,a", false, "bba"),
        ("1,2,a", false, "bba"),
        ("0,2,kind", false, "aab"),
        ("2,3,kind", false, "aab"),
        ("0,1.0,kind", false, "aab"),
        ("1,0,kind", false, "aab"),
        ("0,1,2", false, "aab"),
    ];
    for (first, header, classes) in cases {
        let lines: String = classes.chars().map(|class| format!("5.5,6,{class}\n")).collect();
        let examples = read(format!("{first}\n{lines}").as_bytes()).unwrap();
        assert_eq!(examples.len(), classes.len() + usize::from(!header), "{first} above {classes}");
    }
    assert_eq!(read(b"0,kind\n5.5,a\n6,a\n").unwrap().len(), 3, "one number is no sequence");
}

#[test]
fn headers_of_all_files_call_the_features_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let written = |name: &str, text: &str| {
        let file = directory.path().join(name);
        fs::write(&file, text).unwrap();
        file
    };
    let first = written("first", "x,y,label\n1,2,a\n3,4,b\n");
    let read_behind = |text: &str| Examples::read(&[&first, &written("second", text)], &Options::default());
    // Where the label is does not matter, nor what it is called.
    for text in ["x,y,label\n5,6,a\n", "class,x,y\na,5,6\n", "5,6,a\n", "x,y,kind\n5,6,a\n"] {
        let examples = read_behind(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!((examples.len(), examples.feature_names()), (3, &["x".to_owned(), "y".to_owned()][..]), "{text:?}");
    }
    let sentence = |column: usize, found: &str, expected: &str| {
        format!(
            "second:1: column {column} is called '{found}'; expected '{expected}', as features must have the same \
             names and order in every file"
        )
    };
    for (text, expected) in [
        ("y,x,label\n6,5,a\n", sentence(1, "y", "x")),
        ("class,x,z\na,5,6\n", sentence(3, "z", "y")),
        ("x,label,z\n5,a,6\n", sentence(3, "z", "y")),
    ] {
        let error = read_behind(text).expect_err(text).to_string();
        assert_eq!(error.rsplit_once('/').unwrap().1, expected);
    }
    // Names that are known beforehand are expected of the first file, and tell its header, whatever they look like.
    let known = |names: [&str; 2]| Options {
        feature_names: names.map(str::to_owned).to_vec(),
        label: LabelColumn::Absent,
        ..Options::default()
    };
    let bare = written("second", "0,1\n5,6\n");
    assert_eq!(Examples::read_unlabelled(&[&bare], &known(["0", "1"])).unwrap().len(), 1);
    assert_eq!(Examples::read_unlabelled(&[&bare], &known(["x", "y"])).unwrap().len(), 2);
    let swapped = written("second", "y,x\n5,6\n");
    let error = Examples::read_unlabelled(&[&swapped], &known(["x", "y"])).unwrap_err().to_string();
    assert_eq!(error.rsplit_once('/').unwrap().1, sentence(1, "y", "x"));
    // Features that are only numbered are without names, and so are all.
    let mixed = Examples::read(&[&first, &written("numbered", "a 5:1\n")], &Options::default()).unwrap();
    assert_eq!((mixed.features(), mixed.feature_names().len()), (6, 0));
}

/// Images of so many rows and columns, as the header says it.
fn images(count: u32, rows: u32, columns: u32, pixels: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, 3];
    [count, rows, columns].iter().for_each(|length| bytes.extend(length.to_be_bytes()));
    bytes.extend(pixels);
    bytes
}

fn labels(count: u32, labels: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, 1];
    bytes.extend(count.to_be_bytes());
    bytes.extend(labels);
    bytes
}

#[test]
fn images_are_read_with_their_labels_beside_them() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x-images-idx3-ubyte.gz");
    let beside = directory.path().join("x-labels-idx1-ubyte.gz");
    let read = |image: &[u8], label: &[u8]| {
        fs::write(&file, image).unwrap();
        fs::write(&beside, label).unwrap();
        Examples::read(&[&file], &Options::default())
    };
    let (good, two) = (images(2, 1, 3, &[0, 51, 255, 0, 0, 102]), labels(2, &[7, 3]));
    for (image, label) in [(good.clone(), two.clone()), (gzip(&good), gzip(&two))] {
        let examples = read(&image, &label).unwrap();
        assert_eq!(plain(&examples), [("7".into(), vec![(1, 0.2), (2, 1.0)]), ("3".into(), vec![(2, 0.4)])]);
        assert_eq!(examples.fixed_features(), Some(3));
    }
    let sentence = |image: &[u8], label: &[u8]| {
        let error = read(image, label).unwrap_err().to_string();
        error.rsplit_once('/').unwrap().1.to_owned()
    };
    let (x, y) = ("x-images-idx3-ubyte.gz: ", "x-labels-idx1-ubyte.gz: ");
    let cases: &[(&[u8], &[u8], String)] = &[
        (&good[..20], &two, format!("{x}ends after 1 of the 2 examples that it announces; the file is incomplete")),
        (
            &[&good[..], &[0]].concat(),
            &two,
            format!("{x}goes on after the 2 examples that it announces; the file is damaged"),
        ),
        (&good[..10], &two, format!("{x}ends within its header; the file is incomplete")),
        (&good, &two[..9], format!("{y}ends after 1 of the 2 examples that it announces; the file is incomplete")),
        (&good, &labels(3, &[1, 2, 3]), format!("{y}holds 3 labels for 2 images; expected one for each")),
        (
            &good,
            &labels(2, &[1, 2, 3]),
            format!("{y}goes on after the 2 examples that it announces; the file is damaged"),
        ),
        (&good, &good, format!("{y}starts with the bytes 00 00 08 03; expected 00 00 08 01, the mark of idx labels")),
        (&two, &two, format!("{x}holds idx labels; name the file of their images")),
        (
            &images(1, u32::MAX, u32::MAX, &[]),
            &two,
            format!("{x}announces examples of 18446744065119617025 numbers; expected between 1 and 16777216"),
        ),
        (
            &images(u32::MAX, 28, 28, &[]),
            &labels(u32::MAX, &[]),
            format!("{x}ends after 0 of the 4294967295 examples that it announces; the file is incomplete"),
        ),
        (
            &[0, 0, 13, 3, 0, 0, 0, 1],
            &two,
            format!(
                "{x}starts with the bytes 00 00 0d 03; expected 00 00 08 and two dimensions or more, the mark of idx images"
            ),
        ),
        (&gzip(&good)[..20], &two, format!("{x}the gzip data end too early after line 0; the file is incomplete")),
    ];
    for (image, label, expected) in cases {
        assert_eq!(sentence(image, label), *expected);
    }
    fs::remove_file(&beside).unwrap();
    fs::write(&file, &good).unwrap();
    let error = Examples::read(&[&file], &Options::default()).unwrap_err().to_string();
    assert!(
        error.contains("the labels of these images are looked for in '")
            && error.ends_with("which is not there; name their file"),
        "{error}"
    );
    let other = directory.path().join("digits");
    fs::write(&other, &good).unwrap();
    let error = Examples::read(&[&other], &Options::default()).unwrap_err().to_string();
    assert!(
        error.ends_with("digits: where the labels of these images are cannot be told from the name; name their file")
    );
    assert_eq!(Examples::read_unlabelled(&[&other], &Options::default()).unwrap().len(), 2);
    fs::write(&beside, &two).unwrap();
    let named = Options { labels_file: Some(beside), ..Options::default() };
    assert_eq!(Examples::read(&[&other], &named).unwrap().labels(), [1, 0]);
}

#[test]
fn wrong_paths_and_damaged_gzip_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display();
    let error = Examples::read(&[directory.path()], &Options::default()).unwrap_err().to_string();
    assert_eq!(error, format!("{path}: is a directory; expected a file of examples"));
    let error = Examples::read(&[directory.path().join("none")], &Options::default()).unwrap_err().to_string();
    assert_eq!(error, format!("{path}/none: cannot be read: No such file or directory (os error 2)"));
    let text: String = (0..20_000).map(|row| format!("{} {}:{}\n", row % 3, row % 97, row * 7919 % 1000)).collect();
    let whole = gzip(text.as_bytes());
    let error = read(&whole[..whole.len() / 2]).unwrap_err().to_string();
    assert!(
        error.contains("data: the gzip data end too early after line ") && error.ends_with("; the file is incomplete")
    );
}

#[test]
fn mnist_is_read_whole() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/mnist");
    let file = folder.join("t10k-images-idx3-ubyte.gz");
    if !file.exists() {
        eprintln!("skipped: MNIST is not there");
        return;
    }
    let examples = Examples::read(&[file], &Options::default()).unwrap();
    assert_eq!((examples.len(), examples.features(), examples.classes.len()), (10_000, 784, 10));
    assert_eq!(examples.labels()[..4], [7, 2, 1, 0]);
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400)) {
        check_any(&bytes);
    }

    #[test]
    fn any_text_of_examples_is_read_or_refused(text in "[0-9a\"#,;:\t .\n\r-]{0,200}") {
        check_any(text.as_bytes());
        check_any(&gzip(text.as_bytes()));
    }

    #[test]
    fn any_header_of_images_is_read_or_refused(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..60)) {
        check_any(&[&[0, 0, 8, 3][..], &bytes].concat());
    }
}

/// What is accepted holds finite values of ascending features, in every format.
fn check_any(bytes: &[u8]) {
    for format in [None, Some(Format::Libsvm), Some(Format::Delimited), Some(Format::Idx)] {
        if let Ok(examples) = read_with(bytes, &Options { format, ..Options::default() }) {
            assert!(!examples.is_empty());
            for number in 0..examples.len() {
                let example = examples.example(number);
                assert!(example.columns.is_sorted() && example.values.iter().all(|value| value.is_finite()));
                assert!((examples.labels()[number] as usize) < examples.classes.len());
            }
        }
    }
}
