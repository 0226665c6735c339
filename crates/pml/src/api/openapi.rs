//! `GET /api/openapi.json`: the OpenAPI document of all routes.
//!
//! The modules that answer describe their own routes, with the types that they serialise. What is true of every route,
//! its errors above all, is added here.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{
    ContentBuilder, HttpMethod, OpenApi as Document, PathItem, Ref, RefOr, ResponseBuilder,
};
use utoipa::{OpenApi, ToSchema};

use super::reply::{ErrorBody, ErrorReply, json_response};
use super::{
    analyse, approvals, audit, cache, calls, capabilities, discover, events, execute, explore, graph,
    metrics, mocks, policy, quarantine, ready, rules, runs, savings, servers, session, traces, versions,
    views,
};
use crate::app::App;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "PML",
        description = "The HTTP API of `pml serve`. Times are milliseconds since the Unix epoch, durations are milliseconds.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    paths(
        document,
        other::mcp_post,
        other::mcp_get,
        other::mcp_delete,
        other::health,
        other::home,
        other::login_page,
        other::login,
        other::logout,
        other::open,
        other::asset
    ),
    components(schemas(ErrorReply, ErrorBody, HealthReply, SignedInReply))
)]
struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/openapi.json", get(document))
}

/// The document; it is the same for every request.
static DOCUMENT: LazyLock<Document> = LazyLock::new(build);

/// The document, for tests that compare other tables with it.
#[cfg(test)]
pub(super) fn document_of_all_routes() -> &'static Document {
    &DOCUMENT
}

/// Describes all routes.
#[utoipa::path(get, path = "/api/openapi.json", tag = "access", responses((status = 200, body = Object)))]
async fn document(State(_): State<Arc<App>>) -> Response {
    json_response(axum::http::StatusCode::OK, &*DOCUMENT)
}

/// Whether PML serves.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it documents a constant reply")]
struct HealthReply {
    /// `ok`.
    status: String,
}

/// Routes that are not part of the API but of the same server.
#[expect(dead_code, reason = "these functions carry descriptions of routes that other modules serve")]
mod other {
    /// Takes MCP requests (streamable HTTP, JSON-RPC).
    #[utoipa::path(post, path = "/mcp", tag = "mcp", request_body = Object, responses(
        (status = 200, description = "The reply, or a stream of messages", content((Object = "application/json"), (String = "text/event-stream"))),
        (status = 202, description = "A notification or an answer was taken"),
        (status = 400, description = "A JSON-RPC error: the message or its headers are wrong", body = Object),
        (status = 404, description = "A JSON-RPC error: there is no such method, or the session has ended", body = Object),
        (status = 406, description = "`Accept` leaves out `application/json` or `text/event-stream`", body = String, content_type = "text/plain"),
    ))]
    fn mcp_post() {}

    /// Streams the messages of the server to an MCP session.
    #[utoipa::path(get, path = "/mcp", tag = "mcp", responses(
        (status = 200, description = "A stream of messages", body = String, content_type = "text/event-stream"),
        (status = 400, description = "A JSON-RPC error: nothing can be resumed there", body = Object),
        (status = 404, description = "A JSON-RPC error: the session has ended", body = Object),
        (status = 405, description = "No session is named: the stateless protocol has no such stream"),
    ))]
    fn mcp_get() {}

    /// Ends an MCP session.
    #[utoipa::path(delete, path = "/mcp", tag = "mcp", responses(
        (status = 204, description = "It has ended"),
        (status = 400, description = "A JSON-RPC error: the headers are wrong", body = Object),
        (status = 404, description = "A JSON-RPC error: the session has ended", body = Object),
        (status = 405, description = "No session is named: the stateless protocol has none"),
    ))]
    fn mcp_delete() {}

    /// Tells whether PML serves; needs no credential.
    #[utoipa::path(get, path = "/health", tag = "access", responses((status = 200, body = super::HealthReply)))]
    fn health() {}

    /// The pages, for a browser that came by the link or has signed in.
    #[utoipa::path(get, path = "/", tag = "pages", responses(
        (status = 200, description = "The page", body = String, content_type = "text/html"),
        (status = 303, description = "Sign in first"),
    ))]
    fn home() {}

    /// The page to sign in.
    #[utoipa::path(get, path = "/login", tag = "pages", responses(
        (status = 200, description = "The page", body = String, content_type = "text/html"),
        (status = 500, description = "An internal error", body = super::ErrorReply),
    ))]
    fn login_page() {}

    /// Signs in with the passphrase; answers with the value of the header `x-pml-csrf`.
    #[utoipa::path(post, path = "/login", tag = "access", request_body(content = String, content_type = "application/x-www-form-urlencoded", description = "`passphrase`, and `name` unless it is that of the operator"), responses(
        (status = 200, body = super::SignedInReply),
        (status = 401, description = "A wrong name or passphrase", body = super::ErrorReply),
        (status = 429, description = "Too many wrong passphrases", body = super::ErrorReply),
        (status = 500, description = "An internal error", body = super::ErrorReply),
        (status = 507, description = "The disk is full", body = super::ErrorReply),
    ))]
    fn login() {}

    /// Signs out.
    #[utoipa::path(post, path = "/logout", tag = "access", responses(
        (status = 204, description = "Signed out"),
        (status = 500, description = "An internal error", body = super::ErrorReply),
        (status = 507, description = "The disk is full", body = super::ErrorReply),
    ))]
    fn logout() {}

    /// Opens the pages for reading, by the link that `pml serve` prints.
    #[utoipa::path(get, path = "/open/{ticket}", tag = "access", params(("ticket" = String, Path, description = "The ticket of the link"), ("to" = Option<String>, Query, description = "The page to go to")), responses(
        (status = 303, description = "To the page, with a cookie"),
        (status = 404, description = "The link is not valid any more", body = String, content_type = "text/plain"),
    ))]
    fn open() {}

    /// Scripts and styles of the pages.
    #[utoipa::path(get, path = "/assets/{name}", tag = "pages", params(("name" = String, Path, description = "The name of the file")), responses(
        (status = 200, description = "The file", content((String = "text/javascript"), (String = "text/css"), (String = "image/svg+xml"), (String = "text/plain"))),
        (status = 304, description = "The same as the `ETag` in `If-None-Match`"),
        (status = 404, description = "There is no such file"),
    ))]
    fn asset() {}
}

/// Signed in.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it documents the reply of the dashboard")]
struct SignedInReply {
    /// The value of the header `x-pml-csrf` of requests that change something.
    csrf: String,
}

fn build() -> Document {
    let mut document = Docs::openapi();
    document.info.version = env!("PML_VERSION").to_owned();
    for part in [
        analyse::Docs::openapi(),
        approvals::Docs::openapi(),
        audit::Docs::openapi(),
        cache::Docs::openapi(),
        calls::Docs::openapi(),
        capabilities::Docs::openapi(),
        discover::Docs::openapi(),
        events::Docs::openapi(),
        execute::Docs::openapi(),
        explore::Docs::openapi(),
        graph::Docs::openapi(),
        metrics::Docs::openapi(),
        ready::Docs::openapi(),
        mocks::Docs::openapi(),
        policy::Docs::openapi(),
        quarantine::Docs::openapi(),
        rules::Docs::openapi(),
        runs::Docs::openapi(),
        savings::Docs::openapi(),
        servers::Docs::openapi(),
        session::Docs::openapi(),
        traces::Docs::openapi(),
        versions::Docs::openapi(),
        views::Docs::openapi(),
    ] {
        document.merge(part);
    }
    add_security(&mut document);
    for (path, item) in &mut document.paths.paths {
        add_errors(path, item);
    }
    document
}

fn add_security(document: &mut Document) {
    let components = document.components.get_or_insert_default();
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("The token that `pml serve` prints, or a client key"));
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer.build()));
    let cookie = ApiKeyValue::with_description("pml_session", "The session of the dashboard");
    components.add_security_scheme("session", SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
    let cookie =
        ApiKeyValue::with_description("pml_view", "The link that `pml serve` prints: for reading only");
    components.add_security_scheme("viewer", SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
    document.security = Some(vec![
        SecurityRequirement::new::<_, [String; 0], String>("bearer", []),
        SecurityRequirement::new::<_, [String; 0], String>("session", []),
        SecurityRequirement::new::<_, [String; 0], String>("viewer", []),
    ]);
}

/// Which requests can be answered with an error.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ErrorCause {
    /// Every request: the listener refuses it before a route sees it.
    Listener,
    /// Every request that needs a credential.
    Credential,
    /// Every request to the API.
    Any,
    /// One with a query, or one that changes something: both may be wrong.
    Input,
    /// One that names something, in its path, query or body.
    Name,
    /// One about a run, a question or a tool in quarantine, whose time may be over.
    Ended,
    /// One that sends something.
    Sending,
}

/// The errors that have the shape of [`ErrorReply`].
const ERRORS: [(&str, ErrorCause, &str); 13] = [
    ("400", ErrorCause::Input, "The request is wrong"),
    (
        "401",
        ErrorCause::Credential,
        "No credential, or a wrong one; with the code `SIGN_IN_REQUIRED`, signing in helps",
    ),
    ("403", ErrorCause::Listener, "This principal may not do that, or the request comes from another site"),
    ("404", ErrorCause::Name, "There is no such thing, or it belongs to somebody else"),
    ("408", ErrorCause::Listener, "The body did not arrive in time"),
    ("409", ErrorCause::Sending, "Somebody was faster: it is answered already, or changed meanwhile"),
    ("410", ErrorCause::Ended, "It is over, or its records are no longer kept"),
    ("413", ErrorCause::Listener, "The body is too large"),
    (
        "415",
        ErrorCause::Listener,
        "The body must be `application/json`; that of `/login`, `application/x-www-form-urlencoded`",
    ),
    ("429", ErrorCause::Sending, "Too many questions are open, or a limit was exceeded"),
    ("500", ErrorCause::Any, "An internal error"),
    ("503", ErrorCause::Listener, "Busy; try again"),
    ("507", ErrorCause::Sending, "The disk is full"),
];

/// The paths of things that end.
const ENDING: [&str; 3] = ["/api/runs/{", "/api/approvals/{", "/api/quarantine/{"];

/// The paths that need no credential.
const OPEN: [&str; 7] = ["/", "/health", "/ready", "/login", "/logout", "/open/{ticket}", "/assets/{name}"];

/// Whether a route answers as those of the API do. The others describe their own errors.
fn is_api(path: &str) -> bool {
    path.starts_with("/api/") || ["/events", "/metrics"].contains(&path)
}

impl ErrorCause {
    fn applies_to(self, path: &str, method: &HttpMethod, operation: &Operation) -> bool {
        let sends = *method != HttpMethod::Get;
        let is_query = |parameter: &Parameter| parameter.parameter_in == ParameterIn::Query;
        let has_query = operation.parameters.iter().flatten().any(is_query);
        match self {
            ErrorCause::Listener => true,
            ErrorCause::Credential => !OPEN.contains(&path),
            _ if !is_api(path) => false,
            ErrorCause::Any => true,
            ErrorCause::Input => sends || has_query,
            ErrorCause::Name => path.contains('{') || has_query || operation.request_body.is_some(),
            ErrorCause::Ended => sends || ENDING.iter().any(|ending| path.starts_with(ending)),
            ErrorCause::Sending => sends,
        }
    }
}

/// Describes the errors that a route can answer with. A method that a route of the API does not have is answered with 405
/// and is no operation of it.
fn add_errors(path: &str, item: &mut PathItem) {
    let add = |method: HttpMethod, operation: &mut Option<Operation>| {
        let Some(operation) = operation else { return };
        if OPEN.contains(&path) {
            operation.security = Some(Vec::new());
        }
        for (status, cause, description) in ERRORS {
            if !cause.applies_to(path, &method, operation) {
                continue;
            }
            let schema = RefOr::Ref(Ref::from_schema_name("ErrorReply"));
            let content = ContentBuilder::new().schema(Some(schema)).build();
            let response =
                ResponseBuilder::new().description(description).content("application/json", content).build();
            let known = &mut operation.responses.responses;
            known.entry(status.to_owned()).or_insert(RefOr::T(response));
        }
    };
    add(HttpMethod::Get, &mut item.get);
    add(HttpMethod::Post, &mut item.post);
    add(HttpMethod::Delete, &mut item.delete);
    add(HttpMethod::Put, &mut item.put);
    add(HttpMethod::Patch, &mut item.patch);
}
