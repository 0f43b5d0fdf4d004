//! What a program to tune and to time is given: files, and keys with values.

/// Files, and `key=value` in any order; of a key given twice the last counts.
pub(crate) struct Options {
    pub(crate) files: Vec<String>,
    keys: Vec<(String, String)>,
}

impl Options {
    /// What the command line says.
    pub(crate) fn parse() -> Self {
        let mut options = Self { files: Vec::new(), keys: Vec::new() };
        for argument in std::env::args().skip(1) {
            match argument.split_once('=') {
                Some((key, value)) => options.keys.push((key.into(), value.into())),
                None => options.files.push(argument),
            }
        }
        options
    }

    /// The value of a key, if it was given one that can be.
    pub(crate) fn find<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        let found = self.keys.iter().rev().find(|(name, _)| name == key);
        found.and_then(|(_, value)| value.parse().ok())
    }

    /// The value of a key, or the usual one.
    pub(crate) fn get<T: std::str::FromStr>(&self, key: &str, default: T) -> T {
        self.find(key).unwrap_or(default)
    }
}
