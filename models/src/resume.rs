//! What a worker hands in at a checkpoint, and what must be the same in a run that goes on.

use crate::epoch::Course;
use hemiola::checkpoint::Checkpoints;
use hemiola::{Deployment, Error, Observer, Outcome, Program, TableSchema, Worker, run_observed, run_saved};
use serde::Serialize;
use thiserror::Error as ThisError;

/// A worker between two epochs: its first is done, and not yet reported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Progress {
    /// Epochs done.
    pub(crate) epochs: u32,
    /// What the worker has to report of the last one.
    pub(crate) met: f64,
    /// What is known of the epochs before the last, and how long all took.
    pub(crate) course: Course,
}

/// Why a training cannot go on from a checkpoint, or cannot be saved as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum ResumeError {
    #[error("checkpoints are taken after whole epochs: {every} clocks are no multiple of the {clocks} of an epoch")]
    WithinEpoch { every: u32, clocks: u32 },
    #[error("the checkpoint is of {done} epochs, and only {epochs} are to be trained; ask for more")]
    PastEnd { done: u32, epochs: u32 },
    #[error("what a worker saved is not of a training like this one")]
    Foreign,
}

const HEAD_BYTES: usize = 32;

impl Progress {
    pub(crate) fn to_bytes(self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..4].copy_from_slice(&self.epochs.to_le_bytes());
        let Course { train_seconds, best, since_best } = self.course;
        bytes[4..8].copy_from_slice(&since_best.to_le_bytes());
        for (at, number) in [(8, self.met), (16, train_seconds), (24, best)] {
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// The epochs, or passes, that what was handed in is of.
    ///
    /// # Errors
    /// If it is too short to say.
    pub(crate) fn passes(state: &[u8]) -> Result<u32, ResumeError> {
        state.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)).ok_or(ResumeError::Foreign)
    }

    /// Reads what was handed in, of which `rest` are filled with what was behind it, for a training of so many epochs.
    ///
    /// # Errors
    /// If it is not so long, or of more epochs.
    pub(crate) fn restore(state: &[u8], rest: &mut [&mut [u8]], epochs: u32) -> Result<Self, ResumeError> {
        let (head, mut behind) = state.split_at_checked(HEAD_BYTES).ok_or(ResumeError::Foreign)?;
        let whole = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let number = |at: usize| f64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
        if behind.len() != rest.iter().map(|part| part.len()).sum::<usize>() || whole(0) == 0 {
            return Err(ResumeError::Foreign);
        }
        if whole(0) > epochs {
            return Err(ResumeError::PastEnd { done: whole(0), epochs });
        }
        for part in rest {
            let (bytes, others) = behind.split_at(part.len());
            part.copy_from_slice(bytes);
            behind = others;
        }
        let course = Course { since_best: whole(4), train_seconds: number(16), best: number(24) };
        Ok(Self { epochs: whole(0), met: number(8), course })
    }
}

/// What the worker handed in at the checkpoint that the run goes on from, if it does; as [`Progress::restore`].
///
/// # Errors
/// What [`Progress::restore`] says, as an `E` of the program.
pub(crate) fn resumed<E>(worker: &mut Worker, rest: &mut [&mut [u8]], epochs: u32) -> Result<Option<Progress>, Error>
where
    E: From<ResumeError> + std::error::Error + Send + Sync + 'static,
{
    let Some(state) = worker.resumed() else { return Ok(None) };
    Progress::restore(&state, rest, epochs).map(Some).map_err(|error| Error::program(E::from(error)))
}

/// The name under which a checkpoint records the clocks of an epoch.
pub const CLOCKS_PER_EPOCH: &str = "clocks per epoch";

/// What must be the same in a run that goes on: names, and what they are.
pub(crate) type Identity = Vec<(String, String)>;

/// An identity of the settings of a model, as `train` calls it.
pub(crate) fn identity<const N: usize>(model: &str, settings: [(&str, String); N]) -> Identity {
    let model = ("model", model.to_owned());
    [model].into_iter().chain(settings).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A setting of several parts as people read it: `essp staleness 2`.
pub(crate) fn told(setting: impl Serialize) -> String {
    let encoded = serde_json::to_string(&setting).expect("plain data can be encoded");
    encoded.replace(['{', '}', '"'], "").replace([':', ','], " ")
}

/// Runs a training whose epochs have so many clocks, with checkpoints after whole epochs if there are to be such.
///
/// # Errors
/// If checkpoints would fall into an epoch; or what the run says, in which [`Error::Program`] may hold an `E`.
pub(crate) fn run<E>(
    (deployment, tables): (&Deployment, &[TableSchema]),
    checkpoints: Option<(&Checkpoints, Identity)>,
    clocks: u32,
    program: &Program<'_>,
    observer: &mut Observer<'_>,
) -> Result<Outcome, E>
where
    E: From<ResumeError> + From<Error> + std::error::Error + Send + Sync + 'static,
{
    let outcome = match checkpoints {
        None => run_observed(deployment, tables, program, observer),
        Some((checkpoints, identity)) => {
            let every = checkpoints.every.unit();
            if !every.is_multiple_of(clocks) {
                return Err(ResumeError::WithinEpoch { every, clocks }.into());
            }
            let mut checkpoints = checkpoints.clone();
            // Which model it is comes first, then its settings, and what the caller knows last.
            checkpoints.identity.splice(0..0, identity);
            checkpoints.identity.push((CLOCKS_PER_EPOCH.to_owned(), clocks.to_string()));
            run_saved(deployment, tables, &checkpoints, program, observer)
        }
    };
    outcome.map_err(|error| match error {
        Error::Program(error) => match error.downcast::<E>() {
            Ok(error) => *error,
            Err(error) => Error::Program(error).into(),
        },
        error => error.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_told_without_the_signs_of_a_program() {
        assert_eq!(told(hemiola::Consistency::Essp { staleness: 2 }), "essp staleness 2");
        assert_eq!(told(crate::StepSize::Decay { rate: 3.0, factor: 0.1 }), "decay rate 3.0 factor 0.1");
    }

    #[test]
    fn what_is_handed_in_is_what_comes_back_to_the_bit() {
        let course = Course { train_seconds: 1e-300, best: f64::INFINITY, since_best: 2 };
        let progress = Progress { epochs: 7, met: 0.1 + 0.2, course };
        let rows = [1.0f32, -0.0, f32::MIN_POSITIVE];
        let state = [&progress.to_bytes()[..], bytemuck::cast_slice(&rows)].concat();
        let restore = |state: &[u8], epochs| {
            let mut users = [0.0f32; 3];
            let progress = Progress::restore(state, &mut [bytemuck::cast_slice_mut(&mut users)], epochs);
            (progress, users.map(f32::to_bits))
        };
        assert_eq!(restore(&state, 7), (Ok(progress), rows.map(f32::to_bits)));
        assert_eq!(restore(&state, 6).0, Err(ResumeError::PastEnd { done: 7, epochs: 6 }));
        assert_eq!(restore(&state[..40], 7).0, Err(ResumeError::Foreign), "other rows");
        assert_eq!(restore(&[], 7).0, Err(ResumeError::Foreign));
    }
}
