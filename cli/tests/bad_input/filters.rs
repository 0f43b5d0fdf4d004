//! What a user can get wrong with filters.

use super::Case;

pub(crate) const CASES: &[Case] = &[
    (
        "train mf good.csv --filters zstd",
        2,
        "--filters needs --processes: nothing travels between the threads of one process",
    ),
    (
        "train mf good.csv --processes 2 --filters gzip",
        2,
        "invalid value 'gzip' for '--filters <LIST>': there is no filter 'gzip'; the filters are key-cache, lz4, zstd, \
         significant:T, random-skip:P, feedback, and kkt of l1lr",
    ),
    (
        "train mf good.csv --processes 2 --bandwidth 1mbit --priority random --step-size adarevision --consistency ssp",
        2,
        "--priority has no effect with --step-size adarevision and --consistency ssp, where updates go in the order of what \
         they answer; leave it out",
    ),
    (
        "simulate mf good.csv --budget 1mbit --priority random --step-size adarevision --consistency ssp",
        2,
        "--priority has no effect with --step-size adarevision and --consistency ssp, where updates go in the order of what \
         they answer; leave it out",
    ),
    (
        "train mf good.csv --processes 2 --filters -1",
        2,
        "invalid value '-1' for '--filters <LIST>': there is no filter '-1'; the filters are key-cache, lz4, zstd, \
         significant:T, random-skip:P, feedback, and kkt of l1lr",
    ),
    (
        "train mlr good.csv --processes 2 --filters zstd,key-cache",
        2,
        "invalid value 'zstd,key-cache' for '--filters <LIST>': filter 'key-cache' must come before 'zstd', which hides \
         the row ids",
    ),
    (
        "train lda prose.txt --processes 2 --filters lz4,zstd",
        2,
        "invalid value 'lz4,zstd' for '--filters <LIST>': filters 'lz4' and 'zstd' both compress; choose one",
    ),
    (
        "simulate mf good.csv --filters significant:-1",
        2,
        "invalid value 'significant:-1' for '--filters <LIST>': filter 'significant' is written significant:T, with a \
         threshold T above zero",
    ),
    (
        "train l1lr two.csv --lambda 0.1 --processes 2 --filters random-skip:1,zstd",
        2,
        "invalid value 'random-skip:1,zstd' for '--filters <LIST>': filter 'random-skip' is written random-skip:P, with a \
         part P above 0 and below 1",
    ),
    (
        "train l1lr two.csv --lambda 0.1 --processes 2 --filters significant:1,feedback",
        2,
        "invalid value 'significant:1,feedback' for '--filters <LIST>': filter 'feedback' needs a filter before it that \
         loses updates: random-skip or kkt",
    ),
    (
        "train l1lr two.csv --lambda 0.1 --processes 2 --filters kkt:1:0.5:1",
        2,
        "invalid value 'kkt:1:0.5:1' for '--filters <LIST>': filter 'kkt' takes nothing after its name, since l1lr knows its \
         penalty",
    ),
    (
        "train lda prose.txt --processes 2 --filters random-skip:0.1",
        2,
        "--filters random-skip holds back what must arrive: topics are counted; leave it out",
    ),
    (
        "simulate lda prose.txt --filters significant:0.1,zstd",
        2,
        "--filters significant holds back what must arrive: topics are counted; leave it out",
    ),
    (
        "train mf good.csv --engine splash --processes 2 --filters significant:0.1",
        2,
        "--filters significant holds back what must arrive: replicas become one by what all of them changed; leave it out",
    ),
    (
        "simulate mf good.csv --engine splash --filters random-skip:0.5",
        2,
        "--filters random-skip holds back what must arrive: replicas become one by what all of them changed; leave it out",
    ),
    (
        "train mlr two.svm --processes 2 --sync factors --filters random-skip:0.5",
        2,
        "--filters random-skip holds back what must arrive: a minibatch is subtracted whole; leave it out",
    ),
    (
        "train mf good.csv --processes 2 --filters zstd,kkt",
        2,
        "--filters kkt has an effect only on l1lr, whose weights mostly stay zero; leave it out",
    ),
    (
        "simulate mf good.csv --filters kkt",
        2,
        "--filters kkt has an effect only on l1lr, whose weights mostly stay zero; leave it out",
    ),
    (
        "train l1lr two.csv --lambda 0.1 --processes 2 --filters kkt,zstd,kkt",
        2,
        "invalid value 'kkt,zstd,kkt' for '--filters <LIST>': filter 'kkt' is there twice",
    ),
    (
        "train l1lr two.csv --lambda 0.1 --processes 2 --filters none,kkt",
        2,
        "invalid value 'none,kkt' for '--filters <LIST>': there is no filter 'none'; the filters are key-cache, lz4, \
         zstd, significant:T, random-skip:P, feedback, and kkt of l1lr",
    ),
    (
        "simulate mf good.csv --filters zstd:3",
        2,
        "invalid value 'zstd:3' for '--filters <LIST>': filter 'zstd' takes nothing after its name",
    ),
];
