//! A worker's part of a data set, with the variables: the paper's Parametrized RDD.

use super::exchange::{ENGINE, Exchange};
use super::{Degree, Elements, Options, SplashError, shuffle};
use crate::deployment::WorkerSplit;
use crate::error::Error;
use crate::fetch::{ahead, fetch};
use crate::worker::Worker;
use hemiola_core::WorkerId;
use hemiola_core::shard::tasks::panic_message;
use hemiola_core::splash::degree::{Choice, Round, next_round};
use hemiola_core::splash::{Delayed, Shared};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Marks the algorithm's own reports.
const ALGORITHM: f64 = 1.0;
/// After how many elements variables are looked at, when the one that broke them is searched.
const SEARCH_STEP: usize = 256;

/// What belongs to one element and stays with it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Local<L>(L);

impl<L> Local<L> {
    /// What was set last.
    #[inline]
    pub fn get(&self) -> &L {
        &self.0
    }

    /// Sets it.
    #[inline]
    pub fn set(&mut self, value: L) {
        self.0 = value;
    }

    /// Changes it where it is.
    #[inline]
    pub fn get_mut(&mut self) -> &mut L {
        &mut self.0
    }
}

/// How a pass was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// How many workers processed elements at the same time.
    pub degree: u32,
    /// How often the replicas were combined.
    pub synchronisations: u32,
}

/// The loss of an element.
type Loss<'a, E> = dyn Fn(&E, &Shared) -> f64 + 'a;

/// One worker's part of a data set, its replica of the shared variables, and what belongs to each element.
pub struct DataSet<'a, E, L> {
    worker: &'a mut Worker,
    exchange: Exchange,
    options: Options,
    elements: &'a Elements<'a, E>,
    /// Which elements are this worker's.
    part: Vec<u32>,
    state: State<L>,
    choice: Choice,
    passes: u64,
    failed: bool,
}

/// What a pass changes.
struct State<L> {
    shared: Shared,
    /// What belongs to each element of the part.
    locals: Vec<Local<L>>,
    delayed: Delayed,
}

/// A pass under way: in which order the part is processed, in how many blocks, and what it began with.
struct Course<L> {
    order: Vec<u32>,
    blocks: usize,
    /// How many blocks each worker has left.
    left: Vec<usize>,
    began: (Shared, Vec<Local<L>>),
}

impl<L> Course<L> {
    /// The next `count` blocks of worker `me`.
    fn next(&self, me: usize, count: usize) -> &[u32] {
        let first = self.blocks - self.left[me];
        &self.order[self.bound(first)..self.bound(first + count)]
    }

    /// The next block of worker `me`, and the one after it.
    fn next_two(&self, me: usize) -> (&[u32], &[u32]) {
        let first = self.blocks - self.left[me];
        self.next(me, 2).split_at(self.bound(first + 1) - self.bound(first))
    }

    /// Where a block begins in the order.
    fn bound(&self, block: usize) -> usize {
        self.order.len() * block / self.blocks
    }
}

impl<'a, E, L: Clone + Default> DataSet<'a, E, L> {
    pub(super) fn new(
        worker: &'a mut Worker,
        exchange: Exchange,
        options: &Options,
        shared: &Shared,
        elements: &'a Elements<'a, E>,
        part: Vec<u32>,
    ) -> Self {
        let choice = Choice::new(worker.workers());
        let state =
            State { shared: shared.clone(), locals: vec![Local::default(); part.len()], delayed: Delayed::default() };
        let (options, passes, failed) = (*options, 0, false);
        Self { worker, exchange, options, elements, part, state, choice, passes, failed }
    }

    /// The worker's number.
    #[must_use]
    pub fn worker(&self) -> WorkerId {
        self.worker.id()
    }

    /// How many workers there are.
    #[must_use]
    pub fn workers(&self) -> u32 {
        self.worker.workers()
    }

    /// Seconds since the job began; virtual ones in the simulator.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.worker.seconds()
    }

    /// What the shared variables hold since the last pass.
    #[must_use]
    pub fn shared(&self) -> &Shared {
        &self.state.shared
    }

    /// How many elements are this worker's.
    #[must_use]
    pub fn len(&self) -> usize {
        self.part.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.part.is_empty()
    }

    /// Takes a pass over the data set: every worker processes its part, and the replicas are combined. All workers must
    /// call it.
    ///
    /// # Errors
    /// If `process` panics, makes a variable infinite or not a number, or an element's weight is not a number from zero
    /// up; or if the job has been stopped. Then nothing of the pass is applied, on no worker.
    pub fn run<P>(&mut self, process: P) -> Result<Pass, Error>
    where
        P: FnMut(&E, f64, &mut Shared, &mut Local<L>),
    {
        self.pass(process, None)
    }

    /// As [`DataSet::run`]; the degree of parallelism, if it is [`Degree::Auto`], is chosen by the losses of elements.
    ///
    /// # Errors
    /// As [`DataSet::run`].
    pub fn run_tested<P>(&mut self, process: P, loss: impl Fn(&E, &Shared) -> f64) -> Result<Pass, Error>
    where
        P: FnMut(&E, f64, &mut Shared, &mut Local<L>),
    {
        self.pass(process, Some(&loss))
    }

    /// What `map` makes of each element of this worker's part.
    pub fn map<R>(&self, mut map: impl FnMut(&E, &Shared, &Local<L>) -> R) -> Vec<R> {
        let pairs = self.part.iter().zip(&self.state.locals);
        pairs.map(|(&element, local)| map(&self.elements.all[element as usize], &self.state.shared, local)).collect()
    }

    /// Calls `visit` with each element of this worker's part, to set what belongs to it.
    pub fn foreach(&mut self, mut visit: impl FnMut(&E, &Shared, &mut Local<L>)) {
        for (&element, local) in self.part.iter().zip(&mut self.state.locals) {
            visit(&self.elements.all[element as usize], &self.state.shared, local);
        }
    }

    /// Combines what `map` makes of all elements of the data set; `None` if it has none. All workers must call it, and
    /// get the same.
    ///
    /// # Errors
    /// If the job has been stopped.
    pub fn reduce<const N: usize>(
        &mut self,
        mut map: impl FnMut(&E, &Shared, &Local<L>) -> [f64; N],
        combine: impl Fn([f64; N], [f64; N]) -> [f64; N],
    ) -> Result<Option<[f64; N]>, Error> {
        let pairs = self.part.iter().zip(&self.state.locals);
        let mapped =
            pairs.map(|(&element, local)| map(&self.elements.all[element as usize], &self.state.shared, local));
        let mine = mapped.reduce(&combine);
        // Every worker has a place of its own, so that the sums are what each of them put there.
        let (me, workers) = (self.worker.id().index(), self.worker.workers() as usize);
        let mut report = vec![ENGINE; 1 + workers * (N + 1)];
        if let Some(mine) = mine {
            let place = &mut report[1 + me * (N + 1)..][..=N];
            place[0] = 1.0;
            place[1..].copy_from_slice(&mine);
        }
        let index = self.worker.report(&report);
        let all = self.worker.totals(index)?;
        let parts = all[1..].chunks_exact(N + 1).filter(|place| place[0] == 1.0);
        Ok(parts.filter_map(|place| place[1..].first_chunk().copied()).reduce(combine))
    }

    /// Adds `values` to a report that all workers make; the observer of the run is shown the sums. Gives its number, for
    /// [`DataSet::totals`].
    pub fn report(&mut self, values: &[f64]) -> u32 {
        let mark = if self.worker.id().0 == 0 { ALGORITHM } else { 0.0 };
        self.worker.report(&[&[mark], values].concat())
    }

    /// The sums of a report, once all workers have made it.
    ///
    /// # Errors
    /// If the job has been stopped.
    pub fn totals(&mut self, report: u32) -> Result<Vec<f64>, Error> {
        Ok(self.worker.totals(report)?.split_off(1))
    }

    /// Where this worker's time went so far.
    #[must_use]
    pub fn split(&self) -> WorkerSplit {
        self.worker.split()
    }

    fn pass<P>(&mut self, mut process: P, loss: Option<&Loss<'_, E>>) -> Result<Pass, Error>
    where
        P: FnMut(&E, f64, &mut Shared, &mut Local<L>),
    {
        if self.failed {
            return Err(SplashError::Failed.into());
        }
        self.passes += 1;
        let mut order: Vec<u32> = (0..self.part.len() as u32).collect();
        if self.options.shuffle {
            shuffle(&mut order, self.options.seed, (self.passes << 32) + u64::from(self.worker.id().0));
        }
        let blocks = self.options.synchronisations as usize;
        let left = vec![blocks; self.worker.workers() as usize];
        let mut course = Course { order, blocks, left, began: (self.state.shared.clone(), self.state.locals.clone()) };
        let passed = self.rounds(&mut course, &mut process, loss);
        match &passed {
            Ok(_) => self.state.delayed.commit(),
            Err(_) => {
                (self.state.shared, self.state.locals) = course.began;
                self.state.delayed.discard();
                self.failed = true;
            }
        }
        passed
    }

    fn rounds<P>(&mut self, course: &mut Course<L>, process: &mut P, loss: Option<&Loss<'_, E>>) -> Result<Pass, Error>
    where
        P: FnMut(&E, f64, &mut Shared, &mut Local<L>),
    {
        let (me, workers) = (self.worker.id(), self.worker.workers());
        let mut pass = Pass { degree: workers, synchronisations: 0 };
        match (self.options.degree, loss) {
            (Degree::Largest, _) | (Degree::Auto, None) => {}
            (Degree::Fixed(degree), _) => pass.degree = degree,
            (Degree::Auto, Some(loss)) => {
                let sizes = self.choice.trial();
                if sizes.len() > 1 {
                    self.try_out(course, process, loss, &sizes)?;
                    pass.synchronisations += 1;
                } else if !sizes.is_empty() {
                    self.choice.choose(&sizes, &[0.0]);
                }
                pass.degree = self.choice.degree();
            }
        }
        while let Some(Round { members, blocks }) = next_round(&course.left, pass.degree) {
            let m = members.len() as u32;
            let active = members.contains(&me.0);
            if active {
                self.process(course.next(me.index(), blocks), m, process, &course.began.1)?;
            }
            members.iter().for_each(|&worker| course.left[worker as usize] -= blocks);
            self.synchronise(m, active)?;
            pass.synchronisations += 1;
        }
        Ok(pass)
    }

    fn synchronise(&mut self, m: u32, active: bool) -> Result<(), Error> {
        if self.worker.workers() == 1 {
            self.state.shared.settle();
            return Ok(());
        }
        self.exchange.synchronise(self.worker, &mut self.state.shared, m, active)
    }

    /// Lets groups of several sizes process a block each, and applies what the group with the smallest loss came to. All
    /// are tested on the same elements, the next block of every worker, which none has seen in this pass.
    fn try_out<P>(
        &mut self,
        course: &mut Course<L>,
        process: &mut P,
        loss: &Loss<'_, E>,
        sizes: &[u32],
    ) -> Result<(), Error>
    where
        P: FnMut(&E, f64, &mut Shared, &mut Local<L>),
    {
        course.blocks *= 2;
        course.left.iter_mut().for_each(|left| *left *= 2);
        let me = self.worker.id().0;
        let end = |group: usize| sizes[..=group].iter().sum::<u32>();
        let mine = (0..sizes.len()).position(|group| me < end(group)).unwrap_or(0);
        let (train, test) = course.next_two(me as usize);
        let mark = self.state.delayed.mark();
        // A weight that the algorithm does not stand is no failure where a smaller one can be chosen.
        let broke = match self.process(train, sizes[mine], process, &course.began.1) {
            Err(Error::Splash(SplashError::NotFinite { .. } | SplashError::NotFiniteOnce { .. })) if mine > 0 => true,
            processed => processed.map(|()| false)?,
        };
        if broke {
            self.state.shared.revert();
        }
        let candidates = self.exchange.candidates(self.worker, &self.state.shared, sizes, mine)?;
        let mut report = vec![ENGINE; 2 + sizes.len()];
        report[1] = test.len() as f64;
        for (sum, candidate) in report[2..].iter_mut().zip(&candidates) {
            let elements = test.iter().map(|&at| &self.elements.all[self.part[at as usize] as usize]);
            *sum = elements.map(|element| loss(element, candidate)).sum();
        }
        if broke {
            report[2 + mine] = f64::INFINITY;
        }
        self.charge(test)?;
        let index = self.worker.report(&report);
        let totals = self.worker.totals(index)?;
        let losses: Vec<f64> = totals[2..].iter().map(|sum| sum / totals[1]).collect();
        let best = self.choice.choose(sizes, &losses);
        if mine != best {
            self.state.shared.revert();
            self.state.delayed.forget_since(mark, train.iter().map(|&at| at as usize));
            for &at in train {
                self.state.locals[at as usize].clone_from(&course.began.1[at as usize]);
            }
        }
        course.left[(end(best) - sizes[best]) as usize..end(best) as usize].iter_mut().for_each(|left| *left -= 1);
        self.synchronise(sizes[best], mine == best)
    }

    /// Lets virtual time pass for elements of the part.
    fn charge(&mut self, positions: &[u32]) -> Result<(), Error> {
        let element = |at: &u32| &self.elements.all[self.part[*at as usize] as usize];
        let units = match self.elements.cost {
            Some(cost) => positions.iter().map(|at| cost(element(at))).sum(),
            None => positions.len() as u64,
        };
        self.worker.work(units)
    }

    /// Processes elements of the part, as one of `m` workers.
    fn process<P>(&mut self, positions: &[u32], m: u32, process: &mut P, began: &[Local<L>]) -> Result<(), Error>
    where
        P: FnMut(&E, f64, &mut Shared, &mut Local<L>),
    {
        self.go_on(m);
        let processed = self.process_all(positions, m, process);
        if let Some(variable) = self.state.shared.broken().map(str::to_owned) {
            return Err(self.who_broke(variable, positions, m, process, began).into());
        }
        processed?;
        self.charge(positions)
    }

    fn go_on(&mut self, m: u32) {
        if m > 1 {
            self.state.shared.go_on();
        }
    }

    fn process_all<P>(&mut self, positions: &[u32], m: u32, process: &mut P) -> Result<(), SplashError>
    where
        P: FnMut(&E, f64, &mut Shared, &mut Local<L>),
    {
        let Self {
            elements: Elements { all, weight: weigh, fetch: fetch_more, .. },
            part,
            state: State { shared, locals, delayed },
            ..
        } = self;
        let at = Cell::new(0);
        let each = || {
            let due = !delayed.is_empty();
            for (turn, &position) in positions.iter().enumerate() {
                for &next in ahead(positions, turn, 2) {
                    fetch(&all[part[next as usize] as usize], 1);
                }
                if let Some(fetch_more) = fetch_more {
                    ahead(positions, turn, 1).iter().for_each(|&next| fetch_more(&all[part[next as usize] as usize]));
                }
                let position = position as usize;
                let element = part[position] as usize;
                at.set(element);
                let mut weight = f64::from(m);
                if let Some(weigh) = weigh {
                    let own = weigh(&all[element]);
                    if !(own.is_finite() && own >= 0.0) {
                        return Err(SplashError::Weight { element, weight: own });
                    }
                    weight *= own;
                }
                if due {
                    shared.execute(delayed.due(position));
                }
                process(&all[element], weight, shared, &mut locals[position]);
                if !shared.declared().is_empty() {
                    delayed.declare(position, part.len(), m, shared.declared());
                }
            }
            Ok(())
        };
        catch_unwind(AssertUnwindSafe(each)).unwrap_or_else(|panic| {
            Err(SplashError::Panicked { element: at.get(), message: panic_message(panic.as_ref()) })
        })
    }

    /// Finds the element at which a variable broke, by processing those since the last synchronisation again. So nothing
    /// has to be looked at while all is well.
    fn who_broke<P>(
        &mut self,
        variable: String,
        positions: &[u32],
        m: u32,
        process: &mut P,
        began: &[Local<L>],
    ) -> SplashError
    where
        P: FnMut(&E, f64, &mut Shared, &mut Local<L>),
    {
        self.state.shared.revert();
        let restore = |state: &mut State<L>, positions: &[u32]| {
            positions.iter().for_each(|&at| state.locals[at as usize].clone_from(&began[at as usize]));
        };
        restore(&mut self.state, positions);
        self.go_on(m);
        for step in positions.chunks(SEARCH_STEP) {
            let before = self.state.shared.clone();
            if self.process_all(step, m, process).is_ok() && self.state.shared.broken().is_none() {
                continue;
            }
            self.state.shared = before;
            restore(&mut self.state, step);
            for at in step {
                let processed = self.process_all(std::slice::from_ref(at), m, process);
                if let Some(variable) = self.state.shared.broken().map(str::to_owned) {
                    return SplashError::NotFinite { variable, element: self.part[*at as usize] as usize };
                }
                if let Err(error) = processed {
                    return error;
                }
            }
        }
        SplashError::NotFiniteOnce { variable, elements: positions.len() }
    }
}
