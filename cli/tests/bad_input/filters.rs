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
         significant:T, random-skip:P, kkt:L:D:S and feedback",
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
        "simulate mf good.csv --filters significant:0.1",
        2,
        "invalid value 'significant:0.1' for '--filters <LIST>': filter 'significant' holds entries back, which \
         only programs can ask for; give key-cache, lz4 or zstd",
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
         zstd, significant:T, random-skip:P, kkt:L:D:S and feedback",
    ),
    (
        "simulate mf good.csv --filters zstd:3",
        2,
        "invalid value 'zstd:3' for '--filters <LIST>': filter 'zstd' takes nothing after its name",
    ),
];
