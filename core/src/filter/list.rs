//! Filters from a line of text, such as `key-cache,zstd,significant:1e-4`.
//!
//! Names are separated by commas, in the order in which a sender applies them:
//!
//! | filter | what it does |
//! |---|---|
//! | `key-cache` | a list of row ids that has travelled before travels as a signature |
//! | `lz4`, `zstd` | messages are compressed |
//! | `significant:T` | rows that changed by at most `T` wait until they have changed by more |
//! | `random-skip:P` | a part `P` of the rows is left out, by a hash of the seed |
//! | `kkt:L:D:S` | gradients of zero weights are left out where `\|g\| ≤ S·(L − D)` |
//! | `feedback` | what the lossy filters before it leave out is added to the row's next update instead |
//!
//! Encoding filters are for both directions, selection filters for updates; `updates/` or `rows/` before a name says
//! that it is for that direction alone.

use super::{Direction, Feedback, Filter, Filters, KeyCache, Kkt, Lz4, RandomSkip, Remainder, Significant, Zstd};
use std::sync::Arc;
use thiserror::Error;

/// A list of filters that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum ListError {
    #[error(
        "there is no filter '{name}'; the filters are key-cache, lz4, zstd, significant:T, random-skip:P, kkt:L:D:S and feedback"
    )]
    Unknown { name: String },
    #[error("a filter's direction is updates or rows, not '{direction}'")]
    Direction { direction: String },
    #[error("filter '{name}' is written {form}")]
    Form { name: &'static str, form: &'static str },
    #[error("filter '{name}' takes nothing after its name")]
    Bare { name: &'static str },
    #[error("filter '{name}' is there twice")]
    Twice { name: &'static str },
    #[error("filters 'lz4' and 'zstd' both compress; choose one")]
    BothCompress,
    #[error("filter 'key-cache' must come before '{compression}', which hides the row ids")]
    KeysHidden { compression: &'static str },
    #[error("filter 'feedback' needs a filter before it that loses updates: random-skip or kkt")]
    NothingLost,
    #[error("filter '{name}' is for updates; rows lose nothing")]
    NotForRows { name: &'static str },
}

/// One filter of the list.
struct Item {
    name: &'static str,
    filter: Option<Filter>,
    directions: Vec<Direction>,
}

/// The filters of a list; `seed` is that of `random-skip`.
///
/// # Errors
/// The first thing found wrong.
pub fn parse(list: &str, seed: u64) -> Result<Filters, ListError> {
    let mut items: Vec<Item> = Vec::new();
    for text in list.split(',') {
        let item = Item::parse(text.trim(), seed)?;
        let meets = |other: &&Item| other.directions.iter().any(|direction| item.directions.contains(direction));
        let compresses = |name: &str| matches!(name, "lz4" | "zstd");
        for other in items.iter().filter(meets) {
            if other.name == item.name {
                return Err(ListError::Twice { name: item.name });
            }
            if compresses(other.name) && compresses(item.name) {
                return Err(ListError::BothCompress);
            }
            if compresses(other.name) && item.name == "key-cache" {
                return Err(ListError::KeysHidden { compression: other.name });
            }
        }
        items.push(item);
    }
    let mut filters = Filters::default();
    for Item { filter, directions, .. } in items {
        let Some(filter) = filter else {
            let lossy = |filter: &mut Filter| match filter {
                Filter::Selection(selection) if selection.remainder() == Remainder::Dropped => {
                    *filter = Filter::selection(Feedback(Arc::clone(selection)));
                    true
                }
                _ => false,
            };
            if filters.updates.iter_mut().map(lossy).filter(|changed| *changed).count() == 0 {
                return Err(ListError::NothingLost);
            }
            continue;
        };
        for direction in directions {
            match direction {
                Direction::Updates => filters.updates.push(filter.clone()),
                Direction::Rows => filters.rows.push(filter.clone()),
            }
        }
    }
    Ok(filters)
}

impl Item {
    fn parse(text: &str, seed: u64) -> Result<Self, ListError> {
        let (direction, text) = match text.split_once('/') {
            Some(("updates", rest)) => (Some(Direction::Updates), rest),
            Some(("rows", rest)) => (Some(Direction::Rows), rest),
            Some((direction, _)) => return Err(ListError::Direction { direction: direction.to_owned() }),
            None => (None, text),
        };
        let mut words = text.split(':');
        let name = words.next().unwrap_or_default();
        let values: Vec<&str> = words.collect();
        let number = |text: &&str| text.parse::<f64>().ok().filter(|number| number.is_finite());
        let numbers: Option<Vec<f64>> = values.iter().map(number).collect();
        let (name, filter) = match name {
            "key-cache" => ("key-cache", Some(Filter::encoding(KeyCache::default()))),
            "lz4" => ("lz4", Some(Filter::encoding(Lz4))),
            "zstd" => ("zstd", Some(Filter::encoding(Zstd))),
            "feedback" => ("feedback", None),
            "significant" => {
                let form = "significant:T, with a threshold T above zero";
                let right = numbers.as_deref().and_then(|numbers| match numbers {
                    [threshold] if *threshold as f32 > 0.0 => Some(Significant { threshold: *threshold as f32 }),
                    _ => None,
                });
                let filter = right.ok_or(ListError::Form { name: "significant", form })?;
                ("significant", Some(Filter::selection(filter)))
            }
            "random-skip" => {
                let form = "random-skip:P, with a part P above 0 and below 1";
                let right = numbers.as_deref().and_then(|numbers| match numbers {
                    [share] if *share > 0.0 && *share < 1.0 => Some(RandomSkip { share: *share, seed }),
                    _ => None,
                });
                let filter = right.ok_or(ListError::Form { name: "random-skip", form })?;
                ("random-skip", Some(Filter::selection(filter)))
            }
            "kkt" => {
                let form =
                    "kkt:L:D:S, with a penalty L above 0, D from 0 to L, and a worker's share S above 0 and at most 1";
                let right = numbers.as_deref().and_then(|numbers| match numbers {
                    &[lambda, delta, share]
                        if lambda > 0.0 && (0.0..=lambda).contains(&delta) && share > 0.0 && share <= 1.0 =>
                    {
                        Some(Kkt { lambda: lambda as f32, delta: delta as f32, share: share as f32 })
                    }
                    _ => None,
                });
                ("kkt", Some(Filter::selection(right.ok_or(ListError::Form { name: "kkt", form })?)))
            }
            name => return Err(ListError::Unknown { name: name.to_owned() }),
        };
        if !values.is_empty() && matches!(name, "key-cache" | "lz4" | "zstd" | "feedback") {
            return Err(ListError::Bare { name });
        }
        let selects = matches!(filter, None | Some(Filter::Selection(_)));
        let directions = match direction {
            Some(Direction::Rows) if matches!(name, "kkt" | "feedback") => return Err(ListError::NotForRows { name }),
            Some(direction) => vec![direction],
            None if selects => vec![Direction::Updates],
            None => vec![Direction::Updates, Direction::Rows],
        };
        Ok(Self { name, filter, directions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_what_each_direction_does_in_order() {
        let names = |list: &str| {
            let filters = parse(list, 7).unwrap_or_else(|error| panic!("{list}: {error}"));
            let names =
                |chain: &[Filter]| chain.iter().map(|filter| format!("{filter:?}")).collect::<Vec<_>>().join(" ");
            (names(&filters.updates), names(&filters.rows))
        };
        let skip = "RandomSkip { share: 0.25, seed: 7 }";
        let cases = [
            ("zstd", "Encoding(Zstd)".to_owned(), "Encoding(Zstd)".to_owned()),
            ("rows/lz4, updates/zstd", "Encoding(Zstd)".to_owned(), "Encoding(Lz4)".to_owned()),
            ("random-skip:0.25", format!("Selection({skip})"), String::new()),
            ("random-skip:0.25,feedback", format!("Selection(Feedback({skip}))"), String::new()),
            ("rows/significant:1e-3", String::new(), "Selection(Significant { threshold: 0.001 })".to_owned()),
            ("kkt:1:0.25:0.5", "Selection(Kkt { lambda: 1.0, delta: 0.25, share: 0.5 })".to_owned(), String::new()),
        ];
        for (list, updates, rows) in cases {
            assert_eq!(names(list), (updates, rows), "{list}");
        }
        let both = "Encoding(KeyCache { ids_max: 4194304 }) Encoding(Lz4)".to_owned();
        assert_eq!(names("key-cache,lz4"), (both.clone(), both));
    }

    #[test]
    fn a_list_that_cannot_be_is_refused_with_its_reason() {
        let cases = [
            (
                "",
                "there is no filter ''; the filters are key-cache, lz4, zstd, significant:T, random-skip:P, kkt:L:D:S and feedback",
            ),
            ("push/zstd", "a filter's direction is updates or rows, not 'push'"),
            ("significant", "filter 'significant' is written significant:T, with a threshold T above zero"),
            ("significant:-1", "filter 'significant' is written significant:T, with a threshold T above zero"),
            ("significant:nan", "filter 'significant' is written significant:T, with a threshold T above zero"),
            ("random-skip:1", "filter 'random-skip' is written random-skip:P, with a part P above 0 and below 1"),
            ("random-skip:0.1:2", "filter 'random-skip' is written random-skip:P, with a part P above 0 and below 1"),
            (
                "kkt:1:2:1",
                "filter 'kkt' is written kkt:L:D:S, with a penalty L above 0, D from 0 to L, and a worker's share S above 0 and at most 1",
            ),
            ("zstd:3", "filter 'zstd' takes nothing after its name"),
            ("zstd,zstd", "filter 'zstd' is there twice"),
            ("lz4,zstd", "filters 'lz4' and 'zstd' both compress; choose one"),
            ("zstd,key-cache", "filter 'key-cache' must come before 'zstd', which hides the row ids"),
            (
                "significant:1,feedback",
                "filter 'feedback' needs a filter before it that loses updates: random-skip or kkt",
            ),
            ("rows/kkt:1:0:1", "filter 'kkt' is for updates; rows lose nothing"),
        ];
        for (list, sentence) in cases {
            assert_eq!(parse(list, 0).expect_err(list).to_string(), sentence);
        }
    }
}
