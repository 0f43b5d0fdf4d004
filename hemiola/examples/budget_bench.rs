//! A job that has more to send than it may: every worker changes rows as fast as it can for some seconds, while
//! somebody else looks at the counters of the network. See bench/budget.py, which starts it.
//!
//! Arguments: where to listen, worker processes, bytes per second, seconds, and the command that starts a process.

use hemiola::tcp::Config;
use hemiola::{Budget, Consistency, Deployment, Error, Priority, Rows, TableId, TableSchema, Values, Worker};
use std::time::{Duration, Instant};

const TABLE: TableId = TableId(0);
const ROWS: u64 = 20_000;
const WIDTH: u32 = 32;
/// So many rows are changed at once.
const AT_ONCE: u64 = 100;

fn work(worker: &mut Worker, seconds: f64) -> Result<Vec<u8>, Error> {
    let mut numbers = Vec::new();
    worker.get_dense(TABLE, &Rows::Range(0..ROWS), &mut numbers)?;
    let updates = Values::dense(WIDTH, vec![0.001; (AT_ONCE * u64::from(WIDTH)) as usize]);
    let (began, mut first) = (Instant::now(), u64::from(worker.id().0) * AT_ONCE);
    let mut clocks = began.elapsed();
    while began.elapsed().as_secs_f64() < seconds {
        let rows: Vec<u64> = (first..first + AT_ONCE).collect();
        worker.inc(TABLE, &rows, &updates)?;
        first = (first + AT_ONCE) % ROWS;
        std::thread::sleep(Duration::from_micros(500));
        if began.elapsed() > clocks + Duration::from_secs(5) {
            clocks = began.elapsed();
            worker.clock()?;
        }
    }
    // A model, which keeps to the budget as well.
    Ok(numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [bind, processes, bytes_per_second, seconds, command @ ..] = &arguments[..] else {
        return Err("expected an address, processes, bytes per second, seconds and a command".into());
    };
    let budget = Budget { bytes_per_second: bytes_per_second.parse()?, priority: Priority::RelativeMagnitude };
    let seconds: f64 = seconds.parse()?;
    let program = std::env::current_exe()?.into_os_string();
    let own = arguments.iter().map(Into::into);
    let command = command.iter().map(Into::into).chain([program]).chain(own).collect();
    let config = Config {
        processes: processes.parse()?,
        bind: bind.parse()?,
        insecure: true,
        budget: Some(budget),
        command: Some(command),
        ..Config::default()
    };
    let table =
        TableSchema { consistency: Consistency::Essp { staleness: 2 }, ..TableSchema::dense("model", ROWS, WIDTH) };
    hemiola::run(&Deployment::Tcp(config), &[table], |worker| work(worker, seconds))?;
    Ok(())
}
