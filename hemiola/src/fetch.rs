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

/// How many are asked for at once, so that they come while others do.
const TOGETHER: usize = 8;

/// Those of an order to ask for at a turn, so many rounds ahead: several in one turn, and none in those between.
#[inline(always)]
#[must_use]
pub fn ahead<T>(order: &[T], turn: usize, rounds: usize) -> &[T] {
    let coming =
        if turn.is_multiple_of(TOGETHER) { order.get(turn + rounds * TOGETHER..).unwrap_or_default() } else { &[] };
    coming.get(..TOGETHER).unwrap_or(coming)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_the_first_are_asked_for_once_and_before_their_turn() {
        let order: Vec<usize> = (0..43).collect();
        for rounds in [1, 2] {
            let asked = |turn| ahead(&order, turn, rounds).iter().map(move |&next| (turn, next));
            let all: Vec<(usize, usize)> = (0..order.len()).flat_map(asked).collect();
            assert!(all.iter().all(|(turn, next)| next >= &(turn + rounds * TOGETHER)));
            assert!(all.iter().map(|(_, next)| *next).eq(rounds * TOGETHER..order.len()));
        }
    }
}
