//! `pml_execute` and what follows it, as clients see them.

use std::sync::Arc;
use std::time::Duration;

use pml_mcp::server::Incoming;
use pml_model::json::{Fields, empty_object, raw};
use pml_model::{Digest, ToolId};
use pml_store::Idempotency;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::ask::{self, Began};
use super::meta_tools::session_of;
use super::reply::{refusal, reply, suggestions};
use super::runs::read;
use super::{Door, is_callable};
use crate::app::App;
use crate::execute::Handle;
use crate::flow::{self, Executed};
use crate::plan::Pause;
use crate::planning::{Asked, Execution};
use crate::problem::{Code, Problem};
use crate::report::Standing;

/// How long a client waits where it does not say: most give up at a minute.
pub(super) const WAIT_MS: u64 = 45_000;
/// How long a program waits for its turn at least, where all sandboxes are in use.
pub(super) const TURN: Duration = Duration::from_secs(2);
/// Where in `_meta` a request has the key that makes it the same run when it is repeated.
const IDEMPOTENCY_KEY: &str = "pml/idempotencyKey";
/// The longest it can be asked to.
const MAX_WAIT_MS: u64 = 10 * 60 * 1_000;

/// The arguments of `pml_execute`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    intent: String,
    implementation: Option<Implementation>,
    context: Option<Box<RawValue>>,
    #[serde(default)]
    options: Options,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Implementation {
    r#type: Kind,
    code: Option<String>,
    #[serde(alias = "dag_structure")]
    dag_structure: Option<Box<RawValue>>,
    #[serde(alias = "tool_id")]
    tool_id: Option<String>,
    #[serde(alias = "default_args")]
    default_args: Option<Box<RawValue>>,
    id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Code,
    Dag,
    Tool,
    Capability,
}

impl Implementation {
    /// What is to be run.
    fn work(self, options: &Options) -> Result<Asked, Problem> {
        let missing = |what: &str| {
            Problem::new(Code::InvalidArguments, format!("`implementation.{what}` is missing")).hint(SMALLEST)
        };
        Ok(match self.r#type {
            Kind::Code => Asked::Code(self.code.ok_or_else(|| missing("code"))?),
            Kind::Dag => Asked::Dag {
                document: self.dag_structure.ok_or_else(|| missing("dagStructure"))?.get().to_owned(),
                pause: options.pause(),
            },
            Kind::Tool => Asked::Tool {
                tool: ToolId::parse(&self.tool_id.ok_or_else(|| missing("toolId"))?)
                    .map_err(|error| Problem::new(Code::UnknownTool, error.to_string()))?,
                defaults: self.default_args.unwrap_or_else(empty_object),
            },
            Kind::Capability => Asked::Capability(self.id.ok_or_else(|| missing("id"))?),
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Options {
    timeout_ms: Option<u64>,
    wait_ms: Option<u64>,
    #[serde(default)]
    detach: bool,
    #[serde(default, alias = "per_layer_validation")]
    per_layer_validation: bool,
    #[serde(default, alias = "decision_points")]
    decision_points: Pause,
    learn: Option<bool>,
    cache: Option<bool>,
    #[serde(alias = "idempotency_key")]
    idempotency_key: Option<String>,
}

impl Options {
    fn pause(&self) -> Pause {
        if self.per_layer_validation { Pause::PerLayer } else { self.decision_points }
    }
}

/// The definitions of these tools.
pub(super) fn definitions(connected: &str) -> Vec<Box<RawValue>> {
    let outcome = json!({
        "type": "object",
        "properties": {
            "status": { "enum": ["success", "running", "approval_required", "layer_complete", "suggestions", "failed"] },
            "workflowId": { "type": "string" },
            "result": {},
            "error": { "type": "object" },
            "tasks": { "type": "array", "items": { "type": "object" } },
            "outcomes": { "type": "array", "items": { "type": "object" } },
            "console": { "type": "array", "items": { "type": "object" } },
            "progress": { "type": "object" },
            "question": { "type": "object" },
            "layer": { "type": "object" },
            "capabilityId": { "type": "string" },
            "next": { "type": "array", "items": { "type": "object" } },
            "suggestions": { "type": "object" }
        },
        "required": ["status"]
    });
    vec![raw(&json!({
        "name": "pml_execute",
        "title": "Run a program over tools",
        "description": format!(
            "Run TypeScript that calls tools of the connected servers, instead of calling them one by one. \
             `code` is the body of an async function: call `await mcp.server.tool({{…}})` as `pml_discover` shows it, \
             use `args` for `context`, and `return` what you need. Loops, conditions and `Promise.all` are welcome; \
             there is no file, network or module access but through tools. Without `implementation` a procedure that worked \
             for such an intent before is run with the values the intent names, or suggested. Connected: {connected}."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "intent": { "type": "string", "description": "what it is for, in plain words" },
                "implementation": {
                    "type": "object",
                    "properties": {
                        "type": { "enum": ["code", "dag", "tool", "capability"] },
                        "code": { "type": "string" },
                        "dagStructure": {
                            "type": "object",
                            "description": "{tasks: [{id, tool | code, arguments, dependsOn, safeToFail?, timeoutMs?, retries?}]}; \
                                 `{\"$ref\": \"t1.field\"}` and `{{t1.field}}` stand for results, `args` for `context`"
                        },
                        "toolId": { "type": "string" },
                        "defaultArgs": { "type": "object" },
                        "id": { "type": "string", "description": "of the capability, or its name" }
                    },
                    "required": ["type"],
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
                        "detach": { "type": "boolean", "default": false, "description": "answer at once" },
                        "perLayerValidation": { "type": "boolean", "default": false, "description": "dag: show each layer's results before the next" },
                        "decisionPoints": { "enum": ["none", "per_layer", "on_error", "manual"], "default": "none" },
                        "learn": { "type": "boolean", "default": true },
                        "cache": { "type": "boolean", "default": true },
                        "idempotencyKey": {
                            "type": "string", "maxLength": MAX_KEY_BYTES,
                            "description": "the same key: the same run; another: another run, also while an equal one waits for approval"
                        }
                    },
                    "additionalProperties": false
                }
            },
            "required": ["intent"],
            "additionalProperties": false
        },
        "outputSchema": outcome,
        "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true }
    }))]
}

/// Answers `pml_execute`.
pub(super) async fn execute(
    app: &Arc<App>,
    arguments: &RawValue,
    request: &Incoming,
    door: &Door,
) -> Box<RawValue> {
    let asked: Request = match read("pml_execute", arguments, SMALLEST) {
        Ok(asked) => asked,
        Err(problem) => return problem.to_tool_result(),
    };
    let option = asked.options.idempotency_key.as_deref();
    let idempotency = match idempotency(&request.params, option, || Digest::of(arguments.get().as_bytes())) {
        Ok(idempotency) => idempotency,
        Err(problem) => return problem.to_tool_result(),
    };
    let work = match asked.implementation.map(|implementation| implementation.work(&asked.options)) {
        Some(Ok(work)) => work,
        Some(Err(problem)) => return problem.to_tool_result(),
        None => Asked::Anything,
    };
    let patience = match asked.options.detach {
        true => Duration::ZERO,
        false => Duration::from_millis(asked.options.wait_ms.unwrap_or(WAIT_MS).min(MAX_WAIT_MS)),
    };
    let config = app.config();
    let execution = Execution {
        principal: request.client.principal.clone(),
        session: session_of(request),
        intent: asked.intent,
        work,
        arguments: asked.context.unwrap_or_else(empty_object),
        timeout: asked.options.timeout_ms.map(Duration::from_millis),
        caller: request.caller.clone(),
        idempotency,
        patience: patience.max(TURN),
        by: config.approvals.by.unwrap_or(door.by),
        dynamic: config.approvals.dynamic,
        learn: config.memory.learn && asked.options.learn.unwrap_or(true),
        capability: None,
        cache: config.memory.cache && asked.options.cache.unwrap_or(true),
    };
    let executed = tokio::select! {
        executed = flow::execute(app, execution, |id| is_callable(id, &door.expose)) => executed,
        () = request.cancel.cancelled() => {
            return Problem::new(Code::Cancelled, "the request was cancelled before anything ran").to_tool_result();
        }
    };
    let mut began = Began::ByThisRequest;
    let (id, standing) = match executed {
        Ok(Executed::Going(handle)) => match wait(&handle, patience, request).await {
            Ok(standing) => (handle.id.clone(), standing),
            Err(problem) => return problem.to_tool_result(),
        },
        Ok(Executed::Stands(id, standing)) => (id, standing),
        Ok(Executed::AsksAlready(id, standing)) => {
            began = Began::ByEarlierRequest;
            (id, standing)
        }
        Ok(Executed::Refused(refused)) => return refusal(&refused),
        Ok(Executed::Suggested(suggested)) => return suggestions(&suggested),
        Ok(Executed::Known(known)) => (known.id, Standing::Over(Arc::new(known.report))),
        Err(problem) => return problem.to_tool_result(),
    };
    if asked.options.detach {
        return reply(&id, &standing);
    }
    let settled = ask::settle_or_cancel(app, request, door, &id, standing, began).await;
    settled.map_or_else(|problem| problem.to_tool_result(), |settled| settled.told(&id))
}

/// Waits for a run this process has; whoever cancels the request ends it.
pub(super) async fn wait(
    handle: &Handle,
    patience: Duration,
    request: &Incoming,
) -> Result<Standing, Problem> {
    let standing = tokio::select! {
        standing = handle.wait(patience) => standing,
        () = request.cancel.cancelled() => {
            handle.cancel();
            handle.wait(Duration::from_secs(10)).await
        }
    };
    if let Standing::Running(_) | Standing::Interrupted = standing {
        handle.kept().await?;
    }
    Ok(standing)
}

const SMALLEST: &str =
    r#"the smallest call is {"intent": "…", "implementation": {"type": "code", "code": "return 1"}}"#;

/// The longest key.
const MAX_KEY_BYTES: usize = 200;

/// The key under which a client repeats a request without repeating the run: beside the arguments, where programs put
/// it, or in `options`, where agents can. `digest` is of what the request asks for.
pub(super) fn idempotency(
    params: &RawValue,
    option: Option<&str>,
    digest: impl FnOnce() -> Digest,
) -> Result<Option<Idempotency>, Problem> {
    let wrong = |text: String| Problem::new(Code::InvalidRequest, text);
    let (name, key) = match (key_beside(params), option) {
        (Some(beside), Some(option)) if beside != option => {
            return Err(wrong("`options.idempotencyKey` and `pml/idempotencyKey` differ".to_owned())
                .hint("give the key once"));
        }
        (Some(key), _) => (IDEMPOTENCY_KEY, key),
        (None, Some(key)) => ("options.idempotencyKey", key.to_owned()),
        (None, None) => return Ok(None),
    };
    if key.is_empty() || key.len() > MAX_KEY_BYTES {
        return Err(wrong(format!("`{name}` is not a text of 1 to {MAX_KEY_BYTES} bytes")));
    }
    Ok(Some(Idempotency { key, request: digest() }))
}

/// The key beside the arguments; empty where it is not a text.
fn key_beside(params: &RawValue) -> Option<String> {
    // Looked for as text first: few requests carry one and some are large. The slash may be written as an escape.
    if !params.get().contains("idempotencyKey") {
        return None;
    }
    let params = Fields::parse(params.get()).unwrap_or_default();
    let meta = Fields::parse(params.get("_meta")?.get()).unwrap_or_default();
    meta.get(IDEMPOTENCY_KEY).map(|key| serde_json::from_str(key.get()).unwrap_or_default())
}
