//! One gradient step and one prediction written as the formulas are, which the kernels are tested against.

use super::kernel::Step;
use super::{Biases, Model, Rating, factor_columns, row_width};

/// The prediction for one user and one item: `mean + bias(user) + bias(item) + L(user) · R(item)`.
fn predict(user: &[f32], item: &[f32], model: &Model) -> f64 {
    let product: f64 = (0..model.rank).map(|k| f64::from(user[k]) * f64::from(item[k])).sum();
    let bias = factor_columns(model.rank);
    match model.biases {
        Biases::Without => f64::from(model.mean) + product,
        Biases::With => f64::from(model.mean) + f64::from(user[bias]) + f64::from(item[bias]) + product,
    }
}

/// `L += g (e R - l2 L)`, `R += g (e L - l2 R)` and the same for the biases, whose other side is one; returns `e²`.
fn step(user: &mut [f32], item: &mut [f32], value: f32, model: &Model, step: &Step) -> f64 {
    let error = f64::from(value) - predict(user, item, model);
    let (bias, seen) = (factor_columns(model.rank), factor_columns(model.rank) + 1);
    let (rate, l2, damping) = (f64::from(step.rate), f64::from(step.l2), f64::from(step.damping));
    let user_rate = rate / (1.0 + damping * f64::from(user[seen])).sqrt();
    let item_rate = rate / (1.0 + damping * f64::from(item[seen])).sqrt();
    for k in 0..model.rank {
        let (left, right) = (f64::from(user[k]), f64::from(item[k]));
        user[k] = (left + user_rate * (error * right - l2 * left)) as f32;
        item[k] = (right + item_rate * (error * left - l2 * right)) as f32;
    }
    if model.biases == Biases::With {
        let (left, right) = (f64::from(user[bias]), f64::from(item[bias]));
        user[bias] = (left + user_rate * (error - l2 * left)) as f32;
        item[bias] = (right + item_rate * (error - l2 * right)) as f32;
    }
    if damping > 0.0 {
        user[seen] = (f64::from(user[seen]) + error * error) as f32;
        item[seen] = (f64::from(item[seen]) + error * error) as f32;
    }
    error * error
}

/// Steps of a whole block, in order; returns the sum of the squared errors.
pub(super) fn sgd_block(users: &mut [f32], items: &mut [f32], ratings: &[Rating], model: &Model, hyper: &Step) -> f64 {
    let width = row_width(model.rank);
    let mut total = 0.0;
    for rating in ratings {
        let user = &mut users[rating.user as usize * width..][..width];
        let item = &mut items[rating.item as usize * width..][..width];
        total += step(user, item, rating.value, model, hyper);
    }
    total
}

/// What the ratings of a user contribute to the gradients of the items, less what they contributed before; the sum of the
/// squared errors.
pub(super) fn gradient_block(
    [before, now]: [&[f32]; 2],
    (items, gradients): (&[f32], &mut [f32]),
    ratings: &[Rating],
    errors: &mut [f32],
    model: &Model,
) -> f64 {
    let (width, bias) = (row_width(model.rank), factor_columns(model.rank));
    let mut total = 0.0;
    for (rating, kept) in ratings.iter().zip(errors) {
        let place = rating.item as usize * width;
        let error = f64::from(rating.value) - predict(now, &items[place..][..width], model);
        let slope = |before: f32, now: f32| (f64::from(*kept) * f64::from(before) - error * f64::from(now)) as f32;
        for k in 0..model.rank {
            gradients[place + k] += slope(before[k], now[k]);
        }
        if model.biases == Biases::With {
            gradients[place + bias] += slope(1.0, 1.0);
        }
        *kept = error as f32;
        total += error * error;
    }
    total
}

/// The squared error of predictions cut to the bounds.
pub(super) fn squared_error(
    users: &[f32],
    items: &[f32],
    ratings: &[Rating],
    model: &Model,
    bounds: (f32, f32),
) -> f64 {
    let width = row_width(model.rank);
    let error = |rating: &Rating| {
        let (user, item) =
            (&users[rating.user as usize * width..][..width], &items[rating.item as usize * width..][..width]);
        f64::from(rating.value) - predict(user, item, model).clamp(f64::from(bounds.0), f64::from(bounds.1))
    };
    ratings.iter().map(|rating| error(rating).powi(2)).sum()
}
