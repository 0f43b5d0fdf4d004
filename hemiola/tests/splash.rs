//! Splash against a naive interpreter of its operators, on random programs; and what becomes of a pass that fails.

use hemiola::splash::{
    self, Array, DataSet, Degree, Elements, Local, OfElement, Options, Scalar, Shared, Sparse, SplashError,
};
use hemiola::{Deployment, Error, sim};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Mutex;

const ARRAY: usize = 70;
const SPARSE: u64 = 1 << 33;

/// What an element does to the variables when it is processed. Places below `ARRAY` are of the array, the next of the
/// sparse one, and the last is the scalar.
#[derive(Debug, Clone, Copy)]
enum Step {
    Add(usize, f32),
    Delay(usize, f32),
    Multiply(Kind, f64),
    /// Adds a part of what a place holds to another, as an algorithm that looks at its variables does.
    Move(usize, usize, f32),
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Scalar,
    Array,
    Sparse,
}

const PLACES: usize = ARRAY + 10;

fn kind(place: usize) -> Kind {
    match place {
        0..ARRAY => Kind::Array,
        place if place == PLACES - 1 => Kind::Scalar,
        _ => Kind::Sparse,
    }
}

fn sparse_index(place: usize) -> u64 {
    (place - ARRAY) as u64 * (SPARSE / 10)
}

#[derive(Clone, Copy)]
struct Handles {
    t: Scalar,
    w: Array,
    s: Sparse,
}

fn declare() -> (Shared, Handles) {
    let mut shared = Shared::default();
    let handles = Handles { t: shared.scalar("t", 0.5), w: shared.array("w", ARRAY), s: shared.sparse("s", SPARSE) };
    shared.edit(handles.w).iter_mut().enumerate().for_each(|(i, w)| *w = i as f32 / 64.0);
    (shared, handles)
}

fn get(shared: &Shared, handles: Handles, place: usize) -> f64 {
    match kind(place) {
        Kind::Scalar => shared.get(handles.t),
        Kind::Array => f64::from(shared.get(handles.w.at(place))),
        Kind::Sparse => f64::from(shared.get(handles.s.at(sparse_index(place)))),
    }
}

fn process(steps: &[Step], weight: f64, shared: &mut Shared, handles: Handles) {
    let Handles { t, w, s } = handles;
    let add = |shared: &mut Shared, place: usize, delta: f32| match kind(place) {
        Kind::Scalar => shared.add(t, f64::from(delta)),
        Kind::Array => shared.add(w.at(place), delta),
        Kind::Sparse => shared.add(s.at(sparse_index(place)), delta),
    };
    for step in steps {
        match *step {
            Step::Add(place, delta) => add(shared, place, weight as f32 * delta),
            Step::Delay(place, delta) => match kind(place) {
                Kind::Scalar => shared.delayed_add(t, weight * f64::from(delta)),
                Kind::Array => shared.delayed_add(w.at(place), weight as f32 * delta),
                Kind::Sparse => shared.delayed_add(s.at(sparse_index(place)), weight as f32 * delta),
            },
            Step::Multiply(Kind::Scalar, factor) => shared.multiply(t, factor),
            Step::Multiply(Kind::Array, factor) => shared.multiply(w, factor),
            Step::Multiply(Kind::Sparse, factor) => shared.multiply(s, factor),
            Step::Move(from, to, part) => {
                let delta = (get(shared, handles, from) * f64::from(part)) as f32;
                add(shared, to, delta);
            }
        }
    }
}

/// Appendix A word for word: every variable has Γ, Δ and T, changed by every operator, and formula (9) combines them.
#[derive(Clone)]
struct Naive {
    values: Vec<f64>,
    delayed: BTreeMap<usize, Vec<(usize, f64)>>,
}

impl Naive {
    fn new() -> Self {
        let mut values: Vec<f64> = (0..PLACES).map(|i| if i < ARRAY { i as f64 / 64.0 } else { 0.0 }).collect();
        values[PLACES - 1] = 0.5;
        Self { values, delayed: BTreeMap::new() }
    }

    /// What the workers of a round do, each with the elements it processes, in order.
    fn round(&mut self, parts: &[Vec<usize>], elements: &[Vec<Step>]) {
        let m = parts.len() as f64;
        let mut new = vec![0.0; PLACES];
        let mut declared = self.delayed.clone();
        for part in parts {
            let (mut gamma, mut delta, mut t) = (vec![1.0; PLACES], vec![0.0; PLACES], vec![0.0; PLACES]);
            for &element in part {
                for (place, late) in declared.remove(&element).unwrap_or_default() {
                    t[place] += late;
                }
                for step in &elements[element] {
                    let value = |place: usize| gamma[place] * self.values[place] + delta[place] + t[place];
                    match *step {
                        Step::Add(place, by) => delta[place] += m * f64::from(by),
                        Step::Delay(place, by) => {
                            declared.entry(element).or_default().push((place, m * f64::from(by) / m));
                        }
                        Step::Multiply(what, factor) => {
                            for place in (0..PLACES).filter(|place| kind(*place) as u8 == what as u8) {
                                gamma[place] *= factor;
                                delta[place] *= factor;
                                t[place] *= factor;
                            }
                        }
                        Step::Move(from, to, share) => delta[to] += value(from) * f64::from(share),
                    }
                }
            }
            for place in 0..PLACES {
                new[place] += (gamma[place] * self.values[place] + delta[place]) / m + t[place];
            }
        }
        self.values = new;
        self.delayed = declared;
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = 0..PLACES;
    let kinds = prop_oneof![Just(Kind::Scalar), Just(Kind::Array), Just(Kind::Sparse)];
    // Small factors often enough that a scale leaves its bounds, and zero.
    let factor = prop_oneof![4 => 0.5..1.1f64, 2 => Just(1e-6), 1 => Just(0.0), 1 => Just(-0.5)];
    let step = prop_oneof![
        3 => (place.clone(), -1.0..1.0f32).prop_map(|(place, delta)| Step::Add(place, delta)),
        2 => (place.clone(), -1.0..1.0f32).prop_map(|(place, delta)| Step::Delay(place, delta)),
        1 => (kinds, factor).prop_map(|(kind, factor)| Step::Multiply(kind, factor)),
        1 => (place.clone(), place, -0.3..0.3f32).prop_map(|(from, to, part)| Step::Move(from, to, part)),
    ];
    prop::collection::vec(step, 0..6)
}

type Program = Vec<Vec<Step>>;
/// What a worker has before and after a pass.
type States = (Vec<u8>, Vec<u8>);

fn agree(shared: &Shared, handles: Handles, naive: &Naive) {
    let largest = naive.values.iter().fold(1.0, |a: f64, b| a.max(b.abs()));
    for (place, expected) in naive.values.iter().enumerate() {
        let found = get(shared, handles, place);
        assert!((found - expected).abs() < 1e-5 * largest, "place {place}: {found}, and {expected} naively");
    }
}

/// Runs a program and says what the variables hold, in which order each worker processed its elements, and the bits.
fn interpret(deployment: &Deployment, elements: &Program, options: &Options, passes: usize) -> (Shared, Vec<u8>) {
    let (shared, handles) = declare();
    let trained = splash::run(deployment, options, &shared, elements, |set: &mut DataSet<Vec<Step>, u32>| {
        for pass in 0..passes {
            set.run(|steps, weight, shared, local| {
                assert_eq!(*local.get(), pass as u32, "what belongs to an element stays with it");
                local.set(pass as u32 + 1);
                process(steps, weight, shared, handles);
            })?;
        }
        Ok(Vec::new())
    });
    let trained = trained.expect("a program that runs");
    let bytes = trained.shared.to_bytes();
    (trained.shared, bytes)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, rng_seed: prop::test_runner::RngSeed::Fixed(6), ..ProptestConfig::default() })]

    #[test]
    fn formula_9_agrees_with_a_naive_interpreter(
        elements in prop::collection::vec(steps(), 1..40),
        workers in 1..5u32,
        passes in 1..4usize,
        synchronisations in 1..4u32,
    ) {
        let options = Options { shuffle: false, synchronisations, ..Options::default() };
        let (shared, bytes) = interpret(&Deployment::threads(workers), &elements, &options, passes);
        let (n, m, k) = (elements.len(), workers as usize, synchronisations as usize);
        let mut naive = Naive::new();
        for _ in 0..passes {
            for block in 0..k {
                let part = |worker: usize| {
                    let (from, to) = (n * worker / m, n * (worker + 1) / m);
                    (from + (to - from) * block / k..from + (to - from) * (block + 1) / k).collect()
                };
                naive.round(&(0..m).map(part).collect::<Vec<Vec<usize>>>(), &elements);
            }
        }
        agree(&shared, declare().1, &naive);
        let simulated = interpret(&Deployment::sim(workers), &elements, &options, passes).1;
        prop_assert_eq!(bytes, simulated, "the same bits on simulated nodes");
    }
}

#[test]
fn one_seed_and_degree_give_one_outcome() {
    let elements: Program =
        (0..300).map(|i| vec![Step::Move(i % 60, i % 71, 0.1), Step::Delay(i % 80, 0.25)]).collect();
    let run = |deployment: &Deployment, seed, degree| {
        let options = Options { seed, degree: Degree::Fixed(degree), synchronisations: 3, ..Options::default() };
        interpret(deployment, &elements, &options, 3).1
    };
    let threads = Deployment::threads(4);
    let once = run(&threads, 1, 3);
    assert_eq!(once, run(&threads, 1, 3));
    assert_eq!(once, run(&Deployment::sim(4), 1, 3));
    assert_ne!(once, run(&threads, 2, 3));
    assert_ne!(once, run(&threads, 1, 4));
    assert_eq!(run(&threads, 1, 4), run(&Deployment::sim(4), 1, 4));
}

/// Four workers in pairs: on one process, on two that have a pair each, and on four that have half a pair each.
#[test]
fn replicas_added_up_by_a_tree_have_the_same_bits_on_every_driver_and_need_fewer_bytes() {
    let elements: Program = (0..300).map(|i| vec![Step::Move(i % 60, i % 71, 0.1), Step::Add(i % 80, 0.3)]).collect();
    let nodes = |nodes, workers_per_node| Deployment::Sim(sim::Config { workers_per_node, ..sim::Config::new(nodes) });
    let options = |fan_in| Options { fan_in, synchronisations: 3, ..Options::default() };
    let run = |deployment: &Deployment, fan_in| interpret(deployment, &elements, &options(fan_in), 2);
    let (tree, bits) = run(&Deployment::threads(4), 2);
    for deployment in [nodes(2, 2), nodes(4, 1), nodes(1, 4)] {
        assert_eq!(run(&deployment, 2).1, bits, "{deployment:?}");
    }
    let (plain, _) = run(&Deployment::threads(4), 1);
    let handles = declare().1;
    for place in 0..PLACES {
        let (tree, plain) = (get(&tree, handles, place), get(&plain, handles, place));
        assert!((tree - plain).abs() <= 1e-5 * plain.abs().max(1.0), "place {place}: {tree}, plainly {plain}");
    }
    let sent = |fan_in| {
        let mut shared = Shared::default();
        let w = shared.array("w", 10_000);
        let program = |set: &mut DataSet<f32, ()>| {
            set.run(|x, _, shared, _| shared.edit(w).iter_mut().for_each(|w| *w += x))?;
            Ok(Vec::new())
        };
        let trained = splash::run(&nodes(2, 4), &options(fan_in), &shared, &vec![1.0; 16], program).unwrap();
        trained.outcome.splits.iter().map(|split| split.bytes_sent).sum::<u64>()
    };
    let (one_by_one, added_up) = (sent(1), sent(4));
    assert!(2 * added_up < one_by_one, "{added_up} bytes, and {one_by_one} without a tree");
}

#[test]
fn one_worker_computes_what_a_plain_loop_does_to_the_bit() {
    let elements: Program = (0..200).map(|i| vec![Step::Move(i % 60, i % 71, 0.1), Step::Add(i % 80, 0.3)]).collect();
    let (mut plain, handles) = declare();
    (0..2).for_each(|_| elements.iter().for_each(|steps| process(steps, 1.0, &mut plain, handles)));
    let options = Options { shuffle: false, synchronisations: 3, ..Options::default() };
    assert_eq!(interpret(&Deployment::threads(1), &elements, &options, 2).1, plain.to_bytes());
}

#[test]
fn multiplying_an_array_agrees_with_multiplying_its_numbers_after_a_million_operations() {
    let (mut shared, mut random) = (Shared::default(), 1u64);
    let (w, s) = (shared.array("w", 100), shared.sparse("s", 100));
    let mut eager = vec![0.0f64; 100];
    for operation in 0..1_000_000u32 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (index, unit) = ((random >> 33) as usize % 100, f64::from((random >> 40) as u32) / f64::from(1u32 << 24));
        if operation % 8 == 0 {
            // Mostly shrinking, so that the product of all is far below what a number can hold.
            let factor = 0.9 + 0.15 * unit;
            shared.multiply(w, factor);
            shared.multiply(s, factor);
            eager.iter_mut().for_each(|x| *x *= factor);
        } else {
            let delta = unit as f32 - 0.5;
            shared.add(w.at(index), delta);
            shared.add(s.at(index as u64), delta);
            eager[index] += f64::from(delta);
        }
    }
    let largest = eager.iter().fold(0.0f64, |a, b| a.max(b.abs()));
    for (index, eager) in eager.iter().enumerate() {
        let (dense, sparse) = (f64::from(shared.get(w.at(index))), f64::from(shared.get(s.at(index as u64))));
        assert!((dense - eager).abs() < 1e-6 * largest, "{index}: {dense} lazily, {eager} eagerly");
        assert!((sparse - eager).abs() < 1e-6 * largest, "{index}: {sparse} lazily, {eager} eagerly");
    }
}

/// The failure of a pass over 100 elements, the second if their weights are all right, and what each worker's variables and
/// elements hold before and after it, for the workers that come to it.
/// What momentum adds is an add of every replica, so that a synchronisation makes the mean of replicas that went on.
#[test]
fn smoothed_arrays_go_on_by_a_part_of_what_the_last_synchronisation_changed_and_have_a_mean() {
    let elements: Vec<f32> = (0..24).map(|i| ((i * 7) % 11) as f32 - 4.0).collect();
    let options = Options { shuffle: false, synchronisations: 2, ..Options::default() };
    for workers in [1, 2, 4] {
        let mut shared = Shared::default();
        let w = shared.array("w", 40);
        shared.edit(w)[3] = 8.0;
        shared.smooth(w, 0.75);
        let process = |&x: &f32, weight: f64, shared: &mut Shared, _: &mut Local<()>| {
            shared.multiply(w, 0.75);
            shared.add(w.at(3), weight as f32 * x);
        };
        let program = |set: &mut DataSet<f32, ()>| {
            (0..3).try_for_each(|_| set.run(process).map(drop))?;
            Ok(set.shared().mean(w)[3].to_le_bytes().to_vec())
        };
        let trained = splash::run(&Deployment::threads(workers), &options, &shared, &elements, program).unwrap();

        let m = f64::from(workers);
        let part = elements.len() / workers as usize;
        let (mut value, mut moved, mut average) = (8.0, 0.0, 0.0);
        for round in 0..6 {
            let start = value + if workers > 1 { 0.75 * moved } else { 0.0 };
            let block = |worker: usize| &elements[worker * part..][..part][round % 2 * part / 2..][..part / 2];
            let after = |worker| block(worker).iter().fold(start, |value, x| 0.75 * value + m * f64::from(*x));
            let mean = (0..workers as usize).map(after).sum::<f64>() / m;
            moved = if round > 0 { mean - value } else { 0.0 };
            value = mean;
            average += (value - average) * 4.0 / (round + 4) as f64;
        }
        let expected = if workers > 1 { average } else { value };
        for result in &trained.outcome.results {
            let found = f64::from(f32::from_le_bytes(*result.first_chunk().unwrap()));
            assert!((found - expected).abs() < 1e-4, "{workers} workers: a mean of {found}, not {expected}");
        }
        let found = f64::from(trained.shared.get(w.at(3)));
        assert!((found - value).abs() < 1e-4, "{workers} workers: {found}, not {value}");
    }
}

fn failing(
    deployment: &Deployment,
    second: impl Fn(usize, &mut Shared, &mut Local<u32>) + Sync,
    weight: Option<OfElement<'_, usize, f64>>,
) -> (String, Vec<States>) {
    let (shared, Handles { t, w, .. }) = declare();
    let all: Vec<usize> = (0..100).collect();
    let elements = Elements { weight, ..Elements::from(&all) };
    let states = Mutex::new(Vec::new());
    let options = Options { synchronisations: 5, ..Options::default() };
    let failed = splash::run(deployment, &options, &shared, elements, |set: &mut DataSet<usize, u32>| {
        if weight.is_none() {
            set.run(|&i, weight, shared, local| {
                shared.add(t, weight);
                shared.delayed_add(w.at(i % ARRAY), 1.0);
                local.set(i as u32);
            })?;
        }
        let state = |set: &DataSet<usize, u32>| {
            let locals = set.map(|_, _, local| *local.get());
            [set.shared().to_bytes(), format!("{locals:?}").into_bytes()].concat()
        };
        let before = state(set);
        let failed = set.run(|&i, weight, shared, local| {
            shared.add(t, weight);
            local.set(7);
            second(i, shared, local);
        });
        let error = failed.expect_err("the pass fails");
        let again = set.run(|_, _, _, _| {}).expect_err("it does not go on");
        assert_eq!(again.to_string(), SplashError::Failed.to_string());
        states.lock().expect("nobody panics with it").push((before, state(set)));
        Err(error)
    });
    (failed.expect_err("it fails").to_string(), states.into_inner().expect("nobody panics with it"))
}

#[test]
fn a_pass_that_fails_names_the_element_and_is_not_applied() {
    let w = declare().1.w;
    let applied = "; nothing of this pass is applied";
    for deployment in [Deployment::threads(3), Deployment::sim(3), Deployment::threads(1)] {
        let check = |(sentence, states): (String, Vec<States>), expected: &str| {
            assert_eq!(sentence, format!("{expected}{applied}"));
            assert!(states.iter().all(|(before, after)| before == after), "{expected}: something was applied");
            assert!(!states.is_empty(), "the worker whose element it is has come to it");
        };
        let panics = |i: usize, _: &mut Shared, _: &mut Local<u32>| assert!(i != 61, "the element is odd");
        check(failing(&deployment, panics, None), "process panicked at element 61: the element is odd");
        let breaks = |i: usize, shared: &mut Shared, _: &mut Local<u32>| {
            shared.add(w.at(i % ARRAY), if i == 17 { f32::NAN } else { 1.0 });
        };
        check(failing(&deployment, breaks, None), "process made 'w' infinite or not a number at element 17");
        let grows = |i: usize, shared: &mut Shared, _: &mut Local<u32>| {
            if i == 40 {
                shared.multiply(w, f64::INFINITY);
            }
            assert!(shared.get(w.at(1)).is_finite(), "an element that comes later minds");
        };
        check(failing(&deployment, grows, None), "process made 'w' infinite or not a number at element 40");
        let negative = |i: &usize| if *i == 5 { -2.0 } else { 1.0 };
        let weights = "the weight of element 5 is -2, and weights are numbers from zero up";
        check(failing(&deployment, |_, _, _| {}, Some(&negative)), weights);
    }
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let refused = |options: &Options, declare: &dyn Fn(&mut Shared)| {
        let mut shared = Shared::default();
        declare(&mut shared);
        let run = splash::run(&Deployment::threads(2), options, &shared, &vec![1, 2], |_: &mut DataSet<i32, ()>| {
            Err(Error::program("it was run"))
        });
        run.expect_err("refused").to_string()
    };
    let twice = |shared: &mut Shared| {
        shared.scalar("t", 0.0);
        shared.array("t", 1);
    };
    let options = Options::default();
    assert_eq!(refused(&options, &twice), "two variables are called 't'");
    let empty = |shared: &mut Shared| {
        shared.array("w", 0);
    };
    assert_eq!(refused(&options, &empty), "variable 'w' has no numbers");
    let large = Options { degree: Degree::Fixed(3), ..options };
    assert_eq!(refused(&large, &|_| {}), "a degree of 3 needs as many workers, and there are 2");
    let never = Options { synchronisations: 0, ..options };
    assert_eq!(refused(&never, &|_| {}), "a pass needs at least one synchronisation");
}

#[test]
fn lines_become_elements_or_are_refused_by_their_number() {
    let read = |text: &str| splash::read(text.as_bytes(), str::parse::<i32>);
    assert_eq!(read("1\n2\n"), Ok(vec![1, 2]));
    let error = read("1\nx\n").expect_err("not a number");
    assert_eq!(error.to_string(), "line 2: invalid digit found in string");
}

#[test]
fn elements_are_mapped_reduced_and_visited_wherever_they_are() {
    let mut shared = Shared::default();
    let t = shared.scalar("t", 2.0);
    let elements: Vec<f64> = (1..=10).map(f64::from).collect();
    let options = Options::default();
    let mut observed = Vec::new();
    let program = |set: &mut DataSet<f64, f64>| {
        set.foreach(|x, shared, local| local.set(x * shared.get(t)));
        let sum = set.map(|_, _, local| *local.get()).iter().sum::<f64>();
        set.report(&[sum, set.len() as f64]);
        let smallest_and_largest =
            set.reduce(|x, shared, local| [shared.get(t) * x, *local.get()], |a, b| [a[0].min(b[0]), a[1].max(b[1])])?;
        Ok(format!("{smallest_and_largest:?}").into_bytes())
    };
    let trained = splash::run_observed(&Deployment::threads(3), &options, &shared, &elements, program, &mut |seen| {
        observed.push((seen.index, seen.values.clone()));
    });
    let trained = trained.expect("it runs");
    assert_eq!(trained.outcome.results, [b"Some([2.0, 20.0])"; 3]);
    assert_eq!(observed, [(0, vec![110.0, 10.0])]);
}
