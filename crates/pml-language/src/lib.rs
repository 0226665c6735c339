//! Reads the text of a request in English or French: its literals, its clauses, its words with their functions and
//! concepts, and its language.
//!
//! Everything that interprets a sentence uses this crate, so that a date, a path or a name is the same to all. It sees
//! only text: no tools, schemas, clock or store.

pub mod clauses;
pub mod dates;
pub mod fold;
pub mod french;
pub mod kinds;
pub mod literals;
pub mod polarity;
pub mod reading;
pub mod related;
pub mod units;
pub mod vocabulary;
pub mod words;

pub use reading::{Language, Reading};

/// At most the first `size_bytes` bytes of `text`, cut at a character boundary.
pub fn byte_prefix(text: &str, size_bytes: usize) -> &str {
    let end = (0..=size_bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}
