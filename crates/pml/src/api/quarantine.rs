//! `/api/quarantine`: lists tools that appeared or changed and wait to be accepted, and accepts one.
//!
//! Every client with the token may list them. Only a signed-in person can accept, and only the definition they were
//! shown: a tool whose definition changed meanwhile stays in quarantine.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use pml_mcp::server::access::Admission;
use pml_model::{Digest, ToolId};
use serde::{Deserialize, Serialize};
use utoipa::{OpenApi, ToSchema};

use super::extract::{ApiPath, is_json};
use super::reply::{SCHEMA_VERSION, json_response, list_response, not_json_response, problem_response};
use crate::accepted;
use crate::app::App;
use crate::catalogue::{QuarantineReason, QuarantinedTool};
use crate::flow::AnswerChannel;
use crate::problem::{ErrorCode, Problem};

/// The largest body of an acceptance, in bytes; it holds one digest.
const MAX_BODY_BYTES: usize = 4 * 1024;

#[derive(OpenApi)]
#[openapi(paths(list, accept))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/quarantine", get(list)).route("/api/quarantine/{tool}", post(accept))
}

/// A quarantined tool, as listed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct QuarantineListItem {
    #[schema(value_type = String)]
    tool: ToolId,
    /// The reason for the quarantine, as text.
    why: String,
    /// The digest of the definition that would be accepted.
    #[schema(value_type = String)]
    definition: Digest,
    /// The digest of the definition that was accepted before; `None` for a new tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    before: Option<Digest>,
    /// The line-by-line difference between the two definitions.
    difference: String,
}

/// The body of an acceptance: the digest of the definition that the person was shown.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AcceptToolBody {
    #[schema(value_type = String)]
    definition: Digest,
}

/// The quarantined tools.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct QuarantineReply {
    schema_version: u32,
    tools: Vec<QuarantineListItem>,
}

/// Whether the tool was accepted.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AcceptedReply {
    schema_version: u32,
    /// `accepted`.
    status: &'static str,
}

/// Lists the tools in quarantine with their differences.
#[utoipa::path(get, path = "/api/quarantine", tag = "approvals", responses((status = 200, body = QuarantineReply), (status = 304, description = "The list is the one that the client has")))]
async fn list(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    let snapshot = app.tools.snapshot();
    let tools: Vec<QuarantineListItem> = snapshot
        .quarantined
        .iter()
        .filter(|held| held.reason.needs_acceptance())
        .map(QuarantineListItem::from)
        .collect();
    list_response(&headers, &QuarantineReply { schema_version: SCHEMA_VERSION, tools })
}

impl From<&QuarantinedTool> for QuarantineListItem {
    fn from(held: &QuarantinedTool) -> QuarantineListItem {
        let before = match &held.reason {
            QuarantineReason::Changed { accepted, .. } => Some(accepted.clone()),
            QuarantineReason::New | QuarantineReason::LookAlike { .. } | QuarantineReason::Unusable(_) => {
                None
            }
        };
        QuarantineListItem {
            tool: held.id.clone(),
            why: held.reason.to_string(),
            definition: held.definition.digest.clone(),
            before,
            difference: held.difference(),
        }
    }
}

/// Accepts the definition of a tool; a person's session only.
#[utoipa::path(post, path = "/api/quarantine/{tool}", tag = "approvals", params(("tool" = String, Path, description = "The tool, as `server:tool`")), request_body = AcceptToolBody, responses((status = 200, body = AcceptedReply)))]
async fn accept(
    State(app): State<Arc<App>>,
    Extension(admitted): Extension<Admission>,
    ApiPath(tool): ApiPath<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    if !is_json(&headers) {
        return not_json_response();
    }
    let Ok(body) = to_bytes(body, MAX_BODY_BYTES).await else {
        let text = format!("the body is larger than {MAX_BODY_BYTES} bytes");
        return problem_response(&Problem::new(ErrorCode::TooLarge, text));
    };
    match accept_definition(&app, &admitted, &tool, &body).await {
        Ok(()) => json_response(
            StatusCode::OK,
            &AcceptedReply { schema_version: SCHEMA_VERSION, status: "accepted" },
        ),
        Err(problem) => problem_response(&problem),
    }
}

async fn accept_definition(app: &App, admitted: &Admission, tool: &str, body: &[u8]) -> Result<(), Problem> {
    // Which people may is decided in front of all routes, by their roles.
    let Admission::Session(person) = admitted else {
        return Err(Problem::new(ErrorCode::Denied, "only a person who has signed in can accept tools here")
            .hint("accept it in the dashboard, or with `pml accept`"));
    };
    let word: AcceptToolBody = serde_json::from_slice(body).map_err(|error| {
        Problem::new(ErrorCode::InvalidRequest, format!("the body cannot be read: {error}"))
            .hint("send `{\"definition\": \"…\"}` with the digest that is listed")
    })?;
    let id = ToolId::parse(tool).map_err(|error| Problem::new(ErrorCode::UnknownTool, error.to_string()))?;
    let snapshot = app.tools.snapshot();
    let Some(held) = snapshot.find_quarantined(&id).filter(|held| held.reason.needs_acceptance()) else {
        // Fails where there is no such tool, so that only a tool that exists gets `Gone`.
        snapshot.tool(&id)?;
        return Err(Problem::new(ErrorCode::Gone, format!("`{id}` waits for nothing, or not any more")));
    };
    let config = app.config();
    let server = config.servers.iter().find(|server| server.name == id.server);
    let server =
        server.ok_or_else(|| crate::problem::unknown_server(id.server.as_str(), std::iter::empty()))?;
    let changed = || {
        Problem::new(
            ErrorCode::ToolChanged,
            format!("`{id}` changed once more while it was shown, and was not accepted"),
        )
        .hint("look at it again")
    };
    if held.definition.digest != word.definition {
        return Err(changed());
    }
    let other = accepted::accept_definitions(
        (&app.tools, &app.store, &app.principal),
        server,
        std::slice::from_ref(held),
        &AnswerChannel::Dashboard { person: person.clone() }.to_string(),
    )
    .await?;
    if other.is_empty() { Ok(()) } else { Err(changed()) }
}
