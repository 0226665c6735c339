//! `GET /api/policy/{tool}`: explains the policy of a tool.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use pml_model::{Annotations, Digest, ToolId};
use serde::Serialize;
use utoipa::{OpenApi, ToSchema};

use super::extract::ApiPath;
use super::reply::{Reply, SCHEMA_VERSION};
use crate::app::App;
use crate::approve::Explanation;
use crate::problem::{ErrorCode, Problem};

#[derive(OpenApi)]
#[openapi(paths(explain))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/policy/{tool}", get(explain))
}

/// The policy of a tool, with the reason for each attribute.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PolicyReply {
    schema_version: u32,
    tool: String,
    /// `auto`: programs may call it; `hil`: they need approval first; `deny`: they may not.
    mode: &'static str,
    /// The reason, phrased to follow the word "because".
    because: String,
    attributes: Vec<PolicyAttribute>,
    /// The rules about the tool, in the order in which they count.
    rules: Vec<PolicyRule>,
    annotations: PolicyAnnotations,
    /// The digest of its definition.
    #[schema(value_type = String)]
    definition: Digest,
    /// Why it is in quarantine; absent if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_back: Option<String>,
}

/// One attribute of the policy.
#[derive(Serialize, ToSchema)]
struct PolicyAttribute {
    name: &'static str,
    value: String,
    because: String,
    /// The file and line of the rule that sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
}

/// A rule of `[permissions]`.
#[derive(Serialize, ToSchema)]
struct PolicyRule {
    rule: String,
    /// Its file and line.
    place: String,
}

/// What the server says of the tool, and whether it is believed.
#[derive(Serialize, ToSchema)]
struct PolicyAnnotations {
    #[schema(value_type = Object)]
    said: Annotations,
    believed: bool,
    because: String,
}

/// Explains the policy of a tool.
#[utoipa::path(get, path = "/api/policy/{tool}", tag = "servers", params(("tool" = String, Path, description = "The tool, as `server:tool`")), responses((status = 200, body = PolicyReply)))]
async fn explain(
    State(app): State<Arc<App>>,
    ApiPath(tool): ApiPath<String>,
) -> Result<Reply<PolicyReply>, Problem> {
    let id = ToolId::parse(&tool).map_err(|error| Problem::new(ErrorCode::UnknownTool, error.to_string()))?;
    app.tools.ensure_manifests_loaded().await;
    let snapshot = app.tools.snapshot();
    let (definition, held_back) = match snapshot.find_quarantined(&id) {
        Some(held) => (&held.definition, Some(held.reason.to_string())),
        None => (&snapshot.tool(&id)?.definition, None),
    };
    let Explanation { verdict, attributes, rules, believed: (believed, because) } =
        app.policy().explain(&id, &definition.annotations);
    Ok(Reply(PolicyReply {
        schema_version: SCHEMA_VERSION,
        tool: id.to_string(),
        mode: verdict.mode.as_str(),
        because: verdict.because,
        attributes: attributes
            .into_iter()
            .map(|one| PolicyAttribute {
                name: one.name,
                value: one.value,
                because: one.because,
                place: one.place,
            })
            .collect(),
        rules: rules.into_iter().map(|(rule, place)| PolicyRule { rule, place }).collect(),
        annotations: PolicyAnnotations { said: definition.annotations, believed, because },
        definition: definition.digest.clone(),
        held_back,
    }))
}
