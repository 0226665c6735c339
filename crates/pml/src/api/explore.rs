//! `POST /api/explore`: tries ways to serve an intent.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, State};
use axum::routing::post;
use pml_mcp::Caller;
use pml_mcp::server::ClientIdentity;
use serde::Serialize;
use utoipa::{OpenApi, ToSchema};

use super::extract::ApiJson;
use super::reply::{Reply, SCHEMA_VERSION};
use crate::app::App;
use crate::flow::{self, ExploreInput, ExploringClient};
use crate::problem::Problem;
use crate::report::Exploration;

#[derive(OpenApi)]
#[openapi(paths(explore))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/explore", post(explore))
}

/// The ways that were tried.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ExploreReply {
    schema_version: u32,
    /// The viable and the failed paths.
    exploration: Exploration,
}

/// Tries ways to serve an intent; nothing is changed.
#[utoipa::path(post, path = "/api/explore", tag = "discovery", request_body = ExploreInput, responses((status = 200, body = ExploreReply)))]
async fn explore(
    State(app): State<Arc<App>>,
    Extension(client): Extension<ClientIdentity>,
    ApiJson(input): ApiJson<ExploreInput>,
) -> Result<Reply<ExploreReply>, Problem> {
    let reach = app.keys.reach(client.key);
    let ClientIdentity { principal, key } = client;
    let client = ExploringClient { principal, key, session: "http".to_owned(), caller: Caller::silent() };
    let exploration = flow::explore(&app, client, input, |tool| reach.holds(tool)).await?;
    Ok(Reply(ExploreReply { schema_version: SCHEMA_VERSION, exploration }))
}
