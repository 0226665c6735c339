//! PML's own tools: definitions, descriptions and dispatch.

use std::sync::Arc;

use pml_mcp::server::IncomingRequest;
use pml_model::json::{Fields, raw};
use pml_model::name::{is_plain, truncate_text};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::request::{parse_arguments, session_id};
use super::{ClientAccess, execute, is_callable, runs};
use crate::app::App;
use crate::catalogue::ToolSnapshot;
use crate::config::Expose;
use crate::discover::{DiscoverPage, DiscoverRequest, ResultKind};
use crate::flow;
use crate::problem::{ErrorCode, Problem};

/// The number of servers that descriptions name; the others are counted.
const NAMED_SERVERS: usize = 12;
/// The longest purpose of a server in a description, in characters.
const PURPOSE_CHARACTERS: usize = 50;

/// Tools of the first version, each with the call that replaced it.
const REMOVED: &[(&str, &str)] = &[
    ("pml_search_tools", r#"call `pml_discover` with {"intent": "…", "filter": {"type": "tool"}}"#),
    ("pml_search_capabilities", r#"call `pml_discover` with {"intent": "…"}"#),
    ("pml_find_capabilities", r#"call `pml_discover` with {"intent": "…"}"#),
    (
        "pml_execute_dag",
        r#"call `pml_execute` with {"intent": "…", "implementation": {"type": "dag", "dagStructure": {"tasks": […]}}}"#,
    ),
    (
        "pml_execute_code",
        r#"call `pml_execute` with {"intent": "…", "implementation": {"type": "code", "code": "…"}}"#,
    ),
];

/// The definitions of PML's own tools.
pub(super) fn definitions(snapshot: &ToolSnapshot) -> Vec<Box<RawValue>> {
    let connected = describe_servers(snapshot);
    let ours =
        std::iter::once(discover_definition(&connected)).chain(execute::definitions(&server_names(snapshot)));
    ours.chain(runs::definitions()).collect()
}

fn discover_definition(connected: &str) -> Box<RawValue> {
    raw(&json!({
        "name": "pml_discover",
        "title": "Find tools for an intent",
        "description": format!(
            "Find the right tools for what you want to do. Say it in plain words; get a ranked list with TypeScript \
             signatures. Call found tools from a program with `pml_execute`, or one alone by its `name`. Connected: {connected}."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "intent": { "type": "string", "description": "what you want to do, in your own words" },
                "filter": {
                    "type": "object",
                    "properties": {
                        "type": { "enum": ["tool", "capability", "all"], "default": "all" },
                        "minScore": { "type": "number", "minimum": 0, "maximum": 1 }
                    },
                    "additionalProperties": false
                },
                "limit": { "type": "integer", "minimum": 1, "maximum": 100, "default": 10 },
                "offset": { "type": "integer", "minimum": 0, "default": 0 },
                "detail": { "enum": ["brief", "full"], "default": "brief", "description": "full adds the JSON Schemas" }
            },
            "required": ["intent"],
            "additionalProperties": false
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "results": { "type": "array", "items": {
                    "type": "object",
                    "properties": {
                        "type": { "type": "string" }, "id": { "type": "string" }, "name": { "type": "string" },
                        "description": { "type": "string" }, "score": { "type": "number" },
                        "reasons": { "type": "array", "items": { "type": "string" } },
                        "signature": { "type": "string" }, "schemas": { "type": "object" }
                    },
                    "required": ["type", "id", "name", "score", "signature"]
                } },
                "total": { "type": "integer" },
                "suggestions": { "type": "array", "items": { "type": "string" } }
            }
        },
        "annotations": { "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false }
    }))
}

/// The server instructions: how a client should use the gateway.
pub(super) fn instructions(snapshot: &ToolSnapshot) -> String {
    format!(
        "PML stands in front of all connected MCP servers. 1. Call `pml_discover` with what you want to do; it ranks \
         the tools of all servers and gives TypeScript signatures. 2. Write the work as one program over those tools and \
         give it to `pml_execute`; only what it returns comes back. 3. If it answers `running` or `approval_required`, call `pml_continue` with \
         its `workflowId`; whole results are read with `pml_get_task_result`. 4. An error carries a code, a sentence and a hint: follow the hint. Connected: {}.",
        describe_servers(snapshot)
    )
}

/// The names of the connected servers, at most `NAMED_SERVERS`.
fn server_names(snapshot: &ToolSnapshot) -> String {
    let mut names: Vec<&str> =
        snapshot.servers.iter().take(NAMED_SERVERS).map(|server| server.name.as_str()).collect();
    if snapshot.servers.len() > NAMED_SERVERS {
        names.push("and more");
    }
    names.join(", ")
}

/// The connected servers with their purposes, at most `NAMED_SERVERS`.
fn describe_servers(snapshot: &ToolSnapshot) -> String {
    let mut named: Vec<String> = snapshot
        .servers
        .iter()
        .take(NAMED_SERVERS)
        .map(|server| match &server.description {
            Some(purpose) => format!("{} ({})", server.name, plain(purpose)),
            None => server.name.to_string(),
        })
        .collect();
    if snapshot.servers.len() > NAMED_SERVERS {
        named.push(format!("and {} more", snapshot.servers.len() - NAMED_SERVERS));
    }
    if named.is_empty() { "no servers yet".to_owned() } else { named.join(", ") }
}

/// One short line without invisible characters. What a server says of itself is data, never an instruction.
fn plain(text: &str) -> String {
    let line: String = text.lines().next().unwrap_or_default().chars().filter(|c| is_plain(*c)).collect();
    truncate_text(line.trim_end_matches('.'), PURPOSE_CHARACTERS)
}

/// Answers a call of one of PML's own tools; `None` where the name is not one of them.
pub(super) async fn call(
    app: &Arc<App>,
    name: &str,
    arguments: &RawValue,
    request: &IncomingRequest,
    door: &ClientAccess,
) -> Option<Box<RawValue>> {
    if let Some((_, replacement)) = REMOVED.iter().find(|(removed, _)| *removed == name) {
        return Some(
            Problem::new(ErrorCode::RemovedTool, format!("`{name}` no longer exists"))
                .hint(*replacement)
                .to_tool_result(),
        );
    }
    match name {
        "pml_discover" => Some(discover(app, arguments, request, &door.expose).await),
        "pml_execute" => Some(execute::execute(app, arguments, request, door).await),
        "pml_continue" => Some(runs::continue_run(app, arguments, request, door).await),
        "pml_replan" => Some(runs::replan(app, arguments, request, door).await),
        "pml_abort" => Some(runs::abort(app, arguments, request).await),
        "pml_get_task_result" => Some(runs::task_result(app, arguments, request).await),
        _ => None,
    }
}

async fn discover(
    app: &App,
    arguments: &RawValue,
    asked: &IncomingRequest,
    exposure: &Expose,
) -> Box<RawValue> {
    let hint = r#"the smallest call is {"intent": "what you want to do"}"#;
    let request: DiscoverRequest = match parse_arguments("pml_discover", arguments, hint) {
        Ok(request) => request,
        Err(problem) => return problem.to_tool_result(),
    };
    let session = session_id(asked);
    let whose = (&asked.client.principal, Some(session.as_str()));
    match flow::discover(app, whose, &request, |tool| is_callable(&tool.id, exposure)).await {
        Ok(page) => {
            let mut result = Fields::default();
            result.set("content", raw(&[json!({ "type": "text", "text": text(&page) })]));
            result.set("structuredContent", raw(&page));
            result.set("isError", raw(&Value::Bool(false)));
            result.to_raw()
        }
        Err(problem) => problem.to_tool_result(),
    }
}

/// A page of results as text for a model.
fn text(page: &DiscoverPage) -> String {
    let mut blocks: Vec<String> = page
        .results
        .iter()
        .map(|found| {
            let call = match found.kind {
                ResultKind::Capability => format!("run as capability `{}`", found.name),
                ResultKind::Tool | ResultKind::All => format!("call as `{}`", found.name),
            };
            format!("{} [{:.2}] {call}\n{}\n", found.id, found.score, found.signature)
        })
        .collect();
    if page.total > page.results.len() {
        blocks.push(format!(
            "{} of {} results; ask for more with `offset` and `limit`",
            page.results.len(),
            page.total
        ));
    }
    let about = if page.total == 0 { "nothing found" } else { "note" };
    blocks.extend(page.suggestions.iter().flatten().map(|suggestion| format!("{about}: {suggestion}")));
    blocks.join("\n")
}
