//! A DAG for an intent that nothing learned serves: which tools, in which order, with which arguments.
//!
//! Takes the tools that were found for each step of the intent. What goes from one to the other follows from their schemas;
//! arguments are values that the intent says or results of other steps, and nothing else: what is not known is listed as
//! missing. Pure, but for the examples it is handed.

mod clauses;
pub(crate) mod deprecated;
pub(crate) mod effect;
#[cfg(test)]
mod tests;
mod units;
mod values;

use std::collections::BTreeMap;

use pml_graph::graph::feeds::{Calls, Edge, Order, feeds};
use pml_graph::graph::fields;
use pml_graph::graph::provides::Provides;
use pml_model::json::without_hidden;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::catalogue::Tool;
use crate::reuse::{self, Class, Literal};

use values::Wanted;

pub(crate) use clauses::clauses;

/// How sure it must be that a value of the intent is meant for a parameter.
const MEANT: f32 = 0.5;

/// What it is worth, beside the logarithm of how likely each tool is, that one takes what another gives, that a tool's name
/// begins with the verb of its step; and what it costs to call one twice.
const FED: f64 = 0.7;
const VERB: f64 = 0.7;
const TWICE: f64 = 1.0;

/// A tool for one step of the intent.
pub(crate) struct Step<'s> {
    /// The step, in words.
    pub(crate) words: &'s str,
    /// The tool.
    pub(crate) tool: &'s Tool,
    /// What it takes and gives.
    pub(crate) fields: &'s fields::Tool,
    /// How sure it is that this tool is meant, from 0 to 1.
    pub(crate) score: f64,
    /// It is known to change nothing.
    pub(crate) reads: bool,
    /// The words are those of the intent, not only of the tool.
    pub(crate) said: bool,
    /// Others that would do, best first.
    pub(crate) others: Vec<&'s Tool>,
}

/// A DAG that could serve an intent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuggestedDag {
    /// The document, ready to be completed and executed.
    pub dag_structure: Value,
    /// How sure it is that these tools are meant, from 0 to 1.
    pub confidence: f64,
    /// Why these.
    pub rationale: String,
    /// What goes from one task to the other.
    pub dependency_paths: Vec<DependencyPath>,
    /// Tools that could stand in for one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<String>,
    /// What to look at before it is executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Arguments that have to be given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingArgument>,
    /// What there is to know of each tool.
    pub tool_schemas: BTreeMap<String, ToolSchema>,
    /// Whether every argument is a value of the intent or a whole result.
    #[serde(skip)]
    pub complete: bool,
}

impl SuggestedDag {
    /// Says that no tool was found for these steps of the intent, so that it is not executed as if it were all of it.
    pub(crate) fn leaves_out(&mut self, steps: &[String]) {
        if steps.is_empty() {
            return;
        }
        let steps: Vec<String> = steps.iter().map(|step| format!("“{step}”")).collect();
        let told = format!("no tool was found for {}", steps.join(" and "));
        self.warning = Some(self.warning.take().map_or(told.clone(), |warning| format!("{warning}; {told}")));
        self.complete = false;
    }
}

/// Something that goes from one task to another.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct DependencyPath {
    /// The tool that gives.
    pub from: String,
    /// The tool that takes.
    pub to: String,
    /// What, and why that is so.
    pub explanation: String,
}

/// A required argument that nobody gave.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct MissingArgument {
    /// The task.
    pub task: String,
    /// The parameter.
    pub name: String,
}

/// What there is to know of a tool to call it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSchema {
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Box<RawValue>,
    /// What has to be given.
    pub required_inputs: Vec<String>,
    /// What may be given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub optional_inputs: Vec<String>,
    /// JSON Schema of its result, declared or seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Box<RawValue>>,
    /// Calls that worked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Example>,
}

/// A call that worked.
#[derive(Debug, Clone, Serialize)]
pub struct Example {
    /// What for.
    pub description: String,
    /// What it was given.
    pub input: Box<RawValue>,
    /// What it gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Box<RawValue>>,
}

/// Which of the tools that were found for each step go together best: each is likely by itself, begins with the verb of its
/// step, and takes what another gives. A tool is not called twice where another would do.
pub(crate) fn choose(
    intent: &str,
    found: &[(String, Vec<(&Tool, f64)>)],
    read: &[Vec<fields::Tool>],
) -> Vec<usize> {
    // As many as can be tried in a few milliseconds.
    let each = match found.len() {
        0 | 1 => 1,
        2 | 3 => 4,
        4..=6 => 2,
        _ => 1,
    };
    let widths: Vec<usize> = found.iter().map(|(_, tools)| tools.len().min(each)).collect();
    let mut best: (f64, Vec<usize>) = (f64::NEG_INFINITY, vec![0; found.len()]);
    let mut choice = vec![0; found.len()];
    loop {
        let worth = worth(intent, found, read, &choice);
        if worth > best.0 {
            best = (worth, choice.clone());
        }
        // Counts on, the last step first.
        let Some(place) = (0..choice.len()).rev().find(|place| choice[*place] + 1 < widths[*place]) else {
            return best.1;
        };
        choice[place] += 1;
        choice[place + 1..].fill(0);
    }
}

/// How much a choice of tools is worth.
fn worth(
    intent: &str,
    found: &[(String, Vec<(&Tool, f64)>)],
    read: &[Vec<fields::Tool>],
    choice: &[usize],
) -> f64 {
    let tools: Vec<&fields::Tool> = choice.iter().zip(read).map(|(place, read)| &read[*place]).collect();
    let calls =
        Calls { tools: &tools, order: Order::Given, request: Some(intent), known: &[], similar: None };
    let fed = if tools.len() > 1 { feeds(&calls).edges.len() } else { 0 };
    let mut worth = FED * fed as f64;
    for (at, ((words, tools), place)) in found.iter().zip(choice).enumerate() {
        let (tool, score) = tools[*place];
        worth += score.max(f64::EPSILON).ln();
        if begins_alike(words, &tool.definition.name) {
            worth += VERB;
        }
        let again = found[..at].iter().zip(choice).any(|((_, before), place)| before[*place].0.id == tool.id);
        if again {
            worth -= TWICE;
        }
    }
    worth
}

/// Whether a tool's name begins with the first word of a step.
fn begins_alike(words: &str, name: &str) -> bool {
    let first = |text: &str| -> String {
        let word =
            text.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or_default();
        let mut end = word.len();
        // `readFile` begins with `read`.
        if let Some((at, _)) = word.char_indices().skip(1).find(|(_, c)| c.is_uppercase()) {
            end = at;
        }
        word[..end].to_lowercase()
    };
    first(words) == first(name)
}

/// The DAG of these steps.
pub(crate) fn suggest(
    intent: &str,
    context: &Map<String, Value>,
    steps: &[Step<'_>],
    schema_of: impl Fn(&Tool) -> Option<Box<RawValue>>,
    examples_of: impl Fn(&Tool) -> Vec<Example>,
) -> SuggestedDag {
    let tools: Vec<&fields::Tool> = steps.iter().map(|step| step.fields).collect();
    let calls =
        Calls { tools: &tools, order: Order::Given, request: Some(intent), known: &[], similar: None };
    let mut flow = feeds(&calls);
    flow.edges.extend(referred(steps, &flow.edges));
    let literals = reuse::literals(intent);
    let mut tasks: Vec<Task> = (1..).zip(steps).map(|(number, step)| Task::new(number, step)).collect();
    // What is given by name is meant for whoever has the name.
    let mut unused: Vec<&String> = context.keys().collect();
    for task in &mut tasks {
        for (name, value) in context {
            if !task.schema["properties"][name].is_null() {
                task.arguments.insert(name.clone(), literally(value.clone()));
                unused.retain(|unused| *unused != name);
            }
        }
    }
    let mut unplaced: Vec<&Literal> = literals.iter().collect();
    for given in flow.given.iter().filter(|given| given.score >= MEANT) {
        // A part of what is written is another value.
        let whole =
            |literal: &&Literal| literal.span.start <= given.at.start && given.at.end <= literal.span.end;
        let literal = literals.iter().find(whole);
        let task = &mut tasks[given.call];
        let schema = task.schema["properties"][&given.parameter].clone();
        if task.arguments.contains_key(&given.parameter) {
            continue;
        }
        let after = literal.map_or(given.at.end, |literal| literal.span.end);
        let other_unit = units::differ(&intent[after..], &given.parameter, &schema);
        let wanted = Wanted { name: &given.parameter, schema: &schema, named: given.named };
        if let Some(value) = wanted.value(literal, &intent[given.at.clone()]).filter(|_| !other_unit) {
            task.arguments.insert(given.parameter.clone(), literally(value));
            unplaced.retain(|literal| !overlaps(&literal.span, &given.at));
        }
    }
    unplaced.retain(|literal| !place_by_kind(literal, &mut tasks));
    let mut paths = Vec::new();
    let mut first_only = false;
    for edge in &flow.edges {
        first_only |= take(edge, &mut tasks);
        paths.push(path(edge, steps));
    }
    keep_order(steps, &mut tasks);
    let missing: Vec<MissingArgument> = tasks.iter().flat_map(Task::missing).collect();
    let warning = warning(steps, first_only);
    let confidence = steps.iter().map(|step| step.score).product::<f64>();
    SuggestedDag {
        dag_structure: json!({ "tasks": tasks.iter().map(Task::document).collect::<Vec<_>>() }),
        confidence: (confidence * 1000.0).round() / 1000.0,
        rationale: rationale(steps),
        dependency_paths: paths,
        alternatives: alternatives(steps),
        warning,
        complete: missing.is_empty() && !first_only && unused.is_empty() && unplaced.is_empty(),
        missing,
        tool_schemas: steps
            .iter()
            .zip(&tasks)
            .map(|(step, task)| (step.tool.id.to_string(), known(step.tool, task, &schema_of, &examples_of)))
            .collect(),
    }
}

/// Words in the names of parameters that take values of a kind.
const CALLED: &[(Class, &[&str])] = &[
    (Class::Path, &["path", "file", "filename", "filepath", "directory", "folder", "dir"]),
    (Class::Url, &["url", "uri", "link"]),
    (Class::Email, &["email", "recipient"]),
    (Class::Zone, &["timezone", "tz", "zone"]),
    (Class::Channel, &["channel"]),
    (Class::Handle, &["user", "username"]),
];

/// Gives a value to the one required parameter whose name has a word for its kind; says whether there is just one.
fn place_by_kind(literal: &Literal, tasks: &mut [Task]) -> bool {
    let Some((_, names)) = CALLED.iter().find(|(class, _)| *class == literal.class) else { return false };
    let mut places = Vec::new();
    for (number, task) in tasks.iter().enumerate() {
        for name in task.required() {
            let called = words(name).iter().any(|word| names.contains(&word.as_str()));
            if called && !task.arguments.contains_key(name) {
                places.push((number, name.to_owned()));
            }
        }
    }
    let [(number, name)] = places.as_slice() else { return false };
    let task = &mut tasks[*number];
    let schema = task.schema["properties"][name].clone();
    let wanted = Wanted { name, schema: &schema, named: false };
    match wanted.value(Some(literal), &literal.text) {
        Some(value) => task.arguments.insert(name.clone(), literally(value)).is_none(),
        None => false,
    }
}

/// A value as it stands in a document, where doubled braces would be a reference.
fn literally(value: Value) -> Value {
    if value.to_string().contains("{{") { json!({ "$literal": value }) } else { value }
}

/// Lets steps wait for the one before them where nothing else says when they run: what changes something is not done at
/// the same time as anything else.
fn keep_order(steps: &[Step<'_>], tasks: &mut [Task]) {
    for number in 1..tasks.len() {
        if tasks[number].depends_on.is_empty() && steps[..=number].iter().any(|step| !step.reads) {
            let before = tasks[number - 1].id.clone();
            tasks[number].depends_on.push(before);
        }
    }
}

/// Words for what the step before results in, and words that are that only at the end of a step or after its verb.
const REFERRING: &[&str] = &["it", "its", "them"];
const AT_TIMES: &[&str] = &["this", "that", "these", "those", "result", "results"];

/// Whether a step speaks of what the one before results in.
fn refers(step: &Step<'_>) -> bool {
    let words: Vec<String> =
        step.words.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect();
    let ends = |at: usize| at == 1 || at + 1 == words.len();
    step.said
        && words.iter().enumerate().any(|(at, word)| {
            REFERRING.contains(&word.as_str()) || (AT_TIMES.contains(&word.as_str()) && ends(at))
        })
}

/// What steps that speak of the one before take from it, where nothing else is known to go there.
fn referred(steps: &[Step<'_>], edges: &[Edge]) -> Vec<Edge> {
    let mut more = Vec::new();
    for (to, step) in steps.iter().enumerate().skip(1) {
        if !refers(step) || edges.iter().any(|edge| edge.to == to) {
            continue;
        }
        let before = steps[to - 1].fields;
        let provides = Provides::build([before.clone(), step.fields.clone()]);
        let link = provides.link(&before.id, &step.fields.id);
        let best = link
            .into_iter()
            .flat_map(|link| link.mapping)
            .reduce(|best, next| if next.weight > best.weight { next } else { best });
        more.extend(best.map(|mapping| Edge { from: to - 1, to, mapping: vec![mapping] }));
    }
    more
}

/// A task as it is put together.
struct Task {
    id: String,
    tool: String,
    schema: Value,
    arguments: Map<String, Value>,
    depends_on: Vec<String>,
}

impl Task {
    fn new(number: usize, step: &Step<'_>) -> Task {
        Task {
            id: format!("t{number}"),
            tool: step.tool.id.to_string(),
            schema: serde_json::from_str(step.tool.definition.input_schema.get()).unwrap_or_default(),
            arguments: Map::new(),
            depends_on: Vec::new(),
        }
    }

    fn required(&self) -> Vec<&str> {
        let required = self.schema["required"].as_array().into_iter().flatten();
        required.filter_map(Value::as_str).collect()
    }

    fn optional(&self) -> Vec<String> {
        let all = self.schema["properties"].as_object().into_iter().flat_map(Map::keys);
        let required = self.required();
        all.filter(|name| !required.contains(&name.as_str())).cloned().collect()
    }

    fn missing(&self) -> Vec<MissingArgument> {
        let open = self.required().into_iter().filter(|name| !self.arguments.contains_key(*name));
        open.map(|name| MissingArgument { task: self.id.clone(), name: name.to_owned() }).collect()
    }

    fn document(&self) -> Value {
        json!({
            "id": self.id,
            "tool": self.tool,
            "arguments": self.arguments,
            "dependsOn": self.depends_on,
        })
    }
}

fn overlaps(one: &std::ops::Range<usize>, other: &std::ops::Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Gives one task what another one results in. Says whether only the first of several is taken.
fn take(edge: &Edge, tasks: &mut [Task]) -> bool {
    let from = tasks[edge.from].id.clone();
    let task = &mut tasks[edge.to];
    let mut first_only = false;
    for mapping in &edge.mapping {
        if task.arguments.contains_key(&mapping.to) {
            continue;
        }
        first_only |= mapping.from.contains("[]");
        task.arguments
            .insert(mapping.to.clone(), json!({ "$ref": format!("{from}{}", steps_to(&mapping.from)) }));
    }
    if !task.depends_on.contains(&from) {
        task.depends_on.push(from);
    }
    first_only
}

/// The way to a field as references write it; of a list the first element.
fn steps_to(path: &str) -> String {
    let mut out = String::new();
    for step in path.split('.').filter(|step| !step.is_empty()) {
        let (name, lists) = step.split_at(step.find("[]").unwrap_or(step.len()));
        let plain = name.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$')
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '-'));
        match name {
            "" => {}
            name if plain => {
                out.push('.');
                out.push_str(name);
            }
            name => out.push_str(&format!("[{}]", Value::from(name))),
        }
        out.push_str(&lists.replace("[]", "[0]"));
    }
    out
}

fn path(edge: &Edge, steps: &[Step<'_>]) -> DependencyPath {
    let fields: Vec<String> = edge
        .mapping
        .iter()
        .map(|mapping| {
            let from = if mapping.from.is_empty() { "the result" } else { &mapping.from };
            format!("`{from}` becomes `{}` ({})", mapping.to, mapping.how.words())
        })
        .collect();
    DependencyPath {
        from: steps[edge.from].tool.id.to_string(),
        to: steps[edge.to].tool.id.to_string(),
        explanation: fields.join(", "),
    }
}

fn rationale(steps: &[Step<'_>]) -> String {
    let said = |step: &Step<'_>| format!("`{}` for “{}” ({:.2})", step.tool.id, step.words, step.score);
    steps.iter().map(said).collect::<Vec<_>>().join(", then ")
}

fn alternatives(steps: &[Step<'_>]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for other in steps.iter().flat_map(|step| &step.others) {
        let id = other.id.to_string();
        if !all.contains(&id) && steps.iter().all(|step| step.tool.id != other.id) {
            all.push(id);
        }
    }
    all
}

fn warning(steps: &[Step<'_>], first_only: bool) -> Option<String> {
    let mut warnings = Vec::new();
    if first_only {
        warnings.push(
            "only the first of several results is passed on; use a `code` task where all are wanted"
                .to_owned(),
        );
    }
    if let Some(weak) =
        steps.iter().filter(|step| step.score < 0.5).min_by(|one, other| one.score.total_cmp(&other.score))
    {
        warnings.push(format!("it is not sure that `{}` is what “{}” asks for", weak.tool.id, weak.words));
    }
    (!warnings.is_empty()).then(|| warnings.join("; "))
}

fn known(
    tool: &Tool,
    task: &Task,
    schema_of: &impl Fn(&Tool) -> Option<Box<RawValue>>,
    examples_of: &impl Fn(&Tool) -> Vec<Example>,
) -> ToolSchema {
    ToolSchema {
        description: tool.definition.description.clone().unwrap_or_default(),
        input_schema: without_hidden(&tool.definition.input_schema),
        required_inputs: task.required().into_iter().map(str::to_owned).collect(),
        optional_inputs: task.optional(),
        output_schema: schema_of(tool),
        examples: examples_of(tool),
    }
}

/// The words of a text or a name, in lower case, cut where case shows a new word.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for c in text.chars() {
        // An apostrophe belongs to the word it shortens: `what's`, `I'd`.
        if matches!(c, '\'' | '’') {
            continue;
        }
        if c.is_alphanumeric() {
            let begins = !before.is_alphanumeric() || (c.is_uppercase() && before.is_lowercase());
            if begins {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(c.to_lowercase());
            }
        }
        before = c;
    }
    words
}
