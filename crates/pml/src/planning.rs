//! Turns a request into a plan.
//!
//! Analysis is `pml-analysis`'s business; here it gets what it has to know about the tools there are.

mod nested;
mod unfold;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use pml_analysis::dag::Work;
use pml_analysis::render::Report;
use pml_analysis::{Analysis, Catalogue, Complaint, DagAnalysis, Remark, Severity};
use pml_mcp::Caller;
use pml_model::json::{Fields, empty_object, raw};
use pml_model::question::{Answerer, Approval};
use pml_model::structure::{Node, NodeKind};
use pml_model::{CapabilityId, Principal, ToolId};
use pml_store::Idempotency;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::approve::question::{before, known_arguments};
use crate::approve::{Mode, Policy, Refusal, Verdict};
use crate::catalogue::{self, Snapshot};
use crate::clock::now_ms;
use crate::config::{Dynamic, Scope};
use crate::execute::Tasks;
use crate::knowledge::Known;
use crate::plan::Learn;
use crate::plan::{
    Asks, Bounds, DagPlan, DagTask, Granted, Pause, Plan, Replan, Sees, TaskCode, TaskWork, Understood,
    Work as Planned,
};
use crate::problem::{Code, Problem};
use nested::Nest;

/// A program to be run.
#[derive(Clone)]
pub struct Execution {
    /// Who asks.
    pub principal: Principal,
    /// In which session.
    pub session: String,
    /// What it is for.
    pub intent: String,
    /// What is to be run.
    pub work: Asked,
    /// Its `args`, a JSON object.
    pub arguments: Box<RawValue>,
    /// How long it may take, where that is less than it might.
    pub timeout: Option<Duration>,
    /// Who hears of it meanwhile.
    pub caller: Caller,
    /// What makes a repeated request the same run.
    pub idempotency: Option<Idempotency>,
    /// How long it may wait for its turn.
    pub patience: Duration,
    /// Whose word counts where a person has to be asked.
    pub by: Answerer,
    /// What becomes of it where its calls cannot be known beforehand.
    pub dynamic: Dynamic,
    /// Whether anything is to be learned of it.
    pub learn: bool,
    /// The capability that is run, where it is one.
    pub capability: Option<CapabilityId>,
    /// Whether a result that is known already will do.
    pub cache: bool,
}

/// What is to be run.
#[derive(Debug, Clone)]
pub enum Asked {
    /// A program, TypeScript.
    Code(String),
    /// A DAG document, JSON.
    Dag {
        /// The document.
        document: String,
        /// When somebody's word is waited for.
        pause: Pause,
    },
    /// One call of a tool.
    Tool {
        /// Which.
        tool: ToolId,
        /// What it is given where the run's arguments do not say otherwise; a JSON object.
        defaults: Box<RawValue>,
    },
    /// One call of a tool that a client called by name: what the tool answers is the run's result, unchanged.
    Call(ToolId),
    /// A capability, by name or id.
    Capability(String),
    /// Whatever serves the intent.
    Anything,
}

impl Asked {
    /// The text that was asked for.
    fn source(&self) -> String {
        match self {
            Asked::Code(code) => code.clone(),
            Asked::Dag { document, .. } => document.clone(),
            Asked::Tool { tool, defaults } => {
                raw(&json!({ "tool": tool, "arguments": defaults })).get().to_owned()
            }
            Asked::Call(tool) => raw(&json!({ "tool": tool })).get().to_owned(),
            Asked::Capability(name) => name.clone(),
            Asked::Anything => String::new(),
        }
    }
}

/// Why a program is not run.
#[derive(Debug)]
pub struct Refused {
    /// The first reason.
    pub problem: Problem,
    /// The line it is about.
    pub line: Option<u32>,
    /// All reasons, as a person reads them.
    pub all: Vec<String>,
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Refused {
        Refused { all: vec![problem.to_string()], problem, line: None }
    }
}

/// Whether nothing is wrong: a program that would fail is not run.
pub(crate) fn without_mistakes(complaints: &[Complaint]) -> Result<(), Refused> {
    let mistakes = |complaint: &&Complaint| complaint.severity == Severity::Error;
    let all: Vec<String> = complaints
        .iter()
        .filter(mistakes)
        .map(|complaint| {
            let hint = complaint.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("line {}: {}{hint}", complaint.at.line, complaint.message)
        })
        .collect();
    let Some(first) = complaints.iter().find(mistakes) else { return Ok(()) };
    let code = match first.code {
        pml_analysis::Code::HeldBack => Code::Quarantined,
        pml_analysis::Code::ServerStarting => Code::ServerStarting,
        pml_analysis::Code::ServerUnavailable => Code::ServerDown,
        _ => Code::InvalidProgram,
    };
    let mut problem = Problem::new(code, first.message.clone());
    problem.hint.clone_from(&first.hint);
    Err(Refused { problem, line: Some(first.at.line), all })
}

/// Why a text is no program.
pub(crate) fn not_understood(report: &Report) -> Refused {
    let mut problem = Problem::new(Code::InvalidProgram, report.message.clone());
    problem.hint.clone_from(&report.hint);
    Refused { all: vec![problem.to_string()], problem, line: report.at.map(|at| at.line) }
}

/// What a plan is made in: the tools there are, the rules, and what the asker sees.
pub(crate) struct Setting<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) policy: &'a Policy,
    pub(crate) bounds: Bounds,
    pub(crate) visible: &'a (dyn Fn(&ToolId) -> bool + Sync),
    pub(crate) learned: &'a dyn Learned,
}

/// What a plan has to know of what was learned.
pub(crate) trait Learned: Sync {
    /// The capability of that name, whether or not it can be used.
    fn named(&self, name: &str) -> Option<Arc<Known>>;

    /// The tools there are, and the capabilities that `source` may name.
    fn catalogue(&self, source: &str) -> Arc<Catalogue>;
}

/// What is run, if the rules allow it: every tool the program can call must be one it may call, or one that a person can
/// allow it to call. Whoever may be asked is asked once, before anything runs, about all that is known by then.
pub(crate) fn plan(setting: &Setting<'_>, analysis: Analysis, asked: &Execution) -> Result<Plan, Refused> {
    let opaque = &analysis.permissions.opaque;
    if let Some(remark) = opaque.first().filter(|_| asked.dynamic == Dynamic::Refuse) {
        return Err(cannot_be_known(remark));
    }
    given(&asked.arguments, setting.bounds.argument_bytes)?;
    let first = |tool: &str| first_line(&analysis, tool);
    let mut granted = grantables(setting, &analysis.permissions.declared, first)?;
    let opaque = remarks(opaque);
    if !opaque.is_empty() {
        granted.extend(all_others(setting, &granted));
    }
    let own = granted.len();
    let mut nest = Nest::new(setting, granted, Vec::new());
    let called = nest.called(&analysis.permissions.capabilities, |name| {
        capability_line(&analysis.structure.nodes, name)
    })?;
    let Nest { tools: granted, programs, .. } = nest;
    let work = Planned::Code(analysis.program);
    let learn = Learn::new(&analysis.identity.identity, &analysis.parameters);
    let mut plan = Plan::new(
        asked.intent.clone(),
        asked.work.source(),
        Understood { identity: analysis.identity, structure: analysis.structure, work },
        asked.arguments.clone(),
        granted,
        setting.bounds,
        (seed()?, now_ms()),
    );
    plan.opaque = opaque;
    if !programs.is_empty() {
        plan.sees = Some(Sees { tools: (0..).take(own).collect(), nested: called });
        plan.nested = programs;
    }
    Ok(finished(plan, learn, setting, asked))
}

/// The line of the first call of a capability.
fn capability_line(nodes: &[Node], name: &str) -> Option<u32> {
    let calls =
        |node: &&Node| matches!(&node.kind, NodeKind::Capability { capability, .. } if capability == name);
    nodes.iter().filter(calls).map(|node| node.at.line).min()
}

/// The same for a DAG document that was understood.
pub(crate) fn plan_dag(
    setting: &Setting<'_>,
    analysis: DagAnalysis,
    asked: &Execution,
) -> Result<Plan, Refused> {
    if let Some(remark) = analysis.permissions.opaque.first().filter(|_| asked.dynamic == Dynamic::Refuse) {
        return Err(cannot_be_known(remark));
    }
    given(&asked.arguments, setting.bounds.argument_bytes)?;
    let (pause, single, direct) = match &asked.work {
        Asked::Dag { pause, .. } => (*pause, false, false),
        Asked::Tool { .. } => (Pause::None, true, false),
        Asked::Call(_) => (Pause::None, true, true),
        Asked::Code(_) | Asked::Capability(_) | Asked::Anything => {
            unreachable!("a document is planned")
        }
    };
    let opaque = remarks(&analysis.permissions.opaque);
    let nest = Nest::new(setting, Vec::new(), Vec::new());
    let (tasks, Nest { tools, programs, .. }) = tasks(setting, &analysis, nest, !opaque.is_empty())?;
    let work = Planned::Dag(DagPlan { tasks, pause, single, direct });
    let learn = match &asked.work {
        Asked::Tool { tool, defaults } => {
            let schema = &setting.snapshot.tool(tool)?.definition.input_schema;
            Learn::delegation(&tool.to_string(), defaults, schema)
        }
        Asked::Code(_) | Asked::Dag { .. } | Asked::Call(_) | Asked::Capability(_) | Asked::Anything => {
            Learn::new(&analysis.identity.identity, &analysis.parameters)
        }
    };
    let mut plan = Plan::new(
        asked.intent.clone(),
        asked.work.source(),
        Understood { identity: analysis.identity, structure: analysis.structure, work },
        asked.arguments.clone(),
        tools,
        setting.bounds,
        (seed()?, now_ms()),
    );
    plan.opaque = opaque;
    plan.nested = programs;
    let mut plan = finished(plan, learn, setting, asked);
    if let (Asked::Call(_), Some(question)) = (&asked.work, &mut plan.question) {
        show_as_written(question, &asked.arguments);
    }
    Ok(plan)
}

/// Shows the arguments of a direct call as they are sent: the structure has numbers as programs have them, and what is
/// allowed has to be what is called.
fn show_as_written(question: &mut Approval, arguments: &RawValue) {
    let sent = merged(&empty_object(), arguments);
    for call in &mut question.calls {
        if let Some(known) = known_arguments(sent.get()) {
            call.arguments = known;
        }
    }
}

fn finished(mut plan: Plan, learn: Learn, setting: &Setting<'_>, asked: &Execution) -> Plan {
    plan.by = asked.by;
    plan.session.clone_from(&asked.session);
    plan.learn = asked.learn.then(|| asked.capability.clone().map_or(learn, Learn::known));
    plan.question = before(&plan, |tool| setting.snapshot.description(&tool.id.to_string(), &tool.digest));
    plan
}

/// The tasks of a document as they are run, and what they call. In `nest` is what there is already; a task that says
/// of itself that it changes something has a handle of its own, for which a person is asked.
fn tasks<'s>(
    setting: &'s Setting<'s>,
    analysis: &DagAnalysis,
    mut nest: Nest<'s>,
    opaque: bool,
) -> Result<(Vec<DagTask>, Nest<'s>), Refused> {
    let most = setting.bounds.calls as usize;
    if analysis.dag.tasks.len() > most {
        let text =
            format!("the document has {} tasks and a run may make {most} calls", analysis.dag.tasks.len());
        return Err(Problem::new(Code::TooLarge, text).hint("raise `limits.calls` in pml.toml").into());
    }
    let line = |tool: &str| {
        let calls =
            |node: &&Node| matches!(&node.kind, NodeKind::Task { tool: called, .. } if called == tool);
        analysis.structure.nodes.iter().find(calls).map(|node| node.at.line)
    };
    let known = grantables(setting, &analysis.permissions.declared, line)?;
    for granted in known {
        nest.grant(granted);
    }
    if opaque {
        let others = all_others(setting, &nest.tools);
        nest.tools.extend(others);
    }
    let places: HashMap<&str, usize> =
        analysis.dag.tasks.iter().enumerate().map(|(index, task)| (task.id.as_str(), index)).collect();
    let mut planned = Vec::with_capacity(analysis.dag.tasks.len());
    for task in &analysis.dag.tasks {
        planned.push(DagTask {
            id: task.id.clone(),
            node: task.node,
            work: work(setting, task, &mut nest)?,
            given: task.arguments.clone(),
            after: task.depends_on.iter().filter_map(|id| places.get(id.as_str()).copied()).collect(),
            safe_to_fail: task.safe_to_fail,
            timeout_ms: task.timeout_ms,
            retries: task.retries,
            dropped: false,
        });
    }
    Ok((planned, nest))
}

fn work(
    setting: &Setting<'_>,
    task: &pml_analysis::dag::Task,
    nest: &mut Nest<'_>,
) -> Result<TaskWork, Refused> {
    let handle = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
    let asks = task.side_effects == Some(true);
    match &task.work {
        Work::Tool { tool } => {
            let tools = &mut nest.tools;
            let index = tools
                .iter()
                .position(|granted| granted.id.to_string() == *tool)
                .ok_or_else(|| Problem::new(Code::UnknownTool, format!("no tool is called `{tool}`")))?;
            let index = if asks { asking(index, tools) } else { index };
            Ok(TaskWork::Tool { handle: handle(index) })
        }
        Work::Code { code, .. } => {
            let catalogue = setting.learned.catalogue(code);
            let analysis = pml_analysis::analyse(code, &catalogue).map_err(|error| {
                Problem::new(Code::InvalidProgram, format!("task `{}`: {error}", task.id))
            })?;
            let nested = nest.called(&analysis.permissions.capabilities, |_| None)?;
            let tools = &mut nest.tools;
            // One whose calls are known sees no others, whatever those of the other tasks may be.
            let opaque = !analysis.permissions.opaque.is_empty();
            let sees = |index: &usize| {
                let id = &tools[*index].id;
                let is_first = tools[..*index].iter().all(|earlier| earlier.id != *id);
                is_first && (opaque || analysis.permissions.declared.contains(&id.to_string()))
            };
            let mut seen: Vec<usize> = (0..tools.len()).filter(sees).collect();
            if asks {
                seen.iter_mut().for_each(|index| *index = asking(*index, tools));
            }
            Ok(TaskWork::Code(Box::new(TaskCode {
                source: code.clone(),
                sees: Sees { tools: seen.into_iter().map(handle).collect(), nested },
                program: analysis.program,
                structure: analysis.structure,
                capability: None,
            })))
        }
        Work::Capability { name } => {
            let place = nest.called(&BTreeSet::from([name.clone()]), |_| None)?[0];
            let called = nest.programs[place as usize].clone();
            let mut sees = called.sees;
            if asks {
                for seen in &mut sees.tools {
                    *seen = handle(asking(*seen as usize, &mut nest.tools));
                }
            }
            Ok(TaskWork::Code(Box::new(TaskCode {
                source: called.source,
                program: called.program,
                structure: called.structure,
                sees,
                capability: Some(place),
            })))
        }
    }
}

/// The handle by which the tool at `index` is called where a person is asked first.
fn asking(index: usize, tools: &mut Vec<Granted>) -> usize {
    let is_it = |granted: &Granted| granted.id == tools[index].id && granted.asks.is_some();
    if let Some(known) = tools.iter().position(is_it) {
        return known;
    }
    let asks = Asks {
        scope: Scope::McpStandard.as_str().to_owned(),
        because: "the task says that it changes something".to_owned(),
    };
    tools.push(Granted { asks: Some(asks), ..tools[index].clone() });
    tools.len() - 1
}

/// A document of what has run and of what is asked for in place of the rest, so that both can be checked together.
pub(crate) fn with_what_has_run(standing: &Tasks, document: &str) -> Result<String, Problem> {
    #[derive(Deserialize)]
    struct Document<'d> {
        #[serde(borrow)]
        tasks: Vec<&'d RawValue>,
    }
    #[derive(Deserialize)]
    struct Named {
        id: String,
    }
    let new: Document<'_> = serde_json::from_str(document).map_err(|error| {
        Problem::new(Code::InvalidProgram, format!("`dagStructure` cannot be read: {error}"))
            .hint("write {\"tasks\": [{\"id\": …, \"tool\": …, \"arguments\": {…}}]}")
    })?;
    let ids: Vec<&str> = standing.tasks.iter().map(|task| task.id.as_str()).collect();
    let mut all: Vec<(&str, Box<RawValue>)> = standing
        .tasks
        .iter()
        .zip(&standing.has_run)
        .filter(|(_, has_run)| **has_run)
        .map(|(task, _)| (task.id.as_str(), written(task, &ids, standing)))
        .collect();
    let mut more = Vec::new();
    for task in new.tasks {
        let id = serde_json::from_str::<Named>(task.get()).map(|named| named.id).unwrap_or_default();
        match all.iter_mut().find(|(ran, _)| *ran == id) {
            Some((_, ran)) => *ran = under(ran, task),
            None => more.push(task.to_owned()),
        }
    }
    let all: Vec<Box<RawValue>> = all.into_iter().map(|(_, task)| task).chain(more).collect();
    Ok(raw(&json!({ "tasks": all })).get().to_owned())
}

/// A task that has run, with what is written of it now.
fn under(ran: &RawValue, now: &RawValue) -> Box<RawValue> {
    let (Ok(mut both), Ok(now)) = (Fields::parse(ran.get()), Fields::parse(now.get())) else {
        return now.to_owned();
    };
    if ["tool", "code", "capability"].iter().any(|work| now.get(work).is_some()) {
        both.remove("tool");
        both.remove("code");
        both.remove("capability");
    }
    for (key, value) in now.iter() {
        let key = match key {
            "args" => "arguments",
            "depends_on" => "dependsOn",
            "safe_to_fail" => "safeToFail",
            other => other,
        };
        both.set(key.to_owned(), value.to_owned());
    }
    both.to_raw()
}

/// A task as a document writes it.
fn written(task: &DagTask, ids: &[&str], Tasks { tools, nested, .. }: &Tasks) -> Box<RawValue> {
    let after: Vec<&str> = task.after.iter().filter_map(|place| ids.get(*place).copied()).collect();
    let mut text = json!({
        "id": task.id, "arguments": task.given, "dependsOn": after, "safeToFail": task.safe_to_fail, "retries": task.retries,
    });
    match &task.work {
        TaskWork::Tool { handle } => {
            text["tool"] =
                tools.get(*handle as usize).map(|tool| tool.id.to_string()).unwrap_or_default().into();
        }
        TaskWork::Code(code) => match code.capability.and_then(|place| nested.get(place as usize)) {
            Some(called) => text["capability"] = called.name.clone().into(),
            None => text["code"] = code.source.clone().into(),
        },
    }
    raw(&text)
}

/// Whether a task that has run is still the one that ran.
fn unchanged(ran: &DagTask, now: &DagTask, tools: &[Granted]) -> Result<(), Problem> {
    let tool = |handle: u32| tools.get(handle as usize).map(|tool| &tool.id);
    let same_work = match (&ran.work, &now.work) {
        (TaskWork::Tool { handle: ran }, TaskWork::Tool { handle: now }) => tool(*ran) == tool(*now),
        (TaskWork::Code(ran), TaskWork::Code(now)) => ran.source == now.source,
        (TaskWork::Tool { .. }, TaskWork::Code(_)) | (TaskWork::Code(_), TaskWork::Tool { .. }) => false,
    };
    let given = |task: &DagTask| serde_json::to_value(&task.given).unwrap_or_default();
    if same_work && given(ran) == given(now) {
        return Ok(());
    }
    Err(Problem::new(Code::InvalidProgram, format!("task `{}` has run and cannot be changed", ran.id))
        .hint("give the new task another id, or leave it out: what has run stays"))
}

/// The tasks from now on. What has run keeps its place; what has not and is not asked for any more is dropped.
pub(crate) fn replan(
    setting: &Setting<'_>,
    analysis: &DagAnalysis,
    standing: Tasks,
    dynamic: Dynamic,
) -> Result<Replan, Refused> {
    let opaque = &analysis.permissions.opaque;
    if let Some(remark) = opaque.first().filter(|_| dynamic == Dynamic::Refuse) {
        return Err(cannot_be_known(remark));
    }
    let nest = Nest::new(setting, standing.tools, standing.nested);
    let (planned, Nest { tools, programs: nested, .. }) = tasks(setting, analysis, nest, !opaque.is_empty())?;
    let mut all = standing.tasks;
    let mut places: HashMap<String, usize> = HashMap::new();
    for (place, task) in all.iter_mut().enumerate() {
        if standing.has_run[place] {
            places.insert(task.id.clone(), place);
            // Whoever plans anew knows that it failed.
            task.safe_to_fail |= standing.failed[place];
        } else {
            task.dropped = true;
            task.after.clear();
        }
    }
    for task in &planned {
        if let Some(place) = places.get(&task.id) {
            unchanged(&all[*place], task, &tools)?;
        }
    }
    let names: Vec<String> = planned.iter().map(|task| task.id.clone()).collect();
    let new: Vec<DagTask> = planned.into_iter().filter(|task| !places.contains_key(&task.id)).collect();
    let first = all.len();
    for mut task in new {
        let place = all.len();
        places.insert(task.id.clone(), place);
        task.node.number = u32::try_from(place + 1).unwrap_or(u32::MAX);
        all.push(task);
    }
    for task in &mut all[first..] {
        task.after = task.after.iter().filter_map(|place| places.get(names.get(*place)?).copied()).collect();
    }
    Ok(Replan { tasks: all, tools, nested, code_hash: Some(analysis.identity.code_hash.clone()), by: None })
}

/// What a tool is called with: its defaults under the arguments that are given.
fn merged(defaults: &RawValue, arguments: &RawValue) -> Box<RawValue> {
    let mut merged = Fields::parse(defaults.get()).unwrap_or_default();
    let given = Fields::parse(arguments.get()).unwrap_or_default();
    given.iter().for_each(|(key, value)| merged.set(key.to_owned(), value.to_owned()));
    merged.to_raw()
}

/// The document for one call of a tool: its defaults under what the run is given.
pub(crate) fn delegation(
    tool: &ToolId,
    defaults: &RawValue,
    arguments: &RawValue,
) -> Result<String, Problem> {
    let object = |what: &str, json: &'_ RawValue| {
        serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(json.get()).map_err(|_| {
            Problem::new(Code::InvalidArguments, format!("{what} are no JSON object"))
                .hint("write {\"name\": value, …}")
        })
    };
    object("the default arguments", defaults)?;
    object("the arguments", arguments)?;
    // Put together as text: what is called with keeps its numbers as they were written.
    let (mut literal, mut task, mut document) = (Fields::default(), Fields::default(), Fields::default());
    literal.set("$literal", merged(defaults, arguments));
    task.set("id", raw(&"call"));
    task.set("tool", raw(&tool.to_string()));
    task.set("arguments", literal.to_raw());
    document.set("tasks", raw(&[task.to_raw()]));
    Ok(document.to_raw().get().to_owned())
}

fn cannot_be_known(remark: &Remark) -> Refused {
    let text = format!("the program may call tools that cannot be known before it runs: {}", remark.what);
    let problem = Problem::new(Code::Denied, text).hint("write each call out, as `mcp.server.tool(…)`");
    Refused { line: Some(remark.at.line), ..Refused::from(problem) }
}

fn remarks(opaque: &[Remark]) -> Vec<String> {
    opaque.iter().map(|remark| format!("line {}: {}", remark.at.line, remark.what)).collect()
}

fn seed() -> Result<u64, Problem> {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|error| {
        Problem::new(Code::Sandbox, format!("the system gives no random numbers: {error}"))
    })?;
    Ok(u64::from_le_bytes(seed))
}

/// What a run sees of the tools that are `declared`, if the asker sees them and no rule forbids one. `line` is where the
/// first call of a tool stands.
fn grantables(
    setting: &Setting<'_>,
    declared: &BTreeSet<String>,
    line: impl Fn(&str) -> Option<u32>,
) -> Result<Vec<Granted>, Refused> {
    let mut granted = Vec::with_capacity(declared.len());
    let mut refused = Vec::new();
    for name in declared {
        let id = ToolId::parse(name).map_err(|error| Problem::new(Code::UnknownTool, error.to_string()))?;
        let tool = setting.snapshot.tool(&id)?;
        if !(setting.visible)(&id) {
            let problem = Problem::new(Code::Denied, format!("tool `{id}` is not exposed to this client"));
            return Err(problem.hint("add it to `expose` in pml.toml").into());
        }
        let verdict = setting.policy.of(&id, &tool.definition.annotations);
        refused.extend(verdict.refusal(&id));
        granted.push(grantable(tool, &verdict));
    }
    let Some(first) = refused.first() else { return Ok(granted) };
    let problem = Problem::new(Code::Denied, first.to_string()).hint(Refusal::HINT);
    let line = line(&first.tool.to_string());
    Err(Refused { problem, line, all: refused.iter().map(ToString::to_string).collect() })
}

/// What a run sees of a tool.
fn grantable(tool: &catalogue::Tool, verdict: &Verdict) -> Granted {
    Granted {
        id: tool.id.clone(),
        names: names(tool),
        digest: tool.definition.digest.clone(),
        idempotent: verdict.idempotent,
        asks: (verdict.mode == Mode::Ask)
            .then(|| Asks { scope: verdict.scope.as_str().to_owned(), because: verdict.because.clone() }),
    }
}

/// What a program whose calls cannot be known may come to call: whatever it sees and no rule forbids.
fn all_others(setting: &Setting<'_>, declared: &[Granted]) -> Vec<Granted> {
    let unknown = |tool: &&catalogue::Tool| declared.iter().all(|known| known.id != tool.id);
    let others = setting.snapshot.tools.iter().filter(|tool| (setting.visible)(&tool.id)).filter(unknown);
    others
        .filter_map(|tool| {
            let verdict = setting.policy.of(&tool.id, &tool.definition.annotations);
            verdict.refusal(&tool.id).is_none().then(|| grantable(tool, &verdict))
        })
        .collect()
}

fn names(tool: &catalogue::Tool) -> Vec<String> {
    let mut names = vec![tool.id.tool.clone()];
    if tool.identifier != tool.id.tool {
        names.push(tool.identifier.clone());
    }
    names
}

fn first_line(analysis: &Analysis, tool: &str) -> Option<u32> {
    let sites = analysis.program.sites.iter().filter(|site| site.tool.as_deref() == Some(tool));
    sites.map(|site| site.at.line).min()
}

/// Whether what the program is given can be given to it. What it makes of it is its own affair: it runs as it was submitted.
fn given(arguments: &RawValue, most: u64) -> Result<(), Problem> {
    let size = arguments.get().len();
    if size as u64 > most {
        let text = format!("the arguments of the program have {size} bytes and may have {most}");
        return Err(
            Problem::new(Code::TooLarge, text).hint("give less, or raise `limits.arguments` in pml.toml")
        );
    }
    Fields::parse(arguments.get()).map_err(|_| {
        Problem::new(Code::InvalidArguments, "the arguments of the program are not a JSON object")
            .hint("give them as `context`, such as {\"path\": \"notes.txt\"}")
    })?;
    Ok(())
}
