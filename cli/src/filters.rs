//! The option that makes less of a message travel.

use hemiola::filter::ledger::FilterSaving;
use hemiola::filter::{Direction, list};
use hemiola::{Filter, Filters};
use std::io::{self, Write};

/// What the option says, and what it means.
#[derive(Clone, Debug)]
pub(crate) struct List {
    pub(crate) text: String,
    pub(crate) filters: Filters,
}

/// Reads the option.
///
/// # Errors
/// If there are no such filters, they contradict one another, or one would have to know the model.
pub(crate) fn parse(text: &str) -> Result<List, String> {
    let filters = list::parse(text, 0).map_err(|error| error.to_string())?;
    let selects = |filter: &&Filter| matches!(filter, Filter::Selection(_));
    if let Some(filter) = filters.updates.iter().chain(&filters.rows).find(selects) {
        return Err(format!(
            "filter '{}' holds entries back, which only programs can ask for; give key-cache, lz4 or zstd",
            filter.name()
        ));
    }
    Ok(List { text: text.to_owned(), filters })
}

/// Tells people what each filter saved.
///
/// # Errors
/// If nobody reads it.
pub(crate) fn tell(out: &mut impl Write, savings: &[FilterSaving]) -> io::Result<()> {
    for saving in savings.iter().filter(|saving| saving.bytes_in > 0) {
        let way = if saving.direction == Direction::Updates { "updates" } else { "rows" };
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        writeln!(
            out,
            "{:<14} {way} of '{}': {:.1} MB became {:.1} MB",
            saving.filter,
            saving.table,
            megabytes(saving.bytes_in),
            megabytes(saving.bytes_out)
        )?;
    }
    Ok(())
}
