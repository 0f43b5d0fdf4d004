//! What can go wrong with an algorithm of Splash.

use thiserror::Error;

/// Why a pass, or the whole run, cannot be.
#[derive(Debug, Clone, PartialEq, Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum SplashError {
    #[error("process panicked at element {element}: {message}; nothing of this pass is applied")]
    Panicked { element: usize, message: String },
    #[error("process made '{variable}' infinite or not a number at element {element}; nothing of this pass is applied")]
    NotFinite { variable: String, element: usize },
    #[error(
        "process made '{variable}' infinite or not a number between two synchronisations, at one of {elements} elements, and did not when they were processed again; nothing of this pass is applied"
    )]
    NotFiniteOnce { variable: String, elements: usize },
    #[error(
        "the weight of element {element} is {weight}, and weights are numbers from zero up; nothing of this pass is applied"
    )]
    Weight { element: usize, weight: f64 },
    #[error("an earlier pass failed, so there is nothing to go on from")]
    Failed,
    #[error("two variables are called '{name}'")]
    SameName { name: String },
    #[error("variable '{name}' has no numbers")]
    Empty { name: String },
    #[error("a degree of {degree} needs as many workers, and there are {workers}")]
    Degree { degree: u32, workers: u32 },
    #[error("a pass needs at least one synchronisation")]
    Synchronisations,
    #[error("there are more than {} elements", u32::MAX)]
    TooMany,
    #[error("line {line}: {reason}")]
    Line { line: usize, reason: String },
    #[error("what the first worker handed back is not its variables")]
    Result,
}
