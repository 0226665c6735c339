//! Pictures of capabilities: `/api/capabilities/{name}/definition` and `/api/trace/{id}/invocation`.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;
use pml_model::Principal;
use serde::Serialize;
use utoipa::{OpenApi, ToSchema};

use super::extract::ApiPath;
use super::reply::{SCHEMA_VERSION, list_response};
use crate::app::App;
use crate::flow;
use crate::problem::Problem;
use crate::views::definition::Definition;
use crate::views::invocation::Invocation;

#[derive(OpenApi)]
#[openapi(paths(definition, invocation))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/api/capabilities/{name}/definition", get(definition))
        .route("/api/trace/{id}/invocation", get(invocation))
}

/// The definition of a capability as a picture.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DefinitionReply {
    schema_version: u32,
    #[serde(flatten)]
    definition: Definition,
}

/// Shows the structure of a capability as a picture, with calls of the same tool as one node.
#[utoipa::path(get, path = "/api/capabilities/{name}/definition", tag = "capabilities", params(("name" = String, Path, description = "The name or the id")), responses(
    (status = 200, body = DefinitionReply),
    (status = 304, description = "The same as the `ETag` in `If-None-Match`"),
))]
async fn definition(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiPath(name): ApiPath<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let definition = flow::definition(&app, &principal, &name).await?;
    Ok(list_response(&headers, &DefinitionReply { schema_version: SCHEMA_VERSION, definition }))
}

/// An invocation as a picture.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct InvocationReply {
    schema_version: u32,
    #[serde(flatten)]
    invocation: Invocation,
}

/// Shows the calls of a trace on a time axis, one node for each.
#[utoipa::path(get, path = "/api/trace/{id}/invocation", tag = "learning", params(("id" = String, Path, description = "The id of the trace")), responses(
    (status = 200, body = InvocationReply),
    (status = 304, description = "The same as the `ETag` in `If-None-Match`"),
))]
async fn invocation(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiPath(id): ApiPath<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let invocation = flow::invocation(&app, &principal, &id).await?;
    Ok(list_response(&headers, &InvocationReply { schema_version: SCHEMA_VERSION, invocation }))
}
