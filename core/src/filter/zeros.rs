//! Numbers of 32 bits of which many halves are zero: where the others are, which zeros are negative, and the others.
//!
//! The upper halves of all numbers are written first, then the lower ones: few numbers have another upper half where most
//! are zero, and no lower one where they were cut to 16 bits.
//!
//! Places are written as the gaps between them, in a Rice code: the lowest bits of a gap as they are, what is above them as
//! so many ones. Of the zeros those have places whose sign is the rarer one. Two counts stand before, and a byte for the
//! numbers of lowest bits and the rarer sign.

use crate::varint;

const NUMBER: usize = size_of::<f32>();
/// Half a number.
type Half = [u8; NUMBER / 2];
/// That of a zero, and the upper one of a negative zero.
const ZERO: Half = 0u16.to_le_bytes();
const NEGATIVE: Half = (1u16 << 15).to_le_bytes();
/// The lowest bits of a gap that are written as they are, at most: of other halves, and of zeros with the rarer sign.
const LOW_BITS_MAX: [u32; 2] = [15, 7];
/// Set where the rarer zeros are the positive ones.
const POSITIVE: u8 = 0x80;

/// Whether so many halves are zero that leaving them out is worth it.
pub(super) fn are_many(bytes: &[u8]) -> bool {
    let halves = bytes.as_chunks().0;
    8 * halves.iter().filter(|half| is_zero(half)).count() > halves.len()
}

fn is_zero(half: &Half) -> bool {
    *half == ZERO || *half == NEGATIVE
}

/// Writes the numbers without the halves that are zero, and whatever follows the last whole number.
pub(super) fn write(bytes: &[u8], out: &mut Vec<u8>) {
    let (numbers, tail) = bytes.as_chunks::<NUMBER>();
    for upper in [true, false] {
        let halves: Vec<Half> = numbers.iter().map(|[a, b, c, d]| if upper { [*c, *d] } else { [*a, *b] }).collect();
        write_halves(&halves, out);
    }
    out.extend_from_slice(tail);
}

fn write_halves(halves: &[Half], out: &mut Vec<u8>) {
    let count = |of: &dyn Fn(&&Half) -> bool| -> usize { halves.iter().filter(|half| of(half)).count() };
    let others = count(&|half| !is_zero(half));
    let negative = count(&|half| **half == NEGATIVE);
    let zeros = halves.len() - others;
    let (rare, rarer, sign) =
        if negative > zeros / 2 { (ZERO, zeros - negative, POSITIVE) } else { (NEGATIVE, negative, 0) };
    let low = [low_bits(halves.len(), others, LOW_BITS_MAX[0]), low_bits(zeros, rarer, LOW_BITS_MAX[1])];
    varint::write(others as u64, |byte| out.push(byte));
    varint::write(rarer as u64, |byte| out.push(byte));
    out.push((low[0] | low[1] << 4) as u8 | sign);
    let mut bits = BitWriter { out, free: 0 };
    bits.places(halves.iter().map(|half| !is_zero(half)), low[0]);
    bits.places(halves.iter().filter(|half| is_zero(half)).map(|half| *half == rare), low[1]);
    halves.iter().filter(|half| !is_zero(half)).for_each(|half| out.extend_from_slice(half));
}

/// Fills `out` with the numbers that were written, zeros and all; `None` if so many were not.
pub(super) fn read(mut bytes: &[u8], out: &mut [u8]) -> Option<()> {
    let (numbers, tail) = out.as_chunks_mut::<NUMBER>();
    for start in [NUMBER / 2, 0] {
        read_halves(&mut bytes, numbers.len(), |place, [first, second]| {
            (numbers[place][start], numbers[place][start + 1]) = (first, second);
        })?;
    }
    if bytes.len() != tail.len() {
        return None;
    }
    tail.copy_from_slice(bytes);
    Some(())
}

/// Takes so many halves from the front of the bytes.
fn read_halves(bytes: &mut &[u8], halves: usize, mut put: impl FnMut(usize, Half)) -> Option<()> {
    let mut count = |most: usize| usize::try_from(varint::read(bytes)?).ok().filter(|count| *count <= most);
    let others = count(halves)?;
    let zeros = halves - others;
    let rarer = count(zeros)?;
    let (low, rest) = bytes.split_first()?;
    let (rare, common) = if low & POSITIVE == 0 { (NEGATIVE, ZERO) } else { (ZERO, NEGATIVE) };
    let mut bits = BitReader { bytes: rest, used: 0 };
    let places = bits.places(others, halves, u32::from(low & 0xf))?;
    let rarer = bits.places(rarer, zeros, u32::from((low & !POSITIVE) >> 4))?;
    let literals;
    (literals, *bytes) = rest[bits.used.div_ceil(8)..].split_at_checked(others * size_of::<Half>())?;
    let (mut places, mut rarer) = (places.into_iter().peekable(), rarer.into_iter().peekable());
    let (mut literals, mut zero) = (literals.as_chunks().0.iter(), 0);
    for place in 0..halves {
        let half = if places.next_if_eq(&place).is_some() {
            *literals.next()?
        } else {
            zero += 1;
            if rarer.next_if_eq(&(zero - 1)).is_some() { rare } else { common }
        };
        put(place, half);
    }
    Some(())
}

/// How many of the lowest bits of a gap between `places` of so many halves are best written as they are.
fn low_bits(halves: usize, places: usize, most: u32) -> u32 {
    ((halves - places) / places.max(1)).max(1).ilog2().min(most)
}

struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    /// How many bits of the last byte are free.
    free: u32,
}

impl BitWriter<'_> {
    fn bit(&mut self, bit: bool) {
        if self.free == 0 {
            self.out.push(0);
            self.free = 8;
        }
        let last = self.out.last_mut().expect("a byte with free bits");
        *last |= u8::from(bit) << (8 - self.free);
        self.free -= 1;
    }

    fn places(&mut self, chosen: impl Iterator<Item = bool>, low: u32) {
        let mut gap = 0u64;
        for chosen in chosen {
            if !chosen {
                gap += 1;
                continue;
            }
            (0..gap >> low).for_each(|_| self.bit(true));
            self.bit(false);
            (0..low).for_each(|place| self.bit(gap >> place & 1 == 1));
            gap = 0;
        }
    }
}

struct BitReader<'a> {
    bytes: &'a [u8],
    /// How many bits have been read.
    used: usize,
}

impl BitReader<'_> {
    fn bit(&mut self) -> Option<bool> {
        let byte = self.bytes.get(self.used / 8)?;
        let bit = byte >> (self.used % 8) & 1 == 1;
        self.used += 1;
        Some(bit)
    }

    /// So many places, ascending and each below `end`.
    fn places(&mut self, count: usize, end: usize, low: u32) -> Option<Vec<usize>> {
        // Every place takes a bit at least.
        let mut places = Vec::with_capacity(count.min(self.bytes.len() * 8));
        let mut next = 0usize;
        for _ in 0..count {
            let mut high = 0usize;
            while self.bit()? {
                high += 1;
            }
            let mut gap = high << low;
            for place in 0..low {
                gap |= usize::from(self.bit()?) << place;
            }
            let place = next.checked_add(gap).filter(|place| *place < end)?;
            places.push(place);
            next = place + 1;
        }
        Some(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words() -> impl Strategy<Value = Vec<u8>> {
        let word = prop_oneof![9 => Just(0.0f32), 2 => Just(-0.0), 1 => any::<f32>()];
        let any = proptest::collection::vec(any::<u8>(), 0..40);
        let many = proptest::collection::vec(word, 0..300);
        (many, any).prop_map(|(words, tail)| [bytemuck::cast_slice(&words), &tail[..]].concat())
    }

    proptest! {
        #[test]
        fn reading_gives_back_what_was_written(bytes in words()) {
            let mut written = Vec::new();
            write(&bytes, &mut written);
            let mut read_back = vec![7; bytes.len()];
            prop_assert_eq!(read(&written, &mut read_back), Some(()));
            prop_assert_eq!(&read_back, &bytes);
            written.pop();
            prop_assert_eq!(read(&written, &mut read_back), None);
        }

        #[test]
        fn whatever_is_read_is_refused_or_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60), length in 0..400usize) {
            read(&bytes, &mut vec![0; length]);
        }
    }

    #[test]
    fn few_numbers_among_zeros_take_little_more_than_themselves() {
        let mut numbers = vec![0.0f32; 100];
        (0..10).for_each(|i| numbers[i * 10 + 3] = 0.1 + i as f32);
        (numbers[50], numbers[51]) = (-0.0, -0.0);
        let length = |numbers: &[f32]| {
            let mut written = Vec::new();
            write(bytemuck::cast_slice(numbers), &mut written);
            written.len()
        };
        let opposite: Vec<f32> = numbers.iter().map(|number| -number).collect();
        assert!((6 + 10..6 + 16).contains(&(length(&numbers) - 40)));
        let short: Vec<f32> = numbers.iter().map(|number| f32::from_bits(number.to_bits() & 0xffff_0000)).collect();
        assert!((6 + 5..6 + 9).contains(&(length(&short) - 20)), "without lower halves");
        assert_eq!(length(&numbers), length(&opposite), "the rarer sign has places");
        assert!(are_many(bytemuck::cast_slice(&numbers)) && !are_many(bytemuck::cast_slice(&[0.1f32; 100])));
    }
}
