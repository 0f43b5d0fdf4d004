//! The hot loops of logistic regression by columns: sums over a column, the change of a column's rows, and the loss.
//!
//! Every row `i` of a block's copy is a pair: the slope `r_i` of the row's loss in its margin, and its curvature `d_i`.
//! While a block is worked on, the slopes follow the quadratic model: `r_i` grows by `d_i` times the change of the margin.
//!
//! There is one body of each loop, compiled for several instruction sets, of which the best is chosen at run time.
//! Products and sums are never fused, so that all of them give the same bits.

use super::columns::Column;
use crate::machine::{self, Loop};

/// The slope of a row's loss and its curvature.
pub(super) type Pair = [f32; 2];

/// Curvatures are not taken for smaller than this, so that steps stay finite where the loss is nearly straight.
const CURVATURE_MIN: f64 = 1e-5;
/// Nor for smaller than this part of the slope: a change of the margin is read off that of the slope, which is rounded.
const CURVATURE_PER_SLOPE: f64 = 4e-3;

/// Sums of single precision are taken over so many entries at a time.
const RUN: usize = 64;
/// Independent sums, so that none waits for the one before.
const WAYS: usize = 4;

/// The slope of the loss in the weight of a column, and its curvature.
#[inline]
pub(super) fn sums(pairs: &[Pair], column: Column<'_>) -> (f64, f64) {
    let (mut slope, mut curvature) = (0.0, 0.0);
    match column {
        Column::Same { rows, value } => {
            for run in rows.chunks(RUN) {
                let mut ways = [[0.0f32; 2]; WAYS];
                let groups = run.chunks_exact(WAYS);
                for (way, &row) in ways.iter_mut().zip(groups.remainder()) {
                    let pair = pairs[row as usize];
                    *way = pair;
                }
                for group in groups {
                    for (way, &row) in ways.iter_mut().zip(group) {
                        let pair = pairs[row as usize];
                        way[0] += pair[0];
                        way[1] += pair[1];
                    }
                }
                slope += f64::from((ways[0][0] + ways[1][0]) + (ways[2][0] + ways[3][0]));
                curvature += f64::from((ways[0][1] + ways[1][1]) + (ways[2][1] + ways[3][1]));
            }
            let value = f64::from(value);
            (value * slope, value * value * curvature)
        }
        Column::Each { rows, values } => {
            for (run, values) in rows.chunks(RUN).zip(values.chunks(RUN)) {
                let mut ways = [[0.0f32; 2]; WAYS];
                for (group, values) in run.chunks(WAYS).zip(values.chunks(WAYS)) {
                    for ((way, &row), &value) in ways.iter_mut().zip(group).zip(values) {
                        let pair = pairs[row as usize];
                        way[0] += pair[0] * value;
                        way[1] += pair[1] * value * value;
                    }
                }
                slope += f64::from((ways[0][0] + ways[1][0]) + (ways[2][0] + ways[3][0]));
                curvature += f64::from((ways[0][1] + ways[1][1]) + (ways[2][1] + ways[3][1]));
            }
            (slope, curvature)
        }
    }
}

/// The slopes of a column's rows after its weight changed by `change`.
#[inline]
pub(super) fn change(pairs: &mut [Pair], column: Column<'_>, change: f64) {
    match column {
        Column::Same { rows, value } => {
            let change = (change * f64::from(value)) as f32;
            for &row in rows {
                let pair = &mut pairs[row as usize];
                pair[0] += pair[1] * change;
            }
        }
        Column::Each { rows, values } => {
            let change = change as f32;
            for (&row, &value) in rows.iter().zip(values) {
                let pair = &mut pairs[row as usize];
                pair[0] += pair[1] * (value * change);
            }
        }
    }
}

/// The slope alone, from the slopes of the rows.
#[inline]
pub(super) fn slope(slopes: &[f32], column: Column<'_>) -> f64 {
    let mut sum = 0.0;
    match column {
        Column::Same { rows, value } => {
            for run in rows.chunks(RUN) {
                let mut ways = [0.0f32; WAYS];
                for group in run.chunks(WAYS) {
                    ways.iter_mut().zip(group).for_each(|(way, &row)| *way += slopes[row as usize]);
                }
                sum += f64::from((ways[0] + ways[1]) + (ways[2] + ways[3]));
            }
            f64::from(value) * sum
        }
        Column::Each { rows, values } => {
            for (run, values) in rows.chunks(RUN).zip(values.chunks(RUN)) {
                let mut ways = [0.0f32; WAYS];
                for (group, values) in run.chunks(WAYS).zip(values.chunks(WAYS)) {
                    for ((way, &row), &value) in ways.iter_mut().zip(group).zip(values) {
                        *way += slopes[row as usize] * value;
                    }
                }
                sum += f64::from((ways[0] + ways[1]) + (ways[2] + ways[3]));
            }
            sum
        }
    }
}

/// Adds a column, times a weight, to the margins of its rows.
pub(super) fn add(margins: &mut [f64], column: Column<'_>, weight: f64) {
    match column {
        Column::Same { rows, value } => {
            let change = f64::from(value) * weight;
            rows.iter().for_each(|&row| margins[row as usize] += change);
        }
        Column::Each { rows, values } => {
            for (&row, &value) in rows.iter().zip(values) {
                margins[row as usize] += f64::from(value) * weight;
            }
        }
    }
}

/// Rows one after another, in which the margins change; all slices are of one length.
pub(super) struct Rows<'a> {
    /// One for examples of the class whose probability is predicted, zero for others.
    pub(super) targets: &'a [f32],
    pub(super) margins: &'a mut [f64],
    /// What the last step has added to the margins.
    pub(super) steps: &'a mut [f64],
    pub(super) slopes: &'a mut [f32],
    /// The copies that blocks are worked on with.
    pub(super) copies: Vec<&'a mut [Pair]>,
}

/// By how much margins change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// Not at all.
    None,
    /// As the copies say together.
    Taken,
    /// By this part of the last step, which may be negative.
    Part(f64),
}

/// What came of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tally {
    /// The sum of the losses after it.
    pub(super) loss: f64,
    /// How fast the sum of the losses changed along it, at its start.
    pub(super) along: f64,
}

/// Rows worked on together, so that what is between the loops stays in the nearest cache.
const TILE: usize = 256;
/// Rows whose `1 + e` are multiplied before one logarithm is taken of the product: at most `2^32`.
const FACTORS: usize = 32;

/// Changes margins, and computes the losses, slopes and curvatures there.
pub(super) fn advance(rows: &mut Rows<'_>, step: Step) -> Tally {
    machine::run(Advance { rows, step })
}

struct Advance<'a, 'b> {
    rows: &'a mut Rows<'b>,
    step: Step,
}

impl Loop for Advance<'_, '_> {
    type Output = Tally;

    #[inline(always)]
    fn run(self) -> Tally {
        let mut tally = Tally::default();
        let count = self.rows.margins.len();
        for start in (0..count).step_by(TILE) {
            tile(self.rows, start..(start + TILE).min(count), self.step, &mut tally);
        }
        tally
    }
}

#[inline(always)]
fn tile(rows: &mut Rows<'_>, range: std::ops::Range<usize>, step: Step, tally: &mut Tally) {
    let count = range.len();
    let margins = &mut rows.margins[range.clone()];
    let slopes = &mut rows.slopes[range.clone()];
    let steps = &mut rows.steps[range.clone()];
    let targets = &rows.targets[range.clone()];
    match step {
        Step::None => {}
        Step::Taken => {
            steps.fill(0.0);
            for copy in &rows.copies {
                for ((step, slope), pair) in steps.iter_mut().zip(&*slopes).zip(&copy[range.clone()]) {
                    *step += f64::from((pair[0] - slope) / pair[1]);
                }
            }
            let mut along = [0.0f64; TILE];
            for (((along, margin), step), slope) in along.iter_mut().zip(&mut *margins).zip(&*steps).zip(&*slopes) {
                *along = f64::from(*slope) * step;
                *margin += step;
            }
            tally.along += sum(&along);
        }
        Step::Part(part) => {
            for (margin, step) in margins.iter_mut().zip(&*steps) {
                *margin += part * step;
            }
        }
    }
    let (mut losses, mut grown, mut curvatures) = ([0.0f64; TILE], [1.0f64; TILE], [0.0f32; TILE]);
    for index in 0..count {
        let (margin, target) = (margins[index], targets[index]);
        let e = exp_of_negative(-margin.abs());
        let inverse = 1.0 / (1.0 + e);
        losses[index] = margin.max(0.0) - f64::from(target) * margin;
        grown[index] = 1.0 + e;
        let probability = if margin >= 0.0 { inverse } else { e * inverse };
        let slope = probability - f64::from(target);
        slopes[index] = slope as f32;
        let least = CURVATURE_MIN.max(CURVATURE_PER_SLOPE * slope.abs());
        curvatures[index] = (e * inverse * inverse).max(least) as f32;
    }
    let mut products = [1.0f64; TILE / FACTORS];
    for factors in grown.chunks_exact(products.len()) {
        products.iter_mut().zip(factors).for_each(|(product, factor)| *product *= factor);
    }
    tally.loss += sum(&losses) + products.iter().map(|product| product.ln()).sum::<f64>();
    for copy in &mut rows.copies {
        for ((pair, slope), curvature) in copy[range.clone()].iter_mut().zip(&*slopes).zip(&curvatures) {
            *pair = [*slope, *curvature];
        }
    }
}

/// The sum of a tile's numbers, in an order that vectors can follow.
#[inline(always)]
fn sum(numbers: &[f64; TILE]) -> f64 {
    let mut ways = [0.0; 2 * WAYS];
    for group in numbers.chunks_exact(ways.len()) {
        ways.iter_mut().zip(group).for_each(|(way, number)| *way += number);
    }
    ways.iter().sum()
}

/// `exp(x)` for an `x` of zero or less, to twelve digits: a power of two times a polynomial.
#[inline(always)]
fn exp_of_negative(x: f64) -> f64 {
    /// Adding it rounds to a whole number, which the last bits of the sum then hold.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    const INVERSE_FACTORIALS: [f64; 11] = [
        1.0,
        1.0,
        1.0 / 2.0,
        1.0 / 6.0,
        1.0 / 24.0,
        1.0 / 120.0,
        1.0 / 720.0,
        1.0 / 5040.0,
        1.0 / 40320.0,
        1.0 / 362_880.0,
        1.0 / 3_628_800.0,
    ];
    let x = x.max(-700.0);
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let rest = (x - whole * LN2_HIGH) - whole * LN2_LOW;
    let polynomial = INVERSE_FACTORIALS.iter().rev().fold(0.0, |sum, factor| sum * rest + factor);
    let power = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52));
    polynomial * power
}
