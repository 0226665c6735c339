//! Sets of scopes, in the order in which they were named.

use serde::{Deserialize, Serialize};

/// The most scopes that are kept of what a server names.
const MAX_SCOPES: usize = 100;

/// A set of scopes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scopes(Vec<String>);

impl Scopes {
    /// The scopes of a text, separated by spaces. What is no scope is left out.
    pub fn parse(text: &str) -> Scopes {
        Scopes::of(text.split_ascii_whitespace())
    }

    /// The scopes among some words.
    pub fn of<'a>(words: impl IntoIterator<Item = &'a str>) -> Scopes {
        let mut scopes = Scopes::default();
        scopes.add(words);
        scopes
    }

    /// All scopes of both.
    #[must_use]
    pub fn and(mut self, more: &Scopes) -> Scopes {
        self.add(more.0.iter().map(String::as_str));
        self
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether every scope of `other` is among these.
    pub fn cover(&self, other: &Scopes) -> bool {
        other.0.iter().all(|scope| self.0.contains(scope))
    }

    /// Whether a scope is among these.
    pub fn contains(&self, scope: &str) -> bool {
        self.0.iter().any(|known| known == scope)
    }

    fn add<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) {
        // RFC 6749 section 3.3: visible ASCII without `"` and `\`.
        let is_scope = |word: &str| {
            !word.is_empty()
                && word.len() <= 256
                && word.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
        };
        for word in words {
            if is_scope(word) && !self.contains(word) && self.0.len() < MAX_SCOPES {
                self.0.push(word.to_owned());
            }
        }
    }
}

impl std::fmt::Display for Scopes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}
