//! What the two eras of MCP call things, and how one is turned into the other.
//!
//! Until 2025-11-25 a client shakes hands (`initialize`) and a connection has state; from 2026-07-28
//! every request carries its version and capabilities and nothing is remembered.

use std::sync::LazyLock;

use pml_model::json::{Fields, raw};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::pieces::{Pieces, one_line};

/// How a peer opens a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// With `initialize`; sessions; the server may ask the client.
    Legacy,
    /// With nothing; every request stands alone; questions come as results.
    Modern,
}

/// The stateless version spoken here.
pub const MODERN: &str = "2026-07-28";
/// The newest version with a handshake.
pub const LATEST_LEGACY: &str = "2025-11-25";
/// Every version with a handshake spoken here, newest first.
pub const LEGACY: &[&str] = &[LATEST_LEGACY, "2025-06-18", "2025-03-26", "2024-11-05"];

/// Every version spoken here, newest first.
pub fn supported_versions() -> Vec<&'static str> {
    let mut versions = vec![MODERN];
    versions.extend(LEGACY);
    versions
}

/// Keys of `_meta` that carry the stateless protocol.
pub mod meta {
    /// The version of this request.
    pub const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// Who asks.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// What the asker can do.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// From which level on it wants log messages.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Which subscription a notification belongs to.
    pub const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
    /// Who answers.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// The token progress notifications carry.
    pub const PROGRESS_TOKEN: &str = "progressToken";
}

/// A program's name and version.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Implementation {
    /// For programs.
    pub name: String,
    /// Its version.
    pub version: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

impl Implementation {
    /// This program.
    pub fn pml() -> Implementation {
        Implementation {
            name: "pml".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            title: Some("PML".into()),
        }
    }
}

/// Log levels, least severe first.
const LEVELS: &[&str] = &["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The rank of a log level, or `None` for a word that is none.
pub fn log_rank(level: &str) -> Option<usize> {
    LEVELS.iter().position(|known| *known == level)
}

/// The log level of a rank.
pub fn log_level(rank: usize) -> Option<&'static str> {
    LEVELS.get(rank).copied()
}

/// Whether a result asks for input instead of being final.
pub fn is_input_required(result: &RawValue) -> bool {
    // The member is looked for only where its name occurs at all: most results are large and final.
    result.get().contains("\"input_required\"")
        && Fields::parse(result.get())
            .is_ok_and(|f| f.read::<String>("resultType").as_deref() == Some("input_required"))
}

/// Adds what a stateless client needs to a result that may come from an older server: the kind of
/// result, who answered, and, for lists and reads, how long it may be kept.
pub(crate) fn modern_result(method: &str, result: Box<RawValue>, me: &RawValue) -> Pieces {
    let text = one_line(result);
    let mut pieces = Pieces::default();
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

/// This program, as JSON.
pub fn me() -> &'static RawValue {
    static ME: LazyLock<Box<RawValue>> = LazyLock::new(|| raw(&Implementation::pml()));
    &ME
}

/// Puts the client's standing into a request's `_meta`, as every stateless request must carry it.
pub fn modern_meta(meta: &mut Fields<'_>, capabilities: &RawValue) {
    meta.set(meta::VERSION, raw(&MODERN));
    meta.set(meta::CLIENT_INFO, me().to_owned());
    meta.set(meta::CLIENT_CAPABILITIES, capabilities.to_owned());
}

/// Takes the keys of the stateless protocol out of a request's `_meta`.
pub fn legacy_meta(meta: &mut Fields<'_>) {
    for key in [meta::VERSION, meta::CLIENT_INFO, meta::CLIENT_CAPABILITIES, meta::LOG_LEVEL] {
        meta.remove(key);
    }
}

/// Changes `_meta`; one that becomes empty is dropped.
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
        let me = raw(&Implementation { name: "g".into(), version: "1".into(), title: None });
        let result = json("{\"contents\":[10e110],\n\"_meta\":{\"a\":1}}");
        let out: Vec<u8> =
            modern_result("resources/read", result, &me).into_parts(usize::MAX).flatten().collect();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"contents":[10e110],"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{"name":"g","version":"1"}}}"#
        );
    }

    #[test]
    fn protocol_keys_are_taken_out_for_an_older_server() {
        let text = r#"{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","traceparent":"x"}}"#;
        let mut fields = Fields::parse(text).unwrap();
        edit_meta(&mut fields, legacy_meta);
        assert_eq!(fields.to_raw().get(), r#"{"name":"t","_meta":{"traceparent":"x"}}"#);
    }

    #[test]
    fn only_the_result_type_says_that_input_is_required() {
        assert!(is_input_required(&json(r#"{"resultType":"input_required"}"#)));
        assert!(!is_input_required(&json(r#"{"content":["input_required"],"resultType":"complete"}"#)));
        assert!(!is_input_required(&json(r#"{"content":["\"input_required\""]}"#)));
    }
}
