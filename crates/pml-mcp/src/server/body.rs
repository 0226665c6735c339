//! Takes in the bodies of requests: of the right content type, not too large, and in time.
//!
//! Routes behind [`receive`] get bodies that are complete. How long a body may take depends on how much of it has
//! arrived: a slow line is no reason to refuse a large body, and a few bytes now and then keep no connection open.

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
use tokio::time::Instant;

/// How long a body may take however small it is.
const GRACE: Duration = Duration::from_secs(10);
/// Each so many bytes that have arrived buy one second more: about the slowest line anybody has to use.
const BYTES_PER_SECOND: usize = 32 * 1024;

/// What bodies a listener takes.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The paths that take forms; all others take JSON.
    pub forms: &'static [&'static str],
    /// The largest form.
    pub form_bytes: usize,
    /// The largest JSON document.
    pub json_bytes: usize,
}

/// Why a body was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Not what the route takes.
    #[error("the body must be `application/json`")]
    NotJson,
    /// Not what the route takes.
    #[error("the body must be a form: `application/x-www-form-urlencoded`")]
    NotAForm,
    /// More than the route takes.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// The rest did not arrive in time.
    #[error("the body did not arrive in time")]
    TooSlow,
    /// The connection broke, or the framing is wrong.
    #[error("the body is incomplete")]
    Broken,
}

impl Refused {
    /// The HTTP status that says so.
    pub fn status(self) -> StatusCode {
        match self {
            Refused::NotJson | Refused::NotAForm => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Refused::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Refused::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Refused::Broken => StatusCode::BAD_REQUEST,
        }
    }

    fn code(self) -> &'static str {
        match self {
            Refused::TooLarge(_) => "TOO_LARGE",
            Refused::TooSlow => "TIMEOUT",
            Refused::NotJson | Refused::NotAForm | Refused::Broken => "INVALID_REQUEST",
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let error = serde_json::json!({ "code": self.code(), "message": self.to_string() });
        let body = serde_json::json!({ "error": error }).to_string();
        // What is left of the body must not be read as the next request.
        let headers = [(CONTENT_TYPE, "application/json"), (CONNECTION, "close")];
        (self.status(), headers, body).into_response()
    }
}

/// Hands requests on when their body is there whole, or refuses them. Stands behind the access check, so that bodies
/// are taken from those who are let in alone.
pub async fn receive(State(rules): State<Arc<Rules>>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let is_form = rules.forms.contains(&head.uri.path());
    if let Err(refused) = check_type(&head.headers, is_form) {
        return refused.into_response();
    }
    let limit = if is_form { rules.form_bytes } else { rules.json_bytes };
    match collect(&head.headers, body, limit).await {
        Ok(body) => next.run(Request::from_parts(head, Body::from(body))).await,
        Err(refused) => refused.into_response(),
    }
}

/// A request without a body needs no content type; one that names a type has to name the right one.
fn check_type(headers: &HeaderMap, is_form: bool) -> Result<(), Refused> {
    let empty = headers.get(CONTENT_LENGTH).is_none_or(|length| length == "0")
        && !headers.contains_key(TRANSFER_ENCODING);
    if empty && !headers.contains_key(CONTENT_TYPE) {
        return Ok(());
    }
    let (wanted, refused) = if is_form {
        ("application/x-www-form-urlencoded", Refused::NotAForm)
    } else {
        ("application/json", Refused::NotJson)
    };
    if is_type(headers, wanted) { Ok(()) } else { Err(refused) }
}

/// Whether the one content type a request names is `wanted`, whatever parameters it has.
pub(super) fn is_type(headers: &HeaderMap, wanted: &str) -> bool {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    let kind = value.to_str().ok().and_then(|value| value.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(wanted))
}

/// The whole body.
///
/// # Errors
/// It is larger than `limit`, comes too slowly, or does not end properly.
pub(super) async fn collect(headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes, Refused> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    if announced.and_then(|length| length.parse().ok()).is_some_and(|length: usize| length > limit) {
        return Err(Refused::TooLarge(limit));
    }
    let started = Instant::now();
    let mut parts = body.into_data_stream();
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    loop {
        let length = first.len() + all.len();
        let deadline = started + GRACE + Duration::from_secs((length / BYTES_PER_SECOND) as u64);
        let part = tokio::time::timeout_at(deadline, parts.next()).await.map_err(|_| Refused::TooSlow)?;
        let Some(part) = part else { break };
        let part = part.map_err(|_| Refused::Broken)?;
        if length + part.len() > limit {
            return Err(Refused::TooLarge(limit));
        }
        if length == 0 {
            // Most bodies come in one piece, which need not be copied.
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
        let take = async |body| collect(&HeaderMap::new(), body, 1 << 20).await.map(|body| body.len());
        let second = Duration::from_secs(1);
        assert_eq!(take(every(second, 1, 60)).await, Err(Refused::TooSlow));
        assert_eq!(take(every(second, BYTES_PER_SECOND / 2, 31)).await, Err(Refused::TooSlow));
        assert_eq!(take(every(second, 2 * BYTES_PER_SECOND, 16)).await, Ok(1 << 20));
        assert_eq!(take(every(second, 2 * BYTES_PER_SECOND, 17)).await, Err(Refused::TooLarge(1 << 20)));
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
