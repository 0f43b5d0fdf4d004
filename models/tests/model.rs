//! Models on disk: what is written is read again, and anything else is refused.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use hemiola_models::mf::model::MfModel;
use hemiola_models::ratings::Ratings;
use hemiola_models::{Names, Rating};
use serde_json::json;

fn names(ids: &[&str]) -> Names {
    let mut names = Names::default();
    ids.iter().for_each(|id| assert!(names.intern(id).is_ok()));
    names
}

fn model(biased: bool) -> MfModel {
    MfModel {
        users: names(&["ann", "back\\slash", "two\nlines\r"]),
        items: names(&["x", "", "é,", "w"]),
        rank: 2,
        user_factors: vec![1.0, 0.5, 0.0, -1.0, 2.0, 2.0],
        item_factors: vec![0.1, 0.2, 1.0, 1.0, 1.0, 1.0, -1.0, 0.0],
        user_bias: biased.then(|| vec![0.1, 0.2, -0.3]),
        item_bias: biased.then(|| vec![0.5, 0.0, 0.0, -0.25]),
        mean: 3.1,
        range: (1.0, 5.0),
        config: json!({"step": 0.1, "epochs": 7}),
        metrics: json!({"rmse": 0.8453}),
    }
}

#[test]
fn predictions_use_what_is_known_and_stay_in_range() {
    let model = model(true);
    let cases = [
        (Some(0), Some(0), 3.1 + 0.1 + 0.5 + 0.2),
        (Some(0), None, 3.1 + 0.1),
        (None, Some(3), 3.1 - 0.25),
        (Some(9), Some(9), 3.1),
        (None, None, 3.1),
        (Some(2), Some(1), 5.0),
        (Some(2), Some(3), 1.0),
    ];
    for (user, item, expected) in cases {
        let found = model.predict(user, item);
        // The last case is 3.1 - 0.3 - 0.25 - 2, which is below the range.
        assert!((found - expected).abs() < 1e-6, "{user:?} {item:?}: {found}, not {expected}");
    }
}

#[test]
fn the_best_items_come_first_and_ties_in_their_order() {
    let mut model = model(false);
    let ids = |found: Vec<(u32, f32)>| found.into_iter().map(|(item, _)| item).collect::<Vec<_>>();
    assert_eq!(ids(model.recommend(Some(0), 9, &HashSet::new())), [1, 2, 0, 3]);
    assert_eq!(ids(model.recommend(Some(0), 2, &HashSet::from([1]))), [2, 0]);
    assert_eq!(model.recommend(Some(0), 0, &HashSet::new()), []);
    assert_eq!(ids(model.recommend(None, 3, &HashSet::new())), [0, 1, 2]);
    model.item_factors[5] = 1.1;
    let best = model.recommend(Some(2), 2, &HashSet::new());
    assert_eq!(best, [(2, 5.0), (1, 5.0)], "ranked before clipping");
}

#[test]
fn errors_are_means_over_ratings() {
    let model = model(false);
    let rating = |user, item, value| Rating { user, item, value };
    let ratings = [rating(9, 9, 3.1 + 3.0), rating(9, 9, 3.1 - 4.0)];
    assert!((model.rmse(&ratings) - 12.5f64.sqrt()).abs() < 1e-6);
    assert!((model.mae(&ratings) - 3.5).abs() < 1e-6);
}

#[test]
fn a_new_user_is_known_by_the_ratings_that_explain_most() {
    for biased in [false, true] {
        let mut model = model(biased);
        model.config = json!({"l2": 0.1});
        let before = model.clone();
        let rating = |user, item, value| Rating { user, item, value };
        // The model knows no item "z", all that nobody and ann have rated.
        let ratings = Ratings {
            ratings: vec![
                rating(0, 0, 4.5),
                rating(2, 1, 3.0),
                rating(0, 1, 2.0),
                rating(0, 2, 9.0),
                rating(1, 1, 5.0),
            ]
            .into(),
            users: names(&["new", "nobody", "ann"]),
            items: names(&["é,", "z", "x"]),
        };
        model.add_users(&ratings).unwrap();
        assert_eq!(model.users.iter().collect::<Vec<_>>(), ["ann", "back\\slash", "two\nlines\r", "new"]);
        assert_eq!(model.user_factors[..6], before.user_factors, "others stay as they are");
        let bias = |bias: &Option<Vec<f32>>, at: usize| bias.as_ref().map_or(0.0, |bias| bias[at]);
        // What is minimised, beyond the range of ratings 5 instead of 9.
        let objective = |vector: [f32; 3]| -> f32 {
            let [first, second, third] = vector;
            let penalty = 0.1 * 2.0 * (first * first + second * second + third * third);
            let errors = [(2, 4.5), (0, 5.0)].map(|(item, value)| {
                let v = &model.item_factors[item * 2..item * 2 + 2];
                model.mean + bias(&model.item_bias, item) + third + first * v[0] + second * v[1] - value
            });
            errors.iter().map(|error| error * error).sum::<f32>() + penalty
        };
        let found = [model.user_factors[6], model.user_factors[7], bias(&model.user_bias, 3)];
        for (at, by) in (0..3).flat_map(|at| [(at, 0.03), (at, -0.03)]).filter(|(at, _)| biased || *at < 2) {
            let mut other = found;
            other[at] += by;
            assert!(objective(found) < objective(other), "biased: {biased}, {at} by {by}");
        }
    }
}

#[test]
fn a_known_user_is_known_by_newer_ratings() {
    let mut model = model(true);
    let ratings = |value| Ratings {
        ratings: vec![Rating { user: 0, item: 0, value }].into(),
        users: names(&["ann"]),
        items: names(&["x"]),
    };
    let predicted = [1.0, 5.0].map(|value| {
        model.add_users(&ratings(value)).unwrap();
        model.predict(Some(0), Some(0))
    });
    assert!(predicted[0] < 3.1 && predicted[1] > 3.7, "{predicted:?}");
    assert_eq!((model.users.len(), model.user_factors.len()), (3, 6));
}

#[test]
fn cleared_rows_add_nothing() {
    let mut model = model(true);
    model.clear(&[2], &[0]);
    assert_eq!(model.predict(Some(2), Some(1)), model.predict(None, Some(1)));
    assert_eq!(model.predict(Some(1), Some(0)), model.predict(Some(1), None));
}

fn listing(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_saved_is_loaded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("MODEL");
    for biased in [true, false, true] {
        model(biased).save(&path).unwrap();
        assert_eq!(MfModel::load(&path).unwrap(), model(biased));
        assert_eq!(listing(directory.path()), ["MODEL"], "nothing else stays behind");
    }
    let files = ["checksums.txt", "factors.safetensors", "items.txt", "model.json", "users.txt"];
    assert_eq!(listing(&path), files);
    assert_eq!(fs::read_to_string(path.join("users.txt")).unwrap(), "ann\nback\\\\slash\ntwo\\nlines\\r\n");
}

#[test]
fn nothing_else_is_replaced_and_nothing_is_left_behind() {
    let directory = tempfile::tempdir().unwrap();
    let shown = directory.path().display();
    fs::write(directory.path().join("file"), "precious").unwrap();
    fs::create_dir(directory.path().join("folder")).unwrap();
    for name in ["file", "folder"] {
        let error = model(true).save(&directory.path().join(name)).unwrap_err().to_string();
        let expected = "exists and is not a Hemiola model; expected a new path or an older model";
        assert_eq!(error, format!("{shown}/{name}: {expected}"));
    }
    model(true).save(&directory.path().join("older")).unwrap();
    fs::write(directory.path().join("older/notes.txt"), "precious").unwrap();
    let error = model(true).save(&directory.path().join("older")).unwrap_err().to_string();
    let expected =
        "holds notes.txt, which is no part of the model there and would be lost; move it, or give another path";
    assert_eq!(error, format!("{shown}/older: {expected}"));
    assert_eq!(fs::read_to_string(directory.path().join("older/notes.txt")).unwrap(), "precious");
    let error = model(true).save(&directory.path().join("none/MODEL")).unwrap_err().to_string();
    assert_eq!(error, format!("{shown}/none/MODEL: cannot be written: No such file or directory (os error 2)"));
    let error = model(true).save(&directory.path().join("file/MODEL")).unwrap_err().to_string();
    assert_eq!(error, format!("{shown}/file/MODEL: cannot be written: Not a directory (os error 20)"));
    let mut diverged = model(true);
    diverged.item_factors[3] = f32::NAN;
    let error = diverged.save(&directory.path().join("MODEL")).unwrap_err().to_string();
    assert_eq!(error, format!("{shown}/MODEL: item_factors holds NaN at position 3; expected finite numbers"));
    assert_eq!(listing(directory.path()), ["file", "folder", "older"]);
    assert_eq!(fs::read_to_string(directory.path().join("file")).unwrap(), "precious");
}

#[test]
fn a_link_to_a_model_keeps_pointing_to_it() {
    let directory = tempfile::tempdir().unwrap();
    let (path, link) = (directory.path().join("MODEL"), directory.path().join("link"));
    model(true).save(&path).unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    model(false).save(&link).unwrap();
    assert_eq!(MfModel::load(&path).unwrap(), model(false));
    assert_eq!(listing(directory.path()), ["MODEL", "link"]);
}

#[test]
fn every_damage_to_every_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("MODEL");
    model(true).save(&path).unwrap();
    for name in listing(&path) {
        let file = path.join(&name);
        let whole = fs::read(&file).unwrap();
        for length in 0..whole.len() {
            fs::write(&file, &whole[..length]).unwrap();
            // The last line of the checksums needs no line end.
            let harmless = name == "checksums.txt" && length + 1 == whole.len();
            assert_eq!(MfModel::load(&path).is_ok(), harmless, "{name} cut to {length}");
        }
        for position in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[position] ^= 1;
            fs::write(&file, &flipped).unwrap();
            let harmless = name == "checksums.txt" && position + 1 == whole.len();
            assert!(MfModel::load(&path).is_err() || harmless, "{name} flipped at {position}");
        }
        fs::remove_file(&file).unwrap();
        assert!(MfModel::load(&path).is_err(), "{name} removed");
        fs::write(&file, &whole).unwrap();
    }
    fs::rename(path.join("users.txt"), path.join("swap")).unwrap();
    fs::rename(path.join("items.txt"), path.join("users.txt")).unwrap();
    fs::rename(path.join("swap"), path.join("items.txt")).unwrap();
    assert!(MfModel::load(&path).is_err(), "ids swapped");
}

/// Changes one file of a good model, writes the checksum that fits, and returns the refusal.
fn refusal(name: &str, change: impl Fn(Vec<u8>) -> Vec<u8>) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("MODEL");
    model(true).save(&path).unwrap();
    let changed = change(fs::read(path.join(name)).unwrap());
    fs::write(path.join(name), &changed).unwrap();
    let checksums = fs::read_to_string(path.join("checksums.txt")).unwrap();
    let lines = checksums.lines().map(|line| match line.ends_with(name) {
        true => format!("{:08x}  {name}\n", crc32fast::hash(&changed)),
        false => format!("{line}\n"),
    });
    fs::write(path.join("checksums.txt"), lines.collect::<String>()).unwrap();
    let error = MfModel::load(&path).unwrap_err().to_string();
    error.replace(&format!("{}/", directory.path().display()), "")
}

fn edit(from: &'static str, to: &'static str) -> impl Fn(Vec<u8>) -> Vec<u8> {
    move |bytes| {
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains(from), "{text}");
        text.replace(from, to).into_bytes()
    }
}

#[test]
fn files_that_do_not_fit_each_other_are_refused() {
    let no_model = "MODEL: is not a Hemiola model; expected a directory with a file model.json";
    let shape = "MODEL/factors.safetensors: expected user_factors to be F32 of shape [3, 5], found F32 of shape [3, 2]";
    let cases = [
        (
            "\"version\": 1",
            "\"version\": 2",
            "MODEL/model.json: is version 2 of a model of kind 'mf'; expected version 1 of kind 'mf'",
        ),
        (
            "\"mf\"",
            "\"lda\"",
            "MODEL/model.json: is version 1 of a model of kind 'lda'; expected version 1 of kind 'mf'",
        ),
        ("hemiola-model", "other-model", no_model),
        ("\"rank\": 2", "\"rank\": 5", shape),
        ("\"users\": 3", "\"users\": 4", "MODEL/users.txt: expected 4 ids, found 3"),
        (
            "\"items\": 4",
            "\"items\": 18446744073709551615",
            "MODEL/items.txt: expected 18446744073709551615 ids, found 4",
        ),
        (
            "\"rating_min\": 1.0",
            "\"rating_min\": 7.0",
            "MODEL/model.json: mean 3.1 and range 7 to 5 are not those of ratings",
        ),
        (
            "\"kind\"",
            "\"sort\"",
            "MODEL/model.json: is not a description of a model: missing field `kind` at line 19 column 1",
        ),
    ];
    for (from, to, expected) in cases {
        assert_eq!(refusal("model.json", edit(from, to)), expected);
    }
    let id = |line| format!("MODEL/users.txt:{line}: expected an id in UTF-8 that no line before has");
    assert_eq!(refusal("users.txt", edit("ann\n", "back\\\\slash\n")), id(2));
    assert_eq!(refusal("users.txt", edit("\\\\slash", "\\slash")), id(2));
    assert_eq!(refusal("users.txt", |_| b"a\n\xff\nb\n".to_vec()), id(2));
    let tensors = |change: fn(&mut Vec<u8>)| {
        refusal("factors.safetensors", |mut bytes| {
            change(&mut bytes);
            bytes
        })
    };
    assert_eq!(
        tensors(|bytes| bytes.truncate(20)),
        "MODEL/factors.safetensors: is not a safetensors file: invalid header length"
    );
    assert_eq!(
        tensors(|bytes| {
            let end = bytes.len();
            bytes[end - 4..].copy_from_slice(&f32::INFINITY.to_le_bytes());
        }),
        "MODEL/factors.safetensors: item_bias holds inf at position 3; expected finite numbers"
    );
    assert_eq!(refusal("items.txt", |_| Vec::new()), "MODEL/items.txt: expected 4 ids, found 0");
    let directory = tempfile::tempdir().unwrap();
    let shown = directory.path().display();
    assert_eq!(
        MfModel::load(directory.path()).unwrap_err().to_string(),
        format!("{shown}: is not a Hemiola model; expected a directory with a file model.json")
    );
}

proptest::proptest! {
    #[test]
    fn any_bytes_in_any_file_are_refused(
        which in 0..4usize,
        bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
    ) {
        let name = ["factors.safetensors", "model.json", "users.txt", "items.txt"][which];
        assert!(refusal(name, |_| bytes.clone()).contains("MODEL"));
    }
}
