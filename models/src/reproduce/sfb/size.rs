//! Time to a fixed objective by the size of the model: the paper's figure 5.

use super::super::{Findings, ReproduceError, Scale};
use super::{Bench, EPOCHS, Exchange, ROUNDING, panel};
use crate::mlr::factors::Config;

/// How many times as soon factors have to be at the largest model; the paper has 4.4 on 28 nodes.
const ENOUGH: f64 = 3.0;
/// Sizes of models as parts of the largest.
const PARTS: [u32; 4] = [8, 4, 2, 1];

pub(in crate::reproduce) fn model_size(scale: &Scale) -> Result<Findings, ReproduceError> {
    let largest = Bench::classes_max(scale);
    let (mut factors, mut matrix, mut list) = (Vec::new(), Vec::new(), Vec::new());
    let (mut gain, mut chosen, mut apart) = (0.0, String::new(), 0.0f64);
    for classes in PARTS.map(|part| (largest / part).max(2)) {
        let bench = Bench::new(scale, classes)?;
        let by_factors = bench.run(Exchange::Factors, &bench.config())?;
        let by_matrix = bench.run(Exchange::Matrix, &bench.config())?;
        apart = apart.max((by_factors.loss() / by_matrix.loss() - 1.0).abs());
        factors.push((f64::from(classes), by_factors.seconds()));
        matrix.push((f64::from(classes), by_matrix.seconds()));
        gain = by_matrix.seconds() / by_factors.seconds();
        list.push(format!("{gain:.1} times as soon with {classes} classes"));
        chosen = bench.chosen();
    }
    // The same on machines of one core, where there is little to gain by sending less.
    let one = Bench { cores: 1.0, ..Bench::new(scale, largest)? };
    let config = one.config();
    let one_gain = one.run(Exchange::Matrix, &config)?.seconds() / one.run(Exchange::Factors, &config)?.seconds();
    // And with rounded errors, where sfb-scaling has them.
    let wide = Bench::wide(scale)?;
    let exact = wide.run(Exchange::Matrix, &wide.config())?;
    let rounded =
        wide.run(Exchange::Factors, &Config { rounding: Some(ROUNDING), epochs: EPOCHS + 2, ..wide.config() })?;
    let rounded_gain = rounded.reaches(exact.loss()).map_or(0.0, |seconds| exact.seconds() / seconds);
    let found = format!(
        "Factors reach the held-out loss of {EPOCHS} passes {}; on nodes of one core it would be {one_gain:.1} times for the \
         largest, because every node subtracts the pairs of all. The losses differ by at most {:.2} %. The largest: {chosen}. \
         With errors below {ROUNDING} rounded, as in sfb-scaling, the loss of the full matrix is reached {rounded_gain:.1} times \
         as soon: {}.",
        list.join(", "),
        100.0 * apart,
        wide.chosen()
    );
    let series = vec![("factors".to_owned(), factors), ("full matrix".to_owned(), matrix)];
    let panels = vec![panel("time to one objective", "classes", "virtual seconds", series)];
    Ok(Findings { found, holds: gain >= ENOUGH && rounded_gain >= ENOUGH && apart < 0.01, panels })
}
