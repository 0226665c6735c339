//! The browser sessions of the dashboard: of viewers, and of people who have signed in. They live in memory and end with
//! the process.
//!
//! A viewer has the *ticket* of the link that `pml serve` prints. It may be in a log that an agent reads, so it opens
//! the dashboard for reading only.
//!
//! A session has two secrets. Browsers send the cookie to every server on the same host, whatever its port. The CSRF
//! token is sent once, in the reply to the sign-in, and the page keeps it in the storage of its own origin. An answer
//! needs both, so neither a page of another origin nor a server on another port can answer for the person who visits
//! it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pml_mcp::server::access::{AccessRefusal, RequestEffect, SessionRole};
use pml_model::{Digest, Principal};
use pml_store::Store;

use crate::config::Paths;
use crate::passphrase;
use crate::people::{self, People};
use crate::problem::{ErrorCode, Problem};

const COOKIE_NAME: &str = "pml_session";
/// The cookie of a viewer. It stands beside that of a session, so that a viewer goes on reading when a session ends.
const VIEWER_COOKIE_NAME: &str = "pml_view";
/// The `Set-Cookie` value that deletes the cookie.
pub(super) const GONE: &str = "pml_session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0";
/// 12 h: a session ends after this long without use. Polling by an open page does not count as use.
const IDLE: Duration = Duration::from_secs(12 * 3600);
/// The largest number of sessions; a new one evicts the one unused for longest.
const MOST: usize = 64;

/// The dashboard sessions of one process.
pub struct DashboardSessions {
    paths: Paths,
    /// Counts wrong passphrases.
    store: Store,
    /// The operator, whose passphrase stands in a file.
    operator: Principal,
    people: Arc<People>,
    /// Sessions by the digest of their cookie: lookup time reveals nothing about a cookie, and no cookie is stored.
    by_cookie_digest: Mutex<HashMap<Digest, DashboardSession>>,
    /// The secret in the link that the program prints.
    ticket: String,
    /// The digest of the cookie that the link gives. It is another secret than the ticket, because browsers send
    /// cookies to every server on the same host.
    viewer_cookie: (String, Digest),
}

struct DashboardSession {
    principal: Principal,
    csrf_digest: Digest,
    /// The fingerprint of the passphrase that the session was started with; another passphrase ends the session.
    passphrase_edition: Option<Digest>,
    last_used_at: Instant,
}

/// A session that was just started, with the two secrets. PML keeps only their digests.
pub(super) struct NewDashboardSession {
    cookie_value: String,
    pub(super) csrf_token: String,
}

impl NewDashboardSession {
    /// The `Set-Cookie` value that gives the cookie to the browser.
    pub(super) fn set_cookie_header(&self, secure: bool) -> String {
        let secure = if secure { "; Secure" } else { "" };
        format!("{COOKIE_NAME}={}; HttpOnly; SameSite=Strict; Path=/{secure}", self.cookie_value)
    }
}

impl DashboardSessions {
    /// An empty set of sessions, with a new ticket for viewers, who see what the operator has.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn new(
        paths: Paths,
        store: Store,
        operator: Principal,
        people: Arc<People>,
    ) -> Result<DashboardSessions, Problem> {
        let cookie = random()?;
        let digest = Digest::of(cookie.as_bytes());
        Ok(DashboardSessions {
            paths,
            store,
            operator,
            people,
            by_cookie_digest: Mutex::default(),
            ticket: random()?,
            viewer_cookie: (cookie, digest),
        })
    }

    /// The path that makes a browser a viewer. It is valid while the process runs.
    pub fn viewer_path(&self) -> String {
        format!("{}{}", super::OPEN_LINK, self.ticket)
    }

    /// The `Set-Cookie` value for a browser that presents `ticket`; `None` if that is not the ticket.
    pub(super) fn viewer_cookie_header(&self, ticket: &str, secure: bool) -> Option<String> {
        // Digests are compared, so that the time tells nothing about the ticket.
        if Digest::of(ticket.as_bytes()) != Digest::of(self.ticket.as_bytes()) {
            return None;
        }
        let secure = if secure { "; Secure" } else { "" };
        // `Lax`: the link may be opened from a page, such as a terminal in a browser, and a viewer changes nothing.
        Some(format!("{VIEWER_COOKIE_NAME}={}; HttpOnly; SameSite=Lax; Path=/{secure}", self.viewer_cookie.0))
    }

    /// The session that a request belongs to. A request of a person that changes something must carry the CSRF token.
    ///
    /// # Errors
    /// The request belongs to the session of a person but lacks the CSRF token.
    pub fn authenticate(
        &self,
        effect: RequestEffect,
        headers: &HeaderMap,
    ) -> Result<Option<(Principal, SessionRole)>, AccessRefusal> {
        let mut open = self.lock();
        let Some(session) = self.find(&mut open, headers, Instant::now()) else {
            let viewer = self.is_viewer(headers).then(|| (self.operator.clone(), SessionRole::Viewer));
            return Ok(viewer);
        };
        if effect == RequestEffect::Changes {
            let given = headers.get("x-pml-csrf").map(|value| Digest::of(value.as_bytes()));
            if given.as_ref() != Some(&session.csrf_digest) {
                return Err(AccessRefusal::MissingCsrfProof);
            }
            session.last_used_at = Instant::now();
        }
        Ok(Some((session.principal.clone(), SessionRole::Person)))
    }

    /// Whether the request has the cookie of the link.
    pub(super) fn is_viewer(&self, headers: &HeaderMap) -> bool {
        cookies(headers, VIEWER_COOKIE_NAME).any(|value| Digest::of(value.as_bytes()) == self.viewer_cookie.1)
    }

    pub(super) fn paths(&self) -> &Paths {
        &self.paths
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// Whether a signed-in person loads a page. Loading one counts as use of the session.
    pub(super) fn record_visit(&self, headers: &HeaderMap) -> bool {
        let mut open = self.lock();
        let session = self.find(&mut open, headers, Instant::now());
        session.map(|session| session.last_used_at = Instant::now()).is_some()
    }

    pub(super) fn operator(&self) -> &Principal {
        &self.operator
    }

    /// Whether anybody can sign in.
    pub(super) fn can_sign_in(&self) -> Result<bool, Problem> {
        Ok(passphrase::is_set(&self.paths)? || !self.people.is_empty())
    }

    /// Starts a session for a person who knew the passphrase with this fingerprint.
    pub(super) fn start_session(
        &self,
        principal: Principal,
        edition: Option<Digest>,
    ) -> Result<NewDashboardSession, Problem> {
        let fresh = NewDashboardSession { cookie_value: random()?, csrf_token: random()? };
        tracing::info!(%principal, "somebody signed in at the dashboard");
        let session = DashboardSession {
            principal,
            csrf_digest: Digest::of(fresh.csrf_token.as_bytes()),
            passphrase_edition: edition,
            last_used_at: Instant::now(),
        };
        let mut open = self.lock();
        if open.len() >= MOST
            && let Some(oldest) =
                open.iter().min_by_key(|(_, session)| session.last_used_at).map(|(key, _)| key.clone())
        {
            open.remove(&oldest);
        }
        open.insert(Digest::of(fresh.cookie_value.as_bytes()), session);
        Ok(fresh)
    }

    pub(super) fn end_session(&self, headers: &HeaderMap) {
        let mut open = self.lock();
        for value in cookies(headers, COOKIE_NAME) {
            open.remove(&Digest::of(value.as_bytes()));
        }
    }

    /// The session of a request; `None` where it is idle too long or was started with another passphrase.
    fn find<'a>(
        &self,
        open: &'a mut HashMap<Digest, DashboardSession>,
        headers: &HeaderMap,
        now: Instant,
    ) -> Option<&'a mut DashboardSession> {
        // Other servers on this host can set a cookie of the same name beside ours.
        let key = cookies(headers, COOKIE_NAME)
            .map(|value| Digest::of(value.as_bytes()))
            .find(|key| open.contains_key(key))?;
        let lives = open.get(&key).is_some_and(|session| {
            let edition = self.edition(&session.principal);
            now.saturating_duration_since(session.last_used_at) < IDLE
                && edition.is_some()
                && session.passphrase_edition == edition
        });
        if !lives {
            open.remove(&key);
        }
        open.get_mut(&key)
    }

    /// The fingerprint of the passphrase that somebody signs in with now; `None` if they cannot.
    fn edition(&self, principal: &Principal) -> Option<Digest> {
        match *principal == self.operator {
            true => passphrase::passphrase_fingerprint(&self.paths).ok().flatten(),
            false => self.people.get(principal).map(|person| people::fingerprint(&person)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, DashboardSession>> {
        self.by_cookie_digest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All values of one of our cookies in a request.
fn cookies<'h>(headers: &'h HeaderMap, name: &'static str) -> impl Iterator<Item = &'h str> {
    let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter_map(move |(known, value)| (known == name && !value.is_empty()).then_some(value))
}

/// A random secret of 256 bits.
fn random() -> Result<String, Problem> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        Problem::new(ErrorCode::Config, format!("the system gave no random bytes for a session: {error}"))
    })?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn sessions() -> (tempfile::TempDir, DashboardSessions) {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths { config: dir.path().join("pml.toml"), data: dir.path().to_owned() };
        passphrase::set(&paths, "correct horse").await.unwrap();
        let store = Store::open(paths.database()).await.unwrap();
        (dir, DashboardSessions::new(paths, store, Principal::local(), Arc::default()).unwrap())
    }

    fn begin(sessions: &DashboardSessions) -> NewDashboardSession {
        let edition = passphrase::passphrase_fingerprint(&sessions.paths).unwrap();
        sessions.start_session(Principal::local(), edition).unwrap()
    }

    fn headers(fresh: &NewDashboardSession, csrf: &str) -> HeaderMap {
        let cookie = format!("theme=dark; {COOKIE_NAME}=tossed; {COOKIE_NAME}={}", fresh.cookie_value);
        [(COOKIE, cookie.parse().unwrap()), ("x-pml-csrf".parse().unwrap(), csrf.parse().unwrap())]
            .into_iter()
            .collect()
    }

    #[tokio::test]
    async fn reading_needs_the_cookie_and_changing_the_second_secret_too() {
        let (_dir, sessions) = sessions().await;
        let (fresh, other) = (begin(&sessions), begin(&sessions));
        let known = |effect: RequestEffect, headers: &HeaderMap| sessions.authenticate(effect, headers);
        let person = Ok(Some((Principal::local(), SessionRole::Person)));
        assert_eq!(known(RequestEffect::Reads, &HeaderMap::new()), Ok(None));
        assert_eq!(known(RequestEffect::Reads, &headers(&fresh, "")), person);
        assert_eq!(known(RequestEffect::Changes, &headers(&fresh, &fresh.csrf_token)), person);
        for wrong in ["", "x", other.csrf_token.as_str(), fresh.cookie_value.as_str()] {
            assert_eq!(
                known(RequestEffect::Changes, &headers(&fresh, wrong)),
                Err(AccessRefusal::MissingCsrfProof),
                "{wrong}"
            );
        }
        sessions.end_session(&headers(&fresh, ""));
        assert_eq!(known(RequestEffect::Changes, &headers(&fresh, &fresh.csrf_token)), Ok(None));
        assert!(sessions.record_visit(&headers(&other, "")), "another session goes on");
    }

    #[tokio::test]
    async fn the_ticket_makes_a_viewer_and_no_person() {
        let (_dir, sessions) = sessions().await;
        assert_eq!(sessions.viewer_cookie_header("", false), None);
        assert_eq!(sessions.viewer_cookie_header(&sessions.viewer_cookie.0, false), None);
        let path = sessions.viewer_path();
        let given = sessions.viewer_cookie_header(path.strip_prefix("/open/").unwrap(), false).unwrap();
        let cookie = given.split(';').next().unwrap();
        assert!(!cookie.contains(&sessions.ticket), "another server on this host sees the cookie");
        let with = |cookie: &str| -> HeaderMap { [(COOKIE, cookie.parse().unwrap())].into_iter().collect() };
        let viewer = Ok(Some((Principal::local(), SessionRole::Viewer)));
        for effect in [RequestEffect::Reads, RequestEffect::Changes] {
            assert_eq!(sessions.authenticate(effect, &with(cookie)), viewer);
        }
        let secret = cookie.strip_prefix("pml_view=").unwrap();
        assert_eq!(
            sessions.authenticate(RequestEffect::Reads, &with(&format!("{COOKIE_NAME}={secret}"))),
            Ok(None)
        );
        let fresh = begin(&sessions);
        let both = format!("{cookie}; {COOKIE_NAME}={}", fresh.cookie_value);
        let person = Ok(Some((Principal::local(), SessionRole::Person)));
        assert_eq!(sessions.authenticate(RequestEffect::Reads, &with(&both)), person);
    }

    #[tokio::test]
    async fn a_session_ends_after_half_a_day_without_a_person() {
        let (_dir, sessions) = sessions().await;
        let fresh = begin(&sessions);
        let began = Instant::now();
        let headers = headers(&fresh, "");
        let alive = |after: Duration| sessions.find(&mut sessions.lock(), &headers, began + after).is_some();
        assert!(alive(IDLE - Duration::from_secs(60)));
        assert!(!alive(IDLE + Duration::from_secs(60)));
        assert!(!alive(Duration::ZERO), "what has ended stays so");
    }

    #[tokio::test]
    async fn setting_the_passphrase_ends_all_sessions() {
        let (_dir, sessions) = sessions().await;
        let fresh = begin(&sessions);
        assert!(sessions.record_visit(&headers(&fresh, "")));
        passphrase::set(&sessions.paths, "correct horse").await.unwrap();
        assert!(!sessions.record_visit(&headers(&fresh, "")));
    }

    #[tokio::test]
    async fn there_is_an_end_to_sessions_and_the_oldest_goes_first() {
        let (_dir, sessions) = sessions().await;
        let first = begin(&sessions);
        let others: Vec<NewDashboardSession> = (0..MOST).map(|_| begin(&sessions)).collect();
        assert_eq!(sessions.lock().len(), MOST);
        assert!(!sessions.record_visit(&headers(&first, "")));
        assert!(others.iter().all(|fresh| sessions.record_visit(&headers(fresh, ""))));
    }
}
