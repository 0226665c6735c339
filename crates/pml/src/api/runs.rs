//! `/api/runs`: the runs of a principal, one run with its past, and ending one.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, State};
use axum::routing::{get, post};
use pml_model::name::truncate_text;
use pml_model::question::Question;
use pml_model::{CapabilityId, Principal, RunId, RunState};
use pml_store::{ListedRun, RunKind, RunListQuery, RunRow};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::{OpenApi, ToSchema};

use super::extract::{ApiPath, ApiQuery, OptionalJson, bad_cursor, page_size};
use super::reply::{Reply, SCHEMA_VERSION};
use crate::app::App;
use crate::clock::now_ms;
use crate::flow::{self, PastRun};
use crate::past_outcomes::PastOutcome;
use crate::plan::Plan;
use crate::problem::{ErrorCode, Problem};
use crate::report::{ConsoleLine, PathDecision};

/// The runs on one page, unless the client says otherwise, and at most.
const PAGE: u32 = 50;
const LARGEST_PAGE: u32 = 200;
/// Bytes of the arguments and of the result that one run shows; `calls` and `pml_get_task_result` have all.
const PREVIEW_BYTES: usize = 16 * 1024;
/// Tools that the summary of a question names.
const NAMED_TOOLS: usize = 3;

#[derive(OpenApi)]
#[openapi(paths(list, show, abort))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/api/runs", get(list))
        .route("/api/runs/{id}", get(show))
        .route("/api/runs/{id}/abort", post(abort))
}

/// Which runs to list.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RunsQuery {
    /// Only runs with this status: `running`, `waiting`, `interrupted`, `done`, `failed`, `cancelled`, `aborted` or
    /// `expired`.
    status: Option<String>,
    /// Only runs whose intent or id contains this text.
    q: Option<String>,
    /// Only runs of this capability, by name or id.
    capability: Option<String>,
    /// Only runs that called this tool, as `server:tool`.
    tool: Option<String>,
    /// The size of the page, from 1 to 200; 50 by default.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The `nextCursor` of the previous page.
    cursor: Option<String>,
}

/// A page of runs, newest first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RunPage {
    schema_version: u32,
    items: Vec<RunItem>,
    /// The cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A run, as listed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunItem {
    id: String,
    /// `running`, `waiting`, `interrupted`, `done`, `failed`, `cancelled`, `aborted` or `expired`.
    status: String,
    intent: String,
    kind: RunItemKind,
    /// The capability that it executes, became, or counts for.
    #[serde(skip_serializing_if = "Option::is_none")]
    capability: Option<CapabilityName>,
    started_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<i64>,
    /// Until now for a run that has not ended.
    duration_ms: i64,
    calls: u32,
    failed_calls: u32,
    /// Calls that were made before the program asked for them.
    speculated: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<QuestionSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorSummary>,
    session: String,
    /// The name of the client, if the session tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<String>,
}

/// What a run executes.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum RunItemKind {
    /// A program.
    Program,
    /// A DAG of tasks.
    Dag,
    /// One call of a tool.
    Tool,
    /// A capability.
    Capability,
}

/// A capability.
#[derive(Serialize, ToSchema)]
pub(super) struct CapabilityName {
    pub(super) id: String,
    pub(super) name: String,
}

/// What a run waits for.
#[derive(Serialize, ToSchema)]
struct QuestionSummary {
    /// The id of the question, which an answer names.
    id: String,
    /// `approval`, `layer`, `in_doubt` or `sign_in`.
    kind: &'static str,
    summary: String,
}

/// Why a run failed.
#[derive(Serialize, ToSchema)]
struct ErrorSummary {
    code: String,
    /// The message; empty for runs from before it was recorded.
    message: String,
}

impl RunItem {
    pub(super) fn new(listed: &ListedRun, now: i64) -> RunItem {
        let run = &listed.run;
        let capability = run.capability.as_ref().or(run.learned.as_ref());
        let name = |id: &CapabilityId| {
            Some(CapabilityName { id: id.to_string(), name: listed.capability_name.clone()? })
        };
        let question = listed.question.as_ref().map(|(id, question)| QuestionSummary {
            id: id.clone(),
            kind: flow::question_kind(question),
            summary: question_summary(question),
        });
        let error = run.error_code.as_ref().map(|code| ErrorSummary {
            code: code.clone(),
            message: run.error_message.clone().unwrap_or_default(),
        });
        RunItem {
            id: run.id.to_string(),
            status: run.state.to_string(),
            intent: run.intent.clone(),
            kind: kind(run),
            capability: capability.and_then(name),
            started_at: run.created_at,
            ended_at: run.ended_at,
            duration_ms: (run.ended_at.unwrap_or(now) - run.created_at).max(0),
            calls: run.calls,
            failed_calls: run.failed_calls,
            speculated: run.speculated_calls,
            question,
            error,
            session: run.session.clone(),
            client: run.session.rsplit_once('/').map(|(client, _)| client.to_owned()),
        }
    }
}

fn kind(run: &RunRow) -> RunItemKind {
    match (&run.capability, run.kind) {
        (Some(_), _) => RunItemKind::Capability,
        (None, RunKind::Code) => RunItemKind::Program,
        (None, RunKind::Dag) => RunItemKind::Dag,
        (None, RunKind::Tool) => RunItemKind::Tool,
    }
}

fn question_summary(question: &Question) -> String {
    let named = |tools: Vec<&str>| {
        let mut names: Vec<&str> = tools;
        names.dedup();
        let more = names.len().saturating_sub(NAMED_TOOLS);
        names.truncate(NAMED_TOOLS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", names.join(", "))
    };
    match question {
        Question::Approval(asked) => {
            format!("asks to call {}", named(asked.calls.iter().map(|call| call.tool.as_str()).collect()))
        }
        Question::InDoubt { calls, .. } => {
            let tools = named(calls.iter().map(|call| call.tool.as_str()).collect());
            format!("does not know whether {tools} acted")
        }
        Question::SignIn { calls } => {
            format!(
                "waits for a sign-in to {}",
                named(calls.iter().map(|call| call.server.as_str()).collect())
            )
        }
        Question::Layer(layer) => {
            format!("has run layer {} of {}", layer.layer_index + 1, layer.total_layers)
        }
    }
}

/// Lists runs, newest first.
#[utoipa::path(get, path = "/api/runs", tag = "runs", params(RunsQuery), responses((status = 200, body = RunPage)))]
async fn list(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiQuery(query): ApiQuery<RunsQuery>,
) -> Result<Reply<RunPage>, Problem> {
    let limit = page_size(query.limit, PAGE, LARGEST_PAGE)?;
    let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
    let capability = match filled(query.capability) {
        None => None,
        Some(name) => match capability_id(&app, &principal, &name).await? {
            Some(id) => Some(id),
            None => return Ok(Reply(RunPage::new(Vec::new(), limit))),
        },
    };
    let filter = RunListQuery {
        state: filled(query.status).map(|word| status(&word)).transpose()?,
        text: filled(query.q),
        capability,
        tool: filled(query.tool),
        before: query.cursor.map(|cursor| RunId::parse(&cursor).map_err(|_| bad_cursor())).transpose()?,
        // One more, which tells whether there is another page.
        limit: limit + 1,
    };
    Ok(Reply(RunPage::new(flow::list_runs(&app, &principal, filter).await?, limit)))
}

impl RunPage {
    fn new(mut found: Vec<ListedRun>, limit: u32) -> RunPage {
        let more = found.len() > limit as usize;
        found.truncate(limit as usize);
        let next_cursor = found.last().filter(|_| more).map(|last| last.run.id.to_string());
        let now = now_ms();
        let items = found.iter().map(|listed| RunItem::new(listed, now)).collect();
        RunPage { schema_version: SCHEMA_VERSION, items, next_cursor }
    }
}

fn status(word: &str) -> Result<RunState, Problem> {
    RunState::parse(word).ok_or_else(|| {
        let known = RunState::ALL.map(RunState::as_str).join(", ");
        Problem::new(ErrorCode::InvalidRequest, "`status` is no status of a run")
            .hint(format!("it is one of {known}"))
    })
}

/// The id of a capability, by name or id; `None` if there is none.
async fn capability_id(
    app: &App,
    principal: &Principal,
    name: &str,
) -> Result<Option<CapabilityId>, Problem> {
    if let Ok(id) = CapabilityId::parse(name) {
        return Ok(Some(id));
    }
    match flow::capability(app, principal, name).await {
        Ok(known) => Ok(Some(known.procedure.id)),
        Err(problem) if problem.code == ErrorCode::NotFound => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// A run with its past. Its calls are on pages of their own.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RunReply {
    schema_version: u32,
    #[serde(flatten)]
    item: RunItem,
    /// Whether the program, the arguments and the results are still kept.
    records_kept: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// `ts` for a program, `json` for a DAG document.
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Preview>,
    /// The nodes and edges that analysis found.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    structure: Option<Value>,
    tools: Vec<RunTool>,
    /// How much of `decisions` and `console` is known.
    output: OutputState,
    decisions: Vec<RunDecision>,
    console: Vec<RunConsoleLine>,
    /// Whether the program printed more than is kept.
    console_cut: bool,
    questions: Vec<RunQuestion>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Preview>,
    /// The failure in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    failure: Option<Value>,
    warnings: Vec<String>,
    /// The periods in which a process worked on the run: two for one that was killed and resumed.
    spans: Vec<RunSpan>,
}

/// How much is known of what a run printed and decided.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum OutputState {
    /// What it printed and decided so far: it goes on in this process.
    Live,
    /// Nothing before its end: it waits, or another process has it.
    AtEnd,
    /// All, as far as it is kept: it has ended.
    Complete,
}

/// A JSON value, or its beginning.
#[derive(Serialize, ToSchema)]
pub(super) struct Preview {
    /// The value; the beginning of its JSON text where that is truncated.
    #[schema(value_type = Value)]
    pub(super) preview: Box<RawValue>,
    /// The size of its JSON text.
    pub(super) bytes: usize,
    pub(super) truncated: bool,
}

impl Preview {
    /// The beginning of a JSON text, at most `most` bytes.
    pub(super) fn new(json: &RawValue, most: usize) -> Preview {
        let text = json.get();
        let truncated = text.len() > most;
        let preview = if truncated {
            let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            pml_model::json::raw(&&text[..end])
        } else {
            json.to_owned()
        };
        Preview { preview, bytes: text.len(), truncated }
    }
}

/// A tool that the run may call.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RunTool {
    id: String,
    /// Why its calls need approval; absent if they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    needs_approval: Option<String>,
}

/// One outcome of a decision on the path that was taken.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RunDecision {
    node_id: String,
    /// `true`, `false`, `case:<value>`, `default` or `error`.
    taken: String,
    times: u64,
}

/// A line that the program printed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RunConsoleLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    at_ms: Option<i64>,
    level: String,
    text: String,
    /// The capability that printed it, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    capability: Option<String>,
}

/// A question that the run asked.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RunQuestion {
    id: String,
    /// `approval`, `layer`, `in_doubt` or `sign_in`.
    kind: &'static str,
    asked_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_at: Option<i64>,
    /// `approved`, `denied`, `resolved`, `continued` or `replanned`.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Who answered, and through which channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

/// A period in which a process worked on the run.
#[derive(Serialize, ToSchema)]
struct RunSpan {
    from: i64,
    /// Absent while it works.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<i64>,
}

/// Shows one run, without its calls.
#[utoipa::path(get, path = "/api/runs/{id}", tag = "runs", params(("id" = String, Path, description = "The id of the run")), responses((status = 200, body = RunReply)))]
async fn show(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiPath(id): ApiPath<String>,
) -> Result<Reply<RunReply>, Problem> {
    let id = parse_run(&id)?;
    Ok(Reply(RunReply::new(flow::past_run(&app, &principal, &id).await?)))
}

impl RunReply {
    fn new(past: PastRun) -> RunReply {
        let item = RunItem::new(&past.listed, now_ms());
        let over = past.listed.run.state.is_over();
        let mut reply = RunReply {
            schema_version: SCHEMA_VERSION,
            item,
            records_kept: past.plan.is_some(),
            source: None,
            language: None,
            arguments: None,
            structure: None,
            tools: Vec::new(),
            output: if over { OutputState::Complete } else { OutputState::AtEnd },
            decisions: Vec::new(),
            console: Vec::new(),
            console_cut: false,
            questions: past.questions.into_iter().map(RunQuestion::from).collect(),
            result: None,
            failure: None,
            warnings: Vec::new(),
            spans: past.periods.iter().map(|period| RunSpan { from: period.from, to: period.to }).collect(),
        };
        if let Some(plan) = past.plan {
            reply.add_plan(plan);
        }
        match (past.outcome, past.so_far) {
            (Some(outcome), _) => reply.add_outcome(&outcome),
            (None, Some(so_far)) if !over => {
                reply.output = OutputState::Live;
                reply.add_decisions(&so_far.decisions);
                reply.add_console(&so_far.console, &so_far.console_at, so_far.console_cut);
            }
            (None, _) => {}
        }
        reply
    }

    fn add_plan(&mut self, plan: Plan) {
        self.language = Some(if plan.program().is_some() { "ts" } else { "json" });
        self.arguments = Some(Preview::new(&plan.arguments, PREVIEW_BYTES));
        self.structure = serde_json::to_value(&plan.structure).ok();
        self.tools = plan
            .tools
            .into_iter()
            .map(|tool| RunTool {
                id: tool.id.to_string(),
                needs_approval: tool.asks.map(|asks| asks.because),
            })
            .collect();
        self.source = Some(plan.source);
    }

    fn add_outcome(&mut self, outcome: &PastOutcome) {
        self.add_decisions(&outcome.path.decisions);
        self.add_console(&outcome.console, &outcome.console_at, outcome.console_cut);
        self.result = outcome.result.as_deref().map(|result| Preview::new(result, PREVIEW_BYTES));
        self.failure = outcome.error.as_ref().and_then(|error| serde_json::to_value(error).ok());
        self.warnings.clone_from(&outcome.warnings);
    }

    fn add_decisions(&mut self, made: &[PathDecision]) {
        let decision = |decision: &PathDecision| RunDecision {
            node_id: decision.node.to_string(),
            taken: decision.outcome.clone(),
            times: decision.times,
        };
        self.decisions = made.iter().map(decision).collect();
    }

    /// Adds what was printed; `at` is empty for runs from before the times were recorded.
    fn add_console(&mut self, printed: &[ConsoleLine], at: &[i64], cut: bool) {
        let mut printed_at = at.iter().copied();
        let line = |line: &ConsoleLine| RunConsoleLine {
            at_ms: printed_at.next(),
            level: line.level.clone(),
            text: line.text.clone(),
            capability: line.capability.clone(),
        };
        self.console = printed.iter().map(line).collect();
        self.console_cut = cut;
    }
}

impl From<flow::PastQuestion> for RunQuestion {
    fn from(asked: flow::PastQuestion) -> RunQuestion {
        let (answered_at, answer, reason, by) = match asked.answer {
            Some(answer) => (Some(answer.at), Some(answer.decision), answer.reason, Some(answer.by)),
            None => (None, None, None, None),
        };
        RunQuestion {
            id: asked.id,
            kind: asked.kind,
            asked_at: asked.asked_at,
            answered_at,
            answer,
            reason,
            by,
        }
    }
}

/// Why a run is ended.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AbortRunBody {
    /// The reason, kept with the run.
    #[serde(default)]
    reason: String,
}

/// A run.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RunItemReply {
    schema_version: u32,
    #[serde(flatten)]
    item: RunItem,
}

/// The characters of a reason that are kept.
const REASON_CHARACTERS: usize = 2_000;

/// Ends a run. One that has ended already stays as it is.
#[utoipa::path(post, path = "/api/runs/{id}/abort", tag = "runs", params(("id" = String, Path, description = "The id of the run")), request_body = AbortRunBody, responses((status = 200, body = RunItemReply)))]
async fn abort(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiPath(id): ApiPath<String>,
    OptionalJson(body): OptionalJson<AbortRunBody>,
) -> Result<Reply<RunItemReply>, Problem> {
    let id = parse_run(&id)?;
    let reason = truncate_text(&body.reason, REASON_CHARACTERS);
    flow::abort(&app, &principal, &id, &reason).await?;
    let past = flow::past_run(&app, &principal, &id).await?;
    Ok(Reply(RunItemReply { schema_version: SCHEMA_VERSION, item: RunItem::new(&past.listed, now_ms()) }))
}

/// The id of a run. A text that is none names a run that does not exist.
pub(super) fn parse_run(text: &str) -> Result<RunId, Problem> {
    RunId::parse(text).map_err(|_| Problem::new(ErrorCode::UnknownRun, "there is no such run"))
}
