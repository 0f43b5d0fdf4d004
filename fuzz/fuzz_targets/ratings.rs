//! Any bytes as a file of ratings: parsed or refused, never a panic.
#![no_main]

use hemiola_models::ratings::Ratings;
use std::io::Write;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("room for it");
    drop(Ratings::read(&[file.path()]));
});
