//! A DAG document written out as a program, so that programs can call capabilities that are documents.
//!
//! Every task is an asynchronous function that waits for those it depends on, so what does not wait for each other runs at
//! once. What a task gives, what its failure means for the others and what comes of it all is as with a run of the document.
//! The calls keep the nodes of the document, because each task stands on lines of its own.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

use pml_analysis::Program;
use pml_analysis::dag::{Dag, Given, Part, Reference, Source, Task, Work};
use pml_model::ToolId;
use pml_model::json::raw;
use pml_model::structure::{NodeId, Step, Structure};
use serde_json::Value;

use crate::problem::{Code, Problem};

/// What all tasks use. `passes` says whether those that wait for a task may begin.
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

/// A document as a program.
pub(super) struct Unfolded {
    pub(super) source: String,
    /// The line on which each task begins, and its node.
    lines: Vec<(u32, NodeId)>,
    /// The names of the tasks.
    pub(super) tasks: Vec<(NodeId, String)>,
    /// The tools that a person is asked about because a task says that it changes something.
    pub(super) asks: Asks,
}

/// For which tools a person is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asks {
    These(BTreeSet<String>),
    All,
}

impl Asks {
    /// Whether for this one.
    pub(super) fn about(&self, tool: &ToolId) -> bool {
        match self {
            Asks::These(tools) => tools.contains(&tool.to_string()),
            Asks::All => true,
        }
    }
}

impl Unfolded {
    /// Lets the program report the nodes of the document, and where they stand in that.
    pub(super) fn name_sites(&self, program: &mut Program, document: &Structure) {
        // What the text around the tasks decides is nothing that the document knows of.
        program.sites.retain(|site| site.tool.is_some());
        for site in &mut program.sites {
            let begun = self.lines.iter().rev().find(|(line, _)| *line <= site.at.line);
            if let Some(node) = begun.and_then(|(_, node)| document.node(*node)) {
                (site.node, site.at) = (node.id, node.at);
            }
        }
    }
}

/// Writes a document out.
///
/// # Errors
/// It has something that no program can keep.
pub(super) fn unfold(dag: &Dag) -> Result<Unfolded, Problem> {
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
    Ok(Unfolded { source, lines, tasks, asks })
}

/// How many lines end in a text, as programs count them.
fn line_ends(text: &str) -> usize {
    let returns = text.match_indices('\r').filter(|(at, _)| !text[at + 1..].starts_with('\n')).count();
    returns + text.matches(['\n', '\u{2028}', '\u{2029}']).count()
}

/// What the tasks that say that they change something call.
fn asks(tasks: &[Task]) -> Result<Asks, Problem> {
    let (mut tools, mut all) = (BTreeSet::new(), false);
    for task in tasks {
        let kept = [("retries", task.retries > 0), ("timeoutMs", task.timeout_ms.is_some())];
        if let Some((what, _)) = kept.iter().find(|(_, has)| *has) {
            return Err(cannot(&task.id, &format!("has `{what}`")));
        }
        match (&task.work, task.side_effects) {
            (_, None | Some(false)) => {}
            (Work::Tool { tool }, Some(true)) => drop(tools.insert(tool.clone())),
            (Work::Code { .. }, Some(true)) => all = true,
            (Work::Capability { .. }, Some(true)) => {
                return Err(cannot(&task.id, "is a capability with `sideEffects`"));
            }
        }
        if has_large_number(&task.arguments) {
            return Err(cannot(&task.id, "is given a number that programs cannot hold"));
        }
    }
    Ok(if all { Asks::All } else { Asks::These(tools) })
}

/// Whether a number is written that would be another one in a program.
fn has_large_number(given: &Given) -> bool {
    match given {
        Given::Literal(json) | Given::Escaped(json) => {
            // What is nested too deeply to be read is not trusted.
            serde_json::from_str(json.get()).map_or(true, |value| is_large(&value))
        }
        Given::Object(members) => members.iter().any(|(_, member)| has_large_number(member)),
        Given::Array(items) => items.iter().any(has_large_number),
        Given::Reference(_) | Given::Text(_) => false,
    }
}

/// Whether there is a number in it that would be another one in a program.
pub(super) fn is_large(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_none_or(|number| number.abs() > LARGEST_INTEGER),
        Value::Array(items) => items.iter().any(is_large),
        Value::Object(members) => members.values().any(is_large),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// Up to here every whole number is one in a program.
const LARGEST_INTEGER: f64 = 9_007_199_254_740_991.0;

fn cannot(task: &str, why: &str) -> Problem {
    let text = format!("its task `{task}` {why}, which holds only where the document is run by itself");
    Problem::new(Code::InvalidProgram, text)
        .hint("run it by itself, and give its result to the program in `context`")
}

/// The places of the tasks, each behind those it waits for.
fn in_order(tasks: &[Task], places: &HashMap<&str, usize>) -> Vec<usize> {
    let (mut order, mut done) = (Vec::with_capacity(tasks.len()), vec![false; tasks.len()]);
    // Tasks do not wait for each other in a circle: that is a mistake, and such a document is not run.
    while let Some(next) = (0..tasks.len()).find(|place| {
        let waits = tasks[*place].depends_on.iter().filter_map(|id| places.get(id.as_str()));
        !done[*place] && waits.into_iter().all(|before| done[*before])
    }) {
        done[next] = true;
        order.push(next);
    }
    order
}

/// A task as a function that runs at once.
fn written(place: usize, task: &Task, places: &HashMap<&str, usize>) -> Result<String, Problem> {
    let before: Vec<usize> =
        task.depends_on.iter().filter_map(|id| places.get(id.as_str()).copied()).collect();
    let waits: Vec<String> = before.iter().map(|before| format!("await $task{before}")).collect();
    let given = given(&task.arguments, &|reference| value(reference, &before, places));
    let work = match &task.work {
        Work::Tool { tool } => {
            let id =
                ToolId::parse(tool).map_err(|error| Problem::new(Code::UnknownTool, error.to_string()))?;
            format!("await mcp[{}][{}]({given})", raw(&id.server.as_str()), raw(&id.tool))
        }
        Work::Capability { name } => format!("await capabilities[{}]({given})", raw(name)),
        Work::Code { code, .. } => {
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

/// What comes of it all: the results of those tasks that no other waits for.
fn ending(tasks: &[Task]) -> String {
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

/// The value of a reference, as an expression.
fn value(reference: &Reference, before: &[usize], places: &HashMap<&str, usize>) -> String {
    let root = match &reference.of {
        Source::Arguments => "args".to_owned(),
        Source::Task(id) => {
            let place = places.get(id.as_str()).copied();
            let index = before.iter().position(|before| Some(*before) == place).unwrap_or_default();
            format!("$before[{index}].value")
        }
    };
    let step = |step: &Step| match step {
        Step::Key(key) => key.clone(),
        Step::Index(index) => index.to_string(),
        Step::Any => "*".to_owned(),
    };
    let path: Vec<String> = reference.path.iter().map(step).collect();
    format!("$at({root}, {}, {})", raw(&path), raw(&reference.to_string()))
}

/// What a task is given, as an expression.
fn given(what: &Given, value: &dyn Fn(&Reference) -> String) -> String {
    match what {
        // In a program, a member of that name would be no member, however it is written.
        Given::Literal(json) | Given::Escaped(json)
            if json.get().contains("__proto__") || json.get().contains('\\') =>
        {
            format!("JSON.parse({})", raw(&json.get()))
        }
        Given::Literal(json) | Given::Escaped(json) => json.get().to_owned(),
        Given::Reference(reference) => value(reference),
        Given::Text(parts) => {
            let part = |part: &Part| match part {
                Part::Text(text) => raw(text).get().to_owned(),
                Part::Reference(reference) => format!("$said({})", value(reference)),
            };
            format!("[{}].join(\"\")", parts.iter().map(part).collect::<Vec<_>>().join(", "))
        }
        Given::Object(members) => {
            let mut text = String::from("{ ");
            for (name, member) in members {
                write!(text, "[{}]: {}, ", raw(name), given(member, value))
                    .expect("texts take what is written");
            }
            text + "}"
        }
        Given::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| given(item, value)).collect();
            format!("[{}]", items.join(", "))
        }
    }
}
