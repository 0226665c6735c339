//! Replies of the HTTP API: JSON, errors of one shape, and lists that pages poll.

use axum::http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use pml_model::Digest;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::problem::{ErrorCode, Problem};

/// The version of the shapes of all replies.
pub(super) const SCHEMA_VERSION: u32 = 1;

/// The body of every error.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ErrorReply {
    /// The version of this shape.
    schema_version: u32,
    /// The error.
    error: ErrorBody,
}

/// An error.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ErrorBody {
    /// The stable code for programs, such as `NOT_FOUND`.
    code: String,
    /// The message: one sentence that names the subject.
    message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// For a call: whether it can have had an effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<String>,
    /// After how many seconds the request may succeed; also in the header `Retry-After`.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        problem_response(&self)
    }
}

/// A reply with status 200.
pub(super) struct Reply<T>(pub(super) T);

impl<T: Serialize> IntoResponse for Reply<T> {
    fn into_response(self) -> Response {
        json_response(StatusCode::OK, &self.0)
    }
}

pub(super) fn json_response(status: StatusCode, body: &impl Serialize) -> Response {
    let body = serde_json::to_vec(body).expect("our own shapes have string keys only");
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}

/// A list with an `ETag`. Pages poll it, so a client that has the same list already gets 304 without a body.
pub(super) fn list_response(headers: &HeaderMap, body: &impl Serialize) -> Response {
    let body = serde_json::to_vec(body).expect("our own shapes have string keys only");
    let tag = format!("\"{}\"", Digest::of(&body));
    if is_known(headers, &tag) {
        return not_modified_response(&tag);
    }
    ([(CONTENT_TYPE, "application/json".to_owned()), (ETAG, tag)], body).into_response()
}

/// Whether the client has the list with this `ETag`.
pub(super) fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes())
}

/// The reply to a client that has the list with this `ETag`.
pub(super) fn not_modified_response(tag: &str) -> Response {
    (StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response()
}

pub(super) fn problem_response(problem: &Problem) -> Response {
    let mut response = error_response(problem.http_status(), problem);
    if let Some(seconds) = problem.retry_after_s {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// An error with a status that does not follow from its code.
pub(super) fn error_response(status: StatusCode, error: &impl Serialize) -> Response {
    json_response(status, &json!({ "schemaVersion": SCHEMA_VERSION, "error": error }))
}

pub(super) fn not_json_response() -> Response {
    let problem = Problem::new(ErrorCode::InvalidRequest, "the body must be `application/json`");
    error_response(StatusCode::UNSUPPORTED_MEDIA_TYPE, &problem)
}

/// The reply to a path that no route has.
pub(super) async fn no_route() -> Response {
    let problem = Problem::new(ErrorCode::NotFound, "there is no such route")
        .hint("`GET /api/openapi.json` describes all routes");
    problem_response(&problem)
}

/// The reply to a method that a route does not have. The router adds `Allow`.
pub(super) async fn no_method() -> Response {
    let problem = Problem::new(ErrorCode::InvalidRequest, "this route does not take that method")
        .hint("`GET /api/openapi.json` describes all routes");
    error_response(StatusCode::METHOD_NOT_ALLOWED, &problem)
}
