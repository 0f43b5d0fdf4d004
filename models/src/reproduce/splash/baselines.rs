//! The batch methods that the Splash paper compares with, written plainly: L-BFGS, alternating least squares, and
//! variational inference.

use crate::corpus::Corpus;
use crate::curvature::{Curvature, difference, dot};
use crate::examples::Examples;
use crate::lda::likelihood::ln_gamma;
use crate::mf::solve::Solver;
use crate::mf::{Biases, Rating};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The mean loss of softmax regression on examples and, where there is room for it, its gradient; `weights` has a row of
/// classes for each feature and one for the bias.
pub(super) fn softmax_loss(examples: &Examples, weights: &[f64], mut gradient: Option<&mut [f64]>) -> f64 {
    let classes = examples.classes.len();
    let share = 1.0 / examples.len() as f64;
    let bias = weights.len() - classes;
    let mut loss = 0.0;
    for number in 0..examples.len() {
        let (example, label) = (examples.example(number), examples.labels()[number] as usize);
        let entries =
            || example.columns.iter().zip(example.values).map(|(&f, &x)| (f as usize * classes, f64::from(x)));
        let mut scores = weights[bias..].to_vec();
        for (row, x) in entries() {
            scores.iter_mut().zip(&weights[row..]).for_each(|(score, w)| *score += x * w);
        }
        let greatest = scores.iter().copied().fold(f64::MIN, f64::max);
        let sum: f64 = scores.iter().map(|score| (score - greatest).exp()).sum();
        loss += share * (greatest + sum.ln() - scores[label]);
        if let Some(gradient) = gradient.as_deref_mut() {
            let error = |c: usize| share * ((scores[c] - greatest).exp() / sum - f64::from(u8::from(c == label)));
            let errors: Vec<f64> = (0..classes).map(error).collect();
            for (row, x) in entries().chain([(bias, 1.0)]) {
                gradient[row..row + classes].iter_mut().zip(&errors).for_each(|(g, error)| *g += x * error);
            }
        }
    }
    loss
}

/// How many steps L-BFGS remembers.
const MEMORY: usize = 10;

/// Minimises the loss by L-BFGS with a line search that halves; after every iteration `visit` is shown how many times the
/// examples were gone through so far, and the weights.
pub(super) fn lbfgs(examples: &Examples, iterations: u32, mut visit: impl FnMut(u32, &[f64])) {
    let mut weights = vec![0.0; (examples.features() + 1) * examples.classes.len()];
    let evaluate = |weights: &[f64]| {
        let mut gradient = vec![0.0; weights.len()];
        (softmax_loss(examples, weights, Some(&mut gradient)), gradient)
    };
    let (mut loss, mut gradient) = evaluate(&weights);
    let mut passes = 1;
    let mut curvature = Curvature::new(MEMORY);
    for _ in 0..iterations {
        let steepest: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let direction = curvature.inverse_times(&steepest);
        let slope = dot(&direction, &gradient);
        let mut length = 1.0;
        // Thirty halvings are a billionth of the step: then there is nowhere to go.
        for _ in 0..30 {
            let tried: Vec<f64> = weights.iter().zip(&direction).map(|(w, d)| w + length * d).collect();
            let (tried_loss, tried_gradient) = evaluate(&tried);
            passes += 1;
            if tried_loss <= loss + 1e-4 * length * slope {
                curvature.learn(difference(&tried, &weights), difference(&tried_gradient, &gradient));
                (weights, loss, gradient) = (tried, tried_loss, tried_gradient);
                break;
            }
            length *= 0.5;
        }
        visit(passes, &weights);
    }
}

/// Factorises ratings by alternating least squares, without biases; after every pass `visit` is shown the mean squared
/// error of `test`, predictions being held within the range of ratings.
pub(super) fn als(
    (train, test): (&[Rating], &[Rating]),
    (users, items): (u32, u32),
    (rank, l2, passes): (usize, f32, u32),
    seed: u64,
    mut visit: impl FnMut(f64),
) {
    let (mean, range) = crate::ratings::Ratings::mean_and_range(train.iter().copied());
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut user_rows = vec![0.0f32; users as usize * rank];
    let scale = 1.0 / (1u64 << 32) as f32;
    let mut item_rows: Vec<f32> = (0..items as usize * rank).map(|_| random.next_u32() as f32 * scale).collect();
    let by = |key: fn(&Rating) -> u32, other: fn(&Rating) -> u32, count: u32| {
        let mut lists = vec![Vec::new(); count as usize];
        train.iter().for_each(|rating| lists[key(rating) as usize].push((other(rating), rating.value - mean)));
        lists
    };
    let (by_user, by_item) = (by(|r| r.user, |r| r.item, users), by(|r| r.item, |r| r.user, items));
    let mut solver = Solver::default();
    let mut solve = |lists: &[Vec<(u32, f32)>], others: &[f32], rows: &mut [f32]| {
        for (list, row) in lists.iter().zip(rows.chunks_exact_mut(rank)) {
            let known: Vec<f32> =
                list.iter().flat_map(|(other, _)| &others[*other as usize * rank..][..rank]).copied().collect();
            let targets: Vec<f32> = list.iter().map(|(_, target)| *target).collect();
            row.iter_mut()
                .zip(solver.solve(&known, &targets, rank, Biases::Without, l2))
                .for_each(|(x, found)| *x = *found as f32);
        }
    };
    for _ in 0..passes {
        solve(&by_user, &item_rows, &mut user_rows);
        solve(&by_item, &user_rows, &mut item_rows);
        let error = |rating: &Rating| {
            let row = |rows: &'_ [f32], number: u32| rows[number as usize * rank..][..rank].to_vec();
            let (u, v) = (row(&user_rows, rating.user), row(&item_rows, rating.item));
            let score = mean + u.iter().zip(&v).map(|(u, v)| u * v).sum::<f32>();
            f64::from(score.clamp(range.0, range.1) - rating.value)
        };
        visit(test.iter().map(|rating| error(rating).powi(2)).sum::<f64>() / test.len() as f64);
    }
}

/// Rounds in which variational inference finds the topics of a document.
pub(super) const ROUNDS: usize = 10;

/// Fits a topic model by batch variational inference (Blei, Ng and Jordan, with a prior of words as Hoffman's); after
/// every pass `visit` is shown how often each word is expected in each topic.
pub(super) fn variational(
    corpus: &Corpus,
    (topics, alpha, beta): (usize, f32, f32),
    passes: u32,
    seed: u64,
    mut visit: impl FnMut(&[f64]),
) {
    let (alpha, beta) = (f64::from(alpha), f64::from(beta));
    let words = corpus.vocabulary.len();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let tokens = corpus.tokens() as f64 / (words * topics) as f64;
    let mut counts: Vec<f64> =
        (0..words * topics).map(|_| tokens * 2.0 * (f64::from(random.next_u32()) / f64::from(u32::MAX))).collect();
    for _ in 0..passes {
        let mut totals = vec![0.0; topics];
        counts.chunks_exact(topics).for_each(|row| totals.iter_mut().zip(row).for_each(|(sum, n)| *sum += n));
        let normal: Vec<f64> = totals.iter().map(|total| digamma(total + beta * words as f64)).collect();
        let chances: Vec<f64> =
            counts.iter().enumerate().map(|(at, n)| (digamma(n + beta) - normal[at % topics]).exp()).collect();
        let mut next = vec![0.0; counts.len()];
        for document in (0..corpus.documents()).map(|document| corpus.document(document)) {
            let mut expected = vec![document.len() as f64 / topics as f64; topics];
            for round in 0..ROUNDS {
                let share: Vec<f64> = expected.iter().map(|n| digamma(n + alpha).exp()).collect();
                expected.fill(0.0);
                for &word in document {
                    let row = &chances[word as usize * topics..][..topics];
                    let sum: f64 = row.iter().zip(&share).map(|(chance, share)| chance * share).sum();
                    for topic in 0..topics {
                        let part = row[topic] * share[topic] / sum.max(f64::MIN_POSITIVE);
                        expected[topic] += part;
                        if round + 1 == ROUNDS {
                            next[word as usize * topics + topic] += part;
                        }
                    }
                }
            }
        }
        counts = next;
        visit(&counts);
    }
}

/// The derivative of the logarithm of the gamma function, by its recurrence and then a central difference, where that is
/// accurate to nine digits.
fn digamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let step = 1e-4 * x;
    sum + (ln_gamma(x + step) - ln_gamma(x - step)) / (2.0 * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digamma_is_right() {
        for (x, expected) in
            [(1.0, -0.577_215_664_9), (0.5, -1.963_510_026_0), (10.0, 2.251_752_589_1), (1e4, 9.210_290_4)]
        {
            assert!((digamma(x) - expected).abs() < 1e-6, "{x}: {} instead of {expected}", digamma(x));
        }
    }
}
