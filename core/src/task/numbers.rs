//! Numbers as the argument of a function and as what it returns.

use crate::task::Reply;

/// Numbers as bytes.
#[must_use]
pub fn pack(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The numbers of bytes; what is no whole number at their end is left out.
#[must_use]
pub fn unpack(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks().0.iter().map(|&number| f64::from_le_bytes(number)).collect()
}

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

    #[test]
    fn numbers_come_back_and_are_summed_place_by_place() {
        assert_eq!(unpack_some(&pack(&[1.5, -0.0])), Ok([1.5, -0.0]));
        assert_eq!(unpack_some::<3>(&pack(&[1.0])), Err("expected 3 numbers, not 1".to_owned()));
        let part = |server, numbers: &[f64]| (Node::Server(ShardId(server)), pack(numbers).into());
        let reply = Reply { returned: vec![part(0, &[1.0]), part(1, &[2.0, 7.0])], ..Reply::default() };
        assert_eq!(reply.sums(), [3.0, 7.0]);
    }
}
