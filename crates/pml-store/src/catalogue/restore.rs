//! Makes a definition of its stored text again.
//!
//! The text was checked when it came in, and the mark of its row vouches for it since: working out the digest of its
//! meaning anew would take most of the time of reading a large catalogue.

use pml_model::json::{self, Fields};
use pml_model::{Definition, Digest};
use serde_json::value::RawValue;

/// The definition with this text, just as [`Definition::parse`] gave it; `None` where the text is none.
pub(super) fn restore(text: String, digest: &Digest) -> Option<Definition> {
    let raw = RawValue::from_string(text).ok()?;
    let fields = Fields::parse(raw.get()).ok()?;
    Some(Definition {
        name: fields.read("name")?,
        title: fields.read("title"),
        description: fields.read("description"),
        input_schema: fields.get("inputSchema").map_or_else(json::empty_object, ToOwned::to_owned),
        output_schema: fields
            .get("outputSchema")
            .filter(|schema| schema.get().starts_with('{'))
            .map(ToOwned::to_owned),
        annotations: fields.read("annotations").unwrap_or_default(),
        digest: digest.clone(),
        raw,
    })
}
