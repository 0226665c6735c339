//! Configuration errors, each with its position and a hint.

use std::fmt;
use std::path::{Path, PathBuf};

/// An error at one position of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigComplaint {
    /// The file.
    pub file: PathBuf,
    /// The path for display, with the home directory as `~`.
    pub shown_path: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong, on one line.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

impl ConfigComplaint {
    /// Position and message, without the hint.
    pub fn place_and_message(&self) -> String {
        format!("{}:{}:{}: {}", self.shown_path, self.line, self.column, self.message)
    }
}

impl fmt::Display for ConfigComplaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place_and_message())?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

/// A server that was left out, and why. The other servers stay usable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutServer {
    /// The name as written, which may be invalid.
    pub server: String,
    /// The reason and the position.
    pub complaint: Box<ConfigComplaint>,
}

impl fmt::Display for LeftOutServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.complaint.fmt(f)
    }
}

/// Why a configuration, token or trust file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The content of a file is invalid.
    #[error("{0}")]
    Invalid(Box<ConfigComplaint>),
    /// A file operation failed.
    #[error("cannot {action} `{path}`: {source}")]
    Io {
        /// The operation, as a verb.
        action: &'static str,
        /// The file.
        path: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A condition outside the configuration files is not met.
    #[error("{message}\nhint: {hint}")]
    Refused {
        /// What is wrong.
        message: String,
        /// How to fix it.
        hint: String,
    },
}

impl From<ConfigComplaint> for Error {
    fn from(complaint: ConfigComplaint) -> Error {
        Error::Invalid(Box::new(complaint))
    }
}

impl Error {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.display().to_string();
        move |source| Error::Io { action, path, source }
    }

    pub(super) fn refused(message: impl Into<String>, hint: impl Into<String>) -> Error {
        Error::Refused { message: message.into(), hint: hint.into() }
    }
}

/// The known word that `word` is probably a misspelling of.
pub(super) fn nearest_word<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let limit = (word.chars().count() / 3).max(1);
    known
        .iter()
        .map(|candidate| (distance(word, candidate), *candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The edit distance in which swapping two neighbours counts once: the most common typing error.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.to_lowercase().chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replace.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_offered_only_when_it_is_near() {
        let known = ["command", "args", "env", "cwd", "url", "headers"];
        for (word, expected) in [
            ("comand", Some("command")),
            ("agrs", Some("args")),
            ("Command", Some("command")),
            ("header", Some("headers")),
            ("uri", Some("url")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest_word(word, &known), expected, "{word}");
        }
    }
}
