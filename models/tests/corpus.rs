//! Reading corpora: every format, every way to get it wrong.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use hemiola_models::Names;
use hemiola_models::corpus::{Corpus, CorpusError, Format, Pruning, Reading, StopWords};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn names(words: &[&str]) -> Names {
    let mut names = Names::default();
    words.iter().for_each(|word| assert!(names.intern(word).is_ok()));
    names
}

/// Reads documents, and the words of a vocabulary if there is one.
fn read(bytes: &[u8], vocabulary: Option<&[u8]>, how: &Reading) -> Result<Corpus, CorpusError> {
    let directory = tempfile::tempdir().unwrap();
    let (file, list) = (directory.path().join("data.txt"), directory.path().join("vocab.txt"));
    fs::write(&file, bytes).unwrap();
    let mut how = how.clone();
    if let Some(words) = vocabulary {
        fs::write(&list, words).unwrap();
        how.vocabulary = Some(list);
    }
    Corpus::read(&[file], &how)
}

/// The documents as text, words separated by blanks.
fn documents(corpus: &Corpus) -> Vec<String> {
    let text = |document| {
        let words: Vec<&str> = corpus.document(document).iter().map(|&word| corpus.vocabulary.name(word)).collect();
        words.join(" ")
    };
    (0..corpus.documents()).map(text).collect()
}

/// Documents, a vocabulary, and what is expected of them.
type Case<'c, E> = (&'c [u8], Option<&'c [u8]>, E);

#[test]
fn every_format_is_told_by_what_it_holds() {
    let vocabulary = Some(&b"cat\ndog\nowl\n"[..]);
    let cases: &[Case<&[&str]>] = &[
        (b"2\n3\n3\n1 1 2\n1 3 1\n2 2 1\n", vocabulary, &["cat cat owl", "dog"]),
        (b"2\n3\n3\n1 1 2\n1 3 1\n2 2 1", Some(b"cat\r\n dog \nowl\n\n\n"), &["cat cat owl", "dog"]),
        (b"\xef\xbb\xbf2\r\n3\r\n2\r\n1\t1 2\r\n\r\n2   2 1\r\n", vocabulary, &["cat cat", "dog"]),
        (b"2\n3\n3\n1 1 2\n1 3 1\n2 2 1\n", None, &["1 1 3", "2"]),
        (b"5\n3\n2\n2 1 1\n4 2 1\n", vocabulary, &["", "cat", "", "dog", ""]),
        (b"2 0:2 2:1\n1 1:1\n", vocabulary, &["cat cat owl", "dog"]),
        (b"2 0:2 2:1\n1 1:1", None, &["0 0 2", "1"]),
        (b"0\n\n1 2:1\n0\n", vocabulary, &["", "owl", ""]),
        (b"2\n3\n5\n1 3 1\n1 1 1\n1 2 1\n2 2 1\n2 1 1\n", vocabulary, &["owl cat dog", "dog cat"]),
        (b"3 2:1 0:1 1:1\n2 1:1 0:1\n", vocabulary, &["owl cat dog", "dog cat"]),
        (b"The Cat sat.\n\nA cat's OWL, and 7 dogs\n", None, &["cat sat", "", "cat's owl dogs"]),
        (b"3 blind mice\n1 2\n", None, &["blind mice", ""]),
    ];
    for (text, vocabulary, expected) in cases {
        let shown = String::from_utf8_lossy(text);
        for bytes in [text.to_vec(), gzip(text)] {
            let corpus =
                read(&bytes, *vocabulary, &Reading::default()).unwrap_or_else(|error| panic!("{shown:?}: {error}"));
            assert_eq!(documents(&corpus), *expected, "{shown:?}");
        }
    }
    let listed = read(b"1\n3\n1\n1 3 1\n", vocabulary, &Reading::default()).unwrap();
    assert_eq!(listed.vocabulary, names(&["cat", "dog", "owl"]), "numbered as in its file");
}

#[test]
fn a_format_can_be_forced() {
    let forced = |bytes: &[u8], format| read(bytes, None, &Reading { format: Some(format), ..Reading::default() });
    assert_eq!(documents(&forced(b"1 x2:1\n", Format::Text).unwrap()), ["x2"]);
    let sentence = |bytes: &[u8], format| {
        let error = forced(bytes, format).unwrap_err().to_string();
        error.rsplit_once('/').unwrap().1.to_owned()
    };
    assert_eq!(
        sentence(b"words\n", Format::DocWord),
        "data.txt:1: expected the number of documents alone on a line of the header, found 'words'"
    );
    assert_eq!(
        sentence(b"words\n", Format::LdaC),
        "data.txt:1: expected the number of distinct words at the start of the line, found 'words'"
    );
}

/// Checks that documents, with a vocabulary or without, are refused with their sentences.
fn check_refusals(cases: &[Case<&str>]) {
    for (bytes, vocabulary, expected) in cases {
        let shown = String::from_utf8_lossy(bytes);
        let error = read(bytes, *vocabulary, &Reading::default()).expect_err(&shown).to_string();
        let sentence = error.rsplit_once("/data").map(|(_, rest)| format!("data{rest}"));
        let sentence = sentence.or_else(|| error.rsplit_once("/vocab").map(|(_, rest)| format!("vocab{rest}")));
        assert_eq!(sentence.unwrap_or(error), *expected, "{shown:?}");
    }
}

fn wrong_count(line: u64, found: &str) -> String {
    format!("data.txt:{line}: expected a count between 1 and 1000000, found '{found}'")
}

fn again(line: u64, word: u64) -> String {
    format!(
        "data.txt:{line}: word {word} was in this document before; expected each word of a document once, with its count"
    )
}

#[test]
fn what_holds_no_words_is_refused() {
    let empty = "data.txt: holds no words; expected text with one document a line, UCI bag-of-words or lda-c";
    let binary = "data.txt:2: the line is not UTF-8 text; expected a text file";
    let none_left =
        "data.txt: none of its 3 words is left by the limits on stop words and document frequency; widen them";
    check_refusals(&[
        (b"", None, empty),
        (b"\n\n", None, empty),
        (b"12 34\n", None, empty),
        (b"0\n0\n0\n", None, empty),
        (b"3\n3\n0\n", None, empty),
        (b"0\n", None, empty),
        (b"the and of\nthe\n", None, none_left),
        (b"word\n\xff\n", None, binary),
        (b"word\na\0b\n", None, binary),
    ]);
    let few = Reading { most_tokens: 5, ..Reading::default() };
    let error = read(b"2 0:3 1:3\n", None, &few).unwrap_err().to_string();
    let expected = ":1: the documents have more than 5 words together, which is not supported; give fewer documents";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn every_mistake_in_bag_of_words_has_its_sentence() {
    let list = Some(&b"cat\ndog\nowl\n"[..]);
    let count = wrong_count;
    let header = |line, what, found| {
        format!("data.txt:{line}: expected the number of {what} alone on a line of the header, found '{found}'")
    };
    let too_many = |line, stated| format!("data.txt:{line}: the header states {stated}; expected less than 4294967295");
    let entry = |line, found| {
        format!(
            "data.txt:{line}: expected 3 whole numbers (document, word, count) separated by blanks, found '{found}'"
        )
    };
    let entries = |line, stated, found| {
        format!(
            "data.txt:{line}: the header states {stated} entries and the file has {found}; \
             the file is incomplete or damaged"
        )
    };
    check_refusals(&[
        (b"-2\n3\n3\n", None, &header(1, "documents", "-2")),
        (b"2\n-3\n3\n", None, &header(2, "words", "-3")),
        (b"2\n3\n1 1 1\n", None, &header(3, "entries", "1 1 1")),
        (b"99999999999\n3\n1\n1 1 1\n", None, &too_many(1, "99999999999 documents")),
        (b"2\n4294967295\n1\n1 1 1\n", None, &too_many(2, "4294967295 words")),
        (b"2\n3\n99999999999999999999\n1 1 1\n", None, &header(3, "entries", "99999999999999999999")),
        (
            b"2\n3\n",
            None,
            "data.txt:2: the header ends before the number of entries; expected lines for documents, words and entries",
        ),
        (
            b"2\n4\n1\n1 1 1\n",
            list,
            "data.txt:2: the header states 4 words and the vocabulary has 3; expected the same number",
        ),
        (b"2\n3\n2\n1 1 1\n", None, &entries(3, 2, 1)),
        (b"2\n3\n4000000000000\n1 1 1\n", None, &entries(3, 4_000_000_000_000u64, 1)),
        (b"2\n3\n1\n1 1 1\n2 1 1\n", None, &entries(5, 1, 2)),
        (b"2\n3\n1\n1 1\n", None, &entry(4, "1 1")),
        (b"2\n3\n1\n1 1 1 1\n", None, &entry(4, "1 1 1 1")),
        (b"2\n3\n1\n1 x 1\n", None, &entry(4, "1 x 1")),
        (b"2\n3\n1\n-1 1 1\n", None, &entry(4, "-1 1 1")),
        (b"2\n3\n1\n1 1 0\n", None, &count(4, "0")),
        (b"2\n3\n1\n1 1 -1\n", None, &count(4, "-1")),
        (b"2\n3\n1\n1 1 1.5\n", None, &count(4, "1.5")),
        (b"2\n3\n1\n1 1 1000001\n", None, &count(4, "1000001")),
        (b"2\n3\n1\n3 1 1\n", None, "data.txt:4: document 3 is beyond the header; expected a number between 1 and 2"),
        (b"2\n3\n1\n0 1 1\n", None, "data.txt:4: document 0 is beyond the header; expected a number between 1 and 2"),
        (b"2\n3\n1\n1 4 1\n", None, "data.txt:4: word 4 is beyond the header; expected a number between 1 and 3"),
        (b"2\n3\n1\n1 0 1\n", None, "data.txt:4: word 0 is beyond the header; expected a number between 1 and 3"),
        (
            b"2\n3\n2\n2 1 1\n1 1 1\n",
            None,
            "data.txt:5: document 1 comes behind document 2; expected documents in ascending order",
        ),
        (b"2\n3\n3\n1 2 1\n2 2 1\n2 2 1\n", None, &again(6, 2)),
        (b"2\n3\n3\n1 3 1\n1 2 1\n1 3 1\n", list, &again(6, 3)),
        (
            b"4000000000\n3\n1\n1 1 1\n",
            None,
            "data.txt:1: more than 1048576 documents have no words; expected documents with words",
        ),
        (
            b"4000000000\n3\n1\n4000000000 1 1\n",
            None,
            "data.txt:4: more than 1048576 documents have no words; expected documents with words",
        ),
    ]);
}

#[test]
fn every_mistake_in_lda_c_and_vocabularies_has_its_sentence() {
    let list = Some(&b"cat\ndog\nowl\n"[..]);
    let count = wrong_count;
    let pair =
        |line, found| format!("data.txt:{line}: expected pairs of word:count, both whole numbers, found '{found}'");
    check_refusals(&[
        (
            b"1 0:1\nx 0:1\n",
            None,
            "data.txt:2: expected the number of distinct words at the start of the line, found 'x'",
        ),
        (b"1 0:1\n2 0:1 1\n", None, &pair(2, "1")),
        (b"1 0:1\n2 0:1 0:2\n", None, &again(2, 0)),
        (b"3 2:1 0:1 2:1\n", list, &again(1, 2)),
        (b"1 0:1\n1 a:1\n", None, &pair(2, "a:1")),
        (b"1 0:1\n1 -1:1\n", None, &pair(2, "-1:1")),
        (b"1 0:1\n1 0:0\n", None, &count(2, "0")),
        (b"1 0:1\n1 0:99999999999999999999\n", None, &count(2, "99999999999999999999")),
        (b"1 0:1\n1 0:\n", None, &count(2, "")),
        (b"1 0:1\n3 0:1 1:1\n", None, "data.txt:2: the line states 3 distinct words and has 2 pairs of word:count"),
        (b"1 1:4 2:2\n", None, "data.txt:1: the line states 1 distinct words and has 2 pairs of word:count"),
        (b"1 0:1\n1 3:1\n", list, "data.txt:2: word 3 is not in the vocabulary of 3 words; expected a number below 3"),
        (b"1 0:1\n", Some(b""), "vocab.txt: holds no words; expected one word a line"),
        (b"1 0:1\n", Some(b"a\n\nb\n"), "vocab.txt:2: the line is blank; expected one word a line"),
        (b"1 0:1\n", Some(b"a\nb\na\n"), "vocab.txt:3: the word 'a' stands on line 1, too; expected each word once"),
        (b"1 0:1\n", Some(b"a\n\xff\n"), "vocab.txt:2: the line is not UTF-8 text; expected a text file"),
    ]);
}

#[test]
fn damaged_gzip_and_wrong_paths_are_named() {
    let text: String = (1..5_000).map(|row| format!("1 {}:{}\n", row * 7919 % 1000, 1 + row % 5)).collect();
    let whole = gzip(text.as_bytes());
    let truncated = read(&whole[..whole.len() / 2], None, &Reading::default()).unwrap_err().to_string();
    assert!(truncated.contains("data.txt: the gzip data end too early after line "), "{truncated}");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display();
    let refused = |file: PathBuf, how: &Reading| Corpus::read(&[file], how).unwrap_err().to_string();
    let directory_as_data = refused(directory.path().to_owned(), &Reading::default());
    assert_eq!(directory_as_data, format!("{path}: is a directory; expected a file of documents"));
    let missing = "cannot be read: No such file or directory (os error 2)";
    assert_eq!(refused(directory.path().join("none"), &Reading::default()), format!("{path}/none: {missing}"));
    let how = Reading { vocabulary: Some(directory.path().to_owned()), ..Reading::default() };
    assert_eq!(
        refused(directory.path().join("none"), &how),
        format!("{path}: is a directory; expected a file of words")
    );
    let error = Corpus::read::<PathBuf>(&[], &Reading::default()).unwrap_err().to_string();
    assert_eq!(error, "no file of documents was given");
}

#[test]
fn words_are_left_out_as_asked() {
    let text = b"the owl and the cat\nowl owl dog\nowl cat cat\nemu\n";
    let pruned = |pruning| documents(&read(text, None, &Reading { pruning, ..Reading::default() }).unwrap());
    let all = Pruning { stop_words: StopWords::None, ..Pruning::default() };
    assert_eq!(pruned(Pruning::default()), ["owl cat", "owl owl dog", "owl cat cat", "emu"]);
    assert_eq!(pruned(all.clone()), ["the owl and the cat", "owl owl dog", "owl cat cat", "emu"]);
    assert_eq!(pruned(Pruning { least_documents: 2, ..all.clone() }), ["owl cat", "owl owl", "owl cat cat", ""]);
    assert_eq!(pruned(Pruning { greatest_share: 0.5, ..all.clone() }), ["the and the cat", "dog", "cat cat", "emu"]);
    assert_eq!(pruned(Pruning { most_words: Some(2), ..all.clone() }), ["owl cat", "owl owl", "owl cat cat", ""]);
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("stop.txt");
    fs::write(&list, "Owl\n\nthe\n").unwrap();
    let stopped = Pruning { stop_words: StopWords::File(list.clone()), ..all };
    assert_eq!(pruned(stopped.clone()), ["and cat", "dog", "cat cat", "emu"]);
    let how = Reading { pruning: stopped, ..Reading::default() };
    let listed = read(b"2 0:1 1:1\n", Some(b"owl\nthe\n"), &how);
    assert!(matches!(listed, Err(CorpusError::NothingLeft { words: 2, .. })), "{listed:?}");
    let listed = read(b"2 0:1 1:1\n", Some(b"owl\nthe\n"), &Reading::default()).unwrap();
    assert_eq!(documents(&listed), ["owl the"], "English stop words are for text");
    for several in ["owl, cat", "owl cat", "owl,"] {
        fs::write(&list, format!("the\n{several}\n")).unwrap();
        let error = read(text, None, &how).unwrap_err().to_string();
        assert_eq!(error, format!("{}:2: expected one word a line, found '{several}'", list.display()));
    }
    fs::write(&list, "New York\nOWL\n").unwrap();
    let listed = read(b"3 0:1 1:1 2:1\n", Some(b"new york\nOwl\nParis\n"), &how).unwrap();
    assert_eq!(documents(&listed), ["Paris"], "a vocabulary may have names of several words");
}

#[test]
fn other_files_are_read_with_a_known_vocabulary() {
    let known = names(&["owl", "cat"]);
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let list = write("vocab.txt", "cat\ndog\nowl\n");
    let counted = write("counted.txt", "2 0:2 1:3\n1 2:1\n");
    let prose = write("prose.txt", "A cat, an emu\nowl\n");
    let how = Reading { vocabulary: Some(list), ..Reading::default() };
    let (corpus, unknown) = Corpus::read_known(&[&counted, &counted], &how, &known).unwrap();
    assert_eq!((documents(&corpus), unknown), (["cat cat", "owl", "cat cat", "owl"].map(String::from).to_vec(), 6));
    assert_eq!(corpus.vocabulary, known);
    let (corpus, unknown) = Corpus::read_known(&[&prose], &Reading::default(), &known).unwrap();
    assert_eq!((documents(&corpus), unknown), (["cat", "owl"].map(String::from).to_vec(), 3));
    // A list of words that those to train on need is no mistake in others.
    let refused = Corpus::read_known(&[&prose], &how, &known);
    assert!(matches!(refused, Err(CorpusError::WrittenOut { .. })), "{refused:?}");
    assert_eq!(documents(&Corpus::read_held_out(&[&prose], &how, &known).unwrap()), ["cat", "owl"]);
    let unheard = write("unheard.txt", "An emu\n");
    let error = Corpus::read_known(&[&unheard], &Reading::default(), &known).unwrap_err().to_string();
    let expected = "holds none of the 2 words that are known; expected documents with the same vocabulary";
    assert_eq!(error, format!("{}: {expected}", unheard.display()));
}

#[test]
fn numbers_are_words_only_where_all_known_words_are_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("data.txt");
    let read = |text: &str, known: &[&str]| {
        fs::write(&file, text).unwrap();
        let read = Corpus::read_known(&[&file], &Reading::default(), &names(known));
        read.map(|(corpus, _)| documents(&corpus))
    };
    let (bag, pairs) = ("2\n3\n2\n1 1 2\n2 3 1\n", "1 1:2\n1 3:1\n");
    assert_eq!(read(bag, &["3", "1"]).unwrap(), ["1 1", "3"]);
    assert_eq!(read(pairs, &["3", "1"]).unwrap(), ["1 1", "3"]);
    for (text, format) in [(bag, "UCI bag-of-words"), (pairs, "lda-c")] {
        for known in [["owl", "1"], ["3", "01"]] {
            let error = read(text, &known).unwrap_err().to_string();
            let why = "whose words are numbers, and those that are known are not; expected a list of its words";
            assert_eq!(error, format!("{}: is {format}, {why}", file.display()), "{known:?}");
        }
    }
}

#[test]
fn files_of_one_corpus_have_one_format() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let files = [
        (write("bag.txt", "1\n2\n1\n1 2 1\n"), "UCI bag-of-words"),
        (write("pairs.txt", "1 0:1\n"), "lda-c"),
        (write("prose.txt", "owl\ncat\n"), "text"),
    ];
    for (first, first_format) in &files {
        for (file, format) in &files {
            let read = Corpus::read(&[first, file], &Reading::default());
            if format == first_format {
                assert_eq!(read.unwrap().documents() % 2, 0);
                continue;
            }
            let (shown, first) = (file.display(), first.display());
            let sentence = format!("{shown}: is {format}, and {first} is {first_format}; expected files of one format");
            assert_eq!(read.unwrap_err().to_string(), sentence);
        }
    }
    let text = Reading { format: Some(Format::Text), ..Reading::default() };
    let told = write("told.txt", "1 2:1 emu\n");
    assert_eq!(documents(&Corpus::read(&[&files[2].0, &told], &text).unwrap()), ["owl", "cat", "emu"]);
}

#[test]
fn a_vocabulary_of_text_is_read_as_text_is() {
    let text = "Paris, the café; DON\u{2019}T\nemu\n".as_bytes();
    let listed = |list: &str| read(text, Some(list.as_bytes()), &Reading::default());
    let corpus = listed("PARIS\nCafé\nDon\u{2019}t\nemus\n").unwrap();
    assert_eq!(corpus.vocabulary, names(&["paris", "café", "emus"]), "but for an English stop word");
    assert_eq!(documents(&corpus), ["paris café", ""]);
    let never = |word| {
        format!(
            "'{word}' is not one word of text, letters and digits with a letter among them; expected one word a line"
        )
    };
    let prose: &[u8] = b"Paris\n";
    check_refusals(&[
        (prose, Some(b"paris\nNew York\n"), &format!("vocab.txt:2: {}", never("New York"))),
        (prose, Some(b"1984\n"), &format!("vocab.txt:1: {}", never("1984"))),
        (
            prose,
            Some(b"Paris\nowl\nPARIS\n"),
            "vocab.txt:3: the word 'paris' stands on line 1, too; expected each word once",
        ),
    ]);
    let pairs = read(b"2 0:1 1:1\n", Some(b"New York\nnew york\n"), &Reading::default()).unwrap();
    assert_eq!(pairs.vocabulary, names(&["New York", "new york"]), "of other formats as they are written");
}

#[test]
fn public_corpora_are_read_whole() {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let sets = [
        ("kos/docword.kos.txt.gz", "kos/vocab.kos.txt.gz", 3_430, 6_906, 467_714),
        ("nips/docword.nips.train.txt.gz", "nips/vocab.nips.txt.gz", 1_350, 7_605, 1_683_117),
        ("ap/ap.dat.gz", "ap/vocab.txt.gz", 2_246, 10_473, 435_838),
    ];
    for (file, vocabulary, count, words, tokens) in sets {
        if !data.join(file).exists() {
            eprintln!("skipped: {file} is not there");
            continue;
        }
        let how = Reading { vocabulary: Some(data.join(vocabulary)), ..Reading::default() };
        let corpus = Corpus::read(&[data.join(file)], &how).unwrap();
        assert_eq!((corpus.documents(), corpus.vocabulary.len(), corpus.tokens()), (count, words, tokens), "{file}");
    }
}

proptest::proptest! {
    // Each case writes and reads eight files.
    #![proptest_config(proptest::test_runner::Config::with_cases(64))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400)) {
        check_any(&bytes);
    }

    #[test]
    fn any_header_and_entries_are_read_or_refused(text in "[0-9]{1,3}\n[0-9]{1,3}\n[0-9]\n([0-9]{1,2} [0-9]{1,2} [0-9-]{1,2}\n){0,6}") {
        check_any(text.as_bytes());
        check_any(&gzip(text.as_bytes()));
    }

    #[test]
    fn any_pairs_are_read_or_refused(text in "([0-3] ?([0-9]{1,3}:[0-9]{1,3} ){0,3}\n){1,5}") {
        check_any(text.as_bytes());
    }
}

/// What is accepted has words, all of them in the vocabulary.
fn check_any(bytes: &[u8]) {
    let how = Reading { most_tokens: 100_000, ..Reading::default() };
    for format in [None, Some(Format::DocWord), Some(Format::LdaC), Some(Format::Text)] {
        if let Ok(corpus) = read(bytes, None, &Reading { format, ..how.clone() }) {
            assert!(corpus.tokens() > 0);
            let counted: usize = (0..corpus.documents()).map(|document| corpus.document(document).len()).sum();
            assert_eq!(counted, corpus.tokens());
            documents(&corpus);
        }
        if let Ok(corpus) = read(b"1 0:1\n", Some(bytes), &how) {
            assert!(corpus.vocabulary.iter().all(|word| !word.is_empty()));
        }
    }
}
