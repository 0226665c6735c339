//! Access control of the HTTP routes: checked for every request, before anything else.
//!
//! `Host` and `Origin` keep out web pages that point their own name at this machine. The bearer token keeps out other
//! programs of the machine. A client key in place of the token also identifies the client. A route needs a token or a
//! key unless it was declared open, or open to browser sessions. A session is that of a viewer, who may only read, or of
//! a person who has signed in. Sessions are managed elsewhere.

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

use crate::server::ClientIdentity;

use crate::server::connections::PeerConnection;

/// The access rules of one listener.
#[derive(Debug, Clone)]
pub struct AccessRules {
    /// The names of this machine itself.
    own: HashSet<String>,
    /// The port that goes with them, if known.
    port: Option<u16>,
    /// Further accepted hosts: `name` with any port, or `name:port`.
    hosts: HashSet<String>,
    origins: HashSet<String>,
    /// Digests of the tokens: comparing them leaks nothing about a token, and no token is kept.
    tokens: HashMap<Digest, Principal>,
    keys: Option<KeyLookup>,
    open: Vec<String>,
    sessions: Option<SessionRules>,
}

/// The paths that browser sessions open, and how a session is found.
#[derive(Debug, Clone)]
struct SessionRules {
    paths: Vec<String>,
    /// POSTs that change nothing, so that a viewer may send them.
    reading_posts: Vec<String>,
    lookup: SessionLookup,
}

/// Whether a request can change something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestEffect {
    /// It only reads.
    Reads,
    /// It may change something; a session has to prove that one of our own pages sent it.
    Changes,
}

/// What the holder of a browser session may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionRole {
    /// Came by the link that the program prints: may read.
    Viewer,
    /// Signed in with the passphrase.
    Person,
}

/// Finds the session that a request belongs to; see [`AccessRules::with_sessions`].
type SessionLookupFn = dyn Fn(RequestEffect, &HeaderMap) -> Result<Option<(Principal, SessionRole)>, AccessRefusal>
    + Send
    + Sync;

#[derive(Clone)]
struct SessionLookup(Arc<SessionLookupFn>);

impl fmt::Debug for SessionLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sessions")
    }
}

/// Finds the client that a key belongs to; see [`AccessRules::with_keys`].
type KeyLookupFn = dyn Fn(&str) -> Option<(Principal, KeyId)> + Send + Sync;

#[derive(Clone)]
struct KeyLookup(Arc<KeyLookupFn>);

impl fmt::Debug for KeyLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

/// How a request was admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// The route is open to anyone.
    Open,
    /// By a bearer token: a program.
    Token(Principal),
    /// By a client key: a client that the operator knows.
    Key(Principal, KeyId),
    /// By a session: a person who has signed in.
    Session(Principal),
    /// By the session of somebody who has the link and has not signed in; the request changes nothing.
    Viewer(Principal),
}

impl Admission {
    /// The principal; `None` for an open route.
    pub fn principal(&self) -> Option<&Principal> {
        match self {
            Admission::Open => None,
            Admission::Token(principal)
            | Admission::Key(principal, _)
            | Admission::Session(principal)
            | Admission::Viewer(principal) => Some(principal),
        }
    }

    /// The identity of the client, if known.
    fn identity(&self) -> Option<ClientIdentity> {
        let key = match self {
            Admission::Key(_, key) => Some(*key),
            Admission::Open | Admission::Token(_) | Admission::Session(_) | Admission::Viewer(_) => None,
        };
        Some(ClientIdentity { principal: self.principal()?.clone(), key })
    }
}

impl AccessRules {
    /// Rules for a listener on `address`, with further accepted host names and origins.
    pub fn new(address: IpAddr, hosts: &[String], origins: &[String]) -> AccessRules {
        let mut own: HashSet<String> = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).into();
        match address {
            address if address.is_unspecified() => {}
            IpAddr::V4(address) => drop(own.insert(address.to_string())),
            IpAddr::V6(address) => drop(own.insert(format!("[{address}]"))),
        }
        AccessRules {
            own,
            port: None,
            hosts: hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
            origins: origins.iter().cloned().collect(),
            tokens: HashMap::new(),
            keys: None,
            open: Vec::new(),
            sessions: None,
        }
    }

    /// Sets the port of the listener: requests that name this machine with another port are refused.
    #[must_use]
    pub fn with_port(mut self, port: u16) -> AccessRules {
        self.port = Some(port);
        self
    }

    /// Admits the holder of `token` as `principal`.
    #[must_use]
    pub fn with_token(mut self, token: &str, principal: Principal) -> AccessRules {
        self.tokens.insert(Digest::of(token.as_bytes()), principal);
        self
    }

    /// Admits clients with keys wherever the token would be accepted. `known` looks a key up, and must take the same
    /// time for every text that is not a key.
    #[must_use]
    pub fn with_keys(
        mut self,
        known: impl Fn(&str) -> Option<(Principal, KeyId)> + Send + Sync + 'static,
    ) -> AccessRules {
        self.keys = Some(KeyLookup(Arc::new(known)));
        self
    }

    /// Opens these paths to anyone. A path that ends with `/` includes all paths below it; `/` is only itself.
    #[must_use]
    pub fn with_open_paths(mut self, paths: &[&str]) -> AccessRules {
        self.open.extend(paths.iter().map(|&path| path.to_owned()));
        self
    }

    /// Admits browser sessions to these paths, and all below them, without a token. A viewer may send what changes
    /// nothing: GETs, and POSTs to `reading_posts`. `known` finds the session of a request, and refuses requests that a
    /// page of another origin can have sent.
    #[must_use]
    pub fn with_sessions(
        mut self,
        paths: &[&str],
        reading_posts: &[&str],
        known: impl Fn(RequestEffect, &HeaderMap) -> Result<Option<(Principal, SessionRole)>, AccessRefusal>
        + Send
        + Sync
        + 'static,
    ) -> AccessRules {
        let owned = |paths: &[&str]| paths.iter().map(|&path| path.to_owned()).collect();
        let lookup = SessionLookup(Arc::new(known));
        self.sessions =
            Some(SessionRules { paths: owned(paths), reading_posts: owned(reading_posts), lookup });
        self
    }

    /// Admits a request, or says why it is refused.
    ///
    /// # Errors
    /// A foreign `Host` or `Origin`, or no valid token or session where one is needed.
    pub fn admit(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<Admission, AccessRefusal> {
        self.admit_origin(headers)?;
        if self.open.iter().any(|open| path == open || open.len() > 1 && below(path, open)) {
            return Ok(Admission::Open);
        }
        // A request with a token is judged by that alone, and not by a cookie that a browser adds.
        if let Some(sessions) = self.sessions.as_ref().filter(|sessions| sessions.open(path))
            && !headers.contains_key(AUTHORIZATION)
        {
            return sessions.admit(method, path, headers);
        }
        let token = text(headers, &AUTHORIZATION).and_then(bearer).ok_or(AccessRefusal::Token)?;
        if let Some(principal) = self.tokens.get(&Digest::of(token.as_bytes())) {
            return Ok(Admission::Token(principal.clone()));
        }
        let known = self.keys.as_ref().and_then(|keys| (keys.0)(token));
        known.map(|(principal, key)| Admission::Key(principal, key)).ok_or(AccessRefusal::Token)
    }

    fn serves(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let Some((name, port)) = parts(&host) else { return false };
        let own = self.own.contains(name) && (port.is_none() || self.port.is_none() || port == self.port);
        own || self.hosts.contains(name) || self.hosts.contains(&host)
    }

    fn admit_origin(&self, headers: &HeaderMap) -> Result<(), AccessRefusal> {
        let host = text(headers, &HOST).ok_or(AccessRefusal::Host)?;
        if !self.serves(host) {
            return Err(AccessRefusal::Host);
        }
        if let Some(origin) = headers.get(ORIGIN) {
            let origin = origin.to_str().map_err(|_| AccessRefusal::Origin)?;
            let same = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            if !same.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
                && !self.origins.contains(origin)
            {
                return Err(AccessRefusal::Origin);
            }
        }
        Ok(())
    }
}

impl SessionRules {
    /// Whether sessions open this path.
    fn open(&self, path: &str) -> bool {
        let below =
            |known: &String| path.strip_prefix(known.as_str()).is_some_and(|rest| rest.starts_with('/'));
        self.paths.iter().any(|known| path == known || below(known))
    }

    fn admit(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<Admission, AccessRefusal> {
        let reads = matches!(*method, Method::GET | Method::HEAD)
            || *method == Method::POST && self.reading_posts.iter().any(|known| known == path);
        let effect = if reads { RequestEffect::Reads } else { RequestEffect::Changes };
        match (self.lookup.0)(effect, headers)? {
            Some((principal, SessionRole::Person)) => Ok(Admission::Session(principal)),
            Some((principal, SessionRole::Viewer)) if reads => Ok(Admission::Viewer(principal)),
            Some((_, SessionRole::Viewer)) => Err(AccessRefusal::ViewerChanges),
            None => Err(AccessRefusal::SignIn),
        }
    }
}

/// Whether the authority of the request target differs from the one in `Host`.
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
    // A proxy in front could read two headers differently.
    values.next().is_none().then_some(value)
}

/// Name and port of an authority without user information.
fn parts(authority: &str) -> Option<(&str, Option<u16>)> {
    let end = if authority.starts_with('[') {
        authority.find(']')? + 1
    } else {
        authority.find(':').unwrap_or(authority.len())
    };
    let (name, rest) = authority.split_at(end);
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Some((name, None)),
        // `parse` alone would accept a sign.
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
pub enum AccessRefusal {
    /// `Host` names another machine.
    #[error("this host name is not served here; add it to `serve.hosts` if it should be")]
    Host,
    /// `Origin` is a foreign page.
    #[error("requests from this origin are not allowed; add it to `serve.origins` if they should be")]
    Origin,
    /// The token is missing or unknown.
    #[error(
        "a bearer token is required; `pml serve` prints the client configuration that carries it, and `pml keys list` shows which keys count"
    )]
    Token,
    /// Neither a session nor a token was presented.
    #[error(
        "open the dashboard by the link that `pml serve` prints, sign in at `/login`, or send the bearer token"
    )]
    SignIn,
    /// A viewer asks for a change.
    #[error(
        "this needs the passphrase: the link that `pml serve` prints opens the dashboard for reading only"
    )]
    ViewerChanges,
    /// A change in a session lacks the CSRF proof that PML's own pages send.
    #[error("the header `x-pml-csrf` is missing or is not that of this session; sign in again at `/login`")]
    MissingCsrfProof,
    /// Too many connections are served already.
    #[error("too many connections are open; close some or try again later")]
    TooManyConnections,
}

impl IntoResponse for AccessRefusal {
    fn into_response(self) -> Response {
        let code = match self {
            AccessRefusal::Host | AccessRefusal::Origin | AccessRefusal::Token => "FORBIDDEN",
            // Signing in helps with all of these, so that a page can ask for the passphrase and repeat the request.
            AccessRefusal::SignIn | AccessRefusal::ViewerChanges | AccessRefusal::MissingCsrfProof => {
                "SIGN_IN_REQUIRED"
            }
            AccessRefusal::TooManyConnections => "BUSY",
        };
        let error = serde_json::json!({ "code": code, "message": self.to_string() });
        let body = serde_json::json!({ "schemaVersion": 1, "error": error }).to_string();
        let json = (CONTENT_TYPE, "application/json");
        match self {
            AccessRefusal::Host | AccessRefusal::Origin | AccessRefusal::MissingCsrfProof => {
                (StatusCode::FORBIDDEN, [json], body).into_response()
            }
            AccessRefusal::Token | AccessRefusal::SignIn | AccessRefusal::ViewerChanges => {
                (StatusCode::UNAUTHORIZED, [json, (WWW_AUTHENTICATE, "Bearer")], body).into_response()
            }
            AccessRefusal::TooManyConnections => {
                (StatusCode::SERVICE_UNAVAILABLE, [json, (RETRY_AFTER, "5")], body).into_response()
            }
        }
    }
}

/// Admits or refuses a request. Routes behind it find [`Admission`] in the extensions of the request, and
/// [`Principal`] and [`ClientIdentity`] if they are known.
pub async fn check_access(
    State(access): State<Arc<AccessRules>>,
    mut request: Request,
    next: Next,
) -> Response {
    if differs(request.uri().authority(), request.headers()) {
        return AccessRefusal::Host.into_response();
    }
    match access.admit(request.method(), request.uri().path(), request.headers()) {
        Ok(admitted) => {
            if let Some(identity) = admitted.identity() {
                let peer = request.extensions().get::<Arc<PeerConnection>>();
                if peer.is_some_and(|peer| !peer.admit_request()) {
                    return AccessRefusal::TooManyConnections.into_response();
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

    fn admit(pairs: &[(&str, &str)]) -> Result<Admission, AccessRefusal> {
        admit_to(&Method::POST, "/mcp", pairs)
    }

    /// The rules of a listener with one session, which has the cookie `s` and the proof `p`.
    fn admit_to(method: &Method, path: &str, pairs: &[(&str, &str)]) -> Result<Admission, AccessRefusal> {
        let access = AccessRules::new(
            [127, 0, 0, 1].into(),
            &["box.local".into(), "proxy.local:8443".into()],
            &["https://app.example".into()],
        )
        .with_port(7717)
        .with_token("secret", Principal::local())
        .with_keys(|key| (key == "pmlk_mine").then(|| (Principal::local(), KeyId(7))))
        .with_open_paths(&["/", "/health", "/assets/"])
        .with_sessions(&["/api/asked"], &["/api/asked/search"], |effect, headers| {
            match headers.get("cookie").map(http::HeaderValue::as_bytes) {
                Some(b"s") => {
                    let proven = headers.get("proof").is_some_and(|proof| proof == "p");
                    if effect == RequestEffect::Changes && !proven {
                        return Err(AccessRefusal::MissingCsrfProof);
                    }
                    Ok(Some((Principal::local(), SessionRole::Person)))
                }
                Some(b"v") => Ok(Some((Principal::local(), SessionRole::Viewer))),
                _ => Ok(None),
            }
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
            assert_eq!(admit(&[("host", host), token]), Err(AccessRefusal::Host), "{host}");
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
                Err(AccessRefusal::Origin),
                "{origin}"
            );
        }
        assert_eq!(admit(&[token]), Err(AccessRefusal::Host));
        assert_eq!(admit(&[("host", "localhost"), ("host", "localhost"), token]), Err(AccessRefusal::Host));
    }

    #[test]
    fn a_token_is_needed_and_has_to_be_right() {
        for value in [None, Some("Bearer wrong"), Some("secret"), Some("Basic secret"), Some("Bearer ")] {
            let mut pairs = vec![("host", "localhost")];
            pairs.extend(value.map(|value| ("authorization", value)));
            assert_eq!(admit(&pairs), Err(AccessRefusal::Token), "{value:?}");
        }
        assert_eq!(
            admit(&[("host", "localhost"), ("authorization", "bearer secret")]),
            Ok(Admission::Token(Principal::local()))
        );
        let by_key = admit(&[("host", "localhost"), ("authorization", "Bearer pmlk_mine")]);
        assert_eq!(by_key, Ok(Admission::Key(Principal::local(), KeyId(7))));
        assert_eq!(by_key.unwrap().identity().unwrap().key, Some(KeyId(7)));
        let other = admit(&[("host", "localhost"), ("authorization", "Bearer pmlk_min")]);
        assert_eq!(other, Err(AccessRefusal::Token));
    }

    #[test]
    fn only_what_was_declared_open_is() {
        let host = ("host", "localhost");
        for path in ["/", "/health", "/assets/app.js"] {
            assert_eq!(admit_to(&Method::GET, path, &[host]), Ok(Admission::Open), "{path}");
            assert_eq!(admit_to(&Method::GET, path, &[("host", "evil.example")]), Err(AccessRefusal::Host));
        }
        for path in ["/healthy", "/health/x", "/asset", "//", "/api", "/api/analyse", "/mcp", ""] {
            assert_eq!(admit_to(&Method::GET, path, &[host]), Err(AccessRefusal::Token), "{path}");
        }
    }

    #[test]
    fn a_session_opens_its_own_paths_and_no_others() {
        let (host, session, token) =
            (("host", "localhost"), ("cookie", "s"), ("authorization", "Bearer secret"));
        let (get, post) = (&Method::GET, &Method::POST);
        for path in ["/api/asked", "/api/asked/1/2"] {
            let by_session = Ok(Admission::Session(Principal::local()));
            let by_token = Ok(Admission::Token(Principal::local()));
            assert_eq!(admit_to(get, path, &[host, session]), by_session, "{path}");
            assert_eq!(admit_to(post, path, &[host, session, ("proof", "p")]), by_session, "{path}");
            assert_eq!(
                admit_to(post, path, &[host, session]),
                Err(AccessRefusal::MissingCsrfProof),
                "{path}"
            );
            assert_eq!(admit_to(get, path, &[host]), Err(AccessRefusal::SignIn), "{path}");
            assert_eq!(admit_to(post, path, &[host, token]), by_token, "{path}");
            let both = [host, session, ("proof", "p"), token];
            assert_eq!(admit_to(post, path, &both), by_token, "a token is never taken for a person");
            let wrong = [host, session, ("proof", "p"), ("authorization", "Bearer wrong")];
            assert_eq!(admit_to(post, path, &wrong), Err(AccessRefusal::Token));
        }
        for path in ["/mcp", "/api/askedx", "/api/analyse"] {
            assert_eq!(admit_to(get, path, &[host, session]), Err(AccessRefusal::Token), "{path}");
        }
    }

    #[test]
    fn a_viewer_reads_and_changes_nothing() {
        let viewer = [("host", "localhost"), ("cookie", "v")];
        let by_viewer = Ok(Admission::Viewer(Principal::local()));
        for (method, path) in
            [(Method::GET, "/api/asked"), (Method::HEAD, "/api/asked/1"), (Method::POST, "/api/asked/search")]
        {
            assert_eq!(admit_to(&method, path, &viewer), by_viewer, "{method} {path}");
        }
        for (method, path) in [
            (Method::POST, "/api/asked/1"),
            (Method::POST, "/api/asked/search/more"),
            (Method::DELETE, "/api/asked/search"),
            (Method::PUT, "/api/asked"),
            (Method::OPTIONS, "/api/asked"),
        ] {
            let refused = admit_to(&method, path, &viewer);
            assert_eq!(refused, Err(AccessRefusal::ViewerChanges), "{method} {path}");
        }
        assert_eq!(admit_to(&Method::GET, "/mcp", &viewer), Err(AccessRefusal::Token));
        let person = [("host", "localhost"), ("cookie", "s")];
        let by_person = Ok(Admission::Session(Principal::local()));
        assert_eq!(admit_to(&Method::POST, "/api/asked/search", &person), by_person, "nothing is changed");
    }
}
