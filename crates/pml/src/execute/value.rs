//! The outcome of a call as a program is given it.
//!
//! A result with structured content is that value; else a single text that is JSON is that JSON; else the text. Images,
//! audio and resources stay handles: the program can pass them on and return them, and never holds their bytes.

use pml_model::RunId;
use pml_model::json::{Fields, raw};
use pml_model::name::{printable, shortened};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::journal::{CallError, Delivered};
use crate::problem::Problem;
use crate::report::Part;
use crate::tools::{Outcome, ToolError};

/// The longest error text a program is given.
const MAX_ERROR_CHARACTERS: usize = 4_000;

/// How many bytes a result may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Each result of a call.
    pub(super) each: usize,
    /// All results of a run together.
    pub(super) all: usize,
    /// What is left of that.
    pub(super) left: usize,
}

impl Room {
    /// Why a result of `size` bytes has no room.
    pub(super) fn refusal(self, tool: &str, size: usize) -> Option<CallError> {
        let Room { each, all, left } = self;
        let (message, hint) = if size > each {
            (
                format!("the result of `{tool}` has {size} bytes and may have {each}"),
                "ask the tool for less, or raise `limits.result` in pml.toml",
            )
        } else if size > left {
            (
                format!(
                    "the result of `{tool}` has {size} bytes, and of the {all} that all results of a run may have {left} are left"
                ),
                "ask the tools for less, or do it in several runs",
            )
        } else {
            return None;
        };
        Some(CallError { hint: Some(hint.to_owned()), ..error("RESULT_TOO_LARGE", message) })
    }
}

/// The most that is kept of a direct call's result: what the store takes in one piece, with room for the rest.
pub(super) const DIRECT_BYTES: usize = 15 << 20;

/// What is kept of the one call of a direct run: the tool's own result, whole. Of a result that says that the tool
/// failed, the error's data is the whole result.
pub(super) fn delivered_whole(run: &RunId, call: u32, tool: &str, outcome: Outcome, room: Room) -> Delivered {
    match outcome {
        Outcome::Ok(result) if !pml_mcp::protocol::is_input_required(&result) => {
            match room.refusal(tool, result.get().len()) {
                Some(error) => Delivered::Error { call, error },
                None => Delivered::Result { call, value: result, parts: Vec::new() },
            }
        }
        Outcome::ToolError(ToolError::Result(result)) if result.get().len() <= MAX_ERROR_BYTES => {
            let data = Some(result.get().to_owned());
            Delivered::Error { call, error: CallError { data, ..told(&result) } }
        }
        other => delivered(run, call, tool, other, room),
    }
}

/// The result of a direct call as a person told it who found out what became of it.
pub(super) fn told_result(value: &RawValue) -> Box<RawValue> {
    let text = serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| value.get().to_owned());
    raw(&json!({ "content": [{ "type": "text", "text": text }] }))
}

/// The largest error of a direct call that is kept whole.
const MAX_ERROR_BYTES: usize = 1 << 20;

/// What the program is given for call number `call` of `run`.
pub(super) fn delivered(run: &RunId, call: u32, tool: &str, outcome: Outcome, room: Room) -> Delivered {
    let failed = |error| Delivered::Error { call, error };
    match outcome {
        Outcome::Ok(result) if pml_mcp::protocol::is_input_required(&result) => failed(CallError {
            hint: Some("call it outside a program, from a client that can answer".to_owned()),
            ..error("INPUT_REQUIRED", format!("`{tool}` asks for input while it works"))
        }),
        Outcome::Ok(result) => {
            let (value, parts) = value(run, call, &result);
            let size = value.get().len() + parts.iter().map(|part| part.content.get().len()).sum::<usize>();
            match room.refusal(tool, size) {
                Some(refusal) => failed(refusal),
                None => Delivered::Result { call, value, parts },
            }
        }
        Outcome::ToolError(ToolError::Result(result)) => failed(told(&result)),
        Outcome::ToolError(ToolError::Rpc(rpc)) => {
            failed(error("SERVER_ERROR", format!("`{tool}` answered: {}", readable(&rpc.to_string()))))
        }
        Outcome::NotSent(problem) | Outcome::NeedsApproval(problem) => failed(of_problem(&problem, false)),
        Outcome::Unknown(problem) => failed(of_problem(&problem, true)),
    }
}

fn error(code: &str, message: String) -> CallError {
    CallError { code: code.to_owned(), message, hint: None, data: None, unknown: false }
}

fn of_problem(problem: &Problem, unknown: bool) -> CallError {
    CallError {
        hint: problem.hint.clone(),
        unknown,
        ..error(&problem.code_text(), readable(&problem.message))
    }
}

/// A tool's own words on why it failed.
fn told(result: &RawValue) -> CallError {
    let fields = Fields::parse(result.get()).unwrap_or_default();
    let content: Vec<Value> = fields.read("content").unwrap_or_default();
    let texts: Vec<&str> = content.iter().filter_map(|part| part["text"].as_str()).collect();
    let text = if texts.is_empty() { "it gives no reason".to_owned() } else { readable(&texts.join("\n")) };
    let data = fields.get("structuredContent").map(|data| data.get().to_owned());
    let data = data.filter(|data| data.len() <= MAX_ERROR_CHARACTERS);
    CallError { data, ..error("TOOL_ERROR", text) }
}

fn readable(text: &str) -> String {
    shortened(&printable(text), MAX_ERROR_CHARACTERS)
}

/// What a result means to a program, and the parts it has only handles of.
fn value(run: &RunId, call: u32, result: &RawValue) -> (Box<RawValue>, Vec<Part>) {
    let fields = Fields::parse(result.get()).unwrap_or_default();
    if let Some(structured) = fields.get("structuredContent") {
        return (structured.to_owned(), Vec::new());
    }
    let content: Vec<Box<RawValue>> = fields.read("content").unwrap_or_default();
    let mut parts = Vec::new();
    let mut values: Vec<Box<RawValue>> = Vec::with_capacity(content.len());
    let alone = content.len() == 1;
    for (index, part) in content.into_iter().enumerate() {
        let read = Fields::parse(part.get()).unwrap_or_default();
        let text = || read.read::<String>("text");
        match read.read::<String>("type").as_deref() {
            Some("text") if alone => values.push(json_or_text(&text().unwrap_or_default())),
            Some("text") => values.push(raw(&text().unwrap_or_default())),
            Some("image" | "audio" | "resource") => {
                let uri = format!("pml://runs/{run}/calls/{call}/parts/{index}");
                values.push(raw(&handle(&read, &uri)));
                parts.push(Part { uri, content: part });
            }
            // A link is a handle already.
            Some(_) | None => values.push(part),
        }
    }
    match values.len() {
        0 => (raw(&Value::Null), parts),
        1 => (values.remove(0), parts),
        _ => (raw(&values), parts),
    }
}

fn json_or_text(text: &str) -> Box<RawValue> {
    match serde_json::from_str::<&RawValue>(text.trim()) {
        Ok(json) => json.to_owned(),
        Err(_) => raw(&text),
    }
}

/// What stands for an image, a sound or a resource.
fn handle(part: &Fields<'_>, uri: &str) -> Value {
    let resource: Value = part.read("resource").unwrap_or_default();
    let kind: String = part.read("type").unwrap_or_default();
    let mime: Option<String> =
        part.read("mimeType").or_else(|| resource["mimeType"].as_str().map(str::to_owned));
    let data: Option<String> = part.read("data");
    let base64 = data.as_deref().or(resource["blob"].as_str());
    let size = base64.map(decoded_len).or(resource["text"].as_str().map(str::len));
    let mut handle = json!({ "type": kind, "uri": uri });
    if let Some(mime) = mime {
        handle["mimeType"] = mime.into();
    }
    if let Some(size) = size {
        handle["size"] = size.into();
    }
    if let Some(name) = resource["uri"].as_str() {
        handle["of"] = name.into();
    }
    handle
}

/// How many bytes a text in base64 stands for.
fn decoded_len(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { each: 1_000, all: 5_000, left: 500 };

    fn run() -> RunId {
        RunId::new(1)
    }

    fn seen(result: &Value) -> String {
        match delivered(&run(), 2, "s:t", Outcome::Ok(raw(result)), ROOM) {
            Delivered::Result { value, .. } => value.get().to_owned(),
            Delivered::Error { error, .. } => format!("{}: {}", error.code, error.message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn structured_content_wins_then_json_then_text() {
        let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
        assert_eq!(seen(&json!({ "content": [], "structuredContent": { "a": 1 } })), r#"{"a":1}"#);
        assert_eq!(
            seen(&text(" {\"n\": 1e400, \"i\": 12345678901234567890} ")),
            r#"{"n": 1e400, "i": 12345678901234567890}"#
        );
        assert_eq!(seen(&text("plain {")), r#""plain {""#);
        assert_eq!(seen(&json!({ "content": [] })), "null");
        let two = json!({ "content": [{ "type": "text", "text": "1" }, { "type": "text", "text": "b" }] });
        assert_eq!(seen(&two), r#"["1","b"]"#);
    }

    #[test]
    fn an_image_is_a_handle_and_its_bytes_are_kept() {
        let image = json!({ "type": "image", "mimeType": "image/png", "data": "aGVsbG8=" });
        let result = raw(&json!({ "content": [image] }));
        let Delivered::Result { value, parts, .. } = delivered(&run(), 2, "s:t", Outcome::Ok(result), ROOM)
        else {
            panic!("a result");
        };
        let uri = format!("pml://runs/{}/calls/2/parts/0", run());
        let handle: Value = serde_json::from_str(value.get()).unwrap();
        assert_eq!(handle, json!({ "type": "image", "mimeType": "image/png", "size": 5, "uri": uri }));
        assert_eq!(parts.len(), 1);
        assert_eq!(serde_json::from_str::<Value>(parts[0].content.get()).unwrap(), image);
    }

    #[test]
    fn a_large_result_and_a_failed_tool_are_errors_with_codes() {
        let large = json!({ "structuredContent": "x".repeat(2_000) });
        assert_eq!(seen(&large), "RESULT_TOO_LARGE: the result of `s:t` has 2002 bytes and may have 1000");
        let last = json!({ "structuredContent": "x".repeat(600) });
        assert_eq!(
            seen(&last),
            "RESULT_TOO_LARGE: the result of `s:t` has 602 bytes, and of the 5000 that all results of a run may have 500 are left"
        );
        let failed =
            raw(&json!({ "content": [{ "type": "text", "text": "no \u{1b}[31mfile" }], "isError": true }));
        let Delivered::Error { error, .. } =
            delivered(&run(), 1, "s:t", Outcome::ToolError(ToolError::Result(failed)), ROOM)
        else {
            panic!("an error");
        };
        assert_eq!(error.code, "TOOL_ERROR");
        assert!(error.message.starts_with("no "), "the tool's own words: {}", error.message);
        assert!(!error.message.contains('\u{1b}'), "{}", error.message);
    }
}
