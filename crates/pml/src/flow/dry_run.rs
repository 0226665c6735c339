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
use pml_model::structure::NodeId;
use serde_json::{Map, Value};

use super::{ExecuteOutcome, RecallOutcome, RunLegacy, Suggestions, explored_choice, plan_request, recall};
use crate::app::App;
use crate::builtin::{FsOverlay, OverlayBase};
use crate::dry_runs::KeptReads;
use crate::execute::EarlierRead;
use crate::execute::dry_run::{DryCallRecord, DryRunRecord, dry_plan, run_dry};
use crate::knowledge::cache;
use crate::knowledge::graph::output_of;
use crate::plan::{LearningPlan, Plan};
use crate::planning::{PlanRefusal, RunRequest};
use crate::problem::{ErrorCode, Problem};
use crate::report::{
    BranchCoverage, CapturedCall, DryRunMode, DryRunReport, DryRunStatus, ExploredPath, ValueOrigin,
};
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
            (dry_plan(plan, options.seed), learn)
        }
        Err(refused) => return Ok((DryRunOutcome::Refused(refused), None)),
    };
    let started = Instant::now();
    let limit = options.timeout.unwrap_or(match options.explore_branches {
        Some(_) => EXPLORATION,
        None => Duration::from_millis(plan.limits.wall_ms),
    });
    let dry = DryRequest {
        app,
        asked: &tried,
        basis: answer_basis(app, &asked, &plan, &options, given),
        plan,
        deadline: started + limit,
    };
    let (mut first, exploration) = dry.explore(options.explore_branches).await?;
    let mut report = dry.report(&first, &exploration, &options, started);
    let reads = reusable_reads(app, &dry.plan, &mut first.record);
    let tools = (&*dry.plan.tools, &*app.tools.snapshot());
    report.id = app.dry_runs.keep(&tried, tools, reads, Instant::now())?;
    let canonical = first.used.iter().filter(|mock| mock.status == MockStatus::Canonical);
    let evidence = DryRunEvidence {
        id: report.id.clone(),
        learn,
        canonical: canonical.map(|mock| mock.call).collect(),
        tainted: report.warnings.iter().filter_map(|warning| warning.node_id).collect(),
        took: started.elapsed(),
        record: first.record,
        plan: dry.plan,
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
    let kept = app.dry_runs.take(&asked.principal, id, Instant::now())?;
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
    super::execute_confirmed(app, confirmed, legacy, visible).await
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

fn parsed(schema: Option<&serde_json::value::RawValue>) -> Option<Value> {
    schema.and_then(|schema| serde_json::from_str(schema.get()).ok())
}

fn with_arguments(
    arguments: &serde_json::value::RawValue,
    given: &GivenMocks,
) -> Result<Box<serde_json::value::RawValue>, Problem> {
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
    basis: AnswerBasis,
    plan: Plan,
    deadline: Instant,
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
        let mut plan = self.plan.clone();
        let arguments: Map<String, Value> = serde_json::from_str(plan.arguments.get()).unwrap_or_default();
        let changed = steering.apply(&arguments);
        if changed != arguments {
            plan.arguments = raw(&changed);
        }
        let mut answers = Answers::new(&self.basis, steering, self.files());
        let (runs, principal) = (&self.app.runs, &self.asked.principal);
        let record = run_dry(runs, principal, &Arc::new(plan), &mut answers, self.deadline).await?;
        Ok(FinishedDryRun { record, effects: answers.effects, used: answers.used })
    }

    /// Runs the program, and again with other values if its branches are to be explored.
    async fn explore(&self, most: Option<u32>) -> Result<(FinishedDryRun, ExploredBranches), Problem> {
        let make_up = |tool: &ToolId| self.basis.made_up(tool, &Value::Null).value;
        let mut exploration = Exploration::new(&self.plan, self.basis.seed, &make_up);
        let first = self.run(&Steering::default()).await?;
        exploration.note(&Steering::default(), &first.record);
        // Later runs are steered to where values would not lead, so they judge nothing.
        self.basis.recorded.report(&self.plan, &first.record, &first.used);
        self.remember_reads(&first.record);
        let mut paths = Vec::new();
        while most.is_some_and(|most| exploration.runs < most)
            && Instant::now() < self.deadline
            && let Some(steering) = exploration.next()
        {
            let run = self.run(&steering).await?;
            let known = exploration.paths.len();
            exploration.note(&steering, &run.record);
            self.remember_reads(&run.record);
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

    /// Keeps what tools really returned, so that further runs do not call them again.
    fn remember_reads(&self, record: &DryRunRecord) {
        let mut known = self.basis.known.lock();
        for call in record.calls.iter().filter(|call| call.origin == ValueOrigin::Real) {
            if let Some(Ok(value)) = &call.end
                && call.tool.server.as_str() != "fs"
            {
                known.insert((call.tool.clone(), call.arguments.get().to_owned()), value.clone());
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
            console: record.report.console.clone(),
        }
    }
}

fn status(record: &DryRunRecord) -> DryRunStatus {
    if record.report.error.is_some() { DryRunStatus::Failed } else { DryRunStatus::Success }
}

fn unknown_state(call: &DryCallRecord) -> crate::report::DryRunWarning {
    crate::report::DryRunWarning {
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
