//! Translates a DAG document into a program, so that programs can call capabilities that are documents.
//!
//! Every task becomes an asynchronous function that awaits the tasks it depends on, so independent tasks run
//! concurrently. Results, the effect of failures on other tasks and the final result are the same as in a run of the
//! document. The calls keep the nodes of the document, because each task stands on lines of its own.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

use pml_analysis::InstrumentedProgram;
use pml_analysis::dag::{
    DagDocument, DocumentTask, DocumentWork, Reference, ReferenceRoot, TaskArguments, TextPart,
};
use pml_model::ToolId;
use pml_model::json::raw;
use pml_model::structure::{NodeId, PathStep, Structure};
use serde_json::Value;

use crate::problem::{ErrorCode, Problem};

/// The helper functions of all tasks. `passes` says whether the dependents of a task may start.
const PRELUDE: &str = r#"const $at = (value: any, path: string[], reference: string): any => {
  for (const step of path) {
    if (step === "length" && (typeof value === "string" || Array.isArray(value))) { value = value.length; continue; }
    if (value === null || typeof value !== "object" || !Object.hasOwn(value, step)) {
      throw Object.assign(new Error("`" + reference + "` does not exist"), { code: "UNRESOLVED" });
    }
    value = value[step];
  }
  return value;
};
const $said = (value: any): string => {
  if (Array.isArray(value)) return value.map((item) => (item === null ? "" : $said(item))).join(",");
  return value !== null && typeof value === "object" ? JSON.stringify(value) : String(value);
};
const $copy = (value: any): any => (value === undefined ? null : JSON.parse(JSON.stringify(value)));
const $failed = (error: any, safe: boolean): any => {
  if (!safe) return { wrong: error, passes: false };
  return { value: { error: { code: error?.code ?? "PROGRAM_ERROR", message: error?.message ?? String(error) } }, passes: true };
};
const $told = (error: any, task: string, skipped: number): Error => {
  const told = error instanceof Error ? error : new Error(String(error));
  const rest = skipped === 1 ? "; 1 task that waits for it was not run" : "; " + skipped + " tasks that wait for it were not run";
  told.message = "task `" + task + "` failed: " + told.message + (skipped === 0 ? "" : rest);
  return told;
};
"#;

/// The program made from a document.
pub(super) struct UnfoldedDag {
    pub(super) source: String,
    /// The first line of each task, with its node.
    lines: Vec<(u32, NodeId)>,
    /// The id of each task, by its node.
    pub(super) tasks: Vec<(NodeId, String)>,
    /// The tools that need approval because a task declares that it changes something.
    pub(super) asks: ToolsNeedingApproval,
}

/// The set of tools that need approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ToolsNeedingApproval {
    These(BTreeSet<String>),
    All,
}

impl ToolsNeedingApproval {
    /// Whether the set contains the tool.
    pub(super) fn includes(&self, tool: &ToolId) -> bool {
        match self {
            ToolsNeedingApproval::These(tools) => tools.contains(&tool.to_string()),
            ToolsNeedingApproval::All => true,
        }
    }
}

impl UnfoldedDag {
    /// Makes the program report the nodes of the document and their positions in it.
    pub(super) fn name_sites(&self, program: &mut InstrumentedProgram, document: &Structure) {
        // Decisions in the code around the tasks are unknown to the document.
        program.sites.retain(|site| site.tool.is_some());
        for site in &mut program.sites {
            let begun = self.lines.iter().rev().find(|(line, _)| *line <= site.at.line);
            if let Some(node) = begun.and_then(|(_, node)| document.node(*node)) {
                (site.node, site.at) = (node.id, node.at);
            }
        }
    }
}

/// Translates a document.
///
/// # Errors
/// The document contains something that a program cannot represent.
pub(super) fn unfold(dag: &DagDocument) -> Result<UnfoldedDag, Problem> {
    let asks = asks(&dag.tasks)?;
    let (mut source, mut lines) = (PRELUDE.to_owned(), Vec::with_capacity(dag.tasks.len()));
    let places: HashMap<&str, usize> =
        dag.tasks.iter().enumerate().map(|(place, task)| (task.id.as_str(), place)).collect();
    for place in in_order(&dag.tasks, &places) {
        let line = u32::try_from(line_ends(&source) + 1).unwrap_or(u32::MAX);
        lines.push((line, dag.tasks[place].node));
        source.push_str(&written(place, &dag.tasks[place], &places)?);
    }
    source.push_str(&ending(&dag.tasks));
    let tasks = dag.tasks.iter().map(|task| (task.node, task.id.clone())).collect();
    Ok(UnfoldedDag { source, lines, tasks, asks })
}

/// The number of line ends in a text, as JavaScript counts them.
fn line_ends(text: &str) -> usize {
    let returns = text.match_indices('\r').filter(|(at, _)| !text[at + 1..].starts_with('\n')).count();
    returns + text.matches(['\n', '\u{2028}', '\u{2029}']).count()
}

/// The tools called by tasks that declare that they change something.
fn asks(tasks: &[DocumentTask]) -> Result<ToolsNeedingApproval, Problem> {
    let (mut tools, mut all) = (BTreeSet::new(), false);
    for task in tasks {
        let kept = [("retries", task.retries > 0), ("timeoutMs", task.timeout_ms.is_some())];
        if let Some((what, _)) = kept.iter().find(|(_, has)| *has) {
            return Err(cannot(&task.id, &format!("has `{what}`")));
        }
        match (&task.work, task.side_effects) {
            (_, None | Some(false)) => {}
            (DocumentWork::Tool { tool }, Some(true)) => drop(tools.insert(tool.clone())),
            (DocumentWork::Code { .. }, Some(true)) => all = true,
            (DocumentWork::Capability { .. }, Some(true)) => {
                return Err(cannot(&task.id, "is a capability with `sideEffects`"));
            }
        }
        if has_large_number(&task.arguments) {
            return Err(cannot(&task.id, "is given a number that programs cannot hold"));
        }
    }
    Ok(if all { ToolsNeedingApproval::All } else { ToolsNeedingApproval::These(tools) })
}

/// Whether the arguments contain a number that JavaScript would not keep exactly.
fn has_large_number(given: &TaskArguments) -> bool {
    match given {
        TaskArguments::Literal(json) | TaskArguments::Escaped(json) => {
            // Arguments nested too deeply to parse count as containing one.
            serde_json::from_str(json.get()).map_or(true, |value| is_large(&value))
        }
        TaskArguments::Object(members) => members.iter().any(|(_, member)| has_large_number(member)),
        TaskArguments::Array(items) => items.iter().any(has_large_number),
        TaskArguments::Reference(_) | TaskArguments::Text(_) => false,
    }
}

/// Whether the value contains a number that JavaScript would not keep exactly.
pub(super) fn is_large(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_none_or(|number| number.abs() > LARGEST_INTEGER),
        Value::Array(items) => items.iter().any(is_large),
        Value::Object(members) => members.values().any(is_large),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// 2^53 − 1: JavaScript represents every integer up to this exactly.
const LARGEST_INTEGER: f64 = 9_007_199_254_740_991.0;

fn cannot(task: &str, why: &str) -> Problem {
    let text = format!("its task `{task}` {why}, which holds only where the document is run by itself");
    Problem::new(ErrorCode::InvalidProgram, text)
        .hint("run it by itself, and give its result to the program in `context`")
}

/// The indexes of the tasks in dependency order.
fn in_order(tasks: &[DocumentTask], places: &HashMap<&str, usize>) -> Vec<usize> {
    let (mut order, mut done) = (Vec::with_capacity(tasks.len()), vec![false; tasks.len()]);
    // There are no cycles: analysis rejects such a document before it gets here.
    while let Some(next) = (0..tasks.len()).find(|place| {
        let waits = tasks[*place].depends_on.iter().filter_map(|id| places.get(id.as_str()));
        !done[*place] && waits.into_iter().all(|before| done[*before])
    }) {
        done[next] = true;
        order.push(next);
    }
    order
}

/// The source text of a task as a function that is called at once.
fn written(place: usize, task: &DocumentTask, places: &HashMap<&str, usize>) -> Result<String, Problem> {
    let before: Vec<usize> =
        task.depends_on.iter().filter_map(|id| places.get(id.as_str()).copied()).collect();
    let waits: Vec<String> = before.iter().map(|before| format!("await $task{before}")).collect();
    let given = given(&task.arguments, &|reference| value(reference, &before, places));
    let work = match &task.work {
        DocumentWork::Tool { tool } => {
            let id = ToolId::parse(tool)
                .map_err(|error| Problem::new(ErrorCode::UnknownTool, error.to_string()))?;
            format!("await mcp[{}][{}]({given})", raw(&id.server.as_str()), raw(&id.tool))
        }
        DocumentWork::Capability { name } => format!("await capabilities[{}]({given})", raw(name)),
        DocumentWork::Code { code, .. } => {
            format!("$copy(await (async (args: any) => {{\n{code}\n}})($copy({given})))")
        }
    };
    Ok(format!(
        "const $task{place} = (async (): Promise<any> => {{ const $before: any[] = [{}];\n\
         if ($before.some((one) => !one.passes)) return {{ passes: false }};\n\
         try {{ return {{ value: {work}, passes: true }}; }} catch (error) {{ return $failed(error, {}); }} }})();\n",
        waits.join(", "),
        task.safe_to_fail
    ))
}

/// The source text of the final result: the results of the tasks without dependents.
fn ending(tasks: &[DocumentTask]) -> String {
    let waited_for: BTreeSet<&str> =
        tasks.iter().flat_map(|task| task.depends_on.iter().map(String::as_str)).collect();
    let all: Vec<String> = (0..tasks.len()).map(|place| format!("await $task{place}")).collect();
    let ids: Vec<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
    let last: Vec<usize> =
        (0..tasks.len()).filter(|place| !waited_for.contains(tasks[*place].id.as_str())).collect();
    format!(
        "const $all: any[] = [{}];\nconst $ids: string[] = {};\n\
         const $wrong = $all.findIndex((one) => \"wrong\" in one);\n\
         if ($wrong >= 0) throw $told($all[$wrong].wrong, $ids[$wrong], $all.filter((one) => !one.passes && !(\"wrong\" in one)).length);\n\
         return Object.fromEntries({}.filter((place) => \"value\" in $all[place]).map((place) => [$ids[place], $all[place].value]));\n",
        all.join(", "),
        raw(&ids),
        raw(&last)
    )
}

/// The expression for the value of a reference.
fn value(reference: &Reference, before: &[usize], places: &HashMap<&str, usize>) -> String {
    let root = match &reference.of {
        ReferenceRoot::Arguments => "args".to_owned(),
        ReferenceRoot::Task(id) => {
            let place = places.get(id.as_str()).copied();
            let index = before.iter().position(|before| Some(*before) == place).unwrap_or_default();
            format!("$before[{index}].value")
        }
    };
    let step = |step: &PathStep| match step {
        PathStep::Key(key) => key.clone(),
        PathStep::Index(index) => index.to_string(),
        PathStep::Any => "*".to_owned(),
    };
    let path: Vec<String> = reference.path.iter().map(step).collect();
    format!("$at({root}, {}, {})", raw(&path), raw(&reference.to_string()))
}

/// The expression for the arguments of a task.
fn given(what: &TaskArguments, value: &dyn Fn(&Reference) -> String) -> String {
    match what {
        // In a JavaScript object literal, a member with that name sets the prototype instead of a member.
        TaskArguments::Literal(json) | TaskArguments::Escaped(json)
            if json.get().contains("__proto__") || json.get().contains('\\') =>
        {
            format!("JSON.parse({})", raw(&json.get()))
        }
        TaskArguments::Literal(json) | TaskArguments::Escaped(json) => json.get().to_owned(),
        TaskArguments::Reference(reference) => value(reference),
        TaskArguments::Text(parts) => {
            let part = |part: &TextPart| match part {
                TextPart::Text(text) => raw(text).get().to_owned(),
                TextPart::Reference(reference) => format!("$said({})", value(reference)),
            };
            format!("[{}].join(\"\")", parts.iter().map(part).collect::<Vec<_>>().join(", "))
        }
        TaskArguments::Object(members) => {
            let mut text = String::from("{ ");
            for (name, member) in members {
                write!(text, "[{}]: {}, ", raw(name), given(member, value))
                    .expect("texts take what is written");
            }
            text + "}"
        }
        TaskArguments::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| given(item, value)).collect();
            format!("[{}]", items.join(", "))
        }
    }
}
