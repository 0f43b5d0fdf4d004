//! A filter of one's own: rows travel in every fourth clock only, and what waits is added up meanwhile.
//!
//! `cargo run --example own_filter -- tcp` (or `sim`). Filters of one's own stand in a chain beside those that are there:
//! here the row ids that travel again and again are replaced by a signature.

use hemiola::filter::{Entry, KeyCache, Reason, Selection};
use hemiola::{Consistency, Deployment, Error, Filter, Filters, RowRef, TableId, TableSchema, Values, Worker};
use std::io::Write;

const COUNTS: TableId = TableId(0);
const ROWS: u64 = 1000;
const CLOCKS: u32 = 20;

/// Lets everything travel in every `period`-th clock. What it holds back is kept, unless it says otherwise.
#[derive(Debug)]
struct Seldom {
    period: u32,
}

impl Selection for Seldom {
    fn name(&self) -> &str {
        "seldom"
    }

    fn travels(&self, entry: &Entry<'_>) -> Result<bool, Reason> {
        Ok(entry.clock.0 % self.period == self.period - 1)
    }
}

/// What one worker does: it adds one to every row in every clock.
fn work(worker: &mut Worker) -> Result<Vec<u8>, Error> {
    let rows: Vec<u64> = (0..ROWS).collect();
    for clock in 0..CLOCKS {
        worker.inc(COUNTS, &rows, &Values::dense(1, vec![1.0; rows.len()]))?;
        if clock + 1 == CLOCKS {
            // What waits at the end of a job travels too.
            worker.flush()?;
        }
        worker.clock()?;
    }
    let counts = worker.get_latest(COUNTS, &rows)?;
    let RowRef::Dense(count) = counts.row(7) else { unreachable!("the table is dense") };
    assert_eq!(count, [(CLOCKS * worker.workers()) as f32], "every update has arrived");
    Ok(Vec::new())
}

fn main() -> Result<(), Error> {
    let deployment = match std::env::args().nth(1).as_deref() {
        Some("tcp") => Deployment::tcp(2, 1),
        _ => Deployment::Sim(hemiola::sim::Config {
            servers: hemiola::sim::Servers::Apart(1),
            ..hemiola::sim::Config::new(2)
        }),
    };
    let updates = vec![Filter::selection(Seldom { period: 4 }), Filter::encoding(KeyCache::default())];
    let counts = TableSchema {
        consistency: Consistency::Bsp,
        filters: Filters { updates, rows: Vec::new() },
        ..TableSchema::dense("counts", ROWS, 1)
    };
    let outcome = hemiola::run(&deployment, &[counts], work)?;
    for saving in &outcome.savings {
        let line = format!("{}: {} bytes of {} travelled", saving.filter, saving.bytes_out, saving.bytes_in);
        writeln!(std::io::stdout(), "{line}").map_err(Error::program)?;
        assert!(saving.bytes_out < saving.bytes_in, "it saves something");
    }
    assert!(outcome.savings[0].bytes_out * 3 < outcome.savings[0].bytes_in, "most clocks send nothing");
    Ok(())
}
