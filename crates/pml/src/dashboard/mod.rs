//! The pages that `pml serve` shows to people, and how they sign in.
//!
//! Pages and scripts are part of the binary and are the same for everybody: what they show they ask from the API.
//! Who is signed in is known to [`Sessions`]; which routes that opens is decided in front of all of them.

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
use pml_mcp::server::access::Refusal;
use serde_json::json;

use crate::passphrase::{self, Door};
use crate::problem::{Code, Problem};

pub use session::Sessions;

/// Paths that anyone may use: what they give away is the same for everybody.
pub const OPEN: [&str; 4] = ["/", LOGIN, "/logout", "/assets/"];

/// Where people sign in, with a form.
pub const LOGIN: &str = "/login";

/// What a form may have: a passphrase, however its characters are escaped.
pub const MAX_FORM_BYTES: usize = 8 * 1024;

/// The pages, and signing in and out.
pub fn router(sessions: Arc<Sessions>) -> Router {
    Router::new()
        .route("/", get(inbox))
        .route(LOGIN, get(login_page).post(login))
        .route("/logout", post(logout))
        .route("/assets/{name}", get(asset))
        .with_state(sessions)
}

/// What browsers are told with every response of the program, refusals included: run nothing but scripts of ours,
/// show us in no frame, keep no copy.
pub async fn harden(request: Request, next: Next) -> Response {
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

async fn inbox(State(sessions): State<Arc<Sessions>>, headers: HeaderMap) -> Response {
    if sessions.visit(&headers) {
        page(include_str!("page/index.html"))
    } else {
        (StatusCode::SEE_OTHER, [(LOCATION, "/login")]).into_response()
    }
}

async fn login_page(State(sessions): State<Arc<Sessions>>) -> Response {
    match passphrase::is_set(sessions.paths()) {
        Ok(true) => page(include_str!("page/login.html")),
        Ok(false) => page(include_str!("page/unset.html")),
        Err(problem) => refuse(&problem),
    }
}

async fn login(State(sessions): State<Arc<Sessions>>, headers: HeaderMap, body: Body) -> Response {
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
            // A page that was loaded over https names its origin so; a proxy in front of us speaks http to us.
            let secure = headers.get(ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"));
            let body = json!({ "csrf": session.csrf }).to_string();
            let headers =
                [(SET_COOKIE, session.cookie(secure)), (CONTENT_TYPE, "application/json".to_owned())];
            (headers, body).into_response()
        }
        Err(problem) => refuse(&problem),
    }
}

async fn sign_in(sessions: &Sessions, given: &str) -> Result<session::Fresh, Problem> {
    // First: should another one be set meanwhile, the session ends as it begins.
    let edition = passphrase::edition(sessions.paths())?;
    if passphrase::verify(sessions.paths(), sessions.store(), Door::Web, given).await? {
        return sessions.begin(edition);
    }
    tracing::warn!("somebody tried to sign in with a wrong passphrase");
    Err(Problem::new(Code::Unauthorized, "that is not the passphrase"))
}

async fn logout(State(sessions): State<Arc<Sessions>>, method: Method, headers: HeaderMap) -> Response {
    match sessions.known(&method, &headers) {
        Ok(_) => {
            sessions.end(&headers);
            (StatusCode::NO_CONTENT, [(SET_COOKIE, session::GONE)]).into_response()
        }
        Err(refusal) => Refusal::into_response(refusal),
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
    // Another version of the program has others under the same name.
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

fn refuse(problem: &Problem) -> Response {
    let status = match problem.code {
        Code::Unauthorized => StatusCode::UNAUTHORIZED,
        Code::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        Code::Denied => StatusCode::FORBIDDEN,
        Code::StorageBusy => StatusCode::SERVICE_UNAVAILABLE,
        Code::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let body = json!({ "error": problem }).to_string();
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}
