//! Who may use the HTTP routes: checked on every one of them, before anything else.
//!
//! `Host` and `Origin` keep web pages out that point their own name at this machine; the bearer
//! token keeps other programs of the machine out, and a key in its place tells which client asks. A
//! route needs one of them unless it was declared open, or open to sessions: those of people who have
//! signed in, which others keep.

use std::collections::HashMap;
use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, Method, StatusCode};
use pml_model::{Digest, KeyId, Principal};

use crate::server::Identity;

use crate::server::connections::Peer;

/// The rules for one listener.
#[derive(Debug, Clone)]
pub struct Access {
    /// The names of this machine itself.
    own: HashSet<String>,
    /// The port that goes with them, where it is known.
    port: Option<u16>,
    /// What else may be named: `name` with any port, or `name:port`.
    hosts: HashSet<String>,
    origins: HashSet<String>,
    /// Digests, so that comparing says nothing about a token and none is kept.
    tokens: HashMap<Digest, Principal>,
    keys: Option<Keys>,
    open: Vec<String>,
    signed_in: Option<(Vec<String>, Sessions)>,
}

/// Whose session a request belongs to; see [`Access::with_sessions`].
type Known = dyn Fn(&Method, &HeaderMap) -> Result<Option<Principal>, Refusal> + Send + Sync;

#[derive(Clone)]
struct Sessions(Arc<Known>);

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sessions")
    }
}

/// The client a key belongs to; see [`Access::with_keys`].
type KnownKey = dyn Fn(&str) -> Option<(Principal, KeyId)> + Send + Sync;

#[derive(Clone)]
struct Keys(Arc<KnownKey>);

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

/// By what a request was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admitted {
    /// The route is open to anyone.
    Open,
    /// A bearer token: a program.
    Token(Principal),
    /// A key of its own: a client that the operator knows.
    Key(Principal, KeyId),
    /// A session: a person who has signed in.
    Session(Principal),
}

impl Admitted {
    /// Who it is, where that is known.
    pub fn principal(&self) -> Option<&Principal> {
        match self {
            Admitted::Open => None,
            Admitted::Token(principal) | Admitted::Key(principal, _) | Admitted::Session(principal) => {
                Some(principal)
            }
        }
    }

    /// Who a client behind it is, where that is known.
    fn identity(&self) -> Option<Identity> {
        let key = match self {
            Admitted::Key(_, key) => Some(*key),
            Admitted::Open | Admitted::Token(_) | Admitted::Session(_) => None,
        };
        Some(Identity { principal: self.principal()?.clone(), key })
    }
}

impl Access {
    /// Rules for a listener on `address`, with further host names and origins that may be used.
    pub fn new(address: IpAddr, hosts: &[String], origins: &[String]) -> Access {
        let mut own: HashSet<String> = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).into();
        match address {
            address if address.is_unspecified() => {}
            IpAddr::V4(address) => drop(own.insert(address.to_string())),
            IpAddr::V6(address) => drop(own.insert(format!("[{address}]"))),
        }
        Access {
            own,
            port: None,
            hosts: hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
            origins: origins.iter().cloned().collect(),
            tokens: HashMap::new(),
            keys: None,
            open: Vec::new(),
            signed_in: None,
        }
    }

    /// The port the listener has: requests that name this machine with another one are refused.
    #[must_use]
    pub fn with_port(mut self, port: u16) -> Access {
        self.port = Some(port);
        self
    }

    /// Lets the holder of `token` in as `principal`.
    #[must_use]
    pub fn with_token(mut self, token: &str, principal: Principal) -> Access {
        self.tokens.insert(Digest::of(token.as_bytes()), principal);
        self
    }

    /// Lets clients with keys in, wherever the token would. `known` says whose key a text is, and must take
    /// the same time for every text that is none.
    #[must_use]
    pub fn with_keys(
        mut self,
        known: impl Fn(&str) -> Option<(Principal, KeyId)> + Send + Sync + 'static,
    ) -> Access {
        self.keys = Some(Keys(Arc::new(known)));
        self
    }

    /// Lets anyone use these paths; one that ends with `/` stands for all below it too, but
    /// `/` for itself alone.
    #[must_use]
    pub fn with_open(mut self, paths: &[&str]) -> Access {
        self.open.extend(paths.iter().map(|&path| path.to_owned()));
        self
    }

    /// Lets people who have signed in use these paths, and all below them, without a token. `known` says
    /// whose session a request belongs to, and refuses one that a page of another origin can have sent.
    #[must_use]
    pub fn with_sessions(
        mut self,
        paths: &[&str],
        known: impl Fn(&Method, &HeaderMap) -> Result<Option<Principal>, Refusal> + Send + Sync + 'static,
    ) -> Access {
        let paths = paths.iter().map(|&path| path.to_owned()).collect();
        self.signed_in = Some((paths, Sessions(Arc::new(known))));
        self
    }

    /// Who a request comes from, or why it is refused.
    ///
    /// # Errors
    /// A foreign `Host` or `Origin`, or no valid token or session where one is needed.
    pub fn admit(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<Admitted, Refusal> {
        self.admit_origin(headers)?;
        if self.open.iter().any(|open| path == open || open.len() > 1 && below(path, open)) {
            return Ok(Admitted::Open);
        }
        let session = self.signed_in.as_ref().filter(|(paths, _)| {
            paths.iter().any(|known| {
                path == known || path.strip_prefix(known.as_str()).is_some_and(|rest| rest.starts_with('/'))
            })
        });
        // Whoever sends a token means to be known by it, and by nothing that a browser adds.
        if let Some((_, sessions)) = session
            && !headers.contains_key(AUTHORIZATION)
        {
            let known = (sessions.0)(method, headers)?;
            return known.map(Admitted::Session).ok_or(Refusal::SignIn);
        }
        let token = text(headers, &AUTHORIZATION).and_then(bearer).ok_or(Refusal::Token)?;
        if let Some(principal) = self.tokens.get(&Digest::of(token.as_bytes())) {
            return Ok(Admitted::Token(principal.clone()));
        }
        let known = self.keys.as_ref().and_then(|keys| (keys.0)(token));
        known.map(|(principal, key)| Admitted::Key(principal, key)).ok_or(Refusal::Token)
    }

    fn serves(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let Some((name, port)) = parts(&host) else { return false };
        let own = self.own.contains(name) && (port.is_none() || self.port.is_none() || port == self.port);
        own || self.hosts.contains(name) || self.hosts.contains(&host)
    }

    fn admit_origin(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let host = text(headers, &HOST).ok_or(Refusal::Host)?;
        if !self.serves(host) {
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
        Ok(())
    }
}

/// Whether an authority is that of another request target than the one `Host` names.
fn differs(target: Option<&http::uri::Authority>, headers: &HeaderMap) -> bool {
    target.is_some_and(|target| {
        text(headers, &HOST).is_none_or(|host| !host.eq_ignore_ascii_case(target.as_str()))
    })
}

fn below(path: &str, folder: &str) -> bool {
    folder.ends_with('/') && path.starts_with(folder)
}

fn text<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    // Two of them could be read differently by whatever stands in front.
    values.next().is_none().then_some(value)
}

/// Name and port of an authority that has nothing else in it.
fn parts(authority: &str) -> Option<(&str, Option<u16>)> {
    let end = if authority.starts_with('[') {
        authority.find(']')? + 1
    } else {
        authority.find(':').unwrap_or(authority.len())
    };
    let (name, rest) = authority.split_at(end);
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Some((name, None)),
        // `parse` alone would take a sign.
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some((name, Some(port.parse().ok()?)))
        }
        _ => None,
    }
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
    #[error(
        "a bearer token is required; `pml serve` prints the client configuration that carries it, and `pml keys list` shows which keys count"
    )]
    Token,
    /// Neither a session nor a token.
    #[error("sign in at `/login`, or send the bearer token that `pml serve` prints")]
    SignIn,
    /// A change in a session without the proof that a page of ours asks for it.
    #[error("the header `x-pml-csrf` is missing or is not that of this session; sign in again at `/login`")]
    Forged,
    /// As many connections are served as may be.
    #[error("too many connections are open; close some or try again later")]
    Crowded,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let code = if self == Refusal::Crowded { "BUSY" } else { "FORBIDDEN" };
        let body = serde_json::json!({ "error": { "code": code, "message": self.to_string() } }).to_string();
        let json = (CONTENT_TYPE, "application/json");
        match self {
            Refusal::Host | Refusal::Origin | Refusal::Forged => {
                (StatusCode::FORBIDDEN, [json], body).into_response()
            }
            Refusal::Token | Refusal::SignIn => {
                (StatusCode::UNAUTHORIZED, [json, (WWW_AUTHENTICATE, "Bearer")], body).into_response()
            }
            Refusal::Crowded => {
                (StatusCode::SERVICE_UNAVAILABLE, [json, (RETRY_AFTER, "5")], body).into_response()
            }
        }
    }
}

/// Admits or refuses a request; routes behind it find [`Admitted`], and [`Principal`] and [`Identity`] where
/// they are known, among its extensions.
pub async fn check(State(access): State<Arc<Access>>, mut request: Request, next: Next) -> Response {
    if differs(request.uri().authority(), request.headers()) {
        return Refusal::Host.into_response();
    }
    match access.admit(request.method(), request.uri().path(), request.headers()) {
        Ok(admitted) => {
            if let Some(identity) = admitted.identity() {
                let peer = request.extensions().get::<Arc<Peer>>();
                if peer.is_some_and(|peer| !peer.prove()) {
                    return Refusal::Crowded.into_response();
                }
                request.extensions_mut().insert(identity.principal.clone());
                request.extensions_mut().insert(identity);
            }
            request.extensions_mut().insert(admitted);
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(pairs: &[(&str, &str)]) -> Result<Admitted, Refusal> {
        admit_to(&Method::POST, "/mcp", pairs)
    }

    /// The rules of a listener whose one session has the cookie `s` and the proof `p`.
    fn admit_to(method: &Method, path: &str, pairs: &[(&str, &str)]) -> Result<Admitted, Refusal> {
        let access = Access::new(
            [127, 0, 0, 1].into(),
            &["box.local".into(), "proxy.local:8443".into()],
            &["https://app.example".into()],
        )
        .with_port(7717)
        .with_token("secret", Principal::local())
        .with_keys(|key| (key == "pmlk_mine").then(|| (Principal::local(), KeyId(7))))
        .with_open(&["/", "/health", "/assets/"])
        .with_sessions(&["/api/asked"], |method, headers| {
            if headers.get("cookie").is_none_or(|cookie| cookie != "s") {
                return Ok(None);
            }
            if method != Method::GET && headers.get("proof").is_none_or(|proof| proof != "p") {
                return Err(Refusal::Forged);
            }
            Ok(Some(Principal::local()))
        });
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(http::HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        access.admit(method, path, &headers)
    }

    #[test]
    fn hosts_and_origins_that_are_not_ours_are_refused() {
        let token = ("authorization", "Bearer secret");
        for host in [
            "localhost:7717",
            "LocalHost",
            "127.0.0.1",
            "[::1]:7717",
            "[::1]",
            "BOX.local:1",
            "proxy.local:8443",
        ] {
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
            "localhost.",
            "localhost:3000",
            "localhost:",
            "localhost:+7717",
            "localhost:07717x",
            "localhost:evil.example",
            "localhost:7717:7717",
            "localhost:7717@evil.example",
            "evil.example@localhost",
            "localhost/evil",
            "localhost,evil.example",
            "[::1]evil.example",
            "[::1].evil.example:7717",
            "[::1",
            "::1",
            "[localhost]",
            "127.0.0.1:77170",
            "xbox.local",
            "box.local.evil.example",
            "proxy.local",
            "proxy.local:8444",
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
            Ok(Admitted::Token(Principal::local()))
        );
        let by_key = admit(&[("host", "localhost"), ("authorization", "Bearer pmlk_mine")]);
        assert_eq!(by_key, Ok(Admitted::Key(Principal::local(), KeyId(7))));
        assert_eq!(by_key.unwrap().identity().unwrap().key, Some(KeyId(7)));
        let other = admit(&[("host", "localhost"), ("authorization", "Bearer pmlk_min")]);
        assert_eq!(other, Err(Refusal::Token));
    }

    #[test]
    fn only_what_was_declared_open_is() {
        let host = ("host", "localhost");
        for path in ["/", "/health", "/assets/app.js"] {
            assert_eq!(admit_to(&Method::GET, path, &[host]), Ok(Admitted::Open), "{path}");
            assert_eq!(admit_to(&Method::GET, path, &[("host", "evil.example")]), Err(Refusal::Host));
        }
        for path in ["/healthy", "/health/x", "/asset", "//", "/api", "/api/analyse", "/mcp", ""] {
            assert_eq!(admit_to(&Method::GET, path, &[host]), Err(Refusal::Token), "{path}");
        }
    }

    #[test]
    fn a_session_opens_its_own_paths_and_no_others() {
        let (host, session, token) =
            (("host", "localhost"), ("cookie", "s"), ("authorization", "Bearer secret"));
        let (get, post) = (&Method::GET, &Method::POST);
        for path in ["/api/asked", "/api/asked/1/2"] {
            let by_session = Ok(Admitted::Session(Principal::local()));
            let by_token = Ok(Admitted::Token(Principal::local()));
            assert_eq!(admit_to(get, path, &[host, session]), by_session, "{path}");
            assert_eq!(admit_to(post, path, &[host, session, ("proof", "p")]), by_session, "{path}");
            assert_eq!(admit_to(post, path, &[host, session]), Err(Refusal::Forged), "{path}");
            assert_eq!(admit_to(get, path, &[host]), Err(Refusal::SignIn), "{path}");
            assert_eq!(admit_to(post, path, &[host, token]), by_token, "{path}");
            let both = [host, session, ("proof", "p"), token];
            assert_eq!(admit_to(post, path, &both), by_token, "a token is never taken for a person");
            let wrong = [host, session, ("proof", "p"), ("authorization", "Bearer wrong")];
            assert_eq!(admit_to(post, path, &wrong), Err(Refusal::Token));
        }
        for path in ["/mcp", "/api/askedx", "/api/analyse"] {
            assert_eq!(admit_to(get, path, &[host, session]), Err(Refusal::Token), "{path}");
        }
    }
}
