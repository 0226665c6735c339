//! Signing in to remote MCP servers by OAuth 2.1: what its documents, requests and replies say.
//!
//! Everything that a server or an authorization server says is checked here: addresses, sizes, issuers, states. The
//! crate builds requests and reads replies, and it decides what follows from them; it sends nothing, and knows no
//! clock, no file and no configuration. `pml::sign_in` sends the requests, asks the person and keeps the tokens.

mod authorize;
mod challenge;
mod client;
mod device;
mod endpoint;
mod metadata;
mod record;
mod reply;
mod scope;
mod token;

pub use authorize::{Attempt, RedirectError, read_redirect};
pub use challenge::Challenge;
pub use client::{Client, ClientAuth, ClientOrigin, Registration};
pub use device::{DeviceCode, DevicePoll};
pub use endpoint::{endpoint, is_loopback};
pub use metadata::{
    AuthorizationServer, ProtectedResource, authorization_server_urls, protected_resource_urls,
};
pub use record::SignIn;
pub use reply::{AuthReply, MAX_REPLY_BYTES};
pub use scope::Scopes;
pub use token::{Grant, TokenError, Tokens, revocation_request, token_request};

use url::Url;

/// A request to an authorization server. It has secrets, so it has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthRequest {
    /// Where it is sent, by POST.
    pub url: Url,
    /// The media type of the body.
    pub content_type: &'static str,
    /// The value of `Authorization`, if the client identifies itself by it.
    pub authorization: Option<String>,
    /// The body.
    pub body: String,
}

/// Why what a server says cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// Text of a server as one short line without control characters, for messages.
pub(crate) fn shown(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(200).collect()
}
