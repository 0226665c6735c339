//! Restores a definition from its stored text.
//!
//! The text was validated when it was stored, and the mark of its row authenticates it since. Computing its digest
//! again would take most of the time of reading a large catalogue.

use pml_model::json::{self, Fields};
use pml_model::{Definition, Digest};
use serde_json::value::RawValue;

/// The definition with this text, as [`Definition::parse`] returned it; `None` if the text is not a definition.
pub(super) fn restore_definition(text: String, digest: &Digest) -> Option<Definition> {
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
