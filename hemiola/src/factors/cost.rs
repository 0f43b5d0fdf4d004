//! Whether to exchange factors or the matrix itself: what an iteration costs either way (Xie et al., section 4.1).
//!
//! With `P` peers, `K` pairs in a minibatch and a matrix of `J` rows and `D` columns, peers that send to everyone send
//! `P (P − 1) K (J + D)` numbers in an iteration; the paper counts what a peer keeps for itself too, and says `P²`. With
//! a fan-out of `Q` they send `P Q K (J + D)`. On tables every worker sends its update and receives the matrix, `P J D`
//! numbers each way. Factors are subtracted by each who receives them, which the estimate of time counts as well.

use hemiola_core::Init;
use hemiola_core::codec::START_BYTES;
use hemiola_core::peer::{BlockWriter, Factor, Matrix, Shape};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Instant;

const NUMBER_BYTES: f64 = 4.0;
const ROW_ID_BYTES: f64 = 8.0;
/// What the bandwidth between two processes of this machine is measured with.
const TRANSFER_BYTES: usize = 64 << 20;
const PIECE_BYTES: usize = 1 << 20;

/// What keeps the workers' copies of a matrix together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sync {
    /// Peers exchange factor pairs.
    Factors,
    /// Workers exchange updates and the matrix with servers.
    Matrix,
    /// Whichever is estimated to take less time.
    #[default]
    Auto,
}

/// A job's size and what its machines can do.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// How many peers or workers, each on a machine of its own: `P`.
    pub peers: u32,
    /// To how many others a peer sends; `None` is to all: `Q`.
    pub fanout: Option<u32>,
    /// How many servers would share the matrix.
    pub servers: u32,
    /// How many pairs a worker has in an iteration: `K`.
    pub pairs: u32,
    /// How many rows the matrix has: `J`.
    pub rows: u32,
    /// How many columns it has: `D`.
    pub columns: u32,
    /// How many numbers of a `u` and of a `v` are not zero on average, where those are written as sparse factors.
    pub nonzeros: [Option<f64>; 2],
    /// What those machines can do.
    pub machine: Machine,
}

/// What a machine can do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// What it can send, and receive at the same time, in bytes per second.
    pub bytes_per_second: f64,
    /// How many products of two numbers it can subtract from a matrix in a second.
    pub products_per_second: f64,
}

/// What was chosen, and what the choice rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// [`Sync::Factors`] or [`Sync::Matrix`].
    pub sync: Sync,
    /// Bytes that all machines send in an iteration, and its seconds for sending and applying, with factors.
    pub factors: (f64, f64),
    /// The same with the matrix.
    pub matrix: (f64, f64),
    machine: Machine,
}

impl Sync {
    /// Factors or the matrix, for a job of this size.
    #[must_use]
    pub fn choose(self, cost: &Cost) -> Choice {
        let factors = (cost.bytes_of_factors(), cost.seconds_of_factors());
        let matrix = (cost.bytes_of_matrix(), cost.seconds_of_matrix());
        let sync = match self {
            Self::Auto if factors.1 <= matrix.1 => Self::Factors,
            Self::Auto => Self::Matrix,
            told => told,
        };
        Choice { sync, factors, matrix, machine: cost.machine }
    }
}

impl Cost {
    /// Bytes that all peers send in an iteration.
    #[must_use]
    pub fn bytes_of_factors(&self) -> f64 {
        f64::from(self.peers) * self.receivers() * self.block_bytes()
    }

    /// Bytes that workers and servers send in an iteration: rows that a worker's pairs change, and rows that anyone's do.
    #[must_use]
    pub fn bytes_of_matrix(&self) -> f64 {
        f64::from(self.peers) * (self.update_bytes() + self.matrix_bytes())
    }

    /// Seconds in which a machine sends an iteration's factors and subtracts those of its senders.
    #[must_use]
    pub fn seconds_of_factors(&self) -> f64 {
        let Machine { bytes_per_second, products_per_second } = self.machine;
        let products = (self.receivers() + 1.0) * self.products();
        self.receivers() * self.block_bytes() / bytes_per_second + products / products_per_second
    }

    /// Seconds in which updates are made, sent to the servers and added there, and the matrix is sent back. Where there
    /// are fewer servers than workers, it is the servers that take longest.
    #[must_use]
    pub fn seconds_of_matrix(&self) -> f64 {
        let Machine { bytes_per_second, products_per_second } = self.machine;
        let per_server = f64::from(self.peers) / f64::from(self.servers.max(1));
        let bytes = (self.update_bytes() + self.matrix_bytes()) * per_server.max(1.0);
        let products = self.products() + per_server * self.update_bytes() / NUMBER_BYTES;
        bytes / bytes_per_second + products / products_per_second
    }

    fn receivers(&self) -> f64 {
        let others = self.peers.saturating_sub(1);
        f64::from(self.fanout.map_or(others, |fanout| fanout.min(others)))
    }

    fn nonzeros(&self, side: usize) -> f64 {
        let width = f64::from([self.rows, self.columns][side]);
        self.nonzeros[side].map_or(width, |nonzeros| nonzeros.min(width))
    }

    fn products(&self) -> f64 {
        f64::from(self.pairs) * self.nonzeros(0) * self.nonzeros(1)
    }

    fn block_bytes(&self) -> f64 {
        let bytes_of = |side: usize| {
            let dense = NUMBER_BYTES * f64::from([self.rows, self.columns][side]);
            // A non-zero is a place and a number; what is shorter dense is sent so.
            self.nonzeros[side].map_or(dense, |nonzeros| dense.min(2.0 * NUMBER_BYTES * nonzeros + NUMBER_BYTES))
        };
        START_BYTES as f64 + f64::from(self.pairs) * (bytes_of(0) + bytes_of(1))
    }

    /// The rows that the pairs of so many workers change.
    fn rows_bytes(&self, workers: u32) -> f64 {
        let changed = f64::from(workers) * f64::from(self.pairs) * self.nonzeros(0);
        changed.min(f64::from(self.rows)) * (NUMBER_BYTES * f64::from(self.columns) + ROW_ID_BYTES)
    }

    fn update_bytes(&self) -> f64 {
        self.rows_bytes(1)
    }

    fn matrix_bytes(&self) -> f64 {
        self.rows_bytes(self.peers)
    }
}

impl Machine {
    /// Measures this machine: a transfer between two of its sockets, and blocks subtracted from a matrix. Takes a
    /// fraction of a second. On several machines the network between them is what counts, if it is slower.
    ///
    /// # Errors
    /// If there are no such sockets.
    pub fn measure() -> io::Result<Self> {
        Ok(Self { bytes_per_second: measure_bandwidth()?, products_per_second: measure_products() })
    }
}

fn measure_bandwidth() -> io::Result<f64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut sender = TcpStream::connect(listener.local_addr()?)?;
    let (mut receiver, _) = listener.accept()?;
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let piece = vec![1; PIECE_BYTES];
            // If the receiver fails it is what says so.
            (0..TRANSFER_BYTES / PIECE_BYTES).all(|_| sender.write_all(&piece).is_ok())
        });
        let mut piece = vec![0; PIECE_BYTES];
        (0..TRANSFER_BYTES / PIECE_BYTES).try_for_each(|_| receiver.read_exact(&mut piece))
    })?;
    Ok(TRANSFER_BYTES as f64 / began.elapsed().as_secs_f64())
}

fn measure_products() -> f64 {
    let shape = Shape { rows: 256, columns: 1024 };
    let mut writer = BlockWriter::new(shape);
    let (u, v) = (vec![1e-3; shape.rows as usize], vec![1e-3; shape.columns as usize]);
    (0..32).for_each(|_| writer.write(Factor::Dense(&u), Factor::Dense(&v)).expect("it fits the shape"));
    let (block, mut matrix) = (writer.finish(), Matrix::new(shape, Init::Zero));
    matrix.subtract([&block]);
    let began = Instant::now();
    matrix.subtract([&block; 4]);
    4.0 * block.products() as f64 / began.elapsed().as_secs_f64()
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (chosen, other, name, instead) = match self.sync {
            Sync::Matrix => (self.matrix, self.factors, "the matrix is exchanged", "factors"),
            Sync::Factors | Sync::Auto => (self.factors, self.matrix, "factors are exchanged", "the matrix"),
        };
        write!(
            f,
            "{name}: an iteration sends {} and takes {} at {}/s, and with {instead} it would send {} and take {}",
            bytes(chosen.0),
            seconds(chosen.1),
            bytes(self.machine.bytes_per_second),
            bytes(other.0),
            seconds(other.1),
        )
    }
}

fn bytes(bytes: f64) -> String {
    match bytes {
        b if b >= 1e9 => format!("{:.1} GB", b / 1e9),
        b if b >= 1e6 => format!("{:.1} MB", b / 1e6),
        b if b >= 1e3 => format!("{:.1} kB", b / 1e3),
        b => format!("{b:.0} bytes"),
    }
}

fn seconds(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.1} s"),
        s if s >= 1e-3 => format!("{:.1} ms", s * 1e3),
        s => format!("{:.1} µs", s * 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(rows: u32, columns: u32) -> Cost {
        Cost {
            peers: 12,
            fanout: None,
            servers: 12,
            pairs: 100,
            rows,
            columns,
            nonzeros: [None, None],
            // Those of the paper: 64 cores, and 10 Gbit/s.
            machine: Machine { bytes_per_second: 1.25e9, products_per_second: 1e12 },
        }
    }

    #[test]
    fn the_estimates_are_the_formulas() {
        let full = cost(1000, 2000);
        let close = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.01, "{found} {expected}");
        close(full.bytes_of_factors(), 4.0 * 12.0 * 11.0 * 100.0 * 3000.0);
        close(full.bytes_of_matrix(), 2.0 * 4.0 * 12.0 * 1000.0 * 2000.0);
        let partial = Cost { fanout: Some(4), ..full.clone() };
        close(partial.bytes_of_factors(), 4.0 * 12.0 * 4.0 * 100.0 * 3000.0);
        assert_eq!(Cost { fanout: Some(99), ..full.clone() }.bytes_of_factors(), full.bytes_of_factors());
        let sparse = Cost { nonzeros: [None, Some(50.0)], ..full.clone() };
        close(sparse.bytes_of_factors(), 4.0 * 12.0 * 11.0 * 100.0 * (1000.0 + 101.0));
        let useless = Cost { nonzeros: [None, Some(1990.0)], ..full.clone() };
        assert_eq!(useless.bytes_of_factors(), full.bytes_of_factors(), "shorter dense");
        assert_eq!(Cost { peers: 1, ..full.clone() }.bytes_of_factors(), 0.0);
        // Eleven blocks of others and one's own, at 2e8 products each.
        let free = Machine { bytes_per_second: f64::INFINITY, products_per_second: 1e9 };
        close(Cost { machine: free, ..full }.seconds_of_factors(), 12.0 * 0.2);
    }

    #[test]
    fn large_matrices_go_by_factors_and_small_ones_as_they_are() {
        let choose = |cost: &Cost| Sync::Auto.choose(cost).sync;
        assert_eq!(choose(&cost(325_000, 20_000)), Sync::Factors, "the paper's largest");
        assert_eq!(choose(&cost(10, 784)), Sync::Matrix, "ten classes of images");
        let many = Cost { peers: 1000, servers: 1000, ..cost(10_000, 10_000) };
        assert_eq!(choose(&many), Sync::Matrix, "quadratic in the number of peers");
        assert_eq!(choose(&Cost { fanout: Some(4), ..many }), Sync::Factors, "linear with a fan-out");
        let slow = Machine { bytes_per_second: 1.25e9, products_per_second: 1e8 };
        let slow = Cost { machine: slow, ..cost(20_000, 20_000) };
        assert_eq!(choose(&slow), Sync::Matrix, "subtracting what others send takes longer than the network");
        assert_eq!(Sync::Factors.choose(&slow).sync, Sync::Factors, "whoever is told does not choose");
        let apart = Cost { servers: 1, ..cost(2000, 2000) };
        assert!(apart.seconds_of_matrix() > 10.0 * cost(2000, 2000).seconds_of_matrix(), "one server for all");
    }

    #[test]
    fn the_reason_is_one_sentence() {
        assert_eq!(
            Sync::Auto.choose(&cost(10, 784)).to_string(),
            "the matrix is exchanged: an iteration sends 754.6 kB and takes 51.1 µs at 1.2 GB/s, and with factors it would \
             send 41.9 MB and take 2.8 ms"
        );
        let sentence = Sync::Auto.choose(&cost(325_000, 20_000)).to_string();
        assert!(sentence.starts_with("factors are exchanged: an iteration sends 18.2 GB and takes "), "{sentence}");
    }

    #[test]
    fn a_machine_can_be_measured() {
        let Machine { bytes_per_second, products_per_second } = Machine::measure().expect("sockets");
        assert!(bytes_per_second > 0.0 && bytes_per_second.is_finite());
        assert!(products_per_second > 0.0 && products_per_second.is_finite());
    }
}
