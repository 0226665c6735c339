//! Explores an intent that nothing serves yet: finds several ways, and tries each without changing anything.
//!
//! Every step of the intent gets its likeliest tools, and tools that only read are added where they could give these
//! what they need. The cheapest hyperpaths become DAGs ([`suggest::paths`](crate::suggest::paths)), and each is run dry:
//! tools that are safe are called, the others are answered with made-up values. The id of a dry run is the id to
//! confirm the path with.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use pml_language::Reading;
use pml_mcp::Caller;
use pml_model::capability::reliability;
use pml_model::json::empty_object;
use pml_model::question::Answerer;
use pml_model::{Principal, ToolId};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::compose::{StepSearch, reads};
use super::dry_run::{DryRunOptions, DryRunOutcome, dry_run};
use crate::app::App;
use crate::catalogue::CatalogueTool;
use crate::discover;
use crate::knowledge::ToolUseCounts;
use crate::knowledge::graph::{ToolGraph, fields_of};
use crate::plan::Pause;
use crate::planning::{RunRequest, Work};
use crate::problem::{ErrorCode, Problem};
use crate::report::{
    CapturedCall, DryRunMode, DryRunReport, DryRunStatus, Exploration, ExplorationTrace, ExploredCall,
    FailedPath, PathOutput, ToolHistory, ViablePath,
};
use crate::suggest::deprecated;
use crate::suggest::paths::{
    CandidatePath, CandidatePaths, PathRequest, PathStep, PathTool, candidate_paths,
};

/// 30 s: the time limit of one path.
const PATH_TIMEOUT: Duration = Duration::from_secs(30);
/// The most paths of one exploration; more could not be chosen from.
const MAX_PATHS: u32 = 10;
/// The longest chain of calls; longer ones are never found by their schemas alone.
const MAX_DEPTH: u32 = 10;
/// Tools considered for each step: more than a suggestion considers, because wrong ones fail when tried.
const TOOLS_PER_STEP: usize = 6;
/// Least probability of a tool for a step. A wrong path costs a dry run and not a mistake.
const LEAST_STEP: f64 = 0.1;
/// Tools in the graph of one exploration.
const MOST_TOOLS: usize = 32;
/// The factor on the confidence of a path of which nothing was really called.
const ALL_MOCKED: f64 = 0.5;

/// What to explore.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExploreInput {
    /// The intent.
    pub intent: String,
    /// The number of paths to try, 1 to 10.
    #[serde(default = "default_paths", alias = "max_paths")]
    pub max_paths: u32,
    /// The longest chain of calls, 1 to 10.
    #[serde(default = "default_depth", alias = "max_depth")]
    pub max_depth: u32,
    /// The caller's own answers: `{tools, args}`, or a flat map of tools.
    #[serde(alias = "mock_config")]
    pub mock_config: Option<Value>,
    /// Values that the paths may use, by parameter.
    #[serde(default)]
    pub context: Map<String, Value>,
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
    app.tools.ensure_manifests_loaded().await;
    let found = find_paths(app, &client.principal, &input, &visible).await?;
    let runs = found.paths.iter().map(|path| try_path(app, &client, &input, path, &visible));
    let mut outcomes = Vec::new();
    for outcome in join_all(runs).await {
        outcomes.push(outcome?);
    }
    let uses = app.knowledge.of_principal(&client.principal).uses();
    let mut exploration = assemble(&input.intent, &found.paths, outcomes, &uses);
    if found.too_deep {
        let told = format!("paths with more than {} calls in a row were left out", input.max_depth);
        exploration.warnings.push(told);
    }
    Ok(exploration)
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
    Ok(())
}

/// Candidate paths for an intent.
async fn find_paths(
    app: &Arc<App>,
    principal: &Principal,
    input: &ExploreInput,
    visible: &(dyn Fn(&ToolId) -> bool + Send + Sync),
) -> Result<CandidatePaths, Problem> {
    let intent = input.intent.as_str();
    let snapshot = app.tools.snapshot();
    let known = app.knowledge.of_principal(principal);
    let (observed, uses) = (known.observed(), known.uses());
    let graph = app.knowledge.graph(principal).await?;
    let wanted = app.knowledge.embeddings.read_intent(intent).await;
    let search = StepSearch::new(app, principal, &snapshot, visible);
    let mut tools: Vec<&CatalogueTool> = Vec::new();
    let mut steps: Vec<(String, Vec<(ToolId, f64)>)> = Vec::new();
    for (clause, found) in search.steps(intent, &wanted.text, TOOLS_PER_STEP).await {
        let likely: Vec<_> = found.into_iter().filter(|(_, score)| *score >= LEAST_STEP).collect();
        for (tool, _) in &likely {
            if tools.iter().all(|other| other.id != tool.id) {
                tools.push(tool);
            }
        }
        steps.push((clause, likely.into_iter().map(|(tool, score)| (tool.id.clone(), score)).collect()));
    }
    let unserved: Vec<String> =
        steps.iter().filter(|(_, tools)| tools.is_empty()).map(|(clause, _)| clause.clone()).collect();
    if !unserved.is_empty() {
        return Err(nothing_reached(&unserved, &tools));
    }
    let is_helper =
        |tool: &CatalogueTool| visible(&tool.id) && reads(app, tool) && !deprecated::is_deprecated(tool);
    for id in helpers(&graph, &tools, input.max_depth) {
        let tool = ToolId::parse(&id).ok().and_then(|id| snapshot.tool(&id).ok());
        tools.extend(tool.filter(|tool| is_helper(tool) && tools.len() < MOST_TOOLS));
    }
    let policy = app.policy();
    let path_tools: Vec<PathTool<'_>> = tools
        .iter()
        .map(|tool| PathTool {
            tool,
            fields: fields_of(tool, &observed),
            is_safe: policy.verdict(&tool.id, &tool.definition.annotations).can_speculate(),
            reads_only: reads(app, tool),
            reliability: reliability_of(&uses, &tool.id),
        })
        .collect();
    let index = |id: &ToolId| tools.iter().position(|tool| tool.id == *id).unwrap_or_default();
    let path_steps: Vec<PathStep> = steps
        .iter()
        .map(|(words, found)| PathStep {
            words: words.clone(),
            candidates: found.iter().map(|(id, score)| (index(id), *score)).collect(),
        })
        .collect();
    let reading = Reading::of(intent);
    let found = candidate_paths(&PathRequest {
        intent: &reading,
        context: &input.context,
        tools: &path_tools,
        steps: &path_steps,
        max_paths: input.max_paths as usize,
        max_depth: input.max_depth as usize,
    });
    match found.paths.is_empty() {
        false => Ok(found),
        true if found.too_deep => {
            let told = format!("every path has more than {} calls in a row", input.max_depth);
            Err(Problem::new(ErrorCode::NotFound, told).hint("raise `maxDepth`, or ask for less at once"))
        }
        true => Err(nothing_reached(&[intent.to_owned()], &tools[..tools.len().min(5)])),
    }
}

/// The tools from which those could get what they need, through as many calls as a path may have.
fn helpers(graph: &ToolGraph, tools: &[&CatalogueTool], max_depth: u32) -> Vec<String> {
    let mut layer: Vec<String> = tools.iter().map(|tool| tool.id.to_string()).collect();
    let mut seen: HashSet<String> = layer.iter().cloned().collect();
    let mut found = Vec::new();
    for _ in 1..max_depth {
        let sources: Vec<String> =
            layer.iter().flat_map(|id| graph.best_sources(id)).map(str::to_owned).collect();
        layer = sources.into_iter().filter(|id| seen.insert(id.clone())).collect();
        found.extend(layer.iter().cloned());
    }
    found
}

fn reliability_of(uses: &ToolUseCounts, tool: &ToolId) -> f64 {
    let (calls, failures) = uses.get(&tool.to_string()).map_or((0, 0), |uses| (uses.calls, uses.failures));
    reliability(calls.saturating_sub(failures), calls)
}

fn nothing_reached(steps: &[String], nearest: &[&CatalogueTool]) -> Problem {
    let steps: Vec<String> = steps.iter().map(|step| format!("“{step}”")).collect();
    let told = format!("no tools can be put together for {}", steps.join(" and "));
    let nearest: Vec<String> = nearest.iter().take(5).map(|tool| format!("`{}`", tool.id)).collect();
    let hint = match nearest.is_empty() {
        true => "no tool comes near; add a server that does this".to_owned(),
        false => format!(
            "the nearest tools are {}; give the values they need in `intent` or `context`",
            nearest.join(", ")
        ),
    };
    Problem::new(ErrorCode::NotFound, told).hint(hint)
}

/// Runs one path dry. Only a few run at a time, whoever asks for them.
async fn try_path(
    app: &Arc<App>,
    client: &ExploringClient,
    input: &ExploreInput,
    path: &CandidatePath,
    visible: &(dyn Fn(&ToolId) -> bool + Send + Sync),
) -> Result<DryRunOutcome, Problem> {
    let _turn = app.explorations.acquire().await;
    let config = app.config();
    let ExploringClient { principal, session, caller } = client.clone();
    let request = RunRequest {
        principal,
        session,
        intent: input.intent.clone(),
        work: Work::Dag { document: path.document.to_string(), pause: Pause::default() },
        arguments: empty_object(),
        timeout: None,
        caller,
        idempotency: None,
        max_wait: PATH_TIMEOUT,
        answerer: config.approvals.answerer.unwrap_or(Answerer::Human),
        dynamic: config.approvals.dynamic,
        learn: false,
        capability: None,
        use_cache: false,
        speculate: false,
    };
    let dry = DryRunOptions {
        mode: DryRunMode::Hybrid,
        mocks: input.mock_config.clone(),
        timeout: Some(PATH_TIMEOUT),
        ..DryRunOptions::default()
    };
    dry_run(app, request, dry, visible).await
}

/// Sorts the tried paths into those that returned and those that failed.
fn assemble(
    intent: &str,
    paths: &[CandidatePath],
    outcomes: Vec<DryRunOutcome>,
    uses: &ToolUseCounts,
) -> Exploration {
    let mut calls = Vec::new();
    let (mut viable, mut failed) = (Vec::new(), Vec::new());
    for (number, (path, outcome)) in paths.iter().zip(outcomes).enumerate() {
        match outcome {
            DryRunOutcome::Report(report) => {
                calls.extend(report.captured_calls.iter().map(|call| ExploredCall::new(number, call)));
                match report.status {
                    DryRunStatus::Success => viable.push(viable_path(path, *report, uses)),
                    DryRunStatus::Failed => failed.push(failed_path(path, &report)),
                }
            }
            DryRunOutcome::Refused(refused) => failed.push(FailedPath {
                path: tool_names(path),
                failure_point: None,
                code: refused.problem.code,
                error: refused.problem.message,
                outputs: Vec::new(),
            }),
            // A path is a document, so there is nothing to suggest instead.
            DryRunOutcome::Suggested(_) => {}
        }
    }
    viable.sort_by(|one: &ViablePath, other| other.confidence.total_cmp(&one.confidence));
    let mocked = calls.iter().filter(|call| call.mocked).count();
    Exploration {
        intent: intent.to_owned(),
        paths_explored: paths.len(),
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
    ViablePath {
        path: tool_names(path),
        confidence: confidence(path, &report),
        real_executions: real,
        mocked_executions: report.captured_calls.len() - real,
        outputs: report.captured_calls.iter().map(PathOutput::new).collect(),
        warnings: path.warnings.iter().cloned().chain(told).collect(),
        history: history(path, uses),
        dag_structure: path.document.clone(),
        path_id: report.id,
        result: report.result,
        effects: report.effects,
    }
}

fn failed_path(path: &CandidatePath, report: &DryRunReport) -> FailedPath {
    let failed = report.captured_calls.iter().find(|call| call.error.is_some());
    let error = report.error.as_ref().or(failed.and_then(|call| call.error.as_ref()));
    FailedPath {
        path: tool_names(path),
        failure_point: failed.map(|call| format!("{}:{}", call.server, call.tool)),
        code: error.map_or(ErrorCode::ProgramError, |error| error.code),
        error: error.map_or_else(|| "it did not return".to_owned(), |error| error.message.clone()),
        outputs: report.captured_calls.iter().map(PathOutput::new).collect(),
    }
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

fn tool_names(path: &CandidatePath) -> Vec<String> {
    path.tools.iter().map(ToString::to_string).collect()
}

fn history(path: &CandidatePath, uses: &ToolUseCounts) -> Vec<ToolHistory> {
    let of_tool = |tool: String| {
        let counts = uses.get(&tool)?;
        Some((tool.clone(), ToolHistory { tool, calls: counts.calls, failures: counts.failures }))
    };
    let by_tool: BTreeMap<String, ToolHistory> = tool_names(path).into_iter().filter_map(of_tool).collect();
    by_tool.into_values().collect()
}
