//! What a user can get wrong when figures are made again.

use super::Case;

pub(crate) const CASES: &[Case] = &[
    (
        "reproduce fig-9",
        2,
        "there is no figure 'fig-9'; expected one of essp-staleness, essp-breakdown, essp-convergence, essp-robustness, vap-cost, bosen-adarevision, bosen-bandwidth, bosen-frequency, bosen-overhead, bosen-time, bosen-clock-ticks, sfb-cost, sfb-model-size, sfb-throughput, sfb-scaling, sfb-waiting, sfb-partial, splash-toy, splash-rate, splash-lr, splash-cf, splash-lda, splash-runtime, ps-convergence, ps-delay, ps-waiting, ps-filters, ps-working-set",
    ),
    ("reproduce vap-cost --out nowhere", 1, "nowhere/vap-cost.json: cannot be written: there is no directory nowhere"),
    (
        "reproduce vap-cost --nodes 0",
        2,
        "invalid value '0' for '--nodes <N>': expected a whole number between 2 and 4096",
    ),
    (
        "reproduce vap-cost --nodes 1",
        2,
        "invalid value '1' for '--nodes <N>': expected a whole number between 2 and 4096",
    ),
    (
        "reproduce vap-cost --nodes -2",
        2,
        "invalid value '-2' for '--nodes <N>': expected a whole number between 2 and 4096",
    ),
    (
        "reproduce vap-cost --ratings 0",
        2,
        "invalid value '0' for '--ratings <N>': expected a whole number between 1000 and 1000000000",
    ),
    (
        "reproduce vap-cost --ratings 999",
        2,
        "invalid value '999' for '--ratings <N>': expected a whole number between 1000 and 1000000000",
    ),
    (
        "reproduce vap-cost --ratings 1e6",
        2,
        "invalid value '1e6' for '--ratings <N>': expected a whole number between 1000 and 1000000000",
    ),
    (
        "reproduce vap-cost --documents 0",
        2,
        "invalid value '0' for '--documents <N>': expected a whole number between 20 and 1000000",
    ),
    (
        "reproduce vap-cost --documents 1000001",
        2,
        "invalid value '1000001' for '--documents <N>': expected a whole number between 20 and 1000000",
    ),
    (
        "reproduce vap-cost --topics 1",
        2,
        "invalid value '1' for '--topics <K>': expected a whole number between 2 and 10000",
    ),
    (
        "reproduce vap-cost --topics many",
        2,
        "invalid value 'many' for '--topics <K>': expected a whole number between 2 and 10000",
    ),
    (
        "reproduce vap-cost --passes 0",
        2,
        "invalid value '0' for '--passes <N>': expected a whole number between 1 and 1000000",
    ),
    (
        "reproduce vap-cost --passes -1",
        2,
        "invalid value '-1' for '--passes <N>': expected a whole number between 1 and 1000000",
    ),
    ("reproduce --seed 0.5", 2, "invalid value '0.5' for '--seed <SEED>': expected a whole number of 0 or more"),
];
