//! `pml_execute` and what follows it, as clients see them.

use std::sync::Arc;
use std::time::Duration;

use pml_mcp::server::Incoming;
use pml_model::json::{Fields, empty_object, raw};
use pml_model::name::shortened;
use pml_model::question::Question;
use pml_model::{Digest, RunId, RunState};
use pml_store::Idempotency;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::is_callable;
use crate::app::App;
use crate::config::Expose;
use crate::execute::{Failure, Report, Standing, Task};
use crate::flow::{self, Executed};
use crate::plan::{Execution, Refused};
use crate::problem::{Code, Problem};

/// How long a client waits where it does not say: most give up at a minute.
const WAIT_MS: u64 = 45_000;
/// How long a program waits for its turn at least, where all sandboxes are in use.
const TURN: Duration = Duration::from_secs(2);
/// The longest it can be asked to.
const MAX_WAIT_MS: u64 = 10 * 60 * 1_000;
/// How much of a result the text says; the structured content has all of it.
const TEXT_CHARACTERS: usize = 20_000;

/// The arguments of `pml_execute`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    intent: String,
    implementation: Implementation,
    context: Option<Box<RawValue>>,
    #[serde(default)]
    options: Options,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
enum Implementation {
    Code { code: String },
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Options {
    timeout_ms: Option<u64>,
    wait_ms: Option<u64>,
    #[serde(default)]
    detach: bool,
}

/// The definitions of these tools.
pub(super) fn definitions(connected: &str) -> Vec<Box<RawValue>> {
    let outcome = json!({
        "type": "object",
        "properties": {
            "status": { "enum": ["success", "running", "approval_required", "failed"] },
            "workflowId": { "type": "string" },
            "result": {},
            "error": { "type": "object" },
            "tasks": { "type": "array", "items": { "type": "object" } },
            "console": { "type": "array", "items": { "type": "object" } },
            "consoleCut": { "type": "boolean" },
            "progress": { "type": "object" },
            "question": { "type": "object" },
            "wakeAt": { "type": "integer" }
        },
        "required": ["status"]
    });
    let of_run = json!({ "type": "string", "description": "the `workflowId` of a reply" });
    vec![
        raw(&json!({
            "name": "pml_execute",
            "title": "Run a program over tools",
            "description": format!(
                "Run TypeScript that calls tools of the connected servers, instead of calling them one by one. \
                 `code` is the body of an async function: call `await mcp.server.tool({{…}})` as `pml_discover` shows it, \
                 use `args` for `context`, and `return` what you need. Loops, conditions and `Promise.all` are welcome; \
                 there is no file, network or module access but through tools. Connected: {connected}."
            ),
            "inputSchema": {
                "type": "object",
                "properties": {
                    "intent": { "type": "string", "description": "what it is for, in plain words" },
                    "implementation": {
                        "type": "object",
                        "properties": { "type": { "const": "code" }, "code": { "type": "string" } },
                        "required": ["type", "code"],
                        "additionalProperties": false
                    },
                    "context": { "type": "object", "description": "the program's `args`" },
                    "options": {
                        "type": "object",
                        "properties": {
                            "timeoutMs": { "type": "integer", "minimum": 1 },
                            "waitMs": {
                                "type": "integer", "minimum": 0, "maximum": MAX_WAIT_MS, "default": WAIT_MS,
                                "description": "when to answer `running` instead"
                            },
                            "detach": { "type": "boolean", "default": false, "description": "answer at once" }
                        },
                        "additionalProperties": false
                    }
                },
                "required": ["intent", "implementation"],
                "additionalProperties": false
            },
            "outputSchema": outcome,
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true }
        })),
        raw(&json!({
            "name": "pml_continue",
            "title": "Wait for a run",
            "description": "Wait again for a run that answered `running`, and get its result.",
            "inputSchema": {
                "type": "object",
                "properties": { "workflow_id": of_run },
                "required": ["workflow_id"],
                "additionalProperties": false
            },
            "outputSchema": { "type": "object", "properties": { "status": { "type": "string" } }, "required": ["status"] },
            "annotations": { "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": true }
        })),
        raw(&json!({
            "name": "pml_abort",
            "title": "End a run",
            "description": "End a run; what it has done so far is told.",
            "inputSchema": {
                "type": "object",
                "properties": { "workflow_id": of_run, "reason": { "type": "string" } },
                "required": ["workflow_id"],
                "additionalProperties": false
            },
            "outputSchema": { "type": "object", "properties": { "status": { "type": "string" } }, "required": ["status"] },
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false }
        })),
    ]
}

/// Answers `pml_execute`.
pub(super) async fn execute(
    app: &Arc<App>,
    arguments: &RawValue,
    request: &Incoming,
    exposure: &Expose,
) -> Box<RawValue> {
    let asked: Request = match read("pml_execute", arguments, SMALLEST) {
        Ok(asked) => asked,
        Err(problem) => return problem.to_tool_result(),
    };
    let idempotency = match idempotency(&request.params, arguments) {
        Ok(idempotency) => idempotency,
        Err(problem) => return problem.to_tool_result(),
    };
    let Implementation::Code { code } = asked.implementation;
    let patience = match asked.options.detach {
        true => Duration::ZERO,
        false => Duration::from_millis(asked.options.wait_ms.unwrap_or(WAIT_MS).min(MAX_WAIT_MS)),
    };
    let execution = Execution {
        principal: request.client.principal.clone(),
        session: format!("{}/{}", request.client.name, request.caller.session()),
        intent: asked.intent,
        code,
        arguments: asked.context.unwrap_or_else(empty_object),
        timeout: asked.options.timeout_ms.map(Duration::from_millis),
        caller: request.caller.clone(),
        idempotency,
        patience: patience.max(TURN),
    };
    let executed = tokio::select! {
        executed = flow::execute(app, execution, |id| is_callable(id, exposure)) => executed,
        () = request.cancel.cancelled() => {
            return Problem::new(Code::Cancelled, "the request was cancelled before anything ran").to_tool_result();
        }
    };
    let handle = match executed {
        Ok(Executed::Going(handle)) => handle,
        Ok(Executed::Known(id, standing)) => return reply(&id, &standing),
        Ok(Executed::Refused(refused)) => return refusal(&refused),
        Err(problem) => return problem.to_tool_result(),
    };
    let standing = tokio::select! {
        standing = handle.wait(patience) => standing,
        () = request.cancel.cancelled() => {
            handle.cancel();
            handle.wait(Duration::from_secs(10)).await
        }
    };
    if let Standing::Running(_) | Standing::Interrupted = standing
        && let Err(problem) = handle.kept().await
    {
        return problem.to_tool_result();
    }
    reply(&handle.id, &standing)
}

const SMALLEST: &str =
    r#"the smallest call is {"intent": "…", "implementation": {"type": "code", "code": "return 1"}}"#;

/// Answers `pml_continue`: waits for a run of the asker's.
pub(super) async fn wait(app: &Arc<App>, arguments: &RawValue, request: &Incoming) -> Box<RawValue> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Which {
        workflow_id: String,
    }
    let id =
        match read::<Which>("pml_continue", arguments, OF_RUN).and_then(|which| run_id(&which.workflow_id)) {
            Ok(id) => id,
            Err(problem) => return problem.to_tool_result(),
        };
    match wait_for(app, &id, request).await {
        Ok(standing) => reply(&id, &standing),
        Err(problem) => problem.to_tool_result(),
    }
}

async fn wait_for(app: &Arc<App>, id: &RunId, request: &Incoming) -> Result<Standing, Problem> {
    let whose = &request.client.principal;
    let until = tokio::time::Instant::now() + Duration::from_millis(WAIT_MS);
    loop {
        let left = until.saturating_duration_since(tokio::time::Instant::now());
        if let Some(handle) = flow::run_here(app, whose, id) {
            return Ok(tokio::select! {
                standing = handle.wait(left) => standing,
                () = request.cancel.cancelled() => handle.standing(),
            });
        }
        let standing = flow::standing(app, whose, id).await?;
        let goes_on = matches!(standing, Standing::Running(_) | Standing::Interrupted | Standing::Elsewhere);
        if !goes_on || left.is_zero() || request.cancel.is_cancelled() {
            return Ok(standing);
        }
        // Another process has it; its end is seen in the database.
        tokio::select! {
            () = tokio::time::sleep(left.min(Duration::from_millis(100))) => {}
            () = request.cancel.cancelled() => {}
        }
    }
}

/// Answers `pml_abort`.
pub(super) async fn abort(app: &Arc<App>, arguments: &RawValue, request: &Incoming) -> Box<RawValue> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Which {
        workflow_id: String,
        reason: Option<String>,
    }
    let ended = async {
        let which: Which = read("pml_abort", arguments, OF_RUN)?;
        let id = run_id(&which.workflow_id)?;
        let reason = which.reason.unwrap_or_default();
        Ok((flow::abort(app, &request.client.principal, &id, &reason).await?, id))
    };
    match ended.await {
        Ok((standing, id)) => reply(&id, &standing),
        Err(problem) => Problem::to_tool_result(&problem),
    }
}

const OF_RUN: &str = r#"the call is {"workflow_id": "run_…"}, with the `workflowId` of a reply"#;

fn read<'a, T: Deserialize<'a>>(tool: &str, arguments: &'a RawValue, hint: &str) -> Result<T, Problem> {
    let wrong = |text: String| {
        Problem::new(Code::InvalidArguments, format!("the arguments of `{tool}` are {text}")).hint(hint)
    };
    // An array with the members' values in their order would be read as well.
    if !arguments.get().starts_with('{') {
        return Err(wrong("not a JSON object".to_owned()));
    }
    serde_json::from_str(arguments.get()).map_err(|error| wrong(format!("wrong: {error}")))
}

fn run_id(text: &str) -> Result<RunId, Problem> {
    RunId::parse(text).map_err(|error| Problem::new(Code::UnknownRun, error.to_string()))
}

/// The key under which a client repeats a request without repeating the run.
fn idempotency(params: &RawValue, arguments: &RawValue) -> Result<Option<Idempotency>, Problem> {
    let params = Fields::parse(params.get()).unwrap_or_default();
    let Some(meta) = params.get("_meta") else { return Ok(None) };
    let meta = Fields::parse(meta.get()).unwrap_or_default();
    let Some(key) = meta.get("pml/idempotencyKey") else { return Ok(None) };
    match serde_json::from_str::<String>(key.get()) {
        Ok(key) if !key.is_empty() && key.len() <= 200 => {
            Ok(Some(Idempotency { key, request: Digest::of(arguments.get().as_bytes()) }))
        }
        Ok(_) | Err(_) => {
            Err(Problem::new(Code::InvalidRequest, "`pml/idempotencyKey` is not a text of 1 to 200 bytes"))
        }
    }
}

/// A program that is not run, as the client is told of it.
fn refusal(refused: &Refused) -> Box<RawValue> {
    let mut error = serde_json::to_value(&refused.problem).unwrap_or_default();
    if let Some(line) = refused.line {
        error["line"] = line.into();
    }
    let mut text = match refused.line {
        Some(line) => format!("not run: line {line}: {}", refused.problem),
        None => format!("not run: {}", refused.problem),
    };
    if refused.all.len() > 1 {
        text.push_str(&format!("\nall {} reasons:\n{}", refused.all.len(), refused.all.join("\n")));
    }
    tool_result(&text, &json!({ "status": "failed", "error": error }), &[], true)
}

/// How a run stands, as the client is told of it.
fn reply(id: &RunId, standing: &Standing) -> Box<RawValue> {
    match standing {
        Standing::Over(report) if report.state == RunState::Done => success(id, report),
        Standing::Over(report) => failed(id, report),
        Standing::Running(progress) => {
            let text = format!(
                "{id} is running, {} of {} calls ended. Call `pml_continue` with it to wait again.",
                progress.ended, progress.calls
            );
            tool_result(
                &text,
                &json!({ "status": "running", "workflowId": id, "progress": progress }),
                &[],
                false,
            )
        }
        Standing::Interrupted => {
            let text = format!(
                "{id} was interrupted and nobody works on it yet. It is taken up again by itself, or with `pml runs resume {id}`."
            );
            tool_result(&text, &json!({ "status": "running", "workflowId": id }), &[], false)
        }
        Standing::Elsewhere => {
            let text = format!("{id} goes on in another process. Call `pml_continue` with it to wait again.");
            tool_result(&text, &json!({ "status": "running", "workflowId": id }), &[], false)
        }
        Standing::Waiting { question: Some(question), .. } => asks(id, question),
        Standing::Waiting { question: None, wake_at } => {
            let text = format!("{id} sleeps until its timer is due. Call `pml_continue` with it later.");
            let body = json!({ "status": "running", "workflowId": id, "wakeAt": wake_at });
            tool_result(&text, &body, &[], false)
        }
    }
}

fn asks(id: &RunId, question: &Question) -> Box<RawValue> {
    let Question::InDoubt { calls } = question;
    let calls: Vec<String> =
        calls.iter().map(|doubt| format!("call {} of `{}`", doubt.call, doubt.tool)).collect();
    let text = format!(
        "{id} was interrupted; whether these acted is not known: {}. A person decides with `pml runs resume {id}`.",
        calls.join(", ")
    );
    tool_result(
        &text,
        &json!({ "status": "approval_required", "workflowId": id, "question": question }),
        &[],
        false,
    )
}

fn success(id: &RunId, report: &Report) -> Box<RawValue> {
    let result = report.result.as_ref().map_or("null", |result| result.get());
    let mut body = Fields::default();
    body.set("status", raw(&"success"));
    body.set("workflowId", raw(id));
    body.set("result", report.result.clone().unwrap_or_else(|| raw(&Value::Null)));
    body.set("tasks", raw(&report.tasks.iter().map(brief).collect::<Vec<_>>()));
    if !report.console.is_empty() {
        body.set("console", raw(&report.console));
    }
    if report.console_cut {
        body.set("consoleCut", raw(&true));
    }
    let content: Vec<&RawValue> = report.contents().collect();
    result_of(&shortened(result, TEXT_CHARACTERS), &body.to_raw(), &content, false)
}

fn failed(id: &RunId, report: &Report) -> Box<RawValue> {
    let fallback = Failure::nothing_known();
    let error = report.error.as_ref().unwrap_or(&fallback);
    let place = error.line.map(|line| format!(" (line {line})")).unwrap_or_default();
    let mut text = format!("{}: {}{place}", error.code, error.message);
    if let Some(hint) = &error.hint {
        text.push_str(&format!("\nhint: {hint}"));
    }
    if !report.tasks.is_empty() {
        let done = report.tasks.iter().map(|task| format!("{} {}", task.tool, word(task)));
        text.push_str(&format!("\ncalls so far: {}", done.collect::<Vec<_>>().join(", ")));
    }
    text.push_str(&format!("\nrun: {id}"));
    let mut body = json!({
        "status": "failed", "workflowId": id, "error": error, "tasks": report.tasks, "console": report.console,
    });
    if report.console_cut {
        body["consoleCut"] = true.into();
    }
    tool_result(&text, &body, &[], true)
}

fn word(task: &Task) -> String {
    serde_json::to_value(task.status)
        .ok()
        .and_then(|word| word.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// A call of a run that went well.
fn brief(task: &Task) -> Value {
    json!({ "nodeId": task.node_id, "tool": task.tool, "status": task.status, "executionTimeMs": task.execution_time_ms })
}

fn tool_result(text: &str, body: &Value, content: &[&RawValue], is_error: bool) -> Box<RawValue> {
    result_of(text, &raw(body), content, is_error)
}

fn result_of(text: &str, body: &RawValue, content: &[&RawValue], is_error: bool) -> Box<RawValue> {
    let first = raw(&json!({ "type": "text", "text": text }));
    let all: Vec<&RawValue> = std::iter::once(&*first).chain(content.iter().copied()).collect();
    let mut result = Fields::default();
    result.set("content", raw(&all));
    result.set("structuredContent", body.to_owned());
    result.set("isError", raw(&is_error));
    result.to_raw()
}
