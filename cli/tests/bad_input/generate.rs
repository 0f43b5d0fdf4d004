//! What a user can get wrong when data are made.

use super::Case;
use std::fs;
use std::path::Path;

pub(crate) const CASES: &[Case] = &[
    ("generate ratings --users 0", 2, "invalid value '0' for '--users <N>': expected a whole number of 1 or more"),
    (
        "generate ratings --users 2 --items 3 --ratings 7",
        1,
        "cannot make 7 ratings of 6 pairs of user and item; expected no more ratings than pairs",
    ),
    ("generate ratings --noise -1", 2, "invalid value '-1' for '--noise <STARS>': expected a number of 0 or more"),
    ("generate ratings --noise nan", 2, "invalid value 'nan' for '--noise <STARS>': expected a number of 0 or more"),
    ("generate ratings --rank 0", 2, "invalid value '0' for '--rank <N>': expected a whole number between 1 and 4096"),
    ("generate ratings --out nowhere/x.csv", 1, "nowhere/x.csv: cannot be written: there is no directory nowhere"),
    ("generate ratings --out folder", 1, "folder: is a directory; expected the name of a file"),
    (
        "generate ratings --out /dev/full --ratings 50000",
        1,
        "/dev/full: cannot be written: No space left on device (os error 28)",
    ),
    (
        "generate corpus",
        2,
        "the following required arguments were not provided: --out <FILE>; see 'hemiola generate corpus --help'",
    ),
    (
        "generate corpus --documents 0 --out x",
        2,
        "invalid value '0' for '--documents <N>': expected a whole number of 1 or more",
    ),
    (
        "generate corpus --words -1 --out x",
        2,
        "invalid value '-1' for '--words <N>': expected a whole number of 1 or more",
    ),
    (
        "generate corpus --topics 0 --out x",
        2,
        "invalid value '0' for '--topics <N>': expected a whole number of 1 or more",
    ),
    (
        "generate corpus --tokens-per-document 0 --out x",
        2,
        "invalid value '0' for '--tokens-per-document <N>': expected a whole number of 1 or more",
    ),
    (
        "generate corpus --seed x --out x",
        2,
        "invalid value 'x' for '--seed <SEED>': expected a whole number of 0 or more",
    ),
    (
        "generate corpus --documents 4000000000 --out x",
        1,
        "cannot make 4000000000 documents of 100 words each; expected no more than 2147483647 words together",
    ),
    ("generate corpus --out nowhere/x.txt", 1, "nowhere/x.txt: cannot be written: there is no directory nowhere"),
    ("generate corpus --out folder", 1, "folder: is a directory; expected the name of a file"),
    (
        "generate examples --examples 0",
        2,
        "invalid value '0' for '--examples <N>': expected a whole number of 1 or more",
    ),
    (
        "generate examples --features 30 --relevant 3",
        1,
        "cannot make examples of 30 features with 40 of them in each; expected no more than there are",
    ),
    (
        "generate examples --relevant 20000",
        1,
        "cannot make examples of 10000 features with 20000 that are relevant; expected no more than there are",
    ),
    (
        "generate examples --features 16777216",
        1,
        "cannot make examples of 16777216 features; expected less than 16777216",
    ),
    ("generate examples --out nowhere/x.svm", 1, "nowhere/x.svm: cannot be written: there is no directory nowhere"),
    (
        "generate images",
        2,
        "the following required arguments were not provided: --out <FILE> <IMAGES>; see 'hemiola generate images --help'",
    ),
    ("generate images missing --out x-images", 1, "missing: cannot be read: No such file or directory (os error 2)"),
    ("generate images a-images --out more", 2, "--out more must have images in its name; labels go beside it"),
    ("generate images a-images --out a-images", 2, "--out a-images would overwrite the images; give another name"),
    (
        "generate images a-images --labels y-labels --out y-images",
        2,
        "the file of labels y-labels would overwrite the labels; give another name",
    ),
    (
        "generate images a-images --times 0 --out x-images",
        2,
        "invalid value '0' for '--times <N>': expected a whole number of 1 or more",
    ),
    (
        "generate images a-images --by -1 --out x-images",
        2,
        "invalid value '-1' for '--by <PIXELS>': expected a number of 0 or more",
    ),
    (
        "generate images a-images --times 4294967295 --out x-images",
        1,
        "4294967295 times 2 images are more than an idx file counts, which is 4294967295",
    ),
    (
        "generate images b-images --out x-images",
        1,
        "b-images: the labels of these images are looked for in 'b-labels', which is not there; name their file",
    ),
    ("generate images c-images --out x-images", 1, "c-labels: holds 1 labels for 2 images; expected one for each"),
];

pub(crate) fn prepare(directory: &Path) {
    let write = |name: &str, content: &[u8]| fs::write(directory.join(name), content).unwrap();
    let images = [0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 9, 9];
    for name in ["a-images", "b-images", "c-images"] {
        write(name, &images);
    }
    write("a-labels", &[0, 0, 8, 1, 0, 0, 0, 2, 0, 1]);
    write("c-labels", &[0, 0, 8, 1, 0, 0, 0, 1, 0]);
}
