//! Dry runs: the real program against tools that are not all called.
//!
//! A dry run is planned like a run, so that the same programs are refused. It is then run by `execute::dry_run`, once
//! or, to explore its branches, several times. The report can be confirmed for an hour: then the same request is run
//! for real.

mod aim;
mod answers;
mod condition_words;
mod control;
mod cost;
mod effects;
mod entities;
mod explore;
mod places;
mod recorded;
mod taint;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pml_mock::{GivenMocks, MockError};
use pml_model::ToolId;
use pml_model::json::{Fields, raw};
use pml_model::mocks::MockStatus;
use pml_model::name::printable;
use pml_model::structure::NodeId;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{ExecuteOutcome, RecallOutcome, RunLegacy, Suggestions, explored_choice, plan_request, recall};
use crate::app::App;
use crate::builtin::{FsOverlay, OverlayBase};
use crate::dry_runs::KeptReads;
use crate::dry_runs::new_dry_run_id;
use crate::execute::EarlierRead;
use crate::execute::dry_run::{DryCallRecord, DryDeadline, DryRunRecord, WALL_HINT, dry_plan, run_dry};
use crate::knowledge::cache;
use crate::knowledge::graph::output_of;
use crate::plan::{LearningPlan, Plan};
use crate::planning::{PlanRefusal, RunRequest};
use crate::problem::{ErrorCode, Problem};
use crate::report::{
    BranchCoverage, CapturedCall, DryRunMode, DryRunReport, DryRunStatus, DryRunWarning, ExploredPath,
    ValueOrigin,
};
use crate::runtime::run_blocking;
use answers::{AnswerBasis, Answers, DryEffect, DryTool};
use explore::{Exploration, Steering};
use recorded::{RecordedResults, UsedMock};

/// 30 s: the time of all runs of an exploration together, unless the caller gives another.
const EXPLORATION: Duration = Duration::from_secs(30);
/// How often a program is run to explore its branches, unless the caller says so.
pub const DEFAULT_BRANCH_RUNS: u32 = 100;
/// How often a program is run to explore its branches, at most.
pub const MAX_BRANCH_RUNS: u32 = 1_000;

/// How a dry run is made.
#[derive(Debug, Clone, Default)]
pub struct DryRunOptions {
    /// Which calls are really made.
    pub mode: DryRunMode,
    /// The caller's own answers and arguments, as received: `{tools, args}`, or a flat map of tools.
    pub mocks: Option<Value>,
    /// Runs the program again with other made-up values, until every branch was taken or it has run this often;
    /// `None` runs it once.
    pub explore_branches: Option<u32>,
    /// The seed of made-up values and of the program's random numbers.
    pub seed: u64,
    /// A time limit for all runs together.
    pub timeout: Option<Duration>,
    /// What to tell a caller who reaches that limit, unless it gives `timeoutMs` itself.
    pub timeout_hint: Option<&'static str>,
    /// Which dry runs can be confirmed.
    pub kept: KeptIf,
    /// Who asks for its place among the runs of the key.
    pub admission: DryAdmission,
}

/// Who asks for the place of a dry run among the runs of the key of its client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DryAdmission {
    /// The dry run itself.
    #[default]
    Own,
    /// Whoever makes several dry runs for one request.
    OfCaller,
}

/// Which dry runs can be confirmed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeptIf {
    /// All.
    #[default]
    Always,
    /// Those that returned: of many that are tried, the others are no choice.
    Returned,
}

/// The outcome of a request for a dry run.
pub enum DryRunOutcome {
    /// The report.
    Report(Box<DryRunReport>),
    /// The program cannot be run, or the policy denies it.
    Refused(PlanRefusal),
    /// Nothing serves the intent: these are the candidates.
    Suggested(Box<Suggestions>),
}

/// What a dry run shows beside its report, for whoever learns from it.
pub(super) struct DryRunEvidence {
    /// The id to confirm it with.
    pub(super) id: String,
    pub(super) plan: Plan,
    /// What a run of the plan would teach; `None` if nothing is to be learned.
    pub(super) learn: Option<LearningPlan>,
    pub(super) record: DryRunRecord,
    /// The calls that were answered with a recorded result that has proved itself.
    pub(super) canonical: BTreeSet<u32>,
    /// The calls whose arguments depend on made-up values.
    pub(super) tainted: BTreeSet<NodeId>,
    pub(super) took: Duration,
}

/// Runs a request dry: nothing is changed, stored or learned.
///
/// # Errors
/// The request cannot be understood, or no worker is available.
pub async fn dry_run(
    app: &Arc<App>,
    asked: RunRequest,
    options: DryRunOptions,
    visible: impl Fn(&ToolId) -> bool + Send + Sync,
) -> Result<DryRunOutcome, Problem> {
    Ok(dry_run_with_evidence(app, asked, options, visible).await?.0)
}

/// As [`dry_run`]; a request that was run comes with what it shows.
pub(super) async fn dry_run_with_evidence(
    app: &Arc<App>,
    asked: RunRequest,
    options: DryRunOptions,
    visible: impl Fn(&ToolId) -> bool + Send + Sync,
) -> Result<(DryRunOutcome, Option<DryRunEvidence>), Problem> {
    crate::discover::check_intent_length(&asked.intent)?;
    app.tools.ensure_manifests_loaded().await;
    let given = parse_mocks(app, options.mocks.as_ref())?;
    let asked = match recall::resolve_work(app, asked, &visible).await? {
        RecallOutcome::Run(asked) => *asked,
        RecallOutcome::Suggested(suggested) => return Ok((DryRunOutcome::Suggested(suggested), None)),
    };
    let mut tried = asked.clone();
    if !given.args().is_empty() {
        tried.arguments = with_arguments(&asked.arguments, &given)?;
    }
    let (plan, learn) = match plan_request(app, &tried, &visible).await {
        Ok(mut plan) => {
            let learn = plan.learn.take();
            plan.key = tried.key;
            (dry_plan(plan, options.seed), learn)
        }
        Err(refused) => return Ok((DryRunOutcome::Refused(refused), None)),
    };
    let _admission = match options.admission {
        DryAdmission::Own => app.keys.admit_run(&app.store, plan.key).await?,
        DryAdmission::OfCaller => None,
    };
    let started = Instant::now();
    let dictated = dictated_arguments(&asked.arguments, &tried.arguments, &given);
    let dry = DryRequest {
        app,
        asked: &tried,
        deadline: deadline(&plan, &options, started),
        basis: Arc::new(answer_basis(app, &asked, &plan, &options, given)),
        plan: Arc::new(plan),
    };
    let (mut first, exploration) = dry.explore(options.explore_branches).await?;
    let mut report = dry.report(&first, &exploration, &options, started);
    dictated.add_to(&mut report);
    let reads = reusable_reads(app, &dry.plan, &mut first.record);
    if options.kept == KeptIf::Returned && report.status == DryRunStatus::Failed {
        report.id = new_dry_run_id()?;
    } else {
        // What runs for real are the arguments of the request, never those of the mocks.
        let tools = (&*dry.plan.tools, &*app.tools.snapshot());
        report.id = app.dry_runs.keep(&asked, tools, reads, Instant::now())?;
        app.dry_runs.note_made_up(&asked.principal, &report.id, dictated.missing.into_iter());
    }
    let canonical = first.used.iter().filter(|mock| mock.status == MockStatus::Canonical);
    let evidence = DryRunEvidence {
        id: report.id.clone(),
        learn,
        canonical: canonical.map(|mock| mock.call).collect(),
        tainted: report.warnings.iter().filter_map(|warning| warning.node_id).collect(),
        took: started.elapsed(),
        record: first.record,
        plan: Arc::unwrap_or_clone(dry.plan),
    };
    Ok((DryRunOutcome::Report(Box::new(report)), Some(evidence)))
}

/// Runs the request of an earlier dry run for real.
///
/// # Errors
/// The principal has no such dry run, it has expired, a tool of it has changed, or a value that it made up is not given.
pub async fn confirm_dry_run(
    app: &Arc<App>,
    asked: RunRequest,
    id: &str,
    visible: impl Fn(&ToolId) -> bool + Send + Sync,
) -> Result<ExecuteOutcome, Problem> {
    let principal = asked.principal.clone();
    let kept = app.dry_runs.find(&principal, id, Instant::now())?;
    app.tools.ensure_manifests_loaded().await;
    if let Err(changed) = kept.check_tools(&app.tools.snapshot()) {
        explored_choice::note_changed_tools(app, &asked, &kept, &changed).await;
        return Err(changed);
    }
    let arguments = kept.arguments_with(&asked.arguments)?;
    let intent = if asked.intent.is_empty() { kept.intent } else { asked.intent.clone() };
    let confirmed = RunRequest {
        intent,
        work: kept.work,
        arguments,
        capability: kept.capability,
        timeout: asked.timeout.or(kept.timeout),
        ..asked
    };
    // Results are used again only where cached ones may be.
    let reads = match confirmed.use_cache {
        true => kept.reads.filter(|reads| cache::generation(&app.knowledge) == Some(reads.generation)),
        false => None,
    };
    let reads = reads.map(|reads| reads.reads).unwrap_or_default();
    let legacy = RunLegacy { reads, explored: kept.explored, ..RunLegacy::default() };
    let executed = super::execute_confirmed(app, confirmed, legacy, visible).await;
    if matches!(executed, Ok(ExecuteOutcome::Running(_) | ExecuteOutcome::Status(..))) {
        app.dry_runs.note_used(&principal, id);
    }
    executed
}

/// When all runs of a dry run have to be over.
fn deadline(plan: &Plan, options: &DryRunOptions, started: Instant) -> DryDeadline {
    let (limit, hint) = match (options.timeout, options.explore_branches) {
        (Some(limit), _) => {
            (limit, options.timeout_hint.unwrap_or("do less at once, or give a longer `timeoutMs`"))
        }
        (None, Some(_)) => (EXPLORATION, "give `timeoutMs`, or do less at once"),
        (None, None) => (Duration::from_millis(plan.limits.wall_ms), WALL_HINT),
    };
    DryDeadline { at: started + limit, limit, hint }
}

/// The arguments that only the mocks give, or give otherwise than the request.
#[derive(Default)]
struct DictatedArguments {
    /// Those that the request does not have: whoever confirms the dry run has to give them.
    missing: BTreeSet<String>,
    /// Those that the request has its own values for, which a real run uses.
    replaced: BTreeSet<String>,
}

fn dictated_arguments(own: &RawValue, tried: &RawValue, given: &GivenMocks) -> DictatedArguments {
    let mut dictated = DictatedArguments::default();
    if given.args().is_empty() {
        return dictated;
    }
    let (own, tried) =
        (Fields::parse(own.get()).unwrap_or_default(), Fields::parse(tried.get()).unwrap_or_default());
    for (name, value) in tried.iter() {
        match own.get(name) {
            None => dictated.missing.insert(name.to_owned()),
            Some(own) => own.get() != value.get() && dictated.replaced.insert(name.to_owned()),
        };
    }
    dictated
}

impl DictatedArguments {
    fn add_to(&self, report: &mut DryRunReport) {
        report.missing = self.missing.iter().cloned().collect();
        let warn = |message: String| DryRunWarning { message, tool: None, node_id: None, line: None };
        let missing = self.missing.iter().map(|name| {
            format!("`{}` comes from `mocks`; give it in `context` to run this for real", printable(name))
        });
        let replaced = self.replaced.iter().map(|name| {
            format!("`{}` comes from `mocks`; a real run uses the value of the request", printable(name))
        });
        report.warnings.extend(missing.chain(replaced).map(warn));
    }
}

/// The reads of a dry run that the run which confirms it may use, if they are still valid then: those that the result
/// cache would keep and that contain no secret.
fn reusable_reads(app: &App, plan: &Plan, record: &mut DryRunRecord) -> Option<KeptReads> {
    let sanitiser = app.knowledge.memory.sanitiser().with_secrets_in(&plan.arguments);
    let is_secret = |call: &DryCallRecord, read: &EarlierRead| {
        sanitiser.clean_json(&call.arguments).changed || sanitiser.clean_json(&read.result).changed
    };
    let reads = record.calls.iter_mut().filter_map(|call| {
        let read = call.read.take()?;
        let is_kept = cache::call_lifetime(&app.tools, &read.tool).is_ok() && !is_secret(call, &read);
        is_kept.then_some(read)
    });
    Some(KeptReads { generation: cache::generation(&app.knowledge)?, reads: reads.collect() })
}

pub(super) fn parse_mocks(app: &App, mocks: Option<&Value>) -> Result<GivenMocks, Problem> {
    let Some(mocks) = mocks else { return Ok(GivenMocks::default()) };
    let snapshot = app.tools.snapshot();
    let schemas: Vec<(ToolId, Option<Value>)> = snapshot
        .tools
        .iter()
        .map(|tool| (tool.id.clone(), parsed(tool.definition.output_schema.as_deref())))
        .collect();
    let tools: Vec<(ToolId, Option<&Value>)> =
        schemas.iter().map(|(tool, schema)| (tool.clone(), schema.as_ref())).collect();
    GivenMocks::parse(mocks, &tools).map_err(|error| mock_problem(&error))
}

pub(super) fn mock_problem(error: &MockError) -> Problem {
    let code = match error {
        MockError::UnknownTool { .. } | MockError::AmbiguousTool { .. } => ErrorCode::UnknownTool,
        MockError::TooLarge { .. } => ErrorCode::TooLarge,
        MockError::BreaksSchema { .. } | MockError::Malformed(_) => ErrorCode::InvalidArguments,
    };
    let problem = Problem::new(code, error.to_string());
    match error.hint() {
        Some(hint) => problem.hint(hint),
        None => problem,
    }
}

fn parsed(schema: Option<&RawValue>) -> Option<Value> {
    schema.and_then(|schema| serde_json::from_str(schema.get()).ok())
}

fn with_arguments(arguments: &RawValue, given: &GivenMocks) -> Result<Box<RawValue>, Problem> {
    let mut fields = Fields::parse(arguments.get()).unwrap_or_default();
    let current = |name: &str| serde_json::from_str(fields.get(name)?.get()).ok();
    let changed = given.changed_arguments(current).map_err(|error| mock_problem(&error))?;
    changed.into_iter().for_each(|(name, value)| fields.set(name, raw(&value)));
    Ok(fields.to_raw())
}

/// What is known about the tools of a plan.
fn answer_basis(
    app: &App,
    asked: &RunRequest,
    plan: &Plan,
    options: &DryRunOptions,
    given: GivenMocks,
) -> AnswerBasis {
    let (snapshot, policy) = (app.tools.snapshot(), app.policy());
    let observed = app.knowledge.of_principal(&asked.principal).observed();
    let tool = |id: &ToolId| {
        let tool = snapshot.tool(id).ok()?;
        let verdict = policy.verdict(id, &tool.definition.annotations);
        let schema = output_of(tool, &observed);
        Some(DryTool {
            effect_free: verdict.effect_free,
            open_world: verdict.open_world,
            output_schema: parsed(schema.as_deref()),
        })
    };
    let tools: HashMap<ToolId, DryTool> =
        plan.tools.iter().filter_map(|planned| Some((planned.id.clone(), tool(&planned.id)?))).collect();
    let definition = |id: &ToolId| Some((id.clone(), snapshot.tool(id).ok()?.definition.digest.clone()));
    let definitions = plan.tools.iter().filter_map(|planned| definition(&planned.id)).collect();
    AnswerBasis {
        mode: options.mode,
        seed: options.seed,
        given,
        tools,
        structure: plan.structure.clone(),
        recorded: RecordedResults {
            knowledge: Arc::clone(&app.knowledge),
            principal: asked.principal.clone(),
            definitions,
        },
        known: parking_lot::Mutex::default(),
    }
}

/// A request that is run dry.
struct DryRequest<'a> {
    app: &'a Arc<App>,
    asked: &'a RunRequest,
    basis: Arc<AnswerBasis>,
    plan: Arc<Plan>,
    deadline: DryDeadline,
}

/// One finished run.
struct FinishedDryRun {
    record: DryRunRecord,
    effects: Vec<DryEffect>,
    used: Vec<UsedMock>,
}

/// What exploration found.
struct ExploredBranches {
    coverage: BranchCoverage,
    paths: Vec<ExploredPath>,
    dag: Option<Value>,
}

impl DryRequest<'_> {
    /// The files that the dry run writes to; `None` without the built-in `fs`.
    fn files(&self) -> Option<FsOverlay> {
        let server = self.app.tools.builtin("fs")?;
        let reads = |tool: &str| {
            ToolId::parse(&format!("fs:{tool}")).is_ok_and(|id| {
                let snapshot = self.app.tools.snapshot();
                let found = snapshot.tool(&id).map(|tool| tool.definition.annotations);
                found.is_ok_and(|said| self.app.policy().verdict(&id, &said).can_dry_run())
            })
        };
        // What a tool that asks would say is no more told by a dry run than its own result.
        let readable = ["stat", "read", "list", "search"].into_iter().all(reads);
        let base = match self.basis.mode {
            DryRunMode::Hybrid if readable => OverlayBase::Root,
            DryRunMode::Hybrid | DryRunMode::Mocked => OverlayBase::Nothing,
        };
        server.overlay(base)
    }

    /// Runs the program once.
    async fn run(&self, steering: &Steering) -> Result<FinishedDryRun, Problem> {
        let mut plan = Arc::clone(&self.plan);
        if steering.changes_arguments() {
            let arguments: Map<String, Value> =
                serde_json::from_str(plan.arguments.get()).unwrap_or_default();
            Arc::make_mut(&mut plan).arguments = raw(&steering.apply(&arguments));
        }
        let mut answers = Answers::new(&self.basis, steering, self.files());
        let (runs, principal) = (&self.app.runs, &self.asked.principal);
        let record = run_dry(runs, principal, &plan, &mut answers, self.deadline).await?;
        Ok(FinishedDryRun { record, effects: answers.effects, used: answers.used })
    }

    /// Runs the program, and again with other values if its branches are to be explored.
    async fn explore(&self, most: Option<u32>) -> Result<(FinishedDryRun, ExploredBranches), Problem> {
        let tools = self.plan.tools.iter().map(|planned| &planned.id);
        let made_up =
            tools.map(|tool| (tool.clone(), self.basis.made_up(tool, &Value::Null).value)).collect();
        let exploration = Exploration::new(Arc::clone(&self.plan), self.basis.seed, made_up);
        let first = self.run(&Steering::default()).await?;
        // Later runs are steered to where values would not lead, so they judge nothing.
        self.basis.recorded.report(&self.plan, &first.record, &first.used);
        self.remember_reads(&first.record);
        let (mut exploration, first, _) = noted(exploration, Steering::default(), first).await;
        let mut paths = Vec::new();
        while most.is_some_and(|most| exploration.runs < most) {
            let deadline = self.deadline.at;
            // What to vary is found by computing with values as large as results may be.
            let (explored, next) = run_blocking(move || {
                let next = exploration.next(&|| Instant::now() >= deadline);
                (exploration, next)
            })
            .await;
            exploration = explored;
            let Some(steering) = next else { break };
            let run = self.run(&steering).await?;
            let known = exploration.paths.len();
            self.remember_reads(&run.record);
            let (explored, run, steering) = noted(exploration, steering, run).await;
            exploration = explored;
            if exploration.paths.len() > known {
                paths.push(self.explored_path(&steering, &run));
            }
        }
        let structure = &self.plan.structure;
        let found = ExploredBranches {
            coverage: exploration.coverage(),
            dag: most.map(|_| explore::merged(structure, &exploration.paths)),
            paths,
        };
        Ok((first, found))
    }

    /// Keeps what tools really returned, so that further runs do not call them again, and later dry runs have it for
    /// calls that they do not make.
    fn remember_reads(&self, record: &DryRunRecord) {
        let mut known = self.basis.known.lock();
        let definitions = &self.basis.recorded.definitions;
        for call in record.calls.iter().filter(|call| call.origin == ValueOrigin::Real) {
            if let Some(Ok(value)) = &call.end
                && call.tool.server.as_str() != "fs"
            {
                known.insert(&call.tool, &call.arguments, value);
                if let Some(definition) = definitions.get(&call.tool).filter(|_| self.asked.learn) {
                    let (tool, principal) = ((&call.tool, definition), &self.asked.principal);
                    self.app.knowledge.mocks.note_result(principal, tool, &call.arguments, value);
                }
            }
        }
    }

    fn explored_path(&self, steering: &Steering, run: &FinishedDryRun) -> ExploredPath {
        let effects = effects::effects(&run.effects, &Default::default());
        ExploredPath {
            because: steering.describe(&self.plan),
            decisions: explore::decisions(&run.record.report.path),
            status: status(&run.record),
            effects: effects.into_iter().map(|effect| effect.text).collect(),
        }
    }

    fn report(
        &self,
        run: &FinishedDryRun,
        explored: &ExploredBranches,
        options: &DryRunOptions,
        started: Instant,
    ) -> DryRunReport {
        let FinishedDryRun { record, effects, .. } = run;
        let taint = taint::follow(&self.plan, record);
        let mut calls_by_server: BTreeMap<String, u32> = BTreeMap::new();
        let made = || record.calls.iter().filter(|call| call.end.is_some());
        made().for_each(|call| *calls_by_server.entry(call.tool.server.to_string()).or_default() += 1);
        let mut warnings = taint.warnings;
        warnings.extend(record.calls.iter().filter(|call| call.unknown_state).map(unknown_state));
        DryRunReport {
            id: String::new(),
            status: status(record),
            mode: options.mode,
            seed: options.seed,
            result: record.report.result.clone(),
            error: record.report.error.clone(),
            captured_calls: record.calls.iter().map(captured).collect(),
            execution_time_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            warnings,
            effects: effects::effects(effects, &taint.calls),
            branches: explored.coverage.clone(),
            estimated_cost: cost::estimate(
                &self.app.config().prices,
                made().map(|call| &call.tool),
                |tool| self.app.tools.builtin(tool.server.as_str()).is_some(),
            ),
            estimated_api_calls: calls_by_server,
            paths: explored.paths.clone(),
            dag: explored.dag.clone(),
            missing: Vec::new(),
            console: record.report.console.clone(),
        }
    }
}

/// Has the exploration take note of a run, on a thread that serves no requests.
async fn noted(
    mut exploration: Exploration,
    steering: Steering,
    run: FinishedDryRun,
) -> (Exploration, FinishedDryRun, Steering) {
    run_blocking(move || {
        exploration.note(&steering, &run.record);
        (exploration, run, steering)
    })
    .await
}

fn status(record: &DryRunRecord) -> DryRunStatus {
    if record.report.error.is_some() { DryRunStatus::Failed } else { DryRunStatus::Success }
}

fn unknown_state(call: &DryCallRecord) -> DryRunWarning {
    DryRunWarning {
        message: format!(
            "`{}` was answered as if nothing had changed at its server, although the program would have changed something there before",
            call.tool
        ),
        tool: Some(call.tool.to_string()),
        node_id: call.node,
        line: call.line,
    }
}

fn captured(call: &DryCallRecord) -> CapturedCall {
    let (value, error) = match &call.end {
        Some(Ok(value)) => (Some(value.clone()), None),
        Some(Err(failure)) => (None, Some(failure.clone())),
        None => (None, None),
    };
    let (response, mock_response) =
        if call.origin == ValueOrigin::Real { (value, None) } else { (None, value) };
    CapturedCall {
        call: call.call,
        server: call.tool.server.to_string(),
        tool: call.tool.tool.clone(),
        args: call.arguments.clone(),
        mock_response,
        response,
        error,
        origin: call.origin,
        unknown_state: call.unknown_state,
        timestamp: call.at,
        duration_ms: u64::try_from(call.duration.as_millis()).unwrap_or(u64::MAX),
        node_id: call.node,
        line: call.line,
        capability: call.capability.clone(),
    }
}
