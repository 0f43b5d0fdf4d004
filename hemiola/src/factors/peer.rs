//! What an algorithm author writes against: one peer, its replica of the matrix, and the pairs of its iteration.

use crate::deployment::WorkerSplit;
use crate::error::Error;
use crate::worker::Worker;
use hemiola_core::coordinator::ToCoordinator;
use hemiola_core::peer::{BlockWriter, Broadcast, Factor, Freshness, Matrix};
use hemiola_core::{Clock, Init, WorkerId};
use std::fmt;

/// One peer of a job.
///
/// It reads its replica, writes pairs of factors, and ends the iteration with [`Peer::commit`].
pub struct Peer<'a> {
    worker: &'a mut Worker,
    matrix: Matrix,
    pairs: BlockWriter,
    prox: Option<Box<Prox>>,
}

/// The proximal operator of a regulariser.
type Prox = dyn FnMut(&mut Matrix, Clock);

/// What was subtracted from a replica, for whoever charges the time of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Applied {
    /// How many pairs of factors.
    pub pairs: u64,
    /// How many products of two numbers that took.
    pub products: u64,
    /// How many of these were of two sparse factors: each changed a number by itself.
    pub scattered: u64,
}

impl fmt::Debug for Peer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Peer({})", self.id())
    }
}

impl<'a> Peer<'a> {
    pub(super) fn new(worker: &'a mut Worker, broadcast: &Broadcast, init: Init) -> Self {
        let (matrix, pairs) = (Matrix::new(broadcast.shape, init), BlockWriter::new(broadcast.shape));
        Self { worker, matrix, pairs, prox: None }
    }

    /// The peer's number, from zero.
    #[must_use]
    pub fn id(&self) -> WorkerId {
        self.worker.id()
    }

    /// How many peers the job has.
    #[must_use]
    pub fn peers(&self) -> u32 {
        self.worker.workers()
    }

    /// How many iterations the peer has finished.
    ///
    /// # Errors
    /// If the job has been stopped.
    pub fn now(&self) -> Result<Clock, Error> {
        self.worker.now()
    }

    /// Seconds since the job began; virtual ones in the simulator.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.worker.seconds()
    }

    /// Where the peer's time has gone.
    #[must_use]
    pub fn split(&self) -> WorkerSplit {
        self.worker.split()
    }

    /// The replica. It changes in [`Peer::commit`] and [`Peer::catch_up`] only.
    #[must_use]
    pub fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// Puts numbers into the replica, row by row, in place of those that the schema begins with. It is for beginnings that
    /// are computed from data; every peer is to begin with the same.
    ///
    /// # Panics
    /// If there are not as many numbers as in the matrix.
    pub fn begin_with(&mut self, numbers: &[f32]) {
        self.matrix.numbers_mut().copy_from_slice(numbers);
    }

    /// Sets the proximal operator, which is applied to the replica after pairs have been subtracted at the end of an
    /// iteration, and is told how many iterations the peer has finished then.
    pub fn prox(&mut self, prox: impl FnMut(&mut Matrix, Clock) + 'static) {
        self.prox = Some(Box::new(prox));
    }

    /// Adds a pair to the iteration: `u vᵀ` will be subtracted from every replica that it reaches, and from this one.
    /// An update of a higher rank is several pairs.
    ///
    /// # Errors
    /// If a factor does not fit the matrix.
    pub fn write<'f>(&mut self, u: impl Into<Factor<'f>>, v: impl Into<Factor<'f>>) -> Result<(), Error> {
        Ok(self.pairs.write(u.into(), v.into())?)
    }

    /// Ends the iteration: sends its pairs, waits until the next iteration may be started, subtracts what has come and
    /// what was written here, and applies the proximal operator.
    ///
    /// # Errors
    /// If the wait takes too long or the job has been stopped.
    pub fn commit(&mut self) -> Result<Applied, Error> {
        let (id, block) = (self.id(), self.pairs.finish());
        let clock = self.worker.host().operate(|core| {
            let peer = core.peer(id);
            peer.commit(block);
            peer.clock()
        })?;
        self.worker.host().tell_coordinator(ToCoordinator::Clock { worker: id, clock });
        self.advance(Freshness::Bound)
    }

    /// Waits for the pairs of every iteration that this peer has finished, from all who send to it, and subtracts them:
    /// at the end of a job with staleness the replicas lack nothing after it. Where that brought nothing new the
    /// proximal operator is not applied again.
    ///
    /// # Errors
    /// As [`Peer::commit`].
    pub fn catch_up(&mut self) -> Result<Applied, Error> {
        self.advance(Freshness::Latest)
    }

    fn advance(&mut self, freshness: Freshness) -> Result<Applied, Error> {
        let id = self.id();
        let ((blocks, clock), _) = self.worker.wait_until(
            |core| {
                let peer = core.peer(id);
                peer.advance(freshness).map(|blocks| (blocks, peer.clock()))
            },
            |core, seconds| Error::PeerTimeout { wait: core.peer_wait(id, freshness), seconds },
        )?;
        self.matrix.subtract(blocks.iter().map(|message| &message.block));
        if !blocks.is_empty()
            && let Some(prox) = &mut self.prox
        {
            prox(&mut self.matrix, clock);
        }
        let mut applied = Applied::default();
        for block in blocks.iter().map(|message| &message.block) {
            let products = block.products();
            applied.pairs += block.pairs() as u64;
            applied.products += products;
            applied.scattered += if block.is_scattered() { products } else { 0 };
        }
        Ok(applied)
    }

    /// Adds `values` to a report that all peers make; the sums are shown to the job's observer. Returns the report's
    /// number: a peer's first report belongs to every other peer's first, and so on.
    pub fn report(&mut self, values: &[f64]) -> u32 {
        self.worker.report(values)
    }

    /// Waits until all peers have made report `index`, and gives its sums.
    ///
    /// # Errors
    /// If the wait takes too long or the job has been stopped.
    pub fn totals(&mut self, index: u32) -> Result<Vec<f64>, Error> {
        self.worker.totals(index)
    }

    /// Says that `units` of work were done, each of what the deployment calls a unit. It costs nothing but in the
    /// simulator, where virtual time passes by it; what [`Applied`] says of the work of reconstruction is to be charged
    /// too.
    ///
    /// # Errors
    /// If the simulation has been stopped.
    pub fn work(&mut self, units: u64) -> Result<(), Error> {
        self.worker.work(units)
    }
}
