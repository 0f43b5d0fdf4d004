//! What a user can get wrong with the Splash engine.

use super::Case;

pub(crate) const CASES: &[Case] = &[
    (
        "train mlr good.csv --engine hadoop",
        2,
        "invalid value 'hadoop' for '--engine <ENGINE>' [possible values: tables, splash]",
    ),
    ("train mlr good.csv --degree 2", 2, "--degree has an effect only with --engine splash"),
    ("train mlr good.csv --synchronisations 2", 2, "--synchronisations has an effect only with --engine splash"),
    ("train mlr good.csv --fan-in 2", 2, "--fan-in has an effect only with --engine splash"),
    (
        "train lda docword.good.txt --engine splash --fan-in 0",
        2,
        "invalid value '0' for '--fan-in <N>': expected a whole number between 1 and 1024",
    ),
    (
        "train mlr good.csv --engine splash --degree 0",
        2,
        "invalid value '0' for '--degree <N|auto|largest>': expected 'auto', 'largest', or a whole number between 1 and 1024",
    ),
    (
        "train mlr good.csv --engine splash --degree best",
        2,
        "invalid value 'best' for '--degree <N|auto|largest>': expected 'auto', 'largest', or a whole number between 1 and \
         1024",
    ),
    (
        "train mlr good.csv --engine splash --synchronisations 0",
        2,
        "invalid value '0' for '--synchronisations <N>': expected a whole number of 1 or more",
    ),
    (
        "train mlr two.svm --no-holdout --engine splash --workers 2 --degree 3",
        1,
        "a degree of 3 needs as many workers, and there are 2",
    ),
    (
        "train mlr good.csv --engine splash --consistency bsp",
        2,
        "--consistency has no effect with --engine splash; leave it out",
    ),
    (
        "train mlr good.csv --engine splash --staleness 1",
        2,
        "--staleness has no effect with --engine splash; leave it out",
    ),
    (
        "train mlr good.csv --engine splash --processes 2 --wire f16",
        2,
        "--wire has no effect with --engine splash; leave it out",
    ),
    (
        "train mlr good.csv --engine splash --clocks-per-epoch 4",
        2,
        "--clocks-per-epoch has no effect with --engine splash; leave it out",
    ),
    ("train mlr good.csv --engine splash --sync factors", 2, "--sync has no effect with --engine splash; leave it out"),
    ("train mlr good.csv --engine splash --batch 4", 2, "--batch has no effect with --engine splash; leave it out"),
    (
        "train mlr good.csv --engine splash --step-size constant",
        2,
        "--step-size has no effect with --engine splash; leave it out",
    ),
    ("train mlr good.csv --engine splash --decay 0.5", 2, "--decay has no effect with --engine splash; leave it out"),
    ("train mlr good.csv --engine splash --damping 1", 2, "--damping has no effect with --engine splash; leave it out"),
    (
        "train mlr good.csv --engine splash --checkpoint saved",
        2,
        "--checkpoint has no effect with --engine splash; leave it out",
    ),
    (
        "train mlr good.csv --engine splash --resume saved",
        2,
        "--resume has no effect with --engine splash; leave it out",
    ),
    (
        "train mlr good.csv --engine splash --checkpoint-keep 3",
        2,
        "--checkpoint-keep has an effect only with --checkpoint or --resume",
    ),
    (
        "train mlr good.csv --engine splash --processes 2 --bandwidth 1gbit --priority random",
        2,
        "--priority has no effect with --engine splash; leave it out",
    ),
    (
        "train mlr good.csv --engine splash --patience 2 --no-holdout",
        2,
        "--patience has no effect with --no-holdout, because it looks at held-out examples; leave one of them out",
    ),
    ("train mlr missing.csv --engine splash", 1, "missing.csv: cannot be read: No such file or directory (os error 2)"),
    ("simulate mlr missing.csv", 1, "missing.csv: cannot be read: No such file or directory (os error 2)"),
    ("simulate mlr good.csv --degree 2", 2, "--degree has an effect only with --engine splash"),
    (
        "simulate mlr two.svm --no-holdout --engine splash --nodes 2 --workers 2 --degree 5 --time-per-unit 1us --quiet",
        1,
        "a degree of 5 needs as many workers, and there are 4",
    ),
    (
        "simulate mlr good.csv --engine splash --budget 1gbit --priority random",
        2,
        "--priority has no effect with --engine splash; leave it out",
    ),
    ("train mf good.csv --degree auto", 2, "--degree has an effect only with --engine splash"),
    ("train mf good.csv --synchronisations 2", 2, "--synchronisations has an effect only with --engine splash"),
    (
        "train mf good.csv --engine splash --consistency ssp",
        2,
        "--consistency has no effect with --engine splash; leave it out",
    ),
    (
        "train mf good.csv --engine splash --step-size adagrad",
        2,
        "--step-size has no effect with --engine splash; leave it out",
    ),
    ("train mf good.csv --engine splash --damping 1", 2, "--damping has no effect with --engine splash; leave it out"),
    ("train mf good.csv --engine splash --decay 0.5", 2, "--decay has no effect with --engine splash; leave it out"),
    (
        "train mf good.csv --engine splash --clocks-per-epoch 2",
        2,
        "--clocks-per-epoch has no effect with --engine splash; leave it out",
    ),
    (
        "train mf good.csv --engine splash --resume saved",
        2,
        "--resume has no effect with --engine splash; leave it out",
    ),
    (
        "train mf good.csv --engine splash --workers 2 --degree 3",
        1,
        "a degree of 3 needs as many workers, and there are 2",
    ),
    (
        "train mf good.csv --engine splash --patience 2 --no-holdout",
        2,
        "--patience has no effect with --no-holdout, because it looks at held-out ratings; leave one of them out",
    ),
    (
        "simulate mf good.csv --engine splash --budget 1gbit --priority random",
        2,
        "--priority has no effect with --engine splash; leave it out",
    ),
    ("train lda prose.txt --samples 4", 2, "--samples has an effect only with --engine splash"),
    ("train lda prose.txt --degree 1", 2, "--degree has an effect only with --engine splash"),
    (
        "train lda prose.txt --engine splash --samples 0",
        2,
        "invalid value '0' for '--samples <N>': expected a whole number between 1 and 1024",
    ),
    (
        "train lda prose.txt --engine splash --sampler mh",
        2,
        "--sampler has no effect with --engine splash; leave it out",
    ),
    (
        "train lda prose.txt --engine splash --begin-with 0.5",
        2,
        "--begin-with has no effect with --engine splash; leave it out",
    ),
    (
        "train lda prose.txt --engine splash --clocks-per-epoch 2",
        2,
        "--clocks-per-epoch has no effect with --engine splash; leave it out",
    ),
    (
        "train lda prose.txt --engine splash --staleness 2",
        2,
        "--staleness has no effect with --engine splash; leave it out",
    ),
    (
        "train lda prose.txt --engine splash --checkpoint saved",
        2,
        "--checkpoint has no effect with --engine splash; leave it out",
    ),
    (
        "train lda prose.txt --engine splash --workers 2 --degree 3",
        1,
        "a degree of 3 needs as many workers, and there are 2",
    ),
    (
        "simulate lda prose.txt --engine splash --budget 1gbit --priority random",
        2,
        "--priority has no effect with --engine splash; leave it out",
    ),
];
