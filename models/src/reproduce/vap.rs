//! What the value bound costs, and that it holds.

use super::{Findings, Panel, ReproduceError, Scale, Series, essp};
use crate::mf::StepSize;
use hemiola::{Consistency, Deployment, TableId, TableSchema, Worker, sim};
use std::sync::Mutex;

const TABLE: TableId = TableId(0);

/// Every worker writes its own column of one row and reads the others'. What a worker has written and another has not
/// seen yet is in transit; the largest that it ever was at a read, as a multiple of the bound at the time.
fn largest_in_transit(nodes: u32, bound: f32, seed: u64) -> Result<f64, ReproduceError> {
    let workers = nodes as usize;
    let consistency = Consistency::Vap { bound };
    let table = TableSchema { consistency, ..TableSchema::dense("row", 1, nodes) };
    // Written so far by each worker, and the loosest bound that anything of it was written under.
    let written = Mutex::new(vec![(0.0f64, 0.0f64); workers]);
    let largest = Mutex::new(0.0f64);
    let program = |worker: &mut Worker| {
        let me = worker.id().index();
        worker.get_row(TABLE, 0)?;
        for clock in 0..20u32 {
            for step in 0..6u32 {
                let seen = worker.get_row(TABLE, 0)?;
                let written_now = written.lock().expect("no worker panics").clone();
                for (other, (sum, _)) in written_now.iter().enumerate().filter(|(other, _)| *other != me) {
                    let transit = (sum - f64::from(seen[other])).abs();
                    let writer_bound = f64::from(bound) / f64::from(clock + 1).sqrt();
                    let loosest = written_now[other].1.max(writer_bound);
                    let mut largest = largest.lock().expect("no worker panics");
                    *largest = largest.max(transit / loosest);
                }
                let mut update = vec![0.0; workers];
                // Multiples of 1/1024 add without rounding.
                update[me] = ((step * 37 + clock * 11) % 64 + 1) as f32 / 1024.0;
                worker.inc_row(TABLE, 0, &update)?;
                let mut written = written.lock().expect("no worker panics");
                written[me].0 += f64::from(update[me]);
                written[me].1 = f64::from(bound) / f64::from(clock.max(1)).sqrt();
                drop(written);
                worker.work(1 + u64::from(step))?;
            }
            worker.clock()?;
        }
        Ok(Vec::new())
    };
    let cluster = sim::Config { seed, seconds_per_unit: 50e-6, ..sim::Config::new(nodes) };
    hemiola::run(&Deployment::Sim(cluster), &[table], program)?;
    Ok(largest.into_inner().expect("no worker panics"))
}

pub(super) fn cost(scale: &Scale) -> Result<Findings, ReproduceError> {
    // The bound makes every writer wait for every reader, so a few nodes show what it costs.
    let small = Scale { nodes: scale.nodes.min(4), ratings: scale.ratings.min(20_000), ..*scale };
    let largest = largest_in_transit(small.nodes, 0.125, small.seed)?;
    // One step size for all rows: sums of squared errors grow far beyond any bound on values.
    let train = |consistency| {
        let mut config = essp::config(&small, consistency, 1);
        config.training.step = StepSize::Constant { rate: 0.02 };
        essp::simulate(&small, &config)
    };
    let essp = train(Consistency::Essp { staleness: 2 })?;
    let (essp_bytes, essp_wait) = (bytes(&essp), wait(&essp));
    let (mut sent, mut waits) = (Vec::new(), Vec::new());
    for bound in [1.0f32, 0.3, 0.1] {
        let vap = train(Consistency::Vap { bound })?;
        sent.push((f64::from(bound), bytes(&vap) / essp_bytes));
        waits.push((f64::from(bound), wait(&vap) / essp_wait.max(1e-9)));
    }
    let tightest = (sent[2].1, waits[2].1);
    let holds = largest <= 1.0 && tightest.0 > 1.5 && tightest.1 > 1.5;
    let list = |points: &[(f64, f64)]| {
        points.iter().map(|(bound, times)| format!("{times:.1} x at v0 = {bound:.1}")).collect::<Vec<_>>().join(", ")
    };
    let found = format!(
        "In transit at any read: at most {:.0} % of the bound. Bytes sent against ESSP: {}; waiting: {}.",
        largest * 100.0,
        list(&sent),
        list(&waits)
    );
    let panel = |y: &str, points: Vec<(f64, f64)>| Panel {
        title: format!("VAP against ESSP: {y}"),
        x: "value bound v0".to_owned(),
        y: format!("{y}, multiple of ESSP's"),
        series: vec![Series { name: "VAP".to_owned(), points }],
        lines: true,
    };
    let panels = vec![panel("bytes sent", sent), panel("waiting", waits)];
    Ok(Findings { found, holds, panels })
}

fn bytes(trained: &crate::mf::train::Trained) -> f64 {
    trained.outcome.splits.iter().map(|split| split.bytes_sent as f64).sum()
}

fn wait(trained: &crate::mf::train::Trained) -> f64 {
    trained.outcome.splits.iter().map(|split| split.wait_seconds).sum()
}
