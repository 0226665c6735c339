//! Takes secrets out of whatever is kept: traces, capabilities, observed schemas, caches and logs.
//!
//! A secret is known by its value (what the configuration holds, in any usual encoding), by the name it is
//! kept under, or by its shape. Everything around it stays as it was, byte for byte. It looks at each text a
//! fixed number of times and never goes back, so that nobody can make it slow. What a program or a tool gets
//! to see is not its business: only what stays behind is.

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

use known::Known;
pub(crate) use known::is_common;
pub use known::{Certainty, KnownSecret};
pub use name::is_secret_name;
use view::{Escapes, View};

/// What stands where a secret stood.
pub const MARK: &str = "[REDACTED]";

/// How often text may be encoded over: JSON in a query parameter of an HTML link is three.
const LAYERS: usize = 3;

/// Knows the secrets of this configuration, and how secrets of others look.
#[derive(Debug)]
pub struct Sanitiser {
    known: Known,
    /// What was taken out elsewhere in the same trace.
    also: Known,
    /// What is taken out, where somebody wants to know.
    noted: Option<Mutex<BTreeSet<String>>>,
}

/// A JSON value without its secrets.
#[derive(Debug, Clone)]
pub struct Cleaned {
    /// What may be kept.
    pub value: Box<RawValue>,
    /// Whether it is another value than before.
    pub changed: bool,
}

impl Sanitiser {
    /// One that also looks for the values `known`, as far as they are as certain as they must be.
    pub fn new(known: impl IntoIterator<Item = KnownSecret>) -> Sanitiser {
        Sanitiser { known: Known::new(known), also: Known::default(), noted: None }
    }

    /// The same, which remembers what it takes out.
    pub(crate) fn noting(&self) -> Sanitiser {
        Sanitiser { known: self.known.clone(), also: self.also.clone(), noted: Some(Mutex::default()) }
    }

    /// What was taken out since [`noting`](Sanitiser::noting).
    pub(crate) fn noted(&self) -> BTreeSet<String> {
        let noted =
            self.noted.as_ref().map(|noted| noted.lock().unwrap_or_else(PoisonError::into_inner).clone());
        noted.unwrap_or_default()
    }

    /// The same, which also takes out `secrets` wherever they stand.
    pub(crate) fn with(&self, secrets: impl IntoIterator<Item = String>) -> Sanitiser {
        let secrets = secrets.into_iter().map(|value| KnownSecret::new(Certainty::Certain, value));
        Sanitiser { known: self.known.clone(), also: Known::new(secrets), noted: None }
    }

    /// The same, which also takes out what is secret in `value`, wherever it stands.
    pub(crate) fn with_those_in(&self, value: &RawValue) -> Sanitiser {
        let noting = self.noting();
        noting.json(value);
        self.with(noting.noted())
    }

    /// Remembers what is taken out of `text`, where somebody wants to know.
    fn note<'e>(&self, text: &str, edits: impl Iterator<Item = &'e Edit>) {
        if let Some(noted) = &self.noted {
            let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
            edits
                .filter_map(|edit| text.get(edit.range.clone()))
                .for_each(|text| note::collect(text, &mut noted));
        }
    }

    /// `text` without its secrets; borrowed where there are none.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.is_ordinary(text.as_bytes()) {
            return Cow::Borrowed(text);
        }
        let mut edits: Vec<Edit> = self.secrets(text.as_bytes()).into_iter().map(Edit::mark).collect();
        self.note(text, edits.iter());
        if edits.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(edited(text, &mut edits)) }
    }

    /// `value` without its secrets: by the names of members, and in every string.
    pub fn json(&self, value: &RawValue) -> Cleaned {
        let text = value.get();
        if self.is_ordinary(text.as_bytes()) {
            return Cleaned { value: value.to_owned(), changed: false };
        }
        let mut edits = Vec::new();
        walk::walk(self, text.as_bytes(), 0, &mut edits);
        if edits.is_empty() {
            return Cleaned { value: value.to_owned(), changed: false };
        }
        self.note(text, edits.iter());
        // Every edit leaves a value where a value was. Were one wrong, keeping nothing would be right.
        let value =
            RawValue::from_string(edited(text, &mut edits)).unwrap_or_else(|_| pml_model::json::raw(&MARK));
        Cleaned { value, changed: true }
    }

    /// Whether nothing in `bytes` calls for a closer look, as with most of what passes.
    fn is_ordinary(&self, bytes: &[u8]) -> bool {
        let wrapped = self.may_be_wrapped();
        !bytes.iter().any(|byte| Escapes::Any.may_begin_with(*byte) || (wrapped && *byte == b'\n'))
            && !shape::may_be_in(bytes)
            && !self.knows(bytes)
    }

    /// Whether a secret that is known by its value is in `bytes`.
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

    /// Where secrets are in `bytes`, as it stands and with its encodings taken off.
    fn secrets(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut secrets = Vec::new();
        self.look(bytes, &[], &mut secrets);
        let mut views: Vec<View> = Vec::new();
        for _ in 0..LAYERS {
            let Some(view) = View::without(Escapes::Any, views.last().map_or(bytes, |view| &view.bytes))
            else {
                break;
            };
            views.push(view);
            let bytes = views.last().map_or(bytes, |view| &view.bytes);
            self.look(bytes, &views, &mut secrets);
        }
        secrets
    }

    /// Looks at `bytes` once, which is how the text looks through `views`.
    fn look(&self, bytes: &[u8], views: &[View], secrets: &mut Vec<Range<usize>>) {
        let in_text = |range: Range<usize>| views.iter().rev().fold(range, |range, view| view.source(range));
        let mut found = Vec::new();
        self.find_known(bytes, &mut found);
        shape::find(bytes, &mut found);
        pair::find(bytes, &mut found);
        secrets.extend(found.drain(..).map(in_text));
        // Long values are wrapped in mail, PEM files and terminals.
        if let Some(joined) = self.may_be_wrapped().then(|| View::without(Escapes::Lines, bytes)).flatten() {
            self.find_known(&joined.bytes, &mut found);
            secrets.extend(found.into_iter().map(|range| in_text(joined.source(range))));
        }
    }
}

/// One place to change.
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

/// `text` with the edits made. Where they overlap the outer and earlier one counts, for as far as they reach.
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

/// `range`, and what it would leave of characters at its ends.
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
