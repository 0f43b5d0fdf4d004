//! Softmax regression by sufficient factor broadcasting: peers that exchange factors of gradients, not gradients.
//!
//! `cargo run --example factors -- threads` (or `tcp`, or `sim`): the same program on three threads, on three processes
//! that talk to one another, and on three simulated nodes.

use hemiola::factors::{self, MatrixSchema, Peer};
use hemiola::{Deployment, Error};

const CLASSES: usize = 4;
const BATCH: usize = 10;
const STEP: f32 = 1.0;

/// Example `i` of an endless data set: features, and the class of the largest.
fn example(i: usize) -> (Vec<f32>, usize) {
    let x: Vec<f32> = (0..CLASSES).map(|k| ((i * 37 + (k + 1) * (i + 11) * (i + 3)) % 101) as f32 / 101.0).collect();
    let class = (0..CLASSES).max_by(|&a, &b| x[a].total_cmp(&x[b])).expect("there are classes");
    (x, class)
}

/// The probability of every class.
fn predict(peer: &Peer<'_>, x: &[f32]) -> Vec<f32> {
    let score = |row: &[f32]| row.iter().zip(x).map(|(w, x)| w * x).sum::<f32>().exp();
    let mut p: Vec<f32> = (0..CLASSES).map(|class| score(peer.matrix().row(class))).collect();
    let total: f32 = p.iter().sum();
    p.iter_mut().for_each(|p| *p /= total);
    p
}

/// What one peer does: its share of the examples, a minibatch in every iteration. Returns its share of right answers.
fn work(peer: &mut Peer<'_>) -> Result<Vec<u8>, Error> {
    let (me, peers) = (peer.id().index(), peer.peers() as usize);
    for iteration in 0..200 {
        for i in 0..BATCH {
            let (x, class) = example((iteration * BATCH + i) * peers + me);
            let mut u = predict(peer, &x);
            u[class] -= 1.0;
            u.iter_mut().for_each(|u| *u *= STEP / BATCH as f32);
            peer.write(&u, &x)?;
        }
        let applied = peer.commit()?;
        peer.work(applied.pairs)?;
    }
    let right = (0..1000).filter(|&i| {
        let (x, class) = example(1_000_000 + i);
        let p = predict(peer, &x);
        p.iter().all(|other| *other <= p[class])
    });
    Ok(right.count().to_string().into_bytes())
}

fn main() -> Result<(), Error> {
    let deployment = match std::env::args().nth(1).as_deref() {
        Some("tcp") => Deployment::tcp(3, 0),
        Some("sim") => Deployment::sim(3),
        _ => Deployment::threads(3),
    };
    let outcome = factors::run(&deployment, &MatrixSchema::new(CLASSES as u32, CLASSES as u32), work)?;
    let right: u32 = String::from_utf8_lossy(&outcome.results[0]).parse().expect("a number");
    assert!(outcome.results.iter().all(|result| *result == outcome.results[0]), "all replicas are the same");
    assert!(right > 930, "only {right} of 1000 were right");
    let sent: u64 = outcome.splits.iter().map(|split| split.bytes_sent).sum();
    eprintln!("{right} of 1000 right after {:.3} s; {sent} bytes were sent", outcome.seconds);
    Ok(())
}
