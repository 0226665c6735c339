//! `/api/capabilities/{name}/versions`: the versions of a capability, how they differ, and which one is in force.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, State};
use axum::routing::{get, post};
use pml_model::Principal;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{OpenApi, ToSchema};

use super::extract::{ApiJson, ApiPath, ApiQuery};
use super::reply::{Reply, SCHEMA_VERSION};
use crate::app::App;
use crate::flow;
use crate::problem::Problem;

#[derive(OpenApi)]
#[openapi(paths(versions, diff, rollback))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/api/capabilities/{name}/versions", get(versions))
        .route("/api/capabilities/{name}/diff", get(diff))
        .route("/api/capabilities/{name}/rollback", post(rollback))
}

/// The versions of a capability.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct VersionsReply {
    schema_version: u32,
    /// The name of the capability.
    name: String,
    /// Its versions, latest first.
    #[schema(value_type = Vec<Object>)]
    versions: Value,
}

/// Lists the versions of a capability.
#[utoipa::path(get, path = "/api/capabilities/{name}/versions", tag = "capabilities", params(("name" = String, Path, description = "The name or the id")), responses((status = 200, body = VersionsReply)))]
async fn versions(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiPath(name): ApiPath<String>,
) -> Result<Reply<VersionsReply>, Problem> {
    let list = flow::capability_versions(&app, &principal, &name).await?;
    Ok(Reply(VersionsReply {
        schema_version: SCHEMA_VERSION,
        name: list.name,
        versions: json!(list.versions),
    }))
}

/// Which versions to compare.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct DiffQuery {
    /// The number of a version; the earlier of the two by default.
    from: Option<u32>,
    /// The number of another version; by default, the one in force is compared with the latest other one.
    to: Option<u32>,
}

/// How two versions of a capability differ.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DiffReply {
    schema_version: u32,
    /// Lines of code, parameters and effects.
    #[schema(value_type = Object)]
    diff: Value,
}

/// Compares two versions of a capability.
#[utoipa::path(get, path = "/api/capabilities/{name}/diff", tag = "capabilities", params(("name" = String, Path, description = "The name or the id"), DiffQuery), responses((status = 200, body = DiffReply)))]
async fn diff(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiPath(name): ApiPath<String>,
    ApiQuery(which): ApiQuery<DiffQuery>,
) -> Result<Reply<DiffReply>, Problem> {
    let diff = flow::diff_versions(&app, &principal, &name, which.from, which.to).await?;
    Ok(Reply(DiffReply { schema_version: SCHEMA_VERSION, diff: json!(diff) }))
}

/// Which version to put in force.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RollbackBody {
    /// Its number; the one before by default.
    version: Option<u32>,
}

/// The version that is in force.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RollbackReply {
    schema_version: u32,
    /// Its number.
    version: u32,
}

/// Puts another version of a capability in force.
#[utoipa::path(post, path = "/api/capabilities/{name}/rollback", tag = "capabilities", params(("name" = String, Path, description = "The name or the id")), request_body = RollbackBody, responses((status = 200, body = RollbackReply)))]
async fn rollback(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiPath(name): ApiPath<String>,
    ApiJson(to): ApiJson<RollbackBody>,
) -> Result<Reply<RollbackReply>, Problem> {
    let version = flow::roll_back(&app, &principal, &name, to.version).await?;
    Ok(Reply(RollbackReply { schema_version: SCHEMA_VERSION, version }))
}
