//! Turns a request into a plan.
//!
//! `pml-analysis` does the analysis; this module gives it what it has to know about the tools.

mod nested;
pub(crate) mod session;
mod unfold;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use pml_analysis::dag::DocumentWork;
use pml_analysis::render::ComplaintReport;
use pml_analysis::{Analysis, AnalysisCatalogue, Complaint, DagAnalysis, Remark, Severity};
use pml_mcp::Caller;
use pml_model::json::{Fields, empty_object, raw};
use pml_model::question::{Answerer, ApprovalQuestion};
use pml_model::structure::{Node, NodeKind};
use pml_model::{CapabilityId, KeyId, Principal, ToolId};
use pml_store::Idempotency;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::approve::question::{known_arguments, question_before_start};
use crate::approve::{CallPermission, Policy, PolicyRefusal, ToolVerdict};
use crate::catalogue::{self, ToolSnapshot};
use crate::clock::now_ms;
use crate::config::{DynamicPolicy, ToolScope};
use crate::execute::DagTasks;
use crate::knowledge::IndexedCapability;
use crate::plan::LearningPlan;
use crate::plan::{
    AnalysedSource, ApprovalReason, Bounds, DagPlan, DagTask, Pause, Plan, PlannedTool, PlannedWork,
    ProgramScope, Replan, TaskCode, TaskWork,
};
use crate::problem::{ErrorCode, Problem};
use nested::PlanResources;

/// A request to run something.
#[derive(Clone)]
pub struct RunRequest {
    /// The principal that the run acts for.
    pub principal: Principal,
    /// The key of the client, if it has one.
    pub key: Option<KeyId>,
    /// The session of the client.
    pub session: String,
    /// The intent, in the client's words.
    pub intent: String,
    /// The work to run.
    pub work: Work,
    /// Its `args`, a JSON object.
    pub arguments: Box<RawValue>,
    /// A timeout shorter than the configured one.
    pub timeout: Option<Duration>,
    /// The receiver of progress and log messages.
    pub caller: Caller,
    /// The idempotency key that makes a repeated request the same run.
    pub idempotency: Option<Idempotency>,
    /// How long the run may queue.
    pub max_wait: Duration,
    /// Whose answer counts if the run needs approval.
    pub answerer: Answerer,
    /// How to treat a program whose calls cannot be known beforehand.
    pub dynamic: DynamicPolicy,
    /// Whether to learn from the run.
    pub learn: bool,
    /// The capability that the run executes, if it executes one.
    pub capability: Option<CapabilityId>,
    /// Whether a cached result may be returned instead of running.
    pub use_cache: bool,
    /// Whether reads may be made before the program asks for them.
    pub speculate: bool,
}

/// The work of a request.
#[derive(Debug, Clone)]
pub enum Work {
    /// A program, in TypeScript.
    Code(String),
    /// A DAG document, in JSON.
    Dag {
        /// The text of the document.
        document: String,
        /// When the run waits for an answer between layers.
        pause: Pause,
    },
    /// One call of a tool.
    Tool {
        /// The tool to call.
        tool: ToolId,
        /// Default arguments, a JSON object; the arguments of the run override them.
        defaults: Box<RawValue>,
    },
    /// A direct call of a tool by a client: the tool's result is the result of the run, unchanged.
    Call(ToolId),
    /// A capability, by name or id.
    Capability(String),
    /// Any capability or tools that serve the intent.
    Intent,
}

impl Work {
    /// The source text of the request.
    fn source(&self) -> String {
        match self {
            Work::Code(code) => code.clone(),
            Work::Dag { document, .. } => document.clone(),
            Work::Tool { tool, defaults } => {
                raw(&json!({ "tool": tool, "arguments": defaults })).get().to_owned()
            }
            Work::Call(tool) => raw(&json!({ "tool": tool })).get().to_owned(),
            Work::Capability(name) => name.clone(),
            Work::Intent => String::new(),
        }
    }
}

/// The refusal to run a program.
#[derive(Debug)]
pub struct PlanRefusal {
    /// The first reason, as an error.
    pub problem: Problem,
    /// The source line of that reason.
    pub line: Option<u32>,
    /// All reasons, as text for people.
    pub reasons: Vec<String>,
}

impl From<Problem> for PlanRefusal {
    fn from(problem: Problem) -> PlanRefusal {
        PlanRefusal { reasons: vec![problem.to_string()], problem, line: None }
    }
}

/// Refuses a program with mistakes: a program that would fail is not run.
pub(crate) fn refuse_mistakes(complaints: &[Complaint]) -> Result<(), PlanRefusal> {
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
        pml_analysis::ComplaintCode::HeldBack => ErrorCode::Quarantined,
        pml_analysis::ComplaintCode::ServerStarting => ErrorCode::ServerStarting,
        pml_analysis::ComplaintCode::ServerUnavailable => ErrorCode::ServerDown,
        _ => ErrorCode::InvalidProgram,
    };
    let mut problem = Problem::new(code, first.message.clone());
    problem.hint.clone_from(&first.hint);
    Err(PlanRefusal { problem, line: Some(first.at.line), reasons: all })
}

/// The refusal of a text that does not parse.
pub(crate) fn refuse_unparsed(report: &ComplaintReport) -> PlanRefusal {
    let mut problem = Problem::new(ErrorCode::InvalidProgram, report.message.clone());
    problem.hint.clone_from(&report.hint);
    PlanRefusal { reasons: vec![problem.to_string()], problem, line: report.at.map(|at| at.line) }
}

/// The context of planning: the tools, the policy, and what the caller may see.
pub(crate) struct PlanningContext<'a> {
    pub(crate) snapshot: &'a ToolSnapshot,
    pub(crate) policy: &'a Policy,
    pub(crate) bounds: Bounds,
    pub(crate) visible: &'a (dyn Fn(&ToolId) -> bool + Sync),
    pub(crate) capabilities: &'a dyn CapabilityLookup,
}

/// The learned capabilities, as planning needs them. `owner` is whose capability calls them, if one does.
pub(crate) trait CapabilityLookup: Sync {
    /// The capability with that name, whether or not it is usable.
    fn find_by_name(&self, owner: Option<&Principal>, name: &str) -> Option<Arc<IndexedCapability>>;

    /// The current tools, and the capabilities that `source` may name.
    fn catalogue_for(&self, owner: Option<&Principal>, source: &str) -> Arc<AnalysisCatalogue>;
}

/// Plans a program if the policy permits it: every tool it can call must be permitted, or a person must be able to
/// approve it. The person is asked once, before anything runs, about all calls known by then.
pub(crate) fn plan(
    setting: &PlanningContext<'_>,
    analysis: Analysis,
    asked: &RunRequest,
) -> Result<Plan, PlanRefusal> {
    let opaque = &analysis.permissions.opaque;
    if let Some(remark) = opaque.first().filter(|_| asked.dynamic == DynamicPolicy::Refuse) {
        return Err(cannot_be_known(remark));
    }
    given(&asked.arguments, setting.bounds.argument_bytes)?;
    let first = |tool: &str| first_line(&analysis, tool);
    let mut granted = grant_declared_tools(setting, &analysis.permissions.declared, first)?;
    let opaque = remarks(opaque);
    if !opaque.is_empty() {
        granted.extend(all_others(setting, &granted));
    }
    let own = granted.len();
    let mut nest = PlanResources::new(setting, granted, Vec::new());
    let called = nest.add_called(&analysis.permissions.capabilities, |name| {
        capability_line(&analysis.structure.nodes, name)
    })?;
    let PlanResources { tools: granted, programs, .. } = nest;
    let work = PlannedWork::Code(analysis.program);
    let learn = LearningPlan::new(&analysis.identity.identity, &analysis.parameters);
    let mut plan = Plan::new(
        asked.intent.clone(),
        asked.work.source(),
        AnalysedSource { identity: analysis.identity, structure: analysis.structure, work },
        asked.arguments_for(&learn.parameters),
        granted,
        setting.bounds,
        (seed()?, now_ms()),
    );
    plan.opaque = opaque;
    if !programs.is_empty() {
        plan.sees = Some(ProgramScope { tools: (0..).take(own).collect(), nested: called });
        plan.nested = programs;
    }
    Ok(finished(plan, learn, setting, asked))
}

/// The source line of the first call of a capability.
fn capability_line(nodes: &[Node], name: &str) -> Option<u32> {
    let calls =
        |node: &&Node| matches!(&node.kind, NodeKind::Capability { capability, .. } if capability == name);
    nodes.iter().filter(calls).map(|node| node.at.line).min()
}

/// Plans an analysed DAG document, like `plan`.
pub(crate) fn plan_dag(
    setting: &PlanningContext<'_>,
    analysis: DagAnalysis,
    asked: &RunRequest,
) -> Result<Plan, PlanRefusal> {
    if let Some(remark) =
        analysis.permissions.opaque.first().filter(|_| asked.dynamic == DynamicPolicy::Refuse)
    {
        return Err(cannot_be_known(remark));
    }
    given(&asked.arguments, setting.bounds.argument_bytes)?;
    let (pause, single, direct) = match &asked.work {
        Work::Dag { pause, .. } => (*pause, false, false),
        Work::Tool { .. } => (Pause::None, true, false),
        Work::Call(_) => (Pause::None, true, true),
        Work::Code(_) | Work::Capability(_) | Work::Intent => {
            unreachable!("a document is planned")
        }
    };
    let opaque = remarks(&analysis.permissions.opaque);
    let nest = PlanResources::new(setting, Vec::new(), Vec::new());
    let (tasks, PlanResources { tools, programs, .. }) = tasks(setting, &analysis, nest, !opaque.is_empty())?;
    let work = PlannedWork::Dag(DagPlan { tasks, pause, single, direct });
    let learn = match &asked.work {
        Work::Tool { tool, defaults } => {
            let schema = &setting.snapshot.tool(tool)?.definition.input_schema;
            LearningPlan::of_tool_call(&tool.to_string(), defaults, schema)
        }
        Work::Code(_) | Work::Dag { .. } | Work::Call(_) | Work::Capability(_) | Work::Intent => {
            LearningPlan::new(&analysis.identity.identity, &analysis.parameters)
        }
    };
    let mut plan = Plan::new(
        asked.intent.clone(),
        asked.work.source(),
        AnalysedSource { identity: analysis.identity, structure: analysis.structure, work },
        asked.arguments_for(&learn.parameters),
        tools,
        setting.bounds,
        (seed()?, now_ms()),
    );
    plan.opaque = opaque;
    plan.nested = programs;
    let mut plan = finished(plan, learn, setting, asked);
    if let (Work::Call(_), Some(question)) = (&asked.work, &mut plan.question) {
        show_as_written(question, &asked.arguments);
    }
    Ok(plan)
}

/// Shows the arguments of a direct call exactly as they are sent. The structure holds numbers as JavaScript represents
/// them, and the approved arguments must be the ones of the call.
fn show_as_written(question: &mut ApprovalQuestion, arguments: &RawValue) {
    let sent = merged(&empty_object(), arguments);
    for call in &mut question.calls {
        if let Some(known) = known_arguments(sent.get()) {
            call.arguments = known;
        }
    }
}

fn finished(mut plan: Plan, learn: LearningPlan, setting: &PlanningContext<'_>, asked: &RunRequest) -> Plan {
    plan.by = asked.answerer;
    plan.session.clone_from(&asked.session);
    plan.learn = asked.learn.then(|| asked.capability.clone().map_or(learn, LearningPlan::of_capability));
    plan.question =
        question_before_start(&plan, |tool| setting.snapshot.description(&tool.id.to_string(), &tool.digest));
    plan
}

/// The executable tasks of a document, and what they call. `nest` holds what the plan contains already. A tool gets a
/// second handle, which needs approval, for tasks that declare that they change something.
fn tasks<'s>(
    setting: &'s PlanningContext<'s>,
    analysis: &DagAnalysis,
    mut nest: PlanResources<'s>,
    opaque: bool,
) -> Result<(Vec<DagTask>, PlanResources<'s>), PlanRefusal> {
    let most = setting.bounds.calls as usize;
    if analysis.dag.tasks.len() > most {
        let text =
            format!("the document has {} tasks and a run may make {most} calls", analysis.dag.tasks.len());
        return Err(Problem::new(ErrorCode::TooLarge, text).hint("raise `limits.calls` in pml.toml").into());
    }
    let line = |tool: &str| {
        let calls =
            |node: &&Node| matches!(&node.kind, NodeKind::Task { tool: called, .. } if called == tool);
        analysis.structure.nodes.iter().find(calls).map(|node| node.at.line)
    };
    let known = grant_declared_tools(setting, &analysis.permissions.declared, line)?;
    for granted in known {
        nest.add_tool(granted);
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
    setting: &PlanningContext<'_>,
    task: &pml_analysis::dag::DocumentTask,
    nest: &mut PlanResources<'_>,
) -> Result<TaskWork, PlanRefusal> {
    let handle = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
    let asks = task.side_effects == Some(true);
    match &task.work {
        DocumentWork::Tool { tool } => {
            let tools = &mut nest.tools;
            let index = tools
                .iter()
                .position(|granted| granted.id.to_string() == *tool)
                .ok_or_else(|| Problem::new(ErrorCode::UnknownTool, format!("no tool is called `{tool}`")))?;
            let index = if asks { approval_handle(index, tools) } else { index };
            Ok(TaskWork::Tool { handle: handle(index) })
        }
        DocumentWork::Code { code, .. } => {
            let catalogue = setting.capabilities.catalogue_for(None, code);
            let analysis = pml_analysis::analyse(code, &catalogue).map_err(|error| {
                Problem::new(ErrorCode::InvalidProgram, format!("task `{}`: {error}", task.id))
            })?;
            let nested = nest.add_called(&analysis.permissions.capabilities, |_| None)?;
            let tools = &mut nest.tools;
            // A task whose calls are known sees no other tools, even if another task is opaque.
            let opaque = !analysis.permissions.opaque.is_empty();
            let sees = |index: &usize| {
                let id = &tools[*index].id;
                let is_first = tools[..*index].iter().all(|earlier| earlier.id != *id);
                is_first && (opaque || analysis.permissions.declared.contains(&id.to_string()))
            };
            let mut seen: Vec<usize> = (0..tools.len()).filter(sees).collect();
            if asks {
                seen.iter_mut().for_each(|index| *index = approval_handle(*index, tools));
            }
            Ok(TaskWork::Code(Box::new(TaskCode {
                source: code.clone(),
                sees: ProgramScope { tools: seen.into_iter().map(handle).collect(), nested },
                program: analysis.program,
                structure: analysis.structure,
                capability: None,
            })))
        }
        DocumentWork::Capability { name } => {
            let place = nest.add_called(&BTreeSet::from([name.clone()]), |_| None)?[0];
            let called = nest.programs[place as usize].clone();
            let mut sees = called.sees;
            if asks {
                for seen in &mut sees.tools {
                    *seen = handle(approval_handle(*seen as usize, &mut nest.tools));
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

/// The handle of the tool at `index` for calls that need approval first.
fn approval_handle(index: usize, tools: &mut Vec<PlannedTool>) -> usize {
    let is_it = |granted: &PlannedTool| granted.id == tools[index].id && granted.asks.is_some();
    if let Some(known) = tools.iter().position(is_it) {
        return known;
    }
    let asks = ApprovalReason {
        scope: ToolScope::McpStandard.as_str().to_owned(),
        because: "the task says that it changes something".to_owned(),
    };
    tools.push(PlannedTool { asks: Some(asks), ..tools[index].clone() });
    tools.len() - 1
}

/// Merges the finished tasks with the document that replaces the rest, so that both are checked together.
pub(crate) fn merge_with_finished_tasks(standing: &DagTasks, document: &str) -> Result<String, Problem> {
    #[derive(Deserialize)]
    struct ReplanDocument<'d> {
        #[serde(borrow)]
        tasks: Vec<&'d RawValue>,
    }
    #[derive(Deserialize)]
    struct ReplanTask {
        id: String,
    }
    let new: ReplanDocument<'_> = serde_json::from_str(document).map_err(|error| {
        Problem::new(ErrorCode::InvalidProgram, format!("`dagStructure` cannot be read: {error}"))
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
        let id = serde_json::from_str::<ReplanTask>(task.get()).map(|named| named.id).unwrap_or_default();
        match all.iter_mut().find(|(ran, _)| *ran == id) {
            Some((_, ran)) => *ran = under(ran, task),
            None => more.push(task.to_owned()),
        }
    }
    let all: Vec<Box<RawValue>> = all.into_iter().map(|(_, task)| task).chain(more).collect();
    Ok(raw(&json!({ "tasks": all })).get().to_owned())
}

/// A finished task, overridden with what the new document says about it.
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

/// A task in the form of a DAG document.
fn written(task: &DagTask, ids: &[&str], DagTasks { tools, nested, .. }: &DagTasks) -> Box<RawValue> {
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

/// Checks that a finished task is unchanged in the new document.
fn unchanged(ran: &DagTask, now: &DagTask, tools: &[PlannedTool]) -> Result<(), Problem> {
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
    Err(Problem::new(ErrorCode::InvalidProgram, format!("task `{}` has run and cannot be changed", ran.id))
        .hint("give the new task another id, or leave it out: what has run stays"))
}

/// The tasks after a replan. Finished tasks keep their indexes; tasks that have not run and are no longer requested are
/// dropped.
pub(crate) fn replan(
    setting: &PlanningContext<'_>,
    analysis: &DagAnalysis,
    standing: DagTasks,
    dynamic: DynamicPolicy,
) -> Result<Replan, PlanRefusal> {
    let opaque = &analysis.permissions.opaque;
    if let Some(remark) = opaque.first().filter(|_| dynamic == DynamicPolicy::Refuse) {
        return Err(cannot_be_known(remark));
    }
    let nest = PlanResources::new(setting, standing.tools, standing.nested);
    let (planned, PlanResources { tools, programs: nested, .. }) =
        tasks(setting, analysis, nest, !opaque.is_empty())?;
    let mut all = standing.tasks;
    let mut places: HashMap<String, usize> = HashMap::new();
    for (place, task) in all.iter_mut().enumerate() {
        if standing.has_run[place] {
            places.insert(task.id.clone(), place);
            // The author of the replan knows that the task failed, so its dependents may run.
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

/// The arguments of a tool call: `arguments` over `defaults`.
fn merged(defaults: &RawValue, arguments: &RawValue) -> Box<RawValue> {
    let mut merged = Fields::parse(defaults.get()).unwrap_or_default();
    let given = Fields::parse(arguments.get()).unwrap_or_default();
    given.iter().for_each(|(key, value)| merged.set(key.to_owned(), value.to_owned()));
    merged.to_raw()
}

/// The DAG document for one call of a tool: the run's arguments over the defaults.
pub(crate) fn tool_call_document(
    tool: &ToolId,
    defaults: &RawValue,
    arguments: &RawValue,
) -> Result<String, Problem> {
    let object = |what: &str, json: &'_ RawValue| {
        serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(json.get()).map_err(|_| {
            Problem::new(ErrorCode::InvalidArguments, format!("{what} are no JSON object"))
                .hint("write {\"name\": value, …}")
        })
    };
    object("the default arguments", defaults)?;
    object("the arguments", arguments)?;
    // Assembled as text, so that numbers in the arguments stay as they were written.
    let (mut literal, mut task, mut document) = (Fields::default(), Fields::default(), Fields::default());
    literal.set("$literal", merged(defaults, arguments));
    task.set("id", raw(&"call"));
    task.set("tool", raw(&tool.to_string()));
    task.set("arguments", literal.to_raw());
    document.set("tasks", raw(&[task.to_raw()]));
    Ok(document.to_raw().get().to_owned())
}

fn cannot_be_known(remark: &Remark) -> PlanRefusal {
    let text = format!("the program may call tools that cannot be known before it runs: {}", remark.what);
    let problem = Problem::new(ErrorCode::Denied, text).hint("write each call out, as `mcp.server.tool(…)`");
    PlanRefusal { line: Some(remark.at.line), ..PlanRefusal::from(problem) }
}

fn remarks(opaque: &[Remark]) -> Vec<String> {
    opaque.iter().map(|remark| format!("line {}: {}", remark.at.line, remark.what)).collect()
}

fn seed() -> Result<u64, Problem> {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|error| {
        Problem::new(ErrorCode::Sandbox, format!("the system gives no random numbers: {error}"))
    })?;
    Ok(u64::from_le_bytes(seed))
}

/// Grants the `declared` tools, if the caller may see them and no rule denies one. `line` gives the line of the first
/// call of a tool.
fn grant_declared_tools(
    setting: &PlanningContext<'_>,
    declared: &BTreeSet<String>,
    line: impl Fn(&str) -> Option<u32>,
) -> Result<Vec<PlannedTool>, PlanRefusal> {
    let mut granted = Vec::with_capacity(declared.len());
    let mut refused = Vec::new();
    for name in declared {
        let id =
            ToolId::parse(name).map_err(|error| Problem::new(ErrorCode::UnknownTool, error.to_string()))?;
        let tool = setting.snapshot.tool(&id)?;
        if !(setting.visible)(&id) {
            let problem =
                Problem::new(ErrorCode::Denied, format!("tool `{id}` is not exposed to this client"));
            return Err(problem.hint("add it to `expose` in pml.toml").into());
        }
        let verdict = setting.policy.verdict(&id, &tool.definition.annotations);
        refused.extend(verdict.refusal(&id));
        granted.push(grantable(tool, &verdict));
    }
    let Some(first) = refused.first() else { return Ok(granted) };
    let problem = Problem::new(ErrorCode::Denied, first.to_string()).hint(PolicyRefusal::HINT);
    let line = line(&first.tool.to_string());
    Err(PlanRefusal { problem, line, reasons: refused.iter().map(ToString::to_string).collect() })
}

/// The plan entry for a tool.
fn grantable(tool: &catalogue::CatalogueTool, verdict: &ToolVerdict) -> PlannedTool {
    PlannedTool {
        id: tool.id.clone(),
        names: names(tool),
        digest: tool.definition.digest.clone(),
        idempotent: verdict.idempotent,
        asks: (verdict.mode == CallPermission::Ask).then(|| ApprovalReason {
            scope: verdict.scope.as_str().to_owned(),
            because: verdict.because.clone(),
        }),
    }
}

/// The tools that an opaque program may call: everything it sees that no rule denies.
fn all_others(setting: &PlanningContext<'_>, declared: &[PlannedTool]) -> Vec<PlannedTool> {
    let unknown = |tool: &&catalogue::CatalogueTool| declared.iter().all(|known| known.id != tool.id);
    let others = setting.snapshot.tools.iter().filter(|tool| (setting.visible)(&tool.id)).filter(unknown);
    others
        .filter_map(|tool| {
            let verdict = setting.policy.verdict(&tool.id, &tool.definition.annotations);
            verdict.refusal(&tool.id).is_none().then(|| grantable(tool, &verdict))
        })
        .collect()
}

fn names(tool: &catalogue::CatalogueTool) -> Vec<String> {
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

/// Checks the size and form of the program's arguments. Their contents are not checked: the program runs as it was
/// submitted.
fn given(arguments: &RawValue, most: u64) -> Result<(), Problem> {
    let size = arguments.get().len();
    if size as u64 > most {
        let text = format!("the arguments of the program have {size} bytes and may have {most}");
        return Err(Problem::new(ErrorCode::TooLarge, text)
            .hint("give less, or raise `limits.arguments` in pml.toml"));
    }
    Fields::parse(arguments.get()).map_err(|_| {
        Problem::new(ErrorCode::InvalidArguments, "the arguments of the program are not a JSON object")
            .hint("give them as `context`, such as {\"path\": \"notes.txt\"}")
    })?;
    Ok(())
}
