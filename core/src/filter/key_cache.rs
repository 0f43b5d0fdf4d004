//! The key caching filter: a list of row ids that has travelled before is replaced by its signature.

use super::{Arrived, Body, Decoder, Encoder, Encoding, Keys, Reason};
use crate::array::Array;
use crate::schema::mix;
use crate::varint;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;

/// Replaces a list of row ids that both ends have by a signature of eight bytes.
///
/// Both ends keep the same lists, because both see the same messages in the same order: a list that is not known
/// travels behind its signature and is kept, the one that was used longest ago is forgotten, and with a new connection
/// all are. Row ids mostly ascend, so such a list travels as the differences between them, in as few bytes as each
/// needs. The sender compares a list with the one that it kept under the signature, so that two lists with one
/// signature are never taken for one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyCache {
    /// How many row ids each end keeps for one direction of one connection of the table.
    pub ids_max: usize,
}

impl Default for KeyCache {
    /// Four million row ids: 32 MB.
    fn default() -> Self {
        Self { ids_max: 4 << 20 }
    }
}

/// A shorter list is hardly longer than its signature.
const LIST_BYTES_MIN: usize = 4 * SIGNATURE_BYTES;
const SIGNATURE_BYTES: usize = size_of::<u64>();

/// What no sender of such messages does.
#[derive(Debug, PartialEq, Eq, Error)]
enum KeyCacheError {
    #[error("a message names the row ids of signature {signature:#018x}, which this end does not have")]
    Unknown { signature: u64 },
    #[error("a message's row ids are no list of them behind a signature")]
    List,
    #[error("a message's row ids are more than {ids_max}")]
    TooMany { ids_max: usize },
}

impl Encoding for KeyCache {
    fn name(&self) -> &str {
        "key-cache"
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        Box::new(Lists::new(self.ids_max))
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Lists::new(self.ids_max))
    }

    fn keys(&self) -> Keys {
        Keys::Needed
    }
}

/// The lists that one end keeps, by signature, each with the time of its last use.
#[derive(Debug)]
struct Lists {
    ids_max: usize,
    ids: usize,
    uses: u64,
    lists: BTreeMap<u64, (u64, Arc<Vec<u64>>)>,
    /// The signatures by the time of their last use.
    order: BTreeMap<u64, u64>,
}

impl Lists {
    fn new(ids_max: usize) -> Self {
        Self { ids_max, ids: 0, uses: 0, lists: BTreeMap::new(), order: BTreeMap::new() }
    }

    /// The list of a signature, which is now the last used.
    fn used(&mut self, signature: u64) -> Option<&Arc<Vec<u64>>> {
        let (last, list) = self.lists.get_mut(&signature)?;
        self.uses += 1;
        self.order.remove(&std::mem::replace(last, self.uses));
        self.order.insert(self.uses, signature);
        Some(list)
    }

    /// Keeps a list of at most `ids_max` row ids, in place of the one with its signature and of those used longest ago.
    fn keep(&mut self, signature: u64, list: Vec<u64>) {
        self.forget(signature);
        while self.ids + list.len() > self.ids_max
            && let Some((_, &oldest)) = self.order.first_key_value()
        {
            self.forget(oldest);
        }
        self.uses += 1;
        self.ids += list.len();
        self.order.insert(self.uses, signature);
        self.lists.insert(signature, (self.uses, Arc::new(list)));
    }

    fn forget(&mut self, signature: u64) {
        if let Some((last, list)) = self.lists.remove(&signature) {
            self.order.remove(&last);
            self.ids -= list.len();
        }
    }
}

impl Encoder for Lists {
    fn encode(&mut self, body: &mut Body<'_>) -> Result<bool, Reason> {
        let bytes = body.keys.len();
        if bytes < LIST_BYTES_MIN || bytes / SIGNATURE_BYTES > self.ids_max || !bytes.is_multiple_of(SIGNATURE_BYTES) {
            return Ok(false);
        }
        let signature = signature(&body.keys);
        let known = self.used(signature).is_some_and(|list| bytemuck::cast_slice::<u64, u8>(list) == &*body.keys);
        let mut keys = signature.to_le_bytes().to_vec();
        if !known {
            let list = words(&body.keys);
            write_differences(&list, &mut keys);
            self.keep(signature, list);
        }
        body.keys = Cow::Owned(keys);
        Ok(true)
    }
}

impl Decoder for Lists {
    fn decode(&mut self, body: &mut Arrived, _: usize) -> Result<(), Reason> {
        let Some((signature, differences)) = body.keys.split_first_chunk::<SIGNATURE_BYTES>() else {
            return Err(KeyCacheError::List.into());
        };
        let signature = u64::from_le_bytes(*signature);
        if !differences.is_empty() {
            let list = read_differences(differences, self.ids_max)?;
            self.keep(signature, list);
        }
        let list = self.used(signature).ok_or(KeyCacheError::Unknown { signature })?;
        body.keys = Array::from(Arc::clone(list)).bytes();
        Ok(())
    }
}

/// Writes each row id as its difference to the one before it, which wraps around where they do not ascend.
fn write_differences(list: &[u64], bytes: &mut Vec<u8>) {
    let mut last = 0u64;
    for &row in list {
        varint::write(row.wrapping_sub(std::mem::replace(&mut last, row)), |byte| bytes.push(byte));
    }
}

fn read_differences(mut bytes: &[u8], ids_max: usize) -> Result<Vec<u64>, KeyCacheError> {
    // A list takes a byte for each row id at least.
    let mut list = Vec::with_capacity(bytes.len().min(ids_max));
    let mut last = 0u64;
    while !bytes.is_empty() {
        last = last.wrapping_add(varint::read(&mut bytes).ok_or(KeyCacheError::List)?);
        if list.len() == ids_max {
            return Err(KeyCacheError::TooMany { ids_max });
        }
        list.push(last);
    }
    Ok(list)
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
}

/// A hash of all row ids: four of them at a time, which do not wait for one another.
fn signature(keys: &[u8]) -> u64 {
    const ODD: [u64; 4] = [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0xd6e8_feb8_6659_fd93];
    let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
    let mut lanes = [keys.len() as u64; 4];
    let (words, _) = keys.as_chunks::<8>();
    let (fours, rest) = words.as_chunks::<4>();
    for four in fours {
        for ((lane, bytes), odd) in lanes.iter_mut().zip(four).zip(ODD) {
            *lane = (*lane ^ word(bytes)).wrapping_mul(odd);
            *lane ^= *lane >> 29;
        }
    }
    let rest = rest.iter().fold(0, |hash, bytes| mix(hash ^ word(bytes)));
    lanes.iter().fold(rest, |hash, lane| mix(hash ^ lane))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(encoder: &mut dyn Encoder, rows: &[u64]) -> Vec<u8> {
        let values = [Cow::Borrowed(&[][..]), Cow::Borrowed(&[][..]), Cow::Borrowed(&[1, 2][..])];
        let mut body = Body { keys: Cow::Borrowed(bytemuck::cast_slice(rows)), values };
        assert!(encoder.encode(&mut body).expect("it always can"));
        body.keys.into_owned()
    }

    fn receive(decoder: &mut dyn Decoder, keys: Vec<u8>) -> Result<Vec<u64>, String> {
        let mut body = Arrived { keys: keys.into(), values: vec![1, 2].into() };
        decoder.decode(&mut body, 1 << 20).map_err(|error| error.to_string())?;
        assert_eq!(&*body.values, [1, 2]);
        Ok(words(&body.keys))
    }

    #[test]
    fn a_known_list_travels_as_its_signature_until_it_is_forgotten_at_both_ends() {
        let filter = KeyCache { ids_max: 25 };
        let (mut encoder, mut decoder) = (filter.encoder(), filter.decoder());
        let lists: Vec<Vec<u64>> = (0..3).map(|i| (i * 1000..i * 1000 + 10).collect()).collect();
        // The first row id takes two bytes where it is above 127.
        let order = [(0, 18), (0, 8), (1, 19), (0, 8), (2, 19), (0, 8), (1, 19), (2, 19), (1, 8)];
        for (list, bytes) in order {
            let keys = send(&mut *encoder, &lists[list]);
            assert_eq!(keys.len(), bytes, "list {list}");
            assert_eq!(receive(&mut *decoder, keys).as_ref(), Ok(&lists[list]));
        }
    }

    #[test]
    fn a_signature_that_was_never_explained_is_refused() {
        let filter = KeyCache::default();
        let mut encoder = filter.encoder();
        let rows: Vec<u64> = (0..9).collect();
        send(&mut *encoder, &rows);
        let again = send(&mut *encoder, &rows);
        let refused = receive(&mut *filter.decoder(), again).expect_err("it has seen nothing");
        assert!(refused.starts_with("a message names the row ids of signature 0x"), "{refused}");
        for keys in [vec![], vec![0; 7], [0; 8].into_iter().chain([0, 0x80]).collect(), vec![0xff; 30]] {
            let refused = receive(&mut *filter.decoder(), keys).expect_err("no list");
            assert_eq!(refused, "a message's row ids are no list of them behind a signature");
        }
        let refused = receive(&mut *KeyCache { ids_max: 2 }.decoder(), vec![0; 11]).expect_err("too many");
        assert_eq!(refused, "a message's row ids are more than 2");
    }

    #[test]
    fn lists_with_one_signature_are_not_taken_for_one_another() {
        let rows: Vec<u64> = (0..8).collect();
        let mut encoder = Lists::new(100);
        encoder.keep(signature(bytemuck::cast_slice(&rows)), vec![1, 2, 3]);
        assert_eq!(send(&mut encoder, &rows).len(), 16);
        assert_eq!(send(&mut encoder, &rows).len(), 8);
    }

    #[test]
    fn any_list_is_what_its_differences_say() {
        let lists: [&[u64]; 4] =
            [&[0, 0, 1, 128, 1 << 40], &[9, 3, u64::MAX, 0, 5], &[u64::MAX; 4], &[1 << 63, 0, 2, 7]];
        for list in lists {
            let mut bytes = Vec::new();
            write_differences(list, &mut bytes);
            assert_eq!(read_differences(&bytes, 9).as_deref(), Ok(list));
        }
    }
}
