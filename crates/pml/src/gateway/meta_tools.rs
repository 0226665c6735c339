//! PML's own tools, as clients see them.

use std::sync::Arc;

use pml_mcp::server::Incoming;
use pml_model::json::{Fields, raw};
use pml_model::name::{is_plain, shortened};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Door, execute, is_callable, runs};
use crate::app::App;
use crate::catalogue::Snapshot;
use crate::config::Expose;
use crate::discover::{Kind, Page, Request};
use crate::flow;
use crate::problem::{Code, Problem};

/// Servers that descriptions name; the others are counted.
const NAMED_SERVERS: usize = 12;
/// The longest word on what a server is for.
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
pub(super) fn definitions(snapshot: &Snapshot) -> Vec<Box<RawValue>> {
    let connected = connected(snapshot);
    let ours = std::iter::once(discover_definition(&connected)).chain(execute::definitions(&names(snapshot)));
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

/// How the gateway is meant to be used.
pub(super) fn instructions(snapshot: &Snapshot) -> String {
    format!(
        "PML stands in front of all connected MCP servers. 1. Call `pml_discover` with what you want to do; it ranks \
         the tools of all servers and gives TypeScript signatures. 2. Write the work as one program over those tools and \
         give it to `pml_execute`; only what it returns comes back. 3. If it answers `running` or `approval_required`, call `pml_continue` with \
         its `workflowId`; whole results are read with `pml_get_task_result`. 4. An error carries a code, a sentence and a hint: follow the hint. Connected: {}.",
        connected(snapshot)
    )
}

/// The names of the connected servers, bounded.
fn names(snapshot: &Snapshot) -> String {
    let mut names: Vec<&str> =
        snapshot.servers.iter().take(NAMED_SERVERS).map(|server| server.name.as_str()).collect();
    if snapshot.servers.len() > NAMED_SERVERS {
        names.push("and more");
    }
    names.join(", ")
}

/// The connected servers and what they are for, bounded.
fn connected(snapshot: &Snapshot) -> String {
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

/// A server's word on itself is data: one short line without anything that does not show.
fn plain(text: &str) -> String {
    let line: String = text.lines().next().unwrap_or_default().chars().filter(|c| is_plain(*c)).collect();
    shortened(line.trim_end_matches('.'), PURPOSE_CHARACTERS)
}

/// Answers a call of one of PML's own tools; `None` where the name is not one of them.
pub(super) async fn call(
    app: &Arc<App>,
    name: &str,
    arguments: &RawValue,
    request: &Incoming,
    door: &Door,
) -> Option<Box<RawValue>> {
    if let Some((_, replacement)) = REMOVED.iter().find(|(removed, _)| *removed == name) {
        return Some(
            Problem::new(Code::RemovedTool, format!("`{name}` no longer exists"))
                .hint(*replacement)
                .to_tool_result(),
        );
    }
    match name {
        "pml_discover" => Some(discover(app, arguments, request, &door.expose).await),
        "pml_execute" => Some(execute::execute(app, arguments, request, door).await),
        "pml_continue" => Some(runs::go_on_with(app, arguments, request, door).await),
        "pml_replan" => Some(runs::replan(app, arguments, request, door).await),
        "pml_abort" => Some(runs::abort(app, arguments, request).await),
        "pml_get_task_result" => Some(runs::task_result(app, arguments, request).await),
        _ => None,
    }
}

async fn discover(app: &App, arguments: &RawValue, asked: &Incoming, exposure: &Expose) -> Box<RawValue> {
    let wrong = |text: String| {
        Problem::new(Code::InvalidArguments, format!("the arguments of `pml_discover` are {text}"))
            .hint(r#"the smallest call is {"intent": "what you want to do"}"#)
            .to_tool_result()
    };
    // An array with the members' values in their order would be read as well.
    if !arguments.get().starts_with('{') {
        return wrong("not a JSON object".to_owned());
    }
    let request: Request = match serde_json::from_str(arguments.get()) {
        Ok(request) => request,
        Err(error) => return wrong(format!("wrong: {error}")),
    };
    let session = session_of(asked);
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

/// The session that a request is made in, by which its runs are known.
pub(super) fn session_of(request: &Incoming) -> String {
    format!("{}/{}", request.client.name, request.caller.session())
}

/// A page as a model reads it.
fn text(page: &Page) -> String {
    let mut blocks: Vec<String> = page
        .results
        .iter()
        .map(|found| {
            let call = match found.kind {
                Kind::Capability => format!("run as capability `{}`", found.name),
                Kind::Tool | Kind::All => format!("call as `{}`", found.name),
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
