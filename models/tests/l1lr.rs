//! L1-regularised logistic regression: the optima of other programs, the same bits for any number of threads, and kept.

use hemiola_models::Names;
use hemiola_models::examples::Examples;
use hemiola_models::l1lr::blocks::Cut;
use hemiola_models::l1lr::model::L1lrModel;
use hemiola_models::l1lr::path::{lambda_max, lambdas};
use hemiola_models::l1lr::prox::Penalty;
use hemiola_models::l1lr::solver::{Config, Fit, Solver};
use hemiola_models::l1lr::stopping::Stopping;
use serde_json::json;

/// Numbers that any language makes alike.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / (1u64 << 24) as f64
    }
}

/// Sparse examples of two classes: a third of the features has the value 1, and another third matters.
fn examples(rows: usize, features: u32, density: f64, seed: u64) -> Examples {
    let mut chance = Chance(seed);
    let mut classes = Names::default();
    ["-1", "1"].iter().for_each(|class| assert!(classes.intern(class).is_ok()));
    let mut examples = Examples::new(classes);
    for _ in 0..rows {
        let (mut entries, mut score) = (Vec::new(), -0.3);
        for feature in 0..features {
            if chance.next() < density {
                let value = if feature % 3 == 0 { 1.0 } else { (chance.next() * 2.0 - 0.5) as f32 };
                let weight = if feature % 3 == 1 { 2.0 - 0.4 * f64::from(feature % 10) } else { 0.0 };
                score += weight * f64::from(value);
                entries.push((feature, value));
            }
        }
        let label = u32::from(chance.next() < 1.0 / (1.0 + (-score).exp()));
        examples.push(label, entries);
    }
    examples
}

fn fit(examples: &Examples, penalty: Penalty, workers: u32, config: &Config) -> Fit {
    let strict = Stopping { tolerance: 1e-11, violation: 1e-7, passes: 2000 };
    let config = Config { stopping: strict, ..config.clone() };
    Solver::new(examples, 1, penalty.l1, workers, &config).fit(penalty, |_| {}).unwrap()
}

#[test]
fn optima_are_those_that_other_programs_find() {
    let examples = examples(500, 60, 0.4, 17);
    // Measured on these examples: LIBLINEAR 2.50 (-s 6, -e 1e-8), and scikit-learn 1.9.1's saga (tol 1e-10).
    for (program, l1, l2, bias, objective, nonzeros) in [
        ("LIBLINEAR", 0.01, 0.0, false, 0.579_058_879_8, 22),
        ("LIBLINEAR", 0.001, 0.0, false, 0.445_206_509_4, 57),
        ("saga", 0.01, 0.0, true, 0.579_010_222_0, 22),
        ("saga", 0.001, 0.0, true, 0.445_193_276_7, 56),
        ("saga, elastic net", 0.01, 0.01, false, 0.601_827_807_6, 26),
    ] {
        let penalty = Penalty { l1, l2, non_negative: false };
        // A delay keeps from nothing but speed; blocks of one's own neither.
        let by_group = Cut::ByGroup((0..60).map(|feature| feature / 9).collect());
        for (delay, blocks) in [(0, Cut::Automatic), (3, Cut::Into(16)), (1, by_group)] {
            let config = Config { bias, delay: Some(delay), blocks, ..Config::default() };
            let found = fit(&examples, penalty, 1, &config);
            let relative = found.objective / objective - 1.0;
            assert!(relative.abs() < 1e-6, "{program}, l1 {l1}, bias {bias}, delay {delay}: {relative:e} away");
            assert_eq!((found.weights.len(), found.converged), (nonzeros, true), "{program}, l1 {l1}");
        }
    }
}

#[test]
fn the_bits_are_the_same_for_any_number_of_threads() {
    // More features than are solved for together, and entries enough that threads are used.
    let examples = examples(60_000, 4000, 0.012, 3);
    assert!(examples.entries() > 2 << 20);
    let penalty = Penalty { l1: 2e-4, l2: 0.0, non_negative: false };
    let stopping = Stopping { tolerance: 1e-4, violation: 1e-3, passes: 12 };
    for delay in [0, 2] {
        let config = Config { delay: Some(delay), stopping, ..Config::default() };
        let fits = [1, 2, 3]
            .map(|workers| Solver::new(&examples, 1, penalty.l1, workers, &config).fit(penalty, |_| {}).unwrap());
        assert_eq!(fits[0], fits[1], "delay {delay}");
        assert_eq!(fits[0], fits[2], "delay {delay}");
        assert!(fits[0].objective < 0.69);
    }
}

#[test]
fn weights_below_zero_are_left_out_where_they_are_not_allowed() {
    let examples = examples(400, 30, 0.4, 9);
    let penalty = Penalty { l1: 0.005, l2: 0.0, non_negative: true };
    let found = fit(&examples, penalty, 1, &Config::default());
    assert!(found.converged && !found.weights.is_empty() && found.weights.iter().all(|(_, weight)| *weight > 0.0));
    let free = fit(&examples, Penalty { non_negative: false, ..penalty }, 1, &Config::default());
    assert!(free.objective < found.objective && free.weights.iter().any(|(_, weight)| *weight < 0.0));
}

#[test]
fn a_path_ends_where_a_fit_from_zero_does() {
    let examples = examples(400, 50, 0.4, 21);
    let (config, least) = (Config::default(), 0.003);
    let strict = Config { stopping: Stopping { tolerance: 1e-11, violation: 1e-7, passes: 2000 }, ..config.clone() };
    let mut solver = Solver::new(&examples, 1, least, 1, &strict);
    let mut nonzeros = Vec::new();
    let mut last = None;
    for l1 in lambdas(lambda_max(&examples, 1, true), least, 8) {
        let found = solver.fit(Penalty { l1, ..Penalty::NONE }, |_| {}).unwrap();
        nonzeros.push(found.weights.len());
        last = Some(found);
    }
    let direct = fit(&examples, Penalty { l1: least, ..Penalty::NONE }, 1, &config);
    assert!((last.expect("a path").objective / direct.objective - 1.0).abs() < 1e-7);
    assert!(nonzeros[0] < 5 && nonzeros[7] > nonzeros[0], "{nonzeros:?}");
}

#[test]
fn examples_that_say_nothing_are_no_trouble() {
    let mut classes = Names::default();
    ["0", "1"].iter().for_each(|class| assert!(classes.intern(class).is_ok()));
    let mut examples = Examples::new(classes);
    // No features at all, one class far more often than the other.
    (0..50).for_each(|row| examples.push(u32::from(row == 0), []));
    let penalty = Penalty { l1: 0.1, ..Penalty::NONE };
    let found = fit(&examples, penalty, 2, &Config::default());
    assert!((found.bias - (1.0f64 / 49.0).ln()).abs() < 1e-3 && found.weights.is_empty());
    let none = fit(&examples, penalty, 2, &Config { bias: false, ..Config::default() });
    assert_eq!((none.bias, none.weights.len()), (0.0, 0));
    // A feature that gives the class away needs the penalty to stay finite.
    let mut classes = Names::default();
    ["0", "1"].iter().for_each(|class| assert!(classes.intern(class).is_ok()));
    let mut told = Examples::new(classes);
    (0..50).for_each(|row| told.push(row % 2, [(7, if row % 2 == 1 { 1e6 } else { -1e-6 })]));
    let found = fit(&told, Penalty { l1: 1e-9, ..Penalty::NONE }, 1, &Config::default());
    assert!(found.objective.is_finite() && found.weights.iter().all(|(_, weight)| weight.is_finite()));
}

#[test]
fn a_model_is_kept_and_predicts_the_same() {
    let examples = examples(200, 20, 0.4, 2);
    let found = fit(&examples, Penalty { l1: 0.01, ..Penalty::NONE }, 1, &Config::default());
    let model = L1lrModel::new(&examples, &found, json!({ "lambda": 0.01 }), json!({}));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("some.model");
    model.save(&path).unwrap();
    let loaded = L1lrModel::load(&path).unwrap();
    assert_eq!(loaded, model);
    let evaluation = loaded.evaluate(&examples);
    assert!((evaluation.loss - found.loss).abs() < 1e-6 && evaluation.accuracy > 0.6);
    assert!(evaluation.auc.unwrap() > 0.7);
    assert_eq!(loaded.nonzeros().count(), found.weights.len());
}
