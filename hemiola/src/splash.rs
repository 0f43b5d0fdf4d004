//! Splash: write a sequential stochastic algorithm that processes weighted elements, and get it parallel.
//!
//! An algorithm is a function `process(element, weight, shared, local)` that changes shared variables by operators. The
//! function that runs on one worker with weight 1 runs on many unchanged: each takes its part of the elements with as
//! large a weight as there are workers, and now and then their replicas of the variables are combined.
//!
//! ```
//! use hemiola::Deployment;
//! use hemiola::splash::{self, DataSet, Options, Shared};
//!
//! let points: Vec<f64> = (0..1000).map(|i| f64::from(i % 10)).collect();
//! let mut shared = Shared::default();
//! let (t, mean) = (shared.scalar("t", 0.0), shared.scalar("mean", 0.0));
//! let trained = splash::run(&Deployment::threads(4), &Options::default(), &shared, &points, |set: &mut DataSet<f64, ()>| {
//!     set.run(|x, weight, shared, _| {
//!         shared.add(t, weight);
//!         let step = weight / shared.get(t);
//!         shared.add(mean, step * (x - shared.get(mean)));
//!     })?;
//!     Ok(Vec::new())
//! })?;
//! assert!((trained.shared.get(mean) - 4.5).abs() < 0.01);
//! # Ok::<(), hemiola::Error>(())
//! ```
//!
//! The program is run by every worker, as everywhere in Hemiola: each has its own part of the data set, and all make the
//! same calls of [`DataSet::run`] and [`DataSet::reduce`].

mod data_set;
mod error;
mod exchange;

pub use data_set::{DataSet, Local, Pass};
pub use error::SplashError;
pub use hemiola_core::splash::{Array, ArrayPlace, Place, Scalar, Shared, Sparse, SparsePlace, Variable, dot};

use crate::deployment::{Deployment, Observation, Observer, Outcome, run_observed as run_job};
use crate::error::Error;
use crate::worker::Worker;
use exchange::{ENGINE, Exchange};
use hemiola_core::splash::degree::groups;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fmt::Display;
use std::io::BufRead;

/// How many workers process elements at the same time, each with that weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Degree {
    /// All of them.
    #[default]
    Largest,
    /// So many; the workers take turns.
    Fixed(u32),
    /// As many as give the smallest loss, found out by trying (appendix B of the paper). Without a loss all of them, and
    /// of two workers both.
    Auto,
}

/// How passes are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// One seed and degree, one outcome.
    pub seed: u64,
    /// How many workers process elements at the same time.
    pub degree: Degree,
    /// How often the replicas are combined in a pass of all workers. With fewer at a time it is after as many elements.
    pub synchronisations: u32,
    /// Whether every pass takes the elements in another order.
    pub shuffle: bool,
    /// The fan-in of the tree by which replicas are added up: first those of so many consecutive workers, then the sums.
    /// Where a process has them all, only the sum travels. Other numbers give other last bits, on every driver the same.
    pub fan_in: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 1, degree: Degree::Largest, synchronisations: 1, shuffle: true, fan_in: 1 }
    }
}

/// The elements of a data set; a slice or a vector of them is one.
pub struct Elements<'a, E> {
    /// All of them.
    pub all: &'a [E],
    /// The weight of an element, where they have weights of their own: what `process` gets is multiplied by it.
    pub weight: Option<OfElement<'a, E, f64>>,
    /// How many units of work an element is, where it is not one. It matters only in the simulator.
    pub cost: Option<OfElement<'a, E, u64>>,
    /// Called with an element some turns before it is processed, to ask by [`crate::fetch`] for what it refers to.
    pub fetch: Option<OfElement<'a, E, ()>>,
}

/// A function of an element.
pub type OfElement<'a, E, R> = &'a (dyn Fn(&E) -> R + Sync);

impl<'a, E> From<&'a [E]> for Elements<'a, E> {
    fn from(all: &'a [E]) -> Self {
        Self { all, weight: None, cost: None, fetch: None }
    }
}

impl<'a, E> From<&'a Vec<E>> for Elements<'a, E> {
    fn from(all: &'a Vec<E>) -> Self {
        Self::from(all.as_slice())
    }
}

/// What is left of a run.
#[derive(Debug, Clone)]
pub struct Trained {
    /// What the variables hold in the end.
    pub shared: Shared,
    /// What every worker's program returned, and where the time went.
    pub outcome: Outcome,
}

/// Runs `program` on every worker, with variables that begin as `shared` and a part of `elements` each. The parts are
/// drawn by the seed.
///
/// # Errors
/// The first failure of the job; one of `process` names the element by its position in `elements`.
pub fn run<'e, E, L, P>(
    deployment: &Deployment,
    options: &Options,
    shared: &Shared,
    elements: impl Into<Elements<'e, E>>,
    program: P,
) -> Result<Trained, Error>
where
    E: Sync + 'e,
    L: Clone + Default + Send,
    P: Fn(&mut DataSet<'_, E, L>) -> Result<Vec<u8>, Error> + Sync,
{
    run_observed(deployment, options, shared, elements, program, &mut |_| {})
}

/// As [`run`], and shows `observer` what workers report by [`DataSet::report`].
///
/// # Errors
/// As [`run`].
pub fn run_observed<'e, E, L, P>(
    deployment: &Deployment,
    options: &Options,
    shared: &Shared,
    elements: impl Into<Elements<'e, E>>,
    program: P,
    observer: &mut Observer<'_>,
) -> Result<Trained, Error>
where
    E: Sync + 'e,
    L: Clone + Default + Send,
    P: Fn(&mut DataSet<'_, E, L>) -> Result<Vec<u8>, Error> + Sync,
{
    let workers = deployment.workers();
    let elements = &elements.into();
    check(options, shared, elements.all.len(), workers)?;
    let mut start = shared.clone();
    start.settle();
    let mut order: Vec<u32> = (0..elements.all.len() as u32).collect();
    if options.shuffle {
        shuffle(&mut order, options.seed, 0);
    }
    let trials = if options.degree == Degree::Auto { groups(workers, 1).len() } else { 0 };
    let tables = exchange::tables(shared, trials, options.fan_in);
    let on_worker = |worker: &mut Worker| {
        let (me, workers) = (worker.id().index(), worker.workers() as usize);
        let part = order[order.len() * me / workers..order.len() * (me + 1) / workers].to_vec();
        let exchange = Exchange::new(&start);
        exchange.begin(worker, &start)?;
        let mut set = DataSet::new(worker, exchange, options, &start, elements, part);
        let mut result = program(&mut set)?;
        if me == 0 {
            let variables = set.shared().to_bytes();
            result.extend_from_slice(&variables);
            result.extend((variables.len() as u64).to_le_bytes());
        }
        Ok(result)
    };
    let mut index = 0;
    let outcome = run_job(deployment, &tables, &on_worker, &mut |observation: &Observation| {
        if let [mark, values @ ..] = &observation.values[..]
            && *mark != ENGINE
        {
            observer(&Observation { index, values: values.to_vec(), seconds: observation.seconds });
            index += 1;
        }
    })?;
    finish(start, outcome)
}

/// The elements that lines of text stand for, as `parse` sees them.
///
/// # Errors
/// Where a line cannot be read or is refused, with its number.
pub fn read<E, R: Display>(reader: impl BufRead, parse: impl Fn(&str) -> Result<E, R>) -> Result<Vec<E>, SplashError> {
    let refused = |line, reason: &dyn Display| SplashError::Line { line, reason: reason.to_string() };
    (1..)
        .zip(reader.lines())
        .map(|(line, text)| {
            let text = text.map_err(|error| refused(line, &error))?;
            parse(&text).map_err(|reason| refused(line, &reason))
        })
        .collect()
}

fn check(options: &Options, shared: &Shared, elements: usize, workers: u32) -> Result<(), SplashError> {
    let names = shared.names();
    if let Some(name) = names.iter().enumerate().find_map(|(i, name)| names[..i].contains(name).then_some(name)) {
        return Err(SplashError::SameName { name: name.clone() });
    }
    let arrays = shared.arrays().filter(|(_, array)| array.is_empty()).map(|(name, _)| name);
    let sparse = shared.sparse_arrays().filter(|(_, array)| array.is_empty()).map(|(name, _)| name);
    if let Some(name) = arrays.chain(sparse).next() {
        return Err(SplashError::Empty { name: name.to_owned() });
    }
    match options.degree {
        Degree::Fixed(degree) if !(1..=workers).contains(&degree) => {
            return Err(SplashError::Degree { degree, workers });
        }
        _ => {}
    }
    if options.synchronisations == 0 {
        return Err(SplashError::Synchronisations);
    }
    if u32::try_from(elements).is_err() { Err(SplashError::TooMany) } else { Ok(()) }
}

/// Takes the variables out of what the first worker handed back.
fn finish(mut shared: Shared, mut outcome: Outcome) -> Result<Trained, Error> {
    let damaged = || Error::from(SplashError::Result);
    let first = outcome.results.first_mut().ok_or_else(damaged)?;
    let (rest, length) = first.split_last_chunk().ok_or_else(damaged)?;
    let length = u64::from_le_bytes(*length) as usize;
    let (rest, variables) = rest.split_at_checked(rest.len().wrapping_sub(length)).ok_or_else(damaged)?;
    if !shared.set_from_bytes(variables) {
        return Err(damaged());
    }
    let rest = rest.len();
    first.truncate(rest);
    Ok(Trained { shared, outcome })
}

/// Puts positions into an order that follows from a seed and a stream.
fn shuffle(positions: &mut [u32], seed: u64, stream: u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for i in (1..positions.len()).rev() {
        let other = (u128::from(random.next_u64()) * (i as u128 + 1)) >> 64;
        positions.swap(i, other as usize);
    }
}
