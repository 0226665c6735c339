//! Tool definitions, as servers send them.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::json::{self, Fields};

/// The definition of a tool. `raw` is the complete definition as received, so that members that PML does not know
/// still reach the client.
#[derive(Debug, Clone)]
pub struct Definition {
    /// Name of the tool within its server.
    pub name: String,
    /// Display name for people.
    pub title: Option<String>,
    /// Description in the server's words: data, never instructions to PML.
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    pub input_schema: Box<RawValue>,
    /// JSON Schema of the structured result, if declared.
    pub output_schema: Option<Box<RawValue>>,
    /// The server's own claims about what the tool may do.
    pub annotations: Annotations,
    /// The definition as received.
    pub raw: Box<RawValue>,
    /// Digest of what callers rely on; approvals, plans and caches are bound to it.
    pub digest: Digest,
}

/// MCP tool annotations: claims of a server, trusted only if the operator says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Annotations {
    /// The tool changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// The tool may destroy something; only meaningful if it is not read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// The tool is idempotent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// The tool reaches beyond a closed set of things, such as the web.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// Why a definition is refused.
#[derive(Debug, thiserror::Error)]
pub enum BadDefinition {
    /// It is not a JSON object, or a member has the wrong type.
    #[error("a tool definition is malformed: {0}")]
    Json(#[from] serde_json::Error),
    /// The name is missing or empty.
    #[error("a tool has no name")]
    NoName,
    /// The name has hidden characters, so that people could not type it or tell it apart.
    #[error("tool name {0} has characters that do not show")]
    HiddenCharacters(String),
    /// It exceeds [`MAX_DEFINITION_BYTES`].
    #[error(
        "the definition of tool `{name}` is {size_bytes} bytes; at most {MAX_DEFINITION_BYTES} are taken"
    )]
    Large {
        /// Name of the tool.
        name: String,
        /// Size of the definition in bytes.
        size_bytes: usize,
    },
    /// A schema nests too deep.
    #[error("the definition of tool `{0}` is nested deeper than {depth} levels", depth = json::MAX_DEPTH)]
    Deep(String),
    /// The input schema is not an object.
    #[error("the input schema of tool `{0}` is not a JSON object")]
    Schema(String),
}

/// Maximum size of a definition in bytes; the largest of 5,245 published ones has 60 KB.
pub const MAX_DEFINITION_BYTES: usize = 256 * 1024;

impl Definition {
    /// Parses a definition from `tools/list`.
    ///
    /// # Errors
    /// It is malformed, unnamed, too large or nested too deep.
    pub fn parse(raw: Box<RawValue>) -> Result<Definition, BadDefinition> {
        let fields = Fields::parse(raw.get())?;
        let name: String =
            fields.read("name").filter(|name: &String| !name.is_empty()).ok_or(BadDefinition::NoName)?;
        if !name.chars().all(crate::name::is_plain) || name.trim() != name {
            return Err(BadDefinition::HiddenCharacters(format!("{name:?}")));
        }
        let size_bytes = raw.get().len();
        if size_bytes > MAX_DEFINITION_BYTES {
            return Err(BadDefinition::Large { name, size_bytes });
        }
        if json::nesting_depth(raw.get()) > json::MAX_DEPTH {
            return Err(BadDefinition::Deep(name));
        }
        let input_schema = match fields.get("inputSchema") {
            None => json::empty_object(),
            Some(schema) if schema.get().starts_with('{') => schema.to_owned(),
            Some(_) => return Err(BadDefinition::Schema(name)),
        };
        let annotations = fields.read("annotations").unwrap_or_default();
        let digest = digest(&fields)?;
        Ok(Definition {
            title: fields.read("title"),
            description: fields.read("description"),
            output_schema: fields
                .get("outputSchema")
                .filter(|schema| schema.get().starts_with('{'))
                .map(ToOwned::to_owned),
            name,
            input_schema,
            annotations,
            digest,
            raw,
        })
    }
}

/// SHA-256 over the canonical form of what a caller relies on: name, description, schemas and annotations. Icons,
/// titles and metadata may change without changing the digest.
fn digest(fields: &Fields<'_>) -> Result<Digest, serde_json::Error> {
    let mut relied_on = Fields::default();
    for key in ["name", "description", "inputSchema", "outputSchema", "annotations"] {
        if let Some(value) = fields.get(key) {
            relied_on.set(key, value.to_owned());
        }
    }
    let text = json::canonical_json(relied_on.to_raw().get()).map_err(serde::de::Error::custom)?;
    Ok(Digest::of(text.as_bytes()))
}

/// A SHA-256 digest, written as 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Digest {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = String::with_capacity(64);
        for byte in Sha256::digest(bytes) {
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        Digest(text)
    }

    /// A digest from 64 hexadecimal digits; `None` if `text` is not one.
    pub fn from_hex(text: &str) -> Option<Digest> {
        (text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()))
            .then(|| Digest(text.to_ascii_lowercase()))
    }

    /// All 64 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first twelve digits, for display.
    pub fn short(&self) -> &str {
        &self.0[..12]
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(text: &str) -> Result<Definition, BadDefinition> {
        Definition::parse(RawValue::from_string(text.to_owned()).unwrap())
    }

    #[test]
    fn the_digest_sees_meaning_and_not_spelling() {
        let base =
            definition(r#"{"name":"a","description":"d","inputSchema":{"type":"object","x":1}}"#).unwrap();
        let spelled = definition(
            r#"{ "inputSchema":{"x":1,"type":"object"}, "name":"a", "description":"d", "icons":[] }"#,
        )
        .unwrap();
        let changed =
            definition(r#"{"name":"a","description":"d!","inputSchema":{"type":"object","x":1}}"#).unwrap();
        assert_eq!(base.digest, spelled.digest);
        assert_ne!(base.digest, changed.digest);
    }

    #[test]
    fn hostile_definitions_are_named_and_refused() {
        assert!(matches!(definition(r#"{"description":"d"}"#), Err(BadDefinition::NoName)));
        assert!(matches!(definition(r#"{"name":"a\u200b"}"#), Err(BadDefinition::HiddenCharacters(_))));
        assert!(matches!(definition(r#"{"name":"a","inputSchema":"x"}"#), Err(BadDefinition::Schema(_))));
        let deep = format!(r#"{{"name":"a","inputSchema":{{"x":{}{}}}}}"#, "[".repeat(200), "]".repeat(200));
        assert!(matches!(definition(&deep), Err(BadDefinition::Deep(_))));
        let large = format!(r#"{{"name":"a","description":"{}"}}"#, "x".repeat(MAX_DEFINITION_BYTES));
        assert!(matches!(definition(&large), Err(BadDefinition::Large { .. })));
    }

    #[test]
    fn a_definition_without_schema_takes_any_object() {
        assert_eq!(definition(r#"{"name":"a"}"#).unwrap().input_schema.get(), "{}");
    }
}
