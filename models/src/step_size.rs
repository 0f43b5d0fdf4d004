//! Step sizes of stochastic gradient descent, and how they shrink.

use serde::{Deserialize, Serialize};

/// How far a gradient moves the rows it touches; `epoch` counts from zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepSize {
    /// `rate / sqrt(1 + damping * E)`, where `E` is the sum of the squared errors that the row has seen: AdaGrad with one
    /// step size for a whole row. What else a squared gradient is made of is taken as the constant `damping`.
    Adaptive {
        /// Step size of a row's first gradient.
        rate: f32,
        /// How fast the step size shrinks.
        damping: f32,
    },
    /// The same step size always.
    Constant {
        /// The step size.
        rate: f32,
    },
    /// `rate / (1 + epoch)`.
    InverseTime {
        /// Step size of the first epoch.
        rate: f32,
    },
    /// `rate / sqrt(1 + epoch)`.
    InverseSqrt {
        /// Step size of the first epoch.
        rate: f32,
    },
    /// A step size for every number, which shrinks with its squared gradients and with the delay of a gradient: the
    /// procedure [`AdaRevision`](hemiola::procedure::AdaRevision) on the rows of items.
    #[serde(rename = "adarevision")]
    AdaRevision {
        /// Step size before anything is learnt.
        rate: f32,
    },
    /// The same without regard to delays: the procedure [`AdaGrad`](hemiola::procedure::AdaGrad).
    #[serde(rename = "adagrad")]
    AdaGrad {
        /// Step size before anything is learnt.
        rate: f32,
    },
    /// `rate * factor^epoch`.
    Decay {
        /// Step size of the first epoch.
        rate: f32,
        /// What the step size is multiplied by after an epoch.
        factor: f32,
    },
}

impl StepSize {
    /// The step size of an epoch; that of a row's first gradient if the rows have their own.
    pub fn at_epoch(self, epoch: u32) -> f32 {
        let passed = epoch as f32;
        match self {
            Self::Adaptive { rate, .. }
            | Self::Constant { rate }
            | Self::AdaRevision { rate }
            | Self::AdaGrad { rate } => rate,
            Self::InverseTime { rate } => rate / (1.0 + passed),
            Self::InverseSqrt { rate } => rate / (1.0 + passed).sqrt(),
            Self::Decay { rate, factor } => rate * factor.powf(passed),
        }
    }

    /// How fast a row's own step size shrinks with its squared errors: zero unless rows have their own.
    pub fn damping(self) -> f32 {
        match self {
            Self::Adaptive { damping, .. } => damping,
            _ => 0.0,
        }
    }
}
