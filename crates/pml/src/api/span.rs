//! The spans of requests to the API, by the semantic conventions of HTTP.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;

use crate::app::App;
use crate::telemetry::{OpenSpan, SpanKind, TraceContext, in_context, trace_context};

/// Answers a request within a span, so that what it causes is in the trace of the program that sent it.
pub(super) async fn in_request_span(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let mut span = begin_request(&app, &request);
    let response = in_context(span.context(), next.run(request)).await;
    let status = response.status();
    span.set("http.response.status_code", || u32::from(status.as_u16()));
    // What a program asked wrongly is no failure of ours.
    if status.is_server_error() {
        span.fail(status.as_str());
    }
    response
}

/// The span is named after the route: paths have names of runs and capabilities in them.
fn begin_request(app: &App, request: &Request) -> OpenSpan {
    let parent = read_headers(request.headers());
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let Some(route) = route.filter(|route| route.starts_with("/api/")) else {
        return OpenSpan::of_parent(parent);
    };
    let method = request.method().as_str();
    let mut span = app.tools.telemetry.begin(&format!("{method} {route}"), SpanKind::Server, parent);
    span.set("http.request.method", || method);
    span.set("http.route", || route);
    span
}

fn read_headers(headers: &HeaderMap) -> Option<TraceContext> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    trace_context(text("traceparent")?, text("tracestate"))
}
