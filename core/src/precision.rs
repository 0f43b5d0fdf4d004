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
                let halves: &mut [f16] = bits.reinterpret_cast_mut();
                halves.convert_from_f32_slice(&numbers);
                saturate(halves, &numbers, f16::is_infinite, f16::MAX, f16::MIN);
            }
            Self::Bf16 => {
                let halves: &mut [bf16] = bits.reinterpret_cast_mut();
                halves.convert_from_f32_slice(&numbers);
                saturate(halves, &numbers, bf16::is_infinite, bf16::MAX, bf16::MIN);
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
                    Self::Bf16 => bits.reinterpret_cast::<bf16>().convert_to_f32_slice(&mut numbers),
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

fn saturate<H: Copy>(halves: &mut [H], numbers: &[f32], is_infinite: fn(H) -> bool, greatest: H, least: H) {
    for (half, number) in halves.iter_mut().zip(numbers) {
        if is_infinite(*half) && number.is_finite() {
            *half = if *number > 0.0 { greatest } else { least };
        }
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
