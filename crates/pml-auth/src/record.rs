//! What is kept of a sign-in.

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{Client, Scopes, Tokens};

/// A sign-in to one server, as it is kept, sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignIn {
    /// The address of the server. The tokens are sent nowhere else.
    pub server: String,
    /// The identifier that the tokens were asked for.
    pub resource: String,
    /// The authorization server.
    pub issuer: String,
    /// Where tokens are renewed.
    pub token_endpoint: String,
    /// Where tokens are revoked.
    pub revocation_endpoint: Option<String>,
    /// PML as a client of the authorization server.
    pub client: Client,
    /// The tokens; `None` once they were refused for good.
    pub tokens: Option<Tokens>,
    /// The scopes that were asked for.
    pub asked: Scopes,
    /// The scopes that a request needed and the tokens do not have: the next sign-in asks for them.
    pub missing: Scopes,
    /// When the person signed in, in milliseconds since 1970.
    pub signed_in_at: i64,
}

impl SignIn {
    /// Whether the tokens may be sent to `server`.
    pub fn is_for(&self, server: &Url) -> bool {
        self.server == server.as_str()
    }

    /// Puts new tokens in place of the old ones. A reply without a refresh token leaves the old one valid.
    pub fn renew(&mut self, tokens: Tokens) {
        let before = self.tokens.take();
        let refresh = tokens.refresh.or(before.as_ref().and_then(|before| before.refresh.clone()));
        let scopes = tokens.scopes.or(before.and_then(|before| before.scopes));
        self.tokens = Some(Tokens { refresh, scopes, ..tokens });
    }
}
