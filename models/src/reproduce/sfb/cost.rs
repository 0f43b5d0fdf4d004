//! What is sent in an iteration beside the formulas: the paper's figure 4.

use super::super::{Findings, ReproduceError, Scale};
use super::{Bench, Exchange, panel, width};
use crate::examples::Examples;
use crate::mlr::factors::Config;
use crate::{HoldOut, Names};

/// Numbers of nodes, and the fan-out of a partial broadcast.
const NODES: [u32; 3] = [6, 9, 12];
const FANOUT: u32 = 4;
/// Classes and features of dense examples: with what fills up rows and with the bias 400 and 200.
const CLASSES: u32 = 399;
const FEATURES: u32 = 199;
/// Bytes of a number, and of a non-zero of a sparse factor.
const NUMBER: f64 = 4.0;
const ENTRY: f64 = 8.0;

/// Examples with a value for every feature.
fn dense(count: u32) -> Examples {
    let mut names = Names::default();
    let known = (0..CLASSES).all(|class| names.intern(&class.to_string()).is_ok());
    debug_assert!(known, "classes have room");
    let mut set = Examples::new(names);
    for example in 0..count {
        let value = |feature: u32| 0.5 + ((example * 7 + feature * (example + 3)) % 11) as f32 / 11.0;
        set.push(example % CLASSES, (0..FEATURES).map(|feature| (feature, value(feature))));
    }
    set
}

/// Bytes that are sent in an iteration of the second pass.
fn measured(bench: &Bench, exchange: Exchange, config: &Config) -> Result<f64, ReproduceError> {
    let run = bench.run(exchange, &Config { epochs: 2, ..*config })?;
    let iterations = config.on_tables(bench.train.len(), bench.nodes).clocks_per_epoch;
    let bytes = |epoch: &crate::mlr::train::Epoch| match exchange {
        Exchange::Factors => epoch.bytes_sent as f64,
        Exchange::Matrix => (epoch.bytes_sent + epoch.bytes_received) as f64,
    };
    let [first, second] = run.trained.epochs.as_slice() else { return Ok(f64::NAN) };
    Ok((bytes(second) - bytes(first)) / f64::from(iterations))
}

pub(in crate::reproduce) fn cost(scale: &Scale) -> Result<Findings, ReproduceError> {
    let mut bench = Bench::new(scale, scale.topics * 4)?;
    let all = dense(scale.documents * 3);
    let (train, test) = all.split(HoldOut::Every(60)).map_err(|_| crate::mlr::train::TrainError::NoExamples)?;
    let sparse = (std::mem::replace(&mut bench.train, train), std::mem::replace(&mut bench.test, test));
    let (full, config) = (Config { fanout: None, ..bench.config() }, bench.config());
    let mut curves: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    let mut worst = Vec::new();
    let names = ["P² K (J + D)", "P Q K (J + D)", "P J D", "sparse P² K (J + D)"];
    for (kind, name) in names.iter().enumerate() {
        let (mut points, mut formula, mut off) = (Vec::new(), Vec::new(), 0.0f64);
        if kind == 3 {
            (bench.train, bench.test) = sparse.clone();
            bench.classes = scale.topics * 4;
        }
        for nodes in NODES.iter().map(|nodes| (*nodes).min(scale.nodes.max(2))) {
            bench.nodes = nodes;
            let fanout = (kind == 1).then_some(FANOUT.min(nodes - 1));
            let exchange = if kind == 2 { Exchange::Matrix } else { Exchange::Factors };
            let found = measured(&bench, exchange, &Config { fanout, ..full })?;
            let receivers = f64::from(fanout.unwrap_or(nodes - 1));
            let iterations = config.on_tables(bench.train.len(), nodes).clocks_per_epoch;
            let pairs = bench.train.len() as f64 / f64::from(iterations);
            let (j, d) = (width(CLASSES), f64::from(FEATURES + 1));
            let expected = match kind {
                2 => 2.0 * f64::from(nodes - 1) * j * d * NUMBER,
                3 => {
                    let entries = (bench.train.entries() + bench.train.len()) as f64 / f64::from(iterations);
                    receivers * (pairs * width(bench.classes) * NUMBER + entries * ENTRY)
                }
                _ => receivers * pairs * (j + d) * NUMBER,
            };
            points.push((f64::from(nodes), found / 1e6));
            formula.push((f64::from(nodes), expected / 1e6));
            off = off.max((found / expected - 1.0).abs());
        }
        worst.push(off);
        curves.push(((*name).to_owned(), points));
        curves.push((format!("{name}, by formula"), formula));
    }
    let list: Vec<String> =
        names.iter().zip(&worst).map(|(name, off)| format!("{:.1} % for {name}", 100.0 * off)).collect();
    let found = format!(
        "On {NODES:?} nodes, with a dense matrix of 400 by 200 and with sparse documents, what is sent in an iteration is off \
         the formulas by at most {}. What a node keeps to itself is not sent: P² is P (P − 1), and P J D, which is sent both \
         ways, is (P − 1) J D because every node has its part of the servers.",
        list.join(", ")
    );
    let sparse = curves.split_off(6);
    let panels = vec![
        panel("sent in an iteration, dense", "nodes", "megabytes", curves),
        panel("sent in an iteration, sparse", "nodes", "megabytes", sparse),
    ];
    Ok(Findings { found, holds: worst.iter().all(|off| *off <= 0.02), panels })
}
