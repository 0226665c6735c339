//! `/api/mocks`: recorded results; `/api/speculation`: what came of calls made ahead; `/api/learning`: which learned parts
//! are on.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, State};
use axum::routing::get;
use pml_model::Principal;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{OpenApi, ToSchema};

use super::extract::{ApiPath, ApiQuery};
use super::reply::{Reply, SCHEMA_VERSION};
use crate::app::App;
use crate::flow::{self, MockRecord, MockStats};
use crate::knowledge::PartVerdict;
use crate::problem::Problem;

#[derive(OpenApi)]
#[openapi(paths(list, show, learning, speculation))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/api/mocks", get(list))
        .route("/api/mocks/{id}", get(show))
        .route("/api/speculation", get(speculation))
        .route("/api/learning", get(learning))
}

/// Which recorded results to list.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct MocksQuery {
    /// Only those of this tool, as `server:tool`.
    tool: Option<String>,
}

/// Recorded results.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MocksReply {
    schema_version: u32,
    mocks: Vec<MockRecord>,
    /// How often they were found, by tool.
    tools: Vec<MockStats>,
}

/// Lists recorded results.
#[utoipa::path(get, path = "/api/mocks", tag = "learning", params(MocksQuery), responses((status = 200, body = MocksReply)))]
async fn list(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiQuery(wanted): ApiQuery<MocksQuery>,
) -> Result<Reply<MocksReply>, Problem> {
    let mocks = flow::mocks(&app, &principal, wanted.tool.as_deref()).await?;
    let tools = flow::mock_stats(&app, &principal).await?;
    Ok(Reply(MocksReply { schema_version: SCHEMA_VERSION, mocks, tools }))
}

/// A recorded result.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MockReply {
    schema_version: u32,
    #[serde(flatten)]
    mock: MockRecord,
}

/// Shows one recorded result.
#[utoipa::path(get, path = "/api/mocks/{id}", tag = "learning", params(("id" = String, Path, description = "The id of the recorded result")), responses((status = 200, body = MockReply)))]
async fn show(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiPath(id): ApiPath<String>,
) -> Result<Reply<MockReply>, Problem> {
    let mock = flow::mock(&app, &principal, &id).await?;
    Ok(Reply(MockReply { schema_version: SCHEMA_VERSION, mock }))
}

/// Which parts of what was learned are on.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LearningReply {
    schema_version: u32,
    /// Each part with what it gains on later runs.
    parts: Vec<PartVerdict>,
}

/// Tells which parts of what was learned are on, and what they gain on your own runs.
#[utoipa::path(get, path = "/api/learning", tag = "learning", responses((status = 200, body = LearningReply)))]
async fn learning(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
) -> Reply<LearningReply> {
    Reply(LearningReply { schema_version: SCHEMA_VERSION, parts: flow::learning_status(&app, &principal) })
}

/// What came of calls made ahead.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SpeculationReply {
    schema_version: u32,
    #[schema(value_type = Vec<Object>)]
    tools: Value,
}

/// Tells what came of calls made ahead, by tool.
#[utoipa::path(get, path = "/api/speculation", tag = "learning", responses((status = 200, body = SpeculationReply)))]
async fn speculation(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
) -> Result<Reply<SpeculationReply>, Problem> {
    let tools = json!(flow::speculation_stats(&app, &principal).await?);
    Ok(Reply(SpeculationReply { schema_version: SCHEMA_VERSION, tools }))
}
