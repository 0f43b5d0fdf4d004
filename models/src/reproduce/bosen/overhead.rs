//! What managed communication costs and gains in time: the paper's figures 6 and 7.

use super::super::{Findings, ReproduceError, Scale, Series};
use super::bandwidth::{factorisation_passes, runs};
use super::{BS, Bench, Course, Factorisation, Problem, Topics, list, panel, times};
use hemiola::Priority::{Random, RelativeMagnitude};

/// What a run may send, in exchanges a pass, and what it took.
struct Cost {
    name: &'static str,
    budget: f64,
    /// As a multiple of what a pass took under bounded staleness alone.
    time: f64,
    /// As exchanges a pass.
    sent: f64,
}

fn costs<P: Problem>(
    bench: &Bench<P>,
    budgets: &[(&'static str, f64)],
    passes: u32,
) -> Result<Vec<Cost>, ReproduceError> {
    let alone = bench.run(BS, passes)?;
    let cost = |name, megabits, course: &Course| Cost {
        name,
        budget: bench.exchanges(megabits),
        time: course.seconds_per_pass / alone.seconds_per_pass,
        sent: course.bytes_per_pass / bench.exchange,
    };
    let mut costs = vec![cost("BS", 0.0, &alone)];
    for &(name, megabits) in budgets {
        costs.push(cost(name, megabits, &bench.run(bench.mc(megabits, Random), passes)?));
    }
    Ok(costs)
}

pub(in crate::reproduce) fn overhead(scale: &Scale) -> Result<Findings, ReproduceError> {
    let passes = (scale.passes / 10).max(4);
    let factorisation = Bench::new(Factorisation::new(scale)?)?;
    let mf = costs(&factorisation, &[("MC-200-R", 200.0), ("MC-800-R", 800.0)], passes)?;
    let mut topics = Bench::new(Topics::new(scale)?)?;
    // What is sent while workers wait for one another to evaluate is not part of any pass.
    topics.problem.evaluate_every = passes;
    let lda = costs(&topics, &[("MC-320-R", 320.0), ("MC-640-R", 640.0)], passes)?;
    let (mut panels, mut sentences, mut holds) = (Vec::new(), Vec::new(), true);
    for (model, costs) in [("matrix factorisation", &mf), ("topic model", &lda)] {
        let one = |cost: &Cost| {
            let of_budget = if cost.budget > 0.0 { format!(" of {:.1}", cost.budget) } else { String::new() };
            format!("{} {:.2}{of_budget} exchanges and {:.2} times as long", cost.name, cost.sent, cost.time)
        };
        sentences.push(format!("{model}: {}", costs.iter().map(one).collect::<Vec<_>>().join(", ")));
        // Short messages have more headers and acknowledgements than are counted.
        holds &= costs[1..].iter().all(|cost| (0.6..=1.02).contains(&(cost.sent / cost.budget)) && cost.time <= 1.12);
        let series = |name: &str, y: fn(&Cost) -> f64| Series {
            name: name.to_owned(),
            points: costs.iter().map(|cost| (cost.budget, y(cost))).collect(),
        };
        let title = format!("{model}, 0 is bounded staleness alone");
        let both = vec![series("time, multiple of BS", |cost| cost.time), series("exchanges sent", |cost| cost.sent)];
        panels.push(panel(&title, "budget, exchanges a pass", "in a pass", both));
    }
    let found = format!(
        "In a pass, {}. Simulated nodes spend no time on messages themselves, so only waiting is seen; \
         `make bench NAME=overhead` measures what they cost over tcp.",
        sentences.join("; ")
    );
    Ok(Findings { found, holds, panels })
}

pub(in crate::reproduce) fn time(scale: &Scale) -> Result<Findings, ReproduceError> {
    let bench = Bench::new(Factorisation::new(scale)?)?;
    let modes = [
        ("BS", BS),
        ("MC-200-R", bench.mc(200.0, Random)),
        ("MC-800-R", bench.mc(800.0, Random)),
        ("MC-800-RM", bench.mc(800.0, RelativeMagnitude)),
    ];
    let courses = runs(&bench, &modes, factorisation_passes(scale))?;
    let target = bench.problem.target();
    let seconds = |(name, course): &(&'static str, Course)| (*name, course.reaches(target).map(|point| point.seconds));
    let reached: Vec<_> = courses.iter().map(seconds).collect();
    let faster = times(reached[0].1, reached[3].1);
    let found = format!(
        "Virtual seconds to a loss of {target:.3}: {}; MC-800-RM is {faster:.2} times as fast as BS. {}.",
        list(&reached, " s"),
        bench.describe(800.0)
    );
    let series = courses.iter().map(|(name, course)| course.series(name, |point| point.seconds, |loss| loss)).collect();
    let panels = vec![panel("matrix factorisation", "virtual seconds", "squared loss", series)];
    Ok(Findings { found, holds: faster >= 2.0, panels })
}
