//! Builds what a finished run leaves in memory: traces and the learned capability.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pml_model::json::raw;
use pml_model::name::truncate_text;
use pml_model::observed::ObservedShape;
use pml_model::structure::{Argument, NodeId, Structure};
use pml_model::trace::{ErrorType, Trace, TraceStatus};
use pml_model::{CapabilityId, Digest, Principal, RunId, TraceId};
use pml_store::{IntentFit, RunMemory};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::RunRegistry;
use super::frames::CapabilityFrame;
use super::value::complete_value;
use crate::capability;
use crate::knowledge::{SessionResult, cache, intents};
use crate::plan::LearningPlan;
use crate::plan::{DagTask, Plan, PlannedCapability, PlannedWork, TaskWork};
use crate::report::{CallReport, RunReport};
use crate::sanitise::{Sanitiser, is_common};
use crate::trace::{Recorder, TaskInfo, TraceContext};
use crate::validate;

/// The characters of a message in a list of runs; the report has all of it.
const LISTED_MESSAGE_CHARACTERS: usize = 500;
/// 256 KiB: the largest result whose shape is observed. Reading it is a part of ending the run.
const SHAPED_BYTES: usize = 256 * 1024;

/// What was recorded of a run, wherever it was made.
pub(super) struct RecordedRun<'o> {
    /// Its calls.
    pub(super) recorder: &'o Recorder,
    /// The capabilities that it called.
    pub(super) frames: &'o [RecordedFrame<'o>],
    /// How it ended.
    pub(super) report: &'o RunReport,
}

/// A called capability, and the reports of the calls that it made.
pub(super) struct RecordedFrame<'o> {
    pub(super) frame: &'o CapabilityFrame,
    pub(super) calls: Vec<CallReport>,
}

/// A finished run.
pub(super) struct FinishedRun<'o> {
    pub(super) run: &'o RunId,
    pub(super) principal: &'o Principal,
    pub(super) plan: &'o Plan,
    pub(super) recorded: RecordedRun<'o>,
    /// The layer of each task; empty unless the run is a DAG.
    pub(super) layers: HashMap<NodeId, u32>,
    /// How long the run was active, in milliseconds.
    pub(super) active_ms: i64,
    /// Whether a person approved its calls.
    pub(super) approved: bool,
    pub(super) origin: RunOrigin,
}

/// Where a run was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunOrigin {
    /// By a process of this database, which has its records.
    Here,
    /// By its client, which tells of it.
    Client,
}

/// Whether the capability of a plan exists already and works.
pub(super) async fn is_known(runs: &Arc<RunRegistry>, principal: &Principal, plan: &Plan) -> bool {
    match &plan.learn {
        Some(LearningPlan { capability: Some(_), .. }) => true,
        Some(learn) => runs.knowledge.memory.is_active(principal, &learn.capability_id(principal)).await,
        None => false,
    }
}

/// The message of a failed run for lists, which are not sealed: that of the trace, which knows the secrets of the run.
pub(super) fn listed_message(
    runs: &RunRegistry,
    report: &RunReport,
    memory: Option<&RunMemory>,
) -> Option<String> {
    let error = report.error.as_ref()?;
    let traced = memory.and_then(|memory| memory.trace.error.as_ref()).map(|error| error.message.clone());
    let message =
        traced.unwrap_or_else(|| runs.knowledge.memory.sanitiser().clean_text(&error.message).into_owned());
    Some(truncate_text(&message, LISTED_MESSAGE_CHARACTERS))
}

/// The memory to be stored with the end of the run, including its capability unless that is `known`.
pub(super) fn build_memory(
    runs: &RunRegistry,
    over: &FinishedRun<'_>,
    known: bool,
) -> Option<Box<RunMemory>> {
    let learn = over.plan.learn.as_ref()?;
    let digest = |tool: &str| definition(over.plan, tool);
    let (mut trace, mut nested, sanitiser) = traces(runs, over, &digest, &runs.knowledge.memory.sanitiser());
    blame_caller(&mut trace, &over.plan.structure, &learn.parameters, &over.plan.arguments);
    if over.origin == RunOrigin::Here {
        nested.iter().chain([&trace]).for_each(|trace| runs.knowledge.mocks.note_results(trace));
    }
    let id = learn.capability_id(over.principal);
    let hint = over.recorded.report.hint.as_deref();
    let make = || {
        let tools = runs.knowledge.catalogue_for(over.principal, &over.plan.source);
        let cacheable = cache::only_reads(&runs.knowledge, over.plan);
        let owner = (over.principal, (over.origin == RunOrigin::Here).then_some(over.run));
        capability::build_procedure(over.plan, learn, owner, hint, (&sanitiser, &tools, cacheable))
    };
    let cut_off = !over.recorded.report.cut_off(&over.plan.structure).is_empty();
    // A program that only computes is rewritten as quickly as it is found, so it is kept only if its author asks for
    // that.
    let keeps = !learn.changed && !cut_off && (known || hint.is_some() || calls_something(over));
    let procedure = if known || !keeps { None } else { make() };
    let intent =
        match runs.knowledge.memory.cached_by_name(over.principal, id.as_str()).filter(|_| known && keeps) {
            Some(known) => intents::fit(&known, &trace.intent, &given(over.plan, learn, &sanitiser)),
            None => IntentFit::Unchecked,
        };
    trace.capability_id = ((known && keeps) || procedure.is_some()).then_some(id);
    if cut_off {
        trace.status = TraceStatus::Partial;
        nested.iter_mut().for_each(|part| part.capability_id = None);
    }
    // A run whose tasks were replaced, or that did not get to its end, is not a run of the path.
    let is_of_path = !learn.changed && !cut_off;
    trace.body.explored = over
        .plan
        .explored
        .as_ref()
        .map(|choice| Box::new(if is_of_path { choice.outcome(&trace) } else { choice.undecided() }));
    Some(Box::new(RunMemory {
        procedure: procedure.map(Box::new),
        activates: activates(over, trace.status),
        tools: capability::tools(over.plan),
        values: capability::example_values(over.plan, learn, &sanitiser),
        result: result_shape(over.recorded.report, trace.status, &sanitiser),
        golden: runs.settings.config().memory.golden_runs && is_golden(over, &trace, &sanitiser),
        intent,
        excluded_from_learning: cut_off,
        nested,
        trace: Box::new(trace),
    }))
}

/// Whether the run can show later what its capability is to do: it is one of a program, it worked, and nothing of it had
/// to be removed or shortened.
fn is_golden(over: &FinishedRun<'_>, trace: &Trace, sanitiser: &Sanitiser) -> bool {
    let is_whole = |value: &RawValue| !sanitiser.clean_json(value).changed;
    trace.status == TraceStatus::Success
        && over.origin == RunOrigin::Here
        && over.plan.program().is_some()
        && trace.body.omitted == 0
        && !trace.body.task_results.iter().any(|task| task.altered)
        && is_whole(&over.plan.arguments)
        && over.recorded.report.result.as_deref().is_none_or(is_whole)
        && matches!(sanitiser.clean_text(&over.plan.source), std::borrow::Cow::Borrowed(_))
}

/// The shape of the result of a run that worked, unless a secret is in it: what is removed has another shape.
fn result_shape(report: &RunReport, status: TraceStatus, sanitiser: &Sanitiser) -> Option<ObservedShape> {
    let result =
        report.result.as_deref().filter(|result| !report.whole && result.get().len() <= SHAPED_BYTES)?;
    let shown = sanitiser.clean_json(result);
    if status != TraceStatus::Success || shown.changed {
        return None;
    }
    serde_json::from_str(result.get()).ok().map(|value| ObservedShape::of(&value))
}

/// Whether a run called a tool or a capability, or could have.
fn calls_something(over: &FinishedRun<'_>) -> bool {
    over.plan.structure.nodes.iter().any(|node| node.kind.is_call()) || !over.recorded.report.tasks.is_empty()
}

/// The arguments of a run, in the form in which an intent may state them.
fn given(plan: &Plan, learn: &LearningPlan, sanitiser: &Sanitiser) -> Map<String, Value> {
    let mut given = capability::example_values(plan, learn, sanitiser);
    // Examples are small; compared values may have any size.
    let all: Map<String, Value> = serde_json::from_str(plan.arguments.get()).unwrap_or_default();
    for (name, value) in all {
        given.entry(name).or_insert(value);
    }
    given
}

/// The trace of the run, those of the capabilities it called, and the sanitiser that removes its secrets from
/// everything else that is kept. A value removed at one place is removed everywhere: a secret that is recognised by its
/// name in the arguments may reappear without that name in a result or an error.
fn traces(
    runs: &RunRegistry,
    over: &FinishedRun<'_>,
    digest: &dyn Fn(&str) -> Digest,
    sanitiser: &Sanitiser,
) -> (Trace, Vec<Trace>, Sanitiser) {
    let noting = sanitiser.recording_secrets();
    let (trace, nested) = (whole(over, digest, &noting), parts(runs, over, digest, &noting));
    let secrets = noting.recorded_secrets();
    if secrets.is_empty() {
        return (trace, nested, noting);
    }
    let wider = sanitiser.with_secrets(secrets.iter().cloned());
    let (trace, nested) = (whole(over, digest, &wider), parts(runs, over, digest, &wider));
    // A password that is a common word may also be a word of the program; removing it there would change the program.
    let telling = secrets.into_iter().filter(|secret| !is_common(secret));
    (trace, nested, sanitiser.with_secrets(telling))
}

/// The trace of the run itself.
fn whole(over: &FinishedRun<'_>, digest: &dyn Fn(&str) -> Digest, sanitiser: &Sanitiser) -> Trace {
    over.recorded.recorder.build_trace(&TraceContext {
        run: over.run,
        principal: over.principal,
        session: &over.plan.session,
        intent: &over.plan.intent,
        code_hash: &over.plan.code_hash,
        structure: &over.plan.structure,
        arguments: &over.plan.arguments,
        tasks: tasks(over),
        digest,
        report: over.recorded.report,
        active_ms: over.active_ms,
        approved: over.approved,
        sanitiser,
    })
}

/// The traces of the called capabilities.
fn parts(
    runs: &RunRegistry,
    over: &FinishedRun<'_>,
    digest: &dyn Fn(&str) -> Digest,
    sanitiser: &Sanitiser,
) -> Vec<Trace> {
    let part = |RecordedFrame { frame, calls }: &RecordedFrame<'_>| {
        let nested = frame.planned_capability(over.plan)?;
        let report = frame.report(over.plan, calls.clone(), over.recorded.report);
        let mut trace = frame.recorder.build_trace(&TraceContext {
            run: over.run,
            principal: over.principal,
            session: &over.plan.session,
            // A called capability was not requested by an intent.
            intent: "",
            code_hash: &nested.code_hash,
            structure: &nested.structure,
            arguments: &frame.arguments,
            tasks: tasks_within(nested),
            digest,
            report: &report,
            active_ms: report.ended_at - report.started_at,
            approved: over.approved,
            sanitiser,
        });
        if let Some(known) = runs.knowledge.memory.active_by_id(over.principal, &nested.id) {
            blame_caller(&mut trace, &nested.structure, &known.parameters, &frame.arguments);
        }
        trace.id = TraceId::of_frame(over.run, frame.number);
        trace.capability_id = frame.capability(over.plan);
        trace.parent_trace_id = Some(match frame.parent {
            0 => TraceId::of(over.run),
            parent => TraceId::of_frame(over.run, parent),
        });
        Some(trace)
    };
    over.recorded.frames.iter().filter_map(part).collect()
}

/// Attributes a failure to the caller if it gave invalid input: arguments that are missing or of another type, or a
/// value that went into a call which refused it as invalid, combined with nothing of the program but constants.
fn blame_caller(trace: &mut Trace, structure: &Structure, parameters: &Value, arguments: &RawValue) {
    if trace.status != TraceStatus::Failed {
        return;
    }
    let refused = || {
        let error = trace.error.as_ref().filter(|error| error.error_type == ErrorType::Validation)?;
        let node = NodeId::try_from(error.node_id.clone()?).ok()?;
        structure.node(node)?.kind.arguments().filter(|argument| is_from_caller(argument))
    };
    if !validate::satisfies(parameters, arguments) || refused().is_some() {
        trace.status = TraceStatus::Blocked;
    }
}

/// Whether an argument consists only of the caller's values and constants, with at least one of the caller's values.
fn is_from_caller(argument: &Argument) -> bool {
    fn gather(argument: &Argument, given: &mut bool, other: &mut bool) {
        match argument {
            Argument::Parameter { .. } => *given = true,
            Argument::Literal { .. } => {}
            Argument::Object { fields, spreads, .. } if spreads.is_empty() => {
                fields.iter().for_each(|field| gather(&field.value, given, other));
            }
            Argument::Template { parts } => parts.iter().for_each(|part| gather(part, given, other)),
            Argument::Array { items } => items.iter().for_each(|item| gather(item, given, other)),
            _ => *other = true,
        }
    }
    let (mut given, mut other) = (false, false);
    gather(argument, &mut given, &mut other);
    given && !other
}

/// Whether the run proves that the procedure works. A run that called undeclared tools proves nothing.
fn activates(over: &FinishedRun<'_>, status: TraceStatus) -> bool {
    let undeclared = || match over.plan.work {
        PlannedWork::Code(_) => over.recorded.report.tasks.iter().any(|task| task.node_id.is_none()),
        // The calls of a task are reported as the task's, declared or not.
        PlannedWork::Dag(_) => !over.plan.opaque.is_empty() && over.plan.task_programs().next().is_some(),
    };
    status.evidence() == Some(true) && !undeclared()
}

fn definition(plan: &Plan, tool: &str) -> Digest {
    if let Some(nested) = plan.nested.iter().find(|nested| nested.id.as_str() == tool) {
        return Digest::of(nested.source.as_bytes());
    }
    let granted = plan.tools.iter().find(|granted| granted.id.to_string() == tool);
    granted.map_or_else(|| Digest::of(b""), |granted| granted.digest.clone())
}

fn tasks(over: &FinishedRun<'_>) -> HashMap<NodeId, TaskInfo> {
    let tasks = over.plan.dag().map(|dag| dag.tasks.as_slice()).unwrap_or_default();
    let outcomes = &over.recorded.report.outcomes;
    let of = |task: &DagTask| TaskInfo {
        id: task.id.clone(),
        layer: over.layers.get(&task.node).copied(),
        retried: matches!(task.work, TaskWork::Tool { .. }),
        took_ms: outcomes.iter().find(|told| told.task_id == task.id).and_then(|told| told.execution_time_ms),
    };
    tasks.iter().map(|task| (task.node, of(task))).collect()
}

/// The tasks of a capability that is a DAG document.
fn tasks_within(nested: &PlannedCapability) -> HashMap<NodeId, TaskInfo> {
    let of = |id: &String| TaskInfo { id: id.clone(), layer: None, retried: false, took_ms: None };
    nested.tasks.iter().map(|(node, id)| (*node, of(id))).collect()
}

/// The capability by whose name a list of runs shows the run. A failed run counts for a capability as well.
pub(super) fn counted_for(memory: Option<&RunMemory>, report: &RunReport) -> Option<CapabilityId> {
    memory.and_then(|memory| memory.trace.capability_id.clone()).or_else(|| report.capability_id.clone())
}

/// Adds the learned capability to the report, and the suggestions of what usually comes next.
pub(super) fn add_learned_to_report(
    runs: &RunRegistry,
    memory: &RunMemory,
    plan: &Plan,
    report: &mut RunReport,
) {
    let trace = &memory.trace;
    if trace.status.evidence() == Some(true) && plan.is_direct() {
        let used: Vec<&str> = trace.body.task_results.iter().map(|task| task.tool.as_str()).collect();
        let results = session_results(trace).into_iter().filter_map(|result| {
            let value = complete_value(&raw(&result.value))?;
            Some(SessionResult { value: serde_json::from_str(value.get()).ok()?, ..result })
        });
        let session = (&trace.principal, trace.session.as_str());
        runs.knowledge.memory.record_session_use(session, &used, results.collect());
    }
    if trace.status.evidence() != Some(true) || memory.excluded_from_learning {
        return;
    }
    report.capability_id.clone_from(&trace.capability_id);
    if memory.procedure.is_some() {
        let withheld = |learn| capability::withheld(plan, learn, &runs.knowledge.memory.sanitiser());
        report.withheld = plan.learn.as_ref().map(withheld).unwrap_or_default();
        let lifted = plan.learn.as_ref().and_then(|learn| learn.lifted.as_ref());
        report.lifted = lifted.map(|lifted| lifted.values.keys().cloned().collect()).unwrap_or_default();
    }
    let ran = ran_in(memory, report);
    let calls = || trace.body.task_results.iter().filter(|task| !task.is_operation());
    let last = calls().next_back().map(|task| task.tool.as_str());
    let mut next = runs.knowledge.next_after(&trace.principal, trace.capability_id.as_ref(), last, &ran);
    let used: Vec<&str> = calls().map(|task| task.tool.as_str()).collect();
    let session = (&trace.principal, trace.session.as_str());
    runs.knowledge.memory.record_session_use(session, &used, session_results(trace));
    let graph = runs.knowledge.of_principal(&trace.principal).graph().filter(|_| !used.is_empty());
    let like =
        runs.knowledge.next_in_similar_requests(&trace.principal, &trace.intent, &used, graph.as_deref());
    // Of these, only tools that are usually called again at this point are among the used ones.
    let elsewhere = ran.iter().copied().filter(|ran| !used.contains(ran)).collect();
    crate::knowledge::add_next(&mut next, like, &elsewhere);
    if let Some(graph) = graph {
        let reached = runs.knowledge.next_on_capability_paths(&trace.principal, &used, &graph);
        crate::knowledge::add_next(&mut next, reached, &ran);
        crate::knowledge::add_next(&mut next, crate::knowledge::next_related(&graph, &used), &ran);
    }
    report.next = next;
}

/// What the calls of a run returned, as far as the trace has it whole: what sanitising changed is used for nothing.
fn session_results(trace: &Trace) -> Vec<SessionResult> {
    let whole = trace.body.task_results.iter().filter(|task| task.success && !task.altered);
    whole
        .filter(|task| !task.is_operation())
        .filter_map(|task| {
            let value = serde_json::from_str(task.result.as_ref()?.get()).ok()?;
            Some(SessionResult { tool: task.tool.clone(), value })
        })
        .collect()
}

/// The tools and capabilities that a run used, including within called capabilities, and its own capability.
fn ran_in<'r>(memory: &'r RunMemory, report: &'r RunReport) -> HashSet<&'r str> {
    let traces = || std::iter::once(&*memory.trace).chain(&memory.nested);
    let tools = report.tasks.iter().map(|task| task.tool.as_str());
    let called = traces().flat_map(|trace| &trace.body.task_results).map(|task| task.tool.as_str());
    let capabilities = traces().filter_map(|trace| trace.capability_id.as_ref()).map(CapabilityId::as_str);
    tools.chain(called).chain(capabilities).collect()
}
