//! Any bytes as the files of a model: loaded or refused, never a panic.
#![no_main]

use hemiola_models::mf::model::MfModel;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary directory");
    // The first byte says which file gets the rest; the others stay empty.
    let (&choice, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let names = ["factors.safetensors", "model.json", "users.txt", "items.txt", "checksums.txt"];
    for (i, name) in names.iter().enumerate() {
        let content = if i == choice as usize % names.len() { rest } else { &[] };
        std::fs::write(folder.path().join(name), content).expect("room for it");
    }
    drop(MfModel::load(folder.path()));
});
