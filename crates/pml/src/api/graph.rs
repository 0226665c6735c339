//! `/api/graph`: the graph of tools and capabilities; `/api/speculation`: what came of calls made ahead; `/api/mocks`:
//! recorded results.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use serde::Deserialize;
use serde_json::json;

use super::{json_response, problem_response};
use crate::app::App;
use crate::flow;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/api/graph", get(graph))
        .route("/api/graph/ways", get(ways))
        .route("/api/speculation", get(speculation))
        .route("/api/mocks", get(mocks))
        .route("/api/mocks/{id}", get(mock))
}

async fn graph(State(app): State<Arc<App>>) -> Response {
    match flow::graph(&app, &app.principal).await {
        Ok(view) => json_response(StatusCode::OK, &view),
        Err(problem) => problem_response(&problem),
    }
}

async fn speculation(State(app): State<Arc<App>>) -> Response {
    match flow::speculation_stats(&app, &app.principal).await {
        Ok(stats) => json_response(StatusCode::OK, &json!({ "schemaVersion": 1, "tools": stats })),
        Err(problem) => problem_response(&problem),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MocksQuery {
    tool: Option<String>,
}

async fn mocks(State(app): State<Arc<App>>, Query(wanted): Query<MocksQuery>) -> Response {
    let listed = async {
        let mocks = flow::mocks(&app, &app.principal, wanted.tool.as_deref()).await?;
        let stats = flow::mock_stats(&app, &app.principal).await?;
        Ok(json!({ "schemaVersion": 1, "mocks": mocks, "tools": stats }))
    };
    match listed.await {
        Ok(listed) => json_response(StatusCode::OK, &listed),
        Err(problem) => problem_response(&problem),
    }
}

async fn mock(State(app): State<Arc<App>>, Path(id): Path<String>) -> Response {
    match flow::mock(&app, &app.principal, &id).await {
        Ok(mock) => json_response(StatusCode::OK, &mock),
        Err(problem) => problem_response(&problem),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GraphWaysQuery {
    from: String,
    to: String,
}

async fn ways(State(app): State<Arc<App>>, Query(ends): Query<GraphWaysQuery>) -> Response {
    match flow::find_graph_paths(&app, &app.principal, &ends.from, &ends.to).await {
        Ok(ways) => json_response(StatusCode::OK, &json!({ "ways": ways })),
        Err(problem) => problem_response(&problem),
    }
}
