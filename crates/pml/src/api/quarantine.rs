//! `/api/quarantine`: tools that appeared or changed and wait to be accepted, and accepting one.
//!
//! Anybody with the token may look. Only a person who has signed in can accept, and only the definition they were
//! shown: one that became another meanwhile stays held back.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use pml_mcp::server::access::Admitted;
use pml_model::{Digest, ToolId};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{is_json, json_of, listed, not_json, refuse};
use crate::accepted;
use crate::app::App;
use crate::catalogue::{HeldBack, Why};
use crate::problem::{Code, Problem};

/// The path that people who have signed in may use, and all below it.
pub const PATH: &str = "/api/quarantine";

/// What a word may have: a digest.
const MAX_BODY_BYTES: usize = 4 * 1024;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/quarantine", get(list)).route("/api/quarantine/{tool}", post(accept))
}

/// A tool that waits, as it is listed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Waiting {
    tool: ToolId,
    /// Why it is held back.
    why: String,
    /// Which definition would be accepted.
    definition: Digest,
    /// The one that was accepted before.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Digest>,
    /// Line by line, what would be accepted.
    difference: String,
}

/// A person's word: for which definition it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Word {
    definition: Digest,
}

async fn list(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    let snapshot = app.tools.snapshot();
    let tools: Vec<Waiting> =
        snapshot.held_back.iter().filter(|held| held.why.waits()).map(Waiting::from).collect();
    listed(&headers, &json!({ "tools": tools }))
}

impl From<&HeldBack> for Waiting {
    fn from(held: &HeldBack) -> Waiting {
        let before = match &held.why {
            Why::Changed { accepted, .. } => Some(accepted.clone()),
            Why::New | Why::Alike { .. } | Why::Unusable(_) => None,
        };
        Waiting {
            tool: held.id.clone(),
            why: held.why.to_string(),
            definition: held.definition.digest.clone(),
            before,
            difference: held.difference(),
        }
    }
}

async fn accept(
    State(app): State<Arc<App>>,
    Extension(admitted): Extension<Admitted>,
    Path(tool): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    if !is_json(&headers) {
        return not_json();
    }
    let Ok(body) = to_bytes(body, MAX_BODY_BYTES).await else {
        let text = format!("the body is larger than {MAX_BODY_BYTES} bytes");
        return refuse(&Problem::new(Code::TooLarge, text));
    };
    match take(&app, &admitted, &tool, &body).await {
        Ok(()) => json_of(StatusCode::OK, &json!({ "status": "accepted" })),
        Err(problem) => refuse(&problem),
    }
}

async fn take(app: &App, admitted: &Admitted, tool: &str, body: &[u8]) -> Result<(), Problem> {
    let (Admitted::Session(_), Some(_)) =
        (admitted, admitted.principal().filter(|who| **who == app.principal))
    else {
        return Err(Problem::new(Code::Denied, "only a person who has signed in can accept tools here")
            .hint("accept it in the dashboard, or with `pml accept`"));
    };
    let word: Word = serde_json::from_slice(body).map_err(|error| {
        Problem::new(Code::InvalidRequest, format!("the body cannot be read: {error}"))
            .hint("send `{\"definition\": \"…\"}` with the digest that is listed")
    })?;
    let id = ToolId::parse(tool).map_err(|error| Problem::new(Code::UnknownTool, error.to_string()))?;
    let snapshot = app.tools.snapshot();
    let Some(held) = snapshot.held(&id).filter(|held| held.why.waits()) else {
        // Also that there is no such tool.
        snapshot.tool(&id)?;
        return Err(Problem::new(Code::Gone, format!("`{id}` waits for nothing, or not any more")));
    };
    let config = app.config();
    let server = config.servers.iter().find(|server| server.name == id.server);
    let server =
        server.ok_or_else(|| crate::problem::unknown_server(id.server.as_str(), std::iter::empty()))?;
    let changed = || {
        Problem::new(
            Code::ToolChanged,
            format!("`{id}` changed once more while it was shown, and was not accepted"),
        )
        .hint("look at it again")
    };
    if held.definition.digest != word.definition {
        return Err(changed());
    }
    let other = accepted::definitions(
        (&app.tools, &app.store, &app.principal),
        server,
        std::slice::from_ref(held),
        "the dashboard",
    )
    .await?;
    if other.is_empty() { Ok(()) } else { Err(changed()) }
}
