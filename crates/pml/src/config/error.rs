//! What can be wrong with a config, each time with its place and a way out.

use std::fmt;
use std::path::{Path, PathBuf};

/// One complaint about one place of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// The file.
    pub file: PathBuf,
    /// The file as shown, with the home directory as `~`.
    pub shown: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong, on one line.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Complaint {
    /// Everything but the hint.
    pub fn place_and_message(&self) -> String {
        format!("{}:{}:{}: {}", self.shown, self.line, self.column, self.message)
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place_and_message())?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

/// A server that was left out, and why; the other servers are not touched by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Its name as written, which may be no valid name.
    pub server: String,
    /// Why, and where.
    pub complaint: Box<Complaint>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.complaint.fmt(f)
    }
}

/// Why a config, token or trust file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The content of a file is wrong.
    #[error("{0}")]
    Invalid(Box<Complaint>),
    /// The system refused.
    #[error("cannot {action} `{path}`: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Something outside a config file is not as it must be.
    #[error("{message}\nhint: {hint}")]
    Refused {
        /// What is wrong.
        message: String,
        /// What to do.
        hint: String,
    },
}

impl From<Complaint> for Error {
    fn from(complaint: Complaint) -> Error {
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

/// The known word that `word` was probably meant to be.
pub(super) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let limit = (word.chars().count() / 3).max(1);
    known
        .iter()
        .map(|candidate| (distance(word, candidate), *candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edit distance in which swapping two neighbours counts once: the commonest slip of the fingers.
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
            assert_eq!(nearest(word, &known), expected, "{word}");
        }
    }
}
