//! Replies of authorization servers, and what they say went wrong.

use serde_json::Value;

use crate::shown;

/// The largest reply of an authorization server that is read, in bytes: metadata documents have a few KiB.
pub const MAX_REPLY_BYTES: usize = 256 * 1024;

/// The reply of an authorization server. It may have tokens, so it has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthReply {
    /// The HTTP status.
    pub status: u16,
    /// The body, at most [`MAX_REPLY_BYTES`].
    pub body: Vec<u8>,
}

pub(crate) fn error_field(reply: &AuthReply, key: &str) -> Option<String> {
    let value: Value = serde_json::from_slice(&reply.body).ok()?;
    value.get(key)?.as_str().map(shown)
}

/// What a reply says went wrong, for people.
pub(crate) fn error_text(reply: &AuthReply) -> String {
    let status = reply.status;
    match (error_field(reply, "error"), error_field(reply, "error_description")) {
        (Some(code), Some(text)) => format!("{code}: {text}"),
        (Some(code), None) => code,
        (None, _) => format!("HTTP {status}"),
    }
}
