//! Who is signed in at the dashboard. Sessions live in memory: they end with the process.
//!
//! A session has two secrets. The cookie goes to every server on the same host, whatever its port; the other one is
//! told once, at the sign-in, and kept by the page in storage of its own origin. An answer needs both, so that
//! neither a page of another origin nor a server on another port can answer for the person who visits it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, Method};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pml_mcp::server::access::Refusal;
use pml_model::{Digest, Principal};
use pml_store::Store;

use crate::config::Paths;
use crate::passphrase;
use crate::problem::{Code, Problem};

const COOKIE_NAME: &str = "pml_session";
/// Takes the cookie away.
pub(super) const GONE: &str = "pml_session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0";
/// How long a person may do nothing. A page that looks by itself is not a person.
const IDLE: Duration = Duration::from_secs(12 * 3600);
/// How many sessions there may be; the one unused for longest makes room.
const MOST: usize = 64;

/// The sessions of one process.
pub struct Sessions {
    paths: Paths,
    /// Where wrong passphrases are counted.
    store: Store,
    principal: Principal,
    /// By digest of the cookie, so that comparing says nothing about one and none is kept.
    open: Mutex<HashMap<Digest, Session>>,
}

struct Session {
    csrf: Digest,
    /// Which passphrase it was begun with.
    edition: Option<Digest>,
    used: Instant,
}

/// A session that has just begun, with the secrets that only its owner keeps.
pub(super) struct Fresh {
    value: String,
    pub(super) csrf: String,
}

impl Fresh {
    /// The header that gives the cookie to the browser.
    pub(super) fn cookie(&self, secure: bool) -> String {
        let secure = if secure { "; Secure" } else { "" };
        format!("{COOKIE_NAME}={}; HttpOnly; SameSite=Strict; Path=/{secure}", self.value)
    }
}

impl Sessions {
    /// No session yet; those to come act as `principal`.
    pub fn new(paths: Paths, store: Store, principal: Principal) -> Sessions {
        Sessions { paths, store, principal, open: Mutex::default() }
    }

    /// Whose session a request belongs to. One that changes something has to carry the second secret.
    ///
    /// # Errors
    /// It belongs to a session and does not carry it.
    pub fn known(&self, method: &Method, headers: &HeaderMap) -> Result<Option<Principal>, Refusal> {
        let reads = *method == Method::GET || *method == Method::HEAD;
        let mut open = self.lock();
        let Some(session) = self.find(&mut open, headers, Instant::now()) else { return Ok(None) };
        if !reads {
            let given = headers.get("x-pml-csrf").map(|value| Digest::of(value.as_bytes()));
            if given.as_ref() != Some(&session.csrf) {
                return Err(Refusal::Forged);
            }
            session.used = Instant::now();
        }
        Ok(Some(self.principal.clone()))
    }

    pub(super) fn paths(&self) -> &Paths {
        &self.paths
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// Whether a person who is signed in loads a page; that counts as a sign of life.
    pub(super) fn visit(&self, headers: &HeaderMap) -> bool {
        let mut open = self.lock();
        let session = self.find(&mut open, headers, Instant::now());
        session.map(|session| session.used = Instant::now()).is_some()
    }

    /// Begins a session for somebody who knows the passphrase of this edition.
    pub(super) fn begin(&self, edition: Option<Digest>) -> Result<Fresh, Problem> {
        let fresh = Fresh { value: random()?, csrf: random()? };
        let session = Session { csrf: Digest::of(fresh.csrf.as_bytes()), edition, used: Instant::now() };
        let mut open = self.lock();
        if open.len() >= MOST
            && let Some(oldest) =
                open.iter().min_by_key(|(_, session)| session.used).map(|(key, _)| key.clone())
        {
            open.remove(&oldest);
        }
        open.insert(Digest::of(fresh.value.as_bytes()), session);
        tracing::info!("somebody signed in at the dashboard");
        Ok(fresh)
    }

    pub(super) fn end(&self, headers: &HeaderMap) {
        let mut open = self.lock();
        for value in cookies(headers) {
            open.remove(&Digest::of(value.as_bytes()));
        }
    }

    /// The session of a request; one that is too old or was begun with another passphrase is none.
    fn find<'a>(
        &self,
        open: &'a mut HashMap<Digest, Session>,
        headers: &HeaderMap,
        now: Instant,
    ) -> Option<&'a mut Session> {
        // Others on this host can set a cookie of the same name beside ours.
        let key =
            cookies(headers).map(|value| Digest::of(value.as_bytes())).find(|key| open.contains_key(key))?;
        let edition = passphrase::edition(&self.paths).ok().flatten();
        let lives = open.get(&key).is_some_and(|session| {
            now.saturating_duration_since(session.used) < IDLE
                && edition.is_some()
                && session.edition == edition
        });
        if !lives {
            open.remove(&key);
        }
        open.get_mut(&key)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, Session>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The values of our cookie.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter_map(|(name, value)| (name == COOKIE_NAME && !value.is_empty()).then_some(value))
}

/// 256 bits that nobody can guess.
fn random() -> Result<String, Problem> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        Problem::new(Code::Config, format!("the system gave no random bytes for a session: {error}"))
    })?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn sessions() -> (tempfile::TempDir, Sessions) {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths { config: dir.path().join("pml.toml"), data: dir.path().to_owned() };
        passphrase::set(&paths, "correct horse").await.unwrap();
        let store = Store::open(paths.database()).await.unwrap();
        (dir, Sessions::new(paths, store, Principal::local()))
    }

    fn begin(sessions: &Sessions) -> Fresh {
        sessions.begin(passphrase::edition(&sessions.paths).unwrap()).unwrap()
    }

    fn headers(fresh: &Fresh, csrf: &str) -> HeaderMap {
        let cookie = format!("theme=dark; {COOKIE_NAME}=tossed; {COOKIE_NAME}={}", fresh.value);
        [(COOKIE, cookie.parse().unwrap()), ("x-pml-csrf".parse().unwrap(), csrf.parse().unwrap())]
            .into_iter()
            .collect()
    }

    #[tokio::test]
    async fn reading_needs_the_cookie_and_changing_the_second_secret_too() {
        let (_dir, sessions) = sessions().await;
        let (fresh, other) = (begin(&sessions), begin(&sessions));
        let known = |method: Method, headers: &HeaderMap| sessions.known(&method, headers);
        assert_eq!(known(Method::GET, &HeaderMap::new()), Ok(None));
        assert_eq!(known(Method::GET, &headers(&fresh, "")), Ok(Some(Principal::local())));
        assert_eq!(known(Method::POST, &headers(&fresh, &fresh.csrf)), Ok(Some(Principal::local())));
        for wrong in ["", "x", other.csrf.as_str(), fresh.value.as_str()] {
            assert_eq!(known(Method::POST, &headers(&fresh, wrong)), Err(Refusal::Forged), "{wrong}");
        }
        sessions.end(&headers(&fresh, ""));
        assert_eq!(known(Method::POST, &headers(&fresh, &fresh.csrf)), Ok(None));
        assert!(sessions.visit(&headers(&other, "")), "another session goes on");
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
        assert!(sessions.visit(&headers(&fresh, "")));
        passphrase::set(&sessions.paths, "correct horse").await.unwrap();
        assert!(!sessions.visit(&headers(&fresh, "")));
    }

    #[tokio::test]
    async fn there_is_an_end_to_sessions_and_the_oldest_goes_first() {
        let (_dir, sessions) = sessions().await;
        let first = begin(&sessions);
        let others: Vec<Fresh> = (0..MOST).map(|_| begin(&sessions)).collect();
        assert_eq!(sessions.lock().len(), MOST);
        assert!(!sessions.visit(&headers(&first, "")));
        assert!(others.iter().all(|fresh| sessions.visit(&headers(fresh, ""))));
    }
}
