//! More clocks in a pass against managed communication: the paper's figure 8.

use super::super::{Findings, ReproduceError, Scale, Series};
use super::bandwidth::converged;
use super::{BS, Bench, Mode, Topics, list, panel, times};
use hemiola::Priority::RelativeMagnitude;

/// Clocks in a pass.
const TICKS: [(&str, u32); 4] = [("BS-1", 1), ("BS-2", 2), ("BS-4", 4), ("BS-8", 8)];
/// The part of the bandwidth of BS-8 that managed communication used in the paper.
const PART: f64 = 0.63;

pub(in crate::reproduce) fn clock_ticks(scale: &Scale) -> Result<Findings, ReproduceError> {
    let bench = Bench::new(Topics::new(scale)?)?;
    let mut runs = Vec::new();
    for (name, clocks) in TICKS {
        runs.push((name, bench.run(Mode { clocks, ..BS }, scale.passes)?));
    }
    let of_most = runs[3].1.bytes_per_pass / bench.exchange;
    let managed = Mode { clocks: 1, managed: Some((PART * of_most, RelativeMagnitude)) };
    runs.push(("MC-RM", bench.run(managed, scale.passes)?));
    let target = converged(&runs[0].1);
    let seconds: Vec<_> =
        runs.iter().map(|(name, course)| (*name, course.reaches(target).map(|point| point.seconds))).collect();
    let sent: Vec<_> =
        runs.iter().map(|(name, course)| (*name, Some(course.bytes_per_pass / bench.exchange))).collect();
    let (against_most, spent) = (times(seconds[4].1, seconds[3].1), times(sent[4].1, sent[3].1));
    let found = format!(
        "Virtual seconds to a log-likelihood of {:.3} a token: {}; exchanges sent in a pass: {}. With {:.0} % of the \
         bandwidth of BS-8, managed communication takes {:.0} % of its time. A clock here is a part of the words, so that \
         updates are sent once a pass whatever its clocks, and only rows as often as there are clocks.",
        -target,
        list(&seconds, " s"),
        list(&sent, ""),
        spent * 100.0,
        against_most * 100.0
    );
    let holds = spent <= PART * 1.05 && against_most < 1.0 && times(sent[3].1, sent[0].1) >= 4.0;
    let curves = runs.iter().map(|(name, course)| course.series(name, |point| point.seconds, |loss| -loss)).collect();
    let dots = sent.iter().zip(&seconds).filter_map(|((name, sent), (_, seconds))| {
        Some(Series { name: (*name).to_owned(), points: vec![((*sent)?, (*seconds)?)] })
    });
    let panels = vec![
        panel("topic model", "virtual seconds", "log-likelihood per token", curves),
        panel("to the target", "exchanges sent in a pass", "virtual seconds", dots.collect()),
    ];
    Ok(Findings { found, holds, panels })
}
