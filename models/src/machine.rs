//! Loops compiled for the instructions that this machine has.

/// A loop, compiled once for each instruction set. `run`, and all that it is to spend its time in, must be
/// `#[inline(always)]`, or it is compiled for the least of them.
pub(crate) trait Loop {
    /// What comes of it.
    type Output;

    fn run(self) -> Self::Output;
}

/// Runs a loop with vectors of eight numbers, where the machine has such. Sums are made in the order that the loop says,
/// and nothing is rounded less often, so that what comes out does not depend on the machine.
pub(crate) fn run<L: Loop>(work: L) -> L::Output {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn avx2<L: Loop>(work: L) -> L::Output {
            work.run()
        }
        #[expect(unsafe_code, reason = "the call needs a promise that the feature is there")]
        // SAFETY: the feature was just detected.
        return unsafe { avx2(work) };
    }
    work.run()
}
