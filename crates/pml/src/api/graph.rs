//! `/api/graph`: how tools and capabilities hang together.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use serde::Deserialize;
use serde_json::json;

use super::{json_of, refuse};
use crate::app::App;
use crate::flow;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/graph", get(graph)).route("/api/graph/ways", get(ways))
}

async fn graph(State(app): State<Arc<App>>) -> Response {
    match flow::graph(&app, &app.principal).await {
        Ok(view) => json_of(StatusCode::OK, &view),
        Err(problem) => refuse(&problem),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ends {
    from: String,
    to: String,
}

async fn ways(State(app): State<Arc<App>>, Query(ends): Query<Ends>) -> Response {
    match flow::ways(&app, &app.principal, &ends.from, &ends.to).await {
        Ok(ways) => json_of(StatusCode::OK, &json!({ "ways": ways })),
        Err(problem) => refuse(&problem),
    }
}
