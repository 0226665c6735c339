//! `pml_explore`: its definition, its arguments and its reply.

use std::sync::Arc;

use pml_mcp::server::IncomingRequest;
use pml_model::json::raw;
use serde_json::json;
use serde_json::value::RawValue;

use super::ClientAccess;
use super::dry_run::confirming_call;
use super::reply::result_of;
use super::request::{parse_arguments, session_id};
use crate::app::App;
use crate::flow::{self, ExploreInput, ExploringClient};
use crate::problem::{ErrorCode, Problem};
use crate::report::Exploration;

/// The definition of the tool.
pub(super) fn definition() -> Box<RawValue> {
    raw(&json!({
        "name": "pml_explore",
        "title": "Try ways to do something",
        "description": "Try ways to do something new, changing nothing: reads are real, the rest is made up.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "intent": { "type": "string" },
                "maxPaths": { "type": "integer" },
                "maxDepth": { "type": "integer" },
                "mockConfig": { "type": "object" },
                "context": { "type": "object" },
                "timeoutMs": { "type": "integer" }
            },
            "required": ["intent"]
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "pathsExplored": { "type": "integer" },
                "viablePaths": { "type": "array", "items": { "type": "object" } },
                "failedPaths": { "type": "array", "items": { "type": "object" } },
                "warnings": { "type": "array", "items": { "type": "string" } },
                "trace": { "type": "object" }
            },
            "required": ["pathsExplored", "viablePaths", "failedPaths", "trace"]
        },
        "annotations": { "readOnlyHint": true, "destructiveHint": false, "idempotentHint": false, "openWorldHint": true }
    }))
}

/// Answers `pml_explore`.
pub(super) async fn explore(
    app: &Arc<App>,
    arguments: &RawValue,
    request: &IncomingRequest,
    door: &ClientAccess,
) -> Box<RawValue> {
    tokio::select! {
        explored = try_paths(app, arguments, request, door) => match explored {
            Ok(exploration) => result_of(&text(&exploration), &raw(&exploration), &[], false),
            Err(problem) => problem.to_tool_result(),
        },
        () = request.cancel.cancelled() => {
            Problem::new(ErrorCode::Cancelled, "the exploration was cancelled").to_tool_result()
        }
    }
}

/// The exploration with the call that runs its best path.
fn text(exploration: &Exploration) -> String {
    let mut text = exploration.text(|path| format!(" {}", path.path_id));
    if let Some(path) = exploration.viable_paths.first() {
        let call = confirming_call(&path.path_id, &path.missing);
        text.push_str(&format!("\nrun the first with `pml_execute` {call}"));
    }
    text
}

async fn try_paths(
    app: &Arc<App>,
    arguments: &RawValue,
    request: &IncomingRequest,
    door: &ClientAccess,
) -> Result<Exploration, Problem> {
    let hint = r#"the smallest call is {"intent": "what you want to do"}"#;
    let input: ExploreInput = parse_arguments("pml_explore", arguments, hint)?;
    let client = ExploringClient {
        principal: request.client.principal.clone(),
        key: request.client.key,
        session: session_id(request),
        caller: request.caller.clone(),
    };
    flow::explore(app, client, input, |id| door.may_call(id)).await
}
