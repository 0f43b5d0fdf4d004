//! The option that makes less of a message travel.

use crate::failure::usage;
use hemiola::filter::Direction;
use hemiola::filter::ledger::FilterSaving;
use hemiola::filter::list::{self, ListError};
use hemiola::{Filter, Filters};
use std::io::{self, Write};

/// What the option says, and what it means.
#[derive(Clone, Debug)]
pub(crate) struct List {
    pub(crate) text: String,
    /// Those of every table.
    pub(crate) filters: Filters,
    /// The one that works within l1lr.
    pub(crate) kkt: bool,
}

/// That of random-skip.
const SEED: u64 = 0;
/// The word of a list without filters.
const NONE: &str = "none";
/// The filter that l1lr applies itself, since it saves computing, too, and knows its own penalty.
const KKT: &str = "kkt";

/// Reads the option.
///
/// # Errors
/// If there are no such filters, or they contradict one another.
pub(crate) fn parse(text: &str) -> Result<List, String> {
    let items: Vec<&str> = text.split(',').map(str::trim).collect();
    let others: Vec<&str> = items.iter().copied().filter(|&item| item != KKT).collect();
    match items.len() - others.len() {
        0 | 1 => {}
        _ => return Err(format!("filter '{KKT}' is there twice")),
    }
    let kkt = items.len() > others.len();
    let filters = match others[..] {
        [] => Filters::default(),
        [NONE] if !kkt => Filters::default(),
        _ => list::parse(&others.join(","), SEED).map_err(|error| match error {
            ListError::Unknown { name } => format!(
                "there is no filter '{name}'; the filters are key-cache, lz4, zstd, significant:T, random-skip:P, feedback, \
                 and kkt of l1lr"
            ),
            error => error.to_string(),
        })?,
    };
    if names(&filters).any(|name| name == KKT) {
        return Err(format!("filter '{KKT}' takes nothing after its name, since l1lr knows its penalty"));
    }
    Ok(List { text: text.to_owned(), filters, kkt })
}

/// The selection filters.
fn names(filters: &Filters) -> impl Iterator<Item = &str> {
    let all = filters.updates.iter().chain(&filters.rows);
    all.filter(|filter| matches!(filter, Filter::Selection(_))).map(Filter::name)
}

/// Refuses filters that hold updates back where all must arrive, and says why they must.
///
/// # Errors
/// If there is one in the list.
pub(crate) fn check_all_arrive(list: Option<&List>, why: &str) -> anyhow::Result<()> {
    match list.and_then(|list| names(&list.filters).next()) {
        Some(name) => Err(usage(format!("--filters {name} holds back what must arrive: {why}; leave it out"))),
        None => Ok(()),
    }
}

/// Why all of it must arrive.
pub(crate) const COUNTS: &str = "topics are counted";
pub(crate) const REPLICAS: &str = "replicas become one by what all of them changed";
pub(crate) const MINIBATCHES: &str = "a minibatch is subtracted whole";

/// Refuses the filter of l1lr for another model.
///
/// # Errors
/// If it is in the list.
pub(crate) fn check_without_kkt(list: Option<&List>) -> anyhow::Result<()> {
    match list {
        Some(List { kkt: true, .. }) => Err(usage(format!(
            "--filters {KKT} has an effect only on l1lr, whose weights mostly stay zero; leave it out"
        ))),
        _ => Ok(()),
    }
}

/// Whether l1lr leaves out what will stay zero: unless other filters are asked for instead.
pub(crate) fn kkt(list: Option<&List>) -> bool {
    list.is_none_or(|list| list.kkt)
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
