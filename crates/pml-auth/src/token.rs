//! The token endpoint: what is asked of it, and what its replies give.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::{Url, form_urlencoded};

use crate::client::ClientAuth;
use crate::reply::{error_field, error_text};
use crate::{AuthReply, AuthRequest, Client, Scopes, shown};

/// The longest token that is kept, in bytes: headers of 16 KiB are what servers commonly take.
const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// The longest life of a token that is believed, in seconds: a year.
const MAX_LIFE_S: i64 = 366 * 24 * 3600;

/// What tokens are asked for with.
#[derive(Clone, Copy)]
pub enum Grant<'a> {
    /// The code of a redirect.
    Code {
        /// The code.
        code: &'a str,
        /// The verifier of PKCE.
        verifier: &'a str,
        /// The redirect address that the code was sent to.
        redirect_uri: &'a str,
    },
    /// A refresh token.
    Refresh(&'a str),
    /// The code of a sign-in on another device.
    Device(&'a str),
}

/// The request for tokens of `resource`.
pub fn token_request(endpoint: &Url, client: &Client, grant: Grant<'_>, resource: &str) -> AuthRequest {
    let mut form = vec![("resource", resource)];
    match grant {
        Grant::Code { code, verifier, redirect_uri } => form.extend([
            ("grant_type", "authorization_code"),
            ("code", code),
            ("code_verifier", verifier),
            ("redirect_uri", redirect_uri),
        ]),
        Grant::Refresh(token) => form.extend([("grant_type", "refresh_token"), ("refresh_token", token)]),
        Grant::Device(code) => {
            form.extend([
                ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
                ("device_code", code),
            ]);
        }
    }
    form_request(endpoint, client, &form)
}

/// The request that revokes a token (RFC 7009). `hint` is its kind.
pub fn revocation_request(endpoint: &Url, client: &Client, token: &str, hint: &str) -> AuthRequest {
    form_request(endpoint, client, &[("token", token), ("token_type_hint", hint)])
}

/// A form, with the identification of the client.
pub(crate) fn form_request(endpoint: &Url, client: &Client, form: &[(&str, &str)]) -> AuthRequest {
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(form);
    let secret = client.secret.as_deref().unwrap_or_default();
    let mut authorization = None;
    match client.auth {
        ClientAuth::None => {
            body.append_pair("client_id", &client.id);
        }
        ClientAuth::Post => {
            body.append_pair("client_id", &client.id).append_pair("client_secret", secret);
        }
        ClientAuth::Basic => {
            // RFC 6749 section 2.3.1: both parts are form-encoded before they are joined.
            let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            let pair = format!("{}:{}", encode(&client.id), encode(secret));
            authorization = Some(format!("Basic {}", STANDARD.encode(pair)));
        }
    }
    AuthRequest {
        url: endpoint.clone(),
        content_type: "application/x-www-form-urlencoded",
        authorization,
        body: body.finish(),
    }
}

/// The tokens of a reply.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// What requests carry.
    pub access: String,
    /// What gets new tokens.
    pub refresh: Option<String>,
    /// When they came, in milliseconds since 1970.
    pub received_at: i64,
    /// When the access token expires, in milliseconds since 1970; `None` where nothing is said.
    pub expires_at: Option<i64>,
    /// The scopes that were granted; `None` where nothing is said, which means those that were asked for.
    pub scopes: Option<Scopes>,
}

/// The longest time before its end at which an access token is renewed, in milliseconds: a call that waits in a queue
/// arrives with a token that is still good.
const MAX_EARLY_MS: i64 = 30_000;

impl Tokens {
    /// Whether the access token ends soon: within half a minute, or a quarter of its life if that is shorter.
    pub fn ends_soon(&self, now: i64) -> bool {
        self.expires_at.is_some_and(|end| {
            let life = end.saturating_sub(self.received_at).max(0);
            now >= end.saturating_sub(MAX_EARLY_MS.min(life / 4))
        })
    }

    /// Whether the access token has ended.
    pub fn has_ended(&self, now: i64) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// Why there are no tokens.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The authorization server refused, with this code and text.
    #[error("{text}")]
    Refused {
        /// The code, such as `invalid_grant`.
        code: String,
        /// Code and description, for people.
        text: String,
    },
    /// The authorization server failed; the same request may succeed later.
    #[error("{0}")]
    Temporary(String),
    /// The reply cannot be used.
    #[error("the token endpoint gave an unusable reply: {0}")]
    Unusable(String),
}

impl TokenError {
    /// Whether the same refresh token can never give tokens again, so that a person has to sign in.
    pub fn ends_the_sign_in(&self) -> bool {
        let TokenError::Refused { code, .. } = self else { return false };
        matches!(
            code.as_str(),
            "invalid_grant" | "invalid_client" | "unauthorized_client" | "invalid_scope" | "access_denied"
        )
    }
}

#[derive(Deserialize)]
struct TokenReply {
    access_token: String,
    token_type: Option<String>,
    expires_in: Option<Value>,
    refresh_token: Option<String>,
    scope: Option<String>,
}

impl Tokens {
    /// Reads a reply that came at `now`, in milliseconds.
    ///
    /// # Errors
    /// It refuses the tokens, or cannot be used.
    pub fn read(reply: &AuthReply, now: i64) -> Result<Tokens, TokenError> {
        if reply.status != 200 {
            return Err(refusal(reply));
        }
        let unusable = |why: &str| TokenError::Unusable(why.to_owned());
        let told: TokenReply =
            serde_json::from_slice(&reply.body).map_err(|error| unusable(&shown(&error.to_string())))?;
        if !told.token_type.as_deref().is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")) {
            return Err(unusable("the token is not of type `Bearer`"));
        }
        let is_token = |token: &str| {
            !token.is_empty()
                && token.len() <= MAX_TOKEN_BYTES
                && token.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if !is_token(&told.access_token) {
            return Err(unusable(
                "the access token has characters that a header cannot carry, or is too long",
            ));
        }
        if told.refresh_token.as_deref().is_some_and(|token| token.len() > MAX_TOKEN_BYTES) {
            return Err(unusable("the refresh token is too long"));
        }
        let life = match told.expires_in {
            None | Some(Value::Null) => None,
            // Some servers write the number as a text.
            Some(Value::String(text)) => text.parse::<f64>().ok(),
            Some(value) => value.as_f64(),
        };
        let life = life.map(|seconds| seconds.clamp(0.0, MAX_LIFE_S as f64) as i64);
        Ok(Tokens {
            access: told.access_token,
            refresh: told.refresh_token.filter(|token| !token.is_empty()),
            received_at: now,
            expires_at: life.map(|seconds| now.saturating_add(seconds * 1_000)),
            scopes: told.scope.as_deref().map(Scopes::parse).filter(|scopes| !scopes.is_empty()),
        })
    }
}

/// The error that a reply other than success stands for.
pub(crate) fn refusal(reply: &AuthReply) -> TokenError {
    let text = error_text(reply);
    let code = error_field(reply, "error");
    match code {
        Some(code) if (400..500).contains(&reply.status) && reply.status != 429 => {
            TokenError::Refused { code, text }
        }
        _ if reply.status == 429 || reply.status >= 500 => TokenError::Temporary(text),
        _ => TokenError::Unusable(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, body: &str) -> Result<Tokens, TokenError> {
        Tokens::read(&AuthReply { status, body: body.as_bytes().to_vec() }, 1_000)
    }

    #[test]
    fn tokens_are_read_and_lies_are_refused() {
        let good = read(200, r#"{"access_token":"a","token_type":"bearer","expires_in":"60","scope":"x y"}"#)
            .unwrap();
        assert_eq!((good.expires_at, good.scopes), (Some(61_000), Some(Scopes::parse("x y"))));
        let forever = read(200, r#"{"access_token":"a","token_type":"Bearer","expires_in":1e300}"#).unwrap();
        assert_eq!(forever.expires_at, Some(1_000 + MAX_LIFE_S * 1_000));
        for bad in [
            r#"{"access_token":"a\r\nX-Evil: 1","token_type":"Bearer"}"#,
            r#"{"access_token":"","token_type":"Bearer"}"#,
            r#"{"access_token":"a","token_type":"mac"}"#,
            r#"{"access_token":"a"}"#,
            r#"{"token_type":"Bearer"}"#,
            "<html>",
        ] {
            assert!(matches!(read(200, bad), Err(TokenError::Unusable(_))), "{bad}");
        }
    }

    #[test]
    fn a_refusal_ends_the_sign_in_and_a_failure_does_not() {
        assert!(read(400, r#"{"error":"invalid_grant"}"#).unwrap_err().ends_the_sign_in());
        assert!(read(401, r#"{"error":"invalid_client"}"#).unwrap_err().ends_the_sign_in());
        assert!(!read(400, r#"{"error":"slow_down"}"#).unwrap_err().ends_the_sign_in());
        assert!(!read(503, r#"{"error":"invalid_grant"}"#).unwrap_err().ends_the_sign_in());
        assert!(!read(302, "").unwrap_err().ends_the_sign_in());
    }
}
