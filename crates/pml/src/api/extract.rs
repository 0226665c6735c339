//! Reads the parts of requests. What cannot be read is answered with an error of the one shape.

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::problem::{ErrorCode, Problem};

/// The largest body of a request, in bytes: more than the longest program or document, even if every character is
/// escaped.
pub(super) const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;

/// The parameters of the query.
pub(super) struct ApiQuery<T>(pub(super) T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for ApiQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<ApiQuery<T>, Problem> {
        Query::try_from_uri(&parts.uri).map(|Query(query)| ApiQuery(query)).map_err(|error| {
            let message = format!("the query cannot be read: {}", error.body_text());
            Problem::new(ErrorCode::InvalidRequest, pml_model::name::printable(&message))
        })
    }
}

/// The parameters of the path.
pub(super) struct ApiPath<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for ApiPath<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<ApiPath<T>, Problem> {
        let path: Result<Path<T>, PathRejection> = Path::from_request_parts(parts, state).await;
        // Nothing has a name that is no text.
        path.map(|Path(path)| ApiPath(path))
            .map_err(|_| Problem::new(ErrorCode::NotFound, "there is nothing with that name"))
    }
}

/// A JSON body of at most [`MAX_BODY_BYTES`].
pub(super) struct ApiJson<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for ApiJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<ApiJson<T>, Problem> {
        read_json(request.into_body()).await.map(ApiJson)
    }
}

/// A JSON body that may be left out.
pub(super) struct OptionalJson<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for OptionalJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<OptionalJson<T>, Problem> {
        let body = read_bytes(request.into_body()).await?;
        if body.is_empty() { Ok(OptionalJson(T::default())) } else { parse_json(&body).map(OptionalJson) }
    }
}

async fn read_json<T: DeserializeOwned>(body: Body) -> Result<T, Problem> {
    parse_json(&read_bytes(body).await?)
}

async fn read_bytes(body: Body) -> Result<Bytes, Problem> {
    let too_large =
        |_| Problem::new(ErrorCode::TooLarge, format!("the body is larger than {MAX_BODY_BYTES} bytes"));
    to_bytes(body, MAX_BODY_BYTES).await.map_err(too_large)
}

fn parse_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body)
        .map_err(|error| Problem::new(ErrorCode::InvalidRequest, format!("the body cannot be read: {error}")))
}

pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// The size of a page: `given` within 1 and `most`.
///
/// # Errors
/// It is out of range.
pub(super) fn page_size(given: Option<u32>, default: u32, most: u32) -> Result<u32, Problem> {
    match given {
        None => Ok(default),
        Some(size) if (1..=most).contains(&size) => Ok(size),
        Some(size) => {
            let text = format!("`limit` is {size} and must be between 1 and {most}");
            Err(Problem::new(ErrorCode::InvalidRequest, text))
        }
    }
}

/// The error for a `cursor` that no page gave.
pub(super) fn bad_cursor() -> Problem {
    Problem::new(ErrorCode::InvalidRequest, "`cursor` is not one that a page of this list gave")
        .hint("send the `nextCursor` of the last page, or none")
}
