//! `POST /api/explore`: tries ways to serve an intent.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use pml_mcp::Caller;

use super::{MAX_BODY_BYTES, json_response, problem_response};
use crate::app::App;
use crate::flow::{self, ExploreInput, ExploringClient};
use crate::problem::{ErrorCode, Problem};

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/explore", post(explore))
}

async fn explore(State(app): State<Arc<App>>, body: Body) -> Response {
    match try_paths(&app, body).await {
        Ok(response) => response,
        Err(problem) => problem_response(&problem),
    }
}

async fn try_paths(app: &Arc<App>, body: Body) -> Result<Response, Problem> {
    let body = to_bytes(body, MAX_BODY_BYTES).await.map_err(|_| {
        Problem::new(ErrorCode::TooLarge, format!("the body is larger than {MAX_BODY_BYTES} bytes"))
    })?;
    let input: ExploreInput = serde_json::from_slice(&body).map_err(|error| {
        Problem::new(ErrorCode::InvalidRequest, format!("the body cannot be read: {error}"))
            .hint("send `{\"intent\": \"what you want to do\"}`")
    })?;
    let client = ExploringClient {
        principal: app.principal.clone(),
        session: "http".to_owned(),
        caller: Caller::silent(),
    };
    let exploration = flow::explore(app, client, input, |_| true).await?;
    Ok(json_response(StatusCode::OK, &serde_json::json!({ "schemaVersion": 1, "exploration": exploration })))
}
