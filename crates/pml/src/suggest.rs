//! Builds a DAG for an intent that no capability serves: which tools, in which order, with which arguments.
//!
//! The input is the tools found for each step of the intent. Data flow between them follows from their schemas. An
//! argument is a value of the intent or the result of another step, nothing else; other required arguments are listed
//! as missing. The module is pure: examples are passed in.

pub(crate) mod effect;
pub(crate) mod paths;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;

use pml_graph::graph::feeds::{CallOrder, FlowEdge, PlannedCalls, infer_flow};
use pml_graph::graph::fields;
use pml_graph::graph::provides::ProvidesIndex;
use pml_language::Reading;
use pml_language::literals::{IntentLiteral, LiteralClass};
use pml_model::json::strip_hidden_characters;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::catalogue::CatalogueTool;

use values::WantedParameter;

/// The lowest score at which a value of the intent is bound to a parameter.
const MEANT: f32 = 0.5;

/// Terms of the score of a choice of tools, added to the logarithm of each tool's probability: `FED` for each data
/// flow from one tool to another, `VERB` for each tool whose name begins with the verb of its step, minus `TWICE` for
/// each tool that is called again.
const FED: f64 = 0.7;
const VERB: f64 = 0.7;
const TWICE: f64 = 1.0;

/// A step of the intent with the tool chosen for it.
pub struct SuggestStep<'s> {
    /// The words of the step.
    pub words: &'s str,
    /// The chosen tool.
    pub tool: &'s CatalogueTool,
    /// The parameters and result fields of the tool.
    pub fields: &'s fields::ToolFields,
    /// The probability that this tool serves the step, from 0 to 1.
    pub score: f64,
    /// Whether the tool is known to change nothing.
    pub reads_only: bool,
    /// Whether the words come from the intent and not only from the tool.
    pub from_intent: bool,
    /// Other candidates for the step, best first.
    pub alternatives: Vec<&'s CatalogueTool>,
}

/// A suggested DAG for an intent.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SuggestedDag {
    /// The DAG document, to be completed and executed.
    #[schema(value_type = Object)]
    pub dag_structure: Value,
    /// The probability that these tools serve the intent, from 0 to 1.
    pub confidence: f64,
    /// Why these tools were chosen.
    pub rationale: String,
    /// The data flow between tasks.
    pub dependency_paths: Vec<DependencyPath>,
    /// Tools that could replace one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<String>,
    /// What to check before executing it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Required arguments without a value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingArgument>,
    /// The schemas and examples of each tool, by id.
    pub tool_schemas: BTreeMap<String, ToolSchema>,
    /// Whether it can be executed as it is: every argument is a value of the intent or a whole result, and every value
    /// of the intent has its place.
    pub complete: bool,
}

impl SuggestedDag {
    /// Adds a warning that no tool was found for these steps of the intent, so that the DAG is not taken for all of
    /// it.
    pub(crate) fn note_left_out(&mut self, steps: &[String]) {
        if steps.is_empty() {
            return;
        }
        let steps: Vec<String> = steps.iter().map(|step| format!("“{step}”")).collect();
        let told = format!("no tool was found for {}", steps.join(" and "));
        self.warning = Some(self.warning.take().map_or(told.clone(), |warning| format!("{warning}; {told}")));
        self.complete = false;
    }
}

/// Data flow from one task to another.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct DependencyPath {
    /// The tool that gives the data.
    pub from: String,
    /// The tool that takes it.
    pub to: String,
    /// Which data, and why.
    pub explanation: String,
}

/// A required argument without a value.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct MissingArgument {
    /// The id of the task.
    pub task: String,
    /// The name of the parameter.
    pub name: String,
}

/// What a caller needs to know to call a tool.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolSchema {
    /// The description of the tool.
    pub description: String,
    /// The JSON Schema of its arguments.
    #[schema(value_type = Object)]
    pub input_schema: Box<RawValue>,
    /// The names of the required arguments.
    pub required_inputs: Vec<String>,
    /// The names of the optional arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub optional_inputs: Vec<String>,
    /// The JSON Schema of its result, declared or observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub output_schema: Option<Box<RawValue>>,
    /// Successful calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<CallExample>,
}

/// A successful call of a tool.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CallExample {
    /// The intent of the call.
    pub description: String,
    /// Its arguments.
    #[schema(value_type = Object)]
    pub input: Box<RawValue>,
    /// Its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub output: Option<Box<RawValue>>,
}

/// Chooses one tool per step so that they fit together best: each is probable by itself, begins with the verb of its
/// step, and takes what another gives. A tool is not called twice where another would do. Returns an index into the
/// candidates of each step.
pub(crate) fn choose_tools(
    intent: &Reading<'_>,
    found: &[(String, Vec<(&CatalogueTool, f64)>)],
    read: &[Vec<fields::ToolFields>],
) -> Vec<usize> {
    // Limits the combinations to as many as can be scored in a few milliseconds.
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
        // The next combination, like an odometer: the last step changes first.
        let Some(place) = (0..choice.len()).rev().find(|place| choice[*place] + 1 < widths[*place]) else {
            return best.1;
        };
        choice[place] += 1;
        choice[place + 1..].fill(0);
    }
}

/// The score of a choice of tools; higher is better.
fn worth(
    intent: &Reading<'_>,
    found: &[(String, Vec<(&CatalogueTool, f64)>)],
    read: &[Vec<fields::ToolFields>],
    choice: &[usize],
) -> f64 {
    let tools: Vec<&fields::ToolFields> =
        choice.iter().zip(read).map(|(place, read)| &read[*place]).collect();
    let calls = PlannedCalls {
        tools: &tools,
        order: CallOrder::AsListed,
        request: Some(intent),
        known_arguments: &[],
        similarity: None,
    };
    let fed = if tools.len() > 1 { infer_flow(&calls).edges.len() } else { 0 };
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

/// Builds the DAG of these steps.
pub fn build_dag(
    intent: &Reading<'_>,
    context: &Map<String, Value>,
    steps: &[SuggestStep<'_>],
    schema_of: impl Fn(&CatalogueTool) -> Option<Box<RawValue>>,
    examples_of: impl Fn(&CatalogueTool) -> Vec<CallExample>,
) -> SuggestedDag {
    let tools: Vec<&fields::ToolFields> = steps.iter().map(|step| step.fields).collect();
    let calls = PlannedCalls {
        tools: &tools,
        order: CallOrder::AsListed,
        request: Some(intent),
        known_arguments: &[],
        similarity: None,
    };
    let mut flow = infer_flow(&calls);
    flow.edges.extend(referred(steps, &flow.edges));
    let mut tasks: Vec<DraftTask> =
        (1..).zip(steps).map(|(number, step)| DraftTask::new(number, step)).collect();
    // A value in `context` goes to every task that has a parameter of that name.
    let mut unused: Vec<&String> = context.keys().collect();
    for task in &mut tasks {
        for (name, value) in context {
            if !task.schema["properties"][name].is_null() {
                task.arguments.insert(name.clone(), escape_braces(value.clone()));
                unused.retain(|unused| *unused != name);
            }
        }
    }
    let mut unplaced: Vec<&IntentLiteral> = intent.literals().collect();
    for given in flow.request_values.iter().filter(|given| given.score >= MEANT) {
        // The whole literal is used, because a part of it would be another value.
        let whole = |literal: &&IntentLiteral| {
            literal.span.start <= given.span.start && given.span.end <= literal.span.end
        };
        let literal = intent.literals().find(whole);
        let task = &mut tasks[given.call];
        let schema = task.schema["properties"][&given.parameter].clone();
        if task.arguments.contains_key(&given.parameter) {
            continue;
        }
        let wanted =
            WantedParameter { name: &given.parameter, schema: &schema, is_named: given.is_named_nearby };
        if let Some(value) = wanted.value_of(literal, &intent.text[given.span.clone()]) {
            task.arguments.insert(given.parameter.clone(), escape_braces(value));
            unplaced.retain(|literal| !overlaps(&literal.span, &given.span));
        }
    }
    unplaced.retain(|literal| !place_by_kind(literal, &mut tasks));
    let mut paths = Vec::new();
    let mut first_only = false;
    for edge in &flow.edges {
        first_only |= apply_edge(edge, &mut tasks);
        paths.push(path(edge, steps));
    }
    keep_order(steps, &mut tasks);
    let missing: Vec<MissingArgument> = tasks.iter().flat_map(DraftTask::missing).collect();
    let warning = warning(steps, first_only);
    let confidence = steps.iter().map(|step| step.score).product::<f64>();
    SuggestedDag {
        dag_structure: json!({ "tasks": tasks.iter().map(DraftTask::document).collect::<Vec<_>>() }),
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
            .map(|(step, task)| {
                (step.tool.id.to_string(), tool_schema(step.tool, task, &schema_of, &examples_of))
            })
            .collect(),
    }
}

/// Words in parameter names, by the class of literals that such parameters take.
const CALLED: &[(LiteralClass, &[&str])] = &[
    (LiteralClass::Path, &["path", "file", "filename", "filepath", "directory", "folder", "dir"]),
    (LiteralClass::Url, &["url", "uri", "link"]),
    (LiteralClass::Email, &["email", "recipient"]),
    (LiteralClass::Zone, &["timezone", "tz", "zone"]),
    (LiteralClass::Channel, &["channel"]),
    (LiteralClass::Handle, &["user", "username"]),
];

/// Binds a literal to the only required parameter whose name has a word for its class; returns whether there was
/// exactly one.
fn place_by_kind(literal: &IntentLiteral, tasks: &mut [DraftTask]) -> bool {
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
    let wanted = WantedParameter { name, schema: &schema, is_named: false };
    match wanted.value_of(Some(literal), &literal.text) {
        Some(value) => task.arguments.insert(name.clone(), escape_braces(value)).is_none(),
        None => false,
    }
}

/// The value as a DAG document has to write it: double braces would be read as a reference.
pub(crate) fn escape_braces(value: Value) -> Value {
    if value.to_string().contains("{{") { json!({ "$literal": value }) } else { value }
}

/// Makes steps depend on the one before them where nothing else orders them: a step that changes something never runs
/// in parallel with another.
fn keep_order(steps: &[SuggestStep<'_>], tasks: &mut [DraftTask]) {
    for number in 1..tasks.len() {
        if tasks[number].depends_on.is_empty() && steps[..=number].iter().any(|step| !step.reads_only) {
            let before = tasks[number - 1].id.clone();
            tasks[number].depends_on.push(before);
        }
    }
}

/// Words that refer to the result of the step before. `AT_TIMES` do so only at the end of a step or after its verb.
const REFERRING: &[&str] = &["it", "its", "them"];
const AT_TIMES: &[&str] = &["this", "that", "these", "those", "result", "results"];

/// Whether a step refers to the result of the one before.
fn refers(step: &SuggestStep<'_>) -> bool {
    let words: Vec<String> =
        step.words.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect();
    let ends = |at: usize| at == 1 || at + 1 == words.len();
    step.from_intent
        && words.iter().enumerate().any(|(at, word)| {
            REFERRING.contains(&word.as_str()) || (AT_TIMES.contains(&word.as_str()) && ends(at))
        })
}

/// Data flow into steps that refer to the one before, where no other data flow is known.
fn referred(steps: &[SuggestStep<'_>], edges: &[FlowEdge]) -> Vec<FlowEdge> {
    let mut more = Vec::new();
    for (to, step) in steps.iter().enumerate().skip(1) {
        if !refers(step) || edges.iter().any(|edge| edge.to == to) {
            continue;
        }
        let before = steps[to - 1].fields;
        let provides = ProvidesIndex::build([before.clone(), step.fields.clone()]);
        let link = provides.link_between(&before.id, &step.fields.id);
        let best = link
            .into_iter()
            .flat_map(|link| link.mapping)
            .reduce(|best, next| if next.weight > best.weight { next } else { best });
        more.extend(best.map(|mapping| FlowEdge { from: to - 1, to, mapping: vec![mapping] }));
    }
    more
}

/// A task under construction.
struct DraftTask {
    id: String,
    tool: String,
    schema: Value,
    arguments: Map<String, Value>,
    depends_on: Vec<String>,
}

impl DraftTask {
    fn new(number: usize, step: &SuggestStep<'_>) -> DraftTask {
        DraftTask {
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

/// Binds arguments of one task to results of another. Returns whether only the first of several elements is taken.
fn apply_edge(edge: &FlowEdge, tasks: &mut [DraftTask]) -> bool {
    let from = tasks[edge.from].id.clone();
    let task = &mut tasks[edge.to];
    let mut first_only = false;
    for mapping in &edge.mapping {
        if task.arguments.contains_key(&mapping.to) {
            continue;
        }
        first_only |= mapping.from.contains("[]");
        task.arguments.insert(
            mapping.to.clone(),
            json!({ "$ref": format!("{from}{}", reference_path(&mapping.from)) }),
        );
    }
    if !task.depends_on.contains(&from) {
        task.depends_on.push(from);
    }
    first_only
}

/// The path to a field in the syntax of references; of a list the first element.
fn reference_path(path: &str) -> String {
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

fn path(edge: &FlowEdge, steps: &[SuggestStep<'_>]) -> DependencyPath {
    let fields: Vec<String> = edge
        .mapping
        .iter()
        .map(|mapping| {
            let from = if mapping.from.is_empty() { "the result" } else { &mapping.from };
            format!("`{from}` becomes `{}` ({})", mapping.to, mapping.basis.describe())
        })
        .collect();
    DependencyPath {
        from: steps[edge.from].tool.id.to_string(),
        to: steps[edge.to].tool.id.to_string(),
        explanation: fields.join(", "),
    }
}

fn rationale(steps: &[SuggestStep<'_>]) -> String {
    let said =
        |step: &SuggestStep<'_>| format!("`{}` for “{}” ({:.2})", step.tool.id, step.words, step.score);
    steps.iter().map(said).collect::<Vec<_>>().join(", then ")
}

fn alternatives(steps: &[SuggestStep<'_>]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for other in steps.iter().flat_map(|step| &step.alternatives) {
        let id = other.id.to_string();
        if !all.contains(&id) && steps.iter().all(|step| step.tool.id != other.id) {
            all.push(id);
        }
    }
    all
}

fn warning(steps: &[SuggestStep<'_>], first_only: bool) -> Option<String> {
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

fn tool_schema(
    tool: &CatalogueTool,
    task: &DraftTask,
    schema_of: &impl Fn(&CatalogueTool) -> Option<Box<RawValue>>,
    examples_of: &impl Fn(&CatalogueTool) -> Vec<CallExample>,
) -> ToolSchema {
    ToolSchema {
        description: tool.definition.description.clone().unwrap_or_default(),
        input_schema: strip_hidden_characters(&tool.definition.input_schema),
        required_inputs: task.required().into_iter().map(str::to_owned).collect(),
        optional_inputs: task.optional(),
        output_schema: schema_of(tool),
        examples: examples_of(tool),
    }
}

/// The words of a text or an identifier, in lower case, split where the case changes.
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
