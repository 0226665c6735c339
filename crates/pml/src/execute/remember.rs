//! What a run that is over leaves in memory.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pml_model::structure::{Argument, NodeId, Structure};
use pml_model::trace::{ErrorType, Status, Trace};
use pml_model::{CapabilityId, Digest, Principal, RunId, TraceId};
use pml_store::{IntentFit, Memory};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::frames::Frame;
use super::observe::Observer;
use super::plan::{DagTask, Nested, Plan, TaskWork, Work};
use super::report::Report;
use crate::app::App;
use crate::cache;
use crate::capability::{self, Learn};
use crate::memory::intents;
use crate::sanitise::{Sanitiser, is_common};
use crate::trace::{About, OfTask};
use crate::validate;

/// A run that is over.
pub(super) struct Over<'o> {
    pub(super) run: &'o RunId,
    pub(super) principal: &'o Principal,
    pub(super) plan: &'o Plan,
    pub(super) observer: &'o Observer,
    pub(super) report: &'o Report,
    /// The layers of its tasks, where it is made of tasks.
    pub(super) layers: HashMap<NodeId, u32>,
    /// How long it was worked on.
    pub(super) active_ms: i64,
    /// A person allowed what it did.
    pub(super) approved: bool,
}

/// Whether the procedure of a plan is there already, and works.
pub(super) async fn is_known(app: &Arc<App>, principal: &Principal, plan: &Plan) -> bool {
    match &plan.learn {
        Some(Learn { capability: Some(_), .. }) => true,
        Some(learn) => app.memory.is_active(principal, &learn.capability_of(principal)).await,
        None => false,
    }
}

/// What is to be stored with the end of the run; its procedure too, unless that is `known`.
pub(super) fn memory(app: &App, over: &Over<'_>, known: bool) -> Option<Box<Memory>> {
    let learn = over.plan.learn.as_ref()?;
    let digest = |tool: &str| definition(over.plan, tool);
    let (mut trace, mut nested, sanitiser) = traces(app, over, &digest, &app.memory.sanitiser());
    blame_caller(&mut trace, &over.plan.structure, &learn.parameters, &over.plan.arguments);
    let id = learn.capability_of(over.principal);
    let hint = over.report.hint.as_deref();
    let make = || {
        let tools = app.known_to(over.principal, &over.plan.source);
        let cacheable = cache::only_reads(app, over.plan);
        capability::procedure(over.plan, learn, over.principal, hint, (&sanitiser, &tools, cacheable))
    };
    let cut_off = !over.report.cut_off(&over.plan.structure).is_empty();
    // What computes and calls nothing is written anew as quickly as it is found, unless its writer wants it kept.
    let keeps = !learn.changed && !cut_off && (known || hint.is_some() || calls_something(over));
    let procedure = if known || !keeps { None } else { make() };
    let intent = match app.memory.called(over.principal, id.as_str()).filter(|_| known && keeps) {
        Some(known) => intents::fit(&known, &trace.intent, &given(over.plan, learn, &sanitiser)),
        None => IntentFit::Unchecked,
    };
    trace.capability_id = ((known && keeps) || procedure.is_some()).then_some(id);
    if cut_off {
        trace.status = Status::Partial;
        nested.iter_mut().for_each(|part| part.capability_id = None);
    }
    Some(Box::new(Memory {
        procedure: procedure.map(Box::new),
        activates: activates(over, trace.status),
        tools: capability::tools(over.plan),
        values: capability::values(over.plan, learn, &sanitiser),
        intent,
        untaught: cut_off,
        nested,
        trace: Box::new(trace),
    }))
}

/// Whether a run called a tool or a capability, or could have.
fn calls_something(over: &Over<'_>) -> bool {
    over.plan.structure.nodes.iter().any(|node| node.kind.is_call()) || !over.report.tasks.is_empty()
}

/// What a run was given, in the words in which an intent may say it.
fn given(plan: &Plan, learn: &Learn, sanitiser: &Sanitiser) -> Map<String, Value> {
    let mut given = capability::values(plan, learn, sanitiser);
    // Examples are small; what is compared may be of any size.
    let all: Map<String, Value> = serde_json::from_str(plan.arguments.get()).unwrap_or_default();
    for (name, value) in all {
        given.entry(name).or_insert(value);
    }
    given
}

/// The trace of the run, those of the capabilities it called, and what takes its secrets out of everything else that is
/// kept of it. A value that was taken out at one place is taken out at all: what is a secret by its name in the arguments
/// may come back under no name in a result or an error.
fn traces(
    app: &App,
    over: &Over<'_>,
    digest: &dyn Fn(&str) -> Digest,
    sanitiser: &Sanitiser,
) -> (Trace, Vec<Trace>, Sanitiser) {
    let noting = sanitiser.noting();
    let (trace, nested) = (whole(over, digest, &noting), parts(app, over, digest, &noting));
    let secrets = noting.noted();
    if secrets.is_empty() {
        return (trace, nested, noting);
    }
    let wider = sanitiser.with(secrets.iter().cloned());
    let (trace, nested) = (whole(over, digest, &wider), parts(app, over, digest, &wider));
    // A password that is a common word may be a word of the program as well, which would not be the same program then.
    let telling = secrets.into_iter().filter(|secret| !is_common(secret));
    (trace, nested, sanitiser.with(telling))
}

/// The trace of the run itself.
fn whole(over: &Over<'_>, digest: &dyn Fn(&str) -> Digest, sanitiser: &Sanitiser) -> Trace {
    over.observer.recorder().trace(&About {
        run: over.run,
        principal: over.principal,
        session: &over.plan.session,
        intent: &over.plan.intent,
        code_hash: &over.plan.code_hash,
        structure: &over.plan.structure,
        arguments: &over.plan.arguments,
        tasks: tasks(over),
        digest,
        report: over.report,
        active_ms: over.active_ms,
        approved: over.approved,
        sanitiser,
    })
}

/// The traces of the capabilities that were called.
fn parts(app: &App, over: &Over<'_>, digest: &dyn Fn(&str) -> Digest, sanitiser: &Sanitiser) -> Vec<Trace> {
    let part = |frame: &Frame| {
        let nested = frame.nested(over.plan)?;
        let own = over.observer.made_by(frame.number, &over.report.tasks);
        let report = frame.report(over.plan, own.into_iter().cloned().collect(), over.report);
        let mut trace = frame.recorder.trace(&About {
            run: over.run,
            principal: over.principal,
            session: &over.plan.session,
            // It was called and not asked for.
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
        if let Some(known) = app.memory.known(over.principal, &nested.id) {
            blame_caller(&mut trace, &nested.structure, &known.parameters, &frame.arguments);
        }
        trace.id = TraceId::part(over.run, frame.number);
        trace.capability_id = frame.capability(over.plan);
        trace.parent_trace_id = Some(match frame.parent {
            0 => TraceId::of(over.run),
            parent => TraceId::part(over.run, parent),
        });
        Some(trace)
    };
    over.observer.frames().traced().filter_map(part).collect()
}

/// Takes a failure for the caller's where it gave what the procedure does not take: arguments that are missing or of
/// another type, or a value that went into a call which refused it as invalid, with nothing of the program's own but constants.
fn blame_caller(trace: &mut Trace, structure: &Structure, parameters: &Value, arguments: &RawValue) {
    if trace.status != Status::Failed {
        return;
    }
    let refused = || {
        let error = trace.error.as_ref().filter(|error| error.error_type == ErrorType::Validation)?;
        let node = NodeId::try_from(error.node_id.clone()?).ok()?;
        structure.node(node)?.kind.arguments().filter(|argument| is_from_caller(argument))
    };
    if !validate::satisfies(parameters, arguments) || refused().is_some() {
        trace.status = Status::Blocked;
    }
}

/// Whether an argument is made of what the caller gave and of what is written, of something of the caller's at least.
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

/// Whether the run shows that the procedure works. One that called what its text does not declare shows nothing.
fn activates(over: &Over<'_>, status: Status) -> bool {
    let undeclared = || match over.plan.work {
        Work::Code(_) => over.report.tasks.iter().any(|task| task.node_id.is_none()),
        // The calls of a task are told as the task's, declared or not.
        Work::Dag(_) => !over.plan.opaque.is_empty() && over.plan.codes().next().is_some(),
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

fn tasks(over: &Over<'_>) -> HashMap<NodeId, OfTask> {
    let tasks = over.plan.dag().map(|dag| dag.tasks.as_slice()).unwrap_or_default();
    let outcomes = &over.report.outcomes;
    let of = |task: &DagTask| OfTask {
        id: task.id.clone(),
        layer: over.layers.get(&task.node).copied(),
        retried: matches!(task.work, TaskWork::Tool { .. }),
        took_ms: outcomes.iter().find(|told| told.task_id == task.id).and_then(|told| told.execution_time_ms),
    };
    tasks.iter().map(|task| (task.node, of(task))).collect()
}

/// The tasks of a capability that is a document.
fn tasks_within(nested: &Nested) -> HashMap<NodeId, OfTask> {
    let of = |id: &String| OfTask { id: id.clone(), layer: None, retried: false, took_ms: None };
    nested.tasks.iter().map(|(node, id)| (*node, of(id))).collect()
}

/// Adds to what is told of the run: what it can be called by from now on, and what usually comes next.
pub(super) fn tell(app: &App, memory: &Memory, plan: &Plan, report: &mut Report) {
    let trace = &memory.trace;
    if trace.status.evidence() != Some(true) || memory.untaught {
        return;
    }
    report.capability_id.clone_from(&trace.capability_id);
    if memory.procedure.is_some() {
        let withheld = |learn| capability::withheld(plan, learn, &app.memory.sanitiser());
        report.withheld = plan.learn.as_ref().map(withheld).unwrap_or_default();
    }
    let ran = ran_in(memory, report);
    let calls = || trace.body.task_results.iter().filter(|task| !task.is_operation());
    let last = calls().next_back().map(|task| task.tool.as_str());
    let mut next = app.memory.next_after(&trace.principal, trace.capability_id.as_ref(), last, &ran);
    let used: Vec<&str> = calls().map(|task| task.tool.as_str()).collect();
    app.memory.used(&trace.principal, &trace.session, &used);
    let like = app.memory.next_like(&app.meaning, &trace.intent, &used);
    crate::memory::add_next(&mut next, like, &ran);
    if let Some(woven) = app.network.current().filter(|_| !used.is_empty()) {
        crate::memory::add_next(&mut next, crate::memory::next_close(&woven, &used), &ran);
    }
    report.next = next;
}

/// The tools and capabilities that a run used, within the capabilities it called too, and its own capability.
fn ran_in<'r>(memory: &'r Memory, report: &'r Report) -> HashSet<&'r str> {
    let traces = || std::iter::once(&*memory.trace).chain(&memory.nested);
    let tools = report.tasks.iter().map(|task| task.tool.as_str());
    let called = traces().flat_map(|trace| &trace.body.task_results).map(|task| task.tool.as_str());
    let capabilities = traces().filter_map(|trace| trace.capability_id.as_ref()).map(CapabilityId::as_str);
    tools.chain(called).chain(capabilities).collect()
}
