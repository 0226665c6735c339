//! The dashboard pages of `pml serve`, and signing in to them.
//!
//! Pages and scripts are compiled into the binary and are the same for every visitor; they fetch what they show from
//! the API. [`DashboardSessions`] knows who is signed in; which routes a session opens is decided in front of all of
//! them.

mod session;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, ORIGIN, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use pml_mcp::server::access::AccessRefusal;
use serde_json::json;

use crate::passphrase::{self, SignInDoor};
use crate::problem::{ErrorCode, Problem};

pub use session::DashboardSessions;

/// Paths that need no authentication: their content is the same for every visitor.
pub const OPEN: [&str; 4] = ["/", LOGIN, "/logout", "/assets/"];

/// The path of the sign-in form.
pub const LOGIN: &str = "/login";

/// The largest form body, in bytes: a passphrase, even if every character is escaped.
pub const MAX_FORM_BYTES: usize = 8 * 1024;

/// The routes of the pages, of signing in and of signing out.
pub fn router(sessions: Arc<DashboardSessions>) -> Router {
    Router::new()
        .route("/", get(inbox))
        .route(LOGIN, get(login_page).post(login))
        .route("/logout", post(logout))
        .route("/assets/{name}", get(asset))
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

async fn inbox(State(sessions): State<Arc<DashboardSessions>>, headers: HeaderMap) -> Response {
    if sessions.record_visit(&headers) {
        page(include_str!("page/index.html"))
    } else {
        (StatusCode::SEE_OTHER, [(LOCATION, "/login")]).into_response()
    }
}

async fn login_page(State(sessions): State<Arc<DashboardSessions>>) -> Response {
    match passphrase::is_set(sessions.paths()) {
        Ok(true) => page(include_str!("page/login.html")),
        Ok(false) => page(include_str!("page/unset.html")),
        Err(problem) => page_problem_response(&problem),
    }
}

async fn login(State(sessions): State<Arc<DashboardSessions>>, headers: HeaderMap, body: Body) -> Response {
    if !is_form(&headers) {
        let text = "the body must be a form: `application/x-www-form-urlencoded`";
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, text).into_response();
    }
    let Ok(body) = to_bytes(body, MAX_FORM_BYTES).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let given = url::form_urlencoded::parse(&body).find(|(name, _)| name == "passphrase");
    let given = given.map(|(_, value)| value.into_owned()).unwrap_or_default();
    match sign_in(&sessions, &given).await {
        Ok(session) => {
            // A page loaded over https sends an https origin, even where a proxy in front of us speaks http to us.
            let secure = headers.get(ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"));
            let body = json!({ "csrf": session.csrf_token }).to_string();
            let headers = [
                (SET_COOKIE, session.set_cookie_header(secure)),
                (CONTENT_TYPE, "application/json".to_owned()),
            ];
            (headers, body).into_response()
        }
        Err(problem) => page_problem_response(&problem),
    }
}

async fn sign_in(sessions: &DashboardSessions, given: &str) -> Result<session::NewDashboardSession, Problem> {
    // The fingerprint is read before the check: if the passphrase changes in between, the new session is invalid at
    // once.
    let edition = passphrase::passphrase_fingerprint(sessions.paths())?;
    if passphrase::verify(sessions.paths(), sessions.store(), SignInDoor::Web, given).await? {
        return sessions.start_session(edition);
    }
    tracing::warn!("somebody tried to sign in with a wrong passphrase");
    Err(Problem::new(ErrorCode::Unauthorized, "that is not the passphrase"))
}

async fn logout(
    State(sessions): State<Arc<DashboardSessions>>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    match sessions.authenticate(&method, &headers) {
        Ok(_) => {
            sessions.end_session(&headers);
            (StatusCode::NO_CONTENT, [(SET_COOKIE, session::GONE)]).into_response()
        }
        Err(refusal) => AccessRefusal::into_response(refusal),
    }
}

async fn asset(Path(name): Path<String>) -> Response {
    let (kind, body) = match name.as_str() {
        "style.css" => ("text/css; charset=utf-8", include_str!("page/style.css")),
        "inbox.js" => (SCRIPT, include_str!("page/inbox.js")),
        "card.js" => (SCRIPT, include_str!("page/card.js")),
        "text.js" => (SCRIPT, include_str!("page/text.js")),
        "login.js" => (SCRIPT, include_str!("page/login.js")),
        "icon.svg" => ("image/svg+xml", include_str!("page/icon.svg")),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    // Another version of the program serves other content under the same name.
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")], body).into_response()
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

fn page(html: &'static str) -> Response {
    ([(CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
}

fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim() == "application/x-www-form-urlencoded")
}

fn page_problem_response(problem: &Problem) -> Response {
    let body = json!({ "error": problem }).to_string();
    (problem.http_status(), [(CONTENT_TYPE, "application/json")], body).into_response()
}
