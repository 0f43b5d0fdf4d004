//! Asking for memory before it is read.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Asks for so many cache lines from a place on to be brought near. Nothing is read, so the place need not be there.
#[inline(always)]
pub fn fetch<T>(place: *const T, lines: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..lines {
        #[expect(unsafe_code, reason = "SAFETY: fetching ahead reads nothing, whatever the address")]
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(place.cast::<i8>().wrapping_add(line * LINE));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (place, lines);
}
