//! How much sooner more nodes are there: the paper's figure 7.
//!
//! With `P` nodes, of which each computes its own pairs and subtracts those of all, an example takes `c/P + a`, where `c` is
//! the work of computing a pair and `a` that of subtracting it. So no number of nodes is more than `(c + a)/a` times as fast
//! as one, and which application scales depends on how much more there is to compute than to subtract.

use super::super::{Findings, ReproduceError, Scale};
use super::{Bench, CORE_SECONDS, EPOCHS, Exchange, ROUNDING, panel};
use crate::StepSize;
use crate::generate::Random;
use crate::mlr::factors::Config;
use crate::patches::Patches;
use crate::peers::{Exchange as Broadcast, Peers};
use crate::{dml, l2mlr, sc};
use hemiola::{Deployment, sim};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Numbers of nodes up to the paper's largest cluster.
const NODES: [u32; 6] = [1, 4, 8, 12, 20, 28];
/// The speed-up on the largest that is enough; the paper has 17.4.
const ENOUGH: f64 = 15.0;
/// Examples, pairs or patches of a node in an iteration of the other applications.
const BATCH: u32 = 32;
/// Pixels of a patch's side.
const SIDE: usize = 8;

/// What is learnt.
#[derive(Clone, Copy)]
enum Application {
    Softmax,
    Metric,
    Dictionary,
    Proved,
}

const APPLICATIONS: [(Application, &str); 4] = [
    (Application::Softmax, "softmax regression"),
    (Application::Metric, "metric learning"),
    (Application::Dictionary, "sparse coding"),
    (Application::Proved, "dual ascent"),
];

/// A network, or one that takes no time.
#[derive(Clone, Copy, PartialEq)]
enum Network {
    Real,
    Free,
}

/// The work of computing a pair and of subtracting it, in seconds of one node.
struct Work {
    compute: f64,
    apply: f64,
}

impl Work {
    /// From the time of one node, and of many without a network.
    fn new(alone: f64, (nodes, together): (f64, f64)) -> Self {
        // c + a alone, c/P + a together.
        let apply = if nodes > 1.0 { (together - alone / nodes) / (1.0 - 1.0 / nodes) } else { alone };
        Self { compute: (alone - apply).max(0.0), apply }
    }

    fn speed_up(&self, nodes: f64) -> f64 {
        (self.compute + self.apply) / (self.compute / nodes + self.apply)
    }

    fn limit(&self) -> f64 {
        (self.compute + self.apply) / self.apply
    }
}

/// Seconds of a pass on nodes of one core: what is computed and what is sent grow alike on fewer cores and a smaller model.
fn seconds_of_pass(
    application: Application,
    bench: &Bench,
    patches: &Patches,
    network: Network,
) -> Result<f64, ReproduceError> {
    let mut cluster = sim::Config { seconds_per_unit: CORE_SECONDS, ..bench.cluster(Exchange::Factors) };
    if network == Network::Free {
        (cluster.network.bandwidth_in, cluster.network.bandwidth_out) = (f64::INFINITY, f64::INFINITY);
        cluster.network.latency = 0.0;
    }
    let deployment = Deployment::Sim(cluster);
    let place = Peers { deployment: &deployment, exchange: Broadcast::default(), threads: 1 };
    let seconds = match application {
        Application::Softmax => {
            let config = Config { epochs: 1, batch: BATCH, ..bench.config() };
            let trained = crate::mlr::factors::train(&config, &deployment, &bench.train, None, |_| {})?;
            trained.epochs.last().map(|epoch| epoch.seconds)
        }
        Application::Metric => {
            let config = dml::train::Config {
                batch: Some(BATCH),
                epochs: 1,
                step: StepSize::Constant { rate: 0.1 },
                ..dml::train::Config::default()
            };
            let trained = dml::peers::train(&config, &place, (&bench.train, None), None, |_| {})?;
            trained.epochs.last().map(|epoch| epoch.seconds)
        }
        Application::Dictionary => {
            let config = sc::train::Config { batch: BATCH, epochs: 1, ..sc::train::Config::default() };
            sc::peers::train(&config, &place, patches, |_| {})?.epochs.last().map(|epoch| epoch.seconds)
        }
        Application::Proved => {
            let config = l2mlr::solver::Config { epochs: 1, ..l2mlr::solver::Config::default() };
            let fitted = l2mlr::peers::fit(&bench.train, &config, BATCH, &place, |_| {})?;
            fitted.epochs.last().map(|epoch| epoch.seconds)
        }
    };
    Ok(seconds.unwrap_or(f64::NAN))
}

/// Patches that are put together from a few of many shapes.
fn patches(count: u32, seed: u64) -> Patches {
    const SHAPES: usize = 60;
    let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(seed));
    let shapes: Vec<f32> = (0..SHAPES * SIDE * SIDE).map(|_| random.uniform() as f32 - 0.5).collect();
    let mut numbers = vec![0.0; count as usize * SIDE * SIDE];
    for patch in numbers.chunks_exact_mut(SIDE * SIDE) {
        for _ in 0..3 {
            let (shape, strength) = (random.below(SHAPES), random.uniform() as f32 - 0.5);
            let shape = &shapes[shape * SIDE * SIDE..][..SIDE * SIDE];
            patch.iter_mut().zip(shape).for_each(|(pixel, part)| *pixel += strength * part);
        }
    }
    Patches { side: SIDE, numbers }
}

/// How many times as soon as one node others reach its held-out loss: more nodes with as large minibatches each, and as
/// many times as large ones together.
fn to_one_objective(bench: &mut Bench, config: &Config, nodes_max: u32) -> Result<Vec<(f64, f64)>, ReproduceError> {
    let (mut points, mut alone) = (Vec::new(), None);
    for nodes in NODES.into_iter().filter(|nodes| *nodes <= nodes_max) {
        bench.nodes = nodes;
        let passes = if nodes == 1 { EPOCHS } else { EPOCHS + 2 };
        let run = bench.run(Exchange::Factors, &Config { epochs: passes, ..*config })?;
        let (target, seconds) = *alone.get_or_insert((run.loss(), run.seconds()));
        let reached = if nodes == 1 { Some(seconds) } else { run.reaches(target) };
        points.extend(reached.map(|reached| (f64::from(nodes), seconds / reached)));
    }
    Ok(points)
}

pub(in crate::reproduce) fn scaling(scale: &Scale) -> Result<Findings, ReproduceError> {
    let mut wide = Bench::wide(scale)?;
    let rounding = Config { rounding: Some(ROUNDING), ..wide.config() };
    let rounded = to_one_objective(&mut wide, &rounding, scale.nodes)?;
    let mut bench = Bench { cores: 1.0, ..Bench::new(scale, (Bench::classes_max(scale) / 2).max(2))? };
    let config = bench.config();
    let exact = to_one_objective(&mut bench, &config, scale.nodes)?;
    let rounded_alike = Config { rounding: rounding.rounding, ..config };
    let apart =
        bench.run(Exchange::Factors, &rounded_alike)?.loss() / bench.run(Exchange::Factors, &config)?.loss() - 1.0;
    let last = |points: &[(f64, f64)]| points.last().copied().unwrap_or((f64::NAN, f64::NAN));
    let softmax = last(&rounded);
    let objectives = format!(
        "{:.1} times as soon on {} nodes where errors below {ROUNDING} are rounded ({} documents of {} classes), and {:.1} times \
         where none are ({} of {})",
        softmax.1,
        softmax.0,
        wide.train.len(),
        wide.classes,
        last(&exact).1,
        bench.train.len(),
        bench.classes,
    );
    let softmax_curves = vec![("errors rounded".to_owned(), rounded), ("errors as they are".to_owned(), exact)];
    let mut small = Bench::new(scale, (Bench::classes_max(scale) / 10).max(2))?;
    let patches = patches(scale.documents * 8, scale.seed);
    let (mut curves, mut list, mut dual) = (Vec::new(), Vec::new(), 0.0);
    for (application, name) in APPLICATIONS {
        let mut seconds = Vec::new();
        for nodes in NODES.into_iter().filter(|nodes| *nodes <= scale.nodes) {
            small.nodes = nodes;
            seconds.push((f64::from(nodes), seconds_of_pass(application, &small, &patches, Network::Real)?));
        }
        let (alone, most) = (seconds[0].1, seconds[seconds.len() - 1].0);
        let work = Work::new(alone, (most, seconds_of_pass(application, &small, &patches, Network::Free)?));
        let measured: Vec<(f64, f64)> = seconds.iter().map(|(nodes, seconds)| (*nodes, alone / seconds)).collect();
        let computed = measured.iter().map(|(nodes, _)| (*nodes, work.speed_up(*nodes))).collect();
        let found = measured[measured.len() - 1].1;
        list.push(format!(
            "{found:.1} times as fast for {name} (computed {:.1}, and at most {:.1} on any number)",
            work.speed_up(most),
            work.limit()
        ));
        // The last of them, so its speed-up is what is left in the end.
        dual = found;
        curves.push((name.to_owned(), measured));
        curves.push((format!("{name}, computed"), computed));
    }
    let most = NODES.into_iter().filter(|nodes| *nodes <= scale.nodes).max().unwrap_or(1);
    let found = format!(
        "One held-out loss of softmax regression is reached {objectives}, compared with one node, by nodes of 1 core at 10 Gbit/s. \
         Every node computes its own pairs and subtracts those of all, so an example takes c/P + a, and P nodes are \
         (c + a)/(c/P + a) times as fast, which is computed here from what one node does and {most} do without a network. Of an \
         example whose errors are rounded few are left to subtract; after as many passes of the smaller the loss is {:.2} % off \
         what it is without. A pass on {most} nodes \
         without rounding is {}. Peers scale where a pair takes far longer to compute than to subtract. {} documents of {} \
         classes for a pass, in minibatches of {BATCH}; as many patches of {SIDE} x {SIDE} pixels.",
        100.0 * apart.abs(),
        list.join(", "),
        small.train.len(),
        small.classes,
    );
    let panels = vec![
        panel("speed-up to one objective, softmax regression", "nodes", "times one node", softmax_curves),
        panel("speed-up of a pass", "nodes", "times one node", curves),
    ];
    // The paper's two on 28 machines.
    let enough = |(nodes, times): (f64, f64)| nodes == f64::from(NODES[5]) && times >= ENOUGH;
    Ok(Findings { found, holds: enough(softmax) && enough((f64::from(most), dual)), panels })
}

#[cfg(test)]
mod tests {
    use super::Work;

    #[test]
    fn work_is_found_from_one_node_and_many() {
        // A pair takes 30 to compute and 2 to subtract.
        let work = Work::new(32.0, (10.0, 5.0));
        assert!((work.compute - 30.0).abs() < 1e-9 && (work.apply - 2.0).abs() < 1e-9);
        assert!((work.speed_up(10.0) - 6.4).abs() < 1e-9 && (work.limit() - 16.0).abs() < 1e-9);
    }
}
