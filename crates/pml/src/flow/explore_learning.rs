//! What is learned from explorations: a trace of each path that was tried, an order among the paths that are found
//! again, and capabilities from paths that were viable often enough.
//!
//! A path that is tried runs dry, so it is a run of nothing: no statistic of a capability or a tool counts it. Only the
//! choice among paths goes by it ([`pml_model::exploration`]).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use pml_model::capability::CapabilityOrigin;
use pml_model::exploration::{
    ExploredPath, MisleadingCause, MisleadingRun, PathEvidence, PathHistory, PathOutcome, TriedCalls,
};
use pml_model::trace::{Trace, UNPROVEN_WEIGHT};
use pml_model::{CapabilityId, Digest, Principal, ToolId};

use super::dry_run::DryRunEvidence;
use super::explored_choice::{run_of_path, store_exploratory};
use crate::app::App;
use crate::capability;
use crate::clock::now_ms;
use crate::error_type;
use crate::execute::new_run_id;
use crate::knowledge::cache;
use crate::plan::{ExploredChoice, LearningPlan, PlannedTool};
use crate::problem::Problem;
use crate::report::{Exploration, ValueOrigin};
use crate::reuse;
use crate::sanitise::Sanitiser;
use crate::suggest::paths::{CandidatePath, PathCallee};
use crate::trace::{TaskInfo, TraceContext};

/// The latest traces of explored paths that count: at ten for each exploration, the last two hundred explorations.
const MOST_REMEMBERED: u32 = 2_000;
/// Candidates that are weighed by what happened before: as many as the largest exploration may try.
const MOST_WEIGHED: usize = 40;

/// What earlier explorations showed, for one intent.
pub(super) struct ExplorationMemory<'a> {
    app: &'a Arc<App>,
    principal: &'a Principal,
    intent: &'a str,
    masked_intent: String,
    history: PathHistory,
}

/// A path that was tried: what identifies it, and what is known of it.
struct TriedPath {
    evidence: DryRunEvidence,
    procedure: CapabilityId,
    definitions: Digest,
    learn: LearningPlan,
}

impl<'a> ExplorationMemory<'a> {
    /// Reads what earlier explorations of the principal showed.
    pub(super) async fn load(
        app: &'a Arc<App>,
        principal: &'a Principal,
        intent: &'a str,
    ) -> Result<ExplorationMemory<'a>, Problem> {
        let seen = app.store.explored_paths(principal, MOST_REMEMBERED).await?;
        let clean = app.knowledge.memory.sanitiser().clean_text(intent).into_owned();
        Ok(ExplorationMemory {
            app,
            principal,
            intent,
            masked_intent: reuse::masked(&clean),
            history: PathHistory::new(seen),
        })
    }

    /// The candidates in the order in which they are tried: those that were chosen before and worked, then those that
    /// serve the intent as a whole, then the others, of which those that something speaks against come later, as far as
    /// that makes them less likely.
    pub(super) async fn in_order(
        &self,
        complete: Vec<CandidatePath>,
        mut paths: Vec<CandidatePath>,
    ) -> Result<Vec<CandidatePath>, Problem> {
        if !self.history.is_telling() {
            return Ok(complete.into_iter().chain(paths).collect());
        }
        let (mut preferred, mut others) = (Vec::new(), Vec::new());
        for path in complete {
            let is_preferred = self.candidate_evidence(&path).await?.is_preferred();
            if is_preferred { preferred.push(path) } else { others.push(path) }
        }
        let rest = paths.split_off(paths.len().min(MOST_WEIGHED));
        let mut weighed = Vec::new();
        for mut path in paths {
            let evidence = self.candidate_evidence(&path).await?;
            // Costs are negative logarithms of probabilities, as everywhere.
            path.cost -= evidence.reliability().ln();
            if evidence.is_preferred() { preferred.push(path) } else { weighed.push(path) }
        }
        weighed.sort_by(|one, other| one.cost.total_cmp(&other.cost));
        Ok(preferred.into_iter().chain(others).chain(weighed).chain(rest).collect())
    }

    async fn candidate_evidence(&self, path: &CandidatePath) -> Result<PathEvidence, Problem> {
        let document = path.document.to_string();
        let catalogue = self.app.knowledge.catalogue_for(self.principal, &document);
        let Ok(analysis) = pml_analysis::analyse_dag(&document, &catalogue) else {
            return Ok(PathEvidence::default());
        };
        let procedure = CapabilityId::of(self.principal, &analysis.identity.identity);
        let snapshot = self.app.tools.snapshot();
        let defined = |id: &ToolId| Some((id.to_string(), snapshot.tool(id).ok()?.definition.digest.clone()));
        let mut tools: Vec<ToolId> = Vec::new();
        for callee in &path.callees {
            match callee {
                PathCallee::Tool(id) => tools.push(id.clone()),
                PathCallee::Capability(name) => {
                    let known = self.app.knowledge.memory.find_by_name(self.principal, name).await?;
                    let used = known.iter().flat_map(|known| &known.tools);
                    tools.extend(used.filter_map(|tool| ToolId::parse(&tool.id).ok()));
                }
            }
        }
        let definitions = definitions(tools.iter().filter_map(defined));
        Ok(self.history.evidence(&procedure, &definitions, &self.masked_intent))
    }

    /// Stores the traces of the paths that were tried, promotes those that are due, and adds to the report what is
    /// known of each.
    pub(super) async fn learn(
        mut self,
        session: &str,
        tried: Vec<DryRunEvidence>,
        exploration: &mut Exploration,
    ) -> Result<(), Problem> {
        let tried: Vec<TriedPath> = tried.into_iter().filter_map(|one| self.tried_path(one)).collect();
        let known: HashMap<String, PathEvidence> =
            tried.iter().map(|path| (path.evidence.id.clone(), self.known_of(path))).collect();
        add_known(exploration, &known);
        // Without learning there is neither a plan to learn by nor anything to store.
        if tried.is_empty() {
            return Ok(());
        }
        let id = new_run_id()?.to_string().replacen("run_", "exploration_", 1);
        let offered: Vec<String> = exploration.viable_paths.iter().map(|path| path.path_id.clone()).collect();
        for path in &tried {
            let (trace, sanitiser) = self.exploratory_trace(session, path, &id)?;
            let is_viable =
                trace.body.explored.as_ref().is_some_and(|seen| seen.outcome == PathOutcome::Viable);
            self.history.add(trace.body.explored.as_deref().cloned());
            store_exploratory(self.app, trace).await?;
            if is_viable {
                self.app.dry_runs.note_exploration(self.principal, self.choice(path, &id, &offered));
            }
            // Of several viable paths at most one is what was meant, so only the first one is suggested later.
            if is_viable && offered.first() == Some(&path.evidence.id) {
                self.promote(path, &sanitiser, exploration).await?;
            }
        }
        exploration.exploration_id = Some(id);
        Ok(())
    }

    fn tried_path(&self, evidence: DryRunEvidence) -> Option<TriedPath> {
        let learn = evidence.learn.clone()?;
        let procedure = learn.capability_id(self.principal);
        let definitions = planned_definitions(&evidence.plan.tools);
        Some(TriedPath { evidence, procedure, definitions, learn })
    }

    fn known_of(&self, path: &TriedPath) -> PathEvidence {
        self.history.evidence(&path.procedure, &path.definitions, &self.masked_intent)
    }

    fn choice(&self, path: &TriedPath, exploration: &str, offered: &[String]) -> ExploredChoice {
        let DryRunEvidence { id, record, tainted, .. } = &path.evidence;
        let mocked = record.calls.iter().filter(|call| call.origin != ValueOrigin::Real);
        ExploredChoice {
            exploration_id: exploration.to_owned(),
            path_id: id.clone(),
            procedure: path.procedure.clone(),
            definitions: path.definitions.clone(),
            masked_intent: self.masked_intent.clone(),
            not_chosen: offered.iter().filter(|other| *other != id).cloned().collect(),
            tried: TriedCalls {
                mocked: mocked.filter_map(|call| call.node).collect(),
                tainted: tainted.clone(),
            },
        }
    }

    /// The trace of a path that was tried, and the sanitiser that removed its secrets.
    fn exploratory_trace(
        &self,
        session: &str,
        path: &TriedPath,
        exploration: &str,
    ) -> Result<(Trace, Sanitiser), Problem> {
        let sanitiser = self.app.knowledge.memory.sanitiser();
        let noting = sanitiser.recording_secrets();
        let first = self.dry_trace(session, &path.evidence, &noting)?;
        let secrets = noting.recorded_secrets();
        // A value that is secret at one place is removed at all others too.
        let (mut trace, sanitiser) = if secrets.is_empty() {
            (first, noting)
        } else {
            let wider = sanitiser.with_secrets(secrets);
            (self.dry_trace(session, &path.evidence, &wider)?, wider)
        };
        let is_viable = trace.error.is_none();
        let is_blocked =
            trace.error.as_ref().is_some_and(|error| error_type::is_blocked(error.error_type, &error.code));
        trace.body.explored = Some(Box::new(ExploredPath {
            exploration_id: exploration.to_owned(),
            path_id: path.evidence.id.clone(),
            procedure: path.procedure.clone(),
            definitions: path.definitions.clone(),
            masked_intent: self.masked_intent.clone(),
            not_chosen: Vec::new(),
            outcome: if is_viable { PathOutcome::Viable } else { PathOutcome::Failed },
            weight: match (is_viable, is_blocked) {
                (true, _) => trace.body.viable_weight(),
                (false, true) => 0.0,
                (false, false) => trace.body.failed_weight(&path.evidence.tainted),
            },
            cause: None,
            message: None,
        }));
        Ok((trace, sanitiser))
    }

    /// The trace of a dry run: marked as exploratory, with its calls marked as mocked where they were.
    fn dry_trace(
        &self,
        session: &str,
        evidence: &DryRunEvidence,
        sanitiser: &Sanitiser,
    ) -> Result<Trace, Problem> {
        let DryRunEvidence { plan, record, took, .. } = evidence;
        let digest = |tool: &str| {
            let planned = plan.tools.iter().find(|planned| planned.id.to_string() == tool);
            planned.map_or_else(|| Digest::of(b""), |planned| planned.digest.clone())
        };
        let info = |id: &String| TaskInfo { id: id.clone(), layer: None, retried: false, took_ms: None };
        let tasks = plan.dag().map(|dag| &dag.tasks[..]).unwrap_or_default();
        let mut trace = record.recorder.build_trace(&TraceContext {
            run: &run_of_path(&evidence.id)?,
            principal: self.principal,
            session,
            intent: self.intent,
            code_hash: &plan.code_hash,
            structure: &plan.structure,
            arguments: &plan.arguments,
            tasks: tasks.iter().map(|task| (task.node, info(&task.id))).collect(),
            digest: &digest,
            report: &record.report,
            active_ms: i64::try_from(took.as_millis()).unwrap_or(i64::MAX),
            approved: false,
            sanitiser,
        });
        // The dry run has a clock of its own.
        (trace.exploratory, trace.created_at) = (true, now_ms());
        for task in trace.body.task_results.iter_mut().filter(|task| task.call > 0) {
            let Some(call) = record.calls.iter().find(|call| call.call == task.call) else { continue };
            task.mocked = call.origin != ValueOrigin::Real;
            let weight = if evidence.canonical.contains(&task.call) { 1.0 } else { UNPROVEN_WEIGHT };
            task.mock_weight = task.mocked.then_some(weight);
            task.duration_ms = i64::try_from(call.duration.as_millis()).ok();
        }
        trace.body.mock_ratio = trace.body.share_of_mocks();
        Ok(trace)
    }

    /// Makes a path that was viable often enough a capability, unless its procedure is or was one.
    async fn promote(
        &self,
        path: &TriedPath,
        sanitiser: &Sanitiser,
        exploration: &mut Exploration,
    ) -> Result<(), Problem> {
        let app = self.app;
        if !self.history.is_due(&path.procedure, &path.definitions, &self.masked_intent)
            || app.store.capability(self.principal, &path.procedure).await?.is_some()
        {
            return Ok(());
        }
        let plan = &path.evidence.plan;
        let tools = app.knowledge.catalogue_for(self.principal, &plan.source);
        let cacheable = cache::only_reads(&app.knowledge, plan);
        let owner = (self.principal, None);
        let of_plan = (sanitiser, &*tools, cacheable);
        let Some(mut procedure) = capability::build_procedure(plan, &path.learn, owner, None, of_plan) else {
            return Ok(());
        };
        procedure.origin = CapabilityOrigin::Explored;
        let name = procedure.suggested_name.clone();
        let intent = sanitiser.clean_text(self.intent).into_owned();
        if app.store.promote_explored(procedure, &intent, now_ms()).await? {
            let text = format!("one path was viable each time: it is suggested as `{name}` from now on");
            exploration.warnings.push(text);
        }
        Ok(())
    }
}

/// Adds to the report what runs and explorations showed before, and puts paths that were chosen and worked first, and
/// those that misled last.
fn add_known(exploration: &mut Exploration, known: &HashMap<String, PathEvidence>) {
    let of_path = |id: &str| known.get(id).cloned().unwrap_or_default();
    for path in &mut exploration.viable_paths {
        let evidence = of_path(&path.path_id);
        path.confidence = (path.confidence * evidence.reliability() * 100.0).round() / 100.0;
        path.worked_before = evidence.worked;
        if let Some(run) = &evidence.misleading {
            path.warnings.insert(0, misleading_note(run));
        }
    }
    exploration.viable_paths.sort_by(|one, other| {
        let place = |id: &str| match known.get(id) {
            Some(evidence) if evidence.is_misleading() => 2,
            Some(evidence) if evidence.is_preferred() => 0,
            _ => 1,
        };
        let order = place(&one.path_id).cmp(&place(&other.path_id));
        order.then_with(|| one.best_first(other))
    });
}

fn misleading_note(run: &MisleadingRun) -> String {
    let cause = match run.cause {
        MisleadingCause::Mock => "what was made up here",
        MisleadingCause::ToolChange => "a tool had changed",
        MisleadingCause::Tool => "a call that works here",
    };
    let since = if run.is_outdated { "; its tools have changed since" } else { "" };
    format!("failed when run for real: {} ({cause}{since})", run.message)
}

fn planned_definitions(tools: &[PlannedTool]) -> Digest {
    definitions(tools.iter().map(|tool| (tool.id.to_string(), tool.digest.clone())))
}

/// The digest of the definitions of some tools.
fn definitions(tools: impl Iterator<Item = (String, Digest)>) -> Digest {
    let all: BTreeSet<String> = tools.map(|(id, digest)| format!("{id} {}", digest.as_str())).collect();
    Digest::of(all.into_iter().collect::<Vec<_>>().join("\n").as_bytes())
}
