//! Numbers in as few bytes as they need: seven bits in each, the lowest first, and whether more follow.

/// The bits of a number that a byte holds; its highest bit says whether more follow.
const BITS: u32 = 7;
const MORE: u8 = 1 << BITS;
/// The most that a number takes.
pub(crate) const BYTES_MAX: usize = (u64::BITS).div_ceil(BITS) as usize;

/// Writes a number.
pub(crate) fn write(mut number: u64, mut byte: impl FnMut(u8)) {
    while number >= u64::from(MORE) {
        byte(number as u8 | MORE);
        number >>= BITS;
    }
    byte(number as u8);
}

/// How many bytes a number takes.
pub(crate) fn length(number: u64) -> usize {
    (u64::BITS - (number | 1).leading_zeros()).div_ceil(BITS) as usize
}

/// Takes the number that bytes begin with; `None` if they do not begin with one.
pub(crate) fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for place in 0..BYTES_MAX {
        let (&byte, rest) = bytes.split_first()?;
        let shift = place as u32 * BITS;
        let part = u64::from(byte & !MORE);
        if part.leading_zeros() < shift {
            return None;
        }
        number |= part << shift;
        *bytes = rest;
        if byte & MORE == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back_and_take_as_many_bytes_as_was_said(number in any::<u64>(), shift in 0..64u32, behind in any::<u8>()) {
            let number = number >> shift;
            let mut bytes = Vec::new();
            write(number, |byte| bytes.push(byte));
            prop_assert_eq!(bytes.len(), length(number));
            prop_assert!(bytes.len() <= BYTES_MAX);
            bytes.push(behind);
            let mut left = &bytes[..];
            prop_assert_eq!(read(&mut left), Some(number));
            prop_assert_eq!(left, [behind]);
            prop_assert_eq!(read(&mut &bytes[..length(number) - 1]), None);
        }
    }

    #[test]
    fn what_is_longer_than_a_number_is_none() {
        assert_eq!(read(&mut &[0xff; 11][..]), None);
        assert_eq!(read(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2][..]), None);
        assert_eq!(read(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1][..]), Some(u64::MAX));
    }
}
