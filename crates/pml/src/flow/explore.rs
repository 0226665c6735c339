//! Explores an intent that nothing serves yet: finds several ways, and tries each without changing anything.
//!
//! Every step of the intent gets its likeliest tools and capabilities, and tools that only read are added where they
//! could give these what they need. The cheapest hyperpaths become DAGs ([`suggest::paths`](crate::suggest::paths)), and
//! each is run dry: tools that are safe are called, the others are answered with made-up values. The id of a dry run is
//! the id to confirm the path with.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use pml_mcp::Caller;
use pml_model::KeyId;
use pml_model::capability::CapabilityStatistics;
use pml_model::json::raw;
use pml_model::learning::CallCounts;
use pml_model::question::Answerer;
use pml_model::{Principal, ToolId};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::dry_run::{
    DryAdmission, DryRunEvidence, DryRunOptions, DryRunOutcome, KeptIf, dry_run_with_evidence, mock_problem,
    parse_mocks,
};
use super::explore_learning::ExplorationMemory;
use super::path_search::PathSearch;
use crate::app::App;
use crate::discover;
use crate::knowledge::ToolUseCounts;
use crate::plan::Pause;
use crate::planning::{RunRequest, Work};
use crate::problem::{ErrorCode, Problem};
use crate::report::{
    CapturedCall, DryRunMode, DryRunReport, DryRunStatus, Exploration, ExplorationTrace, ExploredCall,
    FailedPath, PathOutput, PathStanding, ToolHistory, ViablePath,
};
use crate::suggest::paths::{CandidatePath, PathCallee};

/// The most paths of one exploration; more could not be chosen from.
const MAX_PATHS: u32 = 10;
/// The longest chain of calls; longer ones are never found by their schemas alone.
const MAX_DEPTH: u32 = 10;
/// 10 s: how long to wait for embeddings of tools that are new; then the words of those without one must do.
const EMBEDDING: Duration = Duration::from_secs(10);
/// Paths tried at most for each path that is wanted: wrong wirings fail at once, and the next may be right.
const TRIES_PER_PATH: u32 = 4;
/// 50 s: the time of a whole exploration, since clients give up after about 60 s. A path that is tried then is told with
/// what it has.
const EXPLORATION: Duration = Duration::from_secs(50);
/// 20 s: after this no further path is begun, so that those that are tried have time.
const NEW_TRIES: Duration = Duration::from_secs(20);
/// What helps where a path takes too long.
const SLOW_HINT: &str =
    "give a longer `timeoutMs`, at most 30000, or explore the steps of the intent one by one";
/// The factor on the confidence of a path of which nothing was really called.
const ALL_MOCKED: f64 = 0.5;

/// What to explore.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExploreInput {
    /// The intent.
    #[schema(min_length = 1)]
    pub intent: String,
    /// The number of paths to try, 1 to 10.
    #[schema(minimum = 1, maximum = 10)]
    #[serde(default = "default_paths", alias = "max_paths")]
    pub max_paths: u32,
    /// The longest chain of calls, 1 to 10.
    #[schema(minimum = 1, maximum = 10)]
    #[serde(default = "default_depth", alias = "max_depth")]
    pub max_depth: u32,
    /// The caller's own answers: `{tools, args}`, or a flat map of tools.
    #[serde(alias = "mock_config")]
    #[schema(value_type = Option<Object>)]
    pub mock_config: Option<Value>,
    /// Values that the paths may use, by parameter.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub context: Map<String, Value>,
    /// The time limit of one path in milliseconds, 1 to 30,000.
    #[serde(default = "default_timeout_ms", alias = "timeout_ms")]
    pub timeout_ms: u64,
}

/// The time limit of one path in milliseconds, unless the caller gives a shorter one.
pub const PATH_TIMEOUT_MS: u64 = 30_000;

fn default_timeout_ms() -> u64 {
    PATH_TIMEOUT_MS
}

fn default_paths() -> u32 {
    3
}

fn default_depth() -> u32 {
    5
}

/// Who explores.
#[derive(Clone)]
pub struct ExploringClient {
    /// The principal that paths are tried for.
    pub principal: Principal,
    /// The key of the client, if it has one.
    pub key: Option<KeyId>,
    /// The session of the client.
    pub session: String,
    /// The receiver of progress and log messages.
    pub caller: Caller,
}

/// Explores ways to serve an intent. Nothing is changed.
///
/// # Errors
/// The request cannot be understood, or nothing that serves the intent can be reached.
pub async fn explore(
    app: &Arc<App>,
    client: ExploringClient,
    input: ExploreInput,
    visible: impl Fn(&ToolId) -> bool + Send + Sync,
) -> Result<Exploration, Problem> {
    check_input(&input)?;
    let ends = Instant::now() + EXPLORATION;
    let _admission = app.keys.admit_run(&app.store, client.key).await?;
    app.tools.ensure_manifests_loaded().await;
    let (context, dictated) = context_of(app, &input)?;
    // Words alone rank tools too roughly for a chain of them.
    crate::knowledge::embed_for(&app.knowledge, EMBEDDING).await;
    let memory = ExplorationMemory::load(app, &client.principal, &input.intent).await?;
    let search = PathSearch {
        app,
        principal: &client.principal,
        intent: &input.intent,
        context: &context,
        max_depth: input.max_depth,
        visible: &visible,
    };
    let mut found = search.find().await?;
    let all = found.complete.iter_mut().chain(&mut found.paths).chain(&mut found.too_deep);
    all.for_each(|path| path.take_dictated(&dictated));
    let mut candidates = memory.in_order(found.complete, found.paths).await?;
    // What cannot be run as it is comes after everything that can.
    candidates.sort_by_key(|path| !path.made_up.is_empty());
    let (mut tried, evidence) = try_paths(app, &client, (&input, ends), candidates, &visible).await?;
    // The beginning of a path that is too long shows what it would have to go on with.
    let partial = found.too_deep.filter(|path| !path.callees.is_empty() && tried.len() < most_tries(&input));
    if let Some(path) = partial {
        // What was tried in part is evidence for no path.
        if let Some((outcome, _)) = try_path(app, &client, (&input, ends), &path, &visible).await? {
            tried.push((path, outcome));
        }
    }
    if tried.is_empty() && Instant::now() >= ends {
        let text = "no path could be tried in time, because other explorations are under way";
        return Err(Problem::new(ErrorCode::Timeout, text).hint("explore it again a little later"));
    }
    let uses = call_counts(app, &client.principal, &tried).await?;
    let mut exploration = assemble(&input, tried, &uses);
    memory.learn(&client.session, evidence, &mut exploration).await?;
    Ok(exploration)
}

type JsonObject = Map<String, Value>;

/// The values that paths may use: those of the context, and the arguments that the caller dictates for the trial. The
/// latter are returned by themselves too.
fn context_of(app: &App, input: &ExploreInput) -> Result<(JsonObject, JsonObject), Problem> {
    let given = parse_mocks(app, input.mock_config.as_ref())?;
    let mut dictated = given.changed_arguments(|_| None).map_err(|error| mock_problem(&error))?;
    dictated.retain(|name, _| !input.context.contains_key(name));
    let mut context = dictated.clone();
    context.extend(input.context.clone());
    Ok((context, dictated))
}

fn most_tries(input: &ExploreInput) -> usize {
    (input.max_paths * TRIES_PER_PATH) as usize
}

fn check_input(input: &ExploreInput) -> Result<(), Problem> {
    discover::check_intent_length(&input.intent)?;
    let invalid = |message: String| Err(Problem::new(ErrorCode::InvalidArguments, message));
    if input.intent.trim().is_empty() {
        return invalid("`intent` is empty; say in a few words what you want to do".to_owned());
    }
    if !(1..=MAX_PATHS).contains(&input.max_paths) {
        return invalid(format!("`maxPaths` is {} and must be 1 to {MAX_PATHS}", input.max_paths));
    }
    if !(1..=MAX_DEPTH).contains(&input.max_depth) {
        return invalid(format!("`maxDepth` is {} and must be 1 to {MAX_DEPTH}", input.max_depth));
    }
    if !(1..=PATH_TIMEOUT_MS).contains(&input.timeout_ms) {
        return invalid(format!("`timeoutMs` is {} and must be 1 to {PATH_TIMEOUT_MS}", input.timeout_ms));
    }
    Ok(())
}

/// A path with what came of it.
type TriedPath = (CandidatePath, DryRunOutcome);

/// Tries the paths in their order, until as many returned as are wanted. Further ones are tried in place of those that
/// fail. Returns what can be learned from them too.
async fn try_paths(
    app: &Arc<App>,
    client: &ExploringClient,
    (input, ends): (&ExploreInput, Instant),
    candidates: Vec<CandidatePath>,
    visible: &(dyn Fn(&ToolId) -> bool + Send + Sync),
) -> Result<(Vec<TriedPath>, Vec<DryRunEvidence>), Problem> {
    let (wanted, most) = (input.max_paths as usize, most_tries(input));
    let begun = Instant::now();
    let mut candidates: VecDeque<CandidatePath> = candidates.into();
    let (mut tried, mut learnable): (Vec<TriedPath>, Vec<DryRunEvidence>) = (Vec::new(), Vec::new());
    let mut lessons = Lessons::default();
    while lessons.viable < wanted && tried.len() < most && (tried.is_empty() || begun.elapsed() < NEW_TRIES) {
        let mut batch: Vec<CandidatePath> = Vec::new();
        while batch.len() < (wanted - lessons.viable).min(most - tried.len())
            && let Some(path) = candidates.pop_front()
        {
            // A path with the tools of another waits until that has failed.
            let tools = path.sorted_callees();
            let is_waiting = batch.iter().any(|other| is_part_of(&other.sorted_callees(), &tools));
            if is_waiting && !path.is_whole {
                lessons.waiting.push(path);
            } else if lessons.is_open(&path) {
                batch.push(path);
            }
        }
        let runs = batch.iter().map(|path| try_path(app, client, (input, ends), path, visible));
        let outcomes = join_all(runs).await;
        if batch.is_empty() {
            break;
        }
        for (path, outcome) in batch.into_iter().zip(outcomes) {
            let Some((outcome, evidence)) = outcome? else { continue };
            learnable.extend(evidence);
            lessons.note(&path, &outcome);
            tried.push((path, outcome));
        }
        lessons.waiting.drain(..).rev().for_each(|path| candidates.push_front(path));
    }
    // What reads the request as a whole is tried in any case: it is what the others have to be better than.
    let whole = candidates.into_iter().find(|path| path.is_whole && !lessons.fails(path));
    if let Some(path) = whole
        && let Some((outcome, evidence)) = try_path(app, client, (input, ends), &path, visible).await?
    {
        learnable.extend(evidence);
        tried.push((path, outcome));
    }
    Ok((tried, learnable))
}

/// What the paths tried so far say about the others.
#[derive(Default)]
struct Lessons {
    /// How many paths returned.
    viable: usize,
    /// The tools of paths that returned.
    served: Vec<Vec<String>>,
    /// Calls that failed, with everything they depend on: they would fail again.
    failing: HashSet<String>,
    /// Paths with the tools of one that is being tried.
    waiting: Vec<CandidatePath>,
}

impl Lessons {
    /// Whether a path may bring something new. More calls than those of a path that returned are a detour.
    fn is_open(&self, path: &CandidatePath) -> bool {
        let tools = path.sorted_callees();
        let is_detour = self.served.iter().any(|served| is_part_of(served, &tools));
        (path.is_whole || !is_detour) && !self.fails(path)
    }

    /// Whether a call of the path failed on another.
    fn fails(&self, path: &CandidatePath) -> bool {
        path.wirings().iter().any(|wiring| self.failing.contains(wiring))
    }

    fn note(&mut self, path: &CandidatePath, outcome: &DryRunOutcome) {
        let DryRunOutcome::Report(report) = outcome else { return };
        match report.status {
            DryRunStatus::Success => {
                self.viable += 1;
                // A path that takes what nobody gave shows nothing of those that find it out.
                if path.made_up.is_empty() {
                    self.served.push(path.sorted_callees());
                }
            }
            DryRunStatus::Failed => {
                let failed = report.captured_calls.iter().filter(|call| call.error.is_some());
                let wirings = path.wirings();
                self.failing.extend(failed.filter_map(|call| wirings.get(task_of(path, call)?).cloned()));
            }
        }
    }
}

/// The place of the task that made a call.
fn task_of(path: &CandidatePath, call: &CapturedCall) -> Option<usize> {
    match &call.capability {
        // The tasks of a document are its first nodes, in its order.
        None => Some(call.node_id?.number as usize - 1),
        Some(name) => {
            let is_called = |callee: &PathCallee| *callee == PathCallee::Capability(name.clone());
            let mut tasks = path.callees.iter().enumerate().filter(|(_, callee)| is_called(callee));
            // Which of several calls of the same capability it was is not known.
            tasks.next().map(|(place, _)| place).filter(|_| tasks.next().is_none())
        }
    }
}

/// Whether all of the first tools are among the second, each as often. Both are sorted.
fn is_part_of(tools: &[String], others: &[String]) -> bool {
    let mut others = others.iter();
    tools.iter().all(|tool| others.any(|other| other == tool))
}

/// Runs one path dry; `None` if its turn does not come before the exploration ends. Only a few run at a time, whoever
/// asks for them.
async fn try_path(
    app: &Arc<App>,
    client: &ExploringClient,
    (input, ends): (&ExploreInput, Instant),
    path: &CandidatePath,
    visible: &(dyn Fn(&ToolId) -> bool + Send + Sync),
) -> Result<Option<(DryRunOutcome, Option<DryRunEvidence>)>, Problem> {
    let Ok(_turn) = tokio::time::timeout_at(ends.into(), app.explorations.acquire()).await else {
        return Ok(None);
    };
    let left = ends.saturating_duration_since(Instant::now());
    let (config, timeout) = (app.config(), Duration::from_millis(input.timeout_ms).min(left));
    let ExploringClient { principal, key, session, caller } = client.clone();
    let request = RunRequest {
        principal,
        key,
        session,
        intent: input.intent.clone(),
        work: Work::Dag { document: path.document.to_string(), pause: Pause::default() },
        arguments: raw(&path.made_up.iter().chain(&path.dictated).collect::<BTreeMap<_, _>>()),
        timeout: None,
        caller,
        idempotency: None,
        max_wait: timeout,
        answerer: config.approvals.answerer.unwrap_or(Answerer::Human),
        dynamic: config.approvals.dynamic,
        learn: config.memory.learn,
        capability: None,
        use_cache: false,
        speculate: false,
    };
    // No tool is really called with a value that was made up.
    let mode = if path.made_up.is_empty() { DryRunMode::Hybrid } else { DryRunMode::Mocked };
    let dry = DryRunOptions {
        mode,
        mocks: input.mock_config.as_ref().map(mocked_tools),
        timeout: Some(timeout),
        timeout_hint: Some(SLOW_HINT),
        kept: KeptIf::Returned,
        admission: DryAdmission::OfCaller,
        ..DryRunOptions::default()
    };
    let tried = dry_run_with_evidence(app, request, dry, visible).await?;
    if let DryRunOutcome::Report(report) = &tried.0 {
        app.dry_runs.note_made_up(&client.principal, &report.id, path.missing().cloned());
    }
    Ok(Some(tried))
}

/// The answers that the caller dictates, without the arguments: the paths have them already.
fn mocked_tools(mocks: &Value) -> Value {
    let mut mocks = mocks.clone();
    if mocks.get("tools").is_some_and(Value::is_object) || mocks.get("args").is_some_and(Value::is_object) {
        mocks.as_object_mut().map(|mocks| mocks.remove("args"));
    }
    mocks
}

/// Sorts the tried paths into those that returned, at most as many as are wanted, and those that failed.
fn assemble(input: &ExploreInput, tried: Vec<TriedPath>, uses: &ToolUseCounts) -> Exploration {
    let (intent, most) = (&*input.intent, input.max_paths as usize);
    let paths_explored = tried.len();
    let mut calls = Vec::new();
    let (mut viable, mut failed) = (Vec::new(), Vec::new());
    for (number, (path, outcome)) in tried.into_iter().enumerate() {
        let path = &path;
        match outcome {
            DryRunOutcome::Report(report) => {
                calls.extend(report.captured_calls.iter().map(|call| ExploredCall::new(number, call)));
                match report.status {
                    _ if !path.beyond.is_empty() => failed.push(partial_path(path, &report)),
                    DryRunStatus::Success => viable.push(viable_path(path, *report, uses)),
                    DryRunStatus::Failed => failed.push(failed_path(path, &report)),
                }
            }
            DryRunOutcome::Refused(refused) => failed.push(FailedPath {
                path: path.callee_names(),
                failure_point: None,
                code: refused.problem.code,
                error: refused.problem.message,
                outputs: Vec::new(),
            }),
            // A path is a document, so there is nothing to suggest instead.
            DryRunOutcome::Suggested(_) => {}
        }
    }
    viable.sort_by(ViablePath::best_first);
    // One more than wanted may have been tried.
    viable.truncate(most);
    let mocked = calls.iter().filter(|call| call.mocked).count();
    Exploration {
        exploration_id: None,
        intent: intent.to_owned(),
        paths_explored,
        viable_paths: viable,
        failed_paths: failed,
        warnings: Vec::new(),
        trace: ExplorationTrace {
            exploratory: true,
            mock_ratio: share(mocked, calls.len()),
            task_results: calls,
        },
    }
}

fn viable_path(path: &CandidatePath, report: DryRunReport, uses: &ToolUseCounts) -> ViablePath {
    let real = report.captured_calls.iter().filter(|call| call.is_real()).count();
    let told = report.warnings.iter().map(|warning| warning.message.clone());
    let made_up = path.made_up.keys().map(|name| {
        format!("`{name}` is not said and was made up; give it in `context` when you run this path")
    });
    let dictated = path
        .dictated
        .keys()
        .map(|name| format!("`{name}` comes from `mockConfig`; give it in `context` when you run this path"));
    let open = made_up.chain(dictated);
    ViablePath {
        path: path.callee_names(),
        confidence: confidence(path, &report),
        real_executions: real,
        mocked_executions: report.captured_calls.len() - real,
        outputs: report.captured_calls.iter().map(PathOutput::new).collect(),
        missing: path.missing().cloned().collect(),
        worked_before: 0,
        standing: match (path.is_whole, path.missing().next().is_none() && path.warnings.is_empty()) {
            (true, true) => PathStanding::Whole,
            (true, false) => PathStanding::WholeWithGaps,
            (false, _) if real > 0 => PathStanding::Tried,
            (false, _) => PathStanding::MadeUp,
        },
        warnings: open.chain(path.warnings.iter().cloned()).chain(told).collect(),
        history: history(path, uses),
        dag_structure: path.document.clone(),
        path_id: report.id,
        result: report.result,
        effects: report.effects,
    }
}

/// A path that was tried up to the depth that is allowed.
fn partial_path(path: &CandidatePath, report: &DryRunReport) -> FailedPath {
    let of_trial = failed_path(path, report);
    if report.status == DryRunStatus::Failed {
        return of_trial;
    }
    FailedPath {
        path: path.callee_names().into_iter().chain(path.beyond.iter().cloned()).collect(),
        failure_point: path.beyond.first().cloned(),
        code: ErrorCode::TooDeep,
        error: format!(
            "it was tried up to {} calls in a row; raise `maxDepth` to try all of it",
            path.depth()
        ),
        ..of_trial
    }
}

fn failed_path(path: &CandidatePath, report: &DryRunReport) -> FailedPath {
    let failed = report.captured_calls.iter().find(|call| call.error.is_some());
    let error = report.error.as_ref().or(failed.and_then(|call| call.error.as_ref()));
    FailedPath {
        path: path.callee_names(),
        failure_point: failed
            .or_else(|| open_call(report))
            .map(|call| format!("{}:{}", call.server, call.tool)),
        code: error.map_or(ErrorCode::ProgramError, |error| error.code),
        error: error.map_or_else(|| "it did not return".to_owned(), |error| error.message.clone()),
        outputs: report.captured_calls.iter().map(PathOutput::new).collect(),
    }
}

/// The call that a path was waiting for when it was ended.
fn open_call(report: &DryRunReport) -> Option<&CapturedCall> {
    let is_open = |call: &&CapturedCall| {
        call.error.is_none() && call.response.is_none() && call.mock_response.is_none()
    };
    report.captured_calls.iter().find(is_open)
}

/// The confidence in a path that returned: how likely its tools are what was asked for, lowered by the share of calls
/// that were not made, of real calls that failed, and of calls that worked on made-up values.
fn confidence(path: &CandidatePath, report: &DryRunReport) -> f64 {
    let calls = &report.captured_calls;
    let real: Vec<&CapturedCall> = calls.iter().filter(|call| call.is_real()).collect();
    let worked = real.iter().filter(|call| call.error.is_none()).count();
    let success = if real.is_empty() { 1.0 } else { share(worked, real.len()) };
    let tainted: HashSet<_> = report.warnings.iter().filter_map(|warning| warning.node_id.as_ref()).collect();
    let coherence = 1.0 - share(tainted.len().min(calls.len()), calls.len());
    let made = ALL_MOCKED + (1.0 - ALL_MOCKED) * share(real.len(), calls.len());
    let all = path.probability * made * success * coherence;
    (all * 100.0).round() / 100.0
}

fn share(part: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

/// How often what these paths call was called before, and how often that failed.
async fn call_counts(
    app: &App,
    principal: &Principal,
    tried: &[TriedPath],
) -> Result<ToolUseCounts, Problem> {
    let uses = app.knowledge.of_principal(principal).uses();
    let mut counts = ToolUseCounts::new();
    for callee in tried.iter().flat_map(|(path, _)| &path.callees) {
        let name = callee.to_string();
        let of_callee = match callee {
            PathCallee::Tool(_) => uses.get(&name).copied(),
            PathCallee::Capability(_) => {
                let known = app.knowledge.memory.find_by_name(principal, &name).await?;
                known.map(|known| {
                    let CapabilityStatistics { success_count, failure_count: failures, .. } =
                        known.statistics;
                    CallCounts { calls: success_count + failures, failures }
                })
            }
        };
        counts.extend(of_callee.map(|of_callee| (name, of_callee)));
    }
    Ok(counts)
}

fn history(path: &CandidatePath, uses: &ToolUseCounts) -> Vec<ToolHistory> {
    let of_tool = |tool: String| {
        let counts = uses.get(&tool)?;
        Some((tool.clone(), ToolHistory { tool, calls: counts.calls, failures: counts.failures }))
    };
    let by_tool: BTreeMap<String, ToolHistory> =
        path.callee_names().into_iter().filter_map(of_tool).collect();
    by_tool.into_values().collect()
}
