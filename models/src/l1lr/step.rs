//! A step of a weight as the servers tell it to the workers, in few bits.
//!
//! The proximal operator minimises a bound of the objective that is convex in every weight, so whatever lies between a
//! weight and what the operator makes of it is no worse than the weight. A step uses that twice:
//! - It goes no further than the weight's **reach**, within which the bound is one. A reach is twice the last step, or half
//!   of itself where that is more, as in the trust regions of Genkin, Lewis and Madigan (Large-scale Bayesian logistic
//!   regression for text categorization, 2007).
//! - It is cut to the upper half of its bits, and filters leave out the lower one. Both ends add the same number, so they
//!   go on having the same weight.

/// The reach of a weight that has not moved yet: further than weights go.
pub const UNBOUNDED: f32 = 1e6;
/// A reach gets no shorter, so that a weight that has stood still for long can set out again.
const REACH_MIN: f32 = 1e-3;
/// The step of a weight to zero, whatever it was.
const TO_ZERO: f32 = f32::INFINITY;
/// The step of a weight that stays zero and that nobody looks at until it is told another; also that weight.
pub const IDLE: f32 = -0.0;
const UPPER_HALF: u32 = 0xffff_0000;

/// The reach of a weight after it has moved by so much.
#[must_use]
pub fn reach_after(reach: f32, moved: f32) -> f32 {
    (2.0 * moved.abs()).max(reach.min(2.0) / 2.0).max(REACH_MIN)
}

/// The step from a weight towards another.
#[must_use]
pub fn towards(weight: f32, other: f32, reach: f32) -> f32 {
    let way = other - weight;
    if other == 0.0 && weight != 0.0 && way.abs() <= reach {
        return TO_ZERO;
    }
    f32::from_bits(way.clamp(-reach, reach).to_bits() & UPPER_HALF) + 0.0
}

/// The weight after a step.
#[must_use]
pub fn after(weight: f32, step: f32) -> f32 {
    if step == TO_ZERO {
        0.0
    } else if is_idle(step) {
        IDLE
    } else {
        weight + step
    }
}

/// Whether a step or a weight is [`IDLE`].
#[must_use]
pub fn is_idle(number: f32) -> bool {
    number.to_bits() == IDLE.to_bits()
}

/// A bound in the upper half of its bits: one that is higher is still one.
#[must_use]
pub fn short_bound(bound: f64) -> f32 {
    let bits = (bound as f32).to_bits();
    f32::from_bits(bits.saturating_add(!UPPER_HALF) & UPPER_HALF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_leads_towards_the_other_weight_and_not_beyond() {
        let numbers = [0.0f32, 0.3, -0.3, 1.234_567, -7.654_321, 1e-6, 1e4];
        for weight in numbers {
            for other in numbers {
                for reach in [UNBOUNDED, 0.5, 1e-3] {
                    let step = towards(weight, other, reach);
                    assert_eq!(step.to_bits() & !UPPER_HALF, 0, "its lower half is zero");
                    let (new, way) = (after(weight, step), other - weight);
                    let due = way.abs().min(reach);
                    let moved = (new - weight) * way.signum();
                    let rounding = 1e-6 * weight.abs().max(other.abs());
                    assert!(
                        (due * 0.99 - rounding..=due + rounding).contains(&moved),
                        "{weight} {other} {reach}: {new}"
                    );
                    assert!(other != 0.0 || way.abs() > reach || new == 0.0, "zero is met");
                }
            }
        }
        assert!(is_idle(after(0.0, IDLE)) && !is_idle(after(IDLE, towards(0.0, 0.0, 1.0))));
    }

    #[test]
    fn a_reach_follows_the_steps() {
        assert_eq!(reach_after(UNBOUNDED, 0.0), 1.0);
        assert_eq!(reach_after(UNBOUNDED, -3.0), 6.0);
        assert_eq!(reach_after(1.0, 0.1), 0.5);
        assert_eq!(reach_after(REACH_MIN, 0.0), REACH_MIN);
    }

    #[test]
    fn a_short_bound_is_little_higher() {
        for bound in [0.0, 1.0, 0.1, 123.456, 1e-30, 1e30] {
            let short = short_bound(bound);
            assert_eq!(short.to_bits() & !UPPER_HALF, 0);
            assert!((bound * (1.0 - 1e-7)..=bound * 1.01).contains(&f64::from(short)), "{bound}: {short}");
        }
    }
}
