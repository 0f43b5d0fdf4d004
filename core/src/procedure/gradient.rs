//! The procedures provided: gradient descent whose step size is scheduled, adapted, or adapted to the delay.

use super::Procedure;
use crate::ids::Clock;

/// How a step size shrinks with `t`, the clock in which the update was made, counted from zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Schedule {
    /// `rate`.
    Constant,
    /// `rate / (1 + t)`.
    InverseTime,
    /// `rate / √(1 + t)`.
    InverseSqrt,
    /// `rate · factor^t`.
    Decay {
        /// What the step size is multiplied by after a clock.
        factor: f32,
    },
}

/// Gradient descent: `w ← w − η(t) g`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sgd {
    /// The step size of the first clock.
    pub rate: f32,
    /// How it shrinks.
    pub schedule: Schedule,
}

/// AdaGrad: every number of a row has the step size `rate / √z`, where `z` is one plus the sum of its squared
/// gradients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdaGrad {
    /// The step size before anything is learnt.
    pub rate: f32,
}

/// AdaRevision (McMahan and Streeter 2014): AdaGrad that knows how many gradients were applied between the read that a
/// gradient was computed on and now, makes the step smaller for them, and takes back what earlier steps were too large
/// by. With no delay it is [`AdaGrad`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdaRevision {
    /// The step size before anything is learnt.
    pub rate: f32,
    /// With so many snapshots of a table on a shard, rows are sent only when the consistency model asks for it.
    pub snapshots_max: usize,
}

impl Sgd {
    /// The step size of an update made in `clock`.
    #[must_use]
    pub fn step(&self, clock: Clock) -> f32 {
        let t = clock.0 as f32;
        match self.schedule {
            Schedule::Constant => self.rate,
            Schedule::InverseTime => self.rate / (1.0 + t),
            Schedule::InverseSqrt => self.rate / (1.0 + t).sqrt(),
            Schedule::Decay { factor } => self.rate * factor.powf(t),
        }
    }
}

impl Procedure for Sgd {
    fn apply(&self, row: &mut [f32], _state: &mut [f32], _snapshot: &[f32], update: &[f32], clock: Clock) {
        let step = self.step(clock);
        for (w, g) in row.iter_mut().zip(update) {
            *w -= step * g;
        }
    }
}

impl AdaGrad {
    /// One step; `z` starts at ones.
    pub fn step(&self, row: &mut [f32], z: &mut [f32], gradient: &[f32]) {
        for ((w, z), g) in row.iter_mut().zip(z).zip(gradient) {
            *z += g * g;
            *w -= self.rate / z.sqrt() * g;
        }
    }
}

impl Procedure for AdaGrad {
    fn state_width(&self, width: usize) -> usize {
        width
    }

    fn created(&self, _row: &[f32], state: &mut [f32]) {
        state.fill(1.0);
    }

    fn apply(&self, row: &mut [f32], state: &mut [f32], _snapshot: &[f32], update: &[f32], _clock: Clock) {
        self.step(row, state, update);
    }
}

impl AdaRevision {
    /// With a limit of snapshots that a table of some thousand rows does not reach.
    #[must_use]
    pub fn new(rate: f32) -> Self {
        Self { rate, snapshots_max: 1 << 20 }
    }
}

/// Its state is the sum of the gradients applied, `z` and the largest `z` so far, one after the other; a snapshot is the
/// sum alone.
impl Procedure for AdaRevision {
    fn state_width(&self, width: usize) -> usize {
        3 * width
    }

    fn snapshot_width(&self, width: usize) -> usize {
        width
    }

    fn created(&self, row: &[f32], state: &mut [f32]) {
        state[row.len()..].fill(1.0);
    }

    fn apply(&self, row: &mut [f32], state: &mut [f32], snapshot: &[f32], update: &[f32], _clock: Clock) {
        let (sum, rest) = state.split_at_mut(row.len());
        let (z, z_max) = rest.split_at_mut(row.len());
        let state = sum.iter_mut().zip(z).zip(z_max);
        for (((w, ((sum, z), z_max)), read), g) in row.iter_mut().zip(state).zip(snapshot).zip(update) {
            let since = *sum - read;
            let step_before = self.rate / z_max.sqrt();
            *z += g * g + 2.0 * g * since;
            *z_max = z_max.max(*z);
            let step = self.rate / z_max.sqrt();
            *w += (step_before - step) * since - step * g;
            *sum += g;
        }
    }

    fn sent(&self, row: &[f32], state: &[f32], snapshot: &mut [f32]) {
        snapshot.copy_from_slice(&state[..row.len()]);
    }

    fn may_send(&self, _row: &[f32], _state: &[f32], kept: usize) -> bool {
        kept < self.snapshots_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_counts_the_clocks_of_the_updates() {
        let cases = [
            (Schedule::Constant, [0.5, 0.5]),
            (Schedule::InverseTime, [0.5, 0.125]),
            (Schedule::InverseSqrt, [0.5, 0.25]),
            (Schedule::Decay { factor: 0.5 }, [0.5, 0.0625]),
        ];
        for (schedule, steps) in cases {
            let sgd = Sgd { rate: 0.5, schedule };
            for (clock, step) in [0, 3].into_iter().zip(steps) {
                let mut row = [1.0];
                sgd.apply(&mut row, &mut [], &[], &[2.0], Clock(clock));
                assert_eq!(row, [1.0 - 2.0 * step], "{schedule:?} in clock {clock}");
            }
        }
    }

    #[test]
    fn without_delay_adarevision_is_adagrad() {
        let (revision, grad) = (AdaRevision::new(0.3), AdaGrad { rate: 0.3 });
        let (mut a, mut b) = ([1.0, -2.0], [1.0, -2.0]);
        let (mut state, mut z, mut snapshot) = ([0.0; 6], [0.0; 2], [0.0; 2]);
        revision.created(&a, &mut state);
        grad.created(&b, &mut z);
        for gradient in [[0.5, -1.0], [0.25, 2.0], [-3.0, 0.0]] {
            revision.sent(&a, &state, &mut snapshot);
            revision.apply(&mut a, &mut state, &snapshot, &gradient, Clock(0));
            grad.apply(&mut b, &mut z, &[], &gradient, Clock(0));
            assert_eq!(a, b);
        }
    }
}
