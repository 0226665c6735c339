//! `GET /ready`: whether PML can take requests, for load balancers and supervisors.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use serde::Serialize;
use utoipa::{OpenApi, ToSchema};

use super::reply::{error_response, json_response};
use crate::app::App;
use crate::problem::{ErrorCode, Problem};

#[derive(OpenApi)]
#[openapi(paths(ready), components(schemas(ReadyReply)))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/ready", get(ready))
}

/// PML can take requests.
#[derive(Serialize, ToSchema)]
struct ReadyReply {
    /// `ready`.
    status: &'static str,
}

/// Tells whether PML can take requests: it is not stopping, and its store can be read and written; needs no credential.
#[utoipa::path(get, path = "/ready", tag = "access", responses((status = 200, body = ReadyReply)))]
async fn ready(State(app): State<Arc<App>>) -> Response {
    if app.runs.is_closing() {
        let problem =
            Problem::new(ErrorCode::StorageBusy, "this gateway is stopping").hint("use another one");
        return error_response(StatusCode::SERVICE_UNAVAILABLE, &problem);
    }
    // The reason is for those who may read the log: anybody may ask here.
    let problem = Problem::new(ErrorCode::StorageBusy, "the store does not answer");
    match app.readiness.ask(&app.store).await {
        Some(Ok(())) => json_response(StatusCode::OK, &ReadyReply { status: "ready" }),
        Some(Err(error)) => {
            tracing::warn!(%error, "not ready: the store does not answer");
            error_response(StatusCode::SERVICE_UNAVAILABLE, &problem)
        }
        None => error_response(StatusCode::SERVICE_UNAVAILABLE, &problem),
    }
}
