//! Data readers, kernels and estimators, one file or folder per model.

pub mod corpus;
mod curvature;
pub mod dml;
mod epoch;
pub mod examples;
mod fields;
pub mod generate;
mod hold_out;
pub mod images;
pub mod l1lr;
pub mod l2mlr;
pub mod lda;
mod line_blocks;
mod machine;
mod matrix;
pub mod mf;
pub mod mlr;
pub mod model_directory;
mod names;
pub mod patches;
pub mod peers;
mod rating;
pub mod ratings;
pub mod reproduce;
pub mod resume;
pub mod rica;
pub mod sc;
mod step_size;
mod team;

pub use epoch::Epoch;
pub use fields::{OpenQuote, Separator};
pub use hold_out::{HoldOut, SplitError};
pub use line_blocks::LinesError;
pub use names::{Names, NamesFull};
pub use rating::Rating;
pub use step_size::StepSize;
