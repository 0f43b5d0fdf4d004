//! What a user can get wrong with documents and with topic models.

use super::{Case, write_files};
use std::path::Path;

pub(crate) const CASES: &[Case] = &[
    ("train lda", 2, "the following required arguments were not provided: <DATA>...; see 'hemiola train lda --help'"),
    ("train lda missing.txt", 1, "missing.txt: cannot be read: No such file or directory (os error 2)"),
    (
        "train lda good.csv --topics 2",
        1,
        "good.model: holds a model of kind 'mf', and this one would be of kind 'lda'; say by --out where it goes",
    ),
    ("train lda folder", 1, "folder: is a directory; expected a file of documents"),
    ("train lda prose.txt --topics 0", 2, "invalid value '0' for '--topics <K>': expected a whole number of 1 or more"),
    ("train lda prose.txt --topics 70000", 1, "the number of topics must be between 1 and 65535, not 70000"),
    ("train lda prose.txt --alpha 0", 2, "invalid value '0' for '--alpha <ALPHA>': expected a number above 0"),
    ("train lda prose.txt --beta nan", 2, "invalid value 'nan' for '--beta <BETA>': expected a number above 0"),
    (
        "train lda prose.txt --max-share 1.5",
        2,
        "invalid value '1.5' for '--max-share <PART>': expected a number above 0 and up to 1, such as 0.5",
    ),
    (
        "train lda prose.txt --processes 2 --consistency vap",
        2,
        "--consistency vap cannot bound counts; give bsp, ssp, essp or async",
    ),
    ("train lda prose.txt --processes 2 --wire f16", 2, "--wire would round counts; topic models need --wire f32"),
    (
        "train lda prose.txt --stop-words missing.txt",
        1,
        "missing.txt: cannot be read: No such file or directory (os error 2)",
    ),
    (
        "train lda lonely.txt --holdout-every 2",
        1,
        "lonely.txt: too few documents (1) to train on some and hold out others; give more, or hold out none",
    ),
    (
        "train lda prose.txt --holdout 0.1 --holdout-every 5",
        2,
        "the argument '--holdout <PART>' cannot be used with '--holdout-every <N>'; see 'hemiola train lda --help'",
    ),
    (
        "train lda prose.txt --out folder",
        1,
        "folder: exists and is not a Hemiola model; expected a new path or an older model",
    ),
    (
        "train lda empty.csv",
        1,
        "empty.csv: holds no words; expected text with one document a line, UCI bag-of-words or lda-c",
    ),
    (
        "train lda numbers.txt",
        1,
        "numbers.txt: holds no words; expected text with one document a line, UCI bag-of-words or lda-c",
    ),
    (
        "train lda nothing.docword",
        1,
        "nothing.docword: holds no words; expected text with one document a line, UCI bag-of-words or lda-c",
    ),
    ("train lda id.csv", 1, "id.csv:2: the line is not UTF-8 text; expected a text file"),
    ("train lda - --processes 2", 2, "standard input cannot be read by several processes; give the name of a file"),
    ("train lda - --vocabulary -", 2, "standard input can be read only once; give '-' once"),
    ("train lda - --stop-words -", 2, "standard input can be read only once; give '-' once"),
    (
        "train lda twice.txt --format html",
        2,
        "invalid value 'html' for '--format <FORMAT>' [possible values: docword, lda-c, text]",
    ),
    ("train lda tome.txt", 1, "a document may have at most 65535 words, and document 1 has 65536: cut it into parts"),
    // Files that do not go together.
    (
        "train lda right.docword vocab.txt",
        1,
        "vocab.txt: is text, and right.docword is UCI bag-of-words; expected files of one format, and a list of words by \
         --vocabulary",
    ),
    (
        "train lda vocab.txt right.docword",
        1,
        "right.docword: is UCI bag-of-words, and vocab.txt is text; expected files of one format, and a list of words by \
         --vocabulary",
    ),
    (
        "train lda right.docword range.txt",
        1,
        "range.txt: is lda-c, and right.docword is UCI bag-of-words; expected files of one format",
    ),
    (
        "eval words.model right.docword",
        1,
        "right.docword: is UCI bag-of-words, whose words are numbers, and those that are known are not; expected a list of \
         its words by --vocabulary",
    ),
    (
        "predict words.model range.txt",
        1,
        "range.txt: is lda-c, whose words are numbers, and those that are known are not; expected a list of its words by \
         --vocabulary",
    ),
    (
        "train lda twice.txt --test range.txt",
        1,
        "range.txt: is lda-c, whose words are numbers, and those that are known are not; expected a list of its words by \
         --vocabulary",
    ),
    // UCI bag-of-words.
    (
        "train lda behind.docword",
        1,
        "behind.docword:5: document 1 comes behind document 2; expected documents in ascending order",
    ),
    (
        "train lda document.docword",
        1,
        "document.docword:4: document 3 is beyond the header; expected a number between 1 and 2",
    ),
    (
        "train lda document-0.docword",
        1,
        "document-0.docword:4: document 0 is beyond the header; expected a number between 1 and 2",
    ),
    ("train lda word.docword", 1, "word.docword:4: word 4 is beyond the header; expected a number between 1 and 3"),
    ("train lda word-0.docword", 1, "word-0.docword:4: word 0 is beyond the header; expected a number between 1 and 3"),
    ("train lda count-0.docword", 1, "count-0.docword:4: expected a count between 1 and 1000000, found '0'"),
    ("train lda count.docword", 1, "count.docword:4: expected a count between 1 and 1000000, found '1000001'"),
    (
        "train lda two.docword",
        1,
        "two.docword:4: expected 3 whole numbers (document, word, count) separated by blanks, found '1 1'",
    ),
    (
        "train lda spelled.docword",
        1,
        "spelled.docword:4: expected 3 whole numbers (document, word, count) separated by blanks, found '1 cat 1'",
    ),
    (
        "train lda entries.docword",
        1,
        "entries.docword:5: the header states 1 entries and the file has 2; the file is incomplete or damaged",
    ),
    (
        "train lda again.docword",
        1,
        "again.docword:5: word 1 was in this document before; expected each word of a document once, with its count",
    ),
    (
        "train lda header.docword",
        1,
        "header.docword:2: the header ends before the number of entries; expected lines for documents, words and \
         entries",
    ),
    (
        "train lda negative.docword",
        1,
        "negative.docword:1: expected the number of documents alone on a line of the header, found '-2'",
    ),
    (
        "train lda lettered.docword",
        1,
        "lettered.docword:3: expected the number of entries alone on a line of the header, found 'many'",
    ),
    ("train lda huge.docword", 1, "huge.docword:2: the header states 4294967295 words; expected less than 4294967295"),
    (
        "train lda four.txt --vocabulary vocab.txt",
        1,
        "four.txt:2: the header states 4 words and the vocabulary has 3; expected the same number",
    ),
    // lda-c.
    ("train lda bare.dat", 1, "bare.dat:2: expected pairs of word:count, both whole numbers, found 'x'"),
    ("train lda spelled.dat", 1, "spelled.dat:2: expected pairs of word:count, both whole numbers, found 'cat:1'"),
    ("train lda count.dat", 1, "count.dat:2: expected a count between 1 and 1000000, found '-1'"),
    (
        "train lda start.dat",
        1,
        "start.dat:2: expected the number of distinct words at the start of the line, found 'x'",
    ),
    (
        "train lda again.dat",
        1,
        "again.dat:2: word 0 was in this document before; expected each word of a document once, with its count",
    ),
    ("train lda fewer.dat", 1, "fewer.dat:1: the line states 2 distinct words and has 1 pairs of word:count"),
    ("train lda more.dat", 1, "more.dat:1: the line states 1 distinct words and has 2 pairs of word:count"),
    (
        "train lda range.txt --vocabulary vocab.txt",
        1,
        "range.txt:1: word 3 is not in the vocabulary of 3 words; expected a number below 3",
    ),
    // Lists of words.
    ("train lda range.txt --vocabulary gap.txt", 1, "gap.txt:2: the line is blank; expected one word a line"),
    ("train lda range.txt --vocabulary id.csv", 1, "id.csv:2: the line is not UTF-8 text; expected a text file"),
    (
        "train lda range.txt --vocabulary missing.txt",
        1,
        "missing.txt: cannot be read: No such file or directory (os error 2)",
    ),
    (
        "train lda prose.txt --vocabulary vocab.txt",
        1,
        "prose.txt: holds none of the 3 words that are known; expected documents with the same vocabulary",
    ),
    (
        "train lda lonely.txt --test prose.txt",
        1,
        "prose.txt: holds none of the 2 words that are known; expected documents with the same vocabulary",
    ),
    (
        "train lda twice.txt --vocabulary vocab.txt --test prose.txt",
        1,
        "prose.txt: holds none of the 2 words that are known; expected documents with the same vocabulary",
    ),
    (
        "train lda twice.txt --vocabulary cities.txt",
        1,
        "cities.txt:2: 'New York' is not one word of text, letters and digits with a letter among them; expected one word \
         a line",
    ),
    (
        "train lda twice.txt --vocabulary capitals.txt",
        1,
        "capitals.txt:2: the word 'paris' stands on line 1, too; expected each word once",
    ),
    ("train lda twice.txt --stop-words row.txt", 1, "row.txt:2: expected one word a line, found 'cats, dogs, paris'"),
    ("train lda twice.txt --stop-words folder", 1, "folder: is a directory; expected a file of words"),
    ("train lda twice.txt --stop-words empty.csv", 1, "empty.csv: holds no words; expected one word a line"),
    (
        "train lda twice.txt --stop-words vocab.txt --report vocab.txt",
        2,
        "--report vocab.txt would overwrite --stop-words; give another name",
    ),
    (
        "train lda range.txt --vocabulary vocab.txt --report vocab.txt",
        2,
        "--report vocab.txt would overwrite --vocabulary; give another name",
    ),
    // Cuts that leave nothing.
    (
        "train lda small.txt",
        1,
        "small.txt: none of its 3 words is left by the limits on stop words and document frequency; widen them",
    ),
    (
        "train lda twice.txt --stop-words vocab.txt",
        1,
        "twice.txt: none of its 2 words is left by the limits on stop words and document frequency; widen them",
    ),
    (
        "train lda twice.txt --min-documents 3",
        1,
        "twice.txt: none of its 2 words is left by the limits on stop words and document frequency; widen them",
    ),
    (
        "train lda twice.txt --max-share 0.3",
        1,
        "twice.txt: none of its 2 words is left by the limits on stop words and document frequency; widen them",
    ),
    // Options.
    (
        "train lda twice.txt --min-documents -1",
        2,
        "invalid value '-1' for '--min-documents <N>': expected a whole number of 0 or more",
    ),
    (
        "train lda twice.txt --min-documents 1.5",
        2,
        "invalid value '1.5' for '--min-documents <N>': expected a whole number of 0 or more",
    ),
    (
        "train lda twice.txt --max-share 0",
        2,
        "invalid value '0' for '--max-share <PART>': expected a number above 0 and up to 1, such as 0.5",
    ),
    (
        "train lda twice.txt --max-share nan",
        2,
        "invalid value 'nan' for '--max-share <PART>': expected a number above 0 and up to 1, such as 0.5",
    ),
    (
        "train lda twice.txt --max-words 0",
        2,
        "invalid value '0' for '--max-words <N>': expected a whole number of 1 or more",
    ),
    (
        "train lda twice.txt --topics 2.5",
        2,
        "invalid value '2.5' for '--topics <K>': expected a whole number of 1 or more",
    ),
    ("train lda twice.txt --alpha -1", 2, "invalid value '-1' for '--alpha <ALPHA>': expected a number above 0"),
    ("train lda twice.txt --alpha inf", 2, "invalid value 'inf' for '--alpha <ALPHA>': expected a number above 0"),
    ("train lda twice.txt --beta 0", 2, "invalid value '0' for '--beta <BETA>': expected a number above 0"),
    (
        "train lda twice.txt --sampler gibbs",
        2,
        "invalid value 'gibbs' for '--sampler <SAMPLER>' [possible values: auto, sparse, mh]",
    ),
    (
        "train lda twice.txt --begin-with 1.1",
        2,
        "invalid value '1.1' for '--begin-with <PART>': expected a number above 0 and up to 1, such as 0.5",
    ),
    ("train lda twice.txt --epochs 0", 2, "invalid value '0' for '--epochs <N>': expected a whole number of 1 or more"),
    (
        "train lda twice.txt --evaluate-every 0",
        2,
        "invalid value '0' for '--evaluate-every <EPOCHS>': expected a whole number of 1 or more",
    ),
    (
        "train lda twice.txt --clocks-per-epoch 0",
        2,
        "invalid value '0' for '--clocks-per-epoch <N>': expected a whole number between 1 and 65536",
    ),
    (
        "train lda twice.txt --epochs 4294967295 --clocks-per-epoch 2",
        2,
        "--epochs times --clocks-per-epoch are more clocks than can be counted; give fewer",
    ),
    (
        "train lda twice.txt --staleness -1",
        2,
        "invalid value '-1' for '--staleness <CLOCKS>': expected a whole number of 0 or more",
    ),
    (
        "train lda twice.txt --value-bound 1",
        2,
        "--value-bound has no effect with --consistency essp; give --consistency vap",
    ),
    (
        "train lda twice.txt --wire f16",
        2,
        "--wire needs --processes: nothing travels between the threads of one process",
    ),
    (
        "train lda twice.txt --processes 2 --bandwidth 1gbit --priority largest",
        2,
        "invalid value 'largest' for '--priority <ORDER>' [possible values: random, round-robin, absolute, relative]",
    ),
    (
        "train lda twice.txt --processes 2 --priority random",
        2,
        "--priority has an effect only with --bandwidth; give that, too",
    ),
    (
        "train lda twice.txt --processes 2 --bandwidth 7kbit",
        2,
        "invalid value '7kbit' for '--bandwidth <RATE>': expected a rate of 100kbit or more, such as 200mbit",
    ),
    (
        "train lda twice.txt --bandwidth 1gbit",
        2,
        "--bandwidth needs --processes: the threads of one process send nothing",
    ),
];

/// Files of which each has one thing wrong; headers that are right are of 2 documents, 3 words and 1 entry.
const FILES: &[(&str, &[u8])] = &[
    ("numbers.txt", b"1984 3 4\n"),
    ("small.txt", b"the and of\n"),
    ("gap.txt", b"cat\n\nowl\n"),
    ("cities.txt", b"Paris\nNew York\n"),
    ("capitals.txt", b"paris\nPARIS\n"),
    ("row.txt", b"emu\ncats, dogs, paris\n"),
    ("nothing.docword", b"0\n0\n0\n"),
    ("right.docword", b"2\n3\n1\n1 1 1\n"),
    ("behind.docword", b"2\n3\n2\n2 1 1\n1 1 1\n"),
    ("document.docword", b"2\n3\n1\n3 1 1\n"),
    ("document-0.docword", b"2\n3\n1\n0 1 1\n"),
    ("word.docword", b"2\n3\n1\n1 4 1\n"),
    ("word-0.docword", b"2\n3\n1\n1 0 1\n"),
    ("count-0.docword", b"2\n3\n1\n1 1 0\n"),
    ("count.docword", b"2\n3\n1\n1 1 1000001\n"),
    ("two.docword", b"2\n3\n1\n1 1\n"),
    ("spelled.docword", b"2\n3\n1\n1 cat 1\n"),
    ("entries.docword", b"2\n3\n1\n1 1 1\n1 2 1\n"),
    ("again.docword", b"2\n3\n2\n1 1 1\n1 1 2\n"),
    ("header.docword", b"2\n3\n"),
    ("negative.docword", b"-2\n3\n1\n1 1 1\n"),
    ("lettered.docword", b"2\n3\nmany\n1 1 1\n"),
    ("huge.docword", b"2\n4294967295\n1\n1 1 1\n"),
    ("bare.dat", b"1 0:1\n1 x\n"),
    ("spelled.dat", b"1 0:1\n1 cat:1\n"),
    ("count.dat", b"1 0:1\n1 1:-1\n"),
    ("start.dat", b"1 0:1\nx 1:1\n"),
    ("again.dat", b"1 0:1\n2 0:1 0:2\n"),
    ("fewer.dat", b"2 0:1\n"),
    ("more.dat", b"1 0:1 1:1\n"),
];

pub(crate) fn prepare(directory: &Path) {
    write_files(directory, FILES);
    write_files(directory, &[("tome.txt", "cat ".repeat(1 << 16).as_bytes())]);
}
