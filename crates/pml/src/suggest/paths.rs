//! Candidate paths for an intent: several different DAGs that could serve it, most promising first.
//!
//! Tools that could serve the steps of the intent, and tools that could give these what they need, become the calls of
//! a [`CallGraph`]. Its best hyperpaths become DAG documents in which every required argument is a value of the intent
//! or of `context`, or a reference to the result of another task. The module is pure.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};

use pml_graph::call_paths::{
    ArgumentSource, CallGraph, CallOptions, CallPath, GivenArgument, PathCall, PossibleCall, ResultLink,
};
use pml_graph::graph::feeds::{possible_mappings, value_fit};
use pml_graph::graph::fields::ToolFields;
use pml_language::Reading;
use pml_language::literals::IntentLiteral;
use pml_model::ToolId;
use serde_json::{Map, Value, json};

use super::values::WantedParameter;
use super::{escape_braces, reference_path, words};
use crate::catalogue::CatalogueTool;

/// Least fit of a value of the intent with a required parameter, as in [`super::build_dag`].
const LEAST_FIT: f64 = super::MEANT as f64;
/// Least fit of a value with an optional parameter: only a parameter made for such values.
const OPTIONAL_FIT: f64 = 1.0;
/// Least fit of a result with a parameter: below it, two fields have no more in common than their kind.
const LEAST_LINK: f64 = 0.3;
/// Fit of a result of a call whose value is named like what takes it: `orders.schema.json` for `schema`.
const NAMED_ALIKE: f64 = 0.9;
/// Share of the doubt that remains about a result where the step refers to the one before ("check it").
const REFERRED_DOUBT: f64 = 0.5;
/// Factor on the reliability of a call that is not known to be safe: a path of safe calls can be tried for real.
const UNSAFE: f64 = 0.7;
/// Factor on the probability that a call serves a step, where the call is about a value of another step.
const OTHER_STEP: f64 = 0.5;
/// Cost of each value of the request that a path has no place for: as much as a step with the least probability that
/// is suggested (−ln 0.25).
const UNUSED_COST: f64 = 1.4;
/// Calls of one tool with different values.
const MOST_CALLS_OF_TOOL: usize = 3;
/// Hyperpaths looked at to find the wanted number of different ones.
const LOOKED_AT: usize = 200;
/// Most calls in one path.
const MOST_CALLS: usize = 12;

/// A tool that a path may call.
pub(crate) struct PathTool<'s> {
    pub(crate) tool: &'s CatalogueTool,
    pub(crate) fields: ToolFields,
    /// Whether it may be called for real while exploring.
    pub(crate) is_safe: bool,
    /// Whether it is known to change nothing.
    pub(crate) reads_only: bool,
    /// Share of its calls that succeeded.
    pub(crate) reliability: f64,
}

/// A step of the intent.
pub(crate) struct PathStep {
    /// Its words.
    pub(crate) words: String,
    /// Tools that could serve it, with their probabilities: indices into the tools.
    pub(crate) candidates: Vec<(usize, f64)>,
}

/// What is asked for, and what may be called.
pub(crate) struct PathRequest<'r, 's> {
    pub(crate) intent: &'r Reading<'r>,
    pub(crate) context: &'r Map<String, Value>,
    pub(crate) tools: &'r [PathTool<'s>],
    pub(crate) steps: &'r [PathStep],
    pub(crate) max_paths: usize,
    pub(crate) max_depth: usize,
}

/// One way to serve the intent.
#[derive(Debug, Clone)]
pub(crate) struct CandidatePath {
    /// The DAG document.
    pub(crate) document: Value,
    /// The tool of each task.
    pub(crate) tools: Vec<ToolId>,
    /// What speaks against it: values without a place, a list of which only the first element is used.
    pub(crate) warnings: Vec<String>,
    /// The probability that its tools serve the steps.
    pub(crate) probability: f64,
    /// Its cost, which orders the paths.
    pub(crate) cost: f64,
}

/// The paths found.
#[derive(Debug, Default)]
pub(crate) struct CandidatePaths {
    /// Different paths, best first.
    pub(crate) paths: Vec<CandidatePath>,
    /// Whether a path was left out because its chain of calls is longer than allowed.
    pub(crate) too_deep: bool,
}

/// The best different paths; empty where some step cannot be reached from what is given.
pub(crate) fn candidate_paths(request: &PathRequest<'_, '_>) -> CandidatePaths {
    let draft = PathDraft::new(request);
    let mut graph = match CallGraph::new(&draft.options) {
        Ok(graph) => graph,
        Err(error) => {
            tracing::error!(%error, "the graph of possible calls could not be built");
            return CandidatePaths::default();
        }
    };
    let mut found = CandidatePaths::default();
    let mut seen = HashSet::new();
    for path in graph.paths().take(LOOKED_AT) {
        if path.depth() > request.max_depth || path.calls.len() > MOST_CALLS {
            found.too_deep = true;
            continue;
        }
        // The same tools with arguments from elsewhere are the same way, less likely.
        let mut tools: Vec<usize> = path.calls.iter().map(|call| draft.tool_of[call.call]).collect();
        tools.sort_unstable();
        if seen.insert(tools) {
            found.paths.push(draft.candidate(&path));
        }
        // Values without a place can move a path back by a few places.
        if found.paths.len() >= 3 * request.max_paths {
            break;
        }
    }
    found.paths.sort_by(|one, other| one.cost.total_cmp(&other.cost));
    found.paths.truncate(request.max_paths);
    found
}

/// A value at hand.
enum GivenValue<'r> {
    Literal(&'r IntentLiteral),
    Context(&'r str, &'r Value),
    Default(Value),
}

/// Everything that could be part of a path.
struct PathDraft<'r, 's> {
    request: &'r PathRequest<'r, 's>,
    schemas: Vec<Value>,
    values: Vec<GivenValue<'r>>,
    options: CallOptions,
    /// The tool of each possible call.
    tool_of: Vec<usize>,
    /// The literal that sets a call apart from other calls of its tool.
    about: Vec<Option<usize>>,
}

impl<'r, 's> PathDraft<'r, 's> {
    fn new(request: &'r PathRequest<'r, 's>) -> PathDraft<'r, 's> {
        let literals = request.intent.literals().map(GivenValue::Literal);
        let context = request.context.iter().map(|(name, value)| GivenValue::Context(name, value));
        let schema = |tool: &PathTool<'_>| {
            serde_json::from_str(tool.tool.definition.input_schema.get()).unwrap_or_default()
        };
        let mut draft = PathDraft {
            request,
            schemas: request.tools.iter().map(schema).collect(),
            values: literals.chain(context).collect(),
            options: CallOptions::default(),
            tool_of: Vec::new(),
            about: Vec::new(),
        };
        for tool in 0..request.tools.len() {
            draft.add_calls(tool);
        }
        draft.add_links();
        draft.options.steps = request.steps.iter().map(|step| draft.calls_for(step)).collect();
        draft
    }

    /// Adds the calls of one tool: one, or one for each value of the intent that competes for the same parameter.
    fn add_calls(&mut self, tool: usize) {
        let fields = &self.request.tools[tool].fields;
        let mut fits: Vec<(usize, String, f64)> = Vec::new();
        for input in fields.inputs.iter().filter(|input| input.required) {
            for value in 0..self.values.len() {
                let fit = self.fit(tool, &input.name, value);
                fits.extend(fit.filter(|fit| *fit >= LEAST_FIT).map(|fit| (value, input.name.clone(), fit)));
            }
        }
        let literals = self.request.intent.literals().count();
        let is_literal = |value: usize| value < literals;
        let rivals = |name: &str| -> Vec<usize> {
            let of_name = fits.iter().filter(|(value, other, _)| other == name && is_literal(*value));
            of_name.map(|(value, ..)| *value).take(MOST_CALLS_OF_TOOL).collect()
        };
        let contested = fits.iter().map(|(_, name, _)| name).find(|name| rivals(name).len() > 1).cloned();
        let about: Vec<Option<usize>> = match &contested {
            Some(name) => rivals(name).into_iter().map(Some).collect(),
            None => vec![None],
        };
        for about in about {
            let call = self.options.calls.len();
            let of_tool = &self.request.tools[tool];
            let required = of_tool.fields.inputs.iter().filter(|input| input.required);
            self.options.calls.push(PossibleCall {
                required: required.map(|input| input.name.clone()).collect(),
                reliability: of_tool.reliability * if of_tool.is_safe { 1.0 } else { UNSAFE },
            });
            self.tool_of.push(tool);
            self.about.push(about);
            for (value, parameter, fit) in &fits {
                let is_rival = about.is_some_and(|about| is_literal(*value) && about != *value);
                if Some(parameter) != contested.as_ref() || !is_rival {
                    let (parameter, value) = (parameter.clone(), *value);
                    self.options.given.push(GivenArgument { call, parameter, value, fit: fit.min(1.0) });
                }
            }
            self.add_defaults(call, tool);
        }
    }

    /// A required parameter with a default can be left to it.
    fn add_defaults(&mut self, call: usize, tool: usize) {
        for input in self.request.tools[tool].fields.inputs.iter().filter(|input| input.required) {
            let default = self.schemas[tool]["properties"][&input.name]["default"].clone();
            if !default.is_null() {
                let (parameter, value) = (input.name.clone(), self.values.len());
                self.values.push(GivenValue::Default(default));
                self.options.given.push(GivenArgument { call, parameter, value, fit: LEAST_FIT });
            }
        }
    }

    /// How well a value fits a parameter; `None` where the schema does not allow it.
    fn fit(&self, tool: usize, parameter: &str, value: usize) -> Option<f64> {
        self.argument(tool, parameter, value)?;
        match &self.values[value] {
            GivenValue::Literal(literal) => {
                let input = self.request.tools[tool].fields.input(parameter)?;
                Some(f64::from(value_fit(self.request.intent, literal, input)))
            }
            GivenValue::Context(name, _) => (*name == parameter).then_some(1.0),
            GivenValue::Default(_) => None,
        }
    }

    /// The value as the argument of a parameter; `None` where the schema does not allow it.
    fn argument(&self, tool: usize, parameter: &str, value: usize) -> Option<Value> {
        let schema = &self.schemas[tool]["properties"][parameter];
        match &self.values[value] {
            GivenValue::Literal(literal) => {
                let wanted = WantedParameter { name: parameter, schema, is_named: false };
                wanted.value_of(Some(literal), &literal.text)
            }
            GivenValue::Context(_, value) => Some((*value).clone()),
            GivenValue::Default(value) => Some(value.clone()),
        }
    }

    /// Adds what calls could take from one another.
    fn add_links(&mut self) {
        let tools: Vec<&ToolFields> = self.request.tools.iter().map(|tool| &tool.fields).collect();
        let mut by_pair: HashMap<(usize, usize), Vec<(String, String, f64)>> = HashMap::new();
        for (from, to, mapping) in possible_mappings(&tools) {
            let required = tools[to].input(&mapping.to).is_some_and(|input| input.required);
            if required && f64::from(mapping.weight) >= LEAST_LINK {
                let link = (mapping.to, mapping.from, f64::from(mapping.weight).min(1.0));
                by_pair.entry((from, to)).or_default().push(link);
            }
        }
        for from in 0..self.tool_of.len() {
            for to in (0..self.tool_of.len()).filter(|to| *to != from) {
                for (parameter, path, fit) in
                    by_pair.get(&(self.tool_of[from], self.tool_of[to])).into_iter().flatten()
                {
                    let fit = self.link_fit((from, to), parameter, *fit);
                    let (parameter, path) = (parameter.clone(), path.clone());
                    self.options.links.push(ResultLink { from, to, parameter, path, fit });
                }
            }
        }
    }

    fn link_fit(&self, (from, to): (usize, usize), parameter: &str, fit: f64) -> f64 {
        let taker = &self.request.tools[self.tool_of[to]];
        let alike = self.about[from].is_some_and(|about| {
            let GivenValue::Literal(literal) = &self.values[about] else { return false };
            let of_value = words(&literal.text);
            let of_taker = [words(parameter), words(&taker.tool.id.to_string())].concat();
            of_value.iter().any(|word| of_taker.contains(word))
        });
        let fit = if alike { fit.max(NAMED_ALIKE) } else { fit };
        if self.is_referred_to(from, to) { 1.0 - (1.0 - fit) * REFERRED_DOUBT } else { fit }
    }

    /// Whether a step that the second tool could serve refers to the one before, which the first could serve.
    fn is_referred_to(&self, from: usize, to: usize) -> bool {
        let serves = |step: &PathStep, call: usize| {
            step.candidates.iter().any(|(tool, _)| *tool == self.tool_of[call])
        };
        self.request.steps.windows(2).any(|pair| {
            let refers = words(&pair[1].words).iter().any(|word| super::REFERRING.contains(&word.as_str()));
            refers && serves(&pair[0], from) && serves(&pair[1], to)
        })
    }

    /// The calls that could serve a step.
    fn calls_for(&self, step: &PathStep) -> Vec<(usize, f64)> {
        let mut calls = Vec::new();
        for (call, tool) in self.tool_of.iter().enumerate() {
            let Some((_, probability)) = step.candidates.iter().find(|(other, _)| other == tool) else {
                continue;
            };
            let elsewhere = self.about[call].is_some_and(|about| match &self.values[about] {
                GivenValue::Literal(literal) => !step.words.contains(&literal.text),
                _ => false,
            });
            let probability = probability.clamp(f64::EPSILON, 1.0);
            calls.push((call, probability * if elsewhere { OTHER_STEP } else { 1.0 }));
        }
        calls
    }

    fn candidate(&self, path: &CallPath) -> CandidatePath {
        let mut tasks: Vec<PathTask> =
            path.calls.iter().enumerate().map(|(at, call)| self.task(at, call, path)).collect();
        let mut unused = self.unused(path);
        unused.retain(|value| !self.place_optional(*value, &mut tasks));
        self.keep_order(path, &mut tasks);
        let first_only =
            path.calls.iter().flat_map(|call| &call.arguments).any(
                |(_, source)| matches!(source, ArgumentSource::Result { path, .. } if path.contains("[]")),
            );
        let mut warnings: Vec<String> = unused.iter().map(|value| self.no_place(*value)).collect();
        if first_only {
            warnings.push("only the first of several results is passed on".to_owned());
        }
        CandidatePath {
            document: json!({ "tasks": tasks.iter().map(PathTask::document).collect::<Vec<_>>() }),
            tools: tasks.iter().map(|task| self.request.tools[task.tool].tool.id.clone()).collect(),
            warnings,
            probability: self.probability(path),
            cost: path.cost + UNUSED_COST * unused.len() as f64,
        }
    }

    fn probability(&self, path: &CallPath) -> f64 {
        let of_step = |(step, call): (&PathStep, &usize)| {
            let found = step.candidates.iter().find(|(tool, _)| *tool == self.tool_of[*call]);
            found.map_or(0.0, |(_, probability)| *probability)
        };
        self.request.steps.iter().zip(&path.steps).map(of_step).product()
    }

    fn task(&self, at: usize, call: &PathCall, path: &CallPath) -> PathTask {
        let tool = self.tool_of[call.call];
        let id_of = |call: usize| {
            let place = path.calls.iter().position(|other| other.call == call).unwrap_or_default();
            format!("t{}", place + 1)
        };
        let mut arguments = Map::new();
        for (name, source) in &call.arguments {
            let value = match source {
                ArgumentSource::Given(value) => {
                    escape_braces(self.argument(tool, name, *value).unwrap_or_default())
                }
                ArgumentSource::Result { call, path } => {
                    json!({ "$ref": format!("{}{}", id_of(*call), reference_path(path)) })
                }
            };
            arguments.insert(name.clone(), value);
        }
        let depends_on = call.sources().map(id_of).collect();
        let name = self.request.tools[tool].tool.id.to_string();
        PathTask { id: format!("t{}", at + 1), tool, name, arguments, depends_on }
    }

    /// Values of the request that no call of the path takes.
    fn unused(&self, path: &CallPath) -> Vec<usize> {
        let used: HashSet<usize> = path
            .calls
            .iter()
            .flat_map(|call| &call.arguments)
            .filter_map(|(_, source)| match source {
                ArgumentSource::Given(value) => Some(*value),
                ArgumentSource::Result { .. } => None,
            })
            .collect();
        let asked = |value: &usize| !matches!(self.values[*value], GivenValue::Default(_));
        (0..self.values.len()).filter(asked).filter(|value| !used.contains(value)).collect()
    }

    /// Binds a value to the optional parameter that it fits best; returns whether there is one.
    fn place_optional(&self, value: usize, tasks: &mut [PathTask]) -> bool {
        let mut best: Option<(f64, usize, &str)> = None;
        for (at, task) in tasks.iter().enumerate() {
            for input in &self.request.tools[task.tool].fields.inputs {
                let fit = self.fit(task.tool, &input.name, value).unwrap_or_default();
                let is_open = !task.arguments.contains_key(&input.name);
                if is_open && fit >= OPTIONAL_FIT && best.is_none_or(|best| fit > best.0) {
                    best = Some((fit, at, &input.name));
                }
            }
        }
        let Some((_, at, name)) = best else { return false };
        let Some(argument) = self.argument(tasks[at].tool, name, value) else { return false };
        tasks[at].arguments.insert(name.to_owned(), escape_braces(argument));
        true
    }

    fn no_place(&self, value: usize) -> String {
        match &self.values[value] {
            GivenValue::Literal(literal) => format!("`{}` is not used", literal.text),
            GivenValue::Context(name, _) => format!("`{name}` of the context is not used"),
            GivenValue::Default(_) => String::new(),
        }
    }

    /// Orders the calls that serve steps as the steps are where one of them may change something.
    fn keep_order(&self, path: &CallPath, tasks: &mut [PathTask]) {
        let place = |call: &usize| path.calls.iter().position(|other| other.call == *call);
        let serving: Vec<usize> = path.steps.iter().filter_map(place).collect();
        for (step, at) in serving.iter().enumerate() {
            for before in serving[..step].iter().filter(|before| *before != at) {
                let changes = |at: usize| !self.request.tools[tasks[at].tool].reads_only;
                let ordered = changes(*before) || changes(*at);
                if ordered && !reaches(tasks, *before, *at) {
                    let id = tasks[*before].id.clone();
                    tasks[*at].depends_on.insert(id);
                }
            }
        }
    }
}

/// A task of a path.
struct PathTask {
    id: String,
    tool: usize,
    name: String,
    arguments: Map<String, Value>,
    depends_on: BTreeSet<String>,
}

impl PathTask {
    fn document(&self) -> Value {
        json!({
            "id": self.id,
            "tool": self.name,
            "arguments": self.arguments,
            "dependsOn": self.depends_on,
        })
    }
}

/// Whether the task at `from` depends on the one at `to`.
fn reaches(tasks: &[PathTask], from: usize, to: usize) -> bool {
    let mut open = vec![from];
    let mut seen = HashSet::new();
    while let Some(at) = open.pop() {
        if at == to {
            return true;
        }
        if seen.insert(at) {
            let below = tasks.iter().enumerate().filter(|(_, task)| tasks[at].depends_on.contains(&task.id));
            open.extend(below.map(|(below, _)| below));
        }
    }
    false
}
