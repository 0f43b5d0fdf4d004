//! The hot loops of multiclass logistic regression: the gradient steps and the loss of a block of examples.
//!
//! There is one body of each loop, written so that the compiler turns it into vector instructions. It is compiled for
//! several instruction sets, of which the best the machine has is chosen at run time, and for common numbers of classes.
//! Products and sums are never fused, so that all of them give the same bits.
//!
//! A step costs about `7 · nonzeros · width` floating-point operations: two for the scores, five for the update.

use super::row_width;
use crate::machine;
use hemiola::fetch;
use std::array::from_fn;

/// Floats are worked on in groups of this many, the width of an AVX register.
pub(crate) const LANES: usize = 8;
pub(crate) type Group = [f32; LANES];

/// Examples whose columns name rows of a slab, from zero. The last entry of each is the bias.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// The class of each example.
    pub labels: &'a [u32],
    /// Where each example's entries end in `columns` and `values`.
    pub ends: &'a [usize],
    /// The row of each entry.
    pub columns: &'a [u32],
    /// The value of each entry.
    pub values: &'a [f32],
}

impl Block<'_> {
    fn range(&self, example: usize) -> std::ops::Range<usize> {
        let start = if example == 0 { 0 } else { self.ends[example - 1] };
        start..self.ends[example]
    }

    /// The rows and values of an example.
    pub(crate) fn entries(&self, example: usize) -> (&[u32], &[f32]) {
        let range = self.range(example);
        (&self.columns[range.clone()], &self.values[range])
    }
}

/// Asks for the entries of an example that is soon to be read; after the first cache lines the machine foresees the others.
#[inline(always)]
pub(crate) fn fetch_entries(columns: &[u32], values: &[f32]) {
    const FIRST_LINES: usize = 6;
    fetch(columns.as_ptr(), FIRST_LINES);
    fetch(values.as_ptr(), FIRST_LINES);
}

/// How a row is changed by an example that has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowStep {
    /// What the gradient is multiplied by.
    pub rate: f32,
    /// What the row is multiplied by before.
    pub keep: f32,
    /// What the squared gradient is multiplied by when it is added to those that the row has seen; zero to add none.
    pub seen: f32,
}

/// What came of going through a block.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// The sum of the losses.
    pub loss: f64,
    /// How many examples were of the class with the greatest score.
    pub correct: u64,
}

/// Takes a gradient step for each `batch` examples, in order, and returns the losses met on the way. Should fewer be left
/// at the end, their step is shorter in proportion, so that every example counts the same.
///
/// `rows` are whole rows of [`row_width`] floats; `steps` has one entry for each.
///
/// # Panics
/// If an example names a row or a class that is not there.
pub fn sgd_block(rows: &mut [f32], steps: &[RowStep], block: Block<'_>, classes: usize, batch: usize) -> Tally {
    dispatch(classes, Sgd { rows, steps, block, batch })
}

/// The losses of a block.
///
/// # Panics
/// As [`sgd_block`].
pub fn evaluate(rows: &[f32], block: Block<'_>, classes: usize) -> Tally {
    dispatch(classes, Evaluate { rows, block })
}

/// By how much the probabilities of a block's examples are wrong: these, less 1 at the label, into `out`, a row of
/// [`row_width`] floats for each.
///
/// # Panics
/// As [`sgd_block`].
pub fn errors(rows: &[f32], block: Block<'_>, classes: usize, out: &mut Vec<f32>) -> Tally {
    out.resize(block.labels.len() * row_width(classes), 0.0);
    dispatch(classes, Errors { rows, block, out })
}

/// The probability of every class for one example, into `out`, and what it adds to a tally if `label` is its class.
///
/// # Panics
/// As [`sgd_block`].
pub fn probabilities(rows: &[f32], columns: &[u32], values: &[f32], label: u32, out: &mut [f32]) -> Tally {
    dispatch(out.len(), Probabilities { rows, columns, values, label, out })
}

/// A loop over examples, compiled once for each instruction set and common number of groups in a row.
pub(crate) trait Loop {
    /// What comes of it.
    type Output;

    /// `GROUPS` is the number of groups in a row, or zero if it is known at run time only.
    fn run<const GROUPS: usize>(self, classes: usize) -> Self::Output;
}

pub(super) fn dispatch<L: Loop>(classes: usize, work: L) -> L::Output {
    machine::run(ByGroups { groups: row_width(classes) / LANES, classes, work })
}

/// A loop over rows of so many groups.
pub(crate) struct ByGroups<L> {
    pub(crate) groups: usize,
    pub(crate) classes: usize,
    pub(crate) work: L,
}

impl<L: Loop> machine::Loop for ByGroups<L> {
    type Output = L::Output;

    #[inline(always)]
    fn run(self) -> L::Output {
        match self.groups {
            1 => self.work.run::<1>(self.classes),
            2 => self.work.run::<2>(self.classes),
            3 => self.work.run::<3>(self.classes),
            4 => self.work.run::<4>(self.classes),
            _ => self.work.run::<0>(self.classes),
        }
    }
}

struct Sgd<'a> {
    rows: &'a mut [f32],
    steps: &'a [RowStep],
    block: Block<'a>,
    batch: usize,
}

impl Loop for Sgd<'_> {
    type Output = Tally;

    #[inline(always)]
    fn run<const GROUPS: usize>(self, classes: usize) -> Tally {
        let Self { rows, steps, block, batch } = self;
        let groups = row_width(classes) / LANES;
        let groups = if GROUPS == 0 { groups } else { GROUPS };
        let rows = rows.as_chunks_mut::<LANES>().0;
        let batch = batch.min(block.labels.len());
        let mut errors = vec![[0.0; LANES]; batch * groups];
        let share = 1.0 / batch as f32;
        let mut tally = Tally::default();
        let mut first = 0;
        while first < block.labels.len() {
            let count = batch.min(block.labels.len() - first);
            for (example, errors) in (first..first + count).zip(errors.chunks_exact_mut(groups)) {
                let range = block.range(example);
                scores::<GROUPS>(rows, &block.columns[range.clone()], &block.values[range], errors);
                tally.add(softmax(errors, classes, block.labels[example]));
                errors[block.labels[example] as usize / LANES][block.labels[example] as usize % LANES] -= 1.0;
            }
            for (example, errors) in (first..first + count).zip(errors.chunks_exact(groups)) {
                let range = block.range(example);
                update::<GROUPS>(
                    rows,
                    steps,
                    &block.columns[range.clone()],
                    &block.values[range],
                    errors,
                    classes,
                    share,
                );
            }
            first += count;
        }
        tally
    }
}

struct Evaluate<'a> {
    rows: &'a [f32],
    block: Block<'a>,
}

impl Loop for Evaluate<'_> {
    type Output = Tally;

    #[inline(always)]
    fn run<const GROUPS: usize>(self, classes: usize) -> Tally {
        let rows = self.rows.as_chunks::<LANES>().0;
        let mut scored = vec![[0.0; LANES]; row_width(classes) / LANES];
        let mut tally = Tally::default();
        for (example, &label) in self.block.labels.iter().enumerate() {
            let range = self.block.range(example);
            scores::<GROUPS>(rows, &self.block.columns[range.clone()], &self.block.values[range], &mut scored);
            tally.add(softmax(&mut scored, classes, label));
        }
        tally
    }
}

struct Errors<'a> {
    rows: &'a [f32],
    block: Block<'a>,
    out: &'a mut [f32],
}

impl Loop for Errors<'_> {
    type Output = Tally;

    #[inline(always)]
    fn run<const GROUPS: usize>(self, classes: usize) -> Tally {
        let Self { rows, block, out } = self;
        let rows = rows.as_chunks::<LANES>().0;
        let all = out.as_chunks_mut::<LANES>().0.chunks_exact_mut(row_width(classes) / LANES);
        let mut tally = Tally::default();
        for ((example, &label), errors) in block.labels.iter().enumerate().zip(all) {
            let (columns, values) = block.entries(example);
            scores::<GROUPS>(rows, columns, values, errors);
            tally.add(softmax(errors, classes, label));
            errors.as_flattened_mut()[label as usize] -= 1.0;
        }
        tally
    }
}

struct Probabilities<'a> {
    rows: &'a [f32],
    columns: &'a [u32],
    values: &'a [f32],
    label: u32,
    out: &'a mut [f32],
}

impl Loop for Probabilities<'_> {
    type Output = Tally;

    #[inline(always)]
    fn run<const GROUPS: usize>(self, classes: usize) -> Tally {
        let mut scored = vec![[0.0; LANES]; row_width(classes) / LANES];
        scores::<GROUPS>(self.rows.as_chunks::<LANES>().0, self.columns, self.values, &mut scored);
        let mut tally = Tally::default();
        tally.add(softmax(&mut scored, classes, self.label));
        self.out.copy_from_slice(&scored.as_flattened()[..classes]);
        tally
    }
}

impl Tally {
    #[inline(always)]
    fn add(&mut self, (loss, correct): (f64, bool)) {
        self.loss += loss;
        self.correct += u64::from(correct);
    }
}

/// The products of one example with the weights of every class. Even and odd entries are summed beside one another,
/// because an addition takes several cycles.
#[inline(always)]
pub(crate) fn scores<const GROUPS: usize>(rows: &[Group], columns: &[u32], values: &[f32], out: &mut [Group]) {
    if GROUPS == 0 {
        let groups = out.len();
        out.fill([0.0; LANES]);
        for (&column, &value) in columns.iter().zip(values) {
            add_scaled(out, &rows[column as usize * groups..][..groups], value);
        }
        return;
    }
    let mut sums = [[[0.0f32; LANES]; GROUPS]; 2];
    let (pairs, last) = columns.as_chunks::<2>();
    let (value_pairs, last_value) = values.as_chunks::<2>();
    for (pair, values) in pairs.iter().zip(value_pairs) {
        for side in 0..2 {
            add_scaled(&mut sums[side], &rows[pair[side] as usize * GROUPS..][..GROUPS], values[side]);
        }
    }
    for (&column, &value) in last.iter().zip(last_value) {
        add_scaled(&mut sums[0], &rows[column as usize * GROUPS..][..GROUPS], value);
    }
    for (group, out) in out.iter_mut().enumerate() {
        for lane in 0..LANES {
            out[lane] = sums[0][group][lane] + sums[1][group][lane];
        }
    }
}

#[inline(always)]
pub(crate) fn add_scaled(sums: &mut [Group], row: &[Group], value: f32) {
    for (sums, weights) in sums.iter_mut().zip(row) {
        for lane in 0..LANES {
            sums[lane] += value * weights[lane];
        }
    }
}

/// Moves the rows of one example against its gradient. Numbers are copied before they are changed, so that the compiler
/// knows them apart from the rows.
#[inline(always)]
fn update<const GROUPS: usize>(
    rows: &mut [Group],
    steps: &[RowStep],
    columns: &[u32],
    values: &[f32],
    errors: &[Group],
    classes: usize,
    share: f32,
) {
    let mut copy = [[0.0; LANES]; GROUPS];
    if GROUPS > 0 {
        copy.copy_from_slice(errors);
    }
    let groups = if GROUPS == 0 { errors.len() } else { GROUPS };
    let squared = sum_of_squares(errors);
    for (&column, &value) in columns.iter().zip(values) {
        let step = steps[column as usize];
        let row = &mut rows[column as usize * groups..][..groups];
        let gain = step.rate * value * share;
        let seen = row[classes / LANES][classes % LANES] + step.seen * value * value * squared;
        for group in 0..groups {
            let errors = if GROUPS == 0 { errors[group] } else { copy[group] };
            let old = row[group];
            row[group] = from_fn(|lane| old[lane] * step.keep - gain * errors[lane]);
        }
        if step.seen > 0.0 {
            row[classes / LANES][classes % LANES] = seen;
        }
    }
}

#[inline(always)]
fn sum_of_squares(groups: &[Group]) -> f32 {
    let mut sums = [0.0f32; LANES];
    for group in groups {
        for lane in 0..LANES {
            sums[lane] += group[lane] * group[lane];
        }
    }
    sums.iter().sum()
}

/// Turns scores into probabilities, with zeros behind the last class; the loss, and whether the label's score is greatest.
#[inline(always)]
pub(super) fn softmax(scores: &mut [Group], classes: usize, label: u32) -> (f64, bool) {
    // A class that is not there gets a score that no other is below, and no probability.
    scores.as_flattened_mut()[classes..].fill(f32::MIN);
    let label_score = scores.as_flattened()[label as usize];
    let greatest = greatest(scores);
    let mut sums = [0.0f32; LANES];
    for group in scores.iter_mut() {
        *group = exponentials(from_fn(|lane| group[lane] - greatest));
        sums = from_fn(|lane| sums[lane] + group[lane]);
    }
    let sum: f32 = sums.iter().sum();
    let share = 1.0 / sum;
    scores.as_flattened_mut().iter_mut().for_each(|probability| *probability *= share);
    (f64::from(greatest - label_score) + f64::from(sum).ln(), label_score == greatest)
}

/// The greatest of some scores.
#[inline(always)]
pub(crate) fn greatest(scores: &[Group]) -> f32 {
    let mut most = [f32::MIN; LANES];
    for group in scores {
        most = from_fn(|lane| greater(group[lane], most[lane]));
    }
    most.into_iter().fold(f32::MIN, greater)
}

/// The greater of two numbers; one instruction, where `max` also has to say what it makes of no number.
#[inline(always)]
pub(super) fn greater(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// `e^x` for `x ≤ 0`, within 2 units in the last place; zero below -87. It is here because the system's is a call for
/// every number, and gives other bits on other systems.
#[inline(always)]
pub(crate) fn exponential(x: f32) -> f32 {
    exponentials([x])[0]
}

/// As [`exponential`], every operation for all numbers at once.
#[inline(always)]
fn exponentials<const N: usize>(x: [f32; N]) -> [f32; N] {
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // Adding and taking away 1.5 · 2^23 rounds to a whole number.
    const ROUND: f32 = 12_582_912.0;
    let clipped: [f32; N] = from_fn(|lane| if x[lane] < -87.0 { -87.0 } else { x[lane] });
    let shifted: [f32; N] = from_fn(|lane| clipped[lane] * std::f32::consts::LOG2_E + ROUND);
    let whole: [f32; N] = from_fn(|lane| shifted[lane] - ROUND);
    let rest: [f32; N] = from_fn(|lane| clipped[lane] - whole[lane] * LN2_HIGH - whole[lane] * LN2_LOW);
    let mut series = [1.0 / 720.0; N];
    for factor in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        series = from_fn(|lane| series[lane] * rest[lane] + factor);
    }
    // The low bits of `shifted` are the whole number; it goes into the exponent.
    let power: [u32; N] = from_fn(|lane| (shifted[lane].to_bits() << 23).wrapping_add(1.0f32.to_bits()));
    from_fn(|lane| if x[lane] < -87.0 { 0.0 } else { series[lane] * f32::from_bits(power[lane]) })
}

#[cfg(test)]
mod tests {
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::{super::reference, *};

    const FEATURES: usize = 13;

    struct Case {
        labels: Vec<u32>,
        ends: Vec<usize>,
        columns: Vec<u32>,
        values: Vec<f32>,
        rows: Vec<f32>,
    }

    impl Case {
        fn new(classes: usize, seed: u64) -> Self {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut draw = move || f64::from(random.next_u32()) / f64::from(u32::MAX) * 2.0 - 1.0;
            let mut case = Self { labels: vec![], ends: vec![], columns: vec![], values: vec![], rows: vec![] };
            for _ in 0..50 {
                case.labels.push(((draw() + 1.0) * 0.4999 * classes as f64) as u32);
                for column in 0..FEATURES as u32 {
                    if draw() > 0.2 {
                        case.columns.push(column);
                        case.values.push(draw() as f32);
                    }
                }
                case.columns.push(FEATURES as u32);
                case.values.push(1.0);
                case.ends.push(case.columns.len());
            }
            case.rows = vec![0.0; (FEATURES + 1) * row_width(classes)];
            let rows = case.rows.chunks_mut(row_width(classes));
            rows.for_each(|row| row[..classes].iter_mut().for_each(|weight| *weight = draw() as f32));
            case
        }

        fn block(&self) -> Block<'_> {
            Block { labels: &self.labels, ends: &self.ends, columns: &self.columns, values: &self.values }
        }

        fn plain(&self) -> Vec<reference::Plain> {
            let example = |(number, &label): (usize, &u32)| {
                let range = self.block().range(number);
                let mut features = vec![0.0; FEATURES + 1];
                for (&column, &value) in self.columns[range.clone()].iter().zip(&self.values[range]) {
                    features[column as usize] = f64::from(value);
                }
                reference::Plain { label: label as usize, features }
            };
            self.labels.iter().enumerate().map(example).collect()
        }
    }

    fn weights(rows: &[f32], classes: usize) -> Vec<Vec<f64>> {
        rows.chunks(row_width(classes)).map(|row| row[..classes].iter().map(|&w| f64::from(w)).collect()).collect()
    }

    #[test]
    fn every_number_of_classes_has_the_losses_and_steps_of_the_reference() {
        for classes in (2..=34).chain([100, 255]) {
            let case = Case::new(classes, classes as u64);
            let (plain, before) = (case.plain(), weights(&case.rows, classes));
            let expected: f64 = plain.iter().map(|example| reference::loss(&before, example)).sum();
            let found = evaluate(&case.rows, case.block(), classes).loss;
            assert!((found - expected).abs() < 1e-5 * expected, "{classes} classes: {found} instead of {expected}");

            let step = RowStep { rate: 0.5, keep: 1.0, seen: 0.0 };
            let mut rows = case.rows.clone();
            sgd_block(&mut rows, &[step; FEATURES + 1], case.block(), classes, plain.len());
            let gradient = reference::gradient(&before, &plain, 0.0);
            for (feature, row) in weights(&rows, classes).iter().enumerate() {
                for class in 0..classes {
                    let expected = before[feature][class] - 0.5 * gradient[feature][class];
                    let found = row[class];
                    assert!((found - expected).abs() < 1e-5, "{classes} classes: {found} instead of {expected}");
                }
            }
            let mut out = vec![0.0; classes];
            let first = case.block().range(0);
            probabilities(&case.rows, &case.columns[first.clone()], &case.values[first], 0, &mut out);
            for (found, expected) in out.iter().zip(reference::probabilities(&before, &plain[0])) {
                assert!((f64::from(*found) - expected).abs() < 1e-6, "{classes} classes: {found}, not {expected}");
            }
        }
    }

    #[test]
    fn the_portable_path_gives_the_bits_of_the_best() {
        for classes in [2, 7, 8, 10, 20, 31, 40] {
            let case = Case::new(classes, 77);
            let step = RowStep { rate: 0.3, keep: 0.99, seen: 0.7 };
            for batch in [1, 7] {
                let (mut best, mut portable) = (case.rows.clone(), case.rows.clone());
                let best_tally = sgd_block(&mut best, &[step; FEATURES + 1], case.block(), classes, batch);
                let steps = [step; FEATURES + 1];
                let work = Sgd { rows: &mut portable, steps: &steps, block: case.block(), batch };
                assert_eq!(
                    machine::Loop::run(ByGroups { groups: row_width(classes) / LANES, classes, work }),
                    best_tally,
                    "{classes} classes"
                );
                assert_eq!(portable, best, "{classes} classes");
            }
        }
    }

    #[test]
    fn exponentials_are_close() {
        for tenth in 0..=880 {
            let x = -0.1 * tenth as f32;
            let (found, expected) = (f64::from(exponential(x)), f64::from(x).exp());
            assert!((found - expected).abs() <= 4e-7 * expected + 1e-37, "e^{x}: {found} instead of {expected}");
        }
        assert_eq!((exponential(f32::MIN), exponential(0.0)), (0.0, 1.0));
    }
}
