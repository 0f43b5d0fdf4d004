//! Any bytes as a file of documents or as a vocabulary: parsed or refused, never a panic.
#![no_main]

use hemiola_models::corpus::{Corpus, Format, Reading};
use std::io::Write;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // The first byte says what the rest is.
    let (&choice, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(rest).expect("room for it");
    let mut how = Reading { most_tokens: 1 << 20, ..Reading::default() };
    let formats = [None, Some(Format::DocWord), Some(Format::LdaC), Some(Format::Text)];
    match formats.get(choice as usize % 5) {
        Some(format) => how.format = *format,
        None => how.vocabulary = Some(file.path().to_owned()),
    }
    drop(Corpus::read(&[file.path()], &how));
});
