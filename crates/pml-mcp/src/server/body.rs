//! Receives request bodies: checks content type, size and speed.
//!
//! Routes behind [`receive_body`] get complete bodies. The time limit of a body grows with the bytes that have
//! arrived. A large body over a slow line is accepted, and a trickle of bytes cannot keep a connection open.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::BytesMut;
use futures_util::StreamExt as _;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};
use pml_model::ErrorCode;
use tokio::time::Instant;

/// Time limit of any body, however small.
const GRACE: Duration = Duration::from_secs(10);
/// One more second is granted per this many bytes received: about the slowest line in use.
const BYTES_PER_SECOND: usize = 32 * 1024;

/// The bodies that a listener accepts.
#[derive(Debug, Clone, Copy)]
pub struct BodyRules {
    /// The paths that accept forms; all others accept JSON.
    pub forms: &'static [&'static str],
    /// Maximum size of a form, in bytes.
    pub form_bytes: usize,
    /// Maximum size of a JSON document, in bytes.
    pub json_bytes: usize,
}

/// Why a body was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyRefusal {
    /// The route accepts only JSON.
    #[error("the body must be `application/json`")]
    NotJson,
    /// The route accepts only forms.
    #[error("the body must be a form: `application/x-www-form-urlencoded`")]
    NotAForm,
    /// The body exceeds this limit, in bytes.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// The body arrived too slowly.
    #[error("the body did not arrive in time")]
    TooSlow,
    /// The connection broke, or the framing is invalid.
    #[error("the body is incomplete")]
    Broken,
}

impl BodyRefusal {
    /// The HTTP status of the refusal.
    pub fn status(self) -> StatusCode {
        match self {
            BodyRefusal::NotJson | BodyRefusal::NotAForm => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            BodyRefusal::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            BodyRefusal::TooSlow => StatusCode::REQUEST_TIMEOUT,
            BodyRefusal::Broken => StatusCode::BAD_REQUEST,
        }
    }

    fn code(self) -> ErrorCode {
        match self {
            BodyRefusal::TooLarge(_) => ErrorCode::TooLarge,
            BodyRefusal::TooSlow => ErrorCode::Timeout,
            BodyRefusal::NotJson | BodyRefusal::NotAForm | BodyRefusal::Broken => ErrorCode::InvalidRequest,
        }
    }
}

impl IntoResponse for BodyRefusal {
    fn into_response(self) -> Response {
        let error = serde_json::json!({ "code": self.code(), "message": self.to_string() });
        let body = serde_json::json!({ "schemaVersion": 1, "error": error }).to_string();
        // The connection is closed, so that the rest of the body is not read as the next request.
        let headers = [(CONTENT_TYPE, "application/json"), (CONNECTION, "close")];
        (self.status(), headers, body).into_response()
    }
}

/// Passes a request on once its body is complete, or refuses it. This layer stands behind the access check, so that
/// only admitted clients can send bodies.
pub async fn receive_body(State(rules): State<Arc<BodyRules>>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let is_form = rules.forms.contains(&head.uri.path());
    if let Err(refused) = check_type(&head.headers, is_form) {
        return refused.into_response();
    }
    let limit = if is_form { rules.form_bytes } else { rules.json_bytes };
    match collect_body(&head.headers, body, limit).await {
        Ok(body) => next.run(Request::from_parts(head, Body::from(body))).await,
        Err(refused) => refused.into_response(),
    }
}

/// Checks the content type. A request without a body needs none; a request that declares one has to declare the right
/// one.
fn check_type(headers: &HeaderMap, is_form: bool) -> Result<(), BodyRefusal> {
    let empty = headers.get(CONTENT_LENGTH).is_none_or(|length| length == "0")
        && !headers.contains_key(TRANSFER_ENCODING);
    if empty && !headers.contains_key(CONTENT_TYPE) {
        return Ok(());
    }
    let (wanted, refused) = if is_form {
        ("application/x-www-form-urlencoded", BodyRefusal::NotAForm)
    } else {
        ("application/json", BodyRefusal::NotJson)
    };
    if has_content_type(headers, wanted) { Ok(()) } else { Err(refused) }
}

/// Whether the request has exactly one content type and it is `wanted`, ignoring parameters.
pub(super) fn has_content_type(headers: &HeaderMap, wanted: &str) -> bool {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    let kind = value.to_str().ok().and_then(|value| value.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(wanted))
}

/// Collects the whole body.
///
/// # Errors
/// The body is larger than `limit`, arrives too slowly, or is cut off.
pub(super) async fn collect_body(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<Bytes, BodyRefusal> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    if announced.and_then(|length| length.parse().ok()).is_some_and(|length: usize| length > limit) {
        return Err(BodyRefusal::TooLarge(limit));
    }
    let started = Instant::now();
    let mut parts = body.into_data_stream();
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    loop {
        let length = first.len() + all.len();
        let deadline = started + GRACE + Duration::from_secs((length / BYTES_PER_SECOND) as u64);
        let part = tokio::time::timeout_at(deadline, parts.next()).await.map_err(|_| BodyRefusal::TooSlow)?;
        let Some(part) = part else { break };
        let part = part.map_err(|_| BodyRefusal::Broken)?;
        if length + part.len() > limit {
            return Err(BodyRefusal::TooLarge(limit));
        }
        if length == 0 {
            // Most bodies arrive in one chunk, which need not be copied.
            first = part;
        } else {
            all.extend_from_slice(&std::mem::take(&mut first));
            all.extend_from_slice(&part);
        }
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use std::convert::Infallible;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_drips_is_given_up_and_one_that_flows_is_not() {
        let every = |pause: Duration, bytes: usize, count: usize| {
            Body::from_stream(stream::iter(0..count).then(move |_| async move {
                tokio::time::sleep(pause).await;
                Ok::<_, Infallible>(vec![b'x'; bytes])
            }))
        };
        let take = async |body| collect_body(&HeaderMap::new(), body, 1 << 20).await.map(|body| body.len());
        let second = Duration::from_secs(1);
        assert_eq!(take(every(second, 1, 60)).await, Err(BodyRefusal::TooSlow));
        assert_eq!(take(every(second, BYTES_PER_SECOND / 2, 31)).await, Err(BodyRefusal::TooSlow));
        assert_eq!(take(every(second, 2 * BYTES_PER_SECOND, 16)).await, Ok(1 << 20));
        assert_eq!(take(every(second, 2 * BYTES_PER_SECOND, 17)).await, Err(BodyRefusal::TooLarge(1 << 20)));
        assert_eq!(take(Body::empty()).await, Ok(0));
    }

    #[test]
    fn a_body_needs_its_content_type_and_no_body_needs_none() {
        let check = |pairs: &[(&str, &str)], is_form| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers
                    .append(http::HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
            }
            check_type(&headers, is_form).is_ok()
        };
        let (some, json) = (("content-length", "2"), "application/json");
        let form = "application/x-www-form-urlencoded";
        for good in [json, "application/json; charset=utf-8", "Application/JSON ;x=y"] {
            assert!(check(&[some, ("content-type", good)], false), "{good}");
        }
        for bad in ["text/plain", "application/jsonp", "text/plain, application/json", "", form] {
            assert!(!check(&[some, ("content-type", bad)], false), "{bad}");
            assert!(!check(&[("content-type", bad)], false), "{bad} and no body");
        }
        assert!(!check(&[some, ("content-type", "text/plain"), ("content-type", json)], false));
        assert!(!check(&[some], false) && !check(&[("transfer-encoding", "chunked")], false));
        assert!(check(&[], false) && check(&[("content-length", "0")], false));
        assert!(
            check(&[some, ("content-type", form)], true) && !check(&[some, ("content-type", json)], true)
        );
    }
}
