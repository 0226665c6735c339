//! What clients do with runs: wait for them, answer them, look into them, end them.

use std::sync::Arc;
use std::time::Duration;

use pml_mcp::server::Incoming;
use pml_model::json::raw;
use pml_model::{RunId, ToolId};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::ask::{self, Settled};
use super::execute::WAIT_MS;
use super::meta_tools::session_of;
use super::reply::{aborted, of_dag, refusal, tool_result};
use super::{Door, is_callable};
use crate::app::App;
use crate::clock::now_ms;
use crate::execute::{Reserved, Resumed};
use crate::flow::{self, Said, Wanted};
use crate::problem::{Code, Problem};
use crate::report::Standing;

/// How much of a result is given at a time where nobody says.
const PAGE_BYTES: usize = 32 * 1024;
/// The most that is.
const MAX_PAGE_BYTES: usize = 1024 * 1024;

/// The definitions of these tools.
pub(super) fn definitions() -> Vec<Box<RawValue>> {
    let of_run = json!({ "type": "string", "description": "the `workflowId` of a reply" });
    let status =
        json!({ "type": "object", "properties": { "status": { "type": "string" } }, "required": ["status"] });
    vec![
        raw(&json!({
            "name": "pml_continue",
            "title": "Go on with a run",
            "description": "Wait again for a run that answered `running`, or answer one that asks: `approved` for `approval_required` \
                 (ask your user first) or `layer_complete`. Without an answer it waits for one. Where only a person may answer, \
                 your answer is refused: wait.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "workflow_id": of_run,
                    "approved": { "type": "boolean" },
                    "reason": { "type": "string", "description": "why not" },
                    "answer": {
                        "type": "object",
                        "description": "`approved`, and on a yes `anyArguments` (calls each tool may make in this run); or `calls` for calls in \
                             doubt. Only people make rules for later runs."
                    },
                    "pause": { "type": "boolean", "description": "wait before the next layer (`decisionPoints: manual`)" }
                },
                "required": ["workflow_id"],
                "additionalProperties": false
            },
            // Without `outputSchema`: of a direct call it gives what the tool answered, and clients would hold that
            // against ours.
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": true }
        })),
        raw(&json!({
            "name": "pml_replan",
            "title": "Change the rest of a DAG",
            "description": "After `layer_complete`: put other tasks in place of those that have not run. They may refer to tasks that have. \
                 With `new_requirement` instead, get tools that could serve it.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "workflow_id": of_run,
                    "dagStructure": { "type": "object", "description": "{tasks: [...]}" },
                    "new_requirement": { "type": "string" }
                },
                "required": ["workflow_id"],
                "additionalProperties": false
            },
            "outputSchema": status,
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true }
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
            "outputSchema": status,
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false }
        })),
        raw(&json!({
            "name": "pml_get_task_result",
            "title": "Read a result of a run",
            "description": "The whole result of one task, in pages; without `task_id`, how the run stands: its tasks and what it asks.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "workflow_id": of_run,
                    "task_id": {
                        "type": "string",
                        "description": "`taskId` or `nodeId` of a task (`n2`, its second call `n2#2`), its id in a DAG, \
                             or `result` for the run's own result"
                    },
                    "offset": { "type": "integer", "minimum": 0, "default": 0, "description": "in bytes" },
                    "limit": { "type": "integer", "minimum": 1, "maximum": MAX_PAGE_BYTES, "default": PAGE_BYTES },
                    "format": { "enum": ["raw", "pretty"], "default": "raw" }
                },
                "required": ["workflow_id"],
                "additionalProperties": false
            },
            "outputSchema": status,
            "annotations": { "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false }
        })),
    ]
}

/// The arguments of `pml_continue`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Continue {
    workflow_id: String,
    approved: Option<bool>,
    reason: Option<String>,
    /// All that can be said, where it is more than yes or no.
    answer: Option<Said>,
    /// A DAG is to wait before its next layer.
    #[serde(default)]
    pause: bool,
}

impl Continue {
    /// All that is said.
    fn said(self) -> Result<Said, Problem> {
        let said = self.answer.unwrap_or_default();
        if (self.approved.is_some() && said.approved.is_some())
            || (self.reason.is_some() && said.reason.is_some())
        {
            return Err(Problem::new(Code::InvalidRequest, "the same is said beside `answer` and in it")
                .hint("say `approved` and `reason` once"));
        }
        Ok(Said { approved: self.approved.or(said.approved), reason: self.reason.or(said.reason), ..said })
    }
}

/// Answers `pml_continue`: takes an answer, waits for a run of the asker's.
pub(super) async fn go_on_with(
    app: &Arc<App>,
    arguments: &RawValue,
    request: &Incoming,
    door: &Door,
) -> Box<RawValue> {
    let went_on = async {
        let asked: Continue = read("pml_continue", arguments, OF_RUN)?;
        let id = run_id(&asked.workflow_id)?;
        if asked.pause {
            flow::pause(app, &request.client.principal, &id).await?;
        }
        let standing = if asked.approved.is_some() || asked.answer.is_some() {
            let reserved = app.runs.reserve(&id);
            let answered = answer(app, request, door, &id, asked).await?;
            let standing = go_on(app, request, &id, &answered, reserved).await?;
            ask::settle(app, request, door, &id, standing).await?
        } else {
            wait_again(app, request, door, &id).await?
        };
        Ok(standing.told(&id))
    };
    went_on.await.unwrap_or_else(|problem| Problem::to_tool_result(&problem))
}

/// Waits for a run. The user of a client that can ask is asked what nobody else has answered yet.
async fn wait_again(app: &Arc<App>, request: &Incoming, door: &Door, id: &RunId) -> Result<Settled, Problem> {
    let standing = flow::standing(app, &request.client.principal, id).await?;
    let standing = match ask::settle(app, request, door, id, standing).await? {
        Settled::Stands(standing) => standing,
        asks @ Settled::Asks(_) => return Ok(asks),
    };
    let known = standing.asks().map(str::to_owned);
    let standing = wait_for(app, id, request, known.as_deref()).await?;
    match standing.asks() {
        asked if asked == known.as_deref() => Ok(Settled::Stands(standing)),
        _ => ask::settle(app, request, door, id, standing).await,
    }
}

/// Answers what the run asks, and gives the name of that question.
async fn answer(
    app: &Arc<App>,
    request: &Incoming,
    door: &Door,
    id: &RunId,
    asked: Continue,
) -> Result<String, Problem> {
    let whose = &request.client.principal;
    let Some((name, question)) = flow::open_question(app, whose, id).await? else {
        return Err(flow::asks_nothing(app, whose, id).await?);
    };
    let answer = asked.said()?.to(Some(&question), now_ms())?;
    flow::answer(app, id, &name, answer, &passed_on(request, door)).await?;
    Ok(name)
}

/// What a client passes on is its own word, whoever sits in front of it.
fn passed_on(request: &Incoming, door: &Door) -> flow::By {
    flow::By::Client { name: request.client.name.clone(), person: false, door: door.by }
}

/// Goes on with a run whose question `answered` has its answer, here if nobody else does, and waits for it.
pub(super) async fn go_on(
    app: &Arc<App>,
    request: &Incoming,
    id: &RunId,
    answered: &str,
    reserved: Reserved,
) -> Result<Standing, Problem> {
    let resumed = flow::resume(app, &request.client.principal, id, request.caller.clone()).await?;
    drop(reserved);
    match resumed {
        Resumed::Going(_) | Resumed::Held | Resumed::Over(_) => {
            wait_for(app, id, request, Some(answered)).await
        }
        Resumed::Asks { .. } => flow::standing(app, &request.client.principal, id).await,
    }
}

/// Waits until a run is over or asks something else than the question `known`.
async fn wait_for(
    app: &Arc<App>,
    id: &RunId,
    request: &Incoming,
    known: Option<&str>,
) -> Result<Standing, Problem> {
    let whose = &request.client.principal;
    let until = tokio::time::Instant::now() + Duration::from_millis(WAIT_MS);
    loop {
        let left = until.saturating_duration_since(tokio::time::Instant::now());
        let standing = match flow::run_here(app, whose, id) {
            Some(handle) => tokio::select! {
                standing = handle.wait(left) => standing,
                () = request.cancel.cancelled() => handle.standing(),
            },
            None => flow::standing(app, whose, id).await?,
        };
        let goes_on = match &standing {
            Standing::Running(_) | Standing::Interrupted | Standing::Elsewhere => true,
            // Somebody may answer by another way.
            Standing::Waiting { question: Some((name, _)), .. } => known == Some(name),
            Standing::Waiting { question: None, .. } | Standing::Over(_) => false,
        };
        if !goes_on || left.is_zero() || request.cancel.is_cancelled() {
            return Ok(standing);
        }
        // Another process has it, or nobody; what becomes of it is seen in the database.
        tokio::select! {
            () = tokio::time::sleep(left.min(Duration::from_millis(100))) => {}
            () = request.cancel.cancelled() => {}
        }
    }
}

/// Answers `pml_replan`.
pub(super) async fn replan(
    app: &Arc<App>,
    arguments: &RawValue,
    request: &Incoming,
    door: &Door,
) -> Box<RawValue> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Which {
        workflow_id: String,
        #[serde(rename = "dagStructure", alias = "dag_structure")]
        dag_structure: Option<Box<RawValue>>,
        new_requirement: Option<String>,
    }
    let replanned = async {
        let which: Which = read("pml_replan", arguments, OF_REPLAN)?;
        let id = run_id(&which.workflow_id)?;
        let visible = |tool: &ToolId| is_callable(tool, &door.expose);
        match (which.dag_structure, which.new_requirement) {
            (Some(document), None) => {
                let by = passed_on(request, door);
                let (whose, reserved) = (&request.client.principal, app.runs.reserve(&id));
                let name = match flow::replan(app, whose, &id, document.get(), &by, &visible).await {
                    Ok(name) => name,
                    Err(refused) => return Ok(refusal(&refused)),
                };
                let standing = go_on(app, request, &id, &name, reserved).await?;
                Ok(ask::settle(app, request, door, &id, standing).await?.told(&id))
            }
            (None, Some(requirement)) => candidates(app, &id, request, requirement, visible).await,
            (_, _) => Err(Problem::new(
                Code::InvalidArguments,
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

/// Tools that could serve a requirement in words.
async fn candidates(
    app: &Arc<App>,
    id: &RunId,
    request: &Incoming,
    requirement: String,
    visible: impl Fn(&ToolId) -> bool + Send + Sync,
) -> Result<Box<RawValue>, Problem> {
    flow::standing(app, &request.client.principal, id).await?;
    let wanted: crate::discover::Request = serde_json::from_value(json!({ "intent": requirement }))
        .map_err(|error| Problem::new(Code::InvalidArguments, error.to_string()))?;
    let whose = &request.client.principal;
    let session = session_of(request);
    let page = flow::discover(app, (whose, Some(&session)), &wanted, |tool| visible(&tool.id)).await?;
    let dag = flow::suggest_dag(app, whose, &wanted.intent, &visible).await;
    let names: Vec<&str> = page.results.iter().map(|found| found.id.as_str()).collect();
    let mut text = format!(
        "{id} waits. Tools that could serve it: {}. Call `pml_replan` with `dagStructure`.",
        names.join(", ")
    );
    if let Some(dag) = &dag {
        text.push_str(&format!("\n{}", of_dag(dag)));
    }
    let body =
        json!({ "status": "suggestions", "workflowId": id, "candidates": page.results, "suggestedDag": dag });
    Ok(tool_result(&text, &body, &[], false))
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
        Ok((standing, id)) => aborted(&id, &standing),
        Err(problem) => Problem::to_tool_result(&problem),
    }
}

/// Answers `pml_get_task_result`.
pub(super) async fn task_result(app: &Arc<App>, arguments: &RawValue, request: &Incoming) -> Box<RawValue> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Which {
        workflow_id: String,
        task_id: Option<String>,
        #[serde(default)]
        offset: usize,
        limit: Option<usize>,
        #[serde(default)]
        format: Format,
    }
    #[derive(Default, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Format {
        #[default]
        Raw,
        Pretty,
    }
    let looked = async {
        let which: Which = read("pml_get_task_result", arguments, OF_RUN)?;
        let id = run_id(&which.workflow_id)?;
        let whose = &request.client.principal;
        let Some(task) = which.task_id else { return state(app, request, &id).await };
        let wanted = Wanted {
            task,
            offset: which.offset,
            limit: which.limit.unwrap_or(PAGE_BYTES).clamp(1, MAX_PAGE_BYTES),
            pretty: which.format == Format::Pretty,
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

/// How a run stands, with its tasks and what it asks.
async fn state(app: &Arc<App>, request: &Incoming, id: &RunId) -> Result<Box<RawValue>, Problem> {
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

/// Reads the arguments of one of our tools.
pub(super) fn read<'a, T: Deserialize<'a>>(
    tool: &str,
    arguments: &'a RawValue,
    hint: &str,
) -> Result<T, Problem> {
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
