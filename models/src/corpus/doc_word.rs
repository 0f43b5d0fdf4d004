//! UCI bag-of-words, entry by entry.

use super::LineProblem;
use super::distinct::Distinct;
use super::read::{Builder, count, whole};
use crate::line_blocks::shortened;

const COUNTED: [&str; 3] = ["documents", "words", "entries"];

/// What has been read of a file.
#[derive(Default)]
pub(super) struct DocWord {
    /// How many documents, words and entries the header states; zeros until it has been read.
    header: [u64; 3],
    /// On which lines the header states them.
    header_lines: [u64; 3],
    /// How many lines of the header have been read.
    headed: usize,
    lines: u64,
    entries: u64,
    /// The document of the last entry, from 1.
    document: u64,
    /// Its words.
    distinct: Distinct,
}

impl DocWord {
    pub(super) fn line(&mut self, line: &[u8], builder: &mut Builder) -> Result<(), LineProblem> {
        self.lines += 1;
        let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
        let Some(first) = fields.next() else {
            return Ok(());
        };
        if self.headed < COUNTED.len() {
            return self.header_line(line, builder);
        }
        let (second, third, fourth) = (fields.next(), fields.next(), fields.next());
        let entry = || LineProblem::Entry { found: shortened(line.trim_ascii()) };
        let (Some(second), Some(third), None) = (second, third, fourth) else {
            return Err(entry());
        };
        let (document, word) = whole(first).zip(whole(second)).ok_or_else(entry)?;
        let count = count(third).ok_or_else(|| LineProblem::Count { found: shortened(third) })?;
        self.entry(document, word, count, builder)
    }

    fn entry(&mut self, document: u64, word: u64, count: u32, builder: &mut Builder) -> Result<(), LineProblem> {
        let [documents, words, entries] = self.header;
        for (what, found, most) in [("document", document, documents), ("word", word, words)] {
            if found == 0 || found > most {
                return Err(LineProblem::Beyond { what, found, most });
            }
        }
        if document < self.document {
            return Err(LineProblem::Order { found: document, before: self.document });
        }
        self.entries += 1;
        if self.entries > entries {
            return Err(LineProblem::Entries { stated: entries, found: self.entries });
        }
        self.move_to(document, builder)?;
        if !self.distinct.insert(word) {
            return Err(LineProblem::Again { word });
        }
        let number = builder.words.number_of_listed(word - 1, word)?;
        builder.add(number, count)
    }

    /// Ends the documents before `document`.
    fn move_to(&mut self, document: u64, builder: &mut Builder) -> Result<(), LineProblem> {
        while self.document < document {
            if self.document > 0 {
                builder.end_document()?;
            }
            self.document += 1;
            self.distinct.clear();
        }
        Ok(())
    }

    fn header_line(&mut self, line: &[u8], builder: &Builder) -> Result<(), LineProblem> {
        let (line, what) = (line.trim_ascii(), COUNTED[self.headed]);
        let stated = whole(line).ok_or_else(|| LineProblem::Header { what, found: shortened(line) })?;
        // A word's number plus one must be a number of a corpus.
        if what != "entries" && stated >= u64::from(u32::MAX) {
            return Err(LineProblem::TooMany { what, stated });
        }
        if let (1, Some(found)) = (self.headed, builder.words.listed_length())
            && stated != found as u64
        {
            return Err(LineProblem::VocabularyLength { stated, found });
        }
        self.header[self.headed] = stated;
        self.header_lines[self.headed] = self.lines;
        self.headed += 1;
        Ok(())
    }

    /// Ends the last documents and checks that the header was right; a problem comes with the line to blame.
    pub(super) fn finish(mut self, builder: &mut Builder) -> Result<(), (u64, LineProblem)> {
        if self.headed < COUNTED.len() {
            return Err((self.lines, LineProblem::ShortHeader { what: COUNTED[self.headed] }));
        }
        let [documents, _, stated] = self.header;
        if self.entries != stated {
            return Err((self.header_lines[2], LineProblem::Entries { stated, found: self.entries }));
        }
        let header = self.header_lines[0];
        self.move_to(documents, builder).map_err(|problem| (header, problem))?;
        if documents > 0 { builder.end_document().map_err(|problem| (header, problem)) } else { Ok(()) }
    }
}
