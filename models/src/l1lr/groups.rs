//! The groups of features, read from lines of a feature and the name of its group.

use crate::examples::Examples;
use crate::line_blocks::{LinesError, each_line, shortened};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// What messages call the content of a file.
const EXPECTED: &str = "groups";

/// Why groups could not be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum GroupsError {
    #[error(transparent)]
    Lines(#[from] LinesError),
    #[error("{file}:{line}: expected a feature and its group, such as age,person")]
    Line { file: String, line: u64 },
    #[error("{file}:{line}: the examples have no feature {feature}")]
    Unknown { file: String, line: u64, feature: String },
    #[error("{file}:{line}: feature {feature} is in group {before}, and here in another; expected one of them")]
    Twice { file: String, line: u64, feature: String, before: String },
    #[error("{file}: has no groups")]
    None { file: String },
}

/// Reads the groups of the features of `examples`, which are called as in a file of weights: by their names where they have
/// any, otherwise by their numbers. Features that are in no line are a group of their own.
///
/// # Errors
/// The first line that is not a feature and its group.
pub fn read(path: &Path, examples: &Examples) -> Result<Arc<[u32]>, GroupsError> {
    let features = examples.features();
    let names: HashMap<&str, usize> =
        (0..features).filter_map(|feature| Some((examples.feature_name(feature)?, feature))).collect();
    let number = |name: &str| match names.is_empty() {
        true => name.parse().ok().filter(|number| *number < features),
        false => names.get(name).copied(),
    };
    let mut groups: Vec<u32> = vec![0; features];
    let mut known: Vec<String> = Vec::new();
    let mut numbers: HashMap<String, u32> = HashMap::new();
    each_line(path, EXPECTED, |text, file, line| {
        let (feature, group) = pair(text).ok_or_else(|| GroupsError::Line { file: file.to_owned(), line })?;
        let (file, shown) = (file.to_owned(), shortened(feature.as_bytes()));
        let Some(at) = number(feature) else { return Err(GroupsError::Unknown { file, line, feature: shown }) };
        let next = 1 + known.len() as u32;
        let new = *numbers.entry(group.to_owned()).or_insert(next);
        if new == next {
            known.push(group.to_owned());
        }
        match groups[at] {
            0 => groups[at] = new,
            old if old == new => {}
            old => {
                let before = shortened(known[old as usize - 1].as_bytes());
                return Err(GroupsError::Twice { file, line, feature: shown, before });
            }
        }
        Ok(())
    })?;
    if known.is_empty() { Err(GroupsError::None { file: path.display().to_string() }) } else { Ok(groups.into()) }
}

/// The two names of a line, with a comma, a semicolon, a tab or blanks between them.
fn pair(text: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let (feature, group) = [',', ';', '\t', ' '].into_iter().find_map(|separator| text.split_once(separator))?;
    let (feature, group) = (feature.trim(), group.trim());
    (!feature.is_empty() && !group.is_empty()).then_some((feature, group))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::Options;

    #[test]
    fn features_are_called_by_name_or_number() {
        let directory = tempfile::tempdir().expect("a directory");
        let written = |name: &str, text: &str| {
            let file = directory.path().join(name);
            std::fs::write(&file, text).expect("written");
            file
        };
        let examples =
            |name: &str, text: &str| Examples::read(&[written(name, text)], &Options::default()).expect("examples");
        let check = |examples: &Examples, text: &str| {
            let file = written("groups", text);
            read(&file, examples).map_err(|error| error.to_string().replace(&file.display().to_string(), "groups"))
        };
        let named = examples("named.csv", "age,first name,height,label\n1,2,3,a\n4,5,6,b\n");
        assert_eq!(check(&named, "height,body\n\nage , person\nfirst name,person\n").expect("groups")[..], [2, 2, 1]);
        assert_eq!(check(&named, "height\tbody").expect("groups")[..], [0, 0, 1]);
        for (text, sentence) in [
            ("age,person\nweight,body", "groups:2: the examples have no feature weight"),
            ("age", "groups:1: expected a feature and its group, such as age,person"),
            ("age,", "groups:1: expected a feature and its group, such as age,person"),
            ("\n", "groups: has no groups"),
            (
                "age,person\nage,body",
                "groups:2: feature age is in group person, and here in another; expected one of them",
            ),
        ] {
            assert_eq!(check(&named, text), Err(sentence.to_owned()));
        }
        let numbered = examples("numbered.svm", "1 1:1 3:1\n-1 2:1\n");
        let last = numbered.features() - 1;
        assert_eq!(check(&numbered, &format!("{last} a")).expect("groups")[last], 1);
        assert_eq!(check(&numbered, "9 a"), Err("groups:1: the examples have no feature 9".to_owned()));
    }
}
