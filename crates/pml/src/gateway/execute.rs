//! `pml_execute`: its definition, its arguments and its reply.

use std::sync::Arc;
use std::time::Duration;

use pml_mcp::server::IncomingRequest;
use pml_model::json::{empty_object, raw};
use pml_model::{Digest, ToolId};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::ask::{self, RunOrigin};
use super::dry_run::{self, DryRunArgument};
use super::reply::{locally_result, refusal_result, status_result};
use super::request::{parse_arguments, read_client_tools, read_idempotency, session_id_in};
use super::suggestions::suggestions_result;
use super::wait::{TURN, wait_for_run};
use super::{ClientAccess, task_reply};
use crate::app::App;
use crate::flow::{self, ExecuteOutcome, RoutedOutcome};
use crate::plan::Pause;
use crate::planning::{RunRequest, Work};
use crate::problem::{ErrorCode, Problem};
use crate::report::RunStatus;

/// 10 min: the longest wait that a client can request.
const MAX_WAIT_MS: u64 = 10 * 60 * 1_000;

/// The arguments of `pml_execute`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecuteArguments {
    /// Optional with `explorePath`, whose request has one.
    #[serde(default)]
    intent: String,
    implementation: Option<ExecuteImplementation>,
    context: Option<Box<RawValue>>,
    #[serde(default)]
    options: ExecuteOptions,
    #[serde(alias = "explorePath")]
    explore_path: Option<String>,
    #[serde(default)]
    confirm: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExecuteImplementation {
    r#type: ImplementationKind,
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
enum ImplementationKind {
    Code,
    Dag,
    Tool,
    Capability,
}

impl ExecuteImplementation {
    /// The work that the arguments name.
    fn work(self, options: &ExecuteOptions) -> Result<Work, Problem> {
        let missing = |what: &str| {
            Problem::new(ErrorCode::InvalidArguments, format!("`implementation.{what}` is missing"))
                .hint(SMALLEST)
        };
        Ok(match self.r#type {
            ImplementationKind::Code => Work::Code(self.code.ok_or_else(|| missing("code"))?),
            ImplementationKind::Dag => Work::Dag {
                document: self.dag_structure.ok_or_else(|| missing("dagStructure"))?.get().to_owned(),
                pause: options.pause(),
            },
            ImplementationKind::Tool => Work::Tool {
                tool: ToolId::parse(&self.tool_id.ok_or_else(|| missing("toolId"))?)
                    .map_err(|error| Problem::new(ErrorCode::UnknownTool, error.to_string()))?,
                defaults: self.default_args.unwrap_or_else(empty_object),
            },
            ImplementationKind::Capability => Work::Capability(self.id.ok_or_else(|| missing("id"))?),
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExecuteOptions {
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
    speculate: Option<bool>,
    #[serde(alias = "idempotency_key")]
    idempotency_key: Option<String>,
    #[serde(alias = "dry_run")]
    dry_run: Option<DryRunArgument>,
    #[serde(alias = "mockConfig")]
    mocks: Option<serde_json::Value>,
}

impl ExecuteArguments {
    fn check(&self) -> Result<(), Problem> {
        let wrong = |text: &str, hint: &str| {
            Err(Problem::new(ErrorCode::InvalidArguments, text.to_owned()).hint(hint))
        };
        match (&self.explore_path, self.confirm) {
            (None, false) if self.intent.is_empty() => wrong("`intent` is missing", SMALLEST),
            (None, false) => Ok(()),
            (None, true) => wrong("`confirm` needs `explorePath`", CONFIRM),
            (Some(_), false) => wrong("`confirm` is missing: nothing is run before it is true", CONFIRM),
            (Some(_), true) if self.implementation.is_some() => {
                wrong("`explorePath` runs what was explored; it takes no `implementation`", CONFIRM)
            }
            (Some(_), true) => Ok(()),
        }
    }
}

impl ExecuteOptions {
    /// How to run dry; `None` if it is a real run.
    fn dry_run_options(&self) -> Result<Option<flow::DryRunOptions>, Problem> {
        match &self.dry_run {
            Some(dry) => dry.options(self.mocks.clone(), self.timeout_ms),
            None if self.mocks.is_some() => Err(Problem::new(
                ErrorCode::InvalidArguments,
                "`mocks` are for dry runs only: a real run calls its tools",
            )
            .hint("give `dryRun: true` too")),
            None => Ok(None),
        }
    }

    fn pause(&self) -> Pause {
        if self.per_layer_validation { Pause::PerLayer } else { self.decision_points }
    }
}

/// The definitions of these tools. The input schema requires nothing, because `intent` is left out with `explorePath` and
/// clients do not understand alternatives in a schema; [`ExecuteArguments::check`] says what is missing.
pub(super) fn definitions(connected: &str) -> Vec<Box<RawValue>> {
    let outcome = json!({
        "type": "object",
        "properties": {
            "status": { "enum": ["success", "running", "approval_required", "layer_complete", "suggestions", "dry_run", "execute_locally", "failed"] },
            "report": { "type": "object" },
            "workflowId": { "type": "string" },
            "result": {},
            "error": { "type": "object" },
            "tasks": { "type": "array", "items": { "type": "object" } },
            "calls": { "type": "object" },
            "speculated": { "type": "object" },
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
            "Run a TypeScript program over tools. `code` is the body of an async function: \
             call `await mcp.server.tool({{…}})` as `pml_discover` shows it and `return` what you need; tools alone reach \
             files and network. Put values into `context` and read them as `args`: the second time the intent alone, \
             with other values, is enough. Confirm a ready call by sending it as it is. Connected: {connected}."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "intent": { "type": "string", "description": "what it is for, with its values" },
                "implementation": {
                    "type": "object",
                    "properties": {
                        "type": { "enum": ["code", "dag", "tool", "capability"] },
                        "code": { "type": "string" },
                        "dagStructure": {
                            "type": "object",
                            "description": "{tasks: [{id, tool | code, arguments, dependsOn, safeToFail, timeoutMs, retries}]}; \
                                 {\"$ref\": \"t1.field\"} is a result"
                        },
                        "toolId": { "type": "string" },
                        "defaultArgs": { "type": "object" },
                        "id": { "type": "string" }
                    },
                    "required": ["type"]
                },
                "context": { "type": "object" },
                "options": {
                    "type": "object",
                    "description": "timeoutMs, waitMs, detach, learn, cache, speculate, idempotencyKey, dryRun, mocks, decisionPoints \
                         (none, per_layer, on_error, manual)"
                },
                "explorePath": { "type": "string" },
                "confirm": { "type": "boolean" }
            }
        },
        "outputSchema": outcome,
        "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true }
    }))]
}

/// Answers `pml_execute`.
pub(super) async fn execute(
    app: &Arc<App>,
    arguments: &RawValue,
    request: &IncomingRequest,
    door: &ClientAccess,
) -> Box<RawValue> {
    let asked: ExecuteArguments = match parse_arguments("pml_execute", arguments, SMALLEST) {
        Ok(asked) => asked,
        Err(problem) => return problem.to_tool_result(),
    };
    let option = asked.options.idempotency_key.as_deref();
    let idempotency =
        match read_idempotency(&request.params, option, || Digest::of(arguments.get().as_bytes())) {
            Ok(idempotency) => idempotency,
            Err(problem) => return problem.to_tool_result(),
        };
    if let Err(problem) = asked.check() {
        return problem.to_tool_result();
    }
    let dry = match asked.options.dry_run_options() {
        Ok(dry) => dry,
        Err(problem) => return problem.to_tool_result(),
    };
    let work = match asked.implementation.map(|implementation| implementation.work(&asked.options)) {
        Some(Ok(work)) => work,
        Some(Err(problem)) => return problem.to_tool_result(),
        None => Work::Intent,
    };
    let patience = match asked.options.detach {
        true => Duration::ZERO,
        false => asked
            .options
            .wait_ms
            .map_or(door.patience, |wait_ms| Duration::from_millis(wait_ms.min(MAX_WAIT_MS))),
    };
    let config = app.config();
    let context = asked.context.unwrap_or_else(empty_object);
    let execution = RunRequest {
        principal: request.client.principal.clone(),
        key: request.client.key,
        session: session_id_in(request, &context),
        intent: asked.intent.clone(),
        work,
        arguments: context,
        timeout: asked.options.timeout_ms.map(Duration::from_millis),
        caller: request.caller.clone(),
        idempotency,
        max_wait: patience.max(TURN),
        answerer: config.approvals.answerer.unwrap_or(door.default_answerer),
        dynamic: config.approvals.dynamic,
        learn: config.memory.learn && asked.options.learn.unwrap_or(true),
        capability: None,
        use_cache: config.memory.cache && asked.options.cache.unwrap_or(true),
        speculate: asked.options.speculate.unwrap_or(true),
    };
    let visible = |id: &ToolId| door.may_call(id);
    if let Some(options) = dry {
        return dry_run::answer(app, execution, options, visible, request).await;
    }
    let client = match read_client_tools(&request.params) {
        Ok(client) => client,
        Err(problem) => return problem.to_tool_result(),
    };
    let executing = async {
        match (&asked.explore_path, client) {
            (Some(id), _) => {
                flow::confirm_dry_run(app, execution, id, visible).await.map(RoutedOutcome::Here)
            }
            (None, Some(client)) => flow::execute_for_client(app, execution, &client, visible).await,
            (None, None) => flow::execute(app, execution, visible).await.map(RoutedOutcome::Here),
        }
    };
    let executed = tokio::select! {
        executed = executing => executed,
        () = request.cancel.cancelled() => {
            return Problem::new(ErrorCode::Cancelled, "the request was cancelled before anything ran").to_tool_result();
        }
    };
    let executed = match executed {
        Ok(RoutedOutcome::Locally(local)) => return locally_result(&local),
        Ok(RoutedOutcome::Here(executed)) => Ok(executed),
        Err(problem) => Err(problem),
    };
    let mut began = RunOrigin::ThisRequest;
    let (id, standing) = match executed {
        Ok(ExecuteOutcome::Running(handle)) => match wait_for_run(&handle, patience, request).await {
            Ok(standing) => (handle.id.clone(), standing),
            Err(problem) => return problem.to_tool_result(),
        },
        Ok(ExecuteOutcome::Status(id, standing)) => (id, standing),
        Ok(ExecuteOutcome::AlreadyWaiting(id, standing)) => {
            began = RunOrigin::EarlierRequest;
            (id, standing)
        }
        Ok(ExecuteOutcome::Refused(refused)) => return refusal_result(&refused),
        Ok(ExecuteOutcome::Suggested(suggested)) => {
            return suggestions_result(&asked.intent, &suggested, &flow::readiness_notes(app));
        }
        Ok(ExecuteOutcome::Cached(known)) => (known.id, RunStatus::Finished(Arc::new(known.report))),
        Err(problem) => return problem.to_tool_result(),
    };
    if asked.options.detach {
        return status_result(&id, &standing);
    }
    let settled = ask::ask_user_or_cancel(app, request, door, &id, standing, began).await;
    match settled {
        Ok(settled) => {
            let task = task_reply::created(app, request, &id, settled.status()).await;
            task.unwrap_or_else(|| settled.to_tool_result(&id))
        }
        Err(problem) => problem.to_tool_result(),
    }
}

const CONFIRM: &str = r#"the call is {"explorePath": "dry_…", "confirm": true}, with the `id` of a report"#;

const SMALLEST: &str =
    r#"the smallest call is {"intent": "…", "implementation": {"type": "code", "code": "return 1"}}"#;
