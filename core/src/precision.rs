//! How precisely the numbers of dense rows travel: as they are, or rounded to sixteen bits.

use crate::values::Values;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use half::{bf16, f16};
use serde::{Deserialize, Serialize};

/// What a number is on the wire. Rows and updates are kept in 32 bits at both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// The 32 bits it has.
    #[default]
    F32,
    /// IEEE half precision: eleven significant bits, magnitudes from 6e-8 to 65,504.
    F16,
    /// The upper half of an `f32`: eight significant bits, and its whole range.
    Bf16,
}

impl Precision {
    /// How many bytes a number takes on the wire.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }

    /// `values` as they travel. A finite number beyond the range becomes the greatest that is in it.
    pub(crate) fn narrow(self, values: Values) -> Values {
        let Values::Dense { width, numbers } = values else { return values };
        let mut bits = vec![0u16; numbers.len()];
        match self {
            Self::F32 => return Values::Dense { width, numbers },
            Self::F16 => {
                bits.reinterpret_cast_mut::<f16>().convert_from_f32_slice(&numbers);
                saturate(&mut bits, &numbers, f16::INFINITY.to_bits());
            }
            Self::Bf16 => {
                bits.iter_mut().zip(numbers.iter()).for_each(|(bits, &number)| *bits = upper_half(number));
                saturate(&mut bits, &numbers, bf16::INFINITY.to_bits());
            }
        }
        Values::Half { width, precision: self, numbers: bits.into() }
    }

    /// What arrived, in 32 bits; `None` if it did not travel in this precision.
    pub(crate) fn widen(self, values: &Values) -> Option<Values> {
        match values {
            Values::Half { width, precision, numbers: bits } if *precision == self => {
                let mut numbers = vec![0.0f32; bits.len()];
                match self {
                    Self::F16 => bits.reinterpret_cast::<f16>().convert_to_f32_slice(&mut numbers),
                    Self::Bf16 => {
                        let wide = |&bits: &u16| f32::from_bits(u32::from(bits) << 16);
                        numbers.iter_mut().zip(bits.iter()).for_each(|(number, bits)| *number = wide(bits));
                    }
                    Self::F32 => return None,
                }
                Some(Values::dense(*width, numbers))
            }
            Values::Half { .. } => None,
            Values::Dense { .. } if self != Self::F32 => None,
            values => Some(values.clone()),
        }
    }
}

/// The upper half of a number, rounded to the nearest and to the even one of two; written without branches, so that many are
/// rounded at a time.
fn upper_half(number: f32) -> u16 {
    let bits = number.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
    // What is no number must stay none, however little of it is in the upper half.
    ((if number.is_nan() { bits | 0x0040_0000 } else { rounded }) >> 16) as u16
}

/// Puts the greatest number in the place of an infinity that was a finite one: the one below it.
fn saturate(bits: &mut [u16], numbers: &[f32], infinity: u16) {
    for (bits, number) in bits.iter_mut().zip(numbers) {
        *bits -= u16::from(*bits & 0x7fff == infinity && number.is_finite());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn travelled(precision: Precision, numbers: &[f32]) -> Vec<f32> {
        let narrow = precision.narrow(Values::dense(1, numbers.to_vec()));
        match precision.widen(&narrow) {
            Some(Values::Dense { numbers, .. }) => numbers.to_vec(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn numbers_travel_rounded_to_the_nearest() {
        let numbers = [1.0, -0.5, 1.0 + 1.0 / 1024.0, 0.1, 1e5, -1e30, f32::INFINITY];
        let whole = travelled(Precision::F32, &numbers);
        assert_eq!(whole, numbers);
        let halves = travelled(Precision::F16, &numbers);
        assert_eq!(halves, [1.0, -0.5, 1.0 + 1.0 / 1024.0, 0.099_975_586, 65504.0, -65504.0, f32::INFINITY]);
        let brains = travelled(Precision::Bf16, &numbers);
        assert_eq!(brains[..4], [1.0, -0.5, 1.0, 0.100_097_656]);
        assert!(brains[5] < -9.9e29 && brains[6] == f32::INFINITY);
        assert!(travelled(Precision::Bf16, &[f32::MAX])[0].is_finite());
        assert!(travelled(Precision::Bf16, &[f32::NAN, f32::from_bits(0xff80_0001)]).iter().all(|x| x.is_nan()));
        let mut bits = 0x1234_5678u32;
        for _ in 0..100_000 {
            bits = bits.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
            let number = f32::from_bits(bits);
            let other = bf16::from_f32(number);
            assert!(upper_half(number) == other.to_bits() || number.is_nan() && other.is_nan(), "{number}");
        }
    }

    #[test]
    fn what_travelled_in_another_precision_is_refused() {
        let numbers = Values::dense(2, vec![1.0, 2.0]);
        let half = Precision::F16.narrow(numbers.clone());
        assert_eq!(Precision::F32.widen(&half), None);
        assert_eq!(Precision::Bf16.widen(&half), None);
        assert_eq!(Precision::F16.widen(&numbers), None);
    }
}
