//! Any bytes as a file of labelled examples, in every format: parsed or refused, never a panic.
#![no_main]

use hemiola_models::examples::{Examples, Format, Options};
use std::io::Write;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("room for it");
    for format in [None, Some(Format::Libsvm), Some(Format::Delimited), Some(Format::Idx)] {
        let options = Options { format, ..Options::default() };
        drop(Examples::read(&[file.path()], &options));
        drop(Examples::read_unlabelled(&[file.path()], &options));
    }
});
