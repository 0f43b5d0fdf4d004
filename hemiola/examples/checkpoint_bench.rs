//! What saving costs: workers change a table of ten million numbers, with checkpoints all the time or with none.
//!
//! `checkpoint_bench threads|tcp CLOCKS [DIR]`; `bench/checkpoints.py` runs both and compares.

use hemiola::checkpoint::{Checkpoints, Every};
use hemiola::{Deployment, Error, TableId, TableSchema, Values, Worker};
use std::io::Write;

const TABLE: TableId = TableId(0);
const ROWS: u64 = 1_000_000;
const WIDTH: u32 = 10;
/// Rows that a worker reads and changes in a clock.
const BATCH: u64 = 20_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (place, clocks, directory) = match arguments.as_slice() {
        [place, clocks] => (place, clocks.parse()?, None),
        [place, clocks, directory] => (place, clocks.parse()?, Some(directory)),
        _ => return Err("usage: checkpoint_bench threads|tcp CLOCKS [DIR]".into()),
    };
    let deployment = if place == "tcp" { Deployment::tcp(2, 1) } else { Deployment::threads(2) };
    let tables = [TableSchema::dense("numbers", ROWS, WIDTH)];
    let program = |worker: &mut Worker| change(worker, clocks);
    let outcome = match directory {
        None => hemiola::run_observed(&deployment, &tables, &program, &mut |_| {})?,
        Some(directory) => {
            // The next one begins as soon as the last is whole.
            let checkpoints = Checkpoints::new(directory, Every::Clocks(1));
            hemiola::run_saved(&deployment, &tables, &checkpoints, &program, &mut |_| {})?
        }
    };
    let seconds: f64 = outcome.splits.iter().map(|split| split.compute_seconds + split.wait_seconds).sum();
    writeln!(std::io::stdout(), "{:.3} {seconds:.3}", outcome.seconds)?;
    Ok(())
}

fn change(worker: &mut Worker, clocks: u32) -> Result<Vec<u8>, Error> {
    let me = u64::from(worker.id().0);
    for clock in 0..u64::from(clocks) {
        // Rows all over the table, others in every clock.
        let mut rows: Vec<u64> = (0..BATCH).map(|i| (i * 49 + clock * 7919 + me * 500_009) % ROWS).collect();
        rows.sort_unstable();
        let Values::Dense { numbers, .. } = worker.get(TABLE, &rows)? else { unreachable!("the table is dense") };
        let update = numbers.iter().map(|x| 0.01 - 0.001 * x).collect();
        worker.inc(TABLE, &rows, &Values::dense(WIDTH, update))?;
        worker.clock()?;
        if worker.checkpoint_due() {
            worker.save(&[&clock.to_le_bytes()])?;
        }
    }
    Ok(Vec::new())
}
