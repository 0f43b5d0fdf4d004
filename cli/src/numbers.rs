//! How numbers are read from options, with messages that say which numbers would be right.

use hemiola::BYTES_PER_SECOND_MIN;
use hemiola::tasks::Delay;
use std::fmt;

/// A whole number of 1 or more.
pub(crate) fn count(text: &str) -> Result<u32, Unexpected> {
    text.parse().ok().filter(|number| *number > 0).ok_or(Unexpected("a whole number of 1 or more"))
}

/// How many of something that costs a thread or a process each.
pub(crate) fn team(text: &str) -> Result<u32, Unexpected> {
    text.parse()
        .ok()
        .filter(|number| (1..=1024).contains(number))
        .ok_or(Unexpected("a whole number between 1 and 1024"))
}

/// Into how many clocks something is cut, of which each costs memory.
pub(crate) fn clocks(text: &str) -> Result<u32, Unexpected> {
    text.parse()
        .ok()
        .filter(|number| (1..=65_536).contains(number))
        .ok_or(Unexpected("a whole number between 1 and 65536"))
}

/// How many machines of a network.
pub(crate) fn machines(text: &str) -> Result<u32, Unexpected> {
    text.parse()
        .ok()
        .filter(|number| (2..=4096).contains(number))
        .ok_or(Unexpected("a whole number between 2 and 4096"))
}

/// A whole number of 0 or more.
pub(crate) fn whole(text: &str) -> Result<u32, Unexpected> {
    text.parse().map_err(|_| Unexpected("a whole number of 0 or more"))
}

/// A whole number of 0 or more that may be large.
pub(crate) fn seed(text: &str) -> Result<u64, Unexpected> {
    text.parse().map_err(|_| Unexpected("a whole number of 0 or more"))
}

/// A whole number within limits.
pub(crate) fn between<N: TryFrom<u64>, const LEAST: u64, const MOST: u64>(text: &str) -> Result<N, String> {
    let number = text.parse().ok().filter(|number| (LEAST..=MOST).contains(number));
    let number = number.and_then(|number| N::try_from(number).ok());
    number.ok_or_else(|| format!("expected a whole number between {LEAST} and {MOST}"))
}

/// A number of factors.
pub(crate) fn rank(text: &str) -> Result<usize, Unexpected> {
    text.parse().ok().filter(|rank| (1..=4096).contains(rank)).ok_or(Unexpected("a whole number between 1 and 4096"))
}

/// Pixels of a patch's side.
pub(crate) fn patch_side(text: &str) -> Result<usize, Unexpected> {
    text.parse().ok().filter(|side| (2..=32).contains(side)).ok_or(Unexpected("a whole number between 2 and 32"))
}

/// One in how many ratings.
pub(crate) fn every(text: &str) -> Result<u64, Unexpected> {
    text.parse().ok().filter(|every| *every >= 2).ok_or(Unexpected("a whole number of 2 or more"))
}

/// A part of a whole.
pub(crate) fn fraction(text: &str) -> Result<f64, Unexpected> {
    let inside = |number: &f64| *number > 0.0 && *number < 1.0;
    text.parse().ok().filter(inside).ok_or(Unexpected("a number between 0 and 1, such as 0.1"))
}

/// A part of a whole, or all of it.
pub(crate) fn share(text: &str) -> Result<f64, Unexpected> {
    let inside = |number: &f64| *number > 0.0 && *number <= 1.0;
    text.parse().ok().filter(inside).ok_or(Unexpected("a number above 0 and up to 1, such as 0.5"))
}

/// A finite number above zero.
pub(crate) fn positive(text: &str) -> Result<f32, Unexpected> {
    let positive = |number: &f32| number.is_finite() && *number > 0.0;
    text.parse().ok().filter(positive).ok_or(Unexpected("a number above 0"))
}

/// As [`positive`], with all its digits.
pub(crate) fn precise(text: &str) -> Result<f64, Unexpected> {
    let positive = |number: &f64| number.is_finite() && *number > 0.0;
    text.parse().ok().filter(positive).ok_or(Unexpected("a number above 0"))
}

/// How many blocks may be missed; on threads each costs a copy of what is known of every example.
pub(crate) fn delay(text: &str) -> Result<Delay, Unexpected> {
    let delay = text.parse().ok().filter(|delay| !matches!(delay, Delay::Bounded(65..)));
    delay.ok_or(Unexpected("'sequential', 'eventual', 'auto', or a whole number between 0 and 64"))
}

/// How many bits the number of a hashed feature has.
pub(crate) fn bits(text: &str) -> Result<u32, Unexpected> {
    text.parse().ok().filter(|bits| (1..=24).contains(bits)).ok_or(Unexpected("a whole number between 1 and 24"))
}

/// A finite number of zero or more.
pub(crate) fn not_negative(text: &str) -> Result<f32, Unexpected> {
    let right = |number: &f32| number.is_finite() && *number >= 0.0;
    text.parse().ok().filter(right).ok_or(Unexpected("a number of 0 or more"))
}

/// A rate of bits or bytes, as bytes per second.
pub(crate) fn bandwidth(text: &str) -> Result<f64, Unexpected> {
    let units = [("gbit", 125e6), ("mbit", 125e3), ("kbit", 125.0)];
    measure(text, &units).filter(|rate| *rate > 0.0).ok_or(Unexpected("a rate above 0 such as 200mbit or 10gbit"))
}

/// A rate that a node may send at, as bytes per second.
pub(crate) fn budget(text: &str) -> Result<f64, Unexpected> {
    let expected = Unexpected("a rate of 100kbit or more, such as 200mbit");
    bandwidth(text).ok().filter(|rate| *rate >= BYTES_PER_SECOND_MIN as f64).ok_or(expected)
}

/// An amount of memory, as bytes.
pub(crate) fn memory(text: &str) -> Result<u64, Unexpected> {
    let units = [("gb", 1e9), ("mb", 1e6), ("kb", 1e3)];
    measure(text, &units)
        .filter(|bytes| (1.0..1e18).contains(bytes))
        .map(|bytes| bytes as u64)
        .ok_or(Unexpected("an amount of memory above 0 such as 512mb or 2gb"))
}

/// A span of time, as seconds.
pub(crate) fn time(text: &str) -> Result<f64, Unexpected> {
    let units = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    measure(text, &units).ok_or(Unexpected("a time such as 100us, 2ms or 1s"))
}

/// A span of time as machines live, as seconds.
pub(crate) fn lifetime(text: &str) -> Result<f64, Unexpected> {
    let units = [("d", 86400.0), ("h", 3600.0), ("m", 60.0), ("s", 1.0)];
    measure(text, &units).filter(|time| *time > 0.0).ok_or(Unexpected("a time above 0 such as 30d, 12h or 90m"))
}

/// A node and a factor.
pub(crate) fn straggler(text: &str) -> Result<(u32, f64), Unexpected> {
    let parts = text.split_once(':').and_then(|(node, factor)| Some((node.parse().ok()?, factor.parse::<f64>().ok()?)));
    parts
        .filter(|(_, factor)| factor.is_finite() && *factor > 0.0)
        .ok_or(Unexpected("a node and a factor such as 3:2.5"))
}

/// How often and how long.
pub(crate) fn hazard(text: &str) -> Result<(f64, f64), Unexpected> {
    let parts = text.split_once(':').and_then(|(rate, span)| Some((rate.parse::<f64>().ok()?, time(span).ok()?)));
    parts
        .filter(|(rate, _)| rate.is_finite() && *rate > 0.0)
        .ok_or(Unexpected("how often in a second and how long, such as 0.5:20ms"))
}

/// A number of zero or more and one of the units.
fn measure(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (number, factor) = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    number
        .trim()
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite() && *number >= 0.0)
        .map(|number| number * factor)
}

/// Says what was expected instead.
#[derive(Debug)]
pub(crate) struct Unexpected(&'static str);

impl fmt::Display for Unexpected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.0)
    }
}

impl std::error::Error for Unexpected {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_bytes_and_seconds() {
        type Read = fn(&str) -> Option<f64>;
        let rate: Read = |text| bandwidth(text).ok();
        let limit: Read = |text| budget(text).ok();
        let bytes: Read = |text| memory(text).ok().map(|bytes| bytes as f64);
        let short: Read = |text| time(text).ok();
        let long: Read = |text| lifetime(text).ok();
        for (read, text, expected) in [
            (rate, "10gbit", Some(1.25e9)),
            (rate, "1.5 mbit", Some(187_500.0)),
            (rate, "8kbit", Some(1000.0)),
            (limit, "100kbit", Some(12_500.0)),
            (limit, "99kbit", None),
            (bytes, "2gb", Some(2e9)),
            (bytes, "0.5mb", Some(5e5)),
            (bytes, "3kb", Some(3000.0)),
            (short, "1ns", Some(1e-9)),
            (short, "1us", Some(1e-6)),
            (short, "250ms", Some(0.25)),
            (short, "0s", Some(0.0)),
            (long, "30d", Some(2_592_000.0)),
            (long, "12h", Some(43_200.0)),
            (long, "90m", Some(5400.0)),
            (long, "5s", Some(5.0)),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        for read in [rate, limit, bytes, long] {
            for wrong in ["", "5", "0mbit", "0gb", "0s", "-1gbit", "-1gb", "-1d", "infs", "nangb"] {
                assert_eq!(read(wrong), None, "{wrong}");
            }
        }
    }
}
