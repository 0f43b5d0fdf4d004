//! The degree of parallelism that is chosen automatically, beside the best of the fixed ones: three problems, in virtual
//! time.

use hemiola::splash::{self, DataSet, Degree, Local, Options, Shared};
use hemiola::{Deployment, sim};

const WORKERS: u32 = 16;
const DEGREES: [u32; 3] = [1, 4, 16];
const PASSES: usize = 40;
/// How steep the objective is along each coordinate: the second takes long.
const CURVATURE: [f32; 2] = [1.0, 0.0005];

/// A problem: how far an element with a weight moves a coordinate of the curvature towards it, as a part of the way.
type Move = fn(f32, f32) -> f32;

/// Stays stable however large the weight is, so that as many workers as there are do best.
fn importance_aware(curvature: f32, weight: f32) -> f32 {
    1.0 - (-0.05 * curvature * weight).exp()
}

/// Weights above 6 make it diverge, so that it is best with four workers.
fn moderate(curvature: f32, weight: f32) -> f32 {
    0.3 * curvature * weight
}

/// Any weight but one makes it diverge.
fn bold(curvature: f32, weight: f32) -> f32 {
    1.2 * curvature * weight
}

fn points() -> Vec<[f32; 2]> {
    let mut random = 1u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    };
    (0..3200).map(|_| [next(), next()]).collect()
}

/// Virtual seconds until the mean loss is below `target`, and the degree of the last pass, if it ever is.
fn reach(degree: Degree, part: Move, target: f64, passes: usize) -> Option<(f64, u32)> {
    let mut shared = Shared::default();
    let w = shared.array("w", 2);
    shared.edit(w).copy_from_slice(&[-1.0, -3.0]);
    let cluster = sim::Config { seconds_per_unit: 1e-3, ..sim::Config::new(WORKERS) };
    let options = Options { degree, ..Options::default() };
    let loss = |x: &[f32; 2], shared: &Shared| {
        let squares = (0..2).map(|k| (x[k] - shared.get(w.at(k))).powi(2));
        f64::from(squares.sum::<f32>())
    };
    let run =
        splash::run(&Deployment::Sim(cluster), &options, &shared, &points(), |set: &mut DataSet<[f32; 2], ()>| {
            for _ in 0..passes {
                let process = |x: &[f32; 2], weight: f64, shared: &mut Shared, _: &mut Local<()>| {
                    for (w, (x, curvature)) in shared.edit(w).iter_mut().zip(x.iter().zip(CURVATURE)) {
                        *w += part(curvature, weight as f32) * (x - *w);
                    }
                };
                let pass = set.run_tested(process, loss)?;
                let sums = set.reduce(|x, shared, _| [loss(x, shared), 1.0], |a, b| [a[0] + b[0], a[1] + b[1]])?;
                if sums.is_some_and(|[sum, count]| sum / count < target) {
                    return Ok([&set.seconds().to_le_bytes()[..], &pass.degree.to_le_bytes()].concat());
                }
            }
            Ok(Vec::new())
        });
    // A weight that it does not stand ends a run of a fixed degree.
    let result = run.ok()?.outcome.results.swap_remove(0);
    let (seconds, degree) = result.split_first_chunk()?;
    Some((f64::from_le_bytes(*seconds), u32::from_le_bytes(degree.try_into().ok()?)))
}

#[test]
fn the_chosen_degree_is_within_a_step_of_the_best() {
    let mut best_degrees = Vec::new();
    for (name, part, target) in
        [("importance-aware", importance_aware as Move, 1.2), ("moderate", moderate, 1.2), ("bold", bold, 1.5)]
    {
        let time =
            |degree: &u32| reach(Degree::Fixed(*degree), part, target, PASSES).map_or(f64::INFINITY, |end| end.0);
        let times = DEGREES.map(|degree| time(&degree));
        let best = (0..DEGREES.len()).min_by(|a, b| times[*a].total_cmp(&times[*b])).expect("three degrees");
        let (seconds, chosen) = reach(Degree::Auto, part, target, PASSES).expect("it gets there");
        eprintln!("{name}: {times:.2?} s with {DEGREES:?}; by choice {seconds:.2} s, in the end with {chosen}");
        let best = DEGREES[best];
        assert!(chosen * 4 >= best && chosen <= best * 4, "{name}: {chosen} was chosen, {best} is best");
        best_degrees.push(best);
    }
    assert_eq!(best_degrees, [16, 4, 1], "the problems are different, and the last is best sequentially");
}
