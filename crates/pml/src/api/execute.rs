//! `POST /api/execute` runs a capability; `POST /api/dry-run` tries something without effects.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Extension, State};
use axum::routing::post;
use pml_mcp::Caller;
use pml_mcp::server::ClientIdentity;
use pml_model::ToolId;
use pml_model::json::empty_object;
use pml_model::question::Answerer;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::{OpenApi, ToSchema};

use super::extract::ApiJson;
use super::reply::{Reply, SCHEMA_VERSION};
use crate::app::App;
use crate::flow::{self, DryRunOptions, DryRunOutcome, ExecuteOutcome, MAX_BRANCH_RUNS, Suggestions};
use crate::plan::Pause;
use crate::planning::{PlanRefusal, RunRequest, Work};
use crate::problem::{ErrorCode, Problem};
use crate::report::{DryRunMode, DryRunReport};

/// 5 s: how long a run may wait for a free sandbox before the request is refused.
const MAX_QUEUE: Duration = Duration::from_secs(5);

#[derive(OpenApi)]
#[openapi(paths(execute, dry_run))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/execute", post(execute)).route("/api/dry-run", post(dry_run))
}

/// What to run: a capability, or what was tried before.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExecuteBody {
    /// The capability, by name or id.
    capability: Option<String>,
    /// The id of a dry run or of an explored path, to run it for real.
    explore_path: Option<String>,
    /// With `explorePath`: must be true, because nothing is run by mistake.
    #[serde(default)]
    confirm: bool,
    /// The arguments of the capability; with `explorePath`, the values that were made up.
    #[schema(value_type = Option<Object>)]
    args: Option<Box<RawValue>>,
}

/// What a body asks to be run.
enum WorkToRun {
    Capability(String),
    Tried(String),
}

impl ExecuteBody {
    fn work(&self) -> Result<WorkToRun, Problem> {
        let wrong = |text: &str, hint: &str| {
            Err(Problem::new(ErrorCode::InvalidRequest, text.to_owned()).hint(hint.to_owned()))
        };
        match (&self.capability, &self.explore_path, self.confirm) {
            (Some(capability), None, false) => Ok(WorkToRun::Capability(capability.clone())),
            (None, Some(path), true) => Ok(WorkToRun::Tried(path.clone())),
            (None, Some(_), false) => {
                wrong("`confirm` is missing: nothing is run before it is true", CONFIRM)
            }
            (_, None, true) => wrong("`confirm` needs `explorePath`", CONFIRM),
            _ => wrong("exactly one of `capability` and `explorePath` is needed", CONFIRM),
        }
    }
}

const CONFIRM: &str =
    r#"send {"explorePath": "dry_…", "confirm": true} with the id that was tried, or {"capability": "…"}"#;

/// The run that was started.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ExecuteReply {
    schema_version: u32,
    /// The id of the run.
    run: String,
    /// Whether nothing was run, because the result was in the cache: `run` is then the run that gave it.
    cached: bool,
}

/// Starts a capability, or what was tried dry, and answers at once with the id of its run.
#[utoipa::path(post, path = "/api/execute", tag = "runs", request_body = ExecuteBody, responses((status = 200, body = ExecuteReply)))]
async fn execute(
    State(app): State<Arc<App>>,
    Extension(client): Extension<ClientIdentity>,
    ApiJson(body): ApiJson<ExecuteBody>,
) -> Result<Reply<ExecuteReply>, Problem> {
    let work = body.work()?;
    let reach = app.keys.reach(client.key);
    let visible = |tool: &ToolId| reach.holds(tool);
    let executed = match work {
        WorkToRun::Capability(capability) => {
            let known = flow::visible_capability(&app, &client.principal, &capability).await?.capability;
            let arguments = object(body.args, "args")?;
            // The words of the capability itself: those of a person who picks it from a list are not known.
            let intent = known.procedure.description.clone();
            let request = request(&app, &client, intent, Work::Capability(capability), arguments);
            flow::execute(&app, request, visible).await?
        }
        WorkToRun::Tried(id) => {
            let arguments = object(body.args, "args")?;
            // The intent is that of the trial.
            let request = request(&app, &client, String::new(), Work::Intent, arguments);
            flow::confirm_dry_run(&app, request, &id, visible).await?
        }
    };
    let (run, cached) = match executed {
        ExecuteOutcome::Running(handle) => {
            // Whoever knows the id must find the run.
            handle.wait_until_stored().await?;
            (handle.id.clone(), false)
        }
        ExecuteOutcome::Status(id, _) | ExecuteOutcome::AlreadyWaiting(id, _) => (id, false),
        ExecuteOutcome::Cached(cached) => (cached.id, true),
        ExecuteOutcome::Refused(refused) => return Err(refused_problem(refused)),
        ExecuteOutcome::Suggested(suggested) => return Err(suggestions_problem(&suggested)),
    };
    Ok(Reply(ExecuteReply { schema_version: SCHEMA_VERSION, run: run.to_string(), cached }))
}

/// The arguments of a request, which must be an object.
fn object(given: Option<Box<RawValue>>, name: &str) -> Result<Box<RawValue>, Problem> {
    let Some(given) = given else { return Ok(empty_object()) };
    match given.get().starts_with('{') {
        true => Ok(given),
        false => Err(Problem::new(ErrorCode::InvalidRequest, format!("`{name}` must be an object"))),
    }
}

fn request(
    app: &App,
    client: &ClientIdentity,
    intent: String,
    work: Work,
    arguments: Box<RawValue>,
) -> RunRequest {
    let config = app.config();
    RunRequest {
        principal: client.principal.clone(),
        key: client.key,
        session: "http/api".to_owned(),
        intent,
        work,
        arguments,
        timeout: None,
        caller: Caller::silent(),
        idempotency: None,
        max_wait: MAX_QUEUE,
        answerer: config.approvals.answerer.unwrap_or(Answerer::Human),
        dynamic: config.approvals.dynamic,
        learn: config.memory.learn,
        capability: None,
        use_cache: config.memory.cache,
        speculate: true,
    }
}

fn refused_problem(refused: PlanRefusal) -> Problem {
    refused.problem
}

/// The error of a request that names something to run but lacks inputs.
fn suggestions_problem(suggested: &Suggestions) -> Problem {
    let missing: Vec<&str> = suggested
        .candidates
        .iter()
        .flat_map(|first| &first.missing)
        .map(|missing| missing.why.as_str())
        .collect();
    let problem = Problem::new(ErrorCode::InvalidArguments, suggested.because.clone());
    if missing.is_empty() { problem } else { problem.hint(missing.join("; ")) }
}

/// What to run dry: exactly one of `capability`, `code` and `dagStructure`.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DryRunBody {
    /// A capability, by name or id.
    capability: Option<String>,
    /// A program in TypeScript.
    code: Option<String>,
    /// A DAG document.
    #[schema(value_type = Option<Object>)]
    dag_structure: Option<Box<RawValue>>,
    /// What it is for.
    #[serde(default)]
    intent: String,
    /// Its arguments.
    #[schema(value_type = Option<Object>)]
    args: Option<Box<RawValue>>,
    /// Which calls are really made: none, or those that only read (`hybrid`, the default).
    mode: Option<DryRunModeName>,
    /// Answers and arguments of your own: `{tools, args}`.
    #[schema(value_type = Option<Object>)]
    mocks: Option<Value>,
    /// Runs it again with other made-up values until every branch was taken, at most this often.
    #[schema(minimum = 1, maximum = 1000)]
    max_branches: Option<u32>,
    /// The seed of made-up values.
    #[serde(default)]
    seed: u64,
}

/// Which calls of a dry run are really made.
#[derive(Deserialize, ToSchema, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum DryRunModeName {
    /// None.
    Mocked,
    /// Those that only read.
    Hybrid,
}

/// The report of a dry run.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DryRunReply {
    schema_version: u32,
    /// Calls with their arguments and answers, warnings, effects, branches and the result.
    report: DryRunReport,
}

/// Runs something without effects: reads may be real, everything else is made up.
#[utoipa::path(post, path = "/api/dry-run", tag = "runs", request_body = DryRunBody, responses((status = 200, body = DryRunReply)))]
async fn dry_run(
    State(app): State<Arc<App>>,
    Extension(client): Extension<ClientIdentity>,
    ApiJson(body): ApiJson<DryRunBody>,
) -> Result<Reply<DryRunReply>, Problem> {
    if body.max_branches.is_some_and(|most| most == 0 || most > MAX_BRANCH_RUNS) {
        let text = format!("`maxBranches` must be between 1 and {MAX_BRANCH_RUNS}");
        return Err(Problem::new(ErrorCode::InvalidRequest, text));
    }
    let options = DryRunOptions {
        mode: match body.mode {
            Some(DryRunModeName::Mocked) => DryRunMode::Mocked,
            Some(DryRunModeName::Hybrid) | None => DryRunMode::Hybrid,
        },
        mocks: body.mocks,
        explore_branches: body.max_branches,
        seed: body.seed,
        timeout: None,
    };
    let work = match (body.capability, body.code, body.dag_structure) {
        (Some(name), None, None) => Work::Capability(name),
        (None, Some(code), None) => Work::Code(code),
        (None, None, Some(dag)) => Work::Dag { document: dag.get().to_owned(), pause: Pause::None },
        _ => {
            return Err(Problem::new(
                ErrorCode::InvalidRequest,
                "give one of `capability`, `code` and `dagStructure`",
            ));
        }
    };
    let arguments = object(body.args, "args")?;
    let intent = if body.intent.is_empty() { "dry run".to_owned() } else { body.intent };
    let request = request(&app, &client, intent, work, arguments);
    let reach = app.keys.reach(client.key);
    match flow::dry_run(&app, request, options, |tool| reach.holds(tool)).await? {
        DryRunOutcome::Report(report) => {
            Ok(Reply(DryRunReply { schema_version: SCHEMA_VERSION, report: *report }))
        }
        DryRunOutcome::Refused(refused) => Err(refused_problem(refused)),
        DryRunOutcome::Suggested(suggested) => Err(suggestions_problem(&suggested)),
    }
}
