//! URIs that say which server a resource belongs to, for servers that use the same URI.
//!
//! The first server keeps the URI. The resource of another is `pml://servers/NAME/resources/URI`, with the server's own
//! URI percent-encoded.

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use pml_model::ServerName;
use pml_model::json::{Fields, raw};
use serde_json::value::RawValue;

/// The URI of the resource that `server` calls `own`.
pub fn qualified(server: &ServerName, own: &str) -> String {
    format!("pml://servers/{server}/resources/{}", utf8_percent_encode(own, NON_ALPHANUMERIC))
}

/// The server and its own URI in a qualified one.
pub fn parse_qualified(uri: &str) -> Option<(ServerName, String)> {
    let (server, own) = uri.strip_prefix("pml://servers/")?.split_once("/resources/")?;
    let own = percent_decode_str(own).decode_utf8().ok()?;
    Some((ServerName::new(server).ok()?, own.into_owned()))
}

/// The result of `resources/read` with the URI that the client asked for in place of the server's own.
pub fn rename_contents(result: &RawValue, own: &str, asked: &str) -> Box<RawValue> {
    let mut fields = Fields::parse(result.get()).unwrap_or_default();
    let Some(contents) = fields.read::<Vec<Box<RawValue>>>("contents") else { return result.to_owned() };
    let rename = |content: &RawValue| {
        let mut content = Fields::parse(content.get()).unwrap_or_default();
        if content.read::<String>("uri").as_deref() == Some(own) {
            content.set("uri", raw(&asked));
        }
        content.to_raw()
    };
    let renamed: Vec<Box<RawValue>> = contents.iter().map(|content| rename(content)).collect();
    fields.set("contents", raw(&renamed));
    fields.to_raw()
}

/// A tool result in which the URIs of its resources and of links to resources are what `rename` gives for them.
pub fn rename_links(result: &RawValue, rename: impl Fn(&str) -> Option<String>) -> Box<RawValue> {
    let mut fields = Fields::parse(result.get()).unwrap_or_default();
    let Some(mut content) = fields.read::<Vec<Box<RawValue>>>("content") else { return result.to_owned() };
    let mut has_changed = false;
    for block in &mut content {
        if let Some(renamed) = rename_block(block, &rename) {
            *block = renamed;
            has_changed = true;
        }
    }
    if !has_changed {
        return result.to_owned();
    }
    fields.set("content", raw(&content));
    fields.to_raw()
}

/// A part of a result with another URI; `None` if it keeps its own, or has none.
fn rename_block(block: &RawValue, rename: impl Fn(&str) -> Option<String>) -> Option<Box<RawValue>> {
    let renamed = |text: &RawValue| {
        let mut item = Fields::parse(text.get()).ok()?;
        let new = rename(&item.read::<String>("uri")?)?;
        item.set("uri", raw(&new));
        Some(item.to_raw())
    };
    let mut item = Fields::parse(block.get()).ok()?;
    match item.read::<String>("type")?.as_str() {
        "resource_link" => renamed(block),
        "resource" => {
            let resource = renamed(item.get("resource")?)?;
            item.set("resource", resource);
            Some(item.to_raw())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_results_are_renamed_and_nothing_else() {
        let rename = |uri: &str| (uri == "x:1").then(|| "y:1".to_owned());
        let result = r#"{"content":[{"type":"text","text":"x:1"},{"type":"resource_link","uri":"x:1","name":"n"},{"type":"resource_link","uri":"x:2","name":"n"},{"type":"resource","resource":{"uri":"x:1","text":"1.0"}}],"structuredContent":{"n":1.50}}"#;
        let result = RawValue::from_string(result.to_owned()).unwrap();
        let renamed = rename_links(&result, rename);
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(
            read(renamed.get()),
            read(
                r#"{"content":[{"type":"text","text":"x:1"},{"type":"resource_link","uri":"y:1","name":"n"},{"type":"resource_link","uri":"x:2","name":"n"},{"type":"resource","resource":{"uri":"y:1","text":"1.0"}}],"structuredContent":{"n":1.50}}"#
            )
        );
        assert!(renamed.get().contains("1.50"), "what is not renamed keeps its bytes");
        for other in [r#"{"content":"x:1"}"#, "{}", r#"{"content":[1,{"type":"resource_link"}]}"#] {
            let other = RawValue::from_string(other.to_owned()).unwrap();
            assert_eq!(rename_links(&other, rename).get(), other.get());
        }
    }

    #[test]
    fn a_qualified_uri_is_read_back() {
        let server = ServerName::new("notes").unwrap();
        for own in ["file:///a b/ü?x=1#y", "x:1", "pml://servers/other/resources/x"] {
            let uri = qualified(&server, own);
            assert_eq!(parse_qualified(&uri), Some((server.clone(), own.to_owned())), "{uri}");
        }
        for other in ["file:///a", "pml://servers/no server/resources/x", "pml://servers/a", "pml://runs/x"] {
            assert_eq!(parse_qualified(other), None, "{other}");
        }
    }
}
