//! PML's own tools: definitions, descriptions and dispatch.

use std::sync::Arc;

use pml_mcp::server::IncomingRequest;
use pml_model::name::{is_plain, truncate_text};
use serde_json::value::RawValue;

use super::{ClientAccess, discover, execute, explore, runs};
use crate::app::App;
use crate::catalogue::ToolSnapshot;
use crate::problem::{ErrorCode, Problem};

/// The longest list of servers with their purposes, in characters; the others are counted.
const PURPOSES_CHARACTERS: usize = 230;
/// The longest list of servers by name, in characters.
const NAMES_CHARACTERS: usize = 50;
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
    let ours = std::iter::once(discover::definition(&connected))
        .chain(execute::definitions(&server_names(snapshot)));
    ours.chain(runs::definitions()).chain([explore::definition()]).collect()
}

/// The server instructions: how a client should use the gateway.
pub(super) fn instructions(snapshot: &ToolSnapshot) -> String {
    format!(
        "PML stands in front of all connected MCP servers. 1. Call `pml_discover` with what you want to do; it ranks the tools \
         of all servers and what worked before. 2. Write the work as one program over those tools and give it to \
         `pml_execute`; only what it returns comes back. Put values into `context` and read them as `args`; the second time \
         `pml_execute` with the intent alone, other values in it, is enough. If it answers with a ready call, confirm it by \
         sending that call as it is. 3. If it answers `running` or `approval_required`, call `pml_continue` with its \
         `workflowId`; whole results are read with `pml_get_task_result`. 4. An error carries a code, a sentence and a hint: \
         follow the hint. Connected: {}.",
        describe_servers(snapshot)
    )
}

/// The names of the connected servers, as many as fit.
fn server_names(snapshot: &ToolSnapshot) -> String {
    let names = snapshot.servers.iter().map(|server| server.name.to_string());
    join_bounded(names, NAMES_CHARACTERS, snapshot.servers.len())
}

/// The connected servers with their purposes, as many as fit.
fn describe_servers(snapshot: &ToolSnapshot) -> String {
    let named = snapshot.servers.iter().map(|server| match &server.description {
        Some(purpose) => format!("{} ({})", server.name, plain(purpose)),
        None => server.name.to_string(),
    });
    let joined = join_bounded(named, PURPOSES_CHARACTERS, snapshot.servers.len());
    if joined.is_empty() { "no servers yet".to_owned() } else { joined }
}

/// The first of `total` texts that fit into `characters`, at least one; the others are counted.
fn join_bounded(texts: impl Iterator<Item = String>, characters: usize, total: usize) -> String {
    let mut joined = String::new();
    for (place, text) in texts.enumerate() {
        if place > 0 && joined.chars().count() + text.chars().count() > characters {
            return format!("{joined} and {} more", total - place);
        }
        joined.push_str(if place > 0 { ", " } else { "" });
        joined.push_str(&text);
    }
    joined
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
        "pml_discover" => Some(discover::discover(app, arguments, request, door).await),
        "pml_execute" => Some(execute::execute(app, arguments, request, door).await),
        "pml_explore" => Some(explore::explore(app, arguments, request, door).await),
        "pml_continue" => Some(runs::continue_run(app, arguments, request, door).await),
        "pml_replan" => Some(runs::replan(app, arguments, request, door).await),
        "pml_abort" => Some(runs::abort(app, arguments, request).await),
        "pml_get_task_result" => Some(runs::task_result(app, arguments, request).await),
        _ => None,
    }
}
