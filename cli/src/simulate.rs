//! `hemiola simulate`: what a job would do on a cluster, in virtual time.

use crate::failure::usage;
use crate::plot::{self, Panel};
use crate::progress::{Figures, Observed, Progress, Work, say, span};
use crate::report::{self, Report};
use crate::train::peers::ExchangeOptions;
use crate::train::{dml, engine, l1lr, l2mlr, lda, mf, mlr, sc};
use crate::{budget, calibrate, filters, numbers, outputs};
use anyhow::Result;
use clap::{Args, Subcommand};
use hemiola::factors::cost::{Machine, Sync};
use hemiola::sim::{self, Hazard, Servers, Straggler};
use hemiola::{Deployment, Outcome};
use hemiola_models::Epoch;
use hemiola_models::l1lr::distributed;
use hemiola_models::l1lr::model::L1lrModel;
use hemiola_models::mlr::model::MlrModel;
use hemiola_models::peers::{Exchange, Peers};
use serde_json::{Value, json};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  hemiola simulate mf ratings.csv --nodes 64 --epochs 5
  hemiola simulate mf ratings.csv --nodes 64 --bandwidth 200mbit --consistency ssp --staleness 4 --epochs 5
  hemiola simulate mf ratings.csv --nodes 8 --straggler 3:2.5 --epochs 5 --plot cluster.svg
  hemiola simulate lda docword.nips.txt.gz --nodes 16 --topics 100 --epochs 20
  hemiola simulate l1lr clicks.svm --nodes 100 --lambda 1e-4 --delay 8 --straggler 3:2.5
  hemiola simulate mlr wiki.libsvm --nodes 12 --workers 1 --bandwidth 10gbit --sync factors --fanout 4 --rate 16
  hemiola simulate dml train-images-idx3-ubyte.gz --nodes 12 --bandwidth 10gbit --fanout 4 --epochs 3
  hemiola simulate mlr train-images-idx3-ubyte.gz --nodes 64 --workers 1 --engine splash --epochs 5

Workers run for real; only the network and the passing of time are simulated. One seed gives one outcome.";

/// What to simulate.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    model: Model,
}

#[derive(Subcommand)]
enum Model {
    /// Say what the factorisation of ratings would do on a cluster
    #[command(after_help = EXAMPLES)]
    Mf(Box<Simulation<mf::Problem>>),
    /// Say what finding the topics of documents would do on a cluster
    #[command(after_help = EXAMPLES)]
    Lda(Box<Simulation<lda::Problem>>),
    /// Say what telling two classes apart by few features would do on a cluster
    #[command(after_help = EXAMPLES)]
    L1lr(Box<Simulation<l1lr::Problem>>),
    /// Say what learning to tell classes apart would do on a cluster
    #[command(after_help = EXAMPLES)]
    Mlr(Box<Simulation<mlr::Problem>>),
    /// Say what learning to tell classes apart, with a proof, would do on a cluster of peers
    #[command(after_help = EXAMPLES)]
    L2mlr(Box<PeerSimulation<l2mlr::Problem>>),
    /// Say what learning a distance would do on a cluster of peers
    #[command(after_help = EXAMPLES)]
    Dml(Box<PeerSimulation<dml::Problem>>),
    /// Say what learning a dictionary of patches would do on a cluster of peers
    #[command(after_help = EXAMPLES)]
    Sc(Box<PeerSimulation<sc::Problem>>),
}

#[derive(Args)]
struct Simulation<P: Args> {
    #[command(flatten)]
    problem: P,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    outputs: Outputs,
}

/// Of a model that is learnt by peers, one on every node.
#[derive(Args)]
struct PeerSimulation<P: Args> {
    #[command(flatten)]
    problem: P,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    exchange: ExchangeOptions,
    #[command(flatten)]
    outputs: Outputs,
}

#[derive(Args)]
#[command(next_help_heading = "Output")]
struct Outputs {
    /// Write what happened as JSON lines
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Draw the loss over virtual time and the staleness, as .svg or .png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Say nothing but the outcome
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Args)]
#[command(next_help_heading = "Cluster")]
struct Cluster {
    /// Nodes that have workers
    #[arg(long, value_name = "N", value_parser = numbers::count, default_value = "8", allow_negative_numbers = true)]
    nodes: u32,
    /// Workers on each node [default: 2, or 1 where nodes are peers that send one another factors]
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_negative_numbers = true)]
    workers: Option<u32>,
    /// Servers, each on a node of its own [default: one beside the workers of every node]
    #[arg(long, value_name = "S", value_parser = numbers::count, allow_negative_numbers = true)]
    servers: Option<u32>,
    /// What every node can send and receive, such as 200mbit or 10gbit
    #[arg(long, value_name = "RATE", value_parser = numbers::bandwidth, default_value = "1gbit", allow_hyphen_values = true)]
    bandwidth: f64,
    /// What every node may send, if less than it can: what 'hemiola train' calls --bandwidth
    #[arg(long, value_name = "RATE", value_parser = numbers::budget, allow_hyphen_values = true)]
    budget: Option<f64>,
    /// Which updates go first before a clock ends, with --budget; with --step-size adarevision it orders only the rows
    /// that servers send [default: relative]
    #[arg(long, value_enum, value_name = "ORDER")]
    priority: Option<budget::First>,
    /// What shortens messages, such as key-cache,zstd: significant:T holds back changes up to T, random-skip:P leaves out
    /// a part P, with feedback until the next update; then key-cache, then lz4 or zstd; with updates/ or rows/ before a
    /// name for one direction alone; for l1lr also kkt, which it has unless others are given; or none
    #[arg(long, value_name = "LIST", value_parser = filters::parse, allow_hyphen_values = true)]
    filters: Option<filters::List>,
    /// How long a message is under way, such as 100us or 2ms
    #[arg(long, value_name = "TIME", value_parser = numbers::time, default_value = "100us", allow_hyphen_values = true)]
    latency: f64,
    /// Up to how much longer a message is under way
    #[arg(long, value_name = "TIME", value_parser = numbers::time, default_value = "0us", allow_hyphen_values = true)]
    jitter: f64,
    /// A slow node and how many times as long its work takes, such as 3:2.5; may be given often
    #[arg(long, value_name = "NODE:FACTOR", value_parser = numbers::straggler, allow_hyphen_values = true)]
    straggler: Vec<(u32, f64)>,
    /// How often a worker stands still and for how long, such as 0.5:20ms for every other second
    #[arg(long, value_name = "PER_SECOND:TIME", value_parser = numbers::hazard, allow_hyphen_values = true)]
    pauses: Option<(f64, f64)>,
    /// How long a worker takes for a rating, a word, an example of mlr, a product of two numbers where factors are sent,
    /// or a feature of an example of l1lr, such as 20ns [default: measured on this machine]
    #[arg(long, value_name = "TIME", value_parser = numbers::time, allow_hyphen_values = true)]
    time_per_unit: Option<f64>,
}

impl Cluster {
    /// Workers of a node that may have several.
    fn workers(&self) -> u32 {
        self.workers.unwrap_or(2)
    }

    fn config(&self, workers: u32, seed: u64, measure: impl FnOnce() -> Result<f64>) -> Result<sim::Config> {
        let mut config = sim::Config::new(self.nodes);
        config.seed = seed;
        config.filters = self.filters.as_ref().map(|list| list.filters.clone()).unwrap_or_default();
        config.workers_per_node = workers;
        if let Some(servers) = self.servers {
            config.servers = Servers::Apart(servers);
        }
        config.network.bandwidth_out = self.bandwidth;
        config.network.bandwidth_in = self.bandwidth;
        config.network.latency = self.latency;
        config.budget = budget::meaning("--budget", self.budget, self.priority)?;
        if self.budget.is_some_and(|budget| budget > self.bandwidth) {
            return Err(usage(
                "--budget is more than the network can carry; give less than --bandwidth, or leave it out",
            ));
        }
        config.network.jitter = self.jitter;
        config.seconds_per_unit = match self.time_per_unit {
            Some(seconds) => seconds,
            None => measure()?,
        };
        let straggler = |&(node, factor): &(u32, f64)| Straggler { node, factor };
        config.faults.stragglers = self.straggler.iter().map(straggler).collect();
        if let Some((per_second, seconds)) = self.pauses {
            config.faults.pauses = Hazard { per_second, seconds };
        }
        config.validate().map_err(hemiola::Error::from)?;
        Ok(config)
    }
}

impl Cluster {
    fn check_splash(&self) -> Result<()> {
        engine::refuse(&[("--priority", self.priority.is_some())])?;
        filters::check_all_arrive(self.filters.as_ref(), filters::REPLICAS)
    }

    /// Checks that every node can be one peer.
    fn check_peers(&self) -> Result<()> {
        filters::check_all_arrive(self.filters.as_ref(), filters::MINIBATCHES)?;
        match self.workers {
            None | Some(1) => Ok(()),
            Some(workers) => Err(usage(format!(
                "--workers {workers}: a node that sends others factors is one worker; give 1, or leave it out"
            ))),
        }
    }

    fn check_sync(&self, sync: &mlr::sync::Options) -> Result<()> {
        self.check_peers()?;
        sync.refuse(&[
            ("--budget", self.budget.is_some(), "nothing is sent early"),
            ("--priority", self.priority.is_some(), "nothing is sent early"),
            ("--servers", self.servers.is_some() && !sync.may_be_matrix(), "workers send to one another"),
        ])?;
        if self.time_per_unit.is_some() && sync.may_be_matrix() {
            return Err(usage(
                "--time-per-unit is of a unit that --sync auto has not chosen yet; give factors or matrix",
            ));
        }
        Ok(())
    }

    /// How peers keep together here, as far as options of clusters have an effect on them.
    fn peers(&self, exchange: &ExchangeOptions) -> Result<Exchange> {
        filters::check_without_kkt(self.filters.as_ref())?;
        self.check_peers()?;
        let given = [
            ("--budget", self.budget.is_some(), "send nothing early"),
            ("--priority", self.priority.is_some(), "send nothing early"),
            ("--servers", self.servers.is_some(), "have no servers"),
        ];
        match given.iter().find(|(_, given, _)| *given) {
            Some((option, _, why)) => Err(usage(format!("{option} has no effect on peers, which {why}; leave it out"))),
            None => exchange.meaning(self.nodes),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.model {
        Model::Mf(simulation) => simulate_mf(simulation),
        Model::Lda(simulation) => simulate_lda(simulation),
        Model::L1lr(simulation) => simulate_l1lr(simulation),
        Model::Mlr(simulation) => simulate_mlr(simulation),
        Model::L2mlr(simulation) => simulate_l2mlr(simulation),
        Model::Dml(simulation) => simulate_dml(simulation),
        Model::Sc(simulation) => simulate_sc(simulation),
    }
}

fn simulate_mf(simulation: &Simulation<mf::Problem>) -> Result<()> {
    let Simulation { problem, cluster, outputs } = simulation;
    filters::check_without_kkt(cluster.filters.as_ref())?;
    outputs.check(&problem.inputs()?)?;
    let workers = cluster.nodes * cluster.workers();
    // The shape of a cluster does not change what the options mean, so one that costs nothing to make will do.
    let way = problem.way(&Deployment::sim(cluster.nodes), workers)?;
    match &way {
        mf::Way::Tables(config) => mf::check_priority(cluster.priority, config)?,
        mf::Way::Splash(_) => cluster.check_splash()?,
    }
    let (ratings, train, shape) = problem.read()?.into_ratings();
    let measure = || match &way {
        mf::Way::Tables(config) => calibrate::seconds_per_rating(config.rank),
        mf::Way::Splash(config) => calibrate::seconds_per_rating_of_user(config, ratings.iter().take(train), shape),
    };
    let simulated = cluster.config(cluster.workers(), way.seed(), measure)?;
    let (work, description) = (way.work(train), problem.description(&way));
    let course = Course { cluster, outputs, simulated, description, work, unit: "rating" };
    let (trained, report) =
        course.observe(|deployment, observe| way.train(deployment, None, (ratings, train, shape), observe))?;
    let panel = mf::loss_panel(&trained.epochs, "virtual seconds", |epoch| epoch.seconds);
    course.end(report, &trained.outcome, trained.epochs.last(), ("Simulated matrix factorisation", panel))
}

fn simulate_lda(simulation: &Simulation<lda::Problem>) -> Result<()> {
    let Simulation { problem, cluster, outputs } = simulation;
    filters::check_without_kkt(cluster.filters.as_ref())?;
    filters::check_all_arrive(cluster.filters.as_ref(), filters::COUNTS)?;
    outputs.check(&problem.inputs()?)?;
    let way = problem.way(&Deployment::sim(cluster.nodes))?;
    match &way {
        lda::Way::Tables(config) => budget::check_priority(cluster.priority, config.consistency)?,
        lda::Way::Splash(_) => cluster.check_splash()?,
    }
    let corpus = problem.read()?.corpus;
    let simulated = cluster.config(cluster.workers(), way.seed(), || calibrate::seconds_per_word(&way, &corpus))?;
    let (work, description) = (way.work(&corpus), problem.description(&way));
    let course = Course { cluster, outputs, simulated, description, work, unit: "word" };
    let (trained, report) = course.observe(|deployment, observe| way.train(deployment, None, &corpus, observe))?;
    let panel = lda::likelihood_panel(&trained.epochs, "virtual seconds", |epoch| epoch.seconds);
    course.end(report, &trained.outcome, trained.epochs.last(), ("Simulated topic model", panel))
}

fn simulate_l1lr(simulation: &Simulation<l1lr::Problem>) -> Result<()> {
    let Simulation { problem, cluster, outputs } = simulation;
    let mut config = problem.tasks(filters::kkt(cluster.filters.as_ref()))?;
    for (option, given) in [("--budget", cluster.budget.is_some()), ("--priority", cluster.priority.is_some())] {
        if given {
            return Err(usage(format!(
                "{option} has no effect on l1lr, whose workers send nothing early; leave it out"
            )));
        }
    }
    outputs.check(&problem.inputs()?)?;
    let data = problem.read(None)?;
    let examples = &data.known;
    problem.group(examples, &mut config.blocks)?;
    let simulated = cluster.config(cluster.workers(), config.seed, || Ok(calibrate::seconds_per_entry(examples)))?;
    let work = Work { units: ("values", examples.entries()), epochs: config.stopping.passes, may_stop_early: true };
    let description = problem.description(&l1lr::Way::Tasks(config.clone()));
    let course = Course { cluster, outputs, simulated, description, work, unit: "value" };
    let (trained, report) =
        course.observe(|deployment, observe| Ok(distributed::train(examples, &config, deployment, observe)?))?;
    if let Some(test) = data.judge(|| L1lrModel::new(examples, &trained.fit, Value::Null, Value::Null))? {
        writeln!(stdout().lock(), "held out       loss {:.4}", test.loss)?;
    }
    let panel = l1lr::pass_panel(&trained.progress, "virtual seconds", |pass| pass.seconds);
    course.end(report, &trained.outcome, trained.progress.last(), ("Simulated logistic regression", panel))
}

fn simulate_mlr(simulation: &Simulation<mlr::Problem>) -> Result<()> {
    let Simulation { problem, cluster, outputs } = simulation;
    filters::check_without_kkt(cluster.filters.as_ref())?;
    if problem.sync().by_minibatch() {
        cluster.check_sync(problem.sync())?;
    }
    outputs.check(&problem.inputs()?)?;
    let mut way = problem.way(&Deployment::sim(cluster.nodes))?;
    match &way {
        mlr::Way::Tables(config) => budget::check_priority(cluster.priority, config.consistency)?,
        mlr::Way::Splash(_) => cluster.check_splash()?,
        mlr::Way::Minibatches(_) | mlr::Way::Factors(_) | mlr::Way::Cheaper(_) => {}
    }
    let (examples, test) = problem.read()?;
    let workers = if problem.sync().by_minibatch() { 1 } else { cluster.workers() };
    let mut simulated = cluster.config(workers, way.seed(), || calibrate::seconds_per_example(&way, &examples))?;
    if let mlr::Way::Cheaper(config) = way {
        let products_per_second = 1.0 / simulated.seconds_per_unit;
        let machine = Machine { bytes_per_second: cluster.bandwidth, products_per_second };
        let choice = mlr::sync::choose(&config, &Deployment::Sim(simulated.clone()), &examples, machine);
        if !outputs.quiet {
            say(&choice.to_string());
        }
        way = mlr::Way::Factors(config);
        if choice.sync == Sync::Matrix {
            way = mlr::Way::Minibatches(config);
            simulated.seconds_per_unit = calibrate::seconds_per_example(&way, &examples)?;
        }
    }
    let (work, description) = (way.work(&examples), problem.description(&way)?);
    let unit = if matches!(way, mlr::Way::Factors(_)) { "product" } else { "example" };
    let course = Course { cluster, outputs, simulated, description, work, unit };
    let (trained, report) =
        course.observe(|deployment, observe| way.train(deployment, None, (&examples, test.as_ref()), observe))?;
    let panel = mlr::loss_panel(&trained.epochs, "virtual seconds", |epoch| epoch.seconds);
    course.end(report, &trained.outcome, trained.epochs.last(), ("Simulated softmax regression", panel))
}

fn simulate_l2mlr(simulation: &PeerSimulation<l2mlr::Problem>) -> Result<()> {
    let PeerSimulation { problem, cluster, exchange, outputs } = simulation;
    l2mlr::check_all_send(cluster.peers(exchange)?)?;
    outputs.check(&problem.inputs()?)?;
    let config = problem.config();
    let (examples, test) = problem.read()?;
    let (work, description) = (problem.work(&examples), problem.description());
    let drawing = ("Simulated dual ascent", l2mlr::gap_panel as Drawn<_>);
    let fit = simulation.run(config.seed, work, description, drawing, |epochs, place, observe| {
        let fitted = problem.by_peers(&l2mlr::Config { epochs, ..config }, place, &examples, observe)?;
        Ok((fitted.epochs, fitted.outcome, fitted.fit))
    })?;
    if let Some(test) = test {
        let model = MlrModel::new(examples.classes, &fit.weights, Value::Null, Value::Null);
        writeln!(stdout().lock(), "held out       loss {:.4}", model.evaluate(&test).loss())?;
    }
    Ok(())
}

fn simulate_dml(simulation: &PeerSimulation<dml::Problem>) -> Result<()> {
    let PeerSimulation { problem, cluster, exchange, outputs } = simulation;
    cluster.peers(exchange)?;
    outputs.check(&problem.inputs()?)?;
    let (config, data) = (problem.config(), problem.read()?);
    let drawing = ("Simulated metric learning", dml::cost_panel as Drawn<_>);
    simulation.run(config.seed, data.work(&config), problem.description(), drawing, |epochs, place, observe| {
        let trained = data.by_peers(&dml::Config { epochs, ..config }, place, observe)?;
        Ok((trained.epochs, trained.outcome, ()))
    })
}

fn simulate_sc(simulation: &PeerSimulation<sc::Problem>) -> Result<()> {
    let PeerSimulation { problem, cluster, exchange, outputs } = simulation;
    cluster.peers(exchange)?;
    outputs.check(&problem.inputs())?;
    let (config, data) = (problem.config(), problem.read()?);
    let drawing = ("Simulated sparse coding", sc::objective_panel as Drawn<_>);
    simulation.run(config.seed, data.work(&config), problem.description(), drawing, |epochs, place, observe| {
        let trained = data.by_peers(&sc::Config { epochs, ..config }, place, observe)?;
        Ok((trained.epochs, trained.outcome, ()))
    })
}

/// What draws epochs, over whatever they are drawn over.
type Drawn<Q> = fn(&[Epoch<Q>], &str, fn(&Epoch<Q>) -> f64) -> Panel;

/// How an epoch that has ended is told of.
type Observe<'a, Q> = &'a mut (dyn FnMut(&Epoch<Q>) + Send);

impl<P: Args> PeerSimulation<P> {
    /// Simulates what `learn` does in so many passes, after one peer alone has shown how long it takes.
    fn run<Q: Figures, T>(
        &self,
        seed: u64,
        work: Work,
        description: Value,
        (title, drawn): (&str, Drawn<Q>),
        learn: impl Fn(u32, &Peers<'_>, Observe<'_, Q>) -> Result<(Vec<Epoch<Q>>, Outcome, T)>,
    ) -> Result<T> {
        let Self { cluster, exchange, outputs, .. } = self;
        let exchange = cluster.peers(exchange)?;
        let simulated = cluster.config(1, seed, || {
            calibrate::seconds_per_product(|deployment| {
                let alone = Peers { deployment, exchange: Exchange::default(), threads: 1 };
                let (epochs, ..) = learn(1, &alone, &mut |_| {})?;
                Ok(epochs.last().map_or(0.0, |epoch| epoch.seconds))
            })
        })?;
        let passes = work.epochs;
        let course = Course { cluster, outputs, simulated, description, work, unit: "product" };
        let ((epochs, outcome, learnt), report) = course
            .observe(|deployment, observe| learn(passes, &Peers { deployment, exchange, threads: 1 }, observe))?;
        let panel = drawn(&epochs, "virtual seconds", |epoch| epoch.seconds);
        course.end(report, &outcome, epochs.last(), (title, panel))?;
        Ok(learnt)
    }
}

/// A simulation of any model: how it is shown, reported, drawn and told of.
struct Course<'a> {
    cluster: &'a Cluster,
    outputs: &'a Outputs,
    simulated: sim::Config,
    description: Value,
    work: Work,
    /// What a unit of work is, for people.
    unit: &'static str,
}

impl Course<'_> {
    fn observe<E: Observed, T>(
        &self,
        train: impl FnOnce(&Deployment, &mut (dyn FnMut(&E) + Send)) -> Result<T>,
    ) -> Result<(T, Report)> {
        let Self { cluster, outputs, simulated, .. } = self;
        let mut report = Report::create(outputs.report.as_deref(), false)?;
        let mut description = self.description.clone();
        description["cluster"] = json!({
            "nodes": cluster.nodes, "workers_per_node": simulated.workers_per_node, "servers": simulated.shards(),
            "bandwidth_bytes_per_second": cluster.bandwidth, "latency_seconds": cluster.latency,
            "budget": simulated.budget, "filters": cluster.filters.as_ref().map(|list| &list.text), "jitter_seconds": cluster.jitter,
            "seconds_per_unit": simulated.seconds_per_unit,
            "stragglers": cluster.straggler, "pauses": cluster.pauses,
        });
        report.line("start", &description)?;
        if !outputs.quiet {
            let (nodes, workers) = (cluster.nodes, simulated.workers_per_node);
            let nanoseconds = simulated.seconds_per_unit * 1e9;
            say(&format!("simulating {nodes} nodes of {workers} workers, {nanoseconds:.1} ns per {}", self.unit));
        }
        let mut progress = Progress::new(outputs.quiet, &self.work);
        let mut unwritten = None;
        let trained = train(&Deployment::Sim(simulated.clone()), &mut |epoch: &E| {
            progress.epoch(epoch);
            if let Err(error) = report.line("evaluation", epoch) {
                unwritten.get_or_insert(error);
            }
        });
        progress.end();
        let trained = trained?;
        unwritten.map_or(Ok(()), Err)?;
        Ok((trained, report))
    }

    fn end(
        &self,
        mut report: Report,
        outcome: &Outcome,
        last: Option<&impl Observed>,
        (title, panel): (&str, Panel),
    ) -> Result<()> {
        report.line("summary", &report::summary(outcome))?;
        if let Some(path) = &self.outputs.plot {
            let reads = outcome.histogram.iter().next().is_some();
            let staleness = reads.then(|| plot::staleness_panel(&outcome.histogram));
            plot::write(path, title, &[panel].into_iter().chain(staleness).collect::<Vec<_>>())?;
        }
        let mut out = stdout().lock();
        if let Some(last) = last {
            let (time, epochs) = (span(last.seconds()), last.number());
            writeln!(out, "virtual time   {time} for {epochs} epochs, {}", last.figures())?;
        }
        writeln!(out, "traffic        {}", report::traffic(outcome))?;
        report::tell(&mut out, outcome)?;
        Ok(())
    }
}

impl Outputs {
    fn check(&self, inputs: &[(&'static str, &Path)]) -> Result<()> {
        let report = self.report.iter().map(|path| ("--report", path.as_path()));
        let plot = self.plot.iter().map(|path| ("--plot", path.as_path()));
        let files: Vec<_> = report.chain(plot).collect();
        outputs::check_distinct(inputs, &files)?;
        self.plot.iter().try_for_each(|path| plot::check_extension(path))?;
        files.iter().try_for_each(|(_, path)| outputs::check_writable(path))
    }
}
