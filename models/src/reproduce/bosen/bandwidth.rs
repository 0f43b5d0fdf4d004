//! How many passes a target takes, by how much may be sent: the paper's figure 4.

use super::super::{Findings, ReproduceError, Scale};
use super::{BS, Bench, Course, Factorisation, Mode, Problem, Topics, list, panel, times};
use crate::team::share_out;
use hemiola::Priority::{Random, RelativeMagnitude};

/// The loss that counts as converged where a run settles: all but half a hundredth of the way from its first evaluation to
/// the mean of its last quarter, because a sampler's likelihood trembles.
pub(super) fn converged(course: &Course) -> f64 {
    let first = course.points.first().map_or(f64::NAN, |point| point.loss);
    let last = &course.points[course.points.len() * 3 / 4..];
    let settled = last.iter().map(|point| point.loss).sum::<f64>() / last.len() as f64;
    settled + 0.005 * (first - settled)
}

/// Runs in several modes of the same name and budget as in the paper, all at once.
pub(super) fn runs<P: Problem + Sync>(
    bench: &Bench<P>,
    modes: &[(&'static str, Mode)],
    passes: u32,
) -> Result<Vec<(&'static str, Course)>, ReproduceError> {
    let run = |(name, mode)| Ok((name, bench.run(mode, passes)?));
    share_out(modes.len(), modes.to_vec(), run).into_iter().collect()
}

/// A run that has reached a loss, or has gone on for `most` passes. Half of them are enough for most.
fn run_to<P: Problem>(bench: &Bench<P>, mode: Mode, loss: f64, most: u32) -> Result<Course, ReproduceError> {
    let course = bench.run(mode, (most / 2).max(1))?;
    if course.reaches(loss).is_some() { Ok(course) } else { bench.run(mode, most) }
}

/// A sampler's passes to a target differ from run to run by a fifth, and the mean of these by a thirtieth.
const REPEATS: u64 = 40;
/// The clocks with relative magnitude that are few enough, as a part of those with random order: the paper has 0.74.
const PRIORITISED_MAX: f64 = 0.85;

/// The clocks that each run took to a loss.
fn counts(runs: &[(&'static str, Course)], target: f64) -> Vec<(&'static str, Option<f64>)> {
    runs.iter().map(|(name, course)| (*name, course.reaches(target).map(|point| point.passes))).collect()
}

/// The mean of each mode's clocks, if it reached its target every time.
fn mean(repeats: Vec<Vec<(&'static str, Option<f64>)>>) -> Vec<(&'static str, Option<f64>)> {
    let count = repeats.len() as f64;
    let of = |mode: usize| repeats.iter().map(move |counts| counts[mode].1);
    let names = repeats[0].iter().enumerate();
    names.map(|(mode, (name, _))| (*name, of(mode).sum::<Option<f64>>().map(|sum| sum / count))).collect()
}

/// Passes over ratings.
pub(super) fn factorisation_passes(scale: &Scale) -> u32 {
    (scale.passes / 2).max(3)
}

/// Passes over documents: bounded staleness alone has to settle in them, as in the paper its 740 clocks to the target are
/// far into the tail of its course. After a third of these passes it is still on its way, and a target of that time is one
/// at which the gain of managed communication is only beginning to show.
fn topic_passes(scale: &Scale) -> u32 {
    3 * scale.passes
}

pub(in crate::reproduce) fn bandwidth(scale: &Scale) -> Result<Findings, ReproduceError> {
    let factorisation = Bench::new(Factorisation::new(scale)?)?;
    let modes = [
        ("BS", BS),
        ("MC-200-R", factorisation.mc(200.0, Random)),
        ("MC-800-R", factorisation.mc(800.0, Random)),
        ("MC-200-RM", factorisation.mc(200.0, RelativeMagnitude)),
    ];
    let mf = runs(&factorisation, &modes, factorisation_passes(scale))?;
    let mf_target = factorisation.problem.target();

    let repeat = |seed| -> Result<_, ReproduceError> {
        let topics = Bench::new(Topics::new(&Scale { seed, ..*scale })?)?;
        let passes = topic_passes(scale);
        let alone = topics.run(BS, passes)?;
        let target = converged(&alone);
        let mut courses = vec![("BS", alone)];
        for (name, mode) in [
            ("MC-320-R", topics.mc(320.0, Random)),
            ("MC-320-RM", topics.mc(320.0, RelativeMagnitude)),
            ("MC-640-R", topics.mc(640.0, Random)),
        ] {
            // Half of them are to be enough, and the rest show how far one is from that.
            courses.push((name, run_to(&topics, mode, target, passes * 2 / 3)?));
        }
        Ok((topics, courses, target))
    };
    let seeds: Vec<u64> = (0..REPEATS).map(|number| scale.seed.wrapping_add(number)).collect();
    let repeats = share_out(seeds.len(), seeds, repeat).into_iter().collect::<Result<Vec<_>, _>>()?;
    let (topics, lda, _) = &repeats[0];

    let of_mf = counts(&mf, mf_target);
    let of_lda = mean(repeats.iter().map(|(_, courses, target)| counts(courses, *target)).collect());
    let parts = [(1, &of_mf), (2, &of_mf), (1, &of_lda), (3, &of_lda)].map(|(mode, of)| times(of[mode].1, of[0].1));
    let prioritised = times(of_lda[2].1, of_lda[1].1);
    let order = if prioritised > PRIORITISED_MAX {
        " The order matters little because rows change about alike (see bosen-frequency)."
    } else {
        ""
    };
    let found = format!(
        "Clocks to a loss of {mf_target:.3} of factorisation on {} nodes: {}; at the smaller budget {:.0} % of bounded \
         staleness alone, at the larger {:.0} %. Clocks until topic models on {} nodes converge, the mean of {REPEATS} runs: \
         {}; at the smaller budget {:.0} %, at the larger {:.0} %, and with relative magnitude {:.0} % of random's.{order} \
         {}; {}.",
        factorisation.problem.nodes(),
        list(&of_mf, ""),
        parts[0] * 100.0,
        parts[1] * 100.0,
        topics.problem.nodes(),
        list(&of_lda, ""),
        parts[2] * 100.0,
        parts[3] * 100.0,
        prioritised * 100.0,
        factorisation.describe(200.0),
        topics.describe(320.0),
    );
    let holds = parts.into_iter().all(|part| part <= 0.5) && prioritised <= PRIORITISED_MAX;
    let mf_series = mf.iter().map(|(name, course)| course.series(name, |point| point.passes, |loss| loss)).collect();
    let lda_series = lda.iter().map(|(name, course)| course.series(name, |point| point.passes, |loss| -loss)).collect();
    let panels = vec![
        panel("matrix factorisation", "clock", "squared loss", mf_series),
        panel("topic model", "clock", "log-likelihood per token", lda_series),
    ];
    Ok(Findings { found, holds, panels })
}
