//! Removes secrets from everything that is stored: traces, capabilities, observed schemas, caches and logs.
//!
//! A secret is recognised by its value (the configured ones, in any usual encoding), by its name, or by its shape.
//! Everything around it stays unchanged, byte for byte. Each text is scanned a fixed number of times without
//! backtracking, so that no input can make it slow. What programs and tools receive is not sanitised: only what is
//! stored is.

mod appearance;
mod known;
mod name;
mod named;
mod note;
mod pair;
mod shape;
#[cfg(test)]
mod tests;
mod view;
mod walk;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use serde_json::value::RawValue;

pub(crate) use appearance::is_common;
use known::SecretMatcher;
pub use known::{Certainty, KnownSecret};
pub use name::is_secret_name;
use view::{DecodedText, Escapes};

/// The replacement of a secret.
pub const MARK: &str = "[REDACTED]";

/// How many times a text may be encoded over: JSON in a query parameter of an HTML link is three.
const LAYERS: usize = 3;

/// Recognises the configured secrets, and the shapes of others.
#[derive(Debug)]
pub struct Sanitiser {
    known: SecretMatcher,
    /// The secrets removed elsewhere in the same trace.
    also: SecretMatcher,
    /// The removed secrets; `None` unless they are recorded.
    noted: Option<Mutex<BTreeSet<String>>>,
}

/// A JSON value without its secrets.
#[derive(Debug, Clone)]
pub struct SanitisedJson {
    /// The sanitised value.
    pub value: Box<RawValue>,
    /// Whether anything was removed.
    pub changed: bool,
}

impl Sanitiser {
    /// A sanitiser that also removes the values `known`, as far as their certainty requires.
    pub fn new(known: impl IntoIterator<Item = KnownSecret>) -> Sanitiser {
        Sanitiser { known: SecretMatcher::new(known), also: SecretMatcher::default(), noted: None }
    }

    /// The same sanitiser, which also records what it removes.
    pub(crate) fn recording_secrets(&self) -> Sanitiser {
        Sanitiser { known: self.known.clone(), also: self.also.clone(), noted: Some(Mutex::default()) }
    }

    /// The secrets removed since [`recording_secrets`](Sanitiser::recording_secrets).
    pub(crate) fn recorded_secrets(&self) -> BTreeSet<String> {
        let noted =
            self.noted.as_ref().map(|noted| noted.lock().unwrap_or_else(PoisonError::into_inner).clone());
        noted.unwrap_or_default()
    }

    /// The same sanitiser, which also removes `secrets` wherever they occur.
    pub(crate) fn with_secrets(&self, secrets: impl IntoIterator<Item = String>) -> Sanitiser {
        let secrets = secrets.into_iter().map(|value| KnownSecret::new(Certainty::Certain, value));
        Sanitiser { known: self.known.clone(), also: SecretMatcher::new(secrets), noted: None }
    }

    /// The same sanitiser, which also removes the secrets in `value` wherever they occur.
    pub(crate) fn with_secrets_in(&self, value: &RawValue) -> Sanitiser {
        let noting = self.recording_secrets();
        noting.clean_json(value);
        self.with_secrets(noting.recorded_secrets())
    }

    /// Records the secrets removed from `text`, if recording is on.
    fn note<'e>(&self, text: &str, edits: impl Iterator<Item = &'e Edit>) {
        if let Some(noted) = &self.noted {
            let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
            edits
                .filter_map(|edit| text.get(edit.range.clone()))
                .for_each(|text| note::collect(text, &mut noted));
        }
    }

    /// `text` without its secrets; borrowed if there are none.
    pub fn clean_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.is_ordinary(text.as_bytes()) {
            return Cow::Borrowed(text);
        }
        let mut edits: Vec<Edit> = self.secrets(text.as_bytes()).into_iter().map(Edit::mark).collect();
        self.note(text, edits.iter());
        if edits.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(edited(text, &mut edits)) }
    }

    /// `value` without its secrets, by the names of members and within every string.
    pub fn clean_json(&self, value: &RawValue) -> SanitisedJson {
        let text = value.get();
        if self.is_ordinary(text.as_bytes()) {
            return SanitisedJson { value: value.to_owned(), changed: false };
        }
        let mut edits = Vec::new();
        walk::walk(self, text.as_bytes(), 0, &mut edits);
        if edits.is_empty() {
            return SanitisedJson { value: value.to_owned(), changed: false };
        }
        self.note(text, edits.iter());
        // Every edit replaces a value by a value. If one were wrong, storing nothing would be right.
        let value =
            RawValue::from_string(edited(text, &mut edits)).unwrap_or_else(|_| pml_model::json::raw(&MARK));
        SanitisedJson { value, changed: true }
    }

    /// Whether nothing in `bytes` needs a closer check, as in most texts.
    fn is_ordinary(&self, bytes: &[u8]) -> bool {
        let wrapped = self.may_be_wrapped();
        !bytes.iter().any(|byte| Escapes::Any.may_begin_with(*byte) || (wrapped && *byte == b'\n'))
            && !shape::may_be_in(bytes)
            && !self.knows(bytes)
    }

    /// Whether `bytes` contains a configured or recorded secret.
    fn knows(&self, bytes: &[u8]) -> bool {
        self.known.is_in(bytes) || self.also.is_in(bytes)
    }

    fn may_be_wrapped(&self) -> bool {
        self.known.may_be_wrapped() || self.also.may_be_wrapped()
    }

    fn find_known(&self, bytes: &[u8], found: &mut Vec<Range<usize>>) {
        self.known.find(bytes, found);
        self.also.find(bytes, found);
    }

    /// The positions of secrets in `bytes`, as it stands and decoded.
    fn secrets(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut secrets = Vec::new();
        self.look(bytes, &[], &mut secrets);
        let mut views: Vec<DecodedText> = Vec::new();
        for _ in 0..LAYERS {
            let Some(view) =
                DecodedText::decode(Escapes::Any, views.last().map_or(bytes, |view| &view.bytes))
            else {
                break;
            };
            views.push(view);
            let bytes = views.last().map_or(bytes, |view| &view.bytes);
            self.look(bytes, &views, &mut secrets);
        }
        secrets
    }

    /// Scans `bytes` once, which is the text as seen through `views`.
    fn look(&self, bytes: &[u8], views: &[DecodedText], secrets: &mut Vec<Range<usize>>) {
        let in_text = |range: Range<usize>| views.iter().rev().fold(range, |range, view| view.source(range));
        let mut found = Vec::new();
        self.find_known(bytes, &mut found);
        shape::find(bytes, &mut found);
        pair::find(bytes, &mut found);
        secrets.extend(found.drain(..).map(in_text));
        // Mail, PEM files and terminals wrap long values.
        if let Some(joined) =
            self.may_be_wrapped().then(|| DecodedText::decode(Escapes::Lines, bytes)).flatten()
        {
            self.find_known(&joined.bytes, &mut found);
            secrets.extend(found.into_iter().map(|range| in_text(joined.source(range))));
        }
    }
}

/// One replacement in a text.
#[derive(Debug)]
struct Edit {
    range: Range<usize>,
    text: Cow<'static, str>,
}

impl Edit {
    fn mark(range: Range<usize>) -> Edit {
        Edit { range, text: Cow::Borrowed(MARK) }
    }
}

/// `text` with the edits applied. Of overlapping edits the outer and earlier one wins, and covers the union of both.
fn edited(text: &str, edits: &mut [Edit]) -> String {
    edits.sort_by(|a, b| a.range.start.cmp(&b.range.start).then(b.range.end.cmp(&a.range.end)));
    let mut clean = String::with_capacity(text.len());
    let (mut done, mut first) = (0, true);
    for edit in edits {
        let range = whole_characters(text, &edit.range);
        if first || range.start >= done {
            clean.push_str(&text[done..range.start]);
            clean.push_str(&edit.text);
        }
        done = done.max(range.end);
        first = false;
    }
    clean.push_str(&text[done..]);
    clean
}

/// `range`, extended to character boundaries.
fn whole_characters(text: &str, range: &Range<usize>) -> Range<usize> {
    let (mut start, mut end) = (range.start, range.end);
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}
