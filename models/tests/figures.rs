//! The figures of the Bösen, the factor broadcasting, the Splash and the Parameter Server paper, made at a scale at which they say nothing: that they are made at all.

use hemiola_models::reproduce::{ALL, Scale};

const TINY: Scale = Scale { nodes: 3, ratings: 3000, rank: 4, epochs: 1, documents: 30, topics: 5, passes: 8, seed: 1 };

/// The panels and the curves of each that a figure has, where every curve has points, and what it says.
fn made(name: &str, scale: &Scale) -> (Vec<usize>, String) {
    let figure = ALL.iter().find(|figure| figure.name == name).expect("there is such a figure");
    let finding = figure.run(scale).expect("the figure is made");
    assert!(finding.panels.iter().flat_map(|panel| &panel.series).all(|series| !series.points.is_empty()), "{name}");
    (finding.panels.iter().map(|panel| panel.series.len()).collect(), finding.found)
}

#[test]
fn every_figure_has_its_curves() {
    for (name, curves) in [
        ("bosen-bandwidth", &[4, 4][..]),
        ("bosen-frequency", &[4]),
        ("bosen-overhead", &[2, 2]),
        ("bosen-time", &[4, 4]),
    ] {
        assert_eq!(made(name, &TINY).0, curves, "{name}");
    }
    let (curves, _) = made("bosen-clock-ticks", &TINY);
    assert_eq!(curves[0], 5, "a course for each number of clocks, and for managed communication");
    let (curves, _) = made("bosen-adarevision", &TINY);
    assert_eq!(curves.len(), 2, "one node and several");
    for (name, curves) in [
        ("sfb-cost", &[6, 2][..]),
        ("sfb-model-size", &[2]),
        ("sfb-throughput", &[2, 2]),
        ("sfb-scaling", &[2, 8]),
        ("sfb-waiting", &[5]),
        ("sfb-partial", &[1, 2, 2]),
    ] {
        assert_eq!(made(name, &TINY).0, curves, "{name}");
    }
    for (name, curves) in [
        ("splash-toy", &[6, 6, 6][..]),
        ("splash-rate", &[3]),
        ("splash-lr", &[3]),
        ("splash-cf", &[3]),
        ("splash-lda", &[3]),
        ("splash-runtime", &[2]),
        ("ps-delay", &[2, 6, 2, 6]),
        ("ps-waiting", &[2]),
        ("ps-working-set", &[1]),
        ("ps-convergence", &[3]),
        ("ps-filters", &[2, 2]),
    ] {
        assert_eq!(made(name, &TINY).0, curves, "{name}");
    }
}

#[test]
fn one_seed_gives_one_finding() {
    let found = made("bosen-time", &TINY).1;
    assert_eq!(found, made("bosen-time", &TINY).1);
    assert_ne!(found, made("bosen-time", &Scale { seed: 2, ..TINY }).1);
}
