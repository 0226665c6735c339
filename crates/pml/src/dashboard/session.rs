//! The browser sessions of the dashboard: of viewers, and of people who have signed in. Those of people are rows of the
//! database; those of viewers follow from secrets, of this process or of all gateways that share the database.
//!
//! A viewer has the *ticket* of the link that `pml serve` prints. It may be in a log that an agent reads, so it opens
//! the dashboard for reading only.
//!
//! A session has two secrets. Browsers send the cookie to every server on the same host, whatever its port. The CSRF
//! token is sent once, in the reply to the sign-in, and the page keeps it in the storage of its own origin. An answer
//! needs both, so neither a page of another origin nor a server on another port can answer for the person who visits
//! it.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pml_mcp::server::access::{AccessRefusal, RequestEffect, SessionRole};
use pml_model::{Digest, Principal};
use pml_store::{DashboardSession, Store};

use crate::clock::now_ms;
use crate::config::Paths;
use crate::passphrase;
use crate::people::{self, People};
use crate::problem::{ErrorCode, Problem};

const COOKIE_NAME: &str = "pml_session";
/// The cookie of a viewer. It stands beside that of a session, so that a viewer goes on reading when a session ends.
const VIEWER_COOKIE_NAME: &str = "pml_view";
/// The `Set-Cookie` value that deletes the cookie.
pub(super) const GONE: &str = "pml_session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0";
/// 12 h in milliseconds: a session ends after this long without use. Polling by an open page does not count as use.
const IDLE_MS: i64 = 12 * 60 * 60 * 1_000;
/// 1 min in milliseconds: how exactly the last use is noted, so that a page of many requests costs one write.
const NOTED_MS: i64 = 60 * 1_000;
/// The length of a cookie: 32 bytes in base64.
const COOKIE_CHARACTERS: usize = 43;
/// The cookies of our name that are looked up for one request.
const MOST_COOKIES: usize = 4;
/// The largest number of sessions; a new one evicts the one unused for longest.
const MOST: usize = 64;

/// The sessions of people at the dashboard. They are rows of the database, so that any gateway serves any page.
pub struct DashboardSessions {
    paths: Paths,
    /// Holds the sessions, and counts wrong passphrases.
    store: Store,
    /// The operator of the gateways.
    operator: Principal,
    people: Arc<People>,
    /// The secrets of viewers.
    viewers: ViewerSecrets,
}

/// The secrets that make browsers viewers.
enum ViewerSecrets {
    /// Those of this process.
    Own {
        /// The secret in the link that the program prints.
        ticket: String,
        /// The cookie that the link gives. It is another secret than the ticket, because browsers send cookies to every
        /// server on the same host.
        cookie: String,
    },
    /// Those of all gateways of a database: they follow from its key and the week, and those of last week count too.
    Shared,
}

/// 7 days in milliseconds: how often the shared secrets of viewers change.
const WEEK_MS: i64 = 7 * 24 * 60 * 60 * 1_000;

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
    /// The sessions in `store`. Viewers see what the operator has.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn new(
        paths: Paths,
        store: Store,
        operator: Principal,
        people: Arc<People>,
    ) -> Result<DashboardSessions, Problem> {
        let viewers = match store.is_shared() {
            true => ViewerSecrets::Shared,
            false => ViewerSecrets::Own { ticket: random()?, cookie: random()? },
        };
        Ok(DashboardSessions { paths, store, operator, people, viewers })
    }

    /// The path that makes a browser a viewer. It is valid while the process runs; that of gateways that share a
    /// database, for a week at least.
    ///
    /// # Errors
    /// The key file of the database cannot be used.
    pub fn viewer_path(&self) -> Result<String, Problem> {
        let ticket = self.viewer_secrets(ViewerSecret::Ticket)?.swap_remove(0);
        Ok(format!("{}{ticket}", super::OPEN_LINK))
    }

    /// The secrets of this kind that count now, the newest first.
    fn viewer_secrets(&self, kind: ViewerSecret) -> Result<Vec<String>, Problem> {
        match (&self.viewers, kind) {
            (ViewerSecrets::Own { ticket, .. }, ViewerSecret::Ticket) => Ok(vec![ticket.clone()]),
            (ViewerSecrets::Own { cookie, .. }, ViewerSecret::Cookie) => Ok(vec![cookie.clone()]),
            (ViewerSecrets::Shared, kind) => {
                let week = now_ms().div_euclid(WEEK_MS);
                let secret = |week: i64| {
                    let words = ["viewer".to_owned(), format!("{kind:?}"), week.to_string()];
                    Ok::<String, Problem>(self.store.blocking().mark_request(&words)?)
                };
                [week, week - 1].into_iter().map(secret).collect()
            }
        }
    }

    /// Whether `given` is a secret of this kind. Digests are compared, so that the time tells nothing about it.
    fn is_viewer_secret(&self, kind: ViewerSecret, given: &str) -> bool {
        let given = Digest::of(given.as_bytes());
        match self.viewer_secrets(kind) {
            Ok(secrets) => secrets.iter().any(|secret| Digest::of(secret.as_bytes()) == given),
            Err(problem) => {
                tracing::warn!(%problem, "nobody can be recognised as a viewer");
                false
            }
        }
    }

    /// The `Set-Cookie` value for a browser that presents `ticket`; `None` if that is not the ticket.
    pub(super) fn viewer_cookie_header(&self, ticket: &str, secure: bool) -> Option<String> {
        if !self.is_viewer_secret(ViewerSecret::Ticket, ticket) {
            return None;
        }
        let cookie = self.viewer_secrets(ViewerSecret::Cookie).ok()?.swap_remove(0);
        let secure = if secure { "; Secure" } else { "" };
        // `Lax`: the link may be opened from a page, such as a terminal in a browser, and a viewer changes nothing.
        Some(format!("{VIEWER_COOKIE_NAME}={cookie}; HttpOnly; SameSite=Lax; Path=/{secure}"))
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
        let Some(session) = self.find(headers, now_ms()) else {
            let viewer = self.is_viewer(headers).then(|| (self.operator.clone(), SessionRole::Viewer));
            return Ok(viewer);
        };
        if effect == RequestEffect::Changes {
            let given = headers.get("x-pml-csrf").map(|value| Digest::of(value.as_bytes()));
            if given.as_ref() != Some(&session.csrf) {
                return Err(AccessRefusal::MissingCsrfProof);
            }
            self.note_use(&session);
        }
        Ok(Some((session.principal, SessionRole::Person)))
    }

    /// Whether the request has the cookie of the link.
    pub(super) fn is_viewer(&self, headers: &HeaderMap) -> bool {
        cookies(headers, VIEWER_COOKIE_NAME).any(|value| self.is_viewer_secret(ViewerSecret::Cookie, value))
    }

    pub(super) fn paths(&self) -> &Paths {
        &self.paths
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// Whether a signed-in person loads a page. Loading one counts as use of the session.
    pub(super) fn record_visit(&self, headers: &HeaderMap) -> bool {
        let session = self.find(headers, now_ms());
        session.map(|session| self.note_use(&session)).is_some()
    }

    fn note_use(&self, session: &DashboardSession) {
        let now = now_ms();
        if now.saturating_sub(session.used_at) > NOTED_MS {
            self.store.touch_dashboard_session(&session.cookie, now);
        }
    }

    pub(super) fn operator(&self) -> &Principal {
        &self.operator
    }

    /// Whether anybody can sign in.
    pub(super) fn can_sign_in(&self) -> Result<bool, Problem> {
        Ok(passphrase::is_set(&self.paths, &self.store)? || !self.people.is_empty())
    }

    /// Starts a session for a person who knew the passphrase with this fingerprint.
    pub(super) async fn start_session(
        &self,
        principal: Principal,
        edition: Option<Digest>,
    ) -> Result<NewDashboardSession, Problem> {
        let fresh = NewDashboardSession { cookie_value: random()?, csrf_token: random()? };
        tracing::info!(%principal, "somebody signed in at the dashboard");
        let now = now_ms();
        let session = DashboardSession {
            cookie: Digest::of(fresh.cookie_value.as_bytes()),
            principal,
            csrf: Digest::of(fresh.csrf_token.as_bytes()),
            passphrase: edition,
            started_at: now,
            used_at: now,
        };
        self.store.start_dashboard_session(session, MOST, now - IDLE_MS).await?;
        Ok(fresh)
    }

    pub(super) async fn end_session(&self, headers: &HeaderMap) -> Result<(), Problem> {
        for value in cookies(headers, COOKIE_NAME) {
            self.store.end_dashboard_session(Digest::of(value.as_bytes())).await?;
        }
        Ok(())
    }

    /// The session of a request; `None` where it is idle too long or was started with another passphrase.
    fn find(&self, headers: &HeaderMap, now: i64) -> Option<DashboardSession> {
        // Other servers on this host can set a cookie of the same name beside ours.
        let session = cookies(headers, COOKIE_NAME)
            .filter(|value| value.len() == COOKIE_CHARACTERS)
            .take(MOST_COOKIES)
            .find_map(|value| match self.store.dashboard_session(&Digest::of(value.as_bytes())) {
                Ok(session) => session,
                Err(error) => {
                    tracing::warn!(%error, "sessions of the dashboard cannot be read");
                    None
                }
            })?;
        let edition = self.edition(&session.principal);
        let lives = now.saturating_sub(session.used_at) < IDLE_MS
            && edition.is_some()
            && session.passphrase == edition;
        lives.then_some(session)
    }

    /// The fingerprint of the passphrase that somebody signs in with now; `None` if they cannot.
    fn edition(&self, principal: &Principal) -> Option<Digest> {
        match *principal == self.operator {
            true => passphrase::passphrase_fingerprint(&self.paths, &self.store).ok().flatten(),
            false => self.people.get(principal).map(|person| people::fingerprint(&person)),
        }
    }
}

/// What a viewer presents.
#[derive(Debug, Clone, Copy)]
enum ViewerSecret {
    /// In the link.
    Ticket,
    /// From then on.
    Cookie,
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

    async fn begin(sessions: &DashboardSessions) -> NewDashboardSession {
        let edition = passphrase::passphrase_fingerprint(&sessions.paths, &sessions.store).unwrap();
        sessions.start_session(Principal::local(), edition).await.unwrap()
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
        let (fresh, other) = (begin(&sessions).await, begin(&sessions).await);
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
        sessions.end_session(&headers(&fresh, "")).await.unwrap();
        assert_eq!(known(RequestEffect::Changes, &headers(&fresh, &fresh.csrf_token)), Ok(None));
        assert!(sessions.record_visit(&headers(&other, "")), "another session goes on");
    }

    #[tokio::test]
    async fn the_ticket_makes_a_viewer_and_no_person() {
        let (_dir, sessions) = sessions().await;
        assert_eq!(sessions.viewer_cookie_header("", false), None);
        let ViewerSecrets::Own { ticket, cookie: secret } = &sessions.viewers else {
            panic!("a file is not shared")
        };
        assert_eq!(sessions.viewer_cookie_header(secret, false), None);
        let path = sessions.viewer_path().unwrap();
        let given = sessions.viewer_cookie_header(path.strip_prefix("/open/").unwrap(), false).unwrap();
        let cookie = given.split(';').next().unwrap();
        assert!(!cookie.contains(ticket), "another server on this host sees the cookie");
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
        let fresh = begin(&sessions).await;
        let both = format!("{cookie}; {COOKIE_NAME}={}", fresh.cookie_value);
        let person = Ok(Some((Principal::local(), SessionRole::Person)));
        assert_eq!(sessions.authenticate(RequestEffect::Reads, &with(&both)), person);
    }

    #[tokio::test]
    async fn a_session_ends_after_half_a_day_without_a_person() {
        let (_dir, sessions) = sessions().await;
        let fresh = begin(&sessions).await;
        let headers = headers(&fresh, "");
        let alive = |after: i64| sessions.find(&headers, now_ms() + after).is_some();
        assert!(alive(IDLE_MS - 60_000));
        assert!(!alive(IDLE_MS + 60_000));
    }

    #[tokio::test]
    async fn setting_the_passphrase_ends_all_sessions() {
        let (_dir, sessions) = sessions().await;
        let fresh = begin(&sessions).await;
        assert!(sessions.record_visit(&headers(&fresh, "")));
        passphrase::set(&sessions.paths, "correct horse").await.unwrap();
        assert!(!sessions.record_visit(&headers(&fresh, "")));
    }

    #[tokio::test]
    async fn there_is_an_end_to_sessions_and_the_oldest_goes_first() {
        let (_dir, sessions) = sessions().await;
        let first = begin(&sessions).await;
        // The others were used later, by the clock.
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        let mut others = Vec::new();
        for _ in 0..MOST {
            others.push(begin(&sessions).await);
        }
        assert!(!sessions.record_visit(&headers(&first, "")));
        assert!(others.iter().all(|fresh| sessions.record_visit(&headers(fresh, ""))));
    }

    #[tokio::test]
    async fn another_gateway_knows_a_session_until_it_ends() {
        let (_dir, sessions) = sessions().await;
        let fresh = begin(&sessions).await;
        let other = DashboardSessions::new(
            sessions.paths.clone(),
            Store::open(sessions.paths.database()).await.unwrap(),
            Principal::local(),
            Arc::default(),
        )
        .unwrap();
        let changes = |sessions: &DashboardSessions| {
            sessions.authenticate(RequestEffect::Changes, &headers(&fresh, &fresh.csrf_token))
        };
        assert_eq!(changes(&other), Ok(Some((Principal::local(), SessionRole::Person))));
        other.end_session(&headers(&fresh, "")).await.unwrap();
        assert_eq!(changes(&sessions), Ok(None));
    }
}
