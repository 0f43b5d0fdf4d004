//! Any bytes into the frame decoder: no panic, and no allocation beyond the announced and checked length.
#![no_main]

use hemiola_core::codec::{Header, START_BYTES};
use std::sync::Arc;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut length = START_BYTES;
    let (head, body) = loop {
        let Some((head, body)) = bytes.split_at_checked(length) else { return };
        match Header::length(head) {
            Ok(whole) if whole == length => break (head, body),
            Ok(longer) => length = longer,
            Err(_) => return,
        }
    };
    let Ok(header) = Header::parse(head, 1 << 16) else { return };
    let mut frame = vec![0u64; (header.wire_bytes() as usize).div_ceil(8)];
    for (word, bytes) in frame.iter_mut().zip(body.chunks(8)) {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(whole);
    }
    let mut check = header.begin_check();
    check.update(&body[..body.len().min(header.wire_bytes() as usize)]);
    drop(header.decode(&Arc::new(frame), check));
});
