//! Who may use the HTTP routes: checked on every one of them, before anything else.
//!
//! `Host` and `Origin` keep web pages out that point their own name at this machine; the bearer
//! token keeps other programs of the machine out.

use std::collections::HashMap;
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use pml_model::{Digest, Principal};

/// The rules for one listener.
#[derive(Debug, Clone)]
pub struct Access {
    hosts: HashSet<String>,
    origins: HashSet<String>,
    /// Digests, so that comparing says nothing about a token and none is kept.
    tokens: HashMap<Digest, Principal>,
}

/// The one route that needs no token: it says only that the program lives.
const OPEN: &str = "/health";

impl Access {
    /// Rules for a listener on `address`, with further host names and origins that may be used.
    pub fn new(address: IpAddr, hosts: &[String], origins: &[String]) -> Access {
        let mut names: HashSet<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
        if !address.is_unspecified() {
            names.insert(address.to_string());
        }
        names.extend(hosts.iter().map(|host| host.to_ascii_lowercase()));
        Access { hosts: names, origins: origins.iter().cloned().collect(), tokens: HashMap::new() }
    }

    /// Lets the holder of `token` in as `principal`.
    #[must_use]
    pub fn with_token(mut self, token: &str, principal: Principal) -> Access {
        self.tokens.insert(Digest::of(token.as_bytes()), principal);
        self
    }

    /// Who a request comes from, or why it is refused.
    ///
    /// # Errors
    /// A foreign `Host` or `Origin`, or no valid token.
    pub fn admit(&self, path: &str, headers: &HeaderMap) -> Result<Option<Principal>, Refusal> {
        let host = text(headers, &HOST).ok_or(Refusal::Host)?;
        if !self.hosts.contains(&name_of(host)) {
            return Err(Refusal::Host);
        }
        if let Some(origin) = headers.get(ORIGIN) {
            let origin = origin.to_str().map_err(|_| Refusal::Origin)?;
            let same = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            if !same.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
                && !self.origins.contains(origin)
            {
                return Err(Refusal::Origin);
            }
        }
        if path == OPEN {
            return Ok(None);
        }
        let token = text(headers, &AUTHORIZATION).and_then(bearer).ok_or(Refusal::Token)?;
        self.tokens.get(&Digest::of(token.as_bytes())).cloned().map(Some).ok_or(Refusal::Token)
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    // Two of them could be read differently by whatever stands in front.
    values.next().is_none().then_some(value)
}

/// The host of an authority, without port and brackets.
fn name_of(authority: &str) -> String {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host.to_ascii_lowercase()
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A name this machine does not answer to.
    #[error("this host name is not served here; add it to `serve.hosts` if it should be")]
    Host,
    /// A page from elsewhere.
    #[error("requests from this origin are not allowed; add it to `serve.origins` if they should be")]
    Origin,
    /// No token, or none that is known.
    #[error("a bearer token is required; `pml serve` prints the client configuration that carries it")]
    Token,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body =
            serde_json::json!({ "error": { "code": "FORBIDDEN", "message": self.to_string() } }).to_string();
        let json = (CONTENT_TYPE, "application/json");
        match self {
            Refusal::Host | Refusal::Origin => (StatusCode::FORBIDDEN, [json], body).into_response(),
            Refusal::Token => {
                (StatusCode::UNAUTHORIZED, [json, (WWW_AUTHENTICATE, "Bearer")], body).into_response()
            }
        }
    }
}

/// Admits or refuses a request; routes behind it find the [`Principal`] among its extensions.
pub async fn check(State(access): State<Arc<Access>>, mut request: Request, next: Next) -> Response {
    match access.admit(request.uri().path(), request.headers()) {
        Ok(principal) => {
            if let Some(principal) = principal {
                request.extensions_mut().insert(principal);
            }
            let mut response = next.run(request).await;
            response
                .headers_mut()
                .insert("x-content-type-options", http::HeaderValue::from_static("nosniff"));
            response
        }
        Err(refusal) => refusal.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(pairs: &[(&str, &str)]) -> Result<Option<Principal>, Refusal> {
        let access =
            Access::new([127, 0, 0, 1].into(), &["box.local".into()], &["https://app.example".into()])
                .with_token("secret", Principal::local());
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(http::HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        access.admit("/mcp", &headers)
    }

    #[test]
    fn hosts_and_origins_that_are_not_ours_are_refused() {
        let token = ("authorization", "Bearer secret");
        for host in ["localhost:7717", "127.0.0.1", "[::1]:7717", "BOX.local:1"] {
            assert!(admit(&[("host", host), token]).is_ok(), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "",
            "[::2]",
            "0.0.0.0",
            "2130706433",
        ] {
            assert_eq!(admit(&[("host", host), token]), Err(Refusal::Host), "{host}");
        }
        for origin in ["http://localhost:7717", "https://app.example"] {
            assert!(admit(&[("host", "localhost:7717"), ("origin", origin), token]).is_ok(), "{origin}");
        }
        for origin in [
            "null",
            "http://evil.example",
            "http://localhost:3000",
            "file://",
            "https://app.example.evil.example",
        ] {
            assert_eq!(
                admit(&[("host", "localhost:7717"), ("origin", origin), token]),
                Err(Refusal::Origin),
                "{origin}"
            );
        }
        assert_eq!(admit(&[token]), Err(Refusal::Host));
        assert_eq!(admit(&[("host", "localhost"), ("host", "localhost"), token]), Err(Refusal::Host));
    }

    #[test]
    fn a_token_is_needed_and_has_to_be_right() {
        for value in [None, Some("Bearer wrong"), Some("secret"), Some("Basic secret"), Some("Bearer ")] {
            let mut pairs = vec![("host", "localhost")];
            pairs.extend(value.map(|value| ("authorization", value)));
            assert_eq!(admit(&pairs), Err(Refusal::Token), "{value:?}");
        }
        assert_eq!(
            admit(&[("host", "localhost"), ("authorization", "bearer secret")]),
            Ok(Some(Principal::local()))
        );
    }
}
