//! The spine: the order of the stages that a request passes through.
//!
//! Every request reaches the stages only through this module, from whichever entry point (MCP, HTTP, terminal) it came.
//! This module decides what comes next; the stages do the work.

mod answer_input;
mod approvals;
mod authority;
mod capabilities;
mod compose;
mod counting;
mod direct;
mod dry_run;
mod explore;
mod explore_learning;
mod explored_choice;
mod exposed;
mod history;
mod inline_program;
mod lift;
mod lookup;
mod mocks;
mod packaged_calls;
mod path_search;
mod predict;
mod preview;
mod publish;
mod read_request;
mod recall;
mod regression;
mod repairs;
mod repeated;
mod replan;
mod share;
mod spans;
mod speculation;
mod version_names;
mod versions;
mod views;

use std::collections::HashMap;
use std::sync::Arc;

use pml_analysis::render::ComplaintReport;
use pml_graph::graph::closeness::CloseNode;
use pml_mcp::Caller;
use pml_model::json::empty_object;
use pml_model::{Principal, RunId, ToolId};
use pml_store::Idempotency;

use crate::app::App;
use crate::catalogue::CatalogueTool;
use crate::clock::now_ms;
use crate::discover::{self, DiscoverPage, DiscoverRequest};
use crate::execute::replay::{self, Recording, ReplayOutcome};
use crate::execute::{
    self, AskFirstOutcome, EarlierRead, OpenCall, PlannedRun, ResultPage, ResumeOutcome, RunDetails,
    RunHandle,
};
use crate::knowledge::CapabilityCandidate;
use crate::knowledge::cache;
use crate::knowledge::embeddings;
use crate::plan::{Bounds, ExploredChoice, Plan};
use crate::planning;
use crate::planning::{PlanRefusal, PlanningContext, RunRequest};
use crate::problem::{ErrorCode, Problem};
use crate::report::{RunReport, RunStatus};
use crate::runtime::{compute, run_blocking};
use crate::suggest::SuggestedDag;

pub use crate::execute::ResultRequest;
pub use answer_input::{AnswerInput, RememberRequest};
pub use approvals::{
    OpenQuestion, answer, open_question, open_questions, revoke_rule, rules, why_no_question,
};
pub use authority::{AnswerChannel, needs_person};
pub use capabilities::{
    CapabilityRecord, ContainedCapability, NewCapability, TakenName, TracePage, cache_drop_log, capabilities,
    capability, capability_record, configure_result_cache, daily_savings, delete_capability, drop_results,
    forget_intent, is_capability_name, make_capability, merge_capabilities, page_of_traces, recent_traces,
    relearn, rename_capability, trace, whole_cache_usage,
};
pub use direct::{DirectOutcome, NamedCall, call};
pub use dry_run::{
    DEFAULT_BRANCH_RUNS, DryRunOptions, DryRunOutcome, MAX_BRANCH_RUNS, confirm_dry_run, dry_run,
};
pub use explore::{ExploreInput, ExploringClient, PATH_TIMEOUT_MS, explore};
pub use exposed::{ExposedCapability, exposed_capabilities};
pub use history::{PastQuestion, PastRun, list_runs, past_run, question_kind, run_call, run_calls};
pub use inline_program::read_program;
use lookup::CapabilitiesOf;
pub use mocks::{MockRecord, MockStats, drop_mocks, mock, mock_stats, mocks, pin_mock};
pub use predict::prediction_task;
pub use preview::{ExecutePreview, preview_execute};
pub use publish::{assign_person, publish_capability, published_capabilities, visible_capability};
use recall::RecallOutcome;
pub use recall::{CapabilitySuggestion, ContradictedConstant, EarlierResult, MissingInput, Suggestions};
pub use regression::{CapabilityTest, ReplayTest, test_capability};
pub use repairs::{RepairOutcome, accept_repair, repair_capability, repair_task};
pub use replan::replan;
pub use share::{
    ExportedPackage, ImportedCapability, PackageOptions, PackageReview, export_package, import_package,
    review_package,
};
pub use speculation::{ConfidenceStats, SpeculationStats, speculation_stats};
pub use versions::{
    EffectChange, VersionDiff, VersionList, VersionRecord, capability_versions, diff_versions, roll_back,
};
pub use views::{
    GraphWays, definition, find_graph_nodes, find_graph_paths, graph, graph_layout, graph_node, graph_ways,
    invocation,
};

/// Finds the tools and capabilities that could serve an intent and that the caller may see.
///
/// # Errors
/// The request cannot be understood.
pub async fn discover(
    app: &App,
    (principal, session): (&Principal, Option<&str>),
    request: &DiscoverRequest,
    visible: impl Fn(&CatalogueTool) -> bool,
) -> Result<DiscoverPage, Problem> {
    discover::check_request(request)?;
    app.tools.ensure_manifests_loaded().await;
    let wanted = app.knowledge.embeddings.read_intent(&request.intent).await;
    let capabilities = match request.filter.kind {
        discover::ResultKind::Tool => Vec::new(),
        discover::ResultKind::Capability | discover::ResultKind::All => {
            app.knowledge.find(principal, &request.intent, &wanted).await?
        }
    };
    let close = session.map(|session| related_to_session(app, principal, session)).unwrap_or_default();
    let ready = compute(|| recall::ready_call(app, &request.intent, &capabilities));
    let mut page = rank_for_request(app, principal, &wanted, (capabilities, close), request, visible)?;
    if let Some((id, call)) = ready.filter(|_| request.offset == 0) {
        page.put_first(id.as_str(), call);
    }
    page.add_notes(readiness_notes(app));
    counting::note_search(app, request, &page);
    Ok(page)
}

/// Why a search may find less than there is: texts that are not embedded yet, and servers whose tools are not known.
pub fn readiness_notes(app: &App) -> Vec<String> {
    discover::readiness_notes(app.knowledge.embeddings.progress(), &app.tools.unready_servers())
}

/// The tools and capabilities related to those just used in a session.
fn related_to_session(app: &App, principal: &Principal, session: &str) -> HashMap<String, CloseNode> {
    let used = app.knowledge.memory.recent_session_tools(principal, session);
    let used: Vec<&str> = used.iter().map(String::as_str).collect();
    let graph = app.knowledge.of_principal(principal).graph().filter(|_| !used.is_empty());
    let close = graph.map(|graph| graph.related_to(&used)).unwrap_or_default();
    close.into_iter().map(|close| (close.id.clone(), close)).collect()
}

/// Ranks the tools and capabilities for a request, with everything recorded about them.
fn rank_for_request(
    app: &App,
    principal: &Principal,
    wanted: &embeddings::IntentReading,
    (capabilities, close): (Vec<CapabilityCandidate>, HashMap<String, CloseNode>),
    request: &DiscoverRequest,
    visible: impl Fn(&CatalogueTool) -> bool,
) -> Result<DiscoverPage, Problem> {
    let (snapshot, learned) = (app.tools.snapshot(), app.knowledge.of_principal(principal));
    let (observed, uses) = (learned.observed(), learned.uses());
    let vectors = app.knowledge.embeddings.tool_vectors(&snapshot);
    let past = learned.advice(&snapshot, wanted);
    let known = discover::DiscoverMemory {
        capabilities,
        observed: Some(&*observed),
        reading: Some(wanted),
        vectors: Some(&*vectors),
        advice: past.as_ref(),
        uses: Some(&*uses),
        close_by_id: close,
    };
    compute(|| discover::find(&snapshot, &known, request, visible))
}

/// A DAG of tools that could serve an intent; `None` if no tool matches it.
pub async fn suggest_dag(
    app: &Arc<App>,
    principal: &Principal,
    intent: &str,
    visible: &(dyn Fn(&ToolId) -> bool + Send + Sync),
) -> Option<SuggestedDag> {
    let wanted = app.knowledge.embeddings.read_intent(intent).await;
    compose::compose(app, principal, intent, &serde_json::Map::new(), &wanted.text, visible).await
}

/// The outcome of analysing a program or a DAG document.
pub enum AnalysisOutcome {
    /// The analysis of a program, complaints included.
    Program(Box<pml_analysis::Analysis>),
    /// The analysis of a DAG document, complaints included.
    Dag(Box<pml_analysis::DagAnalysis>),
    /// The source could not be parsed.
    NotUnderstood(ComplaintReport),
}

/// Analyses a program against the current tools; nothing is run.
pub async fn analyse(app: &App, source: String) -> AnalysisOutcome {
    analyse_for(&CapabilitiesOf::new(app, &app.principal), source).await
}

async fn analyse_for(callable: &CapabilitiesOf<'_>, source: String) -> AnalysisOutcome {
    let catalogue = callable.current_catalogue(&source).await;
    // Analysis time grows with the size of the program: keep it off the threads that serve requests.
    run_blocking(move || understand(&catalogue, &source)).await
}

/// Analyses a DAG document against the current tools; nothing is run.
pub async fn analyse_dag(app: &App, document: String) -> AnalysisOutcome {
    analyse_dag_for(&CapabilitiesOf::new(app, &app.principal), document).await
}

async fn analyse_dag_for(callable: &CapabilitiesOf<'_>, document: String) -> AnalysisOutcome {
    let catalogue = callable.current_catalogue(&document).await;
    run_blocking(move || match pml_analysis::analyse_dag(&document, &catalogue) {
        Ok(analysis) => AnalysisOutcome::Dag(Box::new(analysis)),
        Err(error) => AnalysisOutcome::NotUnderstood(ComplaintReport::from(&error)),
    })
    .await
}

/// The outcome of a request to run something.
pub enum ExecuteOutcome {
    /// The run is executing in this process.
    Running(Arc<RunHandle>),
    /// The run exists from an earlier request, or waits for approval; this is its status.
    Status(RunId, RunStatus),
    /// The same request was made before and its question is still open; this is the status of that run.
    AlreadyWaiting(RunId, RunStatus),
    /// The program cannot be run, or the policy denies it.
    Refused(PlanRefusal),
    /// Nothing was run: these are the candidates.
    Suggested(Box<Suggestions>),
    /// Nothing was run: this is the cached result.
    Cached(Box<CachedRun>),
}

/// A cached result in the form of a run.
pub struct CachedRun {
    /// The run that produced the cached result; a new id if that is not recorded.
    pub id: RunId,
    /// The report with the cached result.
    pub report: RunReport,
}

/// Executes a request: plans it, checks it against the policy and starts the run.
///
/// # Errors
/// The run cannot be started or recorded.
pub async fn execute(
    app: &Arc<App>,
    asked: RunRequest,
    visible: impl Fn(&ToolId) -> bool + Send + Sync,
) -> Result<ExecuteOutcome, Problem> {
    execute_confirmed(app, asked, RunLegacy::default(), visible).await
}

/// What a run takes over: from the dry run that it confirms, or from a direct call.
#[derive(Default)]
struct RunLegacy {
    /// The call that the run goes on with.
    open_call: Option<OpenCall>,
    /// The reads that were made.
    reads: Vec<EarlierRead>,
    /// The path of an exploration that it was.
    explored: Option<Box<ExploredChoice>>,
}

/// As [`execute`], for the request of a dry run.
async fn execute_confirmed(
    app: &Arc<App>,
    asked: RunRequest,
    legacy: RunLegacy,
    visible: impl Fn(&ToolId) -> bool + Send + Sync,
) -> Result<ExecuteOutcome, Problem> {
    discover::check_intent_length(&asked.intent)?;
    if let Some(idempotency) = &asked.idempotency
        && let Some(known) = find_repeated_run(app, &asked.principal, idempotency).await?
    {
        return Ok(known);
    }
    app.tools.ensure_manifests_loaded().await;
    let whose = (asked.principal.clone(), asked.session.clone());
    let asked = match recall::resolve_work(app, asked, &visible).await? {
        RecallOutcome::Run(asked) => *asked,
        RecallOutcome::Suggested(suggested) => {
            counting::note_suggestions(app, &whose, &suggested);
            return Ok(ExecuteOutcome::Suggested(suggested));
        }
    };
    let mut plan = match spans::in_analysis_span(app, plan_request(app, &asked, &visible)).await {
        Ok(plan) => plan,
        Err(refused) => return Ok(ExecuteOutcome::Refused(refused)),
    };
    counting::note_plan(app, &whose, &plan);
    let catalogue = app.knowledge.catalogue_for(&asked.principal, &plan.source);
    lift::lift_named_values(&mut plan, &catalogue);
    plan.explored = legacy.explored;
    plan.key = asked.key;
    let request_mark = repeated::request_mark(app, &asked, &plan).await?;
    if let Some(mark) = &request_mark
        && let Some(open) = repeated::find_open_run(app, &asked.principal, mark).await?
    {
        return Ok(open);
    }
    let RunRequest {
        principal,
        session,
        caller,
        idempotency,
        max_wait: patience,
        capability,
        use_cache: cache,
        ..
    } = asked;
    approvals::apply_standing_rules(app, &principal, &mut plan).await?;
    let ticket = match cache {
        true => cache::make_ticket(&app.knowledge, &plan, &principal, capability.as_ref()).await,
        false => None,
    };
    if let Some(ticket) = &ticket
        && let Some(hit) = counting::cached(app, ticket, &plan).await
    {
        app.runs.note_cache_hit(ticket.key());
        return Ok(ExecuteOutcome::Cached(known(app, &principal, &plan, hit).await?));
    }
    approvals::add_differences(app, &principal, &mut plan).await?;
    let admission = app.keys.admit_run(&app.store, plan.key).await?;
    let again = (principal.clone(), idempotency.clone());
    let question = plan.question.clone();
    if legacy.open_call.is_some() && question.is_some() {
        let text = "a call that is under way cannot be asked about";
        return Ok(ExecuteOutcome::Refused(Problem::new(ErrorCode::InvalidRequest, text).into()));
    }
    let asked = PlannedRun {
        principal,
        session,
        plan,
        caller,
        idempotency,
        request_mark,
        max_wait: patience,
        ticket,
        earlier_reads: legacy.reads,
        open_call: legacy.open_call,
        admission,
    };
    let begun = match question {
        None => execute::start(&app.runs, asked).await.map(ExecuteOutcome::Running),
        Some(question) => {
            execute::create_waiting_run(&app.runs, asked, question).await.map(|first| match first {
                AskFirstOutcome::Waiting(id, standing) => ExecuteOutcome::Status(id, standing),
                AskFirstOutcome::AlreadyAsked(id, standing) => ExecuteOutcome::AlreadyWaiting(id, standing),
            })
        }
    };
    match begun {
        Ok(executed) => Ok(executed),
        // A concurrent request with the same idempotency key came first: its run is the run.
        Err(problem) => match again {
            (principal, Some(idempotency)) => {
                find_repeated_run(app, &principal, &idempotency).await?.ok_or(problem)
            }
            (_, None) => Err(problem),
        },
    }
}

/// Whether a plan may be run before anybody asks for it: it needs no approval, and all its tools may be called ahead.
fn speculable(app: &App, plan: &Plan) -> bool {
    plan.question.is_none()
        && plan.opaque.is_empty()
        && plan.tools.iter().all(|tool| {
            // Its calls are not followed one by one, so what one tool returned could reach a network through another.
            app.tools.may_speculate(&tool.id, &tool.digest) && !app.tools.is_open_world(&tool.id)
        })
}

/// Reports a cached result as if it had been run.
async fn known(
    app: &Arc<App>,
    principal: &Principal,
    plan: &Plan,
    hit: cache::CacheHit,
) -> Result<Box<CachedRun>, Problem> {
    let id = execute::new_run_id()?;
    cache::record_cache_use(&app.knowledge, plan, principal, &id);
    let capability = plan.learn.as_ref().map(|learn| learn.capability_id(principal));
    let next = match &capability {
        Some(capability) => {
            let tools: Vec<String> = plan.tools.iter().map(|tool| tool.id.to_string()).collect();
            let called = plan.nested.iter().map(|nested| nested.id.as_str());
            let ran = tools.iter().map(String::as_str).chain(called).chain([capability.as_str()]).collect();
            app.knowledge.next_after(principal, Some(capability), None, &ran)
        }
        None => Vec::new(),
    };
    let report = RunReport::from_cache(hit.result, hit.source, capability, next, now_ms());
    Ok(Box::new(CachedRun { id: hit.run.unwrap_or(id), report }))
}

/// Plans a request without running it.
///
/// # Errors
/// It cannot be run, or may not be.
pub async fn plan_without_running(app: &App, asked: &RunRequest) -> Result<Plan, Problem> {
    app.tools.ensure_manifests_loaded().await;
    plan_request(app, asked, &|_| true).await.map_err(|refused| refused.problem)
}

/// Plans a request: analyses its work and checks it against the policy.
async fn plan_request(
    app: &App,
    asked: &RunRequest,
    visible: &(dyn Fn(&ToolId) -> bool + Send + Sync),
) -> Result<Plan, PlanRefusal> {
    let config = app.config();
    let mut bounds = Bounds::new(&config);
    if !asked.speculate {
        bounds.speculated_calls = 0;
    }
    if let Some(timeout) = asked.timeout {
        bounds.wall_ms = bounds.wall_ms.min(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
    }
    let learned = CapabilitiesOf::of_program(app, &asked.principal, asked.capability.as_ref());
    let document = match &asked.work {
        planning::Work::Code(code) => {
            let analysis = analyse_or_refuse(&learned, code).await?;
            let (snapshot, policy) = (app.tools.snapshot(), app.policy());
            let setting = PlanningContext {
                snapshot: &snapshot,
                policy: &policy,
                bounds,
                visible,
                capabilities: &learned,
            };
            return planning::plan(&setting, *analysis, asked);
        }
        planning::Work::Dag { document, .. } => document.clone(),
        planning::Work::Tool { tool, defaults } => {
            let snapshot = app.tools.snapshot();
            let schema = snapshot.tool(tool).ok().map(|tool| tool.definition.input_schema.get());
            let parameters = schema.and_then(|schema| serde_json::from_str(schema).ok()).unwrap_or_default();
            let arguments = planning::session::program_arguments(&asked.arguments, &parameters);
            planning::tool_call_document(tool, defaults, &arguments)?
        }
        planning::Work::Call(tool) => {
            bounds.wall_ms = bounds.wall_ms.max(direct::longest_ms(app, tool));
            planning::tool_call_document(tool, &empty_object(), &asked.arguments)?
        }
        planning::Work::Capability(_) | planning::Work::Intent => {
            unreachable!("what is run was found before")
        }
    };
    let analysis = analyse_dag_or_refuse(&learned, document).await?;
    let (snapshot, policy) = (app.tools.snapshot(), app.policy());
    let setting =
        PlanningContext { snapshot: &snapshot, policy: &policy, bounds, visible, capabilities: &learned };
    planning::plan_dag(&setting, *analysis, asked)
}

async fn analyse_dag_or_refuse(
    callable: &CapabilitiesOf<'_>,
    document: String,
) -> Result<Box<pml_analysis::DagAnalysis>, PlanRefusal> {
    match analyse_dag_for(callable, document).await {
        AnalysisOutcome::Dag(analysis) => planning::refuse_mistakes(&analysis.complaints).map(|()| analysis),
        AnalysisOutcome::NotUnderstood(report) => Err(planning::refuse_unparsed(&report)),
        AnalysisOutcome::Program(_) => unreachable!("a document was analysed"),
    }
}

async fn find_repeated_run(
    app: &App,
    principal: &Principal,
    idempotency: &Idempotency,
) -> Result<Option<ExecuteOutcome>, Problem> {
    let known = app.store.run_by_idempotency_key(principal, &idempotency.key, now_ms()).await?;
    let Some((id, request)) = known else { return Ok(None) };
    if request != idempotency.request {
        return Err(Problem::new(
            ErrorCode::InvalidRequest,
            "the idempotency key was used for another request",
        )
        .hint("choose a new key for a new request"));
    }
    Ok(Some(match app.runs.local_handle(&id) {
        Some(handle) => ExecuteOutcome::Running(handle),
        None => ExecuteOutcome::Status(id.clone(), execute::run_status(&app.runs, principal, &id).await?),
    }))
}

/// A request that is only planned: it has no client and is never run.
fn unasked(principal: &Principal, intent: &str, work: planning::Work) -> RunRequest {
    RunRequest {
        principal: principal.clone(),
        key: None,
        session: String::new(),
        intent: intent.to_owned(),
        work,
        arguments: empty_object(),
        timeout: None,
        caller: Caller::silent(),
        idempotency: None,
        max_wait: std::time::Duration::ZERO,
        answerer: pml_model::question::Answerer::Human,
        dynamic: crate::config::DynamicPolicy::Refuse,
        learn: true,
        capability: None,
        use_cache: false,
        speculate: false,
    }
}

/// 16 KiB: analysing a smaller program takes less time than handing it to another thread.
const SMALL_BYTES: usize = 16 * 1024;

async fn analyse_or_refuse(
    callable: &CapabilitiesOf<'_>,
    code: &str,
) -> Result<Box<pml_analysis::Analysis>, PlanRefusal> {
    let most = callable.app.config().limits.source_bytes;
    if code.len() as u64 > most {
        let text = format!("the program has {} bytes and may have {most}", code.len());
        return Err(Problem::new(ErrorCode::TooLarge, text)
            .hint("write less, or raise `limits.source` in pml.toml")
            .into());
    }
    let analysed = if code.len() <= SMALL_BYTES {
        let catalogue = callable.current_catalogue(code).await;
        understand(&catalogue, code)
    } else {
        analyse_for(callable, code.to_owned()).await
    };
    match analysed {
        AnalysisOutcome::Program(analysis) => {
            planning::refuse_mistakes(&analysis.complaints).map(|()| analysis)
        }
        AnalysisOutcome::NotUnderstood(report) => Err(planning::refuse_unparsed(&report)),
        AnalysisOutcome::Dag(_) => unreachable!("a program was analysed"),
    }
}

fn understand(catalogue: &pml_analysis::AnalysisCatalogue, source: &str) -> AnalysisOutcome {
    match pml_analysis::analyse(source, catalogue) {
        Ok(analysis) => AnalysisOutcome::Program(Box::new(analysis)),
        Err(error) => AnalysisOutcome::NotUnderstood(ComplaintReport::from(&error)),
    }
}

/// Resumes a run where its journal ends.
///
/// # Errors
/// There is no such run, or it cannot be read.
pub async fn resume(
    app: &Arc<App>,
    principal: &Principal,
    id: &RunId,
    caller: Caller,
) -> Result<ResumeOutcome, Problem> {
    execute::resume(&app.runs, principal, id, caller).await
}

/// The status of a run, in whichever process it executes.
///
/// # Errors
/// There is no such run, or it cannot be read.
pub async fn run_status(app: &App, principal: &Principal, id: &RunId) -> Result<RunStatus, Problem> {
    execute::run_status(&app.runs, principal, id).await
}

/// The handle of the principal's run, if it executes in this process.
pub fn local_run(app: &App, principal: &Principal, id: &RunId) -> Option<Arc<RunHandle>> {
    app.runs.local_handle(id).filter(|handle| handle.principal == *principal)
}

/// The status of a run, call by call.
///
/// # Errors
/// There is no such run, or its records are no longer kept.
pub async fn overview(app: &App, principal: &Principal, id: &RunId) -> Result<RunDetails, Problem> {
    execute::overview(&app.runs, principal, id).await
}

/// A part of the result of a task.
///
/// # Errors
/// There is no such run or task, the task has no result, or results are no longer kept.
pub async fn task_result(
    app: &App,
    principal: &Principal,
    id: &RunId,
    wanted: &ResultRequest,
) -> Result<ResultPage, Problem> {
    execute::result_page(&app.runs, principal, id, wanted).await
}

/// Everything recorded about a run.
///
/// # Errors
/// There is no such run, or its records are no longer kept.
pub async fn recording(app: &App, principal: &Principal, id: &RunId) -> Result<Recording, Problem> {
    replay::recording(&app.runs, principal, id).await
}

/// Replays a recorded run offline; with `code`, as if that had been its program.
///
/// # Errors
/// The program cannot be run, or no worker is available.
pub async fn replay(
    app: &App,
    recording: &Recording,
    code: Option<String>,
) -> Result<ReplayOutcome, Problem> {
    let plan = match code {
        None => recording.plan.clone(),
        Some(code) => {
            let callable = CapabilitiesOf::new(app, &app.principal);
            let analysis = analyse_or_refuse(&callable, &code).await.map_err(|refused| refused.problem)?;
            calls_only_recorded(&recording.plan, &analysis)?;
            recording.plan.clone().with_code(code, *analysis)
        }
    };
    replay::replay(&app.runs, recording, plan).await
}

/// Checks that a replayed program calls only capabilities that were recorded with the run. What a present capability
/// would do was never recorded.
fn calls_only_recorded(plan: &Plan, analysis: &pml_analysis::Analysis) -> Result<(), Problem> {
    let lacks = |name: &&String| plan.nested.iter().all(|nested| nested.name != **name);
    let Some(name) = analysis.permissions.capabilities.iter().find(lacks) else { return Ok(()) };
    let text = format!("the recorded run has no capability `{name}`, so nothing can answer a call of it");
    Err(Problem::new(ErrorCode::InvalidProgram, text).hint(
        "write out in the program what it does, or run the program anew: `pml execute \"what it is for\" --code FILE`",
    ))
}

/// Pauses a DAG run before its next layer, in whichever process it executes.
///
/// # Errors
/// There is no such run, it never pauses before layers, or the pause cannot be recorded.
pub async fn pause(app: &Arc<App>, principal: &Principal, id: &RunId) -> Result<(), Problem> {
    execute::pause(&app.runs, principal, id).await
}

/// Aborts a run, in whichever process it executes.
///
/// # Errors
/// There is no such run, another process has it, or the end cannot be recorded.
pub async fn abort(
    app: &Arc<App>,
    principal: &Principal,
    id: &RunId,
    reason: &str,
) -> Result<RunStatus, Problem> {
    execute::abort(&app.runs, principal, id, reason).await
}

/// Cancels a run because the client no longer wants it.
///
/// # Errors
/// There is no such run, another process has it, or the end cannot be recorded.
pub async fn cancel(app: &Arc<App>, principal: &Principal, id: &RunId) -> Result<RunStatus, Problem> {
    execute::cancel(&app.runs, principal, id).await
}
