//! The dashboard pages of `pml serve`, and signing in to them.
//!
//! Pages and scripts are compiled into the binary and are the same for every visitor; they fetch what they show from
//! the API. [`DashboardSessions`] knows who is signed in; which routes a session opens is decided in front of all of
//! them.

mod assets;
mod session;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, ORIGIN, SET_COOKIE};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use pml_mcp::server::access::{AccessRefusal, RequestEffect};
use pml_mcp::server::body::BodyRefusal;
use serde::Deserialize;
use serde_json::json;

use crate::passphrase::{self, SignInDoor};
use crate::people;
use crate::problem::{ErrorCode, Problem};

pub use session::DashboardSessions;

/// Paths that need no authentication: their content is the same for every visitor.
pub const OPEN: [&str; 4] = [LOGIN, "/logout", "/assets/", OPEN_LINK];

/// The path, before the ticket, of the link that makes a browser a viewer.
const OPEN_LINK: &str = "/open/";

/// The paths of the pages, open as well; one that ends with `/` has a name below it. `page/router.js` knows the same.
pub const PAGES: [&str; 12] = [
    "/",
    "/runs",
    "/runs/",
    "/capabilities",
    "/capabilities/",
    "/graph",
    "/inbox",
    "/rules",
    "/discover",
    "/test",
    "/servers",
    "/savings",
];

/// The path of the sign-in form.
pub const LOGIN: &str = "/login";

/// The largest form body, in bytes: a passphrase, even if every character is escaped.
pub const MAX_FORM_BYTES: usize = 8 * 1024;

/// The routes of the pages, of signing in and of signing out.
pub fn router(sessions: Arc<DashboardSessions>) -> Router {
    let mut router = Router::new();
    for path in PAGES {
        let path =
            if path.ends_with('/') && path != "/" { format!("{path}{{name}}") } else { path.to_owned() };
        router = router.route(&path, get(page));
    }
    router
        .route("/login", get(login_page).post(login))
        .route("/logout", post(logout))
        .route("/open/{ticket}", get(open))
        .route("/assets/{*name}", get(assets::asset))
        .with_state(sessions)
}

/// Adds the security headers to every response of the program, refusals included: run only our own scripts, show us
/// in no frame, store no copy.
pub async fn add_security_headers(request: Request, next: Next) -> Response {
    const RULES: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                         form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        ("content-security-policy", RULES),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Answers every page with the same HTML: its script reads the address.
async fn page(State(sessions): State<Arc<DashboardSessions>>, uri: Uri, headers: HeaderMap) -> Response {
    if sessions.record_visit(&headers) || sessions.is_viewer(&headers) {
        return assets::page("index.html");
    }
    let wanted = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let to: String = url::form_urlencoded::byte_serialize(wanted.as_bytes()).collect();
    let login = if wanted == "/" { LOGIN.to_owned() } else { format!("{LOGIN}?to={to}") };
    (StatusCode::SEE_OTHER, [(LOCATION, login)]).into_response()
}

async fn login_page(State(sessions): State<Arc<DashboardSessions>>) -> Response {
    match sessions.can_sign_in() {
        Ok(true) => assets::page("login.html"),
        Ok(false) => assets::page("unset.html"),
        Err(problem) => page_problem_response(&problem),
    }
}

async fn login(State(sessions): State<Arc<DashboardSessions>>, headers: HeaderMap, body: Body) -> Response {
    if !is_form(&headers) {
        return BodyRefusal::NotAForm.into_response();
    }
    let Ok(body) = to_bytes(body, MAX_FORM_BYTES).await else {
        return BodyRefusal::TooLarge(MAX_FORM_BYTES).into_response();
    };
    let field = |wanted: &str| {
        let found = url::form_urlencoded::parse(&body).find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.into_owned()).unwrap_or_default()
    };
    match sign_in(&sessions, field("name").trim(), &field("passphrase")).await {
        Ok(session) => {
            let body = json!({ "csrf": session.csrf_token }).to_string();
            let headers = [
                (SET_COOKIE, session.set_cookie_header(over_https(&headers))),
                (CONTENT_TYPE, "application/json".to_owned()),
            ];
            (headers, body).into_response()
        }
        Err(problem) => page_problem_response(&problem),
    }
}

/// The page that the link leads to.
#[derive(Deserialize)]
struct OpenQuery {
    to: Option<String>,
}

/// Makes the browser a viewer, and sends it to a page.
async fn open(
    State(sessions): State<Arc<DashboardSessions>>,
    ticket: Result<Path<String>, PathRejection>,
    target: Result<Query<OpenQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Response {
    let ticket = ticket.map(|Path(ticket)| ticket).unwrap_or_default();
    let Some(cookie) = sessions.viewer_cookie_header(&ticket, over_https(&headers)) else {
        let text = "this link is not valid any more; `pml serve` prints one whenever it starts\n";
        return (StatusCode::NOT_FOUND, [(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response();
    };
    let to = target.ok().and_then(|Query(target)| target.to);
    let to = to.filter(|to| is_own_page(to)).and_then(|to| HeaderValue::try_from(to).ok());
    let to = to.unwrap_or(HeaderValue::from_static("/"));
    let mut response = (StatusCode::SEE_OTHER, [(SET_COOKIE, cookie)]).into_response();
    response.headers_mut().insert(LOCATION, to);
    response
}

/// Whether a redirection stays with this server: browsers read `//host` and `/\host` as another one.
fn is_own_page(to: &str) -> bool {
    let plain = to.chars().all(|character| character.is_ascii_graphic() && character != '\\');
    plain && to.starts_with('/') && !to.starts_with("//")
}

/// A page loaded over https sends an https origin, even where a proxy in front of us speaks http to us.
fn over_https(headers: &HeaderMap) -> bool {
    headers.get(ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"))
}

/// Starts a session of the person with this name; without a name, of the operator.
async fn sign_in(
    sessions: &DashboardSessions,
    name: &str,
    given: &str,
) -> Result<session::NewDashboardSession, Problem> {
    if !name.is_empty() && name != sessions.operator().0 {
        if let Some(person) = people::verify(sessions.store(), name, given).await? {
            return sessions
                .start_session(person.principal.clone(), Some(people::fingerprint(&person)))
                .await;
        }
        tracing::warn!("somebody tried to sign in with a wrong name or passphrase");
        return Err(Problem::new(
            ErrorCode::Unauthorized,
            "that is not the name and the passphrase of anybody",
        ));
    }
    // The fingerprint is read before the check: if the passphrase changes in between, the new session is invalid at
    // once.
    let edition = passphrase::passphrase_fingerprint(sessions.paths(), sessions.store())?;
    if passphrase::verify(sessions.paths(), sessions.store(), SignInDoor::Web, given).await? {
        return sessions.start_session(sessions.operator().clone(), edition).await;
    }
    tracing::warn!("somebody tried to sign in with a wrong passphrase");
    Err(Problem::new(ErrorCode::Unauthorized, "that is not the passphrase"))
}

async fn logout(State(sessions): State<Arc<DashboardSessions>>, headers: HeaderMap) -> Response {
    match sessions.authenticate(RequestEffect::Changes, &headers) {
        Ok(_) => {
            if let Err(problem) = sessions.end_session(&headers).await {
                return page_problem_response(&problem);
            }
            (StatusCode::NO_CONTENT, [(SET_COOKIE, session::GONE)]).into_response()
        }
        Err(refusal) => AccessRefusal::into_response(refusal),
    }
}

fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim() == "application/x-www-form-urlencoded")
}

fn page_problem_response(problem: &Problem) -> Response {
    let body = json!({ "schemaVersion": 1, "error": problem }).to_string();
    (problem.http_status(), [(CONTENT_TYPE, "application/json")], body).into_response()
}
