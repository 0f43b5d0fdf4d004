//! Numbers as the argument of a function and as what it returns.

use crate::task::Reply;

/// Numbers as bytes, without the lowest bytes that are zero, which small whole numbers mostly have: of every two numbers
/// first how many bytes each has, in half a byte, then these bytes, the highest first.
#[must_use]
pub fn pack(numbers: &[f64]) -> Vec<u8> {
    let mut packed = Vec::new();
    for pair in numbers.chunks(2) {
        let bytes = |number: &f64| size_of::<u64>() as u8 - (number.to_bits().trailing_zeros() / u8::BITS) as u8;
        packed.push(bytes(&pair[0]) | pair.get(1).map_or(NONE, bytes) << 4);
        pair.iter().for_each(|number| packed.extend_from_slice(&number.to_be_bytes()[..usize::from(bytes(number))]));
    }
    packed
}

/// The numbers of bytes; what is no whole number at their end is left out.
#[must_use]
pub fn unpack(mut bytes: &[u8]) -> Vec<f64> {
    let mut numbers = Vec::new();
    while let Some((&lengths, mut rest)) = bytes.split_first() {
        for length in [lengths & 0xf, lengths >> 4] {
            let Some((own, behind)) = rest.split_at_checked(length.into()).filter(|_| length < NONE) else {
                return numbers;
            };
            let mut number = [0; size_of::<f64>()];
            let Some(place) = number.get_mut(..own.len()) else { return numbers };
            place.copy_from_slice(own);
            numbers.push(f64::from_be_bytes(number));
            rest = behind;
        }
        bytes = rest;
    }
    numbers
}

/// In the place of a number's length where there is no number.
const NONE: u8 = 0xf;

/// As many numbers as the caller names.
///
/// # Errors
/// If there are not so many.
pub fn unpack_some<const N: usize>(bytes: &[u8]) -> Result<[f64; N], String> {
    let numbers = unpack(bytes);
    <[f64; N]>::try_from(&numbers[..]).map_err(|_| format!("expected {N} numbers, not {}", numbers.len()))
}

impl Reply {
    /// What a function returned as numbers, summed over the nodes in their order.
    #[must_use]
    pub fn sums(&self) -> Vec<f64> {
        let mut sums = Vec::new();
        self.returned.iter().for_each(|(_, part)| add(&mut sums, &unpack(part)));
        sums
    }
}

/// Adds numbers to sums, place by place; where there is no sum yet, one begins.
pub fn add(sums: &mut Vec<f64>, numbers: &[f64]) {
    sums.resize(sums.len().max(numbers.len()), 0.0);
    sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ShardId;
    use crate::task::Node;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_numbers_come_back(numbers in proptest::collection::vec(any::<u64>(), 0..9), shift in 0..65u32) {
            let numbers: Vec<u64> = numbers.into_iter().map(|bits| bits.checked_shl(shift).unwrap_or(0)).collect();
            let packed = pack(&numbers.iter().map(|&bits| f64::from_bits(bits)).collect::<Vec<_>>());
            prop_assert_eq!(unpack(&packed).into_iter().map(f64::to_bits).collect::<Vec<_>>(), numbers);
        }

        #[test]
        fn any_bytes_are_numbers_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert!(unpack(&bytes).len() <= 2 * bytes.len());
        }
    }

    #[test]
    fn numbers_come_back_and_are_summed_place_by_place() {
        assert_eq!(unpack_some(&pack(&[1.5, -0.0])), Ok([1.5, -0.0]));
        assert_eq!(pack(&[7.0, 0.0, 1.0]).len(), 2 + 2 + 2, "small whole numbers are short");
        assert_eq!(unpack_some::<3>(&pack(&[1.0])), Err("expected 3 numbers, not 1".to_owned()));
        let part = |server, numbers: &[f64]| (Node::Server(ShardId(server)), pack(numbers).into());
        let reply = Reply { returned: vec![part(0, &[1.0]), part(1, &[2.0, 7.0])], ..Reply::default() };
        assert_eq!(reply.sums(), [3.0, 7.0]);
    }
}
