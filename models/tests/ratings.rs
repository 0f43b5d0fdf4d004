//! Reading ratings: every way to write them, every way to get them wrong.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use hemiola_models::ratings::{Ratings, ReadError, Split};

fn read_bytes(bytes: &[u8]) -> Result<Ratings, ReadError> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ratings.csv");
    fs::write(&file, bytes).unwrap();
    Ratings::read(&[file])
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// User, item and value of a rating.
type Triple<'r> = (&'r str, &'r str, f32);

fn triples(ratings: &Ratings) -> Vec<Triple<'_>> {
    let names = |rating: hemiola_models::Rating| {
        (ratings.users.name(rating.user), ratings.items.name(rating.item), rating.value)
    };
    ratings.ratings.iter().map(names).collect()
}

#[test]
fn every_good_format_is_read() {
    let two = &[("1", "10", 4.0), ("2", "11", 3.5)][..];
    let cases: &[(&str, &[Triple])] = &[
        ("1,10,4\n2,11,3.5\n", two),
        ("1,10,4\n2,11,3.5", two),
        ("1,10,4\r\n2,11,3.5\r\n", two),
        ("\u{feff}1,10,4\n2,11,3.5\n", two),
        ("1, 10, 4\n 2 ,11,  3.5 \n", two),
        ("\n1,10,4\n\n  \n2,11,3.5\n\n", two),
        ("1;10;4\n2;11;3.5\n", two),
        ("1\t10\t4\n2\t11\t3.5\n", two),
        ("1::10::4\n2::11::3.5\n", two),
        ("1 10 4\n2   11 \t3.5 \n", two),
        ("1,10,4,881250949\n2,11,3.5,2001-02-03\n", two),
        ("1::10::4::978300760\n2::11::3.5::978300760\n", two),
        ("1\t10\t4\t881250949\n2\t11\t3.5\t\n", two),
        ("userId,movieId,rating,timestamp\n1,10,4,7\n2,11,3.5,8\n", two),
        ("rating,Item ID,user_id\n4,10,1\n3.5,11,2\n", two),
        ("time\titem\tsource\tuser\trating\n0\t10\tx\t1\t4\n0\t11\ty\t2\t3.5\n", two),
        ("who what much\n1 10 4\n2 11 3.5\n", two),
        ("\"user\",\"item\",\"rating\"\n\"1\",\"10\",\"4\"\n\"2\" ,\"11\",3.5\n", two),
        ("\"1\";\"10\";\"4\"\n\"2\";\"11\";\"3.5\"\n", two),
        ("\"a,b\",\"say \"\"hi\"\"\",1\n\"\"\"\",b c,2\n", &[("a,b", "say \"hi\"", 1.0), ("\"", "b c", 2.0)]),
        ("1,01,1\n01,1,2\n1,1,3\n", &[("1", "01", 1.0), ("01", "1", 2.0), ("1", "1", 3.0)]),
        ("é,日本,-1.25e1\nx,y,+.5\n", &[("é", "日本", -12.5), ("x", "y", 0.5)]),
        ("a,b,1\na,b,2\n", &[("a", "b", 1.0), ("a", "b", 2.0)]),
        (
            "1048575,1048576,1\n999999999,9999999999,1234.567\n1048576,1048575,12345.6789\n",
            &[("1048575", "1048576", 1.0), ("999999999", "9999999999", 1234.567), ("1048576", "1048575", 12345.679)],
        ),
    ];
    for (text, expected) in cases {
        for (kind, bytes) in [("plain", text.as_bytes().to_vec()), ("gzip", gzip(text.as_bytes()))] {
            let ratings = read_bytes(&bytes).unwrap_or_else(|error| panic!("{kind} {text:?}: {error}"));
            assert_eq!(triples(&ratings), *expected, "{kind} {text:?}");
        }
    }
}

#[test]
fn every_bad_input_has_its_sentence() {
    let long = format!("1,2,{}\n", "3".repeat(1 << 20));
    let unknown = "ratings.csv:1: expected 3 or 4 columns (user, item, rating, time) \
                   separated by ',', ';', a tab, '::' or white space";
    let rating = |line, found| format!("ratings.csv:{line}: expected a finite number as rating, found '{found}'");
    let empty = "ratings.csv: holds no ratings; expected lines of user, item, rating";
    let quote = "a quoted field must be closed by '\"' right before a separator or the end of the line";
    let cases: &[(&[u8], &str)] = &[
        (b"", empty),
        (b"\n \r\n", empty),
        (b"user,item,rating\n", empty),
        (b"1\n", unknown),
        (b"1,2\n1,2,3\n", unknown),
        (b"1,2,3,4,5\n", unknown),
        (b"1,2,3\n1,2\n", "ratings.csv:2: expected 3 columns (user, item, rating) separated by ',', found 2"),
        (b"1,2,3\n\n1,2,3,4\n", "ratings.csv:3: expected 3 columns (user, item, rating) separated by ',', found 4"),
        (
            b"1\t2\t3\t4\n1 2 3 4\n",
            "ratings.csv:2: expected 4 columns (user, item, rating, time) separated by a tab, found 1",
        ),
        (b"1::2::3\n1:2:3\n", "ratings.csv:2: expected 3 columns (user, item, rating) separated by '::', found 1"),
        (b"1 2 3\n1 2\n", "ratings.csv:2: expected 3 columns (user, item, rating) separated by white space, found 2"),
        (
            b"x,rating,item,user,y\n1,2,3,4\n",
            "ratings.csv:2: expected 5 columns as in the header separated by ',', found 4",
        ),
        (
            b"item,user,points\n1,2,3\n",
            "ratings.csv:1: the header names no rating column; expected names such as user, item, rating",
        ),
        (
            b"a,b,c,d,e\n1,2,3,4,5\n",
            "ratings.csv:1: the header names no user column; expected names such as user, item, rating",
        ),
        (b"1,2,abc\n1,2,3\n", &rating(1, "abc")),
        (b"1,2,3\n1,2,nan\n", &rating(2, "nan")),
        (b"1,2,3\n1,2,inf\n", &rating(2, "inf")),
        (b"1,2,3\n1,2,1e40\n", &rating(2, "1e40")),
        (b"1,2,3\n1,2,\n", &rating(2, "")),
        (b"1,2,3\n1,2,4x\x07\n", &rating(2, "4x\\u{7}")),
        (
            b"1,2,3\n1,2,xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n",
            &rating(2, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..."),
        ),
        (b"1,2,3\n,2,3\n", "ratings.csv:2: the user is empty; expected an id"),
        (b"1,2,3\n1,\"\",3\n", "ratings.csv:2: the item is empty; expected an id"),
        (b"1,2,3\n1,\xff,3\n", "ratings.csv:2: the item is not UTF-8 text; expected a text file of ratings"),
        (b"a\0,2,3\n", "ratings.csv:1: the user is not UTF-8 text; expected a text file of ratings"),
        (b"1,2,3\n\"a,2,3\nb\",2,3\n", &format!("ratings.csv:2: {quote}")),
        (b"1,2,3\n\"a\"b,2,3\n", &format!("ratings.csv:2: {quote}")),
        (b"\"a,b,3\n", &format!("ratings.csv:1: {quote}")),
        (long.as_bytes(), "ratings.csv:1: the line is longer than 1048576 bytes"),
    ];
    for (bytes, expected) in cases {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]);
        let error = read_bytes(bytes).expect_err(&shown).to_string();
        let (_, sentence) = error.rsplit_once('/').unwrap();
        assert_eq!(sentence, *expected, "{shown:?}");
    }
}

#[test]
fn damaged_gzip_and_wrong_paths_are_named() {
    let text: String = (0..5_000).map(|row| format!("{row},{},{}\n", row * 7919 % 1000, row % 5)).collect();
    let whole = gzip(text.as_bytes());
    let sentence = |bytes: &[u8]| read_bytes(bytes).unwrap_err().to_string();
    let truncated = sentence(&whole[..whole.len() / 2]);
    assert!(truncated.contains("ratings.csv: the gzip data end too early after line "), "{truncated}");
    assert!(truncated.ends_with("; the file is incomplete"), "{truncated}");
    let mut flipped = whole.clone();
    let end = flipped.len() - 6;
    flipped[end] ^= 1;
    let flipped = sentence(&flipped);
    assert!(flipped.contains("ratings.csv: the gzip data are damaged after line 5000: "), "{flipped}");

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display();
    let error = Ratings::read(&[directory.path()]).unwrap_err().to_string();
    assert_eq!(error, format!("{path}: is a directory; expected a file of ratings"));
    let error = Ratings::read(&[directory.path().join("none")]).unwrap_err().to_string();
    assert_eq!(error, format!("{path}/none: cannot be read: No such file or directory (os error 2)"));
    assert_eq!(Ratings::read::<PathBuf>(&[]).unwrap_err().to_string(), "no file of ratings was given");
}

#[test]
fn lines_and_blocks_of_any_length_are_read() {
    let id = "x".repeat((1 << 20) - 4);
    let ratings = read_bytes(format!("a,b,1\n{id},b,2\nc,d,3\n").as_bytes()).unwrap();
    assert_eq!(triples(&ratings), [("a", "b", 1.0), (&id, "b", 2.0), ("c", "d", 3.0)]);

    for padding in 0..12 {
        let mut text = format!("{},1,1\n", "u".repeat(padding + 1));
        (0..60_000).for_each(|row| text.push_str(&format!("{row},{},{}\n", row % 100, row % 5)));
        let ratings = read_bytes(text.trim_end().as_bytes()).unwrap();
        assert_eq!(ratings.ratings.len(), 60_001);
        let sum: f64 = ratings.ratings.iter().map(|rating| f64::from(rating.value)).sum();
        assert_eq!((sum, ratings.users.len(), ratings.items.len()), (120_001.0, 60_001, 100));
    }
}

#[test]
fn several_files_share_their_ids() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let file = directory.path().join(name);
        fs::write(&file, bytes).unwrap();
        file
    };
    let one = write("one", b"a,x,1\nb,y,2\n");
    let two = write("two", &gzip(b"b::x::3\nc::z::4\n"));
    let both = Ratings::read(&[&one, &two]).unwrap();
    assert_eq!(triples(&both), [("a", "x", 1.0), ("b", "y", 2.0), ("b", "x", 3.0), ("c", "z", 4.0)]);
    assert_eq!((both.users.len(), both.items.len()), (3, 3));

    let split = Split::read_test(Ratings::read(&[&one]).unwrap(), &[&two]).unwrap();
    assert_eq!((split.train().len(), split.test().len()), (2, 2));
    assert_eq!(split.ratings(), &both);
    assert_eq!(split.unseen(), (vec![2], vec![2]));
}

fn movielens(file: &str) -> Option<Ratings> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data").join(file);
    if !path.exists() {
        eprintln!("skipped: {file} is not there");
        return None;
    }
    Some(Ratings::read(&[path]).unwrap())
}

#[test]
fn movielens_is_read_whole() {
    let sets = [
        ("ml-100k/u.data.gz", 100_000, 943, 1682, 3.5299),
        ("ml-1m/ratings_notime.dat.gz", 1_000_209, 6040, 3706, 3.5816),
    ];
    for (file, count, users, items, mean) in sets {
        let Some(ratings) = movielens(file) else {
            continue;
        };
        let found = (ratings.ratings.len(), ratings.users.len(), ratings.items.len());
        assert_eq!(found, (count, users, items), "{file}");
        let (found, range) = Ratings::mean_and_range(ratings.ratings.iter());
        assert!((found - mean).abs() < 5e-5, "{file}: mean {found}");
        assert_eq!(range, (1.0, 5.0));
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400)) {
        check_any(&bytes);
    }

    #[test]
    fn any_text_of_separators_is_read_or_refused(text in "[0-9a\",;:\t .\n\r-]{0,200}") {
        check_any(text.as_bytes());
        check_any(&gzip(text.as_bytes()));
    }
}

/// What is accepted holds finite values and as many ids as it numbers.
fn check_any(bytes: &[u8]) {
    if let Ok(ratings) = read_bytes(bytes) {
        assert!(!ratings.ratings.is_empty());
        for (user, item, value) in triples(&ratings) {
            assert!(!user.is_empty() && !item.is_empty() && value.is_finite());
        }
    }
}
