//! Data readers, kernels and estimators, one file or folder per model.

pub mod corpus;
pub mod examples;
mod fields;
pub mod generate;
mod hold_out;
pub mod l1lr;
pub mod lda;
mod line_blocks;
pub mod mf;
pub mod mlr;
pub mod model_directory;
mod names;
mod rating;
pub mod ratings;
pub mod reproduce;
pub mod resume;
mod step_size;

pub use fields::{OpenQuote, Separator};
pub use hold_out::{HoldOut, SplitError};
pub use line_blocks::LinesError;
pub use names::{Names, NamesFull};
pub use rating::Rating;
pub use step_size::StepSize;
