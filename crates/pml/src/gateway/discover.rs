//! `pml_discover`: its definition, its arguments and its reply.

use pml_mcp::server::IncomingRequest;
use pml_model::json::{Fields, raw};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::ClientAccess;
use super::request::{parse_arguments, session_id};
use crate::app::App;
use crate::discover::{DiscoverPage, DiscoverRequest, DiscoverResult, RelatedKind, ResultDetail, ResultKind};
use crate::flow;
use crate::problem::Problem;

/// Bytes: the list of a brief reply stays within this, which is less than 700 tokens. The structured content is
/// complete.
const TEXT_BYTES: usize = 1_800;
/// Bytes that are kept free for each result that follows: enough for its name.
const NAME_BYTES: usize = 60;

/// The definition of `pml_discover`; `connected` names the servers and what they are for.
pub(super) fn definition(connected: &str) -> Box<RawValue> {
    raw(&json!({
        "name": "pml_discover",
        "title": "Find tools for an intent",
        "description": format!(
            "Find tools, and procedures that worked before, for what you want to do. Call them from a program with `pml_execute`, \
             or one tool alone by its `name`. Connected: {connected}."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "intent": { "type": "string" },
                "filter": { "type": "object", "description": "{type: tool | capability | all, minScore}" },
                "limit": { "type": "integer" },
                "offset": { "type": "integer" },
                "detail": { "enum": ["brief", "full"], "description": "full: with schemas" }
            },
            "required": ["intent"]
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
                        "signature": { "type": "string" }, "schemas": { "type": "object" },
                        "also": { "type": "array", "items": { "type": "string" } }
                    },
                    "required": ["type", "id", "name", "score", "signature"]
                } },
                "total": { "type": "integer" },
                "readyCall": { "type": "object" },
                "suggestions": { "type": "array", "items": {
                    "type": "object",
                    "properties": {
                        "type": { "enum": ["capability", "tool", "next_tool"] }, "id": { "type": "string" },
                        "toolId": { "type": "string" }, "name": { "type": "string" }, "reason": { "type": "string" },
                        "confidence": { "type": "number" }
                    },
                    "required": ["type", "name", "reason", "confidence"]
                } },
                "notes": { "type": "array", "items": { "type": "string" } }
            }
        },
        "annotations": { "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false }
    }))
}

/// Answers `pml_discover`.
pub(super) async fn discover(
    app: &App,
    arguments: &RawValue,
    asked: &IncomingRequest,
    door: &ClientAccess,
) -> Box<RawValue> {
    match find(app, arguments, asked, door).await {
        Ok((page, detail)) => {
            let mut result = Fields::default();
            result.set("content", raw(&[json!({ "type": "text", "text": text(&page, detail) })]));
            result.set("structuredContent", raw(&page));
            result.set("isError", raw(&Value::Bool(false)));
            result.to_raw()
        }
        Err(problem) => problem.to_tool_result(),
    }
}

async fn find(
    app: &App,
    arguments: &RawValue,
    asked: &IncomingRequest,
    door: &ClientAccess,
) -> Result<(DiscoverPage, ResultDetail), Problem> {
    let hint = r#"the smallest call is {"intent": "what you want to do"}"#;
    let request: DiscoverRequest = parse_arguments("pml_discover", arguments, hint)?;
    let session = session_id(asked);
    let whose = (&asked.client.principal, Some(session.as_str()));
    let mut page = flow::discover(app, whose, &request, |tool| door.may_call(&tool.id)).await?;
    if !says_how_many(arguments) {
        page.end_at_falloff();
    }
    Ok((page, request.detail))
}

/// Whether the client itself says which results it wants. Otherwise the list ends where the scores fall off.
fn says_how_many(arguments: &RawValue) -> bool {
    let arguments = Fields::parse(arguments.get()).unwrap_or_default();
    ["limit", "offset"].iter().any(|name| arguments.get(name).is_some())
}

/// A page of results as text for a model.
fn text(page: &DiscoverPage, detail: ResultDetail) -> String {
    let (mut lines, room) = match detail {
        ResultDetail::Brief => brief_lines(page),
        ResultDetail::Full => (page.results.iter().map(full_block).collect(), TEXT_BYTES),
    };
    if let Some(call) = &page.ready_call {
        lines.insert(1.min(lines.len()), format!("If it is right, send:\n{}", call.text()));
    }
    if page.total > page.results.len() && !page.results.is_empty() {
        lines.push(format!("{} of {} results; more with `limit`", page.results.len(), page.total));
    }
    lines.extend(related_line(page, room));
    let about = if page.total == 0 { "nothing found" } else { "note" };
    lines.extend(page.notes.iter().map(|note| format!("{about}: {note}")));
    lines.join("\n")
}

/// The suggestions beside the results in one line, as many as fit into the room that is left.
fn related_line(page: &DiscoverPage, room: usize) -> Option<String> {
    let mut line = String::new();
    for related in page.suggestions.iter().filter(|related| related.is_likely()) {
        let next = match related.kind {
            RelatedKind::NextTool => "next ",
            RelatedKind::Capability => "capability ",
            RelatedKind::Tool => "",
        };
        let more = format!("{}{next}`{}`", if line.is_empty() { "see also: " } else { ", " }, related.name);
        if line.len() + more.len() > room {
            break;
        }
        line.push_str(&more);
    }
    (!line.is_empty()).then_some(line)
}

/// One line per result, with as much detail as fits, and the room that is left.
fn brief_lines(page: &DiscoverPage) -> (Vec<String>, usize) {
    let mut room = TEXT_BYTES.saturating_sub(page.ready_call.as_ref().map_or(0, |call| call.text().len()));
    let mut lines = Vec::with_capacity(page.results.len());
    for (rank, found) in page.results.iter().enumerate() {
        let has_call = rank == 0 && page.ready_call.is_some();
        let reserved = (page.results.len() - rank - 1) * NAME_BYTES;
        let forms = if has_call { vec![name_and_description(found)] } else { forms(found) };
        let line = forms.iter().find(|form| form.len() + reserved <= room).or(forms.last());
        let line = format!("{}[{:.2}]{}", shown_id(found), found.score, line.map_or("", String::as_str));
        room = room.saturating_sub(line.len() + 1);
        lines.push(line);
    }
    (lines, room)
}

/// The id of a tool, which is also its name over MCP with `__` for the colon.
fn shown_id(found: &DiscoverResult) -> String {
    match found.kind {
        ResultKind::Capability => String::new(),
        ResultKind::Tool | ResultKind::All => format!("{} ", found.id),
    }
}

/// What follows the score of a result, in less and less detail.
fn forms(found: &DiscoverResult) -> Vec<String> {
    let description = description_comment(found);
    let name = format!("{}{}", exposed_name(found), others(found));
    vec![
        format!(" {}{description}{name}", found.signature),
        format!(" {}{description}{name}", found.call),
        format!(" {}{name}", found.call),
        name,
    ]
}

fn name_and_description(found: &DiscoverResult) -> String {
    format!(" capability `{}`: {}", found.name, found.description)
}

fn description_comment(found: &DiscoverResult) -> String {
    let first = found.description.split(". ").next().unwrap_or_default().trim_end_matches('.');
    match first.is_empty() {
        true => String::new(),
        false => format!(" // {}", pml_model::name::truncate_text(first, DESCRIPTION_CHARACTERS)),
    }
}

/// The longest description of a result in the text, in characters.
const DESCRIPTION_CHARACTERS: usize = 90;

/// The name to call a tool by over MCP, where it is not `server__tool`.
fn exposed_name(found: &DiscoverResult) -> String {
    if found.kind == ResultKind::Capability {
        return format!(" (capability `{}`)", found.name);
    }
    match found.id.replacen(':', "__", 1) == found.name {
        true => String::new(),
        false => format!(" (alone: `{}`)", found.name),
    }
}

/// The tools that a result stands for.
fn others(found: &DiscoverResult) -> String {
    let named = found.also.iter().take(MAX_OTHERS).map(String::as_str).collect::<Vec<_>>().join(", ");
    match found.also.len() {
        0 => String::new(),
        1..=MAX_OTHERS => format!(" (also {named})"),
        count => format!(" (also {named} and {} more)", count - MAX_OTHERS),
    }
}

/// The largest number of other tools that the text of a result names.
const MAX_OTHERS: usize = 3;

fn full_block(found: &DiscoverResult) -> String {
    let call = match found.kind {
        ResultKind::Capability => format!("run as capability `{}`", found.name),
        ResultKind::Tool | ResultKind::All => format!("call as `{}`", found.name),
    };
    format!("{} [{:.2}] {call}{}\n{}\n", found.id, found.score, others(found), found.signature)
}
