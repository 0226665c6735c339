//! The names of the two eras of MCP, and conversion between them.
//!
//! Until 2025-11-25 a client opens with a handshake (`initialize`) and a connection has state. From 2026-07-28 every
//! request carries its version and capabilities, and the protocol is stateless.

use std::sync::LazyLock;

use pml_model::json::{Fields, raw};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::pieces::{ChunkedText, to_one_line};

/// How a peer opens a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// With `initialize`. There are sessions, and the server may send requests to the client.
    Legacy,
    /// Without a handshake. Every request stands alone, and questions come as results.
    Modern,
}

/// The supported stateless version.
pub const MODERN: &str = "2026-07-28";
/// The newest version with a handshake.
pub const LATEST_LEGACY: &str = "2025-11-25";
/// All supported versions with a handshake, newest first.
pub const LEGACY: &[&str] = &[LATEST_LEGACY, "2025-06-18", "2025-03-26", "2024-11-05"];

/// All supported versions, newest first.
pub fn supported_versions() -> Vec<&'static str> {
    let mut versions = vec![MODERN];
    versions.extend(LEGACY);
    versions
}

/// Keys of `_meta` in the stateless protocol.
pub mod meta {
    /// Protocol version of the request.
    pub const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// Name and version of the client.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// Capabilities of the client.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// Lowest level of log messages that the client wants.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Id of the subscription that a notification belongs to.
    pub const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
    /// Name and version of the server.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// Token that progress notifications carry.
    pub const PROGRESS_TOKEN: &str = "progressToken";
}

/// Name and version of an MCP implementation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct McpImplementation {
    /// Name for programs.
    pub name: String,
    /// Version, as text.
    pub version: String,
    /// Display name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

impl McpImplementation {
    /// PML itself.
    pub fn pml() -> McpImplementation {
        McpImplementation {
            name: "pml".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            title: Some("PML".into()),
        }
    }
}

/// Log levels, least severe first.
const LEVELS: &[&str] = &["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The rank of a log level; `None` if it is unknown.
pub fn log_rank(level: &str) -> Option<usize> {
    LEVELS.iter().position(|known| *known == level)
}

/// The log level of a rank.
pub fn log_level(rank: usize) -> Option<&'static str> {
    LEVELS.get(rank).copied()
}

/// Whether a result asks for input instead of being final.
pub fn is_input_required(result: &RawValue) -> bool {
    // A text search comes first: most results are final, and some are large.
    result.get().contains("\"input_required\"")
        && Fields::parse(result.get())
            .is_ok_and(|f| f.read::<String>("resultType").as_deref() == Some("input_required"))
}

/// Adds what a stateless client needs to a result that may come from a legacy server: the kind of result, the server
/// info and, for lists and reads, the cache lifetime.
pub(crate) fn to_modern_result(method: &str, result: Box<RawValue>, me: &RawValue) -> ChunkedText {
    let text = to_one_line(result);
    let mut pieces = ChunkedText::default();
    let Some(mut fields) = std::str::from_utf8(&text).ok().and_then(|text| Fields::parse(text).ok()) else {
        pieces.share(text);
        return pieces;
    };
    fields.set_default("resultType", &"complete");
    if is_cacheable(method) {
        fields.set_default("ttlMs", &0);
        fields.set_default("cacheScope", &"private");
    }
    edit_meta(&mut fields, |meta| meta.set(meta::SERVER_INFO, me.to_owned()));
    for (index, (key, value)) in fields.iter().enumerate() {
        pieces.push(if index == 0 { "{" } else { "," });
        pieces.push_json(&key);
        pieces.push(":");
        pieces.share_part(&text, value.get());
    }
    pieces.push("}");
    pieces
}

fn is_cacheable(method: &str) -> bool {
    matches!(
        method,
        "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
            | "server/discover"
    )
}

/// Name and version of PML, as JSON.
pub fn own_implementation() -> &'static RawValue {
    static ME: LazyLock<Box<RawValue>> = LazyLock::new(|| raw(&McpImplementation::pml()));
    &ME
}

/// Adds version, client info and capabilities to the `_meta` of a request, as every stateless request must carry them.
pub fn add_modern_meta(meta: &mut Fields<'_>, capabilities: &RawValue) {
    meta.set(meta::VERSION, raw(&MODERN));
    meta.set(meta::CLIENT_INFO, own_implementation().to_owned());
    meta.set(meta::CLIENT_CAPABILITIES, capabilities.to_owned());
}

/// Removes the keys of the stateless protocol from the `_meta` of a request.
pub fn strip_modern_meta(meta: &mut Fields<'_>) {
    for key in [meta::VERSION, meta::CLIENT_INFO, meta::CLIENT_CAPABILITIES, meta::LOG_LEVEL] {
        meta.remove(key);
    }
}

/// Edits `_meta`, and drops it if it becomes empty.
pub fn edit_meta(params: &mut Fields<'_>, edit: impl FnOnce(&mut Fields<'_>)) {
    let text = params.get("_meta").map(|meta| meta.get().to_owned()).unwrap_or_else(|| "{}".into());
    let mut meta = Fields::parse(&text).unwrap_or_default();
    edit(&mut meta);
    if meta.is_empty() {
        params.remove("_meta");
    } else {
        params.set("_meta", meta.to_raw());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_result_of_an_older_server_is_completed_for_a_stateless_client() {
        let me = raw(&McpImplementation { name: "g".into(), version: "1".into(), title: None });
        let result = json("{\"contents\":[10e110],\n\"_meta\":{\"a\":1}}");
        let out: Vec<u8> =
            to_modern_result("resources/read", result, &me).into_parts(usize::MAX).flatten().collect();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"contents":[10e110],"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{"name":"g","version":"1"}}}"#
        );
    }

    #[test]
    fn protocol_keys_are_taken_out_for_an_older_server() {
        let text = r#"{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","traceparent":"x"}}"#;
        let mut fields = Fields::parse(text).unwrap();
        edit_meta(&mut fields, strip_modern_meta);
        assert_eq!(fields.to_raw().get(), r#"{"name":"t","_meta":{"traceparent":"x"}}"#);
    }

    #[test]
    fn only_the_result_type_says_that_input_is_required() {
        assert!(is_input_required(&json(r#"{"resultType":"input_required"}"#)));
        assert!(!is_input_required(&json(r#"{"content":["input_required"],"resultType":"complete"}"#)));
        assert!(!is_input_required(&json(r#"{"content":["\"input_required\""]}"#)));
    }
}
