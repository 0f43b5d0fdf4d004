//! The compressing filters: the body of a message as LZ4 or Zstandard makes it shorter.
//!
//! Short messages with many zeros, of which there are many where weights mostly stay zero, gain little from either. So zeros
//! are left out first (`zeros.rs`), where there are many.

use super::{Arrived, Body, Decoder, Encoder, Encoding, Keys, Reason, zeros};
use crate::array::{Array, Frame};
use crate::varint;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// Compresses with LZ4: fast, and useful where much repeats, as in sparse rows. Dense numbers hardly get shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lz4;

/// Compresses with Zstandard at its fastest level: shorter than LZ4, and slower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zstd;

/// Shorter bodies are left alone.
const BODY_BYTES_MIN: usize = 24;
/// What is shorter without zeros does not get any shorter.
const COMPRESSED_BYTES_MIN: usize = 64;
const ZSTD_LEVEL: i32 = 1;

/// What no sender of such messages does.
#[derive(Debug, PartialEq, Eq, Error)]
enum CompressError {
    #[error("a compressed message says nothing of its length")]
    Lengths,
    #[error("a compressed message announces {bytes} bytes, and it may have {bytes_max}")]
    TooLong { bytes: usize, bytes_max: usize },
    #[error("a compressed message does not become the {bytes} bytes that it announces")]
    Content { bytes: usize },
}

/// Compresses all of the input, or says that it got no shorter than the output has room for.
type Compress = dyn FnMut(&[u8], &mut [u8]) -> Option<usize> + Send;
/// Decompresses into all of the output; `None` if that is not possible.
type Decompress = dyn FnMut(&[u8], &mut [u8]) -> Option<usize> + Send;

impl Encoding for Lz4 {
    fn name(&self) -> &str {
        "lz4"
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        let compress = |input: &[u8], output: &mut [u8]| {
            let bytes = lz4_flex::block::compress(input);
            output.get_mut(..bytes.len())?.copy_from_slice(&bytes);
            Some(bytes.len())
        };
        Box::new(Compressor(Box::new(compress)))
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Decompressor(Box::new(|input, output| lz4_flex::block::decompress_into(input, output).ok())))
    }

    fn keys(&self) -> Keys {
        Keys::Hidden
    }
}

impl Encoding for Zstd {
    fn name(&self) -> &str {
        "zstd"
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        let mut context: Option<zstd::bulk::Compressor<'static>> = None;
        let compress = move |input: &[u8], output: &mut [u8]| {
            if context.is_none() {
                context = zstd::bulk::Compressor::new(ZSTD_LEVEL).ok();
            }
            context.as_mut()?.compress_to_buffer(input, output).ok()
        };
        Box::new(Compressor(Box::new(compress)))
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        let mut context: Option<zstd::bulk::Decompressor<'static>> = None;
        let decompress = move |input: &[u8], output: &mut [u8]| {
            if context.is_none() {
                context = zstd::bulk::Decompressor::new().ok();
            }
            context.as_mut()?.decompress_to_buffer(input, output).ok()
        };
        Box::new(Decompressor(Box::new(decompress)))
    }

    fn keys(&self) -> Keys {
        Keys::Hidden
    }
}

struct Compressor(Box<Compress>);
struct Decompressor(Box<Decompress>);

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Compressor")
    }
}

impl fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Decompressor")
    }
}

/// What was done to a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// It was compressed.
    Compressed,
    /// Zeros were left out of its values.
    WithoutZeros,
    /// First this, then that.
    Both,
}

impl Form {
    const BITS: u32 = 2;
    const ALL: [Self; 3] = [Self::Compressed, Self::WithoutZeros, Self::Both];
}

impl Encoder for Compressor {
    fn encode(&mut self, body: &mut Body<'_>) -> Result<bool, Reason> {
        let (keys, values) = (body.keys.len(), body.values.iter().map(|piece| piece.len()).sum::<usize>());
        let bytes = keys + values;
        if bytes < BODY_BYTES_MIN {
            return Ok(false);
        }
        let mut whole = Vec::with_capacity(bytes);
        whole.extend_from_slice(&body.keys);
        body.values.iter().for_each(|piece| whole.extend_from_slice(piece));
        let without_zeros = zeros::are_many(&whole[keys..]);
        if without_zeros {
            let mut shorter = whole[..keys].to_vec();
            zeros::write(&whole[keys..], &mut shorter);
            whole = shorter;
        }
        let mut compressed = vec![0; whole.len()];
        let length = if whole.len() < COMPRESSED_BYTES_MIN { None } else { self.0(&whole, &mut compressed) };
        let form = match (without_zeros, length) {
            (true, Some(_)) => Form::Both,
            (true, None) => Form::WithoutZeros,
            (false, Some(_)) => Form::Compressed,
            (false, None) => return Ok(false),
        };
        let mut made = Vec::with_capacity(length.unwrap_or(whole.len()) + 3 * varint::BYTES_MAX);
        varint::write((keys as u64) << Form::BITS | form as u64, |byte| made.push(byte));
        varint::write(values as u64, |byte| made.push(byte));
        if form == Form::Both {
            varint::write(whole.len() as u64, |byte| made.push(byte));
        }
        made.extend_from_slice(length.map_or(&whole, |length| &compressed[..length]));
        // What does not get shorter, its lengths included, travels as it is.
        if made.len() >= bytes {
            return Ok(false);
        }
        body.keys = Cow::Borrowed(&[]);
        body.values = [Cow::Owned(made), Cow::Borrowed(&[]), Cow::Borrowed(&[])];
        Ok(true)
    }
}

impl Decoder for Decompressor {
    fn decode(&mut self, body: &mut Arrived, bytes_max: usize) -> Result<(), Reason> {
        let mut left = &body.values[..];
        let mut length =
            || varint::read(&mut left).and_then(|bytes| usize::try_from(bytes).ok()).ok_or(CompressError::Lengths);
        let (first, values) = (length()?, length()?);
        let keys = first >> Form::BITS;
        let form = *Form::ALL.get(first & ((1 << Form::BITS) - 1)).ok_or(CompressError::Lengths)?;
        let bytes = keys.saturating_add(values);
        let shorter = if form == Form::Both { length()? } else { left.len() };
        let longest = bytes.max(if form == Form::Both { shorter } else { 0 });
        if longest > bytes_max {
            return Err(CompressError::TooLong { bytes: longest, bytes_max }.into());
        }
        // Values that begin at a multiple of eight are used from where they lie.
        let start = keys.next_multiple_of(8) - keys;
        let mut frame: Frame = vec![0; (start + bytes).div_ceil(8)];
        let whole = &mut bytemuck::cast_slice_mut(&mut frame)[start..start + bytes];
        let content = || CompressError::Content { bytes };
        if form == Form::Compressed {
            self.0(left, whole).filter(|made| *made == bytes).ok_or_else(content)?;
        } else {
            let mut room = Vec::new();
            let without_zeros = match form {
                Form::Both => {
                    room.resize(shorter, 0);
                    self.0(left, &mut room).filter(|made| *made == shorter).ok_or_else(content)?;
                    &room[..]
                }
                _ => left,
            };
            let (plain, rest) = without_zeros.split_at_checked(keys).ok_or_else(content)?;
            whole[..keys].copy_from_slice(plain);
            zeros::read(rest, &mut whole[keys..]).ok_or_else(content)?;
        }
        let frame = Arc::new(frame);
        let part = |start, length| Array::in_frame(&frame, start, length).expect("within the frame");
        *body = Arrived { keys: part(start, keys), values: part(start + keys, values) };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILTERS: [&dyn Encoding; 2] = [&Lz4, &Zstd];

    fn body<'a>(keys: &'a [u8], values: [&'a [u8]; 3]) -> Body<'a> {
        Body { keys: Cow::Borrowed(keys), values: values.map(Cow::Borrowed) }
    }

    #[test]
    fn what_repeats_gets_shorter_and_what_does_not_travels_as_it_is() {
        for filter in FILTERS {
            let mut encoder = filter.encoder();
            let mut repeats = body(&[1; 800], [&[2; 100], &[], &[3; 400]]);
            assert!(encoder.encode(&mut repeats).expect("it always can"));
            assert!(repeats.keys.is_empty() && repeats.values[0].len() < 100);
            let noise: Vec<u8> = (0..500u64).map(|i| crate::schema::mix(i) as u8).collect();
            let mut noisy = body(&noise, [&[], &[], &noise[..300]]);
            let (half, _) = noise.split_at(250);
            let mut random = body(half, [&[], &[], &noise[250..]]);
            assert!(!encoder.encode(&mut random).expect("it always can"), "{}", filter.name());
            assert_eq!(&*random.keys, half, "left as it was");
            assert!(encoder.encode(&mut noisy).expect("it always can"), "a repeated half gets shorter");
            let mut short = body(&[0; 8], [&[], &[], &[0; 8]]);
            assert!(!encoder.encode(&mut short).expect("it always can"), "not worth it");
        }
    }

    #[test]
    fn an_announced_length_is_checked_before_anything_is_allocated() {
        for filter in FILTERS {
            let refuse = |values: Vec<u8>| {
                let mut body = Arrived { keys: vec![].into(), values: values.into() };
                filter.decoder().decode(&mut body, 1000).expect_err("refused").to_string()
            };
            assert_eq!(refuse(vec![0xff; 20]), "a compressed message says nothing of its length");
            assert_eq!(refuse(vec![3, 7]), "a compressed message says nothing of its length", "no such form");
            let long = "a compressed message announces 536870911 bytes, and it may have 1000";
            assert_eq!(refuse(vec![0xfc, 0xff, 0xff, 0xff, 7, 0, 0]), long);
            assert_eq!(refuse(vec![2, 0, 0xff, 0xff, 0xff, 0xff, 1]), long, "without zeros");
            let content = "a compressed message does not become the 100 bytes that it announces";
            for form in 0..3 {
                assert_eq!(refuse([&[50 << 2 | form, 1, 50, 50][..], &[7; 20]].concat()), content);
            }
            // More than it announces.
            let mut honest = body(&[1; 800], [&[], &[], &[]]);
            assert!(filter.encoder().encode(&mut honest).expect("it always can"));
            let bytes = [&[50 << 2, 1, 50], &honest.values[0][3..]].concat();
            assert_eq!(refuse(bytes), content);
        }
    }
}
