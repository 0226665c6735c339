//! `POST /api/explore`: tries ways to serve an intent.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, State};
use axum::routing::post;
use pml_mcp::Caller;
use pml_mcp::server::ClientIdentity;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::{OpenApi, ToSchema};

use super::extract::ApiJson;
use super::reply::{Reply, SCHEMA_VERSION};
use crate::app::App;
use crate::flow::{self, ExploreInput, ExploringClient};
use crate::problem::Problem;

#[derive(OpenApi)]
#[openapi(paths(explore))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/explore", post(explore))
}

/// What to explore.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it documents `ExploreInput`, which the MCP tool reads too")]
struct ExploreBody {
    /// The intent, in your words.
    #[schema(min_length = 1)]
    intent: String,
    /// Values for the arguments of tools.
    #[schema(value_type = Option<Object>)]
    context: Option<Value>,
    /// The number of ways to try.
    max_paths: Option<u32>,
    /// The number of tools on a way.
    max_depth: Option<u32>,
    /// Answers and arguments of your own: `{tools, args}`.
    #[schema(value_type = Option<Object>)]
    mock_config: Option<Value>,
}

/// The ways that were tried.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ExploreReply {
    schema_version: u32,
    /// The viable and the failed paths.
    #[schema(value_type = Object)]
    exploration: Value,
}

/// Tries ways to serve an intent; nothing is changed.
#[utoipa::path(post, path = "/api/explore", tag = "discovery", request_body = ExploreBody, responses((status = 200, body = ExploreReply)))]
async fn explore(
    State(app): State<Arc<App>>,
    Extension(client): Extension<ClientIdentity>,
    ApiJson(input): ApiJson<ExploreInput>,
) -> Result<Reply<ExploreReply>, Problem> {
    let reach = app.keys.reach(client.key);
    let ClientIdentity { principal, key } = client;
    let client = ExploringClient { principal, key, session: "http".to_owned(), caller: Caller::silent() };
    let exploration = flow::explore(&app, client, input, |tool| reach.holds(tool)).await?;
    Ok(Reply(ExploreReply { schema_version: SCHEMA_VERSION, exploration: json!(exploration) }))
}
