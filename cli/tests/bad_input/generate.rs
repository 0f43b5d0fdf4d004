//! What a user can get wrong with images to be deformed.

use super::Case;
use std::fs;
use std::path::Path;

pub(crate) const CASES: &[Case] = &[
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
