//! Converts the outcome of a call to the value that the program receives.
//!
//! A result with structured content becomes that value; else a single text that is JSON becomes that JSON; else the
//! text. Images, audio and resources become handles: the program can pass them on and return them, but never holds
//! their bytes.

use pml_model::ErrorCode;
use pml_model::RunId;
use pml_model::json::{Fields, raw};
use pml_model::name::{printable, truncate_text};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::delivery::{CallFailure, RunDelivery};
use crate::problem::Problem;
use crate::report::ContentPart;
use crate::tools::{CallOutcome, ToolError};

/// The number of characters of an error text that a program receives.
const MAX_ERROR_CHARACTERS: usize = 4_000;

/// The limits on the size of results, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResultBudget {
    /// The limit of each result of a call.
    pub(super) each: usize,
    /// The limit of all results of a run together.
    pub(super) all: usize,
    /// What remains of `all`.
    pub(super) left: usize,
}

impl ResultBudget {
    /// The failure for a result of `size` bytes that exceeds a limit; `None` if it fits.
    pub(super) fn refusal(self, tool: &str, size: usize) -> Option<CallFailure> {
        let ResultBudget { each, all, left } = self;
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
        Some(CallFailure { hint: Some(hint.to_owned()), ..error(ErrorCode::ResultTooLarge, message) })
    }
}

/// 15 MiB: the limit of a stored direct call result. It leaves room for the rest of the record in the largest entry
/// that the store accepts.
pub(super) const DIRECT_BYTES: usize = 15 << 20;

/// The journal record of the call of a direct run: the tool's own result, complete. If the result is marked as an
/// error, the data of the error is the complete result.
pub(super) fn whole_result_delivery(
    run: &RunId,
    call: u32,
    tool: &str,
    outcome: CallOutcome,
    room: ResultBudget,
) -> RunDelivery {
    match outcome {
        CallOutcome::Ok(result) if !pml_mcp::protocol::is_input_required(&result) => {
            match room.refusal(tool, result.get().len()) {
                Some(error) => RunDelivery::Error { call, error },
                None => RunDelivery::Result {
                    call,
                    value: result,
                    parts: Vec::new(),
                    saved_ms: None,
                    age_ms: None,
                    not_ahead: None,
                },
            }
        }
        CallOutcome::ToolError(ToolError::Result(result)) if result.get().len() <= MAX_ERROR_BYTES => {
            let data = Some(result.get().to_owned());
            RunDelivery::Error { call, error: CallFailure { data, ..told(&result) } }
        }
        other => outcome_delivery(run, call, tool, other, room),
    }
}

/// The result of a direct call in doubt, as a person reported it.
pub(super) fn told_result(value: &RawValue) -> Box<RawValue> {
    let text = serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| value.get().to_owned());
    raw(&json!({ "content": [{ "type": "text", "text": text }] }))
}

/// 1 MiB: the largest error of a direct call that is kept complete.
const MAX_ERROR_BYTES: usize = 1 << 20;

/// The value that a program would get for a result; `None` where that is not all of it, or the result is a question.
pub(crate) fn complete_value(result: &RawValue) -> Option<Box<RawValue>> {
    if pml_mcp::protocol::is_input_required(result) {
        return None;
    }
    // Only parts are named after their call.
    let (value, parts) = value(&RunId::new(0), 0, result);
    parts.is_empty().then_some(value)
}

/// The delivery to the program for call number `call` of `run`.
pub(super) fn outcome_delivery(
    run: &RunId,
    call: u32,
    tool: &str,
    outcome: CallOutcome,
    room: ResultBudget,
) -> RunDelivery {
    let failed = |error| RunDelivery::Error { call, error };
    match outcome {
        CallOutcome::Ok(result) if pml_mcp::protocol::is_input_required(&result) => failed(CallFailure {
            hint: Some(
                "run the program from a client that can be asked (elicitation), and have it wait".to_owned(),
            ),
            ..error(ErrorCode::InputRequired, format!("`{tool}` asks for input while it works"))
        }),
        CallOutcome::Ok(result) => {
            let (value, parts) = value(run, call, &result);
            let size = value.get().len() + parts.iter().map(|part| part.content.get().len()).sum::<usize>();
            match room.refusal(tool, size) {
                Some(refusal) => failed(refusal),
                None => {
                    RunDelivery::Result { call, value, parts, saved_ms: None, age_ms: None, not_ahead: None }
                }
            }
        }
        CallOutcome::ToolError(ToolError::Result(result)) => failed(told(&result)),
        CallOutcome::ToolError(ToolError::Rpc(rpc)) => failed(error(
            ErrorCode::ServerError,
            format!("`{tool}` answered: {}", readable(&rpc.to_string())),
        )),
        CallOutcome::NotSent(problem)
        | CallOutcome::NeedsApproval(problem)
        | CallOutcome::Withheld(problem) => failed(of_problem(&problem, false)),
        CallOutcome::Unknown(problem) => failed(of_problem(&problem, true)),
    }
}

fn error(code: ErrorCode, message: String) -> CallFailure {
    CallFailure { code, message, hint: None, data: None, unknown: false }
}

fn of_problem(problem: &Problem, unknown: bool) -> CallFailure {
    CallFailure { hint: problem.hint.clone(), unknown, ..error(problem.code, readable(&problem.message)) }
}

/// The failure with the tool's own error text.
fn told(result: &RawValue) -> CallFailure {
    let fields = Fields::parse(result.get()).unwrap_or_default();
    let content: Vec<Value> = fields.read("content").unwrap_or_default();
    let texts: Vec<&str> = content.iter().filter_map(|part| part["text"].as_str()).collect();
    let text = if texts.is_empty() { "it gives no reason".to_owned() } else { readable(&texts.join("\n")) };
    let data = fields.get("structuredContent").map(|data| data.get().to_owned());
    let data = data.filter(|data| data.len() <= MAX_ERROR_CHARACTERS);
    CallFailure { data, ..error(ErrorCode::ToolError, text) }
}

fn readable(text: &str) -> String {
    truncate_text(&printable(text), MAX_ERROR_CHARACTERS)
}

/// The value of a result for the program, and the parts that it contains only handles of.
fn value(run: &RunId, call: u32, result: &RawValue) -> (Box<RawValue>, Vec<ContentPart>) {
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
                parts.push(ContentPart { uri, content: part });
            }
            // A resource link is a handle already.
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

/// The handle that represents an image, a sound or a resource.
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

/// The number of bytes that a base64 text encodes.
fn decoded_len(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: ResultBudget = ResultBudget { each: 1_000, all: 5_000, left: 500 };

    fn run() -> RunId {
        RunId::new(1)
    }

    fn seen(result: &Value) -> String {
        match outcome_delivery(&run(), 2, "s:t", CallOutcome::Ok(raw(result)), ROOM) {
            RunDelivery::Result { value, .. } => value.get().to_owned(),
            RunDelivery::Error { error, .. } => format!("{}: {}", error.code, error.message),
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
        let RunDelivery::Result { value, parts, .. } =
            outcome_delivery(&run(), 2, "s:t", CallOutcome::Ok(result), ROOM)
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
        let RunDelivery::Error { error, .. } =
            outcome_delivery(&run(), 1, "s:t", CallOutcome::ToolError(ToolError::Result(failed)), ROOM)
        else {
            panic!("an error");
        };
        assert_eq!(error.code, ErrorCode::ToolError);
        assert!(error.message.starts_with("no "), "the tool's own words: {}", error.message);
        assert!(!error.message.contains('\u{1b}'), "{}", error.message);
    }
}
