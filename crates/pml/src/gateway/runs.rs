//! The tools that clients use on runs: wait, answer, replan, abort, read results.

use std::sync::Arc;

use pml_mcp::server::IncomingRequest;
use pml_model::json::raw;
use pml_model::{RunId, ToolId};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::ClientAccess;
use super::ask::{self, AskOutcome};
use super::reply::{abort_result, dag_text, refusal_result, tool_result};
use super::request::{parse_arguments, session_id};
use super::wait::{resume_and_wait, wait_for_news};
use crate::app::App;
use crate::clock::now_ms;
use crate::flow::{self, AnswerInput, ResultRequest};
use crate::problem::{ErrorCode, Problem};

/// The default size of a page of a result, in bytes.
const PAGE_BYTES: usize = 32 * 1024;
/// The largest page that a client can request, in bytes.
const MAX_PAGE_BYTES: usize = 1024 * 1024;

/// The definitions of these tools.
pub(super) fn definitions() -> Vec<Box<RawValue>> {
    let of_run = json!({ "type": "string" });
    let status =
        json!({ "type": "object", "properties": { "status": { "type": "string" } }, "required": ["status"] });
    vec![
        raw(&json!({
            "name": "pml_continue",
            "title": "Go on with a run",
            "description": "Wait for a run, or answer it: `approved` for `approval_required` (ask your user first) or \
                 `layer_complete`; `pause` stops before the next layer.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "workflow_id": of_run,
                    "approved": { "type": "boolean" },
                    "reason": { "type": "string" },
                    "answer": {
                        "type": "object",
                        "description": "{approved, anyArguments?: calls per tool}, or {calls} in doubt"
                    },
                    "pause": { "type": "boolean" }
                },
                "required": ["workflow_id"]
            },
            // No `outputSchema`: for a direct call this returns the tool's own result, and clients would check that
            // against our schema.
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": true }
        })),
        raw(&json!({
            "name": "pml_replan",
            "title": "Change the rest of a DAG",
            "description": "Replace the open tasks of a DAG, or get tools for a `new_requirement`.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "workflow_id": of_run,
                    "dagStructure": { "type": "object" },
                    "new_requirement": { "type": "string" }
                },
                "required": ["workflow_id"]
            },
            "outputSchema": status,
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true }
        })),
        raw(&json!({
            "name": "pml_abort",
            "title": "End a run",
            "description": "End a run.",
            "inputSchema": {
                "type": "object",
                "properties": { "workflow_id": of_run, "reason": { "type": "string" } },
                "required": ["workflow_id"]
            },
            "outputSchema": status,
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false }
        })),
        raw(&json!({
            "name": "pml_get_task_result",
            "title": "Read a result of a run",
            "description": "Read a whole result in pages of bytes; without `task_id`, the run's state, calls and question.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "workflow_id": of_run,
                    "task_id": {
                        "type": "string",
                        "description": "`n2`, its second call `n2#2`, or `result`"
                    },
                    "offset": { "type": "integer" },
                    "limit": { "type": "integer" },
                    "format": { "enum": ["raw", "pretty"] }
                },
                "required": ["workflow_id"]
            },
            "outputSchema": status,
            "annotations": { "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false }
        })),
    ]
}

/// The arguments of `pml_continue`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ContinueArguments {
    workflow_id: String,
    approved: Option<bool>,
    reason: Option<String>,
    /// The full answer, where `approved` and `reason` are not enough.
    answer: Option<AnswerInput>,
    /// Pause a DAG before its next layer.
    #[serde(default)]
    pause: bool,
}

impl ContinueArguments {
    /// The answer, with `approved` and `reason` merged in. Each may be given only once.
    fn merged_answer(self) -> Result<AnswerInput, Problem> {
        let said = self.answer.unwrap_or_default();
        if (self.approved.is_some() && said.approved.is_some())
            || (self.reason.is_some() && said.reason.is_some())
        {
            return Err(Problem::new(
                ErrorCode::InvalidRequest,
                "`approved` or `reason` is given twice: beside `answer` and inside it",
            )
            .hint("use either `approved` or `answer.approved`, and `reason` or `answer.reason`"));
        }
        Ok(AnswerInput {
            approved: self.approved.or(said.approved),
            reason: self.reason.or(said.reason),
            ..said
        })
    }
}

/// Answers `pml_continue`: stores the answer, if there is one, and waits for a run of the caller's.
pub(super) async fn continue_run(
    app: &Arc<App>,
    arguments: &RawValue,
    request: &IncomingRequest,
    door: &ClientAccess,
) -> Box<RawValue> {
    let went_on = async {
        let asked: ContinueArguments = parse_arguments("pml_continue", arguments, OF_RUN)?;
        let id = parse_run_id(&asked.workflow_id)?;
        if asked.pause {
            flow::pause(app, &request.client.principal, &id).await?;
        }
        let standing = if asked.approved.is_some() || asked.answer.is_some() {
            let reserved = app.runs.reserve(&id);
            let answered = answer_question(app, request, door, &id, asked).await?;
            let standing = resume_and_wait(app, (request, door.patience), &id, &answered, reserved).await?;
            ask::ask_user(app, request, door, &id, standing).await?
        } else {
            wait_or_ask(app, request, door, &id).await?
        };
        Ok(standing.to_tool_result(&id))
    };
    went_on.await.unwrap_or_else(|problem| Problem::to_tool_result(&problem))
}

/// Waits for a run. Where the client can ask its user, the user is asked every question still open.
async fn wait_or_ask(
    app: &Arc<App>,
    request: &IncomingRequest,
    door: &ClientAccess,
    id: &RunId,
) -> Result<AskOutcome, Problem> {
    let standing = flow::run_status(app, &request.client.principal, id).await?;
    let standing = match ask::ask_user(app, request, door, id, standing).await? {
        AskOutcome::Status(standing) => standing,
        asks @ AskOutcome::InputRequired(_) => return Ok(asks),
    };
    let known = standing.question_id().map(str::to_owned);
    let standing = wait_for_news(app, id, (request, door.patience), known.as_deref()).await?;
    match standing.question_id() {
        asked if asked == known.as_deref() => Ok(AskOutcome::Status(standing)),
        _ => ask::ask_user(app, request, door, id, standing).await,
    }
}

/// Answers the open question of the run, and returns the question's name.
async fn answer_question(
    app: &Arc<App>,
    request: &IncomingRequest,
    door: &ClientAccess,
    id: &RunId,
    asked: ContinueArguments,
) -> Result<String, Problem> {
    let whose = &request.client.principal;
    let Some((name, question)) = flow::open_question(app, whose, id).await? else {
        return Err(flow::why_no_question(app, whose, id).await?);
    };
    let answer = asked.merged_answer()?.into_answer(Some(&question), now_ms())?;
    flow::answer(app, id, &name, answer, &passed_on_by_client(request, door)).await?;
    Ok(name)
}

/// An answer passed on by a client counts as the client's own, never as a person's.
fn passed_on_by_client(request: &IncomingRequest, door: &ClientAccess) -> flow::AnswerChannel {
    flow::AnswerChannel::Client {
        name: request.client.name.clone(),
        person: false,
        door: door.default_answerer,
        role: door.role,
    }
}

/// Answers `pml_replan`.
pub(super) async fn replan(
    app: &Arc<App>,
    arguments: &RawValue,
    request: &IncomingRequest,
    door: &ClientAccess,
) -> Box<RawValue> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct TaskResultArguments {
        workflow_id: String,
        #[serde(rename = "dagStructure", alias = "dag_structure")]
        dag_structure: Option<Box<RawValue>>,
        new_requirement: Option<String>,
    }
    let replanned = async {
        let which: TaskResultArguments = parse_arguments("pml_replan", arguments, OF_REPLAN)?;
        let id = parse_run_id(&which.workflow_id)?;
        let visible = |tool: &ToolId| door.may_call(tool);
        match (which.dag_structure, which.new_requirement) {
            (Some(document), None) => {
                let by = passed_on_by_client(request, door);
                let (whose, reserved) = (&request.client.principal, app.runs.reserve(&id));
                let name = match flow::replan(app, whose, &id, document.get(), &by, &visible).await {
                    Ok(name) => name,
                    Err(refused) => return Ok(refusal_result(&refused)),
                };
                let standing = resume_and_wait(app, (request, door.patience), &id, &name, reserved).await?;
                Ok(ask::ask_user(app, request, door, &id, standing).await?.to_tool_result(&id))
            }
            (None, Some(requirement)) => suggest_tools(app, &id, request, requirement, visible).await,
            (_, _) => Err(Problem::new(
                ErrorCode::InvalidArguments,
                "`pml_replan` wants either `dagStructure` or `new_requirement`",
            )
            .hint(OF_REPLAN)),
        }
    };
    match replanned.await {
        Ok(result) => result,
        Err(problem) => Problem::to_tool_result(&problem),
    }
}

const OF_REPLAN: &str = r#"the call is {"workflow_id": "run_…", "dagStructure": {"tasks": […]}}"#;

/// Tools that could satisfy a requirement given in words.
async fn suggest_tools(
    app: &Arc<App>,
    id: &RunId,
    request: &IncomingRequest,
    requirement: String,
    visible: impl Fn(&ToolId) -> bool + Send + Sync,
) -> Result<Box<RawValue>, Problem> {
    flow::run_status(app, &request.client.principal, id).await?;
    let wanted: crate::discover::DiscoverRequest =
        serde_json::from_value(json!({ "intent": requirement }))
            .map_err(|error| Problem::new(ErrorCode::InvalidArguments, error.to_string()))?;
    let whose = &request.client.principal;
    let session = session_id(request);
    let page = flow::discover(app, (whose, Some(&session)), &wanted, |tool| visible(&tool.id)).await?;
    let dag = flow::suggest_dag(app, whose, &wanted.intent, &visible).await;
    let names: Vec<&str> = page.results.iter().map(|found| found.id.as_str()).collect();
    let mut text = format!(
        "{id} waits. Tools that could serve it: {}. Call `pml_replan` with `dagStructure`.",
        names.join(", ")
    );
    if let Some(dag) = &dag {
        text.push_str(&format!("\n{}", dag_text(dag)));
    }
    let body =
        json!({ "status": "suggestions", "workflowId": id, "candidates": page.results, "suggestedDag": dag });
    Ok(tool_result(&text, &body, &[], false))
}

/// Answers `pml_abort`.
pub(super) async fn abort(app: &Arc<App>, arguments: &RawValue, request: &IncomingRequest) -> Box<RawValue> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ReplanArguments {
        workflow_id: String,
        reason: Option<String>,
    }
    let ended = async {
        let which: ReplanArguments = parse_arguments("pml_abort", arguments, OF_RUN)?;
        let id = parse_run_id(&which.workflow_id)?;
        let reason = which.reason.unwrap_or_default();
        Ok((flow::abort(app, &request.client.principal, &id, &reason).await?, id))
    };
    match ended.await {
        Ok((standing, id)) => abort_result(&id, &standing),
        Err(problem) => Problem::to_tool_result(&problem),
    }
}

/// Answers `pml_get_task_result`.
pub(super) async fn task_result(
    app: &Arc<App>,
    arguments: &RawValue,
    request: &IncomingRequest,
) -> Box<RawValue> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct AbortArguments {
        workflow_id: String,
        task_id: Option<String>,
        #[serde(default)]
        offset: usize,
        limit: Option<usize>,
        #[serde(default)]
        format: TaskResultFormat,
    }
    #[derive(Default, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum TaskResultFormat {
        #[default]
        Raw,
        Pretty,
    }
    let looked = async {
        let which: AbortArguments = parse_arguments("pml_get_task_result", arguments, OF_RUN)?;
        let id = parse_run_id(&which.workflow_id)?;
        let whose = &request.client.principal;
        let Some(task) = which.task_id else { return run_overview(app, request, &id).await };
        let wanted = ResultRequest {
            task,
            offset: which.offset,
            limit: which.limit.unwrap_or(PAGE_BYTES).clamp(1, MAX_PAGE_BYTES),
            pretty: which.format == TaskResultFormat::Pretty,
        };
        let page = flow::task_result(app, whose, &id, &wanted).await?;
        let text = match page.next_offset {
            Some(next) => {
                format!("{}\n… {} bytes in all; go on with `offset` {next}", page.content, page.total_bytes)
            }
            None => page.content.clone(),
        };
        let mut body = serde_json::to_value(&page).unwrap_or_default();
        body["workflowId"] = json!(id);
        Ok(tool_result(&text, &body, &[], false))
    };
    match looked.await {
        Ok(result) => result,
        Err(problem) => Problem::to_tool_result(&problem),
    }
}

/// The status of a run, with its tasks and its open question.
async fn run_overview(
    app: &Arc<App>,
    request: &IncomingRequest,
    id: &RunId,
) -> Result<Box<RawValue>, Problem> {
    let overview = flow::overview(app, &request.client.principal, id).await?;
    let tasks = overview.tasks.iter().map(|task| {
        let preview = task.result_preview.as_deref().unwrap_or_default();
        let node = || task.node_id.map(|node| node.to_string()).unwrap_or_default();
        let id = task.task_id.clone().unwrap_or_else(node);
        format!("{id} {} {}", task.tool, crate::approve::words::visible(preview))
    });
    let called = overview.called.iter().map(|called| format!("{} {}", called.task_id, called.capability));
    let text = format!("{id} is {}\n{}", overview.state, tasks.chain(called).collect::<Vec<_>>().join("\n"));
    let mut body = json!({ "status": overview.state, "workflowId": id, "tasks": overview.tasks });
    if !overview.outcomes.is_empty() {
        body["outcomes"] = serde_json::to_value(&overview.outcomes).unwrap_or(Value::Null);
    }
    if !overview.called.is_empty() {
        body["called"] = serde_json::to_value(&overview.called).unwrap_or(Value::Null);
    }
    if let Some((name, question)) = &overview.question {
        body["questionId"] = json!(name);
        body["question"] = serde_json::to_value(question).unwrap_or(Value::Null);
    }
    Ok(tool_result(&text, &body, &[], false))
}

const OF_RUN: &str = r#"the call is {"workflow_id": "run_…"}, with the `workflowId` of a reply"#;

fn parse_run_id(text: &str) -> Result<RunId, Problem> {
    RunId::parse(text).map_err(|error| Problem::new(ErrorCode::UnknownRun, error.to_string()))
}
